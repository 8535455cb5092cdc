/* SPDX-License-Identifier: Apache-2.0 */
/* share-shapes: kernels whose loops differ only in numbers share one function, which gets the numbers in an array. A
 * number may be in an index, an extent of a serial loop, a condition, a zero point or a scale (tir/shape.h). A literal
 * that is the same in all kernels stays. If a literal is always another one times, or plus, the same number, it is
 * computed from the other one. A factor that all values of a number have in common stays in the code, where the C
 * compiler sees it. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "prog/shape.h"
#include "tir/build.h"
#include "tir/shape.h"

/* Literal i of every kernel of a group. */
typedef struct column {
    int64_t *values; /* bits of a float */
    dtype dt;        /* of the variable */
    bool zero_point; /* the variable is an integer where the literal is a float */
    bool same;
    tir_expr_ref put; /* what takes its place */
} column;

typedef struct member {
    prog_kernel *kernel;
    tir_form form;
    uint64_t hash;
    uint32_t index;
    bool taken;
} member;

typedef struct sharing {
    compiler *c;
    arena *tmp;
    prog_module *m;
    member **group;
    uint32_t n; /* kernels in it */
    column *columns;
    uint32_t n_columns;
    const tir_buffer *numbers;
    VEC(const column *) bases; /* those that are handed over, in order */
    VEC(int64_t) factors;
    VEC(tir_number) vars;
    VEC(tir_expr_ref) lets; /* their values */
} sharing;

/* --- columns --- */

static int64_t value_of(tir_expr_ref e, bool zero_point)
{
    union {
        float f;
        uint32_t u;
    } v;
    if (e->kind == TIR_INT)
        return e->u.i;
    if (zero_point)
        return (int64_t)e->u.f;
    v.f = (float)e->u.f;
    return (int64_t)(int32_t)v.u;
}

/* A float whose form calls it open although it is no factor. */
static bool is_zero_point(const sharing *s, uint32_t i)
{
    for (uint32_t k = 0; k < s->n; k++) {
        tir_expr_ref e = s->group[k]->form.literals[i];
        if (e->kind != TIR_FLOAT || !(fabs(e->u.f) <= 32767.0) || e->u.f != nearbyint(e->u.f) ||
            (e->u.f == 0.0 && signbit(e->u.f)))
            return false;
    }
    return true;
}

static void read_columns(sharing *s)
{
    s->n_columns = s->group[0]->form.n_literals;
    s->columns = arena_array(s->tmp, column, s->n_columns + 1u);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        column *x = &s->columns[i];
        tir_expr_ref first = s->group[0]->form.literals[i];
        x->zero_point = is_zero_point(s, i);
        x->dt = x->zero_point ? DT_I16 : first->type.dt;
        x->values = arena_array(s->tmp, int64_t, s->n);
        x->same = true;
        for (uint32_t k = 0; k < s->n; k++) {
            x->values[k] = value_of(s->group[k]->form.literals[i], x->zero_point);
            x->same &= x->values[k] == x->values[0];
        }
    }
}

/* --- what a column is made of --- */

static bool is_multiple(const column *x, const column *of, uint32_t n, int64_t *k)
{
    *k = of->values[0] != 0 ? x->values[0] / of->values[0] : 0;
    for (uint32_t i = 0; i < n; i++)
        if (of->values[i] == 0 || x->values[i] != *k * of->values[i])
            return false;
    return true;
}

static bool is_apart(const column *x, const column *of, uint32_t n, int64_t *k)
{
    *k = x->values[0] - of->values[0];
    for (uint32_t i = 0; i < n; i++)
        if (x->values[i] - of->values[i] != *k)
            return false;
    return true;
}

static int64_t common_factor(const column *x, uint32_t n)
{
    int64_t g = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t a = x->values[i] < 0 ? -x->values[i] : x->values[i];
        while (a != 0) {
            const int64_t rest = g % a;
            g = a;
            a = rest;
        }
    }
    return g > 0 ? g : 1;
}

static tir_expr_ref new_var(sharing *s, const column *x, tir_expr_ref value)
{
    const tir_var *v = tir_new_var(s->c, arena_printf(&s->c->mem, "n%u", s->vars.len), tir_scalar(x->dt));
    tir_number bounds = {v, x->values[0], x->values[0]};
    for (uint32_t i = 1; i < s->n; i++) {
        bounds.least = x->values[i] < bounds.least ? x->values[i] : bounds.least;
        bounds.most = x->values[i] > bounds.most ? x->values[i] : bounds.most;
    }
    vec_push(&s->c->mem, &s->vars, bounds);
    vec_push(s->tmp, &s->lets, value);
    return tir_varref(s->c, v);
}

/* The variable of a column that nothing else gives. */
static tir_expr_ref base_of(sharing *s, const column *x)
{
    compiler *c = s->c;
    const int64_t factor = dtype_is_float(x->dt) ? 1 : common_factor(x, s->n);
    tir_expr_ref at = tir_int(c, prog_kernel_loops(s->group[0]->kernel)->index_type, s->bases.len), load;
    vec_push(s->tmp, &s->bases, x);
    vec_push(s->tmp, &s->factors, factor);
    load = tir_load(c, s->numbers, 1, &at);
    if (dtype_is_float(x->dt))
        return new_var(s, x, tir_call1(c, TIR_FROM_BITS, tir_cast(c, DT_U32, load)));
    return new_var(s, x, tir_cast(c, x->dt, tir_mul(c, load, tir_int(c, DT_I32, factor))));
}

/* Made of one before it, where it can be. */
static tir_expr_ref derived(sharing *s, uint32_t i)
{
    const column *x = &s->columns[i];
    int64_t k;
    for (uint32_t p = 0; p < i; p++) {
        const column *of = &s->columns[p];
        if (!of->same && of->dt == x->dt && is_apart(x, of, s->n, &k) && (k == 0 || !dtype_is_float(x->dt)))
            return k == 0 ? of->put : tir_add(s->c, of->put, tir_int(s->c, x->dt, k));
    }
    for (uint32_t p = 0; p < i && !dtype_is_float(x->dt) && x->dt != DT_I16; p++) {
        const column *of = &s->columns[p];
        if (!of->same && of->dt == x->dt && is_multiple(x, of, s->n, &k))
            return new_var(s, x, tir_mul(s->c, of->put, tir_int(s->c, x->dt, k)));
    }
    return NULL;
}

/* Before the numbers' array is there: how many columns are handed over. */
static uint32_t count_bases(sharing *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const column *x = &s->columns[i];
        bool made = x->same;
        int64_t k;
        for (uint32_t p = 0; p < i && !made; p++) {
            const column *of = &s->columns[p];
            if (of->same || of->dt != x->dt)
                continue;
            made = (is_apart(x, of, s->n, &k) && (k == 0 || !dtype_is_float(x->dt))) ||
                   (!dtype_is_float(x->dt) && x->dt != DT_I16 && is_multiple(x, of, s->n, &k));
        }
        n += !made;
    }
    return n;
}

/* --- the shared function --- */

static const int64_t *largest_arrays(const sharing *s)
{
    const uint32_t n = s->group[0]->form.n_sizes;
    int64_t *sizes = arena_array(s->tmp, int64_t, n + 1u);
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t i = 0; i < n; i++)
            sizes[i] = s->group[k]->form.sizes[i] > sizes[i] ? s->group[k]->form.sizes[i] : sizes[i];
    return sizes;
}

static tir_func *shared_loops(sharing *s, const char *name)
{
    compiler *c = s->c;
    const tir_func *first = prog_kernel_loops(s->group[0]->kernel);
    tir_expr_ref *values = arena_array(s->tmp, tir_expr_ref, s->n_columns + 1u);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        column *x = &s->columns[i];
        if (x->same)
            continue;
        x->put = derived(s, i);
        if (!x->put)
            x->put = base_of(s, x);
        values[i] = x->zero_point ? tir_cast(c, DT_F32, x->put) : x->put;
    }
    tir_func *f = arena_new(&c->mem, tir_func);
    *f = *first;
    f->name = name;
    f->body = tir_put_literals(c, first, values, largest_arrays(s));
    for (uint32_t i = s->vars.len; i-- > 0;)
        f->body = tir_let(c, s->vars.data[i].var, s->lets.data[i], f->body);
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, first->n_params + 1u);
    params[0] = s->numbers;
    memcpy(params + 1, first->params, first->n_params * sizeof *params);
    f->params = params;
    f->n_params++;
    f->n_inputs++;
    f->numbers = s->vars.data;
    f->n_numbers = s->vars.len;
    return f;
}

static const int32_t *numbers_of(sharing *s, uint32_t kernel)
{
    int32_t *list = arena_array(&s->c->mem, int32_t, s->bases.len + 1u);
    for (uint32_t i = 0; i < s->bases.len; i++)
        list[i] = (int32_t)(s->bases.data[i]->values[kernel] / s->factors.data[i]);
    return list;
}

static void share_group(sharing *s)
{
    compiler *c = s->c;
    read_columns(s);
    const int64_t n = count_bases(s);
    if (n == 0) /* they differ in arrays alone, and equal kernels are one already */
        return;
    prog_shape *made = arena_new(&c->mem, prog_shape);
    s->numbers = tir_buffer_static(c, "numbers", DT_I32, 1, &n, SCOPE_GLOBAL);
    made->name = intern(c->names, arena_printf(&c->mem, "%s_shared", s->group[0]->kernel->name));
    made->loops = shared_loops(s, made->name);
    for (uint32_t i = 0; i < s->n; i++) {
        s->group[i]->kernel->shape = made;
        s->group[i]->kernel->numbers = numbers_of(s, i);
    }
    vec_push(&c->mem, &s->m->shapes, made);
}

/* --- groups --- */

/* What only moves numbers is small, and lives on what the C compiler knows: shared transpositions took up to five times
 * as long. */
static bool may_share(const prog_kernel *k)
{
    const tir_func *f = prog_kernel_loops(k);
    return f && f->macs > 0 && !k->region && !k->by_target && f->n_symbols == 0;
}

static bool fits_group(const member *a, const member *b)
{
    return a->hash == b->hash && a->kernel->target == b->kernel->target && tir_form_equal(&a->form, &b->form);
}

bool prog_pass_shapes(compiler *c, prog_module *m)
{
    arena tmp;
    arena_init(&tmp, &c->mem);
    member *list = arena_array(&tmp, member, m->kernels.len + 1u);
    member **group = arena_array(&tmp, member *, m->kernels.len + 1u);
    uint32_t n = 0;
    prog_drop_shapes(m);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        member *x = &list[n];
        if (!may_share(m->kernels.data[i]))
            continue;
        *x = (member){.kernel = m->kernels.data[i]};
        tir_form_of(&tmp, prog_kernel_loops(x->kernel), true, &x->form);
        x->hash = tir_form_hash(&x->form);
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        sharing s = {.c = c, .tmp = &tmp, .m = m, .group = group};
        for (uint32_t k = i; k < n && !list[i].taken; k++)
            if (!list[k].taken && fits_group(&list[i], &list[k]))
                group[s.n++] = &list[k];
        for (uint32_t k = 0; k < s.n; k++)
            group[k]->taken = true;
        if (s.n > 1)
            share_group(&s);
    }
    arena_free(&tmp);
    return true;
}
