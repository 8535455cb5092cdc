/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of steps of products of bytes, and their type relation: graph/op/steps.h. */
#include "graph/op/steps.h"
#include "graph/op/nn.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TRIES 1024 /* runs that are looked at for a partner */
#define PAIRS 2 /* of a run: each is one sum of 16 bits in a lane */

/* A run of one block: its weights [lanes, STEPS_RUN], and of each pair of these the sums that are bounded: positive
 * ones, then negative ones without their sign. */
typedef struct run {
    int32_t place;
    uint32_t serial;  /* among those of the block: of two that weigh the same at one place, the first is the first */
    uint16_t most;    /* of sums */
    uint16_t *sums;   /* [lanes, PAIRS, 2] */
    int8_t *weights;
    bool taken;
} run;

typedef VEC(run) run_list;

typedef struct maker {
    const steps_source *from;
    arena mem;
    run_list runs; /* of the block at hand */
    int64_t taps[2], ins; /* ins: as many as the data's blocks have */
} maker;

/* --- runs of a block --- */

static void sum_pairs(const maker *v, run *r)
{
    r->most = 0;
    for (int64_t i = 0; i < v->from->lanes * PAIRS; i++) {
        int above = 0, below = 0;
        for (int k = 0; k < STEPS_RUN / PAIRS; k++) {
            const int w = r->weights[i * (STEPS_RUN / PAIRS) + k];
            above += w > 0 ? w : 0;
            below += w < 0 ? -w : 0;
        }
        r->sums[2 * i] = (uint16_t)above;
        r->sums[2 * i + 1] = (uint16_t)below;
        const int larger = above > below ? above : below;
        r->most = (uint16_t)(larger > r->most ? larger : r->most);
    }
}

static run *add_run(maker *v, int32_t place)
{
    const size_t lanes = (size_t)v->from->lanes;
    run r = {.place = place, .serial = v->runs.len};
    r.sums = arena_array(&v->mem, uint16_t, lanes * PAIRS * 2);
    r.weights = arena_array(&v->mem, int8_t, lanes * STEPS_RUN);
    vec_push(&v->mem, &v->runs, r);
    return &v->runs.data[v->runs.len - 1];
}

/* Half of the weights of each sum beyond the bound goes into a run of its own: of two weights of 8 bits that is within
 * it, however it is rounded. */
static void halve(maker *v, uint32_t at)
{
    run *rest = add_run(v, v->runs.data[at].place), *whole = &v->runs.data[at];
    for (int64_t i = 0; i < v->from->lanes * PAIRS; i++) {
        if (whole->sums[2 * i] <= STEPS_BOUND && whole->sums[2 * i + 1] <= STEPS_BOUND)
            continue;
        for (int64_t k = i * (STEPS_RUN / PAIRS); k < (i + 1) * (STEPS_RUN / PAIRS); k++) {
            rest->weights[k] = (int8_t)(whole->weights[k] / 2);
            whole->weights[k] = (int8_t)(whole->weights[k] - rest->weights[k]);
        }
    }
    sum_pairs(v, whole);
    sum_pairs(v, rest);
}

static int64_t weight_at(const maker *v, int64_t o, int64_t i, int64_t row, int64_t col)
{
    const tensor_data *w = v->from->weights;
    return o < w->dims[0] && i < w->dims[1]
               ? tensor_get_i64(w, ((o * w->dims[1] + i) * v->taps[0] + row) * v->taps[1] + col) : 0;
}

/* The run of input channels `first` on under a tap, for block `block`; of zeros it is not needed. One that would leave
 * the data's block begins before: what it has there is the run's in front of it, and 0 here. */
static void read_run(maker *v, int64_t block, int64_t first, int64_t row, int64_t col)
{
    const steps_source *s = v->from;
    const int64_t at = ((first / s->in_block * s->rows + row * s->dilations[0]) * s->cols + col * s->dilations[1]);
    const int64_t left = s->in_block - first % s->in_block, back = left < STEPS_RUN ? STEPS_RUN - left : 0;
    run *r = add_run(v, (int32_t)(at * s->in_block + first % s->in_block - back));
    for (int64_t lane = 0; lane < s->lanes; lane++)
        for (int64_t k = back; k < STEPS_RUN; k++)
            r->weights[lane * STEPS_RUN + k] =
                (int8_t)weight_at(v, block * s->lanes + lane, first + k - back, row, col);
    sum_pairs(v, r);
    if (r->most == 0)
        v->runs.len--;
    else if (r->most > STEPS_BOUND)
        halve(v, v->runs.len - 1);
}

static int heavier(const void *a, const void *b)
{
    const run *x = a, *y = b;
    if (x->most != y->most)
        return x->most < y->most ? 1 : -1;
    return x->place != y->place ? (x->place < y->place ? -1 : 1) : x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* The runs of a block, the heaviest first: these find the fewest partners. */
static void read_block(maker *v, int64_t block)
{
    const int64_t size = v->from->in_block;
    v->runs.len = 0;
    for (int64_t from = 0; from < v->ins; from += size)
        for (int64_t first = from; first < from + size; first += STEPS_RUN)
            for (int64_t row = 0; row < v->taps[0]; row++)
                for (int64_t col = 0; col < v->taps[1]; col++)
                    read_run(v, block, first, row, col);
    if (v->runs.len > 0)
        qsort(v->runs.data, v->runs.len, sizeof *v->runs.data, heavier);
}

/* --- pairs of runs --- */

static bool fit_together(const maker *v, const run *a, const run *b)
{
    if (a->most + b->most <= STEPS_BOUND)
        return true;
    for (int64_t i = 0; i < v->from->lanes * PAIRS * 2; i++)
        if (a->sums[i] + b->sums[i] > STEPS_BOUND)
            return false;
    return true;
}

/* The heaviest run behind run `at` that fits beside it; NULL: none. */
static run *partner_of(maker *v, uint32_t at)
{
    uint32_t tries = 0;
    for (uint32_t i = at + 1; i < v->runs.len && tries < MOST_TRIES; tries += !v->runs.data[i++].taken)
        if (!v->runs.data[i].taken && fit_together(v, &v->runs.data[at], &v->runs.data[i]))
            return &v->runs.data[i];
    return NULL;
}

typedef struct step {
    const run *of[STEPS_RUNS]; /* the second may be none */
    uint32_t serial;           /* as of runs */
} step;
typedef VEC(step) step_list;

static int earlier(const void *a, const void *b)
{
    const step *x = a, *y = b;
    const int32_t at = x->of[0]->place, other = y->of[0]->place;
    return at != other ? (at < other ? -1 : 1) : x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* The steps of the block whose runs are read, in the order of the data; false: more than `most`. */
static bool pair_runs(maker *v, int64_t most, step_list *out)
{
    out->len = 0;
    if (((int64_t)v->runs.len + 1) / STEPS_RUNS > most)
        return false;
    for (uint32_t i = 0; i < v->runs.len; i++) {
        run *a = &v->runs.data[i];
        if (a->taken)
            continue;
        run *b = partner_of(v, i);
        if ((int64_t)out->len == most)
            return false;
        a->taken = true;
        if (b)
            b->taken = true;
        const bool swapped = b && b->place < a->place;
        vec_push(&v->mem, out, ((step){{swapped ? b : a, swapped ? a : b}, out->len}));
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
    const size_t size = (size_t)(v->from->lanes * STEPS_RUN);
    for (uint32_t i = 0; i < steps->len; i++)
        for (uint32_t k = 0; k < STEPS_RUNS; k++) {
            const run *r = steps->data[i].of[k];
            const size_t at = ((size_t)(block * out->steps) + i) * STEPS_RUNS + k;
            if (!r)
                continue;
            out->places[at] = r->place;
            memcpy(out->weights + at * size, r->weights, size);
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
    out->steps = 1;
    for (int64_t i = 0; i < blocks; i++) {
        const arena_mark mark = arena_get_mark(&v->mem);
        step_list steps = {0};
        v->runs = (run_list){0};
        read_block(v, i);
        if (!pair_runs(v, most, &steps))
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
    arena_init(&v.mem, &c->mem);
    const bool ok = make(&v, c, most, out);
    arena_free(&v.mem);
    return ok;
}

/* --- the operator --- */

bool steps_fit(const tensor_data *w)
{
    const int64_t lanes = w->dims[3], size = lanes * STEPS_RUN;
    const int64_t all = size * STEPS_RUNS > 0 && w->kind == TENSOR_SPLAT && w->count > 0 ? 1 : w->count;
    for (int64_t at = 0; at < all; at += size * STEPS_RUNS)
        for (int64_t i = at; i < at + (all == 1 ? 1 : size); i += STEPS_RUN / PAIRS) {
            int64_t above = 0, below = 0;
            for (int64_t k = 0; k < STEPS_RUNS * STEPS_RUN / PAIRS; k++) {
                const int64_t x = tensor_get_i64(w, i + k / (STEPS_RUN / PAIRS) * size + k % (STEPS_RUN / PAIRS));
                above += x > 0 ? x : 0;
                below += x < 0 ? -x : 0;
            }
            if (above > STEPS_BOUND || below > STEPS_BOUND)
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
    if (!dim_is(w->shape.dims[2], STEPS_RUNS) || !dim_is(w->shape.dims[4], STEPS_RUN))
        return infer_error(c, n, "the weights are no steps of %d runs of %d numbers", STEPS_RUNS, STEPS_RUN);
    for (uint32_t i = 0; i < 3; i++)
        if (!dim_equal(p->shape.dims[i], w->shape.dims[i]))
            return infer_error(c, n, "places and weights are not of the same blocks and steps");
    if (!dim_is_const(x->shape.dims[x->shape.rank - 1], &size) || reach > size)
        return infer_error(c, n, "the data is smaller than what a place has behind it");
    if (places && !stay_inside(places, size, reach))
        return infer_error(c, n, "a place lies outside of the data");
    if (known ? !steps_fit(known) : nn_nibbles_exceed(n->inputs[1], STEPS_EACH))
        return infer_error(c, n, "weights that meet in 16 bits are more than %d in all", STEPS_BOUND);
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

/* [N, size] -> [N, B, out, lanes] */
bool infer_conv2d_steps(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    const int64_t *extents = NULL;
    int64_t size = 0;
    if (!steps_lists_fit(c, n))
        return false;
    if (graph_attr_int(n, "products") < 0 || !dim_is_const(x->shape.dims[1], &size) ||
        graph_attr_int(n, "products") > size)
        return infer_error(c, n, "products are those of a sum: one of each number of an image at most");
    (void)graph_attr_ints(n, "out", &extents);
    dim d[5] = {x->shape.dims[0], w->shape.dims[0], dim_const(c, extents[0]), dim_const(c, extents[1]),
                w->shape.dims[3]};
    out[0] = type_tensor(DT_I32, shape_make(c, 5, d));
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
