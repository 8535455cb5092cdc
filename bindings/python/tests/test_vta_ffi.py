# SPDX-License-Identifier: Apache-2.0
"""The VTA functions as a tvm-ffi client sees them, on the simulators, against NumPy."""

import gc
import json
import pathlib
import threading

import numpy as np
import pytest
import tvm_ffi
import vta_ffi

UOP, WGT, INP, ACC, OUT = range(5)
LOAD, COMPUTE, STORE = 1, 2, 3
MIN, MAX, ADD, SHR, MUL = range(5)
WAIT = 1 << 30
SEED_NAMES = (
    "command_handle load_2d store_2d uop_push uop_loop_begin uop_loop_end dep_push dep_pop synchronize buffer_alloc "
    "buffer_free buffer_copy buffer_cpu_ptr write_barrier read_barrier"
).split()


@pytest.fixture
def cmd():
    """A queue of its own for each test, made current."""
    before = vta_ffi.command_handle()
    handle = vta_ffi.device_create("{}")
    vta_ffi.make_current(handle)
    yield handle
    vta_ffi.make_current(before)
    try:
        vta_ffi.shutdown(handle)
    except ValueError:
        pass  # the test shut it down


def load(cmd, src, offset, x, memory, sram=0, y=1, stride=None, pads=(0, 0, 0, 0)):
    vta_ffi.load_2d(cmd, src, offset, x, y, x if stride is None else stride, *pads, sram, memory)


def store(cmd, dst, offset, x, sram=0, y=1, stride=None):
    vta_ffi.store_2d(cmd, sram, OUT, dst, offset, x, y, x if stride is None else stride)


def alu(cmd, op, n, imm=None, dst=0, src=0):
    def record():
        vta_ffi.uop_loop_begin(n, 1, 1, 0)
        vta_ffi.uop_push(1, 0, dst, dst if imm is not None else src, 0, op, int(imm is not None), imm or 0)
        vta_ffi.uop_loop_end()

    vta_ffi.push_alu_op(cmd, record)


def scratchpad(cmd, memory, index, count):
    return np.from_dlpack(vta_ffi.scratchpad_read(cmd, memory, index, count))


# --- exports ---


@pytest.mark.parametrize("name", SEED_NAMES + ["push_gemm_op", "push_alu_op", "set_debug_mode", "shutdown"])
def test_function_is_global_and_of_the_module(name):
    assert tvm_ffi.get_global_func(name) is not None
    assert tvm_ffi.get_global_func("vta." + name) is not None
    assert vta_ffi.module.implements_function(name, query_imports=True)
    assert vta_ffi.module.get_function(name) is not None


def test_module_kind():
    assert vta_ffi.module.kind == "library"


def test_metadata():
    meta = tvm_ffi.get_global_func_metadata("load_2d")
    schema = json.loads(meta["type_schema"]) if isinstance(meta["type_schema"], str) else meta["type_schema"]
    assert schema["type"] == "ffi.Function"
    assert len(schema["args"]) == 13
    assert schema["args"][0] == {"type": "None"}
    assert {"type": "ffi.Tensor"} in schema["args"][2]["args"]
    assert "LOAD" in meta["doc"]
    assert meta["arguments"].split()[0] == "cmd:handle"
    assert vta_ffi.module.get_function_metadata("load_2d") == meta


def test_wrong_number_of_arguments_is_counted_once():
    with pytest.raises(TypeError, match=r"load_2d: takes 12 arguments \(cmd:handle src_dram:dram .*\), not 1$"):
        vta_ffi.load_2d(0)
    with pytest.raises(TypeError, match=r"dep_push: takes 3 arguments \(.*\), not 0$"):
        vta_ffi.dep_push()
    with pytest.raises(TypeError, match=r"push_gemm_op: takes 2 to 3 arguments \(.*\), not 4$"):
        vta_ffi.push_gemm_op(0, 0, 0, 0)
    with pytest.raises(TypeError, match=r"buffer_alloc: takes 1 argument \(size:int\), not 2$"):
        vta_ffi.buffer_alloc(1, 2)
    with pytest.raises(TypeError, match=r"shutdown: takes 0 to 1 argument \(cmd\?:handle\), not 2$"):
        vta_ffi.shutdown(1, 2)


def test_product_of_the_readme():
    """The matrix product that README.md shows prints what it says there."""
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    block = next(b for b in text.split("```python\n") if "push_gemm_op" in b).split("```")[0]
    scope = {}
    exec(block, scope)
    assert (scope["y"] == scope["a"].astype(np.int32) @ scope["w"].T.astype(np.int32)).all()


def test_missing_function():
    with pytest.raises(ValueError, match="Cannot find global function"):
        tvm_ffi.get_global_func("load_3d")
    with pytest.raises(AttributeError):
        vta_ffi.module.get_function("load_3d")


# --- transfers ---


def test_tensor_arrives_in_the_accumulator(cmd):
    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    load(cmd, tvm_ffi.from_dlpack(x), 0, 1, ACC)
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1).reshape(4, 4) == x).all()


def test_tensor_is_read_at_synchronize_and_kept_until_then(cmd):
    x = np.zeros(16, dtype=np.int32)
    load(cmd, tvm_ffi.from_dlpack(x), 0, 1, ACC)
    x[:] = 7  # zero copy: the device sees what is there when it runs
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1) == 7).all()
    load(cmd, tvm_ffi.from_dlpack(np.full(16, 9, dtype=np.int32)), 0, 1, ACC)
    gc.collect()  # nobody in Python holds it any more
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1) == 9).all()


def test_padding(cmd):
    x = np.arange(1, 33, dtype=np.int32).reshape(2, 16)
    load(cmd, tvm_ffi.from_dlpack(x), 0, 1, ACC, y=2, stride=1, pads=(1, 1, 1, 0))
    vta_ffi.synchronize(cmd, WAIT)
    got = scratchpad(cmd, ACC, 0, 9).reshape(3, 3, 16)
    assert (got[0] == 0).all() and (got[:, 0] == 0).all() and (got[:, 2] == 0).all()
    assert (got[1:, 1] == x).all()


def test_buffers(cmd):
    x = np.random.default_rng(1).integers(-128, 128, (8, 16), dtype=np.int8)
    a, b = vta_ffi.buffer_alloc(x.nbytes), vta_ffi.buffer_alloc(x.nbytes)
    assert a != b and a > 0
    y = np.zeros_like(x)
    vta_ffi.buffer_copy(tvm_ffi.from_dlpack(x), 0, a, 0, x.nbytes, 1)
    vta_ffi.buffer_copy(a, 16, b, 0, x.nbytes - 16, 3)
    vta_ffi.buffer_copy(b, 0, tvm_ffi.from_dlpack(y), 0, x.nbytes - 16, 2)
    assert (y.reshape(-1)[:-16] == x.reshape(-1)[16:]).all()
    assert vta_ffi.buffer_cpu_ptr(cmd, a) != 0
    vta_ffi.read_barrier(cmd, a, 8, 0, x.size)
    vta_ffi.write_barrier(cmd, a, 8, 0, x.size)
    vta_ffi.buffer_free(a)
    with pytest.raises(ValueError, match="not a buffer"):
        vta_ffi.buffer_free(a)
    with pytest.raises(ValueError, match="not a buffer"):
        load(cmd, a, 0, 1, INP)
    vta_ffi.buffer_free(b)


# --- computing ---


def gemm(cmd, a, b, block=(32, 8, 4)):
    """C = A B^T over tiles of 16, A [m, k], B [n, k] int8; blocked; epilogue >> 6, max -100, min 100."""
    m, k, n = a.shape[0], a.shape[1] // 16, b.shape[0] // 16
    bm, bn, bk = block
    at = np.ascontiguousarray(a.reshape(m, k, 16))
    bt = np.ascontiguousarray(b.reshape(n, 16, k, 16).transpose(0, 2, 1, 3))
    c = np.zeros((m, n, 16), dtype=np.int8)
    ta, tb, tc = (tvm_ffi.from_dlpack(t) for t in (at, bt, c))

    def reset():
        vta_ffi.uop_loop_begin(bm, bn, 0, 0)
        vta_ffi.uop_loop_begin(bn, 1, 0, 0)
        vta_ffi.uop_push(0, 1, 0, 0, 0, 0, 0, 0)
        vta_ffi.uop_loop_end()
        vta_ffi.uop_loop_end()

    def multiply():  # columns as micro-ops: an accumulator is met again after bn of them
        vta_ffi.uop_loop_begin(bm, bn, bk, 0)
        vta_ffi.uop_loop_begin(bk, 0, 1, 1)
        for j in range(bn):
            vta_ffi.uop_push(0, 0, j, 0, j * bk, 0, 0, 0)
        vta_ffi.uop_loop_end()
        vta_ffi.uop_loop_end()

    vta_ffi.dep_push(cmd, STORE, COMPUTE)
    for mo in range(0, m, bm):
        for no in range(0, n, bn):
            vta_ffi.dep_pop(cmd, STORE, COMPUTE)
            vta_ffi.push_gemm_op(cmd, reset, 1)
            vta_ffi.dep_push(cmd, COMPUTE, LOAD)
            for ko in range(0, k, bk):
                vta_ffi.dep_pop(cmd, COMPUTE, LOAD)
                load(cmd, ta, mo * k + ko, bk, INP, y=bm, stride=k)
                load(cmd, tb, no * k + ko, bk, WGT, y=bn, stride=k)
                vta_ffi.dep_push(cmd, LOAD, COMPUTE)
                vta_ffi.dep_pop(cmd, LOAD, COMPUTE)
                vta_ffi.push_gemm_op(cmd, multiply, 2)
                vta_ffi.dep_push(cmd, COMPUTE, LOAD)
            alu(cmd, SHR, bm * bn, 6)
            alu(cmd, MAX, bm * bn, -100)
            alu(cmd, MIN, bm * bn, 100)
            vta_ffi.dep_push(cmd, COMPUTE, STORE)
            vta_ffi.dep_pop(cmd, COMPUTE, LOAD)
            vta_ffi.dep_pop(cmd, COMPUTE, STORE)
            store(cmd, tc, mo * n + no, bn, y=bm, stride=n)
            vta_ffi.dep_push(cmd, STORE, COMPUTE)
    vta_ffi.dep_pop(cmd, STORE, COMPUTE)
    vta_ffi.synchronize(cmd, WAIT)
    return c.reshape(m, n * 16)


def expected_gemm(a, b):
    exact = a.astype(np.int32) @ b.astype(np.int32).T
    return np.clip(exact >> 6, -100, 100).astype(np.int8)


@pytest.mark.parametrize("simulator", ["fsim", "cycle"])
def test_blocked_gemm(simulator):
    rng = np.random.default_rng(2)
    a = rng.integers(-128, 128, (128, 256), dtype=np.int8)
    b = rng.integers(-128, 128, (256, 256), dtype=np.int8)
    cmd = vta_ffi.device_create("{}", json.dumps({"simulator": simulator}))
    assert (gemm(cmd, a, b) == expected_gemm(a, b)).all()
    counted = vta_ffi.counters(cmd)
    assert counted["gemm_counter"] == 128 * 16 * 16
    assert counted["out_store_nbytes"] == 128 * 256
    assert simulator == "fsim" or counted["cycle_count"] > 128 * 16 * 16
    vta_ffi.shutdown(cmd)


def test_alu_chain(cmd):
    rng = np.random.default_rng(3)
    x = rng.integers(-1000, 1000, (20, 16), dtype=np.int32)
    y = rng.integers(-1000, 1000, (20, 16), dtype=np.int32)
    out = np.zeros((20, 16), dtype=np.int8)
    load(cmd, tvm_ffi.from_dlpack(x), 0, 20, ACC)
    load(cmd, tvm_ffi.from_dlpack(y), 0, 20, ACC, sram=20)
    alu(cmd, ADD, 20, dst=0, src=20)
    alu(cmd, ADD, 20, 8)
    alu(cmd, SHR, 20, 4)
    alu(cmd, MAX, 20, 0)
    alu(cmd, MIN, 20, 127)
    vta_ffi.dep_push(cmd, COMPUTE, STORE)
    vta_ffi.dep_pop(cmd, COMPUTE, STORE)
    store(cmd, tvm_ffi.from_dlpack(out), 0, 20)
    vta_ffi.synchronize(cmd, WAIT)
    assert (out == np.clip((x + y + 8) >> 4, 0, 127)).all()


def test_recorder_runs_once_per_key(cmd):
    calls = []

    def record():
        calls.append(1)
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 1)

    for _ in range(3):
        vta_ffi.push_alu_op(cmd, record, 5)
    assert len(calls) == 1
    vta_ffi.push_alu_op(cmd, record, b"five")
    vta_ffi.push_alu_op(cmd, record)
    assert len(calls) == 3
    load(cmd, tvm_ffi.from_dlpack(np.zeros(16, dtype=np.int32)), 0, 1, ACC)
    for _ in range(4):
        vta_ffi.push_alu_op(cmd, record, 5)
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1) == 4).all()


def test_two_devices(cmd):
    other = vta_ffi.device_create(json.dumps({"LOG_BATCH": 1}))
    x = np.arange(16, dtype=np.int32)
    y = np.arange(32, dtype=np.int32) * 3
    load(cmd, tvm_ffi.from_dlpack(x), 0, 1, ACC)
    load(other, tvm_ffi.from_dlpack(y), 0, 1, ACC)
    vta_ffi.synchronize(other, WAIT)
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1).reshape(-1) == x).all()
    assert (scratchpad(other, ACC, 0, 1).reshape(-1) == y).all()
    mine = vta_ffi.buffer_alloc(64)
    with pytest.raises(ValueError, match="buffer"):
        load(other, mine, 0, 1, ACC)
    vta_ffi.shutdown(other)
    with pytest.raises(ValueError, match="not a command queue"):
        vta_ffi.synchronize(other, WAIT)


def test_threads_have_their_own_current_device(cmd):
    seen = []

    def work():
        mine = vta_ffi.device_create("{}")
        vta_ffi.make_current(mine)
        seen.append((vta_ffi.command_handle(), mine))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(current == mine for current, mine in seen)
    assert len({mine for _, mine in seen}) == 4
    assert vta_ffi.command_handle() == cmd
    for _, mine in seen:
        vta_ffi.shutdown(mine)


def run_threads(count, work):
    """Runs work(i) on `count` threads and raises what any of them raised."""
    raised = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:  # noqa: BLE001: shown by the test's own thread
            raised.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    if raised:
        raise raised[0]


def test_threads_on_one_queue(cmd):
    """A run of one thread lets go of its own tensors, not of those that another thread queues meanwhile."""

    def work(i):
        for n in range(200):
            load(cmd, tvm_ffi.from_dlpack(np.full((64, 16), 1000 * i + n, np.int32)), 0, 64, ACC, sram=64 * i)
            if n % 3 == i % 3:
                vta_ffi.synchronize(cmd, WAIT)
            vta_ffi.counters(cmd)

    run_threads(4, work)
    vta_ffi.synchronize(cmd, WAIT)
    for i in range(4):
        assert (scratchpad(cmd, ACC, 64 * i, 64) == 1000 * i + 199).all()


def test_shutdown_while_in_use():
    """Calls that are inside finish; later ones find no queue. The default device like any other."""
    x = tvm_ffi.from_dlpack(np.ones((64, 16), np.int32))

    def use(i):
        for _ in range(100):
            handle = vta_ffi.command_handle()
            try:
                if i == 0:
                    vta_ffi.shutdown(handle)
                    continue
                load(handle, x, 0, 64, ACC)
                alu(handle, ADD, 64, 1)
                vta_ffi.synchronize(handle, WAIT)
            except ValueError as e:
                assert "not a command queue" in str(e)

    run_threads(3, use)
    inside = vta_ffi.command_handle()

    def record():
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 1)
        vta_ffi.shutdown(inside)

    vta_ffi.push_alu_op(inside, record)
    with pytest.raises(ValueError, match="not a command queue"):
        vta_ffi.synchronize(inside, WAIT)
    assert vta_ffi.command_handle() != inside


def test_other_threads_run_during_synchronize(cmd):
    """tvm-ffi gives up the interpreter lock around a call."""

    def long():  # 33 M operations on one accumulator
        vta_ffi.uop_loop_begin(2048, 0, 0, 0)
        vta_ffi.uop_loop_begin(16383, 0, 0, 0)
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 1)
        vta_ffi.uop_loop_end()
        vta_ffi.uop_loop_end()

    vta_ffi.push_alu_op(cmd, long)
    running, ticks = threading.Event(), []
    done = threading.Event()

    def tick():
        running.set()
        while not done.wait(0.001):
            ticks.append(1)

    t = threading.Thread(target=tick)
    t.start()
    running.wait()
    before = len(ticks)
    vta_ffi.synchronize(cmd, WAIT)
    during = len(ticks) - before
    done.set()
    t.join()
    assert during > 5


def test_cycles_are_those_of_the_profile():
    x = tvm_ffi.from_dlpack(np.ones((32, 16), np.int32))
    cycles = {}
    for profile in ("chisel", "hls"):
        cmd = vta_ffi.device_create("{}", json.dumps({"simulator": "cycle", "profile": profile}))
        load(cmd, x, 0, 1, ACC, y=32, stride=1)  # a row at a time: one waits for each, the other asks ahead
        vta_ffi.synchronize(cmd, WAIT)
        cycles[profile] = vta_ffi.counters(cmd)["cycle_count"]
        vta_ffi.shutdown(cmd)
    assert cycles["hls"] > 2 * cycles["chisel"]


def test_read_only_arrays(cmd):
    x = np.zeros(16, np.int32)
    x.flags.writeable = False
    with pytest.raises(BufferError):
        load(cmd, tvm_ffi.from_dlpack(x), 0, 1, ACC)


def test_narrow_weights(cmd):
    """Weights of 4 bits travel packed, two to a byte, the lower lane in the lower half."""
    narrow = vta_ffi.device_create(json.dumps({"LOG_WGT_WIDTH": 2, "LOG_WGT_BUFF_SIZE": 17}))
    rng = np.random.default_rng(4)
    a = rng.integers(-128, 128, (1, 16), dtype=np.int8)
    b = rng.integers(-8, 8, (16, 16), dtype=np.int8)
    packed = ((b[:, 0::2] & 15) | (b[:, 1::2] & 15) << 4).astype(np.uint8)
    load(narrow, tvm_ffi.from_dlpack(a), 0, 1, INP)
    load(narrow, tvm_ffi.from_dlpack(packed), 0, 1, WGT)
    with pytest.raises(ValueError, match="packed uint8"):
        load(narrow, tvm_ffi.from_dlpack(b), 0, 1, WGT)
    load(narrow, tvm_ffi.from_dlpack(np.zeros(16, np.int32)), 0, 1, ACC)
    vta_ffi.dep_push(narrow, LOAD, COMPUTE)
    vta_ffi.dep_pop(narrow, LOAD, COMPUTE)
    vta_ffi.push_gemm_op(narrow, lambda: vta_ffi.uop_push(0, 0, 0, 0, 0, 0, 0, 0))
    vta_ffi.synchronize(narrow, WAIT)
    assert (scratchpad(narrow, WGT, 0, 1)[0] == packed).all()
    assert (scratchpad(narrow, ACC, 0, 1).reshape(-1) == b.astype(np.int32) @ a[0].astype(np.int32)).all()
    vta_ffi.shutdown(narrow)


def test_profiler_globals(cmd):
    status = tvm_ffi.get_global_func("vta.simulator.profiler_status")
    clear = tvm_ffi.get_global_func("vta.simulator.profiler_clear")
    debug = tvm_ffi.get_global_func("vta.simulator.profiler_debug_mode")
    load(cmd, tvm_ffi.from_dlpack(np.zeros(16, dtype=np.int32)), 0, 1, ACC)
    vta_ffi.synchronize(cmd, WAIT)
    counted = json.loads(status())
    assert list(counted)[:7] == [
        "inp_load_nbytes", "wgt_load_nbytes", "acc_load_nbytes", "uop_load_nbytes", "out_store_nbytes",
        "gemm_counter", "alu_counter",
    ]
    assert counted["acc_load_nbytes"] == 64
    clear()
    assert json.loads(status())["acc_load_nbytes"] == 0
    debug(1)
    load(cmd, tvm_ffi.from_dlpack(np.ones(16, dtype=np.int32)), 0, 1, ACC)
    vta_ffi.synchronize(cmd, WAIT)
    debug(0)
    assert json.loads(status())["acc_load_nbytes"] == 64
    assert (scratchpad(cmd, ACC, 0, 1) == 0).all()


# --- errors ---


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({1: np.zeros(16, np.float32)}, ValueError, "src_dram"),
        ({1: np.zeros(16, np.int8)}, ValueError, "src_dram"),
        ({1: np.zeros((16, 4), np.int32).T}, ValueError, "contiguous"),
        ({1: "a string"}, TypeError, "src_dram"),
        ({1: 123456}, ValueError, "not a buffer"),
        ({0: 10**9}, ValueError, "not a command queue"),
        ({2: -1}, ValueError, "src_elem_offset"),
        ({3: 2**32}, ValueError, "x_size"),
        ({3: 1.5}, TypeError, "x_size"),
        ({3: 5000}, ValueError, "bytes|holds|beyond|outside"),  # beyond the tensor and the scratchpad
        ({2: 1}, ValueError, "bytes|holds|beyond|outside"),  # beyond the tensor
        ({10: 2048}, ValueError, "scratchpad|elements"),  # beyond the scratchpad
        ({11: 9}, ValueError, "memory type"),
        ({1: np.zeros(16, np.int8), 11: OUT}, ValueError, "are loaded"),
    ],
)
def test_bad_load(cmd, change, error, text):
    args = [cmd, np.zeros(16, np.int32), 0, 1, 1, 1, 0, 0, 0, 0, 0, ACC]
    for at, value in change.items():
        args[at] = value
    with pytest.raises(error, match=text):
        vta_ffi.load_2d(*args)
    # the queue is still good
    load(cmd, tvm_ffi.from_dlpack(np.full(16, 3, np.int32)), 0, 1, ACC)
    vta_ffi.synchronize(cmd, WAIT)
    assert (scratchpad(cmd, ACC, 0, 1) == 3).all()


def test_arity():
    with pytest.raises(TypeError, match="12"):
        vta_ffi.load_2d(1, 2)
    with pytest.raises(TypeError, match="0"):
        vta_ffi.command_handle(1)


def test_uop_outside_of_a_recorder():
    with pytest.raises(RuntimeError):
        vta_ffi.uop_push(0, 0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(RuntimeError):
        vta_ffi.uop_loop_begin(1, 1, 1, 1)


def test_recorder_that_raises_is_dropped(cmd):
    def bad():
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vta_ffi.push_alu_op(cmd, bad, 1)
    calls = []

    def good():
        calls.append(1)
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 2)

    vta_ffi.push_alu_op(cmd, good, 1)
    assert calls == [1]
    vta_ffi.synchronize(cmd, WAIT)


def test_nested_push_and_wrong_mode(cmd):
    def inner():
        vta_ffi.uop_push(1, 0, 0, 0, 0, ADD, 1, 1)

    def nested():
        vta_ffi.push_alu_op(cmd, inner)

    with pytest.raises(RuntimeError, match="push_alu_op: push: this thread records another kernel"):
        vta_ffi.push_alu_op(cmd, nested)

    def swallowed():
        with pytest.raises(RuntimeError, match="this thread records another kernel"):
            vta_ffi.push_gemm_op(cmd, inner)
        inner()

    with pytest.raises(RuntimeError, match="this thread records another kernel"):
        vta_ffi.push_alu_op(cmd, swallowed)
    alu(cmd, ADD, 1, 1)
    vta_ffi.synchronize(cmd, WAIT)
    with pytest.raises(RuntimeError):
        vta_ffi.push_gemm_op(cmd, inner)


def test_missing_token_is_reported_not_waited_for(cmd):
    vta_ffi.dep_pop(cmd, STORE, COMPUTE)
    alu(cmd, ADD, 1, 1)
    with pytest.raises(RuntimeError, match="(?i)deadlock|wait|token"):
        vta_ffi.synchronize(cmd, WAIT)
    with pytest.raises(ValueError):
        vta_ffi.dep_push(cmd, LOAD, STORE)


@pytest.mark.parametrize("simulator", ["fsim", "cycle"])
def test_patience_ends(simulator):
    cmd = vta_ffi.device_create("{}", json.dumps({"simulator": simulator}))

    def huge():
        vta_ffi.uop_loop_begin(16383, 0, 0, 0)
        vta_ffi.uop_loop_begin(16383, 0, 0, 0)
        for i in range(1000):
            vta_ffi.uop_push(0, 0, i, 0, 0, 0, 0, 0)
        vta_ffi.uop_loop_end()
        vta_ffi.uop_loop_end()

    vta_ffi.push_gemm_op(cmd, huge)
    with pytest.raises(RuntimeError, match="26840268"):
        vta_ffi.synchronize(cmd, 1 << 31)
    alu(cmd, ADD, 100, 1)
    with pytest.raises(RuntimeError, match="cycles"):
        vta_ffi.synchronize(cmd, 50)
    alu(cmd, ADD, 100, 1)
    vta_ffi.synchronize(cmd, 1000)
    vta_ffi.shutdown(cmd)


def test_left_tokens_are_counted_and_refused(cmd, capfd):
    vta_ffi.dep_push(cmd, LOAD, COMPUTE)
    vta_ffi.dep_push(cmd, COMPUTE, STORE)
    vta_ffi.synchronize(cmd, WAIT)
    assert vta_ffi.counters(cmd)["left_tokens"] == 2
    assert "not popped: 1 from load to compute, 1 from compute to store" in capfd.readouterr().err
    vta_ffi.dep_pop(cmd, LOAD, COMPUTE)
    vta_ffi.dep_pop(cmd, COMPUTE, STORE)
    vta_ffi.synchronize(cmd, WAIT)
    assert vta_ffi.counters(cmd)["left_tokens"] == 0
    assert capfd.readouterr().err == ""
    strict = vta_ffi.device_create("{}", json.dumps({"left_tokens": "error"}))
    vta_ffi.dep_push(strict, COMPUTE, LOAD)
    with pytest.raises(RuntimeError, match="not popped: 1 from compute to load"):
        vta_ffi.synchronize(strict, WAIT)
    vta_ffi.synchronize(strict, WAIT)
    vta_ffi.shutdown(strict)
    with pytest.raises(ValueError, match="warn, error or ignore"):
        vta_ffi.device_create("{}", json.dumps({"left_tokens": "cry"}))


def test_capacities(cmd):
    options = {"max_buffers": 2, "max_insns": 256, "max_uops": 64, "max_kernels": 4}
    small = vta_ffi.device_create("{}", json.dumps(options))
    vta_ffi.make_current(small)
    a, b = vta_ffi.buffer_alloc(64), vta_ffi.buffer_alloc(64)
    with pytest.raises(MemoryError, match="all 2 buffers are in use; raise max_buffers"):
        vta_ffi.buffer_alloc(64)
    vta_ffi.buffer_free(a)
    a = vta_ffi.buffer_alloc(64)
    for i in range(300):
        alu(small, ADD, 1, i % 7)
    vta_ffi.synchronize(small, WAIT)
    vta_ffi.make_current(cmd)
    vta_ffi.shutdown(small)
    with pytest.raises(ValueError, match="max_insns must lie between 256"):
        vta_ffi.device_create("{}", json.dumps({"max_insns": 255}))
    with pytest.raises(ValueError, match="max_buffers"):
        vta_ffi.device_create("{}", json.dumps({"max_buffers": "many"}))


def test_micro_ops_in_rows(cmd):
    """The guide's call: a 4x4 tensor of int32 as 16 micro-ops."""
    x = tvm_ffi.from_dlpack(np.arange(16, dtype=np.int32).reshape(4, 4))
    vta_ffi.load_2d(cmd, x, 0, 4, 4, 4, 0, 0, 0, 0, 0, UOP)
    vta_ffi.load_2d(cmd, x, 1, 2, 3, 4, 0, 0, 0, 0, 16, UOP)
    vta_ffi.synchronize(cmd, WAIT)
    assert scratchpad(cmd, UOP, 0, 22).ravel().tolist() == [*range(16), 1, 2, 5, 6, 9, 10]
    assert vta_ffi.counters(cmd)["uop_load_nbytes"] == 4 * 22
    with pytest.raises(ValueError, match="micro-ops are loaded without padding"):
        vta_ffi.load_2d(cmd, x, 0, 4, 4, 4, 1, 0, 0, 0, 0, UOP)


def test_store_into_a_buffer_and_bad_configuration(cmd):
    with pytest.raises(ValueError, match="LOG_BLOCK|rule|element"):
        vta_ffi.device_create(json.dumps({"LOG_BLOCK": 7}))
    with pytest.raises(ValueError):
        vta_ffi.device_create("{not json")
    with pytest.raises(ValueError, match="profile"):
        vta_ffi.device_create("{}", json.dumps({"profile": "none"}))
    with pytest.raises(ValueError, match="option"):
        vta_ffi.device_create("{}", json.dumps({"speed": 1}))


def test_shutdown_of_all():
    first, second = vta_ffi.device_create("{}"), vta_ffi.device_create("{}")
    vta_ffi.shutdown()
    for handle in (first, second):
        with pytest.raises(ValueError, match="not a command queue"):
            vta_ffi.synchronize(handle, WAIT)
    assert vta_ffi.command_handle() not in (first, second)
