/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals, as far as the model tells how many elements they have. A sequence is a list of values that
 * the importer keeps; it has no node of its own, and what takes an element of it takes the value. Positions must be
 * constants then, but for SequenceAt, which picks one of elements of one type in each run. An optional is its element,
 * or nothing. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_ELEMENTS 4096u /* of a sequence: each is a value */

typedef struct sequence {
    uint32_t n;
    graph_value *const *items;
} sequence;

/* --- the list behind a value --- */

static const sequence *sequence_of(onnx_node *n, uint32_t i)
{
    const graph_value *v = onnx_in(n, i);
    const sequence *s = onnx_map_get(&n->im->sequences, (const char *)v);
    if (!s)
        onnx_fail(n, DIAG_UNSUPPORTED, "input %u is not a sequence with a known number of elements", i);
    return s;
}

/* Result i of the node: a value that is in no function. */
static bool result_sequence(onnx_node *n, uint32_t i, uint32_t count, graph_value *const *items)
{
    compiler *c = n->c;
    if (n->failed)
        return false;
    if (count > MOST_ELEMENTS)
        return onnx_fail(n, DIAG_UNSUPPORTED, "a sequence of %u elements; at most %u are supported", count,
                         MOST_ELEMENTS);
    graph_value *v = arena_new(&c->mem, graph_value);
    type *elem = arena_new(&c->mem, type);
    sequence *s = arena_new(&c->mem, sequence);
    *elem = count ? items[0]->type : (type){.kind = TYPE_TENSOR, .shape = {.rank = -1}};
    *v = (graph_value){.name = n->out_names[i] ? n->out_names[i] : intern(c->names, "sequence"),
                       .type = {.kind = TYPE_SEQUENCE, .elem = elem}};
    graph_value **own = arena_array(&c->mem, graph_value *, count + 1u); /* none is an array, too */
    memcpy(own, items, count * sizeof *items);
    *s = (sequence){count, own};
    onnx_map_set(&c->mem, &n->im->sequences, (const char *)v, s);
    return onnx_alias(n, i, v);
}

/* Constant operand i as a position among `count`, counted from the end when negative; absent: `absent`. */
static uint32_t position(onnx_node *n, uint32_t i, uint32_t count, uint32_t absent)
{
    int64_t v[TYPE_MAX_RANK * 2];
    uint32_t len = 0;
    graph_value *given = onnx_optional(n, i);
    if (!given)
        return absent;
    if (!onnx_need_ints(n, given, "a position in a sequence", v, &len))
        return 0;
    if (len != 1)
        onnx_fail(n, DIAG_FORMAT, "a position is one number");
    const int64_t at = len != 1 ? 0 : v[0] < 0 ? v[0] + (int64_t)count : v[0];
    if (at < 0 || at > (int64_t)count)
        onnx_fail(n, DIAG_TYPE, "position %lld of %u elements", (long long)v[0], count);
    return n->failed ? 0 : (uint32_t)at;
}

/* --- making and changing --- */

bool onnx_op_sequence_empty(onnx_node *n)
{
    graph_value *const none = NULL;
    (void)onnx_attr_dtype(n, "dtype", DT_F32);
    return result_sequence(n, 0, 0, &none);
}

bool onnx_op_sequence_construct(onnx_node *n)
{
    return result_sequence(n, 0, n->n_in, n->in);
}

bool onnx_op_sequence_insert(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    const uint32_t at = s ? position(n, 2, s->n, s->n) : 0;
    if (n->failed)
        return false;
    graph_value **items = arena_array(&n->c->mem, graph_value *, s->n + 2u);
    memcpy(items, s->items, at * sizeof *items);
    items[at] = onnx_in(n, 1);
    memcpy(items + at + 1, s->items + at, (s->n - at) * sizeof *items);
    return result_sequence(n, 0, s->n + 1, items);
}

bool onnx_op_sequence_erase(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    if (s && s->n == 0)
        return onnx_fail(n, DIAG_TYPE, "an empty sequence has nothing to erase");
    const uint32_t at = s ? position(n, 1, s->n, s->n - 1) : 0;
    if (n->failed || at == s->n)
        return n->failed ? false : onnx_fail(n, DIAG_TYPE, "position %u of %u elements", at, s->n);
    graph_value **items = arena_array(&n->c->mem, graph_value *, s->n);
    memcpy(items, s->items, at * sizeof *items);
    memcpy(items + at, s->items + at + 1, (s->n - at - 1) * sizeof *items);
    return result_sequence(n, 0, s->n - 1, items);
}

/* --- reading --- */

/* Elements of one type side by side along a new axis 0. */
static graph_value *stacked(onnx_node *n, const sequence *s, int64_t axis)
{
    graph_value **items = arena_array(&n->c->mem, graph_value *, s->n + 1u);
    for (uint32_t i = 0; i < s->n; i++)
        items[i] = onnx_expand_dims(n, s->items[i], 1, &axis);
    return onnx_concat(n, s->n, items, axis);
}

bool onnx_op_sequence_at(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    int64_t at = 0, none = 0;
    uint32_t len = 0;
    if (!s)
        return false;
    if (s->n == 0)
        return onnx_fail(n, DIAG_TYPE, "an empty sequence has no elements");
    if (onnx_ints_of(onnx_in(n, 1), &at, &len) && len == 1) {
        const uint32_t k = position(n, 1, s->n, 0);
        if (!n->failed && k == s->n)
            return onnx_fail(n, DIAG_TYPE, "position %u of %u elements", k, s->n);
        return !n->failed && onnx_alias(n, 0, s->items[k]);
    }
    for (uint32_t i = 1; i < s->n; i++)
        if (!type_equal(&s->items[0]->type, &s->items[i]->type))
            return onnx_fail(n, DIAG_UNSUPPORTED,
                             "the position in a sequence whose elements have different shapes must be a constant");
    attr axis = attr_int(n->c, "axis", 0);
    onnx_result(n, 0, ONNX_ARGS("take", 1, &axis, stacked(n, s, 0), onnx_reshape_ints(n, onnx_in(n, 1), 0, &none)));
    return !n->failed;
}

bool onnx_op_sequence_length(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    return s && onnx_result_constant(n, 0, tensor_scalar_i64(n->c, DT_I64, s->n));
}

bool onnx_op_concat_from_sequence(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    const bool is_new = onnx_attr_int(n, "new_axis", 0) != 0;
    const int64_t given = onnx_attr_int(n, "axis", 0);
    if (!s || s->n == 0)
        return !n->failed && onnx_fail(n, DIAG_TYPE, "there is nothing to concatenate");
    const int64_t axis = onnx_axis(n, given, onnx_rank(s->items[0]) + is_new);
    return !n->failed && onnx_alias(n, 0, is_new ? stacked(n, s, axis) : onnx_concat(n, s->n, s->items, axis));
}

/* --- splitting --- */

/* The ends of the parts along an axis of `extent`; false: they are not known. */
static bool part_ends(onnx_node *n, int64_t extent, uint32_t *count, int64_t *ends)
{
    int64_t sizes[TYPE_MAX_RANK * 2];
    graph_value *split = onnx_optional(n, 1);
    uint32_t len = 0;
    int64_t end = 0, each = 1;
    const bool many = split && onnx_rank(split) == 1;
    if (split && !onnx_need_ints(n, split, "the split of a sequence", sizes, &len))
        return false;
    if (split && !many)
        each = sizes[0];
    if (each < 1 || (!many && extent / each >= (int64_t)MOST_ELEMENTS))
        return onnx_fail(n, DIAG_FORMAT, "parts of %lld along an extent of %lld", (long long)each, (long long)extent);
    for (*count = 0; many ? *count < len : end < extent; ++*count) {
        end += many ? sizes[*count] : each;
        ends[*count] = end < extent || many ? end : extent;
    }
    return !many || end == extent ||
           onnx_fail(n, DIAG_TYPE, "the parts have %lld of %lld elements", (long long)end, (long long)extent);
}

/* As many parts as the operand has entries, whose sizes a run tells. */
static bool split_open(onnx_node *n, graph_value *sizes, uint32_t axis)
{
    const int64_t count = onnx_static_dim(n, sizes, 0), at_axis = axis;
    if (n->failed || count > (int64_t)MOST_ELEMENTS)
        return !n->failed && onnx_fail(n, DIAG_UNSUPPORTED, "a sequence of %lld elements", (long long)count);
    graph_value **items = arena_array(&n->c->mem, graph_value *, (uint32_t)count + 1u);
    graph_value *all = onnx_cast(n, sizes, DT_I64), *zero = onnx_const_int(n, DT_I64, 0);
    graph_value *end = onnx_emit(n, ONNX_ARGS("cumsum", 0, NULL, all, zero));
    graph_value *start = onnx_binary(n, "subtract", end, all), *k = onnx_const_ints(n, 1, &at_axis);
    for (int64_t i = 0; i < count && !n->failed; i++)
        items[i] = onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, onnx_in(n, 0), onnx_slice(n, start, 0, i, i + 1),
                                          onnx_slice(n, end, 0, i, i + 1), k));
    return result_sequence(n, 0, (uint32_t)count, items);
}

bool onnx_op_split_to_sequence(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *split = onnx_optional(n, 1);
    const uint32_t rank = onnx_rank(x), axis = onnx_axis(n, onnx_attr_int(n, "axis", 0), rank);
    const bool keep = onnx_attr_int(n, "keepdims", 1) != 0 || split;
    int64_t *ends = arena_array(&n->c->mem, int64_t, MOST_ELEMENTS + 1u), from = 0;
    uint32_t count = 0;
    if (n->failed)
        return false;
    if (split && !graph_constant(split) && onnx_rank(split) == 1)
        return split_open(n, split, axis);
    if (!part_ends(n, onnx_static_dim(n, x, axis), &count, ends))
        return false;
    graph_value **items = arena_array(&n->c->mem, graph_value *, count + 1u);
    for (uint32_t i = 0; i < count; from = ends[i++]) {
        dim d[TYPE_MAX_RANK];
        uint32_t to = 0;
        items[i] = onnx_slice(n, x, axis, from, ends[i]);
        for (uint32_t k = 0; k < rank; k++)
            if (k != axis)
                d[to++] = onnx_dim(n, x, k);
        if (!keep)
            items[i] = onnx_reshape(n, items[i], to, d);
    }
    return result_sequence(n, 0, count, items);
}

/* --- for each element --- */

/* Element k of operand i; a tensor is the same for all. */
static graph_value *element(onnx_node *n, uint32_t i, uint32_t k)
{
    const sequence *s = onnx_map_get(&n->im->sequences, (const char *)onnx_in(n, i));
    return s ? s->items[k] : onnx_in(n, i);
}

bool onnx_op_sequence_map(onnx_node *n)
{
    const sequence *s = sequence_of(n, 0);
    const pb_graph *g = onnx_attr_graph(n, "body");
    if (!s || n->failed)
        return false;
    for (uint32_t i = 1; i < n->n_in; i++) {
        const sequence *other = onnx_map_get(&n->im->sequences, (const char *)onnx_in(n, i));
        if (other && other->n != s->n)
            return onnx_fail(n, DIAG_TYPE, "sequences of %u and %u elements", s->n, other->n);
    }
    graph_value ***out = arena_array(&n->c->mem, graph_value **, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = arena_array(&n->c->mem, graph_value *, s->n + 1u);
    graph_value **in = arena_array(&n->c->mem, graph_value *, n->n_in), **made =
        arena_array(&n->c->mem, graph_value *, n->n_out);
    for (uint32_t k = 0; k < s->n && !n->failed; k++) {
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = element(n, i, k);
        (void)onnx_inline_bodies(n, g, n->n_in, in, n->n_out, made);
        for (uint32_t i = 0; i < n->n_out; i++)
            out[i][k] = made[i];
    }
    for (uint32_t i = 0; i < n->n_out && !n->failed; i++)
        (void)result_sequence(n, i, s->n, out[i]);
    return !n->failed;
}

/* --- optionals --- */

bool onnx_op_optional(onnx_node *n)
{
    graph_value *x = onnx_optional(n, 0);
    return x ? onnx_alias(n, 0, x)
             : onnx_fail(n, DIAG_UNSUPPORTED, "an optional without an element is not supported yet");
}

bool onnx_op_optional_has_element(onnx_node *n)
{
    return onnx_result_constant(n, 0, tensor_scalar_i64(n->c, DT_BOOL, onnx_optional(n, 0) != NULL));
}

bool onnx_op_optional_get_element(onnx_node *n)
{
    return onnx_alias(n, 0, onnx_in(n, 0));
}
