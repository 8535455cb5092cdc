/* SPDX-License-Identifier: Apache-2.0 */
/* A result may lie over an operand that nobody needs any more, if it stays behind what is still read: how far apart the
 * two have to begin. The loops are run through in order, outer ones iteration by iteration as far as
 * DISTANCE_STEPS allow. What lies inside is an interval of bytes for every access, in any order. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

#define DISTANCE_STEPS 20000u /* accesses looked at in a function */

typedef struct distance {
    compiler *c;
    tir_bounds *bounds;
    const tir_buffer *in, *out;
    int64_t in_bytes, out_bytes;
    tir_map counts;      /* of each statement: accesses inside, plus 1 */
    bool ok;
    bool reads, writes;  /* what an expression or a statement is looked at for */
    bool wrote;
    int64_t first, last; /* bytes of the output that are written so far */
    int64_t below, above;
} distance;

/* --- what is touched --- */

static bool is_watched(const distance *k, tir_expr_ref e)
{
    return tir_is_access(e) && (e->u.buffer == k->in || (e->kind == TIR_ADDRESS && e->u.buffer == k->out));
}

typedef struct access_count {
    const distance *k;
    uint32_t n;
} access_count;

static void count_expr(void *ctx, tir_expr_ref e)
{
    access_count *x = ctx;
    x->n += is_watched(x->k, e);
}

static void count_stmt(void *ctx, tir_stmt *s)
{
    access_count *x = ctx;
    x->n += s->kind == TIR_STORE && (s->buffer == x->k->out || s->buffer == x->k->in);
}

static uint32_t count_of(distance *k, tir_stmt *s)
{
    const void *known = tir_map_get(&k->counts, s);
    access_count x = {k, 0};
    if (known)
        return (uint32_t)((uintptr_t)known - 1);
    tir_visit_stmt(s, count_stmt, count_expr, &x);
    tir_map_put(&k->counts, s, (void *)((uintptr_t)x.n + 1));
    return x.n;
}

/* The bytes of an access; false: nobody knows. */
static bool bytes_of(distance *k, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx, int64_t *from, int64_t *to)
{
    int64_t stride = 0, width = (int64_t)dtype_bytes(b->dt);
    if (n != 1 || (!tir_access_is_flat(b, n) && (b->strides || b->offset)))
        return false;
    tir_expr_ref at = idx[0];
    uint32_t lanes = at->type.lanes;
    if (lanes > 1 && (at->kind != TIR_RAMP || !tir_is_int(at->args[1], &stride) || stride < 0))
        return false;
    tir_range r = tir_range_of(k->bounds, lanes > 1 ? at->args[0] : at);
    int64_t most = b == k->in ? k->in_bytes : k->out_bytes;
    *from = !r.known_min || r.min < 0 ? 0 : r.min > most ? most : r.min * width;
    *to = most;
    if (r.known_max && r.max >= 0 && r.max <= most && stride <= most)
        *to = (r.max + stride * ((int64_t)lanes - 1) + 1) * width;
    *to = *to > most ? most : *to;
    return true;
}

static void note_write(distance *k, tir_stmt *s)
{
    int64_t from, to;
    if (s->buffer == k->in || !bytes_of(k, s->buffer, s->n_indices, s->indices, &from, &to)) {
        k->ok = false;
        return;
    }
    k->first = !k->wrote || from < k->first ? from : k->first;
    k->last = !k->wrote || to > k->last ? to : k->last;
    k->wrote = true;
}

static void note_read(distance *k, tir_expr_ref e)
{
    int64_t from, to;
    if (e->kind == TIR_ADDRESS || !bytes_of(k, e->u.buffer, e->n_args, e->args, &from, &to)) {
        k->ok = false;
        return;
    }
    if (!k->wrote)
        return;
    k->below = k->last - from > k->below ? k->last - from : k->below;
    k->above = to - k->first > k->above ? to - k->first : k->above;
}

/* --- conditions --- */

/* Of a comparison of numbers in these ranges: 1, 0, or -1 where they do not say. */
static int truth_of_ranges(tir_op op, tir_range a, tir_range b)
{
    bool less = a.known_max && b.known_min && a.max < b.min, more = a.known_min && b.known_max && a.min > b.max;
    bool most = a.known_max && b.known_min && a.max <= b.min, least = a.known_min && b.known_max && a.min >= b.max;
    switch ((int)op) {
    case TIR_LT: return less ? 1 : least ? 0 : -1;
    case TIR_LE: return most ? 1 : more ? 0 : -1;
    case TIR_GT: return more ? 1 : most ? 0 : -1;
    case TIR_GE: return least ? 1 : less ? 0 : -1;
    case TIR_EQ: return most && least ? 1 : less || more ? 0 : -1;
    default: return most && least ? 0 : less || more ? 1 : -1;
    }
}

/* 1: holds; 0: does not; -1: nobody knows. */
static int truth(distance *k, tir_expr_ref e)
{
    if (e->kind == TIR_NOT) {
        int t = truth(k, e->args[0]);
        return t < 0 ? t : !t;
    }
    if (e->kind == TIR_INT)
        return e->u.i != 0;
    if (e->kind != TIR_BINOP)
        return -1;
    if (e->op == TIR_AND || e->op == TIR_OR) {
        int a = truth(k, e->args[0]), b = truth(k, e->args[1]), ends = e->op == TIR_OR;
        return a == ends || b == ends ? ends : a < 0 || b < 0 ? -1 : !ends;
    }
    if (!tir_op_is_compare(e->op) || !bounds_is_index_type(e->args[0]->type))
        return -1;
    return truth_of_ranges(e->op, tir_range_of(k->bounds, e->args[0]), tir_range_of(k->bounds, e->args[1]));
}

/* --- in order --- */

static void read_expr(distance *k, tir_expr_ref e)
{
    int t = e->kind == TIR_SELECT ? truth(k, e->args[0]) : -1;
    if (is_watched(k, e))
        note_read(k, e);
    for (uint32_t i = 0; i < e->n_args && k->ok; i++)
        if (t < 0 || (i == 1 && t == 1) || (i == 2 && t == 0))
            read_expr(k, e->args[i]);
}

static void walk(distance *k, tir_stmt *s, uint32_t steps);

static tir_range loop_range(distance *k, tir_stmt *s)
{
    tir_range lo = tir_range_of(k->bounds, s->min), n = tir_range_of(k->bounds, s->extent), r = {0};
    r.known_min = lo.known_min;
    r.min = lo.min;
    r.known_max = lo.known_max && n.known_max && i64_add(lo.max, n.max - 1, &r.max);
    return r;
}

/* All iterations as one piece: results may be written before anything is read. */
static void walk_piece(distance *k, tir_stmt *s)
{
    bool reads = k->reads, writes = k->writes;
    bounds_push_range(k->bounds, s->var, loop_range(k, s), false);
    k->reads = false;
    if (writes)
        walk(k, s->body, 0);
    k->reads = reads;
    k->writes = false;
    if (reads)
        walk(k, s->body, 0);
    k->writes = writes;
    tir_bounds_pop(k->bounds);
}

static void walk_loop(distance *k, tir_stmt *s, uint32_t steps)
{
    tir_range r = loop_range(k, s), n = tir_range_of(k->bounds, s->extent);
    bool counted = n.known_min && n.known_max && n.min == n.max && r.known_min && r.known_max && n.min > 0 &&
                   r.max - r.min + 1 == n.min && s->for_kind != FOR_VTHREAD && s->for_kind != FOR_VECTORIZED;
    if (n.known_max && n.max <= 0)
        return;
    if (!counted || n.min > steps || (uint64_t)n.min * count_of(k, s) > steps) {
        walk_piece(k, s);
        return;
    }
    for (int64_t i = r.min; i <= r.max && k->ok; i++) {
        bounds_push_range(k->bounds, s->var, bounds_known(i, i), false);
        walk(k, s->body, steps / (uint32_t)n.min);
        tir_bounds_pop(k->bounds);
    }
}

static void walk_exprs(void *ctx, tir_expr_ref e)
{
    distance *k = ctx;
    if (k->reads && k->ok)
        read_expr(k, e);
}

static void walk(distance *k, tir_stmt *s, uint32_t steps)
{
    if (!k->ok || count_of(k, s) == 0)
        return;
    int t = s->kind == TIR_IF ? truth(k, s->cond) : -1;
    if (s->kind == TIR_FOR) {
        access_count bounds = {k, 0}; /* C looks at the end before each round */
        tir_visit_expr(s->min, count_expr, &bounds);
        tir_visit_expr(s->extent, count_expr, &bounds);
        k->ok &= bounds.n == 0;
        walk_loop(k, s, steps);
        return;
    }
    tir_stmt_exprs(s, walk_exprs, k);
    if (s->kind == TIR_STORE && k->writes && (s->buffer == k->out || s->buffer == k->in))
        note_write(k, s);
    if (s->kind == TIR_LET)
        bounds_push_range(k->bounds, s->var, tir_range_of(k->bounds, s->value), true);
    if (s->body && t != 0)
        walk(k, s->body, steps);
    if (s->orelse && t != 1)
        walk(k, s->orelse, steps);
    if (s->kind == TIR_LET)
        tir_bounds_pop(k->bounds);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        walk(k, s->stmts[i], steps / s->n_stmts);
}

bool tir_find_distance(compiler *c, const tir_func *f, uint32_t in, uint32_t out, tir_distance *result)
{
    distance k = {.c = c, .in = f->params[in], .out = f->params[out], .ok = true, .reads = true, .writes = true};
    int64_t n_in = tir_buffer_count(k.in), n_out = tir_buffer_count(k.out);
    if (k.in == k.out || f->n_symbols > 0 || n_in <= 0 || n_out <= 0)
        return false;
    k.in_bytes = n_in * (int64_t)dtype_bytes(k.in->dt);
    k.out_bytes = n_out * (int64_t)dtype_bytes(k.out->dt);
    k.bounds = tir_bounds_new(c);
    tir_map_init(&k.counts, &c->mem);
    walk(&k, f->body, DISTANCE_STEPS);
    *result = (tir_distance){(uint64_t)k.below, (uint64_t)k.above};
    return k.ok && (k.below < k.out_bytes || k.above < k.in_bytes);
}

/* --- lanes --- */

/* The outermost loop takes a lane after the other: of every `whole` elements those from lane * width on. */
typedef struct lanes {
    distance *k;
    const tir_stmt *loop;
    int64_t width, whole;
    tir_map loops; /* variable -> its loop; the outermost one where several have it */
} lanes;

/* The only loop around everything, with a constant number of iterations from 0; NULL: there is none. */
static tir_stmt *loop_around(tir_stmt *s, int64_t *out_n)
{
    while (s && s->kind != TIR_FOR)
        s = s->kind == TIR_ALLOCATE || s->kind == TIR_ATTR ? s->body
            : s->kind == TIR_SEQ && s->n_stmts == 1        ? s->stmts[0]
                                                           : NULL;
    bool counted = s && s->for_kind == FOR_SERIAL && tir_is_const(s->min, 0) && tir_is_int(s->extent, out_n);
    return counted && *out_n > 1 && *out_n <= (int64_t)DISTANCE_STEPS ? s : NULL;
}

static void note_loop(void *ctx, tir_stmt *s)
{
    lanes *l = ctx;
    if (s->kind == TIR_FOR)
        tir_map_put(&l->loops, s->var, tir_map_get(&l->loops, s->var) ? l->loop : s);
}

/* What a loop adds to an index by this term. */
static bool add_term(const lanes *l, const linear_term *t, int64_t *low, int64_t *high)
{
    bool is_var = t->n == 1 && t->atoms[0]->kind == TIR_VAR;
    const tir_stmt *loop = is_var ? tir_map_get(&l->loops, t->atoms[0]->u.var) : NULL;
    int64_t min = 0, n = 0, most = 0;
    if (t->coeff % l->whole == 0)
        return true;
    if (!loop || loop == l->loop || t->coeff < 0 || !tir_is_int(loop->min, &min) || !tir_is_int(loop->extent, &n))
        return false;
    if (n < 1 || min < 0 || !i64_add(min, n - 1, &most) || !i64_mul(most, t->coeff, &most) ||
        !i64_add(*high, most, high))
        return false;
    *low += min * t->coeff;
    return true;
}

/* Whether an access stays in the lane of its iteration. */
static void check_lane(lanes *l, uint32_t n, tir_expr_ref const *idx)
{
    linear sum;
    bool ok = n == 1 && linear_of(l->k->bounds, idx[0], &sum), moves = false;
    int64_t low = ok ? (sum.constant % l->whole + l->whole) % l->whole : 0, high = low;
    for (uint32_t i = 0; ok && i < sum.len; i++) {
        const linear_term *t = &sum.terms[i];
        bool lane = t->n == 1 && t->atoms[0]->kind == TIR_VAR && t->atoms[0]->u.var == l->loop->var;
        moves |= lane;
        ok = lane ? t->coeff == l->width : add_term(l, t, &low, &high);
    }
    l->k->ok &= ok && moves && high < l->width;
}

static void check_lane_of_load(void *ctx, tir_expr_ref e)
{
    lanes *l = ctx;
    if (tir_is_access(e) && (e->u.buffer == l->k->in || e->u.buffer == l->k->out)) {
        l->k->ok &= e->kind == TIR_LOAD && e->u.buffer == l->k->in;
        check_lane(l, e->n_args, e->args);
    }
}

static void check_lane_of_store(void *ctx, tir_stmt *s)
{
    lanes *l = ctx;
    l->k->ok &= s->kind != TIR_STORE || s->buffer != l->k->in;
    if (s->kind == TIR_STORE && s->buffer == l->k->out)
        check_lane(l, s->n_indices, s->indices);
}

bool tir_can_alias_in_lanes(compiler *c, const tir_func *f, uint32_t in, uint32_t out)
{
    distance k = {.c = c, .in = f->params[in], .out = f->params[out], .ok = true, .reads = true, .writes = true};
    int64_t count = tir_buffer_count(k.in), n = 0, channels = 0;
    tir_stmt *loop = f->n_symbols > 0 ? NULL : loop_around(f->body, &n);
    if (!loop || k.in == k.out || count <= 0 || count != tir_buffer_count(k.out) ||
        dtype_bytes(k.in->dt) != dtype_bytes(k.out->dt) || k.out->rank == 0 ||
        !tir_is_int(k.out->shape[k.out->rank - 1], &channels) || channels % n != 0)
        return false;
    lanes l = {.k = &k, .loop = loop, .width = channels / n, .whole = channels};
    k.in_bytes = k.out_bytes = count * (int64_t)dtype_bytes(k.in->dt);
    k.bounds = tir_bounds_new(c);
    tir_map_init(&k.counts, &c->mem);
    tir_map_init(&l.loops, &c->mem);
    tir_visit_stmt(loop->body, note_loop, NULL, &l);
    tir_visit_stmt(loop->body, check_lane_of_store, check_lane_of_load, &l);
    for (int64_t i = 0; i < n && k.ok; i++) {
        k.wrote = false; /* what other lanes have written is never read here */
        bounds_push_range(k.bounds, loop->var, bounds_known(i, i), false);
        walk(&k, loop->body, DISTANCE_STEPS);
        tir_bounds_pop(k.bounds);
    }
    return k.ok && k.below <= 0;
}
