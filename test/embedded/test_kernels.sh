#!/usr/bin/env bash
# The kernel of each row, beside what the interpreter makes of the row, on random operands (unit/test_kernels writes the
# programs, and says which rows have no kernel). Those of microcontrollers: as gcc, clang, and compilers without GNU
# extensions get them, on a Cortex-M4 and a Cortex-M55 in the emulator, and as plain C here. What each compiler got is
# asked of it, so that no form stays away unseen. Those of vectors: for each processor that this one can run, or an
# emulator. With each, fixed point in lanes (fixed.c). --all, for `make test-long`: each form by each compiler, and more
# numbers for the symbols of rows.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
board=$root/runtime/board
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
for tool in arm-none-eabi-gcc qemu-system-arm; do
    command -v $tool > /dev/null || { echo "$tool is missing"; exit 77; }
done
failed=0 all= count= # count: how the emulator counts instructions

# on_board TARGET FLAG...: program.o linked and run in the emulator; `out` has what it says
on_board() {
    local target=$1 cpu="-mcpu=cortex-m55" script=mps3.ld machine=mps3-an547 more=-DBOARD_AN547
    [ "$target" != cortex-m4 ] || { cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16" script=mps2.ld machine=mps2-an386 more=; }
    shift
    # shellcheck disable=SC2086
    arm-none-eabi-gcc $cpu -mthumb -mfloat-abi=hard $more -O1 -T "$board/$script" -nostartfiles --specs=nano.specs \
        --specs=nosys.specs -Wl,--no-warnings "$work/program.o" "$board/startup_mps2.c" "$board/semihost.c" -lm \
        "$@" -o "$work/program.elf" 2>> "$work/log" || { cat "$work/log"; return 1; } > "$work/out"
    # shellcheck disable=SC2086
    timeout "$(< "$here/../time_limit")" qemu-system-arm -M $machine -display none -serial null -monitor none \
        -semihosting-config enable=on,target=native $count -kernel "$work/program.elf" < /dev/null > "$work/out" 2>&1
}

# times TARGET
times() {
    "${LATHE_BUILD:-$root/build}/test/unit_test_kernels" "$1" "$work/program.c" || return 1
    printf '%10s %10s %10s  %s\n' kernel loops row "$1"
    if [[ $1 != cortex-* ]]; then
        gcc -std=c99 -O2 "-march=${1/-vnni/}" -Wno-psabi -I"$root" -DTIMES=100000L "$work/program.c" -lm -o "$work/program" &&
            "$work/program"
        return
    fi
    local cpu="-mcpu=cortex-m55"
    [ "$1" != cortex-m4 ] || cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16"
    # shellcheck disable=SC2086
    arm-none-eabi-gcc $cpu -mthumb -mfloat-abi=hard -std=c99 -O2 -I"$root" -DTIMES=100 -c "$work/program.c" \
        -o "$work/program.o" && on_board "$1" -u _printf_float
    cat "$work/out"
}
if [ "${1:-}" = --times ]; then
    shift
    count="-icount shift=0"
    [ $# -gt 0 ] || set -- cortex-m4 cortex-m55 x86-64-v3
    for target in "$@"; do
        times "$target" || exit 1
    done
    exit 0
fi

# run TARGET FORM COMPILER FLAG...: the program as it compiles it, which has to have this form
run() {
    local target=$1 form=$2 cpu="-mcpu=cortex-m55" name family=MVE
    [ "$1" != cortex-m4 ] || { cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16"; family=DSP; }
    shift 2
    name="$target: $*"
    {
        cat "$work/$target.c"
        echo "typedef char form_is_as_asked[LATHE_$family == $form ? 1 : -1];"
    } > "$work/program.c"
    # shellcheck disable=SC2086
    "$@" $cpu -mthumb -mfloat-abi=hard -std=c99 -pedantic -Werror=pedantic -I"$root" -c "$work/program.c" -o "$work/program.o" 2> "$work/log" ||
        { echo "FAILED $name"; head -5 "$work/log"; failed=1; return; }
    on_board "$target" || { echo "FAILED $name"; head -5 "$work/out"; failed=1; }
    echo "$name: $(tail -n 1 "$work/out")"
    # shellcheck disable=SC2086
    "$@" $cpu -mthumb -mfloat-abi=hard -std=c99 -I"$root" -DROUNDS=5000 -c "$here/fixed.c" -o "$work/program.o" 2> "$work/log" &&
        on_board "$target" || { echo "FAILED fixed point, $name"; head -5 "$work/log" "$work/out"; failed=1; }
    echo "fixed point, $name: $(tail -n 1 "$work/out")"
}

[ "${1:-}" != --all ] || all=all
"${LATHE_BUILD:-$root/build}/test/unit_test_kernels" rows || exit 1
for target in cortex-m4 cortex-m55; do
    "${LATHE_BUILD:-$root/build}/test/unit_test_kernels" $target "$work/$target.c" $all || exit 1
done
run cortex-m4 2 arm-none-eabi-gcc -O1
run cortex-m55 2 arm-none-eabi-gcc -O1
clang=$(command -v clang-19 || command -v clang) newlib=/usr/include/newlib
if [ -n "$clang" ] && [ -d $newlib ]; then
    arm=("$clang" --target=arm-none-eabi -isystem "$newlib")
    run cortex-m4 1 "${arm[@]}" -O1 -U__GNUC__
    run cortex-m55 1 "${arm[@]}" -O1 -U__GNUC__
    if [ "${1:-}" = --all ]; then
        run cortex-m4 2 "${arm[@]}" -O1
        run cortex-m55 2 "${arm[@]}" -O1
    fi
fi
if [ "${1:-}" = --all ]; then
    run cortex-m4 1 arm-none-eabi-gcc -O0
    run cortex-m55 1 arm-none-eabi-gcc -O0
    run cortex-m4 0 arm-none-eabi-gcc -O1 -DLATHE_DSP=0
    run cortex-m55 0 arm-none-eabi-gcc -O1 -DLATHE_MVE=0
fi

# plain FLAG...: kernels of microcontrollers without any instruction of theirs, on this machine
plain() {
    local name="plain C: gcc $*"
    gcc -std=c99 -pedantic -Werror=pedantic -O1 -I"$root" "$@" -fsanitize=undefined -fno-sanitize-recover=all \
        "$work/plain.c" -lm -o "$work/program" 2> "$work/log" && "$work/program" > "$work/out" 2>&1 ||
        { echo "FAILED $name"; head -5 "$work/log" "$work/out"; failed=1; }
    echo "$name: $(tail -n 1 "$work/out")"
}
"${LATHE_BUILD:-$root/build}/test/unit_test_kernels" cortex-m "$work/plain.c" $all || exit 1
plain -DLATHE_NO_FPU=1
[ "${1:-}" != --all ] || plain -DLATHE_NO_FPU=0

# lanes TARGET MACRO COMPILER FLAG...: the program of sums in lanes, as wide as the target's, on this machine, or in the
# emulator $emulator; MACRO is what the compiler has to say of the processor
emulator=
lanes() {
    local target=$1 macro=$2 name
    shift 2
    name="lanes: $*"
    command -v "$1" > /dev/null || { echo "$name: skipped, $1 is missing"; return; }
    "${LATHE_BUILD:-$root/build}/test/unit_test_kernels" "$target" "$work/lanes.c" $all || { failed=1; return; }
    {
        printf '#ifndef %s\n#error "not for this processor"\n#endif\n' "$macro"
        cat "$work/lanes.c"
        echo "typedef char form_is_as_asked[LATHE_VECTORS == $vectors ? 1 : -1];"
    } > "$work/program.c"
    "$@" -std=c99 -Wno-psabi -I"$root" "$work/program.c" -lm -o "$work/program" 2> "$work/log" ||
        { echo "FAILED $name"; head -5 "$work/log"; failed=1; return; }
    # shellcheck disable=SC2086
    timeout "$(< "$here/../time_limit")" $emulator "$work/program" > "$work/out" 2>&1 ||
        { echo "FAILED $name"; head -5 "$work/out"; failed=1; }
    echo "$name: $(tail -n 1 "$work/out")"
    # shellcheck disable=SC2086
    "$@" -std=c99 -Wno-psabi -I"$root" -DLATHE_ALONE=$(lanes_of "$target") "$here/fixed.c" -o "$work/program" 2> "$work/log" &&
        timeout "$(< "$here/../time_limit")" $emulator "$work/program" > "$work/out" 2>&1 ||
        { echo "FAILED fixed point, $name"; head -5 "$work/log" "$work/out"; failed=1; }
    echo "fixed point, $name: $(tail -n 1 "$work/out")"
}
lanes_of() { # TARGET: numbers of 32 bits in a vector
    case $1 in x86-64-v4) echo 16 ;; x86-64-v3) echo 8 ;; *) echo 4 ;; esac
}
vectors=1
can() { # FLAG: of this processor
    grep -qw "$1" /proc/cpuinfo || { echo "lanes: skipped, this processor has no $1"; return 1; }
}
x86() { # COMPILER
    lanes x86-64-v2 __SSE2__ "$1" -O1 -march=x86-64
    lanes x86-64-v2 __SSSE3__ "$1" -O1 -march=x86-64-v2
    can avx2 && lanes x86-64-v3 __AVX2__ "$1" -O1 -march=x86-64-v3
    can avx512bw && lanes x86-64-v4 __AVX512BW__ "$1" -O1 -march=x86-64-v4
    can avx512_vnni && lanes x86-64-v4 __AVX512VNNI__ "$1" -O1 -march=x86-64-v4 -mavx512vnni
    can avx_vnni && lanes x86-64-v3 __AVXVNNI__ "$1" -O1 -march=x86-64-v3 -mavxvnni
}

# AMX: no machine at hand has it, so that its instructions are a model in C (amx_model.h). What they become is assembled
# all the same, and where the processor has them they run.
amx() { # COMPILER
    "${LATHE_BUILD:-$root/build}/test/unit_test_kernels" sapphirerapids "$work/lanes.c" $all || { failed=1; return; }
    "$1" -std=c99 -O1 -Wno-psabi -I"$root" -march=x86-64-v3 -include "$here/amx_model.h" "$work/lanes.c" -lm -o "$work/program" \
        2> "$work/log" && "$work/program" > "$work/out" 2>&1 || { echo "FAILED AMX, $1"; head -5 "$work/log" "$work/out"; failed=1; }
    echo "AMX by a model in C, $1: $(tail -n 1 "$work/out")"
    "$1" -std=c99 -O1 -Wno-psabi -I"$root" -march=x86-64-v4 -mavx512vnni -mamx-tile -mamx-int8 "$work/lanes.c" -lm \
        -o "$work/program" 2> "$work/log" || { echo "FAILED AMX, $1"; head -5 "$work/log"; failed=1; return; }
    can avx512_vnni || return
    timeout "$(< "$here/../time_limit")" "$work/program" > "$work/out" 2>&1 ||
        { echo "FAILED AMX, $1"; head -5 "$work/out"; failed=1; }
    grep -qw amx_int8 /proc/cpuinfo && with=AMX || with="VNNI; AMX skipped, this processor has none"
    echo "$1 -mamx-int8, by $with: $(tail -n 1 "$work/out")"
}

emulator="qemu-aarch64 -cpu max"
if command -v qemu-aarch64 > /dev/null; then
    lanes aarch64 __ARM_FEATURE_MATMUL_INT8 aarch64-linux-gnu-gcc -static -O1 -march=armv8.2-a+dotprod+i8mm
    if [ "${1:-}" = --all ]; then
        lanes aarch64 __ARM_FEATURE_DOTPROD aarch64-linux-gnu-gcc -static -O1 -march=armv8.2-a+dotprod
        lanes aarch64 __aarch64__ aarch64-linux-gnu-gcc -static -O1 -march=armv8-a
        [ -z "$clang" ] || lanes aarch64 __aarch64__ "$clang" --target=aarch64-linux-gnu -static -O1 -march=armv8-a
    fi
fi
emulator="qemu-riscv64 -cpu rv64,v=true,vlen=128"
if [ -n "$clang" ] && command -v qemu-riscv64 > /dev/null; then
    lanes rv64gcv __riscv_vector "$clang" --target=riscv64-linux-gnu -static -O1 -march=rv64gcv
fi
emulator=
if [ "$(uname -m)" = x86_64 ]; then
    amx gcc
    if [ "${1:-}" = --all ]; then
        [ -z "$clang" ] || amx "$clang"
        x86 gcc
        [ -z "$clang" ] || x86 "$clang"
    else
        can avx2 && lanes x86-64-v3 __AVX2__ gcc -O1 -march=x86-64-v3
    fi
    vectors=0 # and sums in C wrap as they should
    lanes x86-64-v2 __SSE2__ gcc -O1 -march=x86-64 -DLATHE_VECTORS=0 -fsanitize=signed-integer-overflow \
        -fno-sanitize-recover=all
fi
exit $failed
