/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between programs and code generators of targets (target_codegen_fn): the regions that a target has got,
 * and the C source that it writes for them. */
#ifndef LATHE_PROG_SOURCE_H
#define LATHE_PROG_SOURCE_H
#include "abi/package.h"
#include "prog/prog.h"

/* A constant operand that the generator wants in another order: the same elements, the one at index i, j, ... lies at
 * i * strides[0] + j * strides[1] + ... of `data`. */
typedef struct prog_moved {
    uint32_t param;
    const tensor_data *data; /* of the type that the operand has */
    const int64_t *strides;
} prog_moved;

typedef struct prog_region {
    const prog_kernel *kernel; /* its `func`, `constants` */
    const char *symbol;        /* the C function that is to be written: operands, results, and scratch if it has any */
    bool declined;             /* nothing was written for it: out */
    const char *why;           /* it was declined; NULL: nobody says: out */
    VEC(prog_moved) moved;     /* out */
    uint64_t scratch;          /* bytes that it wants, aligned to 64; 0: no such parameter: out */
    tir_func *device;          /* the loops of a device that it runs, for reports; NULL: none: out */
} prog_region;

/* A file of ours that the text needs, by its name among the embedded ones (codegen/embedded.h): packages hold it in a
 * folder of the target's name, and compile it when it is C. */
typedef struct prog_file {
    const char *name;
    bool hosted; /* only of programs under an operating system: a simulator */
} prog_file;

typedef struct prog_source {
    const struct target *target;
    bool for_module; /* it is compiled alone, where the module runs; else in a package */
    prog_region *regions;
    uint32_t n_regions;
    const char *text;    /* of the file; NULL: all were declined: out, as what follows */
    const char *suffix;  /* of the file's name: "c" */
    const char *cflags;  /* "": none */
    const char *ldflags;
    const char *ready; /* "int32_t NAME(void)" of the text, which makes the device ready before memory of it is asked
                        * for, and returns a status; NULL: there is nothing to do */
    const prog_file *files; /* more of them */
    uint32_t n_files;
    enum package_backend backend; /* who executes them, for the package's table; 0: PACKAGE_BACKEND_EXTERNAL */
} prog_source;

/* The steps of r's kernel get the constants in their new order, and its plain loops read them so. */
void prog_move_constants(compiler *c, prog_module *m, prog_kernel *k, const prog_region *r);

#endif
