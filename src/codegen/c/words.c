/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes, four at a time in a word (processors with SSUB8, SEL and SXTAB16): minima and maxima, also those of
 * a window (pools), sums of bytes, bytes of a table. A register has one byte otherwise, and compilers for these
 * processors put no more into it. What the last few elements get is the loop as it was. Vectors take bytes of a table,
 * too. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/node.h"
#include "tir/walk.h"
#include "type/target.h"

#define LANES       4
#define MOST_LOOPS  3
#define MANY        32 /* elements */
#define MANY_SUMMED 10000
#define WRITTEN_OUT 9   /* taps of a window */
#define FEW_TAPS    4   /* whose addresses fit into registers */
#define PAIRED_TAPS 256 /* of i8 and of u8, whose sums fit into 16 bits */
#define WORDS       "kernel/dsp/words.h"

typedef struct words {
    c_emit *e;
    const tir_stmt *loop;
    c_write_stmt stmt; /* how the rest is written */
    const tir_buffer *into; /* what the loop's statements store bytes to */
    /* A window: acc begins as `first`, and becomes op(acc, term) in loops. */
    const tir_buffer *acc;
    const char *acc_name;
    tir_expr_ref first, term;
    tir_op op;
    const tir_stmt *loops[MOST_LOOPS]; /* outermost first */
    uint32_t n_loops;
    int64_t taps; /* 0: nobody knows */
    const tir_stmt *rest; /* what stands behind it */
} words;

/* --- what is in step with the loop --- */

typedef struct use {
    const words *w;
    bool fixed; /* the same in all iterations, and nobody writes it here */
} use;

static void note_use(void *ctx, tir_expr_ref x)
{
    use *u = ctx;
    if (x->kind == TIR_VAR && x->u.var == u->w->loop->var)
        u->fixed = false;
    if (tir_is_call(x) || (tir_is_access(x) && (x->u.buffer == u->w->into || x->u.buffer == u->w->acc)))
        u->fixed = false;
}

static bool is_fixed(const words *w, tir_expr_ref x)
{
    use u = {w, true};
    tir_visit_expr(x, note_use, &u);
    return u.fixed;
}

static bool is_byte(tir_expr_ref x)
{
    return (x->type.dt == DT_I8 || x->type.dt == DT_U8) && x->type.lanes == 1;
}

static tir_expr_ref at_var(const words *w, tir_expr_ref x, const tir_var *v, tir_expr_ref value)
{
    return tir_substitute(w->e->c, x, 1, &v, &value);
}

static tir_expr_ref flat_of(const words *w, tir_expr_ref load)
{
    return expr_flat(w->e, load->u.buffer, load->n_args, load->args);
}

/* Neighbours in the loop are neighbours in memory. */
static bool steps_by_one(const words *w, tir_expr_ref at)
{
    compiler *c = w->e->c;
    const tir_var *v = w->loop->var;
    tir_expr_ref next = at_var(w, at, v, tir_add(c, tir_varref(c, v), tir_int(c, v->type.dt, 1)));
    return at->type.lanes == 1 && tir_is_const(tir_simplify(w->e->bounds, tir_sub(c, next, at)), 1);
}

/* A load of neighbours, which nobody writes here but in step. */
static bool is_row(const words *w, tir_expr_ref x, tir_expr_ref stored_at)
{
    if (x->kind != TIR_LOAD || !is_byte(x) || expr_register(w->e, x->u.buffer, flat_of(w, x)))
        return false;
    if (x->u.buffer == w->into && !(stored_at && tir_expr_equal(flat_of(w, x), stored_at)))
        return false;
    return steps_by_one(w, flat_of(w, x));
}

static bool fits(const words *w, tir_expr_ref x, tir_expr_ref stored_at)
{
    if (!is_byte(x))
        return false;
    if (is_fixed(w, x) || (x->kind == TIR_LOAD && x->u.buffer == w->acc))
        return true;
    if (x->kind == TIR_CAST)
        return fits(w, x->args[0], stored_at);
    if (expr_is_binary(x, TIR_MAX) || expr_is_binary(x, TIR_MIN))
        return fits(w, x->args[0], stored_at) && fits(w, x->args[1], stored_at);
    return is_row(w, x, stored_at);
}

/* --- texts --- */

static const char *read_at(const words *w, tir_expr_ref x)
{
    return arena_printf(w->e->tmp, "&%s[%s]", expr_name(w->e, x->u.buffer), expr_text(w->e, flat_of(w, x)).s);
}

static const char *word_text(const words *w, tir_expr_ref x)
{
    arena *a = w->e->tmp;
    int64_t v = 0;
    needs_add_kernel(w->e->needs, WORDS);
    if (tir_is_int(x, &v))
        return arena_printf(a, "0x%08xu", (unsigned)((uint32_t)(uint8_t)v * 0x01010101u));
    if (is_fixed(w, x))
        return arena_printf(a, "(uint32_t)(uint8_t)%s * 0x01010101u", scalar_at(a, expr_text(w->e, x), PREC_PRIMARY));
    if (x->kind == TIR_LOAD && x->u.buffer == w->acc)
        return w->acc_name;
    if (x->kind == TIR_CAST)
        return word_text(w, x->args[0]);
    if (x->kind == TIR_LOAD)
        return arena_printf(a, "lathe_get_word(%s)", read_at(w, x));
    return arena_printf(a, "lathe_%s_word_%s(%s, %s)", x->op == TIR_MAX ? "max" : "min", dtype_name(x->type.dt),
                        word_text(w, x->args[0]), word_text(w, x->args[1]));
}

static tir_expr_ref stored_at(const words *w, const tir_stmt *s)
{
    return expr_flat(w->e, s->buffer, s->n_indices, s->indices);
}

static void write_word(const words *w, const tir_stmt *s)
{
    w_line(w->e->w, "lathe_put_word(&%s[%s], %s);", expr_name(w->e, s->buffer), expr_text(w->e, stored_at(w, s)).s,
           word_text(w, s->value));
}

/* --- whole loops as calls --- */

/* max(x, least), min(x, most), or both, of neighbours, by constants. */
static bool read_clip(const words *w, tir_expr_ref x, tir_expr_ref at, int64_t *least, int64_t *most,
                      tir_expr_ref *out_row)
{
    int64_t v = 0;
    *least = dtype_min_int(x->type.dt);
    *most = dtype_max_int(x->type.dt);
    for (; expr_is_binary(x, TIR_MAX) || expr_is_binary(x, TIR_MIN); x = x->args[0]) {
        const bool up = x->op == TIR_MAX;
        if (!tir_is_int(x->args[1], &v))
            return false;
        v = v < *least ? *least : v > *most ? *most : v; /* what is behind it has its way */
        *(up ? least : most) = v;
    }
    *out_row = x;
    return is_row(w, x, at);
}

/* The byte at the place that a byte of neighbours says. */
static bool read_table(const words *w, tir_expr_ref x, tir_expr_ref at, tir_expr_ref *out_row)
{
    tir_expr_ref place = x->kind == TIR_LOAD && is_byte(x) && x->u.buffer != w->into ? flat_of(w, x) : NULL;
    while (place && place->kind == TIR_CAST && place->type.dt != DT_U8 && dtype_is_int(place->args[0]->type.dt))
        place = place->args[0];
    if (!place || place->type.dt != DT_U8)
        return false;
    *out_row = place->kind == TIR_CAST ? place->args[0] : place;
    return is_byte(*out_row) && is_row(w, *out_row, at);
}

static const char *at_start(const words *w, const tir_buffer *b, tir_expr_ref at)
{
    return arena_printf(w->e->tmp, "&%s[%s]", expr_name(w->e, b),
                        expr_text(w->e, at_var(w, at, w->loop->var, w->loop->min)).s);
}

static bool write_table(const words *w, const char *kernel)
{
    c_emit *e = w->e;
    const tir_stmt *s = w->loop->body;
    tir_expr_ref at = stored_at(w, s), row = NULL;
    if (!steps_by_one(w, at) || !read_table(w, s->value, at, &row))
        return false;
    const char *signedness = s->buffer->dt == DT_I8 ? "(uint8_t *)" : "",
               *table = s->value->u.buffer->dt == DT_I8 ? "(const uint8_t *)" : "",
               *bytes = row->type.dt == DT_I8 ? "(const uint8_t *)" : "";
    needs_add_kernel(e->needs, kernel);
    w_line(e->w, "lathe_table_bytes(%s%s, %s%s, %s%s, %s);", signedness, at_start(w, s->buffer, at), bytes,
           at_start(w, row->u.buffer, flat_of(w, row)), table, expr_name(e, s->value->u.buffer),
           expr_text(e, w->loop->extent).s);
    return true;
}

static bool write_call(const words *w)
{
    c_emit *e = w->e;
    const tir_stmt *s = w->loop->body;
    tir_expr_ref at = stored_at(w, s), row = NULL;
    int64_t least = 0, most = 0;
    const char *to = at_start(w, s->buffer, at), *dt = dtype_name(s->buffer->dt), *n = expr_text(e, w->loop->extent).s;
    if (!steps_by_one(w, at))
        return false;
    if (read_clip(w, s->value, at, &least, &most, &row) && (least > dtype_min_int(row->type.dt) ||
                                                           most < dtype_max_int(row->type.dt))) {
        const char *from = at_start(w, row->u.buffer, flat_of(w, row));
        const bool above = most == dtype_max_int(row->type.dt);
        const char *name = above ? "above" : "clip";
        needs_add_kernel(e->needs, arena_printf(e->needs->a, "kernel/dsp/%s_%s.h", name, dt));
        const char *bounds = above ? arena_printf(e->tmp, "%lld", (long long)least)
                                   : arena_printf(e->tmp, "%lld, %lld", (long long)least, (long long)most);
        w_line(e->w, "lathe_%s_%s(%s, %s, %s, %s);", name, dt, to, from, n, bounds);
        return true;
    }
    return write_table(w, "kernel/dsp/table.h");
}

/* --- windows --- */

static bool is_acc(tir_expr_ref x, const tir_buffer *acc)
{
    return x->kind == TIR_LOAD && x->u.buffer == acc;
}

/* acc = op(acc, term) in loops that all elements share. */
static bool read_window(words *w, const tir_stmt *s)
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
    if (!x || w->n_loops == 0 || x->kind != TIR_BINOP || !is_acc(x->args[0], w->acc))
        return false;
    w->op = x->op;
    w->term = x->args[1];
    return true;
}

/* How acc begins, its window, and what is made of it. */
static bool read_parts(words *w, const tir_stmt *s)
{
    const tir_stmt *all = s->body;
    if (s->buffer->scope != SCOPE_REG || tir_buffer_count(s->buffer) != 1 || all->kind != TIR_SEQ ||
        all->n_stmts != 3 || all->stmts[0]->kind != TIR_STORE || all->stmts[0]->buffer != s->buffer)
        return false;
    w->acc = s->buffer;
    w->first = all->stmts[0]->value;
    w->rest = all->stmts[2];
    return is_fixed(w, w->first) && read_window(w, all->stmts[1]);
}

/* A function that takes no time to speak of stays short. */
static void open_loop(const c_emit *e)
{
    if (!e->few_steps)
        return;
    needs_add_kernel(e->needs, "kernel/common/rolled.h");
    w_line(e->w, "LATHE_ROLLED");
}

static void open_loops(const words *w)
{
    c_emit *e = w->e;
    for (uint32_t i = 0; i < w->n_loops; i++) {
        const tir_stmt *l = w->loops[i];
        tir_expr_ref behind = tir_add(e->c, l->min, l->extent);
        const char *min = expr_text(e, l->min).s, *end = scalar_at(e->tmp, expr_text(e, behind), PREC_ADD),
                   *name = names_push(e, l->var, l->var->name, true);
        open_loop(e);
        w_open(e->w, "for (%s %s = %s; %s < %s; %s++)", dtype_c_name(l->var->type.dt), name, min, name, end, name);
        tir_bounds_push(e->bounds, l->var, l->min, l->extent);
    }
}

static void close_loops(const words *w)
{
    for (uint32_t i = 0; i < w->n_loops; i++) {
        tir_bounds_pop(w->e->bounds);
        w_close(w->e->w, "");
    }
}

/* x at tap number k of the window. */
static tir_expr_ref at_tap(const words *w, tir_expr_ref x, int64_t k)
{
    compiler *c = w->e->c;
    for (uint32_t i = w->n_loops; i-- > 0;) {
        const tir_stmt *l = w->loops[i];
        int64_t n = 1;
        (void)tir_is_int(l->extent, &n);
        x = at_var(w, x, l->var, tir_add(c, l->min, tir_int(c, l->var->type.dt, k % n)));
        k /= n;
    }
    return tir_simplify(w->e->bounds, x);
}

/* The extreme of a window is a byte: four in a word. */
static bool extreme_fits(const words *w)
{
    const tir_stmt *s = w->rest;
    if (s->kind != TIR_STORE || (w->op != TIR_MAX && w->op != TIR_MIN))
        return false;
    tir_expr_ref at = stored_at(w, s);
    return is_byte(w->first) && steps_by_one(w, at) && fits(w, w->term, NULL) && fits(w, s->value, at);
}

static void write_extreme(words *w)
{
    c_emit *e = w->e;
    const uint32_t depth = e->names.len;
    const char *op = w->op == TIR_MAX ? "max" : "min", *dt = dtype_name(w->first->type.dt);
    const int64_t identity = w->op == TIR_MAX ? dtype_min_int(w->first->type.dt) : dtype_max_int(w->first->type.dt);
    w->acc_name = names_push(e, w->acc, "word", false);
    if (w->taps > 0 && w->taps <= WRITTEN_OUT && !e->few_steps && tir_is_const(w->first, identity)) {
        w_line(e->w, "uint32_t %s = %s;", w->acc_name, word_text(w, at_tap(w, w->term, 0)));
        for (int64_t k = 1; k < w->taps; k++)
            w_line(e->w, "%s = lathe_%s_word_%s(%s, %s);", w->acc_name, op, dt, w->acc_name,
                   word_text(w, at_tap(w, w->term, k)));
    } else {
        const uint32_t inside = e->names.len;
        w_line(e->w, "uint32_t %s = %s;", w->acc_name, word_text(w, w->first));
        open_loops(w);
        w_line(e->w, "%s = lathe_%s_word_%s(%s, %s);", w->acc_name, op, dt, w->acc_name, word_text(w, w->term));
        close_loops(w);
        e->names.len = inside;
    }
    write_word(w, w->rest);
    e->names.len = depth;
}

/* --- sums --- */

/* The bytes that a term adds, and what it adds beside them, the same for all elements; NULL: something else. */
static tir_expr_ref read_term(const words *w, tir_expr_ref x, tir_expr_ref *out_beside)
{
    compiler *c = w->e->c;
    *out_beside = tir_int(c, DT_I32, 0);
    if ((expr_is_binary(x, TIR_SUB) || expr_is_binary(x, TIR_ADD)) && x->type.dt == DT_I32) {
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
    return is_row(w, x->args[0], NULL) ? x->args[0] : NULL;
}

typedef struct lane_rewrite {
    const words *w;
    const tir_buffer *sums;
    tir_expr_ref lane;
} lane_rewrite;

static tir_expr_ref lane_expr(tir_rewriter *r, tir_expr_ref x)
{
    const lane_rewrite *l = r->ctx;
    if (x->kind == TIR_LOAD && x->u.buffer == l->w->acc)
        return tir_load(r->c, l->sums, 1, &l->lane);
    if (x->kind == TIR_VAR && x->u.var == l->w->loop->var)
        return tir_add(r->c, x, l->lane);
    return x;
}

/* A sum of bytes in i32, of which one byte is made; of few bytes it is not worth the code. */
static bool sum_fits(const words *w)
{
    tir_expr_ref beside;
    int64_t n = MANY_SUMMED;
    const bool many = !tir_is_int(w->loop->extent, &n) || n * w->taps >= MANY_SUMMED;
    return many && w->op == TIR_ADD && w->first->type.dt == DT_I32 && w->taps > 0 && read_term(w, w->term, &beside) &&
           w->rest->kind == TIR_STORE && w->rest->buffer != w->acc;
}

static void write_sums(const words *w, const char *sums)
{
    c_emit *e = w->e;
    compiler *c = e->c;
    const uint32_t depth = e->names.len;
    tir_expr_ref beside, row = read_term(w, w->term, &beside);
    const char *dt = dtype_name(row->type.dt), *even = names_push(e, &w->n_loops, "even", false),
               *odd = names_push(e, &w->rest, "odd", false);
    const bool out = w->taps <= WRITTEN_OUT && !e->few_steps;
    tir_expr_ref first = tir_add(c, w->first, tir_mul(c, beside, tir_int(c, DT_I32, w->taps)));
    needs_add_kernel(e->needs, "kernel/dsp/sum_words.h");
    w_line(e->w, "uint32_t %s = 0, %s = 0;", even, odd);
    if (!out)
        open_loops(w);
    for (int64_t k = 0; k < (out ? w->taps : 1); k++)
        w_line(e->w, "lathe_sum_word_%s(&%s, &%s, %s);", dt, even, odd, word_text(w, out ? at_tap(w, row, k) : row));
    if (!out)
        close_loops(w);
    const char *by = scalar_at(e->tmp, expr_text(e, first), PREC_ADD);
    for (int64_t k = 0; k < LANES; k++)
        w_line(e->w, "%s_%lld = lathe_sum_%s_%s(%s) + %s;", sums, (long long)k, k < 2 ? "low" : "high", dt,
               k % 2 ? odd : even, by);
    e->names.len = depth;
}

static void write_four_sums(words *w)
{
    c_emit *e = w->e;
    const uint32_t depth = e->names.len;
    const tir_buffer *sums = tir_buffer_static(e->c, w->acc->name, DT_I32, 1, &(int64_t){LANES}, SCOPE_REG);
    bool *used = arena_array(e->tmp, bool, LANES);
    tir_stmt *rest[LANES];
    vec_push(e->tmp, &e->registers, ((c_registers){sums, 1, used}));
    const char *name = names_push_registers(e, &vec_last(&e->registers));
    w_line(e->w, "int32_t %s_0, %s_1, %s_2, %s_3;", name, name, name, name);
    write_sums(w, name);
    for (int64_t k = 0; k < LANES; k++) {
        lane_rewrite l = {w, sums, tir_int(e->c, w->loop->var->type.dt, k)};
        tir_rewriter r = {.c = e->c, .ctx = &l, .expr = lane_expr};
        rest[k] = tir_rewrite_stmt(&r, w->rest);
    }
    w->stmt(e, tir_seq(e->c, LANES, rest));
    e->registers.len--;
    e->names.len = depth;
}

/* --- copies --- */

#define LEAST_COPY 65 /* bytes; compilers move fewer where they are */

/* What the index grows by with v; 0: no number that is known. */
static int64_t step_of(c_emit *e, tir_expr_ref at, const tir_var *v)
{
    int64_t by = 0;
    tir_expr_ref next = tir_add(e->c, tir_varref(e->c, v), tir_int(e->c, v->type.dt, 1));
    next = tir_substitute(e->c, at, 1, &v, &next);
    return tir_is_int(tir_simplify(e->bounds, tir_sub(e->c, next, at)), &by) ? by : 0;
}

static bool shares_storage(const c_emit *e, const tir_buffer *b)
{
    for (uint32_t i = 0; e->may_alias && i < e->f->n_params; i++)
        if (e->f->params[i] == b && e->may_alias[i])
            return true;
    return false;
}

static const char *address_at(c_emit *e, const tir_buffer *b, tir_expr_ref at, const tir_stmt *loop)
{
    for (; loop->kind == TIR_FOR; loop = loop->body)
        at = tir_substitute(e->c, at, 1, &loop->var, &loop->min);
    return arena_printf(e->tmp, "&%s[%s]", expr_name(e, b), expr_text(e, at).s);
}

/* Elements of one run in both places, by the loops around s, which are counted from the innermost one; 0: there are
 * gaps. */
static int64_t run_of(c_emit *e, const tir_stmt *loop, tir_expr_ref to, tir_expr_ref from)
{
    int64_t n = 0, inner = loop->body->kind == TIR_FOR ? run_of(e, loop->body, to, from) : 1;
    if (inner == 0 || loop->for_kind != FOR_SERIAL || !tir_is_int(loop->extent, &n) || n <= 0 || n > INT32_MAX / inner)
        return 0;
    const bool beside = step_of(e, to, loop->var) == inner && step_of(e, from, loop->var) == inner;
    return beside ? n * inner : 0;
}

/* C compilers call memmove, which takes longer, because they lose sight of what `restrict` says. */
static bool write_copy(c_emit *e, const tir_stmt *s)
{
    const tir_stmt *store = s;
    while (store->kind == TIR_FOR)
        store = store->body;
    if (store->kind != TIR_STORE || store->value->type.lanes != 1)
        return false;
    tir_expr_ref x = store->value;
    if (x->kind != TIR_LOAD || x->u.buffer == store->buffer || x->u.buffer->dt != store->buffer->dt ||
        dtype_bits(x->u.buffer->dt) < 8 || shares_storage(e, x->u.buffer) || shares_storage(e, store->buffer))
        return false;
    tir_expr_ref to = expr_flat(e, store->buffer, store->n_indices, store->indices),
                 from = expr_flat(e, x->u.buffer, x->n_args, x->args);
    if (expr_register(e, store->buffer, to) || expr_register(e, x->u.buffer, from))
        return false;
    const int64_t size = run_of(e, s, to, from) * (int64_t)dtype_bytes(store->buffer->dt);
    if (size < LEAST_COPY)
        return false;
    needs_add_kernel(e->needs, WORDS);
    w_line(e->w, "(void)memcpy(%s, %s, %lld);", address_at(e, store->buffer, to, s),
           address_at(e, x->u.buffer, from, s), (long long)size);
    return true;
}

/* --- the loop --- */

typedef void (*write_some)(words *w);

static void write_bytes(words *w)
{
    write_word(w, w->loop->body);
}

/* Two results that are rounded share moves between registers. */
static void write_two(words *w)
{
    c_emit *e = w->e;
    const tir_var *v = w->loop->var;
    tir_expr_ref next = tir_add(e->c, tir_varref(e->c, v), tir_int(e->c, v->type.dt, 1));
    tir_stmt *both[2] = {w->loop->body, tir_substitute_stmt(e->c, w->loop->body, 1, &v, &next)};
    w->stmt(e, tir_seq(e->c, 2, both));
}

/* `step` elements at a time, then those that are left, one by one. */
static void write_by(words *w, int step, write_some some)
{
    c_emit *e = w->e;
    const tir_stmt *l = w->loop;
    const uint32_t depth = e->names.len;
    int64_t n = 0;
    const bool whole = tir_is_int(l->extent, &n) && n % step == 0;
    const char *ctype = dtype_c_name(l->var->type.dt), *min = expr_text(e, l->min).s,
               *end = scalar_at(e->tmp, expr_text(e, tir_add(e->c, l->min, l->extent)), PREC_MUL),
               *name = names_push(e, l->var, l->var->name, true);
    if (!whole) {
        w_str(e->w, "{\n");
        e->w->indent++;
        w_line(e->w, "%s %s = %s;", ctype, name, min);
    }
    open_loop(e);
    if (whole)
        w_open(e->w, "for (%s %s = %s; %s < %s; %s += %d)", ctype, name, min, name, end, name, step);
    else
        w_open(e->w, "for (; %s <= %s - %d; %s += %d)", name, end, step, name, step);
    some(w);
    w_close(e->w, "");
    if (!whole) {
        open_loop(e);
        w_open(e->w, "for (; %s < %s; %s++)", name, end, name);
        w->stmt(e, l->body);
        w_close(e->w, "");
        w_close(e->w, "");
    }
    e->names.len = depth;
}

static void find_store(void *ctx, tir_stmt *s)
{
    words *w = ctx;
    if (s->kind == TIR_STORE && s->buffer->scope != SCOPE_REG)
        w->into = w->into && w->into != s->buffer ? NULL : s->buffer;
}

/* Many bytes, each of a number that is no NaN. */
static bool is_rounded(const words *w, const tir_stmt *s)
{
    c_rounded r;
    int64_t n = MANY;
    return s->value->type.lanes == 1 && (w->e->f->target->features & TARGET_FPU) != 0 &&
           (!tir_is_int(w->loop->extent, &n) || n >= MANY) && expr_rounded(w->e, s->value, &r) && (r.acc || r.sure);
}

static bool by_fours(words *w)
{
    const tir_stmt *s = w->loop->body;
    if (s->kind == TIR_STORE) {
        tir_expr_ref at = stored_at(w, s);
        if (write_call(w))
            return true;
        if (is_rounded(w, s)) {
            write_by(w, 2, write_two);
            return true;
        }
        if (s->value->kind == TIR_LOAD || is_fixed(w, s->value) || !steps_by_one(w, at) || !fits(w, s->value, at))
            return false;
        write_by(w, LANES, write_bytes);
        return true;
    }
    if (!read_parts(w, s) || (!extreme_fits(w) && !sum_fits(w)))
        return false;
    if (w->taps > FEW_TAPS && w->taps <= WRITTEN_OUT)
        w->e->attribute = "LATHE_WINDOWS";
    write_by(w, LANES, extreme_fits(w) ? write_extreme : write_four_sums);
    return true;
}

bool words_write(c_emit *e, const tir_stmt *s, c_write_stmt stmt)
{
    words w = {.e = e, .loop = s, .stmt = stmt};
    const target *t = e->f->target;
    const bool lanes = t && !t->small && t->vector_bytes > LANES;
    int64_t n = LANES;
    if (!t || s->for_kind != FOR_SERIAL || (tir_is_int(s->extent, &n) && n < LANES) ||
        (!lanes && (!t->small || (t->features & (TARGET_DSP | TARGET_MVE)) != TARGET_DSP)))
        return false;
    if (!lanes && write_copy(e, s))
        return true;
    if (s->body->kind != TIR_STORE && s->body->kind != TIR_ALLOCATE)
        return false;
    tir_visit_stmt(s->body, find_store, NULL, &w);
    if (!w.into || dtype_bits(w.into->dt) != 8 || dtype_is_float(w.into->dt))
        return false;
    tir_bounds_push(e->bounds, s->var, s->min, s->extent);
    const bool written = lanes ? s->body->kind == TIR_STORE && write_table(&w, "kernel/lanes/table.h") : by_fours(&w);
    tir_bounds_pop(e->bounds);
    return written;
}
