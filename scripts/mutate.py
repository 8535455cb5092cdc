#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts one small fault into the C sources: mutate.py FOLDER NUMBER. The same number gives the same fault for the
same sources. Prints `FILE:LINE: KIND: OLD -> NEW`. scripts/mutate.sh builds the result and asks the tests whether
they see it.

Kinds of faults, each as likely as the others: a comparison that takes in or leaves out its bound, a call that frees
or closes something and is gone, an index that is one too large, operands of a subtraction that change places, a
condition that joins by the other operator, a constant 1 that is 0."""
import pathlib
import random
import re
import sys

FOLDERS = ("src", "runtime", "tools")
NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:(?:->|\.)[A-Za-z_][A-Za-z0-9_]*)*"

# Where a fault would be no fault of the program: text, not code, and checks of the code by itself.
LEFT_OUT = re.compile(r"^\s*(#|\*|/\*|//|assert\()|\bassert\(|_Static_assert|\\$")


def swap(pattern, replacement):
    def faults(line):
        for m in re.finditer(pattern, line):
            yield line[:m.start()] + m.expand(replacement) + line[m.end():]
    return faults


def either(*kinds):
    def faults(line):
        for kind in kinds:
            yield from kind(line)
    return faults


def freed(line):
    """A statement of its own that gives something back."""
    if re.match(r"\s*(free|fclose|close|unlink|[a-z_]+_(free|destroy|close|release|unref))\(.*\);\s*$", line):
        yield re.match(r"\s*", line)[0] + ";\n"


KINDS = {
    "bound": either(swap(r" < (?!<)", " <= "), swap(r" <= ", " < "), swap(r" > (?!>)", " >= "), swap(r" >= ", " > ")),
    "free": freed,
    "index": swap(r"(?<=[A-Za-z0-9_])\[([a-z][A-Za-z0-9_]*)\](?! *\{)", r"[\1 + 1]"),
    "operands": swap(rf"(?<=[ (\[])({NAME}) - ({NAME})(?=[ ,;)\]])", r"\2 - \1"),
    "condition": either(swap(r" && ", " || "), swap(r" \|\| ", " && ")),
    "one": swap(r"(?<=[-+] )1(?=[ ,;)\]])", "0"),
}


def code(text):
    """The lines of a file that are code of functions: (number, line)."""
    in_comment = inside = False
    for number, line in enumerate(text.splitlines(keepends=True)):
        was = in_comment
        if "/*" in line or in_comment:
            in_comment = "*/" not in line[line.rfind("/*") if "/*" in line else 0:]
        inside = (inside or line.startswith("{")) and not line.startswith("}")
        if inside and not was and not in_comment and "/*" not in line and '"' not in line and not LEFT_OUT.search(line):
            yield number, line


def places(folder, kind):
    """Every place of a kind: (file, number of the line, the new line)."""
    found = []
    for top in FOLDERS:
        for file in sorted((folder / top).rglob("*.c")):
            for number, line in code(file.read_text()):
                found += [(file, number, new) for new in KINDS[kind](line)]
    return found


def main():
    folder, choice = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    kind = list(KINDS)[choice % len(KINDS)]
    file, number, new = random.Random(choice).choice(places(folder, kind))
    lines = file.read_text().splitlines(keepends=True)
    print(f"{file.relative_to(folder)}:{number + 1}: {kind}: {lines[number].strip()} -> {new.strip()}")
    lines[number] = new
    file.write_text("".join(lines))


if __name__ == "__main__":
    main()
