#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the work of a compile grows with the model. Steps are counted, not seconds, so a busy machine changes nothing.

    growth.py [--lathe FILE] [--filter GLOB] [--size N] [-v]

A model of N things and one of 2 N are compiled by a `lathe` that was configured with -DLATHE_STEPS=ON and counts how
often each basic block runs (test/steps/count.c). No block may run more than 3 times as often for the larger model: a
loop over N inside of a loop over N shows at once, where the sum of all steps would hide it. Tables of addresses collide
by chance, which differs from run to run; growth does not: what runs too often must do so in each of six compiles (one
in five has a table with bad luck). The stages are import, passes, kernels, planning and C."""
import argparse
import fnmatch
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import make_tflite_fixtures
import tflite_models

RATIO = 3.0
SLACK = 40  # runs for each thing that need no explanation: tables grow by doubling, hashes collide
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape=(4,)):
    return helper.make_tensor_value_info(name, F32, list(shape))


def number(name, v, shape=(4,)):
    """A constant unlike all others."""
    return numpy_helper.from_array(np.arange(v, v + np.prod(shape), dtype=np.float32).reshape(shape), name)


def model(nodes, inputs, outputs, constants=(), functions=(), opset=17):
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("local", 1)] if functions else [])
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


node = helper.make_node


def chain(n):
    """Element-wise nodes one behind the other: the fuser cuts them into groups."""
    nodes = [node("Sin" if i % 2 else "Cos", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def kernels(n):
    """A chain in which no two nodes fuse."""
    nodes = [node("Softmax" if i % 2 else "Relu", [f"v{i}"], [f"v{i + 1}"], **({"axis": 0} if i % 2 else {}))
             for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def fan_out(n):
    """One value with n readers, each with a result of its own."""
    nodes = [node("Exp", ["x"], ["e"])] + [node("Add", ["e", f"k{i}"], [f"y{i}"]) for i in range(n)]
    return model(nodes, [value("x")], [value(f"y{i}") for i in range(n)], [number(f"k{i}", i) for i in range(n)])


def fan_out_in(n):
    """One value with n readers, whose results are joined again."""
    nodes = [node("Exp", ["x"], ["e"])] + [node("Add", ["e", f"k{i}"], [f"y{i}"]) for i in range(n)]
    nodes.append(node("Concat", [f"y{i}" for i in range(n)], ["y"], axis=0))
    return model(nodes, [value("x")], [value("y", [4 * n])], [number(f"k{i}", i) for i in range(n)])


def split(n):
    """One node with n results."""
    nodes = [node("Split", ["x"], [f"y{i}" for i in range(n)], axis=0)]
    return model(nodes, [value("x", [n])], [value(f"y{i}", [1]) for i in range(n)], opset=11)


def split_sum(n):
    nodes = [node("Split", ["x"], [f"y{i}" for i in range(n)], axis=0), node("Sum", [f"y{i}" for i in range(n)], ["y"])]
    return model(nodes, [value("x", [n])], [value("y", [1])], opset=11)


def constants(n):
    nodes = [node("Add", [f"v{i}", f"k{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")], [number(f"k{i}", i) for i in range(n)])


def constant_nodes(n):
    nodes = [node("Constant", [], [f"k{i}"], value=number("", i)) for i in range(n)]
    nodes += [node("Add", [f"v{i}", f"k{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def unused_constants(n):
    return model([node("Relu", ["x"], ["y"])], [value("x")], [value("y")], [number(f"k{i}", i) for i in range(n)])


def results_of_constants(n):
    nodes = [node("Relu", ["x"], ["y"])]
    return model(nodes, [value("x")], [value("y")] + [value(f"k{i}") for i in range(n)],
                 [number(f"k{i}", i) for i in range(n)])


def inputs(n):
    return model([node("Sum", [f"x{i}" for i in range(n)], ["y"])], [value(f"x{i}") for i in range(n)], [value("y")])


def passed_through(n):
    return model([node("Relu", ["x0"], ["y"])], [value(f"x{i}") for i in range(n)],
                 [value("y")] + [value(f"x{i}") for i in range(n)])


def concat(n):
    nodes = [node("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0)]
    return model(nodes, [value(f"x{i}", [1]) for i in range(n)], [value("y", [n])])


def dead(n):
    """Nodes that nobody needs."""
    nodes = [node("Add", ["x", f"k{i}"], [f"d{i}"]) for i in range(n)] + [node("Relu", ["x"], ["y"])]
    return model(nodes, [value("x")], [value("y")], [number(f"k{i}", i) for i in range(n)])


def equal(n):
    """Nodes that are all the same."""
    nodes = [node("Exp", ["x"], [f"e{i}"]) for i in range(n)]
    nodes.append(node("Sum", [f"e{i}" for i in range(n)], ["y"]))
    return model(nodes, [value("x")], [value("y")])


def views(n):
    """Reshapes there and back, with kernels between."""
    shapes = [helper.make_tensor("s0", I64, [2], [2, 2]), helper.make_tensor("s1", I64, [1], [4])]
    nodes = []
    for i in range(n):
        nodes.append(node("Reshape", [f"v{i}", f"s{i % 2}"], [f"r{i}"]))
        nodes.append(node("Softmax", [f"r{i}"], [f"v{i + 1}"], axis=-1))
    return model(nodes, [value("v0")], [value(f"v{n}", [2, 2] if n % 2 else [4])], shapes)


def reshapes(n):
    """A run of reshapes."""
    shapes = [helper.make_tensor("s0", I64, [2], [2, 2]), helper.make_tensor("s1", I64, [1], [4])]
    nodes = [node("Reshape", [f"v{i}", f"s{i % 2}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}", [2, 2] if n % 2 else [4])], shapes)


def backwards(n):
    """Nodes in the wrong order."""
    m = chain(n)
    order = list(m.graph.node)[::-1]
    del m.graph.node[:]
    m.graph.node.extend(order)
    return m


def shapes(n):
    """Integers computed from shapes, at import."""
    nodes, last = [node("Shape", ["x"], ["i0"])], "i0"
    for i in range(n):
        nodes.append(node("Add", [last, "one"], [f"i{i + 1}"]))
        last = f"i{i + 1}"
    nodes += [node("Cast", [last], ["f"], to=F32), node("Mul", ["x", "f"], ["y"])]
    return model(nodes, [value("x")], [value("y")], [helper.make_tensor("one", I64, [1], [1])])


def folds(n):
    """Weights that a model computes."""
    nodes = [node("Exp", [f"k{i}"], [f"e{i}"]) for i in range(n)]
    nodes += [node("Mul", [f"v{i}", f"e{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")], [number(f"k{i}", i % 7) for i in range(n)])


def residual(n):
    """A long-lived value at each step: y = f(y) + y."""
    nodes = []
    for i in range(n):
        nodes += [node("Softmax", [f"v{i}"], [f"s{i}"], axis=0), node("Add", [f"s{i}", f"v{i}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def long_lives(n):
    """All values live to the end."""
    nodes = [node("Softmax", [f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(n)]
    nodes += [node("Add", [f"a{i + 1}" if i < n - 1 else f"v{n}", f"v{i}"], [f"a{i}"]) for i in range(n - 1, -1, -1)]
    return model(nodes, [value("v0")], [value("a0")])


def calls(n):
    """A function that is called n times."""
    body = [node("Sin", ["a"], ["t"]), node("Add", ["t", "a"], ["b"])]
    f = helper.make_function("local", "f", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [node("f", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")], functions=[f])


def functions(n):
    """n functions, each called once."""
    fs = [helper.make_function("local", f"f{i}", ["a"], ["b"], [node("Sin", ["a"], ["b"])],
                               [helper.make_opsetid("", 17)]) for i in range(n)]
    nodes = [node(f"f{i}", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")], functions=fs)


def branches(n):
    """An If that is decided, n times."""
    nodes = []
    for i in range(n):
        bodies = [helper.make_graph([node(op, [f"v{i}"], ["r"])], op, [], [value("r")]) for op in ("Sin", "Cos")]
        nodes.append(node("If", ["c"], [f"v{i + 1}"], then_branch=bodies[0], else_branch=bodies[1]))
    return model(nodes, [value("v0")], [value(f"v{n}")], [helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def missing(n):
    """Operators that are not there, all different."""
    nodes = [node(f"Frob{i}", ["x"], [f"y{i}"]) for i in range(n)]
    return model(nodes, [value("x")], [value(f"y{i}") for i in range(n)])


def convolutions(n):
    """Layers with weights of their own, in one shape."""
    nodes = [node("Conv", [f"v{i}", f"w{i}"], [f"v{i + 1}"], pads=[1, 1, 1, 1]) for i in range(n)]
    return model(nodes, [value("v0", [1, 4, 5, 5])], [value(f"v{n}", [1, 4, 5, 5])],
                 [number(f"w{i}", i, (4, 4, 3, 3)) for i in range(n)])


def products(n):
    nodes = [node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0", [2, 8])], [value(f"v{n}", [2, 8])], [number(f"w{i}", i, (8, 8)) for i in range(n)])


def sort(n):
    """A row that is sorted, by TopK of all of it and by Unique, in the interpreter."""
    nodes = [node("TopK", ["x", "k"], ["y", "i"], axis=0), node("Unique", ["x"], ["u", "f", "r", "c"])]
    return model(nodes, [value("x", [n])], [value("y", [n]), value("u", ["m"])],
                 [helper.make_tensor("k", I64, [1], [n])])


ACME = """
pattern acme.exp(%x) { %y = exp(%x) return %y }
pattern acme.add(%x, %y) { %z = add(%x, %y) return %z }
pattern acme.mul_add(%x, %a, %b) { %m = multiply(%x, %a) %s = add(%m, %b) return %m, %s }
operator acme.tanh(%x) { %y = tanh(%x) return %y }
pattern acme.join(%x) { %t = tan(%x) %y = concatenate(%t, *) return %y }
pattern acme.sum(%x) { %t, %u = split(%x) %y = add(%t, %u) return %y }
pattern brand.sin(%x) { %y = optional sin(%x) %z = cos(%y) return %z }
"""


def parts_chain(n):
    """Two targets and the CPU in turns."""
    ops = ["Exp", "Tanh", "Sin", "Cos", "Log", "Exp"]
    nodes = [node(ops[i % len(ops)], [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def parts_one(n):
    """One region that takes all."""
    nodes = [node("Exp", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def parts_back(n):
    """Ways through the CPU and back."""
    nodes = []
    for i in range(n):
        nodes += [node("Exp", [f"v{i}"], [f"e{i}"]), node("Log", [f"e{i}"], [f"l{i}"]),
                  node("Add", [f"e{i}", f"l{i}"], [f"v{i + 1}"])]
    return model(nodes, [value("v0")], [value(f"v{n}")])


def parts_wide(n):
    """Regions that all read one value, joined by another target."""
    nodes = []
    for i in range(n):
        nodes += [node("Exp", ["x"], [f"e{i}"]), node("Mul", [f"e{i}", f"k{i}"], [f"m{i}"]),
                  node("Add", [f"m{i}", f"k{i}"], [f"s{i}"]), node("Log", [f"m{i}"], [f"l{i}"])]
    nodes.append(node("Concat", [f"s{i}" for i in range(n)] + [f"l{i}" for i in range(n)], ["y"], axis=0))
    return model(nodes, [value("x")], [value("y", [8 * n])], [number(f"k{i}", i) for i in range(n)])


def parts_operands(n):
    """A match of one node with n operands, and one of a node with n results."""
    nodes = [node("Tan", ["x0"], ["t"]), node("Concat", ["t"] + [f"x{i}" for i in range(1, n)], ["c"], axis=0),
             node("Split", ["c"], [f"s{i}" for i in range(n)], axis=0), node("Add", ["s0", "s1"], ["y"])]
    return model(nodes, [value(f"x{i}", [1]) for i in range(n)], [value("y", [1])], opset=11)


def norms(n):
    """Batch norms behind convolutions, for `lathe quantize`."""
    nodes = []
    for i in range(n):
        nodes += [node("Conv", [f"v{i}", "w"], [f"c{i}"]),
                  node("BatchNormalization", [f"c{i}", "s", "s", "s", "s"], [f"v{i + 1}"])]
    return model(nodes, [value("v0", [1, 1, 1, 1])], [value(f"v{n}", [1, 1, 1, 1])],
                 [number("w", 1, (1, 1, 1, 1)), number("s", 1, (1,))])


def quantised_ends(n):
    """Inputs and results that are handed over as bytes."""
    nodes = []
    for i in range(n):
        nodes += [node("QuantizeLinear", [f"x{i}", "s", "z"], [f"q{i}"]),
                  node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]), node("Relu", [f"d{i}"], [f"r{i}"]),
                  node("QuantizeLinear", [f"r{i}", "s", "z"], [f"p{i}"]),
                  node("DequantizeLinear", [f"p{i}", "s", "z"], [f"y{i}"])]
    return model(nodes, [value(f"x{i}") for i in range(n)], [value(f"y{i}") for i in range(n)],
                 [number("s", 1, ()), helper.make_tensor("z", TensorProto.INT8, [], [0])])


def vta_layer(i):
    return [f"  %c{i} = qnn.conv2d(%v{i}, %w)",
            f'  %r{i} = qnn.requantize(%c{i}, %s, %one) {{out_dtype = i8, rounding = "half_up"}}',
            f'  %v{i + 1} = qnn.add(%r{i}, %one, %v{i}, %one, %one) {{rounding = "half_up"}}']


def vta_model(layers, n):
    head = ["func @main(%v0: i8[1, 16, 2, 2]) {", "  %s = constant f32[] dense [0.0625]",
            "  %one = constant f32[] dense [1.0]", "  %w = constant i8[16, 16, 1, 1] splat 1"]
    return "\n".join(head + layers + [f"  return %v{n}", "}", ""])


def vta_sums(n):
    """A region of convolutions with a sum behind each."""
    return vta_model([line for i in range(n) for line in vta_layer(i)], n)


def vta_regions(n):
    """Regions on a device with a memory of its own, the host between them."""
    lines = []
    for i in range(n):
        lines += vta_layer(2 * i)
        lines += [f"  %f{i} = qnn.dequantize(%v{2 * i + 1}, %one)", f"  %e{i} = sin(%f{i})",
                  f"  %v{2 * i + 2} = qnn.quantize(%e{i}, %one, %z)"]
    return vta_model(["  %z = constant i8[] splat 0"] + lines, 2 * n)


def tracker(n):
    """Not a compile: places under n keys, n requests for others, and summaries, on one connection. Keys that nobody has
    any more are gone."""
    def packed(message):
        text = json.dumps(message).encode()
        return struct.pack("<i", len(text)) + text

    def answer(connection):
        def read(size):
            data = b""
            while len(data) < size:
                part = connection.recv(size - len(data))
                if not part:
                    sys.exit("tracker: it closed the connection")
                data += part
            return data
        return json.loads(read(*struct.unpack("<i", read(4))))

    def connect(port):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(struct.pack("<i", 0x2F271))
        connection.recv(4)
        return connection

    def talk(port):
        with connect(port) as c:
            for i in range(n):
                place = packed([3, f"place{i}", [1, f"match{i}"], None])
                c.sendall(place + packed([4, f"request{i % 7}", "", i * 31 % n]))
                answer(c)
            for _ in range(20):
                c.sendall(packed([6]))
                answer(c)
        for _ in range(1000):
            with connect(port) as c:
                c.sendall(packed([6]))
                if answer(c)[1]["queue_info"] == {}:
                    return
            time.sleep(0.01)
        sys.exit("tracker: keys stay behind the connection that they came from")

    return talk


def tflite_shared(n):
    """One tensor with a long name and one operator with many operands, each of them reached many times."""
    net = tflite_models.Net()
    x = net.input("float32", [2])
    net.graph.tensors[x].name = b"x" * (40 * n)
    net.operator("ADD_N", 99, [x] * n, [net.tensor("float32", [2])])
    net.graph.tensors = [make_tflite_fixtures.Same(net.graph.tensors[x])] * n + net.graph.tensors[1:]
    net.graph.operators = [make_tflite_fixtures.Same(net.graph.operators[0])] * n
    return net.bytes()


def tflite_missing(n):
    """Operators of versions that are not there, all different."""
    net = tflite_models.Net()
    x = net.input("float32", [2])
    for i in range(n):
        net.operator("RELU", 100 + i, [x], [net.tensor("float32", [2])])
    return net.bytes()


def tflite_results(n):
    net = tflite_models.Net()
    x = net.input("float32", [2])
    for _ in range(n):
        net.operator("RELU", 1, [x], [net.tensor("float32", [2])])
    return net.bytes()


# Partitions, without code for what targets get.
PARTS = {parts_chain: 200, parts_one: 200, parts_back: 100, parts_wide: 50, parts_operands: 200}
# The number of things for which a compile takes a moment under the counter.
CASES = {chain: 400, kernels: 200, fan_out: 100, fan_out_in: 100, split: 200, split_sum: 200, constants: 400,
         constant_nodes: 400, unused_constants: 1000, results_of_constants: 100, inputs: 200, passed_through: 100,
         concat: 100, dead: 400, equal: 400, views: 100, reshapes: 400, backwards: 400, shapes: 100, folds: 100,
         residual: 100, long_lives: 100, calls: 200, functions: 200, branches: 200, missing: 400, convolutions: 20,
         products: 40, norms: 40, quantised_ends: 100, vta_sums: 12, vta_regions: 12, sort: 2000, tracker: 1000,
         **PARTS}
if tflite_models.runtime:  # models are written with packages that not every Python has
    CASES.update({tflite_shared: 100, tflite_missing: 400, tflite_results: 200})
REFUSED = {missing, tflite_shared, tflite_missing}
ON_VTA = ["--offload", "vta", "--emit", "module"]
OPTIONS = {quantised_ends: ["--quantized-io"], vta_sums: ON_VTA, vta_regions: ON_VTA}


# The planner tries layerings, and weighs values that live at the same time, until a budget is spent (layer.c, place.c):
# in these small models it never is, so the planner's own share grows faster.
BUDGET = {split_sum, long_lives, fan_out_in, residual, views}
PLANNER = ("live.c", "layer.c", "place.c", "facts.c", "arena.c")


def read_steps(path):
    with open(path) as f:
        return {place: int(c) for c, place in (line.split() for line in f)}


def count_tracker(lathe, talk, steps):
    with subprocess.Popen([lathe, "rpc-tracker", "--port", "0"], env={**os.environ, "LATHE_STEPS": steps},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        talk(int(server.stdout.readline().rsplit(":", 1)[1]))
        server.terminate()
    return read_steps(steps)


def count(lathe, make, n, folder):
    """Steps by basic block. A model that is refused counts as well: what matters is that it ends."""
    m, steps = make(n), os.path.join(folder, "steps")
    if make is tracker:
        return count_tracker(lathe, m, steps)
    path = os.path.join(folder, {str: "model.graph", bytes: "model.tflite"}.get(type(m), "model.onnx"))
    if isinstance(m, (str, bytes)):
        with open(path, "wb") as f:
            f.write(m if isinstance(m, bytes) else m.encode())
    else:
        onnx.save(m, path)
    more, verb = OPTIONS.get(make, []), "compile"
    if make is norms:
        np.save(os.path.join(folder, "x.npy"), np.ones((1, 1, 1, 1), np.float32))
        more, verb = ["--data", os.path.join(folder, "x.npy")], "quantize"
    if make in PARTS:
        with open(os.path.join(folder, "acme.pat"), "w") as f:
            f.write(ACME)
        more = ["--offload", "acme,brand", "--patterns", f.name, "--emit", "graph", "-O1"]
    more = ["-o", os.path.join(folder, f"{make.__name__}-{n}"), *more]
    if make is sort:
        verb, more = "run", ["--interpret"]
    run = subprocess.run([lathe, verb, path, *more],
                         env={**os.environ, "LATHE_STEPS": steps, "CFLAGS": "-O0"}, capture_output=True, text=True)
    if (run.returncode != 0) != (make in REFUSED):
        sys.exit(f"{make.__name__} of {n}: {run.stderr[-2000:]}")
    return read_steps(steps)


def place_of(lathe, offset):
    run = subprocess.run(["addr2line", "-f", "-s", "-e", lathe, offset], capture_output=True, text=True)
    return " ".join(run.stdout.split())


def grown(small, large, size):
    return {b for b, c in large.items() if c > RATIO * small.get(b, 0) + SLACK * size}


def check(lathe, make, size, folder, verbose):
    small, large = count(lathe, make, size, folder), count(lathe, make, 2 * size, folder)
    blocks = grown(small, large, size)
    for _ in range(5):
        if blocks:
            blocks &= grown(count(lathe, make, size, folder), count(lathe, make, 2 * size, folder), size)
    bad = [(b, small.get(b, 0), large[b]) for b in blocks]
    bad = [(b, few, many, place_of(lathe, b)) for b, few, many in bad]
    if make in BUDGET:
        bad = [x for x in bad if not x[3].split()[-1].startswith(PLANNER)]
    bad.sort(key=lambda x: (-x[2], x[3]))
    each = (sum(large.values()) - sum(small.values())) / size
    if verbose or bad:
        print(f"{'FAILED' if bad else 'ok'} {make.__name__}: {each:.0f} steps for each of {size} more")
    for _, few, many, place in bad[:12]:
        print(f"    {few} runs became {many} at {place}")
    return not bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", default="build/clang/lathe")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--size", type=int)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    cases = [c for c in CASES if fnmatch.fnmatch(c.__name__, args.filter)]
    good = 0
    for make in cases:
        with tempfile.TemporaryDirectory() as folder:
            good += check(args.lathe, make, args.size or CASES[make], folder, args.v)
    print(f"{good} passed, {len(cases) - good} failed")
    return 0 if good == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
