#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classical models on a Cortex-M4, and beside onnxruntime: the tables of docs/reference/ml-operators.md.

    classical.py [--lathe FILE] [--filter GLOB] [--samples N] [--write] | --goals | --check

Trains eight models on scikit-learn's digits with noise, with fixed seeds. Each package is built with -Os and without
hooks, and classical.c calls it in an emulator of a Cortex-M4 with rows that no model was trained on. The table has the
mean of their instructions; labels have to be onnxruntime's, and scores near. Trees are measured in each form. `lathe
bench` then runs one row and batches of 1000 rows in turns with onnxruntime. The second table says which of GOALS are
met, and is made from the first. --write puts both into the page; --goals makes the second again, and --check compares
the two. The Python that measures needs scikit-learn, skl2onnx, xgboost and onnxmltools; LATHE_PYTHON names one with
onnxruntime. Without these, or the emulator, the exit status is 77."""
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
BEGIN_GOALS, END_GOALS = "<!-- goals: made by scripts/classical.py -->", "<!-- end of the goals -->"
TRAINED, TESTED = 1200, 500
RAM = 100  # bytes beside inputs and outputs
# By title: bytes of flash and instructions on the board, of one form or of several that each meet a pair (None: any),
# and how many times as fast as onnxruntime a batch of 1000 rows is, and one row, where the time of an Identity model is
# taken off onnxruntime's.
GOALS = {
    "decision tree": ([(1600, None), (None, 190)], None, 4),
    "random forest, 10 x depth 8": ([(12000, 1900), (22000, 700)], 4, 4),
    "extra trees, 50 x depth 8": ([(100000, 7500)], 4, 4),
    "gradient boosting, 100 x depth 3": ([(9000, 4500)], 4, 4),
    "XGBoost, 100 x depth 3": ([(9000, 4500)], 4, 4),
    "logistic regression": ([(2900, 2400)], 1, None),
    "support vectors, RBF": ([(42000, 60000)], 4, None),
    "MLP, 64-32-10": ([(9900, 9000)], 1, None),
}


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


def expected(path, rows, folder):
    """Labels and scores of onnxruntime with one thread, row by row."""
    code = """
import sys
import numpy as np
import onnxruntime
model, rows, answers = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options)
both = [session.run(None, {"X": row[None]}) for row in np.load(rows)]
np.savez(answers, labels=[int(b[0].reshape(-1)[0]) for b in both], scores=[b[1].reshape(-1) for b in both])
"""
    given, answers = os.path.join(folder, "rows.npy"), os.path.join(folder, "answers.npz")
    import numpy as np
    np.save(given, rows)
    subprocess.run([os.environ.get("LATHE_PYTHON", sys.executable), "-c", code, path, given, answers], check=True)
    with np.load(answers) as found:
        return found["labels"], found["scores"]


def tool(folder, *words):
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def sections(folder):
    """Bytes that the package takes in flash and in RAM, as `lathe verify` counts them."""
    flash = ram = 0
    for line in tool(folder, "arm-none-eabi-objdump", "-h", "-w", "package.o").splitlines():
        words = line.split()
        if "ALLOC" not in line or words[1].startswith((".ARM.", ".eh_frame")):
            continue
        kept, size = "CODE" in line or "READONLY" in line, int(words[2], 16)
        flash += size if kept or words[1].startswith(".data") else 0
        ram += 0 if kept else size
    return flash, ram


def build(folder, said, rows):
    """The package alone, package.o, and the program that calls it."""
    board = os.path.join(TOP, "runtime", "board")
    compiler = ["arm-none-eabi-gcc", "-std=gnu99", "-Os", *said["target_cflags"].split(), "-Isrc", "-Iinclude",
                "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-DTVMRT_NUM_WORKERS=0",
                "-DTVMRT_LOG_ENABLE=0", "-DTVMRT_HOOKS=0"]
    parts = ("default_lib0", "default_lib1", "model_data", "ops", "tvmrt", "tvmrt_port_baremetal")
    outputs = ",".join(f".{o['c_name']}=(void *){to}" for o, to in zip(said["outputs"], ("label", "scores")))
    label, scores = [o["bytes"] for o in said["outputs"]]
    tool(folder, *compiler, "-c", *[f"src/{name}.c" for name in parts])
    tool(folder, *compiler, "-nostdlib", "-r", "-Wl,-e,tvmgen_default_run,-u,tvmgen_default_run",
         *[name + ".o" for name in parts], "-o", "package.o")
    tool(folder, *compiler, "-DBOARD", f"-DROWS={len(rows)}", f"-DROW_BYTES={rows[0].nbytes}",
         f"-DLABEL_BYTES={label}", f"-DSCORES_BYTES={scores}", "-DOUTPUTS=" + outputs, "-I" + board,
         os.path.join(TOP, "scripts", "classical.c"), os.path.join(board, "startup_mps2.c"),
         os.path.join(board, "semihost.c"), "package.o", "-T", os.path.join(board, "mps2.ld"), "--specs=nano.specs",
         "--specs=nosys.specs", "-nostartfiles", "-lm", "-o", "program")


def on_board(lathe, path, rows, answers, form):
    """What the package takes; an error if a label is another than onnxruntime's, or a score is not near it."""
    import numpy as np
    labels, scores = answers
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "package")
        ask(lathe, "compile", path, "--target", "cortex-m4", *(["--trees", form] if form else []), "-o", folder)
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
            build(folder, json.load(f), rows)
        rows.tofile(os.path.join(folder, "rows.bin"))
        tool(folder, "qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-serial", "null", "-monitor", "none",
             "-semihosting-config", "enable=on,target=native", "-icount", "shift=0", "-kernel", "program")
        counted, stack = np.fromfile(os.path.join(folder, "measured.bin"), "<i8")
        answer = np.fromfile(os.path.join(folder, "answer.bin"), np.uint8).reshape(len(rows), -1)
        flash, ram = sections(folder)
    wrong = int((answer[:, :8].copy().view("<i8")[:, 0] != labels).sum())
    worst = float(np.abs(answer[:, 8:].copy().view("<f4") - scores).max())
    if wrong or not worst < 1e-5:
        raise SystemExit(f"{path}, {form}: {wrong} labels of {len(rows)} are wrong, and scores by up to {worst}")
    return {"flash": flash, "ram": ram + int(stack), "instructions": round(float(counted) / len(rows))}


def beside(lathe, path, rows):
    """Milliseconds of Lathe and of onnxruntime."""
    runs = ask(lathe, "bench", path, "--workers", "1", "--against", "onnxruntime", "--input", "X=" + rows)["runs"]
    return [next(r["median_ms"] for r in runs if r["who"] == who) for who in ("lathe", "onnxruntime")]


def identity(lathe, folder, rows):
    """What onnxruntime takes for one row and no work."""
    import onnx
    from onnx import TensorProto, helper
    path = os.path.join(folder, "identity.onnx")
    x, y = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 64]) for n in "XY"]
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "identity", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return beside(lathe, path, rows)[1]


def nearest(rows, flash, instructions):
    """The row of the form that comes nearest to both limits, of which one may be None, and its share of them."""
    return min(((max(r[key] / most for key, most in (("flash", flash), ("instructions", instructions)) if most), k)
                for k, r in enumerate(rows)))


def goals_of(table):
    """Rows of the second table, made from those of the first: a row for each goal, and what comes nearest to it."""
    models = {}
    for line in table:
        name, flash, ram, instructions, many, one = [cell.strip() for cell in line.strip("|").split("|")]
        title, _, form = name.partition(", `")
        models.setdefault(title, []).append({
            "form": f" (`{form}" + ")" if form else "", "flash": float(flash.split()[0]) * 1000, "ram": int(ram),
            "instructions": int(instructions.replace(",", "")), "many": float(many or 0), "one": float(one or 0)})
    for title, rows in models.items():
        pairs, many, one = GOALS[title]
        for flash, instructions in pairs:
            share, k = nearest(rows, flash, instructions)
            want, reached = [], []
            if flash:
                want.append(f"{flash / 1000:g} KB")
                reached.append(f"{rows[k]['flash'] / 1000:.1f} KB")
            if instructions:
                want.append(f"{instructions:,} instructions")
                reached.append(f"{rows[k]['instructions']:,} instructions")
            yield row_of(title, ", ".join(want), ", ".join(reached) + rows[k]["form"], share <= 1)
        least = min(rows, key=lambda r: r["ram"])
        yield row_of(title, f"{RAM} bytes of RAM", str(least["ram"]) + least["form"], least["ram"] <= RAM)
        for goal, key, what in ((many, "many", "1000 rows"), (one, "one", "one row")):
            if goal and rows[0][key]:
                yield row_of(title, f"{what}: {goal} times as fast", f"{rows[0][key]:.1f}", rows[0][key] >= goal)
            elif goal:
                yield row_of(title, f"{what}: {goal} times as fast", "not measured", False)


def row_of(title, goal, reached, met):
    return f"| {title} | {goal} | {reached} | {'yes' if met else 'no'} |"


def measure(lathe, pattern, n_samples, folder):
    import numpy as np
    rows, digits = data()
    test = rows[TRAINED:TRAINED + TESTED]
    batch, single = [os.path.join(folder, name) for name in ("batch.npy", "single.npy")]
    np.save(single, test[:1])
    nothing = identity(lathe, folder, single)
    np.save(batch, np.concatenate([test, test[::-1]]))
    for title, trees, two, count, model in estimators():
        if not fnmatch.fnmatch(title, pattern):
            continue
        model.fit(rows[:count], (digits[:count] >= 5).astype(int) if two else digits[:count])
        one, many = os.path.join(folder, "one.onnx"), os.path.join(folder, "many.onnx")
        export(model, one, 1)
        export(model, many, 1000)
        answers = expected(one, test[:n_samples], folder)
        found = [(form, on_board(lathe, one, test[:n_samples], answers, form)) for form in (FORMS if trees else [None])]
        found = found[:1] + [f for f in found[1:] if f[1] != found[0][1]]  # trees that cannot have a form are tables
        (ours, theirs), (our_one, their_one) = beside(lathe, many, batch), beside(lathe, one, single)
        ratio = theirs / ours
        fast = f"{ratio:.1f} | {(their_one - nothing) / our_one:.1f}"
        for k, (form, b) in enumerate(found):
            name = title + (f", `{form}`" if form else "")
            yield (f"| {name} | {b['flash'] / 1000:.1f} KB | {b['ram']} | {b['instructions']:,} | "
                   f"{fast if k == 0 else ' | '} |")


def between(text, begin, end):
    """What stands before, in the table, and behind it."""
    head, rest = text.split(begin)
    table, tail = rest.split(end, 1)
    return head + begin, table, end + tail


def with_table(text, begin, end, top, rows):
    head, _, tail = between(text, begin, end)
    return head + "\n" + top + "\n" + "\n".join(rows) + "\n" + tail


def with_goals(text):
    table = between(text, BEGIN, END)[1].strip().split("\n")[2:]
    top = "| model | goal | reached | met |\n|---|---|---|---|"
    return with_table(text, BEGIN_GOALS, END_GOALS, top, goals_of(table))


def check():
    """The second table says what the first one does."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    same = with_goals(text) == text
    if not same:
        print("the table of goals is not what the first one says: classical.py --goals writes it")
    print(f"classical: {int(same)} passed, {int(not same)} failed")
    return 0 if same else 1


def write_page(change):
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(with_goals(change(text)))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("--samples", type=int, default=TESTED, help="rows that the board gets")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--goals", action="store_true", help="only write the second table, from the first")
    parser.add_argument("--check", action="store_true", help="only compare the second table with the first")
    args = parser.parse_args()
    if args.goals or args.check:
        return check() if args.check else write_page(lambda text: text)
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
        top = "| model | flash | RAM, bytes | instructions | 1000 rows | one row |\n|---|---|---|---|---|---|"
        return write_page(lambda text: with_table(text, BEGIN, END, top, table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
