#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tuned schedules in schedules/: of the five networks of the benchmarks, for the targets at hand.

    tuned.py MODELS [--lathe FILE] [--targets T,...] [--networks N,...] [--candidates N] [--out DIR] [--state DIR]
    tuned.py MODELS --check [--untimed] [--lathe FILE] [--targets T,...] [--networks N,...] [--out DIR]

MODELS is a folder with resnet18.onnx and the others. Each network is tuned at one worker (docs/how-to/tuning.md). Of
what comes back only the records stay that gain, a kernel 3 %, a form 1 %, and that the network takes; what is left then
runs in turns with the rules' network (`lathe bench --schedules FILE --against lathe`), and a file that does not gain
half a per cent there is not written: the rules are as good. DIR/README.md has a table of the files, with the machine
and the C compiler of each. Needs a machine that does nothing else.

One that was stopped goes on where it was: --state (build/tuned) has the records so far, of this lathe, this C compiler
and this machine; with another one it begins anew.

--check tunes nothing: it says how many records of each file of DIR its network still takes, and how the network with
them compares (--untimed: not this). 1 comes back if one is not taken."""
import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORKS = ("resnet18", "resnet50", "mobilenetv2", "squeezenet11", "minilm")
TARGETS = ("x86-64-v3", "x86-64-v4")
KERNEL_GAINS, FORM_GAINS, NETWORK_GAINS = 1.03, 1.01, 1.005
BEGIN, END = "<!-- table: made by scripts/tuned.py -->\n", "<!-- end of the table -->\n"
HEAD = ("| file | machine | C compiler | records | times as fast as by rule |\n", "|---|---|---|---|---|\n")


class Failed(Exception):
    """A lathe that ended with an error; what it said."""


def run(*command, log=None):
    """What it says; `log` has its output while it runs."""
    with open(log, "a", encoding="utf-8") if log else contextlib.nullcontext(subprocess.PIPE) as to:
        out = subprocess.run(command, stdout=to, stderr=subprocess.PIPE, text=True, check=False)
    if out.returncode != 0:
        raise Failed(f"{' '.join(command[:3])}: {out.stderr.strip()[:400]}")
    return out


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    """Whole, or not at all."""
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".tmp", path)


def gains(line):
    r = json.loads(line)
    return r["rule_seconds"] >= r["seconds"] * (FORM_GAINS if "form" in r else KERNEL_GAINS)


def ratio(a, model, target, schedules):
    """How much faster the network is with them, medians in turns."""
    out = run(a.lathe, "bench", model, "--target", target, "--workers", "1", "--schedules", schedules, "--against",
              "lathe", "--json").stdout
    return json.loads(out)["result"]["ratio"]


def count_taken(a, model, target, schedules):
    """Schedules and forms that the compile of the network takes."""
    with tempfile.TemporaryDirectory() as folder:
        out = run(a.lathe, "compile", model, "--target", target, "--workers", "1", "--schedules", schedules, "-o",
                  os.path.join(folder, "package"))
    return sum(int(n) for n in re.findall(r"^(?:schedules|forms) +(\d+) of ", out.stdout + out.stderr, re.M))


def taken(a, model, target, lines):
    """Those of the lines without which the network would take fewer."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")

        def count(some):
            write(path, "".join(some))
            return count_taken(a, model, target, path) if some else 0

        most, kept = count(lines), list(lines)
        for line in lines:
            if len(kept) == most:
                break
            rest = [x for x in kept if x is not line]
            kept = rest if count(rest) == most else kept
        return kept


def check(a, model, target, path):
    """One file; whether all of its records are taken."""
    given, found = len(read(path).splitlines()), count_taken(a, model, target, path)
    speed = "" if a.untimed else f", {ratio(a, model, target, path):.3f} times as fast as by rule"
    print(f"{os.path.basename(path)}: takes {found} of {given} records{speed}", flush=True)
    return found == given


def add_row(a, name, row):
    """Into the table, in the place of the one that this file or this network had."""
    readme = os.path.join(a.out, "README.md")
    text = read(readme) if os.path.exists(readme) else "# Tuned schedules\n\n" + BEGIN + END
    before, rest = text.split(BEGIN)
    table, behind = rest.split(END)
    rows = [x for x in table.splitlines(keepends=True)[len(HEAD):] if x.split("|")[1].strip() != name]
    rows = sorted(rows + [f"| {name} | {' | '.join(row)} |\n"])
    write(readme, before + BEGIN + "".join(HEAD) + "".join(rows) + END + behind)


def make(a, model, target, path):
    name, raw = os.path.basename(path), os.path.join(a.state, os.path.basename(path))
    if os.path.exists(raw + ".done"):
        print(f"{name}: is done", flush=True)
        return
    run(a.lathe, "tune", model, "-o", raw, "--target", target, "--workers", "1", "--candidates", str(a.candidates),
        log=raw + ".log")
    lines = read(raw).splitlines(keepends=True) if os.path.exists(raw) else []
    compiler = json.loads(lines[0])["compiler"] if lines else "none"
    kept = taken(a, model, target, [x for x in lines if gains(x)])
    write(raw + ".kept", "".join(kept))
    gain = ratio(a, model, target, raw + ".kept") if kept else 1.0
    if gain >= NETWORK_GAINS:
        write(path, "".join(kept))
        add_row(a, name, (a.machine, compiler, str(len(kept)), f"{gain:.3f}"))
        print(f"{name}: {len(kept)} records, {gain:.3f} times as fast as by rule", flush=True)
    else:
        if os.path.exists(path):
            os.remove(path)
        add_row(a, name, (a.machine, compiler, "no file", "the rules are as good"))
        print(f"{name}: {gain:.3f}: the rules are as good, no file", flush=True)
    write(raw + ".done", "")


def machine():
    """The processor, as it calls itself."""
    if os.path.exists("/proc/cpuinfo"):
        found = re.search(r"^model name\s*: (.*)", read("/proc/cpuinfo"), re.M)
        if found:
            return found.group(1).strip()
    return platform.processor() or platform.machine()


def open_state(a):
    """Records of another lathe may be of other computations, those of another machine are of other times."""
    with open(a.lathe, "rb") as f:
        lathe = hashlib.sha256(f.read()).hexdigest()
    compiler = run(*os.environ.get("CC", "cc").split(), "--version").stdout.splitlines()[0]
    stamp = f"{lathe}\n{compiler}\n{a.machine}\n{a.candidates} candidates\n"
    path = os.path.join(a.state, "made-by")
    if os.path.exists(path) and read(path) != stamp:
        shutil.rmtree(a.state)
    elif os.path.isdir(a.state) and os.listdir(a.state) and not os.path.exists(path):
        sys.exit(f"--state: {a.state} holds other things; name a folder that is not there")
    os.makedirs(a.state, exist_ok=True)
    write(path, stamp)


def pairs(a):
    """Networks and targets: what is to be made, or the files that are there."""
    targets = a.targets.split(",") if a.targets else None
    networks = a.networks.split(",") if a.networks else None
    if not a.check:
        return [(n, t) for t in targets or TARGETS for n in networks or NETWORKS]
    there = [x.removesuffix(".schedules").split(".", 1) for x in sorted(os.listdir(a.out)) if x.endswith(".schedules")]
    return [(n, t) for n, t in there if (not targets or t in targets) and (not networks or n in networks)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    p.add_argument("--targets", help="default: x86-64-v3,x86-64-v4; of --check: all")
    p.add_argument("--networks", help=f"default: {','.join(NETWORKS)}; of --check: all")
    p.add_argument("--candidates", type=int, default=8)
    p.add_argument("--out", default=os.path.join(TOP, "schedules"))
    p.add_argument("--state", default=os.path.join(TOP, "build", "tuned"))
    p.add_argument("--machine", default=machine(), help="what the table calls it")
    p.add_argument("--check", action="store_true")
    p.add_argument("--untimed", action="store_true")
    a = p.parse_args()
    for what, folder in (("MODELS", a.models), ("--out", a.out)):
        if not os.path.isdir(folder) and (a.check or os.path.exists(folder) or what == "MODELS"):
            sys.exit(f"{what}: {folder} is no folder")
    if not a.check:
        os.makedirs(a.out, exist_ok=True)
        open_state(a)
    good, todo = True, pairs(a)
    if not todo:
        sys.exit(f"--check: {a.out} has no NETWORK.TARGET.schedules" + (" of these" if a.networks or a.targets else ""))
    for network, target in todo:
        path = os.path.join(a.out, f"{network}.{target}.schedules")
        model = os.path.join(a.models, network + ".onnx")
        try:
            if a.check:
                good &= check(a, model, target, path)
            else:
                make(a, model, target, path)
        except Failed as e: # the others may go
            print(f"{os.path.basename(path)}: {e}", file=sys.stderr, flush=True)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
