#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of scripts/coverage.sh: coverage_table.py SUMMARY.json [--write]"""
import collections
import json
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(TOP, "docs", "notes", "testing.md")
BEGIN, END = "<!-- table: made by scripts/coverage.sh -->", "<!-- end of the table -->"
LEAST = 15


def main():
    with open(sys.argv[1]) as f:
        files = json.load(f)["files"]
    folders = collections.defaultdict(lambda: [0, 0])
    for file in files:
        for folder in (os.path.dirname(file["filename"]), "all"):
            folders[folder][0] += file["line_covered"]
            folders[folder][1] += file["line_total"]
    rows = ["| folder | lines | covered |", "|---|---:|---:|"]
    rows += [f"| {name} | {total} | {100 * covered / total:.1f} % |" for name, (covered, total)
             in sorted(folders.items(), key=lambda row: (row[0] == "all", row[0]))]
    table = "\n".join(rows)
    print(table, "\n\nfiles with the most lines that no test runs:")
    for file in sorted(files, key=lambda f: f["line_covered"] - f["line_total"])[:LEAST]:
        print(f"{file['line_total'] - file['line_covered']:5} of {file['line_total']:5}  {file['filename']}")
    if "--write" in sys.argv[2:]:
        with open(DOCUMENT) as f:
            head, rest = f.read().split(BEGIN)
        with open(DOCUMENT, "w") as f:
            f.write(head + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
