/* SPDX-License-Identifier: Apache-2.0 */
/* LowerTE and PrimFuncFor on a graph that was read from text. The pipeline takes the same steps, kernel by kernel: in
 * prog_from_graph (prog/lower.c), and in prog_schedule, which asks a target's hook or te_lower_func
 * (te/from_graph.c). */
#include "driver/stages.h"

#include "prog/prog.h"
#include "te/from_graph.h"
#include "tir/text.h"
#include "type/target.h"

#include <string.h>

/* The border between graph and loops is a call: of a primitive function, or of a region, which becomes a kernel. */
bool stage_lower_te(compiler *c, graph_module *m, const target *t, writer *out)
{
    prog_module *p;
    if (!graph_infer(c, m) || !prog_from_graph(c, m, t, false, &p))
        return false;
    prog_print(out, p);
    return true;
}

static bool lower_one(compiler *c, const graph_func *f, const target *t, tir_func **out)
{
    const char *owner = graph_func_text(f, "compiler");
    const target *own = owner ? target_lookup(c, owner) : NULL;
    *out = NULL;
    if (own && own->lower && !own->lower(c, f, f->name, out))
        return false;
    return *out || te_lower_func(c, f, f->name, t, NULL, out);
}

/* One function after the other: computation, schedule, loops. */
bool stage_prim_func_for(compiler *c, graph_module *m, const target *t, writer *out)
{
    tir_module made = {.c = c};
    if (!graph_infer(c, m))
        return false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const graph_func *f = m->funcs.data[i];
        tir_func *loops;
        if (!graph_is_primitive(f) && !graph_func_text(f, "compiler"))
            continue;
        if (!lower_one(c, f, t, &loops))
            return false;
        vec_push(&c->mem, &made.funcs, loops);
    }
    if (made.funcs.len == 0) {
        (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "PrimFuncFor: no function of the graph is primitive");
        diag_hint(&c->diags, "the pass fuse makes such functions: --passes infer-types,fuse,PrimFuncFor");
        return false;
    }
    tir_print(out, &made);
    return true;
}

static stage_fn find_stage(const char *name, size_t len)
{
#define X(id, text, fn, help)                                     \
    if (strlen(text) == len && strncmp(text, name, len) == 0) \
        return fn;
    STAGES(X)
#undef X
    return NULL;
}

bool stage_take(compiler *c, const char *passes, stage_fn *out, const char **out_rest)
{
    *out = NULL;
    *out_rest = passes;
    for (const char *at = passes; at && *at;) {
        const size_t len = strcspn(at, ",");
        *out = find_stage(at, len);
        if (*out && at[len]) {
            (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "no pass on graphs can follow %.*s", (int)len,
                             at);
            diag_hint(&c->diags, "give its output to another lathe opt");
            return false;
        }
        if (*out)
            *out_rest = arena_strndup(&c->mem, passes, at > passes ? (size_t)(at - passes) - 1 : 0);
        at += len + (at[len] == ',');
    }
    return true;
}
