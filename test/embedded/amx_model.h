/* SPDX-License-Identifier: Apache-2.0 */
/* AMX in C, for kernel/x86/amx.h on machines without it: included first, it stands for the instructions
 * (kernel/x86/amx_asm.h). After Intel's manual, volume 2: TILELOADD, TILESTORED, TDPBUSD, TDPBSSD and LDTILECFG. What
 * raises #UD or #GP there ends the program. */
#ifndef LATHE_TEST_AMX_MODEL_H
#define LATHE_TEST_AMX_MODEL_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct amx_tile {
    unsigned rows, bytes;
    unsigned char at[16][64];
} amx_tiles[8];

static void amx_must(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED AMX: %s\n", what);
        exit(1);
    }
}

static void amx_shapes(const unsigned char *s)
{
    unsigned i;
    amx_must(s[0] == 1, "there is no such palette");
    memset(amx_tiles, 0, sizeof amx_tiles);
    for (i = 0; i < 8; i++) {
        amx_tiles[i].bytes = s[16 + 2 * i] + 256u * s[17 + 2 * i];
        amx_tiles[i].rows = s[48 + i];
        amx_must(amx_tiles[i].rows <= 16 && amx_tiles[i].bytes <= 64, "a shape is too large");
        amx_must((amx_tiles[i].rows == 0) == (amx_tiles[i].bytes == 0), "a shape is empty in part");
    }
}

static void amx_load(struct amx_tile *t, const void *p, int64_t apart)
{
    unsigned i;
    amx_must(t->rows > 0, "a load into a register without a shape");
    memset(t->at, 0, sizeof t->at);
    for (i = 0; i < t->rows; i++)
        memcpy(t->at[i], (const char *)p + apart * (int64_t)i, t->bytes);
}

static void amx_store(const struct amx_tile *t, void *p, int64_t apart)
{
    unsigned i;
    amx_must(t->rows > 0, "a store of a register without a shape");
    for (i = 0; i < t->rows; i++)
        memcpy((char *)p + apart * (int64_t)i, t->at[i], t->bytes);
}

static void amx_zero(struct amx_tile *t)
{
    amx_must(t->rows > 0, "zeros for a register without a shape");
    memset(t->at, 0, sizeof t->at);
}

static void amx_products(struct amx_tile *c, const struct amx_tile *a, const struct amx_tile *b, int is_signed)
{
    unsigned i, j, k, g;
    amx_must(c->rows > 0 && a->rows == c->rows && b->bytes == c->bytes && a->bytes == 4 * b->rows,
             "shapes that do not fit each other");
    for (i = 0; i < c->rows; i++)
        for (j = 0; j < c->bytes / 4; j++)
            for (k = 0; k < b->rows; k++) {
                uint32_t sum;
                memcpy(&sum, &c->at[i][4 * j], sizeof sum);
                for (g = 0; g < 4; g++) {
                    const unsigned char x = a->at[i][4 * k + g];
                    sum += (uint32_t)((is_signed ? (int32_t)(int8_t)x : (int32_t)x) * (int8_t)b->at[k][4 * j + g]);
                }
                memcpy(&c->at[i][4 * j], &sum, sizeof sum);
            }
}

#define LATHE_AMX_MAY()              1
#define LATHE_AMX_SHAPES(p)          amx_shapes(p)
#define LATHE_AMX_LOAD(t, p, apart)  amx_load(&amx_tiles[t], p, apart)
#define LATHE_AMX_STORE(t, p, apart) amx_store(&amx_tiles[t], p, apart)
#define LATHE_AMX_ZERO(t)            amx_zero(&amx_tiles[t])
#define LATHE_AMX_U8(c, a, b)        amx_products(&amx_tiles[c], &amx_tiles[a], &amx_tiles[b], 0)
#define LATHE_AMX_I8(c, a, b)        amx_products(&amx_tiles[c], &amx_tiles[a], &amx_tiles[b], 1)
#define LATHE_AMX_LEAVE()            memset(amx_tiles, 0, sizeof amx_tiles)

#endif
