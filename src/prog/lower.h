/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the step from graph to program: the way through it, operators and results (lower.c), branches and loops
 * (lower_flow.c), values and what both ask of the graph (lower_value.c). */
#ifndef LATHE_PROG_LOWER_H
#define LATHE_PROG_LOWER_H
#include "base/ptr_map.h"
#include "graph/graph.h"
#include "prog/prog.h"

/* The cell of an extent that a branch must tell: the first step in it that knows the extent writes the cell. */
typedef struct lower_due {
    uint32_t cell, depth;
} lower_due;

/* Kernels whose plain loops are made, by their operators. */
typedef struct lower_made {
    uint64_t hash;
    const prog_kernel *kernel; /* NULL: free */
    const tir_func *plain;     /* as it was made: the kernel's own may change */
} lower_made;

typedef struct lower_table {
    lower_made *slots;
    uint64_t size, n; /* size: a power of two */
} lower_table;

typedef struct lowering lowering;
struct lowering {
    compiler *c;
    bool (*add_node)(lowering *l, graph_node *n); /* lower.c's: what regions are made of */
    graph_func *main, *f; /* the entry, and the function at hand: the entry or a region */
    const struct target *t;
    prog_module *m;
    prog_func *to;
    prog_block *block; /* where steps go */
    ptr_map into;      /* graph values that are made in a value that is there: its number */
    uint32_t depth;
    bool unbounded; /* values may have dimensions without a bound: a module */
    VEC(lower_due) due;
    lower_table made;
    VEC(graph_value *) results; /* of main, without those that are states */
};

/* Whether the values of l->f can be kept: tensors, with bounds, of element types that kernels have. */
bool lower_check(lowering *l);
/* The only computing node of n, when n is a call of a primitive with one, or is no call. */
const graph_node *lower_sole_node(const graph_node *n);
/* Operand i of that node as an operand of n; NULL: it is made inside. */
graph_value *lower_operand_outside(const graph_node *call, const graph_node *inner, uint32_t i);
/* What n only gives another shape; NULL: n computes. */
graph_value *lower_viewed(compiler *c, const graph_node *n);
/* What n, a node of main and no primitive function, takes neighboring images of, those from byte *out_offset on: its
 * result can lie there. NULL: n is no such slice, or its result leaves the function. */
graph_value *lower_sliced(const lowering *l, const graph_node *n, uint64_t *out_offset);
/* What v's bytes are made as, views followed to the end. */
const graph_value *lower_base(compiler *c, const graph_value *v);
/* When n calls a region: k is its target's kernel, under the region's name. */
bool lower_region(lowering *l, const graph_node *n, prog_kernel *k);
void lower_describe(lowering *l, const graph_node *n, const char **out_kind, prog_step *s);
const char *lower_name(lowering *l, const char *want);
/* The value of the program for a new result, and for an operand. */
uint32_t lower_value(lowering *l, graph_value *v);
uint32_t lower_value_in(lowering *l, graph_value *v, prog_space space, uint32_t index, const tensor_data *data);
bool lower_operand(lowering *l, graph_value *v, src_loc loc, uint32_t *out);
prog_kernel *lower_new_kernel(lowering *l, const char *kind);
/* A value for the extent that a symbol stands for: the one that is due here, else a new one. Of a symbol that has been
 * told already it is data: whoever writes it compares it with the first one. */
uint32_t lower_extent(lowering *l, const char *symbol, prog_space space, uint32_t index);
bool lower_is_told(const lowering *l, const char *symbol); /* its value is made, or another block makes it */
/* The cell must be told by the steps of this block from now on; no longer, and whether it was still to be told. */
void lower_expect_extent(lowering *l, uint32_t cell);
bool lower_take_extent(lowering *l, uint32_t cell);
void lower_clear_marks(graph_func *f); /* before a function is lowered */

/* lower_plain.c: sets k->plain, when the operators have a compute definition. */
bool lower_plain(lowering *l, prog_kernel *k);

/* What is carried: by a loop from round to round, or as a state from run to run. */
/* A kernel in l->f that copies v into value `to` of the program, or with PROG_NONE into one of its own. NULL after an
 * error. */
graph_value *lower_copy_into(lowering *l, graph_value *v, uint32_t to, src_loc loc);
/* Whether v is made by a step of its own in the function, so that it can be made elsewhere. */
bool lower_can_be_made_in(lowering *l, const graph_value *v, const type *t);
/* The last node of the body that reads v or a view of it; what its results read counts as behind all of them. */
uint32_t lower_last_reader(compiler *c, const graph_func *body, const graph_value *v);
uint32_t lower_position(const graph_func *f, const graph_node *n);

/* lower_state.c: states of main become values of the program, in front of all steps; before and behind the nodes. */
void lower_states(lowering *l);
bool lower_write_states(lowering *l);

/* lower_flow.c */
bool lower_if(lowering *l, graph_node *n);
bool lower_loop(lowering *l, graph_node *n);
#endif
