/* targets.c: the devices that a machine was initialised for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "machine.h"

#include <inttypes.h>

int32_t vm_machine_target(vm_machine *m, int64_t index, vm_target *out, lathe_error *error)
{
    if (index < -1 || index >= m->target_count)
        return vm_fail(error, LATHE_E_FORMAT, "device %" PRId64 " of %u that the machine was initialized for", index,
                       m->target_count);
    *out = m->targets[index < 0 ? m->target_count - 1 : (uint32_t)index];
    return LATHE_OK;
}

vm_allocator *vm_machine_host(vm_machine *m)
{
    return m->targets[m->target_count - 1].allocator;
}

vm_allocator *vm_machine_allocator(vm_machine *m, lathe_device device)
{
    for (uint32_t i = 0; i < m->target_count; i++)
        if (m->targets[i].device.type == device.type && m->targets[i].device.id == device.id)
            return m->targets[i].allocator;
    return NULL;
}
