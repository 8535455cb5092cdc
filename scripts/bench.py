#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a compile, the build of its C and a run cost, for the demo's model and the larger ones that are here.

    bench.py [--lathe FILE] [--filter GLOB] [--workers 1,2] [--repeat N]
    bench.py --grid ...: bench_grid.py, single layers

A row a model. compile and C build: seconds of processor time, so that other work on the machine hardly counts, and the
peak of the largest process; `make -j1` with the flags of the package's Makefile. run: the median of `lathe bench` for
each number of workers in milliseconds, in turns with onnxruntime; ratio: its time over ours.
Peak of a run: that of the package's program. Models beside the checkout: see test/py/models.py. A figure above its
budget has a mark and changes nothing else: no test asks for time.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "test", "py"))
import bench_grid  # noqa: E402
import models  # noqa: E402
import package  # noqa: E402

CHOSEN = ("demo_digits", "tiny_*", *models.NETWORKS)
BUDGETS = {("resnet50", "compile s"): 5, ("resnet50", "compile MiB"): 1000, ("resnet50", "C build s"): 60,
           ("resnet50", "run x1 ms"): 400}


def run_times(lathe, path, workers, repeat):
    """{who: median in ms}"""
    command = [lathe, "bench", path, "--workers", str(workers), "--json", "--against", "onnxruntime", *repeat]
    run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LATHE_PYTHON=sys.executable))
    if run.returncode != 0:
        raise package.Failure(run.stderr.strip()[:200])
    return {r["who"]: r["median_ms"] for r in json.loads(run.stdout)["result"]["runs"]}


def measure(spec, options, work):
    """{column: figure} of one model."""
    path, folder = spec.write(work), os.path.join(work, "package")
    mib = 1 << 20
    seconds, peak = package.measured([options.lathe, "compile", path, "-o", folder, "--target", "native"])
    figures = {"compile s": seconds, "compile MiB": peak / mib}
    seconds, peak = package.measured(["make", "-s", "-j1", "-C", folder, "all"])
    figures |= {"C build s": seconds, "C build MiB": peak / mib}
    _, peak = package.measured([os.path.join(folder, "runner")])
    figures["run MiB"] = peak / mib
    for workers in options.workers:
        times = run_times(options.lathe, path, workers, options.repeat)
        figures[f"run x{workers} ms"] = times["lathe"]
        figures[f"ratio x{workers}"] = times["onnxruntime"] / times["lathe"]
    return figures


def shown(model, column, figure):
    over = figure > BUDGETS.get((model, column), figure)
    return f"{figure:.0f}" + " !" * over if column.endswith("MiB") else f"{figure:.2f}" + " !" * over


def main():
    if "--grid" in sys.argv:
        sys.argv.remove("--grid")
        return bench_grid.main()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--workers", type=lambda s: [int(w) for w in s.split(",")],
                        default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--repeat", type=lambda n: ["--repeat", n], default=[], metavar="N", help="rounds of a run")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    head = False
    for spec in models.all_models():
        if not any(fnmatch.fnmatch(spec.name, g) for g in CHOSEN) or not fnmatch.fnmatch(spec.name, options.filter):
            continue
        if spec.skip:
            print(f"{spec.name}: {spec.skip}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            try:
                figures = measure(spec, options, work)
            except package.Failure as failure:
                sys.exit(f"{spec.name}: {failure}")
        if not head:
            print(f"{'model':<16}" + "".join(f"{c:>13}" for c in figures))
            head = True
        print(f"{spec.name:<16}" + "".join(f"{shown(spec.name, c, f):>13}" for c, f in figures.items()), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    sys.exit(main())
