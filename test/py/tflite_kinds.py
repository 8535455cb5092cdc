# SPDX-License-Identifier: Apache-2.0
"""One random operator of each kind: odd shapes, paddings and strides, zero points at the ends of their range, scales
that saturate and scales that do not. A kind is a function of a net, of its random numbers, and of the type of
quantised numbers, which is empty for floats."""
import numpy as np
from flatbuffers import flexbuffers

from tflite_net import (ACTIVATIONS, S, TYPES, data, options, result, same_numbers, scale_of, slid, variable, weights,
                        window)


def conv(net, r, q, kind=None):
    groups = r.pick(1, 1, 1, 2) if q and not kind else 1
    depth, outputs = groups * r.int(1, 9), groups * r.int(1, 9)
    (kh, kw), (sh, sw), padding = window(r, 4)
    dh, dw = r.pick((1, 1), (1, 1), (2, 1), (1, 3))
    shape = [r.int(1, 2), (kh - 1) * dh + r.int(1, 8), (kw - 1) * dw + r.int(1, 8), depth]
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [outputs, kh, kw, depth // groups], 0, x, kh * kw * depth // groups,
                         True if r.oracle == "litert" else None, kind)  # which refuses others
    slid(net, y, shape, (kh, kw), (sh, sw), (dh, dw), padding, outputs)
    net.operator("CONV_2D", 3, [x, w, bias], [y], options(
        "Conv2D", padding=padding, strideH=sh, strideW=sw, dilationHFactor=dh, dilationWFactor=dw,
        fusedActivationFunction=r.pick(*ACTIVATIONS)))


def depthwise(net, r, q, kind=None):
    depth, each = r.int(1, 9), r.pick(1, 1, 2, 3)
    (kh, kw), (sh, sw), padding = window(r, 4)
    dh, dw = r.pick((1, 1), (1, 1), (2, 1), (1, 3))
    shape = [r.int(1, 2), (kh - 1) * dh + r.int(1, 8), (kw - 1) * dw + r.int(1, 8), depth]
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [1, kh, kw, depth * each], 3, x, kh * kw,
                         has_bias=True, kind=kind)  # without one the oracle ends
    slid(net, y, shape, (kh, kw), (sh, sw), (dh, dw), padding, depth * each)
    net.operator("DEPTHWISE_CONV_2D", 3, [x, w, bias], [y], options(
        "DepthwiseConv2D", padding=padding, strideH=sh, strideW=sw, dilationHFactor=dh, dilationWFactor=dw,
        depthMultiplier=each, fusedActivationFunction=r.pick(*ACTIVATIONS)))


def conv_3d(net, r, q):
    """Weights have the window first, then inputs, then outputs."""
    depth, outputs, kernel = r.int(1, 4), r.int(1, 5), [r.int(1, 3) for _ in range(3)]
    stride, dilation, padding = [r.int(1, 2) for _ in range(3)], r.pick(1, 1, 2), r.int(0, 1)
    shape = [r.int(1, 2), *[(k - 1) * dilation + r.int(1, 4) for k in kernel], depth]
    x = net.input("float32", shape)
    w = net.tensor("float32", [*kernel, depth, outputs], data=r.floats([*kernel, depth, outputs]))
    bias = net.tensor("float32", [outputs], data=r.floats([outputs]))
    net.operator("CONV_3D", 1, [x, w, r.pick(bias, -1)], [net.tensor("float32", [])], options(
        "Conv3D", padding=padding, strideD=stride[0], strideH=stride[1], strideW=stride[2], dilationDFactor=dilation,
        dilationHFactor=dilation, dilationWFactor=dilation, fusedActivationFunction=r.pick(*ACTIVATIONS)))


def fully_connected(net, r, q, kind=None):
    depth, outputs = r.int(1, 70), r.int(1, 20)
    shape = r.pick([r.int(1, 3), depth], [r.int(1, 3), r.int(1, 3), depth])
    keep = len(shape) == 3 and r.pick(True, False)
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [outputs, depth], 0, x, depth, kind=kind)
    rows = int(np.prod(shape[:-1]))
    net.graph.tensors[y].shape = shape[:-1] + [outputs] if keep else [rows, outputs]
    net.operator("FULLY_CONNECTED", 5 if keep else 4, [x, w, bias], [y], options(
        "FullyConnected", fusedActivationFunction=r.pick(*ACTIVATIONS), keepNumDims=keep,
        asymmetricQuantizeInputs=kind == "int8" and not q and r.pick(False, True)))


def pool(name):
    def one(net, r, q):
        (kh, kw), (sh, sw), padding = window(r, 5)
        shape = [r.int(1, 2), kh + r.int(0, 7), kw + r.int(0, 7), r.int(1, 9)]
        x = data(net, r, q, shape)
        same = net.graph.tensors[x].quantization
        y = result(net, r, q, same.scale[0] if q else None, same.zeroPoint[0] if q else None)
        slid(net, y, shape, (kh, kw), (sh, sw), (1, 1), padding, shape[3])
        net.operator(name, 1 if name == "L2_POOL_2D" else 2, [x], [y], options(
            "Pool2D", padding=padding, strideH=sh, strideW=sw, filterHeight=kh, filterWidth=kw,
            fusedActivationFunction=r.pick(*ACTIVATIONS)))
    return one


def binary(name, kind):
    def one(net, r, q):
        shape = r.shape()
        other = r.pick(shape, shape, [1] * len(shape), [1] * (len(shape) - 1) + shape[-1:])
        a = data(net, r, q, shape)
        b = data(net, r, q, other)
        if r.pick(True, False):  # a constant
            t = net.graph.inputs.pop()
            values = r.codes(other, q=q) if q else r.floats(other)
            net.fill(t, values)
        sa, sb = (scale_of(net, a), scale_of(net, b)) if q else (1, 1)
        filled = sa * sb * 60 if name == "MUL" else max(sa, sb)
        y = result(net, r, q, np.float32(filled * np.exp(r.rng.uniform(-1.5, 1.5))))
        net.graph.tensors[y].shape = shape
        net.operator(name, 2 if name != "SUB" else 3, [a, b], [y], options(
            kind, fusedActivationFunction=r.pick(*ACTIVATIONS)))
    return one


def unary(name, version=1, steps=None, zero=None, kind=None, high=0.2, finer=None, **fields):
    """steps: of the result in 1, of numbers of 8 bits; zero: their zero point, of numbers with a sign; finer: steps of
    the result in one of the data that the oracles take at most."""
    def one(net, r, q):
        shape = r.shape()
        x = data(net, r, q, shape, r.scale(1e-3, high) / (256 if q == "int16" else 1))
        at = None if zero is None else {"uint8": zero + 128, "int16": 0}.get(q, zero)
        scale = None if steps is None else 1 / (32768 if q == "int16" else steps)
        if finer and q:
            scale = max(r.scale(), np.float32(1.01 / finer) * scale_of(net, x))
        y = result(net, r, q, scale, at)
        net.graph.tensors[y].shape = shape
        net.operator(name, version, [x], [y], options(kind, **fields) if kind else None)
    return one


def root(name):
    """Of numbers that are not below 0: those of 16 bits are amounts of others, of which LiteRT has none."""
    def one(net, r, q):
        shape = r.shape()
        x, y = data(net, r, q, shape, None, 0 if q == "int16" else -128), result(net, r, q)
        if q == "int16" and r.oracle == "litert":
            x = net.input(q, shape, scale_of(net, x), span=(0, 32767))
        elif q == "int16":
            amount = result(net, r, q, scale_of(net, x))
            net.graph.tensors[amount].shape = shape
            net.operator("ABS", 4, [x], [amount], options("Abs"))
            x = amount
        net.graph.tensors[y].shape = shape
        net.operator(name, 2, [x], [y])
    return one


def leaky_relu(net, r, q):
    unary("LEAKY_RELU", kind="LeakyRelu", alpha=float(r.rng.uniform(-0.5, 1.5)))(net, r, q)


def softmax(net, r, q):
    shape = r.shape(most=4)[1:] + [r.int(1, 40)]
    x = data(net, r, q, shape, r.scale(1e-3, 2.0))
    to_wide = q == "int8" and r.pick(False, True)
    if to_wide:
        y = net.tensor("int16", [], 1 / 65536, -32768)
    else:
        y = result(net, r, q, 1 / (32768 if q == "int16" else 256), {"int8": -128}.get(q, 0))
    net.graph.tensors[y].shape = shape
    net.operator("SOFTMAX", 2, [x], [y], options("Softmax", beta=float(r.pick(1.0, 1.0, 0.3, 2.5))))


def log_softmax(net, r, q):
    shape = r.shape(most=4)[1:] + [r.int(1, 40)]
    x = data(net, r, q, shape, r.scale(1e-3, 1.0))
    y = result(net, r, q, 1 / 16, 255 if q == "uint8" else 127)
    net.graph.tensors[y].shape = shape
    net.operator("LOG_SOFTMAX", 2, [x], [y])


def quotient(net, r, q):
    """What C does not define stays out of the way: no divisor is 0, and no number is so small that the kernel shifts it
    by 32 bits and more."""
    shape, up = r.shape(), 128 * (q == "uint8")
    ends = [int(r.pick(-128, 127)) for _ in range(2)]
    a, b = (data(net, r, q, shape, None, end + up) for end in ends)
    if q:
        net.spans[a] = (-64 + up, 127 + up) if ends[0] < 0 else (-128 + up, 63 + up)
        net.spans[b] = (-127 + up, 127 + up) if ends[1] < 0 else (-128 + up, 126 + up)
    else:
        net.spans[b] = (0.5, 4.0)
    y = result(net, r, q, np.float32(scale_of(net, a) / scale_of(net, b) * r.rng.uniform(0.002, 1)) if q else None)
    net.graph.tensors[y].shape = shape
    net.operator("DIV", 1, [a, b], [y], options("Div", fusedActivationFunction=r.pick(*ACTIVATIONS)))


def requantize(net, r, q):
    shape = r.shape()
    x = data(net, r, q, shape)
    to = r.pick(*{"int8": ("int8", "int8", "int16", "int32"), "int16": ("int8", "int16", "int32"),
                  "uint8": ("int8", "uint8")}.get(q, ("int8", "int16")))
    to = "int16" if to == "int32" and r.oracle == "litert" else to
    y = net.tensor(to, shape, r.scale(), 0 if to == "int32" else r.zero(to))
    net.spans[x] = 30.0
    net.operator("QUANTIZE", 1, [x], [y])


def dequantize(net, r, q):
    shape = r.shape()
    x = data(net, r, q or "int8", shape)
    y = net.tensor("float32", shape)
    net.operator("DEQUANTIZE", 2, [x], [y])


def reshape(net, r, q):
    shape = r.shape(4)
    to = r.pick([-1, shape[3]], [int(np.prod(shape))], [shape[0], -1])
    t = net.tensor("int32", [len(to)], data=to)
    x, (y,) = same_numbers(net, r, q, shape, "RESHAPE", 1, [t], "Reshape", newShape=to)
    left = int(np.prod(shape)) // abs(int(np.prod(to)))
    net.graph.tensors[y].shape = [left if d == -1 else d for d in to]


def transpose(net, r, q):
    shape = r.shape()
    perm = list(r.rng.permutation(len(shape)))
    x, (y,) = same_numbers(net, r, q, shape, "TRANSPOSE", 1, [net.tensor("int32", [len(perm)], data=perm)], "Transpose")
    net.graph.tensors[y].shape = [shape[p] for p in perm]


def pad(net, r, q):
    shape = r.shape(4)
    pads = np.array([[r.int(0, 3), r.int(0, 3)] for _ in shape], np.int32)
    x, (y,) = same_numbers(net, r, q, shape, "PAD", 1, [net.tensor("int32", [4, 2], data=pads)], "Pad")
    net.graph.tensors[y].shape = [s + int(p.sum()) for s, p in zip(shape, pads)]


def mean(net, r, q):
    shape = r.shape(4, 6)
    axes = r.pick([1, 2], [1, 2], [-1], [0, 3], [1], [2, 1, -2])
    keep = r.pick(True, False)
    gone = {a % 4 for a in axes}
    x = data(net, r, q, shape)
    y = result(net, r, q, np.float32(scale_of(net, x) * np.exp(r.rng.uniform(-1, 1))) if q else None)
    net.graph.tensors[y].shape = [1 if i in gone else s for i, s in enumerate(shape) if keep or i not in gone]
    net.operator("MEAN", 2, [x, net.tensor("int32", [len(axes)], data=axes)], [y], options("Reducer", keepDims=keep))


def concatenation(net, r, q):
    shape = r.shape()
    axis = r.int(-len(shape), len(shape) - 1)
    scale, zero = r.scale(), r.zero(q)
    parts = []
    for _ in range(r.int(2, 4)):
        shape = list(shape)
        shape[axis] = r.int(1, 5)
        parts.append(data(net, r, q, shape, *((None, None) if q == "uint8" and r.pick(True, False) else (scale, zero))))
    y = result(net, r, q, scale, zero)
    shape[axis] = sum(net.graph.tensors[p].shape[axis] for p in parts)
    net.graph.tensors[y].shape = shape
    net.operator("CONCATENATION", 2, parts, [y], options("Concatenation", axis=axis, fusedActivationFunction=0))


def strided_slice(net, r, q):
    shape = r.shape(r.int(1, 4))
    n = len(shape)
    begin, end = [r.int(-s, s - 1) for s in shape], [r.int(-s, s) for s in shape]
    steps = [r.pick(1, 1, 2, -1) for _ in shape]
    masks = [r.int(0, 2**n - 1), r.int(0, 2**n - 1), r.pick(0, 0, r.int(0, 2**n - 1))]
    index = []
    for i, s in enumerate(shape):
        if masks[2] >> i & 1:
            index.append(0 if masks[0] >> i & 1 else begin[i])
            steps[i] = 1
        else:
            first, last = (None if mask >> i & 1 else at[i] for mask, at in zip(masks, (begin, end)))
            index.append(slice(first, last, steps[i]))
    want = np.zeros(shape)[tuple(index)].shape
    if 0 in want:
        return strided_slice(net, r, q)
    more = [net.tensor("int32", [n], data=v) for v in (begin, end, steps)]
    x, (y,) = same_numbers(net, r, q, shape, "STRIDED_SLICE", 2, more, "StridedSlice", beginMask=masks[0],
                           endMask=masks[1], shrinkAxisMask=masks[2], ellipsisMask=0, newAxisMask=0)
    net.graph.tensors[y].shape = list(want)
    return None


def split(net, r, q):
    shape, parts = r.shape(), r.int(1, 3)
    axis = r.int(0, len(shape) - 1)
    each = list(shape)
    shape[axis] *= parts
    t = net.tensor("int32", [], data=axis)
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    ys = [result(net, r, q, p.scale[0] if q else None, p.zeroPoint[0] if q else None) for _ in range(parts)]
    for y in ys:
        net.graph.tensors[y].shape = each
    net.operator("SPLIT", 2, [t, x], ys, options("Split", numSplits=parts))


def split_v(net, r, q):
    """Parts of sizes of their own, more than shapes have dimensions in half of the cases."""
    shape, sizes = r.shape(), [r.int(1, 4) for _ in range(r.pick(3, 40))]
    axis = r.int(0, len(shape) - 1)
    shape[axis] = sum(sizes)
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    given, t = net.tensor("int32", [len(sizes)], data=sizes), net.tensor("int32", [], data=axis)
    ys = [result(net, r, q, p.scale[0] if q else None, p.zeroPoint[0] if q else None) for _ in sizes]
    for y, size in zip(ys, sizes):
        net.graph.tensors[y].shape = shape[:axis] + [size] + shape[axis + 1:]
    net.operator("SPLIT_V", 2, [x, given, t], ys, options("SplitV", numSplits=len(sizes)))


def ints(net, *values, kind="int32"):
    """A constant vector, which may be empty; a single number has no dimensions."""
    return net.tensor(kind, [len(values[0])] if isinstance(values[0], (list, tuple)) else [], data=values[0])


def spread(net, r, q, shape, name, version, more=(), to=None, kind=None, before=(), **fields):
    """An operator on x whose result, of the shape `to`, has a scale of its own."""
    x = data(net, r, q, shape)
    y = result(net, r, q, np.float32(scale_of(net, x) * np.exp(r.rng.uniform(-1.5, 1.5))) if q else None)
    net.graph.tensors[y].shape = shape if to is None else to
    net.operator(name, version, [*before, x, *more], [y], options(kind, **fields) if kind else None)
    return x, y


def moved(net, r, q, shape, name, version, more=(), to=None, kind=None, **fields):
    x, (y,) = same_numbers(net, r, q, shape, name, version, more, kind, **fields)
    net.graph.tensors[y].shape = shape if to is None else to


def update_slice(net, r, q):
    """The part may begin outside of what it is put into: it is moved there."""
    shape = r.shape(r.int(1, 4))
    part = [r.int(1, s) for s in shape]
    scale, zero = r.scale(), r.zero(q)
    x, p = data(net, r, q, shape, scale, zero), data(net, r, q, part, scale, zero)
    start = net.input("int32", [len(shape)], span=(-3, 8))
    y = result(net, r, q, scale, zero)
    net.graph.tensors[y].shape = shape
    net.operator("DYNAMIC_UPDATE_SLICE", 1, [x, p, start], [y])


def resize(name, kind, version=4):
    def one(net, r, q):
        shape, size = r.shape(4, 6), [r.int(1, 9), r.int(1, 9)]
        corners = r.pick(False, False, True)
        moved(net, r, q, shape, name, version, [ints(net, size)], [shape[0], *size, shape[3]], kind,
              alignCorners=corners, halfPixelCenters=not corners and r.pick(False, True))
    return one


def gather(net, r, q):
    """Entries of the first axes may have indices of their own."""
    shape = r.shape(r.int(1, 4))
    axis = r.int(0, len(shape) - 1)
    batch = r.int(0, axis) if r.pick(True, False) else 0
    at = shape[:batch] + r.shape(r.int(1, 2), 3)
    many = r.rng.integers(0, shape[axis], at)
    t = net.tensor("int32", at, data=many)
    moved(net, r, q, shape, "GATHER", 2, [t], shape[:axis] + at[batch:] + shape[axis + 1:], "Gather",
          axis=axis - r.pick(0, len(shape)), batchDims=batch)


def gather_nd(net, r, q):
    shape = r.shape(r.int(2, 4))
    depth, rows = r.int(1, len(shape)), r.int(1, 4)
    at = np.stack([r.rng.integers(0, s, rows) for s in shape[:depth]], -1)
    moved(net, r, q, shape, "GATHER_ND", 1, [net.tensor("int32", [rows, depth], data=at)], [rows] + shape[depth:])


def arg_choice(name, kind):
    def one(net, r, q):
        shape = r.shape(r.int(2, 4))
        axis = r.int(-len(shape), len(shape) - 1)
        x = data(net, r, q, shape)
        y = net.tensor("int32", [s for i, s in enumerate(shape) if i != axis % len(shape)])
        net.operator(name, 2, [x, ints(net, axis)], [y], options(kind, outputType=2))
    return one


def reduction(name, moves=False):
    def one(net, r, q):
        shape, keep = r.shape(4, 6), r.pick(True, False)
        axes = r.pick([1, 2], [-1], [0, 3], [1], [2, 1, -2], *([[]] if moves else []))
        gone = {a % 4 for a in axes}
        to = [1 if i in gone else s for i, s in enumerate(shape) if keep or i not in gone]
        (moved if moves else spread)(net, r, q, shape, name, 2, [ints(net, axes)], to, "Reducer", keepDims=keep)
    return one


def two(name, version=1, positive=False, kind=None):
    """Two operands that broadcast, with scales of their own, and a result of the same type."""
    def one(net, r, q):
        shape = r.shape()
        other = r.pick(shape, [1] * len(shape), [1] * (len(shape) - 1) + shape[-1:])
        a, b = data(net, r, q, shape), data(net, r, q, other)
        if positive:
            net.spans[b] = (0.5, 4.0)
        y = result(net, r, q, np.float32(max(scale_of(net, a), scale_of(net, b)) ** 2 * r.rng.uniform(10, 200))
                   if q else None)
        net.graph.tensors[y].shape = shape
        net.operator(name, version, [a, b], [y], options(kind) if kind else None)
    return one


def compared(name):
    def one(net, r, q):
        shape = r.shape()
        other = r.pick(shape, [1] * len(shape), [1] * (len(shape) - 1) + shape[-1:])
        a, b = data(net, r, q, shape), data(net, r, q, other)
        net.operator(name, 2, [a, b], [net.tensor("bool", shape)])
    return one


def logical(name):
    def one(net, r, q):
        shape = r.shape()
        net.operator(name, 1, [net.input("bool", shape) for _ in range(2 - (name == "LOGICAL_NOT"))],
                     [net.tensor("bool", shape)])
    return one


def alike(name, *kinds):
    """Two operands of one shape and type, which is one of the kinds."""
    def one(net, r, q):
        shape, kind = r.shape(), r.pick(*kinds)
        net.operator(name, 1, [net.input(kind, shape) for _ in range(2)], [net.tensor(kind, shape)])
    return one


def select(net, r, q):
    shape = r.shape()
    scale, zero = r.scale(), r.zero(q)
    c, a, b = net.input("bool", shape), data(net, r, q, shape, scale, zero), data(net, r, q, shape, scale, zero)
    y = result(net, r, q, scale, zero)
    net.graph.tensors[y].shape = shape
    net.operator("SELECT_V2", 1, [c, a, b], [y])


def prelu(net, r, q):
    shape = r.shape(4)
    slope = [1, 1, shape[3]]
    x = data(net, r, q, shape)
    a = data(net, r, q, slope)
    net.fill(net.graph.inputs.pop(), r.codes(slope, q=q) if q else r.floats(slope))
    y = result(net, r, q, np.float32(scale_of(net, x) * np.exp(r.rng.uniform(-1, 1))) if q else None)
    net.graph.tensors[y].shape = shape
    net.operator("PRELU", 1, [x, a], [y])


def batch_matmul(net, r, q):
    batch, m, k, n = r.pick([], [2], [1, 3]), r.int(1, 5), r.int(1, 20), r.int(1, 5)
    x, y = r.pick(False, True), r.pick(False, True)
    a = data(net, r, q, batch + ([k, m] if x else [m, k]))
    b = data(net, r, q, batch + ([n, k] if y else [k, n]))
    filled = scale_of(net, a) * scale_of(net, b) * k**0.5 * 90 if q else None
    # of 16 bits numbers are 256 times as large; a scaled sum beyond 32 bits wraps in LiteRT, and is saturated here
    filled = np.float32(filled * np.exp(r.rng.uniform(-1, 2)) * (256 if q == "int16" else 1)) if q else None
    z = result(net, r, q, filled)
    net.graph.tensors[z].shape = batch + [m, n]
    net.operator("BATCH_MATMUL", 3, [a, b], [z], options("BatchMatMul", adjX=x, adjY=y))


def transpose_conv(net, r, q):
    depth, outputs, padding = r.int(1, 6), r.int(1, 6), r.int(0, 1)
    kernel, stride = [r.int(1, 4), r.int(1, 4)], [r.int(1, 3), r.int(1, 3)]
    shape = [r.int(1, 2), r.int(1, 5), r.int(1, 5), depth]
    size = [s * t if padding == 0 else (s - 1) * t + max(k, t) for s, t, k in zip(shape[1:3], stride, kernel)]
    to = [shape[0], *size, outputs]
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [outputs, *kernel, depth], 0, x, max(1, kernel[0] * kernel[1] * depth // 4), True)
    net.graph.tensors[y].shape = to
    net.operator("TRANSPOSE_CONV", 3, [ints(net, to), w, x, bias], [y], options(
        "TransposeConv", padding=padding, strideH=stride[0], strideW=stride[1]))


def space_to_batch(net, r, q):
    blocks, depth = [r.int(1, 3), r.int(1, 3)], r.int(1, 4)
    whole, before = [b * r.int(1, 3) for b in blocks], [r.int(0, 1), r.int(0, 2)]
    size = [r.int(max(1, w - b - 2), w - b) if w > b else w for w, b in zip(whole, before)]
    before = [min(b, w - s) for b, w, s in zip(before, whole, size)]
    pads = [[b, w - s - b] for b, w, s in zip(before, whole, size)]
    shape = [r.int(1, 2), *size, depth]
    to = [shape[0] * blocks[0] * blocks[1], whole[0] // blocks[0], whole[1] // blocks[1], depth]
    moved(net, r, q, shape, "SPACE_TO_BATCH_ND", 2, [ints(net, blocks), net.tensor("int32", [2, 2], data=pads)], to)


def batch_to_space(net, r, q):
    blocks = [r.int(1, 3), r.int(1, 3)]
    shape = [r.int(1, 2) * blocks[0] * blocks[1], r.int(1, 4), r.int(1, 4), r.int(1, 4)]
    whole = [s * b for s, b in zip(shape[1:3], blocks)]
    crops = [[r.int(0, (w - 1) // 2), r.int(0, (w - 1) // 2)] for w in whole]
    to = [shape[0] // blocks[0] // blocks[1], *(w - sum(c) for w, c in zip(whole, crops)), shape[3]]
    moved(net, r, q, shape, "BATCH_TO_SPACE_ND", 2, [ints(net, blocks), net.tensor("int32", [2, 2], data=crops)], to)


def space_to_depth(net, r, q):
    b, shape = r.int(1, 3), r.shape(4, 4)
    moved(net, r, q, [shape[0], shape[1] * b, shape[2] * b, shape[3]], "SPACE_TO_DEPTH", 2, (),
          [*shape[:3], shape[3] * b * b], "SpaceToDepth", blockSize=b)


def depth_to_space(net, r, q):
    b, shape = r.int(1, 3), r.shape(4, 4)
    moved(net, r, q, [*shape[:3], shape[3] * b * b], "DEPTH_TO_SPACE", 1, (),
          [shape[0], shape[1] * b, shape[2] * b, shape[3]], "DepthToSpace", blockSize=b)


def mirror_pad(net, r, q):
    shape, mode = r.shape(r.int(1, 4)), r.int(0, 1)
    pads = [[r.int(0, s - 1 + mode) for _ in range(2)] for s in shape]
    moved(net, r, q, shape, "MIRROR_PAD", 2, [net.tensor("int32", [len(shape), 2], data=pads)],
          [s + sum(p) for s, p in zip(shape, pads)], "MirrorPad", mode=mode)


def reverse(net, r, q):
    shape = r.shape(r.int(1, 4))
    moved(net, r, q, shape, "REVERSE_V2", 1, [ints(net, [r.int(0, len(shape) - 1)])])


def tile(net, r, q):
    shape = r.shape(r.int(1, 4), 4)
    times = [r.int(1, 3) for _ in shape]
    moved(net, r, q, shape, "TILE", 2, [ints(net, times)], [s * t for s, t in zip(shape, times)])


def broadcast_to(net, r, q):
    to = r.shape(4, 4)
    shape = [r.pick(1, s) for s in to]
    moved(net, r, q, shape, "BROADCAST_TO", 2, [ints(net, to)], to)


def fill(net, r, q):
    to = r.shape()
    v = net.input(q or "float32", [])
    net.operator("FILL", 1, [ints(net, to), v], [net.tensor(q or "float32", to)])


def one_hot(net, r, q):
    shape, depth = r.shape(r.int(1, 3), 4), r.int(1, 6)
    axis = r.pick(-1, r.int(0, len(shape)))
    at = net.tensor("int32", shape, data=r.rng.integers(-1, depth + 1, shape))
    to = list(shape)
    to.insert(len(shape) if axis == -1 else axis, depth)
    on = net.input("float32", [])
    net.operator("ONE_HOT", 1, [at, ints(net, depth), on, net.tensor("float32", [], data=-2.5)],
                 [net.tensor("float32", to)], options("OneHot", axis=axis))


def cumsum(net, r, q):
    shape = r.shape(r.int(1, 4))
    x, y = data(net, r, q, shape), result(net, r, q, r.scale(0.2, 5.0))
    net.graph.tensors[y].shape = shape
    net.operator("CUMSUM", 1, [x, ints(net, r.int(-len(shape), len(shape) - 1))], [y],
                 options("Cumsum", exclusive=r.pick(False, True), reverse=r.pick(False, True)))


def top_k(net, r, q):
    shape = r.shape(r.int(1, 3))
    k = r.int(1, shape[-1])
    to = shape[:-1] + [k]
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    y = result(net, r, q, p.scale[0] if q else None, p.zeroPoint[0] if q else None)
    net.graph.tensors[y].shape = to
    net.operator("TOPK_V2", 2, [x, ints(net, k)], [y, net.tensor("int32", to)])


def pack(net, r, q):
    shape, many = r.shape(r.int(1, 3), 4), r.int(1, 3)
    axis = r.int(-len(shape) - 1, len(shape))
    scale, zero = r.scale(), r.zero(q)
    parts = [data(net, r, q, shape, scale, zero) for _ in range(many)]
    y, to = result(net, r, q, scale, zero), list(shape)
    to.insert(axis % (len(shape) + 1), many)
    net.graph.tensors[y].shape = to
    net.operator("PACK", 2, parts, [y], options("Pack", valuesCount=many, axis=axis))


def unpack(net, r, q):
    shape = r.shape(r.int(2, 4), 3)
    axis = r.int(0, len(shape) - 1)
    x, ys = same_numbers(net, r, q, shape, "UNPACK", 2, (), "Unpack", shape[axis], num=shape[axis], axis=axis)
    for y in ys:
        net.graph.tensors[y].shape = shape[:axis] + shape[axis + 1:]


def slice_(net, r, q):
    shape = r.shape(r.int(1, 4))
    begin = [r.int(0, s - 1) for s in shape]
    size = [r.pick(-1, r.int(1, s - b)) for s, b in zip(shape, begin)]
    to = [s - b if n == -1 else n for s, b, n in zip(shape, begin, size)]
    moved(net, r, q, shape, "SLICE", 2, [ints(net, begin), ints(net, size)], to)


def squeeze(net, r, q):
    shape = r.shape(2, 5)
    moved(net, r, q, [1, shape[0], 1, shape[1]], "SQUEEZE", 1, (), [shape[0], shape[1]], "Squeeze", squeezeDims=[0, -2])


def expand_dims(net, r, q):
    shape = r.shape(r.int(1, 3))
    axis = r.int(-len(shape) - 1, len(shape))
    to = list(shape)
    to.insert(axis % (len(shape) + 1), 1)
    moved(net, r, q, shape, "EXPAND_DIMS", 1, [ints(net, axis)], to)


def choice(name):
    def one(net, r, q):
        shape = r.shape()
        other = r.pick(shape, [1] * len(shape), [1] * (len(shape) - 1) + shape[-1:])
        scale, zero = r.scale(), r.zero(q)
        a, b = data(net, r, q, shape, scale, zero), data(net, r, q, other, scale, zero)
        y = result(net, r, q, scale, zero)
        net.graph.tensors[y].shape = shape
        net.operator(name, 2, [a, b], [y])
    return one


def floats(name, version=1, kind=None, positive=False, **fields):
    """A function of one float."""
    def one(net, r, q):
        shape = r.shape()
        x, y = net.input("float32", shape), net.tensor("float32", shape)
        if positive:
            net.spans[x] = (0.01, 4.0)
        net.operator(name, version, [x], [y], options(kind, **fields) if kind else None)
    return one


def padv2(net, r, q):
    shape = r.shape(4)
    pads = np.array([[r.int(0, 3), r.int(0, 3)] for _ in shape], np.int32)
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    scale, zero = (p.scale[0], p.zeroPoint[0]) if q else (None, None)
    v = net.tensor(q or "float32", [1], scale, zero or 0, r.codes([1], q=q) if q else [1.5])
    y = result(net, r, q, scale, zero)
    net.graph.tensors[y].shape = [s + int(p.sum()) for s, p in zip(shape, pads)]
    net.operator("PADV2", 2, [x, net.tensor("int32", [4, 2], data=pads), v], [y])


def cast(net, r, q):
    shape, to = r.shape(), r.pick("float32", "int32", "int8", "int16")
    x = net.input(q or "float32", shape, span=300.0)
    net.operator("CAST", 1, [x], [net.tensor(to, shape)], options(
        "Cast", inDataType=TYPES[q or "float32"], outDataType=TYPES[to]))


def shape_of(net, r, q):
    shape = r.shape()
    net.operator("SHAPE", 1, [net.input("float32", shape)], [net.tensor("int32", [len(shape)])],
                 options("Shape", outType=2))


def add_n(net, r, q):
    shape, many, scale, zero = r.shape(), r.int(2, 5), r.scale(), r.zero(q)
    parts = [data(net, r, q, shape, scale, zero) for _ in range(many)]
    y = result(net, r, q, r.scale(0.2, 1.0))
    net.graph.tensors[y].shape = shape
    net.operator("ADD_N", 1, parts, [y])


def broadcast_args(net, r, q):
    """Of constant shapes; a shape that a model computes is the business of FILL."""
    to = r.shape(r.int(1, 4), 5)
    a = [r.pick(1, s) for s in to][r.int(0, len(to) - 1):]
    y = net.tensor("int32", [len(to)])
    net.operator("BROADCAST_ARGS", 1, [ints(net, a), ints(net, to)], [y])


def embedding_lookup(net, r, q, kind=None):
    """ids and the table stand in this order."""
    rows, shape = r.int(1, 3), [r.int(1, 9), *r.shape(r.int(1, 2), 5)]
    ids = net.tensor("int32", [rows], data=r.rng.integers(0, shape[0], rows))
    if kind:
        table = net.tensor("int8", shape, r.scale(), 0, r.codes(shape, -127))
    else:
        table = net.tensor("float32", shape, data=r.floats(shape))
    net.operator("EMBEDDING_LOOKUP", 3 if kind else 1, [ids, table], [net.tensor("float32", [rows, *shape[1:]])])


def range_(net, r, q):
    delta = r.pick(-3, -1, 1, 2, 5)
    start, count = r.int(-9, 9), r.int(1, 9)
    limit = start + delta * count - r.pick(0, (abs(delta) - 1) * (1 if delta > 0 else -1))
    kind = r.pick("int32", "float32")
    net.operator("RANGE", 1, [net.tensor(kind, [], data=v) for v in (start, limit, delta)], [net.tensor(kind, [count])])


def rank(net, r, q):
    net.operator("RANK", 1, [net.input("float32", r.shape())], [net.tensor("int32", [])])


def truth(name):
    """Whether any, or all, along axes are true."""
    def one(net, r, q):
        shape, keep = r.shape(4, 4), r.pick(True, False)
        axes = r.pick([1, 2], [-1], [0, 3], [1], [2, 1, -2])
        gone = {a % 4 for a in axes}
        x = net.input("bool", shape)
        y = net.tensor("bool", [1 if i in gone else s for i, s in enumerate(shape) if keep or i not in gone])
        net.operator(name, 1, [x, ints(net, axes)], [y], options("Reducer", keepDims=keep))
    return one


def reverse_sequence(net, r, q):
    shape = r.shape(r.int(2, 4), 6)
    axes = list(r.rng.permutation(len(shape)))
    along, batch = int(axes[0]), int(axes[1])
    lengths = r.rng.integers(1, shape[along] + 1, shape[batch])
    moved(net, r, q, shape, "REVERSE_SEQUENCE", 1, [net.tensor("int32", [shape[batch]], data=lengths)], shape,
          "ReverseSequence", seqDim=along, batchDim=batch)


def scatter_nd(net, r, q):
    """Several indices may be the same: their updates add up."""
    to = r.shape(r.int(1, 4), 5)
    depth, rows = r.int(1, len(to)), r.int(1, 6)
    at = np.stack([r.rng.integers(0, s, rows) for s in to[:depth]], -1)
    updates = net.input("float32", [rows, *to[depth:]])
    net.operator("SCATTER_ND", 1, [net.tensor("int32", [rows, depth], data=at), updates, ints(net, to)],
                 [net.tensor("float32", to)])


def select_rows(net, r, q):
    """The condition has the shape of the data, or is a vector along the first axis, or a single one."""
    shape = r.shape()
    condition = r.pick(shape, shape[:1], [])
    scale, zero = r.scale(), r.zero(q)
    c, a, b = net.input("bool", condition), data(net, r, q, shape, scale, zero), data(net, r, q, shape, scale, zero)
    y = result(net, r, q, scale, zero)
    net.graph.tensors[y].shape = shape
    net.operator("SELECT", 1, [c, a, b], [y])


def where(net, r, q):
    """How many rows there are depends on the condition, which is constant here."""
    shape = r.shape()
    condition = r.rng.integers(0, 2, shape).astype(bool)
    net.operator("WHERE", 1, [net.tensor("bool", shape, data=condition)],
                 [net.tensor("int64", [int(condition.sum()), len(shape)])])


def segments(name, has_count=True):
    """Rows by the numbers of segments; one below 0 counts for none."""
    def one(net, r, q):
        shape, kind, count = r.shape(r.int(1, 4), 5), r.pick("float32", "int32"), r.int(1, 6)
        lead = r.int(1, len(shape)) if has_count else 1
        ids = r.rng.integers(-1 if has_count else 0, count, shape[:lead])
        ids = ids if has_count else np.unique(np.sort(ids), return_inverse=True)[1]  # without gaps
        at = net.input("int32", shape[:lead], span=(-1, count - 1)) if has_count and r.pick(True, False) else \
            net.tensor("int32", shape[:lead], data=ids)
        more = [ints(net, count)] if has_count else []
        y = net.tensor(kind, [count if has_count else int(ids[-1]) + 1, *shape[lead:]])
        net.operator(name, 1, [net.input(kind, shape), at, *more], [y])
    return one


def sparse_to_dense(net, r, q):
    """Indices of a vector may be a vector or a single one; there may be one value for all."""
    to, kind = r.shape(r.int(1, 4), 5), r.pick("float32", "int32")
    every = np.argwhere(np.ones(to))
    at = every[np.sort(r.rng.choice(len(every), r.int(1, min(6, len(every))), False))]
    rows = len(at)
    if len(to) == 1:
        at = r.pick(at, at[:, 0], at[0, 0])
        rows = 1 if np.ndim(at) == 0 else rows
    values = net.input(kind, r.pick([], [rows]) if rows > 1 else r.pick([], [1]))
    net.operator("SPARSE_TO_DENSE", 1, [net.tensor("int32", list(np.shape(at)), data=at), ints(net, to), values,
                                        net.tensor(kind, [], data=-3)], [net.tensor(kind, to)])


def matrix_diag(net, r, q):
    shape, kind = r.shape(r.int(1, 3), 5), q or r.pick("float32", "int32")
    net.operator("MATRIX_DIAG", 1, [net.input(kind, shape)], [net.tensor(kind, shape + shape[-1:])])


def matrix_set_diag(net, r, q):
    shape, kind = r.shape(r.int(2, 4), 5), q or r.pick("float32", "int32")
    net.operator("MATRIX_SET_DIAG", 1, [net.input(kind, shape), net.input(kind, shape[:-2] + [min(shape[-2:])])],
                 [net.tensor(kind, shape)])


def bucketize(net, r, q):
    """Boundaries that numbers meet."""
    shape, kind = r.shape(), r.pick("float32", "int32", "int64")
    ends = [float(v) for v in np.sort(r.rng.integers(-60, 60, r.int(0, 9)) / r.pick(1, 16))]
    net.operator("BUCKETIZE", 1, [net.input(kind, shape)], [net.tensor("int32", shape)],
                 options("Bucketize", boundaries=ends))


def atan2(net, r, q):
    """Also of numbers of which many are 0. LiteRT takes equal shapes alone."""
    shape = r.shape()
    y, x = net.input("float32", shape), net.input("float32", shape)
    if r.pick(True, False):
        turned = [net.tensor("float32", shape) for _ in range(2)]
        for a, b in zip((y, x), turned):
            net.operator("FLOOR", 1, [a], [b])
        y, x = turned
    net.operator("ATAN2", 1, [y, x], [net.tensor("float32", shape)])


def right_shift(net, r, q):
    shape, kind = r.shape(), r.pick("int8", "uint8", "int16", "int32")
    net.operator("RIGHT_SHIFT", 1, [net.input(kind, shape), net.input(kind, shape, span=(0, 40))],
                 [net.tensor(kind, shape)])


def conv_3d_transpose(net, r, q):
    """Weights have the window first, then outputs, then inputs."""
    depth, outputs, padding = r.int(1, 4), r.int(1, 5), r.int(0, 1)
    kernel, stride = [r.int(1, 3) for _ in range(3)], [r.int(1, 2) for _ in range(3)]
    shape = [r.int(1, 2), *[r.int(1, 4) for _ in kernel], depth]
    size = [s * t if padding == 0 else (s - 1) * t + max(k, t) for s, t, k in zip(shape[1:4], stride, kernel)]
    w = net.tensor("float32", [*kernel, outputs, depth], data=r.floats([*kernel, outputs, depth]))
    bias = net.tensor("float32", [outputs], data=r.floats([outputs]))
    to = [shape[0], *size, outputs]
    net.operator("CONV_3D_TRANSPOSE", 1, [ints(net, to), w, net.input("float32", shape), bias],
                 [net.tensor("float32", to)], options(
        "Conv3D", padding=padding, strideD=stride[0], strideH=stride[1], strideW=stride[2],
        fusedActivationFunction=r.pick(*ACTIVATIONS)))


def unique(net, r, q):
    count, kind = r.int(1, 12), r.pick("int32", "float32")
    values = r.rng.integers(-3, 4, count)
    net.operator("UNIQUE", 1, [net.tensor(kind, [count], data=values)],
                 [net.tensor(kind, [len(set(values))]), net.tensor("int32", [count])], options("Unique", idxOutType=2))


def suppression(version):
    """Boxes by their scores, in any order of corners."""
    def one(net, r, q):
        boxes, most = r.int(1, 30), r.int(1, 12)
        x, s = net.input("float32", [boxes, 4], span=(0.0, 4.0)), net.input("float32", [boxes], span=(0.0, 1.0))
        limits = [ints(net, most), *[net.tensor("float32", [], data=v) for v in (
            r.pick(0.1, 0.3, 0.5), r.pick(0.0, 0.3, 0.7), *([0.0] if version == 5 else []))]]
        ys = [net.tensor("int32", [most]), net.tensor("int32", [])]
        ys[1:1] = [net.tensor("float32", [most])] if version == 5 else []
        net.operator(f"NON_MAX_SUPPRESSION_V{version}", 1, [x, s, *limits], ys)
    return one


def zeros_like(net, r, q):
    kind, shape = q or r.pick("float32", "int32"), r.shape()
    net.operator("ZEROS_LIKE", 1, [net.input(kind, shape)], [net.tensor(kind, shape)])


def composite(net, r, q):
    """Two operators in a graph of their own; the operand that is constant stays one there."""
    shape, outer = r.shape(), net.graph
    constant = r.pick(False, True)
    a = net.input("float32", shape)
    b = net.tensor("float32", shape, data=r.floats(shape)) if constant else net.input("float32", shape)
    y = net.tensor("float32", shape)
    net.graph = S.SubGraphT()
    net.graph.tensors, net.graph.operators, net.graph.outputs = [], [], []
    net.graph.inputs = [net.tensor("float32", shape), net.tensor("float32", shape)]
    z, w = net.tensor("float32", shape), net.tensor("float32", shape)
    net.operator("SUB", 1, net.graph.inputs, [z], options("Sub", fusedActivationFunction=1))
    net.operator("MUL", 1, [z, net.graph.inputs[0]], [w], options("Mul"))
    net.graph.outputs = [w]
    net.model.subgraphs.append(net.graph)
    net.graph = outer
    net.operator("STABLEHLO_COMPOSITE", 1, [a, b], [y])
    o = net.graph.operators[-1]
    o.builtinOptions2Type = S.BuiltinOptions2.StableHLOCompositeOptions
    o.builtinOptions2 = S.StableHLOCompositeOptionsT()
    o.builtinOptions2.name = b"test.scaled_difference"
    attributes = flexbuffers.Builder()
    with attributes.Map():
        pass
    o.builtinOptions2.compositeAttributes = list(attributes.Finish())
    o.builtinOptions2.decompositionSubgraphIndex, o.builtinOptions2.version = len(net.model.subgraphs) - 1, 1


def index_list(numbers, r):
    """In the narrowest type, or a wider one."""
    width = r.pick(8, 16, 32) if max(numbers, default=0) < 256 else 32
    name = {8: "Uint8Vector", 16: "Uint16Vector", 32: "Int32Vector"}[width]
    v = getattr(S, name + "T")()
    v.values = np.array(numbers, {8: np.uint8, 16: np.uint16, 32: np.int32}[width])
    return getattr(S.SparseIndexVector, name), v


def sparse(net, r, kind, values):
    """A constant whose levels are dense or sparse by chance, in any order of axes; some axes are cut into blocks."""
    rank = values.ndim
    blocks = {a: r.pick(*[b for b in range(1, n + 1) if n % b == 0]) for a, n in enumerate(values.shape) if r.int(0, 1)}
    axes, split = list(r.rng.permutation(rank)), []
    for a, n in enumerate(values.shape):
        split += [n // blocks[a], blocks[a]] if a in blocks else [n]
    place = {a: a + sum(b < a for b in blocks) for a in range(rank)}
    block_map = list(blocks)
    order = [int(a) for a in axes] + [rank + i for i in range(len(blocks))]
    levels = values.reshape(split).transpose([place[a] for a in axes] + [place[a] + 1 for a in block_map])
    p, nodes = S.SparsityParametersT(), [levels]
    p.traversalOrder, p.blockMap, p.dimMetadata = order, block_map, []
    for depth, size in enumerate(levels.shape):
        m = S.DimensionMetadataT()
        m.format, m.denseSize = (r.pick(0, 1) if depth < rank else 0), size
        if m.format == 0:
            nodes = [a[i] for a in nodes for i in range(size)]
        else:
            bounds, places, kept = [0], [], []
            for a in nodes:
                there = [i for i in range(size) if a[i].any()]
                places += there
                kept += [a[i] for i in there]
                bounds.append(len(places))
            nodes, m.denseSize = kept, 0
            m.arraySegmentsType, m.arraySegments = index_list(bounds, r)
            m.arrayIndicesType, m.arrayIndices = index_list(places, r)
        p.dimMetadata.append(m)
    t = net.tensor(kind, values.shape, data=np.array(nodes or [0], kind))
    net.graph.tensors[t].sparsity = p
    return t


def densify(net, r, q):
    shape = r.shape(r.int(1, 4), 6)
    kind = q or "float32"
    values = (r.codes(shape) if q else r.floats(shape)) * (r.rng.random(shape) < r.pick(0.1, 0.5, 0.9))
    t, y = sparse(net, r, kind, values.astype(kind)), net.tensor(kind, shape)
    net.operator("DENSIFY", 1, [t], [y])


# --- one step of an LSTM, with its states

def lstm_cell(net, r, q):
    """All weights are one matrix. The states are variables, or the caller's."""
    batch, inputs, cells = r.int(1, 3), r.int(1, 12), r.int(1, 9)
    x, state = net.input("float32", [batch, inputs]), [batch, cells]
    h, c = [variable(net, "float32", state) if r.pick(True, False) else net.input("float32", state, span=0.9)
            for _ in range(2)]
    w = net.tensor("float32", [4 * cells, inputs + cells], data=r.floats([4 * cells, inputs + cells]) * 0.5)
    b = net.tensor("float32", [4 * cells], data=r.floats([4 * cells]))
    ys = [net.tensor("float32", shape) for shape in (state, state, [batch, inputs + cells], [batch, 4 * cells])]
    net.operator("LSTM", 2, [x, h, w, b, c], ys, options("LSTM", fusedActivationFunction=4, kernelType=1))


def lstm_cell_of_bytes(net, r, q):
    batch, inputs, cells = r.int(1, 3), r.int(1, 12), r.int(1, 9)
    x, state = net.input("uint8", [batch, inputs], 1 / 128, 128), [batch, cells]
    h = net.input("uint8", state, 1 / 128, 128) if r.pick(True, False) else variable(net, "uint8", state, 1 / 128, 128)
    c = net.input("int16", state, 1 / 2048)
    w_scale = np.float32(r.rng.uniform(0.002, 0.05))
    w = net.tensor("uint8", [4 * cells, inputs + cells], w_scale, r.zero("uint8"),
                   r.codes([4 * cells, inputs + cells], q="uint8"))
    b = net.tensor("int32", [4 * cells], np.float32(w_scale / 128), 0, r.rng.integers(-9000, 9000, 4 * cells))
    ys = [net.tensor("uint8", state, 1 / 128, 128), net.tensor("int16", state, 1 / 2048),
          net.tensor("uint8", [batch, inputs + cells], 1 / 128, 128), net.tensor("int16", [batch, 4 * cells], 1 / 4096)]
    net.operator("LSTM", 2, [x, h, w, b, c], ys, options("LSTM", fusedActivationFunction=4, kernelType=1))


def lstm_step(net, r, q):
    """A matrix for each gate, as of layers over sequences."""
    batch, inputs, cells = r.int(1, 3), r.int(1, 12), r.int(1, 9)
    x = net.input("float32", [batch, inputs])
    ws = [net.tensor("float32", [cells, n], data=r.floats([cells, n]) * 0.5) for n in 4 * [inputs] + 4 * [cells]]
    bs = [net.tensor("float32", [cells], data=r.floats([cells])) for _ in range(4)]
    h, c = variable(net, "float32", [batch, cells]), variable(net, "float32", [batch, cells])
    net.operator("LSTM", 1, [x, *ws, -1, -1, -1, *bs, -1, -1, h, c], [net.tensor("float32", [batch, cells])], options(
        "LSTM", fusedActivationFunction=4, cellClip=r.pick(0.0, 0.7)))


# --- graphs in graphs

def inner_graph(net, inputs, make):
    """Its number. make: of its inputs, tensors of the types and shapes of those tensors, its outputs."""
    outer, net.graph = net.graph, S.SubGraphT()
    net.graph.tensors, net.graph.operators, net.graph.outputs, net.graph.inputs = [], [], [], []
    for t in inputs:
        t = outer.tensors[t]
        q = t.quantization
        kind = next(name for name, code in TYPES.items() if code == t.type)
        net.graph.inputs.append(net.tensor(kind, t.shape, q.scale[0] if q else None, q.zeroPoint[0] if q else 0))
    net.graph.outputs = make(*net.graph.inputs)
    net.model.subgraphs.append(net.graph)
    net.graph = outer
    return len(net.model.subgraphs) - 1


def like(net, t):
    """Another tensor of its type, shape and scale."""
    t = net.graph.tensors[t]
    q = t.quantization
    kind = next(name for name, code in TYPES.items() if code == t.type)
    return net.tensor(kind, t.shape, q.scale[0] if q else None, q.zeroPoint[0] if q else 0)


def condition(net, r, q):
    """One of two graphs, which the data chooses, or a constant; one hands an operand on as it is."""
    shape = r.shape()
    chosen = net.tensor("bool", [], data=r.pick(True, False)) if r.int(0, 3) == 0 else net.input("bool", [])
    scale, zero = r.scale(), r.zero()
    a, b = data(net, r, q, shape, scale, zero), data(net, r, q, shape, scale, zero)
    y, z = like(net, a), like(net, a)

    def sums(a, b):
        y = like(net, a)
        net.operator("ADD", 2, [a, b], [y], options("Add", fusedActivationFunction=0))
        return [y, b]

    def differences(a, b):
        y, z = like(net, a), like(net, a)
        net.operator("SUB", 2, [a, b], [y], options("Sub", fusedActivationFunction=0))
        net.operator("SUB", 2, [b, a], [z], options("Sub", fusedActivationFunction=0))
        return [y, z]
    yes, no = inner_graph(net, [a, b], sums), inner_graph(net, [a, b], differences)
    net.operator("IF", 1, [chosen, a, b], [y, z], options("If", thenSubgraphIndex=yes, elseSubgraphIndex=no))


def loop(net, r, q):
    """Rounds are counted down from a number of the data; the step and a vector stay as they are."""
    shape, scale, zero = r.shape(), r.scale(), r.zero()
    n = net.input("int32", [1])
    net.spans[n] = (0, 5)
    x, s = data(net, r, q, shape, scale, zero), data(net, r, q, shape[-1:], scale, zero)
    one = net.tensor("int32", [1], data=[1])

    def goes_on(n, x, s, one):
        more = net.tensor("bool", [1])
        net.operator("GREATER", 1, [n, net.tensor("int32", [1], data=[0])], [more])
        return [more]

    def body(n, x, s, one):
        y, m = like(net, x), like(net, n)
        net.operator("ADD", 2, [x, s], [y], options("Add", fusedActivationFunction=r.pick(0, 1)))
        net.operator("SUB", 1, [n, one], [m], options("Sub", fusedActivationFunction=0))
        return [m, y, s, one]
    ends = [like(net, t) for t in (n, x, s, one)]
    net.operator("WHILE", 1, [n, x, s, one], ends, options(
        "While", condSubgraphIndex=inner_graph(net, [n, x, s, one], goes_on),
        bodySubgraphIndex=inner_graph(net, [n, x, s, one], body)))


# --- audio front ends of TensorFlow Lite Micro

def signal_window(net, r, q):
    """Frames of the window's length, or several of them in a row."""
    length, shape = r.int(1, 20), r.shape(r.int(0, 2)) if r.int(0, 1) else []
    shape = shape + [length * r.pick(1, 1, 3)]
    x = net.input("int16", shape)
    w = net.tensor("int16", [length], data=r.codes([length], q="int16"))
    net.operator("SignalWindow", 1, [x, w], [net.tensor("int16", shape)], {"shift": r.int(0, 17)})


def signal_fft_auto_scale(net, r, q):
    """Of -32768 there is one in some cases: the kernel counts on from there, in short ones from numbers below 0."""
    length = r.int(1, r.pick(5, 40))
    x = net.input("int16", [length])
    net.spans[x] = r.pick(None, "low")
    net.operator("SignalFftAutoScale", 1, [x], [net.tensor("int16", [length]), net.tensor("int32", [])], {})


def signal_energy(net, r, q):
    bins = r.int(1, 30)
    net.operator("SignalEnergy", 1, [net.input("int16", [2 * bins])], [net.tensor("uint32", [bins])],
                 {"start_index": 0, "end_index": bins})  # the kernel leaves the others as they are


def spectrum(name, inverse):
    """In floats and in both fixed points; lengths with factors of 2, 3 and 5."""
    def one(net, r, q):
        for kind in ("int16", "int32", "float32"):
            length = 2 * r.pick(2, 4, 8, 16, 32, 64, 128, 256, 6, 12, 30, 20, 60, 90, 150, 240)
            have = length if inverse else r.int(length // 2, length)
            shape = r.shape(r.int(0, 2), 3)
            ends = shape + [have], shape + [length + 2]
            x = net.input(kind, ends[1] if inverse else ends[0], span="wide")
            net.operator(name, 1, [x], [net.tensor(kind, shape + [length] if inverse else ends[1])],
                         {"T": TYPES[kind], "fft_length": length})
    return one


def fake_quant(net, r, q):
    shape = r.shape()
    net.operator("FAKE_QUANT", 1, [net.input("float32", shape)], [net.tensor("float32", shape)], options(
        "FakeQuant", min=-float(r.rng.uniform(0.1, 4)), max=float(r.rng.uniform(0.1, 4)), numBits=r.pick(4, 8, 8, 16)))


def local_response(net, r, q):
    shape = r.shape(3) + [r.int(1, 20)]
    net.operator("LOCAL_RESPONSE_NORMALIZATION", 1, [net.input("float32", shape)], [net.tensor("float32", shape)],
                 options("LocalResponseNormalization", radius=r.int(1, 6), bias=1.0, alpha=0.3,
                         beta=r.pick(0.5, 0.75)))


def rfft_2d(net, r, q):
    """Of images or of rows, which are cut or have zeros behind them; what comes out has another shape in between."""
    part = r.pick("COMPLEX_ABS", "REAL", "IMAG")
    lengths, batch = [r.pick(1, 1, 2, 8), r.pick(4, 8, 32, 64)], r.shape(r.int(0, 2), 3)
    x = net.input("float32", batch + [r.pick(lengths[0], r.int(1, 9)), r.pick(lengths[1], r.int(1, 70))])
    made = batch + [lengths[0], lengths[1] // 2 + 1]
    spectrum, flat = net.tensor("complex64", made), [int(np.prod(made[:-1])), made[-1]]
    net.operator("RFFT2D", 1, [x, ints(net, lengths)], [spectrum])
    if r.pick(True, False):
        moved_to = net.tensor("complex64", flat)
        net.operator("RESHAPE", 1, [spectrum, ints(net, flat)], [moved_to], options("Reshape", newShape=flat))
        net.graph.outputs.pop()
        spectrum, made = moved_to, flat
    net.graph.outputs.pop()
    net.operator(part, 1, [spectrum], [net.tensor("float32", made)])


def signal_filter_bank(net, r, q):
    """Bands that overlap, of any widths, 0 among them."""
    channels, bins = r.int(1, 12), r.int(5, 60)
    widths = r.rng.integers(0, 6, channels + 1)
    starts = [r.int(0, bins - w) for w in widths]
    places = np.concatenate([[0], np.cumsum(widths)[:-1]])
    count = max(1, int(widths.sum()))
    weights = [net.tensor("int16", [count], data=r.rng.integers(low, 4097, count)) for low in (0, -4096)]
    tables = [net.tensor("int16", [channels + 1], data=t) for t in (starts, places, widths)]
    net.operator("SignalFilterBank", 1, [net.input("uint32", [bins]), *weights, *tables],
                 [net.tensor("uint64", [channels])], {"num_channels": channels})


def signal_square_root(net, r, q):
    channels = r.int(1, 40)
    net.operator("SignalFilterBankSquareRoot", 1,
                 [net.input("uint64", [channels]), net.tensor("int32", [], data=r.int(0, 15))],
                 [net.tensor("uint32", [channels])])


def gains(strength, offset, bits):
    """A table of gains as the front end makes them: of each power of two the value at its beginning, the slope and what
    is left in the middle."""
    def gain(x):
        return min(32767, int((1 << bits) * (x / 2.0**6 + offset)**-strength + 0.5))
    table = [gain(0), gain(1), gain(2)]
    for interval in range(2, 33):
        x0, x1 = 2**(interval - 1), min(2**interval, 2**32 - 1)
        y0, y1, y2 = gain(x0), gain(x0 + (x1 - x0) // 2), gain(x1)
        slope, bend = y1 - y0, y2 - y0
        table += [y0, 4 * slope - bend, bend - (4 * slope - bend), 0]
    return np.clip(table[:125], -32768, 32767)


def signal_pcan(net, r, q):
    channels = r.int(1, 40)
    ends = [net.input("uint32", [channels]) for _ in range(2)]
    lut = net.tensor("int16", [125], data=gains(r.pick(0.5, 0.95, 1.2), r.pick(20.0, 80.0, 3000.0), r.int(10, 20)))
    net.operator("SignalPCAN", 1, [*ends, lut], [net.tensor("uint32", [channels])], {"snr_shift": r.int(0, 20)})


def signal_log(net, r, q):
    channels = r.int(1, 40)
    net.operator("SignalFilterBankLog", 1, [net.input("uint32", [channels])], [net.tensor("int16", [channels])],
                 {"input_correction_bits": r.int(0, 5), "output_scale": r.pick(64, 1600, 1 << 14, r.int(1, 1 << 20))})


def detection(net, r, q):
    """Boxes of anchors: chosen for each class, or by their best score. Behind those that are found the kernel leaves
    its results as they are, and TensorFlow Lite Micro writes beyond them where a box has several classes."""
    boxes, classes, background = r.int(1, 30), r.int(1, 5), r.int(0, 1)
    regular, most = r.pick(False, True), r.int(1, 12)
    each = 1 if regular or q or r.oracle == "micro" else r.int(1, 3)  # LiteRT sorts equal scores in any order
    places = np.concatenate([r.rng.uniform(0, 1, [boxes, 2]), r.rng.uniform(0.2, 0.6, [boxes, 2])], 1)
    if q:
        x = net.input(q, [1, boxes, 4], 0.03, 128)
        s = net.input(q, [1, boxes, classes + background], 1 / 256, 0)
        a = net.tensor(q, [boxes, 4], 1 / 200, 3, np.round(places * 200) + 3)
    else:
        x, s = net.input("float32", [1, boxes, 4]), net.input("float32", [1, boxes, classes + background])
        a = net.tensor("float32", [boxes, 4], data=places)
        net.spans[s] = (0.0, 1.0)
    ys = [net.tensor("float32", shape) for shape in ([1, most * each, 4], [1, most * each], [1, most * each], [1])]
    for y in ys[:3]:
        net.counts[y] = ys[3], each, min(each, classes)
    net.operator("TFLite_Detection_PostProcess", 1, [x, s, a], ys, {
        "max_detections": most, "max_classes_per_detection": each, "detections_per_class": r.int(1, 10),
        "use_regular_nms": regular, "nms_score_threshold": r.pick(0.0, 0.25, 0.6), "num_classes": classes,
        "nms_iou_threshold": r.pick(0.3, 0.5, 0.75, 1.0),
        "y_scale": 10.0, "x_scale": r.pick(10.0, 7.3), "h_scale": 5.0, "w_scale": r.pick(5.0, 2.1)})


def spectrogram(net, r, q):
    window, stride, channels = r.int(3, 70), r.int(1, 40), r.int(1, 3)
    frames, bins = r.int(1, 6), 2**max(2, int(np.ceil(np.log2(window)))) // 2 + 1
    x = net.input("float32", [window + stride * (frames - 1) + r.int(0, stride - 1), channels])
    net.operator("AudioSpectrogram", 1, [x], [net.tensor("float32", [channels, frames, bins])], {
        "window_size": window, "stride": stride, "magnitude_squared": r.pick(True, False)})


def mfcc(net, r, q):
    bins, channels, rate = r.int(20, 129), r.int(2, 12), r.pick(8000, 16000)
    coefficients, shape = r.int(1, channels), [r.int(1, 2), r.int(1, 4)]
    x = net.input("float32", shape + [bins], span=(0.1, 9.0))
    net.operator("Mfcc", 1, [x, net.tensor("int32", [1], data=[rate])],
                 [net.tensor("float32", shape + [coefficients])], {
        "upper_frequency_limit": r.pick(3800.0, 4000.0), "lower_frequency_limit": r.pick(0.0, 20.0, 125.0),
        "filterbank_channel_count": channels, "dct_coefficient_count": coefficients})


def by(layer, kind):
    """A layer with weights of that type."""
    return lambda net, r, q: layer(net, r, q, kind)


KINDS = {
    "conv_hybrid": by(conv, "int8"), "depthwise_hybrid": by(depthwise, "int8"),
    "fully_connected_hybrid": by(fully_connected, "int8"),
    "conv_int4": by(conv, "int4"), "fully_connected_int4": by(fully_connected, "int4"),
    "conv": conv, "depthwise": depthwise, "fully_connected": fully_connected,
    "l2_pool": pool("L2_POOL_2D"), "update_slice": update_slice,
    "average_pool": pool("AVERAGE_POOL_2D"), "max_pool": pool("MAX_POOL_2D"),
    "add": binary("ADD", "Add"), "sub": binary("SUB", "Sub"), "mul": binary("MUL", "Mul"),
    "relu": unary("RELU", 2), "relu6": unary("RELU6", 2),
    "logistic": unary("LOGISTIC", 2, 256, -128), "tanh": unary("TANH", 2, 128, 0),
    "hard_swish": unary("HARD_SWISH", finer=128), "leaky_relu": leaky_relu, "softmax": softmax, "quantize": requantize,
    "dequantize": dequantize, "reshape": reshape, "transpose": transpose, "pad": pad, "mean": mean,
    "concatenation": concatenation, "strided_slice": strided_slice, "split": split, "split_v": split_v,
    "resize_bilinear": resize("RESIZE_BILINEAR", "ResizeBilinear", 3),
    "resize_nearest": resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor", 3),
    "gather_rows": gather, "gather_nd": gather_nd, "arg_max": arg_choice("ARG_MAX", "ArgMax"),
    "arg_min": arg_choice("ARG_MIN", "ArgMin"), "reduce_sum": reduction("SUM"),
    "reduce_max": reduction("REDUCE_MAX", True),
    "reduce_min": reduction("REDUCE_MIN", True), "reduce_prod": reduction("REDUCE_PROD", True),
    "squared_difference": two("SQUARED_DIFFERENCE", 2), "floor_div": two("FLOOR_DIV", 1, True),
    "floor_mod": two("FLOOR_MOD", 1, True), "pow": two("POW", 1),
    "bitwise_xor": alike("BITWISE_XOR", "int8", "int16", "int32"),
    **{"stablehlo_" + k: alike("STABLEHLO_" + k.upper(), "float32", "int32") for k in ("add", "multiply", "maximum",
                                                                                   "minimum")},
    "less": compared("LESS"),
    "greater": compared("GREATER"),
    "less_equal": compared("LESS_EQUAL"), "greater_equal": compared("GREATER_EQUAL"), "equal": compared("EQUAL"),
    "not_equal": compared("NOT_EQUAL"), "logical_and": logical("LOGICAL_AND"), "logical_or": logical("LOGICAL_OR"),
    "logical_not": logical("LOGICAL_NOT"), "select_v2": select, "prelu": prelu, "batch_matmul": batch_matmul,
    "transpose_conv": transpose_conv, "space_to_batch": space_to_batch, "batch_to_space": batch_to_space,
    "space_to_depth": space_to_depth, "depth_to_space": depth_to_space, "mirror_pad": mirror_pad, "reverse": reverse,
    "tile": tile, "broadcast_to": broadcast_to, "fill": fill, "one_hot": one_hot, "cumsum": cumsum, "top_k": top_k,
    "pack": pack, "unpack": unpack, "slice": slice_, "squeeze": squeeze, "expand_dims": expand_dims,
    "maximum": choice("MAXIMUM"), "minimum": choice("MINIMUM"), "padv2": padv2, "cast": cast, "shape_of": shape_of,
    "exp": unary("EXP", 1), "log": floats("LOG", positive=True), "log_table": unary("LOG", 2), "abs": unary("ABS", 2),
    "rsqrt": floats("RSQRT", positive=True), "sqrt": floats("SQRT", positive=True), "square": floats("SQUARE"),
    "neg": floats("NEG"), "sin": floats("SIN"), "cos": floats("COS"), "floor": floats("FLOOR"), "ceil": floats("CEIL"),
    "round": floats("ROUND"), "relu_n1_to_1": unary("RELU_N1_TO_1"), "gelu": unary("GELU", 1, kind="Gelu"),
    "elu": unary("ELU"), "l2_norm": unary("L2_NORMALIZATION", 2, 128, 0, kind="L2Norm"),
    "sqrt_table": root("SQRT"), "rsqrt_table": root("RSQRT"), "conv_3d": conv_3d,
    "log_softmax": log_softmax, "div": quotient,
    "sum_of_many": add_n, "broadcast_args": broadcast_args, "embedding_lookup": embedding_lookup,
    "embedding_lookup_hybrid": by(embedding_lookup, "int8"), "range": range_, "rank": rank,
    "any_true": truth("REDUCE_ANY"), "all_true": truth("REDUCE_ALL"), "reverse_sequence": reverse_sequence,
    "scatter_nd": scatter_nd, "select_rows": select_rows, "sign": floats("SIGN"), "where": where,
    "zeros_like": zeros_like, "composite": composite,
    **{"unsorted_segment_" + k.lower(): segments("UNSORTED_SEGMENT_" + k) for k in ("SUM", "PROD", "MAX", "MIN")},
    "segment_sum": segments("SEGMENT_SUM", False), "sparse_to_dense": sparse_to_dense, "matrix_diag": matrix_diag,
    "matrix_set_diag": matrix_set_diag, "bucketize": bucketize, "atan2": atan2, "right_shift": right_shift,
    "conv_3d_transpose": conv_3d_transpose, "unique": unique, "suppression_4": suppression(4),
    "suppression_5": suppression(5),
    "signal_window": signal_window, "signal_fft_auto_scale": signal_fft_auto_scale, "signal_energy": signal_energy,
    "signal_rfft": spectrum("SignalRfft", False), "signal_irfft": spectrum("SignalIrfft", True),
    "signal_filter_bank": signal_filter_bank, "signal_square_root": signal_square_root, "signal_pcan": signal_pcan,
    "signal_log": signal_log, "detection": detection,
    "fake_quant": fake_quant, "local_response": local_response, "relu_0_to_1": unary("RELU_0_TO_1"),
    "rfft_2d": rfft_2d, "spectrogram": spectrogram, "mfcc": mfcc, "condition": condition, "loop": loop,
    "densify": densify, "lstm_cell": lstm_cell, "lstm_step": lstm_step,
    "lstm_cell_of_bytes": lstm_cell_of_bytes,
}

# Types that kinds are tried with: where TensorFlow Lite Micro has a kernel, and where LiteRT has one.
ALL = ("int8 int16 float32", "int8 uint8 int16 float32")
HAVE = {
    "conv_hybrid": ("", "float32"), "depthwise_hybrid": ("", "float32"), "fully_connected_hybrid": ("", "float32"),
    "conv_int4": ("int8", "int8"), "fully_connected_int4": ("int8", "int8"),
    **{k: ("float32", "float32") for k in (
        "floor_div", "floor_mod", "l2_pool", "log", "rsqrt", "sqrt", "square", "neg", "sin", "cos",
        "floor", "logical_and", "logical_or", "logical_not", "shape_of")},
    **{k: ("", "float32") for k in ("reduce_prod", "pow", "one_hot", "bitwise_xor")},
    **{k: ("", "float32") for k in KINDS if k.startswith("stablehlo_")},
    **{k: ("float32", "") for k in ("ceil", "round")},  # not in LiteRT's reference
    "resize_bilinear": ("int8 float32", ALL[1]), "resize_nearest": ALL, "gather_rows": ("int8 float32", ALL[1]),
    "gather_nd": ("int8 float32", "int8 uint8 float32"), "arg_max": ("int8 float32", "int8 uint8 float32"),
    "arg_min": ("int8 float32", "int8 uint8 float32"), "reduce_sum": ("int8 int16 float32", "float32"),
    "reduce_max": ("int8 float32", "int8 uint8 float32"), "reduce_min": ("int8 float32", "int8 uint8 float32"),
    "squared_difference": ALL[:1] + ("int8 float32",), "cumsum": ("int8 float32", "float32"),
    "sum_of_many": ("int8 float32", "float32"), "zeros_like": ("int8 float32", "float32"),
    "update_slice": ALL[:1] * 2, "log_softmax": ("int8 float32", "int8 uint8 float32"),
    "div": ("int8 float32", "uint8 float32"), "select_v2": ("int8 int16 float32", "int8 uint8 float32"),
    **{k: ("int8 float32", "int8 uint8 float32") for k in ("less", "greater", "less_equal", "greater_equal", "equal",
                                                          "not_equal")},
    "prelu": ("int8 float32", "int8 uint8 float32"), "batch_matmul": ("int8 int16 float32", "int8 int16 float32"),
    "transpose_conv": ("int8 int16 float32", "int8 int16 float32"),
    "space_to_batch": ("int8 float32", "int8 uint8 float32"),
    "batch_to_space": ("int8 float32", "int8 uint8 float32"), "space_to_depth": ("int8 float32", "int8 uint8 float32"),
    "depth_to_space": ("int8 float32", "int8 uint8 float32"), "mirror_pad": ("int8 float32", "int8 uint8 float32"),
    "reverse": ("", "uint8 int16 float32"), "tile": ("", "float32"), "broadcast_to": ("float32", "float32"),
    "fill": ("int8 float32", "float32"), "top_k": ("", "int8 uint8 float32"),
    "exp": ("float32", "int8 int16 float32"), "log_table": ("", "int8 int16"),
    "abs": ("int8 int16 float32", "int8 float32"),
    **{k: ("", "int8 uint8 float32") for k in ("relu_n1_to_1", "relu_0_to_1")},
    "gelu": ("", "int8 float32"), "elu": ("float32", ""),
    "cast": ("int8 float32", "int8 float32"), "padv2": ("int8 float32", "int8 uint8 float32"),
    **{k: ("float32", "float32") for k in ("broadcast_args", "all_true")},
    **{k: ("", "float32") for k in ("composite", "rfft_2d", "local_response", "fake_quant", "embedding_lookup",
                               "range", "rank", "any_true", "scatter_nd", "sign", "where")},
    **{k: ("float32", "") for k in KINDS if k.startswith("signal_")},  # they have types of their own
    **{k: ("", "float32") for k in KINDS if k.startswith(("unsorted_", "suppression_"))},
    **{k: ("", "float32") for k in ("sparse_to_dense", "bucketize", "atan2", "right_shift",
                               "conv_3d_transpose", "unique")},
    "segment_sum": ("", ""),  # not in LiteRT's reference
    **{k: ("", "int8 uint8 int16 float32") for k in ("matrix_diag", "matrix_set_diag")},
    "detection": ("float32", "float32 uint8"), "spectrogram": ("", "float32"), "mfcc": ("", "float32"),
    "densify": ("", "int8 float32"), "lstm_cell": ("", "float32"), "lstm_step": ("", "float32"),
    "lstm_cell_of_bytes": ("", "uint8"), "l2_norm": ("int8 float32", "int8 uint8 float32"),
    "sqrt_table": ("", "int8"), "rsqrt_table": ("int8 int16", "int8 int16"), "conv_3d": ("", "float32"),
    "condition": ("int8 float32", "int8 float32"), "loop": ("int8 float32", "int8 float32"),
    "embedding_lookup_hybrid": ("float32", "float32"), "reverse_sequence": ("", "uint8 int16 float32"),
    "select_rows": ("", "int8 uint8 int16 float32"),
    "hard_swish": ("int8 float32", "int8 uint8 float32"), "dequantize": ("int8 int16", "int8 uint8 int16"),
}
