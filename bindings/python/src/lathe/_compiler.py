# SPDX-License-Identifier: Apache-2.0
"""The functions of libcompiler_ffi, as Python has them: options as keywords, tensors of any library, exceptions."""

from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import functools
import importlib
import json
import os
import pathlib
import sys
import typing
import warnings

import numpy as np
import tvm_ffi

from ._lists import arrange, elements, gather, with_labels
from ._samples import Samples, as_files
from ._summary import summary

Progress = typing.Callable[[str, float], object]
Option = typing.Union[
    None, bool, int, float, str, "os.PathLike[str]", typing.Mapping[str, object], typing.Sequence[object]
]

_library = ctypes.CDLL(str(pathlib.Path(__file__).parent / "libcompiler_ffi.so"))  # called through tvm-ffi alone


def _function(name: str) -> typing.Callable[..., typing.Any]:
    return typing.cast("typing.Callable[..., typing.Any]", tvm_ffi.get_global_func("lathe.compiler." + name))


@tvm_ffi.register_object("lathe.compiler.Object")
class _Object(tvm_ffi.Object):
    """A model or an executable of the library."""


def version() -> str:
    """The version of the compiler, such as ``0.1.0``."""
    return str(_function("version")())


# --- what goes wrong ---


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One finding of the compiler."""

    severity: str  #: ``note``, ``warning`` or ``error``
    code: str  #: a word such as ``unsupported``
    where: typing.Optional[str]  #: a file, a line, a node of the model
    text: str  #: one sentence
    hint: typing.Optional[str]  #: what to do about it

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.text} [{self.code}]{hint}"


class Error(Exception):
    """A call failed; ``diagnostics`` says what is wrong, where, and what to do. Errors come first."""

    def __init__(self, diagnostics: typing.Sequence[Diagnostic], result: object = None):
        self.diagnostics: tuple[Diagnostic, ...] = tuple(sorted(diagnostics, key=lambda d: d.severity != "error"))
        self.result = result  #: of ``verify``: what was found all the same
        super().__init__("\n".join(str(d) for d in self.diagnostics if d.severity == "error") or "failed")


class InputError(Error, ValueError):
    """The model, the data or the comparison is at fault."""


class UsageError(Error, TypeError):
    """An option, or the way a function is called."""


class EnvironmentFault(Error, RuntimeError):
    """There is no C compiler, no memory or no space; or it is a fault of Lathe."""


class Cancelled(Error):
    """The progress function asked for it."""


class LatheWarning(UserWarning):
    """A warning of the compiler."""


_KINDS: dict[int, type[Error]] = {1: InputError, 2: UsageError, 3: EnvironmentFault, 4: Cancelled}


def _call(
    name: str, *args: object, progress: Progress | None = None, titles: typing.Mapping[str, str] = {}
) -> typing.Any:
    """The value of a function that returns [outcome, diagnostics, value]. Other threads of Python run meanwhile.

    ``titles``: what diagnostics call files that the caller does not know.
    """
    raised: list[BaseException] = []

    def watch(stage: str, share: float) -> None:
        try:
            typing.cast(Progress, progress)(str(stage), share)
        except BaseException as e:
            raised.append(e)
            raise

    try:
        outcome, text, value = _function(name)(*args, *([watch] if progress else []))
    except Exception:
        if raised:
            raise raised[0] from None  # as it was; on its way it became an error of tvm-ffi's
        raise
    said = str(text)
    for path, title in titles.items():
        said = said.replace(f"'{path}'", title)
    found = [Diagnostic(**d) for d in json.loads(said)]
    for d in found:
        if d.severity == "warning":
            warnings.warn(str(d), LatheWarning, stacklevel=3)
    if outcome != 0:
        raise _KINDS.get(outcome, EnvironmentFault)(found, json.loads(str(value)) if isinstance(value, str) else value)
    return value


# --- options ---


def _texts(name: str, value: Option) -> typing.Iterator[str | None]:
    if value is True:
        yield None
    elif value is None or value is False:
        return
    elif isinstance(value, collections.abc.Mapping):
        for key, v in value.items():
            sign = "x" if name == "shape" else ","
            text = sign.join(str(i) for i in v) if isinstance(v, (list, tuple)) else str(v)
            yield f"{key}{text}" if text.startswith("<=") else f"{key}={text}"
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _texts(name, v)
    else:
        yield os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _settings(options: typing.Mapping[str, Option]) -> tuple[str | None, ...]:
    """Names and values in turn, as the library takes them."""
    flat: list[str | None] = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        for text in _texts(name, value):
            flat += [name, text]
    return tuple(flat)


def _merged(options: dict[str, Option], **named: Option) -> dict[str, Option]:
    return {**{k: v for k, v in named.items() if v is not None}, **options}


def _read(model: object, progress: Progress | None = None) -> typing.Any:
    if hasattr(model, "SerializeToString"):  # onnx.ModelProto
        return _call("read_bytes", model.SerializeToString(), "model", progress=progress)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _call("read_bytes", bytes(model), "model", progress=progress)
    if isinstance(model, (str, os.PathLike)):
        return _call("read", os.fspath(model), progress=progress)
    raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


# --- tensors ---

# Types of elements as DLPack has them: a code and a number of bits. Those that numpy lacks are types of the package
# ml_dtypes.
_LENT = {
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
_NAMES = {
    (0, 8): "int8",
    (0, 16): "int16",
    (0, 32): "int32",
    (0, 64): "int64",
    (1, 8): "uint8",
    (1, 16): "uint16",
    (1, 32): "uint32",
    (1, 64): "uint64",
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (6, 8): "bool",
    **{code: name for name, code in _LENT.items()},
}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or an output: its name, the type of its elements, its shape. An open dimension is text.

    Where numbers are quantized, they mean ``scale * (number - zero_point)``. Else both are ``None``.
    Of strings the type is ``string``, and ``string_bytes`` says how many bytes of UTF-8 one may have.
    """

    name: str
    dtype: str
    shape: tuple[typing.Union[int, str], ...]
    scale: typing.Optional[float] = None
    zero_point: typing.Optional[int] = None
    string_bytes: int = 0

    def __str__(self) -> str:
        scale = "" if self.scale is None else f" (scale {self.scale:.9g}, zero point {self.zero_point})"
        return f"{self.name}: {self.dtype}[{', '.join(str(d) for d in self.shape)}]{scale}"


_Rows = typing.Iterable[typing.Dict[str, typing.Any]]


def _tensors(rows: _Rows, reported: _Rows = ()) -> tuple[Tensor, ...]:
    """``reported``: the same tensors in the report."""
    known = {r["name"]: r for r in reported}

    def one(row: dict[str, typing.Any]) -> Tensor:
        more = known.get(row["name"], {})
        if row["string_bytes"]:
            return Tensor(row["name"], "string", tuple(row["shape"][:-1]), string_bytes=row["string_bytes"])
        dtype = _NAMES.get(tuple(row["dtype"]), str(row["dtype"]))
        return Tensor(row["name"], dtype, tuple(row["shape"]), more.get("scale"), more.get("zero_point"))

    return tuple(one(r) for r in rows)


def _numpy_type(name: str) -> np.dtype[typing.Any]:
    """The type of numpy, or of ml_dtypes, which need not be installed."""
    if name == "string":
        return np.dtype(object)
    if name not in _LENT:
        return np.dtype(name)
    try:
        scalar: type[typing.Any] = getattr(importlib.import_module("ml_dtypes"), name)
    except ImportError:
        text = f"numpy has no {name}, and the package ml_dtypes, which adds it, is not installed"
        raise EnvironmentFault([Diagnostic("error", "environment", None, text, "pip install ml_dtypes")]) from None
    return np.dtype(scalar)


def _array_in(array: np.ndarray[typing.Any, typing.Any], want: Tensor) -> typing.Any:
    """A tensor that looks at the array's memory, or at that of a copy in a layout that DLPack can describe."""
    name = array.dtype.name
    if name not in _LENT and array.dtype.kind not in "biufc":  # text, objects, other types of ml_dtypes
        text = f"input {want.name!r} is {array.dtype}, and has to be {want.dtype}"
        raise InputError([Diagnostic("error", "data", None, text, None)])
    if not array.flags.writeable or not array.dtype.isnative or any(s % array.itemsize for s in array.strides):
        array = array.astype(array.dtype.newbyteorder("="))
    if name not in _LENT:
        return tvm_ffi.from_dlpack(array)
    return _function("retype")(tvm_ffi.from_dlpack(array.view(f"u{array.itemsize}")), *_LENT[name])


def _bytes_in(value: typing.Any, want: Tensor) -> np.ndarray[typing.Any, typing.Any]:
    """Strings as the library has them: bytes along one more axis, with zeros behind them."""
    array = np.asarray(value, dtype=object)
    other = next((s for s in array.reshape(-1) if not isinstance(s, (str, bytes))), None)
    if other is not None:
        text = f"input {want.name!r} has elements of type {type(other).__name__}, and has to be string"
        raise InputError([Diagnostic("error", "data", None, text, None)])
    rows = [s if isinstance(s, bytes) else s.encode() for s in array.reshape(-1)]
    longest = max((len(s) for s in rows), default=0)
    if longest > want.string_bytes:
        text = f"input {want.name!r} has a string of {longest} bytes, and takes at most {want.string_bytes}"
        raise InputError([Diagnostic("error", "data", None, text, f"compile with string_bytes={longest}")])
    if any(b"\0" in s.rstrip(b"\0") for s in rows):
        text = f"input {want.name!r} has a string with a zero byte in it, which ends a string"
        raise InputError([Diagnostic("error", "data", None, text, None)])
    flat = b"".join(s.ljust(want.string_bytes, b"\0") for s in rows)
    return np.frombuffer(flat, np.uint8).reshape(*array.shape, want.string_bytes)


def _as_bytes(array: np.ndarray[typing.Any, typing.Any]) -> np.ndarray[typing.Any, typing.Any]:
    """Strings as numpy's bytes."""
    rows = [s if isinstance(s, bytes) else str(s).encode() for s in array.reshape(-1)]
    return np.array(rows, "S").reshape(array.shape) if rows else np.zeros(array.shape, "S1")


def _strings_out(array: np.ndarray[typing.Any, typing.Any]) -> np.ndarray[typing.Any, typing.Any]:
    """An array of ``str``."""
    strings = np.empty(array.shape[:-1], object)
    for at in np.ndindex(strings.shape):
        strings[at] = array[at].tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return strings


def _numbers_in(value: typing.Any, want: Tensor) -> np.ndarray[typing.Any, typing.Any]:
    """Numbers or lists as the input's type, which has to hold each: numpy alone drops fractions."""
    given, dtype = np.asarray(value), _numpy_type(want.dtype)
    if given.dtype.kind not in "biuf":
        return given
    with np.errstate(invalid="ignore"):  # NaN as an integer
        array = given.astype(dtype)
    lost = given[given != array] if dtype.kind in "biu" else given[:0]
    if lost.size:
        text = f"input {want.name!r} is {want.dtype}, which does not hold {lost.flat[0]}"
        raise InputError([Diagnostic("error", "data", None, text, None)])
    return array


def _tensor_in(value: typing.Any, want: Tensor) -> typing.Any:
    """A tensor of tvm-ffi that looks at the value's memory."""
    if want.string_bytes:
        return _array_in(_bytes_in(value, want), want)
    if getattr(value, "requires_grad", False):
        value = value.detach()  # PyTorch: only the numbers count
    if isinstance(value, (np.ndarray, np.generic)):
        return _array_in(np.asarray(value), want)
    if not hasattr(value, "__dlpack__"):  # numbers, lists
        return _array_in(_numbers_in(value, want), want)
    return tvm_ffi.from_dlpack(value)


def _tensor_out(tensor: typing.Any) -> np.ndarray[typing.Any, typing.Any]:
    name = str(tensor.dtype)
    if name in _LENT:
        bits = _LENT[name][1]
        array = np.from_dlpack(_function("retype")(tensor, 1, bits)).view(_numpy_type(name))
    else:
        array = np.from_dlpack(tensor)
    return array if array.flags.writeable else array.copy()  # before numpy 2.1 it is not, whosever it is


def _to_numpy(model: typing.Any) -> typing.Callable[[object, str | None], np.ndarray[typing.Any, typing.Any]]:
    """Makes arrays of samples. Numbers without a type get that of the input of that name, or of the only one."""

    @functools.cache
    def types() -> dict[str, str]:
        return {t.name: t.dtype for t in _tensors(json.loads(str(_function("describe")(model)))["inputs"])}

    def type_of(name: str | None) -> str | None:
        known = types()
        return known.get(name) if name else next(iter(known.values())) if len(known) == 1 else None

    def convert(value: typing.Any, name: str | None) -> np.ndarray[typing.Any, typing.Any]:
        if getattr(value, "requires_grad", False):
            value = value.detach()
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            return _as_bytes(array) if array.dtype.kind in "OU" and type_of(name) == "string" else array
        if hasattr(value, "__dlpack__"):
            return _tensor_out(tvm_ffi.from_dlpack(value))
        array, wanted = np.asarray(value), type_of(name)
        if wanted == "string":
            return _as_bytes(array)
        return array.astype(_numpy_type(wanted)) if wanted and array.dtype.kind in "biuf" else array

    return convert


# --- executables ---


class Executable:
    """A compiled model: call it, save it, look at its report.

    ``m(x)`` and ``m(name=x)`` return one numpy array where the model has one output, else a tuple. ``m.run(...)``
    returns a dict by name. An output of bfloat16 is an array of the type that the package ml_dtypes adds to numpy.
    ``inputs`` and ``outputs`` are of type ``Tensor``. For a sequence of the model, call it with a list of arrays; it
    gives lists. None stands for an optional without an element.
    """

    kind: str  #: ``package`` or ``module``
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def __init__(self, handle: typing.Any, model: typing.Any = None, settings: tuple[str | None, ...] = ()):
        self._handle = handle
        self._model, self._settings = model, settings  #: of what was compiled here
        self._refresh()

    def _refresh(self) -> None:
        about = json.loads(str(_function("describe")(self._handle)))
        self.kind = about["kind"]
        integers = any(t["dtype"][0] < 2 for t in about["inputs"] + about["outputs"])
        report = self.report if integers else {}
        self.inputs = _tensors(about["inputs"], report.get("inputs", ()))
        self.outputs = _tensors(about["outputs"], report.get("outputs", ()))
        for name in ("_lists", "labels"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def _lists(self) -> tuple[list[typing.Any], list[typing.Any]]:
        """Inputs and outputs in the order of the model, with those that are sequences and optionals."""
        entries = self.report.get("lists", [])
        ends = (("inputs", self.inputs), ("outputs", self.outputs))
        inputs, outputs = (arrange([t.name for t in ts], [e for e in entries if e["of"] == of]) for of, ts in ends)
        return inputs, outputs

    def _spread(self, args: tuple[object, ...], named: dict[str, object]) -> dict[str, object]:
        """Sequences and optionals as their elements, which are inputs; these can also be given by themselves."""
        order = self._lists[0]
        names = [name for name, _, _ in order]
        if len(args) > len(names):
            raise TypeError(f"{len(args)} inputs are given, and the model takes {len(names)}: {', '.join(names)}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name in given:
                raise TypeError(f"input {name!r} is given twice")
            given[name] = value
        for name, entry, tensors in order:
            if entry is not None and name in given:
                given = {**elements(entry, given.pop(name), tensors), **given}
        return given

    def _ordered(self, args: tuple[object, ...], named: dict[str, object]) -> list[object]:
        names = [t.name for t in self.inputs]
        if any(entry for _, entry, _ in self._lists[0]):
            args, named = (), self._spread(args, named)
        if len(args) > len(names):
            raise TypeError(f"{len(args)} inputs are given, and the model takes {len(names)}: {', '.join(names)}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"the model has no input {name!r}; it takes {', '.join(names)}")
            if name in given:
                raise TypeError(f"input {name!r} is given twice")
            given[name] = value
        lacking = [n for n in names if n not in given]
        if lacking:
            raise TypeError(f"inputs are missing: {', '.join(lacking)}")
        return [given[n] for n in names]

    def _inputs(self, args: tuple[object, ...], named: dict[str, object]) -> tuple[typing.Any, ...]:
        if not self.inputs and (args or named):  # a module that says nothing of itself before it is built
            self.build()
        return tuple(_tensor_in(v, t) for v, t in zip(self._ordered(args, named), self.inputs))

    def _results(self, args: tuple[object, ...], named: dict[str, object]) -> list[typing.Any]:
        values = self._inputs(args, named)
        for t in self.outputs:
            _numpy_type(t.dtype)  # before the run, rather than after it
        found = [_tensor_out(t) for t in _call("run", self._handle, values)]
        for i, t in enumerate(self.outputs):
            found[i] = _strings_out(found[i]) if t.string_bytes else found[i]
        outputs = self._lists[1]
        if not any(entry for _, entry, _ in outputs):
            return found
        left = iter(found)
        taken = ([next(left) for _ in tensors] for _, _, tensors in outputs)
        return [gather(entry, own) if entry else own[0] for (_, entry, _), own in zip(outputs, taken)]

    def __call__(self, *args: object, **named: object) -> typing.Any:
        """Runs the model once. Inputs by position or by name; one array, or a tuple of them."""
        results = self._results(args, named)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, *args: object, **named: object) -> dict[str, typing.Any]:
        """Runs the model once. A dict may take the place of inputs by name; the results are a dict by name."""
        if len(args) == 1 and not named and isinstance(args[0], dict):
            return self.run(**args[0])
        results = self._results(args, named)
        return dict(zip((name for name, _, _ in self._lists[1]), results))

    @functools.cached_property
    def labels(self) -> dict[str, list[int | str]]:
        """By the name of an output: what its integers stand for, or what its columns of floats are called."""
        return {row["name"]: row["labels"] for row in self.report.get("outputs", ()) if "labels" in row}

    def labeled(self, results: dict[str, typing.Any]) -> dict[str, typing.Any]:
        """The results of ``run`` as the model has them: labels as an array of ``str``, and for the scores of ``ZipMap``
        a list with a dict for each row."""
        return {name: with_labels(value, self.labels[name]) if name in self.labels else value
                for name, value in results.items()}

    def reset(self) -> Executable:
        """States begin anew, as in the first run. They keep their values from run to run until then."""
        _call("reset", self._handle)
        return self

    def build(self, *, progress: Progress | None = None) -> Executable:
        """Makes it ready to run: a package is built by the machine's C compiler ($CC, else cc)."""
        _call("build", self._handle, progress=progress)
        self._refresh()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the package's folder or the module's file, the whole of it or nothing."""
        _call("save", self._handle, os.fspath(path))

    @property
    def report(self) -> dict[str, typing.Any]:
        """What the compile has made: operators, memory, remarks (docs/reference/report.md)."""
        text = str(_function("report")(self._handle))
        return typing.cast("dict[str, typing.Any]", json.loads(text)) if text else {}

    def profile(
        self, *args: object, rounds: int = 10, progress: Progress | None = None, **named: object
    ) -> dict[str, typing.Any]:
        """Where the time of a run goes: ``operators``, each with ``ms``, ``share_of_peak`` and more; their sum ``ms``.

        The package is built once more, with a clock around each operator, and runs for ``rounds`` quarters of a second.
        Inputs are those of a call. Without any, they are random numbers, and open dimensions are at their limits.
        docs/reference/report.md has the keys.
        """
        values = self._inputs(args, named) if args or named else None
        text = str(_call("profile", self._handle, values, rounds, progress=progress))
        return typing.cast("dict[str, typing.Any]", json.loads(text))

    def schedule(self, name: str | None = None, *, progress: Progress | None = None) -> str:
        """What a kernel computes and how its loops run, as text (docs/reference/schedule.md).

        ``name`` is that of a kernel, or of a node of the model; ``None`` gives all kernels. Write the text to a file,
        change it, and pass the file to ``compile`` as ``schedules=path``.
        """
        if self._model is None:
            text = "a package or a module that was loaded holds no schedules"
            raise UsageError([Diagnostic("error", "usage", None, text, "compile the model here")])
        return str(_call("schedule", self._model, self._settings, name, progress=progress))

    def __repr__(self) -> str:
        def some(tensors: tuple[Tensor, ...]) -> str:
            return ", ".join(str(t) for t in tensors[:4]) + (", ..." if len(tensors) > 4 else "")

        return f"<lathe.Executable {self.kind}: ({some(self.inputs)}) -> ({some(self.outputs)})>"

    def _repr_html_(self) -> str:
        return summary(self)


def compile(  # noqa: A001  (the name of what it does)
    model: object,
    target: str = "native",
    *,
    dims: typing.Mapping[str, int | str] | None = None,
    shapes: typing.Mapping[str, typing.Sequence[int]] | None = None,
    progress: Progress | None = None,
    **options: Option,
) -> Executable:
    """Compiles a model: a path, bytes, or an ``onnx.ModelProto``.

    ``target``: ``native`` is this machine; ``lathe compile --help`` lists the others. What is compiled for another
    machine cannot be called here, but saved. ``dims`` gives open dimensions a value (``{"batch": 4}``) or a bound
    (``{"seq": "<=128"}``), ``shapes`` gives inputs a shape. ``options`` are those of ``lathe compile``, with ``_`` for
    ``-``: ``workers=2``, ``opt_level=3``, ``emit="module"``, ``no_winograd=True``; an option that may be given several
    times takes a list. ``progress(stage, share)`` is told what is done; what it raises ends the compile, and so does
    Ctrl-C.
    """
    options = _merged(options, target=None if target == "native" else target, dim=dims, shape=shapes)
    source, settings = _read(model, progress), _settings(options)
    made = Executable(_call("compile", source, settings, progress=progress), source, settings)
    return made.build(progress=progress) if target == "native" else made


def load(path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Option) -> Executable:
    """Opens a package's folder or a module's file. Running it runs its code: load what you trust.

    ``options`` are those of ``lathe run`` that do not steer a compile: ``workers=2``, ``no_jit=True``.
    """
    return Executable(_call("load", os.fspath(path), _settings(options), progress=progress))


def inspect(
    model: object,
    target: str | None = None,
    *,
    dims: typing.Mapping[str, int | str] | None = None,
    progress: Progress | None = None,
    **options: Option,
) -> dict[str, typing.Any]:
    """What a compile would make of a model, as a dict (docs/reference/report.md). ``options``: of ``lathe inspect``."""
    settings = _settings(_merged(options, target=target, dim=dims))
    text = str(_call("inspect", _read(model, progress), settings, progress=progress))
    return typing.cast("dict[str, typing.Any]", json.loads(text))


def verify(
    model: object,
    target: str | None = None,
    *,
    against: str | None = None,
    data: Samples | None = None,
    dims: typing.Mapping[str, int | str] | None = None,
    progress: Progress | None = None,
    **options: Option,
) -> dict[str, typing.Any]:
    """Compares what the model gives with a reference.

    ``against`` is ``onnxruntime``, ``interpreter`` or ``c``, or for ``.tflite`` models ``tflm`` or ``litert``. Other
    packages run in this Python, unless the environment variable ``LATHE_PYTHON`` names another one.

    Inputs are random numbers (``seeds=10``), or samples: ``data`` is as in ``quantize``. It may also be a folder
    ``test_data_set_0`` with inputs and outputs, which needs no ``against``.

    ``outputs`` of the result has the greatest errors of each output (docs/reference/report.md). Raises
    ``InputError`` when one is outside of the tolerance; the errors are its ``result``. ``options``: of ``lathe
    verify``, such as ``rtol=1e-4``; ``target="qemu-m4"`` runs it in an emulator.
    """
    if sys.executable:
        os.environ.setdefault("LATHE_PYTHON", sys.executable)
    handle = _read(model, progress)
    with as_files(_to_numpy(handle), data=data) as (paths, titles):
        settings = _settings(_merged(options, target=target, against=against, dim=dims, **paths))
        text = str(_call("verify", handle, settings, progress=progress, titles=titles))
    return typing.cast("dict[str, typing.Any]", json.loads(text))


def quantize(
    model: object,
    path: str | os.PathLike[str],
    *,
    data: Samples | None = None,
    calibrate: Samples | None = None,
    labels: typing.Any = None,
    progress: Progress | None = None,
    **options: Option,
) -> dict[str, typing.Any]:
    """Quantizes a model of floats to 8 bits and writes it to ``path``; returns what that costs.

    ``data`` has samples, which give the ranges of the values and are compared at the end. It is

    - an array, for a model with one input: the first axis counts the samples;
    - a dict from the name of an input to such an array;
    - a list of samples: each one is an array, or a dict with an array for each input;
    - the path of a ``.npy`` or ``.npz`` file, or of a folder with samples.

    ``calibrate`` has other samples for the ranges. ``labels`` has the right class of each sample: integers, or a path.
    ``options``: of ``lathe quantize``, such as ``method="entropy"``, ``for_="vta"``, ``skip=["/head/Conv"]``.
    """
    handle = _read(model, progress)
    labels = np.asarray(labels) if isinstance(labels, (list, tuple)) else labels
    with as_files(_to_numpy(handle), data=data, calibrate=calibrate, labels=labels) as (paths, titles):
        settings = _settings(_merged(options, **paths))
        text = str(_call("quantize", handle, os.fspath(path), settings, progress=progress, titles=titles))
    return typing.cast("dict[str, typing.Any]", json.loads(text))


def tune(
    model: object,
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    dims: typing.Mapping[str, int | str] | None = None,
    progress: Progress | None = None,
    **options: Option,
) -> dict[str, typing.Any]:
    """Measures schedules for the model's kernels and keeps the best in the file ``path``; returns what they gain.

    Pass the file to ``compile`` as ``schedules=path``. The program ``lathe``, which comes with the wheel, measures.
    ``options``: of ``lathe tune``, such as ``budget=600`` (seconds) and ``candidates=24``.
    """
    beside = pathlib.Path(sys.executable).with_name("lathe")
    if "measure" not in options and beside.exists():  # the one of this environment
        options["measure"] = f"{beside} measure"
    settings = _settings(_merged(options, target=target, dim=dims))
    text = str(_call("tune", _read(model, progress), os.fspath(path), settings, progress=progress))
    return typing.cast("dict[str, typing.Any]", json.loads(text))
