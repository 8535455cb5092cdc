# SPDX-License-Identifier: Apache-2.0
"""Small networks of T5's and Whisper's kind in the two graphs that onnxruntime's BeamSearch and WhisperBeamSearch run:
an encoder, and a decoder that gets one token and the keys and values of those before it. domains.py searches with
them."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

MS, FLOAT, INT32 = "com.microsoft", TensorProto.FLOAT, TensorProto.INT32


class Body:
    """Nodes and weights of a graph."""

    def __init__(self, stem):
        self.stem, self.nodes, self.weights = stem, [], []

    def constant(self, value):
        name = f"{self.stem}w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def __call__(self, kind, *ins, out=None, domain="", **attrs):
        out = out or f"{self.stem}{len(self.nodes)}"
        ins = [i if isinstance(i, str) else self.constant(i) for i in ins]
        self.nodes.append(helper.make_node(kind, ins, [out] if isinstance(out, str) else out, domain=domain, **attrs))
        return out

    def graph(self, name, ins, outs):
        return helper.make_graph(self.nodes, name, ins, outs, self.weights)


def tensor(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


class Network:
    """The weights, and what layers make of values. `fused`: attention as onnxruntime's optimizer writes it."""

    def __init__(self, floats, vocabulary, layers, heads, size, fused):
        self.vocabulary, self.layers, self.heads, self.size, self.fused = vocabulary, layers, heads, size, fused
        self.width, inner, between = 8, heads * size, 12

        def w(*shape):
            return floats(*shape) * np.float32(.5)
        self.table, self.head, self.bias = w(vocabulary, self.width), w(self.width, vocabulary), w(4, heads)
        shapes = {"up": (self.width, between), "down": (between, self.width), "o": (inner, self.width),
                  "cross_o": (inner, self.width)}
        shapes.update({k: (self.width, inner) for k in ("q", "k", "v", "cross_q", "cross_k", "cross_v")})
        self.encoding = [{k: w(*s) for k, s in shapes.items()} for _ in range(layers)]
        self.decoding = [{k: w(*s) for k, s in shapes.items()} for _ in range(layers)]

    def norm(self, g, x):
        ones = np.ones(self.width, np.float32)
        return g("SimplifiedLayerNormalization", x, ones, axis=-1, epsilon=1e-6, stash_type=1)

    def split(self, g, x, out=None):
        x = g("Reshape", x, np.int64([0, 0, self.heads, self.size]))
        return g("Transpose", x, out=out, perm=[0, 2, 1, 3])

    def attend(self, g, q, k, v, bias, weights):
        scores = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
        y = g("MatMul", g("Softmax", scores if bias is None else g("Add", scores, bias), axis=-1), v)
        y = g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), np.int64([0, 0, self.heads * self.size]))
        return g("MatMul", y, weights)

    def feed(self, g, x, layer):
        y = g("Relu", g("MatMul", self.norm(g, x), layer["up"]))
        return g("Add", x, g("MatMul", y, layer["down"]))

    @staticmethod
    def hide(g):
        keep = g("Unsqueeze", g("Cast", "encoder_attention_mask", to=FLOAT), np.int64([1, 2]))
        return g("Mul", g("Sub", np.float32(1), keep), np.float32(-1e4))

    def embed(self, g):
        return g("Gather", self.table, "encoder_input_ids")

    def encode(self, g):
        hide, x = self.hide(g), self.embed(g)
        for layer in self.encoding:
            y = self.norm(g, x)
            q, k, v = (self.split(g, g("MatMul", y, layer[c])) for c in "qkv")
            x = self.feed(g, g("Add", x, self.attend(g, q, k, v, hide, layer["o"])), layer)
        x = g("Identity", self.norm(g, x), out="encoder_hidden_states")
        for i, layer in enumerate(self.decoding):
            self.split(g, g("MatMul", x, layer["cross_k"]), f"present_key_cross_{i}")
            self.split(g, g("MatMul", x, layer["cross_v"]), f"present_value_cross_{i}")

    def distances(self, g, keys):
        """A bias by how far each key lies behind, as T5's."""
        length = g("Gather", g("Shape", keys), np.int64(2))
        back = g("Sub", g("Sub", length, np.int64(1)), g("Range", np.int64(0), length, np.int64(1)))
        bias = g("Gather", self.bias, g("Min", back, np.int64(3)))
        return g("Unsqueeze", g("Transpose", bias, perm=[1, 0]), np.int64([0, 2]))

    def own_attention(self, g, i, x, bias, grows):
        """Of the decoder's tokens; the bias is made by the first layer."""
        layer, y, names = self.decoding[i], self.norm(g, x), [f"present_{c}_self_{i}" for c in ("key", "value")]
        q, k, v = (g("MatMul", y, layer[c]) for c in "qkv")
        if grows and self.fused and bias:
            past = [f"past_{c}_self_{i}" for c in ("key", "value")]
            y, *_ = g("MultiHeadAttention", q, k, v, "", "", bias, *past, out=[f"a{i}"] + names, domain=MS,
                      num_heads=self.heads, scale=1.)
            return g("Add", x, g("MatMul", y, layer["o"])), bias
        k, v = self.split(g, k), self.split(g, v)
        if grows:
            k, v = (g("Concat", f"past_{c}_self_{i}", new, out=name, axis=2)
                    for c, new, name in zip(("key", "value"), (k, v), names))
        else:
            k, v = (g("Identity", new, out=name) for new, name in zip((k, v), names))
        bias = bias or self.distances(g, k)
        return g("Add", x, self.attend(g, self.split(g, q), k, v, bias, layer["o"])), bias

    def decode(self, g, ids, crossed, grows):
        hide, x, bias = self.hide(g), g("Gather", self.table, ids), None
        for i, layer in enumerate(self.decoding):
            x, bias = self.own_attention(g, i, x, bias, grows)
            q = self.split(g, g("MatMul", self.norm(g, x), layer["cross_q"]))
            k, v = (f"{crossed}_{c}_cross_{i}" for c in ("key", "value"))
            x = self.feed(g, g("Add", x, self.attend(g, q, k, v, hide, layer["cross_o"])), layer)
        g("MatMul", self.norm(g, x), self.head, out="logits")

    def caches(self, word, kind, length):
        return [tensor(f"{word}_{c}_{kind}_{i}", FLOAT, "b", self.heads, length, self.size)
                for i in range(self.layers) for c in ("key", "value")]


class Speech(Network):
    """Of Whisper's kind: it hears numbers, no mask hides any, and places are no part of what it hears."""

    def __init__(self, floats, vocabulary, layers, heads, size, prompt):
        super().__init__(floats, vocabulary, layers, heads, size, False)
        self.features, self.prompt = floats(5, self.width) * np.float32(.5), prompt

    @staticmethod
    def hide(_):
        return None

    def embed(self, g):
        return g("MatMul", g("Transpose", "encoder_input_ids", perm=[0, 2, 1]), self.features)

    def distances(self, g, keys):
        """Tokens of the prompt see those before them; a later one sees all."""
        seen = np.tril(np.ones((self.prompt, self.prompt), np.float32)) * np.float32(1e4) - np.float32(1e4)
        return g("Identity", seen) if g.stem == "e" else g("Identity", np.zeros((1, 1), np.float32))


def speech_graphs(floats, vocabulary, layers, heads, size, prompt, asks):
    """Encoder and decoder. asks: the decoder gets what the encoder made of what it heard."""
    net, e, d = Speech(floats, vocabulary, layers, heads, size, prompt), Body("e"), Body("d")
    net.encode(e)
    net.decode(e, "decoder_input_ids", "present", False)
    scores, hidden = tensor("logits", FLOAT, "b", "n", vocabulary), tensor("encoder_hidden_states", FLOAT, "b", "s", 8)
    ins = [tensor("encoder_input_ids", FLOAT, "b", 5, "s"), tensor("decoder_input_ids", INT32, "b", "n")]
    outs = [scores, hidden] + net.caches("present", "self", "n") + net.caches("present", "cross", "s")
    encoder = e.graph("encoder", ins, outs)
    net.decode(d, "input_ids", "past", True)
    ins = [tensor("input_ids", INT32, "b", 1)] + ([hidden] if asks else [])
    ins += net.caches("past", "self", "p") + net.caches("past", "cross", "s")
    return encoder, d.graph("decoder", ins, [scores] + net.caches("present", "self", "q"))


def graphs(floats, vocabulary, layers, heads, size, form, fused):
    """Encoder and decoder. form 0: the encoder makes what its tokens are to the decoder; 1: also the scores of the
    first token; 2: and the decoder asks for what the encoder made of its tokens."""
    net, e, d = Network(floats, vocabulary, layers, heads, size, fused), Body("e"), Body("d")
    net.encode(e)
    mask = tensor("encoder_attention_mask", INT32, "b", "s")
    scores, hidden = tensor("logits", FLOAT, "b", 1, vocabulary), tensor("encoder_hidden_states", FLOAT, "b", "s", 8)
    ins, outs = [tensor("encoder_input_ids", INT32, "b", "s"), mask], net.caches("present", "cross", "s")
    if form:
        net.decode(e, "decoder_input_ids", "present", False)
        ins.append(tensor("decoder_input_ids", INT32, "b", 1))
        outs = [scores, hidden] + net.caches("present", "self", 1) + outs
    encoder = e.graph("encoder", ins, outs)
    net.decode(d, "input_ids", "past", True)
    ins = [tensor("input_ids", INT32, "b", 1), mask] + ([hidden] if form == 2 else [])
    ins += net.caches("past", "self", "p") + net.caches("past", "cross", "s")
    return encoder, d.graph("decoder", ins, [scores] + net.caches("present", "self", "q"))
