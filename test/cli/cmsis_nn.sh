#!/usr/bin/env bash
# Calls of CMSIS-NN for quantised layers. Its headers are in no package registry: the code is compiled against
# declarations of our own (test/embedded/cmsis_nn), for Cortex-M, and for this machine with a stand-in that checks the
# arguments and computes, so that numbers are compared. They may differ by one step: the library rounds twice.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
lathe=$(cd "$(dirname "$lathe")" && pwd)/$(basename "$lathe")
cd "$work" || exit 1
arm=$top/test/embedded/cmsis_nn
check "the stand-in" cc -std=c99 -O1 -Wall -Wextra -Werror -fPIC -I"$arm" -c "$arm/arm_nnfunctions.c" -o arm.o
ar rcs libcmsis-nn.a arm.o
export CC="cc -I$arm -L$work" XDG_CACHE_HOME=$work/cache

constant() { # NAME TYPE MOST SHAPE...: whole numbers from -MOST to MOST; of f32 divided by 30000, above 0
    local name=$1 type=$2 most=$3
    shift 3
    awk -v name="$name" -v type="$type" -v most="$most" -v shape="$*" 'BEGIN {
        n = split(shape, d, " "); count = 1; seed = length(shape) * 7919 + 17
        for (i = 1; i <= n; i++) { count *= d[i]; dims = dims (i > 1 ? ", " : "") d[i]; seed += d[i] * i * 131 }
        printf "  %%%s = constant %s[%s] dense [", name, type, dims
        for (i = 0; i < count; i++) {
            seed = (seed * 1103 + 12345) % 65536
            v = int((seed / 32768 - 1) * most)
            printf "%s%s", i ? ", " : "", type == "f32" ? sprintf("%.6f", (v < 0 ? -v : v) / 30000 + 0.0004) : v
        }
        print "]" }'
}
{
    echo 'func @main(%x: i8[1, 3, 9, 11]) {'
    constant w i8 127 8 3 3 3
    constant b i32 900 8 1 1
    constant s f32 100 8
    constant wd i8 127 8 1 3 3
    constant w1 i8 127 5 8 1 1
    constant b1 i32 900 5 1 1
    cat << 'END'
  %one = constant f32[] dense [1.0]
  %small = constant f32[] dense [0.0021]
  %zx = constant i8[] dense [7]
  %zy = constant i8[] dense [-11]
  %c = qnn.conv2d(%x, %w, %zx) {strides = [2, 2], pads = [1, 0, 1, 2]}
  %d = add(%c, %b)
  %y = qnn.requantize(%d, %s, %one, %zy) {out_dtype = i8}
  %e = qnn.conv2d(%y, %wd, %zy) {pads = [1, 1, 1, 1], groups = 8}
  %f = qnn.requantize(%e, %small, %one) {out_dtype = i8}
  %m = nn.max_pool2d(%f) {pool_size = [2, 3], strides = [2, 1], pads = [0, 1, 0, 1]}
  %g = qnn.conv2d(%m, %w1)
  %h = add(%g, %b1)
  %z = qnn.requantize(%h, %small, %one, %zx) {out_dtype = i8}
  %u = negative(%z)
  return %u, %f
}
END
} > net.txt
printf '%b' "$(awk 'BEGIN { s = 5; for (i = 0; i < 297; i++) { s = (s * 1103 + 12345) % 65536; printf "\\%03o", int(s / 256) } }')" \
    > x.bin
check "an input" [ "$(wc -c < x.bin)" = 297 ]
near() { # A.npy B.npy: signed bytes, at most a step apart, and most of them equal
    paste <(tail -c +129 "$1" | od -An -v -t d1 -w1) <(tail -c +129 "$2" | od -An -v -t d1 -w1) |
        awk '{ d = $1 - $2; off += d != 0; if (d > 1 || d < -1) bad++; if ($2 != first[1] && NR > 1) vary++; first[1] = $2 }
             END { exit !NR || bad > 0 || off > NR / 10 || vary < NR / 4 }'
}
expect 0 '' compile net.txt --offload cmsis_nn -o out
check "one region" [ "$(grep -c '^int32_t' out/src/cmsis_nn.c)" = 1 ]
check "three convolutions" [ "$(grep -Ec 'arm_(convolve|depthwise_conv)_wrapper_s8\(' out/src/cmsis_nn.c)" = 3 ]
expect 0 '' run net.txt --offload cmsis_nn --input x=x.bin --output-dir got
expect 0 '' run net.txt --interpret --input x=x.bin --output-dir want
expect 0 '' run net.txt --offload cmsis_nn --interpret --input x=x.bin --output-dir oracle
for output in u f; do
    check "$output is near" near got/$output.npy want/$output.npy
    check "$output: the meaning of the region" cmp oracle/$output.npy want/$output.npy
done
expect 0 '' compile net.txt --offload cmsis_nn --emit module -o net.so
expect 0 '' run net.so --input x=x.bin --output-dir module
check "a module calls the same" cmp got/u.npy module/u.npy
# weights lie there once, in the library's order
plain=$("$lathe" compile net.txt -O0 --json -o plain 2> /dev/null > /dev/null; grep constant_bytes plain/report.json | tr -dc 0-9)
ours=$(grep constant_bytes out/report.json | tr -dc 0-9)
check "constants are not doubled: $ours beside $plain" [ "$ours" -le $((plain + 512)) ]

# without the library, in a package and in a module
for how in c module; do
    CC=cc XDG_CACHE_HOME=$work/none expect_error 3 'arm_nnfunctions.h is not there: install CMSIS-NN' \
        run net.txt --offload cmsis_nn --emit $how --input x=x.bin --output-dir none
done

# real networks: steps that differ add up
for model in vww_qdq kws_qdq; do
    file=$(find "${LATHE_ZOO:-$top/../shared}" -name "$model.onnx" 2> /dev/null | head -n 1)
    [ -z "$file" ] && continue
    expect 0 ': ok' verify "$file" --integers --offload cmsis_nn --against interpreter --atol 0.02
    expect 0 ': ok' verify "$file" --integers --offload cmsis_nn --emit module --against interpreter --atol 0.02
done
if command -v arm-none-eabi-gcc > /dev/null; then
    expect 0 '' compile net.txt --offload cmsis_nn --target cortex-m --port baremetal -o m4
    check "for Cortex-M4" make -s -C m4 lib CC=arm-none-eabi-gcc AR=arm-none-eabi-ar \
        CPU="-mcpu=cortex-m4 -mthumb -I$arm -Wall -Werror"
else
    echo "cmsis_nn.sh: arm-none-eabi-gcc is not found: that part is skipped"
fi
finish
