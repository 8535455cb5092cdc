#!/usr/bin/env bash
# The static C package: its files, its six-operator example, strict warnings, two packages in one program, the same bytes
# from two compiles, any number of workers.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
case $cc in *gcc*|cc) others="gcc" ;; *) others=$cc ;; esac
command -v clang-19 > /dev/null && others="$others clang-19"
model=$top/demo/digits.onnx
cd "$work" || exit 3

# --- the example of six operators, not fused
six_operators > six.txt
expect 0 '' compile six.txt -O0 -o six
for f in include/tvmgen_default.h src/default_lib0.c src/default_lib1.c src/model_data.c src/ops.c src/main.c src/tvmrt.h src/tvmrt.c \
    src/tvmrt_port_posix.c Makefile CMakeLists.txt report.json; do
    check "the package has $f" test -s "six/$f"
done
for name in global_const_workspace global_workspace tvmgen_default_run tvmgen_default___tvm_main__ init_op_execs model_get_descriptor \
    model_get_tensor_map model_get_op_descs model_get_schedule model_fill_args model_get_op_args g_tensor_map g_op_descs \
    g_cpu_func_table g_schedule_layers wrapped_fused_add_3 wrapped_fused_subtract_1 tvmgen_default_fused_add_2 g_fused_add_args FusedAddArgs g_fused_add3_args FusedAdd3Args \
    fused_constant_let fused_constant_4_let; do
    check "the package has the name $name" grep -rqw "$name" six/src
done
tr -d ' \n' < six/report.json > flat.json
check "its layers" grep -qF '"layers":[[0,2],[1,3],[4],[5]]' flat.json
check "its workspace" sh -c "test \$(grep -o '\"workspace_bytes\":[0-9]*' flat.json | head -1 | cut -d: -f2) -le 36"
check "its constants" sh -c "test \$(grep -o '\"constant_bytes\":[0-9]*' flat.json | head -1 | cut -d: -f2) -le 68"
check "it builds" make -s -C six CC="$cc"
printf '\000\000\040\101' > ten.bin
check "10 becomes 23" sh -c './six/runner x=ten.bin | grep -q "23 to 23: 23$"'
remade() { make -C six CC="$cc" "$@" > made && grep -q ' -c -o build/ops.o ' made; }
idle() { make -C six CC="$cc" "$@" > made && ! grep -q ' -o ' made; }
check "nothing to do" idle
check "other flags are another build" remade CFLAGS="-O0 -DNAME='\"a b\"'"
check "the same flags are not" idle CFLAGS="-O0 -DNAME='\"a b\"'"
check "other flags of the processor" remade CPU=-mtune=generic
check "another compiler" remade CC="$cc -O1"
check "another number of workers" remade WORKERS=1
check "inputs that have a pattern are named" sh -c './six/runner 2>&1 > said | grep -q "^runner: x has test numbers; x=FILE"'
check "inputs that have numbers are not" sh -c '[ -z "$(./six/runner x=ten.bin 2>&1 > said)" ]'
check "what is not an input" sh -c './six/runner y=ten.bin 2>&1 | grep -q "y=ten.bin. is not a NAME=FILE with the name of an input"'
make -s -C six run CC="$cc" ARGS="x=$work/ten.bin" > said 2>&1
check "make run tells the input that is given, and the output" test "$(tr '\n' '|' < said)" = 'x: float32 [1], 10 to 10: 10|y: float32 [1], 23 to 23: 23|'
printf '%s\n' '#include "default_names.h"' 'extern int printf(const char *, ...);' \
    'static struct tvmgen_default_instance i; static float x = 10, y; static uint8_t ws[64] __attribute__((aligned(64)));' \
    'int main(void) { struct tvmgen_default_inputs in = {&x}; struct tvmgen_default_outputs out = {&y};' \
    'const struct model_args *a = model_get_args(&i);' \
    'if (tvmgen_default_instance_init(&i, 0, ws, sizeof ws) || tvmgen_default_run_instance(&i, &in, &out)) return 1;' \
    'return printf("%g %g %g\n", *(float *)a->g_fused_add_args[4].inputs[1], *(float *)a->g_fused_add3_args.inputs[0],' \
    '*(float *)a->g_fused_add3_args.outputs[0]) < 0; }' > args.c
check "arguments by operator" sh -c "$cc -w -Isix/src -Isix/include -D_POSIX_C_SOURCE=200809L -DTVMRT_NUM_WORKERS=0 args.c \$(ls six/src/*.c | grep -v main.c) -o args -lm && test \"\$(./args)\" = '5 9 23'"
check "make run with hooks" make -s -C six run CC="$cc" HOOKS=1 CFLAGS="-O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"
check "its table of times" test "$(grep -Ec '^ *[0-9]+ tvmgen_default_fused_(add(_[123])?|subtract(_1)?)$' log)" = 6
cat > twice.c << 'C'
#include <stdint.h>

int runner(int argc, char **argv);
uint32_t tvmrt_port_cycles(void)
{
    static uint32_t now;

    return now += 3000000000u;
}

int main(int argc, char **argv)
{
    return runner(argc, argv) + runner(argc, argv);
}
C
"$cc" -w -O1 -D_POSIX_C_SOURCE=200809L -DTVMRT_HOOKS=1 -Dmain=runner -Isix/src -Isix/include -c six/src/main.c -o runner.o
check "times above 2^32 are told" sh -c "$cc -w -O1 -D_POSIX_C_SOURCE=200809L -DTVMRT_HOOKS=1 -Isix/src -Isix/include \
    twice.c runner.o \$(ls six/src/*.c | grep -v main.c) -o twice -lm -lpthread && ./twice > said &&
    test \"\$(grep -c '^1 \* 2^32 + 1705032704 tvmgen' said)\" = 6 && test \"\$(grep -c '^3000000000 tvmgen' said)\" = 6"
check "make run" make -s -C six run CC="$cc"
check "make clean" sh -c 'make -s -C six clean && ! test -e six/runner && ! test -e six/build'
expect 0 '' compile six.txt -o six
tr -d ' \n' < six/report.json > flat.json
check "by default it is one operator" grep -qF '"layers":[[0]]' flat.json

# --- the same bytes
"$lathe" compile "$model" -o one && "$lathe" compile "$model" -o two
check "two compiles give the same bytes" diff -r one two
check "no path and no time in the package" sh -c "! grep -rn -e '$work' -e \"\$(date +%Y-%m-%d)\" one"

# --- strict compilers, with and without vector units
for c in $others; do
    check "$c finds nothing" warnings "$c" one
    check "$c finds nothing with vectors" warnings "$c" one -march=x86-64-v3
done
"$lathe" compile "$model" --target generic -o generic
for c in $others; do check "$c finds nothing in the generic package" warnings "$c" generic; done
if command -v c++ > /dev/null; then
    echo '#include "tvmgen_default_instance.h"' > header.cpp
    check "the headers are C++" c++ -std=c++17 -Wall -Wextra -Werror -Ione/include -fsyntax-only header.cpp
fi

# --- no allocator
make -s -C one CC="$cc" > /dev/null
check "no allocator in any object" sh -c "! nm -u one/build/[!m]*.o | grep -Ew 'malloc|calloc|realloc|free|aligned_alloc'"

# --- workers
first=
for workers in 0 1 2 3 4 8; do
    make -s -C one CC="$cc" WORKERS=$workers > /dev/null 2>&1
    ./one/runner -o "w$workers" > /dev/null
    [ -n "$first" ] || first=w$workers
    check "$workers workers, the same bytes" cmp "$first/probabilities.bin" "w$workers/probabilities.bin"
done

# --- scalar fall-back: the same order, so the same bytes where the compiler may not contract a*b+c
for vectors in 0 1; do
    make -s -C one clean && make -s -C one CC="$cc" CFLAGS="-O2 -DLATHE_VECTORS=$vectors" TARGET_FLAGS='-march=x86-64-v3 -ffp-contract=off' > /dev/null
    ./one/runner -o "vectors$vectors" > /dev/null
done
check "the scalar fall-back gives the same bytes" cmp vectors0/probabilities.bin vectors1/probabilities.bin

# --- casts to more than the widest vector: without optimisation gcc 12 has no instruction for its own builtin
cat > wide.txt << 'TEXT'
func @main(%x: i8[1, 1, 3, 3, 16]) {
  %s = constant f32[] dense [0.0486415252]
  %t = constant f32[] dense [0.04]
  %z = constant i8[] dense [-128]
  %y = qnn.avg_pool2d(%x, %s, %t, %z, %z) {pool_size = [3, 3], data_layout = "NCHW16c"}
  return %y
}
TEXT
"$lathe" compile wide.txt --target x86-64-v4 -o wide -q
for flags in -O0 -O1; do
    check "casts to wide vectors, $flags" make -s -B -C wide lib CC="$cc" CFLAGS=$flags
done

# --- two packages in one program
"$lathe" compile six.txt -O0 --module-name a -o pa && "$lathe" compile "$model" --target generic --module-name b -o pb
cat > both.c << 'C'
#include <stdio.h>
#include "tvmgen_a.h"
#include "tvmgen_b.h"
int main(void)
{
    static float image[64], probabilities[10];
    float x = 10, y = 0;
    struct tvmgen_a_inputs ia = {&x};
    struct tvmgen_a_outputs oa = {&y};
    struct tvmgen_b_inputs ib = {image};
    struct tvmgen_b_outputs ob = {probabilities};
    if (tvmgen_a_run(&ia, &oa) != 0 || tvmgen_b_run(&ib, &ob) != 0)
        return 1;
    printf("%g\n", (double)y);
    return y != 23;
}
C
check "two packages link and run in one program" sh -c "$cc -std=c99 -O1 -D_POSIX_C_SOURCE=200809L -Ipa/include -Ipb/include -Ipa/src -Ipb/src \
    -Wa,-I,pb/src both.c pa/src/a_*.c pa/src/model_data.c pa/src/ops.c pb/src/b_*.c pb/src/model_data.c pb/src/ops.c pa/src/tvmrt.c \
    pa/src/tvmrt_port_posix.c -lm -lpthread -o both && ./both"

# At -O2 gcc 12 puts an array of 48 bytes where its own stores for AVX-512 fail: the package's flags do not let it.
cat > sums.txt << 'TEXT'
func @main(%x: u8[4, 45], %w: i8[45, 12], %s: f32[12]) {
  %y = qnn.matmul(%x, %w)
  %f = cast(%y) {dtype = f32}
  %z = add(%f, %s)
  return %z
}
TEXT
expect 0 '' compile sums.txt --target x86-64-v4 -o sums
if grep -q avx512vl /proc/cpuinfo && [ -z "${LATHE_SANITIZE:-}" ]; then
    check "a package for AVX-512 runs when it is built at -O2" sh -c "make -C sums all CC='$cc' CFLAGS=-O2 && sums/runner"
fi

if [ "$(uname -m)" = x86_64 ]; then
    awk '/^#/ { next } /^---$/ { exit } { print }' "$top/test/golden/message/static-data.case" > large.txt
    expect 0 '' compile large.txt --target x86-64-v3 -o large
    check "more than 2 GiB of static data are linked" make -s -C large CC="$cc" CFLAGS=-O0
fi
finish
