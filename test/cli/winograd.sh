#!/usr/bin/env bash
# Winograd convolutions in a package: near the direct form, off when asked, the same bytes for any number of workers,
# also where one worker takes several images at once, strict warnings.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3

# Two layers with bias, residual and activation; 48 channels; extents that no tile divides; two images.
cat > net.txt << 'TEXT'
func @main(%x: f32[2, 48, 21, 18]) {
  %start = constant f32[] dense [0.0]
  %step = constant f32[] dense [1.0]
  %end = constant f32[] dense [20736.0]
  %tenth = constant f32[] dense [0.1]
  %dims = constant i64[4] dense [48, 48, 3, 3]
  %i = arange(%start, %end, %step)
  %s = sin(%i)
  %k = multiply(%s, %tenth)
  %w = reshape(%k, %dims)
  %c = nn.conv2d(%x, %w) {pads = [1, 1, 1, 1]}
  %r = nn.relu(%c)
  %d = nn.conv2d(%r, %w) {pads = [1, 1, 1, 1]}
  %e = add(%d, %x)
  %y = nn.relu(%e)
  return %y
}
TEXT
for target in x86-64-v3 x86-64-v2; do
    for workers in 1 2 3 4; do
        expect 0 '' compile net.txt --target $target --workers $workers -o "$target-$workers"
        check "$target: a Winograd kernel" grep -q 'nn_conv2d_winograd' "$target-$workers/src/ops.c"
    done
    expect 0 '' compile net.txt --target $target --no-winograd -o "$target-direct"
    check "$target: none when it is off" sh -c "! grep -q winograd $target-direct/src/ops.c"
done
check "no warnings" warnings "$cc" x86-64-v3-4 -march=x86-64-v3
expect 0 '' compile net.txt --target x86-64-v3 -O2 -o level2
check "none at -O2" sh -c '! grep -q winograd level2/src/ops.c'

# Weights that no second-level cache holds, for four images of few tiles.
cat > batch.txt << 'TEXT'
func @main(%x: f32[4, 64, 7, 6]) {
  %start = constant f32[] dense [0.0]
  %step = constant f32[] dense [1.0]
  %end = constant f32[] dense [36864.0]
  %tenth = constant f32[] dense [0.1]
  %dims = constant i64[4] dense [64, 64, 3, 3]
  %i = arange(%start, %end, %step)
  %s = sin(%i)
  %k = multiply(%s, %tenth)
  %w = reshape(%k, %dims)
  %c = nn.conv2d(%x, %w) {pads = [1, 1, 1, 1]}
  %r = nn.relu(%c)
  %t = concatenate(%r, %r, %r, %r) {axis = 1}
  %y = nn.max_pool2d(%t) {pool_size = [3, 3], pads = [1, 1, 1, 1]}
  return %y
}
TEXT
for workers in 1 4; do
    expect 0 '' compile batch.txt --target x86-64-v3 --workers $workers -o batch-$workers
done
expect 0 '' compile batch.txt --target x86-64-v3 --no-winograd -o batch-direct
check "four images in a part" grep -q 'i0 4 -> images image' batch-1/src/ops.c
check "one, where four workers have a part each" sh -c "grep -q winograd batch-4/src/ops.c && ! grep -q 'images image' batch-4/src/ops.c"

# --- numbers
if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then
    for name in x86-64-v3-1 x86-64-v3-2 x86-64-v3-3 x86-64-v3-4 x86-64-v3-direct batch-1 batch-4 \
        batch-direct; do
        check "$name builds" make -s -C "$name" CC="$cc"
        check "$name runs" "$name/runner" -o "$name/out" # on the runner's own pattern
    done
    for n in 2 3 4; do
        check "$n workers: the same bytes" cmp x86-64-v3-1/out/y.bin "x86-64-v3-$n/out/y.bin"
    done
    check "four images at once: the same bytes" cmp batch-1/out/y.bin batch-4/out/y.bin
    near() { # folder, folder of the direct form, numbers
        for name in "$1" "$2"; do
            od -An -v -tf4 -w4 "$name/out/y.bin" > "$name.numbers"
        done
        check "$1: near the direct form" sh -c "paste $1.numbers $2.numbers | awk '
            { d = \$1 - \$2; d = d < 0 ? -d : d; if (d > most) most = d; if (\$2 > top) top = \$2 }
            END { exit !(NR == $3 && top > 0.1 && most > 0 && most <= 1e-5 * top) }'"
    }
    near x86-64-v3-1 x86-64-v3-direct 36288
    near batch-1 batch-direct 43008
fi
finish
