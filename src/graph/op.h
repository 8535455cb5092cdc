/* SPDX-License-Identifier: Apache-2.0 */
/* Operator rows. A node points at its row; built-in rows come from graph_ops.def, users register theirs into the
 * compiler context in the same way. A row says everything the graph passes need; its `te` part (compute definition and
 * default schedule, te/te_op.h) is attached by `te` and only forward-declared here. */
#ifndef LATHE_GRAPH_OP_H
#define LATHE_GRAPH_OP_H
#include "graph/graph.h"
#include "graph/operand.h"

struct te_op;

/* How an operator may be fused (TVM's op pattern kinds), in rising order of rigidity. */
typedef enum graph_class {
    CLASS_ELEMENTWISE, /* output[i] from input[i] of the same shape */
    CLASS_BROADCAST,   /* output[i] from inputs by broadcasting */
    CLASS_INJECTIVE,   /* each output element reads one element of each input: transpose, slice, concatenate */
    CLASS_REDUCTION,   /* sum, max, argmax, softmax: injective producers may be inlined into it */
    CLASS_OUT_FUSABLE, /* convolution, matmul, pooling: element-wise consumers may be fused into its store */
    CLASS_OPAQUE       /* neither */
} graph_class;

typedef enum graph_effect { EFFECT_PURE, EFFECT_RANDOM, EFFECT_STATEFUL } graph_effect;

#define OPF_VIEW        1u   /* output is the first input's bytes under another shape (reshape); see graph_is_view */
#define OPF_COMMUTATIVE 2u   /* two inputs that may be swapped */
#define OPF_NO_FUSE     4u   /* ends fusion on both sides (quantize) */
#define OPF_CALL        8u   /* calls functions of the module (fused group, If, Loop) */
#define OPF_NO_FOLD     16u  /* constant folding leaves it alone */
#define OPF_SHAPE_ARGS  32u  /* inputs from 1 on are shapes, axes, pads, ...: constant ones go into the primitive */
#define OPF_MOVES       64u  /* every output element is an element of input 0: of a splat it makes a splat */
#define OPF_STREAMS     128u /* reads each element of input 0 a few times at most: producers may be inlined there */
#define OPF_SUM         256u /* computes a sum, element by element, of which a product may be an operand */
#define OPF_IMAGES      512u /* each image, along axis 0 of input 0 and of the results, is made by itself */
#define OPF_LAYOUT      1024u /* the elements of input 0 in another order */

/* Type relation: inputs are not poisoned, and are tensors of known rank as the row asks for; sets out[0..n->n_outputs).
 * Reports errors at n->loc. A dimension it cannot know is taken from n->outputs[i]->declared when that is static, else
 * a fresh symbol (bounded when possible). */
typedef bool (*graph_infer_fn)(compiler *c, const graph_node *n, type *out);

typedef struct graph_op {
    const char *name;         /* "nn.conv2d": letters, digits, _ and . ; in C identifiers . becomes _ */
    const char *operands;     /* "x starts:index[_] value?:~x(1)": graph/operand.h */
    int32_t min_out, max_out; /* max_out -1: any number */
    graph_class cls;
    graph_effect effect;
    uint32_t flags;
    graph_infer_fn infer;
    const char *schema;     /* attributes: "axis:int=-1 keepdims:int=1 to:dtype perm:ints=[]"; no default: required */
    const struct te_op *te; /* NULL: cannot be lowered (constant, call) */
    const attr_def *attrs;  /* made from the schema when the row is registered */
    uint32_t n_attrs;
    const attr *defaults; /* one per attr_def; kind ATTR_* with the default's value; name NULL when required */
    const operand_def *operand_defs; /* made from the operands' text, as are the two counts */
    uint32_t n_operands;
    int32_t min_in, max_in; /* max_in -1: any number */
} graph_op;

/* Rows of no table, which have a name and no meaning: an operator of a model that nobody knows, and one that is known
 * but cannot be read, such as one that depends on a result of the first. Only who asks for them meets them
 * (frontend_options): their results have the types that the model declares, or TYPE_NONE. */
extern const graph_op graph_op_unknown, graph_op_unread;

/* The row's effect, or for a node that calls functions the worst of what they do. */
graph_effect graph_effect_of(const graph_node *n);

/* The outputs' types by the row: its demands on the operands, then its relation, with what that may rely on. */
bool graph_relate(compiler *c, const graph_node *n, type *out);
/* What relations ask of extents a and b. */
typedef enum extent_rule {
    EXTENTS_EQUAL,     /* a == b */
    EXTENTS_WITHIN,    /* a <= b */
    EXTENTS_STRETCHED, /* a == 1 or a == b: broadcasting */
    EXTENTS_MULTIPLE   /* b divides a */
} extent_rule;
typedef struct extent_demand {
    dim a, b;
    extent_rule rule;
    const char *what; /* whose extents they are, for messages */
} extent_demand;
typedef struct extent_demands {
    VEC(extent_demand) all;
} extent_demands;
/* What the row asks of extents that no type tells, for the kernel to look at. false: n is wrong, an error says why. */
bool graph_demands(compiler *c, const graph_node *n, extent_demands *out);
/* Whether the operands that say shapes, axes, pads, ... (OPF_SHAPE_ARGS) are constants: nothing is left to check when
 * the program runs. */
bool graph_shape_args_known(const graph_node *n);
/* Whether the result is the first operand's bytes under another shape, and nothing needs to run for it: also not to see
 * that they are as many. */
bool graph_is_view(compiler *c, const graph_node *n);

/* The symbols that are dimensions of n's outputs, alone, and of none of its inputs: what n's operands' values decide,
 * in the order of the outputs and their dimensions. At most `max`; returns how many. */
uint32_t graph_own_symbols(const graph_node *n, uint32_t max, const char **out);

/* The symbol of that axis of what the loop n carries as value i, where it stands for another extent in every round:
 * when none of n's operands has it. NULL: the extent stays. */
const char *graph_carried_symbol(const graph_node *n, uint32_t i, int32_t axis);

/* Rounds that a loop makes at most, by its first operand, which may be left out. NULL: not known. */
dim graph_most_rounds(compiler *c, const graph_value *trips);
/* The most that an extent d which a loop carries can be: it begins as `first` and is `next` behind a round, of which
 * there are `trips` at most (NULL: not known); `stated` is what the model says that it is in the end, or NULL. -1: not
 * known. */
int64_t graph_carried_bound(compiler *c, dim d, dim first, dim next, dim trips, dim stated);

/* Registers a copy of the row (the name must be new: DIAG_USAGE otherwise) and returns it; NULL after an error. */
const graph_op *graph_register_op(compiler *c, const graph_op *row);
void graph_register_builtin_ops(compiler *c); /* rows of graph_ops.def */
void graph_op_set_te(compiler *c, const char *name, const struct te_op *te);
const graph_op *graph_find_op(const compiler *c, const char *name); /* NULL: unknown */
uint32_t graph_op_count(const compiler *c);
const graph_op *graph_op_at(const compiler *c, uint32_t i); /* in order of registration */

/* Helpers for type relations (graph/infer_util.c). Axes count from the end when negative. */
bool infer_axis(compiler *c, const graph_node *n, int64_t axis, int32_t rank, int32_t *out);
bool infer_same(compiler *c, const graph_node *n, type *out); /* one output typed like input 0 */
bool infer_error(compiler *c, const graph_node *n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool infer_no_broadcast(compiler *c, const graph_node *n, const type *a, const type *b); /* neither way: an error */
bool infer_no_broadcast_to(compiler *c, const graph_node *n, const type *from, const type *to);
const type *infer_in(const graph_node *n, uint32_t i); /* type of input i; NULL when left out */
/* What a relation asks of two extents. false: numbers for which it does not hold. Where no type tells whether it holds
 * the kernel looks (graph_demands), so a compute definition may rely on it. */
bool infer_extents(compiler *c, dim a, extent_rule rule, dim b, const char *what);
/* The same of operand i, which is broadcast to the shape, never the other way round; with the error. */
bool infer_stretched(compiler *c, const graph_node *n, uint32_t i, shape to);
/* The same of `from` alone, which is known to broadcast to it. */
void infer_leads_to(compiler *c, shape from, shape to);
/* The declared type of output i when it is a tensor of known rank; else NULL. */
const type *infer_declared(const graph_node *n, uint32_t i);
/* For relations: the extent of an axis of result i, of that rank, where only the data decides it. It is the declared
 * number or symbol, which the kernel then asserts; else a symbol "prefix_N", the same one each time that the relation
 * is asked. bound: the most that it can be, whatever the data; -1: nothing is known. */
dim infer_open(compiler *c, const graph_node *n, uint32_t i, int32_t rank, int32_t axis, const char *prefix,
               int64_t bound);

#define GRAPH_OP(id, name, operands, omin, omax, cls, effect, flags, infer, compute, schedule, schema) \
    bool infer(compiler *c, const graph_node *n, type *out);
#include "graph/graph_ops.def"
#undef GRAPH_OP
#endif
