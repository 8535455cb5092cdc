#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of awkward shapes against onnxruntime: channels that fill no vector, groups, strides, dilations, borders
on one side, rows that no tile divides, several layouts meeting.

    convolutions.py [--lathe FILE] [--target T,T] [--seed N] [--count N] [-j N]

Each case is a small network of seeded random layers, which is compiled for each target and compared by `lathe verify`
with what onnxruntime makes of the same input.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Net:
    """A network under construction; `shape` is that of its last value."""

    def __init__(self, rng, shape):
        self.rng, self.shape, self.value = rng, list(shape), "x"
        self.nodes, self.weights, self.older = [], [], {}

    def add(self, operator, inputs, shape, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        self.value, self.shape = name, list(shape)
        self.older.setdefault(tuple(shape), []).append(name)

    def constant(self, shape, scale):
        name = f"w{len(self.weights)}"
        numbers = self.rng.standard_normal(shape, np.float32) * np.float32(scale)
        self.weights.append(numpy_helper.from_array(numbers, name))
        return name

    def swept(self, kernel, strides, dilations, pads):
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        return [(self.shape[2 + i] + pads[i] + pads[2 + i] - reach[i]) // strides[i] + 1 for i in range(2)]

    def window(self, most):
        kernel = [int(k) for k in self.rng.integers(1, most + 1, 2)]
        strides = [int(s) for s in self.rng.choice([1, 1, 2, 3], 2)]
        dilations = [int(d) for d in self.rng.choice([1, 1, 1, 2], 2)]
        pads = [int(p) for p in self.rng.integers(0, max(kernel), 4)]
        return kernel, strides, dilations, pads

    def conv(self):
        channels, groups = self.shape[1], 1
        outs = int(self.rng.choice([5, 8, 12, 16, 24, 32, 33, 48, 64]))
        kind = self.rng.integers(0, 4)
        if kind == 0:
            groups = outs = channels
        elif kind == 1:
            groups = int(self.rng.choice([g for g in (2, 3, 4, 8) if channels % g == 0] or [1]))
            outs = groups * max(1, outs // groups)
        kernel, strides, dilations, pads = self.window(5)
        size = self.swept(kernel, strides, dilations, pads)
        if min(size) < 1:
            return
        fan_in = channels // groups * kernel[0] * kernel[1]
        operands = [self.value, self.constant([outs, channels // groups] + kernel, (2 / fan_in) ** 0.5)]
        if self.rng.integers(0, 2):
            operands.append(self.constant([outs], 0.1))
        self.add("Conv", operands, [self.shape[0], outs] + size, kernel_shape=kernel, strides=strides,
                 dilations=dilations, pads=pads, group=groups)

    def transposed(self):
        """Known weights, an odd border, and what the stride leaves open."""
        channels, groups = self.shape[1], 1
        if self.rng.integers(0, 3) == 0:
            groups = int(self.rng.choice([g for g in (2, 4, channels) if channels % g == 0] or [1]))
        kernel, strides, dilations, pads = self.window(5)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        more = [int(self.rng.integers(0, s)) for s in strides]
        size = [(self.shape[2 + i] - 1) * strides[i] + reach[i] + more[i] - pads[i] - pads[2 + i] for i in range(2)]
        if min(size) < 1 or max(size) > 60:
            return
        outs = groups * int(self.rng.choice([1, 3, 8]))
        weights = self.constant([channels, outs // groups] + kernel, (2 / channels * groups / max(kernel)) ** 0.5)
        self.add("ConvTranspose", [self.value, weights], [self.shape[0], outs] + size, kernel_shape=kernel,
                 strides=strides, dilations=dilations, pads=pads, output_padding=more, group=groups)

    def pool(self):
        kernel, strides, _, _ = self.window(3)
        pads = [int(self.rng.integers(0, kernel[i % 2])) for i in range(4)]
        size = self.swept(kernel, strides, [1, 1], pads)
        if min(size) < 1:
            return
        self.add(str(self.rng.choice(["MaxPool", "AveragePool"])), [self.value], self.shape[:2] + size,
                 kernel_shape=kernel, strides=strides, pads=pads)

    def elementwise(self):
        kind = self.rng.integers(0, 4)
        same = self.older.get(tuple(self.shape), [self.value])
        if kind == 0:
            self.add("Relu", [self.value], self.shape)
        elif kind == 1:
            self.add("Add", [self.value, str(self.rng.choice(same))], self.shape)
        elif kind == 2:
            self.add("Mul", [self.value, self.constant([1, self.shape[1], 1, 1], 1)], self.shape)
        else:
            self.add("Sigmoid", [self.value], self.shape)

    def concat(self):
        same = self.older.get(tuple(self.shape), [self.value])
        shape = [self.shape[0], 2 * self.shape[1]] + self.shape[2:]
        if shape[1] <= 96:
            self.add("Concat", [self.value, str(self.rng.choice(same))], shape, axis=1)

    def mean(self):
        self.add("GlobalAveragePool", [self.value], self.shape[:2] + [1, 1])


def make(seed):
    rng = np.random.default_rng(seed)
    size = [int(n) for n in rng.integers(5, 30, 2)]
    shape = [int(rng.choice([1, 1, 2])), int(rng.choice([1, 3, 8, 11, 16, 24, 32])), *size]
    net = Net(rng, shape)
    steps = [net.conv, net.conv, net.conv, net.transposed, net.elementwise, net.elementwise, net.pool, net.concat]
    net.conv()
    for _ in range(int(rng.integers(2, 8))):
        steps[rng.integers(0, len(steps))]()
    if rng.integers(0, 3) == 0:
        net.mean()
    if not net.nodes:
        net.add("Relu", [net.value], net.shape)
    graph = helper.make_graph(net.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(net.value, TensorProto.FLOAT, net.shape)], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def store(model, rng, folder):
    """A random input and what onnxruntime makes of it, as `lathe verify --data` reads them."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = rng.standard_normal(session.get_inputs()[0].shape, np.float32)
    os.mkdir(folder)
    for name, value in (("input_0", x), ("output_0", session.run(None, {"x": x})[0])):
        with open(os.path.join(folder, name + ".pb"), "wb") as f:
            f.write(numpy_helper.from_array(value, name).SerializeToString())


def check(lathe, seed, targets, folder):
    path, data, model = os.path.join(folder, f"conv{seed}.onnx"), os.path.join(folder, f"data{seed}"), make(seed)
    onnx.save(model, path)
    store(model, np.random.default_rng(seed), data)
    for target in targets:
        command = [lathe, "verify", path, "--data", data, "--target", target, "--workers", "3",
                   "--rtol", "1e-4", "--atol", "2e-5"]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CFLAGS": "-O1"})
        if run.returncode != 0:
            return f"seed {seed}, target {target}: {run.stdout.strip()} {run.stderr.strip()}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--target", default="x86-64-v2,x86-64-v3,native")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.j) as pool:
        seeds = range(options.seed, options.seed + options.count)
        faults = [f for f in pool.map(lambda s: check(options.lathe, s, options.target.split(","), folder), seeds) if f]
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"convolutions: {options.count - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
