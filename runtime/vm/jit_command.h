/* jit_command.h: which compiler compiles the kernels, for which machine, with which flags.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_COMMAND_H
#define LATHE_VM_JIT_COMMAND_H
#include "jit.h"
#include "jit_util.h"

typedef struct jit_command {
    jit_words words;     /* the compiler, as it was named */
    char *path;          /* its program */
    char *version;       /* what it says of itself */
    jit_words flags;     /* those that choose processor and width */
    jit_words libraries; /* -lNAME: what the source calls */
    bool say_c;          /* it takes C for C++ when it is not told */
    uint32_t width;      /* bits of a vector that the code relies on: it must not run on a machine with others */
} jit_command;

/* Finds the compiler for a source, and asks it for its version and target. `folder`: for temporary files. The command
 * is to be freed in any case. */
int32_t jit_command_find(const lathe_options *options, const char *folder, const char *source, size_t size,
                         jit_command *out, lathe_error *error);
/* Is there a compiler at all? true also where that cannot be told. */
bool jit_command_exists(const lathe_options *options);
void jit_command_free(jit_command *c);
/* `width` of commands that compile for this machine. */
uint32_t jit_command_own_width(void);
/* Seconds that a compiler gets. */
uint32_t jit_command_seconds(const lathe_options *options);

/* Commands, appended to *out. A whole object from a source; piece `k` of n as an object file; an object from pieces. */
void jit_command_whole(const jit_command *c, const char *source, const char *object, jit_words *out);
void jit_command_piece(const jit_command *c, const char *source, uint32_t k, uint32_t n, const char *object,
                       jit_words *out);
void jit_command_link(const jit_command *c, const jit_words *pieces, const char *object, jit_words *out);
#endif
