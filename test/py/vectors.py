#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `slow` tell the truth? The operators and int8 layers of scripts/bench_operators.py and bench_int8.py become
packages, and gcc objects. A kernel of which no innermost loop holds a vector instruction has to be named: its entry in
report.json counts loops, products or calls without vectors.

    vectors.py [--lathe FILE] [--targets NAME,NAME] [--filter TEXT]

Loops that call a function hold what that does (copies are calls of memcpy). A target whose compiler is missing is
skipped.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))
import bench_int8  # noqa: E402
import bench_operators  # noqa: E402
import onnx  # noqa: E402

# name: (compiler, objdump, a vector instruction, a call)
TARGETS = {
    "x86-64-v3": ("gcc", "objdump",
                  r"ymm|^v\w+p[sd] .*xmm|^vp(?!ext|insr)\w+ .*xmm|^vmovdq\w+ .*xmm", r"^call"),
    "aarch64": ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump",
                r"\bv\d+\.\d+[bhsd]|^(ldr|str|ldp|stp|ldur|stur) q", r"^blr?$|^blr? "),
}
JUMP = re.compile(r"(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z) (?:.*, ?)?([0-9a-f]+) <")
COUNTS = ("loops_left_serial", "products_scalar", "loops_plain", "calls_scalar")


def functions_of(objdump, path):
    """{name: [(address, instruction)]}"""
    run = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    found, lines = {}, None
    for line in run.stdout.splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            lines = found.setdefault(head[1], [])
        elif one := re.match(r"\s+([0-9a-f]+):\s+(.*)$", line):
            lines.append((int(one[1], 16), one[2].replace("\t", " ")))
    return found


def innermost(lines):
    """The instructions of each loop without loops inside."""
    back = []
    for address, text in lines:
        jump = JUMP.match(text)
        if jump and lines[0][0] <= int(jump[1], 16) <= address:
            back.append((int(jump[1], 16), address))
    inner = [b for b in back if not any(o != b and b[0] <= o[0] and o[1] <= b[1] for o in back)]
    return [[text for address, text in lines if low <= address <= high] for low, high in inner]


def kernels_without(target, path):
    """Names of kernels that have loops, none of them with vectors or calls."""
    _, objdump, vector, call = TARGETS[target]
    loops = {}
    for name, lines in functions_of(objdump, path).items():
        if kernel := re.match(r"tvmgen_default_(?:wrapped_)?(fused_\w+)", name):
            loops.setdefault(kernel[1], []).extend(innermost(lines))
    return [name for name, all_loops in loops.items() if all_loops and
            not any(re.search(vector, text) or re.search(call, text) for loop in all_loops for text in loop)]


def check(options, target, kind, number, work):
    """Names of kernels that `slow` should have told of."""
    case, package = kind.CASES[number], os.path.join(work, "package")
    model = os.path.join(work, "model.onnx")
    onnx.save(kind.model_of(case), model)
    shutil.rmtree(package, ignore_errors=True)
    subprocess.run([options.lathe, "compile", model, "--target", target, "--workers", "1", "-q", "-o", package],
                   check=True)
    flags = re.search(r"^TARGET_FLAGS \?= (.*)$", open(os.path.join(package, "Makefile")).read(), re.M)[1].split()
    compiled = os.path.join(work, "ops.o")
    subprocess.run([TARGETS[target][0], "-std=c99", "-O3", *flags, "-I", os.path.join(package, "include"), "-I",
                    os.path.join(package, "src"), "-c", os.path.join(package, "src", "ops.c"), "-o", compiled],
                   check=True)
    report = json.load(open(os.path.join(package, "report.json")))
    named = {o["kernel"] for o in report["operators"] if any(o[c] for c in COUNTS)}
    return [k for k in kernels_without(target, compiled) if k not in named]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--filter", default="", help="a part of an operator's name")
    options = parser.parse_args()
    checked = failed = 0
    for target in options.targets.split(","):
        if not shutil.which(TARGETS[target][0]):
            print(f"{target}: skipped, {TARGETS[target][0]} is missing")
            continue
        for kind in (bench_operators, bench_int8):
            for i, case in enumerate(kind.CASES):
                if options.filter not in case.operator:
                    continue
                with tempfile.TemporaryDirectory(prefix="vectors-") as work:
                    missed = check(options, target, kind, i, work)
                checked += 1
                failed += len(missed)
                for kernel in missed:
                    print(f"FAILED {target}: {case.operator}, {case.about}: {kernel} has no vectors, which nobody says")
    print(f"vectors: {checked - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
