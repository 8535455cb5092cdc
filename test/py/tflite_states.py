#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of TensorFlow Lite with states compute what TensorFlow Lite Micro computes, step by step: SVDF and LSTM
layers, streams over resource variables. Quantised ones bit for bit, floats to 1e-5 of the largest number. Layers of
SVDF, LSTM and RNN also compute what LiteRT's reference kernels compute.

    tflite_states.py [--lathe FILE] [--seed N] [--count N] [--steps N] [--long N] [--filter NAME]

COUNT networks of each kind stand side by side in one model, which runs STEPS steps, is reset, and runs again; a second
instance runs other inputs between the steps of the first. The first model runs LONG steps. Without the packages of
tflite_models.py the exit status is 77."""
import argparse
import ctypes
import functools
import os
import shutil
import sys
import tempfile

import numpy as np

import package
import tflite_models as T

KINDS = {}
ALONE = {"circular_buffers_of_some_runs"}  # not beside others, which it would end
BY_LITERT = {"svdf_of_16", "lstm"}  # what its reference kernels have, and whose numbers are also checked
ONLY_LITERT = {"lstm_of_parts", "lstm_both_ways", "rnn", "rnn_both_ways"}  # what TensorFlow Lite Micro does not have
T.TYPES["resource"] = 13


def kind(f):
    KINDS[f.__name__] = f
    return f


def result(net, shape, q, r):
    return net.tensor("int8", shape, r.scale(), r.zero()) if q else net.tensor("float32", shape)


def svdf(net, r, q, state="int16", x=None):
    rank, units, memory, inputs, batch = r.int(1, 3), r.int(1, 6), r.int(1, 9), r.int(1, 20), r.int(1, 2)
    filters = rank * units
    if x is None:
        x = T.data(net, r, q, [batch, inputs])
    batch, inputs = net.graph.tensors[x].shape
    if q:
        sx, sw, st = T.scale_of(net, x), r.scale(), r.scale(1e-4, 1e-2)
        feature = net.tensor("int8", [filters, inputs], sw, 0, r.codes([filters, inputs], -127))
        high = 128 if state == "int8" else 2000
        time = net.tensor(state, [filters, memory], st, 0, r.rng.integers(-high, high, [filters, memory]))
        filled = float(sx * sw) * inputs**0.5 * 74 * 74 / (60 if state == "int8" else 9000)
        ss = np.float32(filled * np.exp(r.rng.uniform(-1.5, 1.5)))
        kept = T.variable(net, state, [batch, filters * memory], ss, r.int(-3, 3) if state == "int8" else 0)
        bias = net.tensor("int32", [units], ss * st, 0, r.rng.integers(-20000, 20000, units))  # else the oracle ends
        top = float(ss * st) * (rank * memory)**0.5 * (60 * 74 if state == "int8" else 9000 * 1000) / 60
        y = net.tensor("int8", [batch, units], np.float32(top * np.exp(r.rng.uniform(-1.5, 1.5))), r.zero())
    else:
        feature = net.tensor("float32", [filters, inputs], data=r.floats([filters, inputs]))
        time = net.tensor("float32", [filters, memory], data=r.floats([filters, memory]))
        kept, y = T.variable(net, "float32", [batch, filters * memory]), net.tensor("float32", [batch, units])
        bias = net.tensor("float32", [units], data=r.floats([units]))
    net.operator("SVDF", 3, [x, feature, time, bias, kept], [y],
                 T.options("SVDF", rank=rank, fusedActivationFunction=1 if q else r.pick(0, 1)))
    return y


@kind
def svdf_of_16(net, r, q):
    svdf(net, r, q)


@kind
def svdf_of_8(net, r, q):
    svdf(net, r, q, "int8")


@kind
def lstm(net, r, q):
    batch, steps, inputs, cells = r.int(1, 2), r.pick(1, 1, 2, 4), r.int(1, 12), r.int(1, 12)
    major, clip = r.pick(True, False), r.pick(0.0, 0.0, 0.7)
    front = [steps, batch] if major else [batch, steps]
    fine = 256 if q == "int16" else 1
    x = T.data(net, r, q, front + [inputs], np.float32(r.rng.uniform(0.005, 0.05) / fine) if q else None)
    sh, zh = np.float32(r.rng.uniform(0.5, 2) / 128 / fine), 0 if q == "int16" else r.int(-20, 20)
    power = np.float32(2.0 ** r.pick(-11, -12, -13, -14, -15))

    def layer(depth, scale):
        shape = [cells, depth]
        if not q:
            return net.tensor("float32", shape, data=r.floats(shape) * 0.5)
        return net.tensor("int8", shape, scale, 0, r.codes(shape, -127))
    scales = [np.float32(r.rng.uniform(0.002, 0.02)) for _ in range(8)]
    ws = [layer(inputs, s) for s in scales[:4]]
    rs = [layer(cells, s) for s in scales[4:]]
    if q:
        biases = [net.tensor("int64" if q == "int16" else "int32", [cells], T.scale_of(net, x) * s, 0,
                             r.rng.integers(-3000, 3000, cells) * fine) for s in scales[:4]]
        h, c = T.variable(net, q, [batch, cells], sh, zh), T.variable(net, "int16", [batch, cells], power)
        y = net.tensor(q, front + [cells], sh, zh)
    else:
        biases = [net.tensor("float32", [cells], data=r.floats([cells])) for _ in range(4)]
        h, c = T.variable(net, "float32", [batch, cells]), T.variable(net, "float32", [batch, cells])
        y = net.tensor("float32", front + [cells])
    operands = [x, *ws, *rs, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1]
    net.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", 1, operands, [y],
                 T.options("UnidirectionalSequenceLSTM", fusedActivationFunction=4, cellClip=clip, projClip=0.0,
                           timeMajor=major))
    parts = [net.tensor("int16", [0], np.float32(2.0**-12)) for _ in range(4)] + [net.tensor(q or "int8", [0], sh, zh)]
    net.graph.operators[-1].intermediates = parts


@kind
def lstm_of_16(net, r, q):
    if q:
        lstm(net, r, "int16")


class Layer:
    """Operands of a layer: floats, floats by weights of bytes, or numbers of 8 bits."""

    def __init__(self, net, r, q, by_bytes):
        self.net, self.r, self.q, self.by_bytes = net, r, q, by_bytes

    def weights(self, shape, scale=None):
        net, r = self.net, self.r
        if self.q or self.by_bytes:
            return net.tensor("int8", shape, scale or np.float32(r.rng.uniform(0.002, 0.02)), 0, r.codes(shape, -127))
        return net.tensor("float32", shape, data=r.floats(shape) * 0.5)

    def fine(self, shape):
        """Weights of a peephole or of layer normalization."""
        net, r = self.net, self.r
        if self.q:
            return net.tensor("int16", shape, np.float32(r.rng.uniform(1, 16) / 2**15), 0,
                              r.rng.integers(-32767, 32767, shape))
        return net.tensor("float32", shape, data=r.floats(shape))

    def bias(self, shape, scale):
        net, r = self.net, self.r
        if self.q:
            return net.tensor("int32", shape, scale, 0, r.rng.integers(-3000, 3000, shape))
        return net.tensor("float32", shape, data=r.floats(shape))

    def gates(self, sx, inputs, cells, outputs, coupled, peephole, projection, hidden):
        """Operands 1 to 17."""
        scales = [np.float32(self.r.rng.uniform(0.002, 0.02)) for _ in range(8)]
        first = [-1] if coupled else []
        ws = [self.weights([cells, inputs], s) for s in scales[len(first):4]]
        rs = [self.weights([cells, outputs], s) for s in scales[4 + len(first):]]
        fine = self.weights if self.by_bytes and not self.q else self.fine
        ps = [fine([cells]) if peephole else -1 for _ in range(3)]
        ps[:len(first)] = first
        bs = [self.bias([cells], sx * s) for s in scales[len(first):4]]
        more = [-1, -1]
        if projection:
            s = np.float32(self.r.rng.uniform(0.002, 0.02))
            more = [self.weights([outputs, cells], s), self.r.pick(-1, self.bias([outputs], s * hidden))]
        return [*first, *ws, *first, *rs, *ps, *first, *bs, *more]


@kind
def lstm_of_parts(net, r, q):
    """With peepholes, a projection, layer normalization, coupled gates, and floats by bytes."""
    batch, steps, inputs, cells = r.int(1, 2), r.pick(1, 2, 3), r.int(1, 12), r.int(2, 12)
    coupled, peephole, projection, norm, by_bytes, major = (r.pick(True, False) for _ in range(6))
    outputs = r.int(1, cells) if projection else cells
    layer = Layer(net, r, q, by_bytes)
    front = [steps, batch] if major else [batch, steps]
    x = T.data(net, r, q, front + [inputs], np.float32(r.rng.uniform(0.005, 0.05)) if q else None)
    sh, zh = np.float32(r.rng.uniform(0.5, 2) / 128), r.int(-20, 20)
    hidden, zero = (np.float32(r.rng.uniform(0.5, 2) / 128), r.int(-20, 20)) if projection else (sh, zh)
    operands = [x, *layer.gates(T.scale_of(net, x) if q else 1, inputs, cells, outputs, coupled, peephole, projection,
                                hidden)]
    if q:
        operands += [T.variable(net, "int8", [batch, outputs], sh, zh),
                     T.variable(net, "int16", [batch, cells], np.float32(2.0 ** r.pick(-11, -12, -13)))]
    else:
        operands += [T.variable(net, "float32", [batch, n]) for n in (outputs, cells)]
    ns = [layer.fine([cells]) if norm else -1 for _ in range(4)]
    ns[:coupled] = [-1] * coupled
    y = net.tensor("int8" if q else "float32", front + [outputs], *((sh, zh) if q else ()))
    net.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", 3, operands + ns, [y],
                 T.options("UnidirectionalSequenceLSTM", fusedActivationFunction=4, cellClip=r.pick(0.0, 0.7),
                           projClip=r.pick(0.0, 0.5) if projection else 0.0, timeMajor=major,
                           asymmetricQuantizeInputs=by_bytes and not q and r.pick(True, False)))
    parts = [net.tensor("int16", [0], np.float32(r.rng.uniform(0.5, 1) * 2.0**-11 if norm else 2.0**-12))
             for _ in range(4)]
    net.graph.operators[-1].intermediates = parts + [net.tensor("int8", [0], hidden, zero)]


@kind
def lstm_both_ways(net, r, q):
    if q:
        return
    batch, steps, inputs = r.int(1, 2), r.int(1, 3), r.int(1, 9)
    coupled, peephole, projection, by_bytes, major, merged = (r.pick(True, False) for _ in range(6))
    merged &= major or batch == 1  # else LiteRT gives equal rows of a batch other results
    shape, layer = [steps, batch] if major else [batch, steps], Layer(net, r, q, by_bytes)
    x = net.input("float32", shape + [inputs])
    cells = r.int(1, 9)
    ways = 2 * [(cells, r.int(1, cells) if projection else cells)]  # LiteRT takes no others
    operands = [x]
    for cells, outputs in ways:
        operands += layer.gates(1, inputs, cells, outputs, coupled, peephole, projection, 1)
    for cells, outputs in ways:
        operands += [T.variable(net, "float32", [batch, n]) for n in (outputs, cells)]
    widths = [outputs for _, outputs in ways]
    ys = [net.tensor("float32", shape + [w]) for w in ([sum(widths)] if merged else widths)]
    net.operator("BIDIRECTIONAL_SEQUENCE_LSTM", 1, operands + 9 * [-1], ys,
                 T.options("BidirectionalSequenceLSTM", fusedActivationFunction=4, cellClip=r.pick(0.0, 0.7),
                           projClip=r.pick(0.0, 0.5), mergeOutputs=merged, timeMajor=major,
                           asymmetricQuantizeInputs=by_bytes and r.pick(True, False)))


def rnn_operands(net, r, batch, inputs, units, layer):
    return [layer.weights([units, inputs]), layer.weights([units, units]), layer.bias([units], 1),
            T.variable(net, "float32", [batch, units])]


@kind
def rnn(net, r, q):
    if q:
        return
    batch, steps, inputs, units = r.int(1, 3), r.int(0, 3), r.int(1, 9), r.int(1, 9)
    major, by_bytes = r.pick(True, False), r.pick(True, False)
    shape = [batch] if steps == 0 else [steps, batch] if major else [batch, steps]
    x = net.input("float32", shape + [inputs])
    operands = [x, *rnn_operands(net, r, batch, inputs, units, Layer(net, r, q, by_bytes))]
    fields = {"timeMajor": major} if steps else {}
    y = net.tensor("float32", shape + [units])
    net.operator("UNIDIRECTIONAL_SEQUENCE_RNN" if steps else "RNN", 1, operands, [y],
                 T.options("SequenceRNN" if steps else "RNN", fusedActivationFunction=r.pick(1, 3, 4),
                           asymmetricQuantizeInputs=by_bytes and r.pick(True, False), **fields))


@kind
def rnn_both_ways(net, r, q):
    if q:
        return
    batch, steps, inputs, widths = r.int(1, 3), r.int(1, 3), r.int(1, 9), [r.int(1, 9), r.int(1, 9)]
    major, by_bytes, merged = (r.pick(True, False) for _ in range(3))
    by_bytes &= not major  # else LiteRT reads other memory, and ends with some sizes
    shape = [steps, batch] if major else [batch, steps]
    layer = Layer(net, r, q, by_bytes)
    operands = [net.input("float32", shape + [inputs])]
    for units in widths:
        operands += rnn_operands(net, r, batch, inputs, units, layer)
    ys = [net.tensor("float32", shape + [w]) for w in ([sum(widths)] if merged else widths)]
    net.operator("BIDIRECTIONAL_SEQUENCE_RNN", 1, operands + [-1, -1, -1], ys,
                 T.options("BidirectionalSequenceRNN", fusedActivationFunction=r.pick(1, 3, 4), timeMajor=major,
                           mergeOutputs=merged, asymmetricQuantizeInputs=by_bytes and r.pick(True, False)))


def handle(net, name):
    t = net.tensor("resource", [])
    net.operator("VAR_HANDLE", 1, [], [t], T.options("VarHandle", container="", sharedName=name))
    net.graph.outputs.pop()
    return t


@kind
def stream(net, r, q):
    """The frames of a streaming convolution: what is new comes behind what is kept, and the oldest goes."""
    kept, new, width = r.int(1, 6), r.int(1, 3), r.int(1, 5)
    x = T.data(net, r, q, [1, new, 1, width])
    p = net.graph.tensors[x].quantization
    scale, zero = (p.scale[0], p.zeroPoint[0]) if q else (None, 0)
    kind_of, name = "int8" if q else "float32", f"stream{len(net.graph.tensors)}"
    old, whole, rest = (net.tensor(kind_of, [1, n, 1, width], scale, zero) for n in (kept, kept + new, kept))
    first = net.first
    if first is not None:  # what CALL_ONCE says
        start = [zero] * (kept * width) if q else r.floats([kept * width])
        first.append((name, kind_of, [1, kept, 1, width], scale, zero, start))
    read = handle(net, name)
    write = r.pick(read, None)
    net.operator("READ_VARIABLE", 1, [read], [old])
    net.operator("CONCATENATION", 2, [old, x], [whole], T.options("Concatenation", axis=1, fusedActivationFunction=0))
    more = [net.tensor("int32", [4], data=v) for v in ([0, new, 0, 0], [1, kept + new, 1, width], [1, 1, 1, 1])]
    net.operator("STRIDED_SLICE", 2, [whole, *more], [rest], T.options("StridedSlice", beginMask=0, endMask=0,
                                                                       shrinkAxisMask=0, ellipsisMask=0, newAxisMask=0))
    net.operator("ASSIGN_VARIABLE", 1, [handle(net, name) if write is None else write, rest], [])


def inner_state(net, r, q):
    """Operands of a graph in a graph, a value and the handle of a variable, and what makes the next value: it adds the
    one to the other, and may hand its result to a layer with a state of its own. The oracle gives a variable its memory
    where a graph with its VAR_HANDLE assigns it."""
    x = T.data(net, r, q, [r.int(1, 2), r.int(1, 9)], None, 0)
    name, shape = f"inner{len(net.graph.tensors)}", net.graph.tensors[x].shape
    scale = T.scale_of(net, x) if q else None
    if net.first is not None and r.pick(True, False):
        start = r.codes([int(np.prod(shape))]) if q else r.floats([int(np.prod(shape))])
        net.first.append((name, "int8" if q else "float32", shape, scale, 0, start))
    has_layer = r.pick(True, False)

    def grow(x, v):
        old, new = T.like(net, x), T.like(net, x)
        net.operator("READ_VARIABLE", 1, [v], [old])
        net.operator("ADD", 2, [old, x], [new], T.options("Add", fusedActivationFunction=0))
        net.operator("ASSIGN_VARIABLE", 1, [handle(net, name), new], [])
        if has_layer:
            svdf(net, r, q, x=new)
        return new
    return x, handle(net, name), grow


@kind
def branch(net, r, q):
    """One branch changes a variable and the other reads it; behind both the caller reads it."""
    x, v, grow = inner_state(net, r, q)
    y, z = T.like(net, x), T.like(net, x)

    def read(x, v):
        old = T.like(net, x)
        net.operator("READ_VARIABLE", 1, [v], [old])
        return [old]
    graphs = [T.inner_graph(net, [x, v], lambda x, v: [grow(x, v)]), T.inner_graph(net, [x, v], read)]
    if r.pick(True, False):
        graphs.reverse()
    net.operator("IF", 1, [net.input("bool", []), x, v], [y],
                 T.options("If", thenSubgraphIndex=graphs[0], elseSubgraphIndex=graphs[1]))
    net.operator("READ_VARIABLE", 1, [v], [z])


@kind
def rounds(net, r, q):
    """Each round changes a variable; the condition is a counter."""
    x, v, grow = inner_state(net, r, q)
    count, done, end, same, z = (net.tensor("int32", [1], data=[0]), net.tensor("int32", [1]), r.int(0, 3),
                                 T.like(net, x), T.like(net, x))

    def goes_on(i, x, v):
        y = net.tensor("bool", [1])
        net.operator("LESS", 1, [i, net.tensor("int32", [1], data=[end])], [y])
        return [y]

    def body(i, x, v):
        y = net.tensor("int32", [1])
        net.operator("ADD", 1, [i, net.tensor("int32", [1], data=[1])], [y], T.options("Add"))
        grow(x, v)
        return [y, x, v]
    graphs = [T.inner_graph(net, [count, x, v], f) for f in (goes_on, body)]
    net.operator("WHILE", 1, [count, x, v], [done, same, net.tensor("resource", [])],
                 T.options("While", condSubgraphIndex=graphs[0], bodySubgraphIndex=graphs[1]))
    net.graph.outputs.pop()
    net.operator("READ_VARIABLE", 1, [v], [z])


def signal(f):
    """An operator of 16 bits: in floats it is left out."""
    @functools.wraps(f)
    def one(net, r, q):
        if q:
            f(net, r)
    return kind(one)


def circular_buffer(net, r, cycles):
    """What the buffer begins with is whatever was in the oracle's memory, also behind a reset."""
    slots, width, depth, scale, zero = r.int(1, 4), r.int(1, 3), r.int(1, 5), r.scale(), r.zero()
    x = net.input("int8", [1, 1, width, depth], scale, zero)
    y = net.tensor("int8", [1, slots, width, depth], scale, zero)
    net.cycles *= cycles
    net.first_step[y] = slots * net.cycles
    net.operator("CIRCULAR_BUFFER", 1, [x], [y], {"cycles_max": cycles})
    net.graph.outputs.append(x)  # else the oracle puts what comes later into its memory


@signal
def circular_buffer_of_each_run(net, r):
    circular_buffer(net, r, 1)


@signal
def circular_buffers_of_some_runs(net, r):
    """What stands behind the first one is not run in each run."""
    for _ in range(3):
        circular_buffer(net, r, r.int(1, 3))


@signal
def signal_delay(net, r):
    shape = r.shape(r.int(0, 2), 3) + [r.int(1, 12)]
    net.operator("SignalDelay", 1, [net.input("int16", shape)], [net.tensor("int16", shape)],
                 {"delay_length": r.pick(0, r.int(1, 20))})


@signal
def signal_framer(net, r):
    """The frames count only once the second result says so."""
    step, frames, shape = r.int(1, 8), r.int(1, 3), r.shape(r.int(0, 2), 3)
    prefill = r.pick(True, False)
    size = r.int(step if prefill else 1, 4 * step)
    y, valid = net.tensor("int16", shape + [frames, size]), net.tensor("bool", [])
    net.valid[y] = valid
    net.operator("SignalFramer", 1, [net.input("int16", shape + [frames * step])], [y, valid],
                 {"frame_size": size, "frame_step": step, "prefill": prefill})


@signal
def signal_stacker(net, r):
    channels, left, right = r.int(1, 6), r.int(0, 4), r.int(0, 4)
    y, valid = net.tensor("int16", [channels * (left + right + 1)]), net.tensor("bool", [])
    net.valid[y] = valid
    net.operator("SignalStacker", 1, [net.input("int16", [channels])], [y, valid],
                 {"num_channels": channels, "stacker_left_context": left, "stacker_right_context": right,
                  "stacker_step": r.int(1, left + right + 1)})


@kind
def signal_overlap_add(net, r, q):
    kind_of, size, frames, shape = "int16" if q else "float32", r.int(1, 12), r.int(1, 3), r.shape(r.int(0, 2), 3)
    step = r.int(1, size)
    net.operator("SignalOverlapAdd", 1, [net.input(kind_of, shape + [frames, size])],
                 [net.tensor(kind_of, shape + [frames * step])], {"T": T.TYPES[kind_of], "frame_step": step})


@signal
def signal_spectral_subtraction(net, r):
    channels, bits, up = r.int(1, 20), r.int(8, 14), r.int(0, 10)
    s, t = r.int(0, 1 << bits), r.int(0, 1 << bits)
    net.operator("SignalFilterBankSpectralSubtraction", 1, [net.input("uint32", [channels])],
                 [net.tensor("uint32", [channels]) for _ in range(2)],
                 {"num_channels": channels, "smoothing": s, "one_minus_smoothing": (1 << bits) - s,
                  "alternate_smoothing": t, "alternate_one_minus_smoothing": (1 << bits) - t, "smoothing_bits": up,
                  "spectral_subtraction_bits": bits, "min_signal_remaining": r.int(0, 1 << bits),
                  "clamping": r.pick(True, False)})


@signal
def front_end(net, r):
    """The whole way from samples to features, as models of wake words begin: frames of 30 ms every 20 ms, a spectrum of
    512 points, 20 bands."""
    size, step, points, channels = 480, 320, 512, 20
    bins, first = points // 2 + 1, len(net.graph.outputs)
    edges = np.round(np.linspace(4, 200, channels + 2)).astype(int)  # bands overlap by one
    widths = np.diff(edges)
    rise = np.concatenate([np.arange(w) / w for w in widths])
    weights = [net.tensor("int16", [len(rise)], data=np.round(4096 * w)) for w in (1 - rise, rise)]
    tables = [net.tensor("int16", [channels + 1], data=t) for t in (edges[:-1], edges[:-1] - edges[0], widths)]
    hann = net.tensor("int16", [size], data=np.round(4096 * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size))))
    lut = net.tensor("int16", [125], data=T.gains(0.95, 80.0, 21 - 6))

    def op(name, inputs, outputs, **options):
        ys = [net.tensor(kind_of, shape) for kind_of, shape in outputs]
        net.operator(name, 1, inputs, ys, options)
        return ys if len(ys) > 1 else ys[0]
    frames, valid = op("SignalFramer", [net.input("int16", [1, step])], [("int16", [1, 1, size]), ("bool", [])],
                       frame_size=size, frame_step=step, prefill=True)
    frame = net.tensor("int16", [size])
    net.operator("RESHAPE", 1, [frames, net.tensor("int32", [1], data=[size])], [frame],
                 T.options("Reshape", newShape=[size]))
    scaled, bits = op("SignalFftAutoScale", [op("SignalWindow", [frame, hann], [("int16", [size])], shift=12)],
                      [("int16", [size]), ("int32", [])])
    spectrum = op("SignalRfft", [scaled], [("int16", [2 * bins])], T=T.TYPES["int16"], fft_length=points)
    energy = op("SignalEnergy", [spectrum], [("uint32", [bins])], start_index=0, end_index=bins)
    bank = op("SignalFilterBank", [energy, *weights, *tables], [("uint64", [channels])], num_channels=channels)
    loudness = op("SignalFilterBankSquareRoot", [bank, bits], [("uint32", [channels])])
    clean, noise = op("SignalFilterBankSpectralSubtraction", [loudness], 2 * [("uint32", [channels])],
                      num_channels=channels, smoothing=410, one_minus_smoothing=15974, alternate_smoothing=983,
                      alternate_one_minus_smoothing=15401, smoothing_bits=10, spectral_subtraction_bits=14,
                      min_signal_remaining=819, clamping=False)
    gained = op("SignalPCAN", [clean, noise, lut], [("uint32", [channels])], snr_shift=6)
    features = op("SignalFilterBankLog", [gained], [("int16", [channels])], input_correction_bits=3, output_scale=1600)
    stack, full = op("SignalStacker", [features], [("int16", [3 * channels]), ("bool", [])], num_channels=channels,
                     stacker_left_context=1, stacker_right_context=1, stacker_step=2)
    net.valid[stack] = full
    net.graph.outputs[first:] = [features, stack, full]


def once(net):
    """A graph that assigns what variables begin with, and the operator that runs it once, in front of all others."""
    main, model = net.graph, net.model
    net.graph = T.S.SubGraphT()
    net.graph.tensors, net.graph.operators, net.graph.inputs, net.graph.outputs = [], [], [], []
    model.subgraphs.append(net.graph)
    for name, kind_of, shape, scale, zero, start in net.first:
        value = net.tensor(kind_of, shape, scale, zero, data=np.array(start, kind_of))
        net.operator("ASSIGN_VARIABLE", 1, [handle(net, name), value], [])
    net.graph = main
    net.operator("CALL_ONCE", 1, [], [], T.options("CallOnce", initSubgraphIndex=len(model.subgraphs) - 1))
    main.operators.insert(0, main.operators.pop())


def network(seed, kinds, calls_once):
    net, labels = T.Net(), []
    net.first, net.valid = [] if calls_once else None, {}
    net.first_step, net.cycles = {}, 1  # of outputs that count from some step on, and not behind a reset
    for index, name in enumerate(kinds):
        for q in (True, False):
            before = len(net.graph.outputs)
            KINDS[name](net, T.Chance(np.random.default_rng([seed, index, q])), "int8" if q else "")
            labels += [f"{name} of {'i8' if q else 'f32'}"] * (len(net.graph.outputs) - before)
    if net.first:
        once(net)
    return net, labels


class Instance:
    """A package and an oracle that are fed alike."""

    def __init__(self, content, library, folder, about, seed, net, oracle):
        outputs = net.graph.outputs
        self.valid = {outputs.index(y): outputs.index(v) for y, v in net.valid.items()}  # where another one says so
        self.first_step, self.steps = {outputs.index(y): k for y, k in net.first_step.items()}, 0
        self.oracle = oracle(content)
        self.library, self.folder, self.about, self.rng = library, folder, about, np.random.default_rng(seed)
        self.most = {}  # of floats: the largest number of each output so far, which errors are measured by

    def step(self, report, what, names):
        feed = {}
        for entry in self.about["inputs"]:
            x = T.random_input(self.rng, entry["shape"], package.DTYPES[entry["dtype"]], 1.5)
            feed[entry["name"]] = x
        ended = self.oracle.run(list(feed.values())) != 0  # by a CIRCULAR_BUFFER
        got = package.call(self.library, self.folder, "m", feed)
        self.steps += 1
        for i, entry in enumerate(self.about["outputs"]):
            y, want = got[entry["name"]], self.oracle.output(i)
            if ended or i in self.valid and not self.oracle.output(self.valid[i]) or \
                    self.steps <= self.first_step.get(i, 0):
                continue
            if y.dtype.kind == "f":
                self.most[i] = max(self.most.get(i, 0), float(np.abs(want).max(initial=0)))
                y, want = np.append(y, self.most[i]), np.append(want, self.most[i])
            report.compare(f"{what}, {names[i]}", y, want)

    def reset(self):
        self.first_step = {i: 1 << 30 for i in self.first_step}
        self.oracle.reset()
        if self.library.tvmgen_m_reset() != 0:
            raise package.Failure("reset")


def check(args, report, seed, kinds, calls_once, steps, oracle=T.Micro):
    net, names = network(seed, kinds, calls_once)
    content, what = net.bytes(), f"network {seed}{' with CALL_ONCE' if calls_once else ''} by {oracle.name}"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.tflite")
        with open(path, "wb") as f:
            f.write(content)
        try:
            first = T.build(args, path, folder + "/out", oracle.more)
            shutil.copy(folder + "/out/m.so", folder + "/out/other.so")
            libraries = [first, ctypes.CDLL(folder + "/out/other.so")]
            about = package.report(folder + "/out")
            both = [Instance(content, lib, folder + "/out", about, [seed, k], net, oracle)
                    for k, lib in enumerate(libraries)]
            for step in range(steps):
                for k, one in enumerate(both):
                    one.step(report, f"{what}, instance {k}, step {step}", names)
            if not calls_once:  # the oracle's reset leaves zeros, and does not call again
                both[0].reset()
                for step in range(3):
                    both[0].step(report, f"{what}, step {step} behind a reset", names)
        except package.Failure as e:
            report.failures.append(f"FAILED {what}: {e}")
    return len(names)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lathe", default=os.path.join(T.TOP, "build", "lathe"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=4, help="networks")
    p.add_argument("--steps", type=int, default=20, help="of each of them")
    p.add_argument("--long", type=int, default=500, help="steps of the first one")
    p.add_argument("--filter", default="", help="kinds with that in their name")
    p.add_argument("--target")
    p.add_argument("--cc", default="cc -O1")
    args = p.parse_args()
    if T.runtime is None:
        print("tflite_micro or ai_edge_litert is not there")
        sys.exit(77)
    report, cases = T.Report(), 0
    kinds = [k for k in KINDS if args.filter in k and k not in ALONE | ONLY_LITERT]
    alone = [k for k in ALONE if args.filter in k]
    for i in range(args.count):
        if kinds:
            cases += check(args, report, args.seed + i, kinds, i % 2 == 1, args.long if i == 0 else args.steps)
        by_litert = [k for k in KINDS if args.filter in k and k in BY_LITERT | ONLY_LITERT]
        if by_litert:
            cases += check(args, report, args.seed + i, by_litert, False, args.steps, T.LiteRT)
        for one in alone:
            cases += check(args, report, args.seed + i, [one], False, 6 * args.steps)
    print("\n".join(report.failures))
    print(f"{report.elements} elements, {report.wrong} differ")
    failed = len(report.failures)
    print(f"{max(cases - failed, 0)} passed, {failed} failed")
    sys.exit(1 if failed or report.wrong else 0)


if __name__ == "__main__":
    main()
