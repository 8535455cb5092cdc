/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what it asks for, as the verbs get it, and what they share to print. */
#ifndef LATHE_TOOLS_CLI_H
#define LATHE_TOOLS_CLI_H
#include "api/ask.h"
#include "base/nearest.h"
#include "progress.h"

#include <stdio.h>

/* Verbs return false after a diagnostic: the first error's code is the exit status. */
#define VERB(id, name, args, fn, help, examples) bool fn(ask *x);
#include "api/options.def"

bool cli_parse(ask *x, int argc, char **argv);
/* Writes at once what stands in x->out: what takes long says what it knows; with --json, on standard error. Where that
 * fails it stands there still, and the end of the command tells. */
void cli_say(ask *x);
/* Text that the verb has made, into the file of -o or to standard output; with --json it is the result. */
bool cli_put_text(ask *x, const writer *w);
/* Text from a model, made safe to print on a terminal. */
const char *cli_shown(const ask *x, const char *text);

void help_overview(FILE *to, const char *program); /* program: its path, or NULL */
void help_verb(ask_verb v, const char *topic); /* NULL: what most users need; "all": everything */
bool help_has_topic(ask_verb v, const char *name);
void help_offer_topics(ask_verb v, nearest *near);
const char *help_verb_args(ask_verb v);
#endif
