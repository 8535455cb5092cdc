#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml against onnxruntime with one thread: hand-made and random models.

    ml.py [--lathe FILE] [--count N] [--seed N] [--filter GLOB] [--targets T,T...] [--forms F,F...] [-v]

Nodes of one family are the batch of one model, so that a target takes one compile of C. Each output is equal in every
bit, unless its case allows a difference. Refusals are models that must end with an error."""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOMAIN = "ai.onnx.ml"
NAN, INF = float("nan"), float("inf")
f32, f64, i64, i32 = np.float32, np.float64, np.int64, np.int32
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
SAME = (0.0, 0.0)
onnxruntime.set_default_logger_severity(4)


class Batch:
    """A model of many nodes with an input each; near: relative and absolute difference that an output may have."""

    def __init__(self, version=3):
        self.version, self.nodes, self.inputs, self.outputs, self.constants = version, [], [], [], []
        self.feed, self.near, self.titles, self.mask = {}, {}, {}, {}

    def add(self, operator, arrays, outputs, near=SAME, constants=(), title=None, mask=None, **attributes):
        """outputs: element types, one for each result. mask: where the results are compared (None: everywhere)."""
        names = []
        for array in arrays:
            name = f"x{len(self.feed)}"
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
            self.feed[name] = array
            names.append(name)
        for array in constants:
            name = f"c{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(np.asarray(array), name))
            names.append(name)
        results = []
        for kind in outputs:
            name = f"y{len(self.outputs)}"
            self.outputs.append(helper.make_tensor_value_info(name, kind, None))
            self.near[name] = near
            self.titles[name] = title or f"{operator} {({k: v for k, v in attributes.items() if np.size(v) < 8})}"
            self.mask[name] = mask
            results.append(name)
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(operator, names, results, domain=DOMAIN, **attributes))

    def follow(self, operator, near, **attributes):
        """A node of the last result, f32 as well."""
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node(operator, [self.outputs[-1].name], [name], domain=DOMAIN, **attributes))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        self.near[name], self.titles[name], self.mask[name] = near, f"{operator} behind another", None

    def model(self):
        graph = helper.make_graph(self.nodes, "ml", self.inputs, self.outputs, self.constants)
        sets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, self.version)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9)


def reference(model, feed):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


# --- linear models, scalers, encoders ---


def linear(rng, count):
    b = Batch(1)
    near = (1e-5, 2e-6)  # no order of a sum is onnxruntime's at all batch sizes
    for k in range(count):
        features, rows = int(rng.integers(1, 20)), int(rng.choice([1, 2, 3, 5]))
        x = rng.normal(size=(int(rng.choice([1, 7])), features)).astype(f32)
        w, c = rng.normal(size=rows * features).astype(f32).tolist(), rng.normal(size=rows).astype(f32).tolist()
        post = POSTS[k % 4]  # PROBIT gives NaN outside of 0..1
        b.add("LinearRegressor", [x], [1], near, coefficients=w, intercepts=c if k % 3 else None, targets=rows,
              post_transform=post)
        labels = [int(v) for v in rng.integers(-9, 99, max(rows, 2))] if k % 2 else list(range(max(rows, 2)))
        given = x if k % 4 else rng.integers(-9, 9, x.shape).astype([i64, i32][k // 4 % 2])
        b.add("LinearClassifier", [given], [7, 1], near, coefficients=w, intercepts=c, classlabels_ints=labels,
              post_transform=post)
    x = np.array([[1, 0], [-1, 0], [0, 0]], f32)
    b.add("LinearClassifier", [x], [7, 1], near, coefficients=[.7, 0.], intercepts=[.1])
    b.add("LinearClassifier", [np.array([[NAN, 0], [0, NAN]], f32)], [7, 1], near,
          coefficients=[-.7, 0, .7, 0, 1, 1], intercepts=[0., 0., 0.], classlabels_ints=[4, 9, 2])
    b.add("LinearClassifier", [np.array([[0, 0]], f32)], [7, 1], near, coefficients=[-.7, 0, .7, 0, 1, 1],
          intercepts=[1., 1., 1.], classlabels_ints=[4, 9, 2], post_transform="SOFTMAX")
    for post in ("SOFTMAX", "LOGISTIC"):  # the sum of the first is 1 already
        b.add("LinearClassifier", [rng.normal(size=(7, 2)).astype(f32)], [7, 1], near, post_transform=post,
              coefficients=[-.7, 0, .7, 0, 1, 1], intercepts=[1., 1., 1.], classlabels_ints=[4, 9, 2])
        b.follow("Normalizer", near, norm="L1")
    b.add("LinearRegressor", [x], [1], near, coefficients=[.3, 0, 1, 1], intercepts=[.5], targets=2)
    b.add("LinearRegressor", [x], [1], (2e-6, 2e-6), coefficients=[.3, 0.], intercepts=[.5], post_transform="PROBIT")
    return b


def scalers(rng, count):
    b = Batch(1)
    odd = np.array([[0, 0, 0], [-3, -1, -2], [3, -4, 0], [NAN, 1, 2], [1e30, 1, 0], [1e-30, 0, 0], [-0., 0, 0]], f32)
    for norm in ("MAX", "L1", "L2"):
        near = (2e-7, 0)
        b.add("Normalizer", [odd], [1], near, norm=norm)
        b.add("Normalizer", [odd[2]], [1], near, norm=norm)
        b.add("Normalizer", [np.array([[1, 2], [-3, 4]])], [1], near, norm=norm)
        for _ in range(count):
            rows = rng.normal(size=(3, int(rng.integers(1, 9)))).astype(f32)
            b.add("Normalizer", [rows], [1], (1e-6, 1e-7), norm=norm)
    b.add("Normalizer", [np.array([[2., 4]], f32)], [1])
    for dt in (f32, f64, i64, i32):
        for n in (1, 3):
            offset, scale = rng.normal(size=n).astype(f32).tolist(), rng.normal(size=n).astype(f32).tolist()
            b.add("Scaler", [(rng.normal(size=(4, 3)) * 9).astype(dt)], [1], offset=offset, scale=scale)
    b.add("Scaler", [np.array([[1 + 2**-30]])], [1], offset=[1.], scale=[3.])
    b.add("Scaler", [np.array([[2**24 + 1]])], [1], offset=[0.], scale=[1.])
    b.add("Scaler", [rng.normal(size=3).astype(f32)], [1], offset=[1., 2., 3.], scale=[1., 2., 3.])
    b.add("Scaler", [rng.normal(size=(2, 2, 3)).astype(f32)], [1], offset=[1., 2.], scale=[1., 2.])
    b.add("Binarizer", [np.array([[1, 1.5, -INF, INF, 0]], f32)], [1], threshold=1.)
    b.add("Binarizer", [np.array([[0., -0., 1e-40]], f32)], [1])
    gaps = np.array([[NAN, 1, 2], [3, NAN, NAN]], f32)
    b.add("Imputer", [gaps], [1], imputed_value_floats=[7., 8, 9], replaced_value_float=NAN)
    b.add("Imputer", [gaps], [1], imputed_value_floats=[7.], replaced_value_float=NAN)
    b.add("Imputer", [gaps], [1], imputed_value_floats=[7., 8.], replaced_value_float=NAN)
    b.add("Imputer", [np.array([[-0., 1, 0, NAN]], f32)], [1], imputed_value_floats=[7.])
    b.add("Imputer", [np.array([[5, 1]])], [7], imputed_value_int64s=[7], replaced_value_int64=5)
    return b


def encoders(rng, count):
    b = Batch(1)
    b.add("OneHotEncoder", [np.array([[1, 9]])], [1], cats_int64s=[0, 1, 2])
    b.add("OneHotEncoder", [np.array([[1, 0]])], [1], cats_int64s=[0, 1, 2], zeros=0)
    b.add("OneHotEncoder", [np.array([[1.9, -.5]], f32)], [1], cats_int64s=[0, 1, 2])
    b.add("OneHotEncoder", [np.array([[1.9, -.5]])], [1], cats_int64s=[0, 1, 2])
    b.add("OneHotEncoder", [np.array([1, 2, 7])], [1], cats_int64s=[1, 1, 2])
    for _ in range(count):
        keys = [int(v) for v in rng.choice([-2**40, -5, 0, 3, 7, 2**50, 99], int(rng.integers(1, 7)))]
        b.add("OneHotEncoder", [rng.choice(keys + [4], (3, 2))], [1], cats_int64s=keys)
    b.add("ArrayFeatureExtractor", [np.array([5., 6, 7], f32)], [1], constants=[np.array([2, 0])])
    b.add("ArrayFeatureExtractor", [np.array([[5, 6, 7]])], [7], constants=[np.array([[2, 0]])])
    b.add("ArrayFeatureExtractor", [rng.normal(size=(2, 3, 4)), np.array([[3, 0], [1, 1]])], [11])
    one, two = np.array([[1., 2], [3, 4]], f32), np.array([[5.], [6]], f32)
    b.add("FeatureVectorizer", [one, two], [1], inputdimensions=[1, 3])
    b.add("FeatureVectorizer", [np.array([[1, 2]])], [1], inputdimensions=[2])
    return b


def label_encoders(version):
    kinds = {"float": (f32, "floats", 1), "int64": (i64, "int64s", 7)}

    def make(rng, count):
        b = Batch(version)
        for key, (dt, keys, _) in kinds.items():
            for value, (vt, values, code) in kinds.items():
                for k in range(max(count, 2)):
                    n = int(rng.integers(1, 9))
                    far = [-7, 0, 1, 2, 3, 4, 1000, 2**33 if dt is i64 else 9]
                    have = rng.choice(far if k % 2 else [1, 2, 3, 4, 5], n)
                    x = np.concatenate([have, [11, 0, 2]]).astype(dt).reshape(-1, 1)
                    give = {f"keys_{keys}": have.astype(dt).tolist(),
                            f"values_{values}": rng.integers(-9, 9, n).astype(vt).tolist()}
                    if k % 3:
                        give[f"default_{value}"] = vt(5).item()
                    b.add("LabelEncoder", [x], [code], **give)
        odd = np.array([NAN, 1, 2, -0.], f32)
        b.add("LabelEncoder", [odd], [7], keys_floats=[NAN, 1., 0.], values_int64s=[5, 6, 7])
        if version >= 4:
            tensor = numpy_helper.from_array
            b.add("LabelEncoder", [np.array([.1, .2])], [11], keys_tensor=tensor(np.array([.1])),
                  values_tensor=tensor(np.array([.7])), default_tensor=tensor(np.array([-3.])))
        return b
    return make


# --- trees ---

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(rng, trees, depth, features, outputs, modes=MODES[:1], tracks=0., whole=False, only=None, weights=1, size=1.,
           positive=False, alike=False):
    """Random trees as attributes by their names without the words target and class. alike: all nodes of a level of a
    tree ask the same."""
    d = {k: [] for k in ("nodeids", "treeids", "featureids", "modes", "values", "missing_value_tracks_true",
                         "truenodeids", "falsenodeids", "w_ids", "w_nodeids", "w_treeids", "w")}

    def grow(tree, left, ids):
        number, at = ids[0], len(d["nodeids"])
        ids[0] += 1
        leaf = left == 0 or (left < depth and rng.random() < .15)
        value = 0. if leaf else float(rng.integers(0, 4)) if whole else float(f32(rng.normal()))
        for key, entry in (("nodeids", number), ("treeids", tree), ("truenodeids", 0), ("falsenodeids", 0),
                           ("featureids", 0 if leaf else int(rng.integers(features))), ("values", value),
                           ("modes", "LEAF" if leaf else str(rng.choice(modes))),
                           ("missing_value_tracks_true", 0 if leaf else int(rng.random() < tracks))):
            d[key].append(entry)
        if leaf:
            for target in rng.permutation(outputs)[:weights] if only is None else [only]:
                w = float(f32(rng.normal() * size))
                for key, entry in (("w_ids", int(target)), ("w_nodeids", number), ("w_treeids", tree),
                                   ("w", abs(w) if positive else w)):
                    d[key].append(entry)
        else:
            d["truenodeids"][at] = grow(tree, left - 1, ids)
            d["falsenodeids"][at] = grow(tree, left - 1, ids)
        return number

    asked = ("featureids", "values", "modes", "missing_value_tracks_true")
    for tree in range(trees):
        first = len(d["nodeids"])
        grow(tree, depth, [0])
        where, levels = {first: 0}, {}
        for at in range(first, len(d["nodeids"])) if alike else []:
            if d["modes"][at] != "LEAF":
                question = levels.setdefault(where[at], [d[key][at] for key in asked])
                for key, entry in zip(asked, question):
                    d[key][at] = entry
                for child in (d["truenodeids"][at], d["falsenodeids"][at]):
                    where[first + child] = where[at] + 1
    return d


def attributes_of(d, what):
    a = {f"nodes_{k}": v for k, v in d.items() if not k.startswith("w")}
    a.update({f"{what}_ids": d["w_ids"], f"{what}_nodeids": d["w_nodeids"], f"{what}_treeids": d["w_treeids"],
              f"{what}_weights": d["w"]})
    return a


def rows(rng, features, dt=f32, whole=False, missing=False, count=(1, 5, 20)):
    shape = (int(rng.choice(count)), features)
    x = rng.integers(0, 4, shape) if whole else rng.normal(size=shape)
    x = x.astype(dt)
    if missing and x.dtype.kind == "f":
        x[rng.random(shape) < .2] = NAN
    return x


def regressors(rng, count):
    b = Batch(3)
    for k in range(4 * count):
        n, dt = int(rng.choice([1, 1, 2, 3])), [f32, f32, f64][k % 3]
        post, how = POSTS[int(rng.integers(4))], str(rng.choice(["SUM", "AVERAGE", "MIN", "MAX"]))
        base = None if rng.random() < .5 else [float(f32(v)) for v in rng.normal(size=n)]
        d = forest(rng, int(rng.integers(1, 60)), int(rng.integers(1, 6)), 4, n, weights=int(rng.integers(1, n + 1)))
        near = SAME if n == 1 or post == "NONE" else (2e-6, 2e-7)
        b.add("TreeEnsembleRegressor", [rows(rng, 4, dt)], [1], near, n_targets=n, post_transform=post,
              aggregate_function=how, base_values=base, title=f"regressor {n} {post} {how} {base} {dt.__name__}",
              **attributes_of(d, "target"))
    for k in range(4 * count):
        modes = MODES if k % 2 else [MODES[k // 2 % 6]]
        d = forest(rng, 3, 4, 3, 1, modes=modes, tracks=[0., .5, 1.][k % 3], whole=True)
        b.add("TreeEnsembleRegressor", [rows(rng, 3, whole=True, missing=True)], [1], n_targets=1,
              title=f"modes {modes} {k % 3}", **attributes_of(d, "target"))
    for k in range(6 * count):
        n, dt = 1 + k % 3, [f32, f32, f64][k % 3]
        d = forest(rng, int(rng.integers(1, 20)), int(rng.integers(1, 6)), 4, n, weights=int(rng.integers(1, n + 1)),
                   modes=MODES if k % 4 == 3 else [MODES[k % 6]], tracks=[0., .5, 1.][k // 2 % 3], alike=True,
                   whole=True)
        x = rows(rng, 4, dt, whole=True, missing=True, count=(1, 37, 70))
        b.add("TreeEnsembleRegressor", [x], [1], n_targets=n,
              title=f"levels {n} {k} {dt.__name__}", **attributes_of(d, "target"))
    d = forest(rng, 3, 3, 2, 1)
    order = []
    for tree in range(3):
        root, *others = [i for i, t in enumerate(d["treeids"]) if t == tree]
        order += [root, *rng.permutation(others)]
    listed = {k: v if k.startswith("w") else [v[i] for i in order] for k, v in d.items()}
    b.add("TreeEnsembleRegressor", [rows(rng, 2)], [1], n_targets=1, title="nodes in another order",
          **attributes_of(listed, "target"))
    stump = {"nodeids": [0, 1, 2], "treeids": [0] * 3, "featureids": [0, 9, 0], "modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "values": [.5, 0., 0.], "truenodeids": [1, 0, 0], "falsenodeids": [2, 0, 0], "w_ids": [0, 0, 0],
             "w_nodeids": [1, 1, 2], "w_treeids": [0] * 3, "w": [1., 10., 2.]}
    x = np.array([[0.], [1.]], f32)
    b.add("TreeEnsembleRegressor", [x], [1], n_targets=1, title="two weights at a leaf",
          **attributes_of(stump, "target"))
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        b.add("TreeEnsembleRegressor", [x], [1], n_targets=2, base_values=[5., 7.], aggregate_function=how,
              title=f"a base value of a target that the row has not {how}",
              **attributes_of({**stump, "w_ids": [0, 1], "w_nodeids": [1, 2], "w_treeids": [0, 0], "w": [1., 2.]},
                              "target"))
        for n in (1, 2):
            b.add("TreeEnsembleRegressor", [x], [1], n_targets=n, aggregate_function=how, title=f"-0 {how} of {n}",
                  **attributes_of({**stump, "w_ids": [0, 0], "w_nodeids": [1, 2], "w_treeids": [0, 0], "w": [-0., 2.]},
                                  "target"))
    for ids, where, w in (([0], [1], [1.]), ([0, 0, 0], [0, 1, 2], [9., 1., 2.])):
        b.add("TreeEnsembleRegressor", [x], [1], n_targets=1, title=f"weights at {where}",
              **attributes_of({**stump, "w_ids": ids, "w_nodeids": where, "w_treeids": [0] * len(ids), "w": w},
                              "target"))
    exact = {k: v for k, v in attributes_of(stump, "target").items() if k not in ("nodes_values", "target_weights")}
    b.add("TreeEnsembleRegressor", [np.array([[.1], [np.nextafter(.1, 1)]])], [1], n_targets=1, title="f64 thresholds",
          nodes_values_as_tensor=numpy_helper.from_array(np.array([.1, 0, 0])),
          target_weights_as_tensor=numpy_helper.from_array(np.array([1 / 3, 1., 2 / 3])), **exact)
    b.add("TreeEnsembleRegressor", [np.array([[.25], [.75]], f32)], [1], (2e-6, 0), n_targets=1, title="probit",
          post_transform="PROBIT", **attributes_of({**stump, "w": [.25, .1, .75]}, "target"))
    return b


def classifiers(rng, count):
    b = Batch(3)
    for k in range(10 * count):
        n, post = int(rng.choice([2, 2, 2, 3, 4])), POSTS[k % 5]
        bases = int(rng.choice([0, 0, 1, 2])) if n == 2 else int(rng.choice([0, n]))
        base = [float(f32(v)) for v in rng.normal(size=bases)] or None
        only = None if rng.random() < .5 or n > 2 else int(rng.integers(2))
        positive, dt = bool(rng.random() < .5), [f32, f32, f32, f64, i64, i32][k % 6]
        d = forest(rng, int(rng.integers(1, 6)), 3, 4, n, only=only, weights=int(rng.integers(1, n + 1)), size=.3,
                   positive=positive, whole=dt in (i64, i32))
        x = rows(rng, 4, dt, whole=dt in (i64, i32))
        labels = {"classlabels_int64s": [7, 3, 11, 5][:n]}
        if k % 4 == 3:
            labels = {"classlabels_int64s": list(range(n))}
        both = len(set(d["w_ids"])) == 2 and n == 2
        one_score = post == "PROBIT" and n == 2 and bases < 2 or bases == 1 and both
        mask = np.array([[True, False]]).repeat(len(x), 0) if one_score else None
        b.add("TreeEnsembleClassifier", [x], [7, 1], (2e-6, 1e-6) if post != "NONE" else SAME, post_transform=post,
              base_values=base,
              title=f"classifier {n} {post} base {bases} only {only} positive {positive} {dt.__name__}", mask=mask,
              **labels, **attributes_of(d, "class"))
    stump = {"nodeids": [0, 1, 2], "treeids": [0] * 3, "featureids": [0] * 3, "modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "values": [.5, 0., 0.], "truenodeids": [1, 0, 0], "falsenodeids": [2, 0, 0], "w_ids": [0, 1, 2],
             "w_nodeids": [1, 1, 2], "w_treeids": [0] * 3, "w": [1., 1., 1.]}
    x = np.array([[0.], [1.]], f32)
    for ids, w in (([0, 1, 2], [1., 1., 1.]), ([1, 2, 1], [-3., -2., -1.])):
        b.add("TreeEnsembleClassifier", [x], [7, 1], classlabels_int64s=[7, 8, 9], title=f"weights {w}",
              **attributes_of({**stump, "w_ids": ids, "w": w}, "class"))
    large = {**stump, "values": [16777216., 0., 0.], "w_nodeids": [1, 2, 2]}
    for dt in (i64, i32, f64):
        b.add("TreeEnsembleClassifier", [np.array([[16777217]], dt)], [7, 1], classlabels_int64s=[7, 8, 9],
              title="16777217 <= 16777216", **attributes_of(large, "class"))
    b.add("TreeEnsembleClassifier", [x], [7, 1], classlabels_int64s=[7], title="one class",
          **attributes_of({**stump, "w_ids": [0, 0, 0], "w_nodeids": [1, 2, 2]}, "class"))
    return b


def ensembles(rng, count):
    b = Batch(5)

    def add(x, dt, splits, modes, leaves, targets, title, roots=(0,), near=SAME, branches=(0, 0), **more):
        n = len(splits)
        a = dict(nodes_splits=numpy_helper.from_array(np.array(splits, dt)),
                 nodes_modes=numpy_helper.from_array(np.array(modes, np.uint8)), nodes_featureids=[0] * n,
                 nodes_truenodeids=[branches[0]] * n, nodes_falsenodeids=[len(leaves) - 1] * n, nodes_trueleafs=[1] * n,
                 nodes_falseleafs=[1] * n, leaf_weights=numpy_helper.from_array(np.array(leaves, dt)),
                 leaf_targetids=targets, tree_roots=list(roots))
        more.setdefault("n_targets", 1)
        if "members" in more:
            more["membership_values"] = numpy_helper.from_array(np.array(more.pop("members"), dt))
        b.add("TreeEnsemble", [x.astype(dt)], [TensorProto.FLOAT if dt is f32 else TensorProto.DOUBLE], near,
              title=f"TreeEnsemble {title} {dt.__name__}", **a, **more)

    x = np.array([[0], [1], [2], [3], [NAN], [33], [1.5], [-1]])
    for dt in (f32, f64):
        for mode in range(6):
            for tracks in (None, [1]):
                add(x, dt, [2.], [mode], [10., 20.], [0, 0], f"mode {mode} {tracks}",
                    nodes_missing_value_tracks_true=tracks)
        for members in ([0., 3., 33., NAN], [1., 3., 5., NAN], [2., NAN]):
            for tracks in (None, [1]):
                add(x, dt, [0.], [6], [10., 20.], [0, 0], f"members {members} {tracks}", members=members,
                    nodes_missing_value_tracks_true=tracks)
        add(x[:1], dt, [2.], [0], [10.], [0], "a leaf alone")
        for how in range(4):
            add(x[:2], dt, [2., 2.], [0, 0], [10., 20.], [0, 0], f"aggregate {how}", roots=(0, 1),
                aggregate_function=how)
            add(x[:2], dt, [2.], [0], [10., 20.], [0, 0], f"a target of no leaf {how}", n_targets=2,
                aggregate_function=how)
            add(x, dt, [2.], [0], [-0., 20.], [0, 0], f"-0 {how}", aggregate_function=how)
        for post in range(5):
            near = (2e-6, 1e-7) if post else SAME
            add(x[:2], dt, [.5], [0], [.25, .75], [0, 1], f"post {post} of two", n_targets=2, post_transform=post,
                near=near)
            add(x[:2], dt, [.5], [0], [.25, .75], [0, 0], f"post {post} of one", post_transform=post, near=near)
    return b


def machines(rng, count):
    b = Batch(1)
    near = (2e-5, 2e-6)
    for k in range(4 * count):
        n, kernel = int(rng.choice([2, 3, 4, 6])), ["LINEAR", "POLY", "RBF", "SIGMOID"][k % 4]
        per_class = [int(v) for v in rng.integers(1, 4, n)]
        vectors, pairs = sum(per_class), n * (n - 1) // 2
        post = "NONE" if k % 3 else POSTS[int(rng.integers(4))]
        prob = None if rng.random() < .5 else [(-np.abs(rng.normal(size=pairs))).astype(f32).tolist(),
                                               rng.normal(size=pairs).astype(f32).tolist()]
        b.add("SVMClassifier", [rng.normal(size=(12, 3)).astype(f32)], [7, 1], near,
              classlabels_ints=[10 + v for v in range(n)], kernel_params=[.5, .25, 3.], kernel_type=kernel,
              coefficients=rng.normal(size=(n - 1) * vectors).astype(f32).tolist(), vectors_per_class=per_class,
              rho=rng.normal(size=pairs).astype(f32).tolist(), prob_a=prob and prob[0], prob_b=prob and prob[1],
              support_vectors=rng.normal(size=vectors * 3).astype(f32).tolist(), post_transform=post,
              title=f"SVM {n} classes {kernel} {post} {'probabilities' if prob else ''}")
        b.add("SVMRegressor", [rng.normal(size=(6, 3)).astype(f32)], [1], near, kernel_params=[.5, .25, 3.],
              kernel_type=kernel, coefficients=rng.normal(size=vectors).astype(f32).tolist(), n_supports=vectors,
              rho=[float(f32(rng.normal()))], one_class=int(k % 3 == 0),
              support_vectors=rng.normal(size=vectors * 3).astype(f32).tolist(), title=f"SVM regressor {kernel}")
    x = np.array([[1., 0], [0, 1], [.5, .5], [-1, 2]], f32)
    for post in POSTS:
        for w in ([.5, .7], [.5, -.7]):
            mask = np.array([[True, False]] * 4) if post == "PROBIT" else None
            b.add("SVMClassifier", [x], [7, 1], near, classlabels_ints=[4, 9], coefficients=w, rho=[.1],
                  kernel_params=[1., 0., 3.], kernel_type="LINEAR", support_vectors=[1., 0., 0., 1.],
                  vectors_per_class=[1, 1], post_transform=post, mask=mask)
        b.add("SVMClassifier", [x], [7, 1], near, classlabels_ints=[4, 9, 2], coefficients=[1., 0, 0, 1, 1, 1],
              kernel_params=[1., 0., 3.], kernel_type="RBF", rho=[.1, .2, .3], post_transform=post)
    b.add("SVMRegressor", [x], [1], near, coefficients=[1., 2.], n_supports=0, rho=[.5], kernel_params=[1., 0., 3.],
          kernel_type="LINEAR", post_transform="LOGISTIC")
    unknown = np.array([[1, NAN], [NAN, NAN], [.5, .2]], f32)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        for n in (2, 3, 4):
            pairs = n * (n - 1) // 2
            b.add("SVMClassifier", [unknown], [7, 1], near, classlabels_ints=list(range(n)), kernel_type=kernel,
                  kernel_params=[.5, .25, 3.], coefficients=rng.normal(size=(n - 1) * n).astype(f32).tolist(),
                  vectors_per_class=[1] * n, rho=[.1] * pairs, prob_a=[-1.] * pairs, prob_b=[.1] * pairs,
                  support_vectors=rng.normal(size=2 * n).astype(f32).tolist(), title=f"SVM {n} {kernel} of NaN")
    for n in (2, 6):  # products of 1e7 that nearly cancel, exact in f32; onnxruntime adds them in f64
        vectors, pairs = 10 * n, n * (n - 1) // 2
        signs = np.tile([1., -1.], vectors // 2)
        c = rng.permuted(rng.integers(1, 6, (n - 1, vectors // 2)).repeat(2, 1) * signs, axis=1)
        b.add("SVMClassifier", [rng.integers(1000, 1004, (9, 3)).astype(f32)], [7, 1], near, kernel_type="LINEAR",
              classlabels_ints=list(range(n)), coefficients=c.ravel().tolist(), kernel_params=[1., 0., 3.],
              vectors_per_class=[10] * n, rho=[.1] * pairs,
              support_vectors=rng.integers(1000, 1004, vectors * 3).astype(f32).tolist())
    return b


FORMS = ("table", "branches", "complete", "links", "levels", "vectors")  # of trees, for this machine
HAS_TREES = ("regressors", "classifiers", "ensembles")
GROUPS = {"linear": linear, "scalers": scalers, "encoders": encoders, "labels2": label_encoders(2),
          "labels4": label_encoders(4), "regressors": regressors, "classifiers": classifiers,
          "ensembles": ensembles, "machines": machines}

# --- what must be refused: (operator, version, arrays, output types, attributes, words of the message) ---

ROW = np.ones((1, 2), f32)
STUMP = dict(nodes_nodeids=[0, 1, 2], nodes_treeids=[0] * 3, nodes_featureids=[0] * 3, nodes_values=[.5, 0., 0.],
             nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
             target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1., 2.], n_targets=1)
CHAIN = dict(STUMP, nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], nodes_truenodeids=[1, 0, 0],
             nodes_falsenodeids=[2, 2, 0])
TREES_REFUSED = [
    ({**STUMP, "nodes_truenodeids": [0, 0, 0]}, "has no child"),
    ({**STUMP, "nodes_truenodeids": [9, 0, 0]}, "has no child"),
    ({**STUMP, "nodes_featureids": [2, 0, 0]}, "reads feature 2; there are 2"),
    ({**STUMP, "nodes_featureids": [-1, 0, 0]}, "reads feature -1; there are 2"),
    ({**STUMP, "target_ids": [0, 1]}, "weight 1 is for target 1; there are 1"),
    ({**STUMP, "target_nodeids": [1, 7]}, "for node 7 of tree 0, which is missing"),
    ({**STUMP, "nodes_values": [.5, 0.]}, "nodes_values has 2 entries"),
    ({**STUMP, "nodes_modes": ["BRANCH_X", "LEAF", "LEAF"]}, "nodes have no mode"),
    ({**STUMP, "base_values": [1., 2.]}, "base_values has 2 entries"),
    ({**STUMP, "n_targets": 0}, "targets cannot be 0"),
    (CHAIN, "deeper than"),
]
REFUSED = [
    *[("TreeEnsembleRegressor", 3, [ROW], [1], a, words) for a, words in TREES_REFUSED],
    ("SVMRegressor", 1, [ROW], [1], dict(n_supports=1, coefficients=[1.], rho=[0.], support_vectors=[1.]), "vectors"),
    ("SVMRegressor", 1, [ROW], [1], dict(n_supports=1, coefficients=[1.], support_vectors=[1., 2.]), "rho"),
    ("SVMClassifier", 1, [ROW], [7, 1], dict(vectors_per_class=[1, -1], coefficients=[1.], rho=[0.],
                                             classlabels_ints=[0, 1]), "vectors_per_class"),
    ("SVMClassifier", 1, [ROW], [7, 1], dict(vectors_per_class=[1, 0], coefficients=[1., 1.], rho=[0.],
                                             support_vectors=[1., 2.], classlabels_ints=[0, 1]), "2 classes"),
    ("LinearClassifier", 1, [ROW], [7, 1], dict(coefficients=[1., 2.], classlabels_ints=[0, 1]), "intercepts"),
    ("LinearRegressor", 1, [ROW], [1], dict(coefficients=[1., 2., 3.], targets=1), "coefficients"),
    ("Scaler", 1, [ROW], [1], dict(scale=[2.]), "offset"),
    ("Scaler", 1, [ROW], [1], dict(scale=[2., 1., 1.], offset=[1., 1., 1.]), "offset"),
    ("Normalizer", 1, [np.ones((1, 2, 2), f32)], [1], dict(norm="L1"), "rows of features"),
    ("Normalizer", 1, [ROW], [1], dict(norm="L7"), "no norm"),
    ("Imputer", 1, [ROW], [1], {}, "imputed_value_floats"),
    ("OneHotEncoder", 1, [ROW], [1], {}, "cats_int64s"),
    ("LabelEncoder", 2, [np.array([1])], [7], dict(keys_int64s=[1], values_int64s=[4, 5]), "1 keys and 2 values"),
    ("LabelEncoder", 2, [ROW], [7], dict(keys_int64s=[1], values_int64s=[4]), "the keys are i64"),
    ("FeatureVectorizer", 1, [ROW], [1], dict(inputdimensions=[1, 2]), "inputdimensions"),
]


def check_refused(lathe, folder):
    bad = []
    for operator, version, arrays, outputs, attributes, words in REFUSED:
        b = Batch(version)
        b.add(operator, arrays, outputs, **attributes)
        path = os.path.join(folder, "refused.onnx")
        onnx.save(b.model(), path)
        run = subprocess.run([lathe, "compile", path, "-o", os.path.join(folder, "refused")], capture_output=True,
                             text=True, timeout=package.TIME_LIMIT)
        if run.returncode != 1 or words not in run.stderr:
            bad.append(f"{operator} {attributes}: status {run.returncode}: {run.stderr.strip()[:200]}")
    return bad


def check_counts(lathe, folder):
    """inspect of open rows counts the operators of the file, however many nodes each becomes."""
    path, names = os.path.join(folder, "open.onnx"), ("Scaler", "Normalizer", "Binarizer")
    nodes = [helper.make_node(op, [f"x{i}"], [f"x{i + 1}"], domain=DOMAIN) for i, op in enumerate(names)]
    nodes[0].attribute.extend([helper.make_attribute("offset", [1.]), helper.make_attribute("scale", [2.])])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 4]) for name in ("x0", "x3")]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "open", ends[:1], ends[1:]), opset_imports=sets), path)
    run = subprocess.run([lathe, "inspect", path, "--json"], capture_output=True, text=True,
                         timeout=package.TIME_LIMIT)
    got = {o["kind"]: o["count"] for o in json.loads(run.stdout)["result"].get("operators", [])}
    return [] if got == dict.fromkeys(names, 1) else [f"inspect counts {got}"]


# --- maps ---

VALUES = {TensorProto.FLOAT: f32, TensorProto.DOUBLE: f64, TensorProto.INT64: i64}
CASTS = {"TO_FLOAT": TensorProto.FLOAT, "TO_INT64": TensorProto.INT64, "TO_STRING": TensorProto.STRING}


def as_array(items, kind):
    return np.array(items, "S16") if kind == TensorProto.STRING else np.array(items, VALUES[kind])


def cast(value, to):
    if to == "TO_STRING":
        return value if isinstance(value, str) else f"{value:f}"
    return f32(value) if to == "TO_FLOAT" else i64(value)


def expected(operator, entries, kind, attributes):
    """What the operator is defined to give; onnxruntime takes from Python only maps to floats that are not empty."""
    if operator == "DictVectorizer":
        words = attributes.get("string_vocabulary", attributes.get("int64_vocabulary"))
        return np.array([[entries.get(w, "" if kind == TensorProto.STRING else VALUES[kind](0)) for w in words]])
    to = attributes["cast_to"]
    if attributes["map_form"] == "DENSE":
        return np.array([[cast(entries[k], to) for k in sorted(entries)]])
    none = "0.f" if to == "TO_STRING" else cast(0, to)
    return np.array([[cast(entries[k], to) if k in entries else none for k in range(attributes["max_map"])]])


def random_value(rng, kind, to):
    if kind == TensorProto.STRING:
        return str(rng.choice(["-7", "30"] if to == "TO_INT64" else ["1.5", "-2", "4e2", "0.1"]))
    value = VALUES[kind](rng.normal() * 10.0 ** rng.integers(-8, 12))
    return value.item()


def map_cases(rng):
    """operator, type of keys, type of values, type of the result, entries, attributes"""
    n, string = int(rng.choice([0, 1, 3, 7])), TensorProto.STRING
    for keys, values in ((string, TensorProto.INT64), (string, TensorProto.FLOAT), (string, TensorProto.DOUBLE),
                         (TensorProto.INT64, string), (TensorProto.INT64, TensorProto.FLOAT),
                         (TensorProto.INT64, TensorProto.DOUBLE)):
        known = [int(v) for v in rng.permutation(12) - 3]
        known = [f"w{v}" for v in known] if keys == string else known
        entries = {known[i]: random_value(rng, values, "") for i in rng.permutation(12)[:n]}
        words = known[:5] + known[:int(rng.integers(2))]
        yield ("DictVectorizer", keys, values, values, entries,
               {"string_vocabulary" if keys == string else "int64_vocabulary": words})
    for values in (TensorProto.FLOAT, string):
        for to, kind in CASTS.items():
            for form in ("DENSE", "SPARSE"):
                entries = {int(k): random_value(rng, values, to) for k in rng.permutation(12)[:n]}
                yield ("CastMap", TensorProto.INT64, values, kind, entries,
                       {"cast_to": to, "map_form": form, "max_map": 8})


def map_model(cases):
    inputs, outputs, nodes = [], [], []
    for i, (operator, keys, values, kind, _, attributes) in enumerate(cases):
        held = helper.make_map_type_proto(keys, helper.make_tensor_type_proto(values, []))
        inputs.append(helper.make_value_info(f"m{i}", held))
        outputs.append(helper.make_tensor_value_info(f"y{i}", kind, None))
        nodes.append(helper.make_node(operator, [f"m{i}"], [f"y{i}"], domain=DOMAIN, **attributes))
    graph = helper.make_graph(nodes, "maps", inputs, outputs)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def write_map(path, keys, values, entries):
    """As onnx's MapProto, or its arrays."""
    if path.endswith(".npz"):
        np.savez(path, keys=as_array(list(entries), keys), values=as_array(list(entries.values()), values))
        return
    held = onnx.MapProto(key_type=keys)
    (held.string_keys if keys == TensorProto.STRING else held.keys).extend(
        [k.encode() for k in entries] if keys == TensorProto.STRING else list(entries))
    held.values.elem_type = onnx.SequenceProto.TENSOR
    for value in entries.values():
        value = [value.encode()] if values == TensorProto.STRING else [value]
        held.values.tensor_values.append(helper.make_tensor("", values, [], value))
    with open(path, "wb") as f:
        f.write(held.SerializeToString())


def check_maps(lathe, folder, count, targets, seed):
    bad, outputs = [], 0
    for k in range(count):
        cases = list(map_cases(np.random.default_rng([seed, 100, k])))
        want = [expected(operator, entries, kind, attributes) for operator, _, _, kind, entries, attributes in cases]
        for case, one in zip(cases, want):
            if case[4] and case[2] == TensorProto.FLOAT:
                same = reference(map_model([case]), {"m0": case[4]})["y0"]
                assert same.shape == one.shape and (same == one).all(), (case, same, one)
        path = os.path.join(folder, "maps.onnx")
        onnx.save(map_model(cases), path)
        command = [lathe, "run", path, "--output-dir", os.path.join(folder, "out")]
        for i, (_, keys, values, _, entries, _) in enumerate(cases):
            file = os.path.join(folder, f"m{i}." + ("pb" if entries and (i + k) % 2 else "npz"))
            write_map(file, keys, values, entries)
            command += ["--input", f"m{i}={file}"]
        for target in targets:
            how = ["--interpret"] if target == "interpret" else ["--target", target]
            run = subprocess.run(command + how, capture_output=True, text=True, timeout=package.TIME_LIMIT,
                                 env=environment_of(target))
            if run.returncode:
                bad.append(f"maps on {target}: {run.stderr.strip()[:400]}")
                continue
            for i, (case, one) in enumerate(zip(cases, want)):
                got = np.load(os.path.join(folder, "out", f"y{i}.npy"))
                got = np.char.decode(got) if got.dtype.kind == "S" else got
                outputs += 1
                if got.shape != one.shape or not (got == one).all():
                    bad.append(f"maps on {target}, {k}: {case}: {got} in place of {one}")
    return bad, outputs


# --- running ---


def environment_of(target):
    return {**os.environ, "CFLAGS": package.QUICK} if target.startswith("qemu") else package.environment()


def run_lathe(lathe, path, feed, target, folder):
    command = [lathe, "run", path, "--output-dir", os.path.join(folder, "out")]
    form = ["--trees", target] if target in FORMS else ["--target", target]
    command += ["--interpret"] if target == "interpret" else form
    for name, array in feed.items():
        file = os.path.join(folder, name + ".npy")
        np.save(file, array)
        command += ["--input", f"{name}={file}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=package.TIME_LIMIT,
                         env=environment_of(target))
    if run.returncode != 0:
        return None, (run.stderr.strip() or f"status {run.returncode}")[:400]
    return lambda name: np.load(os.path.join(folder, "out", name + ".npy")), ""


def difference(got, want, near, mask):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} in place of {want.dtype}{want.shape}"
    if mask is not None and got.ndim == mask.ndim:
        got, want = got[mask], want[mask]
    if near == SAME or want.dtype.kind != "f":
        same = got == want if want.dtype.kind != "f" else (got == want) & (np.signbit(got) == np.signbit(want)) | (
            np.isnan(got) & np.isnan(want))
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(got, want, near[0], near[1], equal_nan=True)
    if same.all():
        return None
    at = tuple(np.argwhere(~same)[0])
    return f"{int((~same).sum())} of {same.size} differ: {got[at]!r} in place of {want[at]!r} at {at}"


def check(lathe, name, batch, targets, folder):
    path = os.path.join(folder, name + ".onnx")
    model = batch.model()
    onnx.save(model, path)
    want, bad = reference(model, batch.feed), []
    for target in targets:
        read, why = run_lathe(lathe, path, batch.feed, target, folder)
        if read is None:
            bad.append(f"{name} on {target}: {why}")
            continue
        for output in batch.near:
            diff = difference(read(output), np.asarray(want[output]), batch.near[output], batch.mask[output])
            if diff:
                bad.append(f"{name} on {target}: {batch.titles[output]}: {diff}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--count", type=int, default=3, help="how many random cases of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--targets", default="interpret,generic")
    parser.add_argument("--forms", default=",".join(FORMS[1:]), help="of trees, each beside the targets")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    bad, outputs = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, make) in enumerate(GROUPS.items()):
            if not fnmatch.fnmatch(name, args.filter):
                continue
            start = time.process_time()
            batch = make(np.random.default_rng([args.seed, number]), args.count)
            outputs += len(batch.near)
            targets = args.targets.split(",") + (args.forms.split(",") if name in HAS_TREES and args.forms else [])
            found = check(os.path.abspath(args.lathe), name, batch, targets, folder)
            bad += found
            if args.v:
                print(f"{name}: {len(batch.near)} outputs, {len(found)} wrong, {time.process_time() - start:.1f} s")
        if fnmatch.fnmatch("maps", args.filter):
            targets = args.targets.split(",")
            found, more = check_maps(os.path.abspath(args.lathe), folder, args.count, targets, args.seed)
            bad += found
            outputs += more
        if fnmatch.fnmatch("refused", args.filter):
            bad += check_refused(os.path.abspath(args.lathe), folder)
            bad += check_counts(os.path.abspath(args.lathe), folder)
    for line in bad:
        print(line)
    print(f"ml: {outputs} outputs on {args.targets}, {len(bad)} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
