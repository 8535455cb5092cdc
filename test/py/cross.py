#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages for other processors, run under qemu's user mode, give what onnxruntime gives.

    cross.py [--lathe FILE] [--filter GLOB] [--long]

The demo's network and the light squeezenet with random weights; with --long also minilm, when it is beside the checkout
(see models.py), which takes minutes. Targets: aarch64 (gcc-aarch64-linux-gnu) and rv64gcv (clang-19 with
gcc-riscv64-linux-gnu's libraries; qemu with VLEN 128, the least that the target asks for, and 256). A pair of model and
target counts as one test, which holds when two inputs give the reference's outputs within the bounds of models.py, one
and two workers give the same bytes, the kernels hold vector instructions, and the program is built without a warning. A
target whose tools are not here is skipped; scripts/setup.sh test installs them.
"""
import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import onnx

import models
import package

TOP = models.TOP
MODELS = ["demo_digits", "light_squeezenet_random"]


@dataclass
class Processor:
    target: str
    cc: str
    objdump: str
    instruction: str  # that multiplies and adds vectors
    emulators: list   # commands in front of the program; all must give the same bytes

    def missing(self):
        tools = {self.cc.split()[0], self.objdump, *(e.split()[0] for e in self.emulators)}
        if self.target == "rv64gcv":
            tools.add("riscv64-linux-gnu-gcc")
        return sorted(t for t in tools if not shutil.which(t))


RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen={},elen=64,vext_spec=v1.0"
PROCESSORS = (
    Processor("aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", "fmla", ["qemu-aarch64"]),
    Processor("rv64gcv", "clang-19 --target=riscv64-linux-gnu", "riscv64-linux-gnu-objdump", "vfmacc",
              [RISCV.format(128), RISCV.format(256)]),
)


def build(processor, folder, workers):
    settings = (f"CC={processor.cc}", "LDFLAGS=-static", "CFLAGS=-O3 -Wall -Wextra -Werror")
    message = package.make(folder, workers, settings=settings)
    if message:
        raise package.Failure(message)


def check_vectors(processor, folder):
    listing = subprocess.run([processor.objdump, "-d", os.path.join(folder, "build", "ops.o")], capture_output=True,
                             text=True, check=True).stdout
    count = listing.count(processor.instruction)
    if count == 0:
        raise package.Failure(f"no {processor.instruction} in the kernels")
    return count


def run_everywhere(processor, folder, inputs, work):
    """The outputs; those of the first input are the same bytes for one and two workers, under every emulator."""
    build(processor, folder, 1)
    outputs = [package.run_program(folder, i, os.path.join(work, f"run{k}"), emulator=processor.emulators[0].split())
               for k, i in enumerate(inputs)]
    build(processor, folder, 2)
    for emulator in processor.emulators:
        again = package.run_program(folder, inputs[0], os.path.join(work, "again"), emulator=emulator.split())
        if any(outputs[0][n].tobytes() != again[n].tobytes() for n in again):
            raise package.Failure(f"two workers under '{emulator}' give other bytes than one")
    return outputs


def check(processor, spec, lathe, work):
    path = spec.write(work)
    model = onnx.load(path)
    folder = os.path.join(work, "package")
    message = package.compile_model(lathe, path, folder, "default", ["--target", processor.target])
    if message:
        raise package.Failure(message)
    inputs = [models.random_inputs(model, seed) for seed in (1, 2)]
    got = run_everywhere(processor, folder, inputs, work)
    for a, b in zip(got, models.reference(path, model, inputs, spec.quantised)):
        models.check_close(a, b, spec.quantised)
    return f"{check_vectors(processor, folder)} times {processor.instruction}"


def run_one(processor, spec, options):
    if processor.missing():
        return "skipped", "not here: " + ", ".join(processor.missing())
    if spec.skip:
        return "skipped", spec.skip
    with tempfile.TemporaryDirectory(prefix="cross-") as work:
        try:
            return "ok", check(processor, spec, options.lathe, work)
        except package.Failure as failure:
            return "FAILED", str(failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", help="of TARGET/MODEL")
    parser.add_argument("--long", action="store_true", help="minilm as well")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    chosen = [m for m in models.all_models() if m.name in MODELS + ["minilm"] * options.long]
    for processor in PROCESSORS:
        for spec in chosen:
            name = f"{processor.target}/{spec.name}"
            if not fnmatch.fnmatch(name, options.filter):
                continue
            verdict, line = run_one(processor, spec, options)
            counts[verdict] += 1
            print(f"{verdict} {name}: {line}", flush=True)
    print(f"cross: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
