#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Row streaming: networks by chance whose kernels run row by row give the bytes that they give kernel by kernel.

    streams.py [--lathe FILE] [--count N] [--seed N] [-v]

Each network, of floats or of quantised numbers, with strides, borders, dilations, depthwise convolutions, pools, sums
of branches and element-wise operators, is built for `cortex-m` on this machine without chains, with `--minimize ram`,
and with a budget in between, and its outputs are compared byte by byte; the streamed one is compared with the
interpreter as well (`verify --against interpreter`), which knows no chains. Most of the networks must have chains, and
none may take more memory with them.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Network:
    """Text of a graph that grows node by node; values are (name, channels, height, width)."""

    def __init__(self, rng, quantised):
        self.rng, self.quantised, self.body, self.count = rng, quantised, [], 0
        self.type = rng.choice(("i8", "u8")) if quantised else "f32"

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def constant(self, text):
        name = self.name()
        self.body.append(f"{name} = constant {text}")
        return name

    def weights(self, outs, ins, kh, kw):
        n = outs * ins * kh * kw
        if self.quantised:
            return self.constant(f"i8[{outs}, {ins}, {kh}, {kw}] dense "
                                 + str([self.rng.randint(-128, 127) for _ in range(n)]))
        return self.constant(f"f32[{outs}, {ins}, {kh}, {kw}] dense "
                             + str([round(self.rng.uniform(-0.5, 0.5), 3) for _ in range(n)]))

    def zero(self):
        return self.constant(f"{self.type}[] splat {self.rng.randint(0, 9)}")

    def scale(self):
        return self.constant(f"f32[] splat {self.rng.uniform(0.2, 0.9):.3f}")

    def emit(self, text):
        name = self.name()
        self.body.append(f"{name} = {text}")
        return name

    def convolution(self, x, outs, kernel, stride, pads, dilation, depthwise):
        value, ins, high, wide = x
        outs = ins if depthwise else outs
        w = self.weights(outs, 1 if depthwise else ins, *kernel)
        attrs = (f"{{groups = {ins if depthwise else 1}, strides = {list(stride)}, pads = {list(pads)}, "
                 f"dilations = {list(dilation)}}}")
        size = [(n + pads[i] + pads[i + 2] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
                for i, n in enumerate((high, wide))]
        if min(size) < 1:
            return x
        if not self.quantised:
            y = self.emit(f"nn.conv2d({value}, {w}) {attrs}")
            if self.rng.random() < 0.5:
                y = self.emit(f"nn.relu({y})")
            return y, outs, *size
        c = self.emit(f"qnn.conv2d({value}, {w}, {self.zero()}) {attrs}")
        offsets = [self.rng.randint(-4000, 4000) for _ in range(outs)]
        bias = self.constant(f"i32[{outs}, 1, 1] dense {offsets}")
        a = self.emit(f"add({c}, {bias})")
        scales = [round(self.rng.uniform(0.0005, 0.01), 6) for _ in range(outs)]
        s = self.constant(f"f32[{outs}] dense {scales}")
        return self.emit(f"qnn.requantize({a}, {s}, {self.scale()}, {self.zero()})"), outs, *size

    def window(self, x):
        """A convolution with whatever fits."""
        rng = self.rng
        kernel = (rng.randint(1, 4), rng.randint(1, 4))
        dilation = (rng.choice((1, 1, 2)), rng.choice((1, 1, 2)))
        pads = [rng.randint(0, dilation[i % 2] * (kernel[i % 2] - 1)) for i in range(4)]
        strides = (rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2)))
        return self.convolution(x, rng.choice((4, 6, 8)), kernel, strides, pads, dilation, rng.random() < 0.4)

    def pool(self, x):
        value, channels, high, wide = x
        k, s = self.rng.randint(2, 3), self.rng.randint(1, 2)
        if min(high, wide) < k + 1:
            return x
        kind = "nn.max_pool2d" if self.quantised or self.rng.random() < 0.5 else "nn.avg_pool2d"
        y = self.emit(f"{kind}({value}) {{pool_size = [{k}, {k}], strides = [{s}, {s}], pads = [1, 0, 0, 1]}}")
        return y, channels, (high + 1 - k) // s + 1, (wide + 1 - k) // s + 1

    def sum(self, a, b):
        if self.quantised:
            return self.emit(f"qnn.add({a[0]}, {self.scale()}, {b[0]}, {self.scale()}, {self.scale()}, "
                             f"{self.zero()}, {self.zero()}, {self.zero()})"), *a[1:]
        return self.emit(f"add({a[0]}, {b[0]})"), *a[1:]

    def residual(self, x):
        """x, or a shortcut of it, and two convolutions of it, added."""
        stride, outs = self.rng.choice(((1, x[1]), (2, 4))), None
        stride, outs = stride
        kernel = self.rng.choice(((3, 3), (5, 3)))
        pads = (kernel[0] // 2, 1, kernel[0] // 2, 1)
        first = [lambda: self.convolution(x, outs, (1, 1), (stride, stride), (0, 0, 0, 0), (1, 1), False)
                 if stride > 1 else x,
                 lambda: self.convolution(self.convolution(x, outs, kernel, (stride, stride), pads, (1, 1), False),
                                          outs, kernel, (1, 1), pads, (1, 1), False)]
        order = self.rng.choice(((0, 1), (1, 0)))
        made = {i: first[i]() for i in order}
        return self.sum(made[0], made[1]) if made[0][1:] == made[1][1:] else made[1]

    def elementwise(self, x):
        if self.quantised:
            return self.sum(x, x)
        text = self.rng.choice((f"nn.relu({x[0]})", f"sigmoid({x[0]})", f"multiply({x[0]}, {x[0]})"))
        return self.emit(text), *x[1:]

    def text(self):
        rng = self.rng
        x = ("%x", rng.randint(2, 5), rng.randint(14, 33), rng.randint(6, 14))
        head = f"func @main(%x: {self.type}[{rng.choice((1, 1, 1, 2))}, {x[1]}, {x[2]}, {x[3]}]) {{\n"
        kept = []
        for _ in range(rng.randint(4, 9)):
            step = rng.choice((self.window, self.window, self.window, self.pool, self.residual, self.elementwise))
            y = step(x)
            if y != x and rng.random() < 0.1:
                kept.append(y[0])
            x = y
        results = list(dict.fromkeys(kept + [x[0]])) if x[0] != "%x" else [self.elementwise(x)[0]]
        return head + "".join(f"  {line}\n" for line in self.body) + f"  return {', '.join(results)}\n}}\n"


def lathe(args, *command):
    done = subprocess.run([args.lathe, *command], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, CFLAGS=package.QUICK))
    return done.returncode, done.stdout + done.stderr


def outputs(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def check(args, text, folder):
    """None, or what is wrong; chains that were made."""
    model = os.path.join(folder, "m.graph")
    with open(model, "w", encoding="utf-8") as f:
        f.write(text)
    options = ("--target", "cortex-m", "--integers")
    status, said = lathe(args, "compile", model, *options, "--minimize", "ram", "-o", os.path.join(folder, "p"))
    if status:
        return said, 0
    chains = re.search(r"^chains +(\d+)", said, re.M)
    ram = re.search(r"^RAM +(\d+)", said, re.M)
    status, alone = lathe(args, "compile", model, *options, "-o", os.path.join(folder, "q"))
    if status or int(ram[1]) > int(re.search(r"^RAM +(\d+)", alone, re.M)[1]):
        return "more memory with chains:\n" + said, 0
    budget = str((int(ram[1]) + 3 * int(re.search(r"^RAM +(\d+)", alone, re.M)[1])) // 4)
    for name, more in (("alone", ()), ("chains", ("--minimize", "ram")), ("budget", ("--ram", budget))):
        status, said = lathe(args, "run", model, *options, *more, "--output-dir", os.path.join(folder, name))
        if status:
            return said, 0
    for name in ("chains", "budget"):
        if outputs(os.path.join(folder, "alone")) != outputs(os.path.join(folder, name)):
            return f"other bytes: {name}", 0
    limits = ("--rtol", "1e-4") if ": f32[" in text.split("\n", maxsplit=1)[0] else ()
    status, said = lathe(args, "verify", model, *options, "--minimize", "ram", "--against", "interpreter", *limits)
    return (said if status else None), int(chains[1]) if chains else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    failed = chained = 0
    for i in range(args.count):
        text = Network(random.Random(args.seed * 1000 + i), i % 2 == 0).text()
        with tempfile.TemporaryDirectory() as folder:
            why, chains = check(args, text, folder)
        chained += chains > 0
        if why:
            failed += 1
            print(f"FAIL network {i}: {why}")
            if args.v:
                print(text)
        elif args.v:
            print(f"ok network {i}: {chains} chains")
    if chained * 2 < args.count:
        failed += 1
        print(f"FAIL only {chained} of {args.count} networks have chains")
    print(f"{args.count - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
