#!/usr/bin/env bash
# Pictures that packages do not read by themselves: a program's own decoder, and the libraries of this machine.
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
picture_model 68 > webp.txt
picture_model 16 > own.txt
# What libwebp makes of 4 x 4 pixels without loss: red 0, 16, 32 ..., green 0 and 255 in turn, blue 7.
printf '\x52\x49\x46\x46\x3c\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x2f\x00\x00\x00\x2f\x03\xc0\x00\x00\x7f\x20' > webp.bin
printf '\x24\x20\xf8\x3f\x5a\xb3\x61\x20\xe6\x60\xfe\x09\x26\x69\xaa\xed\x18\x5c\xcc\x7f\x01\x41\x00\xc4\x82\x16\x2d' >> webp.bin
printf '\x5a\xb4\x68\xd1\xa2\x45\x47\x44\xff\x03\x94\xd3\x1d\x00' >> webp.bin
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    printf "\\x$(printf %02x $((16 * i)))\\x$([ $((i % 2)) = 0 ] && echo 00 || echo ff)\\x07"
done > pixels.bin
printf 'a kind of my own' > own.bin

export PKG_CONFIG_LIBDIR=$work # knows no library
expect_error 1 'hint: .*libwebp-dev and libopenjp2-7-dev' run webp.txt --input file=webp.bin
expect_error 1 'status -10' run webp.txt --input file=webp.bin --interpret
unset PKG_CONFIG_LIBDIR
if pkg-config --exists libwebp libopenjp2; then
    expect 0 'y: u8\[4, 4, 3\]' run webp.txt --input file=webp.bin --output-dir out
    check "the pixels of a WebP" sh -c 'tail -c 48 out/y.npy | cmp - pixels.bin'
    printf 'x' | dd of=webp.bin bs=1 seek=15 conv=notrunc 2> log
    expect_error 1 'status -10' run webp.txt --input file=webp.bin
    expect_error 1 'status -10' run own.txt --input file=own.bin
fi

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
