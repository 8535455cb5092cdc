/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals as lists of parts, which have no node of their own. A part is an element, a value of its own;
 * or it is many elements side by side along a new axis 0, as many as a run finds. There each has the room of the
 * largest one (its slot), and where they differ, an integer for each axis says how much of it is the element. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

const onnx_list *onnx_list_of(const onnx_importer *im, const graph_value *v)
{
    return v ? onnx_map_get(&im->sequences, (const char *)v) : NULL;
}

graph_value *onnx_list_value(onnx_importer *im, const char *name, onnx_list l)
{
    arena *a = &im->c->mem;
    graph_value *v = arena_new(a, graph_value);
    type *elem = arena_new(a, type);
    onnx_list *kept = arena_new(a, onnx_list);
    const bool optional = l.none || l.has;
    *elem = (type){.kind = TYPE_TENSOR, .shape = {.rank = -1}};
    if (l.n > 0 && l.parts[0].kind == PART_ONE)
        *elem = l.parts[0].v->type;
    *v = (graph_value){.name = name, .type = {.kind = optional ? TYPE_OPTIONAL : TYPE_SEQUENCE, .elem = elem}};
    onnx_part *own = arena_array(a, onnx_part, l.n + 1u); /* none is an array, too */
    for (uint32_t i = 0; i < l.n; i++)
        own[i] = l.parts[i];
    *kept = l;
    kept->parts = own;
    onnx_map_set(a, &im->sequences, (const char *)v, kept);
    return v;
}

bool onnx_list_is_known(const onnx_list *l)
{
    bool known = true;
    for (uint32_t i = 0; i < l->n; i++)
        known &= l->parts[i].kind == PART_ONE;
    return known;
}

bool onnx_list_ask(onnx_node *n, const onnx_part *before)
{
    before->before->is_read = true;
    return onnx_fail(n, DIAG_UNSUPPORTED, "this sequence has elements of earlier rounds of the loop, of which nothing "
                                          "is known");
}

onnx_list onnx_list_one_width(onnx_node *n, const onnx_list *l, int64_t width)
{
    onnx_list out = *l;
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l->n + 1u);
    for (uint32_t i = 0; i < l->n; i++) {
        parts[i] = l->parts[i];
        if (onnx_is_text(n->im, parts[i].v) && onnx_text_width(parts[i].v) > width)
            width = onnx_text_width(parts[i].v);
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (onnx_is_text(n->im, parts[i].v))
            parts[i].v = onnx_text_wider(n, parts[i].v, width);
    out.parts = parts;
    return out;
}

/* --- numbers --- */

/* Extents from..to of a value, i64[to - from]. */
static graph_value *extents(onnx_node *n, graph_value *v, uint32_t from, uint32_t to)
{
    const attr part[2] = {attr_int(n->c, "start", from), attr_int(n->c, "end", to)};
    return onnx_emit(n, ONNX_ARGS("shape_of", 2, part, v));
}

static graph_value *take(onnx_node *n, graph_value *x, graph_value *at, uint32_t axis)
{
    const attr a = attr_int(n->c, "axis", axis);
    return onnx_emit(n, ONNX_ARGS("take", 1, &a, x, at));
}

static graph_value *filled(onnx_node *n, graph_value *to, int64_t with)
{
    const int64_t one = 1;
    const attr value = attr_tensor(n->c, "value", tensor_dense(n->c, DT_I64, 1, &one,
                                                               arena_copy(&n->c->mem, &with, sizeof with, 8)));
    return onnx_emit(n, ONNX_ARGS("full", 1, &value, to));
}

graph_value *onnx_list_count(onnx_node *n, const onnx_list *l)
{
    int64_t known = 0, none = 0;
    graph_value *sum = NULL;
    for (uint32_t i = 0; i < l->n; i++) {
        const onnx_part *p = &l->parts[i];
        if (p->kind == PART_BEFORE) {
            (void)onnx_list_ask(n, p);
            return onnx_nothing(n);
        }
        known += p->kind == PART_ONE;
        if (p->kind == PART_MANY) {
            graph_value *m = onnx_reshape_ints(n, extents(n, p->v, 0, 1), 0, &none);
            sum = sum ? onnx_binary(n, "add", sum, m) : m;
        }
    }
    graph_value *k = onnx_const_int(n, DT_I64, known);
    return !sum ? k : known ? onnx_binary(n, "add", sum, k) : sum;
}

graph_value *onnx_list_places(onnx_node *n, graph_value *stack)
{
    const dim d = onnx_dim(n, stack, 0);
    const shape line = shape_make(n->c, 1, &d);
    int64_t count = 0, none = 0;
    if (dim_is_const(d, &count))
        return onnx_positions(n, count);
    graph_value *zero = onnx_const_int(n, DT_I64, 0), *one = onnx_const_int(n, DT_I64, 1),
                *end = onnx_reshape_ints(n, extents(n, stack, 0, 1), 0, &none);
    n->expect = &line;
    graph_value *at = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, zero, end, one));
    n->expect = NULL;
    return at;
}

/* --- slots --- */

static const char *extent_text(onnx_node *n, dim d)
{
    writer w;
    writer_init(&w, &n->c->mem);
    dim_print(&w, d);
    return w.data;
}

static bool widen(onnx_node *n, onnx_slot *s, uint32_t axis, dim d, bool ragged)
{
    const bool same = dim_equal(s->dims[axis], d);
    if (same && !ragged)
        return true;
    const int64_t was = dim_bound(s->dims[axis]), now = dim_bound(d), most = was > now ? was : now;
    if (was < 0 || now < 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the elements of a sequence have the extents %s and %s at axis %u, of "
                                              "which one has no limit",
                         extent_text(n, s->dims[axis]), extent_text(n, d), axis);
    s->dims[axis] = dim_const(n->c, most);
    s->ragged |= 1u << axis;
    return true;
}

static bool widen_by(onnx_node *n, onnx_slot *s, const onnx_part *p)
{
    if (p->kind == PART_BEFORE)
        return onnx_list_ask(n, p);
    const uint32_t skip = p->kind == PART_MANY, rank = onnx_rank(p->v) - skip;
    if (onnx_small_of(n->im, p->v) != DT_NONE || onnx_strings_of(n->im, p->v))
        return onnx_fail(n, DIAG_UNSUPPORTED, "a sequence whose length a run decides can only have elements of numbers "
                                              "of 8 bits or more");
    if (p->v->type.kind != TYPE_TENSOR || p->v->type.shape.rank < 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "an element of the sequence is not a tensor of known rank");
    if (s->dt == DT_NONE) {
        *s = (onnx_slot){.dt = p->v->type.dt, .rank = rank};
        for (uint32_t k = 0; k < rank; k++)
            s->dims[k] = onnx_dim(n, p->v, k + skip);
    }
    if (s->dt != p->v->type.dt || s->rank != rank)
        return onnx_fail(n, DIAG_UNSUPPORTED,
                         "a sequence whose length a run decides has elements of different ranks or types");
    for (uint32_t k = 0; k < rank; k++)
        if (!widen(n, s, k, onnx_dim(n, p->v, k + skip), (p->ragged >> k & 1u) != 0))
            return false;
    return true;
}

bool onnx_slot_of(onnx_node *n, const onnx_list *l, onnx_slot *s)
{
    for (uint32_t i = 0; i < l->n && !n->failed; i++)
        (void)widen_by(n, s, &l->parts[i]);
    return !n->failed;
}

bool onnx_slot_close_axis(onnx_node *n, onnx_slot *s, uint32_t axis)
{
    return widen(n, s, axis, s->dims[axis], true);
}

bool onnx_slot_close(onnx_node *n, onnx_slot *s)
{
    int64_t v = 0;
    for (uint32_t k = 0; k < s->rank && !n->failed; k++)
        if (!dim_is_const(s->dims[k], &v))
            (void)onnx_slot_close_axis(n, s, k);
    return !n->failed;
}

/* Axis `axis` of v, which has at most `want` entries, with zeros up to these. */
static graph_value *padded(onnx_node *n, graph_value *v, uint32_t axis, dim want)
{
    int64_t have = 0, most = 0, at = axis;
    if (n->failed || dim_equal(onnx_dim(n, v, axis), want) || !dim_is_const(want, &most))
        return v;
    const bool known = dim_is_const(onnx_dim(n, v, axis), &have);
    const int64_t pads[2] = {0, known ? most - have : 1};
    graph_value *longer = onnx_emit(n, ONNX_ARGS("nn.pad", 0, NULL, v, onnx_const_ints(n, 2, pads), NULL,
                                                 onnx_const_ints(n, 1, &at)));
    if (known)
        return longer;
    graph_value *size = extents(n, v, axis, axis + 1); /* where the zero is */
    return take(n, longer, onnx_binary(n, "minimum", onnx_positions(n, most), size), axis);
}

/* The sizes of a part, i64[elements, rank]. */
static graph_value *sizes_of(onnx_node *n, const onnx_part *p, uint32_t rank)
{
    if (p->sizes)
        return p->sizes;
    const uint32_t skip = p->kind == PART_MANY;
    const int64_t row[2] = {1, rank}, one = 1;
    graph_value *own = onnx_reshape_ints(n, extents(n, p->v, skip, skip + rank), 2, row);
    if (!skip)
        return own;
    graph_value *join[2] = {extents(n, p->v, 0, 1), onnx_const_ints(n, 1, &one)};
    return onnx_binary(n, "add", own, filled(n, onnx_concat(n, 2, join, 0), 0));
}

static graph_value *no_elements(onnx_node *n, const onnx_slot *s)
{
    int64_t dims[TYPE_MAX_RANK + 1] = {0};
    const uint8_t zero[8] = {0};
    for (uint32_t k = 0; k < s->rank; k++)
        dims[k + 1] = dim_bound(s->dims[k]);
    return onnx_constant(n, tensor_splat(n->c, s->dt, s->rank + 1, dims, arena_copy(&n->c->mem, zero, 8, 8)));
}

onnx_part onnx_list_stack(onnx_node *n, const onnx_list *l, const onnx_slot *s)
{
    const int64_t front = 0, none[2] = {0, s->rank};
    graph_value **data = arena_array(&n->c->mem, graph_value *, l->n + 1u),
                **sizes = arena_array(&n->c->mem, graph_value *, l->n + 1u);
    onnx_part out = {.kind = PART_MANY, .ragged = s->ragged};
    for (uint32_t i = 0; i < l->n; i++) {
        const onnx_part *p = &l->parts[i];
        const uint32_t skip = p->kind == PART_MANY;
        data[i] = p->v;
        for (uint32_t k = 0; k < s->rank; k++)
            data[i] = padded(n, data[i], k + skip, s->dims[k]);
        if (!skip)
            data[i] = onnx_expand_dims(n, data[i], 1, &front);
        sizes[i] = s->ragged ? sizes_of(n, p, s->rank) : NULL;
    }
    out.v = l->n == 0 ? no_elements(n, s) : l->n == 1 ? data[0] : onnx_concat(n, l->n, data, 0);
    if (l->n > 0)
        onnx_keep_strings(n->im, l->parts[0].v, out.v);
    if (s->ragged && l->n == 0)
        out.sizes = onnx_constant(n, tensor_splat(n->c, DT_I64, 2, none, arena_copy(&n->c->mem, &front, 8, 8)));
    else if (s->ragged)
        out.sizes = l->n == 1 ? sizes[0] : onnx_concat(n, l->n, sizes, 0);
    return out;
}

graph_value *onnx_list_element(onnx_node *n, const onnx_part *p, graph_value *at)
{
    int64_t axes[TYPE_MAX_RANK], zeros[TYPE_MAX_RANK] = {0};
    uint32_t count = 0;
    graph_value *x = take(n, p->v, at, 0);
    onnx_keep_strings(n->im, p->v, x);
    for (uint32_t k = 0; k < onnx_rank(x); k++)
        if (p->ragged >> k & 1u)
            axes[count++] = k;
    if (!p->sizes || count == 0)
        return x;
    graph_value *k = onnx_const_ints(n, count, axes), *ends = take(n, take(n, p->sizes, at, 0), k, 0);
    graph_value *cut = onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, x, onnx_const_ints(n, count, zeros), ends, k));
    onnx_keep_strings(n->im, p->v, cut);
    return cut;
}

onnx_part onnx_list_pick(onnx_node *n, const onnx_part *p, graph_value *places)
{
    onnx_part out = *p;
    out.v = take(n, p->v, places, 0);
    onnx_keep_strings(n->im, p->v, out.v);
    out.sizes = p->sizes ? take(n, p->sizes, places, 0) : NULL;
    return out;
}

onnx_part onnx_list_keep(onnx_node *n, const onnx_part *p, graph_value *which)
{
    const attr axis = attr_int(n->c, "axis", 0);
    onnx_part out = *p;
    out.v = onnx_emit(n, ONNX_ARGS("compress", 1, &axis, p->v, which));
    onnx_keep_strings(n->im, p->v, out.v);
    out.sizes = p->sizes ? onnx_emit(n, ONNX_ARGS("compress", 1, &axis, p->sizes, which)) : NULL;
    return out;
}

onnx_part onnx_list_room(onnx_node *n, const onnx_part *p, int64_t most)
{
    onnx_part out = *p;
    const dim want = dim_const(n->c, most);
    out.v = padded(n, p->v, 0, want);
    onnx_keep_strings(n->im, p->v, out.v);
    out.sizes = p->sizes ? padded(n, p->sizes, 0, want) : NULL;
    return out;
}

graph_value *onnx_merge_axes(onnx_node *n, graph_value *x, uint32_t axis)
{
    dim d[TYPE_MAX_RANK];
    const uint32_t rank = onnx_rank(x);
    for (uint32_t i = 0; i + 1 < rank; i++)
        d[i] = onnx_dim(n, x, i + (i > axis));
    if (n->failed || axis + 1 >= rank)
        return onnx_nothing(n);
    d[axis] = dim_mul(n->c, d[axis], onnx_dim(n, x, axis + 1));
    return onnx_reshape(n, x, rank - 1, d);
}
