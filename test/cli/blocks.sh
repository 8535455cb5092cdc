#!/usr/bin/env bash
# Products whose panels of weights no second-level cache holds: sums of blocks of the reduction, which wait on the stack.
# Exact with integers, the same bytes for any number of workers, no scratch, nothing left undone.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

# product NAME ROWS STEPS COLUMNS: small integers by numbers from 0 to 6, whose sums are exact in any order.
product() {
    cat > "$1.txt" << TEXT
func @main(%i: i8[$2, $3]) {
  %z = constant f32[] dense [0.0]
  %f = constant f32[] dense [1.0]
  %n = constant f32[] dense [$(($3 * $4)).0]
  %seven = constant f32[] dense [7.0]
  %s = constant i64[2] dense [$3, $4]
  %r = arange(%z, %n, %f)
  %q = mod(%r, %seven) {fmod = 1}
  %w = reshape(%q, %s)
  %x = cast(%i) {dtype = f32}
  %p = nn.matmul(%x, %w)
  %y = nn.relu(%p)
  return %y
}
TEXT
}
product some 29 3000 197 # columns end within a vector
product many 270 2400 144  # rows in chunks, the last of which is shorter
cat > plain.txt << 'TEXT'
func @main(%i: f32[40, 2400], %w: f32[2400, 150]) {
  %y = nn.matmul(%i, %w)
  return %y
}
TEXT
for name in some many plain; do
    for n in 1 2 3; do
        expect 0 '' compile $name.txt --target haswell --workers $n -o $name-$n
        check "$name, $n workers: blocks" grep -q 'rfactor .*k_o' $name-$n/src/ops.c
        check "$name, $n workers: nothing is left undone, no scratch" sh -c "
            ! grep -Eq '\"(loops_left_serial|loops_left_whole|guards_left|registers_beyond|scratch_bytes)\": [1-9]' \
                $name-$n/report.json"
    done
done
check "rows in chunks" grep -q 'chunk row_c' many-1/src/ops.c
expect 0 '' compile some.txt --target znver5 -o whole
check "a larger cache needs no blocks" sh -c '! grep -q rfactor whole/src/ops.c'

if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then
    for name in some many; do
        expect 0 'max abs 0, .*: ok' verify $name.txt --target haswell --workers 2 --against interpreter
    done
    for name in some many plain; do
        for n in 1 2 3; do
            check "$name-$n builds" make -s -C $name-$n
            check "$name-$n runs" $name-$n/runner -o $name-$n/out
            check "$name, $n workers: the same bytes" cmp $name-1/out/y.bin $name-$n/out/y.bin
        done
    done
fi
finish
