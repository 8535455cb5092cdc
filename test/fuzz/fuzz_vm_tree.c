/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tree of modules, as a source module, and as a file of constants: the first byte chooses. */
#include "container.h"
#include "module_kinds.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lathe_runtime *rt;
    vm_container c;
    vm_module *m = NULL;
    lathe_error e = {0};
    if (size == 0 || lathe_runtime_create(NULL, &rt, NULL) != LATHE_OK)
        return 0;
    vm_bytes rest = {data + 1, size - 1};
    int32_t status;
    if (data[0] % 3 == 0) {
        status = vm_container_read(rest, &c, &e);
        if (status == LATHE_OK)
            vm_container_free(&c);
    } else {
        status = data[0] % 3 == 1 ? vm_source_module(rt, NULL, rest, &m, &e)
                                  : vm_constants_module(rt, NULL, rest, &m, &e);
        if (status == LATHE_OK)
            vm_object_release(&m->head);
    }
    if (status != LATHE_OK && (e.code != status || e.message[0] == 0))
        abort();
    lathe_runtime_destroy(rt);
    return 0;
}
