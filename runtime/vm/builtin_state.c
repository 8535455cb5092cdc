/* builtin_state.c: memory of the machine that keeps its value between calls: the states of a model. A machine has its
 * own, so two machines of one module do not share them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STATES = 65536 };

/* Room for memory number i, and that memory; all new ones are None. */
static int32_t find(vm_machine *m, int64_t number, vm_kept **out, lathe_error *error)
{
    if (number < 0 || number >= MOST_STATES)
        return vm_fail(error, LATHE_E_ARGUMENT, "the number of a state is from 0 to %d", MOST_STATES - 1);
    if ((uint32_t)number >= m->kept_count) {
        const uint32_t count = (uint32_t)number + 1;
        vm_kept *more = realloc(m->kept, count * sizeof *more);
        if (!more)
            return vm_no_memory(error, count * sizeof *more);
        memset(more + m->kept_count, 0, (count - m->kept_count) * sizeof *more);
        m->kept = more;
        m->kept_count = count;
    }
    *out = &m->kept[number];
    return LATHE_OK;
}

/* As many bytes as the memory has: those of a tensor, or zeros. */
static int32_t begin(vm_machine *m, vm_kept *kept, int64_t bytes, const lathe_value *initial, lathe_error *error)
{
    lathe_value whole = {0};
    const lathe_dltensor *from = lathe_tensor_of(initial);
    const lathe_dtype u8 = {MODULE_DTYPE_UINT, 8, 1};
    int32_t status = vm_storage_tensor(&kept->storage, 0, &bytes, 1, u8, &whole, error);
    const lathe_dltensor *to = lathe_tensor_of(&whole);
    if (status == LATHE_OK && from)
        status = vm_tensor_copy_to(&m->module.rt->devices, from, to, error);
    else if (status == LATHE_OK)
        memset(vm_tensor_data(to), 0, (size_t)bytes);
    lathe_release(&whole);
    kept->begun = status == LATHE_OK;
    return status;
}

/* (machine, number, shape of its bytes, what it begins with: a tensor, or None for zeros) -> a storage */
int32_t vm_builtin_state(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    const int64_t *dims;
    int64_t number;
    size_t rank;
    vm_kept *kept = NULL;
    int32_t status = vm_want_count(n, 4, 4, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &number, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, 2, &dims, &rank, error);
    if (status == LATHE_OK && (rank != 1 || dims[0] < 0))
        status = vm_fail(error, LATHE_E_SHAPE, "a state has one dimension, its bytes");
    if (status == LATHE_OK && args[3].type != LATHE_NONE)
        status = vm_want_type(args, 3, LATHE_TENSOR, error);
    if (status == LATHE_OK)
        status = find(m, number, &kept, error);
    if (status == LATHE_OK && kept->storage.type == LATHE_NONE) {
        kept->bytes = dims[0];
        status = vm_storage_new(vm_machine_host(m), (size_t)dims[0], &kept->storage, error);
    }
    if (status == LATHE_OK && kept->bytes != dims[0])
        status = vm_fail(error, LATHE_E_SHAPE, "state %lld has another size than before", (long long)number);
    if (status == LATHE_OK && !kept->begun)
        status = begin(m, kept, dims[0], &args[3], error);
    if (status == LATHE_OK)
        *result = lathe_retain(&kept->storage);
    return status;
}

/* (machine): all states begin anew in the next call */
int32_t vm_builtin_reset(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    (void)args, (void)result;
    for (uint32_t i = 0; i < m->kept_count; i++)
        m->kept[i].begun = false;
    return vm_want_count(n, 1, 1, error);
}
