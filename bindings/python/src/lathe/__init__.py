# SPDX-License-Identifier: Apache-2.0
"""Lathe, the deep-learning compiler, in Python.

    import lathe, numpy as np
    m = lathe.compile("model.onnx")
    y = m(np.zeros((1, 3, 224, 224), np.float32))

``compile`` takes a path, bytes or an ``onnx.ModelProto`` and returns an ``Executable``: call it with numpy arrays,
PyTorch tensors or anything else that speaks DLPack. ``load`` opens what ``Executable.save`` or the program ``lathe``
wrote. ``inspect``, ``verify``, ``quantize`` and ``tune`` are the program's verbs of these names. What goes wrong is
raised as ``lathe.Error``, which has the diagnostics. ``lathe.backend`` is the interface of ``onnx.backend``.
"""

import importlib
import typing

from ._compiler import (
    Cancelled,
    Diagnostic,
    EnvironmentFault,
    Error,
    Executable,
    InputError,
    LatheWarning,
    Tensor,
    UsageError,
    compile,
    inspect,
    load,
    quantize,
    tune,
    verify,
    version,
)

__version__ = version()

if typing.TYPE_CHECKING:
    from . import backend as backend
else:

    def __getattr__(name):
        """``lathe.backend`` is imported when it is first asked for, because it needs the package onnx."""
        if name == "backend":
            return importlib.import_module(".backend", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Cancelled",
    "Diagnostic",
    "EnvironmentFault",
    "Error",
    "Executable",
    "InputError",
    "LatheWarning",
    "Tensor",
    "UsageError",
    "compile",
    "inspect",
    "load",
    "quantize",
    "tune",
    "verify",
    "version",
]
