#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages for microcontrollers in emulators: equal to the interpreter, not slower than noted, without wide arithmetic.

    microcontrollers.py [--lathe FILE] [--all] [--update]

For each board (`lathe verify --target qemu-...`) a graph of quantised layers, odd in window, stride, border, channels
and zero points, must give what the interpreter gives, bit for bit; so must the demo's network within float's limits,
and the MLPerf Tiny models when they are beside the checkout (see models.py): on a Cortex-M4 and a Cortex-M55, with
--all on every board. On a Cortex-M4 they are run with rows streamed, too (`--minimize ram`), within
the bytes of RAM that are noted here, as are bytes of flash without constants.
The instructions of each run may be 1 % more than test/embedded/instructions.txt has, and its RAM no more; --update
writes it. Objects of
kernels call no function for numbers of 64 bits, and none for doubles, on processors with a floating-point unit, and on
no Cortex-M one that divides numbers of 64 bits: of kernels of every shape (kernel_shapes.py), too, and in chains.
A run takes no more instructions than the proof sheet has as its bound, and with a floating-point unit the bound of the
MLPerf Tiny models is no more than four times what they take.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import kernel_shapes
import models
import package

TOP = models.TOP
NOTED = os.path.join(TOP, "test", "embedded", "instructions.txt")
BOARDS = ("m0plus", "m3", "m4", "m7", "m33", "m55", "rv32")
TINY = ("tiny_kws_qdq", "tiny_ad_qdq", "tiny_ic_qdq", "tiny_vww_qdq")
ROOM = 1.01
WITH_UNIT = ("m4", "m7", "m33", "m55")
LOOSE = 4
# On a Cortex-M4 at most so many instructions and bytes of RAM, whatever is noted.
AIMS = {"tiny_vww_qdq": (12000000, 45000), "tiny_ic_qdq": (16000000, 37000), "tiny_kws_qdq": (4000000, 10500),
        "tiny_ad_qdq": (450000, 1700)}
# Instructions that a Cortex-M55, whose vectors multiply 16 bytes at a time, may take for these.
M55 = {"tiny_vww_qdq": 3300000, "tiny_ic_qdq": 2500000, "tiny_kws_qdq": 950000, "tiny_ad_qdq": 200000}
# Channels of the data, of the result, and the width of the layers of vectors(): whole vectors, their tails, fewer.
SHAPES = ((1, 5, 5), (2, 4, 7), (3, 9, 5), (4, 1, 9), (5, 6, 3), (7, 3, 5), (8, 20, 7), (9, 4, 1), (12, 5, 7),
          (15, 2, 5), (16, 17, 11), (17, 4, 3), (24, 6, 5), (31, 3, 3), (32, 33, 5), (33, 2, 4), (40, 12, 3))
# Channels of the data, of the result, and the width of words(): last tiles that are whole, channels in fours and
# others, windows of several rows.
WIDTHS = ((3, 2, 8), (4, 6, 11), (8, 4, 16), (5, 8, 23), (16, 3, 32), (20, 2, 14))
# Bytes of RAM with rows streamed, on a Cortex-M4: workspace, .data, .bss and the deepest stack.
STREAMED = {"tiny_vww_qdq": 34 * 1024, "tiny_ic_qdq": 20 * 1024, "tiny_kws_qdq": 8 * 1024, "tiny_ad_qdq": 1280}
# Bytes of flash without constants on a Cortex-M4, at most, in that same run: code and tables.
FLASH = {"tiny_vww_qdq": 12288, "tiny_ic_qdq": 12288, "tiny_kws_qdq": 7716, "tiny_ad_qdq": 2680}
# dtype, channels, height, width, channels of the result, kernel, strides, pads, dilations, groups
LAYERS = (
    ("u8", 3, 9, 11, 8, (3, 3), (2, 2), (0, 0, 1, 1), (1, 1), 1),
    ("i8", 1, 12, 10, 16, (10, 4), (2, 2), (4, 1, 5, 1), (1, 1), 1),
    ("i8", 1, 12, 10, 6, (10, 4), (2, 2), (4, 1, 5, 1), (1, 1), 1),
    ("i8", 8, 7, 8, 10, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ("u8", 5, 7, 7, 7, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ("i8", 2, 6, 9, 4, (2, 3), (1, 2), (0, 1, 0, 1), (1, 1), 1),
    ("i8", 4, 9, 9, 4, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 1),
    ("i8", 7, 5, 9, 2, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    ("u8", 6, 9, 10, 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ("i8", 6, 9, 7, 6, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 6),
    ("i8", 8, 5, 12, 8, (3, 3), (2, 2), (0, 1, 1, 1), (1, 1), 8),
    ("i8", 4, 4, 13, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4),
    ("i8", 3, 9, 11, 3, (5, 3), (1, 1), (2, 1, 2, 1), (1, 2), 3),
    ("i8", 1, 5, 14, 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ("i8", 16, 17, 5, 16, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 16),
    ("u8", 16, 1, 1, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
)
# dtype, rows, length, columns, transposed; of one row, those whose length is a multiple of 4 are read directly
PRODUCTS = (("i8", 1, 37, 12, 1), ("i8", 3, 8, 5, 0), ("i8", 5, 16, 2, 1), ("u8", 1, 40, 12, 0), ("i8", 1, 44, 8, 1),
            ("i8", 1, 20, 6, 1), ("u8", 1, 20, 5, 0))
WIDE = re.compile(r"\bU (__aeabi_(?:u?ldivmod|lmul|u?l2[df]|d\w+|[fui]2d)|__(?:u?(?:div|mod)di3|muldi3))$", re.M)
DOUBLES = re.compile(r"\bU (__aeabi_(?:u?ldivmod|d\w+|c?d\w+|[fui]2d|u?l2d)|__(?:u?(?:div|mod)di3))$", re.M)
DIVIDES = re.compile(r"\bU (__aeabi_u?ldivmod|__u?(?:div|mod)di3)$", re.M)


def numbers(rng, count, low, high):
    return "[" + ", ".join(str(rng.randint(low, high)) for _ in range(count)) + "]"


def vectors():
    """Layers for each of SHAPES: a product, a window, strides, a dilation, a window of each channel."""
    found = []
    for k, (ins, outs, wide) in enumerate(SHAPES):
        dt = ("i8", "u8")[k % 2]
        found += [(dt, ins, 2, wide, outs, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
                  (dt, ins, 3, wide, outs, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
                  (dt, ins, 4, wide, outs, (2, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
                  (dt, ins, 3, wide, ins, (3, 3), (1 + k % 2, 1 + k % 3 // 2), (1, 1, 1, 1), (1, 1), ins)]
        if k % 4 == 0:
            found += [(dt, ins, 4, wide, outs, (2, 3), (1, 1), (2, 2, 2, 2), (1, 2), 1),
                      (dt, ins, 6, wide, ins, (5, 6), (1, 1), (2, 3, 2, 2), (1, 1), ins)]
    return found


def words():
    """Layers for each of WIDTHS: a product, windows whose rows come again, strides, and a window of each channel."""
    found = []
    for k, (ins, outs, wide) in enumerate(WIDTHS):
        dt = ("i8", "u8")[k % 2]
        found += [(dt, ins, 2, wide, outs, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
                  (dt, ins, 4, wide, outs, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
                  (dt, ins, 4, 2 * wide, outs, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
                  (dt, ins, 5, 2 * wide, outs, (3, 3), (2, 2), (0, 0, 1, 1), (1, 1), 1),
                  (dt, ins, 5, wide, ins, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), ins)]
    return found


def layers(convolutions=LAYERS, low=-128, high=127):
    """The graph as text; weights are from `low` to `high`."""
    rng = random.Random(5)
    params, body, results = [], [], []
    for i, (dt, ins, high, wide, outs, kernel, stride, pads, dilation, groups) in enumerate(convolutions):
        zero, per = rng.randint(0, 9), ins // groups
        scales = ", ".join(f"{rng.uniform(0.0005, 0.01):.6f}" for _ in range(outs))
        params.append(f"%x{i}: {dt}[{1 if high > 16 else 2}, {ins}, {high}, {wide}]")
        body += [
            f"%w{i} = constant i8[{outs}, {per}, {kernel[0]}, {kernel[1]}] dense "
            + numbers(rng, outs * per * kernel[0] * kernel[1], low, high),
            f"%z{i} = constant {dt}[] splat {zero}",
            f"%b{i} = constant i32[{outs}, 1, 1] dense " + numbers(rng, outs, -4000, 4000),
            f"%s{i} = constant f32[{outs}] dense [{scales}]",
            f"%t{i} = constant f32[] splat 0.9",
            f"%y{i} = constant {dt}[] splat {zero + 3}",
            f"%c{i} = qnn.conv2d(%x{i}, %w{i}, %z{i}) {{groups = {groups}, strides = {list(stride)}, "
            f"pads = {list(pads)}, dilations = {list(dilation)}}}",
            f"%a{i} = add(%c{i}, %b{i})",
            f"%q{i} = qnn.requantize(%a{i}, %s{i}, %t{i}, %y{i})",
        ]
        results.append(f"%q{i}")
    for i, (dt, rows, length, columns, transposed) in enumerate(PRODUCTS):
        shape = f"{columns}, {length}" if transposed else f"{length}, {columns}"
        params.append(f"%m{i}: {dt}[{rows}, {length}]")
        body += [
            f"%mw{i} = constant i8[{shape}] dense " + numbers(rng, length * columns, low, high),
            f"%mz{i} = constant {dt}[] splat 5",
            f"%ms{i} = constant f32[] splat 0.004",
            f"%mt{i} = constant f32[] splat 1.0",
            f"%mc{i} = qnn.matmul(%m{i}, %mw{i}, %mz{i}) {{transpose_b = {transposed}}}",
            f"%mq{i} = qnn.requantize(%mc{i}, %ms{i}, %mt{i}, %mz{i})",
            f"%md{i} = qnn.dequantize(%mq{i}, %ms{i}, %mz{i})",
        ]
        results += [f"%md{i}", f"%mq{i}"]
    body += ["%ra = constant f32[] splat 0.5", "%rb = constant f32[] splat 0.7",
             "%r = qnn.add(%q4, %ra, %q4, %rb, %t0, %z4, %y4, %z4)"]
    results.append("%r")
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def twice():
    """The layers as TensorFlow Lite rounds them: behind the product, and behind the shift. Every other zero point is
    the least number, as behind a ReLU. No sum is beyond most_sum: 45 products and the bias."""
    rng, channels = random.Random(15), [spec[4] for spec in LAYERS]

    def rescale(found):
        i = int(found[1])
        least = {"i8": -128, "u8": 0}[LAYERS[i][0]]
        shifts = ", ".join(str(-rng.randint(6, 11)) for _ in range(channels[i]))
        return (f"%m{i}_ = constant i32[{channels[i]}] dense " + numbers(rng, channels[i], 1 << 30, (1 << 31) - 1) +
                f"\n  %h{i} = constant i32[{channels[i]}] dense [{shifts}]\n"
                f"  %k{i} = constant {LAYERS[i][0]}[] splat {least if i % 2 else least + 100}\n"
                f"  %q{i} = qnn.rescale(%a{i}, %m{i}_, %h{i}, %k{i}) {{most_sum = 2000000}}")

    text = re.sub(r"%q(\d+) = qnn.requantize\(%a.*", rescale, layers())
    return re.sub(r"(%r = qnn.add.*)", r'\1 {method = "tflite"}', text)


def product():
    """A product of u8 alone: all that its kernel calls is in its package."""
    rng = random.Random(6)
    return ("func @main(%x: u8[3, 96]) {\n  %w = constant i8[96, 8] dense " + numbers(rng, 96 * 8, -128, 127) +
            "\n  %z = constant u8[] splat 131\n  %s = constant f32[] splat 0.004\n  %t = constant f32[] splat 1.0\n"
            "  %c = qnn.matmul(%x, %w, %z)\n  %q = qnn.requantize(%c, %s, %t, %z)\n  %f = constant f32[] splat 0.5\n"
            "  %d = qnn.dequantize(%q, %f, %z)\n  %r = qnn.quantize(%d, %t, %z)\n  return %r\n}\n")


def batches():
    """Products of one and of several batches with one matrix: of an input, for a result, one behind the other, with a
    bias, a scale for each column, a sum of two behind them."""
    rng = random.Random(7)
    params, body, results = [], [], []
    for i, (dt, shape, columns) in enumerate((("u8", (1, 7, 12), 9), ("i8", (3, 4, 16), 16), ("i8", (2, 2, 3, 21), 8))):
        k = shape[-1]
        params.append(f"%x{i}: {dt}[{', '.join(map(str, shape))}]")
        scales = ", ".join(f"{rng.uniform(0.0005, 0.01):.6f}" for _ in range(columns))
        body += [f"%w{i} = constant i8[{k}, {columns}] dense " + numbers(rng, k * columns, -127, 127),
                 f"%v{i} = constant i8[{columns}, {columns}] dense " + numbers(rng, columns * columns, -127, 127),
                 f"%z{i} = constant {dt}[] splat 5",
                 f"%b{i} = constant i32[{columns}] dense " + numbers(rng, columns, -4000, 4000),
                 f"%s{i} = constant f32[{columns}] dense [{scales}]", f"%t{i} = constant f32[] splat 0.9",
                 f"%p{i} = qnn.matmul(%x{i}, %w{i}, %z{i})", f"%a{i} = add(%p{i}, %b{i})",
                 f"%q{i} = qnn.requantize(%a{i}, %s{i}, %t{i}, %z{i}) {{axis = -1}}",
                 f"%r{i} = qnn.matmul(%q{i}, %v{i}, %z{i})",
                 f"%u{i} = qnn.requantize(%r{i}, %s{i}, %t{i}, %z{i}) {{axis = -1}}",
                 f"%y{i} = qnn.add(%q{i}, %t{i}, %u{i}, %t{i}, %t{i}, %z{i}, %z{i}, %z{i})"]
        results += [f"%q{i}", f"%y{i}", f"%r{i}"]
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def pools():
    """Average pools over windows, whose sums are integers: planes and channels last, with ties and without, four
    channels at a time and those that are left."""
    params, body, results = [], [], []
    cases = (("u8", 3, 9, 11, (3, 3), (2, 2), (1, 1, 1, 1), 0, 0.31, 0.29),
             ("i8", 4, 8, 8, (2, 2), (2, 2), (0,) * 4, 0, 1, 1),
             ("u8", 2, 10, 7, (5, 3), (1, 2), (2, 1, 2, 1), 1, 0.04, 0.05),
             ("i8", 2, 12, 12, (12, 12), (1, 1), (0,) * 4, 0, 3, 0.7),
             ("i8", 10, 6, 7, (3, 3), (1, 1), (1, 1, 1, 1), 0, 0.31, 0.29),
             ("u8", 8, 7, 6, (4, 2), (2, 1), (1, 1, 2, 0), 1, 0.02, 0.02),
             ("u8", 4, 5, 5, (3, 3), (2, 2), (1, 1, 1, 1), 0, 0.05, 0.05))
    for i, (dt, ins, high, wide, size, stride, pads, counts, x_scale, y_scale) in enumerate(cases):
        last = i >= 4
        params.append(f"%x{i}: {dt}[1, 1, {high}, {wide}, {ins}]" if last else f"%x{i}: {dt}[1, {ins}, {high}, {wide}]")
        layout = f', data_layout = "NCHW{ins}c"' if last else ""
        body += [f"%s{i} = constant f32[] splat {x_scale:.2f}", f"%t{i} = constant f32[] splat {y_scale:.2f}",
                 f"%z{i} = constant {dt}[] splat 7",
                 f"%y{i} = qnn.avg_pool2d(%x{i}, %s{i}, %t{i}, %z{i}, %z{i}) {{pool_size = {list(size)}, "
                 f"strides = {list(stride)}, pads = {list(pads)}, count_include_pad = {counts}{layout}}}"]
        results.append(f"%y{i}")
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def elements():
    """Byte by byte, four of them in a word on some processors: bounds, extremes, tables, pools, sums, products; whole
    words and tails, and fewer bytes than a word."""
    rng = random.Random(8)
    params, body, results = [], [], []
    for dt, least, most in (("i8", -128, 127), ("u8", 0, 255)):
        body += [f"%t{dt} = constant {dt}[256] dense " + numbers(rng, 256, least, most),
                 f"%l{dt} = constant {dt}[] splat {least + 97}", f"%h{dt} = constant {dt}[] splat {most - 60}",
                 f"%s{dt} = constant f32[] splat 0.02"]
        for shape in ("64", "67", "3, 5, 9", "3", "2, 40"):
            i = f"{dt}{len(params)}"
            params += [f"%x{i}: {dt}[{shape}]", f"%y{i}: {dt}[{shape}]"]
            made = (f"clip(%x{i}, %l{dt}, %h{dt})", f"maximum(%x{i}, %l{dt})", f"minimum(%x{i}, %h{dt})",
                    f"maximum(%x{i}, %y{i})", f"minimum(%y{i}, %x{i})", f"qnn.table(%x{i}, %t{dt})",
                    f"qnn.mul(%x{i}, %s{dt}, %y{i}, %s{dt}, %s{dt}, %l{dt}, %h{dt}, %l{dt})",
                    f"qnn.add(%x{i}, %s{dt}, %y{i}, %s{dt}, %s{dt}, %l{dt}, %h{dt}, %l{dt})")
            for j, one in enumerate(made):
                body.append(f"%r{i}_{j} = {one}")
                results.append(f"%r{i}_{j}")
        for c, size, stride, pads in ((8, 2, 2, 0), (7, 3, 1, 1), (3, 3, 2, 1), (30, 2, 1, 0), (16, 5, 1, 2)):
            i = f"{dt}p{c}"
            params.append(f"%x{i}: {dt}[1, 1, 9, 8, {c}]")
            body.append(f"%r{i} = nn.max_pool2d(%x{i}) {{pool_size = [{size}, {size}], strides = [{stride}, {stride}], "
                        f"pads = [{pads}, {pads}, {pads}, {pads}], data_layout = \"NCHW{c}c\"}}")
            results.append(f"%r{i}")
        for c, high, wide in ((330, 6, 6), (41, 15, 17), (4, 60, 60)):
            i = f"{dt}g{c}"
            params.append(f"%x{i}: {dt}[1, 1, {high}, {wide}, {c}]")
            body.append(f"%r{i} = qnn.global_avg_pool2d(%x{i}, %s{dt}, %s{dt}, %l{dt}, %h{dt}) "
                        f"{{data_layout = \"NCHW{c}c\"}}")
            results.append(f"%r{i}")
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def pairs():
    """Products of two operands that only the run knows, by four numbers and by some more, rows and columns in pairs and
    one alone, of batches, in panels of columns, stored either way, u8 by i8; one row, which stays as it is."""
    params, body, results = [], [], []
    cases = ((4, 4, 2, "", "", "i8", "i8", 0, 0), (5, 7, 3, "", "", "i8", "u8", 0, 1),
             (6, 33, 9, "", "", "u8", "u8", 1, 0), (7, 8, 1, "2, ", "2, ", "u8", "i8", 0, 1),
             (9, 20, 6, "2, 3, ", "3, ", "i8", "i8", 0, 0), (5, 64, 70, "", "2, ", "i8", "i8", 0, 0),
             (4, 130, 35, "", "", "u8", "u8", 1, 1), (1, 16, 8, "", "", "i8", "i8", 0, 0))
    for i, (m, k, n, a, b, dt, other, ta, tb) in enumerate(cases):
        params += [f"%a{i}: {dt}[{a}{k if ta else m}, {m if ta else k}]",
                   f"%b{i}: {other}[{b}{n if tb else k}, {k if tb else n}]"]
        body += [f"%y{i} = constant {dt}[] splat 5", f"%z{i} = constant {other}[] splat {i * 16}",
                 f"%s{i} = constant f32[] splat 0.0013", f"%t{i} = constant f32[] splat 0.7",
                 f"%p{i} = qnn.matmul(%a{i}, %b{i}, %y{i}, %z{i}) {{transpose_a = {ta}, transpose_b = {tb}}}",
                 f"%q{i} = qnn.requantize(%p{i}, %s{i}, %t{i}, %y{i})"]
        results += [f"%p{i}", f"%q{i}"]
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def choices():
    """Floats that a comparison chooses: in vectors, tails and fewer lanes, with NaNs (square roots) among them; what is
    chosen is stored, or reduced in lanes."""
    params, body, results = [], [], []
    for i, shape in enumerate(("64", "67", "3, 130", "7")):
        params += [f"%x{i}: f32[{shape}]", f"%y{i}: f32[{shape}]"]
        body += [f"%low{i} = constant f32[] splat -0.25", f"%high{i} = constant f32[] splat 0.5"]
        body += [f"%n{i} = sqrt(%x{i})", f"%less{i} = less(%x{i}, %y{i})", f"%under{i} = less(%n{i}, %y{i})",
                 f"%most{i} = less_equal(%n{i}, %y{i})", f"%relu{i} = nn.relu(%n{i})",
                 f"%clip{i} = clip(%n{i}, %low{i}, %high{i})", f"%one{i} = where(%under{i}, %y{i}, %high{i})",
                 f"%two{i} = where(%most{i}, %y{i}, %high{i})"]
        for j, made in enumerate((f"nn.relu(%n{i})", f"nn.leaky_relu(%x{i}) {{alpha = 0.1}}", f"maximum(%n{i}, %y{i})",
                                  f"minimum(%y{i}, %n{i})", f"clip(%n{i}, %low{i}, %high{i})",
                                  f"where(%less{i}, %y{i}, %n{i})", f"max(%x{i})", f"min(%x{i}) {{axes = [-1]}}",
                                  f"max(%n{i})", f"min(%n{i})", f"max(%relu{i})", f"sum(%clip{i})", f"sum(%one{i})",
                                  f"sum(%two{i})")):
            body.append(f"%r{i}_{j} = {made}")
            results.append(f"%r{i}_{j}")
    return f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


def codes():
    """Floats that become numbers of 16 bits: ties, what is beyond the range, NaNs (square roots)."""
    body = ["%k = constant f32[] splat 1000.0", "%h = constant f32[] splat 0.5", "%b = constant f32[] splat 3e9",
            "%f = constant f32[] splat 33.0", "%l = multiply(%x, %k)", "%i = floor(%l)", "%v0 = add(%i, %h)",
            "%v1 = multiply(%v0, %f)", "%v2 = multiply(%x, %b)", "%v3 = sqrt(%l)", "%v4 = divide(%x, %zero)",
            "%zero_i16 = constant i16[] splat -7", "%zero_u16 = constant u16[] splat 32771"]
    body.insert(0, "%zero = constant f32[] splat 0.0")
    results = []
    for dt in ("i16", "u16"):
        for i in range(5):
            body += [f"%s{i}{dt} = constant f32[] splat {1 + i % 2}.0",
                     f"%y{i}{dt} = qnn.quantize(%v{i}, %s{i}{dt}, %zero_{dt})"]
            results.append(f"%y{i}{dt}")
    return "func @main(%x: f32[8, 67]) {\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n"


FAR = ("sin(%a)", "cos(%a)", "tan(%a)", "mod(%a, %b) {fmod = 1}")


def check_far(lathe, board, work):
    """Functions of the C library take longest where the argument has the largest exponent: the bound is above that."""
    numbers = {"a": np.full(64, 0.7 * np.finfo(np.float32).max, np.float32),
               "b": np.full(64, 3 / 8 * np.finfo(np.float32).tiny, np.float32)}
    inputs = []
    for name, value in numbers.items():
        np.save(os.path.join(work, name + ".npy"), value)
        inputs += ["--input", f"{name}={os.path.join(work, name)}.npy"]
    shares = []
    for made in FAR:
        file, two = os.path.join(work, "far.txt"), "%b" in made
        with open(file, "w", encoding="ascii") as f:
            f.write(f"func @main(%a: f32[64]{', %b: f32[64]' if two else ''}) {{\n  %y = {made}\n  return %y\n}}\n")
        result = run([lathe, "run", file, "--target", "qemu-" + board, "--output-dir", work, *inputs[:4 if two else 2]])
        count = re.search(r"^instructions +(\d+)", result.stdout + result.stderr, re.M)
        if result.returncode != 0 or not count:
            raise package.Failure(f"{made}: {result.stderr.strip()[-200:]}")
        check_bound(lathe, "", file, board, int(count.group(1)))
        shares.append(f"{made.split('(')[0]} {int(count.group(1))}")
    return ", ".join(shares)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=package.TIME_LIMIT,
                          cwd=TOP, **more)


def verify(lathe, file, board, exact, *more):
    """Instructions of the run, bytes of RAM, and of flash without constants, once its results are right."""
    result = run([lathe, "verify", file, "--target", "qemu-" + board, "--against", "interpreter", *more])
    text = result.stdout + result.stderr
    count, ram = (re.search(rf"^{what} +(\d+)", text, re.M) for what in ("instructions", "RAM"))
    flash = re.search(r"^flash +(\d+) .*\(constants (\d+)\)", text, re.M)
    if result.returncode != 0 or not count or not ram or not flash:
        raise package.Failure((text.strip().splitlines() or ["no message"])[-1][:200])
    far = [line for line in result.stdout.splitlines() if exact and ": max abs" in line and "max abs 0," not in line]
    if far:
        raise package.Failure(f"not equal: {far[0]}")
    return int(count.group(1)), int(ram.group(1)), int(flash.group(1)) - int(flash.group(2))


def shown(counts):
    return f"{counts[0]} instructions, {counts[1]} bytes"


def most_instructions(lathe, file, target, every):
    """The bound of the proof sheet; every: what the processor has an instruction for has to get it."""
    result = run([lathe, "inspect", file, "--target", target, "--json"])
    if result.returncode != 0:
        raise package.Failure(result.stderr.strip()[-200:])
    about = json.loads(result.stdout)["result"]
    proof = about["proof"]
    without = sorted({o["kernel"] for o in about["operators"] if every and o["instructions_left"]})
    if without:
        raise package.Failure(f"instructions_left in {', '.join(without)[:200]}")
    if proof["most_instructions"] is None or proof["most_operations"] is None:
        raise package.Failure(f"no bound of instructions: {proof['unbounded_because']}")
    return proof["most_instructions"]


def check_bound(lathe, name, file, board, count):
    bound = most_instructions(lathe, file, "rv32imc" if board == "rv32" else "cortex-" + board, name in TINY)
    if count > bound:
        raise package.Failure(f"{count} instructions, the proof sheet says {bound} at most")
    if name in TINY and board in WITH_UNIT and bound > LOOSE * count:
        raise package.Failure(f"{count} instructions, a bound of {bound} says nothing")


def check_calls(lathe, file, target, work, calls, *more):
    """Kernels call nothing of `calls`."""
    folder, tools = os.path.join(work, "calls"), "arm-none-eabi-"
    for command in (["rm", "-rf", folder],
                    [lathe, "compile", file, "-o", folder, "--target", target, "--port", "baremetal", *more],
                    ["make", "-s", "-C", folder, "build/ops.o", f"CC={tools}gcc"]):
        result = run(command)
        if result.returncode != 0:
            raise package.Failure(f"{command[0]}: {result.stderr.strip()[-200:]}")
    found = calls.findall(run([tools + "nm", "-u", os.path.join(folder, "build", "ops.o")]).stdout)
    if found:
        raise package.Failure("kernels call " + ", ".join(found))


def check_compilers(lathe, file, work):
    """The assembly of kernels finds its registers with other flags and with clang."""
    folder = tempfile.mkdtemp(dir=work)
    cpu = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-std=c99", "-DTVMRT_NUM_WORKERS=0",
           "-Isrc", "-Iinclude", "-c", "src/ops.c", "-o", "ops.o"]
    result = run([lathe, "compile", file, "-o", folder, "--target", "cortex-m4", "--port", "baremetal"])
    if result.returncode != 0:
        raise package.Failure(result.stderr.strip()[-200:])
    tried = [["arm-none-eabi-gcc", *flags] for flags in (
        ["-Os"], ["-Og"], ["-O3", "-fPIC"], ["-O3", "-fno-omit-frame-pointer", "-DLATHE_FRAME_POINTER"])]
    headers = "/usr/lib/arm-none-eabi/include"
    if shutil.which("clang-19") and os.path.isdir(headers):
        tried += [["clang-19", "--target=arm-none-eabi", "-isystem", headers, flag] for flag in ("-O1", "-O3", "-Os")]
    for command in tried:
        result = subprocess.run(command + cpu, capture_output=True, text=True, cwd=folder, timeout=package.TIME_LIMIT)
        if result.returncode != 0:
            raise package.Failure(f"{' '.join(command)}: {result.stderr.strip()[-200:]}")
    return f"{len(tried)} ways"


def noted():
    found = {}
    if os.path.exists(NOTED):
        with open(NOTED, encoding="ascii") as f:
            for line in f:
                if not line.startswith("#"):
                    board, model, count, ram = line.split()
                    found[board, model] = int(count), int(ram)
    return found


def write_noted(counts):
    with open(NOTED, "w", encoding="ascii") as f:
        f.write("# SPDX-License-Identifier: Apache-2.0\n# Board, model, instructions of one run, bytes of RAM, by "
                "test/py/microcontrollers.py --all --update; a run may take 1 % more instructions.\n")
        for (board, model), (count, ram) in sorted(counts.items()):
            f.write(f"{board} {model} {count} {ram}\n")


class Tests:
    def __init__(self, options, work):
        self.lathe, self.work = os.path.abspath(options.lathe), work
        self.noted, self.update, self.counts = noted(), options.update, {"ok": 0, "FAILED": 0, "skipped": 0}

    def one(self, name, test):
        try:
            verdict, line = "ok", test() or ""
        except package.Failure as failure:
            verdict, line = "FAILED", str(failure)
        self.counts[verdict] += 1
        print(f"{verdict} {name}: {line}", flush=True)

    def counted(self, board, name, file, exact):
        count, ram, flash = verify(self.lathe, file, board, exact)
        took, most = f"{count} instructions, {ram} bytes", self.noted.get((board, name))
        check_bound(self.lathe, name, file, board, count)
        if board == "m4" and flash > FLASH.get(name, flash):
            raise package.Failure(f"{flash} bytes of flash without constants, {FLASH[name]} are noted")
        aim = M55.get(name) if board == "m55" else None
        if aim and count > aim:
            raise package.Failure(f"{count} instructions, {aim} at most are the aim")
        if self.update:
            self.noted[board, name] = count, ram
        elif most is None:
            raise package.Failure(f"{took}; no number is noted in {os.path.relpath(NOTED, TOP)}")
        elif count > most[0] * ROOM or ram > most[1]:
            raise package.Failure(f"{took}, {most[0]} and {most[1]} are noted")
        aim = AIMS.get(name) if board == "m4" else None
        if aim and (count > aim[0] or ram > aim[1]):
            raise package.Failure(f"{took}, the aim is {aim[0]} and {aim[1]}")
        return f"{took}, {flash} bytes of flash without constants"

    def shaped(self, board, file):
        counts = verify(self.lathe, file, board, False)
        check_bound(self.lathe, "", file, board, counts[0])
        return shown(counts)

    def streamed(self, name, file, exact):
        """Rows in chains: the same results, within the noted RAM and 15 % more instructions."""
        count, ram, _ = verify(self.lathe, file, "m4", exact, "--minimize", "ram")
        most = self.noted.get(("m4", name), (count, ram))[0]
        if ram > STREAMED.get(name, ram):
            raise package.Failure(f"{ram} bytes of RAM, {STREAMED[name]} are noted")
        if name in STREAMED and count > most * 1.15:
            raise package.Failure(f"{count} instructions, {most} without chains")
        return f"{ram} bytes, {count} instructions"


def written(folder, name, text):
    """The path of a graph in a file."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--all", action="store_true", help="all models on all boards")
    parser.add_argument("--update", action="store_true", help="note the instructions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        t = Tests(options, work)
        graph = written(work, "layers.txt", layers())
        files = [("layers", graph, True)]
        for spec in models.all_models():
            if spec.name == "demo_digits" or spec.name in TINY:
                if spec.skip:
                    t.counts["skipped"] += 1
                    print(f"skipped {spec.name}: {spec.skip}")
                else:
                    files.append((spec.name, spec.write(work), False))
        for board in BOARDS:
            for name, file, exact in files:
                if name in TINY and board not in ("m4", "m55") and not options.all:
                    continue
                t.one(f"{name} on {board}", lambda b=board, n=name, f=file, e=exact: t.counted(b, n, f, e))
        means = written(work, "pools.txt", pools())
        for board in ("m0plus", "m3", "m4", "m55", "rv32"):
            t.one(f"pools on {board}", lambda b=board: t.counted(b, "pools", means, True))
        grid = written(work, "vectors.txt", layers(vectors()))
        t.one("vectors on m55", lambda: t.counted("m55", "vectors", grid, True))
        single = written(work, "product.txt", product())
        t.one("product of u8 on m55", lambda: t.counted("m55", "product", single, True))
        windows = [("u8", ins, 5, 7, ins, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), ins) for ins in (6, 18, 22)]
        halves = written(work, "nibbles.txt", layers(vectors() + windows, -8, 7))
        t.one("nibbles on m55", lambda: t.counted("m55", "nibbles", halves, True))
        chosen = written(work, "choices.txt", choices())
        for board in ("m4", "m55"):
            t.one(f"choices on {board}", lambda b=board: shown(verify(t.lathe, chosen, b, True)))
        several = written(work, "batches.txt", batches())
        for board in ("m0plus", "m4", "m55"):
            t.one(f"batches on {board}", lambda b=board: t.counted(b, "batches", several, True))
        rounded = written(work, "codes.txt", codes())
        for board in ("m0plus", "m4", "m55"):
            t.one(f"codes on {board}", lambda b=board: t.counted(b, "codes", rounded, True))
        fixed = written(work, "twice.txt", twice())
        for board in ("m0plus", "m4", "m55"):
            t.one(f"two roundings on {board}", lambda b=board: t.counted(b, "twice", fixed, True))
        each = written(work, "elements.txt", elements())
        for board in ("m0plus", "m4"):
            t.one(f"elements on {board}", lambda b=board: t.counted(b, "elements", each, True))
        both = written(work, "pairs.txt", pairs())
        t.one("pairs on m4", lambda: t.counted("m4", "pairs", both, True))
        lines = written(work, "words.txt", layers(words()))
        t.one("words on m4", lambda: t.counted("m4", "words", lines, True))
        for name, file, exact in files:
            t.one(f"{name} on m4, rows streamed", lambda n=name, f=file, e=exact: t.streamed(n, f, e))
        for name, file, _ in files:
            t.one(f"calls of {name}, cortex-m4", lambda f=file: check_calls(t.lathe, f, "cortex-m4", work, WIDE))
            t.one(f"calls of {name}, cortex-m0plus, rows streamed",
                  lambda f=file: check_calls(t.lathe, f, "cortex-m0plus", work, DIVIDES, "--minimize", "ram"))
        shapes = kernel_shapes.write(os.path.join(work, "shapes.onnx"))
        t.one("kernels of every shape on m0plus", lambda: t.shaped("m0plus", shapes))
        for board in BOARDS[:-1]:
            t.one(f"calls of kernels of every shape, cortex-{board}",
                  lambda b=board: check_calls(t.lathe, shapes, "cortex-" + b, work, DOUBLES))
            t.one(f"bound of kernels of every shape, cortex-{board}",
                  lambda b=board: str(most_instructions(t.lathe, shapes, "cortex-" + b, False)))
        for board in ("m3", "m4"):
            t.one(f"bound of functions on {board}", lambda b=board: check_far(t.lathe, b, work))
        for name, file in (("layers", graph), ("elements", each), ("pairs", both)):
            t.one(f"compilers of {name}, cortex-m4", lambda f=file: check_compilers(t.lathe, f, work))
        if options.update:
            write_noted(t.noted)
    print(f"microcontrollers: {t.counts['ok']} passed, {t.counts['FAILED']} failed, {t.counts['skipped']} skipped")
    return t.counts["FAILED"] != 0


if __name__ == "__main__":
    sys.exit(main())
