#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of the documentation as a reader would, each page in a folder of its own.

    docs.py [PAGE...] [--lathe build/lathe] [--tier test|long] [--list] [--show]

Without PAGE all pages of the tree run. What a fenced block is follows from its first line:

    sh                      commands, which have to succeed; the folder and the variables stay for the next block
    console                 lines "$ command", each followed by what it prints: "..." stands for anything, as a part of
                            a line or, alone on one, for any number of lines. A command succeeds, unless an error is
                            shown. It names no times or rates, and no table whose widths follow them: a text block
                            shows these
    python, c               a program, which has to succeed; Python blocks of a page share their names
    text title="Output"     what the block before prints
    LANGUAGE title="FILE"   a file of that name, for the blocks behind

Other text blocks are not looked at. Comments that a reader does not see steer the rest:

    <!-- test: long -->             the page is for `make test-long`
    <!-- needs: PROGRAM... -->      without these on PATH the page is skipped; "python:NAME" asks for a Python module,
                                    "file:PATH" for a file of the tree
    <!-- only: PROGRAM... -->       without these the next block does not run
    <!-- env: NAME=VALUE -->        from here on
    <!-- cc: FLAGS -->              flags for the C blocks from here on
    <!-- run: COMMANDS -->          commands that belong to no block, several lines perhaps
    <!-- skip: REASON -->           the next block does not run
    <!-- wrap: TEXT @@ TEXT -->     the next C block is no program: it stands where @@ is, and has to compile

Blocks see `lathe` and `python3` on PATH, LATHE_SOURCE, the top of the tree, and LATHE_BUILD, where lathe is. A failed
block ends its page."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = int(open(os.path.join(TOP, "test", "time_limit"), encoding="utf-8").read())  # against hangs
PART = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$|"
                  r"<!-- (?P<word>test|needs|only|env|cc|run|skip|wrap): ?(?P<value>.*?) ?-->", re.M | re.S)
TIME = re.compile(r"^.*\d[\d.]* ?(?:ms|us|GFLOP/s|GB/s)\b.*", re.M)
RUNS = {"sh", "bash", "console", "python", "c", "cpp"}
# Runs blocks of Python that arrive as lines of JSON, all in one namespace; answers each with a line.
PYTHON = """
import json, sys, traceback
names = {"__name__": "__main__"}
pipe = open(3, "w")
for line in sys.stdin:
    good = True
    try:
        exec(compile(json.loads(line), "the page", "exec"), names)
    except BaseException:
        traceback.print_exc()
        good = False
    sys.stdout.flush()
    sys.stderr.flush()
    print(good, file=pipe, flush=True)
"""


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def matches(expected, got):
    """The lines of `expected`, in which "..." stands for anything, are those of `got`."""
    want = [line.rstrip() for line in expected.rstrip().split("\n")]
    regex = ""
    for line in want:
        if line.strip() == "...":
            regex += r"(?:.*\n)*?"
        else:
            regex += ".*?".join(re.escape(piece) for piece in line.split("...")) + r" *\n"
    return re.fullmatch(regex, got.rstrip() + "\n" if got.strip() else "\n") is not None


def commands(body):
    """The commands of a console block, each with the text that follows it."""
    found = []
    for line in body.split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and not found[-1][1] and (line.startswith("> ") or found[-1][0].endswith("\\")):
            found[-1][0] += "\n" + (line[2:] if line.startswith("> ") else line)
        elif found:
            found[-1][1].append(line)
        elif line:
            raise Failure(f"a console block begins with '$ ', not with '{line}'")
    return [(command, "\n".join(text).strip("\n")) for command, text in found]


def lacking(needs):
    """Which of the programs and Python modules is not here; None: all are."""
    for need in needs.split():
        if need.startswith("python:"):
            command = [sys.executable, "-c", "import " + need.removeprefix("python:")]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                return f"{sys.executable} has no module {need.removeprefix('python:')}"
        elif need.startswith("file:"):
            if not os.path.exists(os.path.join(TOP, need.removeprefix("file:"))):
                return f"there is no {need.removeprefix('file:')}"
        elif not shutil.which(need):
            return f"there is no {need}"
    return None


class Page:
    def __init__(self, path, options):
        self.path, self.options = path, options
        self.folder = tempfile.mkdtemp(prefix="docs")
        self.home = os.path.join(self.folder, ".home")
        self.work = os.path.join(self.folder, os.path.splitext(os.path.basename(path))[0])
        os.makedirs(self.home)
        os.makedirs(self.work)
        bin_folder = os.path.join(self.folder, ".bin")
        os.makedirs(bin_folder)
        os.symlink(os.path.abspath(options.lathe), os.path.join(bin_folder, "lathe"))
        with open(os.path.join(bin_folder, "python3"), "w", encoding="utf-8") as f: # a link would lose its environment
            f.write(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        os.chmod(os.path.join(bin_folder, "python3"), 0o755)
        self.env = dict(os.environ, HOME=self.home, XDG_CACHE_HOME=os.path.join(self.home, ".cache"), LATHE_SOURCE=TOP,
                        LATHE_BUILD=os.path.dirname(os.path.abspath(options.lathe)),
                        LATHE_PYTHON=sys.executable, LC_ALL="C.UTF-8",
                        PATH=bin_folder + os.pathsep + os.environ["PATH"])
        for name in ("CFLAGS", "MAKEFLAGS", "MAKEOVERRIDES", "ARGS"):
            self.env.pop(name, None)
        self.groups = []
        self.flags, self.python, self.blocks, self.printed, self.wrap, self.skip = "", None, 0, ("", ""), None, None

    def close(self):
        if self.python:
            self.python.stdin.close()
            self.python.wait()
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                pass
        subprocess.run(["chmod", "-R", "u+w", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def shell(self, text):
        """Runs commands; folder and variables stay for the next ones. What they print is in `printed`: the output and
        the errors apart, because their order is another one on a terminal."""
        state = os.path.join(self.folder, ".state")
        before = f". '{state}'; " if os.path.exists(state) else ""
        saved = f'declare -px > "{state}"; printf "cd %q\\n" "$PWD" >> "{state}"'
        after = f"trap '{saved}' EXIT\nset -eo pipefail\n"
        # No pipes: what a block leaves running would hold them open.
        with open(os.path.join(self.folder, ".out"), "w+", encoding="utf-8", errors="replace") as out, \
                open(os.path.join(self.folder, ".err"), "w+", encoding="utf-8", errors="replace") as err:
            run = subprocess.Popen(["bash", "-c", before + after + text], cwd=self.work, env=self.env, stdout=out,
                                   stdin=subprocess.DEVNULL, stderr=err, start_new_session=True)
            self.groups.append(run.pid)
            try:
                status = run.wait(LIMIT)
            except subprocess.TimeoutExpired:
                raise Failure(f"no end after {LIMIT} s") from None
            out.seek(0)
            err.seek(0)
            self.printed = (out.read(), err.read())
            return status

    def need(self, text):
        status = self.shell(text)
        if status != 0:
            raise Failure(f"status {status}\n{''.join(self.printed)[-3000:]}")

    def compare(self, expected):
        out, err = self.printed
        if not any(matches(expected, text) for text in (out, out + err, err + out)):
            raise Failure(f"--- the page has\n{expected}\n--- this was printed\n{err}{out[-3000:]}")

    def console(self, body):
        for command, expected in commands(body):
            if TIME.search(expected):
                raise Failure(f"no two runs take the same time: '{TIME.search(expected)[0]}'")
            status = self.shell(command)
            if self.options.show:
                print(f"$ {command}\n{''.join(self.printed)}")
            try:
                self.compare(expected)
                if status and "error" not in expected:
                    raise Failure(f"it failed:\n{''.join(self.printed)[-3000:]}")
            except Failure as e:
                raise Failure(f"$ {command}\n(status {status})\n{e}") from None

    def run_python(self, body):
        if not self.python:
            answers, theirs = os.pipe()
            log = open(os.path.join(self.folder, ".python.log"), "w+", encoding="utf-8")
            self.python = subprocess.Popen(["bash", "-c", f'exec "$0" "$@" 3>&{theirs}', sys.executable, "-c", PYTHON],
                                           cwd=self.work, env=self.env, stdin=subprocess.PIPE, stdout=log,
                                           stderr=subprocess.STDOUT, text=True, pass_fds=[theirs])
            os.close(theirs)
            self.answers, self.log = os.fdopen(answers), log
        self.python.stdin.write(json.dumps(body) + "\n")
        self.python.stdin.flush()
        answer = self.answers.readline().strip()
        at = getattr(self, "read", 0)
        self.log.seek(at)
        self.printed = (self.log.read(), "")
        self.read = self.log.tell()
        if answer != "True":
            raise Failure(self.printed[0][-3000:])

    def c(self, body, language):
        name = f"block{self.blocks}.{language}"
        program = self.wrap is None
        if not program:
            body = self.wrap.replace("@@", body, 1)
            self.wrap = None
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as f:
            f.write(body)
        compiler = "${CC:-cc} -std=c11" if language == "c" else "${CXX:-c++} -std=c++17"
        flags = f"-Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable {self.flags}"
        if program:
            self.need(f"{compiler} {name} {flags} -o block && ./block")
        else:
            self.need(f"{compiler} -c {name} {flags} -o block.o")

    def comment(self, word, value):
        if word == "needs" and lacking(value):
            raise Skip(lacking(value))
        if word == "only":
            self.skip = lacking(value)
        if word == "env":
            name, _, text = value.partition("=")
            self.env[name] = text
        elif word == "cc":
            self.flags = value
        elif word == "run":
            self.need(value)
        elif word == "wrap":
            self.wrap = value
        elif word == "skip":
            self.skip = value

    def block(self, info, body):
        language = info.split()[0] if info.strip() else ""
        title = re.search(r'title="([^"]*)"', info)
        if self.skip:
            self.skip = None
            return "skipped"
        if title and title[1] == "Output":
            self.compare(body.rstrip("\n"))
        elif title and language not in ("sh", "bash", "console"):
            path = os.path.join(self.work, title[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(body)
            return None
        elif language in ("sh", "bash"):
            self.need(body)
        elif language == "console":
            self.console(body)
        elif language == "python":
            self.run_python(body)
        elif language in ("c", "cpp"):
            self.c(body, language)
        else:
            return None
        self.blocks += 1
        return "passed"


def parts(path):
    """Blocks and comments of a page, in order: line, match."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for match in PART.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match


def is_long(path):
    return any(m["word"] == "test" and m["value"] == "long" for _, m in parts(path))


def run_page(path, options):
    """Counts of a page: passed, failed, skipped."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    page = Page(path, options)
    relative = os.path.relpath(path, TOP)
    try:
        for line, match in parts(path):
            try:
                if match["word"]:
                    page.comment(match["word"], match["value"])
                    continue
                body = re.sub(f"^{match['indent']}", "", match["body"], flags=re.M)
                result = page.block(match["info"], body)
                if result:
                    counts[result] += 1
            except Failure as e:
                print(f"FAILED {relative}:{line}\n{e}", flush=True)
                counts["failed"] += 1
                break
            except Skip as e:
                print(f"skipped {relative}: {e}", flush=True)
                counts["skipped"] += 1
                break
    finally:
        page.close()
    return counts


def all_pages():
    pages = [os.path.join(TOP, "README.md"), os.path.join(TOP, "bindings", "python", "README.md")]
    return pages + sorted(glob.glob(os.path.join(TOP, "docs", "**", "*.md"), recursive=True))


def main():
    parser = argparse.ArgumentParser(description="runs the code blocks of the documentation")
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--tier", choices=["test", "long"], default="long",
                        help="test: without pages for make test-long")
    parser.add_argument("-j", type=int, default=1, help="pages at a time")
    parser.add_argument("--list", action="store_true", help="print the blocks that do not run, and why")
    parser.add_argument("--show", action="store_true", help="print what the commands of console blocks print")
    options = parser.parse_args()
    pages = [os.path.abspath(p) for p in options.pages] or all_pages()
    if options.list:
        for page in pages:
            for line, match in parts(page):
                if match["word"] == "skip":
                    print(f"{os.path.relpath(page, TOP)}:{line}: {match['value']}")
        return 0
    if options.tier == "test" and not options.pages:
        pages = [p for p in pages if not is_long(p)]
    total = {"passed": 0, "failed": 0, "skipped": 0}
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for counts in pool.map(lambda path: run_page(path, options), pages):
            for name, count in counts.items():
                total[name] += count
    if options.show:
        print(f"processor time {sum(os.times()[2:4]):.1f} s")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
