/* SPDX-License-Identifier: Apache-2.0 */
/* What a user asks for: a verb, its options by name and text, the files that it works on. The program fills it from its
 * command line, a user of the library by lathe_set; one table, options.def, says what there is. */
#ifndef LATHE_API_ASK_H
#define LATHE_API_ASK_H
#include "driver/pipeline.h"

#define OPTION_SEVERAL (1u << 31) /* beside the verbs of an option: all that are given count */
#define OPTION_EARLY   (1u << 30) /* it steers the compile: without effect on what is compiled already */
#define OPTION_PROGRAM (1u << 29) /* it says what the program prints or writes: the library has no such option */

typedef enum ask_verb {
#define VERB(id, name, args, fn, help, examples) id,
#include "api/options.def"
    VERB_COUNT
} ask_verb;

typedef enum ask_option {
#define OPTION(id, name, letter, value, verbs, brief, more) id,
#include "api/options.def"
    OPT_COUNT
} ask_option;

typedef struct ask_strings {
    const char **data;
    uint32_t len, cap;
} ask_strings;

typedef struct ask {
    compiler *c;
    ask_verb verb;
    ask_strings values[OPT_COUNT]; /* "" for switches; in the order given */
    ask_strings args;              /* files */
    writer out;                    /* what the verb has made, when it has ended */
    void (*flush)(struct ask *x);  /* what takes long says what it knows: `out` is ready so far; NULL: nobody listens */
    bool documents;                /* --json: one document is printed in the end, and nothing else */
    const char *program;           /* the path of this program `lathe`; NULL: this is another one */
    void (*say)(const char *line); /* what must be known at once, while something waits; NULL: nobody listens */
} ask;

static inline void ask_flush(ask *x)
{
    if (x->flush)
        x->flush(x);
}

typedef struct ask_row {
    const char *name;
    char letter;
    const char *value; /* NULL: a switch */
    uint32_t verbs;    /* and OPTION_SEVERAL, OPTION_EARLY, OPTION_PROGRAM */
} ask_row;

const ask_row *ask_row_of(ask_option o);
const char *ask_values(ask_option o, ask_verb v); /* what the option takes of that verb; NULL: a switch */
const char *ask_verb_name(ask_verb v);
bool ask_find_verb(const char *name, ask_verb *out);
const char *ask_option_name(ask_option o);
bool ask_takes(const ask *x, ask_option o); /* the verb has that option */
/* The option of x's verb with that name, which ends at `len`; OPT_COUNT: there is none. */
ask_option ask_find(const ask *x, const char *name, size_t len);
/* Adds a value, "" for a switch; it is not copied. An option that counts once is warned of when it is given again. */
void ask_add(ask *x, ask_option o, const char *value);
/* Says that the verb has no such option, and what may have been meant; returns false. */
bool ask_unknown(const ask *x, const char *given);

bool ask_has(const ask *x, ask_option o);
const char *ask_get(const ask *x, ask_option o, const char *otherwise); /* the last one given */
bool ask_number(const ask *x, ask_option o, long least, long most, long otherwise, long *out);
bool ask_workers(const ask *x, long *out); /* -1: not said */
bool ask_real(const ask *x, ask_option o, double otherwise, double *out);
/* The place of an option's value in a list such as "c|graph|tir" (NULL: the table has it); -1 after an error. */
int ask_choice(const ask *x, ask_option o, const char *list, const char *otherwise);
const char *ask_or(const ask *x, const char *list); /* "c|graph|tir" as "c, graph or tir" */
/* Values of an option that have a line of help each, in order; NULL behind the last, or where it has none. */
const char *ask_word_at(ask_option o, uint32_t i, const char **out_brief);
/* The first of the options given, from this one on, that steers the compile alone; OPT_COUNT: none. */
ask_option ask_find_early(const ask *x, ask_option from);
/* ask_compile.c: the options that steer a compile; `native`: the default target is this machine. */
bool ask_compile_options(const ask *x, bool native, compile_options *out);
/* Whether what steers passes has some to steer at this level; -O 0 compiles the graph as it stands. Named passes run at
 * any level. */
bool ask_check_level(const ask *x, int level);
bool ask_usage_error(const ask *x, const char *hint, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The value of an option is a file that can be made: no folder, and, but for -o, which makes them, in one that exists;
 * false after a diagnostic. */
bool ask_is_file(const ask *x, ask_option o);
/* Registers what all --load-ops and --load-codegen libraries have into a context. */
bool ask_load_ops(const ask *x, compiler *c);
/* Exactly one argument, or an error that says what is expected. */
const char *ask_model(const ask *x);
#endif
