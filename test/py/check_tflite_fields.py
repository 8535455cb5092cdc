#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the field table of the FlatBuffers reader (lines "TABLE ID NAME KIND SUB DEFAULT" and "union UNION NUMBER
TABLE" on stdin) with the schema of TensorFlow Lite in the package ai_edge_litert, whose generated Python says for each
field its slot, its type and its default. Exit status 77 when the package is not there."""
import inspect
import re
import sys

try:
    from ai_edge_litert import schema_py_generated as S
except ImportError:
    sys.exit(77)

SLOTS = {"Bool": "BOOL", "Int8": "I8", "Uint8": "U8", "Int32": "I32", "Uint32": "U32", "Int64": "I64", "Uint64": "U64",
         "Float32": "F32"}
READS = {"Uint16Flags": "U16S", "Int32Flags": "I32S", "Int64Flags": "I64S", "Float32Flags": "F32S",
         "Uint8Flags": "BYTES"}


def kind_of(table, name, writer):
    """The kind of a field, and for tables the name of what it holds."""
    slot = re.search(r"Prepend(\w+)Slot\((\d+), [^,]*, (\S+?)\)$", writer.strip(), re.M)
    kind, number, value = slot.groups()
    if kind in SLOTS:
        return SLOTS[kind], int(number), value, "-"
    reader = inspect.getsource(getattr(getattr(S, table), name))
    held = re.search(r"obj = (\w+)\(\)", reader)
    if "self._tab.String(" in reader:
        return "STR", int(number), "0", "-"
    if "flatbuffers.table.Table" in reader or "Union(obj" in reader:
        return "UNION", int(number), "0", "-"
    if held:
        many = "self._tab.Vector(" in reader
        return ("TABLES" if many else "TABLE"), int(number), "0", held[1]
    flags = re.search(r"_tab\.Get\(flatbuffers\.number_types\.(\w+Flags)", reader)
    return READS.get(flags[1], flags[1]), int(number), "0", "-"


def check_union(union, number, table):
    names = {v: k for k, v in vars(getattr(S, union)).items() if isinstance(v, int)}
    have = names.get(int(number))
    return None if have == table else f"{union} {number} is {have}, the table says {table}"


def check(line):
    first, *rest = line.split()
    if first == "union":
        return check_union(*rest)
    number, snake, kind, sub, value = rest
    name = "".join(part[:1].upper() + part[1:] for part in snake.split("_"))
    writer = getattr(S, f"{first}Add{name}", None)
    if writer is None:
        return f"{first} has no field '{name}'"
    want, slot, default, held = kind_of(first, name, inspect.getsource(writer))
    default = str(int(default == "True") if default in ("True", "False") else int(float(default)))
    if (want, str(slot), default, held) != (kind, number, value, sub):
        return f"{first}.{name} is {want} {slot} {default} {held}, the table says {kind} {number} {value} {sub}"
    return None


# What TFLITE_METADATA holds has a schema of its own, which the package does not have.
lines = [line for line in sys.stdin.read().splitlines() if "meta:" not in line]
faults = [fault for fault in map(check, lines) if fault]
print("\n".join(faults))
print(f"TensorFlow Lite fields: {len(lines)} compared, {len(faults)} faults")
sys.exit(1 if faults or len(lines) < 150 else 0)
