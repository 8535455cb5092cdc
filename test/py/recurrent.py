#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM with constant weights, in all their forms, against the formulas of ONNX in numpy (float64).

    recurrent.py [--lathe FILE] [--seed N] [--target TARGET ...]

One model has a node for each draw of kind, direction, layout, lengths, first states, peepholes, clip, activations, odd
sizes and numbers of samples; it runs for this machine's vectors, and for a target without vectors."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from package import save_inputs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
PRIMARY = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS = {"Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Relu": lambda x: np.maximum(x, 0),
             "Softsign": lambda x: x / (1 + np.abs(x)), "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1)}


def sequence(op, x, w, r, b, h, c, p, attrs, names):
    """One sample in one direction: x [T, I]; the outputs [T, H] and the last states."""
    hidden, (f, g, *rest) = r.shape[1], [FUNCTIONS[n] for n in names] + [None]
    wb, rb = b[:len(b) // 2], b[len(b) // 2:]
    clip = attrs.get("clip", 0.0)
    cut = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    out = []
    for row in x:
        if op == "RNN":
            h = f(cut(w @ row + r @ h + wb + rb))
        elif op == "GRU":
            z, s = (f(cut(w[i] @ row + r[i] @ h + wb[i] + rb[i]))
                    for i in (slice(0, hidden), slice(hidden, 2 * hidden)))
            n = slice(2 * hidden, None)
            linear = attrs.get("linear_before_reset", 0)
            inner = s * (r[n] @ h + rb[n]) if linear else r[n] @ (s * h) + rb[n]
            h = (1 - z) * g(cut(w[n] @ row + wb[n] + inner)) + z * h
        else:
            i, o, forget, fresh = np.split(w @ row + r @ h + wb + rb, 4)
            pi, po, pf = np.split(p, 3)
            i, forget = f(cut(i + pi * c)), f(cut(forget + pf * c))
            c = (1 - i if attrs.get("input_forget", 0) else forget) * c + i * g(cut(fresh))
            h = f(cut(o + po * c)) * rest[0](c)
        out.append(h)
    return np.array(out).reshape(len(x), hidden), h, c


def expected(node, attrs):
    """Y, Y_h, Y_c."""
    op, x, w, r, b, lengths, h, c, p = node
    if attrs.get("layout", 0):
        x, h, c = x.swapaxes(0, 1), h.swapaxes(0, 1), c.swapaxes(0, 1)
    steps, samples = x.shape[:2]
    dirs, hidden = r.shape[0], r.shape[2]
    y, last = np.zeros((steps, dirs, samples, hidden)), np.zeros((2, dirs, samples, hidden))
    names = attrs.get("activations") or PRIMARY[op] * dirs
    for d in range(dirs):
        back = attrs["direction"] == "reverse" or d == 1
        mine = names[d * len(PRIMARY[op]):(d + 1) * len(PRIMARY[op])]
        for s in range(samples):
            n = int(lengths[s])
            row = x[:n, s][::-1] if back else x[:n, s]
            out, last[0, d, s], last[1, d, s] = sequence(op, row, w[d], r[d], b[d], h[d, s], c[d, s], p[d], attrs, mine)
            y[:n, d, s] = out[::-1] if back else out
    if attrs.get("layout", 0):
        return y.transpose(2, 0, 1, 3), last[0].swapaxes(0, 1), last[1].swapaxes(0, 1)
    return y, last[0], last[1]


class Model:
    def __init__(self, rng):
        self.rng, self.nodes, self.weights, self.inputs, self.outputs = rng, [], [], [], []
        self.feed, self.want = {}, {}

    def given(self, array, constant):
        name = f"v{len(self.weights) + len(self.inputs)}"
        if constant:
            self.weights.append(numpy_helper.from_array(array, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
            self.feed[name] = array
        return name

    def attributes(self, op, dirs):
        rng = self.rng
        attrs = {"direction": ["forward", "reverse"][int(rng.integers(0, 2))]}
        if dirs == 2:
            attrs["direction"] = "bidirectional"
        if rng.integers(0, 3) == 0:
            attrs["clip"] = 0.5
        if rng.integers(0, 3) == 0:
            attrs["layout"] = 1
        if rng.integers(0, 3) == 0:
            attrs["activations"] = [str(rng.choice(list(FUNCTIONS))) for _ in range(dirs * len(PRIMARY[op]))]
        if op == "GRU":
            attrs["linear_before_reset"] = int(rng.integers(0, 2))
        if op == "LSTM" and rng.integers(0, 4) == 0:
            attrs["input_forget"] = 1
        return attrs

    def add(self, op, dt, samples, hidden):
        rng = self.rng
        dirs, steps, size = int(rng.integers(1, 3)), int(rng.integers(1, 6)), int(rng.integers(1, 20))
        gates = GATES[op] * hidden
        attrs = self.attributes(op, dirs)
        draw = lambda *shape: rng.normal(0, 0.5, shape).astype(dt)
        first = attrs.get("layout", 0)
        x, w, r = draw(*((samples, steps) if first else (steps, samples)), size), draw(dirs, gates, size), \
            draw(dirs, gates, hidden)
        state = (samples, dirs, hidden) if first else (dirs, samples, hidden)
        b, h, c, p = draw(dirs, 2 * gates), draw(*state), draw(*state), draw(dirs, 3 * hidden)
        lengths = rng.integers(0, steps + 1, samples).astype(np.int32)
        has = rng.integers(0, 2, 5).astype(dt)
        b, h, c, p = b * has[0], h * has[2], c * has[3], p * has[4]
        lengths = lengths if has[1] else np.full(samples, steps, np.int32)
        names = [self.given(x, False), self.given(w, True), self.given(r, True),
                 self.given(b, True) if has[0] else "", self.given(lengths, False) if has[1] else "",
                 self.given(h, False) if has[2] else ""]
        if op == "LSTM":
            names += [self.given(c, False) if has[3] else "", self.given(p, True) if has[4] else ""]
        else:
            c, p = np.zeros_like(c), np.zeros_like(p)
        outs = [f"y{len(self.outputs) + i}" for i in range(3 if op == "LSTM" else 2)]
        self.nodes.append(helper.make_node(op, names, outs, hidden_size=hidden, **attrs))
        node = (op, *(a.astype(np.float64) for a in (x, w, r, b)), lengths, *(a.astype(np.float64) for a in (h, c, p)))
        for name, value in zip(outs, expected(node, attrs)):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dt))
            self.outputs.append(helper.make_tensor_value_info(name, kind, None))
            self.want[name] = value

    def save(self, path):
        graph = helper.make_graph(self.nodes, "recurrent", self.inputs, self.outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)


def build(seed):
    m = Model(np.random.default_rng(seed))
    for op in ("RNN", "GRU", "GRU", "LSTM"):
        for samples, hidden in ((1, 16), (1, 33), (2, 8), (3, 24), (4, 7), (6, 32), (7, 5), (8, 20)):
            m.add(op, np.float32, samples, hidden)
        m.add(op, np.float64, 4, 11)
    return m


def run(args, m, folder, target):
    path = os.path.join(folder, "model.onnx")
    m.save(path)
    command = [args.lathe, "run", path, "--output-dir", folder] + (["--target", target] if target else [])
    command += save_inputs(folder, m.feed)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, CFLAGS="-O1"))
    if done.returncode != 0:
        return [f"{target or 'native'}: {done.stderr.strip()[:600]}"]
    wrong = []
    for node in m.nodes:
        for name in node.output:
            got, want = np.load(os.path.join(folder, name + ".npy")), m.want[name]
            close = 1e-10 if got.dtype == np.float64 else 2e-5
            largest = max(1.0, np.abs(want).max(initial=0)) # ReLU grows, and differences of large numbers with it
            if got.shape != want.shape or not np.allclose(got, want, rtol=close, atol=close * largest):
                attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
                error = np.abs(got - want).max() if got.shape == want.shape else f"shape {got.shape}"
                wrong.append(f"{target or 'native'}: {node.op_type} {want.shape} {name} {attrs}: {error}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", nargs="*", default=["", "generic"])
    args = parser.parse_args()
    m, wrong = build(args.seed), []
    for target in args.target:
        with tempfile.TemporaryDirectory() as folder:
            wrong += run(args, m, folder, target)
    print(*(f"FAILED {w}" for w in wrong), sep="\n", end="\n" if wrong else "")
    total = len(args.target) * len(m.outputs)
    print(f"recurrent: {total - len(wrong)} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
