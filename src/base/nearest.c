/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance between a word and the names that it could have been. */
#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

enum { MOST = 64, FAR = MOST, LEAST_BEGIN = 4 }; /* longer words are no slips of a name */

nearest nearest_to(const char *word, size_t len)
{
    return (nearest){.word = word, .len = len, .distance = FAR};
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Damerau and Levenshtein's distance in its restricted form, over three rows of the table. */
static uint32_t distance(const char *a, size_t n, const char *b, size_t m)
{
    uint32_t rows[3][MOST + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void nearest_offer(nearest *n, const char *name)
{
    size_t len = strlen(name);
    if (n->len == 0 || n->len > MOST || len == 0 || len > MOST)
        return;
    uint32_t most = n->len < 3 ? 1 : (uint32_t)(n->len + 2) / 3, d = distance(n->word, n->len, name, len);
    const bool begins = n->len >= 2 && len > n->len && strncmp(n->word, name, n->len) == 0;
    if (d > most || d >= n->len)
        d = begins ? most : FAR;
    if (begins && n->len >= LEAST_BEGIN)
        d = 0; /* "qemu-m0" is meant as qemu-m0plus, not as qemu-m4 */
    const bool alike = n->best && d == n->distance && d != FAR && len == n->len && strlen(n->best) != len;
    if (d < n->distance || alike) {
        n->distance = d;
        n->best = name;
    }
}

void nearest_offer_short(nearest *n, const char *name)
{
    const char *dot = strrchr(name, '.');
    nearest_offer(n, name);
    if (dot)
        nearest_offer(n, dot + 1);
    if (dot && n->best == dot + 1)
        n->best = name;
}

const char *nearest_question(const nearest *n, const char *front, arena *a)
{
    return n->best ? arena_printf(a, "did you mean %s%s? ", front, n->best) : "";
}

void nearest_offer_list(nearest *n, const char *list, arena *a)
{
    static const char separators[] = " ,;|";
    for (list += strspn(list, separators); *list; list += strspn(list, separators)) {
        size_t len = strcspn(list, separators);
        nearest_offer(n, arena_strndup(a, list, len));
        list += len;
    }
}

const char *nearest_in(const char *word, const char *list, arena *a)
{
    nearest n = nearest_to(word, strlen(word));
    nearest_offer_list(&n, list, a);
    return nearest_question(&n, "", a);
}
