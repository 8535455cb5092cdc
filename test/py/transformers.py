#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that optimised transformers contain, against onnxruntime through `lathe verify --data`.

    transformers.py [--lathe FILE] [--target TARGET]

Each model has an operator many times: every attribute and operand of its schema that onnxruntime's kernels for
processors take, several at a time, with pasts, masks of all their ranks and heads that share keys; lengths and masks
are operands of the run. What those kernels do not take, or Lathe does not, is one message that says what to do. An
encoder as onnxruntime's optimiser writes it has attention as one operator in it. A batch may stay open."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MS = "com.microsoft"


class Model:
    def __init__(self, seed=1):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.weights, self.feed = [], [], [], [], {}

    def input(self, value, shape=None):
        """Floats by a shape, or the array itself."""
        if isinstance(value, tuple):
            value = self.rng.standard_normal(value).astype(np.float32)
        name = f"x{len(self.inputs)}"
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape or value.shape))
        self.feed[name] = value
        return name

    def constant(self, value):
        if isinstance(value, tuple):
            value = self.rng.standard_normal(value).astype(np.float32) / 4
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind, ins, outs=(0,), domain=MS, shapes=None, **attrs):
        """outs: which results are wanted; shapes: extents of results that only the run knows."""
        count = max(max(outs) + 1, 2 if kind == "EmbedLayerNormalization" else 1)
        names = [f"y{len(self.nodes)}_{i}" if i in outs else "" for i in range(count)]
        self.nodes.append(helper.make_node(kind, ins, names, domain=domain, **attrs))
        for i in outs:
            self.outputs.append(helper.make_tensor_value_info(names[i], TensorProto.FLOAT, (shapes or {}).get(i)))
        return names

    def save(self, path, opset=21):
        graph = helper.make_graph(self.nodes, "transformer", self.inputs, self.outputs, self.weights)
        sets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
        onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)


def i32(*values):
    return np.array(values, np.int32)


def simple_model():
    m = Model()
    for shape in ((3, 40), (2, 5, 33)):
        x, b = m.input(shape), m.constant(shape[-1:])
        m.node("BiasGelu", [x, b])
        m.node("FastGelu", [x, b])
        m.node("FastGelu", [x])
        m.node("Gelu", [x])
        m.node("QuickGelu", [x])
        m.node("QuickGelu", [x], alpha=1.0)
    for skip in ((2, 5, 48), (1, 5, 48), (5, 48)):
        x, s, b, gamma, beta = m.input((2, 5, 48)), m.input(skip), *(m.constant((48,)) for _ in range(3))
        m.node("SkipLayerNormalization", [x, s, gamma])
        m.node("SkipLayerNormalization", [x, s, gamma, beta, b], (0, 3), epsilon=1e-3)
        m.node("SkipLayerNormalization", [x, s, gamma, "", b])
        m.node("SkipSimplifiedLayerNormalization", [x, s, gamma], (0, 3), epsilon=1e-3)
        m.node("SkipSimplifiedLayerNormalization", [x, s, gamma, b])
    m.node("SimplifiedLayerNormalization", [m.input((2, 5, 48)), m.constant((48,))], domain="", epsilon=1e-3)
    return m


def product_model():
    m = Model()
    for a, b, attrs in (((7, 5), (5, 6), {"alpha": 0.5}), ((5, 7), (5, 6), {"transA": 1}),
                        ((2, 3, 7, 5), (2, 3, 6, 5), {"transB": 1, "alpha": 0.125}),
                        ((2, 3, 5, 7), (3, 6, 5), {"transA": 1, "transB": 1}),
                        ((7, 2, 3, 5), (2, 3, 5, 6), {"transBatchA": 1}),
                        ((5, 2, 3, 7), (2, 3, 5, 6), {"transBatchA": 1, "transA": 1}),
                        ((2, 7, 5), (5, 2, 6), {"transBatchB": 1}),
                        ((7, 2, 5), (6, 2, 5), {"transBatchA": 1, "transBatchB": 1, "transB": 1}),
                        ((5,), (5, 6), {"transA": 1})):
        m.node("FusedMatMul", [m.input(a), m.input(b)], **attrs)
    return m


def other_model():
    """What onnxruntime had before ONNX, and distances."""
    m = Model()
    for metric in ("euclidean", "sqeuclidean"):
        m.node("CDist", [m.input((5, 7)), m.input((4, 7))], metric=metric)
    m.node("TransposeMatMul", [m.input((5, 7)), m.input((5, 6))], transA=1, alpha=0.5)
    m.node("Trilu", [m.input((2, 4, 5))], upper=0)
    m.node("Trilu", [m.input((4, 5)), m.constant(np.array(1))])
    m.node("GatherND", [m.input((3, 4, 2)), m.constant(np.array([[0, 1], [2, 3]]))])
    grid = m.rng.uniform(-1.1, 1.1, (1, 3, 3, 2)).astype(np.float32)
    m.node("GridSample", [m.input((1, 2, 5, 6)), m.input(grid)], mode="bilinear", padding_mode="border")
    m.node("Pad", [m.input((2, 3)), m.constant(np.array([0, 1, 2, 0])), m.constant(np.array([.5], np.float32))])
    return m


def layer_model():
    """Convolutions and products with the activations that onnxruntime's optimiser moves into them."""
    m = Model()
    for name, params in (("Relu", []), ("LeakyRelu", [0.3]), ("Sigmoid", []), ("Tanh", []), ("Clip", [-0.5, 0.75]),
                         ("HardSigmoid", [0.1, 0.4]), ("HardSwish", [])):
        given = {"activation_params": params} if params else {}
        m.node("FusedConv", [m.input((1, 3, 7, 6)), m.constant((5, 3, 3, 3)), m.constant((5,))], activation=name,
               pads=[1, 0, 0, 1], strides=[2, 1], **given)
    m.node("FusedConv", [m.input((2, 4, 5, 5)), m.constant((6, 2, 1, 1))], group=2)
    m.node("FusedConv", [m.input((2, 4, 5)), m.constant((6, 4, 3)), "", m.input((2, 6, 3))], activation="Relu",
           activation_params=[7.0])
    one, two = {"activation_alpha": 0.3}, {"activation_alpha": 0.3, "activation_beta": 0.4}
    for name, given in (("Relu", {}), ("LeakyRelu", one), ("Sigmoid", {}), ("Tanh", {}), ("HardSigmoid", two),
                        ("Elu", one), ("Celu", one), ("Softplus", {}), ("Softsign", {}), ("ThresholdedRelu", one),
                        ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.2})):
        m.node("FusedGemm", [m.input((5, 7)), m.constant((7, 9)), m.constant((9,))], activation=name, **given)
    m.node("FusedGemm", [m.input((7, 5)), m.constant((9, 7)), m.constant((5, 1))], activation="Relu", transA=1,
           transB=1, alpha=0.5, beta=0.25)
    return m


def embedding_model():
    m = Model()
    ids, segments, mask = (m.input(m.rng.integers(0, n, (2, 6)).astype(np.int32)) for n in (50, 2, 2))
    places = m.input(m.rng.integers(0, 9, (2, 6)).astype(np.int32))
    word, position, segment, gamma, beta = (m.constant(s) for s in ((50, 24), (9, 24), (2, 24), (24,), (24,)))
    kind = "EmbedLayerNormalization"
    m.node(kind, [ids, segments, word, position, segment, gamma, beta])
    m.node(kind, [ids, "", word, position, "", gamma, beta], epsilon=1e-3)
    m.node(kind, [ids, segments, word, position, segment, gamma, beta, mask, places], (0, 2))
    m.nodes.append(helper.make_node(kind, [ids, "", word, position, "", gamma, beta, mask], ["unused", "counts"],
                                    domain=MS, mask_index_type=1))
    m.outputs.append(helper.make_tensor_value_info("counts", TensorProto.INT32, None))
    return m


def attention_model():
    m = Model()
    x, w, b = m.input((2, 6, 32)), m.constant((32, 96)), m.constant((96,))
    past = m.input((2, 2, 4, 3, 8))
    kind, heads = "Attention", 4
    m.node(kind, [x, w, b], num_heads=heads)  # without a bias onnxruntime 1.31 itself crashes
    m.node(kind, [x, w, b], num_heads=heads, scale=0.3, unidirectional=1)
    for shape in ((2,), (4,)):
        lengths = m.input(i32(6, 4, 0, 1)[:shape[0]])
        m.node(kind, [x, w, b, lengths], num_heads=heads)
    for shape in ((2, 6), (2, 1), (1, 1), (2, 6, 6)):
        mask = m.input((m.rng.random(shape) < 0.7).astype(np.int32))
        m.node(kind, [x, w, b, mask], num_heads=heads, mask_filter_value=-100.0)
    m.node(kind, [x, w, b, m.input((m.rng.random((2, 6, 6)) < 0.7).astype(np.int32))], num_heads=heads,
           unidirectional=1)
    m.node(kind, [x, w, b, "", past], (0, 1), num_heads=heads, unidirectional=1)
    m.node(kind, [x, w, b, m.input((m.rng.random((2, 9)) < 0.7).astype(np.int32)), past], (0, 1), num_heads=heads)
    m.node(kind, [x, w, b, "", "", m.input((1, 1, 6, 6))], num_heads=heads)
    m.node(kind, [x, m.constant((32, 32 + 32 + 48)), m.constant((112,))], num_heads=heads,
           qkv_hidden_sizes=[32, 32, 48])
    m.node(kind, [x, m.input((32, 96)), m.input((96,))], num_heads=heads)
    return m


def multi_head_model():
    m = Model()
    q, k, v, b = m.input((2, 6, 32)), m.input((2, 5, 32)), m.input((2, 5, 48)), m.constant((112,))
    wide = m.input((2, 5, 32))
    past = [m.input((2, 4, 3, 8)) for _ in range(2)]
    kind, heads = "MultiHeadAttention", 4
    m.node(kind, [q, k, v], num_heads=heads)
    m.node(kind, [q, k, v, b], num_heads=heads, scale=0.3)
    m.node(kind, [q, k, v, b, m.input(i32(5, 2))], num_heads=heads)
    m.node(kind, [q, k, v, b, m.input((m.rng.random((2, 5)) < 0.7).astype(np.int32))], num_heads=heads,
           mask_filter_value=-50.0)
    m.node(kind, [q, k, v, "", m.input((m.rng.random((2, 6, 5)) < 0.7).astype(np.int32))], num_heads=heads)
    m.node(kind, [q, k, v, "", "", m.input((1, 4, 6, 5))], num_heads=heads)
    m.node(kind, [q, wide, wide, m.constant((96,)), "", m.input((2, 1, 6, 8))] + past, (0, 1, 2), num_heads=heads)
    m.node(kind, [q, q, q], num_heads=heads, unidirectional=1)
    m.node(kind, [q, m.input((2, 4, 7, 8)), m.input((2, 4, 7, 8))], num_heads=heads)
    m.node(kind, [m.input((2, 1, 32)), m.input((2, 1, 32)), m.input((2, 1, 32)), "", "", "", *past], (0, 1, 2),
           num_heads=heads)
    m.node(kind, [q, wide, wide], (0, 3), num_heads=heads)
    return m


def opened_model():
    """How many keys stand before, and how many queries come, is known at run time only."""
    m, heads = Model(), 4
    x, w, b = m.input((2, 6, 32), (2, "s", 32)), m.constant((32, 96)), m.constant((96,))
    past = m.input((2, 2, 4, 3, 8), (2, 2, 4, "p", 8))
    m.node("Attention", [x, w, b], num_heads=heads, unidirectional=1)
    m.node("Attention", [x, w, b, m.input(i32(4, 2))], num_heads=heads)
    m.node("Attention", [x, w, b, "", past], (0, 1), num_heads=heads, unidirectional=1)
    before = [m.input((2, 4, 3, 8), (2, 4, "p", 8)) for _ in range(2)]
    m.node("MultiHeadAttention", [x, x, x, "", "", "", *before], (0, 1, 2), num_heads=heads, unidirectional=1)
    m.node("MultiHeadAttention", [x, x, x, "", m.input(i32(5, 2))], num_heads=heads)
    one = m.input((2, 1, 32))
    m.node("MultiHeadAttention", [one, one, one, "", "", "", *before], (0, 1, 2), num_heads=heads)
    return m


def rotary_model():
    m = Model()
    kind = "RotaryEmbedding"
    at, first = m.input(m.rng.integers(0, 20, (2, 5))), m.input(np.array([3], np.int64))
    for inter in (0, 1):
        caches = [m.constant((20, 8)) for _ in range(2)]
        few = [m.constant((20, 4)) for _ in range(2)]
        m.node(kind, [m.input((2, 5, 64)), at, *caches], interleaved=inter)
        m.node(kind, [m.input((2, 5, 64)), first, *caches], interleaved=inter, num_heads=4)
        m.node(kind, [m.input((2, 5, 64)), at, *few], interleaved=inter, num_heads=4, rotary_embedding_dim=8)
        m.node(kind, [m.input((2, 4, 5, 16)), at, *caches], interleaved=inter)
        m.node(kind, [m.input((2, 4, 5, 16)), first, *caches], interleaved=inter, scale=1.0)
    return m


def group_model():
    m = Model()
    caches = [m.constant((32, 8)) for _ in range(2)]

    def group(batch, rows, before, keys, lengths, heads=4, kv=2, packed=False, turn=0, extra=(), share=False, **attrs):
        if packed:
            ins = [m.input((batch, rows, (heads + 2 * kv) * 16)), "", ""]
        else:
            ins = [m.input((batch, rows, n * 16)) for n in (heads, kv, kv)]
        for _ in range(2 if before else 0):  # onnxruntime makes what stands behind the new keys zero
            old = m.rng.standard_normal((batch, kv, before, 16)).astype(np.float32)
            for i, last in enumerate(lengths):
                old[i, :, last + 1 - rows:] = 0
            ins.append(m.input(old))
        ins += [""] * (5 - len(ins))
        total = i32(max(lengths) + 1 if share else keys)
        ins += [m.input(i32(*lengths)), m.input(total) if share or packed else m.constant(total)]
        ins += caches if turn else ["", ""]
        cache = (batch, kv, keys, 16)
        m.node("GroupQueryAttention", ins + list(extra), (0, 1, 2) if before else (0,), shapes={1: cache, 2: cache},
               num_heads=heads, kv_num_heads=kv, do_rotary=turn, **attrs)

    group(1, 6, 0, 6, [5])
    group(2, 6, 0, 6, [5, 5], turn=1)
    group(2, 1, 7, 8, [7, 7], turn=1, rotary_interleaved=1)
    group(1, 3, 5, 8, [7], packed=True, turn=1, scale=0.4)
    group(2, 1, 12, 12, [8, 3], share=True, turn=1)
    group(1, 1, 12, 12, [6], heads=8, kv=1, share=True, local_window_size=3)
    group(1, 6, 0, 6, [5], heads=4, kv=4, local_window_size=2)
    group(1, 6, 0, 6, [5], softcap=3.0, smooth_softmax=1)
    group(1, 1, 7, 8, [7], extra=["", m.input((1, 4, 1, 8))])
    group(1, 4, 0, 4, [3], extra=["", m.input((1, 1, 4, 4)), m.constant((4,))], turn=1)
    group(1, 5, 0, 5, [4], turn=1, extra=[m.input(np.array([[3, 4, 5, 6, 7]]))])
    return m


LAYERS = 2


def encoder_model(*batch):
    """What onnxruntime.transformers.optimizer makes of a BERT. batch: what each input calls it, if it is open."""
    m, seq, width, heads = Model(), 9, 64, 4
    ids, segments, mask = (m.input(m.rng.integers(0, n, (2, seq)).astype(np.int32), [name, seq])
                           for n, name in zip((50, 2, 2), batch or (2, 2, 2)))
    names = [f"e{i}" for i in range(3)]
    m.nodes.append(helper.make_node("EmbedLayerNormalization", [ids, segments] + [
        m.constant(s) for s in ((50, width), (16, width), (2, width), (width,), (width,))] + [mask], names[:2],
                                    domain=MS))
    m.nodes.append(helper.make_node("ReduceSum", [mask, m.constant(np.array([1]))], ["lengths"], keepdims=0))

    def add(kind, ins, domain=MS, **attrs):
        out = f"v{len(m.nodes)}"
        m.nodes.append(helper.make_node(kind, ins, [out], domain=domain, **attrs))
        return out
    x = names[0]
    for _ in range(LAYERS):
        y = add("Attention", [x, m.constant((width, 3 * width)), m.constant((3 * width,)), "lengths"], num_heads=heads)
        y = add("MatMul", [y, m.constant((width, width))], "")
        x = add("SkipLayerNormalization", [y, x, *(m.constant((width,)) for _ in range(3))])
        y = add("BiasGelu", [add("MatMul", [x, m.constant((width, 96))], ""), m.constant((96,))])
        y = add("MatMul", [y, m.constant((96, width))], "")
        x = add("SkipLayerNormalization", [y, x, *(m.constant((width,)) for _ in range(3))])
    m.outputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, None))
    return m


def onnx_model():
    """ONNX's own operator with a cache: one query, several, heads that share keys, masks of two to four axes."""
    m = Model()
    for rows, before, heads, kv in ((1, 9, 4, 4), (1, 40, 6, 2), (3, 9, 4, 1), (5, 0, 4, 2)):
        ins = [m.input((2, n, rows, 16)) for n in (heads, kv, kv)] + [""]
        ins += [m.input((2, kv, before, 16)) for _ in range(2)] if before else []
        m.node("Attention", ins, (0, 1, 2) if before else (0,), domain="", is_causal=1)
        for mask in ((rows, before + rows), (heads, rows, before + rows), (2, 1, rows, before + rows)):
            m.node("Attention", ins[:3] + [m.input(mask)] + ins[4:], (0, 1, 2), domain="", scale=0.2)
        m.node("Attention", ins, (0, 1, 2, 3) if before else (0, 3), domain="", qk_matmul_output_mode=1)
    return m


# --- what is refused: operator, operands (shapes or arrays, "": none), attributes, a part of the message ---
REFUSED = (
    ("Attention", [(1, 2, 8), (8, 24)], {"num_heads": 2, "do_rotary": 1}, "do_rotary is not supported"),
    ("Attention", [(1, 2, 8), (8, 24), (24,), np.ones((1, 1, 2, 2), np.int32)], {"num_heads": 2}, "4 dimensions"),
    ("Attention", [(1, 2, 8), (8, 24), (24,), i32(1, 0, 1, 0, 1)], {"num_heads": 2}, "a mask of 5 numbers"),
    ("Attention", [(1, 2, 8), (8, 24)], {"num_heads": 3}, "do not divide into queries, keys and values of 3 heads"),
    ("MultiHeadAttention", [(1, 2, 2, 3, 4)], {"num_heads": 2}, "export the model for CPUs"),
    ("MultiHeadAttention", [(1, 1, 8), (1, 1, 8), (1, 1, 8), "", "", "", (1, 2, 4, 4), (1, 2, 4, 4), i32(2)],
     {"num_heads": 2}, "past_sequence_length"),
    ("GroupQueryAttention", [(1, 1, 8), (1, 1, 8), (1, 1, 8), (1, 2, 4, 4), (1, 2, 4, 4), i32(2), i32(3)],
     {"num_heads": 2, "kv_num_heads": 2, "k_quant_type": "PER_TENSOR"}, "quantized caches"),
    ("GroupQueryAttention", [(1, 1, 8), (1, 1, 8), (1, 1, 8), (1, 2, 4, 4), (1, 2, 4, 4), i32(2), i32(3)],
     {"num_heads": 2, "kv_num_heads": 2}, "declare the extent of present_key"),
    ("GroupQueryAttention", [(1, 1, 8), (1, 1, 8), (1, 1, 8), "", "", i32(0), i32(1)],
     {"num_heads": 2, "kv_num_heads": 2, "sliding_window_cache": 1}, "sliding_window_cache"),
    ("FusedConv", [(1, 2, 4, 4), (3, 2, 1, 1)], {"activation": "Gelu"}, "'Gelu' is not one of these: Clip, "),
    ("FusedConv", [(1, 2, 4, 4), (3, 2, 1, 1)], {"activation": "Clip", "activation_params": [1.0]}, "Clip needs 2"),
    ("FusedConv", [(1, 2, 4, 4), (3, 2, 1, 1), "", (1, 3, 1, 1)], {"activation": "Relu"}, "Z must have the shape"),
    ("FusedConv", [(1, 2, 4, 4)], {}, "input 1 ('W') is missing"),
    ("FusedConv", ["", (3, 2, 1, 1)], {}, "input 0 ('X') is missing"),
    ("FusedGemm", [(2, 3), (3, 4)], {}, "activation '' is not one of these: Celu, Elu,"),
    ("FusedGemm", [(2, 3), (3, 4)], {"activation": "LeakyRelu"}, "needs the attribute activation_alpha"),
    ("FusedGemm", [(2, 3)], {"activation": "Relu"}, "input 1 ('B') is missing"),
    ("RotaryEmbedding", [(1, 2, 8), np.zeros((1, 2), np.int64), (4, 2), (4, 2)], {"is_packed_batching": 1},
     "is_packed_batching"),
)


def refused_model(kind, operands, attrs):
    m = Model()
    m.node(kind, [v if isinstance(v, str) else m.input(v) for v in operands], shapes={0: None}, **attrs)
    return m


class Test:
    def __init__(self, lathe, folder, target):
        self.lathe, self.folder, self.target, self.passed, self.failed = lathe, folder, target, 0, 0

    def check(self, what, good, text=""):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print(f"FAILED {what}: {text[-3000:]}")

    def run(self, *words):
        p = subprocess.run([self.lathe, *words], capture_output=True, text=True, timeout=600, check=False,
                           env=package.environment())
        return p.returncode, p.stdout + p.stderr

    def against_runtime(self, name, m, *words):
        """The numbers that onnxruntime gives, stored beside the model as ONNX's own cases are."""
        model, data = os.path.join(self.folder, f"{name}.onnx"), os.path.join(self.folder, name)
        m.save(model, 24 if name == "onnx" else 21)
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
        got = session.run(None, m.feed)
        os.makedirs(data)
        for kind, values in (("input", m.feed.items()), ("output", zip((o.name for o in m.outputs), got))):
            for i, (label, value) in enumerate(values):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as f:
                    f.write(numpy_helper.from_array(value, label).SerializeToString())
        code, text = self.run("verify", model, "--data", data, "--target", self.target, *words)
        self.check(name, code == 0, text)
        return got

    def one_operator(self, name):
        """Each layer's attention is an operator of its own, that stores no scores."""
        out = os.path.join(self.folder, "package")
        code, text = self.run("compile", os.path.join(self.folder, f"{name}.onnx"), "-o", out, "-q", "--target",
                              "x86-64-v3")
        found = 0
        if code == 0:
            with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
                found = len(json.dumps(json.load(f)["operators"]).split("nn.attention")) - 1
        self.check(f"{name}: {found} operators", found == LAYERS, text)

    def refusal(self, kind, operands, attrs, part):
        model, out = os.path.join(self.folder, "refused.onnx"), os.path.join(self.folder, "refused")
        refused_model(kind, operands, attrs).save(model)
        code, text = self.run("compile", model, "-o", out)
        self.check(f"{kind} {attrs}: {part}", code == 1 and part in text and not os.path.exists(out), text)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    a.add_argument("--target", default="native")
    a = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        t = Test(os.path.abspath(a.lathe), folder, a.target)
        for name, make in (("simple", simple_model), ("product", product_model), ("other", other_model),
                           ("layer", layer_model), ("embedding", embedding_model),
                           ("attention", attention_model), ("multi_head", multi_head_model),
                           ("rotary", rotary_model), ("group", group_model), ("onnx", onnx_model)):
            t.against_runtime(name, make())
        t.against_runtime("encoder", encoder_model())
        t.one_operator("encoder")
        t.against_runtime("open", encoder_model(*3 * ["batch"]), "--dim", "batch<=3")
        t.against_runtime("apart", encoder_model("a", "a", "b"), "--dim", "a<=3", "--dim", "b<=3")
        t.against_runtime("opened", opened_model(), "--dim", "s<=8", "--dim", "p<=9")
        for case in REFUSED:
            t.refusal(*case)
    print(f"transformers: {t.passed} passed, {t.failed} failed")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
