/* SPDX-License-Identifier: Apache-2.0 */
/* The static plan: where every value lives, in which layer every operator runs, into how many parts it is cut. Pure
 * data in, pure data out. */
#ifndef LATHE_PLAN_PLAN_H
#define LATHE_PLAN_PLAN_H
#include "prog/prog.h"
#include "tir/facts.h"

/* X(id, text) */
#define PLAN_STORAGES(X)            \
    X(STORE_INPUT, "input")         \
    X(STORE_OUTPUT, "output")       \
    X(STORE_CONSTANT, "constant")   \
    X(STORE_WORKSPACE, "workspace") \
    X(STORE_STATE, "state")         /* keeps its value between runs: at the beginning of the workspace */ \
    X(STORE_DEVICE, "device") /* a piece of its own of a device's memory: none of the plan's */
typedef enum plan_storage {
#define X(id, text) id,
    PLAN_STORAGES(X)
#undef X
} plan_storage;
const char *plan_storage_text(plan_storage s);

typedef struct plan_value {
    const char *name; /* for dumps */
    plan_storage storage;
    uint32_t index; /* input, output or constant number */
    uint64_t bytes;
    uint64_t align; /* a power of two (plan_align) */
    bool from_start; /* in the workspace: the caller writes it before a run */
    int32_t parent; /* >= 0: lies inside that value at `parent_offset` (views, concatenation by aliasing) */
    uint64_t parent_offset;
} plan_value;

/* Result `out` may lie where operand `in` lay: numbers in plan_op.args. */
typedef struct plan_pair {
    uint32_t out, in;
} plan_pair;

/* Result `out` may overlap operand `in`, which ends there, when it begins `below` bytes or more before it, or `above`
 * bytes or more behind that; where one part does it all. */
typedef struct plan_distance {
    uint32_t out, in;
    uint64_t below, above;
} plan_distance;

typedef struct plan_op {
    const char *name;
    const prog_step *step; /* of the program that it is of; NULL: it was read from text */
    const tir_func *func;
    const uint32_t *args; /* value of each parameter of func: inputs then outputs */
    uint32_t n_args;
    /* facts, taken from func when there is one */
    uint32_t n_inputs; /* the first of args are read, the others written */
    int64_t extent;    /* iterations that may be cut into parts; 1: none */
    int64_t work;      /* operations, roughly: small operators are not cut */
    uint32_t workers;  /* that share it, of the problem's, one part each; 0: all of them */
    const plan_pair *inplace;
    uint32_t n_inplace;
    const plan_distance *distances;
    uint32_t n_distances;
    const tir_scratch *scratch;
    uint32_t n_scratch;
    uint32_t segment; /* operators between two jumps, or targets of jumps; counted from 0 in the given order */
} plan_op;

/* How a run goes on: in a problem without branches and loops there is one step, or none. */
typedef enum plan_step_kind { PLAN_RUN, PLAN_JUMP, PLAN_JUMP_IF_ZERO } plan_step_kind;
typedef struct plan_step {
    plan_step_kind kind;
    uint32_t to;    /* PLAN_RUN: the segment that runs; else the step that comes next, forwards or back */
    uint32_t value; /* PLAN_JUMP_IF_ZERO: one bool */
} plan_step;

typedef struct plan_problem {
    VEC(plan_value) values;
    VEC(plan_op) ops; /* in a valid order */
    VEC(plan_step) steps;
    uint32_t workers; /* width of the schedule; at least 1 */
    bool split_parts; /* false (-O0): one part per operator */
    bool keep_busy;   /* much work keeps a part for every worker, whatever the scratch of these parts takes */
    uint32_t effort;  /* searches take so many times their usual steps; 0 and 1: once */
    uint32_t most_align; /* no value needs more; 0: PACKAGE_MAX_ALIGN */
} plan_problem;

/* The alignment of a value of so many bytes: the largest power of two that is not above them nor above the problem's
 * most. */
uint32_t plan_align(const plan_problem *p, uint64_t bytes);

/* Where a value is, and between which operators it is used (-1: by none). */
typedef struct plan_place {
    uint64_t offset; /* in the workspace, or in the constants */
    int32_t first_op, last_op;
} plan_place;

/* How an operator runs. */
typedef struct plan_task {
    uint32_t parts; /* 1 to a few times the workers, beyond them a multiple, never above the operator's extent */
    uint32_t layer;
    const uint64_t *scratch_offset; /* workspace offset of scratch i (part p at + p * bytes) */
} plan_task;

typedef struct plan {
    const plan_problem *problem;
    plan_place *places; /* of the problem's values */
    plan_task *tasks;   /* of its operators */
    uint32_t n_layers;
    const uint32_t *const *layers; /* operator numbers per layer, ascending */
    const uint32_t *layer_len;
    const uint32_t *segment_layer; /* the first layer of each segment, and the end */
    uint64_t workspace_bytes; /* with the states, which it begins with */
    uint64_t state_bytes;
    uint64_t lower_bound_bytes; /* least over the orders tried of the greatest sum of live bytes, in-place counted */
    uint64_t constant_bytes;
    const char *order, *heuristic; /* what won, for the report */
} plan;

/* Chooses parts, in-place pairs (tir_can_alias), layers and offsets. Tries several orders and placements and keeps the
 * best; deterministic. Values of one layer's operators never overlap unless they are the same storage on purpose. */
bool plan_memory(compiler *c, const plan_problem *p, plan *out);
/* Bytes of scratch k of an operator that is cut into `parts`. */
uint64_t plan_scratch_bytes(const plan_op *op, uint32_t k, uint32_t parts);
/* Parts that workers take of it. */
uint32_t plan_parts(const plan_problem *p, const plan_op *op);
/* So small that a task more or less counts. */
bool plan_is_near(const plan_op *op);
/* Why workers have nothing to do in an operator with work for them. X(id, text, help) */
#define PLAN_IDLE(X)                                                           \
    X(IDLE_NONE, "", "")                                                       \
    X(IDLE_EXTENT, "extent", "no loop can be cut into that many parts")        \
    X(IDLE_SCRATCH, "scratch", "they run in fewer parts, which saves RAM")
typedef enum plan_idle_cause {
#define X(id, text, help) id,
    PLAN_IDLE(X)
#undef X
} plan_idle_cause;
const char *plan_idle_text(plan_idle_cause w);
const char *plan_idle_help(plan_idle_cause w);
/* Workers that have nothing to do while operator `op`, which has work for all of them, runs with its layer; and why. */
uint32_t plan_idle_workers(const plan *pl, uint32_t op, plan_idle_cause *out_why);
/* The value that holds v's bytes, parents followed to the end, and where in it v begins. */
uint32_t plan_root(const plan_problem *p, uint32_t v, uint64_t *out_offset);
/* Tells the loops of the operators' kernels, and those that they share, which of their parameters lie where another one
 * lies (tir_func.shared), in any of their calls. */
void plan_note_shared(compiler *c, const plan *pl);
/* Checks a plan from scratch: no two values that are live in the same layer overlap, dependencies and segments go to
 * later layers, and what a loop finds again lives as long as it. */
bool plan_verify(compiler *c, const plan *p);
/* Making steps along with operators (flow.c). An operator goes into the segment at hand. */
typedef struct plan_flow {
    arena *a;
    plan_problem *p;
    bool open; /* the last step runs the segment at hand */
} plan_flow;
void flow_op(plan_flow *f, plan_op op);
uint32_t flow_if(plan_flow *f, uint32_t condition); /* what the next two want */
uint32_t flow_else(plan_flow *f, uint32_t jump);    /* and the end wants what this gives */
void flow_end_if(plan_flow *f, uint32_t jump);
uint32_t flow_loop(plan_flow *f, uint32_t condition);
void flow_end_loop(plan_flow *f, uint32_t jump);
/* The segment that runs next at step `step`, which may be behind the last one. */
uint32_t flow_segment(const plan_problem *p, uint32_t step);

/* The problem of a function: its values as they are numbered there, its kernel steps in order with their loops and the
 * facts that follow from them. inputs_inside: inputs lie in the workspace, which they may leave to other values, where
 * there are no branches and loops, and their sizes are fixed. */
plan_problem *plan_problem_of(compiler *c, const prog_func *f, bool inputs_inside);

/* Constants of several plans in one memory, each number of bytes once: shared.c moves them there, and all plans then
 * have its size. func i is what plan i is of. */
void plan_share_constants(compiler *c, uint32_t n, const prog_func *const *funcs, plan *const *plans);
/* Where values of one storage lie that are never in each other's way; the bytes that they take. */
uint64_t plan_place_apart(arena *a, const plan_problem *p, plan_storage storage, plan_place *places);

void plan_print(writer *w, const plan *p); /* text, for goldens and inspect */
/* A problem as text, for tests, one statement a line: "workers 4"; "nosplit"; "effort 9"; "value x 64 workspace
 * [start] [in y at 16]" (or input, output, constant, state, device); "op f reads a b writes c [inplace c=a] [parts 4]
 * [overlap c=a below 8 above 64] [workers 1]
 * [scratch 128 [perpart]] [work 9]"; "if c" ... "else" ... "end"; "loop c" ... "end"; "busy" is keep_busy. Only for
 * reading: plan_print writes a plan. */
bool plan_parse(compiler *c, const char *file, const char *text, size_t len, plan_problem **out);
#endif
