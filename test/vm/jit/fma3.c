/* SPDX-License-Identifier: Apache-2.0 */
/* c += a * b in vectors of LATHE_VECTOR_BYTES, eight of them at a time: what a kernel of a model looks like. Vectors
 * are turned round and back, so that the place of every lane counts. */
#if LATHE_VECTOR_BYTES
typedef float vector __attribute__((vector_size(LATHE_VECTOR_BYTES), aligned(4), may_alias));
typedef int lanes __attribute__((vector_size(LATHE_VECTOR_BYTES)));
enum { LANES = LATHE_VECTOR_BYTES / 4 };

static vector turn(vector v)
{
    lanes order;
    for (int i = 0; i < LANES; i++)
        order[i] = LANES - 1 - i;
#if defined(__clang__)
    vector out;
    for (int i = 0; i < LANES; i++)
        out[i] = v[order[i]];
    return out;
#else
    return __builtin_shuffle(v, order);
#endif
}

void fma3(const float *a, const float *b, float *c, int n)
{
    for (int i = 0; i < n; i += 8 * LANES) {
        vector sum[8];
        for (int j = 0; j < 8; j++)
            sum[j] = turn(*(const vector *)(c + i + j * LANES));
        for (int j = 0; j < 8; j++)
            sum[j] += turn(*(const vector *)(a + i + j * LANES)) * turn(*(const vector *)(b + i + j * LANES));
        for (int j = 0; j < 8; j++)
            *(vector *)(c + i + j * LANES) = turn(sum[j]);
    }
}
#else
void fma3(const float *a, const float *b, float *c, int n)
{
    for (int i = 0; i < n; i++)
        c[i] += a[i] * b[i];
}
#endif
