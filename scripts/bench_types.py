# SPDX-License-Identifier: Apache-2.0
"""More lists for `performance.py --operators`: `sizes` has operators of f32 at other sizes than bench_operators.py,
most of them small or odd, a few large; `f16` and `i64` have those operators that models use with these types."""
import functools
from types import SimpleNamespace

import bench_operators
import numpy as np
from bench_operators import IMAGE, F, weights
from onnx import TensorProto

FLOAT, F16, I32, I64, BOOL = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64,
                              TensorProto.BOOL)
SIZES, HALVES, INTEGERS = [], [], []
size = functools.partial(bench_operators.case, cases=SIZES)
half = functools.partial(bench_operators.case, cases=HALVES, kind=F16)
integer = functools.partial(bench_operators.case, cases=INTEGERS, kind=I64)


def half_weights(*shape):
    return weights(*shape).astype(np.float16)


LARGE = [1, 16, 200, 210]
for unary in ("Relu", "Exp"):
    size(unary, "3x17x19", [[1, 3, 17, 19]])
    size(unary, "16x200x210", [LARGE])
size("Add", "7x13x11 twice", [[7, 13, 11]] * 2)
size("Add", "16x200x210 twice", [LARGE] * 2)
size("Mul", "a number for each channel, 37x17x19", [[1, 37, 17, 19]], [weights(37, 1, 1)])
size("Div", "i32, 48x40x60 twice", [IMAGE] * 2, kind=I32)
size("Where", "77x129", [[77, 129]] * 3, kind=[BOOL, FLOAT, FLOAT], limits={0: 2})
size("BatchNormalization", "37x17x19", [[1, 37, 17, 19]], [weights(37), weights(37), weights(37), np.ones(37, F)])
size("Softmax", "last of 12x49x49", [[12, 49, 49]])
size("Softmax", "1x50257", [[1, 50257]])
size("LayerNormalization", "33x77", [[33, 77]], [weights(77), weights(77)])
size("LayerNormalization", "196x768", [[196, 768]], [weights(768), weights(768)])
size("InstanceNormalization", "13x19x21", [[1, 13, 19, 21]], [weights(13), weights(13)])
size("ReduceMean", "1280 images of 7x7", [[1, 1280, 7, 7]], [np.array([2, 3])])
size("ReduceMax", "1280 images of 7x7", [[1, 1280, 7, 7]], [np.array([2, 3])])
size("ReduceSum", "last of 1000x33", [[1000, 33]], [np.array([1])])
size("ReduceMax", "first of 65x77", [[65, 77]], [np.array([0])])
size("ArgMax", "500x21", [[500, 21]], axis=1)
size("CumSum", "first of 65x77", [[65, 77]], [np.array(0)])
size("TopK", "5 of 65, 30 rows", [[30, 65]], [np.array([5])], results=2)
size("MaxPool", "2x2x2, stride 2, 8x16x24x24", [[1, 8, 16, 24, 24]], kernel_shape=[2] * 3, strides=[2] * 3)
size("MaxPool", "3x3x3, stride 1, 8x12x17x17", [[1, 8, 12, 17, 17]], kernel_shape=[3] * 3, pads=[1] * 6)
size("MaxPool", "2x2, 64x17x17", [[1, 64, 17, 17]], kernel_shape=[2, 2], strides=[2, 2])
size("MaxPool", "3x3, stride 2, 64x112x112", [[1, 64, 112, 112]], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
size("GlobalMaxPool", "512x7x7", [[1, 512, 7, 7]])
size("GlobalAveragePool", "1280x7x7", [[1, 1280, 7, 7]])
size("GlobalAveragePool", "64x33x35", [[1, 64, 33, 35]])
size("AveragePool", "2x2, stride 2, 64x17x17", [[1, 64, 17, 17]], kernel_shape=[2, 2], strides=[2, 2])
size("AveragePool", "2x2x2, stride 2, 8x16x24x24", [[1, 8, 16, 24, 24]], kernel_shape=[2] * 3, strides=[2] * 3)
size("Resize", "nearest, 3x, 17x13x13", [[1, 17, 13, 13]], [None, F([1, 1, 3, 3])], mode="nearest",
     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
size("Resize", "linear, 4x, 21x32x32", [[1, 21, 32, 32]], [None, F([1, 1, 4, 4])], mode="linear")
size("Pad", "zeros by 3, 3x65x67", [[1, 3, 65, 67]], [np.array([0, 0, 3, 3, 0, 0, 3, 3])])
size("Transpose", "33x77", [[33, 77]], perm=[1, 0])
size("Transpose", "to channels first, 56x56x64", [[1, 56, 56, 64]], perm=[0, 3, 1, 2])
size("Transpose", "last two of 32x49x65", [[32, 49, 65]], perm=[0, 2, 1])
size("Concat", "last axis, 200x77 and 200x45", [[200, 77], [200, 45]], axis=1)
size("Slice", "a part, 48x40x60", [IMAGE], [np.array([3, 5]), np.array([33, 49]), np.array([2, 3])])
size("Split", "in three, 200x93", [[200, 93]], results=3, axis=1, num_outputs=3)
size("Tile", "2x3 times 77x45", [[77, 45]], [np.array([2, 3])])
size("Expand", "77x1 to 77x245", [[77, 1]], [np.array([77, 245])])
size("Gather", "77 rows of 1000x64", [[1000, 64], [77]], kind=[FLOAT, I64], limits={1: 1000})
size("GatherElements", "200x300, rows", [[200, 300]] * 2, kind=[FLOAT, I64], limits={1: 300}, axis=1)
size("GatherElements", "200x300, columns", [[200, 300]] * 2, kind=[FLOAT, I64], limits={1: 200}, axis=0)
size("MatMul", "7x9 by 9x11", [[7, 9], [9, 11]])
size("MatMul", "384x384 by 384x384", [[384, 384]] * 2)
size("MatMul", "1x333 by 333x777", [[1, 333], [333, 777]])
size("Gemm", "1x1280x1000, transposed", [[1, 1280]], [weights(1000, 1280), weights(1000)], transB=1)
for before, after, side in ((17, 35, 28), (24, 144, 28), (35, 17, 28), (20, 24, 14)):
    size("Conv", f"1x1, {before} to {after} @{side}", [[1, before, side, side]], [weights(after, before, 1, 1)])
size("Conv", "3x3, 17 to 19 @21", [[1, 17, 21, 21]], [weights(19, 17, 3, 3)], pads=[1] * 4)
size("Conv", "3x3, 3 to 32 @113, stride 2", [[1, 3, 113, 113]], [weights(32, 3, 3, 3)], pads=[1] * 4, strides=[2, 2])
size("Conv", "depthwise 3x3, 144 @29, stride 2", [[1, 144, 29, 29]], [weights(144, 1, 3, 3)], pads=[1] * 4,
     strides=[2, 2], group=144)
size("Conv", "1-D, 5, 40 to 48 @99", [[1, 40, 99]], [weights(48, 40, 5)], pads=[2, 2])
size("Conv", "3x3x3, 8 to 16, 8x17x17", [[1, 8, 8, 17, 17]], [weights(16, 8, 3, 3, 3)], pads=[1] * 6)
size("ConvTranspose", "4x4, stride 2, 24 to 12 @19", [[1, 24, 19, 19]], [weights(24, 12, 4, 4)], strides=[2, 2],
     pads=[1] * 4)
size("LSTM", "11 steps of 33", [[11, 1, 33]], [weights(1, 132, 33), weights(1, 132, 33), weights(1, 264)], results=3,
     hidden_size=33)

for operator in ("Relu", "Sigmoid", "Tanh"):
    half(operator, "48x40x60", [IMAGE])
half("Add", "48x40x60 twice", [IMAGE] * 2)
half("Mul", "48x40x60 twice", [IMAGE] * 2)
half("Gelu", "96x1536", [[96, 1536]])
half("Softmax", "last of 8x100x100", [[8, 100, 100]])
half("LayerNormalization", "150x512", [[150, 512]], [half_weights(512), half_weights(512)])
half("ReduceMean", "last of 300x300", [[300, 300]], [np.array([1])])
half("ArgMax", "64x1500", [[64, 1500]], axis=1)
half("MaxPool", "3x3, stride 2", [[1, 48, 80, 90]], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
half("MaxPool", "2x2, stride 2", [[1, 48, 80, 90]], kernel_shape=[2, 2], strides=[2, 2])
half("AveragePool", "3x3, stride 1", [IMAGE], kernel_shape=[3, 3], pads=[1] * 4)
half("GlobalAveragePool", "320x10x10", [[1, 320, 10, 10]])
half("GlobalAveragePool", "512x7x7", [[1, 512, 7, 7]])
half("Resize", "linear, 2x", [IMAGE], [None, F([1, 1, 2, 2])], mode="linear")
half("Transpose", "600x800", [[600, 800]], perm=[1, 0])
half("Transpose", "to channels last", [IMAGE], perm=[0, 2, 3, 1])
half("Transpose", "heads", [[1, 100, 8, 48]], perm=[0, 2, 1, 3])
half("Concat", "of two images", [IMAGE] * 2, axis=1)
half("MatMul", "8x100x48x100", [[8, 100, 48], [8, 48, 100]])
half("Gemm", "96x512x512, transposed", [[96, 512]], [half_weights(512, 512), half_weights(512)], transB=1)
half("Conv", "3x3", [IMAGE], [half_weights(56, 48, 3, 3)], pads=[1] * 4)
half("Conv", "1x1", [IMAGE], [half_weights(96, 48, 1, 1)])
half("Conv", "depthwise 5x5", [IMAGE], [half_weights(48, 1, 5, 5)], pads=[2] * 4, group=48)
half("ConvTranspose", "2x2, stride 2", [[1, 48, 30, 30]], [half_weights(48, 24, 2, 2)], strides=[2, 2])
half("Cast", "to float", [IMAGE], to=FLOAT)
half("Cast", "from float", [IMAGE], kind=FLOAT, to=F16)

TOKENS = [128, 384]
for operator in ("Add", "Mul", "Div", "Mod", "Equal", "Less"):
    integer(operator, "128x384 twice", [TOKENS] * 2)
integer("Div", "by 16", [TOKENS], [np.array(16)])
integer("Mod", "by 60", [TOKENS], [np.array(60)])
integer("Where", "128x384", [TOKENS] * 3, kind=[BOOL, I64, I64], limits={0: 2})
integer("Gather", "300 of 1000", [[1000], [300]], limits={1: 1000})
integer("GatherElements", "128x384, rows", [TOKENS] * 2, limits={1: 384}, axis=1)
integer("Cast", "to float", [TOKENS], to=FLOAT)
integer("Cast", "from float", [TOKENS], kind=FLOAT, to=I64)
integer("Concat", "last axis, 128x384 twice", [TOKENS] * 2, axis=1)
integer("Transpose", "128x384", [TOKENS], perm=[1, 0])
integer("ReduceSum", "last of 128x384", [TOKENS], [np.array([1])])
integer("ReduceMax", "last of 128x384", [TOKENS], [np.array([1])])
integer("ArgMax", "last of 128x384", [TOKENS], axis=1)
integer("TopK", "10 of 384, 128 rows", [TOKENS], [np.array([10])], results=2)
integer("CumSum", "last of 128x384", [TOKENS], [np.array(1)])

LISTS = {name: SimpleNamespace(CASES=cases, model_of=bench_operators.model_of, operands_of=bench_operators.operands_of,
                               multiply_adds_of=bench_operators.multiply_adds_of)
         for name, cases in (("sizes", SIZES), ("f16", HALVES), ("i64", INTEGERS))}
