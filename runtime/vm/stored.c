/* stored.c: reads a tensor from a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stored.h"

#include "abi/module.h"
#include "error.h"
#include "value.h"

#include <inttypes.h>

static int32_t ends(lathe_error *error)
{
    return vm_fail(error, LATHE_E_FORMAT, "the file ends in it");
}

int32_t vm_stored_read(vm_reader *r, vm_stored *out, lathe_error *error)
{
    size_t bytes;
    uint64_t magic = vm_read_u64(r);
    (void)vm_read_u64(r);
    (void)vm_read_u64(r); /* the device, which stock writers leave at the CPU */
    int32_t rank = vm_read_i32(r);
    out->dtype = vm_read_dtype(r);
    if (!r->ok)
        return ends(error);
    if (magic != MODULE_TENSOR_MAGIC)
        return vm_fail(error, LATHE_E_FORMAT, "it does not begin as a tensor does");
    if (rank < 0 || rank > VM_STORED_RANK)
        return vm_fail(error, LATHE_E_FORMAT, "it has %d dimensions; 0 to %d are possible", rank, VM_STORED_RANK);
    out->rank = (size_t)rank;
    vm_read_words(r, out->dims, out->rank);
    int64_t said = vm_read_i64(r);
    if (!r->ok)
        return ends(error);
    if (out->dtype.code == MODULE_DTYPE_HANDLE || !vm_bytes_of(out->dtype, out->dims, out->rank, &bytes) || said < 0 ||
        (uint64_t)said != bytes)
        return vm_fail(error, LATHE_E_FORMAT, "a tensor of %s%s cannot have %" PRId64 " bytes",
                       vm_dtype_name(out->dtype).text, vm_dims_name(out->dims, out->rank).text, said);
    out->data = vm_read_bytes(r, bytes);
    return r->ok ? LATHE_OK : ends(error);
}
