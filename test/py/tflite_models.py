#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of TensorFlow Lite compute what TensorFlow Lite Micro computes: quantised operators bit for bit, operators of
floats to 1e-5 of the largest number.

    tflite_models.py [--lathe FILE] [--seed N] [--count N] [--network-runs N] [--runs N] [--models FOLDER]
                     [--filter NAME]

Operators: COUNT networks of operators that stand side by side, one or two of each kind, with odd shapes, paddings and
strides, zero points at the ends of their range, scales that saturate and scales that do not, and numbers over the whole
range. Models: the networks NAME.tflite in FOLDER, each on RUNS random inputs. The
oracle is the package tflite_micro, networks are written with the schema in the package ai_edge_litert; without them,
which have wheels for few versions of Python, the exit status is 77.
"""
import argparse
import ctypes
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np

import package

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    from tflite_micro.python.tflite_micro import runtime
    from tflite_kinds import ALL, HAVE, KINDS, gains, inner_graph, like  # the last for other tests, as those below
    from tflite_net import TYPES, Chance, Net, S, data, options, scale_of, variable  # other tests take some of them
except ImportError:
    runtime = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOT_HERE = {"kws_float.tflite"}  # floats by weights of 8 bits, which the oracle does not have
ARENA = 1 << 25


# --- a model against the oracle

def random_input(rng, shape, kind, span):
    """span: of floats; "wide": all numbers of the type; "low": of 16 bits, with the least of them in most cases."""
    bits = 8 * np.dtype(kind).itemsize
    if np.dtype(kind).kind == "u" and bits > 16:  # as many small ones as large ones
        return rng.integers(0, 2**int(rng.integers(1, bits + 1)) - 1, shape, dtype=kind, endpoint=True)
    if span in ("wide", "low") and np.dtype(kind).kind == "i":
        most = 2**int(rng.integers(1, bits))
        x = rng.integers(-most, most - 1, shape, dtype=kind, endpoint=True)
        if span == "low":
            np.put(x, rng.integers(0, x.size, rng.integers(0, 3)), np.iinfo(kind).min)
        return x
    span = 4.0 if span == "wide" else span
    if np.dtype(kind).kind in "iu" and isinstance(span, tuple):
        return rng.integers(*span, shape, dtype=kind, endpoint=True)
    if np.dtype(kind).kind in "iu":
        least, most = (-50, 50) if np.dtype(kind).itemsize > 2 else (np.iinfo(kind).min, np.iinfo(kind).max)
        low, high = sorted(rng.integers(least, most + 1, 2)) if rng.integers(2) else (least, most)
        return rng.integers(low, high + 1, shape).astype(kind)
    if np.dtype(kind).kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    low, high = span if isinstance(span, tuple) else (-span, span)
    return rng.uniform(low, high, shape).astype(kind)


# LiteRT finds the extents of their results as it runs, and stops then if operators behind them have memory already.
ALONE = {"unique", *(f"unsorted_segment_{what}" for what in ("max", "min", "prod", "sum"))}


class Report:
    def __init__(self):
        self.elements = self.wrong = 0
        self.failures = []

    def compare(self, what, got, want):
        want = np.asarray(want).reshape(got.shape)
        self.elements += want.size
        if got.dtype.kind == "f":
            # the terms of a sum are as large as 4, whatever an activation leaves of it
            room = 1e-5 * max(4.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
            same = (got == want) | np.isnan(got) & np.isnan(want)
            bad = int(np.count_nonzero(~(same | (np.abs(got - want) <= room))))
        else:
            bad = int(np.count_nonzero(got != want))
        self.wrong += bad
        if bad and len(self.failures) < 20:
            at = np.flatnonzero(got.reshape(-1) != want.reshape(-1))[:4]
            self.failures.append(f"FAILED {what}: {bad} of {want.size} differ: "
                                 f"{got.reshape(-1)[at]} for {want.reshape(-1)[at]}")


class Micro:
    """TensorFlow Lite Micro."""
    name, more = "micro", []

    def __init__(self, content):
        self.session = runtime.Interpreter.from_bytes(content, arena_size=ARENA)

    def run(self, values):
        """Another number than 0: an operator ended the run."""
        for i, x in enumerate(values):
            self.session.set_input(x, i)
        return self.session.invoke()

    def output(self, i):
        return self.session.get_output(i)

    def reset(self):
        self.session.reset()


class LiteRT:
    """Its reference kernels."""
    name, more = "litert", ["--requant", "litert"]

    def __init__(self, content):
        self.session = Interpreter(model_content=content, num_threads=1,
                                   experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        self.session.allocate_tensors()

    def run(self, values):
        for detail, x in zip(self.session.get_input_details(), values):
            self.session.set_tensor(detail["index"], x)
        self.session.invoke()
        return 0

    def output(self, i):
        return self.session.get_tensor(self.session.get_output_details()[i]["index"])

    def reset(self):
        self.session.reset_all_variables()


def build(args, model, folder, more=()):
    """The package of a model as a shared library."""
    more = [*more] + (["--target", args.target] if args.target else [])
    fault = package.compile_model(args.lathe, model, folder, "m", more)
    if fault:
        raise package.Failure(fault)
    # with the target's flags, as its Makefile does: without them wide vectors are taken apart, for minutes
    flags = package.report(folder)["target_cflags"].split()
    command = [*args.cc.split(), *flags, "-shared", "-fPIC", "-w", f"-I{folder}/include", f"-I{folder}/src",
               package.one_source(folder), *sorted(glob.glob(f"{folder}/src/tvmrt*.c")), "-o", f"{folder}/m.so", "-lm",
               "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise package.Failure(done.stderr.strip()[:500])
    return ctypes.CDLL(f"{folder}/m.so")


def check(args, report, what, content, names, spans, rng, runs, kind=Micro, counts=None):
    """names: of each output, for messages; counts: as of a net."""
    try:
        oracle = kind(content)
    except (RuntimeError, ValueError) as e:
        report.failures.append(f"FAILED {what}: the oracle: {str(e)[:200]}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.tflite")
        with open(path, "wb") as f:
            f.write(content)
        try:
            library = build(args, path, folder + "/out", kind.more)
            about = package.report(folder + "/out")
            for _ in range(runs):
                feed = {}
                for i, entry in enumerate(about["inputs"]):
                    x = random_input(rng, entry["shape"], package.DTYPES[entry["dtype"]], spans.get(i, 4.0))
                    feed[entry["name"]] = x
                oracle.run(list(feed.values()))
                got = package.call(library, folder + "/out", "m", feed)
                for i, entry in enumerate(about["outputs"]):
                    y, want = got[entry["name"]], oracle.output(i)
                    if counts and i in counts:
                        which, row, good = counts[i]
                        y, want = (v.reshape(-1, row, *v.shape[2:])[:int(oracle.output(which)[0]), :good]
                                   for v in (y, want))
                    report.compare(f"{what}, {names(i)}", y, want)
        except package.Failure as e:
            report.failures.append(f"FAILED {what}: {e}")


def multipliers():
    """Models of one operator, and the numbers of 31 bits that TensorFlow Lite Micro multiplies by there: made of ratios
    and products of scales in 64 bits. One of a 32-bit product differs by so little that few results in 100,000 do."""
    x, w, y, alpha = (np.float32(v) for v in (0.0371, 0.00731, 0.0917, 0.13))

    def of(real):
        return round(np.frexp(real)[0] * 2**31)

    net = Net()
    out = net.tensor("int8", [2, 4], y)
    operands = [net.input("int8", [2, 3], x, 3), net.tensor("int8", [4, 3], w, data=np.ones(12)),
                net.tensor("int32", [4], x * w, data=np.ones(4))]
    net.operator("FULLY_CONNECTED", 4, operands, [out], options("FullyConnected", fusedActivationFunction=0))
    yield "FULLY_CONNECTED", net, [of(float(x) * float(w) / float(y))]
    net = Net()
    net.operator("ABS", 1, [net.input("int16", [5], x)], [net.tensor("int16", [5], y)], options("Abs"))
    yield "ABS", net, [of(float(x) / float(y))]
    net = Net()
    net.operator("LEAKY_RELU", 2, [net.input("int16", [5], x)], [net.tensor("int16", [5], y)],
                 options("LeakyRelu", alpha=float(alpha)))
    yield "LEAKY_RELU", net, [of(float(x) / float(y)), of(float(x) * float(alpha) / float(y))]
    net = Net()
    net.operator("RELU", 1, [net.input("int16", [5], x)], [net.tensor("int16", [5], y)])
    yield "RELU", net, [of(float(x) / float(y))]
    net = Net()
    net.operator("BATCH_MATMUL", 3, [net.input("int8", [2, 3], x), net.input("int8", [3, 4], w)],
                 [net.tensor("int8", [2, 4], y)], options("BatchMatMul"))
    yield "BATCH_MATMUL", net, [of(float(x) * float(w) / float(y))]
    net = Net()
    net.operator("PRELU", 1, [net.input("int8", [5], x), net.tensor("int8", [1], alpha, data=[7])],
                 [net.tensor("int8", [5], y)])
    yield "PRELU", net, [of(float(x) / float(y)), of(float(x) * float(alpha) / float(y))]
    net = Net()
    operands = [net.input("int8", [1, 3], x), net.tensor("int8", [2, 3], w, data=np.ones(6)),
                net.tensor("int16", [2, 4], alpha, data=np.ones(8)), -1, variable(net, "int16", [1, 8], w)]
    net.operator("SVDF", 3, operands, [net.tensor("int8", [1, 2], y)],
                 options("SVDF", rank=1, fusedActivationFunction=1))
    yield "SVDF", net, [of(float(x) * float(w) / float(w)), of(float(w) * float(alpha) / float(y))]


def check_multipliers(args, report):
    for name, net, numbers in multipliers():
        with tempfile.NamedTemporaryFile(suffix=".tflite") as f:
            f.write(net.bytes())
            f.flush()
            done = subprocess.run([args.lathe, "compile", f.name, "--emit", "graph", "-O0"], capture_output=True,
                                  text=True)
        lacking = [n for n in numbers if not re.search(rf"\b{n}\b", done.stdout)]
        if lacking:
            report.failures.append(f"FAILED {name}: no multiplier {lacking}: {done.stderr[:200]}")
        yield name


def network(seed, kinds, oracle):
    net, labels = Net(), []
    for name in kinds:
        types = HAVE.get(name, ALL)[oracle is LiteRT]
        for q in types.split():
            before = len(net.graph.outputs)
            q = "" if q == "float32" else q
            KINDS[name](net, Chance(np.random.default_rng([seed, zlib.crc32(name.encode()), len(q)]), oracle.name), q)
            labels += [f"{name} of {q or 'float32'}"] * (len(net.graph.outputs) - before)
    return net, labels


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=6, help="networks of operators")
    p.add_argument("--network-runs", type=int, default=5, help="of each of them")
    p.add_argument("--runs", type=int, default=20, help="of each model")
    p.add_argument("--models", default=os.path.join(TOP, "..", "shared", "models", "mlperf-tiny"))
    p.add_argument("--filter", default="", help="operators or models with that in their name")
    p.add_argument("--filter-models", default="", help="models with that in their name")
    p.add_argument("--oracle", default="", help="micro or litert; else both")
    p.add_argument("--target")
    p.add_argument("--cc", default="cc -O1")
    args = p.parse_args()
    if runtime is None:
        print("tflite_micro or ai_edge_litert is not there")
        sys.exit(77)
    report, cases = Report(), 0
    kinds = [k for k in KINDS if args.filter in k]
    cases += len(list(check_multipliers(args, report)))
    parts = [[k for k in kinds if k not in ALONE], *([k] for k in kinds if k in ALONE)]
    for i, part in itertools.product(range(args.count), parts):
        for oracle in [o for o in (Micro, LiteRT) if args.oracle in o.name]:
            net, labels = network(args.seed + i, part, oracle)
            if not labels:
                continue
            spans = {k: net.spans[t] for k, t in enumerate(net.graph.inputs)}
            outputs = net.graph.outputs
            counts = {outputs.index(y): (outputs.index(n), *row) for y, (n, *row) in net.counts.items()}
            check(args, report, f"network {args.seed + i} by {oracle.name}", net.bytes(), labels.__getitem__, spans,
                  np.random.default_rng([args.seed + i, 7]), args.network_runs, oracle, counts)
            cases += len(labels)
    for path in sorted(glob.glob(os.path.join(args.models, "*.tflite"))):
        name = os.path.basename(path)
        if args.filter in name and args.filter_models in name and name not in NOT_HERE:
            with open(path, "rb") as f:
                check(args, report, name, f.read(), lambda i: f"output {i}", {}, np.random.default_rng(args.seed),
                      args.runs)
            cases += 1
    print("\n".join(report.failures))
    print(f"{report.elements} elements, {report.wrong} differ")
    failed = len(report.failures)
    print(f"{max(cases - failed, 0)} passed, {failed} failed")
    sys.exit(1 if failed or report.wrong else 0)


if __name__ == "__main__":
    main()
