/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of steps of products of bytes, and their type relation: graph/op/steps.h. */
#include "graph/op/steps.h"
#include "graph/op/nn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 2         /* of a run: each is one sum of 16 bits in a lane */
/* Segments that are tried beside the longest one: 64 made no list shorter. Of very long lists fewer. */
#define LEAST_LOOKED 4
#define MOST_LOOKED 32
#define MOST_WORK (1 << 17) /* numbers by segments */
#define MOST_LANES 64   /* of any target's vector */

/* Numbers that lie side by side, and have weights that are not in a step yet from `next` on. */
typedef struct segment {
    int32_t place;          /* of the first */
    int64_t first;          /* of their weights, in numbers */
    int64_t next, count;
} segment;

typedef VEC(segment) segment_list;

/* Two runs: where they begin in their segments; `second` NULL: there is none. */
typedef struct pair {
    segment *first, *second;
    int64_t at[STEPS_RUNS];
} pair;

typedef struct step {
    int32_t places[STEPS_RUNS];
    uint32_t serial;        /* of two at the same places the first is the first */
    int8_t *weights;        /* [STEPS_RUNS, lanes, STEPS_RUN] */
} step;

typedef VEC(step) step_list;

typedef struct maker {
    const steps_source *from;
    arena mem;
    segment_list segments;  /* of the block at hand */
    int8_t *weights;        /* [numbers, lanes]: what is left of them */
    int32_t *sums;          /* [numbers]: of all lanes, without signs */
    int8_t *left;           /* [STEPS_RUNS, STEPS_RUN, lanes]: what a step would leave of its weights */
    int64_t taps[2], ins;   /* ins: as many as the data's blocks have */
    int bound;              /* of what meets in 16 bits, by data of u8 */
    int64_t looked;         /* segments that are tried beside the longest one */
    int64_t length;         /* of segments: of K numbers 2 sqrt(K), by data of i8 a run: nearly all of these fit */
} maker;

/* --- the numbers of a block --- */

static int8_t weight_at(const maker *v, int64_t o, int64_t i, int64_t row, int64_t col)
{
    const tensor_data *w = v->from->weights;
    const int8_t *all = (const int8_t *)tensor_element(w, 0);
    return o < w->dims[0] && i < w->dims[1]
               ? all[((o * w->dims[1] + i) * v->taps[0] + row) * v->taps[1] + col] : 0;
}

static void sum_up(const maker *v, const segment *s, int64_t at)
{
    const int8_t *w = &v->weights[(s->first + at) * v->from->lanes];
    int32_t sum = 0;
    for (int64_t lane = 0; lane < v->from->lanes; lane++)
        sum += abs(w[lane]);
    v->sums[s->first + at] = sum;
}

static void skip_done(const maker *v, segment *s)
{
    while (s->next < s->count && v->sums[s->first + s->next] == 0)
        s->next++;
}

/* Numbers of input channels `channel` on under tap (row, col), and under those behind it in the row, of output channels
 * `block`; of zeros alone they are not needed. */
static void read_segments(maker *v, int64_t block, int64_t channel, int64_t row, int64_t col, int64_t taps)
{
    const steps_source *s = v->from;
    const int64_t place = ((channel / s->in_block * s->rows + row * s->dilations[0]) * s->cols +
                           col * s->dilations[1]) * s->in_block, count = taps * s->in_block;
    const int64_t first = v->segments.len > 0 ? v->segments.data[v->segments.len - 1].first +
                                                v->segments.data[v->segments.len - 1].count : 0;
    for (int64_t i = 0; i < count * s->lanes; i++) {
        const int64_t number = i / s->lanes;
        v->weights[first * s->lanes + i] =
            weight_at(v, block * s->lanes + i % s->lanes, channel + number % s->in_block, row,
                      col + number / s->in_block);
    }
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < v->length + STEPS_RUN ? count - at : v->length;
        vec_push(&v->mem, &v->segments, ((segment){(int32_t)(place + at), first + at, 0, n}));
        segment *added = &v->segments.data[v->segments.len - 1];
        for (int64_t i = 0; i < n; i++)
            sum_up(v, added, i);
        skip_done(v, added);
    }
}

static void read_block(maker *v, int64_t block)
{
    const bool side_by_side = v->from->dilations[1] == 1;
    v->segments.len = 0;
    for (int64_t channel = 0; channel < v->ins; channel += v->from->in_block)
        for (int64_t row = 0; row < v->taps[0]; row++)
            for (int64_t col = 0; col < (side_by_side ? 1 : v->taps[1]); col++)
                read_segments(v, block, channel, row, col, side_by_side ? v->taps[1] : 1);
}

/* --- steps --- */

/* What two numbers of each run, all of which meet in a sum, have beyond the bound is left for later steps: of the later
 * numbers first, and of one of them where that is enough. sign: of the weights that the bound is for; 0: of all,
 * whatever their signs, as by data of i8. */
static void leave(const int8_t *const weights[4], int8_t *const left[4], int64_t lane, int sign, int beyond)
{
    int has[4];
    for (int i = 0; i < 4; i++)
        has[i] = sign ? sign * weights[i][lane] : abs(weights[i][lane]);
    const bool turned = sign && beyond > has[3] && beyond <= has[1]; /* lists by data of i8 get no shorter so */
    const int order[4] = {turned ? 1 : 3, turned ? 3 : 1, 2, 0};
    for (int i = 0; i < 4 && beyond > 0; i++) {
        const int at = order[i], part = has[at] < beyond ? has[at] : beyond;
        if (part <= 0)
            continue;
        left[at][lane] = (int8_t)(weights[at][lane] < 0 ? -part : part);
        beyond -= part;
    }
}

/* v->left, of these two runs. */
static void try_pair(maker *v, const pair *p)
{
    static const int8_t none[MOST_LANES] = {0};
    const int64_t lanes = v->from->lanes;
    assert(lanes <= MOST_LANES);
    memset(v->left, 0, (size_t)(STEPS_RUNS * STEPS_RUN * lanes));
    for (int64_t i = 0; i < STEPS_RUN; i += STEPS_RUN / PAIRS) {
        const int8_t *w[4];
        int8_t *left[4];
        for (int64_t k = 0; k < 4; k++) {
            const segment *s = k < 2 ? p->first : p->second;
            w[k] = s ? v->weights + (s->first + p->at[k / 2] + i + k % 2) * lanes : none;
            left[k] = v->left + (k / 2 * STEPS_RUN + i + k % 2) * lanes;
        }
        for (int64_t lane = 0; lane < lanes; lane++) {
            int above = 0, below = 0;
            for (int k = 0; k < 4; k++) {
                above += w[k][lane] > 0 ? w[k][lane] : 0;
                below += w[k][lane] < 0 ? -w[k][lane] : 0;
            }
            if (v->from->is_signed) {
                leave(w, left, lane, 0, above + below - STEPS_BOUND_I8);
                continue;
            }
            if (above > v->bound)
                leave(w, left, lane, 1, above - v->bound);
            if (below > v->bound)
                leave(w, left, lane, -1, below - v->bound);
        }
    }
}

/* Numbers that run r of the pair is done with, from the segment's next one on. */
static int64_t gained(const maker *v, const segment *s, int64_t at, int r)
{
    const int64_t lanes = v->from->lanes;
    int64_t k = 0;
    for (; k < STEPS_RUN * lanes && v->left[r * STEPS_RUN * lanes + k] == 0; k++)
        ;
    return at + k / lanes > s->next ? at + k / lanes - s->next : 0;
}

static int64_t weight_of(const maker *v, const segment *s, int64_t at)
{
    int64_t sum = 0;
    for (int64_t i = 0; s && i < STEPS_RUN; i++)
        sum += v->sums[s->first + at + i];
    return sum;
}

/* How good a step is: many numbers that it is done with, then heavy ones, which find few others later, and those of a
 * long segment. */
static int64_t worth(maker *v, const pair *p)
{
    try_pair(v, p);
    int64_t done = gained(v, p->first, p->at[0], 0);
    if (p->second && p->second != p->first)
        done += gained(v, p->second, p->at[1], 1);
    else if (p->second && done == p->at[0] + STEPS_RUN - p->first->next) /* else there is a gap between them */
        done = gained(v, p->first, p->at[1], 1) - (p->at[1] - p->at[0] - STEPS_RUN);
    return done * (1 << 24) + weight_of(v, p->first, p->at[0]) + weight_of(v, p->second, p->at[1]) +
           (p->second ? 2 * (p->second->count - p->second->next) : 0);
}

/* Where a run of a segment may begin: at its next number, or `back` before it; beside another run of it behind that, or
 * at its end, which leaves a gap: for want of other segments. false: there is no such place. */
static bool begin_run(const segment *s, const pair *p, int64_t back, int64_t *at)
{
    const int64_t last = s->count - STEPS_RUN;
    *at = s->next - back < last ? s->next - back : last;
    if (p->first != s)
        return *at >= 0;
    *at = back > 0 ? last : p->at[0] + STEPS_RUN;
    return *at >= p->at[0] + STEPS_RUN && *at <= last;
}

static void keep_better(maker *v, const pair *p, pair *best, int64_t *most)
{
    const int64_t is = worth(v, p);
    if (is <= *most)
        return;
    *most = is;
    *best = *p;
}

/* Whether more of s than of t is left, or as much and heavier. */
static bool is_before(const maker *v, const segment *s, const segment *t)
{
    const int64_t more = (s->count - s->next) - (t->count - t->next);
    int64_t at, other;
    return more > 0 || (more == 0 && begin_run(s, &(pair){0}, 0, &at) && begin_run(t, &(pair){0}, 0, &other) &&
                        weight_of(v, s, at) > weight_of(v, t, other));
}

/* The best step of all whose first run is of the longest segment; NULL first: nothing is left. */
static pair choose_pair(maker *v)
{
    segment *s = v->segments.data, *longest = NULL;
    pair best = {0};
    int64_t most = -1;
    for (uint32_t i = 0; i < v->segments.len; i++)
        if (s[i].next < s[i].count && (!longest || is_before(v, &s[i], longest)))
            longest = &s[i];
    for (int64_t back = 0; longest && back < 2; back++) {
        int64_t looked = 0;
        pair p = {0};
        if (!begin_run(longest, &p, back, &p.at[0]))
            continue;
        p.first = longest;
        keep_better(v, &p, &best, &most);
        for (uint32_t i = 0; i < v->segments.len && looked < v->looked; i++) {
            p.second = &s[i];
            looked += s[i].next < s[i].count;
            const int64_t places = s[i].next == s[i].count ? 0 : &s[i] == longest && v->segments.len > 1 ? 1 : 2;
            for (int64_t other = 0; other < places; other++)
                if (begin_run(&s[i], &p, other, &p.at[1]))
                    keep_better(v, &p, &best, &most);
        }
    }
    return best;
}

/* The step takes of its numbers' weights what it does not leave. */
static void take_pair(maker *v, const pair *p, step *out)
{
    const int64_t lanes = v->from->lanes;
    try_pair(v, p);
    out->weights = arena_array(&v->mem, int8_t, (size_t)(STEPS_RUNS * lanes * STEPS_RUN));
    const bool turned = p->second && p->second->place + p->at[1] < p->first->place + p->at[0];
    for (int r = 0; r < STEPS_RUNS; r++) {
        const segment *s = r == 0 ? p->first : p->second;
        const int to = turned ? 1 - r : r;
        out->places[to] = s ? (int32_t)(s->place + p->at[r]) : 0;
        for (int64_t i = 0; s && i < STEPS_RUN * lanes; i++) {
            int8_t *w = &v->weights[(s->first + p->at[r]) * lanes + i];
            const int8_t left = v->left[r * STEPS_RUN * lanes + i];
            out->weights[(to * lanes + i % lanes) * STEPS_RUN + i / lanes] = (int8_t)(*w - left);
            *w = left;
        }
        for (int64_t i = 0; s && i < STEPS_RUN; i++)
            sum_up(v, s, p->at[r] + i);
    }
    skip_done(v, p->first);
    if (p->second)
        skip_done(v, p->second);
}

static int earlier(const void *a, const void *b)
{
    const step *x = a, *y = b;
    for (int i = 0; i < STEPS_RUNS; i++)
        if (x->places[i] != y->places[i])
            return x->places[i] < y->places[i] ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* The steps of the block that is read, in the order of the data; false: more than `most`. */
static bool make_steps(maker *v, int64_t most, step_list *out)
{
    for (pair p = choose_pair(v); p.first; p = choose_pair(v)) {
        step made = {.serial = out->len};
        if ((int64_t)out->len == most)
            return false;
        take_pair(v, &p, &made);
        vec_push(&v->mem, out, made);
    }
    if (out->len > 0)
        qsort(out->data, out->len, sizeof *out->data, earlier);
    return true;
}

/* --- lists --- */

typedef struct block_lists {
    int8_t *weights;
    int32_t *places;
    int64_t steps; /* room for */
} block_lists;

static void write_block(const maker *v, const step_list *steps, int64_t block, const block_lists *out)
{
    const size_t size = (size_t)(STEPS_RUNS * v->from->lanes * STEPS_RUN);
    for (uint32_t i = 0; i < steps->len; i++) {
        const size_t at = (size_t)(block * out->steps) + i;
        memcpy(out->places + at * STEPS_RUNS, steps->data[i].places, sizeof steps->data[i].places);
        memcpy(out->weights + at * size, steps->data[i].weights, size);
    }
}

static int64_t blocks_of(const steps_source *from)
{
    return (from->weights->dims[0] + from->lanes - 1) / from->lanes;
}

/* The first dims[1] of `steps` steps in every block. */
static const tensor_data *shortened(compiler *c, dtype dt, uint32_t rank, const int64_t *dims, const void *data,
                                    int64_t steps)
{
    int64_t size = (int64_t)dtype_bytes(dt);
    for (uint32_t i = 2; i < rank; i++)
        size *= dims[i];
    uint8_t *to = arena_alloc_array(&c->mem, (size_t)(dims[0] * dims[1] * size), 1, 8);
    for (int64_t i = 0; i < dims[0]; i++)
        memcpy(to + i * dims[1] * size, (const uint8_t *)data + i * steps * size, (size_t)(dims[1] * size));
    return tensor_dense(c, dt, rank, dims, to);
}

static bool make(maker *v, compiler *c, int64_t most, steps_lists *out)
{
    const int64_t blocks = blocks_of(v->from), lanes = v->from->lanes, count = blocks * most * STEPS_RUNS;
    const block_lists all = {arena_array(&v->mem, int8_t, (size_t)(count * lanes * STEPS_RUN)),
                             arena_array(&v->mem, int32_t, (size_t)count), most};
    v->weights = arena_array(&v->mem, int8_t, (size_t)(v->ins * v->taps[0] * v->taps[1] * lanes));
    v->sums = arena_array(&v->mem, int32_t, (size_t)(v->ins * v->taps[0] * v->taps[1]));
    v->left = arena_array(&v->mem, int8_t, (size_t)(STEPS_RUNS * STEPS_RUN * lanes));
    out->steps = 1;
    for (int64_t i = 0; i < blocks; i++) {
        const arena_mark mark = arena_get_mark(&v->mem);
        step_list steps = {0};
        v->segments = (segment_list){0};
        read_block(v, i);
        if (!make_steps(v, most, &steps))
            return false;
        write_block(v, &steps, i, &all);
        out->steps = steps.len > out->steps ? steps.len : out->steps;
        arena_reset(&v->mem, mark);
    }
    const int64_t dims[5] = {blocks, out->steps, STEPS_RUNS, lanes, STEPS_RUN};
    out->weights = shortened(c, DT_I8, 5, dims, all.weights, most);
    out->places = shortened(c, DT_I32, 3, dims, all.places, most);
    return true;
}

/* x w is (x - 128 + (w < 0)) w and w times what these leave out, for each output channel. */
static const tensor_data *offsets_of(compiler *c, const steps_source *from)
{
    const tensor_data *w = from->weights;
    const int64_t dims[1] = {blocks_of(from) * from->lanes}, each = w->count / w->dims[0];
    int32_t *sums = arena_array(&c->mem, int32_t, (size_t)dims[0]);
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t x = tensor_get_i64(w, i);
        sums[i / each] += (int32_t)(x * (x < 0 ? 127 : 128));
    }
    return tensor_dense(c, DT_I32, 1, dims, sums);
}

/* Input channels, with those that fill the last block. */
static int64_t filled_ins(const steps_source *from)
{
    return (from->weights->dims[1] + from->in_block - 1) / from->in_block * from->in_block;
}

int64_t steps_least(const steps_source *from)
{
    const int64_t *d = from->weights->dims;
    return (d[1] * d[2] * d[3] + STEPS_RUN * STEPS_RUNS - 1) / (STEPS_RUN * STEPS_RUNS);
}

bool steps_make(compiler *c, const steps_source *from, int64_t most, steps_lists *out)
{
    maker v = {.from = from, .taps = {from->weights->dims[2], from->weights->dims[3]}, .ins = filled_ins(from)};
    const int64_t numbers = v.ins * v.taps[0] * v.taps[1], looked = MOST_WORK / (numbers > 0 ? numbers : 1);
    v.bound = steps_bound(from->most);
    v.looked = looked < LEAST_LOOKED ? LEAST_LOOKED : looked > MOST_LOOKED ? MOST_LOOKED : looked;
    v.length = STEPS_RUN;
    while (!from->is_signed && v.length * v.length / 4 < numbers)
        v.length += STEPS_RUN;
    arena_init(&v.mem, &c->mem);
    const bool ok = make(&v, c, most, out);
    out->offsets = ok && from->is_signed ? offsets_of(c, from) : NULL;
    arena_free(&v.mem);
    return ok;
}

/* --- the operator --- */

bool steps_fit(const tensor_data *w, bool is_signed, int64_t most)
{
    const int64_t lanes = w->dims[3], size = lanes * STEPS_RUN, bound = steps_bound(most);
    const int64_t all = size * STEPS_RUNS > 0 && w->kind == TENSOR_SPLAT && w->count > 0 ? 1 : w->count;
    for (int64_t at = 0; at < all; at += size * STEPS_RUNS)
        for (int64_t i = at; i < at + (all == 1 ? 1 : size); i += STEPS_RUN / PAIRS) {
            int64_t above = 0, below = 0;
            for (int64_t k = 0; k < STEPS_RUNS * STEPS_RUN / PAIRS; k++) {
                const int64_t x = tensor_get_i64(w, i + k / (STEPS_RUN / PAIRS) * size + k % (STEPS_RUN / PAIRS));
                above += x > 0 ? x : 0;
                below += x < 0 ? -x : 0;
            }
            if (is_signed ? above + below > STEPS_BOUND_I8 : above > bound || below > bound)
                return false;
        }
    return true;
}

/* Behind the last number that a run reads in front of which it stands at place 0. */
static bool reach_of(const int64_t *out, const int64_t *strides, int64_t *reach)
{
    int64_t down, along;
    return i64_mul(out[0] - 1, strides[0], &down) && i64_mul(out[1] - 1, strides[1], &along) &&
           i64_add(down, along, reach) && i64_add(*reach, STEPS_RUN, reach);
}

/* Whether known places lie in the data, `reach` from its end at least. */
static bool stay_inside(const tensor_data *places, int64_t size, int64_t reach)
{
    const int64_t count = places->kind == TENSOR_SPLAT && places->count > 1 ? 1 : places->count;
    for (int64_t i = 0; i < count; i++)
        if (tensor_get_i64(places, i) < 0 || tensor_get_i64(places, i) > size - reach)
            return false;
    return true;
}

/* Weights [B, steps, 2, lanes, 4] at places [B, steps, 2] in the last axis of the data, `reach` from its end at least.
 */
static bool lists_fit(compiler *c, const graph_node *n, int64_t reach)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1), *p = infer_in(n, 2);
    const tensor_data *places = graph_constant(n->inputs[2]), *known = graph_constant(n->inputs[1]);
    int64_t size = 0;
    const int64_t most = graph_attr(n, "most") ? graph_attr_int(n, "most") : UINT8_MAX;
    if (most <= INT8_MAX || most > UINT8_MAX)
        return infer_error(c, n, "most is %lld, not from 128 to 255", (long long)most);
    const int bound = x->dt == DT_I8 ? STEPS_BOUND_I8 : steps_bound(most);
    if (!dim_is(w->shape.dims[2], STEPS_RUNS) || !dim_is(w->shape.dims[4], STEPS_RUN))
        return infer_error(c, n, "the weights are not steps of %d runs of %d numbers", STEPS_RUNS, STEPS_RUN);
    for (uint32_t i = 0; i < 3; i++)
        if (!dim_equal(p->shape.dims[i], w->shape.dims[i]))
            return infer_error(c, n, "places and weights are not of the same blocks and steps");
    if (!dim_is_const(x->shape.dims[x->shape.rank - 1], &size) || reach > size)
        return infer_error(c, n, "the data is smaller than what is read at a place");
    if (places && !stay_inside(places, size, reach))
        return infer_error(c, n, "a place lies outside of the data");
    if (known ? !steps_fit(known, x->dt == DT_I8, most) : nn_nibbles_exceed(n->inputs[1], bound / 4))
        return infer_error(c, n, "weights that are added in 16 bits come to more than %d", bound);
    return true;
}

bool steps_lists_fit(compiler *c, const graph_node *n)
{
    const int64_t *extents = NULL, *strides = NULL;
    int64_t reach = STEPS_RUN;
    if (!graph_attr(n, "out"))
        return lists_fit(c, n, reach);
    if (graph_attr_ints(n, "out", &extents) != 2 || graph_attr_ints(n, "strides", &strides) != 2 || extents[0] < 1 ||
        extents[1] < 1 || strides[0] < 0 || strides[1] < 0)
        return infer_error(c, n, "out is two extents, strides are two distances");
    return lists_fit(c, n, reach_of(extents, strides, &reach) ? reach : INT64_MAX);
}

/* Along one axis: windows of taps, `dilation` apart, from one to the next `stride`, lie in the image. */
static bool windows_lie_in(int64_t image, int64_t out, int64_t stride, int64_t taps, int64_t dilation)
{
    int64_t last, reach;
    return stride > 0 && taps > 0 && dilation > 0 && i64_mul(out - 1, stride, &last) &&
           i64_mul(taps - 1, dilation, &reach) && i64_add(last, reach, &last) && last < image;
}

#define MOST_BLOCK 64 /* channels of a block of an image */

/* The blocks of an image x, of weights w and of a result y: images, blocks of channels and channels of a block. */
static bool are_of_one_layer(const int64_t x[5], const int64_t w[7], const int64_t y[5])
{
    const int64_t pairs[][2] = {{x[0], y[0]}, {w[0], x[1]}, {w[3], x[4] / STEPS_RUN},
                                {w[4], y[1]}, {w[5], y[4]}, {w[6], STEPS_RUN}};
    bool same = x[4] >= STEPS_RUN && x[4] <= MOST_BLOCK && x[4] % STEPS_RUN == 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        same &= pairs[i][0] == pairs[i][1];
    return same;
}

/* Whether windows of the attributes `out`, `strides` and `dilations` lie in an image of these rows and columns; strides
 * count numbers: of a pixel, and of a line. */
static bool all_windows_lie_in(const graph_node *n, const int64_t image[2], const int64_t taps[2], int64_t pixel,
                               int64_t line)
{
    static const int64_t ones[2] = {1, 1};
    const int64_t *strides = NULL, *extents = NULL, *dilations = ones;
    (void)graph_attr_ints(n, "strides", &strides);
    (void)graph_attr_ints(n, "out", &extents);
    if (graph_attr_ints(n, "dilations", &dilations) == 0)
        dilations = ones;
    return line != 0 && strides[1] % pixel == 0 && strides[0] % line == 0 &&
           windows_lie_in(image[0], extents[0], strides[0] / line, taps[0], dilations[0]) &&
           windows_lie_in(image[1], extents[1], strides[1] / pixel, taps[1], dilations[1]);
}

/* The image that the data was made of, [N, I, rows, cols, block], and all weights, [I, kh, kw, block / 4, B, lanes, 4].
 */
static bool image_fits(compiler *c, const graph_node *n, const shape *out)
{
    int64_t x[5], w[7], y[5], size = 0, pixel = 0, line = 0, all = 0;
    const int64_t *given = NULL, most = graph_attr_int(n, "most");
    const bool image = graph_operand(n, 3), weights = graph_operand(n, 4);
    const uint32_t dilations = graph_attr_ints(n, "dilations", &given);
    if (!image && !weights)
        return most == UINT8_MAX || infer_error(c, n, "data of at most %lld needs the image that it was made of",
                                                (long long)most);
    if (infer_in(n, 0)->dt != DT_U8)
        return infer_error(c, n, "data that is split is u8");
    if (!image || !weights)
        return infer_error(c, n, "an image and its weights come together");
    if (dilations != 0 && dilations != 2)
        return infer_error(c, n, "dilations are two distances");
    if (!shape_get(infer_in(n, 3)->shape, x) || !shape_get(infer_in(n, 4)->shape, w) || !shape_get(*out, y) ||
        !dim_is_const(infer_in(n, 0)->shape.dims[1], &size))
        return infer_error(c, n, "the image, or its weights, are of no known size");
    if (!are_of_one_layer(x, w, y) || !i64_mul(x[1], x[4], &pixel) || !i64_mul(pixel, x[3], &line) ||
        !i64_mul(line, x[2], &all) || all != size)
        return infer_error(c, n, "the image, its weights and the lists are not of the same channels");
    if (!all_windows_lie_in(n, x + 2, w + 1, pixel, line))
        return infer_error(c, n, "windows do not lie in the image");
    return true;
}

/* [N, size] -> [N, B, out, lanes] */
bool infer_conv2d_steps(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    const int64_t *extents = NULL, lanes = graph_attr_int(n, "lanes");
    int64_t size = 0, blocks = 0, shared = 0;
    if (x->dt != DT_U8 && x->dt != DT_I8)
        return infer_error(c, n, "the data is neither u8 nor i8");
    if (!steps_lists_fit(c, n))
        return false;
    if (graph_attr_int(n, "products") < 0 || !dim_is_const(x->shape.dims[1], &size) ||
        graph_attr_int(n, "products") > size)
        return infer_error(c, n, "products are those of a sum: one of each number of an image at most");
    (void)graph_attr_ints(n, "out", &extents);
    dim d[5] = {x->shape.dims[0], w->shape.dims[0], dim_const(c, extents[0]), dim_const(c, extents[1]),
                w->shape.dims[3]};
    if (lanes != 0) {
        if (lanes < 0 || !dim_is_const(d[1], &blocks) || !dim_is_const(d[4], &shared) || shared < lanes ||
            shared % lanes != 0 || !i64_mul(blocks, shared / lanes, &blocks))
            return infer_error(c, n, "lists are not for whole blocks of %lld channels", (long long)lanes);
        d[1] = dim_const(c, blocks);
        d[4] = dim_const(c, lanes);
    }
    const shape y = shape_make(c, 5, d);
    if (!image_fits(c, n, &y))
        return false;
    out[0] = type_tensor(DT_I32, y);
    return true;
}

/* [.., K] -> [.., units] */
bool infer_matmul_steps(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t units = graph_attr_int(n, "units");
    int64_t blocks = 0, lanes = 0;
    dim d[TYPE_MAX_RANK];
    if (!steps_lists_fit(c, n))
        return false;
    if (!dim_is_const(infer_in(n, 1)->shape.dims[0], &blocks) || !dim_is_const(infer_in(n, 1)->shape.dims[3], &lanes) ||
        units < 1 || lanes < 1 || blocks != units / lanes + (units % lanes != 0))
        return infer_error(c, n, "the lists are not those of %lld columns", (long long)units);
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    d[x->shape.rank - 1] = dim_const(c, units);
    out[0] = type_tensor(DT_I32, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}
