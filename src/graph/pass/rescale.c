/* SPDX-License-Identifier: Apache-2.0 */
/* rescale-words: qnn.rescale rounds a product behind its first 31 bits, and once more behind a shift. Where the shifts
 * and a bound of the sums are known, one product of 64 bits has both roundings in what is added to its upper word
 * (qnn.rescale_word): a Cortex-M4 does that in three instructions. All sums of a layer are shifted by the same number
 * of bits behind the product, and by powers of two, one for each channel, in front of it. A channel whose shift is
 * larger than the others', which only has results near 0, gets a shorter multiplier, if that gives the same results for
 * all sums within the bound. */
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define LEAST_POWER 2  /* bits; the first rounding adds a quarter of it */
#define MOST_RIGHT  22 /* a zero point of a byte is then below 2^30 */

typedef struct factor {
    int32_t multiplier, shift; /* multiplier * 2^-(31 + shift) */
} factor;

/* --- what both forms give --- */

static int64_t floor_shift(int64_t x, int n)
{
    return x >= 0 ? x >> n : -((-x + ((int64_t)1 << n) - 1) >> n);
}

static int64_t rounded_twice(int64_t x, factor f)
{
    const int64_t a = floor_shift(x * f.multiplier + ((int64_t)1 << 30), 31);
    return floor_shift(a + ((int64_t)1 << (f.shift - 1)) - (a < 0), f.shift);
}

static int64_t by_word(int64_t x, int32_t multiplier, int power, int right)
{
    const int64_t high = floor_shift(x * ((int64_t)1 << power) * multiplier, 32), unit = (int64_t)1 << (power - 1);
    return floor_shift(high + unit / 2 + ((int64_t)1 << (right - 1)) - (x < 0 ? unit : 0), right);
}

/* The least x in -most..most for which f gives y or more. */
static int64_t threshold(int64_t y, int64_t most, factor f)
{
    int64_t low = -most, high = most;
    while (low < high) {
        const int64_t mid = floor_shift(low + high, 1);
        if (rounded_twice(mid, f) >= y)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Both give the same for -most..most: they grow with x, so that it is enough to look where f takes a step. */
static bool is_same(int64_t most, factor f, int32_t multiplier, int power, int right)
{
    const int64_t first = rounded_twice(-most, f), last = rounded_twice(most, f);
    if (by_word(-most, multiplier, power, right) != first || by_word(most, multiplier, power, right) != last ||
        last - first > 512)
        return false;
    for (int64_t y = first + 1; y <= last; y++) {
        const int64_t x = threshold(y, most, f);
        if (by_word(x, multiplier, power, right) < y || by_word(x - 1, multiplier, power, right) >= y)
            return false;
    }
    return true;
}

/* --- a layer --- */

typedef struct plan {
    int64_t count, most; /* most: no sum is farther from 0 */
    const factor *by;
    int most_power;      /* in bits */
    int32_t *multiplier; /* what was planned */
    uint16_t *power;
    int right;
} plan;

/* The factor of a channel by that shift; false: it has none. */
static bool plan_channel(plan *p, int64_t i, int right)
{
    factor f = p->by[i];
    int power = right + 1 - f.shift;
    p->multiplier[i] = f.multiplier;
    if (f.multiplier == 0 || power < LEAST_POWER) {
        const int less = f.multiplier == 0 ? 0 : LEAST_POWER - power;
        power = LEAST_POWER;
        p->multiplier[i] = less > 31 ? 0 : (int32_t)(((int64_t)f.multiplier + ((int64_t)1 << less) / 2) >> less);
        if (f.multiplier != 0 && !is_same(p->most, f, p->multiplier[i], power, right))
            return false;
    }
    p->power[i] = (uint16_t)(1u << power);
    return power <= p->most_power;
}

static bool plan_layer(plan *p, int right)
{
    p->right = right;
    for (int64_t i = 0; i < p->count; i++)
        if (!plan_channel(p, i, right))
            return false;
    return true;
}

/* Shifts in the order in which they are tried: layers with the same one may share their code. */
static bool choose_right(plan *p)
{
    static const int first[] = {10, 12, 9};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (plan_layer(p, first[i]))
            return true;
    for (int right = 2; right <= MOST_RIGHT; right++)
        if (plan_layer(p, right))
            return true;
    return false;
}

/* The factors of n; false: some are not below 1/2. */
static bool read_factors(const graph_node *n, plan *p, factor *by)
{
    const tensor_data *m = graph_constant(n->inputs[1]), *s = graph_constant(n->inputs[2]);
    for (int64_t i = 0; i < p->count; i++) {
        by[i].multiplier = (int32_t)tensor_get_i64(m, i);
        by[i].shift = -(int32_t)tensor_get_i64(s, i);
        if (by[i].multiplier < 0 || (by[i].multiplier > 0 && (by[i].shift < 1 || by[i].shift > 31)))
            return false;
    }
    p->by = by;
    return true;
}

/* Sums of 32 bits that become bytes, with both roundings. */
static bool rounds_twice(const graph_node *n)
{
    const dtype to = n->outputs[0]->type.dt;
    return strcmp(n->op->name, "qnn.rescale") == 0 && graph_attr_int(n, "twice") != 0 &&
           graph_attr_int(n, "up") == 0 && graph_attr_int(n, "most_sum") > 0 && n->inputs[0]->type.dt == DT_I32 &&
           dtype_is_int(to) && dtype_bits(to) == 8;
}

/* Whether all that the form is made of is known. */
static bool is_known(const graph_node *n)
{
    const tensor_data *m = graph_constant(n->inputs[1]), *s = graph_constant(n->inputs[2]);
    return m && s && m->rank < 2 && m->rank == s->rank && m->count == s->count && m->count > 0 &&
           (n->n_inputs < 4 || !n->inputs[3] || graph_constant(n->inputs[3]));
}

/* The constant of numbers that fit into a byte, or two. */
static graph_value *powers(rewriter *r, const plan *p, const tensor_data *like, src_loc loc)
{
    compiler *c = r->c;
    uint8_t *bytes = arena_array(&c->mem, uint8_t, (size_t)p->count);
    bool fits = true;
    for (int64_t i = 0; i < p->count; i++) {
        bytes[i] = (uint8_t)p->power[i];
        fits = fits && p->power[i] <= UINT8_MAX;
    }
    const void *data = fits ? (const void *)bytes : (const void *)p->power;
    return rewrite_constant(r, tensor_dense(c, fits ? DT_U8 : DT_U16, like->rank, like->dims, data), "power", loc);
}

/* NULL: the form does not fit, or an error. */
static graph_value *in_words(rewriter *r, const graph_node *n)
{
    if (!rounds_twice(n) || !is_known(n))
        return NULL;
    compiler *c = r->c;
    const tensor_data *m = graph_constant(n->inputs[1]);
    plan p = {.count = m->count, .most = graph_attr_int(n, "most_sum"), .most_power = 15};
    const size_t count = (size_t)p.count;
    p.multiplier = arena_array(&c->mem, int32_t, count);
    p.power = arena_array(&c->mem, uint16_t, count);
    while (p.most_power > LEAST_POWER && p.most << p.most_power > INT32_MAX)
        p.most_power--;
    if (p.most << p.most_power > INT32_MAX || !read_factors(n, &p, arena_array(&c->mem, factor, count)))
        return NULL;
    const int wide = p.most_power;
    p.most_power = p.count == 1 || wide < 7 ? wide : 7; /* a byte for each channel */
    if (!choose_right(&p)) {
        p.most_power = wide;
        if (!choose_right(&p))
            return NULL;
    }
    graph_value *in[4] = {
        n->inputs[0],
        rewrite_constant(r, tensor_dense(c, DT_I32, m->rank, m->dims, p.multiplier), "multiplier", n->loc),
        powers(r, &p, m, n->loc), n->n_inputs > 3 ? n->inputs[3] : NULL};
    const attr attrs[3] = {attr_int(c, "axis", graph_attr_int(n, "axis")),
                           attr_dtype(c, "out_dtype", n->outputs[0]->type.dt), attr_int(c, "right", p.right)};
    return r->failed ? NULL : rewrite_emit(r, "qnn.rescale_word", n->n_inputs > 3 ? 4 : 3, in, 3, attrs, n->loc);
}

static bool run(compiler *c, graph_func *f)
{
    const bool ok = rewrite_each(c, f, in_words);
    graph_drop_constants(f);
    return ok;
}

bool graph_pass_rescale(compiler *c, graph_module *m, const pass_options *o)
{
    const bool takes = graph_pass_rows_takes(o->target) && !(o->target->features & TARGET_MVE); /* lanes round twice */
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && takes; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
