/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of programs: what every pass and back end relies on. */
#include "base/ptr_map.h"
#include "prog/shape.h"
#include "tir/build.h"
#include "tir/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What may be done with a value at the step at hand. */
typedef enum value_state {
    VALUE_NEW,     /* not made yet */
    VALUE_MADE,    /* may be read */
    VALUE_GONE,    /* made in a block that has ended, or a view of what was carried over since */
    VALUE_DUE,     /* a result of the branch at hand: must be made in it */
    VALUE_CARRIED, /* of the loop at hand: holds what the round before left, and must be made again; or a state, which
                    * holds what the run before left, and may be */
    VALUE_ROWS,    /* a result of the loop at hand: must be made in it, and is read behind it only */
    VALUE_FILLED   /* such a one that is made */
} value_state;

typedef struct checker {
    compiler *c;
    const prog_func *f;
    value_state *state; /* of each value */
    VEC(uint32_t) made; /* by the steps so far, for the end of their block */
    uint32_t depth;
} checker;

static bool fault(const checker *k, src_loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool fault(const checker *k, src_loc at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_error(&k->c->diags, DIAG_VERIFY, at, "@%s: %s", k->f->name, text);
}

static const prog_value *value(const checker *k, uint32_t v)
{
    return &k->f->values.data[v];
}

/* --- values --- */

/* A symbol of d that no value of the function tells; NULL: none. */
static const char *untold(const prog_func *f, dim d)
{
    const dim *parts = NULL;
    const uint32_t n = dim_operands(d, &parts);
    const char *found = dim_symbol_name(d);
    if (found)
        return prog_find_extent(f, found) == PROG_NONE ? found : NULL;
    for (uint32_t i = 0; i < n && !found; i++)
        found = untold(f, parts[i]);
    return found;
}

/* What nothing bounds is as large as the extents say when it is made. */
static bool check_unbounded(const checker *k, const prog_value *v)
{
    for (int32_t i = 0; i < v->type.shape.rank; i++) {
        const char *symbol = untold(k->f, v->type.shape.dims[i]);
        if (symbol)
            return fault(k, src_loc_none(), "%%%s has no size: %s has no bound, and no value gives it", v->name,
                         symbol);
    }
    return true;
}

/* It lies in that space and in no other value. */
static bool is_root_in(const prog_value *v, prog_space space)
{
    return v->space == space && v->base == PROG_NONE;
}

static bool check_state(const checker *k, const prog_value *v)
{
    const tensor_data *t = v->initial;
    int64_t dims[TYPE_MAX_RANK];
    if (v->extent || !shape_get(v->type.shape, dims))
        return fault(k, src_loc_none(), "%%%s: a state is a tensor of a fixed shape", v->name);
    return !t || (t->dt == v->type.dt && t->rank == (uint32_t)v->type.shape.rank &&
                  (t->rank == 0 || memcmp(t->dims, dims, t->rank * sizeof *dims) == 0)) ||
           fault(k, src_loc_none(), "%%%s: its first value has another type", v->name);
}

/* Each space has its place among the values, and what its values have to have. */
static bool check_space(const checker *k, uint32_t i)
{
    const prog_value *v = value(k, i);
    const src_loc none = src_loc_none();
    if ((i < k->f->n_inputs) != is_root_in(v, SPACE_INPUT))
        return fault(k, none, "%%%s: the inputs are the first values, and no others", v->name);
    const bool is_state = i >= k->f->n_inputs && i < k->f->n_inputs + k->f->n_states;
    if (is_state != is_root_in(v, SPACE_STATE))
        return fault(k, none, "%%%s: the states are the values right after the inputs, and no others", v->name);
    if (is_state && !check_state(k, v))
        return false;
    if ((v->data != NULL) != is_root_in(v, SPACE_CONSTANT))
        return fault(k, none, "%%%s: constants have numbers, and other values have none", v->name);
    if ((v->memory != NULL) != (v->space == SPACE_DEVICE) ||
        (v->memory && (v->extent || !shape_is_static(v->type.shape))))
        return fault(k, none, "%%%s: a value in a device's memory has a fixed size, and no place in the host's "
                              "memory", v->name);
    return true;
}

static bool check_value(checker *k, uint32_t i)
{
    const prog_value *v = value(k, i);
    src_loc none = src_loc_none();
    if (v->type.kind != TYPE_TENSOR || v->type.shape.rank < 0)
        return fault(k, none, "%%%s has no size", v->name);
    if (prog_is_unbounded(v) && !check_unbounded(k, v))
        return false;
    if (v->extent && (v->type.dt != DT_I64 || v->type.shape.rank != 0 ||
                      prog_find_extent(k->f, dim_symbol_name(v->extent)) != i))
        return fault(k, none, "%%%s: an extent is one i64, and each symbol has only one", v->name);
    if (!check_space(k, i))
        return false;
    if (v->base == PROG_NONE)
        return true;
    if (v->memory)
        return fault(k, none, "%%%s: a value in %s needs a place of its own in that memory", v->name, v->memory);
    if (v->base >= k->f->values.len)
        return fault(k, none, "%%%s lies in a value that does not exist", v->name);
    const prog_value *base = value(k, v->base);
    if (prog_is_unbounded(base) && v->offset == 0)
        return true;
    if (v->offset > prog_bytes(base) || prog_bytes(v) > prog_bytes(base) - v->offset)
        return fault(k, none, "%%%s: %llu bytes at %llu leave %%%s, which has %llu", v->name,
                     (unsigned long long)prog_bytes(v), (unsigned long long)v->offset, base->name,
                     (unsigned long long)prog_bytes(base));
    return true;
}

static bool check_values(checker *k)
{
    ptr_map names;
    uint32_t other;
    bool ok = true;
    ptr_map_init(&names, &k->c->mem);
    for (uint32_t i = 0; i < k->f->values.len; i++) {
        if (ptr_map_get(&names, value(k, i)->name, &other))
            ok = fault(k, src_loc_none(), "two values have the name %%%s", value(k, i)->name);
        ptr_map_set(&names, value(k, i)->name, i);
        ok = check_value(k, i) && ok;
        const bool state = is_root_in(value(k, i), SPACE_STATE);
        k->state[i] = state ? VALUE_CARRIED : i < k->f->n_inputs || value(k, i)->data ? VALUE_MADE : VALUE_NEW;
    }
    return ok;
}

/* --- steps --- */

/* Whether what a kernel makes of b's shape has room in v, whose extents another step tells. */
static bool has_room(const prog_value *v, const tir_buffer *b)
{
    int64_t n = 0;
    if (shape_is_static(v->type.shape) || v->type.shape.rank != (int32_t)b->rank)
        return false;
    for (uint32_t i = 0; i < b->rank; i++)
        if (tir_is_int(b->shape[i], &n) && (uint64_t)n > (uint64_t)dim_bound(v->type.shape.dims[i])) /* none: -1 */
            return false;
    return true;
}

static bool check_operand(const checker *k, const prog_step *s, const tir_func *f, uint32_t i)
{
    const prog_value *v = value(k, s->args[i]);
    const tir_buffer *b = f->params[i];
    int64_t count = tir_buffer_count(b);
    bool fits = count < 0 ? v->type.shape.rank == (int32_t)b->rank && !shape_is_static(v->type.shape)
                          : shape_count(v->type.shape) == count || (i >= s->n_in && has_room(v, b));
    if (i < f->n_symbols && (!v->extent || strcmp(dim_symbol_name(v->extent), f->symbols[i]) != 0))
        return fault(k, s->loc, "kernel @%s wants the extent %s, and %%%s is something else", s->kernel->name,
                     f->symbols[i], v->name);
    if (v->type.dt != b->dt || !fits)
        return fault(k, s->loc, "kernel @%s wants %lld elements of %s as %s, and %%%s has %llu bytes of %s",
                     s->kernel->name, (long long)count, dtype_name(b->dt), b->name, v->name,
                     (unsigned long long)prog_bytes(v), dtype_name(v->type.dt));
    return true;
}

static const char *memory_name(const char *memory)
{
    return memory ? memory : "the host's memory";
}

/* In front of the pass device-memory all values are the host's; behind it those of a kernel with a memory are there. */
static bool check_memories(const checker *k, const prog_step *s)
{
    const char *own = prog_kernel_memory(s->kernel);
    uint64_t start;
    bool any = false;
    for (uint32_t i = 0; i < s->n_args; i++)
        any |= value(k, s->args[i])->memory != NULL;
    for (uint32_t i = 0; i < s->n_args && any; i++) {
        const prog_value *v = value(k, s->args[i]);
        if (v->extent || (value(k, prog_root(k->f, s->args[i], &start))->space == SPACE_CONSTANT))
            continue;
        if (!own != !v->memory || (own && strcmp(own, v->memory) != 0))
            return fault(k, s->loc, "kernel @%s works in %s, and %%%s lies in %s", s->kernel->name, memory_name(own),
                         v->name, memory_name(v->memory));
    }
    return true;
}

/* Between two memories, of which one is the host's. */
static bool check_copy(const checker *k, const prog_step *s)
{
    const prog_value *from = value(k, s->args[0]), *to = value(k, s->args[1]);
    if (!from->memory == !to->memory)
        return fault(k, s->loc, "a copy goes between the host's memory and a device's: %%%s lies in %s, %%%s in %s",
                     from->name, memory_name(from->memory), to->name, memory_name(to->memory));
    return type_equal(&from->type, &to->type) ||
           fault(k, s->loc, "%%%s and its copy %%%s have different types", from->name, to->name);
}

/* Blocks are the host's matter. */
static bool check_host(const checker *k, const prog_step *s)
{
    for (uint32_t i = 0; i < s->n_args; i++)
        if (value(k, s->args[i])->memory)
            return fault(k, s->loc, "a step %s of %%%s, which lies in %s", prog_step_text(s->kind),
                         value(k, s->args[i])->name, value(k, s->args[i])->memory);
    return true;
}

static bool check_kernel(const checker *k, const prog_step *s)
{
    const tir_func *f = s->kernel ? prog_kernel_meaning(s->kernel) : NULL;
    bool ok = true;
    if (!s->kernel)
        return fault(k, s->loc, "a step without its kernel");
    if (!check_memories(k, s))
        return false;
    if (!f) /* its target will say */
        return true;
    if (s->n_args != f->n_params || s->n_in != f->n_inputs)
        return fault(k, s->loc, "kernel @%s has %u operands and %u results, not %u and %u", s->kernel->name,
                     f->n_inputs, f->n_params - f->n_inputs, s->n_in, s->n_args - s->n_in);
    for (uint32_t i = 0; i < s->n_args; i++)
        ok = check_operand(k, s, f, i) && ok;
    return ok;
}

static bool lies_in(const checker *k, const prog_step *s, uint32_t inner, uint32_t outer)
{
    if (value(k, inner)->base == outer)
        return true;
    return fault(k, s->loc, "%%%s does not lie in %%%s", value(k, inner)->name, value(k, outer)->name);
}

/* One operand behind the other, without holes: all of the result is written, and no byte twice. */
static bool check_join(const checker *k, const prog_step *s)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const prog_value *v = value(k, s->args[i]);
        if (!lies_in(k, s, s->args[i], s->args[s->n_in]))
            return false;
        if (v->offset != at)
            return fault(k, s->loc, "%%%s lies at %llu; what is joined before it ends at %llu", v->name,
                         (unsigned long long)v->offset, (unsigned long long)at);
        at += prog_bytes(v);
    }
    return at == prog_bytes(value(k, s->args[s->n_in])) ||
           fault(k, s->loc, "%llu bytes are joined, and %%%s has %llu", (unsigned long long)at,
                 value(k, s->args[s->n_in])->name, (unsigned long long)prog_bytes(value(k, s->args[s->n_in])));
}

/* --- what is made where --- */

static bool check_read(const checker *k, const prog_step *s, uint32_t v)
{
    const char *name = value(k, v)->name;
    switch (k->state[v]) {
    case VALUE_MADE:
    case VALUE_CARRIED: return true;
    case VALUE_GONE: return fault(k, s->loc, "%%%s is read where it is gone", name);
    case VALUE_ROWS:
    case VALUE_FILLED: return fault(k, s->loc, "%%%s is read in the loop that makes it", name);
    case VALUE_NEW:
    case VALUE_DUE: break;
    }
    return fault(k, s->loc, "%%%s is read before it is made", name);
}

/* Views of what is carried show the round before until the value is made again. */
static void end_views(checker *k, uint32_t carried)
{
    uint64_t start;
    for (uint32_t v = 0; v < k->f->values.len; v++)
        if (v != carried && k->state[v] == VALUE_MADE && prog_root(k->f, v, &start) == carried)
            k->state[v] = VALUE_GONE;
}

static void make_value(checker *k, uint32_t v, value_state before)
{
    if (before == VALUE_NEW)
        vec_push(&k->c->mem, &k->made, v);
    k->state[v] = before == VALUE_ROWS ? VALUE_FILLED : VALUE_MADE;
}

static bool check_written(const checker *k, const prog_step *s, uint32_t v)
{
    const prog_value *x = value(k, v);
    value_state now = k->state[v];
    if (now != VALUE_NEW && now != VALUE_DUE && now != VALUE_CARRIED && now != VALUE_ROWS)
        return fault(k, s->loc, "%%%s is made twice", x->name);
    if (s->kind != STEP_VIEW && (x->space == SPACE_INPUT || x->space == SPACE_CONSTANT))
        return fault(k, s->loc, "%%%s lies where nothing may be written", x->name);
    if (now == VALUE_CARRIED && x->space == SPACE_STATE && k->depth > 0)
        return fault(k, s->loc, "the state %%%s is made in a block: a run makes it once", x->name);
    if (now != VALUE_NEW && x->base != PROG_NONE)
        return fault(k, s->loc, "%%%s is made by several steps and lies in %%%s", x->name, value(k, x->base)->name);
    return true;
}

static bool check_block(checker *k, const prog_step *s, uint32_t b);

static bool check_condition(const checker *k, const prog_step *s)
{
    const prog_value *v = s->n_in > 0 ? value(k, s->args[0]) : NULL;
    return (v && v->type.dt == DT_BOOL && prog_bytes(v) == 1) ||
           fault(k, s->loc, "the condition of a step %s is one bool", prog_step_text(s->kind));
}

/* Both blocks make all results. */
static bool check_if(checker *k, const prog_step *s)
{
    if (s->n_blocks != 2 || s->n_in != 1)
        return fault(k, s->loc, "a step if has a condition and two blocks");
    if (!check_condition(k, s))
        return false;
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t i = s->n_in; i < s->n_args; i++)
            k->state[s->args[i]] = VALUE_DUE;
        if (!check_block(k, s, b))
            return false;
        for (uint32_t i = s->n_in; i < s->n_args; i++)
            if (k->state[s->args[i]] != VALUE_MADE)
                return fault(k, s->loc, "a branch does not make %%%s", value(k, s->args[i])->name);
    }
    return true;
}

/* The body makes all operands once more and all results once. */
static bool check_loop(checker *k, const prog_step *s)
{
    if (s->n_blocks != 1)
        return fault(k, s->loc, "a step loop has one block");
    if (!check_condition(k, s))
        return false;
    for (uint32_t i = 0; i < s->n_args; i++) {
        const prog_value *v = value(k, s->args[i]);
        if (i < s->n_in && (k->state[s->args[i]] != VALUE_MADE || v->base != PROG_NONE || v->space == SPACE_INPUT ||
                            v->space == SPACE_CONSTANT))
            return fault(k, s->loc, "%%%s cannot be carried: it is %s", v->name,
                         k->state[s->args[i]] != VALUE_MADE ? "carried twice" : "not written by steps alone");
        k->state[s->args[i]] = i < s->n_in ? VALUE_CARRIED : VALUE_ROWS;
    }
    if (!check_block(k, s, 0))
        return false;
    for (uint32_t i = 0; i < s->n_args; i++)
        if (k->state[s->args[i]] != (i < s->n_in ? VALUE_MADE : VALUE_FILLED))
            return fault(k, s->loc, "the loop does not make %%%s", value(k, s->args[i])->name);
    return true;
}

static bool check_inside(checker *k, const prog_step *s)
{
    switch (s->kind) {
    case STEP_KERNEL: return check_kernel(k, s);
    case STEP_VIEW: return check_host(k, s) && lies_in(k, s, s->args[1], s->args[0]);
    case STEP_JOIN: return check_host(k, s) && check_join(k, s);
    case STEP_COPY: return check_copy(k, s);
    case STEP_IF: return check_host(k, s) && check_if(k, s);
    case STEP_LOOP: return check_host(k, s) && check_loop(k, s);
    }
    return false;
}

/* An operator may write a state over itself. */
static bool writes_over(const checker *k, const prog_step *s, uint32_t in, uint32_t out)
{
    const prog_value *v = value(k, s->args[out]);
    uint64_t start;
    return is_root_in(v, SPACE_STATE) && prog_root(k->f, s->args[in], &start) == s->args[out] &&
           start == 0 && prog_bytes(value(k, s->args[in])) == prog_bytes(v) &&
           prog_writes_over(k->c, s->kernel, in, out) != PROG_OVER_NEVER;
}

/* Only views and joins have operands and results in the same bytes. */
static bool check_apart(const checker *k, const prog_step *s)
{
    for (uint32_t i = 0; i < s->n_in && s->kind == STEP_KERNEL; i++)
        for (uint32_t r = s->n_in; r < s->n_args; r++) {
            uint64_t a, b, n = prog_bytes(value(k, s->args[i])), m = prog_bytes(value(k, s->args[r]));
            if (prog_root(k->f, s->args[i], &a) == prog_root(k->f, s->args[r], &b) && a < b + m && b < a + n &&
                !writes_over(k, s, i, r))
                return fault(k, s->loc, "%%%s is read where %%%s is written", value(k, s->args[i])->name,
                             value(k, s->args[r])->name);
        }
    return true;
}

static bool check_step(checker *k, const prog_step *s)
{
    uint32_t n_values = k->f->values.len;
    const bool one = s->kind == STEP_VIEW || s->kind == STEP_COPY;
    if ((one || s->kind == STEP_JOIN) && (s->n_args != s->n_in + 1 || (one && s->n_in != 1)))
        return fault(k, s->loc, "a %s with %u operands and %u results", prog_step_text(s->kind), s->n_in,
                     s->n_args - s->n_in);
    value_state *before = arena_array(&k->c->mem, value_state, s->n_args + 1u);
    for (uint32_t i = 0; i < s->n_args; i++) {
        if (s->args[i] >= n_values)
            return fault(k, s->loc, "a %s of a value that is not there", prog_step_text(s->kind));
        if (i < s->n_in ? !check_read(k, s, s->args[i]) : !check_written(k, s, s->args[i]))
            return false;
        before[i] = k->state[s->args[i]];
        for (uint32_t r = s->n_in; r < i; r++)
            if (s->args[r] == s->args[i])
                return fault(k, s->loc, "%%%s is made twice", value(k, s->args[i])->name);
        if (i >= s->n_in && before[i] == VALUE_CARRIED)
            end_views(k, s->args[i]);
    }
    if (!check_apart(k, s) || !check_inside(k, s))
        return false;
    for (uint32_t i = s->n_in; i < s->n_args; i++)
        make_value(k, s->args[i], before[i]);
    return true;
}

static bool check_steps(checker *k, const prog_block *b)
{
    for (uint32_t i = 0; i < b->len; i++)
        if (!check_step(k, &b->data[i]))
            return false;
    return true;
}

/* What a block makes is gone behind it. */
static bool check_block(checker *k, const prog_step *s, uint32_t b)
{
    uint32_t first = k->made.len;
    if (k->depth == PROG_MAX_DEPTH)
        return fault(k, s->loc, "blocks are nested more than %u deep", PROG_MAX_DEPTH);
    k->depth++;
    bool ok = check_steps(k, &s->blocks[b]);
    k->depth--;
    for (uint32_t i = first; i < k->made.len; i++)
        k->state[k->made.data[i]] = VALUE_GONE;
    k->made.len = first;
    return ok;
}

static bool check_result(const checker *k, uint32_t i)
{
    uint64_t start;
    uint32_t v = k->f->results.data[i].value;
    if (v >= k->f->values.len || k->state[v] != VALUE_MADE)
        return fault(k, src_loc_none(), "result %u is not made", i);
    const prog_value *root = value(k, prog_root(k->f, v, &start));
    if (root->memory)
        return fault(k, src_loc_none(), "the result %%%s lies in %s: a step copies it", value(k, v)->name,
                     root->memory);
    if (root->space != SPACE_OUTPUT || root->index != i || start != 0 || prog_bytes(root) != prog_bytes(value(k, v)))
        return fault(k, src_loc_none(), "the result %%%s has no bytes of its own", value(k, v)->name);
    return true;
}

static bool verify_func(compiler *c, const prog_func *f)
{
    checker k = {.c = c, .f = f, .state = arena_array(&c->mem, value_state, f->values.len)};
    if (!check_values(&k) || !check_steps(&k, &f->steps))
        return false;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (k.state[i] == VALUE_NEW)
            return fault(&k, src_loc_none(), "%%%s is never made", f->values.data[i].name);
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!check_result(&k, i))
            return false;
    return true;
}

static bool verify_kernels(compiler *c, const prog_module *m)
{
    ptr_map names;
    uint32_t other;
    ptr_map_init(&names, &c->mem);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        const char *name = intern(c->names, k->name);
        if (ptr_map_get(&names, name, &other))
            return diag_error(&c->diags, DIAG_VERIFY, src_loc_none(), "two kernels have the name @%s", name);
        ptr_map_set(&names, name, i);
        if ((k->plain && !tir_verify(c, k->plain)) || (k->loops && !tir_verify(c, k->loops)))
            return false;
    }
    return true;
}

bool prog_verify(compiler *c, const prog_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!verify_func(c, m->funcs.data[i]))
            return false;
    return verify_kernels(c, m) && prog_verify_shapes(c, m);
}
