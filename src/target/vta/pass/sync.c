/* SPDX-License-Identifier: Apache-2.0 */
/* InjectCoProcSync, first half: the host waits for the accelerator (pragma_coproc_sync, and where a host access would
 * meet unfinished work), and barriers make what one side wrote visible to the other. Second half, the tokens between
 * the accelerator's own queues: sync_token.c. */
#include "target/vta/pass/sync.h"
#include "tir/build.h"
#include "tir/walk.h"

typedef struct access {
    const tir_buffer *b;
    bool writes;
    tir_expr_ref min, max; /* scalars touched, over all loops left so far; NULL: the whole buffer */
} access;

/* What a statement does to memory, outermost parts of it that later statements can meet. */
typedef struct effects {
    VEC(access) host, device;
    VEC(access) outstanding; /* of device: what no wait inside the statement has waited for */
    bool waits;              /* the host has waited within it, whatever was outstanding before it */
    bool works;              /* the accelerator has work in it */
} effects;

typedef struct planner {
    vta_pass *p;
    vta_inserts *ins;
    tir_map touched; /* buffers that host and accelerator both access: they need barriers */
    bool planned;    /* a synchronisation was inserted */
} planner;

/* --- accesses --- */

static void add_access(planner *k, effects *e, bool device, access a)
{
    enum vta_mem m;
    if (vta_scratchpad(a.b, &m))
        return;
    if (!device) {
        vec_push(&k->p->c->mem, &e->host, a);
        return;
    }
    vec_push(&k->p->c->mem, &e->device, a);
    vec_push(&k->p->c->mem, &e->outstanding, a);
}

typedef struct collector {
    planner *k;
    effects *e;
    bool device;
} collector;

static access element(planner *k, const tir_buffer *b, bool writes, uint32_t n, tir_expr_ref const *idx)
{
    bool flat = n == 1 && idx[0]->type.lanes == 1;
    tir_expr_ref at = flat ? tir_cast(k->p->c, k->p->f->index_type, idx[0]) : NULL;
    return (access){b, writes, at, at};
}

/* The scalars in memory that a transfer touches. */
static access transferred(planner *k, tir_expr_ref call, bool writes)
{
    vta_pass *p = k->p;
    uint32_t first = writes ? VTA_STORE_DRAM : VTA_LOAD_DRAM; /* then offset, columns, rows, stride */
    const tir_buffer *b = call->args[first]->u.buffer;
    tir_expr_ref a[4];
    int64_t memory = 0;
    bool known = tir_is_int(call->args[writes ? VTA_STORE_MEMORY : VTA_LOAD_MEMORY], &memory) && memory >= 0 &&
                 memory < VTA_MEM_COUNT;
    for (uint32_t i = 0; i < 4; i++) {
        tir_expr_ref e = call->args[first + 1 + i];
        known = known && dtype_is_int(e->type.dt) && e->type.lanes == 1;
        a[i] = known ? tir_cast(p->c, p->f->index_type, e) : NULL;
    }
    if (!known)
        return (access){b, writes, NULL, NULL};
    tir_expr_ref lanes = vta_int(p, p->g.lanes[memory]);
    tir_expr_ref rows = tir_mul(p->c, tir_sub(p->c, a[2], vta_int(p, 1)), a[3]);
    tir_expr_ref end = tir_mul(p->c, tir_add(p->c, tir_add(p->c, a[0], rows), a[1]), lanes);
    return (access){b, writes, tir_mul(p->c, a[0], lanes), tir_sub(p->c, end, vta_int(p, 1))};
}

static void collect_call(collector *q, tir_expr_ref e)
{
    bool load =
        vta_is_call(e, "VTALoadBuffer2D") && e->n_args == VTA_LOAD_ARGS && e->args[VTA_LOAD_DRAM]->kind == TIR_ADDRESS;
    bool store = vta_is_call(e, "VTAStoreBuffer2D") && e->n_args == VTA_STORE_ARGS &&
                 e->args[VTA_STORE_DRAM]->kind == TIR_ADDRESS;
    if (load || store) {
        add_access(q->k, q->e, q->device, transferred(q->k, e, store));
        return;
    }
    for (uint32_t i = 0; i < e->n_args; i++) { /* whoever has the address may do anything */
        if (e->args[i]->kind != TIR_ADDRESS)
            continue;
        add_access(q->k, q->e, q->device, (access){e->args[i]->u.buffer, true, NULL, NULL});
        add_access(q->k, q->e, q->device, (access){e->args[i]->u.buffer, false, NULL, NULL});
    }
}

static void collect_expr(void *ctx, tir_expr_ref e)
{
    collector *q = ctx;
    if (e->kind == TIR_LOAD)
        add_access(q->k, q->e, q->device, element(q->k, e->u.buffer, false, e->n_args, e->args));
    if (e->kind == TIR_EXTERN)
        collect_call(q, e);
}

static void collect_tree(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, collect_expr, ctx);
}

/* The accesses that stand directly in s: reads before what it writes. */
static void collect_own(planner *k, tir_stmt *s, bool device, effects *e)
{
    collector q = {k, e, device};
    tir_stmt_exprs(s, collect_tree, &q);
    if (s->kind == TIR_STORE)
        add_access(k, e, device, element(k, s->buffer, true, s->n_indices, s->indices));
}

static tir_expr_ref at_end(vta_pass *p, tir_expr_ref e, tir_stmt *loop, bool greatest)
{
    linear l, rest;
    int64_t coeff;
    if (!e || !vta_linear(p, e, &l))
        return NULL;
    rest = l;
    if (!vta_take_var(&rest, loop->var, &coeff))
        return NULL;
    tir_expr_ref last = tir_sub(p->c, tir_add(p->c, loop->min, loop->extent), tir_int(p->c, loop->var->type.dt, 1));
    tir_expr_ref v = (coeff > 0) == greatest ? last : loop->min;
    tir_expr_ref there = tir_substitute(p->c, e, 1, &loop->var, &v);
    return tir_simplify(p->bounds, there);
}

/* What the accesses are over all iterations of the loop. */
static void relax(planner *k, access *list, uint32_t n, tir_stmt *loop)
{
    for (uint32_t i = 0; i < n; i++) {
        tir_expr_ref min = at_end(k->p, list[i].min, loop, false), max = at_end(k->p, list[i].max, loop, true);
        list[i].min = max ? min : NULL;
        list[i].max = min ? max : NULL;
    }
}

/* --- planning --- */

static effects plan(planner *k, tir_stmt *s);

static bool conflicts(const access *a, const access *b)
{
    return a->b == b->b && (a->writes || b->writes);
}

static bool meets(const effects *before, const access *host)
{
    for (uint32_t i = 0; i < before->outstanding.len; i++)
        if (conflicts(&before->outstanding.data[i], host))
            return true;
    return false;
}

static void wait_after(planner *k, tir_stmt *s)
{
    k->planned = true;
    vta_insert_after(k->ins, s,
                     tir_evaluate(k->p->c, tir_extern(k->p->c, "tir.vta.coproc_sync", tir_scalar(DT_I32), 0, NULL)));
}

/* The barrier that covers the accesses of one buffer and kind. */
static tir_stmt *barrier(planner *k, const access *list, uint32_t n)
{
    vta_pass *p = k->p;
    const tir_buffer *b = list[0].b;
    tir_expr_ref min = list[0].min, max = list[0].max, count = vta_int(p, 1);
    for (uint32_t i = 1; i < n; i++) {
        min = min && list[i].min ? tir_min(p->c, min, list[i].min) : NULL;
        max = max && list[i].max ? tir_max(p->c, max, list[i].max) : NULL;
    }
    if (min && max)
        count = tir_add(p->c, tir_sub(p->c, max, min), tir_int(p->c, min->type.dt, 1));
    for (uint32_t i = 0; !(min && max) && i < b->rank; i++)
        count = tir_mul(p->c, count, tir_cast(p->c, p->f->index_type, b->shape[i]));
    tir_expr_ref start = min && max ? tir_cast(p->c, p->f->index_type, min) : vta_int(p, 0);
    tir_expr_ref args[] = {tir_address(p->c, b, 0, NULL), vta_int(p, dtype_bits(b->dt)), tir_simplify(p->bounds, start),
                           tir_simplify(p->bounds, tir_cast(p->c, p->f->index_type, count))};
    const char *name = list[0].writes ? "tir.vta.coproc_write_barrier" : "tir.vta.coproc_read_barrier";
    return tir_evaluate(p->c, tir_extern(p->c, name, tir_scalar(DT_I32), 4, args));
}

typedef struct entry {
    tir_stmt *s;
    effects e;
} entry;

static bool host_does(const effects *e, const access *what)
{
    for (uint32_t i = 0; i < e->host.len; i++)
        if (e->host.data[i].b == what->b && e->host.data[i].writes == what->writes)
            return true;
    return false;
}

/* What the accelerator writes before the host access at `i` reads it, or reads after that access wrote it, up to the
 * next such access of the host; `round`: the statements run again and again, the last before the first. */
static void plan_barrier(planner *k, const entry *all, uint32_t n, uint32_t i, const access *host, bool round)
{
    VEC(access) found = {0};
    uint32_t reach = round ? n : host->writes ? n - i - 1 : i;
    for (uint32_t d = 1; d <= reach; d++) {
        uint32_t at = host->writes ? (i + d) % n : (i + n - d) % n;
        const effects *e = &all[at].e;
        for (uint32_t q = 0; q < e->device.len; q++)
            if (e->device.data[q].b == host->b && e->device.data[q].writes == !host->writes)
                vec_push(&k->p->c->mem, &found, e->device.data[q]);
        if (host_does(e, host))
            break;
    }
    if (found.len)
        vta_insert_once(k->ins, all[host->writes ? i : (i + n - 1) % n].s, barrier(k, found.data, found.len));
}

static void append(planner *k, effects *to, const effects *from, bool certain)
{
    if (from->waits && certain)
        to->outstanding.len = 0;
    to->waits |= from->waits && certain;
    to->works |= from->works;
    for (uint32_t i = 0; i < from->host.len; i++)
        vec_push(&k->p->c->mem, &to->host, from->host.data[i]);
    for (uint32_t i = 0; i < from->device.len; i++)
        vec_push(&k->p->c->mem, &to->device, from->device.data[i]);
    for (uint32_t i = 0; i < from->outstanding.len; i++)
        vec_push(&k->p->c->mem, &to->outstanding, from->outstanding.data[i]);
}

static void wait(planner *k, effects *sum, tir_stmt *s)
{
    wait_after(k, s);
    sum->outstanding.len = 0;
    sum->waits = true;
}

/* Statements in order. */
static effects plan_list(planner *k, tir_stmt *const *stmts, uint32_t n, bool round)
{
    effects sum = {0};
    entry *all = arena_array(&k->p->c->mem, entry, n);
    bool carried = false, waited = false;
    for (uint32_t i = 0; i < n; i++) {
        all[i] = (entry){stmts[i], plan(k, stmts[i])};
        bool met = false;
        for (uint32_t h = 0; h < all[i].e.host.len && i > 0; h++)
            met |= meets(&sum, &all[i].e.host.data[h]);
        if (met)
            wait(k, &sum, stmts[i - 1]);
        append(k, &sum, &all[i].e, true);
    }
    for (uint32_t i = 0; i < n && round && !waited; i++) { /* what the next iteration meets before it waits */
        for (uint32_t h = 0; h < all[i].e.host.len; h++)
            carried |= meets(&sum, &all[i].e.host.data[h]);
        waited = all[i].e.waits;
    }
    if (carried)
        wait(k, &sum, stmts[n - 1]);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t h = 0; h < all[i].e.host.len; h++)
            plan_barrier(k, all, n, i, &all[i].e.host.data[h], round);
    return sum;
}

static effects plan_body(planner *k, tir_stmt *s, bool round)
{
    if (s->kind == TIR_SEQ)
        return plan_list(k, s->stmts, s->n_stmts, round);
    return plan_list(k, &s, 1, round);
}

static void relax_all(planner *k, effects *e, tir_stmt *loop)
{
    relax(k, e->host.data, e->host.len, loop);
    relax(k, e->device.data, e->device.len, loop);
    relax(k, e->outstanding.data, e->outstanding.len, loop);
}

/* Everything in s is the accelerator's. */
static void plan_task(planner *k, tir_stmt *s, effects *e)
{
    effects inner = {0};
    collect_own(k, s, true, &inner);
    if (s->kind == TIR_FOR)
        tir_bounds_push(k->p->bounds, s->var, s->min, s->extent);
    if (s->body)
        plan_task(k, s->body, &inner);
    if (s->orelse)
        plan_task(k, s->orelse, &inner);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        plan_task(k, s->stmts[i], &inner);
    if (s->kind == TIR_FOR) {
        tir_bounds_pop(k->p->bounds);
        relax_all(k, &inner, s);
    }
    append(k, e, &inner, true);
}

static effects plan_loop(planner *k, tir_stmt *s)
{
    int64_t extent;
    effects e = {0}, out = {0};
    collect_own(k, s, false, &out);
    tir_bounds_push(k->p->bounds, s->var, s->min, s->extent);
    e = plan_body(k, s->body, s->for_kind != FOR_VTHREAD);
    tir_bounds_pop(k->p->bounds);
    relax_all(k, &e, s);
    e.waits = e.waits && tir_is_int(s->extent, &extent) && extent > 0;
    append(k, &out, &e, e.waits);
    return out;
}

static effects plan(planner *k, tir_stmt *s)
{
    effects e = {0}, inner;
    if (vta_is_attr(s, VTA_COPROC_SCOPE)) {
        e.works = true;
        plan_task(k, s->body, &e);
        return e;
    }
    if (s->kind == TIR_FOR)
        return plan_loop(k, s);
    if (s->kind == TIR_SEQ)
        return plan_body(k, s, false);
    collect_own(k, s, false, &e);
    if (s->kind == TIR_IF) {
        effects then = plan_body(k, s->body, false), orelse = {0};
        if (s->orelse)
            orelse = plan_body(k, s->orelse, false);
        bool both = then.waits && orelse.waits;
        then.waits = both;
        orelse.waits = false;
        append(k, &e, &then, both);
        append(k, &e, &orelse, false);
    } else if (s->body) { /* an allocation, a let, an annotation: what stands in it stands here */
        inner = plan_body(k, s->body, false);
        append(k, &e, &inner, true);
    }
    if (s->kind == TIR_EVALUATE && vta_is_call(s->value, "tir.vta.coproc_sync"))
        e.waits = k->planned = true;
    return e;
}

/* The statement after which the function's last wait stands: within the allocations around everything. */
static tir_stmt *tail_of(tir_stmt *s)
{
    while (s->kind == TIR_ALLOCATE || s->kind == TIR_LET ||
           (s->kind == TIR_ATTR && strcmp(s->key, VTA_COPROC_SCOPE) != 0))
        s = s->body;
    return s->kind == TIR_SEQ && s->n_stmts ? s->stmts[s->n_stmts - 1] : s;
}

/* --- pragma, and the pass --- */

static tir_stmt *expand_pragma(tir_rewriter *r, tir_stmt *s)
{
    if (!vta_is_attr(s, "pragma_coproc_sync"))
        return s;
    tir_stmt *wait = tir_evaluate(r->c, tir_extern(r->c, "tir.vta.coproc_sync", tir_scalar(DT_I32), 0, NULL));
    return tir_seq(r->c, 2, (tir_stmt *[]){s->body, wait});
}

bool tir_pass_inject_coproc_sync(compiler *c, tir_func *f)
{
    vta_pass p;
    vta_inserts ins = {.c = c};
    tir_rewriter r = {.c = c, .stmt = expand_pragma};
    if (!vta_pass_begin(c, f, &p))
        return false;
    planner k = {.p = &p, .ins = &ins};
    vta_inserts_begin(&ins);
    f->body = vta_inserts_apply(&ins, tir_rewrite_stmt(&r, f->body)); /* a copy: no statement stands in two places */
    effects all = plan(&k, f->body);
    if (!all.works)
        return true;
    if (!vta_plan_tokens(&p, f->body, &ins))
        return false;
    if (all.outstanding.len || !k.planned)
        wait_after(&k, tail_of(f->body));
    f->body = vta_inserts_apply(&ins, f->body);
    return p.ok;
}
