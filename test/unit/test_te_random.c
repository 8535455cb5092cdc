/* SPDX-License-Identifier: Apache-2.0 */
/* Computations by chance under schedules by chance: the numbers are those of the computation without a schedule, as
 * lowered, after the passes of `--lower plain` with virtual threads, and after all of a CPU's. All arithmetic is on
 * integers that wrap around, so sums do not depend on their order. LATHE_ROUNDS=N runs more cases, LATHE_SEED=N one. */
#include "../loop_steps.h"
#include "te/lower.h"
#include "te/te.h"
#include "te/text.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/verify.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)       (sizeof(a) / sizeof *(a))
#define MAX_RANK       3
#define MAX_LOOPS      5
#define MAX_TENSORS    16
#define ROUNDS         500
#define PRIMITIVES     40
#define SYMBOLIC       ((int64_t)-1) /* an extent: the symbol n */
#define SYMBOLIC_BYTES 65536
#define MAX_SYMBOL     17
#define MAX_STEPS      3e5

typedef struct tensor {
    const char *name;
    uint32_t rank;
    int64_t extents[MAX_RANK];
} tensor;

typedef struct loop {
    const char *name;
    int64_t extent;
} loop;

typedef struct axis_name {
    const char *stage, *axis;
} axis_name;

typedef struct chance {
    uint64_t state;
    compiler *c;
    bool symbolic;
    tensor tensors[MAX_TENSORS];
    uint32_t n_tensors;
    loop loops[MAX_LOOPS]; /* of the operation that is being written */
    uint32_t n_loops;
    te_graph *g;
    VEC(const char *) stages;
    VEC(axis_name) axes; /* those that are gone, too: what does not fit is refused */
    uint32_t fresh;
    const char *placed; /* the stage that was placed last */
} chance;

static uint32_t pick(chance *x, int64_t n)
{
    x->state = x->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x->state >> 33) % (uint32_t)n;
}

/* --- a computation --- */

/* One symbolic loop is enough for an operation. */
static int64_t some_extent(chance *x)
{
    bool is_free = x->symbolic;
    for (uint32_t i = 0; i < x->n_loops; i++)
        is_free &= x->loops[i].extent != SYMBOLIC;
    return is_free && pick(x, 3) == 0 ? SYMBOLIC : 1 + (int64_t)pick(x, 7);
}

static const char *extent_text(chance *x, int64_t n)
{
    return n == SYMBOLIC ? "n" : arena_printf(&x->c->mem, "%" PRId64, n);
}

/* An index into n elements; NULL: no loop fits. */
static const char *symbolic_index(chance *x)
{
    for (uint32_t i = 0, at = pick(x, x->n_loops + 1u); i < x->n_loops; i++) {
        const loop *l = &x->loops[(at + i) % x->n_loops];
        if (l->extent == SYMBOLIC)
            return pick(x, 4) ? l->name : arena_printf(&x->c->mem, "((n - 1) - %s)", l->name);
    }
    return NULL;
}

/* An index into `size` elements that lies inside for all values of the loops. */
static const char *index_into(chance *x, int64_t size)
{
    arena *m = &x->c->mem;
    if (size == SYMBOLIC)
        return symbolic_index(x);
    if (x->n_loops == 0 || pick(x, 12) == 0)
        return arena_printf(m, "%u", pick(x, size));
    const loop *a = &x->loops[pick(x, x->n_loops)], *b = &x->loops[pick(x, x->n_loops)];
    if (a->extent == SYMBOLIC || (a != b && pick(x, 8) == 0))
        return arena_printf(m, "floormod((%s + %s), %" PRId64 ")", a->name, b->name, size);
    int64_t step = 1 + pick(x, 3), reach = step * (a->extent - 1) + b->extent, room = size - a->extent;
    if (a != b && b->extent != SYMBOLIC && reach <= size && pick(x, 3))
        return arena_printf(m, "(((%s*%" PRId64 ") + %s) + %u)", a->name, step, b->name, pick(x, size - reach + 1));
    if (room < 0) {
        switch (pick(x, 3)) {
        case 0: return arena_printf(m, "floordiv(%s, %" PRId64 ")", a->name, (a->extent + size - 1) / size);
        case 1: return arena_printf(m, "min(%s, %" PRId64 ")", a->name, size - 1);
        default: return arena_printf(m, "floormod(%s, %" PRId64 ")", a->name, size);
        }
    }
    switch (pick(x, 5)) {
    case 0: return arena_printf(m, "(%" PRId64 " - %s)", a->extent - 1 + (int64_t)pick(x, room + 1), a->name);
    case 1: return arena_printf(m, "(%s + %u)", a->name, pick(x, room + 1));
    default: return a->name;
    }
}

/* An element of some tensor. Sometimes the first index moves over the edge, and what lies outside is a constant, or the
 * index itself is read from memory. */
static const char *some_load(chance *x)
{
    arena *m = &x->c->mem;
    const tensor *t = &x->tensors[pick(x, 2) ? x->n_tensors - 1 : pick(x, x->n_tensors)];
    const char *idx[MAX_RANK] = {"", "", ""}, *guard = NULL, *comma[] = {"", ", ", ", "};
    for (uint32_t i = 0; i < t->rank; i++)
        if (!(idx[i] = index_into(x, t->extents[i])))
            return "int32(5)";
    if (t->rank && x->n_loops && pick(x, 5) == 0) {
        const char *n = extent_text(x, t->extents[0]);
        idx[0] = arena_printf(m, "(%s - %u)", x->loops[pick(x, x->n_loops)].name, pick(x, 4));
        guard = arena_printf(m, "((%s >= 0) && (%s < %s))", idx[0], idx[0], n);
    } else if (t->rank && t->extents[0] != SYMBOLIC && pick(x, 10) == 0) {
        idx[0] = arena_printf(m, "floormod(cast(int64, (int32*)p0[%s]), %" PRId64 ")",
                              index_into(x, x->tensors[0].extents[0]), t->extents[0]);
    }
    const char *load = arena_printf(m, "(int32*)%s[%s%s%s%s%s]", t->name, idx[0], comma[t->rank > 1], idx[1],
                                    comma[t->rank > 2], idx[2]);
    return guard ? arena_printf(m, "select(%s, %s, int32(%d))", guard, load, (int)pick(x, 5) - 2) : load;
}

static const char *some_value(chance *x, uint32_t depth)
{
    arena *m = &x->c->mem;
    if (depth == 0)
        return pick(x, 8) ? some_load(x) : arena_printf(m, "int32(%u)", pick(x, 9));
    const char *a = some_load(x), *b = some_value(x, depth - 1);
    switch (pick(x, 6)) {
    case 0: return arena_printf(m, "(%s + %s)", a, b);
    case 1: return arena_printf(m, "(%s - %s)", a, b);
    case 2: return arena_printf(m, "(%s*%s)", a, b);
    case 3: return arena_printf(m, "max(%s, %s)", a, b);
    case 4: return arena_printf(m, "select((%s < %s), %s, %s)", a, b, b, a);
    default: return a;
    }
}

/* "[a: 3, b: n]"; the loops join those of the operation. */
static const char *some_axes(chance *x, const char *names, uint32_t n)
{
    const char *text = "";
    for (uint32_t i = 0; i < n; i++) {
        loop l = {arena_printf(&x->c->mem, "%c", names[i]), some_extent(x)};
        x->loops[x->n_loops++] = l;
        text = arena_printf(&x->c->mem, "%s%s%s: %s", text, i ? ", " : "", l.name, extent_text(x, l.extent));
    }
    return arena_printf(&x->c->mem, "[%s]", text);
}

static tensor *new_tensor(chance *x, const char *name, uint32_t rank)
{
    tensor *t = &x->tensors[x->n_tensors++];
    *t = (tensor){.name = name, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        t->extents[i] = x->loops[i].extent;
    return t;
}

static const char *some_compute(chance *x, const char *name)
{
    static const char *const reducers[] = {"sum", "max", "min", "prod"};
    arena *m = &x->c->mem;
    uint32_t rank = pick(x, MAX_RANK + 1), n_reduce = pick(x, 2) ? 0 : 1 + pick(x, 2);
    x->n_loops = 0;
    const char *axes = some_axes(x, "abc", rank), *text = NULL;
    if (n_reduce == 0) {
        text = arena_printf(m, "compute %s: int32%s = %s\n", name, axes, some_value(x, pick(x, 3)));
        (void)new_tensor(x, name, rank);
        return text;
    }
    const char *reduce = some_axes(x, "rs", n_reduce), *value = some_value(x, pick(x, 2)), *where = "";
    if (pick(x, 4) == 0)
        where = arena_printf(m, " where (%s < %u)", x->loops[pick(x, x->n_loops)].name, 1 + pick(x, 4));
    if (pick(x, 4)) {
        text = arena_printf(m, "compute %s: int32%s reduce%s %s = %s%s\n", name, axes, reduce, reducers[pick(x, 4)],
                            value, where);
        (void)new_tensor(x, name, rank);
        return text;
    }
    text = arena_printf(m,
                        "compute %s: (int32, int64)%s reduce%s by (v, at; w, j) (select((w > v), w, v), select(((w > "
                        "v) || ((w == v) && (j < at))), j, at)) from (-1000000, -1) = (%s, r)%s\n",
                        name, axes, reduce, value, where);
    (void)new_tensor(x, arena_printf(m, "%s_v0", name), rank);
    return text;
}

/* What people write: an epilogue, a window over a border, a sum that is read beside what it sums, a tuple. */
static const char *const chosen[] = {
    "placeholder A: int32[6, 10]\n"
    "placeholder B: int32[10, 7]\n"
    "compute P: int32[i: 6, k: 10] = ((int32*)A[i, k] + 1)\n"
    "compute C: int32[i: 6, j: 7] reduce[k: 10] sum = ((int32*)P[i, k]*(int32*)B[k, j])\n"
    "compute D: int32[i: 6, j: 7] = max((int32*)C[i, j], 3)\n"
    "return D",
    "placeholder x: int32[2, 9, 9]\n"
    "compute pad: int32[c: 2, h: 11, w: 11] = select(((((h >= 1) && (h < 10)) && (w >= 1)) && (w < 10)), "
    "(int32*)x[c, (h - 1), (w - 1)], 0)\n"
    "compute y: int32[c: 2, h: 9, w: 9] reduce[r: 3, s: 3] max = (int32*)pad[c, (h + r), (w + s)]\n"
    "compute z: int32[c: 2, h: 9, w: 9] = ((int32*)y[c, h, w] - (int32*)x[c, h, w])\n"
    "return z",
    "symbol n <= 64\n"
    "placeholder A: int32[n, 5]\n"
    "compute B: int32[i: n, j: 5] = ((int32*)A[i, j]*2)\n"
    "compute S: int32[j: 5] reduce[k: n] sum = (int32*)B[k, j]\n"
    "compute T: int32[i: n, j: 5] = ((int32*)B[i, j] + (int32*)S[j])\n"
    "return T, S",
    "placeholder A: int32[4, 12]\n"
    "compute best: (int32, int64)[i: 4] reduce[k: 12] by (v, at; x, j) (select((x > v), x, v), select(((x > v) || ((x "
    "== v) && (j < at))), j, at)) from (-1000, -1) = ((int32*)A[i, k], k) where (k != 3)\n"
    "compute d: int32[i: 4, k: 12] = ((int32*)A[i, k] - (int32*)best_v0[i])\n"
    "return d, best_v1",
};

static const char *some_computation(chance *x)
{
    arena *m = &x->c->mem;
    if (pick(x, 4) == 0)
        return chosen[pick(x, COUNT(chosen))];
    x->symbolic = pick(x, 4) == 0;
    const char *text = x->symbolic ? "symbol n <= 64\n" : "";
    uint32_t n_inputs = 1 + pick(x, 2), n = 2 + pick(x, 4);
    for (uint32_t i = 0; i < n_inputs; i++) {
        uint32_t rank = i ? pick(x, MAX_RANK + 1) : 1; /* the first is a list, for indices from memory */
        const char *name = arena_printf(m, "p%u", i), *dims = "";
        tensor *t = &x->tensors[x->n_tensors++];
        *t = (tensor){.name = name, .rank = rank};
        for (uint32_t k = 0; k < rank; k++) {
            t->extents[k] = i ? some_extent(x) : 6;
            dims = arena_printf(m, "%s%s%s", dims, k ? ", " : "", extent_text(x, t->extents[k]));
        }
        text = arena_printf(m, "%splaceholder %s: int32[%s]\n", text, name, dims);
    }
    for (uint32_t i = 0; i < n; i++)
        text = arena_printf(m, "%s%s", text, some_compute(x, arena_printf(m, "c%u", i)));
    uint32_t last = x->n_tensors - 1, other = n_inputs + pick(x, n);
    return other == last || pick(x, 2)
               ? arena_printf(m, "%sreturn %s", text, x->tensors[last].name)
               : arena_printf(m, "%sreturn %s, %s", text, x->tensors[last].name, x->tensors[other].name);
}

/* --- a schedule --- */

static const char *some_stage(chance *x)
{
    return x->stages.data[pick(x, x->stages.len)];
}

static const char *some_axis(chance *x, const char *stage)
{
    for (uint32_t i = 0; i < 100 && x->axes.len; i++) {
        axis_name a = x->axes.data[pick(x, x->axes.len)];
        if (strcmp(a.stage, stage) == 0)
            return a.axis;
    }
    return "none";
}

static const char *new_axis(chance *x, const char *stage)
{
    axis_name a = {stage, arena_printf(&x->c->mem, "x%u", x->fresh++)};
    vec_push(&x->c->mem, &x->axes, a);
    return a.axis;
}

/* A new stage in front of `reader`; its axes are those of `like`, or a cache's. */
static const char *new_stage(chance *x, const char *reader, const char *like)
{
    static const char *const cache_axes[] = {"i0", "i1", "i2"};
    const char *name = arena_printf(&x->c->mem, "s%u", x->fresh++), *moved = name;
    for (uint32_t i = 0, n = x->axes.len; i < n; i++)
        if (like && strcmp(x->axes.data[i].stage, like) == 0)
            vec_push(&x->c->mem, &x->axes, (axis_name){name, x->axes.data[i].axis});
    for (uint32_t i = 0; !like && i < COUNT(cache_axes); i++)
        vec_push(&x->c->mem, &x->axes, (axis_name){name, cache_axes[i]});
    for (uint32_t i = 0, behind = 0; i < x->stages.len; i++) {
        const char *here = x->stages.data[i];
        behind |= strcmp(here, reader) == 0;
        x->stages.data[i] = behind ? moved : here;
        moved = behind ? here : moved;
    }
    vec_push(&x->c->mem, &x->stages, moved);
    return name;
}

static void note_names(chance *x)
{
    for (uint32_t i = 0; i < x->g->nodes.len; i++) {
        const te_node *n = x->g->nodes.data[i];
        if (n->kind == TE_COMPUTE)
            vec_push(&x->c->mem, &x->stages, n->name);
        for (uint32_t k = 0; k < n->n_axes + n->n_reduce; k++) {
            const te_axis *a = k < n->n_axes ? n->axes[k] : n->reduce_axes[k - n->n_axes];
            vec_push(&x->c->mem, &x->axes, (axis_name){n->name, a->var->name});
        }
    }
}

/* Rather what stands in a loop, where bounds are inferred. */
static const char *placed_stage(chance *x)
{
    return x->placed && pick(x, 3) ? x->placed : some_stage(x);
}

/* Producers stand in front of their readers. */
static const char *place_stage(chance *x)
{
    uint32_t a = pick(x, x->stages.len), b = pick(x, x->stages.len);
    const char *s = x->placed = x->stages.data[a < b ? a : b], *t = x->stages.data[a < b ? b : a];
    return arena_printf(&x->c->mem, "compute_at %s at %s.%s\n", s, t, some_axis(x, t));
}

static const char *some_primitive(chance *x)
{
    arena *m = &x->c->mem;
    const char *s = placed_stage(x), *t = some_stage(x), *a = some_axis(x, s), *b = some_axis(x, s),
               *k = some_axis(x, s);
    unsigned f = pick(x, 7) + 1;
    switch (pick(x, 33)) {
    case 0:
    case 1: return arena_printf(m, "split %s.%s %u -> %s %s\n", s, a, f, new_axis(x, s), new_axis(x, s));
    case 2: return arena_printf(m, "split %s.%s nparts %u -> %s %s\n", s, a, f, new_axis(x, s), new_axis(x, s));
    case 3:
        return arena_printf(m, "tile %s.%s %s.%s %u %u -> %s %s %s %s\n", s, a, s, b, f, pick(x, 5) + 1, new_axis(x, s),
                            new_axis(x, s), new_axis(x, s), new_axis(x, s));
    case 4:
    case 5: return arena_printf(m, "fuse %s.%s %s.%s -> %s\n", s, a, s, b, new_axis(x, s));
    case 6: return arena_printf(m, "reorder %s: %s %s\n", s, a, b);
    case 7: return arena_printf(m, "reorder %s: %s %s %s\n", s, a, b, k);
    case 8:
    case 20:
    case 21: return arena_printf(m, "vectorize %s.%s\n", s, a);
    case 9: return arena_printf(m, "unroll %s.%s\n", s, a);
    case 10: return arena_printf(m, "%s %s.%s\n", pick(x, 2) ? "parallel" : "vthread", s, a);
    case 11: return arena_printf(m, "compute_inline %s\n", s);
    case 12:
        return arena_printf(m, "cache_read %s local %s -> %s\n", pick(x, 2) ? s : x->g->nodes.data[0]->name, t,
                            new_stage(x, t, NULL));
    case 13: return arena_printf(m, "cache_write %s local -> %s\n", s, new_stage(x, s, s));
    case 14: return arena_printf(m, "rfactor %s.%s -> %s\n", s, a, new_stage(x, s, s));
    case 15: return arena_printf(m, "double_buffer %s\n", s);
    case 16: return arena_printf(m, "storage_align %s.%s %u %u\n", s, a, f, pick(x, f));
    case 23: return arena_printf(m, "storage_tile %s.%s %s.%s %u %u\n", s, a, s, b, f, pick(x, 5) + 1);
    case 17: return arena_printf(m, "set_scope %s %s\n", s, pick(x, 2) ? "local" : "local.acc_buffer");
    case 18:
    case 19:
    case 22: return arena_printf(m, "rolling_buffer %s\n", s);
    default: return place_stage(x);
    }
}

static bool schedule_and_lower(te_graph *g, const char *schedule, tir_func **out)
{
    te_sched *s = NULL;
    return te_sched_parse(g, "schedule", schedule, strlen(schedule), &s) && te_lower(g, s, "main", out);
}

static void forget_errors(compiler *c)
{
    diags_free(&c->diags);
    diags_init(&c->diags, NULL);
}

/* A primitive that is refused, with a message, is left out; so a schedule grows. */
static const char *some_schedule(chance *x)
{
    const char *schedule = "";
    for (uint32_t i = 0; i < PRIMITIVES; i++) {
        const char *longer = arena_printf(&x->c->mem, "%s%s", schedule, some_primitive(x));
        tir_func *f = NULL;
        if (schedule_and_lower(x->g, longer, &f) && loop_steps(f->body, MAX_SYMBOL) < MAX_STEPS)
            schedule = longer;
        else
            assert_true(f || x->c->diags.errors > 0);
        forget_errors(x->c);
    }
    return schedule;
}

/* --- comparing --- */

typedef struct test_case {
    uint64_t seed;
    const char *computation, *schedule, *passes;
} test_case;

#define FAIL(k, ...) (print_error(__VA_ARGS__), fail_case(k))
static void fail_case(const test_case *k)
{
    fail_msg("\nLATHE_SEED=%" PRIu64 " after '%s'\n%s\n--- schedule\n%s", k->seed, k->passes, k->computation,
             k->schedule);
}

static size_t param_bytes(const tir_buffer *b)
{
    int64_t n = tir_buffer_count(b);
    return n >= 0 ? (size_t)n * dtype_bytes(b->dt) : SYMBOLIC_BYTES;
}

/* Inputs hold small numbers, outputs a byte that is no result; the cells of symbols come first. */
static void **run(compiler *c, const tir_func *f, uint32_t n_cells, int64_t symbol, const test_case *k)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    int32_t status = 0;
    for (uint32_t i = 0; i < f->n_params; i++) {
        const tir_buffer *b = f->params[i];
        size_t bytes = param_bytes(b), size = dtype_bytes(b->dt);
        params[i] = arena_alloc(&c->mem, bytes + 1, 64);
        memset(params[i], 0x55, bytes);
        for (size_t e = 0; i < f->n_inputs && e < bytes / size; e++)
            dtype_store_i64(b->dt, (uint8_t *)params[i] + e * size, (int64_t)(e * 7 + i - n_cells) % 11 - 5);
        if (i < n_cells)
            dtype_store_i64(b->dt, params[i], symbol);
    }
    if (!tir_verify(c, f) || !tir_interpret(c, f, params, &status) || status != 0)
        FAIL(k, "status %d, %s", (int)status, diags_print(&c->diags, &c->mem));
    return params;
}

static void compare(compiler *c, const tir_func *want, const tir_func *got, uint32_t n_cells, const test_case *k)
{
    static const int64_t symbols[] = {0, 1, 5, MAX_SYMBOL};
    for (size_t i = 0; i < (n_cells ? COUNT(symbols) : 1); i++) {
        arena_mark mark = arena_get_mark(&c->mem);
        void **a = run(c, want, n_cells, symbols[i], k), **b = run(c, got, n_cells, symbols[i], k);
        for (uint32_t p = want->n_inputs; p < want->n_params; p++)
            if (memcmp(a[p], b[p], param_bytes(want->params[p])) != 0)
                FAIL(k, "%s differs", want->params[p]->name);
        arena_reset(&c->mem, mark);
    }
}

/* Both ways from the lowered loops to the end. */
static const char *const ways[] = {"",
                                   "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,"
                                   "reuse-in-place,InjectVirtualThread,unroll,simplify-loops",
                                   NULL};

static bool is_refusal(compiler *c)
{
    return strstr(diags_print(&c->diags, &c->mem), "cannot be filled ahead") != NULL;
}

static void check_case(uint64_t seed)
{
    for (size_t i = 0; i < COUNT(ways); i++) {
        compiler c;
        compiler_init(&c);
        chance x = {.state = seed, .c = &c};
        test_case k = {.seed = seed,
                       .computation = some_computation(&x),
                       .schedule = "",
                       .passes = ways[i] ? ways[i] : "all of a CPU's"};
        if (!te_parse(&c, "computation", k.computation, strlen(k.computation), &x.g))
            FAIL(&k, "%s", diags_print(&c.diags, &c.mem));
        note_names(&x);
        k.schedule = some_schedule(&x);
        tir_func *plain = NULL, *f = NULL;
        if (!schedule_and_lower(x.g, "", &plain) || !schedule_and_lower(x.g, k.schedule, &f))
            FAIL(&k, "%s", diags_print(&c.diags, &c.mem));
        tir_module m = {.c = &c};
        vec_push(&c.mem, &m.funcs, f);
        if (tir_run_passes(&c, &m, ways[i], false, NULL))
            compare(&c, plain, f, x.g->symbols.len, &k);
        else if (!is_refusal(&c))
            FAIL(&k, "%s", diags_print(&c.diags, &c.mem));
        compiler_free(&c);
    }
}

static void any_schedule_of_any_computation(void **state)
{
    (void)state;
    const char *rounds = getenv("LATHE_ROUNDS"), *one = getenv("LATHE_SEED");
    if (one) {
        check_case(strtoull(one, NULL, 10));
        return;
    }
    uint64_t n = rounds ? strtoull(rounds, NULL, 10) : ROUNDS;
    for (uint64_t seed = 1; seed <= n; seed++)
        check_case(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_schedule_of_any_computation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
