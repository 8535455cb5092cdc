/* SPDX-License-Identifier: Apache-2.0 */
/* Which row of products of small integers a target gets: those of families (src/target) that ask for one of its
 * features, then those that C has for any vectors. */
#include "type/dot.h"
#include "type/family.h"

#define PAIRS        2, 3, 0, 0, 1, 3, 0, false /* vpmaddubsw, vpmaddwd, vpaddd; the data, a sum, ones */
#define HALVES       2, 4, 3, 2, 2, 4, 0, false /* vpmaddwd and vpaddd of even and of odd bytes, which are widened */
#define NIBBLES      2, 2, 3, 0, 2, 1, 0, false /* data by four codes, twice; a word is taken apart: masks, a shift */
#define WORDS        1, 2, 0, 0, 1, 1, 0, false /* vpmaddwd, vpaddd */
#define WIDE_READERS 16                  /* of each weight that is widened first */

/* For any processor; the costs are x86's. */
static const target_dot plain[] = {
    {"dot_u8s8_pairs", 0, 32, 4, DT_U8, DT_I8, true, PAIRS},
    {"dot_u8s8", 0, 16, 4, DT_U8, DT_I8, false, HALVES},
    {"dot_s8s8", 0, 16, 4, DT_I8, DT_I8, false, HALVES},
    {"dot_s8u4", 0, 16, 8, DT_I8, DT_U4, false, NIBBLES},
};

/* Apart from the others: no operand is broadcast. */
static const target_dot words = {"dot_words", 0, 0, 2, DT_I16, DT_I16, false, WORDS};

/* What is looked for. */
typedef struct wish {
    const target *t;
    dtype a, b;
    bool proved, tiles, steps;
} wish;

static const target_dot *find_in(const target_dot *rows, size_t n, const wish *w)
{
    for (size_t i = 0; i < n; i++) {
        const target_dot *r = &rows[i];
        if (r->a == w->a && r->b == w->b && (w->t->features & r->features) == r->features &&
            r->vector_bytes <= w->t->vector_bytes && (w->proved || !r->needs_proof) && w->tiles == (r->tile > 0) &&
            w->steps == r->steps)
            return r;
    }
    return NULL;
}

static const target_dot *find_wish(const wish *w)
{
    const target_dot *r = NULL;
    for (const target_family *const *f = target_families; *f && !r; f++)
        r = find_in((*f)->dots, (*f)->n_dots, w);
    return r ? r : find_in(plain, sizeof plain / sizeof *plain, w);
}

static const target_dot *find(const target *t, dtype a, dtype b, bool proved, bool tiles)
{
    return find_wish(&(wish){t, a, b, proved, tiles, false});
}

const target_dot *target_find_dot(const target *t, dtype a, dtype b, bool proved)
{
    return find(t, a, b, proved, false);
}

int64_t target_dot_weights(const target_dot *d)
{
    return (int64_t)(d->granule * dtype_bits(d->b) / 32);
}

static double operations(const target_dot *d, int64_t k)
{
    return d->operations * (double)((k + d->granule - 1) / d->granule);
}

const target_dot *target_find_tile_dot(const target *t, const target_dot *d, int64_t height, int64_t k)
{
    const target_dot *r = find(t, d->a, d->b, false, true);
    return r && height >= r->tile && operations(r, k) < operations(d, k) ? r : NULL;
}

const target_dot *target_find_packed_dot(const target *t, dtype a, dtype b, bool proved, int64_t granule)
{
    const target_dot *d = find(t, a, b, proved, false), *tiles = find(t, a, b, proved, true);
    return d && d->granule == granule ? d : tiles && tiles->granule == granule ? tiles : NULL;
}

const target_dot *target_find_wide_dot(const target *t, const target_dot *bytes)
{
    const target_dot *r = target_find_dot(t, DT_I16, DT_I16, false);
    const bool saves = r && bytes->weight_work > 0 && r->weight_work == 0;
    return saves && r->operations * bytes->granule <= bytes->operations * r->granule ? r : NULL;
}

const target_dot *target_find_wide_dot_for(const target *t, const target_dot *bytes, int64_t readers)
{
    return readers >= WIDE_READERS ? target_find_wide_dot(t, bytes) : NULL;
}

const target_dot *target_find_steps_dot(const target *t, dtype a)
{
    const target_dot *r = find_wish(&(wish){t, a, DT_I8, true, false, true}),
                     *bytes = target_find_dot(t, DT_U8, DT_I8, false);
    return r && bytes && target_find_wide_dot(t, bytes) ? r : NULL;
}

const target_dot *target_find_words_dot(void)
{
    return &words;
}
