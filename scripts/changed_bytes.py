#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which packages have other bytes than an earlier revision gave them? A refactor should change none; a new optimisation
should change those that it is for.

    changed_bytes.py [OLD [NEW]] [--every N] [--targets T,U] [--files] [-j N]

OLD and NEW are git revisions, which are built in build/changed; without NEW it is build/lathe as it stands, and without
OLD the commit before HEAD. The models are the demo's, those of ../shared/models where that folder exists, the networks
of the onnx wheel (their weights are one number each), and every Nth official case (8; 1: all of them). Each is compiled
for each target. A line says how many bytes of C and of constants a package had and has; --files names its files. The
exit status is 0 whatever changed: what the list means is for its reader. It is 3 where the new compiler crashed or
found a bug of its own, which is no refusal. Where no file that the compiler is built from changed, nothing is built."""
import argparse
import concurrent.futures
import glob
import hashlib
import os
import subprocess
import sys
import tempfile

import onnx

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(TOP, "build", "changed")
SOURCES = ("CMakeLists.txt", "cmake", "src", "tools", "runtime", "kernel", "include", "schedules")
REFUSALS = (1, 2)  # exit statuses by which the compiler refuses what it was asked for (docs/cli.md)


def same_sources(old, new):
    """Whether the compilers of two revisions have the same sources; without `new`, those of the working tree."""
    git = ["git", "-C", TOP]
    differ = subprocess.run([*git, "diff", "--quiet", old, *([new] if new else []), "--", *SOURCES]).returncode
    others = [*git, "ls-files", "--others", "--exclude-standard", "--", *SOURCES]
    more = "" if new else subprocess.run(others, check=True, capture_output=True, text=True).stdout
    return differ == 0 and not more


def build(revision):
    """The program of a revision, kept by the commit's hash. It is built without optimisation and without names for a
    debugger, which takes a third of the time; the compiles here are few."""
    commit = subprocess.run(["git", "-C", TOP, "rev-parse", "--verify", f"{revision}^{{commit}}"], check=True,
                            capture_output=True, text=True).stdout.strip()
    source = os.path.join(WORK, commit)
    program = os.path.join(source, "build", "lathe")
    if not os.path.exists(program):
        os.makedirs(source, exist_ok=True)
        archive = subprocess.run(["git", "-C", TOP, "archive", commit], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
        for command in (["cmake", "-S", source, "-B", f"{source}/build", "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc",
                         "-DLATHE_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0"],
                        ["ninja", "-C", f"{source}/build", "lathe"]):
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode:
                sys.exit(f"{revision} cannot be built:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
    return program


def models(every):
    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    cases = sorted(glob.glob(os.path.join(data, "node", "*", "model.onnx")))
    whole = sorted(glob.glob(os.path.join(data, "light", "*.onnx")))
    given = sorted(glob.glob(os.path.join(TOP, "demo", "*.onnx")))
    shared = sorted(glob.glob(os.path.join(TOP, "..", "shared", "models", "**", "*.onnx"), recursive=True))
    return ([(os.path.splitext(os.path.basename(f))[0], f) for f in given + shared + whole]
            + [(os.path.basename(os.path.dirname(f)), f) for f in cases[::every]])


def package(program, path, target):
    """{file: (bytes, hash)} of what a compile writes; None: the model is refused; a number: the compiler failed with
    this status, minus a signal's number where it crashed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "p")
        run = subprocess.run([program, "compile", path, "--target", target, "-o", out], capture_output=True)
        if run.returncode in REFUSALS:
            return None
        if run.returncode:
            return run.returncode
        files = {}
        for file in glob.glob(os.path.join(out, "**", "*"), recursive=True):
            if os.path.isfile(file):
                with open(file, "rb") as f:
                    text = f.read()
                files[os.path.relpath(file, out)] = (len(text), hashlib.sha256(text).hexdigest())
        return files


def size(files):
    if isinstance(files, int):
        return f"the compiler failed with {files}"
    return "refused" if files is None else f"{sum(n for n, _ in files.values())} bytes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", default="HEAD~1")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--targets", default="x86-64-v3,cortex-m4,rv64gcv")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if same_sources(options.old, options.new):
        print(f"the compiler has the sources of {options.old}: no package changed")
        return 0
    old = build(options.old)
    new = build(options.new) if options.new else os.path.join(TOP, "build", "lathe")
    work = [(name, path, target) for name, path in models(options.every) for target in options.targets.split(",")]
    changed = crashed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        before = pool.map(lambda w: package(old, w[1], w[2]), work)
        after = pool.map(lambda w: package(new, w[1], w[2]), work)
        for (name, _, target), was, now in zip(work, before, after):
            crashed += isinstance(now, int)
            if was == now and not isinstance(now, int):
                continue
            changed += was != now
            print(f"{target} {name}: {size(was)}, now {size(now)}")
            if options.files and isinstance(was, dict) and isinstance(now, dict):
                print("".join(f"    {f}\n" for f in sorted({*was, *now}) if was.get(f) != now.get(f)), end="")
    print(f"{changed} of {len(work)} packages have other bytes than {options.old} gave them")
    if crashed:
        print(f"FAILED: the compiler did so {crashed} times")
    return 3 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
