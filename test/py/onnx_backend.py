#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official ONNX cases through onnx.backend.test.runner with lathe.backend: onnx_backend.py [--filter REGEX]
[--result FILE]. A case counts as failed when the program passes it and the backend fails or skips it, or the other way
round: test/py/conformance_expected_failures.txt lists the cases that do not pass."""
import argparse
import os
import pathlib
import re
import sys
import unittest

import onnx.backend.test.runner

import lathe.backend

TOP = pathlib.Path(__file__).resolve().parents[2]


def expected_failures():
    text = (TOP / "test" / "py" / "conformance_expected_failures.txt").read_text()
    return {line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default=r"^test_")
    parser.add_argument("--result")
    args = parser.parse_args()
    os.environ["CFLAGS"] = "-O0"
    runner = onnx.backend.test.runner.Runner(lathe.backend.LatheBackend, "lathe")
    expected, wrong, count = expected_failures(), [], {"passed": 0, "failed": 0, "skipped": 0}
    for suite in unittest.TestSuite([runner.test_suite]):
        for test in suite:
            name = re.sub(r"_cpu$", "", test.id().rsplit(".", 1)[-1])
            if not re.search(args.filter, name) or test.id().endswith("_cuda") or "NodeModel" not in test.id():
                continue
            result = unittest.TestResult()
            test.run(result)
            passed = not result.failures and not result.errors
            if result.skipped and name in expected:
                count["skipped"] += 1
                continue
            if result.skipped:
                count["failed"] += 1
                wrong.append(f"{name}: is skipped, as a model that cannot be compiled, and the program passes it")
                continue
            right = passed != (name in expected)
            count["passed" if right else "failed"] += 1
            if not right:
                why = (result.failures + result.errors or [(None, "passes, and is expected to fail")])[0][1]
                wrong.append(f"{name}: {why.strip().splitlines()[-1][:200]}")
    if args.result:
        pathlib.Path(args.result).write_text("\n".join(wrong) + "\n")
    for line in wrong[:60]:
        print(line)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
