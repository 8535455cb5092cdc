#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every verb prints with --json, for good runs and for errors, against docs/reference/schema/lathe.json.

    documents.py [--lathe FILE] [--filter GLOB]

The schema allows keys that it does not know, so that a later version may add some. Here it does not: a key that is not
in the schema is a failure. Nothing but the document may be on standard output, and the exit status is the document's.
"""
import argparse
import copy
import fnmatch
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import jsonschema
import numpy as np
from onnx import TensorProto, helper, save

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIME_LIMIT = 300  # seconds, against hangs

GRAPH = """func @main(%x: f32[4, 16]) {
  %w = constant f32[16, 16] splat 0.5
  %s = nn.matmul(%x, %w) : f32[4, 16]
  %y = nn.relu(%s) : f32[4, 16]
  return %y
}
"""
COMPUTATION_PAGE = os.path.join("docs", "explanation", "vta.md")
VTA_PROGRAM = """config pynq
buffer a 128
buffer c 32
uop 0 0 0
load uop dram_base=uops y_size=1 x_size=1 x_stride=1
load acc dram_base=a y_size=1 x_size=2 x_stride=2
alu add push_next_dep uop_end=1 iter_out=1 iter_in=2 dst_factor_in=1 use_imm imm=1
store out pop_prev_dep push_prev_dep dram_base=c y_size=1 x_size=2 x_stride=2
finish pop_next_dep
"""


def page_block(number):
    """The text block of that number, from 1, on the page about VTA."""
    with open(os.path.join(TOP, COMPUTATION_PAGE), encoding="utf-8") as f:
        return f.read().split("```text\n")[number].split("```")[0]


def write_model(folder, name, node, inputs, output):
    """A model of one node."""
    graph = helper.make_graph([node], "g", inputs, [output])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), os.path.join(folder, name))


def write_inputs(folder):
    """The files that the cases name."""
    texts = {"graph.txt": GRAPH, "add.txt": VTA_PROGRAM, "wrong.txt":
             GRAPH.replace("nn.relu(%s)", "nn.relu(%missing)"), "board.txt": "sram ram 512K - 3\nflash rom 1M - 4\n",
             "gemm.te": page_block(1) + "--- schedule\n" + page_block(2)}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    with open(os.path.join(folder, "cut.onnx"), "wb") as f, open(f"{TOP}/demo/digits.onnx", "rb") as whole:
        f.write(whole.read()[:2000])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    ways = [helper.make_graph([helper.make_node(kind, ["x"], ["y"])], kind, [], [y]) for kind in ("Relu", "Neg")]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    either = helper.make_node("If", ["c"], ["y"], then_branch=ways[0], else_branch=ways[1])
    write_model(folder, "odd.onnx", helper.make_node("NoSuchOperator", ["x"], ["y"], "odd"), [x], y)
    write_model(folder, "branch.onnx", either, [condition, x], y)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    write_model(folder, "open.onnx", helper.make_node("Relu", ["x"], ["y"]), [x], y)
    np.save(os.path.join(folder, "samples.npy"), np.random.default_rng(0).random((8, 1, 8, 8), dtype=np.float32))


def good():
    """Name, words, exit status. In this order: some take what others have made. DIGITS and QUANTIZED are models."""
    vta = ["--target", "vta"]
    yield from ((" ".join(words), words, status) for words, status in (
        (["compile", "DIGITS", "-o", "package"], 0),
        (["compile", "DIGITS", "-o", "small", "--target", "cortex-m4", "--port", "baremetal", "--ram", "64K"], 0),
        (["compile", "DIGITS", "-o", "placed", "--target", "cortex-m4", "--memory", "board.txt"], 0),
        (["compile", "DIGITS", "-o", "offloaded", "--offload", "xnnpack"], 0),
        (["compile", "graph.txt", "-o", "m.so", "--emit", "module"], 0),
        (["compile", "graph.txt", "--emit", "graph"], 0),
        (["compile", "graph.txt", "--emit", "tir", "-o", "loops.txt"], 0),
        (["compile", "gemm.te", *vta, "-o", "kernel"], 0),
        (["compile", "gemm.te", *vta, "-o", "gemm.c"], 0),
        (["run", "DIGITS", "--interpret"], 0),
        (["run", "gemm.te", *vta, "--cycle"], 0),
        (["verify", "graph.txt", "--against", "interpreter"], 0),
        (["verify", "graph.txt", "--against", "interpreter", "--per-node"], 0),
        (["verify", "DIGITS", "--against", "onnxruntime", "--interpret", "--rtol", "0", "--atol", "0"], 1),
        (["verify", "QUANTIZED", "--against", "onnxruntime", "--interpret", "--integers", "--seeds", "2"], None),
        (["verify", "gemm.te", *vta, "--against", "interpreter"], 0),
        (["verify", "graph.txt", "--target", "qemu-m4", "--against", "interpreter"], 0),
        (["bench", "graph.txt", "--repeat", "1", "--workers", "1"], 0),
        (["schedule", "graph.txt", "-o", "some.schedules"], 0),
        (["schedule", "graph.txt"], 0),
        (["compile", "graph.txt", "-o", "scheduled", "--target", "native", "--schedules", "some.schedules"], 0),
        (["bench", "graph.txt", "--repeat", "1", "--workers", "1", "--schedules", "some.schedules", "--against",
          "lathe"], 0),
        (["bench", "graph.txt", "--repeat", "1", "--profile"], 0),
        (["inspect", "DIGITS"], 0),
        (["inspect", "DIGITS", "--target", "cortex-m4", "--minimize", "ram"], 0),
        (["inspect", "DIGITS", "--offload", "xnnpack"], 0),
        (["inspect", "LABELS"], 0),
        (["inspect", "open.onnx"], 0),
        (["inspect", "open.onnx", "--dim", "n<=8"], 0),
        (["inspect", "branch.onnx"], 0),
        (["inspect", "package"], 0),
        (["inspect", "m.so"], 0),
        (["tune", "graph.txt", "-o", "tuned.schedules", "--candidates", "2"], 0),
        (["opt", "graph.txt"], 0),
        (["opt", "graph.txt", "-o", "opt.txt", "--print-after-all"], 0),
        (["quantize", "DIGITS", "--data", "samples.npy", "-o", "q.onnx"], 0),
        (["targets"], 0),
        (["vta", "asm", "add.txt", "-o", "add.bin"], 0),
        (["vta", "disasm", "add.bin"], 0),
        (["vta", "conv2d", "height=14,width=14,in_channels=16,out_channels=16"], 0),
        (["vta", "conv2d", "height=14,width=14,in_channels=16,out_channels=16", "-o", "layer"], 0),
        (["vta", "run", "add.txt"], 0),
        (["vta", "trace", "add.txt"], 0),
        (["vta", "model", "QUANTIZED", "--offload", "vta"], 0),
    ))


def bad(verbs):
    """The same of errors: a word that is wrong before --json, no file, files that say where they are wrong."""
    for verb in verbs:
        yield f"{verb}: no such option", [*verb.split(), "--no-such-option"], 2
        if verb not in ("targets", "vta bench"):
            yield f"{verb}: no argument", verb.split(), 2
    for verb in ("compile", "run", "verify", "bench", "inspect", "schedule", "tune", "quantize"):
        more = {"compile": ["-o", "out"], "verify": ["--against", "interpreter"], "tune": ["-o", "t.schedules"],
                "quantize": ["-o", "out.onnx", "--data", "samples.npy"]}.get(verb, [])
        for file in ("missing.onnx", "wrong.txt", "cut.onnx", "odd.onnx"):
            yield f"{verb} {file}", [verb, file, *more], 1
    yield "opt wrong.txt", ["opt", "wrong.txt"], 1
    yield "no memory", [], 3
    yield "vta run", ["vta", "run", "graph.txt"], 1
    yield "vta model", ["vta", "model", "graph.txt", "--offload", "vta"], 1


def close(schema):
    """The schema without room for keys that it does not name."""
    if isinstance(schema, list):
        for one in schema:
            close(one)
    elif isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for key, one in schema.items():
            if key != "allOf":  # what follows from a name or a status: it says more of keys that are known
                close(one)
    return schema


class Checker:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        with open(os.path.join(TOP, "docs", "reference", "schema", "lathe.json"), encoding="utf-8") as f:
            schema = json.load(f)
        jsonschema.Draft202012Validator.check_schema(schema)
        self.validator = jsonschema.Draft202012Validator(close(copy.deepcopy(schema)))
        self.names = schema["properties"]["schema"]["properties"]["name"]["enum"]
        self.seen, self.failed, self.passed = {}, 0, 0

    def wrong(self, words, status, most=resource.RLIM_INFINITY):
        """What is wrong with one run; None: nothing. most: bytes of memory that it can have."""
        files = {"DIGITS": "demo/digits.onnx", "QUANTIZED": "demo/residual_vta.onnx",
                 "LABELS": "demo/digits_int8.tflite"}
        command = [self.options.lathe, *(os.path.join(TOP, files[w]) if w in files else w for w in words), "--json"]
        done = subprocess.run(command, capture_output=True, cwd=self.folder, timeout=TIME_LIMIT,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
                              env=dict(os.environ, CFLAGS="-O0", LATHE_PYTHON=sys.executable))
        try:
            document = json.loads(done.stdout.decode("utf-8"))
        except ValueError as e:
            return f"no JSON: {e}: {done.stdout[:200]!r} {done.stderr[:200]!r}"
        error = jsonschema.exceptions.best_match(self.validator.iter_errors(document))
        if error:
            return f"{'/'.join(str(p) for p in error.absolute_path)}: {error.message[:300]}"
        if status is not None and done.returncode != status:
            return f"status {done.returncode} instead of {status}: {done.stderr.decode()[:200]}"
        if document["status"] != done.returncode:
            return f"it says status {document['status']}, and ended with {done.returncode}"
        if done.returncode and not any(d["severity"] == "error" for d in document["diagnostics"]):
            return "no error in the diagnostics"
        said = [line.split(": ")[0] for line in done.stderr.decode().splitlines()]
        listed = [d["severity"] for d in document["diagnostics"]]
        if [s for s in said if s in ("note", "warning", "error")] != listed:
            return f"the diagnostics are {listed}, and standard error has {said}"
        self.seen.setdefault(document["schema"]["name"], set()).add(done.returncode)
        return None

    def without_memory(self):
        """The first limit, from above, that is too small leads to a document."""
        found = ""
        for mib in range(64, 2, -2):
            why = self.wrong(["inspect", "DIGITS"], 3, mib << 20)
            if not why:
                return None
            if not why.startswith("status 0"):
                found = f"{mib} MiB: {why}"
                break
        return found or "there is always enough"

    def case(self, name, words, status):
        why = self.wrong(words, status) if words else self.without_memory()
        self.passed, self.failed = self.passed + (not why), self.failed + bool(why)
        if why:
            print(f"FAILED {name}: {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", help="of the names of cases")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    boards = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(options, folder)
        write_inputs(folder)
        verbs = [n.removeprefix("lathe.").replace(".", " ") for n in checker.names]
        for name, words, status in [*good(), *bad(verbs)]:
            if fnmatch.fnmatch(name, options.filter) and ("qemu-m4" not in words or boards):
                checker.case(name, words, status)
        for name in checker.names if options.filter == "*" else []:
            wanted = {2} if name == "lathe.vta.bench" else {0, 2}  # a good run of that one takes long
            lacking = wanted - checker.seen.get(name, set())
            if lacking:
                checker.failed += 1
                print(f"FAILED {name}: no run ended with {sorted(lacking)}")
    print(f"documents: {checker.passed} passed, {checker.failed} failed")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
