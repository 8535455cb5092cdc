/* SPDX-License-Identifier: Apache-2.0 */
/* The fast Fourier transform: how a length is taken apart, and where the constants of each step stand. The type
 * relations, the compute definitions and the front ends share this.
 *
 * A transform of N = r[0] r[1] ... points takes one step for each factor. Behind the steps before it, with the product
 * L of their factors, row t of [N / L, L] is the transform of the points t, t + N / L, t + 2 N / L, ... A step with
 * factor r joins r of these rows, N / (L r) apart, into one of L r numbers:
 *     out[t, q L + j] = sum over p < r of exp(-2 pi i p q / r) exp(-2 pi i p j / (L r)) in[t + p N / (L r), j]
 * so that the numbers come out in order and nothing is permuted (Stockham's form; Van Loan, Computational Frameworks
 * for the Fast Fourier Transform, 1992, section 1.7).
 *
 * Of i16 and i32 the real forms are in fixed point, with 15 or 31 bits behind the point, as the library kissfft
 * computes them, bit for bit: in front of each step its numbers are divided by the factor, halves up, and so is what
 * the real forms do beside the steps. So a transform gives its sums divided by N, and its inverse divides once more.
 * The factors are 5, 3, 2 and 4, in this order. */
#ifndef LATHE_GRAPH_OP_FFT_H
#define LATHE_GRAPH_OP_FFT_H
#include "graph/op.h"

#define FFT_MOST_STEPS  32
#define FFT_MOST_RADIX  13
#define FFT_MOST_LENGTH ((int64_t)1 << 24) /* numbers of 32 bits tell the angles apart */

typedef enum fft_form {
    FFT_COMPLEX, /* [b, N, 1 or 2] -> [b, N, 2] */
    FFT_REAL,    /* [b, N, 1] -> [b, N / 2 + 1, 2]: the other half of the spectrum mirrors it. N is even */
    FFT_HALF     /* [b, N / 2 + 1, 2] -> [b, N, 1]: back, the sums divided by N. N is even */
} fft_form;

/* A transform of N real numbers is one of N / 2 complex ones, made of the even and the odd ones, and a step more. */
typedef struct fft_plan {
    fft_form form;
    dtype fixed;    /* DT_I16, DT_I32: in fixed point; DT_NONE: in floats */
    int64_t points; /* of the complex transform: N, or N / 2 */
    bool inverse;   /* the exponents are positive, and the sums are divided by N */
    bool apart;     /* products are rounded before they are added: NumPy's noise, where parts cancel */
    uint32_t n_steps;
    int64_t radix[FFT_MOST_STEPS];
} fft_plan;

/* false: no such transform of that length; it has a factor above FFT_MOST_RADIX, or is odd and should not be. dt: of
 * the numbers. */
bool fft_plan_make(fft_form form, bool inverse, dtype dt, int64_t length, fft_plan *out);
/* The plan of a node whose type relation holds. */
void fft_plan_of(const graph_node *n, fft_plan *out);

/* The constants of all steps in one vector: for each step but the first, for each p from 1 to r - 1, L real parts and
 * L imaginary ones of exp(-2 pi i p j / (L r)); of the two forms for real numbers, then, points + 1 real parts and as
 * many imaginary ones of exp(-2 pi i j / N). In fixed point these are points / 2 + 1 and -i times that. The exponents
 * of inverse transforms are positive. */
int64_t fft_table_length(const fft_plan *p);
int64_t fft_real_entries(const fft_plan *p);
const tensor_data *fft_table(compiler *c, const fft_plan *p, dtype dt); /* DT_F32, DT_F64, or the plan's `fixed` */
/* A part of exp(-2 pi i k / n), or of the inverse's, as the table has it: 0 the real one. */
int64_t fft_fixed_part(const fft_plan *p, int64_t part, int64_t k, int64_t n);
#endif
