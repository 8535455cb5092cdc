#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of TensorFlow Lite compute what TensorFlow Lite Micro computes: quantised operators bit for bit, operators of
floats to 1e-5 of the largest number.

    tflite_models.py [--lathe FILE] [--seed N] [--count N] [--network-runs N] [--runs N] [--models FOLDER]
                     [--filter NAME]

Operators: COUNT networks of operators that stand side by side, one or two of each kind, with odd shapes, paddings and
strides, zero points at the ends of their range, scales that saturate and scales that do not, and numbers over the whole
range. Models: the networks NAME.tflite in FOLDER, each on RUNS random inputs. The
oracle is the package tflite_micro, networks are written with the schema in the package ai_edge_litert; without them,
which have wheels for few versions of Python, the exit status is 77.
"""
import argparse
import ctypes
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np

import package

try:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as S
    from tflite_micro.python.tflite_micro import runtime
except ImportError:
    runtime = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {"int8": 9, "float32": 0, "int32": 2, "int64": 4, "float16": 1, "int16": 7}
NOT_HERE = {"kws_float.tflite"}  # floats by weights of 8 bits, which the oracle does not have
ARENA = 1 << 25


class Net:
    """A model in the making: tensors, operators, which of the tensors are inputs and outputs."""

    def __init__(self):
        self.model, self.graph = S.ModelT(), S.SubGraphT()
        self.model.version, self.model.buffers, self.model.operatorCodes = 3, [S.BufferT()], []
        self.model.subgraphs = [self.graph]
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.spans = {}  # of inputs of floats

    def tensor(self, kind, shape, scale=None, zero=0, data=None, axis=0):
        t = S.TensorT()
        t.shape, t.type, t.name, t.buffer = list(shape), TYPES[kind], f"t{len(self.graph.tensors)}".encode(), 0
        if scale is not None:
            t.quantization = S.QuantizationParametersT()
            t.quantization.scale = list(np.atleast_1d(np.float32(scale)))
            t.quantization.zeroPoint = list(np.atleast_1d(np.int64(zero)))
            if len(t.quantization.zeroPoint) == 1:
                t.quantization.zeroPoint *= len(t.quantization.scale)
            t.quantization.quantizedDimension = axis
        if data is not None:
            b = S.BufferT()
            b.data = np.frombuffer(np.ascontiguousarray(data, kind).tobytes(), np.uint8)
            self.model.buffers.append(b)
            t.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, kind, shape, scale=None, zero=0, span=4.0):
        t = self.tensor(kind, shape, scale, zero)
        self.graph.inputs.append(t)
        self.spans[t] = span
        return t

    def operator(self, name, version, inputs, outputs, options=None):
        code = getattr(S.BuiltinOperator, name)
        have = [(c.builtinCode, c.version) for c in self.model.operatorCodes]
        if (code, version) not in have:
            c = S.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version = code, min(code, 127), version
            self.model.operatorCodes.append(c)
            have.append((code, version))
        o = S.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = have.index((code, version)), inputs, outputs
        if options is not None:
            o.builtinOptions = options
            o.builtinOptionsType = getattr(S.BuiltinOptions, type(options).__name__[:-1])
        self.graph.operators.append(o)
        self.graph.outputs += outputs

    def bytes(self):
        w = flatbuffers.Builder(1024)
        w.Finish(self.model.Pack(w), file_identifier=b"TFL3")
        return bytes(w.Output())


def options(kind, **fields):
    o = getattr(S, kind + "OptionsT")()
    for name, value in fields.items():
        setattr(o, name, value)
    return o


# --- one random operator of each kind, in numbers of 8 bits (q) and in floats

class Chance:
    def __init__(self, rng):
        self.rng = rng

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def zero(self):
        return self.pick(-128, 127, 0, self.int(-128, 127))

    def scale(self, low=1e-3, high=0.2):
        return np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def codes(self, shape, low=-128):
        return self.rng.integers(low, 128, shape).astype(np.int8)

    def floats(self, shape):
        return self.rng.normal(0, 1, shape).astype(np.float32)

    def shape(self, rank=None, most=7):
        return [self.int(1, most) for _ in range(rank or self.int(1, 4))]


ACTIVATIONS = (0, 0, 1, 2, 3)


def data(net, r, q, shape, scale=None, zero=None):
    scale = r.scale() if scale is None else scale
    return net.input("int8", shape, scale, r.zero() if zero is None else zero) if q else net.input("float32", shape)


def scale_of(net, t):
    return net.graph.tensors[t].quantization.scale[0]


def result(net, r, q, scale=None, zero=None):
    if not q:
        return net.tensor("float32", [])
    return net.tensor("int8", [], r.scale() if scale is None else scale, r.zero() if zero is None else zero)


def weights(net, r, q, shape, channel_axis, x, products, has_bias=None):
    """Weights, bias and result of a layer, the last with a scale that its sums fill, or that they leave."""
    count = shape[channel_axis]
    has_bias = r.pick(True, True, False) if has_bias is None else has_bias
    if not q:
        w = net.tensor("float32", shape, data=r.floats(shape))
        return w, (net.tensor("float32", [count], data=r.floats([count])) if has_bias else -1), result(net, r, q)
    scales = np.array([r.scale() for _ in range(r.pick(1, count))], np.float32)
    w = net.tensor("int8", shape, scales, 0, r.codes(shape, -127), channel_axis)
    sx = scale_of(net, x)
    bias = -1
    if has_bias:
        numbers = r.rng.integers(-20000, 20000, count)
        bias = net.tensor("int32", [count], sx * scales, 0, numbers)
    filled = float(sx) * float(scales.mean()) * products**0.5 * 74 * 74 / 60
    return w, bias, result(net, r, q, np.float32(filled * np.exp(r.rng.uniform(-2.5, 1.5))))


def window(r, most):
    extents = [r.int(1, most), r.int(1, most)]
    return extents, [r.int(1, 3), r.int(1, 3)], r.int(0, 1)


def slid(net, y, shape, kernel, stride, dilation, padding, outputs):
    """The shape of what a window makes: TensorFlow Lite Micro computes none."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    many = [-(-s // t) if padding == 0 else (s - e) // t + 1 for s, t, e in zip(shape[1:3], stride, reach)]
    net.graph.tensors[y].shape = [shape[0], *many, outputs]


def conv(net, r, q):
    groups = r.pick(1, 1, 1, 2) if q else 1
    depth, outputs = groups * r.int(1, 9), groups * r.int(1, 9)
    (kh, kw), (sh, sw), padding = window(r, 4)
    dh, dw = r.pick((1, 1), (1, 1), (2, 1), (1, 3))
    shape = [r.int(1, 2), (kh - 1) * dh + r.int(1, 8), (kw - 1) * dw + r.int(1, 8), depth]
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [outputs, kh, kw, depth // groups], 0, x, kh * kw * depth // groups)
    slid(net, y, shape, (kh, kw), (sh, sw), (dh, dw), padding, outputs)
    net.operator("CONV_2D", 3, [x, w, bias], [y], options(
        "Conv2D", padding=padding, strideH=sh, strideW=sw, dilationHFactor=dh, dilationWFactor=dw,
        fusedActivationFunction=r.pick(*ACTIVATIONS)))


def depthwise(net, r, q):
    depth, each = r.int(1, 9), r.pick(1, 1, 2, 3)
    (kh, kw), (sh, sw), padding = window(r, 4)
    dh, dw = r.pick((1, 1), (1, 1), (2, 1), (1, 3))
    shape = [r.int(1, 2), (kh - 1) * dh + r.int(1, 8), (kw - 1) * dw + r.int(1, 8), depth]
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [1, kh, kw, depth * each], 3, x, kh * kw,
                         has_bias=True)  # without one the oracle ends
    slid(net, y, shape, (kh, kw), (sh, sw), (dh, dw), padding, depth * each)
    net.operator("DEPTHWISE_CONV_2D", 3, [x, w, bias], [y], options(
        "DepthwiseConv2D", padding=padding, strideH=sh, strideW=sw, dilationHFactor=dh, dilationWFactor=dw,
        depthMultiplier=each, fusedActivationFunction=r.pick(*ACTIVATIONS)))


def fully_connected(net, r, q):
    depth, outputs = r.int(1, 70), r.int(1, 20)
    shape = r.pick([r.int(1, 3), depth], [r.int(1, 3), r.int(1, 3), depth])
    keep = len(shape) == 3 and r.pick(True, False)
    x = data(net, r, q, shape)
    w, bias, y = weights(net, r, q, [outputs, depth], 0, x, depth)
    rows = int(np.prod(shape[:-1]))
    net.graph.tensors[y].shape = shape[:-1] + [outputs] if keep else [rows, outputs]
    net.operator("FULLY_CONNECTED", 5 if keep else 4, [x, w, bias], [y], options(
        "FullyConnected", fusedActivationFunction=r.pick(*ACTIVATIONS), keepNumDims=keep))


def pool(name):
    def one(net, r, q):
        (kh, kw), (sh, sw), padding = window(r, 5)
        shape = [r.int(1, 2), kh + r.int(0, 7), kw + r.int(0, 7), r.int(1, 9)]
        x = data(net, r, q, shape)
        same = net.graph.tensors[x].quantization
        y = result(net, r, q, same.scale[0] if q else None, same.zeroPoint[0] if q else None)
        slid(net, y, shape, (kh, kw), (sh, sw), (1, 1), padding, shape[3])
        net.operator(name, 2, [x], [y], options(
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
            values = r.codes(other) if q else r.floats(other)
            net.model.buffers.append(S.BufferT())
            net.model.buffers[-1].data = np.frombuffer(values.tobytes(), np.uint8)
            net.graph.tensors[t].buffer = len(net.model.buffers) - 1
        sa, sb = (scale_of(net, a), scale_of(net, b)) if q else (1, 1)
        filled = sa * sb * 60 if name == "MUL" else max(sa, sb)
        y = result(net, r, q, np.float32(filled * np.exp(r.rng.uniform(-1.5, 1.5))))
        net.graph.tensors[y].shape = shape
        net.operator(name, 2 if name != "SUB" else 3, [a, b], [y], options(
            kind, fusedActivationFunction=r.pick(*ACTIVATIONS)))
    return one


def unary(name, version=1, scale=None, zero=None, kind=None, high=0.2, **fields):
    def one(net, r, q):
        shape = r.shape()
        x = data(net, r, q, shape, r.scale(1e-3, high))
        y = result(net, r, q, scale, zero)
        net.graph.tensors[y].shape = shape
        net.operator(name, version, [x], [y], options(kind, **fields) if kind else None)
    return one


def leaky_relu(net, r, q):
    unary("LEAKY_RELU", kind="LeakyRelu", alpha=float(r.rng.uniform(-0.5, 1.5)))(net, r, q)


def softmax(net, r, q):
    shape = r.shape(most=4)[1:] + [r.int(1, 40)]
    x = data(net, r, q, shape, r.scale(1e-3, 2.0))
    y = result(net, r, q, 1 / 256, -128)
    net.graph.tensors[y].shape = shape
    net.operator("SOFTMAX", 2, [x], [y], options("Softmax", beta=float(r.pick(1.0, 1.0, 0.3, 2.5))))


def requantize(net, r, q):
    shape = r.shape()
    x = data(net, r, q, shape)
    y = net.tensor("int8", shape, r.scale(), r.zero())
    net.spans[x] = 30.0
    net.operator("QUANTIZE", 1, [x], [y])


def dequantize(net, r, q):
    shape = r.shape()
    x = data(net, r, True, shape)
    y = net.tensor("float32", shape)
    net.operator("DEQUANTIZE", 2, [x], [y])


def same_numbers(net, r, q, shape, name, version, more=(), kind=None, results=1, **fields):
    """An operator that moves elements: the result has the scale of the data."""
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    ys = [result(net, r, q, p.scale[0] if q else None, p.zeroPoint[0] if q else None) for _ in range(results)]
    net.operator(name, version, [x, *more], ys, options(kind, **fields) if kind else None)
    return x, ys


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
    scale, zero = r.scale(), r.zero()
    parts = []
    for _ in range(r.int(2, 4)):
        shape = list(shape)
        shape[axis] = r.int(1, 5)
        parts.append(data(net, r, q, shape, scale, zero))
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


KINDS = {
    "conv": conv, "depthwise": depthwise, "fully_connected": fully_connected,
    "average_pool": pool("AVERAGE_POOL_2D"), "max_pool": pool("MAX_POOL_2D"),
    "add": binary("ADD", "Add"), "sub": binary("SUB", "Sub"), "mul": binary("MUL", "Mul"),
    "relu": unary("RELU", 2), "relu6": unary("RELU6", 2),
    "logistic": unary("LOGISTIC", 2, 1 / 256, -128), "tanh": unary("TANH", 2, 1 / 128, 0),
    "hard_swish": unary("HARD_SWISH"), "leaky_relu": leaky_relu, "softmax": softmax, "quantize": requantize,
    "dequantize": dequantize, "reshape": reshape, "transpose": transpose, "pad": pad, "mean": mean,
    "concatenation": concatenation, "strided_slice": strided_slice, "split": split, "split_v": split_v,
}


# --- a model against the oracle

def random_input(rng, shape, kind, span):
    if kind == np.int8:
        low, high = sorted(rng.integers(-128, 128, 2)) if rng.integers(2) else (-128, 127)
        return rng.integers(low, high + 1, shape).astype(np.int8)
    return rng.uniform(-span, span, shape).astype(kind)


class Report:
    def __init__(self):
        self.elements = self.wrong = 0
        self.failures = []

    def compare(self, what, got, want):
        want = np.asarray(want).reshape(got.shape)
        self.elements += want.size
        if got.dtype.kind == "f":
            room = 1e-5 * max(1e-6, float(np.abs(want).max(initial=0)))
            bad = int(np.count_nonzero(~(np.abs(got - want) <= room)))
        else:
            bad = int(np.count_nonzero(got != want))
        self.wrong += bad
        if bad and len(self.failures) < 20:
            at = np.flatnonzero(got.reshape(-1) != want.reshape(-1))[:4]
            self.failures.append(f"FAILED {what}: {bad} of {want.size} differ: "
                                 f"{got.reshape(-1)[at]} for {want.reshape(-1)[at]}")


def build(args, model, folder):
    """The package of a model as a shared library."""
    fault = package.compile_model(args.lathe, model, folder, "m", ["--target", args.target] if args.target else [])
    if fault:
        raise package.Failure(fault)
    command = [*args.cc.split(), "-shared", "-fPIC", "-w", f"-I{folder}/include", f"-I{folder}/src",
               package.one_source(folder), *sorted(glob.glob(f"{folder}/src/tvmrt*.c")), "-o", f"{folder}/m.so", "-lm",
               "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise package.Failure(done.stderr.strip()[:500])
    return ctypes.CDLL(f"{folder}/m.so")


def check(args, report, what, content, names, spans, rng, runs):
    """names: of each output, for messages."""
    try:
        oracle = runtime.Interpreter.from_bytes(content, arena_size=ARENA)
    except RuntimeError as e:
        report.failures.append(f"FAILED {what}: the oracle: {str(e)[:200]}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.tflite")
        with open(path, "wb") as f:
            f.write(content)
        try:
            library = build(args, path, folder + "/out")
            about = package.report(folder + "/out")
            for _ in range(runs):
                feed = {}
                for i, entry in enumerate(about["inputs"]):
                    x = random_input(rng, entry["shape"], package.DTYPES[entry["dtype"]], spans.get(i, 4.0))
                    feed[entry["name"]] = x
                    oracle.set_input(x, i)
                oracle.invoke()
                got = package.call(library, folder + "/out", "m", feed)
                for i, entry in enumerate(about["outputs"]):
                    report.compare(f"{what}, {names(i)}", got[entry["name"]], oracle.get_output(i))
        except package.Failure as e:
            report.failures.append(f"FAILED {what}: {e}")


def network(seed, kinds):
    net, labels = Net(), []
    for index, name in enumerate(kinds):
        for q in (True, False):
            before = len(net.graph.outputs)
            KINDS[name](net, Chance(np.random.default_rng([seed, index, q])), q)
            labels += [f"{name} of {'i8' if q else 'f32'}"] * (len(net.graph.outputs) - before)
    return net, labels


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=6, help="networks of operators")
    p.add_argument("--network-runs", type=int, default=5, help="of each of them")
    p.add_argument("--runs", type=int, default=20, help="of each model")
    p.add_argument("--models", default=os.path.join(TOP, "..", "shared", "models", "mlperf-tiny"))
    p.add_argument("--filter", default="", help="operators or models with that in their name")
    p.add_argument("--filter-models", default="", help="models with that in their name")
    p.add_argument("--target")
    p.add_argument("--cc", default="cc -O1")
    args = p.parse_args()
    if runtime is None:
        print("tflite_micro or ai_edge_litert is not there")
        sys.exit(77)
    report, cases = Report(), 0
    kinds = [k for k in KINDS if args.filter in k]
    for i in range(args.count if kinds else 0):
        net, labels = network(args.seed + i, kinds)
        spans = {k: net.spans[t] for k, t in enumerate(net.graph.inputs)}
        check(args, report, f"network {args.seed + i}", net.bytes(), labels.__getitem__, spans,
              np.random.default_rng([args.seed + i, 7]), args.network_runs)
        cases += len(labels)
    for path in sorted(glob.glob(os.path.join(args.models, "*.tflite"))):
        name = os.path.basename(path)
        if args.filter in name and args.filter_models in name and name not in NOT_HERE:
            with open(path, "rb") as f:
                check(args, report, name, f.read(), lambda i: f"output {i}", {}, np.random.default_rng(args.seed),
                      args.runs)
            cases += 1
    print("\n".join(report.failures))
    print(f"{report.elements} elements, {report.wrong} differ")
    failed = len(report.failures)
    print(f"{max(cases - failed, 0)} passed, {failed} failed")
    sys.exit(1 if failed or report.wrong else 0)


if __name__ == "__main__":
    main()
