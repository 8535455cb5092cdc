#!/usr/bin/env bash
# Every C file of a package compiles as C++, too: all models of the tests that make a package, in one run a compiler.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
n=0 files=() folders=()
for model in "$top"/demo/digits.onnx "$top"/demo/residual.onnx "$top"/test/fuzz/corpus/onnx/*.onnx; do
    for target in generic x86-64-v3; do
        timeout "$limit" "$lathe" compile "$model" -o "p$n" -q --target $target --module-name "m$n" > log 2>&1 || continue
        files+=("p$n"/src/{ops,model_data,"m${n}_lib1"}.c) folders+=("-Ip$n/include")
        n=$((n + 1))
    done
done
check "enough models ($n)" test $n -ge 60
checked=0
for cc in 'g++ -std=c++11' 'clang++-19 -std=c++17'; do
    command -v "${cc%% *}" > log || continue
    checked=$((checked + 1))
    # shellcheck disable=SC2086
    check "$cc" $cc -w -fsyntax-only -O0 -march=x86-64-v3 -D_POSIX_C_SOURCE=200809L "${folders[@]}" -x c++ "${files[@]}"
done
[ $checked -gt 0 ] || exit 77
finish
