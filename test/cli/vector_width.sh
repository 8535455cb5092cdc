#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Products, sums along rows and expanded functions give the same bytes for any vector width: with fused multiply-add on
# 8 lanes as on 16, and without it on 4 lanes as in the interpreter. Odd lengths included.
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
[ "$(uname -m)" = x86_64 ] || exit 77
cat > "$work/rows.txt" << 'END'
func @main(%x: f32[7, 197], %g: f32[100], %b: f32[100], %z: f32[5, 100], %w: f32[3, 33], %y: f32[20000],
           %p: f32[100, 96], %v: f32[96, 16]) {
  %s = nn.softmax(%x) : f32[7, 197]
  %l = nn.layer_norm(%z, %g, %b) : f32[5, 100]
  %t = nn.log_softmax(%w) : f32[3, 33]
  %e = erf(%y) : f32[20000]
  %m = mean(%x) {axes = [1]} : f32[7, 1]
  %k = nn.matmul(%p, %v) : f32[100, 16]
  %o = gelu(%k) : f32[100, 16]
  return %s, %l, %t, %e, %m, %o
}
END

run() { # NAME OPTIONS...
    name=$1
    shift
    "$LATHE" run "$work/rows.txt" --output-dir "$work/$name" "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

run four --target x86-64-v2
run reference --interpret --target x86-64-v2
diff -r "$work/four" "$work/reference" || exit 1
grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo || exit 0
run eight --target x86-64-v3
grep -qw avx512vl /proc/cpuinfo && grep -qw avx512dq /proc/cpuinfo || exit 0
run sixteen --target x86-64-v4
diff -r "$work/eight" "$work/sixteen"
