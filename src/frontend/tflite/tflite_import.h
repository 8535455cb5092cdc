/* SPDX-License-Identifier: Apache-2.0 */
/* The importer's insides: tensors and the values that stand for them, the operator being imported, and what importers
 * of operators build with. After the first failure of an operator every building function returns a value that nothing
 * reads (never NULL), so importers compose without checks and report by `return !n->failed`.
 *
 * TensorFlow Lite's images have their channels last; convolutions and pools of the graph IR have them behind the batch.
 * So a tensor of four dimensions may have two values, `plain` as the model has it and `image` with its channels second.
 * Each is made from the other when somebody asks for it: between convolutions nothing is ever turned around. */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_IMPORT_H
#define LATHE_FRONTEND_TFLITE_TFLITE_IMPORT_H
#include "base/ptr_map.h"
#include "frontend/tflite/flex.h"
#include "frontend/tflite/tflite.h"
#include "frontend/tflite/tflite_schema.h"
#include "graph/op.h"

#define TFLITE_MAX_OPERATORS 200000u

/* Memory that keeps its value from call to call (tflite_op_state.c). */
typedef struct tflite_variable {
    const char *name;
    graph_value *param; /* what the call before left; NULL: nobody reads that */
    graph_value *now;   /* what it holds at the operator at hand; NULL: not used yet */
    struct tflite_region *region; /* whose value `now` is; NULL: main's */
    const tensor_data *initial; /* NULL: zeros */
} tflite_variable;

typedef struct tflite_variables {
    VEC(tflite_variable *) list;
    ptr_map by_name;   /* resource variables: interned container and name -> number */
    ptr_map by_tensor; /* variable tensors, of any graph: tfl_tensor -> number */
    graph_func *main;  /* the function whose states they become */
    graph_value *runs; /* whether the kernels' run has come this far; NULL: always */
} tflite_variables;

/* A variable inside of a branch or a loop: a parameter of its function, and a result where the function changes it. */
typedef struct tflite_crossing {
    tflite_variable *variable;
    graph_value *before, *param, *after; /* before: outside; the others inside */
} tflite_crossing;

/* The function of a branch or of a loop. */
typedef struct tflite_region {
    struct tflite_region *outer; /* NULL: it is in main */
    graph_func *f;
    VEC(tflite_crossing) states; /* in the order of the parameters, which are its last ones */
} tflite_region;

/* What a tensor is read as, and what stands for it so far. */
typedef struct tflite_tensor {
    const tfl_tensor *t;
    const char *name; /* interned; made up where the model has none */
    struct type type; /* as the model has it */
    const tensor_data *data; /* of a constant, which may also be one that an operator computed */
    graph_value *plain, *image;
    tflite_variable *variable; /* that it is, or is the handle of; NULL: neither, so far */
    bool poison; /* made by an operator that failed: who reads it says nothing */
    bool is_made, is_result;
    bool is_complex; /* c64: two numbers of f32, in an axis behind those that the model has */
} tflite_tensor;

typedef struct tflite_missing {
    const char *text; /* "CONV_2D-9", "CUSTOM Foo-1", "ADD-2 of i16" */
    uint32_t count;
    const char *nodes; /* the first few */
} tflite_missing;

/* What an input of a graph in a graph is. */
typedef struct tflite_given {
    struct type type;
    graph_value *plain, *image;
    const tensor_data *data;
    tflite_variable *variable;
} tflite_given;

struct tflite_node;
typedef struct tflite_importer tflite_importer;
struct tflite_importer {
    compiler *c;
    const frontend_options *o;
    const char *path;
    span bytes;
    const tfl_model *model;
    const tfl_subgraph *graph;
    graph_module *module;
    graph_func *f;
    tflite_tensor *tensors;
    uint32_t n_tensors;
    VEC(tflite_missing) missing;
    ptr_map missing_at, results; /* an interned text: its place in missing; values that are results */
    tflite_variables *variables;
    const tfl_signature *signature; /* that is chosen; NULL: none */
    const tfl_graph_about *about;   /* what metadata say of this graph; NULL: nothing */
    uint64_t labels_read;           /* so far, by all outputs */
    uint32_t depth;      /* of this graph in others */
    uint64_t *room;      /* what graphs in others may still hold, all together */
    uint64_t *unpacked;  /* bytes that sparse constants may still become */
    /* Operators of another graph of the model in r, or where n is (NULL): what its outputs are. false after
     * diagnostics. */
    bool (*import_inner)(struct tflite_node *n, const tfl_subgraph *g, tflite_region *r, uint32_t n_in,
                         const struct tflite_given *in, uint32_t n_out, graph_value **out);
    tflite_region *region; /* whose function f is; NULL: it is the model's */
    bool once;           /* this is the graph that CALL_ONCE calls */
    bool (*import_once)(struct tflite_importer *im, const tfl_subgraph *g); /* it */
    graph_value nothing; /* what building functions return once an operator has failed */
};

struct tflite_op;
typedef struct tflite_node {
    tflite_importer *im;
    compiler *c;
    graph_func *f;
    const tfl_operator *op;
    const struct tflite_op *row;
    const void *options; /* the table of its row, with defaults where the model has none; NULL: the row has none */
    flex_value custom;   /* the options of a custom operator, a map; else a null */
    uint32_t n_in, n_out; /* operands without those that are left out at the end */
    uint32_t first;       /* nodes of f before this operator's */
    src_loc loc;
    bool failed;
} tflite_node;

typedef bool (*tflite_op_fn)(tflite_node *n);

/* A row of tflite_ops.def. */
#define TFLITE_CUSTOM_CODE 32
typedef struct tflite_op {
    int64_t code, version; /* version: the highest that is read */
    const char *name, *operands, *types; /* name: of a custom operator what finds it */
    uint32_t options; /* number in the union of builtin options; 0: none */
    tflite_op_fn import;
    const char *target; /* what importers of several operators make of it: see their comments */
} tflite_op;

/* NULL: not read; custom: the name of a custom operator. */
const tflite_op *tflite_ops_find(int64_t code, span custom);
const char *tflite_ops_name(int64_t code);          /* of every builtin operator; NULL: there is none with that code */
/* Whether the node has the operands that its row asks for; else it fails. */
bool tflite_check_operands(tflite_node *n);

/* tflite_op_custom.c: reads the options of a custom operator; those with a name, from `least` to `most`; fails the
 * node. */
bool tflite_read_custom(tflite_node *n);
bool tflite_custom_int(tflite_node *n, const char *name, int64_t least, int64_t most, int64_t *out);
bool tflite_custom_float(tflite_node *n, const char *name, double *out);
bool tflite_custom_has(const tflite_node *n, const char *name);

/* --- the model (tflite_model.c), its tensors (tflite_tensor.c) --- */

src_loc tflite_loc(const tflite_importer *im); /* the file alone */
bool tflite_dtype(int64_t code, dtype *out);
/* tflite_sparse.c: the numbers of a sparse constant in their places, zeros in others; NULL: they do not fit it. */
const tensor_data *tflite_unpack(compiler *c, const tfl_sparsity *p, span bytes, dtype dt, uint32_t rank,
                                 const int64_t *dims);
/* Types, names and constants of all tensors; false after diagnostics. */
bool tflite_read_tensors(tflite_importer *im);
/* Extents that the user gives for inputs. */
bool tflite_fix_shapes(tflite_importer *im);

/* tflite_archive.c: the file with that name in the ZIP archive behind the tables; false: *why says why not. */
bool tflite_find_file(span whole, span name, span *out, const char **why);

/* tflite_metadata.c: what TFLITE_METADATA tells of the model, as facts; the labels of output i, whose value is `name`.
 */
void tflite_read_metadata(tflite_importer *im);
void tflite_note_labels(tflite_importer *im, uint32_t i, const tflite_tensor *t, const char *name);

/* tflite_about.c: the graph of the signature that is asked for, and its names for inputs and outputs, before anything
 * is made of them; false after a diagnostic. Last, what `inspect` tells of the model. */
bool tflite_choose_graph(tflite_importer *im);
bool tflite_name_ends(tflite_importer *im);
void tflite_tell_about(tflite_importer *im);
const char *tflite_text(const tflite_importer *im, span s); /* at most 200 bytes of it */
void tflite_add_fact(tflite_importer *im, const char *name, const char *text); /* "" tells nothing */

/* --- quantisation (tflite_tensor.c): fails the node where there is none --- */

/* The scale and zero point of operand i, or (TFLITE_RESULT + i) of result i, of one number each. */
#define TFLITE_RESULT 0x80000000u /* a file has fewer operands */
typedef struct tflite_scale {
    float scale;
    int64_t zero;
    dtype dt;
} tflite_scale;
bool tflite_read_scale(tflite_node *n, uint32_t i, tflite_scale *out);
/* The same where only the end of a model asks: false and silent. */
bool tflite_find_scale(const tflite_tensor *t, tflite_scale *out);
/* Scales of operand i on `axis`, as many as `count` or one, and its zero point, of which there is one. */
bool tflite_read_scales(tflite_node *n, uint32_t i, int64_t axis, int64_t count, flat_numbers *out, int64_t *zero);
bool tflite_read_pair(tflite_node *n, tflite_scale *x, tflite_scale *y); /* of operand 0, and of result 0 */
bool tflite_same_scale(const tflite_scale *a, const tflite_scale *b);

/* --- operands and results (tflite_build.c) --- */

tflite_tensor *tflite_operand(const tflite_node *n, uint32_t i); /* NULL: left out; i may be TFLITE_RESULT + k */
/* Operands from `first` on, none of them left out; NULL: the node fails. */
tflite_given *tflite_given_of(tflite_node *n, uint32_t first);
/* Graph `at` of the model, which an option says; NULL: the node fails. */
const tfl_subgraph *tflite_graph_at(tflite_node *n, int64_t at);
graph_value *tflite_in(tflite_node *n, uint32_t i);    /* as the model has it */
graph_value *tflite_image(tflite_node *n, uint32_t i); /* of four dimensions, its channels second */
bool tflite_is_image(tflite_node *n, uint32_t i);      /* it is there in that form, and not in the other */
const tensor_data *tflite_constant(tflite_node *n, uint32_t i); /* NULL: no constant */
bool tflite_is_int(tflite_node *n, uint32_t i);        /* of 8 or 16 bits: quantised */
const tensor_data *tflite_int_constant(tflite_node *n, uint32_t i, const char *what); /* NULL: fails the node */
/* Constant integers of an operand, 2 * TYPE_MAX_RANK at most, which out has room for; fails the node. */
bool tflite_ints(tflite_node *n, uint32_t i, const char *what, int64_t *out, uint32_t *out_n);
bool tflite_one_int(tflite_node *n, uint32_t i, const char *what, int64_t *out); /* of an operand that holds just one */
bool tflite_axis(tflite_node *n, int64_t axis, int32_t rank, int64_t *out); /* negative ones count from the end */
int64_t tflite_image_axis(int64_t axis); /* the place of a plain axis in the other form */
bool tflite_extent(tflite_node *n, const graph_value *v, uint32_t axis, int64_t *out); /* fails the node when open */

bool tflite_result(tflite_node *n, uint32_t i, graph_value *v);
bool tflite_result_image(tflite_node *n, uint32_t i, graph_value *v);
/* The same in whichever form. */
bool tflite_result_as(tflite_node *n, uint32_t i, graph_value *v, bool is_image);
/* All operands below `count` in one form: *image says which. Constants and numbers follow the others. */
bool tflite_in_one_form(tflite_node *n, uint32_t count, graph_value **out, bool *image);
graph_value *tflite_plain(tflite_importer *im, tflite_tensor *t, src_loc loc);

/* --- windows (tflite_op_conv.c) --- */

typedef struct tflite_window {
    int64_t padding;
    const int64_t *kernel, *stride, *dilation;
} tflite_window;
/* The border along `count` axes of x from `axis` on, begins, then ends. SAME: as many results as strides; what is odd
 * of the border is at the end. */
bool tflite_window_pads(tflite_node *n, const graph_value *x, uint32_t axis, uint32_t count, const tflite_window *w,
                        int64_t *pads);
bool tflite_check_padding(tflite_node *n, int64_t padding);
/* Of a transposed convolution, along axes 2 and on of x: the extents of the result say where the window starts, as if
 * they were a convolution's data. */
bool tflite_transposed_pads(tflite_node *n, const graph_value *x, uint32_t count, const tflite_window *w,
                            const int64_t *out, int64_t *pads, int64_t *out_pads);

/* Rows of floats times the transposed weights of bytes, operand i: each row becomes bytes, symmetric or with a zero
 * point. */
graph_value *tflite_hybrid_product(tflite_node *n, graph_value *rows, uint32_t i, bool from_zero_point);

/* --- variable tensors (tflite_op_state.c) --- */

bool tflite_is_state(const tflite_importer *im, const tflite_tensor *t);
graph_value *tflite_read_state(tflite_importer *im, tflite_tensor *t); /* of such a tensor: what it holds */
bool tflite_write_state(tflite_node *n, uint32_t i, graph_value *v);   /* operand i holds v from here on */
bool tflite_end_states(tflite_importer *im);                           /* behind all results; false after diagnostics */
/* The variable is a parameter of r, if it is none yet; first: its type where nothing else tells it. */
graph_value *tflite_enter_state(tflite_importer *im, tflite_region *r, tflite_variable *v, type first);
/* All variables hold again what they held outside; what they hold inside is in r->states. */
void tflite_leave_region(tflite_region *r);
/* One that an operator has beside its tensors; all its elements begin with `first`. NULL: the node fails. */
tflite_variable *tflite_own_state(tflite_node *n, const char *name, dtype dt, uint32_t rank, const int64_t *dims,
                                  int64_t first);
graph_value *tflite_state_value(tflite_node *n, const tflite_variable *v);
/* The variable, which has been read, holds v from here on. */
void tflite_set_state(tflite_node *n, tflite_variable *var, graph_value *v);

/* --- building --- */

bool tflite_fail(tflite_node *n, diag_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
graph_value *tflite_emit(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                         const attr *attrs);
graph_value *tflite_unary(tflite_node *n, const char *op, graph_value *x);
graph_value *tflite_binary(tflite_node *n, const char *op, graph_value *a, graph_value *b);
graph_value *tflite_const(tflite_node *n, const tensor_data *t, const char *name);
graph_value *tflite_number(tflite_node *n, dtype dt, double v); /* a constant of rank 0 */
graph_value *tflite_zero(tflite_node *n, const tflite_scale *s); /* a zero point, NULL for 0 */
graph_value *tflite_reshape(tflite_node *n, graph_value *x, uint32_t rank, const int64_t *dims);
graph_value *tflite_transpose(tflite_node *n, graph_value *x, uint32_t rank, const int64_t *perm);
graph_value *tflite_cast(tflite_node *n, graph_value *x, dtype dt);
/* The constant with its axes in another order. */
const tensor_data *tflite_permuted(compiler *c, const tensor_data *t, const int64_t *perm);

/* --- functions of one number (tflite_op_curve.c) --- */

/* What becomes of x, a number less its zero point; the result has its own. */
typedef int64_t (*tflite_byte_fn)(const void *ctx, int32_t x);
/* fn as a table for all numbers of a byte; entries are saturated. */
graph_value *tflite_by_table(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                             tflite_byte_fn fn, const void *ctx);
/* The function that the row's target names, of quantised numbers. */
graph_value *tflite_curve_of_numbers(tflite_node *n, graph_value *v);
/* RSQRT of 16 bits (tflite_op_norm.c): real by one over the root, which has so many bits behind the point. */
#define TFLITE_ROOT_BITS 20
graph_value *tflite_wide_rsqrt(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                               double real);

/* --- functions of 16 bits as straight pieces (tflite_pieces.c) --- */

/* narrow: in f32. NaN: the least number of the result; infinity: the greatest one. */
typedef double (*tflite_piece_fn)(double x, bool narrow);
typedef struct tflite_pieces {
    tflite_piece_fn fn;
    double in, in_zero, out, out_zero; /* scales and zero points */
    bool narrow;                       /* all arithmetic in f32 */
} tflite_pieces;
/* v as a number of that width. */
double tflite_as_wide(double v, bool narrow);
/* The function at v, of i32 in the range of 16 bits; so is the result. */
graph_value *tflite_on_pieces(tflite_node *n, const tflite_pieces *p, graph_value *v);

/* --- activations (tflite_op_activation.c), requantisation (tflite_requant.c) --- */

/* Rounded to an integer, halves away from zero; an end of 32 bits where it lies beyond them, the lower one for NaN. */
int64_t tflite_rounded(float v);
/* v, in the result's numbers, behind a fused activation. */
graph_value *tflite_activated(tflite_node *n, graph_value *v, int64_t activation);
/* Whether the numbers of LiteRT's reference kernels are asked for, where these differ from TensorFlow Lite Micro's. */
bool tflite_like_litert(const tflite_node *n);
/* a b / y, of scales. LiteRT computes most such factors in 32 bits, TensorFlow Lite Micro all of them in 64: their
 * multipliers differ in the last bits, and about one result of 16 bits in 1,000 by 1. */
double tflite_factor(bool in_32_bits, float a, float b, float y);
/* Sums in i32 or i64 times real[i], of which there is one or one for each index of `axis`, as numbers of the result.
 * most: no sum is farther from 0. */
graph_value *tflite_requantised(tflite_node *n, graph_value *sums, uint32_t count, const double *real, int64_t axis,
                                double most);
/* Numbers in i32 or i64 times real, between values of one operator: as dt, with the zero point added and saturated; as
 * i32 neither. most: as above. */
graph_value *tflite_rescaled(tflite_node *n, graph_value *x, double real, double most, const tflite_scale *y);
/* v less its zero point, in i32. */
graph_value *tflite_centered(tflite_node *n, graph_value *v, const tflite_scale *s);
graph_value *tflite_i32(tflite_node *n, int64_t v); /* a constant of rank 0 */
/* v, in i32, within a range; its type is then dt. */
graph_value *tflite_clipped(tflite_node *n, graph_value *v, int64_t low, int64_t high, dtype dt);
/* The same for the last axis, in doubles, halves away from 0: LiteRT's fully connected layers. */
graph_value *tflite_requantised_real(tflite_node *n, graph_value *sums, uint32_t count, const double *real);

/* Numbers of x as sums of many have them, in i32, and such sums as numbers of the result (tflite_op_arith.c). */
graph_value *tflite_in_sums(tflite_node *n, graph_value *x, const tflite_scale *s);
graph_value *tflite_of_sums(tflite_node *n, graph_value *sums, const tflite_scale *x, const tflite_scale *y);

/* Importers, one each for a row of tflite_ops.def. */
#define TFLITE_OP(code, name, version, operands, types, options, import, target) bool import(tflite_node *n);
#define TFLITE_NAME(code, name)
#include "frontend/tflite/tflite_ops.def"
#undef TFLITE_OP
#undef TFLITE_NAME
#endif
