/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations of the accelerator's work, and moving them and allocations outwards: AnnotateALUCoProcScope,
 * InjectSkipCopy, LiftAttrScope, LiftAllocToScopeBegin. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

static tir_stmt *nothing(compiler *c)
{
    return tir_seq(c, 0, NULL);
}

/* --- pragmas --- */

/* Every operation of the ALU is a kernel of its own: one kernel has one opcode and one immediate. */
static tir_stmt *annotate_alu(vta_pass *p, tir_stmt *s)
{
    if (vta_is_attr(s, "pragma_skip_alu"))
        return nothing(p->c);
    if (vta_is_attr(s, VTA_UOP_SCOPE) && vta_is_attr(s->body, VTA_COPROC_SCOPE))
        (void)vta_error(p, "an 'alu' pragma is annotated already: AnnotateALUCoProcScope runs once");
    if (!vta_is_attr(s, "pragma_alu"))
        return s;
    s = tir_attr(p->c, s->node, s->key, tir_string(p->c, vta_stage_name(s)), s->body); /* stages will share buffers */
    return vta_coproc_scope(p, VTA_QUEUE_COMPUTE, vta_uop_scope(p, VTA_PUSH_ALU, s));
}

/* A nest on a scratchpad that no mark makes the accelerator's; with its own name now, buffers are shared later. */
static void find_unmarked(vta_pass *p, tir_stmt *s)
{
    enum vta_mem m;
    if (!p->ok || vta_is_attr(s, "pragma_alu"))
        return;
    if (s->kind == TIR_STORE && vta_scratchpad(s->buffer, &m))
        vta_unmarked(p, s->buffer->name, m, "written");
    if (s->body)
        find_unmarked(p, s->body);
    if (s->orelse)
        find_unmarked(p, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        find_unmarked(p, s->stmts[i]);
}

bool tir_pass_annotate_alu_coproc_scope(compiler *c, tir_func *f)
{
    vta_pass p;
    if (!vta_pass_run(c, f, annotate_alu) || !vta_pass_begin(c, f, &p))
        return false;
    find_unmarked(&p, f->body);
    return p.ok;
}

static tir_stmt *skip_copy(tir_rewriter *r, tir_stmt *s)
{
    return vta_is_attr(s, "pragma_skip_dma_copy") ? nothing(r->c) : s;
}

bool tir_pass_inject_skip_copy(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = skip_copy};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}

/* --- LiftAttrScope --- */

/* A statement, and the annotation taken off it; attr NULL: none. */
typedef struct lifted {
    tir_stmt *s, *attr;
} lifted;

typedef struct lifter {
    compiler *c;
    const char *key;
} lifter;

static lifted lift(lifter *l, tir_stmt *s);

static tir_stmt *wrapped(lifter *l, lifted x)
{
    return x.attr ? tir_attr(l->c, x.attr->node, x.attr->key, x.attr->value, x.s) : x.s;
}

static tir_stmt *with_body(lifter *l, tir_stmt *s, tir_stmt *body)
{
    if (body == s->body)
        return s;
    struct tir_stmt *copy = tir_node_copy(l->c, s);
    copy->body = body;
    return copy;
}

typedef struct push_search {
    tir_expr_ref last;
    bool differ;
} push_search;

static void look_for_push(void *ctx, tir_expr_ref e)
{
    push_search *p = ctx;
    if (!vta_is_call(e, "tir.vta.uop_push"))
        return;
    if (p->last)
        p->differ |= !tir_expr_equal(p->last->args[VTA_UOP_MODE], e->args[VTA_UOP_MODE]) ||
                     !tir_expr_equal(p->last->args[VTA_UOP_RESET], e->args[VTA_UOP_RESET]);
    p->last = e;
}

/* A kernel has one mode and one reset flag: scopes of micro-ops become one only when all their pushes agree. What has
 * no pushes yet is an operation of the ALU, a kernel of its own. */
static bool is_one_kernel(tir_stmt *a, tir_stmt *b)
{
    push_search p = {NULL, false};
    tir_visit_stmt(a, NULL, look_for_push, &p);
    tir_expr_ref of_a = p.last;
    tir_visit_stmt(b, NULL, look_for_push, &p);
    return of_a && p.last != of_a && !p.differ;
}

static bool may_merge(lifter *l, lifted a, lifted b)
{
    return a.attr && b.attr && strcmp(a.attr->node, b.attr->node) == 0 &&
           tir_expr_equal(a.attr->value, b.attr->value) &&
           (strcmp(l->key, VTA_UOP_SCOPE) != 0 || is_one_kernel(a.s, b.s));
}

static lifted lift_seq(lifter *l, tir_stmt *s)
{
    VEC(tir_stmt *) out = {0};
    lifted run = {NULL, NULL};
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        lifted next = lift(l, s->stmts[i]);
        if (run.s && may_merge(l, run, next)) {
            run.s = tir_seq(l->c, 2, (tir_stmt *[]){run.s, next.s});
            continue;
        }
        if (run.s)
            vec_push(&l->c->mem, &out, wrapped(l, run));
        run = next;
    }
    if (out.len == 0 && run.s)
        return run;
    if (run.s)
        vec_push(&l->c->mem, &out, wrapped(l, run));
    return (lifted){tir_seq(l->c, out.len, out.data), NULL};
}

static lifted lift_if(lifter *l, tir_stmt *s)
{
    lifted then = lift(l, s->body), orelse = lift(l, s->orelse);
    if (may_merge(l, then, orelse))
        return (lifted){tir_if(l->c, s->cond, then.s, orelse.s), then.attr};
    return (lifted){tir_if(l->c, s->cond, wrapped(l, then), wrapped(l, orelse)), NULL};
}

/* A kernel without micro-ops is none: what may run no time stays around it. */
static bool may_skip(tir_stmt *s)
{
    int64_t n;
    return s->kind == TIR_IF || (s->kind == TIR_FOR && !(tir_is_int(s->extent, &n) && n > 0));
}

static lifted lift(lifter *l, tir_stmt *s)
{
    lifted inner;
    if (vta_is_attr(s, l->key))
        return (lifted){s->body, s};
    if (s->kind == TIR_SEQ)
        return lift_seq(l, s);
    if (s->kind == TIR_IF && s->orelse) /* one side always runs */
        return lift_if(l, s);
    if (!s->body)
        return (lifted){s, NULL};
    inner = lift(l, s->body);
    /* a nest of the ALU is one kernel in each iteration */
    bool alu = inner.attr && tir_expr_equal(inner.attr->value, tir_string(l->c, VTA_PUSH_ALU));
    bool stays = s->kind == TIR_ALLOCATE || (alu && s->kind == TIR_FOR) ||
                 (strcmp(l->key, VTA_UOP_SCOPE) == 0 && may_skip(s)) ||
                 (s->var && inner.attr && tir_uses_var(inner.attr->value, s->var));
    if (stays)
        return (lifted){with_body(l, s, wrapped(l, inner)), NULL};
    return (lifted){with_body(l, s, inner.s), inner.attr};
}

static bool lift_attr(compiler *c, tir_func *f, const char *key)
{
    lifter l = {c, key};
    f->body = wrapped(&l, lift(&l, f->body));
    return true;
}

bool tir_pass_lift_uop_scope(compiler *c, tir_func *f)
{
    return lift_attr(c, f, VTA_UOP_SCOPE);
}

bool tir_pass_lift_coproc_scope(compiler *c, tir_func *f)
{
    return lift_attr(c, f, VTA_COPROC_SCOPE);
}

/* --- LiftAllocToScopeBegin --- */

typedef struct buffer_search {
    const tir_buffer *b;
    uint32_t uses;
} buffer_search;

static void count_expr(void *ctx, tir_expr_ref e)
{
    buffer_search *k = ctx;
    k->uses += tir_is_access(e) && e->u.buffer == k->b;
}

static void count_stmt(void *ctx, tir_stmt *s)
{
    buffer_search *k = ctx;
    k->uses += s->kind == TIR_STORE && s->buffer == k->b;
}

static uint32_t count_uses(tir_stmt *s, const tir_buffer *b)
{
    buffer_search k = {b, 0};
    tir_visit_stmt(s, count_stmt, count_expr, &k);
    return k.uses;
}

typedef struct thread_loop {
    const tir_buffer *b;
    uint32_t uses; /* in all */
    tir_stmt *loop;
} thread_loop;

static void find_thread_loop(void *ctx, tir_stmt *s)
{
    thread_loop *t = ctx;
    if (s->kind == TIR_FOR && s->for_kind == FOR_VTHREAD && count_uses(s, t->b) == t->uses)
        t->loop = s; /* the innermost: loops inside are visited later */
}

typedef struct alloc_mover {
    compiler *c;
    tir_map sunk; /* loop -> list of allocations that its threads have each for themselves */
} alloc_mover;

typedef struct alloc_list {
    VEC(tir_stmt *) all;
} alloc_list;

static tir_stmt *move(alloc_mover *m, tir_stmt *s, alloc_list *list);

static tir_stmt *rebuilt(compiler *c, const alloc_list *list, tir_stmt *body)
{
    for (uint32_t i = list->all.len; i > 0; i--)
        body = tir_allocate(c, list->all.data[i - 1]->buffer, body);
    return body;
}

/* A buffer that only the body of a loop over virtual threads uses belongs to that loop. */
static bool sinks(alloc_mover *m, tir_stmt *s)
{
    thread_loop t = {s->buffer, count_uses(s->body, s->buffer), NULL};
    enum vta_mem memory;
    if (t.uses == 0 || !vta_scratchpad(s->buffer, &memory))
        return false;
    tir_visit_stmt(s->body, find_thread_loop, NULL, &t);
    if (!t.loop)
        return false;
    alloc_list *list = (alloc_list *)(uintptr_t)tir_map_get(&m->sunk, t.loop);
    if (!list) {
        list = arena_new(&m->c->mem, alloc_list);
        tir_map_put(&m->sunk, t.loop, list);
    }
    vec_push(&m->c->mem, &list->all, s);
    return true;
}

static tir_stmt *move_loop(alloc_mover *m, tir_stmt *s)
{
    alloc_list inner = {0};
    const alloc_list *given = tir_map_get(&m->sunk, s);
    for (uint32_t i = 0; given && i < given->all.len; i++)
        vec_push(&m->c->mem, &inner.all, given->all.data[i]);
    struct tir_stmt *copy = tir_node_copy(m->c, s);
    tir_stmt *body = move(m, s->body, &inner);
    copy->body = rebuilt(m->c, &inner, body);
    return copy;
}

static tir_stmt *move(alloc_mover *m, tir_stmt *s, alloc_list *list)
{
    if (s->kind == TIR_ALLOCATE) {
        if (!sinks(m, s))
            vec_push(&m->c->mem, &list->all, s);
        return move(m, s->body, list);
    }
    if (s->kind == TIR_FOR)
        return move_loop(m, s);
    if (s->kind == TIR_SEQ) {
        tir_stmt **all = arena_array(&m->c->mem, tir_stmt *, s->n_stmts);
        for (uint32_t i = 0; i < s->n_stmts; i++)
            all[i] = move(m, s->stmts[i], list);
        return tir_seq(m->c, s->n_stmts, all);
    }
    if (!s->body)
        return s;
    alloc_list inner = {0};
    struct tir_stmt *copy = tir_node_copy(m->c, s);
    alloc_list *to = s->kind == TIR_LET ? &inner : list; /* sizes may depend on what a let defines */
    tir_stmt *body = move(m, s->body, to);
    copy->body = rebuilt(m->c, &inner, body);
    copy->orelse = s->orelse ? move(m, s->orelse, list) : NULL;
    return copy;
}

bool tir_pass_lift_alloc_to_scope_begin(compiler *c, tir_func *f)
{
    alloc_mover m = {.c = c};
    alloc_list list = {0};
    tir_map_init(&m.sunk, &c->mem);
    tir_stmt *body = move(&m, f->body, &list);
    f->body = rebuilt(c, &list, body);
    return true;
}
