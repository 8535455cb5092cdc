#!/usr/bin/env bash
# Packages for processors with little memory: code that kernels share, small tables, with and without threads, the log,
# names that are short. Built for this machine: nothing in them depends on the processor.
# Not in `make check`: it builds packages and runs them.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3
cat > rows.txt << 'END'
func @main(%x: i8[1, 8, 9, 9], %y: i8[1, 8, 6, 6]) {
  %w = constant i8[8, 8, 1, 1] splat 3
  %b = constant i32[8, 1, 1] splat 100
  %zero = constant i8[] splat 5
  %s = constant f32[] splat 0.01
  %one = constant f32[] splat 1.0
  %out = constant i8[] splat -7
  %c = qnn.conv2d(%x, %w, %zero)
  %d = add(%c, %b)
  %p = qnn.requantize(%d, %s, %one, %out)
  %e = qnn.conv2d(%y, %w, %zero)
  %f = add(%e, %b)
  %q = qnn.requantize(%f, %s, %one, %out)
  return %p, %q
}
END
cat > call.c << 'C'
#include <stdio.h>

#include "default_names.h"

static struct tvmgen_default_instance instance;
static uint64_t place[256];

int main(void)
{
    static int8_t x[648], y[288], p[648], q[288];
    struct tvmgen_default_inputs in = {x, y};
    struct tvmgen_default_outputs out = {p, q};
    unsigned sum = 0;
    int i, status, null, state;

    for (i = 0; i < 648; i++)
        x[i] = (int8_t)(i * 7 % 100 - 50);
    for (i = 0; i < 288; i++)
        y[i] = (int8_t)(i * 5 % 80 - 40);
    status = (int)tvmgen_default_run(&in, &out);
    for (i = 0; i < 648; i++)
        sum = sum * 31 + (unsigned char)p[i];
    for (i = 0; i < 288; i++)
        sum = sum * 31 + (unsigned char)q[i];
    in.y = NULL;
    null = (int)tvmgen_default_run(&in, &out);
    state = (int)tvmgen_default_run_instance(&instance, &in, &out);
    (void)place;
    printf("%d %d %d %u log %u\n", status, null, state, sum, (unsigned)tvmrt_log_count());
    return 0;
}
C
# says DIR FLAGS...: what the program prints with that package; built by tcc, in a tenth of the time, where it can: one
# thread, no hooks (weak symbols), no sanitizer
one_thread=$cc
[ -n "${LATHE_SANITIZE:-}" ] || ! command -v tcc > /dev/null || one_thread=tcc
says() {
    local dir=$1 by=$cc
    shift
    case "$*" in *HOOKS*) ;; *NUM_WORKERS=0*) by=$one_thread ;; esac
    "$by" -std=c99 -D_POSIX_C_SOURCE=200809L -w "$@" -I"$dir/src" -I"$dir/include" call.c \
        $(ls "$dir"/src/*.c | grep -v main.c) -lm -lpthread -o call && timeout "$limit" ./call
}
expect 0 '' compile rows.txt --target cortex-m4 --port posix -o shape
expect 0 '' compile rows.txt --target cortex-m4 --port posix --share-kernels exact -o exact
expect 0 '' compile rows.txt --target generic --integers -o host
expect 0 '' compile rows.txt --target generic --integers --share-kernels shape -o shared
codes() { grep -c '"code":' "$1/report.json"; }
check "kernels share their code on a microcontroller" test "$(codes shape)" = 2
check "and where they are asked to" test "$(codes shared)" = 2
check "not when that is refused" test "$(codes exact)" = 0
check "nor on a host" test "$(codes host)" = 0
check "each shared function stands once" test "$(grep -c "^LATHE_SHARED" shape/src/ops.c)" = 1
expect_error 2 'share-kernels.*packages' compile rows.txt --emit module --share-kernels shape -o m.so
expect_error 2 "share-kernels: 'shapes' is unknown" compile rows.txt --share-kernels shapes -o none

want=$(one_thread=$cc says host -DTVMRT_NUM_WORKERS=0)
check "a run, a null pointer, an instance that is not there: $want" grep -Eq '^0 -1 -9 [0-9]+ log 2$' <<< "$want"
for dir in shape exact shared; do
    for flags in -DTVMRT_NUM_WORKERS=0 "-DTVMRT_NUM_WORKERS=0 -DTVMRT_SMALL=0" -DTVMRT_NUM_WORKERS=2 \
        "-DTVMRT_NUM_WORKERS=0 -DTVMRT_HOOKS=1"; do
        # shellcheck disable=SC2086
        check "$dir with $flags" test "$(says $dir $flags)" = "$want"
    done
done
check "without a log" test "$(says shape -DTVMRT_NUM_WORKERS=0 -DTVMRT_LOG_ENABLE=0)" = "${want%2}0"
check "small tables are for one thread" sh -c "! $cc -DTVMRT_NUM_WORKERS=2 -DTVMRT_SMALL=1 -Ishape/include -c shape/src/tvmrt.c \
    -o o.o 2> said && grep -q 'set TVMRT_NUM_WORKERS to 0' said"
"$cc" -std=c99 -O1 -w -DTVMRT_NUM_WORKERS=0 -ffunction-sections -fdata-sections -Ishape/src -Ishape/include \
    -nostdlib -r -Wl,--gc-sections,-e,tvmgen_default_run,-u,tvmgen_default_run -DTVMRT_LOG_ENABLE=0 \
    $(ls shape/src/*.c | grep -v main.c) -o all.o
check "neither tables of tensors and operators nor what reads them are linked" sh -c "nm all.o > names &&
    ! grep -Eq 'g_tensor_map|g_op_descs|g_schedule|g_small|tvmrt_|wrapped_' names"
check "the package has no memory of its own but its workspace" test "$(awk '$2 ~ /^[bBdDC]$/ { print $3 }' names)" = global_workspace
# --- an instance of another size than the package's: a program whose TVMRT_ macros differ
cat > sizes.c << 'C'
#include <stdio.h>
#include <string.h>

#include "tvmgen_default_instance.h"

int main(void)
{
    static struct tvmgen_default_instance instance;
    static const struct tvmgen_default_instance untouched;
    TVMRT_ALIGNED(TVMGEN_DEFAULT_WORKSPACE_ALIGN) static uint8_t workspace[TVMGEN_DEFAULT_WORKSPACE_SIZE];
    const int status = (int)tvmgen_default_instance_init(&instance, NULL, workspace, sizeof workspace);

    printf("%d %s\n", status, memcmp(&instance, &untouched, sizeof instance) == 0 ? "untouched" : "set");
    return 0;
}
C
mkdir -p objects
for f in $(ls shape/src/*.c | grep -v main.c); do
    "$cc" -std=c99 -D_POSIX_C_SOURCE=200809L -w -DTVMRT_NUM_WORKERS=0 -Ishape/src -Ishape/include -c "$f" -o "objects/$(basename "$f").o"
done
# sized SMALL: the status of a program with that TVMRT_SMALL, for a package with 1
sized() {
    "$cc" -std=c99 -w -DTVMRT_NUM_WORKERS=0 -DTVMRT_SMALL="$1" -Ishape/include sizes.c objects/*.o -lm -o sizes && ./sizes
}
check "an instance of the package's size" test "$(sized 1)" = "0 set"
check "one of another size is refused, and left as it is" test "$(sized 0)" = "-3 untouched"

# --- names
expect 0 '' compile rows.txt --target cortex-m4 --port posix --names short -o brief
check "short names, the same numbers" test "$(says brief -DTVMRT_NUM_WORKERS=0)" = "$want"
check "the table of times numbers operators" sh -c "make -s -C brief CC=$cc HOOKS=1 CPU= TARGET_FLAGS= CFLAGS='-O1 -w' && brief/runner > said &&
    grep -q '^ *[0-9]* operator 0$' said"
# long_names DIR: identifiers of more than 31 characters, without comments, but for macros that a build may define
long_names() {
    grep -Eho '(ifn?def|defined\() *[A-Za-z0-9_]+' "$1"/src/*.[ch] "$1"/include/*.h | grep -Eo '[A-Za-z0-9_]+$' > asked
    for f in "$1"/src/*.[ch] "$1"/include/*.h; do
        "$cc" -fpreprocessed -dD -E -P -w "$f" 2> /dev/null | sed 's/"[^"]*"//g' | grep -Eo '[A-Za-z][A-Za-z0-9_]{31,}' |
            grep -vxFf asked
    done
}
check "long names without" test -n "$(long_names shape)"
check "no identifier has more than 31 characters" test -z "$(long_names brief)"
check "none has another's beginning" test -z "$(cut -d' ' -f1 brief/names.map | sort | uniq -d)"
check "the map has the long ones" grep -q '^[A-Za-z0-9_]* tvmgen_default_instance_init_sized$' brief/names.map
check "tables hold no names" sh -c "! grep -E '^(    \{|static const char)' brief/src/model_data.c | grep -q '\"[A-Za-z]'"
printf 'fast ram 8K .section_with_a_name_of_more_than_31 1\nslow rom 200K .another_section_with_a_long_name 9\n' > board.txt
expect 0 '' compile "$top/demo/digits.onnx" --target generic --names short --memory board.txt --constants incbin -o placed
check "sections keep their names" grep -q '\.another_section_with_a_long_name' placed/src/default_lib0.c
check "and so do macros that a build defines" grep -q 'ifndef TVMGEN_DEFAULT_WORKSPACE_SECTION' placed/src/default_lib0.c
expect 0 ': ok' verify "$top/demo/digits.onnx" --against interpreter --names short
expect 0 '' compile "$top/demo/digits.onnx" --names short --constants bin -o digits
expect 0 '' run digits
check "what the header declares has one name in all packages" test "$(grep ' tvmgen_default_instance' brief/names.map | sort)" = \
    "$(grep ' tvmgen_default_instance' digits/names.map | sort)"
expect_error 2 'at most 10 characters' compile rows.txt --names short --module-name keyword_spotting -o none
for verb in 'compile -o m.so' run; do
    expect_error 2 'names is for packages' $verb rows.txt --emit module --names short
    check 'the hint names another --emit' grep -q 'hint: leave it out, or --emit c$' stderr
done
for option in '--names short' '--ram 10' '--minimize ram' '--share-kernels exact'; do # what is compiled already takes none
    expect_error 2 "${option% *}" run digits $option
done
finish
