/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on graphs are rows: name, function, what they need, give and break (base/pass.h). Each runs alone through
 * `lathe opt --passes`. */
#ifndef LATHE_GRAPH_PASS_H
#define LATHE_GRAPH_PASS_H
#include "graph/choice.h"
#include "graph/graph.h"
#include "type/target.h"

/* How sums of quantised numbers are rounded: as onnxruntime, as TensorFlow Lite (twice), or once. */
typedef enum graph_requant { REQUANT_EXACT, REQUANT_TFLITE, REQUANT_FAST, REQUANT_LITERT } graph_requant;

/* Forms of ensembles of trees: by size and target, or as named (graph/op/trees.h). */
typedef enum graph_trees {
    GRAPH_TREES_AUTO,
    GRAPH_TREES_TABLE,
    GRAPH_TREES_BRANCHES,
    GRAPH_TREES_COMPLETE,
    GRAPH_TREES_LINKS,
    GRAPH_TREES_LEVELS,
    GRAPH_TREES_VECTORS,
    GRAPH_TREES_COUNT
} graph_trees;

/* What steers passes on graphs. */
struct offload;
typedef struct pass_options {
    const struct target *target; /* who will run what comes out */
    int opt_level;               /* 0..3 */
    bool no_winograd;            /* convolutions keep the direct form, whose error is smaller */
    bool no_split_data;          /* pack-weights splits no data; its time is the same whatever the numbers are */
    const struct offload *offload; /* targets that take a part of the graph, graph/pass/offload.h; NULL: none */
    bool no_integers;            /* of quantised values only those that round half up are integers */
    bool quantised_ends;         /* inputs and results are handed over quantised where they are so inside */
    bool float_ends;             /* beside quantised_ends: others stay floats, and are no error */
    graph_choices *choices;      /* forms that records give, and where passes choose; NULL: rules alone */
    graph_trees trees;
    graph_requant requant;       /* how integers round to the nearest even */
    const char *dump_dir;        /* NULL: none */
    bool print_after_all;        /* into `dump`, when the text changed */
    bool verify;                 /* after each pass */
    writer *dump;
    writer *times; /* NULL: none; a line for each pass */
} pass_options;
pass_options pass_options_default(void); /* the default target, level 3 */

/* Whether convert-rows is for such a processor: without vectors, with pointers of 32 bits. */
bool graph_pass_rows_takes(const struct target *t);

typedef bool (*graph_pass_fn)(compiler *c, graph_module *m, const pass_options *o);

/* What a pass may need of a graph: X(id, in words) */
#define GRAPH_FACTS(X)                                             \
    X(FACT_TYPES, "types")                                         \
    X(FACT_APART, "operators that are in no primitive function")   \
    X(FACT_STORED, "quantized constants as the model stores them") \
    X(FACT_LAYOUT, "operators in the model's layout")              \
    X(FACT_WEIGHTS, "weights in no order of their own")            \
    X(FACT_BYTES, "weights in whole bytes")                        \
    X(FACT_FOLDED, "constants that are computed")                  \
    X(FACT_CLOSED, "loops whose condition is a value")             \
    X(FACT_FREE, "nodes that no target has taken")                 \
    X(FACT_TAKEN, "nodes that targets have taken")                 \
    X(FACT_REGIONS, "regions of targets")
enum {
#define X(id, text) id##_BIT,
    GRAPH_FACTS(X)
#undef X
#define X(id, text) id = 1 << id##_BIT,
    GRAPH_FACTS(X)
#undef X
    FACTS_NODES = FACT_TYPES | FACT_APART,      /* the pass looks at operators in main */
    FACTS_MODEL = FACTS_NODES | FACT_LAYOUT,    /* it knows convolutions as models have them */
    FACTS_UNPACKED = FACTS_NODES | FACT_WEIGHTS /* it reads weights that are packed later */
};

/* X(id, name, function, needs, gives, breaks, lowest opt_level, one-line help) */
#define GRAPH_PASSES(X)                                                                                           \
    X(INFER, "infer-types", graph_pass_infer, 0, FACT_TYPES, 0, 0, "types of all values")                         \
    X(SINK, "sink-dequantize", graph_pass_sink, FACTS_MODEL | FACT_STORED, 0, 0, 1,                               \
      "moves of dequantized constants work on the stored numbers, and are dequantized afterwards")                \
    X(USE_INTEGERS, "use-integers", graph_pass_use_integers, FACTS_MODEL | FACT_STORED, 0, 0, 1,                  \
      "arithmetic between dequantized values becomes integer arithmetic")                                         \
    X(HALVES, "widen-halves", graph_pass_widen_halves, FACTS_NODES, 0, 0, 1,                                      \
      "operators on f16 compute on f32, on processors with vectors")                                              \
    X(ENDS, "quantized-ends", graph_pass_quantised_ends, FACTS_NODES, 0, 0, 1,                                    \
      "inputs and results get the quantized type that the model uses inside")                                     \
    X(SIMPLIFY, "simplify", graph_pass_simplify, FACTS_NODES, 0, 0, 1,                                            \
      "identities, transpose pairs, reshape chains, batch norm and pad into convolution")                         \
    X(FOLD, "fold-constants", graph_pass_fold, FACT_TYPES, FACT_FOLDED, FACT_STORED, 2,                           \
      "evaluate pure nodes of constants")                                                                         \
    X(BRANCHES, "take-branches", graph_pass_take_branches, FACTS_NODES, 0, 0, 2,                                  \
      "branches with constant conditions and loops of one round are inlined")                                     \
    X(CSE, "cse", graph_pass_cse, FACT_TYPES, 0, 0, 1, "common subexpressions")                                   \
    X(DCE, "dce", graph_pass_dce, 0, 0, 0, 1, "dead code")                                                        \
    X(COMPOSITE, "MergeComposite", graph_pass_merge_composite, FACTS_MODEL | FACT_FREE, 0, 0, 0,                  \
      "nodes that a target's pattern matches become a function with its name")                                    \
    X(ANNOTATE, "AnnotateTarget", graph_pass_annotate_target, FACTS_MODEL, FACT_TAKEN, FACT_FREE, 0,              \
      "nodes say which target takes them")                                                                        \
    X(REGIONS, "MergeCompilerRegions", graph_pass_merge_regions, FACTS_MODEL | FACT_TAKEN, 0, 0, 0,               \
      "connected nodes of one target get one number, without cycles")                                             \
    X(PARTITION, "PartitionGraph", graph_pass_partition, FACTS_MODEL | FACT_TAKEN, FACT_REGIONS, FACT_TAKEN, 0,   \
      "each region becomes a function that its target compiles")                                                  \
    X(TARGET_HOOK, "RelayToTIRTargetHook", graph_pass_target_hook, FACT_TYPES | FACT_REGIONS, 0, 0, 0,            \
      "a target may change its regions; types are inferred again")                                                \
    X(EXTRACT, "ExtractPrimFuncConstants", graph_pass_extract_constants, FACT_TYPES | FACT_REGIONS, 0, 0, 0,      \
      "constants of regions become parameters")                                                                   \
    X(RECIPROCAL, "reciprocals", graph_pass_reciprocal, FACTS_NODES, 0, 0, 3,                                     \
      "division by a constant becomes multiplication, one more rounding")                                         \
    X(ATTENTION, "fuse-attention", graph_pass_attention, FACTS_NODES, 0, 0, 3,                                    \
      "products, softmax and products of attention become one operator")                                          \
    X(FLATTEN, "flatten-rows", graph_pass_flatten, FACTS_UNPACKED, 0, 0, 3,                                       \
      "products of several batches with one matrix become one product of all rows")                               \
    X(FILL_ROWS, "fill-rows", graph_pass_fill_rows, FACTS_NODES, 0, 0, 3,                                         \
      "softmax works on rows of whole vectors")                                                                   \
    X(TREES, "choose-trees", graph_pass_trees, FACTS_NODES, 0, 0, 1,                                              \
      "ensembles of decision trees as tables, nested ifs, complete trees or links, by size and target")           \
    X(LINES, "lines-to-images", graph_pass_lines, FACTS_MODEL, 0, 0, 1,                                           \
      "quantized convolutions along one axis become those of images of one row")                                  \
    X(SIGNED_BYTES, "signed-bytes", graph_pass_signed_bytes, FACTS_MODEL, 0, 0, 3,                                \
      "quantized numbers of u8 become i8 where products of those cost less")                                      \
    X(ZERO_POINTS, "fold-zero-points", graph_pass_zero_points, FACTS_MODEL, 0, 0, 3,                              \
      "zero points of integer convolutions and products go into weights and biases")                              \
    X(RNN, "rnn-products", graph_pass_rnn, FACTS_UNPACKED, 0, 0, 3,                                               \
      "recurrent operators become one product over all steps, and the steps")                                     \
    X(PHASES, "phase-convolutions", graph_pass_phases, FACTS_MODEL, 0, 0, 3,                                      \
      "transposed convolutions become convolutions that make each phase of the stride as channels")               \
    X(GROUPS, "split-groups", graph_pass_groups, FACTS_MODEL, 0, 0, 3,                                            \
      "a convolution of bytes in groups becomes one for each, for processors without vectors")                    \
    X(LAYOUT, "convert-layout", graph_pass_layout, FACTS_UNPACKED, 0, FACT_LAYOUT | FACT_FOLDED, 3,               \
      "convolutions and operators between them work on blocks of channels (NCHW16c)")                             \
    X(ROWS, "convert-rows", graph_pass_rows, FACTS_UNPACKED, 0, FACT_LAYOUT, 1,                                   \
      "convolutions and products of bytes with channels last, for processors without vectors")                    \
    X(ALGORITHM, "choose-conv-algorithm", graph_pass_conv_algorithm, FACTS_UNPACKED, 0, FACT_LAYOUT, 3,           \
      "Winograd's form for convolutions that it makes faster")                                                    \
    X(PACK, "pack-weights", graph_pass_pack, FACTS_NODES | FACT_BYTES, 0, FACT_LAYOUT | FACT_WEIGHTS | FACT_FOLDED, 3, \
      "constant weights of convolutions and matmuls in kernel order")                                             \
    X(NIBBLES, "pack-nibbles", graph_pass_pack_nibbles, FACTS_NODES | FACT_FOLDED, 0, FACT_WEIGHTS | FACT_BYTES, 1, \
      "constant weights that fit into 4 bits are stored two in a byte, on processors with vectors")               \
    X(RESCALE, "rescale-words", graph_pass_rescale, FACTS_NODES, 0, 0, 1,                                         \
      "sums that are rounded twice are scaled by one word of one product, on processors without vectors")         \
    X(SUMS, "sum-words", graph_pass_sums, FACTS_NODES, 0, 0, 1,                                                   \
      "sums of two quantized bytes become two products and a shift, on microcontrollers")                         \
    X(CLOSE_LOOPS, "close-loops", graph_pass_close_loops, FACTS_NODES, FACT_CLOSED, 0, 0,                         \
      "the condition of a loop becomes nodes, the number of the round a carried value")                           \
    X(FUSE, "fuse", graph_pass_fuse, FACT_TYPES | FACT_FOLDED | FACT_CLOSED, 0, FACT_APART, 0,                    \
      "groups of nodes become primitive functions")                                                               \
    X(SPLIT_BATCH, "split-batch", graph_pass_split_batch, FACT_TYPES, 0, 0, 3,                                    \
      "layers that exchange more than the caches hold run for a few images of a batch at a time")

#define X(id, name, fn, needs, gives, breaks, level, help) bool fn(compiler *c, graph_module *m, const pass_options *o);
GRAPH_PASSES(X)
#undef X

/* The order without a list of names, with the passes of targets (graph/family.h) in it; it lasts as long as c. */
const char *graph_default_passes(compiler *c, const pass_options *o);
uint32_t graph_facts(const graph_module *m); /* what holds of it, of the facts that some pass gives */
extern const struct pass_level graph_passes; /* base/pass.h */
/* Runs the named passes ("a,b") or, with names NULL, the default order as far as the optimization level goes. o may be
 * NULL: the default. Errors: those of pass_run. */
bool graph_run_passes(compiler *c, graph_module *m, const char *names, const pass_options *o);
#endif
