#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regenerates the small TensorFlow Lite models that tests keep: test/golden/tflite, test/golden/error/tflite and the
seeds of the fuzzer (test/fuzz/corpus/tflite). Run it with the Python of the test environment."""
import argparse
import copy
import os
import shutil

import numpy as np
from ai_edge_litert import schema_py_generated as S

import tflite_states
from tflite_metadata import with_labels
from tflite_kinds import ALL, HAVE, KINDS, inner_graph
from tflite_models import TOP
from tflite_net import Chance, Net, options, variable


def numbers():
    """A small network of quantised numbers: images stay with their channels second between its operators."""
    net = Net()
    x = net.input("int8", [1, 4, 5, 2], 0.5, -3)
    w = net.tensor("int8", [4, 2, 2, 2], [0.25, 0.5, 0.125, 1.0], 0, np.arange(32) - 16)
    b = net.tensor("int32", [4], [0.125, 0.25, 0.0625, 0.5], 0, [10, -20, 30, -40])
    c = net.tensor("int8", [1, 2, 3, 4], 2.0, 5)
    net.operator("CONV_2D", 3, [x, w, b], [c], options("Conv2D", padding=0, strideH=2, strideW=2,
                                                       fusedActivationFunction=1))
    s = net.tensor("int8", [1, 2, 3, 4], 4.1, 0)
    net.operator("ADD", 2, [c, c], [s], options("Add", fusedActivationFunction=0))
    f = net.tensor("int8", [1, 24], 4.1, 0)
    net.operator("RESHAPE", 1, [s, net.tensor("int32", [2], data=[1, -1])], [f], options("Reshape", newShape=[1, -1]))
    k = net.tensor("int8", [2, 24], 0.137, 0, np.arange(48) - 24)  # a product of scales that 32 bits do not hold
    l = net.tensor("int8", [1, 2], 0.25, 1)
    net.operator("FULLY_CONNECTED", 4, [f, k], [l], options("FullyConnected"))
    y = net.tensor("int8", [1, 2], 1 / 256, -128)
    net.operator("SOFTMAX", 2, [l], [y], options("Softmax", beta=1.0))
    net.graph.outputs = [y]
    return net


def floats():
    """Floats at the border, numbers inside; a mean over rows and columns, a pad, a concatenation."""
    net = Net()
    x = net.input("float32", [1, 3, 3, 2])
    q = net.tensor("int8", [1, 3, 3, 2], 0.5, 4)
    net.operator("QUANTIZE", 1, [x], [q])
    p = net.tensor("int8", [1, 5, 3, 2], 0.5, 4)
    net.operator("PAD", 2, [q, net.tensor("int32", [4, 2], data=[0, 0, 1, 1, 0, 0, 0, 0])], [p], options("Pad"))
    m = net.tensor("int8", [1, 2], 0.25, 0)
    net.operator("MEAN", 2, [p, net.tensor("int32", [2], data=[1, 2])], [m], options("Reducer", keepDims=False))
    c = net.tensor("int8", [1, 4], 0.25, 0)
    net.operator("CONCATENATION", 2, [m, m], [c], options("Concatenation", axis=-1))
    t = net.tensor("int8", [1, 4], 1 / 128, 0)
    net.operator("TANH", 2, [c], [t])
    y = net.tensor("float32", [1, 4])
    net.operator("DEQUANTIZE", 2, [t], [y])
    net.graph.outputs = [y]
    return net


def ends():
    """An input that is a result too, a result twice, a constant as a result, tensors that nobody uses, equal names."""
    net = Net()
    x = net.input("float32", [2])
    y = net.tensor("float32", [2])
    k = net.tensor("float32", [2], data=[1.0, 2.0])
    net.tensor("float32", [3])
    net.operator("RELU", 1, [x], [y])
    net.graph.tensors[y].name = net.graph.tensors[x].name
    net.graph.outputs = [x, y, y, k]
    return net


def elements():
    """The operators on single numbers that `tflite_models.py` does not make."""
    net = Net()
    x = net.input("float32", [2, 3])
    for name in ("FLOOR", "CEIL", "ROUND", "RELU_N1_TO_1", "EXP", "LOG", "SIN", "COS", "SQRT", "RSQRT", "NEG", "ABS"):
        net.operator(name, 1, [x], [net.tensor("float32", [2, 3])])
    row = net.input("float32", [3])
    net.operator("DIV", 1, [x, row], [net.tensor("float32", [2, 3])], options("Div", fusedActivationFunction=1))
    for name in ("MAXIMUM", "MINIMUM"):
        net.operator(name, 1, [row, x], [net.tensor("float32", [2, 3])])
    i, j = net.input("int32", [2, 3]), net.input("int32", [3])
    net.operator("DIV", 2, [i, j], [net.tensor("int32", [2, 3])], options("Div", fusedActivationFunction=0))
    net.operator("SUB", 1, [i, j], [net.tensor("int32", [2, 3])], options("Sub", fusedActivationFunction=0))
    net.operator("CAST", 1, [i], [net.tensor("float32", [2, 3])])
    net.operator("CAST", 1, [x], [net.tensor("int64", [2, 3])])
    q, r = net.input("int8", [2, 3], 0.25, 7), net.input("int8", [3], 0.25, 7)
    for name in ("MAXIMUM", "MINIMUM"):
        net.operator(name, 2, [q, r], [net.tensor("int8", [2, 3], 0.25, 7)])
    return net


def far_scales():
    """Scales whose quotients, and those of the bounds of activations, lie far beyond 32 bits."""
    net = Net()
    x = net.input("int8", [2], 1e-31, -3)
    for name in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
        net.operator(name, 1, [x], [net.tensor("int8", [2], 1e-31, -3)])
    net.operator("ADD", 2, [x, x], [net.tensor("int8", [2], 1e-31, 0)], options("Add", fusedActivationFunction=3))
    u, v = net.input("uint8", [2], 1e30, 5), net.input("uint8", [2], 1e-31, 5)
    net.operator("CONCATENATION", 2, [u, v], [net.tensor("uint8", [4], 1e-31, 9)], options("Concatenation", axis=0))
    return net


def shapes():
    """The operators that move elements, those with several operands or results among them."""
    net = Net()
    x = net.input("int8", [2, 6, 3], 0.5, -3)

    def move(name, version, shapes, more=(), kind=None, first=(), **fields):
        results = [net.tensor("int8", shape, 0.5, -3) for shape in shapes]
        net.operator(name, version, [*first, x, *more], results, options(kind, **fields) if kind else None)
        return results

    def ints(*numbers, shape=None):
        return net.tensor("int32", [len(numbers)] if shape is None else shape, data=numbers)

    move("SPLIT", 2, [[2, 2, 3]] * 3, kind="Split", first=[ints(1, shape=[])], numSplits=3)
    move("SPLIT_V", 2, [[2, 1, 3], [2, 3, 3], [2, 2, 3]], [ints(1, -1, 2), ints(-2, shape=[])], "SplitV", numSplits=3)
    parts = move("UNPACK", 2, [[2, 6]] * 3, kind="Unpack", num=3, axis=-1)
    net.operator("PACK", 2, parts[::-1], [net.tensor("int8", [2, 3, 6], 0.5, -3)],
                 options("Pack", valuesCount=3, axis=1))
    move("SLICE", 2, [[1, 4, 2]], [ints(1, 2, 0), ints(1, -1, 2)])
    wide, = move("EXPAND_DIMS", 1, [[2, 1, 6, 3]], [ints(1, shape=[])])
    net.operator("SQUEEZE", 1, [wide], [net.tensor("int8", [2, 6, 3], 0.5, -3)], options("Squeeze", squeezeDims=[-3]))
    move("REVERSE_SEQUENCE", 1, [[2, 6, 3]], [ints(1, 6, 3)], "ReverseSequence", seqDim=1, batchDim=2)
    value = net.tensor("int8", [1], 0.5, -3, data=[9])
    flat, = move("RESHAPE", 1, [[1, 2, 6, 3]], [ints(1, 2, 6, 3)], "Reshape", newShape=[1, 2, 6, 3])
    net.operator("PADV2", 2, [flat, ints(0, 0, 1, 2, 0, 0, 3, 0, shape=[4, 2]), value],
                 [net.tensor("int8", [1, 5, 6, 6], 0.5, -3)], options("PadV2"))
    return net


INNER = tflite_states.branch, tflite_states.rounds


def states():
    """Variable tensors of layers, and resource variables that CALL_ONCE fills."""
    net = Net()
    net.first, net.valid, net.first_step, net.cycles = [], {}, {}, 1
    for name, kind in tflite_states.KINDS.items():
        if kind not in INNER and name not in tflite_states.ONLY_LITERT:
            kind(net, Chance(np.random.default_rng(11)), "int8" if name != "lstm" else "")
    tflite_states.once(net)
    return net


def composite():
    """A graph in the place of an operator."""
    net = Net()
    KINDS["composite"](net, Chance(np.random.default_rng(1)), "")
    return net


def control():
    """A branch and a loop."""
    net = Net()
    for name in ("condition", "loop"):
        KINDS[name](net, Chance(np.random.default_rng(2)), "")
    return net


def inner_states():
    """A branch and a loop with variables, which CALL_ONCE gives a value, and with a layer that has a state."""
    net = Net()
    net.first = []
    for kind in INNER:
        kind(net, Chance(np.random.default_rng(3)), "")
    tflite_states.once(net)
    return net


def signatures():
    """Two graphs, a signature for each, a description and metadata."""
    net = one(lambda net: None)
    first = net.graph
    net.graph = S.SubGraphT()
    net.graph.tensors, net.graph.operators, net.graph.inputs, net.graph.outputs = [], [], [], []
    net.model.subgraphs.append(net.graph)
    x, y = net.input("float32", [3]), net.tensor("float32", [3])
    net.operator("ABS", 1, [x], [y])
    net.graph, net.model.signatureDefs = first, []
    for index, (key, given, made) in enumerate((("serving_default", "x", "y"), ("loudness", "sound", "level"))):
        s = S.SignatureDefT()
        s.signatureKey, s.subgraphIndex, s.inputs, s.outputs = key, index, [], []
        for ends, name, at in ((s.inputs, given, 0), (s.outputs, made, 1)):
            ends.append(S.TensorMapT())
            ends[0].name, ends[0].tensorIndex = name, at
        net.model.signatureDefs.append(s)
    net.model.description = "two graphs"
    m, b = S.MetadataT(), S.BufferT()
    m.name, m.buffer = "min_runtime_version", len(net.model.buffers)
    b.data = np.frombuffer(b"1.14.0" + bytes(10), np.uint8)
    net.model.buffers.append(b)
    net.model.metadata = [m]
    return net


def two_signatures():
    """Two graphs that share weights, each with a signature."""
    net, rng = Net(), np.random.default_rng(3)
    net.model.subgraphs, net.model.signatureDefs, buffers = [], [], {}
    weights = {"w": rng.normal(0, 1, [16, 12]), "v": rng.normal(0, 1, [3, 16])}

    def layer(x, name, act):
        w = weights[name]
        t = net.tensor("float32", w.shape, data=None if name in buffers else w)
        net.graph.tensors[t].buffer = buffers.setdefault(name, net.graph.tensors[t].buffer)
        y = net.tensor("float32", [1, len(w)])
        net.operator("FULLY_CONNECTED", 1, [x, t, -1], [y], options("FullyConnected", fusedActivationFunction=act))
        return y

    def ends(name, t):
        m = S.TensorMapT()
        m.name, m.tensorIndex = name, t
        return [m]
    for at, key in enumerate(("encode", "classify")):
        net.graph = S.SubGraphT()
        net.graph.tensors, net.graph.operators, net.graph.outputs, net.graph.inputs = [], [], [], []
        net.model.subgraphs.append(net.graph)
        x = net.input("float32", [1, 12])
        y = layer(x, "w", 1)
        y = layer(y, "v", 0) if at else y
        net.graph.outputs = [y]
        d = S.SignatureDefT()
        d.signatureKey, d.subgraphIndex, d.inputs, d.outputs = key, at, ends("sound", x), ends(key + "d", y)
        net.model.signatureDefs.append(d)
    return net


def labels(names, **how):
    """Names of the columns of a result, in an archive behind the model; how its input is normalized."""
    return with_labels(one(lambda net: None), "names.txt", names, [127.5, 0.0], [127.5, 1.0], **how)


def damaged_metadata():
    """Metadata that end in the middle."""
    net = one(lambda net: None)
    with_labels(net, "names.txt", ["a", "b"], [0.0], [1.0])
    net.model.buffers[-1].data = net.model.buffers[-1].data[:60]
    return net.bytes()


LABELS = {"labels": lambda: labels(["left", 'the "right"']), "labels_three": lambda: labels(["a", "b", "c"]),
          "labels_compressed": lambda: labels(["a", "b"], compressed=True), "labels_damaged": damaged_metadata}


def one(change):
    """RELU, and a change of it."""
    net = Net()
    x = net.input("float32", [2])
    y = net.tensor("float32", [2])
    net.operator("RELU", 1, [x], [y])
    change(net)
    return net


def missing(net):
    y = net.graph.outputs[0]
    for name, version in (("BITCAST", 1), ("RELU", 9), ("BITCAST", 1)):
        z = net.tensor("float32", [2])
        net.operator(name, version, [y], [z])
    z = net.tensor("int16", [2], 0.5, 0)
    net.operator("ELU", 1, [z], [net.tensor("int16", [2], 0.5, 0)])
    net.operator("CUSTOM", 1, [y], [net.tensor("float32", [2])])
    net.model.operatorCodes[-1].customCode = b"FlexErf"


def out_of_range(net):
    net.graph.operators[0].inputs = [77]


def no_code(net):
    net.graph.operators[0].opcodeIndex = 5


def unordered(net):
    z = net.tensor("float32", [2])
    net.graph.operators[0].inputs = [z]


def made_twice(net):
    net.operator("RELU", 1, [0], [1])
    net.graph.outputs = [1]


def short_buffer(net):
    k = net.tensor("float32", [2], data=[1.0])
    net.graph.operators[0].inputs = [k]


def handle(net):
    """An operator reads the handle of a variable as if it were a tensor."""
    kept = tflite_states.handle(net, "kept")
    net.operator("ADD", 1, [0, kept], [net.tensor("float32", [2])], options("Add", fusedActivationFunction=0))


def inner_loop(net):
    """A graph that holds itself."""
    KINDS["composite"](net, Chance(np.random.default_rng(1)), "")
    again, inner = copy.copy(net.graph.operators[-1]), net.model.subgraphs[1]
    again.inputs, again.outputs = inner.inputs, inner.outputs
    inner.operators = [again]


def window(net, options, change=bytes):
    """An audio front end's operator with such options; change: of their bytes."""
    x = net.input("int16", [4])
    weights = net.tensor("int16", [4], data=[1, 2, 3, 4])
    net.operator("SignalWindow", 1, [x, weights], [net.tensor("int16", [4])], options)
    o = net.graph.operators[-1]
    o.customOptions = list(change(bytes(o.customOptions)))


def option_missing(net):
    window(net, {"shifts": 3})


def option_range(net):
    window(net, {"shift": 32})


def option_text(net):
    window(net, {"shift": "3"})


def flex_damaged(net):
    """The reference to the map leads out of the bytes."""
    window(net, {"shift": 3}, lambda b: b[:-3] + bytes([200]) + b[-2:])


def frame_step(net):
    """The data is no whole number of steps."""
    x = net.input("int16", [10])
    net.operator("SignalFramer", 1, [x], [net.tensor("int16", [2, 6]), net.tensor("bool", [])],
                 {"frame_size": 6, "frame_step": 4, "prefill": True})


def few_gains(net):
    """A table of gains that numbers beyond 8 bits would leave."""
    x, noise = net.input("uint32", [3]), net.input("uint32", [3])
    net.operator("SignalPCAN", 1, [x, noise, net.tensor("int16", [29], data=range(29))], [net.tensor("uint32", [3])],
                 {"snr_shift": 6})


def overlap(net):
    """Boxes may not be thrown out for an overlap of 0."""
    x, s, a = net.input("float32", [1, 2, 4]), net.input("float32", [1, 2, 3]), net.input("float32", [2, 4])
    ys = [net.tensor("float32", shape) for shape in ([1, 2, 4], [1, 2], [1, 2], [1])]
    scales = {k: 10.0 for k in ("y_scale", "x_scale", "h_scale", "w_scale")}
    net.operator("TFLite_Detection_PostProcess", 1, [x, s, a], ys, {
        "max_detections": 2, "max_classes_per_detection": 1, "nms_score_threshold": 0.5, "num_classes": 3,
        "nms_iou_threshold": 0.0, **scales})


def frequencies(net):
    """A bank of filters beyond half of the sample rate."""
    x, rate = net.input("float32", [1, 2, 65]), net.tensor("int32", [1], data=[8000])
    net.operator("Mfcc", 1, [x, rate], [net.tensor("float32", [1, 2, 13])], {
        "upper_frequency_limit": 4001.0, "lower_frequency_limit": 20.0, "filterbank_channel_count": 40,
        "dct_coefficient_count": 13})


def growing(net):
    """A value that is longer behind each round."""
    y = net.graph.outputs[0]
    goes_on = inner_graph(net, [y], lambda x: [net.tensor("bool", [], data=True)])

    def body(x):
        z = net.tensor("float32", [4])
        net.operator("CONCATENATION", 1, [x, x], [z], options("Concatenation", axis=0, fusedActivationFunction=0))
        return [z]
    net.operator("WHILE", 1, [y], [net.tensor("float32", [2])],
                 options("While", condSubgraphIndex=goes_on, bodySubgraphIndex=inner_graph(net, [y], body)))


def inner_state(net):
    """A branch with a memory."""
    x, c = net.input("int16", [3]), net.input("bool", [])

    def delayed(x):
        y = net.tensor("int16", [3])
        net.operator("SignalDelay", 1, [x], [y], {"delay_length": 2})
        return [y]
    net.operator("IF", 1, [c, x], [net.tensor("int16", [3])],
                 options("If", thenSubgraphIndex=inner_graph(net, [x], delayed),
                         elseSubgraphIndex=inner_graph(net, [x], lambda x: [x])))


def sparse_constant(net, places, numbers):
    """Of three columns and two rows; each row lists its columns."""
    p, rows, columns = S.SparsityParametersT(), S.DimensionMetadataT(), S.DimensionMetadataT()
    p.traversalOrder, p.blockMap, p.dimMetadata = [0, 1], [], [rows, columns]
    rows.format, rows.denseSize, columns.format = 0, 2, 1
    for name, values in (("Segments", [0, 1, len(places)]), ("Indices", places)):
        v = S.Uint8VectorT()
        v.values = np.array(values, np.uint8)
        setattr(columns, f"array{name}Type", S.SparseIndexVector.Uint8Vector)
        setattr(columns, f"array{name}", v)
    t = net.tensor("float32", [2, 3], data=numbers)
    net.graph.tensors[t].sparsity = p
    net.operator("DENSIFY", 1, [t], [net.tensor("float32", [2, 3])])


def sparse_place(net):
    """A column beyond the last one."""
    sparse_constant(net, [1, 3], [0.5, 1.5])


def sparse_short(net):
    """More places than numbers."""
    sparse_constant(net, [1, 2], [0.5])


def clipped_cell(net):
    """The kernel of an LSTM with one matrix does not clip."""
    kinds = [[1, 2], [1, 3], [12, 5], [12], [1, 3]]
    net.operator("LSTM", 2, [net.input("float32", shape) for shape in kinds],
                 [net.tensor("float32", [1, 3]) for _ in range(2)],
                 options("LSTM", fusedActivationFunction=4, kernelType=1, cellClip=1.0))


def too_long(net):
    """A vector of half a gigabyte, in a small file."""
    x = net.input("int16", [1 << 28])
    net.operator("SignalFftAutoScale", 1, [x], [net.tensor("int16", [1 << 28]), net.tensor("int32", [])], {})


def compiled(net):
    """What Vela writes."""
    net.operator("ethos-u", 1, [0], [net.tensor("float32", [2])], {})


def no_scale(net):
    for t in net.graph.tensors:
        t.type = 9


REFUSED = {"missing": missing, "out_of_range": out_of_range, "no_code": no_code, "unordered": unordered,
           "made_twice": made_twice, "short_buffer": short_buffer, "handle": handle,
           "no_scale": no_scale, "inner_loop": inner_loop, "option_missing": option_missing,
           "option_range": option_range, "option_text": option_text, "flex_damaged": flex_damaged, "compiled": compiled,
           "frame_step": frame_step, "few_gains": few_gains, "overlap": overlap,
           "frequencies": frequencies, "growing": growing, "inner_state": inner_state,
           "sparse_place": sparse_place, "sparse_short": sparse_short, "too_long": too_long,
           "clipped_cell": clipped_cell}


class Same:
    """A table that is written once, however often it is asked for."""

    def __init__(self, table):
        self.table, self.at = table, None

    def Pack(self, builder):
        self.at = self.at or self.table.Pack(builder)
        return self.at


def aliased():
    """A vector of graphs that are all the same one: a small file, and many tables."""
    net = numbers()
    net.model.subgraphs = [Same(net.graph)] * 200
    return net.bytes()


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    golden, refused = os.path.join(TOP, "test/golden/tflite"), os.path.join(TOP, "test/golden/error/tflite")
    corpus = os.path.join(TOP, "test/fuzz/corpus/tflite")
    shutil.rmtree(corpus, ignore_errors=True)
    for folder in (golden, refused, corpus):
        os.makedirs(folder, exist_ok=True)
    for make in (numbers, floats, ends, elements, shapes, states, signatures, two_signatures, composite,
                 control, inner_states):
        write(f"{golden}/{make.__name__}.tflite", make().bytes())
        write(f"{corpus}/{make.__name__}.tflite", make().bytes())
    for name, make in LABELS.items():
        write(f"{golden}/{name}.tflite", make())
        write(f"{corpus}/{name}.tflite", make())
    for name, change in REFUSED.items():
        write(f"{refused}/{name}.tflite", one(change).bytes())
        write(f"{corpus}/{name}.tflite", one(change).bytes())
    write(f"{corpus}/far_scales.tflite", far_scales().bytes())
    write(f"{refused}/aliased.tflite", aliased())
    write(f"{refused}/cut.tflite", numbers().bytes()[:700])
    for name, make in KINDS.items():
        net, types = Net(), " ".join(HAVE.get(name, ALL)).split() or ["float32"]  # no oracle has SEGMENT_SUM
        make(net, Chance(np.random.default_rng(1), "litert"), types[0] if types[0] != "float32" else "")
        content = net.bytes()
        if len(content) < 4096:
            write(f"{corpus}/{name}.tflite", content)


if __name__ == "__main__":
    main()
