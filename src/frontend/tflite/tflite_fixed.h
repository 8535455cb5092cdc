/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point arithmetic as TensorFlow Lite Micro's reference kernels have it, on numbers of the compiler: what an
 * operator does to each of the 256 numbers of a byte becomes a table. A name of a format, Q4.27, says the bits before
 * and behind the point, without the sign. */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_FIXED_H
#define LATHE_FRONTEND_TFLITE_TFLITE_FIXED_H
#include <stdint.h>

/* A real number as multiplier * 2^(shift - 31): graph_fixed_scale, which limits shifts to 30. */
typedef struct fixed_scale {
    int32_t multiplier, shift;
} fixed_scale;
fixed_scale fixed_of(double real);
/* A multiplier in 15 bits. */
int16_t fixed_narrow(int32_t multiplier);

/* x * 2^-e, halves away from 0; e: 0..31. */
int32_t fixed_divided(int32_t x, int e);
/* The high half of 2 a b, halves up. */
int32_t fixed_product(int32_t a, int32_t b);
int16_t fixed_product16(int16_t a, int16_t b);
/* x by a scale, rounded behind the product and behind the shift. What leaves 32 bits before that wraps. */
int32_t fixed_scaled(int32_t x, fixed_scale s);

/* exp of a number below or equal to 0 with `bits` before the point, as Q0.31. */
int32_t fixed_exp(int32_t a, int bits);
/* 1 / sqrt(x), x above 0, as a scale. */
fixed_scale fixed_inverse_root(int32_t x);
/* 1 / x, x above 0, as Q0.31 of a number from 1/2 to 1 that is to be shifted to the right by *out_bits. */
int32_t fixed_reciprocal(int32_t x, int *out_bits);
/* logistic and tanh of Q4.27, as Q0.31. */
int32_t fixed_logistic(int32_t a);
int32_t fixed_tanh(int32_t a);
/* The same in 16 bits, as Q0.15: logistic of Q3.12, and tanh of a number with `bits` before the point, 0..6. */
int16_t fixed_logistic16(int16_t a);
int16_t fixed_tanh16(int16_t a, int bits);
#endif
