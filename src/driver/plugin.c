/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries from outside the tree: shared objects that register operators, or code generators. */
#define _GNU_SOURCE /* dladdr, RTLD_NOLOAD */
#define LATHE_INSIDE
#include "driver/plugin.h"

#include "lathe/codegen.h"
#include "lathe/op.h"

#include <dlfcn.h>
#include <string.h>

typedef bool (*register_fn)(compiler *c, int api);

/* What is loaded finds the compiler's functions by name. Where the compiler is in a library that was itself loaded
 * privately, as Python does, it is loaded once more for that; its names all begin with lathe_. */
static void show_own_names(void)
{
    Dl_info info;
    void *address;
    bool (*own)(compiler *, const char *) = plugin_load_ops;
    memcpy(&address, &own, sizeof address);
    if (dladdr(address, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static bool cannot_load(compiler *c, src_loc at, const char *why)
{
    diag_error(&c->diags, DIAG_ENVIRONMENT, at, "cannot be loaded: %s", why);
    if (strstr(why, "undefined symbol"))
        diag_hint(&c->diags, "build it with the headers of this version of Lathe; if your program is linked with "
                             "liblathe.a, link it with -rdynamic");
    else
        diag_hint(&c->diags, "a shared object (.so) for this machine is needed: docs/tutorials/add-an-op.md builds "
                             "one");
    return false;
}

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
    show_own_names();
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return cannot_load(c, at, dlerror());
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
