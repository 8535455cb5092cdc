#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages on a Cortex-M4 (qemu-system-arm, mps2-an386) give what they give on the host.

    embedded.py [--lathe FILE]

The demo's network, and MLPerf Tiny's kws when it is beside the checkout (see models.py), are compiled twice: with the
port posix, built and run here, and with the port baremetal, built and run by test/embedded/run_m4.sh. Both programs use
the same fixed input pattern and print the same lines: integers must be equal, floats agree to 1e-5. Instructions, flash
and RAM are printed.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import models
import package

TOP = models.TOP
OUTPUT = re.compile(r"^(.+): (\w+) \[([\d, ]*)\], (\S+) to (\S+):(.*?)(?: \.\.\.)?$", re.M)


def outputs(text):
    """{name: (dtype, shape, [least, greatest, first values...])} of what a package's program printed."""
    found = {}
    for name, dtype, shape, low, high, first in OUTPUT.findall(text):
        found[name] = (dtype, shape, [float(low), float(high), *map(float, first.split())])
    return found


def compare(host, board):
    if not host or set(host) != set(board):
        raise package.Failure(f"outputs {sorted(host)} on the host, {sorted(board)} on the board")
    for name, (dtype, shape, values) in host.items():
        if (dtype, shape) != board[name][:2] or len(values) != len(board[name][2]):
            raise package.Failure(f"output {name}: another type, shape or count on the board")
        limit = 1e-5 if dtype.startswith(("float", "bfloat")) else 0
        for a, b in zip(values, board[name][2]):
            if not abs(a - b) <= limit * max(1.0, abs(a)):
                raise package.Failure(f"output {name}: {a!r} on the host, {b!r} on the board")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=package.TIME_LIMIT,
                            cwd=TOP)
    if result.returncode != 0:
        lines = (result.stderr + result.stdout).strip().splitlines() or ["no message"]
        raise package.Failure(f"{os.path.basename(command[0])}: status {result.returncode}: {lines[-1][:200]}")
    return result.stdout


def compiled(lathe, model, folder, port):
    message = package.compile_model(lathe, model, folder, "default", ["--port", port, "--target", "cortex-m"])
    if message:
        raise package.Failure(message)
    return folder


def check(lathe, model, work):
    host = compiled(lathe, model, os.path.join(work, "host"), "posix")
    message = package.make(host)
    if message:
        raise package.Failure(message)
    board = compiled(lathe, model, os.path.join(work, "board"), "baremetal")
    printed = run(["bash", os.path.join(TOP, "test", "embedded", "run_m4.sh"), board])
    compare(outputs(run([os.path.join(host, "runner")])), outputs(printed))
    return " | ".join(line for line in printed.splitlines() if line.strip() and not OUTPUT.match(line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    options = parser.parse_args()
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for spec in models.all_models():
        if spec.name not in ("demo_digits", "tiny_kws_qdq"):
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                verdict, line = ("skipped", spec.skip) if spec.skip else \
                    ("ok", check(os.path.abspath(options.lathe), spec.write(work), work))
            except package.Failure as failure:
                verdict, line = "FAILED", str(failure)
        counts[verdict] += 1
        print(f"{verdict} {spec.name}: {line}")
    print(f"embedded packages: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
