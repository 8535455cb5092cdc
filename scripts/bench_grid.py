#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each shape of the grid of test/py/grid.py against onnxruntime, in turns: `make bench ARGS=--grid`, or

    bench_grid.py [--lathe FILE] [--filter GLOB,GLOB] [--target T] [--cc CC[,CC]] [--workers N] [--turns N] [--json]
                  [-j N]

A line for each shape: onnxruntime's time, Lathe's, and the ratio, onnxruntime's time over Lathe's; then the geometric
mean and the ten worst, and those of the shapes that run longer than 20 microseconds, where the call says little. The
verdict is the reader's. Each package is built as a shared library and called beside onnxruntime's session in one
process. A time is that of the best turn, so that work beside does not count: of the processor with one worker, of the
clock with more. Shapes that onnxruntime has no operator or no type for are left out. With two compilers, --cc A,B, the
same package made by A stands where onnxruntime does.
"""
import argparse
import ctypes
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "test", "py"))
import grid  # noqa: E402

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "i64": np.int64, "i8": np.int8}
SHORT = 0.02  # milliseconds
TURN = 0.001  # seconds that a turn takes at least
REST = 0.01  # seconds between turns of several threads; onnxruntime's stop spinning after about one millisecond
PLAIN = {"add": "Add", "multiply": "Mul", "nn.relu": "Relu", "exp": "Exp", "gelu": "Gelu", "sigmoid": "Sigmoid",
         "sqrt": "Sqrt"}
WITH_AXIS = {"nn.softmax": "Softmax", "nn.log_softmax": "LogSoftmax", "take": "Gather", "concatenate": "Concat"}
REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax"}
WINDOWS = {"nn.max_pool": "MaxPool", "nn.avg_pool": "AveragePool", "nn.conv": "Conv"}
LINE = re.compile(r"(%\S+?)(?:, %\S+)* = (\S+?)\((.*?)\)(?: \{(.*)\})?$")
CONSTANT = re.compile(r"(%\S+) = constant (\w+)\[(.*?)\] (\w+) (.*)$")


class Model:
    """One result of a group as a model of ONNX."""

    def __init__(self, group):
        self.types = dict(re.match(r"(%p\d+): (.*)", i).groups() for i in group.inputs)
        self.lines, self.nodes, self.constants, self.inputs, self.done = {}, [], [], {}, set()
        self.limits = {}  # of inputs that are indices
        for line in group.lines:
            self.lines[re.match(r"%\w+", line)[0]] = line

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def value(self, name):
        """Adds what makes a value; false where ONNX has nothing for it."""
        if name in self.done:
            return True
        self.done.add(name)
        if name in self.types:
            dtype, dims = re.match(r"(\w+)\[(.*)\]", self.types[name]).groups()
            self.inputs[name] = (TYPES[dtype], [int(d) for d in dims.split(",") if d.strip()])
            return True
        fixed = CONSTANT.match(self.lines[name])
        return self.fixed(*fixed.groups()) if fixed else self.operator(name, *LINE.match(self.lines[name]).groups()[1:])

    def fixed(self, name, dtype, dims, form, text):
        dims = [int(d) for d in dims.split(",") if d.strip()]
        if form == "file":
            data = np.random.default_rng(0).standard_normal(dims).astype(TYPES[dtype]) * TYPES[dtype](0.1)
        else:
            data = np.array(json.loads(text), TYPES[dtype]).reshape(dims)
        self.constant(name, data)
        return True

    def operator(self, name, kind, operands, attributes):
        inputs = [i.strip() for i in operands.split(",")]
        a = {k: json.loads(v) for k, v in re.findall(r"(\w+) = (\[.*?\]|-?[\d.]+)", attributes or "")}
        if not all(self.value(i) for i in inputs):
            return False
        if kind == "take":
            self.limits[inputs[1]] = self.inputs[inputs[0]][1][a["axis"]]
        window = kind[:-2] if kind[-2:] in ("1d", "2d", "3d") else kind
        if kind in PLAIN:
            self.node(PLAIN[kind], inputs, name)
        elif kind in WITH_AXIS:
            self.node(WITH_AXIS[kind], inputs, name, axis=a.get("axis", -1))
        elif kind in REDUCTIONS:
            axes = self.constant(name + "_axes", np.array(a["axes"], np.int64))
            self.node(REDUCTIONS[kind], [*inputs, axes], name, keepdims=0)
        elif window in WINDOWS:
            attrs = {k: a[k] for k in ("strides", "pads", "dilations") if k in a}
            attrs |= {"group": a["groups"]} if "groups" in a else {}
            attrs |= {"kernel_shape": a["pool_size"]} if "pool_size" in a else {}
            self.node(WINDOWS[window], inputs, name, **attrs)
        elif kind == "argmax":
            self.node("ArgMax", inputs, name, axis=a["axis"], keepdims=0)
        elif kind == "transpose":
            self.node("Transpose", inputs, name, perm=a["perm"])
        elif kind == "nn.layer_norm":
            self.node("LayerNormalization", inputs, name)
        elif kind == "nn.matmul" and a.get("transpose_b") and any(inputs[1] == c.name for c in self.constants):
            self.node("Gemm", inputs, name, transB=1)
        elif kind == "nn.matmul" and not a:
            self.node("MatMul", inputs, name)
        elif kind == "lstm":
            self.node("LSTM", inputs, name, hidden_size=a["hidden_size"])
        else:
            return False
        return True

    def write(self, result, path):
        if not self.value(result):
            return False
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), d)
               for n, (t, d) in self.inputs.items()]
        out = helper.make_tensor_value_info(result, TensorProto.UNDEFINED, None)
        model = helper.make_model(helper.make_graph(self.nodes, "shape", ins, [out], self.constants),
                                  opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        inferred = {v.name: v for v in model.graph.value_info}
        if result in inferred:
            model.graph.output[0].CopyFrom(inferred[result])
        onnx.save(model, path)
        return True


    def operands(self):
        """An array for each input."""
        random, arrays = np.random.default_rng(1), {}
        for name, (dtype, dims) in self.inputs.items():
            limit = self.limits.get(name, 100)
            arrays[name] = (random.standard_normal(dims) if np.issubdtype(dtype, np.floating) else
                            random.integers(0, limit, dims)).astype(dtype)
        return arrays


def build(o, path, cc):
    """The model's package as a shared library; None and a message where it cannot be had."""
    package, library = f"{path}.{cc.split()[-1]}", f"{path}.{cc.split()[-1]}.so"
    steps = ([o.lathe, "compile", path, "--target", o.target, "--workers", str(o.workers), "-q", "-o", package],
             ["make", "-s", "-C", package, "lib", "CFLAGS=-O3 -fPIC", "CC=" + cc],
             [*cc.split(), "-shared", "-o", library, "-Wl,--whole-archive",
              os.path.join(package, "libtvmgen_default.a"), "-Wl,--no-whole-archive", "-lm", "-pthread"])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, done.stderr.strip()[:400]
    return library, ""


def caller_of_package(library, operands, results):
    """A function without arguments; the structs of a package are pointers in the model's order."""
    run = ctypes.CDLL(library).tvmgen_default_run
    ins = (ctypes.c_void_p * len(operands))(*(a.ctypes.data for a in operands))
    outs = (ctypes.c_void_p * len(results))(*(a.ctypes.data for a in results))
    run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int32
    ins_at, outs_at = ctypes.addressof(ins), ctypes.addressof(outs)

    def call(_keep=(operands, results, ins, outs)):
        return run(ins_at, outs_at)
    if call() != 0:
        raise RuntimeError("the package's run failed")
    return call


def caller_of_session(session, operands):
    binding = session.io_binding()
    for name, array in operands.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output(session.get_outputs()[0].name)
    session.run_with_iobinding(binding)
    result = binding.get_outputs()[0]
    binding.bind_ortvalue_output(session.get_outputs()[0].name, result)
    return (lambda: session.run_with_iobinding(binding)), result.numpy()


def in_turns(calls, turns, clock, rest=0):
    """The least seconds of a call, for each of them. The first call of a turn brings caches back, and is not timed.
    rest: seconds of sleep before each turn. The threads of the last caller look for work until then, and would take
    the processors of this one."""
    inner, best = [], []
    for call in calls:
        start, n = clock(), 0
        while n < 3 or clock() - start < TURN:
            call()
            n += 1
        inner.append(n)
        best.append(math.inf)
    for _ in range(turns):
        for i, call in enumerate(calls):
            time.sleep(rest)
            call()
            start = clock()
            for _ in range(inner[i]):
                call()
            best[i] = min(best[i], (clock() - start) / inner[i])
    return best


def clock_and_rest(workers):
    """Time of the processor with one worker, of the clock with more."""
    return (time.thread_time, 0) if workers <= 1 else (time.perf_counter, REST)


def in_session(o, model, path, libraries):
    """Calls of onnxruntime's session and of the package."""
    options, operands = onnxruntime.SessionOptions(), model.operands()
    options.intra_op_num_threads, options.log_severity_level = max(1, o.workers), 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    theirs, result = caller_of_session(session, operands)
    return theirs, caller_of_package(libraries[0], list(operands.values()), [np.empty_like(result)])


def of_compilers(_o, model, path, libraries):
    """Calls of the package as both compilers made it."""
    output, operands = onnx.load(path).graph.output[0].type.tensor_type, list(model.operands().values())
    dims = [d.dim_value for d in output.shape.dim]
    return [caller_of_package(i, operands, [np.empty(dims, helper.tensor_dtype_to_np_dtype(output.elem_type))])
            for i in libraries]


def times(o, model, path, libraries):
    """(onnxruntime's or the first compiler's, Lathe's) in ms; None: onnxruntime does not take it."""
    try:
        calls = (of_compilers if len(libraries) > 1 else in_session)(o, model, path, libraries)
    except Exception as e:  # onnxruntime's exceptions have no base of their own
        return None, str(e)[:160]
    return [t * 1e3 for t in in_turns(calls, o.turns, *clock_and_rest(o.workers))], ""


def summary(title, rows):
    if not rows:
        return
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
    print(f"\n{title}: {len(rows)} shapes, geometric mean {mean:.2f}; the worst:")
    for ratio, ort, own, name in rows[:10]:
        print(f"  {ratio:6.2f}  {own:9.4f} ms  {name}")


def chosen(o, work):
    """(name, model, path) of the shapes that ONNX has an operator for; how many it has none for."""
    jobs, left_out = [], 0
    for make in grid.GROUPS:
        group = make()
        for name, value in group.results:
            if any(fnmatch.fnmatch(name, glob) for glob in o.filter.split(",")):
                model, path = Model(group), os.path.join(work, f"{group.name}{len(jobs)}.onnx")
                if model.write(value, path):
                    jobs.append((name, model, path))
                else:
                    left_out += 1
    return jobs, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", metavar="GLOB,GLOB", help="names of shapes")
    parser.add_argument("--target", default="native")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), metavar="CC[,CC]", help="C compilers")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--json", action="store_true", help="a JSON object for each shape, no summary")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="packages built at once")
    o = parser.parse_args()
    o.lathe, rows, compilers = os.path.abspath(o.lathe), [], o.cc.split(",")
    peer = compilers[0] if len(compilers) > 1 else "onnxruntime"
    with tempfile.TemporaryDirectory(prefix="grid-") as work:
        jobs, left_out = chosen(o, work)
        with ThreadPoolExecutor(o.j) as pool:
            built = list(pool.map(lambda job: [build(o, job[2], cc) for cc in compilers], jobs))
        if not o.json:
            print(f"{'ratio':>7}  {peer:>12}  {'Lathe':>9}  shape")
        for (name, model, path), made in zip(jobs, built):
            libraries, error = [i for i, _ in made if i], "; ".join(e for _, e in made if e)
            found, error = (None, error) if error else times(o, model, path, libraries)
            if not found:
                print(f"left out: {name}: {error}", file=sys.stderr)
                left_out += 1
                continue
            rows.append((found[0] / found[1], *found, name))
            if o.json:
                print(json.dumps({"shape": name, peer + "_ms": found[0], "lathe_ms": found[1],
                                  "ratio": found[0] / found[1]}), flush=True)
            else:
                print(f"{rows[-1][0]:7.2f}  {found[0]:9.4f} ms  {found[1]:6.4f} ms  {name}", flush=True)
    rows.sort()
    if not o.json:
        summary("all", rows)
        summary("longer than 20 us", [r for r in rows if r[2] > SHORT])
        print(f"left out: {left_out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
