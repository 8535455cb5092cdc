/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: parsed options, and what the verbs share. */
#ifndef LATHE_TOOLS_CLI_H
#define LATHE_TOOLS_CLI_H
#include "driver/pipeline.h"

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
    cli_verb verb;
    cli_strings values[OPT_COUNT]; /* "" for switches; in the order given */
    cli_strings args;
} cli;

/* All verbs return an exit status: 0, or the one of the first diagnostic. */
#define VERB(id, name, args, fn, help, examples) int fn(cli *x);
#include "options.def"

bool cli_parse(cli *x, int argc, char **argv);
bool cli_has(const cli *x, cli_option o);
const char *cli_get(const cli *x, cli_option o, const char *otherwise); /* the last one given */
bool cli_number(const cli *x, cli_option o, long least, long most, long otherwise, long *out);
bool cli_real(const cli *x, cli_option o, double otherwise, double *out);
/* The options that steer a compile; `native`: the default target is this machine. */
bool cli_compile_options(const cli *x, bool native, compile_options *out);
bool cli_usage_error(const cli *x, const char *hint, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Registers the operators of all --load-ops libraries into a context. */
bool cli_load_ops(const cli *x, compiler *c);
/* Exactly one argument, or an error that says what is expected. */
const char *cli_model(const cli *x);

void help_overview(void);
void help_verb(cli_verb v);
const char *help_verb_name(cli_verb v);
const char *help_option_name(cli_option o);
#endif
