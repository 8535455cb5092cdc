/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers lie in the scratchpads: what storage.c places, and fit.c looks for smaller blocks of. */
#ifndef LATHE_TIR_PASS_VTA_STORAGE_H
#define LATHE_TIR_PASS_VTA_STORAGE_H
#include "base/vec.h"
#include "target/vta/pass/vta.h"

typedef struct placed {
    const tir_buffer *b, *home; /* home: what holds it afterwards */
    enum vta_mem memory;
    int64_t at, size;    /* in elements of the scratchpad */
    int64_t first, last; /* statements between which it is in use, by number; none: first > last */
} placed;

/* What is allocated outside loops over virtual threads, or inside one. */
typedef struct region {
    struct region *outer;
    int64_t threads; /* copies that there will be of each buffer */
    VEC(placed *) all;
    int64_t most[VTA_MEM_COUNT]; /* elements in use at once */
} region;

typedef struct storage {
    vta_pass p;
    tir_map homes; /* buffer -> placed */
    VEC(region *) regions;
    const region *full; /* the first one in which a buffer found no room, and that buffer; NULL: all fit */
    placed *large;
    int64_t beside; /* elements that others take there */
} storage;

/* fit.c. Gives buffer i of r a place behind those before it. False: the device has too few elements; *out_others: what
 * others take there. */
bool storage_put(const storage *st, region *r, uint32_t i, int64_t *out_others);
/* Says how to cut loops so that every buffer fits, as the hint of the last diagnostic. Places are undefined
 * afterwards. */
void storage_hint(storage *st);
#endif
