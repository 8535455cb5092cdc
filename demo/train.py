#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the demo's network and writes demo/digits.onnx, demo/accuracy.txt and demo/inputs/digits.bin.

Data: scikit-learn's handwritten digits (1797 pictures of 8x8 pixels, values 0..16; UCI "Optical Recognition of
Handwritten Digits"). 80 % train the network; the other 20 % (`held_out`) are used once, for the stated accuracy.
Plain NumPy, fixed seeds. It needs the environment that `make test` makes:

    build/venv/bin/python demo/train.py
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = (16, 32)
HIDDEN = 64
EPOCHS = 60
BATCH = 32
BUNDLED = 20


def split():
    """(train pictures, held-out pictures, train labels, held-out labels); pictures are float32 [n, 1, 8, 8], 0..16."""
    digits = load_digits()
    pictures = digits.images.astype(np.float32)[:, None]
    return train_test_split(pictures, digits.target, test_size=0.2, random_state=0, stratify=digits.target)


def held_out():
    """The pictures and labels that training never sees."""
    _, pictures, _, labels = split()
    return pictures, labels


def columns(x):
    """[n, c, h, w] -> [n, h*w, c*9]: the 3x3 neighborhoods, zero outside."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.stack([padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)], axis=2)
    return patches.reshape(n, c * 9, h * w).transpose(0, 2, 1)


def columns_back(d, shape):
    """The transpose of `columns`: adds each neighborhood's gradient back to its pixels."""
    n, c, h, w = shape
    d = d.transpose(0, 2, 1).reshape(n, c, 9, h, w)
    padded = np.zeros((n, c, h + 2, w + 2), np.float32)
    for k in range(9):
        padded[:, :, k // 3 : k // 3 + h, k % 3 : k % 3 + w] += d[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


def conv(x, weight, bias):
    """3x3 convolution with padding 1, ReLU, 2x2 max pooling; returns what `conv_back` needs as well."""
    n, _, h, w = x.shape
    cols = columns(x)
    y = (cols @ weight.reshape(len(weight), -1).T + bias).transpose(0, 2, 1).reshape(n, -1, h, w)
    y = np.maximum(y, 0)
    blocks = y.reshape(n, -1, h // 2, 2, w // 2, 2)
    pooled = blocks.max(axis=(3, 5))
    return pooled, (x.shape, cols, y, pooled)


def conv_back(d, weight, saved):
    shape, cols, y, pooled = saved
    up = lambda a: a.repeat(2, axis=2).repeat(2, axis=3)
    d = up(d) * (y == up(pooled)) * (y > 0)
    d = d.reshape(d.shape[0], d.shape[1], -1).transpose(0, 2, 1)
    d_weight = np.einsum("npo,npk->ok", d, cols).reshape(weight.shape)
    return columns_back(d @ weight.reshape(len(weight), -1), shape), d_weight, d.sum(axis=(0, 1))


def initial(rng):
    he = lambda *shape: (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
    zeros = lambda n: np.zeros(n, np.float32)
    c1, c2 = CHANNELS
    return [he(c1, 1, 3, 3), zeros(c1), he(c2, c1, 3, 3), zeros(c2), he(HIDDEN, c2 * 4), zeros(HIDDEN),
            he(10, HIDDEN), zeros(10)]


def step(p, x, labels, keep):
    """Loss gradient of one batch; `keep` is the dropout mask of the hidden layer."""
    y1, s1 = conv(x / 16, p[0], p[1])
    y2, s2 = conv(y1, p[2], p[3])
    flat = y2.reshape(len(x), -1)
    hidden = np.maximum(flat @ p[4].T + p[5], 0) * keep
    logits = hidden @ p[6].T + p[7]
    soft = np.exp(logits - logits.max(axis=1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    d = (soft - np.eye(10, dtype=np.float32)[labels]) / len(x)
    d_hidden = (d @ p[6]) * keep * (hidden > 0)
    d2, g2, b2 = conv_back((d_hidden @ p[4]).reshape(y2.shape), p[2], s2)
    _, g1, b1 = conv_back(d2, p[0], s1)
    return [g1, b1, g2, b2, d_hidden.T @ flat, d_hidden.sum(axis=0), d.T @ hidden, d.sum(axis=0)]


def shifted(x, rng):
    """Each picture moved by -1, 0 or 1 pixels either way."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(x), 2))
    return np.stack([padded[i, :, a : a + 8, b : b + 8] for i, (a, b) in enumerate(moves)])


def train(pictures, labels):
    rng = np.random.default_rng(0)
    p = initial(rng)
    m, v = [np.zeros_like(a) for a in p], [np.zeros_like(a) for a in p]
    t, steps = 0, EPOCHS * (len(pictures) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(pictures))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            index = order[start : start + BATCH]
            keep = (rng.random((BATCH, HIDDEN)) < 0.75).astype(np.float32) / np.float32(0.75)
            gradients = step(p, shifted(pictures[index], rng), labels[index], keep)
            t += 1
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * t / steps))  # Adam, cosine decay
            for i, g in enumerate(gradients):
                m[i] = 0.9 * m[i] + 0.1 * g
                v[i] = 0.999 * v[i] + 0.001 * g * g
                scale = rate / (1 - 0.9**t)
                p[i] = (p[i] - scale * m[i] / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-8)).astype(np.float32)
    return p


def predict(p, x):
    y, _ = conv(x / 16, p[0], p[1])
    y, _ = conv(y, p[2], p[3])
    return (np.maximum(y.reshape(len(x), -1) @ p[4].T + p[5], 0) @ p[6].T + p[7]).argmax(axis=1)


def to_onnx(p):
    names = [f"{layer}.{part}" for layer in ("conv1", "conv2", "fc1", "fc2") for part in ("weight", "bias")]
    constants = [numpy_helper.from_array(np.float32(1 / 16).reshape(1), "scale")]
    constants += [numpy_helper.from_array(np.ascontiguousarray(a), n) for a, n in zip(p, names)]
    node = helper.make_node
    pool = dict(kernel_shape=[2, 2], strides=[2, 2])
    nodes = [
        node("Mul", ["image", "scale"], ["scaled"], name="scale"),
        node("Conv", ["scaled", *names[0:2]], ["c1"], name="conv1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"], name="relu1"),
        node("MaxPool", ["r1"], ["p1"], name="pool1", **pool),
        node("Conv", ["p1", *names[2:4]], ["c2"], name="conv2", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], ["r2"], name="relu2"),
        node("MaxPool", ["r2"], ["p2"], name="pool2", **pool),
        node("Flatten", ["p2"], ["flat"], name="flatten", axis=1),
        node("Gemm", ["flat", *names[4:6]], ["h"], name="fc1", transB=1),
        node("Relu", ["h"], ["r3"], name="relu3"),
        node("Gemm", ["r3", *names[6:8]], ["logits"], name="fc2", transB=1),
        node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "digits", [value("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [value("probabilities", TensorProto.FLOAT, [1, 10])], constants)
    model = helper.make_model(graph, producer_name="demo/train.py", opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def records(pictures, labels):
    """What demo/main.c reads: per picture one byte of label, 64 bytes of pixels."""
    pixels = pictures.reshape(len(pictures), 64).astype(np.uint8)
    return np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1).tobytes()


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    pictures, test_pictures, labels, test_labels = split()
    p = train(pictures, labels)
    correct = int((predict(p, test_pictures) == test_labels).sum())
    onnx.save(to_onnx(p), os.path.join(HERE, "digits.onnx"))
    os.makedirs(os.path.join(HERE, "inputs"), exist_ok=True)
    with open(os.path.join(HERE, "inputs", "digits.bin"), "wb") as f:
        f.write(records(test_pictures[:BUNDLED], test_labels[:BUNDLED]))
    with open(os.path.join(HERE, "accuracy.txt"), "w") as f:
        f.write(f"{correct} of {len(test_labels)}\n")
    print(f"held-out accuracy: {correct} of {len(test_labels)} = {correct / len(test_labels):.2%}")
    print(f"training accuracy: {(predict(p, pictures) == labels).mean():.2%}")


if __name__ == "__main__":
    main()
