#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose extents are known at run time only, as exporters write them: dynamic_models.py NAME FILE.

encoder   a BERT-like encoder; the sequence is open, and shapes are computed by Shape, Gather, Concat
decoder   one step of a causal decoder: the cache of keys and values grows by the step's tokens
detector  a convolutional detector: the boxes that NonMaxSuppression leaves, with their scores and classes
images    a small residual network over any number of images
photo     the same over one image of any size, with depthwise layers
patches   a vision transformer over an image of any size, with a token for the class
sound     strided convolutions over sound of any length, then attention over the rows that they leave
segments  a network that goes down by a pool and up by transposed convolutions, over images of any size
queries   attention of a few learned queries over any number of rows, also none
operator  ONNX's Attention with a mask, with a cache, and causal, two query heads on each key head
voice     a recurrent voice-activity network with state; the sampling rate picks a branch, constant or at run time
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


def conv(g, x, channels, outs, stride):
    w = g.weight(outs, channels, 3, 3, scale=np.sqrt(2 / (9 * channels)))
    return g.op("Relu", g.op("Conv", x, w, g.weight(outs, scale=0.1), strides=[stride, stride], pads=[1, 1, 1, 1]))


def detector(size=32, classes=3):
    """image [1, 3, 32, 32]; boxes [found, 4], scores [found], classes [found]: all that NonMaxSuppression leaves of the
    candidates [1, cells, 4] with their chances [1, classes, cells]."""
    g = Graph(3)
    x = conv(g, conv(g, "image", 3, 8, 2), 8, 16, 2)
    cells = (size // 4) ** 2
    raw = g.op("Conv", x, g.weight(4 + classes, 16, 1, 1, scale=0.5))
    raw = g.op("Transpose", g.op("Reshape", raw, g.ints(1, 4 + classes, cells)), perm=[0, 2, 1])
    at, span = (g.op("Sigmoid", g.op("Slice", raw, g.ints(i), g.ints(i + 2), g.ints(2))) for i in (0, 2))
    half = g.op("Mul", span, g.constant(np.float32(0.2)))
    boxes = g.op("Concat", g.op("Sub", at, half), g.op("Add", at, half), axis=2, outputs=["candidates"])
    scores = g.op("Sigmoid", g.op("Slice", raw, g.ints(4), g.ints(4 + classes), g.ints(2)))
    scores = g.op("Transpose", scores, perm=[0, 2, 1], outputs=["chances"])
    kept = g.op("NonMaxSuppression", boxes, scores, g.ints(10), g.constant(np.array([0.3], np.float32)),
                g.constant(np.array([0.55], np.float32)))
    which = g.op("Squeeze", g.op("Slice", kept, g.ints(2), g.ints(3), g.ints(1)), g.ints(1))
    g.op("Gather", g.op("Squeeze", boxes, g.ints(0)), which, axis=0, outputs=["boxes"])
    g.op("GatherND", scores, kept, outputs=["scores"])
    g.op("Squeeze", g.op("Slice", kept, g.ints(1), g.ints(2), g.ints(1)), g.ints(1), outputs=["classes"])
    return g.model([value("image", TensorProto.FLOAT, 1, 3, size, size)],
                   [value("boxes", TensorProto.FLOAT, "found", 4), value("scores", TensorProto.FLOAT, "found"),
                    value("classes", TensorProto.INT64, "found"), value("candidates", TensorProto.FLOAT, 1, cells, 4),
                    value("chances", TensorProto.FLOAT, 1, classes, cells)])


def images(channels=32):
    g = Graph(9)
    x = conv(g, "images", 3, channels, 2)
    y = conv(g, conv(g, x, channels, channels, 1), channels, channels, 1)
    x = g.op("MaxPool", g.op("Add", x, y), kernel_shape=[2, 2], strides=[2, 2])
    x = g.op("Flatten", g.op("GlobalAveragePool", conv(g, x, channels, 20, 1)))
    g.op("Gemm", x, g.weight(20, 10), g.weight(10), outputs=["classes"])
    return g.model([value("images", TensorProto.FLOAT, "n", 3, 32, 32)], [value("classes", TensorProto.FLOAT, "n", 10)])


def photo(channels=16):
    g = Graph(10)
    x = conv(g, "photo", 3, channels, 2)
    y = g.op("Conv", x, g.weight(channels, 1, 3, 3, scale=0.4), group=channels, pads=[1, 1, 1, 1])
    x = g.op("Add", x, conv(g, y, channels, channels, 1))
    x = conv(g, g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), channels, 21, 1)
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    g.op("Gemm", x, g.weight(21, 10), g.weight(10), outputs=["classes"])
    return g.model([value("photo", TensorProto.FLOAT, 1, 3, "h", "w")], [value("classes", TensorProto.FLOAT, 1, 10)])


def branch(seed, width):
    """A front end for one sampling rate, as a branch of If: it reads `frame` of the graph around it."""
    g = Graph(seed)
    w = g.weight(16, 1, width, scale=0.2)
    y = g.op("Relu", g.op("Conv", "frame", w, strides=[width]))
    y = g.op("Conv", y, g.weight(16, 16, 1, scale=0.3))
    out = g.op("Transpose", y, perm=[2, 0, 1])
    shape = [None if seed is None else "steps", 1, 16]
    return helper.make_graph(g.nodes, f"front_{width}", [], [value(out, TensorProto.FLOAT, *shape)], g.constants)


def voice(samples=512, width=16):
    """frame [1, 1, 512], state [2, 1, 16], sr; the probability of voice and the next state."""
    g = Graph(5)
    wide = g.op("Equal", "sr", g.constant(np.int64(16000)))
    x = g.name("front")
    g.nodes.append(helper.make_node("If", [wide], [x], name="rate", then_branch=branch(6, 64),
                                    else_branch=branch(7, 32)))
    h, c = (g.op("Gather", "state", g.ints(i), axis=0) for i in (0, 1))
    g.nodes.append(helper.make_node(
        "LSTM", [x, g.constant(g.random.standard_normal((1, 4 * width, width)).astype(np.float32) * np.float32(0.3)),
                 g.constant(g.random.standard_normal((1, 4 * width, width)).astype(np.float32) * np.float32(0.3)), "",
                 "", h, c], ["all", "last_h", "last_c"], hidden_size=width, name="lstm"))
    g.op("Concat", "last_h", "last_c", axis=0, outputs=["next_state"])
    y = g.op("MatMul", g.op("Relu", g.op("Squeeze", "last_h", g.ints(0))), g.weight(width, 1))
    g.op("Sigmoid", y, outputs=["voice"])
    return g.model([value("frame", TensorProto.FLOAT, 1, 1, samples), value("state", TensorProto.FLOAT, 2, 1, width),
                    value("sr", TensorProto.INT64)],
                   [value("voice", TensorProto.FLOAT, 1, 1), value("next_state", TensorProto.FLOAT, 2, 1, width)])


def attention(g, x, width):
    """One head over the rows of x [1, rows, width]."""
    q, k, v = (g.op("MatMul", x, g.weight(width, width)) for _ in range(3))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    scores = g.op("Softmax", g.op("Mul", scores, g.constant(np.float32(width ** -0.5))), axis=-1)
    return norm(g, g.op("Add", x, g.op("MatMul", scores, v)), width)


def patches(width=24, side=8):
    """image [1, 3, h, w]: patches with a token for the class before them, so that there is a row more than patches."""
    g = Graph(11)
    x = g.op("Conv", "image", g.weight(width, 3, side, side, scale=0.1), strides=[side, side])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, -1)), perm=[0, 2, 1])
    x = attention(g, g.op("Concat", g.weight(1, 1, width), x, axis=1), width)
    g.op("Slice", x, g.ints(0), g.ints(1), g.ints(1), outputs=["class"])
    g.op("Softmax", x, axis=1, outputs=["rows"])
    return g.model([value("image", TensorProto.FLOAT, 1, 3, "h", "w")],
                   [value("class", TensorProto.FLOAT, 1, 1, width), value("rows", TensorProto.FLOAT, 1, "rows", width)])


def sound(width=16):
    """samples [1, 1, t]: strided convolutions, then rows, whose number is a quotient of a quotient."""
    g = Graph(12)
    x = g.op("Relu", g.op("Conv", "samples", g.weight(width, 1, 10, scale=0.3), strides=[5]))
    x = g.op("Conv", x, g.weight(width, width, 3, scale=0.2), strides=[2], pads=[1, 1])
    g.op("Identity", attention(g, g.op("Transpose", x, perm=[0, 2, 1]), width), outputs=["rows"])
    return g.model([value("samples", TensorProto.FLOAT, 1, 1, "t")],
                   [value("rows", TensorProto.FLOAT, 1, "rows", width)])


def segments(channels=8):
    """image [n, 3, h, w]: down by a pool, up by a transposed convolution, and joined; what one cuts out, whose padding
    follows from the image."""
    g = Graph(13)
    wide = conv(g, "image", 3, channels, 1)
    deep = conv(g, g.op("MaxPool", wide, kernel_shape=[2, 2], strides=[2, 2]), channels, channels, 1)
    up = g.op("ConvTranspose", deep, g.weight(channels, channels, 2, 2, scale=0.3), strides=[2, 2])
    more = g.op("ConvTranspose", deep, g.weight(channels, 3, 3, 3, scale=0.3), strides=[2, 2], pads=[1, 1, 1, 1],
                output_padding=[1, 1])
    x = conv(g, g.op("Concat", wide, up, more, axis=1), 2 * channels + 3, channels, 1)
    g.op("Conv", x, g.weight(2, channels, 1, 1), outputs=["mask"])
    g.op("ConvTranspose", deep, g.weight(channels, 3, 3, 3, scale=0.3), strides=[2, 2], output_shape=[3, 2],
         outputs=["middle"])
    return g.model([value("image", TensorProto.FLOAT, "n", 3, "h", "w")],
                   [value("mask", TensorProto.FLOAT, "n", 2, "h", "w"),
                    value("middle", TensorProto.FLOAT, "n", 3, 3, 2)])


def queries(count=12, width=24, n_heads=3):
    """rows [b, n, width]: what each of `count` learned queries takes from them."""
    g = Graph(14)
    size = width // n_heads
    shape = g.op("Concat", extent(g, "rows", 0), g.ints(count, width), axis=0)
    q = heads(g, g.op("Expand", g.weight(1, count, width), shape), n_heads, size)
    k, v = (heads(g, g.op("MatMul", "rows", g.weight(width, width)), n_heads, size) for _ in range(2))
    scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    mixed = g.op("Transpose", g.op("MatMul", scores, v), perm=[0, 2, 1, 3])
    g.op("Reshape", mixed, g.ints(-1, count, width), outputs=["taken"])
    return g.model([value("rows", TensorProto.FLOAT, "b", "n", width)],
                   [value("taken", TensorProto.FLOAT, "b", count, width)])


def operator():
    """q [b, 4, s, 8], k and v [b, 2, t, 8], a mask of [s, t], p positions of a cache: Attention in its forms."""
    g = Graph(15)
    g.op("Attention", "q", "k", "v", outputs=["plain"])
    g.op("Attention", "q", "k", "v", is_causal=1, outputs=["causal"])
    g.op("Attention", "q", "k", "v", g.op("Greater", "mask", g.constant(np.float32(-1))), softcap=2.0,
         outputs=["masked"])
    g.op("Attention", "q", "k", "v", "", "past_k", "past_v", is_causal=1, outputs=["cached", "all_k", "all_v"])
    join = lambda x: g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    g.op("Attention", join("q"), join("k"), join("v"), "mask", q_num_heads=4, kv_num_heads=2, outputs=["flat"])
    head = lambda name, n, rows: value(name, TensorProto.FLOAT, "b", n, rows, 8)
    return g.model([head("q", 4, "s"), head("k", 2, "t"), head("v", 2, "t"), value("mask", TensorProto.FLOAT, "s", "t"),
                    head("past_k", 2, "p"), head("past_v", 2, "p")],
                   [*(head(n, 4, "s") for n in ("plain", "causal", "masked", "cached")),
                    *(head(n, 2, "all") for n in ("all_k", "all_v")), value("flat", TensorProto.FLOAT, "b", "s", 32)],
                   opset=23)


def spectrum():
    """Transforms along an axis that is open: of real numbers, all of it and a half, and back."""
    g = Graph()
    g.op("DFT", "x", axis=1, outputs=["whole"])
    g.op("DFT", "x", axis=1, onesided=1, outputs=["half"])
    g.op("DFT", "whole", axis=1, inverse=1, outputs=["back"])
    g.op("DFT", g.op("Transpose", "whole", perm=[1, 0, 2, 3]), axis=0, outputs=["twice"])
    whole = value("whole", TensorProto.FLOAT, "b", "t", 3, 2)
    return g.model([value("x", TensorProto.FLOAT, "b", "t", 3, 1)],
                   [whole, value("half", TensorProto.FLOAT, "b", "u", 3, 2),
                    value("back", TensorProto.FLOAT, "b", "t", 3, 2),
                    value("twice", TensorProto.FLOAT, "t", "b", 3, 2)])


MODELS = {
    "encoder": encoder,
    "decoder": decoder,
    "detector": detector,
    "images": images,
    "photo": photo,
    "voice": voice,
    "patches": patches,
    "sound": sound,
    "segments": segments,
    "queries": queries,
    "operator": operator,
    "spectrum": spectrum,
    "minilm": lambda: encoder(6, 384, 12, 1536, 30522),
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(__doc__)
    onnx.save(MODELS[sys.argv[1]](), sys.argv[2])
