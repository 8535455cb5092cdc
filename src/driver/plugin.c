/* SPDX-License-Identifier: Apache-2.0 */
/* Operator libraries: shared objects that register rows from outside the tree. */
#include "driver/plugin.h"

#include "lathe/op.h"

#include <dlfcn.h>
#include <string.h>

typedef bool (*register_fn)(compiler *c, int api);

bool plugin_load_ops(compiler *c, const char *path)
{
    src_loc at = src_loc_none();
    at.file = path;
    const char *file =
        strchr(path, '/') ? path : arena_printf(&c->mem, "./%s", path); /* never a search through the system */
    span bytes;
    if (!compiler_read_file(c, file, &bytes)) /* dlopen would wait for a pipe */
        return false;
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, at, "cannot be loaded: %s", dlerror());
    void *symbol = dlsym(lib, "lathe_register_ops");
    register_fn fn = NULL;
    memcpy(&fn, &symbol, sizeof fn); /* ISO C has no cast from an object pointer to a function pointer */
    uint32_t before = c->diags.errors;
    if (!fn || !fn(c, LATHE_OP_API)) {
        if (c->diags.errors == before)
            diag_error(&c->diags, DIAG_USAGE, at,
                       fn ? "refuses operator API %d" : "is not an operator library (API %d)", LATHE_OP_API);
        return false;
    }
    return true;
}
