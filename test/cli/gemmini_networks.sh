#!/usr/bin/env bash
# Only in `make test-long`.
# ResNet-18 and MobileNetV2 for the accelerator of examples/gemmini: the bits of the CPU's package, and of onnxruntime's
# integer operators. The model counts the cycles of the array: for ResNet-18 at most 1.1 times 7.7 million, what a
# search by hand gave.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
example=$top/examples/gemmini python=${LATHE_PYTHON:-python3}
cd "$work" || exit 1
for zoo in "${LATHE_ZOO:-$top/../shared}"/bench/models/gen_models.py; do [ -f "$zoo" ] || exit 77; done
"$python" -c 'import numpy, onnx, onnxruntime' 2> log || exit 77

check "the back end is built" gcc -std=c11 -O2 -shared -fPIC -I"$top/include" "$example/backend.c" -o gemmini.so -lm
check "the library is built" sh -c 'gcc -std=c11 -O3 -fPIC -c "$0/device.c" "$0/host.c" &&
    ar rcs libgemmini.a device.o host.o' "$example"
export CC="cc -I$example -L$work" CFLAGS=-O2
offload=(--load-codegen ./gemmini.so --offload gemmini --integers)
check "pictures" "$python" -c 'import numpy as np
np.save("x.npy", np.random.default_rng(1).standard_normal((4, 3, 224, 224)).astype(np.float32))'
for network in resnet18 mobilenetv2; do
    check "$network: made" "$python" "$zoo" . $network
    expect 0 '^quantized' quantize $network.onnx --data x.npy --load-codegen ./gemmini.so --for gemmini -o q.onnx
    expect 0 'gemmini.add' inspect q.onnx "${offload[@]}"
    check "$network: all products and sums are taken" sh -c '! sed -n "/^stayed/,\$p" stdout | grep -E "conv2d|matmul|qnn.add"'
    expect 0 '' run q.onnx --integers --seed 3 --output-dir cpu
    GEMMINI_COUNTS=1 expect 0 '' run q.onnx "${offload[@]}" --seed 3 --output-dir gemmini
    cycles=$(cat stdout stderr | sed -n 's/^gemmini: .* in \([0-9]*\) cycles.*/\1/p' | awk '{ n += $1 } END { print n }')
    echo "$network: $cycles cycles"
    check "$network: the CPU's bits" diff -r cpu gemmini
    check "$network: onnxruntime's bits, layer by layer" "$python" "$top/test/py/layer_bits.py" q.onnx "$lathe" --integers --seed 3
    check "$network: cycles" [ "$cycles" -gt 1000000 -a \( $network != resnet18 -o "$cycles" -le 8470000 \) ]
done
finish
