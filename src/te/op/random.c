/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of random_like: numbers from 0 up to and without 1 that depend on the seed and on the place in the
 * tensor alone, so that parts, vectors and machines agree. The generator is "squares" of B. Widynski (Squares: A Fast
 * Counter-Based RNG, 2020), 32 bits in four rounds. */
#include "te/op/util.h"

typedef struct squares {
    tir_expr_ref const *extents;
    uint32_t rank;
    int64_t key;
    dtype dt;
} squares;

/* Keys want irregular bits: the seed by splitmix64, odd. */
static int64_t key_of(int64_t seed)
{
    uint64_t z = (uint64_t)seed + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ z >> 31) | 1u);
}

static tir_expr_ref word(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_U64, v);
}

static tir_expr_ref random_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const squares *v = ctx;
    compiler *c = g->c;
    tir_expr_ref flat = te_i64(g, 0), half = word(g, 32);
    for (uint32_t i = 0; i < v->rank; i++)
        flat = tir_add(c, tir_mul(c, flat, v->extents[i]), idx[i]);
    tir_expr_ref key = word(g, v->key), y = tir_mul(c, tir_cast(c, DT_U64, flat), key), x = y, z = tir_add(c, y, key);
    for (uint32_t round = 0; round < 3; round++) {
        x = tir_add(c, tir_mul(c, x, x), round == 1 ? z : y);
        x = tir_binary(c, TIR_BITOR, tir_binary(c, TIR_SHR, x, half), tir_binary(c, TIR_SHL, x, half));
    }
    x = tir_add(c, tir_mul(c, x, x), z);
    const dtype dt = v->dt == DT_F64 ? DT_F64 : DT_F32; /* 32 bits, or as many as an f32 has */
    x = tir_binary(c, TIR_SHR, x, word(g, dt == DT_F64 ? 32 : 40));
    return tir_cast(c, v->dt, tir_mul(c, tir_cast(c, dt, x), tir_float(c, dt, dt == DT_F64 ? 0x1p-32 : 0x1p-24)));
}

bool compute_random_like(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)in;
    const type *t = te_out_type(n, 0);
    squares v = {.extents = te_shape(g, t), .rank = (uint32_t)t->shape.rank, .dt = t->dt};
    v.key = key_of(graph_attr_int(n, "seed"));
    out[0] = te_compute(g, "random", t->dt, v.rank, v.extents, random_body, &v);
    return true;
}
