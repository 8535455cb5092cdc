/* SPDX-License-Identifier: Apache-2.0 */
/* LowerDeviceStorageAccessInfo: addresses in scratchpads become element indices, their allocations go. FoldUopLoop: the
 * outer loops of a recorded GEMM kernel become hardware loops. What an instruction cannot say, and micro-ops that come
 * too soon after another one on their accumulator, are refused here, where all numbers are known. */
#include "tir/build.h"
#include "tir/names.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

#include <inttypes.h>

#define MAX_SIZE   65535 /* rows, columns, strides: 16 bits */
#define MAX_EXTENT 16383 /* iterations of a hardware loop: 14 bits */

/* --- LowerDeviceStorageAccessInfo --- */

typedef struct lowering {
    vta_pass p;
    uint32_t allocated[VTA_MEM_COUNT];
} lowering;

static tir_expr_ref lower_address(tir_rewriter *r, tir_expr_ref e)
{
    lowering *k = r->ctx;
    vta_pass *p = &k->p;
    enum vta_mem m;
    linear l;
    if (!tir_is_access(e) || !vta_scratchpad(e->u.buffer, &m))
        return e;
    const char *name = e->u.buffer->name;
    if (e->kind == TIR_LOAD) {
        vta_unmarked(p, name, m, "read");
        return e;
    }
    if (e->n_args == 0)
        return vta_int(p, 0);
    if (e->n_args != 1 || !vta_linear(p, e->args[0], &l) || !vta_divide(&l, p->g.lanes[m])) {
        (void)vta_error(p, "an address in '%s' is not that of a whole element of %u values", name, p->g.lanes[m]);
        return e;
    }
    return vta_build(p, &l);
}

static tir_stmt *lower_stmt(tir_rewriter *r, tir_stmt *s)
{
    lowering *k = r->ctx;
    enum vta_mem m;
    if (s->kind == TIR_FOR)
        tir_bounds_pop(k->p.bounds);
    if (!s->buffer || !vta_scratchpad(s->buffer, &m))
        return s;
    if (s->kind == TIR_STORE) {
        vta_unmarked(&k->p, s->buffer->name, m, "written");
        return s;
    }
    const char *node = arena_printf(&r->c->mem, "%s: Pointer(%s)", s->buffer->name, dtype_full_name(s->buffer->dt));
    if (k->allocated[m]++)
        (void)vta_error(&k->p, "'%s' is a second allocation in %s: run StorageRewrite first", s->buffer->name,
                        vta_scope_name(m));
    return tir_attr(r->c, node, "storage_scope", tir_string(r->c, s->buffer->scope_name), s->body);
}

static void enter(tir_rewriter *r, tir_stmt *s)
{
    lowering *k = r->ctx;
    if (s->kind == TIR_FOR)
        tir_bounds_push(k->p.bounds, s->var, s->min, s->extent);
}

/* --- what instructions can say --- */

static void check_field(vta_pass *p, tir_expr_ref call, uint32_t arg, int64_t least, int64_t most, const char *what)
{
    int64_t v;
    if (tir_is_int(call->args[arg], &v) && (v < least || v > most))
        (void)vta_error(p, "%s has %s %" PRId64 ": the instruction holds %" PRId64 " to %" PRId64, call->u.name, what,
                        v, least, most);
}

static void check_call(void *ctx, tir_expr_ref e)
{
    vta_pass *p = ctx;
    bool load = vta_is_call(e, "VTALoadBuffer2D") && e->n_args == VTA_LOAD_ARGS;
    bool store = vta_is_call(e, "VTAStoreBuffer2D") && e->n_args == VTA_STORE_ARGS;
    if (load || store) {
        check_field(p, e, load ? VTA_LOAD_X : VTA_STORE_X, 1, MAX_SIZE, "columns");
        check_field(p, e, load ? VTA_LOAD_Y : VTA_STORE_Y, 1, MAX_SIZE, "rows");
        check_field(p, e, load ? VTA_LOAD_STRIDE : VTA_STORE_STRIDE, 0, MAX_SIZE, "the distance of rows");
    }
    for (uint32_t i = VTA_LOAD_X_PAD_BEFORE; load && i <= VTA_LOAD_Y_PAD_AFTER; i++)
        check_field(p, e, i, 0, VTA_MAX_PAD, "padding");
    if (vta_is_call(e, "VTAUopLoopBegin") && e->n_args == 4)
        check_field(p, e, 0, 1, MAX_EXTENT, "iterations");
}

bool tir_pass_lower_device_storage(compiler *c, tir_func *f)
{
    lowering k = {.allocated = {0}};
    tir_rewriter r = {.c = c, .ctx = &k, .expr = lower_address, .stmt = lower_stmt, .enter = enter};
    if (!vta_pass_begin(c, f, &k.p))
        return false;
    f->body = tir_rewrite_stmt(&r, f->body);
    tir_visit_stmt(f->body, NULL, check_call, &k.p);
    return k.p.ok;
}

/* --- FoldUopLoop --- */

enum { OPERANDS = 3 }; /* dst, src, wgt: neighbors among the arguments of a push */

typedef struct fold {
    vta_pass *p;
    tir_stmt *loop;
    int64_t step[OPERANDS]; /* per iteration, the same in every push */
    bool known, ok;
} fold;

/* Whether the loop's variable only moves the operands of pushes, by steps that the hardware can make. */
static void check_push(void *ctx, tir_expr_ref e)
{
    fold *k = ctx;
    if (e->kind == TIR_EXTERN && e->type.dt != DT_STRING && !vta_is_call(e, "tir.vta.uop_push"))
        k->ok = false;
    if (!vta_is_call(e, "tir.vta.uop_push"))
        return;
    for (uint32_t i = 0; i < VTA_UOP_ARGS; i++)
        k->ok &= (i >= VTA_UOP_DST && i <= VTA_UOP_WGT) || !tir_uses_var(e->args[i], k->loop->var);
    for (uint32_t i = 0; k->ok && i < OPERANDS; i++) {
        static const enum vta_mem memory[OPERANDS] = {VTA_MEM_ACC, VTA_MEM_INP, VTA_MEM_WGT};
        linear l;
        int64_t step = 0;
        k->ok = vta_linear(k->p, e->args[VTA_UOP_DST + i], &l) && vta_take_var(&l, k->loop->var, &step) && step >= 0 &&
                step < (int64_t)k->p->g.depth[memory[i]] && (!k->known || k->step[i] == step);
        k->step[i] = step;
    }
    k->known = true;
}

static void check_stmt(void *ctx, tir_stmt *s)
{
    fold *k = ctx;
    if (s->kind == TIR_FOR)
        k->ok &= !tir_uses_var(s->min, k->loop->var) && !tir_uses_var(s->extent, k->loop->var);
    else
        k->ok &= s->kind == TIR_SEQ || s->kind == TIR_EVALUATE;
}

/* Folds the loops around the pushes of s, outermost first, `left` of them at most. */
static tir_stmt *fold_loops(vta_pass *p, tir_stmt *s, uint32_t left)
{
    int64_t extent;
    fold k = {.p = p, .loop = s, .ok = true};
    if (s->kind != TIR_FOR || left == 0 || !tir_is_int(s->extent, &extent) || extent < 1 || extent > MAX_EXTENT)
        return s;
    tir_bounds_push(p->bounds, s->var, s->min, s->extent);
    tir_visit_stmt(s->body, check_stmt, check_push, &k);
    tir_bounds_pop(p->bounds);
    if (!k.ok || !k.known)
        return s;
    tir_stmt *body = tir_simplify_stmt(p->c, tir_substitute_stmt(p->c, s->body, 1, &s->var, &s->min));
    tir_expr_ref args[] = {vta_int(p, extent), vta_int(p, k.step[0]), vta_int(p, k.step[1]), vta_int(p, k.step[2])};
    tir_stmt *begin = tir_evaluate(p->c, tir_extern(p->c, "VTAUopLoopBegin", tir_scalar(DT_I32), 4, args));
    tir_stmt *end = tir_evaluate(p->c, tir_extern(p->c, "VTAUopLoopEnd", tir_scalar(DT_I32), 0, NULL));
    return tir_seq(p->c, 3, (tir_stmt *[]){begin, fold_loops(p, body, left - 1), end});
}

/* --- micro-ops one behind the other --- */

enum { MOST_DEPTH = 8, DISTANCE = 2, MOST_UOPS = 1 << 20 };

/* A kernel as it will be recorded, with the variables of its own loops. */
typedef struct recording {
    vta_pass *p;
    const tir_var *vars[MOST_DEPTH];
    int64_t values[MOST_DEPTH];
    uint32_t depth;
    int64_t uops, last[DISTANCE]; /* accumulators of the last ones, the latest first */
    bool known, close;
} recording;

/* The accumulator of a push, apart from what the loops around the kernel add to all of them. */
static bool accumulator(recording *r, tir_expr_ref e, int64_t *out)
{
    linear l;
    *out = 0;
    if (!vta_linear(r->p, e, &l))
        return false;
    for (uint32_t i = 0; i < r->depth; i++) {
        int64_t step;
        if (!vta_take_var(&l, r->vars[i], &step))
            return false;
        *out += step * r->values[i];
    }
    *out += l.constant;
    return true;
}

static void record_push(recording *r, tir_expr_ref e)
{
    int64_t at;
    if (!vta_is_call(e, "tir.vta.uop_push"))
        return;
    if (++r->uops > (int64_t)r->p->g.depth[VTA_MEM_UOP]) { /* too many: only their number is of interest */
        r->known = r->uops < MOST_UOPS;
        return;
    }
    if (!accumulator(r, e->args[VTA_UOP_DST], &at)) {
        r->known = false;
        return;
    }
    for (int i = 0; i < DISTANCE && i + 1 < r->uops; i++)
        r->close |= r->last[i] == at;
    r->last[1] = r->last[0];
    r->last[0] = at;
}

static void record(recording *r, tir_stmt *s)
{
    int64_t first, n;
    if (!r->known)
        return;
    if (s->kind == TIR_EVALUATE)
        record_push(r, s->value);
    else if (s->kind == TIR_SEQ)
        for (uint32_t i = 0; i < s->n_stmts; i++)
            record(r, s->stmts[i]);
    else if (s->kind == TIR_FOR && r->depth < MOST_DEPTH && tir_is_int(s->min, &first) && tir_is_int(s->extent, &n)) {
        uint32_t at = r->depth++;
        r->vars[at] = s->var;
        for (int64_t i = 0; i < n && r->known; i++) {
            r->values[at] = first + i;
            record(r, s->body);
        }
        r->depth--;
    } else {
        r->known = false;
    }
}

/* What the run-time refuses when it records the kernel. */
static void check_kernel(vta_pass *p, tir_stmt *s)
{
    recording r = {.p = p, .known = true};
    record(&r, s);
    if (r.uops > (int64_t)p->g.depth[VTA_MEM_UOP]) {
        (void)vta_error(p, "a kernel has %s%" PRId64 " micro-ops; the device has room for %u",
                        r.known ? "" : "at least ", r.uops, p->g.depth[VTA_MEM_UOP]);
        diag_hint(&p->c->diags, "use smaller tiles, or put other loops outside: two loops become hardware loops");
    } else if (r.known && r.close) {
        (void)vta_error(p, "a kernel writes an accumulator again within %d micro-ops, and the hardware would lose the "
                           "first result",
                        DISTANCE);
        diag_hint(&p->c->diags, "reorder: loops over outputs inside those over taps and channels, with three "
                                "iterations or more between them");
    }
}

static tir_stmt *fold_kernel(vta_pass *p, tir_stmt *s)
{
    if (!vta_is_attr(s, VTA_UOP_SCOPE))
        return s;
    bool gemm = tir_expr_equal(s->value, tir_string(p->c, VTA_PUSH_GEMM));
    tir_stmt *body = gemm ? fold_loops(p, s->body, 2) : s->body;
    check_kernel(p, body);
    return body == s->body ? s : tir_attr(p->c, s->node, s->key, s->value, body);
}

bool tir_pass_fold_uop_loop(compiler *c, tir_func *f)
{
    return vta_pass_run(c, f, fold_kernel);
}
