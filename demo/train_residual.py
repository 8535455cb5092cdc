#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small residual network and writes demo/residual.onnx and demo/residual.txt: what quantisation and the VTA
accelerator are tried on.

Data, split and optimiser are those of demo/train.py. Channels are 12, 20 and 36, none of which fills a block of 16; one
sum of two branches, a max pool, an average over what is left of the picture. Plain NumPy, fixed seeds:

    build/venv/bin/python demo/train_residual.py
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import train

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = {"conv1": (12, 1, 3, 3), "conv2": (20, 12, 3, 3), "conv3": (20, 20, 3, 3), "conv4": (36, 20, 3, 3),
          "head": (10, 36)}
EPOCHS = 40
BATCH = 32


def initial(rng):
    p = {}
    for name, shape in SHAPES.items():
        p[name + ".weight"] = (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        p[name + ".bias"] = np.zeros(shape[0], np.float32)
    return p


def conv(x, weight, bias):
    n, _, h, w = x.shape
    cols = train.columns(x)
    return (cols @ weight.reshape(len(weight), -1).T + bias).transpose(0, 2, 1).reshape(n, -1, h, w), cols


def conv_back(d, x, cols, weight):
    d = d.reshape(d.shape[0], d.shape[1], -1).transpose(0, 2, 1)
    d_weight = np.einsum("npo,npk->ok", d, cols, optimize=True).reshape(weight.shape)
    return train.columns_back(d @ weight.reshape(len(weight), -1), x.shape), d_weight, d.sum(axis=(0, 1))


def forward(p, x):
    """Logits, and all that `step` needs on the way back."""
    s = {"x": x}
    for name, source in (("conv1", "x"), ("conv2", "r1"), ("conv3", "r2")):
        y, s[name] = conv(s[source], p[name + ".weight"], p[name + ".bias"])
        s["r" + name[-1]] = np.maximum(y + s["r2"] if name == "conv3" else y, 0)
    blocks = s["r3"].reshape(len(x), 20, 4, 2, 4, 2)
    s["pool"] = blocks.max(axis=(3, 5))
    y, s["conv4"] = conv(s["pool"], p["conv4.weight"], p["conv4.bias"])
    s["r4"] = np.maximum(y, 0)
    s["mean"] = s["r4"].mean(axis=(2, 3))
    return s["mean"] @ p["head.weight"].T + p["head.bias"], s


def step(p, x, labels):
    logits, s = forward(p, x)
    soft = np.exp(logits - logits.max(axis=1, keepdims=True))
    d = (soft / soft.sum(axis=1, keepdims=True) - np.eye(10, dtype=np.float32)[labels]) / len(x)
    g = {"head.weight": d.T @ s["mean"], "head.bias": d.sum(axis=0)}
    d = np.broadcast_to((d @ p["head.weight"])[:, :, None, None] / 16, s["r4"].shape) * (s["r4"] > 0)
    d, g["conv4.weight"], g["conv4.bias"] = conv_back(d, s["pool"], s["conv4"], p["conv4.weight"])
    up = lambda a: a.repeat(2, axis=2).repeat(2, axis=3)
    d = up(d) * (s["r3"] == up(s["pool"])) * (s["r3"] > 0)
    branch, g["conv3.weight"], g["conv3.bias"] = conv_back(d, s["r2"], s["conv3"], p["conv3.weight"])
    d = (d + branch) * (s["r2"] > 0)
    d, g["conv2.weight"], g["conv2.bias"] = conv_back(d, s["r1"], s["conv2"], p["conv2.weight"])
    _, g["conv1.weight"], g["conv1.bias"] = conv_back(d * (s["r1"] > 0), s["x"], s["conv1"], p["conv1.weight"])
    return g


def fit(pictures, labels):
    rng = np.random.default_rng(0)
    p = initial(rng)
    m, v = ({k: np.zeros_like(a) for k, a in p.items()} for _ in range(2))
    t, steps = 0, EPOCHS * (len(pictures) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(pictures))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            index = order[start : start + BATCH]
            gradients = step(p, train.shifted(pictures[index], rng) / 16, labels[index])
            t += 1
            rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * t / steps))  # Adam, cosine decay
            for k, g in gradients.items():
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g * g
                scale = rate / (1 - 0.9**t)
                p[k] = (p[k] - scale * m[k] / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)).astype(np.float32)
    return p


def to_onnx(p):
    node = helper.make_node
    p = dict(p, **{"conv1.weight": p["conv1.weight"] / np.float32(16)})  # pictures have values from 0 to 16
    layer = lambda x, name, y: node("Conv", [x, name + ".weight", name + ".bias"], [y], name=name, kernel_shape=[3, 3],
                                    pads=[1, 1, 1, 1])
    nodes = [
        layer("image", "conv1", "c1"), node("Relu", ["c1"], ["r1"], name="relu1"),
        layer("r1", "conv2", "c2"), node("Relu", ["c2"], ["r2"], name="relu2"),
        layer("r2", "conv3", "c3"), node("Add", ["c3", "r2"], ["sum"], name="add"),
        node("Relu", ["sum"], ["r3"], name="relu3"),
        node("MaxPool", ["r3"], ["pooled"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        layer("pooled", "conv4", "c4"), node("Relu", ["c4"], ["r4"], name="relu4"),
        node("GlobalAveragePool", ["r4"], ["mean"], name="mean"),
        node("Flatten", ["mean"], ["flat"], name="flatten", axis=1),
        node("Gemm", ["flat", "head.weight", "head.bias"], ["logits"], name="head", transB=1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "residual", [value("image", TensorProto.FLOAT, [1, 1, 8, 8])],
                              [value("logits", TensorProto.FLOAT, [1, 10])],
                              [numpy_helper.from_array(np.ascontiguousarray(a), k) for k, a in p.items()])
    model = helper.make_model(graph, producer_name="demo/train_residual.py",
                              opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    pictures, test_pictures, labels, test_labels = train.split()
    p = fit(pictures, labels)
    correct = int((forward(p, test_pictures / 16)[0].argmax(axis=1) == test_labels).sum())
    onnx.save(to_onnx(p), os.path.join(HERE, "residual.onnx"))
    with open(os.path.join(HERE, "residual.txt"), "w") as f:
        f.write(f"{correct} of {len(test_labels)}\n")
    print(f"held-out accuracy: {correct} of {len(test_labels)} = {correct / len(test_labels):.2%}")
    print(f"training accuracy: {(forward(p, pictures / 16)[0].argmax(axis=1) == labels).mean():.2%}")


if __name__ == "__main__":
    main()
