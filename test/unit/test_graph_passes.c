/* SPDX-License-Identifier: Apache-2.0 */
/* Passes keep the numbers: each golden graph of the simplifier, of cse, of packing and of fusion is evaluated on
 * constant inputs as it stands and after the passes, through the same compute definitions, and the results are
 * compared. */
#include "base/file.h"
#include "base/text.h"
#include "driver/pipeline.h"
#include "graph/op.h"
#include "graph/pass.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const cases[] = {
    "simplify-arithmetic",
    "simplify-batch-norm-alone",
    "simplify-batch-norm-conv",
    "simplify-batch-norm-shared",
    "simplify-constant-reshape",
    "simplify-batch-norm-transposed",
    "simplify-identities",
    "simplify-keeps",
    "simplify-pad",
    "simplify-pad-keeps",
    "simplify-results",
    "simplify-shapes",
    "cse",
    "pack-conv",
    "pack-keeps",
    "pack-matmul",
    "pack-then-fold",
    "pipeline",
    "fold-arithmetic",
    "fold-results",
    "fuse-conv-relu",
    "fuse-elementwise",
    "fuse-opaque",
    "fuse-quantize",
    "fuse-reduction",
    "fuse-results",
    "fuse-shape-operands",
    "fuse-squeeze-excite",
    "fuse-swish",
    "fuse-views",
};

/* The graph of a golden: without the remarks at the head, up to the line ---. */
static graph_module *load(compiler *c, const char *name)
{
    const char *top = getenv("LATHE_SOURCE");
    const char *path = arena_printf(&c->mem, "%s/test/golden/graph/%s.case", top ? top : ".", name);
    span s;
    graph_module *m = NULL;
    assert_true(compiler_read_file(c, path, &s));
    const char *text = arena_strndup(&c->mem, (const char *)s.data, s.len);
    while (*text == '#')
        text = strchr(text, '\n') + 1;
    const char *end = strstr(text, "\n---\n");
    assert_non_null(end);
    assert_true(graph_parse(c, path, text, (size_t)(end - text), &m));
    return m;
}

/* Multiples of 1/8 in [-2, 2), the same for the same parameter each time; integers from 0 to 1, which are valid
 * indices. */
static const tensor_data *input_for(compiler *c, const type *t, uint32_t seed)
{
    int64_t dims[TYPE_MAX_RANK], count = shape_count(t->shape);
    assert_true(shape_get(t->shape, dims));
    size_t one = dtype_bytes(t->dt);
    uint8_t *p = arena_alloc(&c->mem, (size_t)count * one, 64);
    uint32_t x = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        if (dtype_is_float(t->dt))
            dtype_store_f64(t->dt, p + (size_t)i * one, (double)(x >> 27) / 8.0 - 2.0);
        else
            dtype_store_i64(t->dt, p + (size_t)i * one, x >> 31);
    }
    return tensor_dense(c, t->dt, (uint32_t)t->shape.rank, dims, p);
}

/* Parameters become constants; then everything folds. */
static void evaluate(compiler *c, graph_module *m)
{
    graph_func *f = graph_module_find(m, "main");
    assert_non_null(f);
    for (uint32_t i = 0; i < f->params.len; i++) {
        graph_value *p = f->params.data[i];
        graph_value *k = graph_add_constant(f, input_for(c, &p->type, i), p->name, src_loc_none());
        graph_replace_uses(f, p, k);
    }
    f->params.len = 0;
    assert_true(graph_sort(f));
    pass_options o = {.target = target_default(), .opt_level = 3, .verify = true};
    assert_true(graph_run_passes(c, m, "infer-types,fold-constants", &o));
}

static void compare(const char *name, const graph_func *a, const graph_func *b)
{
    assert_int_equal(a->results.len, b->results.len);
    for (uint32_t r = 0; r < a->results.len; r++) {
        const tensor_data *x = graph_constant(a->results.data[r]), *y = graph_constant(b->results.data[r]);
        if (!x || !y)
            fail_msg("%s: result %u is not constant", name, r);
        assert_int_equal(x->dt, y->dt);
        assert_int_equal(x->count, y->count);
        assert_string_equal(a->results.data[r]->name, b->results.data[r]->name);
        for (int64_t i = 0; i < x->count; i++) {
            double u = tensor_get_f64(x, i), v = tensor_get_f64(y, i);
            if (u != v && !(isnan(u) && isnan(v)) && fabs(u - v) > 1e-5 * fmax(1.0, fabs(u)))
                fail_msg("%s: result %u, element %lld: %.9g, then %.9g", name, r, (long long)i, u, v);
        }
    }
}

static void check_case(const char *name, const char *passes)
{
    static compiler c;
    compiler_setup(&c);
    pass_options o = {.target = target_find("x86-64-v3"), .opt_level = 3, .verify = true};
    graph_module *before = load(&c, name), *after = load(&c, name);
    assert_true(graph_run_passes(&c, after, passes, &o));
    evaluate(&c, before);
    evaluate(&c, after);
    compare(name, graph_module_find(before, "main"), graph_module_find(after, "main"));
    assert_int_equal(c.diags.errors, 0);
    compiler_free(&c);
}

static void test_simplify(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(cases[i], "infer-types,simplify,cse,dce");
}

static void test_pack(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(cases[i], "infer-types,simplify,pack-weights,fold-constants,simplify,cse,dce");
}

/* --- rescale-words and sum-words --- */

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#define CHANNELS 6
#define ROWS     120

/* Sums up to a bound of `bits`, by factors below 1/2 of random shifts: half of the layers those of one model, near each
 * other. */
static void write_layer(writer *w, uint32_t *state, uint32_t bits)
{
    const int32_t most = (1 << bits) - 1, near = (int32_t)(next(state) % 12) + 1;
    const bool is_near = next(state) % 2 != 0, is_least = next(state) % 2 != 0;
    w_fmt(w, "func @main() {\n  %%x = constant i32[%d, %d] dense [", ROWS, CHANNELS);
    for (uint32_t i = 0; i < ROWS * CHANNELS; i++) {
        const int32_t x = (int32_t)((next(state) << 8 ^ next(state)) & (uint32_t)most) >> next(state) % (bits + 1);
        w_fmt(w, "%s%d", i > 0 ? ", " : "", i < 2 ? (i > 0 ? most : -most) : next(state) % 2 != 0 ? -x : x);
    }
    w_fmt(w, "]\n  %%m = constant i32[%d] dense [", CHANNELS);
    for (uint32_t i = 0; i < CHANNELS; i++)
        w_fmt(w, "%s%u", i > 0 ? ", " : "",
              next(state) % 8 == 0 ? 1u << 30 : (1u << 30) + next(state) * 64 % (1u << 30));
    w_fmt(w, "]\n  %%s = constant i32[%d] dense [", CHANNELS);
    for (uint32_t i = 0; i < CHANNELS; i++)
        w_fmt(w, "%s%d", i > 0 ? ", " : "",
              -(is_near ? near + (int32_t)(next(state) % 5) : 1 + (int32_t)(next(state) % 31)));
    w_fmt(w, "]\n  %%z = constant i8[] splat %d\n", is_least ? -128 : (int)(next(state) % 256) - 128);
    w_fmt(w, "  %%y = qnn.rescale(%%x, %%m, %%s, %%z) {axis = 1, out_dtype = i8, most_sum = %d}\n  return %%y\n}\n",
          most);
}

/* All pairs of bytes. */
static void write_sum(writer *w, uint32_t *state)
{
    for (uint32_t k = 0; k < 2; k++) {
        w_fmt(w, "%s  %%%s = constant i8[%s] dense [", k > 0 ? "" : "func @main() {\n", k > 0 ? "b" : "a",
              k > 0 ? "1, 256" : "256, 1");
        for (int i = 0; i < 256; i++)
            w_fmt(w, "%s%d", i > 0 ? ", " : "", i - 128);
        w_str(w, "]\n");
    }
    for (uint32_t k = 0; k < 3; k++) {
        const double scale =
            next(state) % 4 == 0 ? 0.5 : ldexp(1 + (double)next(state) / 16777216.0, -(int)(next(state) % 4));
        w_fmt(w, "  %%s%u = constant f32[] splat %.9g\n  %%z%u = constant i8[] splat %d\n", k, scale, k,
              next(state) % 2 != 0 ? -128 : (int)(next(state) % 256) - 128);
    }
    static const char *const how[] = {"\"tflite\"", "\"fast\"", "\"integer\"", "\"float\", in_steps = 1",
                                      "\"float\", minus = 1"};
    w_fmt(w, "  %%y = qnn.add(%%a, %%s0, %%b, %%s1, %%s2, %%z0, %%z1, %%z2) {method = %s}\n  return %%y\n}\n",
          how[next(state) % (sizeof how / sizeof *how)]);
}

/* The results of that text with and without the pass are equal; whether the pass changed something. */
static bool check_words(const char *text)
{
    static compiler c;
    compiler_setup(&c);
    const pass_options o = {.target = target_find("cortex-m4"), .opt_level = 3, .verify = true};
    graph_module *before, *after;
    bool changed = false;
    assert_true(graph_parse(&c, "layer", text, strlen(text), &before));
    assert_true(graph_parse(&c, "layer", text, strlen(text), &after));
    assert_true(graph_run_passes(&c, after, "infer-types,rescale-words,sum-words", &o));
    const graph_func *f = graph_module_find(after, "main");
    for (uint32_t i = 0; i < f->nodes.len; i++)
        changed |= strcmp(f->nodes.data[i]->op->name, "qnn.rescale_word") == 0 ||
                   strcmp(f->nodes.data[i]->op->name, "qnn.sum_word") == 0;
    evaluate(&c, before);
    evaluate(&c, after);
    compare("layer", graph_module_find(before, "main"), graph_module_find(after, "main"));
    assert_int_equal(c.diags.errors, 0);
    compiler_free(&c);
    return changed;
}

static void test_rescale_words(void **state)
{
    (void)state;
    uint32_t random = 7, changed = 0;
    arena a;
    arena_init(&a, NULL);
    for (uint32_t i = 0; i < 150; i++) {
        writer w;
        writer_init(&w, &a);
        if (i % 25 == 0)
            write_sum(&w, &random);
        else
            write_layer(&w, &random, 4 + i % 25);
        changed += check_words(w.data);
    }
    arena_free(&a);
    assert_true(changed > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_simplify), cmocka_unit_test(test_pack),
                                       cmocka_unit_test(test_rescale_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
