#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Constants of quantised models stay at the type that they are stored in.

    stored.py [--lathe FILE] [--filter PATTERN]

Each model reads one dequantised constant: a table that is gathered, an operand of a sum, weights behind a transpose or
a reshape, with one scale, one for each row or column, and blocks. It is compiled for a Cortex-M4 and for hosts; the
constants of the package may not take more than the model's own numbers, where docs/notes/quantize.md says so, and
the workspace no copy of them in floats. What it computes, by the program's loops for the microcontroller and natively
on the host, is what onnxruntime makes of the model.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from package import environment, save_inputs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS, COLUMNS = 96, 64


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(7)
        self.nodes, self.weights, self.inputs, self.feed, self.stored = [], [], [], {}, 0

    def constant(self, array, kind=None):
        name = f"c{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, kind, array.shape, array.flatten().tolist()) if kind else
                            numpy_helper.from_array(np.asarray(array), name))
        self.stored += array.nbytes if isinstance(array, np.ndarray) else 4
        return name

    def node(self, operator, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def input(self, array):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                                         array.shape))
        self.feed[name] = array
        return name

    def floats(self, *shape):
        return self.input(self.rng.standard_normal(shape).astype(np.float32))

    def rows(self, *shape):
        return self.input(self.rng.integers(-ROWS, ROWS, shape).astype(np.int64))

    def integers(self, *dims):
        return self.constant(np.array(dims, np.int64))

    def stored_in(self, dt, shape, axis=None, block=0):
        """A dequantised constant; axis: of a scale and a zero point for each of its entries."""
        limits = np.iinfo(dt)
        q = self.constant(self.rng.integers(limits.min, limits.max + 1, shape).astype(dt))
        sizes = () if axis is None else (shape[axis],)
        if block:
            sizes = tuple(n // block if i == axis else n for i, n in enumerate(shape))
        scale = self.constant(np.asarray(self.rng.uniform(0.01, 0.03, sizes), np.float32))
        zero = self.constant(np.asarray(self.rng.integers(-5, 6, sizes) + (128 if limits.min == 0 else 0), dt))
        more = {} if axis is None else {"axis": axis}
        return self.node("DequantizeLinear", [q, scale, zero], **more, **({"block_size": block} if block else {}))

    def quantised(self, value):
        p = [self.constant(np.float32(0.05)), self.constant(np.uint8(120))]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value] + p)] + p)

    def save(self, path):
        out = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "stored", self.inputs, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def gathered(dt, axis=None, block=0, along=0, shape=(3, 2), operator="Gather"):
    def make(m):
        table = m.stored_in(dt, (ROWS, COLUMNS), axis, block)
        if operator == "Gather":
            index = m.input(m.rng.integers(0, COLUMNS, shape).astype(np.int64)) if along else m.rows(*shape)
            return m.node("Gather", [table, index], axis=along)
        return m.node(operator, [table, m.rows(4, COLUMNS if operator == "GatherElements" else 1)])
    return make


def beside(operator, dt, axis=None):
    return lambda m: m.node(operator, [m.floats(2, ROWS, COLUMNS), m.stored_in(dt, (ROWS, COLUMNS), axis)])


def transposed(m, axis):
    return m.node("Transpose", [m.stored_in(np.int8, (ROWS, COLUMNS), axis)], perm=[1, 0])


def reshaped(m, dt, axis, before, after):
    return m.node("Reshape", [m.stored_in(dt, before, axis), m.integers(*after)])


def twice(m):
    w = m.stored_in(np.int8, (ROWS, COLUMNS))
    return m.node("Add", [m.node("MatMul", [m.floats(3, ROWS), w]), m.node("MatMul", [m.floats(3, ROWS), w])])


def selected(m):
    return m.node("Where", [m.input(m.rng.integers(0, 2, (ROWS, COLUMNS)).astype(bool)), m.floats(ROWS, COLUMNS),
                            m.stored_in(np.uint8, (ROWS, COLUMNS))])


def divided(m):
    parts = ["p0", "p1"]
    m.nodes.append(helper.make_node("Split", [m.stored_in(np.int8, (ROWS, COLUMNS), 0), m.integers(32, 64)], parts,
                                    axis=0))
    return m.node("Add", [m.node("Mul", [m.floats(32, COLUMNS), parts[0]]),
                          m.node("Slice", [m.node("Sub", [m.floats(64, COLUMNS), parts[1]]), m.integers(0),
                                           m.integers(32)])])


def rounded(m):
    w = m.node("DequantizeLinear", [m.constant(m.rng.integers(-127, 128, (ROWS, COLUMNS)).astype(np.int8)),
                                    m.constant(m.rng.uniform(0.001, 0.003, ROWS).astype(np.float32))], axis=0)
    return m.quantised(m.node("MatMul", [m.quantised(m.floats(3, COLUMNS)), m.node("Transpose", [w], perm=[1, 0])]))


# name, model, where it stays: everywhere, or on microcontrollers alone (a host packs floats for its vectors)
CASES = [
    ("gather", gathered(np.int8), True),
    ("gather, u8", gathered(np.uint8), True),
    ("gather, i16", gathered(np.int16), True),
    ("gather, rows", gathered(np.int8, 0), True),
    ("gather, u8 rows", gathered(np.uint8, 0, shape=()), True),
    ("gather, columns", gathered(np.uint8, 1), True),
    ("gather, blocks", gathered(np.int8, 1, 16), True),
    ("gather of columns", gathered(np.uint8, 1, along=1), True),
    ("gather of columns, rows", gathered(np.int8, 0, along=1), True),
    ("elements", gathered(np.int8, operator="GatherElements"), True),
    ("gather by points", gathered(np.int8, operator="GatherND"), True),
    ("sum", beside("Add", np.uint8), True),
    ("product", beside("Mul", np.int8, 1), True),
    ("power", lambda m: m.node("Pow", [m.node("Abs", [m.floats(ROWS, COLUMNS)]),
                                       m.stored_in(np.int8, (ROWS, COLUMNS))]), True),
    ("where", selected, True),
    ("parts", divided, False),
    ("reshape, sum", lambda m: m.node("Add", [m.floats(4, ROWS // 4, COLUMNS), reshaped(
        m, np.int8, None, (ROWS * COLUMNS,), (4, ROWS // 4, COLUMNS))]), True),
    ("concatenation", lambda m: m.node("Concat", [m.node("Relu", [m.floats(8, COLUMNS)]),
                                                  m.stored_in(np.int8, (ROWS, COLUMNS))], axis=0), True),
    ("weights", lambda m: m.node("MatMul", [m.floats(3, ROWS), m.stored_in(np.int8, (ROWS, COLUMNS), 1)]), False),
    ("weights of two", twice, False),
    ("weights, left", lambda m: m.node("MatMul", [m.stored_in(np.int8, (ROWS, COLUMNS), 0), m.floats(COLUMNS, 3)]),
     False),
    ("weights, transposed", lambda m: m.node("MatMul", [m.floats(3, COLUMNS), transposed(m, 0)]), False),
    ("weights, 1-D", lambda m: m.node("Conv", [m.floats(1, 16, 9), m.stored_in(np.int8, (24, 16, 5), 0)]), False),
    ("weights, reshaped", lambda m: m.node("Conv", [m.floats(1, 16, 5, 5), reshaped(
        m, np.int8, 0, (24, 16 * 9), (24, 16, 3, 3))]), False),
    ("weights, 3-D", lambda m: m.node("Conv", [m.floats(1, 8, 4, 4, 4), m.stored_in(np.int8, (16, 8, 3, 3, 3), 0)]),
     False),
    ("weights of a transposed convolution", lambda m: m.node("ConvTranspose", [
        m.floats(1, 16, 4, 5), m.stored_in(np.int8, (16, 12, 3, 3), 1)], strides=[2, 1]), False),
    # onnxruntime moves its dequantize behind the transpose with the wrong axis, so floats say what is near
    ("transposed, in integers", rounded, True),
    ("integers, gathered", lambda m: m.node("Identity", [m.quantised(gathered(np.uint8)(m))]), True),
]


def lathe(args, *command):
    done = subprocess.run([args.lathe, *command], capture_output=True, text=True, timeout=600,
                          env=environment("-O1 -fexpensive-optimizations -ffp-contract=fast"))
    if done.returncode != 0:
        sys.exit(f"stored.py: lathe {' '.join(command)}: {done.stderr.strip()[:500]}")


def check(args, make, everywhere, exact, folder):
    model, wrong = Model(), []
    make(model)
    path, report = os.path.join(folder, "model.onnx"), os.path.join(folder, "report.json")
    model.save(path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    if not exact: # else it rounds the data of products by weights of 8 bits, too
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    want, name = session.run(None, model.feed)[0], session.get_outputs()[0].name
    inputs = save_inputs(folder, model.feed)
    for target, how in (("cortex-m4", ["--interpret"]), ("generic", []), ("", [])):
        to = ["--integers"] + (["--target", target] if target else [])
        lathe(args, "compile", path, "-q", "-o", os.path.join(folder, "out" + target), "--report", report, *to)
        with open(report, encoding="utf-8") as f:
            told = json.load(f)
        stays = everywhere or target == "cortex-m4"
        if stays and told["constant_bytes"] > model.stored + 512: # a table, biases, borders of 64 bytes
            wrong.append(f"{target}: constants of {told['constant_bytes']} bytes for {model.stored}")
        if not stays and not told.get("remarks"):
            wrong.append(f"{target}: nothing is said of floats")
        if everywhere and told["workspace_bytes"] >= 4 * ROWS * COLUMNS and told["workspace_bytes"] > 2 * want.nbytes:
            wrong.append(f"{target}: a workspace of {told['workspace_bytes']} bytes")
        lathe(args, "run", path, "--output-dir", folder, *inputs, *how, *to)
        got = np.load(os.path.join(folder, name + ".npy"))
        step = 0.0501 if make is rounded else 2e-5
        same = got == want if exact else np.isclose(got, want, rtol=1e-5, atol=step)
        if got.shape != want.shape or not np.all(same):
            wrong.append(f"{target}: {np.count_nonzero(~same)} elements differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    args = parser.parse_args()
    passed = failed = 0
    for name, make, everywhere in CASES:
        if not fnmatch.fnmatch(name, args.filter):
            continue
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(args, make, everywhere, name.startswith("integers"), folder)
        passed += not wrong
        failed += bool(wrong)
        for line in wrong:
            print(f"{name}: {line}")
    print(f"stored: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
