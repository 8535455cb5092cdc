/* SPDX-License-Identifier: Apache-2.0 */
/* Computations as text, and back (docs/reference/schedule.md). One operation a line, producers first; expressions
 * are the loop IR's. Axis variables get names that are unique in their operation and differ from every tensor's. */
#include "te/te.h"
#include "te/text.h"
#include "tir/names.h"
#include "tir/parse.h"
#include "tir/simplify.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define MAX_AXES    32u
#define MAX_RESULTS 16u

static const char *const reducer_texts[] = {[TE_SUM] = "sum", [TE_PROD] = "prod", [TE_MAX] = "max", [TE_MIN] = "min"};

/* --- printing --- */

typedef struct op_text {
    writer *w;
    te_graph const *g;
    const te_node *n;
    tir_names names;
    uint32_t n_vars;
    const tir_var *from[MAX_AXES + 2 * MAX_RESULTS];
    tir_expr_ref to[MAX_AXES + 2 * MAX_RESULTS];
} op_text;

static const char *rename_var(op_text *p, const tir_var *v)
{
    const char *name = tir_names_get(&p->names, v, v->name);
    p->from[p->n_vars] = v;
    p->to[p->n_vars++] = tir_varref(p->g->c, tir_new_var(p->g->c, name, v->type));
    return name;
}

static void print_expr(op_text *p, tir_expr_ref e)
{
    tir_print_expr(p->w, tir_substitute(p->g->c, e, p->n_vars, p->from, p->to));
}

static void print_list(op_text *p, uint32_t n, tir_expr_ref const *list)
{
    if (n == 1) {
        print_expr(p, list[0]);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        w_str(p->w, i ? ", " : "(");
        print_expr(p, list[i]);
    }
    w_str(p->w, ")");
}

static void print_axes(op_text *p, uint32_t n, te_axis *const *axes)
{
    w_str(p->w, "[");
    for (uint32_t i = 0; i < n; i++) {
        w_fmt(p->w, "%s%s: ", i ? ", " : "", rename_var(p, axes[i]->var));
        print_expr(p, axes[i]->extent);
    }
    w_str(p->w, "]");
}

static void print_types(op_text *p)
{
    const te_node *n = p->n;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        w_fmt(p->w, "%s%s", i ? ", " : n->n_outputs > 1 ? "(" : "", dtype_full_name(n->outputs[i]->dt));
    w_str(p->w, n->n_outputs > 1 ? ")" : "");
}

static bool is_simple(compiler *c, const te_reducer *r, te_reduce_kind *out)
{
    for (uint32_t k = 0; r->n == 1 && k < sizeof reducer_texts / sizeof *reducer_texts; k++) {
        const te_reducer *s = te_simple_reducer(c, (te_reduce_kind)k, r->acc[0]->type.dt);
        const tir_var *from[2] = {r->acc[0], r->x[0]};
        tir_expr_ref to[2] = {tir_varref(c, s->acc[0]), tir_varref(c, s->x[0])};
        *out = (te_reduce_kind)k;
        if (tir_expr_equal(tir_substitute(c, r->combine[0], 2, from, to), s->combine[0]) &&
            tir_expr_equal(r->identity[0], s->identity[0]))
            return true;
    }
    return false;
}

static void print_reducer(op_text *p)
{
    const te_reducer *r = p->n->reducer;
    te_reduce_kind kind;
    if (is_simple(p->g->c, r, &kind)) {
        w_fmt(p->w, " %s", reducer_texts[kind]);
        return;
    }
    w_str(p->w, " by (");
    for (uint32_t i = 0; i < r->n; i++)
        w_fmt(p->w, "%s%s", i ? ", " : "", rename_var(p, r->acc[i]));
    for (uint32_t i = 0; i < r->n; i++)
        w_fmt(p->w, "%s%s", i ? ", " : "; ", rename_var(p, r->x[i]));
    w_str(p->w, ") ");
    print_list(p, r->n, r->combine);
    w_str(p->w, " from ");
    print_list(p, r->n, r->identity);
}

static void print_compute(op_text *p)
{
    const te_node *n = p->n;
    w_fmt(p->w, "compute %s: ", n->name);
    print_types(p);
    print_axes(p, n->n_axes, n->axes);
    if (n->reducer) {
        w_str(p->w, " reduce");
        print_axes(p, n->n_reduce, n->reduce_axes);
        print_reducer(p);
    }
    w_str(p->w, " = ");
    print_list(p, n->n_outputs, n->body);
    if (n->where) {
        w_str(p->w, " where ");
        print_expr(p, n->where);
    }
    w_str(p->w, "\n");
}

static void print_tensor(op_text *p, const te_tensor *t)
{
    w_fmt(p->w, "%s[", dtype_full_name(t->dt));
    for (uint32_t i = 0; i < t->rank; i++) {
        w_str(p->w, i ? ", " : "");
        print_expr(p, t->shape[i]);
    }
    w_str(p->w, "]");
}

static void print_stmt(const op_text *p)
{
    const te_graph *g = p->g;
    const tir_var **vars = arena_array(&g->c->mem, const tir_var *, g->symbols.len);
    const tir_buffer **buffers = arena_array(&g->c->mem, const tir_buffer *, g->by_buffer.len);
    for (uint32_t i = 0; i < g->symbols.len; i++)
        vars[i] = g->symbols.data[i].var;
    for (uint32_t i = 0; i < g->by_buffer.len; i++)
        buffers[i] = g->by_buffer.data[i]->buffer;
    tir_print_stmt_over(p->w, p->n->stmt, g->symbols.len, vars, g->by_buffer.len, buffers);
}

static void print_extern(op_text *p)
{
    const te_node *n = p->n;
    w_fmt(p->w, "extern %s:", n->name);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        w_str(p->w, i ? ", " : " ");
        print_tensor(p, n->outputs[i]);
    }
    w_str(p->w, " {\n");
    p->w->indent++;
    print_stmt(p);
    p->w->indent--;
    w_str(p->w, "}\n");
}

/* check take_indices[i0: 3]: (...), -11, "why" */
static void print_check(op_text *p)
{
    w_fmt(p->w, "check %s", p->n->name);
    print_axes(p, p->n->n_axes, p->n->axes);
    w_str(p->w, ": ");
    print_expr(p, p->n->where);
    w_fmt(p->w, ", %d, ", (int)p->n->status);
    w_quoted(p->w, p->n->message, strlen(p->n->message));
    w_str(p->w, "\n");
}

static void print_node(writer *w, const te_graph *g, const te_node *n)
{
    op_text p = {.w = w, .g = g, .n = n};
    assert(n->n_axes + n->n_reduce <= MAX_AXES && n->n_outputs <= MAX_RESULTS);
    tir_names_init(&p.names, &g->c->mem);
    for (uint32_t i = 0; i < g->symbols.len; i++)
        (void)tir_names_get(&p.names, g->symbols.data[i].var, g->symbols.data[i].var->name);
    for (uint32_t i = 0; i < g->by_buffer.len; i++)
        (void)tir_names_get(&p.names, g->by_buffer.data[i], g->by_buffer.data[i]->buffer->name);
    switch (n->kind) {
    case TE_PLACEHOLDER:
        w_fmt(w, "placeholder %s: ", n->name);
        print_tensor(&p, n->outputs[0]);
        w_str(w, "\n");
        break;
    case TE_COMPUTE: print_compute(&p); break;
    case TE_EXTERN: print_extern(&p); break;
    case TE_CHECK: print_check(&p); break;
    }
}

void te_print(writer *w, const te_graph *g)
{
    for (uint32_t i = 0; i < g->symbols.len; i++) {
        w_fmt(w, "symbol %s", g->symbols.data[i].var->name);
        if (g->symbols.data[i].max >= 0)
            w_fmt(w, " <= %" PRId64, g->symbols.data[i].max);
        w_str(w, "\n");
    }
    for (uint32_t i = 0, k = 0; i < g->nodes.len || k < g->checks.len;) {
        bool check = k < g->checks.len && (i == g->nodes.len || g->checks.data[k].before <= i);
        print_node(w, g, check ? g->checks.data[k++].check : g->nodes.data[i++]);
    }
    w_str(w, "return");
    for (uint32_t i = g->n_inputs; i < g->params.len; i++)
        w_fmt(w, "%s%s", i > g->n_inputs ? ", " : " ", g->params.data[i]->buffer->name);
    w_str(w, "\n");
}

/* --- parsing --- */

typedef struct te_reader {
    te_graph *g;
    parser p;           /* scope: the tensors read so far, then the variables of one operation */
    tir_bounds *bounds; /* of nothing: for ranges of constants */
} te_reader;

static bool ident(te_reader *r, const char **out)
{
    if (r->p.l.tok.kind != TOK_IDENT || tir_is_reserved(r->p.l.tok.text))
        return lexer_error(&r->p.l, "expected a name");
    *out = r->p.l.tok.text;
    lexer_next(&r->p.l);
    return true;
}

static void declare(te_reader *r, const char *name, const tir_var *v, const tir_buffer *b)
{
    parser_name n = {name, v, b};
    vec_push(&r->g->c->mem, &r->p.scope, n);
}

static bool is_symbol(const te_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->g->symbols.len; i++)
        if (strcmp(r->g->symbols.data[i].var->name, name) == 0)
            return true;
    return false;
}

/* symbol n <= 64 */
static bool read_symbol(te_reader *r)
{
    const char *name = NULL;
    int64_t max = -1;
    if (r->g->nodes.len > 0)
        return lexer_error(&r->p.l, "symbols come before all operations");
    if (!ident(r, &name) || (lexer_accept(&r->p.l, "<=") && !lexer_int(&r->p.l, &max)))
        return false;
    if (is_symbol(r, name))
        return lexer_error(&r->p.l, "the name %s is taken", name);
    if (max < -1 || max > TE_MOST_EXTENT)
        return lexer_error(&r->p.l, "an upper bound lies between 0 and 2^40");
    declare(r, name, te_add_symbol(r->g, name, max), NULL);
    return true;
}

/* Tensors enter the scope under the names they print with. */
static bool declare_tensors(te_reader *r, const te_node *n, const char *name, uint32_t mark)
{
    r->p.scope.len = mark;
    if (strcmp(n->name, name) != 0 || is_symbol(r, name))
        return lexer_error(&r->p.l, "the name %s is taken", name);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        declare(r, intern(r->g->c->names, n->outputs[i]->buffer->name), NULL, n->outputs[i]->buffer);
    return true;
}

/* Constant extents are no larger than TE_MOST_EXTENT, and so few that loops over them can be counted: *count is their
 * product so far. at: where the extent stands. */
static bool check_extent(te_reader *r, src_loc at, tir_expr_ref extent, int64_t *count)
{
    int64_t v = 0;
    if (extent->type.dt != DT_I64)
        return parse_error_at(&r->p, at, "an extent is int64, this one is %s", dtype_full_name(extent->type.dt));
    tir_range range = tir_range_of(r->bounds, extent);
    if (range.known_max && range.max < 0)
        return parse_error_at(&r->p, at, "the extent is negative: %" PRId64 " at most", range.max);
    if (range.known_min && range.known_max && range.min == range.max)
        v = range.max;
    if (v > TE_MOST_EXTENT || !i64_mul(*count, v > 0 ? v : 1, count) || *count > INT64_MAX / 8)
        return parse_error_at(&r->p, at, "the extent is above 2^40, or there are too many elements with this one");
    return true;
}

/* float32[4, n]; dims holds TYPE_MAX_RANK. */
static bool read_tensor(te_reader *r, dtype *out_dt, tir_expr_ref *dims, uint32_t *out_rank)
{
    int64_t count = 1;
    tir_type t = {DT_NONE, 1};
    if (!parse_type(&r->p, &t) || !lexer_expect(&r->p.l, "["))
        return false;
    src_loc at = r->p.l.tok.loc;
    if (!parse_exprs(&r->p, "]", DT_I64, TYPE_MAX_RANK, dims, out_rank))
        return false;
    for (uint32_t i = 0; i < *out_rank; i++)
        if (!check_extent(r, at, dims[i], &count))
            return false;
    *out_dt = t.dt;
    return true;
}

static bool read_placeholder(te_reader *r)
{
    const char *name = NULL;
    dtype dt = DT_NONE;
    tir_expr_ref dims[TYPE_MAX_RANK];
    uint32_t rank = 0, mark = r->p.scope.len;
    if (!ident(r, &name) || !lexer_expect(&r->p.l, ":") || !read_tensor(r, &dt, dims, &rank))
        return false;
    return declare_tensors(r, te_placeholder(r->g, name, dt, rank, dims)->node, name, mark);
}

/* count: elements so far, times those of these axes afterwards. */
static bool read_axes(te_reader *r, te_axis_kind kind, te_axis **axes, uint32_t *out_n, int64_t *count)
{
    compiler *c = r->g->c;
    *out_n = 0;
    if (!lexer_expect(&r->p.l, "["))
        return false;
    while (!lexer_accept(&r->p.l, "]")) {
        const char *name = NULL;
        if ((*out_n > 0 && !lexer_expect(&r->p.l, ",")) || !ident(r, &name) || !lexer_expect(&r->p.l, ":"))
            return false;
        src_loc at = r->p.l.tok.loc;
        tir_expr_ref extent = parse_expr(&r->p, DT_I64);
        if (!extent || !check_extent(r, at, extent, count))
            return false;
        if (*out_n == TYPE_MAX_RANK)
            return parse_error_at(&r->p, at, "there are more than %u axes", TYPE_MAX_RANK);
        te_axis *a = arena_new(&c->mem, te_axis);
        *a = (te_axis){tir_new_var(c, name, TIR_I64), extent, kind};
        axes[(*out_n)++] = a;
    }
    for (uint32_t i = 0; i < *out_n; i++)
        declare(r, intern(c->names, axes[i]->var->name), axes[i]->var, NULL);
    return true;
}

static bool read_types(te_reader *r, dtype *dts, uint32_t *out_n)
{
    tir_type t = {DT_NONE, 1};
    bool many = lexer_accept(&r->p.l, "(");
    *out_n = 0;
    do {
        if (*out_n == MAX_RESULTS || !parse_type(&r->p, &t))
            return lexer_error(&r->p.l, "expected at most %u types", MAX_RESULTS);
        dts[(*out_n)++] = t.dt;
    } while (many && lexer_accept(&r->p.l, ","));
    return !many || lexer_expect(&r->p.l, ")");
}

static bool read_list(te_reader *r, uint32_t n, const dtype *dts, tir_expr_ref *out)
{
    if (n > 1 && !lexer_expect(&r->p.l, "("))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (i && !lexer_expect(&r->p.l, ","))
            return false;
        src_loc at = r->p.l.tok.loc;
        out[i] = parse_expr(&r->p, dts[i]);
        if (!out[i])
            return false;
        if (out[i]->type.dt != dts[i])
            return parse_error_at(&r->p, at, "this has type %s, and %s is needed: write cast(%s, ...)",
                                  dtype_full_name(out[i]->type.dt), dtype_full_name(dts[i]), dtype_full_name(dts[i]));
    }
    return n == 1 || lexer_expect(&r->p.l, ")");
}

static bool read_vars(te_reader *r, uint32_t n, const dtype *dts, const tir_var **out)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = NULL;
        if ((i && !lexer_expect(&r->p.l, ",")) || !ident(r, &name))
            return false;
        out[i] = tir_new_var(r->g->c, name, tir_scalar(dts[i]));
        declare(r, intern(r->g->c->names, name), out[i], NULL);
    }
    return true;
}

static bool read_reducer(te_reader *r, uint32_t n, const dtype *dts, const te_reducer **out)
{
    compiler *c = r->g->c;
    for (uint32_t k = 0; n == 1 && k < sizeof reducer_texts / sizeof *reducer_texts; k++) {
        if (lexer_accept(&r->p.l, reducer_texts[k])) {
            *out = te_simple_reducer(c, (te_reduce_kind)k, dts[0]);
            return true;
        }
    }
    const tir_var **v = arena_array(&c->mem, const tir_var *, 2 * n);
    tir_expr_ref *e = arena_array(&c->mem, tir_expr_ref, 2 * n);
    te_reducer *rd = arena_new(&c->mem, te_reducer);
    *rd = (te_reducer){n, v, v + n, e, e + n};
    *out = rd;
    return lexer_expect(&r->p.l, "by") && lexer_expect(&r->p.l, "(") && read_vars(r, n, dts, v) &&
           lexer_expect(&r->p.l, ";") && read_vars(r, n, dts, v + n) && lexer_expect(&r->p.l, ")") &&
           read_list(r, n, dts, e) && lexer_expect(&r->p.l, "from") && read_list(r, n, dts, e + n);
}

/* A tensor is read by all of its dimensions: one index in all, as in flattened loops, means nothing to schedules. */
typedef struct flat_scan {
    const te_graph *g;
    const tir_buffer *flat;
} flat_scan;

static void scan_flat(void *ctx, tir_expr_ref e)
{
    flat_scan *s = ctx;
    if (tir_is_access(e) && e->n_args > 0 && e->n_args != e->u.buffer->rank && te_tensor_of(s->g, e->u.buffer))
        s->flat = e->u.buffer;
}

static void scan_flat_store(void *ctx, tir_stmt *t)
{
    flat_scan *s = ctx;
    if (t->kind == TIR_STORE && t->n_indices != t->buffer->rank && te_tensor_of(s->g, t->buffer))
        s->flat = t->buffer;
}

static bool refuse_flat(te_reader *r, src_loc at, const flat_scan *s)
{
    return !s->flat || parse_error_at(&r->p, at, "'%s' has %u dimensions, and is read or written with another number "
                                                 "of indices",
                                      s->flat->name, s->flat->rank);
}

/* Every element reads what is there: a schedule may hide afterwards that it does not. */
static bool check_reads(te_reader *r, src_loc at, const char *name, uint32_t n_axes, te_axis *const *axes,
                        tir_expr_ref where, uint32_t n, tir_expr_ref const *bodies)
{
    compiler *c = r->g->c;
    const tir_var *vars[2 * TYPE_MAX_RANK];
    tir_expr_ref extents[2 * TYPE_MAX_RANK];
    for (uint32_t i = 0; i < n_axes; i++) {
        vars[i] = axes[i]->var;
        extents[i] = axes[i]->extent;
    }
    flat_scan flat = {.g = r->g};
    if (where)
        tir_visit_expr(where, scan_flat, &flat);
    for (uint32_t i = 0; i < n; i++)
        tir_visit_expr(bodies[i], scan_flat, &flat);
    if (!refuse_flat(r, at, &flat))
        return false;
    tir_expr_ref values[2 * TYPE_MAX_RANK];
    for (uint32_t i = 0; i < n_axes; i++)
        values[i] = tir_varref(c, vars[i]);
    for (uint32_t i = 0; i < n; i++) { /* made anew, as it is when it prints: more can be proven of what is folded */
        tir_expr_ref body = tir_substitute(c, bodies[i], n_axes, vars, values);
        if (!tir_verify_expr(c, at, name, n_axes, vars, extents, where, body))
            return false;
    }
    return true;
}

static bool read_compute(te_reader *r)
{
    const char *name = NULL;
    uint32_t n = 0, n_axes = 0, n_reduce = 0, mark = r->p.scope.len;
    te_axis *axes[2 * TYPE_MAX_RANK], **reduce;
    tir_expr_ref dims[TYPE_MAX_RANK], bodies[MAX_RESULTS], where = NULL;
    int64_t count = 1;
    dtype dts[MAX_RESULTS];
    const te_reducer *reducer = NULL;
    te_tensor *out[MAX_RESULTS];
    if (!ident(r, &name) || !lexer_expect(&r->p.l, ":") || !read_types(r, dts, &n) ||
        !read_axes(r, AXIS_DATA, axes, &n_axes, &count))
        return false;
    reduce = axes + n_axes;
    if (lexer_accept(&r->p.l, "reduce") &&
        (!read_axes(r, AXIS_REDUCE, reduce, &n_reduce, &count) || !read_reducer(r, n, dts, &reducer)))
        return false;
    if (!lexer_expect(&r->p.l, "="))
        return false;
    src_loc at = r->p.l.tok.loc;
    if (!read_list(r, n, dts, bodies))
        return false;
    if (lexer_accept(&r->p.l, "where")) {
        where = parse_expr(&r->p, DT_BOOL);
        if (!where || where->type.dt != DT_BOOL || !reducer)
            return lexer_error(&r->p.l, "expected a condition of a reduction before this");
    }
    if (!check_reads(r, at, name, n_axes + n_reduce, axes, where, n, bodies))
        return false;
    for (uint32_t i = 0; i < n_axes; i++)
        dims[i] = axes[i]->extent;
    te_compute_n(r->g, name, n_axes, dims, axes, n_reduce, reduce, reducer, where, n, dts, bodies, out);
    return declare_tensors(r, out[0]->node, name, mark);
}

static bool read_check(te_reader *r)
{
    const char *name = NULL;
    uint32_t n_axes = 0, mark = r->p.scope.len;
    te_axis *axes[2 * TYPE_MAX_RANK];
    int64_t count = 1, status = 0;
    if (!ident(r, &name) || !read_axes(r, AXIS_DATA, axes, &n_axes, &count) || !lexer_expect(&r->p.l, ":"))
        return false;
    src_loc at = r->p.l.tok.loc;
    tir_expr_ref holds = parse_expr(&r->p, DT_BOOL);
    if (!holds || holds->type.dt != DT_BOOL)
        return lexer_error(&r->p.l, "expected a condition before this");
    if (!check_reads(r, at, name, n_axes, axes, NULL, 1, &holds) || !lexer_expect(&r->p.l, ",") ||
        !lexer_int(&r->p.l, &status) || !lexer_expect(&r->p.l, ","))
        return false;
    if (status == 0 || status < INT32_MIN || status > INT32_MAX || r->p.l.tok.kind != TOK_STRING)
        return lexer_error(&r->p.l, "a check ends with a 32-bit status other than 0 and a message");
    te_check(r->g, name, n_axes, axes, holds, (int32_t)status, r->p.l.tok.text);
    lexer_next(&r->p.l);
    r->p.scope.len = mark;
    return true;
}

/* --- operations written as loops --- */

/* What the loops of one do with tensors. */
typedef struct extern_use {
    te_reader *r;
    const te_node *n;
    VEC(te_tensor *) inputs; /* that they read, in order */
    const tir_buffer *foreign; /* one that they write and that is not theirs */
} extern_use;

static void note_read(void *ctx, tir_expr_ref e)
{
    extern_use *u = ctx;
    te_tensor *t = tir_is_access(e) ? te_tensor_of(u->r->g, e->u.buffer) : NULL;
    bool known = !t || t->node == u->n;
    for (uint32_t i = 0; i < u->inputs.len && !known; i++)
        known = u->inputs.data[i] == t;
    if (!known)
        vec_push(&u->r->g->c->mem, &u->inputs, t);
}

static void note_write(void *ctx, tir_stmt *s)
{
    extern_use *u = ctx;
    const te_tensor *t = s->kind == TIR_STORE ? te_tensor_of(u->r->g, s->buffer) : NULL;
    if (t && t->node != u->n)
        u->foreign = s->buffer;
}

/* The loops as a function over all tensors so far. With symbols, what is made of the whole computation is verified. */
static bool verify_loops(const te_reader *r, src_loc at, const te_node *n, tir_stmt *body)
{
    const te_graph *g = r->g;
    compiler *c = g->c;
    if (g->symbols.len > 0)
        return true;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, g->by_buffer.len);
    for (uint32_t i = 0; i < g->by_buffer.len; i++)
        params[i] = g->by_buffer.data[i]->buffer;
    tir_func f = {.name = n->name, .params = params, .n_params = g->by_buffer.len, .body = body, .loc = at};
    f.index_type = DT_I64;
    return tir_verify(c, &f);
}

static bool read_loops(te_reader *r, te_node *n)
{
    extern_use u = {.r = r, .n = n};
    src_loc at = r->p.l.tok.loc;
    n->stmt = parse_block(&r->p);
    if (!n->stmt)
        return false;
    flat_scan flat = {.g = r->g};
    tir_visit_stmt(n->stmt, note_write, note_read, &u);
    tir_visit_stmt(n->stmt, scan_flat_store, scan_flat, &flat);
    if (u.foreign)
        return parse_error_at(&r->p, at, "%s writes %s, which is not its own", n->name, u.foreign->name);
    if (!refuse_flat(r, at, &flat))
        return false;
    n->inputs = u.inputs.data;
    n->n_inputs = u.inputs.len;
    return verify_loops(r, at, n, n->stmt);
}

static tir_stmt *no_loops(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    (void)ctx;
    (void)in;
    (void)out;
    return tir_seq(g->c, 0, NULL);
}

/* extern sorted: float32[4], int64[4] { loops } */
static bool read_extern(te_reader *r)
{
    const char *name = NULL;
    uint32_t n = 0, mark = r->p.scope.len, ranks[MAX_RESULTS];
    tir_expr_ref dims[MAX_RESULTS][TYPE_MAX_RANK];
    tir_expr_ref const *shapes[MAX_RESULTS];
    dtype dts[MAX_RESULTS];
    te_tensor *out[MAX_RESULTS];
    if (!ident(r, &name) || !lexer_expect(&r->p.l, ":"))
        return false;
    do {
        if (n == MAX_RESULTS)
            return lexer_error(&r->p.l, "expected at most %u results", MAX_RESULTS);
        if (!read_tensor(r, &dts[n], dims[n], &ranks[n]))
            return false;
        shapes[n] = dims[n];
        n++;
    } while (lexer_accept(&r->p.l, ","));
    te_extern(r->g, name, 0, NULL, n, dts, ranks, shapes, no_loops, NULL, out);
    return declare_tensors(r, out[0]->node, name, mark) && read_loops(r, out[0]->node);
}

static bool read_return(te_reader *r)
{
    te_tensor *outs[MAX_RESULTS];
    uint32_t n = 0;
    do {
        const tir_buffer *b = n < MAX_RESULTS ? parse_buffer_ref(&r->p) : NULL;
        if (!b)
            return lexer_error(&r->p.l, "expected at most %u results", MAX_RESULTS);
        outs[n++] = te_tensor_of(r->g, b);
    } while (lexer_accept(&r->p.l, ","));
    te_set_outputs(r->g, n, outs);
    return r->p.l.tok.kind == TOK_END || lexer_error(&r->p.l, "expected the end after the results");
}

bool te_parse(compiler *c, const char *file, const char *text, size_t len, te_graph **out)
{
    te_reader r = {.g = te_graph_new(c), .p = {.c = c, .index_type = DT_I64}, .bounds = tir_bounds_new(c)};
    *out = NULL;
    lexer_init(&r.p.l, &c->mem, c->names, &c->diags, file, text, len);
    r.g->loc = r.p.l.tok.loc;
    while (!r.p.l.failed) {
        bool ok;
        if (lexer_accept(&r.p.l, "return")) {
            ok = read_return(&r);
            *out = ok ? r.g : NULL;
            return ok;
        }
        if (lexer_accept(&r.p.l, "symbol"))
            ok = read_symbol(&r);
        else if (lexer_accept(&r.p.l, "placeholder"))
            ok = read_placeholder(&r);
        else if (lexer_accept(&r.p.l, "compute"))
            ok = read_compute(&r);
        else if (lexer_accept(&r.p.l, "check"))
            ok = read_check(&r);
        else if (lexer_accept(&r.p.l, "extern"))
            ok = read_extern(&r);
        else if (r.p.l.tok.kind == TOK_PUNCT && r.g->nodes.len > 0)
            return lexer_error(&r.p.l,
                               "expected the end of the operation before '%s': put operators in parentheses, (a + b)",
                               r.p.l.tok.text);
        else
            return lexer_error(&r.p.l, "expected placeholder, compute, extern, check or return");
        if (!ok)
            return false;
    }
    return false;
}
