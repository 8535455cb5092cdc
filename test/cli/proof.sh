#!/usr/bin/env bash
# The proof sheet in report.json and its page: hashes that can be computed again, memory, stack, operations of a run.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3
field() { sed -n '/"proof"/,$p' "$2" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }

expect 0 '' compile "$model" -o package --target cortex-m4 --port baremetal -q
report=package/report.json
check 'hash of the model' test "$(field model_sha256 $report)" = "$(sha256sum < "$model" | cut -d' ' -f1)"
# each file's path, a zero, its size as 8 bytes and its content, by paths; without the report and the manifest
hash_of() {
    (cd "$1" && find . -type f ! -name report.json ! -name lathe-manifest.txt | sed 's|^\./||' | LC_ALL=C sort |
        while read -r f; do
            n=$(stat -c %s "$f") size=
            for _ in 1 2 3 4 5 6 7 8; do size+=$(printf '\\x%02x' $((n % 256))); n=$((n / 256)); done
            printf '%s\0' "$f"; printf '%b' "$size"; cat "$f"
        done) | sha256sum | cut -d' ' -f1
}
check 'hash of the package' test "$(field package_sha256 $report)" = "$(hash_of package)"
check 'workspace' test "$(field workspace $report)" = "$(sed -n 's/^ *"workspace_bytes": \([0-9]*\),/\1/p' $report)"
check "the caller's tensors" test "$(field caller $report)" = 296
check 'a bound of the stack, above what kernels have in arrays' \
    test "$(field bound_bytes $report)" -ge $(($(field kernel_array_bytes $report) + $(field runtime_frame_bytes $report)))
check 'deviations have reasons' test "$(grep -c '"why": "..*"' $report)" -ge 10
expect 0 '' compile "$model" -o again --target cortex-m4 --port baremetal -q --html page.html
check 'its title is the model' grep -q '<title>digits.onnx: lathe</title>' page.html
check 'the page has the bounds' grep -q "\"operations\": $(field most_operations $report)," page.html
check 'of instructions as well' grep -q "\"instructions\": $(field most_instructions $report)," page.html
check 'and the hash' grep -q "\"model_sha256\": \"$(field model_sha256 $report)\"" page.html
check 'the same report twice' cmp $report again/report.json

# operations: two loads, an addition, a store, and two of the loop, 1000 times
for n in 10 1000; do
    printf 'func @main(%%x: f32[%s], %%y: f32[%s]) {\n  %%z = add(%%x, %%y) : f32[%s]\n  return %%z\n}\n' $n $n $n > add.txt
    expect 0 '' compile add.txt -o add --target generic --workers 1 -q
    check "operations of an addition of $n" test "$(field most_operations add/report.json)" = $((6 * n))
done
check 'no instructions of a processor of 64 bits' grep -q '"most_instructions": null' add/report.json
# a call counts by its steps, and instructions are no fewer than operations
for n in 8 64; do
    printf 'func @main(%%x: i8[1, %s]) {\n  %%w = constant i8[4, %s] splat 50\n  %%z = constant i8[] splat 5\n' $n $n \
        > product.txt
    printf '  %%y = qnn.matmul(%%x, %%w, %%z) {transpose_b = 1}\n  return %%y\n}\n' >> product.txt
    expect 0 '' compile product.txt -o product --target cortex-m4 --port baremetal -q
    check "a product of $n calls a function" grep -q 'lathe_dot_bytes(' product/src/ops.c
    most[n]=$(field most_operations product/report.json)
    check "its instructions" test "$(field most_instructions product/report.json)" -ge "${most[n]}"
done
more=$((most[64] - most[8])) steps=$(((64 - 8) / 4)) # a step of four channels loads, widens and multiplies: 26
check 'what more steps take, and the bytes of data' test $more -ge $((26 * steps)) -a $more -le $((40 * steps))
check 'no bound of the stack where vectors may be spilled' grep -q '"bound_bytes": null' add/report.json
# a loop of the model runs as often as its data says
"${LATHE_PYTHON:-$top/build/venv/bin/python}" - 2> log << 'PY' && {
import onnx
from onnx import helper as h
F, I, B = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
info = h.make_tensor_value_info
body = h.make_graph([h.make_node("Identity", ["c"], ["d"]), h.make_node("Add", ["v", "v"], ["w"])], "b",
                    [info("i", I, []), info("c", B, []), info("v", F, [2])], [info("d", B, []), info("w", F, [2])])
g = h.make_graph([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "g", [info("n", I, []), info("x", F, [2])],
                 [info("y", F, [2])])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "loop.onnx")
PY
    expect 0 '' compile loop.onnx -o loop -q
    check 'no bound of operations with a loop in the model' grep -q '"most_operations": null' loop/report.json
    check 'and why' grep -q '"unbounded_because": "the model branches or loops"' loop/report.json
}
expect_error 2 'html is for packages' compile "$model" --emit tir --html p.html
expect_error 2 'there is no folder' compile "$model" -o out --html no/p.html
finish
