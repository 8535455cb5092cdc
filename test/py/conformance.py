#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All official ONNX cases, each compiled to C, built, run and compared, every time.

    conformance.py [--lathe FILE] [--filter GLOB] [--skip GLOB] [-j N] [--update] [--keep DIR]

A batch of packages becomes one C file and one shared library with one copy of the runtime, and runs in a child process;
when the child dies, the case it was in is at fault and the rest goes to a new child. Every fourth batch is built with
optimisation, in `make test-long` each: the cases of an operator lie in different batches. Tolerances are the cases'
own. Of random numbers (Bernoulli) type, shape and range are compared: ONNX names no generator, and the values are
those of one.
A case with an extent that has no upper bound is no package; it becomes a module, which `lathe verify` runs. It also
runs cases with sequences or optionals among their inputs or outputs, because it takes the number of elements from the
data, and those whose pictures libraries read.
Cases that do not pass stand in conformance_expected_failures.txt as "CASE REASON"; a case that fails unlisted, or
passes although listed, fails the run. --update rewrites that list and docs/reference/onnx-conformance.md: the reason
is what the compiler says. For wrong numbers and the like it keeps a reason that somebody wrote into the list, and adds
none: such a case fails the run.

The batches load and compare by themselves, and each package's files are compiled as one, to be fast. Every case with a
tensor of no elements, and every 30th of the others, has to pass `lathe verify --data` as well, which reads, runs and
compares as for a user: in turn for this machine, as `lathe run` does, for the default of `lathe compile` and for
--compile-args, with the flags that users get. Cases that only such flags made fail are always among them, with each.
"""
import argparse
import collections
import ctypes
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

import cases as official
import package

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
LIST = os.path.join(HERE, "conformance_expected_failures.txt")
TABLE = os.path.join(TOP, "docs", "reference", "onnx-conformance.md")
BATCH = 80
OPTIMISED = 1 if os.environ.get("LATHE_TIER") == "long" else 4  # every so many batches
UNBOUNDED = r"has no upper bound|open dimensions"  # what a package is refused for, and a module is not
STRIDE = 30
# A compiler's fault with vectors: wrong with the flags of packages, right with those of the batches.
WITH_FLAGS = ("test_hardmax_axis_2", "test_hardmax_default_axis", "test_hardmax_negative_axis")
LEAST_VERIFIED = 100
WORKERS = 2
CFLAGS = ["-std=gnu99", "-w", "-fPIC", "-ffp-contract=off", f"-DTVMRT_NUM_WORKERS={WORKERS}"]


def compare(expected, actual, case):
    """The wheel's own comparison: shape, dtype, then values within the case's tolerance. Raises package.Failure."""
    for name, want in expected.items():
        if name not in actual:
            raise package.Failure(f"output {name} is missing")
        got = actual[name]
        if not isinstance(want, np.ndarray):
            raise package.Failure(f"output {name}: {type(want).__name__} is not compared yet")
        if want.dtype.kind in "OU" and got.dtype.kind == "O":
            if want.shape != got.shape or not all(str(w) == g for w, g in zip(want.flat, got.flat)):
                raise package.Failure(f"output {name}: {got.tolist()}, {want.tolist()} is expected"[:200])
            continue
        if want.dtype != got.dtype or want.shape != got.shape:
            raise package.Failure(f"output {name}: {got.dtype}{list(got.shape)}, "
                                  f"{want.dtype}{list(want.shape)} is expected")
        if official.is_random(case):
            if not np.isin(got, (0, 1)).all():
                raise package.Failure(f"output {name}: numbers that are neither 0 nor 1")
            continue
        if want.dtype.kind not in "biufc":
            want, got = want.astype(np.float32), got.astype(np.float32)
        try:
            np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)
        except AssertionError as error:
            detail = re.search(r"Mismatched elements: (\d+ / \d+)", str(error))
            raise package.Failure(f"output {name}: {detail[1] if detail else 'some'} values differ") from None


def run_case(library, case, folder):
    model = onnx.load(case.model, load_external_data=False)
    for inputs, outputs in official.data_sets(case, model):
        compare(outputs, package.call(library, folder, module_name(case), inputs), case)


def module_name(case):
    return re.sub(r"\W", "_", case.name.removeprefix("test_"))


# ---- The child: one shared library, its cases in order, one line of JSON per case ----------------


def child(library_path, listing):
    with open(listing) as f:
        todo = [(official.Case(**c), folder) for c, folder in json.load(f)]
    library = ctypes.CDLL(library_path)
    for case, folder in todo:
        print(json.dumps({"start": case.name}), flush=True)
        try:
            run_case(library, case, folder)
            message = None
        except package.Failure as failure:
            message = str(failure)
        except Exception as error:  # a fault of the runner or of the data: show it, go on
            message = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        print(json.dumps({"done": case.name, "message": message}), flush=True)


def last_words(status, path):
    """Why a child ended: the name of the signal, or the last line that it wrote."""
    if status < 0:
        return signal.Signals(-status).name
    with open(path, errors="replace") as f:
        return f"status {status} {''.join(f.read().splitlines()[-1:])[:120]}".strip()


def run_library(library_path, todo, folder):
    """Runs the cases of one library in as many children as it takes; returns {case name: message or None}."""
    results = {}
    while todo:
        listing = os.path.join(folder, "todo.json")
        with open(listing, "w") as f:
            json.dump([(vars(c), d) for c, d in todo], f)
        command = [sys.executable, os.path.abspath(__file__), "--child", library_path, listing]
        with open(os.path.join(folder, "child.err"), "w") as err:
            try:
                run = subprocess.run(command, stdout=subprocess.PIPE, stderr=err, timeout=package.TIME_LIMIT)
                output, reason = run.stdout, f"run: died, {last_words(run.returncode, err.name)}"
            except subprocess.TimeoutExpired as late:
                output, reason = late.stdout or b"", f"run: no end after {package.TIME_LIMIT} s"
        current = None
        for line in output.decode(errors="replace").splitlines():
            if not line.startswith('{"'):
                continue
            event = json.loads(line)
            current = event.get("start")
            if "done" in event:
                results[event["done"]] = event["message"]
        if current is None and not any(c.name in results for c, _ in todo):
            current = todo[0][0].name  # it did not even load
        if current is not None:
            results[current] = reason
        todo = [(c, d) for c, d in todo if c.name not in results]
    return results


# ---- Building ------------------------------------------------------------------------------------


def compile_runtime(options, work):
    """The objects of the runtime, compiled once: each package brings the same files."""
    folder = os.path.join(work, "runtime")
    model = os.path.join(official.DATA, "node", "test_abs", "model.onnx")
    message = package.compile_model(options.lathe, model, folder, "runtime", options.compile_args.split())
    if message:
        raise SystemExit(f"FAILED the runtime: {message}")
    options.runtime = [os.path.join(folder, f) for f in ("tvmrt.o", "tvmrt_port_posix.o")]
    for path in options.runtime:
        source = os.path.join(folder, "src", os.path.basename(path)[:-1] + "c")
        subprocess.run([options.cc, *CFLAGS, "-O1", "-I", os.path.join(folder, "include"), "-c", source, "-o", path],
                       check=True)


def build(folders, output, level, options):
    """One shared library of several packages, one copy of the runtime; returns None or the compiler's first error."""
    command = [*CFLAGS, *level.split(), "-shared", "-o", output]
    for folder in folders:
        command += ["-I", os.path.join(folder, "include"), f"-Wa,-I,{folder}", f"-Wa,-I,{folder}/src"]
    command += [package.one_source_of_all(folders, output + ".c"), *options.runtime, "-lm", "-lpthread"]
    listing = output + ".args"
    with open(listing, "w") as f:
        f.write("\n".join(json.dumps(a) for a in command))
    run = subprocess.run([options.cc, "@" + listing], capture_output=True, text=True, errors="replace")
    if run.returncode == 0:
        return None
    return "build: " + package.first_error(run.stderr)


def build_and_run(todo, folder, level, options):
    """Builds and runs a batch; when it does not build, its packages one by one, so that a bad one stands alone."""
    library = os.path.join(folder, "batch.so")
    error = build([d for _, d in todo], library, level, options)
    if error is None:
        return run_library(library, todo, folder)
    if len(todo) == 1:
        return {todo[0][0].name: error}
    results = {}
    for i, item in enumerate(todo):
        single = os.path.join(folder, f"single{i}")
        os.makedirs(single)
        results.update(build_and_run([item], single, level, options))
    return results


def as_module(case, out, options):
    """None, or why the case fails as a module, which needs no bounds."""
    command = [options.lathe, "compile", case.model, "--emit", "module", "-q", "-o", out + ".so"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=package.TIME_LIMIT)
    if run.returncode != 0:
        return f"module: {(run.stderr.splitlines() or ['no message'])[0]}"[:200]
    return verify(case, options, [], out + ".so")


def has_lists(case):
    graph = onnx.load(case.model, load_external_data=False).graph
    return any(not v.type.HasField("tensor_type") for v in (*graph.input, *graph.output))


def as_user(case, options):
    """None, or why `lathe verify` fails: as a package, as a module where an extent has no bound."""
    message = verify(case, options, options.compile_args.split())
    if message and re.search(UNBOUNDED, message):
        options.modules.add(case.name)
        message = verify(case, options, ["--emit", "module"])
    return message


def run_batch(batch, folder, level, options):
    """{case name: None when it passed, else one line of reason}."""
    results, todo = {}, []
    os.makedirs(folder)
    for case in batch:
        if case.folder and (has_lists(case) or case.name in official.BY_LIBRARIES):
            results[case.name] = as_user(case, options)
            continue
        out = os.path.join(folder, module_name(case))
        message = package.compile_model(options.lathe, case.model, out, module_name(case), options.compile_args.split())
        if message is None:
            todo.append((case, out))
        elif re.search(UNBOUNDED, message) and case.folder:
            options.modules.add(case.name)
            results[case.name] = as_module(case, out, options)
        else:
            results[case.name] = message
    if todo:
        results.update(build_and_run(todo, folder, level, options))
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def batches(cases):
    """(cases, level of optimisation): the light models alone and first, because each takes long, with vectors (vgg19
    takes 7 s instead of 25); then the rest, which stand in the wheel's order, each in another batch than the one before
    it."""
    large = [([c], "-O2 -ftree-vectorize") for c in cases if c.kind == "light"]
    small = [c for c in cases if c.kind != "light"]
    count = -(-len(small) // BATCH)
    return large + [(small[i::count], "-O0" if i % OPTIMISED else "-O1") for i in range(count)]


def run_all(cases, options, work):
    results, done = {}, 0
    compile_runtime(options, work)
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run_batch, batch, os.path.join(work, f"batch{i}"), level, options)
                for i, (batch, level) in enumerate(batches(cases))]
        for job in jobs:
            results.update(job.result())
            done += 1
            if sys.stderr.isatty():
                print(f"\r{len(results)} / {len(cases)}", end="", file=sys.stderr)
    return results


# ---- A sample, as a user would run it ------------------------------------------------------------


def has_empty_tensor(case):
    tensors = [v for ins, outs in official.data_sets(case, onnx.load(case.model, load_external_data=False))
               for v in (*ins.values(), *outs.values())]
    return any(isinstance(t, np.ndarray) and t.size == 0 for t in tensors)


def sample(every):
    """The cases that go through the command line too; the light models have no data in files."""
    stored = [c for c in every if c.folder is not None and not official.is_random(c)]
    return [c for i, c in enumerate(stored) if i % STRIDE == 0 or c.name in WITH_FLAGS or has_empty_tensor(c)]


def as_users_do(options):
    """Options of `lathe verify`: none, which is this machine's own target; what a package is compiled for."""
    package_target = "x86-64-v3" if os.uname().machine == "x86_64" else "generic"
    return [[], ["--target", package_target], options.compile_args.split()]


def compared(case, model):
    """For each data set how many things `lathe verify` calls ok: tensors, and of a list its length and its elements."""
    lists = {v.name for v in model.graph.output if not v.type.HasField("tensor_type")}
    for _, outputs in official.data_sets(case, model):
        yield sum(1 if name not in lists else 1 if value is None else 1 + (len(value) if isinstance(value, list) else 1)
                  for name, value in outputs.items())


def verify(case, options, arguments, artifact=None):
    """None, or what `lathe verify` says of the first data set that it does not confirm."""
    counts = compared(case, onnx.load(case.model, load_external_data=False))
    for data, outputs in zip(sorted(glob.glob(os.path.join(case.folder, "test_data_set*"))), counts):
        command = [options.lathe, "verify", artifact or case.model, "--data", data, "--rtol", str(case.rtol), "--atol",
                   str(case.atol), *arguments]
        try:
            run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=package.TIME_LIMIT,
                                 env=package.environment(None))
        except subprocess.TimeoutExpired:
            return f"verify: no end after {package.TIME_LIMIT} s"
        if run.returncode != 0:
            told = (run.stderr.splitlines() or ["no message"])[0].replace(case.model, "model")
            return f"verify: status {run.returncode}: {told}"[:200]
        if run.stdout.count(": ok\n") != outputs:
            return f"verify: {run.stdout.count(': ok')} of {outputs} outputs are compared"
    return None


def verify_sample(cases, results, options):
    """Runs those of the sample that passed; their results become what the command line says. Returns their number."""
    chosen = [c for c in cases if results[c.name] is None and c.name not in options.modules]
    ways = as_users_do(options)
    runs = [(c, way) for i, c in enumerate(chosen)
            for way in (ways if c.name in WITH_FLAGS else [ways[i % len(ways)]])]
    with ThreadPoolExecutor(options.jobs) as pool:
        for (case, way), message in zip(runs, pool.map(lambda r: verify(r[0], options, r[1]), runs)):
            if message:
                results[case.name] = f"{message} ({' '.join(way) or 'this machine'})"
    return len(chosen)


# ---- Verdict, list, table ------------------------------------------------------------------------


def read_list():
    if not os.path.exists(LIST):
        return {}
    with open(LIST) as f:
        rows = [line.rstrip("\n").partition(" ") for line in f if line.strip() and not line.startswith("#")]
    return {name: reason for name, _, reason in rows}


# What stands in the way, by the reason's words; the first that fits.
CATEGORIES = (
    ("Sequences and optional values", r"only tensors|Sequence|Optional|is a sequence"),
    ("Strings and text", r"type string|TfIdfVectorizer|StringNormalizer"),
    ("Element types of two and four bits, 8-bit floats", r"element type [uif]\d"),
    ("Loops and branches at run time", r"Loop-|Scan-|operator if"),
    ("Random numbers", r"Bernoulli|Random|training_mode|dropout"),
    ("Shapes computed from inputs", r"is not a constant|must be a constant|not constant|upper bound|extent of axis"),
    ("Numbers that no exact computation gives", r"expected values"),
    ("Operators that are not read yet", r""),
)


def category(reason):
    return next(title for title, pattern in CATEGORIES if re.search(pattern, reason))


def reason(message, listed):
    """The words of the list: the compiler's without what is the same for every case; for anything else (wrong numbers,
    code that does not build, an internal error) only what somebody wrote down, or None."""
    if not message.startswith("error: ") or "[verify]" in message:
        return listed
    message = re.sub(r" \(operator set (\d+); [^)]*\)", r"-\1", message)
    message = re.sub(r"^error: (model: )?| \[\w+\]$", "", message)
    return message.replace("operators that are not supported yet: ", "not supported yet: ").strip()


def write_list(results):
    """Reasons by category. Failures that nobody has explained are left out, so that they go on failing the run."""
    reasons = {n: r for n, r in read_list().items() if n not in results}
    reasons.update((n, reason(m, read_list().get(n))) for n, m in results.items() if m)
    with open(LIST, "w") as f:
        f.write("# Official ONNX cases that do not pass yet: CASE REASON. Made by `make conformance ARGS=--update`.\n")
        for title, _ in CATEGORIES:
            names = sorted(n for n, r in reasons.items() if r and category(r) == title)
            if names:
                f.write(f"\n# {title}: {len(names)}\n" + "".join(f"{n} {reasons[n]}\n" for n in names))


def obstacles(listed):
    """Rows of the table of categories."""
    counts = collections.Counter(category(r) for r in listed.values())
    return [f"| {title} | {counts[title]} |" for title, _ in CATEGORIES if counts[title]]


def table(cases, results):
    """docs/reference/onnx-conformance.md: passed and total, by kind and by operator."""
    by_kind, by_operator = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
    for case in cases:
        operator = official.operator(case, onnx.load(case.model, load_external_data=False)) or "(several operators)"
        for counts in (by_kind[case.kind], by_operator[operator]):
            counts[0] += results[case.name] is None
            counts[1] += 1
    passed, of_newest = [[results[c.name] is None for c in cases if (c.kind == official.NEWEST) == newest]
                         for newest in (False, True)]
    lines = ["# ONNX conformance", "",
             "This page says how many of ONNX's official test cases pass, for each operator. If you want to know",
             "whether Lathe supports an operator, see [the ONNX front end](onnx-front-end.md#operators).", "",
             "`make conformance ARGS=--update` makes the page; do not edit it. Each case of `onnx==1.22.0` is compiled",
             "to C, built, run, and compared within its own tolerance. `test/py/conformance_expected_failures.txt`",
             "lists the cases that do not pass, with the reason. A case whose extents have no upper bound runs as a",
             "module. The results of Bernoulli are random: their type and shape are compared, and that each is 0 or 1.",
             "",
             f"**{sum(passed)} of {len(passed)} pass.** `onnx==1.23.2`, the newest one, adds "
             f"{len(of_newest)} cases, the",
             f"kind `newest` below: {sum(of_newest)} of these pass.", "",
             "| kind | passed | total |", "|---|---:|---:|"]
    lines += [f"| {kind} | {by_kind[kind][0]} | {by_kind[kind][1]} |" for kind in (*official.KINDS, official.NEWEST)]
    lines += ["", "The others fail for these reasons:", "", "| reason | cases |", "|---|---:|"]
    lines += obstacles(read_list())
    lines += ["", "A case with one operator counts for this operator. If the operator is a function, ONNX has a second",
              "case with its expansion, which counts for the same operator.", "",
              "| operator | passed | total |", "|---|---:|---:|"]
    lines += [f"| {name} | {by_operator[name][0]} | {by_operator[name][1]} |" for name in sorted(by_operator)]
    return "\n".join(lines) + "\n"


def judge(cases, results, listed):
    """Prints what differs from the list; returns the number of cases that fail the run."""
    wrong = 0
    for case in cases:
        message = results[case.name]
        if message and case.name not in listed:
            print(f"FAILED {case.key}: {message}")
            wrong += 1
        elif not message and case.name in listed:
            print(f"FAILED {case.key}: passes although it is listed; run with --update")
            wrong += 1
    return wrong


def stale(cases, listed, full):
    """Names listed that are no cases, and a table that does not show the results: both would mislead."""
    known = {c.name for c in official.find() + official.find_newest()}
    problems = [f"{name} is listed but is no case" for name in listed if name not in known]
    if full is not None:
        text = ""
        if os.path.exists(TABLE):
            with open(TABLE) as f:
                text = f.read()
        if text != table(cases, full):
            problems.append("docs/reference/onnx-conformance.md is out of date; run with --update")
    for problem in problems:
        print("FAILED", problem)
    return len(problems)


def summary(cases, results):
    for kind in (*official.KINDS, official.NEWEST):
        names = [c.name for c in cases if c.kind == kind]
        if names:
            print(f"  {kind}: {sum(results[n] is None for n in names)} of {len(names)} pass")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", help="only the cases whose name or kind/name matches this pattern")
    parser.add_argument("--skip", default="", help="not those whose name matches this one")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--compile-args", default="--target generic", metavar="ARGS", help="options of `lathe compile`")
    parser.add_argument("--keep", metavar="DIR", help="leave the packages in DIR")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-v", dest="verbose", action="store_true", help="print every failure, listed or not")
    return parser.parse_args()


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:4])
    options = parse_arguments()
    options.lathe = os.path.abspath(options.lathe)
    options.modules = set()
    every, newest = official.find(), official.find_newest()
    if (len(every), len(newest)) != (official.TOTAL, official.NEWEST_TOTAL):
        print(f"FAILED the wheels have {len(every)} and {len(newest)} cases, "
              f"{official.TOTAL} and {official.NEWEST_TOTAL} are expected")
        return 1
    every += newest
    cases = [c for c in every if (fnmatch.fnmatch(c.name, options.filter) or fnmatch.fnmatch(c.key, options.filter))
             and not fnmatch.fnmatch(c.name, options.skip)]
    if not cases:
        print(f"FAILED no case matches {options.filter}")
        return 1
    work = options.keep or tempfile.mkdtemp(prefix="conformance-")
    try:
        results = run_all(cases, options, work)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    wanted = {c.name for c in sample(every)}
    verified = verify_sample([c for c in cases if c.name in wanted], results, options)
    full = results if len(cases) == len(every) else None
    if options.verbose:
        for name in sorted(n for n in results if results[n]):
            print(f"  {name}: {results[name]}")
    if options.update:
        write_list(results)
        if full is not None:
            with open(TABLE, "w") as f:
                f.write(table(cases, full))
    listed = read_list()
    wrong = judge(cases, results, listed) + stale(cases, listed, full)
    if full is not None and verified < LEAST_VERIFIED:
        print(f"FAILED {verified} cases went through the command line, {LEAST_VERIFIED} are expected")
        wrong += 1
    print(f"{len(results)} cases, {sum(m is None for m in results.values())} pass, {len(options.modules)} of them as "
          f"modules; {verified} verified")
    summary(cases, results)
    expected = sum(1 for c in cases if results[c.name] and c.name in listed)
    print(f"conformance: {sum(m is None for m in results.values())} passed, {wrong} failed, {expected} skipped")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
