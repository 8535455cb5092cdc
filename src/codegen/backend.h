/* SPDX-License-Identifier: Apache-2.0 */
/* Back ends: rows of one table. A back end turns a unit (loop-IR functions, the operators that call them, constants,
 * the plan) into an artifact: named files in memory, which the driver writes all or not at all. */
#ifndef LATHE_CODEGEN_BACKEND_H
#define LATHE_CODEGEN_BACKEND_H
#include "plan/plan.h"

typedef struct unit_io {
    const char *name;   /* as in the model */
    const char *c_name; /* the field in the package's struct: a C identifier, unique */
    struct type type;
    uint32_t value; /* in the plan */
} unit_io;

typedef struct unit_const {
    const char *name; /* C identifier, unique */
    const tensor_data *data;
    uint32_t value;
} unit_const;

typedef struct unit_op {
    const char *name;    /* "fused_nn_conv2d_nn_relu", before numbering */
    const char *kernel;  /* C name without the module prefix: "fused_add_1"; equal kernels share it */
    bool defines_kernel; /* the first operator with this kernel */
    const char *source;  /* model nodes behind it, for the comment: "conv1, relu1" */
    const char *kind;    /* operator names joined: "nn.conv2d+add+nn.relu" */
    int64_t macs;
} unit_op;

typedef struct codegen_unit {
    const char *module_name; /* "default" */
    const char *model_file;  /* base name only */
    const unit_io *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    const unit_const *constants;
    uint32_t n_constants;
    const unit_op *ops; /* as plan->problem->ops */
    const struct plan *plan;
    const struct target *target;
    const char *port; /* "posix" | "freertos" | "baremetal" */
    const char *target_cflags;
    uint64_t constant_file_threshold; /* bytes of one constant from which it goes to the binary file */
    int opt_level;
    uint32_t workers;
} codegen_unit;

typedef struct artifact_file {
    const char *path; /* relative */
    const void *data;
    size_t len;
    bool is_binary;
} artifact_file;

typedef struct artifact {
    VEC(artifact_file) files;
} artifact;

/* X(id, "--emit name", function, help) */
#define BACKENDS(X) X(BACKEND_C, "c", codegen_c, "static C package")

typedef bool (*backend_fn)(compiler *c, const codegen_unit *u, artifact *out);
#define X(id, name, fn, help) bool fn(compiler *c, const codegen_unit *u, artifact *out);
BACKENDS(X)
#undef X

/* A C identifier (also a C++ one) for a name of a model: letters, digits and _; with v_ in front where the name itself
 * is a keyword, a macro, a type, a function of the C library or a name that generated code uses. Not yet unique. */
const char *codegen_c_identifier(arena *a, const char *s);

/* One function as C99 text (no includes): `static int32_t name(params..., uint32_t part, uint32_t parts)`. */
bool codegen_c_func(compiler *c, writer *w, const tir_func *f, const char *c_name, const target *t);
#endif
