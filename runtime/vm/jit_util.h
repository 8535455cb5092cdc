/* jit_util.h: what the files of the run-time compiler share: lines for the log, text and lists of words that grow.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_UTIL_H
#define LATHE_VM_JIT_UTIL_H
#include "error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

int32_t jit_no_memory(lathe_error *error);

/* A line for options->log, when options->trace asks for it. */
void jit_say(const lathe_options *options, const char *format, ...) VM_FORMAT(2, 3);
/* The same with a trace and without: what a user should know who asks for none. */
void jit_warn(const lathe_options *options, const char *format, ...) VM_FORMAT(2, 3);

/* Between the two, signals of this thread wait: what exists and what options->outside was told of are the same. */
typedef struct jit_held {
    sigset_t before;
} jit_held;
void jit_hold(jit_held *h);
void jit_release(const jit_held *h); /* keeps errno */
/* options->outside, where there is one. */
void jit_tell(const lathe_options *options, const char *path, pid_t pid, bool there);

/* printf into new memory; NULL: no memory. */
char *jit_printf(const char *format, ...) VM_FORMAT(1, 2);

/* Does a text of n bytes hold the word? */
bool jit_contains(const char *text, size_t n, const char *word);

/* Words of a command, each in memory of its own, NULL behind the last one. `failed` stays when memory was lacking. */
typedef struct jit_words {
    char **at;
    size_t n, room;
    bool failed;
} jit_words;
/* Takes over `word`, which may be NULL: then there was no memory for it. */
void jit_words_add(jit_words *w, char *word);
void jit_words_copy(jit_words *w, const char *word);
/* The parts of `text` between blanks. */
void jit_words_split(jit_words *w, const char *text);
void jit_words_all(jit_words *w, const jit_words *from);
/* All of them with one space in between, in new memory; NULL: no memory. */
char *jit_words_join(const jit_words *w);
void jit_words_free(jit_words *w);
#endif
