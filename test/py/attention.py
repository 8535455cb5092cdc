#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention as networks write it, against onnxruntime, and its bytes for other vectors and numbers of workers.

    attention.py [--lathe FILE]

One model has a node for each number of positions and batches, with heads of 32, 64 and 80, with a mask of the keys, of
all scores, or none, in the orders that exporters use, for few queries of many keys, and as ONNX's own operator; layers
of products for one batch and several; and softmax alone. Attention is one operator where there are vectors, with open
extents, too, but for few queries. Results differ from onnxruntime's by rounding, but not
between vectors of 8 and 16 lanes, nor between workers."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADS = {32: 3, 64: 2, 80: 1}
LEAST = 8  # rows; for fewer, keys are read as they lie


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.nodes, self.inputs, self.outputs, self.weights = [], [], [], []

    def input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, np.float32), name))
        return name

    def op(self, kind, ins, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, ins, [out], **attrs))
        return out

    def result(self, name, *shape):
        self.nodes.append(helper.make_node("Identity", [name], [f"y{len(self.outputs)}"]))
        self.outputs.append(helper.make_tensor_value_info(f"y{len(self.outputs)}", TensorProto.FLOAT, list(shape)))

    def written_out(self, batch, seq, keys, size, mask, form):
        """form 0: transposed keys and a quotient; 1: both operands scaled, keys turned twice; 2: heads lie outside."""
        h = HEADS[size]
        shape = [(batch, seq, h, size)] + [(batch, keys, h, size)] * 2
        if form == 2:
            shape = [(b, n, s, d) for b, s, n, d in shape]
        q, k, v = (self.input(*s) for s in shape)
        if form < 2:
            q, v = (self.op("Transpose", [x], perm=[0, 2, 1, 3]) for x in (q, v))
            k = self.op("Transpose", [k], perm=[0, 2, 3, 1] if form == 0 else [0, 2, 1, 3])
        if form > 0:
            k = self.op("Transpose", [k], perm=[0, 1, 3, 2])
        if form == 1:
            root = self.constant(size ** -0.25)
            q, k = self.op("Mul", [q, root]), self.op("Mul", [root, k])
        s = self.op("MatMul", [q, k])
        if form != 1:
            s = self.op("Div", [s, self.constant(size ** 0.5)])
        if mask:
            hidden = self.rng.random((batch, 1, 1, keys) if mask == 1 else (batch, h, seq, keys)) < 0.3
            hidden[..., 0] = False
            m = self.constant(np.where(hidden, -np.inf if mask == 2 else -10000.0, self.rng.standard_normal()))
            s = self.op("Add", [m, s] if form == 1 else [s, m])
        y = self.op("MatMul", [self.op("Softmax", [s], axis=-1), v])
        if form < 2:
            return self.result(self.op("Transpose", [y], perm=[0, 2, 1, 3]), batch, seq, h, size)
        return self.result(y, batch, h, seq, size)

    def layer(self, batch, seq, width):
        """Products of batches with one matrix: bias, GELU, residual; a norm that reads them."""
        x = self.op("LayerNormalization", [self.input(batch, seq, width)] + [self.constant(np.ones(width))] * 2)
        w = [self.constant(self.rng.standard_normal(s) / 8) for s in ((width, 48), (48, width))]
        y = self.op("Add", [self.op("MatMul", [x, w[0]]), self.constant(self.rng.standard_normal(48))])
        erf = self.op("Erf", [self.op("Div", [y, self.constant(2 ** 0.5)])])
        y = self.op("Mul", [y, self.op("Add", [erf, self.constant(1)])])
        y = self.op("Add", [x, self.op("MatMul", [y, w[1]])])
        self.result(self.op("LayerNormalization", [y] + [self.constant(np.ones(width))] * 2), batch, seq, width)

    def operator(self, batch, seq, keys, size, causal):
        h = HEADS[size]
        q, k, v = (self.input(batch, h, n, size) for n in (seq, keys, keys))
        self.result(self.op("Attention", [q, k, v], is_causal=causal), batch, h, seq, size)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "attention", self.inputs, self.outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)


def closed_model(path, batches=(1, 2, 3, 4)):
    """How many operators of attention there should be."""
    m, n, fused = Model(), 0, 0
    for seq in (1, 7, 33, 128, 197):
        for batch in batches:
            m.written_out(batch, seq, seq, (32, 64, 80)[n % 3], (1, 2, 0)[n // 3 % 3], n % 3)
            n, fused = n + 1, fused + (seq >= LEAST)
    for seq, keys, size in ((5, 60, 64), (40, 3, 32), (13, 16, 80)):
        m.written_out(2, seq, keys, size, 1, 0)
        m.operator(1, seq, keys, size, int(size == 64))
        fused += 2 * (seq >= LEAST)
    m.written_out(1, 1, 50, 64, 0, 2)
    for batch, seq, width in ((1, 3, 40), (4, 1, 40), (3, 9, 33)):
        m.layer(batch, seq, width)
    for rows, length in ((12, 50), (8, 197), (130, 17)):
        m.result(m.op("Softmax", [m.input(rows, 20, length)], axis=-1), rows, 20, length)
    m.save(path)
    return fused


def open_model(path):
    m = Model()
    m.written_out(1, "n", "n", 32, 0, 0)
    m.save(path)


class Test:
    def __init__(self, lathe, folder):
        self.lathe, self.folder, self.passed, self.failed = lathe, folder, 0, 0

    def check(self, what, good, text=""):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print(f"FAILED {what}: {text[-2000:]}")

    def run(self, *words):
        env = dict(os.environ, LATHE_PYTHON=os.environ.get("LATHE_PYTHON", sys.executable))
        p = subprocess.run([self.lathe, *words], capture_output=True, text=True, env=env, timeout=600, check=False)
        return p.returncode, p.stdout + p.stderr

    def without_warnings(self, package, flags):
        src = os.path.join(package, "src")
        p = subprocess.run(["cc", "-std=c99", *flags.split(), "-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror",
                            "-fsyntax-only", f"-I{src}", f"-I{package}/include", os.path.join(src, "ops.c")],
                           capture_output=True, text=True, timeout=600, check=False)
        self.check(f"no warnings with {flags}", p.returncode == 0, p.stderr)

    def report(self, model, *words):
        out = os.path.join(self.folder, f"package{self.passed + self.failed}")
        code, text = self.run("compile", model, "-o", out, "-q", *words)
        if code:
            return [], [], text
        with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.without_warnings(out, report["target_cflags"])
        return [o for o in json.dumps(report["operators"]).split("nn.attention")][1:], report.get("remarks", []), ""

    def bytes(self, model, target, workers):
        out = os.path.join(self.folder, f"{target}-{workers}")
        code, text = self.run("run", model, "--target", target, "--workers", str(workers), "--output-dir", out)
        if code:
            return None, text
        return [open(os.path.join(out, n), "rb").read() for n in sorted(os.listdir(out))], ""


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    a = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        t = Test(os.path.abspath(a.lathe), folder)
        model, open_ = os.path.join(folder, "closed.onnx"), os.path.join(folder, "open.onnx")
        fused = closed_model(model)
        open_model(open_)
        t.report(model, "--target", "x86-64-v4")
        found, _, text = t.report(model, "--target", "x86-64-v3")
        t.check(f"{fused} operators", len(found) == fused, text or str(len(found)))
        found, _, text = t.report(open_, "--target", "x86-64-v3", "--dim", "n<=40")
        t.check("open extents are one operator, too", len(found) == 1, text or str(len(found)))
        code, text = t.run("verify", model, "--against", "onnxruntime", "--target", "native")
        t.check("onnxruntime", code == 0, text)
        code, text = t.run("verify", open_, "--against", "onnxruntime", "--target", "native", "--dim", "n<=40")
        t.check("onnxruntime, open extents", code == 0, text)
        wanted, few = None, os.path.join(folder, "few.onnx")
        closed_model(few, (1,))
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            wide = "avx512vl" in f.read()
        for target, workers in [("x86-64-v3", 1), ("x86-64-v3", 3)] + [("x86-64-v4", 2)] * wide:
            got, text = t.bytes(few, target, workers)
            wanted = wanted or got
            t.check(f"{target} with {workers} workers", got is not None and got == wanted, text)
    print(f"attention: {t.passed} passed, {t.failed} failed")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
