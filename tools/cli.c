/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing by the tables of options.def: --name VALUE, --name=VALUE, -o VALUE, -O3, -- ends the options. */
#include "cli.h"

#include "driver/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct option_row {
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs;
} option_row;

static const option_row options[] = {
#define OPTION(id, name, letter, value, verbs, help) {name, letter, value, verbs},
#include "options.def"
};

bool cli_usage_error(const cli *x, const char *hint, const char *fmt, ...)
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

/* The option closest in spelling: most letters in common at the beginning. */
static const char *nearest(const cli *x, const char *name)
{
    const char *best = NULL;
    size_t most = 1;
    for (uint32_t i = 0; i < OPT_COUNT; i++) {
        size_t n = 0;
        while (name[n] && name[n] == options[i].name[n])
            n++;
        if ((options[i].verbs >> x->verb & 1u) && n > most) {
            most = n;
            best = options[i].name;
        }
    }
    return best;
}

static bool unknown(const cli *x, const char *arg)
{
    const char *verb = help_verb_name(x->verb), *near = strncmp(arg, "--", 2) == 0 ? nearest(x, arg + 2) : NULL;
    const char *hint = near ? arena_printf(&x->c->mem, "did you mean --%s? see: lathe %s --help", near, verb)
                            : arena_printf(&x->c->mem, "see: lathe %s --help", verb);
    return cli_usage_error(x, hint, "'lathe %s' has no option '%.200s'", verb, arg);
}

static bool take(cli *x, uint32_t o, const char *value)
{
    vec_push(&x->c->mem, &x->values[o], value);
    return true;
}

/* One long option at argv[*i]. */
static bool parse_long(cli *x, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (strlen(options[o].name) != n || strncmp(options[o].name, name, n) != 0 ||
            !(options[o].verbs >> x->verb & 1u))
            continue;
        if (!options[o].value)
            return equals ? cli_usage_error(x, NULL, "--%s takes no value", options[o].name) : take(x, o, "");
        if (equals)
            return take(x, o, equals + 1);
        if (*i + 1 >= argc)
            return cli_usage_error(x, NULL, "--%s needs a value: --%s %s", options[o].name, options[o].name,
                                   options[o].value);
        return take(x, o, argv[++*i]);
    }
    return unknown(x, argv[*i]);
}

static bool parse_short(cli *x, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (options[o].letter != arg[1] || !(options[o].verbs >> x->verb & 1u))
            continue;
        if (!options[o].value)
            return arg[2] ? unknown(x, arg) : take(x, o, "");
        if (arg[2])
            return take(x, o, arg + 2);
        if (*i + 1 >= argc)
            return cli_usage_error(x, NULL, "-%c needs a value: -%c %s", arg[1], arg[1], options[o].value);
        return take(x, o, argv[++*i]);
    }
    return unknown(x, arg);
}

bool cli_parse(cli *x, int argc, char **argv)
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

bool cli_has(const cli *x, cli_option o)
{
    return x->values[o].len > 0;
}
const char *cli_get(const cli *x, cli_option o, const char *otherwise)
{
    return cli_has(x, o) ? vec_last(&x->values[o]) : otherwise;
}

bool cli_number(const cli *x, cli_option o, long least, long most, long otherwise, long *out)
{
    const char *s = cli_get(x, o, NULL);
    char *end;
    *out = otherwise;
    if (!s)
        return true;
    errno = 0;
    *out = strtol(s, &end, 10);
    if (errno == 0 && end != s && *end == '\0' && *out >= least && *out <= most)
        return true;
    return cli_usage_error(x, NULL, "--%s: '%.100s' is no number from %ld to %ld", options[o].name, s, least, most);
}

bool cli_real(const cli *x, cli_option o, double otherwise, double *out)
{
    const char *s = cli_get(x, o, NULL);
    char *end;
    *out = otherwise;
    if (!s)
        return true;
    *out = strtod(s, &end);
    return (end != s && *end == '\0' && *out >= 0) ||
           cli_usage_error(x, NULL, "--%s: '%.100s' is no number", options[o].name, s);
}

const char *cli_model(const cli *x)
{
    const char *verb = help_verb_name(x->verb);
    if (x->args.len == 1)
        return x->args.data[0];
    const char *hint = arena_printf(&x->c->mem, "see: lathe %s --help", verb);
    if (x->args.len == 0)
        cli_usage_error(x, hint, "'lathe %s' needs a file to work on", verb);
    else
        cli_usage_error(x, hint, "'lathe %s' takes one file; '%.200s' is one too many", verb, x->args.data[1]);
    return NULL;
}

/* --- options of a compile
 * ------------------------------------------------------------------------------------------------ */

static bool read_dim(const char **s, int64_t *out)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**s))
        return false;
    *out = strtoll(*s, &end, 10);
    *s = end;
    return errno == 0;
}

/* "NAME=1x3x224x224"; the name may hold '=' itself. An empty right side is rank 0. */
static bool read_binding(const cli *x, const char *text, const char *option, dim_binding *out)
{
    const char *equals = strrchr(text, '='), *s;
    const char *hint = strcmp(option, "dim") == 0 ? "as in --dim batch=1" : "as in --shape input=1x3x224x224";
    if (!equals || equals == text)
        return cli_usage_error(x, hint, "--%s: '%.200s' has no name and value", option, text);
    *out = (dim_binding){.name = intern_n(x->c->names, text, (size_t)(equals - text))};
    for (s = equals + 1; *s; s += *s == 'x' || *s == ',') {
        if (out->rank == TYPE_MAX_RANK || !read_dim(&s, &out->dims[out->rank++]) || (*s && *s != 'x' && *s != ','))
            return cli_usage_error(x, hint, "--%s: '%.200s' is not understood", option, text);
    }
    if (strcmp(option, "dim") == 0 && out->rank != 1)
        return cli_usage_error(x, hint, "--dim: '%.200s' needs one number", text);
    return true;
}

static bool read_bindings(const cli *x, cli_option o, const dim_binding **out, uint32_t *n)
{
    const cli_strings *v = &x->values[o];
    dim_binding *list = arena_array(&x->c->mem, dim_binding, v->len + 1u);
    for (uint32_t i = 0; i < v->len; i++)
        if (!read_binding(x, v->data[i], options[o].name, &list[i]))
            return false;
    *out = list;
    *n = v->len;
    return true;
}

static bool one_of(const cli *x, cli_option o, const char *value, const char *const *known)
{
    for (uint32_t i = 0; known[i]; i++)
        if (strcmp(known[i], value) == 0)
            return true;
    return cli_usage_error(x, arena_printf(&x->c->mem, "it takes %s", options[o].value), "--%s: '%.100s' is unknown",
                           options[o].name, value);
}

bool cli_compile_options(const cli *x, bool native, compile_options *out)
{
    static const char *const emits[] = {"c", "graph", "tir", NULL}, *const ports[] = {"posix", "freertos", "baremetal",
                                                                                      NULL};
    long level, workers;
    compile_options_init(out);
    out->emit = cli_get(x, OPT_EMIT, "c");
    out->port = cli_get(x, OPT_PORT, "posix");
    out->module_name = cli_get(x, OPT_MODULE_NAME, "default");
    const char *target_name = cli_get(x, OPT_TARGET, NULL);
    bool small = strcmp(out->port, "posix") != 0;
    out->target = target_name ? target_lookup(x->c, target_name)
                  : small     ? target_find("cortex-m")
                  : native    ? target_find("native")
                              : target_default();
    if (!out->target)
        return cli_usage_error(x, arena_printf(&x->c->mem, "there are %s", target_names()), "unknown target '%.100s'",
                               target_name);
    if (!one_of(x, OPT_EMIT, out->emit, emits) || !one_of(x, OPT_PORT, out->port, ports) ||
        !cli_number(x, OPT_LEVEL, 0, 3, 3, &level) || !cli_number(x, OPT_WORKERS, 0, 127, -1, &workers))
        return false;
    out->opt_level = (int)level;
    out->no_winograd = cli_has(x, OPT_NO_WINOGRAD);
    out->workers = workers < 0 ? 0 : workers == 0 ? 1 : (uint32_t)workers;
    out->verify = true;
    return read_bindings(x, OPT_SHAPE, &out->shapes, &out->n_shapes) &&
           read_bindings(x, OPT_DIM, &out->dims, &out->n_dims);
}

bool cli_load_ops(const cli *x, compiler *c)
{
    for (uint32_t i = 0; i < x->values[OPT_LOAD_OPS].len; i++)
        if (!plugin_load_ops(c, x->values[OPT_LOAD_OPS].data[i]))
            return false;
    return true;
}
