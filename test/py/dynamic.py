#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages whose extents are known at run time only: one package of each model runs at several extents and gives what
onnxruntime gives.

    dynamic.py [--lathe FILE] [--filter GLOB] [--keep DIR]

A model (dynamic_models.py) is compiled once and built twice: as users build it, with two workers, and with
AddressSanitizer and UBSan, whose run must find nothing. Each run of it counts as a test; so does each run that must end
with a status: extents above their bound, below 0, and those that nobody set.
"""
import argparse
import ctypes
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.utils
import onnxruntime

import dynamic_models
import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
STATUS_SHAPE, STATUS_EXTENT = -10, -16


def encoder_inputs(rng, seq):
    mask = np.ones((1, seq), np.int64)
    mask[0, max(1, seq - 2):] = 0
    return {"ids": rng.integers(0, 100, (1, seq)), "mask": mask}


def decoder_inputs(rng, step, past):
    inputs = {"ids": rng.integers(0, 50, (1, step))}
    for name in ("k_0", "v_0", "k_1", "v_1"):
        inputs["past_" + name] = rng.standard_normal((1, 4, past, 8)).astype(np.float32)
    return inputs


def detector_inputs(rng, seed):
    return {"image": np.random.default_rng(seed).standard_normal((1, 3, 32, 32)).astype(np.float32) * seed}


def images_inputs(rng, n):
    return {"images": rng.standard_normal((n, 3, 32, 32)).astype(np.float32)}


def photo_inputs(rng, h, w):
    return {"photo": rng.standard_normal((1, 3, h, w)).astype(np.float32)}


def image_inputs(rng, h, w, n=1):
    return {"image": rng.standard_normal((n, 3, h, w)).astype(np.float32)}


def sound_inputs(rng, t):
    return {"samples": rng.standard_normal((1, 1, t)).astype(np.float32)}


def row_inputs(rng, b, n):
    return {"rows": rng.standard_normal((b, n, 24)).astype(np.float32)}


def operator_inputs(rng, b, s, t, p):
    shapes = {"q": (b, 4, s, 8), "k": (b, 2, t, 8), "v": (b, 2, t, 8), "mask": (s, t), "past_k": (b, 2, p, 8),
              "past_v": (b, 2, p, 8)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def spectrum_inputs(rng, b, t):
    return {"x": rng.standard_normal((b, t, 3, 1)).astype(np.float32)}


def voice_inputs(rng, sr):
    return {"frame": rng.standard_normal((1, 1, 512)).astype(np.float32), "sr": np.array(sr, np.int64),
            "state": rng.standard_normal((2, 1, 16)).astype(np.float32)}


# name, options, inputs, what differs between the runs: extents, or what decides them
CASES = [
    ("encoder", ["--dim", "seq<=128"], encoder_inputs,
     [{"seq": n} for n in (1, 2, 7, 15, 16, 17, 33, 64, 127, 128)]),
    ("decoder", ["--dim", "step<=8", "--dim", "past<=56"], decoder_inputs,
     [{"step": s, "past": p} for s, p in ((1, 1), (1, 7), (1, 55), (3, 5), (8, 56), (8, 0), (1, 31), (5, 0))]),
    ("detector", [], detector_inputs, [{"seed": s} for s in (0, 1, 2, 3, 4)]),
    ("images", ["--dim", "n<=5"], images_inputs, [{"n": n} for n in (1, 2, 5)]),
    ("photo", ["--dim", "h<=48", "--dim", "w<=40"], photo_inputs,
     [{"h": h, "w": w} for h, w in ((48, 40), (1, 1), (2, 7), (17, 33), (33, 16), (47, 3), (5, 40))]),
    ("patches", ["--dim", "h<=64", "--dim", "w<=48"], image_inputs,
     [{"h": h, "w": w} for h, w in ((64, 48), (8, 8), (24, 16), (56, 8))]),
    ("sound", ["--dim", "t<=400"], sound_inputs, [{"t": t} for t in (400, 10, 15, 99, 200)]),
    ("segments", ["--dim", "n<=2", "--dim", "h<=32", "--dim", "w<=24"], image_inputs,
     [{"n": n, "h": h, "w": w} for n, h, w in ((2, 32, 24), (1, 2, 2), (2, 18, 8), (1, 4, 22))]),
    ("queries", ["--dim", "b<=2", "--dim", "n<=40"], row_inputs,
     [{"b": b, "n": n} for b, n in ((2, 40), (1, 0), (1, 1), (2, 15), (1, 16), (2, 17))]),
    ("operator", ["--dim", "b<=2", "--dim", "s<=20", "--dim", "t<=24", "--dim", "p<=9"], operator_inputs,
     [{"b": b, "s": s, "t": t, "p": p} for b, s, t, p in
      ((2, 20, 24, 9), (1, 1, 1, 1), (1, 2, 24, 7), (2, 7, 3, 2), (1, 17, 16, 9))]),
    ("spectrum", ["--dim", "b<=2", "--dim", "t<=40"], spectrum_inputs,
     [{"b": b, "t": t} for b, t in ((2, 40), (1, 1), (1, 2), (2, 17), (1, 39))]),
    ("voice", [], voice_inputs, [{"sr": sr} for sr in (16000, 8000, 0)]),
]


# Behind these values a model decides by comparing numbers that may differ in their last bits: which of two boxes comes
# first when their chances are equal but for rounding. The values are compared as all others; what is decided is
# compared with what onnxruntime decides of the same numbers.
DECIDED = {"detector": (["candidates", "chances"], ["boxes", "scores", "classes"])}


def expected(name, folder, session, inputs, got):
    wants = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    if name in DECIDED:
        values, results = DECIDED[name]
        tail = os.path.join(folder, "tail.onnx")
        onnx.utils.extract_model(os.path.join(folder, "model.onnx"), tail, values, results)
        decides = onnxruntime.InferenceSession(tail, providers=["CPUExecutionProvider"])
        wants.update(zip(results, decides.run(results, {v: got[v] for v in values})))
    return wants


def build(folder, output, flags, workers):
    src = os.path.join(folder, "src")
    cflags = package.report(folder)["target_cflags"].split()
    command = ["gcc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", *flags, *cflags, "-ffp-contract=off", "-shared", "-fPIC",
               "-w", f"-DTVMRT_NUM_WORKERS={workers}", "-I", src, "-I", os.path.join(folder, "include"),
               f"-Wa,-I{src}", *package.sources(folder), os.path.join(src, "tvmrt.c"),
               os.path.join(src, "tvmrt_port_posix.c"), "-lm", "-lpthread", "-o", output]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if run.returncode != 0:
        raise package.Failure("build: " + package.first_error(run.stderr))


def close_enough(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    allowed = 1e-4 * np.abs(want) + 1e-5 * max(1.0, float(np.abs(want).max(initial=0)))
    return None if (difference <= allowed).all() else f"differs by {difference.max():.3g}"


def hostile(library, folder, name, bounds):
    """Extents that no caller may state: a status, and no crash. Yields (label, None or what happened)."""
    about = package.report(folder)
    room = [np.zeros(max(e["bytes"], 8), np.uint8) for e in about["inputs"] + about["outputs"]]
    pointers = [r.ctypes.data for r in room]
    for i, (symbol, most) in enumerate(bounds):
        for wrong in (most + 1, 0, package.EMPTY - 1, 1 << 40, -(1 << 63)):
            words = pointers[:len(about["inputs"])] + [most for _, most in bounds]
            words[len(about["inputs"]) + i] = wrong
            outputs = pointers[len(about["inputs"]):] + [0] * 16 * len(about["outputs"])
            function = library[f"tvmgen_{name}_run"]
            function.restype = ctypes.c_int32
            status = function((ctypes.c_int64 * len(words))(*words), (ctypes.c_int64 * len(outputs))(*outputs))
            want = STATUS_SHAPE if wrong else STATUS_EXTENT
            yield f"{symbol}={wrong}", None if status == want else f"status {status}"


def run_case(case, folder, library_path, hostile_too):
    """One line of JSON for each run; in a process of its own, which may die."""
    name, _, make, runs = case
    library = ctypes.CDLL(library_path)
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])
    for extents in runs:
        inputs = make(np.random.default_rng(1), **extents)
        label = " ".join(f"{k}={v}" for k, v in extents.items())
        print(json.dumps({"start": label}), flush=True)
        try:
            got = package.call(library, os.path.join(folder, "package"), name, inputs)
            wants = expected(name, folder, session, inputs, got)
            errors = [f"{k}: {e}" for k in wants if (e := close_enough(got[k], wants[k]))]
            message = "; ".join(errors) or None
        except package.Failure as failure:
            message = str(failure)
        print(json.dumps({"done": label, "message": message}), flush=True)
    if hostile_too:
        bounds = [(x["name"], x["most"]) for x in package.report(os.path.join(folder, "package")).get("extents", [])]
        for label, message in hostile(library, os.path.join(folder, "package"), name, bounds):
            print(json.dumps({"done": label, "message": message}), flush=True)


def in_child(number, folder, library, kind):
    environment = dict(os.environ)
    if kind == "sanitized":
        found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        environment.update(LD_PRELOAD=found.stdout.strip(), ASAN_OPTIONS="detect_leaks=0")
    command = [sys.executable, os.path.abspath(__file__), "--child", str(number), folder, library, kind]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    events = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    results = [(e["done"], e["message"]) for e in events if "done" in e]
    if run.returncode != 0:
        last = events[-1].get("start", "after " + events[-1].get("done", "")) if events else "loading"
        found = [s for s in run.stderr.splitlines() if "ERROR" in s or "runtime error" in s] or run.stderr.splitlines()
        results.append((last, f"ended with {run.returncode}: {(found or ['no message'])[0][:200]}"))
    return results


def test(number, options, folder):
    name, flags, _, _ = CASES[number]
    model, made = os.path.join(folder, "model.onnx"), os.path.join(folder, "package")
    onnx.save(dynamic_models.MODELS[name](), model)
    error = package.compile_model(options.lathe, model, made, name, flags)
    if error:
        return [("compile", error)]
    results = []
    for kind, build_flags, workers in (("plain", ["-O2"], 2), ("sanitized", SANITIZE, 0)):
        library = os.path.join(folder, kind + ".so")
        build(made, library, build_flags, workers)
        results += [(f"{kind} {label}", message) for label, message in in_child(number, folder, library, kind)]
    return results


def run_cases(about, cases, run):
    """The options of a script of cases, name -> number, and all that they ask for; the status of the script."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--keep", help="folder for what is made")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, number in cases.items():
            if not fnmatch.fnmatch(name, options.filter):
                continue
            folder = os.path.join(options.keep or scratch, name)
            os.makedirs(folder, exist_ok=True)
            try:
                results = run(number, options, folder)
            except package.Failure as failure:
                results = [("build", str(failure))]
            for label, message in results:
                passed, failed = passed + (message is None), failed + (message is not None)
                if message is not None:
                    print(f"FAILED {name} {label[:150]}: {message}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


def main():
    if len(sys.argv) == 6 and sys.argv[1] == "--child":
        run_case(CASES[int(sys.argv[2])], sys.argv[3], sys.argv[4], True)
        return 0
    return run_cases(__doc__, {case[0]: number for number, case in enumerate(CASES)}, test)


if __name__ == "__main__":
    sys.exit(main())
