#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All official ONNX cases through onnx.backend.test.runner with lathe.backend: onnx_backend.py [--filter REGEX] [-j N]
[--result FILE]. A case fails that the program passes and the backend does not: the program passes all but those that
test/py/conformance_expected_failures.txt lists, which count as skipped here. A listed one that the backend passes all
the same is named: a module has memory for extents that the packages of conformance.py limit."""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import sys
import tempfile
import unittest
import warnings

import onnx.backend.test.runner

import lathe
import lathe.backend

TOP = pathlib.Path(__file__).resolve().parents[2]
TOTAL = 1914
NOT_COMPARED = {"test_loop16_seq_none"}  # the runner asks a number in a list for its length


def expected_failures():
    text = (TOP / "test" / "py" / "conformance_expected_failures.txt").read_text()
    return {line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")}


@functools.cache
def cases():
    """Name -> a test of the runner, for all kinds: nodes, simple models, those of PyTorch, and whole networks."""
    suite = onnx.backend.test.runner.Runner(lathe.backend.LatheBackend, "lathe").test_suite
    return {m.removesuffix("_cpu"): t for t in suite for m in [t.id().rsplit(".", 1)[-1]] if m.endswith("_cpu")}


def run(name):
    """None for a case that passes, otherwise why it does not."""
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lathe.LatheWarning)
        cases()[name].run(result)
    if result.skipped:
        return "the runner skips it, as a model that cannot be compiled"
    wrong = result.failures + result.errors
    return wrong[0][1].strip().splitlines()[-1][:200] if wrong else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="")
    parser.add_argument("--result")
    parser.add_argument("-j", type=int, default=1)
    args = parser.parse_args()
    os.environ["CFLAGS"] = "-O0"
    if len(cases()) != TOTAL:
        raise SystemExit(f"this package onnx has {len(cases())} cases, and not {TOTAL}")
    expected, lines, count = expected_failures() | NOT_COMPARED, [], {"passed": 0, "failed": 0, "skipped": 0}
    names = [n for n in cases() if re.search(args.filter, n)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(args.j) as pool:
        os.environ["ONNX_MODELS"] = folder  # where the runner puts the data of whole networks
        for name, why in zip(names, pool.map(run, names)):
            count["passed" if why is None else "skipped" if name in expected else "failed"] += 1
            if why is None and name in expected:
                lines.append(f"{name}: passes, and the program's does not")
            elif why is not None and name not in expected:
                lines.append(f"FAILED {name}: {why}")
    print("\n".join(lines))
    if args.result:
        pathlib.Path(args.result).write_text("\n".join(lines) + "\n")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
