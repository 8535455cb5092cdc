#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every importer of ONNX's operators with models that are wrong: the official cases, the models of the tests and one
for each row of src/frontend/onnx/onnx_ops.def that these do not reach are changed (test/mutants/onnx_mutate.c) and
compiled as far as the text of their C. Each must compile or be refused with a message.

    importers.py [--importers FILE] [--seed N] [--count N | --all] [-j N] [--found DIR]

--importers is the program that changes and compiles, best built with sanitizers (build/asan/test/importers). --count
models by chance are made, always the same ones of a --seed; --all makes every change of every model, some 300,000. What
failed lies in --found. Rows that no model compiles for are named, and fail the run.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases as official

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = dict(os.environ,
                   ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
                   UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")
F, I, B, U = np.float32, np.int64, np.bool_, np.uint8


def rows():
    """[(domain, name, since, until)] of the operator table."""
    with open(os.path.join(TOP, "src", "frontend", "onnx", "onnx_ops.def")) as f:
        found = re.findall(r'^ONNX_OP\("([^"]*)", "(\w+)", (\d+), (\d+),', f.read(), re.M)
    return [(d, n, int(since), int(until)) for d, n, since, until in found]


def one(path, op, operands, opset, domain="", results=1, **attributes):
    """A model of one node; operands are arrays: of i64 constants, others inputs; None: left out."""
    inputs, weights, names = [], [], []
    for i, a in enumerate(operands):
        names.append("" if a is None else f"x{i}")
        if a is None:
            continue
        a = np.asarray(a)
        if a.dtype == I and a.ndim < 2:
            weights.append(numpy_helper.from_array(a, names[-1]))
        else:
            kind = helper.np_dtype_to_tensor_dtype(a.dtype)
            inputs.append(helper.make_tensor_value_info(names[-1], kind, a.shape))
    node = helper.make_node(op, names, [f"y{i}" for i in range(results)], domain=domain, **attributes)
    outputs = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in node.output]
    for o in outputs:
        o.ClearField("type")
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)


def f(*shape):
    return np.zeros(shape, F)


def u(*shape):
    return np.zeros(shape, U)


def ints(*v):
    return np.array(v, I)


MS = "com.microsoft"
SCALE, ZERO = f(), u()
BINARY = [f(2, 3), f(2, 3)]
# Forms of old versions, which the official cases do not have: (operator, version, operands, attributes).
OLD = [
    ("Cast", 1, [f(2)], {"to": "INT64"}),
    ("Clip", 6, [f(2)], {"min": 0.0, "max": 1.0}),
    ("Dropout", 7, [f(2)], {}),
    ("Selu", 1, [f(2)], {}),
    ("Add", 6, BINARY, {"broadcast": 1, "axis": 0}),
    ("PRelu", 6, [f(1, 3, 2, 2), f(3)], {}),
    *[(op, 6, [np.zeros(2, B), np.zeros(2, B)], {}) for op in ("And", "Or", "Xor")],
    ("Equal", 6, [np.zeros((2, 2), np.int32)] * 2, {}),
    *[(op, 6, BINARY, {}) for op in ("Div", "Greater", "Less", "Mul", "Pow", "Sub")],
    *[(op, 11, [f(2, 3, 4)], {"axis": 1}) for op in ("Hardmax", "LogSoftmax", "Softmax")],
    *[("Reduce" + op, 11, [f(2, 3, 4)], {"axes": [1]}) for op in
      ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")],
    ("TopK", 9, [f(2, 5)], {"k": 2}),
    ("Pad", 10, [f(2, 3)], {"pads": [0, 1, 1, 0]}),
    ("Pad", 13, [f(2, 3), ints(0, 1, 1, 0)], {}),
    ("Reshape", 1, [f(2, 3)], {"shape": [3, 2]}),
    ("Resize", 10, [f(1, 1, 2, 2), np.ones(4, F)], {}),
    ("Scatter", 9, [f(3, 3), np.zeros((1, 3), I), f(1, 3)], {}),
    ("Slice", 9, [f(4, 4)], {"starts": [1], "ends": [3]}),
    ("Split", 1, [f(4)], {"split": [4]}),
    ("Split", 2, [f(4)], {"split": [4]}),
    ("Squeeze", 12, [f(1, 2)], {"axes": [0]}),
    ("Unsqueeze", 12, [f(2)], {"axes": [0]}),
    ("Tile", 5, [f(2, 2), ints(2), ints(0)], {}),
    ("Upsample", 7, [f(1, 1, 2, 2)], {"scales": [1.0, 1.0, 2.0, 2.0]}),
    ("Gemm", 10, [f(2, 3), f(3, 2), f(2, 2)], {}),
    ("MaxRoiPool", 17, [f(1, 2, 4, 4), f(3, 5)], {"pooled_shape": [2, 2]}),
    ("MeanVarianceNormalization", 8, [f(1, 2, 3, 3)], {}),
    ("DFT", 19, [f(1, 4, 1)], {"axis": 1}),
    ("SimplifiedLayerNormalization", 17, [f(2, 4), f(4)], {}),
    ("Affine", 9, [f(2)], {}),
    ("Scale", 9, [f(2)], {"scale": 2.0}),
    ("Crop", 9, [f(1, 1, 4, 4)], {"border": [1, 1, 1, 1]}),
    ("ImageScaler", 9, [f(1, 2, 3, 3)], {"bias": [1.0, 2.0]}),
    ("ParametricSoftplus", 9, [f(2)], {}),
    ("ScaledTanh", 9, [f(2)], {}),
]
QUANTISED = [u(2, 4), SCALE, ZERO]
POOLED = [u(1, 2, 4, 4), SCALE, ZERO, SCALE, ZERO]
IDS = np.zeros((1, 3), np.int32)
OTHERS = [
    (MS, "DequantizeLinear", QUANTISED, {}),
    (MS, "QuantizeLinear", [f(2, 4), SCALE, ZERO], {}),
    (MS, "DynamicQuantizeMatMul", [f(2, 4), u(4, 3), f(3), u(3), f(3)], {}),
    (MS, "MatMulIntegerToFloat", [u(2, 4), u(4, 3), SCALE, SCALE, ZERO, ZERO, f(3)], {}),
    (MS, "QGemm", [u(2, 4), SCALE, ZERO, u(4, 3), SCALE, ZERO, np.zeros(3, np.int32), SCALE, ZERO], {}),
    *[(MS, op, QUANTISED * 2 + [SCALE, ZERO], {}) for op in ("QLinearAdd", "QLinearMul")],
    (MS, "QLinearAveragePool", POOLED, {"kernel_shape": [2, 2]}),
    (MS, "QLinearGlobalAveragePool", POOLED, {}),
    (MS, "QLinearConcat", [SCALE, ZERO] + QUANTISED * 2, {"axis": 0}),
    *[(MS, op, QUANTISED + [SCALE, ZERO], {}) for op in ("QLinearLeakyRelu", "QLinearSigmoid")],
    (MS, "QLinearWhere", [np.zeros((2, 4), B)] + QUANTISED * 2 + [SCALE, ZERO], {}),
    (MS, "FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), f(1, 3, 3, 3)], {"activation": "Relu"}),
    (MS, "FusedGemm", [f(2, 3), f(3, 4), f(4)], {"activation": "Relu"}),
    (MS, "FusedMatMul", [f(2, 3), f(3, 4)], {"alpha": 2.0}),
    (MS, "Attention", [f(1, 3, 8), f(8, 24), f(24)], {"num_heads": 2}),
    (MS, "MultiHeadAttention", [f(1, 3, 8)] * 3 + [f(24)], {"num_heads": 2}),
    (MS, "GroupQueryAttention",
     [f(1, 1, 8), f(1, 1, 4), f(1, 1, 4), f(1, 1, 3, 4), f(1, 1, 3, 4), np.zeros(1, np.int32), ints(4)],
     {"num_heads": 2, "kv_num_heads": 1}),
    (MS, "RotaryEmbedding", [f(1, 2, 3, 8), np.zeros((1, 3), I), f(5, 4), f(5, 4)], {}),
    (MS, "BiasGelu", [f(2, 4), f(4)], {}),
    (MS, "FastGelu", [f(2, 4), f(4)], {}),
    (MS, "Gelu", [f(2)], {}),
    (MS, "QuickGelu", [f(2)], {}),
    (MS, "EmbedLayerNormalization", [IDS, IDS, f(5, 8), f(4, 8), f(2, 8), f(8), f(8)], {}),
    (MS, "SimplifiedLayerNormalization", [f(2, 4), f(4)], {}),
    (MS, "SkipLayerNormalization", [f(1, 2, 4), f(1, 2, 4), f(4), f(4), f(4)], {}),
    (MS, "SkipSimplifiedLayerNormalization", [f(1, 2, 4), f(1, 2, 4), f(4), f(4)], {}),
]


def weights_of_nibbles(path, op, weights, attributes):
    """What needs constants that are no integers of 64 bits."""
    inputs = [helper.make_tensor_value_info("x0", helper.np_dtype_to_tensor_dtype(weights[0].dtype), weights[0].shape)]
    constants = [numpy_helper.from_array(w, f"x{i + 1}") for i, w in enumerate(weights[1:])]
    node = helper.make_node(op, [f"x{i}" for i in range(len(weights))], ["y0"], domain=MS, **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y0")], constants)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)


def write_bases(folder):
    for op, opset, operands, attributes in OLD:
        one(os.path.join(folder, f"{op}-{opset}.onnx"), op, operands, opset, **attributes)
    for domain, op, operands, attributes in OTHERS:
        one(os.path.join(folder, f"{domain}.{op}.onnx"), op, operands, 17, domain, **attributes)
    weights_of_nibbles(os.path.join(folder, "MatMulNBits.onnx"), "MatMulNBits",
                       [f(2, 32), u(3, 1, 16), f(3, 1), u(3, 1)], {"K": 32, "N": 3, "bits": 4, "block_size": 32})
    weights_of_nibbles(os.path.join(folder, "QLinearSoftmax.onnx"), "QLinearSoftmax",
                       [u(2, 4), np.float32(0.1), np.uint8(0), np.float32(1 / 256), np.uint8(0)], {"opset": 13})


def models(folder):
    """The smaller ones first come from the wheel; each is a file."""
    write_bases(folder)
    official_models = [c.model for c in official.find() if c.kind != "light"]
    return [*official_models, *sorted(glob.glob(os.path.join(folder, "*.onnx"))),
            *sorted(glob.glob(os.path.join(TOP, "test", "**", "*.onnx"), recursive=True))]


def rows_of(path, table):
    """Rows that the model's nodes are read by."""
    m = onnx.load(path, load_external_data=False)
    sets = {o.domain: o.version for o in m.opset_import}
    found = set()

    def walk(nodes):
        for n in nodes:
            version = sets.get(n.domain, 1)
            found.update(r for r in table
                         if r[:2] == (n.domain, n.op_type) and r[2] <= version and (not r[3] or version <= r[3]))
            for a in n.attribute:
                walk(a.g.node)

    walk(m.graph.node)
    for fn in m.functions:
        walk(fn.node)
    return found


def run(options, folder, paths, seed, count):
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".txt", delete=False) as listed:
        listed.write("".join(p + "\n" for p in paths))
    return subprocess.run([options.importers, options.found, listed.name, str(seed), str(count)], cwd=folder,
                          capture_output=True, text=True, errors="replace", env=ENVIRONMENT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--importers", default=os.path.join(TOP, "build", "asan", "test", "importers"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--found", metavar="DIR", default=os.path.join(TOP, "build", "fuzz", "found"))
    options = parser.parse_args()
    options.importers, options.found = os.path.abspath(options.importers), os.path.abspath(options.found)
    os.makedirs(options.found, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="importers-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        paths = models(folder)
        if options.all:
            parts = [(paths[i::64], 0) for i in range(64)]
        else:
            parts = [(paths, options.count // options.jobs)] * options.jobs
        runs = list(pool.map(lambda i: run(options, folder, parts[i][0], options.seed * 1000 + i, parts[i][1]),
                             range(len(parts))))
        passed = failed = 0
        for r in runs:
            counts = re.search(r"(\d+) passed, (\d+) failed", r.stdout)
            passed, failed = passed + int(counts[1] if counts else 0), failed + int(counts[2] if counts else 1)
            for line in (r.stdout + r.stderr).splitlines():
                if line.startswith("FAILED") or "runtime error" in line or "ERROR" in line or "Assertion" in line:
                    print(line[:300])
        if options.all:
            good = [line[5:-3] for r in runs for line in r.stdout.splitlines() if re.match("base .* ok$", line)]
            table = rows()
            reached = set().union(*(rows_of(p, table) for p in good))
            for row in sorted(set(table) - reached):
                print(f"FAILED: no model compiles that is read by the row {row}")
                failed += 1
    print(f"importers: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
