/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of places, for sorts inside of loops (te/op/loops.h). For any data, finding k of n elements takes n log k
 * steps, and no memory except the list of places. The place that is last in order is at the top. */
#ifndef LATHE_TE_OP_HEAP_H
#define LATHE_TE_OP_HEAP_H
#include "te/op/loops.h"

typedef struct loops_heap loops_heap;
/* The statement that sets h->behind to whether what is at place a comes behind what is at place b. The order is total:
 * equal elements stand by their places. */
typedef tir_stmt *(*loops_behind_fn)(const loops_heap *h, tir_expr_ref a, tir_expr_ref b);

struct loops_heap {
    te_graph *g;
    const tir_buffer *places; /* i64; those of one heap lie along `axis`, the other indices are idx[] */
    tir_expr_ref const *idx;
    uint32_t axis;
    int64_t most; /* places at most; 0: unknown */
    loops_behind_fn compare;
    const void *ctx;
    const tir_buffer *behind, *hole, *child, *moving; /* local variables: loops_heap_begin */
};

/* Fills in the local variables of h; the other fields are the caller's. */
void loops_heap_begin(loops_heap *h);
/* Declares them around the statement. */
tir_stmt *loops_heap_end(const loops_heap *h, tir_stmt *s);
tir_expr_ref loops_heap_get(const loops_heap *h, tir_expr_ref i);
tir_stmt *loops_heap_set(const loops_heap *h, tir_expr_ref i, tir_expr_ref place);
/* Makes a heap of the first `count` places. */
tir_stmt *loops_heap_make(const loops_heap *h, tir_expr_ref count);
/* Another place instead of the one on top of a heap of `count`. */
tir_stmt *loops_heap_replace(const loops_heap *h, tir_expr_ref count, tir_expr_ref place);
/* Puts the places of a heap in order. */
tir_stmt *loops_heap_sort(const loops_heap *h, tir_expr_ref count);
#endif
