#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole quantised networks are equal to onnxruntime's integer kernels, bit for bit, over many inputs.

    quantised_networks.py [--lathe FILE] [--seeds N] [--networks N] [--first N] [--target TARGET] [--models FOLDER]

The networks are MLPerf Tiny's four (NAME_qdq.onnx in FOLDER; left out, with a word, where it is not there), and N
random ones of 3 to 12 operators, each of which has its own number: the same number is always the same network. `lathe
verify --seeds` runs each on that many random inputs, which span what is quantised first, against onnxruntime's integer
kernels with exact sums. No element may differ, and none may be right only as the second of two steps. A softmax at the
end is in floats on both sides: what goes into it has to be equal, and it is left out of the comparison.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from package import QUICK, TIME_LIMIT, environment
from quantised import TYPES, Model

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TINY = ("ad", "kws", "vww", "ic")


class Network(Model):
    """Operators one behind the other, from a picture to a row of numbers, with residual sums, parts that are joined
    again, and moves. `value` is the last result, dequantised, `at` its scale and zero point, `shape` its shape."""

    def __init__(self, number):
        super().__init__(np.random.default_rng(number))
        rng = self.rng
        self.kind, self.number = "u8" if rng.integers(0, 2) else "i8", number
        self.at = self.params(self.kind, 12)
        self.shape = [1, int(rng.choice([1, 3, 8])), int(rng.integers(6, 15)), int(rng.integers(6, 15))]
        self.value = self.input(self.shape, self.at)
        self.older = []  # earlier values, for sums and joins: name, scale and zero point, shape
        steps = int(rng.integers(3, 13))
        left = steps - 1 - int(rng.integers(0, 2)) * (steps > 4)  # a pool over all of the picture takes one
        for _ in range(left):
            self.step()
        if left < steps - 1:
            self.made(self.node("GlobalAveragePool", [self.value]), self.shape[:2] + [1, 1])
        self.product()
        self.outputs.append(helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None))

    def made(self, value, shape, at=None):
        """A result is quantised, and is the value of the next operator. at: its scale and zero point; otherwise such as
        a quantiser finds, so that what goes in changes what comes out behind twelve layers, too."""
        self.older.append((self.value, self.at, self.shape))
        self.at = at or self.calibrated(value)
        self.value, self.shape = self.dequantize(self.quantize(value, self.at), self.at), [int(s) for s in shape]

    def calibrated(self, value):
        """The range that a value has on some inputs, a little narrower or wider."""
        dt, low, high = TYPES[self.kind]
        output = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "so_far", self.inputs, output, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        run = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run
        name, x = next(iter(self.feed.items()))
        results = [run(None, {name: self.rng.permuted(x) * np.float32(2)})[0] for _ in range(4)]
        least, most = min(0.0, *(float(r.min()) for r in results)), max(0.0, *(float(r.max()) for r in results))
        scale = np.float32(max(most - least, 0.01) / 255 * self.rng.uniform(0.8, 1.1))
        zero = dt(np.clip(np.rint(low - least / scale), low, high))
        return [self.constant(scale), self.constant(zero)]

    def step(self):
        small = min(self.shape[2:]) < 4
        same = [old for old in self.older if old[2] == self.shape]
        choices = [self.layer] * 4 + [self.table, self.turn] + [self.pool] * (not small)
        choices += [self.residual] * 4 * bool(same) + [self.joined] * 2 * (bool(same) and self.shape[1] < 40)
        choice = choices[self.rng.integers(0, len(choices))]
        choice(same) if choice in (self.residual, self.joined) else choice()

    def layer(self):
        """A convolution: pointwise, of windows, or of each channel alone; half of them with a ReLU."""
        rng, (_, channels, height, width) = self.rng, self.shape
        alone = channels > 1 and rng.integers(0, 3) == 0
        size = 3 if alone or rng.integers(0, 2) else 1
        stride = 2 if min(height, width) > 5 and rng.integers(0, 3) == 0 else 1
        outs = channels if alone or rng.integers(0, 2) else int(rng.choice([4, 8, 12, 16, 32]))
        w, ws = self.weight([outs, 1 if alone else channels, size, size], 0, "i8", 0.01)
        v = self.node("Conv", [self.value, w, self.bias(outs, self.scale_of(self.at), ws)], pads=[size // 2] * 4,
                      strides=[stride, stride], group=channels if alone else 1, kernel_shape=[size, size])
        if rng.integers(0, 2):  # its zero point implies the ReLU then, as quantisers write it
            v = self.node("Relu", [v])
        after = [(n + 2 * (size // 2) - size) // stride + 1 for n in (height, width)]
        self.made(v, [1, outs] + after)

    def residual(self, same):
        other = same[self.rng.integers(0, len(same))]
        self.made(self.node("Add", [other[0], self.value]), self.shape)

    def joined(self, same):
        """Of parts with one scale and zero point, or with two."""
        other = same[self.rng.integers(0, len(same))]
        shape = [1, 2 * self.shape[1]] + self.shape[2:]
        self.made(self.node("Concat", [self.value, other[0]], axis=1), shape)

    def pool(self):
        rng, (_, channels, height, width) = self.rng, self.shape
        kernel = int(rng.integers(2, 4))
        after = [(n - kernel) // 2 + 1 for n in (height, width)]
        if rng.integers(0, 2):
            v = self.node("MaxPool", [self.value], kernel_shape=[kernel, kernel], strides=[2, 2])
            self.made(v, [1, channels] + after, self.at)
        else:
            v = self.node("AveragePool", [self.value], kernel_shape=[kernel, kernel], strides=[2, 2])
            self.made(v, [1, channels] + after)

    def table(self):
        operator = ["Sigmoid", "Tanh", "HardSwish", "LeakyRelu"][self.rng.integers(0, 4)]
        self.made(self.node(operator, [self.value]), self.shape)

    def turn(self):
        """Rows become columns."""
        v = self.node("Transpose", [self.value], perm=[0, 1, 3, 2])
        self.made(v, [1, self.shape[1], self.shape[3], self.shape[2]], self.at)

    def product(self):
        k, n = int(np.prod(self.shape)), int(self.rng.integers(2, 40))
        flat = self.node("Reshape", [self.value, self.constant(np.array([1, k], np.int64))])
        flat = self.dequantize(self.quantize(flat, self.at), self.at)
        w, ws = self.weight([n, k], 0, "i8", 0.01)
        v = self.node("Gemm", [flat, w, self.bias(n, self.scale_of(self.at), ws)], transB=1)
        self.made(v, [1, n])


def up_to_softmax(path, folder):
    """A model as it is, or, where a softmax is last, without it; what it reads is the output then."""
    model = onnx.load(path)
    graph = model.graph
    last = [n for n in graph.node if n.output[0] == graph.output[0].name][0]
    if last.op_type == "Softmax":
        graph.node.remove(last)
        del graph.output[:]
        graph.output.append(helper.make_tensor_value_info(last.input[0], TensorProto.FLOAT, None))
        model = onnx.shape_inference.infer_shapes(model)
    cut = os.path.join(folder, os.path.basename(path))
    onnx.save(model, cut)
    return cut


def differs(args, path):
    """What `lathe verify` says of elements that are not equal; None: all are."""
    command = [args.lathe, "verify", path, "--integers", "--seeds", str(args.seeds), "--against", "onnxruntime",
               "--json"] + (["--target", args.target] if args.target else [])
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT,
                          env=dict(os.environ, CFLAGS=QUICK) if args.target else environment())
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        return f"lathe {' '.join(command[1:])}: {done.stderr.strip()[:500]}"
    result = json.loads(done.stdout)["result"]
    if not result:
        return f"lathe {' '.join(command[1:])}: {done.stderr.strip()[:500]}"
    says = result["outputs"][0]
    if args.seeds == 1:  # no word of samples, and the way to run the reference stands with the output
        says = {"samples": 1, "wrong_samples": done.returncode, "ties": 0, "worst": "seed 0", **says}
        result["ways"] = [{"options": says.get("options", ""), "samples": 1}]
    if says["samples"] != args.seeds or done.returncode or says["max_abs"] or says["ties"]:
        return (f"{says['wrong_samples']} of {says['samples']} samples outside of the tolerance, {says['ties']} ties, "
                f"max abs {says['max_abs']:g} ({says['worst']})")
    floats = [way["samples"] for way in result["ways"] if "optimizations off" in way["options"]]
    return f"{floats[0]} samples agree with floats alone" if floats else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seeds", type=int, default=200, help="inputs of each network")
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--first", type=int, default=2, help="number of the first random network")
    parser.add_argument("--target", default="", help="qemu-m4: in its emulator")
    parser.add_argument("--models", default=os.path.join(os.environ.get("LATHE_ZOO", os.path.join(TOP, "..", "shared")),
                                                         "models", "mlperf-tiny"))
    parser.add_argument("--keep", default="", help="a folder: the random networks are left there")
    args = parser.parse_args()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        where, paths = args.keep or folder, []
        for name in TINY:
            path = os.path.join(args.models, f"{name}_qdq.onnx")
            if os.path.exists(path):
                paths.append(up_to_softmax(path, folder))
            else:
                print(f"{name}: left out, there is no {path}")
                skipped += 1
        for number in range(args.first, args.first + args.networks):
            paths.append(os.path.join(where, f"network_{number}.onnx"))
            Network(number).save(paths[-1])
        for path in paths:
            why = differs(args, path)
            passed += why is None
            failed += why is not None
            if why:
                print(f"FAILED {os.path.basename(path)}: {why}")
    print(f"quantised networks: {passed} passed, {failed} failed, {skipped} skipped; {args.seeds} inputs each")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
