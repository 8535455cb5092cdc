# SPDX-License-Identifier: Apache-2.0
"""A generated C package seen from Python: its report, its structs, a call through ctypes, its program `runner`."""
import atexit
import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
}
# Flags of packages in tests of what Lathe computes: most of their time is the C compiler's, and optimised code is for
# `make test-long` and for the tests of generated code.
QUICK = "-O1" if os.environ.get("LATHE_TIER") == "long" else "-O0"
GUARD = 64
KEPT_CC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kept_cc.sh")
EMPTY = -1  # ..._EMPTY of the header: an extent of 0
FILL = 0xA5
with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "time_limit")) as limit:
    TIME_LIMIT = int(limit.read())  # seconds, against hangs


@functools.cache
def _kept_objects():
    folder = tempfile.mkdtemp(prefix="kept-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(flags=QUICK):
    """For `lathe run` and `lathe verify` of many packages on this machine: the runtime is compiled once for the same
    flags (kept_cc.sh). Without `flags` a package has those that users get."""
    return {**os.environ, **({"CFLAGS": flags} if flags else {}), "CC": KEPT_CC,
            "KEPT_CC": os.environ.get("CC") or "cc", "KEPT_OBJECTS": _kept_objects()}


class Failure(Exception):
    """The package is at fault; the message is one line."""


def compile_model(lathe, model, folder, name, options=()):
    """Runs `lathe compile`; returns None, or the first line of its diagnostic with paths taken out."""
    command = [lathe, "compile", model, "--emit", "c", "-o", folder, "--module-name", name, *options]
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return f"compile: no end after {TIME_LIMIT} s"
    if run.returncode == 0:
        return None
    if run.returncode < 0:
        return f"compile: killed by signal {-run.returncode}"
    line = next((s for s in run.stderr.splitlines() if s.strip()), f"compile: status {run.returncode}, no message")
    return line.replace(model, "model").replace(os.path.dirname(model) + "/", "").replace(folder, "OUT").strip()[:200]


# Starts a command from a small process: one that Python starts itself has Python's own peak as its least.
MEASURE = """
import os, resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""


def measured(command):
    """(processor seconds, peak bytes of its largest process) of a command that must succeed."""
    run = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, *command], stdout=subprocess.PIPE, text=True,
                         check=True)
    status, seconds, peak = run.stdout.split()
    if status != "0":
        raise Failure(f"{os.path.basename(command[0])}: status {status}")
    return float(seconds), int(peak)


def report(folder):
    with open(os.path.join(folder, "report.json")) as f:
        return json.load(f)


def sources(folder):
    """The package's own C files: neither its main nor its copy of the runtime."""
    src = os.path.join(folder, "src")
    return [os.path.join(src, f) for f in sorted(os.listdir(src))
            if f.endswith(".c") and not f.startswith(("main", "tvmrt"))]


def one_source(folder):
    """One C file that includes all of `sources`: a compiler that starts once, not four times, takes half as long."""
    path = os.path.join(folder, "all.c")
    with open(path, "w") as f:
        f.writelines(f'#include "{os.path.relpath(s, folder)}"\n' for s in sources(folder))
    return path


# What a package's C files define at their top level for themselves alone.
OWN_NAMES = re.compile(r"^(?:TVMRT_ALIGNED\(\d+\) )?static\b[^;={}()]*?\b(\w+)\s*[(\[=;]|^\} (\w+)(?: =|;)"
                       r"|^(?:TVMRT_ALIGNED\(\d+\) )?static const struct (\w+) \{", re.M)


def one_source_of_all(folders, path):
    """One C file of many packages with the same runtime: what each has for itself alone gets a name of its own."""
    with open(path, "w") as f:
        f.write('#include "tvmrt.h"\n')
        for k, folder in enumerate(folders):
            names = set()
            for source in sources(folder):
                with open(source) as text:
                    names.update(name for found in OWN_NAMES.findall(text.read()) for name in found if name)
            f.writelines(f"#define {name} {name}_of_{k}\n" for name in sorted(names))
            f.writelines(f'#include "{os.path.abspath(s)}"\n' for s in sources(folder))
            f.writelines(f"#undef {name}\n" for name in sorted(names))
    return path


def fields(folder, name, struct):
    """The fields of `struct tvmgen_NAME_inputs` or `_outputs` with their words, in the order of the header."""
    with open(os.path.join(folder, "include", f"tvmgen_{name}.h")) as f:
        found = re.search(rf"struct tvmgen_{name}_{struct} \{{(.*?)\}};", f.read(), re.S)
    if not found:
        raise Failure(f"the header has no struct tvmgen_{name}_{struct}")
    members = re.findall(r"(\w+)(?:\[(\d+)\])?;", re.sub(r"/\*.*?\*/", "", found[1], flags=re.S))
    return [(field, int(words or 1)) for field, words in members]


def guarded(array):
    """A copy of `array` with guard bytes on both sides: (whole buffer, view of the array)."""
    buffer = np.full(array.nbytes + 2 * GUARD, FILL, np.uint8)
    view = buffer[GUARD : GUARD + array.nbytes]
    view[:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    return buffer, view


def intact(buffer):
    return bool((buffer[:GUARD] == FILL).all() and (buffer[-GUARD:] == FILL).all())


def extents_of(about, inputs):
    """The open extents of a run by name: what the inputs' shapes say."""
    found = {}
    for entry in about["inputs"]:
        for axis, dimension in enumerate(entry.get("open_shape", [])):
            if isinstance(dimension, str):
                found.setdefault(dimension, int(inputs[entry["name"]].shape[axis]))
    return {x["name"]: found[x["name"]] for x in about.get("extents", [])}


def text_bytes(entry, value):
    """Strings as a package takes them: bytes along one more axis, zeros behind them."""
    if "string_bytes" not in entry or not isinstance(value, np.ndarray) or value.dtype.kind not in "OUS":
        return value
    width = entry["string_bytes"]
    rows = [s if isinstance(s, bytes) else str(s).encode() for s in value.reshape(-1)]
    if any(len(s) > width for s in rows):
        raise Failure(f"input {entry['name']}: a string has more than {width} bytes")
    return np.frombuffer(b"".join(s.ljust(width, b"\0") for s in rows), np.uint8).reshape(*value.shape, width)


def text_of(array):
    """The strings of such bytes."""
    texts = np.empty(array.shape[:-1], object)
    for at in np.ndindex(texts.shape):
        texts[at] = array[at].tobytes().rstrip(b"\0").decode()
    return texts


def check_input(entry, inputs):
    """The array for one input of the report, of exactly the stated type and shape."""
    value = inputs.get(entry["name"])
    if not isinstance(value, np.ndarray):
        raise Failure(f"input {entry['name']}: the case gives {type(value).__name__}")
    shape = [have if isinstance(want, str) else want
             for want, have in zip(entry.get("open_shape", entry["shape"]), value.shape)]
    if value.dtype != DTYPES.get(entry["dtype"]) or list(value.shape) != shape:
        raise Failure(f"input {entry['name']}: {entry['dtype']}{entry['shape']} in the report, "
                      f"{value.dtype}{list(value.shape)} in the case")
    return value


def call(library, folder, name, inputs):
    """Runs the package `name` of a loaded library; returns the outputs by name. Raises Failure."""
    about = report(folder)
    inputs = {**inputs, **{e["name"]: text_bytes(e, inputs.get(e["name"])) for e in about["inputs"]}}
    buffers, pointers = [], {"inputs": {}, "outputs": {}}
    results = {}
    for entry in about["inputs"]:
        buffer, view = guarded(check_input(entry, inputs))
        buffers.append((entry["name"], buffer))
        pointers["inputs"][entry["c_name"]] = view.ctypes.data
    extents = extents_of(about, inputs)
    for entry in about.get("extents", []):
        pointers["inputs"][entry["c_name"]] = extents[entry["name"]] or EMPTY
    for entry in about["outputs"]:
        if entry["dtype"] not in DTYPES:
            raise Failure(f"output {entry['name']}: dtype {entry['dtype']} is not compared yet")
        empty = np.full(int(np.prod(entry["shape"])) * np.dtype(DTYPES[entry["dtype"]]).itemsize, FILL, np.uint8)
        buffer, view = guarded(empty)
        buffers.append((entry["name"], buffer))
        pointers["outputs"][entry["c_name"]] = view.ctypes.data
        results[entry["name"]] = (view, entry)
    structs, places = {}, {}
    for kind in ("inputs", "outputs"):
        words = []
        for field, count in fields(folder, name, kind):
            places[kind, field] = len(words)
            words += [pointers[kind].get(field, 0)] + [0] * (count - 1)
        structs[kind] = (ctypes.c_int64 * max(1, len(words)))(*words)
        lost = [f for f in pointers[kind] if (kind, f) not in places]
        if lost:
            raise Failure(f"the header lacks the field {sorted(lost)[0]} of the report")
    function = library[f"tvmgen_{name}_run"]
    function.restype = ctypes.c_int32
    status = function(ctypes.byref(structs["inputs"]), ctypes.byref(structs["outputs"]))
    if status != 0:
        raise Failure(f"run: status {status}")
    for label, buffer in buffers:
        if not intact(buffer):
            raise Failure(f"{label}: bytes outside of the tensor were written")
    arrays = {}
    for label, (view, entry) in results.items():
        shape, dtype = entry["shape"], np.dtype(DTYPES[entry["dtype"]])
        if "shape_c_name" in entry:
            at = places["outputs", entry["shape_c_name"]]
            shape = structs["outputs"][at : at + len(shape)]
        if any(have < 0 or have > most for have, most in zip(shape, entry["shape"])):
            raise Failure(f"output {label}: shape {list(shape)}, which is at most {entry['shape']}")
        arrays[label] = np.frombuffer(view.tobytes()[: int(np.prod(shape)) * dtype.itemsize], dtype).reshape(shape)
        if "string_bytes" in entry:
            arrays[label] = text_of(arrays[label])
    return arrays


def save_inputs(folder, feed):
    """Arrays by the names of inputs, as files; the words that hand them to `lathe run`."""
    words = []
    for name, value in feed.items():
        np.save(os.path.join(folder, name + ".npy"), value)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    return words


def first_error(text):
    """The line of a compiler's or linker's output that says what is wrong, without folders."""
    lines = text.splitlines() or ["no message"]
    telling = [s for s in lines if re.search(r"error:|undefined reference|multiple definition|Error:", s)
               and not s.startswith("collect2")]
    return re.sub(r"\S*/", "", (telling or lines)[0])[:160]


def make(folder, workers=None, settings=()):
    """Builds the package's program by its own Makefile; returns None or the first error."""
    command = ["make", "-s", "-C", folder, "all", *settings]
    if workers is not None:
        command.append(f"WORKERS={workers}")
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT)
    if run.returncode == 0:
        return None
    return "make: " + first_error(run.stderr)


def run_program(folder, inputs, scratch, emulator=()):
    """Runs the package's `runner`, under an emulator, on raw files; returns the outputs by name. Raises Failure."""
    os.makedirs(scratch, exist_ok=True)
    about = report(folder)
    arguments = []
    for i, entry in enumerate(about["inputs"]):
        path = os.path.join(scratch, f"in{i}.bin")
        check_input(entry, inputs).tofile(path)
        arguments.append(f"{entry['name']}={path}")
    arguments += [f"{name}={value}" for name, value in extents_of(about, inputs).items()]
    out = os.path.join(scratch, "out")
    run = subprocess.run([*emulator, os.path.join(folder, "runner"), "-o", out, *arguments],
                         capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT)
    if run.returncode != 0:
        raise Failure(f"runner: status {run.returncode} {run.stderr.strip()[-200:]}")
    results = {}
    for entry in about["outputs"]:
        path = os.path.join(out, re.sub(r"[^A-Za-z0-9_.-]", "_", entry["name"]) + ".bin")
        numbers = np.fromfile(path, DTYPES[entry["dtype"]]) # of open extents only the numbers are in the file
        results[entry["name"]] = numbers if "shape_c_name" in entry else numbers.reshape(entry["shape"])
    return results
