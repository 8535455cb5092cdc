/* main.c: runs model "default" once on its fixed input pattern, on a board without files or arguments, and prints its
 * outputs. printf goes where the board's C library sends it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmgen_default.h"
#include "tvmrt.h"

#include <stdio.h>
#include <string.h>

/* An input or output. Kinds: 'f' float, 'b' bfloat, 'i' signed, 'u' unsigned, '?' bool. */
struct tensor {
    const char *name;
    const char *dtype;
    char kind;
    unsigned bits;
    unsigned rank;
    const int64_t *shape;
    unsigned char *data;
    size_t size; /* bytes */
};

TVMRT_ALIGNED(64) static unsigned char input_0[TVMGEN_DEFAULT_INPUT_SIZE];
TVMRT_ALIGNED(64) static unsigned char output_0[TVMGEN_DEFAULT_OUTPUT_SIZE];

static const int64_t input_0_shape[] = {1};
static const int64_t output_0_shape[] = {1};

static const struct tensor inputs[] = {
    {"input", "float32", 'f', 32, 1, input_0_shape, input_0, sizeof input_0},
};
static const struct tensor outputs[] = {
    {"output", "float32", 'f', 32, 1, output_0_shape, output_0, sizeof output_0},
};

enum { NUM_INPUTS = TVMGEN_DEFAULT_NUM_INPUTS, NUM_OUTPUTS = TVMGEN_DEFAULT_NUM_OUTPUTS, SHOWN = 8 };

static size_t element_bytes(const struct tensor *t)
{
    return (t->bits + 7) / 8;
}

static size_t element_count(const struct tensor *t)
{
    size_t n = 1;
    unsigned i;

    for (i = 0; i < t->rank; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* k / 128 - 1 for k in 0..255: exact in every floating type. */
static float pattern_float(size_t i)
{
    return (float)((i * 37 + 11) % 256) / 128.0f - 1.0f;
}

/* IEEE half of a value of pattern_float. */
static uint16_t pattern_half(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) == 0)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000u) | ((((bits >> 23 & 0xFFu) - 112u) << 10) | (bits >> 13 & 0x3FFu)));
}

/* The fixed pattern of element i: floats in [-1, 1), 8-bit integers all values, wider ones 0 and 1. */
static void fill_element(const struct tensor *t, size_t i)
{
    unsigned char *at = t->data + i * element_bytes(t);
    float value = pattern_float(i);
    double wide = (double)value;
    uint32_t bits;
    uint16_t half;

    memset(at, 0, element_bytes(t));
    if (t->kind == 'f' && t->bits == 64) {
        memcpy(at, &wide, sizeof wide);
    } else if (t->kind == 'f' && t->bits == 32) {
        memcpy(at, &value, sizeof value);
    } else if (t->kind == 'f' && t->bits == 16) {
        half = pattern_half(value);
        memcpy(at, &half, sizeof half);
    } else if (t->kind == 'b') {
        memcpy(&bits, &value, sizeof bits);
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, sizeof half);
    } else if (t->bits == 8 && t->kind != '?') {
        at[0] = (unsigned char)(i * 37 + 11);
    } else {
        at[0] = (unsigned char)(i & 1);
    }
}

static double half_value(uint16_t bits)
{
    double fraction = (double)(bits & 0x3FF) / 1024.0;
    int exponent = bits >> 10 & 0x1F;
    double value = exponent == 0 ? fraction / 16384.0 : 1.0 + fraction;

    if (exponent == 31)
        value = 1e300 * 1e300;
    for (; exponent > 15 && exponent < 31; exponent--)
        value *= 2.0;
    for (; exponent > 0 && exponent < 15; exponent++)
        value /= 2.0;
    return bits & 0x8000 ? -value : value;
}

static double integer_value(const unsigned char *at, unsigned bytes, int is_signed)
{
    uint64_t bits = 0;
    unsigned i;

    for (i = 0; i < bytes; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    if (is_signed && bytes > 0 && (at[bytes - 1] & 0x80) != 0)
        return -(double)(~(bits | (bytes < 8 ? UINT64_MAX << 8 * bytes : 0)) + 1);
    return (double)bits;
}

static double element_value(const struct tensor *t, size_t i)
{
    const unsigned char *at = t->data + i * element_bytes(t);
    uint32_t bits;
    uint16_t half;
    double wide;
    float value;

    if (t->kind == 'f' && t->bits == 64) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    if (t->kind == 'f' && t->bits == 32) {
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    if ((t->kind == 'f' && t->bits == 16) || t->kind == 'b') {
        memcpy(&half, at, sizeof half);
        if (t->kind == 'f')
            return half_value(half);
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    return integer_value(at, (unsigned)element_bytes(t), t->kind == 'i');
}

/* name dtype [shape] range min..max first: v v v */
static void print_tensor(const struct tensor *t)
{
    size_t n = element_count(t), i;
    double low = 0, high = 0;

    for (i = 0; i < n; i++) {
        double v = element_value(t, i);

        low = i == 0 || v < low ? v : low;
        high = i == 0 || v > high ? v : high;
    }
    printf("%s %s [", t->name, t->dtype);
    for (i = 0; i < t->rank; i++)
        printf("%s%ld", i > 0 ? "," : "", (long)t->shape[i]);
    printf("] range %.9g..%.9g first:", low, high);
    for (i = 0; i < n && i < SHOWN; i++)
        printf(" %.9g", element_value(t, i));
    printf("\n");
}

int main(void)
{
    struct tvmgen_default_inputs in = {input_0};
    struct tvmgen_default_outputs out = {output_0};
    int32_t status;
    size_t i, k;

    for (i = 0; i < NUM_INPUTS; i++)
        for (k = 0; k < element_count(&inputs[i]); k++)
            fill_element(&inputs[i], k);
    status = tvmgen_default_run(&in, &out);
    if (status != 0) {
        printf("default: %s\n", tvmrt_status_text(status));
        return 1;
    }
    for (i = 0; i < NUM_OUTPUTS; i++)
        print_tensor(&outputs[i]);
    return 0;
}
