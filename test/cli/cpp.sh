#!/usr/bin/env bash
# Every C file of a package compiles as C++, too: all models of the tests that make a package, in one run a compiler, and
# the kernels of the goldens for microcontrollers.
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
n=0 files=() folders=()

# packages TARGET MODELS...: one of each that compiles, into files and folders
packages() {
    local target=$1 model
    shift
    for model; do
        timeout "$limit" "$lathe" compile "$model" -o "p$n" -q --target "$target" --module-name "m$n" > log 2>&1 || continue
        files+=("p$n"/src/{ops,model_data,"m${n}_lib1"}.c) folders+=("-Ip$n/include")
        n=$((n + 1))
    done
}

for target in generic x86-64-v3; do
    packages $target "$top"/demo/{digits,residual}.onnx "$top"/test/fuzz/corpus/onnx/*.onnx
done
check "enough models ($n)" test $n -ge 60
checked=0
for cc in 'g++ -std=c++11' 'clang++-19 -std=c++17'; do
    command -v "${cc%% *}" > log || continue
    checked=$((checked + 1))
    # shellcheck disable=SC2086
    check "$cc" $cc -w -fsyntax-only -O0 -march=x86-64-v3 -D_POSIX_C_SOURCE=200809L "${folders[@]}" -x c++ "${files[@]}"
done

golden_models kernel
for target in cortex-m{0plus,3,4,7,33,55}; do
    command -v arm-none-eabi-g++ > log || continue
    checked=$((checked + 1)) n=0 files=() folders=()
    packages $target kernel_*.txt
    check "$target: enough models ($n)" test $n -ge 20
    # shellcheck disable=SC2046
    check "$target" arm-none-eabi-g++ -std=c++11 -w -fsyntax-only -O0 $(sed -n 's/^TARGET_FLAGS ?= //p' p0/Makefile) \
        -DTVMRT_NUM_WORKERS=0 "${folders[@]}" -x c++ "${files[@]}"
done
[ $checked -gt 0 ] || exit 77
finish
