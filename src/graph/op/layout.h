/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as text: "NCHW", "NCHW16c", "OIHW16i16o". A capital is an axis, or what is left of it when a block of it
 * stands further behind as its lower-case letter with the block's extent in front; a block may be cut again, the
 * larger pieces first ("OIHW4i16o4i"). The operator layout_transform goes from one layout to another; the map of
 * indices follows from the two names. */
#ifndef LATHE_GRAPH_OP_LAYOUT_H
#define LATHE_GRAPH_OP_LAYOUT_H
#include "type/type.h"

typedef struct tensor_layout {
    uint32_t n;                   /* axes of the tensor */
    char letter[TYPE_MAX_RANK];   /* capital */
    int64_t block[TYPE_MAX_RANK]; /* extent of a block; 0: the axis, or its blocks */
} tensor_layout;

/* false: no layout: an axis twice, a block without its axis or before it, a block that is no extent. */
bool layout_parse(const char *text, tensor_layout *out);
/* Extent of the blocks of the axis `letter` (a capital), all cuts together; 0: it has none. */
int64_t layout_block(const tensor_layout *l, char letter);
/* The same of a text; 0 also when it is no layout. */
int64_t layout_text_block(const char *text, char letter);
/* How many elements of its axis one step of index i goes. */
int64_t layout_step(const tensor_layout *l, uint32_t i);
/* Position of the axis (block 0) or of its first blocks (block not 0); l->n: there is none. */
uint32_t layout_find(const tensor_layout *l, char letter, bool block);
#endif
