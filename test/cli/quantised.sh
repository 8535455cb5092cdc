#!/usr/bin/env bash
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
# verify --against onnxruntime on quantised models: onnxruntime runs them as they stand, and says so.
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
"$python" -c 'import numpy, onnx, onnxruntime' 2> "$work/log" || { echo "no Python with onnxruntime"; exit 77; }
export LATHE_PYTHON=$python
cd "$work" || exit 1

# A product of quantised values: integer kernels round it otherwise where it lies half-way between two steps.
"$python" - << 'PY' || exit 1
import numpy as np, onnx, onnxruntime as ort
from onnx import helper as h
def q(name, out, scale): return [h.make_node("QuantizeLinear", [name, scale, "z"], [out + "_q"]),
                                 h.make_node("DequantizeLinear", [out + "_q", scale, "z"], [out])]
nodes = q("a", "da", "s") + q("b", "db", "s") + [h.make_node("Mul", ["da", "db"], ["p"], name="the product")] + q("p", "y", "t")
scalar = lambda n, t, v: h.make_tensor(n, t, [], [v])
info = lambda n: h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [64, 256])
graph = h.make_graph(nodes, "g", [info("a"), info("b")], [info("y")],
    [scalar("s", 1, 0.0625), scalar("t", 1, 0.03125), scalar("z", onnx.TensorProto.UINT8, 127)])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "product.onnx")
rng = np.random.default_rng(1)
feed = {n: rng.standard_normal((64, 256)).astype(np.float32) for n in "ab"}
for n in feed: np.save(n + ".npy", feed[n])
o = ort.SessionOptions(); o.log_severity_level = 3
fast = ort.InferenceSession("product.onnx", o, providers=["CPUExecutionProvider"]).run(None, feed)[0]
o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
plain = ort.InferenceSession("product.onnx", o, providers=["CPUExecutionProvider"]).run(None, feed)[0]
assert (fast != plain).any(), "onnxruntime's optimiser changes nothing: this model tells nothing"
PY
# What stays in float is named by the model's node.
expect 0 '' compile product.onnx -o remarks -q --target x86-64-v2
check "remarks name the model's nodes" grep -q '"node": "the product"' remarks/report.json
inputs="--input a=a.npy --input b=b.npy"
expect 0 '^y: max abs .* ok$' verify product.onnx --against onnxruntime $inputs
expect 0 '^onnxruntime with .*optimizations off$' verify product.onnx --against onnxruntime $inputs --interpret --target generic
expect 0 '"options": "session.x64quantprecision=1, graph optimizations off"' \
    verify product.onnx --against onnxruntime $inputs --json --interpret --target generic
# In integers: its integer kernels, bit for bit, or, for a product that rounds otherwise there, the model as it stands.
expect 0 '^onnxruntime with session.x64quantprecision=1$' verify product.onnx --integers --against onnxruntime $inputs \
    --rtol 0 --atol 0 --interpret
# bench says which of its sessions is timed: the one that verify compares with has other kernels.
expect 0 '^onnxruntime +median .* \(1 rounds\), with its defaults$' bench product.onnx --integers --against onnxruntime --repeat 1 \
    --workers 1 $inputs
expect 0 '^onnxruntime-exact +median .* \(1 rounds\), with session.x64quantprecision=1$' bench product.onnx --integers \
    --against onnxruntime-exact --repeat 1 --workers 1 $inputs
expect 0 '"who": "onnxruntime-exact".*"options": "session.x64quantprecision=1"' bench product.onnx --integers \
    --against onnxruntime-exact --repeat 1 --workers 1 $inputs --json
expect 0 'note: the model quantizes nothing: onnxruntime-exact is the same' bench "$top/demo/digits.onnx" \
    --against onnxruntime-exact --repeat 1 --workers 1
expect 2 'is unknown' verify product.onnx --against onnxruntime-exact $inputs
expect 1 'WRONG$' verify product.onnx --requant fast --against onnxruntime $inputs --interpret
expect 1 'hint: --requant fast does not round as onnxruntime' verify product.onnx --requant fast --against onnxruntime \
    $inputs --interpret
expect 1 'hint: --requant tflite .*twice, as TensorFlow Lite.*--against interpreter' verify product.onnx --requant tflite \
    --against onnxruntime $inputs --interpret
expect 0 ' ok$' verify product.onnx --requant tflite --against interpreter $inputs
expect 0 '^onnxruntime with session.x64quantprecision=1$' verify "$top/demo/digits.onnx" --against onnxruntime --interpret

# A scale that is computed as the model runs: the same bits, and where they are not, why that may be.
"$python" - << 'PY' || exit 1
import numpy as np, onnx, os
from onnx import helper as h, numpy_helper as nh
w = np.random.default_rng(5).integers(-127, 128, (32, 24)).astype(np.int8)
nodes = [h.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), h.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
         h.make_node("Cast", ["i"], ["f"], to=1), h.make_node("Mul", ["f", "s"], ["y"])]
info = lambda n, d: h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, d)
graph = h.make_graph(nodes, "g", [info("x", [9, 32])], [info("y", [9, 24])], [nh.from_array(w, "w")])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "dynamic.onnx")
os.mkdir("wrong")
x = np.random.default_rng(6).standard_normal((9, 32)).astype(np.float32)
open("wrong/input_0.pb", "wb").write(nh.from_array(x, "x").SerializeToString())
open("wrong/output_0.pb", "wb").write(nh.from_array(np.zeros((9, 24), np.float32), "y").SerializeToString())
PY
expect 0 ' max abs 0, .* ok$' verify dynamic.onnx --against onnxruntime --rtol 0 --atol 0
for seed in 2 3 5 7; do # the last bit of the scale, by chance
    expect 0 ' max abs 0, .* ok$' verify dynamic.onnx --against onnxruntime --rtol 0 --atol 0 --seed $seed --interpret
done
expect 1 'hint: the model computes scales when it runs' verify dynamic.onnx --data wrong --interpret

# Integers of the form that quantize_static writes as QOperator, i8 x i8: onnxruntime's session with exact sums has no kernel
# for what its optimiser makes of that, and the next one that loads is compared with. Where none does, its error is told,
# cut between words.
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, numpy_helper as nh, TensorProto as T
rng = np.random.default_rng(5)
known = [nh.from_array(np.asarray(v, t), n) for n, v, t in (("s", 0.05, "f4"), ("z", 3, "i1"), ("sw", 0.01, "f4"),
         ("zw", 0, "i1"), ("t", 0.2, "f4"), ("u", -7, "i1"))]
def save(name, op, weights, domain="", **more):
    kernel = nh.from_array(rng.integers(-127, 128, weights).astype(np.int8), "w")
    node = h.make_node(op, ["x", "s", "z", "w", "sw", "zw", "t", "u"], ["y"], **more)
    info = lambda n, d: h.make_tensor_value_info(n, T.INT8, d)
    ends = ([1, 8, 9, 9], None) if op == "QLinearConv" else ([5, 24], None)
    graph = h.make_graph([node], "g", [info("x", ends[0])], [info("y", ends[1])], known + [kernel])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), name + ".onnx")
save("signed_conv", "QLinearConv", [16, 8, 3, 3]), save("signed_depthwise", "QLinearConv", [8, 1, 3, 3], group=8)
save("signed_product", "QLinearMatMul", [24, 10])
long = h.make_node("Det", ["x"], ["y"], name="a node with a name of many words " * 9)
onnx.save(h.make_model(h.make_graph([long], "g", [h.make_tensor_value_info("x", T.DOUBLE, [3, 3])],
    [h.make_tensor_value_info("y", T.DOUBLE, [])]), opset_imports=[h.make_opsetid("", 13)], ir_version=8), "none.onnx")
PY
for model in signed_conv signed_depthwise signed_product; do
    expect 0 '^y: max abs 0, .* ok$' verify $model.onnx --against onnxruntime --interpret
    check "$model: the session is named" grep -q '^onnxruntime with .*graph optimizations off$' stdout
    check "$model: no error of the others" bash -c '! grep -q error: stdout stderr'
done
expect 1 'error: onnxruntime: .*Det.* \.\.\. \[data\]$' verify none.onnx --against onnxruntime --interpret

# Where a quantised model is wrong it is said how far onnxruntime's sessions are from each other: one has a kernel of its
# own for these layer norms, the other the operators.
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, numpy_helper as nh
w = np.random.default_rng(5).integers(-127, 128, (64, 64)).astype(np.int8)
weights = [nh.from_array(w, f"w{i}") for i in range(6)] + [nh.from_array(np.asarray(v, np.float32), n) for n, v in (
    ("two", 2), ("eps", 1e-5), ("gain", np.ones(64)), ("shift", np.zeros(64)))]
nodes, x = [], "x"
for i in range(6):
    for op, ins, outs, more in (
            ("DynamicQuantizeLinear", [x], ["q", "s", "z"], {}), ("MatMulInteger", ["q", "w", "z"], ["i"], {}),
            ("Cast", ["i"], ["c"], {"to": 1}), ("Mul", ["c", "s"], ["f"], {}),
            ("ReduceMean", ["f"], ["m"], {"axes": [-1]}), ("Sub", ["f", "m"], ["d"], {}), ("Pow", ["d", "two"], ["p"], {}),
            ("ReduceMean", ["p"], ["v"], {"axes": [-1]}), ("Add", ["v", "eps"], ["e"], {}), ("Sqrt", ["e"], ["r"], {}),
            ("Div", ["d", "r"], ["n"], {}), ("Mul", ["n", "gain"], ["g"], {}), ("Add", ["g", "shift"], ["y"], {})):
        name = lambda n: n if n == x or n in ("two", "eps", "gain", "shift") else f"{n}{i}"
        nodes.append(h.make_node(op, [name(n) for n in ins], [name(n) for n in outs], **more))
    x = f"y{i}"
info = lambda n: h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [8, 64])
graph = h.make_graph(nodes, "g", [info("x")], [info(x)], weights)
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "norms.onnx")
PY
expect 0 ' ok$' verify norms.onnx --against onnxruntime --interpret
expect 1 '^y5: onnxruntime with session.x64quantprecision=1.* differs from that in [0-9]+ of 512 elements, max abs' \
    verify norms.onnx --against onnxruntime --rtol 0 --atol 0 --interpret
expect 1 '"other_session": "session.x64quantprecision=1.*", "other_session_wrong": [1-9]' \
    verify norms.onnx --against onnxruntime --rtol 0 --atol 0 --interpret --json

# A NaN is not half-way between two steps: onnxruntime makes it the lowest one, and a package 0
# (docs/explanation/quantize.md).
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, TensorProto as T
one = h.make_graph([h.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])], "g", [h.make_tensor_value_info("x", 1, [8])],
    [h.make_tensor_value_info("y", T.INT8, [8])], [h.make_tensor("s", 1, [], [0.25]), h.make_tensor("z", T.INT8, [], [0])])
onnx.save(h.make_model(one, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "one.onnx")
flat = h.make_graph([*one.node, h.make_node("DequantizeLinear", ["y", "s", "z"], ["d"]), h.make_node("Relu", ["d"], ["r"]),
    h.make_node("QuantizeLinear", ["r", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["e"]),
    h.make_node("Flatten", ["e"], ["out"], axis=0)], "g", one.input, [h.make_tensor_value_info("out", 1, [1, 8])], one.initializer)
onnx.save(h.make_model(flat, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "flat.onnx")
np.save("nan.npy", np.array([np.nan, 1, 2, 3, np.inf, -np.inf, 0.375, np.nan], np.float32))
PY
expect 1 'error: output .y.: 2 of 8 elements' verify one.onnx --against onnxruntime --input x=nan.npy --interpret
expect 1 '^y: .*WRONG$' verify one.onnx --against onnxruntime --input x=nan.npy --interpret
"$lathe" verify one.onnx --against onnxruntime --input x=nan.npy --interpret > warned 2>&1
check "numpy warns of nothing" bash -c '! grep -q Warning warned'
# A result that is reshaped is computed nowhere.
expect 0 '^slow +nothing' compile flat.onnx --integers -o flat --target x86-64-v2
# What a target does by itself is done by the reference, too.
if grep -q avx2 /proc/cpuinfo 2> /dev/null; then
    expect 0 ' ok$' verify product.onnx --against c --target x86-64-v3 $inputs --rtol 0 --atol 0
fi

# Layers that onnxruntime computes in floats: weights of 4 bits are compared as bytes, a 16-bit result half-way between two
# steps may be either of them. `bent` models have 9 more of 32 on one channel: steps that differ off ties.
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, TensorProto as T
def save(name, weights, kind, zero, layers, bent, top):
    rng = np.random.default_rng(3)
    scale = np.float32(0.1 / top)
    product = scale * np.float32(0.3)
    known = [h.make_tensor("s0", 1, [], [scale]), h.make_tensor("z", kind, [], [zero]),
             h.make_tensor("sw", 1, [16], np.full(16, 0.3))]
    nodes = []
    def step(name, out, s):
        nodes.append(h.make_node("QuantizeLinear", [name, s, "z"], [out + "_q"]))
        nodes.append(h.make_node("DequantizeLinear", [out + "_q", s, "z"], [out]))
    step("x", "d0", "s0")
    for i in range(layers):
        codes = rng.integers(-8, 8, (16, 16 if i else 8, 3, 3))
        known += [h.make_tensor(f"w{i}", weights, codes.shape, codes.flatten()),
                  h.make_tensor(f"b{i}", T.INT32, [16], [9 * bent] + [0] * 15),
                  h.make_tensor(f"sb{i}", 1, [16], np.full(16, product)),
                  h.make_tensor(f"s{i + 1}", 1, [], [product * 32])]
        nodes += [h.make_node("DequantizeLinear", [f"w{i}", "sw"], [f"dw{i}"], axis=0),
                  h.make_node("DequantizeLinear", [f"b{i}", f"sb{i}"], [f"db{i}"], axis=0),
                  h.make_node("Conv", [f"d{i}", f"dw{i}", f"db{i}"], [f"c{i}"], pads=[1, 1, 1, 1])]
        step(f"c{i}", "y" if i == layers - 1 else f"d{i + 1}", f"s{i + 1}")
        product = product * 32 * np.float32(0.3)
    info = lambda n, c: h.make_tensor_value_info(n, T.FLOAT, [1, c, 14, 14])
    graph = h.make_graph(nodes, "g", [info("x", 8)], [info("y", 16)], known)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), name + ".onnx")
for bent in (0, 1):
    end = "_bent" * bent
    save("nibbles" + end, T.INT4, T.UINT8, 128, 1, bent, 1)
    save("words" + end, T.INT8, T.INT16, 0, 1, bent, 256)
save("deep", T.INT8, T.INT16, 0, 3, 0, 256)
PY
with_seed="--against onnxruntime --seed 3 --rtol 0"
here="$with_seed --interpret --target generic"
expect 0 '^onnxruntime with session.x64quantprecision=1, weights of 4 bits as bytes' verify nibbles.onnx --integers $here
expect 0 ' max abs 0, .* ok$' verify nibbles.onnx --integers $here --atol 0
expect 0 '^y: [1-9][0-9]* of 3136 elements one step away' verify nibbles.onnx $here
expect 0 '^y: [1-9][0-9]* of 3136 elements one step away' verify words.onnx --integers $here
expect 0 '"ties": [1-9]' verify words.onnx --integers $here --json
expect 1 'hint: onnxruntime computes these integers in floats' verify deep.onnx --integers $here
for kind in nibbles words; do
    expect 0 '' compile ${kind}_bent.onnx --integers -o bent_$kind --target generic
    expect 1 '^y: .*WRONG$' verify bent_$kind --model $kind.onnx $with_seed
    expect 0 '' compile $kind.onnx --integers -o right_$kind --target generic
    expect 0 '^y: .*ok$' verify right_$kind --model $kind.onnx $with_seed
done

# 8-bit layers that its optimiser leaves in floats: a Relu before a zero point that is not the lowest number, and a result of
# i8 that is handed over. Its sums of floats may be beside the middle of two steps where the exact ones are there: those of
# integers below. `bent` models have another zero point in one operand, or a seventh of a step more in one channel.
"$python" - << 'PY' || exit 1
import numpy as np, onnx, onnxruntime as ort
from onnx import helper as h, numpy_helper as nh, TensorProto as T
rng = np.random.default_rng(4)
def constants(**values): return [nh.from_array(np.asarray(v[0], v[1]), n) for n, v in values.items()]
def pair(x, y, scale, zero, back=True):
    q = [h.make_node("QuantizeLinear", [x, scale, zero], [y + "_q" if back else y])]
    return q + [h.make_node("DequantizeLinear", [y + "_q", scale, zero], [y])] * back
def save(name, nodes, inputs, out, known):
    info = lambda n, d, t=T.FLOAT: h.make_tensor_value_info(n, t, d)
    graph = h.make_graph(nodes, "g", [info(n, d) for n, d in inputs.items()], [info("y", None, out)], known)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), name + ".onnx")
weights = rng.integers(-127, 128, (6, 6, 3, 3)).astype(np.int8)
for bent in (0, 1):
    end = "_bent" * bent
    sum_of = [h.make_node("Add", ["da", "db"], ["sum"]), h.make_node("Relu", ["sum"], ["r"])]
    save("halves" + end, pair("a", "da", "s", "z") + pair("b", "db", "t", "y0") + sum_of + pair("r", "y", "u", "z"),
         {"a": [40, 90], "b": [40, 90]}, T.FLOAT,
         constants(s=(0.03, "f4"), t=(0.05, "f4"), u=(0.06, "f4"), z=(0, "i1"), y0=(5, "i1")) if not bent else
         constants(s=(0.03, "f4"), t=(0.05, "f4"), u=(0.06, "f4"), z=(0, "i1"), y0=(127, "i1")))
    conv = [h.make_node("DequantizeLinear", ["w", "sw", "z"], ["dw"]), h.make_node("DequantizeLinear", ["bias", "sb", "zb"], ["db"]),
            h.make_node("Conv", ["da", "dw", "db"], ["c"], pads=[1] * 4)]
    save("bare" + end, pair("a", "da", "s", "z") + conv + pair("c", "y", "u", "z", False), {"a": [1, 6, 30, 30]}, T.INT8,
         constants(s=(0.03, "f4"), sw=(0.01, "f4"), sb=(np.float32(0.03) * np.float32(0.01), "f4"), u=(0.06, "f4"),
                   z=(0, "i1"), zb=(0, "i4"), w=(weights, "i1"), bias=([30 * bent] + [0] * 5, "i4")))
a, b = (rng.standard_normal((40, 90)).astype(np.float32) for _ in "ab")
np.save("ha.npy", a), np.save("hb.npy", b)
def codes(v, s, z): return np.clip(np.rint(v / np.float32(s)) + z, -128, 127).astype(int)
got = ort.InferenceSession("halves.onnx", providers=["CPUExecutionProvider"]).run(None, {"a": a, "b": b})[0]
halves = codes(a, 0.03, 0) * 3 + (codes(b, 0.05, 5) - 5) * 5 # of a sixth of a step: 3 is half-way
off = np.rint(got / np.float32(0.06)) != np.clip(np.rint(np.maximum(halves, 0) / 6), 0, 127)
assert off.any() and (halves[off] % 6 == 3).all(), "onnxruntime rounds these as exact sums are: this model tells nothing"
PY
halves_in="--input a=ha.npy --input b=hb.npy"
layers="--against onnxruntime --rtol 0 --seed 3"
expect 0 '^y: max abs 0, ' verify halves.onnx --integers $layers $halves_in --interpret --target generic
expect 0 '^y: .* ok$' verify bare.onnx --integers $layers --interpret --target generic
expect 0 '"ties": [1-9]' verify bare.onnx --integers $layers --interpret --target generic --json
for kind in halves bare; do
    more=$halves_in && [ $kind = bare ] && more=
    expect 0 '' compile ${kind}_bent.onnx --integers -o bent_$kind --target generic
    expect 1 '^y: .*WRONG$' verify bent_$kind --model $kind.onnx $layers $more
    expect 0 '' compile $kind.onnx --integers -o right_$kind --target generic
    expect 0 '^y: .*ok$' verify right_$kind --model $kind.onnx $layers $more
done

# Weights of 4 bits that become bytes are told of, with the reason; those that stay are not.
"$python" - << 'PY' || exit 1
import numpy as np, onnx
from onnx import helper as h, TensorProto as T
def save(name, kind, zero, channels):
    codes = np.random.default_rng(3).integers(0, 16, (channels, 8, 3, 3)) - (8 if kind == T.INT4 else 0)
    known = [h.make_tensor("s", 1, [], [0.02]), h.make_tensor("z", T.UINT8, [], [128]),
             h.make_tensor("zw", kind, *([[], [zero]] if isinstance(zero, int) else [[channels], zero])),
             h.make_tensor("sw", 1, *([[], [0.02]] if isinstance(zero, int) else [[channels], [0.02] * channels])), h.make_tensor("w", kind, codes.shape, codes.flatten())]
    nodes = [h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             h.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=0), h.make_node("Conv", ["d", "dw"], ["c"], pads=[1] * 4),
             h.make_node("QuantizeLinear", ["c", "s", "z"], ["p"]), h.make_node("DequantizeLinear", ["p", "s", "z"], ["y"])]
    info = lambda n, c: h.make_tensor_value_info(n, T.FLOAT, [1, c, 6, 6])
    graph = h.make_graph(nodes, "g", [info("x", 8)], [info("y", channels)], known)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), name + ".onnx")
save("int4", T.INT4, 0, 16), save("eight", T.UINT4, 8, 16), save("seven", T.UINT4, 7, 16), save("odd", T.INT4, 0, 15)
save("mixed", T.UINT4, [3, 9] * 8, 16), save("far", T.UINT8, 200, 16)
PY
# Sums that stay plain loops on a microcontroller are counted, and told of with the reason.
expect 0 '^slow +sums of quantized numbers in plain loops: 1 .weights minus their zero points' compile far.onnx -o far \
    --target cortex-m4 --port baremetal
check 'plain loops are remarked' grep -q '"its sums are plain loops: weights minus their zero points' far/report.json
for target in cortex-m4 cortex-m55; do
    for model in int4 eight; do
        expect 0 '^package' compile $model.onnx -o bits_$model --target $target --port baremetal
        grep -q 'become bytes' stdout bits_$model/report.json && bad "$model, $target: its weights do not become bytes"
    done
done
become='^4 bits +weights become bytes in 1 operators'
bytes() { # MODEL TARGET REASON
    expect 0 "$become \\(.*$3" compile $1.onnx -o bits_$1 --target $2 --port baremetal --integers
    check "$1, $2: the report has it" grep -q "its weights of 4 bits become bytes: .*$3" bits_$1/report.json
}
for target in cortex-m0plus cortex-m4 cortex-m55; do
    bytes seven $target 'minus their zero point'
    bytes odd $target 'odd number of output channels'
done
bytes mixed x86-64-v3 'zero points, which differ'
for model in int4 seven odd; do
    expect 0 '^package' compile $model.onnx -o host_$model --target x86-64-v3
    grep -q 'become bytes' stdout host_$model/report.json && bad "$model: on a host its weights do not become bytes"
    expect 0 '^y: max abs 0, .* ok$' verify $model.onnx --target x86-64-v3 --against interpreter
done
bytes eight generic 'kernels of this target multiply bytes'

# --- models of TensorFlow Lite: the runtime that they stand for, which another format's models do not
micro=$top/test/golden/tflite/numbers.tflite
expect 2 'TensorFlow Lite Micro cannot run an ONNX model' verify int4.onnx --against tflm
expect 2 'give --against tflm, litert or interpreter' verify "$micro" --against onnxruntime
expect 2 'give --against litert or lathe' bench "$micro" --against onnxruntime
if "$LATHE_PYTHON" -c 'import tflite_micro' 2> "$work/log"; then # frames that do not count yet
    expect 1 'until SignalFramer and SignalStacker say .* at a CIRCULAR_BUFFER that waits' \
        verify "$top/test/golden/tflite/states.tflite" --against tflm
fi
expect 0 '' verify "$top/demo/digits_int8.tflite" --against interpreter --requant exact
check "no option that was not given" grep -q '^warning: --requant exact has no effect' stderr
if "$LATHE_PYTHON" -c 'import tflite_micro' 2> "$work/log"; then # not the interpreter, which rounds in the same way
    expect 1 'hint: --requant fast rounds otherwise than TensorFlow Lite Micro; leave it out$' \
        verify "$top/demo/digits_int8.tflite" --against tflm --requant fast --seeds 12
fi
expect 2 'TensorFlow Lite Micro has no results of single operators' verify "$micro" --against tflm --per-node
expect 0 '^package' compile "$micro" -o micro --target cortex-m4 --port baremetal
expect 0 '' compile "$micro" --emit module -o micro.so
check "scales are macros" grep -q '^#define TVMGEN_DEFAULT_T0_SCALE ((float)0.5)' micro/include/tvmgen_default.h
check "zero points are macros" grep -q '^#define TVMGEN_DEFAULT_T0_ZERO_POINT (-3)' micro/include/tvmgen_default.h
if "$python" -c 'import tflite_micro' 2> log; then
    export LATHE_PYTHON=$python
    expect 0 ': max abs 0, .* ok$' verify "$micro" --against tflm --seed 3
    expect 0 '4 samples, max abs 0, .* ok$' verify "$micro" --against tflm --seeds 4 --interpret
    expect 0 ': max abs 0, .* ok$' verify micro.so --model "$micro" --against tflm
    "$python" -c 'import sys; d = open(sys.argv[1], "rb").read()
open("lines.tflite", "wb").write(d.replace(b"\2\0\0\0t0\0", b"\2\0\0\0\n0\0").replace(b"\2\0\0\0t1\0", b"\2\0\0\0t\n\0"))' \
        "$micro"
    expect 0 ': max abs 0, .* ok$' verify lines.tflite --against tflm
else
    echo "(no TensorFlow Lite Micro: left out)"
fi
expect 2 'LiteRT cannot run an ONNX model' verify int4.onnx --against litert
expect 2 'LiteRT cannot run an ONNX model' bench int4.onnx --against litert
expect 2 'TensorFlow Lite Micro.s Python package has only its reference kernels' bench "$micro" --against tflm
if "$python" -c 'import ai_edge_litert' 2> log; then
    expect 0 '4 samples, max abs 0, .* ok$' verify "$micro" --against litert --seeds 4 --interpret
    expect 0 '^level: 2 samples, max abs 0, .* ok$' verify "$top/test/golden/tflite/signatures.tflite" \
        --signature loudness --against litert --seeds 2 --interpret
    expect 0 '^litert +median .* \(1 rounds\), with its defaults$' bench "$micro" --against litert --repeat 1 --workers 1
else
    echo "(no LiteRT: left out)"
fi

tiny=${LATHE_ZOO:-$top/../shared}/models/mlperf-tiny
if [ -f "$tiny/vww_qdq.onnx" ] && [ -f "$tiny/ad_qdq.onnx" ]; then
    for seed in 2 4 11; do
        expect 0 ' ok$' verify "$tiny/vww_qdq.onnx" --against onnxruntime --seed $seed --interpret
        expect 0 ' ok$' verify "$tiny/vww_qdq.onnx" --integers --against onnxruntime --seed $seed
        expect 0 ' ok$' verify "$tiny/ad_qdq.onnx" --integers --against onnxruntime --seed $seed --rtol 0 --atol 0
    done
    "$python" -c "
import numpy as np, onnxruntime as ort
i = ort.InferenceSession('$tiny/ad_qdq.onnx', providers=['CPUExecutionProvider']).get_inputs()[0]
np.save('ad.npy', np.random.default_rng(3).standard_normal([1, 640]).astype(np.float32))
print(i.name)" > name || exit 1
    expect 0 ' ok$' verify "$tiny/ad_qdq.onnx" --against onnxruntime --input "$(cat name)=ad.npy" --interpret
else
    echo "(no MLPerf Tiny models beside the checkout: left out)"
fi
finish
