#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vector registers of RISC-V: no innermost loop of a package puts one on the stack, at VLEN 128, 256 and 512, and where
a loop multiplies, at least 70 % of its vector instructions are multiply-adds.

    riscv.py [--lathe FILE] [--long] [--model FILE]

A package for each width is compiled by clang-19, and its object is disassembled (rvv_loops.py). The layers are some of
resnet50, of its sizes; with --long all of resnet50 where models.py finds it, which then runs once under qemu, and the
share counts for all that ran in each convolution (test/steps/qemu_count.c). A product of one row has as many loads as
multiply-adds: the share is not asked of it. What is missing on this machine is skipped.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import grid
import models
import package
import rvv_loops

WIDTHS = {"rv64gcv": 128, "rv64gcv_zvl256b": 256, "rv64gcv_zvl512b": 512}
CC = "clang-19 --target=riscv64-linux-gnu"
EMULATOR = "qemu-riscv64 -cpu rv64,v=true,vlen={},elen=64,vext_spec=v1.0"
SHARE = 0.7
LEAST = 4  # multiply-adds of a loop that is asked


def layers():
    """Two blocks of a residual network in a row, so that convolutions take what is packed; the first and last layer."""
    g = grid.Group("layers")

    def conv(x, ins, outs, size, stride=1):
        y = g.op(f"nn.conv2d({x}, {g.weight([outs, ins, size, size])}) {{strides = [{stride}, {stride}], "
                 f"pads = [{', '.join([str(size // 2)] * 4)}]}}")
        return g.op(f"add({y}, {g.weight([outs, 1, 1])})")

    def relu(x):
        return g.op(f"nn.relu({x})")

    for channels, side in ((64, 56), (128, 28)):
        x = relu(conv(g.input([1, channels, side, side]), channels, channels, 1))
        y = relu(conv(relu(conv(x, channels, channels, 3)), channels, channels, 3))
        y = relu(g.op(f"add({conv(y, channels, channels, 1)}, {x})"))
        g.result(f"{channels}@{side}", relu(conv(y, channels, 2 * channels, 3, 2)))
    g.result("first", relu(conv(g.input([1, 3, 56, 56]), 3, 64, 7, 2)))
    g.result("last", g.op(f"nn.matmul({g.input([1, 512])}, {g.weight([512, 1000])})"))
    return g


def compiled(lathe, source, target, out):
    message = package.compile_model(lathe, source, out, "default", ["--target", target, "-q"])
    if message:
        raise package.Failure(f"{target}: {message}")
    with open(os.path.join(out, "Makefile"), encoding="utf-8") as f:
        flags = next(line for line in f if line.startswith("TARGET_FLAGS")).split("=", 1)[1].split()
    made = os.path.join(out, "ops.o")
    subprocess.run([*CC.split(), "-std=c99", "-O3", *flags, "-mno-relax", f"-I{out}/include", f"-I{out}/src", "-c",
                    f"{out}/src/ops.c", "-o", made], check=True, timeout=package.TIME_LIMIT)
    return made


def check_loops(made, vlen):
    """How many loops there are, and how many of them multiply."""
    loops = [x for name, code in rvv_loops.functions(made).items() for x in rvv_loops.inner_loops(name, code, vlen)]
    for loop in loops:
        if loop.spills():
            raise package.Failure(f"{loop.function}: {len(loop.spills())} registers on the stack in a loop of "
                                  f"{len(loop.vectors())} vector instructions at {loop.body[0].at:#x}")
    products = [x for x in loops if x.tile() and len(x.multiply_adds()) >= LEAST and x.tile()[1] > 1]
    for loop in products:
        share = len(loop.multiply_adds()) / len(loop.vectors())
        if share < SHARE:
            raise package.Failure(f"{share:.0%} of the vector instructions multiply: {rvv_loops.describe(loop)}")
    if not products:
        raise package.Failure("no loop multiplies scalars by vectors")
    return len(loops), len(products)


def check_run(out, vlen, plugin):
    """The least share of a layer, in all that ran."""
    message = package.make(out, 0, settings=(f"CC={CC}", "LDFLAGS=-static", "CFLAGS=-O3"))
    if message:
        raise package.Failure(message)
    listing = os.path.join(out, "counts")
    subprocess.run([*EMULATOR.format(vlen).split(), "-plugin", f"{plugin},out={listing},riscv=on",
                    os.path.join(out, "runner")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                   timeout=package.TIME_LIMIT)
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        kernels = {op["kernel"] for op in json.load(f)["operators"] if "conv2d" in op["kernel"]}
    shares = {}
    with open(listing, encoding="utf-8") as f:
        for line in f:
            _, function, vectors, multiply_adds = line.split()
            kernel = function.removeprefix("tvmgen_default_wrapped_").removeprefix("tvmgen_default_")
            if kernel in kernels and int(vectors):
                shares[kernel] = int(multiply_adds) / int(vectors)
    if len(shares) != len(kernels):
        raise package.Failure(f"counts of {len(shares)} layers, there are {len(kernels)}")
    least = min(shares, key=shares.get)
    if shares[least] < SHARE:
        raise package.Failure(f"{least}: {shares[least]:.0%} of the vector instructions multiply")
    return f"; of {len(shares)} layers at least {shares[least]:.0%} ({least})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(models.TOP, "build", "lathe"))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--model", default="", help="instead of resnet50: it is disassembled, and run with --long")
    o = parser.parse_args()
    tools = [CC.split()[0], rvv_loops.OBJDUMP, *(["qemu-riscv64", "riscv64-linux-gnu-gcc"] if o.long else [])]
    missing = [t for t in tools if not shutil.which(t)]
    if missing:
        print(f"riscv: 0 passed, 0 failed, {len(WIDTHS)} skipped: {', '.join(missing)} not here")
        return 0
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        sources = [os.path.join(folder, "layers.txt")]
        with open(sources[0], "w", encoding="utf-8") as f:
            f.write(layers().text())
        grid.write_weights(folder)
        plugin = os.path.join(folder, "count.so")
        if o.model:
            sources = [o.model]
        elif o.long:
            network = next(models.generated_models(("resnet50",)))
            if network.skip:
                print(f"skipped resnet50: {network.skip}")
                skipped += 1
            else:
                sources.append(network.write(folder))
        if o.long:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC",
                            os.path.join(models.TOP, "test", "steps", "qemu_count.c"), "-o", plugin], check=True)
        for source in sources:
            for target, vlen in WIDTHS.items():
                name = f"{os.path.basename(source)}, VLEN {vlen}"
                out = os.path.join(folder, os.path.basename(source) + target)
                try:
                    loops, products = check_loops(compiled(o.lathe, source, target, out), vlen)
                    os.remove(os.path.join(out, "ops.o"))
                    ran = check_run(out, vlen, plugin) if o.long and source.endswith(".onnx") else ""
                    print(f"ok {name}: {loops} innermost loops, {products} multiply{ran}", flush=True)
                    passed += 1
                except (package.Failure, subprocess.SubprocessError) as e:
                    print(f"FAILED {name}: {e}", flush=True)
                    failed += 1
    print(f"riscv: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
