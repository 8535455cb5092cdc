// SPDX-License-Identifier: Apache-2.0
// A C++ caller: loads the library named on the command line, moves a tensor through the accelerator, and reads it back.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <iostream>

using tvm::ffi::Function;

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: caller LIBRARY\n";
        return 2;
    }
    // The linker drops a library that nothing refers to: load it by name.
    tvm::ffi::Module library = tvm::ffi::Module::LoadFromFile(argv[1]);
    int64_t cmd = Function::GetGlobalRequired("command_handle")().cast<int64_t>();

    int32_t data[16];
    for (int32_t i = 0; i < 16; i++)
        data[i] = i * i;
    int64_t shape[2] = {1, 16}, strides[2] = {16, 1};
    DLTensor view{};
    view.data = data;
    view.device = {kDLCPU, 0};
    view.ndim = 2;
    view.dtype = {kDLInt, 32, 1};
    view.shape = shape;
    view.strides = strides;
    Function::GetGlobalRequired("load_2d")(cmd, &view, 0, 1, 1, 1, 0, 0, 0, 0, 5, 3);
    Function::GetGlobalRequired("synchronize")(cmd, 1 << 20);
    auto back = Function::GetGlobalRequired("scratchpad_read")(cmd, 3, 5, 1).cast<tvm::ffi::Tensor>();
    const int32_t *got = static_cast<const int32_t *>(back.data_ptr());
    for (int i = 0; i < 16; i++) {
        if (got[i] != data[i]) {
            std::cerr << "lane " << i << ": " << got[i] << " instead of " << data[i] << "\n";
            return 1;
        }
    }
    std::cout << "16 lanes arrived\n";
    return 0;
}
