# SPDX-License-Identifier: Apache-2.0
"""Samples as Python has them, arrays and lists and dicts of arrays, as the files that the library reads."""

from __future__ import annotations

import collections.abc
import contextlib
import os
import pathlib
import tempfile
import typing

import numpy as np
import numpy.typing as npt


class _HasDLPack(typing.Protocol):
    def __dlpack__(self) -> typing.Any: ...


Array = typing.Union[npt.ArrayLike, _HasDLPack]
Samples = typing.Union[
    str,
    "os.PathLike[str]",
    Array,
    typing.Mapping[str, Array],
    typing.Sequence[typing.Union[Array, typing.Mapping[str, Array]]],
]
Numpy = np.ndarray[typing.Any, typing.Any]
#: A tensor of another library, or numbers, as an array: numbers get the type of the input of that name.
ToNumpy = typing.Callable[[object, typing.Optional[str]], Numpy]


def _array(what: str, value: object, name: str | None, to_numpy: ToNumpy) -> Numpy:
    try:
        array = to_numpy(value, name)
    except (TypeError, ValueError) as e:
        raise TypeError(f"{what} is a path, arrays or numbers: {e}") from None
    if array.dtype.kind in "OUMm":  # strings are bytes by now
        raise TypeError(f"{what} is a path, arrays or numbers, not {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.asarray(array, order="C")


def _stacked(what: str, arrays: list[Numpy], name: str | None) -> Numpy:
    for i, a in enumerate(arrays):
        if a.shape != arrays[0].shape:
            of = f" of {name!r}" if name else ""
            raise ValueError(
                f"{what}: all samples{of} need the same shape; sample 0 has {arrays[0].shape}, sample {i} has {a.shape}"
            )
    return np.stack(arrays)


def _stacked_dicts(what: str, samples: list[typing.Mapping[str, object]], to_numpy: ToNumpy) -> dict[str, Numpy]:
    for i, s in enumerate(samples):
        if not isinstance(s, collections.abc.Mapping) or s.keys() != samples[0].keys():
            raise ValueError(f"{what}: sample {i} needs the arrays {', '.join(samples[0])}, as sample 0 has them")
    return {n: _stacked(what, [_array(what, s[n], n, to_numpy) for s in samples], n) for n in samples[0]}


def _arrays(what: str, value: object, to_numpy: ToNumpy) -> Numpy | dict[str, Numpy]:
    if isinstance(value, collections.abc.Mapping):
        return {n: _array(what, v, n, to_numpy) for n, v in value.items()}
    if not isinstance(value, (list, tuple)):
        return _array(what, value, None, to_numpy)
    if not value:
        raise ValueError(f"{what} has no samples")
    if isinstance(value[0], collections.abc.Mapping):
        return _stacked_dicts(what, list(value), to_numpy)
    return _stacked(what, [_array(what, v, None, to_numpy) for v in value], None)


@contextlib.contextmanager
def as_files(to_numpy: ToNumpy, **values: object) -> typing.Iterator[tuple[dict[str, str | None], dict[str, str]]]:
    """The values as paths, by their names; and how to call these files in messages. Files made here go at the end."""
    paths: dict[str, str | None] = {}
    titles: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what, value in values.items():
            if value is None or isinstance(value, (str, os.PathLike)):
                paths[what] = None if value is None else os.fspath(value)
                continue
            arrays = _arrays(what, value, to_numpy)
            path = str(pathlib.Path(folder) / (what + (".npz" if isinstance(arrays, dict) else ".npy")))
            if isinstance(arrays, dict):
                with open(path, "wb") as f:
                    np.savez(f, **typing.cast("dict[str, typing.Any]", arrays))
            else:
                np.save(path, arrays)
            paths[what] = path
            titles[path] = what
        yield paths, titles
