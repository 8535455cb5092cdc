/* SPDX-License-Identifier: Apache-2.0 */
/* Loop IR as text (docs/reference/loop-ir.md). The printer hands down the type that each place asks for, exactly as the
 * parser does, so that a number is written bare where the parser will give it the right type. */
#include "tir/instr.h"
#include "tir/family.h"
#include "tir/names.h"
#include "tir/node.h"
#include "tir/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct printer {
    writer *w;
    tir_names names;
    dtype index_type;
} printer;

static const char *var_name(printer *p, const tir_var *v)
{
    return tir_names_get(&p->names, v, v->name);
}
static const char *buffer_name(printer *p, const tir_buffer *b)
{
    return tir_names_get(&p->names, b, b->name);
}

/* --- expressions --- */

static void expr(printer *p, tir_expr_ref e, dtype want);

static void exprs(printer *p, uint32_t n, tir_expr_ref const *list, dtype want)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            w_str(p->w, ", ");
        expr(p, list[i], want);
    }
}

static void number(printer *p, tir_expr_ref e, dtype want)
{
    dtype dt = e->type.dt, given = want != DT_NONE && want != DT_BOOL ? want
                                   : e->kind == TIR_FLOAT             ? DT_F32
                                                                      : p->index_type;
    if (dt == DT_BOOL) {
        w_str(p->w, e->u.i ? "True" : "False");
        return;
    }
    if (dt != given)
        w_fmt(p->w, "%s(", dtype_full_name(dt));
    if (e->kind == TIR_INT)
        w_fmt(p->w, "%" PRId64, e->u.i);
    else
        w_float(p->w, isnan(e->u.f) ? (double)NAN : e->u.f, dt == DT_F64 ? 64 : 32);
    if (dt != given)
        w_str(p->w, ")");
}

static void call_of(printer *p, const char *name, tir_expr_ref e, dtype want)
{
    w_fmt(p->w, "%s(", name);
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (i)
            w_str(p->w, ", ");
        expr(p, e->args[i], i == 0 ? want : e->args[0]->type.dt);
    }
    w_str(p->w, ")");
}

static void binop(printer *p, tir_expr_ref e, dtype want)
{
    const char *text = tir_op_text(e->op);
    dtype left = e->type.dt == DT_BOOL && tir_op_is_compare(e->op) ? DT_NONE : want;
    if (text[0] >= 'a' && text[0] <= 'z') {
        call_of(p, text, e, left);
        return;
    }
    w_str(p->w, "(");
    expr(p, e->args[0], left);
    w_fmt(p->w, e->op == TIR_MUL ? "%s" : " %s ", text);
    expr(p, e->args[1], e->args[0]->type.dt);
    w_str(p->w, ")");
}

static void load(printer *p, tir_expr_ref e)
{
    w_str(p->w, "(");
    tir_print_type(p->w, e->type);
    w_fmt(p->w, "*)%s[", buffer_name(p, e->u.buffer));
    exprs(p, e->n_args, e->args, p->index_type);
    w_str(p->w, "]");
}

static void address(printer *p, tir_expr_ref e)
{
    w_fmt(p->w, "&%s", buffer_name(p, e->u.buffer));
    if (e->n_args == 0)
        return;
    w_str(p->w, "[");
    exprs(p, e->n_args, e->args, p->index_type);
    w_str(p->w, "]");
}

static void extern_call(printer *p, tir_expr_ref e)
{
    if (e->type.dt == DT_STRING) { /* a string constant: only inside other calls and attributes */
        w_quoted(p->w, e->u.name, strlen(e->u.name));
        return;
    }
    bool named = tir_operation_arity(e->u.name) >= 0;
    w_fmt(p->w, "@%s(", named ? e->u.name : "tir.call_extern");
    if (!named)
        w_quoted(p->w, e->u.name, strlen(e->u.name));
    for (uint32_t i = 0; i < e->n_args; i++) {
        w_str(p->w, named && i == 0 ? "" : ", ");
        expr(p, e->args[i], DT_NONE);
    }
    if (e->type.dt != DT_I32)
        w_fmt(p->w, "%sdtype=%s", named && e->n_args == 0 ? "" : ", ", dtype_full_name(e->type.dt));
    w_str(p->w, ")");
}

/* @row(operands, symbol=number, ..., further first operands), or @row.update where it adds to memory. */
static void instr(printer *p, tir_expr_ref e)
{
    const tir_intrin *row = e->u.row;
    w_fmt(p->w, "@%s%s(", row->name, e->op == TIR_ADD && !tir_instr_gives_value(row) ? ".update" : "");
    for (uint32_t i = 0; i < e->n_args; i++) {
        const bool symbol = i >= tir_instr_operands(row) && i < tir_instr_args(row);
        w_str(p->w, i ? ", " : "");
        if (symbol)
            w_fmt(p->w, "%s=", tir_instr_symbol(row, i)->name);
        expr(p, e->args[i], symbol ? DT_I64 : DT_NONE);
    }
    w_str(p->w, ")");
}

static void lanes_of(printer *p, tir_expr_ref e, dtype want)
{
    w_str(p->w, e->kind == TIR_RAMP ? "ramp(" : "broadcast(");
    expr(p, e->args[0], want);
    if (e->kind == TIR_RAMP) {
        w_str(p->w, ", ");
        expr(p, e->args[1], e->args[0]->type.dt);
    }
    w_fmt(p->w, ", %u)", e->type.lanes);
}

static void expr(printer *p, tir_expr_ref e, dtype want)
{
    switch (e->kind) {
    case TIR_INT:
    case TIR_FLOAT: number(p, e, want); break;
    case TIR_VAR: w_str(p->w, var_name(p, e->u.var)); break;
    case TIR_BINOP: binop(p, e, want); break;
    case TIR_NOT:
        w_str(p->w, "!");
        expr(p, e->args[0], DT_BOOL);
        break;
    case TIR_CAST:
        w_fmt(p->w, "cast(%s, ", dtype_full_name(e->type.dt));
        expr(p, e->args[0], DT_NONE);
        w_str(p->w, ")");
        break;
    case TIR_SELECT:
        w_str(p->w, "select(");
        expr(p, e->args[0], DT_BOOL);
        w_str(p->w, ", ");
        expr(p, e->args[1], want);
        w_str(p->w, ", ");
        expr(p, e->args[2], e->args[1]->type.dt);
        w_str(p->w, ")");
        break;
    case TIR_LOAD: load(p, e); break;
    case TIR_ADDRESS: address(p, e); break;
    case TIR_CALL: call_of(p, tir_op_text(e->op), e, tir_op_result(e->op, DT_F64) == DT_F64 ? want : DT_NONE); break;
    case TIR_EXTERN: extern_call(p, e); break;
    case TIR_INSTR: instr(p, e); break;
    case TIR_RAMP:
    case TIR_BROADCAST: lanes_of(p, e, want); break;
    }
}

/* --- statements --- */

static void stmt(printer *p, tir_stmt *s);

static void block(printer *p, tir_stmt *body, const char *tail)
{
    w_str(p->w, " {\n");
    p->w->indent++;
    if (body->kind == TIR_SEQ)
        for (uint32_t i = 0; i < body->n_stmts; i++)
            stmt(p, body->stmts[i]);
    else
        stmt(p, body);
    w_close(p->w, tail);
}

/* What an annotation, an allocation or a let covers: one statement after ';', or a block. */
static void scoped(printer *p, tir_stmt *body)
{
    if (body->kind == TIR_SEQ && body->n_stmts != 1) {
        block(p, body, "");
        return;
    }
    w_str(p->w, ";\n");
    stmt(p, body->kind == TIR_SEQ ? body->stmts[0] : body);
}

static void layout(printer *p, const tir_buffer *b)
{
    if (b->strides) {
        w_str(p->w, ", strides=[");
        exprs(p, b->rank, b->strides, p->index_type);
        w_str(p->w, "]");
    }
    if (b->offset) {
        w_str(p->w, ", offset=");
        expr(p, b->offset, p->index_type);
    }
    if (b->align)
        w_fmt(p->w, ", align=%u", b->align);
}

static void buffer_type(printer *p, const tir_buffer *b)
{
    w_fmt(p->w, "%s, [", dtype_full_name(b->dt));
    exprs(p, b->rank, b->shape, p->index_type);
    w_str(p->w, "]");
    layout(p, b);
}

static const char *scope_text(const tir_buffer *b)
{
    switch (b->scope) {
#define X(id, text) \
    case id: return id == SCOPE_CUSTOM ? b->scope_name : text;
        TIR_SCOPES(X)
#undef X
    }
    return "";
}

static const char *for_text(tir_for_kind k)
{
    switch (k) {
    case FOR_SERIAL: return "";
    case FOR_PARALLEL: return " \"parallel\"";
    case FOR_VECTORIZED: return " \"vectorized\"";
    case FOR_UNROLLED: return " \"unrolled\"";
    case FOR_VTHREAD: return " \"vthread\"";
    }
    return "";
}

static void for_stmt(printer *p, tir_stmt *s)
{
    dtype dt = s->var->type.dt;
    w_fmt(p->w, "for (%s: %s, ", var_name(p, s->var), dtype_full_name(dt));
    expr(p, s->min, dt);
    w_str(p->w, ", ");
    expr(p, s->extent, dt);
    w_fmt(p->w, ")%s", for_text(s->for_kind));
    block(p, s->body, "");
}

static void if_stmt(printer *p, tir_stmt *s)
{
    w_str(p->w, "if ");
    expr(p, s->cond, DT_BOOL);
    if (!s->orelse) {
        block(p, s->body, "");
        return;
    }
    w_str(p->w, " {\n");
    p->w->indent++;
    for (uint32_t i = 0; i < (s->body->kind == TIR_SEQ ? s->body->n_stmts : 1); i++)
        stmt(p, s->body->kind == TIR_SEQ ? s->body->stmts[i] : s->body);
    p->w->indent--;
    w_str(p->w, "} else");
    block(p, s->orelse, "");
}

static void allocate(printer *p, tir_stmt *s)
{
    const tir_buffer *b = s->buffer;
    if (b->scope != SCOPE_GLOBAL) {
        w_fmt(p->w, "attr [%s: Pointer(%s)] \"storage_scope\" = ", buffer_name(p, b), dtype_full_name(b->dt));
        w_quoted(p->w, scope_text(b), strlen(scope_text(b)));
        w_str(p->w, ";\n");
    }
    w_fmt(p->w, "allocate(%s, ", buffer_name(p, b));
    buffer_type(p, b);
    w_str(p->w, ")");
    scoped(p, s->body);
}

/* Text that the parser can take as it stands: one line, balanced, not starting like a string. */
static bool is_plain_node(const char *s)
{
    int depth = 0;
    if (*s == '"' || *s == ' ' || *s == '\t' || *s == 0 || s[strlen(s) - 1] == ' ')
        return false;
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
            return false;
        depth += (*s == '[') - (*s == ']');
        if (depth < 0)
            return false;
    }
    return depth == 0;
}

static void attr_stmt(printer *p, tir_stmt *s)
{
    w_str(p->w, "attr [");
    if (is_plain_node(s->node))
        w_str(p->w, s->node);
    else
        w_quoted(p->w, s->node, strlen(s->node));
    w_str(p->w, "] ");
    w_quoted(p->w, s->key, strlen(s->key));
    w_str(p->w, " = ");
    expr(p, s->value, DT_NONE);
    scoped(p, s->body);
}

static void store(printer *p, tir_stmt *s)
{
    w_fmt(p->w, "%s[", buffer_name(p, s->buffer));
    exprs(p, s->n_indices, s->indices, p->index_type);
    w_str(p->w, "] = ");
    expr(p, s->value, s->buffer->dt);
    w_str(p->w, "\n");
}

static void let(printer *p, tir_stmt *s)
{
    w_fmt(p->w, "let %s: ", var_name(p, s->var));
    tir_print_type(p->w, s->var->type);
    w_str(p->w, " = ");
    expr(p, s->value, s->var->type.dt);
    scoped(p, s->body);
}

static void evaluate(printer *p, tir_stmt *s)
{
    bool call = (s->value->kind == TIR_EXTERN && s->value->type.dt != DT_STRING) || tir_instr_writes(s->value);
    w_str(p->w, call ? "" : "evaluate(");
    expr(p, s->value, DT_NONE);
    w_str(p->w, call ? "\n" : ")\n");
}

static void stmt(printer *p, tir_stmt *s)
{
    switch (s->kind) {
    case TIR_FOR: for_stmt(p, s); break;
    case TIR_IF: if_stmt(p, s); break;
    case TIR_LET: let(p, s); break;
    case TIR_STORE: store(p, s); break;
    case TIR_ALLOCATE: allocate(p, s); break;
    case TIR_ATTR: attr_stmt(p, s); break;
    case TIR_EVALUATE: evaluate(p, s); break;
    case TIR_ASSERT:
        w_str(p->w, "assert(");
        expr(p, s->cond, DT_BOOL);
        w_fmt(p->w, ", %d, ", s->code);
        w_quoted(p->w, s->key, strlen(s->key));
        w_str(p->w, ")\n");
        break;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++)
            stmt(p, s->stmts[i]);
        break;
    }
}

/* --- functions --- */

static void printer_init(printer *p, writer *w, dtype index_type)
{
    p->w = w;
    p->index_type = index_type;
    tir_names_init(&p->names, w->a);
}

void tir_print_expr(writer *w, tir_expr_ref e)
{
    printer p;
    printer_init(&p, w, DT_I64);
    expr(&p, e, DT_NONE);
}

void tir_print_stmt(writer *w, tir_stmt *s)
{
    printer p;
    printer_init(&p, w, DT_I64);
    stmt(&p, s);
}

void tir_print_stmt_over(writer *w, tir_stmt *s, uint32_t n_vars, const tir_var *const *vars, uint32_t n_buffers,
                         const tir_buffer *const *buffers)
{
    printer p;
    printer_init(&p, w, DT_I64);
    for (uint32_t i = 0; i < n_vars; i++)
        (void)var_name(&p, vars[i]);
    for (uint32_t i = 0; i < n_buffers; i++)
        (void)buffer_name(&p, buffers[i]);
    stmt(&p, s);
}

static void attributes(printer *p, const tir_func *f)
{
    w_str(p->w, "  attr = {\"global_symbol\": ");
    w_quoted(p->w, f->name, strlen(f->name));
    w_fmt(p->w, ", \"inputs\": %u", f->n_inputs);
    if (f->index_type != DT_I64)
        w_fmt(p->w, ", \"index_type\": %s", dtype_full_name(f->index_type));
    if (f->macs)
        w_fmt(p->w, ", \"macs\": %" PRId64, f->macs);
#define X(member, key, help) \
    if (f->left.member)      \
        w_fmt(p->w, ", \"" key "\": %" PRIu32, f->left.member);
    TIR_LEFT(X)
#undef X
    if (f->schedule) {
        w_str(p->w, ", \"schedule\": ");
        w_quoted(p->w, f->schedule, strlen(f->schedule));
    }
    w_str(p->w, "}\n");
}

void tir_print_func(writer *w, const tir_func *f)
{
    printer p;
    printer_init(&p, w, f->index_type);
    w_str(w, "primfn(");
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "%s%s: handle", i ? ", " : "", buffer_name(&p, f->params[i]));
    w_str(w, ") -> ()\n");
    attributes(&p, f);
    w_str(w, "  buffers = {");
    for (uint32_t i = 0; i < f->n_params; i++) {
        w_fmt(w, "%s%s: Buffer(", i ? ",\n             " : "", buffer_name(&p, f->params[i]));
        buffer_type(&p, f->params[i]);
        w_str(w, ")");
    }
    w_str(w, "}");
    block(&p, f->body, "");
}

void tir_print(writer *w, const tir_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        if (i)
            w_str(w, "\n");
        tir_print_func(w, m->funcs.data[i]);
    }
}
