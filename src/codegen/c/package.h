/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a static C package: one writer each. What is the same in every package are files of the folder package
 * (codegen/c/template.h). Short texts are templates in which @n is the module's name, @p its prefix (tvmgen_default),
 * @M the prefix of its macros (TVMGEN_DEFAULT), and @g, of a function among several, the prefix of all. */
#ifndef LATHE_CODEGEN_C_PACKAGE_H
#define LATHE_CODEGEN_C_PACKAGE_H
#include "base/json_out.h"
#include "base/ptr_map.h"
#include "codegen/c/emit.h"

/* An input or output; names[0..) of the model and of C. */
typedef struct package_io {
    const char *name;   /* as in the model */
    const char *c_name; /* the field in the package's struct: a C identifier, unique */
    struct type type;
    uint32_t value;    /* in the plan: where its bytes begin */
    uint32_t shape_of; /* of an output that is the shape of that one: an array in the struct; else PROG_NONE */
    uint32_t shape;    /* of an output with open dimensions: the one that is its shape; else PROG_NONE */
    dim extent;        /* of an input that is an extent: a number in the struct; else NULL */
    const model_end *end; /* its scale and zero point where it is handed over quantised; else NULL */
    bool is_text;           /* strings: bytes along the last axis, zeros behind them */
    const attr *labels;     /* what its numbers stand for, or its columns are called; NULL: nothing is said */
} package_io;

int64_t package_text_bytes(const package_io *io); /* of its strings, the most */

/* An extent that the data decides, of outputs. */
typedef struct package_bound {
    const char *name, *c_name;
    int64_t most;
} package_bound;

typedef struct package_const {
    const char *name; /* C identifier, unique */
    const tensor_data *data;
    uint32_t value;
    const char *label; /* for a comment */
} package_const;

typedef struct package {
    compiler *c;
    const codegen_unit *u;
    const plan *pl;
    const package_io *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    const package_bound *bounds;
    uint32_t n_bounds;
    const package_const *constants;
    uint32_t n_constants;
    const constant_area *areas;    /* of constants, by offset; the first one is what const_workspace names */
    uint32_t n_areas;
    const char *prefix, *macro;
    enum constants_form constants_form; /* never the default */
    const void *constant_data;     /* the bytes of all, where a file holds them */
    const char *constant_file;     /* path of it in the package */
    uint64_t constants_layout;     /* of a file that the program hands over: what reads it */
    uint32_t n_args;               /* pointers of all operators */
    uint64_t stack_bytes;          /* most arrays that one kernel has on the stack */
    const artifact *files;         /* of the package, once all others are written: for the report */
    const struct package *functions; /* of a package with several, which is none itself; else NULL */
    uint32_t n_functions;
    uint32_t n_sids;               /* values, then scratch */
    ptr_map first_ops;             /* kernel -> the first operator that runs it */
    uint32_t *next_ops;            /* of each operator: the next one with its kernel; UINT32_MAX: none */
} package;

/* The target's flags, and the code model where static data is too large for the usual one. */
const char *package_target_flags(const package *p);
bool package_check_static(const package *p); /* whether code reaches all of it; else an error */
/* A unit's names and numbers; `prefix` begins the names of its kernels. */
package package_of(compiler *c, const codegen_unit *u, const char *prefix);
/* Gives what the caller sees and the constants their names in C (bind.c). */
void package_bind(package *p);
/* Kernel of operator i of the plan, and whether operator i is the first one that runs it. */
const prog_kernel *package_kernel(const package *p, uint32_t i);
bool package_is_first(const package *p, uint32_t i);
void package_template(const package *p, writer *w, const char *text);
/* A name that is safe inside a C comment. */
const char *package_comment(arena *a, const char *s);
void package_shape(writer *w, const type *t); /* "[1, 3, 224, 224]" */
bool package_is_open(const package *p); /* the caller states extents, or learns them */
/* The data of a caller, neither an extent nor a shape. */
bool package_is_data(const package_io *io);
/* It lies in the workspace (--input-in-workspace). */
bool package_is_inside(const package *p, const package_io *io);
bool package_has_inside(const package *p);
bool package_has_extents(const package *p); /* a caller states some */
bool package_tells_shapes(const package *p); /* a run says how large some outputs are */
/* Which of the caller's extents that symbol is, counted among them; UINT32_MAX: the caller states none of that name. */
uint32_t package_extent(const package *p, dim symbol);
/* Extents that data decides among those that operator i of the plan compares with their bounds: "found <= 12, ..."; ""
 * when there is none. */
const char *package_op_extents(const package *p, uint32_t i);
const char *package_upper(arena *a, const char *s);
/* With TVMRT_SMALL the package calls its operators itself: its target is small, and the model has no branches. */
bool package_is_small(const codegen_unit *u);
/* The loops that an operator's C is written of: its own, or those that it shares. */
const tir_func *package_code(const plan_op *op);
/* Bytes of the arrays that a kernel has on the stack; scalars and register tiles not counted. */
uint64_t package_stack_bytes(const tir_func *f);
uint32_t package_scratch_sid(const package *p, uint32_t op, uint32_t k);

/* "src/xnnpack.c": the file of a code generator's source. */
const char *package_source_file(const package *p, const struct prog_source *s);
/* What the linker is told for all of them: "-lXNNPACK -lfoo"; "": nothing. */
const char *package_libraries(const package *p);

/* What packages of one function and of several have in common (codegen_c_functions). */
/* "ops.c"; of a function among several "default_encode_ops.c". */
const char *package_file_of(const package *p, const char *file);
void package_add(const package *p, artifact *out, const char *path, void (*write)(const package *p, writer *w));
bool package_add_constants(package *p, artifact *out);
bool package_add_function(package *p, artifact *out, uint32_t constants);
void report_write_functions(const package *p, writer *w);

void header_write(const package *p, writer *w);   /* include/tvmgen_default.h */
void instance_write(const package *p, writer *w); /* include/tvmgen_default_instance.h */
void names_write(const package *p, writer *w);    /* src/default_names.h */
void lib0_write(const package *p, writer *w);     /* src/default_lib0.c */
void lib1_write(const package *p, writer *w);     /* src/default_lib1.c */
/* The bytes of the constants in area 0, and where area i lies; those behind area 0 are as inputs of the model's
 * description: NUM_INPUTS + i - 1. */
uint64_t package_constant_bytes(const package *p);
/* Of the first, as it is placed: a file that the program hands over ends in its identity. */
uint64_t package_placed_bytes(const package *p);
uint32_t package_area(const package *p, uint64_t offset);
uint32_t package_area_align(uint64_t bytes); /* of a memory of so many */
const char *package_area_file(const package *p, uint32_t i); /* "src/default_area_1.bin" */
bool package_includes_files(const package *p); /* by the assembler */
constants_form constants_form_of(const codegen_unit *u);
void *constants_bytes(const package *p, size_t *out_len);
/* The identity of the code and tables that read the constants, and the bytes of area 0 with it and their own behind
 * them. */
uint64_t constants_layout(const package *p, const artifact_file *ops, const artifact_file *tables);
void *constants_sealed(const package *p, size_t *out_len);
void constants_write(const package *p, writer *w); /* in src/default_lib0.c */
void constants_write_numbers(const package *p, writer *w, const tensor_data *t); /* "{1, 2}", in several lines */
/* states.c */
bool package_has_states(const package *p);
bool package_copies_state(const plan *pl, uint32_t value); /* a run ends with a copy into it */
void states_write(const package *p, writer *w);   /* in src/default_lib1.c; nothing without states */
void states_report(json_out *j, const package *p); /* members of report.json */
void tables_write(const package *p, writer *w);    /* src/model_data.c */
void small_write_tables(const package *p, writer *w); /* its part for TVMRT_SMALL */
void calls_write(const package *p, writer *w);     /* the calls of a small package's operators, in src/default_lib1.c */
bool ops_write(const package *p, writer *w);       /* src/ops.c */
/* The kernel of operator i with its comment, PREFIX_KERNEL in C; what its text uses goes to `needs`. */
bool ops_write_kernel(const package *p, c_needs *needs, writer *w, uint32_t i, const char *linkage);
/* Of small packages: the function with the loops of operator i, and the array that it gets in front of all else, or
 * NULL; what others see of these. */
const char *ops_function(const package *p, uint32_t i, const char **out_numbers);
void ops_write_declarations(const package *p, writer *w);
/* The call of it, "return PREFIX_KERNEL(...);", with the addresses of operands, results and scratch in `a`. */
void ops_write_call(const package *p, writer *w, uint32_t i);
void main_write(const package *p, writer *w);      /* src/main.c */
/* Identifiers of all files so far become short, and names.map says which (--names short). */
bool short_names_write(const package *p, artifact *out);
void makefile_write(const package *p, writer *w);
void makefile_products(const package *p, artifact *out);
void makefile_write_cmake(const package *p, writer *w);
/* tvmrt.h, tvmrt.c and the file of the port. */
bool runtime_add(const package *p, artifact *out);
/* The embedded files that a code generator's source asks for, and what is made of them. */
bool runtime_add_files(const package *p, const struct prog_source *s, artifact *out);
/* "acme/sim.c": such a file in the package; "build/acme_sim.o": what it becomes, NULL: nothing. */
const char *package_file(const package *p, const struct prog_source *s, uint32_t i);
const char *package_file_object(const package *p, const struct prog_source *s, uint32_t i);
/* Ends the first comment of a generated file. */
#define OUTPUT_LICENCE_LINES                                                      \
    " * Output of the compiler Lathe, and yours: see \"Output\" in its NOTICE.\n"     \
    " * SPDX-License-Identifier: Apache-2.0 */"
#define OUTPUT_LICENCE OUTPUT_LICENCE_LINES "\n"
#define PACKAGE_REPORT "report.json"
void report_write(const package *p, writer *w);
void report_labels(json_out *j, const char *member, const attr *l); /* an array of strings or of numbers */
const char *report_list_kind(const list_io *l); /* "map" */
void report_list(json_out *j, const list_io *l);
/* proof.c: its part of it, and numbers that it shares with summaries. */
void proof_write(json_out *j, const package *p);
/* struct tvmgen_NAME_instance, a context and pointers, as far as tvmgen_NAME_run has one of its own. */
uint64_t package_instance_bytes(const codegen_unit *u);
uint64_t package_caller_bytes(const plan_problem *p);   /* of inputs and outputs; what lies in another does not count */
/* work.c: of a run, at most; -1: no bound is known. Instructions are those of processors of 32 bits. why: NULL, or what
 * has no bound. */
typedef struct package_work {
    int64_t operations, instructions;
    const char *why;
} package_work;
package_work package_most_work(compiler *c, const codegen_unit *u);
package_work package_operator_work(compiler *c, const codegen_unit *u, uint32_t op); /* one operator's share of it */
/* Of a processor with vectors: slots in which it starts instructions, as an optimizing compiler may need them; -1: no
 * bound is known. */
double package_operator_slots(compiler *c, const codegen_unit *u, uint32_t op);
#define STACK_ASSUMES "-O1 or more" /* without it gcc keeps every value in the frame */
uint64_t package_stack_bound(const codegen_unit *u); /* of the calling thread; 0: none is known */
#endif
