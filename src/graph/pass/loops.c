/* SPDX-License-Identifier: Apache-2.0 */
/* close-loops: the test that continues a loop becomes nodes. After this pass a loop has no number of rounds. It has
 * only a condition, and the number of the round is the first value that it carries. Before this pass, the type relation
 * computes the number of rows from the number of rounds. These types are kept here. */
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/shape_value.h"

#include <string.h>

typedef struct closing {
    compiler *c;
    graph_func *f, *body;
    graph_node *n;
    bool failed;
} closing;

static graph_value *emit(closing *k, graph_func *f, graph_node *before, const char *op, graph_value *a, graph_value *b)
{
    graph_value *in[2] = {a, b};
    graph_value *v = a && b ? graph_emit(f, before, op, 2, in, 0, NULL, k->n->loc) : NULL;
    k->failed |= !v;
    return v;
}

static graph_value *constant(closing *k, graph_func *f, graph_node *before, const tensor_data *t)
{
    attr value = attr_tensor(k->c, "value", t);
    graph_value *v = graph_emit(f, before, "constant", 0, NULL, 1, &value, k->n->loc);
    k->failed |= !v;
    return v;
}

static graph_value *number(closing *k, graph_func *f, graph_node *before, int64_t n)
{
    return constant(k, f, before, tensor_scalar_i64(k->c, DT_I64, n));
}

static graph_value *truth(closing *k, graph_func *f, graph_node *before, bool yes)
{
    return constant(k, f, before, tensor_scalar_i64(k->c, DT_BOOL, yes));
}

/* As rank 0. */
static graph_value *scalar(closing *k, graph_func *f, graph_node *before, graph_value *v)
{
    if (!v || v->type.shape.rank == 0)
        return v;
    int64_t none = 0;
    return emit(k, f, before, "reshape", v, constant(k, f, before, tensor_from_i64s(k->c, 0, &none)));
}

static bool is_true(const graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    return t && tensor_get_i64(t, 0) != 0;
}

/* A value of the function around the loop as one of the body: a constant is made again, else it is captured. */
static graph_value *inside(closing *k, graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    if (t)
        return constant(k, k->body, NULL, t);
    graph_node *n = k->n;
    graph_value **in = arena_array(&k->c->mem, graph_value *, n->n_inputs + 1u);
    memcpy(in, n->inputs, n->n_inputs * sizeof *in);
    in[n->n_inputs++] = v;
    n->inputs = in;
    return graph_add_param(k->body, v->name, v->type);
}

/* --- the round --- */

/* The body's first parameter becomes the first carried value, behind a new one that nobody reads. */
static void carry_round(closing *k, graph_value *next)
{
    compiler *c = k->c;
    graph_func *b = k->body;
    graph_node *n = k->n;
    graph_value *unused = graph_add_param(b, "round", b->params.data[0]->type);
    memmove(b->params.data + 1, b->params.data, (b->params.len - 1) * sizeof *b->params.data);
    b->params.data[0] = unused;
    for (uint32_t i = 0; i < b->params.len; i++)
        b->params.data[i]->index = i;
    graph_add_result(b, next);
    memmove(b->results.data + 2, b->results.data + 1, (b->results.len - 2) * sizeof *b->results.data);
    b->results.data[1] = next;

    graph_value **in = arena_array(&c->mem, graph_value *, n->n_inputs + 1u),
                **out = arena_array(&c->mem, graph_value *, n->n_outputs + 1u);
    memcpy(in, n->inputs, 2 * sizeof *in);
    in[2] = number(k, k->f, n, 0);
    memcpy(in + 3, n->inputs + 2, (n->n_inputs - 2) * sizeof *in);
    out[0] = arena_new(&c->mem, graph_value);
    *out[0] = (graph_value){.name = graph_new_name(k->f, "round"), .type = unused->type, .def = n};
    memcpy(out + 1, n->outputs, n->n_outputs * sizeof *out);
    n->inputs = in;
    n->n_inputs++;
    n->outputs = out;
    n->n_outputs++;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        n->outputs[i]->index = i;
    graph_set_attr(k->f, n, attr_int(c, "carried", graph_attr_int(n, "carried") + 1));
}

/* The number of rows that the model states is not known to be the number of rounds: the program compares. */
static void check_rows(closing *k, int64_t rows)
{
    const int64_t dims[2] = {1, 1};
    graph_value *in[2] = {k->n->outputs[0], k->n->outputs[0]};
    attr a = attr_tensor(k->c, "rows",
                         tensor_dense(k->c, DT_I64, 2, dims, arena_copy(&k->c->mem, &rows, sizeof rows, 8)));
    uint32_t at = 0;
    while (k->f->nodes.data[at] != k->n)
        at++;
    graph_node *behind = at + 1 < k->f->nodes.len ? k->f->nodes.data[at + 1] : NULL;
    k->failed |= !graph_emit(k->f, behind, "expect", 2, in, 1, &a, k->n->loc);
}

/* Rows whose number is stated, although the loop may end sooner: each number is compared with the rounds. */
static void check_stated_rows(closing *k, uint32_t carried)
{
    int64_t last = -1, rows = -1;
    for (uint32_t i = carried; i < k->n->n_outputs; i++)
        if (dim_is_const(k->n->outputs[i]->type.shape.dims[0], &rows) && rows != last) {
            check_rows(k, rows);
            last = rows;
        }
}

/* What makes a loop of `trips` rounds at most go on: `next` behind a round, `go` before the first one. */
static void count_rounds(closing *k, graph_value *trips, graph_value *after, graph_value **next, graph_value **go)
{
    graph_node *n = k->n;
    trips = scalar(k, k->f, n, trips);
    const tensor_data *t = graph_constant(trips);
    graph_value *more = emit(k, k->body, NULL, "less", after, inside(k, trips)),
                *some = t ? truth(k, k->f, n, tensor_get_i64(t, 0) > 0)
                          : emit(k, k->f, n, "less", number(k, k->f, n, 0), trips);
    *next = is_true(*next) ? more : emit(k, k->body, NULL, "logical_and", more, *next);
    *go = !*go || is_true(*go) ? some : emit(k, k->f, n, "logical_and", some, *go);
}

/* Both conditions may be left out. */
static void make_room(closing *k)
{
    if (k->n->n_inputs >= 2)
        return;
    k->n->inputs = arena_array(&k->c->mem, graph_value *, 2);
    k->n->n_inputs = 2;
}

static void close_loop(closing *k)
{
    graph_node *n = k->n;
    graph_value *trips = n->n_inputs > 0 ? n->inputs[0] : NULL, *go = n->n_inputs > 1 ? n->inputs[1] : NULL,
                *next = k->body->results.data[0], *round = k->body->params.data[0], *after = NULL;
    uint32_t carried = (uint32_t)graph_attr_int(n, "carried");
    bool endless = is_true(next) && (!go || is_true(go)), rows = n->n_outputs > carried;
    if (!trips && endless) {
        k->failed = !diag_error(&k->c->diags, DIAG_UNSUPPORTED, n->loc, "the loop has no end");
        return;
    }
    shape_value known;
    bool counted = trips && endless && graph_shape_value(k->c, trips, &known) && known.at[0],
         counts = trips || rows || graph_count_uses(k->body, round) > 0;
    make_room(k);
    next = scalar(k, k->body, NULL, next);
    if (go)
        go = scalar(k, k->f, n, go);
    if (counts)
        after = emit(k, k->body, NULL, "add", round, number(k, k->body, NULL, 1));
    if (trips)
        count_rounds(k, trips, after, &next, &go);
    k->body->results.data[0] = next;
    n->inputs[0] = NULL;
    n->inputs[1] = go ? go : truth(k, k->f, n, true);
    graph_set_attr(k->f, n, attr_int(k->c, "closed", rows && !counted ? 2 : 1));
    if (k->failed || !counts)
        return;
    carry_round(k, after);
    if (!counted)
        check_stated_rows(k, carried + 1); /* the round is carried, too, by now */
}

bool graph_pass_close_loops(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t j = 0; j < m->funcs.data[i]->nodes.len; j++) {
            closing k = {.c = c, .f = m->funcs.data[i], .n = m->funcs.data[i]->nodes.data[j]};
            if (strcmp(k.n->op->name, "loop") != 0 || graph_attr_int(k.n, "closed") != 0)
                continue;
            k.body = (graph_func *)(uintptr_t)graph_attr(k.n, "body")->u.func;
            close_loop(&k);
            if (k.failed)
                return false;
            while (m->funcs.data[i]->nodes.data[j] != k.n) /* nodes came in front of it */
                j++;
        }
    return true;
}
