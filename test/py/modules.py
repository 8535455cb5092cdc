#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Portable modules of models whose extents nothing bounds: one module of each runs at many sizes and gives what
onnxruntime gives, with the same bytes for one worker and for three, and again with its kernels interpreted; extents
that the data decides and no memory has end in an error.

    modules.py [--lathe FILE] [--filter GLOB] [-j N] [--keep DIR]

No option names a bound. Each run counts as a test.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import dynamic
import dynamic_models

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, n) for n, v in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def growing():
    """A loop whose carried value gets a row more each round."""
    body = helper.make_graph(
        [helper.make_node("Concat", ["p", "row"], ["q"], axis=0), helper.make_node("Add", ["row", "one"], ["next"]),
         helper.make_node("Identity", ["c"], ["go"])], "body",
        [info("i", [], INT64), info("c", [], BOOL), info("p", ["k", 2]), info("row", [1, 2])],
        [info("go", [], BOOL), info("q", ["more", 2]), info("next", [1, 2])])
    return model([helper.make_node("Loop", ["rounds", "", "p0", "r0"], ["y", "z"], body=body, name="grow")],
                 [info("rounds", [], INT64), info("p0", ["n", 2]), info("r0", [1, 2])],
                 [info("y", ["all", 2]), info("z", [1, 2])], [("one", np.ones((1, 2), np.float32))])


def shrinking():
    """A loop that drops what is below 0, and takes 1 from the rest, until nothing is left."""
    body = helper.make_graph(
        [helper.make_node("Sub", ["v", "one"], ["less"]),
         helper.make_node("GreaterOrEqual", ["less", "zero"], ["keep"]),
         helper.make_node("Compress", ["less", "keep"], ["w"], axis=0), helper.make_node("Size", ["w"], ["count"]),
         helper.make_node("Greater", ["count", "none"], ["go"])], "body",
        [info("i", [], INT64), info("c", [], BOOL), info("v", ["k"])], [info("go", [], BOOL), info("w", ["left"])])
    return model([helper.make_node("Loop", ["rounds", "", "v0"], ["y"], body=body, name="drop")],
                 [info("rounds", [], INT64), info("v0", ["n"])], [info("y", ["rest"])],
                 [("one", np.float32(1)), ("zero", np.float32(0)), ("none", np.int64(0))])


def stacking():
    """A loop that ends when a number is reached, with a row for every round."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "one"], ["t"]), helper.make_node("ReduceMax", ["t"], ["top"], keepdims=0),
         helper.make_node("Less", ["top", "limit"], ["go"]), helper.make_node("Mul", ["t", "t"], ["row"])], "body",
        [info("i", [], INT64), info("c", [], BOOL), info("s", ["n"])],
        [info("go", [], BOOL), info("t", ["n"]), info("row", ["n"])])
    return model([helper.make_node("Loop", ["", "true", "s0"], ["last", "rows"], body=body, name="stack")],
                 [info("s0", ["n"]), info("limit", [])], [info("last", ["n"]), info("rows", ["r", "n"])],
                 [("one", np.float32(1)), ("true", np.array(True))])


def image(*nodes):
    """Operators over an image of any height and width."""
    rng = np.random.default_rng(3)
    return model(list(nodes), [info("x", [1, 3, "h", "w"])], [info("y", None)],
                 [("w", rng.standard_normal((16, 3, 3, 3)).astype(np.float32))])


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def images(rng):
    for h, w in ((1, 2), (8, 8), (15, 7), (64, 33)): # of one number onnxruntime's variance may be below 0
        yield {"x": numbers(rng, 1, 3, h, w)}


def known(build, inputs, *sizes):
    return build, lambda rng: (inputs(rng, *s) for s in sizes)


OPERATORS = {
    "conv": helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4),
    "conv-strided": helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4, strides=[2, 2]),
    "max-pool": helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    "average": helper.make_node("GlobalAveragePool", ["x"], ["y"]),
    "softmax": helper.make_node("Softmax", ["x"], ["y"], axis=2),
    "mean": helper.make_node("ReduceMean", ["x"], ["y"], axes=[1, 2]),
    "norm": helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3]),
    "transpose": helper.make_node("Transpose", ["x"], ["y"], perm=[3, 1, 0, 2]),
    "concat": helper.make_node("Concat", ["x", "x"], ["y"], axis=3),
    "relu": helper.make_node("Relu", ["x"], ["y"]),
}

MODELS = {
    "encoder": known(dynamic_models.encoder, dynamic.encoder_inputs, (1,), (7,), (33,), (128,)),
    "decoder": known(dynamic_models.decoder, dynamic.decoder_inputs, (1, 0), (3, 5), (1, 40)),
    "detector": known(dynamic_models.detector, dynamic.detector_inputs, (1,), (3,)),
    "images": known(dynamic_models.images, dynamic.images_inputs, (1,), (5,), (0,)),
    "photo": known(dynamic_models.photo, dynamic.photo_inputs, (32, 32), (17, 64), (100, 9)),
    "voice": known(dynamic_models.voice, dynamic.voice_inputs, (16000,), (8000,)),
    "growing": (growing, lambda rng: ({"rounds": np.array(m, np.int64), "p0": numbers(rng, n, 2),
                                       "r0": numbers(rng, 1, 2)}
                                      for m, n in ((0, 0), (0, 3), (1, 0), (5, 2), (300, 7)))),
    "shrinking": (shrinking, lambda rng: ({"rounds": np.array(m, np.int64), "v0": numbers(rng, n) * 8}
                                          for m, n in ((0, 4), (1, 9), (100, 50), (100, 0)))),
    "stacking": (stacking, lambda rng: ({"s0": np.zeros(n, np.float32), "limit": np.array(limit, np.float32)}
                                        for n, limit in ((3, -5), (3, 1), (1, 10), (4, 3000)))),
    **{name: (lambda node=node: image(node), images) for name, node in OPERATORS.items()},
}


def filled():
    """A tensor that the data gives any shape."""
    return model([helper.make_node("ConstantOfShape", ["s"], ["y"])], [info("s", [3], INT64)],
                 [info("y", ["a", "b", "c"])])


def extents(*numbers_):
    return {"s": np.array(numbers_, np.int64)}


# Sizes that no memory has, some of them with products that 64 bits do not have either: one error, and nothing is
# written.
REFUSED = {
    "filled": (filled, [extents(1 << 40, 1 << 40, 1), extents(1 << 33, 1 << 29, 1), extents(1 << 62, 1 << 62, 1 << 62),
                        extents(1 << 32, 1 << 32, 5)]),
}


class Failure(Exception):
    pass


def call(*command, **more):
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", **more)
    if run.returncode != 0:
        raise Failure(f"{command[1]}: status {run.returncode}: {(run.stderr.splitlines() or [''])[0][:200]}")


def given(module, feed):
    """Options that hand over a feed, from files beside the module."""
    for name, value in feed.items():
        file = os.path.join(os.path.dirname(module), f"{name}.npy")
        np.save(file, value)
        yield from ("--input", f"{name}={file}")


def outputs(lathe, module, feed, folder, *more):
    call(lathe, "run", module, "--output-dir", folder, *more, *given(module, feed))
    return {f[:-4]: np.load(os.path.join(folder, f)) for f in os.listdir(folder)}


def run_at(lathe, module, session, feed, folder):
    ours = outputs(lathe, module, feed, os.path.join(folder, "one"), "--workers", "1")
    three = outputs(lathe, module, feed, os.path.join(folder, "three"), "--workers", "3")
    slow = outputs(lathe, module, feed, os.path.join(folder, "interpreted"), "--no-jit")
    wanted = session.run(None, feed)
    for result, want in zip(session.get_outputs(), wanted):
        got = ours[result.name]
        if got.shape != want.shape or got.tobytes() != three[result.name].tobytes():
            raise Failure(f"{result.name}: shape {got.shape} instead of {want.shape}, or three workers differ")
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4, err_msg=result.name)
        np.testing.assert_allclose(slow[result.name], want, rtol=1e-3, atol=1e-4, err_msg="interpreted " + result.name)


def compiled(build, lathe, work):
    """(model, module): files of their own."""
    os.makedirs(work)
    path, module = os.path.join(work, "model.onnx"), os.path.join(work, "model.so")
    onnx.save(build(), path)
    call(lathe, "compile", path, "--emit", "module", "--target", "native", "--with-interpreter", "-q", "-o",
         module)
    return path, module


def check_refused(name, lathe, work):
    """The same for one of REFUSED."""
    build, feeds = REFUSED[name]
    passed, failures = 0, []
    try:
        _, module = compiled(build, lathe, work)
    except Failure as failure:
        return 0, [f"{name}: {failure}"]
    for feed in feeds:
        run = subprocess.run([lathe, "run", module, *given(module, feed)], capture_output=True, text=True, check=False)
        errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
        good = run.returncode == 1 and len(errors) == 1 and "more than memory can hold" in errors[0]
        passed += good
        if not good:
            failures.append(f"{name} at {feed}: status {run.returncode}: {run.stderr[-200:]}")
    return passed, failures


def check(name, lathe, work):
    """(passed, lines about failures) of one model."""
    if name in REFUSED:
        return check_refused(name, lathe, work)
    build, feeds = MODELS[name]
    passed, failures = 0, []
    try:
        path, module = compiled(build, lathe, work)
    except Failure as failure:
        return 0, [f"{name}: {failure}"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for i, feed in enumerate(feeds(np.random.default_rng(5))):
        folder = os.path.join(work, f"run{i}")
        os.makedirs(folder)
        try:
            run_at(lathe, module, session, feed, folder)
            passed += 1
        except (Failure, AssertionError) as failure:
            shapes = {n: np.shape(v) for n, v in feed.items()}
            failures.append(f"{name} at {shapes}: {' '.join(str(failure).split())[:200]}")
    return passed, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--filter", default="*")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", metavar="DIR", help="leave modules in DIR")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="modules-", dir=options.keep) as top:
        os.environ["XDG_CACHE_HOME"] = top
        names = fnmatch.filter([*MODELS, *REFUSED], options.filter)
        works = [os.path.join(top, name) for name in names]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda name, work: check(name, options.lathe, work), names, works)
        for good, failures in results:
            passed, failed = passed + good, failed + len(failures)
            for line in failures:
                print("FAILED", line)
    print(f"unbounded modules: {passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
