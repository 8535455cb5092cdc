/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a table in lanes, beside a loop over single bytes, of every length up to 200 and from every place in a word.
 * The last line says how many there were. */
#include "kernel/lanes/table.h"
#include <stdio.h>

#define MOST 200

static uint8_t table[256], from[MOST + 8], to[MOST + 8];

int main(void)
{
    uint32_t state = 1;
    long wrong = 0, checked = 0;
    for (int n = 0; n <= MOST; n++) {
        const int start = n % 4 + 1;
        for (int i = 0; i < 256; i++)
            table[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
        for (int i = 0; i < MOST + 8; i++) {
            from[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
            to[i] = 99;
        }
        lathe_vectors_of_table(to + start, from + 3, table, n);
        for (int i = 0; i < n; i++, checked++)
            wrong += to[start + i] != table[from[3 + i]];
        wrong += to[start - 1] != 99 || to[start + n] != 99; /* none of the neighbors is written */
    }
    printf("%ld bytes, %ld wrong\n", checked, wrong);
    return wrong != 0;
}
