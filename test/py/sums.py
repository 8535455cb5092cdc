#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long sums of floats against sums of doubles: sums, means, norms, statistics of normalisations, pools, softmax,
matrix products.

    sums.py [--lathe FILE] [--filter GLOB] [--seeds N] [--first N]

A model of many reductions runs for several targets and in the interpreter: on random numbers, on numbers near 100, and
on one number over and over, where additions one after the other are always rounded the same way. No sum may be further
from the exact one than docs/reference/operators.md says, and statistics of numbers far from 0 no further than a few
roundings of these numbers. A target whose tools are not here is skipped.
"""
import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

import package

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
EPS = 2.0**-24
COLUMNS = 40
RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen=128,elen=64,vext_spec=v1.0"
# name: (options of `lathe run`, CC, what has to be there)
TARGETS = {
    "interpreter": (["--interpret"], None, None),
    "generic": (["--target", "generic"], None, None),
    "x86-64-v3": (["--target", "x86-64-v3"], None, "avx2"),
    "x86-64-v4": (["--target", "x86-64-v4"], None, "avx512vl"),
    "aarch64": (["--target", "aarch64", "--emulator", "qemu-aarch64"], "aarch64-linux-gnu-gcc -static", "qemu-aarch64"),
    "rv64gcv": (["--target", "rv64gcv", "--emulator", RISCV], "clang-19 --target=riscv64-linux-gnu -static",
                "qemu-riscv64"),
    "cortex-m4": (["--target", "qemu-m4"], None, "qemu-system-arm"),
}


def bound(n):
    """Roundings of a sum of n numbers: docs/reference/operators.md."""
    if n <= 256:
        return n
    block = 128
    while block < n // block:
        block *= 2
    return 1.5 * block + 2 * n / block


def bound_of_products(n):
    return n if n <= 1024 else 1.5 * 512 + 2 * n / 512


class Reduction:
    """A node on one input, and what it gives in doubles: `exact(x)` is (values, limits)."""

    def __init__(self, op, shape, exact, axes=None, attributes=None, operands=()):
        self.op, self.shape, self.exact, self.axes = op, shape, exact, axes
        self.attributes, self.operands = attributes or {}, operands


def summed(axes, terms=lambda x: x, result=lambda s, n: s, slope=lambda s, n: 1.0):
    """A sum of `terms`, and a limit by the amounts of these; `slope`: how the result follows the sum."""
    def exact(x):
        t = terms(x)
        n = int(np.prod([x.shape[a] for a in axes]))
        s = t.sum(axis=axes, keepdims=True)
        error = (bound(n) + 4) * EPS * np.abs(t).sum(axis=axes, keepdims=True)
        value = result(s, n)
        return value, error * np.abs(slope(s, n)) + 4 * EPS * np.abs(value)
    return exact


def normalised(axes, epsilon=1e-5):
    """Sums by blocks leave the mean some roundings of the numbers' size from its place."""
    def exact(x):
        mean, deviation = x.mean(axis=axes, keepdims=True), np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
        y = (x - mean) / deviation
        return y, 16 * EPS * np.abs(x).max() / deviation + 64 * EPS * np.abs(y)
    return exact


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    y = e / e.sum(axis=1, keepdims=True)
    return y, (bound(x.shape[1]) + 32 + 2 * np.abs(x).max()) * EPS * y


def rows_summed(x):
    """A product with ones."""
    n, s = x.shape[1], x.sum(axis=1, keepdims=True)
    limit = (bound_of_products(n) + 4) * EPS * np.abs(x).sum(axis=1, keepdims=True)
    return s + np.zeros((1, COLUMNS)), limit + np.zeros((1, COLUMNS))


def reductions(small):
    """On microcontrollers memory is short."""
    row, image = ((2, 3000), (1, 2, 64, 64)) if small else ((3, 5000), (2, 3, 96, 128))
    every = tuple(range(4))
    out = [
        Reduction("ReduceSum", row, summed((1,)), [1]),
        Reduction("ReduceMean", row, summed((1,), result=lambda s, n: s / n, slope=lambda s, n: 1 / n), [1]),
        Reduction("ReduceSumSquare", row, summed((1,), lambda x: x * x), [1]),
        Reduction("ReduceL1", row, summed((1,), np.abs), [1]),
        Reduction("ReduceL2", row, summed((1,), lambda x: x * x, lambda s, n: np.sqrt(s),
                                          lambda s, n: 0.5 / np.sqrt(s)), [1]),
        Reduction("Softmax", row, softmax, attributes={"axis": 1}),
        Reduction("ReduceMean", image, summed((2, 3), result=lambda s, n: s / n, slope=lambda s, n: 1 / n), [2, 3]),
        Reduction("ReduceSum", image, summed(every), list(every)),
        Reduction("ReduceSum", image, summed((0, 2)), [0, 2]),
        Reduction("GlobalAveragePool", image, summed((2, 3), result=lambda s, n: s / n, slope=lambda s, n: 1 / n)),
        Reduction("InstanceNormalization", image, normalised((2, 3)), operands=[(image[1],), (image[1],)]),
        Reduction("LayerNormalization", image, normalised((1, 2, 3)), attributes={"axis": 1},
                  operands=[image[1:], image[1:]]),
    ]
    if not small:
        out += [
            Reduction("ReduceSum", (1, 1 << 20), summed((0, 1)), [0, 1]),
            Reduction("ReduceSum", (4099, 40), summed((0,)), [0]),
            Reduction("ReduceSum", (2, 7, 50, 37), summed((1, 2, 3)), [1, 2, 3]),
            Reduction("MatMul", (20, 16384), rows_summed, operands=[(16384, COLUMNS)]),
            Reduction("MatMul", (1, 16384), rows_summed, operands=[(16384, COLUMNS)]),
            Reduction("ReduceMean", (5, 1031), summed((1,), result=lambda s, n: s / n, slope=lambda s, n: 1 / n), [1]),
            Reduction("InstanceNormalization", (1, 2, 70, 131), normalised((2, 3)), operands=[(2,), (2,)]),
        ]
    return out


def make_model(parts, path):
    nodes, constants, outputs, shapes = [], [], [], {}
    for i, part in enumerate(parts):
        name = "x" + "_".join(map(str, part.shape))
        shapes[name] = part.shape
        inputs, attributes = [name], dict(part.attributes)
        for k, shape in enumerate(part.operands): # a scale of 1, a bias of 0
            constants.append(helper.make_tensor(f"c{i}_{k}", TensorProto.FLOAT, shape,
                                                np.full(int(np.prod(shape)), 1.0 - k, np.float32)))
            inputs.append(f"c{i}_{k}")
        if part.axes is not None:
            constants.append(helper.make_tensor(f"a{i}", TensorProto.INT64, [len(part.axes)], part.axes))
            inputs.append(f"a{i}")
            attributes["keepdims"] = 1
        nodes.append(helper.make_node(part.op, inputs, [f"y{i}"], **attributes))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "sums", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                                              for n, s in shapes.items()], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return shapes


def data(shapes, kind, seed):
    rng = np.random.default_rng(seed)
    make = {"random": rng.standard_normal, "near 100": lambda s: 100 + rng.standard_normal(s),
            "one number": lambda s: np.full(s, 0.1 + seed)}[kind]
    return {name: np.asarray(make(shape)).astype(np.float32) for name, shape in shapes.items()}


def run(lathe, model, inputs, options, cc, folder):
    command = [lathe, "run", model, "--output-dir", os.path.join(folder, "out"), *options]
    for name, array in inputs.items():
        np.save(os.path.join(folder, f"{name}.npy"), array)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    environment = dict(os.environ, CFLAGS="-O1", CC=cc) if cc else package.environment("-O1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                          timeout=package.TIME_LIMIT)
    if done.returncode != 0:
        raise package.Failure((done.stderr.splitlines() or [f"status {done.returncode}"])[0][:200])


def check(parts, inputs, folder, kind):
    """The parts that are too far from the exact result."""
    wrong = []
    for i, part in enumerate(parts):
        x = inputs["x" + "_".join(map(str, part.shape))].astype(np.float64)
        if kind == "one number" and "Normalization" in part.op:
            continue # a quotient of two errors
        y = np.load(os.path.join(folder, "out", f"y{i}.npy")).astype(np.float64)
        want, limit = part.exact(x)
        worst = (np.abs(y - want) / (limit + 1e-30)).max()
        if not worst <= 1:
            wrong.append(f"{part.op} of {list(part.shape)}, axes {part.axes}: {np.abs(y - want).max():.3g} off, "
                         f"{worst:.2f} times what is allowed")
    return wrong


def available(needs):
    if needs is None:
        return True
    if needs.startswith("avx"):
        with open("/proc/cpuinfo") as f:
            return needs in f.read().split()
    return shutil.which(needs) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", help="only targets whose names match this pattern")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    passed = failed = skipped = 0
    for target, (arguments, cc, needs) in TARGETS.items():
        if not fnmatch.fnmatch(target, options.filter):
            continue
        if not available(needs):
            print(f"skipped {target}: no {needs}")
            skipped += 1
            continue
        parts = reductions(target == "cortex-m4")
        with tempfile.TemporaryDirectory(prefix="sums-") as folder:
            model = os.path.join(folder, "model.onnx")
            shapes = make_model(parts, model)
            for seed in range(options.first, options.first + options.seeds):
                for kind in ("random", "near 100", "one number"):
                    inputs = data(shapes, kind, seed)
                    try:
                        run(options.lathe, model, inputs, arguments, cc, folder)
                        wrong = check(parts, inputs, folder, kind)
                    except package.Failure as failure:
                        wrong = [str(failure)]
                    for line in wrong:
                        print(f"FAILED {target}, {kind}, seed {seed}: {line}")
                    passed += not wrong
                    failed += bool(wrong)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
