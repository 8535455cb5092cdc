/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded runtime's files of a package. Its header lies with the public ones, because programs use it, and can be
 * found from src/ as well. */
#include "codegen/embedded.h"
#include "codegen/c/package.h"
#include "prog/source.h"

#include <string.h>

/* The runtime's header with the macros that this port asks for, so that a build which says nothing is right. */
static span with_settings(const package *p, const struct embedded_file *f)
{
    static const char guard[] = "#define TVMRT_H\n";
    const char *text = (const char *)f->data, *at = strstr(text, guard) + sizeof guard - 1;
    const package_port *o = p->u->port;
    const uint32_t workers = port_usual_workers(o, p->u->target->workers);
    writer w;
    writer_init(&w, &p->c->mem);
    if (o->system == PORT_HOSTED)
        return (span){f->data, f->size};
    w_fmt(&w, "%.*s\n/* ---- Of packages for %s ---- */\n\n", (int)(at - text), text, o->name);
    if (*o->macro)
        w_fmt(&w, "#ifndef %s\n#define %s 1\n#endif\n", o->macro, o->macro);
    w_fmt(&w, "#ifndef TVMRT_NUM_WORKERS\n#define TVMRT_NUM_WORKERS %u\n#endif\n%s", workers, at);
    return (span){(const uint8_t *)w.data, w.len};
}

static void add(const package *p, artifact *out, const char *path, const void *data, size_t size)
{
    vec_push(&p->c->mem, &out->files, ((artifact_file){path, data, size, false}));
}

bool runtime_add(const package *p, artifact *out)
{
    static const char forward[] = "/* tvmrt.h lies with the headers that programs use.\n"
                                  " * SPDX-License-Identifier: Apache-2.0 */\n#include \"../include/tvmrt.h\"\n";
    const uint32_t wanted = p->u->port->system == PORT_BARE ? 4 : 5;
    uint32_t found = 0;
    for (const struct embedded_file *f = lathe_embedded_files; f->name; f++) {
        const bool header = strcmp(f->name, "tvmrt.h") == 0;
        const bool blocking = p->u->port->system != PORT_BARE && strcmp(f->name, "tvmrt_port_blocking.h") == 0;
        if (!header && !blocking && strcmp(f->name, p->u->port->file) != 0 && strcmp(f->name, "tvmrt.c") != 0 &&
            strcmp(f->name, "tvmrt_port_common.h") != 0)
            continue;
        found++;
        const span text = header ? with_settings(p, f) : (span){f->data, f->size};
        add(p, out, arena_printf(&p->c->mem, "%s/%s", header ? "include" : "src", f->name), text.data, text.len);
    }
    add(p, out, "src/tvmrt.h", forward, sizeof forward - 1);
    return found == wanted || diag_error(&p->c->diags, DIAG_INTERNAL, src_loc_none(),
                                    "'%s' is not an embedded file", p->u->port->file);
}

bool runtime_add_files(const package *p, const prog_source *s, artifact *out)
{
    for (uint32_t i = 0; i < s->n_files; i++) {
        const struct embedded_file *f = embedded_find(s->files[i].name);
        const char *object = package_file_object(p, s, i);
        if (!f)
            return diag_error(&p->c->diags, DIAG_INTERNAL, src_loc_none(), "'%s' is not an embedded file",
                              s->files[i].name);
        add(p, out, package_file(p, s, i), f->data, f->size);
        if (object)
            vec_push(&p->c->mem, &out->made, object);
    }
    return true;
}
