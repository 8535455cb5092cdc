/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler context: everything that a compile shares, and the only place where state lives. It comes first in every
 * call that needs it. Higher folders hang their registries on it through forward-declared types. */
#ifndef LATHE_BASE_COMPILER_H
#define LATHE_BASE_COMPILER_H
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/text.h"

struct graph_registry;  /* graph/op.h: operator rows */
struct dim_table;       /* type/dim.h: unique symbolic expressions */
struct target;          /* type/target.h */
struct target_list;     /* type/target.c: targets of the user's own */
struct tir_intrin_list; /* tir/intrin.c: tensor intrinsics of the user's own */
struct graph_node;
struct tensor_data;
struct vta_config; /* include/abi/vta_config.h */

typedef struct compiler {
    arena mem; /* lives as long as the compile: IR, names, constants */
    struct diags diags;
    interner *names;
    struct dim_table *dims;
    struct graph_registry *ops;
    const struct target *target;
    struct target_list *targets;
    struct tir_intrin_list *intrins;
    const struct vta_config *vta; /* accelerator that the VTA passes compile for; NULL: the default one */
    int opt_level;                /* 0..3 */
    bool no_winograd;             /* convolutions keep the direct form, whose error is smaller */
    /* Evaluates one pure node whose inputs are all constants; `driver` sets it (loop-IR interpreter). `out` holds one
     * entry per node output. false: cannot (no error reported). */
    bool (*evaluate)(struct compiler *c, const struct graph_node *n, const struct tensor_data **out);
    uint32_t next_id;          /* fresh names */
    struct mapped_file *files; /* compiler_map_file */
} compiler;

void compiler_init(compiler *c); /* empty registries; driver's compiler_setup registers the built-in rows */
void compiler_free(compiler *c);
/* The bytes of a file until compiler_free; a file asked for again is not mapped again. Errors as file_map. */
bool compiler_map_file(compiler *c, const char *path, span *out);
#endif
