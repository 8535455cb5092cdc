#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages for other processors, run under qemu's user mode, give what onnxruntime gives.

    cross.py [--lathe FILE] [--filter GLOB] [--long]

The demo's network and the light squeezenet with random weights; with --long also minilm, when it is beside the
checkout (see models.py), which takes minutes. Targets: aarch64 (gcc-aarch64-linux-gnu), rv64gcv, rv64gcv_zvl256b and
rv64gcv_zvl512b (clang-19 with gcc-riscv64-linux-gnu's libraries; qemu with the least VLEN that the target asks for,
and with twice that). A pair of model and target counts as one test, which holds when two inputs give the reference's
outputs within the bounds of models.py, one and two workers give the same bytes, the kernels hold vector instructions,
and the program is built without a warning; and when it refuses a machine whose registers are too narrow, with a
status and a log record. A target whose tools are not here is skipped; scripts/setup.sh test installs them.
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
    narrow: str = ""  # the command for a machine whose vectors are too narrow

    def missing(self):
        tools = {self.cc.split()[0], self.objdump, *(e.split()[0] for e in self.emulators)}
        if self.target.startswith("rv64gcv"):
            tools.add("riscv64-linux-gnu-gcc")
        return sorted(t for t in tools if not shutil.which(t))


RISCV = "qemu-riscv64 -cpu rv64,v=true,vlen={},elen=64,vext_spec=v1.0"


def riscv(target, vlen, narrow=""):
    return Processor(target, "clang-19 --target=riscv64-linux-gnu", "riscv64-linux-gnu-objdump", "vfmacc",
                     [RISCV.format(vlen), RISCV.format(2 * vlen)], narrow)


PROCESSORS = (
    Processor("aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", "fmla", ["qemu-aarch64"]),
    riscv("rv64gcv", 128),
    riscv("rv64gcv_zvl256b", 256, RISCV.format(128)),
    riscv("rv64gcv_zvl512b", 512, RISCV.format(256)),
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


REFUSED = """
#include <stdio.h>
#include "tvmgen_default.h"
#include "tvmrt.h"
int main(void)
{
    struct tvmgen_default_inputs in = {0};
    struct tvmgen_default_outputs out = {0};
    tvmrt_log_record_t record = {TVMRT_LOG_DEBUG, 0, 0};
    const int32_t status = tvmgen_default_run(&in, &out);
    const int logged = tvmrt_log_pop(&record);
    printf("%ld %d %d %ld %ld\\n", (long)status, logged, (int)record.level, (long)record.code, (long)record.op_id);
    return 0;
}
"""


def check_refused(processor, folder, work):
    """Code for wider registers would give wrong numbers without a fault."""
    def output(program, *arguments):
        run = subprocess.run([*processor.narrow.split(), program, *arguments], capture_output=True, text=True,
                             errors="replace", timeout=package.TIME_LIMIT)
        return run.returncode, run.stdout + run.stderr

    status, said = output(os.path.join(folder, "runner"), "-o", os.path.join(work, "refused"))
    if status != 1 or "status -13: this machine's vectors are narrower" not in said:
        raise package.Failure(f"under '{processor.narrow}': status {status}, {said.strip()[-200:]}")
    source, program = os.path.join(work, "refused.c"), os.path.join(work, "refused.exe")
    with open(source, "w") as f:
        f.write(REFUSED)
    subprocess.run(["make", "-C", folder, "lib", f"CC={processor.cc}"], capture_output=True, check=True)
    subprocess.run([*processor.cc.split(), "-static", "-I", os.path.join(folder, "include"), source,
                    os.path.join(folder, "libtvmgen_default.a"), "-lpthread", "-lm", "-o", program], check=True)
    if output(program) != (0, "-13 1 3 -13 -1\n"):
        raise package.Failure(f"under '{processor.narrow}': status and log record are {output(program)}")
    return ", refuses a narrower machine"


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
    refused = check_refused(processor, folder, work) if processor.narrow else ""
    return f"{check_vectors(processor, folder)} times {processor.instruction}{refused}"


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
