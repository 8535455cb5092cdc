#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised (QDQ) layers compute in integers, bit for bit as onnxruntime's integer kernels do.

    quantised.py [--lathe FILE] [--seed N] [--count N] [--target TARGET] [--interpret] [--cross]

Each model has a number of seeded random layers side by side: convolutions (groups, strides, dilations, borders, biases,
scales for each channel, weights of i8 and u8), transposed ones, products, sums, average and global pools, movements,
clips. onnxruntime runs it with exact integer sums (session.x64quantprecision), `lathe run --integers` as it is.
Every element has to be equal, and no layer may have stayed in float. A second model of each seed has scales that are
powers of two and the metadata lathe.rounding = half_up: what is quantised comes from onnxruntime in float, which is
exact then, and is rounded here. Beside each first one, `run -O0` computes the layers in floats: one layer by itself
may differ by a step where a number is near the middle of two, not by more. With --cross each seed is for one processor
of CROSS in turn, under qemu's user mode, and by each of its compilers; one whose tools are not here is skipped.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from package import QUICK, environment, save_inputs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen={},elen=64,vext_spec=v1.0"
ARM_GCC, ARM_CLANG = "aarch64-linux-gnu-gcc", "clang-19 --target=aarch64-linux-gnu"
RISCV_CLANG = "clang-19 --target=riscv64-linux-gnu"
# target, compiler, emulator: every row of products (target_dot) that is not of x86
CROSS = (
    ("aarch64", ARM_GCC, "qemu-aarch64 -cpu cortex-a53"),
    ("aarch64-dotprod", ARM_GCC, "qemu-aarch64 -cpu max"),
    ("aarch64-i8mm", ARM_GCC, "qemu-aarch64 -cpu max"),
    ("rv64gcv", RISCV_CLANG, RISCV.format(128)),
    ("aarch64", ARM_CLANG, "qemu-aarch64 -cpu cortex-a53"),
    ("rv64gcv_zvl256b", RISCV_CLANG, RISCV.format(256)),
    ("aarch64-i8mm", ARM_CLANG, "qemu-aarch64 -cpu max"),
    ("rv64gcv_zvl512b", RISCV_CLANG, RISCV.format(512)),
)
TYPES = {"u8": (np.uint8, 0, 255), "i8": (np.int8, -128, 127)}


def power(scale):
    """The powers of two nearest to scales."""
    return np.exp2(np.rint(np.log2(scale))).astype(np.float32)


class Model:
    def __init__(self, rng, half_up=False):
        self.rng, self.half_up, self.raw = rng, half_up, {}
        self.nodes, self.weights, self.inputs, self.outputs, self.feed = [], [], [], [], {}
        self.signed_chains = []  # results whose convolutions onnxruntime runs in float unless i8 stays i8

    def constant(self, array, name=None):
        name = name or f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        # nodes have names: onnxruntime makes names of initializers of them
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator}_{name}", **attributes))
        return name

    def params(self, kind, span):
        """Constants of a scale and a zero point so that about `span` is covered."""
        dt, lo, hi = TYPES[kind]
        scale = np.float32(span / 255 * self.rng.uniform(0.5, 1.5))
        scale = power(scale) if self.half_up else scale
        zero = dt(self.rng.integers(lo, hi + 1) if self.rng.integers(0, 2) else (128 if kind == "u8" else 0))
        return [self.constant(scale), self.constant(zero)]

    def quantize(self, value, params):
        return self.node("QuantizeLinear", [value] + params)

    def dequantize(self, value, params):
        return self.node("DequantizeLinear", [value] + params)

    def input(self, shape, params):
        """A graph input that is quantised and back again."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        x = (self.rng.standard_normal(shape) * 2).astype(np.float32)
        scale = self.scale_of(params)
        if self.half_up:  # onnxruntime, which quantises the input for the comparison, rounds halves otherwise
            x[np.mod(x / scale, 1) == 0.5] += scale / 4
        self.feed[name] = x
        return self.dequantize(self.quantize(name, params), params)

    def output(self, value, params):
        name = self.dequantize(self.quantize(value, params), params)
        self.raw[name] = value, params
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def array(self, name):
        return next(numpy_helper.to_array(w) for w in self.weights if w.name == name)

    def rounded(self, name, x):
        """What output `name` is when x is quantised half up."""
        scale, zero = (self.array(p) for p in self.raw[name][1])
        limits = np.iinfo(zero.dtype)
        q = np.floor(x.astype(np.float64) / scale + 0.5) + zero
        return ((np.clip(q, limits.min, limits.max) - zero) * scale).astype(np.float32)

    def weight(self, shape, axis, kind, scale, most=128):
        """Dequantised weights, with a scale for each index of the axis in half of the cases."""
        dt, lo, hi = TYPES[kind]
        q = np.clip(np.rint(self.rng.standard_normal(shape) * 45).clip(-most, most) + (lo + hi) / 2, lo, hi).astype(dt)
        if self.rng.integers(0, 2):
            scales = (scale * self.rng.uniform(0.3, 1.7, shape[axis])).astype(np.float32)
            scales = power(scales) if self.half_up else scales
            zeros = np.full(shape[axis], 0 if kind == "i8" else 128, dt)
            return self.node("DequantizeLinear", [self.constant(q), self.constant(scales), self.constant(zeros)],
                             axis=axis), scales
        scales = power(scale) if self.half_up else np.float32(scale)
        zero = dt(self.rng.integers(-5, 6) if kind == "i8" else 120)
        return self.node("DequantizeLinear", [self.constant(q), self.constant(scales), self.constant(zero)]), scales

    def bias(self, count, x_scale, w_scale):
        scale = (np.float32(x_scale) * w_scale).astype(np.float32)
        b = self.rng.integers(-3000, 3000, count).astype(np.int32)
        if self.rng.integers(0, 2):
            scale = np.broadcast_to(scale, count).copy()
            return self.node("DequantizeLinear", [self.constant(b), self.constant(scale),
                                                  self.constant(np.zeros(count, np.int32))], axis=0)
        return self.constant((b * scale * np.float32(1 if self.half_up else 1.01)).astype(np.float32))

    def scale_of(self, params):
        return self.array(params[0])

    # --- layers

    def conv(self, kind):
        rng = self.rng
        channels, groups = int(rng.choice([1, 3, 5, 8, 16, 33])), 1
        outs = int(rng.choice([1, 4, 7, 16, 24]))
        if rng.integers(0, 3) == 0:
            groups, outs = channels, channels * int(rng.integers(1, 3))
        elif rng.integers(0, 4) == 0:
            groups = int(rng.integers(2, 5))
            channels, outs = groups * int(rng.integers(2, 6)), groups * int(rng.integers(1, 6))
        kernel = [int(k) for k in rng.integers(1, 5, 2)]
        strides = [int(s) for s in rng.choice([1, 1, 2, 3], 2)]
        dilations = [int(d) for d in rng.choice([1, 1, 2], 2)]
        pads = [int(p) for p in rng.integers(0, 3, 4)]
        x, y = self.params(kind, 12), self.params(kind, 12)
        w, ws = self.weight([outs, channels // groups] + kernel, 0, kind if rng.integers(0, 2) else "i8", 0.01)
        operands = [self.input([1, channels, 12, 11], x), w]
        if rng.integers(0, 2):
            operands.append(self.bias(outs, self.scale_of(x), ws))
        v = self.node("Conv", operands, strides=strides, dilations=dilations, pads=pads, group=groups,
                      kernel_shape=kernel)
        self.output(v, y)

    def chain(self, kind):
        """Convolutions one behind the other, whose values stay in blocks of channels, and a sum; weights of 7 bits in
        half of the cases: then no two products leave 16 bits."""
        rng = self.rng
        x, y, z = self.params(kind, 12), self.params(kind, 12), self.params(kind, 12)
        most, outs = int(rng.choice([64, 128])), int(rng.choice([16, 24, 32]))
        first = self.input([1, 16, 9, 15], x)
        w, ws = self.weight([outs, 16, 3, 3], 0, "i8", 0.005, most)
        v = self.node("Conv", [first, w, self.bias(outs, self.scale_of(x), ws)], pads=[1, 1, 1, 1])
        a = self.dequantize(self.quantize(v, y), y)
        w, ws = self.weight([outs, 1, 3, 3], 0, "i8", 0.01)
        v = self.node("Conv", [a, w, self.bias(outs, self.scale_of(y), ws)], pads=[1, 1, 1, 1], group=outs)
        b = self.dequantize(self.quantize(v, x), x)
        w, ws = self.weight([outs, outs, 1, 1], 0, "i8", 0.01, most)
        v = self.node("Conv", [b, w, self.bias(outs, self.scale_of(x), ws)])
        c = self.dequantize(self.quantize(v, z), z)
        self.output(self.node("Add", [c, a]), y)
        if kind == "i8":
            self.signed_chains.append(self.outputs[-1].name)

    def lines(self, kind):
        """Convolutions along one axis, a pool and a sum, with channels first or, at the ends, last."""
        rng = self.rng
        x, y = self.params(kind, 12), self.params(kind, 12)
        channels, outs = int(rng.choice([1, 5, 16])), int(rng.choice([4, 7, 16]))
        last, places, size = rng.integers(0, 2), int(rng.integers(9, 40)), int(rng.integers(1, 6))
        value = self.input([2, places, channels] if last else [2, channels, places], x)
        if last:
            value = self.dequantize(self.quantize(self.node("Transpose", [value], perm=[0, 2, 1]), x), x)
        w, ws = self.weight([outs, channels, size], 0, "i8", 0.01)
        v = self.node("Conv", [value, w, self.bias(outs, self.scale_of(x), ws)], strides=[int(rng.choice([1, 2]))],
                      pads=[int(p) for p in rng.integers(0, 3, 2)], dilations=[int(rng.choice([1, 1, 2]))])
        v = self.dequantize(self.quantize(self.node("Relu", [v]), y), y)
        a = self.dequantize(self.quantize(self.node("MaxPool", [v], kernel_shape=[2], pads=[0, 1]), y), y)
        w, ws = self.weight([outs, 1, 3], 0, "i8", 0.01)
        v = self.node("Conv", [a, w, self.bias(outs, self.scale_of(y), ws)], pads=[1, 1], group=outs)
        v = self.node("Add", [self.dequantize(self.quantize(v, x), x), a])
        if last:
            v = self.node("Transpose", [self.dequantize(self.quantize(v, y), y)], perm=[0, 2, 1])
        self.output(v, y)
        if kind == "i8":
            self.signed_chains.append(self.outputs[-1].name)

    def squares(self, kind):
        """Windows of 3 x 3 that may take Winograd's form: few weights at the ends of their range, and all of them, for
        which the form has no room."""
        rng = self.rng
        x, y = self.params(kind, 12), self.params(kind, 12)
        channels, outs = int(rng.choice([32, 44, 64])), int(rng.choice([32, 56]))
        size = [int(n) for n in rng.integers(8, 24, 2)]
        w, ws = self.weight([outs, channels, 3, 3], 0, "i8", 0.002)
        v = self.node("Conv", [self.input([1, channels] + size, x), w, self.bias(outs, self.scale_of(x), ws)],
                      pads=[int(p) for p in rng.integers(0, 2, 4)])
        a = self.dequantize(self.quantize(v, y), y)
        q = rng.choice(np.array([-127, 127], np.int8), [outs, outs, 3, 3], p=[0.1, 0.9])
        w = self.node("DequantizeLinear", [self.constant(q), self.constant(np.float32(0.001))])
        self.output(self.node("Conv", [a, w], pads=[1, 1, 1, 1]), x)
        if kind == "i8":
            self.signed_chains.append(self.outputs[-1].name)

    def lists(self, kind):
        """Convolutions that are lists of steps on x86-64 without VNNI: small weights, with some at the ends of their
        range and where sums of four meet their bound; most of the data is at the ends of its range."""
        rng = self.rng
        x, y = self.params("u8", 12), self.params("u8", 12)
        channels, outs = int(rng.choice([16, 40, 64])), int(rng.choice([32, 40]))
        odd = np.array([-128, -127, -65, -64, -33, -32, 32, 33, 64, 65, 127])
        value = self.input([1, channels, 10, 15], x)
        name = list(self.feed)[-1]
        ends = np.sign(self.feed[name]) * np.float32(1000)
        self.feed[name] = np.where(rng.uniform(size=ends.shape) < 0.8, ends, self.feed[name]).astype(np.float32)
        before, after = x, y
        for ins, size, stride in ((channels, 1, 1), (outs, 3, 2), (outs, 1, 1)):
            q = np.rint(rng.standard_normal([outs, ins, size, size]) * rng.choice([4, 20]))
            q = np.where(rng.uniform(size=q.shape) < 0.01, rng.choice(odd, q.shape), q).clip(-128, 127).astype(np.int8)
            scale = np.float32(0.002)
            w = self.node("DequantizeLinear", [self.constant(q), self.constant(scale)])
            v = self.node("Conv", [value, w, self.bias(outs, self.scale_of(before), scale)], strides=[stride, stride],
                          pads=[size // 2] * 4)
            before, after = after, before
            value = self.dequantize(self.quantize(v, before), before)
        self.output(value, before)

    def split(self, kind):
        """Convolutions of many weights behind a ReLU, whose data is split on x86-64 without VNNI: few numbers above the
        limit, or most of them; all of a window's, a border's and a step's places."""
        rng = self.rng
        zero = self.constant(np.uint8(0))
        channels, outs = [int(n) for n in ((264, 256), (520, 136), (256, 272), (8, 8192))[rng.integers(0, 4)]]
        before = self.params("u8", 12)
        value, ins = self.input([1, 8, 7, 9], before), 8
        for n, size, stride, dilation in ((channels, 1, 1, 1), (outs, 1, int(rng.choice([1, 2])), 1),
                                          (40, 3 if outs < 1000 else 1, 1, int(rng.choice([1, 2])))):
            q = np.rint(rng.standard_normal([n, ins, size, size]) * 35)
            most = 7 if n == 40 and rng.integers(0, 2) else 127 # 7: two in a byte
            q = q.clip(-most - 1, most).astype(np.int8)
            ws = np.float32(2.0 ** -6 / ins)
            w = self.node("DequantizeLinear", [self.constant(q), self.constant(ws)])
            v = self.node("Conv", [value, w, self.bias(n, self.scale_of(before), ws)], strides=[stride, stride],
                          pads=[dilation * (size // 2)] * 4, dilations=[dilation] * 2)
            scale = np.float32(rng.choice([0.002, 0.01, 0.05]) * rng.uniform(0.7, 1.4))
            before, ins = [self.constant(power(scale) if self.half_up else scale), zero], n
            value = self.dequantize(self.quantize(self.node("Relu", [v]), before), before)
        self.output(value, before)

    def listed_products(self, kind):
        """The same of products: rows from one on, columns and sums that no vector, run or step divides."""
        rng = self.rng
        x, y = self.params("u8", 12), self.params("u8", 30)
        rows, k, columns = (int(rng.choice(of)) for of in ([1, 4, 37, 128], [8, 11, 30, 96], [16, 19, 64, 100]))
        shape = [[rows], [2, rows], [1, 3, rows]][rng.integers(0, 3)]
        value = self.input(shape + [k], x)
        name = list(self.feed)[-1]
        ends = np.sign(self.feed[name]) * np.float32(1000)
        self.feed[name] = np.where(rng.uniform(size=ends.shape) < 0.8, ends, self.feed[name]).astype(np.float32)
        before, after = x, y
        for ins, outs in ((k, columns), (columns, k + 16)):
            w, ws = self.weight([ins, outs], 1, "i8" if rng.integers(0, 2) else "u8", 0.004, int(rng.choice([40, 128])))
            if len(shape) > 1:
                v = self.node("MatMul", [value, w])
            else:
                v = self.node("Gemm", [value, w, self.bias(outs, self.scale_of(before), ws)])
            before, after = after, before
            value = self.dequantize(self.quantize(v, before), before)
        self.output(value, before)

    def conv_transpose(self, kind):
        """Half up alone: onnxruntime itself sums these in float."""
        rng = self.rng
        channels, groups, outs = int(rng.choice([1, 3, 8, 33])), 1, int(rng.choice([1, 4, 7, 16]))
        kernel = [int(k) for k in rng.integers(1, 5, 2)]
        strides = [int(s) for s in rng.integers(1, 4, 2)]
        pads = [int(rng.integers(0, kernel[i % 2])) for i in range(4)]
        more = [int(rng.integers(0, s)) for s in strides]
        x, y = self.params(kind, 12), self.params(kind, 12)
        w, ws = self.weight([channels, outs] + kernel, 1, kind if rng.integers(0, 2) else "i8", 0.01)
        if ws.ndim == 0 and rng.integers(0, 2) and channels > 1:
            groups = channels
        operands = [self.input([1, channels, 7, 6], x), w]
        if rng.integers(0, 2):
            operands.append(self.bias(outs * groups, self.scale_of(x), ws))
        v = self.node("ConvTranspose", operands, strides=strides, pads=pads, group=groups, kernel_shape=kernel,
                      output_padding=more)
        self.output(v, y)

    def conv_relu(self, kind):
        x = self.params(kind, 12)
        dt, lo, _ = TYPES[kind]
        y = [self.constant(np.float32(0.03125)), self.constant(dt(lo))]
        w, ws = self.weight([8, 6, 3, 3], 0, "i8", 0.01)
        v = self.node("Conv", [self.input([1, 6, 9, 9], x), w, self.bias(8, self.scale_of(x), ws)])
        self.output(self.node("Relu", [v]), y)

    def matmul(self, kind):
        """Half of them with sums and columns that vectors divide, and rows enough to widen weights for."""
        rng = self.rng
        k, n, rows = int(rng.integers(1, 70)), int(rng.integers(1, 40)), 5
        if rng.integers(0, 2):
            k, n, rows = k * 2, int(rng.integers(1, 6)) * 16, 37
        x, y = self.params(kind, 12), self.params(kind, 30)
        w, _ = self.weight([k, n], 1, "i8", 0.01)
        self.output(self.node("MatMul", [self.input([int(rng.integers(1, 4)), rows, k], x), w]), y)

    def gemm(self, kind):
        rng = self.rng
        k, n = int(rng.integers(1, 70)), int(rng.integers(1, 40))
        x, y = self.params(kind, 12), self.params(kind, 30)
        w, ws = self.weight([n, k], 0, "i8", 0.01)
        self.output(self.node("Gemm", [self.input([7, k], x), w, self.bias(n, self.scale_of(x), ws)], transB=1), y)

    def sum(self, kind):
        a, b, y = self.params(kind, 12), self.params(kind, 7), self.params(kind, 15)
        shape = [1, int(self.rng.integers(1, 9)), 64, 101]
        self.output(self.node("Add", [self.input(shape, a), self.input(shape, b)]), y)

    def product(self, kind):
        a, b, y = self.params(kind, 12), self.params(kind, 7), self.params(kind, 40)
        shape = [1, int(self.rng.integers(1, 9)), 64, 101]
        self.output(self.node("Mul", [self.input(shape, a), self.input(shape, b)]), y)

    def forms(self, kind):
        """Sums and products of all pairs of numbers, and pools. Of i8 the form of the arithmetic depends on who reads
        operands and results, and where they come from (qnn_form.c)."""
        rng, (dt, lo, hi) = self.rng, TYPES[kind]
        codes = np.arange(lo, hi + 1).astype(dt)
        pairs = [np.repeat(codes, 256).reshape(256, 256), np.tile(codes, 256).reshape(256, 256)]
        for operator in rng.permutation(["Add", "Mul", "Add", "Mul", "AveragePool"]):
            operands = [self.operand(pairs[i], self.params(kind, 12 - 5 * i), rng.integers(0, 5)) for i in range(2)]
            if operator == "AveragePool":
                x = self.node("Reshape", [operands[0], self.constant(np.array([1, 64, 32, 32], np.int64))])
                v = self.node(operator, [x], kernel_shape=[3, 2], strides=[2, 2])
            else:
                v = self.node(operator, operands)
            if rng.integers(0, 4) == 0:
                v = self.node("Relu", [v])
            y = self.params(kind, 15 if operator == "Add" else 40)
            self.output(v, y)
            if rng.integers(0, 2):
                self.shown(self.outputs[-1].name)

    def differences(self, kind):
        """Of all pairs of numbers, by decimal scales, which make many ties, and by others; behind a ReLU as well."""
        rng, (dt, lo, hi) = self.rng, TYPES[kind]
        codes = np.arange(lo, hi + 1).astype(dt)
        pairs = [np.repeat(codes, 256).reshape(256, 256), np.tile(codes, 256).reshape(256, 256)]
        for decimal in (True, True, False):
            params = [self.params(kind, span) for span in (5, 3, 8)]
            if decimal and not self.half_up:
                scales = rng.choice([0.02, 0.013, 0.03, 0.05], 3).astype(np.float32)
                params = [[self.constant(scale), zero] for scale, (_, zero) in zip(scales, params)]
            v = self.node("Sub", [self.operand(pairs[i], params[i], 1) for i in range(2)])
            self.output(self.node("Relu", [v]) if rng.integers(0, 3) == 0 else v, params[2])

    def operand(self, codes, params, how):
        """Dequantised codes: a constant, an input that is quantised already, or one that is quantised here, and read by
        one, by two through one node or two."""
        scale, zero = (self.array(p) for p in params)
        name = f"x{len(self.inputs)}"
        if how == 0:
            return self.dequantize(self.constant(codes), params)
        element = TensorProto.FLOAT if how > 1 else helper.np_dtype_to_tensor_dtype(codes.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, element, codes.shape))
        self.feed[name] = (codes.astype(np.float32) - np.float32(zero)) * scale if how > 1 else codes
        q = self.quantize(name, params) if how > 1 else name
        x = self.dequantize(q, params)
        if how > 2:
            self.shown(x if how == 3 else self.dequantize(q, params))
        return x

    def shown(self, value):
        self.outputs.append(helper.make_tensor_value_info(self.node("Neg", [value]), TensorProto.FLOAT, None))

    def table(self, kind):
        """Chains of operators on one value: a table of 256 numbers each."""
        x, y = self.params(kind, 12), self.params(kind, 4)
        v = self.input([1, 3, 16, 101], x)
        chain = int(self.rng.integers(0, 5))
        if chain == 0:
            v = self.node("Sigmoid", [v])
        elif chain == 1:
            v = self.node("LeakyRelu", [v], alpha=0.1)
        elif chain == 2:
            v = self.node("HardSwish", [v])
        elif chain == 3:
            v = self.node("Mul", [v, self.node("Sigmoid", [v])])
        else:
            v = self.node("Tanh", [self.node("Mul", [v, self.constant(np.float32(0.3))])])
        self.output(v, y)

    def divided(self, kind):
        x = self.params(kind, 12)
        for part in self.parts(self.input([1, 7, 9, 5], x)):
            self.output(part, x)

    def parts(self, value):
        names = [f"s{len(self.nodes)}_{i}" for i in range(3)]
        sizes = self.constant(np.array([2, 1, 4], np.int64))
        self.nodes.append(helper.make_node("Split", [value, sizes], names, axis=1))
        return names

    def joined(self, kind):
        parts = [self.params(kind, span) for span in (12, 7, 12)]
        parts.append(parts[0])
        v = [self.input([1, 1 + i, 9, 7], p) for i, p in enumerate(parts)]
        self.output(self.node("Concat", v, axis=1), self.params(kind, 12) if self.rng.integers(0, 2) else parts[0])

    def average(self, kind):
        rng = self.rng
        kernel = [int(k) for k in rng.integers(1, 4, 2)]
        pads = [int(rng.integers(0, kernel[i % 2])) for i in range(4)]
        x, y = self.params(kind, 12), self.params(kind, 9)
        v = self.node("AveragePool", [self.input([1, 5, 12, 13], x)], kernel_shape=kernel, pads=pads,
                      strides=[int(s) for s in rng.integers(1, 3, 2)], count_include_pad=int(rng.integers(0, 2)))
        self.output(v, y)

    def windows(self, kind):
        """Over one axis, three and all, and with windows that reach beyond the border; not with numbers of the border
        counted there, where onnxruntime counts those beyond it, too, as the operator set 14 does not say."""
        rng, x, y = self.rng, self.params(kind, 12), self.params(kind, 9)
        for size in ([29], [7, 6, 5], [13, 10]):
            kernel = [int(k) for k in rng.integers(2, 4, len(size))]
            pads = [int(rng.integers(0, kernel[i % len(size)])) for i in range(2 * len(size))]
            ceil = int(len(size) == 2 or rng.integers(0, 2))
            v = self.node("AveragePool", [self.input([2, 3] + size, x)], kernel_shape=kernel, pads=pads,
                          strides=[int(s) for s in rng.integers(1, 4, len(size))], ceil_mode=ceil,
                          count_include_pad=0 if ceil else int(rng.integers(0, 2)))
            self.output(v, y)
        y = [self.constant(self.scale_of(x) * np.float32(2)), self.constant(TYPES[kind][0](7))]  # halves; one window
        self.output(self.node("AveragePool", [self.input([2, 30, 2, 1], x)], kernel_shape=[2, 1]), y)
        self.output(self.node("GlobalAveragePool", [self.input([2, 3, 17], x)]), y)
        self.output(self.node("GlobalAveragePool", [self.input([1, 3, 4, 5, 3], x)]), y)

    def ties(self, kind):
        """One scale before and behind: many means lie in the middle of two numbers, or nearly so in f32."""
        x, size = self.params(kind, 12), int(self.rng.choice([2, 4]))
        v = self.node("AveragePool", [self.input([1, 5, 16, 21], x)], kernel_shape=[size, 2], pads=[1, 0, 0, 1],
                      count_include_pad=int(self.rng.integers(0, 2)))
        self.output(v, x)

    def halves(self, kind):
        """Means by 0.03 / 0.02: half of them lie in the middle of two steps, but for the last bits of the scales."""
        dt, lo, hi = TYPES[kind]
        zero = self.constant(dt((lo + hi + 1) // 2 + self.rng.choice([0, -7])))
        x, y = [[self.constant(np.float32(scale)), zero] for scale in (0.03, 0.02)]
        v = self.node("AveragePool", [self.input([1, 2, 12, 15], x)], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                      strides=[2, 2])
        self.output(v, y)

    def global_average(self, kind):
        x, y = self.params(kind, 12), self.params(kind, 4)
        size = [int(s) for s in self.rng.integers(1, 20, 2)]
        self.output(self.node("GlobalAveragePool", [self.input([2, 7] + size, x)]), y)

    def moved(self, kind):
        x = self.params(kind, 12)
        v = self.node("MaxPool", [self.input([1, 5, 12, 12], x)], kernel_shape=[3, 3], strides=[2, 2],
                      pads=[1, 1, 1, 1])
        v = self.dequantize(self.quantize(v, x), x)
        v = self.dequantize(self.quantize(self.node("Transpose", [v], perm=[0, 2, 3, 1]), x), x)
        self.output(self.node("Concat", [v, v], axis=3), x)

    def resized(self, kind):
        """Linear resizes whose weights are whole numbers of a power of two. All scales are powers of two, so that the
        floats of onnxruntime are exact, and the result has another scale, or onnxruntime resizes the bytes and cuts
        what is behind the point."""
        half, corners = "half_pixel", "align_corners"
        for shape, to, transform in (
                ([1, 3, 5, 7], [1, 3, 10, 14], half), ([2, 1, 3, 5], [2, 1, 12, 20], half),
                ([1, 2, 2, 3], [1, 2, 16, 24], half),
                ([1, 3, 4, 9], [1, 3, 4, 18], "asymmetric"), ([1, 1, 5, 3], [1, 1, 9, 9], corners),
                ([1, 3, 8, 12], [1, 3, 4, 6], half), ([1, 2, 6, 2], [1, 2, 12, 8], "pytorch_half_pixel"),
                ([2, 3, 11], [2, 3, 22], half), ([1, 1, 3, 4, 5], [1, 1, 6, 8, 10], half)):
            scale = power(self.rng.uniform(0.02, 0.2))
            zeros = [self.params(kind, 12)[1] for _ in range(2)]
            factor = np.float32(self.rng.choice([0.25, 0.5, 2]))
            x, y = [[self.constant(s), z] for s, z in zip((scale, scale * factor), zeros)]
            sizes = self.constant(np.array(to, np.int64))
            v = self.node("Resize", [self.input(shape, x), "", "", sizes], mode="linear",
                          coordinate_transformation_mode=transform)
            self.output(v, y)

    def softmax(self, kind):
        x = self.params(kind, 12)
        y = [self.constant(np.float32(1 / 256)), self.constant(TYPES[kind][0](TYPES[kind][1]))]
        for axis in (1, 2, -1):
            self.output(self.node("Softmax", [self.input([2, 5, 9], x)], axis=axis), y)
        y = [self.constant(np.float32(self.rng.uniform(1 / 750, 1 / 450))), y[1]]  # few are summed, in small steps
        self.output(self.node("Softmax", [self.input([40, 3], self.params(kind, 0.5))], axis=-1), y)

    def selected(self, kind):
        """One of two values, with one scale and with several, and constants; scales of their own for each, as
        onnxruntime does not load the model otherwise."""
        dt, lo, hi = TYPES[kind]
        shape = [3, 5, 17]
        for case in range(5):
            x, y = self.params(kind, 12), self.params(kind, 7)
            a, b, to = self.input(shape, x), self.constant(np.float32(-1.3)), x
            if case < 2:
                a, b, to = a, self.input(shape[1:], y if case else x), y if case else x
            elif case < 4:
                stored = self.constant(self.rng.integers(lo, hi + 1, shape[1:]).astype(dt))
                a, b, to = self.dequantize(stored, y), a, y if case == 2 else x
            name = f"x{len(self.inputs)}"
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.BOOL, shape))
            self.feed[name] = self.rng.integers(0, 2, shape).astype(bool)
            self.output(self.node("Where", [name, a, b]), to)

    def embedding(self, kind):
        """Rows of tables that are stored quantised, with the scale of what follows and with another; a table for each
        reader, as onnxruntime does not load the model otherwise."""
        dt, lo, hi = TYPES[kind]

        def table():
            p = self.params(kind, 12)
            return self.dequantize(self.constant(self.rng.integers(lo, hi + 1, [19, 12]).astype(dt)), p), p

        rows, x = table()
        self.output(self.node("Gather", [rows, self.indices([2, 5], 19)]), x)
        y = self.params(kind, 9)
        v = self.node("Gather", [table()[0], self.indices([7], 12)], axis=1)
        self.output(self.node("Reshape", [v, self.constant(np.array([7, 19], np.int64))]), y)
        rows, x = table()
        w, _ = self.weight([12, 30], 1, "i8", 0.01)
        v = self.dequantize(self.quantize(self.node("Gather", [rows, self.indices([2, 5], 19)]), x), x)
        self.output(self.node("MatMul", [v, w]), self.params(kind, 9))

    def indices(self, shape, count):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        self.feed[name] = self.rng.integers(-count, count, shape)
        return name

    def save(self, path, raw=False, opset=14):
        """The model; raw: its results are what it quantises at the end."""
        outputs = self.outputs
        if raw:
            outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                       for name in dict.fromkeys(value for value, _ in self.raw.values())]
        graph = helper.make_graph(self.nodes, "quantised", self.inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        if self.half_up:
            helper.set_model_props(model, {"lathe.rounding": "half_up"})
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        onnx.save(model, path)


EXACT = [Model.conv] * 8 + [Model.conv_transpose] * 4 + [Model.matmul, Model.gemm, Model.sum, Model.moved,
    Model.differences, Model.resized]
LAYERS = [Model.conv] * 8 + [Model.chain] * 2 + [Model.lines] * 2 + [Model.squares,
    Model.product, Model.table, Model.table, Model.joined, Model.divided, Model.conv_relu, Model.matmul, Model.gemm,
    Model.gemm, Model.sum, Model.average, Model.global_average, Model.moved, Model.ties, Model.halves,
    Model.lists, Model.split, Model.lists, Model.listed_products, Model.listed_products, Model.embedding, Model.windows,
    Model.softmax, Model.selected, Model.forms, Model.differences, Model.resized]
OLD = [Model.softmax]  # of the operator set 12: all axes from one on are one there


def reference(path, feed, plain=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def stays_i8(path, name, feed):
    """What onnxruntime makes of one result with i8 as it is (session.qdqisint8allowed). By itself it makes u8 of it,
    but not of values that two nodes read: a convolution between the two runs in float then, and rounds otherwise."""
    whole = onnx.load(path)
    made = {output: node for node in whole.graph.node for output in node.output}
    wanted, nodes = [name], []
    while wanted:
        node = made.get(wanted.pop())
        if node is not None and node not in nodes:
            nodes.append(node)
            wanted.extend(node.input)
    used = {value for node in nodes for value in node.input}
    part = helper.make_graph([n for n in whole.graph.node if n in nodes], "part",
                             [i for i in whole.graph.input if i.name in used],
                             [o for o in whole.graph.output if o.name == name],
                             [w for w in whole.graph.initializer if w.name in used])
    model = helper.make_model(part, opset_imports=whole.opset_import, ir_version=whole.ir_version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: feed[i.name] for i in part.input})[0]


def expected(model, folder, path):
    if not model.half_up:
        return reference(path, model.feed)
    model.save(os.path.join(folder, "raw.onnx"), raw=True)
    raw = reference(os.path.join(folder, "raw.onnx"), model.feed, plain=True)
    return {name: model.rounded(name, raw[value]) for name, (value, _) in model.raw.items()}


def lathe_says(args, command, **more):
    done = subprocess.run([args.lathe] + command, capture_output=True, text=True, timeout=600, **more)
    if done.returncode != 0:
        sys.exit(f"quantised.py: lathe {' '.join(command)}: {done.stderr.strip()[:500]}")
    return done.stdout


def steps_apart(a, b):
    """The largest difference of two arrays of the same few numbers, in the smallest difference of two of these."""
    apart, steps = np.abs(a.astype(np.float64) - b), np.diff(np.unique(np.concatenate([a.ravel(), b.ravel()])))
    steps = steps[steps > 1e-6 * max(np.abs(a).max(initial=0), 1e-9)]
    return 0. if not apart.any() else apart.max() / steps.min()


def in_floats(args, path, inputs, folder, single):
    """Results of single layers that are further from those of -O0 than a step."""
    plain = os.path.join(folder, "O0")
    lathe_says(args, ["run", path, "-O0", "--interpret", "--output-dir", plain] + inputs)
    both = [[np.load(os.path.join(at, name + ".npy")) for at in (plain, folder)] for name in single]
    apart = zip(single, (steps_apart(*pair) for pair in both))
    return [f"{name}: {steps:.3g} steps from the result of -O0" for name, steps in apart if steps > 1.01]


# Layers that round more than once: a step of the first becomes several of the last.
CHAINS = (Model.chain, Model.lines, Model.squares)


def check(args, seed, half_up, folder, layers, opset=14):
    rng = np.random.default_rng(seed)
    model, single = Model(rng, half_up), []
    for layer in layers:
        before = len(model.outputs)
        layer(model, "u8" if rng.integers(0, 3) else "i8")
        single += [o.name for o in model.outputs[before:] if layer not in CHAINS]
    path = os.path.join(folder, "model.onnx")
    model.save(path, opset=opset)
    want = expected(model, folder, path)
    inputs = save_inputs(folder, model.feed)
    report = os.path.join(folder, "report.json")
    target = ["--target", args.target] if args.target else []
    lathe_says(args, ["compile", path, "--integers", "-q", "-o", os.path.join(folder, "out"), "--report", report] +
               target)
    with open(report, encoding="utf-8") as f:
        told = json.load(f)
    stayed = [r for r in told.get("remarks", []) if r["pass"] == "use-integers" and r["operator"] != "negative"]
    env = dict(os.environ, CFLAGS=QUICK, CC=args.cc + " -static") if args.emulator else environment()
    lathe_says(args, ["run", path, "--integers", "--output-dir", folder] + inputs +
               target + (["--interpret"] if args.interpret else []) +
               (["--emulator", args.emulator] if args.emulator else []), env=env)
    elements, wrong = 0, []
    if Model.split in layers and args.target in ("x86-64-v3", "x86-64-v4"):
        with open(os.path.join(folder, "out", "src", "ops.c"), encoding="utf-8") as f:
            if "lathe_any_" not in f.read():
                wrong.append("no data is split")
    for name, value in want.items():
        got = np.load(os.path.join(folder, name + ".npy"))
        elements += value.size
        if not half_up and not np.array_equal(got, value) and name in model.signed_chains:
            value = stays_i8(path, name, model.feed)
        if got.shape != value.shape or not np.array_equal(got, value):
            wrong.append(f"{name}: {np.count_nonzero(got != value)} of {value.size} elements")
    if not half_up and not args.emulator:
        wrong += in_floats(args, path, inputs, folder, single)
    for r in stayed:
        wrong.append(f"{r['operator']} of {r['value']} stays in float: {r['remark']}")
    return elements, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--target", default="", help="generic: without vectors, where sums are rounded in integers")
    parser.add_argument("--interpret", action="store_true", help="by the interpreter, without a C compiler")
    parser.add_argument("--cross", action="store_true", help="for other processors, whose programs qemu runs")
    args = parser.parse_args()
    args.cc = args.emulator = ""
    total, failed, skipped = 0, 0, 0
    for i in range(2 * args.count):
        seed, half_up = args.seed + i // 2, i % 2 == 1
        if args.cross:
            args.target, args.cc, args.emulator = CROSS[i // 2 % len(CROSS)]
            if not all(shutil.which(tool.split()[0]) for tool in (args.cc, args.emulator)):
                skipped += 1
                continue
        with tempfile.TemporaryDirectory() as folder:
            elements, wrong = check(args, seed, half_up, folder, EXACT if half_up else LAYERS)
            if not half_up:
                more, also = check(args, seed, half_up, folder, OLD, 12)
                elements, wrong = elements + more, wrong + [f"operator set 12: {line}" for line in also]
        total += elements
        failed += bool(wrong)
        for line in wrong:
            print(f"seed {seed}{', half up' if half_up else ''}{', ' + args.target if args.cross else ''}: {line}")
    passed = 2 * args.count - failed - skipped
    print(f"quantised: {passed} passed, {failed} failed, {skipped} skipped; {total} elements")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
