#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What operators do with special values and rare attributes: NaN under the rule of docs/reference/operators.md, results
that nobody reads, output shapes of transposed convolutions and MaxUnpool, regions outside of a picture, masks that
allow nothing, long sorts.

    operators.py [--lathe FILE] [--filter GLOB] [--targets T,T...] [--seed N] [-v]

A group is one model of many nodes, so that a target takes one compile of C. What must come out is written here in
numpy, and is what onnxruntime and ONNX's reference implementation give where these two agree. Each group runs in the
interpreter and as a package for each target: every output is equal, but for rounding where NEAR says so. Emulated
targets that are not installed are left out, and told."""
import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ["interpret", "generic", "x86-64-v3", "x86-64-v4", "qemu-aarch64", "qemu-m55"]
TOOLS = {"qemu-aarch64": ["qemu-aarch64", "aarch64-linux-gnu-gcc"],
         "qemu-m55": ["qemu-system-arm", "arm-none-eabi-gcc"]}
NAN = np.nan
# onnxruntime's result depends on where in the window NaN stands, and the reference ignores it
# (docs/reference/operators.md).
NO_RULE = {"MaxPool"}
# ONNX's reference does not know these: onnxruntime's results are the wanted ones.
ALONE = {"MaxRoiPool"}


class Group:
    """A model, what goes in, and what must come out. near: relative and absolute difference that is allowed."""

    def __init__(self, opset=22):
        self.opset, self.nodes, self.inputs, self.outputs, self.feed, self.want = opset, [], [], [], {}, {}
        self.constants, self.near = [], {}

    def input(self, array):
        name = f"x{len(self.feed)}"
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.feed[name] = array
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, operands, want, near=None, **attributes):
        """operands: arrays are inputs, (array,) is a constant, None is left out. want: results, None where one is not
        read; a function gets the references' results where they agree, else None."""
        names = ["" if a is None else self.constant(a[0]) if isinstance(a, tuple) else self.input(a) for a in operands]
        results = [f"y{len(self.nodes)}_{k}" for k in range(len(want))]
        node = helper.make_node(operator, names, results, name=f"{operator}_{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        for name, value in zip(results, want):
            if value is None:
                continue
            value = np.asarray(value)
            self.want[name], self.near[name] = value, near
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            self.outputs.append(helper.make_tensor_value_info(name, kind, value.shape))
        return node

    def model(self, nodes=None):
        nodes = self.nodes if nodes is None else nodes
        used = {n for node in nodes for n in node.input}
        made = {n for node in nodes for n in node.output}
        graph = helper.make_graph(nodes, "g", [i for i in self.inputs if i.name in used],
                                  [o for o in self.outputs if o.name in made],
                                  [c for c in self.constants if c.name in used])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def differs(got, want, near=None):
    """None, or how they differ. Zeros of either sign are equal, and so are NaN."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    a, b = (x.astype(np.float64) if x.dtype.kind not in "iub" else x for x in (got, want))
    same = (a == b) | ((a != a) & (b != b))
    if near:
        same |= np.abs(a - b) <= near[0] * np.abs(b) + near[1]
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{int((~same).sum())} of {same.size} differ, the first at {list(at)}: {got[at]} instead of {want[at]}"


# --- the rule for NaN, in numpy


def spread(rng, shape, dtype, share=0.15):
    """Small numbers with many ties, both zeros, both infinities, and NaN."""
    x = rng.integers(-3, 4, shape).astype(np.float64)
    x = np.where(rng.random(shape) < 0.1, -0.0, x)
    x = np.where(rng.random(shape) < 0.04, np.where(rng.random(shape) < 0.5, np.inf, -np.inf), x)
    x = np.where(rng.random(shape) < share * (rng.random(shape[:1] + (1,) * (len(shape) - 1)) < 0.7), NAN, x)
    return x.astype(dtype)


def wide(x):
    return x.astype(np.float64)


def ranks(x, largest):
    """Along the last axis the places of elements in order, NaN above all numbers, equal ones by place."""
    key = np.where(wide(x) != wide(x), np.inf, wide(x))
    nan = (wide(x) != wide(x)).astype(int)
    if largest:
        key, nan = -key, -nan
    place = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    return np.lexsort((place, key, nan), axis=-1)


def first_extreme(x, largest, last=False):
    """Along the last axis the place of the extreme; NaN is one, whichever is looked for."""
    w = wide(x)
    best = np.where((w != w).any(-1, keepdims=True), NAN, (w.max if largest else w.min)(-1, keepdims=True))
    here = (w == best) | ((w != w) & (best != best))
    return x.shape[-1] - 1 - here[..., ::-1].argmax(-1) if last else here.argmax(-1)


def extreme(x, largest, axis=-1):
    return (np.max if largest else np.min)(wide(x), axis=axis).astype(x.dtype)


def windows(x, kernel, stride, fill=-np.inf, pads=(0, 0)):
    x = np.pad(wide(x), [(0, 0)] * 2 + [(p, p) for p in pads], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, ::stride, ::stride]
    return view.reshape(*view.shape[:4], -1)


def pool_places(x, kernel, stride, storage_order=0):
    """Which element of the tensor each window takes: of equal ones the first in memory, in either order of counting."""
    n, c, h, w = x.shape
    at = first_extreme(windows(x, kernel, stride), True)
    row = np.arange(at.shape[2])[:, None] * stride + at // kernel[1]
    column = np.arange(at.shape[3]) * stride + at % kernel[1]
    inside = column * h + row if storage_order else row * w + column
    return (np.arange(n)[:, None, None, None] * c + np.arange(c)[:, None, None]) * h * w + inside


def unique(x, is_sorted):
    """The results of Unique for a list: NaN is one value, above all numbers."""
    key = ["nan" if v != v else float(v) + 0.0 for v in wide(x)]
    firsts = {}
    for i, k in enumerate(key):
        firsts.setdefault(k, i)
    order = sorted(firsts, key=lambda k: (k == "nan", 0 if k == "nan" else k)) if is_sorted else list(firsts)
    places = np.array([firsts[k] for k in order], np.int64)
    inverse = np.array([order.index(k) for k in key], np.int64)
    return x[places], places, inverse, np.array([key.count(k) for k in order], np.int64)


def scattered(x, at, updates, largest):
    y = wide(x).copy()
    for row in range(x.shape[0]):
        for i, u in zip(at[row], wide(updates)[row]):
            y[row, i] = (np.maximum if largest else np.minimum)(y[row, i], u)
    return y.astype(x.dtype)


def extremes_with_nan(g, rng, dtype):
    """Whatever gives an extreme: Max, Min, Clip, Relu, reductions, pools, and scatters of extremes."""
    a, b, c = (spread(rng, (7, 37), dtype) for _ in range(3))
    g.node("Max", [a, b], [np.maximum(wide(a), wide(b)).astype(dtype)])
    g.node("Min", [a, b], [np.minimum(wide(a), wide(b)).astype(dtype)])
    g.node("Max", [a, b, c], [np.maximum(np.maximum(wide(a), wide(b)), wide(c)).astype(dtype)])
    for low, high in ((-1, 2), (NAN, 2), (-1, NAN), (-1, None), (None, 2), (2, -1)):
        bounds = [None if v is None else np.array(v, dtype) for v in (low, high)]
        y = wide(a)
        y = y if low is None else np.maximum(y, low)
        y = y if high is None else np.minimum(y, high)
        g.node("Clip", [a, *bounds], [y.astype(dtype)])
        g.node("Clip", [a, *(None if v is None else (v,) for v in bounds)], [y.astype(dtype)])
    g.node("Relu", [a], [np.maximum(wide(a), 0).astype(dtype)])
    x = spread(rng, (3, 9, 40), dtype)
    for largest, name in ((True, "ReduceMax"), (False, "ReduceMin")):
        for axes in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
            y = (np.max if largest else np.min)(wide(x), axis=axes).astype(dtype)
            g.node(name, [x, (np.array(axes),)], [y], keepdims=0)
        at = rng.integers(0, 37, a.shape)
        g.node("ScatterElements", [a, at, b], [scattered(a, at, b, largest)], axis=1,
               reduction="max" if largest else "min")
    image = spread(rng, (1, 3, 9, 37), dtype, 0.05)
    for kernel, stride, pads in (((1, 3), 1, (0, 1)), ((2, 2), 2, (0, 0)), ((3, 3), 2, (1, 1)), ((9, 37), 1, (0, 0))):
        y = windows(image, kernel, stride, pads=pads).max(-1).astype(dtype)
        g.node("MaxPool", [image], [y], kernel_shape=kernel, strides=[stride] * 2, pads=[*pads, *pads])
    g.node("GlobalMaxPool", [image], [wide(image).max((2, 3), keepdims=True).astype(dtype)])


def places_with_nan(g, rng, dtype):
    """Whatever says where an extreme is, and whatever sorts."""
    short, long = spread(rng, (9, 37), dtype), spread(rng, (4, 2100), dtype, 0.002)
    for x in (short, long):
        for largest, name in ((True, "ArgMax"), (False, "ArgMin")):
            for last in (0, 1):
                g.node(name, [x], [first_extreme(x, largest, last)], axis=1, keepdims=0, select_last_index=last)
    for largest, name in ((True, "ArgMax"), (False, "ArgMin")):
        g.node(name, [short], [first_extreme(short.T, largest)], axis=0, keepdims=0)
    g.node("Hardmax", [short], [np.eye(37)[first_extreme(short, True)].astype(dtype)], axis=1)
    image = spread(rng, (2, 3, 9, 19), dtype, 0.05)
    for kernel, stride in (((1, 3), 1), ((2, 2), 2), ((3, 3), 2)):
        y = windows(image, kernel, stride).max(-1).astype(dtype)
        for order in (0, 1):
            g.node("MaxPool", [image], [y, pool_places(image, kernel, stride, order)], kernel_shape=kernel,
                   strides=[stride] * 2, storage_order=order)
    for largest in (1, 0):
        for k in (1, 3, 20, 37):
            order = ranks(short, largest)[:, :k]
            g.node("TopK", [short, (np.array([k]),)], [np.take_along_axis(short, order, 1), order], largest=largest)
        order = ranks(short.T, largest)[:, :5]
        g.node("TopK", [short, (np.array([5]),)], [np.take_along_axis(short.T, order, 1).T, order.T], axis=0,
               largest=largest)
    for is_sorted in (1, 0):
        g.node("Unique", [short.reshape(-1)], unique(short.reshape(-1), is_sorted), sorted=is_sorted)


def integers_in_order(g, rng, dtype):
    """TopK of integers, the ends of their range among them."""
    ends = np.iinfo(dtype)
    x = rng.choice(np.array([ends.min, ends.min + 1, ends.max - 1, ends.max, 0, 1, 5, 7], dtype), (5, 29))
    for largest in (1, 0):
        for k in (1, 7, 29):
            sign = -1 if largest else 1  # of Python's integers, which have no end
            order = np.array([sorted(range(29), key=lambda i: sign * int(row[i]))[:k] for row in x])
            g.node("TopK", [x, (np.array([k]),)], [np.take_along_axis(x, order, 1), order], largest=largest)


# --- pictures of other sizes, in the order of ONNX's formulas and in float32, step by step


def place(o, before, after, width, scale, mode):
    """Where output o lies in the input (coordinate_transformation_mode); width: `after` before it was rounded down."""
    f = np.float32
    half, one = f(0.5), f(1)
    middle = (f(o) + half) / scale - half
    if mode == "asymmetric":
        return f(o) / scale
    if mode == "align_corners":
        return f(0) if width == 1 else f(o) * (f(before - 1) / (width - one))
    if mode == "pytorch_half_pixel":
        return middle if after > 1 else f(0)
    if mode == "half_pixel_symmetric":
        return f(before) / f(2) * (one - f(after) / (f(before) * scale)) + middle
    return middle


def taps(o, before, after, width, scale, mode, how, nearest):
    """[(index, weight)] of output o."""
    f = np.float32
    x = place(o, before, after, width, scale, mode)
    if how == "nearest":
        half = f(0.5)
        p = {"floor": np.floor, "ceil": np.ceil, "round_prefer_ceil": lambda x: np.floor(x + half),
             "round_prefer_floor": lambda x: np.ceil(x - half)}[nearest](x)
        return [(min(max(int(p), 0), before - 1), None)]
    near = [np.floor(x) + f(t) for t in (range(2) if how == "linear" else range(-1, 3))]
    weights = []
    for p in near:
        s = abs(x - p)
        if how == "linear":
            weights.append(max(f(0), f(1) - s))
        elif s <= 1:
            weights.append((f(1.25) * s - f(2.25)) * s * s + f(1))
        else:
            weights.append(((f(-0.75) * s + f(3.75)) * s - f(6)) * s + f(3) if s < 2 else f(0))
    return [(min(max(int(p), 0), before - 1), w) for p, w in zip(near, weights)]


def resized_axis(x, axis, after, width, scale, mode, how, nearest):
    rows = []
    for o in range(after):
        row = None
        for i, w in taps(o, x.shape[axis], after, width, scale, mode, how, nearest):
            part = x.take(i, axis) if w is None else w * x.take(i, axis)
            row = part if row is None else row + part
        rows.append(row)
    return np.stack(rows, axis)


def resized(g, rng, _dtype):
    """Each mode with factors and sizes whose positions are quotients, and others; odd extents, and of one element."""
    modes = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
    ways = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    factors = (2, 3, 4, 0.5, 1.5, 1.7, 0.6, 5, 7.3, 1.25, 1 / 3)
    for how in ("nearest", "linear", "cubic"):
        for number, mode in enumerate(modes * (3 if how == "nearest" else 2)):
            x = rng.standard_normal((2, *rng.integers(1, 14, 2))).astype(np.float32)
            nearest = ways[rng.integers(4)]
            if number % 2:
                scales = rng.choice(factors, 2).astype(np.float32)
                sizes = [int(np.floor(np.float32(n) * s)) for n, s in zip(x.shape[1:], scales)]
                if min(sizes) < 1:
                    scales, sizes = np.array([2, 2], np.float32), [2 * n for n in x.shape[1:]]
                more = [None, (scales,)]
            else:
                sizes = [int(n) for n in rng.integers(1, 40, 2)]
                scales = [np.float32(a / b) for a, b in zip(sizes, x.shape[1:])]
                more = [None, None, (np.array(sizes),)]
            y = x
            for axis in (1, 2):
                if sizes[axis - 1] != x.shape[axis] or scales[axis - 1] != 1:
                    after, scale = sizes[axis - 1], scales[axis - 1]
                    width = np.float32(x.shape[axis]) * scale if number % 2 else np.float32(after)
                    y = resized_axis(y, axis, after, width, scale, mode, how, nearest)
            g.node("Resize", [x, *more], [y], near=None if how == "nearest" else (2e-6, 2e-6), mode=how, axes=[1, 2],
                   coordinate_transformation_mode=mode, **({"nearest_mode": nearest} if how == "nearest" else {}))


# --- borders, and whole images that are reduced


def images(g, rng, _dtype):
    """Borders that are shorter than the data, as long, and longer; reductions and normalizations of odd images."""
    for mode in ("edge", "reflect", "wrap"):
        for shape in ((3, 5, 7), (1, 1, 9), (2, 4, 1), (4, 33, 2)):
            x = rng.standard_normal(shape).astype(np.float32)
            for most in (1, 3, 12):
                pads = rng.integers(0, most + 1, 6)
                around = list(zip(pads[:3], pads[3:]))
                g.node("Pad", [x, (pads,)], [np.pad(x, around, mode)], mode=mode)
    near = (2e-5, 2e-5)
    for shape in ((2, 3, 13, 17), (1, 5, 57, 57), (1, 2, 3, 5), (3, 2, 16, 40), (1, 4, 5, 7, 9)):
        x = rng.standard_normal(shape).astype(np.float32)
        scale, bias = (rng.standard_normal(shape[1]).astype(np.float32) for _ in range(2))
        space = tuple(range(2, x.ndim))
        column = (slice(None),) + (None,) * len(space)
        y = wide(x) - wide(x).mean(space, keepdims=True)
        y /= np.sqrt((y * y).mean(space, keepdims=True) + 1e-5)
        y = (y * scale[column] + bias[column]).astype(np.float32)
        g.node("InstanceNormalization", [x, scale, bias], [y], near=near)
        for axes in (tuple(range(x.ndim)), space, (1,) + space):
            chosen = (np.array(axes),)
            g.node("ReduceMax", [x, chosen], [x.max(axes, keepdims=True)])
            g.node("ReduceSum", [x, chosen], [wide(x).sum(axes, keepdims=True).astype(np.float32)], near=(2e-5, 2e-4))


# --- results that nobody reads


def normalisations(g, rng, dtype):
    """LayerNormalization with each choice of results, as results of the model and not."""
    x, scale, bias = (rng.standard_normal(s).astype(dtype) for s in ((3, 5, 24), 24, 24))
    mean = wide(x).mean(2, keepdims=True)
    inverse = 1 / np.sqrt(wide(x).var(2, keepdims=True) + 1e-5)
    y = ((wide(x) - mean) * inverse * wide(scale) + wide(bias)).astype(dtype)
    results = y, mean.astype(np.float32), inverse.astype(np.float32)
    for chosen in ((1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 1, 0)):
        g.node("LayerNormalization", [x, scale, bias], [r if c else None for r, c in zip(results, chosen)],
               near=(1e-5, 1e-5) if dtype == np.float32 else (2e-3, 2e-3))


# --- shapes and masks


def transposed_windows(g, rng, dtype):
    """Transposed convolutions whose output_shape or auto_pad leaves an odd padding, by the equations of ONNX's text."""
    x = rng.integers(-3, 4, (1, 1, 4, 4)).astype(dtype)
    for kernel, stride, shape, pad in ((3, 2, 8, "NOTSET"), (3, 2, 8, "SAME_UPPER"), (3, 2, 8, "SAME_LOWER"),
                                       (4, 2, 7, "NOTSET"), (5, 3, 13, "VALID"), (3, 2, None, "SAME_UPPER"),
                                       (3, 2, None, "SAME_LOWER")):
        w = rng.integers(-3, 4, (1, 2, kernel, kernel)).astype(dtype)
        full = np.zeros((1, 2, 3 * stride + kernel, 3 * stride + kernel))
        for i, j in np.ndindex(4, 4):
            part = full[0, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
            part += float(x[0, 0, i, j]) * wide(w[0])
        want = shape or 4 * stride
        total = 3 * stride + kernel - want
        head = total // 2 if pad == "SAME_UPPER" else total - total // 2
        more = {"output_shape": [shape] * 2} if shape else {}
        g.node("ConvTranspose", [x, (w,)], [full[:, :, head : head + want, head : head + want].astype(dtype)],
               strides=[stride] * 2, auto_pad=pad, **more)


def unpooled(g, rng, dtype):
    """MaxUnpool with an output_shape that is larger than the default one. Indices of a pool over it count in it, as do
    those beyond the default size; else they count in the default shape, as the official case has it."""
    for h, w, kernel, stride in ((5, 5, 2, 2), (7, 10, 2, 3), (6, 9, 3, 2), (4, 4, 2, 2)):
        x = rng.standard_normal((2, 3, h, w)).astype(dtype)
        places = pool_places(x, (kernel, kernel), stride)
        most = wide(x).reshape(-1)[places].astype(dtype)
        want = np.zeros(x.size, dtype)
        want[places] = most
        g.node("MaxUnpool", [most, places, (np.array(x.shape, np.int64),)], [want.reshape(x.shape)],
               kernel_shape=[kernel] * 2, strides=[stride] * 2)
    x, shape = np.array([5, 6, 7, 8], dtype).reshape(1, 1, 2, 2), (np.array([1, 1, 5, 5], np.int64),)
    for places, size in (([5, 7, 13, 15], 4), ([0, 2, 20, 24], 5), ([0, 7, 20, 2], 5), ([15, 7, 13, 5], 4)):
        want = np.zeros((1, 1, 5, 5), dtype)
        for at, value in zip(places, x.reshape(-1)):
            want[0, 0, at // size, at % size] = value
        g.node("MaxUnpool", [x, np.array(places, np.int64).reshape(1, 1, 2, 2), shape], [want], kernel_shape=[2, 2],
               strides=[2, 2])


def masks(g, rng, dtype):
    """Rows of a mask that hide every key give 0 in Attention. Its products before the soft cap and behind it."""
    near = (1e-5, 1e-5) if dtype == np.float32 else (4e-3, 4e-3)
    for heads, causal, is_bool, softcap in ((4, 0, 1, 0.0), (2, 0, 0, 0.0), (4, 1, 1, 0.0), (1, 1, 0, 2.0)):
        q, k, v = (rng.standard_normal((2, h, s, 8)).astype(dtype) for h, s in ((4, 5), (heads, 6), (heads, 6)))
        keep = rng.random((5, 6)) < 0.6
        keep[2] = False
        keep[0] = np.arange(6) == (3 if causal else 1)  # behind the diagonal, where that hides it
        mask = keep if is_bool else np.where(keep, 0, -np.inf).astype(dtype)
        hidden = ~keep | (np.triu(np.ones((5, 6), bool), 1) if causal else False)
        scores = np.einsum("bhsd,bhtd->bhst", wide(q), wide(np.repeat(k, 4 // heads, 1))) / np.sqrt(8)
        raw, scores = scores, np.tanh(scores / softcap) * softcap if softcap else scores
        e = np.where(hidden, 0, np.exp(scores))
        weights = e / np.maximum(e.sum(-1, keepdims=True), 1e-30)
        y = np.einsum("bhst,bhtd->bhsd", weights, wide(np.repeat(v, 4 // heads, 1))).astype(dtype)
        g.node("Attention", [q, k, v, mask], [y], near=near, is_causal=causal, softcap=softcap)
        g.node("Attention", [q, k, v, (mask,)], [y], near=near, is_causal=causal, softcap=softcap)
        for mode, products in ((0, raw), (1, scores)):
            g.node("Attention", [q, k, v, mask], [y, None, None, products.astype(dtype)], near=near, is_causal=causal,
                   softcap=softcap, qk_matmul_output_mode=mode)


def fourier(g, rng, dtype):
    """DFT of each kind of length: with each factor that a step may have, of large primes, cut off and filled up; along
    each axis; of real and complex numbers, back and forth. STFT with frames that do not meet."""
    near = (1e-5, 1e-5) if dtype == np.float32 else (1e-12, 1e-12)

    def result(x):
        return np.stack([x.real, x.imag], -1).astype(dtype)

    for n in (1, 2, 3, 5, 6, 8, 11, 13, 17, 20, 34, 49, 240, 1024):
        x = rng.standard_normal((3, n, 2)).astype(dtype)
        z, real = wide(x[..., 0]) + 1j * wide(x[..., 1]), wide(x[..., :1])[..., 0]
        for extent in {n, n + 3, n - 2} if n in (5, 8) else {n}:
            length = (np.array(extent, np.int64),)
            scale = (near[0], near[1] * extent ** 0.5)
            g.node("DFT", [x, length], [result(np.fft.fft(z, extent))], near=scale)
            g.node("DFT", [x, length], [result(np.fft.ifft(z, extent))], near=scale, inverse=1)
            g.node("DFT", [x[..., :1], length], [result(np.fft.fft(real, extent))], near=scale)
            g.node("DFT", [x[..., :1], length], [result(np.fft.rfft(real, extent))], near=scale, onesided=1)
            back = np.fft.irfft(z, extent).astype(dtype)[..., None]
            g.node("DFT", [x, length], [back], near=scale, inverse=1, onesided=1)
    x = rng.standard_normal((6, 4, 10, 1)).astype(dtype)
    for axis in (0, 1, 2, -2, -4):
        want = result(np.fft.fft(wide(x[..., 0]), axis=axis + 1 if axis < 0 else axis))
        g.node("DFT", [x, None, (np.array(axis, np.int64),)], [want], near=near)
    for parts, length, step, onesided in ((1, 16, 5, 1), (1, 15, 20, 1), (2, 12, 4, 0), (1, 10, 3, 0)):
        x, window = rng.standard_normal((2, 70, parts)).astype(dtype), rng.random(length).astype(dtype)
        z = wide(x[..., 0]) + (1j * wide(x[..., 1]) if parts == 2 else 0)
        at = np.arange(0, 70 - length + 1, step)[:, None] + np.arange(length)
        for taken in (window, np.ones(length)):
            y = np.fft.fft(z[:, at] * wide(taken))
            given = [(window,)] if taken is window else [None, (np.array(length, np.int64),)]
            for signal in (x, x[..., 0]) if parts == 1 else (x,):  # PyTorch's exporter leaves out the last axis
                g.node("STFT", [signal, (np.array(step, np.int64),), *given],
                       [result(y[..., :length // 2 + 1] if onesided else y)], near=(near[0], 4 * near[1]),
                       onesided=onesided)


def mels(g, rng, dtype):
    """Triangles of MelWeightMatrix, some of which have no width."""
    for bins, length, rate, low, high in ((8, 16, 8192, 0, 4096), (40, 512, 16000, 20, 7600), (5, 8, 8000, 100, 3000)):
        steps = np.arange(bins + 2) / (bins + 2)
        ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
        hertz = 700 * (10 ** ((ends[0] + steps * (ends[1] - ends[0])) / 2595) - 1)
        edge = np.floor((length + 1) * hertz / rate)
        want, j = np.zeros((length // 2 + 1, bins)), np.arange(length // 2 + 1)
        for i in range(bins):
            a, b, c = edge[i:i + 3]
            rising = (j >= a) & (j <= b)
            want[rising, i] = 1 if a == b else (j[rising] - a) / (b - a)
            falling = (j >= b) & (j < c)
            want[falling, i] = (c - j[falling]) / (c - b) if c > b else 0
        operands = [np.array(v, np.int64) for v in (bins, length, rate)]
        operands += [np.array(v, np.float32) for v in (low, high)]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        g.node("MelWeightMatrix", [(v,) for v in operands], [want.astype(dtype)], near=(1e-6, 1e-6),
               output_datatype=kind)


def pool_regions(x, rois, shape, scale):
    """The largest pixels in the cells of regions as onnxruntime's loop finds them: 0 in empty cells, NaN until the next
    pixel, and the 32-bit integers of x86."""
    kind = np.float64 if x.dtype == np.float64 else np.float32
    wanted = np.zeros((len(rois), x.shape[1], *shape), kind)

    def integer(v):
        return int(v) if -(2.0 ** 31) <= v < 2.0 ** 31 else -(1 << 31)

    def wrapped(v):
        return (v + (1 << 31)) % (1 << 32) - (1 << 31)

    def ends(start, last, cells, extent):
        cell = kind(max(wrapped(last - start + 1), 1)) / kind(cells)
        for k in range(cells):
            first, end = np.floor(kind(k) * cell), np.ceil(kind(k + 1) * cell)
            yield [min(max(wrapped(integer(v) + start), 0), extent) for v in (first, end)]

    for r, roi in enumerate(rois.astype(kind)):
        at = [integer(np.copysign(np.floor(abs(float(v)) + 0.5), v)) for v in roi[1:] * kind(scale)]
        for i, (top, bottom) in enumerate(ends(at[1], at[3], shape[0], x.shape[2])):
            for j, (left, right) in enumerate(ends(at[0], at[2], shape[1], x.shape[3])):
                for channel, picture in enumerate(x[int(roi[0])].astype(kind)):
                    most = -np.finfo(kind).max
                    for pixel in picture[top:bottom, left:right].reshape(-1):
                        most = most if pixel < most else pixel
                    wanted[r, channel, i, j] = most if top < bottom and left < right else 0
    with np.errstate(over="ignore"):  # an empty region's -FLT_MAX is -inf in f16
        return wanted.astype(x.dtype)


def regions(g, rng, dtype):
    """MaxRoiPool: corners between pixels, in wrong order, outside of the picture, and that no integer holds."""
    hostile = [NAN, np.inf, -np.inf] + [1e9, -1e9, 2147483520.0, 3e9, -3e9, 1e20, -129, -65] * (dtype != np.float16)
    for shape, scale in (((1, 1), 1.0), ((2, 3), 1.0), ((3, 2), 0.5), ((7, 7), 0.0625), ((4, 1), 1.7)):
        x = spread(rng, (2, 2, 7, 9), dtype, 0.3)
        rois = rng.integers(-6, 26, (24, 5)) / (2 * scale)
        rois[:4, 1:] = rng.uniform(-1, 9, (4, 4)) / scale
        for i in range(14):
            rois[i, 1 + rng.integers(0, 4)] = hostile[rng.integers(0, len(hostile))]
        rois[:, 0] = rng.choice([-0.5, 0, 0.9, 1, 1.5], 24)
        rois = rois.astype(dtype)
        g.node("MaxRoiPool", [x, rois], [pool_regions(x, rois, shape, scale)], pooled_shape=shape,
               spatial_scale=scale)
    x = np.full((1, 1, 2, 2), -np.inf, dtype)
    rois = np.array([[0, 0, 0, 1, 1]], dtype)
    g.node("MaxRoiPool", [x, rois], [pool_regions(x, rois, (2, 1), 1)], pooled_shape=[2, 1])


GROUPS = {}
for kind in (np.float32, np.float64):
    GROUPS[f"fourier/{np.dtype(kind).name}"] = (20, lambda g, rng, k=kind: fourier(g, rng, k))
for kind in (np.float32, np.float64):
    GROUPS[f"mels/{np.dtype(kind).name}"] = (17, lambda g, rng, k=kind: mels(g, rng, k))
for kind in (np.float32, np.float16, np.float64, ml_dtypes.bfloat16):
    GROUPS[f"extremes/{np.dtype(kind).name}"] = (22, lambda g, rng, k=kind: extremes_with_nan(g, rng, k))
    GROUPS[f"places/{np.dtype(kind).name}"] = (22, lambda g, rng, k=kind: places_with_nan(g, rng, k))
for kind in (np.float32, np.float16, np.float64):
    GROUPS[f"regions/{np.dtype(kind).name}"] = (17, lambda g, rng, k=kind: regions(g, rng, k))
GROUPS["images/float32"] = (19, lambda g, rng: images(g, rng, np.float32))
GROUPS["resized/float32"] = (19, lambda g, rng: resized(g, rng, np.float32))
for kind in (np.int8, np.uint32, np.int64):
    GROUPS[f"order/{np.dtype(kind).name}"] = (22, lambda g, rng, k=kind: integers_in_order(g, rng, k))
for kind in (np.float32, np.float16):
    GROUPS[f"masks/{np.dtype(kind).name}"] = (23, lambda g, rng, k=kind: masks(g, rng, k))
    GROUPS[f"transposed/{np.dtype(kind).name}"] = (22, lambda g, rng, k=kind: transposed_windows(g, rng, k))
    GROUPS[f"unpooled/{np.dtype(kind).name}"] = (11, lambda g, rng, k=kind: unpooled(g, rng, k))
    GROUPS[f"norms/{np.dtype(kind).name}"] = (22, lambda g, rng, k=kind: normalisations(g, rng, k))


# --- running


def references(g, node):
    """What onnxruntime and ONNX's reference give for the node; None for one that does not know it."""
    model = g.model([node])
    feed = {i.name: g.feed[i.name] for i in model.graph.input}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    found = []
    for run in (lambda: onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                     providers=["CPUExecutionProvider"]).run(None, feed),
                lambda: ReferenceEvaluator(model).run(None, feed)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append([np.asarray(r) for r in run()])
        except Exception:  # their errors have no common class
            found.append(None)
    return found


def check_references(g):
    """Where both agree, that is what is wanted."""
    bad = []
    for node in g.nodes:
        ours, theirs = references(g, node)
        theirs = ours if node.op_type in ALONE else theirs
        if ours is None or theirs is None or (node.op_type in NO_RULE and any(
                (v != v).any() for v in (g.feed[i] for i in node.input if i in g.feed))):
            continue
        names = [n for n in node.output if n in g.want]
        for name, a, b in zip(names, ours, theirs):
            agree = a.dtype == b.dtype and not differs(a, b, g.near[name])
            message = agree and differs(g.want[name], a, g.near[name])
            if message:
                bad.append(f"{node.name}.{name}: onnxruntime and ONNX's reference give something else: {message}")
    return bad


def environment_of(target):
    return {**os.environ, "CFLAGS": package.QUICK} if target.startswith("qemu") else package.environment()


def run(options, g, target, folder):
    """The package's outputs differ from what is wanted: messages."""
    path, out = os.path.join(folder, "model.onnx"), os.path.join(folder, target)
    how = ["--interpret"] if target == "interpret" else ["--target", target]
    done = subprocess.run([options.lathe, "run", path, *how, *package.save_inputs(folder, g.feed), "--output-dir", out],
                          capture_output=True, text=True, errors="replace", env=environment_of(target))
    if done.returncode != 0:
        return [f"lathe run: status {done.returncode}: " + " | ".join(done.stderr.strip().splitlines()[-3:])]
    bad, node_of = [], {r: n for n in g.nodes for r in n.output}
    for name, want in g.want.items():
        got = np.load(os.path.join(out, name + ".npy"))
        if got.dtype.kind == "V":
            got = got.view(want.dtype)
        message = differs(got, want, g.near[name])
        if message:
            n = node_of[name]
            about = {a.name: helper.get_attribute_value(a) for a in n.attribute}
            bad.append(f"{n.name} {about} result {name[-1]}: {message}")
    return bad


def missing(target):
    return [t for t in TOOLS.get(target, []) if subprocess.run(["which", t], capture_output=True).returncode != 0]


def test(options, name):
    """The number of targets that are right, of those that are wrong, and of those that are left out."""
    opset, build = GROUPS[name]
    counts = [0, 0, 0]
    with tempfile.TemporaryDirectory(prefix="operators-") as folder:
        g = Group(opset)
        build(g, np.random.default_rng(options.seed))
        onnx.save(g.model(), os.path.join(folder, "model.onnx"))
        verdicts = {"references": check_references(g)}
        for target in options.targets.split(","):
            if missing(target):
                counts[2] += 1
                print(f"skipped {name} {target}: not here: {' '.join(missing(target))}")
                continue
            verdicts[target] = run(options, g, target, folder)
    for target, bad in verdicts.items():
        counts[1 if bad else 0] += 1
        if bad or options.v:
            print(f"{'FAILED' if bad else 'ok'} {name} {target}" + "".join("\n    " + b for b in bad[:options.most]))
        sys.stdout.flush()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=12, help="lines for each failure")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    totals = [test(options, name) for name in GROUPS if fnmatch.fnmatch(name, options.filter)]
    passed, failed, skipped = (sum(t) for t in zip(*totals))
    print(f"operators: {passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
