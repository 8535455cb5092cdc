/* SPDX-License-Identifier: Apache-2.0 */
/* A C caller of the global functions, with libtvm_ffi linked and the library named on the command line. */
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

static TVMFFIAny integer(int64_t v)
{
    TVMFFIAny a = {0};
    a.type_index = kTVMFFIInt;
    a.v_int64 = v;
    return a;
}

static TVMFFIAny text(const char *s)
{
    TVMFFIAny a = {0};
    a.type_index = kTVMFFIRawStr;
    a.v_c_str = s;
    return a;
}

static int report(const char *name)
{
    TVMFFIObjectHandle e = NULL;
    TVMFFIErrorMoveFromRaised(&e);
    if (e) {
        const TVMFFIErrorCell *cell = (const TVMFFIErrorCell *)((char *)e + sizeof(TVMFFIObject));
        fprintf(stderr, "%s: %.*s\n", name, (int)cell->message.size, cell->message.data);
        TVMFFIObjectDecRef(e);
    }
    return -1;
}

static int call(const char *name, TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    TVMFFIByteArray key = {name, strlen(name)};
    TVMFFIObjectHandle f = NULL;
    TVMFFIAny none = {0};
    if (TVMFFIFunctionGetGlobal(&key, &f) != 0)
        return report(name);
    if (!f) {
        fprintf(stderr, "there is no global function %s\n", name);
        return -1;
    }
    int rc = TVMFFIFunctionCall(f, args, n, result ? result : &none);
    TVMFFIObjectDecRef(f);
    return rc == 0 ? 0 : report(name);
}

int main(int argc, char **argv)
{
    TVMFFIAny library = {0}, cmd = {0}, back = {0};
    int32_t data[16];
    int64_t shape[2] = {1, 16}, strides[2] = {16, 1};
    if (argc != 2) {
        fprintf(stderr, "usage: caller LIBRARY\n");
        return 2;
    }
    for (int32_t i = 0; i < 16; i++)
        data[i] = 100 - i;
    TVMFFIAny path = text(argv[1]);
    if (call("ffi.ModuleLoadFromFile", &path, 1, &library) != 0 || call("command_handle", NULL, 0, &cmd) != 0)
        return 1;
    DLTensor view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.device.device_type = kDLCPU;
    view.ndim = 2;
    view.dtype.code = kDLInt;
    view.dtype.bits = 32;
    view.dtype.lanes = 1;
    view.shape = shape;
    view.strides = strides;
    TVMFFIAny tensor = {0};
    tensor.type_index = kTVMFFIDLTensorPtr;
    tensor.v_ptr = &view;
    TVMFFIAny load[12] = {cmd,        tensor,     integer(0), integer(1), integer(1), integer(1),
                          integer(0), integer(0), integer(0), integer(0), integer(2), integer(3)};
    TVMFFIAny sync[2] = {cmd, integer(1 << 20)}, read[4] = {cmd, integer(3), integer(2), integer(1)};
    if (call("load_2d", load, 12, NULL) != 0 || call("synchronize", sync, 2, NULL) != 0 ||
        call("scratchpad_read", read, 4, &back) != 0)
        return 1;
    const DLTensor *got = (const DLTensor *)((char *)back.v_obj + sizeof(TVMFFIObject));
    int same = memcmp(got->data, data, sizeof data) == 0;
    TVMFFIObjectDecRef(back.v_obj);
    TVMFFIObjectDecRef(library.v_obj);
    printf(same ? "16 lanes arrived\n" : "other numbers arrived\n");
    return same ? 0 : 1;
}
