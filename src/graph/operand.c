/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of operator rows: reading the row's text, and the one check that every node goes through. */
#include "graph/operand.h"

#include <ctype.h>
#include <string.h>

#include "graph/op.h"

/* --- reading --- */

typedef struct reader {
    compiler *c;
    const char *op, *text, *at;
    VEC(operand_def) defs;
} reader;

static bool bad(const reader *r, const char *why)
{
    return diag_error(&r->c->diags, DIAG_USAGE, src_loc_none(), "operator '%s': operands \"%s\": %s at '%s'", r->op,
                      r->text, why, r->at);
}

static bool accept(reader *r, const char *text)
{
    size_t n = strlen(text);
    bool here = strncmp(r->at, text, n) == 0;
    r->at += here ? n : 0;
    return here;
}

static const char *word(reader *r)
{
    const char *from = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    return r->at > from ? intern_n(r->c->names, from, (size_t)(r->at - from)) : NULL;
}

static bool find_def(const reader *r, const char *name, uint32_t *out)
{
    for (*out = 0; *out < r->defs.len; ++*out)
        if (r->defs.data[*out].name == name)
            return true;
    return false;
}

static bool read_types(reader *r, operand_def *d)
{
    static const char *const names[] = {
#define X(id, name, words, has) [id] = name,
        OPERAND_CLASSES(X)
#undef X
    };
    if (accept(r, "~")) {
        const char *name = word(r);
        d->cls = OPERAND_LIKE;
        return (name && find_def(r, name, &d->like)) || bad(r, "no earlier operand has that name");
    }
    const char *name = word(r);
    if (!name)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && strcmp(names[i], name) == 0) {
            d->cls = (operand_class)i;
            return true;
        }
    d->cls = OPERAND_DTYPE;
    return dtype_parse(name, &d->dt) || bad(r, "no such element type");
}

static bool read_shape(reader *r, operand_def *d)
{
    if (accept(r, "(1)")) {
        d->shape = OPERAND_ONE_ELEMENT;
        return true;
    }
    if (!accept(r, "["))
        return true;
    d->shape = accept(r, "..") ? OPERAND_RANK_OR_MORE : OPERAND_RANK;
    bool first = d->shape == OPERAND_RANK;
    while (!accept(r, "]")) {
        if ((!first && !accept(r, ",")) || !accept(r, "_"))
            return bad(r, "a shape is written [_,_] or [..,_] or (1)");
        first = false;
        d->rank++;
    }
    return true;
}

static bool read_operand(reader *r)
{
    operand_def d = {.name = word(r)};
    uint32_t same;
    if (!d.name)
        return bad(r, "expected the name of an operand");
    if (find_def(r, d.name, &same))
        return bad(r, "there is an operand of that name");
    d.repeated = *r->at == '*' || *r->at == '+';
    d.optional = *r->at == '?' || *r->at == '*';
    r->at += d.repeated || d.optional;
    if (r->defs.len && !d.optional && vec_last(&r->defs).optional)
        return bad(r, "a required operand comes after an optional one");
    if (r->defs.len && vec_last(&r->defs).repeated)
        return bad(r, "an operand comes after a repeated one");
    if (accept(r, ":") && !(read_types(r, &d) && read_shape(r, &d)))
        return false;
    vec_push(&r->c->mem, &r->defs, d);
    return *r->at == '\0' || accept(r, " ") || bad(r, "a blank is wanted");
}

bool operands_parse(compiler *c, const char *op, const char *text, const operand_def **out, uint32_t *n, int32_t *min,
                    int32_t *max)
{
    reader r = {.c = c, .op = op, .text = text, .at = text};
    *out = NULL;
    *n = 0;
    while (*r.at)
        if (!read_operand(&r))
            return false;
    *min = *max = 0;
    for (uint32_t i = 0; i < r.defs.len; i++) {
        *min += !r.defs.data[i].optional;
        *max = r.defs.data[i].repeated ? -1 : *max + 1;
    }
    *out = r.defs.data;
    *n = r.defs.len;
    return true;
}

/* --- checking --- */

const operand_def *operand_of(const graph_op *op, uint32_t i)
{
    if (i < op->n_operands)
        return &op->operand_defs[i];
    return op->n_operands && op->operand_defs[op->n_operands - 1].repeated ? &op->operand_defs[op->n_operands - 1]
                                                                           : NULL;
}

static bool has_type(const graph_node *n, const operand_def *d, dtype dt)
{
    const type *like = NULL;
    switch (d->cls) {
#define X(id, name, words, has) \
    case id:                    \
        if (has)                \
            return true;        \
        break;
        OPERAND_CLASSES(X)
#undef X
    }
    if (d->cls == OPERAND_LIKE)
        like = infer_in(n, d->like);
    return d->cls == OPERAND_DTYPE ? dt == d->dt : d->cls == OPERAND_LIKE && (!like || like->dt == dt);
}

static bool has_shape(compiler *c, const operand_def *d, shape s)
{
    switch (d->shape) {
    case OPERAND_ANY_SHAPE: return true;
    case OPERAND_RANK: return s.rank == d->rank;
    case OPERAND_RANK_OR_MORE: return s.rank >= d->rank;
    case OPERAND_ONE_ELEMENT:
        return infer_extents(c, shape_elements(c, s), EXTENTS_EQUAL, dim_const(c, 1), "one element and an operand");
    }
    return true;
}

/* "i32 or i64 of rank 1" */
static void print_wanted(writer *w, const graph_node *n, const operand_def *d)
{
    static const char *const words[] = {
#define X(id, name, text, has) [id] = text,
        OPERAND_CLASSES(X)
#undef X
    };
    if (d->shape == OPERAND_ONE_ELEMENT)
        w_str(w, "one element of ");
    if (d->cls == OPERAND_LIKE)
        w_fmt(w, "%s, the type of %s '%.100s',", dtype_name(infer_in(n, d->like)->dt),
              n->op->operand_defs[d->like].name, n->inputs[d->like]->name);
    else
        w_str(w, d->cls == OPERAND_DTYPE ? dtype_name(d->dt) : words[d->cls]);
    if (d->shape == OPERAND_RANK || d->shape == OPERAND_RANK_OR_MORE)
        w_fmt(w, " of rank %d%s", d->rank, d->shape == OPERAND_RANK ? "" : " or more");
}

bool operand_is_required(const graph_op *op, uint32_t i)
{
    const operand_def *d = operand_of(op, i);
    return (int64_t)i < op->min_in || (d && d->repeated);
}

bool operands_check(compiler *c, const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const operand_def *d = operand_of(n->op, i);
        const type *t = infer_in(n, i);
        if (!d || !t || t->kind != TYPE_TENSOR || (has_type(n, d, t->dt) && has_shape(c, d, t->shape)))
            continue;
        writer found, wanted;
        writer_init(&found, &c->mem);
        writer_init(&wanted, &c->mem);
        type_print(&found, t);
        print_wanted(&wanted, n, d);
        if (d->cls == OPERAND_LIKE && !has_type(n, d, t->dt)) {
            (void)infer_error(c, n, "operand %s ('%.100s') is %s, but operand %s ('%.100s') is %s", d->name,
                              n->inputs[i]->name, dtype_name(t->dt), n->op->operand_defs[d->like].name,
                              n->inputs[d->like]->name, dtype_name(infer_in(n, d->like)->dt));
            diag_hint(&c->diags, "convert one of them in the model, with the operator Cast");
        } else {
            (void)infer_error(c, n, "operand %u, %s '%.100s', is %s; %s is needed", i, d->name, n->inputs[i]->name,
                              found.data, wanted.data);
        }
        return false;
    }
    return true;
}
