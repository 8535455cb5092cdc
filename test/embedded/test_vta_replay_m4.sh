#!/bin/bash
# Captured streams of VTA replayed by a program without a heap on a Cortex-M4: the device sees the same words there as on
# this machine. Prints what libvta_replay takes; fails when that grows beyond what is said here, or calls an allocator.
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${LATHE_BUILD:-$root/build}
for tool in arm-none-eabi-gcc arm-none-eabi-size qemu-system-arm; do
    command -v $tool > /dev/null || { echo "$tool is missing"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
sanitize=${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE}
ninja -C "$build" runtime/vta/libvta.a > /dev/null
# shellcheck disable=SC2086
cc -std=c11 -D_XOPEN_SOURCE=700 $sanitize -Iruntime/vta -Iinclude/abi test/vta/replay/make.c "$build/runtime/vta/libvta.a" -ljansson \
    -lpthread -lm -o "$work/make"
"$work/make" add_five 5 > "$work/add_five.c"
"$work/make" add_nine 9 > "$work/add_nine.c"

cpu="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
objects=()
# shellcheck disable=SC2086
for source in runtime/vta/{replay,status,config_check,mmio}.c test/vta/replay/board.c "$work"/add_{five,nine}.c; do
    objects+=("$work/$(basename "$source" .c).o")
    arm-none-eabi-gcc $cpu -std=c99 -Os -Wall -Wextra -Wpedantic -Werror -ffunction-sections -fdata-sections \
        -Iruntime/vta -Iinclude/abi -c "$source" -o "${objects[-1]}"
done
# shellcheck disable=SC2086
arm-none-eabi-gcc $cpu -std=gnu99 -O2 -T runtime/board/mps2.ld -nostartfiles --specs=nano.specs --specs=nosys.specs \
    -Wl,--gc-sections -Wl,--no-warnings runtime/board/startup_mps2.c runtime/board/semihost.c "${objects[@]}" -o "$work/image.elf"
timeout "$(< "$here/../time_limit")" qemu-system-arm -M mps2-an386 -display none -serial null -monitor none \
    -chardev stdio,id=console -semihosting-config enable=on,target=native,chardev=console -icount shift=0 \
    -kernel "$work/image.elf" < /dev/null > "$work/out"
diff test/vta/replay/board.expected "$work/out"

if arm-none-eabi-nm -u "${objects[@]:0:4}" | grep -E ' (malloc|calloc|realloc|free|printf|vsnprintf|_sbrk)$'; then
    echo "FAILED an object refers to an allocator or to stdio"
    exit 1
fi
sizes() { arm-none-eabi-size "$@" | awk 'NR > 1 { code += $1; data += $2 + $3 } END { print code, data }'; }
read -r code data < <(sizes "${objects[@]:0:2}")
read -r all all_data < <(sizes "${objects[@]:0:4}")
echo "flash $code bytes (replay and messages), $all bytes (with the driver of registers), RAM $((data + all_data)) bytes"
[ "$code" -le 4096 ] && [ "$all" -le 8192 ] && [ $((data + all_data)) = 0 ]
