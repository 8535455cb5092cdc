#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results whose extents the values of operands decide: one package of each model, built with AddressSanitizer and
UBSan, gives what onnxruntime gives, and ends with a status where onnxruntime refuses or the bound is too small.

    chosen.py [--lathe FILE] [--filter GLOB] [--keep DIR]

Operands are small numbers by chance, where a run's shapes and numbers are compared, and hostile ones (the ends of
int64, NaN), where it must end with 0, -10 or -12 and the sanitizers must find nothing.
"""
import ctypes
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import dynamic
import package

TYPES = {"f": (TensorProto.FLOAT, np.float32), "i": (TensorProto.INT64, np.int64), "b": (TensorProto.BOOL, np.bool_)}
WILD = np.array([-(1 << 63), 1 - (1 << 63), -(1 << 40), 1 << 40, (1 << 63) - 1, -1, 0, 7], np.int64)
SMALL_RUNS, WILD_RUNS = 40, 25
STATUSES = ("run: status -10", "run: status -12")


class Case:
    """An operator between inputs "x:f n 3" (name, type, extents; "": none), with options of the compiler. low, high:
    the small numbers of int64 operands; most: of open extents."""

    def __init__(self, name, op, inputs, n_outputs=1, options=(), low=-3, high=5, most=4, constants=None,
                 **attributes):
        self.name, self.options, self.low, self.high, self.most = name, list(options), low, high, most
        self.inputs = [(n.split(":")[0], n.split(":")[1].split()) for n in inputs if n]
        outputs = [f"y{k}" for k in range(n_outputs)]
        types = {"Compress": [0], "NonZero": ["i"], "Unique": [0, "i", "i", "i"], "NonMaxSuppression": ["i"],
                 "TopK": [0, "i"], "ConstantOfShape": ["f"], "OneHot": [2]}.get(op, [0] * n_outputs)
        codes = [TYPES[t if isinstance(t, str) else self.inputs[t][1][0]][0] for t in types]
        node = helper.make_node(op, [n.split(":")[0] for n in inputs] + list(constants or {}), outputs, **attributes)
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(n, TYPES[t[0]][0], [int(d) if d.isdigit() else d for d in t[1:]])
             for n, t in self.inputs],
            [helper.make_tensor_value_info(n, code, None) for n, code in zip(outputs, codes)],
            [onnx.numpy_helper.from_array(np.array(v), k) for k, v in (constants or {}).items()])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def operands(self, rng, wild):
        extents, made = {}, {}
        for name, (kind, *dims) in self.inputs:
            shape = [int(d) if d.isdigit() else extents.setdefault(d, int(rng.integers(0, self.most + 1)))
                     for d in dims]
            if kind == "f":
                made[name] = (rng.integers(-2, 4, shape) / 2).astype(np.float32)
                if wild:
                    made[name] = np.where(rng.random(shape) < 0.2, np.float32(np.nan), made[name]).astype(np.float32)
            elif kind == "b":
                made[name] = rng.integers(0, 2, shape).astype(np.bool_)
            else:
                made[name] = rng.integers(self.low, self.high + 1, shape)
                if wild:
                    made[name] = np.where(rng.random(shape) < 0.6, rng.choice(WILD, shape), made[name])
            made[name] = np.asarray(made[name], TYPES[kind][1])
        return made


def dims(**most):
    return [word for name, n in most.items() for word in ("--dim", f"{name}<={n}")]


def bounds(prefix, n, most):
    return [word for k in range(n) for word in ("--bound", f"{prefix}_{k}={most}")]


CASES = [
    Case("nonzero", "NonZero", ["x:f n 3"], options=dims(n=4)),
    Case("compress", "Compress", ["x:f n 2", "c:b m"], options=dims(n=4, m=4), axis=0),
    Case("compress_flat", "Compress", ["x:f 3 2", "c:b 5"]),
    Case("unique", "Unique", ["x:f n"], 4, options=dims(n=4)),
    Case("unique_rows", "Unique", ["x:f n 2"], 4, options=dims(n=4), axis=0),
    Case("unique_first", "Unique", ["x:i n"], 4, options=dims(n=4), sorted=0),
    Case("nms", "NonMaxSuppression", ["b:f 1 n 4", "s:f 1 2 n", "k:i", "o:f", "l:f"], options=dims(n=4), low=0, high=3),
    Case("reshape", "Reshape", ["x:f 3 4", "s:i 2"], low=-1, high=6),
    Case("reshape_open", "Reshape", ["x:f n 4", "s:i 3"], options=dims(n=4), low=-1, high=4),
    Case("expand", "Expand", ["x:f n 1", "s:i 2"], options=dims(n=4) + bounds("expand", 2, 9), low=1, high=5),
    Case("range", "Range", ["a:i", "b:i", "d:i"], options=bounds("range", 1, 9)),
    Case("constant_of_shape", "ConstantOfShape", ["s:i 2"], options=bounds("full", 2, 9), low=0, high=9),
    Case("slice", "Slice", ["x:f 3 4", "b:i 2", "e:i 2"], low=-6, high=6),
    Case("slice_axes", "Slice", ["x:f n 4", "b:i 1", "e:i 1", "a:i 1", "s:i 1"], options=dims(n=4), low=-2, high=2),
    Case("tile", "Tile", ["x:f 2 n", "r:i 2"], options=dims(n=4) + bounds("tile", 2, 12), low=0, high=3),
    Case("pad", "Pad", ["x:f 2 n", "p:i 4"], options=dims(n=4) + bounds("pad", 2, 12), low=0, high=3),
    Case("pad_edge", "Pad", ["x:f 2 3", "p:i 4"], options=bounds("pad", 2, 12), low=0, high=3, mode="edge"),
    Case("split", "Split", ["x:f 6 2", "s:i 3"], 3, low=0, high=4),
    Case("topk", "TopK", ["x:f n", "k:i 1"], 2, options=dims(n=4), low=0, high=4),
    Case("resize_sizes", "Resize", ["x:f 1 2 3 n", "", "", "s:i 4"], options=dims(n=4) + bounds("resize", 4, 12),
         low=1, high=6),
    Case("resize_axes", "Resize", ["x:f n 3 5", "", "", "s:i 2"], options=dims(n=4) + bounds("resize", 2, 9),
         low=1, high=9, mode="linear", axes=[2, 1]),
    Case("resize_kept", "Resize", ["x:f 2 4 5", "", "", "s:i 2"], options=bounds("resize", 2, 16), low=1, high=9,
         mode="linear", axes=[1, 2], keep_aspect_ratio_policy="not_larger"),
    Case("resize_scales", "Resize", ["x:f 1 n 4", "", "s:f 3"], options=dims(n=4) + bounds("resize", 3, 12)),
    Case("resize_thirds", "Resize", ["x:f n m", ""], options=dims(n=9, m=9), most=9, mode="linear",
         constants={"s": np.array([2, 1 / 3], "f4")}),
    Case("resize_halves", "Resize", ["x:f 1 2 n m", ""], options=dims(n=9, m=9), most=9, mode="cubic",
         constants={"s": np.array([1, 1, 0.5, 3], "f4")}),
    Case("one_hot", "OneHot", ["i:i 3", "d:i", "v:f 2"], options=bounds("depth", 1, 9), low=1, high=9),
]


def references(case, model):
    """What onnxruntime gives for each small run, None where it refuses. Its errors are C++ exceptions, which do not
    pass the sanitizer's library, so this is not the child's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names, found = [o.name for o in session.get_outputs()], []
    for run in range(SMALL_RUNS):
        try:
            found.append(dict(zip(names, session.run(None, case.operands(np.random.default_rng(run), False)))))
        except Exception:  # its errors have no common class
            found.append(None)
    return found


def run_small(case, want, library, folder, inputs):
    """None, or what is wrong."""
    try:
        got = package.call(library, folder, case.name, inputs)
    except package.Failure as failure:
        refused = str(failure) in STATUSES and (want is None or any(
            have > most for name, about in ((o["name"], o) for o in package.report(folder)["outputs"])
            for have, most in zip(want[name].shape, about["shape"])))
        return None if refused else f"{failure}, onnxruntime: {'refuses' if want is None else 'computes'}"
    if want is None:
        return None  # what onnxruntime refuses may have a meaning here: docs/reference/onnx-front-end.md
    return "; ".join(f"{k}: {e}" for k in want if (e := dynamic.close_enough(got[k], want[k]))) or None


def run_wild(case, library, folder, inputs):
    try:
        package.call(library, folder, case.name, inputs)
    except package.Failure as failure:
        return None if str(failure) in STATUSES else str(failure)
    return None


def child(number, folder):
    """One line of JSON for each run; in a process of its own, which may die."""
    case, made = CASES[number], os.path.join(folder, "package")
    library = ctypes.CDLL(os.path.join(folder, "sanitized.so"))
    with open(os.path.join(folder, "references"), "rb") as f:
        wants = pickle.load(f)
    for run in range(SMALL_RUNS + WILD_RUNS):
        inputs = case.operands(np.random.default_rng(run), run >= SMALL_RUNS)
        label = " ".join(f"{k}={v.tolist()}" for k, v in inputs.items())
        print(json.dumps({"start": label}), flush=True)
        message = run_small(case, wants[run], library, made, inputs) if run < SMALL_RUNS else \
            run_wild(case, library, made, inputs)
        print(json.dumps({"done": label, "message": message}), flush=True)


def test(number, options, folder):
    case = CASES[number]
    model, made = os.path.join(folder, "model.onnx"), os.path.join(folder, "package")
    onnx.save(case.model, model)
    error = package.compile_model(options.lathe, model, made, case.name, case.options)
    if error:
        return [("compile", error)]
    with open(os.path.join(folder, "references"), "wb") as f:
        pickle.dump(references(case, model), f)
    dynamic.build(made, os.path.join(folder, "sanitized.so"), dynamic.SANITIZE, 0)
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {**os.environ, "LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    run = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", str(number), folder],
                         capture_output=True, text=True, errors="replace", env=environment)
    events = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    results = [(e["done"], e["message"]) for e in events if "done" in e]
    if run.returncode != 0:
        lines = [s for s in run.stderr.splitlines() if "ERROR" in s or "runtime error" in s] or \
            run.stderr.splitlines()[-1:]
        last = events[-1].get("start", "at the end") if events else "loading"
        results.append((last, f"ended with {run.returncode}: {(lines or ['no message'])[0][:200]}"))
    return results


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        child(int(sys.argv[2]), sys.argv[3])
        return 0
    return dynamic.run_cases(__doc__, {case.name: number for number, case in enumerate(CASES)}, test)


if __name__ == "__main__":
    sys.exit(main())
