#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions for each vector multiply-add of floats, and for each multiply-add of bytes, counted under qemu's user
mode: a measure without noise, for processors that are not at hand, too.

    instructions.py [--lathe FILE] [--update] [-j N]

A package of a few layers is built for each target, statically, and its program runs once under a plugin that counts the
instructions of every function (test/steps/qemu_count.c). The tables in docs/notes/performance.md hold the numbers, with
the compilers that they are for: one that is more than 5 % above fails, and --update rewrites them. With other
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
from dataclasses import dataclass

import grid
import package

TOP = grid.TOP
DOCUMENT = os.path.join(TOP, "docs", "notes", "performance.md")
WORSE = 1.05
RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen={},elen=64,vext_spec=v1.0"
ARM, RISCV_CLANG = "aarch64-linux-gnu-gcc", "clang-19 --target=riscv64-linux-gnu"
# target: lanes of 32 bits, compiler, emulator
FLOATS = {
    "x86-64-v2": (4, "gcc", "qemu-x86_64 -cpu max"),
    "x86-64-v3": (8, "gcc", "qemu-x86_64 -cpu max"),
    "x86-64-v3, clang": (8, "clang-19", "qemu-x86_64 -cpu max"),
    "aarch64": (4, ARM, "qemu-aarch64"),
    "rv64gcv": (4, RISCV_CLANG, RISCV.format(128)),
}
# the same for each number
BYTES = {
    "aarch64": (1, ARM, "qemu-aarch64"),
    "aarch64, clang": (1, "clang-19 --target=aarch64-linux-gnu", "qemu-aarch64"),
    "aarch64-dotprod": (1, ARM, "qemu-aarch64 -cpu max"),
    "aarch64-i8mm": (1, ARM, "qemu-aarch64 -cpu max"),
    "rv64gcv": (1, RISCV_CLANG, RISCV.format(128)),
    "rv64gcv_zvl256b": (1, RISCV_CLANG, RISCV.format(256)),
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


def byte_layers():
    """The same of bytes: data of u8 or i8, or of 16 bits, weights of i8, the end a requantisation."""
    g, names = grid.Group("byte_layers"), {}
    scale = g.op("constant f32[] dense [0.001]")
    zero = {t: g.op(f"constant {t}[] dense [{z}]") for t, z in (("u8", 117), ("i8", -3), ("i16", 5))}
    one = g.op("constant f32[] dense [1.0]")

    def weight(dims):
        return g.op(f'constant {grid.shape(dims, "i8")} file "bytes.bin" 0')

    def result(name, macs, data, op, attributes=""):
        names[macs] = f"{name}, {data}"
        sums = g.op(f"qnn.{op}, {zero[data]}){attributes}")
        g.result(name, g.op(f"qnn.requantize({sums}, {scale}, {one}, {zero[data]})"))

    for m, k, n, data in ((60, 64, 128, "u8"), (17, 64, 40, "u8"), (1, 256, 320, "u8"), (1, 256, 328, "i8")):
        result(f"product {m}x{k}x{n}", m * k * n, data, f"matmul({g.input([m, k], data)}, {weight([k, n])}")
    for c, h, o, k, s, data in ((32, 14, 64, 1, 1, "u8"), (32, 14, 72, 1, 1, "i8"), (32, 14, 32, 3, 1, "u8"),
                                (16, 15, 32, 3, 2, "u8"), (16, 10, 32, 5, 1, "u8"), (32, 14, 40, 3, 1, "i16")):
        p, out = k // 2, (h + 2 * (k // 2) - k) // s + 1
        result(f"{k}x{k} convolution {c} to {o} @{h}" + (" / 2" if s > 1 else ""), o * out * out * c * k * k, data,
               f"conv2d({g.input([1, c, h, h], data)}, {weight([o, c, k, k])}",
               f" {{strides = [{s}, {s}], pads = [{p}, {p}, {p}, {p}]}}")
    result("1x1 convolution 16 to 96 @14", 96 * 14 * 14 * 16, "u8",
           f"conv2d({g.input([1, 16, 14, 14], 'u8')}, {weight([96, 16, 1, 1])}")
    x = g.results[-1][1]
    result("3x3 depthwise convolution 96 @14", 96 * 14 * 14 * 9, "u8", f"conv2d({x}, {weight([96, 1, 3, 3])}",
           " {groups = 96, pads = [1, 1, 1, 1]}")
    return g, names


@dataclass
class Table:
    name: str
    targets: dict
    layers: object
    digits: int

    def marks(self):
        return f"<!-- table: {self.name}, made by test/py/instructions.py -->", f"<!-- end of {self.name} -->"


TABLES = (Table("instructions of floats", FLOATS, layers, 2), Table("instructions of bytes", BYTES, byte_layers, 3))


def write_bytes(folder):
    """No weight is -128, as in models."""
    with open(os.path.join(folder, "bytes.bin"), "wb") as f:
        f.write(bytes((i * 7919 % 251 - 125) % 256 for i in range(1 << 17)))


def version(command):
    text = subprocess.run([command.split()[0], "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d+", text)[0]


def compilers():
    """What the table is for; None: a tool is not here."""
    tools = {c.split()[0] for t in (FLOATS | BYTES).values() for c in t[1:]} | {"riscv64-linux-gnu-gcc", "cc"}
    if any(not shutil.which(t) for t in tools):
        return None
    return ", ".join(f"{c} {version(c)}" for c in ("gcc", "clang-19", "aarch64-linux-gnu-gcc", "qemu-aarch64"))


def count(lathe, t, name, source, plugin, names, folder):
    """{layer: instructions for each vector multiply-add}; of doubles, a vector holds half as many"""
    lanes, cc, emulator = t.targets[name]
    half = [macs for macs, layer in names.items() if "doubles" in layer]
    out = os.path.join(folder, re.sub(r"\W", "_", t.name + name))
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


def write_table(t, columns, names, tools):
    lines = [f"{tools}.", "", "| layer | " + " | ".join(t.targets) + " |", "|---|" + "---|" * len(t.targets)]
    for layer in names.values():
        lines.append(f"| {layer} | " + " | ".join(f"{columns[x][layer]:.{t.digits}f}" for x in t.targets) + " |")
    return "\n".join(lines)


def read_table(t, text):
    """The compilers, and {(layer, target): number}."""
    rows = text.strip().splitlines()
    known = {}
    for row in rows[4:]:
        cells = [c.strip() for c in row.strip("|").split("|")]
        known.update({(cells[0], x): float(n) for x, n in zip(t.targets, cells[1:])})
    return rows[0].rstrip(".") if rows else "", known


def measure(o, t, folder, plugin, pool):
    """The names of layers, {target: {layer: instructions}}"""
    g, names = t.layers()
    source = os.path.join(folder, g.name + ".txt")
    with open(source, "w", encoding="utf-8") as f:
        f.write(g.text())
    jobs = {x: pool.submit(count, o.lathe, t, x, source, plugin, names, folder) for x in t.targets}
    return names, {x: job.result() for x, job in jobs.items()}


def compare(t, known, columns):
    """How many passed, how many failed."""
    failed = 0
    for (layer, target), n in known.items():
        if columns[target][layer] > n * WORSE + 0.5 * 10 ** -t.digits:
            failed += 1
            print(f"FAILED {layer}, {target}: {columns[target][layer]:.{t.digits}f} instructions, "
                  f"{n:.{t.digits}f} known")
    return len(known) - failed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    o = parser.parse_args()
    with open(DOCUMENT, encoding="utf-8") as f:
        document = f.read()
    tools, passed, failed = compilers(), 0, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.j) as pool:
        plugin = os.path.join(folder, "count.so")
        for t in TABLES:
            begin, end = t.marks()
            before, rest = document.split(begin)
            text, after = rest.split(end)
            known_tools, known = read_table(t, text)
            if tools is None or (tools != known_tools and not o.update):
                print(f"instructions: 0 passed, 0 failed, 1 skipped: {tools or 'tools are missing'}, "
                      f"the table is for {known_tools}")
                return 0
            if not os.path.exists(plugin):
                grid.write_weights(folder)
                write_bytes(folder)
                counter = os.path.join(TOP, "test", "steps", "qemu_count.c")
                subprocess.run(["cc", "-O2", "-shared", "-fPIC", counter, "-o", plugin], check=True)
            names, columns = measure(o, t, folder, plugin, pool)
            if o.update:
                document = f"{before}{begin}\n{write_table(t, columns, names, tools)}\n{end}{after}"
            table_passed, table_failed = compare(t, known, columns) if not o.update else (0, 0)
            passed, failed = passed + table_passed, failed + table_failed
    if o.update:
        with open(DOCUMENT, "w", encoding="utf-8") as f:
            f.write(document)
        return 0
    print(f"instructions: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
