#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option has an effect on each artifact that it is given for, or is refused with a message.

    options.py [--lathe FILE] [-j N] [--filter GLOB] [-v]

The options are those of src/api/options.def; ROWS says for each one on which model its effect shows, and with what
beside it. `compile` is run with and without it for each kind of artifact (--emit), and so are `inspect` and `schedule`:
what is written or printed has to be another one, or the command line is refused (status 2). So it is for packages at
-O 0 and -O 1. `run`, `verify` and `bench` have to refuse what `compile` refuses for the same artifact; they get a C
compiler that fails, so that nothing is built. RUN_ROWS has their other options: `run` and `verify` try them on a model,
a package and a module, where the answer has to be another one, or a refusal. What is compiled already refuses the
options of a compile. An option without a row fails the test."""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from package import TIME_LIMIT
from quantised import Model

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EMIT = ("c", "module", "graph", "prog", "schedule", "tir")
RUNS = ("run", "verify", "bench")
CORTEX = ["--target", "cortex-m4"]

# Option: its value, or None for a switch; model; what else is given. The first row that shows an effect does.
ROWS = {
    "module-name": [("kws", "conv", [])],
    "target": [("aarch64", "conv", [])],
    "widths": [("16", "conv", [])],
    "host": [("aarch64", "conv", [])],
    "with-interpreter": [(None, "conv", [])],
    "port": [("freertos", "conv", [])],
    "as": [("zephyr", "conv", [])],
    "example": [(None, "conv", [])],
    "memory": [("@memory", "conv", CORTEX)],
    "constants": [("bin", "conv", [])],
    "shape": [("x=5x4", "open", ["--dim", "n<=9"])],
    "dim": [("n<=5", "open", ["--dim", "n<=9"])],
    "bind": [("k=1", "bound", [])],
    "state": [("y=x", "bound", [])],
    "signature": [("serving_default", "conv", [])],
    "string-bytes": [("5", "words", [])],
    "bound": [("found=2", "found", ["--dim", "n=3"])],
    "workers": [("2", "conv", [])],
    "opt-level": [("0", "conv", [])],
    "no-winograd": [(None, "wide", [])],
    "trees": [("branches", "trees", [])],
    "no-split-data": [(None, "split", ["--target", "x86-64-v3"])],
    "integers": [(None, "quantised", ["--target", "generic"]), (None, "quantised", ["--target", "x86-64-v2"])],
    "requant": [("tflite", "quantised", [])],
    "names": [("short", "conv", [])],
    "share-kernels": [("shape", "conv", ["--target", "generic"])],
    "input-in-workspace": [(None, "conv", [])],
    "quantized-io": [(None, "quantised", [])],
    "allow-float-io": [(None, "half", ["--quantized-io"])],
    "ram": [("5K", "quantised", CORTEX)],
    "minimize": [("ram", "quantised", CORTEX)],
    "schedules": [("@schedules", "conv", ["--target", "x86-64-v3"])],
    "report": [("@out/r.json", "conv", [])],
    "html": [("@out/p.html", "conv", [])],
    "json": [(None, "conv", [])],
    "quiet": [(None, "conv", [])],
    "print-after-all": [(None, "conv", [])],
    "offload": [("vta", "vta", [])],
    "offload-least": [("1000000000", "vta", ["--offload", "vta"])],
    "bind-constants": [(None, "vta", ["--offload", "vta"])],
    "vta-config": [("1x32_i8w8a32_15_15_18_17", "vta", ["--offload", "vta"])],
    "schedule": [("@split", "rows", []), ("@gemm.sched", "gemm", ["--target", "vta"])],
    "capture": [(None, "gemm", ["--target", "vta", "--schedule", "@gemm.sched"])],
}
# What shows nothing in what is written, with the reason, or is tested elsewhere.
ELSEWHERE = {
    "output": "where it is written", "emit": "the artifact itself", "help": "no compile",
    "load-ops": "test/cli/add_an_op.sh", "load-codegen": "test/cli/target_hook.sh",
    "patterns": "test/cli/offload.sh",
    "profile": "of inspect: with --html", "loss": "test/cli/page.sh", "compare": "test/cli/page.sh",
    "plan-effort": "a longer search may find the same plan: only where a plan is made",
}
# Where an option may show nothing, and why it is taken all the same.
SILENT = {
    ("workers", "prog"): "they bound the scratch of Winograd's form, and so whether it is chosen",
    ("schedules", "graph"): "records of lathe tune choose forms of operators; a schedule alone says nothing there",
    ("schedules", "prog"): "as in the graph",
    ("state", "schedule"): "it says where an output lies, which may leave the kernels as they are",
    ("state", "tir"): "as in the schedule",
    ("state", ""): "lathe schedule shows the kernels",
    ("offload-least", "O0"): "the accelerator takes nothing of this model, which is told",
    ("bind-constants", "O0"): "as offload-least",
}


# The other options of `run` and `verify`: value, and what else is given for a verb and an artifact, where that is not
# what GIVEN has.
DATA, TWIN = ["--data", "@data"], ["--against", "interpreter"]
GIVEN = {
    ("run", "model"): ["--workers", "0"], ("run", "package"): [], ("run", "file"): ["--no-jit"],
    ("verify", "model"): ["--workers", "0"] + TWIN, ("verify", "package"): DATA,
    ("verify", "file"): ["--no-jit"] + DATA,
}
RUN_ROWS = {
    "meta": ("@memory", {}),
    "no-jit": (None, {"run/file": [], "verify/file": DATA}),
    "keep-sources": ("@out/sources", {"run/file": [], "verify/file": DATA}),
    "trace": (None, {}),
    "model": ("@bound.onnx", {}),
    "input": ("k=@number.npy", {"verify/package": DATA, "verify/file": ["--no-jit"] + DATA}),
    "data": ("@data", {"verify/package": [], "verify/file": ["--no-jit"]}),
    "seed": ("5", {"verify/package": DATA, "verify/file": ["--no-jit"] + DATA}),
    "seeds": ("3", {}),
    "steps": ("3", {}),
    "output-dir": ("@out/results", {}),
    "interpret": (None, {"run/model": [], "verify/model": DATA}),
    "emulator": ("/no/such", {"run/model": ["--workers", "0", "--target", "generic"],
                              "verify/model": ["--workers", "0", "--target", "generic"] + TWIN}),
    "keep": ("@out/kept", {}),
    "against": ("c", {"verify/model": ["--workers", "0"]}),
    "per-node": (None, {}),
    "rtol": ("1e-9", {"verify/model": ["--workers", "0", "--atol", "0", "--data", "@near"],
                      "verify/package": ["--atol", "0", "--data", "@near"],
                      "verify/file": ["--no-jit", "--atol", "0", "--data", "@near"]}),
    "atol": ("1e-9", {"verify/model": ["--workers", "0", "--rtol", "0", "--data", "@near"],
                      "verify/package": ["--rtol", "0", "--data", "@near"],
                      "verify/file": ["--no-jit", "--rtol", "0", "--data", "@near"]}),
    "json": (None, {}),
    "cycle": (None, {}), "timeline": ("@out/t.json", {}), "profile": ("hls", {}), "bus-bits": ("64", {}),
    "latency": ("9", {}),
    "key": ("board", {}), "token-file": ("@memory", {}),
    "remote": ("127.0.0.1:1", {}), "tracker": ("127.0.0.1:1", {}),
}
# Options of a compile that are for a run, too.
OF_RUNS = ("workers", "dim", "emit", "json")


def table():
    """{verb: options that it has}, from src/api/options.def."""
    with open(os.path.join(TOP, "src", "api", "options.def"), encoding="utf-8") as f:
        text = f.read()
    verbs = re.findall(r'^VERB\(VERB_(\w+), "([\w-]+)"', text, re.M)
    sets = dict(re.findall(r"^#define (BUILDS|RUNS) (\(.*\))$", text, re.M))
    has = {name: [] for _, name in verbs}
    for name, what in re.findall(r'^OPTION\(\w+, "([\w-]+)", [^,]+, (?:"(?:[^"\\]|\\.)*"|NULL),\s*([^"]*?),\s*"', text,
                                 re.M):
        for key, value in sets.items():
            what = what.replace(key, value)
        without = re.search(r"~\((.*?\))\)", what)
        for verb, shown in verbs:
            if f"ON({verb})" in what and not (without and f"ON({verb})" in without.group(1)):
                has[shown].append(name)
    return has


# --- models

def save(folder, name, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def write_models(folder):
    rng, info, F = np.random.default_rng(1), helper.make_tensor_value_info, TensorProto.FLOAT
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n)
               for n, s in (("a", (32, 32, 3, 3)), ("b", (32, 32, 3, 3)), ("c", (32, 32, 1, 1)), ("d", (16, 32, 1, 1)))]
    weights.append(numpy_helper.from_array(rng.standard_normal((48, 48, 3, 3)).astype(np.float32), "wide"))
    save(folder, "wide", [helper.make_node("Conv", ["x", "wide"], ["y"], pads=[1] * 4)],
         [info("x", F, [2, 48, 21, 18])], [info("y", F, [2, 48, 21, 18])], weights[-1:])
    nodes, value = [], "x"
    for w, size in (("a", 3), ("b", 3), ("c", 1), ("d", 1)):
        if w == "b":
            nodes.append(helper.make_node("MaxPool", [value], ["p"], kernel_shape=[2, 2], strides=[2, 2]))
            value = "p"
        nodes.append(helper.make_node("Conv", [value, w], ["v" + w], pads=[size // 2] * 4))
        nodes.append(helper.make_node("Relu", ["v" + w], ["r" + w]))
        value = "r" + w
    save(folder, "conv", nodes, [info("x", F, [1, 32, 16, 16])], [info("rd", F, [1, 16, 8, 8])], weights[:4])
    w = numpy_helper.from_array(rng.standard_normal((4, 3)).astype(np.float32), "w")
    save(folder, "open", [helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", F, ["n", 4])],
         [info("y", F, ["n", 3])], [w])
    save(folder, "bound", [helper.make_node("Add", ["x", "k"], ["y"])], [info("x", F, [4]), info("k", F, [])],
         [info("y", F, [4])], [])
    save(folder, "words", [helper.make_node("Equal", ["x", "k"], ["y"])], [info("x", TensorProto.STRING, [4])],
         [info("y", TensorProto.BOOL, [4])], [helper.make_tensor("k", TensorProto.STRING, [1], [b"word"])])
    stump = {"nodes_nodeids": [0, 1, 2], "nodes_treeids": [0] * 3, "nodes_featureids": [1, 0, 0],
             "nodes_values": [.5, 0., 0.], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_ids": [0, 0],
             "target_nodeids": [1, 2], "target_treeids": [0, 0], "target_weights": [1., 2.], "n_targets": 1}
    save(folder, "trees", [helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **stump)],
         [info("x", F, [1, 2])], [info("y", F, [1, 1])], [])
    save(folder, "found", [helper.make_node("NonZero", ["x"], ["y"])], [info("x", F, ["n"])],
         [info("y", TensorProto.INT64, [1, "found"])], [])
    at = [numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.uint8(3), "z")]
    half = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("Softmax", ["d"], ["y"])]
    half.insert(1, helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]))
    save(folder, "half", half, [info("x", F, [2, 4])], [info("y", F, [2, 4])], at) # its result is a float
    for name, layer, kind in (("quantised", Model.chain, "i8"), ("split", Model.split, "u8")):
        m = Model(np.random.default_rng(3))
        layer(m, kind)
        m.save(os.path.join(folder, name + ".onnx"))
    m = Model(rng, half_up=True)
    at, fine = ([m.constant(np.float32(s)), m.constant(np.int8(0))] for s in (0.125, 0.0078125))
    w = m.dequantize(m.constant(rng.integers(-60, 60, (32, 16, 3, 3)).astype(np.int8)), fine)
    m.output(m.node("Conv", [m.input([1, 16, 12, 12], at), w], pads=[1] * 4), at)
    m.save(os.path.join(folder, "vta.onnx"))
    with open(os.path.join(TOP, "docs", "explanation", "vta.md"), encoding="utf-8") as f:
        product, its_schedule = re.findall(r"^```text\n(.*?)^```$", f.read(), re.M | re.S)[:2]
    texts = {
        "memory": "fast ram 512K .fast 1\nflash rom 1M - 4\n",
        "rows.onnx": "placeholder A: float32[64, 64]\ncompute D: float32[i: 64, j: 64] = "
                     "max((float32*)A[i, j], 0.0)\nreturn D\n",
        "split": "split D.i 4 -> io ii\n", "gemm.onnx": product, "gemm.sched": its_schedule,
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


# --- runs

class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.seen = args, folder, {}

    def run(self, verb, model, extra):
        """Status, what was written and printed, and what was said."""
        place = tempfile.mkdtemp(dir=self.folder)
        try:
            words = [w.replace("@out", place) if w.startswith("@out") else
                     os.path.join(self.folder, w[1:]) if w.startswith("@") else w for w in extra]
            command = [self.args.lathe, verb, os.path.join(self.folder, model + ".onnx")]
            command += ["-o", place + "/out"] if verb == "compile" else []
            command += ["--against", "interpreter"] if verb == "verify" and "--against" not in words else []
            done = subprocess.run(command + words, capture_output=True, text=True, errors="replace",
                                  timeout=TIME_LIMIT, env=dict(os.environ, CC="false", XDG_CACHE_HOME=place))
            written = {}
            for root, _, files in os.walk(place):
                for name in files:
                    with open(os.path.join(root, name), "rb") as f:
                        written[os.path.relpath(os.path.join(root, name), place)] = f.read()
            said = "" if verb in RUNS or done.returncode == 0 and "--print-after-all" not in words else done.stderr
            warned = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
            return done.returncode, (done.stdout.replace(place, "OUT"), written, warned, said), done.stderr
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def write_run(self):
        """A package and a module of the model `bound`, inputs and outputs of it, and outputs that are a little off."""
        place, model = self.folder, os.path.join(self.folder, "bound.onnx")
        for more in (["--workers", "0", "-o", place + "/package"],
                     ["--emit", "module", "--with-interpreter", "--widths", "16", "-o", place + "/module"]):
            subprocess.run([self.args.lathe, "compile", model, "-q"] + more, check=True)
        x, k = np.arange(4, dtype=np.float32), np.float32(0.5)
        np.save(os.path.join(place, "number.npy"), np.float32(7))
        for name, y in (("data", x + k), ("near", x + k + np.float32(1e-6))):
            os.mkdir(os.path.join(place, name))
            for what, value in (("input_0", x), ("input_1", k), ("output_0", y)):
                with open(os.path.join(place, name, what + ".pb"), "wb") as f:
                    f.write(numpy_helper.from_array(np.asarray(value), what).SerializeToString())

    def run_on(self, verb, artifact, extra):
        """Like run, of a package, a module or a model, by a compiler that takes a moment."""
        place = tempfile.mkdtemp(dir=self.folder)
        try:
            file = os.path.join(self.folder, {"model": "bound.onnx", "file": "module"}.get(artifact, artifact))
            words = [w.replace("@out", place).replace("@", self.folder + "/") for w in extra]
            done = subprocess.run([self.args.lathe, verb, file] + words, capture_output=True, text=True,
                                  errors="replace", timeout=TIME_LIMIT,
                                  env=dict(os.environ, CC="cc" if artifact == "file" else "tcc", CFLAGS="",
                                           XDG_CACHE_HOME=self.folder + "/cache"))
            written = sorted(os.path.relpath(os.path.join(root, name), place)
                             for root, _, files in os.walk(place) for name in files)
            return done.returncode, done.stdout.replace(place, ""), written, done.stderr.replace(place, "")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def effect_on_run(self, verb, option, artifact):
        """None: it has an effect, or is refused; else what is wrong."""
        if option not in RUN_ROWS: # it steers a compile: what is compiled already refuses it
            value, _, _ = ROWS[option][0]
            given = ["--" + option] + ([value] if value is not None else [])
            status, _, _, said = self.run_on(verb, artifact, GIVEN.get((verb, artifact), []) + given)
            return None if status == 2 and "error:" in said else f"it is not refused: status {status}"
        value, others = RUN_ROWS[option]
        extra = others.get(f"{verb}/{artifact}", GIVEN[verb, artifact])
        given = ["--" + option] + ([value] if value is not None else [])
        with_it, without = self.run_on(verb, artifact, extra + given), self.run_on(verb, artifact, extra)
        if with_it[0] == 2:
            return None if "error:" in with_it[3] else "refused without a message"
        return None if with_it != without else "no effect, and no message"

    def write_schedules(self):
        """What the rules choose for a kernel, but for its last primitive."""
        said = self.run("schedule", "conv", ["--target", "x86-64-v3"])[1][0]
        kept = [re.sub(r"\n(unroll|parallel|vectorize)[^\n]*$", "", part.rstrip()) for part in said.split("\n\n")]
        with open(os.path.join(self.folder, "schedules"), "w", encoding="utf-8") as f:
            f.write("\n\n".join(kept) + "\n")

    def base(self, *what):
        if repr(what) not in self.seen:
            self.seen[repr(what)] = self.run(*what)
        return self.seen[repr(what)]

    def effect(self, verb, option, emit):
        """None: it has an effect or is refused; else what is wrong."""
        stage = ["--emit", emit] if emit else ["--json"] * (verb == "inspect" and option != "json")
        found = None
        for value, model, extra in ROWS[option]:
            given = ["--" + option] + ([value] if value is not None else [])
            status, output, said = self.run(verb, model, stage + extra + given)
            if status == 2:
                return None if "error:" in said else "refused without a message"
            if verb in RUNS: # they must refuse what compile refuses
                refused = self.run("compile", model, stage + extra + given)[0] == 2
                return f"compile refuses it, {verb} does not" if refused else None
            was, before, why = self.base(verb, model, stage + extra)
            if was == 2 and status == 0:
                return None # it allows what is refused without it
            if was != 0:
                found = f"without it: {why.strip()[:200]}"
                continue
            if status != 0:
                found = f"status {status}: {said.strip()[:200]}"
                continue
            if output != before:
                return None
            found = "no effect, and no message"
        return found

    def effect_at(self, option, level):
        """The same beside a lower level of optimization, for the package of an option that has an effect at -O 3."""
        value, model, extra = ROWS[option][0]
        given = ["--" + option] + ([value] if value is not None else [])
        status, output, _ = self.run("compile", model, extra + ["-O", level] + given)
        if status != 0 or output != self.base("compile", model, extra + ["-O", level])[1]:
            return None
        return "no effect, and no message"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--filter", default="*", help="of VERB/EMIT/OPTION")
    args = parser.parse_args()
    has = table()
    with tempfile.TemporaryDirectory() as folder:
        write_models(folder)
        bench = Bench(args, folder)
        bench.write_schedules()
        bench.write_run()
        cases = [("compile", e, o) for e in EMIT for o in has["compile"]]
        cases += [(v, e, o) for v in RUNS for e in EMIT[:2] for o in has[v]
                  if o in has["compile"] and o != "json"]  # of these verbs it is how they answer
        cases += [(v, "", o) for v in ("inspect", "schedule") for o in has[v]]
        cases += [(v, a, o) for v in RUNS for a in ("package", "file") for o in has[v]
                  if o in has["compile"] and o not in OF_RUNS]
        cases += [(v, a, o) for v in RUNS[:2] for a in ("model", "package", "file") for o in has[v]
                  if o not in has["compile"] or o == "json"]
        cases += [("compile", level, o) for level in ("O0", "O1") for o in has["compile"] if o != "opt-level"]
        cases = [c for c in cases if fnmatch.fnmatch("/".join(c), args.filter) and c[2] not in ELSEWHERE
                 and (c[2], c[1]) not in SILENT]
        unknown = sorted({o for _, _, o in cases if o not in ROWS and o not in RUN_ROWS})
        for option in unknown:
            print(f"FAILED {option}: it has no row in test/py/options.py")
        cases = [c for c in cases if c[2] not in unknown]
        with ThreadPoolExecutor(args.jobs) as pool:
            found = list(pool.map(lambda c: bench.effect_at(c[2], c[1][1:]) if c[1][:1] == "O" else
                                  (bench.effect_on_run if c[1] in ("model", "package", "file") else
                                   bench.effect)(c[0], c[2], c[1]), cases))
    for case, why in zip(cases, found):
        if why:
            print(f"FAILED {'/'.join(case)}: {why}")
    failed = sum(1 for why in found if why) + len(unknown)
    print(f"options: {len(cases) - failed + len(unknown)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
