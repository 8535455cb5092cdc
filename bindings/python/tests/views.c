/* SPDX-License-Identifier: Apache-2.0 */
/* What only C can pass: tensor views that nobody owns, and device memory seen as a tensor. `views LIBRARY`, with
 * libtvm_ffi linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

static int failed;

static TVMFFIAny integer(int64_t v)
{
    TVMFFIAny a = {0};
    a.type_index = kTVMFFIInt;
    a.v_int64 = v;
    return a;
}

static TVMFFIAny view(const DLTensor *t)
{
    TVMFFIAny a = {0};
    a.type_index = kTVMFFIDLTensorPtr;
    a.v_ptr = (void *)t;
    return a;
}

/* Calls a global function; what it raises lands in `raised` as "Kind: message". */
static TVMFFIAny call(const char *name, TVMFFIAny *args, int32_t n, char *raised, size_t size)
{
    TVMFFIByteArray key = {name, strlen(name)};
    TVMFFIObjectHandle f = NULL, e = NULL;
    TVMFFIAny result = {0};
    raised[0] = '\0';
    if (TVMFFIFunctionGetGlobal(&key, &f) != 0 || !f) {
        fprintf(stderr, "there is no global function %s\n", name);
        exit(1);
    }
    if (TVMFFIFunctionCall(f, args, n, &result) != 0) {
        TVMFFIErrorMoveFromRaised(&e);
        const TVMFFIErrorCell *cell = (const TVMFFIErrorCell *)((char *)e + sizeof(TVMFFIObject));
        snprintf(raised, size, "%.*s: %.*s", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
                 cell->message.data);
        TVMFFIObjectDecRef(e);
    }
    TVMFFIObjectDecRef(f);
    return result;
}

/* `raised` must hold both texts; NULL: must be empty. */
static void expect(const char *what, const char *raised, const char *kind, const char *text)
{
    if (kind ? strstr(raised, kind) == raised && strstr(raised, text) != NULL : raised[0] == '\0')
        return;
    failed = 1;
    fprintf(stderr, "%s: raised \"%s\", expected \"%s ... %s\"\n", what, raised, kind ? kind : "", text ? text : "");
}

static void load(TVMFFIAny cmd, const DLTensor *t, char *raised, size_t size)
{
    TVMFFIAny args[12] = {cmd,        view(t),    integer(0), integer(1), integer(1), integer(1),
                          integer(0), integer(0), integer(0), integer(0), integer(0), integer(3)};
    (void)call("load_2d", args, 12, raised, size);
}

/* Element 0 of the accumulator equals 16 times `value`. */
static void expect_lanes(const char *what, TVMFFIAny cmd, int32_t value)
{
    char raised[512];
    TVMFFIAny sync[2] = {cmd, integer(1 << 20)}, read[4] = {cmd, integer(3), integer(0), integer(1)};
    (void)call("synchronize", sync, 2, raised, sizeof raised);
    expect(what, raised, NULL, NULL);
    TVMFFIAny back = call("scratchpad_read", read, 4, raised, sizeof raised);
    expect(what, raised, NULL, NULL);
    if (raised[0])
        return;
    const DLTensor *got = (const DLTensor *)((char *)back.v_obj + sizeof(TVMFFIObject));
    for (int32_t i = 0; i < 16; i++) {
        if (((const int32_t *)got->data)[i] != value) {
            failed = 1;
            fprintf(stderr, "%s: lane %d is %d, expected %d\n", what, i, ((const int32_t *)got->data)[i], value);
        }
    }
    TVMFFIObjectDecRef(back.v_obj);
}

static void test_borrowed_view(TVMFFIAny cmd, DLTensor *t, int32_t *lanes)
{
    char raised[512];
    for (int32_t i = 0; i < 16; i++)
        lanes[i] = 5;
    load(cmd, t, raised, sizeof raised);
    expect("load of a view", raised, NULL, NULL);
    for (int32_t i = 0; i < 16; i++)
        lanes[i] = 6; /* the view was copied at the call */
    expect_lanes("load of a view", cmd, 5);
    DLTensor bytes = *t;
    bytes.dtype.bits = 8;
    TVMFFIAny store[8] = {cmd, integer(0), integer(4), view(&bytes), integer(0), integer(1), integer(1), integer(1)};
    (void)call("store_2d", store, 8, raised, sizeof raised);
    expect("store into a view", raised, "ValueError", "borrowed view");
}

static void test_devices(TVMFFIAny cmd, DLTensor *t, int32_t *lanes)
{
    char raised[512];
    DLTensor other = *t;
    other.device.device_type = kDLCUDA;
    load(cmd, &other, raised, sizeof raised);
    expect("view of another device", raised, "ValueError", "device type 2");

    TVMFFIAny size = integer(64), buffer = call("buffer_alloc", &size, 1, raised, sizeof raised);
    expect("buffer_alloc", raised, NULL, NULL);
    for (int32_t i = 0; i < 16; i++)
        lanes[i] = 7;
    TVMFFIAny copy[6] = {view(t), integer(0), buffer, integer(0), integer(64), integer(1)};
    (void)call("buffer_copy", copy, 6, raised, sizeof raised);
    expect("buffer_copy", raised, NULL, NULL);
    DLTensor on_device = *t;
    on_device.device.device_type = kDLExtDev;
    on_device.data = (void *)(intptr_t)buffer.v_int64;
    load(cmd, &on_device, raised, sizeof raised);
    expect("load of device memory", raised, NULL, NULL);
    expect_lanes("load of device memory", cmd, 7);
    on_device.byte_offset = 64;
    load(cmd, &on_device, raised, sizeof raised);
    expect("device memory with an offset", raised, "ValueError", "64 bytes into its buffer");
    on_device.byte_offset = 0;
    TVMFFIAny freed = view(&on_device);
    (void)call("buffer_free", &freed, 1, raised, sizeof raised);
    expect("buffer_free of device memory", raised, NULL, NULL);
    load(cmd, &on_device, raised, sizeof raised);
    expect("device memory that was freed", raised, "ValueError", "not a buffer");
}

int main(int argc, char **argv)
{
    char raised[512];
    int32_t lanes[16];
    int64_t shape[1] = {16};
    if (argc != 2) {
        fprintf(stderr, "usage: views LIBRARY\n");
        return 2;
    }
    TVMFFIAny path = {0};
    path.type_index = kTVMFFIRawStr;
    path.v_c_str = argv[1];
    TVMFFIAny library = call("ffi.ModuleLoadFromFile", &path, 1, raised, sizeof raised);
    expect("loading", raised, NULL, NULL);
    TVMFFIAny cmd = call("command_handle", NULL, 0, raised, sizeof raised);
    expect("command_handle", raised, NULL, NULL);
    DLTensor t;
    memset(&t, 0, sizeof t);
    t.data = lanes;
    t.device.device_type = kDLCPU;
    t.ndim = 1;
    t.dtype.code = kDLInt;
    t.dtype.bits = 32;
    t.dtype.lanes = 1;
    t.shape = shape;
    test_borrowed_view(cmd, &t, lanes);
    test_devices(cmd, &t, lanes);
    TVMFFIAny all = {0};
    (void)call("shutdown", &all, 0, raised, sizeof raised);
    expect("shutdown", raised, NULL, NULL);
    TVMFFIObjectDecRef(library.v_obj);
    return failed;
}
