#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe's own figures on microcontrollers in README.md and docs/explanation/benchmarks.md, measured in emulators.

    figures.py [--lathe FILE] [--models DIR] [--check]

Runs `lathe verify` on MLPerf Tiny's four quantized networks for a Cortex-M4, as compiled by default and with
`--minimize ram`, and for a Cortex-M55, and writes the rows anew. --check writes nothing, and fails where a figure is
more than 1 % off. Figures of other tools stay as they are: the page says how those were measured. Without the models
or an emulator it ends with 77."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README, PAGE = os.path.join(TOP, "README.md"), os.path.join(TOP, "docs", "explanation", "benchmarks.md")
NETWORKS = ("vww", "ic", "kws", "ad")  # in the order of the page's columns
ROOM = 0.01


def measure(lathe, model, *options):
    """Instructions, bytes of RAM with the stack, bytes of flash."""
    done = subprocess.run([lathe, "verify", model, "--against", "interpreter", "--seeds", "1", "--json", *options],
                          capture_output=True, text=True, check=True)
    board = json.loads(done.stdout)["result"]["board"]
    return (board["instructions"], board["data"] + board["bss"] + board["stack"],
            board["text"] + board["rodata"] + board["data"])


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


def written(page, readme, usual, least, helium):
    """The two texts with these figures."""
    flash = [f"{usual[n][2]:,}" for n in NETWORKS]
    page = put_row(page, "Lathe", r"\d+\.\d+", [millions(usual[n][0]) for n in NETWORKS])
    page = put_row(page, "Lathe", r"\d{1,2},\d{3}", [f"{usual[n][1]:,}" for n in NETWORKS])
    page = put_row(page, "Lathe, `--minimize ram`", r"[\d,]+", [f"{least[n][1]:,}" for n in NETWORKS])
    page = put_row(page, "Lathe", r"\d{3},\d{3}", flash)
    page = put(page, r"Lathe takes [\d.]+, [\d.]+, [\d.]+ and [\d.]+ million instructions",
               "Lathe takes {}, {}, {} and {} million instructions".format(*(millions(helium[n][0]) for n in NETWORKS)))
    for name, n in (("Keyword spotting", "kws"), ("Image classification", "ic"), ("Visual wake words", "vww")):
        readme = put(readme, rf"(\| {name} \| [^|]+ \| )\*\*[^|]+?\*\*",
                     rf"\g<1>**{usual[n][0] / 1e6:.1f} M, {kilobytes(usual[n][1])}**")
    readme = put(readme, r"\([\d.]+ KB with `--minimize ram`\)",
                 f"({kilobytes(least['vww'][1])} with `--minimize ram`)")
    return page, readme


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
    if not all(map(os.path.exists, models.values())) or not shutil.which("qemu-system-arm") or \
            not shutil.which("arm-none-eabi-gcc"):
        print("figures: no models, or no emulator\n0 passed, 0 failed, 1 skipped")
        return 77
    usual = {n: measure(args.lathe, m, "--target", "qemu-m4") for n, m in models.items()}
    least = {n: measure(args.lathe, m, "--target", "qemu-m4", "--minimize", "ram") for n, m in models.items()}
    helium = {n: measure(args.lathe, m, "--target", "qemu-m55") for n, m in models.items()}
    before = [open(path, encoding="utf-8").read() for path in (PAGE, README)]
    after = written(*before, usual, least, helium)
    wrong = 0
    for path, old, new in zip((PAGE, README), before, after):
        for what in far(old, new) if args.check else ():
            print(f"FAILED {os.path.relpath(path, TOP)}: {what}")
            wrong += 1
        if not args.check and old != new:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
            print("written:", os.path.relpath(path, TOP))
    if args.check:
        print(f"figures: {2 - min(wrong, 2)} passed, {wrong} failed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
