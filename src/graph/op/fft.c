/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the fast Fourier transform, its factors, and its table of constants (graph/op/fft.h). */
#include "graph/op/fft.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define TURN (2 * 3.14159265358979323846)

/* Fours first: they take the fewest multiplications, and the steps behind them have long rows. A single two is last:
 * the number in the middle is a sum less a sum, and rounding does not show where it is real. Back from complex numbers
 * it stands where NumPy has it, in front of the odd ones, so that parts that cancel leave the same noise. In fixed
 * point the order is kissfft's, whose first factor is the last step. */
static bool take_apart(int64_t points, fft_plan *p)
{
    static const int64_t floats[] = {4, 3, 5, 7, 11, FFT_MOST_RADIX, 2, 0}, fixed[] = {4, 2, 3, 5, 0};
    static const int64_t back[] = {4, 2, 3, 5, 7, 11, FFT_MOST_RADIX, 0};
    const int64_t *radices = p->fixed ? fixed : p->form == FFT_COMPLEX && p->inverse ? back : floats;
    for (const int64_t *r = radices; *r; r++)
        for (; points % *r == 0; points /= *r)
            p->radix[p->n_steps++] = *r;
    for (uint32_t i = 0; i + 1 < p->n_steps; i++)
        p->apart |= radices == back && p->radix[i] == 2;
    for (uint32_t i = 0; p->fixed && i < p->n_steps / 2; i++) {
        const int64_t other = p->radix[p->n_steps - 1 - i];
        p->radix[p->n_steps - 1 - i] = p->radix[i];
        p->radix[i] = other;
    }
    return points == 1;
}

bool fft_plan_make(fft_form form, bool inverse, dtype dt, int64_t length, fft_plan *out)
{
    bool real = form != FFT_COMPLEX;
    const dtype fixed = dt == DT_I16 || dt == DT_I32 ? dt : DT_NONE;
    if (length < 2 || length > FFT_MOST_LENGTH || (real && (length % 2 != 0 || length < 4)) || (!real && fixed))
        return false;
    *out = (fft_plan){.form = form, .inverse = inverse, .fixed = fixed, .points = real ? length / 2 : length};
    return take_apart(out->points, out);
}

int64_t fft_table_length(const fft_plan *p)
{
    int64_t count = 0, done = 1;
    for (uint32_t i = 0; i < p->n_steps; done *= p->radix[i++])
        count += i > 0 ? 2 * (p->radix[i] - 1) * done : 0;
    return count + (p->form != FFT_COMPLEX ? 2 * fft_real_entries(p) : 0);
}

int64_t fft_real_entries(const fft_plan *p)
{
    return p->fixed ? p->points / 2 + 1 : p->points + 1;
}

/* The nearest number of 15 or 31 bits behind the point; the largest stands for 1. */
static int64_t fixed_part(const fft_plan *p, int64_t part, double phase)
{
    const double v = part == 0 ? cos(phase) : sin(phase);
    return (int64_t)floor(0.5 + (double)dtype_max_int(p->fixed) * v);
}

int64_t fft_fixed_part(const fft_plan *p, int64_t part, int64_t k, int64_t n)
{
    /* of the transform of all points, as kissfft asks for it: angles are rounded */
    const double phase = -TURN * (double)(k * (p->points / n)) / (double)p->points;
    return fixed_part(p, part, p->inverse ? -phase : phase);
}

/* n powers of exp(-2 pi i factor / of), real parts and imaginary ones. */
static uint8_t *put_powers(const fft_plan *p, dtype dt, int64_t factor, int64_t of, int64_t n, uint8_t *at)
{
    size_t width = dtype_bytes(dt);
    for (int64_t part = 0; part < 2; part++)
        for (int64_t j = 0; j < n; j++, at += width) {
            if (p->fixed) {
                dtype_store_i64(dt, at, fft_fixed_part(p, part, factor * j, of));
                continue;
            }
            double angle = TURN * (double)(factor * j % of) / (double)of;
            dtype_store_f64(dt, at, part == 0 ? cos(angle) : p->inverse ? sin(angle) : -sin(angle));
        }
    return at;
}

static uint8_t *put_real_powers(const fft_plan *p, dtype dt, uint8_t *at)
{
    const int64_t n = fft_real_entries(p);
    if (!p->fixed)
        return put_powers(p, dt, 1, 2 * p->points, n, at);
    for (int64_t part = 0; part < 2; part++)
        for (int64_t j = 0; j < n; j++, at += dtype_bytes(dt)) {
            const double phase = -TURN / 2 * ((double)j / (double)p->points + 0.5);
            dtype_store_i64(dt, at, fixed_part(p, part, p->inverse ? -phase : phase));
        }
    return at;
}

const tensor_data *fft_table(compiler *c, const fft_plan *p, dtype dt)
{
    int64_t count = fft_table_length(p), done = 1;
    uint8_t *data = arena_alloc(&c->mem, (size_t)count * dtype_bytes(dt) + 1, 64), *at = data;
    for (uint32_t i = 0; i < p->n_steps; done *= p->radix[i++])
        for (int64_t k = 1; i > 0 && k < p->radix[i]; k++)
            at = put_powers(p, dt, k, done * p->radix[i], done, at);
    if (p->form != FFT_COMPLEX)
        put_real_powers(p, dt, at);
    return tensor_dense(c, dt, 1, &count, data);
}

static fft_form form_of(const graph_node *n)
{
    return strcmp(n->op->name, "fft") == 0 ? FFT_COMPLEX : strcmp(n->op->name, "rfft") == 0 ? FFT_REAL : FFT_HALF;
}

static bool is_inverse(const graph_node *n, fft_form form)
{
    return form == FFT_HALF || (form == FFT_COMPLEX && graph_attr_int(n, "inverse") != 0);
}

void fft_plan_of(const graph_node *n, fft_plan *out)
{
    fft_form form = form_of(n);
    (void)fft_plan_make(form, is_inverse(n, form), infer_in(n, 0)->dt, graph_attr_int(n, "length"), out);
}

bool infer_fft(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *table = infer_in(n, 1);
    const int64_t length = graph_attr_int(n, "length");
    const fft_form form = form_of(n);
    fft_plan p;
    int64_t parts = 0;
    if (dtype_is_int(x->dt) && x->dt != DT_I16 && x->dt != DT_I32)
        return infer_error(c, n, "a transform in fixed point has numbers of i16 or i32, not %s", dtype_name(x->dt));
    if (!fft_plan_make(form, is_inverse(n, form), x->dt, length, &p))
        return infer_error(c, n, "no transform of %" PRId64 " points: its prime factors must be %d at most%s", length,
                           dtype_is_int(x->dt) ? 5 : FFT_MOST_RADIX,
                           form == FFT_COMPLEX ? "" : ", and the length is even, 4 or more");
    const int64_t reads = form == FFT_HALF ? length / 2 + 1 : length;
    if (!dim_is(x->shape.dims[1], reads))
        return infer_error(c, n, "a transform of length %" PRId64 " wants %" PRId64 " points along axis 1", length,
                           reads);
    if (!dim_is_const(x->shape.dims[2], &parts) || parts < (form == FFT_HALF ? 2 : 1) ||
        parts > (form == FFT_REAL ? 1 : 2))
        return infer_error(c, n, "the last axis must hold the parts of a number: %s",
                           form == FFT_HALF ? "two" : form == FFT_REAL ? "one" : "one or two");
    const dtype want = p.fixed ? p.fixed : x->dt == DT_F64 ? DT_F64 : DT_F32;
    if (table->dt != want || !dim_is(table->shape.dims[0], fft_table_length(&p)))
        return infer_error(c, n, "the table must have %" PRId64 " numbers of %s", fft_table_length(&p),
                           dtype_name(want));
    dim d[3] = {x->shape.dims[0], dim_const(c, form == FFT_REAL ? length / 2 + 1 : length),
                dim_const(c, form == FFT_HALF ? 1 : 2)};
    out[0] = type_tensor(x->dt, shape_make(c, 3, d));
    return true;
}
