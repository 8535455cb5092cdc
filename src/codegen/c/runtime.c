/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded runtime's files of a package. Its header lies with the public ones, because programs use it, and can be
 * found from src/ as well. */
#include "codegen/c/embedded.h"
#include "codegen/c/package.h"
#include "prog/source.h"

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

bool runtime_add_files(const package *p, const prog_source *s, artifact *out)
{
    for (uint32_t i = 0; i < s->n_files; i++) {
        const struct embedded_file *f = lathe_embedded_files;
        const char *object = package_file_object(p, s, i);
        while (f->name && strcmp(f->name, s->files[i].name) != 0)
            f++;
        if (!f->name)
            return diag_error(&p->c->diags, DIAG_INTERNAL, src_loc_none(), "'%s' is not among the embedded files",
                              s->files[i].name);
        add(p, out, package_file(p, s, i), f->data, f->size);
        if (object)
            vec_push(&p->c->mem, &out->made, object);
    }
    return true;
}
