#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks on the simulated VTA accelerator, by the commands of docs/explanation/vta.md: quantised, run,
verified.

    vta_models.py [NAME...] [--lathe build/lathe] [--size 64] [--width 4] [--config NAME] [--cycle] [--package]
                  [--module] [--keep DIR]

NAME: resnet18, resnet34, resnet50, mobilenet-G (3x3 convolutions in groups of 16 channels), mobilenet (in
groups of one), squeezenet (concatenations), dcgan (transposed convolutions). Weights are random, scaled so that
values keep their spread from layer to layer. `--size` is the image's, `--width` divides all channels: the
networks as they are published have --size 224 --width 1. Every result has to be the interpreter's, bit for bit,
no matter where it ran; results that are one number everywhere, and layers of the named kinds that stay on the
CPU, are failures as well.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """An ONNX graph whose values have about the spread of a normal distribution."""

    def __init__(self, name, shape, width):
        self.name, self.width = name, width
        self.rng = np.random.default_rng(len(name))
        self.nodes, self.weights, self.count = [], [], 0
        self.fires = 0  # blocks of SqueezeNet
        self.last = None  # the product that gives the model's float results
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        self.shape = shape

    def node(self, operator, inputs, **attributes):
        self.count += 1
        name = f"{operator.lower()}_{self.count}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def random(self, shape, terms, gain=2.0):
        return self.constant((self.rng.standard_normal(shape) * np.sqrt(gain / terms)).astype(np.float32))

    def thin(self, channels):
        return max(16, channels // self.width)

    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1, relu=True, pad=None):
        w = self.random([outputs, inputs // groups, kernel, kernel], inputs // groups * kernel * kernel,
                        2.0 if relu else 1.0)
        b = self.random([outputs], 1, 0.01)
        y = self.node("Conv", [x, w, b], kernel_shape=[kernel] * 2, strides=[stride] * 2, group=groups,
                      pads=[kernel // 2 if pad is None else pad] * 4)
        return self.node("Relu", [y]) if relu else y

    def dense(self, x, inputs, outputs):
        return self.node("Gemm", [x, self.random([inputs, outputs], inputs), self.random([outputs], 1, 0.01)])

    def head(self, x, channels):
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x])])
        self.last = self.dense(x, channels, 100)
        return self.last

    def save(self, path, result):
        out = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, [self.input], [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def resnet(n, blocks, deep):
    more = 4 if deep else 1
    x = n.conv("x", 3, n.thin(64), 7, 2)
    x = n.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    have = n.thin(64)
    for stage, count in enumerate(blocks):
        wide = n.thin(64 << stage)
        for i in range(count):
            stride = 2 if stage and i == 0 else 1
            if deep:
                y = n.conv(n.conv(x, have, wide, 1), wide, wide, 3, stride)
                y = n.conv(y, wide, wide * more, 1, relu=False)
            else:
                y = n.conv(n.conv(x, have, wide, 3, stride), wide, wide, 3, relu=False)
            if stride != 1 or have != wide * more:
                x = n.conv(x, have, wide * more, 1, stride, relu=False)
            x = n.node("Relu", [n.node("Add", [y, x])])
            have = wide * more
    return n.head(x, have)


def mobilenet(n, each):
    have = n.thin(32)
    x = n.conv("x", 3, have, 3, 2)
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for channels, stride in steps:
        x = n.conv(x, have, have, 3, stride, have // each)
        x = n.conv(x, have, n.thin(channels), 1)
        have = n.thin(channels)
    return n.head(x, have)


def squeezenet(n):
    """SqueezeNet 1.1: concatenations, pools of windows that overlap, and an average behind the last layer."""
    have = n.thin(64)
    x = n.conv("x", 3, have, 3, 2, pad=0)
    for squeeze, expand in ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)):
        if (squeeze, n.fires) in ((16, 0), (32, 2), (48, 4)):
            x = n.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2])
        x = n.conv(x, have, n.thin(squeeze), 1)
        wide = n.thin(expand)
        x = n.node("Concat", [n.conv(x, n.thin(squeeze), wide, 1), n.conv(x, n.thin(squeeze), wide, 3)], axis=1)
        have, n.fires = 2 * wide, n.fires + 1
    x = n.node("GlobalAveragePool", [n.conv(x, have, 1000 // n.width, 1)])
    return n.node("Flatten", [x])


def dcgan(n):
    have = n.thin(1024)
    x = n.node("Relu", [n.dense("x", 100, have * 16)])
    x = n.node("Reshape", [x, n.constant(np.array([1, have, 4, 4], np.int64))])
    for channels in (512, 256, 128, 3):
        last = channels == 3
        to = 3 if last else n.thin(channels)
        w = n.random([have, to, 4, 4], have * 4, 1.0 if last else 2.0)
        x = n.node("ConvTranspose", [x, w, n.random([to], 1, 0.01)], kernel_shape=[4, 4], strides=[2, 2],
                   pads=[1, 1, 1, 1])
        x = n.node("Tanh" if last else "Relu", [x])
        have = to
    return x


NETWORKS = {
    "resnet18": lambda n: resnet(n, [2, 2, 2, 2], False),
    "resnet34": lambda n: resnet(n, [3, 4, 6, 3], False),
    "resnet50": lambda n: resnet(n, [3, 4, 6, 3], True),
    "mobilenet-G": lambda n: mobilenet(n, 16),
    "mobilenet": lambda n: mobilenet(n, 1),
    "squeezenet": squeezenet,
    "dcgan": dcgan,
}
ANCHORS = r"  (nn\.max_pool|qnn\.(conv|matmul|add|avg_pool|global))"  # what has to be the accelerator's


def lathe(args, *command):
    run = subprocess.run([args.lathe, *command], capture_output=True, text=True, timeout=3000, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"lathe {' '.join(command)}: {run.stderr[-3000:]}")
    return run.stdout


def spread(args, model, sample, folder):
    """How many different values each result has."""
    lathe(args, "run", model, "--interpret", "--input", f"x={sample}", "--output-dir", folder)
    results = [f for f in os.listdir(folder) if f.endswith(".npy") and f != os.path.basename(sample)]
    return min(len(np.unique(np.load(os.path.join(folder, f)))) for f in results)


def compare_module(args, model, sample, config, folder):
    """The module's results, whose regions keep their values on the device, are those of the interpreter."""
    module, ways = os.path.join(folder, "model.so"), {}
    lathe(args, "compile", model, *config, "--emit", "module", "--target", "native", "-o", module)
    for way, what in (("module", [module]), ("interpreter", [model, "--interpret"])):
        ways[way] = os.path.join(folder, way)
        lathe(args, "run", *what, "--input", f"x={sample}", "--output-dir", ways[way])
    for name in os.listdir(ways["interpreter"]):
        got, want = (np.load(os.path.join(ways[way], name)) for way in ("module", "interpreter"))
        assert np.abs(got - want).max() <= (1e-5 if "dcgan" in model else 0), f"{name}: the module gives other numbers"


def check(args, name, folder):
    """Words about the network; raises where something does not hold."""
    shape = [1, 100] if name == "dcgan" else [1, 3, args.size, args.size]
    n = Network(name, shape, args.width)
    float_model, model = os.path.join(folder, f"{name}.onnx"), os.path.join(folder, f"{name}.q.onnx")
    sample = os.path.join(folder, "sample.npy")
    n.save(float_model, NETWORKS[name](n))
    np.save(sample, np.random.default_rng(7).standard_normal([2] + shape[1:]).astype(np.float32))
    lathe(args, "quantize", float_model, "--for", "vta", "--data", sample, "-o", model)
    np.save(sample, np.load(sample)[:1])
    config = ["--offload", "vta", "--vta-config", args.config]
    if args.size * args.size // args.width // args.width <= 4096:
        assert spread(args, model, sample, folder) > 20, "the results are few numbers"
    stay = lathe(args, "inspect", model, *config)
    stay = [line for line in stay.split("stayed:")[-1].splitlines() if re.match(ANCHORS, line)]
    assert all(f"({n.last})" in line for line in stay), "\n".join(stay)
    words = lathe(args, "vta", "model", model, *config, *(["--cycle"] if args.cycle else []))
    assert re.search(r"[1-9]\d* regions? on VTA, all outputs equal", words), words
    if args.package:
        off = "1e-5" if n.nodes[-1].op_type == "Tanh" else "0"  # a function of the C library's, behind the last layer
        verified = lathe(args, "verify", model, *config, "--against", "interpreter", "--rtol", off, "--atol", off)
        assert ": ok" in verified, verified
    if args.module:
        compare_module(args, model, sample, config, folder)
    return words.splitlines()[0].split(": ", 1)[1] + "".join(
        f", {how} equal" for how in ("package", "module") if getattr(args, how))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--lathe", default="build/lathe")
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--width", type=int, default=4)
    p.add_argument("--config", default="1x16_i8w8a32_15_15_18_17")
    p.add_argument("--cycle", action="store_true")
    p.add_argument("--package", action="store_true")
    p.add_argument("--module", action="store_true")
    p.add_argument("--keep")
    args = p.parse_args()
    failed = 0
    for name in args.names or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="lathe_vta_") as temporary:
            folder = args.keep or temporary
            os.makedirs(folder, exist_ok=True)
            try:
                print(f"{name}: {check(args, name, folder)}", flush=True)
            except (AssertionError, RuntimeError) as why:
                failed += 1
                print(f"FAILED {name}: {why}", flush=True)
    print(f"vta_models: {len(args.names or NETWORKS) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
