#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the wire reader's field table (lines "MESSAGE NUMBER NAME KIND SUBMESSAGE" on stdin) with the descriptors of
onnx.proto and onnx-data.proto in the onnx package. Exit status 77 when the package is not there."""
import sys

try:
    import onnx
except ImportError:
    sys.exit(77)

from google.protobuf.descriptor import FieldDescriptor as F

KINDS = {F.TYPE_INT64: "INT", F.TYPE_INT32: "INT", F.TYPE_UINT64: "INT", F.TYPE_ENUM: "INT", F.TYPE_FLOAT: "FLOAT",
         F.TYPE_DOUBLE: "DOUBLE", F.TYPE_STRING: "STR", F.TYPE_BYTES: "STR", F.TYPE_MESSAGE: "MSG"}


def find(name):
    first, *rest = name.split(".")
    files = (onnx.ModelProto.DESCRIPTOR.file, onnx.SequenceProto.DESCRIPTOR.file)
    message = next(f.message_types_by_name[first] for f in files if first in f.message_types_by_name)
    for part in rest:
        message = message.nested_types_by_name[part]
    return message


def full_name(message):
    return message.full_name.removeprefix(message.file.package + ".")


def check(line):
    message, number, name, kind, sub = line.split()
    field = find(message).fields_by_number.get(int(number))
    if field is None or field.name != name:
        return f"{message} has no field {number} '{name}'"
    repeated = getattr(field, "is_repeated", None)
    repeated = field.label == F.LABEL_REPEATED if repeated is None else repeated
    want = KINDS[field.type] + ("S" if repeated else "")
    if want != kind:
        return f"{message}.{name} is {want}, the table says {kind}"
    if field.message_type and full_name(field.message_type) != sub:
        return f"{message}.{name} holds {full_name(field.message_type)}, the table says {sub}"
    return None


lines = sys.stdin.read().splitlines()
faults = [fault for fault in map(check, lines) if fault]
print("\n".join(faults))
print(f"onnx fields: {len(lines)} compared with onnx {onnx.__version__}, {len(faults)} faults")
sys.exit(1 if faults or len(lines) < 80 else 0)
