#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised operators as onnxruntime's tools write them (com.microsoft: QLinearAdd, QGemm, QuantizeLinear, ...) and
those of ONNX (QLinearConv, QLinearMatMul, ...), against onnxruntime with exact sums.

    contributed.py [--lathe FILE] [--seed N] [--count N] [--target TARGET]

Each model has one node of each kind, with random types, shapes, scales and zero points. What is quantised has to be
equal, every element, and so have products in f32 bit for bit (contraction.py has more of them) but for those by weights
of 4 bits, whose sums are of floats.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from package import save_inputs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODES = {np.uint8: (0, 255), np.int8: (-128, 127)}


class Model:
    def __init__(self, rng):
        self.rng, self.nodes, self.weights, self.inputs, self.outputs, self.feed = rng, [], [], [], [], {}

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def scale(self, span):
        return self.constant(np.float32(span / 255 * self.rng.uniform(0.5, 1.5)))

    def zero(self, dt):
        return self.constant(dt(self.rng.integers(CODES[dt][0], CODES[dt][1] + 1)))

    def codes(self, dt, shape):
        return self.rng.integers(CODES[dt][0], CODES[dt][1] + 1, shape).astype(dt)

    def input(self, array):
        name = f"x{len(self.inputs)}"
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.feed[name] = array
        return name

    def node(self, operator, inputs, out, domain="com.microsoft", **attributes):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        self.outputs.append(helper.make_tensor_value_info(name, out, None))

    def kind(self):
        dt = [np.uint8, np.int8][int(self.rng.integers(0, 2))]
        return dt, helper.np_dtype_to_tensor_dtype(np.dtype(dt))

    # --- one of each

    def binary(self, operator):
        dt, out = self.kind()
        shape = [int(self.rng.integers(1, 5)), int(self.rng.integers(1, 40)), 33]
        other = shape if self.rng.integers(0, 2) else [1, 1, 33]
        self.node(operator, [self.input(self.codes(dt, shape)), self.scale(12), self.zero(dt),
                             self.input(self.codes(dt, other)), self.scale(7), self.zero(dt),
                             self.scale(15 if operator == "QLinearAdd" else 60), self.zero(dt)], out)

    def average(self):
        dt, out = self.kind()
        last = int(self.rng.integers(0, 2))
        shape = [1, 12, 13, 5] if last else [1, 5, 12, 13]
        self.node("QLinearAveragePool", [self.input(self.codes(dt, shape)), self.scale(12), self.zero(dt),
                                         self.scale(9), self.zero(dt)], out, kernel_shape=[3, 2], pads=[1, 0, 1, 1],
                  strides=[2, 1], count_include_pad=int(self.rng.integers(0, 2)), channels_last=last)

    def windows(self):
        """Over one axis and over three, channels in front and behind."""
        for size in ([29], [7, 6, 5]):
            for last in (0, 1):
                dt, out = self.kind()
                shape = [2] + size + [3] if last else [2, 3] + size
                self.node("QLinearAveragePool", [self.input(self.codes(dt, shape)), self.scale(12), self.zero(dt),
                                                 self.scale(9), self.zero(dt)], out, kernel_shape=[3] * len(size),
                          pads=[1] * 2 * len(size), strides=[2] * len(size), channels_last=last)

    def global_average(self):
        dt, out = self.kind()
        size = [int(s) for s in self.rng.integers(1, 20, 2)]
        last = int(self.rng.integers(0, 2))
        shape = [2] + size + [7] if last else [2, 7] + size
        self.node("QLinearGlobalAveragePool", [self.input(self.codes(dt, shape)), self.scale(12), self.zero(dt),
                                               self.scale(5), self.zero(dt)], out, channels_last=last)

    def selected(self):
        """One of two values, each with a scale of its own."""
        dt, out = self.kind()
        condition = self.input(self.rng.integers(0, 2, [3, 5, 17]).astype(bool))
        self.node("QLinearWhere", [condition, self.input(self.codes(dt, [3, 5, 17])), self.scale(12), self.zero(dt),
                                   self.input(self.codes(dt, [5, 17])), self.scale(7), self.zero(dt), self.scale(9),
                                   self.zero(dt)], out)

    def table(self, operator, **attributes):
        dt, out = self.kind()
        span = 1 if operator == "QLinearSigmoid" else 12
        self.node(operator, [self.input(self.codes(dt, [3, 256])), self.scale(12), self.zero(dt), self.scale(span),
                             self.zero(dt)], out, **attributes)

    def concat(self):
        dt, out = self.kind()
        scale, zero = self.scale(12), self.zero(dt)
        parts = [self.input(self.codes(dt, [2, 3, 5])), scale, zero]
        for width in (1, 4):
            parts += [self.input(self.codes(dt, [2, width, 5])), self.scale(12), self.zero(dt)]
        self.node("QLinearConcat", [scale, zero] + parts, out, axis=1)

    def softmax(self):
        dt, out = self.kind()
        axis, opset = [(2, 13), (1, 13), (1, 12)][int(self.rng.integers(0, 3))]
        y_zero = self.constant(dt(CODES[dt][0]))
        self.node("QLinearSoftmax", [self.input(self.codes(dt, [3, 7, 33])), self.scale(9), self.zero(dt),
                                     self.constant(np.float32(0.004)), y_zero], out, axis=axis, opset=opset)
        for n in (2, 6, 10):  # equal elements, each in the middle between two steps
            y_scale = self.constant(np.float32(1 / (n * int(self.rng.integers(1, 250 // n)) + n // 2 + 0.3)))
            self.node("QLinearSoftmax", [self.input(np.repeat(self.codes(dt, [3, 1]), n, 1)), self.scale(9),
                                         self.zero(dt), y_scale, y_zero], out, axis=1, opset=13)

    def quantised_weights(self, shape, dt, n):
        per_channel = bool(self.rng.integers(0, 2))
        scale = np.float32(self.rng.uniform(0.005, 0.02, n if per_channel else None))
        zero = np.zeros(n, dt) + dt(CODES[dt][0] + 128) if per_channel else dt(CODES[dt][0] + 128)
        return [self.constant(self.codes(dt, shape)), self.constant(scale), self.constant(zero)], scale

    def gemm(self, quantised):
        dt, out = np.uint8, TensorProto.UINT8
        wdt = [np.uint8, np.int8][int(self.rng.integers(0, 2))]
        k, n = int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        w, _ = self.quantised_weights([n, k], wdt, n)
        bias = self.constant(self.rng.integers(-3000, 3000, n).astype(np.int32))
        operands = [self.input(self.codes(dt, [5, k])), self.scale(12), self.zero(dt)] + w + [bias]
        if quantised:
            self.node("QGemm", operands + [self.scale(30), self.zero(dt)], out, transB=1)
        else:
            self.node("QGemm", operands, TensorProto.FLOAT, transB=1)

    def matmul(self):
        dt, out = np.uint8, TensorProto.UINT8  # onnxruntime's kernel for i8 is not on every processor
        k, n = int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        w, _ = self.quantised_weights([k, n], np.int8, n)
        self.node("QLinearMatMul", [self.input(self.codes(dt, [2, 5, k])), self.scale(12), self.zero(dt)] + w +
                  [self.scale(30), self.zero(dt)], out, domain="")

    def conv(self):
        dt, out = np.uint8, TensorProto.UINT8
        channels, outs = int(self.rng.integers(1, 20)), int(self.rng.integers(1, 20))
        w, _ = self.quantised_weights([outs, channels, 3, 3], np.int8, outs)
        bias = self.constant(self.rng.integers(-3000, 3000, outs).astype(np.int32))
        self.node("QLinearConv", [self.input(self.codes(dt, [1, channels, 9, 11])), self.scale(12), self.zero(dt)] + w +
                  [self.scale(60), self.zero(dt), bias], out, domain="", pads=[1, 1, 1, 0],
                  strides=[int(s) for s in self.rng.integers(1, 3, 2)])

    def to_float(self):
        k, n = int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        w, scale = self.quantised_weights([k, n], np.int8, n)
        bias = self.constant(self.rng.standard_normal(n).astype(np.float32))
        self.node("MatMulIntegerToFloat", [self.input(self.codes(np.uint8, [4, k])), w[0], self.scale(12), w[1],
                                           self.zero(np.uint8), w[2], bias], TensorProto.FLOAT)

    def dynamic(self):
        k, n = int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        w, scale = self.quantised_weights([k, n], np.int8, n)
        x = self.rng.standard_normal([4, k]).astype(np.float32) * np.float32(self.rng.choice([0, 1, 3]))
        bias = self.constant(self.rng.standard_normal(n).astype(np.float32))
        self.node("DynamicQuantizeMatMul", [self.input(x), w[0], w[1], w[2], bias], TensorProto.FLOAT)

    def nbits(self):
        bits, block = 4, int(self.rng.choice([16, 32]))
        k, n = block * int(self.rng.integers(1, 4)), int(self.rng.integers(1, 20))
        blocks = (k + block - 1) // block
        operands = [self.input(self.rng.standard_normal([3, k]).astype(np.float32)),
                    self.constant(self.rng.integers(0, 256, [n, blocks, block * bits // 8]).astype(np.uint8)),
                    self.constant(self.rng.uniform(0.01, 0.1, n * blocks).astype(np.float32))]
        if self.rng.integers(0, 2):
            operands.append(self.constant(self.rng.integers(0, 256, n * ((blocks * bits + 7) // 8)).astype(np.uint8)))
        self.node("MatMulNBits", operands, TensorProto.FLOAT, K=k, N=n, bits=bits, block_size=block, accuracy_level=1)

    def to_codes(self):
        """f32 to a type of 8 or 16 bits, and one of those, i32 or 4 bits to f32; for all, or along an axis."""
        for operator, kinds in (("QuantizeLinear", [np.uint8, np.int8, np.uint16, np.int16]),
                                ("DequantizeLinear", [np.uint8, np.int8, np.uint16, np.int16, np.int32, "u4", "i4"])):
            kind, axis = kinds[int(self.rng.integers(0, len(kinds)))], int(self.rng.integers(-1, 3))
            n = (3, 6, 10)[axis]
            scale = np.float32(self.rng.uniform(0.01, 0.2, n if self.rng.integers(0, 2) else None))
            more = {"axis": axis} if scale.shape else {}
            whole = {"u4": np.uint8, "i4": np.int8}.get(kind, kind)
            low, high = {"u4": (0, 15), "i4": (-8, 7)}.get(kind, (np.iinfo(whole).min, np.iinfo(whole).max))
            codes = lambda shape: self.rng.integers(low, high + 1, shape).astype(whole)
            zero = codes(scale.shape) * (kind != np.int32)
            if operator == "QuantizeLinear":
                x = (self.rng.standard_normal([3, 6, 10]) * (high - low) * 0.05).astype(np.float32)
                self.node(operator, [self.input(x), self.constant(scale), self.constant(zero)],
                          helper.np_dtype_to_tensor_dtype(np.dtype(whole)), **more)
            elif whole == kind:
                self.node(operator, [self.input(codes([3, 6, 10])), self.constant(scale), self.constant(zero)],
                          TensorProto.FLOAT, **more)
            else:
                made = []
                for values in (codes([3, 6, 10]), zero):
                    name = f"c{len(self.weights)}"
                    t = TensorProto.UINT4 if kind == "u4" else TensorProto.INT4
                    self.weights.append(helper.make_tensor(name, t, values.shape, values.flatten()))
                    made.append(name)
                self.node(operator, [made[0], self.constant(scale), made[1]], TensorProto.FLOAT, **more)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "contributed", self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def build(rng):
    m = Model(rng)
    for operator in ("QLinearAdd", "QLinearMul"):
        m.binary(operator)
    m.average()
    m.global_average()
    m.table("QLinearSigmoid")
    m.table("QLinearLeakyRelu", alpha=0.1)
    m.concat()
    m.softmax()
    for quantised in (False, True):
        m.gemm(quantised)
    m.matmul()
    m.conv()
    m.to_float()
    m.dynamic()
    m.nbits()
    m.to_codes()
    m.windows()
    m.selected()
    return m


def reference(path, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def check(args, seed, folder):
    m = build(np.random.default_rng(seed))
    path = os.path.join(folder, "model.onnx")
    m.save(path)
    want = reference(path, m.feed)
    command = [args.lathe, "run", path, "--output-dir", folder] + (["--target", args.target] if args.target else [])
    command += save_inputs(folder, m.feed)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, CFLAGS="-O1"))
    if done.returncode != 0:
        sys.exit(f"contributed.py: seed {seed}: {done.stderr.strip()[:500]}")
    elements, wrong = 0, []
    for node, info, value in zip(m.nodes, m.outputs, want):
        got = np.load(os.path.join(folder, info.name + ".npy"))
        elements += value.size
        exact = node.op_type != "MatMulNBits"
        good = got.shape == value.shape and (np.array_equal(got, value) if exact else
                                             np.allclose(got, value, rtol=1e-5, atol=1e-4))
        if not good:
            count = np.count_nonzero(got != value)
            wrong.append(f"seed {seed}: {node.op_type} ({value.dtype}): {count} of {value.size}")
    return elements, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--target", default="", help="generic: without vectors, where sums are rounded in integers")
    args = parser.parse_args()
    total, failed = 0, 0
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as folder:
            elements, wrong = check(args, seed, folder)
        total += elements
        failed += bool(wrong)
        for line in wrong:
            print(line)
    print(f"contributed: {args.count - failed} passed, {failed} failed, 0 skipped; {total} elements")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
