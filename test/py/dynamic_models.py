#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose extents are known at run time only, as exporters write them: dynamic_models.py NAME FILE.

encoder   a BERT-like encoder; the sequence is open, and shapes are computed by Shape, Gather, Concat
decoder   one step of a causal decoder: the cache of keys and values grows by the step's tokens
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes, constants and names of one model in the making; op() gives the name of the first result."""

    def __init__(self, seed=0):
        self.nodes, self.constants, self.count = [], [], 0
        self.random = np.random.default_rng(seed)

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, value, stem="c"):
        name = self.name(stem)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape, scale=None):
        scale = scale or np.sqrt(1 / shape[0])
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32), "w")

    def op(self, kind, *inputs, outputs=None, **attributes):
        outputs = outputs or [self.name(kind.lower())]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=self.name(kind), **attributes))
        return outputs[0]

    def model(self, inputs, outputs, opset=17):
        graph = helper.make_graph(self.nodes, "dynamic", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def value(name, dtype, *shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def extent(g, x, axis):
    """One extent of x, as a vector of one element."""
    return g.op("Unsqueeze", g.op("Gather", g.op("Shape", x), g.constant(np.int64(axis))), g.ints(0))


def norm(g, x, width):
    return g.op("LayerNormalization", x, g.constant(np.ones(width, np.float32)),
                g.constant(np.zeros(width, np.float32)), axis=-1)


def heads(g, x, n_heads, size):
    """[1, seq, width] to [1, heads, seq, size], the extents read from x."""
    shape = g.op("Concat", extent(g, x, 0), extent(g, x, 1), g.ints(n_heads), g.ints(size), axis=0)
    return g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 2, 1, 3])


def encoder(layers=2, width=64, n_heads=4, inner=128, words=100, longest=128):
    g = Graph()
    size = width // n_heads
    seq = extent(g, "ids", 1)
    places = g.op("Unsqueeze", g.op("Range", g.constant(np.int64(0)), g.op("Squeeze", seq, g.ints(0)),
                                    g.constant(np.int64(1))), g.ints(0))
    x = g.op("Add", g.op("Gather", g.weight(words, width, scale=1.0), "ids"),
             g.op("Gather", g.weight(longest, width, scale=1.0), places))
    x = norm(g, x, width)
    mask = g.op("Unsqueeze", g.op("Cast", "mask", to=TensorProto.FLOAT), g.ints(1, 2))
    mask = g.op("Mul", g.op("Sub", g.constant(np.float32(1)), mask), g.constant(np.float32(-10000)))
    for _ in range(layers):
        q, k, v = (heads(g, g.op("Add", g.op("MatMul", x, g.weight(width, width)), g.weight(width)), n_heads, size)
                   for _ in range(3))
        scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])),
                      g.constant(np.float32(np.sqrt(size))))
        mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), v)
        mixed = g.op("Transpose", mixed, perm=[0, 2, 1, 3])
        shape = g.op("Concat", extent(g, mixed, 0), extent(g, mixed, 1), g.ints(width), axis=0)
        mixed = g.op("Add", g.op("MatMul", g.op("Reshape", mixed, shape), g.weight(width, width)), g.weight(width))
        x = norm(g, g.op("Add", x, mixed), width)
        y = g.op("Add", g.op("MatMul", x, g.weight(width, inner)), g.weight(inner))
        half = g.op("Mul", y, g.constant(np.float32(0.5)))
        y = g.op("Mul", half, g.op("Add", g.op("Erf", g.op("Div", y, g.constant(np.float32(np.sqrt(2))))),
                                   g.constant(np.float32(1))))
        y = g.op("Add", g.op("MatMul", y, g.weight(inner, width)), g.weight(width))
        x = norm(g, g.op("Add", x, y), width)
    g.op("Identity", x, outputs=["hidden"])
    return g.model([value("ids", TensorProto.INT64, 1, "seq"), value("mask", TensorProto.INT64, 1, "seq")],
                   [value("hidden", TensorProto.FLOAT, 1, "seq", width)])


def decoder(layers=2, width=32, n_heads=4, words=50, longest=64):
    """ids [1, step], past keys and values [1, heads, past, size]; logits, and the caches with `past + step` entries."""
    g = Graph()
    size = width // n_heads
    inputs, outputs = [value("ids", TensorProto.INT64, 1, "step")], []
    past = extent(g, "past_k_0", 2)
    total = g.op("Add", past, extent(g, "ids", 1))
    scalar = [g.op("Squeeze", x, g.ints(0)) for x in (past, total)]
    one = g.constant(np.int64(1))
    rows = g.op("Range", scalar[0], scalar[1], one)
    columns = g.op("Range", g.constant(np.int64(0)), scalar[1], one)
    later = g.op("Less", g.op("Unsqueeze", rows, g.ints(1)), g.op("Unsqueeze", columns, g.ints(0)))
    mask = g.op("Mul", g.op("Cast", later, to=TensorProto.FLOAT), g.constant(np.float32(-1e9)))
    x = g.op("Add", g.op("Gather", g.weight(words, width, scale=1.0), "ids"),
             g.op("Gather", g.weight(longest, width, scale=1.0), rows))
    for i in range(layers):
        y = norm(g, x, width)
        q, k, v = (heads(g, g.op("MatMul", y, g.weight(width, width)), n_heads, size) for _ in range(3))
        keep = []
        for name, new in ((f"k_{i}", k), (f"v_{i}", v)):
            inputs.append(value("past_" + name, TensorProto.FLOAT, 1, n_heads, "past", size))
            outputs.append(value("now_" + name, TensorProto.FLOAT, 1, n_heads, "total", size))
            keep.append(g.op("Concat", "past_" + name, new, axis=2, outputs=["now_" + name]))
        scores = g.op("MatMul", q, g.op("Transpose", keep[0], perm=[0, 1, 3, 2]))
        scores = g.op("Add", g.op("Mul", scores, g.constant(np.float32(1 / np.sqrt(size)))), mask)
        mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), keep[1]), perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", mixed, g.ints(1, -1, width))
        x = g.op("Add", x, g.op("MatMul", mixed, g.weight(width, width)))
        y = g.op("MatMul", norm(g, x, width), g.weight(width, 2 * width))
        x = g.op("Add", x, g.op("MatMul", g.op("Relu", y), g.weight(2 * width, width)))
    g.op("MatMul", norm(g, x, width), g.weight(width, words), outputs=["logits"])
    return g.model(inputs, [value("logits", TensorProto.FLOAT, 1, "step", words)] + outputs)


MODELS = {
    "encoder": encoder,
    "decoder": decoder,
    "minilm": lambda: encoder(6, 384, 12, 1536, 30522),
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(__doc__)
    onnx.save(MODELS[sys.argv[1]](), sys.argv[2])
