#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/notes/performance.md: five networks at one and two workers, against onnxruntime in turns, and the
share of the processor's multiply-add peak that each reaches.

    performance.py MODELS [--lathe FILE] [--rounds N] [--workers 1,2] [--write]
    performance.py --operators [--lathe FILE] [--turns N] [--write]

MODELS is a folder with resnet18.onnx and the others. Needs onnxruntime and numpy. Times and ratios are those of
`lathe bench --against onnxruntime`: medians of rounds in turns, the ratio is of the medians. The peak is measured in
one process with the network, a loop of independent vector multiply-adds and a run of the network in turns; the share is
(multiply-adds of the model / time) / peak, the time and the peak each at its best tenth, where nothing disturbs.
Winograd convolutions count the multiply-adds of the direct form. --write puts the table between the marks in
docs/notes/performance.md; without it the table is printed.

--operators: single operators instead, those of bench_operators.py, with one worker, and a list of those that
onnxruntime runs faster."""
import argparse
import ctypes
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(TOP, "docs", "notes", "performance.md")
BEGIN, END = "<!-- table: made by scripts/performance.py -->", "<!-- end of the table -->"
OPERATORS = "<!-- table: operators, made by scripts/performance.py -->"
NETWORKS = ("resnet18", "resnet50", "mobilenetv2", "squeezenet11", "minilm")

# Twelve sums hide the latency of two multiply-adds a cycle; LANES is the widest vector of the processor.
PEAK = """
typedef float v __attribute__((vector_size(4 * LANES)));
float peak_run(long n)
{
    v s[12], x, y;
    float sum = 0;
    int i, k;
    for (i = 0; i < LANES; i++) {
        x[i] = 0.999f;
        y[i] = 1e-3f;
    }
    for (i = 0; i < 12; i++)
        s[i] = x * (float)i;
    for (; n > 0; n--) {
#pragma GCC unroll 12
        for (i = 0; i < 12; i++)
            s[i] = s[i] * x + y;
    }
    for (i = 0; i < 12; i++)
        for (k = 0; k < LANES; k++)
            sum += s[i][k];
    return sum;
}
"""
STEPS = 400000


def build_peak(folder):
    """The loop as a library, and the multiply-adds of one call."""
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    lanes = 16 if "avx512f" in flags else 8 if "avx2" in flags else 4
    source, library = os.path.join(folder, "peak.c"), os.path.join(folder, "peak.so")
    with open(source, "w") as f:
        f.write(PEAK)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-march=native", "-mprefer-vector-width=512", f"-DLANES={lanes}",
                    "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", library], check=True)
    loop = ctypes.CDLL(library).peak_run
    loop.argtypes, loop.restype = [ctypes.c_long], ctypes.c_float
    return loop, 12 * lanes * STEPS


def peak_rate(loop, work, workers):
    """Multiply-adds a second of all workers together."""
    threads = [threading.Thread(target=loop, args=(STEPS,)) for _ in range(workers)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return workers * work / (time.perf_counter() - start)


def network(lathe, path, workers, folder):
    """(function that runs the network once, multiply-adds of a run)."""
    subprocess.run([lathe, "compile", path, "--target", "native", "--workers", str(workers), "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["make", "-s", "-C", folder, "lib", "CFLAGS=-O3 -fPIC"], check=True)
    library = os.path.join(folder, "network.so")
    subprocess.run(["cc", "-shared", "-o", library, "-Wl,--whole-archive", os.path.join(folder, "libtvmgen_default.a"),
                    "-Wl,--no-whole-archive", "-lm", "-pthread"], check=True)
    with open(os.path.join(folder, "report.json")) as f:
        about = json.load(f)
    kinds = {"f32": np.float32, "float32": np.float32, "i64": np.int64, "int64": np.int64}
    arrays = {side: [np.ones(t["shape"], kinds[t["dtype"]]) for t in about[side]] for side in ("inputs", "outputs")}
    structs = [(ctypes.c_void_p * len(arrays[s]))(*[a.ctypes.data for a in arrays[s]]) for s in ("inputs", "outputs")]
    run = ctypes.CDLL(library).tvmgen_default_run

    def once(keep=(arrays, structs)):
        if run(ctypes.byref(keep[1][0]), ctypes.byref(keep[1][1])) != 0:
            sys.exit(f"{path}: the run failed")

    return once, sum(o["macs"] for o in about["operators"])


def share_of_peak(lathe, path, workers, rounds, folder):
    loop, work = build_peak(folder)
    once, macs = network(lathe, path, workers, os.path.join(folder, "package"))
    peaks, times = [], []
    once()
    for _ in range(rounds):
        peaks.append(peak_rate(loop, work, workers))
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    quiet = rounds // 10  # undisturbed rounds of either
    return macs / sorted(times)[quiet] / sorted(peaks)[-1 - quiet]


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
    share_line = subprocess.run([sys.executable, __file__, options.models, "--lathe", options.lathe, "--rounds",
                                 str(options.rounds), "--share", f"{name}:{workers}"], check=True, capture_output=True,
                                text=True).stdout
    share = float(share_line)
    print(f"{name} {workers}: {theirs:.2f} {ours:.2f} {theirs / ours:.2f} {100 * share:.0f} %", file=sys.stderr)
    return f"| {name} | {workers} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} | {100 * share:.0f} % |"


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
             "| model | workers | onnxruntime ms | Lathe ms | ratio | Lathe's share of FMA peak |",
             "|---|---|---|---|---|---|"]
    for name in NETWORKS:
        lines += [row(options, name, w) for w in options.workers]
    return "\n".join(lines)


def operators(options):
    import bench_operators
    import onnxruntime

    rows = bench_operators.rows(options)
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
    slower = sorted(r for r in rows if r[0] < 1)
    lines = [f"{processor()} with {vectors()}; onnxruntime {onnxruntime.__version__}; one worker; processor time, the "
             f"best of {options.turns} turns; load average {os.getloadavg()[1]:.0f}. {len(rows)} operators, geometric "
             f"mean of the ratios {mean:.2f}. Below 1: "
             + ("; ".join(f"{name} ({about}) {ratio:.2f}" for ratio, _, _, name, about in slower) or "none") + ".", "",
             "| operator | | onnxruntime us | Lathe us | ratio |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {about} | {theirs * 1e6:.1f} | {ours * 1e6:.1f} | {ratio:.2f} |"
              for ratio, theirs, ours, name, about in rows]
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
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--workers", type=lambda s: [int(w) for w in s.split(",")], default=[1, 2])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--share", metavar="NAME:WORKERS", help="print one share of the peak; a process of its own")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    if options.share:
        name, workers = options.share.split(":")
        with tempfile.TemporaryDirectory(prefix="performance-") as folder:
            path = os.path.join(options.models, name + ".onnx")
            print(share_of_peak(options.lathe, path, int(workers), options.rounds, folder))
        return
    if not options.operators and not options.models:
        parser.error("MODELS or --operators")
    text = operators(options) if options.operators else table(options)
    if options.write:
        write(OPERATORS if options.operators else BEGIN, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
