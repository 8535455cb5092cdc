#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes demo/digits_int8.tflite: the demo's network as TensorFlow's converter would write it, in 8 bits, with channels
last, and with metadata: the names of the ten classes, and how a picture of bytes becomes the input.

Weights are those of demo/digits.onnx. Scales follow from what the training pictures make of it. It needs the
environment that `make test` makes:

    build/venv/bin/python demo/digits_tflite.py
"""
import argparse
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

import train

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "py"))
from tflite_metadata import with_labels  # noqa: E402
from tflite_net import Net, options  # noqa: E402

LABELS = "zero one two three four five six seven eight nine".split()
STEP = 1 / 16  # of the input: paper is -128, ink 127


class Converter:
    """Adds layers to a model; `scales` has the largest number of each result."""

    def __init__(self, weights, most):
        self.net, self.weights, self.most, self.last = Net(), weights, most, None

    def result(self, name, shape, scale, zero):
        t = self.net.tensor("int8", shape, scale, zero)
        self.net.graph.tensors[t].name = name.encode()
        return t

    def begin(self):
        self.last = self.net.input("int8", [1, 8, 8, 1], STEP, -128)
        self.net.graph.tensors[self.last].name = b"image"

    def step(self):
        return self.net.graph.tensors[self.last].quantization.scale[0]

    def layer(self, operator, version, weight, bias, result, shape, option, range_from=0.0):
        """weight: its first dimension is that of the outputs, which have scales of their own. range_from: the smallest
        number of the result, as a part of the largest."""
        reach = np.abs(weight).reshape(len(weight), -1).max(axis=1)
        scales = (reach / 127).astype(np.float32)
        codes = np.rint(weight / scales.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.int8)
        whole = np.rint(bias / (self.step() * scales)).astype(np.int32)
        w = self.net.tensor("int8", weight.shape, scales, 0, codes)
        b = self.net.tensor("int32", bias.shape, self.step() * scales, 0, whole)
        most = self.most[result]
        y = self.result(result, shape, np.float32(most * (1 - range_from) / 255), -128 if range_from == 0 else 0)
        self.net.operator(operator, version, [self.last, w, b], [y], option)
        self.last = y

    def conv(self, name, result, size):
        weight = self.weights[name + ".weight"].transpose(0, 2, 3, 1)  # channels last
        if name == "conv1":
            weight = weight * self.weights["scale"]
        self.layer("CONV_2D", 3, weight, self.weights[name + ".bias"], result, [1, size, size, len(weight)],
                   options("Conv2D", padding=0, strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1,
                           fusedActivationFunction=1))
        q = self.net.graph.tensors[self.last].quantization
        y = self.result(result + "_pooled", [1, size // 2, size // 2, len(weight)], q.scale[0], -128)
        self.net.operator("MAX_POOL_2D", 2, [self.last], [y], options(
            "Pool2D", padding=1, strideW=2, strideH=2, filterWidth=2, filterHeight=2))
        self.last = y

    def dense(self, weight, bias, result, act, range_from=0.0):
        self.layer("FULLY_CONNECTED", 4, weight, bias, result, [1, len(weight)],
                   options("FullyConnected", fusedActivationFunction=act), range_from)


def largest(model):
    """The largest number that the training pictures make of each result."""
    import onnxruntime
    names = ["r1", "r2", "r3", "logits"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    pictures = train.split()[0]
    seen = [session.run(names, {"image": p[None]}) for p in pictures]
    return {n: max(float(np.abs(s[i]).max()) for s in seen) for i, n in enumerate(names)}


def convert():
    model = onnx.load(os.path.join(HERE, "digits.onnx"))
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    c = Converter(weights, largest(model))
    c.begin()
    c.conv("conv1", "r1", 8)
    c.conv("conv2", "r2", 4)
    shape = c.net.tensor("int32", [2], data=[1, 128])
    q = c.net.graph.tensors[c.last].quantization
    flat = c.result("flat", [1, 128], q.scale[0], -128)
    c.net.operator("RESHAPE", 1, [c.last, shape], [flat], options("Reshape", newShape=[1, 128]))
    c.last = flat
    first = weights["fc1.weight"].reshape(64, 32, 2, 2).transpose(0, 2, 3, 1).reshape(64, 128)
    c.dense(first, weights["fc1.bias"], "r3", 1)
    c.dense(weights["fc2.weight"], weights["fc2.bias"], "logits", 0, -1.0)
    y = c.result("probabilities", [1, 10], 1 / 256, -128)
    c.net.operator("SOFTMAX", 2, [c.last], [y], options("Softmax", beta=1.0))
    c.net.model.description = b"handwritten digits, 8 by 8 pixels"
    c.net.graph.outputs = [y]
    return c.net


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with open(os.path.join(HERE, "digits_int8.tflite"), "wb") as f:
        f.write(with_labels(convert(), "digits.txt", LABELS, [0.0], [255 / 16]))
