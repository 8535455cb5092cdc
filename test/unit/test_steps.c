/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of steps of convolutions and products: what all steps of a block multiply a number of the data by is its
 * weight, and no sum in 16 bits leaves these, by i8, and by u8 of several limits, for weights at the ends of their
 * range and at the bound of sums, channels that fill neither a block nor a run, blocks that no run divides, windows and
 * dilations. That kernels compute the same is checked by test/cli/intrinsics.sh and against onnxruntime
 * (test/py/quantised.py). */
#include "base/compiler.h"
#include "graph/op/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool ties_turned;

/* In place of the C library's: what compares equal stays in order, or comes in the opposite one. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    char *b = base, *one = malloc(size);
    assert_non_null(one);
    for (size_t i = 1; i < count; i++) {
        size_t at = i;
        memcpy(one, b + i * size, size);
        for (; at > 0; at--) {
            const int order = compare(b + (at - 1) * size, one);
            if (order < 0 || (order == 0 && !ties_turned))
                break;
            memcpy(b + at * size, b + (at - 1) * size, size);
        }
        memcpy(b + at * size, one, size);
    }
    free(one);
}

typedef struct steps_case {
    const char *what;
    int64_t dims[4], lanes, in_block, dilations[2];
    int8_t values[4]; /* of which the weights are; all 0: any */
} steps_case;

static const steps_case cases[] = {
    {"any weights", {16, 32, 1, 1}, 8, 8, {1, 1}, {0}},
    {"a window", {9, 19, 3, 2}, 8, 8, {2, 1}, {0}},
    {"wide blocks", {40, 21, 2, 2}, 16, 16, {1, 3}, {0}},
    {"all at the lower end", {8, 24, 1, 1}, 8, 8, {1, 1}, {-128, -128, -128, -128}},
    {"all at the upper end", {8, 24, 3, 3}, 8, 8, {1, 1}, {127, 127, 127, 127}},
    {"both ends", {24, 40, 1, 1}, 8, 8, {1, 1}, {-128, 127, 127, -128}},
    {"sums at the bound", {16, 64, 1, 1}, 8, 8, {1, 1}, {64, 64, -64, -64}},
    {"sums beyond it", {16, 64, 1, 1}, 8, 8, {1, 1}, {64, 65, -64, -65}},
    {"quarters", {16, 48, 1, 1}, 8, 8, {1, 1}, {32, -32, 33, -33}},
    {"few", {16, 48, 1, 1}, 8, 8, {1, 1}, {0, 0, 0, 1}},
    {"odd ones", {8, 8, 1, 1}, 4, 8, {1, 1}, {-127, 127, -1, 1}},
    {"rows that no run divides", {17, 21, 1, 1}, 8, 21, {1, 1}, {0}},
    {"one number more", {16, 9, 1, 1}, 16, 9, {1, 1}, {0}},
    {"blocks that no run divides", {8, 15, 2, 1}, 8, 6, {2, 1}, {100, -100, 64, 29}},
};

static const tensor_data *weights_of(compiler *c, const steps_case *k)
{
    static const int8_t any[4] = {0};
    uint32_t state = 12345;
    const int64_t count = k->dims[0] * k->dims[1] * k->dims[2] * k->dims[3];
    int8_t *w = arena_array(&c->mem, int8_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const int8_t random = (int8_t)(uint8_t)(state >> 24);
        w[i] = memcmp(k->values, any, sizeof any) == 0 ? random : k->values[state >> 30];
    }
    return tensor_dense(c, DT_I8, 4, k->dims, w);
}

/* What the lists of a block multiply each number of an image by, for each lane. */
static int32_t *gathered(compiler *c, const steps_source *s, const steps_lists *l, int64_t block, int64_t size)
{
    int32_t *sums = arena_array(&c->mem, int32_t, (size_t)(size * s->lanes));
    for (int64_t i = 0; i < l->steps * STEPS_RUNS; i++) {
        const int64_t run = block * l->steps * STEPS_RUNS + i, place = tensor_get_i64(l->places, run);
        for (int64_t at = 0; at < s->lanes * STEPS_RUN; at++) {
            const int64_t w = tensor_get_i64(l->weights, run * s->lanes * STEPS_RUN + at);
            assert_true(place >= 0 && place + STEPS_RUN <= size);
            sums[(place + at % STEPS_RUN) * s->lanes + at / STEPS_RUN] += (int32_t)w;
        }
    }
    return sums;
}

static void check_block(compiler *c, const steps_case *k, const steps_source *s, const steps_lists *l, int64_t block)
{
    const int64_t *d = k->dims, blocks = (d[1] + s->in_block - 1) / s->in_block,
                  size = blocks * s->rows * s->cols * s->in_block;
    int32_t *sums = gathered(c, s, l, block, size);
    for (int64_t at = 0; at < s->lanes * d[1] * d[2] * d[3]; at++) {
        const int64_t lane = at / (d[1] * d[2] * d[3]), i = at / (d[2] * d[3]) % d[1], row = at / d[3] % d[2],
                      col = at % d[3], o = block * s->lanes + lane;
        const int64_t pixel = (i / s->in_block * s->rows + row * s->dilations[0]) * s->cols + col * s->dilations[1];
        int32_t *sum = &sums[(pixel * s->in_block + i % s->in_block) * s->lanes + lane];
        const int64_t want = o < d[0] ? tensor_get_i64(s->weights, ((o * d[1] + i) * d[2] + row) * d[3] + col) : 0;
        if (*sum != want)
            fail_msg("%s: output %d, input %d: %d, not %d", k->what, (int)o, (int)i, (int)*sum, (int)want);
        *sum = 0;
    }
    for (int64_t at = 0; at < size * s->lanes; at++)
        if (sums[at] != 0)
            fail_msg("%s: what no weight reads is multiplied by %d", k->what, (int)sums[at]);
}

/* What data of i8 leaves out: 128 times a weight, 127 times one below 0. */
static void check_offsets(const steps_case *k, const steps_source *s, const steps_lists *l)
{
    const int64_t each = k->dims[1] * k->dims[2] * k->dims[3];
    for (int64_t o = 0; o < l->offsets->count; o++) {
        int64_t want = 0;
        for (int64_t i = 0; o < k->dims[0] && i < each; i++) {
            const int64_t w = tensor_get_i64(s->weights, o * each + i);
            want += w < 0 ? 127 * w : 128 * w;
        }
        assert_int_equal(tensor_get_i64(l->offsets, o), want);
    }
}

static void lists_of_cases(bool is_signed, int64_t limit)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const steps_case *k = &cases[i];
        compiler c;
        steps_lists l;
        compiler_init(&c);
        const steps_source s = {weights_of(&c, k), k->lanes, k->in_block, 7, 9, {k->dilations[0], k->dilations[1]},
                                is_signed, limit};
        const int64_t most = steps_least(&s) * 8;
        if (!steps_make(&c, &s, most, &l))
            fail_msg("%s: more than %d steps", k->what, (int)most);
        if (!steps_fit(l.weights, is_signed, limit))
            fail_msg("%s: a sum leaves 16 bits", k->what);
        for (int64_t block = 0; block < (k->dims[0] + k->lanes - 1) / k->lanes; block++)
            check_block(&c, k, &s, &l, block);
        const int64_t steps = l.steps;
        if (is_signed)
            check_offsets(k, &s, &l);
        assert_true(steps_make(&c, &s, steps, &l) && l.steps == steps);
        assert_false(steps_make(&c, &s, steps - 1, &l));
        compiler_free(&c);
    }
}

static void test_lists(void **state)
{
    (void)state;
    lists_of_cases(false, UINT8_MAX);
    lists_of_cases(false, STEPS_LIMIT);
    lists_of_cases(false, INT8_MAX + 1);
    lists_of_cases(true, UINT8_MAX);
}

/* Weights whose sums reach the bound need no step more; larger ones need more, at least as many as have room for their
 * sum: 32 of w for 256 in a step. */
static void test_lengths(void **state)
{
    (void)state;
    static const struct {
        int8_t w;
        int64_t steps, split, steps_i8;
    } of[] = {{1, 4, 4, 4}, {32, 4, 4, 4}, {33, 6, 4, 4}, {51, 9, 4, 4}, {52, 10, 6, 4}, {64, 10, 6, 4}, {65, 10, 6, 6},
              {127, 20, 10, 8}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        compiler c;
        steps_lists l;
        compiler_init(&c);
        const int64_t dims[4] = {8, 32, 1, 1};
        int8_t *w = arena_array(&c.mem, int8_t, 256);
        memset(w, of[i].w, 256);
        const steps_source s = {tensor_dense(&c, DT_I8, 4, dims, w), 8, 8, 1, 1, {1, 1}, false, UINT8_MAX};
        assert_int_equal(steps_least(&s), 4);
        assert_true(steps_make(&c, &s, 32, &l));
        assert_int_equal(l.steps, of[i].steps);
        assert_true(l.steps * 256 >= 32 * of[i].w);
        const steps_source split = {s.weights, 8, 8, 1, 1, {1, 1}, false, STEPS_LIMIT};
        assert_true(steps_make(&c, &split, 32, &l));
        assert_int_equal(l.steps, of[i].split);
        assert_true(l.steps * 2 * steps_bound(STEPS_LIMIT) >= 32 * of[i].w);
        /* room for 512, of runs that are not cut */
        const steps_source other = {s.weights, 8, 8, 1, 1, {1, 1}, true, UINT8_MAX};
        assert_true(steps_make(&c, &other, 8, &l));
        assert_int_equal(l.steps, of[i].steps_i8);
        compiler_free(&c);
    }
}

/* The lists are the same with any qsort. */
static void test_ties(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const steps_case *k = &cases[i];
        compiler c;
        steps_lists l[2];
        compiler_init(&c);
        const int64_t rows = (k->dims[2] - 1) * k->dilations[0] + 1, cols = (k->dims[3] - 1) * k->dilations[1] + 1;
        const steps_source s = {weights_of(&c, k), k->lanes, k->in_block, rows, cols,
                                {k->dilations[0], k->dilations[1]}, i % 2 == 1,
                                i % 4 == 0 ? STEPS_LIMIT : UINT8_MAX};
        for (int turned = 0; turned < 2; turned++) {
            ties_turned = turned != 0;
            assert_true(steps_make(&c, &s, 4 * steps_least(&s) + 16, &l[turned]));
        }
        ties_turned = false;
        assert_int_equal(l[0].steps, l[1].steps);
        assert_memory_equal(tensor_element(l[0].weights, 0), tensor_element(l[1].weights, 0),
                            tensor_size(l[0].weights));
        assert_memory_equal(tensor_element(l[0].places, 0), tensor_element(l[1].places, 0),
                            tensor_size(l[0].places));
        compiler_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_ties)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
