/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing by the tables of options.def: --name VALUE, --name=VALUE, -o VALUE, -O3, -- ends the options. */
#include "cli.h"

#include "abi/package.h"
#include "base/file.h"
#include "base/nearest.h"
#include "type/vta_text.h"
#include "codegen/c/placement.h"
#include "driver/board.h"
#include "driver/plugin.h"
#include "graph/pass/offload.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct option_row {
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs; /* and OPTION_SEVERAL, OPTION_EARLY */
} option_row;

static const option_row options[] = {
#define OPTION(id, name, letter, value, verbs, help) {name, letter, value, verbs},
#include "options.def"
};

cli_option cli_find_early(const cli *x, cli_option from)
{
    uint32_t o = from;
    while (o < OPT_COUNT && !((options[o].verbs & OPTION_EARLY) && cli_has(x, (cli_option)o)))
        o++;
    return (cli_option)o;
}

const char *cli_option_name(cli_option o)
{
    return options[o].name;
}

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

static bool has_option(const cli *x, uint32_t o)
{
    return (options[o].verbs >> x->verb & 1u) != 0;
}

static bool is_named(uint32_t o, const char *name, size_t len)
{
    return strlen(options[o].name) == len && strncmp(options[o].name, name, len) == 0;
}

/* "--emit is an option of: lathe compile"; NULL: no verb has it. */
static const char *other_verbs(const cli *x, const char *name, size_t len)
{
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!is_named(o, name, len) || has_option(x, o))
            continue;
        writer w;
        writer_init(&w, &x->c->mem);
        w_fmt(&w, "--%s is an option of", options[o].name);
        for (uint32_t v = 0, n = 0; v < VERB_COUNT; v++)
            if (options[o].verbs >> v & 1u)
                w_fmt(&w, "%s lathe %s", n++ ? "," : "", help_verb_name((cli_verb)v));
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

static bool unknown(const cli *x, const char *arg)
{
    const char *verb = help_verb_name(x->verb), *name = arg + strspn(arg, "-");
    size_t len = strcspn(name, "=");
    const char *known = by_other_name(name, len);
    if (known) {
        name = known;
        len = strlen(known);
    }
    nearest near = nearest_to(name, len);
    for (uint32_t o = 0; o < OPT_COUNT; o++)
        if (has_option(x, o))
            nearest_offer(&near, options[o].name);
    const char *other = other_verbs(x, name, len), *question = nearest_question(&near, "--", &x->c->mem);
    const char *hint = other ? other : arena_printf(&x->c->mem, "%ssee: lathe %s --help", question, verb);
    return cli_usage_error(x, hint, "'lathe %s' has no option '%.200s'", verb, arg);
}

/* Of an option that counts once, the last one counts, as scripts expect that append to a line. */
static bool take(cli *x, uint32_t o, const char *value)
{
    bool counts_once = !(options[o].verbs & OPTION_SEVERAL);
    if (counts_once && x->values[o].len > 0 && strcmp(vec_last(&x->values[o]), value) != 0)
        diag_warning(&x->c->diags, DIAG_USAGE, src_loc_none(),
                     "--%s is given again: '%.100s' counts, '%.100s' does not", options[o].name, value,
                     vec_last(&x->values[o]));
    vec_push(&x->c->mem, &x->values[o], value);
    return true;
}

/* "-q", "-O2", "--quiet" and "--emit=c" of the verb. */
static bool is_option(const cli *x, const char *arg)
{
    for (uint32_t o = 0; o < OPT_COUNT; o++)
        if (has_option(x, o) && ((arg[0] == '-' && options[o].letter && arg[1] == options[o].letter) ||
                                 (strncmp(arg, "--", 2) == 0 && is_named(o, arg + 2, strcspn(arg + 2, "=")))))
            return true;
    return false;
}

/* The value of option o is the next argument: one that is an option was not meant as a value. */
static bool take_next(cli *x, uint32_t o, int argc, char **argv, int *i)
{
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL, *verb = help_verb_name(x->verb);
    if (next && !is_option(x, next) && strcmp(next, "--") != 0) {
        ++*i;
        return take(x, o, next);
    }
    const char *hint = next ? arena_printf(&x->c->mem, "if '%.100s' is meant as the value: --%s=%.100s", next,
                                           options[o].name, next)
                            : arena_printf(&x->c->mem, "see: lathe %s --help", verb);
    return cli_usage_error(x, hint, "%s needs a value: %s %s", argv[*i], argv[*i], options[o].value);
}

/* One long option at argv[*i]. */
static bool parse_long(cli *x, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!is_named(o, name, n) || !has_option(x, o))
            continue;
        if (options[o].value)
            return name[n] ? take(x, o, name + n + 1) : take_next(x, o, argc, argv, i);
        return name[n] ? cli_usage_error(x, NULL, "--%s takes no value", options[o].name) : take(x, o, "");
    }
    return unknown(x, argv[*i]);
}

static bool parse_short(cli *x, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    for (uint32_t o = 0; o < OPT_COUNT; o++) {
        if (!options[o].letter || options[o].letter != arg[1] || !has_option(x, o))
            continue;
        if (options[o].value)
            return arg[2] ? take(x, o, arg + 2 + (arg[2] == '=')) : take_next(x, o, argc, argv, i);
        return arg[2] ? unknown(x, arg) : take(x, o, "");
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

_Static_assert(PACKAGE_MAX_WORKERS == 127, "options.def says how many");

bool cli_workers(const cli *x, long *out)
{
    return cli_number(x, OPT_WORKERS, 0, PACKAGE_MAX_WORKERS, -1, out);
}

void cli_say(cli *x)
{
    if (file_put(STDOUT_FILENO, x->out.data, x->out.len))
        writer_init(&x->out, &x->c->mem);
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

/* "NAME=1x3x224x224", "NAME=7", "NAME<=128"; the name may hold '=' itself. An empty right side is rank 0. */
static bool read_binding(const cli *x, const char *text, const char *option, dim_binding *out)
{
    const char *equals = strrchr(text, '='), *s;
    const char *hint = strcmp(option, "dim") == 0     ? "as in --dim batch=1, or --dim 'seq<=128'"
                       : strcmp(option, "bound") == 0 ? "as in --bound boxes=100"
                                                      : "as in --shape input=1x3x224x224";
    if (!equals || equals == text)
        return cli_usage_error(x, hint, "--%s: '%.200s' has no name and value", option, text);
    bool is_bound = equals[-1] == '<';
    *out = (dim_binding){.name = intern_n(x->c->names, text, (size_t)(equals - text) - is_bound), .is_bound = is_bound};
    if (is_bound && strcmp(option, "shape") == 0)
        return cli_usage_error(x, hint, "--shape: '%.200s' is no shape; a bound is given by --dim 'NAME<=N'", text);
    for (s = equals + 1; *s; s += *s == 'x' || *s == ',') {
        if (out->rank == TYPE_MAX_RANK || !read_dim(&s, &out->dims[out->rank++]) || (*s && *s != 'x' && *s != ','))
            return cli_usage_error(x, hint, "--%s: '%.200s' is not understood", option, text);
    }
    if (strcmp(option, "shape") != 0 && out->rank != 1)
        return cli_usage_error(x, hint, "--%s: '%.200s' needs one number", option, text);
    return true;
}

static bool same_binding(const dim_binding *a, const dim_binding *b)
{
    return a->is_bound == b->is_bound && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* What is said of one name twice is the same. */
static bool check_again(const cli *x, cli_option o, const dim_binding *list, uint32_t last)
{
    const cli_strings *v = &x->values[o];
    for (uint32_t i = 0; i < last; i++)
        if (list[i].name == list[last].name && !same_binding(&list[i], &list[last]))
            return cli_usage_error(x, "say it once", "--%s: '%.200s' and '%.200s' contradict each other",
                                   options[o].name, v->data[i], v->data[last]);
    return true;
}

static bool read_bindings(const cli *x, cli_option o, const dim_binding **out, uint32_t *n)
{
    const cli_strings *v = &x->values[o];
    dim_binding *list = arena_array(&x->c->mem, dim_binding, v->len + 1u);
    for (uint32_t i = 0; i < v->len; i++)
        if (!read_binding(x, v->data[i], options[o].name, &list[i]) || !check_again(x, o, list, i))
            return false;
    *out = list;
    *n = v->len;
    return true;
}

/* --bind NAME=NUMBERS */
static bool read_binds(const cli *x, compile_options *out)
{
    const cli_strings *v = &x->values[OPT_BIND];
    input_binding *list = arena_array(&x->c->mem, input_binding, v->len + 1u);
    for (uint32_t i = 0; i < v->len; i++) {
        const char *equals = strrchr(v->data[i], '=');
        if (!equals || equals == v->data[i] || !equals[1])
            return cli_usage_error(x, "as in --bind sr=16000", "--bind: '%.200s' has no name and value", v->data[i]);
        list[i] = (input_binding){intern_n(x->c->names, v->data[i], (size_t)(equals - v->data[i])), equals + 1};
        for (uint32_t k = 0; k < i; k++)
            if (list[k].name == list[i].name && strcmp(list[k].numbers, list[i].numbers) != 0)
                return cli_usage_error(x, "say it once", "--bind: '%.200s' and '%.200s' contradict each other",
                                       v->data[k], v->data[i]);
    }
    out->binds = list;
    out->n_binds = v->len;
    return true;
}

int cli_choice(const cli *x, cli_option o, const char *list, const char *otherwise)
{
    const char *value = cli_get(x, o, otherwise);
    list = list ? list : options[o].value;
    int i = 0;
    for (const char *s = list; *s; i++) {
        size_t n = strcspn(s, "|");
        if (strlen(value) == n && strncmp(s, value, n) == 0)
            return i;
        s += n + (s[n] == '|');
    }
    writer w;
    writer_init(&w, &x->c->mem);
    for (const char *s = list; *s; s += s[0] == '|') {
        size_t n = strcspn(s, "|");
        w_fmt(&w, "%s%.*s", s == list ? "" : s[n] && s[n + 1] ? ", " : " or ", (int)n, s);
        s += n;
    }
    cli_usage_error(x, arena_printf(&x->c->mem, "%sit takes %s", nearest_in(value, list, &x->c->mem), w.data),
                    "--%s: '%.100s' is unknown", options[o].name, value);
    return -1;
}

/* --widths 64,32 */
static bool read_widths(const cli *x, compile_options *out)
{
    const char *text = cli_get(x, OPT_WIDTHS, NULL);
    for (const char *s = text; s && *s; s += *s == ',') {
        char *end;
        unsigned long bytes = strtoul(s, &end, 10);
        if (end == s || (*end && *end != ',') || bytes > 64 || out->n_widths == COMPILE_MAX_WIDTHS)
            return cli_usage_error(x, "as in --widths 64,32", "--widths: '%.100s' is no list of widths", text);
        out->widths[out->n_widths++] = (uint32_t)bytes;
        s = end;
    }
    return true;
}

/* What is written as it is before chains are made. */
static bool is_before_chains(const char *emit)
{
    return strcmp(emit, "graph") == 0 || strcmp(emit, "prog") == 0 || strcmp(emit, "schedule") == 0;
}

/* --ram and --minimize. */
static bool read_ram(const cli *x, compile_options *out)
{
    const char *text = cli_get(x, OPT_RAM, NULL);
    const int goal = cli_choice(x, OPT_MINIMIZE, NULL, "time");
    char *end = NULL;
    out->least_ram = goal == 1;
    if (goal >= 0 && (text || goal == 1) && is_before_chains(out->emit))
        return cli_usage_error(x, "leave it out, or --emit c or tir",
                               "--%s is for packages, and --emit %s comes before rows are streamed",
                               text ? "ram" : "minimize ram", out->emit);
    if (goal < 0 || !text)
        return goal >= 0;
    const unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const uint64_t unit = n == 0 ? 0 : *end == 'K' || *end == 'k' ? 1024 : *end == 'M' || *end == 'm' ? 1024 * 1024 : 1;
    if (n == 0 || end[unit > 1] || n > UINT32_MAX / unit)
        return cli_usage_error(x, "K is 1024 bytes, M 1024 * 1024", "--ram: '%.100s' is no size, as 4096, 128K or 8M",
                               text);
    out->ram = n * unit;
    return true;
}

/* --offload and what goes with it. */
static bool read_offload(const cli *x, const struct offload **out)
{
    static const cli_option others[] = {OPT_PATTERNS, OPT_OFFLOAD_LEAST, OPT_BIND_CONSTANTS};
    const cli_strings *files = &x->values[OPT_PATTERNS];
    offload_spec s = {.targets = cli_get(x, OPT_OFFLOAD, NULL), .bind_constants = cli_has(x, OPT_BIND_CONSTANTS)};
    offload_text *texts = arena_array(&x->c->mem, offload_text, files->len + 1u);
    long least;
    for (size_t i = 0; i < sizeof others / sizeof *others && !s.targets; i++)
        if (cli_has(x, others[i]))
            return cli_usage_error(x, "as in --offload xnnpack", "--%s: no target is named that takes a part",
                                   options[others[i]].name);
    if (!s.targets)
        return true;
    if (!cli_number(x, OPT_OFFLOAD_LEAST, 0, LONG_MAX, -1, &least))
        return false;
    for (uint32_t i = 0; i < files->len; i++) {
        span bytes;
        if (!compiler_read_file(x->c, files->data[i], &bytes))
            return false;
        texts[i] = (offload_text){files->data[i], (const char *)bytes.data, bytes.len};
    }
    s.least_work = least;
    s.texts = texts;
    s.n_texts = files->len;
    return offload_open(x->c, &s, out);
}

static bool read_memories(const cli *x, compile_options *out)
{
    const char *file = cli_get(x, OPT_MEMORY, NULL);
    placement *p = arena_new(&x->c->mem, placement);
    span bytes;
    if (!file)
        return true;
    if (strcmp(out->emit, "c") != 0)
        return cli_usage_error(x, "leave it out", "--memory is for packages, and --emit %s makes none", out->emit);
    out->memories = p;
    return compiler_read_file(x->c, file, &bytes) &&
           placement_parse(x->c, file, (const char *)bytes.data, bytes.len, p);
}

static bool check_package_options(const cli *x, const compile_options *o)
{
    static const cli_option of_packages[] = {OPT_PORT, OPT_CONSTANTS, OPT_SHARE_KERNELS, OPT_NAMES};
    for (size_t i = 0; i < sizeof of_packages / sizeof *of_packages && strcmp(o->emit, "module") == 0; i++)
        if (cli_has(x, of_packages[i]))
            return cli_usage_error(x, "leave it out, or --emit c", "--%s is for packages, and a module is none",
                                   cli_option_name(of_packages[i]));
    return true;
}

/* --target qemu-m4: the machine of an emulator has a target and a port. */
static bool take_board(const cli *x, const char **target_name, compile_options *out)
{
    const board *b = *target_name ? board_find(*target_name) : NULL;
    if (!b)
        return true;
    if (x->verb == VERB_BENCH)
        return cli_usage_error(x, arena_printf(&x->c->mem, "lathe verify --target %s counts instructions there, where "
                                               "the machine has a counter", b->name),
                               "--target: %s is an emulator's machine, and bench takes the time of this one", b->name);
    if (x->verb != VERB_VERIFY && x->verb != VERB_RUN)
        return cli_usage_error(x, arena_printf(&x->c->mem, "--target %s --port %s makes a package for it", b->target,
                                               b->port),
                               "--target: %s is an emulator's machine, for run and verify", b->name);
    if (cli_has(x, OPT_EMULATOR) || cli_has(x, OPT_INTERPRET))
        return cli_usage_error(x, "leave one of them out", "--target %s has an emulator of its own", b->name);
    if (strcmp(out->emit, "c") != 0)
        return cli_usage_error(x, "leave --emit out", "--target: %s is an emulator's machine, which runs packages, and "
                               "--emit %s makes none", b->name, out->emit);
    out->board = b;
    out->port = b->port;
    *target_name = b->target;
    return true;
}

bool cli_compile_options(const cli *x, bool native, compile_options *out)
{
    long level, workers, effort;
    compile_options_init(out);
    out->verb = help_verb_name(x->verb);
    out->emit = cli_get(x, OPT_EMIT, "c");
    out->port = cli_get(x, OPT_PORT, "posix");
    out->module_name = cli_get(x, OPT_MODULE_NAME, "default");
    const char *target_name = cli_get(x, OPT_TARGET, NULL);
    out->vta = target_name && strcmp(target_name, "vta") == 0;
    target_name = out->vta ? NULL : target_name; /* the host's part is for its usual target */
    if (!take_board(x, &target_name, out) || !check_package_options(x, out))
        return false;
    out->schedule = cli_get(x, OPT_SCHEDULE, NULL);
    bool small = strcmp(out->port, "posix") != 0;
    bool module = strcmp(out->emit, "module") == 0;
    out->target = target_name ? target_lookup(x->c, target_name)
                  : module && !native ? target_find("my_device")
                  : small     ? target_find("cortex-m")
                  : native    ? target_find("native")
                              : target_default();
    if (!out->target) {
        const char *names = target_names(x->c), *parts = target_region_names(x->c);
        if (x->verb == VERB_VERIFY || x->verb == VERB_RUN)
            names = arena_printf(&x->c->mem, "%s; in an emulator %s", names, board_names(x->c));
        const char *all = arena_printf(&x->c->mem, "%s, %s", names, parts);
        return cli_usage_error(
            x, arena_printf(&x->c->mem, "%sit takes %s; for computations vta; --offload takes %s",
                            nearest_in(target_name, all, &x->c->mem), names, parts),
            "--target: '%.100s' is unknown", target_name);
    }
    if (out->target->regions_only)
        return cli_usage_error(x, arena_printf(&x->c->mem, "--offload %s gives it what it can", out->target->name),
                               "--target: %s takes parts of a model, not whole ones", out->target->name);
    if (module && out->target->address_bits == 32)
        return cli_usage_error(x, "--emit c makes a package for it", "--target: %s is a microcontroller, and "
                               "modules are for machines with an operating system", out->target->name);
    if (cli_has(x, OPT_VTA_CONFIG) && !vta_text_parse(x->c, cli_get(x, OPT_VTA_CONFIG, ""), &x->c->vta))
        return false;
    if (cli_has(x, OPT_HOST) && !module)
        return cli_usage_error(x, "add --emit module, or leave it out", "--host is for modules");
    out->host = cli_get(x, OPT_HOST, "x86_64");
    out->with_interpreter = cli_has(x, OPT_WITH_INTERPRETER);
    if (cli_choice(x, OPT_EMIT, NULL, "c") < 0 || cli_choice(x, OPT_PORT, NULL, "posix") < 0 ||
        cli_choice(x, OPT_HOST, NULL, "x86_64") < 0 || cli_choice(x, OPT_REQUANT, NULL, "exact") < 0 ||
        cli_choice(x, OPT_SHARE_KERNELS, NULL, "exact") < 0 ||
        cli_choice(x, OPT_NAMES, NULL, "long") < 0 || !read_widths(x, out) || !read_ram(x, out) ||
        !cli_number(x, OPT_LEVEL, 0, 3, 3, &level) || !cli_number(x, OPT_PLAN_EFFORT, 1, 1000, 1, &effort) ||
        !cli_workers(x, &workers))
        return false;
    if (workers > 1 && strcmp(out->port, "baremetal") == 0)
        return cli_usage_error(x, "leave --workers out, or choose --port freertos or posix",
                               "--workers %ld: the port baremetal has no threads", workers);
    const char *form = cli_get(x, OPT_CONSTANTS, NULL);
    out->constants_form = form ? constants_form_find(form) : CONSTANTS_DEFAULT;
    if (form && out->constants_form == CONSTANTS_DEFAULT)
        return cli_usage_error(x, arena_printf(&x->c->mem, "it takes %s", options[OPT_CONSTANTS].value),
                               "--constants: '%.100s' is unknown", form);
    out->opt_level = (int)level;
    out->plan_effort = (uint32_t)effort;
    out->no_winograd = cli_has(x, OPT_NO_WINOGRAD);
    out->no_split_data = cli_has(x, OPT_NO_SPLIT_DATA);
    out->requant = cli_choice(x, OPT_REQUANT, NULL, "exact");
    out->short_names = cli_choice(x, OPT_NAMES, NULL, "long") == 1;
    out->shares_kernels = cli_has(x, OPT_SHARE_KERNELS);
    out->shares_shapes = cli_choice(x, OPT_SHARE_KERNELS, NULL, "exact") == 1;
    out->input_in_workspace = cli_has(x, OPT_INPUT_IN_WORKSPACE);
    out->quantised_ends = cli_has(x, OPT_QUANTIZED_IO);
    out->integers = cli_has(x, OPT_INTEGERS) || cli_has(x, OPT_REQUANT) || out->quantised_ends;
    bool alone = workers == 0 || (workers < 0 && strcmp(out->port, "baremetal") == 0);
    out->workers = alone ? 1 : workers < 0 ? 0 : (uint32_t)workers;
    out->verify = true;
    out->schedules = x->values[OPT_SCHEDULES].data;
    out->n_schedules = x->values[OPT_SCHEDULES].len;
    return read_memories(x, out) && read_bindings(x, OPT_SHAPE, &out->shapes, &out->n_shapes) &&
           read_bindings(x, OPT_DIM, &out->dims, &out->n_dims) &&
           read_bindings(x, OPT_BOUND, &out->bounds, &out->n_bounds) && read_binds(x, out) &&
           read_offload(x, &out->offload);
}

bool cli_is_file(const cli *x, cli_option o)
{
    const char *file = cli_get(x, o, "-"), *folder = path_dir(&x->c->mem, file);
    if (strcmp(file, "-") == 0)
        return true;
    if (file_is_dir(file))
        return cli_usage_error(
            x, arena_printf(&x->c->mem, "name a file, as in %s", path_join(&x->c->mem, file, "FILE")),
            "--%s: '%.200s' is a folder, and what is written is one file", options[o].name, file);
    return (o == OPT_OUT && x->verb != VERB_QUANTIZE) || file_is_dir(folder) ||
           cli_usage_error(x, arena_printf(&x->c->mem, "mkdir -p %s", folder), "--%s: there is no folder '%.200s'",
                           options[o].name, folder);
}

const char *cli_shown(const cli *x, const char *text)
{
    return text_line(arena_strdup(&x->c->mem, text));
}

bool cli_load_ops(const cli *x, compiler *c)
{
    for (uint32_t i = 0; i < x->values[OPT_LOAD_OPS].len; i++)
        if (!plugin_load_ops(c, x->values[OPT_LOAD_OPS].data[i]))
            return false;
    for (uint32_t i = 0; i < x->values[OPT_LOAD_CODEGEN].len; i++)
        if (!plugin_load_codegen(c, x->values[OPT_LOAD_CODEGEN].data[i]))
            return false;
    return true;
}
