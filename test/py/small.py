#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Floats of 8, 6 and 4 bits and integers of 4 and 2: every code into floats, and every float16 and as many float32
numbers at random and halfway between codes into every type, saturated and not, against ml_dtypes; what is packed, and
what is refused.

    small.py [--lathe FILE] [--seed N]
"""
import argparse
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases
from package import save_inputs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOATS = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT6E2M3",
          "FLOAT6E3M2", "FLOAT8E8M0")
PACKED = ("FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2")
# What only a newer onnx knows: the number of the type, and the type.
NEWER = {"FLOAT6E2M3": (27, ml_dtypes.float6_e2m3fn), "FLOAT6E3M2": (28, ml_dtypes.float6_e3m2fn)}
INTEGERS = ("INT4", "UINT4", "INT2", "UINT2")


def code_of(name):
    return NEWER[name][0] if name in NEWER else getattr(TensorProto, name)


def count_of(name):
    """How many codes a float has."""
    return 256 if "8" in name else 64 if "6" in name else 16


def numpy_type(name):
    return np.dtype(NEWER[name][1]) if name in NEWER else helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))


def save(path, nodes, inputs, outputs):
    values = [[helper.make_tensor_value_info(n, t, s) for n, t, s in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11), path)


def run(lathe, path, feed, folder, how):
    command = [lathe, "run", path, "--output-dir", folder, *save_inputs(folder, feed), *how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)


def to_odd(x):
    """Doubles as float32 with the last bit set where they are inexact: rounding that again is rounding once."""
    f = x.astype(np.float32)
    u = f.view(np.uint32)
    odd = np.where(np.abs(f.astype(np.float64)) < np.abs(x), u + 1, u - 1).astype(np.uint32)
    return np.where((f == x) | (u & 1 == 1), u, odd).astype(np.uint32).view(np.float32)


def want_code(x, name, saturate):
    """The code that a number has, by ml_dtypes and ONNX's own rules for what is too large."""
    dtype = numpy_type(name)
    if name == "FLOAT8E8M0":
        return numpy_helper.to_float8e8m0(x, bool(saturate), "up")
    if name in INTEGERS:
        bits = 4 if "4" in name else 2
        low = x.astype(np.int32) & (2 ** bits - 1)
        return (np.where(low >= 2 ** (bits - 1), low - 2 ** bits, low) if name[0] == "I" else low).astype(dtype)
    if x.dtype == np.float64: # ml_dtypes rounds doubles twice
        x = to_odd(x)
    if saturate and name not in PACKED:
        return numpy_helper.saturate_cast(x, dtype)
    return x.astype(dtype)


def same(got, want):
    """Codes of two NaN are equal; every other code stands for itself."""
    nan = np.isnan(want.astype(np.float32)).ravel()
    return np.array_equal(np.where(nan, 0, got.ravel()), np.where(nan, 0, cases.stored(want).ravel()))


def unpacked(got, count, width):
    bits = np.unpackbits(got, bitorder="little")[:count * width].reshape(count, width)
    return np.packbits(bits, axis=1, bitorder="little").ravel()


def halfway(rng):
    """Numbers between two codes, and their neighbors, of all formats."""
    out = []
    for name in FLOATS[:7]:
        codes = np.arange(count_of(name), dtype=np.uint8).view(numpy_type(name)).astype(np.float64)
        codes = np.unique(codes[np.isfinite(codes)])
        middle = ((codes[1:] + codes[:-1]) / 2).astype(np.float32)
        out += [middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))]
    out.append(rng.integers(0, 2 ** 32, 30000, dtype=np.uint64).astype(np.uint32).view(np.float32))
    out.append((rng.standard_normal(30000) * 10.0 ** rng.integers(-9, 6, 30000)).astype(np.float32))
    return np.concatenate(out)


def encode(lathe, folder, kind, x, how):
    names = [(n, s) for n in FLOATS for s in (0, 1)] + ([(n, 1) for n in INTEGERS] if kind == "INT32" else [])
    nodes = [helper.make_node("Cast", ["x"], [f"{n}_{s}"], to=code_of(n), saturate=s) for n, s in names]
    path = os.path.join(folder, "encode.onnx")
    save(path, nodes, [("x", getattr(TensorProto, kind), [len(x)])],
         [(f"{n}_{s}", code_of(n), [len(x)]) for n, s in names])
    run(lathe, path, {"x": x}, folder, how)
    wrong = []
    for n, s in names:
        got, want = np.load(os.path.join(folder, f"{n}_{s}.npy")), want_code(x, n, s)
        packed = numpy_type(n).itemsize == 1 and n in (*PACKED, *INTEGERS)
        if packed:
            good = np.array_equal(got, cases.stored(want))
            if n in PACKED: # a NaN becomes a zero, whose sign is not defined for all
                clean = np.where(np.isnan(x), 0, x).astype(x.dtype)
                codes = unpacked(got, len(x), 4 if "4" in n else 6) * ~np.isnan(x)
                good = same(codes, want_code(clean, n, s).view(np.uint8))
        else:
            good = same(got, want)
        if not good:
            wrong.append(f"{kind} as {n}, saturate {s}, {how}")
    return len(names) * len(x), wrong


def decode(lathe, folder, how):
    codes = {n: np.arange(count_of(n), dtype=np.uint8).view(numpy_type(n)) for n in FLOATS}
    codes.update((n, np.arange(16 if "4" in n else 4, dtype=np.uint8).view(np.uint8)) for n in INTEGERS)
    for n in INTEGERS:
        bits = 4 if "4" in n else 2
        v = codes[n].astype(np.int32)
        codes[n] = (np.where(v >= 2 ** (bits - 1), v - 2 ** bits, v) if n[0] == "I" else v).astype(numpy_type(n))
    kinds = ("FLOAT", "FLOAT16", "DOUBLE")
    nodes = [helper.make_node("Cast", [n], [f"{n}_{k}"], to=getattr(TensorProto, k)) for n in codes for k in kinds]
    path = os.path.join(folder, "decode.onnx")
    save(path, nodes, [(n, code_of(n), [len(v)]) for n, v in codes.items()],
         [(f"{n}_{k}", getattr(TensorProto, k), [len(v)]) for n, v in codes.items() for k in kinds])
    run(lathe, path, {n: cases.stored(v) for n, v in codes.items()}, folder, how)
    wrong = []
    for n, v in codes.items():
        for k in kinds:
            got = np.load(os.path.join(folder, f"{n}_{k}.npy"))
            with np.errstate(over="ignore"):
                want = v.astype(np.float32).astype(numpy_type(k))
            if not np.array_equal(got, want, equal_nan=True) or not np.array_equal(np.signbit(got), np.signbit(want)):
                nan = np.isnan(want)
                if not np.array_equal(got[~nan], want[~nan]) or not np.isnan(got[nan]).all():
                    wrong.append(f"{n} as {k}, {how}")
    return sum(len(v) for v in codes.values()) * len(kinds), wrong


def moved(lathe, folder, rng, how):
    """Through operators that move elements and out again, with a number of elements that fills no byte."""
    wrong, n = [], 0
    for name in (*INTEGERS, *PACKED, "FLOAT8E5M2"):
        code = code_of(name)
        x = rng.integers(0, 4 if "2" in name and name in INTEGERS else 16, (3, 5)).astype(np.uint8)
        x = x.view(numpy_type(name)) if name in FLOATS else want_code(x, name, 1)
        path = os.path.join(folder, "moved.onnx")
        nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Concat", ["t", "t"], ["c"], axis=1),
                 helper.make_node("Identity", ["c"], ["y"]), helper.make_node("Reshape", ["x", "s"], ["flat"]),
                 helper.make_node("Constant", [], ["s"], value_ints=[15]),
                 helper.make_node("Constant", [], ["pads"], value_ints=[1, 0, 0, 2]),
                 helper.make_node("Constant", [], ["seven"], value_int=7),
                 helper.make_node("Gather", ["flat", "seven"], ["value"]),
                 helper.make_node("Pad", ["x", "pads"], ["zeros"]),
                 helper.make_node("Pad", ["x", "pads", "value"], ["padded"]),
                 helper.make_node("Constant", [], ["at"], value_ints=[1, 0, 2]),
                 helper.make_node("Constant", [], ["four"], value_ints=[4]),
                 helper.make_node("Gather", ["x", "four"], ["column"], axis=1),
                 helper.make_node("TensorScatter", ["x", "column", "at"], ["written"], axis=1)]
        nodes.sort(key=lambda node: node.op_type != "Constant")
        outputs = {"y": [5, 6], "flat": [15], "zeros": [4, 7], "padded": [4, 7], "written": [3, 5]}
        save(path, nodes, [("x", code, [3, 5])], [(name, code, dims) for name, dims in outputs.items()])
        run(lathe, path, {"x": cases.stored(x)}, folder, how)
        want = {"y": np.concatenate([x.T, x.T], 1), "flat": x.reshape(15), "zeros": np.pad(x, ((1, 0), (0, 2))),
                "padded": np.pad(x, ((1, 0), (0, 2)), constant_values=x[1, 2]), "written": x.copy()}
        want["written"][np.arange(3), [1, 0, 2]] = x[:, 4]
        for result, value in want.items():
            n += value.size
            got = np.load(os.path.join(folder, result + ".npy"))
            if not np.array_equal(got, cases.stored(np.ascontiguousarray(value))):
                wrong.append(f"{name} moved, {result}, {how}")
    return n, wrong


def refused(lathe, folder):
    """An operator that has no meaning for codes says so."""
    path = os.path.join(folder, "refused.onnx")
    save(path, [helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT8E4M3FN, [3])],
         [("y", TensorProto.FLOAT8E4M3FN, [3])])
    done = subprocess.run([lathe, "inspect", path], capture_output=True, text=True, timeout=600)
    good = done.returncode == 1 and "input 0 is of type f8e4m3fn, which this operator does not take" in done.stderr
    return [] if good else [f"Relu of f8e4m3fn: {done.returncode}, {done.stderr[:200]}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.lathe = os.path.abspath(args.lathe)
    rng = np.random.default_rng(args.seed)
    halves = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16)
    numbers = {"FLOAT16": halves, "FLOAT": halfway(rng), "INT32": rng.integers(-600, 600, 2000).astype(np.int32)}
    numbers["DOUBLE"] = numbers["FLOAT"][np.isfinite(numbers["FLOAT"])].astype(np.float64) * (1 + 2.0 ** -40)
    passed, wrong = 0, []
    with tempfile.TemporaryDirectory(prefix="small-") as folder, np.errstate(all="ignore"):
        for how in ([], ["--interpret"]):
            for kind, x in numbers.items():
                if kind == "DOUBLE": # E8M0 is made of a float32
                    x = np.concatenate([x, -x])
                n, bad = encode(args.lathe, folder, kind, x, how)
                passed, wrong = passed + n, wrong + bad
            for part in (decode(args.lathe, folder, how), moved(args.lathe, folder, rng, how)):
                passed, wrong = passed + part[0], wrong + part[1]
        wrong += refused(args.lathe, folder)
    for line in wrong:
        print("FAILED", line)
    print(f"small: {passed} elements; {passed - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
