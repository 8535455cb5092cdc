# SPDX-License-Identifier: Apache-2.0
"""The interface of ``onnx.backend``: ``lathe.backend.prepare(model).run(inputs)``. Needs the package onnx."""

from __future__ import annotations

import typing

import numpy as np
from onnx import ModelProto, NodeProto, defs, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._compiler import Error, Executable, InputError, Option, compile

_NEWEST_OPSET = 27  # for a node alone, where the package onnx knows more than the compiler


def _compile(model: ModelProto, target: str, **options: Option) -> Executable:
    """A package; a module where nothing limits an extent, for it gets that memory while it runs."""
    try:
        return compile(model, target, **options)  # type: ignore[arg-type]
    except InputError as e:
        open_ended = ("no upper bound", "open dimensions")
        if "emit" in options or not any(words in d.text for d in e.diagnostics for words in open_ended):
            raise
    return compile(model, target, emit="module", **options)  # type: ignore[arg-type]


class Prepared(BackendRep):
    """A compiled model."""

    def __init__(self, executable: Executable):
        self.executable = executable

    def _executable_for(self, inputs: list[typing.Any] | dict[str, typing.Any]) -> Executable:
        del inputs
        return self.executable

    def run(self, inputs: typing.Any, **kwargs: typing.Any) -> tuple[typing.Any, ...]:
        """Inputs in the model's order, or one alone, or a dict by name; outputs as a tuple with names."""
        del kwargs
        if not isinstance(inputs, dict):
            inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        executable = self._executable_for(inputs)
        results = executable.run(inputs) if isinstance(inputs, dict) else executable.run(*inputs)
        return namedtupledict("Outputs", list(results))(*results.values())


def _list_inputs(model: ModelProto) -> list[tuple[str, bool]]:
    """Sequences and optionals among the inputs: the name, and whether it is a sequence."""
    found = []
    for value in model.graph.input:
        kind = value.type.optional_type.elem_type if value.type.HasField("optional_type") else value.type
        if value.type.HasField("optional_type") or value.type.HasField("sequence_type"):
            found.append((value.name, kind.HasField("sequence_type")))
    return found


class PreparedForLists(Prepared):
    """A model with sequences or optionals as inputs, compiled when a run says how many elements they have."""

    def __init__(self, model: ModelProto, target: str, options: dict[str, Option]):
        self._model, self._target, self._options = model, target, options
        self._made: dict[str, Executable] = {}

    def _executable_for(self, inputs: list[typing.Any] | dict[str, typing.Any]) -> Executable:
        """Elements of each number and shapes, and the other inputs as they are, have an executable of their own."""
        dims: dict[str, int | str] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        lists = {name: is_sequence for name, is_sequence in _list_inputs(self._model)}
        for i, info in enumerate(self._model.graph.input):
            name, is_sequence = info.name, lists.get(info.name, False)
            value = inputs.get(name) if isinstance(inputs, dict) else inputs[i] if i < len(inputs) else None
            if name not in lists and value is not None:
                shapes[name] = np.shape(value)
            if name not in lists:
                continue
            items = [] if value is None else value if is_sequence else [value]
            dims[name] = "none" if value is None else len(items)
            shapes.update({f"{name}[{k}]": np.shape(item) for k, item in enumerate(items)})
        key = repr((dims, shapes))
        if key not in self._made:
            self._made[key] = _compile(self._model, self._target, dims=dims, shapes=shapes, **self._options)
        return self._made[key]


class LatheBackend(Backend):
    """Compiles for this machine's processor."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Option) -> Prepared:
        """``options`` are those of ``lathe.compile``."""
        if not cls.supports_device(device):
            raise ValueError(f"the device {device!r} is not known: it takes CPU")
        if _list_inputs(model) and "dims" not in options:
            return PreparedForLists(model, "native", options)
        return Prepared(_compile(model, "native", **options))

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: typing.Any,
        device: str = "CPU",
        outputs_info: typing.Sequence[tuple[np.dtype[typing.Any], tuple[int, ...]]] | None = None,
        **kwargs: typing.Any,
    ) -> tuple[typing.Any, ...]:
        """Runs one operator: a model is made of it, with the types that the inputs have."""
        opset = kwargs.pop("opset_version", None) or min(_NEWEST_OPSET, defs.onnx_opset_version())
        given = [(n, np.asarray(v)) for n, v in zip((n for n in node.input if n), inputs)]
        ends = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given]
        if outputs_info is None:
            results = [helper.make_empty_tensor_value_info(n) for n in node.output]
        else:
            results = [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s)
                for n, (t, s) in zip(node.output, outputs_info)
            ]
        graph = helper.make_graph([node], "node", ends, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device).run([v for _, v in given])

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: typing.Any) -> bool:
        """Whether the model can be compiled; with sequences as inputs, a run tells."""
        if _list_inputs(model):
            return cls.supports_device(device)
        try:
            _compile(model, "generic")
        except Error:
            return False
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The processor is the only one."""
        return device.split(":")[0].upper() == "CPU"


prepare = LatheBackend.prepare
run_model = LatheBackend.run_model
run_node = LatheBackend.run_node
is_compatible = LatheBackend.is_compatible
supports_device = LatheBackend.supports_device
