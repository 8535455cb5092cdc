#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Remote devices: the client of Apache TVM against the server and the tracker of lathe, and clients that mean harm.

    rpc.py --lathe FILE [--ffi FILE] [--filter GLOB] [-v]

Needs a Python with apache-tvm, onnx and numpy. Waiting has the limit of test/time_limit, which is against hangs.
"""
import argparse
import contextlib
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
        self.log.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)
        check(code == 0, f"the server ended with {code}")
        check(not left, f"the server left {left}")


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
        check(bytes(linked[:4]) == b"\x7fELF", "a linked module is no shared object")

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

    serving(options, body, "--session-seconds", "1")

# --- the VTA ---


def gemm_object(folder):
    path = os.path.join(folder, "gemm.o")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-fPIC", "-c", "-I", os.path.join(TOP, "runtime/vm"),
                    os.path.join(TOP, "test/vta/object/packed.c"), "-o", path], check=True, timeout=TIME_LIMIT)
    return path


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
        del session
    finally:
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


def test_client(options, folder):
    """lathe run and bench against our server, directly and by the tracker."""
    def body(s):
        where = ["--remote", f"127.0.0.1:{s.port}", "--key", "board"]
        same_as_here(options, folder, *where)
        digits = os.path.join(TOP, "demo", "digits.onnx")
        run_lathe(options, folder, "run", digits, *where[:2], fails="another key")
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


def all_tests():
    return [(name[5:].replace("_", " "), test) for name, test in globals().items() if name.startswith("test_")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--ffi", help="liblathe_ffi.so, for TVM's server")
    parser.add_argument("--filter", default="*")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    options.ffi = options.ffi and os.path.abspath(options.ffi)
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
