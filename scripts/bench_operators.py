# SPDX-License-Identifier: Apache-2.0
"""Single operators of ONNX against onnxruntime: what `performance.py --operators` runs. A row of CASES is a model with
one operator at a size that the rules were not tuned for; bench_types.py has other sizes and types. Times are taken in
turns in one process, the best of each side: of the processor with one worker, of the clock with more (bench_grid.py).

The bound of an operator is what this machine needs at least with one worker: to copy as many bytes as the operands and
results have, or to do the multiply-adds in a loop of nothing else, whichever takes longer (bench_bound.c). Both are
measured in the same run."""
import ctypes
import functools
import math
import os
import subprocess
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import bench_grid
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I64 = np.float32, np.int64
FLOAT, U8 = TensorProto.FLOAT, TensorProto.UINT8
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = []
Row = namedtuple("Row", "ratio theirs ours share operator about")  # share: the bound divided by Lathe's time


def case(operator, about, shapes, constants=(), results=1, opset=20, kind=FLOAT, cases=CASES, limits=None,
         **attributes):
    """constants: arrays behind the inputs; None is left out. kind: the type of the inputs, or one for each. limits:
    of inputs that are indices or conditions, by their place."""
    kinds = kind if isinstance(kind, list) else [kind] * len(shapes)
    cases.append(SimpleNamespace(operator=operator, about=about, shapes=shapes, constants=constants, results=results,
                                 opset=opset, kinds=kinds, limits=limits or {}, attributes=attributes))


def weights(*shape):
    return (np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape) / 8).astype(F)


IMAGE = [1, 48, 40, 60]
for unary in ("Abs", "Ceil", "Clip", "Cos", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish",
              "Neg", "Relu", "Selu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh"):
    case(unary, "48x40x60", [IMAGE], [F(-1), F(1)] if unary == "Clip" else ())
case("Gelu", "96x1536", [[96, 1536]])
for binary in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
    case(binary, "48x40x60 twice", [IMAGE, IMAGE])
case("Pow", "by 2.5", [IMAGE], [F(2.5)])
case("PRelu", "48x40x60", [IMAGE], [weights(48, 1, 1)])
case("Add", "a number for each channel", [IMAGE], [weights(48, 1, 1)])
case("Mul", "a number for each row", [[200, 320], [200, 1]])
case("Where", "by a constant", [[200, 320], [200, 320]], opset=19)
CASES[-1].where = np.arange(200 * 320).reshape(200, 320) % 3 == 0
case("Softmax", "last of 8x100x100", [[8, 100, 100]])
case("Softmax", "first of 19x90x120", [[1, 19, 90, 120]], axis=1)
case("LogSoftmax", "64x1000", [[64, 1000]])
case("LayerNormalization", "150x512", [[150, 512]], [weights(512), weights(512)])
case("InstanceNormalization", "48x40x60", [IMAGE], [weights(48), weights(48)])
case("GroupNormalization", "6 groups", [IMAGE], [weights(48), weights(48)], opset=21, num_groups=6)
case("LRN", "48x40x60", [IMAGE], size=5)
case("ReduceSum", "over all", [IMAGE], [np.arange(4)])
case("ReduceMax", "over all", [IMAGE], [np.arange(4)])
case("ReduceMean", "images", [IMAGE], [np.array([2, 3])])
case("ReduceMean", "first of 500x700", [[500, 700]], [np.array([0])])
case("ReduceMax", "middle of 12x150x200", [[12, 150, 200]], [np.array([1])])
case("ReduceL2", "last of 300x300", [[300, 300]], [np.array([1])])
case("ArgMax", "64x1500", [[64, 1500]], axis=1)
case("ArgMax", "first of 19x90x120", [[1, 19, 90, 120]], axis=1)
case("CumSum", "200x320", [[200, 320]], [np.array(1)])
case("TopK", "50 of 5000", [[1, 5000]], [np.array([50])], results=2)
case("TopK", "10 of 600, 40 rows", [[40, 600]], [np.array([10])], results=2)
case("TopK", "300 of 3000", [[1, 3000]], [np.array([300])], results=2)
case("MaxPool", "3x3, stride 2", [[1, 48, 80, 90]], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
case("MaxPool", "2x2, stride 2", [[1, 48, 80, 90]], kernel_shape=[2, 2], strides=[2, 2])
case("MaxPool", "5x5, stride 1", [[1, 48, 20, 20]], kernel_shape=[5, 5], pads=[2] * 4)
case("AveragePool", "3x3, stride 1", [IMAGE], kernel_shape=[3, 3], pads=[1] * 4)
case("GlobalAveragePool", "320x10x10", [[1, 320, 10, 10]])
case("Resize", "nearest, 2x", [IMAGE], [None, F([1, 1, 2, 2])], mode="nearest",
     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
case("Resize", "linear, 2x", [IMAGE], [None, F([1, 1, 2, 2])], mode="linear")
case("Resize", "linear to 50x70", [IMAGE], [None, None, np.array([1, 48, 50, 70])], mode="linear")
case("Resize", "cubic, 2x", [[1, 8, 40, 60]], [None, F([1, 1, 2, 2])], mode="cubic")
case("GridSample", "12x50x50", [[1, 12, 50, 50], [1, 50, 50, 2]])
case("Pad", "reflect by 2", [IMAGE], [np.array([0, 0, 2, 2, 0, 0, 2, 2])], mode="reflect")
case("Pad", "zeros by 1", [IMAGE], [np.array([0, 0, 1, 1, 0, 0, 1, 1])])
case("Transpose", "to channels last", [IMAGE], perm=[0, 2, 3, 1])
case("Transpose", "600x800", [[600, 800]], perm=[1, 0])
case("Transpose", "heads", [[1, 100, 8, 48]], perm=[0, 2, 1, 3])
case("Concat", "of two images", [IMAGE, IMAGE], axis=1)
case("Slice", "every second", [IMAGE], [np.array([0, 0]), np.array([40, 60]), np.array([2, 3]), np.array([2, 2])])
case("DepthToSpace", "2", [IMAGE], blocksize=2)
case("SpaceToDepth", "2", [IMAGE], blocksize=2)
case("MatMul", "8x100x48x100", [[8, 100, 48], [8, 48, 100]])
case("MatMul", "83x117 by 117x75", [[83, 117], [117, 75]])
case("Gemm", "96x512x512, transposed", [[96, 512]], [weights(512, 512), weights(512)], transB=1)
case("Gemm", "1x800x600, transposed", [[1, 800]], [weights(600, 800), weights(600)], transB=1)
case("Einsum", "bhqd,bhkd->bhqk", [[1, 8, 100, 48], [1, 8, 100, 48]], equation="bhqd,bhkd->bhqk")
case("Conv", "3x3", [IMAGE], [weights(56, 48, 3, 3)], kernel_shape=[3, 3], pads=[1] * 4)
case("Conv", "depthwise 5x5", [IMAGE], [weights(48, 1, 5, 5)], kernel_shape=[5, 5], pads=[2] * 4, group=48)
case("ConvTranspose", "2x2, stride 2", [[1, 48, 30, 30]], [weights(48, 24, 2, 2)], kernel_shape=[2, 2], strides=[2, 2])
case("LSTM", "40 steps of 96", [[40, 1, 96]], [weights(1, 384, 96), weights(1, 384, 96), weights(1, 768)], results=3,
     hidden_size=96)
case("QuantizeLinear", "48x40x60", [IMAGE], [F(0.03), np.uint8(120)])
case("DequantizeLinear", "48x40x60", [IMAGE], [F(0.03), np.uint8(120)], kind=U8)
case("Cast", "u8 to float", [IMAGE], kind=U8, to=FLOAT)


def model_of(c):
    names = [f"x{i}" for i in range(len(c.shapes))]
    inputs = [helper.make_tensor_value_info(n, k, s) for n, k, s in zip(names, c.kinds, c.shapes)]
    constants = [None if a is None else numpy_helper.from_array(np.asarray(a), f"c{i}")
                 for i, a in enumerate(c.constants)]
    operands = names + ["" if t is None else t.name for t in constants]
    if hasattr(c, "where"):
        constants.append(numpy_helper.from_array(c.where, "where"))
        operands.insert(0, "where")
    results = [f"y{i}" for i in range(c.results)]
    node = helper.make_node(c.operator, operands, results, **c.attributes)
    graph = helper.make_graph([node], "operator", inputs, [helper.make_empty_tensor_value_info(r) for r in results],
                              [t for t in constants if t is not None])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", c.opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def operands_of(c):
    """Numbers around 0 for floats. Integers are between -1000 and 1000 without 0, or below a limit (indices)."""
    random, arrays = np.random.default_rng(1), {}
    for i, (kind, shape) in enumerate(zip(c.kinds, c.shapes)):
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        if not np.issubdtype(dtype, np.floating):
            low, high = (0, c.limits[i]) if i in c.limits else (0, 256) if dtype == np.uint8 else (-1000, 1000)
            numbers = random.integers(low, high, shape)
            numbers = np.where(numbers == 0, 7, numbers) if low < 0 else numbers
        else:
            numbers = random.standard_normal(shape)
            numbers = np.abs(numbers) if c.operator in ("Log", "Sqrt", "Pow") else numbers
        arrays[f"x{i}"] = numbers.astype(dtype)
    return arrays


def multiply_adds_of(c, results):
    """Of products and convolutions; of the other operators 0."""
    shape, kernel = c.shapes[0], c.constants[0].shape if c.constants and c.constants[0] is not None else []
    by_operator = {"Conv": lambda: results[0].size * math.prod(kernel[1:]),
                   "ConvTranspose": lambda: math.prod(shape) * math.prod(kernel[1:]),
                   "MatMul": lambda: results[0].size * shape[-1], "Gemm": lambda: results[0].size * shape[-1],
                   "Einsum": lambda: results[0].size * shape[-1],
                   "LSTM": lambda: shape[0] * sum(math.prod(w.shape) for w in c.constants[:2])}
    return by_operator.get(c.operator, lambda: 0)()


@functools.cache
def machine():
    """The loops of bench_bound.c, compiled for this machine."""
    with tempfile.TemporaryDirectory(prefix="bound-") as folder:
        library = os.path.join(folder, "bound.so")
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", library,
                        os.path.join(HERE, "bench_bound.c")], check=True)
        loops = ctypes.CDLL(library)
    for name in ("bound_copy", "bound_floats", "bound_bytes"):
        getattr(loops, name).restype = ctypes.c_int64
        getattr(loops, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    return loops


@functools.cache
def seconds_to_move(count):
    """A copy of half as many bytes reads the one half and writes the other."""
    half = max(count // 2, 1)
    source, target = np.ones(half, np.uint8), np.zeros(half, np.uint8)
    call = functools.partial(machine().bound_copy, target.ctypes.data, source.ctypes.data, half)
    return bench_grid.in_turns((call,), 5, *bench_grid.clock_and_rest(1))[0]


@functools.cache
def seconds_of_multiply_add(loop):
    """loop: bound_floats or bound_bytes."""
    to, data, rounds = np.zeros(768, np.uint8), np.zeros(256, np.uint8), 10000
    call = functools.partial(getattr(machine(), loop), to.ctypes.data, data.ctypes.data, rounds)
    return bench_grid.in_turns((call,), 5, *bench_grid.clock_and_rest(1))[0] / call()


def bound(kind, c, operands, results):
    """The least seconds of an operator, as the first lines of this file say."""
    constants = [a for a in getattr(c, "constants", ()) if a is not None]
    moved = sum(np.asarray(a).nbytes for a in (*operands.values(), *constants, *results))
    loop = getattr(kind, "PRODUCTS", "bound_floats")
    return max(seconds_to_move(moved), kind.multiply_adds_of(c, results) * seconds_of_multiply_add(loop))


def caller_of_session(session, operands):
    """A function that runs with all results in place, and the results."""
    binding, results = session.io_binding(), session.run(None, operands)
    for name, array in operands.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for out, array in zip(session.get_outputs(), results):
        binding.bind_ortvalue_output(out.name, onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(array)))
    return (lambda: session.run_with_iobinding(binding)), results


def measured(options, workers, kind, c, path, library):
    """(onnxruntime, Lathe, bound) in seconds."""
    operands = kind.operands_of(c)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = workers, 3
    settings.add_session_config_entry("session.x64quantprecision", "1" if options.exact else "0")
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    theirs, results = caller_of_session(session, operands)
    ours = bench_grid.caller_of_package(library, list(operands.values()), [np.empty_like(r) for r in results])
    times = bench_grid.in_turns((theirs, ours), options.turns, *bench_grid.clock_and_rest(workers))
    return *times, bound(kind, c, operands, results)


def rows(options, workers, kind):
    """[Row] of kind.CASES; kind: a module like this."""
    build = SimpleNamespace(lathe=options.lathe, target="native", workers=workers)
    found, cases = [], kind.CASES
    with tempfile.TemporaryDirectory(prefix="operators-") as folder:
        paths = [os.path.join(folder, f"{i}.onnx") for i in range(len(cases))]
        for c, path in zip(cases, paths):
            onnx.save(kind.model_of(c), path)
        with ThreadPoolExecutor(2) as pool:
            libraries = list(pool.map(lambda path: bench_grid.build(build, path, os.environ.get("CC", "cc")), paths))
        for c, path, (library, error) in zip(cases, paths, libraries):
            if not library:
                raise SystemExit(f"{c.operator}, {c.about}: {error}")
            theirs, ours, least = measured(options, workers, kind, c, path, library)
            found.append(Row(theirs / ours, theirs, ours, least / ours, c.operator, c.about))
    return found
