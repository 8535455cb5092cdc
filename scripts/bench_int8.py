# SPDX-License-Identifier: Apache-2.0
"""Single quantized layers against onnxruntime: what `performance.py --int8` runs. Activations are u8, weights are i8
with a scale for each channel, in QDQ form, and both ends are integers. The sizes are not those that the rules were
tuned for. bench_operators.py measures."""
from types import SimpleNamespace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, U8, I8, I32 = np.float32, np.uint8, np.int8, np.int32
CASES = []
PRODUCTS = "bound_bytes"


def layer(name, about, nodes, inputs, constants, kind=TensorProto.UINT8,
          multiply_adds=0):
    """The last node's result is the model's. A node is (operator, operands, result, attributes)."""
    values = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in inputs.items()]
    made = [helper.make_node(operator, operands, [result], **more) for operator, operands, result, more in nodes]
    result = helper.make_tensor_value_info(nodes[-1][2], kind, None)
    graph = helper.make_graph(made, "layer", values, [result],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    CASES.append(SimpleNamespace(operator=name, about=about, inputs=inputs, model=model, multiply_adds=multiply_adds))


def convolution(before, after, side, kernel, stride=1, groups=1, name="Conv"):
    random, taps = np.random.default_rng(before + side), before // groups * kernel * kernel
    scales = (random.uniform(0.5, 1.5, after) / 100 / np.sqrt(taps)).astype(F)
    constants = {"xs": F(0.02), "xz": U8(128), "ys": F(0.01), "yz": U8(0), "ws": scales, "wz": np.zeros(after, I8),
                 "w": random.integers(-127, 128, (after, before // groups, kernel, kernel)).astype(I8),
                 "b": random.integers(-500, 500, after).astype(I32), "bs": (scales * F(0.02)).astype(F),
                 "bz": np.zeros(after, I32)}
    nodes = [("DequantizeLinear", ["x", "xs", "xz"], "xf", {}),
             ("DequantizeLinear", ["w", "ws", "wz"], "wf", {"axis": 0}),
             ("DequantizeLinear", ["b", "bs", "bz"], "bf", {"axis": 0}),
             ("Conv", ["xf", "wf", "bf"], "c", {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4,
                                               "strides": [stride] * 2, "group": groups}),
             ("Relu", ["c"], "r", {}), ("QuantizeLinear", ["r", "ys", "yz"], "y", {})]
    about = f"{kernel}x{kernel}, " + (f"{before} to {after}" if before != after else f"{before}")
    about += f" @{side}" + (f", stride {stride}" if stride > 1 else "")
    about += f", {groups} groups" if 1 < groups < before else ""
    pixels = ((side - 1) // stride + 1) ** 2
    layer(name, about, nodes, {"x": [1, before, side, side]}, constants, multiply_adds=pixels * after * taps)


def product(rows, inner, columns):
    weights = np.random.default_rng(rows + inner).integers(-127, 128, (inner, columns)).astype(I8)
    layer("MatMulInteger", f"{rows}x{inner}x{columns}", [("MatMulInteger", ["x", "w", "xz"], "y", {})],
          {"x": [rows, inner]}, {"w": weights, "xz": U8(128)}, TensorProto.INT32,
          rows * inner * columns)


def elements(operator, about, inputs, **attributes):
    """An operator between numbers of 8 bits."""
    nodes = [("DequantizeLinear", [n, "xs", "xz"], n + "f", {}) for n in inputs]
    nodes += [(operator, [n + "f" for n in inputs], "r", attributes), ("QuantizeLinear", ["r", "ys", "yz"], "y", {})]
    layer(operator, about, nodes, inputs, {"xs": F(0.02), "xz": U8(128), "ys": F(0.03), "yz": U8(100)})


for b, a, s in ((48, 192, 40), (192, 48, 40), (320, 96, 20), (96, 320, 20), (576, 160, 10), (1280, 320, 5)):
    convolution(b, a, s, 1)
for c, s in ((48, 48), (96, 24), (160, 13), (320, 10)):
    convolution(c, c, s, 3)
convolution(96, 128, 48, 3, stride=2)
convolution(32, 48, 28, 5)
convolution(3, 48, 160, 7, stride=2)
convolution(96, 96, 28, 3, groups=6)
for c, s in ((72, 56), (200, 28), (480, 14), (672, 7)):
    convolution(c, c, s, 3, groups=c, name="depthwise Conv")
convolution(64, 64, 80, 3, stride=2, groups=64, name="depthwise Conv")
convolution(120, 120, 28, 5, groups=120, name="depthwise Conv")
for r, i, c in ((96, 512, 384), (512, 96, 640), (300, 300, 300), (1, 1024, 512)):
    product(r, i, c)
IMAGE = [1, 48, 40, 60]
elements("Add", "48x40x60 twice", {"x": IMAGE, "x1": IMAGE})
elements("Mul", "48x40x60 twice", {"x": IMAGE, "x1": IMAGE})
elements("Sigmoid", "48x40x60", {"x": IMAGE})
elements("LeakyRelu", "48x40x60", {"x": IMAGE})
elements("GlobalAveragePool", "320x10x10", {"x": [1, 320, 10, 10]})
elements("MaxPool", "3x3, stride 2", {"x": [1, 48, 80, 90]}, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def model_of(c):
    return c.model


def operands_of(c):
    random = np.random.default_rng(1)
    return {n: random.integers(0, 256, s).astype(U8) for n, s in c.inputs.items()}


def multiply_adds_of(c, _results):
    return c.multiply_adds
