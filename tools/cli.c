/* SPDX-License-Identifier: Apache-2.0 */
/* The command line by the tables of options.def: --name VALUE, --name=VALUE, -o VALUE, -O3, -- ends the options. */
#include "cli.h"

#include "base/file.h"
#include "base/json_out.h"

#include <string.h>
#include <unistd.h>

/* "-q", "-O2". */
static bool has_letter(const ask *x, uint32_t o, const char *arg)
{
    const ask_row *row = ask_row_of((ask_option)o);
    return arg[0] == '-' && row->letter && row->letter == arg[1] && ask_takes(x, (ask_option)o);
}

static bool take(ask *x, uint32_t o, const char *value)
{
    ask_add(x, (ask_option)o, value);
    return true;
}

/* "-q", "-O2", "--quiet" and "--emit=c" of the verb. */
static bool is_option(const ask *x, const char *arg)
{
    for (uint32_t o = 0; o < OPT_COUNT; o++)
        if (has_letter(x, o, arg))
            return true;
    return strncmp(arg, "--", 2) == 0 && ask_find(x, arg + 2, strcspn(arg + 2, "=")) != OPT_COUNT;
}

/* The value of option o is the next argument: one that is an option was not meant as a value. */
static bool take_next(ask *x, uint32_t o, int argc, char **argv, int *i)
{
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL, *verb = ask_verb_name(x->verb);
    if (next && !is_option(x, next) && strcmp(next, "--") != 0) {
        ++*i;
        return take(x, o, next);
    }
    const char *hint = next ? arena_printf(&x->c->mem, "if '%.100s' is meant as the value: --%s=%.100s", next,
                                           ask_option_name((ask_option)o), next)
                            : arena_printf(&x->c->mem, "see: lathe %s --help", verb);
    return ask_usage_error(x, hint, "%s needs a value: %s %s", argv[*i], argv[*i], ask_row_of((ask_option)o)->value);
}

/* One long option at argv[*i]. */
static bool parse_long(ask *x, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const ask_option o = ask_find(x, name, n);
    if (o == OPT_COUNT)
        return ask_unknown(x, argv[*i]);
    if (ask_row_of(o)->value)
        return name[n] ? take(x, o, name + n + 1) : take_next(x, o, argc, argv, i);
    if (o == OPT_HELP && name[n])
        return take(x, o, name + n + 1); /* --help=TOPIC */
    if (o == OPT_HELP && *i + 1 < argc && argv[*i + 1][0] != '-' && !file_exists(argv[*i + 1]))
        return take(x, o, argv[++*i]); /* --help TOPIC */
    return name[n] ? ask_usage_error(x, NULL, "--%s takes no value", ask_option_name(o)) : take(x, o, "");
}

static bool parse_short(ask *x, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!has_letter(x, o, arg))
            continue;
        if (ask_row_of((ask_option)o)->value)
            return arg[2] ? take(x, o, arg + 2 + (arg[2] == '=')) : take_next(x, o, argc, argv, i);
        return arg[2] ? ask_unknown(x, arg) : take(x, o, "");
    }
    return ask_unknown(x, arg);
}

bool cli_parse(ask *x, int argc, char **argv)
{
    bool literal = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        bool ok = true;
        if (!literal && strcmp(arg, "--") == 0)
            literal = true;
        else if (!literal && strncmp(arg, "--", 2) == 0)
            ok = parse_long(x, argc, argv, &i);
        else if (!literal && arg[0] == '-' && arg[1])
            ok = parse_short(x, argc, argv, &i);
        else
            vec_push(&x->c->mem, &x->args, arg);
        if (!ok)
            return false;
    }
    return true;
}

void cli_say(ask *x)
{
    if (file_put(x->documents ? STDERR_FILENO : STDOUT_FILENO, x->out.data, x->out.len))
        writer_init(&x->out, &x->c->mem);
}

bool cli_put_text(ask *x, const writer *w)
{
    const char *file = ask_get(x, OPT_OUT, "-"), *text = w->data ? w->data : "";
    const bool to_file = strcmp(file, "-") != 0;
    if (to_file && !compiler_write_file(x->c, file, text, w->len))
        return false;
    if (ask_has(x, OPT_JSON)) {
        json_out j = json_out_begin(&x->out, JSON_OUT_LINE);
        json_out_object(&j, NULL);
        json_out_text(&j, to_file ? "file" : "text", to_file ? file : text);
        json_out_end(&j);
    } else if (!to_file) {
        w_str(&x->out, text);
    }
    return true;
}

const char *cli_shown(const ask *x, const char *text)
{
    return text_line(arena_strdup(&x->c->mem, text));
}

