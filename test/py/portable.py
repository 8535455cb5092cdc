#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One module file on several machines: x86-64, aarch64 and riscv64, there with vectors of 128, 256 and 512 bits and
without any, under qemu's user mode; its kernels are compiled where it runs.

    portable.py [--lathe FILE] [--filter GLOB] [--long] [--keep DIR]

The virtual machine is built for each machine as a static library, by gcc and by clang without a warning, and linked
with test/vm/runfile.c. Models: the demo's, an inverted residual block and an encoder with open extents; with --long
also mobilenetv2 and minilm, when they are beside the checkout (see models.py), which take minutes. A pair of model
and machine counts as one test, which holds when the numbers are onnxruntime's within the bounds of models.py, two
workers give the bytes that one gives, and the kernels that were called are those for the machine's width. On riscv64
the object that the compiler made is kept and disassembled: the inner loops of convolutions over channels and of
matrix products multiply and add whole registers of 32-bit elements, keep none of them in memory, and take at most 1.5
times the instructions that their tile needs (rvv_loops.py). What is not here is skipped; scripts/setup.sh test
installs it.
"""
import argparse
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dynamic_models
import models
import package
import rvv_loops

TOP = models.TOP
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
DEFINES = ["-std=c11", "-D_XOPEN_SOURCE=700", "-DLATHE_NO_JANSSON",
           "-I", os.path.join(TOP, "runtime", "vm"), "-I", os.path.join(TOP, "include")]
MOST = 1.5 # instructions of an inner loop against what its tile needs


@dataclass
class Machine:
    name: str
    processor: str      # of the tools: aarch64-linux-gnu-gcc
    emulator: tuple     # in front of the program
    compiler: str       # of kernels
    variant: str = ""   # of kernels that must be called: "v16"; "": whatever the machine has
    vlen: int = 0

    def tools(self):
        return [gcc_of(self.processor), self.compiler.split()[0], *self.emulator[:1]]


def gcc_of(processor):
    return "gcc" if processor == os.uname().machine else f"{processor}-linux-gnu-gcc"


def riscv(vlen):
    cpu = f"rv64,v=true,vlen={vlen},elen=64,vext_spec=v1.0" if vlen else "rv64,v=false"
    return Machine(f"riscv64-{vlen or 'scalar'}", "riscv64",
                   ("qemu-riscv64", "-cpu", cpu, "-L", "/usr/riscv64-linux-gnu"),
                   "clang-19 --target=riscv64-linux-gnu", f"v{vlen // 8 or 16}", vlen)


MACHINES = (
    Machine("x86_64", "x86_64", (), "gcc"),
    Machine("aarch64", "aarch64", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"), "aarch64-linux-gnu-gcc", "v16"),
    riscv(128), riscv(256), riscv(512), riscv(0),
)


# ---- The virtual machine for another machine ------------------------------------------------------


def must(command, **settings):
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=package.TIME_LIMIT,
                         **settings)
    if run.returncode != 0:
        raise package.Failure(f"{' '.join(command)[:60]}: status {run.returncode}: {run.stderr.strip()[-600:]}")
    return run


def sources():
    return sorted(glob.glob(os.path.join(TOP, "runtime", "vm", "*.c")))


def libffi(processor, ends):
    """What test/libffi says for the processor: words that begin with one of `ends`, or end so."""
    said = must([os.path.join(TOP, "test", "libffi"), processor]).stdout.split()
    return [word for word in said if word.startswith(ends) or word.endswith(ends)]


def build_runner(processor, work):
    """The program runfile, with the virtual machine in a static library beside it."""
    folder = os.path.join(work, processor)
    runner = os.path.join(folder, "runfile")
    if os.path.exists(runner):
        return runner
    os.makedirs(folder, exist_ok=True)
    must([gcc_of(processor), "-O1", "-c", *WARNINGS, *DEFINES, *libffi(processor, ("-isystem", "-D")), *sources()],
         cwd=folder)
    must(["ar", "rcs", "liblathe_vm.a", *sorted(f for f in os.listdir(folder) if f.endswith(".o"))], cwd=folder)
    must([gcc_of(processor), "-O1", *WARNINGS, *DEFINES, os.path.join(TOP, "test", "vm", "runfile.c"), "liblathe_vm.a",
          *libffi(processor, ("-l", ".a")), "-lpthread", "-ldl", "-o", runner], cwd=folder)
    return runner


def check_clang(processor):
    """A second compiler's warnings."""
    must(["clang-19", f"--target={processor}-linux-gnu", "-fsyntax-only", *WARNINGS, *DEFINES,
          *libffi(processor, ("-isystem", "-D")), *sources()])
    return "no warning"


# ---- Models ---------------------------------------------------------------------------------------


def residual_block(side=14, channels=32, inner=96):
    """An inverted residual: to more channels, a depthwise convolution, back, and the sum; then channels to classes."""
    rng = np.random.default_rng(5)
    weights, nodes = [], []

    def weight(name, *shape):
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def conv(x, y, outs, ins, size, group=1):
        names = [weight(y + "_w", outs, ins, size, size), weight(y + "_b", outs)]
        nodes.append(helper.make_node("Conv", [x, *names], [y], pads=[size // 2] * 4, group=group, name=y))

    def clip(x, y):
        nodes.append(helper.make_node("Clip", [x, "low", "high"], [y], name=y))

    weights += [numpy_helper.from_array(np.float32(v), n) for n, v in (("low", 0), ("high", 6))]
    conv("image", "wide", inner, channels, 1)
    clip("wide", "wide6")
    conv("wide6", "deep", inner, 1, 3, inner)
    clip("deep", "deep6")
    conv("deep6", "narrow", channels, inner, 1)
    nodes.append(helper.make_node("Add", ["narrow", "image"], ["sum"], name="sum"))
    conv("sum", "out", 64, channels, 3)
    shape = [1, channels, side, side]
    graph = helper.make_graph(nodes, "block", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 64, side, side])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write_model(build):
    def write(folder):
        path = os.path.join(folder, "model.onnx")
        onnx.save(build(), path)
        return path
    return write


def encoder_inputs(_, seed):
    length, rng = (24, 37)[seed - 1], np.random.default_rng(seed)
    return {"ids": rng.integers(0, 100, (1, length)), "mask": np.ones((1, length), np.int64)}


def chosen_models(is_long):
    """(specification, inputs of a model and a seed, whether there must be loops over channels)."""
    yield models.Model("digits", lambda _: os.path.join(TOP, "demo", "digits.onnx")), models.random_inputs, False
    yield models.Model("block", write_model(residual_block)), models.random_inputs, True
    yield models.Model("encoder", write_model(dynamic_models.encoder)), encoder_inputs, True
    for spec in models.all_models() if is_long else ():
        if spec.name in ("mobilenetv2", "minilm"):
            yield spec, models.random_inputs, True


class Module:
    """A model, its module file, and what onnxruntime gives for two inputs."""

    def __init__(self, spec, inputs, has_loops, lathe, work):
        self.name, self.has_loops = spec.name, has_loops
        folder = os.path.join(work, "model-" + spec.name)
        os.makedirs(folder)
        path = spec.write(folder)
        model = onnx.load(path)
        self.file = os.path.join(folder, spec.name + ".so")
        must([lathe, "compile", path, "--emit", "module", "-q", "-o", self.file])
        self.inputs = [inputs(model, seed) for seed in (1, 2)]
        self.outputs = [o.name for o in model.graph.output]
        self.wanted = models.reference(path, model, self.inputs, False)


# ---- A module on a machine ------------------------------------------------------------------------


def run(machine, runner, module, inputs, folder, *options):
    """(outputs by name, what is said of it)."""
    os.makedirs(folder, exist_ok=True)
    command = [*machine.emulator, runner, *options, module.file, os.path.join(folder, "out")]
    for i, (name, value) in enumerate(inputs.items()):
        path = os.path.join(folder, f"in{i}.bin")
        value.tofile(path)
        command.append(f"{name}={path}:{','.join(map(str, value.shape))}")
    environment = dict(os.environ, TVM_RVV_COMPILER=machine.compiler)
    environment.pop("LATHE_VECTOR_BYTES", None)
    done = must(command, env=environment)
    outputs = {}
    for i, (name, line) in enumerate(zip(module.outputs, done.stdout.splitlines())):
        code, bits, *shape = map(int, line.split())
        dtype = np.dtype(f"{'iuf'[code]}{bits // 8}")
        outputs[name] = np.fromfile(os.path.join(folder, f"out.{i}"), dtype).reshape(shape)
    if sorted(outputs) != sorted(module.outputs):
        raise package.Failure(f"{len(outputs)} results, {len(module.outputs)} are expected")
    return outputs, done.stderr


def check_kernels(machine, said):
    kernels = re.findall(r"^call: (\w+)", said, re.M)
    others = [k for k in kernels if not k.startswith(machine.variant or "v")]
    if not kernels or others:
        raise package.Failure(f"kernels of {machine.variant} are expected, called are {others or kernels}")
    return f"{len(kernels)} kernels of {kernels[0].split('_')[0]}"


def check_loops(machine, module, folder):
    loops = rvv_loops.main_loops(os.path.join(folder, module.name + ".so"), machine.vlen)
    if module.has_loops and not loops:
        raise package.Failure("no inner loop multiplies scalars by vectors")
    for loop in loops.values():
        line = rvv_loops.describe(loop)
        print("   ", line)
        if not loop.is_full():
            raise package.Failure(f"not whole registers ({loop.multiply_adds()[0].vtype}): {line}")
        if loop.count(r"vs(e32|\dr)"):
            raise package.Failure(f"registers kept in memory: {line}")
        if loop.ratio() > MOST:
            raise package.Failure(f"more than {MOST}: {line}")
    each = [len(x.body) / len(x.multiply_adds()) for x in loops.values()]
    return f", {len(loops)} loops of {min(each):.2f} to {max(each):.2f} instructions per multiply-add" if loops else ""


def check(machine, runner, module, work):
    folder = os.path.join(work, f"{machine.name}-{module.name}")
    keep, cache = os.path.join(folder, "keep"), os.path.join(folder, "cache")
    for path in (keep, cache):
        os.makedirs(path, mode=0o700)
    first, said = run(machine, runner, module, module.inputs[0], folder, "--keep", keep, "--cache", cache)
    second, _ = run(machine, runner, module, module.inputs[1], folder, "--cache", cache)
    again, _ = run(machine, runner, module, module.inputs[0], folder, "--cache", cache, "--workers", "2")
    for got, want in zip((first, second), module.wanted):
        models.check_close(got, want, False)
    if any(first[n].tobytes() != again[n].tobytes() for n in first):
        raise package.Failure("two workers give other bytes than one")
    return check_kernels(machine, said) + (check_loops(machine, module, keep) if machine.vlen else "")


def tests(options, work):
    """(name, tools, function without arguments)."""
    for processor in ("x86_64", "aarch64", "riscv64"):
        yield f"clang/{processor}", ["clang-19", gcc_of(processor)], lambda p=processor: check_clang(p)
    for spec, inputs, has_loops in chosen_models(options.long):
        made = []

        def module(s=spec, i=inputs, h=has_loops, made=made):
            if not made:
                made.append(Module(s, i, h, options.lathe, work))
            return made[0]

        for machine in MACHINES:
            yield (f"{machine.name}/{spec.name}", machine.tools(),
                   lambda m=machine, get=module: check(m, build_runner(m.processor, work), get(), work))


def run_test(tools, function):
    missing = [t for t in tools if not shutil.which(t)]
    if missing:
        return "skipped", "not here: " + ", ".join(missing)
    try:
        return "ok", function()
    except package.Failure as failure:
        return "FAILED", str(failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*", help="of MACHINE/MODEL")
    parser.add_argument("--long", action="store_true", help="mobilenetv2 and minilm as well")
    parser.add_argument("--keep", metavar="DIR", help="leave the files there")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    work = tempfile.mkdtemp(prefix="portable-", dir=options.keep)
    try:
        for name, tools, function in tests(options, work):
            if fnmatch.fnmatch(name, options.filter):
                verdict, line = run_test(tools, function)
                counts[verdict] += 1
                print(f"{verdict} {name}: {line}", flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(work)
    print(f"portable: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
