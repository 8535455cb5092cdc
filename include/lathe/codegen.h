/* SPDX-License-Identifier: Apache-2.0 */
/* Public header for your own code generator (docs/how-to/add-a-back-end.md), for a library or hardware that takes parts
 * of a model. Each part is a function of the graph, and your generator writes the C source that runs it. This header
 * needs nothing else of Lathe: compile it with only -Iinclude, as C or C++.
 *
 * A generator is a row of the table of targets: a name, patterns of what it takes, and callbacks. It is loaded by
 * `lathe compile MODEL --load-codegen FILE.so --offload NAME`. For each compile the base walks the functions that the
 * target has got, in order; for each of them it writes one C function
 *
 *     int32_t SYMBOL(const T *operand, ..., T *result, ...[, uint8_t *scratch]);
 *
 * which returns 0, or a number that ends the run. The nodes in it stand in an order in which operands come first; the
 * callback `node` writes the statements of one. All functions of a target form one file, src/NAME.c of a package; in a
 * module it stands beside the kernels' source.
 *
 * Strings that functions here return live as long as the compile, and so must what a generator hands over. Callbacks
 * return false after lathe_gen_decline (the CPU runs the function: no error) or lathe_gen_error. Nothing is to be
 * freed. */
#ifndef LATHE_CODEGEN_H
#define LATHE_CODEGEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever lathe_codegen does, or what a function here means. */
#define LATHE_CODEGEN_API 3

#if defined(__GNUC__)
#define LATHE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LATHE_PRINTF(text, first)
#endif

typedef struct compiler lathe_compiler;  /* one compile */
typedef struct graph_func lathe_func;    /* a function of the graph: a region, or a composite in it */
typedef struct graph_node lathe_node;    /* an operator, or a call of a composite */
typedef struct graph_value lathe_graph_value;  /* a tensor with a name */
typedef struct lathe_gen lathe_gen;      /* the source of one target while it is written */

/* --- the generator --- */

/* What a pattern asks of its match beyond its text: NULL, or why not, a sentence without an end. */
typedef struct lathe_check {
    const char *name; /* as the pattern's `where` has it; NULL ends a list */
    const char *(*fn)(lathe_compiler *c, uint32_t n, lathe_graph_value *const *values);
} lathe_check;

/* The numbers of quantized models that a target takes: `lathe quantize --load-codegen FILE.so --for NAME` makes them.
 * All false: those of --for cpu. */
typedef struct lathe_numbers {
    bool with_sign; /* values are i8 without zero points, instead of u8 with any */
    bool one_scale; /* for the weights of a layer, instead of one for each output channel */
    bool powers;    /* scales are powers of two, and halves are rounded up, so that shifts suffice */
    bool sum_scale; /* for both operands of a sum, instead of one for each */
} lathe_numbers;

typedef struct lathe_codegen {
    int api;              /* LATHE_CODEGEN_API */
    const char *name;     /* of the target: letters, digits and _; --offload NAME, [compiler = "NAME"] */
    const char *patterns; /* what it takes (docs/reference/partition.md); NULL: only what a graph's text names */
    const lathe_check *checks; /* that its patterns name; NULL: built-in ones alone */
    const lathe_numbers *numbers; /* NULL: it takes no quantized models, or does not say which */
    uint64_t least_work;  /* multiply-adds below which a region stays on the CPU */
    const char *suffix;   /* of the file that is written: NULL for "c"; "cu": compiled by nvcc, not for modules */
    const char *cflags;   /* for that file: "-I/opt/lib/include"; NULL: none. Modules take none */
    const char *ldflags;  /* for the program: "-lfoo -lbar"; NULL: none. Modules take words of the form -lNAME */
    /* Writes all: NULL for lathe_create_c_source_module. */
    bool (*module)(lathe_gen *g);
    /* In front of all functions: headers, helpers. May be NULL. */
    bool (*begin)(lathe_gen *g);
    /* Writes one function: NULL for lathe_gen_c_func. */
    bool (*func)(lathe_gen *g, const lathe_func *f);
    /* Writes the statements of a node; not asked for constants. May be NULL where `func` is given. */
    bool (*node)(lathe_gen *g, const lathe_node *n);
    void *user; /* lathe_gen_user gives it back */
} lathe_codegen;

/* A library defines this, and calls lathe_register in it for each generator; `api` is the compiler's. Returns false
 * where it cannot work with that compiler. */
bool lathe_register_codegen(lathe_compiler *c, int api);
/* Makes a target of it (target_register); `own` must live as long as the compile. False after a diagnostic: the name is
 * taken, or no name, or the API is another one. */
bool lathe_register(lathe_compiler *c, const lathe_codegen *own);

/* --- the base --- */

/* Calls `begin`, then `func` for each function that the target has got: what `module` does when it is NULL. A function
 * that is declined leaves nothing in the file. */
bool lathe_create_c_source_module(lathe_gen *g);
/* Writes function f: its head, its nodes by `node`, `return 0;`. */
bool lathe_gen_c_func(lathe_gen *g, const lathe_func *f);

/* For `func`: writes the head of f, the lines so far and `return 0;`, as lathe_gen_c_func does in the end. */
bool lathe_gen_finish(lathe_gen *g, const lathe_func *f);

uint32_t lathe_gen_funcs(const lathe_gen *g); /* how many functions the target has got */
const lathe_func *lathe_gen_func(const lathe_gen *g, uint32_t i);
void *lathe_gen_user(const lathe_gen *g);
lathe_compiler *lathe_gen_compiler(const lathe_gen *g);
/* The C function that is being written: unique in the program, so names at file scope can begin with it. */
const char *lathe_gen_symbol(const lathe_gen *g);

/* #include <NAME>, once in the file. */
void lathe_gen_header(lathe_gen *g, const char *name);
/* The same of a library that not every machine has: where it is missing, the C compiler says `from`, plain words on
 * what to install, without quotes. */
void lathe_gen_library_header(lathe_gen *g, const char *name, const char *from);
/* Text at file scope, behind the headers and in front of the function; text that is there already is not repeated. */
void lathe_gen_declare(lathe_gen *g, const char *format, ...) LATHE_PRINTF(2, 3);
/* A line of the function's body. */
void lathe_gen_line(lathe_gen *g, const char *format, ...) LATHE_PRINTF(2, 3);
/* A static const array at file scope with these bytes, as numbers of type `dtype` ("f32", ...): its name. */
const char *lathe_gen_table(lathe_gen *g, const char *name, const char *dtype, const void *data, int64_t count);
/* What the body calls the data of v, a value of the function: a pointer of v's C type. Parameters have names, constants
 * tables, results of nodes places in the scratch, which the plan of the model provides. A value of a composite that is
 * handed over by the call at hand is the value outside. NULL after an error: v is made inside of a composite. */
const char *lathe_gen_name(lathe_gen *g, const lathe_graph_value *v);
/* The constant parameter v lies in the package in another order, once: element (i, j, ...) at i * strides[0] +
 * j * strides[1] + ..., every place taken. `strides` has the rank of v. False after lathe_gen_decline: v is no such
 * parameter, or is wanted in another order already. */
bool lathe_gen_move(lathe_gen *g, const lathe_graph_value *v, const int64_t *strides);
/* Scratch for the node that is being written: a pointer to that many bytes, aligned to 64. */
const char *lathe_gen_scratch(lathe_gen *g, size_t bytes);
/* The C function ends with `status` unless the condition holds. */
void lathe_gen_check(lathe_gen *g, const char *condition, int32_t status);
/* Text for the compile at hand. */
const char *lathe_gen_text(lathe_gen *g, const char *format, ...) LATHE_PRINTF(2, 3);

/* The function is not for this target, and why; the CPU runs it. Returns false. */
bool lathe_gen_decline(lathe_gen *g, const char *format, ...) LATHE_PRINTF(2, 3);
/* The compile fails; where `n` is not NULL, the message names it. Returns false. */
bool lathe_gen_error(lathe_gen *g, const lathe_node *n, const char *format, ...) LATHE_PRINTF(3, 4);

/* --- functions --- */
const char *lathe_func_name(const lathe_func *f);
const char *lathe_func_text(const lathe_func *f, const char *attribute); /* NULL: it has no such text */
uint32_t lathe_func_params(const lathe_func *f);
const lathe_graph_value *lathe_func_param(const lathe_func *f, uint32_t i);
uint32_t lathe_func_results(const lathe_func *f);
const lathe_graph_value *lathe_func_result(const lathe_func *f, uint32_t i);
uint32_t lathe_func_nodes(const lathe_func *f);
const lathe_node *lathe_func_node(const lathe_func *f, uint32_t i);
/* The first node of that operator; NULL: there is none. */
const lathe_node *lathe_func_find(const lathe_func *f, const char *op);

/* --- nodes (docs/reference/operators.md lists the operators with their operands and attributes) --- */
const char *lathe_node_op(const lathe_node *n); /* "nn.conv2d"; of a call: its composite, "NAME.conv2d_relu" */
const lathe_func *lathe_node_composite(const lathe_node *n); /* the function that n calls; NULL: an operator */
uint32_t lathe_node_inputs(const lathe_node *n);
const lathe_graph_value *lathe_node_input(const lathe_node *n, uint32_t i); /* NULL: left out, or no such operand */
uint32_t lathe_node_outputs(const lathe_node *n);
const lathe_graph_value *lathe_node_output(const lathe_node *n, uint32_t i);
/* Attributes, stored or by default. Asked for one that the operator does not have: 0, NULL. */
int64_t lathe_node_int(const lathe_node *n, const char *attribute);
double lathe_node_float(const lathe_node *n, const char *attribute);
const char *lathe_node_text(const lathe_node *n, const char *attribute);
const int64_t *lathe_node_ints(const lathe_node *n, const char *attribute, uint32_t *out_count);

/* --- values --- */
const char *lathe_value_name(const lathe_graph_value *v);
const char *lathe_value_dtype(const lathe_graph_value *v);  /* "f32" */
const char *lathe_value_c_type(const lathe_graph_value *v); /* "float" */
size_t lathe_value_element_bytes(const lathe_graph_value *v);
int32_t lathe_value_rank(const lathe_graph_value *v);
/* -1: the extent is known only when the model runs. Functions with such values are declined before `func` is asked. */
int64_t lathe_value_extent(const lathe_graph_value *v, int32_t axis);
int64_t lathe_value_count(const lathe_graph_value *v); /* elements */
const lathe_node *lathe_value_node(const lathe_graph_value *v); /* that makes it; NULL: a parameter */
/* For checks: the elements of a value that the graph itself has as a constant, as lathe_gen_constant gives them. */
const void *lathe_value_constant(lathe_compiler *c, const lathe_graph_value *v);
/* What v stands for in the function that is written: of a parameter of a composite the operand of the call at hand, of
 * its results those of the call; else v. */
const lathe_graph_value *lathe_gen_outer(const lathe_gen *g, const lathe_graph_value *v);
/* The elements of a value that is known when compiling, in order, aligned for their type: a constant of the function,
 * or a parameter for which the model hands over a constant. NULL: not known. */
const void *lathe_gen_constant(const lathe_gen *g, const lathe_graph_value *v);

#ifdef __cplusplus
}
#endif
#endif
