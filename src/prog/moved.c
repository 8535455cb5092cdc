/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of regions in the order that a code generator wants, in place of the model's order. No constant is in a
 * package twice, and the meaning of the kernel stays. */
#include "prog/source.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/walk.h"

typedef struct exchange {
    const tir_buffer *from, *to;
} exchange;

static tir_expr_ref exchange_access(tir_rewriter *r, tir_expr_ref e)
{
    const exchange *x = r->ctx;
    return tir_is_access(e) && e->u.buffer == x->from ? tir_node_access(r->c, e, x->to, e->n_args, e->args) : e;
}

static void move_plain(compiler *c, tir_func *f, const prog_moved *v)
{
    const uint32_t at = f->n_symbols + v->param;
    const tir_buffer *from = f->params[at];
    tir_expr_ref *strides = arena_array(&c->mem, tir_expr_ref, from->rank + 1u);
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, f->n_params + 1u);
    tir_buffer *to = arena_new(&c->mem, tir_buffer);
    for (uint32_t i = 0; i < from->rank; i++)
        strides[i] = tir_i64(c, v->strides[i]);
    *to = *from;
    to->strides = strides;
    to->id = c->next_id++;
    exchange x = {from, to};
    tir_rewriter r = {.c = c, .ctx = &x, .expr = exchange_access};
    f->body = tir_rewrite_stmt(&r, f->body);
    for (uint32_t i = 0; i < f->n_params; i++)
        params[i] = i == at ? to : f->params[i];
    f->params = params;
}

static void move_operand(prog_module *m, prog_func *f, prog_step *s, const prog_moved *v)
{
    const uint32_t old = s->args[v->param];
    prog_value value = f->values.data[old];
    value.name = arena_printf(&m->c->mem, "%s_moved_%u", value.name, f->values.len);
    value.data = v->data;
    s->args[v->param] = prog_add_value(m, f, value);
}

void prog_move_constants(compiler *c, prog_module *m, prog_kernel *k, const prog_region *r)
{
    prog_walk w;
    for (uint32_t n = 0; n < r->moved.len; n++) {
        if (k->plain)
            move_plain(c, k->plain, &r->moved.data[n]);
        for (uint32_t i = 0; i < m->funcs.len; i++)
            for (prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w))
                if (s->kernel == k)
                    move_operand(m, m->funcs.data[i], s, &r->moved.data[n]);
    }
}
