/* SPDX-License-Identifier: Apache-2.0 */
/* If a report says the same about many things, it has one line for all of them, with the names of the first few. */
#ifndef LATHE_DRIVER_GROUPS_H
#define LATHE_DRIVER_GROUPS_H
#include "base/compiler.h"
#include "base/ptr_map.h"
#include "base/text.h"
#include "base/vec.h"

typedef struct group {
    uint32_t first, n; /* the first of its items, and how many there are */
    writer names;
} group;

typedef struct groups {
    compiler *c;
    ptr_map by_key;
    VEC(group) all; /* in the order of their first items */
} groups;

void groups_begin(groups *g, compiler *c);
/* Items of equal keys are a group. */
void groups_add(groups *g, uint32_t item, const char *key, const char *name);
void groups_write_names(writer *w, const group *g); /* "a, b and 3 more", in one line */

/* Names of the model's nodes with ", " between, for a line: each once, and up to the first ';', with which TensorFlow
 * joins the names of the operators that it has fused. */
const char *groups_short_names(arena *a, const char *names);
#endif
