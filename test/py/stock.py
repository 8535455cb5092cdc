#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Portable modules in both directions: ours in the virtual machine of Apache TVM, and those of TVM in ours.

    stock.py --lathe FILE --vm FILE --ffi FILE [--filter GLOB] [-v]

FILEs: the compiler, liblathe_vm.so, liblathe_ffi.so. Needs a Python with apache-tvm, onnx, onnxruntime, numpy.

Models of ours are compared with onnxruntime. Modules of TVM, built for its targets llvm and c, run three times: by the
C interface in a process that has nothing of TVM, through tvm-ffi in one that has libtvm_ffi alone, and in this one,
where TVM is loaded as well. What they give is compared with what TVM's own machine gives, or with onnxruntime.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import traceback

import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(TOP, "test", "time_limit")) as limit:
    TIME_LIMIT = int(limit.read())
# A run whose arguments are wrong: the message has these words.
REFUSED = "refused"


class Failure(Exception):
    pass


def compare(got, want):
    """Raises unless the results are those wanted; all are lists of arrays."""
    if len(got) != len(want):
        raise Failure(f"{len(got)} results, {len(want)} are wanted")
    for i, (a, b) in enumerate(zip(got, want)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Failure(f"result {i} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}")
        if not np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True):
            raise Failure(f"result {i}: {a.ravel()[:6]}, not {b.ravel()[:6]}")


def flat(result):
    """Tensors of a result, which may be a tuple of tuples."""
    if hasattr(result, "shape"):
        return [np.from_dlpack(result)]
    return [a for element in result for a in flat(element)]


# --- our machine, through tvm-ffi ---


def load_ffi(library):
    import tvm_ffi
    if tvm_ffi.get_global_func("lathe.LoadFromFile", allow_missing=True) is None:
        tvm_ffi.load_module(library)
    return tvm_ffi.get_global_func("lathe.LoadFromFile"), tvm_ffi.get_global_func("lathe.GetFunction")


class ByFfi:
    def __init__(self, library, path, device=1):
        load, self.get = load_ffi(library)
        self.library = load(path)
        self.vm = self.get(self.library, "vm_load_executable")()
        import tvm_ffi
        wanted = [n for d in tvm_ffi.get_global_func("lathe.devices")(self.library).split() for n in (int(d), 0, 2)]
        self.get(self.vm, "vm_initialization")(device, 0, 2, *wanted, 1, 0, 2)

    def call(self, name, args, kernel=False):
        return flat(self.get(self.library if kernel else self.vm, name)(*args) or ())


# --- our machine, by its C interface ---


def c_interface(library):
    """A class like ByFfi over lathe_vm.h."""
    import ctypes as c

    class Tensor(c.Structure):
        _fields_ = [("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32), ("code", c.c_uint8),
                    ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                    ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]

    class Value(c.Structure):
        _fields_ = [("type", c.c_int32), ("small", c.c_uint32), ("u", c.c_uint64)]

    class Error(c.Structure):
        _fields_ = [("code", c.c_int32), ("message", c.c_char * 1020)]

    lib, error = c.CDLL(library), Error()
    lib.lathe_tensor_of.restype = c.POINTER(Tensor)
    lib.lathe_array_size.restype = c.c_size_t
    codes = {"i": 0, "u": 1, "f": 2, "b": 6}

    def must(status):
        if status != 0:
            raise RuntimeError(error.message.decode())

    def tensor(array):
        t = Tensor(array.ctypes.data, (c.c_int32 * 2)(1, 0), array.ndim, codes[array.dtype.kind],
                   array.dtype.itemsize * 8, 1, (c.c_int64 * max(array.ndim, 1))(*array.shape), None, 0)
        return Value(7, 0, c.addressof(t)), t

    def arrays(v):
        t = lib.lathe_tensor_of(c.byref(v))
        if t:
            t = t[0]
            shape = [t.shape[i] for i in range(t.ndim)]
            kind = {number: letter for letter, number in codes.items()}[t.code]
            dtype = np.dtype(bool) if kind == "b" else np.dtype(f"{kind}{t.bits // 8}")
            return [np.frombuffer(c.string_at(t.data + t.byte_offset, int(np.prod(shape)) * dtype.itemsize),
                                  dtype).reshape(shape)]
        found, element = [], Value()
        for i in range(lib.lathe_array_size(c.byref(v))):
            must(lib.lathe_array_get(c.byref(v), c.c_size_t(i), c.byref(element), c.byref(error)))
            found += arrays(element)
        return found

    rt = c.c_void_p()
    must(lib.lathe_runtime_create(None, c.byref(rt), c.byref(error)))

    class ByC:
        def __init__(self, path):
            self.library, self.vm = Value(), Value()
            must(lib.lathe_LoadFromFile(rt, path.encode(), c.byref(self.library), c.byref(error)))
            self.vm = self.raw(self.library, "vm_load_executable", [])
            self.raw(self.vm, "vm_initialization", [Value(1, 0, n) for n in (1, 0, 2, 1, 0, 2)])

        def raw(self, module, name, values):
            function, result = Value(), Value()
            must(lib.lathe_GetFunction(c.byref(module), name.encode(), c.byref(function), c.byref(error)))
            status = lib.lathe_call(c.byref(function), (Value * max(len(values), 1))(*values), len(values),
                                    c.byref(result), c.byref(error))
            lib.lathe_release(c.byref(function))
            must(status)
            return result

        def call(self, name, args, kernel=False):
            made = [tensor(a) for a in args]
            result = self.raw(self.library if kernel else self.vm, name, [v for v, _ in made])
            found = arrays(result)
            lib.lathe_release(c.byref(result))
            return found

        def __del__(self):
            lib.lathe_release(c.byref(self.vm))
            lib.lathe_release(c.byref(self.library))

    return ByC


# --- cases that were stored: {"path", "refused", "runs": [{"file", "function", "kernel", "refused"}]} ---


def store_run(folder, index, args, want, function="main", kernel=False, refused=None):
    path = os.path.join(folder, f"run{index}.npz")
    np.savez(path, **{f"a{i}": a for i, a in enumerate(args)}, **{f"w{i}": w for i, w in enumerate(want)})
    return {"file": path, "function": function, "kernel": kernel, "refused": refused}


def replay(open_module, case):
    """None, or what went wrong."""
    try:
        machine = open_module(case["path"])
        for number, run in enumerate(case["runs"]):
            data = np.load(run["file"])
            args = [data[f"a{i}"] for i in range(sum(k[0] == "a" for k in data))]
            want = [data[f"w{i}"] for i in range(sum(k[0] == "w" for k in data))]
            try:
                got = machine.call(run["function"], args, run["kernel"])
                if run["refused"]:
                    raise Failure(f"a run that must be refused ('{run['refused']}') gives numbers")
                compare(args[-len(want):] if run["kernel"] else got, want)
            except Failure as fault:
                return f"run {number}: {fault}"
            except Exception as e:
                if not run["refused"] or run["refused"] not in str(e):
                    return f"run {number}: {e}" + (f", and not '{run['refused']}'" if run["refused"] else "")
    except Exception as e:
        if any(words in str(e) for words in case.get("refused", ())):
            return None
        return f"{e}" + (f", and not '{case['refused']}'" if case.get("refused") else "")
    return "it is loaded, and must be refused" if case.get("refused") else None


def child(mode, options):
    """In a process of its own: a case by lines of JSON in, what went wrong out."""
    by_c = c_interface(options.vm) if mode == "c" else None
    for line in sys.stdin:
        fault = replay(by_c or (lambda path: ByFfi(options.ffi, path)), json.loads(line))
        print(json.dumps(fault), flush=True)


class Child:
    def __init__(self, mode, options):
        self.mode = mode
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child", mode, "--vm", options.vm, "--ffi", options.ffi],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def replay(self, case):
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else f"the process ended with {self.process.wait(TIME_LIMIT)}"


# --- models of ours ---


def our_models():
    """(name, the model, options of the compiler, inputs of each run)"""
    import onnx

    import branches
    import dynamic
    import dynamic_models
    digits = onnx.load(os.path.join(TOP, "demo", "digits.onnx"))
    yield "digits", digits, [], [{"image": np.random.default_rng(k).random((1, 1, 8, 8), np.float32)} for k in (1, 2)]
    for name, flags, make, runs in dynamic.CASES:
        if name in ("encoder", "images", "decoder"):
            yield (name, dynamic_models.MODELS[name](), flags,
                   [make(np.random.default_rng(1), **extents) for extents in runs[:3]])
    for name in ("if-both-ways", "if-vector-condition", "swap", "while", "rows", "nested", "lstm", "scan", "grow-once",
                 "grow-counted", "cache"):
        version, text, runs, *flags = branches.CASES[name]
        model = onnx.parser.parse_model(branches.HEAD.format(version) + text)
        runs = [{k: np.asarray(v) for k, v in run.items()} for run in runs if branches.REFUSED not in run]
        yield name, model, flags, runs


def check_source(loaded, path):
    """What the module imports keeps its kind and its source."""
    kind, source = loaded.imports[0].kind, loaded.imports[0].inspect_source()
    with open(path, "rb") as f:
        if kind != "my_device" or "_packed(void *const *a" not in source or source.encode() not in f.read():
            raise Failure(f"the import is of the kind {kind}, with a source of {len(source)} characters")


def test_ours(options, name, model, flags, runs, folder):
    import onnx
    import onnxruntime
    import tvm
    path, module = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.so")
    onnx.save(model, path)
    done = subprocess.run([options.lathe, "compile", path, "--emit", "module", "-q", "-o", module, *flags],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip())
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    loaded = tvm.runtime.load_module(module)
    check_source(loaded, module)
    if name == "digits": # saved by TVM once more
        loaded.export_library(module)
        loaded = tvm.runtime.load_module(module)
        check_source(loaded, module)
    stock = tvm.relax.VirtualMachine(loaded, tvm.cpu())
    ours = ByFfi(options.ffi, module, 101)
    for run in runs:
        want = session.run(None, run)
        compare(flat(stock["main"](*[tvm.runtime.tensor(run[n]) for n in names])), want)
        compare(ours.call("main", [run[n] for n in names]), want)


# --- modules of TVM ---


def random(*shape):
    return np.random.default_rng(sum(shape) + 3).standard_normal(shape).astype(np.float32)


def relax_tensor(name, shape):
    from tvm import relax
    return relax.Var(name, relax.TensorType(shape, "float32"))


def function(params, body):
    """A module whose main is body(emit, *params)."""
    from tvm import relax
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(body(builder.emit, *params))
        builder.emit_func_output(output)
    return builder.get()


def cnn():
    from tvm import relax
    nn = relax.op.nn
    w1, w2, w3 = (relax.const(random(*s) / 4) for s in ((8, 3, 3, 3), (16, 8, 3, 3), (16, 10)))

    def body(emit, x):
        h = emit(nn.relu(emit(nn.conv2d(x, w1, padding=1))))
        h = emit(nn.max_pool2d(h, pool_size=(2, 2), strides=(2, 2)))
        h = emit(nn.relu(emit(nn.conv2d(h, w2, strides=2, padding=1))))
        return nn.softmax(emit(relax.op.matmul(emit(relax.op.mean(h, [2, 3])), w3)))

    return function([relax_tensor("x", (1, 3, 16, 16))], body)


def mlp():
    from tvm import relax, tirx
    n = tirx.Var("n", "int64")
    w1, w2 = relax.const(random(12, 32) / 4), relax.const(random(32, 5) / 4)

    def body(emit, x):
        h = emit(relax.op.nn.gelu(emit(relax.op.matmul(x, w1))))
        y = emit(relax.op.matmul(h, w2))
        return relax.Tuple([y, emit(relax.op.nn.log_softmax(y))])

    return function([relax_tensor("x", (n, 12))], body)


def transformer():
    """A block with 4 heads; the sequence is open."""
    from tvm import relax, tirx
    op, nn = relax.op, relax.op.nn
    s, width, heads = tirx.Var("s", "int64"), 32, 4
    qkv, out = relax.const(random(width, 3 * width) / 6), relax.const(random(width, width) / 6)
    up, down = relax.const(random(width, 64) / 6), relax.const(random(64, width) / 6)
    one, zero = relax.const(np.ones(width, np.float32)), relax.const(np.zeros(width, np.float32))

    def body(emit, x):
        parts = emit(op.split(emit(op.matmul(emit(nn.layer_norm(x, one, zero, axes=[-1])), qkv)), 3, axis=-1))
        q, k, v = (emit(op.permute_dims(emit(op.reshape(emit(parts[i]), (s, heads, width // heads))), [1, 0, 2]))
                   for i in range(3))
        scores = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 1]))))
        weights = emit(nn.softmax(emit(op.divide(scores, relax.const(np.float32(8 ** 0.5))))))
        joined = emit(op.reshape(emit(op.permute_dims(emit(op.matmul(weights, v)), [1, 0, 2])), (s, width)))
        x = emit(op.add(x, emit(op.matmul(joined, out))))
        h = emit(nn.gelu(emit(op.matmul(emit(nn.layer_norm(x, one, zero, axes=[-1])), up))))
        return op.add(x, emit(op.matmul(h, down)))

    return function([relax_tensor("x", (s, width))], body)


def script():
    """Modules that are easier to write as text: a branch, a parallel kernel."""
    # pylint: disable=all
    from tvm.script import ir as I, relax as R, tirx as T

    @I.ir_module
    class branch:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            if c:
                y = R.add(x, x)
            else:
                y = R.nn.relu(x)
            return y

    @I.ir_module
    class parallel:
        @T.prim_func
        def triple(x: T.handle, y: T.handle):
            n = T.int64()
            X = T.match_buffer(x, (n, 16), "float32")
            Y = T.match_buffer(y, (n, 16), "float32")
            for i in T.parallel(n):
                for j in range(16):
                    Y[i, j] = X[i, j] * T.float32(3)

        @R.function
        def main(x: R.Tensor(("n", 16), "float32")):
            n = T.int64()
            with R.dataflow():
                y = R.call_tir(parallel.triple, (x,), R.Tensor((n, 16), "float32"))
                R.output(y)
            return y

    @I.ir_module
    class shape:
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(["a", 4])) -> R.Tensor(("a", 4), "float32"):
            a = T.int64()
            return R.reshape(x, (a, 4))

    return {"branch": branch, "parallel": parallel, "shape": shape}


def test_arguments(options, folder):
    """What our kernels cannot compute with is refused, and in TVM as here."""
    import tvm
    import tvm_ffi
    text, module = os.path.join(folder, "softmax.txt"), os.path.join(folder, "model.so")
    with open(text, "w") as f:
        f.write("func @main(%x: f32[4, 4]) {\n  %y = nn.softmax(%x)\n  return %y\n}\n")
    subprocess.run([options.lathe, "compile", text, "--emit", "module", "-q", "-o", module], check=True)
    stock, x = tvm.relax.VirtualMachine(tvm.runtime.load_module(module), tvm.cpu()), random(4, 4)
    compare(flat(stock["main"](tvm_ffi.from_dlpack(x))), ByFfi(options.ffi, module, 101).call("main", [x]))
    for wrong in (x.T, np.lib.stride_tricks.as_strided(x, strides=(0, 4)), x.astype(np.float64), x[:, :3].copy()):
        try:
            stock["main"](tvm_ffi.from_dlpack(wrong))
        except Exception:
            continue
        raise Failure(f"a tensor of strides {wrong.strides} and type {wrong.dtype} is taken")


def from_onnx(model):
    from tvm.relax.frontend.onnx import from_onnx as read
    return read(model)


def extern():
    from tvm import relax
    return function([relax_tensor("x", (3,))], lambda emit, x: emit(
        relax.op.call_dps_packed("scale", (x,), relax.TensorType((3,), "float32"))))


def stock_models():
    """(name, module, inputs of each run, runs that must be refused)"""
    import onnx

    import dynamic_models
    texts = script()
    bad = [[random(1, 3, 16, 15)], [random(1, 3, 16)], [random(1, 3, 16, 16).astype(np.float64)]]
    yield "cnn", cnn(), [[random(1, 3, 16, 16)], [random(1, 3, 16, 16) * 3]], bad
    yield "mlp", mlp(), [[random(n, 12)] for n in (1, 2, 7, 0)], [[random(2, 13)]]
    yield "transformer", transformer(), [[random(n, 32)] for n in (1, 5, 24, 0)], []
    yield ("branch", texts["branch"], [[np.array(b), random(2, 3)] for b in (True, False)],
           [[random(2, 3), random(2, 3)]])
    yield "parallel", texts["parallel"], [[random(n, 16)] for n in (1, 3, 100, 0)], []
    digits = onnx.load(os.path.join(TOP, "demo", "digits.onnx"))
    yield "digits", from_onnx(digits), [[random(1, 1, 8, 8)]], []
    yield "images", from_onnx(dynamic_models.MODELS["images"]()), [[random(n, 3, 32, 32)] for n in (1, 3)], []


def in_all(options, case):
    """The case in the three kinds of processes."""
    for child_process in options.children:
        fault = child_process.replay(case)
        if fault:
            raise Failure(f"{child_process.mode}: {fault}")
    fault = replay(lambda path: ByFfi(options.ffi, path), case)
    if fault:
        raise Failure(f"beside TVM: {fault}")


def run_by_command(options, path, module, args, folder, want):
    """The program `lathe` on the same file."""
    command = [options.lathe, "run", path, "--output-dir", os.path.join(folder, "out")]
    for i, (param, value) in enumerate(zip(module["main"].params, args)):
        np.save(os.path.join(folder, f"arg{i}.npy"), value)
        command += ["--input", f"{param.name}={folder}/arg{i}.npy"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
    if run.returncode:
        raise Failure(f"lathe run: status {run.returncode}: {run.stderr[:200]}")
    compare([np.load(f"{folder}/out/output{i}.npy") for i in range(len(want))], want)


def test_stock(options, target, module, runs, bad, folder):
    import tvm
    path = os.path.join(folder, "model.so")
    executable = tvm.compile(module, target=target)
    executable.export_library(path)
    stock = tvm.relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    stored = []
    for args in runs:
        want = flat(stock["main"](*[tvm.runtime.tensor(a) for a in args]))
        stored.append(store_run(folder, len(stored), args, want))
    run_by_command(options, path, module, runs[0], folder, flat(stock["main"](*map(tvm.runtime.tensor, runs[0]))))
    for args in bad:
        stored.append(store_run(folder, len(stored), args, [], refused="param="))
    in_all(options, {"path": path, "runs": stored})


# --- what is refused, and errors of kernels ---


def test_shape(options, folder):
    """A function that takes a shape: by the command line, which gives it in a file, or extent by extent."""
    x, path = random(2, 6), export(folder, script()["shape"])
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "s.npy"), np.array([3, 4], np.int64))
    for words in (["--input", f"s={folder}/s.npy"], ["--dim", "s_0=3"]):
        run = subprocess.run([options.lathe, "run", path, "--output-dir", folder, "--input", f"x={folder}/x.npy",
                              *words], capture_output=True, text=True, timeout=TIME_LIMIT)
        if run.returncode:
            raise Failure(f"lathe run: status {run.returncode}: {run.stderr[:200]}")
        compare([np.load(f"{folder}/output0.npy")], [x.reshape(3, 4)])


def export(folder, module, target="llvm", **flags):
    from tvm import relax
    path = os.path.join(folder, "model.so")
    relax.build(module, target=target, **flags).export_library(path)
    return path


def test_kernel_errors(options, target, folder):
    """The checks of a kernel of TVM itself, in its words; a kernel that is called by hand gives what it should."""
    x = random(1, 8, 16, 16)
    runs = [store_run(folder, 0, [x, np.zeros_like(x)], [np.maximum(x, 0)], "relu", True),
            store_run(folder, 1, [x, np.zeros((1, 8, 16, 15), np.float32)], [], "relu", True, "on argument #1"),
            store_run(folder, 2, [x], [], "relu", True, "relu"),
            store_run(folder, 3, [x.astype(np.float64), x], [], "relu", True, "relu")]
    in_all(options, {"path": export(folder, cnn(), target), "runs": runs})


def test_compiled(options, folder):
    path = export(folder, script()["branch"], exec_mode="compiled")
    # Its code needs more of TVM than ours has; where TVM lends that, the functions themselves are refused.
    in_all(options, {"path": path, "runs": [], "refused": ["TVMBackendAnyList", "exec_mode="]})


def test_missing(options, folder):
    path = export(folder, extern())
    in_all(options, {"path": path, "runs": [], "refused": ["neither in it nor in the machine: scale"]})


def test_offload(options, folder):
    """Layers of a quantised model on the VTA, in this process: the module's symbols VTA* are those of libvta, which is
    opened for all. Without it both say so."""
    import ctypes

    import tvm
    import tvm_ffi
    model, path = os.path.join(TOP, "demo", "residual_vta.onnx"), os.path.join(folder, "residual.so")
    image = np.random.default_rng(4).integers(0, 17, (1, 1, 8, 8)).astype("float32")
    np.save(os.path.join(folder, "image.npy"), image)
    for words in (["compile", model, "--offload", "vta", "--emit", "module", "--target", "native", "-o", path],
                  ["run", model, "--input", f"image={folder}/image.npy", "--output-dir", folder]):
        subprocess.run([options.lathe, *words], check=True, timeout=TIME_LIMIT, capture_output=True)
    try:
        tvm.runtime.load_module(path)
        raise Failure("TVM loads the module without libvta")
    except RuntimeError as e:
        if "ext_dev is the VTA of libvta, which is not in this process" not in str(e):
            raise
    ctypes.CDLL(os.path.join(os.path.dirname(options.vm), "..", "vta", "libvta.so"), ctypes.RTLD_GLOBAL)
    got = ByFfi(options.ffi, path).call("main", [tvm_ffi.from_dlpack(image)])
    if len(got) != 1 or (got[0] != np.load(os.path.join(folder, "logits.npy"))).any():
        raise Failure("the layers on the VTA give other numbers than the CPU")


def alone(options, name):
    """A test in a process of its own: many modules in one process of TVM were seen to wait for ever."""
    done = subprocess.run([sys.executable, __file__, "--lathe", options.lathe, "--vm", options.vm, "--ffi", options.ffi,
                           "--filter", name], capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    if done.returncode != 0:
        raise Failure((done.stdout + done.stderr).strip()[-2000:])


def all_tests(options):
    """(name, function of a folder)"""
    for name, model, flags, runs in our_models():
        test = lambda folder, a=(name, model, flags, runs): test_ours(options, *a, folder)
        if options.filter != f"ours/{name}":
            test = lambda folder, n=f"ours/{name}": alone(options, n)
        yield f"ours/{name}", test
    for target in ("llvm", "c"):
        for name, *rest in stock_models():
            yield f"stock/{name}/{target}", lambda folder, a=(target, *rest): test_stock(options, *a, folder)
        yield f"kernel errors/{target}", lambda folder, t=target: test_kernel_errors(options, t, folder)
    yield "arguments", lambda folder: test_arguments(options, folder)
    yield "shape", lambda folder: test_shape(options, folder)
    yield "compiled", lambda folder: test_compiled(options, folder)
    yield "missing", lambda folder: test_missing(options, folder)
    yield "offload", lambda folder: test_offload(options, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--vm", required=True)
    parser.add_argument("--ffi", required=True)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--child", choices=("c", "ffi"))
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.vm, options.ffi, options.lathe = map(os.path.abspath, (options.vm, options.ffi, options.lathe))
    if options.child:
        return child(options.child, options)
    try:
        import tvm  # noqa: F401
    except ImportError:
        print("skipped: this Python has no apache-tvm\n0 passed, 0 failed, 1 skipped")
        return 0
    load_ffi(options.ffi)
    options.children = [Child("c", options), Child("ffi", options)]
    passed = failed = 0
    for name, test in all_tests(options):
        if not fnmatch.fnmatch(name, options.filter):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(folder)
            passed += 1
            if options.v:
                print(f"ok {name}", flush=True)
        except Exception as fault:
            failed += 1
            print(f"FAILED {name}: {fault}", flush=True)
            if options.v and not isinstance(fault, Failure):
                traceback.print_exc()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
