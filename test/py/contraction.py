#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No compiler contracts what a quantised model rounds twice, or leaves in two steps what it rounds once.

    contraction.py [--lathe FILE] [--seed N] [--count N]

Models of products whose result is f32 (MatMulIntegerToFloat, DynamicQuantizeMatMul, DynamicQuantizeLinear,
MatMulInteger, Cast, Mul and Add, the same of ConvInteger, QGemm without a scale and a sum behind it), of sums and
products of quantised numbers, and of what stays in floats between such, each compiled for several targets, built by gcc
and clang with -ffp-contract=off and fast, and interpreted: every result has to be onnxruntime's with exact sums, bit
for bit. What a compiler or an emulator is missing for is skipped; boards of the emulator build the package with its
own flags.
"""
import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

import contributed
import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# -std=gnu99 alone contracts with gcc, -std=c99 does not
FLAGS = ["-std=c99 -O3 -ffp-contract=off", "-std=c99 -O3 -ffp-contract=fast", "-std=gnu99 -O3", "-std=gnu99 -O1"]
HERE = ["x86-64-v3", "x86-64-v4", "generic"]
NEEDS = {"x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
COMPILERS = ["gcc", "clang-19"]
# target: compiler, emulator
CROSS = {"aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
         "rv64gcv_zvl256b": ("clang-19 --target=riscv64-linux-gnu",
                             "qemu-riscv64 -cpu rv64,v=true,vlen=256,elen=64,vext_spec=v1.0")}
BOARDS = ["qemu-m3", "qemu-m4", "qemu-m33", "qemu-m55", "qemu-rv32"]


class Model(contributed.Model):
    def inner(self, operator, inputs, count=1, domain="", **attributes):
        """A node whose results are not the model's."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names if count > 1 else names[0]

    def small(self, shape):
        return self.rng.standard_normal(shape).astype(np.float32) * np.float32(self.rng.choice([0.1, 1, 30]))

    def chain(self):
        """DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Add."""
        k, n = int(self.rng.integers(1, 90)), int(self.rng.integers(1, 40))
        w, _ = self.quantised_weights([k, n], np.int8, n)
        q, scale, zero = self.inner("DynamicQuantizeLinear", [self.input(self.small([2, 3, k]))], 3)
        y = self.inner("Cast", [self.inner("MatMulInteger", [q, w[0], zero])], to=TensorProto.FLOAT)
        y = self.inner("Mul", [y, self.inner("Mul", [scale, w[1]])])
        self.node("Add", [y, self.constant(self.small([n]))], TensorProto.FLOAT, domain="")

    def conv_chain(self):
        channels, outs = int(self.rng.integers(1, 9)), int(self.rng.integers(1, 20))
        w = self.constant(self.codes(np.int8, [outs, channels, 3, 3]))
        q, scale, zero = self.inner("DynamicQuantizeLinear", [self.input(self.small([1, channels, 9, 11]))], 3)
        y = self.inner("ConvInteger", [q, w, zero], pads=[1, 1, 1, 1])
        y = self.inner("Cast", [y], to=TensorProto.FLOAT)
        by = self.constant(self.rng.uniform(0.005, 0.02, [1, outs, 1, 1][self.rng.integers(0, 2):]).astype(np.float32))
        y = self.inner("Mul", [y, self.inner("Mul", [scale, by])])
        self.node("Add", [y, self.constant(self.small([1, outs, 1, 1]))], TensorProto.FLOAT, domain="")

    def gemm_and_sum(self):
        k, n = int(self.rng.integers(1, 70)), int(self.rng.integers(1, 40))
        w, _ = self.quantised_weights([n, k], np.int8, n)
        bias = self.constant(self.rng.integers(-3000, 3000, n).astype(np.int32))
        y = self.inner("QGemm", [self.input(self.codes(np.uint8, [5, k])), self.scale(12), self.zero(np.uint8)] + w +
                       [bias], domain="com.microsoft", transB=1)
        self.node("Add", [y, self.input(self.small([5, n]))], TensorProto.FLOAT, domain="")

    def decimal(self):
        """A scale of two digits, by which many sums are in the middle of two codes."""
        return self.constant(np.float32(self.rng.choice([0.02, 0.013, 0.03, 0.05])))

    def dequantised(self, dt):
        x = self.input(self.codes(dt, [16, 16, 32]))
        return self.inner("DequantizeLinear", [x, self.decimal(), self.constant(dt(0))])

    def stays(self):
        """What stays in floats between numbers of 8 bits: operands of two types, three of them, one beside a float."""
        x, y, z = [self.dequantised(dt) for dt in (np.int8, np.uint8, np.int8)]
        k = self.constant((self.rng.integers(3, 60, 32) / np.float32(20)).astype(np.float32))
        results = [self.inner("Sub", [x, y]), self.inner("Sub", [x, k]), self.inner("Mean", [x, y, z]),
                   self.inner("Add", [self.inner("Mul", [x, y]), z]),
                   self.inner("HardSigmoid", [self.inner("Sum", [x, y, z])]),
                   self.inner("Div", [self.inner("Add", [x, y]), self.constant(np.float32(6))])]
        for value in results:
            zero = self.constant(np.int8(-3))
            self.node("QuantizeLinear", [value, self.decimal(), zero], TensorProto.INT8, domain="")


def build(rng):
    m = Model(rng)
    m.stays()
    for _ in range(2):
        m.to_float()
        m.dynamic()
        m.chain()
        m.conv_chain()
        m.gemm_and_sum()
        m.binary("QLinearMul")
        m.binary("QLinearAdd")
    m.average()
    return m


def library(compiler, flags, folder):
    """The package of a folder, built with these flags in place of its own."""
    src, number = os.path.join(folder, "src"), sum(name.endswith(".so") for name in os.listdir(folder))
    out = os.path.join(folder, f"package{number}.so") # one that is loaded is not written again
    own = [f for f in package.report(folder)["target_cflags"].split() if not f.startswith("-ffp-contract")]
    command = [compiler, *flags.split(), *own, "-D_XOPEN_SOURCE=700", "-shared", "-fPIC", "-w",
               "-DTVMRT_NUM_WORKERS=0", "-I", src, "-I", os.path.join(folder, "include"), f"-Wa,-I{src}",
               *package.sources(folder), os.path.join(src, "tvmrt.c"), os.path.join(src, "tvmrt_port_posix.c"), "-lm",
               "-lpthread", "-o", out]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise package.Failure("build: " + package.first_error(done.stderr))
    return ctypes.CDLL(out)


def differing(m, want, got):
    """What is not equal, one text for each result; f32 bit by bit."""
    lines, makers = [], {name: node for node in m.nodes for name in node.output}
    for info, value in zip(m.outputs, want):
        have = got[info.name]
        if have.shape != value.shape or have.tobytes() != value.tobytes():
            lines.append(f"{info.name}, {makers[info.name].op_type}: {np.count_nonzero(have != value)} of {value.size}")
    return lines


def runs(args, path, m, folder):
    """(what ran, results by name; None: it cannot run here)"""
    def told(label, more, env):
        command = [args.lathe, "run", path, "--output-dir", folder, *package.save_inputs(folder, m.feed), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, **env))
        if done.returncode != 0:
            sys.exit(f"contraction.py: {label}: {done.stderr.strip()[:500]}")
        return label, {o.name: np.load(os.path.join(folder, o.name + ".npy")) for o in m.outputs}

    with open("/proc/cpuinfo", encoding="utf-8") as f:
        have = set(f.read().split())
    for target in HERE:
        if NEEDS.get(target, "fpu") not in have:
            yield target, None
            continue
        out = os.path.join(folder, target)
        package.compile_model(args.lathe, path, out, "m", ["--integers", "--target", target])
        for compiler in COMPILERS:
            for flags in FLAGS:
                label = f"{target}, {compiler} {flags}"
                yield label, package.call(library(compiler, flags, out), out, "m", m.feed) \
                    if shutil.which(compiler) else None
        yield told(f"{target}, interpreted", ["--integers", "--target", target, "--interpret"], {})
    for target, (compiler, emulator) in CROSS.items():
        tools = compiler.split()[0], emulator.split()[0]
        more = ["--integers", "--target", target, "--emulator", emulator]
        env = {"CC": compiler + " -static", "CFLAGS": "-O2"}
        yield told(target, more, env) if all(map(shutil.which, tools)) else (target, None)
    for board in BOARDS:
        arm = "arm-none-eabi-gcc", "qemu-system-arm"
        tools = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32") if "rv32" in board else arm
        yield told(board, ["--integers", "--target", board], {}) if all(map(shutil.which, tools)) else (board, None)


def check(args, seed, folder):
    m = build(np.random.default_rng(seed))
    path = os.path.join(folder, "model.onnx")
    m.save(path)
    want = contributed.reference(path, m.feed)
    passed = failed = skipped = 0
    for label, got in runs(args, path, m, folder):
        lines = differing(m, want, got) if got else []
        for line in lines:
            print(f"seed {seed}, {label}: {line}")
        passed, failed, skipped = passed + (got is not None and not lines), failed + bool(lines), skipped + (not got)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    args = parser.parse_args()
    totals = np.zeros(3, int)
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as folder:
            totals += check(args, seed, folder)
    print(f"contraction: {totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
