#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a generated package promises besides right numbers.

    contract.py [--lathe FILE]

example     six operators in two branches, compiled at -O0: layers, files, function names, memory, 10.0 -> 23.0
fused       the same model by default: one operator, same result
names       --module-name replaces "default" everywhere
same bytes  two compiles of one model give the same files
two models  two packages with different names and one runtime in one program, run in turn
memory      ResNet-50 (when its generator is beside the checkout) is compiled in under 1 GB; times are for `make bench`
"""
import argparse
import ctypes
import filecmp
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import conformance
import models
import package

FILES = ["include/tvmgen_{}.h", "src/main.c", "src/{}_lib0.c", "src/{}_lib1.c", "src/tvmrt.h", "src/tvmrt.c",
         "src/tvmrt_port_posix.c", "src/model_data.c", "src/ops.c", "Makefile", "CMakeLists.txt", "report.json"]
NAMES = {
    "src/default_lib0.c": ["global_const_workspace", "global_workspace", "tvmgen_default_run"],
    "src/default_lib1.c": ["init_op_execs", "tvmgen_default___tvm_main__"],
    "src/model_data.c": ["model_get_descriptor", "model_get_tensor_map", "model_get_op_descs", "model_get_schedule",
                         "model_fill_args", "model_get_op_args", "g_tensor_map", "g_op_descs", "g_cpu_func_table",
                         "g_schedule_layers"],
    "src/ops.c": ["tvmgen_default_fused_add", "tvmgen_default_fused_add_1", "tvmgen_default_fused_add_2",
                  "tvmgen_default_fused_add_3", "tvmgen_default_fused_subtract", "tvmgen_default_fused_subtract_1",
                  "wrapped_fused_add", "wrapped_fused_subtract_1"],
    "src/tvmrt.c": ["tvmrt_log_push", "tvmrt_semantic_resolve_sid", "tvmrt_engine_run_single", "load_next_layer",
                    "worker_func"],
}


def expect(condition, message):
    if not condition:
        raise package.Failure(message)


def example(path):
    """x+1-2 and x+3-4+5, then their sum: two branches that run side by side."""
    constants = [numpy_helper.from_array(np.array([v], np.float32), f"c{v}") for v in range(1, 6)]
    node = helper.make_node
    nodes = [node("Add", ["input", "c1"], ["t1"]), node("Sub", ["t1", "c2"], ["t2"]),
             node("Add", ["input", "c3"], ["t3"]), node("Sub", ["t3", "c4"], ["t4"]),
             node("Add", ["t4", "c5"], ["t5"]), node("Add", ["t2", "t5"], ["output"])]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
    graph = helper.make_graph(nodes, "example", [value("input")], [value("output")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def compiled(lathe, model, folder, name="default", options=()):
    message = package.compile_model(lathe, model, folder, name, options)
    expect(message is None, message)
    return folder


def result(folder, work):
    message = package.make(folder, workers=2)
    expect(message is None, message)
    return package.run_program(folder, {"input": np.array([10], np.float32)}, work)["output"].tolist()


def check_example(lathe, work):
    folder = compiled(lathe, example(os.path.join(work, "example.onnx")), os.path.join(work, "out"), options=["-O0"])
    for path in FILES:
        expect(os.path.exists(os.path.join(folder, path.format("default"))), f"{path.format('default')} is missing")
    for path, names in NAMES.items():
        with open(os.path.join(folder, path)) as f:
            words = set(re.findall(r"\w+", f.read()))
        missing = [n for n in names if n not in words]
        expect(not missing, f"{path} lacks {', '.join(missing)}")
    about = package.report(folder)
    layers = [sorted(layer) for layer in about["layers"]]
    expect(layers == [[0, 2], [1, 3], [4], [5]], f"layers {layers}")
    expect(about["workspace_bytes"] <= 36 and about["constant_bytes"] <= 68,
           f"workspace {about['workspace_bytes']}, constants {about['constant_bytes']} bytes")
    expect(result(folder, work) == [23.0], "10.0 does not give 23.0")
    run = subprocess.run(["make", "-s", "-C", folder, "run"], capture_output=True, text=True)
    expect(run.returncode == 0, "make run fails")
    return f"workspace {about['workspace_bytes']}, constants {about['constant_bytes']} bytes"


def check_fused(lathe, work):
    folder = compiled(lathe, example(os.path.join(work, "example.onnx")), os.path.join(work, "out"))
    count = len(package.report(folder)["operators"])
    expect(count == 1, f"{count} operators instead of one")
    expect(result(folder, work) == [23.0], "10.0 does not give 23.0")
    return "one operator"


def check_names(lathe, work):
    folder = compiled(lathe, example(os.path.join(work, "example.onnx")), os.path.join(work, "out"), "other")
    for path in FILES:
        expect(os.path.exists(os.path.join(folder, path.format("other"))), f"{path.format('other')} is missing")
    for path in glob.glob(os.path.join(folder, "*", "*")):
        if not os.path.basename(path).startswith("tvmrt"):
            with open(path, errors="replace") as f:
                expect("tvmgen_default" not in f.read(), f"{os.path.basename(path)} still says tvmgen_default")
    expect(result(folder, work) == [23.0], "10.0 does not give 23.0")
    return ""


def check_same_bytes(lathe, work):
    model = os.path.join(models.TOP, "demo", "digits.onnx")
    first, second = (compiled(lathe, model, os.path.join(work, n)) for n in ("a", "b"))
    every = glob.glob(os.path.join(first, "**"), recursive=True)
    paths = [os.path.relpath(p, first) for p in every if os.path.isfile(p)]
    _, different, lost = filecmp.cmpfiles(first, second, paths, shallow=False)
    expect(paths and not different and not lost, f"{(different + lost)[:3]} differ")
    return f"{len(paths)} files"


def check_two_models(lathe, work):
    digits = os.path.join(models.TOP, "demo", "digits.onnx")
    folders = {"alpha": compiled(lathe, example(os.path.join(work, "example.onnx")), os.path.join(work, "a"), "alpha"),
               "beta": compiled(lathe, digits, os.path.join(work, "b"), "beta")}
    library = os.path.join(work, "both.so")
    command = ["cc", *conformance.CFLAGS, "-shared", "-o", library]
    for folder in folders.values():
        command += ["-I", os.path.join(folder, "include"), "-I", os.path.join(folder, "src")]
        command.append(package.one_source(folder))
    command += [os.path.join(folder, "src", f) for f in ("tvmrt.c", "tvmrt_port_posix.c")] + ["-lm", "-lpthread"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace")
    expect(run.returncode == 0, package.first_error(run.stderr))
    loaded = ctypes.CDLL(library)
    picture = {"image": np.full([1, 1, 8, 8], 8, np.float32)}
    (wanted,) = models.reference(digits, onnx.load(digits), [picture], False)
    for value in (10, 11):
        got = package.call(loaded, folders["alpha"], "alpha", {"input": np.array([value], np.float32)})
        expect(got["output"].tolist() == [2.0 * value + 3], f"alpha gives {got['output']} for {value}")
        models.check_close(package.call(loaded, folders["beta"], "beta", picture), wanted, False)
    return ""


def check_memory(lathe, work):
    (spec,) = [m for m in models.generated_models() if m.name == "resnet50"]
    if spec.skip:
        return None
    _, peak = package.measured([lathe, "compile", spec.write(work), "--emit", "c", "-o", os.path.join(work, "out")])
    line = f"compile {peak >> 20} MiB"
    expect(peak < 1e9, line)
    return line


CHECKS = {"example": check_example, "fused": check_fused, "names": check_names, "same bytes": check_same_bytes,
          "two models": check_two_models, "memory": check_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(models.TOP, "build", "lathe"))
    options = parser.parse_args()
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for name, check in CHECKS.items():
        with tempfile.TemporaryDirectory() as work:
            try:
                line = check(os.path.abspath(options.lathe), work)
                verdict = "skipped" if line is None else "ok"
            except package.Failure as failure:
                verdict, line = "FAILED", str(failure)
            except Exception as error:
                verdict, line = "FAILED", f"{type(error).__name__}: {error}".splitlines()[0][:200]
        counts[verdict] += 1
        print(f"{verdict} {name}: {line or ''}", flush=True)
    print(f"contract: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
