#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft beside those of transformers, models that onnxruntime's optimizer saved, and QONNX.

    domains.py [--lathe FILE] [--seed N] [--count N] [--packages] [--filter GLOB]

Each model has an operator several times with random shapes, types, attributes and operands, and some of the optional
ones left out. onnxruntime gives the numbers; for QONNX, which it has not, the formulas of the package qonnx do.
Networks of convolutions are saved by onnxruntime's optimizer in blocks of channels (com.microsoft.nchwc) and read
again. What Lathe does not take is one message that says what to do."""
import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import encoded
import package
from transformers import MS, Model, i32

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QONNX = "qonnx.custom_op.general"
FLOAT = TensorProto.FLOAT


class Random(Model):
    """A model whose choices a generator makes."""

    def __init__(self, seed):
        super().__init__(seed)
        self.sets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
        self.limits = {}  # of open extents

    def opened(self, value, *names):
        """An input with an open extent for each name that is not empty; those of one node are told apart by it."""
        shape = [f"{name}{len(self.nodes)}" if name else extent for name, extent in zip(names, value.shape)]
        for name, extent in zip(shape, value.shape):
            if isinstance(name, str):
                self.limits[name] = max(extent + 2, self.limits.get(name, 0))
        return self.input(value, shape)

    def number(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *values):
        return values[self.number(0, len(values) - 1)]

    def maybe(self, *values):
        return self.pick(True, False) and self.pick(*values)

    def floats(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def codes(self, dt, *shape):
        r = np.iinfo(dt)
        return self.rng.integers(r.min, r.max + 1, shape).astype(dt)

    def operand(self, value):
        """A constant, or an input."""
        return self.constant(value) if self.pick(True, False) else self.input(value)

    def add(self, kind, ins, *kinds, domain=MS, **attrs):
        """kinds: element types of the results."""
        names = [f"y{len(self.outputs) + i}" for i in range(len(kinds))]
        self.nodes.append(helper.make_node(kind, ins, names, domain=domain, **attrs))
        self.outputs += [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, kinds)]

    def proto(self):
        graph = helper.make_graph(self.nodes, "domains", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=self.sets, ir_version=10)


def numbers(proto, feed):
    """What onnxruntime makes of it, with exact sums of integers."""
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level, quiet.intra_op_num_threads = 3, 1  # threads share samples, and so what scales see
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    quiet.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


# --- com.microsoft ---

def q_attention(m):
    heads, size, seq, batch = m.number(1, 3), m.pick(4, 8), m.number(1, 6), m.number(1, 2)
    width, past = heads * size, m.maybe(m.number(1, 4))
    kind, wkind = (np.uint8, m.pick(np.uint8, np.int8))
    wide = m.pick(True, False)
    ins = [m.input(m.codes(kind, batch, seq, width)), m.constant(m.codes(wkind, width, 3 * width) // 8),
           m.constant(m.floats(3 * width)), m.constant(np.float32(.02)),
           m.constant((m.rng.random(3 * width if wide else ()) / 40 + .01).astype(np.float32)), "", "", "", ""]
    total = seq + (past or 0)
    if m.pick(True, False):
        ins[5] = m.input((m.rng.random((batch, total)) < .7).astype(np.int32))
    if m.pick(True, False):
        ins[6] = m.constant(kind(m.number(0, 100)))
        ins[7] = m.constant(wkind(m.number(0, 20)))
    if past:
        ins[8] = m.input(m.floats(2, batch, heads, past, size))
    m.add("QAttention", ins, FLOAT, *([FLOAT] if past else []), num_heads=heads, unidirectional=m.number(0, 1))


def q_embed(m):
    batch, seq, width = 2, m.number(1, 6), m.pick(8, 12)
    kind, segments = m.pick(np.uint8, np.int8), m.pick(True, False)
    ids = m.input(m.rng.integers(0, 20, (batch, seq)).astype(np.int32))
    tables = [m.constant(m.codes(kind, *s)) for s in ((20, width), (9, width), (2, width), (width,), (width,))]
    scales = [m.constant(np.float32(m.rng.uniform(.01, .02))) for _ in range(5)]
    zeros = [m.constant(kind(m.number(0, 9))) for _ in range(5)]
    second = m.input(m.rng.integers(0, 2, (batch, seq)).astype(np.int32)) if segments else ""
    if not segments:
        tables[2] = scales[2] = zeros[2] = ""
    mask = m.input(m.rng.integers(0, 2, (batch, seq)).astype(np.int32)) if m.pick(True, False) else ""
    m.add("QEmbedLayerNormalization", [ids, second] + tables + [mask] + scales + zeros, FLOAT, TensorProto.INT32,
          epsilon=1e-3)


def gather_blocks(m):
    dt = m.pick(TensorProto.UINT4, TensorProto.INT4, TensorProto.UINT8)
    rows, blocks, block, bits = m.number(3, 7), m.number(1, 3), m.pick(16, 32), m.pick(4, 8)
    bits = bits if dt == TensorProto.UINT8 else 4
    axis = 1 if dt == TensorProto.UINT8 else m.pick(1, 2)
    middle = m.number(1, 3)
    if dt == TensorProto.UINT8:
        width = blocks * block - (m.pick(0, 2) if bits == 4 else m.pick(0, 1))
        shape, scales = (rows, width * bits // 8), (rows, blocks)
        zeros = (rows, (blocks + 1) // 2 if bits == 4 else blocks)
    else:
        width = blocks * block - m.pick(0, 3)
        shape = (rows, width, middle) if axis == 1 else (rows, middle, width)
        scales = zeros = (rows, blocks, middle) if axis == 1 else (rows, middle, blocks)

    def table(shape):
        name, low = f"w{len(m.weights)}", -8 if dt == TensorProto.INT4 else 0
        v = m.rng.integers(low, low + (256 if dt == TensorProto.UINT8 else 16), shape)
        m.weights.append(helper.make_tensor(name, dt, shape, v.flatten().tolist()))
        return name
    at = m.input(m.rng.integers(0, rows, m.pick((3,), (2, 2), ())).astype(m.pick(np.int32, np.int64)))
    ins = [table(shape), at, m.constant(m.floats(*scales))]
    if m.pick(True, False):
        ins.append(table(zeros))
    given = {"bits": bits} if dt == TensorProto.UINT8 else {}
    m.add("GatherBlockQuantized", ins, FLOAT, block_size=block, gather_axis=0, quantize_axis=axis, **given)


def bits_of_bnb(m):
    k, cols, block = m.pick(16, 32, 64), m.number(1, 9), m.pick(16, 32)
    count = k * cols
    b = m.constant(m.codes(np.uint8, (count + 1) // 2))
    most = m.constant(m.rng.random((count + block - 1) // block).astype(np.float32))
    m.add("MatMulBnb4", [m.input(m.floats(2, 3, k)), b, most], FLOAT, K=k, N=cols, block_size=block,
          quant_type=m.number(0, 1))


def crops(m):
    h, w, n = m.number(1, 7), m.number(1, 7), m.number(1, 4)
    x = m.input(m.floats(2, m.number(1, 3), h, w))
    rois = m.rng.uniform(-.2, 1.2, (n, 4)).astype(np.float32)
    given = {"extrapolation_value": .5} if m.pick(True, False) else {}
    m.add("CropAndResize", [x, m.operand(rois), m.operand(m.rng.integers(0, 2, n).astype(np.int32)),
                            m.constant(i32(m.number(1, 4), m.number(1, 4)))], FLOAT,
          mode=m.pick("bilinear", "nearest"), **given)


def early(m):
    """What there was before ONNX had it."""
    m.add("ExpandDims", [m.input(m.floats(2, 3)), m.constant(np.array(m.number(-3, 2), np.int32))], FLOAT)
    dt = m.pick(np.float32, np.int32, np.int64)
    ins = [m.constant(dt(v)) for v in ((1, 9, 2), (1, 9))[m.number(0, 1)]]
    m.add("Range", ins, helper.np_dtype_to_tensor_dtype(np.dtype(dt)))
    m.add("Unique", [m.input(m.rng.integers(0, 5, 9).astype(np.float32))], FLOAT, TensorProto.INT64, TensorProto.INT64)
    size = m.number(1, 4)
    shape = tuple(m.number(4, 6) for _ in range(m.number(1, 3)))
    m.add("UnfoldTensor", [m.input(m.floats(*shape))], FLOAT, size=size, step=m.number(1, 3),
          dim=m.number(-len(shape), len(shape) - 1))
    m.add("MatMulInteger16", [m.input(m.codes(np.int16, 2, 3, 5)), m.operand(m.codes(np.int16, 5, 4))],
          TensorProto.INT32)


def written_out(m):
    """onnxruntime's optimizer writes all attributes, and says 0 for no type."""
    zero = m.constant(np.uint8(7))
    m.add("QuantizeLinear", [m.input(m.floats(2, 3)), m.constant(np.float32(.02)), zero], TensorProto.UINT8, domain="",
          axis=1, output_dtype=0, saturate=1, block_size=0)
    m.add("QuantizeLinear", [m.input(m.floats(2, 3)), m.constant(np.float32(.02))], TensorProto.UINT8, domain="",
          output_dtype=0)
    m.add("DequantizeLinear", [m.input(m.codes(np.uint8, 2, 3)), m.constant(np.float32(.02)), zero], FLOAT, domain="",
          axis=1, block_size=0)


def channels_last(m):
    h, w, c = m.number(4, 8), m.number(4, 8), m.pick(4, 8, 16)
    kind = m.pick(np.uint8, np.int8)
    dt = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    m.add("NhwcMaxPool", [m.input(m.codes(kind, 1, h, w, c))], dt, kernel_shape=[m.number(1, 3), 2],
          strides=[m.number(1, 2), 1], pads=[0, 1, 0, 1])
    group = m.pick(1, 2, c)
    out = group * m.number(1, 3)
    ins = [m.input(m.codes(kind, 1, h, w, c)), m.constant(np.float32(.02)), m.constant(kind(3)),
           m.constant(m.rng.integers(-60, 61, (out, c // group, 3, 2)).astype(np.int8)),
           m.constant((m.rng.random(out) / 50 + .01).astype(np.float32)), m.constant(np.zeros(out, np.int8)),
           m.constant(np.float32(.2)), m.constant(kind(7))]
    ins += [m.constant(m.rng.integers(-999, 999, out).astype(np.int32))] if m.pick(True, False) else []
    m.add("QLinearConv", ins, dt, channels_last=1, group=group, strides=[1, m.number(1, 2)], pads=[1, 0, 1, 1])


def lstm(m):
    """Its scales are found in each step: a state that rounds the other way moves all that follows a little. Weights of
    i8 have 7 bits: onnxruntime adds pairs of their products in 16 bits, which saturate, on x86 without VNNI."""
    time, batch, width, hidden = m.number(1, 5), m.number(1, 3), m.number(1, 5), m.number(1, 6)
    direction = m.pick("forward", "reverse", "bidirectional")
    d, kind = 2 if direction == "bidirectional" else 1, m.pick(np.uint8, np.int8)
    wide = kind == np.int8 and m.pick(True, False)  # a scale for each column needs zero points of 0
    scale = (d, 4 * hidden) if wide else (d,)

    def weights(*shape):
        return m.constant(m.codes(kind, *shape) // (2 if kind == np.int8 else 1))
    zeros = [m.constant(np.zeros(scale, kind) if wide else m.codes(kind, *scale) // 8) for _ in range(2)]
    scales = [m.constant((m.rng.random(scale) / 200 + .002).astype(np.float32)) for _ in range(2)]
    steps, samples = ("steps", "samples") if m.pick(True, False) else ("", "")
    x = m.opened(m.floats(time, batch, width), steps, samples, "")
    ins = [x, weights(d, width, 4 * hidden), weights(d, hidden, 4 * hidden)]
    ins.append(m.constant(m.floats(d, 8 * hidden)) if m.pick(True, False) else "")
    ins.append(m.opened(m.rng.integers(1, time + 1, batch).astype(np.int32), samples) if m.maybe(True) else "")
    ins += [m.opened(m.floats(d, batch, hidden), "", samples, "") if m.pick(True, False) else "" for _ in range(2)]
    ins.append(m.constant(m.floats(d, 3 * hidden)) if m.maybe(True) else "")
    given = {"clip": .7} if m.maybe(True) else {}
    if m.maybe(True):
        given["activations"] = ["Sigmoid", "Tanh", "Relu"] * d
    m.add("DynamicQuantizeLSTM", ins + [scales[0], zeros[0], scales[1], zeros[1]], FLOAT, FLOAT, FLOAT,
          direction=direction, hidden_size=hidden, input_forget=m.number(0, 1), **given)


def coded(m):
    """Softmax and means of codes, over axes that only a run knows."""
    dt, out = m.pick((np.uint8, TensorProto.UINT8), (np.int8, TensorProto.INT8))
    least = m.constant(dt(np.iinfo(dt).min))

    def scale(span):
        return m.constant(np.float32(span * m.rng.uniform(.5, 1.5) / 255))
    opset, axis = m.pick((13, 2), (13, 1), (12, 1))
    names = m.pick(("", "a", "b"), ("", "", "b"), ("n", "a", ""))
    x = m.opened(m.codes(dt, 2, m.number(1, 9), m.number(1, 40)), *names)
    m.add("QLinearSoftmax", [x, scale(9), m.constant(m.codes(dt)), scale(1), least], out, axis=axis, opset=opset)
    n = m.pick(2, 6, 10)  # equal elements, each in the middle between two steps
    step = m.constant(np.float32(1 / (n * m.number(1, 250 // n) + n // 2 + .3)))
    x = m.opened(np.repeat(m.codes(dt, 3, 1), n, 1), "", "c")
    m.add("QLinearSoftmax", [x, scale(9), m.constant(m.codes(dt)), step, least], out, axis=1, opset=13)
    last, sides = m.number(0, 1), ["h", "w"][:m.number(1, 2)]
    shape, channels = [m.number(1, 12) for _ in sides], m.number(1, 5)
    x = m.opened(m.codes(dt, 2, *shape, channels), "", *sides, "") if last else \
        m.opened(m.codes(dt, 2, channels, *shape), "", "", *sides)
    m.add("QLinearGlobalAveragePool", [x, scale(12), m.constant(m.codes(dt)), scale(5), m.constant(m.codes(dt))], out,
          channels_last=last)


def inverses(m):
    size, more = m.number(1, 7), tuple(m.number(1, 3) for _ in range(m.number(0, 2)))
    large = 2 * np.eye(size, dtype=np.float32)[::m.pick(1, -1)]
    m.add("Inverse", [m.input(m.floats(*more, size, size) + large)], FLOAT)


def mixtures(m):
    tokens, experts, hidden, inner, k = m.number(1, 5), m.number(2, 4), m.pick(4, 8), m.pick(4, 6), m.number(1, 2)
    kind = m.pick("relu", "gelu", "silu", "identity", "swiglu")
    wide = inner * 2 if kind == "swiglu" else inner
    x = m.input(m.floats(*m.pick((tokens, hidden), (1, tokens, hidden))))
    router = m.input(m.floats(tokens, experts) * 2)
    given = dict(swiglu_fusion=1) if kind == "swiglu" else {}
    if kind == "swiglu" and m.pick(True, False):
        given.update(activation_alpha=1.702, activation_beta=1.0, swiglu_limit=.7)
    bias = [m.maybe(m.constant(m.floats(experts, n))) or "" for n in (wide, hidden)]
    m.add("MoE", [x, router, m.constant(m.floats(experts, wide, hidden)), bias[0],
                  m.constant(m.floats(experts, hidden, inner)), bias[1]], FLOAT, k=k, activation_type=kind,
          normalize_routing_weights=m.number(0, 1), **given)


def coded_mixtures(m):
    tokens, experts, hidden, inner, bits, block = m.number(1, 4), m.number(2, 3), 32, 16, m.pick(4, 8), m.pick(0, 16)
    kind = m.pick("relu", "silu", "swiglu")
    wide, zeros = inner * 2 if kind == "swiglu" else inner, m.pick(True, False)
    layers = []
    for rows, columns in ((wide, hidden), (hidden, inner)):
        blocks = (columns // block,) if block else ()
        packed = (blocks[0] + 1) // 2 if block and bits == 4 else blocks[0] if block else None
        codes = (experts, rows, packed) if block else (experts, rows // 2 if bits == 4 else rows)
        keep = m.input if block and bits == 8 else m.constant  # of constants onnxruntime multiplies bytes by bytes
        layers.append([keep(m.codes(np.uint8, experts, rows, columns * bits // 8)),
                       m.constant((m.rng.random((experts, rows) + blocks) / 99 + .01).astype(np.float32)),
                       m.maybe(m.constant(m.floats(experts, rows))) or "",
                       m.constant(m.codes(np.uint8, *codes)) if zeros else ""])
    (w, s, b, z), (v, t, c, y) = layers
    given = dict(block_size=block) if block else {}
    given.update(dict(swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0) if kind == "swiglu" else {})
    m.add("QMoE", [m.input(m.floats(tokens, hidden) / 9), m.input(m.floats(tokens, experts)), w, s, b, v, t, c, "", "",
                   "", z, y], FLOAT, k=m.number(1, 2), activation_type=kind, expert_weight_bits=bits, **given)


def gates(m):
    rows, heads, size = m.number(1, 5), m.number(1, 3), m.pick(4, 8)
    x = m.input(m.floats(2, rows, heads * size))
    m.add("GatedRMSNorm", [x, m.constant(m.floats(size)), m.input(m.floats(2, rows, heads * size))], FLOAT,
          activation=m.pick("silu", "swish", "sigmoid"), epsilon=1e-5)
    m.add("BranchwiseRMSNorm", [x, m.constant(m.floats(*m.pick((heads * size,), (heads, size), (size,))))], FLOAT,
          num_branches=heads, epsilon=1e-6)
    m.add("BranchwiseRMSNorm", [m.input(m.floats(rows, heads, size))], FLOAT, epsilon=1e-6)
    m.add("GatedAdd", [x, m.input(m.floats(2, rows, heads * size)), m.input(m.floats(2, rows, 1))], FLOAT)
    m.add("ScaledSiLU", [x], FLOAT, alpha=1.5)
    gate = [m.input(m.floats(2, rows, heads)), m.constant(m.floats(heads)),
            m.constant(-m.rng.random(heads, np.float32)), m.input(m.floats(2, rows, heads))]
    m.add("LinearAttentionGate", gate, FLOAT, FLOAT)


def remembering(m):
    batch, channels, length = m.number(1, 2), m.number(1, 4), m.number(1, 7)
    taps, dilation = m.number(2, 4), m.number(1, 2)
    ins = [m.input(m.floats(batch, channels, length)), m.constant(m.floats(channels, 1, taps)),
           m.maybe(m.constant(m.floats(channels))) or ""]
    ins.append(m.maybe(m.input(m.floats(batch, channels, (taps - 1) * dilation))) or "")
    m.add("CausalConvWithState", ins, FLOAT, FLOAT, activation=m.pick("none", "silu", "swish"), dilation=dilation)
    heads, shared, size, t = m.number(1, 2), m.number(1, 2), m.pick(4, 8), m.number(1, 5)
    rule = m.pick("linear", "gated", "delta", "gated_delta")
    width = heads * size
    q, k, v = (m.input(m.floats(batch, t, n) / 3) for n in (width * shared, width, width))
    past = m.maybe(m.input(m.floats(batch, heads, size, size))) or ""
    decay = m.input(-m.rng.random((batch, t, heads), np.float32)) if rule.startswith("gated") else ""
    beta = m.input(m.rng.random((batch, t, heads), np.float32)) if rule.endswith("delta") else ""
    m.add("LinearAttention", [q, k, v, past, decay, beta], FLOAT, FLOAT, q_num_heads=heads * shared, kv_num_heads=heads,
          update_rule=rule)


def streams(m):
    batch, rows, heads, half = m.number(1, 2), m.number(1, 5), m.number(1, 3), m.pick(6, 8)
    a = m.number(0, half // 3)
    x = m.floats(*m.pick((batch, rows, heads * half * 2), (batch, heads, rows, half * 2)))
    places = m.input(m.rng.integers(0, 9, (3, batch, rows)).astype(np.int64))
    caches = [m.constant(f(m.floats(9, half))) for f in (np.cos, np.sin)]
    m.add("MRotaryEmbedding", [m.input(x), places, *caches], FLOAT, mrope_section=[half - 2 * a, a, a],
          num_heads=heads, mrope_layout=m.number(0, 1), interleaved=m.number(0, 1))


def repeats(m):
    batch, length, words, size = m.number(1, 3), m.number(1, 12), m.number(3, 5), m.number(1, 3)
    ids = m.input(m.rng.integers(0, words, (batch, length)).astype(np.int64))
    m.add("NGramRepeatBlock", [ids, m.input(m.floats(batch, words))], FLOAT, ngram_size=size)


KINDS = {"mixtures": mixtures, "coded_mixtures": coded_mixtures, "gates": gates, "remembering": remembering,
         "streams": streams, "repeats": repeats, "q_attention": q_attention, "q_embed": q_embed,
         "gather_blocks": gather_blocks, "bnb": bits_of_bnb,
         "crops": crops, "early": early, "channels_last": channels_last,
         "written_out": written_out, "lstm": lstm, "coded": coded, "inverses": inverses}


# --- convolutions in blocks ---

def network(m, channels, first):
    """Convolutions, pools, sums and joins: channels that fill blocks of 8 or 16, or do not."""
    def node(kind, ins, **attrs):
        name = f"v{len(m.nodes)}"
        m.nodes.append(helper.make_node(kind, ins, [name], **attrs))
        return name

    def conv(x, c, out, size, group=1, **attrs):
        ins = [x, m.constant((out, c // group, size, size))]
        ins += [m.constant((out,))] if m.pick(True, False) else []
        return node("Conv", ins, group=group, pads=[size // 2] * 4, **attrs)

    def activation(x):
        kind = m.pick("Relu", "Sigmoid", "LeakyRelu", "HardSigmoid", "Tanh", "Clip", "HardSwish", "")
        if kind == "Clip":
            return node(kind, [x, m.constant(np.float32(-.5)), m.constant(np.float32(.75))])
        return node(kind, [x]) if kind else x
    first, many = m.pick(*first), [m.pick(*channels) for _ in range(5)]
    x = activation(conv(m.input((m.number(1, 2), first, 12, 14)), first, many[0], 3, strides=[m.number(1, 2)] * 2))
    y = activation(conv(x, many[0], many[0], 3, group=many[0]))
    x = activation(node("Add", [conv(y, many[0], many[0], 1), x]))
    kind = m.pick("MaxPool", "AveragePool")
    x = node(kind, [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    parts = [activation(conv(x, many[0], many[i], m.pick(1, 3))) for i in (1, 2)]
    x, c = node("Concat", parts, axis=1), many[1] + many[2]
    x = node("Resize", [x, "", m.constant(np.float32([1, 1, 2, m.number(1, 2)]))], mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = activation(conv(x, c, many[3], 1))
    z = node(m.pick("GlobalAveragePool", "GlobalMaxPool"), [x])
    x = node("Mul", [x, node("Sigmoid", [conv(z, many[3], many[3], 1)])])
    x = node("Transpose", [x], perm=[0, 2, 3, 1])
    m.outputs += [helper.make_tensor_value_info(n, FLOAT, None) for n in (x, z)]


def saved(m, folder):
    """What onnxruntime's optimizer makes of the model for this processor."""
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 3
    o.optimized_model_filepath = os.path.join(folder, "saved.onnx")
    onnxruntime.InferenceSession(m.proto().SerializeToString(), o, providers=["CPUExecutionProvider"])
    return onnx.load(o.optimized_model_filepath)


def has_blocks_of_16():
    """Whether onnxruntime saves blocks of 16 on this processor; they are the lanes of its vectors."""
    with open("/proc/cpuinfo", encoding="ascii") as f:
        return "avx512f" in f.read()


def in_blocks_of_8(proto):
    """A model whose channels fill blocks of 16, as a processor with smaller ones saves it; the model says so."""
    weights = {w.name: w for w in proto.graph.initializer}
    for node in proto.graph.node if has_blocks_of_16() else []:
        if node.op_type != "Conv" or node.domain != MS + ".nchwc":
            continue
        w = numpy_helper.to_array(weights[node.input[1]])
        o, i, *area = w.shape
        block = i if i < 16 else 16  # of inputs: 1 where there is one for each group
        plain = w.reshape(o // 16, i // block, *area, block, 16) if i >= 16 else w.reshape(o // 16, i, *area, 1, 16)
        plain = plain.transpose(0, 5, 1, 4, 2, 3).reshape(w.shape)
        if i >= 8:
            w = plain.reshape(o // 8, 8, i // 8, 8, *area).transpose(0, 2, 4, 5, 3, 1)
        else:
            w = plain.reshape(o // 8, 8, i, *area).transpose(0, 2, 3, 4, 1)
        weights[node.input[1]].raw_data = np.ascontiguousarray(w).tobytes()
    helper.set_model_props(proto, {"lathe.nchwc_block": "8"})
    return proto


def trained(m):
    """Batch normalization of before operator set 14 that trains: it says so by its results. And one number a place."""
    m.sets = [helper.make_opsetid("", m.pick(7, 8))]
    for _ in range(2):
        c, rest = m.number(1, 4), tuple(m.number(1, 4) for _ in range(m.number(1, 2)))
        ins = [m.input(m.floats(2, c, *rest)), *(m.constant(m.floats(c)) for _ in range(3)),
               m.constant(m.rng.random(c).astype(np.float32))]
        m.add("BatchNormalization", ins, *[FLOAT] * 5, domain="", momentum=.8, epsilon=m.pick(1e-5, 1e-2))
        ins[1:] = [m.constant(m.floats(c, *rest)) for _ in range(3)]
        ins.append(m.constant(m.rng.random((c, *rest)).astype(np.float32)))
        m.add("BatchNormalization", ins, FLOAT, domain="", spatial=0)


# --- searches ---

def decoder(m, vocabulary, places, width=16, heads=2):
    """A small one of GPT's kind, which onnxruntime runs with the keys and values of before."""
    nodes, weights = [], []

    def w(*shape):
        weights.append(numpy_helper.from_array(m.floats(*shape) * np.float32(.4), f"d{len(weights)}"))
        return weights[-1].name

    def node(kind, ins, outs=None, domain="", **attrs):
        outs = outs or [f"n{len(nodes)}"]
        nodes.append(helper.make_node(kind, ins, outs, domain=domain, **attrs))
        return outs[0]
    x = node("Add", [node("Gather", [w(vocabulary + 1, width), "input_ids"]),
                     node("Gather", [w(places, width), "position_ids"])])
    y = node("LayerNormalization", [x, w(width), w(width)])
    y = node("Attention", [y, w(width, 3 * width), w(3 * width), "attention_mask", "past_0"], ["a", "present_0"], MS,
             num_heads=heads, unidirectional=1)
    x = node("Add", [x, node("MatMul", [y, w(width, width)])])
    node("MatMul", [x, w(width, vocabulary)], ["logits"])
    info, past = helper.make_tensor_value_info, [2, "b", heads, "p", width // heads]
    ins = [info(n, TensorProto.INT32, ["b", s]) for n, s in (("input_ids", "s"), ("position_ids", "s"),
                                                             ("attention_mask", "t"))]
    outs = [info("logits", FLOAT, ["b", "s", vocabulary]), info("present_0", FLOAT, past[:3] + ["t"] + past[4:])]
    return helper.make_graph(nodes, "decoder", ins + [info("past_0", FLOAT, past)], outs, weights)


def one_that_ends(m, kind, prompt, ins, **attrs):
    """A token that some samples get, and not all: where all end, onnxruntime does not write the rest of its result."""
    other, never = Random(0), 999
    other.inputs, other.weights, other.feed = m.inputs, m.weights, m.feed
    other.add(kind, ins, TensorProto.INT32, eos_token_id=never, **attrs)
    rows = [set(r) for r in numbers(other.proto(), m.feed)[0][:, prompt:].tolist()]
    some = sorted(set.union(*rows) - set.intersection(*rows))
    return int(some[0]) if some else never


def beams(m, most):
    """Operands of BeamSearch behind the prompt: lengths, beams, penalties."""
    most, least, count = m.constant(i32(most)), m.constant(i32(m.number(0, most - 1))), m.number(1, 4)
    ins = [most, least, m.constant(i32(count)), m.constant(i32(m.number(1, count)))]
    return ins + [m.constant(np.float32([m.pick(1, .5, 2)])), m.constant(np.float32([m.pick(1, 1.3)]))]


def masks(m, batch, vocabulary):
    """Which tokens may come, and which may come first."""
    ins = [m.constant((m.rng.random(vocabulary) < .8).astype(np.int32)) if m.pick(True, False) else ""]
    return ins + [m.input((m.rng.random((batch, vocabulary)) < .8).astype(np.int32)) if m.pick(True, False) else ""]


def prompts(m, vocabulary, pad):
    ids = m.rng.integers(2, vocabulary, (m.number(1, 3), m.number(1, 4))).astype(np.int32)
    ids[0, :m.number(0, ids.shape[1] - 1)] = pad
    ids[m.rng.random(ids.shape) < .1] = pad
    return ids


def spares(m, vocabulary):
    """Scores behind those of the vocabulary, which no token has, and the attribute that says so."""
    return m.pick((0, {}), (0, {"vocab_size": vocabulary}), (m.number(1, 3), {"vocab_size": vocabulary}))


def search(m):
    """Greedy, and with beams: prompts with pads, penalties, what ends early, several sequences."""
    vocabulary, beam = m.number(6, 20), m.pick(True, False)
    spare, words = spares(m, vocabulary)
    ids = prompts(m, vocabulary, vocabulary)
    most = ids.shape[1] + m.number(1, 6)
    if beam:
        ins = beams(m, most)
    else:
        ins = [m.constant(i32(most)), m.constant(i32(m.number(0, most - 1))), m.constant(np.float32([m.pick(1, 1.3)]))]
    ins = [m.input(ids)] + ins + masks(m, len(ids), vocabulary)
    given = {"early_stopping": m.number(0, 1)} if beam else {}
    fixed = {"decoder": decoder(m, vocabulary + spare, most), "pad_token_id": vocabulary, "model_type": 0,
             "no_repeat_ngram_size": m.pick(0, 0, 1, 2, 3), **words}
    if m.pick(True, False) and not beam:
        fixed["init_decoder"] = fixed["decoder"]
    end = 1 if beam else one_that_ends(m, "GreedySearch", ids.shape[1], ins, **fixed)
    m.add("BeamSearch" if beam else "GreedySearch", ins, TensorProto.INT32, *([FLOAT] if beam else []),
          eos_token_id=end, **fixed, **given)


def encoded_search(m):
    """With beams, and an encoder: the decoder keeps what it was given."""
    vocabulary, most = m.number(6, 20), m.number(3, 7)
    spare, words = spares(m, vocabulary)
    ids = prompts(m, vocabulary, 0)
    ins = [m.input(ids)] + beams(m, most) + masks(m, len(ids), vocabulary)
    if m.pick(True, False):
        mask = np.ones(ids.shape, np.int32)
        mask[-1, m.number(1, ids.shape[1]):] = 0
        ins.append(m.input(mask))
    encoder, last = encoded.graphs(m.floats, vocabulary + spare, layers=2, heads=m.number(1, 2), size=4,
                                   form=m.number(0, 2), fused=m.pick(True, False))
    m.add("BeamSearch", ins, TensorProto.INT32, FLOAT, eos_token_id=1, pad_token_id=0, model_type=1, encoder=encoder,
          decoder=last, decoder_start_token_id=m.pick(0, 3), early_stopping=m.number(0, 1),
          no_repeat_ngram_size=m.pick(0, 2), **words)


def speech_search(m):
    """Of Whisper's kind, with prompts of several tokens."""
    vocabulary, prompt, batch = m.number(6, 20), m.number(1, 3), m.number(1, 2)
    spare, words = spares(m, vocabulary)
    most = prompt + m.number(2, 5)
    ins = [m.input(m.floats(batch, 5, m.number(1, 4)))] + beams(m, most) + masks(m, batch, vocabulary) + [""]
    given = prompt > 1 or m.pick(True, False)
    ids = m.rng.integers(2, vocabulary, (batch, prompt)).astype(np.int32)
    ins += [m.operand(ids) if given else "", m.constant(i32(0)) if m.pick(True, False) else "", "", ""]
    ins.append(m.constant(np.float32([m.pick(1, .7, 2)])) if m.pick(True, False) else "")
    encoder, last = encoded.speech_graphs(m.floats, vocabulary + spare, 2, m.number(1, 2), 4, prompt,
                                          m.pick(True, False))
    m.add("WhisperBeamSearch", ins, TensorProto.INT32, FLOAT, eos_token_id=1, pad_token_id=m.pick(0, 1), model_type=2,
          encoder=encoder, decoder=last, decoder_start_token_id=m.pick(0, 3), early_stopping=m.number(0, 1),
          no_repeat_ngram_size=m.pick(0, 2), **words)


def sampling(m):
    """Draws of onnxruntime's generator. It takes all presences off one score, of the first token of the first sample:
    only that token may have one."""
    vocabulary = m.number(6, 20)
    spare, words = spares(m, vocabulary)
    ids = prompts(m, vocabulary, vocabulary)
    most = ids.shape[1] + m.number(1, 6)
    ins = [m.input(ids), m.constant(i32(most)), m.constant(i32(m.number(0, most - 1)))]
    ins += [m.constant(np.float32([m.pick(1, 1.3)]))] + masks(m, len(ids), vocabulary) + [""]
    presences = np.zeros((len(ids), vocabulary), np.int32)
    presences[0, 0] = 1
    ins.append(m.input(presences) if m.pick(True, False) else "")
    ins.append(m.operand(i32(m.pick(0, 1, m.number(0, 1 << 30)))))
    given = {"decoder": decoder(m, vocabulary + spare, most), "pad_token_id": vocabulary, **words,
             "temperature": float(m.pick(1, .7, 2)), "top_p": float(m.pick(.1, .5, .9)), "custom": m.number(0, 1),
             "presence_penalty": float(m.pick(0, .5)),
             "min_tokens_to_keep": m.number(0, 3), "filter_value": float(m.pick(-1e20, -np.inf)),
             "no_repeat_ngram_size": m.pick(0, 2)}
    end = one_that_ends(m, "Sampling", ids.shape[1], ins, **given)
    m.add("Sampling", ins, TensorProto.INT32, eos_token_id=end, **given)


KINDS["encoded"] = encoded_search
KINDS["speech"] = speech_search
KINDS["sampling"] = sampling
KINDS["search"] = search


# --- QONNX: the formulas of its package ---

def rounding(mode, x):
    far = {"UP": np.ceil, "DOWN": np.floor, "HALF_UP": lambda v: np.floor(v + np.float32(.5)),
           "HALF_DOWN": lambda v: np.ceil(v - np.float32(.5))}
    near = {"ROUND": np.round, "HALF_EVEN": np.round, "CEIL": np.ceil, "FLOOR": np.floor}
    return near[mode](x) if mode in near else (np.sign(x) * far[mode](np.abs(x)))


def limits(bits, signed, narrow):
    if signed:
        return -(2. ** (bits - 1)) + narrow, 2. ** (bits - 1) - 1
    return 0., 2. ** bits - 1 - narrow


def qonnx_model(m):
    """The model, and what the formulas give."""
    want, f = [], np.float32
    domain = m.pick(QONNX, "onnx.brevitas")
    m.sets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    modes = ("ROUND", "HALF_EVEN", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "half_down")
    for _ in range(4):
        x, step = (m.rng.standard_normal((2, 3, 4)) * 4).astype(f), f(m.pick(.25, .1, .5))
        scale = step if m.pick(True, False) else (m.rng.random((1, 3, 1)) + .1).astype(f)
        zero, bits, mode = f(m.pick(0, 0, 2)), m.number(1, 8), m.pick(*modes)
        signed, narrow = m.number(0, 1), m.number(0, 1)
        m.add("Quant", [m.operand(x), m.constant(scale), m.constant(zero), m.constant(f(bits))], FLOAT, domain=domain,
              signed=signed, narrow=narrow, rounding_mode=mode)
        y = x / scale + zero
        if bits == 1 and signed:
            y = np.where(y >= 0, f(1), f(-1))
        else:
            low, high = limits(bits, signed, narrow)
            y = rounding(mode.upper(), np.maximum(np.minimum(y, f(high)), f(low)))
        want.append((y - zero) * scale)
        mode, less = m.pick(*modes), m.number(1, 4)
        m.add("Trunc", [m.operand(x), m.constant(scale), m.constant(zero), m.constant(f(8)), m.constant(f(8 - less))],
              FLOAT, domain=domain, rounding_mode=mode)
        y = rounding(mode.upper(), np.round(x / scale + zero) / f(2. ** less))
        want.append((y - zero) * scale)
    m.add("BipolarQuant", [m.operand(x), m.constant(scale)], FLOAT, domain=domain)
    want.append(np.where(x >= 0, f(1), f(-1)) * scale)
    return m, want


def qonnx_newest(m):
    """Trunc of version 2."""
    want, f = [], np.float32
    m.sets = [helper.make_opsetid("", 21), helper.make_opsetid(QONNX, 2)]
    for _ in range(4):
        x, scale, zero = (m.rng.standard_normal((2, 3, 4)) * 20).astype(f), f(.25), f(m.pick(0, 4))
        by, bits, signed, narrow = m.pick(1, 2, 4), m.number(2, 6), m.number(0, 1), m.number(0, 1)
        mode = m.pick("FLOOR", "ROUND", "CEIL")
        m.add("Trunc", [m.operand(x)] + [m.constant(f(v)) for v in (scale, zero, 8, scale * by, bits)], FLOAT,
              domain=QONNX, rounding_mode=mode, signed=signed, narrow=narrow)
        low, high = limits(bits, signed, narrow)
        y = np.maximum(np.minimum(np.round(x / scale + zero) / f(by), f(high)), f(low))
        want.append((rounding(mode, y) - zero / f(by)) * (scale * f(by)))
    return m, want


# --- what is refused: operator, domain, operands, attributes, a part of the message ---
ONES = np.ones((1, 4, 4, 4), np.float32)
NOTHING = helper.make_graph([], "decoder", [], [])
REFUSED = (
    ("Quant", QONNX, [ONES, np.float32(1), np.float32(0), (1,)], {"signed": 1}, "the number of bits must be one"),
    ("Quant", QONNX, [ONES] + [np.float32(v) for v in (1, 0, 4)], {"rounding_mode": "SIDEWAYS"}, "is none of ROUND"),
    ("Conv", MS + ".nchwc", [ONES, (16, 4, 1, 1)], {}, "weights must be constants"),
    ("CropAndResize", MS, [ONES, (1, 4), i32(0), i32(2, 2)], {}, "crop_size must be a constant"),
    ("CropAndResize", MS, [ONES, (1, 4), i32(0), i32(2, 2)], {"mode": "cubic"}, "neither bilinear nor nearest"),
    ("Unique", MS, [(2, 3)], {}, "must have one dimension"),
    ("GatherBlockQuantized", MS, [np.zeros((2, 16), np.uint8), i32(0), (2, 1)], {"bits": 2}, "of 2 bits"),
    ("GatherBlockQuantized", MS, [np.zeros((2, 16), np.uint8), i32(0), (2, 1)], {"block_size": 7}, "block_size = 7"),
    ("MatMulBnb4", MS, [(2, 16), np.zeros(8, np.uint8), (1,)], {"K": 16, "N": 1, "block_size": 16, "quant_type": 0},
     "must be constants"),
    ("UnfoldTensor", MS, [(2, 3)], {"size": 5}, "do not fit an extent of 3"),
    ("Inverse", MS, [(2, 3)], {}, "as many rows as columns"),
    ("GreedySearch", MS, [i32(1, 2).reshape(1, 2), i32(5)], {"decoder": NOTHING, "model_type": 1}, "with an encoder"),
    ("BeamSearch", MS, [i32(1, 2).reshape(1, 2), i32(5), "", i32(1), i32(1)], {"decoder": NOTHING, "model_type": 1},
     "attribute 'encoder' must be a graph"),
    ("GreedySearch", MS, [i32(1, 2).reshape(1, 2), i32(5)], {"decoder": NOTHING}, "max_length must be a constant"),
    ("GreedySearch", MS, [i32(1, 2).reshape(1, 2), i32(5)], {"decoder": NOTHING, "vocab_size": -2}, "vocab_size = -2"),
    ("BeamSearch", MS, [i32(1, 2).reshape(1, 2), i32(5), "", i32(1), i32(1)], {"decoder": NOTHING, "model_type": 2},
     "Whisper's (2) is WhisperBeamSearch"),
    ("WhisperBeamSearch", MS, [(1, 2), i32(5), "", i32(1), i32(1)], {"decoder": NOTHING}, "[batch, features, frames]"),
    ("WhisperBeamSearch", MS, [(1, 2, 3), i32(5), "", i32(1), i32(1)] + [""] * 6 + [i32(1)],
     {"decoder": NOTHING, "encoder": NOTHING, "decoder_start_token_id": 1}, "logits_processor must be 0"),
    ("WhisperBeamSearch", MS, [(2, 2, 3), i32(5), "", i32(1), i32(1)] + [""] * 5 + [i32(1, 2).reshape(1, 2)],
     {"decoder": NOTHING, "encoder": NOTHING}, "decoder_input_ids must be [batch, tokens]"),
    ("MoE", MS, [(2, 4), (2, 3), (3, 4, 4), (3, 4), (3, 4, 4)], {"k": 4}, "for each expert"),
    ("MoE", MS, [(2, 4), (2, 3), (3, 4, 4), "", (3, 4, 4), "", (3, 4, 4)], {"activation_type": "silu"}, "operand 6"),
    ("MRotaryEmbedding", MS, [(1, 2, 8), np.zeros((3, 1, 2), np.int64), (5, 4), (5, 4)],
     {"num_heads": 1, "mrope_section": [1, 1, 1]}, "whose sum is 4"),
    ("DynamicQuantizeLSTM", MS, [(3, 1, 2), (1, 2, 8), (1, 2, 8)] + [""] * 5 + [(1,)] * 4,
     {"activations": ["Sigmoid", "Elu", "Tanh"]}, "'Elu' is none of Relu"),
    ("Frob", "com.example", [(2, 3), ""], {}, "com.example.Frob: f32[2, 3], - -> ? (operator set 1"),
    ("QAttention", MS, [np.zeros((1, 2, 8), np.uint8), np.zeros((8, 24), np.uint8), (24,), np.float32(1),
                        np.float32(1)], {"num_heads": 2, "do_rotary": 1}, "do_rotary"),
)


class Test:
    def __init__(self, lathe, folder, how):
        self.lathe, self.folder, self.how, self.passed, self.failed = lathe, folder, how, 0, 0

    def check(self, what, good, text=""):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print(f"FAILED {what}: {text[-1500:]}")

    def run(self, *words):
        p = subprocess.run([self.lathe, *words], capture_output=True, text=True, timeout=600, check=False,
                           env=package.environment())
        return p.returncode, p.stdout + p.stderr

    def against(self, name, m, proto, want):
        """The numbers stored beside the model as ONNX's own cases are."""
        path, data = os.path.join(self.folder, f"{name}.onnx"), os.path.join(self.folder, name)
        onnx.save(proto, path)
        os.makedirs(data, exist_ok=True)
        for kind, values in (("input", m.feed.items()), ("output", zip((o.name for o in m.outputs), want))):
            for i, (label, value) in enumerate(values):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as f:
                    f.write(numpy_helper.from_array(np.asarray(value), label).SerializeToString())
        limits = [word for name, most in m.limits.items() for word in ("--dim", f"{name}<={most}")]
        code, text = self.run("verify", path, "--data", data, *limits, *self.how)
        self.check(name, code == 0, text)

    def against_runtime(self, name, m, proto, changed=lambda p: p):
        want = numbers(proto, m.feed)
        self.against(name, m, changed(proto), want)

    def refusal(self, kind, domain, operands, attrs, part):
        m, out = Random(1), os.path.join(self.folder, "refused")
        m.sets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
        ins = [v if isinstance(v, str) else (m.constant if isinstance(v, np.float32) else m.input)(v) for v in operands]
        m.add(kind, ins, FLOAT, domain=domain, **attrs)
        onnx.save(m.proto(), out + ".onnx")
        code, text = self.run("compile", out + ".onnx", "-o", out)
        self.check(f"{kind} {attrs}: {part}", code == 1 and part in text and not os.path.exists(out), text)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=2)
    a.add_argument("--packages", action="store_true", help="build C instead of interpreting")
    a.add_argument("--filter", default="*")
    a = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        t = Test(os.path.abspath(a.lathe), folder, [] if a.packages else ["--interpret"])

        def wanted(name):
            return fnmatch.fnmatch(name, a.filter)
        for seed in range(a.seed, a.seed + a.count):
            for name, make in KINDS.items():
                if wanted(name):
                    m = Random(seed)
                    for _ in range(6):
                        make(m)
                    t.against_runtime(f"{name}-{seed}", m, m.proto())
            if wanted("nchwc"):
                m = Random(seed)
                network(m, (8, 12, 16, 24, 32, 48), (1, 3, 8, 12, 16))
                t.against_runtime(f"nchwc-{seed}", m, saved(m, folder))
                m = Random(seed)
                network(m, (16, 32, 48), (1, 3, 16))
                t.against_runtime(f"nchwc8-{seed}", m, saved(m, folder), in_blocks_of_8)
            if wanted("trained"):
                m = Random(seed)
                trained(m)
                t.against_runtime(f"trained-{seed}", m, m.proto())
            if wanted("qonnx"):
                for name, make in (("qonnx", qonnx_model), ("qonnx2", qonnx_newest)):
                    m, want = make(Random(seed))
                    t.against(f"{name}-{seed}", m, m.proto(), want)
        for case in REFUSED if wanted("refused") else ():
            t.refusal(*case)
    print(f"domains: {t.passed} passed, {t.failed} failed")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
