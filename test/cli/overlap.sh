#!/usr/bin/env bash
# Results over operands that end: the packages of processors without vectors, built with checks, against the
# interpreter of the loops without schedules, which knows no plan; and less memory than the values beside each other.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
export CFLAGS="-O1 -fsanitize=undefined -fno-sanitize-recover"
for model in digits residual residual_vta; do
    expect 0 ' ok$' verify "$top/demo/$model.onnx" --target cortex-m --integers --against interpreter --rtol 1e-5
done
unset CFLAGS
# Two values of 8192 bytes, the second over the first.
cat > rows.graph << 'G'
func @main(%x: f32[1, 8, 16, 16], %w: f32[8, 1, 3, 3]) {
  %a = nn.relu(%x)
  %b = nn.conv2d(%a, %w) {groups = 8, pads = [1, 1, 1, 1]}
  %c = nn.max_pool2d(%b) {pool_size = [2, 2], strides = [2, 2]}
  %y = nn.conv2d(%c, %w) {groups = 8, pads = [1, 1, 1, 1]}
  return %y
}
G
expect 0 ' ok$' verify rows.graph --target cortex-m --against interpreter
"$lathe" inspect rows.graph --target cortex-m > table
used=$(sed -n 's/^workspace \([0-9]*\) .*/\1/p' table)
check "$used bytes, less than two values of 8192" test "$used" -lt 12000
finish
