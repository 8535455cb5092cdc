#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official ONNX cases by the interpreter: importers, type relations and compute definitions, without a C compiler.

    official.py [--library FILE] [--filter GLOB] [-j N]

Each case is read, compiled up to its program, run by the interpreter and compared with the case's outputs, by the
library in one process for each processor. conformance.py does the same with the C that is written; its list says which
cases do not pass."""
import argparse
import ctypes
import fnmatch
import os
import subprocess
import sys

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# Extents that only the data tells, without an upper bound: no program of the interpreter. conformance.py makes modules.
UNBOUNDED = ("test_center_crop_pad_*_expanded", "test_affine_grid_*_expanded", "test_loop13_seq",
             "test_loop16_seq_none")


def verify(lib, context, case):
    """Whether the case passes."""
    model, settings, text = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p()
    status = lib.lathe_read(context, case.model.encode(), ctypes.byref(model))
    if status == 0:
        status = lib.lathe_settings_new(context, b"verify", ctypes.byref(settings))
    for name, value in (("interpret", ""), ("data", case.folder), ("rtol", case.rtol), ("atol", case.atol)):
        if status == 0:
            status = lib.lathe_set(context, settings, name.encode(), str(value).encode())
    if status == 0:
        status = lib.lathe_verify(context, model, settings, ctypes.byref(text))
    lib.lathe_settings_free(settings)
    lib.lathe_model_free(model)
    return status == 0


def run_part(library, names):
    """The cases of one process; each is named before it runs, so that a crash has a name."""
    lib = ctypes.CDLL(library)
    lib.lathe_context_new.restype = ctypes.c_void_p
    by_key = {c.key: c for c in cases.find()}
    for name in names:
        print(f"begin {name}", flush=True)
        context = ctypes.c_void_p(lib.lathe_context_new())
        if not verify(lib, context, by_key[name]):
            print(f"FAILED {name}", flush=True)
        lib.lathe_context_free(context)
    print("done", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.path.join(TOP, "build", "liblathe.so"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--part", nargs="*", help="only these cases, in this process")
    options = parser.parse_args()
    if options.part is not None:
        return run_part(options.library, options.part)
    with open(os.path.join(HERE, "conformance_expected_failures.txt")) as f:
        skipped = {line.split()[0] for line in f if line.strip() and line[0] != "#"}
    names = [c.key for c in cases.find() if c.folder and c.name not in (*skipped, *cases.BY_LIBRARIES)
             and not cases.is_random(c) and fnmatch.fnmatch(c.name, options.filter)
             and not any(fnmatch.fnmatch(c.name, u) for u in UNBOUNDED)]
    parts = [names[i::options.jobs] for i in range(options.jobs)]
    children = [subprocess.Popen([sys.executable, __file__, "--library", options.library, "--part", *part],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for part in parts]
    failed = []
    for child in children:
        out, err = child.communicate()
        failed += [line for line in out.splitlines() if line.startswith("FAILED ")]
        if not out.endswith("done\n"):
            failed.append(f"FAILED {out.splitlines()[-1][len('begin '):]}: ended by {child.returncode}: {err[-500:]}")
    print("\n".join(failed))
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
