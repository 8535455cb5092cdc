# SPDX-License-Identifier: Apache-2.0
"""The official ONNX backend cases inside the pinned wheel, and those that the newest one adds (newest_cases.py): where
they are, what they feed, what they expect."""
import glob
import json
import os
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

DATA = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")
LIGHT = os.path.join(DATA, "light")
# Pictures that libraries of this machine read, with a package; the interpreter has none.
BY_LIBRARIES = ("test_image_decoder_decode_jpeg2k_rgb", "test_image_decoder_decode_webp_rgb")
KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple", "light")
TOTAL = 1914
NEWEST = "newest"  # the kind of what the newest wheel adds
NEWEST_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "onnx-newest", "node")
NEWEST_TOTAL = 119
NEWEST_BF16_RTOL = 2**-6  # two units in the last place, as its own runner has it


@dataclass
class Case:
    """`model` is a file; `folder` holds test_data_set_*, or is None for a light model (its input is a ramp)."""

    kind: str
    name: str
    model: str
    folder: str | None
    rtol: float = 1e-3
    atol: float = 1e-7

    @property
    def key(self):
        return f"{self.kind}/{self.name}"


# Results that ONNX leaves to a generator of random numbers: type, shape and 0 or 1 are what they can be compared for.
def is_random(case):
    return case.name.startswith("test_bernoulli")


def find():
    """All cases, by kind and name. The light models are the wheel's kind "real", with the model in the folder light."""
    cases = []
    for kind in KINDS:
        root = os.path.join(DATA, "real" if kind == "light" else kind)
        for name in sorted(os.listdir(root)):
            folder = os.path.join(root, name)
            if not os.path.isdir(folder):
                continue
            about = {}
            if os.path.exists(os.path.join(folder, "data.json")):
                with open(os.path.join(folder, "data.json")) as f:
                    about = json.load(f)
            if kind == "light":
                case = Case(kind, name, os.path.join(LIGHT, os.path.basename(about["url"])), None)
            else:
                case = Case(kind, name, os.path.join(folder, "model.onnx"), folder)
            case.rtol, case.atol = about.get("rtol", case.rtol), about.get("atol", case.atol)
            cases.append(case)
    return cases


def _value(path, value_type):
    """A .pb file as array, list of arrays or None; a list or None only for sequence and optional types."""
    with open(path, "rb") as f:
        data = f.read()
    if value_type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if value_type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return stored(numpy_helper.to_array(onnx.TensorProto.FromString(data)))


# NumPy's names of element types that Lathe has as bytes, and how many bits an element has.
IN_BYTES = {"float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
            "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def stored(value):
    """An array as a package takes it: elements of less than a byte packed as in ONNX, floats of 8 bits as codes."""
    width = IN_BYTES.get(value.dtype.name) if isinstance(value, np.ndarray) else None
    if not width:
        return value
    codes = value.view(np.uint8)
    if width == 8:
        return codes
    bits = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :width]
    return np.packbits(bits.ravel(), bitorder="little")


def find_newest():
    """The cases that only the newest wheel has."""
    cases = []
    for name in sorted(os.listdir(NEWEST_DATA)):
        folder = os.path.join(NEWEST_DATA, name)
        case = Case(NEWEST, name, os.path.join(folder, "model.onnx"), folder)
        outputs = onnx.load(case.model).graph.output
        if any(o.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for o in outputs):
            case.rtol = NEWEST_BF16_RTOL
        cases.append(case)
    return cases


def _numbered(folder, stem):
    count = len(glob.glob(os.path.join(folder, stem + "_*.pb")))
    return [os.path.join(folder, f"{stem}_{i}.pb") for i in range(count)]


def ramp(value_info):
    """The input that the wheel defines for its light models."""
    shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value_info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def light_input(model):
    """The one graph input of a light model that is not a weight."""
    weights = {i.name for i in model.graph.initializer}
    (info,) = [i for i in model.graph.input if i.name not in weights]
    return info


def data_sets(case, model):
    """[(inputs by name, outputs by name)] of every data set of the case."""
    if case.folder is None:
        info = light_input(model)
        output = _value(case.model.replace(".onnx", "_output_0.pb"), model.graph.output[0].type)
        return [({info.name: ramp(info)}, {model.graph.output[0].name: output})]
    sets = []
    for folder in sorted(glob.glob(os.path.join(case.folder, "test_data_set*"))):
        ins = {i.name: _value(p, i.type) for i, p in zip(model.graph.input, _numbered(folder, "input"))}
        outs = {o.name: _value(p, o.type) for o, p in zip(model.graph.output, _numbered(folder, "output"))}
        sets.append((ins, outs))
    return sets


def operator(case, model):
    """What the case is about: its only operator, for a function's expansion the function's, else None."""
    nodes = model.graph.node
    if len(nodes) != 1 or "_expanded" in case.name:
        base = case.name.split("_expanded")[0]
        path = os.path.join(os.path.dirname(os.path.dirname(case.model)), base, "model.onnx")
        if base == case.name or not os.path.exists(path):
            return None
        nodes = onnx.load(path).graph.node
        if len(nodes) != 1:
            return None
    domain = nodes[0].domain
    return nodes[0].op_type if domain in ("", "ai.onnx") else f"{domain}.{nodes[0].op_type}"
