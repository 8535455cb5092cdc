/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the verb, parses its options, runs it, prints the diagnostics, returns their exit status. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(cli *x);
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, fn},
#include "options.def"
};

static int find_verb(const char *name)
{
    for (int v = 0; v < VERB_COUNT; v++)
        if (strcmp(verbs[v].name, name) == 0)
            return v;
    return -1;
}

static int run_verb(cli *x, int argc, char **argv)
{
    if (!cli_parse(x, argc, argv))
        return 2;
    if (cli_has(x, OPT_HELP)) {
        help_verb(x->verb);
        return 0;
    }
    if (!cli_load_ops(x, x->c))
        return diags_exit_status(&x->c->diags);
    return verbs[x->verb].run(x);
}

static int finish(compiler *c, int status)
{
    char *text = diags_print(&c->diags, &c->mem);
    if (text && *text)
        fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "error: standard output cannot be written\n");
        status = 3;
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "help") == 0 && find_verb(argv[2]) >= 0) {
        help_verb((cli_verb)find_verb(argv[2]));
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        help_overview();
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("lathe %s\n", LATHE_VERSION);
        return 0;
    }
    int verb = find_verb(argv[1]);
    if (verb < 0) {
        fprintf(stderr, "error: there is no verb '%s'\n  hint: see: lathe --help\n", argv[1]);
        return 2;
    }
    compiler c;
    compiler_setup(&c);
    cli x = {.c = &c, .verb = (cli_verb)verb};
    int status = finish(&c, run_verb(&x, argc - 2, argv + 2));
    compiler_free(&c);
    return status;
}
