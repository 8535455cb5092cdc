#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs over sequences and optionals against onnxruntime: `lathe verify --data` by the interpreter.

    sequences.py [--lathe FILE] [--seed N] [--count N] [--packages] [--keep DIR] [-v]

Elements are vectors of several lengths. A sequence is made, changed at positions that are constants or come in, chosen
by a branch, appended to in a loop, mapped, split and joined. What onnxruntime refuses for its data is no case; what
Lathe refuses must be something that the documentation says. --packages builds C instead, with sanitizers of the C
compiler where CFLAGS names them."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
REFUSED = ("no upper bound", "nothing to concatenate", "an empty sequence has", "position ", "rows of a loop",
           "there is nothing", "the parts have")


def sequence(name):
    return helper.make_value_info(name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, None)))


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


class Graph:
    """A graph in the making, with the data of its inputs; each sequence with how many elements it has."""

    def __init__(self, seed):
        self.r, self.n = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.feed, self.outputs = [], [], [], {}, []
        self.sequences, self.made = {}, 0

    def name(self, stem):
        self.made += 1
        return f"{stem}{self.made}"

    def vector(self):
        return self.n.standard_normal(self.r.randint(0, 4)).astype(np.float32)

    def operand(self, value, stem="k"):
        """A constant, or an input: what only a run knows."""
        name, value = self.name(stem), np.asarray(value)
        if self.r.random() < 0.5:
            self.weights.append(numpy_helper.from_array(value, name))
        else:
            self.inputs.append(tensor(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
            self.feed[name] = value
        return name

    def data(self):
        """A vector that comes in."""
        name, value = self.name("x"), self.vector()
        self.inputs.append(tensor(name, F32, value.shape))
        self.feed[name] = value
        return name

    def node(self, op, inputs, stem="v", **attributes):
        out = self.name(stem)
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def given(self):
        count, name = self.r.randint(0, 3), self.name("s")
        self.inputs.append(sequence(name))
        self.feed[name] = [self.vector() for _ in range(count)]
        self.sequences[name] = count

    def pick(self):
        return self.r.choice(sorted(self.sequences))

    def insert(self, s):
        count, operands = self.sequences[s], [s, self.data()]
        if self.r.random() < 0.7:
            operands.append(self.operand(np.int64(self.r.randint(-count, count))))
        return self.node("SequenceInsert", operands, "s"), count + 1

    def erase(self, s):
        count, operands = self.sequences[s], [s]
        if count == 0:
            return self.insert(s)
        if self.r.random() < 0.7:
            operands.append(self.operand(np.int64(self.r.randint(-count, count - 1))))
        return self.node("SequenceErase", operands, "s"), count - 1

    def branch(self, s):
        """Two changes of the same sequence, one of which a run or a constant chooses."""
        chosen, bodies, counts = self.r.random() < 0.5, [], []
        for _ in range(2):
            outer, self.nodes = self.nodes, []
            made, count = self.r.choice((self.insert, self.erase, self.same))(s)
            bodies.append(helper.make_graph(self.nodes, "branch", [], [sequence(made)]))
            counts.append(count)
            self.nodes = outer
        out = self.node("If", [self.operand(np.bool_(chosen))], "s", then_branch=bodies[0], else_branch=bodies[1])
        return out, counts[0] if chosen else counts[1]

    def same(self, s):
        return self.node("Identity", [s], "s"), self.sequences[s]

    def loop(self, s):
        """Rounds that append parts of a vector; their number is a constant, for a package needs a bound."""
        rounds, i, went, before = self.r.randint(0, 3), *(self.name(n) for n in ("i", "go", "s"))
        outer, self.nodes = self.nodes, []
        x, zero = self.data(), self.name("k")
        self.weights.append(numpy_helper.from_array(np.int64([0]), zero))
        length = self.node("Unsqueeze", [i, zero])
        part = self.node("Slice", [x, zero, length])
        going, out = self.node("Identity", [went]), self.node("SequenceInsert", [before, part], "s")
        body = helper.make_graph(self.nodes, "body", [tensor(i, I64, []), tensor(went, BOOL, []), sequence(before)],
                                 [tensor(going, BOOL, []), sequence(out)])
        self.nodes = outer
        trips = self.name("k")
        self.weights.append(numpy_helper.from_array(np.int64(rounds), trips))
        return self.node("Loop", [trips, "", s], "s", body=body), self.sequences[s] + rounds

    def reading_loop(self, s):
        """Rounds that read what they carry: an element, the length, all joined. Data decides when they end, or a
        constant, which copies the body."""
        count, most = self.sequences[s], self.r.randint(0, 4)
        change = self.r.choice(("append", "front", "move", "erase"))
        flags = [self.r.random() < 0.8 for _ in range(most)]
        rounds = flags.index(False) + 1 if False in flags else most
        if count == 0 or (change == "erase" and count <= rounds):
            change = "cond"
        i, went, before, goes = (self.name(n) for n in ("i", "go", "s", "k"))
        outer, self.nodes = self.nodes, []
        at, x = self.operand(np.int64(self.r.choice((0, -1)))), self.data()
        going = self.node("Gather", [self.operand(np.array(flags + [True])), i])
        length = self.node("Cast", [self.node("SequenceLength", [before])], to=F32)
        if change == "cond":
            none = self.name("k")  # a constant: of an empty sequence nothing else tells what an element is like
            self.weights.append(numpy_helper.from_array(np.float32(0), none))
            some = self.node("Greater", [length, none])
            branches = [helper.make_graph([helper.make_node("SequenceAt", [before, at], ["then"])], "then", [],
                                          [tensor("then", F32, [None])]),
                        helper.make_graph([helper.make_node("Identity", [x], ["else"])], "else", [],
                                          [tensor("else", F32, [None])])]
            element = self.node("If", [some], then_branch=branches[0], else_branch=branches[1])
        else:
            element = self.node("SequenceAt", [before, at])
        made, rest = self.node("Add", [element, length]), before
        if change in ("move", "erase"):
            rest = self.node("SequenceErase", [before, at], "s")
        where = [self.operand(np.int64(0))] if change == "front" else []
        out = rest if change == "erase" else self.node("SequenceInsert", [rest, made, *where], "s")
        row = self.node("Add", [length, self.node("ReduceSum", [made], keepdims=0)])
        body = helper.make_graph(self.nodes, "body", [tensor(i, I64, []), tensor(went, BOOL, []), sequence(before)],
                                 [tensor(going, BOOL, []), sequence(out), tensor(row, F32, [])])
        self.nodes = outer
        self.weights.append(numpy_helper.from_array(np.int64(most), goes))
        made = self.node("Loop", [goes, "", s], "s", body=body)
        self.nodes[-1].output.append(self.name("rows"))
        if rounds:
            self.outputs.append(tensor(self.nodes[-1].output[1], F32, [None]))
        return made, count + rounds * {"erase": -1, "move": 0}.get(change, 1)

    def split(self, _):
        value = self.n.standard_normal((self.r.randint(1, 5), 1)).astype(np.float32).reshape(-1)
        name, size = self.name("x"), len(value)
        self.inputs.append(tensor(name, F32, value.shape))
        self.feed[name] = value
        if self.r.random() < 0.5:
            each = self.r.randint(1, 3)
            return self.node("SplitToSequence", [name, self.operand(np.int64(each))], "s"), -(-size // each)
        first = self.r.randint(0, size)
        return self.node("SplitToSequence", [name, self.operand(np.int64([first, size - first]))], "s"), 2

    def mapped(self, s):
        """Each element with one of outside, and where there are two sequences as long, with that of the other one."""
        same = [o for o in sorted(self.sequences) if self.sequences[o] == self.sequences[s]]
        other, e, f, factor = self.r.choice(same + [""]), self.name("e"), self.name("e"), self.operand(np.float32([2]))
        outer, self.nodes = self.nodes, []
        y = self.node("Mul", [e, factor])
        if other:
            y = self.node("Concat", [y, f], axis=0)
        body = helper.make_graph(self.nodes, "body", [tensor(name, F32, [None]) for name in (e, f)[:1 + bool(other)]],
                                 [tensor(y, F32, [None])])
        self.nodes = outer
        return self.node("SequenceMap", [s, other][:1 + bool(other)], "s", body=body), self.sequences[s]

    def step(self):
        made, count = self.r.choice((self.insert, self.insert, self.erase, self.branch, self.loop, self.reading_loop,
                                     self.split, self.same, self.mapped))(self.pick())
        self.sequences[made] = count

    def finish(self):
        last = list(self.sequences)[-1]
        self.outputs.append(sequence(last))
        self.outputs.append(tensor(self.node("SequenceLength", [last]), I64, []))
        count = self.sequences[last]
        if count > 0:
            at = self.operand(np.int64(self.r.randint(-count, count - 1)))
            self.outputs.append(tensor(self.node("SequenceAt", [last, at]), F32, [None]))
            self.outputs.append(tensor(self.node("ConcatFromSequence", [last], axis=0), F32, [None]))
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        return made


def build(seed):
    g = Graph(seed)
    for _ in range(g.r.randint(1, 2)):
        g.given()
    for _ in range(g.r.randint(1, 5)):
        g.step()
    return g, g.finish()


def write(folder, graph, results):
    """model.onnx and a data set; the outputs in the order of the model."""
    def save(stem, values):
        for i, value in enumerate(values):
            proto = numpy_helper.from_list(value) if isinstance(value, list) else numpy_helper.from_array(value)
            with open(os.path.join(folder, f"{stem}_{i}.pb"), "wb") as f:
                f.write(proto.SerializeToString())
    save("input", (graph.feed[i.name] for i in graph.inputs))
    save("output", ([np.asarray(v) for v in r] if isinstance(r, list) else np.asarray(r) for r in results))


def run(seed, options, work):
    """"passed", "skipped", "refused", or why it failed."""
    graph, model = build(seed)
    folder = os.path.join(work, f"seed{seed}")
    os.makedirs(folder)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    try:
        session = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        results = session.run(None, graph.feed)
    except Exception as error:  # onnxruntime has no common class of its own
        return f"skipped {str(error)[:200]}"
    write(folder, graph, results)
    command = [options.lathe, "verify", path, "--data", folder, *([] if options.packages else ["--interpret"])]
    told = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if told.returncode == 0:
        return "passed"
    if "[unsupported]" in told.stderr and any(r in told.stderr for r in REFUSED):
        return "refused"
    return told.stdout + told.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--keep", metavar="DIR")
    parser.add_argument("-v", dest="verbose", action="store_true")
    options = parser.parse_args()
    counts = {"passed": 0, "skipped": 0, "refused": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(options.seed, options.seed + options.count):
            outcome = run(seed, options, options.keep or temporary)
            kind = outcome.split(" ")[0] if outcome.split(" ")[0] in counts else "failed"
            counts[kind] += 1
            if kind == "failed" or (options.verbose and kind != "passed"):
                print(f"seed {seed}: {outcome}")
    few = counts["passed"] < options.count * 3 // 4
    if few:
        print("FAILED too few cases are cases")
    print(f"sequences: {counts['passed']} passed, {counts['failed'] + few} failed, "
          f"{counts['skipped'] + counts['refused']} skipped")
    return 1 if counts["failed"] or few else 0


if __name__ == "__main__":
    sys.exit(main())
