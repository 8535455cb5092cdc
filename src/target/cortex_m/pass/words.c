/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes, four at a time in a word (../words.c): minima and maxima, also those of a window (pools), and sums
 * of bytes. What the last few elements get is the loop as it was. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/facts.h"
#include "tir/instr.h"
#include "tir/node.h"
#include "tir/pass/bytes.h"
#include "tir/pass/guard.h"
#include "tir/pass/loop_work.h"
#include "tir/walk.h"

#define LANES       4
#define MOST_LOOPS  3
#define MANY_SUMMED 10000
#define WRITTEN_OUT 9   /* taps of a window */
#define FEW_TAPS    4   /* whose addresses fit into registers */
#define PAIRED_TAPS 256 /* of i8 and of u8, whose sums fit into 16 bits */

typedef struct words {
    bytes b;
    /* A window: acc begins as `first`, and becomes op(acc, term) in loops. */
    const tir_buffer *acc, *word; /* word: what acc is of four bytes */
    tir_expr_ref first, term;
    tir_op op;
    tir_stmt *loops[MOST_LOOPS]; /* outermost first */
    tir_stmt *all_of[MOST_LOOPS]; /* the same loops without guards */
    uint32_t n_loops;
    int64_t taps;        /* 0: nobody knows */
    tir_expr_ref guards; /* of places in the window; NULL: there are none */
    tir_stmt *all, *rest; /* what stands behind it, and its store */
    tir_expr_ref rare;   /* where it holds, more is done than that; NULL: nowhere */
    bool out;            /* the window is written out */
} words;

/* --- what is in step with the loop --- */

typedef struct use {
    const words *w;
    bool fixed; /* the same in all iterations, and nobody writes it here */
} use;

static void note_use(void *ctx, tir_expr_ref x)
{
    use *u = ctx;
    const words *w = u->w;
    if (x->kind == TIR_VAR && x->u.var == w->b.loop->var)
        u->fixed = false;
    if (tir_is_call(x) || (tir_is_access(x) && (x->u.buffer == w->b.into || x->u.buffer == w->acc)))
        u->fixed = false;
}

static bool is_fixed(const words *w, tir_expr_ref x)
{
    use u = {w, true};
    tir_visit_expr(x, note_use, &u);
    return u.fixed;
}

static bool is_acc(const words *w, tir_expr_ref x)
{
    return x->kind == TIR_LOAD && w->acc && x->u.buffer == w->acc;
}

static bool is_extreme(tir_expr_ref x)
{
    return x->kind == TIR_BINOP && (x->op == TIR_MAX || x->op == TIR_MIN);
}

static bool fits(const words *w, tir_expr_ref x)
{
    if (!bytes_is_byte(x))
        return false;
    if (is_fixed(w, x) || is_acc(w, x))
        return true;
    if (x->kind == TIR_CAST)
        return fits(w, x->args[0]);
    return is_extreme(x) ? fits(w, x->args[0]) && fits(w, x->args[1]) : bytes_is_row(&w->b, x);
}

/* --- four bytes --- */

static compiler *c_of(const words *w)
{
    return w->b.x->c;
}

static tir_expr_ref instruction(const words *w, const char *name, dtype dt, uint32_t n, tir_expr_ref const *args)
{
    const char *row = arena_printf(&c_of(w)->mem, "%s%s", name, dt == DT_I8 ? "" : "_u8");
    return tir_select_instr(c_of(w), row, n, args);
}

static tir_expr_ref register_of(const words *w, const tir_buffer *b, int64_t i)
{
    tir_expr_ref at = tir_int(c_of(w), w->b.loop->var->type.dt, i);
    return tir_load(c_of(w), b, 1, &at);
}

static tir_stmt *put_register(const words *w, const tir_buffer *b, int64_t i, tir_expr_ref value)
{
    tir_expr_ref at = tir_int(c_of(w), w->b.loop->var->type.dt, i);
    return tir_store(c_of(w), b, 1, &at, value);
}

static const tir_buffer *new_registers(const words *w, const char *name, dtype dt, int64_t n)
{
    return tir_buffer_static(c_of(w), name, dt, 1, &n, SCOPE_REG);
}

static tir_expr_ref word_of(const words *w, tir_expr_ref x)
{
    compiler *c = c_of(w);
    if (is_fixed(w, x))
        return tir_mul(c, tir_cast(c, DT_U32, tir_cast(c, DT_U8, x)), tir_int(c, DT_U32, 0x01010101));
    if (is_acc(w, x))
        return register_of(w, w->word, 0);
    if (x->kind == TIR_CAST)
        return word_of(w, x->args[0]);
    if (is_extreme(x))
        return instruction(w, x->op == TIR_MAX ? "max_of_words" : "min_of_words", x->type.dt, 2,
                           (tir_expr_ref[]){word_of(w, x->args[0]), word_of(w, x->args[1])});
    tir_expr_ref at = bytes_flat(&w->b, x), from = tir_address(c, x->u.buffer, 1, &at);
    const bool many = w->out && w->taps > FEW_TAPS;
    return instruction(w, many ? "word_of_in_window" : "word_of", x->type.dt, 1, &from);
}

static tir_stmt *put_word(const words *w, const tir_stmt *s)
{
    compiler *c = c_of(w);
    tir_expr_ref at = w->b.at, args[] = {tir_address(c, s->buffer, 1, &at), word_of(w, s->value)};
    return tir_evaluate(c, instruction(w, "put_word", s->buffer->dt, 2, args));
}

/* --- windows --- */

/* Guards become bounds of the window's loops, which do not depend on each other. */
static bool narrow_window(words *w)
{
    compiler *c = c_of(w);
    tir_expr_ref left = w->guards;
    for (uint32_t i = w->n_loops; i-- > 0 && left;) {
        const tir_stmt *l = w->loops[i];
        const tir_behind_guard by = tir_behind(c, l, left);
        for (uint32_t j = 0; j < w->n_loops; j++)
            if (tir_uses_var(by.min, w->loops[j]->var) || tir_uses_var(by.extent, w->loops[j]->var))
                return false;
        w->loops[i] = tir_for(c, l->var, tir_simplify(w->b.x->bounds, by.min),
                              tir_simplify(w->b.x->bounds, by.extent), FOR_SERIAL, l->body);
        left = by.left;
    }
    return !left;
}

/* A loop of the window, or a guard around a part of it. */
static bool add_loop(words *w, tir_stmt *s)
{
    int64_t n = 0;
    if (s->kind == TIR_IF) {
        w->guards = tir_and(c_of(w), w->guards, s->cond);
        return !s->orelse && is_fixed(w, s->cond);
    }
    if (w->n_loops == MOST_LOOPS || s->for_kind == FOR_PARALLEL || s->for_kind == FOR_VTHREAD ||
        !is_fixed(w, s->min) || !is_fixed(w, s->extent))
        return false;
    w->taps *= tir_is_int(s->extent, &n) && n <= PAIRED_TAPS && w->taps <= PAIRED_TAPS ? n : 0;
    w->all_of[w->n_loops] = s;
    w->loops[w->n_loops++] = s;
    return true;
}

/* acc = op(acc, term) in loops that all elements share. */
static bool read_window(words *w, tir_stmt *s)
{
    w->taps = 1;
    for (; s->kind == TIR_FOR || s->kind == TIR_IF; s = s->body)
        if (!add_loop(w, s))
            return false;
    w->taps = w->taps <= PAIRED_TAPS ? w->taps : 0;
    tir_expr_ref x = s->kind == TIR_STORE && s->buffer == w->acc ? s->value : NULL;
    if (!narrow_window(w) || !x || w->n_loops == 0 || x->kind != TIR_BINOP || x->n_args != 2)
        return false;
    const bool second = is_acc(w, x->args[1]) && x->op != TIR_SUB;
    w->op = x->op;
    w->term = x->args[second ? 0 : 1];
    return is_acc(w, x->args[second ? 1 : 0]);
}

#define MOST_PRIVATE 2

typedef struct rarely {
    compiler *c;
    const tir_buffer *own[MOST_PRIVATE]; /* private numbers between the window and the store */
    uint32_t n;
    tir_expr_ref cond; /* of what is rare */
    bool other;        /* conditions differ, or such a number is read */
} rarely;

static tir_expr_ref never(tir_rewriter *r, tir_expr_ref x)
{
    rarely *v = r->ctx;
    if (x->kind != TIR_CALL || x->op != TIR_RARE)
        return x;
    v->other |= v->cond && !tir_expr_equal(v->cond, x->args[0]);
    v->cond = x->args[0];
    return tir_int(r->c, DT_BOOL, 0);
}

static void find_own(void *ctx, tir_expr_ref x)
{
    rarely *v = ctx;
    for (uint32_t i = 0; x->kind == TIR_LOAD && i < v->n; i++)
        v->other |= x->u.buffer == v->own[i];
}

static void find_kept(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_STORE && s->buffer->scope != SCOPE_REG;
}

/* The store that ends s, with its value where nothing rare happens: what stands in front of it makes private numbers,
 * which that value does not read. */
static bool read_rest(words *w, tir_stmt *s)
{
    compiler *c = c_of(w);
    rarely v = {.c = c};
    bool kept = false;
    w->all = s;
    for (; s->kind == TIR_ALLOCATE || s->kind == TIR_SEQ;
         s = s->kind == TIR_SEQ ? s->stmts[s->n_stmts - 1] : s->body) {
        if (s->kind == TIR_ALLOCATE) {
            if (v.n == MOST_PRIVATE || s->buffer->scope != SCOPE_REG)
                return false;
            v.own[v.n++] = s->buffer;
        }
        for (uint32_t i = 0; s->kind == TIR_SEQ && i + 1 < s->n_stmts; i++)
            tir_visit_stmt(s->stmts[i], find_kept, NULL, &kept);
    }
    w->rest = s;
    if (kept || s->kind != TIR_STORE || s->buffer->scope == SCOPE_REG || v.n == 0)
        return v.n == 0 && s->kind == TIR_STORE && s->buffer != w->acc;
    tir_rewriter r = {.c = c, .ctx = &v, .expr = never};
    tir_expr_ref value = tir_simplify(w->b.x->bounds, tir_rewrite_expr(&r, s->value));
    w->rest = tir_store(c, s->buffer, s->n_indices, s->indices, value);
    w->rare = v.cond;
    if (v.cond)
        tir_visit_expr(v.cond, find_own, &v);
    tir_visit_expr(value, find_own, &v);
    return v.cond && !v.other;
}

/* How acc begins, its window, and what is made of it. */
static bool read_parts(words *w, tir_stmt *s)
{
    tir_stmt *all = s->body;
    if (s->buffer->scope != SCOPE_REG || tir_buffer_count(s->buffer) != 1 || all->kind != TIR_SEQ ||
        all->n_stmts != 3 || all->stmts[0]->kind != TIR_STORE || all->stmts[0]->buffer != s->buffer)
        return false;
    w->acc = s->buffer;
    w->first = all->stmts[0]->value;
    return is_fixed(w, w->first) && read_window(w, all->stmts[1]) && read_rest(w, all->stmts[2]);
}

/* s at tap number k of the whole window. */
static tir_stmt *at_tap(const words *w, tir_stmt *s, int64_t k)
{
    compiler *c = c_of(w);
    for (uint32_t i = w->n_loops; i-- > 0;) {
        const tir_stmt *l = w->all_of[i];
        int64_t n = 1;
        (void)tir_is_int(l->extent, &n);
        tir_expr_ref value = tir_add(c, l->min, tir_int(c, l->var->type.dt, k % n));
        s = tir_clone_stmt(c, s, l->var, value);
        k /= n;
    }
    return s;
}

/* s for each tap, one behind the other. */
static tir_stmt *written_out(const words *w, tir_stmt *s)
{
    tir_stmt *all[WRITTEN_OUT];
    for (int64_t k = 0; k < w->taps; k++)
        all[k] = at_tap(w, s, k);
    return tir_seq(c_of(w), (uint32_t)w->taps, all);
}

/* No guard leaves out a tap. */
static tir_expr_ref is_whole(const words *w)
{
    compiler *c = c_of(w);
    tir_expr_ref whole = NULL;
    for (uint32_t i = 0; i < w->n_loops; i++)
        if (w->loops[i] != w->all_of[i])
            whole = tir_and(c, whole, tir_binary(c, TIR_EQ, w->loops[i]->extent, w->all_of[i]->extent));
    return whole;
}

/* s for each tap: written out, where guards may leave out some in the window's loops as well. */
static tir_stmt *in_window(const words *w, tir_stmt *s)
{
    compiler *c = c_of(w);
    tir_expr_ref whole = is_whole(w);
    tir_stmt *loops = s;
    if (w->out && !whole)
        return written_out(w, s);
    for (uint32_t i = w->n_loops; i-- > 0;) {
        const tir_stmt *l = w->loops[i];
        loops = tir_for(c, l->var, l->min, l->extent, l->for_kind, loops);
    }
    return w->out ? tir_if(c, whole, written_out(w, s), loops) : loops;
}

/* The extreme of a window is a byte: four in a word. */
static bool extreme_fits(const words *w)
{
    if ((w->op != TIR_MAX && w->op != TIR_MIN) || w->rare)
        return false;
    return bytes_is_byte(w->first) && bytes_steps_by_one(&w->b, w->b.at) && fits(w, w->term) &&
           fits(w, w->rest->value);
}

/* What any byte replaces need not be put first. */
static tir_stmt *extreme_of(words *w)
{
    compiler *c = c_of(w);
    const dtype dt = w->first->type.dt;
    const bool max = w->op == TIR_MAX;
    const bool replaced = w->out && !w->guards && tir_is_const(w->first, max ? dtype_min_int(dt) : dtype_max_int(dt));
    w->word = new_registers(w, "word", DT_U32, 1);
    tir_expr_ref args[] = {register_of(w, w->word, 0), word_of(w, w->term)};
    tir_stmt *one = put_register(w, w->word, 0, instruction(w, max ? "max_of_words" : "min_of_words", dt, 2, args)),
             *window = in_window(w, one),
             *first = put_register(w, w->word, 0, replaced ? args[1] : word_of(w, w->first));
    if (replaced) {
        tir_stmt *taps[WRITTEN_OUT];
        for (int64_t k = 0; k < w->taps; k++)
            taps[k] = at_tap(w, k == 0 ? first : one, k);
        first = NULL;
        window = tir_seq(c, (uint32_t)w->taps, taps);
    }
    return tir_allocate(c, w->word, tir_seq(c, 3, (tir_stmt *[]){first, window, put_word(w, w->rest)}));
}

/* --- sums --- */

/* The bytes that a term adds, and what it adds beside them, the same for all elements; NULL: something else. */
static tir_expr_ref read_term(const words *w, tir_expr_ref *out_beside)
{
    compiler *c = c_of(w);
    tir_expr_ref x = w->term;
    *out_beside = tir_int(c, DT_I32, 0);
    if (x->type.dt == DT_I32 && x->kind == TIR_BINOP && (x->op == TIR_SUB || x->op == TIR_ADD)) {
        tir_expr_ref beside = x->args[1];
        *out_beside = x->op == TIR_SUB ? tir_sub(c, *out_beside, beside) : beside;
        x = x->args[0];
        for (uint32_t i = 0; i < w->n_loops; i++)
            if (tir_uses_var(beside, w->loops[i]->var))
                return NULL;
        if (!is_fixed(w, beside))
            return NULL;
    }
    if (x->kind != TIR_CAST || x->type.dt != DT_I32)
        return NULL;
    return bytes_is_row(&w->b, x->args[0]) ? x->args[0] : NULL;
}

/* A sum of bytes in i32, of which one byte is made. Of few bytes it is not worth the code, unless a schedule means
 * it. */
static bool sum_fits(const words *w)
{
    tir_expr_ref beside;
    int64_t n = MANY_SUMMED;
    const bool many = !tir_is_int(w->b.loop->extent, &n) || n * w->taps >= MANY_SUMMED || w->rare;
    return many && w->op == TIR_ADD && w->first->type.dt == DT_I32 && w->taps > 0 && read_term(w, &beside);
}

typedef struct lane_rewrite {
    const words *w;
    const tir_buffer *sums;
    tir_expr_ref lane;
} lane_rewrite;

static tir_expr_ref lane_expr(tir_rewriter *r, tir_expr_ref x)
{
    const lane_rewrite *l = r->ctx;
    if (is_acc(l->w, x))
        return tir_load(r->c, l->sums, 1, &l->lane);
    if (x->kind == TIR_VAR && x->u.var == l->w->b.loop->var)
        return tir_add(r->c, x, l->lane);
    return x;
}

/* Of sum number k: the store behind the window, and whether there is more to do. */
static tir_stmt *rest_of(const words *w, const tir_buffer *sums, int64_t k, tir_expr_ref *any)
{
    lane_rewrite l = {w, sums, tir_int(c_of(w), w->b.loop->var->type.dt, k)};
    tir_rewriter r = {.c = c_of(w), .ctx = &l, .expr = lane_expr};
    tir_expr_ref rare = w->rare ? tir_rewrite_expr(&r, w->rare) : NULL;
    *any = !rare || !*any ? rare : tir_binary(c_of(w), TIR_OR, *any, rare);
    return tir_rewrite_stmt(&r, w->rest);
}

/* All that stands behind the window, of one sum after the other. */
static tir_stmt *one_by_one(const words *w, const tir_buffer *sums)
{
    compiler *c = c_of(w);
    const dtype dt = w->b.loop->var->type.dt;
    const int64_t n = LANES;
    const tir_buffer *kept = tir_buffer_static(c, "sums", DT_I32, 1, &n, SCOPE_LOCAL);
    const tir_var *v = tir_new_var(c, "lane", w->b.loop->var->type);
    lane_rewrite l = {w, kept, tir_varref(c, v)};
    tir_rewriter r = {.c = c, .ctx = &l, .expr = lane_expr};
    tir_stmt *all[LANES + 1], *one = tir_clone_stmt(c, tir_rewrite_stmt(&r, w->all), NULL, NULL);
    for (int64_t k = 0; k < LANES; k++)
        all[k] = put_register(w, kept, k, register_of(w, sums, k));
    all[LANES] = tir_for(c, v, tir_int(c, dt, 0), tir_int(c, dt, LANES), FOR_SERIAL, one);
    return tir_allocate(c, kept, tir_seq(c, LANES + 1, all));
}

/* Half a word as a number: sum k of four. */
static tir_expr_ref sum_of(const words *w, dtype dt, tir_expr_ref pair, int64_t k)
{
    compiler *c = c_of(w);
    if (k >= 2)
        pair = tir_binary(c, TIR_SHR, pair, tir_int(c, DT_U32, 16));
    return tir_cast(c, DT_I32, tir_cast(c, dt == DT_I8 ? DT_I16 : DT_U16, pair));
}

static tir_stmt *four_sums(words *w)
{
    compiler *c = c_of(w);
    tir_expr_ref beside, row = read_term(w, &beside), zero = tir_int(c, DT_U32, 0), count = tir_int(c, DT_I32, 1),
                 any = NULL;
    const tir_buffer *even = new_registers(w, "even", DT_U32, 1), *odd = new_registers(w, "odd", DT_U32, 1),
                     *sums = new_registers(w, w->acc->name, DT_I32, LANES);
    const tir_var *word = tir_new_var(c, "word", tir_scalar(DT_U32));
    for (uint32_t i = 0; i < w->n_loops; i++)
        count = tir_mul(c, count, tir_cast(c, DT_I32, w->loops[i]->extent));
    tir_expr_ref evens[] = {register_of(w, even, 0), tir_varref(c, word)},
                 odds[] = {register_of(w, odd, 0), tir_varref(c, word)},
                 first = tir_add(c, w->first, tir_mul(c, beside, count));
    tir_stmt *both[] = {put_register(w, even, 0, instruction(w, "sum_even", row->type.dt, 2, evens)),
                        put_register(w, odd, 0, instruction(w, "sum_odd", row->type.dt, 2, odds))},
             *all[4 + LANES] = {put_register(w, even, 0, zero), put_register(w, odd, 0, zero),
                                in_window(w, tir_let(c, word, word_of(w, row), tir_seq(c, 2, both)))},
             *rests[LANES];
    for (int64_t k = 0; k < LANES; k++) {
        tir_expr_ref sum = sum_of(w, row->type.dt, (k % 2 ? odds : evens)[0], k);
        all[3 + k] = put_register(w, sums, k, tir_add(c, sum, first));
        rests[k] = rest_of(w, sums, k, &any);
    }
    tir_stmt *rest = tir_seq(c, LANES, rests);
    all[3 + LANES] = any ? tir_if(c, tir_call1(c, TIR_RARE, any), one_by_one(w, sums), rest) : rest;
    return tir_allocate(c, even, tir_allocate(c, odd, tir_allocate(c, sums, tir_seq(c, 4 + LANES, all))));
}

/* --- sums in vectors --- */

/* The elements of the loop from its variable on, and those of registers. */
static tir_expr_ref ramp_from(const words *w, tir_expr_ref at)
{
    return tir_ramp(c_of(w), at, tir_int(c_of(w), w->b.loop->var->type.dt, 1), LANES);
}

static tir_expr_ref lanes_expr(tir_rewriter *r, tir_expr_ref x)
{
    const lane_rewrite *l = r->ctx;
    if (is_acc(l->w, x))
        return tir_load(r->c, l->sums, 1, &l->lane);
    return x->kind == TIR_VAR && x->u.var == l->w->b.loop->var ? ramp_from(l->w, x) : x;
}

/* What is compared with a number that it must not reach: of the lanes the least decides. NULL: it is something else. */
static tir_expr_ref read_few(const words *w)
{
    tir_expr_ref e = w->rare;
    return tir_is_binary(e, TIR_LE) && e->args[0]->type.dt == DT_I32 && is_fixed(w, e->args[1]) ? e->args[0] : NULL;
}

static tir_expr_ref always(tir_rewriter *r, tir_expr_ref x)
{
    return x->kind == TIR_CALL && x->op == TIR_RARE ? tir_int(r->c, DT_BOOL, 1) : x;
}

/* All that stands behind the window, of the lanes for which there is more to do. */
static tir_stmt *of_rare_lanes(const words *w, const tir_buffer *sums)
{
    compiler *c = c_of(w);
    const dtype dt = w->b.loop->var->type.dt;
    const int64_t n = LANES;
    const tir_buffer *kept = tir_buffer_static(c, "sums", DT_I32, 1, &n, SCOPE_LOCAL);
    const tir_var *v = tir_new_var(c, "lane", w->b.loop->var->type);
    lane_rewrite l = {w, kept, tir_varref(c, v)};
    tir_rewriter r = {.c = c, .ctx = &l, .expr = lane_expr}, sure = {.c = c, .expr = always};
    tir_expr_ref lanes = ramp_from(w, tir_int(c, dt, 0));
    tir_stmt *one = tir_rewrite_stmt(&r, tir_rewrite_stmt(&sure, w->all));
    one = tir_if(c, tir_rewrite_expr(&r, w->rare), tir_clone_stmt(c, one, NULL, NULL), NULL);
    tir_stmt *all[] = {tir_store(c, kept, 1, &lanes, tir_load(c, sums, 1, &lanes)),
                       tir_for(c, v, tir_int(c, dt, 0), tir_int(c, dt, LANES), FOR_SERIAL, one)};
    return tir_allocate(c, kept, tir_seq(c, 2, all));
}

/* Sums of four neighbors in a vector, and what stands behind them. */
static tir_stmt *lanes_of_sums(words *w)
{
    compiler *c = c_of(w);
    tir_expr_ref beside, row = read_term(w, &beside), count = tir_int(c, DT_I32, 1), few = read_few(w);
    const tir_buffer *sums = new_registers(w, w->acc->name, DT_I32, LANES),
                     *least = new_registers(w, "least", DT_I32, LANES);
    lane_rewrite l = {w, sums, ramp_from(w, tir_int(c, w->b.loop->var->type.dt, 0))};
    tir_rewriter r = {.c = c, .ctx = &l, .expr = lanes_expr};
    if (!few)
        return NULL;
    few = tir_rewrite_expr(&r, few);
    for (uint32_t i = 0; i < w->n_loops; i++)
        count = tir_mul(c, count, tir_cast(c, DT_I32, w->loops[i]->extent));
    tir_expr_ref first = tir_broadcast(c, tir_add(c, w->first, tir_mul(c, beside, count)), LANES),
                 sum = tir_load(c, sums, 1, &l.lane), term = tir_cast(c, DT_I32, tir_rewrite_expr(&r, row)),
                 any = tir_binary(c, TIR_LE, register_of(w, least, 0), w->rare->args[1]);
    tir_stmt *all[] = {tir_store(c, sums, 1, &l.lane, first),
                       in_window(w, tir_store(c, sums, 1, &l.lane, tir_add(c, sum, term))),
                       tir_rewrite_stmt(&r, w->rest),
                       tir_store(c, least, 1, &l.lane, tir_select_instr(c, "lanes_least", 1, &few)),
                       tir_if(c, tir_call1(c, TIR_RARE, any), of_rare_lanes(w, sums), NULL)};
    return tir_allocate(c, least, tir_allocate(c, sums, tir_seq(c, 5, all)));
}

/* --- the loop --- */

/* Indices as they are elsewhere: constants last, which compilers put into loads. */
static tir_expr_ref simplified(tir_rewriter *r, tir_expr_ref x)
{
    if (!tir_is_access(x) || x->n_args != 1)
        return x;
    tir_expr_ref at = tir_simplify(r->ctx, x->args[0]);
    return tir_node_access(r->c, x, x->u.buffer, 1, &at);
}

/* Four elements at a time as `some` has them, then those that are left, one by one. */
static tir_stmt *by_fours(const words *w, tir_stmt *some)
{
    compiler *c = c_of(w);
    const tir_stmt *l = w->b.loop;
    const dtype dt = l->var->type.dt;
    const tir_var *v = tir_new_var(c, "four", l->var->type), *one = tir_new_var(c, l->var->name, l->var->type);
    tir_expr_ref step = tir_int(c, dt, LANES), zero = tir_int(c, dt, 0), all = l->extent;
    if (!tir_prove(w->b.x->bounds, tir_binary(c, TIR_GE, all, zero))) /* below 0 it is a loop without iterations */
        all = tir_max(c, all, zero);
    tir_expr_ref n = tir_floordiv(c, all, step), at = tir_add(c, l->min, tir_mul(c, tir_varref(c, v), step)),
                 left = tir_floormod(c, all, step);
    tir_rewriter r = {.c = c, .ctx = w->b.x->bounds, .expr = simplified};
    tir_stmt *fours = tir_for(c, v, zero, n, FOR_SERIAL,
                              tir_let(c, l->var, at, tir_rewrite_stmt(&r, some)));
    if (tir_is_const(left, 0))
        return fours;
    tir_stmt *rest = tir_for(c, one, tir_add(c, l->min, tir_mul(c, n, step)), left, FOR_SERIAL,
                             tir_clone_stmt(c, l->body, l->var, tir_varref(c, one)));
    return tir_seq(c, 2, (tir_stmt *[]){fours, rest});
}

/* There compilers make vectors of loops over bytes, and schedules make lanes of sums. What is left are windows of
 * bytes. */
static tir_stmt *four_of(words *w)
{
    tir_stmt *s = w->b.loop->body;
    if (s->kind == TIR_STORE) {
        if (s->value->kind == TIR_LOAD || is_fixed(w, s->value) || !bytes_steps_by_one(&w->b, w->b.at) ||
            !fits(w, s->value))
            return NULL;
        return put_word(w, s);
    }
    if (!read_parts(w, s))
        return NULL;
    w->b.at = bytes_at(&w->b, w->rest);
    w->out = w->taps > 0 && w->taps <= WRITTEN_OUT && !tir_takes_few_steps(w->b.x->f);
    if (extreme_fits(w))
        return extreme_of(w);
    if (!sum_fits(w))
        return NULL;
    if (!cortex_m_has_vectors(w->b.x->f->target))
        return four_sums(w);
    return w->rare ? lanes_of_sums(w) : NULL;
}

static void find_store(void *ctx, tir_stmt *s)
{
    words *w = ctx;
    if (s->kind == TIR_STORE && s->buffer->scope != SCOPE_REG)
        w->b.into = w->b.into && w->b.into != s->buffer ? NULL : s->buffer;
}

static tir_stmt *words_of(const tir_selector *x, tir_stmt *loop)
{
    words w = {.b = {.x = x, .loop = loop}};
    tir_stmt *s = loop->body;
    int64_t n = LANES;
    if (loop->for_kind != FOR_SERIAL || (s->kind != TIR_STORE && s->kind != TIR_ALLOCATE) ||
        (s->kind == TIR_STORE && cortex_m_has_vectors(x->f->target)) || (tir_is_int(loop->extent, &n) && n < LANES))
        return NULL;
    tir_visit_stmt(s, find_store, NULL, &w);
    if (!w.b.into || !dtype_is_byte(w.b.into->dt))
        return NULL;
    if (s->kind == TIR_STORE)
        w.b.at = bytes_at(&w.b, s);
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    tir_stmt *four = four_of(&w);
    tir_bounds_pop(x->bounds);
    return four ? by_fours(&w, four) : NULL;
}

/* Bytes made of bytes in step: extremes, or sums of many. */
static bool is_meant(const tir_selector *x, tir_stmt *loop)
{
    loop_work w;
    if (!loop_work_of(x, loop, &w) || !w.store || !w.steps || w.rows == 0 || w.others > 0 || w.looked_up > 0 ||
        !dtype_is_byte(w.store->buffer->dt) || dtype_bits(w.widest) != 8)
        return false;
    const uint32_t kinds = w.kinds & ~(uint32_t)WORK_CASTS;
    if (kinds == WORK_EXTREMES)
        return w.inner > 0 || !cortex_m_has_vectors(x->f->target);
    return kinds == WORK_SUMS && !cortex_m_has_vectors(x->f->target) && w.inner > 0 && w.inner <= PAIRED_TAPS &&
           w.rounds >= MANY_SUMMED / w.inner;
}

const tir_selection tir_selection_words = {.fits = cortex_m_has_words, .loop = words_of, .meant_loop = is_meant};
