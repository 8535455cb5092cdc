# SPDX-License-Identifier: Apache-2.0
"""The library as a tvm-ffi module."""

import tvm_ffi
import vta_ffi

mod = tvm_ffi.load_module(vta_ffi.library_path())
print("module kind:", mod.kind)
print("has load_2d:", mod.implements_function("load_2d", query_imports=True))
print("cmd handle:", mod.get_function("command_handle")())
