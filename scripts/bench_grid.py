#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each shape of the grid of test/py/grid.py against onnxruntime, in turns: `make bench ARGS=--grid`, or

    bench_grid.py [--lathe FILE] [--filter GLOB] [--target T] [--workers N] [--repeat N]

A line for each shape: its time, onnxruntime's, and the ratio, onnxruntime's time over Lathe's; then the geometric mean
and the ten worst, and the worst of those that run longer than 20 microseconds, where the clock and the call say little.
It takes half an hour; the verdict is the reader's. Shapes that onnxruntime has no operator or no type for are left out.
"""
import argparse
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "test", "py"))
import grid  # noqa: E402

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "i64": np.int64, "i8": np.int8}
SHORT = 0.02  # milliseconds
LONGEST = 180  # seconds for a shape, against hangs
PLAIN = {"add": "Add", "multiply": "Mul", "nn.relu": "Relu", "exp": "Exp", "gelu": "Gelu", "sigmoid": "Sigmoid",
         "sqrt": "Sqrt"}
WITH_AXIS = {"nn.softmax": "Softmax", "nn.log_softmax": "LogSoftmax", "take": "Gather", "concatenate": "Concat"}
REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax"}
WINDOWS = {"nn.max_pool": "MaxPool", "nn.avg_pool": "AveragePool", "nn.conv": "Conv"}
LINE = re.compile(r"(%\S+?)(?:, %\S+)* = (\S+?)\((.*?)\)(?: \{(.*)\})?$")
CONSTANT = re.compile(r"(%\S+) = constant (\w+)\[(.*?)\] (\w+) (.*)$")


class Model:
    """One result of a group as a model of ONNX."""

    def __init__(self, group):
        self.types = dict(re.match(r"(%p\d+): (.*)", i).groups() for i in group.inputs)
        self.lines, self.nodes, self.constants, self.inputs, self.done = {}, [], [], {}, set()
        for line in group.lines:
            self.lines[re.match(r"%\w+", line)[0]] = line

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def value(self, name):
        """Adds what makes a value; false where ONNX has nothing for it."""
        if name in self.done:
            return True
        self.done.add(name)
        if name in self.types:
            dtype, dims = re.match(r"(\w+)\[(.*)\]", self.types[name]).groups()
            self.inputs[name] = (TYPES[dtype], [int(d) for d in dims.split(",") if d.strip()])
            return True
        fixed = CONSTANT.match(self.lines[name])
        return self.fixed(*fixed.groups()) if fixed else self.operator(name, *LINE.match(self.lines[name]).groups()[1:])

    def fixed(self, name, dtype, dims, form, text):
        dims = [int(d) for d in dims.split(",") if d.strip()]
        if form == "file":
            data = np.random.default_rng(0).standard_normal(dims).astype(TYPES[dtype]) * TYPES[dtype](0.1)
        else:
            data = np.array(json.loads(text), TYPES[dtype]).reshape(dims)
        self.constant(name, data)
        return True

    def operator(self, name, kind, operands, attributes):
        inputs = [i.strip() for i in operands.split(",")]
        a = {k: json.loads(v) for k, v in re.findall(r"(\w+) = (\[.*?\]|-?[\d.]+)", attributes or "")}
        if not all(self.value(i) for i in inputs):
            return False
        window = kind[:-2] if kind[-2:] in ("1d", "2d", "3d") else kind
        if kind in PLAIN:
            self.node(PLAIN[kind], inputs, name)
        elif kind in WITH_AXIS:
            self.node(WITH_AXIS[kind], inputs, name, axis=a.get("axis", -1))
        elif kind in REDUCTIONS:
            axes = self.constant(name + "_axes", np.array(a["axes"], np.int64))
            self.node(REDUCTIONS[kind], [*inputs, axes], name, keepdims=0)
        elif window in WINDOWS:
            attrs = {k: a[k] for k in ("strides", "pads", "dilations") if k in a}
            attrs |= {"group": a["groups"]} if "groups" in a else {}
            attrs |= {"kernel_shape": a["pool_size"]} if "pool_size" in a else {}
            self.node(WINDOWS[window], inputs, name, **attrs)
        elif kind == "argmax":
            self.node("ArgMax", inputs, name, axis=a["axis"], keepdims=0)
        elif kind == "transpose":
            self.node("Transpose", inputs, name, perm=a["perm"])
        elif kind == "nn.layer_norm":
            self.node("LayerNormalization", inputs, name)
        elif kind == "nn.matmul" and a.get("transpose_b") and any(inputs[1] == c.name for c in self.constants):
            self.node("Gemm", inputs, name, transB=1)
        elif kind == "nn.matmul" and not a:
            self.node("MatMul", inputs, name)
        elif kind == "lstm":
            self.node("LSTM", inputs, name, hidden_size=a["hidden_size"])
        else:
            return False
        return True

    def write(self, result, path):
        if not self.value(result):
            return False
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), d)
               for n, (t, d) in self.inputs.items()]
        out = helper.make_tensor_value_info(result, TensorProto.UNDEFINED, None)
        model = helper.make_model(helper.make_graph(self.nodes, "shape", ins, [out], self.constants),
                                  opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        inferred = {v.name: v for v in model.graph.value_info}
        if result in inferred:
            model.graph.output[0].CopyFrom(inferred[result])
        onnx.save(model, path)
        return True


def times(o, path):
    """(onnxruntime's, Lathe's) medians in ms; None: one of them does not take it."""
    command = [o.lathe, "bench", path, "--target", o.target, "--workers", str(o.workers), "--json", "--against",
               "onnxruntime", *(["--repeat", o.repeat] if o.repeat else [])]
    try:
        run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LATHE_PYTHON=sys.executable),
                             check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        print(f"no end after {LONGEST} s: the machine is busy", file=sys.stderr)
        return None
    entries = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    found = {e["who"]: e["median_ms"] for e in entries if "who" in e}
    if run.returncode or len(found) < 2:
        print(f"{os.path.basename(path)}: {run.stderr.strip()[:160]}", file=sys.stderr)
        return None
    return found["onnxruntime"], found["lathe"]


def summary(title, rows):
    if not rows:
        return
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
    print(f"\n{title}: {len(rows)} shapes, geometric mean {mean:.2f}; the worst:")
    for ratio, ort, own, name in rows[:10]:
        print(f"  {ratio:6.2f}  {own:9.4f} ms  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--target", default="native")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--repeat", default=None)
    o = parser.parse_args()
    o.lathe, rows, left_out = os.path.abspath(o.lathe), [], 0
    print(f"{'ratio':>7}  {'onnxruntime':>12}  {'Lathe':>9}  shape")
    with tempfile.TemporaryDirectory(prefix="grid-") as work:
        path = os.path.join(work, "shape.onnx")
        for make in grid.GROUPS:
            group = make()
            for name, value in group.results:
                if not fnmatch.fnmatch(name, o.filter):
                    continue
                found = times(o, path) if Model(group).write(value, path) else None
                left_out += found is None
                if found:
                    rows.append((found[0] / found[1], *found, name))
                    print(f"{rows[-1][0]:7.2f}  {found[0]:9.4f} ms  {found[1]:6.4f} ms  {name}", flush=True)
    rows.sort()
    summary("all", rows)
    summary("longer than 20 us", [r for r in rows if r[2] > SHORT])
    print(f"left out: {left_out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
