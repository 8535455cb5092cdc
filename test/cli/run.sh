#!/usr/bin/env bash
# run, verify, bench, inspect: what they print and write.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3
six_operators > six.txt
printf '\000\000\040\101' > ten.bin

expect 0 '^y: f32\[1\], 23 to 23: 23$' run six.txt --input x=ten.bin
expect 0 '"values":\[23.0\]' run six.txt --input x=ten.bin --json
expect 0 '^y: f32\[1\], 23 to 23: 23$' run six.txt --input x=ten.bin --interpret
expect 0 '^y: f32\[1\], 23 to 23: 23$' run six.txt -O0 --input x=ten.bin --workers 0
"$lathe" compile six.txt -o package
expect 0 '^y: f32\[1\], 23 to 23: 23$' run package --input x=ten.bin --workers 2
expect 1 'report.json' run "$work"

printf 'func @main(%%x: f32[1]) {\n  %%"a/b" = exp(%%x) : f32[1]\n  %%"a_b" = negative(%%x) : f32[1]\n  return %%"a/b", %%"a_b"\n}\n' > twins.txt
expect 0 '' run twins.txt --output-dir twins
check "outputs whose file names fall together" sh -c 'test -s twins/a_b.npy && test -s twins/a_b_1.npy'
expect 0 'probabilities' run "$model" --seed 1 --output-dir a
expect 0 'probabilities' run "$model" --seed 1 --output-dir b --workers 3
expect 0 'probabilities' run "$model" --seed 2 --output-dir c
expect 0 'probabilities' run "$model" --seed 1 --output-dir d --interpret
check "the same seed, the same bytes" cmp a/probabilities.npy b/probabilities.npy
check "another seed, other bytes" sh -c '! cmp -s a/probabilities.npy c/probabilities.npy'
check "outputs are .npy" sh -c "head -c 128 a/probabilities.npy | grep -aq \"'descr': '<f4', 'fortran_order': False, 'shape': (1, 10)\""
{
    echo "func @main(%i8: i8[9999], %u8: u8[9999], %i16: i16[9999], %i32: i32[9999], %b: bool[9999]) {"
    for t in i8 u8 i16 i32; do echo "  %y$t = maximum(%$t, %$t)"; done
    echo '  %yb = logical_not(%b)'
    echo '  return %yi8, %yu8, %yi16, %yi32, %yb'
    echo '}'
} > integers.txt
for range in 'i8: i8\[9999\], -128 to 127' 'u8: u8\[9999\], 0 to 255' 'i16: i16\[9999\], -32[67][0-9]* to 32[67]' \
    'i32: i32\[9999\], 0 to 1' 'b: bool\[9999\], 0 to 1'; do
    expect 0 "^y$range" run integers.txt
done
expect 0 'probabilities' run "$model" --keep kept
check "--keep leaves the package" test -s kept/report.json

expect 0 '^lathe +median [0-9.]+ ms, p10 [0-9.]+ ms, min [0-9.]+ ms \(2 rounds\)' bench "$model" --repeat 2 --workers 1
expect 0 '"median_ms"' bench "$model" --repeat 1 --workers 1 --json
expect 0 '^lathe +median .* \(1 rounds\)' bench "$model" --repeat 1 --workers 2 --gap 1
[ "$(nproc --all)" -ge 127 ] || expect 0 'warning: 127 workers share [0-9]+ processors?; ' bench "$model" --repeat 1 --workers 127
expect 0 '"p10_ms"' bench "$model" --repeat 3 --workers 1 --json
check "the tenth percentile lies a fifth of the way from the least of three to the one in the middle" python3 -c '
import json
line = json.load(open("stdout"))["result"]["runs"][0]
want = line["min_ms"] + 0.2 * (line["median_ms"] - line["min_ms"])
assert abs(line["p10_ms"] - want) < 3e-6, line'
expect 0 '"median_ms"' bench "$model" --repeat 2 --workers 1 --json
expect 2 "is not a number from 1 to 10000" bench "$model" --gap 0
expect 2 'gap and --profile cannot be combined: --gap times whole calls' bench "$model" --gap 1 --profile

expect 0 'workspace [0-9]+ bytes \(lower bound [0-9]+' inspect "$model"
expect 0 '"workspace_lower_bound_bytes"' inspect "$model" --json
sed 's/relu1/r, 1x/g' "$model" > comma.onnx
expect 0 'conv1, "r, 1x"$' inspect comma.onnx
expect 0 'conv1, relu1$' inspect "$model"
expect 0 'workspace' inspect package

expect 0 '^func @main' compile "$model" --emit graph
expect 0 '^primfn' compile "$model" --emit tir
"$lathe" compile "$model" --emit graph -o stage.txt
expect 0 '^func @main' opt stage.txt --passes infer-types
"$lathe" compile "$model" --report report.json -o package2
check "--report writes the report as well" cmp report.json package2/report.json

# --- inputs without elements, in every format; the .pb has neither raw bytes nor a list of floats
printf 'func @main(%%x: f32[2, 0]) {\n  %%y = exp(%%x) : f32[2, 0]\n  return %%y\n}\n' > none.txt
mkdir none && printf '\010\002\010\000\020\001' | tee none/input_0.pb > none/output_0.pb
: > none.bin
for how in "" --interpret; do
    expect 0 '^y: f32\[2, 0\]$' run none.txt --data none --output-dir nothing $how
    expect 0 '^y: max abs 0.* ok$' verify none.txt --data none $how
    expect 0 '^y: f32\[2, 0\]$' run none.txt --input x=nothing/y.npy $how
    expect 0 '"shape":\[2,0\],"values":\[\]' run none.txt --input x=none.bin --json $how
done
# --- columns stay below each other, whatever names are long or wide; names cannot command the terminal
cat > names.txt << 'TEXT'
func @main(%"入力テンソル": f32[1], %"a": f32[1234567, 100]) {
  %"e\x1b[31m" = exp(%"入力テンソル") : f32[1]
  %b = exp(%a) : f32[1234567, 100]
  return %"e\x1b[31m", %b
}
TEXT
expect 0 '^op  layer  parts' inspect names.txt
check "input and output in columns" grep -q '^input   f32\[1\]  *入力テンソル$' stdout
check "no escape sequence" sh -c "! grep -q '$(printf '\033')' stdout"
awk '/^ *op / { at = index($0, "result") } at && /f32\[/ && index($0, "f32[") != at { bad = 1 } END { exit bad }' stdout &&
    good || bad "results are not below their head: $(cat stdout)"
long=$(printf 'n%.0s' $(seq 200))
printf 'func @main(%%%s: f32[1]) {\n  %%y = exp(%%%s) : f32[1]\n  return %%y\n}\n' "$long" "$long" > long.txt
expect 0 "^input +f32\[1\] +$long\$" inspect long.txt

# --- a reader who has had enough; a full disk
expect 0 '' compile "$model" --emit tir -o loops.txt
for how in 'exec' "trap '' PIPE; exec"; do
    sh -c "$how $lathe opt loops.txt --passes ''" 2> stderr | head -n 1 > first
    [ ! -s stderr ] && [ -s first ] && good || bad "a closed pipe: $(cat stderr)"
done
if [ -c /dev/full ]; then
    "$lathe" man > /dev/full 2> stderr
    [ $? = 3 ] && grep -q 'cannot be written' stderr && good || bad "a full disk: $(cat stderr)"
fi

# --- inputs that nobody gave are said to be random
expect 0 '' run six.txt --input x=ten.bin
[ ! -s stderr ] && good || bad "a note without a reason: $(cat stderr)"
expect 0 "^note: input x is random \(seed 3\); set it with --input x=FILE" run six.txt --seed 3

# --- labels of a classifier; the keys and the values of a map in files of their own
printf '\0\0\20\101\0\0\0\0\0\0\0\0\0\0\0\0\0\0\200\77\0\0\0\0\0\0\200\77\0\0\0\0' > rows.bin
expect 0 '^named: i64\[2\], 0 to 1: 0 1 \(a, b\)$' run "$top/test/golden/onnx/zip_map.onnx" --dim X_0=2 --input X=rows.bin
expect 0 '^probabilities: f32\[2, 3\], 0 to 1: 1 0 0 0.25 0.75 0 \(columns: a, b, c\)$' \
    run "$top/test/golden/onnx/zip_map.onnx" --dim X_0=2 --input X=rows.bin
expect 0 '"values":\[0,1\],"labels":\["a","b","c"\]' run "$top/test/golden/onnx/zip_map.onnx" --dim X_0=2 \
    --input X=rows.bin --json
npy() { # FILE DESCR COUNT BYTES: an array of one dimension
    printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3,), }" > "$1"
    printf "$4" >> "$1"
}
npy keys.npy '|S5' 3 'lightotherheat\0'
npy values.npy '<f4' 3 '\0\0\0\100\0\0\020\101\0\0\200\100'
maps="run $top/test/golden/onnx/maps.onnx --dim places=1"
expect 0 '^row: f32\[1, 3\], 2 to 4: 4 2 4$' $maps --input words_keys=keys.npy --input words_values=values.npy
expect 0 '^note: inputs words_values, places_keys, places_values are random .*' $maps --input words_keys=keys.npy

# --- data folders, and what differs from them
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
if "$python" -c 'import onnx, onnxruntime' 2> /dev/null; then
    "$python" - "$model" << 'PY'
import sys, os, numpy as np, onnx, onnxruntime
from onnx import numpy_helper
x = np.random.default_rng(0).uniform(0, 16, (1, 1, 8, 8)).astype(np.float32)
y = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {"image": x})[0]
for folder, out in (("data", y), ("wrong", y + 0.1)):
    os.mkdir(folder)
    for name, v in (("input_0", x), ("output_0", out)):
        open(f"{folder}/{name}.pb", "wb").write(numpy_helper.from_array(v.astype(np.float32), name).SerializeToString())
np.savez("x.npz", x)
h = onnx.helper
rank0 = h.make_graph([h.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], "rank0",
                     [h.make_tensor_value_info("x", 1, [3])], [h.make_tensor_value_info("y", 1, [])])
onnx.save(h.make_model(rank0, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "rank0.onnx")
np.save("x.npy", x)
PY
    expect 0 'probabilities: max abs .* ok' verify "$model" --data data
    expect 1 'outside of the tolerance' verify "$model" --data wrong
    expect 0 'probabilities: max abs .* ok' verify "$model" --data data --interpret
    expect 0 'probabilities' run "$model" --input image=x.npy --output-dir n1
    expect 0 'probabilities' run "$model" --input image=x.npz --output-dir n2
    expect 0 'probabilities' run "$model" --data data --output-dir n3
    check ".npy and .npz are the same input" cmp n1/probabilities.npy n2/probabilities.npy
    check ".npy and .pb are the same input" cmp n1/probabilities.npy n3/probabilities.npy
    export LATHE_PYTHON=$python
    expect 0 'probabilities: max abs .* ok' verify "$model" --against onnxruntime
    expect 0 '^y: max abs .* ok' verify rank0.onnx --against onnxruntime
    expect 0 'ratio [0-9.]+' bench "$model" --against onnxruntime --repeat 1 --workers 1
    expect 0 'ratio [0-9.]+' bench "$model" --against onnxruntime --repeat 1 --workers 2 --gap 20
    check "a log tells what takes its time" sh -c '[ "$(grep -c "^bench: " stderr)" = 3 ]'
else
    echo "(no Python with onnxruntime: comparisons with it are left out)"
fi
# packages for other machines: said before a compiler is started
digits=$top/demo/digits.onnx
for verb in 'run' 'bench' 'verify --against interpreter'; do
    CC='' expect_error 3 'target cortex-m4 is not this machine' $verb "$digits" --target cortex-m4
    check 'an emulator is named' grep -q "hint: lathe verify --target qemu-m4 runs it in an emulator, and counts instructions; for another emulator, set CC='arm-none-eabi-gcc', and call lathe run or lathe verify with --emulator" "$work/stderr"
done
CC='' expect_error 3 'target rv64gcv is not this machine' run "$digits" --target rv64gcv
check 'and its compiler' grep -q "hint: set CC='.* -static', and call lathe run or lathe verify with --emulator" "$work/stderr"
expect_error 2 'bench measures time on this machine' bench "$digits" --target qemu-m4
check 'what counts there is named' grep -q 'hint: lathe verify --target qemu-m4' "$work/stderr"
expect 0 ' 1 worker$' bench "$digits" --target generic --profile --repeat 1 --workers 1
finish
