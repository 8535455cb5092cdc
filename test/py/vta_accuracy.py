#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo on the VTA accelerator: right answers on all held-out pictures of the float network and the quantised one
(onnxruntime), of the quantised one in C on the CPU, and of it on the simulated accelerator. The last two give the same
answers; all numbers are those of demo/residual_vta.txt.

    vta_accuracy.py [--lathe build/lathe] [--update]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATED = os.path.join(TOP, "demo", "residual_vta.txt")
sys.path.insert(0, os.path.join(TOP, "demo"))
import train  # noqa: E402  (the demo's own split of the data)


def by_onnxruntime(name, pictures, labels):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(os.path.join(TOP, "demo", name), options,
                                           providers=["CPUExecutionProvider"])
    predicted = [int(np.argmax(session.run(None, {"image": p[None]})[0])) for p in pictures]
    return int((np.array(predicted) == labels).sum())


def by_program(lathe, offload, records):
    """Right answers of the demo's program, and its first answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "held_out.bin")
        with open(file, "wb") as f:
            f.write(records)
        run = subprocess.run(["sh", os.path.join(TOP, "demo", "vta.sh"), lathe, os.path.join(folder, "demo"), file,
                              offload], capture_output=True, text=True, timeout=600, check=False)
    found = re.search(r"^correct: (\d+) of \d+$", run.stdout, re.M)
    if run.returncode != 0 or not found:
        sys.exit(run.stdout[-2000:] + run.stderr[-2000:])
    return int(found[1]), re.findall(r"^  label.*$", run.stdout, re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    lathe = os.path.abspath(args.lathe)
    pictures, labels = train.held_out()
    records = train.records(pictures, labels)
    cpu, cpu_answers = by_program(lathe, "", records)
    vta, vta_answers = by_program(lathe, "vta", records)
    rows = {"float, onnxruntime": by_onnxruntime("residual.onnx", pictures, labels),
            "quantised, onnxruntime (half to even)": by_onnxruntime("residual_vta.onnx", pictures, labels),
            "quantised, C on the CPU": cpu, "quantised, C with the simulated VTA": vta}
    text = "".join(f"{name}: {right} of {len(labels)}\n" for name, right in rows.items())
    if args.update:
        with open(STATED, "w", encoding="ascii") as f:
            f.write(text)
    with open(STATED, encoding="ascii") as f:
        stated = f.read()
    print(text, end="")
    same = cpu == vta and len(cpu_answers) == 20 and cpu_answers == vta_answers
    failed = (text != stated) + (not same) + (vta < 0.97 * len(labels))
    print(f"vta accuracy: {3 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
