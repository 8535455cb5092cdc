#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/images/report.png, the picture of README: the report page of the demo's residual network on a Cortex-M4,
with instructions counted in QEMU, as Chromium shows it. Needs build/lathe, Chromium (Debian: chromium), and what
`lathe verify --target qemu-m4` needs.

    picture.py [--lathe FILE] [-o FILE]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "test" / "py"))
import browser  # noqa: E402

WIDTH, HEIGHT = 1010, 1118  # GitHub shows a README about that wide


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=str(TOP / "build" / "lathe"))
    parser.add_argument("-o", "--output", default=str(TOP / "docs" / "images" / "report.png"))
    options = parser.parse_args()
    if not browser.find():
        sys.exit("picture: Chromium is needed (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as b:
        model, page, counts = str(TOP / "demo" / "residual.onnx"), folder + "/page.html", folder + "/counts.json"
        with open(counts, "wb") as f:
            subprocess.run([options.lathe, "verify", model, "--target", "qemu-m4", "--against", "interpreter",
                            "--json"], stdout=f, check=True)
        subprocess.run([options.lathe, "inspect", model, "--target", "cortex-m4", "--ram", "64K", "--html", page,
                        "--profile", counts], check=True)
        b.open("file://" + page, WIDTH, HEIGHT)
        b.picture(options.output, whole=False)
    print(f"{options.output}: {os.path.getsize(options.output)} bytes")


if __name__ == "__main__":
    main()
