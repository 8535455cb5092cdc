#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tunes models on many machines: each task is `lathe tune MODEL --target T --shard I/N` on a worker of Dask's
`distributed`, which hands tasks out and gives those of lost workers to others. The records of all are put together.

    pip install distributed
    scripts/tune_sweep.py --models a.onnx b.onnx --targets znver3 x86-64-v3 --shards 4 -o tuned.schedules
    scripts/tune_sweep.py ... --scheduler tcp://10.0.0.1:8786        workers elsewhere; they need lathe and a C compiler

Without --scheduler, one worker runs here (--workers N for more: they disturb each other's times). What the file holds
already is not tuned again. Where a model is tuned in parts, its network as a whole is one more task behind them."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from distributed import Client, LocalCluster, as_completed


def tune(lathe, model, name, target, shard, shards, before, options):
    """One task, on a worker: the records of its part that `before`, a text, does not have."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = os.path.join(folder, name), os.path.join(folder, "log")
        with open(path, "wb") as f:
            f.write(model)
        if before:
            with open(log, "w", encoding="utf-8") as f:
                f.write(before)
        command = [lathe, "tune", path, "-o", log, "--target", target, "--shard", f"{shard}/{shards}", *options]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{name}, {target}, {shard}/{shards}: {run.stderr.strip()[:400]}")
        if not os.path.exists(log):
            return "", run.stdout
        with open(log, encoding="utf-8") as f:
            return f.read()[len(before):], run.stdout


def keep(path, records):
    """Whole records only: a worker may run another version, or have been stopped in the middle of a line."""
    with open(path, "a", encoding="utf-8") as f:
        for line in records.splitlines():
            if line.strip() and isinstance(json.loads(line), dict):
                f.write(line + "\n")


def sweep(client, args, shards):
    """All models, for all targets, in so many parts; how many failed."""
    before = ""
    if os.path.exists(args.out):
        with open(args.out, encoding="utf-8") as f:
            before = f.read()
    names = {}
    for path in args.models:
        with open(path, "rb") as f:
            model = f.read()
        for target in args.targets:
            for shard in range(1, shards + 1):
                name = os.path.basename(path)
                task = client.submit(tune, args.lathe, model, name, target, shard, shards, before, args.options,
                                     retries=args.retries, pure=False)
                names[task] = f"{name} {target} {shard}/{shards}"
    failed = 0
    for task in as_completed(names):
        if task.status != "finished":
            failed += 1
            print(f"{names[task]}: {task.exception()}", file=sys.stderr)
            continue
        records, said = task.result()
        keep(args.out, records)
        print(f"{names[task]}: {said.strip().splitlines()[-1]}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--targets", nargs="+", default=["native"], metavar="T")
    parser.add_argument("--shards", type=int, default=1, metavar="N", help="tasks that each model and target becomes")
    parser.add_argument("-o", dest="out", required=True, metavar="FILE")
    parser.add_argument("--scheduler", metavar="ADDRESS")
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    parser.add_argument("--lathe", default="lathe", help="on the workers")
    parser.add_argument("--retries", type=int, default=2,
                        help="of a task that failed; that of a lost worker goes to another")
    parser.add_argument("options", nargs="*", help="for lathe tune, behind --")
    args = parser.parse_args()
    cluster = None if args.scheduler else LocalCluster(n_workers=args.workers, threads_per_worker=1,
                                                       dashboard_address=None)
    client = Client(args.scheduler or cluster)
    failed = sweep(client, args, args.shards)
    if args.shards > 1:
        failed += sweep(client, args, 1)
    client.close()
    if cluster:
        cluster.close()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
