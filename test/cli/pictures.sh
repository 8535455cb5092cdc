#!/usr/bin/env bash
# Pictures that packages do not read by themselves: a program's own decoder.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

# The file has as many bytes as the model's input.
picture_model() { # LENGTH
    cat << TEXT
func @main(%file: u8[$1]) {
  %y = decode_image(%file) {height = 4, width = 4} : u8[4, 4, 3]
  return %y
}
TEXT
}
picture_model 16 > own.txt
printf 'a kind of my own' > own.bin

# --- a decoder of the program's own
cat > own.c << 'C'
#include <stdint.h>
#include <string.h>
int32_t my_decoder(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width);
int32_t my_decoder(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width)
{
    if (len < 6 || memcmp(file, "a kind", 6) != 0)
        return 1;
    memset(rgb, 9, (size_t)(3 * height * width));
    return 0;
}
C
expect 0 '' compile own.txt -q -o package
check "a package with a decoder" make -C package CFLAGS="-O1 -DLATHE_IMAGE_HOOK=my_decoder" LDFLAGS="$work/own.c"
check "which reads a file" package/runner -o results file=own.bin
check "and gives its pixels" sh -c 'head -c 48 /dev/zero | tr "\0" "\11" | cmp - results/y.bin'
printf 'another kind 16 ' > own.bin
check "and refuses another" sh -c '! package/runner -o results file=own.bin'
finish
