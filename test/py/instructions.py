#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions for each vector multiply-add, counted under qemu's user mode: a measure without noise, for processors
that are not at hand, too.

    instructions.py [--lathe FILE] [--update] [-j N]

A package of a few layers is built for each target, statically, and its program runs once under a plugin that counts the
instructions of every function (test/steps/qemu_count.c). The table in docs/performance.md holds the numbers, with the
compilers that they are for: one that is more than 5 % above fails, and --update rewrites the table. With other
compilers, or without the tools, nothing is compared.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import grid
import package

TOP = grid.TOP
DOCUMENT = os.path.join(TOP, "docs", "performance.md")
BEGIN, END = "<!-- table: made by test/py/instructions.py -->", "<!-- end of the instructions -->"
WORSE = 1.05
RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen=128,elen=64,vext_spec=v1.0"
# target: lanes of 32 bits, compiler, emulator
TARGETS = {
    "x86-64-v2": (4, "gcc", "qemu-x86_64 -cpu max"),
    "x86-64-v3": (8, "gcc", "qemu-x86_64 -cpu max"),
    "x86-64-v3, clang": (8, "clang-19", "qemu-x86_64 -cpu max"),
    "aarch64": (4, "aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "rv64gcv": (4, "clang-19 --target=riscv64-linux-gnu", RISCV),
}


def layers():
    """A graph, and what its kernels are called in the table, by multiply-adds, which all differ."""
    g, names = grid.Group("layers"), {}

    def result(name, macs, value):
        names[macs] = name
        g.result(name, value)

    for m, k, n in ((60, 64, 128), (61, 64, 197), (17, 65, 33), (1, 256, 320)):
        result(f"product {m}x{k}x{n}", m * k * n, g.op(f"nn.matmul({g.input([m, k])}, {g.input([k, n])})"))
    for m, k, n in ((60, 96, 96), (32, 100, 10)):
        y = g.op(f"nn.matmul({g.input([m, k])}, {g.weight([k, n])})")
        result(f"packed product {m}x{k}x{n}", m * k * n, g.op(f"nn.relu({g.op(f'add({y}, {g.weight([n])})')})"))
    result("product of doubles 48x48x48", 48 ** 3,
           g.op(f"nn.matmul({g.input([48, 48], 'f64')}, {g.input([48, 48], 'f64')})"))
    for c, h, o, k, s in ((32, 14, 64, 1, 1), (32, 14, 32, 3, 1), (16, 15, 32, 3, 2), (3, 20, 32, 5, 1)):
        p = k // 2
        y = g.op(f"nn.conv2d({g.input([1, c, h, h])}, {g.weight([o, c, k, k])}) {{strides = [{s}, {s}], "
                 f"pads = [{p}, {p}, {p}, {p}]}}")
        out = (h + 2 * p - k) // s + 1
        result(f"{k}x{k} convolution {c} to {o} @{h}" + (" / 2" if s > 1 else ""), o * out * out * c * k * k, y)
    x = g.op(f"nn.relu({g.op(f'nn.conv2d({g.input([1, 16, 14, 14])}, {g.weight([96, 16, 1, 1])})')})")
    names[96 * 14 * 14 * 16] = "1x1 convolution 16 to 96 @14, clipped at 0"
    y = g.op(f"nn.conv2d({x}, {g.weight([96, 1, 3, 3])}) {{groups = 96, pads = [1, 1, 1, 1]}}")
    names[96 * 14 * 14 * 9] = "3x3 depthwise convolution 96 @14"
    result("1x1 convolution 96 to 24 @14", 24 * 14 * 14 * 96, g.op(f"nn.conv2d({y}, {g.weight([24, 96, 1, 1])})"))
    return g, names


def version(command):
    text = subprocess.run([command.split()[0], "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d+", text)[0]


def compilers():
    """What the table is for; None: a tool is not here."""
    tools = {c.split()[0] for t in TARGETS.values() for c in t[1:]} | {"riscv64-linux-gnu-gcc", "cc"}
    if any(not shutil.which(t) for t in tools):
        return None
    return ", ".join(f"{c} {version(c)}" for c in ("gcc", "clang-19", "aarch64-linux-gnu-gcc", "qemu-aarch64"))


def count(lathe, name, source, plugin, names, folder):
    """{layer: instructions for each vector multiply-add}; of doubles, a vector holds half as many"""
    lanes, cc, emulator = TARGETS[name]
    half = [macs for macs, layer in names.items() if "doubles" in layer]
    out = os.path.join(folder, re.sub(r"\W", "_", name))
    options = ["--target", name.split(",")[0], "--no-winograd", "-q"]
    message = package.compile_model(lathe, source, out, "default", options)
    message = message or package.make(out, 0, settings=(f"CC={cc}", "LDFLAGS=-static", "CFLAGS=-O3"))
    if message:
        raise package.Failure(f"{name}: {message}")
    listing = os.path.join(out, "counts")
    subprocess.run([*emulator.split(), "-plugin", f"{plugin},out={listing}", os.path.join(out, "runner")],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=package.TIME_LIMIT)
    counts = {}
    with open(listing, encoding="utf-8") as f:
        for line in f:
            n, function = line.split()
            function = function.split(".")[0]
            counts[function] = counts.get(function, 0) + int(n)
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        operators = json.load(f)["operators"]
    parts = ("tvmgen_default_", "tvmgen_default_wrapped_")  # a compiler may put the kernel into its wrapper
    return {names[n]: lanes / (1 + (n in half)) * sum(counts.get(p + op["kernel"], 0) for p in parts) / n
            for op in operators for n in [op["macs"]] if n in names}


def table(columns, names, tools):
    lines = [f"{tools}.", "", "| layer | " + " | ".join(TARGETS) + " |", "|---|" + "---|" * len(TARGETS)]
    for layer in names.values():
        lines.append(f"| {layer} | " + " | ".join(f"{columns[t][layer]:.2f}" for t in TARGETS) + " |")
    return "\n".join(lines)


def read_table(text):
    """The compilers, and {(layer, target): number}."""
    rows = text.strip().splitlines()
    known = {}
    for row in rows[4:]:
        cells = [c.strip() for c in row.strip("|").split("|")]
        known.update({(cells[0], t): float(n) for t, n in zip(TARGETS, cells[1:])})
    return rows[0].rstrip("."), known


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    o = parser.parse_args()
    with open(DOCUMENT, encoding="utf-8") as f:
        before, rest = f.read().split(BEGIN)
    text, after = rest.split(END)
    tools, (known_tools, known) = compilers(), read_table(text) if text.strip() else ("", {})
    if tools is None or (tools != known_tools and not o.update):
        here = tools or "tools are missing"
        print(f"instructions: 0 passed, 0 failed, 1 skipped: {here}, the table is for {known_tools}")
        return 0
    g, names = layers()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.j) as pool:
        source, plugin = os.path.join(folder, "layers.txt"), os.path.join(folder, "count.so")
        grid.write_weights(folder)
        with open(source, "w", encoding="utf-8") as f:
            f.write(g.text())
        counter = os.path.join(TOP, "test", "steps", "qemu_count.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", counter, "-o", plugin], check=True)
        jobs = {t: pool.submit(count, o.lathe, t, source, plugin, names, folder) for t in TARGETS}
        columns = {t: job.result() for t, job in jobs.items()}
    if o.update:
        with open(DOCUMENT, "w", encoding="utf-8") as f:
            f.write(f"{before}{BEGIN}\n{table(columns, names, tools)}\n{END}{after}")
        return 0
    failed = 0
    for (layer, target), n in known.items():
        if columns[target][layer] > n * WORSE + 0.005:
            failed += 1
            print(f"FAILED {layer}, {target}: {columns[target][layer]:.2f} instructions, {n:.2f} known")
    print(f"instructions: {len(known) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
