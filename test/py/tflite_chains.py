#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of TensorFlow Lite's operators at random, one behind another: every element equal to TensorFlow Lite Micro's
or LiteRT's.

    tflite_chains.py [--lathe FILE] [--seed N] [--count N] [--side N] [--runs N] [--oracle NAME]

COUNT models of SIDE networks of 3 to 12 operators that stand side by side, each on RUNS random inputs. An operator is
one of tflite_kinds.py; what it reads is a result before it, cut or filled to the shape that it wants, and quantised to
its scale. All numbers are quantised: errors of floats would grow from one operator to the next. Without the packages of
tflite_models.py the exit status is 77."""
import argparse
import os
import sys

import numpy as np

import tflite_models as T

if T.runtime is not None:
    from tflite_net import TYPES, Chance, Net, options

# Kinds whose first operand is not any data of their type, and those with graphs in graphs. A quotient of any two values
# may be one that C does not define, for which each processor has a result of its own.
LEFT_OUT = {"densify", "div", "condition", "loop", "detection", "lstm_cell_of_bytes", "select_rows", "dequantize",
            "cast", "fill", "log_table", "sqrt_table", "rsqrt_table", "batch_matmul", "transpose_conv"}
MOST = 12
# QUANTIZE shifts a number of 16 bits to the left, by as much as its scale is above that of the result. What leaves 32
# bits there, C does not define.
STEEPEST = 2**15


class Chain(Net):
    """A net whose kinds may read what stands before them."""

    def __init__(self):
        super().__init__()
        self.before, self.chance, self.first = [], None, False

    def begin(self, chance, links):
        """links: whether the next operand comes from a result."""
        self.chance, self.first = chance, links

    def kind_of(self, t):
        return next(name for name, code in TYPES.items() if code == self.graph.tensors[t].type)

    def step(self, name, version, x, shape, kind, scale, zero, more=(), opts=None):
        y = self.tensor(kind, shape, scale, zero)
        self.operator(name, version, [x, *more], [y], opts)
        self.graph.outputs.pop()
        return y

    def turned(self, x, kind, shape, scale, zero):
        """x as a tensor of that shape and scale."""
        t = self.graph.tensors[x]
        s, z = t.quantization.scale[0], t.quantization.zeroPoint[0]
        have, want = int(np.prod(t.shape)), int(np.prod(shape))

        def ints(*values):
            return self.tensor("int32", [len(values)], data=values)
        x = self.step("RESHAPE", 1, x, [have], kind, s, z, [ints(have)], options("Reshape", newShape=[have]))
        if want < have:
            x = self.step("STRIDED_SLICE", 2, x, [want], kind, s, z, [ints(0), ints(want), ints(1)], options(
                "StridedSlice", beginMask=0, endMask=0, shrinkAxisMask=0, ellipsisMask=0, newAxisMask=0))
        while have < want:
            more = min(have, want - have)
            part = x if more == have else self.step(
                "STRIDED_SLICE", 2, x, [more], kind, s, z, [ints(0), ints(more), ints(1)], options(
                    "StridedSlice", beginMask=0, endMask=0, shrinkAxisMask=0, ellipsisMask=0, newAxisMask=0))
            x = self.step("CONCATENATION", 2, x, [have + more], kind, s, z, [part],
                          options("Concatenation", axis=0, fusedActivationFunction=0))
            have += more
        x = self.step("RESHAPE", 1, x, list(shape), kind, s, z, [ints(*shape)],
                      options("Reshape", newShape=list(shape)))
        return self.step("QUANTIZE", 1, x, list(shape), kind, scale, zero)

    def input(self, kind, shape, scale=None, zero=0, span=4.0):
        links, self.first = self.first, False
        fits = [t for t in self.before if self.kind_of(t) == kind and self.graph.tensors[t].quantization
                and 0 < np.prod(self.graph.tensors[t].shape) <= 4096
                and (scale is None or self.graph.tensors[t].quantization.scale[0] < STEEPEST * scale)]
        if not (links and fits and scale is not None and span == 4.0 and shape):
            return super().input(kind, shape, scale, zero, span)
        return self.turned(self.chance.pick(*fits), kind, shape, np.float32(scale), zero)


def kinds_of(oracle):
    column = oracle is T.LiteRT
    table = {}
    for name in T.KINDS:
        types = [q for q in T.HAVE.get(name, T.ALL)[column].split() if q != "float32"]
        if types and name not in LEFT_OUT and not name.startswith("signal"):
            table[name] = types
    return table


def network(net, rng, oracle, labels, at):
    """One network: kinds of one type, each with what it needs to read the one before."""
    chance, table = Chance(rng, oracle.name), kinds_of(oracle)
    q = chance.pick("int8", "int8", "int8", "int16" if oracle is T.Micro else "uint8")
    names = [n for n, types in table.items() if q in types]
    net.before, start, want, used = [], len(net.graph.operators), chance.int(3, MOST), []
    while len(net.graph.operators) - start < want:
        name, outputs = chance.pick(*names), len(net.graph.outputs)
        net.begin(chance, True)
        T.KINDS[name](net, chance, q)
        net.before = (net.before + net.graph.outputs[outputs:])[-3:]
        used.append(name)
    labels += [f"network {at} ({', '.join(used)})"] * (len(net.graph.outputs) - len(labels))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lathe", default=os.path.join(T.TOP, "build", "lathe"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=4, help="models")
    p.add_argument("--side", type=int, default=20, help="networks in each")
    p.add_argument("--runs", type=int, default=4)
    p.add_argument("--oracle", default="", help="micro or litert; else both in turn")
    p.add_argument("--target")
    p.add_argument("--cc", default="cc -O0")
    args = p.parse_args()
    if T.runtime is None:
        print("tflite_micro or ai_edge_litert is not there")
        sys.exit(77)
    report, cases = T.Report(), 0
    oracles = [o for o in (T.Micro, T.LiteRT) if args.oracle in o.name]
    for i in range(args.count):
        oracle, net, labels = oracles[i % len(oracles)], Chain(), []
        for k in range(args.side):
            network(net, np.random.default_rng([args.seed + i, k]), oracle, labels, k)
        spans = {k: net.spans[t] for k, t in enumerate(net.graph.inputs)}
        T.check(args, report, f"seed {args.seed + i} by {oracle.name}", net.bytes(), labels.__getitem__, spans,
                np.random.default_rng([args.seed + i, 7]), args.runs, oracle)
        cases += args.side
    print("\n".join(report.failures))
    print(f"{report.elements} elements, {report.wrong} differ")
    failed = len(report.failures)
    print(f"{max(cases - failed, 0)} passed, {failed} failed")
    sys.exit(1 if failed or report.wrong else 0)


if __name__ == "__main__":
    main()
