/* SPDX-License-Identifier: Apache-2.0 */
/* widen-halves: vectors compute in f32, and conversions of f16 are instructions beside the arithmetic. So on processors
 * with vectors operators on f16 compute on f32, by the schedules that f32 has, and what they exchange is not rounded to
 * f16: only parameters, results, and operands of what stays are. onnxruntime's CPU does the same. Constants become f32
 * when they are folded, twice as many bytes.
 *
 * A node whose results are not f16 (a comparison, an index of the largest) sees its operands rounded, as the model has
 * them: there the last bits decide. Moves are as wide as what they move. */
#include "graph/pass.h"
#include "graph/pass/twins.h"

#include <string.h>

static bool is_half(const graph_value *x)
{
    return x && x->type.kind == TYPE_TENSOR && x->type.dt == DT_F16;
}

static graph_value *cast_to(twins *t, graph_value *x, dtype dt, src_loc loc)
{
    attr to = attr_dtype(t->r.c, "dtype", dt);
    return x ? rewrite_emit(&t->r, "cast", 1, &x, 1, &to, loc) : NULL;
}

static graph_value *back(twins *t, const graph_value *x, graph_value *other, src_loc loc)
{
    (void)x;
    return cast_to(t, other, DT_F16, loc);
}

static graph_value *wide(twins *t, graph_value *x, src_loc loc)
{
    const twin known = *twins_of(t, x);
    if (known.other)
        return known.other;
    graph_value *y = cast_to(t, known.plain, DT_F32, loc);
    return twins_of(t, x)->other = y;
}

/* Arithmetic: whatever sees bits, or is told the type of its result, is none. */
static bool is_arithmetic(const graph_node *n)
{
    static const char *const others[] = {"cast", "bit_cast", "decode_float", "fft"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(n->op->name, others[i]) == 0)
            return false;
    if (strncmp(n->op->name, "qnn.", 4) == 0)
        return false;
    static const char *const more[] = {"resize", "grid_sample", "nn.roi_align", "cumsum", "cumprod"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strcmp(n->op->name, more[i]) == 0)
            return true;
    return n->op->cls != CLASS_OPAQUE && n->op->cls != CLASS_INJECTIVE;
}

/* A move of what is there in f32 alone, and of constants beside it. */
static bool is_move(twins *t, const graph_node *n)
{
    bool any = false;
    if (n->op->cls != CLASS_INJECTIVE)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        if (!is_half(n->inputs[i]) || graph_constant(n->inputs[i]))
            continue;
        if (twins_of(t, n->inputs[i])->plain)
            return false;
        any = true;
    }
    return any;
}

static bool reads_halves(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (is_half(n->inputs[i]))
            return true;
    return false;
}

/* Of one result; others have types of their own. */
static bool widens(twins *t, const graph_node *n)
{
    if (n->op->effect != EFFECT_PURE || (n->op->flags & OPF_CALL) || !reads_halves(n))
        return false;
    for (uint32_t i = 1; i < n->n_outputs; i++)
        if (n->outputs[i]->mark)
            return false;
    return is_arithmetic(n) || (is_half(n->outputs[0]) && is_move(t, n));
}

static bool convert(twins *t, graph_node *n, bool *done)
{
    if (!widens(t, n))
        return true;
    graph_value **in = arena_array(&t->scratch, graph_value *, n->n_inputs);
    const bool rounds = is_half(n->outputs[0]);
    *done = true;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        graph_value *x = n->inputs[i];
        if (!x)
            continue;
        if (is_half(x) && rounds)
            in[i] = wide(t, x, n->loc);
        else
            in[i] = twins_plain(t, x, n->loc);
        if (is_half(x) && !rounds)
            in[i] = cast_to(t, in[i], DT_F32, n->loc);
        if (!in[i])
            return false;
    }
    graph_value *y = rewrite_emit(&t->r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc);
    return rounds ? twins_set(t, n, y) : twins_set_plain(t, n, y);
}

static bool run(compiler *c, graph_func *f)
{
    twins t = {.back = back, .convert = convert}; /* the other form: f32, not rounded to f16 */
    twins_begin(&t, c, f);
    return twins_end(&t, twins_walk(&t));
}

bool graph_pass_widen_halves(compiler *c, graph_module *m, const pass_options *o)
{
    const bool has_vectors = o->target->vector_bytes > 0 && (o->target->features & TARGET_MVE) == 0;
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && has_vectors && !o->offload; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
