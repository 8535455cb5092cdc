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
    uint32_t n_loops;
    int64_t taps;   /* 0: nobody knows */
    tir_stmt *rest; /* what stands behind it */
    bool out;       /* the window is written out */
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
    const bool many = w->taps > FEW_TAPS && w->taps <= WRITTEN_OUT;
    return instruction(w, many ? "word_of_in_window" : "word_of", x->type.dt, 1, &from);
}

static tir_stmt *put_word(const words *w, const tir_stmt *s)
{
    compiler *c = c_of(w);
    tir_expr_ref at = w->b.at, args[] = {tir_address(c, s->buffer, 1, &at), word_of(w, s->value)};
    return tir_evaluate(c, instruction(w, "put_word", s->buffer->dt, 2, args));
}

/* --- windows --- */

/* acc = op(acc, term) in loops that all elements share. */
static bool read_window(words *w, tir_stmt *s)
{
    w->taps = 1;
    for (; s->kind == TIR_FOR; s = s->body) {
        int64_t n = 0;
        if (w->n_loops == MOST_LOOPS || s->for_kind == FOR_PARALLEL || s->for_kind == FOR_VTHREAD ||
            !is_fixed(w, s->min) || !is_fixed(w, s->extent))
            return false;
        w->taps *= tir_is_int(s->extent, &n) && n <= PAIRED_TAPS && w->taps <= PAIRED_TAPS ? n : 0;
        w->loops[w->n_loops++] = s;
    }
    w->taps = w->taps <= PAIRED_TAPS ? w->taps : 0;
    tir_expr_ref x = s->kind == TIR_STORE && s->buffer == w->acc ? s->value : NULL;
    if (!x || w->n_loops == 0 || x->kind != TIR_BINOP || x->n_args != 2)
        return false;
    const bool second = is_acc(w, x->args[1]) && x->op != TIR_SUB;
    w->op = x->op;
    w->term = x->args[second ? 0 : 1];
    return is_acc(w, x->args[second ? 1 : 0]);
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
    w->rest = all->stmts[2];
    return is_fixed(w, w->first) && read_window(w, all->stmts[1]) && w->rest->kind == TIR_STORE &&
           w->rest->buffer != w->acc;
}

/* s at tap number k of the window. */
static tir_stmt *at_tap(const words *w, tir_stmt *s, int64_t k)
{
    compiler *c = c_of(w);
    for (uint32_t i = w->n_loops; i-- > 0;) {
        const tir_stmt *l = w->loops[i];
        int64_t n = 1;
        (void)tir_is_int(l->extent, &n);
        tir_expr_ref value = tir_add(c, l->min, tir_int(c, l->var->type.dt, k % n));
        s = tir_clone_stmt(c, s, l->var, value);
        k /= n;
    }
    return s;
}

/* s for each tap: one behind the other, or in the window's loops. */
static tir_stmt *in_window(const words *w, tir_stmt *s)
{
    compiler *c = c_of(w);
    tir_stmt *all[WRITTEN_OUT];
    if (w->out) {
        for (int64_t k = 0; k < w->taps; k++)
            all[k] = at_tap(w, s, k);
        return tir_seq(c, (uint32_t)w->taps, all);
    }
    for (uint32_t i = w->n_loops; i-- > 0;) {
        const tir_stmt *l = w->loops[i];
        s = tir_for(c, l->var, l->min, l->extent, l->for_kind, s);
    }
    return s;
}

/* The extreme of a window is a byte: four in a word. */
static bool extreme_fits(const words *w)
{
    if (w->op != TIR_MAX && w->op != TIR_MIN)
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
    const bool replaced = w->out && tir_is_const(w->first, max ? dtype_min_int(dt) : dtype_max_int(dt));
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

/* A sum of bytes in i32, of which one byte is made; of few bytes it is not worth the code. */
static bool sum_fits(const words *w)
{
    tir_expr_ref beside;
    int64_t n = MANY_SUMMED;
    const bool many = !tir_is_int(w->b.loop->extent, &n) || n * w->taps >= MANY_SUMMED;
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

/* What is made of sum number k: the statement behind the window, of its element. */
static tir_stmt *rest_of(const words *w, const tir_buffer *sums, int64_t k)
{
    lane_rewrite l = {w, sums, tir_int(c_of(w), w->b.loop->var->type.dt, k)};
    tir_rewriter r = {.c = c_of(w), .ctx = &l, .expr = lane_expr};
    return tir_rewrite_stmt(&r, w->rest);
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
    tir_expr_ref beside, row = read_term(w, &beside), zero = tir_int(c, DT_U32, 0);
    const tir_buffer *even = new_registers(w, "even", DT_U32, 1), *odd = new_registers(w, "odd", DT_U32, 1),
                     *sums = new_registers(w, w->acc->name, DT_I32, LANES);
    const tir_var *word = tir_new_var(c, "word", tir_scalar(DT_U32));
    tir_expr_ref evens[] = {register_of(w, even, 0), tir_varref(c, word)},
                 odds[] = {register_of(w, odd, 0), tir_varref(c, word)},
                 first = tir_add(c, w->first, tir_mul(c, beside, tir_int(c, DT_I32, w->taps)));
    tir_stmt *both[] = {put_register(w, even, 0, instruction(w, "sum_even", row->type.dt, 2, evens)),
                        put_register(w, odd, 0, instruction(w, "sum_odd", row->type.dt, 2, odds))},
             *all[3 + 2 * LANES] = {put_register(w, even, 0, zero), put_register(w, odd, 0, zero),
                                    in_window(w, tir_let(c, word, word_of(w, row), tir_seq(c, 2, both)))};
    for (int64_t k = 0; k < LANES; k++) {
        tir_expr_ref sum = sum_of(w, row->type.dt, (k % 2 ? odds : evens)[0], k);
        all[3 + k] = put_register(w, sums, k, tir_add(c, sum, first));
        all[3 + LANES + k] = rest_of(w, sums, k);
    }
    return tir_allocate(c, even, tir_allocate(c, odd, tir_allocate(c, sums, tir_seq(c, 3 + 2 * LANES, all))));
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
    return !cortex_m_has_vectors(w->b.x->f->target) && sum_fits(w) ? four_sums(w) : NULL;
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
