#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/notes/performance.md: five networks at one and two workers, against onnxruntime in turns.

    performance.py MODELS [--lathe FILE] [--rounds N] [--workers 1,2] [--write | --quantized]
    performance.py --operators [f32 | sizes | f16 | i64] | --int8 [--exact] [--lathe FILE] [--turns N]
                   [--workers 1,2] [--write]

MODELS is a folder with resnet18.onnx and the others. Needs onnxruntime and numpy. Times and ratios are those of
`lathe bench --against onnxruntime`: medians of rounds in turns, the ratio is of the medians. --write puts the table
between the marks in docs/notes/performance.md; without it the table is printed.

--quantized: their int8 forms, which are printed only: NAME_qdq.onnx (activations of u8, weights of i8 with a scale for
each channel) and minilm_dynq.onnx (quantized while it runs), as onnxruntime's quantizer writes them.

--operators: single operators instead, those of bench_operators.py or, by a word, the other sizes and types of
bench_types.py, and a list of those that onnxruntime runs faster. Times are of the processor with one worker, of the
clock with two. The share is that of the bound, which bench_operators.py explains: for one core, so beside the first
number of workers. --int8: the same for quantized layers, those of bench_int8.py. --exact: beside onnxruntime's kernels
with exact sums (session.x64quantprecision), because its others saturate on x86-64 without VNNI."""
import argparse
import json
import math
import os
import platform
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(TOP, "docs", "notes", "performance.md")
BEGIN, END = "<!-- table: made by scripts/performance.py -->", "<!-- end of the table -->"
KINDS = {"f32": "operators", "sizes": "other sizes", "f16": "operators on f16", "i64": "operators on integers",
         "int8": "int8 layers"}
NETWORKS = ("resnet18", "resnet50", "mobilenetv2", "squeezenet11", "minilm")
QUANTIZED = (*(name + "_qdq" for name in NETWORKS[:4]), "minilm_dynq")


def against_onnxruntime(lathe, path, workers, rounds):
    """(onnxruntime ms, Lathe ms), medians."""
    command = [lathe, "bench", path, "--workers", str(workers), "--against", "onnxruntime", "--json", "--repeat",
               str(rounds)]
    run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LATHE_PYTHON=sys.executable))
    if run.returncode != 0:
        sys.exit(run.stderr)
    times = {r["who"]: r["median_ms"] for r in json.loads(run.stdout)["result"]["runs"]}
    return times["onnxruntime"], times["lathe"]


def row(options, name, workers):
    path = os.path.join(options.models, name + ".onnx")
    theirs, ours = against_onnxruntime(options.lathe, path, workers, options.rounds)
    print(f"{name} {workers}: {theirs:.2f} {ours:.2f} {theirs / ours:.2f}", file=sys.stderr)
    return f"| {name} | {workers} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} |"


def processor():
    for line in open("/proc/cpuinfo") if os.path.exists("/proc/cpuinfo") else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def table(options):
    import onnxruntime

    load = os.getloadavg()[1]  # of other work, when it is above the number of workers
    lines = [f"{processor()}, {os.cpu_count()} cores; onnxruntime {onnxruntime.__version__}; medians of "
             f"{options.rounds} rounds; load average {load:.0f}.", "",
             "| model | workers | onnxruntime ms | Lathe ms | ratio |", "|---|---|---|---|---|"]
    for name in QUANTIZED if options.quantized else NETWORKS:
        lines += [row(options, name, w) for w in options.workers]
    return "\n".join(lines)


def operators(options):
    import bench_int8
    import bench_operators
    import bench_types
    import onnxruntime

    lists = {"f32": bench_operators, "int8": bench_int8, **bench_types.LISTS}
    by_workers = [bench_operators.rows(options, w, lists[options.kind]) for w in options.workers]
    other = f"onnxruntime {onnxruntime.__version__}" + (" with exact sums" if options.exact else "")
    lines = [f"{processor()} with {vectors()}; {other}; the best of {options.turns} turns; load average "
             f"{os.getloadavg()[1]:.0f}. {len(by_workers[0])} {'layers' if options.int8 else 'operators'}.", ""]
    for workers, rows in zip(options.workers, by_workers):
        mean = math.exp(sum(math.log(r.ratio) for r in rows) / len(rows))
        below = "; ".join(f"{r.operator} ({r.about}) {r.ratio:.2f}" for r in sorted(rows) if r.ratio < 1) or "none"
        lines += [f"- {workers} worker{'s' if workers > 1 else ''}: geometric mean of the ratios {mean:.2f}. "
                  f"Below 1: {below}."]
    several = len(options.workers) > 1
    head = [f"{what}, {w} worker{'s' if w > 1 else ''}" if several else what
            for w in options.workers for what in ("onnxruntime us", "Lathe us", "ratio")]
    head.append("share of the bound")
    lines += ["", "| operator | shape or kind | " + " | ".join(head) + " |", "|---|---" + "|---" * len(head) + "|"]
    lines += [f"| {same[0].operator} | {same[0].about} | "
              + " | ".join(f"{r.theirs * 1e6:.1f} | {r.ours * 1e6:.1f} | {r.ratio:.2f}" for r in same)
              + f" | {same[0].share:.2f} |" for same in zip(*by_workers)]
    return "\n".join(lines)


def vectors():
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    return "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "its vectors"


def write(begin, text):
    """Puts the text between the marks."""
    with open(DOCUMENT) as f:
        head, rest = f.read().split(begin)
    with open(DOCUMENT, "w") as f:
        f.write(head + begin + "\n" + text + "\n" + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?")
    parser.add_argument("--exact", action="store_true")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--operators", nargs="?", const="f32", choices=[k for k in KINDS if k != "int8"])
    kinds.add_argument("--int8", action="store_true")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--workers", type=lambda s: [int(w) for w in s.split(",")], default=[1, 2])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quantized", action="store_true")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    options.kind = "int8" if options.int8 else options.operators
    single = options.kind is not None
    if not single and not options.models:
        parser.error("MODELS, --operators or --int8")
    if options.quantized and (single or options.write):
        parser.error("--quantized goes with neither single layers nor --write")
    text = operators(options) if single else table(options)
    if options.write:
        write(f"<!-- table: {KINDS[options.kind]}, made by scripts/performance.py -->" if single else BEGIN, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
