#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extents that do not agree: models of one operator, in which axes of several operands have names of their own, run
with extents that differ.

    extents.py [--lathe FILE] [--filter GLOB] [--each N] [--count N] [--first SEED] [-j N] [--keep DIR] [--show]

The models are the official cases with two operands or more, at most --each of one operator, and CONTRIBUTED. Of each,
some axes get names, --count times. The package is built with AddressSanitizer and UBSan, and is called with operands
that lie in memory exactly as large as they are. A run must end with a status, or give what onnxruntime gives; nothing
is read outside. A run with the case's own extents must give results. Where an extent is 0 numbers are not compared:
the mean of nothing is no number everywhere. --show tells what was refused, too, and where one of the two refuses
what the other computes."""
import argparse
import contextlib
import fnmatch
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases
import mutants
import package

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CC = ["gcc", "-std=gnu99", "-O0", "-g", "-w", "-ffp-contract=off", "-fsanitize=address,undefined",
      "-fno-sanitize-recover=all", "-DTVMRT_NUM_WORKERS=1", "-fPIC"]
MOST_ELEMENTS = 20000
RUNS = 6
MS = "com.microsoft"
F, I32, I64, U8, I8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8

# Operators without an official case: operands as (type, extents, or values), attributes.
CONTRIBUTED = {
    "MultiHeadAttention": ([(F, (2, 3, 8)), (F, (2, 5, 8)), (F, (2, 5, 8)), (F, (24,)), (I32, (2, 5)),
                            (F, (2, 2, 3, 5))], {"num_heads": 2}),
    "Attention": ([(F, (2, 3, 8)), (F, (8, 24)), (F, (24,)), (I32, (2, 3))], {"num_heads": 2}),
    "GroupQueryAttention": ([(F, (2, 1, 16)), (F, (2, 1, 8)), (F, (2, 1, 8)), (F, (2, 1, 4, 8)), (F, (2, 1, 4, 8)),
                             [1, 2], 4], {"num_heads": 2, "kv_num_heads": 1}),
    "RotaryEmbedding": ([(F, (2, 3, 8)), (I64, (2, 3)), (F, (4, 4)), (F, (4, 4))], {}),
    "SkipLayerNormalization": ([(F, (2, 3, 8)), (F, (2, 3, 8)), (F, (8,)), (F, (8,)), (F, (8,))], {}),
    "EmbedLayerNormalization": ([(I32, (2, 3)), (I32, (2, 3)), (F, (5, 4)), (F, (3, 4)), (F, (2, 4)), (F, (4,)),
                                 (F, (4,))], {}),
    "BiasGelu": ([(F, (2, 3, 4)), (F, (4,))], {}),
    "FastGelu": ([(F, (2, 3, 4)), (F, (4,))], {}),
    "FusedMatMul": ([(F, (2, 3, 4)), (F, (2, 4, 5))], {}),
    "FusedConv": ([(F, (1, 2, 5, 5)), (F, (3, 2, 3, 3)), (F, (3,))], {"activation": "Relu"}),
    "QLinearAdd": ([(U8, (2, 3)), 0.1, np.uint8(3), (U8, (2, 3)), 0.2, np.uint8(4), 0.3, np.uint8(5)], {}),
    "QLinearMul": ([(U8, (2, 3)), 0.1, np.uint8(3), (U8, (2, 3)), 0.2, np.uint8(4), 0.3, np.uint8(5)], {}),
    "DynamicQuantizeMatMul": ([(F, (3, 4)), (U8, (4, 5)), (F, (5,)), (U8, (5,)), (F, (5,))], {}),
    "MatMulIntegerToFloat": ([(U8, (3, 4)), (U8, (4, 5)), 0.1, (F, (5,)), np.uint8(3), (U8, (5,)), (F, (5,))], {}),
    "QGemm": ([(U8, (3, 4)), 0.1, np.uint8(3), (I8, (4, 5)), 0.2, np.int8(0), (I32, (5,)), 0.3, np.uint8(4)], {}),
    "GatherND": ([(F, (3, 4)), np.array([[0, 1], [2, 3]])], {}),
    "GridSample": ([(F, (2, 1, 4, 4)), (F, (2, 3, 3, 2))], {}),
    "MoE": ([(F, (3, 8)), (F, (3, 2)), (F, (2, 4, 8)), (F, (2, 4)), (F, (2, 8, 4)), (F, (2, 8))], {"k": 1}),
}

RESULTS = {"GroupQueryAttention": {"y": F, "k": F, "v": F}, "EmbedLayerNormalization": {"y": F, "m": I32}}


class Model:
    """One node with constants of its own, and an array for each operand."""

    def __init__(self, key, model, arrays):
        self.key, self.model, self.arrays = key, model, arrays


def array_of(operand, rng):
    """Of numbers, or of a type and extents: floats by chance, else ones."""
    if not isinstance(operand, tuple):
        small = np.int32 if isinstance(operand, (int, list)) else np.float32
        return np.asarray(operand, getattr(operand, "dtype", small))
    dtype = helper.tensor_dtype_to_np_dtype(operand[0])
    return (rng.standard_normal(operand[1]) if operand[0] == F else np.ones(operand[1])).astype(dtype)


def contributed():
    for op, (operands, attributes) in CONTRIBUTED.items():
        rng = np.random.default_rng(0)
        arrays = {f"x{k}": array_of(operand, rng) for k, operand in enumerate(operands)}
        outputs = RESULTS.get(op, {"y": U8 if op.startswith("Q") else F})
        node = helper.make_node(op, list(arrays), list(outputs), domain=MS, **attributes)
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                  for n, a in arrays.items()]
        results = [helper.make_tensor_value_info(n, dtype, None) for n, dtype in outputs.items()]
        model = helper.make_model(helper.make_graph([node], "g", inputs, results), ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MS, 1)])
        yield Model(f"{MS}/{op}", model, arrays)


def official():
    for case in cases.find():
        if case.kind not in ("node", "newest") or not case.folder or cases.is_random(case):
            continue
        model = onnx.load(case.model)
        inputs = model.graph.input
        if len(inputs) < 2 or len(model.graph.node) > 40 or any(not v.type.HasField("tensor_type") for v in inputs):
            continue
        arrays = {}
        for k, v in enumerate(inputs):
            tensor = onnx.TensorProto()
            with open(os.path.join(case.folder, "test_data_set_0", f"input_{k}.pb"), "rb") as f:
                tensor.ParseFromString(f.read())
            arrays[v.name] = numpy_helper.to_array(tensor)
        numbers = all(a.dtype.isbuiltin == 1 and a.dtype.kind in "fiub" for a in arrays.values())
        tensors = [a for a in arrays.values() if a.ndim > 0]
        if numbers and len(tensors) > 1 and sum(a.size for a in tensors) < MOST_ELEMENTS:
            yield Model(case.key, model, arrays)


def some(options, models):
    """At most so many models of each operator."""
    kinds = {}
    for m in models:
        nodes = m.model.graph.node
        kinds.setdefault((nodes[0].domain, nodes[0].op_type) if len(nodes) == 1 else "several nodes", []).append(m)
    r = random.Random(options.first)
    return [m for found in kinds.values() for m in r.sample(found, min(len(found), options.each))]


def opened(m, r):
    """The model with a few axes that have names, and the names' places: {name: (operand, axis)}."""
    places = [(name, axis) for name, a in m.arrays.items() for axis in range(a.ndim)]
    sizes = {}
    for name, axis in places:
        sizes.setdefault(m.arrays[name].shape[axis], []).append((name, axis))
    alike = [p for p in sizes.values() if len({name for name, _ in p}) > 1]
    kind = r.random()
    if alike and kind < 0.6: # axes of one size, which may have to agree
        chosen = r.choice(alike)
        chosen = r.sample(chosen, min(len(chosen), r.choice([2, 2, 3])))
    elif kind < 0.9:
        chosen = r.sample(places, min(len(places), r.choice([1, 2, 3])))
    else:
        chosen = places
    model = onnx.ModelProto()
    model.CopyFrom(m.model)
    names = {}
    for v in model.graph.input:
        v.type.tensor_type.ClearField("shape")
        v.type.tensor_type.shape.SetInParent()
        for axis, extent in enumerate(m.arrays[v.name].shape):
            d = v.type.tensor_type.shape.dim.add()
            if (v.name, axis) in chosen:
                d.dim_param = f"e{len(names)}"
                names[d.dim_param] = (v.name, axis)
            else:
                d.dim_value = extent
    for v in [*model.graph.output, *model.graph.value_info]:
        if v.type.HasField("tensor_type"):
            v.type.tensor_type.ClearField("shape")
    return model, names


def resized(m, names, extents):
    arrays = dict(m.arrays)
    for name, (operand, axis) in names.items():
        a = arrays[operand]
        at = np.arange(extents[name]) % max(1, a.shape[axis])
        arrays[operand] = np.take(a, at, axis) if a.shape[axis] else np.zeros(
            a.shape[:axis] + (extents[name],) + a.shape[axis + 1:], a.dtype)
    return arrays


def hostile(m, names, r):
    base = {name: m.arrays[operand].shape[axis] for name, (operand, axis) in names.items()}
    runs = [base]
    for name in names:
        runs += [{**base, name: max(0, base[name] + by)} for by in (-1, 1)] + [{**base, name: 1}]
    runs.append({name: r.choice([0, 1, base[name] + 2]) for name in names})
    runs.append({name: r.randrange(0, base[name] + 3) for name in names})
    runs = [run for k, run in enumerate(runs) if run not in runs[:k]]
    return [runs[0]] + r.sample(runs[1:], min(RUNS, len(runs) - 1))


def prepare(work):
    """Compiles and builds one; None, or why there is nothing to run."""
    m, seed, folder, options = work
    r = random.Random(f"{m.key} {seed}")
    model, names = opened(m, r)
    os.makedirs(folder)
    path, made = os.path.join(folder, "model.onnx"), os.path.join(folder, "package")
    onnx.save(model, path)
    bounds = [f"--dim={n}<={m.arrays[o].shape[a] + 3}" for n, (o, a) in names.items()]
    error = package.compile_model(options.lathe, path, made, "m", [*bounds, "--target", r.choice(mutants.targets())])
    if error:
        return error
    source, src = package.one_source(made), os.path.join(made, "src")
    flags = package.report(made)["target_cflags"].split()
    run = subprocess.run([*CC, *flags, "-shared", "-I", src, "-I", os.path.join(made, "include"), f"-Wa,-I{src}",
                          source, *(os.path.join(src, f) for f in ("tvmrt.c", "tvmrt_port_posix.c")), "-lm",
                          "-lpthread", "-o", os.path.join(folder, "m.so")], capture_output=True, text=True)
    if run.returncode != 0:
        return "cc: " + package.first_error(run.stderr)
    for k, extents in enumerate(hostile(m, names, r)):
        np.savez(os.path.join(folder, f"run{k}.npz"), **resized(m, names, extents))
    return None


def same(ours, theirs):
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, onnxruntime {list(theirs.shape)}"
    if ours.dtype.kind == "f":
        return None if np.allclose(ours, theirs, 1e-3, 1e-4, equal_nan=True) else "other numbers than onnxruntime's"
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max(initial=0)
    return None if difference <= (ours.dtype.itemsize == 1) else "other numbers than onnxruntime's"


def runs_of(folder):
    for k in range(100):
        path = os.path.join(folder, f"run{k}.npz")
        if not os.path.exists(path):
            return
        with np.load(path) as arrays:
            yield path[:-4], dict(arrays)


def child(folders, peer):
    """Runs packages one by one, or onnxruntime, and keeps the results; in a process of its own, which may die."""
    import ctypes

    package.GUARD, package.intact = 0, lambda buffer: True # operands are as large as they are: the sanitizer looks
    if peer:
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
    for folder in folders:
        print(json.dumps({"at": folder, "run": ""}), flush=True)
        session = library = None
        with contextlib.suppress(Exception):
            session = peer and onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"),
                                                            providers=["CPUExecutionProvider"])
        if not peer:
            library = ctypes.CDLL(os.path.join(folder, "m.so"))
        for path, inputs in runs_of(folder):
            print(json.dumps({"at": folder, "run": path}), flush=True)
            if peer:
                with contextlib.suppress(Exception):
                    names = [o.name for o in session.get_outputs()]
                    results = session.run(names, {i.name: inputs[i.name] for i in session.get_inputs()})
                    np.savez(path + ".theirs", **dict(zip(names, results)))
                continue
            try:
                np.savez(path + ".ours", **package.call(library, os.path.join(folder, "package"), "m", inputs))
            except package.Failure as failure:
                with open(path + ".status", "w") as f:
                    f.write(str(failure))


def run_all(folders, peer):
    """{run: what ended the process in it}"""
    environment = dict(os.environ)
    if not peer:
        found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        environment.update(LD_PRELOAD=found.stdout.strip(), ASAN_OPTIONS="detect_leaks=0")
    crashes, left = {}, list(folders)
    while left:
        part = left[:100]
        run = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", str(peer), *part],
                             capture_output=True, text=True, errors="replace", env=environment)
        left = left[len(part):]
        if run.returncode != 0:
            last = json.loads([s for s in run.stdout.splitlines() if s.startswith("{")][-1])
            lines = run.stderr.splitlines()
            told = [s for s in lines if "ERROR" in s or "runtime error" in s] or lines or ["no message"]
            where = [s.split(" in ")[-1].strip() for s in lines if "/package/" in s]
            crashes[last["run"] or last["at"]] = f"{told[0][:160]} {where[:1]}"
            left = part[part.index(last["at"]) + 1:] + left
    return crashes


def loaded(path):
    if not os.path.exists(path):
        return None
    with np.load(path) as arrays:
        return dict(arrays)


def judge(path, crashes):
    """What became of a run: one word, and more."""
    ours, theirs = loaded(path + ".ours.npz"), loaded(path + ".theirs.npz")
    if path in crashes:
        return "crash", crashes[path]
    if os.path.exists(path + ".status"):
        with open(path + ".status") as f:
            message = f.read()
        return ("failed" if "status" not in message else "strict" if theirs else "status"), message
    if not ours:
        return "failed", "it did not run"
    if not theirs:
        return "lenient", None
    bad = [f"{n}: {e}" for n in theirs if n in ours and (e := same(ours[n], theirs[n]))]
    return ("differs", "; ".join(bad)) if bad else ("equal", None)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--child":
        return child(sys.argv[3:], sys.argv[2] == "True")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--count", type=int, default=1, help="choices of axes for each model")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--each", type=int, default=2, help="models of each operator, by the first seed")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", metavar="DIR")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        root = os.path.abspath(options.keep or scratch)
        models = some(options, [m for m in [*contributed(), *official()] if fnmatch.fnmatch(m.key, options.filter)])
        work = [(m, seed, os.path.join(root, f"{m.key.replace('/', '_')}.{seed}"), options)
                for m in models for seed in range(options.first, options.first + options.count)]
        refused = dict(zip([w[2] for w in work], pool.map(prepare, work)))
        ready = [f for f, why in refused.items() if why is None]
        crashes = run_all(ready, False)
        run_all(ready, True)
        results = {f: [(path, inputs, *judge(path, crashes)) for path, inputs in runs_of(f)] for f in ready}
    return tell(options, refused, results)


def tell(options, refused, results):
    """The status of the script."""
    passed = failed = 0
    count = {"refused": 0}
    for folder, why in refused.items():
        broken = why and any(word in why for word in ("killed", "cc:", "[internal]", "no end"))
        failed += bool(broken)
        count["refused"] += why is not None
        if broken or (why and options.show):
            print(f"{'FAILED' if broken else 'refused'} {os.path.basename(folder)}: {why}")
    for folder, runs in results.items():
        for path, inputs, kind, message in runs:
            count[kind] = count.get(kind, 0) + 1
            base, whole = path.endswith("run0"), all(a.size for a in inputs.values())
            bad = kind in ("crash", "failed") or (kind == "differs" and whole) or (kind == "strict" and base)
            failed, passed = failed + bad, passed + (not bad)
            label = " ".join(f"{n}{list(a.shape)}" for n, a in inputs.items())
            if bad or (options.show and kind in ("lenient", "strict")):
                print(f"{'FAILED' if bad else kind} {os.path.basename(folder)} {label}: {kind} {message or ''}")
    print(", ".join(f"{v} {k}" for k, v in sorted(count.items())))
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
