#!/usr/bin/env bash
# Bad input as a new user would give it: one line of reason, a hint, the documented exit status, no half-written output.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3

# --- the model
expect_error 1 'missing|no such|cannot open' compile missing.onnx -o out
expect_error 1 'this is a folder' compile "$work" -o out
echo "this is a text file" > text.onnx
expect_error 1 'text.onnx' compile text.onnx -o out
: > empty.onnx
expect_error 1 'empty' compile empty.onnx -o out
head -c 3000 "$model" > cut.onnx
expect_error 1 'cut.onnx' compile cut.onnx -o out
printf 'func @main(%%x: f32[1]) {\n  %%y = frobnicate(%%x)\n  return %%y\n}\n' > unknown.txt
expect_error 1 'unknown.txt:2:.*frobnicate' compile unknown.txt -o out
printf 'func @main(%%x: f32[n]) {\n  %%y = exp(%%x) : f32[n]\n  return %%y\n}\n' > symbol.txt
expect_error 1 'no upper bound' compile symbol.txt -o out
for n in 99999999999999 600000000; do
    printf 'func @main(%%x: f32[%s]) {\n  %%y = exp(%%x) : f32[%s]\n  return %%y\n}\n' $n $n > large.txt
    expect_error 1 'too large for the target cortex-m' compile large.txt --target cortex-m -o out
done
expect_error 1 'cannot open' run missing.onnx
[ ! -e out ] && good || bad "a failed compile left 'out' behind"

# --- the command line
expect_error 2 'no option .--frob' compile "$model" --frob -o out
expect_error 2 'did you mean --target' compile "$model" --targe generic -o out
expect_error 2 'needs a value' compile "$model" -o
expect_error 2 'no folder for the package' compile "$model"
expect_error 2 'needs a file' compile -o out
expect_error 2 'one too many' compile "$model" "$model" -o out
expect_error 2 'pdp11. is unknown' compile "$model" --target pdp11 -o out
expect_error 2 'unknown' compile "$model" --emit pascal -o out
expect_error 2 'unknown' compile "$model" --port cpm -o out
expect_error 2 'cannot be a module name' compile "$model" --module-name 'a b' -o out
expect_error 2 'cannot be a module name' compile "$model" --module-name 9lives -o out
expect_error 2 'is not a number' compile "$model" --workers many -o out
expect_error 2 'is not a number' compile "$model" -O9 -o out
expect_error 2 'not understood' compile "$model" --shape image=1xtwo -o out
expect_error 2 'is not NAME=VALUE' compile "$model" --shape 1x1 -o out
expect_error 2 'nothing to compare' verify "$model"
expect 2 'there is no verb' frobnicate
[ ! -e out ] && good || bad "a usage error left 'out' behind"

# --- the output
mkdir taken && echo mine > taken/notes.txt
expect_error 2 'left alone' compile "$model" -o taken
[ "$(cat taken/notes.txt)" = mine ] && [ "$(ls taken)" = notes.txt ] && good || bad "a foreign folder was changed"
: > file
expect_error 2 'cannot become a package' compile "$model" -o file
expect_error 3 'cannot|not a directory' compile "$model" -o file/out
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod a-w locked
    expect_error 3 'cannot create|permission' compile "$model" -o locked/out
fi
expect_error 3 'cannot|read-only|permission|not permitted' compile "$model" -o /proc/out

# --- the inputs of a run
printf 'abc' > short.bin
expect_error 1 'short.bin.*3 bytes' run "$model" --input image=short.bin
expect_error 2 "the model has no input 'picture'" run "$model" --input picture=short.bin
expect_error 2 "'short.bin' has no NAME=" run "$model" --input short.bin
check 'its hint names the input' grep -q 'hint: for example --input image=short.bin' "$work/stderr"
expect_error 1 'no folder' run "$model" --data nowhere
mkdir data
expect 0 'probabilities' run "$model" --output-dir shapes
expect_error 1 'holds f32\[1, 10\]' run "$model" --input image=shapes/probabilities.npy
printf '\223NUMPY\001\000v\000{"broken": 1}' > bad.npy
expect_error 1 'bad.npy' run "$model" --input image=bad.npy
expect 0 '' compile "$model" -q -o bare --workers 1 --port baremetal
expect_error 1 'no input_0.pb' run "$model" --data data
expect_error 1 'no input_0.pb' verify "$model" --data data
head -c 256 /dev/zero > zero.bin
expect_error 2 'second time' run "$model" --input image=zero.bin --input image=zero.bin
expect_error 2 'is graph text' compile symbol.txt --dim n=3 -o out
"$lathe" compile "$model" -q -o package
expect_error 2 'already compiled, and has no open extent' run package --dim n=3
for option in --integers '--requant fast' --quantized-io '--plan-effort 9' '--schedules no' --no-winograd --no-split-data '--offload vta' \
    --input-in-workspace '--share-kernels shape' --interpret '-O1'; do
    expect_error 2 'already compiled: --' run package $option
done
expect_error 2 'already compiled: --schedules' bench package --schedules no

# --- the environment
CC=/nowhere/cc expect_error 3 'no program' run "$model"
LATHE_PYTHON=/nowhere/python expect_error 3 'onnxruntime' verify "$model" --against onnxruntime
expect_error 2 'unknown' verify "$model" --against pytorch
TMPDIR=/nowhere expect_error 3 'temporary folder' run "$model"

# --- a C build that fails: the first error, whatever else the compiler says, and the way to all of it
"$lathe" compile "$model" -q -o broken
sed -i '30i int broken = ;' broken/src/default_lib1.c
expect_error 3 'broken/src/default_lib1.c:30:.*error: ' run broken
grep -Eq "hint: the whole log: make -C broken lib( CC='.*')?$" stderr && good || bad "no way to the log: $(cat stderr)"
cat > echoing << 'SH'
#!/bin/sh
echo "cc -Werror -o $2"
echo "In file included from a.h:1,"
echo "a.c:7:1: error: the first one"
echo "a.c:9:1: error: the second one"
exit 1
SH
chmod +x echoing
CC=$work/echoing expect_error 3 "failed: a.c:7:1: error: the first one \[" run "$model"
CC=$work/echoing expect_error 3 "hint: the whole log: make -C kept lib CC=" run "$model" --keep kept
CC=$work/echoing expect 3 "hint: the whole log: run this again with --keep DIR, then make -C DIR lib CC=" run "$model"
CC=false expect_error 3 "'false' failed: it said nothing" run "$model"
finish
