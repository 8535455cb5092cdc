#!/usr/bin/env bash
# Regions for a GPU as CUDA source. Their numbers are compared where there is no GPU: a stand-in for cuda_runtime.h
# (test/gpu) runs the kernels on the CPU. Where nvcc is found, it compiles the same file, with our own kernel and, where
# CUTLASS's headers are found, with its templates. `test/gpu/cutlass.sh` runs them on a GPU.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
lathe=$(cd "$(dirname "$lathe")" && pwd)/$(basename "$lathe")
cd "$work" || exit 1
source "$top/test/gpu/graphs.bash"
graph > net.txt
echo | cc -x c -c - -o empty.o && ar rcs libcudart.a empty.o
export NVCC="g++ -x c++ -w -std=c++17 -I$top/test/gpu" CC="cc -L$work"

expect 0 ': ok' verify net.txt --offload cutlass --against interpreter --rtol 1e-4 --atol 1e-4
check "no output is wrong" [ "$(grep -c ': ok' stdout)" = 3 ]
expect 0 ': ok' verify "$top/demo/digits.onnx" --offload cutlass --against interpreter --rtol 1e-4 --atol 1e-4
export LATHE_PYTHON=${LATHE_PYTHON:-$top/build/venv/bin/python}
if "$LATHE_PYTHON" -c 'import numpy, onnxruntime' 2> log; then
    expect 0 ': ok' verify "$top/demo/digits.onnx" --offload cutlass --against onnxruntime --rtol 1e-4 --atol 1e-4
fi
expect 0 '' compile net.txt --offload cutlass -o out
for composite in conv2d_bias_act conv2d dense_bias_gelu dense_bias_act; do
    expect 0 "cutlass.$composite" opt net.txt --passes infer-types,MergeComposite --offload cutlass
done
check "two regions" [ "$(grep -c '^extern "C" int32_t' out/src/cutlass.cu)" = 2 ]
check "the Makefile builds it" make -s -C out NVCC="$NVCC" LDFLAGS="-L$work"
check "it runs" out/runner
STAND_IN_CUDA_MEMORY=1000 out/runner > said.txt 2>&1
check "a device without memory ends the run" [ $? = 1 ]
check "and says the status" grep -q 'status 2' said.txt
printf 'func @fixed(%%x: f32[2, 3], %%w: f32[3, 4]) [compiler = "cutlass"] {\n  %%y = nn.matmul(%%x, %%w)\n  return %%y\n}
func @main(%%a: f32[2]) {\n  %%x = constant f32[2, 3] splat 0.5\n  %%w = constant f32[3, 4] splat 0.25
  %%y = call(%%x, %%w) {callee = @fixed}\n  %%b = negative(%%a)\n  return %%y, %%b\n}\n' > fixed.txt
expect 0 '@fixed runs on the CPU.*only the second one is constant' verify fixed.txt --against interpreter
expect_error 1 'which a module cannot hold' compile net.txt --offload cutlass --emit module -o never.so

# the script for a GPU, with the stand-in
check "it is prepared" env LATHE="$lathe" bash "$top/test/gpu/cutlass.sh" prepare gpu
env CUDA_LIB="$work" bash gpu/cutlass.sh run gpu > gpu.txt 2>&1
check "and runs" grep -q '^4 passed, 0 failed' gpu.txt

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then
    check "nvcc compiles our own kernel" "$nvcc" -O1 -DLATHE_NO_CUTLASS -c out/src/cutlass.cu -o own.o
    headers=${LATHE_CUTLASS:-$("${LATHE_PYTHON:-python3}" -c 'import cutlass_library, os
print(os.path.join(os.path.dirname(cutlass_library.__file__), "source", "include"))' 2> /dev/null)}
    if [ -e "$headers/cutlass/cutlass.h" ]; then
        check "nvcc compiles CUTLASS's templates" "$nvcc" -w -std=c++17 -O1 -I"$headers" -c out/src/cutlass.cu -o theirs.o
        nm -C theirs.o > names.txt
        check "they are used" grep -q 'cutlass::' names.txt
    else
        echo "cutlass.sh: CUTLASS's headers are not found (LATHE_CUTLASS names their folder): that part is skipped"
    fi
else
    echo "cutlass.sh: nvcc is not found: that part is skipped"
fi
finish
