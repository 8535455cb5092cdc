/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, broadcasting, types and their text. */
#include "type/type.h"

#include "base/nearest.h"
#include "type/dim_expr.h"

#include <string.h>

shape shape_make(compiler *c, uint32_t rank, const dim *dims)
{
    return (shape){(int32_t)rank, arena_copy(&c->mem, dims, rank * sizeof *dims, _Alignof(dim))};
}

shape shape_const(compiler *c, uint32_t rank, const int64_t *dims)
{
    dim *d = arena_array(&c->mem, dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        d[i] = dim_const(c, dims[i]);
    return (shape){(int32_t)rank, d};
}

bool shape_equal(shape a, shape b)
{
    if (a.rank != b.rank || a.rank < 0)
        return false;
    for (int32_t i = 0; i < a.rank; i++)
        if (!dim_equal(a.dims[i], b.dims[i]))
            return false;
    return true;
}

bool shape_get(shape s, int64_t *out)
{
    if (s.rank < 0 || s.rank > (int32_t)TYPE_MAX_RANK)
        return false;
    for (int32_t i = 0; i < s.rank; i++)
        if (!dim_is_const(s.dims[i], &out[i]) || out[i] < 0)
            return false;
    return true;
}

bool shape_is_static(shape s)
{
    int64_t d[TYPE_MAX_RANK];
    return shape_get(s, d);
}

dim shape_elements(compiler *c, shape s)
{
    dim n = dim_const(c, 1);
    for (int32_t i = 0; i < s.rank; i++)
        n = dim_mul(c, n, s.dims[i]);
    return n;
}

int64_t shape_count(shape s)
{
    int64_t n = 1, d = 0;
    if (s.rank < 0)
        return -1;
    bool zero = false;
    for (int32_t i = 0; i < s.rank; i++) {
        if (!dim_is_const(s.dims[i], &d) || d < 0)
            return -1;
        zero |= d == 0;
    }
    if (zero)
        return 0;
    for (int32_t i = 0; i < s.rank; i++)
        if (!dim_is_const(s.dims[i], &d) || !i64_mul(n, d, &n))
            return -1;
    return n;
}

static bool is_zero_or_one(dim d)
{
    dim_range range = dim_get_range(d, false);
    return range.lo >= 0 && range.hi <= 1;
}

/* Two expressions of which nothing is known are equal at run time, or one of them is 1: the larger one in both cases,
 * if none is 0. Where one is never above 1, the product, which holds for 0 too: no rows and one row make no rows. */
static dim broadcast_unknown(compiler *c, dim a, dim b)
{
    dim larger = dim_max(c, a, b);
    return larger != a && larger != b && (is_zero_or_one(a) || is_zero_or_one(b)) ? dim_mul(c, a, b) : larger;
}

static bool broadcast_dim(compiler *c, dim a, dim b, dim *out)
{
    int64_t va = 0, vb = 0;
    bool ca = dim_is_const(a, &va), cb = dim_is_const(b, &vb);
    if (a == b || (cb && vb == 1) || (ca && va != 1 && !cb))
        *out = a;
    else if ((ca && va == 1) || (cb && !ca))
        *out = b;
    else if (!ca && !cb)
        *out = broadcast_unknown(c, a, b);
    else
        return false;
    return true;
}

bool shape_broadcast(compiler *c, shape a, shape b, shape *out)
{
    dim d[TYPE_MAX_RANK];
    int32_t rank = a.rank > b.rank ? a.rank : b.rank;
    *out = (shape){-1, NULL};
    if (a.rank < 0 || b.rank < 0)
        return true; /* nothing is known, nothing is wrong */
    if (rank > (int32_t)TYPE_MAX_RANK)
        return false;
    for (int32_t i = 0; i < rank; i++) {
        int32_t ia = i - (rank - a.rank), ib = i - (rank - b.rank);
        if (ia < 0)
            d[i] = b.dims[ib];
        else if (ib < 0)
            d[i] = a.dims[ia];
        else if (!broadcast_dim(c, a.dims[ia], b.dims[ib], &d[i]))
            return false;
    }
    *out = shape_make(c, (uint32_t)rank, d);
    return true;
}

type type_tensor(dtype dt, shape s)
{
    return (type){.kind = TYPE_TENSOR, .dt = dt, .shape = s};
}

type type_static(compiler *c, dtype dt, uint32_t rank, const int64_t *dims)
{
    return type_tensor(dt, shape_const(c, rank, dims));
}

bool type_equal(const type *a, const type *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TYPE_TENSOR)
        return a->dt == b->dt && (shape_equal(a->shape, b->shape) || (a->shape.rank < 0 && b->shape.rank < 0));
    return a->kind == TYPE_NONE || type_equal(a->elem, b->elem);
}

static int64_t bytes_of(dtype dt, int64_t count)
{
    int64_t bits = 0;
    if (count < 0 || dtype_bits(dt) <= 0 || !i64_mul(count, dtype_bits(dt), &bits))
        return -1;
    return bits / 8 + (bits % 8 != 0);
}

int64_t type_bytes(const type *t)
{
    return t->kind == TYPE_TENSOR ? bytes_of(t->dt, shape_count(t->shape)) : -1;
}

int64_t type_most_bytes(const type *t)
{
    int64_t n = 1;
    if (t->kind != TYPE_TENSOR || t->shape.rank < 0)
        return -1;
    for (int32_t i = 0; i < t->shape.rank; i++) {
        int64_t most = dim_bound(t->shape.dims[i]);
        if (most < 0 || !i64_mul(n, most, &n))
            return -1;
    }
    return bytes_of(t->dt, n);
}

bool type_mentions(const type *t, const char *symbol)
{
    for (int32_t i = 0; t->kind == TYPE_TENSOR && i < t->shape.rank; i++)
        if (dim_mentions(t->shape.dims[i], symbol))
            return true;
    return false;
}

void type_print(writer *w, const type *t)
{
    switch (t->kind) {
    case TYPE_NONE: w_str(w, "?"); return;
    case TYPE_TENSOR:
        w_fmt(w, "%s[", dtype_name(t->dt));
        if (t->shape.rank < 0)
            w_str(w, "*");
        for (int32_t i = 0; i < t->shape.rank; i++) {
            if (i)
                w_str(w, ", ");
            dim_print(w, t->shape.dims[i]);
        }
        w_str(w, "]");
        return;
    case TYPE_SEQUENCE:
    case TYPE_OPTIONAL:
        w_str(w, t->kind == TYPE_SEQUENCE ? "seq<" : "opt<");
        type_print(w, t->elem);
        w_str(w, ">");
        return;
    }
}

static bool unknown_type(compiler *c, lexer *l)
{
    nearest near = nearest_to(l->tok.text, l->tok.len);
    dtype full = DT_NONE;
    if (dtype_parse_full(l->tok.text, l->tok.len, &full))
        near.best = dtype_name(full);
    for (int t = DT_NONE + 1; t < DT_COUNT && full == DT_NONE; t++)
        nearest_offer(&near, dtype_name((dtype)t));
    (void)lexer_error(l, "unknown type '%s'", l->tok.text);
    if (near.best)
        diag_hint(&c->diags, "%s", nearest_question(&near, "", &c->mem));
    return false;
}

static bool parse_tensor(compiler *c, lexer *l, type *out)
{
    dim d[TYPE_MAX_RANK];
    uint32_t rank = 0;
    dtype dt;
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected a type");
    if (!dtype_parse(l->tok.text, &dt))
        return unknown_type(c, l);
    lexer_next(l);
    if (!lexer_expect(l, "["))
        return false;
    *out = type_tensor(dt, (shape){-1, NULL});
    if (lexer_accept(l, "*"))
        return lexer_expect(l, "]");
    while (!lexer_accept(l, "]")) {
        if (rank && !lexer_expect(l, ","))
            return false;
        if (rank == TYPE_MAX_RANK)
            return lexer_error(l, "more than %u dimensions", TYPE_MAX_RANK);
        int64_t v = 0;
        if (!dim_parse(c, l, &d[rank]))
            return false;
        if (dim_is_const(d[rank++], &v) && v < 0)
            return lexer_error(l, "a dimension cannot be negative");
    }
    out->shape = shape_make(c, rank, d);
    return true;
}

bool type_parse(compiler *c, lexer *l, type *out)
{
    *out = (type){0};
    if (lexer_accept(l, "?"))
        return true;
    bool seq = lexer_is(l, "seq"), opt = lexer_is(l, "opt");
    if (!seq && !opt)
        return parse_tensor(c, l, out);
    lexer_next(l);
    if (!lexer_enter(l))
        return false;
    type *elem = arena_new(&c->mem, type);
    *out = (type){.kind = seq ? TYPE_SEQUENCE : TYPE_OPTIONAL, .elem = elem};
    bool ok = lexer_expect(l, "<") && type_parse(c, l, elem) && lexer_expect(l, ">");
    lexer_leave(l);
    return ok;
}
