#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks: each is compiled to a C package, built by the package's Makefile, run by its program, and compared.

    models.py [--lathe FILE] [--filter GLOB] [-j N] [--keep DIR]

Models: the demo's; the nine light models of the onnx wheel as they are, and again with their constant weights replaced
by seeded random ones (as they are, their outputs hardly depend on the input); networks written by gen_models.py and the
MLPerf Tiny files when a folder beside the checkout, or LATHE_ZOO, has bench/models/gen_models.py and
models/mlperf-tiny.

Each model counts as one test, which holds when: two seeded random inputs give what onnxruntime gives, within
|a - b| <= 1e-3 |b| + 1e-4 max|b| for float models; for models with quantised edges (compared with floats, where a value
half-way between two steps may round to the other one) within 2 % of max|b|; the two outputs differ by ten times what
is allowed (once for quantised models; not asked of the constant-weight ones); the workspace is within 10 % of the lower
bound in report.json, or above it by the scratch of one operator's parts; for three targets, with 2 and 4 workers, no
loop that should be vectors is left serial, none keeps a guard because of a limit, and no worker is idle where there is
work for all of them (but for IDLE, and the constant-weight ones); `lathe verify` agrees where the model is small. What
is left undone is asked of quantised networks in integers, too, which do not run here.
"""
import argparse
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import cases as official
import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETWORKS = ("resnet18", "resnet50", "mobilenetv2", "squeezenet11", "minilm")
INTEGERS = ("resnet18_qdq", "resnet50_qdq", "mobilenetv2_qdq", "squeezenet11_qdq", "minilm_dynq")  # looked at, not run
# (model, kind of operator) in which workers may be idle, and why
IDLE = (
    ("*", "mean", "planes of one picture: a few microseconds, of which another worker would take one or two"),
    ("minilm_dynq", "min", "one number of all, beside max: a chain of comparisons in lanes, as fast as data arrives"),
    ("minilm_dynq", "max", "the same beside min"),
    ("tiny_ic_qdq", "qnn.conv2d_winograd+*", "four tiles in all: a third worker would transform the input once more"),
)
VERIFY_BELOW = 20 << 20  # bytes of model file; larger ones would be built twice for little
SPREAD = ("Unsqueeze", "Reshape", "Identity", "Transpose", "Squeeze")


@dataclass
class Model:
    name: str
    write: Callable[[str], str]  # folder -> path of the ONNX file
    varies: bool = True  # two inputs must give two outputs
    settings: tuple = ()  # of the package's Makefile; -O3 stands there
    quantised: bool = False
    integers: bool = False  # what computes in integers is looked at, nothing runs
    skip: str = ""


# ---- Where the models come from ------------------------------------------------------------------


def filled(rng, shape, operator, position, transposed):
    """A seeded random weight, scaled for its consumer so that activations keep their size."""
    if operator in ("Conv", "Gemm", "MatMul") and position == 1:
        fan_in = int(np.prod(shape[1:])) if operator == "Conv" or transposed else int(shape[0])
        return rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / max(1, fan_in)))
    if (operator == "BatchNormalization" and position in (1, 4)) or operator in ("Mul", "Div"):
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    return rng.standard_normal(shape, np.float32) * np.float32(0.05)


def consumer(model, name):
    """(operator, operand position, transB) of what uses a value, looking through reshapes."""
    for node in model.graph.node:
        if name in node.input:
            if node.op_type in SPREAD:
                return consumer(model, node.output[0])
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            return node.op_type, list(node.input).index(name), transposed
    return "", 0, False


def last_layer(model):
    """The last Conv or Gemm: what it gives goes into the softmax."""
    return [n for n in model.graph.node if n.op_type in ("Conv", "Gemm")][-1]


def temper(model):
    """Scales the last layer so that its outputs have deviation 2: the softmax then neither saturates nor flattens."""
    layer = last_layer(model)
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.ValueInfoProto(name=layer.output[0]))
    session = session_of(probe.SerializeToString())
    scale = np.float32(2 / session.run(None, random_inputs(model, 1))[0].std())
    for initializer in model.graph.initializer:
        if initializer.name in layer.input[1:]:
            initializer.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(initializer) * scale, initializer.name))


def randomised(path, seed=0):
    """The light model at `path` with every ConstantOfShape replaced by an initialiser of random numbers."""
    model = onnx.load(path)
    rng = np.random.default_rng(seed)
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    splats = [n for n in model.graph.node if n.op_type == "ConstantOfShape"]
    for node in splats:
        weight = filled(rng, [int(d) for d in shapes[node.input[0]]], *consumer(model, node.output[0]))
        model.graph.initializer.append(numpy_helper.from_array(weight, node.output[0]))
        model.graph.node.remove(node)
    model.ir_version = max(model.ir_version, 4)  # from 4 on an initialiser need not be an input as well
    weights = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    temper(model)
    return model


def light_models():
    for case in official.find():
        if case.kind == "light":
            name = "light_" + case.name.removeprefix("test_")
            yield Model(name, lambda folder, path=case.model: path, varies=False, settings=("CFLAGS=-O1",))

            def write(folder, path=case.model):
                out = os.path.join(folder, "random.onnx")
                onnx.save(randomised(path), out)
                return out

            yield Model(name + "_random", write)


def zoo_folders():
    """Folders that may hold gen_models.py and the MLPerf Tiny files: LATHE_ZOO, else the checkout's neighbors."""
    if "LATHE_ZOO" in os.environ:
        return [os.environ["LATHE_ZOO"]]
    return sorted(glob.glob(os.path.join(os.path.dirname(TOP), "*", "")))


def find_in_zoo(*path):
    return next((p for root in zoo_folders() for p in glob.glob(os.path.join(root, *path))), None)


def generated_models(names=NETWORKS):
    script = find_in_zoo("bench", "models", "gen_models.py")
    for name in names:
        def write(folder, name=name):
            subprocess.run([sys.executable, script, folder, name], check=True, capture_output=True)
            return os.path.join(folder, name + ".onnx")

        yield Model(name, write, integers=name in INTEGERS,
                    skip="" if script else "no gen_models.py beside the checkout")


def tiny_models():
    folder = find_in_zoo("models", "mlperf-tiny", "")
    for name in ("ad_qdq", "ic_float", "ic_qdq", "kws_qdq", "vww_float", "vww_qdq"):
        path = os.path.join(folder or "", name + ".onnx")
        yield Model("tiny_" + name, lambda _, path=path: path, quantised=name.endswith("qdq"),
                    skip="" if folder and os.path.exists(path) else "no MLPerf Tiny models beside the checkout")


def all_models():
    yield Model("demo_digits", lambda _: os.path.join(TOP, "demo", "digits.onnx"))
    yield from tiny_models()
    yield from generated_models()
    yield from light_models()


# ---- One model -----------------------------------------------------------------------------------


def patches(rng, shape):
    """Large random squares, so that pictures differ in more than noise, which pooling would average away."""
    if len(shape) != 4:
        return rng.standard_normal(shape)
    side = max(1, max(shape) // 7)
    coarse = rng.standard_normal([*shape[:2], *[-(-d // side) for d in shape[2:]]])
    return coarse.repeat(side, axis=2).repeat(side, axis=3)[:, :, : shape[2], : shape[3]]


def random_inputs(model, seed):
    """Inputs by name; a larger seed also makes larger numbers, which normalisation does not level out."""
    rng = np.random.default_rng(seed)
    weights = {i.name for i in model.graph.initializer}
    inputs = {}
    for info in model.graph.input:
        if info.name in weights:
            continue
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if np.dtype(dtype).kind == "f":
            inputs[info.name] = (seed * (rng.standard_normal(shape) * 0.5 + patches(rng, shape))).astype(dtype)
        else:
            inputs[info.name] = rng.integers(0, 2, shape).astype(dtype)
    return inputs


def session_of(model, plain=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reference(path, model, inputs, quantised):
    session = session_of(path, plain=quantised)  # no integer kernels: the same float arithmetic between quantised edges
    names = [o.name for o in model.graph.output]
    return [dict(zip(names, session.run(names, i))) for i in inputs]


def allowed(want, quantised):
    """The difference that is allowed, per element."""
    scale = np.abs(want).max() if want.size else 0
    return np.full(want.shape, 0.02 * scale) if quantised else 1e-3 * np.abs(want) + 1e-4 * scale


def check_close(got, want, quantised):
    for name, b in want.items():
        a = got[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            raise package.Failure(f"output {name}: {a.dtype}{list(a.shape)}, {b.dtype}{list(b.shape)} is expected")
        if not np.isfinite(b.astype(np.float64)).all():
            raise package.Failure(f"output {name}: the reference is not finite, so it proves nothing")
        error = np.abs(a.astype(np.float64) - b)
        excess = error > allowed(b, quantised)
        if excess.any():
            raise package.Failure(f"output {name}: {int(excess.sum())} of {b.size} values differ, by at most "
                                  f"{error.max():.3g} where the largest is {np.abs(b).max():.3g}")


def check_differ(first, second, quantised):
    """The outputs of two inputs differ clearly: else agreeing with the reference would prove little."""
    factor = 1 if quantised else 10
    if not any((np.abs(first[n] - second[n]) > factor * allowed(first[n], quantised)).any() for n in first):
        raise package.Failure("two inputs give nearly the same output")


def check_workspace(folder):
    about = package.report(folder)
    used, bound = about["workspace_bytes"], about["workspace_lower_bound_bytes"]
    # The bound counts one part's scratch; what the others have for themselves comes before memory.
    apart = max(o["scratch_bytes"] * (o["tasks"] - 1) // o["tasks"] for o in about["operators"])
    if used > max(1.10 * bound, bound + apart):
        raise package.Failure(f"workspace {used} bytes is {used / max(1, bound):.2f} times the lower bound {bound}")
    return f"workspace {used} = {used / max(1, bound):.3f} x bound"


def may_idle(spec, kind):
    return not spec.varies or any(fnmatch.fnmatch(spec.name, m) and fnmatch.fnmatch(kind, k) for m, k, _ in IDLE)


def check_nothing_left(lathe, path, spec):
    """Every loop that asked for lanes got them and no cutting of loops was given up, for vectors of every width; no
    worker is idle where there is work for all of them."""
    for target in ("x86-64-v3", "x86-64-v4-vnni" if spec.integers else "x86-64-v4", "aarch64"):
        for workers in ("2", "4"):
            command = [lathe, "inspect", path, "--json", "--target", target, "--workers", workers]
            run = subprocess.run(command + ["--integers"] * spec.integers, capture_output=True, check=True)
            about = json.loads(run.stdout)["result"]
            for key in ("loops_left_serial", "loops_left_whole", "workers_idle"):
                kernels = sorted({o["kernel"] for o in about["operators"]
                                  if o[key] and not (key == "workers_idle" and may_idle(spec, o["kind"]))})
                if kernels:
                    raise package.Failure(f"{target}, {workers} workers: {key} in {', '.join(kernels)[:200]}")


def verify(lathe, path):
    command = [lathe, "verify", path, "--against", "onnxruntime", "--rtol", "1e-3", "--atol", "1e-4"]
    environment = package.environment("-O1")
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if run.returncode != 0:
        lines = (run.stderr or run.stdout).strip().splitlines() or ["no message"]
        raise package.Failure(f"verify: status {run.returncode} {lines[0][:160]}")


def check_module(lathe, path, folder, inputs, got, settings, work):
    """The model as a portable module for the package's target: its numbers are the package's, bit for bit, where both
    are compiled with the same flags."""
    about = package.report(folder)
    module = os.path.join(work, "model.so")
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(work, "cache"), LATHE_VECTOR_BYTES="32")
    command = [lathe, "compile", path, "--emit", "module", "--target", about["target"], "-q", "-o", module]
    commands = [command, [lathe, "run", module, "--output-dir", os.path.join(work, "of_module")]]
    for i, entry in enumerate(about["inputs"]):
        file = os.path.join(work, f"module_in{i}.bin")
        package.check_input(entry, inputs).tofile(file)
        commands[1] += ["--input", f"{entry['name']}={file}"]
    for command in commands:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        if run.returncode != 0:
            raise package.Failure(f"module: {' '.join(command[1:3])}: {run.stderr.strip().splitlines()[0][:200]}")
    for entry in about["outputs"]:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", entry["name"])
        numbers = np.load(os.path.join(work, "of_module", name + ".npy"))
        wanted = got[entry["name"]]
        if settings:
            np.testing.assert_allclose(numbers, wanted, rtol=1e-3, atol=1e-4, err_msg="module")
        elif numbers.tobytes() != wanted.tobytes():
            raise package.Failure(f"module: output {entry['name']} is not the package's, bit for bit")


def check_model(spec, lathe, work):
    """Returns a line about the model; raises package.Failure."""
    path = spec.write(work)
    if spec.integers:
        check_nothing_left(lathe, path, spec)
        return "nothing is left undone"
    model = onnx.load(path)
    folder = os.path.join(work, "package")
    message = package.compile_model(lathe, path, folder, "default") or package.make(folder, settings=spec.settings)
    if message:
        raise package.Failure(message)
    inputs = [random_inputs(model, seed) for seed in (1, 2)]
    wanted = reference(path, model, inputs, spec.quantised)
    got = [package.run_program(folder, i, os.path.join(work, f"run{k}")) for k, i in enumerate(inputs)]
    for a, b in zip(got, wanted):
        check_close(a, b, spec.quantised)
    if spec.varies:
        check_differ(*got, spec.quantised)
    about = check_workspace(folder)
    check_nothing_left(lathe, path, spec)
    check_module(lathe, path, folder, inputs[0], got[0], spec.settings, work)
    if os.path.getsize(path) < VERIFY_BELOW and not spec.quantised and spec.varies:
        verify(lathe, path)
        about += ", verify agrees"
    return about


def run_one(spec, options):
    """(verdict, line) of one model."""
    if spec.skip:
        return "skipped", spec.skip
    work = tempfile.mkdtemp(prefix=f"model-{spec.name}-", dir=options.keep)
    try:
        return "ok", check_model(spec, options.lathe, work)
    except package.Failure as failure:
        return "FAILED", str(failure)
    except Exception as error:
        return "FAILED", re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:300]
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", metavar="DIR", help="leave packages in DIR")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    models = [m for m in [*all_models(), *generated_models(INTEGERS)] if fnmatch.fnmatch(m.name, options.filter)]
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    with ThreadPoolExecutor(options.jobs) as pool:
        for spec, (verdict, line) in zip(models, pool.map(lambda m: run_one(m, options), models)):
            counts[verdict] += 1
            print(f"{verdict} {spec.name}: {line}", flush=True)
    print(f"models: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
