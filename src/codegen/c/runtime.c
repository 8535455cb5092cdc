/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded runtime's files of a package. Its header lies with the public ones, because programs use it, and can be
 * found from src/ as well. */
#include "codegen/c/embedded.h"
#include "codegen/c/package.h"

#include <string.h>

static void add(const package *p, artifact *out, const char *path, const void *data, size_t size)
{
    vec_push(&p->c->mem, &out->files, ((artifact_file){path, data, size, false}));
}

bool runtime_add(const package *p, artifact *out)
{
    static const char forward[] = "/* tvmrt.h lies with the headers that programs use.\n"
                                  " * SPDX-License-Identifier: Apache-2.0 */\n#include \"../include/tvmrt.h\"\n";
    const char *port = arena_printf(&p->c->mem, "tvmrt_port_%s.c", p->u->port);
    uint32_t found = 0;
    for (const struct embedded_file *f = lathe_embedded_files; f->name; f++) {
        bool header = strcmp(f->name, "tvmrt.h") == 0;
        if (!header && strcmp(f->name, port) != 0 && strcmp(f->name, "tvmrt.c") != 0)
            continue;
        found++;
        add(p, out, arena_printf(&p->c->mem, "%s/%s", header ? "include" : "src", f->name), f->data, f->size);
    }
    add(p, out, "src/tvmrt.h", forward, sizeof forward - 1);
    return found == 3 ||
           diag_error(&p->c->diags, DIAG_USAGE, src_loc_none(), "there is no runtime port '%s'", p->u->port);
}
