/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that only widen bytes into a buffer of 16-bit numbers, less a zero point, become instructions that take a word
 * of four bytes at a time (../widen.c): compilers move byte after byte, and write much code for it. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/linear.h"
#include "tir/pass/loop_work.h"
#include "tir/pass/select.h"
#include "tir/walk.h"

#define MOST_LOOPS 3
#define MANY       16 /* bytes of a run, which an instruction is meant for */
#define FEW_CHANNELS 16 /* of which some are left over by fours */

/* A loop around the move: its steps in the buffer and in the data. */
typedef struct move_loop {
    tir_stmt *loop;
    tir_expr_ref to, from;
} move_loop;

typedef struct move {
    const tir_selector *x;
    move_loop loops[MOST_LOOPS]; /* outermost first */
    uint32_t n;
    tir_stmt *store;
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
    tir_stmt *first = m->loops[0].loop;
    if (m->n < 2 || !tir_is_binary(x, TIR_LT) || !is_fixed(m, x->args[1]))
        return false;
    tir_expr_ref by = step_along(m, x->args[0], first->var),
                 start = tir_substitute(m->x->c, x->args[0], 1, &first->var, &first->min);
    return by && tir_is_const(by, 1) && is_fixed(m, start) &&
           tir_prove(m->x->bounds, tir_binary(m->x->c, TIR_LT, start, x->args[1]));
}

static bool read_condition(move *m, tir_expr_ref x)
{
    if (tir_is_binary(x, TIR_AND))
        return read_condition(m, x->args[0]) && read_condition(m, x->args[1]);
    if (is_fixed(m, x)) {
        m->inside = m->inside ? tir_and(m->x->c, m->inside, x) : x;
        return true;
    }
    if (m->below || !is_limit(m, x))
        return false;
    m->below = x;
    return true;
}

static bool read_value(move *m, tir_expr_ref x)
{
    tir_expr_ref zero = tir_const(m->x->c, DT_I16, 0);
    if (x->kind == TIR_SELECT && tir_is_const(x->args[2], 0)) {
        if (!read_condition(m, x->args[0]))
            return false;
        x = x->args[1];
    }
    if (tir_is_binary(x, TIR_SUB)) {
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
    tir_range r = tir_range_of(m->x->bounds, zero); /* zeros are made of bytes that are the zero point */
    return (!m->inside && !m->below) ||
           (r.known_min && r.known_max && r.min >= dtype_min_int(dt) && r.max <= dtype_max_int(dt));
}

/* Scratch: no operand lies there. */
static bool is_scratch(const tir_func *f, const tir_buffer *b)
{
    bool found = b->dt == DT_I16 && (b->scope == SCOPE_GLOBAL || b->scope == SCOPE_LOCAL);
    for (uint32_t i = 0; i < f->n_params; i++)
        found = found && f->params[i] != b;
    return found;
}

/* What `at` grows by when v does; NULL: that is no number that all iterations share. */
static tir_expr_ref step_along(const move *m, tir_expr_ref at, const tir_var *v)
{
    linear all, by = {0};
    tir_bounds *b = m->x->bounds;
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

static tir_expr_ref put_at(const move *m)
{
    return tir_select_flat(m->x, m->store->buffer, m->store->n_indices, m->store->indices);
}

static tir_expr_ref read_at(const move *m)
{
    return tir_select_flat(m->x, m->load->u.buffer, m->load->n_args, m->load->args);
}

static bool read_move(move *m, tir_stmt *s)
{
    for (; s->kind == TIR_FOR; s = s->body) {
        if (m->n == MOST_LOOPS || s->for_kind != FOR_SERIAL || (m->n > 0 && !is_fixed(m, s->min)) ||
            (m->n > 0 && !is_fixed(m, s->extent)))
            return false;
        m->loops[m->n++].loop = s;
    }
    if (m->n == 0 || s->kind != TIR_STORE || !is_scratch(m->x->f, s->buffer) || !read_value(m, s->value))
        return false;
    m->store = s;
    tir_expr_ref to = put_at(m), from = read_at(m);
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

/* Where the first iteration of all loops has the element. */
static tir_expr_ref start_of(const move *m, const tir_buffer *b, tir_expr_ref at)
{
    for (uint32_t i = 0; i < m->n; i++)
        at = tir_substitute(m->x->c, at, 1, &m->loops[i].loop->var, &m->loops[i].loop->min);
    return tir_address(m->x->c, b, 1, &at);
}

/* Runs that are read; 0 where all of them are outside. */
static tir_expr_ref some_of(const move *m)
{
    compiler *c = m->x->c;
    const tir_stmt *first = m->loops[0].loop;
    tir_expr_ref start = tir_substitute(c, m->below->args[0], 1, &first->var, &first->min),
                 some = tir_sub(c, m->below->args[1], start);
    return m->inside ? tir_select(c, m->inside, some, tir_int(c, some->type.dt, 0)) : some;
}

/* The row NAME of the bytes' type, or its form with a condition; counts: its symbols but for the zero point. */
static tir_stmt *instruction(const move *m, const char *form, uint32_t n, tir_expr_ref const *counts)
{
    compiler *c = m->x->c;
    const char *name = arena_printf(&c->mem, "widen_%s%s%s%s", m->below ? "some_" : "", form,
                                    m->inside && !m->below ? "_inside" : "", m->load->type.dt == DT_I8 ? "" : "_u8");
    tir_expr_ref args[TIR_INTRIN_OPERANDS + TIR_INTRIN_SYMBOLS] = {start_of(m, m->store->buffer, put_at(m)),
                                                                   start_of(m, m->load->u.buffer, read_at(m))};
    uint32_t k = 2;
    for (uint32_t i = 0; i < n; i++)
        args[k++] = counts[i];
    args[k++] = m->zero;
    if (m->below)
        args[k++] = some_of(m);
    else if (m->inside)
        args[k++] = m->inside;
    return tir_evaluate(c, tir_select_instr(c, name, k, args));
}

/* Channels beside each other in the data, columns in the buffer. */
static tir_stmt *planes_of(const move *m)
{
    for (uint32_t i = 0; m->n == 2 && !m->below && i < 2; i++) {
        const move_loop *channel = &m->loops[i], *column = &m->loops[1 - i];
        int64_t n = 0;
        if (tir_is_int(channel->loop->extent, &n) && n % 4 != 0 && n < FEW_CHANNELS)
            continue;
        if (tir_is_const(channel->from, 1) && tir_is_const(column->to, 1) && !tir_is_const(channel->to, 1))
            return instruction(
                m, "planes", 4,
                (tir_expr_ref[]){channel->loop->extent, column->loop->extent, channel->to, column->from});
    }
    return NULL;
}

static bool at_most(tir_expr_ref x, int64_t most)
{
    int64_t n = 0;
    return tir_is_int(x, &n) && n <= most;
}

/* Fewer bytes are moved where they are: 7 of several runs, 15 of one. */
static tir_stmt *runs_of(const move *m)
{
    const move_loop *inner = &m->loops[m->n - 1], *outer = m->n > 1 ? &m->loops[0] : NULL;
    const bool by_fours = m->n == 3 && steps(inner, 1, 1) && tir_is_const(inner->loop->extent, 4) &&
                          tir_is_const(m->loops[1].from, 4);
    tir_expr_ref none = tir_i64(m->x->c, 0), one = tir_i64(m->x->c, 1);
    if (by_fours)
        return instruction(m, "fours", 5,
                           (tir_expr_ref[]){outer->loop->extent, m->loops[1].loop->extent, outer->to, outer->from,
                                            m->loops[1].to});
    if (m->n > 2 || !steps(inner, 1, 1) || at_most(inner->loop->extent, outer ? 7 : 15))
        return NULL;
    return instruction(m, "runs", 4,
                       (tir_expr_ref[]){outer ? outer->loop->extent : one, inner->loop->extent,
                                        outer ? outer->to : none, outer ? outer->from : none});
}

static tir_stmt *widened(const tir_selector *x, tir_stmt *loop)
{
    move m = {.x = x};
    if (!read_move(&m, loop))
        return NULL;
    tir_stmt *planes = planes_of(&m);
    return planes ? planes : runs_of(&m);
}

/* 16-bit numbers in scratch, each made of a byte by no more than a sum, where the one or the other are neighbors. */
static bool is_meant(const tir_selector *x, tir_stmt *loop)
{
    loop_work w;
    if (!loop_work_of(x, loop, &w) || !w.store || !is_scratch(x->f, w.store->buffer) || w.inner > 0 ||
        w.rows + w.others != 1 || w.looked_up > 0 || (w.rows == 0 && !w.steps) || dtype_bits(w.widest) != 8)
        return false;
    return (w.kinds & ~(uint32_t)(WORK_CASTS | WORK_SUMS | WORK_CHOICES)) == 0 && w.rounds >= MANY;
}

const tir_selection tir_selection_widen = {.fits = cortex_m_has_words, .loop = widened, .meant_loop = is_meant};
