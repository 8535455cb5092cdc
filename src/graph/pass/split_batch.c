/* SPDX-License-Identifier: Apache-2.0 */
/* split-batch: where a batch is so large that what layers exchange leaves the caches, a stretch of layers runs for a
 * few images at a time, through all of its layers, before the next few follow. Each of these rounds has nodes of its
 * own, which call the same functions: kernels and weights stay one, and only the list of operators grows. What the
 * stretch reads is taken apart, and what it makes is put together again, by views and joins, without a copy.
 *
 * A stretch costs the reading of its weights in each round, and gains what its values save by staying near. Both are
 * counted in cycles, by the bandwidths of the processor's row: a layer's bytes come from the level that holds all that
 * the layer reads and writes. */
#include "graph/pass.h"
#include "graph/pass/images.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define MOST_ROUNDS   32   /* each has a list of operators of its own */
#define PART_OF_CACHE 2    /* other programs, weights and the stack take the rest */
#define CALL_CYCLES   3000 /* of an operator more: a barrier, the ends of its loops */
#define LEAST_GAIN    1e6  /* cycles */

typedef struct layer {
    uint32_t node;  /* in the function's list */
    bool apart;     /* makes each image by itself */
    double images;  /* bytes of one image that it reads and writes */
    double weights; /* bytes that it reads for all images */
} layer;

typedef struct stretch {
    uint32_t first, last; /* layers */
    int64_t few;          /* images in a round */
    double gain;
} stretch;

typedef struct splitter {
    rewriter r;
    compiler *c;
    graph_func *f;
    const target *t;
    const cpu_model *cpu;
    int64_t count;   /* images of the batch */
    int64_t workers;
    double weights;  /* bytes of all of the function's constants */
    VEC(layer) layers;
    VEC(stretch) chosen; /* in order */
    /* rewriting */
    VEC(graph_func *) from; /* functions that have a form for few images, */
    VEC(graph_func *) to;   /* which is this one, */
    VEC(uint64_t) has;      /* where these operands have images */
} splitter;

/* --- what layers move --- */

static double bytes_of(const graph_value *v)
{
    const int64_t n = v && v->type.kind == TYPE_TENSOR ? type_bytes(&v->type) : 0;
    return n > 0 ? (double)n : 0;
}

static bool is_constant(const graph_node *n)
{
    return strcmp(n->op->name, "constant") == 0;
}

static void add_layer(splitter *s, uint32_t i)
{
    const graph_node *n = s->f->nodes.data[i];
    layer x = {.node = i, .apart = images_are_apart(n, s->count)};
    for (uint32_t k = 0; k < n->n_inputs && !graph_is_view(s->c, n); k++)
        *(images_has(n->inputs[k], s->count) ? &x.images : &x.weights) += bytes_of(n->inputs[k]);
    for (uint32_t k = 0; k < n->n_outputs && !graph_is_view(s->c, n); k++)
        x.images += bytes_of(n->outputs[k]);
    x.images /= (double)s->count;
    s->weights += x.weights;
    vec_push(&s->c->mem, &s->layers, x);
}

/* Cycles for a byte, when `bytes` are used again and again. */
static double cost(const splitter *s, double bytes)
{
    const double near = s->cpu->loads * s->t->vector_bytes;
    if (bytes / (double)s->workers <= s->cpu->l2_bytes)
        return 1 / near;
    return 1 / (bytes <= s->cpu->l3_bytes / (double)PART_OF_CACHE ? s->cpu->far_bytes : s->cpu->memory_bytes);
}

static double gain(const splitter *s, const layer *x, int64_t few)
{
    const double all = x->images * (double)s->count, rounds = (double)(s->count / few);
    return all * (cost(s, all + x->weights) - cost(s, x->images * (double)few + x->weights)) -
           (rounds - 1) * (x->weights * cost(s, s->weights) + CALL_CYCLES);
}

/* --- which layers --- */

/* The stretch between two layers with the greatest sum of gains. */
static stretch best_between(const splitter *s, uint32_t first, uint32_t end, int64_t few)
{
    stretch best = {.few = few};
    double sum = 0;
    for (uint32_t i = first, start = first; i < end; i++) {
        const layer *x = &s->layers.data[i];
        sum = x->apart ? sum + gain(s, x, few) : 0;
        if (sum > best.gain)
            best = (stretch){start, i, few, sum};
        if (!x->apart || sum <= 0) {
            sum = 0;
            start = i + 1;
        }
    }
    return best;
}

/* Several workers share each image, by rows, and find again what they wrote. Of kernels for two images and more they
 * would take other parts in each layer: mobilenetv2 with two workers became slower by that. */
static stretch best_of_rounds(const splitter *s, uint32_t first, uint32_t end)
{
    stretch best = {.gain = LEAST_GAIN};
    for (int64_t rounds = MOST_ROUNDS; rounds > 1; rounds--) {
        const int64_t few = s->count / rounds;
        if (few < 1 || s->count % rounds != 0 || (few > 1 && s->workers > 1))
            continue;
        const stretch x = best_between(s, first, end, few);
        best = x.gain > best.gain ? x : best;
    }
    return best;
}

static void choose(splitter *s, uint32_t first, uint32_t end)
{
    const stretch x = best_of_rounds(s, first, end);
    if (x.few == 0)
        return;
    if (x.first > first)
        choose(s, first, x.first);
    if (x.last > x.first) /* one layer alone keeps nothing near */
        vec_push(&s->c->mem, &s->chosen, x);
    if (x.last + 1 < end)
        choose(s, x.last + 1, end);
}

/* --- the graph --- */

typedef struct round {
    ptr_map at; /* value of the whole batch -> position in `made` */
    VEC(graph_value *) made;
} round;

static void set_made(splitter *s, round *r, const graph_value *whole, graph_value *part)
{
    ptr_map_set(&r->at, whole, r->made.len);
    vec_push(&s->c->mem, &r->made, part);
}

/* The images of a round, of a value that is whole. */
static graph_value *take_part(splitter *s, round *r, graph_value *whole, int64_t from, int64_t few, src_loc loc)
{
    const int64_t axis = 0, to = from + few;
    uint32_t at;
    if (ptr_map_get(&r->at, whole, &at))
        return r->made.data[at];
    graph_value *part = rewrite_slice(&s->r, whole, 1, &from, &to, &axis, NULL, loc);
    if (part)
        set_made(s, r, whole, part);
    return part;
}

/* The form of n's function for few images. */
static graph_func *func_for(splitter *s, const graph_node *n, int64_t few)
{
    graph_func *g = graph_callee(n);
    uint64_t has = 0;
    for (uint32_t k = 0; k < n->n_inputs; k++)
        has |= images_has(n->inputs[k], s->count) ? (uint64_t)1 << k : 0;
    for (uint32_t i = 0; i < s->from.len; i++)
        if (s->from.data[i] == g && s->has.data[i] == has && s->to.data[i]->mark == (uint32_t)few)
            return s->to.data[i];
    graph_func *f = images_few_func(g, s->count, few, n);
    if (!f)
        return NULL;
    f->mark = (uint32_t)few;
    vec_push(&s->c->mem, &s->from, g);
    vec_push(&s->c->mem, &s->to, f);
    vec_push(&s->c->mem, &s->has, has);
    return f;
}

static bool add_few(splitter *s, round *r, const graph_node *n, int64_t from, int64_t few)
{
    graph_value **in = arena_array(&s->c->mem, graph_value *, n->n_inputs + 1u);
    graph_func *callee = graph_callee(n) ? func_for(s, n, few) : NULL;
    bool ok = callee || !graph_callee(n), any = false;
    for (uint32_t k = 0; k < n->n_inputs && ok; k++) {
        const bool has = images_has(n->inputs[k], s->count);
        any |= has;
        in[k] = has ? take_part(s, r, n->inputs[k], from, few, n->loc) : n->inputs[k];
        ok = in[k] || !n->inputs[k];
    }
    graph_node *to = ok ? images_few_node(s->f, n, in, few, any, callee) : NULL;
    for (uint32_t k = 0; to && k < n->n_outputs; k++)
        set_made(s, r, n->outputs[k], to->outputs[k]);
    if (to)
        rewrite_keep(&s->r, to);
    return to != NULL;
}

static bool is_read_behind(const splitter *s, const graph_value *v, uint32_t last)
{
    for (uint32_t i = s->layers.data[last].node + 1; i < s->f->nodes.len; i++)
        for (uint32_t k = 0; k < s->f->nodes.data[i]->n_inputs; k++)
            if (s->f->nodes.data[i]->inputs[k] == v)
                return true;
    return (v->mark & MARK_RESULT) != 0;
}

/* The parts of all rounds stand for v from here on. */
static bool put_together(splitter *s, const round *rounds, uint32_t n, graph_value *v, src_loc loc)
{
    const attr axis = attr_int(s->c, "axis", 0);
    graph_value *parts[MOST_ROUNDS];
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = 0;
        (void)ptr_map_get(&rounds[k].at, v, &at);
        parts[k] = rounds[k].made.data[at];
    }
    return rewrite_stand_for(&s->r, v, rewrite_emit(&s->r, "concatenate", n, parts, 1, &axis, loc), loc);
}

/* The nodes of the stretch are behind each other, but for constants. */
static bool rewrite(splitter *s, const stretch *x)
{
    const uint32_t n = (uint32_t)(s->count / x->few);
    round *rounds = arena_array(&s->c->mem, round, n);
    for (uint32_t i = x->first; i <= x->last; i++)
        rewrite_operands(s->f->nodes.data[s->layers.data[i].node]);
    for (uint32_t k = 0; k < n; k++) {
        ptr_map_init(&rounds[k].at, &s->c->mem);
        for (uint32_t i = x->first; i <= x->last; i++)
            if (!add_few(s, &rounds[k], s->f->nodes.data[s->layers.data[i].node], k * x->few, x->few))
                return false;
    }
    for (uint32_t i = x->first; i <= x->last; i++) {
        const graph_node *node = s->f->nodes.data[s->layers.data[i].node];
        for (uint32_t k = 0; k < node->n_outputs; k++)
            if (is_read_behind(s, node->outputs[k], x->last) &&
                !put_together(s, rounds, n, node->outputs[k], node->loc))
                return false;
    }
    return true;
}

static bool rewrite_all(splitter *s)
{
    uint32_t next = 0, at = 0; /* stretch, layer */
    bool ok = true;
    rewrite_begin(&s->r, s->c, s->f);
    for (uint32_t i = 0; i < s->f->nodes.len; i++) /* what all rounds read stands before them */
        if (is_constant(s->f->nodes.data[i]))
            rewrite_keep(&s->r, s->f->nodes.data[i]);
    for (uint32_t i = 0; i < s->f->nodes.len && ok; i++) {
        graph_node *n = s->f->nodes.data[i];
        if (is_constant(n))
            continue;
        const stretch *x = next < s->chosen.len ? &s->chosen.data[next] : NULL;
        const bool inside = x && at >= x->first;
        if (!inside) {
            rewrite_operands(n);
            rewrite_keep(&s->r, n);
        } else if (at == x->first) {
            ok = rewrite(s, x);
        }
        next += inside && at == x->last;
        at++;
    }
    rewrite_end(&s->r);
    return ok && !s->r.failed;
}

static bool is_called(const graph_module *m, const graph_func *g)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++)
            if (graph_callee(m->funcs.data[i]->nodes.data[k]) == g)
                return true;
    return false;
}

/* --- the pass --- */

/* Of the first parameter that has images. */
static int64_t batch_of(const graph_func *f)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < f->params.len && count == 0; i++) {
        const type *t = &f->params.data[i]->type;
        if (t->kind == TYPE_TENSOR && t->shape.rank > 1 && shape_is_static(t->shape))
            (void)dim_is_const(t->shape.dims[0], &count);
    }
    return count;
}

bool graph_pass_split_batch(compiler *c, graph_module *m, const pass_options *o)
{
    splitter s = {.c = c, .f = graph_module_find(m, "main"), .t = o->target, .cpu = target_cpu(o->target)};
    if (!s.f || !s.cpu || o->target->vector_bytes == 0 || s.f->states.len > 0)
        return true;
    s.workers = o->target->workers > 1 ? o->target->workers : 1;
    s.count = batch_of(s.f);
    if (s.count < 2)
        return true;
    for (uint32_t i = 0; i < s.f->nodes.len; i++)
        if (!is_constant(s.f->nodes.data[i]))
            add_layer(&s, i);
    choose(&s, 0, s.layers.len);
    if (s.chosen.len > 0 && !rewrite_all(&s))
        return false;
    for (uint32_t i = 0; i < s.from.len; i++)
        if (!is_called(m, s.from.data[i]))
            graph_module_remove(m, s.from.data[i]);
    return true;
}
