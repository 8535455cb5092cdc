# SPDX-License-Identifier: Apache-2.0
"""Models of TensorFlow Lite in the making, for the tests: tensors, operators, random numbers, and what kinds of
operators (tflite_kinds.py) have in common. They are written with the schema in the package ai_edge_litert."""
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as S
from flatbuffers import flexbuffers

TYPES = {"int8": 9, "float32": 0, "int32": 2, "int64": 4, "float16": 1, "int16": 7, "uint8": 3, "bool": 6, "int4": 17,
         "uint64": 12, "uint32": 15, "complex64": 8}
CUSTOM = 32


class Net:
    """A model in the making: tensors, operators, which of the tensors are inputs and outputs."""

    def __init__(self):
        self.model, self.graph = S.ModelT(), S.SubGraphT()
        self.model.version, self.model.buffers, self.model.operatorCodes = 3, [S.BufferT()], []
        self.model.subgraphs = [self.graph]
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.spans = {}  # of inputs of floats
        self.counts = {}  # outputs of which so many rows count as another one says: which, what a row has, what counts

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
            if kind == "int4":
                codes = np.append(np.asarray(data, np.int8).reshape(-1), np.int8(0)).view(np.uint8) & 15
                packed = codes[:len(codes) // 2 * 2].reshape(-1, 2)
                b.data = packed[:, 0] | packed[:, 1] << 4
            else:
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

    def fill(self, t, values):
        """Tensor t, an input so far or none, is constant."""
        b = S.BufferT()
        b.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self.model.buffers.append(b)
        self.graph.tensors[t].buffer = len(self.model.buffers) - 1

    def operator(self, name, version, inputs, outputs, options=None):
        """A custom operator's options are a dictionary."""
        code = getattr(S.BuiltinOperator, name, CUSTOM)
        what = (code, version, name.encode() if code == CUSTOM and name != "CUSTOM" else None)
        have = [(c.builtinCode, c.version, c.customCode) for c in self.model.operatorCodes]
        if what not in have:
            c = S.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version, c.customCode = code, min(code, 127), version, what[2]
            self.model.operatorCodes.append(c)
            have.append(what)
        o = S.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = have.index(what), inputs, outputs
        if isinstance(options, dict):
            o.customOptions = list(flex_map(options))
        elif options is not None:
            o.builtinOptions = options
            o.builtinOptionsType = getattr(S.BuiltinOptions, type(options).__name__[:-1])
        self.graph.operators.append(o)
        self.graph.outputs += outputs

    def bytes(self):
        w = flatbuffers.Builder(1024)
        w.Finish(self.model.Pack(w), file_identifier=b"TFL3")
        return bytes(w.Output())


def variable(net, kind, shape, scale=None, zero=0):
    """A tensor that keeps its numbers from run to run."""
    t = net.tensor(kind, shape, scale, zero)
    net.graph.tensors[t].isVariable = True
    return t


def flex_map(options):
    """A map of FlexBuffers."""
    b = flexbuffers.Builder()
    with b.Map():
        for key, value in sorted(options.items()):
            if isinstance(value, str):
                b.Key(key)
                b.String(value)
            else:
                (b.Bool if isinstance(value, bool) else b.Int if isinstance(value, int) else b.Float)(key, value)
    return b.Finish()


def options(kind, **fields):
    o = getattr(S, kind + "OptionsT")()
    for name, value in fields.items():
        setattr(o, name, value)
    return o


# --- one random operator of each kind, in quantised numbers (q: their type) and in floats (q is empty)

class Chance:
    def __init__(self, rng, oracle="micro"):
        self.rng, self.oracle = rng, oracle

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def zero(self, q="int8"):
        low = 0 if q == "uint8" else -128
        return 0 if q == "int16" else self.pick(low, low + 255, 0, self.int(low, low + 255))

    def scale(self, low=1e-3, high=0.2):
        return np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def codes(self, shape, low=None, q="int8"):
        least, most = np.iinfo(q).min, np.iinfo(q).max
        return self.rng.integers(least if low is None else low, most + 1, shape).astype(q)

    def floats(self, shape):
        return self.rng.normal(0, 1, shape).astype(np.float32)

    def shape(self, rank=None, most=7):
        return [self.int(1, most) for _ in range(rank or self.int(1, 4))]


ACTIVATIONS = (0, 0, 1, 2, 3)


def data(net, r, q, shape, scale=None, zero=None):
    scale = r.scale() if scale is None else scale
    return net.input(q, shape, scale, r.zero(q) if zero is None else zero) if q else net.input("float32", shape)


def scale_of(net, t):
    return net.graph.tensors[t].quantization.scale[0]


def result(net, r, q, scale=None, zero=None):
    if not q:
        return net.tensor("float32", [])
    return net.tensor(q, [], r.scale() if scale is None else scale, r.zero(q) if zero is None else zero)


def weights(net, r, q, shape, channel_axis, x, products, has_bias=None, kind=None):
    """Weights, bias and result of a layer, the last with a scale that its sums fill, or that they leave. kind: of the
    weights, where that does not follow from the data."""
    count = shape[channel_axis]
    has_bias = r.pick(True, True, False) if has_bias is None else has_bias
    if not q and kind:
        scales = np.array([r.scale() for _ in range(count if channel_axis == 3 else r.pick(1, count))], np.float32)
        w = net.tensor(kind, shape, scales, 0, r.codes(shape, -127), channel_axis)
        return w, (net.tensor("float32", [count], data=r.floats([count])) if has_bias else -1), result(net, r, q)
    if not q:
        w = net.tensor("float32", shape, data=r.floats(shape))
        return w, (net.tensor("float32", [count], data=r.floats([count])) if has_bias else -1), result(net, r, q)
    one = q == "uint8" or (kind == "int4" and len(shape) == 2)  # what the oracles ask for
    scales = np.array([r.scale() for _ in range(1 if one else r.pick(1, count))], np.float32)
    if kind == "int4":
        codes = r.rng.integers(-7, 8, shape)
    else:
        kind = "uint8" if q == "uint8" else "int8"
        codes = r.codes(shape, None if q == "uint8" else -127, kind)
    w = net.tensor(kind, shape, scales, r.zero(q) if q == "uint8" else 0, codes, channel_axis)
    sx = scale_of(net, x)
    bias = -1
    if has_bias:
        numbers = r.rng.integers(-20000, 20000, count) * (256 if q == "int16" else 1)
        bias = net.tensor("int64" if q == "int16" else "int32", [count], sx * scales, 0, numbers)
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


def same_numbers(net, r, q, shape, name, version, more=(), kind=None, results=1, **fields):
    """An operator that moves elements: the result has the scale of the data."""
    x = data(net, r, q, shape)
    p = net.graph.tensors[x].quantization
    ys = [result(net, r, q, p.scale[0] if q else None, p.zeroPoint[0] if q else None) for _ in range(results)]
    net.operator(name, version, [x, *more], ys, options(kind, **fields) if kind else None)
    return x, ys
