#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's stated accuracy holds on all held-out pictures: for the ONNX file (by onnxruntime) and the generated C."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "demo"))
import train  # noqa: E402  (the demo's own split of the data)


def stated():
    with open(os.path.join(TOP, "demo", "accuracy.txt")) as f:
        correct, total = map(int, re.match(r"(\d+) of (\d+)$", f.read().strip()).groups())
    return correct, total


def by_onnxruntime(pictures, labels):
    session = onnxruntime.InferenceSession(os.path.join(TOP, "demo", "digits.onnx"), providers=["CPUExecutionProvider"])
    predicted = [int(np.argmax(session.run(None, {"image": p[None]})[0])) for p in pictures]
    return int((np.array(predicted) == labels).sum()), len(labels)


def by_generated_c(lathe, pictures, labels):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "held_out.bin")
        with open(file, "wb") as f:
            f.write(train.records(pictures, labels))
        run = subprocess.run(["sh", os.path.join(TOP, "demo", "run.sh"), lathe, os.path.join(folder, "demo"), file],
                             capture_output=True, text=True)
    found = re.search(r"^correct: (\d+) of (\d+)$", run.stdout, re.M)
    if run.returncode != 0 or not found:
        print(run.stdout[-2000:], run.stderr[-2000:])
        return None
    return int(found[1]), int(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    args = parser.parse_args()
    pictures, labels = train.held_out()
    failed = 0
    results = {"onnxruntime": by_onnxruntime(pictures, labels),
               "generated C": by_generated_c(os.path.abspath(args.lathe), pictures, labels)}
    for name, result in results.items():
        good = result == stated() and result[0] / result[1] > 0.98
        failed += not good
        print(f"{'ok' if good else 'FAILED'} {name}: {result}, stated {stated()}")
    print(f"accuracy: {len(results) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
