/* module.cc: source modules of Lathe in a host that knows only tvm-ffi: a module that keeps its kind, shows its C source,
 * can be saved again, and has the functions of what the source was compiled to. Modules of tvm-ffi are C++ classes whose
 * layout may change with each version, so this one file is C++ and a library of its own, liblathe_ffi_module.so:
 * liblathe_ffi opens it where libtvm_ffi is of the version that it was compiled for (loader.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include <tvm/ffi/extra/module.h>

namespace {

namespace ffi = tvm::ffi;

class SourceModule final : public ffi::ModuleObj {
public:
    SourceModule(ffi::Module compiled, ffi::Bytes bytes, ffi::String source)
        : compiled_(compiled), bytes_(bytes), source_(source)
    {
    }

    const char *kind() const final { return "my_device"; }

    int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }

    ffi::Optional<ffi::Function> GetFunction(const ffi::String &name) final { return compiled_->GetFunction(name); }

    ffi::Bytes SaveToBytes() const final { return bytes_; }

    ffi::String InspectSource(const ffi::String &) const final { return source_; }

private:
    ffi::Module compiled_;
    ffi::Bytes bytes_;
    ffi::String source_;
};

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

/* The version of tvm-ffi whose classes these are. */
EXPORT const int32_t lathe_ffi_module_version[3];
const int32_t lathe_ffi_module_version[3] = {TVM_FFI_VERSION_MAJOR, TVM_FFI_VERSION_MINOR, TVM_FFI_VERSION_PATCH};

/* compiled: in, a module with the machine code; out, the source module around it. 0, or -1: raised. */
EXPORT int lathe_ffi_module_wrap(TVMFFIAny *compiled, const char *bytes, size_t n_bytes, const char *source)
{
    TVM_FFI_SAFE_CALL_BEGIN();
    ffi::Any any = ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(compiled);
    ffi::Module module(ffi::make_object<SourceModule>(any.cast<ffi::Module>(), ffi::Bytes(bytes, n_bytes),
                                                      ffi::String(source)));
    *compiled = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(ffi::Any(module));
    TVM_FFI_SAFE_CALL_END();
}
