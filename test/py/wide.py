#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of 16-bit values and 8-bit weights (QDQ) compute in integers and round exactly.

    wide.py [--lathe FILE] [--seed N] [--count N] [--target TARGET ...] [--cross]

Each model has random layers side by side, of int16 or uint16, some with data or a result of 8 bits: convolutions
(groups, strides, borders, biases, a scale for each channel), products whose sums fit into 32 bits and some that do not,
sums, products of two values, pools, clips, concatenations and changes of scale. Every element has to be the integer
nearest to the exact quotient, ties to even, by rational arithmetic here, and within one of what onnxruntime, whose
16-bit layers compute in f32, makes of it. No layer may have stayed in float. Some scales are powers of two or multiples
of each other, so that there are ties.
Targets of emulated boards (qemu-m4) and an AArch64, in the defaults where their tools are here, run there, half as many
seeds. With --cross all processors of quantised.py's table take their turn alone, under qemu's user mode: AArch64 with
three sets of instructions, RISC-V's vectors of 128, 256 and 512 bits.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from package import save_inputs
from quantised import CROSS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {np.int16: TensorProto.INT16, np.uint16: TensorProto.UINT16, np.int8: TensorProto.INT8,
         np.uint8: TensorProto.UINT8}


def exact(scale):
    return Fraction(float(scale))


def rounded(numerators, ratio):
    """Integers times a ratio, to the nearest, ties to even."""
    n = numerators.astype(object) * ratio.numerator
    d = ratio.denominator
    q = (2 * n + d) // (2 * d)
    tie = (2 * n + d) % (2 * d) == 0
    return q - np.where(tie & (q % 2 == 1), 1, 0)


class Model:
    def __init__(self, rng, dt):
        self.rng, self.dt = rng, dt
        self.nodes, self.weights, self.inputs, self.outputs, self.feed, self.want = [], [], [], [], {}, {}

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def params(self, span, dt=None):
        """A scale and a zero point."""
        dt = dt or self.dt
        limits = np.iinfo(dt)
        scale = np.float32(span / (int(limits.max) - int(limits.min)) * self.rng.uniform(0.5, 1.5))
        if self.rng.integers(0, 3) == 0:
            scale = np.float32(2.0 ** round(np.log2(scale)) * int(self.rng.choice([1, 1, 3])))
        middle, most = (int(limits.max) + int(limits.min) + 1) // 2, int(limits.max) // (10 if limits.min else 20)
        zero = dt(middle + (int(self.rng.integers(-most, most)) if self.rng.integers(0, 2) else 0))
        return scale, zero

    def ends(self, x_span, y_span):
        """Those of data and of the result, of which one here and there has 8 bits."""
        small, kind = np.int8 if self.rng.integers(0, 2) else np.uint8, int(self.rng.integers(0, 5))
        x = self.params(x_span, small if kind == 0 else self.dt)
        return x, self.params(y_span, small if kind == 1 else self.dt)

    def operands(self, params):
        return [self.constant(params[0]), self.constant(params[1])]

    def input(self, shape, params):
        """A dequantised graph input, and its numbers less the zero point."""
        name, (scale, zero) = f"x{len(self.inputs)}", params
        dt, limits = type(zero), np.iinfo(zero.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[dt], shape))
        spread = (9000 if self.rng.integers(0, 4) else 40000) / (1 if limits.bits == 16 else 256)
        q = np.rint(self.rng.standard_normal(shape) * spread + int(zero)).clip(limits.min, limits.max)
        self.feed[name] = q.astype(dt)
        return self.node("DequantizeLinear", [name] + self.operands(params)), q.astype(np.int64) - int(zero)

    def output(self, value, params, numbers, low=None):
        """numbers: what the quantised value is, less its zero point, unless it is saturated."""
        name, dt = self.node("QuantizeLinear", [value] + self.operands(params)), type(params[1])
        limits = np.iinfo(dt)
        y = numbers + int(params[1])
        y = np.clip(y, limits.min if low is None else max(low, limits.min), limits.max)
        self.want[name] = y.astype(np.int64).astype(dt)
        self.outputs.append(helper.make_tensor_value_info(name, TYPES[dt], None))

    def weight(self, shape, axis, most=60):
        """The operand, its numbers less zero points, and the scales of the channels (or one)."""
        rng = self.rng
        dt, middle = (np.int8, 0) if rng.integers(0, 2) else (np.uint8, 128)
        q = np.rint(rng.standard_normal(shape) * most).clip(-128, 127) + middle
        if rng.integers(0, 2):
            scales = (0.01 * rng.uniform(0.3, 1.7, shape[axis])).astype(np.float32)
            scales = np.exp2(np.rint(np.log2(scales))) if rng.integers(0, 3) == 0 else scales
            name = self.node("DequantizeLinear", [self.constant(q.astype(dt)), self.constant(scales),
                                                  self.constant(np.full(shape[axis], middle, dt))], axis=axis)
            return name, q.astype(np.int64) - middle, scales
        scale, zero = np.float32(rng.choice([0.01, 0.0078125, 0.0234375])), int(rng.integers(-5, 6)) + middle
        name = self.node("DequantizeLinear", [self.constant(q.astype(dt)), self.constant(scale),
                                              self.constant(dt(zero))])
        return name, q.astype(np.int64) - zero, np.full(shape[axis], scale)

    def bias(self, x_scale, scales):
        b = self.rng.integers(-200000, 200000, len(scales)).astype(np.int32)
        name = self.node("DequantizeLinear", [self.constant(b), self.constant(np.float32(x_scale) * scales),
                                              self.constant(np.zeros(len(scales), np.int32))], axis=0)
        return name, b.astype(np.int64)

    def by_channel(self, acc, axis, x_scale, scales, y_scale):
        parts = np.moveaxis(acc, axis, 0)
        y = np.array([rounded(a, exact(x_scale) * exact(s) / exact(y_scale)) for a, s in zip(parts, scales)])
        return np.moveaxis(y.reshape(parts.shape), 0, axis)

    # --- layers

    def conv(self, deep=0, most=60):
        rng = self.rng
        channels, groups, outs = int(rng.choice([1, 3, 8, 16, 20])), 1, int(rng.choice([1, 4, 7, 16, 24]))
        if deep:
            channels = deep
        elif rng.integers(0, 3) == 0:
            groups, outs = channels, channels * int(rng.integers(1, 3))
        kernel, stride = [int(k) for k in rng.integers(1, 4, 2)], [int(s) for s in rng.integers(1, 3, 2)]
        pads = [int(rng.integers(0, kernel[i % 2])) for i in range(4)]
        x, y = self.ends(12, 30)
        data, numbers = self.input([1, channels, 9, 8], x)
        w, codes, scales = self.weight([outs, channels // groups] + kernel, 0, most)
        operands, offset = [data, w], 0
        if rng.integers(0, 2):
            b, values = self.bias(x[0], scales)
            operands.append(b)
            offset = values.reshape(1, -1, 1, 1)
        wide = np.pad(numbers, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
        rows, columns = ((wide.shape[2 + i] - kernel[i]) // stride[i] + 1 for i in range(2))
        acc = np.zeros([1, outs, rows, columns], np.int64)
        per, made = channels // groups, outs // groups
        for g in range(groups):
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    part = wide[:, g * per:(g + 1) * per, i:i + stride[0] * rows:stride[0],
                                j:j + stride[1] * columns:stride[1]][:, :, :rows, :columns]
                    acc[:, g * made:(g + 1) * made] += np.einsum(
                        "nchw,oc->nohw", part, codes[g * made:(g + 1) * made, :, i, j])
        v = self.node("Conv", operands, kernel_shape=kernel, strides=stride, pads=pads, group=groups)
        low = None
        if rng.integers(0, 2):
            v, low = self.node("Relu", [v]), int(y[1])
        self.output(v, y, self.by_channel(acc + offset, 1, x[0], scales, y[0]), low)

    def deep(self):
        """Sums of several parts that fit into 32 bits each."""
        self.conv(int(self.rng.integers(180, 700)), 200)

    def matmul(self, k=None, most=60):
        rng = self.rng
        k, n = k or int(rng.integers(1, 70)), int(rng.integers(1, 40))
        x, y = self.ends(12, 40 if k < 100 else 400)
        data, numbers = self.input([int(rng.integers(1, 4)), 5, k], x)
        w, codes, scales = self.weight([k, n], 1, most)
        self.output(self.node("MatMul", [data, w]), y, self.by_channel(numbers @ codes, 2, x[0], scales, y[0]))

    def long(self):
        self.matmul(int(self.rng.integers(700, 900)), 200)

    def gemm(self, k=None, most=60):
        k, n = k or int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        x, y = self.ends(12, 40 if k < 100 else 400)
        data, numbers = self.input([int(self.rng.choice([1, 7])), k], x)
        w, codes, scales = self.weight([n, k], 0, most)
        b, values = self.bias(x[0], scales)
        acc = numbers @ codes.T + values
        self.output(self.node("Gemm", [data, w, b], transB=1), y, self.by_channel(acc, 1, x[0], scales, y[0]))

    def long_gemm(self):
        """The same of matrices, which microcontrollers sum in chunks."""
        self.gemm(int(self.rng.integers(700, 2400)), 100)

    def sum(self):
        a, b, y = self.params(12), self.params(7), self.params(15)
        shape = [1, 5, 9, 33]
        (first, p), (second, q) = self.input(shape, a), self.input(shape, b)
        ra, rb = exact(a[0]) / exact(y[0]), exact(b[0]) / exact(y[0])
        base = ra.denominator * rb.denominator
        numbers = p.astype(object) * int(ra * base) + q.astype(object) * int(rb * base)
        self.output(self.node("Add", [first, second]), y, rounded(numbers, Fraction(1, base)))

    def product(self):
        a, b, y = self.params(12), self.params(7), self.params(40)
        shape = [1, 5, 9, 33]
        (first, p), (second, q) = self.input(shape, a), self.input(shape, b)
        self.output(self.node("Mul", [first, second]), y, rounded(p * q, exact(a[0]) * exact(b[0]) / exact(y[0])))

    def average(self):
        rng = self.rng
        kernel = [int(k) for k in rng.integers(1, 4, 2)]
        x, y = self.params(12), self.params(9)
        if rng.integers(0, 2):
            y = x
        pads = [int(rng.integers(0, kernel[i % 2])) for i in range(4)]
        data, numbers = self.input([1, 4, 9, 10], x)
        wide = lambda a: np.pad(a, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
        rows, columns = 10 - kernel[0] + pads[0] + pads[2], 11 - kernel[1] + pads[1] + pads[3]
        window = lambda a: sum(wide(a)[:, :, i:i + rows, j:j + columns]
                               for i in range(kernel[0]) for j in range(kernel[1]))
        acc, count = window(numbers), window(np.ones_like(numbers))
        y_numbers = np.zeros(acc.shape, object)
        for n in np.unique(count):
            y_numbers[count == n] = rounded(acc[count == n], exact(x[0]) / (exact(y[0]) * int(n)))
        self.output(self.node("AveragePool", [data], kernel_shape=kernel, pads=pads), y, y_numbers)

    def global_average(self):
        x, y = self.params(12), self.params(4)
        size = [int(s) for s in self.rng.integers(1, 12, 2)]
        data, numbers = self.input([2, 7] + size, x)
        acc = numbers.sum(axis=(2, 3), keepdims=True)
        ratio = exact(x[0]) / (exact(y[0]) * (size[0] * size[1]))
        self.output(self.node("GlobalAveragePool", [data]), y, rounded(acc, ratio))

    def moved(self):
        x = self.params(12)
        data, numbers = self.input([1, 5, 8, 8], x)
        v = self.node("MaxPool", [data], kernel_shape=[2, 2], strides=[2, 2])
        y = numbers.reshape(1, 5, 4, 2, 4, 2).max(axis=(3, 5))
        self.output(self.node("Transpose", [v], perm=[0, 2, 3, 1]), x, y.transpose(0, 2, 3, 1))

    def joined(self):
        parts, y = [self.params(span) for span in (12, 7)], self.params(15)
        parts.append(y)
        made = [self.input([1, 1 + i, 9, 7], p) for i, p in enumerate(parts)]
        numbers = [rounded(q, exact(p[0]) / exact(y[0])) for (_, q), p in zip(made, parts)]
        self.output(self.node("Concat", [name for name, _ in made], axis=1), y, np.concatenate(numbers, axis=1))

    def rescaled(self):
        x, y = self.ends(12, 9)
        data, numbers = self.input([3, 40], x)
        self.output(data, y, rounded(numbers, exact(x[0]) / exact(y[0])))

    def save(self, path):
        graph = helper.make_graph(self.nodes, "wide", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


LAYERS = [Model.conv] * 6 + [Model.deep, Model.matmul, Model.matmul, Model.long, Model.gemm, Model.gemm,
                             Model.long_gemm, Model.long_gemm, Model.sum, Model.sum, Model.product, Model.product,
                             Model.average, Model.average, Model.global_average, Model.moved, Model.joined,
                             Model.rescaled, Model.rescaled]


# target: compiler, emulator
EMULATED = {target: (cc, emulator) for target, cc, emulator in reversed(CROSS)}
BOARDS = {"qemu-m4": "cortex-m4", "qemu-m0plus": "cortex-m0plus", "qemu-m3": "cortex-m3", "qemu-m7": "cortex-m7",
          "qemu-m33": "cortex-m33", "qemu-m55": "cortex-m55", "qemu-rv32": "rv32imc"}


def default_targets():
    have = all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm"))
    return ["", "generic"] + ["qemu-m4"] * have + [t for t in emulated_here() if t == "aarch64"]


def emulated_here():
    return [t for t, tools in sorted(EMULATED.items()) if all(shutil.which(tool.split()[0]) for tool in tools)]


def reference(path, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def lathe_says(args, command, **env):
    done = subprocess.run([args.lathe] + command, capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, CFLAGS="-O1", **env))
    if done.returncode != 0:
        sys.exit(f"wide.py: lathe {' '.join(command)}: {done.stderr.strip()[:500]}")


def check(args, target, seed, folder):
    m = Model(np.random.default_rng(seed), np.int16 if seed % 2 else np.uint16)
    for layer in LAYERS:
        layer(m)
    path, report = os.path.join(folder, "model.onnx"), os.path.join(folder, "report.json")
    m.save(path)
    chosen = ["--integers"] + (["--target", target] if target else [])
    made_for = ["--integers", "--target", BOARDS[target]] if target in BOARDS else chosen
    lathe_says(args, ["compile", path, "-q", "-o", os.path.join(folder, "out"), "--report", report] + made_for)
    wrong = [f"{r['operator']} of {r['value']} stays in float: {r['remark']}"
             for r in json.load(open(report)).get("remarks", []) if r["pass"] == "use-integers"]
    chosen += save_inputs(folder, m.feed)
    env = {}
    if target in EMULATED:
        env = {"CC": EMULATED[target][0] + " -static"}
        chosen += ["--emulator", EMULATED[target][1]]
    lathe_says(args, ["run", path, "--output-dir", folder] + chosen, **env)
    theirs, elements, makers = reference(path, m.feed), 0, {o: n for n in m.nodes for o in n.output}
    for name, want in m.want.items():
        got = np.load(os.path.join(folder, name + ".npy"))
        elements += want.size
        what = f"{name}, {makers[makers[name].input[0]].op_type}"
        if got.shape != want.shape or not np.array_equal(got, want):
            wrong.append(f"{what}: {np.count_nonzero(got != want)} of {want.size} are not the nearest integer")
        elif np.abs(got.astype(np.int64) - theirs[name].astype(np.int64)).max() > 1:
            wrong.append(f"{what}: more than one from onnxruntime")
    return elements, [f"seed {seed}, {target or 'default'}: {line}" for line in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--target", nargs="*", default=default_targets())
    parser.add_argument("--cross", action="store_true", help="for other processors alone, whose programs qemu runs")
    args = parser.parse_args()
    total, failed, runs = 0, 0, 0
    for target in emulated_here() if args.cross else args.target:
        count = (args.count + 1) // 2 if target in BOARDS or target in EMULATED else args.count
        runs += count
        for seed in range(args.seed, args.seed + count):
            with tempfile.TemporaryDirectory() as folder:
                elements, wrong = check(args, target, seed, folder)
            total += elements
            failed += bool(wrong)
            for line in wrong:
                print(line)
    print(f"wide: {runs - failed} passed, {failed} failed, 0 skipped; {total} elements")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
