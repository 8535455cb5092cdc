/* SPDX-License-Identifier: Apache-2.0 */
/* Models: the bytes, which every compile reads anew with its own options, and what the inputs and outputs are. */
#include "api/objects.h"

#include "driver/format.h"

#include <stdlib.h>
#include <string.h>

typedef struct read_args {
    lathe_model *made;
    const char *path;
    const void *bytes; /* NULL: those of the file */
    size_t size;
} read_args;

void model_give(compiler *c, const lathe_model *m)
{
    compiler_give_file(c, m->path, m->bytes, m->id);
}

static bool take_bytes(home *h, const read_args *a)
{
    lathe_model *m = a->made;
    m->path = arena_strdup(&h->c.mem, a->path);
    m->is_file = a->bytes == NULL;
    if (m->is_file)
        return file_read(&h->c.diags, a->path, &m->bytes, &m->id);
    uint8_t *copy = malloc(a->size + 1);
    m->bytes = (span){copy, copy ? a->size : 0};
    if (!copy)
        return diag_error(&h->c.diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'", a->size,
                          a->path);
    memcpy(copy, a->bytes, a->size);
    return true;
}

/* States are no business of the caller. */
static tensor_infos infos_of_ends(compiler *c, const graph_func *f, bool inputs)
{
    const uint32_t n = inputs ? f->params.len : f->results.len;
    graph_value *const *all = inputs ? f->params.data : f->results.data;
    graph_value **list = arena_array(&c->mem, graph_value *, n + 1u);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!(inputs ? graph_state_of_param(f, i) : graph_state_of_result(f, i)))
            list[seen++] = all[i];
    return infos_of_values(c, f->module, inputs, list, seen);
}

/* The graph as it stands: its outputs, where it can be read without options. What is wrong is told by the compile. */
static void find_ends(compiler *c, home *h, lathe_model *m)
{
    compile_options o;
    graph_module *g;
    compile_options_init(&o);
    compile_set_emit(&o, EMIT_GRAPH); /* open dimensions stay */
    const diags_mark mark = diags_get_mark(&c->diags);
    const graph_func *f = NULL;
    if (pipeline_load(c, m->path, &o, &g)) {
        f = graph_module_find(g, "main");
        if (f)
            m->outputs = infos_of_ends(&h->c, f, false);
    } else {
        diags_reset(&c->diags, mark);
        if (pipeline_load_inputs(c, m->path, &o, &g))
            f = graph_module_find(g, "main");
    }
    diags_reset(&c->diags, mark);
    if (f)
        m->inputs = infos_of_ends(&h->c, f, true);
}

static bool read_model(lathe_context *x, home *h, void *args)
{
    const read_args *a = args;
    compile_options o;
    bool is_computation;
    compile_options_init(&o);
    if (!take_bytes(h, a))
        return false;
    compiler *brief = border_begin_brief(x, h);
    model_give(brief, a->made);
    if (!pipeline_is_computation(brief, a->made->path, &o, &is_computation))
        return false;
    if (!is_computation)
        find_ends(brief, h, a->made);
    return !brief->cancelled;
}

static int32_t read_into(lathe_context *x, read_args *a, lathe_model **out)
{
    *out = NULL;
    a->made = calloc(1, sizeof *a->made);
    if (!a->made)
        return LATHE_BAD_ENVIRONMENT;
    border_init_home(&a->made->at);
    const int32_t outcome = border_call(x, &a->made->at, read_model, a);
    if (outcome == LATHE_DONE)
        *out = a->made;
    else
        lathe_model_free(a->made);
    return outcome;
}

int32_t lathe_read(lathe_context *x, const char *path, lathe_model **out)
{
    *out = NULL;
    return path ? read_into(x, &(read_args){.path = path}, out) : border_refuse_missing(x, "path");
}

int32_t lathe_read_bytes(lathe_context *x, const void *bytes, size_t size, const char *name, lathe_model **out)
{
    *out = NULL;
    if (!bytes && size > 0)
        return border_refuse_missing(x, "bytes");
    return read_into(x, &(read_args){.path = name ? name : "model", .bytes = bytes ? bytes : "", .size = size}, out);
}

void lathe_model_free(lathe_model *m)
{
    if (!m)
        return;
    if (m->is_file)
        file_free(m->bytes);
    else
        free((void *)(uintptr_t)m->bytes.data);
    border_free_home(&m->at);
    free(m);
}

const lathe_tensor_info *lathe_model_input(const lathe_model *m, uint32_t index)
{
    return m ? infos_at(&m->inputs, index) : NULL;
}

const lathe_tensor_info *lathe_model_output(const lathe_model *m, uint32_t index)
{
    return m ? infos_at(&m->outputs, index) : NULL;
}
