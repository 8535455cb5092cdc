/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the base for code generators (include/lathe/codegen.h): what of one target's source is written so far,
 * and the generators that come with the compiler. */
#ifndef LATHE_CODEGEN_BYOC_BYOC_H
#define LATHE_CODEGEN_BYOC_BYOC_H
#include "base/ptr_map.h"
#include "graph/graph.h"
#include "lathe/codegen.h"
#include "prog/source.h"

typedef struct gen_name {
    const graph_value *value;
    const char *text;
} gen_name;

/* A piece of the scratch that is in use. */
typedef struct gen_block {
    uint64_t offset, bytes;
    const graph_value *value; /* NULL: of the node at hand */
} gen_block;

struct lathe_gen {
    compiler *c;
    const lathe_codegen *own;
    prog_source *source;
    writer headers, file;
    VEC(const char *) included, declared; /* texts, once each */
    /* the function at hand */
    prog_region *region;    /* NULL: none */
    const graph_node *node; /* being written */
    writer body;
    VEC(gen_name) names;
    VEC(gen_block) blocks;
    uint32_t at;            /* position of the node */
};

/* --- text.c --- */
/* A C identifier for a name, which no other value or parameter of the function has. */
const char *gen_identifier(lathe_gen *g, const char *wanted);
void gen_begin_func(lathe_gen *g, prog_region *r);
/* A piece of the scratch, and the end of its use. */
uint64_t gen_take(lathe_gen *g, uint64_t bytes);
void gen_release(lathe_gen *g, uint64_t at);
/* What was noted of the values whose last reader was node `at` is gone. */
void gen_end_node(lathe_gen *g);

/* --- read.c --- */
/* The elements of a constant; without memory for them the compile ends. */
const void *gen_bytes(compiler *c, const tensor_data *t);

/* --- xnnpack.c --- */
extern const lathe_codegen byoc_xnnpack;
/* --- cutlass.c --- */
extern const lathe_codegen byoc_cutlass;

/* --- cmsis_nn.c --- */
extern const lathe_codegen byoc_cmsis_nn;

/* --- generators.c --- */
extern const lathe_codegen *const byoc_generators[]; /* NULL at the end */

/* --- register.c --- */
bool byoc_register_builtin(compiler *c);
#endif
