/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals of a model that runs: which files have the elements of its inputs, and what the tensors that
 * it gives are as elements. */
#include "driver/run.h"

#include <string.h>

#include "base/file.h"

static const list_io *list_at(const run_model *m, bool is_input, uint32_t place)
{
    for (uint32_t i = 0; i < m->n_lists; i++)
        if (m->lists[i].is_input == is_input && m->lists[i].place == place)
            return &m->lists[i];
    return NULL;
}

run_from run_input_from(const run_model *m, uint32_t i)
{
    uint32_t at = 0, place = 0;
    for (;; place++) {
        const list_io *l = list_at(m, true, place);
        const uint32_t tensors = l ? l->n_parts : 1;
        if (i < at + tensors)
            return (run_from){l, place, i - at};
        at += tensors;
    }
}

/* --- results as elements --- */

typedef struct seeing {
    compiler *c;
    run_model *m;
    uint32_t next; /* of the function's results */
    VEC(run_tensor) out;
    VEC(run_from) from;
} seeing;

static void add(seeing *x, const run_tensor *t, const list_io *l, uint32_t place, uint32_t element)
{
    run_tensor seen = *t;
    if (l)
        seen.name = l->is_sequence ? arena_printf(&x->c->mem, "%s_%u", l->name, element) : l->name;
    vec_push(&x->c->mem, &x->out, seen);
    vec_push(&x->c->mem, &x->from, ((run_from){l, place, element}));
}

/* The part of a slot that is the element, without gaps. */
static bool cut(seeing *x, const run_tensor *slot, const int64_t *dims, run_tensor *out)
{
    const size_t size = dtype_bytes(slot->dt);
    int64_t at[TYPE_MAX_RANK] = {0};
    *out = *slot;
    out->open = NULL;
    run_set_dims(out, dims);
    out->most_bytes = out->bytes;
    out->data = arena_try_alloc(&x->c->mem, out->bytes + 1, 64);
    if (!out->data)
        return diag_error(&x->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'",
                          out->bytes, slot->name);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t from = 0;
        for (uint32_t k = 0; k < out->rank; k++)
            from = from * slot->dims[k] + at[k];
        memcpy(out->data + (size_t)i * size, slot->data + (size_t)from * size, size);
        for (uint32_t k = out->rank; k-- > 0 && ++at[k] == out->dims[k];)
            at[k] = 0;
    }
    return true;
}

/* Element k of many that lie side by side. */
static bool take_one(seeing *x, const run_tensor *all, const run_tensor *sizes, int64_t k, run_tensor *out)
{
    run_tensor slot = *all;
    int64_t dims[TYPE_MAX_RANK] = {0};
    slot.rank--;
    slot.open = NULL;
    run_set_dims(&slot, all->dims + 1);
    slot.data = all->data + (size_t)k * slot.bytes;
    *out = slot;
    if (!sizes)
        return true;
    for (uint32_t i = 0; i < slot.rank; i++) {
        memcpy(&dims[i], sizes->data + ((size_t)k * slot.rank + i) * sizeof *dims, sizeof *dims);
        if (dims[i] < 0 || dims[i] > slot.dims[i])
            return diag_error(&x->c->diags, DIAG_INTERNAL, src_loc_none(), "element %lld of '%s' has extent %lld at "
                                                                           "axis %u",
                              (long long)k, all->name, (long long)dims[i], i);
    }
    return cut(x, &slot, dims, out);
}

static bool broken(seeing *x, const list_io *l)
{
    return diag_error(&x->c->diags, DIAG_FORMAT, src_loc_none(), "the parts of '%s' are not among the results",
                      l->name);
}

/* The next result, which must be that one. */
static const run_tensor *next_result(seeing *x, const char *name)
{
    const run_tensor *t = x->next < x->m->n_outputs ? &x->m->outputs[x->next] : NULL;
    if (!t || strcmp(t->name, name) != 0)
        return NULL;
    x->next++;
    return t;
}

/* A part of the next results, and with elements of several sizes their extents, [elements, rank of one]. */
static bool next_part(seeing *x, const list_part *p, const run_tensor **out, const run_tensor **sizes)
{
    const run_tensor *t = *out = next_result(x, p->name);
    *sizes = NULL;
    if (!t || (p->many && t->rank == 0))
        return false;
    if (!p->sizes)
        return true;
    const run_tensor *s = *sizes = next_result(x, p->sizes);
    return s && s->dt == DT_I64 && s->rank == 2 && s->dims[0] >= t->dims[0] && s->dims[1] + 1 == t->rank;
}

static bool see_list(seeing *x, const list_io *l, uint32_t place)
{
    const uint32_t before = x->out.len;
    run_seen *seen = &x->m->seen[l - x->m->lists];
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const list_part *p = &l->parts[i];
        const run_tensor *t, *sizes;
        if (!next_part(x, p, &t, &sizes))
            return broken(x, l);
        if (!p->many)
            add(x, t, l, place, x->out.len - before);
        for (int64_t k = 0; p->many && k < t->dims[0]; k++) {
            run_tensor one;
            if (!take_one(x, t, sizes, k, &one))
                return false;
            add(x, &one, l, place, x->out.len - before);
        }
    }
    const run_tensor *present = l->present ? next_result(x, l->present) : NULL;
    if (l->present && (!present || present->count != 1 || present->dt != DT_BOOL))
        return broken(x, l);
    seen->present = present ? *present->data != 0 : !l->is_none;
    if (!seen->present)
        x->out.len = x->from.len = before;
    seen->count = x->out.len - before;
    return true;
}

bool run_see(compiler *c, run_model *m)
{
    seeing x = {.c = c, .m = m};
    uint32_t left = 0;
    for (uint32_t i = 0; i < m->n_lists; i++)
        left += !m->lists[i].is_input;
    if (m->raw || left == 0 || m->shows_values)
        return true;
    m->seen = arena_array(&c->mem, run_seen, m->n_lists);
    for (uint32_t place = 0; x.next < m->n_outputs || left > 0; place++) {
        const list_io *l = list_at(m, false, place);
        if (l ? !see_list(&x, l, place) : x.next == m->n_outputs)
            return l ? false : broken(&x, &m->lists[m->n_lists - 1]);
        if (!l)
            add(&x, &m->outputs[x.next++], NULL, place, 0);
        left -= l != NULL;
    }
    m->raw = m->outputs;
    m->n_raw = m->n_outputs;
    m->outputs = x.out.data;
    m->n_outputs = x.out.len;
    m->out_from = x.from.data;
    return true;
}

void run_unsee(run_model *m)
{
    if (!m->raw)
        return;
    m->outputs = m->raw;
    m->n_outputs = m->n_raw;
    m->raw = NULL;
    m->out_from = NULL;
}

run_from run_output_from(const run_model *m, uint32_t i)
{
    return m->out_from ? m->out_from[i] : (run_from){NULL, i, 0};
}

bool run_call_seen(compiler *c, run_model *m)
{
    run_unsee(m);
    return run_call(c, m) && run_see(c, m);
}

bool run_list_fits(compiler *c, const char *path, const list_io *l, const tensor_list *have)
{
    if (have->none == l->is_none && have->n == l->n_parts)
        return true;
    diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' holds %s; input '%s' takes %s", path,
               run_list_text(&c->mem, l, !have->none, have->n), l->name,
               run_list_text(&c->mem, l, !l->is_none, l->n_parts));
    diag_hint(&c->diags, "a package is made for one number of elements: compile the model with --dim %s=%s", l->name,
              have->none ? "none" : arena_printf(&c->mem, "%u", have->n));
    return false;
}

/* --- what is compared before elements are --- */

const char *run_list_text(arena *a, const list_io *l, bool present, uint32_t count)
{
    if (!present)
        return "none";
    if (l->is_map)
        return arena_printf(a, "%u array%s for the keys and the values", count, count == 1 ? "" : "s");
    return l->is_sequence ? arena_printf(a, "%u element%s", count, count == 1 ? "" : "s") : "an element";
}
