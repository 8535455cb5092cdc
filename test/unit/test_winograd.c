/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions against direct ones, by the interpreter, on random numbers: images smaller than a tile, extents
 * that no tile divides, uneven borders, channels that do not fill a block, several images. That the default schedule
 * computes the same is checked with all other operators, in test_te_ops.c. */
#include "te/from_graph.h"
#include "te/te_op.h"
#include "tir/interpret.h"
#include "tir/verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct conv_case {
    int n, c, o, h, w, pads[4];
} conv_case;

static const conv_case cases[] = {
    {1, 1, 1, 1, 1, {1, 1, 1, 1}},    {1, 8, 8, 2, 3, {1, 1, 1, 1}},   {1, 3, 5, 3, 3, {0, 0, 0, 0}},
    {2, 8, 16, 4, 4, {1, 1, 1, 1}},   {1, 9, 7, 5, 4, {1, 1, 1, 1}},   {3, 4, 4, 6, 1, {1, 1, 1, 1}},
    {1, 16, 8, 7, 13, {1, 1, 1, 1}},  {1, 20, 11, 9, 8, {0, 2, 1, 0}}, {2, 12, 24, 13, 14, {1, 1, 1, 1}},
    {1, 8, 8, 11, 17, {2, 2, 3, 3}},
};

static void require(compiler *c, bool ok, const char *name)
{
    if (!ok)
        fail_msg("%s: %s", name, diags_print(&c->diags, &c->mem));
}

static graph_module *both_forms(compiler *c, const conv_case *k, int tile)
{
    writer w;
    writer_init(&w, &c->mem);
    const int *p = k->pads;
    w_fmt(&w, "func @direct(%%x: f32[%d, %d, %d, %d], %%w: f32[%d, %d, 3, 3]) {\n", k->n, k->c, k->h, k->w, k->o, k->c);
    w_fmt(&w, "  %%y = nn.conv2d(%%x, %%w) {pads = [%d, %d, %d, %d]}\n  return %%y\n}\n", p[0], p[1], p[2], p[3]);
    w_fmt(&w, "func @winograd(%%x: f32[%d, %d, %d, %d], %%w: f32[%d, %d, 3, 3]) {\n", k->n, k->c, k->h, k->w, k->o,
          k->c);
    w_str(&w, "  %b = layout_transform(%x) {src_layout = \"NCHW\", dst_layout = \"NCHW8c\"}\n");
    w_fmt(&w, "  %%u = nn.conv2d_winograd_weight_transform(%%w) {tile_size = %d, block = 8}\n", tile);
    w_fmt(&w, "  %%m = nn.conv2d_winograd(%%b, %%u) {tile_size = %d, pads = [%d, %d, %d, %d]}\n", tile, p[0], p[1],
          p[2], p[3]);
    w_fmt(&w, "  %%y = layout_transform(%%m) {src_layout = \"NCHW8c\", dst_layout = \"NCHW\", extent = %d}\n", k->o);
    w_str(&w, "  return %y\n}\n");
    graph_module *m = NULL;
    require(c, graph_parse(c, "winograd", w.data, w.len, &m) && graph_infer(c, m), "winograd");
    return m;
}

static float *random_floats(int64_t count, uint32_t *state)
{
    float *p = calloc((size_t)count + 1, sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < count; i++) {
        *state = *state * 1664525u + 1013904223u;
        p[i] = (float)((*state >> 8) % 2001) / 1000.0f - 1.0f;
    }
    return p;
}

/* The result of f, to be freed. */
static float *result_of(compiler *c, const graph_func *f, float *x, float *w, int64_t *out_count)
{
    tir_func *loops = NULL;
    int32_t status = 0;
    require(c, te_lower_func(c, f, f->name, NULL, NULL, &loops) && tir_verify(c, loops), f->name);
    assert_int_equal(loops->n_params, 3);
    *out_count = tir_buffer_count(loops->params[2]);
    float *y = calloc((size_t)*out_count + 1, sizeof *y);
    require(c, tir_interpret(c, loops, (void *[]){x, w, y}, &status) && status == 0, f->name);
    return y;
}

/* The largest difference, relative to the largest result. */
static double error_of(const conv_case *k, int tile)
{
    compiler c;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    te_register_builtin_ops(&c);
    graph_module *m = both_forms(&c, k, tile);
    uint32_t state = 7;
    float *x = random_floats((int64_t)k->n * k->c * k->h * k->w, &state),
          *w = random_floats((int64_t)k->o * k->c * 9, &state);
    int64_t n = 0, other = 0;
    float *want = result_of(&c, m->funcs.data[0], x, w, &n), *got = result_of(&c, m->funcs.data[1], x, w, &other);
    double largest = 0, error = 0;
    assert_true(n > 0 && n == other);
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        error = fmax(error, fabs((double)want[i] - (double)got[i]));
    }
    free(x);
    free(w);
    free(want);
    free(got);
    compiler_free(&c);
    assert_true(largest > 0);
    return error / largest;
}

static void check_tile(int tile, double tolerance)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double e = error_of(&cases[i], tile);
        if (!(e <= tolerance))
            fail_msg("F(%d) of case %zu: error %g", tile, i, e);
    }
}

static void small_tiles(void **state)
{
    (void)state;
    check_tile(2, 1e-6);
}

static void large_tiles(void **state)
{
    (void)state;
    check_tile(4, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_tiles), cmocka_unit_test(large_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
