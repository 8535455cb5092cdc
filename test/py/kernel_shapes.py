# SPDX-License-Identifier: Apache-2.0
"""A model with a kernel of every shape that microcontrollers get, each on its own between inputs and outputs of float:
windows, products, sums, pools, tables, softmax of 8 and of 16 bits, weights of 4 bits, scales that a run decides, and
what moves data. write(path) makes it."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

TYPES = (("u8", np.uint8(120), 0.05), ("i8", np.int8(-3), 0.05), ("i16", np.int16(0), 0.0005),
         ("u16", np.uint16(32000), 0.0005))


class Builder:
    def __init__(self):
        self.rng = np.random.default_rng(3)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []

    def constant(self, array):
        tensor = onnx.numpy_helper.from_array(np.asarray(array), f"c{len(self.weights)}")
        self.weights.append(tensor)
        return tensor.name

    def four_bits(self, shape):
        values = self.rng.integers(-8, 8, shape).flatten().tolist()
        self.weights.append(helper.make_tensor(f"c{len(self.weights)}", T.INT4, shape, values))
        return self.weights[-1].name

    def node(self, operator, inputs, results=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if results == 1 else names

    def input(self, *shape):
        self.inputs.append(helper.make_tensor_value_info(f"x{len(self.inputs)}", T.FLOAT, shape))
        return self.inputs[-1].name

    def output(self, value, dtype=T.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(value, dtype, None))

    def rounded(self, value, scale, zero):
        ends = [self.constant(np.float32(scale)), self.constant(zero)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value] + ends)] + ends)

    def weight(self, shape, scale=0.005):
        values = self.constant(self.rng.integers(-128, 128, shape).astype(np.int8))
        return self.node("DequantizeLinear", [values, self.constant(np.float32(scale)), self.constant(np.int8(0))])

    def model(self):
        graph = helper.make_graph(self.nodes, "shapes", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def quantised(b, zero, scale):
    """Operators between scales, one of them in each case."""
    least = np.array(np.iinfo(zero.dtype).min).astype(zero.dtype)

    def data(*shape):
        return b.rounded(b.input(*shape), scale, zero)

    def case(operator, inputs, by=scale, low=zero, **attributes):
        b.output(b.rounded(b.node(operator, inputs, **attributes), by, low))

    x = data(1, 8, 7, 9)
    y = b.rounded(b.node("Conv", [x, b.weight((8, 8, 3, 3))], pads=[1, 1, 1, 1]), scale, zero)
    case("Add", [x, y])
    case("Conv", [x, b.weight((8, 1, 3, 3))], group=8, strides=[2, 2])
    case("ConvTranspose", [data(1, 6, 5, 4), b.weight((6, 4, 3, 3))], strides=[2, 2], pads=[1, 1, 1, 1])
    case("MatMul", [data(3, 37), b.weight((37, 11))])
    case("Mul", [data(2, 3, 5), data(2, 3, 5)])
    case("AveragePool", [data(1, 5, 9, 11)], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    case("GlobalAveragePool", [data(1, 5, 9, 11)])
    case("ReduceMean", [data(1, 5, 11), b.constant(np.array([-1]))])
    case("MaxPool", [data(1, 3, 9, 8)], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    case("LeakyRelu", [data(1, 5, 9, 11)], alpha=0.1)
    case("Sigmoid", [data(1, 5, 9, 11)], 1 / (2.0 ** (8 * zero.itemsize)), least)
    case("Softmax", [data(3, 33)], 1 / (2.0 ** (8 * zero.itemsize)), least, axis=-1)
    case("Concat", [data(1, 3, 5, 4), data(1, 2, 5, 4)], scale * 1.3, axis=1)
    twice = b.node("Resize", [data(1, 3, 5, 4), "", b.constant(np.array([1, 1, 2, 2], np.float32))], mode="nearest")
    case("Pad", [twice, b.constant(np.array([0, 0, 1, 1, 0, 0, 1, 2]))])
    if zero.itemsize == 1:
        ends = [b.constant(np.float32(0.03))]
        case("Conv", [x, b.node("DequantizeLinear", [b.four_bits([8, 8, 3, 3])] + ends)], pads=[1, 1, 1, 1])


def mixed(b, ends, to):
    """The same between numbers of 8 and of 16 bits: data has `ends`, results have `to`; scales of channels as well."""
    zero, scale = ends
    low, by = to

    def data(*shape):
        return b.rounded(b.input(*shape), scale, zero)

    def case(operator, inputs, **attributes):
        b.output(b.rounded(b.node(operator, inputs, **attributes), by * 3.7, low))

    def weight(*shape):
        values = b.constant(b.rng.integers(-128, 128, shape).astype(np.int8))
        scales = b.constant(b.rng.uniform(0.001, 0.01, shape[0]).astype(np.float32))
        return b.node("DequantizeLinear", [values, scales], axis=0)

    x = data(1, 8, 7, 9)
    case("Conv", [x, weight(6, 8, 3, 3)], pads=[1, 1, 1, 1])
    case("Conv", [x, b.weight((6, 8, 1, 1))])
    case("Conv", [x, weight(8, 1, 3, 3)], group=8, strides=[2, 2])
    case("Conv", [data(1, 512, 3, 3), b.weight((4, 512, 3, 3))])
    case("ConvTranspose", [x, b.weight((8, 3, 2, 2))], strides=[2, 2])
    case("MatMul", [data(3, 37), b.weight((37, 11))])
    case("Gemm", [data(1, 40), weight(12, 40)], transB=1)
    case("Add", [data(2, 3, 5), data(2, 3, 5)])
    case("Mul", [data(2, 3, 5), data(2, 3, 5)])
    case("AveragePool", [data(1, 5, 9, 11)], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    case("GlobalAveragePool", [data(1, 5, 9, 11)])
    case("ReduceMean", [data(1, 5, 11), b.constant(np.array([-1]))])
    case("Identity", [data(2, 3, 5)])
    case("Relu", [data(2, 3, 5)])


def write(path):
    b = Builder()
    for _, zero, scale in TYPES:
        quantised(b, zero, scale)
    for _, *ends in TYPES:
        for _, *to in TYPES:
            if to[0].dtype != ends[0].dtype and (ends[0].itemsize == 2 or to[0].itemsize == 2):
                mixed(b, ends, to)
    q, s, z = b.node("DynamicQuantizeLinear", [b.input(3, 65)], 3)
    sums = b.node("MatMulInteger", [q, b.constant(b.rng.integers(-128, 128, (65, 19)).astype(np.int8)), z])
    b.output(b.node("Mul", [b.node("Cast", [sums], to=T.FLOAT), s]))
    at = b.node("ArgMax", [b.input(3, 7)], axis=1)
    b.output(at, T.INT64)
    b.output(b.node("Gather", [b.input(9, 4), at], axis=0))
    b.output(b.node("Softmax", [b.input(5, 40)], axis=0))
    onnx.save(b.model(), path)
    return path
