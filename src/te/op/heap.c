/* SPDX-License-Identifier: Apache-2.0 */
/* Heapsort in loop IR. A merge sort keeps equal elements in order by itself, but needs a second list. Here the
 * comparison looks at the places of equal elements. Loop IR has no loop that ends on a condition: the way down from the
 * top has as many steps as the heap has levels, and steps after the end change nothing. */
#include "te/op/heap.h"

#include <string.h>

#define MOST_LEVELS 40 /* TE_MOST_EXTENT is 2^40 */

void loops_heap_begin(loops_heap *h)
{
    compiler *c = h->g->c;
    h->behind = loops_number(c, "behind", DT_I64);
    h->hole = loops_number(c, "hole", DT_I64);
    h->child = loops_number(c, "child", DT_I64);
    h->moving = loops_number(c, "moving", DT_I64);
}

tir_stmt *loops_heap_end(const loops_heap *h, tir_stmt *s)
{
    compiler *c = h->g->c;
    s = tir_allocate(c, h->child, tir_allocate(c, h->moving, s));
    return tir_allocate(c, h->behind, tir_allocate(c, h->hole, s));
}

static void index_of(const loops_heap *h, tir_expr_ref i, tir_expr_ref *at)
{
    memcpy(at, h->idx, h->places->rank * sizeof *at);
    at[h->axis] = i;
}

tir_expr_ref loops_heap_get(const loops_heap *h, tir_expr_ref i)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    index_of(h, i, at);
    return tir_load(h->g->c, h->places, h->places->rank, at);
}

tir_stmt *loops_heap_set(const loops_heap *h, tir_expr_ref i, tir_expr_ref place)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    index_of(h, i, at);
    return tir_store(h->g->c, h->places, h->places->rank, at, place);
}

static int64_t levels_of(const loops_heap *h)
{
    int64_t levels = 0;
    while (levels < MOST_LEVELS && (h->most <= 0 || (int64_t)2 << levels <= h->most))
        levels++;
    return levels;
}

/* s where the last comparison said "behind". */
static tir_stmt *if_behind(const loops_heap *h, tir_stmt *s)
{
    compiler *c = h->g->c;
    return tir_if(c, tir_binary(c, TIR_NE, loops_get(c, h->behind), tir_i64(c, 0)), s, NULL);
}

/* The later one of the two below the hole goes up if it comes behind what is moved down. Which of the two it is follows
 * no pattern, so it is counted (behind is 0 or 1) and not branched on. */
static tir_stmt *one_level(const loops_heap *h, tir_expr_ref count)
{
    compiler *c = h->g->c;
    tir_expr_ref one = tir_i64(c, 1), hole = loops_get(c, h->hole), child = loops_get(c, h->child);
    tir_expr_ref left = tir_add(c, tir_mul(c, hole, tir_i64(c, 2)), one), right = tir_add(c, child, one);
    tir_stmt *later[2] = {h->compare(h, loops_heap_get(h, right), loops_heap_get(h, child)),
                          loops_set(c, h->child, tir_add(c, child, loops_get(c, h->behind)))};
    tir_stmt *up[2] = {loops_heap_set(h, hole, loops_heap_get(h, child)), loops_set(c, h->hole, child)};
    tir_stmt *below[3] = {tir_if(c, tir_binary(c, TIR_LT, right, count), tir_seq(c, 2, later), NULL),
                          h->compare(h, loops_heap_get(h, child), loops_get(c, h->moving)),
                          if_behind(h, tir_seq(c, 2, up))};
    tir_stmt *step[2] = {loops_set(c, h->child, left),
                         tir_if(c, tir_binary(c, TIR_LT, child, count), tir_seq(c, 3, below), NULL)};
    return tir_seq(c, 2, step);
}

/* From `start` the place in h->moving goes down to where it belongs in a heap of `count`. */
static tir_stmt *move_down(const loops_heap *h, tir_expr_ref start, tir_expr_ref count)
{
    compiler *c = h->g->c;
    const tir_var *level = tir_new_var(c, "level", TIR_I64);
    tir_stmt *parts[3] = {
        loops_set(c, h->hole, start),
        tir_for(c, level, tir_i64(c, 0), tir_i64(c, levels_of(h)), FOR_SERIAL, one_level(h, count)),
        loops_heap_set(h, loops_get(c, h->hole), loops_get(c, h->moving))};
    return tir_seq(c, 3, parts);
}

tir_stmt *loops_heap_make(const loops_heap *h, tir_expr_ref count)
{
    compiler *c = h->g->c;
    const tir_var *var = tir_new_var(c, "t", TIR_I64);
    tir_expr_ref half = tir_floordiv(c, count, tir_i64(c, 2));
    tir_expr_ref start = tir_sub(c, tir_sub(c, half, tir_i64(c, 1)), tir_varref(c, var));
    tir_stmt *step[2] = {loops_set(c, h->moving, loops_heap_get(h, start)), move_down(h, start, count)};
    return tir_for(c, var, tir_i64(c, 0), half, FOR_SERIAL, tir_seq(c, 2, step));
}

tir_stmt *loops_heap_replace(const loops_heap *h, tir_expr_ref count, tir_expr_ref place)
{
    compiler *c = h->g->c;
    tir_stmt *parts[2] = {loops_set(c, h->moving, place), move_down(h, tir_i64(c, 0), count)};
    return tir_seq(c, 2, parts);
}

tir_stmt *loops_heap_sort(const loops_heap *h, tir_expr_ref count)
{
    compiler *c = h->g->c;
    const tir_var *var = tir_new_var(c, "t", TIR_I64);
    tir_expr_ref zero = tir_i64(c, 0), last = tir_sub(c, count, tir_i64(c, 1));
    tir_expr_ref end = tir_sub(c, last, tir_varref(c, var));
    tir_stmt *step[3] = {loops_set(c, h->moving, loops_heap_get(h, end)),
                         loops_heap_set(h, end, loops_heap_get(h, zero)), move_down(h, zero, end)};
    return tir_for(c, var, zero, last, FOR_SERIAL, tir_seq(c, 3, step));
}
