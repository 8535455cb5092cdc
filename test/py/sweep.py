#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/tune_sweep.py on two local workers: all kernels of two models are tuned once, a second sweep finds nothing to
do, and a task that ends its worker, the first time, is done by another one.

    sweep.py [--lathe FILE]"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MODEL = """func @main(%x: f32[8, {k}], %w: f32[{k}, 48], %v: f32[48, 48]) {{
  %a = nn.matmul(%x, %w) : f32[8, 48]
  %b = nn.relu(%a) : f32[8, 48]
  %c = nn.matmul(%b, %v) : f32[8, 48]
  return %c
}}
"""
# In lathe's place: the first call of all ends the worker, as a lost machine does.
KILLS = """#!/bin/sh
if mkdir "{folder}/killed" 2> /dev/null; then kill -9 $PPID; exit 1; fi
exec "{lathe}" "$@"
"""


def sweep(folder, lathe, shards):
    models = [os.path.join(folder, f"{k}.txt") for k in (16, 32)]
    for model, k in zip(models, (16, 32)):
        with open(model, "w", encoding="utf-8") as f:
            f.write(MODEL.format(k=k))
    patient = dict(os.environ, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="600s") # a busy machine is no lost one
    run = subprocess.run([sys.executable, os.path.join(TOP, "scripts", "tune_sweep.py"), "--models", *models,
                          "--targets", "native", "--shards", str(shards), "--workers", "2", "--lathe", lathe, "-o",
                          os.path.join(folder, "tuned"), "--", "--candidates", "2"], capture_output=True, text=True,
                         check=False, env=patient)
    with open(os.path.join(folder, "tuned"), encoding="utf-8") as f:
        return run, [json.loads(line) for line in f]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    lathe = os.path.abspath(parser.parse_args().lathe)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        kills = os.path.join(folder, "kills.sh")
        with open(kills, "w", encoding="utf-8") as f:
            f.write(KILLS.format(folder=folder, lathe=lathe))
        os.chmod(kills, 0o755)
        run, records = sweep(folder, kills, 2)
        # The second product is one computation in both models; parts that run at once may each tune it.
        keys = {r["computation"] for r in records}
        if run.returncode != 0 or len(keys) != 3 or not os.path.isdir(os.path.join(folder, "killed")):
            failed.append(f"sweep: status {run.returncode}, {len(keys)} computations: {run.stderr[-600:]}")
        again, more = sweep(folder, lathe, 2)
        if again.returncode != 0 or len(more) != len(records) or again.stdout.count("tuned 0 kernels") != 6:
            failed.append(f"again: status {again.returncode}, {len(more)} records: {again.stdout}{again.stderr[-600:]}")
    print(*(f"FAILED {f}" for f in failed), sep="\n", end="\n" if failed else "")
    print(f"sweep: {2 - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
