/* SPDX-License-Identifier: Apache-2.0 */
/* Problems and plans as text: for goldens, for `lathe opt`, for people. */
#include "abi/package.h"
#include "plan/plan.h"
#include "tir/build.h"

#include <string.h>

static const char *const storage_names[] = {
#define X(id, text) [id] = text,
    PLAN_STORAGES(X)
#undef X
};

const char *plan_storage_text(plan_storage s)
{
    return storage_names[s];
}

/* --- out
 * -------------------------------------------------------------------------------------------------------------- */

static void print_value(writer *w, const plan *pl, uint32_t i)
{
    const plan_problem *p = pl->problem;
    const plan_value *v = &p->values.data[i];
    w_fmt(w, "value %s %llu %s%s", v->name, (unsigned long long)v->bytes, plan_storage_text(v->storage),
          v->from_start ? " start" : "");
    if (v->storage == STORE_WORKSPACE || v->storage == STORE_CONSTANT || v->storage == STORE_STATE)
        w_fmt(w, " at %llu", (unsigned long long)pl->places[i].offset);
    if (v->parent >= 0)
        w_fmt(w, " in %s at %llu", p->values.data[v->parent].name, (unsigned long long)v->parent_offset);
    w_str(w, "\n");
}

static void print_op(writer *w, const plan *pl, uint32_t op)
{
    const plan_op *o = &pl->problem->ops.data[op];
    const plan_task *t = &pl->tasks[op];
    plan_idle_cause why;
    const uint32_t idle = plan_idle_workers(pl, op, &why);
    w_fmt(w, "  %s", o->name);
    if (t->parts > 1)
        w_fmt(w, " parts %u", t->parts);
    for (uint32_t k = 0; k < o->n_scratch; k++)
        w_fmt(w, " scratch at %llu", (unsigned long long)t->scratch_offset[k]);
    if (idle > 0)
        w_fmt(w, " idle %u %s", idle, plan_idle_text(why));
    w_str(w, "\n");
}

static void print_steps(writer *w, const plan *pl)
{
    const plan_problem *p = pl->problem;
    for (uint32_t i = 0; i < p->steps.len && p->steps.len > 1; i++) {
        const plan_step *s = &p->steps.data[i];
        w_fmt(w, "step %u ", i);
        switch (s->kind) {
        case PLAN_RUN:
            w_fmt(w, "run layers %u to %u\n", pl->segment_layer[s->to], pl->segment_layer[s->to + 1] - 1);
            break;
        case PLAN_JUMP: w_fmt(w, "jump to %u\n", s->to); break;
        case PLAN_JUMP_IF_ZERO: w_fmt(w, "jump to %u unless %s\n", s->to, p->values.data[s->value].name); break;
        }
    }
}

void plan_print(writer *w, const plan *pl)
{
    const plan_problem *p = pl->problem;
    w_fmt(w, "workspace %llu lower bound %llu constants %llu\n", (unsigned long long)pl->workspace_bytes,
          (unsigned long long)pl->lower_bound_bytes, (unsigned long long)pl->constant_bytes);
    for (uint32_t v = 0; v < p->values.len; v++)
        print_value(w, pl, v);
    for (uint32_t l = 0; l < pl->n_layers; l++) {
        w_fmt(w, "layer %u\n", l);
        for (uint32_t i = 0; i < pl->layer_len[l]; i++)
            print_op(w, pl, pl->layers[l][i]);
    }
    print_steps(w, pl);
}

/* --- in
 * --------------------------------------------------------------------------------------------------------------- */

typedef VEC(uint32_t) u32_list;

#define MOST_DEPTH 64u

typedef struct reader {
    compiler *c;
    lexer l;
    plan_problem *p;
    plan_flow flow;
    uint32_t jumps[MOST_DEPTH]; /* of the blocks around the statement at hand */
    bool loops[MOST_DEPTH], elses[MOST_DEPTH];
    uint32_t depth;
} reader;

static bool read_number(reader *r, uint64_t *out)
{
    if (r->l.tok.kind != TOK_INT || r->l.tok.i < 0)
        return lexer_error(&r->l, "expected a number");
    *out = (uint64_t)r->l.tok.i;
    lexer_next(&r->l);
    return true;
}

static bool read_value(reader *r, uint32_t *out)
{
    if (r->l.tok.kind == TOK_IDENT)
        for (uint32_t v = 0; v < r->p->values.len; v++)
            if (strcmp(r->p->values.data[v].name, r->l.tok.text) == 0) {
                *out = v;
                lexer_next(&r->l);
                return true;
            }
    return lexer_error(&r->l, "expected the name of a value");
}

static bool read_name(reader *r, const char **out)
{
    if (r->l.tok.kind != TOK_IDENT)
        return lexer_error(&r->l, "expected a name");
    *out = r->l.tok.text;
    lexer_next(&r->l);
    return true;
}

static bool statement_value(reader *r)
{
    plan_value v = {.parent = -1};
    uint32_t parent = 0;
    if (!read_name(r, &v.name) || !read_number(r, &v.bytes))
        return false;
    if (v.bytes > UINT64_C(1) << 48)
        return lexer_error(&r->l, "a value has at most 2^48 bytes");
    bool known = false;
    for (uint32_t s = 0; s < sizeof storage_names / sizeof *storage_names && !known; s++)
        if (lexer_accept(&r->l, storage_names[s])) {
            v.storage = (plan_storage)s;
            known = true;
        }
    if (!known)
        return lexer_error(&r->l, "expected input, output, constant, workspace, state or device");
    v.from_start = v.storage == STORE_WORKSPACE && lexer_accept(&r->l, "start");
    for (uint32_t i = 0; i < r->p->values.len; i++)
        v.index += r->p->values.data[i].storage == v.storage;
    if (lexer_accept(&r->l, "in")) {
        if (!read_value(r, &parent) || !lexer_expect(&r->l, "at") || !read_number(r, &v.parent_offset))
            return false;
        const plan_value *holder = &r->p->values.data[parent];
        if (v.parent_offset > holder->bytes || v.bytes > holder->bytes - v.parent_offset)
            return lexer_error(&r->l, "value %s does not fit into %s", v.name, holder->name);
        v.parent = (int32_t)parent;
        v.storage = holder->storage;
        v.index = holder->index;
    }
    v.align = package_value_align(v.bytes);
    vec_push(&r->c->mem, &r->p->values, v);
    return true;
}

static bool keyword(const reader *r)
{
    static const char *const words[] = {"reads", "writes", "inplace", "parts",   "scratch",
                                        "work",  "op",     "value",   "workers", "nosplit",
                                        "if",    "else",   "loop",    "end",  "effort", "overlap",
                                        "busy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (lexer_is(&r->l, words[i]))
            return true;
    return r->l.tok.kind == TOK_END;
}

static bool read_values(reader *r, u32_list *list)
{
    while (!keyword(r)) {
        uint32_t v = 0;
        if (!read_value(r, &v))
            return false;
        vec_push(&r->c->mem, list, v);
    }
    return true;
}

static bool written_before(const reader *r, uint32_t v)
{
    for (uint32_t op = 0; op < r->p->ops.len; op++)
        for (uint32_t i = r->p->ops.data[op].n_inputs; i < r->p->ops.data[op].n_args; i++)
            if (r->p->ops.data[op].args[i] == v)
                return true;
    return false;
}

static bool read_pair(reader *r, const u32_list *args, uint32_t n_inputs, plan_pair *out)
{
    uint32_t to = 0, from = 0;
    if (!read_value(r, &to) || !lexer_expect(&r->l, "=") || !read_value(r, &from))
        return false;
    *out = (plan_pair){UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < args->len; i++) {
        if (i < n_inputs && args->data[i] == from)
            out->in = i;
        if (i >= n_inputs && args->data[i] == to)
            out->out = i;
    }
    return (out->in != UINT32_MAX && out->out != UINT32_MAX) ||
           lexer_error(&r->l, "in-place needs a result and an operand");
}

static bool read_distance(reader *r, const u32_list *args, uint32_t n_inputs, plan_distance *out)
{
    plan_pair pair;
    if (!read_pair(r, args, n_inputs, &pair) || !lexer_expect(&r->l, "below") || !read_number(r, &out->below) ||
        !lexer_expect(&r->l, "above") || !read_number(r, &out->above))
        return false;
    if (out->below > UINT64_C(1) << 48 || out->above > UINT64_C(1) << 48)
        return lexer_error(&r->l, "a distance has at most 2^48 bytes");
    out->out = pair.out;
    out->in = pair.in;
    return true;
}

static bool read_scratch(reader *r, tir_scratch *out)
{
    uint64_t bytes = 0;
    if (!read_number(r, &bytes))
        return false;
    if (bytes > UINT64_C(1) << 40)
        return lexer_error(&r->l, "scratch has at most 2^40 bytes");
    int64_t n = (int64_t)bytes;
    *out =
        (tir_scratch){tir_buffer_static(r->c, "scratch", DT_U8, 1, &n, SCOPE_GLOBAL), lexer_accept(&r->l, "perpart")};
    return true;
}

static bool read_options(reader *r, plan_op *op, const u32_list *args)
{
    VEC(plan_pair) pairs = {0};
    VEC(plan_distance) distances = {0};
    VEC(tir_scratch) scratch = {0};
    for (;;) {
        uint64_t n = 0;
        plan_pair pair;
        plan_distance distance;
        tir_scratch s;
        if (lexer_accept(&r->l, "inplace")) {
            if (!read_pair(r, args, op->n_inputs, &pair))
                return false;
            vec_push(&r->c->mem, &pairs, pair);
        } else if (lexer_accept(&r->l, "overlap")) {
            if (!read_distance(r, args, op->n_inputs, &distance))
                return false;
            vec_push(&r->c->mem, &distances, distance);
        } else if (lexer_accept(&r->l, "scratch")) {
            if (!read_scratch(r, &s))
                return false;
            vec_push(&r->c->mem, &scratch, s);
        } else if (lexer_accept(&r->l, "parts")) {
            if (!read_number(r, &n) || n > 1u << 20)
                return lexer_error(&r->l, "parts: at most 2^20");
            op->extent = (int64_t)n;
            op->work = INT64_MAX;
        } else if (lexer_accept(&r->l, "workers")) {
            if (!read_number(r, &n) || n < 1 || n > 127)
                return lexer_error(&r->l, "workers: 1 to 127");
            op->workers = (uint32_t)n;
        } else if (lexer_accept(&r->l, "work")) {
            if (!read_number(r, &n) || n > INT64_MAX)
                return lexer_error(&r->l, "work: a number of operations");
            op->work = (int64_t)n;
        } else {
            break;
        }
    }
    op->inplace = pairs.data;
    op->n_inplace = pairs.len;
    op->distances = distances.data;
    op->n_distances = distances.len;
    op->scratch = scratch.data;
    op->n_scratch = scratch.len;
    return true;
}

/* An earlier operator read bytes that `v` holds. */
static bool read_before(const reader *r, uint32_t v)
{
    uint64_t start, other;
    uint32_t root = plan_root(r->p, v, &start);
    for (uint32_t op = 0; op < r->p->ops.len; op++)
        for (uint32_t i = 0; i < r->p->ops.data[op].n_inputs; i++) {
            uint32_t read = r->p->ops.data[op].args[i];
            if (plan_root(r->p, read, &other) == root && start < other + r->p->values.data[read].bytes &&
                other < start + r->p->values.data[v].bytes)
                return true;
        }
    return false;
}

/* In a block a value may be written again: by the other branch, or for the next round. */
static bool check_block_args(reader *r, const plan_op *op)
{
    uint64_t start, other;
    for (uint32_t i = op->n_inputs; i < op->n_args; i++) {
        uint32_t v = op->args[i], root = plan_root(r->p, v, &start);
        if (r->p->values.data[v].storage == STORE_INPUT || r->p->values.data[v].storage == STORE_CONSTANT)
            return lexer_error(&r->l, "op %s writes %s, which has a value already", op->name,
                               r->p->values.data[v].name);
        for (uint32_t k = 0; k < i; k++) {
            uint32_t u = op->args[k];
            if (plan_root(r->p, u, &other) == root && start < other + r->p->values.data[u].bytes &&
                other < start + r->p->values.data[v].bytes)
                return lexer_error(&r->l, "op %s writes %s, which it has already", op->name, r->p->values.data[v].name);
        }
    }
    return true;
}

static bool check_args(reader *r, const plan_op *op)
{
    if (r->depth > 0)
        return check_block_args(r, op);
    for (uint32_t i = 0; i < op->n_args; i++) {
        const plan_value *v = &r->p->values.data[op->args[i]];
        bool read = i < op->n_inputs, outside = v->storage == STORE_INPUT || v->storage == STORE_CONSTANT;
        if (v->storage == STORE_STATE) /* written again */
            continue;
        if (!read && (outside || written_before(r, op->args[i])))
            return lexer_error(&r->l, "op %s writes %s, which has a value already", op->name, v->name);
        if (!read && read_before(r, op->args[i]))
            return lexer_error(&r->l, "op %s writes %s after it was read", op->name, v->name);
        for (uint32_t k = op->n_inputs; k < i; k++)
            if (!read && op->args[k] == op->args[i])
                return lexer_error(&r->l, "op %s writes %s twice", op->name, v->name);
    }
    return true;
}

static bool statement_op(reader *r)
{
    plan_op op = {.extent = 1};
    u32_list args = {0};
    if (!read_name(r, &op.name) || (lexer_accept(&r->l, "reads") && !read_values(r, &args)))
        return false;
    op.n_inputs = args.len;
    if (!lexer_expect(&r->l, "writes") || !read_values(r, &args))
        return false;
    op.args = args.data;
    op.n_args = args.len;
    if (!check_args(r, &op) || !read_options(r, &op, &args))
        return false;
    flow_op(&r->flow, op);
    return true;
}

static bool statement_block(reader *r, bool loop)
{
    uint32_t v = 0;
    if (r->depth == MOST_DEPTH)
        return lexer_error(&r->l, "blocks are nested more than %u deep", MOST_DEPTH);
    if (!read_value(r, &v))
        return false;
    if (r->p->values.data[v].bytes != 1)
        return lexer_error(&r->l, "a condition has one byte");
    r->loops[r->depth] = loop;
    r->elses[r->depth] = false;
    r->jumps[r->depth++] = loop ? flow_loop(&r->flow, v) : flow_if(&r->flow, v);
    return true;
}

static bool statement_else(reader *r)
{
    if (r->depth == 0 || r->loops[r->depth - 1] || r->elses[r->depth - 1])
        return lexer_error(&r->l, "else without its if");
    r->elses[r->depth - 1] = true;
    r->jumps[r->depth - 1] = flow_else(&r->flow, r->jumps[r->depth - 1]);
    return true;
}

static bool statement_end(reader *r)
{
    if (r->depth == 0)
        return lexer_error(&r->l, "end without if or loop");
    r->depth--;
    (r->loops[r->depth] ? flow_end_loop : flow_end_if)(&r->flow, r->jumps[r->depth]);
    return true;
}

static bool statement(reader *r)
{
    uint64_t n = 0;
    if (lexer_accept(&r->l, "value"))
        return statement_value(r);
    if (lexer_accept(&r->l, "op"))
        return statement_op(r);
    if (lexer_accept(&r->l, "if"))
        return statement_block(r, false);
    if (lexer_accept(&r->l, "loop"))
        return statement_block(r, true);
    if (lexer_accept(&r->l, "else"))
        return statement_else(r);
    if (lexer_accept(&r->l, "end"))
        return statement_end(r);
    if (lexer_accept(&r->l, "nosplit")) {
        r->p->split_parts = false;
        return true;
    }
    if (lexer_accept(&r->l, "busy")) {
        r->p->keep_busy = true;
        return true;
    }
    if (lexer_accept(&r->l, "effort")) {
        if (!read_number(r, &n) || n < 1 || n > 1000)
            return lexer_error(&r->l, "effort: 1 to 1000");
        r->p->effort = (uint32_t)n;
        return true;
    }
    if (!lexer_accept(&r->l, "workers"))
        return lexer_error(&r->l, "expected value, op, if, else, loop, end, workers, effort, nosplit or busy");
    if (!read_number(r, &n) || n < 1 || n > 127)
        return lexer_error(&r->l, "workers: 1 to 127");
    r->p->workers = (uint32_t)n;
    return true;
}

bool plan_parse(compiler *c, const char *file, const char *text, size_t len, plan_problem **out)
{
    reader r = {.c = c, .p = arena_new(&c->mem, plan_problem)};
    r.flow = (plan_flow){.a = &c->mem, .p = r.p};
    r.p->workers = 1;
    r.p->split_parts = true;
    lexer_init(&r.l, &c->mem, c->names, &c->diags, file, text, len);
    while (!r.l.failed && r.l.tok.kind != TOK_END)
        if (!statement(&r))
            return false;
    if (r.depth > 0)
        return lexer_error(&r.l, "a block has no end");
    *out = r.p;
    return !r.l.failed;
}
