/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tensor expressions: every case of test/golden/schedule gives the numbers of its computation without a
 * schedule, before and after the passes; the text forms of schedules and computations; every refusal, with stage and
 * axis. */
#include "te/lower.h"
#include "te/te.h"
#include "te/text.h"
#include "tir/interpret.h"
#include "tir/intrin.h"
#include "tir/pass.h"
#include "tir/verify.h"
#include "tir/walk.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- a computation made by calls --- */

typedef struct product {
    te_graph *g;
    te_tensor *a, *w; /* copies of the operands, to be placed on chip */
    te_axis *ko, *ki;
} product;

static tir_expr_ref copy_body(te_graph *g, void *ctx, tir_expr_ref const *i)
{
    return te_read(g, ctx, i);
}

static tir_expr_ref to_i8(te_graph *g, void *ctx, tir_expr_ref const *i)
{
    return tir_cast(g->c, DT_I8, te_read(g, ctx, i));
}

static tir_expr_ref shift(te_graph *g, void *ctx, tir_expr_ref const *i)
{
    return tir_binary(g->c, TIR_SHR, te_read(g, ctx, i), tir_int(g->c, DT_I32, 8));
}

static tir_expr_ref at_least_0(te_graph *g, void *ctx, tir_expr_ref const *i)
{
    return tir_max(g->c, te_read(g, ctx, i), tir_int(g->c, DT_I32, 0));
}

static tir_expr_ref at_most_127(te_graph *g, void *ctx, tir_expr_ref const *i)
{
    return tir_min(g->c, te_read(g, ctx, i), tir_int(g->c, DT_I32, 127));
}

static te_axis *axis(te_graph *g, const char *name, tir_expr_ref extent)
{
    te_axis *a = arena_new(&g->c->mem, te_axis);
    *a = (te_axis){tir_new_var(g->c, name, TIR_I64), extent, AXIS_DATA};
    return a;
}

/* out[bo, co, bi, ci] = sum over (outer, inner) of a[bo, outer, bi, inner] * w[co, outer, ci, inner], in i32 */
static te_tensor *gemm(product *p, const char *name, tir_expr_ref const *dims, const char *outer, const char *inner)
{
    te_graph *g = p->g;
    compiler *c = g->c;
    static const char *const names[] = {"bo", "co", "bi", "ci"};
    te_axis *data[4];
    tir_expr_ref v[4];
    for (uint32_t i = 0; i < 4; i++) {
        data[i] = axis(g, names[i], dims[i]);
        v[i] = te_var(g, data[i]);
    }
    p->ko = te_reduce_axis(g, outer, p->a->shape[1]);
    p->ki = te_reduce_axis(g, inner, p->a->shape[3]);
    tir_expr_ref o = te_var(g, p->ko), k = te_var(g, p->ki);
    tir_expr_ref x = tir_cast(c, DT_I32, te_read(g, p->a, (tir_expr_ref[]){v[0], o, v[2], k}));
    tir_expr_ref y = tir_cast(c, DT_I32, te_read(g, p->w, (tir_expr_ref[]){v[1], o, v[3], k}));
    tir_expr_ref body = tir_binary(c, TIR_MUL, x, y);
    const tir_var **rv = arena_array(&c->mem, const tir_var *, 2);
    rv[0] = tir_new_var(c, "acc", tir_scalar(DT_I32));
    rv[1] = tir_new_var(c, "x", tir_scalar(DT_I32));
    tir_expr_ref *re = arena_array(&c->mem, tir_expr_ref, 2);
    re[0] = tir_add(c, tir_varref(c, rv[0]), tir_varref(c, rv[1]));
    re[1] = tir_int(c, DT_I32, 0);
    te_reducer *r = arena_new(&c->mem, te_reducer);
    *r = (te_reducer){1, rv, rv + 1, re, re + 1};
    te_tensor *out = NULL;
    te_compute_n(g, name, 4, dims, data, 2, (te_axis *[]){p->ko, p->ki}, r, NULL, 1, (dtype[]){DT_I32}, &body, &out);
    return out;
}

static te_graph *blocked_gemm(compiler *c)
{
    product p = {.g = te_graph_new(c)};
    tir_expr_ref one = tir_i64(c, 1), n = tir_i64(c, 64), t = tir_i64(c, 16);
    te_tensor *a = te_placeholder(p.g, "data", DT_I8, 4, (tir_expr_ref[]){one, n, one, t});
    te_tensor *b = te_placeholder(p.g, "weight", DT_I8, 4, (tir_expr_ref[]){n, n, t, t});
    p.a = te_compute(p.g, "data_buf", DT_I8, 4, a->shape, copy_body, a);
    p.w = te_compute(p.g, "weight_buf", DT_I8, 4, b->shape, copy_body, b);
    te_tensor *x = gemm(&p, "res_gem", (tir_expr_ref[]){one, n, one, t}, "ic", "ic_tns");
    x = te_compute(p.g, "res_shr", DT_I32, 4, x->shape, shift, x);
    x = te_compute(p.g, "res_max", DT_I32, 4, x->shape, at_least_0, x);
    x = te_compute(p.g, "res_min", DT_I32, 4, x->shape, at_most_127, x);
    x = te_compute(p.g, "res", DT_I8, 4, x->shape, to_i8, x);
    te_set_outputs(p.g, 1, &x);
    return p.g;
}

/* --- cases of test/golden/schedule --- */

typedef struct example {
    char name[256];
    char *text, *computation, *schedule; /* the last two lie in the first */
    bool refused;
} example;

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_non_null(f);
    text[fread(text, 1, (1 << 16) - 1, f)] = 0;
    fclose(f);
    return text;
}

/* "# ..." lines, computation, "--- schedule", schedule, "---", what is expected. */
static void read_example(const char *name, example *e)
{
    char path[300];
    snprintf(e->name, sizeof e->name, "%s", name);
    snprintf(path, sizeof path, "test/golden/schedule/%s", name);
    e->text = e->computation = read_text(path);
    e->refused = strstr(e->text, "# exit: 1") != NULL;
    while (*e->computation == '#')
        e->computation = strchr(e->computation, '\n') + 1;
    char *mark = strstr(e->computation, "--- schedule\n"), *end = strstr(e->computation, "\n---\n");
    assert_non_null(end);
    end[1] = 0;
    e->schedule = end + 1;
    if (mark) {
        *mark = 0;
        e->schedule = mark + strlen("--- schedule\n");
    }
}

static bool schedule_and_lower(te_graph *g, const char *schedule, tir_func **out)
{
    te_sched *s = NULL;
    return te_sched_parse(g, "schedule", schedule, strlen(schedule), &s) && te_lower(g, s, "main", out);
}

static te_graph *read_computation(compiler *c, const char *text)
{
    te_graph *g = NULL;
    if (!te_parse(c, "computation", text, strlen(text), &g))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return g;
}

/* --- a schedule changes no result --- */

/* A row as a user would register it: the tiles of vta_gemm, its code as loops that the interpreter can run. */
static void register_gemm(compiler *c)
{
    tir_intrin row = *tir_find_intrin(c, "vta_gemm");
    row.name = "cpu_gemm";
    row.body = NULL;
    row.reset = "for (x: int64, 0, 16) { out[0, x] = 0 }";
    row.update =
        "for (x: int64, 0, 16) { for (y: int64, 0, 16) {\n"
        "  out[0, x] = ((int32*)out[0, x] + (cast(int32, (int8*)wgt[x, y])*cast(int32, (int8*)inp[0, y]))) } }";
    assert_true(tir_register_intrin(c, &row));
    assert_false(tir_register_intrin(c, &row)); /* a name is taken once */
    diags_free(&c->diags);
    diags_init(&c->diags, NULL);
}

static void use_gemm(char *schedule)
{
    for (char *p = schedule; (p = strstr(p, "vta_gemm"));)
        memcpy(p, "cpu_gemm", strlen("cpu_gemm"));
}

static void find_extern(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_EXTERN && e->type.dt != DT_STRING;
}

/* Memory of a parameter whose size the symbols say. */
#define SYMBOLIC_BYTES (1 << 21)

static size_t param_bytes(const tir_buffer *b)
{
    int64_t n = tir_buffer_count(b);
    return n >= 0 ? (size_t)n * dtype_bytes(b->dt) : SYMBOLIC_BYTES;
}

/* Every parameter's memory: the cells of the symbols, inputs filled with small numbers, outputs with a byte that is no
 * result. */
static void **make_params(compiler *c, const tir_func *f, uint32_t n_cells, int64_t symbol)
{
    void **params = arena_array(&c->mem, void *, f->n_params);
    for (uint32_t i = 0; i < f->n_params; i++) {
        const tir_buffer *b = f->params[i];
        size_t bytes = param_bytes(b), size = dtype_bytes(b->dt);
        params[i] = arena_alloc(&c->mem, bytes + 1, 64);
        memset(params[i], 0x55, bytes);
        for (size_t k = 0; i < f->n_inputs && k < bytes / size; k++)
            dtype_store_i64(b->dt, (uint8_t *)params[i] + k * size, (int64_t)(k * 7 + i - n_cells) % 11 - 5);
        if (i < n_cells)
            dtype_store_i64(b->dt, params[i], symbol + i);
    }
    return params;
}

static void **run(compiler *c, const tir_func *f, uint32_t n_cells, int64_t symbol, const char *what)
{
    void **params = make_params(c, f, n_cells, symbol);
    int32_t status = 0;
    if (!tir_verify(c, f) || !tir_interpret(c, f, params, &status) || status != 0)
        fail_msg("%s: status %d, %s", what, (int)status, diags_print(&c->diags, &c->mem));
    return params;
}

/* Runs both; outputs must be equal, byte for byte, also behind what the symbols say. */
static void compare(compiler *c, const tir_func *want, const tir_func *got, uint32_t n_cells, const char *what)
{
    static const int64_t symbols[] = {0, 1, 5, 16, 37, 62};
    for (size_t k = 0; k < (n_cells ? COUNT(symbols) : 1); k++) {
        void **a = run(c, want, n_cells, symbols[k], what), **b = run(c, got, n_cells, symbols[k], what);
        for (uint32_t i = want->n_inputs; i < want->n_params; i++)
            if (memcmp(a[i], b[i], param_bytes(want->params[i])) != 0)
                fail_msg("%s: %s differs from the computation without a schedule", what, want->params[i]->name);
    }
}

/* As lowered, after the passes of `--lower plain`, and after all of a CPU's. All sums in the cases are exact. */
static bool check_results(example *e)
{
    static const char *const stages[] = {"", NULL, "vectorize,unroll,simplify-loops,hoist,rewrite-storage"};
    compiler c;
    compiler_init(&c);
    register_gemm(&c);
    use_gemm(e->schedule);
    te_graph *g = read_computation(&c, e->computation), *same = read_computation(&c, e->computation);
    tir_func *plain = NULL, *f = NULL;
    bool calls = false;
    for (uint32_t i = 0; i < same->symbols.len; i++) /* without a schedule, everything is allocated whole */
        same->symbols.data[i].max = 96;
    if (!schedule_and_lower(same, "", &plain) || !schedule_and_lower(g, e->schedule, &f))
        fail_msg("%s: %s", e->name, diags_print(&c.diags, &c.mem));
    tir_module m = {.c = &c};
    vec_push(&c.mem, &m.funcs, f);
    for (size_t i = 0; i < COUNT(stages) && !calls; i++) {
        const char *passes = stages[i] ? stages[i] : tir_plain_passes;
        if (!tir_run_passes(&c, &m, passes, false, NULL))
            fail_msg("%s: %s", e->name, diags_print(&c.diags, &c.mem));
        tir_visit_stmt(f->body, NULL, find_extern, &calls); /* a device's: not for the interpreter */
        if (!calls)
            compare(&c, plain, f, g->symbols.len, arena_printf(&c.mem, "%s after '%s'", e->name, passes));
    }
    compiler_free(&c);
    return !calls;
}

static void schedules_change_no_result(void **state)
{
    (void)state;
    DIR *dir = opendir("test/golden/schedule");
    struct dirent *d;
    int checked = 0;
    assert_non_null(dir);
    while ((d = readdir(dir))) {
        example e;
        if (!strstr(d->d_name, ".case"))
            continue;
        read_example(d->d_name, &e);
        if (!e.refused)
            checked += check_results(&e);
        free(e.text);
    }
    closedir(dir);
    assert_true(checked >= 20);
}

/* --- the text of schedules --- */

static const char *const all_primitives = "split C.i0 16 -> a b\n"
                                          "split C.i1 nparts 4 -> c d\n"
                                          "tile C.i0 C.i1 4 8 -> a b c d\n"
                                          "fuse C.i0 C.i1 -> f\n"
                                          "reorder C: i3 i2.inner i1\n"
                                          "compute_at A_buf at C_buf.ko\n"
                                          "compute_inline A_buf\n"
                                          "compute_root A_buf\n"
                                          "cache_read A local.reg C -> A_local\n"
                                          "cache_write C local.reg -> C_local\n"
                                          "set_scope A_buf local.inp_buffer\n"
                                          "pragma C.i0 \"dma_copy\" -1\n"
                                          "vectorize C.i0\n"
                                          "unroll C.i0\n"
                                          "parallel C.i0.outer\n"
                                          "vthread C.i0\n"
                                          "tensorize C.i2 gemm\n"
                                          "rfactor C_buf.ko -> C_rf\n"
                                          "double_buffer A_buf\n"
                                          "storage_align A_buf.i1 16 4\n"
                                          "storage_tile C_buf.i0 C_buf.i1 2 4\n";

static void schedules_print_as_they_were_read(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    te_sched *s = NULL;
    assert_true(te_sched_parse(te_graph_new(&c), "s", all_primitives, strlen(all_primitives), &s));
    writer w;
    writer_init(&w, &c.mem);
    te_sched_print(&w, s);
    assert_string_equal(w.data, all_primitives);
    compiler_free(&c);
}

/* --- the text of computations --- */

static const char *print_graph(compiler *c, const te_graph *g)
{
    writer w;
    writer_init(&w, &c->mem);
    te_print(&w, g);
    return w.data;
}

static void computations_print_as_they_were_read(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    const char *path = "test/golden/te/computations.txt", *made = print_graph(&c, blocked_gemm(&c));
    char *text = read_text(path);
    te_graph *g = NULL, *again = NULL;
    if (!te_parse(&c, path, text, strlen(text), &g) || !te_parse(&c, "made", made, strlen(made), &again))
        fail_msg("%s", diags_print(&c.diags, &c.mem));
    assert_string_equal(print_graph(&c, g), text);
    assert_string_equal(print_graph(&c, again), made);
    tir_func *f = NULL;
    assert_true(schedule_and_lower(g, "", &f) && tir_verify(&c, f));
    assert_true(schedule_and_lower(again, "compute_inline data_buf\n", &f) && tir_verify(&c, f));
    free(text);
    compiler_free(&c);
}

static const char *const broken_computations[][2] = {
    {"compute A: int32[i: 4] = B[i]\nreturn A", "'B' is not defined here"},
    {"placeholder A: int32[4]\nplaceholder A: int32[4]\nreturn A", "the name A is taken"},
    {"placeholder A: int32[4]\ncompute B: int32[i: 4] = (int32*)A[i]\nreturn C",
     "'C' is not the name of a buffer here"},
    {"placeholder A: int32[4]\ncompute B: int8[i: 4] = (int32*)A[i]\nreturn B",
     "this has type int32, and int8 is needed"},
    {"compute B: int8[i: 4] reduce[k: 3] avg = int8(1)\nreturn B", "by"},
    {"symbol n\nsymbol n\nplaceholder A: int32[n]\nreturn A", "the name n is taken"},
    {"symbol n <= -7\nplaceholder A: int32[n]\nreturn A", "an upper bound lies between 0 and 2^40"},
    {"placeholder A: int32[4]\nsymbol n\nreturn A", "symbols come before all operations"},
    {"symbol n\nplaceholder n: int32[4]\nreturn n", "the name n is taken"},
    {"placeholder A: int32[4611686018427387904]\nreturn A", "the extent is above 2^40"},
    {"placeholder A: int32[-3]\nreturn A", "the extent is negative: -3"},
    {"placeholder A: int32[1]\ncompute B: int32[i: 1000000000000, j: 1000000000000] = (int32*)A[0]\nreturn B",
     "there are too many elements with this one"},
    {"jump", "expected placeholder, compute, extern, check or return"},
    {"placeholder A: int32[4]", "expected placeholder, compute, extern, check or return"},
};

static void broken_computations_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(broken_computations); i++) {
        compiler c;
        compiler_init(&c);
        te_graph *g = NULL;
        assert_false(te_parse(&c, "t", broken_computations[i][0], strlen(broken_computations[i][0]), &g));
        const char *got = diags_print(&c.diags, &c.mem);
        if (!strstr(got, broken_computations[i][1]))
            fail_msg("text:\n%s\nwanted: %s\ngot: %s", broken_computations[i][0], broken_computations[i][1], got);
        compiler_free(&c);
    }
}

/* --- refusals --- */

typedef struct refusal {
    const char *schedule, *message; /* part of the first diagnostic */
} refusal;

static const refusal refusals[] = {
    {"jump C.i0", "schedule:1:1: expected a schedule primitive"},
    {"split C 4 -> a b", "expected stage.axis"},
    {"split C.i0 x -> a b", "schedule:1:12: expected an integer"},
    {"split C.i0 4 -> a", "something is missing at the end of the line"},
    {"split C.i0 4 -> a b vectorize C.a", "expected the end of the line"},
    {"fuse C.i0 C_buf.ko -> f", "axes of two stages, C and C_buf"},
    {"split D.i0 4 -> a b", "split: there is no stage D"},
    {"split C.z 4 -> a b", "split C.z: the stage has no such axis"},
    {"split C.i1 0 -> a b", "split C.i1: the factor must be positive"},
    {"split C.i1 4 -> a a", "split C.i1: the new axes have one name"},
    {"split C.i1 4 -> i0 b", "split C.i1: a new axis has the name of another axis"},
    {"split C.i1 4 -> a b\nvectorize C.i1",
     "schedule:2:1: schedule: vectorize C.i1: the axis was split or fused before"},
    {"fuse C.i0 C.i2 -> f", "fuse C.i0: the second axis must be directly inside the first"},
    {"fuse C_buf.ci C_buf.ko -> f", "fuse C_buf.ci: a data axis and a reduction axis cannot be fused"},
    {"reorder C: i0 i0", "reorder C.i0: the axis is named twice"},
    {"vectorize C_buf.ko", "vectorize C_buf.ko: a reduction axis carries a value"},
    {"parallel C_buf.ki", "parallel C_buf.ki: a reduction axis carries a value"},
    {"compute_at C at C_buf.co", "compute_at C: a result of the function is computed at the root"},
    {"compute_at A at C_buf.co", "compute_at A: only computations can be placed"},
    {"compute_at C_buf at A_buf.i0", "compute_at C_buf: the consumer must come after the stage"},
    {"compute_at A_buf at C.i0", "compute_at A_buf at C.i0: its reader C_buf runs outside of that loop"},
    {"compute_at C_buf at C.i1\nsplit C.i1 4 -> a b",
     "compute_at C_buf at C.i1: the axis was split or fused afterwards"},
    {"compute_inline C_buf", "compute_inline C_buf: only a computation without reduction"},
    {"compute_inline C", "compute_inline C: a result of the function must be stored"},
    {"set_scope A local", "set_scope A: parameters of the function live in global memory"},
    {"split C_buf.ko 4 -> a b\ncache_write C_buf local.reg -> L", "cache_write C_buf: cache_write must come before"},
    {"cache_write C_buf local.reg -> C", "cache_write C_buf: the new stage has the name of another"},
    {"vthread C_buf.ko", "vthread C_buf.ko: a reduction axis carries a value"},
    {"tile C.i1 C.i1 4 4 -> a b c d", "tile C.i1: the axis is named twice"},
    {"tile C.i1 C.i3 4 0 -> a b c d", "tile C.i3: the factor must be positive"},
    {"tile C.i1 C.i3 4 4 -> a b c a", "tile C.i1: the new axes have one name"},
};

static void wrong_schedules_are_refused(void **state)
{
    (void)state;
    example e;
    read_example("gemm-1-original.case", &e);
    for (size_t i = 0; i < COUNT(refusals); i++) {
        compiler c;
        compiler_init(&c);
        tir_func *f = NULL;
        assert_false(schedule_and_lower(read_computation(&c, e.computation), refusals[i].schedule, &f));
        const char *got = diags_print(&c.diags, &c.mem);
        if (!strstr(got, refusals[i].message))
            fail_msg("schedule:\n%s\nwanted: %s\ngot: %s", refusals[i].schedule, refusals[i].message, got);
        compiler_free(&c);
    }
    free(e.text);
}

/* A row that is not whole, as a library may have it, is refused where it is registered. */
static void unfinished_intrinsics_are_refused(void **state)
{
    static const tir_intrin whole = {.name = "mine", .nest = "primfn", .update = TIR_INSTRUCTION, .passed = "aaa",
                                     .call = "mine(out, a, b)"};
    tir_intrin rows[6];
    const char *const messages[] = {"without a name", "'mine' has no nest", "'mine' has more symbols",
                                    "'mine' has symbols without a name", "neither a body nor an update",
                                    "without a call"};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = whole;
    rows[0].name = NULL;
    rows[1].nest = NULL;
    rows[2].n_symbols = TIR_INTRIN_SYMBOLS + 1;
    rows[3].n_symbols = 1;
    rows[4].update = NULL;
    rows[5].call = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        compiler c;
        compiler_init(&c);
        assert_false(tir_register_intrin(&c, &rows[i]));
        const char *got = diags_print(&c.diags, &c.mem);
        if (!strstr(got, messages[i]))
            fail_msg("wanted: %s\ngot: %s", messages[i], got);
        compiler_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_change_no_result),      cmocka_unit_test(schedules_print_as_they_were_read),
        cmocka_unit_test(wrong_schedules_are_refused),     cmocka_unit_test(computations_print_as_they_were_read),
        cmocka_unit_test(broken_computations_are_refused), cmocka_unit_test(unfinished_intrinsics_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
