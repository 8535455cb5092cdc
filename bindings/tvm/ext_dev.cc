/* ext_dev.cc: the VTA as device ext_dev of Apache TVM: its device table has a C++ class for each device, so this one
 * file is C++, and is compiled against the headers of the TVM that loads it (its C interface has no such table). Over
 * libvta's own table, vta_ext_dev_api(), on the default device of the process. Loaded by
 * ctypes.CDLL(FILE, RTLD_GLOBAL) behind `import tvm`, or `tvm.exec.rpc_server --load-library FILE`; objects that are
 * loaded later find the VTA* functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include "vta_runtime.h"

namespace {

using tvm::runtime::DeviceAttrKind;

vta_context *context()
{
    vta_error e = {VTA_OK, ""};
    vta_context *c = nullptr;
    if (vta_default_context(&c, &e) != VTA_OK)
        TVM_FFI_THROW(RuntimeError) << "VTA: " << e.text;
    return c;
}

void check(vta_context *c, vta_status s)
{
    vta_error e = {s, ""};
    if (s == VTA_OK)
        return;
    if (vta_context_last_error(c, &e) == VTA_OK)
        e.status = s;
    TVM_FFI_THROW(RuntimeError) << "VTA: " << e.text << " (" << vta_status_text(e.status) << ")";
}

class ExtDev final : public tvm::runtime::DeviceAPI {
public:
    void SetDevice(tvm::Device) final {}

    void GetAttr(tvm::Device dev, DeviceAttrKind kind, tvm::ffi::Any *rv) final
    {
        if (kind == tvm::runtime::kExist)
            *rv = dev.device_id == 0 ? vta_ext_dev_api()->exist : 0;
    }

    void *AllocDataSpace(tvm::Device, size_t bytes, size_t alignment, DLDataType) final
    {
        vta_context *c = context();
        void *out = nullptr;
        check(c, vta_ext_dev_api()->alloc(c, bytes ? bytes : 1, alignment, &out));
        return out;
    }

    void FreeDataSpace(tvm::Device, void *data) final
    {
        vta_context *c = context();
        check(c, vta_ext_dev_api()->free(c, data));
    }

    void StreamSync(tvm::Device, TVMStreamHandle) final
    {
        vta_context *c = context();
        check(c, vta_ext_dev_api()->sync(c));
    }

protected:
    void CopyDataFromTo(const void *from, size_t from_offset, void *to, size_t to_offset, size_t bytes,
                        tvm::Device from_device, tvm::Device to_device, DLDataType, TVMStreamHandle) final
    {
        vta_context *c = context();
        const vta_side f = from_device.device_type == kDLExtDev ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
        const vta_side t = to_device.device_type == kDLExtDev ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
        if (bytes > 0)
            check(c, vta_ext_dev_api()->copy(c, from, from_offset, f, to, to_offset, t, bytes));
    }
};

/* What VTA* functions refuse is kept by the context; the next call of the table tells it. */
void keep(const vta_error *, void *) {}

TVM_FFI_STATIC_INIT_BLOCK()
{
    vta_set_error_handler(keep, nullptr);
    tvm::ffi::reflection::GlobalDef().def_packed(
        "device_api.ext_dev", [](tvm::ffi::PackedArgs, tvm::ffi::Any *rv) {
            static ExtDev device;
            *rv = static_cast<void *>(static_cast<tvm::runtime::DeviceAPI *>(&device));
        });
}

} // namespace
