/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-attention: the product of queries and keys, a scale, a mask, softmax, and the product with values become one
 * operator, nn.attention, which never stores all scores. It reads its operands and writes its result in the order in
 * which they lie, so transpositions around it disappear. It is for processors with vectors, and the number of features
 * must be known. If an attention does not qualify, a note says why. */
#include "graph/op/attention.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "type/target.h"

#include <string.h>

#define ROW_LANES  16 /* elements by which rows of scores are filled up: partial sums of a row, whatever the target's
                       * vectors, so that results do not depend on these */
/* Measured with 1024 keys (docs/notes/performance.md, "Attention"). */
#define FEW_ROWS    8  /* below that, turning the keys takes longer than products that read them as they lie */
#define FEW_OF_MANY 12 /* the same for heads of so many features, whose keys fill the caches */
#define MANY        48
#define LEAST_LANES 4

typedef struct operand {
    graph_value *value;
    char layout[ATTENTION_RANK + 1];
} operand;

typedef struct attention {
    operand q, k, v;
    graph_value *mask;
    double scale;
} attention;

/* --- what stands around the products --- */

static bool is_f32(const graph_value *v, int32_t least, int32_t most)
{
    return v && v->type.kind == TYPE_TENSOR && v->type.dt == DT_F32 && v->type.shape.rank >= least &&
           v->type.shape.rank <= most;
}

/* x * c by a number, which is made once and read once; *out_c times it. */
static graph_value *without_scale(graph_value *v, double *out_c)
{
    double c = 0;
    const graph_node *n = v->def;
    if (!n || strcmp(n->op->name, "multiply") != 0 || rewrite_uses(v) != 1)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const tensor_data *t = graph_constant(n->inputs[i]);
        if (!t || !rewrite_is_uniform(t, &c) || !type_equal(&n->inputs[1 - i]->type, &v->type))
            continue;
        *out_c *= c;
        return n->inputs[1 - i];
    }
    return NULL;
}

/* How n permutes four axes; NULL: it does not. */
static const int64_t *permutation(const graph_node *n)
{
    const int64_t *perm = NULL;
    bool is = n && strcmp(n->op->name, "transpose") == 0 && graph_attr_ints(n, "perm", &perm) == ATTENTION_RANK;
    return is ? perm : NULL;
}

/* The transposed value, whose axes get their letters. */
static graph_value *without_transpose(operand *o)
{
    const graph_node *n = o->value->def;
    const int64_t *perm = permutation(n);
    char from[ATTENTION_RANK + 1] = {0};
    if (!perm)
        return NULL;
    for (uint32_t i = 0; i < ATTENTION_RANK; i++)
        from[perm[i]] = o->layout[i];
    memcpy(o->layout, from, sizeof from);
    return n->inputs[0];
}

/* Scales and transpositions in front of an operand of the first product; of the values, transpositions alone. */
static void look_behind(operand *o, double *scale)
{
    for (graph_value *next = o->value; next;) {
        o->value = next;
        next = scale ? without_scale(o->value, scale) : NULL;
        if (!next)
            next = without_transpose(o);
    }
}

static bool is_product(const graph_node *n)
{
    return n && strcmp(n->op->name, "nn.matmul") == 0 && graph_attr_int(n, "transpose_a") == 0 &&
           graph_attr_dtype(n, "out_dtype") == DT_NONE && strcmp(graph_attr_string(n, "weight_layout"), "KN") == 0 &&
           is_f32(n->inputs[0], 4, 4) && is_f32(n->inputs[1], 4, 4);
}

/* --- the pattern --- */

/* The scores' sum with a mask, if they are one: what is added to. */
static graph_value *without_mask(graph_value *v, graph_value **out_mask)
{
    const graph_node *n = v->def;
    if (!n || strcmp(n->op->name, "add") != 0 || rewrite_uses(v) != 1)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        double ignored = 1;
        graph_value *x = n->inputs[i], *inner = without_scale(x, &ignored);
        inner = inner ? inner : x;
        if (!is_product(inner->def) || rewrite_uses(x) != 1 || !type_equal(&x->type, &v->type) ||
            !is_f32(n->inputs[1 - i], 0, 4))
            continue;
        *out_mask = n->inputs[1 - i];
        return x;
    }
    return NULL;
}

/* n is softmax(q k^T scale + mask) v. */
static bool read(const graph_node *n, attention *out)
{
    *out = (attention){.scale = 1, .q.layout = "BHSD", .k.layout = "BHDS", .v.layout = "BHSD"};
    if (!is_product(n) || graph_attr_int(n, "transpose_b") != 0)
        return false;
    const graph_node *soft = n->inputs[0]->def;
    if (!soft || strcmp(soft->op->name, "nn.softmax") != 0 || rewrite_uses(n->inputs[0]) != 1)
        return false;
    int64_t axis = graph_attr_int(soft, "axis");
    graph_value *x = soft->inputs[0], *inner = without_mask(x, &out->mask);
    x = inner ? inner : x;
    for (inner = x; inner; inner = without_scale(x, &out->scale))
        x = inner;
    if ((axis != -1 && axis != 3) || !is_product(x->def) || rewrite_uses(x) != 1)
        return false;
    out->q.value = x->def->inputs[0];
    out->k.value = x->def->inputs[1];
    out->v.value = n->inputs[1];
    if (graph_attr_int(x->def, "transpose_b") != 0)
        memcpy(out->k.layout, "BHSD", sizeof out->k.layout);
    look_behind(&out->q, &out->scale);
    look_behind(&out->k, &out->scale);
    look_behind(&out->v, NULL);
    return true;
}

/* --- what the operator asks for --- */

/* Extents in the order of attention_axis; false: there are none. */
static bool extents(const operand *o, dim out[ATTENTION_RANK])
{
    uint32_t at[ATTENTION_RANK];
    if (!attention_order(o->layout, at) || o->value->type.shape.rank != ATTENTION_RANK)
        return false;
    for (uint32_t a = 0; a < ATTENTION_RANK; a++)
        out[a] = o->value->type.shape.dims[at[a]];
    return true;
}

static bool mask_fits(const graph_value *mask, const dim scores[4])
{
    int32_t rank = mask ? mask->type.shape.rank : 0;
    for (int32_t i = 0; i < rank; i++)
        if (!dim_is(mask->type.shape.dims[i], 1) && !dim_equal(mask->type.shape.dims[i], scores[4 - rank + i]))
            return false;
    return true;
}

/* So few queries that turning the keys for them takes longer than it saves. Of open ones the most counts, where the
 * keys are as many; else, beside a cache of keys, there is often but one. */
static bool has_few_queries(dim queries, dim keys, int64_t features)
{
    int64_t n = 0, least = features < MANY ? FEW_ROWS : FEW_OF_MANY;
    if (!dim_is_const(queries, &n) && dim_equal(queries, keys))
        n = dim_bound(queries);
    return n < least;
}

/* NULL: it can be one operator. */
static const char *obstacle(const attention *x)
{
    dim q[ATTENTION_RANK], k[ATTENTION_RANK], v[ATTENTION_RANK];
    int64_t d = 0, dv = 0;
    if (!extents(&x->q, q) || !extents(&x->k, k) || !extents(&x->v, v) || !dim_is_const(q[ATTENTION_D], &d) ||
        !dim_is_const(v[ATTENTION_D], &dv))
        return "its number of features is open: scores are stored";
    if (!dim_equal(q[ATTENTION_B], k[ATTENTION_B]) || !dim_equal(q[ATTENTION_B], v[ATTENTION_B]) ||
        !dim_equal(q[ATTENTION_H], k[ATTENTION_H]) || !dim_equal(q[ATTENTION_H], v[ATTENTION_H]) ||
        !dim_equal(k[ATTENTION_S], v[ATTENTION_S]))
        return "queries, keys and values differ in batches or heads: scores are stored";
    if (!mask_fits(x->mask, (const dim[]){q[ATTENTION_B], q[ATTENTION_H], q[ATTENTION_S], k[ATTENTION_S]}))
        return "the mask's shape is larger than that of the scores: scores are stored";
    if (d < 1 || dv % LEAST_LANES != 0 || dv < 1)
        return "its number of features is not a multiple of a vector: scores are stored";
    for (uint32_t a = ATTENTION_B; a <= ATTENTION_S; a++)
        if (dim_is(k[a], 0) || dim_bound(k[a]) < 0 || dim_bound(q[a]) < 0)
            return "it has no keys or heads, or no bound for them: scores are stored";
    return has_few_queries(q[ATTENTION_S], k[ATTENTION_S], d)
               ? "it has too few queries to make up for transposing the keys: scores are stored" : NULL;
}

static graph_value *emit(rewriter *r, const attention *x, const char *out_layout, src_loc loc)
{
    compiler *c = r->c;
    graph_value *in[4] = {x->q.value, x->k.value, x->v.value, x->mask};
    const attr attrs[6] = {attr_float(c, "scale", x->scale),
                           attr_int(c, "lanes", ROW_LANES),
                           attr_string(c, "q_layout", x->q.layout),
                           attr_string(c, "k_layout", x->k.layout),
                           attr_string(c, "v_layout", x->v.layout),
                           attr_string(c, "out_layout", out_layout)};
    return rewrite_emit(r, "nn.attention", x->mask ? 4 : 3, in, 6, attrs, loc);
}

static graph_value *fused(rewriter *r, graph_module *m, const graph_node *n)
{
    attention x;
    if (!read(n, &x))
        return NULL;
    const char *why = obstacle(&x);
    if (why) {
        graph_note note = {"fuse-attention", n->op->name, n->outputs[0]->name, why, n->loc};
        vec_push(&r->c->mem, &m->notes, note);
    }
    return why ? NULL : emit(r, &x, "BHSD", n->loc);
}

/* Attention's transposed result: it is written so. */
static graph_value *turned(rewriter *r, const graph_node *n)
{
    const int64_t *perm = permutation(n);
    if (!perm || !rewrite_is_op(n->inputs[0], "nn.attention") ||
        rewrite_uses(n->inputs[0]) != 1)
        return NULL;
    const graph_node *a = n->inputs[0]->def;
    const char *now = graph_attr_string(a, "out_layout");
    attention x = {.scale = graph_attr_float(a, "scale"), .mask = a->n_inputs > 3 ? a->inputs[3] : NULL};
    operand *const o[3] = {&x.q, &x.k, &x.v};
    static const char *const names[3] = {"q_layout", "k_layout", "v_layout"};
    for (uint32_t i = 0; i < 3; i++) {
        o[i]->value = a->inputs[i];
        memcpy(o[i]->layout, graph_attr_string(a, names[i]), sizeof o[i]->layout);
    }
    char layout[ATTENTION_RANK + 1] = {0};
    for (uint32_t i = 0; i < ATTENTION_RANK; i++)
        layout[i] = now[perm[i]];
    return emit(r, &x, layout, a->loc);
}

static bool run(compiler *c, graph_module *m, graph_func *f)
{
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_value *y = fused(&r, m, n);
        if (!y)
            y = turned(&r, n);
        if (!y || !rewrite_replace(&r, n->outputs[0], y))
            rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    return !r.failed;
}

bool graph_pass_attention(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    const target *t = o->target;
    if (t->vector_bytes < LEAST_LANES * 4 || (t->features & TARGET_MVE) != 0 || t->small)
        return true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m, m->funcs.data[i]);
    return ok;
}
