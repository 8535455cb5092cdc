#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classical models on a Cortex-M4, and in batches beside onnxruntime: the table of docs/reference/ml-operators.md.

    classical.py [--lathe FILE] [--filter GLOB] [--samples N] [--write]

Trains eight models on scikit-learn's digits with noise, with fixed seeds. `lathe verify --target qemu-m4` compares each
of them with onnxruntime on samples that no model was trained on, and counts instructions; the C is built with -Os.
Trees are measured in each form. `lathe bench` then runs batches of 1000 rows in turns with onnxruntime. --write puts
the rows into the page. The Python that runs this needs scikit-learn, skl2onnx, xgboost and onnxmltools; LATHE_PYTHON
names one with onnxruntime. Without these, or the emulator, the exit status is 77."""
import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs", "reference", "ml-operators.md")
BEGIN, END = "<!-- table: made by scripts/classical.py -->", "<!-- end of the table -->"
FORMS = ("table", "links", "branches", "complete", "levels", "vectors")
TRAINED, TESTED = 1200, 500


def data():
    import numpy as np
    from sklearn.datasets import load_digits
    digits, rng = load_digits(), np.random.default_rng(3)
    order = rng.permutation(len(digits.data))
    rows = (digits.data[order] + rng.normal(0, .3, digits.data.shape)).astype(np.float32)
    return rows, digits.target[order]


def estimators():
    """Title, whether it has trees, whether it tells two classes apart, rows that it is trained on, the model."""
    from sklearn import ensemble, linear_model, neural_network, svm, tree
    from xgboost import XGBClassifier
    return [
        ("decision tree", True, False, TRAINED, tree.DecisionTreeClassifier(random_state=1)),
        ("random forest, 10 x depth 8", True, False, TRAINED,
         ensemble.RandomForestClassifier(10, max_depth=8, random_state=1)),
        ("extra trees, 50 x depth 8", True, False, TRAINED,
         ensemble.ExtraTreesClassifier(50, max_depth=8, random_state=1)),
        ("gradient boosting, 100 x depth 3", True, True, TRAINED,
         ensemble.GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=1)),
        ("XGBoost, 100 x depth 3", True, True, TRAINED,
         XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1, base_score=.5)),
        ("logistic regression", False, False, TRAINED, linear_model.LogisticRegression(max_iter=300)),
        ("support vectors, RBF", False, True, 255, svm.SVC(gamma=.001, C=10.)),
        ("MLP, 64-32-10", False, False, TRAINED,
         neural_network.MLPClassifier((32,), max_iter=150, random_state=1)),
    ]


def export(model, path, rows):
    """One row, or an open number of them, for which the file declares `rows`."""
    import onnx
    if type(model).__module__.startswith("xgboost"):
        from onnxmltools import convert_xgboost
        from onnxmltools.convert.common.data_types import FloatTensorType
        made = convert_xgboost(model, initial_types=[("X", FloatTensorType([rows, 64]))])
    else:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType
        made = convert_sklearn(model, initial_types=[("X", FloatTensorType([rows, 64]))],
                               options={id(model): {"zipmap": False}}, target_opset={"": 17, "ai.onnx.ml": 3})
    for value in made.graph.output:  # exporters declare them as they like
        for d in value.type.tensor_type.shape.dim:
            d.Clear()
    onnx.save(made, path)


def ask(lathe, *words, **environment):
    done = subprocess.run([lathe, *words, "--json"], capture_output=True, text=True,
                          env={**os.environ, **environment})
    answer = json.loads(done.stdout)
    if done.returncode != 0:
        raise SystemExit(f"lathe {' '.join(words)}: {[d['text'] for d in answer['diagnostics']]}")
    return answer["result"]


def on_board(lathe, path, samples, form):
    options = ["--trees", form] if form else []
    b = ask(lathe, "verify", path, "--target", "qemu-m4", "--against", "onnxruntime", "--data", samples, *options,
            CFLAGS="-Os")["board"]
    return {"flash": b["text"] + b["rodata"] + b["data"], "ram": b["data"] + b["bss"] + b["stack"],
            "instructions": b["instructions"] - b["counting"]}


def in_batches(lathe, path, rows):
    return ask(lathe, "bench", path, "--workers", "1", "--against", "onnxruntime", "--input", "X=" + rows)["ratio"]


def measure(lathe, pattern, n_samples, folder):
    import numpy as np
    rows, digits = data()
    test = rows[TRAINED:TRAINED + TESTED]
    samples, batch = os.path.join(folder, "samples.npz"), os.path.join(folder, "batch.npy")
    np.savez(samples, X=test[:n_samples, None, :])
    np.save(batch, np.concatenate([test, test[::-1]]))
    for title, trees, two, count, model in estimators():
        if not fnmatch.fnmatch(title, pattern):
            continue
        model.fit(rows[:count], (digits[:count] >= 5).astype(int) if two else digits[:count])
        one, many = os.path.join(folder, "one.onnx"), os.path.join(folder, "many.onnx")
        export(model, one, 1)
        export(model, many, 1000)
        found = [(form, on_board(lathe, one, samples, form)) for form in (FORMS if trees else [None])]
        found = found[:1] + [f for f in found[1:] if f[1] != found[0][1]]  # trees that cannot have a form are tables
        ratio = in_batches(lathe, many, batch)
        for k, (form, b) in enumerate(found):
            name = title + (f", `{form}`" if form else "")
            yield (f"| {name} | {b['flash'] / 1000:.1f} KB | {b['ram']} | {b['instructions']:,} | "
                   f"{f'{ratio:.1f}' if k == 0 else ''} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--samples", type=int, default=TESTED, help="rows that the board gets")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # of training
    try:
        import onnxmltools, skl2onnx, sklearn, xgboost  # noqa: E401, F401
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: no emulator of a Cortex-M4")
        return 77
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(os.path.abspath(args.lathe), args.filter, args.samples, folder):
            print(row, flush=True)
            table.append(row)
    if args.write and args.filter == "*":
        with open(PAGE, encoding="utf-8") as f:
            head, rest = f.read().split(BEGIN)
        top = "| model | flash | RAM, bytes | instructions | 1000 rows |\n|---|---|---|---|---|\n"
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(head + BEGIN + "\n" + top + "\n".join(table) + "\n" + END + rest.split(END, 1)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
