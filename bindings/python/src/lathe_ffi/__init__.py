# SPDX-License-Identifier: Apache-2.0
"""Portable modules in Python, called through tvm-ffi.

``lathe_ffi.Machine("model.so")`` loads a module into the virtual machine of this package and initializes it;
``machine["main"](x)`` calls it with anything that speaks DLPack. ``LoadFromFile``, ``GetFunction``, ``configure``,
``set_workers``, ``devices`` and ``source`` are the functions below it, also globals of tvm-ffi
(``lathe.LoadFromFile``).

A module with layers on the VTA (``--offload vta``) needs the device ``ext_dev``: ``import vta_ffi`` first.

Importing the package also teaches tvm-ffi, and with it Apache TVM, to load modules of Lathe: their C source is compiled
for this machine when TVM loads them.
"""

import ctypes
import pathlib

import tvm_ffi

CPU, EXT_DEV, MY_DEVICE = 1, 12, 101
NAIVE, POOLED = 1, 2


def library_path() -> str:
    """Path of the shared library that belongs to this package."""
    return str(pathlib.Path(__file__).parent / "liblathe_ffi.so")


_library = ctypes.CDLL(library_path())
module = tvm_ffi.load_module(library_path())

FUNCTIONS = ("configure", "set_workers", "LoadFromFile", "GetFunction", "devices", "source")
for _name in FUNCTIONS:
    globals()[_name] = tvm_ffi.get_global_func("lathe." + _name)


@tvm_ffi.register_object("lathe.Module")
class Module(tvm_ffi.Object):
    """A library, an executable or a machine: ``module[name]`` is one of its functions."""

    def __getitem__(self, name: str):
        return GetFunction(self, name)  # noqa: F821


class Machine:
    """A module of a file, initialized: ``machine[name]`` is a function of the model, ``machine.main(...)`` as well."""

    def __init__(self, path, device=MY_DEVICE, device_id=0, allocator=POOLED):
        self.library = LoadFromFile(str(path))  # noqa: F821
        self.module = self.library["vm_load_executable"]()
        between = [n for d in devices(self.library).split() for n in (int(d), 0, allocator)]  # noqa: F821
        self.module["vm_initialization"](device, device_id, allocator, *between, CPU, 0, allocator)

    def __getitem__(self, name: str):
        return self.module[name]

    def __getattr__(self, name: str):
        if name.startswith("_") or name in ("library", "module"):
            raise AttributeError(name)
        return self.module[name]

    @property
    def source(self) -> str:
        """The C source of the kernels."""
        return source(self.library)  # noqa: F821


__all__ = ["Machine", "Module", "library_path", "module", "CPU", "EXT_DEV", "MY_DEVICE", "NAIVE", "POOLED", *FUNCTIONS]
