#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites the tables about VTA in docs/notes and docs/explanation with what the cycle model gives now, between
`made: NAME` and `end`.

    vta_tables.py [--build build] [--keep DIR] [NAME...]

NAME: layers, devices, networks, resnet18, squeezenet; without one all of them. `layers` and `devices`
come from the test programs that hold them to the definition; `networks` from the models of
test/py/vta_models.py as `make test` has them, the last two from those of 224 x 224, each quantised and compared
with the interpreter. --keep: a folder for the quantised models, SIZE/NAME.q.onnx; those that are there are used
again. Read the difference before it is committed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTES = os.path.join(TOP, "docs", "notes", "vta.md")
PAGES = {"networks": os.path.join(TOP, "docs", "explanation", "vta.md")}  # of the tables that are not in the notes
MODELS = ["resnet18", "resnet34", "resnet50", "mobilenet-G", "mobilenet", "squeezenet", "dcgan"]
WHOLE = ["resnet18", "squeezenet"]  # with a row for each layer
TESTED, PUBLISHED = ("64", "4"), ("224", "1")  # size of the image, divisor of the channels


def output(*command):
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout


def program(args, name):
    """The table that a test program prints."""
    subprocess.run(["ninja", "--quiet", "-C", args.build, name], cwd=TOP, check=True)
    lines = output(os.path.join(args.build, "test", name), "table").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def report(args, name, size, folder):
    """What `lathe vta model --json` says of a network."""
    lathe, folder = os.path.join(args.build, "lathe"), os.path.join(folder, size[0])
    model = os.path.join(folder, f"{name}.q.onnx")
    if not os.path.exists(model):
        output(sys.executable, "test/py/vta_models.py", name, "--lathe", lathe, "--size", size[0], "--width", size[1],
               "--keep", folder)
    return json.loads(output(lathe, "vta", "model", model, "--offload", "vta", "--json"))["result"]["models"][0]


def percent(part, whole):
    return f"{100 * part / whole:.0f}"


def row(layer):
    n, busy = layer["cycles"], layer["busy"]
    waits = layer["wait_token"]["load_to_compute"]
    moved = sum(layer["bytes"].values())
    return (f"| {layer['name']} | {n} | {layer['gemm_operations']} | {percent(busy['load'], n)} | "
            f"{percent(busy['compute'], n)} | {percent(busy['store'], n)} | {percent(waits, n)} | {moved // 1024} | "
            f"{layer['bound']}, {percent(layer['least_cycles'], n)} |")


def whole(r):
    layers = [layer for region in r["regions"] for layer in region["layers"]]
    return "\n".join(["| layer | cycles | GEMM operations | load % | compute % | store % | compute waits for load % | "
                      "KB moved | bound, % |", "|---|---|---|---|---|---|---|---|---|", *map(row, layers),
                      f"| the model | {r['cycles']} | {sum(l['gemm_operations'] for l in layers)} | | | | | | |"])


def networks(args, folder):
    rows = [(name, report(args, name, TESTED, folder)) for name in MODELS]
    return "\n".join(["| network | cycles | layers | regions |", "|---|---|---|---|"] + [
        f"| {name} | {r['cycles']} | {sum(len(region['layers']) for region in r['regions'])} | {len(r['regions'])} |"
        for name, r in rows])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*", default=[])
    p.add_argument("--build", default="build")
    p.add_argument("--keep")
    args = p.parse_args()
    wanted, made = args.names or ["layers", "devices", "networks", *WHOLE], {}
    if "layers" in wanted:
        made["layers"] = program(args, "vta_test_conv2d")
    if "devices" in wanted:
        made["devices"] = program(args, "vta_test_layers")
    with tempfile.TemporaryDirectory(prefix="lathe_vta_") as temporary:
        if "networks" in wanted:
            made["networks"] = networks(args, args.keep or temporary)
        for name in WHOLE:
            if name in wanted:
                made[name] = whole(report(args, name, PUBLISHED, args.keep or temporary))
    for name, table in made.items():
        page = PAGES.get(name, NOTES)
        with open(page, encoding="utf-8") as f:
            text, n = re.subn(rf"(<!-- made: {name} -->\n).*?(<!-- end -->)", lambda m, t=table: f"{m[1]}{t}\n{m[2]}",
                              f.read(), flags=re.S)
        assert n == 1, f"{page} has {n} places for the table {name}"
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
