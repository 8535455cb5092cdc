/* SPDX-License-Identifier: Apache-2.0 */
/* sum-words: the sum of two quantized bytes has scales and zero points, and rounds once or three times. There are only
 * 65536 pairs of bytes: where their results are those of (a * a_factor + b * b_factor + offset) >> right, the sum
 * becomes that (qnn.sum_word). On a Cortex-M4 this takes three instructions. Factors near the quotients of the scales
 * are tried; for each pair of them the results say which offsets would do. */
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CODES      256
#define MOST_RIGHT 24
#define LEAST_RIGHT 8
#define AROUND     6 /* how far factors are from the quotients, at most */
#define MOST_QUOTIENT (1 << 22) /* of scales; with more, no shift leaves room for a byte */

typedef struct sum_form {
    int64_t a, b, offset;
    int right;
} sum_form;

/* The sum, and its results for all pairs. */
typedef struct byte_sum {
    double a, b; /* the quotients of the scales */
    int64_t least, most; /* of the type */
    const tensor_data *results; /* those of a, then of b */
} byte_sum;

/* --- the results --- */

static bool is_one(const graph_value *v)
{
    const tensor_data *t = v ? graph_constant(v) : NULL;
    return t && t->count == 1;
}

static double scale_of(const graph_node *n, uint32_t i)
{
    return tensor_get_f64(graph_constant(n->inputs[i]), 0);
}

/* A sum of bytes by scales and zero points that are known. */
static bool is_known(const graph_node *n)
{
    if (strcmp(n->op->name, "qnn.add") != 0 || dtype_bits(n->inputs[0]->type.dt) != 8 ||
        strcmp(graph_attr_string(n, "rounding"), "half_up") == 0)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (i != 0 && i != 2 && n->inputs[i] && !is_one(n->inputs[i]))
            return false;
    return scale_of(n, 1) > 0 && scale_of(n, 3) > 0 && scale_of(n, 4) > 0 &&
           scale_of(n, 1) / scale_of(n, 4) < MOST_QUOTIENT && scale_of(n, 3) / scale_of(n, 4) < MOST_QUOTIENT;
}

/* All bytes, along that axis of two. */
static graph_value *all_bytes(compiler *c, dtype dt, uint32_t axis)
{
    int64_t dims[2] = {1, 1};
    dims[axis] = CODES;
    uint8_t *bytes = arena_array(&c->mem, uint8_t, CODES);
    for (int i = 0; i < CODES; i++)
        bytes[i] = (uint8_t)(dtype_min_int(dt) + i);
    return graph_detached_constant(c, tensor_dense(c, dt, 2, dims, bytes), "bytes");
}

static const tensor_data *results_of(compiler *c, const graph_node *n)
{
    const dtype dt = n->inputs[0]->type.dt;
    graph_value out = {.name = intern(c->names, "y")}, *outs[1] = {&out};
    graph_node all = *n;
    all.inputs = arena_array(&c->mem, graph_value *, n->n_inputs);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        all.inputs[i] = i == 0 || i == 2 ? all_bytes(c, dt, i / 2) : n->inputs[i];
    all.outputs = outs;
    out.def = &all;
    const tensor_data *results = NULL;
    return graph_infer_node(c, &all) && c->evaluate(c, &all, &results) ? results : NULL;
}

/* --- a form for them --- */

/* Sets the offset, if there is one. */
static bool has_offset(const byte_sum *s, sum_form *f)
{
    const int64_t unit = (int64_t)1 << f->right;
    int64_t low = INT32_MIN, high = INT32_MAX;
    for (int64_t i = 0; i < CODES && low <= high; i++)
        for (int64_t j = 0; j < CODES; j++) {
            const int64_t y = tensor_get_i64(s->results, i * CODES + j);
            const int64_t at_least = y * unit - (s->least + i) * f->a - (s->least + j) * f->b;
            low = y > s->least && at_least > low ? at_least : low;
            high = y < s->most && at_least + unit - 1 < high ? at_least + unit - 1 : high;
        }
    f->offset = low + (high - low) / 2;
    return low <= high;
}

/* No sum leaves 32 bits. */
static bool has_room(const byte_sum *s, const sum_form *f)
{
    const int64_t wide = s->most + 1; /* as infer_qnn_sum_word counts */
    return wide * (llabs(f->a) + llabs(f->b)) + llabs(f->offset) <= INT32_MAX;
}

/* The factors `away` from those nearest to the quotients, one of them by that much. */
static bool fits_near(const byte_sum *s, int away, sum_form *f)
{
    const int64_t a = llrint(ldexp(s->a, f->right)), b = llrint(ldexp(s->b, f->right));
    for (int i = -away; i <= away; i++)
        for (int j = -away; j <= away; j += abs(i) == away || away == 0 ? 1 : 2 * away) {
            f->a = a + i;
            f->b = b + j;
            if (has_offset(s, f) && has_room(s, f))
                return true;
        }
    return false;
}

static bool find_form(const byte_sum *s, sum_form *f)
{
    f->right = MOST_RIGHT;
    while (f->right > LEAST_RIGHT && ldexp((fabs(s->a) + fabs(s->b) + 1) * CODES, f->right) > INT32_MAX)
        f->right--;
    bool found = false;
    for (int away = 0; away <= AROUND && !found; away++)
        found = fits_near(s, away, f);
    return found;
}

static graph_value *in_words(rewriter *r, const graph_node *n)
{
    compiler *c = r->c;
    if (!is_known(n) || !c->evaluate)
        return NULL;
    const dtype dt = n->inputs[0]->type.dt;
    byte_sum s = {scale_of(n, 1) / scale_of(n, 4), scale_of(n, 3) / scale_of(n, 4), dtype_min_int(dt),
                  dtype_max_int(dt), results_of(c, n)};
    sum_form f;
    s.b = graph_attr_int(n, "minus") ? -s.b : s.b;
    if (!s.results || !find_form(&s, &f))
        return NULL;
    graph_value *in[2] = {n->inputs[0], n->inputs[2]};
    const attr attrs[4] = {attr_int(c, "a_factor", f.a), attr_int(c, "b_factor", f.b),
                           attr_int(c, "offset", f.offset), attr_int(c, "right", f.right)};
    return rewrite_emit(r, "qnn.sum_word", 2, in, 4, attrs, n->loc);
}

static bool run(compiler *c, graph_func *f)
{
    const bool ok = rewrite_each(c, f, in_words);
    graph_drop_constants(f);
    return ok;
}

bool graph_pass_sums(compiler *c, graph_module *m, const pass_options *o)
{
    const bool takes = graph_pass_rows_takes(o->target);
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && takes; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
