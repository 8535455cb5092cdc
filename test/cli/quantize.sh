#!/usr/bin/env bash
# Only in `make test-long`.
# lathe quantize: what it writes runs in onnxruntime and in integers here, what it says is what others count, and what it
# does not take is told.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
"$python" -c 'import numpy, onnx, onnxruntime, sklearn' 2> "$work/log" || { echo "no Python with onnxruntime"; exit 77; }
export LATHE_PYTHON=$python
cd "$work" || exit 3
model=$top/demo/residual.onnx

"$python" - "$top" << 'PY' || exit 1
import os, sys
import numpy as np, onnx
from onnx import helper as h, numpy_helper as nh, TensorProto as T
sys.path.insert(0, os.path.join(sys.argv[1], "demo"))
import train
pictures, test, _, labels = train.split()
np.save("train.npy", pictures[:200]); np.save("test.npy", test); np.save("labels.npy", labels.astype(np.int64))
np.save("few.npy", labels[:5].astype(np.int32)); np.save("wrong.npy", np.zeros((3, 1, 8, 9), np.float32))
np.save("strange.npy", np.where(np.arange(200) < 4, [10, -1] * 100, 0))
np.save("nan.npy", np.concatenate([pictures[:1], np.full((1, 1, 8, 8), np.nan, np.float32)]))
np.save("equal.npy", pictures[[0, 0]]); np.save("zeros.npy", np.zeros((1, 1, 8, 8), np.float32)); np.save("real.npy", labels.astype(np.float32))
os.makedirs("sets/test_data_set_0"); os.makedirs("empty"); os.makedirs("files")
with open("sets/test_data_set_0/input_0.pb", "wb") as f: f.write(nh.from_array(pictures[:1]).SerializeToString())
np.save("files/a.npy", pictures[:3]); np.save("files/b.npy", pictures[3:5])

# Batch norm, weights in a file beside the model, fields that no reader of ours knows, a branch that stays in float.
rng = np.random.default_rng(1)
a = lambda *s: rng.standard_normal(s).astype(np.float32)
c = dict(w=a(5, 3, 3, 3), b=a(5), g=a(5), beta=a(5), mean=a(5), var=np.abs(a(5)) + 0.5, v=a(7, 5, 1, 1), m=a(7, 4), k=a(4))
nodes = [h.make_node("Conv", ["x", "w", "b"], ["c"], name="first", pads=[1, 1, 1, 1]),
         h.make_node("BatchNormalization", ["c", "g", "beta", "mean", "var"], ["n"]),
         h.make_node("Clip", ["n", "lo", "hi"], ["r"]), h.make_node("Conv", ["r", "v"], ["d"], name="second"),
         h.make_node("Sigmoid", ["d"], ["s"]), h.make_node("Mul", ["d", "s"], ["e"]),
         h.make_node("AveragePool", ["e"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
         h.make_node("Concat", ["p", "p"], ["q"], axis=1), h.make_node("Slice", ["q", "from", "to", "axis"], ["t"]),
         h.make_node("GlobalAveragePool", ["t"], ["u"]), h.make_node("Flatten", ["u"], ["f"]),
         h.make_node("MatMul", ["f", "m"], ["l"]), h.make_node("Add", ["l", "k"], ["y"])]
inits = [nh.from_array(v, k) for k, v in c.items()] + [nh.from_array(np.float32(0), "lo"), nh.from_array(np.float32(6), "hi")]
inits += [nh.from_array(np.array([n], np.int64), k) for k, n in (("from", 0), ("to", 7), ("axis", 1))]
info = h.make_tensor_value_info
graph = h.make_graph(nodes, "g", [info("x", T.FLOAT, [1, 3, 8, 8])], [info("y", T.FLOAT, [1, 4])], inits, doc_string="kept")
m = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8, producer_version="4.2", doc_string="kept, too")
h.set_model_props(m, {"author": "somebody"})
onnx.save(m, "norm.onnx", save_as_external_data=True, location="norm.bin", size_threshold=0)
np.save("x.npy", a(16, 3, 8, 8))
two = h.make_graph([h.make_node("Add", ["x", "y"], ["s"]), h.make_node("Conv", ["s", "w"], ["z"])], "two",
    [info(n, T.FLOAT, ["N", 3, 8, 8]) for n in "xy"], [info("z", T.FLOAT, ["N", 5, 6, 6])], [nh.from_array(c["w"], "w")])
onnx.save(h.make_model(two, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "two.onnx")
# A mean as PyTorch writes it, and the two of a layer norm, whose small numbers have no room in 8 bits.
pool = h.make_node("ReduceMean", ["c"], ["p"], name="pool", axes=[-1, -2], keepdims=0)
onnx.save(h.make_model(h.make_graph([h.make_node("Conv", ["x", "w"], ["c"]), pool, h.make_node("MatMul", ["p", "m"], ["y"])],
    "mean", [info("x", T.FLOAT, [1, 3, 8, 8])], [info("y", T.FLOAT, [1, 4])],
    [nh.from_array(c["w"], "w"), nh.from_array(a(5, 4), "m")]), opset_imports=[h.make_opsetid("", 13)], ir_version=8), "mean.onnx")
mean = lambda x, y: h.make_node("ReduceMean", [x], [y], axes=[-1])
layer = [h.make_node("MatMul", ["x", "h"], ["t"]), mean("t", "mu"), h.make_node("Sub", ["t", "mu"], ["d"]),
         h.make_node("Mul", ["d", "d"], ["s"]), mean("s", "v"), h.make_node("Sqrt", ["v"], ["q"]),
         h.make_node("Div", ["d", "q"], ["n"]), h.make_node("MatMul", ["n", "h"], ["y"])]
onnx.save(h.make_model(h.make_graph(layer, "norm", [info("x", T.FLOAT, [1, 5, 6])], [info("y", T.FLOAT, [1, 5, 6])],
    [nh.from_array(a(6, 6), "h")]), opset_imports=[h.make_opsetid("", 13)], ir_version=8), "layer.onnx")
np.save("tokens.npy", a(8, 5, 6))
six = a(6, 3, 8, 8)
for name, arrays in dict(pairs=dict(y=six, x=six), lacking=dict(x=six), more=dict(x=six, y=six, z=six),
                         uneven=dict(x=six, y=six[1:]), huge=dict(x=six * 0 + 3e38, y=six * 0 + 3e38)).items():
    np.savez(f"{name}.npz", **arrays)
np.save("front.npy", pictures[:5, None]) # an axis in front counts
os.makedirs("pairs/test_data_set_7")
for i in range(2):
    with open(f"pairs/test_data_set_7/input_{i}.pb", "wb") as f: f.write(nh.from_array(a(1, 3, 8, 8)).SerializeToString())
for n, g, name in ((12, graph, "old.onnx"), (9, two, "ancient.onnx")):
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", n)], ir_version=7), name)
# A channel of zeros with a bias, a bias too large for 32 bits of its scale, one of [1, N]; weights that are no number.
x, w = a(8, 4), a(6, 4)
w[1] = 0; w[2] *= 1e-9
bias = np.array([[1, 2, 300, 0, -5, 6]], np.float32)
gemm = lambda last, path: onnx.save(h.make_model(h.make_graph(
    [h.make_node("Gemm", ["x", "w", "b"], ["g"], transB=1), h.make_node("Relu", ["g"], ["r"]),
     h.make_node("MatMul", ["r", "v"], ["y"])], "gemm", [info("x", T.FLOAT, [1, 4])], [info("y", T.FLOAT, [1, 2])],
    [nh.from_array(w, "w"), nh.from_array(bias, "b"), nh.from_array(np.full((6, 2), last, np.float32), "v")]),
    opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
gemm(1, "gemm.onnx"); gemm(np.nan, "number.onnx")
np.save("rows.npy", x)
# Sums of integers beside those of floats; a body that reads what is in front of a batch norm; tensors of bodies and of
# Constant nodes in a file; extents that values decide; an answer that is never the same.
def save(path, nodes, ins, outs, inits, **how):
    m = h.make_model(h.make_graph(nodes, "g", ins, outs, inits), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.save(m, path, **how)
save("ints.onnx", [h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["t", "i"], ["row"], axis=0),
                   h.make_node("Add", ["i", "one"], ["j"]), h.make_node("Add", ["j", "i"], ["k"]),
                   h.make_node("Cast", ["k"], ["f"], to=1), h.make_node("Add", ["f", "x"], ["z"]),
                   h.make_node("MatMul", ["z", "w"], ["m"]), h.make_node("Add", ["m", "row"], ["y"])],
     [info("x", T.FLOAT, [1, 4]), info("i", T.INT64, [1])], [info("y", T.FLOAT, [1, 4])],
     [nh.from_array(np.eye(4, dtype=np.float32), "w"), nh.from_array(np.array([1], np.int64), "one"),
      nh.from_array(a(5, 4), "t")])
os.makedirs("ints/test_data_set_0")
for i, t in enumerate((a(1, 4), np.array([3], np.int64))):
    with open(f"ints/test_data_set_0/input_{i}.pb", "wb") as f: f.write(nh.from_array(t).SerializeToString())
save("double.onnx", [h.make_node("Add", ["x", "x"], ["y"]), h.make_node("Neg", ["y"], ["z"])],
     [info("x", T.DOUBLE, [1, 4])], [info("z", T.DOUBLE, [1, 4])], [])
branch = lambda op, *more: h.make_graph([h.make_node(op, ["c", *more], ["r"])], op, [], [info("r", T.FLOAT, [1, 5, 6, 6])],
    [nh.from_array(a(1, 5, 1, 1), more[0])] if more else [])
body = [h.make_node("Conv", ["x", "w"], ["c"]), h.make_node("BatchNormalization", ["c", "g", "beta", "mean", "var"], ["n"]),
        h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), h.make_node("Constant", [], ["limit"],
        value=nh.from_array(np.float32(0), "limit")), h.make_node("Greater", ["sum", "limit"], ["if"]),
        h.make_node("If", ["if"], ["b"], then_branch=branch("Abs"), else_branch=branch("Mul", "inner")),
        h.make_node("Add", ["n", "b"], ["y"])]
save("body.onnx", body, [info("x", T.FLOAT, [1, 3, 8, 8])], [info("y", T.FLOAT, [1, 5, 6, 6])],
     [nh.from_array(c[k], k) for k in ("w", "g", "beta", "mean", "var")], save_as_external_data=True, location="body.bin",
     size_threshold=0, convert_attribute=True)
save("chosen.onnx", [h.make_node("MatMul", ["x", "w"], ["m"]), h.make_node("Greater", ["m", "zero"], ["p"]),
                     h.make_node("Compress", ["m", "pf"], ["z"]), h.make_node("Add", ["z", "z"], ["q"]),
                     h.make_node("Neg", ["q"], ["y"]), h.make_node("Reshape", ["p", "flat"], ["pf"])],
     [info("x", T.FLOAT, [1, 4])], [info("y", T.FLOAT, ["n"])],
     [nh.from_array((a(4, 64) * 1e-3).astype(np.float32), "w"), nh.from_array(np.float32(0), "zero"),
      nh.from_array(np.array([-1], np.int64), "flat")])
save("flips.onnx", [h.make_node("Gemm", ["x", "w", "b"], ["y"])], [info("x", T.FLOAT, [1, 1])], [info("y", T.FLOAT, [1, 2])],
     [nh.from_array(np.array([[1, 0]], np.float32), "w"), nh.from_array(np.array([0, 5], np.float32), "b")])
save("tiny.onnx", [h.make_node("Gemm", ["x", "w", "b"], ["g"]), h.make_node("Relu", ["g"], ["r"]),
                   h.make_node("MatMul", ["r", "v"], ["y"])], [info("x", T.FLOAT, [1, 4])], [info("y", T.FLOAT, [1, 3])],
     [nh.from_array(np.full((4, 5), 1e-42, np.float32), "w"), nh.from_array(np.full(5, 1e-41, np.float32), "b"),
      nh.from_array(np.array([[1e-42, 1, 0]] * 5, np.float32), "v")])
np.save("tiny.npy", np.linspace(-1e-41, 2e-41, 16, dtype=np.float32).reshape(4, 4))
save("qlinear.onnx", [h.make_node("QLinearMatMul", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"]),
                      h.make_node("DequantizeLinear", ["y", "s", "z"], ["d"]), h.make_node("Add", ["d", "d"], ["e"])],
     [info("x", T.UINT8, [1, 4])], [info("e", T.FLOAT, [1, 2])], [nh.from_array(np.float32(1), "s"),
     nh.from_array(np.uint8(0), "z"), nh.from_array(np.ones((4, 2), np.uint8), "w")])
np.save("ones.npy", np.ones((4, 1), np.float32)); np.save("tens.npy", np.full((4, 1), 10, np.float32))
PY

cat > check.py << 'PY'
import json, sys
import numpy as np, onnx, onnxruntime as ort
path, report, slack = sys.argv[1], json.load(open(sys.argv[2]))["result"], int(sys.argv[3])
onnx.checker.check_model(onnx.load(path), full_check=True)
o = ort.SessionOptions(); o.add_session_config_entry("session.x64quantprecision", "1"); o.log_severity_level = 3
s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
x, labels = np.load("test.npy"), np.load("labels.npy")
right = sum(int(s.run(None, {"image": x[i:i + 1]})[0].argmax() == labels[i]) for i in range(len(x)))
assert abs(right - report["right_quantized"]) <= slack, (right, report["right_quantized"])
assert report["samples"] == len(x) and report["quantized"] == report["nodes"] == 13
assert all(0 <= v["error"] < 0.2 for v in report["values"]), report["values"]
limit = float(sys.argv[4])
assert report["right_quantized"] >= limit * report["right_float"], (report["right_quantized"], report["right_float"])
PY

# --- both schemes, all methods: the accuracy that is told is that of the file
stated=$(sed 's/ .*//' "$top/demo/residual.txt")
for method in minmax percentile mse entropy; do
    expect 0 '' quantize "$model" --calibrate train.npy --data test.npy --labels labels.npy --method $method -o cpu.onnx --json
    cp stdout cpu.json
    check "cpu, $method" "$python" check.py cpu.onnx cpu.json 0 0.98
    expect 0 '' quantize "$model" --calibrate train.npy --data test.npy --labels labels.npy --method $method --for vta -o vta.onnx --json
    cp stdout vta.json # onnxruntime rounds halves to the even number
    check "vta, $method" "$python" check.py vta.onnx vta.json 3 0.98
done
check "the accuracy that is stated" grep -q "\"right_float\": $stated" cpu.json
expect 0 "^float: .*$stated of 360 right" quantize "$model" --calibrate train.npy --data test.npy --labels labels.npy -o text.onnx
expect 0 '' quantize "$model" --data train.npy -o quiet.onnx -q
check 'quiet says nothing, and writes all the same' test ! -s stdout -a -s quiet.onnx
expect 0 '^(value|weights of) ' quantize "$model" --data train.npy -o text.onnx
expect 0 'all_equal|ok$' verify cpu.onnx --integers --against onnxruntime --seed 3

# --- all of it in integers, half up without being asked
expect 1 'hint: the model rounds halves up, and onnxruntime' verify vta.onnx --against onnxruntime --rtol 0 --atol 0
expect 0 '' compile vta.onnx -q -o package --report report.json
check "nothing of a model for VTA stays in float" sh -c '! grep -q use-integers report.json'
check "shifts alone" sh -c '! grep -E "rint|[^_a-z](float|double)[^_a-z]" package/src/*lib*.c | grep -i requantize'
expect 0 '' inspect cpu.onnx --target x86-64-v2
check "float, and the way out" grep -q 'stayed in float: 4 nn.conv2d (conv1, conv2, conv3, conv4): on this target,.*--integers' stdout
for how in --integers "--target x86-64-v3" "--target aarch64-dotprod" "--target rv64gcv_zvl256b"; do
    # shellcheck disable=SC2086
    expect 0 '' inspect cpu.onnx $how
    check "integers: $how" sh -c '! grep -q "stayed in float" stdout'
done

# --- what is left as it was, what goes
expect 0 '1 batch norms folded' quantize norm.onnx --data x.npy -o norm_q.onnx
check "names, documentation, metadata, no file beside it" "$python" -c '
import onnx
m = onnx.load("norm_q.onnx", load_external_data=False)
onnx.checker.check_model(m, full_check=True)
assert m.doc_string == "kept, too" and m.graph.doc_string == "kept" and m.producer_version == "4.2"
assert {p.key: p.value for p in m.metadata_props} == {"author": "somebody", "lathe.rounding": "nearest_even"}
assert not any(t.external_data for t in m.graph.initializer)
ops = [n.op_type for n in m.graph.node]
assert "BatchNormalization" not in ops and ops.count("QuantizeLinear") == 9, ops'
expect 0 '' quantize norm.onnx --data x.npy --skip second --skip first -o skipped.onnx
check "what is skipped stays as it is" "$python" -c '
import onnx
m = onnx.load("skipped.onnx")
convs = [n for n in m.graph.node if n.op_type == "Conv"]
assert convs[0].input[1].startswith("w_folded") and "quantized" not in convs[0].input[1], convs[0].input
assert convs[1].input[1] == "v", convs[1].input'
expect 0 '^quantized: .* 1 samples seen' quantize "$model" --calibrate sets -o sets.onnx
expect 0 '^quantized: .* 5 samples seen' quantize "$model" --calibrate files -o files.onnx
expect 0 '^quantized: .* 1 samples seen' quantize "$model" --calibrate sets/test_data_set_0 -o sets.onnx

expect 0 '^quantized: 2 of 2 nodes' quantize two.onnx --calibrate pairs --dim N=1 -o two_q.onnx
for how in cpu vta; do
    expect 0 '^quantized: 3 of 3 nodes' quantize mean.onnx --data x.npy --for $how -o mean_q.onnx
    [ $how = vta ] || expect 0 '^y: 4 samples, max abs 0, .*ok$' verify mean_q.onnx --against onnxruntime --seeds 4
done # the last one rounds halves up, as onnxruntime does not
expect 0 'qnn.global_avg_pool2d +pool' inspect mean_q.onnx --target cortex-m4
expect 0 '^quantized: 2 of 8 nodes' quantize layer.onnx --data tokens.npy -o layer_q.onnx
expect 0 '^quantized: 2 of 2 nodes, .* 6 samples seen' quantize two.onnx --data pairs.npz -o two_q.onnx
expect 0 '^quantized: 2 of 2 nodes, .* 1 samples seen' quantize two.onnx --calibrate pairs -o two_q.onnx
expect 0 'z: 6 samples, max abs .*ok$' verify two.onnx --data pairs.npz --against interpreter
expect 0 '^quantized: .* 5 samples seen' quantize "$model" --data front.npy -o front.onnx
check "an open extent stays open" "$python" -c '
import onnx; assert onnx.load("two_q.onnx").graph.input[1].type.tensor_type.shape.dim[0].dim_param == "N"'

# --- inputs and outputs with scales: a package that computes in integers from end to end
digits=$top/demo/digits.onnx
for how in cpu vta; do
    expect 0 '^probabilities +Softmax' quantize "$digits" --data train.npy --for $how --quantized-io -o ends.onnx
    [ $how = vta ] || expect 0 ' max abs 0, .*ok$' verify ends.onnx --against onnxruntime --seeds 4
    expect 0 '^output  [ui]8\[1, 10\]' inspect ends.onnx --quantized-io --target cortex-m4
    [ $how = vta ] || check "nothing is a float" sh -c '! grep -E " f32\[" stdout'
done # a softmax has no integer form with halves rounded up
expect 0 '^y +Add' quantize norm.onnx --data x.npy --quantized-io -o ends.onnx # it keeps its name
expect 0 '^output  u8\[1, 4\] +y' inspect ends.onnx --quantized-io
expect 0 '' quantize mean.onnx --data x.npy -o mean_q.onnx
expect_error 2 "the output 'y' stays f32, because its numbers have a scale for each channel" \
    compile mean_q.onnx --quantized-io -o out.onnx

# --- an older operator set: one scale for the weights of a layer
expect 0 'note: old.onnx: the model has operator set 12, .* one scale' quantize old.onnx --data x.npy -o old_cpu.onnx
expect 0 '^quantized' quantize old.onnx --data x.npy --for vta -o old_vta.onnx
check "nothing to say of scales that VTA does not have" sh -c '! grep -q "operator set" stderr'
for scheme in cpu vta; do
    check "operator set 12, $scheme" "$python" -c '
import onnx, sys
from onnx import numpy_helper as nh
m = onnx.load(sys.argv[1])
onnx.checker.check_model(m, full_check=True)
assert [(o.domain, o.version) for o in m.opset_import] == [("", 12)], m.opset_import
scales = {i.name: nh.to_array(i) for i in m.graph.initializer if i.name.endswith("_scale")}
assert len(scales) > 6 and all(s.ndim == 0 for s in scales.values()), scales
assert not any(n.attribute for n in m.graph.node if n.op_type == "DequantizeLinear")' old_$scheme.onnx
done
expect 0 'ok$' verify old_cpu.onnx --integers --against onnxruntime --seed 3 --atol 0.05

cat > bias.py << 'PY'
import sys, numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper as nh
m = onnx.load(sys.argv[1]); onnx.checker.check_model(m, full_check=True)
t = {i.name: nh.to_array(i) for i in m.graph.initializer}
made = {n.output[0]: n for n in m.graph.node}
gemm = next(n for n in m.graph.node if n.op_type == "Gemm")
numbers, scale = (t[i] for i in made[gemm.input[2]].input[:2])
assert numbers.shape == (6,) and np.allclose(numbers * scale.astype(float), [1, 2, 300, 0, -5, 6], rtol=1e-6, atol=1e-2), numbers * scale
ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {"x": np.load("rows.npy")[:1]})
PY
for how in cpu vta; do
    expect 0 '^quantized: 3 of 3 nodes' quantize gemm.onnx --data rows.npy --for $how -o gemm_q.onnx
    check "biases of [1, N], of channels of zeros, and large ones, $how" "$python" bias.py gemm_q.onnx
done
cat > tiny.py << 'PY'
import sys, numpy as np, onnx
from onnx import numpy_helper as nh
m = onnx.load(sys.argv[1])
t = {i.name: nh.to_array(i) for i in m.graph.initializer}
scales = [t[n.input[1]] for n in m.graph.node if n.op_type.endswith("QuantizeLinear") or n.op_type.endswith("DequantizeLinear")]
least = np.finfo(np.float32).tiny
assert len(scales) >= 6 and all((s >= least).all() and np.isfinite(s).all() for s in scales), scales
PY
for how in cpu vta; do
    expect 0 '^quantized: 3 of 3 nodes' quantize tiny.onnx --data tiny.npy --for $how -o tiny_q.onnx
    check "scales of the least numbers are normal ones, products of them, too, $how" "$python" tiny.py tiny_q.onnx
done
expect 0 '^quantized: 2 of 3 nodes' quantize number.onnx --data rows.npy -o out_number.onnx # its weights are none

# --- sums of other types stay, bodies keep what they read, the file is whole
expect 0 '^quantized: 3 of 8 nodes' quantize ints.onnx --calibrate ints -o ints_q.onnx
check "integers are not quantised" "$python" -c '
import onnx
m = onnx.load("ints_q.onnx"); onnx.checker.check_model(m, full_check=True)
assert next(list(n.input) for n in m.graph.node if n.output[0] == "k") == ["j", "i"], m.graph.node'
expect_error 1 "nothing in the model can be quantized: 'x' is f64, and only f32 is quantized" \
    quantize double.onnx --data rows.npy -o out.onnx
expect 0 '0 batch norms folded' quantize body.onnx --data x.npy -o sub_body.onnx
mkdir elsewhere && mv sub_body.onnx elsewhere/
check "a body reads what it read, and the file is whole" "$python" -c '
import numpy as np, onnx, onnxruntime as ort
m = onnx.load("elsewhere/sub_body.onnx", load_external_data=False); onnx.checker.check_model(m, full_check=True)
x = np.load("x.npy")
run = lambda p: ort.InferenceSession(p, providers=["CPUExecutionProvider"])
a, b = run("body.onnx"), run("elsewhere/sub_body.onnx")
for i in range(4):
    y, z = (s.run(None, {"x": x[i:i + 1]})[0] for s in (a, b))
    assert np.abs(y - z).max() < 0.05 * np.abs(y).max(), np.abs(y - z).max()'
expect 0 "^other extents: 'z' in [1-9][0-9]* of 8 calls, which its error leaves out" \
    quantize chosen.onnx --data rows.npy -o chosen_q.onnx
expect 0 '"other_extents": [1-9]' quantize chosen.onnx --data rows.npy -o chosen_q.onnx --json
expect 0 '^the same answer for 0 of 4' quantize flips.onnx --calibrate ones.npy --data tens.npy -o flips_q.onnx
expect 0 '^quantized' quantize chosen.onnx --data rows.npy -o chosen_q.onnx
check "no answer where there are no classes" sh -c '! grep -q "same answer" stdout'

# --- what it does not take
expect_error 1 'the model has the inputs .*, and .x.npy. has one array' quantize two.onnx --data x.npy --dim N=1 -o out.onnx
expect_error 1 "'lacking.npz' has no array for input 'y'; it has x" quantize two.onnx --data lacking.npz --dim N=1 -o out.onnx
expect_error 1 "'more.npz': the model has no input 'z'; it has x, y" quantize two.onnx --data more.npz --dim N=1 -o out.onnx
expect_error 1 "'uneven.npz' has 6 samples for input 'x', and 5 for 'y'" \
    quantize two.onnx --data uneven.npz --dim N=1 -o out.onnx
expect_error 2 'quantize needs data' quantize "$model" -o out.onnx
expect_error 2 'quantize needs -o' quantize "$model" --data train.npy
expect_error 2 -- '--labels needs --data' quantize "$model" --calibrate train.npy --labels labels.npy -o out.onnx
expect_error 2 "the model has no node 'nobody'" quantize "$model" --data train.npy --skip nobody -o out.onnx
expect_error 2 'is unknown|takes' quantize "$model" --data train.npy --method magic -o out.onnx
expect_error 2 'above 50' quantize "$model" --data train.npy --percentile 5 -o out.onnx
expect_error 1 'there is no file' quantize "$model" --data nothing.npy -o out.onnx
expect_error 1 'neither .npy files nor folders' quantize "$model" --data empty -o out.onnx
expect_error 1 "has the shape \[3, 1, 8, 9\]; input 'image' is \[1, 1, 8, 8\]" quantize "$model" --data wrong.npy -o out.onnx
expect_error 1 "'nan.npy', sample 1: input 'image' has 64 infinite numbers or NaN" quantize "$model" --data nan.npy -o out.onnx
expect_error 1 "on these samples, value 's' of the float model has .* infinite or NaN" \
    quantize two.onnx --data huge.npz --dim N=1 -o out.onnx
expect 0 "warning: 'equal.npy': all samples are equal, so the ranges" quantize "$model" --data equal.npy -o equal.onnx
expect 0 "warning: 'zeros.npy': all samples are zero, so the ranges" quantize "$model" --data zeros.npy -o zeros.onnx
expect 0 "warning: 'equal.npy': all samples are equal, so the comparison" verify "$model" --data equal.npy --against interpreter
expect_error 1 'fewer than samples' quantize "$model" --data test.npy --labels few.npy -o out.onnx
expect_error 1 'labels are integers' quantize "$model" --data test.npy --labels real.npy -o out.onnx
expect_error 1 'quantized already: it has a QuantizeLinear' quantize cpu.onnx --data train.npy -o out.onnx
expect_error 1 'quantized already: it has a QLinearMatMul' quantize qlinear.onnx --data rows.npy -o out.onnx
expect_error 1 'operator set 9; QuantizeLinear needs 10' quantize ancient.onnx --calibrate pairs --dim N=1 -o out.onnx
expect_error 2 'percentile is for --method percentile' quantize "$model" --data train.npy --percentile 99 -o out.onnx
expect_error 2 "there is no folder 'no/where'" quantize "$model" --data train.npy -o no/where/out.onnx
check "no folder is made" test ! -e no
expect 0 'warning: --labels: 4 of 200 are outside of the model.s classes, 0 to 9' \
    quantize "$model" --data train.npy --labels strange.npy -o strange.onnx
cp "$model" same.onnx
expect_error 2 'same.onnx' quantize same.onnx --data nan.npy -o same.onnx # before the work, which would fail
check "the input is as it was" cmp -s "$model" same.onnx
[ ! -e out.onnx ] && good || bad "a file was left behind"
finish
