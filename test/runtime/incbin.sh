#!/bin/bash
# Constants embedded from a binary file: gcc, clang and the Cortex-M4 compiler put the file's bytes, aligned to 64, into
# read-only memory, and a file of the wrong size is noticed.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/incbin" || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
mkdir "$work/src"
head -c 1000003 /dev/urandom > "$work/src/default_const.bin"
cat > "$work/check.c" << 'END'
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
const void *tvmgen_default_get_const_workspace(void);
int main(int argc, char **argv)
{
    const unsigned char *p = tvmgen_default_get_const_workspace();
    if (argc > 1) /* expects a refusal */
        return p != NULL;
    if (p == NULL || ((uintptr_t)p & 63) != 0)
        return 2;
    return fwrite(p, 1, 1000003, stdout) != 1000003 || argv == NULL;
}
END
for cc in gcc clang-19; do
    command -v $cc > /dev/null || { echo "$cc is not here: left out"; continue; }
    build=("$cc" -std=c99 -Wall -Wextra -pedantic -Werror "-I$work/src" model_const.c "$work/check.c" -o "$work/check")
    "${build[@]}" -DTVMGEN_DEFAULT_CONST_SIZE=1000003 || fail "$cc"
    "$work/check" | cmp - "$work/src/default_const.bin" || fail "$cc: other bytes"
    "${build[@]}" -DTVMGEN_DEFAULT_CONST_SIZE=1000000 || fail "$cc"
    "$work/check" short || fail "$cc: a file of the wrong size was taken"
    echo "$cc: right"
done
if command -v arm-none-eabi-gcc > /dev/null; then
    arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -std=c99 -I"$work/src" -DTVMGEN_DEFAULT_CONST_SIZE=1000003 \
        -c model_const.c -o "$work/arm.o" || fail "arm"
    arm-none-eabi-objcopy -O binary --only-section=.rodata.tvmgen_default "$work/arm.o" "$work/arm.bin"
    head -c 1000003 "$work/arm.bin" | cmp - "$work/src/default_const.bin" || fail "arm: other bytes"
    arm-none-eabi-objdump -h "$work/arm.o" | grep -A1 'rodata.tvmgen_default' | tr '\n' ' ' |
        grep -q '2\*\*6.*READONLY' || fail "arm: alignment or section"
    echo "arm-none-eabi-gcc: right"
fi
