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
struct target_setting;  /* type/target.c: what a target compiles for, of the target's own */
struct tir_intrin_list; /* tir/intrin.c: tensor intrinsics of the user's own */
struct graph_node;
struct extent_demands;  /* graph/op.h */
struct tensor_data;
struct input_file;

typedef struct compiler {
    arena mem; /* lives as long as the compile: IR, names, constants */
    struct diags diags;
    interner *names;
    struct dim_table *dims;
    struct graph_registry *ops;
    struct target_list *targets;
    struct target_setting *settings;
    struct tir_intrin_list *intrins;
    /* Evaluates one pure node whose inputs are all constants; `driver` sets it (loop-IR interpreter). `out` holds one
     * entry per node output. false: cannot (no error reported). */
    bool (*evaluate)(struct compiler *c, const struct graph_node *n, const struct tensor_data **out);
    /* Told what begins now: step `done` of `of` (0: nobody knows of how many), or one that is not counted (both 0);
     * `what` NULL: the last one goes on. Returns whether the work is still wanted. NULL: nobody watches. */
    bool (*progress)(void *context, const char *what, uint32_t done, uint32_t of);
    void *progress_context;
    struct extent_demands *demands; /* where a type relation notes what only a run can tell; NULL: nobody asks */
    bool cancelled; /* it was not wanted any more, and a diagnostic says so */
    uint32_t next_id;         /* fresh names */
    struct input_file *files; /* what was read, newest first */
    struct temps temps;
} compiler;

/* Empty registries; driver's compiler_setup registers the built-in rows. With the out-of-memory handler of `parent`. */
void compiler_init_under(compiler *c, const arena *parent);
void compiler_init(compiler *c); /* with the default one */
void compiler_free(compiler *c);
/* False after a diagnostic: the work is not wanted any more. */
bool compiler_progress(compiler *c, const char *what, uint32_t done, uint32_t of) __attribute__((warn_unused_result));
/* The same while one step lasts: for loops that wait. */
bool compiler_goes_on(compiler *c) __attribute__((warn_unused_result));
/* A file that is in memory already, and stays there as long as c: it is read under that name. */
void compiler_give_file(compiler *c, const char *path, span bytes, file_id id);

/* All reading and writing of a run goes through these, so that what was read is never written. The bytes of a file stay
 * until compiler_free; a file asked for again is not read again. Errors as file_read, file_read_beneath, file_write; an
 * output that is an input by whatever name is DIAG_USAGE. */
bool compiler_read_file(compiler *c, const char *path, span *out);
bool compiler_read_beneath(compiler *c, const char *dir, const char *name, span *out, file_lack *out_lack);
bool compiler_may_write(compiler *c, const char *path);
bool compiler_write_file(compiler *c, const char *path, const void *data, size_t len);
/* The inputs so far, one a call, from *at = NULL; NULL: no more. */
const char *compiler_next_input(const compiler *c, const struct input_file **at);
/* Removes a folder of `temps` with all that is in it, or warns that it stays. */
void compiler_remove_temp_dir(compiler *c, const char *dir);
#endif
