/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries from outside the tree: shared objects that register operators, or code generators. */
#include "driver/plugin.h"

#include "lathe/codegen.h"
#include "lathe/op.h"

#include <dlfcn.h>
#include <string.h>

typedef bool (*register_fn)(compiler *c, int api);

/* `what`: "operator library"; its function `name` registers for `api`, "operator API". */
static bool load(compiler *c, const char *path, const char *name, int number, const char *what, const char *api)
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
    void *symbol = dlsym(lib, name);
    register_fn fn = NULL;
    memcpy(&fn, &symbol, sizeof fn); /* ISO C has no cast from an object pointer to a function pointer */
    uint32_t before = c->diags.errors;
    if (fn && fn(c, number))
        return true;
    if (c->diags.errors == before && fn)
        diag_error(&c->diags, DIAG_USAGE, at, "refuses %s %d", api, number);
    else if (c->diags.errors == before)
        diag_error(&c->diags, DIAG_USAGE, at, "is not %s (API %d)", what, number);
    return false;
}

bool plugin_load_ops(compiler *c, const char *path)
{
    return load(c, path, "lathe_register_ops", LATHE_OP_API, "an operator library", "operator API");
}

bool plugin_load_codegen(compiler *c, const char *path)
{
    return load(c, path, "lathe_register_codegen", LATHE_CODEGEN_API, "a library of code generators",
                "code generator API");
}
