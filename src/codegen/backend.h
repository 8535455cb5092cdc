/* SPDX-License-Identifier: Apache-2.0 */
/* Back ends: rows of one table. A back end turns a unit (a program with the loops of its kernels, and the plan) into an
 * artifact: named files in memory, which the driver writes all or not at all. */
#ifndef LATHE_CODEGEN_BACKEND_H
#define LATHE_CODEGEN_BACKEND_H
#include "codegen/ecosystem.h"
#include "codegen/port.h"
#include "plan/plan.h"
#include "type/attr.h"
#include "type/list.h"
#include "type/model.h"
#include "type/offload.h"

/* How a package holds its constants: X(id, "--constants name") */
#define CONSTANTS_FORMS(X)          \
    X(CONSTANTS_C, "c")             \
    X(CONSTANTS_INCBIN, "incbin")   \
    X(CONSTANTS_BIN, "bin")

typedef enum constants_form {
    CONSTANTS_DEFAULT, /* by their size */
#define X(id, name) id,
    CONSTANTS_FORMS(X)
#undef X
} constants_form;

/* A memory of a board (docs/reference/tvmrt.md, "Memories"). */
typedef struct board_memory {
    const char *name;
    const char *section; /* of the linker script; NULL: where the compiler puts things */
    bool is_ram;         /* the workspace may lie there; else constants */
    uint64_t bytes;
    uint32_t cost; /* of reading, in any unit */
    uint64_t used; /* by what placement_choose put there */
} board_memory;

/* Constants from offset `begin` of the plan on, which lie in one memory. */
typedef struct constant_area {
    const board_memory *memory;
    uint64_t begin, end;
} constant_area;

/* Where everything lies; areas[0] is what the compiler places (it may be empty), others have sections. */
typedef struct placement {
    board_memory *memories;
    uint32_t n_memories;
    const board_memory *workspace; /* NULL: where the compiler puts it */
    constant_area *areas;
    uint32_t n_areas;
    bool quantised, streams; /* what a message advises: the model is so already; --ram and --minimize may help */
} placement;

/* What a pass had to tell of an operator of the model: why it stays as it is. */
typedef struct codegen_remark {
    const char *pass, *op, *value, *text; /* value: its first result */
    const char *node;                     /* of the model; "": it has no name */
} codegen_remark;

typedef struct codegen_unit {
    const char *module_name; /* "default" */
    const char *group; /* the module that this is one function of: module_name is "GROUP_FUNCTION"; NULL: it is alone */
    const char *signature; /* of the model, which the function is; NULL: it is alone */
    const char *model_file;  /* base name only */
    const char *model_sha256; /* for the report; NULL: no hashes */
    const prog_module *prog;
    const prog_func *func; /* that the plan is of */
    const struct plan *plan;
    const struct stream_bounds *bounds; /* what row streaming found; NULL: it is not for the target */
    const struct target *target; /* its workers are the width of the schedule */
    const package_port *port;            /* what a package runs on */
    const ecosystem *as;         /* what a package is laid out for; NULL: nothing, it has a Makefile */
    const ecosystem_board *board; /* of an example; else NULL */
    const char *host;            /* of a module's file: "x86_64" | "aarch64" | "riscv64" */
    bool short_names;            /* of packages: identifiers of at most 31 characters, tables without names */
    bool with_interpreter;       /* a module holds its loops as text, too */
    enum constants_form constants_form;
    const placement *places;       /* NULL: no memories were described */
    const codegen_remark *remarks; /* for the report */
    uint32_t n_remarks;
    const model_end *ends;
    uint32_t n_ends;
    const model_text *texts;
    uint32_t n_texts;
    const attr *labels; /* of results, by name: graph_module.labels */
    uint32_t n_labels;
    const model_fact *facts; /* for the report */
    uint32_t n_facts;
    const list_io *lists; /* graph_module.lists */
    uint32_t n_lists;
    int opt_level;
    const offload_log *offload; /* for the report; NULL: no other target was asked for */
} codegen_unit;

typedef struct artifact_file {
    const char *path; /* relative */
    const void *data;
    size_t len;
    bool is_binary;
} artifact_file;

typedef struct artifact {
    VEC(artifact_file) files;
    uint64_t source_bytes;  /* of C in it, where it is one file */
    bool is_file;           /* one file, not a folder: files[0], whose path is the caller's */
    VEC(const char *) made; /* what the Makefile makes of them, relative; a '*' at the end stands for any rest */
} artifact;

/* X(id, "--emit name", function, help) */
#define BACKENDS(X)                                        \
    X(BACKEND_C, "c", codegen_c, "static C package")       \
    X(BACKEND_MODULE, "module", codegen_module, "portable module: bytecode and the C source of its kernels")

typedef enum backend {
#define X(id, name, fn, help) id,
    BACKENDS(X)
#undef X
} backend;

/* The same program for n targets, n >= 1; not every back end takes more than one. */
typedef bool (*backend_fn)(compiler *c, const codegen_unit *units, uint32_t n, artifact *out);
#define X(id, name, fn, help) bool fn(compiler *c, const codegen_unit *units, uint32_t n, artifact *out);
BACKENDS(X)
#undef X

/* A C package of n functions, a unit for each: they share constants (plan_share_constants) and the static workspace. */
bool codegen_c_functions(compiler *c, const codegen_unit *units, uint32_t n, artifact *out);

/* A C identifier (also a C++ one) for a name of a model: letters, digits and _; with v_ in front where the name itself
 * is a keyword, a macro, a type, a function of the C library or a name that generated code uses. Not yet unique. */
/* Whether a package can have so many operators; else an error. */
bool codegen_c_holds(compiler *c, uint32_t operators);
const char *codegen_c_identifier(arena *a, const char *s);

/* The name of a form, and the form of a name (CONSTANTS_DEFAULT: there is none of that name). */
const char *constants_form_name(constants_form f);
constants_form constants_form_find(const char *name);

/* One function as C99 text (no includes): `static int32_t name(params..., uint32_t part, uint32_t parts)`. */
bool codegen_c_func(compiler *c, writer *w, const tir_func *f, const char *c_name, const target *t);
/* The same without the helpers that it calls: to be read, not compiled. */
bool codegen_c_func_alone(compiler *c, writer *w, const tir_func *f, const char *c_name, const target *t);
#endif
