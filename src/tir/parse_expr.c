/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the loop IR's expressions: types flow in from the place and out from the left operand. */
#include "base/nearest.h"
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/family.h"
#include "tir/instr.h"
#include "tir/names.h"
#include "tir/node.h"
#include "tir/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_CALL_ARGS 64u

static tir_expr_ref fail(parser *p, const char *text)
{
    (void)lexer_error(&p->l, "%s", text);
    return NULL;
}

bool parse_error_at(parser *p, src_loc at, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    if (p->l.failed) /* the first error stands, and its place */
        return false;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->l.tok.loc = at;
    return lexer_error(&p->l, "%s", text);
}

static bool next_is_ident(const parser *p, const char *s)
{
    return p->l.tok.kind == TOK_IDENT && strcmp(p->l.tok.text, s) == 0;
}

bool parse_type(parser *p, tir_type *out)
{
    if (p->l.tok.kind != TOK_IDENT || !tir_type_from_text(p->l.tok.text, out)) {
        const char *word = p->l.tok.kind == TOK_IDENT && !p->l.failed ? p->l.tok.text : NULL;
        (void)lexer_error(&p->l, "expected a type");
        if (word)
            diag_hint(&p->c->diags, "%stypes are: %s; with lanes as int32x4",
                      nearest_in(word, tir_list_types(&p->c->mem), &p->c->mem), tir_list_types(&p->c->mem));
        return false;
    }
    lexer_next(&p->l);
    return true;
}

bool parse_signed(parser *p, int64_t *out)
{
    return lexer_int(&p->l, out);
}

/* --- names --- */

static const parser_name *find(parser *p, const char *name)
{
    for (uint32_t i = p->scope.len; i > 0; i--)
        if (p->scope.data[i - 1].name == name)
            return &p->scope.data[i - 1];
    return NULL;
}

/* `word` is not known: the nearest name of the scope, where one is near. */
static void hint_near(parser *p, const char *word, bool buffers)
{
    nearest n = nearest_to(word, strlen(word));
    for (uint32_t i = p->scope.len; i > 0; i--)
        if (!buffers || p->scope.data[i - 1].buffer)
            nearest_offer(&n, p->scope.data[i - 1].name);
    if (n.best)
        diag_hint(&p->c->diags, "%s", nearest_question(&n, "", &p->c->mem));
}

const tir_buffer *parse_buffer_ref(parser *p)
{
    const parser_name *n = p->l.tok.kind == TOK_IDENT ? find(p, p->l.tok.text) : NULL;
    if (!n || !n->buffer) {
        const char *word = p->l.failed || !p->l.tok.text ? "" : p->l.tok.text;
        (void)lexer_error(&p->l, "'%s' is not the name of a buffer here", p->l.tok.text ? p->l.tok.text : "");
        hint_near(p, word, true);
        return NULL;
    }
    lexer_next(&p->l);
    return n->buffer;
}

bool parse_exprs(parser *p, const char *close, dtype want, uint32_t cap, tir_expr_ref *out, uint32_t *out_n)
{
    *out_n = 0;
    if (lexer_accept(&p->l, close))
        return true;
    do {
        if (*out_n == cap)
            return lexer_error(&p->l, "more than %u expressions", cap);
        if (!(out[*out_n] = parse_expr(p, want)))
            return false;
        ++*out_n;
    } while (lexer_accept(&p->l, ","));
    return lexer_expect(&p->l, close);
}

bool parse_indices(parser *p, const tir_buffer *b, tir_expr_ref *out, uint32_t *out_n, uint16_t *out_lanes)
{
    *out_lanes = 1;
    if (!lexer_expect(&p->l, "[") || !parse_exprs(p, "]", p->index_type, TIR_MAX_RANK, out, out_n))
        return false;
    if (*out_n != b->rank && *out_n != 1)
        return lexer_error(&p->l, "'%s' has %u dimensions, not %u", b->name, b->rank, *out_n);
    for (uint32_t i = 0; i < *out_n; i++) {
        uint16_t lanes = out[i]->type.lanes;
        if (out[i]->type.dt != DT_I32 && out[i]->type.dt != DT_I64)
            return lexer_error(&p->l, "an index is int32 or int64");
        if (lanes > 1 && *out_lanes > 1 && lanes != *out_lanes)
            return lexer_error(&p->l, "indices with different numbers of lanes");
        *out_lanes = lanes > *out_lanes ? lanes : *out_lanes;
    }
    return true;
}

/* --- leaves --- */

static tir_expr_ref number_of(parser *p, dtype dt)
{
    bool negative = lexer_accept(&p->l, "-"), lowest = p->l.tok.kind == TOK_UINT && negative && p->l.tok.i == INT64_MIN;
    bool is_int = p->l.tok.kind == TOK_INT || lowest;
    if (!is_int && p->l.tok.kind != TOK_FLOAT)
        return fail(p, "expected a number");
    if (dt == DT_NONE || dt == DT_BOOL) /* asked for a bool: an operand of a comparison, which may have any type */
        dt = is_int ? p->index_type : DT_F32;
    int64_t i = negative ? eval_sub(0, p->l.tok.i) : p->l.tok.i;
    double f = negative ? -p->l.tok.f : p->l.tok.f;
    if (!dtype_usable(dt) || (!is_int && !dtype_is_float(dt)))
        return fail(p, "this number cannot have the type that is needed here");
    if (!dtype_is_float(dt) && eval_wrap(dt, i) != i)
        return fail(p, "this number does not fit its type");
    lexer_next(&p->l);
    return dtype_is_float(dt) ? tir_float(p->c, dt, f) : tir_int(p->c, dt, i);
}

static tir_expr_ref typed_number(parser *p, tir_type t)
{
    if (t.dt == DT_BOOL)
        return fail(p, "a bool is True or False");
    if (t.lanes > 1)
        return fail(p, "a constant vector is written broadcast(x, lanes)");
    if (!lexer_expect(&p->l, "("))
        return NULL;
    tir_expr_ref e = number_of(p, t.dt);
    return e && lexer_expect(&p->l, ")") ? e : NULL;
}

static const char *type_text(parser *p, tir_type t)
{
    writer w;
    writer_init(&w, &p->c->mem);
    tir_print_type(&w, t);
    return w.data;
}

static tir_expr_ref load(parser *p, const tir_type *given)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    uint32_t n;
    uint16_t lanes;
    src_loc at = p->l.tok.loc;
    const tir_buffer *b = parse_buffer_ref(p);
    if (!b || !parse_indices(p, b, idx, &n, &lanes))
        return NULL;
    if (given && (given->dt != b->dt || given->lanes != lanes)) {
        (void)parse_error_at(p, at, "'%s' gives %s here, not %s", b->name, type_text(p, (tir_type){b->dt, lanes}),
                             type_text(p, *given));
        return NULL;
    }
    tir_expr *e = tir_node_expr(p->c, TIR_LOAD, TIR_OP_NONE, (tir_type){b->dt, lanes}, n, idx);
    e->u.buffer = b;
    return e;
}

static tir_expr_ref address(parser *p)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    uint32_t n = 0;
    uint16_t lanes = 1;
    const tir_buffer *b = parse_buffer_ref(p);
    if (!b || (lexer_is(&p->l, "[") && !parse_indices(p, b, idx, &n, &lanes)))
        return NULL;
    return lanes == 1 ? tir_address(p->c, b, n, idx) : fail(p, "an address is that of one element");
}

static tir_expr_ref name(parser *p)
{
    const parser_name *n = find(p, p->l.tok.text);
    if (!n) {
        const char *word = p->l.failed ? "" : p->l.tok.text;
        (void)lexer_error(&p->l, "'%s' is not defined here", p->l.tok.text);
        hint_near(p, word, false);
        return NULL;
    }
    if (n->buffer)
        return load(p, NULL);
    lexer_next(&p->l);
    return tir_varref(p->c, n->var);
}

tir_expr_ref parse_expr_or_string(parser *p)
{
    if (p->l.tok.kind != TOK_STRING)
        return parse_expr(p, DT_NONE);
    tir_expr_ref e = tir_string(p->c, p->l.tok.text);
    lexer_next(&p->l);
    return e;
}

/* "(" and, for tir.call_extern, the function's name: the name of what is called. */
static const char *callee(parser *p)
{
    const char *name = p->l.tok.text;
    bool is_extern = strcmp(name, "tir.call_extern") == 0;
    if (!is_extern && tir_operation_arity(name) < 0) {
        (void)fail(p, "only @tir.call_extern, instructions and operations of devices are known here");
        return NULL;
    }
    lexer_next(&p->l);
    if (!lexer_expect(&p->l, "(") || !is_extern)
        return name;
    name = p->l.tok.text;
    if (p->l.tok.kind != TOK_STRING)
        (void)fail(p, "expected the name of the function, a string");
    else
        lexer_next(&p->l);
    return name;
}

static bool result_type(parser *p, tir_type *out)
{
    if (!lexer_expect(&p->l, "=") || !parse_type(p, out))
        return false;
    return (out->lanes == 1 && out->dt != DT_STRING) || fail(p, "an external function gives a scalar");
}

/* The row that @name or @name.update names, and the part of it; NULL: it is no instruction. */
static const tir_intrin *instr_row(parser *p, tir_op *out_op)
{
    static const char update[] = ".update";
    const size_t len = strlen(p->l.tok.text), tail = sizeof update - 1;
    const bool adds = len > tail && strcmp(p->l.tok.text + len - tail, update) == 0;
    const char *name = adds ? arena_strndup(&p->c->mem, p->l.tok.text, len - tail) : p->l.tok.text;
    const tir_intrin *row = tir_find_intrin(p->c, name);
    if (!row || !tir_intrin_is_instr(row) || (adds && tir_instr_gives_value(row)))
        return NULL;
    *out_op = adds || (tir_instr_gives_value(row) && !tir_instr_makes_value(row)) ? TIR_ADD : TIR_OP_NONE;
    return row;
}

/* The verifier knows whether the operands are right. */
static tir_expr_ref instr(parser *p, const tir_intrin *row, tir_op op)
{
    tir_expr_ref args[MAX_CALL_ARGS];
    const uint32_t operands = tir_instr_operands(row);
    uint32_t n = tir_instr_args(row);
    lexer_next(&p->l);
    if (!lexer_expect(&p->l, "("))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const bool symbol = i >= operands;
        if ((i > 0 && !lexer_expect(&p->l, ",")) ||
            (symbol && (!lexer_expect(&p->l, tir_instr_symbol(row, i)->name) || !lexer_expect(&p->l, "="))) ||
            !(args[i] = parse_expr(p, symbol ? DT_I64 : DT_NONE)))
            return NULL;
    }
    while (row->runs && lexer_accept(&p->l, ",")) {
        if (n == MAX_CALL_ARGS)
            return fail(p, "too many arguments");
        if (!(args[n++] = parse_expr(p, DT_NONE)))
            return NULL;
    }
    return lexer_expect(&p->l, ")") ? tir_instr(p->c, row, op, n, args) : NULL;
}

static tir_expr_ref extern_call(parser *p)
{
    tir_op op = TIR_OP_NONE;
    const tir_intrin *row = instr_row(p, &op);
    if (row)
        return instr(p, row, op);
    tir_expr_ref args[MAX_CALL_ARGS];
    uint32_t n = 0;
    tir_type t = tir_scalar(DT_I32);
    bool first = strcmp(p->l.tok.text, "tir.call_extern") != 0; /* else the name stands in front of a comma */
    const char *name = callee(p);
    while (!p->l.failed && !lexer_is(&p->l, ")")) {
        if (!first && !lexer_expect(&p->l, ","))
            return NULL;
        first = false;
        if (lexer_accept(&p->l, "dtype")) {
            if (!result_type(p, &t))
                return NULL;
            break;
        }
        if (n == MAX_CALL_ARGS)
            return fail(p, "too many arguments");
        if (!(args[n++] = parse_expr_or_string(p)))
            return NULL;
    }
    return lexer_expect(&p->l, ")") && !p->l.failed ? tir_extern(p->c, name, t, n, args) : NULL;
}

/* --- operators --- */

/* at: where the expression starts. */
static tir_expr_ref binary(parser *p, src_loc at, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    if (a->type.dt != b->type.dt || a->type.lanes != b->type.lanes || !tir_op_fits(op, a->type.dt)) {
        (void)parse_error_at(p, at, "operator '%s' cannot join %s and %s", tir_op_text(op), type_text(p, a->type),
                             type_text(p, b->type));
        return NULL;
    }
    dtype dt = tir_op_is_compare(op) ? DT_BOOL : a->type.dt;
    return tir_node_expr(p->c, TIR_BINOP, op, (tir_type){dt, a->type.lanes}, 2, (tir_expr_ref[]){a, b});
}

static tir_op infix(parser *p)
{
    for (int op = TIR_OP_NONE + 1; op < TIR_OP_COUNT; op++)
        if (tir_op_is_binary((tir_op)op) && p->l.tok.kind == TOK_PUNCT &&
            strcmp(p->l.tok.text, tir_op_text((tir_op)op)) == 0)
            return (tir_op)op;
    return TIR_OP_NONE;
}

static tir_expr_ref parenthesised(parser *p, dtype want)
{
    tir_type t;
    tir_expr_ref a;
    src_loc at = p->l.tok.loc;
    if (p->l.tok.kind == TOK_IDENT && tir_type_from_text(p->l.tok.text, &t)) { /* (t*)B[..], or a typed number */
        lexer_next(&p->l);
        if (lexer_accept(&p->l, "*"))
            return lexer_expect(&p->l, ")") ? load(p, &t) : NULL;
        a = typed_number(p, t);
    } else {
        a = parse_expr(p, want);
    }
    if (!a || lexer_accept(&p->l, ")"))
        return a;
    tir_op op = infix(p);
    if (op == TIR_OP_NONE)
        return fail(p, "expected an operator or ')'");
    lexer_next(&p->l);
    tir_expr_ref b = parse_expr(p, a->type.dt);
    return b && lexer_expect(&p->l, ")") ? binary(p, at, op, a, b) : NULL;
}

static bool arguments(parser *p, uint32_t n, dtype want, tir_expr_ref *out)
{
    if (!lexer_expect(&p->l, "("))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if ((i && !lexer_expect(&p->l, ",")) || !(out[i] = parse_expr(p, i ? out[0]->type.dt : want)))
            return false;
    return lexer_expect(&p->l, ")");
}

static tir_expr_ref named_op(parser *p, tir_op op, dtype want)
{
    tir_expr_ref a[3];
    bool keeps_type = tir_op_result(op, DT_F64) == DT_F64;
    src_loc at = p->l.tok.loc;
    lexer_next(&p->l);
    if (!arguments(p, tir_op_arity(op), keeps_type ? want : DT_NONE, a))
        return NULL;
    if (tir_op_is_binary(op))
        return binary(p, at, op, a[0], a[1]);
    for (uint32_t i = 0; i < tir_op_arity(op); i++)
        if (a[i]->type.dt != a[0]->type.dt || a[i]->type.lanes != a[0]->type.lanes || !tir_op_fits(op, a[i]->type.dt))
            return (void)parse_error_at(p, at, "'%s' is not for %s", tir_op_text(op), type_text(p, a[i]->type)), NULL;
    return tir_node_expr(p->c, TIR_CALL, op, (tir_type){tir_op_result(op, a[0]->type.dt), a[0]->type.lanes},
                         tir_op_arity(op), a);
}

static tir_expr_ref cast(parser *p)
{
    tir_type t;
    if (!lexer_expect(&p->l, "(") || !parse_type(p, &t) || !lexer_expect(&p->l, ","))
        return NULL;
    tir_expr_ref a = parse_expr(p, DT_NONE);
    if (!a || !lexer_expect(&p->l, ")"))
        return NULL;
    if (t.lanes > 1 || !dtype_usable(t.dt) || !dtype_usable(a->type.dt))
        return fail(p, "cast needs an element type, and a number");
    return tir_node_expr(p->c, TIR_CAST, TIR_OP_NONE, (tir_type){t.dt, a->type.lanes}, 1, &a);
}

static tir_expr_ref select_expr(parser *p, dtype want)
{
    tir_expr_ref a[3];
    src_loc at = p->l.tok.loc;
    if (!lexer_expect(&p->l, "(") || !(a[0] = parse_expr(p, DT_BOOL)) || !lexer_expect(&p->l, ",") ||
        !(a[1] = parse_expr(p, want)) || !lexer_expect(&p->l, ",") || !(a[2] = parse_expr(p, a[1]->type.dt)) ||
        !lexer_expect(&p->l, ")"))
        return NULL;
    bool lanes_ok =
        a[1]->type.lanes == a[2]->type.lanes && (a[0]->type.lanes == 1 || a[0]->type.lanes == a[1]->type.lanes);
    if (a[0]->type.dt != DT_BOOL || a[1]->type.dt != a[2]->type.dt || !lanes_ok)
        return (void)parse_error_at(p, at, "select needs a bool and two values of one type, not %s, %s and %s",
                                    type_text(p, a[0]->type), type_text(p, a[1]->type), type_text(p, a[2]->type)),
               NULL;
    return tir_node_expr(p->c, TIR_SELECT, TIR_OP_NONE, a[1]->type, 3, a);
}

static tir_expr_ref vector(parser *p, bool is_ramp, dtype want)
{
    tir_expr_ref a[2] = {NULL, NULL};
    int64_t lanes = 0;
    if (!lexer_expect(&p->l, "(") || !(a[0] = parse_expr(p, want)) || !lexer_expect(&p->l, ","))
        return NULL;
    if (is_ramp && (!(a[1] = parse_expr(p, a[0]->type.dt)) || !lexer_expect(&p->l, ",")))
        return NULL;
    if (!parse_signed(p, &lanes) || !lexer_expect(&p->l, ")"))
        return NULL;
    bool ok = a[0]->type.lanes == 1 && lanes > 1 && lanes <= (int64_t)TIR_MAX_LANES && dtype_usable(a[0]->type.dt);
    if (ok && is_ramp)
        ok = dtype_is_int(a[0]->type.dt) && a[1]->type.dt == a[0]->type.dt && a[1]->type.lanes == 1;
    if (!ok)
        return fail(p, "a vector has 2 to 256 lanes of a scalar; a ramp counts in integers");
    return tir_node_expr(p->c, is_ramp ? TIR_RAMP : TIR_BROADCAST, TIR_OP_NONE,
                         (tir_type){a[0]->type.dt, (uint16_t)lanes}, is_ramp ? 2 : 1, a);
}

static tir_expr_ref word(parser *p, dtype want)
{
    tir_type t;
    if (tir_type_from_text(p->l.tok.text, &t)) {
        lexer_next(&p->l);
        return typed_number(p, t);
    }
    if (next_is_ident(p, "True") || next_is_ident(p, "False")) {
        bool v = next_is_ident(p, "True");
        lexer_next(&p->l);
        return tir_int(p->c, DT_BOOL, v);
    }
    for (int op = TIR_OP_NONE + 1; op < TIR_OP_COUNT; op++)
        if (next_is_ident(p, tir_op_text((tir_op)op)))
            return named_op(p, (tir_op)op, want);
    if (lexer_accept(&p->l, "cast"))
        return cast(p);
    if (lexer_accept(&p->l, "select"))
        return select_expr(p, want);
    if (next_is_ident(p, "ramp") || next_is_ident(p, "broadcast")) {
        bool is_ramp = next_is_ident(p, "ramp");
        lexer_next(&p->l);
        return vector(p, is_ramp, want);
    }
    return name(p);
}

static tir_expr_ref negation(parser *p)
{
    tir_expr_ref a = parse_expr(p, DT_BOOL);
    if (a && a->type.dt != DT_BOOL)
        return fail(p, "'!' wants a bool");
    return a ? tir_node_expr(p->c, TIR_NOT, TIR_OP_NONE, a->type, 1, &a) : NULL;
}

static tir_expr_ref primary(parser *p, dtype want)
{
    if (lexer_accept(&p->l, "("))
        return parenthesised(p, want);
    if (lexer_accept(&p->l, "!"))
        return negation(p);
    if (lexer_accept(&p->l, "&"))
        return address(p);
    if (p->l.tok.kind == TOK_SYMBOL)
        return extern_call(p);
    if (p->l.tok.kind == TOK_IDENT)
        return word(p, want);
    return number_of(p, want);
}

tir_expr_ref parse_expr(parser *p, dtype want)
{
    if (p->l.failed)
        return NULL;
    if (++p->l.depth > LEXER_MAX_DEPTH)
        return fail(p, "nested too deeply");
    tir_expr_ref e = primary(p, want);
    p->l.depth--;
    return p->l.failed ? NULL : e;
}
