/* SPDX-License-Identifier: Apache-2.0 */
/* Graph passes are rows: name, function, what they need, give and break. The driver of passes checks the order, runs,
 * verifies, times and dumps; a pass contains none of that. Each runs alone through `lathe opt --passes`. */
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

#define FACT_TYPES 1u /* every value has its type */
#define FACT_FUSED 2u /* main consists of calls of primitive functions, constants and views */

/* X(id, name, function, needs, gives, breaks, lowest opt_level, one-line help) */
#define GRAPH_PASSES(X)                                                                                 \
    X(INFER, "infer-types", graph_pass_infer, 0, FACT_TYPES, 0, 0, "types of all values")                    \
    X(SINK, "sink-dequantize", graph_pass_sink, FACT_TYPES, 0, 0, 1,                                    \
      "moves of dequantized constants work on the stored numbers, and are dequantized afterwards")      \
    X(USE_INTEGERS, "use-integers", graph_pass_use_integers, FACT_TYPES, 0, 0, 1,                       \
      "arithmetic between dequantized values becomes integer arithmetic")                               \
    X(ENDS, "quantized-ends", graph_pass_quantised_ends, FACT_TYPES, 0, 0, 1,                           \
      "inputs and results get the quantized type that the model uses inside")                           \
    X(SIMPLIFY, "simplify", graph_pass_simplify, FACT_TYPES, 0, 0, 1,                                   \
      "identities, transpose pairs, reshape chains, batch norm and pad into convolution")               \
    X(VTA_PACK, "vta-pack", graph_pass_vta_pack, FACT_TYPES, 0, 0, 0,                                   \
      "regions of VTA take and give tensors in the tiles of the device")                                \
    X(FOLD, "fold-constants", graph_pass_fold, FACT_TYPES, 0, 0, 2, "evaluate pure nodes of constants") \
    X(BRANCHES, "take-branches", graph_pass_take_branches, FACT_TYPES, 0, 0, 2,                         \
      "branches with constant conditions and loops of one round are inlined")                           \
    X(CSE, "cse", graph_pass_cse, FACT_TYPES, 0, 0, 1, "common subexpressions")                         \
    X(DCE, "dce", graph_pass_dce, 0, 0, 0, 1, "dead code")                                              \
    X(VTA_FOLD, "vta-fold", graph_pass_vta_fold, FACT_TYPES, 0, 0, 0,                                   \
      "windows of few channels become channels, which fill the lanes of VTA")                           \
    X(COMPOSITE, "MergeComposite", graph_pass_merge_composite, FACT_TYPES, 0, 0, 0,                     \
      "nodes that a target's pattern matches become a function with its name")                          \
    X(ANNOTATE, "AnnotateTarget", graph_pass_annotate_target, FACT_TYPES, 0, 0, 0,                      \
      "nodes say which target takes them")                                                              \
    X(REGIONS, "MergeCompilerRegions", graph_pass_merge_regions, FACT_TYPES, 0, 0, 0,                   \
      "connected nodes of one target get one number, without cycles")                                   \
    X(PARTITION, "PartitionGraph", graph_pass_partition, FACT_TYPES, 0, 0, 0,                           \
      "each region becomes a function that its target compiles")                                        \
    X(TARGET_HOOK, "RelayToTIRTargetHook", graph_pass_target_hook, FACT_TYPES, 0, 0, 0,                 \
      "a target may change its regions; types are inferred again")                                      \
    X(EXTRACT, "ExtractPrimFuncConstants", graph_pass_extract_constants, FACT_TYPES, 0, 0, 0,           \
      "constants of regions become parameters")                                                         \
    X(RECIPROCAL, "reciprocals", graph_pass_reciprocal, FACT_TYPES, 0, 0, 3,                            \
      "division by a constant becomes multiplication, one more rounding")                               \
    X(ATTENTION, "fuse-attention", graph_pass_attention, FACT_TYPES, 0, 0, 3,                           \
      "products, softmax and products of attention become one operator")                               \
    X(FLATTEN, "flatten-rows", graph_pass_flatten, FACT_TYPES, 0, 0, 3,                                 \
      "products of several batches with one matrix become one product of all rows")                    \
    X(FILL_ROWS, "fill-rows", graph_pass_fill_rows, FACT_TYPES, 0, 0, 3,                                \
      "softmax works on rows of whole vectors")                                                        \
    X(TREES, "choose-trees", graph_pass_trees, FACT_TYPES, 0, 0, 1,                                     \
      "ensembles of decision trees as tables, nested ifs or complete trees, by size and target")        \
    X(LINES, "lines-to-images", graph_pass_lines, FACT_TYPES, 0, 0, 1,                                  \
      "quantized convolutions along one axis become those of images of one row")                        \
    X(SIGNED_BYTES, "signed-bytes", graph_pass_signed_bytes, FACT_TYPES, 0, 0, 3,                        \
      "quantized numbers of u8 become i8 where products of those cost less")                            \
    X(ZERO_POINTS, "fold-zero-points", graph_pass_zero_points, FACT_TYPES, 0, 0, 3,                      \
      "zero points of integer convolutions and products go into weights and biases")                    \
    X(RNN, "rnn-products", graph_pass_rnn, FACT_TYPES, 0, 0, 3,                                         \
      "recurrent operators become one product over all steps, and the steps")                           \
    X(PHASES, "phase-convolutions", graph_pass_phases, FACT_TYPES, 0, 0, 3,                              \
      "transposed convolutions become convolutions that make each phase of the stride as channels")     \
    X(LAYOUT, "convert-layout", graph_pass_layout, FACT_TYPES, 0, 0, 3,                                 \
      "convolutions and operators between them work on blocks of channels (NCHW16c)")                   \
    X(GROUPS, "split-groups", graph_pass_groups, FACT_TYPES, 0, 0, 3,                                    \
      "a convolution of bytes in groups becomes one for each, for processors without vectors")           \
    X(ROWS, "convert-rows", graph_pass_rows, FACT_TYPES, 0, 0, 1,                                       \
      "convolutions and products of bytes with channels last, for processors without vectors")          \
    X(ALGORITHM, "choose-conv-algorithm", graph_pass_conv_algorithm, FACT_TYPES, 0, 0, 3,               \
      "Winograd's form for convolutions that it makes faster")                                          \
    X(PACK, "pack-weights", graph_pass_pack, FACT_TYPES, 0, 0, 3,                                       \
      "constant weights of convolutions and matmuls in kernel order")                                   \
    X(NIBBLES, "pack-nibbles", graph_pass_pack_nibbles, FACT_TYPES, 0, 0, 1,                            \
      "constant weights that fit into 4 bits are stored two in a byte, on processors with vectors")     \
    X(CLOSE_LOOPS, "close-loops", graph_pass_close_loops, FACT_TYPES, 0, 0, 0,                          \
      "the condition of a loop becomes nodes, the number of the round a carried value")                 \
    X(FUSE, "fuse", graph_pass_fuse, FACT_TYPES, FACT_FUSED, 0, 0, "groups of nodes become primitive functions")

#define X(id, name, fn, needs, gives, breaks, level, help) bool fn(compiler *c, graph_module *m, const pass_options *o);
GRAPH_PASSES(X)
#undef X

/* Runs the named passes ("a,b") or, with names NULL, the pipeline of the opt level. o may be NULL:
 * the default. Errors:
 * DIAG_USAGE for an unknown name or an order that does not hold, and those of the passes. */
bool graph_run_passes(compiler *c, graph_module *m, const char *names, const pass_options *o);
#endif
