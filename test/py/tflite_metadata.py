# SPDX-License-Identifier: Apache-2.0
"""Metadata of models of TensorFlow Lite, for the tests and the demo: how an input is normalized, what the columns of an
output are called. The names stand in a ZIP archive behind the model. Tables are those of metadata_schema.fbs."""
import io
import zipfile

import flatbuffers
import numpy as np

from tflite_net import S


def table(b, fields):
    """fields: {number of the field: offset of a table, a text or a list, or ("byte", value)}"""
    b.StartObject(max(fields) + 1)
    for number, value in fields.items():
        if isinstance(value, tuple):
            b.PrependUint8Slot(number, value[1], 0)
        else:
            b.PrependUOffsetTRelativeSlot(number, value, 0)
    return b.EndObject()


def references(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for o in reversed(offsets):
        b.PrependUOffsetTRelative(o)
    return b.EndVector()


def floats(b, values):
    b.StartVector(4, len(values), 4)
    for v in reversed(values):
        b.PrependFloat32(v)
    return b.EndVector()


def metadata(label_file, mean, std):
    """ModelMetadata: the first input is (byte - mean) / std, the first output has labels in a file."""
    b = flatbuffers.Builder(512)
    normal = table(b, {0: floats(b, mean), 1: floats(b, std)})
    unit = table(b, {0: ("byte", 1), 1: normal})
    image = table(b, {0: b.CreateString("image"), 4: references(b, [unit])})
    labels = table(b, {0: b.CreateString(label_file), 2: ("byte", 2)})  # TENSOR_AXIS_LABELS
    scores = table(b, {0: b.CreateString("scores"), 6: references(b, [labels])})
    graph = table(b, {2: references(b, [image]), 3: references(b, [scores])})
    root = table(b, {0: b.CreateString("a classifier"), 3: references(b, [graph])})
    b.Finish(root, file_identifier=b"M001")
    return bytes(b.Output())


def with_labels(net, name, labels, mean, std, compressed=False):
    """The file of a model: its metadata, and behind it the archive that holds the labels."""
    content = S.MetadataT()
    content.name, content.buffer = b"TFLITE_METADATA", len(net.model.buffers)
    buffer = S.BufferT()
    buffer.data = np.frombuffer(metadata(name, mean, std), np.uint8)
    net.model.buffers.append(buffer)
    net.model.metadata = [content]
    file = io.BytesIO(net.bytes())
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as z:
        z.writestr(zipfile.ZipInfo(name), "\n".join(labels) + "\n", zipfile.ZIP_DEFLATED if compressed else None)
    return file.getvalue()
