#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 4 bits: near the exact result and onnxruntime's, and the weights stay two in a byte.

    nibbles.py [--lathe FILE] [--seed N] [--count N] [--target TARGET ...] [--host TARGET ...] [--board BOARD ...]
               [--cross]

Each model has random layers side by side: MatMulNBits with blocks of 16 to 256 and DequantizeLinear of int4 and uint4,
in blocks along K, with a scale for each column or one for all, in front of MatMul and Gemm; with and without zero
points, K that ends within a block, columns that end within a vector, one row and several. Results are held to sums in
float64 of the dequantised numbers, within what f32 sums of as many products may be off, and onnxruntime (f32
activations) to the same. With accuracy_level 4 the data of these sums is rounded to 8 bits, block by block, here, in
Lathe and in onnxruntime. The constants of a package take little more than half a byte for each weight, and scales.

Convolutions and products of quantised data by int4 and uint4 are integers on hosts (--host; --cross: on other
processors alone, under qemu's user mode) and on microcontrollers (--board, by default a Cortex-M4 and a Cortex-M55
where their tools are here): every element equals the rounded exact sum, and is within one of onnxruntime's, which
computes such layers in f32; constants take half a byte for each weight as well, of full blocks of channels.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from package import save_inputs
from wide import BOARDS, EMULATED, emulated_here, exact, rounded

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def rounded_blocks(x, block):
    """Each block along the last axis in steps of a 127th of its farthest number, which are found in f32."""
    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % block)]).reshape(x.shape[:-1] + (-1, block))
    most = np.maximum(np.abs(wide).max(-1, keepdims=True), np.float32(1e-30))
    codes = np.rint(wide * (np.float32(127) / most))
    return (codes.astype(np.float64) * most / 127).reshape(x.shape[:-1] + (-1,))[..., :x.shape[-1]]


class Model:
    def __init__(self, rng):
        self.rng, self.nodes, self.weights, self.inputs, self.outputs = rng, [], [], [], []
        self.feed, self.want, self.bytes = {}, {}, 0

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def nibbles(self, codes, signed):
        name = f"c{len(self.weights)}"
        kind = TensorProto.INT4 if signed else TensorProto.UINT4
        self.weights.append(helper.make_tensor(name, kind, codes.shape, codes.flatten().tolist()))
        return name

    def layer(self, operator, operands, shape, weights, bias=None, **attributes):
        """weights: [K, N] in float64."""
        x = (self.rng.standard_normal(shape) + self.rng.choice([0, 3])).astype(np.float32)
        x[..., :16] *= self.rng.choice([0, 1])
        i = len(self.inputs)
        self.inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape))
        self.feed[f"x{i}"] = x
        self.outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, list(shape[:-1]) +
                                                          [weights.shape[1]]))
        self.nodes.append(helper.make_node(operator, [f"x{i}"] + operands, [f"y{i}"], **attributes))
        if attributes.get("accuracy_level") == 4:
            x = rounded_blocks(x, attributes["block_size"])
        y = x.astype(np.float64) @ weights
        room = np.abs(x).astype(np.float64) @ np.abs(weights)
        self.want[f"y{i}"] = (y if bias is None else y + bias), room

    def shape(self, k):
        rows = int(self.rng.choice([1, 1, 2, 5, 9]))
        return [rows, k] if self.rng.integers(0, 2) else [2, rows, k]

    def nbits(self, level=1):
        rng = self.rng
        block, n = int(rng.choice([16, 32, 64, 128, 256])), int(rng.integers(1, 80))
        k = int(rng.integers(1, 300))
        blocks = (k + block - 1) // block
        codes = rng.integers(0, 16, [n, blocks * block])
        zeros = rng.integers(0, 16, [n, blocks + blocks % 2]) if rng.integers(0, 2) else np.full([n, blocks], 8)
        scales = rng.uniform(0.01, 0.1, [n, blocks]).astype(np.float32)
        pack = lambda a: (a[..., 0::2] | a[..., 1::2] << 4).astype(np.uint8)
        operands = [self.constant(pack(codes).reshape(n, blocks, block // 2)), self.constant(scales.flatten())]
        if zeros.shape[1] != blocks or (zeros != 8).any():
            operands.append(self.constant(pack(zeros).flatten()))
        w = (codes - np.repeat(zeros[:, :blocks], block, 1)) * np.repeat(scales.astype(np.float64), block, 1)
        self.count(n, blocks, block)
        self.layer("MatMulNBits", operands, self.shape(k), w[:, :k].T, domain="com.microsoft", K=k, N=n, bits=4,
                   block_size=block, accuracy_level=level)

    def nbits_by_bytes(self):
        self.nbits(4)

    def count(self, n, blocks, block):
        """Columns and numbers are filled up to a vector, and to a block; a scale and a zero point for each block, and
        what scales the data, four bytes for each number of a column."""
        wide = (n + 15) // 16 * 16 if n >= 4 else n
        self.bytes += wide * blocks * (block // 2 + 5) + 4 * blocks * block + 64

    def dequantised(self):
        """The operand, and what it stands for as [K, N]; transposed as Gemm may take it."""
        rng = self.rng
        k, n, signed, transposed = int(rng.integers(1, 300)), int(rng.integers(1, 80)), *rng.integers(0, 2, 2)
        low = -8 if signed else 0
        codes = rng.integers(low, low + 16, [k, n])
        block = int(rng.choice([0, 16, 32, 64]))
        blocks = (k + block - 1) // block if block else 1
        scales = rng.uniform(0.01, 0.1, [blocks, n] if block else [1, n]).astype(np.float32)
        zeros = rng.integers(low, low + 16, scales.shape) if rng.integers(0, 2) else np.zeros(scales.shape, np.int64)
        single = not block and rng.integers(0, 2)
        if single:
            scales, zeros = np.broadcast_to(scales[:1, :1], [1, n]), np.broadcast_to(zeros[:1, :1], [1, n])
        wide = lambda a: np.repeat(a, block, 0)[:k] if block else a
        w = (codes - wide(zeros)) * wide(scales.astype(np.float64))
        turn = lambda a: (a if block else a[0, 0] if single else a[0]) if not transposed or not block else a.T
        parts = [turn(scales), turn(zeros)]
        operands = [self.nibbles(codes.T if transposed else codes, signed),
                    self.constant(np.ascontiguousarray(parts[0]))]
        if zeros.any():
            operands.append(self.nibbles(np.asarray(parts[1]), signed))
        name = f"d{len(self.nodes)}"
        axis = {"axis": int(transposed if block else 1 - transposed)}
        if block:
            axis["block_size"] = block
        self.nodes.append(helper.make_node("DequantizeLinear", operands, [name], **axis))
        self.count(n, blocks, block or (k + 7) // 8 * 8)
        return name, w, int(transposed)

    def matmul(self):
        name, w, transposed = self.dequantised()
        if transposed:
            self.nodes.append(helper.make_node("Transpose", [name], [name + "t"], perm=[1, 0]))
            name += "t"
        self.layer("MatMul", [name], self.shape(w.shape[0]), w)

    def gemm(self):
        name, w, transposed = self.dequantised()
        bias = self.rng.standard_normal(w.shape[1]).astype(np.float32)
        self.bytes += 4 * len(bias)
        self.layer("Gemm", [name, self.constant(bias)], [int(self.rng.choice([1, 3])), w.shape[0]], w, bias,
                   transB=transposed)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "nibbles", self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def reference(path, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def far(m, name, got):
    """How far from the exact result, in parts of what f32 is good for."""
    want, room = m.want[name]
    if got.shape != want.shape:
        return np.inf
    return float(np.max(np.abs(got - want) / (room * 2e-6 + 1e-6)))


def lathe_says(args, command, cc=""):
    # -O1 alone leaves products and sums in two roundings, which gcc contracts from -O2 on
    env = {"CFLAGS": "-O1 -fexpensive-optimizations -ffp-contract=fast" if cc else "-O1"}
    if cc:
        env["CC"] = cc + " -static"
    done = subprocess.run([args.lathe] + command, capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, **env))
    if done.returncode != 0:
        sys.exit(f"nibbles.py: lathe {' '.join(command)}: {done.stderr.strip()[:500]}")


def check(args, target, seed, folder):
    m = Model(np.random.default_rng(seed))
    for layer in [Model.nbits] * 6 + [Model.nbits_by_bytes] * 6 + [Model.matmul] * 5 + [Model.gemm] * 5:
        layer(m)
    path, report = os.path.join(folder, "model.onnx"), os.path.join(folder, "report.json")
    m.save(path)
    chosen = ["--target", target] if target else []
    lathe_says(args, ["compile", path, "-q", "-o", os.path.join(folder, "out"), "--report", report] + chosen)
    wrong = []
    if json.load(open(report))["constant_bytes"] > m.bytes:
        wrong.append(f"{json.load(open(report))['constant_bytes']} bytes of constants, {m.bytes} are enough")
    chosen += save_inputs(folder, m.feed)
    lathe_says(args, ["run", path, "--output-dir", folder] + chosen)
    theirs, elements = reference(path, m.feed), 0
    for name in m.want:
        got = np.load(os.path.join(folder, name + ".npy"))
        elements += got.size
        for who, y in (("lathe", got), ("onnxruntime", theirs[name])):
            if far(m, name, y) > 1:
                wrong.append(f"{name}: {who} is {far(m, name, y):.1f} times as far from the exact result as f32 may be")
    return elements, [f"seed {seed}, {target or 'default'}: {line}" for line in wrong]


def check_refusal(args, folder):
    """Arithmetic has no numbers of 4 bits."""
    path = os.path.join(folder, "neg.onnx")
    w = helper.make_tensor("w", TensorProto.INT4, [3], [1, -2, 3])
    graph = helper.make_graph([helper.make_node("Neg", ["w"], ["y"])], "neg", [],
                              [helper.make_tensor_value_info("y", TensorProto.INT4, [3])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    done = subprocess.run([args.lathe, "inspect", path], capture_output=True, text=True, timeout=600)
    said = "input 0 is of type i4, which this operator does not take" in done.stderr
    return [] if done.returncode == 1 and said else [f"Neg of int4: {done.returncode}, {done.stderr[:200]}"]


def check_extents(args, folder):
    """Extents that no bytes stand for are wrong before memory is asked for."""
    path = os.path.join(folder, "extents.onnx")
    w = onnx.TensorProto(name="w", data_type=TensorProto.INT4, dims=[1 << 40, 1 << 10], raw_data=b"12")
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"])
    graph = helper.make_graph([node], "extents", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [w, helper.make_tensor("s", TensorProto.FLOAT, [], [1.0])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    done = subprocess.run([args.lathe, "inspect", path], capture_output=True, text=True, timeout=600)
    said = "tensor 'w'" in done.stderr and "raw_data has " in done.stderr
    return [] if done.returncode == 1 and said else [f"extents of int4: {done.returncode}, {done.stderr[:200]}"]


class Layers(Model):
    """QDQ layers by weights of 4 bits, side by side; results are codes."""
    data_types = (np.int8, np.uint8, np.int16, np.uint16)
    INS, OUTS, DEPTHS, LENGTHS, UNITS = [1, 2, 3, 4, 5, 8, 12], [2, 4, 6, 7, 16, 18], [4, 12, 25], [16, 30, 64, 100], \
        [4, 6, 9, 32]
    KINDS = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8, np.int16: TensorProto.INT16,
             np.uint16: TensorProto.UINT16}

    def quantised(self, operator, shape, w, axis, out_of, bytes_of, **attributes):
        """w: codes less their zero points; out_of: the exact sums from data and weights; bytes_of: of a channel."""
        rng, i, dt = self.rng, len(self.inputs), self.data_types[self.rng.integers(0, len(self.data_types))]
        low, high = np.iinfo(dt).min, np.iinfo(dt).max
        channels = w.shape[0] if axis == 0 else w.shape[1]
        single, signed = rng.integers(0, 2, 2)
        scales = rng.uniform(0.01, 0.03, 1 if single else channels).astype(np.float32)
        stored = w if signed else w + 8
        operands = [self.nibbles(stored, signed), self.constant(scales[0] if single else scales)]
        if not signed:
            operands.append(self.nibbles(np.full([] if single else [channels], 8), False))
        self.nodes.append(helper.make_node("DequantizeLinear", operands, [f"w{i}"], axis=axis))
        x = rng.integers(low, high + 1, shape).astype(dt)
        zeros, sx = [int(rng.integers(low, high + 1)) for _ in range(2)], np.float32(rng.uniform(0.01, 0.02))
        total = out_of(x.astype(np.int64) - zeros[0], w)
        sy = np.float32(np.abs(total).max() * float(sx) * float(scales.max()) / 100 + 1e-4)
        bias = rng.integers(-500, 500, channels).astype(np.int32)
        self.nodes += [
            helper.make_node("DequantizeLinear", [f"x{i}", self.constant(sx), self.constant(dt(zeros[0]))], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [self.constant(bias), self.constant((sx * scales)[0] if single else
                                                                                     sx * scales)], [f"b{i}"], axis=0),
            helper.make_node(operator, [f"d{i}", f"w{i}", f"b{i}"], [f"s{i}"], **attributes),
            helper.make_node("QuantizeLinear", [f"s{i}", self.constant(sy), self.constant(dt(zeros[1]))], [f"y{i}"])]
        wide = (-1,) + (1,) * (total.ndim - 2)
        total += bias.reshape(wide)
        if dt in (np.int8, np.uint8): # as onnxruntime's integer kernels round
            y = np.rint(total.astype(np.float32) * (sx * scales / sy).astype(np.float32).reshape(wide))
        else:
            planes = np.moveaxis(total, 1, 0)
            y = np.stack([rounded(plane, exact(sx) * exact(scales[k % len(scales)]) / exact(sy))
                          for k, plane in enumerate(planes)], 1).astype(np.int64)
        self.want[f"y{i}"] = np.clip(y + zeros[1], low, high).astype(dt)
        self.feed[f"x{i}"] = x
        self.inputs.append(helper.make_tensor_value_info(f"x{i}", self.KINDS[dt], shape))
        self.outputs.append(helper.make_tensor_value_info(f"y{i}", self.KINDS[dt], list(total.shape)))
        self.bytes += channels * (bytes_of(w) + 8) + 64

    def halves(self, rows, row, channels):
        """Bytes of a channel whose rows are filled up to steps of four."""
        return lambda w: rows * (-row % 4 + row) // (2 if channels % 2 == 0 and w.size >= 64 else 1)

    def conv(self):
        rng = self.rng
        kernel = [(1, 1), (3, 3), (2, 3), (1, 1)][rng.integers(0, 4)]
        i, o = int(rng.choice(self.INS)), int(rng.choice(self.OUTS))
        size = [int(n) for n in rng.integers(3, 12, 2)] if rng.integers(0, 5) else list(kernel)
        stride, pads = int(rng.integers(1, 3)), [int(n) for n in rng.integers(0, 2, 4)] if kernel[0] > 1 else [0] * 4
        w = rng.integers(-8, 8, [o, i, *kernel])

        def sums(x, w):
            x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
            views = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, ::stride, ::stride]
            return np.einsum("nchwyx,ocyx->nohw", views, w)
        wide = -i % 4 + i if i > 2 else i
        self.quantised("Conv", [1, i, *size], w, 0, sums, self.halves(kernel[0], kernel[1] * wide, o),
                       kernel_shape=kernel, strides=[stride, stride], pads=pads)

    def gemm(self):
        rng, transposed = self.rng, int(self.rng.integers(0, 2))
        k, n = int(rng.choice(self.LENGTHS)), int(rng.choice(self.UNITS))
        w = rng.integers(-8, 8, [n, k] if transposed else [k, n])
        self.quantised("Gemm", [int(rng.choice([1, 1, 3, 5])), k], w, 0 if transposed else 1,
                       lambda x, w: x @ (w.T if transposed else w), self.halves(1, k, n), transB=transposed)

    def depthwise(self):
        rng = self.rng
        kernel = [(3, 3), (3, 3), (2, 5), (3, 2)][rng.integers(0, 4)]
        c, stride, pads = int(rng.choice(self.DEPTHS)), int(rng.integers(1, 3)), [int(n) for n in rng.integers(0, 2, 4)]
        w = rng.integers(-8, 8, [c, 1, *kernel])

        def sums(x, w):
            x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
            views = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, ::stride, ::stride]
            return np.einsum("nchwyx,cyx->nchw", views, w[:, 0])
        self.quantised("Conv", [1, c, *(int(n) for n in rng.integers(5, 14, 2))], w, 0, sums,
                       self.rows(*kernel), kernel_shape=kernel, strides=[stride, stride], pads=pads, group=c)

    def rows(self, rows, row):
        """Bytes of a channel of a depthwise convolution."""
        return lambda w: rows * (({3: 2, 5: 4}.get(row) if w.size >= 64 else None) or row)


class Wide(Layers):
    """Those of hosts, whose weights are packed for vectors: whole blocks of channels, and what leaves some open."""
    INS, OUTS, DEPTHS, LENGTHS, UNITS = [1, 3, 16, 16, 24, 32, 48], [7, 16, 24, 32, 32, 64], [16, 32, 40], \
        [30, 64, 128, 200], [9, 16, 32, 40, 64]

    def halves(self, rows, row, channels):
        """A byte for two weights; channels fill blocks of 16, and rows steps of as many."""
        return lambda w: (rows * (-row % 16 + row) // 2 + 8) * (-channels % 16 + channels) / channels

    def rows(self, rows, row):
        return lambda w: (rows * row / 2 + 8) * (-len(w) % 16 + len(w)) / len(w)


class Lanes(Layers):
    """Those of a Cortex-M55, whose pairs are channels: windows of any width, odd numbers of channels are bytes."""
    DEPTHS = [4, 6, 12, 16, 18, 25]

    def rows(self, rows, row):
        return lambda w: rows * (row if len(w) % 2 or w.size < 64 else {3: 2, 5: 4}.get(row, row))


def check_integers(args, board, seed, folder):
    host = board not in BOARDS
    m = (Wide if host else Lanes if board == "qemu-m55" else Layers)(np.random.default_rng(seed))
    for layer in [Layers.conv] * 8 + [Layers.gemm] * 4 + [Layers.depthwise] * 4:
        layer(m)
    path, report = os.path.join(folder, "model.onnx"), os.path.join(folder, "report.json")
    m.save(path)
    lathe_says(args, ["compile", path, "-q", "-o", os.path.join(folder, "out"), "--report", report, "--target",
                      BOARDS.get(board, board), "--integers"])
    said = json.load(open(report))
    wrong = [f"{r['operator']} of {r['value']} stays in float: {r['remark']}"
             for r in said.get("remarks", []) if r["pass"] == "use-integers" or (host and "become bytes" in r["remark"]
                                                                                 and "less than 64" not in r["remark"])]
    if said["constant_bytes"] > m.bytes:
        wrong.append(f"{said['constant_bytes']} bytes of constants, {m.bytes} are enough")
    chosen = ["--target", board, "--integers"]
    chosen += save_inputs(folder, m.feed)
    cc, emulator = EMULATED.get(board, ("", ""))
    lathe_says(args, ["run", path, "--output-dir", folder] + chosen + ["--emulator", emulator] * bool(cc), cc)
    theirs, elements = reference(path, m.feed), 0
    for name, want in m.want.items():
        got = np.load(os.path.join(folder, name + ".npy"))
        elements += want.size
        if got.shape != want.shape or not np.array_equal(got, want):
            wrong.append(f"{name}: {np.count_nonzero(got != want)} of {want.size} are not the rounded exact sums")
        elif np.abs(got.astype(np.int64) - theirs[name].astype(np.int64)).max() > 1:
            wrong.append(f"{name}: more than one from onnxruntime")
    return elements, [f"seed {seed}, {board}: {line}" for line in wrong]


def boards_here():
    return ["qemu-m4", "qemu-m55"] * all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--target", nargs="*", default=["", "generic"])
    parser.add_argument("--host", nargs="*", default=["x86-64-v3", "native"], help="targets that run here")
    parser.add_argument("--cross", action="store_true", help="for other processors alone, whose programs qemu runs")
    parser.add_argument("--board", nargs="*", choices=sorted(BOARDS), default=boards_here())
    args = parser.parse_args()
    total, failed = 0, 0
    runs = [(check, target) for target in args.target] + [(check_integers, board) for board in args.host + args.board]
    runs = [(check_integers, target) for target in emulated_here()] if args.cross else runs
    for one, target in runs:
        for seed in range(args.seed, args.seed + args.count):
            with tempfile.TemporaryDirectory() as folder:
                elements, wrong = one(args, target, seed, folder)
            total += elements
            failed += bool(wrong)
            for line in wrong:
                print(line)
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_refusal(args, folder) + check_extents(args, folder)
    failed += bool(wrong)
    print("\n".join(wrong), end="\n" if wrong else "")
    n = args.count * len(runs) + 1
    print(f"nibbles: {n - failed} passed, {failed} failed, 0 skipped; {total} elements")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
