/* SPDX-License-Identifier: Apache-2.0 */
/* The importer's insides: names in scope, the node being imported, and what importers of operators build with. After
 * the first failure of a node every building function returns a value of rank 0 at once that nothing reads (never
 * NULL), so importers compose without checks and report by `return !n->failed`. An importer runs only where all
 * operands are there that its row asks for: NULL is only an optional one (onnx_optional). */
#ifndef LATHE_FRONTEND_ONNX_ONNX_IMPORT_H
#define LATHE_FRONTEND_ONNX_ONNX_IMPORT_H
#include "base/nearest.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

#define ONNX_MIN_IR      3
#define ONNX_MAX_OPSET   28
#define ONNX_MAX_NODES   200000u /* with those of expanded functions, which multiply when they call functions */
#define ONNX_MAX_NESTING 64u     /* function calls and branches inside one another */

/* --- names (onnx_scope.c) ------------------------------------------------------------------------------------------
 */

/* Interned name -> pointer. */
typedef struct onnx_map {
    const char **keys;
    const void **values;
    uint32_t len, cap;
} onnx_map;

const void *onnx_map_get(const onnx_map *m, const char *key); /* NULL: absent */
void onnx_map_set(arena *a, onnx_map *m, const char *key, const void *value);

typedef struct onnx_scope {
    onnx_map values;       /* graph_value *, or the importer's poison */
    onnx_map initializers; /* pb_tensor *, made into constants on first use */
    onnx_map declared;     /* pb_type * */
    onnx_map hints;        /* pb_type *: the shape is known from a result further on, the element type is not */
    onnx_map renamed;      /* result of an inlined body -> its name in the IR */
    onnx_map outputs;      /* results of the graph: what the model declares of them */
    struct onnx_scope *parent;
    bool top; /* the main graph: its names are kept */
} onnx_scope;

typedef struct onnx_opset {
    const char *domain; /* "" for ai.onnx */
    int64_t version;
} onnx_opset;
typedef VEC(onnx_opset) onnx_opsets;

typedef struct onnx_attr {
    const char *name;
    const pb_attribute *pb; /* references to a function's attributes are resolved */
    bool used;
} onnx_attr;

/* A call of a model-local function that is being inlined. */
typedef struct onnx_frame {
    const pb_function *fn;
    const onnx_attr *attrs; /* of the calling node */
    uint32_t n_attrs;
    onnx_opsets opsets;
    src_loc loc; /* of the calling node: what messages point at */
    const struct onnx_frame *caller;
} onnx_frame;

typedef struct onnx_missing {
    const char *domain, *op;
    int64_t version;
    uint32_t count;
    const char *nodes; /* the first few, for the message */
    const char *note;  /* what of the operator is missing: "" or text that ends in ", " */
    const char *types; /* of a domain of the user's own: ": f32[1, 3] -> ?", of the first node; else "" */
} onnx_missing;

typedef struct onnx_fixed {
    const char *symbol;
    int64_t value;
    const char *origin; /* what fixed it, for messages */
} onnx_fixed;

typedef struct onnx_file {
    const char *path; /* as written in the model */
    span bytes;
    const char *full; /* NULL: it cannot be had, which has been said */
} onnx_file;

typedef struct onnx_importer {
    compiler *c;
    const frontend_options *o;
    const char *path;
    span bytes; /* the whole file */
    const pb_model *model;
    graph_module *module;
    /* The operator table, so that the walk needs to know no importer: onnx_ops_find. */
    const struct onnx_op *(*find_op)(compiler *c, const char *domain, const char *name, int64_t version);
    onnx_opsets opsets;
    VEC(onnx_missing *) missing; /* version 0: the operator set is not imported */
    onnx_map missing_by_name;
    onnx_map strings;       /* attr *, by value: what the numbers that stand for strings stand for */
    onnx_map texts;         /* values of strings that only a run knows (onnx_text.c) */
    onnx_map columns;       /* attr *, by value: what its columns are called (ZipMap) */
    onnx_map small;         /* dtype *, by value: the element type that its bytes stand for (onnx_small.c) */
    onnx_map sequences;     /* onnx_list *, by value of a sequence or an optional (onnx_list.c) */
    onnx_map scanned;       /* functions whose operators have been looked at without importing them */
    onnx_map bodies;        /* of loops, by pb_graph: what the importer of Loop knows of them */
    VEC(const char *) lost; /* files of external data that are not there, once for each tensor */
    bool symbolic;          /* extents are open that must not be */
    VEC(onnx_fixed) fixed;
    onnx_map stated;    /* dim *: extents by name that inputs have, or that the caller fixed */
    onnx_map named_in;  /* graph_func *, by symbol: the first branch or body that declares it (onnx_build.c) */
    onnx_map follows;   /* symbols of inputs that are fixed where others are: "n + h" */
    onnx_map files;     /* onnx_file *, by path */
    onnx_map functions; /* pb_function *, by the text of domain, name and overload */
    onnx_map reserved;  /* names of the main graph: made-up names keep clear of them */
    graph_value poison; /* stands for results of nodes that failed */
    graph_value absent; /* stands for inputs of a function that the call leaves out */
    int64_t nchwc_block; /* channels of a block in com.microsoft.nchwc; 0: not known yet */
    uint32_t nodes;     /* imported so far */
    uint32_t nesting;
} onnx_importer;

/* Where nodes are imported into. */
typedef struct onnx_env {
    onnx_importer *im;
    graph_func *f;
    onnx_scope *scope;
    const onnx_frame *frame; /* NULL outside functions */
} onnx_env;

/* --- the node at hand -----------------------------------------------------------------------------------------------
 */

struct onnx_op;
typedef struct onnx_node {
    onnx_importer *im;
    compiler *c;
    onnx_env *env;
    graph_func *f;
    const pb_node *pb;
    const struct onnx_op *row;
    int64_t version; /* of the operator set */
    onnx_attr *attrs;
    uint32_t n_attrs;
    graph_value **in; /* NULL: left out; as many as the row lists, or more */
    uint32_t n_in;    /* up to the last that is there */
    graph_value **out;      /* to be filled by the importer */
    const char **out_names; /* in the IR; NULL: left out */
    uint32_t first;         /* nodes of f before this one's */
    uint32_t n_out;
    src_loc loc;
    bool places;         /* its inputs of strings, and its results, are their places (onnx_text.c) */
    const shape *expect; /* declared shape of the next emitted value, when the type relation alone cannot know it */
    bool failed;
} onnx_node;

typedef bool (*onnx_op_fn)(onnx_node *n);

/* A row of onnx_ops.def: operator versions since..until (0: the newest) go to `import`, provided that the node has the
 * operands that it must have; `target` and `attrs` say what direct importers map to. */
typedef struct onnx_op {
    const char *domain, *name;
    int64_t since, until;
    const char *operands;
    onnx_op_fn import;
    const char *target;
    const char *attrs;
} onnx_op;

/* NULL: missing. In a domain of the user's own, the registered row "domain.name" with attributes by the same names. */
const onnx_op *onnx_ops_find(compiler *c, const char *domain, const char *name, int64_t version);
void onnx_ops_offer(const char *domain, nearest *near); /* all operators of a domain, for "did you mean" */
int64_t onnx_ops_since(const char *domain, const char *name); /* the first version that is read; 0: none */
/* Attributes of the node by a row's list ("a b", "ir<onnx") as the IR operator declares them; out holds op->n_attrs
 * (onnx_op_direct.c). */
uint32_t onnx_row_attrs(onnx_node *n, const char *list, const graph_op *op, attr *out);

/* --- the walk (onnx_graph.c) --- */

bool onnx_import_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes);
/* The body of If in place: its results become the node's. */
bool onnx_inline_branch(onnx_node *n, const pb_graph *g);
/* A graph attribute of the node in place, for these inputs: its first n_out results; its only one. */
bool onnx_inline_bodies(onnx_node *n, const pb_graph *g, uint32_t n_in, graph_value *const *in, uint32_t n_out,
                        graph_value **out);
graph_value *onnx_inline_body(onnx_node *n, const pb_graph *g, graph_value *in);
/* The operators that bodies of this node would need, for a node that is not imported itself. */
void onnx_note_bodies(onnx_node *n);

/* --- order (onnx_order.c) --- */

typedef struct onnx_order {
    const uint32_t *list; /* node indices */
    const bool *again;    /* by node: a Constant whose name another constant has already */
} onnx_order;

/* Each node behind what it needs. Declared shapes spread to operands of nodes that keep them. */
bool onnx_order_nodes(onnx_env *env, uint32_t n_nodes, pb_node *const *nodes, onnx_order *out);
/* Names that a body, with the bodies in it, uses and does not make; `visit` may see a name more than once. */
typedef void (*onnx_visit)(void *ctx, const char *name);
void onnx_visit_captures(onnx_importer *im, const pb_graph *g, onnx_visit visit, void *ctx);

/* --- what is known around a node (onnx_scope.c, onnx_env.c) --- */

const char *onnx_name(onnx_importer *im, span s);   /* interned */
const char *onnx_domain(onnx_importer *im, span s); /* interned; "" for ai.onnx */
src_loc onnx_loc(const onnx_importer *im);          /* the file alone */
src_loc onnx_node_loc(const onnx_env *env, const pb_node *p, uint32_t index);
/* A name from inside a body, changed where the main graph has it too. */
const char *onnx_clear_of_main(const onnx_env *env, const char *name);
/* Initializers and declared types of a graph become visible in env->scope. */
bool onnx_import_names(onnx_env *env, const pb_graph *g);
/* The value of a name: from the scope or its parents; initializers are made on demand. NULL: unknown. */
graph_value *onnx_lookup(onnx_env *env, const char *name);
void onnx_define(onnx_env *env, const char *name, graph_value *v);
int64_t onnx_opset_version(const onnx_env *env, const char *domain); /* 0: not imported */
const char *onnx_metadata(onnx_importer *im, const char *key);       /* what the model says under it; NULL: nothing */
bool onnx_read_opsets(onnx_importer *im, uint32_t n, pb_opset *const *list, onnx_opsets *out);
const pb_function *onnx_find_function(onnx_importer *im, const char *domain, const pb_node *node); /* NULL: none */

/* --- strings (onnx_labels.c): a value of strings is an index into a table of them --- */

/* The table of a value of strings (ATTR_STRINGS); NULL: it is one of numbers. */
const attr *onnx_strings_of(const onnx_importer *im, const graph_value *v);
void onnx_set_strings(onnx_importer *im, const graph_value *v, uint32_t n, const char *const *strings);
/* A tensor of strings as 0, 1, 2, ... in its shape, equal strings as equal numbers; out: the strings, as many. NULL
 * after a diagnostic. */
const tensor_data *onnx_read_strings(onnx_importer *im, const char *name, const pb_tensor *pb,
                                     const char *const **out);
/* Whether the node may read the strings that are among its inputs; else it fails. */
bool onnx_check_strings(onnx_node *n);
/* Its results are strings where it only moves elements of one input of these. */
void onnx_spread_strings(onnx_node *n);
/* The table of a result of the model, for who reads its numbers. */
void onnx_note_labels(onnx_importer *im, const graph_value *v, const char *name);

/* --- sequences and optionals (onnx_list.c) --- */

typedef enum onnx_part_kind {
    PART_ONE,   /* v is an element */
    PART_MANY,  /* v has elements side by side along axis 0, as many as its extent */
    PART_BEFORE /* what a loop has appended to, in its body: nothing is known of it */
} onnx_part_kind;

/* A sequence that a loop carries, while its body is read as one that only appends to it. */
typedef struct onnx_before {
    bool is_read; /* some operator of the body wants to know more */
} onnx_before;

typedef struct onnx_part {
    onnx_part_kind kind;
    graph_value *v;     /* PART_BEFORE: NULL */
    graph_value *sizes; /* PART_MANY: i64[elements, rank], how much of each is the element; NULL: all */
    uint32_t ragged;    /* PART_MANY: axes of elements, as bits, along which it may be less */
    onnx_before *before; /* PART_BEFORE: which one */
} onnx_part;

typedef struct onnx_list {
    uint32_t n;
    const onnx_part *parts;
    bool none;        /* an optional without its element */
    bool is_tensor;   /* an optional of a tensor, which is the only element */
    bool is_map;      /* two elements: the keys, and the values beside them */
    graph_value *has; /* an optional: bool[], whether it has its element; NULL: `none` says it */
} onnx_list;

/* The room for one element of a sequence whose elements lie side by side. DT_NONE: nothing is known yet. */
typedef struct onnx_slot {
    dtype dt;
    uint32_t rank, ragged;
    dim dims[TYPE_MAX_RANK];
} onnx_slot;

const onnx_list *onnx_list_of(const onnx_importer *im, const graph_value *v); /* NULL: a tensor */
graph_value *onnx_list_value(onnx_importer *im, const char *name, onnx_list l);
bool onnx_list_is_known(const onnx_list *l); /* each part is an element */
graph_value *onnx_list_count(onnx_node *n, const onnx_list *l);
/* An operator asks for more than the body of the loop knows of the sequence that it carries: it will be read again. */
bool onnx_list_ask(onnx_node *n, const onnx_part *before);
/* The same list with all strings as wide as the widest, and at least so wide: their elements do not differ along the
 * bytes then. */
onnx_list onnx_list_one_width(onnx_node *n, const onnx_list *l, int64_t width);
/* The slot becomes as large as all elements need. */
bool onnx_slot_of(onnx_node *n, const onnx_list *l, onnx_slot *s);
/* Where the elements come from several rounds: open extents may differ in each. */
bool onnx_slot_close(onnx_node *n, onnx_slot *s);
bool onnx_slot_close_axis(onnx_node *n, onnx_slot *s, uint32_t axis); /* of this axis alone */
onnx_part onnx_list_stack(onnx_node *n, const onnx_list *l, const onnx_slot *s); /* all elements side by side */
/* Of a PART_MANY: the element at a place (i64[]); those at places (i64[m]); those where `which` (bool[elements]) is. */
graph_value *onnx_list_element(onnx_node *n, const onnx_part *p, graph_value *at);
onnx_part onnx_list_pick(onnx_node *n, const onnx_part *p, graph_value *places);
onnx_part onnx_list_keep(onnx_node *n, const onnx_part *p, graph_value *which);
graph_value *onnx_list_places(onnx_node *n, graph_value *stack); /* 0, 1, ... along axis 0 */
/* A PART_MANY of at most so many elements with zeros up to these. */
onnx_part onnx_list_room(onnx_node *n, const onnx_part *p, int64_t most);
graph_value *onnx_merge_axes(onnx_node *n, graph_value *x, uint32_t axis); /* that one and the next one as one */

/* --- sequences and optionals as inputs and results of the model (onnx_border.c) --- */

#define ONNX_MOST_ELEMENTS 4096u /* of a sequence whose elements are values of their own */

/* The tensor that a type is about, through sequences and optionals; NULL: none. */
const pb_tensor_type *onnx_tensor_inside(const pb_type *t);
bool onnx_is_list_type(const pb_type *t);
/* The element types of a map's keys and values, in `out`; false: it is no map to tensors. */
bool onnx_map_types(const pb_type *t, dtype out[2]);
/* "x[2]" as x and 2; false: it is no element's name. */
bool onnx_split_name(onnx_importer *im, const char *text, const char **out_list, uint32_t *out_element);
bool onnx_list_input(onnx_env *env, const pb_value_info *from, uint32_t place, graph_value **out);
bool onnx_map_input(onnx_env *env, const pb_value_info *from, uint32_t place, graph_value **out);
bool onnx_list_output(onnx_env *env, const pb_graph *g, uint32_t place, graph_value *v);
/* A tensor (onnx_end.c): a parameter for values of type t, or the constant that is bound to it; a result by name. */
const char *onnx_bound_numbers(const onnx_importer *im, const char *name); /* of --bind; NULL: none */
bool onnx_add_input(onnx_env *env, const char *name, type t, dtype element, graph_value **out);
graph_value *onnx_named_result(onnx_env *env, const pb_graph *g, graph_value *v, const char *name);
bool onnx_check_input_type(onnx_importer *im, const char *name, const type *t);

/* --- strings that only a run knows (onnx_text.c): u8 with one more axis, the last one, padded with zeros --- */

#define ONNX_MOST_STRING 65536 /* bytes of a string that a value can have */

bool onnx_is_text(const onnx_importer *im, const graph_value *v);
graph_value *onnx_set_text(onnx_importer *im, graph_value *v); /* v */
void onnx_keep_strings(onnx_importer *im, const graph_value *from, const graph_value *to); /* `to` is the same */
bool onnx_is_strings(const onnx_importer *im, const graph_value *v); /* an index into a table, or such */
/* Strings of either kind as bytes. */
graph_value *onnx_text(onnx_node *n, graph_value *v);
const tensor_data *onnx_text_table(onnx_node *n, uint32_t count, const char *const *strings); /* one to a row */
/* The strings of a tensor as u8, with their bytes as the last axis; NULL after a diagnostic. */
const tensor_data *onnx_text_read(onnx_importer *im, const char *name, const pb_tensor *pb);
int64_t onnx_text_width(const graph_value *v);
graph_value *onnx_text_rows(onnx_node *n, graph_value *v); /* one string to a row */
graph_value *onnx_text_wider(onnx_node *n, graph_value *v, int64_t width); /* v itself where it is as wide */
/* --- what is done with them (onnx_op_string.c): `text` is of onnx_text --- */
graph_value *onnx_text_length(onnx_node *n, graph_value *text);     /* i32[..., 1], bytes */
graph_value *onnx_text_steps(onnx_node *n, int64_t count);          /* i32[count]: 0, 1, 2, ... */
graph_value *onnx_text_pick(onnx_node *n, graph_value *text, graph_value *places); /* bytes; at the width a zero */
graph_value *onnx_text_shifted(onnx_node *n, graph_value *text, int by); /* bytes by one place: to the end, by > 0 */
/* i64: for each string the place of the first that equals it, or count. */
graph_value *onnx_text_find(onnx_node *n, graph_value *text, uint32_t count, const char *const *strings);
/* Numbers as strings, and strings as numbers: f32 or f64 where `to` is a float, else i64 or u64. */
graph_value *onnx_number_text(onnx_node *n, graph_value *x);
graph_value *onnx_number_fixed(onnx_node *n, graph_value *x); /* floats as %f of C writes them */
graph_value *onnx_text_number(onnx_node *n, graph_value *text, dtype to);
/* A machine that reads strings byte by byte, from state 0 on; states go up to 65535. */
typedef struct onnx_automaton {
    uint32_t states;
    const uint32_t *next; /* [states * 256] */
} onnx_automaton;
graph_value *onnx_text_automaton(onnx_node *n, graph_value *text, const onnx_automaton *a); /* u16: behind each byte */
uint32_t onnx_case_lower(uint32_t code); /* onnx_case.c */
uint32_t onnx_case_upper(uint32_t code);

bool onnx_moves_text(const onnx_node *n); /* its importer moves places */
bool onnx_move_text(onnx_node *n);
/* The type of an input that is declared as strings: t with the bytes. */
bool onnx_text_input(onnx_importer *im, const char *name, type *t);
/* For who reads the bytes of v, an input or a result of the model. */
void onnx_note_text(onnx_importer *im, const graph_value *v, const char *name, bool is_input);

/* --- types of less than a byte, floats of 8 bits (onnx_small.c): a value of one is a byte for each element --- */

bool onnx_is_small(dtype dt);
dtype onnx_stored_dtype(dtype dt); /* what a byte of it is; dt itself for other types */
dtype onnx_small_of(const onnx_importer *im, const graph_value *v); /* the type that v's bytes stand for; DT_NONE */
void onnx_set_small(onnx_importer *im, const graph_value *v, dtype dt); /* nothing for other types */
/* Whether the node may read the values of small types that are among its inputs; else it fails. */
bool onnx_check_small(onnx_node *n);
void onnx_spread_small(onnx_node *n); /* its results have the type of what it moves */
/* v as floats of type `to` where it is codes of floats; v itself otherwise. */
graph_value *onnx_small_numbers(onnx_node *n, graph_value *v, dtype to);
/* Numbers as result 0 of the node, of a small type, by its attributes saturate and round_mode: integers wrap. */
bool onnx_small_result(onnx_node *n, graph_value *x, dtype dt);
/* The type of a parameter or result for values of type t: of less than a byte, u8[bytes]. */
bool onnx_small_packed(onnx_importer *im, const char *name, dtype dt, type *t);
graph_value *onnx_small_input(onnx_env *env, graph_value *v, dtype dt, const type *t); /* what is in the parameter v */
graph_value *onnx_small_output(onnx_env *env, graph_value *v, const char *name); /* v as a caller gets it */

/* --- types and tensors (onnx_type.c, onnx_tensor.c) --- */

/* --- bodies that become functions of the module (onnx_op_control.c) ---------------------------------------------- */

/* What bodies see of the graph around them. */
typedef struct onnx_captures {
    struct onnx_node *n;
    onnx_map seen; /* names dealt with */
    VEC(const char *) names;
    VEC(graph_value *) values;
} onnx_captures;

typedef struct onnx_region {
    struct onnx_node *n;
    const pb_graph *g;
    graph_func *f;
    onnx_scope outer, scope; /* what is captured; the body's own names */
    onnx_env env;
    VEC(graph_value *) operands; /* captured values that are parameters of f; constants are made again inside */
    graph_value **made; /* results of the body; those that are lists are no results of f. NULL: lists are an error */
} onnx_region;

void onnx_capture(onnx_captures *k, const pb_graph *g);
void onnx_region_open(onnx_region *r, struct onnx_node *n, const pb_graph *g, const char *tail);
onnx_node onnx_region_node(onnx_region *r); /* what importers build with, inside */
void onnx_region_input(onnx_region *r, uint32_t i, graph_value *v); /* v, of the function, is input i of the body */
graph_value *onnx_region_value(onnx_region *r, const char *name, graph_value *v); /* v of outside, inside */
graph_value *onnx_region_emit(onnx_region *r, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                              const attr *attrs);
void onnx_region_captures(onnx_region *r, const onnx_captures *k);
/* What decides a branch or the end of a loop, where all that it is made of is constant (onnx_op_if.c). */
bool onnx_is_known(struct onnx_node *n, const graph_value *condition, double *out);
void onnx_region_widen(onnx_region *r, uint32_t i, int64_t width); /* result i, which is strings */
/* Results of the node are strings where those of the region are: `count` of these from number `from` on, which are
 * number of[0], of[1], ... of the node's; of NULL: in order. */
void onnx_region_spread(struct onnx_node *n, const onnx_region *r, uint32_t from, uint32_t count, const uint32_t *of);
bool onnx_region_import(onnx_region *r); /* the body's nodes; its results become the function's */

typedef struct onnx_loop {
    graph_value *trips, *condition; /* or NULL */
    graph_value *const *carried;
    uint32_t n_carried;
    const char *const *names; /* of the results, in the IR; NULL: made up */
    uint32_t n_names;
    bool declared; /* they are the node's results, with the types that the model declares */
    const uint32_t *of; /* which of these each is; NULL: all in turn */
} onnx_loop;
/* A loop in f around a region whose results are the condition, what is carried, rows; NULL after an error. */
graph_node *onnx_emit_loop(struct onnx_node *n, graph_func *f, const onnx_loop *l, const onnx_region *r);

/* Fixes of options.fixes, checked against the inputs of the graph. */
bool onnx_type_fix(onnx_importer *im, const pb_graph *g);
const char *onnx_symbol(onnx_importer *im, const char *name); /* interned; an identifier */
const onnx_fixed *onnx_find_fixed(const onnx_importer *im, const char *symbol); /* NULL: it is open */
/* owner: the value's name, for unnamed dimensions and messages. Unknown ranks are kept. */
bool onnx_type_read(onnx_importer *im, const pb_type *t, const char *owner, type *out);
/* The same for an element of a sequence: its open extents are its own, also where the model gives them a name. */
bool onnx_type_read_element(onnx_importer *im, const pb_type *t, const char *owner, type *out);
/* The same for an input, whose open extents a run states: each is a number or a symbol by itself. */
bool onnx_type_read_input(onnx_importer *im, const pb_type *t, const char *owner, type *out);
/* The extent that the name of a dimension computes: "floor(n/2) + 1"; NULL where it computes none. */
dim onnx_dim_expression(onnx_importer *im, span text);

const tensor_data *onnx_tensor_read(onnx_importer *im, const pb_tensor *t, src_loc loc);
/* The same with elements of 4 and 2 bits as they are stored, several in a byte: u8[bytes]. */
const tensor_data *onnx_tensor_read_packed(onnx_importer *im, const pb_tensor *t, src_loc loc);
/* The file that external data names, read once; refuses paths that leave the model's folder. */
bool onnx_external_open(onnx_importer *im, const char *location, src_loc loc, onnx_file *out);

/* --- operands (onnx_operands.c) --- */

/* Whether the node has those that its row asks for; else it fails. */
bool onnx_check_operands(onnx_node *n);
/* How the row takes strings as input i: '$', '#', '@'; 0: not at all. */
char onnx_takes_strings(const onnx_node *n, uint32_t i);
/* The same of types of less than a byte: '$', '#', or '%' where the importer knows them; 0: it takes none. */
char onnx_takes_small(const onnx_node *n, uint32_t i);
uint32_t onnx_most_listed(const onnx_op *row); /* operands that the row lists; 0 without a row */
graph_value *onnx_in(const onnx_node *n, uint32_t i);       /* one that must be there: never NULL */
graph_value *onnx_optional(const onnx_node *n, uint32_t i); /* one that may be left out: NULL */

/* --- errors of a node (onnx_error.c), what a model needs (onnx_report.c) --- */

bool onnx_fail(onnx_node *n, diag_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for functions that return a value: onnx_nothing. */
graph_value *onnx_refuse(onnx_node *n, diag_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void onnx_note_missing(onnx_node *n, const char *domain, const char *op, const char *note, const char *types);
bool onnx_is_symbolic(const graph_func *f); /* an input of f has an extent without a bound */
/* Reports open extents, missing operators and files in place of all errors since the mark. true: nothing is missing. */
bool onnx_report_needs(onnx_importer *im, const graph_func *f, diags_mark before);
bool onnx_report_lost(onnx_importer *im, diags_mark before);

/* --- attributes (onnx_attr.c): the value, or `dflt` when the node has none; wrong kinds fail the node
 * ------------------ */

const onnx_attr *onnx_attr_find(onnx_node *n, const char *name);
bool onnx_has_attr(onnx_node *n, const char *name);
int64_t onnx_attr_int(onnx_node *n, const char *name, int64_t dflt);
double onnx_attr_float(onnx_node *n, const char *name, double dflt);
const char *onnx_attr_string(onnx_node *n, const char *name, const char *dflt); /* interned */
uint32_t onnx_attr_ints(onnx_node *n, const char *name, const int64_t **out);
const pb_graph *onnx_attr_graph(onnx_node *n, const char *name);
const tensor_data *onnx_attr_tensor(onnx_node *n, const char *name); /* NULL: absent or failed */
dtype onnx_attr_dtype(onnx_node *n, const char *name, dtype dflt);
/* The ONNX attribute `from` as an IR attribute `to` of the given kind; false when absent or failed. */
bool onnx_attr_convert(onnx_node *n, const char *from, const char *to, attr_kind kind, attr *out);
void onnx_attr_warn_unused(onnx_node *n);

/* --- building (onnx_build.c)
 * -------------------------------------------------------------------------------------------- */

/* A value that no result depends on: what building functions return once the node has failed. */
graph_value *onnx_nothing(onnx_node *n);

typedef struct onnx_args {
    const char *op;
    uint32_t n_in;
    graph_value *const *in;
    uint32_t n_attrs;
    const attr *attrs;
} onnx_args;

#define ONNX_ARGS(op, n_attrs, attrs, ...)                                                         \
    ((onnx_args){(op), (uint32_t)(sizeof((graph_value *[]){__VA_ARGS__}) / sizeof(graph_value *)), \
                 (graph_value *[]){__VA_ARGS__}, (n_attrs), (attrs)})

/* One node of the IR, typed; integer results of constants are computed at once, because shapes depend on them. */
graph_value *onnx_emit(onnx_node *n, onnx_args a);
/* A node of which several results are wanted: out[0] to out[n_out - 1], all of them intermediate values. */
void onnx_emit_all(onnx_node *n, onnx_args a, uint32_t n_out, graph_value **out);
/* The same as onnx_emit, as result i of the node: with the model's name and declared type. */
graph_value *onnx_result(onnx_node *n, uint32_t i, onnx_args a);
/* All results of the node in one go (n_out of the IR operator; results beyond n->n_out have no uses). */
bool onnx_results(onnx_node *n, onnx_args a, uint32_t n_out);
bool onnx_alias(onnx_node *n, uint32_t i, graph_value *v); /* result i is v itself */
/* Result i, if it was made as an intermediate value of this node, takes the model's name and declared type. */
bool onnx_settle_result(onnx_node *n, uint32_t i);
bool onnx_result_constant(onnx_node *n, uint32_t i, const tensor_data *t);

void onnx_set_declared(onnx_node *n, uint32_t i, graph_value *v); /* the type that the model declares for result i */

graph_value *onnx_unary(onnx_node *n, const char *op, graph_value *x);
graph_value *onnx_binary(onnx_node *n, const char *op, graph_value *a, graph_value *b);
graph_value *onnx_where(onnx_node *n, graph_value *cond, graph_value *a, graph_value *b);
graph_value *onnx_cast(onnx_node *n, graph_value *x, dtype dt); /* x itself when it has that type */
graph_value *onnx_reduce(onnx_node *n, const char *op, graph_value *x, uint32_t n_axes, const int64_t *axes, bool keep);
/* The `count` greatest numbers of each row of x[rows, n], and their places, i64. */
void onnx_best_of_rows(onnx_node *n, graph_value *x, int64_t count, graph_value *out[2]);
graph_value *onnx_transpose(onnx_node *n, graph_value *x, uint32_t rank, const int64_t *perm);
graph_value *onnx_concat(onnx_node *n, uint32_t count, graph_value *const *v, int64_t axis);
graph_value *onnx_slice(onnx_node *n, graph_value *x, int64_t axis, int64_t from, int64_t to);
graph_value *onnx_matmul(onnx_node *n, graph_value *a, graph_value *b, bool ta, bool tb, dtype out);

graph_value *onnx_constant(onnx_node *n, const tensor_data *t);
graph_value *onnx_const_ints(onnx_node *n, uint32_t count, const int64_t *v); /* i64[count] */
graph_value *onnx_const_int(onnx_node *n, dtype dt, int64_t v);               /* rank 0 */
graph_value *onnx_const_float(onnx_node *n, dtype dt, double v);              /* rank 0 */
graph_value *onnx_const_like(onnx_node *n, graph_value *x, double v);         /* rank 0, dtype of x */

/* To the given extents, which surely hold x's elements. */
graph_value *onnx_reshape(onnx_node *n, graph_value *x, uint32_t rank, const dim *dims);
graph_value *onnx_reshape_ints(onnx_node *n, graph_value *x, uint32_t rank, const int64_t *dims);
/* v as far as it broadcasts to [the extent of axis `axis` of x, others...]; a run ends where it does not. */
graph_value *onnx_stretch(onnx_node *n, graph_value *v, graph_value *x, int64_t axis, uint32_t count,
                          const int64_t *others);
/* v, which has one element for each index of axis `axis` of x, with `count` axes of 1 behind; a run ends where it has
 * more or fewer. */
graph_value *onnx_one_for_each(onnx_node *n, graph_value *v, graph_value *x, int64_t axis, uint32_t count);
graph_value *onnx_expand_dims(onnx_node *n, graph_value *x, uint32_t count, const int64_t *axes); /* sorted, >= 0 */
/* The same always as a node; result: which one of the model's it is, -1: none. */
graph_value *onnx_make_reshape(onnx_node *n, int32_t result, graph_value *x, uint32_t rank, const dim *dims);

/* --- reading values
 * ------------------------------------------------------------------------------------------------------- */

uint32_t onnx_rank(const graph_value *v); /* 0 for NULL and unknown */
dtype onnx_dtype(const graph_value *v);
dim onnx_dim(onnx_node *n, const graph_value *v, uint32_t axis);            /* 1 when out of range */
/* Fails when symbolic, or above INT32_MAX; then 1. */
int64_t onnx_static_dim(onnx_node *n, const graph_value *v, uint32_t axis);
/* The same as one number, an i64 of rank 0: of the model, or of each run. */
graph_value *onnx_extent(onnx_node *n, graph_value *v, uint32_t axis);
const type *onnx_declared(onnx_node *n, uint32_t i); /* static declared type of result i; NULL: none */
/* Axis counted from the end when negative; fails when out of range. */
uint32_t onnx_axis(onnx_node *n, int64_t axis, uint32_t rank);
/* x, provided that the operand, which is known at run time only, is one of the n rows of `width` entries each. */
graph_value *onnx_expect(onnx_node *n, graph_value *x, graph_value *operand, int64_t n_rows, int64_t width,
                         const int64_t *rows);
/* A set of axes of a tensor of that rank as one number, with a bit for each axis. */
graph_value *onnx_axes_as_bits(onnx_node *n, graph_value *axes, uint32_t rank);
#define ONNX_MAX_SETS 256 /* of axes of a tensor of rank 8 */
/* The sets of `count` axes of `in` that give the extents `out` when they go (keep: become 1), as bits. ones: only axes
 * of extent 1 may go. Returns how many there are. */
uint32_t onnx_axis_sets(uint32_t rank, const int64_t *in, uint32_t out_rank, const int64_t *out, int64_t count,
                        bool keep, bool ones, int64_t *sets);
/* Constant integers of an operand; false without a message when it is not constant. */
bool onnx_ints_of(const graph_value *v, int64_t *out, uint32_t *out_n);
bool onnx_float_of(const graph_value *v, double *out); /* one constant number */
/* Constant integers, or a message that says that the operand must be constant for now. */
bool onnx_need_ints(onnx_node *n, graph_value *v, const char *what, int64_t *out, uint32_t *out_n);
/* Marks axes[0..count) (negative from the end, no repeats) in set[0..rank). */
bool onnx_axis_set(onnx_node *n, uint32_t count, const int64_t *axes, uint32_t rank, bool *set);

/* What random numbers of the node begin with: its attribute seed, or else its name (onnx_op_random.c). */
int64_t onnx_seed_of(onnx_node *n);
/* Dropout that drops (onnx_op_random.c); `training` NULL: always. ratio NULL: a half. */
bool onnx_dropout_training(onnx_node *n, graph_value *training, graph_value *ratio);

/* Convolution by the node's window attributes (onnx_op_nn.c): the operator stem, "nn.conv" or "qnn.conv", with its
 * operands, of which data and weights are the first two; bias may be NULL. */
graph_value *onnx_conv(onnx_node *n, const char *stem, uint32_t n_in, graph_value *const *in, graph_value *bias);
/* Convolution by the node's operands and attributes, with these weights: with a sum and an activation behind it
 * (onnx_op_fused.c). */
bool onnx_fused_conv(onnx_node *n, graph_value *weights);
/* Gemm by the node's operands and attributes (onnx_op_nn.c). */
graph_value *onnx_gemm(onnx_node *n);

/* qnn.avg_pool1d, 2d or 3d by the node's window attributes (onnx_op_nn.c). */
graph_value *onnx_quantised_pool(onnx_node *n, uint32_t n_in, graph_value *const *in);
graph_value *onnx_max_pool(onnx_node *n, graph_value *x); /* by the node's window attributes (onnx_op_nn.c) */
/* x in 255 steps of u8 (onnx_op_quantize.c). */
graph_value *onnx_quantize_dynamically(onnx_node *n, graph_value *x, graph_value **out_scale, graph_value **out_zero);
/* The sums acc in the result's scale (input y_scale of the node, zero point behind it), of which sa and sb are the
 * factors: they broadcast to acc, or lie on `axis`. (onnx_op_quantize.c) */
graph_value *onnx_requantize(onnx_node *n, graph_value *acc, graph_value *sa, graph_value *sb, int64_t axis,
                             uint32_t y_scale);

/* --- attention (onnx_op_attention.c, onnx_op_rotary.c) --- */

/* softmax(q k^T scale + bias) v over [batch, heads, positions, size]; heads of keys and values may serve several of q.
 * What is made stands in the last four: with `all` in the shape of the scores of all heads of q. */
typedef struct onnx_attention {
    graph_value *q, *k, *v;
    graph_value *bias; /* broadcasts to [batch, heads, positions, keys]; NULL: none */
    graph_value *sink; /* [heads]: one more score in each row's softmax, whose weight goes nowhere; NULL: none */
    int64_t q_heads, kv_heads;
    double scale, softcap; /* softcap 0: none */
    dtype dt, precise;     /* precise: of the softmax, DT_NONE: dt */
    bool all;
    bool may_hide_all; /* the bias may be minus infinity for all keys of a row: then its result is 0, not NaN */
    graph_value *products, *capped, *biased, *weights;
} onnx_attention;

graph_value *onnx_attend(onnx_node *n, onnx_attention *a);
double onnx_usual_scale(onnx_node *n, const onnx_attention *a); /* 1 / sqrt(size) */
/* [batch, positions, heads * size] as [batch, heads, positions, size], and back. */
graph_value *onnx_split_heads(onnx_node *n, graph_value *x, int64_t heads);
graph_value *onnx_join_heads(onnx_node *n, graph_value *x);
graph_value *onnx_hide(onnx_node *n, graph_value *keep, dtype dt, double hidden); /* 0, and that where not kept */
/* The bias by which query i sees the keys up to i, and as many more as `past` has along the axis (NULL: none). */
graph_value *onnx_causal(onnx_node *n, const onnx_attention *a, graph_value *past, uint32_t axis);
graph_value *onnx_places_of(onnx_node *n, graph_value *x); /* 0, 1, 2, ... for each position (axis 2) of x */
graph_value *onnx_plus(onnx_node *n, graph_value *sum, graph_value *v);           /* either may be NULL */
bool onnx_rotate_rows(onnx_node *n, graph_value *cos, graph_value *sin, int64_t half); /* (onnx_op_rotary.c) */
graph_value *onnx_halves(onnx_node *n, graph_value *x); /* u8[.., bytes] as u8[.., 2 bytes]: the low half first */
graph_value *onnx_positions(onnx_node *n, int64_t count);                         /* i64[count]: 0, 1, 2, ... */

typedef struct onnx_rotary {
    graph_value *x;        /* [batch, positions, heads, size] */
    graph_value *cos, *sin; /* [places, turned / 2], or without `at` [batch, positions, turned / 2] */
    graph_value *at;       /* [batch or 1, positions], or NULL */
    int64_t turned;        /* the first so many of each head */
    bool interleaved;
} onnx_rotary;
graph_value *onnx_rotate(onnx_node *n, const onnx_rotary *r);

/* Importers, one each for a row of onnx_ops.def. */
#define ONNX_OP(domain, name, since, until, operands, import, target, attrs) bool import(onnx_node *n);
#include "frontend/onnx/onnx_ops.def"
#undef ONNX_OP
#endif
