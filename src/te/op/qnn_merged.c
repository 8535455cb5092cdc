/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of codes in fewer steps than their definition has. Each operator between DequantizeLinear and
 * QuantizeLinear rounds to f32: two products, a sum and a division; onnxruntime's kernel has the zero point inside, and
 * numbers that are 128 more. A sum of two products by the quotients of the scales rounds elsewhere, and where a result
 * is near the middle of two codes it may become the other one. There are only 65,536 pairs of codes, though: whether
 * the shorter form gives the same code for all of them is tried out here, for those near a tie where a bound of both
 * forms' roundings says that others cannot differ. Mostly it does, or does with an offset that
 * is moved by a few units of the last place; where scales make many ties (0.1, 0.1 and 0.2 in steps) it does not, and
 * the definition stays. */
#include "te/op/qnn_round.h"

#include <math.h>

#define FAR     1024.0f     /* beyond every code and zero point */
#define TO_EVEN 12582912.0f /* 1.5 * 2^23: behind this sum f32 has no fraction */
#define NEAR    0x1p-10f    /* from a tie */
#define MOST_NEAR 512
/* Both forms round less than eight times what is at most 255 times the sum of the quotients, and twice that for an
 * offset, which is moved by 2^-15: with quotients whose sum is below this they are less than NEAR apart. A product's
 * error is a part of the product. */
#define MOST_QUOTIENTS 3
#define UNITS   8      /* an offset is moved by so many at most */
#define UNIT    0x1p-18 /* of the last place of what is below 64 */

/* What both operands are in f32, by code from the least one: dequantized, or as the kernel has them. */
typedef struct pairs {
    const qnn_steps *s;
    int64_t least, most;
    float a[256], b[256];
    float ka, kb, offset; /* of the kernel; ka: of a product as well */
    uint32_t n_near;
    struct {
        uint8_t a, b;
    } near[MOST_NEAR];
    bool only_near; /* no other pair can differ */
} pairs;

/* Rounded, and moved by an integer. */
static int64_t code_of(const pairs *p, float y, int64_t by)
{
    y = y > -FAR ? y : -FAR;
    y = y < FAR ? y : FAR;
    const volatile float up = y + TO_EVEN;
    const int64_t code = (int64_t)(up - TO_EVEN) + by;
    return code < p->least ? p->least : code > p->most ? p->most : code;
}

/* What the definition rounds. */
static float defined(const pairs *p, uint32_t a, uint32_t b)
{
    if (p->s->in_steps) {
        const volatile float y = p->s->product ? p->a[a] * p->b[b] : p->a[a] + p->b[b];
        return y / p->s->y;
    }
    const volatile float y = p->s->product ? p->a[a] * p->b[b] * p->ka : fmaf(p->b[b], p->kb, p->offset);
    return p->s->product ? y + p->offset : fmaf(p->a[a], p->ka, y);
}

static int64_t defined_code(const pairs *p, uint32_t a, uint32_t b)
{
    return code_of(p, defined(p, a, b), p->s->in_steps ? p->s->y_zero : -p->s->offset);
}

static bool is_scale(float x)
{
    return fabsf(x) > 0x1p-30f && fabsf(x) < 0x1p30f;
}

static bool prepare(pairs *p, const qnn_steps *s)
{
    *p = (pairs){.s = s, .least = dtype_min_int(s->dt), .most = dtype_max_int(s->dt)};
    if (dtype_bits(s->dt) != 8 || !is_scale(s->a) || !is_scale(s->b) || !is_scale(s->y))
        return false;
    const int64_t a_zero = s->a_zero + s->offset, b_zero = s->b_zero + s->offset;
    p->ka = s->product ? s->a * s->b / s->y : s->a / s->y;
    p->kb = s->b / s->y;
    const volatile float zeros = p->kb * (float)b_zero;
    p->offset = (float)(s->y_zero + s->offset) - (s->product ? 0 : fmaf((float)a_zero, p->ka, zeros));
    for (uint32_t i = 0; i < 256; i++) {
        const int64_t code = p->least + i;
        const bool centred = s->in_steps || s->product;
        p->a[i] = (float)(centred ? code - s->a_zero : code + s->offset) * (s->in_steps ? s->a : 1);
        p->b[i] = (float)(centred ? code - s->b_zero : code + s->offset) * (s->in_steps ? s->b : 1);
    }
    for (uint32_t i = 0; i < 65536 && p->n_near < MOST_NEAR; i++) {
        const float q = defined(p, i / 256, i % 256);
        if (fabsf(q) < FAR && fabsf(q - floorf(q) - 0.5f) < NEAR) {
            p->near[p->n_near].a = (uint8_t)(i / 256);
            p->near[p->n_near++].b = (uint8_t)(i % 256);
        }
    }
    p->only_near = p->n_near < MOST_NEAR && (s->product || s->a / s->y + fabsf(s->b) / s->y < MOST_QUOTIENTS);
    return true;
}

static bool sum_is_right(const pairs *p, const qnn_merged *m, uint32_t a, uint32_t b)
{
    const float x = (float)(p->least + a), y = (float)(p->least + b);
    const float sum = m->swapped ? fmaf(y, m->b, fmaf(x, m->a, m->offset)) : fmaf(x, m->a, fmaf(y, m->b, m->offset));
    return code_of(p, sum, p->s->y_zero) == defined_code(p, a, b);
}

static bool product_is_right(const pairs *p, const qnn_merged *m, uint32_t a, uint32_t b)
{
    const float product = (float)((p->least + a - p->s->a_zero) * (p->least + b - p->s->b_zero));
    return code_of(p, product * m->a, p->s->y_zero) == defined_code(p, a, b);
}

static bool is_right(const pairs *p, const qnn_merged *m)
{
    bool (*right)(const pairs *, const qnn_merged *, uint32_t, uint32_t) =
        p->s->product ? product_is_right : sum_is_right;
    for (uint32_t i = 0; i < p->n_near; i++)
        if (!right(p, m, p->near[i].a, p->near[i].b))
            return false;
    for (uint32_t i = 0; i < 65536 && !p->only_near; i++)
        if (!right(p, m, i / 256, i % 256))
            return false;
    return true;
}

bool qnn_merge_steps(const qnn_steps *s, qnn_merged *out)
{
    pairs p;
    if (!prepare(&p, s))
        return false;
    const double a = (double)s->a / (double)s->y, b = (double)s->b / (double)s->y;
    const double offset = -(a * (double)s->a_zero + b * (double)s->b_zero);
    for (int i = 0; i < 4 * UNITS + 2; i++) {
        const double moved = (double)((i + 2) / 4) * (i / 2 % 2 ? UNIT : -UNIT);
        *out = (qnn_merged){(float)a, (float)b, (float)(offset + moved), i % 2 != 0};
        if (s->product)
            out->a = (float)((double)s->b * a * (1 + moved * 0x1p-5)); /* by half a unit of its last place, or one */
        if (!(s->product && out->swapped) && is_right(&p, out))
            return true;
    }
    return false;
}
