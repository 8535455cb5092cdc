/* SPDX-License-Identifier: Apache-2.0 */
/* The primitive prefetch: what is read once from far memory arrives while the block before it is computed.
 * A loop that runs many times for each block fetches a little of the next one in every iteration, so that the traffic
 * is even. An annotation of the loop's body says which element; it changes no result. */
#include "te/stage.h"
#include "tir/node.h"

#include <string.h>

#define LINE_BYTES 64 /* fetched at once */
#define MOST_RUNS  4
#define MOST_BETWEEN 2 /* times a run's length: what lies between runs that are no further apart comes with them */

bool te_apply_prefetch(te_lowering *lw, const te_prim *p, te_stage *st)
{
    const te_prefetch_args *a = &p->u.prefetch;
    te_prim look = *p;
    look.u.stage = a->at.stage;
    te_stage *source = te_find_stage(lw, p, a->tensor), *at = te_find_stage(lw, p, a->at.stage);
    te_iter *it = te_find_leaf(lw, p, st, a->axis), *at_iter = at ? te_find_leaf(lw, &look, at, a->at.axis) : NULL;
    if (!source || !it || !at_iter)
        return false;
    if (source->op.kind != TE_PLACEHOLDER)
        return te_prim_error(lw, p, a->axis, "only a parameter of the function can be fetched ahead");
    te_ahead *ahead = arena_new(&lw->c->mem, te_ahead);
    *ahead = (te_ahead){source, at, at_iter, p, it->ahead};
    it->ahead = ahead;
    return true;
}

/* Row-major position of an element. */
static tir_expr_ref flat(te_lowering *lw, const te_tensor *t, tir_expr_ref const *at)
{
    tir_expr_ref e = tir_i64(lw->c, 0);
    for (uint32_t i = 0; i < t->rank; i++)
        e = tir_add(lw->c, tir_mul(lw->c, e, t->shape[i]), at[i]);
    return tir_simplify(lw->bounds, e);
}

/* Iterations of a nest so far. Where only a run knows the extent of a loop, those of the loops up to it count apart. */
typedef struct fetch_count {
    tir_expr_ref around; /* of the loops up to the last open one; NULL: none is open */
    tir_expr_ref done;   /* of the loops inside of it */
    int64_t total;       /* of which there are so many */
} fetch_count;

/* Loops first..end of the stage take their places behind those that are counted already. */
static bool count_loops(te_lowering *lw, const te_stage *st, uint32_t first, uint32_t end, fetch_count *count)
{
    compiler *c = lw->c;
    for (uint32_t i = first; i < end; i++) {
        const te_iter *it = st->leaves.data[i];
        int64_t n = 0;
        if (!tir_is_int(it->extent, &n)) {
            tir_expr_ref so_far = count->done;
            if (count->around)
                so_far = tir_add(c, tir_mul(c, count->around, tir_i64(c, count->total)), so_far);
            so_far = tir_add(c, tir_mul(c, so_far, it->extent), tir_varref(c, it->var));
            *count = (fetch_count){so_far, tir_i64(c, 0), 1};
            continue;
        }
        if (!i64_mul(count->total, n, &count->total))
            return false;
        if (n > 1)
            count->done = tir_add(c, tir_mul(c, count->done, it->extent), tir_varref(c, it->var));
    }
    return count->total > 0;
}

/* What each iteration fetches: one element of each run of the region, runs being equally far apart. */
typedef struct fetch_plan {
    tir_expr_ref at; /* of the first run */
    int64_t runs, between;
} fetch_plan;

/* Elements between the first and the last of a run, where it was that of the whole region; false, and nothing is
 * changed: it is not known, or all are one run. A region of several runs has them along its first dimension that is
 * longer than 1. */
static bool read_runs(te_lowering *lw, const te_tensor *t, tir_expr_ref const *lo, tir_expr_ref const *hi,
                      fetch_plan *out, int64_t *size)
{
    tir_expr_ref first = flat(lw, t, lo), end[TIR_MAX_RANK], next[TIR_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) {
        end[i] = hi[i];
        next[i] = lo[i];
    }
    for (uint32_t i = 0; i < t->rank && out->runs == 1; i++) {
        int64_t more = 0;
        if (!tir_is_int(tir_simplify(lw->bounds, tir_sub(lw->c, hi[i], lo[i])), &more))
            return false;
        if (more == 0)
            continue;
        out->runs = more + 1;
        end[i] = lo[i];
        next[i] = tir_add(lw->c, lo[i], tir_i64(lw->c, 1));
    }
    return tir_is_int(tir_simplify(lw->bounds, tir_sub(lw->c, flat(lw, t, end), first)), size) &&
           tir_is_int(tir_simplify(lw->bounds, tir_sub(lw->c, flat(lw, t, next), first)), &out->between) &&
           out->between > *size + 1;
}

/* What is read of the source for one round of the loop `at`: by the stage itself, or by one that is computed there for
 * it. */
static bool read_in_round(te_lowering *lw, te_stage *st, const te_ahead *a, tir_expr_ref *lo, tir_expr_ref *hi)
{
    if (te_region_read(lw, st, a->source, a->at, a->at_iter, lo, hi))
        return true;
    for (uint32_t i = 0; i < lw->stages.len; i++) {
        te_stage *for_it = lw->stages.data[i];
        if (for_it->live && for_it->attach == ATTACH_AT && for_it->at == a->at && for_it->at_iter == a->at_iter &&
            te_region_read(lw, for_it, a->source, a->at, a->at_iter, lo, hi))
            return true;
    }
    return false;
}

/* The position of the region that the next round reads, where so many elements from there exist. */
static tir_expr_ref next_region(te_lowering *lw, const te_ahead *a, tir_expr_ref first, int64_t reach)
{
    compiler *c = lw->c;
    tir_expr_ref after = tir_add(c, tir_varref(c, a->at_iter->var), tir_i64(c, 1)),
                 next = tir_simplify(lw->bounds, tir_substitute(c, first, 1, &a->at_iter->var, &after));
    return tir_min(c, next, tir_i64(c, tir_buffer_count(a->source->op.outputs[0]->buffer) - reach));
}

/* Many runs of so many elements, which the iterations share: so many, one after the other, fetch a piece of the same
 * run each. */
static bool share_runs(te_lowering *lw, const te_ahead *a, tir_expr_ref first, const fetch_count *n, int64_t run,
                       fetch_plan *out)
{
    compiler *c = lw->c;
    const te_tensor *t = a->source->op.outputs[0];
    const int64_t share = n->total / out->runs, step = (run + share - 1) / share,
                  reach = (out->runs - 1) * out->between + share * step;
    if (n->total % out->runs != 0 || step * (int64_t)dtype_bytes(t->dt) > LINE_BYTES ||
        reach > tir_buffer_count(t->buffer))
        return false;
    tir_expr_ref which = tir_floordiv(c, n->done, tir_i64(c, share)),
                 piece = tir_floormod(c, n->done, tir_i64(c, share));
    tir_expr_ref from = tir_add(c, tir_mul(c, which, tir_i64(c, out->between)), tir_mul(c, piece, tir_i64(c, step)));
    out->at = tir_add(c, next_region(lw, a, first, reach), tir_simplify(lw->bounds, from));
    out->runs = 1;
    return true;
}

/* false: the region is not known, too small to be worth it, or too large for a line of each run each time. Inside of an
 * open loop a line each time is enough: its first iterations share the region, the later ones find it. */
static bool plan_fetches(te_lowering *lw, te_stage *st, const te_iter *it, const te_ahead *a, fetch_plan *out)
{
    compiler *c = lw->c;
    const te_tensor *t = a->source->op.outputs[0];
    tir_expr_ref lo[TIR_MAX_RANK], hi[TIR_MAX_RANK];
    fetch_count n = {NULL, tir_i64(c, 0), 1};
    int64_t size = 0, count = tir_buffer_count(t->buffer), line = LINE_BYTES / (int64_t)dtype_bytes(t->dt);
    *out = (fetch_plan){.runs = 1};
    if (st->attach != ATTACH_AT || st->at != a->at || !read_in_round(lw, st, a, lo, hi))
        return false;
    uint32_t outside = te_leaf_position(a->at, a->at_iter), place = te_leaf_position(a->at, st->at_iter);
    if (!count_loops(lw, a->at, outside + 1, place + 1, &n) ||
        !count_loops(lw, st, 0, te_leaf_position(st, it) + 1, &n))
        return false;
    tir_expr_ref first = flat(lw, t, lo), last = flat(lw, t, hi);
    if (!tir_is_int(tir_simplify(lw->bounds, tir_sub(c, last, first)), &size))
        return false;
    fetch_plan apart = *out;
    int64_t run = 0, step = (size + n.total) / n.total;
    if (!n.around && read_runs(lw, t, lo, hi, &apart, &run) &&
        (step > line || size / apart.runs > MOST_BETWEEN * run)) {
        if (share_runs(lw, a, first, &n, run + 1, &apart)) {
            *out = apart;
            return true;
        }
        if (step > line || apart.runs <= MOST_RUNS) {
            *out = apart;
            size = run;
            step = (size + n.total) / n.total;
        }
    }
    step = n.around && step > line ? line : step;
    int64_t share = n.total * step, rest = n.around && size + 1 > share ? size + 1 - share : 0,
            reach = rest + share + (out->runs - 1) * out->between;
    if (step > line || reach > count || out->runs > MOST_RUNS)
        return false;
    tir_expr_ref next = next_region(lw, a, first, reach);
    if (rest > 0)
        next = tir_add(c, next, tir_min(c, tir_mul(c, n.around, tir_i64(c, share)), tir_i64(c, rest)));
    out->at = tir_add(c, next, tir_simplify(lw->bounds, tir_mul(c, n.done, tir_i64(c, step))));
    return true;
}

/* The body with what is fetched of one parameter. */
static tir_stmt *with_fetches(te_lowering *lw, te_stage *st, const te_iter *it, const te_ahead *a, tir_stmt *body)
{
    fetch_plan plan;
    if (!plan_fetches(lw, st, it, a, &plan))
        return body;
    const te_tensor *t = a->source->op.outputs[0];
    vec_push(&lw->c->mem, &lw->fetching, a->from);
    for (int64_t i = plan.runs; i-- > 0;) {
        tir_expr_ref at = i > 0 ? tir_add(lw->c, plan.at, tir_i64(lw->c, i * plan.between)) : plan.at;
        tir_expr_ref element = tir_load(lw->c, te_param_of(lw, t), 1, &at);
        body = tir_attr(lw->c, it->name, "prefetch", element, body);
    }
    return body;
}

tir_stmt *te_with_prefetch(te_lowering *lw, te_stage *st, const te_iter *it, tir_stmt *body)
{
    for (const te_ahead *a = it->ahead; a; a = a->also)
        body = with_fetches(lw, st, it, a, body);
    return body;
}

te_sched te_without_idle(const te_lowering *lw)
{
    te_sched out = *lw->s;
    memset(&out.prims, 0, sizeof out.prims);
    for (uint32_t i = 0; i < lw->s->prims.len; i++) {
        const te_prim *p = &lw->s->prims.data[i];
        bool works = p->kind != TE_PREFETCH;
        for (uint32_t k = 0; k < lw->fetching.len; k++)
            works |= lw->fetching.data[k] == p;
        if (works)
            vec_push(&lw->c->mem, &out.prims, *p);
    }
    return out;
}
