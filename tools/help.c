/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made of the tables: --help, the manual page, shell completion. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *args, *help, *examples;
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, args, help, examples},
#include "options.def"
};

static const struct {
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs;
    const char *help;
} options[] = {
#define OPTION(id, name, letter, value, verbs, help) {name, letter, value, verbs, help},
#include "options.def"
};

static const char exit_text[] =
    "0 done, 1 the input or the comparison is at fault, 2 usage, 3 the environment (no compiler, no space)";

const char *help_verb_name(cli_verb v)
{
    return verbs[v].name;
}

const char *help_option_name(cli_option o)
{
    return options[o].name;
}

void help_overview(void)
{
    printf("lathe %s: a deep-learning compiler from ONNX to C\n\nusage: lathe VERB [options]\n\n", LATHE_VERSION);
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        printf("  %-11s %s\n", verbs[v].name, verbs[v].help);
    printf("\n  lathe VERB --help   options and examples\n  lathe --version\n\nexit status: %s\n", exit_text);
}

void help_verb(cli_verb v)
{
    printf("lathe %s: %s\n\nusage: lathe %s %s [options]\n\n", verbs[v].name, verbs[v].help, verbs[v].name,
           verbs[v].args);
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!(options[o].verbs >> v & 1u))
            continue;
        char left[80], letter[8] = "";
        if (options[o].letter)
            snprintf(letter, sizeof letter, "-%c, ", options[o].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, options[o].name, options[o].value ? " " : "",
                 options[o].value ? options[o].value : "");
        printf("  %-32s %s\n", left, options[o].help);
    }
    printf("\nexamples:\n");
    for (const char *s = verbs[v].examples; *s;) {
        const char *end = strchr(s, '\n');
        printf("  %.*s\n", (int)(end - s), s);
        s = end + 1;
    }
    printf("\nexit status: %s\n", exit_text);
}

int cmd_completion(cli *x)
{
    const char *shell = x->args.len == 1 ? x->args.data[0] : "";
    if (strcmp(shell, "bash") != 0) {
        cli_usage_error(x, "lathe completion bash > /etc/bash_completion.d/lathe",
                        "completion is there for bash, not for '%.100s'", shell);
        return 2;
    }
    printf("# bash completion for lathe\n_lathe()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} "
           "words=\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        printf("%s ", verbs[v].name);
    printf("--help --version\"\n    else\n        case $verb in\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("        %s) words=\"", verbs[v].name);
        for (uint32_t o = 0; o < OPT_COUNT; o++)
            if (options[o].verbs >> v & 1u)
                printf("--%s ", options[o].name);
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _lathe "
           "lathe\n");
    return 0;
}

/* Text with what troff would take for its own escaped. */
static void troff(const char *s)
{
    for (; *s; s++)
        printf(*s == '-' ? "\\-" : *s == '\\' ? "\\e" : "%c", *s);
}

int cmd_man(cli *x)
{
    (void)x;
    printf(".TH LATHE 1 \"\" \"lathe %s\" \"User Commands\"\n.SH NAME\nlathe \\- deep\\-learning compiler from ONNX to "
           "C\n",
           LATHE_VERSION);
    printf(".SH SYNOPSIS\n.B lathe\n.I VERB\n[options]\n.SH VERBS\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf(".SS \"lathe %s %s\"\n", verbs[v].name, verbs[v].args);
        troff(verbs[v].help);
        printf(".\n");
        for (uint32_t o = 0; o < OPT_COUNT; o++) {
            if (!(options[o].verbs >> v & 1u))
                continue;
            printf(".TP\n.B ");
            if (options[o].letter)
                printf("\\-%c, ", options[o].letter);
            printf("\\-\\-");
            troff(options[o].name);
            printf(" ");
            troff(options[o].value ? options[o].value : "");
            printf("\n");
            troff(options[o].help);
            printf("\n");
        }
        printf(".PP\n.nf\n");
        troff(verbs[v].examples);
        printf(".fi\n");
    }
    printf(".SH EXIT STATUS\n%s.\n", exit_text);
    return 0;
}
