# SPDX-License-Identifier: Apache-2.0
"""The package lathe as its users meet it: compile, call, save, load, errors, progress, threads, Ctrl-C."""

import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import lathe
import numpy as np
import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
DIGITS = TOP / "demo" / "digits.onnx"
ADD = b"""func @main(%x: f32[2, 3], %y: f32[2, 3]) {
  %s = add(%x, %y) : f32[2, 3]
  %p = multiply(%x, %y) : f32[2, 3]
  return %s, %p
}
"""
OPEN = b"""func @main(%x: f32[n, 2]) where n <= 5 {
  %y = add(%x, %x) : f32[n, 2]
  return %y
}
"""


@pytest.fixture(autouse=True)
def fast(monkeypatch, tmp_path):
    """Packages are built without optimisation; what they leave in $TMPDIR is seen."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("TMPDIR", str(scratch))
    yield
    assert list(scratch.iterdir()) == []


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    os.environ["CFLAGS"] = "-O0"
    return lathe.compile(ADD)


def test_lists():
    """Sequences are lists, optionals that have no element None, by position and by name."""
    path = TOP / "test" / "golden" / "sequence" / "lists.onnx"
    m = lathe.compile(path, dims={"xs": 2, "o": "none"}, shapes={"xs[0]": (3,), "xs[1]": (1,)})
    xs = [np.float32([1, 2, 3]), np.float32([4])]
    x, first = np.float32([7, 8]), np.int64(0)
    r = m.run(xs=xs, x=x, p=first, c=True, o=None)
    assert list(r) == ["ys", "n", "has", "same_o"] and r["same_o"] is None and int(r["n"]) == 3 and not r["has"]
    assert [y.tolist() for y in r["ys"]] == [[7, 8], [1, 2, 3], [4]]
    ys = m(xs, x, first, False, None)[0]
    assert [y.tolist() for y in ys] == [[1, 2, 3], [4]]
    assert [y.tolist() for y in m(x=x, p=first, c=False, xs_0=xs[0], xs_1=xs[1])[0]] == [[1, 2, 3], [4]]
    with pytest.raises(ValueError, match="input 'xs' has 1 elements, and the model is compiled for 2"):
        m.run(xs=xs[:1], x=x, p=first, c=True)
    with pytest.raises(ValueError, match="input 'o' has 1 elements, and the model is compiled for 0"):
        m.run(xs=xs, x=x, p=first, c=True, o=x)
    with pytest.raises(lathe.InputError, match="input 'p' is int64, which does not hold 0.5"):
        m.run(xs=xs, x=[7, 8], p=0.5, c=True)
    m = lathe.compile(path, dims={"xs": 1, "o": 1}, shapes={"xs[0]": (3,)}, emit="module")
    assert m.run(xs=xs[:1], x=x, p=first, c=True, o=x)["same_o"].tolist() == [7, 8]


@pytest.mark.parametrize("emit", ["c", "module"])
def test_maps(emit):
    """Maps are dicts: with entries that the model does not know, in any order, and with none."""
    m = lathe.compile(TOP / "test" / "golden" / "onnx" / "maps.onnx", dims={"words": "<=8", "places": 3}, emit=emit)
    assert [t.name for t in m.inputs] == ["words_keys", "words_values", "places_keys", "places_values"]
    places = {3: 0.5, 9: 7.0, 0: 1.5}
    found = m.run(words={"light": 2.0, "other": 9.0, "heat": 4.0}, places=places)
    assert {k: v.ravel().tolist() for k, v in found.items()} == {
        "row": [4, 2, 4], "sparse": [1, 0, 0], "dense": ["1.500000", "0.500000", "7.000000"]}
    assert m({}, places)[0].ravel().tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="input 'words' is a map: it takes a dict, not list"):
        m([("heat", 2.0)], places)
    with pytest.raises(lathe.InputError, match="'words_keys' has elements of type int, and has to be string"):
        m({1: 2.0}, places)
    with pytest.raises(lathe.InputError, match="extent 9 at axis 0, but words is at most 8"):
        m({str(i): 1.0 for i in range(9)}, places)


@pytest.mark.parametrize("emit", ["c", "module"])
def test_labels(emit):
    """A classifier with names of classes: numbers, and what they stand for."""
    m = lathe.compile(TOP / "test" / "golden" / "onnx" / "zip_map.onnx", dims={"X_0": 2}, emit=emit)
    found = m.run(np.float32([[9, 0, 0, 0], [1, 0, 1, 0]]))
    assert found["named"].tolist() == [0, 1] and found["probabilities"].tolist() == [[1, 0, 0], [0.25, 0.75, 0]]
    assert m.labels == {"named": ["a", "b", "c"], "probabilities": ["a", "b", "c"]}
    named, probabilities = m.labeled(found).values()
    assert named.tolist() == ["a", "b"]
    assert probabilities == [{"a": 1, "b": 0, "c": 0}, {"a": 0.25, "b": 0.75, "c": 0}]


def test_kinds_of_models(tmp_path):
    image = np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32)
    m = lathe.compile(DIGITS)
    assert repr(m) == "<lathe.Executable package: (image: float32[1, 1, 8, 8]) -> (probabilities: float32[1, 10])>"
    y = m(image)
    assert y.shape == (1, 10) and y.dtype == np.float32 and abs(y.sum() - 1) < 1e-5
    np.testing.assert_array_equal(lathe.compile(DIGITS.read_bytes())(image=image), y)
    assert m.report["module_name"] == "default" and m.inputs[0].shape == (1, 1, 8, 8)
    onnx = pytest.importorskip("onnx")
    np.testing.assert_array_equal(lathe.compile(onnx.load(DIGITS), workers=1)(image), y)
    with pytest.raises(TypeError, match="a path, bytes or an onnx.ModelProto, not int"):
        lathe.compile(3)


def test_calls(add):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 2, np.float32)
    s, p = add(x, y)
    np.testing.assert_array_equal(s, x + y)
    np.testing.assert_array_equal(p, x * y)
    assert list(add.run(x=x, y=y)) == ["s", "p"] == list(add.run({"x": x, "y": y}))
    frozen = x.copy()
    frozen.flags.writeable = False
    big = np.zeros((4, 6), np.float32)
    for way in (x[::-1], x[:, ::-1], x.T.copy().T, big[::2, ::2], frozen, np.broadcast_to(np.float32(3), (2, 3)),
                x.astype(">f4"), [[1, 2, 3], [4, 5, 6]]):
        np.testing.assert_array_equal(add(way, y)[0], np.asarray(way, np.float32) + y)
    wrong = (((x,), {}, "missing: y"), ((x, y, x), {}, "3 inputs are given, and the model takes 2: x, y"),
             ((x,), {"z": y}, "no input 'z'"), ((x, y), {"x": x}, "'x' is given twice"))
    for args, named, what in wrong:
        with pytest.raises(TypeError, match=what):
            add(*args, **named)
    with pytest.raises(lathe.InputError, match=r"input 'y' has the shape \[3\], and has to have \[2, 3\]"):
        add(x, y[0])
    with pytest.raises(lathe.InputError, match=r"several samples.*x\[0:2\]"):
        add(x, np.concatenate([y, y]))
    wrong = r"input 'x' is float64, and has to be float32 \[data\]\n.*x.astype\('float32'\)"
    with pytest.raises(lathe.InputError, match=wrong):
        add(x.astype(np.float64), y)


def test_numbers_do_not_wrap():
    m = lathe.compile(b"func @main(%x: i8[1, 2, 3]) {\n  %y = copy(%x) : i8[1, 2, 3]\n  return %y\n}\n")
    wrong = {
        r"\(x.astype\('int16'\) - 128\).astype\('int8'\)": np.zeros((1, 2, 3), np.uint8),
        r"int64.*\n.*if it is quantized, in NumPy: np.clip": np.zeros((1, 2, 3), np.int64),
        r"is int8, which does not hold 200": [[[1, 2, 200], [3, 4, 5]]],
        r"x.transpose\(0, 2, 1\)": np.zeros((1, 3, 2), np.int8),
    }
    for what, value in wrong.items():
        with pytest.raises(lathe.InputError, match=what):
            m(value)
    assert m([[[1, 2, -128], [3, 4, 5.0]]]).tolist() == [[[1, 2, -128], [3, 4, 5]]]


def test_results_outlive_the_model():
    m = lathe.compile(ADD)
    one = np.ones((2, 3), np.float32)
    first = m(one, one)[0]
    second = m(one, 2 * one)[0]
    del m
    assert (first == 2).all() and (second == 3).all()
    second[0, 0] = 7  # it is the caller's
    assert (first == 2).all()


def test_torch(add):
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32).reshape(3, 2).T.requires_grad_()
    np.testing.assert_array_equal(add(x, x)[0], 2 * x.detach().numpy())


BF16 = b"""func @main(%x: bf16[2, 3]) {
  %y = add(%x, %x) : bf16[2, 3]
  return %y
}
"""


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    m = lathe.compile(BF16)
    big = np.zeros((6, 4), ml_dtypes.bfloat16)
    big[::3, :3] = [[1, 2, 3], [4, 5, 1e38]]
    for x in (big[::3, :3], big[::3, 2::-1], big.T[:3, ::3].copy().T, [[1, 2, 3], [4, 5, 6]]):
        y = m(x)
        assert y.dtype == ml_dtypes.bfloat16 and y.flags.writeable
        np.testing.assert_array_equal(y, np.asarray(x, ml_dtypes.bfloat16) * ml_dtypes.bfloat16(2))
    for wrong, what in ((np.float32, "is float32"), (ml_dtypes.float8_e4m3fn, "is DLPack type 10 of 8 bits"),
                        (ml_dtypes.int4, "is int4"), (str, "is <U32")):
        with pytest.raises(lathe.InputError, match=f"input 'x' {what}.*, and has to be bfloat16"):
            m(np.zeros((2, 3), np.float32).astype(wrong))


def test_bfloat16_without_its_package(monkeypatch):
    m = lathe.compile(BF16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as if it were not installed
    with pytest.raises(lathe.EnvironmentFault, match="numpy has no bfloat16.*\n.*pip install ml_dtypes"):
        m([[1, 2, 3], [4, 5, 6]])


def test_bfloat16_of_torch():
    torch, ml_dtypes = pytest.importorskip("torch"), pytest.importorskip("ml_dtypes")
    x = torch.arange(6, dtype=torch.bfloat16).reshape(3, 2).T.requires_grad_()
    y = lathe.compile(BF16)(x)
    assert (torch.from_numpy(y.view(np.int16)).view(torch.bfloat16) == 2 * x).all()
    assert y.dtype == ml_dtypes.bfloat16


def test_scales(tmp_path):
    m = lathe.compile(DIGITS.with_name("digits_int8.tflite"), "generic")
    (x,), (y,) = m.inputs, m.outputs
    assert (x.dtype, y.dtype) == ("int8", "int8") and x.scale == m.report["inputs"][0]["scale"] > 0
    assert (y.scale, y.zero_point) == (1 / 256, -128)
    assert "probabilities: int8[1, 10] (scale 0.00390625, zero point -128)" in repr(m)
    m.save(tmp_path / "saved")
    assert lathe.load(tmp_path / "saved").outputs == (y,)
    assert lathe.compile(DIGITS, "generic").inputs[0].scale is None


def test_reference_page():
    """The table of docs/reference/python.md has the parameters of each function."""
    page = (TOP / "docs" / "reference" / "python.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.]+)\((.*?)\)` \|", page, re.M))
    functions = {n: vars(lathe)[n] for n in lathe.__all__ if inspect.isfunction(vars(lathe).get(n))}
    methods = {f"m.{n}": f for n, f in vars(lathe.Executable).items() if inspect.isfunction(f) and n[0] != "_"}
    for name, function in {**functions, **methods}.items():
        wanted = [p for p in inspect.signature(function).parameters if p != "self"]
        assert re.findall(r"(?:^|, )\**(\w+)", rows.pop(name)) == wanted, name
    assert list(rows) == ["m"]


def test_open_dimensions():
    m = lathe.compile(OPEN, dims={})
    assert m.inputs[0].shape == ("n", 2)
    for n in (0, 1, 5):
        assert m(np.ones((n, 2), np.float32)).shape == (n, 2)
    with pytest.raises(lathe.InputError, match="at most 5"):
        m(np.ones((6, 2), np.float32))


@pytest.mark.parametrize("emit", ["c", "module"])
def test_save_and_load(emit, tmp_path):
    x = np.ones((2, 3), np.float32)
    lathe.compile(ADD, emit=emit).save(tmp_path / "saved")
    m = lathe.load(tmp_path / "saved", workers=1)
    assert m.kind == ("module" if emit == "module" else "package")
    assert (m(x, x)[0] == 2).all() and [t.name for t in m.outputs] == ["s", "p"]
    with pytest.raises(lathe.InputError, match="nowhere"):
        lathe.load(tmp_path / "nowhere")


@pytest.mark.parametrize("emit", ["c", "module"])
def test_strings(emit):
    m = lathe.compile(TOP / "test" / "golden" / "string" / "strings.onnx", emit=emit, string_bytes=7)
    assert str(m.inputs[0]) == "x: string[2, 3]" and m.inputs[0].string_bytes == 7 and m.outputs[0].string_bytes == 9
    names = [["a", "b\u00e9", ".c"], [b"", "longest", "c"]]
    y, s, same = m(names)
    assert y.tolist() == [["a.c", ".c"], ["b\u00e9.c", "longest.c"], [".c.c", "c.c"]] and s.tolist() == [3, 2]
    assert (m.run(x=np.array(names, object))["y"] == y).all() and same.sum() == 1
    with pytest.raises(lathe.InputError, match="a string of 8 bytes"):
        m([["12345678", "", ""], ["", "", ""]])
    with pytest.raises(lathe.InputError, match="zero byte"):
        m([["1\x002", "", ""], ["", "", ""]])


def test_other_machines(tmp_path):
    m = lathe.compile(DIGITS, "cortex-m4", port="baremetal")
    m.save(tmp_path / "firmware")
    assert (tmp_path / "firmware" / "report.json").exists()
    with pytest.raises(lathe.UsageError, match="another system"):
        m(np.zeros((1, 1, 8, 8), np.float32))


def test_errors(monkeypatch):
    with pytest.raises(lathe.InputError) as e:
        lathe.compile(b"fun @main")
    d = e.value.diagnostics[0]
    assert (d.severity, d.code, d.where) == ("error", "format", "model:1:1") and "lathe compile" in d.hint
    assert isinstance(e.value, ValueError) and isinstance(e.value, lathe.Error)
    monkeypatch.setenv("LATHE_PYTHON", "/nowhere/python")
    with pytest.raises(lathe.EnvironmentFault) as e:
        lathe.verify(DIGITS, against="onnxruntime")
    first, *others = e.value.diagnostics  # notes, such as that of random inputs, stand behind
    assert first.severity == "error" and "LATHE_PYTHON" in first.hint and "error" not in [d.severity for d in others]
    with pytest.raises(lathe.UsageError, match="did you mean --target"):
        lathe.compile(DIGITS, targt="generic")
    with pytest.raises(lathe.UsageError, match="program alone"):
        lathe.compile(DIGITS, report="report.json")
    with pytest.warns(lathe.LatheWarning, match="nothing in .* is quantized"):
        lathe.compile(DIGITS, "generic", integers=True)


def test_verbs(tmp_path):
    about = lathe.inspect(DIGITS, "cortex-m4")
    assert about["target"] == "cortex-m4" and about["operators"]
    outputs = lathe.verify(DIGITS, against="interpreter", seeds=2)["outputs"]
    assert outputs[0]["name"] == "probabilities" and outputs[0]["wrong_samples"] == 0
    with pytest.raises(lathe.InputError, match="outside of the tolerance") as e:
        lathe.verify(DIGITS.read_bytes(), against="interpreter", rtol=0, atol=0)
    assert e.value.result["outputs"][0]["wrong"] > 0
    gain = lathe.tune(ADD, tmp_path / "tuned", candidates=2)
    assert gain["failed"] == 0
    np.save(tmp_path / "data.npy", np.random.default_rng(0).random((4, 1, 8, 8), dtype=np.float32))
    cost = lathe.quantize(DIGITS, tmp_path / "q.onnx", data=tmp_path / "data.npy")
    assert cost["quantized"] > 0 and (tmp_path / "q.onnx").exists()


def test_samples(tmp_path):
    pictures = np.random.default_rng(0).random((4, 1, 8, 8), dtype=np.float32)
    np.save(tmp_path / "data.npy", pictures)

    def quantized(data, **options):
        cost = lathe.quantize(DIGITS, tmp_path / "q.onnx", data=data, **options)
        assert cost["calibrated_on"] == 4
        return (tmp_path / "q.onnx").read_bytes()

    wanted = quantized(tmp_path / "data.npy")
    ways = (pictures, pictures[:, None], pictures.astype(">f4"), np.asfortranarray(pictures), pictures.tolist(),
            list(pictures), [p[None] for p in pictures], {"image": pictures}, [{"image": p} for p in pictures])
    for way in ways:
        assert quantized(way) == wanted
    assert quantized(str(tmp_path / "data.npy"), calibrate=pictures, labels=[1, 2, 3, 4]) == wanted
    wrong = ((pictures.astype(np.float64), lathe.InputError, r"^data holds f64\[4, 1, 8, 8\]; 'image' is f32"),
             (pictures[:, :, :7], lathe.InputError,
              r"^data has the shape \[4, 1, 7, 8\]; input 'image' is \[1, 1, 8, 8\]"),
             ({"imag": pictures}, lathe.InputError, "^data has no array for input 'image'; it has imag"),
             ({"image": pictures, "z": pictures}, lathe.InputError, "^data: the model has no input 'z'"),
             ([pictures[0], pictures[1, :, :7]], ValueError, "^data: all samples need the same shape; .*sample 1 has"),
             ([{"image": pictures[0]}, {"x": pictures[0]}], ValueError, "^data: sample 1 needs the arrays image"),
             ([], ValueError, "^data has no samples"), (pictures[:0], ValueError, "^data has no samples"),
             (np.array(["a"]), TypeError, "^data is a path, arrays or numbers"),
             (3.5, lathe.InputError, r"^data has the shape \[\]; input 'image' is"))
    for data, kind, what in wrong:
        with pytest.raises(kind, match=what):
            lathe.quantize(DIGITS, tmp_path / "q.onnx", data=data)
    with pytest.raises(lathe.InputError, match="fewer than samples"):
        lathe.quantize(DIGITS, tmp_path / "q.onnx", data=pictures, labels=np.arange(3))


def test_samples_of_several_inputs():
    x = np.random.default_rng(0).random((3, 2, 3), dtype=np.float32)
    for data in ({"x": x, "y": x}, [{"x": i, "y": i} for i in x]):
        outputs = lathe.verify(ADD, against="interpreter", data=data)["outputs"]
        assert [o["name"] for o in outputs] == ["s", "p"] and outputs[0]["samples"] == 3
    with pytest.raises(lathe.InputError, match="the model has the inputs x, y, and data has one array"):
        lathe.verify(ADD, against="interpreter", data=x)
    with pytest.raises(lathe.InputError, match="data has 3 samples for input 'x', and 2 for 'y'"):
        lathe.verify(ADD, against="interpreter", data={"x": x, "y": x[1:]})
    with pytest.raises(lathe.UsageError, match="data has only inputs, and no outputs to compare with"):
        lathe.verify(ADD, data={"x": x, "y": x})


def test_samples_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    pictures = torch.rand((2, 1, 8, 8), requires_grad=True)
    for data in (pictures, list(pictures), {"image": pictures}):
        assert lathe.quantize(DIGITS, tmp_path / "q.onnx", data=data)["samples"] == 2


def test_profile_schedule_and_summary(tmp_path):
    m = lathe.compile(DIGITS)
    times = m.profile(rounds=1)
    assert times["ms"] > 0 and [o["source"] for o in times["operators"]][1] == "conv1, conv1, relu1"
    x = np.zeros((1, 1, 8, 8), np.float32)
    assert m.profile(image=x, rounds=1)["rounds"] == m.profile(x, rounds=1)["rounds"] == 1
    with pytest.raises(lathe.InputError, match="shape"):
        m.profile(x[0], rounds=1)
    one = m.schedule("conv1")
    assert one.startswith("// fused_nn_conv2d_add_nn_relu\n") and one in m.schedule()
    (tmp_path / "one.schedules").write_text(one)
    assert lathe.compile(DIGITS, schedules=tmp_path / "one.schedules").schedule("relu1").startswith("// fused")
    with pytest.raises(lathe.UsageError, match="did you mean conv1"):
        m.schedule("conv_1")
    m.save(tmp_path / "saved")
    with pytest.raises(lathe.UsageError, match="that was loaded"):
        lathe.load(tmp_path / "saved").schedule()
    assert lathe.load(tmp_path / "saved").profile(rounds=1)["operators"]
    page = m._repr_html_()
    assert "<b>digits.onnx</b> on" in page and "needs 5." in page and "<td>1×1×8×8</td>" in page
    assert "<td>conv1, relu1</td>" in page
    odd = lathe.compile(b'func @main(%"<b>": f32[2]) {\n  %y = add(%"<b>", %"<b>") : f32[2]\n  return %y\n}\n')
    assert "<td>&lt;b&gt;</td>" in odd._repr_html_()


def test_operators_from_outside(tmp_path):
    page = (TOP / "docs" / "tutorials" / "add-an-op.md").read_text()
    (tmp_path / "softcap.c").write_text(page.split('```c title="softcap.c"\n')[1].split("```")[0])
    library = tmp_path / "softcap.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", f"-I{TOP}/include", f"-I{TOP}/src",
                    tmp_path / "softcap.c", "-o", library], check=True)
    net = b"func @main(%x: f32[4]) { %y = demo.softcap(%x) {cap = 2.0} return %y }"
    for emit in "c", "module":
        y = lathe.compile(net, load_ops=library, emit=emit)(np.float32([-1, 0, 1, 100]))
        np.testing.assert_allclose(y, [-0.924234, 0, 0.924234, 2], atol=1e-6)
    with pytest.raises(lathe.InputError, match="demo.softcap"):
        lathe.compile(net)


# --- compilers that take long ---


@pytest.fixture
def slow(monkeypatch, tmp_path):
    script, pid = tmp_path / "slow", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 100\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return pid


def is_gone(pid):
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def wait_for(path):
    while not path.exists() or not path.read_text():
        time.sleep(0.01)


def test_control_c(slow):
    # A shell has signals of Ctrl-C ignored by what it runs in the background, these tests included.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        wait_for(slow)  # this thread runs while the compiler does: the lock is released
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        lathe.compile(DIGITS)
    other.join()
    signal.signal(signal.SIGINT, before)
    assert is_gone(slow)


def test_progress(slow):
    stages = []

    def progress(stage, share):
        stages.append(stage)
        assert share < 0 or share <= 1
        if stage.startswith("building"):
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        lathe.compile(DIGITS, progress=progress)
    assert stages[0] == "reading" and "planning" in stages
    assert not slow.exists()


def test_threads():
    x = np.ones((2, 3), np.float32)
    shared = lathe.compile(ADD)
    results = []

    def work(emit):
        m = lathe.compile(ADD, emit=emit)
        for _ in range(20):
            results.append(bool((m(x, x)[0] == 2).all() and (shared(x, x)[1] == 1).all()))

    threads = [threading.Thread(target=work, args=(e,)) for e in ("c", "module", "c")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 60


def test_backend():
    onnx = pytest.importorskip("onnx")
    alone = "import lathe; print(lathe.backend.Prepared.__name__)"  # without an import of it
    assert subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True).stdout == "Prepared\n"
    import lathe.backend as backend

    x = np.array([[-1, 2]], np.float32)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    assert backend.run_node(node, [x]).y.tolist() == [[0, 2]]
    prepared = backend.prepare(onnx.load(DIGITS))
    assert prepared.run(np.zeros((1, 1, 8, 8), np.float32)).probabilities.shape == (1, 10)
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    bad = onnx.helper.make_node("NoSuchOperator", ["x"], ["y"])
    graph = onnx.helper.make_graph([bad], "g", [], [])
    assert not backend.is_compatible(onnx.helper.make_model(graph))
