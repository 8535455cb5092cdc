/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made of the tables: --help and the manual page. */
#include "cli.h"

#include "lathe/lathe.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct {
    const char *name, *args, *help, *examples;
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, args, help, examples},
#include "api/options.def"
};

/* A topic, or an option of the topic before it. */
typedef struct help_row {
    const char *topic, *about; /* NULL: an option */
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs;
    const char *brief, *more;
    ask_option id;
} help_row;

static const help_row rows[] = {
#define TOPIC(name, about, verbs) {name, about, NULL, 0, NULL, verbs, NULL, NULL, OPT_COUNT},
#define OPTION(id, name, letter, value, verbs, brief, more) {NULL, NULL, name, letter, value, verbs, brief, more, id},
#include "api/options.def"
};
static const help_row *const rows_end = rows + sizeof rows / sizeof *rows;

static const char exit_text[] =
    "0 done, 1 bad input, or outputs differ, 2 usage, 3 something is missing on this machine (compiler, disk space)";

/* A verb with at most so many options describes all of them at once. */
enum { FEW_OPTIONS = 16 };

static bool row_takes(const help_row *r, ask_verb v)
{
    return (r->verbs >> v & 1u) != 0;
}

/* Where the options of a topic end. */
static const help_row *topic_end(const help_row *topic)
{
    const help_row *r = topic + 1;
    while (r < rows_end && !r->topic)
        r++;
    return r;
}

static uint32_t count_options(const help_row *from, const help_row *to, ask_verb v)
{
    uint32_t n = 0;
    for (const help_row *r = from; r < to; r++)
        n += !r->topic && row_takes(r, v);
    return n;
}

const char *help_verb_args(ask_verb v)
{
    return verbs[v].args;
}

/* --- text for people ---------------------------------------------------------------------------------------------- */

enum { NARROWEST = 40, USUAL = 100, LEFT = 34, TOPICS = 14 };

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

/* What other programs call, and people hardly ever. */
static bool is_for_tools(uint32_t verb)
{
    return verb == VERB_MEASURE || verb == VERB_COMPLETION || verb == VERB_MAN;
}

/* Where the pages are that messages name: beside an installed program, in the source tree beside a built one, at the
 * top of a Python environment. */
static void put_pages(FILE *to, const char *program)
{
    static const char *const places[] = {"../share/doc/lathe", "..", "../../../../share/doc/lathe"};
    const char *slash = program ? strrchr(program, '/') : NULL;
    char folder[PATH_MAX + 64], *real = NULL;
    for (size_t i = 0; slash && !real && i < sizeof places / sizeof *places; i++) {
        snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - program), program, places[i]);
        real = realpath(folder, NULL);
        snprintf(folder, sizeof folder, "%s/docs/index.md", real ? real : "");
        if (real && access(folder, R_OK) != 0) {
            free(real);
            real = NULL;
        }
    }
    if (real)
        fprintf(to, "pages that are named docs/... are in %s\n", real);
    free(real);
}

void help_overview(FILE *to, const char *program)
{
    fprintf(to,
            "lathe %s: compiles neural networks (ONNX, TensorFlow Lite) to C\n\nusage: lathe VERB [options]\n\n"
            "first steps:\n"
            "  lathe inspect model.onnx          what is in a model, and what it takes\n"
            "  lathe run model.onnx              run it here, with random inputs\n"
            "  lathe compile model.onnx -o out   the C package; then: make -C out\n\n"
            "verbs:\n",
            lathe_version());
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        if (!is_for_tools(v))
            put_row(to, verbs[v].name, verbs[v].help, 14);
    fputs("\nfor tools:\n", to);
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        if (is_for_tools(v))
            put_row(to, verbs[v].name, verbs[v].help, 14);
    fputs("\n  lathe VERB --help   options and examples\n  lathe --version\n\n", to);
    wrap(to, exit_text, fprintf(to, "exit status: "), 4);
    put_pages(to, program);
}

/* What is said of an option: in one line, or all. */
static void option_text(const help_row *r, bool all, char *text, size_t size)
{
    const char *again = r->verbs & OPTION_SEVERAL ? "; may be given several times" : "";
    const bool more = all && *r->more;
    snprintf(text, size, "%s%s%s%s", r->brief, again, more ? ". " : "", more ? r->more : "");
}

/* What values mean that have a line of help each: all lines, or the values alone behind `text`. */
static void put_words(FILE *to, const help_row *r, bool all, char *text, size_t size)
{
    const int indent = width_of(to) < LEFT + NARROWEST ? 8 : LEFT;
    const char *about, *word;
    for (uint32_t i = 0; (word = ask_word_at(r->id, i, &about)); i++) {
        const size_t at = all ? 0 : strlen(text);
        if (!all) {
            snprintf(text + at, size - at, "%s%s", i ? ", " : ": ", word);
            continue;
        }
        snprintf(text, size, "%s: %s", word, about);
        fprintf(to, "%*s", indent, "");
        wrap(to, text, indent, indent + 4);
    }
}

static void put_option(FILE *to, const help_row *r, ask_verb v, bool all)
{
    char left[80], letter[8] = "", text[2000];
    const char *about, *value = ask_word_at(r->id, 0, &about) ? "NAME" : ask_values(r->id, v);
    if (r->letter)
        snprintf(letter, sizeof letter, "-%c, ", r->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, r->name, value ? " " : "", value ? value : "");
    option_text(r, all, text, sizeof text);
    if (!all)
        put_words(to, r, false, text, sizeof text);
    put_row(to, left, text, LEFT);
    if (all)
        put_words(to, r, true, text, sizeof text);
}

static void put_topic(FILE *to, const help_row *topic, ask_verb v, bool all)
{
    if (topic == rows)
        fputs("\noptions:\n", to);
    else
        wrap(to, topic->about, fprintf(to, "\n%s: ", topic->topic) - 1, 4);
    for (const help_row *r = topic + 1; r < topic_end(topic); r++)
        if (row_takes(r, v))
            put_option(to, r, v, all);
}

/* "  memory        --ram, --minimize, ..." */
static void put_names(FILE *to, const help_row *topic, ask_verb v)
{
    char names[600] = "";
    size_t at = 0;
    for (const help_row *r = topic + 1; r < topic_end(topic); r++)
        if (row_takes(r, v) && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s--%s", at ? ", " : "", r->name);
    put_row(to, topic->topic, names, TOPICS);
}

static void put_more(FILE *to, const char *verb)
{
    char text[200];
    snprintf(text, sizeof text, "more options, by topic (see 'lathe %s --help TOPIC', or '--help all'):",
             verb);
    fputc('\n', to);
    wrap(to, text, 0, 0);
}

/* Options by topic: those that most users of the verb need with a line each, the others by their names. */
static void put_options(FILE *to, ask_verb v)
{
    const bool few = count_options(rows, rows_end, v) <= FEW_OPTIONS;
    bool others = false;
    for (int named = 0; named < 2; named++)
        for (const help_row *t = rows; t < rows_end; t = topic_end(t)) {
            const bool here = few || row_takes(t, v);
            if (count_options(t, topic_end(t), v) == 0 || here == (named == 1))
                continue;
            if (named && !others)
                put_more(to, verbs[v].name);
            others |= named;
            if (named)
                put_names(to, t, v);
            else
                put_topic(to, t, v, false);
        }
}

/* The topic of the verb with that name; NULL: it has none. */
static const help_row *find_topic(ask_verb v, const char *name)
{
    for (const help_row *t = rows; t < rows_end; t = topic_end(t))
        if (strcmp(t->topic, name) == 0 && count_options(t, topic_end(t), v) > 0)
            return t;
    return NULL;
}

bool help_has_topic(ask_verb v, const char *name)
{
    return strcmp(name, "all") == 0 || find_topic(v, name);
}

void help_offer_topics(ask_verb v, nearest *near)
{
    nearest_offer(near, "all");
    for (const help_row *t = rows; t < rows_end; t = topic_end(t))
        if (count_options(t, topic_end(t), v) > 0)
            nearest_offer(near, t->topic);
}

void help_verb(ask_verb v, const char *topic)
{
    printf("lathe %s: ", verbs[v].name);
    wrap(stdout, verbs[v].help, 8 + (int)strlen(verbs[v].name), 4);
    if (topic && strcmp(topic, "all") != 0) {
        put_topic(stdout, find_topic(v, topic), v, true);
        return;
    }
    printf("\nusage: lathe %s%s%s [options]\n\nexamples:\n", verbs[v].name, *verbs[v].args ? " " : "", verbs[v].args);
    for (const char *s = verbs[v].examples; *s;) {
        const char *end = strchr(s, '\n');
        printf("  %.*s\n", (int)(end - s), s);
        s = end + 1;
    }
    if (!topic)
        put_options(stdout, v);
    for (const help_row *t = rows; topic && t < rows_end; t = topic_end(t))
        if (count_options(t, topic_end(t), v) > 0)
            put_topic(stdout, t, v, true);
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

static void man_option(const help_row *r, ask_verb v)
{
    char text[2000];
    printf(".TP\n.B ");
    if (r->letter)
        printf("\\-%c, ", r->letter);
    printf("\\-\\-");
    troff(r->name);
    printf(" ");
    const char *value = ask_values(r->id, v);
    troff(value ? value : "");
    printf("\n");
    option_text(r, true, text, sizeof text);
    troff(text);
    const char *about, *word;
    for (uint32_t i = 0; (word = ask_word_at(r->id, i, &about)); i++) {
        printf("\n.br\n");
        troff(word);
        printf(": ");
        troff(about);
    }
    printf("\n");
}

bool cmd_man(ask *x)
{
    (void)x;
    printf(".TH LATHE 1 \"\" \"lathe %s\" \"User Commands\"\n.SH NAME\nlathe \\- compiles neural networks to "
           "C\n",
           lathe_version());
    printf(".SH SYNOPSIS\n.B lathe\n.I VERB\n[options]\n.SH VERBS\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf(".SS \"lathe %s %s\"\n", verbs[v].name, verbs[v].args);
        troff(verbs[v].help);
        printf(".\n");
        for (const help_row *r = rows; r < rows_end; r++)
            if (!r->topic && row_takes(r, (ask_verb)v))
                man_option(r, (ask_verb)v);
        printf(".PP\n.nf\n");
        troff(verbs[v].examples);
        printf(".fi\n");
    }
    printf(".SH EXIT STATUS\n%s.\n", exit_text);
    return true;
}
