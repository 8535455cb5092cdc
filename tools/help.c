/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made of the tables: --help and the manual page. */
#include "cli.h"

#include "lathe/lathe.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct {
    const char *name, *args, *help, *examples;
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, args, help, examples},
#include "api/options.def"
};

static const struct {
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs;
    const char *help;
} options[] = {
#define OPTION(id, name, letter, value, verbs, help) {name, letter, value, verbs, help},
#include "api/options.def"
};

static const char exit_text[] =
    "0 done, 1 the input or the comparison is at fault, 2 usage, 3 the environment (no compiler, no space)";

/* Said of an option that counts as often as it is given. */
static const char *several(uint32_t o)
{
    return options[o].verbs & OPTION_SEVERAL ? "; may be given several times" : "";
}

const char *help_verb_args(ask_verb v)
{
    return verbs[v].args;
}

/* --- text for people ---------------------------------------------------------------------------------------------- */

enum { NARROWEST = 40, USUAL = 100, LEFT = 34 };

static int width_of(FILE *to)
{
    struct winsize w;
    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return USUAL;
    return w.ws_col < NARROWEST ? NARROWEST : w.ws_col;
}

/* Words of `text` from column `at` on, in lines that begin at column `indent`. */
static void wrap(FILE *to, const char *text, int at, int indent)
{
    const int width = width_of(to);
    for (bool first = true; *text; first = false) {
        size_t n = strcspn(text, " ");
        bool fits = at + (int)n + !first <= width;
        if (!fits && at > indent) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        fprintf(to, "%s%.*s", first ? "" : " ", (int)n, text);
        at += (int)n + !first;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}

/* A name and what it means, side by side where the terminal has room for both. */
static void put_row(FILE *to, const char *name, const char *text, int left)
{
    int indent = width_of(to) < left + NARROWEST ? 8 : left;
    int at = fprintf(to, "  %s", name);
    if (at + 1 > indent) {
        fputc('\n', to);
        at = 0;
    }
    fprintf(to, "%*s", indent - at, "");
    wrap(to, text, indent, indent);
}

void help_overview(FILE *to)
{
    fprintf(to,
            "lathe %s: a deep-learning compiler from ONNX to C\n\nusage: lathe VERB [options]\n\n"
            "first steps:\n"
            "  lathe inspect model.onnx          what is in a model, and what it takes\n"
            "  lathe run model.onnx              run it here, with random inputs\n"
            "  lathe compile model.onnx -o out   the C package; then: make -C out\n\n"
            "verbs:\n",
            lathe_version());
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        put_row(to, verbs[v].name, verbs[v].help, 14);
    fputs("\n  lathe VERB --help   options and examples\n  lathe --version\n\n", to);
    wrap(to, exit_text, fprintf(to, "exit status: "), 4);
}

static void put_option(FILE *to, uint32_t o)
{
    char left[80], letter[8] = "", text[2000];
    if (options[o].letter)
        snprintf(letter, sizeof letter, "-%c, ", options[o].letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, options[o].name, options[o].value ? " " : "",
             options[o].value ? options[o].value : "");
    snprintf(text, sizeof text, "%s%s", options[o].help, several(o));
    put_row(to, left, text, LEFT);
}

void help_verb(ask_verb v)
{
    printf("lathe %s: ", verbs[v].name);
    wrap(stdout, verbs[v].help, 8 + (int)strlen(verbs[v].name), 4);
    printf("\nusage: lathe %s%s%s [options]\n\nexamples:\n", verbs[v].name, *verbs[v].args ? " " : "", verbs[v].args);
    for (const char *s = verbs[v].examples; *s;) {
        const char *end = strchr(s, '\n');
        printf("  %.*s\n", (int)(end - s), s);
        s = end + 1;
    }
    printf("\noptions:\n");
    for (uint32_t o = 0; o < OPT_COUNT; o++)
        if (options[o].verbs >> v & 1u)
            put_option(stdout, o);
    putchar('\n');
    wrap(stdout, exit_text, printf("exit status: "), 4);
}

/* --- text for programs -------------------------------------------------------------------------------------------- */

/* Text with what troff would take for its own escaped. */
static void troff(const char *s)
{
    for (; *s; s++)
        printf(*s == '-' ? "\\-" : *s == '\\' ? "\\e" : "%c", *s);
}

bool cmd_man(ask *x)
{
    (void)x;
    printf(".TH LATHE 1 \"\" \"lathe %s\" \"User Commands\"\n.SH NAME\nlathe \\- deep\\-learning compiler from ONNX to "
           "C\n",
           lathe_version());
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
            printf("%s\n", several(o));
        }
        printf(".PP\n.nf\n");
        troff(verbs[v].examples);
        printf(".fi\n");
    }
    printf(".SH EXIT STATUS\n%s.\n", exit_text);
    return true;
}
