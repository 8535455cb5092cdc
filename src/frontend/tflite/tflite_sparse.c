/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse constants, which are unpacked when they are read. A tensor is a tree: each level goes along an axis, or along
 * the places in a block of one. A dense level has all places; a sparse one lists those that are there, from one segment
 * bound to the next. The numbers stand in the order of the leaves. */
#include "frontend/tflite/tflite_import.h"

#include <string.h>

#define MOST_LEVELS (2 * TYPE_MAX_RANK)

typedef struct level {
    int64_t axis, step; /* a place is so far along that axis of the tensor */
    int64_t size;
    bool is_sparse;
    flat_numbers bounds, places; /* of a sparse level */
    uint32_t bounds_width, places_width;
} level;

typedef struct sparse {
    uint8_t *out;
    span bytes;
    uint64_t used; /* numbers so far */
    size_t width;  /* of a number */
    level levels[MOST_LEVELS];
    uint32_t n_levels, rank;
    int64_t dims[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
} sparse;

/* Numbers of 32, 16 or 8 bits, as the number in the union says; false: there are none. */
static bool read_list(flat_union table, int64_t number, flat_numbers *out, uint32_t *width)
{
    const tfl_index8 *bytes = table;
    if (!table || number < 1 || number > 3)
        return false;
    *width = number == 1 ? 4 : number == 2 ? 2 : 1;
    if (number == 1)
        *out = ((const tfl_index32 *)table)->values;
    else if (number == 2)
        *out = ((const tfl_index16 *)table)->values;
    else
        *out = (flat_numbers){bytes->values.data, (uint32_t)bytes->values.len};
    return true;
}

/* Number i; -1: it is not there. */
static int64_t number_at(flat_numbers v, uint32_t width, int64_t i)
{
    if (i < 0 || i >= (int64_t)v.len)
        return -1;
    const uint8_t *p = v.data + (size_t)i * width;
    return width == 4 ? flat_i32(v, (uint32_t)i) : width == 2 ? p[0] | p[1] << 8 : p[0];
}

static bool read_level(const tfl_dim_metadata *m, level *out)
{
    out->is_sparse = m->format == 1;
    out->size = m->dense_size;
    if (!out->is_sparse)
        return m->format == 0 && m->dense_size >= 1;
    return read_list(m->array_segments, m->array_segments_type, &out->bounds, &out->bounds_width) &&
           read_list(m->array_indices, m->array_indices_type, &out->places, &out->places_width);
}

/* Which axis each level goes along: the first ones in the order of traversal, then blocks, each of one of them. */
static bool read_axes(sparse *s, const tfl_sparsity *p)
{
    int64_t block[TYPE_MAX_RANK] = {0};
    bool seen[MOST_LEVELS] = {false};
    s->n_levels = p->dim_metadata.len;
    if (s->n_levels > MOST_LEVELS || s->n_levels != p->traversal_order.len ||
        s->n_levels != s->rank + p->block_map.len)
        return false;
    for (uint32_t i = 0; i < s->n_levels; i++) {
        const int64_t place = flat_i32(p->traversal_order, i);
        if (place < 0 || place >= s->n_levels || seen[place] || !read_level(p->dim_metadata.data[i], &s->levels[i]))
            return false;
        seen[place] = true;
        s->levels[i].step = 1;
        s->levels[i].axis = place;
        if (place < s->rank)
            continue;
        s->levels[i].axis = flat_i32(p->block_map, (uint32_t)(place - s->rank));
        if (s->levels[i].axis < 0 || s->levels[i].axis >= s->rank || block[s->levels[i].axis] || s->levels[i].is_sparse)
            return false;
        block[s->levels[i].axis] = s->levels[i].size;
    }
    for (uint32_t i = 0; i < s->n_levels; i++)
        if (flat_i32(p->traversal_order, i) < (int64_t)s->rank && block[s->levels[i].axis])
            s->levels[i].step = block[s->levels[i].axis];
    return true;
}

static bool put(sparse *s)
{
    int64_t flat = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (s->at[i] < 0 || s->at[i] >= s->dims[i])
            return false;
        flat = flat * s->dims[i] + s->at[i];
    }
    if ((s->used + 1) * s->width > s->bytes.len)
        return false;
    memcpy(s->out + (size_t)flat * s->width, s->bytes.data + s->used++ * s->width, s->width);
    return true;
}

/* Places below `node` of the level; left: nodes that may still be visited, as many as the file and the tensor have on
 * all levels. */
static bool walk(sparse *s, uint32_t depth, int64_t node, uint64_t *left)
{
    if (depth == s->n_levels)
        return put(s);
    const level *l = &s->levels[depth];
    const int64_t from = l->is_sparse ? number_at(l->bounds, l->bounds_width, node) : 0;
    const int64_t to = l->is_sparse ? number_at(l->bounds, l->bounds_width, node + 1) : l->size;
    if (from < 0 || to < from)
        return false;
    for (int64_t i = from; i < to; i++) {
        const int64_t place = l->is_sparse ? number_at(l->places, l->places_width, i) : i;
        if (place < 0 || place > INT32_MAX || (*left)-- == 0)
            return false;
        s->at[l->axis] += place * l->step;
        /* beyond that no list has a bound */
        const int64_t below = l->is_sparse ? i : node > INT32_MAX ? node : node * l->size + i;
        if (!walk(s, depth + 1, below, left))
            return false;
        s->at[l->axis] -= place * l->step;
    }
    return true;
}

const tensor_data *tflite_unpack(compiler *c, const tfl_sparsity *p, span bytes, dtype dt, uint32_t rank,
                                 const int64_t *dims)
{
    sparse s = {.bytes = bytes, .width = dtype_bytes(dt), .rank = rank};
    uint64_t count = 1, left;
    for (uint32_t i = 0; i < rank; i++)
        count *= (uint64_t)(s.dims[i] = dims[i]); /* a constant's: it was counted before */
    if (!read_axes(&s, p))
        return NULL;
    left = (bytes.len + count + 1) * (s.n_levels + 1);
    s.out = arena_alloc_array(&c->mem, (size_t)count + 1, s.width, 8);
    return walk(&s, 0, 0, &left) ? tensor_dense(c, dt, rank, dims, s.out) : NULL;
}
