#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml against onnxruntime with one thread: hand-made and random models.

    ml.py [--lathe FILE] [--count N] [--seed N] [--filter GLOB] [--targets T,T...] [-v]

Nodes of one family are the batch of one model, so that a target takes one compile of C. Each output is equal in every
bit, unless its case allows a difference. Refusals are models that must end with an error."""
import argparse
import fnmatch
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


GROUPS = {"linear": linear, "scalers": scalers, "encoders": encoders, "labels2": label_encoders(2),
          "labels4": label_encoders(4)}

# --- what must be refused: (operator, version, arrays, output types, attributes, words of the message) ---

ROW = np.ones((1, 2), f32)
REFUSED = [
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


# --- running ---


def run_lathe(lathe, path, feed, target, folder):
    command = [lathe, "run", path, "--output-dir", os.path.join(folder, "out")]
    command += ["--interpret"] if target == "interpret" else ["--target", target]
    for name, array in feed.items():
        file = os.path.join(folder, name + ".npy")
        np.save(file, array)
        command += ["--input", f"{name}={file}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=package.TIME_LIMIT,
                         env={**os.environ, "CFLAGS": "-O1"})
    if run.returncode != 0:
        return None, (run.stderr.strip() or f"status {run.returncode}")[:400]
    return lambda name: np.load(os.path.join(folder, "out", name + ".npy")), ""


def difference(got, want, near, mask):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} in place of {want.dtype}{want.shape}"
    if mask is not None:
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
            found = check(os.path.abspath(args.lathe), name, batch, args.targets.split(","), folder)
            bad += found
            if args.v:
                print(f"{name}: {len(batch.near)} outputs, {len(found)} wrong, {time.process_time() - start:.1f} s")
        if fnmatch.fnmatch("refused", args.filter):
            bad += check_refused(os.path.abspath(args.lathe), folder)
    for line in bad:
        print(line)
    print(f"ml: {outputs} outputs on {args.targets}, {len(bad)} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
