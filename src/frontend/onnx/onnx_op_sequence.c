/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of sequences and optionals (onnx_list.c). What a model tells is settled here: each element stays a value of
 * its own, and what takes it takes the value. Where a run decides a position or a count, elements lie side by side. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* --- the list behind a value --- */

static const onnx_list *sequence_of(onnx_node *n, uint32_t i)
{
    const onnx_list *l = onnx_list_of(n->im, onnx_in(n, i));
    if (l && !l->none && !l->has && !l->is_tensor)
        return l;
    onnx_fail(n, DIAG_TYPE, l ? "input %u is an optional; OptionalGetElement gives its sequence"
                              : "input %u is not a sequence", i);
    return NULL;
}

/* Result i of the node: a value that is in no function. */
static bool result_list(onnx_node *n, uint32_t i, onnx_list l)
{
    if (n->failed)
        return false;
    if (l.n > ONNX_MOST_ELEMENTS)
        return onnx_fail(n, DIAG_UNSUPPORTED, "a sequence of %u elements; at most %u are supported", l.n,
                         ONNX_MOST_ELEMENTS);
    const char *name = i < n->n_out && n->out_names[i] ? n->out_names[i] : intern(n->c->names, "sequence");
    return onnx_alias(n, i, onnx_list_value(n->im, name, l));
}

static bool result_sequence(onnx_node *n, uint32_t i, uint32_t count, graph_value *const *items)
{
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, count + 1u);
    for (uint32_t k = 0; k < count; k++)
        parts[k] = (onnx_part){.v = items[k]};
    return result_list(n, i, (onnx_list){.n = count, .parts = parts});
}

static bool result_part(onnx_node *n, uint32_t i, onnx_part p)
{
    return result_list(n, i, (onnx_list){.n = 1, .parts = &p});
}

static onnx_part stack_of(onnx_node *n, const onnx_list *given)
{
    const onnx_list wide = onnx_list_one_width(n, given, 1), *l = &wide;
    onnx_slot slot = {.dt = DT_NONE};
    return onnx_slot_of(n, l, &slot) ? onnx_list_stack(n, l, &slot) : (onnx_part){.v = onnx_nothing(n)};
}

/* The same parts but for `drop` of them at `at`, where `add` comes instead; NULL: nothing does. */
static bool result_spliced(onnx_node *n, const onnx_list *l, uint32_t at, uint32_t drop, const onnx_part *add)
{
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l->n + 2u);
    uint32_t count = 0;
    for (uint32_t i = 0; i <= l->n; i++) {
        if (i == at && add)
            parts[count++] = *add;
        if (i < l->n && (i < at || i >= at + drop))
            parts[count++] = l->parts[i];
    }
    return result_list(n, 0, (onnx_list){.n = count, .parts = parts});
}

/* --- positions --- */

/* Operand i as a constant position; false: only a run knows it, or an error. */
static bool known_position(onnx_node *n, uint32_t i, int64_t *out)
{
    uint32_t len = 0;
    const graph_value *given = onnx_optional(n, i);
    *out = 0;
    if (n->failed || shape_count(given->type.shape) != 1)
        return !n->failed && onnx_fail(n, DIAG_FORMAT, "a position is one number");
    return onnx_ints_of(given, out, &len);
}

/* Which part has element `at`, which counts from the end when negative, or where a new one comes before it; false: that
 * depends on how many elements a part has. Of a known list at most `last`. */
static bool find_part(onnx_node *n, const onnx_list *l, int64_t at, uint32_t last, uint32_t *out)
{
    *out = 0;
    if (onnx_list_is_known(l)) {
        const int64_t k = at < 0 ? at + (int64_t)l->n : at;
        if (k < 0 || k > (int64_t)last)
            onnx_fail(n, DIAG_TYPE, "position %lld of %u elements", (long long)at, l->n);
        *out = n->failed ? 0 : (uint32_t)k;
        return true;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t k = at < 0 ? l->n - 1 - i : i;
        const bool here = at == (at < 0 ? -1 - (int64_t)i : (int64_t)i);
        *out = k;
        if (here || l->parts[k].kind != PART_ONE)
            return here && l->parts[k].kind == PART_ONE;
    }
    return false;
}

/* Operand i, a position that a run tells, as a place from 0 on; *bad: what makes any place one that is out of range
 * where this one is not below `end` (i64[]), else 0. */
static graph_value *place_of(onnx_node *n, uint32_t i, graph_value *count, graph_value *end, graph_value **bad)
{
    int64_t none = 0;
    graph_value *zero = onnx_const_int(n, DT_I64, 0), *far = onnx_const_int(n, DT_I64, (int64_t)1 << 40);
    graph_value *p = onnx_reshape_ints(n, onnx_cast(n, onnx_optional(n, i), DT_I64), 0, &none);
    p = onnx_where(n, onnx_binary(n, "less", p, zero), onnx_binary(n, "add", p, count), p);
    graph_value *out = onnx_binary(n, "logical_or", onnx_binary(n, "less", p, zero),
                                   onnx_binary(n, "greater_equal", p, end));
    *bad = onnx_where(n, out, far, zero);
    return p;
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
    for (uint32_t i = 0; i < n->n_in; i++)
        n->in[i] = onnx_text(n, n->in[i]);
    return result_sequence(n, 0, n->n_in, n->in);
}

/* Behind all elements lies the new one; the rest is the order in which they are taken. */
static bool insert_at_run_time(onnx_node *n, const onnx_list *l, const onnx_part *made)
{
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l->n + 1u);
    graph_value *one = onnx_const_int(n, DT_I64, 1), *count = onnx_list_count(n, l), *bad;
    for (uint32_t i = 0; i < l->n; i++)
        parts[i] = l->parts[i];
    parts[l->n] = *made;
    const onnx_part all = stack_of(n, &(onnx_list){.n = l->n + 1, .parts = parts});
    graph_value *p = place_of(n, 2, count, onnx_binary(n, "add", count, one), &bad), *i = onnx_list_places(n, all.v);
    graph_value *behind = onnx_where(n, onnx_binary(n, "equal", i, p), count, onnx_binary(n, "subtract", i, one));
    graph_value *order = onnx_where(n, onnx_binary(n, "less", i, p), i, behind);
    return result_part(n, 0, onnx_list_pick(n, &all, onnx_binary(n, "add", order, bad)));
}

bool onnx_op_sequence_insert(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    const onnx_part made = {.v = onnx_text(n, onnx_in(n, 1))};
    int64_t p = 0;
    uint32_t at = l ? l->n : 0;
    if (!l)
        return false;
    if (onnx_optional(n, 2) && (!known_position(n, 2, &p) || !find_part(n, l, p, l->n, &at)))
        return !n->failed && insert_at_run_time(n, l, &made);
    return !n->failed && result_spliced(n, l, at, 0, &made);
}

bool onnx_op_sequence_erase(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    int64_t p = -1;
    uint32_t at = 0;
    if (l && l->n == 0)
        return onnx_fail(n, DIAG_TYPE, "an empty sequence has nothing to erase");
    if (!l)
        return false;
    if (!onnx_optional(n, 1) || known_position(n, 1, &p)) {
        if (find_part(n, l, p, l->n - 1, &at))
            return !n->failed && result_spliced(n, l, at, 1, NULL);
    }
    if (!onnx_optional(n, 1)) { /* the last one, of many */
        const onnx_part all = stack_of(n, l);
        return result_part(n, 0, onnx_list_pick(n, &all, onnx_slice(n, onnx_list_places(n, all.v), 0, 0, -1)));
    }
    const onnx_part all = stack_of(n, l);
    graph_value *count = onnx_list_count(n, l), *bad, *p_run = place_of(n, 1, count, count, &bad);
    graph_value *i = onnx_slice(n, onnx_list_places(n, all.v), 0, 0, -1);
    graph_value *next = onnx_binary(n, "add", i, onnx_const_int(n, DT_I64, 1));
    graph_value *order = onnx_where(n, onnx_binary(n, "less", i, p_run), i, next);
    return result_part(n, 0, onnx_list_pick(n, &all, onnx_binary(n, "add", order, bad)));
}

/* --- reading --- */

bool onnx_op_sequence_at(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    int64_t p = 0, none = 0;
    uint32_t at = 0;
    if (!l)
        return false;
    if (l->n == 0)
        return onnx_fail(n, DIAG_TYPE, "an empty sequence has no elements");
    if (known_position(n, 1, &p) && find_part(n, l, p, l->n - 1, &at))
        return !n->failed && onnx_alias(n, 0, l->parts[at].v);
    if (n->failed)
        return false;
    const onnx_part all = stack_of(n, l);
    return onnx_alias(n, 0, onnx_list_element(n, &all, onnx_reshape_ints(n, onnx_in(n, 1), 0, &none)));
}

bool onnx_op_sequence_length(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    return l && onnx_alias(n, 0, onnx_list_count(n, l));
}

/* The first axis of x behind `behind` others, and the other way round. */
static graph_value *front_to(onnx_node *n, graph_value *x, uint32_t behind)
{
    int64_t perm[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < onnx_rank(x); i++)
        perm[i] = i < behind ? i + 1 : i == behind ? 0 : i;
    return behind ? onnx_transpose(n, x, onnx_rank(x), perm) : x;
}

static graph_value *to_front(onnx_node *n, graph_value *x, uint32_t axis)
{
    int64_t perm[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < onnx_rank(x); i++)
        perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    return axis ? onnx_transpose(n, x, onnx_rank(x), perm) : x;
}

/* Elements that differ along `axis` only, joined there: what they are less than their slots is left out. */
static graph_value *joined(onnx_node *n, const onnx_part *p, uint32_t axis)
{
    const attr at = attr_int(n->c, "axis", 0);
    int64_t perm[TYPE_MAX_RANK], most = 0;
    if (!p->ragged)
        return onnx_merge_axes(n, front_to(n, p->v, axis), axis);
    if (p->ragged != 1u << axis || !dim_is_const(onnx_dim(n, p->v, axis + 1), &most))
        return onnx_refuse(n, DIAG_UNSUPPORTED, "the elements of the sequence may only differ along the axis along "
                                                "which they are joined");
    for (uint32_t i = 0; i < onnx_rank(p->v); i++)
        perm[i] = i == 0 ? 0 : i == 1 ? axis + 1 : i <= axis + 1 ? i - 1 : i;
    graph_value *rows = onnx_merge_axes(n, onnx_transpose(n, p->v, onnx_rank(p->v), perm), 0);
    graph_value *own = onnx_slice(n, p->sizes, 1, axis, axis + 1);
    graph_value *inside = onnx_merge_axes(n, onnx_binary(n, "less", onnx_positions(n, most), own), 0);
    return front_to(n, onnx_emit(n, ONNX_ARGS("compress", 1, &at, rows, inside)), axis);
}

/* Elements whose sizes only a run knows, and which have to be the same, because they get a new axis: what is less than
 * the slots goes. */
static graph_value *even(onnx_node *n, const onnx_part *p)
{
    const attr front = attr_int(n->c, "axis", 0);
    const int64_t none = 0;
    int64_t axes[TYPE_MAX_RANK], slots[TYPE_MAX_RANK], zeros[TYPE_MAX_RANK] = {0};
    uint32_t count = 0;
    for (uint32_t k = 0; k + 1 < onnx_rank(p->v); k++)
        if (p->ragged >> k & 1u) {
            axes[count] = k;
            slots[count++] = k + 1;
        }
    graph_value *own = onnx_emit(n, ONNX_ARGS("take", 1, &front, p->sizes, onnx_const_int(n, DT_I64, 0)));
    graph_value *differ = onnx_cast(n, onnx_binary(n, "not_equal", p->sizes, own), DT_I64);
    graph_value *ends = onnx_emit(n, ONNX_ARGS("take", 1, &front, own, onnx_const_ints(n, count, axes)));
    graph_value *y = onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, p->v, onnx_const_ints(n, count, zeros), ends,
                                            onnx_const_ints(n, count, slots)));
    return onnx_expect(n, y, onnx_reduce(n, "max", differ, 0, NULL, false), 1, 1, &none);
}

bool onnx_op_concat_from_sequence(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    const bool is_new = onnx_attr_int(n, "new_axis", 0) != 0;
    const int64_t given = onnx_attr_int(n, "axis", 0);
    if (!l || l->n == 0)
        return !n->failed && onnx_fail(n, DIAG_TYPE, "there is nothing to concatenate");
    if (!onnx_list_is_known(l) || is_new) {
        const onnx_part all = stack_of(n, l);
        const bool text = onnx_is_text(n->im, all.v);
        const uint32_t axis = onnx_axis(n, given, onnx_rank(all.v) - !is_new - text);
        graph_value *rows = n->failed || !is_new || !all.ragged ? all.v : even(n, &all);
        graph_value *y = n->failed ? NULL : is_new ? front_to(n, rows, axis) : joined(n, &all, axis);
        return !n->failed && onnx_alias(n, 0, text ? onnx_set_text(n->im, y) : y);
    }
    const onnx_list wide = onnx_list_one_width(n, l, 1);
    const bool text = onnx_is_text(n->im, wide.parts[0].v);
    graph_value **items = arena_array(&n->c->mem, graph_value *, l->n);
    for (uint32_t i = 0; i < l->n; i++)
        items[i] = wide.parts[i].v;
    const uint32_t axis = onnx_axis(n, given, onnx_rank(items[0]) - text);
    graph_value *y = n->failed ? NULL : onnx_concat(n, l->n, items, axis);
    return !n->failed && onnx_alias(n, 0, text ? onnx_set_text(n->im, y) : y);
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
    if (each < 1 || (!many && extent / each >= (int64_t)ONNX_MOST_ELEMENTS))
        return onnx_fail(n, DIAG_FORMAT, "parts of %lld along an extent of %lld", (long long)each, (long long)extent);
    for (*count = 0; many ? *count < len : end < extent; ++*count) {
        end += many ? sizes[*count] : each;
        ends[*count] = end < extent || many ? end : extent;
    }
    return !many || end == extent ||
           onnx_fail(n, DIAG_TYPE, "the parts have %lld of %lld elements", (long long)end, (long long)extent);
}

/* As many parts as the operand has entries, whose sizes a run tells. */
static bool split_by_list(onnx_node *n, graph_value *sizes, uint32_t axis)
{
    const int64_t count = onnx_static_dim(n, sizes, 0), at_axis = axis;
    if (n->failed || count > (int64_t)ONNX_MOST_ELEMENTS)
        return !n->failed && onnx_fail(n, DIAG_UNSUPPORTED, "a sequence of %lld elements", (long long)count);
    graph_value **items = arena_array(&n->c->mem, graph_value *, (uint32_t)count + 1u);
    graph_value *all = onnx_cast(n, sizes, DT_I64), *zero = onnx_const_int(n, DT_I64, 0);
    graph_value *end = onnx_emit(n, ONNX_ARGS("cumsum", 0, NULL, all, zero));
    graph_value *start = onnx_binary(n, "subtract", end, all), *k = onnx_const_ints(n, 1, &at_axis);
    for (int64_t i = 0; i < count && !n->failed; i++)
        items[i] = onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, onnx_in(n, 0), onnx_slice(n, start, 0, i, i + 1),
                                          onnx_slice(n, end, 0, i, i + 1), k));
    for (int64_t i = 0; i < count && !n->failed; i++)
        onnx_keep_strings(n->im, onnx_in(n, 0), items[i]);
    return result_sequence(n, 0, (uint32_t)count, items);
}

/* One entry of the axis for each part. */
static bool split_to_entries(onnx_node *n, uint32_t axis, bool keep)
{
    const int64_t own = axis + 1;
    graph_value *v = to_front(n, onnx_in(n, 0), axis);
    graph_value *all = keep ? onnx_expand_dims(n, v, 1, &own) : v;
    onnx_keep_strings(n->im, onnx_in(n, 0), all);
    return result_part(n, 0, (onnx_part){PART_MANY, all, NULL, 0, NULL});
}

/* Parts of `split` entries, a number that a run tells, the last one of what is left. A part has room for the whole
 * axis, whose entries from its first one on are taken; below 1 is out of range. */
static bool split_by_number(onnx_node *n, graph_value *split, uint32_t axis)
{
    graph_value *x = onnx_in(n, 0);
    const attr first = attr_int(n->c, "axis", 0), on = attr_int(n->c, "axis", axis),
               part[2] = {attr_int(n->c, "start", axis), attr_int(n->c, "end", axis + 1)};
    const int64_t most = dim_bound(onnx_dim(n, x, axis)), column = 1, rank = onnx_rank(x);
    if (most < 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "axis %u, which is split, has no limit; --dim or --bound gives one",
                         axis);
    graph_value *all = onnx_positions(n, most), *zero = onnx_const_int(n, DT_I64, 0),
                *size = onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x)), *each = onnx_cast(n, split, DT_I64);
    graph_value *bad = onnx_where(n, onnx_binary(n, "less", each, onnx_const_int(n, DT_I64, 1)),
                                  onnx_const_int(n, DT_I64, (int64_t)1 << 40), zero);
    graph_value *starts = onnx_binary(n, "multiply", all, each);
    starts = onnx_emit(n, ONNX_ARGS("compress", 1, &first, starts, onnx_binary(n, "less", starts, size)));
    graph_value *left = onnx_binary(n, "subtract", size, starts), *own = onnx_binary(n, "minimum", left, each);
    graph_value *last = onnx_binary(n, "subtract", size, onnx_const_int(n, DT_I64, 1));
    graph_value *from = onnx_expand_dims(n, onnx_binary(n, "add", starts, bad), 1, &column);
    graph_value *at = onnx_binary(n, "minimum", onnx_binary(n, "add", from, all),
                                  onnx_binary(n, "add", last, bad));
    graph_value *rows = to_front(n, onnx_emit(n, ONNX_ARGS("take", 1, &on, x, at)), axis), *sizes;
    dim row[2] = {onnx_dim(n, starts, 0), dim_const(n->c, 1)};
    graph_value **columns = arena_array(&n->c->mem, graph_value *, (uint32_t)rank + 1u);
    for (uint32_t k = 0; k < (uint32_t)rank; k++) {
        const attr of[2] = {attr_int(n->c, "start", k), attr_int(n->c, "end", k + 1)};
        graph_value *same = k == axis ? own : onnx_binary(n, "add", onnx_binary(n, "multiply", own, zero),
                                                          onnx_emit(n, ONNX_ARGS("shape_of", 2, of, x)));
        columns[k] = n->failed ? same : onnx_reshape(n, same, 2, row);
    }
    sizes = onnx_concat(n, (uint32_t)rank, columns, 1);
    onnx_keep_strings(n->im, x, rows);
    return result_part(n, 0, (onnx_part){PART_MANY, rows, sizes, 1u << axis, NULL});
}

bool onnx_op_split_to_sequence(onnx_node *n)
{
    n->in[0] = onnx_text(n, onnx_in(n, 0));
    graph_value *x = n->in[0], *split = onnx_optional(n, 1);
    const bool text = onnx_is_text(n->im, x);
    const uint32_t rank = onnx_rank(x), axis = onnx_axis(n, onnx_attr_int(n, "axis", 0), rank - text);
    const bool keep = onnx_attr_int(n, "keepdims", 1) != 0 || split;
    int64_t *ends = arena_array(&n->c->mem, int64_t, ONNX_MOST_ELEMENTS + 1u), from = 0, extent = 0, number = 0;
    uint32_t count = 0;
    if (n->failed)
        return false;
    const bool is_open = !dim_is_const(onnx_dim(n, x, axis), &extent), is_number = split && onnx_rank(split) == 0;
    if (is_open && (!split || (is_number && onnx_ints_of(split, &number, &count) && number == 1)))
        return split_to_entries(n, axis, keep);
    if (is_number && (is_open || !graph_constant(split)))
        return split_by_number(n, split, axis);
    if (split && !graph_constant(split))
        return split_by_list(n, split, axis);
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
        onnx_keep_strings(n->im, x, items[i]);
    }
    return result_sequence(n, 0, count, items);
}

/* --- for each element --- */

/* Element k of operand i; a tensor is the same for all. */
static graph_value *element(onnx_node *n, uint32_t i, uint32_t k)
{
    const onnx_list *l = onnx_list_of(n->im, onnx_in(n, i));
    return l ? l->parts[k].v : onnx_in(n, i);
}

/* Whether all sequences have as many elements as the model says. */
static bool counts_are_known(const onnx_node *n)
{
    bool known = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const onnx_list *l = onnx_list_of(n->im, n->in[i]);
        known &= !l || onnx_list_is_known(l);
    }
    return known;
}

static bool check_maps(onnx_node *n, const onnx_list *first, bool known)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const onnx_list *l = onnx_list_of(n->im, onnx_in(n, i));
        if (l && (l->has || l->none || l->is_tensor))
            return onnx_fail(n, DIAG_TYPE, "input %u is an optional; OptionalGetElement gives its sequence", i);
        if (l && known && l->n != first->n)
            return onnx_fail(n, DIAG_TYPE, "sequences of %u and %u elements", first->n, l->n);
    }
    return true;
}

/* The body for each element that is known. */
static bool map_each(onnx_node *n, const onnx_list *l, const pb_graph *g)
{
    graph_value ***out = arena_array(&n->c->mem, graph_value **, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = arena_array(&n->c->mem, graph_value *, l->n + 1u);
    graph_value **in = arena_array(&n->c->mem, graph_value *, n->n_in), **made =
        arena_array(&n->c->mem, graph_value *, n->n_out);
    for (uint32_t k = 0; k < l->n && !n->failed; k++) {
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = element(n, i, k);
        (void)onnx_inline_bodies(n, g, n->n_in, in, n->n_out, made);
        for (uint32_t i = 0; i < n->n_out; i++)
            out[i][k] = made[i];
    }
    for (uint32_t i = 0; i < n->n_out && !n->failed; i++)
        (void)result_sequence(n, i, l->n, out[i]);
    return !n->failed;
}

/* What a round of a map makes, as a sequence of one element with its slot: results of the round's function. */
static onnx_part add_row(onnx_region *r, onnx_node *in, graph_value *made)
{
    const onnx_part one = {.v = onnx_text(in, made)};
    const onnx_list l = {.n = 1, .parts = &one};
    onnx_slot slot = {.dt = DT_NONE};
    if (!onnx_slot_of(in, &l, &slot) || !onnx_slot_close(in, &slot))
        return (onnx_part){0};
    const onnx_part row = onnx_list_stack(in, &l, &slot);
    graph_add_result(r->f, row.v);
    if (row.sizes)
        graph_add_result(r->f, row.sizes);
    return row;
}

/* Whether the model tells that there are no elements. */
static bool is_empty(onnx_node *n, const onnx_list *l)
{
    bool empty = true;
    for (uint32_t i = 0; i < l->n; i++)
        empty &= l->parts[i].kind == PART_MANY && dim_is(onnx_dim(n, l->parts[i].v, 0), 0);
    return empty;
}

/* The body in a loop whose rounds take the elements one after the other. */
static bool map_all(onnx_node *n, const onnx_list *l, const pb_graph *g)
{
    arena *a = &n->c->mem;
    onnx_captures captures = {.n = n};
    onnx_region r;
    graph_value *trips = onnx_list_count(n, l);
    onnx_part *given = arena_array(a, onnx_part, n->n_in), *rows = arena_array(a, onnx_part, n->n_out);
    graph_value **in = arena_array(a, graph_value *, n->n_in), **made = arena_array(a, graph_value *, n->n_out);
    for (uint32_t i = 0; i < n->n_in; i++)
        given[i] = onnx_list_of(n->im, n->in[i]) ? stack_of(n, onnx_list_of(n->im, n->in[i])) : (onnx_part){0};
    onnx_capture(&captures, g);
    if (n->failed)
        return false;
    onnx_region_open(&r, n, NULL, "element");
    graph_value *at = graph_add_param(r.f, "element", type_static(n->c, DT_I64, 0, NULL));
    onnx_region_captures(&r, &captures);
    onnx_node m = onnx_region_node(&r);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const char *name = intern(n->c->names, arena_printf(a, "x_%u", i));
        const char *sizes = intern(n->c->names, arena_printf(a, "x_%u_sizes", i));
        onnx_part p = given[i];
        in[i] = onnx_region_value(&r, name, p.v ? p.v : n->in[i]);
        p.sizes = p.sizes ? onnx_region_value(&r, sizes, p.sizes) : NULL;
        if (p.v) {
            p.v = in[i];
            in[i] = onnx_list_element(&m, &p, at);
        }
    }
    graph_add_result(r.f, graph_add_constant(r.f, tensor_scalar_i64(n->c, DT_BOOL, 1), "", n->loc));
    (void)onnx_inline_bodies(&m, g, n->n_in, in, n->n_out, made);
    for (uint32_t i = 0; i < n->n_out && !m.failed; i++)
        rows[i] = add_row(&r, &m, made[i]);
    n->failed |= m.failed;
    const onnx_loop loop = {.trips = trips};
    const graph_node *node = n->failed ? NULL : onnx_emit_loop(n, n->f, &loop, &r);
    for (uint32_t i = 0, next = 0; node && i < n->n_out; i++) {
        const bool text = onnx_is_text(n->im, rows[i].v);
        rows[i].v = onnx_merge_axes(n, node->outputs[next++], 0);
        if (text)
            onnx_set_text(n->im, rows[i].v);
        rows[i].sizes = rows[i].sizes ? onnx_merge_axes(n, node->outputs[next++], 0) : NULL;
        (void)result_part(n, i, rows[i]);
    }
    return node && !n->failed;
}

bool onnx_op_sequence_map(onnx_node *n)
{
    const onnx_list *l = sequence_of(n, 0);
    const pb_graph *g = onnx_attr_graph(n, "body");
    const bool known = l && counts_are_known(n);
    const onnx_list none = {0};
    if (!l || n->failed || !check_maps(n, l, known))
        return false;
    if (known || is_empty(n, l)) /* a body for no element would have nothing to take */
        return map_each(n, known ? l : &none, g);
    return map_all(n, l, g);
}

/* --- optionals --- */

/* One that has its element is the element. */
bool onnx_op_optional(onnx_node *n)
{
    graph_value *x = onnx_optional(n, 0);
    const onnx_attr *a = onnx_attr_find(n, "type");
    if (x)
        return onnx_alias(n, 0, x);
    if (!a || !a->pb->tp)
        return onnx_fail(n, DIAG_FORMAT, "an optional without an element needs the attribute 'type'");
    return result_list(n, 0, (onnx_list){.none = true, .is_tensor = !onnx_is_list_type(a->pb->tp)});
}

bool onnx_op_optional_has_element(onnx_node *n)
{
    const graph_value *x = onnx_optional(n, 0);
    const onnx_list *l = onnx_list_of(n->im, x);
    if (l && l->has)
        return onnx_alias(n, 0, l->has);
    return onnx_result_constant(n, 0, tensor_scalar_i64(n->c, DT_BOOL, x != NULL && !(l && l->none)));
}

bool onnx_op_optional_get_element(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const onnx_list *l = onnx_list_of(n->im, x);
    const int64_t yes = 1, none = 0;
    int64_t one = 1;
    if (l && l->none)
        return onnx_fail(n, DIAG_TYPE, "the optional has no element");
    if (!l || !l->has)
        return onnx_alias(n, 0, x);
    onnx_part first = l->n ? l->parts[0] : (onnx_part){0}; /* its element is there, or the run ends with a status */
    graph_value *has = onnx_reshape_ints(n, onnx_cast(n, l->has, DT_I64), 1, &one);
    if (first.v)
        first.v = onnx_expect(n, first.v, has, 1, 1, &yes);
    if (l->is_tensor)
        return onnx_alias(n, 0, onnx_list_element(n, &first, onnx_const_int(n, DT_I64, none)));
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l->n + 1u);
    for (uint32_t i = 0; i < l->n; i++)
        parts[i] = i ? l->parts[i] : first;
    return result_list(n, 0, (onnx_list){.n = l->n, .parts = parts});
}
