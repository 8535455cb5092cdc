/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of passes: the default orders hold; orders that lose something, or go wrong, are refused, with a message that
 * says why; and whatever is not refused keeps the numbers. For the last, each pass of a default order is moved in front
 * of each one before it. What a row says it gives is there when the pass has run. */
#include "base/pass.h"
#include "driver/computation.h"
#include "driver/pipeline.h"
#include "graph/pass.h"
#include "graph/pass/offload.h"
#include "prog/prog.h"
#include "tir/build.h"
#include "tir/interpret.h"
#include "tir/pass.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define TOLERANCE 1e-4 /* sums are made in another order; exp and sin become polynomials */

/* --- lists --- */

typedef struct list {
    const char *names[64];
    size_t len;
} list;

static list split(compiler *c, const char *names)
{
    list l = {.len = 0};
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, ",");
        assert_true(l.len < COUNT(l.names));
        if (n)
            l.names[l.len++] = arena_strndup(&c->mem, at, n);
        at += n + (at[n] == ',');
    }
    return l;
}

/* The list with pass `from` in front of pass `to`, which stands before it. */
static const char *moved(compiler *c, const list *l, size_t from, size_t to)
{
    writer w;
    writer_init(&w, &c->mem);
    for (size_t i = 0; i < l->len; i++) {
        if (i == to)
            w_fmt(&w, "%s,", l->names[from]);
        if (i != from)
            w_fmt(&w, "%s,", l->names[i]);
    }
    return w.data;
}

static const pass_row *row_of(const pass_level *l, const char *name)
{
    return l->row(pass_find(l, name, strlen(name), NULL));
}

/* --- what must be refused --- */

typedef struct refused {
    const pass_level *level;
    const char *names, *message, *hint;
} refused;

static const refused orders[] = {
    {&graph_passes, "simplify", "'simplify' needs types", "run infer-types before it"},
    {&graph_passes, "infer-types,close-loops,fuse,simplify", "and 'fuse' before it ends that",
     "run simplify before fuse"},
    {&graph_passes, "infer-types,close-loops,fuse,pack-weights", "in no primitive function", "before fuse"},
    {&graph_passes, "infer-types,fold-constants,use-integers", "quantized constants", "before fold-constants"},
    {&graph_passes, "infer-types,fold-constants,sink-dequantize", "quantized constants", "before fold-constants"},
    {&graph_passes, "infer-types,convert-layout,fold-zero-points", "in the model's layout", "before convert-layout"},
    {&graph_passes, "infer-types,pack-weights,rnn-products", "weights", "run rnn-products before pack-weights"},
    {&graph_passes, "infer-types,convert-rows,split-groups", "in the model's layout", "before convert-rows"},
    {&graph_passes, "infer-types,pack-weights,convert-layout", "weights", "run convert-layout before pack-weights"},
    {&graph_passes, "infer-types,pack-nibbles,pack-weights", "whole bytes", "run pack-weights before pack-nibbles"},
    {&graph_passes, "infer-types,pack-weights,pack-nibbles", "that are computed", "run fold-constants between them"},
    {&graph_passes, "infer-types,close-loops,pack-weights,fuse", "that are computed",
     "run fold-constants between them"},
    {&graph_passes, "infer-types,fuse", "loops whose condition", "run close-loops before it"},
    {&graph_passes, "infer-types,AnnotateTarget,MergeComposite", "no target has taken", "before AnnotateTarget"},
    {&graph_passes, "infer-types,PartitionGraph", "targets have taken", "run AnnotateTarget before it"},
    {&graph_passes, "infer-types,AnnotateTarget,PartitionGraph,MergeCompilerRegions", "targets have taken",
     "run AnnotateTarget between them"},
    {&graph_passes, "infer-types,RelayToTIRTargetHook", "regions", "run PartitionGraph before it"},
    {&graph_passes, "infer-types,convert-layout,MergeComposite", "in the model's layout", "before convert-layout"},
    {&graph_passes, "infer-types,polish", "unknown pass 'polish' on graphs", "passes on graphs are"},
    {&prog_passes, "share,literals", "kernels of one step each", "run literals before share"},
    {&prog_passes, "join-in-place,show-values", "lie in no other", "run show-values before join-in-place"},
    {&prog_passes, "states-in-place", "the loops of their targets", "run schedule before it"},
    {&prog_passes, "device-memory,schedule", "the loops of their targets", "run schedule before it"},
    {&prog_passes, "share-shapes", "the loops of their targets", "run schedule before it"},
    {&prog_passes, "schedule,select,states-in-place", "no instruction hides", "run states-in-place before select"},
    {&tir_passes, "vectorize,tensorize", "not written out", "run tensorize before vectorize"},
    {&tir_passes, "unroll,partition-loops", "not written out", "run partition-loops before unroll"},
    {&tir_passes, "unroll,double-buffer", "not written out", "run double-buffer before unroll"},
    {&tir_passes, "expand-math,vectorize", "may still get lanes", "run vectorize before expand-math"},
    {&tir_passes, "round-in-lanes,vectorize", "may still get lanes", "run vectorize before round-in-lanes"},
    {&tir_passes, "narrow-indices,tensorize", "one width", "run tensorize before narrow-indices"},
    {&tir_passes, "rewrite-storage", "by one index", "run flatten before it"},
    {&tir_passes, "flatten,rewrite-storage,unroll", "no place yet", "run unroll before rewrite-storage"},
    {&tir_passes, "share-scratch", "by one index", "run flatten before it"},
    {&tir_passes, "select,reuse-in-place", "no instruction hides", "run reuse-in-place before select"},
    {&tir_passes, "InjectCoProcSync,LiftAttrScope(coproc_scope)", "without tokens", "before InjectCoProcSync"},
    {&tir_passes, "LiftAttrScope(coproc_scope),InjectDMAIntrin", "in no task", "before LiftAttrScope(coproc_scope)"},
    {&tir_passes, "InjectVirtualThread,InjectCoProcSync", "virtual threads", "before InjectVirtualThread"},
    {&tir_passes, "FoldUopLoop,LowerDeviceStorageAccessInfo", "micro-operations", "before FoldUopLoop"},
    {&tir_passes, "SetDebugMode(x)", "unknown pass 'SetDebugMode(x)' on loops", "SetDebugMode(N)"},
};

static void orders_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        compiler c;
        compiler_init(&c);
        const uint32_t holds = orders[i].level == &graph_passes ? FACT_FOLDED : 0;
        const pass_order o = {.names = orders[i].names, .opt_level = PASS_NAMED, .holds = holds};
        if (pass_check(&c, orders[i].level, &o))
            fail_msg("%s is not refused", orders[i].names);
        const char *said = diags_print(&c.diags, &c.mem);
        if (!strstr(said, orders[i].message) || !strstr(said, orders[i].hint))
            fail_msg("%s: %s", orders[i].names, said);
        assert_int_equal(diags_exit_status(&c.diags), 2);
        compiler_free(&c);
    }
}

static void check_holds(const pass_level *l, const char *names, int opt_level, uint32_t holds)
{
    compiler c;
    compiler_init(&c);
    const pass_order o = {.names = names, .opt_level = opt_level, .holds = holds};
    if (!pass_check(&c, l, &o))
        fail_msg("%s at level %d: %s", names, opt_level, diags_print(&c.diags, &c.mem));
    compiler_free(&c);
}

static void default_orders_hold(void **state)
{
    static const struct offload someone;
    compiler c;
    (void)state;
    compiler_init(&c);
    for (int level = 0; level <= 3; level++) {
        const pass_options alone = {.opt_level = level}, shared = {.opt_level = level, .offload = &someone};
        check_holds(&graph_passes, graph_default_passes(&c, &alone), level, FACT_CLOSED | FACT_FOLDED);
        check_holds(&graph_passes, graph_default_passes(&c, &shared), level, FACT_CLOSED | FACT_FOLDED);
    }
    compiler_free(&c);
    check_holds(&tir_passes, tir_default_passes, PASS_NAMED, 0);
    check_holds(&tir_passes, tir_plain_passes, PASS_NAMED, 0);
    check_holds(&tir_passes, tir_device_passes("vta"), PASS_NAMED, 0);
}

/* A fact that nobody needs, or that no pass can end and none gives, would be a fact about nothing. */
static void facts_are_used(void **state)
{
    static const pass_level *const levels[] = {&graph_passes, &prog_passes, &tir_passes};
    (void)state;
    for (size_t k = 0; k < COUNT(levels); k++) {
        uint32_t needed = 0, changed = 0;
        const pass_row *row;
        for (uint32_t i = 0; (row = levels[k]->row(i)); i++) {
            needed |= row->needs;
            changed |= row->gives | row->breaks;
        }
        assert_int_equal(needed, (1u << levels[k]->n_facts) - 1);
        assert_int_equal(changed, needed);
    }
}

/* --- loops --- */

typedef struct kernel {
    const char *text, *schedule, *target;
} kernel;

static const char product[] =
    "placeholder x: float32[9, 20]\n"
    "placeholder y: float32[20, 24]\n"
    "compute m: float32[i: 9, j: 24] reduce[k: 20] sum = ((float32*)x[i, k]*(float32*)y[k, j])\n"
    "compute r: float32[i: 9, j: 24] = max((float32*)m[i, j], 0.0)\n"
    "return r\n";
static const char tiles[] = "split r.i 4 -> io ii\nsplit r.j 8 -> jo jv\nreorder r: io jo ii jv\nvectorize r.jv\n"
                            "unroll r.ii\ncompute_at m at r.jo\nreorder m: k i j\nvectorize m.j\nunroll m.i\n";
static const char series[] =
    "placeholder x: float32[8, 30]\n"
    "compute e: float32[i: 8, j: 30] = exp((float32*)x[i, j])\n"
    "compute s: float32[i: 8, j: 30] = sin((float32*)e[i, j])\n"
    "compute q: int8[i: 8, j: 30] = cast(int8, min(max(rint(((float32*)s[i, j]*9.0)), -128.0), 127.0))\n"
    "return q\n";
static const char lanes[] = "split q.j 8 -> jo jv\nvectorize q.jv\ncompute_at s at q.jo\nvectorize s.j\n"
                            "compute_at e at q.jo\nvectorize e.j\n";

static const kernel kernels[] = {
    {product, tiles, "x86-64-v3"},
    {product, tiles, "cortex-m4"},
    {series, lanes, "x86-64-v3"},
};

static tir_func *lowered(compiler *c, const kernel *k, bool plain)
{
    const computation t = {.file = "kernel",
                           .schedule_file = "kernel",
                           .text = {(const uint8_t *)k->text, strlen(k->text)},
                           .schedule = {(const uint8_t *)k->schedule, strlen(k->schedule)}};
    tir_func *f = NULL;
    if (!computation_lower(c, &t, plain, "k", &f))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    f->target = target_lookup(c, k->target);
    return f;
}

/* What the function makes of numbers in [-1, 1]. */
static void **results_of(compiler *c, const tir_func *f, const char *names)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    int32_t status = 0;
    uint32_t x = 7;
    for (uint32_t i = 0; i < f->n_params; i++) {
        const tir_buffer *b = f->params[i];
        const size_t n = (size_t)tir_buffer_count(b), size = dtype_bytes(b->dt);
        params[i] = arena_alloc(&c->mem, n * size + 1, 64);
        memset(params[i], 0x55, n * size);
        for (size_t e = 0; e < n && i < f->n_inputs; e++, x = x * 1664525u + 1013904223u)
            dtype_store_f64(b->dt, (uint8_t *)params[i] + e * size, (double)((x >> 8) % 2001) / 1000 - 1);
    }
    if (!tir_interpret(c, f, params, &status) || status != 0)
        fail_msg("after '%s': status %d, %s", names, (int)status, diags_print(&c->diags, &c->mem));
    return params;
}

static void check_numbers(dtype dt, const void *want, const void *got, size_t n, const char *names)
{
    const size_t size = dtype_bytes(dt);
    for (size_t e = 0; e < n; e++) {
        const double x = dtype_load_f64(dt, (const uint8_t *)want + e * size);
        const double y = dtype_load_f64(dt, (const uint8_t *)got + e * size);
        if (!(fabs(x - y) <= TOLERANCE * (1 + fabs(x))))
            fail_msg("after '%s' element %zu is %g, not %g", names, e, y, x);
    }
}

/* Whether the order is refused; else it must keep the numbers. */
static bool run_loops(const kernel *k, const char *names)
{
    compiler c;
    compiler_setup(&c);
    const tir_func *plain = lowered(&c, k, true);
    tir_func *f = lowered(&c, k, false);
    tir_module m = {.c = &c};
    vec_push(&c.mem, &m.funcs, f);
    const pass_order o = {.names = names, .opt_level = PASS_NAMED, .holds = tir_facts(&m)};
    const bool fits = pass_check(&c, &tir_passes, &o);
    if (fits && !tir_run_passes(&c, &m, names, false, NULL))
        fail_msg("after '%s': %s", names, diags_print(&c.diags, &c.mem));
    if (fits) {
        void **want = results_of(&c, plain, "no pass"), **got = results_of(&c, f, names);
        for (uint32_t i = f->n_inputs; i < f->n_params; i++)
            check_numbers(f->params[i]->dt, want[i], got[i], (size_t)tir_buffer_count(f->params[i]), names);
    }
    compiler_free(&c);
    return !fits;
}

static void loops_keep_their_numbers(void **state)
{
    compiler c;
    uint32_t refusals = 0;
    (void)state;
    compiler_init(&c);
    const list all = split(&c, tir_default_passes);
    for (size_t k = 0; k < COUNT(kernels); k++)
        for (size_t from = 0; from < all.len; from++)
            for (size_t to = 0; to <= from; to++)
                refusals += run_loops(&kernels[k], moved(&c, &all, from, to));
    assert_true(refusals > 50);
    compiler_free(&c);
}

static void loops_are_as_told(void **state)
{
    compiler c;
    (void)state;
    compiler_setup(&c);
    const list all = split(&c, tir_default_passes);
    for (size_t k = 0; k < COUNT(kernels); k++) {
        tir_module m = {.c = &c};
        vec_push(&c.mem, &m.funcs, lowered(&c, &kernels[k], false));
        uint32_t told = tir_facts(&m);
        for (size_t i = 0; i < all.len; i++) {
            const pass_row *row = row_of(&tir_passes, all.names[i]);
            if (!tir_run_passes(&c, &m, all.names[i], false, NULL))
                fail_msg("%s", diags_print(&c.diags, &c.mem));
            told = (told & ~row->breaks) | row->gives;
            if (told & ~tir_facts(&m))
                fail_msg("after %s facts %x are missing", all.names[i], told & ~tir_facts(&m));
        }
    }
    compiler_free(&c);
}

/* --- graphs --- */

static const char model[] = "func @main(%x: f32[2, 5, 8], %q: f32[1, 2, 6, 6], %n: i8[1, 4, 8, 8]) {\n"
                            "  %w = constant f32[8, 8] splat 0.1\n"
                            "  %m = nn.matmul(%x, %w)\n"
                            "  %three = constant f32[] splat 3.0\n"
                            "  %d = divide(%m, %three)\n"
                            "  %s = nn.softmax(%d)\n"
                            "  %k = constant f32[6, 2, 3, 3] splat 0.5\n"
                            "  %f = constant f32[6, 1, 1] dense [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\n"
                            "  %c = nn.conv2d(%q, %k) {pads = [1, 1, 1, 1]}\n"
                            "  %e = multiply(%c, %f)\n"
                            "  %r = nn.relu(%e)\n"
                            "  %t = transpose(%r) {perm = [0, 2, 3, 1]}\n"
                            "  %scale = constant f32[] splat 0.05\n"
                            "  %zero = constant i8[] splat 3\n"
                            "  %a = qnn.dequantize(%n, %scale, %zero)\n"
                            "  %kq = constant i8[8, 4, 3, 3] splat 5\n"
                            "  %none = constant i8[] splat 0\n"
                            "  %kd = qnn.dequantize(%kq, %scale, %none)\n"
                            "  %y = nn.conv2d(%a, %kd)\n"
                            "  %big = constant f32[] splat 0.3\n"
                            "  %z = qnn.quantize(%y, %big, %zero)\n"
                            "  return %s, %t, %z\n"
                            "}\n";
static const char *const targets[] = {"x86-64-v3", "cortex-m4"};

typedef struct numbers {
    uint32_t n;
    size_t counts[4];
    dtype dts[4];
    double values[4][512];
} numbers;

static void run_program(compiler *c, graph_module *m, const target *t, const char *names, numbers *out)
{
    prog_module *p;
    void *in[4], *res[4];
    uint32_t x = 7;
    if (!prog_from_graph(c, m, t, false, &p))
        fail_msg("after '%s': %s", names, diags_print(&c->diags, &c->mem));
    const prog_func *f = prog_find(p, "main");
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const size_t bytes = (size_t)prog_bytes(&f->values.data[i]);
        const dtype dt = f->values.data[i].type.dt;
        in[i] = arena_alloc(&c->mem, bytes, 64);
        for (size_t e = 0; e < bytes / dtype_bytes(dt); e++, x = x * 1664525u + 1013904223u)
            dtype_store_f64(dt, (uint8_t *)in[i] + e * dtype_bytes(dt), (double)((x >> 8) % 201) / 100 - 1);
    }
    *out = (numbers){.n = f->results.len};
    for (uint32_t i = 0; i < f->results.len; i++)
        res[i] = arena_alloc(&c->mem, (size_t)prog_bytes(&f->values.data[f->results.data[i].value]), 64);
    if (!prog_interpret(c, p, in, res))
        fail_msg("after '%s': %s", names, diags_print(&c->diags, &c->mem));
    for (uint32_t i = 0; i < f->results.len; i++) {
        const prog_value *v = &f->values.data[f->results.data[i].value];
        out->dts[i] = v->type.dt;
        out->counts[i] = (size_t)prog_bytes(v) / dtype_bytes(v->type.dt);
        assert_true(out->counts[i] <= COUNT(out->values[i]));
        for (size_t e = 0; e < out->counts[i]; e++)
            out->values[i][e] = dtype_load_f64(v->type.dt, (const uint8_t *)res[i] + e * dtype_bytes(v->type.dt));
    }
}

/* false: the order is refused. */
static bool run_graph(const char *target_name, const char *names, numbers *out)
{
    compiler c;
    graph_module *m = NULL;
    compiler_setup(&c);
    const target *t = target_lookup(&c, target_name);
    const pass_options how = {.target = t, .opt_level = 3, .verify = true};
    assert_true(graph_parse(&c, "model", model, strlen(model), &m));
    const pass_order o = {.names = names, .opt_level = PASS_NAMED, .holds = graph_facts(m)};
    const bool fits = pass_check(&c, &graph_passes, &o);
    if (fits && !graph_run_passes(&c, m, names, &how))
        fail_msg("after '%s': %s", names, diags_print(&c.diags, &c.mem));
    if (fits)
        run_program(&c, m, t, names, out);
    compiler_free(&c);
    return fits;
}

static void graphs_keep_their_numbers(void **state)
{
    static numbers want, got;
    const pass_options how = pass_options_default();
    compiler c;
    uint32_t refusals = 0;
    (void)state;
    compiler_init(&c);
    const list all = split(&c, graph_default_passes(&c, &how));
    for (size_t k = 0; k < COUNT(targets); k++) {
        assert_true(run_graph(targets[k], "infer-types,close-loops,fuse", &want));
        for (size_t from = 0; from < all.len; from++)
            for (size_t to = 0; to <= from; to++) {
                const char *names = moved(&c, &all, from, to);
                if (!run_graph(targets[k], names, &got)) {
                    refusals++;
                    continue;
                }
                assert_int_equal(got.n, want.n);
                for (uint32_t i = 0; i < want.n; i++) /* quantized: one step may be rounded otherwise */
                    for (size_t e = 0; e < want.counts[i]; e++)
                        if (!(fabs(got.values[i][e] - want.values[i][e]) <=
                              (want.dts[i] == DT_I8 ? 1 : TOLERANCE * (1 + fabs(want.values[i][e])))))
                            fail_msg("after '%s' element %zu of result %u is %g, not %g", names, e, i,
                                     got.values[i][e], want.values[i][e]);
            }
    }
    assert_true(refusals > 300);
    compiler_free(&c);
}

static void graphs_are_as_told(void **state)
{
    const pass_options how = pass_options_default();
    compiler c;
    graph_module *m = NULL;
    (void)state;
    compiler_setup(&c);
    assert_true(graph_parse(&c, "model", model, strlen(model), &m));
    const list all = split(&c, graph_default_passes(&c, &how));
    uint32_t told = graph_facts(m);
    for (size_t i = 0; i < all.len; i++) {
        const pass_row *row = row_of(&graph_passes, all.names[i]);
        if (!graph_run_passes(&c, m, all.names[i], &how))
            fail_msg("%s", diags_print(&c.diags, &c.mem));
        told = (told & ~row->breaks) | row->gives;
        if (told & ~graph_facts(m))
            fail_msg("after %s facts %x are missing", all.names[i], told & ~graph_facts(m));
    }
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_refused),       cmocka_unit_test(default_orders_hold),
        cmocka_unit_test(facts_are_used),           cmocka_unit_test(loops_keep_their_numbers),
        cmocka_unit_test(loops_are_as_told),        cmocka_unit_test(graphs_keep_their_numbers),
        cmocka_unit_test(graphs_are_as_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
