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
    """A package; a module where data decides an extent that nothing limits, for it gets that memory while it runs."""
    try:
        return compile(model, target, **options)  # type: ignore[arg-type]
    except InputError as e:
        if "emit" in options or not any(d.code == "unsupported" and "no upper bound" in d.text for d in e.diagnostics):
            raise
    return compile(model, target, emit="module", **options)  # type: ignore[arg-type]


class Prepared(BackendRep):
    """A compiled model."""

    def __init__(self, executable: Executable):
        self.executable = executable

    def run(self, inputs: typing.Any, **kwargs: typing.Any) -> tuple[typing.Any, ...]:
        """Inputs in the model's order, or one alone, or a dict by name; outputs as a tuple with names."""
        del kwargs
        if isinstance(inputs, dict):
            results = self.executable.run(inputs)
        else:
            results = self.executable.run(*(inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        names = [t.name for t in self.executable.outputs]
        return namedtupledict("Outputs", names)(*(results[n] for n in names))


class LatheBackend(Backend):
    """Compiles for this machine's processor."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Option) -> Prepared:
        """``options`` are those of ``lathe.compile``."""
        if not cls.supports_device(device):
            raise ValueError(f"the device {device!r} is not known: it takes CPU")
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
        """Whether the model can be compiled."""
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
