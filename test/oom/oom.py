#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call of the system that can fail, failing once: memory, files, processes, threads.

    oom.py [--lathe FILE] [--filter GLOB] [-j N] [-v]

fail_call.c is loaded before the program and makes the n-th call of a class fail, for n = 1, 2, ... until the program
makes fewer calls. A run must end with status 3 and one error message, or with status 0 and exactly what a run without
a failure gives; every file and package is whole, the old one or the new one; no temporary file or folder is left. Half
reads and writes, and interrupted calls, must change nothing at all.
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
with open(os.path.join(TOP, "test", "time_limit")) as limit:
    TIME_LIMIT = int(limit.read())
MODEL = os.path.join(TOP, "demo", "digits.onnx")
QUANTISED = os.path.join(TOP, "demo", "residual_vta.onnx")

# Class of calls, what happens to the call, does the run have to go on as if nothing had happened.
FAILURES = (
    ("alloc", "ENOMEM", False),
    ("json", "ENOMEM", False),
    ("open", "EMFILE", False),
    ("read", "EIO", False),
    ("read", "EINTR", True),
    ("read", "short", True),
    ("write", "ENOSPC", False),
    ("write", "EINTR", True),
    ("write", "short", True),
    ("list", "EIO", False),
    ("sync", "EIO", False),
    ("close", "EIO", False),
    ("make", "ENOSPC", False),
    ("rename", "EIO", False),
    ("remove", "EACCES", False),
    ("stat", "ENOMEM", False),
    ("process", "EAGAIN", False),
    ("wait", "EINTR", True),
    ("thread", "EAGAIN", False),
    ("limit", "memory", False),
)
SQUEEZE = FAILURES[-1]

# The JSON library reads the same report in all others that read one.
JSON_READERS = ("inspect-package",)

COMPUTATION = """placeholder A: float32[8, 8]
placeholder B: float32[8, 8]
compute C: float32[i: 8, j: 8] reduce[k: 8] sum = ((float32*)A[i, k]*(float32*)B[k, j])
return C
"""

ACCELERATED = """placeholder A: int32[8, 1, 16]
compute a: int32[i: 8, b: 1, l: 16] = (int32*)A[i, b, l]
compute sum: int32[i: 8, b: 1, l: 16] = ((int32*)a[i, b, l] + 100)
compute C: int8[i: 8, b: 1, l: 16] = cast(int8, (int32*)sum[i, b, l])
return C
--- schedule
set_scope a local.acc_buffer
set_scope sum local.acc_buffer
pragma a.i "dma_copy" 1
pragma sum.i "alu" 1
pragma C.i "dma_copy" 1
"""

# Weights of 4 bits on a microcontroller, in more bytes than what is asked for at a time; lists of steps on a host.
NIBBLES = """func @main(%x: u8[1, 256, 4, 4]) {
  %w = constant i8[128, 256, 3, 3] splat 5
  %y = qnn.conv2d(%x, %w)
  return %y
}
"""
STEPS = """func @main(%x: u8[1, 2, 4, 7, 8]) {
  %w = constant i8[16, 16, 1, 1] splat 33
  %y = qnn.conv2d(%x, %w) {data_layout = "NCHW8c", out_layout = "NCHW8c"}
  return %y
}
"""

# Compiles once for each command line, and then gives the same library again: what is tested is the caller.
COMPILER = """#!/bin/sh
for out do :; done
for word do [ "$last" = -o ] && out=$word; last=$word; done
key=$STORE/$(printf '%s ' "$@" | sed 's/[^ ]*lathe-[A-Za-z0-9]*//g' | cksum | tr ' ' _)
[ -f "$key" ] || { cc "$@" && cp "$out" "$key.$$" && mv "$key.$$" "$key"; } || exit 1
[ -f "$out" ] || cp "$key" "$out"
"""

# Answers as the reference does, with stored numbers.
REFERENCE = """#!/bin/sh
cp "$STORE/reference.npy" "$3/ref_${6}_0.npy" && echo ready
"""


@dataclass
class Scenario:
    """One command line; `needs` lies in the folder before; `packages` are folders that appear or stay as a whole."""

    name: str
    arguments: list
    needs: tuple = ()
    packages: tuple = ()
    before: dict = field(default_factory=dict)
    good: dict = field(default_factory=dict)
    stdout: bytes = b""
    stderr: bytes = b""


SCENARIOS = (
    Scenario("compile", ["compile", MODEL, "-o", "new", "--report", "report.json"], packages=("new",)),
    Scenario("compile-over", ["compile", MODEL, "-o", "old"], ("old",), ("old",)),
    Scenario("compile-graph", ["compile", MODEL, "--emit", "graph", "-o", "made/graph.txt"]),
    Scenario("compile-parts", ["compile", MODEL, "--offload", "acme,cutlass", "--patterns", "acme.pat", "--emit",
                               "graph"], ("acme.pat",)),
    Scenario("compile-offload", ["compile", MODEL, "--offload", "xnnpack", "-o", "new"], packages=("new",)),
    Scenario("compile-offload-module", ["compile", MODEL, "--offload", "xnnpack", "--emit", "module", "-o", "made.so"]),
    Scenario("compile-tir", ["compile", MODEL, "--emit", "tir"]),
    Scenario("compile-vta", ["compile", QUANTISED, "--offload", "vta", "-o", "new"], packages=("new",)),
    Scenario("compile-vta-module", ["compile", QUANTISED, "--offload", "vta", "--emit", "module", "--target", "native",
                                    "-o", "made.so"]),
    Scenario("vta-model", ["vta", "model", QUANTISED, "--offload", "vta", "--cycle"]),
    Scenario("compile-module", ["compile", MODEL, "--emit", "module", "--with-interpreter", "--widths", "16", "-o",
                                "made.so"]),
    Scenario("compile-memory", ["compile", MODEL, "-o", "new", "--memory", "board.txt", "--html", "page.html"],
             ("board.txt",), ("new",)),
    Scenario("compile-schedules", ["compile", MODEL, "-o", "new", "--schedules", "tuned.log"], ("tuned.log",),
             ("new",)),
    Scenario("compile-streamed", ["compile", MODEL, "-o", "new", "--target", "cortex-m", "--minimize", "ram"],
             packages=("new",)),
    Scenario("compile-nibbles", ["compile", "nibbles.txt", "-o", "new", "--target", "cortex-m4"], ("nibbles.txt",),
             ("new",)),
    Scenario("compile-steps", ["compile", "steps.txt", "-o", "new", "--target", "x86-64-v3"], ("steps.txt",), ("new",)),
    Scenario("schedule", ["schedule", MODEL, "-o", "made.schedules"]),
    Scenario("tune-tuned", ["tune", MODEL, "-o", "tuned.log"], ("tuned.log",)),
    Scenario("inspect", ["inspect", MODEL]),
    Scenario("inspect-html", ["inspect", MODEL, "--html", "page.html"]),
    Scenario("inspect-package", ["inspect", "old"], ("old",), ("old",)),
    Scenario("opt-graph", ["opt", "stage.txt"], ("stage.txt",)),
    Scenario("opt-loops", ["opt", "loops.txt", "-o", "stage.txt"], ("loops.txt", "stage.txt")),
    Scenario("opt-schedule", ["opt", "product.te", "--schedule", "product.sched"], ("product.te", "product.sched")),
    Scenario("run", ["run", MODEL, "--seed", "1", "--output-dir", "results", "--workers", "2"]),
    Scenario("run-input", ["run", MODEL, "--input", "image=image.bin", "--json", "--keep", "kept"], ("image.bin",),
             ("kept",)),
    Scenario("run-interpret", ["run", MODEL, "--data", "data", "--interpret"], ("data",)),
    Scenario("run-package", ["run", "old", "--workers", "2"], ("old",), ("old",)),
    Scenario("run-loops", ["run", "model.so", "--no-jit", "--input", "image=image.bin"], ("model.so", "image.bin")),
    Scenario("quantize", ["quantize", MODEL, "--calibrate", "data", "--for", "vta", "-o", "q.onnx", "--json"],
             ("data",)),
    Scenario("run-vta", ["run", "add.te", "--target", "vta", "--timeline", "time.svg"], ("add.te",)),
    Scenario("compile-vta", ["compile", "add.te", "--target", "vta", "-o", "made.c"], ("add.te",)),
    Scenario("compile-stream", ["compile", "add.te", "--target", "vta", "--capture", "-o", "made.c"], ("add.te",)),
    Scenario("verify", ["verify", MODEL, "--data", "data"], ("data",)),
    Scenario("verify-reference", ["verify", MODEL, "--against", "onnxruntime", "--atol", "2"]),
)


def snapshot(folder):
    """{path: bytes, or None for a folder}"""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(root, name), folder)] = None
        for name in files:
            path = os.path.join(root, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def copy(start, to):
    """With links for files: the program replaces files, and one that wrote into them would show in the next run."""
    if os.path.isdir(start):
        shutil.copytree(start, to, copy_function=os.link)
    else:
        os.link(start, to)


def below(tree, package):
    return {p: b for p, b in tree.items() if p == package or p.startswith(package + "/")}


def tensor(dims, values):
    """A TensorProto of floats."""
    raw = struct.pack(f"<{len(values)}f", *values)
    assert len(raw) < 1 << 14 and all(d < 128 for d in dims)
    length = bytes([len(raw) & 127 | 128, len(raw) >> 7])
    return b"".join(bytes([8, d]) for d in dims) + bytes([16, 1, 0x4A]) + length + raw


class Bench:
    def __init__(self, options, folder):
        self.lathe, self.folder = os.path.abspath(options.lathe), folder
        self.shim, self.start, self.store = (os.path.join(folder, n) for n in ("fail_call.so", "start", "store"))
        subprocess.run([options.cc, "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", self.shim,
                        os.path.join(HERE, "fail_call.c"), "-ldl"], check=True)
        os.makedirs(self.start)
        os.makedirs(self.store)
        for name, text in (("cc", COMPILER), ("python", REFERENCE)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
            os.chmod(f.name, 0o755)
        self.furnish()

    def furnish(self):
        """What lies in the folder before a run."""
        self.lathe_ok("compile", MODEL, "-O1", "-o", "old")
        self.lathe_ok("compile", MODEL, "--emit", "graph", "-o", "stage.txt")
        self.lathe_ok("compile", MODEL, "--emit", "tir", "-o", "loops.txt")
        self.lathe_ok("compile", MODEL, "--emit", "module", "--with-interpreter", "--widths", "16", "-o", "model.so")
        self.lathe_ok("tune", MODEL, "-o", "tuned.log", "--candidates", "1")
        image = [float(i % 16) for i in range(64)]
        os.makedirs(os.path.join(self.start, "data"))
        furniture = {"acme.pat": b"operator acme.pool(%x) { %y = nn.max_pool2d(%x) return %y }\n",
                     "board.txt": b"rom rom 1M .fast 1\nram ram 512K - 2\n", "add.te": ACCELERATED.encode(),
                     "nibbles.txt": NIBBLES.encode(), "steps.txt": STEPS.encode(),
                     "product.te": COMPUTATION.encode(), "product.sched": b"split C.j 4 -> j0 j1\n",
                     "image.bin": struct.pack("<64f", *image), "data/input_0.pb": tensor([1, 1, 8, 8], image)}
        for name, data in furniture.items():
            with open(os.path.join(self.start, name), "wb") as f:
                f.write(data)
        self.lathe_ok("run", MODEL, "--input", "image=image.bin", "--output-dir", "results", "--interpret")
        made = os.path.join(self.start, "results", "probabilities.npy")
        with open(made, "rb") as f:
            values = struct.unpack("<10f", f.read()[-40:])
        with open(os.path.join(self.start, "data", "output_0.pb"), "wb") as f:
            f.write(tensor([1, 10], values))
        shutil.move(made, os.path.join(self.store, "reference.npy"))
        os.rmdir(os.path.dirname(made))

    def lathe_ok(self, *arguments):
        subprocess.run([self.lathe, *arguments], cwd=self.start, check=True, stdout=subprocess.DEVNULL)

    def run(self, scenario, failure=None, n=0, limit=None):
        """(status, stdout, stderr, tree, the call that failed); `limit`: bytes of address space"""
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            place, hit = os.path.join(work, "place"), os.path.join(work, "hit")
            os.makedirs(os.path.join(place, "tmp"))
            for name in scenario.needs:
                copy(os.path.join(self.start, name), os.path.join(place, name))
            open(hit, "w").close()
            environment = dict(os.environ, TMPDIR=os.path.join(place, "tmp"), STORE=self.store,
                               CC=os.path.join(self.folder, "cc"), LATHE_PYTHON=os.path.join(self.folder, "python"))
            command = [self.lathe, *scenario.arguments]
            if limit:
                command = ["sh", "-c", f'ulimit -v {limit >> 10} && exec "$0" "$@"', *command]
            if failure:
                environment.update(LD_PRELOAD=self.shim, FAIL_CLASS=failure[0], FAIL_HOW=failure[1], FAIL_AT=str(n),
                                   FAIL_HIT=hit)
            run = subprocess.run(command, cwd=place, env=environment, capture_output=True, stdin=subprocess.DEVNULL,
                                 timeout=TIME_LIMIT)
            with open(hit) as f:
                return run.returncode, run.stdout, run.stderr, snapshot(place), f.read()

    def learn(self, scenario):
        """What the command gives when nothing fails."""
        everything = snapshot(self.start)
        scenario.before = {"tmp": None}
        for name in scenario.needs:
            scenario.before.update(below(everything, name))
        status, scenario.stdout, scenario.stderr, scenario.good, _ = self.run(scenario)
        if status != 0 or any(p.startswith("tmp/") for p in scenario.good):
            raise SystemExit(f"{scenario.name}: status {status}: {scenario.stderr.decode()}")


def place_of(path):
    """What is made or removed as one: an entry of the folder, or of its TMPDIR."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] == "tmp" else parts[:1])


def left_over(scenario, tree):
    known = {place_of(p) for p in (*scenario.before, *scenario.good)}
    return sorted({place_of(p) for p in tree} - known)


def fault_of_files(scenario, status, tree):
    """Every file and package is the old one or the new one; after status 0, all are new."""
    before = scenario.before
    if status == 0:
        return None if tree == scenario.good else f"status 0, and other files: {differing(tree, scenario.good)}"
    for package in scenario.packages:
        if below(tree, package) not in (below(before, package), below(scenario.good, package)):
            return f"{package} is neither the old nor the new one: {differing(tree, scenario.good)}"
    for path in before.keys() | tree.keys():
        if path not in tree and path in before and path in scenario.good:
            return f"{path} is lost"
        if path in tree and not any(path in t and t[path] == tree[path] for t in (before, scenario.good)):
            return f"{path} is half written"
    return None


def document(stdout):
    """What --json has printed; {}: something else."""
    try:
        found = json.loads(stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def result_of(stdout):
    """Of a document the result: its messages are those of standard error."""
    return document(stdout).get("result", stdout)


def fault(scenario, failure, result):
    """What is wrong with a run; None: nothing. What cannot be removed may stay when a warning names it."""
    status, stdout, stderr, tree, call = result
    lines = stderr.decode(errors="replace").splitlines()
    text = " / ".join(lines)[:400]
    allowed = (0, 1, 2, 3) if failure[0] == "stat" else (0, 3)  # what cannot be looked at may as well not be there
    if status not in allowed or (failure[2] and status != 0) or "[internal]" in text: # which nothing accounts for
        return f"status {status}: {text}"
    for place in left_over(scenario, tree):
        named = [line for line in lines if line.startswith("warning: ") and os.path.basename(place) in line]
        if not named:
            return f"{place} is left over; status {status}: {text}"
        lines = [line for line in lines if line not in named]
        tree = {p: b for p, b in tree.items() if place_of(p) != place}
    told = document(stdout).get("status") == status or "standard output cannot be written" in text
    if "--json" in scenario.arguments and not told:
        return f"status {status}, and no document says so: {stdout[:200]!r}"
    same = result_of(stdout) == result_of(scenario.stdout) and lines == scenario.stderr.decode().splitlines()
    if status == 0 and not same:
        return f"status 0, and other text: {text}"
    if status != 0 and [line.split(" ")[0] for line in lines if line[:1] != " "].count("error:") != 1:
        return f"status {status}, and no clean message: {text}"
    if not all(re.match(r"(error|warning|  hint|note): ", line) for line in lines):
        return f"status {status}, and no clean message: {text}"
    return fault_of_files(scenario, status, tree)


def differing(tree, good):
    return sorted(p for p in set(tree) | set(good) if tree.get(p, 0) != good.get(p, 0))[:5]


def sweep(bench, scenario, failure, pool):
    """Fails call after call; returns (runs, [(n, call, what is wrong)])."""
    faults, n, step = [], 1, 4
    while True:
        results = list(pool.map(lambda k: bench.run(scenario, failure, k), range(n, n + step)))
        for k, result in enumerate(results, n):
            if not result[4]:
                return k - 1, faults
            wrong = fault(scenario, failure, result)
            if wrong:
                faults.append((k, result[4], wrong))
        n += step


def squeeze(bench, scenario, failure, pool):
    """Runs in less and less memory, where all calls fail from some point on, until the program cannot be loaded."""
    runs, faults = 0, []
    limits = range(32 << 20, 2 << 20, -(1 << 20))
    for limit, result in zip(limits, pool.map(lambda n: bench.run(scenario, limit=n), limits)):
        if b"error while loading shared libraries" in result[2]:
            break
        wrong = fault(scenario, failure, result)
        faults += [(limit, "bytes", wrong)] if wrong else []
        runs += 1
    return runs, faults


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--filter", default="*", help="only NAME CLASS HOW that match, as in 'compile* write *'")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("-v", dest="verbose", action="store_true", help="a line for every sweep")
    return parser.parse_args()


def main():
    options = parse_arguments()
    passed = failed = 0
    calls = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(options, folder)
        for scenario in SCENARIOS:
            chosen = [f for f in FAILURES
                      if (f[0] != "json" or scenario.name in JSON_READERS)
                      and fnmatch.fnmatch(f"{scenario.name} {f[0]} {f[1]}", options.filter)]
            if chosen:
                bench.learn(scenario)
            for failure in chosen:
                method = squeeze if failure == SQUEEZE else sweep
                runs, faults = method(bench, scenario, failure, pool)
                passed, failed = passed + runs - len(faults), failed + len(faults)
                calls[failure[:2]] += runs
                if options.verbose:
                    print(f"{scenario.name} {failure[0]} {failure[1]}: {runs} calls, {len(faults)} faults", flush=True)
                for n, call, wrong in faults:
                    print(f"FAILED {scenario.name}: {failure[0]} {failure[1]} {n} ({call}): {wrong}", flush=True)
    idle = [f for f in FAILURES if options.filter == "*" and calls[f[:2]] == 0]
    for failure in idle:
        print(f"FAILED no run made a call of the class {failure[0]}: does fail_call.c know all functions of it?")
    failed += len(idle) + (not calls)
    print(f"oom: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
