# SPDX-License-Identifier: Apache-2.0
"""A tensor into the accelerator's scratchpad, through global functions."""

import numpy as np
import tvm_ffi
import vta_ffi  # loads the library and registers its functions

# 1) the command queue
command_handle = tvm_ffi.get_global_func("command_handle")
cmd = command_handle()
print("cmd handle:", cmd)

# 2) a 4x4 int32 tensor is one element of the accumulator (1 x 16 lanes)
x = np.arange(16, dtype=np.int32).reshape(4, 4)
tensor = tvm_ffi.from_dlpack(x)
load_2d = tvm_ffi.get_global_func("load_2d")
try:
    load_2d(
        int(cmd),  # cmd
        tensor,  # src_dram
        0,  # src_elem_offset
        1, 1,  # x_size, y_size: in elements
        1,  # x_stride
        0, 0,  # x_pad_before, y_pad_before
        0, 0,  # x_pad_after, y_pad_after
        0,  # dst_sram_index
        3,  # dst_memory_type: acc
    )
    tvm_ffi.get_global_func("synchronize")(cmd, 1 << 20)
except (ValueError, TypeError, RuntimeError) as e:
    print("FFI error:", e)

# 3) what arrived, and the function's metadata
print(np.from_dlpack(vta_ffi.scratchpad_read(cmd, 3, 0, 1)))
print("load_2d metadata:", tvm_ffi.get_global_func_metadata("load_2d"))
