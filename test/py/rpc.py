#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Remote devices: the client of Apache TVM against the server and the tracker of lathe, and clients that mean harm.

    rpc.py --lathe FILE [--ffi FILE] [--ext-dev FILE] [--filter GLOB] [--chances N] [-v]
    rpc.py --corpus test/fuzz/corpus

Needs a Python with apache-tvm, onnx and numpy. Waiting has the limit of test/time_limit, which is against hangs.
"""
import argparse
import json
import contextlib
import errno
import fnmatch
import gc
import importlib.util
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

import vm_asm as asm

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(TOP, "test", "time_limit")) as limit:
    TIME_LIMIT = int(limit.read())
MAGIC, MISMATCH = 0xFF271, 0xFF271 + 2


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def needs(*modules):
    """Skips a test without them: TVM's server and tracker ask for more than its client."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise Skipped(f"this Python has no {name}")


def check(condition, words):
    if not condition:
        raise Failure(words)


def raises(call, words):
    """The call fails, and says so with these words."""
    try:
        call()
    except Exception as fault:
        check(words in str(fault), f"the error says {fault!r}, not '{words}'")
        return
    raise Failure(f"no error where '{words}' is expected")


def until(condition, words):
    deadline = time.monotonic() + TIME_LIMIT
    while not condition():
        check(time.monotonic() < deadline, words)
        time.sleep(0.02)


def last_words(connection, data):
    """Sends data, and no more. The other side may have closed before all of it: shutdown then finds no connection."""
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError as fault:
        if not isinstance(fault, ConnectionError) and fault.errno != errno.ENOTCONN:
            raise


class Server:
    """A verb that listens; what it leaves behind is looked at when it ends."""

    def __init__(self, lathe, verb, *flags):
        self.folder = tempfile.mkdtemp()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.process = subprocess.Popen([lathe, verb, "--port", "0", *flags], stdout=subprocess.PIPE, text=True,
                                        stderr=self.log, env=dict(os.environ, TMPDIR=self.temporary))
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def folders(self):
        """Of sessions."""
        return [name for _, names, _ in os.walk(self.temporary) for name in names if name.startswith("session-")]

    def idle(self):
        until(lambda: not self.children() and not self.folders(),
              f"left behind: processes {self.children()}, folders {self.folders()}")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIME_LIMIT)
        left = os.listdir(self.temporary)
        self.log.seek(0)
        said = self.log.read()
        faults = [line.strip() for line in said.split("\n") if "by a signal" in line or "Sanitizer" in line
                  or "runtime error" in line]
        self.log.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)
        check(code == 0, f"the server ended with {code}: {said[-2000:]}")
        check(not left, f"the server left {left}")
        check(not faults, f"sessions ended badly: {faults[:3]}")


def serving(options, body, *flags):
    """Runs body(server); the sessions that it opened end with it, and nothing of them is left."""
    s = Server(options.lathe, "rpc-server", *flags)
    try:
        body(s)
        gc.collect()
        s.idle()
    except BaseException:
        with contextlib.suppress(Failure):
            s.close()
        raise
    s.close()


def module_of(options, folder, name="digits"):
    path = os.path.join(folder, f"{name}.so")
    subprocess.run([options.lathe, "compile", os.path.join(TOP, "demo", "digits.onnx"), "--emit", "module", "-q", "-o",
                    path], check=True, timeout=TIME_LIMIT)
    return path


# --- TVM's client ---


def test_tensors(options, folder):
    """Memory, copies in one piece and in chunks, views; on the CPU, my_device and the VTA."""
    import tvm
    from tvm import rpc
    for flags in ([], ["--max-packet", "4096"]):
        def body(s):
            remote = rpc.connect("127.0.0.1", s.port)
            for device in (remote.cpu(), remote.ext_dev()):
                for array in (np.arange(12, dtype="float32").reshape(3, 4), np.arange(30000, dtype="int16"),
                              np.zeros((0, 3), "float64"), np.array(7, "int8"), np.ones((2, 3), bool)):
                    t = tvm.runtime.tensor(array, device)
                    got = t.numpy()
                    check(got.shape == array.shape and got.dtype == array.dtype and (got == array).all(),
                          f"{array.dtype}{array.shape} came back as {got}")
                    other = tvm.runtime.empty(array.shape, str(array.dtype), device)
                    t.copyto(other)
                    check((other.numpy() == array).all(), "a copy among remote tensors differs")
            check(remote.cpu(0).exist and remote.ext_dev(0).exist and not remote.cuda(0).exist, "which devices exist")
            raises(lambda: tvm.runtime.empty((1 << 40,), "float32", remote.cpu()), "a session may hold")
            raises(lambda: tvm.runtime.empty((4,), "float32", remote.cuda(0)), "no device of type 2")

        serving(options, body, *flags)


def test_files(options, folder):
    from tvm import rpc
    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(bytearray(b"\0one\xff"), "b.bin")
        remote.upload(os.path.join(TOP, "test", "time_limit"))
        remote.upload(bytearray(b""), "a empty")
        check(remote.listdir(".") == "a empty,b.bin,time_limit", remote.listdir("."))
        check(remote.download("b.bin") == b"\0one\xff" and remote.download("a empty") == b"", "another content")
        remote.remove("b.bin")
        raises(lambda: remote.download("b.bin"), "No such file")
        for name in ("../x", "/etc/passwd", "..", "a/b", "", "x\n"):
            raises(lambda n=name: remote.upload(bytearray(b"x"), n or "\x01"), "names no file of the session")
        check(remote.listdir("/") == "a empty,time_limit", remote.listdir("/"))
        raises(lambda: remote.listdir("../"), "one folder")
        raises(lambda: remote.get_function("no.such.function"), "has no function")
        other = rpc.connect("127.0.0.1", s.port)
        check(other.listdir(".") == "", "one session sees the files of another")

    serving(options, body)


def test_modules(options, folder):
    """A portable module, by its functions and by TVM's VirtualMachine; times; errors."""
    import tvm
    from tvm import relax, rpc
    path = module_of(options, folder)
    image = np.random.default_rng(1).random((1, 1, 8, 8), np.float32)
    local = subprocess.run([options.lathe, "run", path, "--input", f"image={save(folder, image)}", "--output-dir",
                            folder], check=True, timeout=TIME_LIMIT, capture_output=True)
    want = np.load(os.path.join(folder, "probabilities.npy"))
    check(local.returncode == 0, "run")
    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(path)
        module, device = remote.load_module("digits.so"), remote.cpu()
        x = tvm.runtime.tensor(image, device)
        vm = module["vm_load_executable"]()
        raises(lambda: vm["main"], "vm_initialization first")
        vm["vm_initialization"](101, 0, 2, 1, 0, 2)
        result = vm["main"](x)
        check((result.numpy() == want).all(), "main gives other numbers than lathe run")
        machine = relax.VirtualMachine(module, device)
        machine.set_input("main", x)
        machine.invoke_stateful("main")
        check((machine.get_outputs("main").numpy() == want).all(), "the VirtualMachine gives other numbers")
        machine.save_function("main", "saved", x, include_return=False)
        for evaluator in (vm.time_evaluator("main", device, number=2, repeat=3),
                          vm.time_evaluator("main", device, number=1, repeat=2, min_repeat_ms=1,
                                            f_preproc="cache_flush_cpu_non_first_arg")):
            times = evaluator(x).results
            check(len(times) in (2, 3) and min(times) > 0, f"times {times}")
        check(len(machine.module.time_evaluator("saved", device, repeat=4)().results) == 4, "saved functions are timed")
        raises(lambda: vm["main"](tvm.runtime.tensor(image[:, :, :4].copy(), device)), "8")
        raises(lambda: vm["main"](x, x), "argument")
        raises(lambda: remote.load_module("missing.so"), "missing.so")
        remote.upload(bytearray(b"no module"), "bad.so")
        raises(lambda: remote.load_module("bad.so"), "bad.so")
        raises(lambda: vm.time_evaluator("none", device), "no function none")
        raises(lambda: vm.time_evaluator("main", device, number=0)(x), "number is 1 to")
        check((vm["main"](x).numpy() == want).all(), "after errors the session goes on")

    serving(options, body)


def test_machine_code(options, folder):
    """What TVM's compiler made: a shared object, an object file, an archive of them."""
    import tvm
    from tvm import rpc
    if not tvm.runtime.enabled("llvm"):
        raise Skipped("this TVM has no LLVM")
    A = tvm.te.placeholder((16,), "float32", "A")
    B = tvm.te.compute((16,), lambda i: A[i] + 1, "B")
    built = tvm.compile(tvm.te.create_prim_func([A, B]).with_attr("global_symbol", "add_one"), target="llvm")
    files = []
    for name in ("f.so", "f.tar"):
        built.export_library(os.path.join(folder, name))
        files.append(name)
    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        device = remote.cpu()
        for name in files:
            remote.upload(os.path.join(folder, name))
            f = remote.load_module(name)
            a = tvm.runtime.tensor(np.arange(16, dtype="float32"), device)
            b = tvm.runtime.empty((16,), "float32", device)
            f["add_one"](a, b)
            check((b.numpy() == np.arange(16) + 1).all(), f"{name} gives {b.numpy()}")
        linked = remote.download_linked_module("f.tar")
        check(bytes(linked[:4]) == b"\x7fELF", "a linked module is not a shared object")

    serving(options, body)


def parts(result):
    """Arrays of a result, which may be a tuple of them."""
    return [result.numpy()] if hasattr(result, "numpy") else [a for element in result for a in parts(element)]


def test_relax(options, folder):
    """Models that TVM compiled, on our machine elsewhere: the same numbers as its own machine gives here."""
    import tvm
    from tvm import relax, rpc

    import stock
    if not tvm.runtime.enabled("llvm"):
        raise Skipped("this TVM has no LLVM")
    made = []
    for name, module, runs, _ in stock.stock_models():
        if name not in ("cnn", "mlp"):
            continue
        path = os.path.join(folder, f"{name}.so")
        built = tvm.compile(module, target="llvm")
        built.export_library(path)
        here = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
        made.append((path, runs, [parts(here["main"](*map(tvm.runtime.tensor, run))) for run in runs]))

    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        for path, runs, wanted in made:
            remote.upload(path)
            vm = relax.VirtualMachine(remote.load_module(os.path.basename(path)), remote.cpu())
            for run, want in zip(runs, wanted):
                vm.set_input("main", *(tvm.runtime.tensor(x, remote.cpu()) for x in run))
                vm.invoke_stateful("main")
                stock.compare(parts(vm.get_outputs("main")), want)

    serving(options, body)


def save(folder, array):
    path = os.path.join(folder, "input.npy")
    np.save(path, array)
    return path


def test_leases(options, folder):
    """Keys, tokens, places, time-outs."""
    from tvm import rpc
    token = os.path.join(folder, "token")
    with open(token, "w") as f:
        f.write("s3cret\n")
    def body(s):
        for key in ("", "other", "board", "board -token=wrong", "board -token=", "boar", "board2 -token=s3cret"):
            raises(lambda k=key: rpc.connect("127.0.0.1", s.port, k), "key")
        first = rpc.connect("127.0.0.1", s.port, "board -token=s3cret", session_timeout=1)
        check(first.listdir(".") == "", "a session")
        # The place is taken: a second client waits until the lease of the first is over.
        second = rpc.connect("127.0.0.1", s.port, "board -token=s3cret")
        check(second.listdir(".") == "", "the second session")
        raises(lambda: first.listdir("."), "")

    serving(options, body, "--key", "board", "--token-file", token, "--sessions", "1")
    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        until(lambda: not s.children(), "the lease does not end")
        raises(lambda: remote.listdir("."), "")

        # What the server still says is the lease that was: stock clients look for the name in front of it.
        client = Raw(s.port)
        check("RPCSessionTimeoutError: Your 1s session has expired" in str(client.answer()), "the lease's last words")

    serving(options, body, "--session-seconds", "1")

# --- the VTA ---


def gemm_object(folder, name="gemm.o", *defines):
    path = os.path.join(folder, name)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-fPIC", "-c", "-I", os.path.join(TOP, "runtime/vm"),
                    *defines, os.path.join(TOP, "test/vta/object/packed.c"), "-o", path], check=True,
                   timeout=TIME_LIMIT)
    return path


def test_vta_compiled(options, folder):
    """A layer that lathe compiled for the VTA, as an object on a remote one: the bits of the interpreter."""
    import tvm
    from tvm import rpc
    rng = np.random.default_rng(7)
    inputs = {"data": rng.integers(-100, 100, (1, 2, 8, 8, 1, 16), "int8"),
              "kernel": rng.integers(-100, 100, (2, 2, 3, 3, 16, 16), "int8"),
              "bias": rng.integers(-1000, 1000, (2, 1, 16), "int32")}
    layer, flags = os.path.join(folder, "layer"), []
    for name, array in inputs.items():
        np.save(os.path.join(folder, f"{name}.npy"), array)
        flags += ["--input", f"{name}={folder}/{name}.npy"]
    run_lathe(options, folder, "vta", "conv2d", "height=8,width=8,in_channels=32,out_channels=32", "-o", layer)
    lowered = [f"{layer}.te", "--schedule", f"{layer}.sched"]
    run_lathe(options, folder, "run", lowered[0], "--interpret", *flags)
    want = np.load(os.path.join(folder, "out", "res.npy"))
    run_lathe(options, folder, "compile", *lowered, "--target", "vta", "--module-name", "layer", "-o", f"{layer}.c")
    gemm_object(folder, "layer.o", f'-DSOURCE="{layer}.c"', "-DNAME=layer", "-DCOUNT=4")

    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(f"{layer}.o")
        device = remote.ext_dev(0)
        args = [tvm.runtime.tensor(x, device) for x in (*inputs.values(), np.zeros_like(want))]
        remote.load_module("layer.o")["layer"](*args)
        check((args[3].numpy() == want).all(), "the layer on the VTA gives other bits")

    serving(options, body)


def test_vta(options, folder):
    """Buffers, an object that calls VTA* functions, counters, other configurations, errors: as the original server."""
    import json

    import tvm
    from tvm import rpc
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, shape, "int8") for shape in ((4, 16), (16, 4, 16, 16)))
    want = np.einsum("ki,okji->oj", a.astype("int64"), b.astype("int64")).astype("int8")
    gemm_object(folder)

    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(os.path.join(folder, "gemm.o"))
        f, device = remote.load_module("gemm.o")["my_gemm"], remote.ext_dev(0)
        status = remote.get_function("vta.simulator.profiler_status")
        remote.get_function("vta.simulator.profiler_clear")()
        A, B = (tvm.runtime.tensor(x, device) for x in (a, b))
        C = tvm.runtime.tensor(np.zeros((16, 16), "int8"), device)
        f(A, B, C)
        check((C.numpy() == want).all(), "the product on the VTA is another one")
        check(json.loads(status())["gemm_counter"] > 0, f"the counters say {status()}")
        times = remote.load_module("gemm.o").time_evaluator("my_gemm", device, number=2, repeat=2)(A, B, C).results
        check(min(times) > 0, f"times {times}")
        reconfigure = remote.get_function("tvm.contrib.vta.reconfig_runtime")
        program = remote.get_function("tvm.contrib.vta.init")
        raises(lambda: reconfigure(json.dumps({"LOG_BLOCK": 5})), "tensors are on the VTA")
        small = tvm.runtime.tensor(np.zeros(16, "int8"), device)
        raises(lambda: f(A, small, C), "VTA")
        C.copyfrom(np.zeros((16, 16), "int8"))
        f(A, B, C)
        check((C.numpy() == want).all(), "after an error of the VTA the session does not go on")
        del A, B, C, small
        gc.collect()
        raises(lambda: reconfigure("{"), "VTA")
        raises(lambda: reconfigure(json.dumps({"LOG_BLOCK": 77})), "VTA")
        raises(lambda: program("no.bit"), "bit stream")
        reconfigure(json.dumps({"LOG_BLOCK": 5}))
        t = tvm.runtime.tensor(np.arange(1000, dtype="int32"), device)
        check((t.numpy() == np.arange(1000)).all(), "memory of the device that was configured anew")
        del t
        gc.collect()
        program("1x16_i8w8a32_15_15_18_17.bit")
        A, B = (tvm.runtime.tensor(x, device) for x in (a, b))
        C = tvm.runtime.tensor(np.zeros((16, 16), "int8"), device)
        f(A, B, C)
        check((C.numpy() == want).all(), "the product on the VTA that was programmed anew is another one")

    serving(options, body)


def stock_gemm(session, where, device, want, a, b):
    """my_gemm on TVM's own device table: `where` loads it."""
    import tvm
    check(device.exist, "TVM does not know the device")
    f = where("gemm.so")["my_gemm"]
    A, B, C = (tvm.runtime.tensor(x, device) for x in (a, b, np.zeros((16, 16), "int8")))
    f(A, B, C)
    check((C.numpy() == want).all(), "the product on the VTA is another one")
    raises(lambda: tvm.runtime.empty((1 << 40,), "int8", device), "VTA")
    check((A.numpy() == a).all(), "after an error the device does not go on")


def test_vta_model(options, folder):
    """A quantised model whose layers run on the server's VTA: the bits of the CPU here."""
    import tvm
    from tvm import relax, rpc
    model, path = os.path.join(TOP, "demo", "residual_vta.onnx"), os.path.join(folder, "residual.so")
    image = np.random.default_rng(4).integers(0, 17, (1, 1, 8, 8)).astype("float32")
    for words in (["compile", model, "--offload", "vta", "--emit", "module", "--target", "native", "-o", path],
                  ["run", model, "--input", f"image={save(folder, image)}", "--output-dir", folder]):
        subprocess.run([options.lathe, *words], check=True, timeout=TIME_LIMIT, capture_output=True)
    want = np.load(os.path.join(folder, "logits.npy"))

    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(path)
        vm = remote.load_module("residual.so")["vm_load_executable"]()
        raises(lambda: vm["vm_initialization"](1, 0, 2, 1, 0, 2), "the first one, ext_dev:0, cpu:0")
        vm["vm_initialization"](1, 0, 2, 12, 0, 1, 1, 0, 2)  # the VTA's memory goes back behind every call
        remote.get_function("vta.simulator.profiler_clear")()
        result = vm["main"](tvm.runtime.tensor(image, remote.cpu()))
        check((result.numpy() == want).all(), "the layers on the VTA give other numbers")
        raises(lambda: vm["main"](tvm.runtime.tensor(image, remote.ext_dev())), "argument 0 lies on ext_dev:0")
        stock = relax.VirtualMachine(remote.load_module("residual.so"), [remote.cpu(), remote.ext_dev()])
        result = stock["main"](tvm.runtime.tensor(image, remote.cpu()))
        check((result.numpy() == want).all(), "TVM's own machine for the server gives other numbers")
        del stock
        gc.collect()
        status = remote.get_function("vta.simulator.profiler_status")()
        check('"gemm_counter": 0' not in status and "gemm_counter" in status, f"nothing ran on the VTA: {status}")
        remote.get_function("tvm.contrib.vta.reconfig_runtime")("{}")  # the same device, anew: its buffers are gone
        result = vm["main"](tvm.runtime.tensor(image, remote.cpu()))
        check((result.numpy() == want).all(), "behind a reconfiguration the layers give other numbers")
        run_lathe(options, folder, "run", path, "--remote", f"127.0.0.1:{s.port}", "--input",
                  f"image={save(folder, image)}")
        check((np.load(os.path.join(folder, "out", "logits.npy")) == want).all(), "lathe run --remote: other numbers")

    serving(options, body)


# The transposition stays with the CPU, so there are two regions; the second one reads what the first one made, too.
TWO_REGIONS = """func @main(%x: i8[1, 16, 8, 8]) {{
  %w = constant i8[16, 16, 3, 3] dense [{w}]
  %v = constant i8[16, 16, 3, 3] dense [{v}]
  %one = constant f32[] dense [1.0]
  %half = constant f32[] dense [0.5]
  %fine = constant f32[] dense [0.0009765625]
  %c = qnn.conv2d(%x, %w) {{pads = [1, 1, 1, 1]}}
  %q = qnn.requantize(%c, %fine, %half) {{rounding = "half_up", out_dtype = i8}}
  %r = nn.relu(%q)
  %t = transpose(%r) {{perm = [0, 1, 3, 2]}}
  %d = qnn.conv2d(%t, %v) {{pads = [1, 1, 1, 1]}}
  %e = qnn.requantize(%d, %fine, %one) {{rounding = "half_up", out_dtype = i8}}
  %s = qnn.add(%e, %one, %r, %half, %one) {{rounding = "half_up"}}
  return %s
}}
"""


def test_vta_memory(options, folder):
    """Values between regions stay on the VTA, weights go there once: by the server's counters of buffers and bytes."""
    import json

    import tvm
    from tvm import rpc
    rng = np.random.default_rng(8)
    image = rng.integers(-100, 100, (1, 16, 8, 8), "int8")
    model, path = os.path.join(folder, "two.txt"), os.path.join(folder, "two.so")
    with open(model, "w", encoding="utf-8") as f:
        f.write(TWO_REGIONS.format(**{n: ", ".join(map(str, rng.integers(-50, 50, 16 * 16 * 9))) for n in "wv"}))
    run_lathe(options, folder, "compile", model, "--offload", "vta", "--emit", "module", "--target", "native", "-o",
              path)
    image_file = os.path.join(folder, "x.npy")
    np.save(image_file, image)
    run_lathe(options, folder, "run", model, "--input", f"x={image_file}")
    want = np.load(os.path.join(folder, "out", "s.npy"))
    value, weights = 1024, 2 * 16 * 16 * 9

    def body(s):
        remote = rpc.connect("127.0.0.1", s.port)
        remote.upload(path)
        vm = remote.load_module("two.so")["vm_load_executable"]()
        vm["vm_initialization"](1, 0, 2, 12, 0, 1, 1, 0, 2)
        x, status = tvm.runtime.tensor(image, remote.cpu()), remote.get_function("vta.simulator.profiler_status")
        remote.get_function("vta.simulator.profiler_clear")()
        for rounds in (1, 2, 3):
            result = vm["main"](x)
            check((result.numpy() == want).all(), f"round {rounds}: the regions on the VTA give other numbers")
            counted = json.loads(status())
            # In: the input and what was transposed. Out: what is transposed, and the result. Weights: in round 1.
            moved = [counted[f"{k}_device_nbytes"] for k in ("to", "from", "within")]
            check(moved == [weights + 2 * value * rounds, 2 * value * rounds, 0], f"round {rounds} moved {moved}")
            check(counted["buffers"] == 2, f"{counted['buffers']} buffers: the weights of both regions alone stay")
        del vm
        gc.collect()
        check(json.loads(status())["buffers"] == 0, f"without the module there are buffers left: {status()}")

    serving(options, body)


def stock_machine(options, folder):
    """TVM's own machine in this process runs a module whose layers are the VTA's, on TVM's own table of devices."""
    import tvm
    import tvm_ffi
    from tvm import relax
    tvm_ffi.load_module(options.ffi)
    model, path = os.path.join(TOP, "demo", "residual_vta.onnx"), os.path.join(folder, "residual.so")
    image = np.random.default_rng(5).integers(0, 17, (1, 1, 8, 8)).astype("float32")
    run_lathe(options, folder, "compile", model, "--offload", "vta", "--emit", "module", "--target", "native", "-o",
              path)
    run_lathe(options, folder, "run", model, "--input", f"image={save(folder, image)}")
    vm = relax.VirtualMachine(tvm.runtime.load_module(path), [tvm.cpu(), tvm.ext_dev()])
    for _ in range(2):
        result = vm["main"](tvm.runtime.tensor(image)).numpy()
        check((result == np.load(os.path.join(folder, "out", "logits.npy"))).all(), "TVM's machine: other numbers")


def test_stock_device(options, folder):
    """device_api.ext_dev: libvta's device table in TVM's own run-time, in this process and in TVM's server."""
    import ctypes

    import tvm
    from tvm import rpc
    if not options.ext_dev:
        raise Skipped("no --ext-dev")
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 8, shape, "int8") for shape in ((4, 16), (16, 4, 16, 16)))
    want = np.einsum("ki,okji->oj", a.astype("int64"), b.astype("int64")).astype("int8")
    path = os.path.join(folder, "gemm.so")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", gemm_object(folder), "-o", path], check=True,
                   timeout=TIME_LIMIT)
    ctypes.CDLL(options.ext_dev, ctypes.RTLD_GLOBAL)
    stock_gemm(None, lambda name: tvm.runtime.load_module(path), tvm.ext_dev(0), want, a, b)
    stock_machine(options, folder)
    needs("cloudpickle")
    stock = Stock("rpc_server", "--key", "board", "--load-library", options.ext_dev)
    try:
        remote = rpc.connect("127.0.0.1", stock.port, "board")
        remote.upload(path)
        stock_gemm(remote, remote.load_module, remote.ext_dev(0), want, a, b)
    finally:
        stock.close()


# --- the tracker ---


class Tracker(Server):
    def __init__(self, options, *flags):
        super().__init__(options.lathe, "rpc-tracker", *flags)


def pending(session, key="board"):
    return session.summary()["queue_info"].get(key, {"free": 0, "pending": 0})


def test_tracker(options, folder):
    """Requests in the order of their priorities; a server that goes; summaries; ours and TVM's."""
    import threading

    from tvm import rpc
    tracker = Tracker(options)
    try:
        session = rpc.connect_tracker("127.0.0.1", tracker.port)
        until(lambda: session.summary()["queue_info"] == {}, "a new tracker knows keys")

        def body(s):
            until(lambda: pending(session)["free"] == 1, "the server does not offer itself")
            check([i["key"] for i in session.summary()["server_info"]] == ["server:board"], "server_info")
            check("board" in session.text_summary(), "text_summary")
            first = session.request("board", session_timeout=TIME_LIMIT)
            check(first.listdir(".") == "", "a session by way of the tracker")
            raises(lambda: rpc.connect("127.0.0.1", s.port, "board"), "key")
            order = []

            def ask(priority):
                mine = rpc.connect_tracker("127.0.0.1", tracker.port)
                remote = mine.request("board", priority=priority)
                order.append(priority)
                remote.listdir(".")
                del remote

            threads = []
            for priority in (1, 3, 2):
                threads.append(threading.Thread(target=ask, args=(priority,)))
                threads[-1].start()
                until(lambda n=len(threads): pending(session)["pending"] == n, "the request is not known")
            del first
            gc.collect()
            for thread in threads:
                thread.join(TIME_LIMIT)
            check(order == [3, 2, 1], f"the order was {order}")
            until(lambda: pending(session)["free"] == 1, "the server is not free again")

        serving(options, body, "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}")
        until(lambda: pending(session) == {"free": 0, "pending": 0}, "the server has gone, and its place is there")
        check(session.summary()["server_info"] == [], "the server has gone")
        check(session.summary()["queue_info"] == {}, "and its key")
        del session
    finally:
        tracker.close()


def test_tracker_crowd(options, folder):
    """Connections that ask for nothing give way when the system has no descriptor left for one that does."""
    few = os.path.join(folder, "lathe")
    with open(few, "w") as f:
        f.write(f'#!/bin/sh\nulimit -n 24\nexec "{options.lathe}" "$@"\n')
    os.chmod(few, 0o755)
    tracker = Tracker(argparse.Namespace(lathe=few))
    idle = []
    try:
        for _ in range(40):
            idle.append(socket.create_connection(("127.0.0.1", tracker.port), timeout=TIME_LIMIT))
            idle[-1].sendall(i32(0x2F271))
        client = socket.create_connection(("127.0.0.1", tracker.port), timeout=TIME_LIMIT)
        client.sendall(i32(0x2F271) + i32(3) + b"[6]")
        said = b""
        while len(said) < 8 + 3:
            part = client.recv(1000)
            check(part, "the tracker closed the connection")
            said += part
        check(said[:4] == i32(0x2F271), f"the tracker says {said}")
        client.close()
    finally:
        for connection in idle:
            connection.close()
        tracker.close()


def test_tracker_token(options, folder):
    from tvm import rpc
    token = os.path.join(folder, "token")
    with open(token, "w") as f:
        f.write("s3cret\n")
    tracker = Tracker(options, "--token-file", token)
    try:
        session = rpc.connect_tracker("127.0.0.1", tracker.port)
        raises(lambda: session.request("board", max_retry=1), "nvalid return value")

        def body(s):
            until(lambda: pending(session)["free"] == 1, "the server does not offer itself")
            remote = session.request("board -token=s3cret")
            check(remote.listdir(".") == "", "a session")

        serving(options, body, "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}", "--token-file", token)
        del session
    finally:
        tracker.close()


# --- our client, and TVM's server and tracker ---


def listens(port):
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


class Stock:
    """A server or a tracker of TVM's."""

    def __init__(self, module, *flags):
        self.process = subprocess.Popen([sys.executable, "-m", f"tvm.exec.{module}", "--host", "127.0.0.1", "--port",
                                         "19090", "--port-end", "19999", *flags], stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.said = ""
        while "bind to" not in self.said:
            line = self.process.stderr.readline()
            check(line, f"TVM's {module} does not start: {self.said}")
            self.said += line
        self.port = int(self.said.rsplit(":", 1)[1])
        until(lambda: listens(self.port), f"TVM's {module} does not listen")
        import threading
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(TIME_LIMIT)


def run_lathe(options, folder, *arguments, fails=None):
    out = os.path.join(folder, "out")
    done = subprocess.run([options.lathe, *arguments, *(["--output-dir", out] if arguments[0] == "run" else [])],
                          capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    if fails:
        check(done.returncode != 0 and fails in done.stderr, f"'{fails}' is not in: {done.stderr}")
        return None
    check(done.returncode == 0, done.stderr)
    return done.stdout


def models(folder):
    """(name, path of an ONNX file, its inputs, its outputs' names)"""
    import onnx
    import onnx.parser
    digits = os.path.join(TOP, "demo", "digits.onnx")
    yield digits, {"image": np.random.default_rng(1).random((1, 1, 8, 8), np.float32)}
    path = os.path.join(folder, "two.onnx")
    onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        two (float[300, 500] a, float[300, 500] b) => (float[300, 500] s, float[500, 300] t)
        { s = Add(a, b)  t = Transpose(a) }"""), path)
    yield path, {n: np.random.default_rng(2).random((300, 500), np.float32) for n in "ab"}


def same_as_here(options, folder, *where):
    """lathe run and bench, there as here."""
    for path, inputs in models(folder):
        flags = []
        for name, array in inputs.items():
            file = os.path.join(folder, f"{name}.npy")
            np.save(file, array)
            flags += ["--input", f"{name}={file}"]
        run_lathe(options, folder, "run", path, "--emit", "module", *flags)
        out = os.path.join(folder, "out")
        want = {name: np.load(os.path.join(out, name)) for name in os.listdir(out)}
        subprocess.run(["rm", "-r", out], check=True)
        run_lathe(options, folder, "run", path, *flags, *where)
        for name, array in want.items():
            got = np.load(os.path.join(out, name))
            check(np.allclose(got, array, rtol=1e-5, atol=1e-6), f"{path}: {name} is {got}, not {array}")
        subprocess.run(["rm", "-r", out], check=True)
        said = run_lathe(options, folder, "bench", path, "--repeat", "2", *flags, *where)
        check("median" in said, said)
    tuned_there(options, folder, *where)


def tuned_there(options, folder, *where):
    """lathe tune: a record for each kernel, of schedules that gave the right numbers there."""
    model, log = os.path.join(folder, "products.txt"), os.path.join(folder, "tuned.log")
    with open(model, "w", encoding="utf-8") as f:
        f.write("func @main(%x: f32[8, 32], %w: f32[32, 48], %v: f32[48, 48]) {\n  %a = nn.matmul(%x, %w)\n"
                "  %b = nn.relu(%a)\n  %c = nn.matmul(%b, %v)\n  return %c\n}\n")
    target = {"x86_64": "x86-64-v2", "aarch64": "aarch64"}[os.uname().machine]
    run_lathe(options, folder, "tune", model, "-o", log, "--target", target, "--candidates", "2", *where)
    with open(log, encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    check(len(records) == 2, records)
    for r in records:
        check(r["measured"] == 2 and r["seconds"] > 0 and r["compiler"].startswith("on 127.0.0.1:"), r)
    os.remove(log)


def test_client(options, folder):
    """lathe run and bench against our server, directly and by the tracker."""
    def body(s):
        where = ["--remote", f"127.0.0.1:{s.port}", "--key", "board"]
        same_as_here(options, folder, *where)
        digits = os.path.join(TOP, "demo", "digits.onnx")
        run_lathe(options, folder, "run", digits, *where[:2], fails="no key was given")
        run_lathe(options, folder, "run", digits, *where, "--no-jit", fails="--no-jit is for runs on this machine")
        run_lathe(options, folder, "run", digits, *where, "--emit", "c", fails="a remote device runs modules")
        run_lathe(options, folder, "run", digits, "--remote", "nowhere", fails="HOST:PORT")
        run_lathe(options, folder, "run", digits, "--remote", "127.0.0.1:1", fails="refused")
        run_lathe(options, folder, "run", digits, "--key", "board", fails="for a remote device")

    serving(options, body, "--key", "board")
    def no_key(s):
        same_as_here(options, folder, "--remote", f"127.0.0.1:{s.port}")

    serving(options, no_key, "--max-packet", "400000")
    tracker = Tracker(options)
    try:
        where = ["--key", "b", "--tracker", f"127.0.0.1:{tracker.port}"]
        serving(options, lambda s: same_as_here(options, folder, *where), *where)
    finally:
        tracker.close()


def test_stock_server(options, folder):
    """lathe run and bench on TVM's server, which loads our modules by liblathe_ffi."""
    needs("cloudpickle")
    if not options.ffi:
        raise Skipped("no --ffi")
    stock = Stock("rpc_server", "--key", "board", "--load-library", options.ffi)
    try:
        same_as_here(options, folder, "--remote", f"127.0.0.1:{stock.port}", "--key", "board")
    finally:
        stock.close()


def test_stock_tracker(options, folder):
    """Our server at TVM's tracker, TVM's server at ours."""
    from tvm import rpc
    needs("cloudpickle", "tornado")
    stock = Stock("rpc_tracker")
    try:
        def body(s):
            session = rpc.connect_tracker("127.0.0.1", stock.port)
            until(lambda: pending(session)["free"] == 1, "our server does not offer itself")
            remote = session.request("board")
            check(remote.listdir(".") == "", "a session by way of TVM's tracker")
            del remote, session
            gc.collect()
            run_lathe(options, folder, "run", os.path.join(TOP, "demo", "digits.onnx"), "--tracker",
                      f"127.0.0.1:{stock.port}", "--key", "board")

        serving(options, body, "--key", "board", "--tracker", f"127.0.0.1:{stock.port}")
    finally:
        stock.close()
    tracker = Tracker(options)
    try:
        stock = Stock("rpc_server", "--key", "theirs", "--tracker", f"127.0.0.1:{tracker.port}")
        session = rpc.connect_tracker("127.0.0.1", tracker.port)
        until(lambda: pending(session, "theirs")["free"] == 1, "TVM's server does not offer itself")
        remote = session.request("theirs")
        check(remote.get_function("tvm.rpc.server.upload") is not None, "a session on TVM's server")
        del remote
        gc.collect()
        stock.close()
        until(lambda: session.summary()["server_info"] == [], "TVM's server has gone")
        del session
    finally:
        tracker.close()


# --- clients that mean harm, or have bad luck: they speak bytes ---


def u64(v):
    return struct.pack("<Q", v % (1 << 64))


def i32(v):
    return struct.pack("<i", v)


def integer(v):
    return i32(1) + u64(v)


def pointer(v):
    return i32(4) + u64(v)


def text(s):
    return i32(8) + u64(len(s)) + s.encode()


def raw(b):
    return i32(66) + i32(66) + u64(len(b)) + b


def device(kind=1, number=0):
    return i32(6) + i32(kind) + i32(number)


NONE = i32(0)


def tensor(data, shape, kind=1, code=2, bits=32, offset=0):
    return (u64(data) + i32(kind) + i32(0) + i32(len(shape)) + bytes([code, bits, 1, 0]) + b"".join(map(u64, shape)) +
            u64(offset))


def values(*items):
    return i32(len(items)) + b"".join(items)


def packet(code, body=b""):
    return u64(len(body) + 4) + i32(code) + body


class Raw:
    """A client without a library."""

    def __init__(self, port, key="", greet=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIME_LIMIT)
        if greet:
            key = f"client:{key}".encode()
            self.socket.sendall(i32(MAGIC) + i32(len(key)) + key)
            check(self.number() == MAGIC, "the server does not greet")
            self.take(self.number())
            self.ask(2, u64(5) + b"0.8.0" + values())

    def take(self, n):
        got = b""
        while len(got) < n:
            part = self.socket.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def number(self):
        return struct.unpack("<i", self.take(4))[0]

    def answer(self):
        size, code = struct.unpack("<Qi", self.take(12))
        return code, self.take(size - 4)

    def ask(self, code, body=b""):
        self.socket.sendall(packet(code, body))
        return self.answer()

    def handle(self, code, body):
        code, got = self.ask(code, body)
        check(code == 4 and got[4:8] == i32(4), f"no handle: {got}")
        return struct.unpack("<Q", got[8:16])[0]

    def function(self, name):
        return self.handle(9, values(text(name)))

    def call(self, function, *arguments):
        """A handle that the function gives."""
        code, got = self.ask(3, u64(function) + values(*arguments))
        check(code == 4, f"no result: {got}")
        return struct.unpack("<Q", got[-8:])[0]

    def method(self, module, name):
        return self.call(self.function("tvm.rpc.server.ModuleGetFunction"), i32(73) + u64(module), text(name),
                         i32(2) + u64(1))

    def machine(self, path):
        """main of a module, and a tensor for it."""
        with open(path, "rb") as f:
            self.ask(3, u64(self.function("tvm.rpc.server.upload")) + values(text("m.so"), raw(f.read())))
        module = self.call(self.function("tvm.rpc.server.load_module"), text("m.so"))
        vm = self.call(self.method(module, "vm_load_executable"))
        self.ask(3, u64(self.method(vm, "vm_initialization")) + values(*map(integer, (101, 0, 2, 1, 0, 2))))
        data = self.handle(17, values(i32(7) + tensor(0, [1, 1, 8, 8]), NONE))
        return self.method(vm, "main"), i32(7) + tensor(data, [1, 1, 8, 8])

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.sendall(packet(1))
        self.socket.close()


def good_session(port):
    """What any client may expect, whatever others do."""
    client = Raw(port)
    upload, download = client.function("tvm.rpc.server.upload"), client.function("tvm.rpc.server.download")
    check(client.ask(3, u64(upload) + values(text("a"), raw(b"abc")))[0] == 4, "upload")
    code, got = client.ask(3, u64(download) + values(text("a")))
    check(code == 4 and got.endswith(b"abc"), "download")
    data = client.handle(17, values(i32(7) + tensor(0, [25]), NONE))
    content = bytes(range(100))
    check(client.ask(7, tensor(data, [25]) + u64(100) + content)[0] == 4, "a tensor is not taken")
    check(client.ask(6, tensor(data, [25]) + u64(100)) == (8, content), "a tensor comes back as another one")
    client.close()


# Of the sessions below, the packet that is answered by an exception: a library that is none, an argument too few.
REFUSED = {"module": 4, "call": 13}


def packets():
    """(name, bytes behind the greeting): sessions that keep to the rules, for changes by chance."""
    begin = packet(2, u64(5) + b"0.8.0" + values())
    # The first block lies at 2^32, the first handle is 1 << 24 | 1: the server counts.
    first, handle = 1 << 32, 1 << 24 | 1
    yield "tensor", begin + b"".join((
        packet(17, values(i32(7) + tensor(0, [2, 8]), NONE)), packet(7, tensor(first, [2, 8]) + u64(64) + bytes(64)),
        packet(6, tensor(first, [2, 8]) + u64(64)), packet(15, values(device(), pointer(0))),
        packet(14, values(device(), pointer(first)))))
    yield "vta", begin + b"".join((
        packet(13, values(device(12), integer(64), integer(64), i32(5) + bytes([0, 8, 1, 0]) + bytes(4))),
        packet(7, tensor(first, [64], 12, 0, 8) + u64(64) + bytes(64)),
        packet(13, values(device(), integer(64), integer(64), i32(5) + bytes([0, 8, 1, 0]) + bytes(4))),
        packet(16, values(i32(7) + tensor(first, [64], 12, 0, 8), i32(7) + tensor(first + 8192, [64], 1, 0, 8),
                          pointer(0)))))
    yield "files", begin + b"".join((
        packet(9, values(text("tvm.rpc.server.upload"))), packet(3, u64(handle) + values(text("f"), raw(b"content"))),
        packet(9, values(text("tvm.rpc.server.download"))), packet(3, u64(2 << 24 | 2) + values(text("f"))),
        packet(10, values(pointer(handle)))))
    yield "module", begin + b"".join((
        packet(9, values(text("tvm.rpc.server.upload"))),
        packet(3, u64(handle) + values(text("m.so"), raw(b"\x7fELF"))),
        packet(9, values(text("tvm.rpc.server.load_module"))), packet(3, u64(2 << 24 | 2) + values(text("m.so")))))
    # a module of bytecode alone: its function is called with what a session may hold, by itself and by a timer
    code = asm.elf(asm.module('func main(x, y)\n %2 = vm.builtin.copy("text")\n ret %2\n', None, {}))
    numbers = [integer(v) for v in (1, 0, 3, 2, 0, 1, 0, 1, 0)]
    arguments = (i32(7) + tensor(first, [2]), text("y"))
    yield "call", begin + b"".join((
        packet(17, values(i32(7) + tensor(0, [2]), NONE)),
        packet(9, values(text("tvm.rpc.server.upload"))), packet(3, u64(handle) + values(text("m.so"), raw(code))),
        packet(9, values(text("tvm.rpc.server.load_module"))), packet(3, u64(2 << 24 | 2) + values(text("m.so"))),
        packet(9, values(text("tvm.rpc.server.ModuleGetFunction"))),
        packet(3, u64(4 << 24 | 4) + values(i32(73) + u64(3 << 24 | 3), text("vm_load_executable"), i32(2) + u64(1))),
        packet(3, u64(5 << 24 | 5) + values()),
        packet(3, u64(4 << 24 | 4) + values(i32(73) + u64(6 << 24 | 6), text("vm_initialization"), i32(2) + u64(1))),
        packet(3, u64(7 << 24 | 7) + values(*map(integer, (1, 0, 2, 1, 0, 2)))),
        packet(3, u64(4 << 24 | 4) + values(i32(73) + u64(6 << 24 | 6), text("main"), i32(2) + u64(1))),
        packet(3, u64(8 << 24 | 8) + values(*arguments)), packet(3, u64(8 << 24 | 8) + values(NONE)),
        packet(9, values(text("runtime.RPCTimeEvaluator"))),
        packet(3, u64(9 << 24 | 9) + values(i32(73) + u64(6 << 24 | 6), text("main"), *numbers, text(""))),
        packet(3, u64(10 << 24 | 10) + values(*arguments))))
    yield "timed_file", begin + b"".join((
        packet(9, values(text("tvm.rpc.server.upload"))), packet(3, u64(handle) + values(text("f"), raw(b"content"))),
        packet(9, values(text("runtime.RPCTimeEvaluator"))),
        packet(3, u64(2 << 24 | 2) + values(NONE, text("tvm.rpc.server.download"), *numbers, text(""))),
        packet(3, u64(3 << 24 | 3) + values(text("f")))))
    yield "timer", begin + b"".join((
        packet(9, values(text("runtime.RPCTimeEvaluator"))),
        packet(3, u64(handle) + values(NONE, text("lathe.rpc.version"), *numbers, text(""))),
        packet(3, u64(2 << 24 | 2) + values())))
    yield "configuration", begin + b"".join((
        packet(9, values(text("tvm.contrib.vta.reconfig_runtime"))),
        packet(3, u64(handle) + values(text('{"LOG_BLOCK": 5}'))), packet(12, values(device(12), integer(0))),
        packet(18, values(device())), packet(11, values(device()))))


def test_bad_packets(options, folder):
    """Each is answered by an exception, after which the session goes on, or ends the session; never the server."""
    def requests(client):
        data = client.handle(17, values(i32(7) + tensor(0, [25]), NONE))
        upload = client.function("tvm.rpc.server.upload")
        for words, code, body in (
                ("is not known", 99, values()), ("is not known", -1, values()), ("ends within", 9, b""),
                ("values in a packet", 9, i32(-1)), ("values in a packet", 9, i32(1 << 30)),
                ("unknown type", 9, values(i32(-5))), ("ends within", 9, values(i32(8) + u64(1 << 62))),
                ("unknown tag", 9, values(i32(65) + i32(3) + u64(0))), ("takes one string", 9, values(integer(3))),
                ("0.22 and later", 9, values()), ("no handle", 10, values(pointer(12345))),
                ("no handle", 10, values(pointer(0))), ("takes a handle", 10, values(text("x"))),
                ("no function", 3, u64(77) + values()), ("wrong arguments", 3, b"abc"),
                ("are taken", 3, u64(upload) + values()), ("wrong arguments", 13, values(integer(1))),
                ("may hold", 13, values(device(), integer(1 << 62), integer(64))),
                ("may hold", 13, values(device(), integer(-1), integer(64))),
                ("alignment", 13, values(device(), integer(64), integer(3))),
                ("alignment", 13, values(device(), integer(1), integer(1 << 20))),
                ("no device", 13, values(device(7), integer(64), integer(64))),
                ("no device", 13, values(device(1, 1), integer(64), integer(64))),
                ("more elements", 17, values(i32(7) + tensor(0, [1 << 40, 1 << 40]), NONE)),
                ("below none", 17, values(i32(7) + tensor(0, [-1]), NONE)),
                ("dimensions", 17, values(i32(7) + u64(0) + i32(1) + i32(0) + i32(1 << 20) + bytes(64), NONE)),
                ("dimensions", 17, values(i32(7) + u64(0) + i32(1) + i32(0) + i32(-1) + bytes(64), NONE)),
                ("scope", 17, values(i32(7) + tensor(0, [4]), text("shared"))),
                ("no tensor", 14, values(device(), pointer(data + 4))), ("no tensor", 14, values(device(), pointer(0))),
                ("in no tensor", 6, tensor(0, [4]) + u64(16)), ("in no tensor", 6, tensor(data - 1, [4]) + u64(16)),
                ("in no tensor", 6, tensor(data + 4096, [4]) + u64(16)), ("that has", 6, tensor(data, [25]) + u64(101)),
                ("that has", 6, tensor(data, [25], offset=1) + u64(100)),
                ("that has", 6, tensor(data, [25], offset=1 << 63) + u64(1)),
                ("that has", 6, tensor(data, [25], offset=-4) + u64(8)),
                ("that has", 6, tensor(data, [25]) + u64(1 << 63)),
                ("follow", 7, tensor(data, [25]) + u64(100) + bytes(99)), ("follow", 7, tensor(data, [25]) + u64(8)),
                ("ends within", 7, b""), ("ends within", 7, u64(data)), ("follow", 7, u64(data) * 5),
                ("in no tensor", 7, tensor(data + 101, [25]) + u64(100) + bytes(100)),
                ("dimensions", 7, u64(data) + i32(1) + i32(0) + i32(33) + bytes(300)),
                ("different sizes", 16, values(i32(7) + tensor(data, [4]), i32(7) + tensor(data, [5]))),
                ("wrong arguments", 16, values(NONE, NONE)), ("wrong arguments", 15, values()),
                ("protocol is 9.9.9", 2, u64(5) + b"9.9.9" + values()), ("wrong arguments", 2, u64(1 << 60)),
                ("constructors", 2, u64(5) + b"0.8.0" + values(text("rpc.Connect")))):
            got = client.ask(code, body)
            check(got[0] == 5 and words in got[1].decode("latin1"), f"{code}, '{words}': {got}")
        client.socket.sendall(u64(0))  # says nothing
        check(client.ask(14, values(device(), pointer(data)))[0] == 4, "the session has not gone on")
        got = client.ask(14, values(device(), pointer(data)))
        check(got[0] == 5, "memory is given back twice")

    def body(s):
        client = Raw(s.port)
        requests(client)
        client.close()
        for last in (u64(1), u64(3) + b"abc", u64(1 << 63) + i32(3), u64(5000) + i32(3), u64(5000) + i32(7)):
            client = Raw(s.port)
            client.socket.sendall(last)
            with contextlib.suppress(EOFError, ConnectionError):
                while True:
                    check(client.answer()[0] == 5, "an answer to nothing")
            client.close()
        for greeting in (b"", b"GET / HTTP/1.0\r\n\r\n", i32(MAGIC) + i32(-1), i32(MAGIC) + i32(1 << 30),
                         i32(MAGIC) + i32(3) + b"abc", i32(MAGIC) + i32(8) + b"client:\0", i32(0x2F271) + bytes(8)):
            client = Raw(s.port, greet=False)
            last_words(client.socket, greeting)
            with contextlib.suppress(EOFError, ConnectionError):
                check(client.number() == MISMATCH, f"{greeting} is greeted")
            client.close()
        good_session(s.port)

    serving(options, body, "--max-packet", "4096")


def test_handles(options, folder):
    """Functions that are asked for again and again have an end, and free handles are used again."""
    def body(s):
        client, held = Raw(s.port), []
        name = values(text("tvm.rpc.server.upload"))
        for _ in range(65536):
            client.socket.sendall(packet(9, name) * 64)
            answers = [client.answer() for _ in range(64)]
            held += [struct.unpack("<Q", got[8:16])[0] for code, got in answers if code == 4]
            if answers[-1][0] == 5:
                break
        check(len(held) == 65536 and len(set(held)) == 65536 and 0 not in held, f"{len(held)} handles")
        check(client.ask(10, values(pointer(held[0])))[0] == 4, "free")
        again = client.handle(9, name)
        check(again not in held, "a number is used twice")
        check(client.ask(3, u64(held[0]) + values())[0] == 5, "a handle that was given back")
        client.close()

    serving(options, body)


def test_crowd(options, folder):
    """A hundred that say nothing, a hundred at once that work, and what is left of them."""
    import threading

    def body(s):
        before = s.descriptors()
        silent = [Raw(s.port, greet=False) for _ in range(100)]
        for i, client in enumerate(silent):
            client.socket.sendall((i32(MAGIC) + i32(7) + b"client:")[:i % 15])
        faults = []

        def work():
            try:
                good_session(s.port)
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=work) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIME_LIMIT)
        check(not faults, f"{len(faults)} of 100: {faults[:1]!r}")
        for client in silent:
            client.socket.close()
        until(lambda: not s.children(), f"processes stay: {s.children()}")
        until(lambda: s.descriptors() == before, f"{before} descriptors were open, {s.descriptors()} are")
        check(not s.folders(), f"folders stay: {s.folders()}")

    serving(options, body, "--sessions", "8")


def test_silence(options, folder):
    """Who says nothing is sent away in the end."""
    def body(s):
        client = Raw(s.port, greet=False)
        client.socket.sendall(i32(MAGIC))
        with contextlib.suppress(ConnectionError):
            check(client.socket.recv(4) == b"", "an answer to half a greeting")
        client.socket.close()

    serving(options, body)


def test_kill(options, folder):
    """A session that is killed, or whose client goes, with the compiler that it has started; halves of packets."""
    started = os.path.join(folder, "started")
    compiler = os.path.join(folder, "cc")
    with open(compiler, "w") as f:
        f.write(f"#!/bin/sh\necho $$ >> {started}\nexec sleep 100000\n")
    os.chmod(compiler, 0o755)
    path = module_of(options, folder)

    def alive(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    def compilers():
        with open(started) as f:
            return [int(line) for line in f]

    def compiling(s):
        """A client whose call waits for a compiler that does not end."""
        open(started, "w").close()
        client = Raw(s.port)
        main, argument = client.machine(path)
        client.socket.sendall(packet(3, u64(main) + values(argument)))
        until(lambda: any(map(alive, compilers())), "no compiler is started")
        check(len(s.children()) == 1 and len(s.folders()) == 1, f"sessions: {s.children()}, {s.folders()}")
        return client

    def all_gone(s):
        until(lambda: not s.children() and not s.folders(), "a session leaves something")
        until(lambda: not any(map(alive, compilers())), "a compiler outlives its session")
        good_session(s.port)
        until(lambda: not s.children(), "sessions of clients that have gone")

    def body(s):
        client = compiling(s)
        os.kill(s.children()[0], signal.SIGKILL)
        raises(client.answer, "")
        all_gone(s)
        client.close()
        compiling(s).socket.close()
        all_gone(s)
        for cut in (1, 11, 12, 40, 1000):
            client = Raw(s.port)
            client.socket.sendall((packet(3, u64(1) + values(text("x"), raw(bytes(4000)))))[:cut])
            client.socket.close()
        client = Raw(s.port)
        data = client.handle(17, values(i32(7) + tensor(0, [1 << 24]), NONE))
        client.socket.sendall(packet(6, tensor(data, [1 << 24]) + u64(1 << 26)))  # and nobody reads
        client.socket.close()
        until(lambda: not s.children(), "sessions of clients that have gone")
        good_session(s.port)

    was = dict(os.environ)
    os.environ.update(CC=compiler, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    try:
        serving(options, body)
    finally:
        os.environ.clear()
        os.environ.update(was)


def test_server_killed(options, folder):
    """Sessions end with their server, and take their folders with them, when nobody is left to do it."""
    s = Server(options.lathe, "rpc-server")
    client = Raw(s.port)
    until(s.folders, "no session")
    sessions = s.children()
    s.process.kill()
    s.process.wait(TIME_LIMIT)
    raises(lambda: client.take(1), "")
    until(lambda: not s.folders(), "folders stay")
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in sessions), "sessions stay")
    client.socket.close()
    s.log.close()
    subprocess.run(["rm", "-rf", s.folder], check=True)


def test_server_killed_in_a_call(options, folder):
    """A client whose server is killed while it measures is told of the server, not of itself."""
    s = Server(options.lathe, "rpc-server")
    bench = subprocess.Popen([options.lathe, "bench", module_of(options, folder), "--remote", f"127.0.0.1:{s.port}",
                              "--repeat", "10000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def works():
        check(bench.poll() is None, "the measurement is over")
        for pid in s.children():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
                if int(f.read().rsplit(")", 1)[1].split()[11]) > 50:  # ticks of its own work
                    return True
        return False

    until(works, "no session works")
    s.process.kill()
    s.process.wait(TIME_LIMIT)
    said = bench.communicate(timeout=TIME_LIMIT)[0]
    check(bench.returncode == 3 and "the server closed the connection" in said, f"{bench.returncode}: {said}")
    until(lambda: not s.folders(), "folders stay")
    s.log.close()
    subprocess.run(["rm", "-rf", s.folder], check=True)


def test_strangers(options, folder):
    """What answers otherwise is told at once from a server and from a tracker."""
    import threading
    path = module_of(options, folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def answer():
            for _ in range(2):
                connection = listening.accept()[0]
                with connection, contextlib.suppress(OSError):
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                    while connection.recv(1000):
                        pass

        threading.Thread(target=answer, daemon=True).start()
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        run_lathe(options, folder, "run", path, "--remote", where, fails="is not an RPC server")
        run_lathe(options, folder, "run", path, "--tracker", where, "--key", "board", fails="is not a tracker")


def test_cores(options, folder):
    """Each session is pinned to cores of its own."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skipped("one core")

    def body(s):
        clients = [Raw(s.port), Raw(s.port)]
        pinned = [os.sched_getaffinity(pid) for pid in s.children()]
        check(sorted(map(len, pinned)) == [1, 1] and pinned[0] != pinned[1], f"pinned to {pinned}")
        for client in clients:
            client.close()

    serving(options, body, "--cores", "1", "--sessions", "2")
    one = str(min(os.sched_getaffinity(0)))
    run = subprocess.run(["taskset", "-c", one, options.lathe, "rpc-server", "--port", "0", "--cores", "1",
                          "--sessions", "2"], capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    check(run.returncode == 2 and "2 sessions of 1 cores each; the server has 1" in run.stderr, run.stderr)


def test_many_sessions(options, folder):
    """More sessions at a time than connections that wait otherwise."""
    def body(s):
        clients = [Raw(s.port) for _ in range(270)]
        check(len(s.children()) == len(clients), f"{len(s.children())} sessions")
        for client in clients:
            client.close()

    serving(options, body, "--sessions", "270", "-q")


def test_archives(options, folder):
    """Archives of object files: too many, deep folders, folders that cannot be opened, more than there is room for."""
    import io
    import tarfile

    def archive(members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data, mode in members:
                member = tarfile.TarInfo(name)
                member.mode, member.size = mode, len(data or b"")
                member.type = tarfile.REGTYPE if data is not None else tarfile.DIRTYPE
                tar.addfile(member, io.BytesIO(data or b""))
        return out.getvalue()

    deep = [("/".join(["d"] * n), None, 0o755) for n in range(1, 80)]
    source = os.path.join(folder, "one.c")
    with open(source, "w") as f:
        f.write("int one(void) { return 1; }\n")
    subprocess.run(["cc", "-c", "-fPIC", source, "-o", f"{source}.o"], check=True, timeout=TIME_LIMIT)
    with open(f"{source}.o", "rb") as f:
        one = f.read()
    cases = [([(f"{i}.o", b"", 0o644) for i in range(257)], "more than 256 object files"),
             (deep + [("shut", None, 0), ("/".join(["d"] * 79) + "/x", b"12", 0o644)], "folders 32 deep"),
             ([("big/a", b"1" * 900000, 0o644), ("b", b"2" * 900000, 0o644), ("one.o", one, 0o644)], "may have"),
             ([("one.o", one, 0o644)], "")]

    def body(s):
        for members, words in cases:
            client = Raw(s.port)
            code, got = client.ask(3, u64(client.function("tvm.rpc.server.upload"))
                                   + values(text("m.tar"), raw(archive(members))))
            check(code == 4, got)
            code, got = client.ask(3, u64(client.function("tvm.rpc.server.download_linked_module"))
                                   + values(text("m.tar")))
            check(code == (5 if words else 4) and words.encode() in got, f"'{words}' is expected: {got[:300]}")
            client.close()

    os.environ["CC"] = "cc -O0 -g0"  # a compiler with arguments
    try:
        serving(options, body, "--max-files", "3000000")
    finally:
        del os.environ["CC"]


def changed(rng, data):
    """Bytes changed by chance: single ones, numbers, pieces taken away or doubled."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(25, len(data)))
        how = rng.integers(5)
        if how == 0:
            data[at] = int(rng.integers(256))
        elif how == 1:
            data[at:at + 8] = u64(int(rng.choice([0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, 4097])))
        elif how == 2:
            del data[at:at + int(rng.integers(1, 16))]
        elif how == 3:
            data[at:at] = data[at:at + int(rng.integers(1, 64))]
        else:
            del data[at:]
        if len(data) < 30:
            break
    return bytes(data)


def test_chance(options, folder):
    """Sessions changed by chance, at the socket: the server goes on, and nothing of them is left."""
    rng = np.random.default_rng(12)
    known = list(packets())

    def body(s):
        before = s.descriptors()
        for name, data in known:
            client = Raw(s.port)
            client.socket.sendall(data)
            for i, _ in enumerate(split(data)):
                code, got = client.answer()
                check((code == 5) == (REFUSED.get(name) == i), f"{name}: packet {i} is answered by {got}")
            client.close()
        for i in range(options.chances):
            client = Raw(s.port)
            with contextlib.suppress(OSError):
                client.socket.sendall(changed(rng, known[i % len(known)][1]))
                client.socket.shutdown(socket.SHUT_WR)
                while client.socket.recv(65536):
                    pass
            client.socket.close()
            if i % 50 == 49:
                good_session(s.port)
        until(lambda: not s.children(), "sessions stay")
        until(lambda: s.descriptors() == before, f"{before} descriptors were open, {s.descriptors()} are")

    serving(options, body, "--max-packet", "1000000", "--max-memory", "10000000")


def split(data):
    while data:
        size = struct.unpack("<Q", data[:8])[0]
        yield data[:8 + size]
        data = data[8 + size:]


def test_bad_trackers(options, folder):
    """Messages to the tracker that mean nothing; clients that go while they wait."""
    tracker = Tracker(options)
    try:
        before = tracker.descriptors()
        for message in (b"", b"\1\2\3", i32(1), i32(0x2F271) + i32(-1), i32(0x2F271) + i32(0),
                        i32(0x2F271) + i32(1 << 30), i32(0x2F271) + i32(3) + b"abc", i32(0x2F271) + i32(2) + b"[]",
                        i32(0x2F271) + i32(4) + b"[99]", i32(0x2F271) + i32(3) + b"[3]",
                        i32(0x2F271) + i32(6) + b'["a"]x', i32(0x2F271) + i32(9) + b"[4, 5, 6]",
                        i32(0x2F271) + i32(21) + b'[5, {"key": "server"}]'[:21], i32(0x2F271) + i32(1000) + b"[",
                        i32(0x2F271) + i32(37) + b'[5, {"key": "x", "addr": [{}, 9090]}]',
                        i32(0x2F271) + i32(21) + b'[4, "board", "", 1.5]',
                        i32(0x2F271) + i32(19) + b'[4, "board", "", 1]', i32(0x2F271) + i32(7) + b"[2, \"\"]"):
            client = socket.create_connection(("127.0.0.1", tracker.port), timeout=TIME_LIMIT)
            last_words(client, message)
            with contextlib.suppress(ConnectionError):
                while client.recv(1000):
                    pass
            client.close()
        until(lambda: tracker.descriptors() == before, "connections stay open")
        client = socket.create_connection(("127.0.0.1", tracker.port), timeout=TIME_LIMIT)
        info = b'[5, {"key": "server:x", "addr": [["not a host"], 9090]}]'
        client.sendall(i32(0x2F271) + i32(len(info)) + info)
        said = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1000):
                said += part
        check(len(said) <= 4, f"an address that is none is answered by {said}")
        client.close()

        def body(s):
            from tvm import rpc
            session = rpc.connect_tracker("127.0.0.1", tracker.port)
            remote = session.request("board")
            check(remote.listdir(".") == "", "a session")

        serving(options, body, "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}")
    finally:
        tracker.close()


def write_corpora(folder):
    for name, data in packets():
        for kind, parts in (("rpc_session", [data]), ("rpc_packet", [part[12:] for part in split(data)][1:])):
            os.makedirs(os.path.join(folder, kind), exist_ok=True)
            for i, part in enumerate(parts):
                with open(os.path.join(folder, kind, f"{name}{i or ''}"), "wb") as f:
                    f.write(part)
    return 0


def all_tests():
    return [(name[5:].replace("_", " "), test) for name, test in globals().items() if name.startswith("test_")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--ffi", help="liblathe_ffi.so, for TVM's server")
    parser.add_argument("--ext-dev", help="bindings/tvm/ext_dev.cc, compiled")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--chances", type=int, default=300, help="sessions changed by chance")
    parser.add_argument("--corpus", metavar="DIR", help="only write what the fuzz targets begin with")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    options.ffi = options.ffi and os.path.abspath(options.ffi)
    options.ext_dev = options.ext_dev and os.path.abspath(options.ext_dev)
    if options.corpus:
        return write_corpora(options.corpus)
    try:
        import tvm  # noqa: F401
    except ImportError:
        print("skipped: this Python has no apache-tvm\n0 passed, 0 failed, 1 skipped")
        return 0
    passed = failed = skipped = 0
    for name, test in all_tests():
        if not fnmatch.fnmatch(name, options.filter):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(options, folder)
            passed += 1
            if options.v:
                print(f"ok {name}", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"skipped {name}: {why}", flush=True)
        except Exception as fault:
            failed += 1
            print(f"FAILED {name}: {fault}", flush=True)
            if options.v:
                traceback.print_exc()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
