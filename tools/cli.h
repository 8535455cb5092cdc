/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: parsed options, and what the verbs share. */
#ifndef LATHE_TOOLS_CLI_H
#define LATHE_TOOLS_CLI_H
#include "driver/pipeline.h"
#include "progress.h"

#include <stdio.h>

#define OPTION_SEVERAL (1u << 31) /* beside the verbs of an option: all that are given count */
#define OPTION_EARLY   (1u << 30) /* it steers the compile: without effect on what is compiled already */
#define LATHE_VERSION "0.1.0"

typedef enum cli_verb {
#define VERB(id, name, args, fn, help, examples) id,
#include "options.def"
    VERB_COUNT
} cli_verb;

typedef enum cli_option {
#define OPTION(id, name, letter, value, verbs, help) id,
#include "options.def"
    OPT_COUNT
} cli_option;

typedef struct cli_strings {
    const char **data;
    uint32_t len, cap;
} cli_strings;

typedef struct cli {
    compiler *c;
    progress *progress; /* NULL: no terminal */
    cli_verb verb;
    cli_strings values[OPT_COUNT]; /* "" for switches; in the order given */
    cli_strings args;
    writer out; /* for standard output, when the verb has ended */
} cli;

/* Verbs return false after a diagnostic: the first error's code is the exit status. */
#define VERB(id, name, args, fn, help, examples) bool fn(cli *x);
#include "options.def"

bool cli_parse(cli *x, int argc, char **argv);
bool cli_has(const cli *x, cli_option o);
const char *cli_get(const cli *x, cli_option o, const char *otherwise); /* the last one given */
bool cli_number(const cli *x, cli_option o, long least, long most, long otherwise, long *out);
bool cli_workers(const cli *x, long *out); /* -1: not said */
/* Writes at once what stands in x->out: what takes long says what it knows. Where that fails it stands there still, and
 * the end of the command tells. */
void cli_say(cli *x);
bool cli_real(const cli *x, cli_option o, double otherwise, double *out);
/* The first of the options given, from this one on, that steers the compile alone; OPT_COUNT: none. */
cli_option cli_find_early(const cli *x, cli_option from);
const char *cli_option_name(cli_option o);
/* The options that steer a compile; `native`: the default target is this machine. */
bool cli_compile_options(const cli *x, bool native, compile_options *out);
/* The place of an option's value in a list such as "c|graph|tir" (NULL: the table has it); -1 after an error. */
int cli_choice(const cli *x, cli_option o, const char *list, const char *otherwise);
bool cli_usage_error(const cli *x, const char *hint, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The value of an option is a file that can be made: no folder, and, but for -o, which makes them, in one that exists;
 * false after a diagnostic. */
bool cli_is_file(const cli *x, cli_option o);
/* Text from a model, made safe to print on a terminal. */
const char *cli_shown(const cli *x, const char *text);
/* Registers what all --load-ops and --load-codegen libraries have into a context. */
bool cli_load_ops(const cli *x, compiler *c);
/* Exactly one argument, or an error that says what is expected. */
const char *cli_model(const cli *x);

void help_overview(FILE *to);
void help_verb(cli_verb v);
const char *help_verb_name(cli_verb v);
const char *help_verb_args(cli_verb v);
const char *help_option_name(cli_option o);
#endif
