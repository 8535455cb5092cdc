/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that only widen bytes into a buffer of 16-bit numbers, less a zero point, as calls of functions that take a
 * word of four bytes at a time (processors with SXTB16): compilers move byte after byte, and write much code for it. A
 * package has each function once. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"
#include "type/target.h"

#define MOST_LOOPS 3
#define FEW_CHANNELS 16 /* of which some are left over by fours */

/* A loop around the move: its steps in the buffer and in the data. */
typedef struct move_loop {
    const tir_stmt *loop;
    tir_expr_ref to, from;
} move_loop;

typedef struct move {
    c_emit *e;
    move_loop loops[MOST_LOOPS]; /* outermost first */
    uint32_t n;
    const tir_stmt *store;
    tir_expr_ref inside; /* NULL: always; else zeros are written where it does not hold */
    tir_expr_ref below;  /* NULL: all; else the outermost loop's first iterations, until this does not hold: a < b */
    tir_expr_ref load, zero;
} move;

typedef struct var_use {
    const move *m;
    bool found;
} var_use;

static void note_use(void *ctx, tir_expr_ref x)
{
    var_use *u = ctx;
    u->found |= tir_is_access(x) || tir_is_call(x);
    for (uint32_t i = 0; i < u->m->n && x->kind == TIR_VAR; i++)
        u->found |= u->m->loops[i].loop->var == x->u.var;
}

/* The same in all iterations, and found without a look at memory. */
static bool is_fixed(const move *m, tir_expr_ref x)
{
    var_use u = {m, false};
    tir_visit_expr(x, note_use, &u);
    return !u.found;
}

static tir_expr_ref step_along(const move *m, tir_expr_ref at, const tir_var *v);

/* a < b, where a grows by 1 with the outermost loop, begins below b, and knows no other loop. */
static bool is_limit(const move *m, tir_expr_ref x)
{
    const tir_stmt *first = m->loops[0].loop;
    if (m->n < 2 || x->kind != TIR_BINOP || x->op != TIR_LT || !is_fixed(m, x->args[1]))
        return false;
    tir_expr_ref by = step_along(m, x->args[0], first->var),
                 start = tir_substitute(m->e->c, x->args[0], 1, &first->var, &first->min);
    return by && tir_is_const(by, 1) && is_fixed(m, start) &&
           tir_prove(m->e->bounds, tir_binary(m->e->c, TIR_LT, start, x->args[1]));
}

static bool read_condition(move *m, tir_expr_ref x)
{
    if (x->kind == TIR_BINOP && x->op == TIR_AND)
        return read_condition(m, x->args[0]) && read_condition(m, x->args[1]);
    if (is_fixed(m, x)) {
        m->inside = m->inside ? tir_and(m->e->c, m->inside, x) : x;
        return true;
    }
    if (m->below || !is_limit(m, x))
        return false;
    m->below = x;
    return true;
}

static bool read_value(move *m, tir_expr_ref x)
{
    tir_expr_ref zero = tir_const(m->e->c, DT_I16, 0);
    if (x->kind == TIR_SELECT && tir_is_const(x->args[2], 0)) {
        if (!read_condition(m, x->args[0]))
            return false;
        x = x->args[1];
    }
    if (x->kind == TIR_BINOP && x->op == TIR_SUB) {
        zero = x->args[1];
        x = x->args[0];
    }
    if (x->type.dt != DT_I16 || x->type.lanes != 1 || x->kind != TIR_CAST || x->args[0]->kind != TIR_LOAD)
        return false;
    m->load = x->args[0];
    m->zero = zero;
    const dtype dt = m->load->type.dt;
    if ((dt != DT_I8 && dt != DT_U8) || !is_fixed(m, zero))
        return false;
    tir_range r = tir_range_of(m->e->bounds, zero); /* zeros are made of bytes that are the zero point */
    return (!m->inside && !m->below) ||
           (r.known_min && r.known_max && r.min >= dtype_min_int(dt) && r.max <= dtype_max_int(dt));
}

/* Scratch: no operand lies there. */
static bool is_scratch(const c_emit *e, const tir_buffer *b)
{
    bool found = b->dt == DT_I16 && (b->scope == SCOPE_GLOBAL || b->scope == SCOPE_LOCAL);
    for (uint32_t i = 0; i < e->f->n_params; i++)
        found = found && e->f->params[i] != b;
    return found;
}

/* What `at` grows by when v does; NULL: that is no number that all iterations share. */
static tir_expr_ref step_along(const move *m, tir_expr_ref at, const tir_var *v)
{
    linear all, by = {0};
    tir_bounds *b = m->e->bounds;
    if (!linear_of(b, at, &all))
        return NULL;
    for (uint32_t i = 0; i < all.len; i++) {
        linear_term t = {all.terms[i].coeff, 0, {0}};
        for (uint32_t k = 0; k < all.terms[i].n; k++) {
            tir_expr_ref atom = all.terms[i].atoms[k];
            if (atom->kind != TIR_VAR || atom->u.var != v)
                t.atoms[t.n++] = atom;
        }
        for (uint32_t k = 0; t.n < all.terms[i].n && k < t.n; k++)
            if (!is_fixed(m, t.atoms[k]))
                return NULL;
        bool other = t.n + 1 < all.terms[i].n;
        for (uint32_t k = 0; t.n == all.terms[i].n && k < t.n; k++)
            other |= t.atoms[k]->kind != TIR_VAR && tir_uses_var(t.atoms[k], v);
        if (other || (t.n < all.terms[i].n && !linear_add_term(b, &by, &t)))
            return NULL;
    }
    return linear_build(b, at->type.dt, &by);
}

static tir_expr_ref flat_index(const move *m, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    return expr_flat(m->e, b, n, indices);
}

static bool read_move(move *m, const tir_stmt *s)
{
    for (; s->kind == TIR_FOR; s = s->body) {
        if (m->n == MOST_LOOPS || s->for_kind != FOR_SERIAL || (m->n > 0 && !is_fixed(m, s->min)) ||
            (m->n > 0 && !is_fixed(m, s->extent)))
            return false;
        m->loops[m->n++].loop = s;
    }
    if (m->n == 0 || s->kind != TIR_STORE || !is_scratch(m->e, s->buffer) || !read_value(m, s->value))
        return false;
    m->store = s;
    tir_expr_ref to = flat_index(m, s->buffer, s->n_indices, s->indices),
                 from = flat_index(m, m->load->u.buffer, m->load->n_args, m->load->args);
    for (uint32_t i = 0; i < m->n; i++) {
        move_loop *l = &m->loops[i];
        l->to = step_along(m, to, l->loop->var);
        l->from = step_along(m, from, l->loop->var);
        if (!l->to || !l->from)
            return false;
    }
    return true;
}

static bool steps(const move_loop *l, int64_t to, int64_t from)
{
    return tir_is_const(l->to, to) && tir_is_const(l->from, from);
}

/* Loops in that order whose indices begin where the first iteration has them. */
static const char *start_of(const move *m, const tir_buffer *b, tir_expr_ref at)
{
    for (uint32_t i = 0; i < m->n; i++)
        at = tir_substitute(m->e->c, at, 1, &m->loops[i].loop->var, &m->loops[i].loop->min);
    return arena_printf(m->e->tmp, "&%s[%s]", expr_name(m->e, b), expr_text(m->e, at).s);
}

static const char *text(const move *m, tir_expr_ref x)
{
    return expr_text(m->e, x).s;
}

/* The call, its last arguments given. */
static void write_call(const move *m, const char *name, const char *counts)
{
    c_emit *e = m->e;
    const dtype dt = m->load->type.dt;
    const tir_stmt *s = m->store;
    const char *from = start_of(m, m->load->u.buffer,
                                flat_index(m, m->load->u.buffer, m->load->n_args, m->load->args)),
               *to = start_of(m, s->buffer, flat_index(m, s->buffer, s->n_indices, s->indices));
    if (m->inside)
        from = arena_printf(e->tmp, "%s ? %s : (const %s *)0", expr_condition(e, m->inside), from, dtype_c_name(dt));
    needs_add_kernel(e->needs, arena_printf(e->needs->a, "kernel/dsp/%s_%s.h", name, dtype_name(dt)));
    w_line(e->w, "lathe_%s_%s(%s, %s, %s, %s);", name, dtype_name(dt), to, from, text(m, m->zero), counts);
}

/* Channels beside each other in the data, columns in the buffer. */
static bool write_planes(const move *m)
{
    for (uint32_t i = 0; m->n == 2 && !m->below && i < 2; i++) {
        const move_loop *channel = &m->loops[i], *column = &m->loops[1 - i];
        int64_t n = 0;
        if (tir_is_int(channel->loop->extent, &n) && n % 4 != 0 && n < FEW_CHANNELS)
            continue;
        if (!tir_is_const(channel->from, 1) || !tir_is_const(column->to, 1) || tir_is_const(channel->to, 1))
            continue;
        write_call(m, "widen_planes",
                   arena_printf(m->e->tmp, "%s, %s, %s, %s", text(m, channel->loop->extent), text(m, channel->to),
                                text(m, column->loop->extent), text(m, column->from)));
        return true;
    }
    return false;
}

static bool at_most(tir_expr_ref x, int64_t most)
{
    int64_t n = 0;
    return tir_is_int(x, &n) && n <= most;
}

static const char *run_counts(const move *m, const char *runs, const char *count, const char *apart)
{
    const move_loop *outer = &m->loops[0];
    return arena_printf(m->e->tmp, "%s, %s, %s, %s, %s", runs, text(m, outer->to), text(m, outer->from), count, apart);
}

/* Those that there are, then zeros. */
static void write_some_runs(const move *m, const char *count, const char *apart)
{
    c_emit *e = m->e;
    const tir_stmt *first = m->loops[0].loop, *s = m->store;
    const uint32_t depth = e->names.len;
    const char *all = scalar_at(e->tmp, expr_text(e, first->extent), PREC_ADD),
               *to = start_of(m, s->buffer, flat_index(m, s->buffer, s->n_indices, s->indices));
    tir_expr_ref start = tir_substitute(e->c, m->below->args[0], 1, &first->var, &first->min);
    w_str(e->w, "{\n");
    e->w->indent++;
    const char *name = names_push(e, m->below, "inside", false);
    w_line(e->w, "const int32_t %s = %s;", name, text(m, tir_sub(e->c, m->below->args[1], start)));
    write_call(m, "widen_runs",
               run_counts(m, arena_printf(e->tmp, "%s < %s ? %s : %s", name, all, name, all), count, apart));
    w_open(e->w, "if (%s < %s)", name, all);
    w_line(e->w, "lathe_widen_runs_%s(%s + %s * %s, 0, %s, %s);", dtype_name(m->load->type.dt), to, name,
           scalar_at(e->tmp, expr_text(e, m->loops[0].to), PREC_MUL), text(m, m->zero),
           run_counts(m, arena_printf(e->tmp, "%s - %s", all, name), count, apart));
    w_close(e->w, "");
    w_close(e->w, "");
    e->names.len = depth;
}

/* Fewer bytes are moved where they are: 7 of several runs, 15 of one. */
static bool write_runs(const move *m)
{
    const move_loop *inner = &m->loops[m->n - 1], *outer = m->n > 1 ? &m->loops[0] : NULL;
    const bool by_fours = m->n == 3 && steps(inner, 1, 1) && tir_is_const(inner->loop->extent, 4) &&
                          tir_is_const(m->loops[1].from, 4);
    if (!by_fours && (m->n > 2 || !steps(inner, 1, 1) || at_most(inner->loop->extent, outer ? 7 : 15)))
        return false;
    const char *count = text(m, by_fours ? tir_mul(m->e->c, m->loops[1].loop->extent, inner->loop->extent)
                                         : inner->loop->extent),
               *apart = by_fours ? text(m, m->loops[1].to) : "4";
    if (m->below) {
        write_some_runs(m, count, apart);
        return true;
    }
    write_call(m, "widen_runs",
               outer ? run_counts(m, text(m, outer->loop->extent), count, apart)
                     : arena_printf(m->e->tmp, "1, 0, 0, %s, %s", count, apart));
    return true;
}

bool widen_write(c_emit *e, const tir_stmt *s)
{
    move m = {.e = e};
    const target *t = e->f->target;
    if (!t || !t->small || (t->features & TARGET_DSP) == 0 || !read_move(&m, s))
        return false;
    return write_planes(&m) || write_runs(&m);
}
