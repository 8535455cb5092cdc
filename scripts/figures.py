#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe's own figures on microcontrollers in README.md and docs, measured in emulators.

    figures.py [--lathe FILE] [--models DIR] [--check]

Runs `lathe verify` on MLPerf Tiny's four quantized networks, and on the float network of the demo, for each board of
BOARDS. On a Cortex-M4 it also runs the four with `--minimize ram`, one with `--ram 34K`, and the four as TensorFlow
Lite has them. Where a table compares Lathe with other tools, RAM has the input and output of each tool: Lathe's rows
are built with LIKE_PEERS, and the output is added. It writes the rows of the tables anew. --check writes nothing, and
fails if a figure is more than 1 % off. Figures of other tools come from peers.py, which measures one of them again.
README.md's sentence about x86-64 gets the means of benchmarks.md and of notes/performance.md. Without the models or an
emulator the exit status is 77."""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys

from peers import HELIUM, NETWORKS, PEERS, ram

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README, BENCHMARKS, BOARD_PAGE, PLAN, TFLITE, QUANTIZED, NOTES = (os.path.join(TOP, name) for name in (
    "README.md", "docs/explanation/benchmarks.md", "docs/explanation/cortex-m.md", "docs/explanation/plan.md",
    "docs/how-to/from-tflite-micro.md", "docs/explanation/quantize.md", "docs/notes/performance.md"))
BOARDS = ("m0plus", "m3", "m4", "m7", "m33", "m55", "rv32")  # in the order of the columns in cortex-m.md
EMULATORS = ("arm-none-eabi-gcc", "qemu-system-arm", "riscv64-unknown-elf-gcc", "qemu-system-riscv32")
# Bytes in and out, the input in the workspace: as in the arena of TensorFlow Lite Micro. A float softmax stays float.
LIKE_PEERS = "--quantized-io", "--allow-float-io", "--input-in-workspace"
ROOM = 0.01


def measure(lathe, model, board, *options):
    """What the report has about the board, with the sums that the pages show."""
    done = subprocess.run([lathe, "verify", model, "--target", "qemu-" + board, "--against", "interpreter", "--seeds",
                           "1", "--json", *options], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["result"]["board"]
    found["ram"] = found["data"] + found["bss"] + found["stack"]
    found["flash"] = found["text"] + found["rodata"] + found["data"]
    done = subprocess.run([lathe, "inspect", model, "--target", "cortex-" + board if board[0] == "m" else "rv32imc",
                           "--json", *options], capture_output=True, text=True, check=True)
    found["with_ends"] = found["ram"] + json.loads(done.stdout)["result"]["proof"]["memory"]["caller"]
    return found


def millions(n):
    return f"{n / 1e6:.2f}" if n >= 1e6 else f"{n / 1e6:.3f}"


def kilobytes(n):
    return f"{n / 1000:.1f} KB"


def put_row(text, name, unit, figures):
    """Replaces the row of that name whose first figure looks like `unit`; bold ones stay bold."""
    cells = r" \| ".join([r"(\**)([\d.,]+)\**"] * len(figures))
    pattern = re.compile(r"^(\| \**" + re.escape(name) + r"\** \| )" + cells + r" \|$", re.M)
    for found in pattern.finditer(text):
        if re.fullmatch(unit, found.group(3)):
            bold = [found.group(2 + 2 * i) for i in range(len(figures))]
            new = found.group(1) + " | ".join(b + f + b for b, f in zip(bold, figures)) + " |"
            return text[:found.start()] + new + text[found.end():]
    raise SystemExit(f"figures: the page has no row '{name}' of {unit}")


def put(text, pattern, new):
    text, n = re.subn(pattern, new, text)
    if n != 1:
        raise SystemExit(f"figures: {n} places look like {pattern}")
    return text


def put_peers(page):
    """The rows of other tools: the tables of instructions, RAM and flash, in this order."""
    for name, (instructions, *memory) in PEERS.items():
        digits = [3 if n < 1e6 else 2 if n < 5e6 or "CMSIS-NN" in name else 1 for n in instructions]
        counts = [f"{n / 1e6:.{d}f}" for n, d in zip(instructions, digits)]
        rows = iter([counts] + [[f"{n:,}" for n in row] for row in (ram(name), *memory[1:])])
        page = re.sub(rf"^(\| {re.escape(name)} \| )([\d*][\d.,* |]*) \|$", lambda m: m[1] + " | ".join(
            f"**{f}**" if "*" in old else f for f, old in zip(next(rows), m[2].split(" | "))) + " |", page, flags=re.M)
    return put(page, r"(CMSIS-NN\s+takes) [\d.]+, [\d.]+, [\d.]+ and \d+\.\d+",
               r"\g<1> {}, {}, {} and {}".format(*(millions(n) for n in HELIUM)))


def write_benchmarks(page, usual, least, helium):
    page = put_row(page, "Lathe", r"\d+\.\d+", [millions(usual[n]["instructions"]) for n in NETWORKS])
    page = put_row(page, "Lathe", r"\d{1,2},\d{3}", [f"{usual[n]['with_ends']:,}" for n in NETWORKS])
    page = put_row(page, "Lathe, `--minimize ram`", r"[\d,]+", [f"{least[n]['with_ends']:,}" for n in NETWORKS])
    page = put_row(page, "Lathe", r"\d{3},\d{3}", [f"{usual[n]['flash']:,}" for n in NETWORKS])
    page = put_peers(page)
    return put(page, r"Lathe takes [\d.]+, [\d.]+, [\d.]+ and [\d.]+ million instructions",
               "Lathe takes {}, {}, {} and {} million instructions".format(
                   *(millions(helium[n]["instructions"]) for n in NETWORKS)))


def x86_means(benchmarks, notes):
    """The geometric means of the tables for x86-64: float and int8, each by 1 and 2 threads; then floats of notes."""
    means = re.findall(r"^\| (?:float|int8), \d threads? \|.* \*\*([\d.]+)\*\* \|$", benchmarks, re.M)
    if len(means) != 4:
        raise SystemExit(f"figures: benchmarks.md has {len(means)} means for x86-64, not 4")
    for workers in "12":
        ratios = re.findall(rf"^\| [a-z0-9]+ \| {workers} \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|", notes, re.M)
        means.append(f"{math.prod(map(float, ratios)) ** (1 / len(ratios)):.2f}")
    return means


def write_x86(readme, means):
    float1, float2, int1, int2, older1, older2 = means
    readme = put(readme, r"on average\s[\d.]+( times[^.]*?thread,?\s+and )[\d.]+( times)",
                 rf"on average {float1}\g<1>{float2}\g<2>")
    readme = put(readme, r"(they\s+run )[\d.]+ and [\d.]+( times as fast\.\s+On an Intel)",
                 rf"\g<1>{int1} and {int2}\g<2>")
    return put(readme, r"(\(AVX-512\),[^.]*?)[\d.]+( and )[\d.]+( times)", rf"\g<1>{older1}\g<2>{older2}\g<3>")


def write_readme(readme, usual):
    instructions = dict(zip(NETWORKS, PEERS["TensorFlow Lite Micro, CMSIS-NN"][0]))
    theirs = dict(zip(NETWORKS, ram("TensorFlow Lite Micro, CMSIS-NN")))
    for name, n in (("Keyword spotting", "kws"), ("Image classification", "ic"), ("Visual wake words", "vww")):
        readme = put(readme, rf"(\| {name} \| )[\d.]+( M[ a-z]*, )[\d.]+ KB([^|]*\| )\*\*[^|]+?\*\*",
                     rf"\g<1>{instructions[n] / 1e6:.1f}\g<2>{kilobytes(theirs[n])}\g<3>"
                     rf"**{usual[n]['instructions'] / 1e6:.1f} M, {kilobytes(usual[n]['with_ends'])}**")
    return readme


def write_boards(page, boards, least):
    """The table of instructions, and that of memory on a Cortex-M4."""
    for n, name in {**NETWORKS, "digits": "digits (float)"}.items():
        page = put_row(page, name, r"\d+\.\d+", [f"{boards[b][n]['instructions'] / 1e6:.2f}" for b in BOARDS])
    for n, name in NETWORKS.items():
        m4 = boards["m4"][n]
        sizes = m4["ram"], least[n]["ram"], m4["text"], m4["rodata"]
        page = put_row(page, name, r"[\d,]+", [f"{v:,}" for v in sizes])
    return page


def write_plan(page, usual, least, budget):
    for n, name in NETWORKS.items():
        page = put_row(page, name, r"[\d,]+", [f"{usual[n]['ram']:,}", f"{least[n]['ram']:,}"] + [
            f"{of[n]['instructions'] / 1e6:.2f}" for of in (usual, least)])
    return put(page, r"(`--ram 34K` takes\s)[\d,]+( bytes and\s)[\d.]+( million instructions)",
               rf"\g<1>{budget['ram']:,}\g<2>{millions(budget['instructions'])}\g<3>")


def write_tflite(page, found):
    """The table of .tflite models beside TensorFlow Lite Micro, three rows each."""
    for i, (n, name) in enumerate(NETWORKS.items()):
        theirs, own = [row[i] for row in PEERS["TensorFlow Lite Micro, CMSIS-NN"]], found[n]
        rows = [f"| {name.capitalize()}: instructions | {millions(theirs[0])} M | {millions(own['instructions'])} M |",
                f"| RAM | {theirs[1]:,} | {own['with_ends']:,} |", f"| flash | {theirs[2]:,} | {own['flash']:,} |"]
        page = put(page, rf"\| {name.capitalize()}: instructions \|.*\n\| RAM \|.*\n\| flash \|.*", "\n".join(rows))
    return page


def write_quantized(page, usual):
    """The figures with integers, behind those with floats: instructions, RAM, flash."""
    for n, name in NETWORKS.items():
        count = usual[n]["instructions"] / 1e6
        page = put(page, rf"(\| {name} \| [^|]*\| [\d.]+ / )[\d.]+( \| [\d,]+ / )[\d,]+( \| [\d,]+ / )[\d,]+",
                   rf"\g<1>{count:.{1 if count > 1 else 2}f}\g<2>{usual[n]['ram']:,}\g<3>{usual[n]['flash']:,}")
    return page


def far(before, after):
    """Figures that are more than ROOM off, as pairs; the texts are alike but for their figures."""
    figure = re.compile(r"\d[\d,]*\.?\d*")
    pairs = zip(figure.findall(before), figure.findall(after))
    values = [(a, b, float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs if a != b]
    return [f"{a}, and {b} is measured" for a, b, x, y in values if abs(x - y) > max(ROOM * y, 0.05 if y < 50 else 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--models", default=os.path.join(TOP, "..", "shared", "models", "mlperf-tiny"))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    models = {n: os.path.join(args.models, n + "_qdq.onnx") for n in NETWORKS}
    if not all(map(os.path.exists, models.values())) or not all(map(shutil.which, EMULATORS)):
        print("figures: no models, or no emulator\n0 passed, 0 failed, 1 skipped")
        return 77
    digits = {"digits": os.path.join(TOP, "demo", "digits.onnx")}
    boards = {b: {n: measure(args.lathe, m, b) for n, m in {**models, **digits}.items()} for b in BOARDS}
    least = {n: measure(args.lathe, m, "m4", "--minimize", "ram") for n, m in models.items()}
    budget = measure(args.lathe, models["vww"], "m4", "--ram", "34K")
    tflite = {n: measure(args.lathe, m.replace("_qdq.onnx", "_int8.tflite"), "m4", "--input-in-workspace")
              for n, m in models.items()}
    bytes_in = {b: {n: measure(args.lathe, m, b, *LIKE_PEERS) for n, m in models.items()} for b in ("m4", "m55")}
    bytes_least = {n: measure(args.lathe, m, "m4", *LIKE_PEERS, "--minimize", "ram") for n, m in models.items()}
    pages = (BENCHMARKS, README, BOARD_PAGE, PLAN, TFLITE, QUANTIZED)
    with open(NOTES, encoding="utf-8") as f:
        notes = f.read()
    before = [open(path, encoding="utf-8").read() for path in pages]
    usual = boards["m4"]
    after = [write_benchmarks(before[0], bytes_in["m4"], bytes_least, bytes_in["m55"]),
             write_x86(write_readme(before[1], bytes_in["m4"]), x86_means(before[0], notes)),
             write_boards(before[2], boards, least), write_plan(before[3], usual, least, budget),
             write_tflite(before[4], tflite), write_quantized(before[5], usual)]
    wrong = 0
    for path, old, new in zip(pages, before, after):
        for what in far(old, new) if args.check else ():
            print(f"FAILED {os.path.relpath(path, TOP)}: {what}")
            wrong += 1
        if not args.check and old != new:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
            print("written:", os.path.relpath(path, TOP))
    if args.check:
        print(f"figures: {len(pages) - min(wrong, len(pages))} passed, {wrong} failed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
