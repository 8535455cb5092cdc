#!/usr/bin/env bash
# The accelerator of examples/gemmini: its model against the digests of the reference's functional model (70 random
# programs, where they are there), and against programs by hand. Only the second ones ask for faults: what the model must
# refuse, because hardware does not order it or does something else; the functional model takes most of that. Not in
# `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
example=$top/examples/gemmini
vectors=$top/../shared/bench/gemmini/vectors.txt
cd "$work" || exit 1

# --- the model of the device
check "the model is built" gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
    "$example/device.c" "$example/replay.c" -o replay -lm
check "programs by hand" sh -c './replay --strict "$0/programs.txt" 2> by_hand' "$example"
check "26 of them" grep -qx '26 programs, 110 instructions, 38 digests: 0 wrong' by_hand
if [ -f "$vectors" ]; then
    check "programs of the reference" sh -c './replay "$0" 2> reference' "$vectors"
    check "all of them" grep -qx '70 programs, 8085 instructions, 4375 digests: 0 wrong' reference
else
    echo "skipped: the reference's programs ($vectors) are not there"
fi
sed 's/ dafad41be44f741f$/ dafad41be44f7410/; s/fault a window/fault no window/' "$example/programs.txt" > wrong.txt
check "wrong digests and faults are found" sh -c '! ./replay --strict wrong.txt 2> wrong.log && grep -q ": 2 wrong" wrong.log'

# --- the back end: 60 layers at random on the model, every bit the interpreter's; what the model must refuse as well
# (races, a missing fence) would end the run. Packages and modules hold the same C.
check "the back end is built" gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -shared -fPIC \
    -I"$top/include" "$example/backend.c" -o gemmini.so -lm
check "the library is built" sh -c 'gcc -std=c11 -O3 -Wall -Werror -fPIC -c "$0/device.c" "$0/host.c" &&
    ar rcs libgemmini.a device.o host.o' "$example"
export CC="cc -I$example -L$work"
offload=(--load-codegen ./gemmini.so --offload gemmini)
for seed in 1 2 3; do
    python3 "$top/test/cli/gemmini_layers.py" $seed 20 > layers.txt
    expect 0 '' inspect layers.txt "${offload[@]}"
    check "all layers are taken" sh -c "! sed -n '/^stayed/,\$p' stdout | grep -E 'qnn|pool|reshape'"
    expect 0 ': ok' verify layers.txt "${offload[@]}" --against interpreter --seeds 2 --rtol 0 --atol 0
done
GEMMINI_COUNTS=1 expect 0 'computes [1-9][0-9]* in' run layers.txt "${offload[@]}" --emit module

# --- a network: quantized for it, equal to the CPU
check "a float model" "${LATHE_PYTHON:-python3}" -c 'import numpy as np
np.save("x.npy", np.random.default_rng(1).random((4, 1, 8, 8), np.float32) * 16)'
expect 0 '^quantized' quantize "$top/demo/residual.onnx" --data x.npy --load-codegen ./gemmini.so --for gemmini -o q.onnx
expect 0 'no pattern of gemmini takes it' inspect q.onnx "${offload[@]}"
check "sums run on it" grep -q 'on gemmini: .*gemmini.add' stdout
check "and no sum stays" sh -c '! grep "qnn.add .*gemmini" stdout'
expect 0 ': ok' verify q.onnx "${offload[@]}" --against interpreter --seeds 4 --rtol 0 --atol 0
if "${LATHE_PYTHON:-python3}" -c 'import onnxruntime' 2> /dev/null; then
    expect 0 ': ok' verify q.onnx "${offload[@]}" --integers --against onnxruntime --seeds 4 --rtol 0 --atol 0
fi
cat > sum.txt << 'END'
func @main(%a: i8[1, 2, 3, 4], %b: i8[1, 2, 3, 4]) {
  %s = constant f32[] splat 0.0123
  %t = constant f32[] splat 0.0456
  %u = constant f32[] splat 0.0517
  %y = qnn.add(%a, %s, %b, %t, %u)
  return %y
}
END
expect 0 'some of its sums would be rounded in another way' inspect sum.txt "${offload[@]}"
expect_error 2 'does not say which numbers it takes' quantize "$top/demo/residual.onnx" --data x.npy --for xnnpack -o n.onnx
expect_error 2 "'gemini' is unknown" quantize "$top/demo/residual.onnx" --data x.npy --for gemini -o n.onnx

# --- boards: the instructions' words
if command -v riscv64-linux-gnu-gcc > compiler; then
    expect 0 '' compile q.onnx "${offload[@]}" -q -o board
    check "an object for RISC-V" riscv64-linux-gnu-gcc -std=c99 -O2 -Wall -Wextra -Werror -I"$example" -c \
        board/src/gemmini.c -o gemmini.o
    riscv64-linux-gnu-objdump -d gemmini.o > words
    # opcode custom-3, funct3 3, no result: funct7 is config, mvin2, mvin, mvout, compute (twice), preload, mvin3
    check "config, loads, computes, stores" [ "$(python3 - << 'END'
import re
words = (int(w, 16) for w in re.findall(r"^ +[0-9a-f]+:\t([0-9a-f]{8}) ", open("words").read(), re.M))
print(*sorted({w >> 25 for w in words if w & 0x7FFF == 0x307B}))
END
)" = "0 1 2 3 4 5 6 14" ]
    check "a fence behind each layer" grep -qw fence words
else
    echo "skipped: the object for RISC-V: there is no riscv64-linux-gnu-gcc"
fi

finish
