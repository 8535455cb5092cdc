/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known name that is nearest to a word that is not known. Offer all names, then take the hint. */
#ifndef LATHE_BASE_NEAREST_H
#define LATHE_BASE_NEAREST_H
#include "base/arena.h"

typedef struct nearest {
    const char *word; /* `len` bytes of it */
    size_t len;
    const char *best; /* NULL: nothing is near enough to be meant */
    uint32_t distance;
} nearest;

nearest nearest_to(const char *word, size_t len);
/* Insertions, deletions, replacements and swaps of neighbors count one each; up to a third of the word may differ. A
 * name that the word begins is near as well; if the word has four letters or more, it is the nearest. Of equals the
 * first one of the word's length stays, else the first one offered. `name` must outlive `n`. */
void nearest_offer(nearest *n, const char *name);
/* The same for a name with a prefix, nn.relu: the word may be near to the whole or to what is behind its last dot. */
void nearest_offer_short(nearest *n, const char *name);
/* "did you mean FRONTbest? ", or "" when there is nothing near: the beginning of a hint. */
const char *nearest_question(const nearest *n, const char *front, arena *a);
/* Both for a list as messages print it: words between commas, spaces or bars. */
void nearest_offer_list(nearest *n, const char *list, arena *a);
const char *nearest_in(const char *word, const char *list, arena *a);
#endif
