#!/usr/bin/env bash
# --quantized-io: the same numbers in and out as the model has inside, scales and zero points told.
# Not in `make check`: it builds packages and runs them.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
cat > m.graph << 'G'
func @main(%x: f32[1, 2, 4, 4]) {
  %s = constant f32[] dense [0.5]
  %z = constant i8[] dense [-3]
  %t = constant f32[] dense [0.25]
  %w = constant i8[2, 2, 1, 1] dense [1, 2, -1, 3]
  %ws = constant f32[] dense [0.5]
  %q = qnn.quantize(%x, %s, %z)
  %d = qnn.dequantize(%q, %s, %z)
  %dw = qnn.dequantize(%w, %ws)
  %c = nn.conv2d(%d, %dw)
  %qc = qnn.quantize(%c, %t, %z)
  %y = qnn.dequantize(%qc, %t, %z)
  return %y
}
G
python3 - << 'P' || exit 77
import struct
n = [(7 * i) % 23 - 11 for i in range(32)]
open("x.i8", "wb").write(struct.pack("32b", *n))
open("x.f32", "wb").write(struct.pack("32f", *[0.5 * (i + 3) for i in n]))
P
expect 0 '' run m.graph --integers --input x=x.f32 --json
"$lathe" run m.graph --integers --input x=x.f32 --json > float.json
"$lathe" run m.graph --quantized-io --input x=x.i8 --json > quantised.json
check "the numbers stand for the values" python3 -c '
import json
f, q = (json.load(open(n))["result"]["outputs"][0] for n in ("float.json", "quantised.json"))
assert q["dtype"] == "i8" and len(set(q["values"])) > 5, q
assert f["values"] == [0.25 * (v + 3) for v in q["values"]]'
expect 0 '' compile m.graph --quantized-io -o p
check "the header tells them" grep -q 'define TVMGEN_DEFAULT_Y_SCALE ((float)0.25)' p/include/tvmgen_default.h
check "and the report" grep -q '"zero_point": -3' p/report.json
check "the package builds" make -s -C p lib CFLAGS=-O0
for other in interpreter c; do
    expect 0 '^y: max abs 0,.*: ok$' verify m.graph --quantized-io --against $other
done
# onnxruntime has floats in and out, which stand for these numbers
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
if "$python" -c 'import numpy, onnx, onnxruntime' 2> log; then
    export LATHE_PYTHON=$python
    "$python" - << 'P'
import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh, save
rng = np.random.default_rng(0)
a = lambda n, v: nh.from_array(np.asarray(v), n)
g = h.make_graph(
    [h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
     h.make_node("DequantizeLinear", ["w", "t"], ["v"]), h.make_node("Conv", ["d", "v"], ["c"]),
     h.make_node("QuantizeLinear", ["c", "o", "n"], ["p"]), h.make_node("DequantizeLinear", ["p", "o", "n"], ["y"])], "g",
    [h.make_tensor_value_info("x", T.FLOAT, [1, 4, 9, 9])], [h.make_tensor_value_info("y", T.FLOAT, [1, 8, 7, 7])],
    [a("s", np.float32(0.043)), a("z", np.uint8(131)), a("t", np.float32(0.011)), a("o", np.float32(0.07)), a("n", np.uint8(120)),
     a("w", rng.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8))])
save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "m.onnx")
P
    expect 0 '^y: max abs 0,.*: ok$' verify m.onnx --quantized-io --against onnxruntime
    expect 0 '^y: u8\[1, 8, 7, 7\]' run m.onnx --quantized-io
fi
finish
