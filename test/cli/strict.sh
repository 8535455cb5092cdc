#!/usr/bin/env bash
# Compilers without GNU extensions: a package with its constants in C, one thread, builds and gives what gcc's gives: with tcc;
# with a clang that hides what it is, as C99 (no way to align) and as C11; for a target with vectors and for one without.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
model=$top/demo/digits.onnx
cd "$work" || exit 3

# close FILE FILE: as float32 numbers.
close() {
    paste <(od -An -v -w4 -tf4 "$1") <(od -An -v -w4 -tf4 "$2") |
        awk '{ d = $1 - $2; if ($1 + 0 != $1 || NF != 2 || d * d > 1e-12) bad = 1 } END { exit bad || NR == 0 }'
}

# gives FOLDER CC [STD]: the package in FOLDER, built by CC, gives the numbers in `wanted`.
gives() {
    local f objects=()
    rm -rf objects out && mkdir objects
    for f in "$1"/src/*.c; do
        $2 ${3:+-std=$3} -D_POSIX_C_SOURCE=200809L -DTVMRT_NUM_WORKERS=0 -I"$1/include" -I"$1/src" -c "$f" -o "objects/$(basename "$f").o" ||
            return 1
        objects+=("objects/$(basename "$f").o")
    done
    $2 -o program "${objects[@]}" -lm && ./program -o out && close out/probabilities.bin wanted
}

for target in generic x86-64-v3; do
    expect 0 '' compile "$model" -o p-$target --target $target --constants c
    make -s -C p-$target CC="$cc" > make.log 2>&1
    ./p-$target/runner -o first > /dev/null && cp first/probabilities.bin wanted
    hidden="clang-19 -O1 -U__GNUC__ -U__GNUC_MINOR__ -pedantic -w" # not gcc: glibc's headers do not fit it then
    if command -v clang-19 > /dev/null; then
        check "$target, C99 without extensions" gives p-$target "$hidden" c99
        check "$target, C11 without extensions" gives p-$target "$hidden" c11
    fi
    if command -v tcc > /dev/null; then
        check "$target, tcc" gives p-$target tcc
        check "$target, tcc as C11" gives p-$target tcc c11
    fi
done
command -v tcc > /dev/null && check "threads are refused with a word on the way out" sh -c \
    "! tcc -DTVMRT_NUM_WORKERS=2 -Ip-generic/include -c p-generic/src/tvmrt.c -o o.o 2> said && grep -q 'set TVMRT_NUM_WORKERS to 0' said"
finish
