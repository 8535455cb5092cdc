#!/usr/bin/env bash
# What a user meets first with a model of their own: the message names the thing to do, before what follows from it, and
# doing it leads on. The texts themselves are goldens (test/golden/message); here are their order, every verb, and files
# of other formats.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
models=$top/test/golden/message
cd "$work" || exit 3

# first LINE PATTERN ARGS...: lathe ARGS fails, and line LINE of what it says matches PATTERN.
first() {
    local line=$1 pattern=$2
    shift 2
    expect_error 1 '' "$@"
    sed -n "${line}p" "$work/stderr" | grep -Eq -- "$pattern" && good ||
        bad "$*: line $line is not '$pattern': $(cat "$work/stderr")"
}

# --- open extents: the first line of every verb but inspect is the option to give, and giving it is enough
open='open dimensions: batch, seq \(inputs input_ids, mask\): give --dim batch=1 --dim seq=128'
expect 0 '^open dimensions: batch, seq' inspect "$models/symbols.onnx"
for verb in "compile -o out" run bench; do
    first 1 "$open" $verb "$models/symbols.onnx"
    [ "$(grep -vc '^  hint: --dim ' "$work/stderr")" = 1 ] && good || bad "$verb says more: $(cat "$work/stderr")"
done
[ ! -e out ] && good || bad "a failed compile left 'out' behind"
given=$(sed -n 's/.*: give \(.*\) \[type\]$/\1/p' "$work/stderr")
expect 0 '' compile "$models/symbols.onnx" $given -o given
hint=$("$lathe" compile "$models/declared_extent.onnx" -o out 2>&1 | sed -n 's/.*give \(--dim [^ ;]*=\)N.*/\13/p')
expect 0 '' compile "$models/declared_extent.onnx" $hint -o declared
first 1 'open dimensions: n ' compile "$models/non_zero.onnx" -o out
expect 0 '' compile "$models/non_zero.onnx" --dim 'n<=3' -o chosen

# --- data gives the shapes: nothing is asked for that is known
head -c 48 /dev/zero > ids.bin
head="{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }"
printf "\223NUMPY\001\000v\000%-117s\n" "$head" | cat - ids.bin > ids.npy
expect 0 'y' run "$models/symbols.onnx" --interpret --input input_ids=ids.npy --input mask=ids.npy

# --- files of other formats, whole and damaged ones
# named NAME PATTERN BYTES: a file of these bytes is called by its format's name.
named() {
    printf "$3" > "$1"
    first 1 "$1: this is $2" inspect "$1"
    grep -q '^  hint: ' "$work/stderr" && good || bad "no way out for $1"
}
printf '\x1c\0\0\0TFL3\0\0\0\0' > model.tflite
for verb in inspect run "compile -o out" bench; do
    first 1 'model.tflite: not a readable TensorFlow Lite file: byte 0: ' $verb model.tflite
done
printf "\223NUMPY\001\000v\000%-117s\n" "$head" | cat - ids.bin > samples.npy
first 1 "this is a TensorFlow Lite model, which 'lathe quantize' does not take" quantize model.tflite -o q.onnx \
    --data samples.npy
first 1 "this is a TensorFlow Lite model, which 'lathe quantize' does not take" quantize model.tflite
grep -q "to quantize it, use TensorFlow Lite's converter" "$work/stderr" && good || bad "quantize of a .tflite: $(cat "$work/stderr")"
named model.ort 'a model in onnxruntime' '\x1c\0\0\0ORTM\0\0\0\0'
named model.pt 'a PyTorch file' 'PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl'
named old.pth 'a pickle of Python' '\x80\2\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.'
named net.keras 'a Keras model' 'PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0d\0\0\0metadata.json'
named net.h5 'a Keras model or another HDF5 file' '\x89HDF\r\n\x1a\n\0'
named trees.pkl 'a pickle' '\x80\4\x95\0'
named w.safetensors 'safetensors' '\x20\0\0\0\0\0\0\0{"__metadata__":{}}'
named w.gguf 'GGUF' 'GGUF\3\0\0\0'
named model.zip 'a zip archive' 'PK\3\4\0\0\0\0'
named model.onnx.gz 'a gzip archive' '\x1f\x8b\10\0'
named frozen.pb 'a TensorFlow graph' '\n\x14\n\1x\x12\x0bPlaceholder'
named saved_model.pb 'a TensorFlow saved model' '\10\1\x12\4\n\2\x12\0'
named net.mlmodel 'a Core ML model' '\10\4\x12\0'
mkdir saved && cp saved_model.pb saved
first 1 'a TensorFlow saved model' compile saved -o out
printf 'This is a note.\n' > note.onnx
first 1 'note.onnx:1:1: unknown text format: the file starts with .This.' compile note.onnx -o out
for size in 0 1 17 300 3000 30000; do
    head -c $size "$top/demo/digits.onnx" > cut.onnx
    first 1 'cut.onnx' compile cut.onnx -o out
    grep -q '^  hint: ' "$work/stderr" && good || bad "no way out for a model cut at $size: $(cat "$work/stderr")"
done
finish
