#!/bin/sh
# The demo: demo/digits.onnx -> C package -> program -> predictions; and the same model as a portable module. run.sh LATHE FOLDER [RECORDS]
# FOLDER receives the package (FOLDER/package) and the program (FOLDER/digits).
# SPDX-License-Identifier: Apache-2.0
set -eu
demo=$(dirname "$0")
lathe=$1 out=$2 records=${3:-$demo/inputs/digits.bin}
workers=2
cc=${CC:-cc}
mkdir -p "$out"
say() { echo "\$ $*"; "$@"; }

say "$lathe" compile "$demo/digits.onnx" --emit c -o "$out/package" --workers $workers
echo
echo "The generated C, all of it:"
(cd "$out/package" && wc -l src/*.c src/*.h include/*.h)
echo
say make -s -j2 -C "$out/package" CC="$cc" WORKERS=$workers
set --
for object in "$out/package/build/"*.o; do
    [ "${object##*/}" = main.o ] || set -- "$@" "$object"
done
say "$cc" -std=c99 -D_POSIX_C_SOURCE=199309L -O2 -DDEMO_WORKERS=$workers -I"$out/package/include" \
    "$demo/main.c" "$@" -o "$out/digits" -lm -lpthread
"$out/digits" "$records"
echo
echo "The same model as one file for any machine; its kernels are compiled here, now:"
say "$lathe" compile "$demo/digits.onnx" --emit module --target my_device -o "$out/digits.so"
CC=$cc say "$lathe" run "$out/digits.so" --seed 1
