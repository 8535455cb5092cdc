#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What default schedules leave undone, over a grid of shapes: vectorized loops without lanes, loops that a limit kept
whole, conditions on indices in innermost loops, products without lanes, sums for which there is no vector register.

    grid.py [--lathe FILE] [--target T,T] [--update] [--verify] [-j N]

Each group of shapes is a graph as text, compiled once for each target; report.json tells what each operator has left.
No C compiler takes part. Vectors that were asked for, loops within the limits and registers must all be there: their
counts are 0. grid_left.txt beside this file lists which shapes have guards or scalar products left, how many, and why
(REASONS); what is more than that fails, and so does a line that says too much, or has no reason (--update writes it:
review the difference). With --verify the groups also run, against the interpreter.
"""
import argparse
import fnmatch
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grid_left.txt")
TARGETS = "x86-64-v2,x86-64-v3,x86-64-v4,aarch64,rv64gcv"
NEVER = ("loops_left_serial", "loops_left_whole", "registers_beyond")
COUNTS = NEVER + ("guards_left", "products_scalar")
# (count, shapes, why there is no way around it); the first one that fits
REASONS = (
    ("guards_left", "residual 64@28",
     "two parts share a line of tiles: where its border lies in the loop that copies it depends on which one runs"),
    ("products_scalar", "attention 1 of *",
     "one query and one key: a single sum, whose steps wait for each other; lanes would change its order"),
    ("products_scalar", "attention 7 of *",
     "few queries read seven keys as they lie: each sum is in lanes, an odd last one by itself"),
    ("products_scalar", "layer norm *", "rows of 1, 7 and 8 elements: a sum in lanes begins at 32"),
    ("products_scalar", "rms norm *", "rows of 1, 7 and 8 elements: a sum in lanes begins at 32"),
    ("products_scalar", "*5x300x3", "three columns: a vector of two, and one by itself"),
    ("products_scalar", "matmul*",
     "an odd number of columns: the last one is by itself beside vectors, as its row has no element behind it to read"),
    ("products_scalar", "dense*",
     "an odd number of columns: the last one is by itself beside vectors; a panel of zeros for it costs more"),
    ("products_scalar", "depthwise*", "lines of 9 pixels: the last one is by itself beside vectors"),
    ("products_scalar", "conv*",
     "an odd number of channels, or of pixels in a line: the last one is by itself beside vectors"),
)
WEIGHTS = 1 << 20  # elements of the file that all constants are read from


def shape(dims, dtype="f32"):
    return f"{dtype}[{', '.join(map(str, dims))}]"


class Group:
    """One function under construction: a result for each shape of the grid, by its name."""

    def __init__(self, name):
        self.name, self.inputs, self.lines, self.results = name, [], [], []

    def input(self, dims, dtype="f32"):
        self.inputs.append(f"%p{len(self.inputs)}: {shape(dims, dtype)}")
        return f"%p{len(self.inputs) - 1}"

    def weight(self, dims, dtype="f32"):
        return self.op(f'constant {shape(dims, dtype)} file "weights.bin" 0')

    def ints(self, numbers):
        return self.op(f"constant i64[{len(numbers)}] dense [{', '.join(map(str, numbers))}]")

    def op(self, text, results=1):
        names = [f"%v{len(self.lines)}" if i == 0 else f"%v{len(self.lines)}_{i}" for i in range(results)]
        self.lines.append(f"{', '.join(names)} = {text}")
        return names[0]

    def result(self, name, value):
        self.results.append((name, value))

    def text(self):
        body = "".join(f"  {line}\n" for line in self.lines)
        return (f"func @main({', '.join(self.inputs)}) {{\n{body}"
                f"  return {', '.join(value for _, value in self.results)}\n}}\n")


# --- the grid ---

def products():
    g = Group("products")
    sizes = [(1, 64, 64), (1, 768, 1000), (7, 19, 24), (7, 19, 31), (12, 128, 192), (33, 65, 17), (64, 64, 64),
             (64, 64, 196), (64, 64, 197), (128, 384, 384), (128, 100, 10), (5, 300, 3), (256, 37, 129), (197, 192, 80)]
    for m, k, n in sizes:
        g.result(f"matmul {m}x{k}x{n}", g.op(f"nn.matmul({g.input([m, k])}, {g.input([k, n])})"))
        g.result(f"dense {m}x{k}x{n}", g.op(f"nn.matmul({g.input([m, k])}, {g.weight([k, n])})"))
        y = g.op(f"nn.matmul({g.input([m, k])}, {g.weight([n, k])}) {{transpose_b = 1}}")
        g.result(f"dense+bias+relu {m}x{k}x{n}", g.op(f"nn.relu({g.op(f'add({y}, {g.weight([n])})')})"))
    for b, m, k, n in [(2, 7, 8, 9), (12, 128, 32, 128), (12, 197, 64, 197), (3, 1, 80, 128), (4, 33, 33, 33)]:
        g.result(f"matmul {b}x{m}x{k}x{n}", g.op(f"nn.matmul({g.input([b, m, k])}, {g.input([b, k, n])})"))
        y = g.op(f"nn.matmul({g.input([b, m, k])}, {g.input([b, n, k])}) {{transpose_b = 1}}")
        g.result(f"matmul transposed {b}x{m}x{k}x{n}", y)
    for dtype in ("f64", "f16", "i32", "i64"):
        for m, k, n in [(64, 64, 64), (17, 20, 35)]:
            y = g.op(f"nn.matmul({g.input([m, k], dtype)}, {g.input([k, n], dtype)})")
            g.result(f"matmul {dtype} {m}x{k}x{n}", y)
    return g


def convolutions():
    g = Group("convolutions")

    def conv(name, c, h, w, o, k, s=1, p=None, groups=1, d=1, n=1):
        p = k // 2 if p is None else p
        y = g.op(f"nn.conv2d({g.input([n, c, h, w])}, {g.weight([o, c // groups, k, k])}) {{strides = [{s}, {s}], "
                 f"pads = [{p}, {p}, {p}, {p}], dilations = [{d}, {d}], groups = {groups}}}")
        g.result(f"{name} {n}x{c}x{h}x{w} to {o} k{k} s{s} p{p} g{groups} d{d}", y)

    for c, o in ((3, 16), (3, 64), (16, 16), (16, 33), (24, 144), (64, 64), (65, 31), (96, 24), (5, 7)):
        for h, k, s in ((14, 1, 1), (14, 3, 1), (15, 3, 2), (28, 5, 1), (7, 3, 1)):
            conv("conv", c, h, h, o, k, s)
    conv("conv", 3, 64, 64, 32, 7, 2)
    conv("conv", 8, 13, 21, 16, 3, 1, 0)
    conv("conv", 16, 20, 20, 16, 3, 1, 2, 1, 2)
    conv("conv", 16, 17, 17, 24, 3, 3, 1)
    conv("conv", 32, 14, 14, 32, 3, 1, 1, 4)
    conv("conv", 12, 9, 9, 18, 3, 1, 1, 3)
    conv("conv", 32, 10, 10, 32, 1, 1, 0, 8)
    conv("conv", 16, 8, 8, 16, 3, 1, 1, n=3)
    for c, h, k, s, m in ((16, 14, 3, 1, 1), (33, 14, 3, 1, 1), (32, 15, 3, 2, 1), (96, 28, 5, 1, 1),
                          (144, 56, 3, 1, 1), (8, 10, 3, 1, 2), (64, 7, 3, 1, 1), (40, 12, 7, 2, 1), (24, 9, 3, 1, 3)):
        conv("depthwise", c, h, h, c * m, k, s, groups=c)
    for c, n, o, k in ((16, 50, 24, 5), (4, 33, 7, 3)):
        g.result(f"conv1d {c}x{n} to {o} k{k}", g.op(f"nn.conv1d({g.input([1, c, n])}, {g.weight([o, c, k])})"))
    g.result("conv3d", g.op(f"nn.conv3d({g.input([1, 4, 6, 8, 8])}, {g.weight([8, 4, 3, 3, 3])})"))
    return g


def blocks():
    """Convolutions behind each other, which keep blocks of channels between them."""
    g = Group("blocks")
    for c, m, o, h in ((16, 96, 24, 28), (24, 144, 24, 14), (32, 192, 64, 7)):
        x = g.op(f"nn.conv2d({g.input([1, c, h, h])}, {g.weight([m, c, 1, 1])})")
        x = g.op(f"nn.relu({x})")
        x = g.op(f"nn.conv2d({x}, {g.weight([m, 1, 3, 3])}) {{groups = {m}, pads = [1, 1, 1, 1]}}")
        x = g.op(f"nn.relu({x})")
        g.result(f"inverted residual {c}-{m}-{o} @{h}", g.op(f"nn.conv2d({x}, {g.weight([o, m, 1, 1])})"))
    for c, h in ((16, 14), (64, 28)):
        x = g.input([1, c, h, h])
        y = g.op(f"nn.relu({g.op(f'nn.conv2d({x}, {g.weight([c, c, 3, 3])}) {{pads = [1, 1, 1, 1]}}')})")
        y = g.op(f"nn.conv2d({y}, {g.weight([c, c, 3, 3])}) {{pads = [1, 1, 1, 1]}}")
        g.result(f"residual {c}@{h}", g.op(f"nn.relu({g.op(f'add({y}, {x})')})"))
        y = g.op(f"nn.conv2d({x}, {g.weight([c, c, 1, 1])})")
        y = g.op(f"nn.max_pool2d({y}) {{pool_size = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}}")
        g.result(f"pool of blocks {c}@{h}", g.op(f"mean({y}) {{axes = [2, 3]}}"))
    return g


def pools():
    g = Group("pools")
    for kind in ("max", "avg"):
        for c, h, k, s, p in ((3, 32, 2, 2, 0), (16, 20, 3, 2, 1), (16, 15, 3, 1, 1), (7, 13, 5, 3, 2),
                              (64, 7, 7, 1, 0), (24, 28, 3, 2, 0)):
            y = g.op(f"nn.{kind}_pool2d({g.input([1, c, h, h])}) {{pool_size = [{k}, {k}], strides = [{s}, {s}], "
                     f"pads = [{p}, {p}, {p}, {p}]}}")
            g.result(f"{kind} pool {c}x{h} k{k} s{s} p{p}", y)
        g.result(f"{kind} pool 1d", g.op(f"nn.{kind}_pool1d({g.input([2, 3, 40])}) {{pool_size = [5]}}"))
    for c, h in ((16, 7), (33, 13), (1280, 7)):
        g.result(f"global mean {c}x{h}", g.op(f"mean({g.input([1, c, h, h])}) {{axes = [2, 3]}}"))
    return g


def rows():
    g = Group("rows")
    for dims in ([48, 200], [12, 40, 40], [64, 7], [2, 300, 64], [1, 1000], [100003], [5, 6, 7, 8], [1024, 1]):
        for axis in range(len(dims)):
            for name in ("sum", "mean", "max", "argmax"):
                keys = f"axis = {axis}" if name == "argmax" else f"axes = [{axis}]"
                g.result(f"{name} {dims} over {axis}", g.op(f"{name}({g.input(dims)}) {{{keys}}}"))
        for name in ("nn.softmax", "nn.log_softmax"):
            for axis in {0, len(dims) - 1}:
                g.result(f"{name} {dims} over {axis}", g.op(f"{name}({g.input(dims)}) {{axis = {axis}}}"))
        n = dims[-1]
        if len(dims) > 1:
            y = g.op(f"nn.layer_norm({g.input(dims)}, {g.weight([n])}, {g.weight([n])})")
            g.result(f"layer norm {dims}", y)
            g.result(f"rms norm {dims}", g.op(f"nn.rms_norm({g.input(dims)}, {g.weight([n])})"))
    for c, h in ((16, 14), (33, 7)):
        y = g.op(f"nn.batch_norm({g.input([2, c, h, h])}, {', '.join(g.weight([c]) for _ in range(4))})")
        g.result(f"batch norm {c}x{h}", y)
    return g


def elementwise():
    g = Group("elementwise")
    for dims in ([16], [197], [4097], [1000003], [64, 64], [7, 19], [1, 16, 14, 14], [3, 5, 7, 9], [128, 1537]):
        for name in ("nn.relu", "exp", "gelu", "sigmoid", "sqrt"):
            g.result(f"{name} {dims}", g.op(f"{name}({g.input(dims)})"))
        g.result(f"add {dims}", g.op(f"add({g.input(dims)}, {g.input(dims)})"))
        for i in range(len(dims)):
            other = [1 if i == k else d for k, d in enumerate(dims)]
            g.result(f"multiply {dims} by {other}", g.op(f"multiply({g.input(dims)}, {g.input(other)})"))
    for dtype in ("f64", "f16", "i32", "i8"):
        for dims in ([4097], [7, 19], [64, 64]):
            g.result(f"add {dtype} {dims}", g.op(f"add({g.input(dims, dtype)}, {g.input(dims, dtype)})"))
    return g


def moves():
    g = Group("moves")
    for dims, axes in (([64, 64], [1, 0]), ([197, 80], [1, 0]), ([1, 12, 33, 32], [0, 2, 1, 3]),
                       ([2, 3, 14, 15], [0, 2, 3, 1]),
                       ([5, 7, 9], [2, 0, 1]), ([8, 16, 4, 4], [1, 0, 2, 3])):
        g.result(f"transpose {dims} {axes}", g.op(f"transpose({g.input(dims)}) {{perm = {axes}}}"))
    for dims, n, axis in (([1000, 64], 128, 0), ([30, 17], 5, 1), ([100, 3, 4], 7, 0)):
        g.result(f"take {dims} {n} of {axis}", g.op(f"take({g.input(dims)}, {g.input([n], 'i64')}) {{axis = {axis}}}"))
    for parts, axis in (([[3, 16], [5, 16]], 0), ([[7, 5], [7, 6], [7, 9]], 1), ([[1, 16, 9, 9], [1, 24, 9, 9]], 1)):
        names = ", ".join(g.input(p) for p in parts)
        g.result(f"concatenate {parts} {axis}", g.op(f"concatenate({names}) {{axis = {axis}}}"))
    g.result("slice", g.op(f"strided_slice({g.input([20, 33])}, {g.ints([3])}, {g.ints([17])}, {g.ints([0])})"))
    g.result("pad", g.op(f"nn.pad({g.input([1, 3, 9, 9])}, {g.ints([0, 0, 1, 2, 0, 0, 3, 0])})"))
    return g


def attention():
    g = Group("attention")
    for length in (1, 7, 128, 197):
        for head in (32, 64, 80):
            q, k, v = (g.input([1, 4, length, head]) for _ in range(3))
            k = g.op(f"transpose({k}) {{perm = [0, 1, 3, 2]}}")
            scale = g.op(f"constant f32[] splat {1 / math.sqrt(head)}")
            scores = g.op(f"nn.matmul({q}, {k})")
            p = g.op(f"nn.softmax({g.op(f'multiply({scores}, {scale})')})")
            g.result(f"attention {length} of {head}", g.op(f"nn.matmul({p}, {v})"))
    for steps, size, hidden in ((5, 16, 32), (7, 10, 17)):
        x, w = g.input([steps, 1, size]), g.weight([1, 4 * hidden, size])
        y = g.op(f"lstm({x}, {w}, {g.weight([1, 4 * hidden, hidden])}) {{hidden_size = {hidden}}}", 3)
        g.result(f"lstm {steps}x{size} of {hidden}", y)
    return g


GROUPS = (products, convolutions, blocks, pools, rows, elementwise, moves, attention)


def write_weights(folder):
    with open(os.path.join(folder, "weights.bin"), "wb") as f:
        f.write(b"".join(struct.pack("<f", (i * 7919 % 1009) / 1009 - 0.5) for i in range(WEIGHTS)))


# --- what is left ---

def compile_group(lathe, target, group, folder):
    source, out = os.path.join(folder, group.name + ".txt"), os.path.join(folder, f"{group.name}-{target}")
    done = subprocess.run([lathe, "compile", source, "--target", target, "-q", "-o", out], stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        return None, done.stderr
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        return json.load(f), ""


def left_of(report, group):
    """{(count's name, shape): number}: an operator belongs to the result that it is on the way to."""
    names = {value.lstrip("%"): name for name, value in group.results}
    results = {i: names[v["name"]] for i, v in enumerate(report["values"]) if v["name"] in names}
    readers = {}
    for op in report["operators"]:
        for value in op["inputs"]:
            readers.setdefault(value, []).append(op)
    left = {}
    for op in report["operators"]:
        values, seen = list(op["outputs"]), set()
        while values and values[0] not in results:
            seen.add(values[0])
            values = values[1:] + [v for r in readers.get(values[0], ()) for v in r["outputs"] if v not in seen]
        shape_name = results[values[0]] if values else op["name"]
        for key in COUNTS:
            if op[key]:
                left[key, shape_name] = left.get((key, shape_name), 0) + op[key]
    return left


def read_known():
    with open(KNOWN, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                key, target, number, name = line.rstrip("\n").split(" ", 3)
                yield (key, target, name), int(number)


def reason_of(key, name):
    """Its number in REASONS; one more than there are: none."""
    fits = (i for i, (count, glob, _) in enumerate(REASONS) if count == key and fnmatch.fnmatch(name, glob))
    return next(fits, len(REASONS))


def write_known(left):
    with open(KNOWN, "w", encoding="utf-8") as f:
        f.write("# What default schedules leave undone (grid.py --update): count, target, number, shape.\n")
        last = None
        for reason, key, target, name in sorted((reason_of(k[0], k[2]), *k) for k in left):
            if reason != last:
                f.write(f"\n# {REASONS[reason][2] if reason < len(REASONS) else 'no reason'}\n")
            last = reason
            f.write(f"{key} {target} {left[key, target, name]} {name}\n")


def check(left, targets):
    known = {k: n for k, n in read_known() if k[1] in targets}
    failed = 0
    for k in sorted({k for k in left if k[1] in targets} | set(known)):
        have, want = left.get(k, 0), 0 if k[0] in NEVER else known.get(k, 0)
        if have and reason_of(k[0], k[2]) == len(REASONS):
            failed += 1
            print(f"FAILED {k[2]}, {k[1]}: {k[0]} is {have}, which has no reason")
            continue
        if have != want:
            failed += 1
            print(f"FAILED {k[2]}, {k[1]}: {k[0]} is {have}, {want} known" + ("" if have > want else ": --update"))
    return failed


def verify(lathe, target, group, folder):
    source = os.path.join(folder, group.name + ".txt")
    done = subprocess.run([lathe, "verify", source, "--target", target, "--no-winograd", "--against", "interpreter"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if not line.endswith(": ok")]
    if done.returncode:
        print(f"FAILED {group.name}, {target}:", *wrong[:5], sep="\n    ")
    return bool(done.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--target", default=TARGETS)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    o = parser.parse_args()
    groups, targets, left, failed = [make() for make in GROUPS], o.target.split(","), {}, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.j) as pool:
        write_weights(folder)
        for g in groups:
            with open(os.path.join(folder, g.name + ".txt"), "w", encoding="utf-8") as f:
                f.write(g.text())
        jobs = [(t, g, pool.submit(compile_group, o.lathe, t, g, folder)) for t in targets for g in groups]
        for t, g, job in jobs:
            report, error = job.result()
            if report is None:
                print(f"FAILED {g.name}, {t}: {error[:400]}")
                failed += 1
                continue
            left.update({(key, t, name): n for (key, name), n in left_of(report, g).items()})
        if o.verify:
            every = [(t, g) for t in targets for g in groups]
            failed += sum(pool.map(lambda job: verify(o.lathe, *job, folder), every))
    shapes = sum(len(g.results) for g in groups)
    if o.update:
        write_known(left)
    failed += check(left, [t for t in targets if t in TARGETS.split(",")])
    print(f"grid: {shapes} shapes, {len(targets)} targets: {shapes * len(targets) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
