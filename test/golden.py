#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden runner: every test/golden/**/*.case is text in, text out.

    test/golden.py [--update] [--stop] [-j N] [--preload LIBRARY] [LATHE] [CASE]...    LATHE: build/lathe, CASE: all

A case, from top to bottom:

    # run: ARGS      arguments for lathe; several lines run in turn, their output is joined, the first failure ends it
    # exit: N        the exit status that is expected (0 when the line is absent)
    # ...            any other leading line with # is a remark
    INPUT            the text of the file %i
    --- schedule     optional: then the text of the file %s
    ---              then what stdout must be
    --- stderr       optional: then what stderr must be

In ARGS, %i and %s are these files, %d is the folder of the case, %t a fresh empty folder. These are their real names in
the folder where the case runs, so no output and no filter depends on where the repository lies. What stands behind |,
&& or || is a command of the shell. --update rewrites the expected parts (never the exit status): review the difference
like code. --preload names a library for lathe alone, such as gcc's liblsan.so, which fails a case that leaves memory
behind. --stop ends the run at the first failure."""
import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
LIMIT = int((TOP / "test" / "time_limit").read_text())  # against hangs


@dataclasses.dataclass
class Case:
    path: pathlib.Path
    head: str = ""
    run: list = dataclasses.field(default_factory=list)
    exit: int = 0
    input: str = ""
    schedule: str = None
    out: str = ""
    err: str = None

    def text(self):
        parts = [self.head, self.input]
        if self.schedule is not None:
            parts += ["--- schedule\n", self.schedule]
        parts += ["---\n", self.out]
        if self.err is not None:
            parts += ["--- stderr\n", self.err]
        return "".join(parts)


def read(path):
    c, part = Case(path), "head"
    for line in path.read_text().splitlines(keepends=True):
        mark = line.rstrip("\n")
        if part == "head" and not mark.startswith("#"):
            part = "input"
        if part == "head":
            if mark.startswith("# run: "):
                c.run.append(mark[len("# run: "):])
            elif mark.startswith("# exit: "):
                c.exit = int(mark[len("# exit: "):])
        elif part == "input" and mark == "--- schedule":
            part, c.schedule = "schedule", ""
            continue
        elif part != "err" and mark == "---":
            part = "out"
            continue
        elif part != "err" and mark == "--- stderr":
            part, c.err = "err", ""
            continue
        setattr(c, part, getattr(c, part) + line)
    return c


def start(line, options, stdin, work):
    """Runs one line in the folder work. A plain line needs no shell."""
    env = dict(os.environ, NO_COLOR="1", LC_ALL="C")
    if any(mark in line for mark in "|&;"):
        preload = f"env LD_PRELOAD={shlex.quote(options.preload)} " if options.preload else ""
        command = ["bash", "-c", f"{preload}{shlex.quote(options.lathe)} {line}"]
    else:
        command = [options.lathe, *shlex.split(line)]
        if options.preload:
            env["LD_PRELOAD"] = options.preload
    return subprocess.run(command, stdin=stdin, capture_output=True, env=env, cwd=work, timeout=LIMIT)


def execute(c, options, work):
    """Runs a case. Returns its exit status, what it printed, and what it said to stderr."""
    (work / "%i").write_text(c.input)
    (work / "%t").mkdir()
    (work / "%d").symlink_to(c.path.parent)
    if c.schedule is not None:
        (work / "%s").write_text(c.schedule)
    out = err = ""
    status = 0
    for line in c.run:
        with (work / "%i").open() as stdin:
            ended = start(line, options, stdin, work)
        status = ended.returncode
        out += ended.stdout.decode(errors="replace")
        err += ended.stderr.decode(errors="replace")
        if status != 0:
            break
    return status, out, err


def difference(want, got, name):
    lines = difflib.unified_diff(want.splitlines(True), got.splitlines(True), "expected" + name, "actual" + name)
    return "".join(lines)


def judge(path, options):
    """Returns (what is wrong, or None; whether the file was rewritten)."""
    c = read(path)
    if not c.run:
        return "it has no '# run: ' line", False
    with tempfile.TemporaryDirectory() as work:
        try:
            status, out, err = execute(c, options, pathlib.Path(work))
        except subprocess.TimeoutExpired:
            return f"it ran for more than {LIMIT} seconds", False
    if status != c.exit:
        return f"exit status {status} instead of {c.exit}: " + "".join(err.splitlines(True)[:3]), False
    if options.update:
        before = c.text()
        c.out, c.err = out, None if c.err is None else err
        if c.text() == before:
            return None, False
        path.write_text(c.text())
        return None, True
    found = difference(c.out, out, "")
    if c.err is not None:
        found += difference(c.err, err, "-stderr")
    return ("the output differs\n" + "".join(found.splitlines(True)[:40])) if found else None, False


def main():
    parser = argparse.ArgumentParser(description="runs test/golden/**/*.case")
    parser.add_argument("lathe", nargs="?", default=TOP / "build" / "lathe")
    parser.add_argument("cases", nargs="*", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--preload", metavar="LIBRARY")
    parser.add_argument("--stop", action="store_true")
    options = parser.parse_args()
    options.lathe = str(pathlib.Path(options.lathe).resolve())
    if not os.access(options.lathe, os.X_OK):
        print(f"golden: no compiler at {options.lathe}; run make first", file=sys.stderr)
        return 3
    os.environ["LSAN_OPTIONS"] = "allocator_may_return_null=1"
    cases = [c.resolve() for c in options.cases] or sorted((TOP / "test" / "golden").rglob("*.case"))
    failed = updated = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for path, (wrong, rewritten) in zip(cases, pool.map(lambda c: judge(c, options), cases)):
            updated += rewritten
            if rewritten:
                print(f"updated {path.relative_to(TOP)}")
            if wrong:
                failed += 1
                print(f"FAILED {path.relative_to(TOP)}: {wrong}")
                if options.stop:
                    pool.shutdown(wait=False, cancel_futures=True)
                    return 1
    if options.update:
        print(f"golden: {updated} updated")
    print(f"golden: {len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
