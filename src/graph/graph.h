/* SPDX-License-Identifier: Apache-2.0 */
/* Graph IR: modules of functions of nodes over typed values (docs/reference/graph-ir.md). Everything is allocated in
 * the compiler's arena; pointers stay valid for the whole compile. A function's node list is in topological order: a
 * node stands after the nodes that make its inputs. Regions (bodies of If, Loop, Scan) and fused groups are functions
 * of the same module, closed: they see nothing but their parameters. */
#ifndef LATHE_GRAPH_GRAPH_H
#define LATHE_GRAPH_GRAPH_H
#include "base/vec.h"
#include "type/attr.h"
#include "type/list.h"
#include "type/model.h"
#include "type/type.h"

struct graph_op;
typedef struct graph_node graph_node;
typedef struct graph_func graph_func;

typedef struct graph_value {
    const char *name;            /* interned, unique in its function; printed %name */
    struct type type;            /* TYPE_NONE until inferred */
    struct type declared;        /* what the model states about it (value_info, outputs); TYPE_NONE: nothing */
    graph_node *def;             /* NULL: a parameter of the function */
    uint32_t index;              /* result index in def, or parameter index */
    uint32_t mark;               /* scratch of one pass; undefined elsewhere */
    struct graph_value *forward; /* scratch of one pass: the value that stands for this one */
} graph_value;

struct graph_node {
    const struct graph_op *op;
    graph_value **inputs; /* NULL entries: optional inputs left out */
    uint32_t n_inputs;
    graph_value **outputs; /* all present; results that the model leaves out have no uses */
    uint32_t n_outputs;
    attr *attrs; /* those that differ from the row's default, in the row's order */
    uint32_t n_attrs;
    src_loc loc;
    uint32_t mark; /* scratch of one pass */
    const char *compiler; /* interned: the target that takes the node, between the passes of a partition; else NULL */
    uint32_t region;      /* nodes with one number are one function there; 0: the node is one alone */
};

/* Memory that keeps its value between calls: what a result of main is in one call, a parameter is in the next. Both are
 * the model's own business: the caller sees neither. */
typedef struct graph_state {
    uint32_t param, result;     /* numbers among those of the function */
    const tensor_data *initial; /* in the first call; NULL: zeros */
} graph_state;

struct graph_func {
    const char *name; /* interned; printed @name */
    VEC(graph_value *) params;
    VEC(graph_value *) results;
    VEC(graph_node *) nodes;
    VEC(graph_state) states; /* of main */
    VEC(attr) attrs; /* "primitive" = 1: a fused group, lowered as one kernel; "apart" = 1: each of its products is
                      * rounded by itself; "compiler" = "acme": a region, which that target takes as one kernel;
                      * "composite" = "acme.conv2d": what a pattern of it has found */
    struct graph_module *module;
    struct ptr_map *names; /* taken value names, each with the next suffix to try */
    uint32_t next_value;   /* fresh value names */
    uint32_t mark;         /* scratch of one pass */
};

/* What a pass has to tell of a node: why it stays as it is. */
typedef struct graph_note {
    const char *pass, *op, *value, *text; /* value: the node's first result */
    src_loc loc;
} graph_note;

typedef struct graph_module {
    VEC(model_fact) facts; /* type/model.h; names of ends and texts are those of inputs and results of main */
    VEC(graph_func *) funcs; /* in creation order; "main" is the entry */
    VEC(model_end) ends;
    VEC(model_text) texts;
    VEC(attr) labels; /* of results of main, by name: what the numbers of one of integers stand for, or what the columns
                       * of one of floats are called; integers or strings */
    VEC(list_io) lists; /* sequences and optionals of main: inputs, then results, each in the model's order */
    VEC(graph_note) notes;
    uint32_t n_operators;    /* of the main graph in the model's file; 0: text, or a file without any */
    struct ptr_map *names;   /* taken function names */
    compiler *c;
} graph_module;

/* --- building --- */
graph_module *graph_module_new(compiler *c);
graph_func *graph_func_new(graph_module *m, const char *name); /* name is made unique by a suffix when taken */
graph_func *graph_module_find(const graph_module *m, const char *name);
void graph_module_remove(graph_module *m, graph_func *f);
graph_value *graph_add_param(graph_func *f, const char *name, type t); /* name made unique; "" gives a fresh one */
const char *graph_new_name(graph_func *f, const char *want); /* for a value: no other one has or gets it */
void graph_add_result(graph_func *f, graph_value *v);
void graph_add_state(graph_func *f, graph_state s);
/* Appends a node; attrs equal to their default are dropped, the rest are put in the row's order (copied). Outputs are
 * made with fresh names (or out_names[i] made unique) and TYPE_NONE. */
graph_node *graph_add_node(graph_func *f, const struct graph_op *op, uint32_t n_in, graph_value *const *in,
                           uint32_t n_attr, const attr *attrs, uint32_t n_out, const char *const *out_names,
                           src_loc loc);
/* The same without appending it; the caller places it. */
graph_node *graph_new_node(graph_func *f, const struct graph_op *op, uint32_t n_in, graph_value *const *in,
                           uint32_t n_attr, const attr *attrs, uint32_t n_out, const char *const *out_names,
                           src_loc loc);
graph_value *graph_add_constant(graph_func *f, const tensor_data *t, const char *name, src_loc loc); /* typed at once */
/* A constant of no function: an operand for a node that is evaluated alone. */
graph_value *graph_detached_constant(compiler *c, const tensor_data *t, const char *name);
/* One-output convenience: op by name, infers the type; NULL after a diagnostic. The node is appended, or, with `before`
 * set, placed in front of that node. attrs may be NULL. Used by importers and passes that compose operators. */
graph_value *graph_emit(graph_func *f, graph_node *before, const char *op, uint32_t n_in, graph_value *const *in,
                        uint32_t n_attr, const attr *attrs, src_loc loc);

/* --- reading --- */
const attr *graph_attr(const graph_node *n, const char *name); /* stored or default; NULL: not declared */
int64_t graph_attr_int(const graph_node *n, const char *name); /* asserts the kind */
double graph_attr_float(const graph_node *n, const char *name);
const char *graph_attr_string(const graph_node *n, const char *name);
dtype graph_attr_dtype(const graph_node *n, const char *name);
uint32_t graph_attr_ints(const graph_node *n, const char *name, const int64_t **out);
graph_value *graph_operand(const graph_node *n, uint32_t i); /* NULL: the node has none there */
const tensor_data *graph_constant(const graph_value *v); /* NULL when v is NULL or not a constant */
/* A constant of so many axes with at least one number, which are all stored one by one; NULL: v is none. */
const tensor_data *graph_dense_constant(const graph_value *v, uint32_t rank);
/* The constant as at most `max` int64 numbers; false when not a constant integer tensor or too long. */
bool graph_constant_ints(const graph_value *v, uint32_t max, int64_t *out, uint32_t *out_n);
/* The state of that parameter, or of that result; NULL: it is the caller's. */
const graph_state *graph_state_of_param(const graph_func *f, uint32_t param);
const graph_state *graph_state_of_result(const graph_func *f, uint32_t result);
const attr *graph_func_attr(const graph_func *f, const char *name);
const char *graph_func_text(const graph_func *f, const char *name); /* of a text attribute; NULL: there is none */
graph_func *graph_callee(const graph_node *n); /* the function that a node `call` calls; NULL: it is none */
bool graph_is_primitive(const graph_func *f);
/* Passes leave its nodes as they are: it is a primitive, or another code generator's ("compiler", "composite"). */
bool graph_is_fixed(const graph_func *f);
/* By its row, and for a node that calls functions by these. */
bool graph_is_pure(const graph_node *n);

/* --- changing --- */
void graph_set_attr(graph_func *f, graph_node *n, attr a); /* by the row's order; one equal to its default is dropped */
void graph_replace_uses(graph_func *f, graph_value *from, graph_value *to); /* node inputs and results */
uint32_t graph_count_uses(const graph_func *f, const graph_value *v);
void graph_remove_dead(graph_func *f); /* nodes without effect on state whose outputs nobody uses */
void graph_drop_constants(graph_func *f); /* those that nobody reads; other nodes stay, dead ones too */
void graph_insert_before(graph_func *f, graph_node *at, graph_node *n);
bool graph_sort(graph_func *f); /* stable topological order; false: a cycle */

/* --- text (docs/reference/graph-ir.md) --- */
void graph_print(writer *w, const graph_module *m);
void graph_print_func(writer *w, const graph_func *f);
void graph_print_call(writer *w, const graph_node *n); /* a node, without its place in the model and a line end */
/* Reads and verifies: what it returns is safe for every pass. Errors: DIAG_SYNTAX at line and column, DIAG_VERIFY. */
bool graph_parse(compiler *c, const char *file, const char *text, size_t len, graph_module **out);

/* --- checking --- */
/* Structure: order, uses, unique names, arity, attributes by schema, closed functions, known callees; and, where types
 * are present, that they agree with the type relations. Reports every fault as DIAG_VERIFY. */
bool graph_verify(compiler *c, const graph_module *m);
/* Types of all values from the parameters on. Where a relation cannot tell a shape (it depends on data), the declared
 * type is taken as a checked assertion. */
bool graph_infer(compiler *c, graph_module *m);
bool graph_infer_node(compiler *c, graph_node *n); /* sets the outputs' types */
#endif
