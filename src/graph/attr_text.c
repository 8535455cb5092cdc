/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values as text. The kind is never in the text: the operator's schema gives it. */
#include "graph/text.h"

#include <string.h>

static const struct {
    const char *name;
    attr_kind kind;
} kinds[] = {
    {"int", ATTR_INT},         {"float", ATTR_FLOAT},   {"string", ATTR_STRING},
    {"dtype", ATTR_DTYPE},     {"ints", ATTR_INTS},     {"floats", ATTR_FLOATS},
    {"strings", ATTR_STRINGS}, {"tensor", ATTR_TENSOR}, {"func", ATTR_FUNC},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const char *graph_attr_kind_name(attr_kind k)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].kind == k)
            return kinds[i].name;
    return "?";
}

bool graph_attr_kind_parse(const char *name, attr_kind *out)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = kinds[i].kind;
            return true;
        }
    }
    return false;
}

/* --- reading --- */

static bool parse_int(lexer *l, int64_t *out)
{
    return lexer_int(l, out);
}

static bool parse_float(lexer *l, double *out)
{
    bool minus = lexer_accept(l, "-");
    if (l->tok.kind != TOK_INT && l->tok.kind != TOK_FLOAT)
        return lexer_error(l, "expected a number");
    *out = minus ? -l->tok.f : l->tok.f;
    lexer_next(l);
    return true;
}

static bool parse_text(lexer *l, token_kind kind, const char *what, const char **out)
{
    if (l->tok.kind != kind)
        return lexer_error(l, "expected %s", what);
    if (strlen(l->tok.text) != l->tok.len)
        return lexer_error(l, "a zero byte is not allowed here");
    *out = l->tok.text;
    lexer_next(l);
    return true;
}

static bool parse_list(compiler *c, lexer *l, attr_kind kind, attr *out)
{
    VEC(int64_t) ints = {0};
    VEC(double) floats = {0};
    VEC(const char *) strings = {0};
    arena *a = &c->mem;
    if (!lexer_expect(l, "["))
        return false;
    for (uint32_t n = 0; !lexer_accept(l, "]"); n++) {
        int64_t i = 0;
        double f = 0;
        const char *s = "";
        if (n && !lexer_expect(l, ","))
            return false;
        bool ok = kind == ATTR_INTS     ? parse_int(l, &i)
                  : kind == ATTR_FLOATS ? parse_float(l, &f)
                                        : parse_text(l, TOK_STRING, "a string", &s);
        if (!ok)
            return false;
        if (kind == ATTR_INTS)
            vec_push(a, &ints, i);
        else if (kind == ATTR_FLOATS)
            vec_push(a, &floats, f);
        else
            vec_push(a, &strings, s);
    }
    out->n = ints.len + floats.len + strings.len;
    if (kind == ATTR_INTS)
        out->u.ints = ints.data;
    else if (kind == ATTR_FLOATS)
        out->u.floats = floats.data;
    else
        out->u.strings = strings.data;
    return true;
}

static bool parse_dtype(lexer *l, dtype *out)
{
    if (l->tok.kind != TOK_IDENT || !dtype_parse(l->tok.text, out))
        return lexer_error(l, "expected an element type such as f32");
    lexer_next(l);
    return true;
}

static bool parse_tensor(compiler *c, lexer *l, const tensor_data **out)
{
    type t;
    return type_parse(c, l, &t) && tensor_parse(c, l, &t, out);
}

bool graph_parse_attr(compiler *c, lexer *l, const char *name, attr_kind kind, attr *out)
{
    *out = (attr){.name = name, .kind = kind, .n = 1};
    switch (kind) {
    case ATTR_INT: return parse_int(l, &out->u.i);
    case ATTR_FLOAT: return parse_float(l, &out->u.f);
    case ATTR_STRING: return parse_text(l, TOK_STRING, "a string", &out->u.s);
    case ATTR_DTYPE: return parse_dtype(l, &out->u.dt);
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRINGS: return parse_list(c, l, kind, out);
    case ATTR_TENSOR: return parse_tensor(c, l, &out->u.tensor);
    case ATTR_FUNC: return parse_text(l, TOK_SYMBOL, "a function such as @f", &out->u.s);
    }
    return false;
}

/* --- writing --- */

static void print_list(writer *w, const attr *a)
{
    w_str(w, "[");
    for (uint32_t i = 0; i < a->n; i++) {
        if (i)
            w_str(w, ", ");
        if (a->kind == ATTR_INTS)
            w_fmt(w, "%lld", (long long)a->u.ints[i]);
        else if (a->kind == ATTR_FLOATS)
            w_float(w, a->u.floats[i], 64);
        else
            w_quoted(w, a->u.strings[i], strlen(a->u.strings[i]));
    }
    w_str(w, "]");
}

static void print_tensor(writer *w, const tensor_data *t)
{
    w_fmt(w, "%s[", dtype_name(t->dt));
    for (uint32_t i = 0; i < t->rank; i++)
        w_fmt(w, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    w_str(w, "] ");
    tensor_print(w, t);
}

void graph_print_attr(writer *w, const attr *a)
{
    switch (a->kind) {
    case ATTR_INT: w_fmt(w, "%lld", (long long)a->u.i); return;
    case ATTR_FLOAT: w_float(w, a->u.f, 64); return;
    case ATTR_STRING: w_quoted(w, a->u.s, strlen(a->u.s)); return;
    case ATTR_DTYPE: w_str(w, dtype_name(a->u.dt)); return;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRINGS: print_list(w, a); return;
    case ATTR_TENSOR: print_tensor(w, a->u.tensor); return;
    case ATTR_FUNC: w_name(w, '@', a->u.func->name); return;
    }
}
