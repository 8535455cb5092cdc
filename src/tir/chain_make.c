/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a chain: the last kernel's loop over lines, in it those of the kernels that it drives, each as far as
 * the line at hand wants, and so on inwards. Values between them become buffers of a few lines. */
#include "tir/chain_make.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/walk.h"

#include <string.h>

typedef struct maker {
    compiler *c;
    const tir_chain *x;
    const tir_buffer **buffers; /* of each value that lives inside */
    const tir_link *link;       /* whose statements are rewritten */
} maker;

/* --- accesses --- */

/* The element's place in its line. */
static tir_expr_ref in_line(compiler *c, const tir_buffer *b, int32_t axis, tir_expr_ref const *idx)
{
    tir_expr_ref at = tir_i64(c, 0);
    for (uint32_t i = (uint32_t)axis + 1; i < b->rank; i++)
        at = tir_add(c, tir_mul(c, at, b->shape[i]), idx[i]);
    return at;
}

static tir_expr_ref slot(compiler *c, const tir_chain_value *v, tir_expr_ref line)
{
    if (v->param || v->kept >= v->lines)
        return line;
    return v->kept == 1 ? tir_i64(c, 0) : tir_floormod(c, line, tir_i64(c, v->kept));
}

/* The buffer and the indices for an access of the link at hand; NULL: it stays. */
static const tir_buffer *moved(maker *k, const tir_buffer *b, uint32_t *n, tir_expr_ref const **idx)
{
    const tir_func *f = k->link->lines->f;
    compiler *c = k->c;
    uint32_t p = 0;
    while (p < f->n_params && f->params[p] != b)
        p++;
    if (p == f->n_params)
        return NULL;
    const tir_chain_value *v = &k->x->values.data[k->link->value[p]];
    const tir_buffer *to = v->param ? v->param : k->buffers[k->link->value[p]];
    const int32_t axis = k->link->lines->axis[p];
    if (v->writer == UINT32_MAX || axis == LINES_NO_AXIS || (v->param && chain_same_shape(b, to)))
        return to;
    tir_expr_ref *at = arena_array(&c->mem, tir_expr_ref, b->rank + 2u), line = slot(c, v, (*idx)[axis]);
    if (!chain_is_contiguous(b, axis)) {
        memcpy(at, *idx, *n * sizeof *at);
        at[axis] = line;
    } else {
        int64_t pitch = tir_buffer_count(b) / v->lines;
        at[0] = line;
        at[1] = in_line(c, b, axis, *idx);
        *n = v->param ? 1 : 2;
        if (v->param)
            at[0] = tir_add(c, tir_mul(c, line, tir_i64(c, pitch)), at[1]);
    }
    *idx = at;
    return to;
}

static tir_expr_ref move_access(tir_rewriter *r, tir_expr_ref e)
{
    tir_expr_ref const *idx = e->args;
    uint32_t n = e->n_args;
    const tir_buffer *b = tir_is_access(e) ? moved(r->ctx, e->u.buffer, &n, &idx) : NULL;
    return b ? tir_node_access(r->c, e, b, n, idx) : e;
}

static tir_stmt *move_store(tir_rewriter *r, tir_stmt *s)
{
    tir_expr_ref const *idx = s->indices;
    uint32_t n = s->n_indices;
    const tir_buffer *b = s->kind == TIR_STORE ? moved(r->ctx, s->buffer, &n, &idx) : NULL;
    return b ? tir_store(r->c, b, n, idx, s->value) : s;
}

static tir_stmt *rewritten(maker *k, const tir_link *link, tir_stmt *s)
{
    tir_rewriter r = {.c = k->c, .ctx = k, .expr = move_access, .stmt = move_store};
    k->link = link;
    return tir_rewrite_stmt(&r, s);
}

/* --- buffers --- */

static void make_buffers(maker *k)
{
    compiler *c = k->c;
    k->buffers = arena_array(&c->mem, const tir_buffer *, k->x->values.len);
    for (uint32_t i = 0; i < k->x->values.len; i++) {
        const tir_chain_value *v = &k->x->values.data[i];
        if (v->param)
            continue;
        const tir_link *w = &k->x->links.data[v->writer];
        const uint32_t p = chain_written(k->x, i);
        const tir_buffer *b = w->lines->f->params[p];
        const int32_t axis = w->lines->axis[p];
        const int64_t kept = v->kept < v->lines ? v->kept : v->lines;
        tir_expr_ref *dims = arena_array(&c->mem, tir_expr_ref, b->rank + 2u);
        uint32_t rank = b->rank;
        if (chain_is_contiguous(b, axis)) {
            rank = 2;
            dims[0] = tir_i64(c, kept);
            dims[1] = tir_i64(c, tir_buffer_count(b) / v->lines);
        } else {
            memcpy(dims, b->shape, rank * sizeof *dims);
            dims[axis] = tir_i64(c, kept);
        }
        k->buffers[i] = tir_new_buffer(c, arena_printf(&c->mem, "%s_lines", b->name), b->dt, rank, dims, SCOPE_GLOBAL);
    }
}

/* --- loops --- */

static tir_stmt *line_of(maker *k, uint32_t link);

/* Those lines of the link that its driver wants before its line y and that are not there yet. */
static tir_stmt *demanded(maker *k, uint32_t link)
{
    compiler *c = k->c;
    const tir_lines *l = k->x->links.data[link].lines;
    tir_expr_ref y = tir_varref(c, k->x->links.data[k->x->links.data[link].driver].lines->loop->var);
    int64_t step = 0, first = 0;
    (void)chain_demand(k->x, link, &step, &first);
    tir_expr_ref all = tir_i64(c, l->n), zero = tir_i64(c, 0);
    tir_expr_ref end = tir_add(c, tir_mul(c, y, tir_i64(c, step)), tir_i64(c, first + 1));
    tir_expr_ref begin = tir_sub(c, end, tir_i64(c, step));
    end = tir_max(c, tir_min(c, end, all), zero);
    begin = first + 1 < step ? tir_max(c, tir_min(c, begin, all), zero) : tir_min(c, begin, all);
    if (first + 1 > step) /* else it is 0 for line 0 */
        begin = tir_select(c, tir_binary(c, TIR_EQ, y, zero), zero, begin);
    return tir_attr(c, l->loop->var->name, "pragma_whole", tir_i64(c, 1),
                    tir_for(c, l->loop->var, begin, tir_sub(c, end, begin), FOR_SERIAL, line_of(k, link)));
}

/* What makes one line of the link. */
static tir_stmt *line_of(maker *k, uint32_t link)
{
    const tir_chain *x = k->x;
    tir_stmt **parts = arena_array(&k->c->mem, tir_stmt *, x->links.len + 1u);
    uint32_t n = 0;
    for (uint32_t o = 0; o < x->links.len; o++)
        if (x->order[o] != link && x->links.data[x->order[o]].driver == link)
            parts[n++] = demanded(k, x->order[o]);
    parts[n++] = rewritten(k, &x->links.data[link], x->links.data[link].lines->loop->body);
    return tir_seq(k->c, n, parts);
}

static bool holds(const tir_stmt *s, const tir_stmt *loop)
{
    bool found = s == loop || (s->body && holds(s->body, loop)) || (s->orelse && holds(s->orelse, loop));
    for (uint32_t i = 0; i < s->n_stmts && !found; i++)
        found = holds(s->stmts[i], loop);
    return found;
}

/* What stands around the link's loop, with `inner` in its place. */
static tir_stmt *around(maker *k, const tir_link *link, tir_stmt *s, tir_stmt *inner)
{
    compiler *c = k->c;
    const tir_stmt *loop = link->lines->loop;
    if (s == loop)
        return inner;
    if (s->kind == TIR_ATTR && strncmp(s->key, "pragma_", 7) == 0) /* of the loop that goes */
        return around(k, link, s->body, inner);
    if (s->kind == TIR_ALLOCATE || s->kind == TIR_ATTR) {
        struct tir_stmt *copy = tir_node_copy(c, s);
        copy->body = around(k, link, s->body, inner);
        return copy;
    }
    tir_stmt **parts = arena_array(&c->mem, tir_stmt *, s->n_stmts);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        parts[i] = holds(s->stmts[i], loop) ? around(k, link, s->stmts[i], inner)
                                                : rewritten(k, link, s->stmts[i]);
    return tir_seq(c, s->n_stmts, parts);
}

tir_func *tir_chain_make(compiler *c, const tir_chain *x, const char *name, uint32_t n_params,
                         const tir_buffer *const *params, uint32_t n_inputs)
{
    maker k = {.c = c, .x = x};
    const tir_lines *last = x->links.data[x->links.len - 1].lines;
    tir_func *f = arena_new(&c->mem, tir_func);
    make_buffers(&k);
    *f = (tir_func){.name = name, .params = params, .n_params = n_params, .n_inputs = n_inputs};
    f->index_type = DT_I64;
    f->loc = last->f->loc;
    f->target = last->f->target;
    tir_stmt *s = tir_for(c, last->loop->var, tir_i64(c, 0), last->loop->extent, FOR_SERIAL,
                          line_of(&k, x->links.len - 1));
    s = tir_attr(c, last->loop->var->name, "pragma_whole", tir_i64(c, 1), s);
    for (uint32_t i = x->links.len; i-- > 0;) {
        s = around(&k, &x->links.data[i], x->links.data[i].lines->f->body, s);
        f->macs += x->links.data[i].lines->f->macs;
    }
    for (uint32_t i = x->values.len; i-- > 0;)
        if (!x->values.data[i].param)
            s = tir_allocate(c, k.buffers[i], s);
    f->body = s;
    return f;
}
