#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way with models that nobody wrote: the official ONNX cases are changed by chance (test/mutants/mutate.c),
compiled, built with sanitizers and run on hostile operands; what comes out must be what the interpreter gives.

    mutants.py [--mutants FILE] [--first N] [--count N | --seconds N] [-j N] [--cc CC] [--found DIR]

--mutants is the program built with sanitizers (build/asan/test/mutants). Numbers from --first on are tried, --count of
them or as many as --seconds allow; a number always gives the same model. A number counts as passed when its package ran
as it must or the model was refused with a message; those that would run for too long, or whose results have open
extents, are skipped. The run fails as well
when less than a quarter ran. What failed lies in --found: the model as text, its package, and inputs with what they
must give.
"""
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import cases as official
import conformance
import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH = 50
SANITIZERS = "address,undefined,float-cast-overflow"
CFLAGS = ["-std=gnu99", "-O1", "-g1", "-w", f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all",
          "-fno-omit-frame-pointer", "-ffp-contract=off", "-DTVMRT_NUM_WORKERS=2", "-D_XOPEN_SOURCE=700"]
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0",
                   UBSAN_OPTIONS="print_stacktrace=1")


def targets():
    """generic, and what this machine runs with vectors."""
    flags = set()
    if platform.machine() == "x86_64" and os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            flags = set(re.search(r"^flags\s*:(.*)$", f.read(), re.M)[1].split())
    return ["generic", *(["x86-64-v2"] if "sse4_2" in flags else []),
            *(["x86-64-v3"] if {"avx2", "fma"} <= flags else [])]


def tried(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", env=ENVIRONMENT,
                          timeout=package.TIME_LIMIT)


def make_models(first, count, folder, seeds, options):
    """{number: (verdict, text)} of what the compiler made of the models."""
    run = tried([options.mutants, folder, str(first), str(count), seeds, *targets()], folder)
    results = {}
    for line in run.stdout.splitlines():
        number, verdict, text = line.split(" ", 2)
        results[int(number)] = (verdict, text)
    for number in range(first, first + count):
        results.setdefault(number, ("FAILED", f"mutants: status {run.returncode}"))
    for number, (verdict, text) in results.items():
        if verdict == "FAILED" and "died" in text:
            results[number] = (verdict, f"{text}: {sanitizer_line(run.stderr)}")
    return results


def sanitizer_line(text):
    found = re.search(r"^.*(runtime error: .*|ERROR: AddressSanitizer: .*|Assertion .*)$", text, re.M)
    return found[1][:200] if found else "no message"


def build_package(folder, number, flags, options):
    """The objects, or the compiler's first error."""
    home = os.path.join(folder, f"m{number}", "src")
    names = [f"m{number}_lib0", f"m{number}_lib1", "model_data", "ops"]
    run = tried([options.cc, *CFLAGS, *flags.split(), "-ffp-contract=off", "-I../include", "-I.", "-Wa,-I,.", "-c",
                 *(n + ".c" for n in names)], home)
    if run.returncode != 0:
        return None, package.first_error(run.stderr)
    return [os.path.join(home, n + ".o") for n in names], None


def build_harness(folder, built, options):
    with open(os.path.join(folder, "packages.h"), "w") as f:
        f.write("".join(f"X(m{n})\n" for n in built))
    source = os.path.join(folder, f"m{next(iter(built))}", "src")
    run = tried([options.cc, *CFLAGS, "-I.", "-I", source, os.path.join(TOP, "test", "mutants", "harness.c"),
                 *(os.path.join(source, f) for f in ("tvmrt.c", "tvmrt_port_posix.c")),
                 *(o for objects in built.values() for o in objects), "-lm", "-lpthread", "-o", "harness"], folder)
    if run.returncode != 0:
        raise RuntimeError("harness: " + package.first_error(run.stderr))


def run_harness(folder):
    """{number: None or why}"""
    run = tried([os.path.join(folder, "harness"), folder], folder)
    reports = {}
    for part in re.split(r"^(?=m\d+$)", run.stderr, flags=re.M):
        reports[part.split("\n", 1)[0]] = part
    results = {}
    for name, verdict, text in re.findall(r"^m(\d+) (ok|FAILED) ?(.*)$", run.stdout, re.M):
        if "died" in text:
            text = f"run: {sanitizer_line(reports.get('m' + name, ''))}, {text}"
        results[int(name)] = None if verdict == "ok" else text
    return results


def keep(number, folder, options):
    os.makedirs(options.found, exist_ok=True)
    for name in (f"m{number}.txt", f"m{number}.case"):
        if os.path.exists(os.path.join(folder, name)):
            shutil.copy(os.path.join(folder, name), options.found)
    if os.path.isdir(os.path.join(folder, f"m{number}")):
        shutil.copytree(os.path.join(folder, f"m{number}"), os.path.join(options.found, f"m{number}"),
                        dirs_exist_ok=True)


def run_batch(first, count, seeds, options):
    """{number: (verdict, text)} with the verdicts ran, refused, large, unread, FAILED."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        results = make_models(first, count, folder, seeds, options)
        built = {}
        for number, (verdict, flags) in sorted(results.items()):
            if verdict == "package":
                objects, error = build_package(folder, number, flags, options)
                results[number] = ("FAILED", "build: " + error) if error else ("ran", "")
                if not error:
                    built[number] = objects
        if built:
            build_harness(folder, built, options)
            verdicts = run_harness(folder)
            for number in built:
                why = verdicts.get(number, "run: no verdict")
                results[number] = ("FAILED", why) if why else ("ran", "")
        for number, (verdict, _) in results.items():
            if verdict == "FAILED":
                keep(number, folder, options)
    return results


def batches(options):
    """(first, count); endless when it goes by time."""
    start, at = time.monotonic(), options.first
    while options.seconds and time.monotonic() - start < options.seconds:
        yield at, BATCH
        at += BATCH
    while not options.seconds and at < options.first + options.count:
        yield at, min(BATCH, options.first + options.count - at)
        at += BATCH


def run_all(seeds, options):
    counts = {v: 0 for v in ("ran", "refused", "large", "unread", "FAILED")}

    def note(job):
        for number, (verdict, text) in sorted(job.result().items()):
            counts[verdict] += 1
            if verdict == "FAILED":
                print(f"FAILED m{number}: {text}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = []
        for first, count in batches(options):
            waiting.append(pool.submit(run_batch, first, count, seeds, options))
            if len(waiting) > options.jobs:
                note(waiting.pop(0))
        for job in waiting:
            note(job)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", default=os.path.join(TOP, "build", "asan", "test", "mutants"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--found", metavar="DIR", default=os.path.join(TOP, "build", "fuzz", "found"))
    options = parser.parse_args()
    options.mutants = os.path.abspath(options.mutants)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as seeds:
        unread = conformance.read_list()
        seeds.write("".join(c.model + "\n" for c in official.find() if c.kind != "light" and c.name not in unread))
        seeds.flush()
        counts = run_all(seeds.name, options)
    print("mutants: " + ", ".join(f"{n} {v}" for v, n in counts.items()))
    if counts["ran"] * 4 < sum(counts.values()):
        print("FAILED: less than a quarter of the models ran, so this proves little")
        counts["FAILED"] += 1
    print(f"mutants: {counts['ran'] + counts['refused']} passed, {counts['FAILED']} failed, "
          f"{counts['large'] + counts['unread']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
