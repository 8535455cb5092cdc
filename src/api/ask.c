/* SPDX-License-Identifier: Apache-2.0 */
/* The values of options: found by name in the table, read as numbers, choices and files. */
#include "api/ask.h"

#include "abi/package.h"
#include "base/file.h"
#include "base/nearest.h"
#include "driver/board.h"
#include "driver/plugin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ask_row options[] = {
#define OPTION(id, name, letter, value, verbs, brief, more) {name, letter, value, verbs},
#include "api/options.def"
};

static const char *const verbs[] = {
#define VERB(id, name, args, fn, help, examples) name,
#include "api/options.def"
};

const char *ask_verb_name(ask_verb v)
{
    return verbs[v];
}

bool ask_find_verb(const char *name, ask_verb *out)
{
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        if (strcmp(verbs[v], name) == 0) {
            *out = (ask_verb)v;
            return true;
        }
    return false;
}

ask_option ask_find_early(const ask *x, ask_option from)
{
    uint32_t o = from;
    while (o < OPT_COUNT && !((options[o].verbs & OPTION_EARLY) && ask_has(x, (ask_option)o)))
        o++;
    return (ask_option)o;
}

const ask_row *ask_row_of(ask_option o)
{
    return &options[o];
}

const char *ask_values(ask_option o, ask_verb v)
{
    static const struct {
        ask_option id;
        uint32_t verbs;
        const char *values;
    } narrow[] = {
#define VALUES(id, verbs, values) {id, verbs, values},
#include "api/options.def"
    };
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (narrow[i].id == o && (narrow[i].verbs >> v & 1u))
            return narrow[i].values;
    return options[o].value;
}

const char *ask_option_name(ask_option o)
{
    return options[o].name;
}

bool ask_usage_error(const ask *x, const char *hint, const char *fmt, ...)
{
    va_list args;
    char text[512];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_error(&x->c->diags, DIAG_USAGE, src_loc_none(), "%s", text);
    if (hint)
        diag_hint(&x->c->diags, "%s", hint);
    return false;
}

bool ask_takes(const ask *x, ask_option o)
{
    return (options[o].verbs >> x->verb & 1u) != 0;
}

static bool is_named(uint32_t o, const char *name, size_t len)
{
    return strlen(options[o].name) == len && strncmp(options[o].name, name, len) == 0;
}

ask_option ask_find(const ask *x, const char *name, size_t len)
{
    uint32_t o = 0;
    while (o < OPT_COUNT && !(is_named(o, name, len) && ask_takes(x, (ask_option)o)))
        o++;
    return (ask_option)o;
}

/* "--emit is an option of: lathe compile"; NULL: no verb has it. */
static const char *other_verbs(const ask *x, const char *name, size_t len)
{
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!is_named(o, name, len) || ask_takes(x, (ask_option)o))
            continue;
        writer w;
        writer_init(&w, &x->c->mem);
        w_fmt(&w, "--%s is an option of", options[o].name);
        for (uint32_t v = 0, n = 0; v < VERB_COUNT; v++)
            if (options[o].verbs >> v & 1u)
                w_fmt(&w, "%s lathe %s", n++ ? "," : "", ask_verb_name((ask_verb)v));
        return w.data;
    }
    return NULL;
}

/* What other programs call an option, NULL: nothing that is known. */
static const char *by_other_name(const char *name, size_t len)
{
    static const char *const names[][2] = {{"threads", "workers"}, {"jobs", "workers"}, {"optimize", "opt-level"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][0]) == len && strncmp(names[i][0], name, len) == 0)
            return names[i][1];
    return NULL;
}

bool ask_unknown(const ask *x, const char *given)
{
    const char *verb = ask_verb_name(x->verb), *name = given + strspn(given, "-");
    size_t len = strcspn(name, "=");
    const char *known = by_other_name(name, len);
    if (known) {
        name = known;
        len = strlen(known);
    }
    nearest near = nearest_to(name, len);
    for (uint32_t o = 0; o < OPT_COUNT; o++)
        if (ask_takes(x, (ask_option)o))
            nearest_offer(&near, options[o].name);
    const char *other = other_verbs(x, name, len), *question = nearest_question(&near, "--", &x->c->mem);
    const char *hint = other ? other : arena_printf(&x->c->mem, "%ssee: lathe %s --help", question, verb);
    return ask_usage_error(x, hint, "'lathe %s' has no option '%.200s'", verb, given);
}

/* Of an option that counts once, the last one counts, as scripts expect that append to a line. */
void ask_add(ask *x, ask_option o, const char *value)
{
    bool counts_once = !(options[o].verbs & OPTION_SEVERAL);
    if (counts_once && x->values[o].len > 0 && strcmp(vec_last(&x->values[o]), value) != 0)
        diag_warning(&x->c->diags, DIAG_USAGE, src_loc_none(),
                     "--%s is given twice: '%.100s' is used, '%.100s' is ignored", options[o].name, value,
                     vec_last(&x->values[o]));
    vec_push(&x->c->mem, &x->values[o], value);
}

bool ask_has(const ask *x, ask_option o)
{
    return x->values[o].len > 0;
}
const char *ask_get(const ask *x, ask_option o, const char *otherwise)
{
    return ask_has(x, o) ? vec_last(&x->values[o]) : otherwise;
}

bool ask_number(const ask *x, ask_option o, long least, long most, long otherwise, long *out)
{
    const char *s = ask_get(x, o, NULL);
    char *end;
    *out = otherwise;
    if (!s)
        return true;
    errno = 0;
    *out = strtol(s, &end, 10);
    if (errno == 0 && end != s && *end == '\0' && *out >= least && *out <= most)
        return true;
    return ask_usage_error(x, NULL, "--%s: '%.100s' is not a number from %ld to %ld", options[o].name, s, least, most);
}

_Static_assert(PACKAGE_MAX_WORKERS == 127, "options.def says how many");

bool ask_workers(const ask *x, long *out)
{
    return ask_number(x, OPT_WORKERS, 0, PACKAGE_MAX_WORKERS, -1, out);
}

bool ask_real(const ask *x, ask_option o, double otherwise, double *out)
{
    const char *s = ask_get(x, o, NULL);
    char *end;
    *out = otherwise;
    if (!s)
        return true;
    *out = strtod(s, &end);
    return (end != s && *end == '\0' && *out >= 0) ||
           ask_usage_error(x, NULL, "--%s: '%.100s' is not a number", options[o].name, s);
}

const char *ask_model(const ask *x)
{
    const char *verb = ask_verb_name(x->verb);
    if (x->args.len == 1)
        return x->args.data[0];
    const char *hint = arena_printf(&x->c->mem, "see: lathe %s --help", verb);
    if (x->args.len == 0)
        ask_usage_error(x, hint, "'lathe %s' needs a file to work on", verb);
    else if (board_find(x->args.data[1]) || target_lookup(x->c, x->args.data[1]))
        ask_usage_error(x, arena_printf(&x->c->mem, "for that target: --target %s", x->args.data[1]),
                        "'lathe %s' takes one file; '%s' is one too many", verb, x->args.data[1]);
    else
        ask_usage_error(x, hint, "'lathe %s' takes one file; '%.200s' is one too many", verb, x->args.data[1]);
    return NULL;
}

const char *ask_or(const ask *x, const char *list)
{
    writer w;
    writer_init(&w, &x->c->mem);
    for (const char *s = list; *s; s += s[0] == '|') {
        size_t n = strcspn(s, "|");
        w_fmt(&w, "%s%.*s", s == list ? "" : s[n] && s[n + 1] ? ", " : " or ", (int)n, s);
        s += n;
    }
    return w.data;
}

/* What another option calls it. */
static const char *meant(ask_option o, const char *value)
{
    static const struct {
        ask_option option;
        const char *said, *meant;
    } names[] = {{OPT_REQUANT, "tflm", "tflite"}, {OPT_AGAINST, "tflite", "tflm"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].option == o && strcmp(names[i].said, value) == 0)
            return names[i].meant;
    return value;
}

int ask_choice(const ask *x, ask_option o, const char *list, const char *otherwise)
{
    const char *value = ask_get(x, o, otherwise);
    list = list ? list : options[o].value;
    int i = 0;
    for (const char *s = list; *s; i++) {
        size_t n = strcspn(s, "|");
        if (strlen(value) == n && strncmp(s, value, n) == 0)
            return i;
        s += n + (s[n] == '|');
    }
    const char *question = nearest_in(meant(o, value), list, &x->c->mem);
    ask_usage_error(x, arena_printf(&x->c->mem, "%sit takes %s", question, ask_or(x, list)),
                    "--%s: '%.100s' is unknown", options[o].name, value);
    return -1;
}

const char *ask_word_at(ask_option o, uint32_t i, const char **out_brief)
{
    const package_port *p = o == OPT_PORT ? port_at(i) : NULL;
    const ecosystem *e = o == OPT_AS ? ecosystem_at(i) : NULL;
    *out_brief = p ? p->brief : e ? e->brief : NULL;
    return p ? p->name : e ? e->name : NULL;
}

bool ask_is_file(const ask *x, ask_option o)
{
    const char *file = ask_get(x, o, "-"), *folder = path_dir(&x->c->mem, file);
    if (strcmp(file, "-") == 0)
        return true;
    if (file_is_dir(file))
        return ask_usage_error(
            x, arena_printf(&x->c->mem, "name a file, for example %s", path_join(&x->c->mem, file, "FILE")),
            "--%s: '%.200s' is a folder, and has to be a file", options[o].name, file);
    return (o == OPT_OUT && x->verb != VERB_QUANTIZE) || file_is_dir(folder) ||
           ask_usage_error(x, arena_printf(&x->c->mem, "mkdir -p %s", folder), "--%s: there is no folder '%.200s'",
                           options[o].name, folder);
}

bool ask_load_ops(const ask *x, compiler *c)
{
    for (uint32_t i = 0; i < x->values[OPT_LOAD_OPS].len; i++)
        if (!plugin_load_ops(c, x->values[OPT_LOAD_OPS].data[i]))
            return false;
    for (uint32_t i = 0; i < x->values[OPT_LOAD_CODEGEN].len; i++)
        if (!plugin_load_codegen(c, x->values[OPT_LOAD_CODEGEN].data[i]))
            return false;
    return true;
}
