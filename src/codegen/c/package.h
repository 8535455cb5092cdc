/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a static C package: one writer each. Fixed texts are templates in which @n is the module's name, @p its
 * prefix (tvmgen_default) and @M the prefix of its macros (TVMGEN_DEFAULT). */
#ifndef LATHE_CODEGEN_C_PACKAGE_H
#define LATHE_CODEGEN_C_PACKAGE_H
#include "codegen/backend.h"

typedef struct package {
    compiler *c;
    const codegen_unit *u;
    const plan *pl;
    const char *prefix, *macro;
    bool constants_in_file;
    const char *constant_file; /* path in the package */
    uint32_t n_args;           /* pointers of all operators */
    uint64_t stack_bytes;      /* most arrays that one kernel has on the stack */
    uint32_t n_sids;           /* values, then scratch */
} package;

void package_template(const package *p, writer *w, const char *text);
/* A name that is safe inside a C comment. */
const char *package_comment(arena *a, const char *s);
void package_shape(writer *w, const type *t); /* "[1, 3, 224, 224]" */
const char *package_dtype(dtype dt);          /* NumPy's name: "float32" */
const char *package_upper(arena *a, const char *s);
/* Bytes of the arrays that a kernel has on the stack; scalars and register tiles not counted. */
uint64_t package_stack_bytes(const tir_func *f);
uint32_t package_scratch_sid(const package *p, uint32_t op, uint32_t k);

void header_write(const package *p, writer *w);   /* include/tvmgen_default.h */
void instance_write(const package *p, writer *w); /* include/tvmgen_default_instance.h */
void names_write(const package *p, writer *w);    /* src/default_names.h */
void lib0_write(const package *p, writer *w);     /* src/default_lib0.c */
void *lib0_constants(const package *p, size_t *out_len);
void lib1_write(const package *p, writer *w);   /* src/default_lib1.c */
void tables_write(const package *p, writer *w); /* src/model_data.c */
bool ops_write(const package *p, writer *w);    /* src/ops.c */
void main_write(const package *p, writer *w);   /* src/main.c */
void makefile_write(const package *p, writer *w);
void makefile_write_cmake(const package *p, writer *w);
bool report_write(const package *p, writer *w); /* report.json */
#endif
