/* SPDX-License-Identifier: Apache-2.0 */
/* What the importer of Loop (onnx_op_loop.c) shares with that of the sequences that a loop carries (onnx_loop_list.c).
 * Where the body only appends to a sequence, a round gives what it appends as rows. Where it reads the sequence, the
 * loop carries the elements side by side, and how much of each slot is the element. */
#ifndef LATHE_FRONTEND_ONNX_LOOP_H
#define LATHE_FRONTEND_ONNX_LOOP_H

#include "frontend/onnx/onnx_import.h"

/* An extent of a carried value that is another one behind a round. */
typedef struct onnx_changing {
    uint32_t value, axis;
    dim d;           /* what it is in the body: a symbol, or where it is compared what it begins with */
    dim first, next; /* before the loop, and behind a round when it was seen first */
    enum { CHANGES_OPEN, CHANGES_WITHIN, CHANGES_UNBOUNDED, CHANGES_NEVER } kind;
} onnx_changing;

/* A carried value of the operator that is a sequence. */
typedef struct onnx_carried_list {
    bool is_read;
    onnx_before *before; /* where it is not read: what the body sees */
    onnx_slot slot;      /* where it is: room for the elements of all rounds seen so far */
    bool text;           /* its elements are strings */
    uint32_t widened;    /* readings of the body behind which the slot was too small */
    graph_value *from[TYPE_MAX_RANK]; /* of an open extent of the slot: a value around the loop that has it, */
    uint32_t axis[TYPE_MAX_RANK];     /* at this axis */
    uint32_t first;      /* its number among the tensors; the sizes of its elements come next */
    onnx_part appended;  /* where it is not: rows of a round, as results of the body; v NULL: nothing */
    int64_t most;        /* elements that a round appends */
    bool counted;        /* a round may append less */
} onnx_carried_list;

/* Kept for each body: where a loop around it is read again, what changes in it is known from the start, else nests of
 * loops would be read more often with each level. */
typedef struct onnx_carrying {
    onnx_node *n;
    const pb_graph *g;
    uint32_t carried;    /* tensors: the operator's, then those that hold sequences */
    uint32_t own;        /* how many are the operator's */
    graph_value **value; /* of each tensor: before the loop */
    const char **name;
    uint32_t *at;             /* of each tensor: of which of the operator's carried values */
    uint32_t all;             /* the operator's carried values, sequences among them */
    onnx_carried_list *lists; /* by carried value of the operator */
    bool *reshaped;           /* of each tensor: it has the shape behind a round from the start */
    dim trips;                /* NULL: not known */
    VEC(onnx_changing) list;
} onnx_carrying;

/* Space for the lists; what is known of them from an earlier reading of the body stays where it fits the node. */
void onnx_loop_lists_open(onnx_carrying *k);
/* The tensors of the sequences that are read, behind those of the operator. */
bool onnx_loop_lists_carry(onnx_carrying *k);
/* Defines the body's inputs that are sequences. */
void onnx_loop_lists_inside(onnx_carrying *k, onnx_region *r);
/* The sequences behind a round: those that are read become results of the body. *again: they need more room. */
bool onnx_loop_lists_behind(onnx_carrying *k, onnx_region *r, bool *again);
/* Whether a reading of the body failed because the body reads a sequence, which will be carried so from now on. */
bool onnx_loop_lists_read(onnx_carrying *k);
/* Finds what the elements of sequences that are read are like, as far as that is not known yet. */
bool onnx_loop_lists_measure(onnx_carrying *k, const onnx_captures *captures);
/* What a round appends to the sequences that are not read, as more results of the body. */
bool onnx_loop_lists_append(onnx_carrying *k, onnx_region *r);
/* The sequences behind the loop, whose node has `tensors` results before those of onnx_loop_lists_append. */
void onnx_loop_lists_take(onnx_carrying *k, const graph_node *node, uint32_t tensors);

#endif
