/* SPDX-License-Identifier: Apache-2.0 */
/* Memory instructions of the interpreter: loads, stores and reductions into one element. Every access is checked
 * against its dimension before memory is touched; elements are read and written by memcpy, so any alignment will do. */
#include "tir/eval.h"
#include "tir/interp.h"

#include <inttypes.h>

#define REG(T, offset) ((T *)(void *)(f->regs + (offset)))

/* --- addresses --- */

static bool outside(frame *f, const mem_access *x, uint32_t d, int64_t index)
{
    const tir_buffer *b = x->at->buffer;
    int64_t extent = x->is_flat ? x->at->span : x->at->dims[d];
    return diag_error(&f->c->diags, DIAG_INTERNAL, f->func->loc,
                      "%s: index %" PRId64 " of buffer '%s' lies outside dimension %u of extent %" PRId64,
                      f->func->name, index, b->name, d, extent);
}

/* First element and step of an access whose lanes are evenly spaced; false: outside (reported), or, under a mask,
 * possibly outside in lanes that are off (*out_step is INT64_MIN then, nothing reported). */
static bool locate(frame *f, const instr *in, uint32_t n, int64_t *out_first, int64_t *out_step)
{
    const mem_access *x = in->access;
    const slot *s = x->at;
    int64_t first = x->is_flat ? 0 : s->offset, step = 0;
    for (uint32_t d = 0; d < x->n; d++) {
        int64_t extent = x->is_flat ? s->span : s->dims[d], stride = x->is_flat ? 1 : s->strides[d];
        int64_t low = *REG(const int64_t, x->regs[d]), high, reach;
        bool fits = i64_mul(x->steps[d], (int64_t)n - 1, &reach) && i64_add(low, reach, &high);
        if (!fits || low < 0 || low >= extent || high < 0 || high >= extent) {
            *out_step = INT64_MIN;
            return in->mask == NO_REG ? outside(f, x, d, fits && low >= 0 && low < extent ? high : low) : false;
        }
        first += low * stride; /* within the span, which was checked to fit */
        step += x->steps[d] * stride;
    }
    *out_first = first;
    *out_step = step;
    return true;
}

/* Element of one lane. */
static bool locate_lane(frame *f, const instr *in, uint32_t lane, int64_t *out)
{
    const mem_access *x = in->access;
    const slot *s = x->at;
    int64_t at = x->is_flat ? 0 : s->offset;
    for (uint32_t d = 0; d < x->n; d++) {
        int64_t extent = x->is_flat ? s->span : s->dims[d], index;
        if (x->per_lane)
            index = REG(const int64_t, x->regs[d])[lane];
        else
            index = eval_add(*REG(const int64_t, x->regs[d]), eval_mul(x->steps[d], (int64_t)lane));
        if (index < 0 || index >= extent)
            return outside(f, x, d, index);
        at += index * (x->is_flat ? 1 : s->strides[d]);
    }
    *out = at;
    return true;
}

bool interp_lies_inside(frame *f, const mem_access *x)
{
    bool inside = true;
    for (uint32_t d = 0; d < x->n; d++) {
        const int64_t index = *REG(const int64_t, x->regs[d]);
        inside &= index >= 0 && index < (x->is_flat ? x->at->span : x->at->dims[d]);
    }
    return inside;
}

bool interp_locate(frame *f, const mem_access *x, int64_t *out)
{
    const instr one = {.access = x, .mask = NO_REG};
    return locate_lane(f, &one, 0, out);
}

static bool all_on(frame *f, const instr *in, uint32_t n)
{
    const int64_t *mask = REG(const int64_t, in->mask);
    for (uint32_t i = 0; i < n; i++)
        if (!mask[i])
            return false;
    return true;
}

static bool all_off(frame *f, const instr *in, uint32_t n)
{
    const int64_t *mask = REG(const int64_t, in->mask);
    for (uint32_t i = 0; i < n; i++)
        if (mask[i])
            return false;
    return true;
}

/* Whether the whole strip can be done at once: no mask that matters, evenly spaced, inside. *out_ok: no error. */
static bool is_even(frame *f, const instr *in, uint32_t n, int64_t *out_first, int64_t *out_step, bool *out_ok)
{
    *out_ok = true;
    if (in->access->per_lane || (in->mask != NO_REG && !all_on(f, in, n)))
        return false;
    if (locate(f, in, n, out_first, out_step))
        return true;
    *out_ok = in->mask != NO_REG; /* with a mask that is all on, the slow way finds the lane and reports it */
    return false;
}

/* --- element types: X(dtype, storage type, register type, read, write) --- */

#define ELEMENTS(X)                                                         \
    X(DT_F32, float, float, v, v)                                           \
    X(DT_F64, double, double, v, v)                                         \
    X(DT_F16, uint16_t, float, dtype_f16_to_f32(v), dtype_f32_to_f16(v))    \
    X(DT_BF16, uint16_t, float, dtype_bf16_to_f32(v), dtype_f32_to_bf16(v)) \
    X(DT_I8, int8_t, int64_t, v, (int8_t)v)                                 \
    X(DT_U8, uint8_t, int64_t, v, (uint8_t)v)                               \
    X(DT_I16, int16_t, int64_t, v, (int16_t)v)                              \
    X(DT_U16, uint16_t, int64_t, v, (uint16_t)v)                            \
    X(DT_I32, int32_t, int64_t, v, (int32_t)v)                              \
    X(DT_U32, uint32_t, int64_t, v, (uint32_t)v)                            \
    X(DT_I64, int64_t, int64_t, v, v)                                       \
    X(DT_U64, int64_t, int64_t, v, v)                                       \
    X(DT_BOOL, uint8_t, int64_t, v != 0, v != 0)

#define LOAD(id, S, R, get, put)                                                      \
    static inline R get_##id(const uint8_t *p)                                        \
    {                                                                                 \
        S v;                                                                          \
        memcpy(&v, p, sizeof v);                                                      \
        return get;                                                                   \
    }                                                                                 \
    static inline void put_##id(uint8_t *p, R v)                                      \
    {                                                                                 \
        S s = (S)(put);                                                               \
        memcpy(p, &s, sizeof s);                                                      \
    }                                                                                 \
    static bool load_lanes_##id(frame *f, const instr *in, uint32_t n)                \
    {                                                                                 \
        R *d = REG(R, in->dst);                                                       \
        for (uint32_t i = 0; i < n; i++) {                                            \
            int64_t at;                                                               \
            d[i] = 0;                                                                 \
            if (in->mask != NO_REG && !REG(const int64_t, in->mask)[i])               \
                continue;                                                             \
            if (!locate_lane(f, in, i, &at))                                          \
                return false;                                                         \
            d[i] = get_##id(in->access->at->base + (size_t)at * sizeof(S));           \
        }                                                                             \
        return true;                                                                  \
    }                                                                                 \
    static bool load_##id(frame *f, const instr *in, uint32_t n)                      \
    {                                                                                 \
        R *restrict d = REG(R, in->dst);                                              \
        int64_t first, step;                                                          \
        bool ok;                                                                      \
        if (!is_even(f, in, n, &first, &step, &ok)) {                                 \
            if (ok && all_off(f, in, n))                                              \
                return memset(d, 0, n * sizeof *d), true;                             \
            return ok && load_lanes_##id(f, in, n);                                   \
        }                                                                             \
        const uint8_t *restrict p = in->access->at->base + (size_t)first * sizeof(S); \
        if (step == 1) {                                                              \
            for (uint32_t i = 0; i < n; i++)                                          \
                d[i] = get_##id(p + (size_t)i * sizeof(S));                           \
        } else {                                                                      \
            for (uint32_t i = 0; i < n; i++)                                          \
                d[i] = get_##id(p + (ptrdiff_t)i * step * (ptrdiff_t)sizeof(S));      \
        }                                                                             \
        return true;                                                                  \
    }                                                                                 \
    static bool store_lanes_##id(frame *f, const instr *in, uint32_t n)               \
    {                                                                                 \
        const R *x = REG(const R, in->a);                                             \
        for (uint32_t i = 0; i < n; i++) {                                            \
            int64_t at;                                                               \
            if (in->mask != NO_REG && !REG(const int64_t, in->mask)[i])               \
                continue;                                                             \
            if (!locate_lane(f, in, i, &at))                                          \
                return false;                                                         \
            put_##id(in->access->at->base + (size_t)at * sizeof(S), x[i]);            \
        }                                                                             \
        return true;                                                                  \
    }                                                                                 \
    static bool store_##id(frame *f, const instr *in, uint32_t n)                     \
    {                                                                                 \
        const R *restrict x = REG(const R, in->a);                                    \
        int64_t first, step;                                                          \
        bool ok;                                                                      \
        if (!is_even(f, in, n, &first, &step, &ok))                                   \
            return ok && store_lanes_##id(f, in, n);                                  \
        uint8_t *restrict p = in->access->at->base + (size_t)first * sizeof(S);       \
        if (step == 1) {                                                              \
            for (uint32_t i = 0; i < n; i++)                                          \
                put_##id(p + (size_t)i * sizeof(S), x[i]);                            \
        } else {                                                                      \
            for (uint32_t i = 0; i < n; i++)                                          \
                put_##id(p + (ptrdiff_t)i * step * (ptrdiff_t)sizeof(S), x[i]);       \
        }                                                                             \
        return true;                                                                  \
    }
ELEMENTS(LOAD)

static const instr_fn loads[DT_COUNT] = {
#define X(id, S, R, get, put) [id] = load_##id,
    ELEMENTS(X)
#undef X
};
static const instr_fn lane_loads[DT_COUNT] = {
#define X(id, S, R, get, put) [id] = load_lanes_##id,
    ELEMENTS(X)
#undef X
};
static const instr_fn stores[DT_COUNT] = {
#define X(id, S, R, get, put) [id] = store_##id,
    ELEMENTS(X)
#undef X
};
static const instr_fn lane_stores[DT_COUNT] = {
#define X(id, S, R, get, put) [id] = store_lanes_##id,
    ELEMENTS(X)
#undef X
};

instr_fn interp_load(dtype dt, bool per_lane)
{
    return per_lane ? lane_loads[dt] : loads[dt];
}
instr_fn interp_store(dtype dt, bool per_lane)
{
    return per_lane ? lane_stores[dt] : stores[dt];
}

/* --- reductions: lane after lane, in order, so that the result is that of the plain loop --- */

static bool reduce_target(frame *f, const instr *in, uint32_t n, uint8_t **out)
{
    int64_t at;
    *out = NULL;
    if (in->mask != NO_REG && all_off(f, in, n))
        return true;
    if (!locate_lane(f, in, 0, &at))
        return false;
    *out = in->access->at->base + (size_t)at * dtype_bytes(in->dt);
    return true;
}

#define REDUCE(name, id, R, value)                                                      \
    static bool name(frame *f, const instr *in, uint32_t n)                             \
    {                                                                                   \
        uint8_t *p;                                                                     \
        if (!reduce_target(f, in, n, &p))                                               \
            return false;                                                               \
        if (!p)                                                                         \
            return true;                                                                \
        const R *x = REG(const R, in->a);                                               \
        const int64_t *mask = in->mask == NO_REG ? NULL : REG(const int64_t, in->mask); \
        R acc = get_##id(p);                                                            \
        for (uint32_t i = 0; i < n; i++) {                                              \
            const R y = x[i];                                                           \
            if (!mask || mask[i])                                                       \
                acc = value;                                                            \
        }                                                                               \
        put_##id(p, acc);                                                               \
        return true;                                                                    \
    }
REDUCE(sum_f32, DT_F32, float, acc + y)
REDUCE(max_f32, DT_F32, float, in->access->acc_right ? eval_fmaxf(y, acc) : eval_fmaxf(acc, y))
REDUCE(min_f32, DT_F32, float, in->access->acc_right ? eval_fminf(y, acc) : eval_fminf(acc, y))
REDUCE(sum_f64, DT_F64, double, acc + y)
REDUCE(sum_i32, DT_I32, int64_t, (int32_t)eval_add(acc, y))
REDUCE(sum_i64, DT_I64, int64_t, eval_add(acc, y))

/* Any other operator, through the single-value definitions. */
static bool reduce_any(frame *f, const instr *in, uint32_t n)
{
    uint8_t *p;
    if (!reduce_target(f, in, n, &p))
        return false;
    const int64_t *mask = in->mask == NO_REG ? NULL : REG(const int64_t, in->mask);
    reg_class k = reg_class_of(in->dt);
    bool right = in->access->acc_right;
    for (uint32_t i = 0; p && i < n; i++) {
        if (mask && !mask[i])
            continue;
        if (k == REG_I) {
            int64_t acc = dtype_load_i64(in->dt, p), y = REG(const int64_t, in->a)[i];
            dtype_store_i64(in->dt, p, tir_eval_int(in->dt, in->access->op, right ? y : acc, right ? acc : y));
        } else {
            double acc = dtype_load_f64(in->dt, p),
                   y = k == REG_F ? (double)REG(const float, in->a)[i] : REG(const double, in->a)[i];
            dtype_store_f64(in->dt, p, tir_eval_float(in->dt, in->access->op, right ? y : acc, right ? acc : y));
        }
    }
    return true;
}

instr_fn interp_reduce(dtype dt, tir_op op)
{
    if (tir_op_is_compare(op))
        return NULL;
    if (op == TIR_ADD && dt == DT_F32)
        return sum_f32;
    if (op == TIR_ADD && dt == DT_F64)
        return sum_f64;
    if (op == TIR_ADD && dt == DT_I32)
        return sum_i32;
    if (op == TIR_ADD && dt == DT_I64)
        return sum_i64;
    if (op == TIR_MAX && dt == DT_F32)
        return max_f32;
    return op == TIR_MIN && dt == DT_F32 ? min_f32 : reduce_any;
}
