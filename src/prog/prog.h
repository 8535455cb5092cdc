/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what stands between the graph and every back end (docs/reference/program.md). A program says what is
 * computed by whom, on which values, in which memory; not when (layers), where (offsets) or in how many parts, which is
 * the plan's, and not how, which is the loop IR of its kernels. It knows no operator of the graph and no name of C.
 * Values are assigned once on every path, those that a loop carries once more in its body; they are numbered by their
 * function in the order in which they first appear. */
#ifndef LATHE_PROG_PROG_H
#define LATHE_PROG_PROG_H
#include "tir/tir.h"

struct graph_func;
struct graph_node;
struct graph_module;

#define PROG_NONE UINT32_MAX

/* Where a value's bytes are. X(id, text) */
#define PROG_SPACES(X)                                                          \
    X(SPACE_INPUT, "input")         /* the caller's, only read */               \
    X(SPACE_OUTPUT, "output")       /* the caller's */                          \
    X(SPACE_CONSTANT, "constant")   /* of the module */                         \
    X(SPACE_STATE, "state")         /* of the instance: keeps its value between runs */ \
    X(SPACE_WORKSPACE, "workspace") /* given by the plan, shared over time */ \
    X(SPACE_DEVICE, "device")       /* a piece of its own, in the memory of a device */
typedef enum prog_space {
#define X(id, text) id,
    PROG_SPACES(X)
#undef X
} prog_space;
const char *prog_space_text(prog_space s);

typedef struct prog_value {
    const char *name; /* interned, unique in its function; printed %name */
    struct type type; /* a tensor; where a dimension is open, it has a bound, and storage is as large as the bounds */
    dim extent; /* the value is one i64: the extent that this symbol stands for; NULL: data */
    prog_space space;
    const char *memory;      /* of SPACE_DEVICE: which, as targets name it ("ext_dev"); NULL: the host's */
    uint32_t index;          /* number among the inputs, or the results */
    const tensor_data *data; /* of a constant */
    const tensor_data *initial; /* of a state, in the first run; NULL: zeros */
    uint32_t base;           /* its bytes lie in that value, `offset` bytes from its start; PROG_NONE: nowhere else */
    uint64_t offset;
} prog_value;

/* What a kernel computes, and the loops that do it. Kernels are shared by steps, also of several functions. */
typedef struct prog_literal {
    uint32_t param; /* of the function as it was when this one was taken out */
    const tensor_data *data;
} prog_literal;

/* Loops that stand for those of several kernels, which differ in numbers: the first operand of `loops`, an array of
 * i32, hands those over. What begins its body are the variables that they become. */
typedef struct prog_shape {
    const char *name; /* unique among shapes and kernels: "fused_nn_conv2d_nn_relu_shared" */
    tir_func *loops;
} prog_shape;

typedef struct prog_kernel {
    const char *name;            /* unique in the module: "fused_nn_conv2d_nn_relu_1" */
    const char *kind;            /* operators joined: "nn.conv2d+nn.relu" */
    const struct target *target; /* who runs it */
    tir_func *plain;             /* the loops without any schedule: the meaning, for the interpreter. NULL: only its
                                  * target's hook knows the operator, and `loops` is all there is */
    tir_func *loops;             /* as the target wants them; NULL until prog_schedule */
    bool by_target;              /* `loops` came from the target's hook */
    const char *region;          /* function of the graph that its target takes as a whole; NULL: no such one */
    const char *symbol;          /* of a region: the C function that its target has written; NULL: none */
    tir_func *device;            /* what that function has a device run; NULL: none */
    int32_t backend;             /* who executes it: enum package_backend */
    const struct target *host;   /* of a region: who runs it when its target declines */
    const char *declined;        /* of a region: why its target did; NULL: it did not, or nobody says */
    const tensor_data *const *constants; /* of a region: of each parameter of `func`, NULL where it is no constant */
    VEC(const tensor_data *) bound; /* of a region: constants inside of `func`, the last operands of `plain` */
    const prog_shape *shape;     /* with `numbers` it gives the kernel's loops (prog/shape.h); NULL: none */
    const int32_t *numbers;
    tir_func *whole;             /* `plain`, when the target has those in its code: steps hand them over no more */
    bool joins;                  /* the result is the operands' bytes one behind the other */
    bool stacks;                 /* writes one row of its result, by the last operand, an i64 */
    /* Where it was made from, for its schedule; NULL in a program that was read from text. */
    const struct graph_func *func; /* the fused function; or */
    const struct graph_node *node; /* the single operator */
    VEC(prog_literal) literals;    /* operands that have become numbers in `plain` */
} prog_kernel;

/* X(id, text) */
#define PROG_STEPS(X)                                                                              \
    X(STEP_KERNEL, "kernel") /* runs a kernel */                                                   \
    X(STEP_VIEW, "view")     /* the result is the operand's bytes under another type */            \
    X(STEP_JOIN, "join")     /* the operands, which lie in the result, are all written: no work */ \
    X(STEP_COPY, "copy")     /* the operand's bytes, in another memory */                          \
    X(STEP_IF, "if")         /* one of two blocks, by the operand; each makes the results */       \
    X(STEP_LOOP, "loop")     /* a block as long as the first operand is true; the operands are carried */
typedef enum prog_step_kind {
#define X(id, text) id,
    PROG_STEPS(X)
#undef X
} prog_step_kind;
const char *prog_step_text(prog_step_kind k);

/* Steps in order. */
typedef struct prog_block {
    struct prog_step *data;
    uint32_t len, cap;
} prog_block;

#define PROG_MAX_DEPTH 64u /* blocks inside one another */

typedef struct prog_step {
    prog_step_kind kind;
    prog_kernel *kernel; /* STEP_KERNEL */
    uint32_t *args;      /* values: operands, then results; of a kernel in the order of its parameters */
    uint32_t n_args, n_in;
    prog_block *blocks; /* STEP_IF: what runs when the operand is true, and else; STEP_LOOP: the body */
    uint32_t n_blocks;
    const char *source; /* nodes of the model behind it: "conv1, relu1"; may be empty */
    const src_loc *nodes; /* the same nodes, each once; none in a program that was read from text */
    uint32_t n_nodes;
    src_loc loc;
} prog_step;

typedef struct prog_result {
    const char *name; /* as in the model */
    uint32_t value;
    uint32_t shape_of; /* the result whose shape it is, for the caller; PROG_NONE: a result of the model */
} prog_result;

typedef struct prog_func {
    const char *name; /* printed @name */
    VEC(prog_value) values;
    uint32_t n_inputs; /* the first of values */
    uint32_t n_states; /* those that follow the inputs */
    VEC(prog_result) results;
    prog_block steps;
} prog_func;

/* All steps of a function with those inside of blocks, each before the ones in its own blocks:
 *     prog_walk w;
 *     for (prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w)) */
typedef struct prog_walk {
    struct {
        const prog_block *blocks;
        uint32_t n, block, next;
    } at[PROG_MAX_DEPTH + 1];
    uint32_t depth;
} prog_walk;
prog_step *prog_first_step(const prog_func *f, prog_walk *w);
prog_step *prog_next_step(prog_walk *w);

typedef struct prog_module {
    compiler *c;
    bool unscheduled;             /* kernels get their plain loops, whoever runs them */
    bool for_module;              /* for a module, else a package: what code generators write differs */
    const char *prefix;           /* of the C functions that code generators write: "tvmgen_default"; NULL: none */
    VEC(struct prog_source) sources; /* what they have written, one for each target (prog/source.h) */
    VEC(prog_func *) funcs; /* "main" is the entry */
    VEC(prog_kernel *) kernels;
    VEC(prog_shape *) shapes;
    struct te_records *records; /* schedules that stand before what the rules choose (te/records.h); NULL: none */
} prog_module;

/* --- building and reading --- */
prog_module *prog_module_new(compiler *c);
prog_func *prog_find(const prog_module *m, const char *name); /* NULL: none */
/* Name of a kernel before numbering, of its operators: "fused_nn_conv2d_nn_relu". */
const char *prog_kernel_base_name(arena *a, const char *kind);
void prog_name_kernels(prog_module *m); /* base names, from the second one on with a number */
const tir_func *prog_kernel_meaning(const prog_kernel *k); /* plain loops where there are some */
uint32_t prog_add_value(prog_module *m, prog_func *f, prog_value v);
/* Whether k may write result `out` over operand `in`, which has the same bytes: numbers of its parameters. */
typedef enum prog_over { PROG_OVER_NEVER, PROG_OVER_IN_ONE_PART, PROG_OVER_ALWAYS } prog_over;
prog_over prog_writes_over(compiler *c, const prog_kernel *k, uint32_t in, uint32_t out);
/* The value that holds v's bytes, followed to the end, and where in it v begins. */
uint32_t prog_root(const prog_func *f, uint32_t v, uint64_t *out_offset);
/* Numbers the values anew, in the order in which they appear in the text. */
void prog_number_values(prog_module *m, prog_func *f);
/* Gives the roots of the results to the caller's memory, and every value the space of its root. */
void prog_place_results(prog_func *f);
/* The memory in which k finds operands and leaves results, those that are no constants and no extents; NULL: the
 * host's. */
const char *prog_kernel_memory(const prog_kernel *k);
uint64_t prog_bytes(const prog_value *v); /* of its storage: open dimensions at their bounds; 0 where one has none */
/* Nothing bounds its size: it gets memory of its own when a kernel is to write it, as large as it is then. */
bool prog_is_unbounded(const prog_value *v);
uint32_t prog_find_extent(const prog_func *f, const char *symbol); /* the value that is it; PROG_NONE: none */
/* out[i]: whether input i goes into the condition of a branch or of a loop. steering.c */
void prog_find_steering(compiler *c, const prog_func *f, bool *out);

/* --- the way through --- */
/* LowerTE, as TVM calls it: the graph's main as a program. Calls are the border between graph and loops: each fused
 * function or operator becomes a kernel with its plain loops, each view a view. `unbounded`: who runs it has memory for
 * values whose dimensions have no bound. Errors: shapes that are not known, types that kernels cannot use, operators
 * without a compute definition; `t` is who runs it, and refuses values that are too large for it. Changes the graph
 * only by copies in front of results. */
/* Kernels that the program of g will have at least, told without making them. */
uint32_t prog_least_kernels(compiler *c, const struct graph_module *g);
bool prog_from_graph(compiler *c, struct graph_module *g, const struct target *t, bool unbounded, prog_module **out);
/* Parameter `param` of f always holds the one number of t: loads of it become that number, and it goes. */
void prog_drop_param(compiler *c, tir_func *f, uint32_t param, const tensor_data *t);
/* Gives every kernel the loops that its target wants: by the target's hook, else by the default schedule and the
 * passes on loops. */
bool prog_schedule(compiler *c, prog_module *m);
/* The computation of every kernel (only NULL), or of one, and the schedule that it got, behind a line "// NAME":
 * text for `lathe opt` and --schedules. */
bool prog_print_schedules(compiler *c, writer *w, const prog_module *m, const prog_kernel *only);
/* Most bytes of a value or a workspace: 2^31 on 32-bit targets, else 2^40. */
uint64_t prog_most_bytes(const struct target *t);

/* --- passes, as rows: each runs alone through `lathe opt` --- */
typedef bool (*prog_pass_fn)(compiler *c, prog_module *m);
/* X(id, what a pass may need) */
#define PROG_FACTS(X)                                             \
    X(PROG_FACT_APART, "values that lie in no other ones")        \
    X(PROG_FACT_OWN, "kernels of one step each")                  \
    X(PROG_FACT_LOOPS, "kernels with the loops of their targets") \
    X(PROG_FACT_STORES, "loops whose stores no instruction hides")
enum {
#define X(id, text) id##_BIT,
    PROG_FACTS(X)
#undef X
#define X(id, text) id = 1 << id##_BIT,
    PROG_FACTS(X)
#undef X
};
/* X(id, name, function, needs, gives, breaks, lowest opt_level, help) */
#define PROG_ASKED 9 /* above all levels: only where it is named */
#define PROG_PASSES(X)                                                                          \
    X(PROG_SHOW, "show-values", prog_pass_show, PROG_FACT_APART, 0, 0, PROG_ASKED,              \
      "what kernels make becomes results of the function")                                      \
    X(PROG_LITERALS, "literals", prog_pass_literals, PROG_FACT_OWN, 0, 0, 0,                    \
      "constants of one element become numbers in their kernels")                               \
    X(PROG_JOIN, "join-in-place", prog_pass_join, 0, 0, PROG_FACT_APART, 1,                     \
      "operands of a concatenation are written where it lies")                                  \
    X(PROG_SHARE, "share", prog_pass_share, 0, 0, PROG_FACT_OWN, 1,                             \
      "equal kernels, and equal constants, are one")                                            \
    X(PROG_SCHEDULE, "schedule", prog_schedule, 0, PROG_FACT_LOOPS, 0, PROG_ASKED,              \
      "kernels get the loops of their targets")                                                 \
    X(PROG_STATES, "states-in-place", prog_pass_states, PROG_FACT_LOOPS | PROG_FACT_STORES, 0, 0, PROG_ASKED, \
      "operators write states without a copy")                                                  \
    X(PROG_SHAPES, "share-shapes", prog_pass_shapes, PROG_FACT_LOOPS, 0, 0, PROG_ASKED,         \
      "kernels that differ in numbers share their loops")                                       \
    X(PROG_SELECT, "select", prog_pass_select, PROG_FACT_LOOPS, 0, PROG_FACT_STORES, PROG_ASKED, \
      "loops of kernels become instructions of their targets")                                  \
    X(PROG_DEVICE, "device-memory", prog_pass_device, PROG_FACT_LOOPS, 0, 0, PROG_ASKED,        \
      "what regions exchange stays in their memory")
#define X(id, name, fn, needs, gives, breaks, level, help) bool fn(compiler *c, prog_module *m);
PROG_PASSES(X)
#undef X
/* The named passes ("a,b"), or with NULL those of the optimisation level. Verifies after each. */
bool prog_run_passes(compiler *c, prog_module *m, const char *names, int opt_level, bool print_after_all, writer *dump);
extern const struct pass_level prog_passes; /* base/pass.h */
/* Drops constants and kernels that no step uses; values and kernels are numbered anew. */
void prog_drop_unused(prog_module *m);

/* --- text, checks, oracle --- */
void prog_print(writer *w, const prog_module *m);
bool prog_parse(compiler *c, const char *file, const char *text, size_t len, prog_module **out);
/* Definition before use, each value written once, spaces, views inside their base, and operands that agree with the
 * parameters of kernels. Reports every fault as DIAG_VERIFY. */
bool prog_verify(compiler *c, const prog_module *m);
/* A diagnostic that names the operator, whose name may be NULL, and the model's nodes behind it; false. `text` says
 * what the status means; NULL: it is one of those that kernels end with. `more` follows it; "": nothing. */
bool prog_failed(compiler *c, src_loc loc, const char *kernel, const char *source, int32_t status, const char *text,
                 const char *more);
/* Runs main from the plain loops of its kernels: the oracle of all that comes behind. `in` and `out`: one address per
 * input and result. States begin as in the first run. false after a diagnostic that names the step. */
bool prog_interpret(compiler *c, const prog_module *m, void *const *in, void *const *out);
/* Memory for main's states, one address each, as they are in the first run; NULL after a diagnostic. */
void **prog_new_states(compiler *c, const prog_module *m);
void prog_reset_states(const prog_module *m, void *const *states);
/* The same, with states that go on from run to run. */
bool prog_interpret_next(compiler *c, const prog_module *m, void *const *states, void *const *in, void *const *out);
/* The same as prog_interpret, but `run` is asked first for each kernel's step, params[i] being where value i of its
 * args is; it sets *out_done when it has run it. */
typedef struct prog_runner {
    void *ctx;
    bool (*run)(void *ctx, const prog_step *s, void *const *params, bool *out_done);
} prog_runner;
bool prog_interpret_by(compiler *c, const prog_module *m, void *const *in, void *const *out, const prog_runner *r);
#endif
