/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences that a Loop carries (onnx_loop.h). At first a body is read as one that appends only: then a round costs
 * what it appends, and no more. Where it wants to know more, it is read again with the elements side by side. What an
 * element is like must be known for that: from the elements before the loop, from what the body declares, or from the
 * first round, which is read with the sequence as it is before the loop. */
#include "frontend/onnx/onnx_loop.h"

/* Readings of the body behind which elements may be larger than their slots. */
enum { MOST_WIDENED = 6 };

static const onnx_list *list_before(const onnx_carrying *k, uint32_t i)
{
    return onnx_list_of(k->n->im, k->n->in[2 + i]);
}

static const char *name_of(const onnx_carrying *k, uint32_t i)
{
    return onnx_name(k->n->im, k->g->input.data[2 + i]->name);
}

/* A slot of an earlier reading does not fit where its open extents were those of values around that one, and where a
 * function is called with other types. */
static bool slot_fits(const onnx_slot *s, const onnx_list *l)
{
    int64_t v = 0;
    const onnx_part *p = l->n ? &l->parts[0] : NULL;
    bool fits = !p || p->kind == PART_BEFORE ||
                (p->v->type.dt == s->dt && onnx_rank(p->v) == s->rank + (p->kind == PART_MANY));
    for (uint32_t axis = 0; axis < s->rank; axis++)
        fits &= dim_is_const(s->dims[axis], &v);
    return fits;
}

void onnx_loop_lists_open(onnx_carrying *k)
{
    if (!k->lists)
        k->lists = arena_array(&k->n->c->mem, onnx_carried_list, k->all + 1u);
    for (uint32_t i = 0; i < k->all; i++) {
        onnx_carried_list *to = &k->lists[i];
        to->before = NULL;
        to->widened = 0;
        to->is_read &= list_before(k, i) != NULL;
        if (!to->is_read || !slot_fits(&to->slot, list_before(k, i)))
            to->slot = (onnx_slot){.dt = DT_NONE};
    }
}

/* --- what the elements are like --- */

/* Room for the elements of l beside those of before; strings as wide as the widest. */
static onnx_list fit(onnx_node *n, const onnx_list *l, onnx_carried_list *to)
{
    int64_t width = 1;
    for (uint32_t i = 0; i < l->n; i++)
        to->text |= onnx_is_text(n->im, l->parts[i].v);
    if (to->text && to->slot.dt != DT_NONE)
        width = dim_bound(to->slot.dims[to->slot.rank - 1]);
    const onnx_list wide = onnx_list_one_width(n, l, width);
    if (to->text && to->slot.dt != DT_NONE && wide.n > 0)
        to->slot.dims[to->slot.rank - 1] = onnx_dim(n, wide.parts[0].v, onnx_rank(wide.parts[0].v) - 1);
    (void)onnx_slot_of(n, &wide, &to->slot);
    return wide;
}

/* Whether extent `axis` of the slot is one of a value around the loop, which is the same in all rounds. */
static bool find_outside(const onnx_region *r, onnx_carried_list *to, uint32_t axis)
{
    for (uint32_t i = 0; i < r->operands.len; i++) {
        graph_value *v = r->operands.data[i];
        for (uint32_t k = 0; k < onnx_rank(v); k++)
            if (dim_equal(v->type.shape.dims[k], to->slot.dims[axis])) {
                to->from[axis] = v;
                to->axis[axis] = k;
                return true;
            }
    }
    return false;
}

/* An open extent stays open where no round can change it. */
static bool close_inside(onnx_node *n, const onnx_region *r, onnx_carried_list *to)
{
    int64_t v = 0;
    for (uint32_t axis = 0; axis < to->slot.rank && !n->failed; axis++)
        if (!dim_is_const(to->slot.dims[axis], &v) && !find_outside(r, to, axis))
            (void)onnx_slot_close_axis(n, &to->slot, axis);
    return !n->failed;
}

/* The shape that the body declares for an element, where it is all numbers. */
static bool declared_slot(const onnx_carrying *k, uint32_t i, onnx_slot *s)
{
    const pb_value_info *v = k->g->input.data[2 + i];
    type t = {0};
    if (!v->type || !onnx_type_read(k->n->im, v->type, name_of(k, i), &t) || t.kind != TYPE_SEQUENCE ||
        t.elem->kind != TYPE_TENSOR || t.elem->dt == DT_STRING || t.elem->shape.rank < 0 ||
        !shape_is_static(t.elem->shape))
        return false;
    *s = (onnx_slot){.dt = t.elem->dt, .rank = (uint32_t)t.elem->shape.rank};
    for (uint32_t axis = 0; axis < s->rank; axis++)
        s->dims[axis] = t.elem->shape.dims[axis];
    return true;
}

/* The first round, read with what the loop begins with. Nothing of it is kept but what elements are like behind it. */
static bool read_first_round(onnx_carrying *k, const onnx_captures *captures)
{
    onnx_node *n = k->n;
    onnx_region r;
    graph_module *m = n->im->module;
    const uint32_t funcs = m->funcs.len;
    onnx_region_open(&r, n, k->g, "first");
    r.made = arena_array(&n->c->mem, graph_value *, k->g->output.len + 1u);
    onnx_region_input(&r, 0, graph_add_constant(r.f, tensor_scalar_i64(n->c, DT_I64, 0), "", n->loc));
    onnx_region_input(&r, 1, graph_add_constant(r.f, tensor_scalar_i64(n->c, DT_BOOL, 1), "", n->loc));
    for (uint32_t i = 0; i < k->all; i++)
        onnx_region_input(&r, 2 + i, onnx_region_value(&r, name_of(k, i), n->in[2 + i]));
    onnx_region_captures(&r, captures);
    if (n->failed || !onnx_region_import(&r))
        return false;
    onnx_node in = onnx_region_node(&r);
    for (uint32_t i = 0; i < k->all; i++) {
        const onnx_list *l = onnx_list_of(n->im, r.made[1 + i]);
        if (!l || !k->lists[i].is_read || k->lists[i].slot.dt != DT_NONE)
            continue;
        (void)fit(&in, l, &k->lists[i]);
        n->failed |= in.failed || !close_inside(&in, &r, &k->lists[i]);
    }
    m->funcs.len = funcs;
    return !n->failed;
}

bool onnx_loop_lists_measure(onnx_carrying *k, const onnx_captures *captures)
{
    bool known = true;
    for (uint32_t i = 0; i < k->all && !k->n->failed; i++) {
        onnx_carried_list *to = &k->lists[i];
        if (!to->is_read || to->slot.dt != DT_NONE)
            continue;
        (void)fit(k->n, list_before(k, i), to);
        known &= k->n->failed || to->slot.dt != DT_NONE || declared_slot(k, i, &to->slot);
    }
    if (k->n->failed || (!known && !read_first_round(k, captures)))
        return false;
    for (uint32_t i = 0; i < k->all; i++)
        if (k->lists[i].is_read && k->lists[i].slot.dt == DT_NONE) {
            onnx_fail(k->n, DIAG_UNSUPPORTED, "the body reads the sequence '%s', and nothing says what its elements "
                                              "are like",
                      name_of(k, i));
            diag_hint(&k->n->c->diags, "give the shape of an element with the type of this input of the body");
        }
    return !k->n->failed;
}

bool onnx_loop_lists_read(onnx_carrying *k)
{
    bool found = false;
    for (uint32_t i = 0; i < k->all; i++) {
        const onnx_list *l = list_before(k, i);
        onnx_carried_list *to = &k->lists[i];
        if (!l || l->none || l->has || to->is_read || !to->before || !to->before->is_read)
            continue;
        found = to->is_read = true;
    }
    if (!found)
        return false;
    k->n->failed = false;
    return true;
}

/* --- before the loop --- */

/* No elements, and the room for one where the slot has open extents: [0, n, 3]. */
static graph_value *no_elements(onnx_node *n, const onnx_carried_list *to)
{
    graph_value *dims[TYPE_MAX_RANK + 1];
    const int64_t one = 1, none = 0;
    const uint8_t zero[8] = {0};
    dims[0] = onnx_const_ints(n, 1, &none);
    for (uint32_t i = 0; i < to->slot.rank; i++) {
        int64_t v = 0;
        const attr part[2] = {attr_int(n->c, "start", to->axis[i]), attr_int(n->c, "end", to->axis[i] + 1)};
        const bool known = dim_is_const(to->slot.dims[i], &v);
        dims[i + 1] = known ? onnx_const_ints(n, 1, &v) : onnx_emit(n, ONNX_ARGS("shape_of", 2, part, to->from[i]));
    }
    const attr value = attr_tensor(n->c, "value", tensor_dense(n->c, to->slot.dt, 1, &one,
                                                               arena_copy(&n->c->mem, zero, sizeof zero, 8)));
    graph_value *extents = onnx_concat(n, to->slot.rank + 1, dims, 0);
    return onnx_emit(n, ONNX_ARGS("full", 1, &value, extents));
}

static onnx_part stack_before(onnx_carrying *k, uint32_t i)
{
    onnx_node *n = k->n;
    onnx_carried_list *to = &k->lists[i];
    const onnx_list *l = list_before(k, i), wide = fit(n, l, to);
    bool is_open = false;
    int64_t v = 0;
    for (uint32_t axis = 0; axis < to->slot.rank; axis++)
        is_open |= !dim_is_const(to->slot.dims[axis], &v);
    if (n->failed)
        return (onnx_part){.v = onnx_nothing(n)};
    onnx_part p = wide.n == 0 && is_open ? (onnx_part){.kind = PART_MANY, .v = no_elements(n, to)}
                                         : onnx_list_stack(n, &wide, &to->slot);
    if (!p.sizes && to->slot.ragged) { /* no elements, and other extents that are open */
        const int64_t none[2] = {0, to->slot.rank};
        const uint8_t zero[8] = {0};
        p.sizes = onnx_constant(n, tensor_splat(n->c, DT_I64, 2, none, arena_copy(&n->c->mem, zero, 8, 8)));
    }
    if (to->text)
        onnx_set_text(n->im, p.v);
    return p;
}

static void carry(onnx_carrying *k, uint32_t i, graph_value *v, const char *name)
{
    k->value[k->carried] = v;
    k->name[k->carried] = name;
    k->at[k->carried++] = i;
}

bool onnx_loop_lists_carry(onnx_carrying *k)
{
    onnx_node *n = k->n;
    k->carried = k->own;
    for (uint32_t i = 0; i < k->all && !n->failed; i++) {
        onnx_carried_list *to = &k->lists[i];
        if (!to->is_read)
            continue;
        const onnx_part p = stack_before(k, i);
        to->first = k->carried;
        carry(k, i, p.v, name_of(k, i));
        if (to->slot.ragged)
            carry(k, i, p.sizes, intern(n->c->names, arena_printf(&n->c->mem, "%s_sizes", name_of(k, i))));
    }
    return !n->failed;
}

/* --- in the body --- */

/* What the body sees of carried value i: that there is one. */
static onnx_list unread(onnx_carrying *k, uint32_t i, onnx_part *before)
{
    onnx_list l = *list_before(k, i);
    k->lists[i].before = arena_new(&k->n->c->mem, onnx_before);
    *before = (onnx_part){.kind = PART_BEFORE, .before = k->lists[i].before};
    if (l.has)
        onnx_fail(k->n, DIAG_UNSUPPORTED, "a run decides whether '%s', which a loop carries, has an element",
                  name_of(k, i));
    l.n = !l.none;
    return l;
}

void onnx_loop_lists_inside(onnx_carrying *k, onnx_region *r)
{
    for (uint32_t i = 0; i < k->all; i++) {
        onnx_carried_list *to = &k->lists[i];
        if (!list_before(k, i))
            continue;
        onnx_part part = {.kind = PART_MANY, .ragged = to->slot.ragged};
        onnx_list l = {.n = 1};
        if (to->is_read) {
            part.v = r->f->params.data[1 + to->first];
            part.sizes = part.ragged ? r->f->params.data[2 + to->first] : NULL;
        } else {
            l = unread(k, i, &part);
        }
        l.parts = &part;
        onnx_region_input(r, 2 + i, onnx_list_value(k->n->im, name_of(k, i), l));
    }
}

static bool slots_equal(const onnx_slot *a, const onnx_slot *b)
{
    bool equal = a->dt == b->dt && a->rank == b->rank && a->ragged == b->ragged;
    for (uint32_t i = 0; equal && i < a->rank; i++)
        equal = dim_equal(a->dims[i], b->dims[i]);
    return equal;
}

/* Result `at` of the body, in front of those that follow there. */
static void insert_result(onnx_region *r, uint32_t at, graph_value *v)
{
    graph_add_result(r->f, v);
    for (uint32_t i = r->f->results.len - 1; i > at; i--)
        r->f->results.data[i] = r->f->results.data[i - 1];
    r->f->results.data[at] = v;
}

static bool settle_read(onnx_carrying *k, onnx_region *r, uint32_t i, const onnx_list *made, bool *again)
{
    onnx_node m = onnx_region_node(r);
    onnx_carried_list *to = &k->lists[i], was = *to;
    const onnx_list wide = fit(&m, made, to);
    if (!m.failed && !slots_equal(&was.slot, &to->slot) && close_inside(&m, r, to)) {
        *again = true;
        if (++to->widened <= MOST_WIDENED)
            return true;
        onnx_fail(&m, DIAG_UNSUPPORTED, "the elements of the sequence '%s' grow from round to round", name_of(k, i));
        diag_hint(&k->n->c->diags, "a constant number of rounds gives them a limit");
    }
    const onnx_part p = m.failed ? (onnx_part){0} : onnx_list_stack(&m, &wide, &to->slot);
    k->n->failed |= m.failed;
    if (m.failed)
        return false;
    insert_result(r, 1 + to->first, p.v);
    if (to->slot.ragged)
        insert_result(r, 2 + to->first, p.sizes);
    return true;
}

/* A list that is not read must come out of the round as it went in, with elements behind it. */
static bool check_unread(onnx_carrying *k, uint32_t i, const onnx_list *out)
{
    const onnx_carried_list *to = &k->lists[i];
    bool behind = out->none || (out->n > 0 && out->parts[0].kind == PART_BEFORE && out->parts[0].before == to->before);
    for (uint32_t p = 1; p < out->n; p++)
        behind &= out->parts[p].kind != PART_BEFORE;
    to->before->is_read |= !behind;
    return behind || onnx_fail(k->n, DIAG_UNSUPPORTED, "carried value '%s' is not what it was with elements behind it",
                               name_of(k, i));
}

bool onnx_loop_lists_behind(onnx_carrying *k, onnx_region *r, bool *again)
{
    onnx_node *n = k->n;
    for (uint32_t i = 0; i + 1 < r->g->output.len; i++) {
        const onnx_list *in = i < k->all ? list_before(k, i) : NULL, *out = onnx_list_of(n->im, r->made[1 + i]);
        const char *name = onnx_name(n->im, r->g->output.data[1 + i]->name);
        if (!in && !out)
            continue;
        if (!in || !out)
            return onnx_fail(n, DIAG_UNSUPPORTED, i < k->all ? "carried value '%s' is a sequence only before or behind "
                                                               "a round"
                                                             : "rows of '%s' are sequences",
                             name);
        if (in->none != out->none || out->has)
            return onnx_fail(n, DIAG_UNSUPPORTED, "carried value '%s' has an element only before or behind a round",
                             name);
        if (!(k->lists[i].is_read ? settle_read(k, r, i, out, again) : check_unread(k, i, out)))
            return false;
    }
    return true;
}

/* --- what a round appends to a sequence that is not read: rows --- */

/* Side by side, with their sizes, and how many they are. */
static bool append_rows(onnx_carrying *k, onnx_region *r, uint32_t i)
{
    onnx_node m = onnx_region_node(r);
    onnx_carried_list *to = &k->lists[i];
    const onnx_list *l = onnx_list_of(k->n->im, r->made[1 + i]);
    const onnx_list rest = {.n = l->n ? l->n - 1 : 0, .parts = l->parts + 1};
    const attr first[2] = {attr_int(k->n->c, "start", 0), attr_int(k->n->c, "end", 1)};
    int64_t none = 0;
    to->appended = (onnx_part){0};
    to->slot = (onnx_slot){.dt = DT_NONE};
    if (rest.n == 0)
        return true;
    if (!onnx_slot_of(&m, &rest, &to->slot) || !close_inside(&m, r, to))
        return !(k->n->failed = true);
    onnx_part p = onnx_list_stack(&m, &rest, &to->slot);
    graph_value *count = onnx_reshape_ints(&m, onnx_emit(&m, ONNX_ARGS("shape_of", 2, first, p.v)), 0, &none);
    to->counted = !dim_is_const(onnx_dim(&m, p.v, 0), &to->most);
    if (to->counted) {
        to->most = dim_bound(onnx_dim(&m, p.v, 0));
        if (to->most < 0)
            return onnx_fail(k->n, DIAG_UNSUPPORTED, "what a round appends to a sequence has no limit");
        p = onnx_list_room(&m, &p, to->most);
    }
    k->n->failed |= m.failed;
    if (m.failed)
        return false;
    to->appended = p;
    graph_add_result(r->f, p.v);
    if (p.sizes)
        graph_add_result(r->f, p.sizes);
    if (to->counted)
        graph_add_result(r->f, count);
    return true;
}

bool onnx_loop_lists_append(onnx_carrying *k, onnx_region *r)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < k->all; i++)
        if (list_before(k, i) && !k->lists[i].is_read)
            ok = append_rows(k, r, i);
    return ok;
}

/* --- behind the loop --- */

/* What the list was before, and the rows. */
static onnx_list take_rows(onnx_carrying *k, uint32_t i, graph_value *const **next)
{
    onnx_node *n = k->n;
    const onnx_carried_list *from = &k->lists[i];
    onnx_list l = *list_before(k, i);
    onnx_part *parts = arena_array(&n->c->mem, onnx_part, l.n + 2u), p = from->appended;
    for (uint32_t m = 0; m < l.n; m++)
        parts[m] = l.parts[m];
    l.parts = parts;
    if (p.v) {
        p.v = onnx_merge_axes(n, *(*next)++, 0);
        p.sizes = p.sizes ? onnx_merge_axes(n, *(*next)++, 0) : NULL;
        if (from->counted) {
            const int64_t column = 1;
            graph_value *own = onnx_expand_dims(n, *(*next)++, 1, &column);
            p = onnx_list_keep(n, &p, onnx_merge_axes(n, onnx_binary(n, "less", onnx_positions(n, from->most), own),
                                                      0));
        }
        parts[l.n++] = p;
    }
    return l;
}

static onnx_list take_read(onnx_carrying *k, uint32_t i, const graph_node *node)
{
    const onnx_carried_list *from = &k->lists[i];
    onnx_part *part = arena_new(&k->n->c->mem, onnx_part);
    *part = (onnx_part){.kind = PART_MANY, .v = node->outputs[from->first], .ragged = from->slot.ragged};
    part->sizes = part->ragged ? node->outputs[from->first + 1] : NULL;
    if (from->text)
        onnx_set_text(k->n->im, part->v);
    return (onnx_list){.n = 1, .parts = part};
}

void onnx_loop_lists_take(onnx_carrying *k, const graph_node *node, uint32_t tensors)
{
    onnx_node *n = k->n;
    graph_value *const *next = node->outputs + tensors;
    for (uint32_t i = 0; i < k->all; i++) {
        if (!list_before(k, i))
            continue;
        const onnx_list l = k->lists[i].is_read ? take_read(k, i, node) : take_rows(k, i, &next);
        if (i < n->n_out)
            n->out[i] = onnx_list_value(n->im, n->out_names[i] ? n->out_names[i] : "", l);
    }
}
