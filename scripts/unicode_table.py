#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/frontend/onnx/onnx_unicode.def: the general category of each code point, as Python's unicodedata has it.

    unicode_table.py            rewrites the file
"""
import argparse
import os
import sys
import unicodedata

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(TOP, "src", "frontend", "onnx", "onnx_unicode.def")


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    runs, last = [], None
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category != last:
            runs.append(f"U(0x{code:x}, {category})")
            last = category
    with open(FILE, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                f"/* General categories of Unicode {unicodedata.unidata_version}, made by scripts/unicode_table.py:\n"
                " * U(code, category) of the first code point of each run of one category. Cn: not assigned. */\n")
        for i in range(0, len(runs), 6):
            f.write(" ".join(runs[i:i + 6]) + "\n")
        f.write("#undef U\n")


if __name__ == "__main__":
    main()
