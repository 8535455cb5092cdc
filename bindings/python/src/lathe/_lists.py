# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals of a model as lists and None, maps as dictionaries. What is compiled takes and gives
tensors for them, which its report lists (docs/reference/report.md)."""

from __future__ import annotations

import collections.abc
import typing

import numpy as np

Entry = typing.Dict[str, typing.Any]  # of "lists" in report.json


def _tensors_of(entry: Entry) -> int:
    return len(entry["parts"]) + sum("sizes" in p for p in entry["parts"]) + ("present" in entry)


def arrange(names: typing.Sequence[str], entries: typing.Sequence[Entry]) -> list[tuple[str, Entry | None, list[str]]]:
    """Inputs, or outputs, in the order of the model: the name, what is said of a list, and the names of its tensors."""
    by_place = {entry["place"]: entry for entry in entries}
    found: list[tuple[str, Entry | None, list[str]]] = []
    at = place = 0
    while at < len(names) or any(p >= place for p in by_place):
        entry = by_place.get(place)
        if entry is not None:
            count = _tensors_of(entry)
            found.append((entry["name"], entry, list(names[at : at + count])))
            at += count
        elif at < len(names):
            found.append((names[at], None, [names[at]]))
            at += 1
        place += 1
    return found


def elements(entry: Entry, value: object, tensors: typing.Sequence[str]) -> dict[str, object]:
    """The tensors for a list, or None, that is given for an input."""
    name, want = entry["name"], len(tensors)
    if entry["kind"] == "map":
        if not isinstance(value, collections.abc.Mapping):
            raise TypeError(f"input {name!r} is a map: it takes a dict, not {type(value).__name__}")
        return dict(zip(tensors, (list(value.keys()), list(value.values()))))
    if entry["kind"] == "optional":
        value = [] if value is None else [value]
    elif value is None:
        value = [] if entry.get("none") else value
    elif entry.get("none"):
        raise ValueError(f"input {name!r} takes None: the model is compiled for an optional without an element")
    if not isinstance(value, collections.abc.Iterable) or isinstance(value, (str, bytes)):
        raise TypeError(f"input {name!r} is a {entry['kind']}: it takes a list of arrays, not {type(value).__name__}")
    given = list(value)
    if len(given) != want:
        raise ValueError(f"input {name!r} has {len(given)} elements, and the model is compiled for {want}")
    return dict(zip(tensors, given))


def gather(entry: Entry, tensors: typing.Sequence[typing.Any]) -> typing.Any:
    """What an output is: a list of arrays, one array for an optional of a tensor, or None."""
    items: list[typing.Any] = []
    left = iter(tensors)
    for part in entry["parts"]:
        data = next(left)
        if part["holds"] == "element":
            items.append(data)
            continue
        sizes = next(left) if "sizes" in part else None
        for k in range(len(data)):
            items.append(data[k] if sizes is None else data[k][tuple(slice(0, int(s)) for s in sizes[k])].copy())
    present = bool(next(left)) if "present" in entry else not entry.get("none")
    if not present:
        return None
    return items if entry["kind"] != "optional" else items[0]


def with_labels(value: typing.Any, labels: typing.Sequence[int | str]) -> typing.Any:
    """Integers as what they stand for; rows of floats as dictionaries."""
    if value.dtype.kind == "f":
        return [dict(zip(labels, row)) for row in value.reshape(-1, len(labels)).tolist()]
    found = np.empty(value.shape, object)
    found[...] = np.array(labels, object)[value]
    return found
