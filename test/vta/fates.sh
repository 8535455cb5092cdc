#!/usr/bin/env bash
# One computation, four fates: interpreted, on the simulator, as C with recorders, as C with the instructions as
# constant data, for every golden case that starts from a computation with a schedule for the accelerator. All give the
# same bytes. What the object of C with recorders needs is exactly what the published object needs.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
build=$LATHE_BUILD/runtime/vta lathe=$LATHE
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED $*"; }
cc="${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -Iruntime/vta -Iinclude/abi"
cc="$cc ${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE}"
export ASAN_OPTIONS=detect_leaks=0 # a slot of a call site lives as long as the process
# shellcheck disable=SC2086
$cc -D_XOPEN_SOURCE=700 test/vta/fates/caller.c "$build/libvta.so" -Wl,-rpath,"$build" -ldl -o "$work/caller" || exit 1

# Compiles $work/$1.c, which also has to agree with the library's header, into a shared object.
object() {
    local header=
    [ "$1" != jit ] || header="-include vta_runtime.h"
    # shellcheck disable=SC2086
    $cc $header -fPIC -shared "$work/$1.c" "$build/libvta.so" -Wl,-rpath,"$build" -o "$work/$1.so"
}

# The computation of a case in $work/x.te; false: it has none, or is too large for a test.
take() {
    local bytes
    grep -q '^--- schedule$' "$1" && grep -q '^# run: .*--lower vta' "$1" && ! grep -q '^# exit: 1' "$1" || return 1
    awk '/^#/ { next } /^---$/ { exit } { print }' "$1" > "$work/x.te"
    config=$(sed -n 's/^# run: .*\(--vta-config [^ ]*\).*/\1/p' "$1")
    # shellcheck disable=SC2086
    timeout 60 "$lathe" compile "$work/x.te" --target vta $config --module-name f -o "$work/jit.c" \
        2> "$work/log" || return 1
    bytes=$(sed -n 's/^ \*   [^ ]* \([0-9]*\).*/\1/p' "$work/jit.c" | paste -sd+ | bc)
    [ "$bytes" -le 3000000 ]
}

# fate MODE: the outputs of that form are those of the interpreter.
fate() {
    local args=() line name bytes file i=0
    object "$1" || { bad "$case: $1 does not compile"; return; }
    while read -r line; do
        # shellcheck disable=SC2086
        set -- "$1" $line
        [ "$1" = jit ] && name=$2 bytes=$3 || name=$3 bytes=$4
        case $line in
        *', its own') file=- ;;
        *', written') file=">$work/$name.out" ;;
        *) file=$work/$name.in ;;
        esac
        args+=("$file:${bytes%,}")
        i=$((i + 1))
    done < <(sed -n 's/^ \*   \(.*\)/\1/p' "$work/$1.c" | sed 's| \*/||')
    "$work/caller" "$1" "$work/$1.so" f "${args[@]}" 2> "$work/log" || { bad "$case, $1: $(cat "$work/log")"; return; }
    for file in "$work"/want/*.npy; do
        name=$(basename "$file" .npy)
        if tail -c "$(stat -c %s "$work/$name.out")" "$file" | cmp -s - "$work/$name.out"; then good
        else bad "$case, $1: '$name' differs"; fi
    done
}

captured=0 cases=0
for path in test/golden/vta/*.case; do
    case=$(basename "$path" .case) inputs=() seed=1
    take "$path" || continue
    cases=$((cases + 1))
    rm -rf "$work"/want "$work"/*.in "$work"/*.out
    while read -r name bytes; do
        "$work/caller" fill "$bytes" $((seed++)) > "$work/$name.in"
        inputs+=(--input "$name=$work/$name.in")
    done < <(sed -n 's/^ \*   \([^ ]*\) \([0-9]*\)$/\1 \2/p' "$work/jit.c")
    # shellcheck disable=SC2086
    VTA_CONFIG=${config#--vta-config } && export VTA_CONFIG
    [ -n "$VTA_CONFIG" ] || unset VTA_CONFIG
    # shellcheck disable=SC2086
    "$lathe" run "$work/x.te" --interpret "${inputs[@]}" --output-dir "$work/want" > "$work/log" 2>&1 ||
        bad "$case: $(cat "$work/log")"
    # shellcheck disable=SC2086
    if "$lathe" run "$work/x.te" --target vta $config "${inputs[@]}" --against interpreter > "$work/log" 2>&1; then good
    else bad "$case: $(cat "$work/log")"; fi
    fate jit
    # shellcheck disable=SC2086
    if "$lathe" compile "$work/x.te" --target vta $config --capture --module-name f -o "$work/capture.c" 2> "$work/log"
    then captured=$((captured + 1)) && fate capture
    else grep -q 'the host computes something itself' "$work/log" || bad "$case: $(cat "$work/log")"; fi
done
echo "$cases cases, $captured captured"
[ $cases -ge 10 ] && [ $captured -ge 9 ] && [ $captured -lt $cases ] && good || bad "$cases cases, $captured captured"

# The published object: what nm says of the tutorial's product.
take test/golden/vta/listing-gemm.case
sed 's/1024/16/g' "$work/x.te" > "$work/my_gemm.te"
"$lathe" compile "$work/my_gemm.te" --target vta -o "$work/my_gemm.c" || bad "my_gemm"
wanted='VTADepPop VTADepPush VTALoadBuffer2D VTAPushGEMMOp VTAStoreBuffer2D VTASynchronize VTATLSCommandHandle
VTAUopLoopBegin VTAUopLoopEnd VTAUopPush'
${CC:-cc} -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -fPIC -c "$work/my_gemm.c" -o "$work/my_gemm.o"
undefined=$(nm -u "$work/my_gemm.o" | awk '$1 == "U" && $NF != "_GLOBAL_OFFSET_TABLE_" { print $NF }' |
    LC_ALL=C sort | xargs)
[ "$undefined" = "$(xargs <<< "$wanted")" ] && good || bad "undefined symbols: $undefined"
# The published run-time has no vta_want_config: the object loads without it, and asks where it is.
[ "$(nm -u "$work/my_gemm.o" | awk '$1 == "w" { print $2 }')" = vta_want_config ] && good || bad "weak symbols"
defined=$(nm "$work/my_gemm.o")
[ "$(awk '$2 == "T" { print $3 }' <<< "$defined")" = my_gemm ] && good || bad "what it defines: $defined"

# A device of another configuration than the one that the C is for is refused, and told which one is wanted; with memory
# of the function's own and without. So is one for captured streams, by vta_replay.
refused=0
for path in test/golden/vta/{listing-add,host-and-device,gemm-threads,conv-padded}.case; do
    take "$path" || continue
    object jit || { bad "$path: does not compile"; continue; }
    args=()
    while read -r bytes; do args+=("-:$bytes"); done < <(sed -n 's/^ \*   [^ ]* \([0-9]*\).*/\1/p' "$work/jit.c")
    VTA_CONFIG=1x16_i8w8a32_14_15_18_17 "$work/caller" jit "$work/jit.so" f "${args[@]}" > /dev/null 2> "$work/log"
    if [ $? = 1 ] && grep -q 'for a device 1x16_i8w8a32_15_15_18_17; this one is 1x16_i8w8a32_14' "$work/log"
    then refused=$((refused + 1)) && good
    else bad "$path ran on another device: $(cat "$work/log")"; fi
done
[ $refused -ge 3 ] && good || bad "$refused programs were tried on another device"

echo "fates.sh: $passed passed, $failed failed"
[ $failed = 0 ]
