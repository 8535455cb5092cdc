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
        return

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


def all_tests():
    yield from (("tensors", test_tensors), ("files", test_files), ("modules", test_modules),
                ("machine code", test_machine_code), ("leases", test_leases))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--ffi", help="liblathe_ffi.so, for TVM's server")
    parser.add_argument("--filter", default="*")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    options.lathe = os.path.abspath(options.lathe)
    try:
        import tvm  # noqa: F401
    except ImportError:
        print("skipped: this Python has no apache-tvm\n0 passed, 0 failed, 1 skipped")
        return 0
    passed = failed = 0
    for name, test in all_tests():
        if not fnmatch.fnmatch(name, options.filter):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(options, folder)
            passed += 1
            if options.v:
                print(f"ok {name}", flush=True)
        except Exception as fault:
            failed += 1
            print(f"FAILED {name}: {fault}", flush=True)
            if options.v:
                traceback.print_exc()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
