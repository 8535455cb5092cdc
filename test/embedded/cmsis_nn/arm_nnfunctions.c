/* arm_nnfunctions.c: a stand-in for CMSIS-NN in tests: the same arguments, checked, and the documented arithmetic
 * (a product of 32 bits by a multiplier of 31, rounded, then a shift, rounded again).
 * SPDX-License-Identifier: Apache-2.0 */
#include "arm_nnfunctions.h"

#include <stddef.h>
#include <string.h>

static int32_t requantize(int32_t v, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
    const int64_t product = (int64_t)((uint32_t)v << left);
    int32_t high = (int32_t)(((int64_t)(int32_t)product * multiplier + (INT64_C(1) << 30)) >> 31);
    const int32_t mask = (int32_t)((INT64_C(1) << right) - 1), rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0));
}

static int8_t clamp(int32_t v, cmsis_nn_activation a)
{
    return (int8_t)(v < a.min ? a.min : v > a.max ? a.max : v);
}

/* The scratch is the callee's: what is in it is lost. */
static arm_cmsis_nn_status check(const cmsis_nn_context *ctx, int32_t size, cmsis_nn_activation a)
{
    if (!ctx->buf || ctx->size < size || a.min < -128 || a.max > 127)
        return ARM_CMSIS_NN_ARG_ERROR;
    memset(ctx->buf, 0xA5, (size_t)size);
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, const cmsis_nn_dims *input,
                                                const cmsis_nn_dims *filter, const cmsis_nn_dims *output)
{
    (void)params, (void)output;
    return 4 * input->c * filter->w * filter->h; /* two columns of 16 bits */
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *p,
                                            const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x,
                                            const int8_t *input, const cmsis_nn_dims *f, const int8_t *filter,
                                            const cmsis_nn_dims *bias_dims, const int32_t *bias,
                                            const cmsis_nn_dims *y, int8_t *output)
{
    if (check(ctx, arm_convolve_wrapper_s8_get_buffer_size(p, x, f, y), p->activation) || f->c != x->c ||
        f->n != y->c || bias_dims->c != y->c)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t n = 0; n < y->n; n++)
        for (int32_t i = 0; i < y->h; i++)
            for (int32_t j = 0; j < y->w; j++)
                for (int32_t o = 0; o < y->c; o++) {
                    int32_t sum = bias ? bias[o] : 0;
                    for (int32_t h = 0; h < f->h; h++)
                        for (int32_t w = 0; w < f->w; w++) {
                            const int32_t a = i * p->stride.h - p->padding.h + h * p->dilation.h;
                            const int32_t b = j * p->stride.w - p->padding.w + w * p->dilation.w;
                            for (int32_t c = 0; a >= 0 && a < x->h && b >= 0 && b < x->w && c < x->c; c++)
                                sum += (input[((n * x->h + a) * x->w + b) * x->c + c] + p->input_offset) *
                                       filter[((o * f->h + h) * f->w + w) * f->c + c];
                        }
                    sum = requantize(sum, quant->multiplier[o], quant->shift[o]) + p->output_offset;
                    output[((n * y->h + i) * y->w + j) * y->c + o] = clamp(sum, p->activation);
                }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *params,
                                                      const cmsis_nn_dims *input, const cmsis_nn_dims *filter,
                                                      const cmsis_nn_dims *output)
{
    (void)params, (void)output;
    return 2 * input->c * filter->w * filter->h;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *p,
                                                  const cmsis_nn_per_channel_quant_params *quant,
                                                  const cmsis_nn_dims *x, const int8_t *input, const cmsis_nn_dims *f,
                                                  const int8_t *filter, const cmsis_nn_dims *bias_dims,
                                                  const int32_t *bias, const cmsis_nn_dims *y, int8_t *output)
{
    if (check(ctx, arm_depthwise_conv_wrapper_s8_get_buffer_size(p, x, f, y), p->activation) || f->n != 1 ||
        f->c != y->c || y->c != x->c * p->ch_mult || bias_dims->c != y->c)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t n = 0; n < y->n; n++)
        for (int32_t i = 0; i < y->h; i++)
            for (int32_t j = 0; j < y->w; j++)
                for (int32_t o = 0; o < y->c; o++) {
                    int32_t sum = bias ? bias[o] : 0;
                    for (int32_t h = 0; h < f->h; h++)
                        for (int32_t w = 0; w < f->w; w++) {
                            const int32_t a = i * p->stride.h - p->padding.h + h * p->dilation.h;
                            const int32_t b = j * p->stride.w - p->padding.w + w * p->dilation.w;
                            if (a >= 0 && a < x->h && b >= 0 && b < x->w)
                                sum += (input[((n * x->h + a) * x->w + b) * x->c + o / p->ch_mult] + p->input_offset) *
                                       filter[(h * f->w + w) * f->c + o];
                        }
                    sum = requantize(sum, quant->multiplier[o], quant->shift[o]) + p->output_offset;
                    output[((n * y->h + i) * y->w + j) * y->c + o] = clamp(sum, p->activation);
                }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p, const cmsis_nn_dims *x,
                                    const int8_t *input, const cmsis_nn_dims *f, const cmsis_nn_dims *y,
                                    int8_t *output)
{
    (void)ctx;
    if (x->c != y->c || x->n != y->n)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t n = 0; n < y->n; n++)
        for (int32_t i = 0; i < y->h; i++)
            for (int32_t j = 0; j < y->w; j++)
                for (int32_t c = 0; c < y->c; c++) {
                    int32_t most = -128;
                    for (int32_t h = 0; h < f->h; h++)
                        for (int32_t w = 0; w < f->w; w++) {
                            const int32_t a = i * p->stride.h - p->padding.h + h;
                            const int32_t b = j * p->stride.w - p->padding.w + w;
                            if (a >= 0 && a < x->h && b >= 0 && b < x->w) {
                                const int32_t v = input[((n * x->h + a) * x->w + b) * x->c + c];
                                most = v > most ? v : most;
                            }
                        }
                    output[((n * y->h + i) * y->w + j) * y->c + c] = clamp(most, p->activation);
                }
    return ARM_CMSIS_NN_SUCCESS;
}
