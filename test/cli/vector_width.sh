#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Products, sums along rows and expanded functions give the same bytes for any vector width: with fused multiply-add on
# 8 lanes as on 16, and without it on 8 lanes as on 4. Odd lengths included.
set -u
export CFLAGS=-O1
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

run() { # NAME MODEL OPTIONS...
    name=$1
    shift
    "$LATHE" run "$@" --output-dir "$work/$name" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo || exit 77
run four "$work/rows.txt" --target x86-64-v2
"$LATHE" compile "$work/rows.txt" --target x86-64-v3 -o "$work/package" || exit 1
sed -i 's/ -ffp-contract=fast//' "$work/package/report.json"
run apart "$work/package"
diff -r "$work/four" "$work/apart" || exit 1
run eight "$work/rows.txt" --target x86-64-v3
grep -qw avx512vl /proc/cpuinfo && grep -qw avx512dq /proc/cpuinfo || exit 0
run sixteen "$work/rows.txt" --target x86-64-v4
diff -r "$work/eight" "$work/sixteen"
