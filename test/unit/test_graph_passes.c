/* SPDX-License-Identifier: Apache-2.0 */
/* Passes keep the numbers: each golden graph of the simplifier, of cse, of packing and of fusion is evaluated on
 * constant inputs as it stands and after the passes, through the same compute definitions, and the results are
 * compared. */
#include "base/file.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_simplify), cmocka_unit_test(test_pack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
