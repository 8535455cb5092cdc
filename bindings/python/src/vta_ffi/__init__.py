# SPDX-License-Identifier: Apache-2.0
"""The VTA accelerator's run-time and simulators, called through tvm-ffi.

Importing the package loads the library and registers its functions; they are attributes of this module
(``vta_ffi.load_2d``) and global functions (``tvm_ffi.get_global_func("load_2d")``, also as ``"vta.load_2d"``).
``vta_ffi.module`` is the library as a ``tvm_ffi.Module``.
"""

import ctypes
import json
import pathlib
import sys

import tvm_ffi

_NAMES = {"win32": "vta_ffi.dll", "darwin": "libvta_ffi.dylib"}


def library_path() -> str:
    """Path of the shared library that belongs to this package."""
    return str(pathlib.Path(__file__).parent / _NAMES.get(sys.platform, "libvta_ffi.so"))


# Global visibility, so that compiled kernels which need VTADepPush and the like find them; load_module alone is local.
_library = ctypes.CDLL(library_path(), mode=ctypes.RTLD_GLOBAL)
module = tvm_ffi.load_module(library_path())

FUNCTIONS = (
    "command_handle load_2d store_2d uop_push uop_loop_begin uop_loop_end dep_push dep_pop synchronize buffer_alloc "
    "buffer_free buffer_copy buffer_cpu_ptr write_barrier read_barrier push_gemm_op push_alu_op device_create "
    "make_current set_debug_mode shutdown scratchpad_read"
).split()

for _name in FUNCTIONS:
    globals()[_name] = tvm_ffi.get_global_func(_name)
_counters = tvm_ffi.get_global_func("counters")


def counters(cmd: int) -> dict:
    """Counters of a command queue's device."""
    return json.loads(_counters(cmd))


__all__ = [*FUNCTIONS, "counters", "library_path", "module"]
