#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile operands: every operator that reads a shape, an axis, a length or indices from data, fed at run time with
values that fit and values that do not.

    operands.py [--lathe FILE] [-j N] [--filter GLOB] [--keep DIR]

Each case is a function of graph text, or one ONNX node, and a list of runs. All packages are built with the address and
undefined sanitizers into one program with one runtime and two threads; the interpreter runs the same inputs. Both must
end with the status that the run names, and both must name one operator, and the node; where the status is 0, both must
give the same numbers, and the expected ones where the run states them.

An operator that reads such operands needs a row here, or the test that ELSEWHERE names: one without fails the run."""
import argparse
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper, parser
from onnxruntime.capi import onnxruntime_pybind11_state

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SHAPE, INDEX = -10, -12
MS = "com.microsoft"
LONG = 1 << 62
MIN = -(1 << 63)
TYPES = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "int32": np.int32, "uint8": np.uint8,
         "int8": np.int8, "bool": np.bool_}
CODES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i32": TensorProto.INT32, "u8": TensorProto.UINT8,
         "i8": TensorProto.INT8, "bool": TensorProto.BOOL}
CFLAGS = ["-std=gnu99", "-O1", "-g", "-w", "-ffp-contract=off", "-DTVMRT_NUM_WORKERS=2", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all"]
STRICT = [*(f for f in CFLAGS if f != "-w"), "-Wall", "-Wextra", "-Wcast-qual", "-Werror"]


class Case:
    """name, parameters and body of @main, runs: (operands by name, status[, results])."""
    node = ""
    ops = ()

    def __init__(self, name, params, body, *runs):
        self.name, self.runs, self.file = name, runs, f"{name}.txt"
        self.model = f"func @main({params}) {{\n{body}\n}}\n".encode()


class Node(Case):
    """One ONNX node, called after the case; inputs and outputs as "x: f32[3, 4]"."""

    def __init__(self, op, inputs, outputs, *runs, opset=21, domain="", constants=None, **attributes):
        name = f"{domain.replace('.', '_') or 'onnx'}_{op}"
        self.name, self.runs, self.file, self.node, self.ops = name, runs, f"{name}.onnx", f"the_{op}", [(domain, op)]
        ins, outs = ([self.value(v) for v in side] for side in (inputs, outputs))
        node = helper.make_node(op, [v.name for v in ins], [v.name for v in outs], self.node, domain=domain,
                                **attributes)
        sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        constants = constants or {}
        graph = helper.make_graph([node], "g", [v for v in ins if v.name and v.name not in constants], outs,
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        model = helper.make_model(graph, opset_imports=sets, ir_version=10)
        self.model = model.SerializeToString()

    @staticmethod
    def value(text):
        name, dtype, dims = re.match(r"(\w*)(?:: (\w+)\[(.*)\])?", text).groups()
        shape = [int(d) for d in dims.split(",")] if dims else []
        return helper.make_tensor_value_info(name, CODES.get(dtype, 0), shape)


class Nodes(Case):
    """Several ONNX nodes, in the text of onnx.parser; the operators that the case is the row of."""

    def __init__(self, name, operators, graph, *runs):
        self.name, self.runs, self.file, self.ops = name, runs, f"{name}.onnx", [("", op) for op in operators]
        self.model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{graph}').SerializeToString()


def one(name, params, expression, *runs):
    return Case(name, params, f"  %y = {expression}\n  return %y", *runs)


X = "%x: f32[3, 4]"
WILD = [7, -8, 1 << 40, -(1 << 40), LONG, MIN, (1 << 63) - 1]


def wild(name, good, status, more=()):
    """Runs in which the first entry of an operand is each of the wild values."""
    return [({name: good}, 0)] + [({name: [v, *good[1:]]}, status) for v in [*WILD, *more]]


def row(length=1500, rest=-1.0, **values):
    """A row of `rest` with the values at some places, at_7=3.0."""
    x = np.full(length, rest)
    for place, value in values.items():
        x[int(place[3:])] = value
    return x


def places(rows, first, last):
    """A run of "search": where the largest lies first and last, and where the smallest of the negated rows does. NaN
    lies before both."""
    return ({"x": np.array(rows), "n": -np.array(rows)}, 0, {"a": first, "b": last, "c": first, "d": last})


NAN, INF = math.nan, math.inf
CASES = [
    Case("search", "%x: f32[2, 1500], %n: f32[2, 1500]",
         "  %a = argmax(%x) {axis = 1}\n  %b = argmax(%x) {axis = 1, select_last_index = 1, keepdims = 0}\n"
         "  %c = argmin(%n) {axis = -1, keepdims = 0}\n  %d = argmin(%n) {axis = 1, select_last_index = 1}\n"
         "  return %a, %b, %c, %d",
         places([row(), row(at_7=3, at_1400=3)], [0, 7], [1499, 1400]),
         places([row(at_1440=2, at_1450=2), row(at_1499=2)], [1440, 1499], [1450, 1499]),
         places([row(at_63=5, at_64=5), row(at_1435=1, at_1436=1, at_1472=1)], [63, 1435], [64, 1472]),
         places([row(at_0=NAN, at_5=9), row(at_1=NAN, at_64=NAN, at_70=2, at_71=NAN)], [0, 1], [0, 71]),
         places([row(rest=-INF), row(rest=-INF, at_3=NAN, at_1499=NAN)], [0, 3], [1499, 1499]),
         places([row(rest=NAN), row(rest=NAN, at_0=-INF)], [0, 1], [1499, 1499]),
         places([row(rest=NAN, at_0=1, at_900=INF), row(at_100=INF, at_1200=INF)], [1, 100], [1499, 1200])),
    one("reshape", X + ", %s: i64[2]", "reshape(%x, %s) : ? declared f32[2, 6]", *wild("s", [2, 6], SHAPE, [3]),
        ({"s": [2, -1]}, 0), ({"s": [-1, 6]}, 0), ({"s": [-1, -1]}, SHAPE), ({"s": [-2, 6]}, SHAPE),
        ({"s": [0, 6]}, SHAPE), ({"s": [6, 2]}, SHAPE)),
    one("reshape_copies", X + ", %s: i64[2]", "reshape(%x, %s) : ? declared f32[3, 4]", ({"s": [0, -1]}, 0),
        ({"s": [0, 0]}, 0), ({"s": [3, 4]}, 0), ({"s": [4, 3]}, SHAPE)),
    one("reshape_zero", "%x: f32[0, 4], %s: i32[2]", "reshape(%x, %s) {allowzero = 1} : ? declared f32[0, 2]",
        ({"s": [0, 2]}, 0), ({"s": [2, 0]}, SHAPE)),
    Case("reshape_chain", X + ", %s: i64[2]", "  %a = reshape(%x, %s) : ? declared f32[3, 4]\n"
         "  %b = nn.relu(%a)\n  return %b", ({"s": [3, 4]}, 0), ({"s": [4, 3]}, SHAPE)),
    one("broadcast_to", "%x: f32[3, 1], %s: i64[3]", "broadcast_to(%x, %s) : ? declared f32[2, 3, 4]",
        *wild("s", [2, 3, 4], SHAPE, [0, -1, 1]), ({"s": [2, 1, 4]}, 0), ({"s": [2, 3, 1]}, SHAPE)),
    one("broadcast_same", X + ", %s: i64[1]", "broadcast_to(%x, %s) : ? declared f32[3, 4]", ({"s": [1]}, 0),
        ({"s": [4]}, 0), ({"s": [3]}, SHAPE)),
    one("tile", X + ", %s: i64[2]", "tile(%x, %s) : ? declared f32[6, 4]", *wild("s", [2, 1], SHAPE, [0, -2, 2 - LONG]),
        ({"s": [1, 2]}, SHAPE)),
    one("tile_nothing", "%x: f32[0, 4], %s: i64[2]", "tile(%x, %s) : ? declared f32[0, 4]", ({"s": [9, 1]}, 0),
        ({"s": [-9, 1]}, SHAPE), ({"s": [9, 2]}, SHAPE)),
    Case("split", X + ", %s: i64[2]",
         "  %a, %b = split(%x, %s) {axis = 1} : ? declared f32[3, 1], ? declared f32[3, 3]\n"
         "  return %a, %b", *wild("s", [1, 3], SHAPE), ({"s": [2, 2]}, SHAPE), ({"s": [3, 1]}, SHAPE)),
    one("slice", X + ", %b: i64[2], %e: i64[2]", "strided_slice(%x, %b, %e) : ? declared f32[2, 3]",
        ({"b": [1, 0], "e": [3, 3]}, 0), ({"b": [-2, -4], "e": [LONG, -1]}, 0), ({"b": [1, 0], "e": [9, 3]}, 0),
        ({"b": [MIN, 0], "e": [2, 3]}, 0), ({"b": [0, 0], "e": [3, 3]}, SHAPE), ({"b": [3, 0], "e": [1, 3]}, SHAPE),
        ({"b": [LONG, 0], "e": [LONG, 3]}, SHAPE), ({"b": [MIN, MIN], "e": [MIN, MIN]}, SHAPE)),
    one("slice_axes", X + ", %b: i64[1], %e: i64[1], %a: i64[1], %s: i64[1]",
        "strided_slice(%x, %b, %e, %a, %s) : ? declared f32[3, 2]",
        ({"b": [0], "e": [4], "a": [1], "s": [2]}, 0), ({"b": [3], "e": [MIN], "a": [-1], "s": [-2]}, 0),
        ({"b": [0], "e": [4], "a": [0], "s": [2]}, SHAPE), ({"b": [0], "e": [4], "a": [2], "s": [2]}, INDEX),
        ({"b": [0], "e": [4], "a": [MIN], "s": [2]}, INDEX), ({"b": [0], "e": [4], "a": [1], "s": [0]}, SHAPE),
        ({"b": [0], "e": [4], "a": [1], "s": [MIN]}, SHAPE), ({"b": [0], "e": [4], "a": [1], "s": [LONG]}, SHAPE),
        ({"b": [0], "e": [4], "a": [1], "s": [-2]}, SHAPE)),
    one("slice_one", X + ", %b: i64[1], %e: i64[1], %s: i64[1]",
        "strided_slice(%x, %b, %e, _, %s) : ? declared f32[1, 4]",
        ({"b": [2], "e": [MIN], "s": [MIN]}, 0), ({"b": [0], "e": [LONG], "s": [LONG]}, 0),
        ({"b": [0], "e": [LONG], "s": [0]}, SHAPE)),
    one("slice_twice", X + ", %b: i64[2], %e: i64[2], %a: i64[2]",
        "strided_slice(%x, %b, %e, %a) : ? declared f32[3, 4]",
        ({"b": [0, 0], "e": [3, 4], "a": [0, 1]}, 0), ({"b": [0, 0], "e": [3, 4], "a": [1, -1]}, INDEX)),
    one("pad", X + ", %p: i64[4]", "nn.pad(%x, %p) : ? declared f32[5, 4]", *wild("p", [1, 0, 1, 0], SHAPE, [0, 3]),
        ({"p": [-1, 1, 3, -1]}, 0), ({"p": [LONG, 0, 2 - LONG, 0]}, SHAPE), ({"p": [MIN, 0, MIN, 0]}, SHAPE),
        ({"p": [(1 << 63) - 1, 0, 3 - (1 << 63), 0]}, SHAPE)),
    one("pad_axes", X + ", %p: i64[2], %a: i64[1]", "nn.pad(%x, %p, _, %a) {mode = \"edge\"} : ? declared f32[3, 6]",
        ({"p": [1, 1], "a": [1]}, 0), ({"p": [2, 0], "a": [-1]}, 0), ({"p": [1, 1], "a": [0]}, SHAPE),
        *[({"p": [1, 1], "a": [v]}, INDEX) for v in WILD]),
    one("pad_reflect", X + ", %p: i64[4]", "nn.pad(%x, %p) {mode = \"reflect\"} : ? declared f32[5, 4]",
        *wild("p", [1, 0, 1, 0], SHAPE)),
    one("full", "%s: i64[2]", "full(%s) {value = f32[] dense [2.0]} : ? declared f32[2, 3]",
        *wild("s", [2, 3], SHAPE, [-1])),
    one("arange", "%a: i64[], %b: i64[], %d: i64[]", "arange(%a, %b, %d) : ? declared i64[3]",
        ({"a": [0], "b": [3], "d": [1]}, 0, {"y": [0, 1, 2]}), ({"a": [5], "b": [0], "d": [-2]}, 0, {"y": [5, 3, 1]}),
        ({"a": [0], "b": [3], "d": [0]}, SHAPE), ({"a": [0], "b": [4], "d": [1]}, SHAPE),
        ({"a": [3], "b": [0], "d": [1]}, SHAPE),
        ({"a": [MIN], "b": [LONG], "d": [1]}, SHAPE), ({"a": [0], "b": [MIN], "d": [LONG]}, SHAPE)),
    one("arange_float", "%a: f32[], %b: f32[], %d: f32[]", "arange(%a, %b, %d) : ? declared f32[10]",
        ({"a": [1], "b": [2], "d": [0.1]}, 0), ({"a": [0.3], "b": [1.3], "d": [0.1]}, 0),
        ({"a": [1], "b": [2], "d": [float("nan")]}, SHAPE), ({"a": [1], "b": [float("inf")], "d": [0.1]}, SHAPE),
        ({"a": [1], "b": [1], "d": [0]}, SHAPE), ({"a": [1], "b": [2], "d": [0.11]}, 0),
        ({"a": [1], "b": [2], "d": [0.2]}, SHAPE)),
    one("arange_none", "%a: i32[], %b: i32[], %d: i32[]", "arange(%a, %b, %d) : ? declared i32[0]",
        ({"a": [3], "b": [0], "d": [1]}, 0), ({"a": [3], "b": [3], "d": [1]}, 0),
        ({"a": [3], "b": [4], "d": [1]}, SHAPE),
        ({"a": [3], "b": [3], "d": [0]}, SHAPE)),
    Case("topk", X + ", %k: i64[1]",
         "  %v, %i = topk(%x, %k) : ? declared f32[3, 2], ? declared i64[3, 2]\n  return %v, %i",
         *wild("k", [2], SHAPE, [0, 1, 3, 4, 5])),
    one("resize_sizes", "%x: f32[1, 1, 4, 4], %s: i64[4]", "resize(%x, _, _, %s) : ? declared f32[1, 1, 8, 2]",
        *wild("s", [1, 1, 8, 2], SHAPE), ({"s": [1, 1, 8, 4]}, SHAPE)),
    one("resize_scales", "%x: f32[10], %s: f32[1]", "resize(%x, _, %s) {mode = \"linear\"} : ? declared f32[7]",
        ({"s": [0.7]}, 0), ({"s": [0.75]}, 0), ({"s": [0.8]}, SHAPE), ({"s": [0]}, SHAPE), ({"s": [-0.7]}, SHAPE),
        ({"s": [float("nan")]}, SHAPE), ({"s": [float("inf")]}, SHAPE)),
    *[one(f"resize_{policy}", "%x: f32[1, 1, 2, 4], %s: i64[2]",
          f"resize(%x, _, _, %s) {{mode = \"linear\", axes = [2, 3], keep_aspect_ratio_policy = \"{policy}\"}}"
          f" : ? declared f32[1, 1, {rows}, {columns}]", ({"s": good}, 0, {"y": numbers}), ({"s": [2, 4]}, SHAPE),
          *[({"s": [v, 5]}, SHAPE) for v in (-3, MIN, 1 << 40)])
      for policy, rows, columns, good, numbers in (
          ("not_larger", 1, 2, [1, 3], [-1.375, -0.875]),
          ("not_smaller", 2, 3, [1, 3], [v / 24 - 2 for v in (5, 13, 21, 25, 33, 41)]))],
    one("col2im", "%x: f32[1, 4, 4], %s: i64[2], %k: i64[2]", "col2im(%x, %s, %k) : ? declared f32[1, 1, 3, 3]",
        ({"s": [3, 3], "k": [2, 2]}, 0), ({"s": [3, 4], "k": [2, 2]}, SHAPE), ({"s": [3, 3], "k": [2, 3]}, SHAPE),
        ({"s": [3, 3], "k": [1, 4]}, SHAPE), ({"s": [3, 3], "k": [LONG, 2]}, SHAPE),
        ({"s": [3, 3], "k": [0, 0]}, SHAPE),
        ({"s": [3, 3], "k": [MIN, 2]}, SHAPE), ({"s": [MIN, 3], "k": [2, 2]}, SHAPE),
        ({"s": [3, 3], "k": [-2, -2]}, SHAPE)),
    one("max_unpool", "%x: f32[1, 1, 1, 2], %i: i64[1, 1, 1, 2]",
        "nn.max_unpool(%x, %i) {pool_size = [2, 2], strides = [2, 2]}",
        *[({"i": [v, 1]}, 0 if v == 7 else INDEX) for v in WILD], ({"i": [0, 3]}, 0), ({"i": [0, 8]}, INDEX),
        ({"i": [-1, 3]}, INDEX)),
    one("max_unpool_shape", "%x: f32[1, 1, 1, 1], %i: i64[1, 1, 1, 1], %s: i64[4]",
        "nn.max_unpool(%x, %i, %s) {pool_size = [2, 2], strides = [2, 2]} : ? declared f32[1, 1, 3, 3]",
        ({"i": [3], "s": [1, 1, 3, 3]}, 0), ({"i": [3], "s": [1, 1, 3, 2]}, SHAPE),
        ({"i": [4], "s": [1, 1, 3, 3]}, 0), ({"i": [8], "s": [1, 1, 3, 3]}, 0),
        *[({"i": [v], "s": [1, 1, 3, 3]}, 0 if 0 <= v < 9 else INDEX) for v in (9, -1, *WILD)]),
    one("one_hot", "%i: i64[4], %d: i64[], %v: f32[2]", "one_hot(%i, %d, %v) : ? declared f32[4, 3]",
        ({"i": [2, -1, -4, 5], "d": [3], "v": [0, 1]}, 0, {"y": [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]}),
        ({"i": WILD[3:], "d": [3], "v": [0, 1]}, 0, {"y": [0] * 12}),
        *[({"i": [0, 1, 2, 0], "d": [v], "v": [0, 1]}, SHAPE) for v in [*WILD, 0, -3]]),
    one("cumsum", X + ", %a: i64[]", "cumsum(%x, %a)", ({"a": [0]}, 0), ({"a": [1]}, 0), ({"a": [-2]}, 0),
        ({"a": [2]}, INDEX),
        ({"a": [-3]}, INDEX), *[({"a": [v]}, INDEX) for v in WILD]),
    one("cumprod", X + ", %a: i32[1]", "cumprod(%x, %a)", ({"a": [1]}, 0), ({"a": [2]}, INDEX), ({"a": [-3]}, INDEX)),
    one("take", X + ", %i: i64[5]", "take(%x, %i) {axis = 1}", *wild("i", [0, 1, -1, -4, 3], INDEX, [4, -5])),
    one("take_wide", "%x: f32[64, 512], %i: i64[128]", "take(%x, %i)", ({"i": [k % 64 for k in range(128)]}, 0),
        ({"i": [0] * 127 + [64]}, INDEX), ({"i": [0] * 127 + [MIN]}, INDEX), ({"i": [-65] + [0] * 127}, INDEX)),
    Case("take_fused", X + ", %i: i64[2]", "  %j = add(%i, %i)\n  %a = take(%x, %j)\n  %b = nn.relu(%a)\n  return %b",
         ({"i": [1, -1]}, 0), ({"i": [2, 0]}, INDEX), ({"i": [0, LONG]}, INDEX)),
    one("take_row", X + ", %i: i32[]", "take(%x, %i)", ({"i": [2]}, 0), ({"i": [-3]}, 0), ({"i": [3]}, INDEX)),
    one("gather_elements", "%x: f32[300, 200], %i: i64[300, 200]", "gather_elements(%x, %i)", ({"i": [299] * 60000}, 0),
        ({"i": [-300] * 60000}, 0), ({"i": [0] * 59999 + [300]}, INDEX), ({"i": [MIN] + [0] * 59999}, INDEX)),
    one("gather_nd", X + ", %i: i64[2, 2]", "gather_nd(%x, %i)", ({"i": [2, 3, -3, -4]}, 0),
        ({"i": [3, 0, 0, 0]}, INDEX),
        ({"i": [0, 0, 0, 4]}, INDEX), *[({"i": [0, 0, v, 0]}, INDEX) for v in WILD]),
    one("gather_nd_batch", X + ", %i: i64[3, 1]", "gather_nd(%x, %i) {batch_dims = 1}", ({"i": [0, 3, -4]}, 0),
        ({"i": [0, 4, 0]}, INDEX)),
    one("scatter_elements", X + ", %i: i64[2, 4], %u: f32[2, 4]", "scatter_elements(%x, %i, %u) {reduction = \"add\"}",
        *wild("i", [0, 1, 2, -1, -2, -3, 0, 0], INDEX, [3, -4])),
    one("scatter_nd", X + ", %i: i64[2, 1], %u: f32[2, 4]",
        "scatter_nd(%x, %i, %u)", *wild("i", [0, -1], INDEX, [3, -4])),
    one("tensor_scatter", "%x: f32[2, 4, 3], %u: f32[2, 2, 3], %w: i64[2]", "tensor_scatter(%x, %u, %w)",
        *wild("w", [1, 2], INDEX, [3, -1]), ({"w": [0, 3]}, INDEX)),
    one("tensor_scatter_circular", "%x: f32[2, 4, 3], %u: f32[2, 2, 3], %w: i64[2]",
        "tensor_scatter(%x, %u, %w) {mode = \"circular\"}", ({"w": [3, 0]}, 0), ({"w": [-1, 0]}, INDEX),
        ({"w": [LONG, 0]}, INDEX)),
    one("reverse_sequence", X + ", %l: i64[4]", "reverse_sequence(%x, %l)", ({"l": [0, 1, 2, 3]}, 0),
        *[({"l": [1, 1, 1, v]}, INDEX) for v in [4, -1, *WILD]]),
    *[one(kind, f"%x: f32[3, 2, 2], %w: f32[1, {2 * g}, 2], %r: f32[1, {2 * g}, 2], %l: i32[2]",
          f"{kind}(%x, %w, %r, _, %l) {{hidden_size = 2, direction = \"{way}\"}}", ({"l": [3, 1]}, 0),
          ({"l": [0, 2]}, 0),
          ({"l": [4, 1]}, INDEX), ({"l": [1, -1]}, INDEX), ({"l": [-(1 << 31), (1 << 31) - 1]}, INDEX))
      for kind, g, way in (("rnn", 1, "forward"), ("gru", 3, "reverse"), ("lstm", 4, "reverse"))],
    one("expect", X + ", %v: i64[2]", "expect(%x, %v) {rows = i64[2, 2] dense [1, 2, 3, 4]}", *wild("v", [1, 2], SHAPE),
        ({"v": [3, 4]}, 0), ({"v": [1, 4]}, SHAPE)),
    Case("late", X + ", %i: i64[2], %s: i64[2]",
         "  %a = take(%x, %i)\n  %b = reshape(%a, %s) : ? declared f32[4, 2]\n  return %b",
         ({"i": [0, 2], "s": [4, 2]}, 0), ({"i": [0, 3], "s": [4, 2]}, INDEX), ({"i": [0, 2], "s": [2, 4]}, SHAPE)),
    Node("Squeeze", ["x: f32[1, 3, 1, 1]", "a: i64[2]"], ["y: f32[3, 1]"], ({"a": [0, 2]}, 0), ({"a": [-1, 0]}, 0),
         ({"a": [0, 1]}, SHAPE), ({"a": [0, 0]}, SHAPE), ({"a": [2, 3]}, SHAPE), ({"a": [0, 4]}, INDEX),
         ({"a": [0, MIN]}, INDEX)),
    Node("Unsqueeze", ["x: f32[3]", "a: i64[1]"], ["y: f32[1, 3]"], ({"a": [0]}, 0), ({"a": [-2]}, 0),
        ({"a": [1]}, SHAPE),
         ({"a": [2]}, INDEX), ({"a": [LONG]}, INDEX)),
    Node("ReduceSum", ["x: f32[3, 2, 2]", "a: i64[1]"], ["y: f32[3, 2]"], ({"a": [1]}, 0), ({"a": [-1]}, 0),
         ({"a": [0]}, SHAPE), ({"a": [3]}, INDEX), ({"a": [-4]}, INDEX), keepdims=0),
    Node("ReduceMax", ["x: f32[3, 2]", "a: i64[1]"], ["y: f32[1, 2]"], ({"a": [0]}, 0), ({"a": [1]}, SHAPE),
         ({"a": [2]}, INDEX)),
    Node("DFT", ["x: f32[1, 4, 4, 1]", "", "a: i64[]"], ["y: f32[1, 4, 4, 2]"], ({"a": [1]}, 0), ({"a": [-2]}, 0),
         ({"a": [3]}, SHAPE), ({"a": [-5]}, SHAPE), ({"a": [MIN]}, SHAPE)),
    Node("CenterCropPad", ["x: f32[3, 4]", "s: i64[2]"], ["y: f32[5, 2]"], ({"s": [5, 2]}, 0), ({"s": [5, 3]}, SHAPE),
         ({"s": [-5, 2]}, SHAPE)),
    Node("AffineGrid", ["t: f32[2, 2, 3]", "s: i64[4]"], ["y: f32[2, 3, 4, 2]"], ({"s": [2, 7, 3, 4]}, 0),
         ({"s": [1, 7, 3, 4]}, SHAPE), ({"s": [2, 7, 4, 3]}, SHAPE)),
    Node("HannWindow", ["n: i64[]"], ["y: f32[5]"], ({"n": [5]}, 0), ({"n": [6]}, SHAPE), ({"n": [-5]}, SHAPE)),
    Node("NegativeLogLikelihoodLoss", ["x: f32[3, 4]", "t: i64[3]", "w: f32[4]"], ["y: f32[]"],
         ({"t": [0, 3, -100]}, 0),
         ({"t": [0, 4, 1]}, INDEX), ({"t": [0, -5, 1]}, INDEX), ignore_index=-100),
    Node("RotaryEmbedding", ["x: f32[1, 2, 2, 4]", "c: f32[5, 2]", "s: f32[5, 2]", "p: i64[1, 2]"],
         ["y: f32[1, 2, 2, 4]"],
         ({"p": [0, 4]}, 0), ({"p": [0, 5]}, INDEX), opset=23),
    Node("RoiAlign", ["x: f32[2, 1, 4, 4]", "r: f32[1, 4]", "b: i64[1]"], ["y: f32[1, 1, 2, 2]"],
         *wild("b", [1], INDEX), output_height=2, output_width=2),
    Node("MaxRoiPool", ["x: f32[2, 1, 4, 4]", "r: f32[2, 5]"], ["y: f32[2, 1, 2, 2]"],
         *[({"r": [v, 0, 0, 3, 3, 1, 0, 0, 3, 3]}, status) for v, status in (
             (-0.5, 0), (1.5, 0), (2, INDEX), (-1, INDEX), (1e9, INDEX), (-1e30, INDEX), (math.inf, INDEX),
             (-math.inf, INDEX), (math.nan, INDEX))],
         *[({"r": [0, *[v if i == k else 2 * (k > 1) for i in range(4)], 1, v, v, v, v]}, 0)
           for k in range(4) for v in (
             -3, 9, 1e9, -1e9, 2147483520.0, 1e30, -1e30, math.inf, -math.inf, math.nan)], pooled_shape=[2, 2]),
    Node("LSTM", ["x: f32[3, 2, 2]", "w: f32[1, 8, 2]", "r: f32[1, 8, 2]", "", "l: i32[2]"], ["y: f32[3, 1, 2, 2]"],
         ({"l": [3, 0]}, 0), ({"l": [4, 1]}, INDEX), ({"l": [1, -1]}, INDEX), ({"l": [-(1 << 31), 1]}, INDEX),
         hidden_size=2),
    Node("GRU", ["x: f32[3, 2, 2]", "w: f32[1, 6, 2]", "r: f32[1, 6, 2]", "", "l: i32[2]"], ["y: f32[3, 1, 2, 2]"],
         ({"l": [3, 0]}, 0), ({"l": [4, 1]}, INDEX), ({"l": [1, (1 << 31) - 1]}, INDEX), hidden_size=2),
    Node("RNN", ["x: f32[3, 2, 2]", "w: f32[1, 2, 2]", "r: f32[1, 2, 2]", "", "l: i32[2]"], ["y: f32[3, 1, 2, 2]"],
         ({"l": [3, 0]}, 0), ({"l": [4, 1]}, INDEX), ({"l": [1, -2]}, INDEX), hidden_size=2, direction="reverse"),
    Node("Trilu", ["x: f32[3, 4]", "k: i64[]"], ["y: f32[3, 4]"], *[({"k": [v]}, 0) for v in (0, -1, *WILD)]),
    Node("Pad", ["x: f32[3, 4]", "p: i64[1, 4]"], ["y: f32[5, 4]"], ({"p": [2, 0, 0, 0]}, 0),
        ({"p": [1, 0, 0, 0]}, SHAPE)),
    Node("Gather", ["x: f32[3, 4]", "i: i64[2]"], ["y: f32[2, 4]"], ({"i": [0, -3]}, 0), ({"i": [0, 3]}, INDEX)),
    Node("Reshape", ["x: f32[3, 4]", "s: i64[2]"], ["y: f32[2, 6]"], ({"s": [2, -1]}, 0), ({"s": [3, 4]}, SHAPE)),
    Node("TopK", ["x: f32[3, 4]", "k: i64[1]"], ["v: f32[3, 2]", "i: i64[3, 2]"], *wild("k", [2], SHAPE, [0, 1, 5])),
    Node("ConstantOfShape", ["s: i64[2]"], ["y: f32[2, 3]"], *wild("s", [2, 3], SHAPE, [-1])),
    Node("Resize", ["x: f32[1, 1, 4, 4]", "", "", "s: i64[4]"], ["y: f32[1, 1, 8, 2]"],
         *wild("s", [1, 1, 8, 2], SHAPE), mode="nearest"),
    Node("Slice", ["x: f32[3, 4]", "b: i64[1]", "e: i64[1]", "a: i64[1]", "s: i64[1]"], ["y: f32[3, 2]"],
         ({"b": [0], "e": [4], "a": [1], "s": [2]}, 0), ({"b": [LONG], "e": [MIN], "a": [-1], "s": [-2]}, 0),
         ({"b": [0], "e": [4], "a": [1], "s": [0]}, SHAPE), ({"b": [0], "e": [4], "a": [LONG], "s": [2]}, INDEX)),
    Node("Split", ["x: f32[3, 4]", "s: i64[2]"], ["a: f32[3, 1]", "b: f32[3, 3]"], *wild("s", [1, 3], SHAPE), axis=1),
    Node("STFT", ["x: f32[1, 8, 1]", "h: i64[]", "w: f32[4]"], ["y: f32[1, 3, 3, 2]"], ({"h": [2]}, 0),
         *[({"h": [v]}, SHAPE) for v in [0, -2, *WILD]]),
    Node("SoftmaxCrossEntropyLoss", ["x: f32[3, 4]", "t: i64[3]"], ["y: f32[]"],
         *wild("t", [0, 3, 1], INDEX, [4, -5])),
    Node("Attention", ["q: f32[2, 1, 1, 2]", "k: f32[2, 1, 3, 2]", "v: f32[2, 1, 3, 2]", "", "", "", "n: i64[2]"],
         ["y: f32[2, 1, 1, 2]"], *[({"n": [v, 2]}, 0) for v in [1, 3, 0, *WILD]], opset=24),
    Node("MelWeightMatrix", ["n: i64[]", "d: i64[]", "r: i64[]", "l: f32[]", "u: f32[]"], ["y: f32[9, 4]"],
         ({"n": [4], "d": [16], "r": [8000], "l": [0], "u": [4000]}, 0),
         *[({"n": [v], "d": [16], "r": [8000], "l": [0], "u": [4000]}, SHAPE) for v in WILD],
         *[({"n": [4], "d": [v], "r": [8000], "l": [0], "u": [4000]}, SHAPE) for v in WILD],
         *[({"n": [4], "d": [16], "r": [v], "l": [x], "u": [y]}, 0) for v, x, y in
           zip([0, *WILD], (0, NAN, -INF, INF, 1e38), (4000, NAN, INF, -INF, -1e38))]),
    Node("ArrayFeatureExtractor", ["x: f32[3, 4]", "i: i64[1, 2]"], ["y: f32[3, 2]"],
         *wild("i", [1, 3], INDEX, [4, -5]), domain="ai.onnx.ml"),
    Node("MRotaryEmbedding", ["x: f32[1, 2, 8]", "p: i64[3, 1, 2]", "c: f32[5, 4]", "s: f32[5, 4]"],
         ["y: f32[1, 2, 8]"], *wild("p", [0, 1, 4, 2, 3, 0], INDEX, [5]), domain=MS, num_heads=1,
         mrope_section=[2, 1, 1]),
    Node("RotaryEmbedding", ["x: f32[1, 2, 2, 4]", "p: i64[1, 2]", "c: f32[5, 2]", "s: f32[5, 2]"],
         ["y: f32[1, 2, 2, 4]"], *wild("p", [0, 4], INDEX, [5]), domain=MS),
    Node("NGramRepeatBlock", ["i: i64[1, 4]", "s: f32[1, 5]"], ["y: f32[1, 5]"],
         ({"i": [0, 1, 2, 1]}, 0), *[({"i": [1, v, 2, 1]}, INDEX) for v in [5, *WILD]],
         *[({"i": [v, 1, 2, 3]}, 0) for v in WILD],
         domain=MS, ngram_size=2),
    Node("CropAndResize", ["x: f32[2, 1, 4, 4]", "r: f32[1, 4]", "b: i32[1]", "s: i32[2]"], ["y: f32[1, 1, 2, 2]"],
         ({"b": [1], "r": [0, 0, 1, 1]}, 0),
         *[({"b": [v], "r": [0, 0, 1, 1]}, INDEX) for v in (2, -3, (1 << 31) - 1, -(1 << 31))],
         *[({"b": [0], "r": [v, 0, 1, w]}, 0) for v in (NAN, INF, -1e38) for w in (NAN, -INF, 3e38)],
         domain=MS, constants={"s": np.array([2, 2], np.int32)}),
    Node("GatherBlockQuantized", ["x: u8[4, 16]", "i: i64[2]", "s: f32[4, 1]"], ["y: f32[2, 32]"],
         *wild("i", [0, 3], INDEX, [4, -5]), domain=MS, block_size=32, quantize_axis=1, gather_axis=0),
    Node("EmbedLayerNormalization", ["i: i32[1, 2]", "j: i32[1, 2]", "w: f32[5, 4]", "p: f32[3, 4]", "s: f32[2, 4]",
                                     "g: f32[4]", "b: f32[4]"], ["y: f32[1, 2, 4]", "m: i32[1]"],
         *[({"i": [v, 0], "j": [0, 1]}, status) for v, status in ((4, 0), (5, INDEX), ((1 << 31) - 1, INDEX),
                                                                 (-(1 << 31), INDEX))],
         *[({"i": [1, 0], "j": [0, v]}, INDEX) for v in (2, (1 << 31) - 1, -(1 << 31))], domain=MS),
    Node("Attention", ["x: f32[2, 3, 4]", "w: f32[4, 12]", "b: f32[12]", "m: i32[2]"], ["y: f32[2, 3, 4]"],
         *[({"m": [v, 2]}, 0) for v in (1, 3, 0, 7, -1, (1 << 31) - 1, -(1 << 31))], domain=MS, num_heads=1),
    Node("GroupQueryAttention",
         ["q: f32[1, 1, 8]", "k: f32[1, 1, 4]", "v: f32[1, 1, 4]", "a: f32[1, 1, 4, 4]", "b: f32[1, 1, 4, 4]",
          "n: i32[1]", "t: i32[]"], ["y: f32[1, 1, 8]", "c: f32[1, 1, 4, 4]", "d: f32[1, 1, 4, 4]"],
         *[({"n": [v], "t": [4]}, INDEX if v > 3 else 0) for v in (2, 3, 4, -1, (1 << 31) - 1, -(1 << 31))],
         domain=MS, num_heads=2, kv_num_heads=1),
    Node("DynamicQuantizeLSTM", ["x: f32[3, 1, 2]", "w: u8[1, 2, 8]", "r: u8[1, 2, 8]", "", "l: i32[1]", "", "", "",
                                 "a: f32[1]", "b: u8[1]", "c: f32[1]", "d: u8[1]"], ["y: f32[3, 1, 1, 2]"],
         *[({"l": [v]}, 0) for v in (3, 0, 4, -1, (1 << 31) - 1, -(1 << 31))], domain=MS, hidden_size=2),
    Node("MultiHeadAttention", ["q: f32[2, 3, 4]", "k: f32[2, 3, 4]", "v: f32[2, 3, 4]", "", "m: i32[2]"],
         ["y: f32[2, 3, 4]"], *[({"m": [v, 2]}, 0) for v in (1, 3, 0, 7, -1, (1 << 31) - 1, -(1 << 31))], domain=MS,
         num_heads=1),
    Node("QEmbedLayerNormalization",
         ["i: i32[1, 2]", "j: i32[1, 2]", "w: u8[5, 4]", "p: u8[3, 4]", "s: u8[2, 4]", "g: u8[4]", "b: u8[4]", "",
          *[f"s{k}: f32[]" for k in range(5)], *[f"z{k}: u8[]" for k in range(5)]], ["y: f32[1, 2, 4]", "m: i32[1]"],
         *[({"i": [v, 0], "j": [0, 1]}, status) for v, status in ((4, 0), (5, INDEX), ((1 << 31) - 1, INDEX),
                                                                 (-(1 << 31), INDEX))],
         *[({"i": [1, 0], "j": [0, v]}, INDEX) for v in (2, (1 << 31) - 1, -(1 << 31))], domain=MS),
    Nodes("sequence_at", ["SequenceAt"],
          "g (float[2] x, float[2] y, int64 p) => (float[2] r) { s = SequenceConstruct (x, y) r = SequenceAt (s, p) }",
          *[({"x": [1, 2], "y": [3, 4], "p": [v]}, 0, {"r": [1, 2] if v % 2 == 0 else [3, 4]}) for v in (0, 1, -1, -2)],
          *[({"p": [v]}, INDEX) for v in (2, -3, *WILD)]),
    Nodes("sequence_erase", ["SequenceErase"],
          "g (float[2] x, float[2] y, float[2] z, int64 p) => (float[4] r) {"
          " s = SequenceConstruct (x, y, z) t = SequenceErase (s, p) r = ConcatFromSequence <axis = 0> (t) }",
          ({"x": [1, 2], "y": [3, 4], "z": [5, 6], "p": [-2]}, 0, {"r": [1, 2, 5, 6]}), ({"p": [2]}, 0),
          *[({"p": [v]}, INDEX) for v in (3, -4, *WILD)]),
    Nodes("sequence_insert", ["SequenceInsert"],
          "g (float[2] x, float[2] y, int64 p) => (float[6] r) {"
          " s = SequenceConstruct (x, x) t = SequenceInsert (s, y, p) r = ConcatFromSequence <axis = 0> (t) }",
          ({"x": [1, 2], "y": [3, 4], "p": [-1]}, 0, {"r": [1, 2, 3, 4, 1, 2]}), ({"p": [2]}, 0),
          *[({"p": [v]}, INDEX) for v in (3, -3, *WILD)]),
    Node("QAttention", ["x: u8[2, 3, 4]", "w: u8[4, 12]", "b: f32[12]", "s: f32[]", "t: f32[]", "m: i32[2]"],
         ["y: f32[2, 3, 4]"], *[({"m": [v, 2]}, 0) for v in (1, 3, 0, 7, -1, (1 << 31) - 1, -(1 << 31))], domain=MS,
         num_heads=1),
]

# What has no row above, and why: where it is tested, or what the numbers are.
ELSEWHERE = {
    "the extents of the result are open: chosen.py": ["onnx_op_non_max_suppression", "nn.nms"],
    "no places or sizes, what is chosen only: chosen.py": ["compress", "nonzero", "unique", "nn.nms_rows"],
    "random models, built with sanitizers: sequences.py": ["onnx_op_split_to_sequence"],
    "a number of rounds: branches.py": ["onnx_op_loop"],
    "numbers, and no places or sizes": [
        "onnx_op_qlinear_conv", "onnx_op_qlinear_conv_ms", "onnx_op_qgemm", "onnx_op_adagrad", "onnx_op_adam",
        "onnx_op_momentum"],
    "must be constant": ["onnx_op_matmul_nbits", "onnx_op_expand_dims_ms"],
    "written out as a loop of operators that have rows": [
        "onnx_op_beam_search", "onnx_op_greedy_search", "onnx_op_sampling", "onnx_op_whisper_beam_search"],
    "made of rnn, gru and lstm, which have rows": ["rnn_steps", "gru_steps", "lstm_steps"],
    "made of operators of ONNX that have rows": ["nn.roi_align", "trilu"],
}


def without_rows():
    """Operators of the IR and of ONNX that read places, sizes, axes or lengths, or whose result's extents follow from
    numbers of any type, and have no row. Importers that pass operands on need none if the operator of the IR has one;
    one row serves all operators of an importer."""
    folder = os.path.join(TOP, "src")
    with open(os.path.join(folder, "graph", "graph_ops.def"), encoding="utf-8") as f:
        reads = {name for name, operand in re.findall(r'^\w+\(\w+, "([^"]+)", "([^"]*)"', f.read(), re.M)
                 if ":index" in operand}
    with open(os.path.join(folder, "te", "te_op.h"), encoding="utf-8") as f:
        sized = set(re.findall(r'X\("([\w.]+)", extents_', f.read()))
    with open(os.path.join(folder, "frontend", "onnx", "onnx_ops.def"), encoding="utf-8") as f:
        rows = re.findall(r'^ONNX_OP\("([^"]*)", "(\w+)", \d+, 0,\s*(?:"[^"]*"\s*)+,\s*(\w+),\s*"([^"]*)"', f.read(),
                          re.M)
    called = set(re.findall(r"= ([\w.]+)\(", "".join(c.model.decode() for c in CASES if not c.ops)))
    excused = {name for names in ELSEWHERE.values() for name in names}
    schemas = {(s.domain, s.name): s for s in onnxruntime_pybind11_state.get_all_operator_schema()}
    schemas.update({(s.domain, s.name): s for s in defs.get_all_schemas()})
    tested = {op for c in CASES for op in c.ops}
    served = {importer for domain, name, importer, _ in rows if (domain, name) in tested} | excused
    for domain, name, importer, target in rows:
        schema = schemas.get((domain, name))
        direct = importer == "onnx_op_direct" or target in sized
        covered = (domain, name) in tested or (target in called | excused if direct else importer in served)
        if schema and (reads_integers(schema) or target in sized) and not covered:
            yield f"{domain or 'onnx'}.{name} ({importer})"
    yield from sorted((reads | sized) - called - excused)


def reads_integers(schema):
    """Whether an operand can be nothing but i32 or i64."""
    kinds = {t.type_param_str: set(t.allowed_type_strs) for t in schema.type_constraints}
    names = [getattr(operand, "type_str", None) or operand.typeStr for operand in schema.inputs]
    return any(kinds.get(name, {name}) <= {"tensor(int64)", "tensor(int32)"} for name in names)


def operands(about, run):
    """One array for each input of the package: the run's, else a pattern."""
    arrays = []
    for entry in about["inputs"]:
        dtype, count = TYPES[entry["dtype"]], int(np.prod(entry["shape"], dtype=np.int64))
        given = run[0].get(entry["name"])
        values = given if given is not None else [(k % 17) / 4 - 2 * (dtype != np.uint8) for k in range(count)]
        arrays.append(np.array(values, dtype=dtype).reshape(entry["shape"]))
    return arrays


def compile_case(lathe, folder, number, case):
    text = os.path.join(folder, case.file)
    with open(text, "wb") as f:
        f.write(case.model)
    out = os.path.join(folder, f"p{number}")
    run = subprocess.run([lathe, "compile", text, "-o", out, "--module-name", f"c{number}"], capture_output=True,
                         text=True)
    if run.returncode != 0:
        return f"{case.name}: compile: {run.stderr.strip()}"
    sources = [os.path.join(out, "src", s) for s in sorted(os.listdir(os.path.join(out, "src")))
               if s.endswith(".c") and not s.startswith(("main", "tvmrt"))]
    run = subprocess.run(["cc", *CFLAGS, f"-I{out}/include", f"-I{out}/src", f"-Wa,-I,{out}/src", "-c", *sources],
                         cwd=out,
                         capture_output=True, text=True)
    return f"{case.name}: cc: {run.stderr.strip()[:300]}" if run.returncode else None


def driver(folder, cases, abouts):
    """A program that makes all runs and prints for each its status, the operator that the log names,
    and the results."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", "#include \"tvmrt.h\""]
    lines += [f"#include \"../p{k}/include/tvmgen_c{k}.h\"" for k in range(len(cases))]
    lines.append("""
static void *block(size_t n, FILE *from)
{
    void *p = malloc(n); /* exactly as large: the sanitizer sees every byte beyond */
    if (p == NULL && n > 0)
        abort();
    if (from != NULL && fread(p, 1, n, from) != n)
        abort();
    return p;
}
static void tell(int32_t status)
{
    tvmrt_log_record_t r;
    int32_t op = -1;
    while (tvmrt_log_pop(&r))
        op = r.code == status && op < 0 ? r.op_id : op;
    printf("%ld %ld\\n", (long)status, (long)op);
}
static void show(const void *p, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        printf("%02x", ((const unsigned char *)p)[i]);
    printf("\\n");
}""")
    for k, about in enumerate(abouts):
        head = open(os.path.join(folder, f"p{k}", "include", f"tvmgen_c{k}.h"), encoding="utf-8").read()
        fields = {kind: re.findall(r"(\w+);", re.search(rf"struct tvmgen_c{k}_{kind} {{(.*?)}}", head, re.S)[1])
                  for kind in ("inputs", "outputs")}
        lines.append(f"static void run_{k}(FILE *from)\n{{\n    struct tvmgen_c{k}_inputs in;\n"
                     f"    struct tvmgen_c{k}_outputs out;\n    int32_t status;")
        size = {kind: {e["c_name"]: int(np.prod(e["shape"], dtype=np.int64)) * np.dtype(TYPES[e["dtype"]]).itemsize
                       for e in about[kind]} for kind in ("inputs", "outputs")}
        order = [e["c_name"] for e in about["inputs"]]
        lines += [f"    void *in_{f} = block({size['inputs'][f]}, from);" for f in order]
        lines += [f"    in.{f} = in_{f};" for f in order]
        lines += [f"    out.{f} = block({size['outputs'][f]}, NULL);" for f in fields["outputs"]]
        lines.append(f"    status = tvmgen_c{k}_run(&in, &out);\n    tell(status);")
        lines += [f"    if (status == 0)\n        show(out.{e['c_name']}, {size['outputs'][e['c_name']]});"
                  for e in about["outputs"]]
        lines += [f"    free(in_{f});" for f in order] + [f"    free(out.{f});" for f in fields["outputs"]]
        lines.append("}")
    lines.append("int main(int argc, char **argv)\n{\n    FILE *from = fopen(argv[1], \"rb\");\n    (void)argc;")
    with open(os.path.join(folder, "inputs.bin"), "wb") as data:
        for k, case in enumerate(cases):
            for run in case.runs:
                lines.append(f"    run_{k}(from);")
                for array in operands(abouts[k], run):
                    data.write(array.tobytes())
    lines.append("    (void)tvmrt_engine_shutdown(NULL);\n    return fclose(from);\n}\n")
    with open(os.path.join(folder, "driver", "main.c"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def run_packages(folder, cases, abouts):
    """[(status, operator, results as bytes)] of all runs in order; raises when the program does not come to its end."""
    os.makedirs(os.path.join(folder, "driver"), exist_ok=True)
    driver(folder, cases, abouts)
    src = os.path.join(folder, "p0", "src")
    objects = [os.path.join(folder, f"p{k}", o) for k in range(len(cases))
               for o in sorted(os.listdir(os.path.join(folder, f"p{k}"))) if o.endswith(".o")]
    program = os.path.join(folder, "driver", "hostile")
    built = subprocess.run(["cc", *STRICT, f"-I{src}", "-o", program, os.path.join(folder, "driver", "main.c"),
                            f"{src}/tvmrt.c", f"{src}/tvmrt_port_posix.c", "-D_POSIX_C_SOURCE=200809L", *objects, "-lm",
                            "-lpthread"], capture_output=True, text=True)
    if built.returncode != 0:
        raise SystemExit(f"operands: the driver does not build: {built.stderr[:600]}")
    run = subprocess.run([program, os.path.join(folder, "inputs.bin")], capture_output=True, text=True, timeout=600)
    if run.returncode != 0:
        raise SystemExit(f"operands: after {run.stdout.count(chr(10))} lines: {run.stderr[:1500]}")
    lines = iter(run.stdout.splitlines())
    results = []
    for k, case in enumerate(cases):
        for _ in case.runs:
            status, op = map(int, next(lines).split())
            name = abouts[k]["operators"][op]["kernel"] if 0 <= op < len(abouts[k]["operators"]) else None
            results.append((status, name,
                            [bytes.fromhex(next(lines)) for _ in abouts[k]["outputs"]] if status == 0 else []))
    return results


def interpret(lathe, folder, case, about, run, number):
    scratch = os.path.join(folder, "interpreted", f"{case.name}.{number}")
    os.makedirs(scratch, exist_ok=True)
    command = [lathe, "run", os.path.join(folder, case.file), "--interpret", "--output-dir", scratch]
    for entry, array in zip(about["inputs"], operands(about, run)):
        path = os.path.join(scratch, f"{entry['name']}.in")
        array.tofile(path)
        command += ["--input", f"{entry['name']}={path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    told = re.search(r"operator (.*) ended with status (-?\d+)", done.stderr)
    if done.returncode == 0:
        return 0, None, [np.load(os.path.join(scratch, f"{e['name']}.npy")).tobytes() for e in about["outputs"]]
    return (int(told[2]), told[1], []) if told else (None, done.stderr.strip(), [])


def judge(case, about, run, packaged, interpreted):
    """None, or what is wrong."""
    if packaged[0] != run[1] or interpreted[0] != run[1]:
        return f"status {packaged[0]}, interpreter {interpreted[0]} ({interpreted[1]}); {run[1]} is expected"
    if run[1] != 0 and (not packaged[1] or not interpreted[1].startswith(packaged[1])
                        or case.node not in interpreted[1]):
        return f"operator {packaged[1]}, interpreter {interpreted[1]}"
    for entry, data, other in zip(about["outputs"], packaged[2], interpreted[2]):
        ours, theirs = (np.frombuffer(d, TYPES[entry["dtype"]]) for d in (data, other))
        if not (np.allclose(ours, theirs, 1e-5, 1e-6) if ours.dtype.kind == "f" else data == other):
            return "the package and the interpreter give different numbers"
    for entry, data in zip(about["outputs"], packaged[2]):
        want = run[2].get(entry["name"]) if len(run) > 2 else None
        if want is not None and not np.allclose(np.frombuffer(data, TYPES[entry["dtype"]]), want, 1e-5):
            return f"result {entry['name']} is {np.frombuffer(data, TYPES[entry['dtype']]).tolist()}"
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    options.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    options.add_argument("--filter", default="*")
    options.add_argument("--keep", metavar="DIR")
    args = options.parse_args()
    cases = [c for c in CASES if fnmatch.fnmatch(c.name, args.filter)]
    if not cases:
        raise SystemExit(f"operands: no case is called {args.filter}")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.jobs) as pool:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        lathe = os.path.abspath(args.lathe)
        broken = [e for e in pool.map(lambda k: compile_case(lathe, folder, k, cases[k]), range(len(cases))) if e]
        if broken:
            raise SystemExit("operands: " + "\n".join(broken))
        abouts = [json.load(open(os.path.join(folder, f"p{k}", "report.json"), encoding="utf-8"))
                  for k in range(len(cases))]
        packaged = iter(run_packages(folder, cases, abouts))
        work = [(c, a, r, i) for c, a in zip(cases, abouts) for i, r in enumerate(c.runs)]
        interpreted = list(pool.map(lambda w: interpret(lathe, folder, *w), work))
        missing = list(without_rows())
        for name in missing:
            print(f"FAILED: {name} reads places, sizes, axes or lengths, and has no row")
        failed = len(missing)
        for (case, about, run, _), theirs in zip(work, interpreted):
            why = judge(case, about, run, next(packaged), theirs)
            if why:
                failed += 1
                print(f"FAILED {case.name} {str(run[0])[:100]}: {why}")
    print(f"operands: {len(work) - failed + len(missing)} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
