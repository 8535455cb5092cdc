# SPDX-License-Identifier: Apache-2.0
"""Portable modules as a tvm-ffi client runs them, made by the assembler of test/py/vm_asm.py, against NumPy."""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

import lathe_ffi
import numpy as np
import pytest
import tvm_ffi

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "test" / "py"))
import vm_asm as asm  # noqa: E402

NAMES = "configure set_workers LoadFromFile GetFunction devices source".split()
TEXT = """
func main(x, y) registers=5
    vm.builtin.check_tensor_info(%0, 1, :float32, "x of main")
    vm.builtin.match_shape(%0, void, 1, 0, 4, "x of main")
    %2 = vm.builtin.alloc_storage(vm, [32], 0, :uint8, "global")
    %3 = vm.builtin.alloc_tensor(%2, 0, [4], :float32)
    add(%0, %1, %3, 3, "Add of the model")
    %4 = vm.builtin.alloc_tensor(%2, 16, [4], :float32)
    add(%3, %0, %4, 1, "Add of the model")
    %4 = vm.builtin.make_tuple(%3, %4)
    ret %4
func same(x)
    ret %0
func shape(x) registers=2
    %1 = vm.builtin.shape_of(%0)
    ret %1
func one(x) registers=2
    %1 = vm.builtin.tuple_getitem(%0, 1)
    ret %1
func closure(x) registers=2
    %1 = vm.builtin.make_closure(@same)
    ret %1
func storage() registers=1
    %0 = vm.builtin.alloc_storage(vm, [32], 0, :uint8, "global")
    ret %0
"""
# The form for hosts that know only tvm-ffi is here a function that says what it got.
CODE = """
#include <stdint.h>
int32_t add_packed(void *const *d, uint32_t part, uint32_t parts)
{
    const float *a = d[0], *b = d[1];
    float *c = d[2];
    for (uint32_t i = part; i < 4; i += parts)
        c[i] = a[i] + b[i];
    return a[0] < 0 ? -12 : 0;
}
typedef struct any { int32_t type, zero; int64_t i; } any;
int __tvm_ffi_add(void *self, const any *args, int32_t n, any *result)
{
    result->type = 1;
    result->i = n * 1000 + args[0].i;
    return 0;
}
"""
SOURCE = asm.source_module(CODE, {"add": 3})


def write(tmp_path, name="module.so", data=None):
    path = tmp_path / name
    path.write_bytes(asm.elf(asm.module(TEXT, CODE, {"add": 3})) if data is None else data)
    return path


@pytest.fixture
def vm(tmp_path):
    return lathe_ffi.Machine(write(tmp_path))


def floats(*values):
    return np.array(values, np.float32)


def numpy(tensor):
    return np.from_dlpack(tensor)


def test_globals_and_symbols():
    for name in NAMES:
        assert tvm_ffi.get_global_func("lathe." + name) is not None
        assert lathe_ffi.module.get_function(name) is not None
        assert tvm_ffi.get_global_func_metadata("lathe." + name)["doc"]
    assert lathe_ffi.module.get_function_doc("GetFunction").startswith("A function of a module")
    assert tvm_ffi.get_global_func("ffi.Module.load_from_bytes.my_device") is not None


def test_by_the_functions_names(tmp_path):
    library = tvm_ffi.get_global_func("lathe.LoadFromFile")(str(write(tmp_path)))
    get = tvm_ffi.get_global_func("lathe.GetFunction")
    machine = get(library, "vm_load_executable")()
    get(machine, "vm_initialization")(101, 0, 2, 1, 0, 2)
    a, b = get(machine, "main")(floats(1, 2, 3, 4), floats(10, 20, 30, 40))
    assert numpy(a).tolist() == [11, 22, 33, 44]
    assert numpy(b).tolist() == [12, 24, 36, 48]


def test_tensors_of_any_make(vm):
    x, y = floats(1, 2, 3, 4), tvm_ffi.from_dlpack(floats(1, 1, 1, 1))
    for _ in range(3):
        assert numpy(vm.main(x, y)[0]).tolist() == [2, 3, 4, 5]
    shifted = np.arange(9, dtype=np.float32)[1:5]  # not aligned
    assert numpy(vm.main(shifted, y)[0]).tolist() == [2, 3, 4, 5]


def test_results_outlive_the_machine(tmp_path):
    vm = lathe_ffi.Machine(write(tmp_path))
    kept = [numpy(vm.main(floats(i, i, i, i), floats(1, 1, 1, 1))[0]) for i in range(50)]
    function = vm["main"]
    del vm
    gc.collect()
    assert numpy(function(floats(7, 7, 7, 7), floats(1, 1, 1, 1))[1]).tolist() == [15, 15, 15, 15]
    del function
    gc.collect()
    assert [k.tolist() for k in kept] == [[i + 1.0] * 4 for i in range(50)]


@pytest.mark.parametrize("value", [None, 5, -3, True, 1.5, "short", "a string of more than seven bytes"])
def test_values_come_back(vm, value):
    assert vm.same(value) == value


def test_returned_argument_is_a_copy(vm):
    x = floats(1, 2, 3, 4)
    got = numpy(vm.same(x))
    x[:] = 0
    assert got.tolist() == [1, 2, 3, 4]


def test_shapes(vm):
    assert tuple(vm.shape(np.zeros((2, 0, 3), np.int8))) == (2, 0, 3)
    assert tuple(vm.same(tvm_ffi.Shape((4, 5)))) == (4, 5)


def test_tuples(vm):
    x = floats(1, 2, 3, 4)
    got = numpy(vm.one([5, x, ["a", None]]))
    x[:] = 0
    assert got.tolist() == [1, 2, 3, 4]
    nested = vm.same([5, ["text", [x, 2.5]]])
    assert nested[0] == 5 and nested[1][0] == "text" and nested[1][1][1] == 2.5
    assert numpy(nested[1][1][0]).tolist() == [0, 0, 0, 0]


def test_closures(vm):
    function = vm.closure(1)
    assert isinstance(function, tvm_ffi.Function)


def test_inputs_that_stay(vm):
    x = floats(1, 2, 3, 4)
    vm["set_input"]("main", x, floats(1, 1, 1, 1))
    x[:] = 100
    del x
    gc.collect()
    vm["invoke_stateful"]("main")
    assert vm["get_output_arity"]("main") == 2
    assert numpy(vm["get_output"]("main", 0)).tolist() == [2, 3, 4, 5]
    assert vm["get_function_arity"]("main") == 2
    assert vm["get_function_param_name"]("main", 1) == "y"


def test_source(vm, tmp_path):
    assert vm.source == CODE
    plain = write(tmp_path, "plain.so", asm.elf(asm.module("func main(x)\n ret %0\n")))
    assert lathe_ffi.Machine(plain).source == ""


ERRORS = {
    "shape": (ValueError, "dimension 0 is 5, not 4 .x of main",
              lambda vm: vm.main(np.zeros(5, np.float32), floats(1, 1, 1, 1))),
    "type": (ValueError, "x of main", lambda vm: vm.main(np.zeros(4, np.int32), floats(1, 1, 1, 1))),
    "gaps": (ValueError, "gaps", lambda vm: vm.main(np.zeros(8, np.float32)[::2], floats(1, 1, 1, 1))),
    "gaps in a tuple": (ValueError, "gaps", lambda vm: vm.same([np.zeros(8, np.float32)[::2]])),
    "arguments": (TypeError, "main takes 2 arguments, 1 are given", lambda vm: vm.main(1)),
    "no tensor": (ValueError, "an int is given where a tensor is taken .x of main", lambda vm: vm.main(1, 2)),
    "bytes": (TypeError, "argument 0 is of type", lambda vm: vm.same(b"bytes that are no string")),
    "object": (TypeError, "argument 0 is of type", lambda vm: vm.same(range(3))),
    "kernel": (RuntimeError, r"kernel add \(Add of the model\) ended with status -12", lambda vm: vm.main(
        floats(-1, 0, 0, 0), floats(1, 1, 1, 1))),
    "storage": (TypeError, "a value of its own", lambda vm: vm.storage()),
    "name": (AttributeError, "no function nothing", lambda vm: vm["nothing"]),
    "file": (RuntimeError, "/no/such.so: No such file", lambda vm: lathe_ffi.LoadFromFile("/no/such.so")),
    "path with a zero": (ValueError, "the path has a zero", lambda vm: lathe_ffi.LoadFromFile("a\0b")),
    "no path": (TypeError, r"argument 1 \(path\) must be str, not int", lambda vm: lathe_ffi.LoadFromFile(3)),
    "no module": (TypeError, "must be a module, not int", lambda vm: lathe_ffi.GetFunction(3, "main")),
    "another object": (TypeError, "not a module of this library", lambda vm: lathe_ffi.GetFunction(
        tvm_ffi.convert([1]), "main")),
    "workers": (TypeError, "at most 1024", lambda vm: lathe_ffi.set_workers(100000)),
    "late options": (RuntimeError, "call this before", lambda vm: lathe_ffi.configure(1)),
    "initialised twice": (TypeError, "initialized already", lambda vm: vm["vm_initialization"](1, 0, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(vm, name):
    kind, message, call = ERRORS[name]
    with pytest.raises(kind, match=message):
        call(vm)
    assert numpy(vm.main(floats(1, 2, 3, 4), floats(1, 1, 1, 1))[0]).tolist() == [2, 3, 4, 5]


def refusal(tmp_path, data):
    with pytest.raises((RuntimeError, ValueError)) as caught:
        lathe_ffi.LoadFromFile(str(write(tmp_path, "bad.so", data)))
    return str(caught.value)


def test_refused_files(tmp_path):
    main = ("relax.VMExecutable", asm.executable("func main(x)\n ret %0\n"))
    newer = ("relax.VMExecutable", main[1].replace(asm.text("0.14"), asm.text("0.15"), 1))
    assert "kind cuda" in refusal(tmp_path, asm.elf(asm.container([main, ("cuda", b"x")], [[1], []])))
    assert "version 0.15; 0.14" in refusal(tmp_path, asm.elf(asm.container([newer], [[]])))
    assert "ELF machine 8" in refusal(tmp_path, asm.elf(asm.container([main, ("_lib", b"")], [[1], []]), machine=8))
    assert refusal(tmp_path, b"text")
    assert refusal(tmp_path, b"")


# --- threads ---


def test_threads(tmp_path):
    path, wrong = write(tmp_path), []
    shared = lathe_ffi.Machine(path).main

    def work(k):
        own = lathe_ffi.Machine(path).main
        for i in range(200):
            for main in (own, shared):
                got = numpy(main(floats(i, k, 0, 0), floats(1, 1, 1, 1))[0]).tolist()
                if got != [i + 1, k + 1, 1, 1]:
                    wrong.append((k, i, got))
            if i % 20 == k:
                try:
                    own(1)
                except TypeError:
                    continue
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_workers(vm):
    for workers in (1, 3, 0):
        lathe_ffi.set_workers(workers)
        assert numpy(vm.main(floats(1, 2, 3, 4), floats(1, 1, 1, 1))[0]).tolist() == [2, 3, 4, 5]


# --- the loader for hosts that know only tvm-ffi ---


def test_loader():
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.my_device")
    first = load(SOURCE)
    assert isinstance(first, tvm_ffi.Module)
    module = ctypes.CDLL(lathe_ffi.library_path().replace("ffi.so", "ffi_module.so"))
    here = (ctypes.c_uint32 * 3)()
    ctypes.CDLL(None).TVMFFIGetVersion(here)
    if list((ctypes.c_int32 * 3).in_dll(module, "lathe_ffi_module_version")) == list(here):
        assert (first.kind, first.inspect_source()) == ("my_device", CODE)
    else: # its classes are those of another version
        assert first.kind == "library"
    assert first["add"](7, 8) == 2007
    second = load(SOURCE)
    del first
    gc.collect()
    assert second["add"](1) == 1001
    with pytest.raises(AttributeError):
        second["nothing"]


def test_loader_in_a_library(tmp_path):
    """As TVM does it: the container of a shared object names the kind, tvm-ffi calls the loader."""
    container = asm.container([("_lib", b""), ("my_device", SOURCE)], [[1], []])
    (tmp_path / "container.bin").write_bytes(container)
    (tmp_path / "c.c").write_text(
        '__asm__(".section .rodata\\n.globl __tvm_ffi__library_bin\\n.type __tvm_ffi__library_bin, %object\\n"\n'
        '"__tvm_ffi__library_bin:\\n.incbin \\"' + str(tmp_path / "container.bin") + '\\"\\n"\n'
        '".size __tvm_ffi__library_bin, . - __tvm_ffi__library_bin\\n.previous\\n");\n')
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "c.c", "-o", tmp_path / "lib.so"], check=True)
    module = tvm_ffi.load_module(str(tmp_path / "lib.so"))
    assert module.get_function("add", query_imports=True)(3, 4, 5) == 3003


LOADER_ERRORS = {
    "cut": (SOURCE[:-3], ValueError, "damaged"),
    "empty": (b"", ValueError, "damaged"),
    "format": (asm.source_module(CODE, {"add": 3}, fmt="cuda"), RuntimeError, "the format cuda; only c"),
    "code": (asm.source_module("int x = ;", {"add": 3}), RuntimeError, "error: expected expression"),
}


@pytest.mark.parametrize("name", LOADER_ERRORS)
def test_loader_errors(name):
    data, kind, message = LOADER_ERRORS[name]
    with pytest.raises(kind, match=message):
        tvm_ffi.get_global_func("ffi.Module.load_from_bytes.my_device")(data)


# --- options, each in a process of its own ---


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=dict(os.environ, **environment), check=False)


def test_no_jit(tmp_path):
    path = write(tmp_path)
    done = run_python(f"import lathe_ffi; lathe_ffi.configure(1, 1)\nlathe_ffi.Machine({str(path)!r})")
    assert "RuntimeError" in done.stderr and "no_jit forbids compiling" in done.stderr


def test_options(tmp_path):
    path = write(tmp_path)
    code = (f"import lathe_ffi, numpy as np\nlathe_ffi.configure(2, 0, 1, {str(tmp_path / 'cache')!r}, None, "
            f"{str(tmp_path / 'kept')!r})\nx = np.ones(4, np.float32)\n"
            f"print(np.from_dlpack(lathe_ffi.Machine({str(path)!r}).main(x, x)[0]))")
    for said in ("cache miss", "cache hit"):
        done = run_python(code)
        assert done.stdout == "[2. 2. 2. 2.]\n", done.stderr
        assert said in done.stderr
    assert (tmp_path / "kept" / "module.c").read_text() == CODE
    assert list((tmp_path / "cache").glob("*.so"))


def test_compiler_of_the_environment(tmp_path):
    path = write(tmp_path)
    code = f"import lathe_ffi, numpy as np\nx = np.ones(4, np.float32)\nlathe_ffi.Machine({str(path)!r}).main(x, x)"
    done = run_python(code, TVM_RVV_COMPILER="/no/such/compiler", XDG_CACHE_HOME=str(tmp_path))
    assert "RuntimeError" in done.stderr and "/no/such/compiler" in done.stderr


# --- a model ---


@pytest.mark.skipif("LATHE" not in os.environ, reason="LATHE names no compiler")
def test_digits(tmp_path):
    lathe, model = os.environ["LATHE"], TOP / "demo" / "digits.onnx"
    subprocess.run([lathe, "compile", model, "--emit", "module", "-q", "-o", tmp_path / "digits.so"], check=True)
    picture = np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32)
    np.save(tmp_path / "in.npy", picture)
    subprocess.run([lathe, "run", model, "--input", f"image={tmp_path / 'in.npy'}", "--output-dir", tmp_path / "out"],
                   check=True, capture_output=True)
    wanted = np.load(next((tmp_path / "out").glob("*.npy")))
    got = numpy(lathe_ffi.Machine(tmp_path / "digits.so").main(picture))
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_layers_on_the_vta(tmp_path):
    """The device that a module wants is the VTA of vta_ffi, as soon as that is in the process."""
    lathe, model = os.environ["LATHE"], TOP / "demo" / "residual_vta.onnx"
    subprocess.run([lathe, "compile", model, "--offload", "vta", "--emit", "module", "-q", "-o", tmp_path / "vta.so"],
                   check=True)
    image = np.random.default_rng(4).integers(0, 17, (1, 1, 8, 8)).astype("float32")
    np.save(tmp_path / "in.npy", image)
    subprocess.run([lathe, "run", model, "--input", f"image={tmp_path / 'in.npy'}", "--output-dir", tmp_path / "out"],
                   check=True, capture_output=True)
    script = f"""
import lathe_ffi, numpy as np
try:
    lathe_ffi.Machine("{tmp_path / 'vta.so'}")
    raise SystemExit("there was no VTA")
except RuntimeError as e:
    assert "ext_dev is the VTA of libvta" in str(e), e
import json, tvm_ffi, vta_ffi
machine = lathe_ffi.Machine("{tmp_path / 'vta.so'}")
assert lathe_ffi.devices(machine.library) == "12"
image, wanted = np.load("{tmp_path / 'in.npy'}"), np.load("{tmp_path / 'out' / 'logits.npy'}")
assert (np.from_dlpack(machine.main(image)) == wanted).all()
counted = json.loads(tvm_ffi.get_global_func("vta.simulator.profiler_status")())
assert counted["gemm_counter"] > 0 and counted["to_device_nbytes"] > 0 and counted["buffers"] > 0, counted
vta_ffi.shutdown()  # the next call has another device: memory that was kept for it is gone, weights go there anew
assert (np.from_dlpack(machine.main(image)) == wanted).all()
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
