#!/usr/bin/env bash
# The kernels of kernel/dsp and kernel/mve, each beside the loops of its row, on random operands (unit/test_instr writes
# the program): as gcc, clang, and compilers without GNU extensions get them, on a Cortex-M4 and a Cortex-M55 in the
# emulator. What each compiler got is asked of it, so that no form stays away unseen. --all, for `make test-long`: each
# form by each compiler.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
board=$root/runtime/board
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
for tool in arm-none-eabi-gcc qemu-system-arm; do
    command -v $tool > /dev/null || { echo "$tool is missing"; exit 77; }
done
failed=0

# run TARGET FORM COMPILER FLAG...: the program as it compiles it, which has to have this form
run() {
    local target=$1 form=$2 cpu script machine more="" name family=DSP
    shift 2
    case $target in
    cortex-m4) cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16" script=mps2.ld machine=mps2-an386 ;;
    *) cpu="-mcpu=cortex-m55" script=mps3.ld machine=mps3-an547 more=-DBOARD_AN547 family=MVE ;;
    esac
    name="$target: $*"
    {
        cat "$work/$target.c"
        echo "typedef char form_is_as_asked[LATHE_$family == $form ? 1 : -1];"
    } > "$work/program.c"
    # shellcheck disable=SC2086
    "$@" $cpu -mthumb -mfloat-abi=hard -std=c99 -pedantic -Werror=pedantic -c "$work/program.c" -o "$work/program.o" 2> "$work/log" &&
        arm-none-eabi-gcc $cpu -mthumb -mfloat-abi=hard $more -O1 -T "$board/$script" -nostartfiles --specs=nano.specs \
            --specs=nosys.specs -Wl,--no-warnings "$work/program.o" "$board/startup_mps2.c" "$board/semihost.c" -lm \
            -o "$work/program.elf" 2>> "$work/log" || { echo "FAILED $name"; head -5 "$work/log"; failed=1; return; }
    timeout "$(< "$here/../time_limit")" qemu-system-arm -M $machine -display none -serial null -monitor none \
        -semihosting-config enable=on,target=native -kernel "$work/program.elf" < /dev/null > "$work/out" 2>&1 ||
        { echo "FAILED $name"; head -5 "$work/out"; failed=1; }
    echo "$name: $(tail -n 1 "$work/out")"
}

for target in cortex-m4 cortex-m55; do
    "${LATHE_BUILD:-$root/build}/test/unit_test_instr" $target "$work/$target.c" || exit 1
done
run cortex-m4 2 arm-none-eabi-gcc -O1
run cortex-m55 2 arm-none-eabi-gcc -O1
clang=$(command -v clang-19 || command -v clang) newlib=/usr/include/newlib
if [ -n "$clang" ] && [ -d $newlib ]; then
    clang=("$clang" --target=arm-none-eabi -isystem $newlib)
    run cortex-m4 1 "${clang[@]}" -O1 -U__GNUC__
    run cortex-m55 1 "${clang[@]}" -O1 -U__GNUC__
    if [ "${1:-}" = --all ]; then
        run cortex-m4 2 "${clang[@]}" -O1
        run cortex-m55 2 "${clang[@]}" -O1
    fi
fi
if [ "${1:-}" = --all ]; then
    run cortex-m4 1 arm-none-eabi-gcc -O0
    run cortex-m55 1 arm-none-eabi-gcc -O0
    run cortex-m4 0 arm-none-eabi-gcc -O1 -DLATHE_DSP=0
    run cortex-m55 0 arm-none-eabi-gcc -O1 -DLATHE_MVE=0
fi
exit $failed
