/* SPDX-License-Identifier: Apache-2.0 */
/* The options that steer a compile, read from names and text. */
#include "api/ask.h"

#include "abi/package.h"
#include "base/nearest.h"
#include "codegen/c/placement.h"
#include "driver/board.h"
#include "frontend/frontend.h"
#include "graph/pass/offload.h"
#include "target/vta/vta_text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
static bool read_binding(const ask *x, const char *text, const char *option, dim_binding *out)
{
    const char *equals = strrchr(text, '='), *s;
    const char *hint = strcmp(option, "dim") == 0     ? "for example --dim batch=1, or --dim 'seq<=128'"
                       : strcmp(option, "bound") == 0 ? "for example --bound boxes=100"
                                                      : "for example --shape input=1x3x224x224";
    if (!equals || equals == text)
        return ask_usage_error(x, hint, "--%s: '%.200s' is not NAME=VALUE", option, text);
    bool is_bound = equals[-1] == '<';
    *out = (dim_binding){.name = intern_n(x->c->names, text, (size_t)(equals - text) - is_bound), .is_bound = is_bound};
    if (is_bound && strcmp(option, "shape") == 0)
        return ask_usage_error(x, hint, "--shape: '%.200s' is not a shape; a bound is given by --dim 'NAME<=N'", text);
    if (strcmp(option, "dim") == 0 && !is_bound && strcmp(equals + 1, "none") == 0) { /* an optional without element */
        out->rank = 1;
        out->dims[0] = -1;
        return true;
    }
    for (s = equals + 1; *s; s += *s == 'x' || *s == ',') {
        if (*s == '-')
            return ask_usage_error(x, hint, "--%s: '%.200s': an extent cannot be negative", option, text);
        if (out->rank == TYPE_MAX_RANK || !read_dim(&s, &out->dims[out->rank++]) ||
            (*s && ((*s != 'x' && *s != ',') || s[1] == '\0')))
            return ask_usage_error(x, hint, "--%s: '%.200s' is not understood", option, text);
    }
    if (strcmp(option, "shape") != 0 && out->rank != 1)
        return ask_usage_error(x, hint, "--%s: '%.200s' needs one number", option, text);
    return true;
}

static bool same_binding(const dim_binding *a, const dim_binding *b)
{
    return a->is_bound == b->is_bound && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* What is said of one name twice is the same. */
static bool check_again(const ask *x, ask_option o, const dim_binding *list, uint32_t last)
{
    const ask_strings *v = &x->values[o];
    for (uint32_t i = 0; i < last; i++)
        if (list[i].name == list[last].name && !same_binding(&list[i], &list[last]))
            return ask_usage_error(x, "say it once", "--%s: '%.200s' and '%.200s' contradict each other",
                                   ask_option_name(o), v->data[i], v->data[last]);
    return true;
}

static bool read_bindings(const ask *x, ask_option o, const dim_binding **out, uint32_t *n)
{
    const ask_strings *v = &x->values[o];
    dim_binding *list = arena_array(&x->c->mem, dim_binding, v->len + 1u);
    for (uint32_t i = 0; i < v->len; i++)
        if (!read_binding(x, v->data[i], ask_option_name(o), &list[i]) || !check_again(x, o, list, i))
            return false;
    *out = list;
    *n = v->len;
    return true;
}

/* --bind NAME=NUMBERS */
static bool read_binds(const ask *x, compile_options *out)
{
    const ask_strings *v = &x->values[OPT_BIND];
    input_binding *list = arena_array(&x->c->mem, input_binding, v->len + 1u);
    for (uint32_t i = 0; i < v->len; i++) {
        const char *equals = strrchr(v->data[i], '=');
        if (!equals || equals == v->data[i] || !equals[1])
            return ask_usage_error(x, "for example --bind sr=16000",
                                   "--bind: '%.200s' is not NAME=VALUE", v->data[i]);
        list[i] = (input_binding){intern_n(x->c->names, v->data[i], (size_t)(equals - v->data[i])), equals + 1};
        for (uint32_t k = 0; k < i; k++)
            if (list[k].name == list[i].name && strcmp(list[k].numbers, list[i].numbers) != 0)
                return ask_usage_error(x, "say it once", "--bind: '%.200s' and '%.200s' contradict each other",
                                       v->data[k], v->data[i]);
    }
    out->binds = list;
    out->n_binds = v->len;
    return true;
}

static bool read_signatures(const ask *x, compile_options *out)
{
    const ask_strings *v = &x->values[OPT_SIGNATURE];
    if (v->len > 1 && x->verb != VERB_COMPILE)
        return ask_usage_error(x, "only lathe compile makes a package of several", "--signature: lathe %s takes one",
                               out->verb);
    for (uint32_t i = 0; i < v->len; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(v->data[i], v->data[k]) == 0)
                return ask_usage_error(x, "say it once", "--signature: '%.200s' is given twice", v->data[i]);
    out->signature = v->len > 0 ? v->data[0] : NULL;
    out->signatures = v->data;
    out->n_signatures = v->len;
    return true;
}

static bool read_states(const ask *x, compile_options *out)
{
    const ask_strings *v = &x->values[OPT_STATE];
    for (uint32_t i = 0; i < v->len; i++) {
        const char *equals = strchr(v->data[i], '=');
        if (!equals || equals == v->data[i] || !equals[1])
            return ask_usage_error(x, "for example --state hn=h", "--state: '%.200s' is not OUT=IN",
                                   v->data[i]);
    }
    out->states = v->data;
    out->n_states = v->len;
    return true;
}

/* --widths 64,32 */
static bool read_widths(const ask *x, compile_options *out)
{
    const char *text = ask_get(x, OPT_WIDTHS, NULL);
    for (const char *s = text; s && *s; s += *s == ',') {
        char *end;
        unsigned long bytes = strtoul(s, &end, 10);
        if (end == s || (*end && *end != ',') || bytes > 64 || out->n_widths == COMPILE_MAX_WIDTHS)
            return ask_usage_error(x, "for example --widths 64,32", "--widths: '%.100s' is not a list of widths", text);
        out->widths[out->n_widths++] = (uint32_t)bytes;
        s = end;
    }
    return true;
}

/* --ram and --minimize. */
static bool read_ram(const ask *x, compile_options *out)
{
    const char *text = ask_get(x, OPT_RAM, NULL);
    const int goal = ask_choice(x, OPT_MINIMIZE, NULL, "time");
    char *end = NULL;
    out->least_ram = goal == 1;
    if (goal >= 0 && (text || goal == 1) && out->stop < STOP_LOOPS) /* chains are made behind schedules */
        return ask_usage_error(x, "leave it out, or give --emit c or tir",
                               "--%s needs --emit c or tir, and this is --emit %s",
                               text ? "ram" : "minimize ram", compile_emit_name(out));
    if (goal < 0 || !text)
        return goal >= 0;
    const unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const uint64_t unit = n == 0 ? 0 : *end == 'K' || *end == 'k' ? 1024 : *end == 'M' || *end == 'm' ? 1024 * 1024 : 1;
    if (n == 0 || end[unit > 1] || n > UINT32_MAX / unit)
        return ask_usage_error(x, "K is 1024 bytes, M 1024 * 1024",
                               "--ram: '%.100s' is not a size such as 4096, 128K or 8M",
                               text);
    out->ram = n * unit;
    return true;
}

/* --offload and what goes with it. */
static bool read_offload(const ask *x, const struct offload **out)
{
    static const ask_option others[] = {OPT_PATTERNS, OPT_OFFLOAD_LEAST, OPT_BIND_CONSTANTS};
    const ask_strings *files = &x->values[OPT_PATTERNS];
    offload_spec s = {.targets = ask_get(x, OPT_OFFLOAD, NULL), .bind_constants = ask_has(x, OPT_BIND_CONSTANTS)};
    offload_text *texts = arena_array(&x->c->mem, offload_text, files->len + 1u);
    long least;
    for (size_t i = 0; i < sizeof others / sizeof *others && !s.targets; i++)
        if (ask_has(x, others[i]))
            return ask_usage_error(x, "for example --offload xnnpack", "--%s: name at least one target",
                                   ask_option_name(others[i]));
    if (!s.targets)
        return true;
    if (!ask_number(x, OPT_OFFLOAD_LEAST, 0, LONG_MAX, -1, &least))
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

static bool read_memories(const ask *x, compile_options *out)
{
    const char *file = ask_get(x, OPT_MEMORY, NULL);
    placement *p = arena_new(&x->c->mem, placement);
    span bytes;
    if (!file)
        return true;
    if (!compile_makes(out, BACKEND_C))
        return ask_usage_error(x, "leave it out", "--memory is for packages, and --emit %s makes no "
                                                  "package", compile_emit_name(out));
    out->memories = p;
    return compiler_read_file(x->c, file, &bytes) &&
           placement_parse(x->c, file, (const char *)bytes.data, bytes.len, p);
}

static bool is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = strstr(list, word); s; s = strstr(s + n, word))
        if ((s == list || s[-1] == '|') && (s[n] == '|' || !s[n]))
            return true;
    return false;
}

/* Options that steer some of what --emit names; they would have no effect on the others. */
static bool check_artifact_options(const ask *x, const compile_options *o)
{
    static const struct {
        ask_option option;
        const char *emits, *words;
    } some[] = {
        {OPT_PORT, "c|graph|prog|schedule|tir", "packages"}, /* of text: the port's usual target */
        {OPT_AS, "c", "packages"},
        {OPT_EXAMPLE, "c", "packages"},
        {OPT_CONSTANTS, "c", "packages"},
        {OPT_NAMES, "c", "packages"},
        {OPT_INPUT_IN_WORKSPACE, "c", "packages"},
        {OPT_SHARE_KERNELS, "c|tir", "packages"},
        {OPT_PLAN_EFFORT, "c|module", "packages and modules"},
        {OPT_MODULE_NAME, "c|module", "packages and modules"},
        {OPT_QUIET, "c|module", "packages and modules"},
    };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (ask_has(x, some[i].option) && !is_listed(some[i].emits, compile_emit_name(o)))
            return ask_usage_error(x, "leave it out, or --emit c", "--%s is for %s, and --emit %s makes none",
                                   ask_option_name(some[i].option), some[i].words, compile_emit_name(o));
    return true;
}

/* LiteRT's rounding is chosen while the model is read, not by a pass. */
static bool is_steered(const ask *x, ask_option option)
{
    return ask_has(x, option) && (option != OPT_REQUANT || strcmp(ask_get(x, OPT_REQUANT, ""), "litert") != 0);
}

bool ask_check_level(const ask *x, int level)
{
    static const struct {
        ask_option option;
        int least; /* of the passes that it steers */
    } some[] = {
        {OPT_INTEGERS, 1}, {OPT_REQUANT, 1}, {OPT_QUANTIZED_IO, 1}, {OPT_SHARE_KERNELS, 1}, {OPT_NO_WINOGRAD, 3},
        {OPT_NO_SPLIT_DATA, 3}, {OPT_TREES, 1},
    };
    for (size_t i = 0; i < sizeof some / sizeof *some && !ask_has(x, OPT_PASSES); i++)
        if (level < some[i].least && is_steered(x, some[i].option))
            return ask_usage_error(x, arena_printf(&x->c->mem, "leave it out, or -O %d", some[i].least),
                                   "--%s has no effect at -O %d", ask_option_name(some[i].option), level);
    return true;
}

/* --target qemu-m4: the machine of an emulator has a target and a port. */
static bool take_board(const ask *x, const char **target_name, compile_options *out)
{
    const board *b = *target_name ? board_find(*target_name) : NULL;
    if (!b)
        return true;
    if (x->verb == VERB_BENCH)
        return ask_usage_error(x, arena_printf(&x->c->mem, "lathe verify --target %s measures the model in the "
                                               "emulator", b->name),
                               "--target: %s is a machine in an emulator, and bench measures time on this "
                               "machine", b->name);
    if (x->verb != VERB_VERIFY && x->verb != VERB_RUN)
        return ask_usage_error(x, arena_printf(&x->c->mem, "--target %s --port %s makes a package for it", b->target,
                                               b->port),
                               "--target: %s is a machine in an emulator, only for run and verify", b->name);
    if (ask_has(x, OPT_EMULATOR) || ask_has(x, OPT_INTERPRET))
        return ask_usage_error(x, "use only one of them", "--target %s already has an emulator", b->name);
    if (!compile_makes(out, BACKEND_C))
        return ask_usage_error(x, "leave --emit out", "--target: %s is a machine in an emulator, which runs packages, "
                                                      "and --emit %s makes none", b->name,
                               compile_emit_name(out));
    out->board = b;
    out->port = port_find(b->port);
    *target_name = b->target;
    return true;
}

/* A package for a microcontroller is for a firmware, unless the ecosystem has a port of its own. The other verbs run
 * packages, on this machine. */
static const char *usual_port(const ask *x, const compile_options *out, const ecosystem *e)
{
    const char *name = ask_get(x, OPT_TARGET, NULL);
    const target *t = name && x->verb == VERB_COMPILE && compile_makes(out, BACKEND_C)
                          ? target_lookup(x->c, name) : NULL;
    if (t && t->small && (!e || is_listed(e->ports, "baremetal")))
        return "baremetal";
    return e ? arena_strndup(&x->c->mem, e->ports, strcspn(e->ports, "|")) : port_default()->name;
}

static bool read_port(const ask *x, compile_options *out)
{
    const int as = ask_choice(x, OPT_AS, NULL, ecosystem_at(0)->name);
    const ecosystem *e = as >= 0 && ask_has(x, OPT_AS)   ? ecosystem_at((uint32_t)as)
                         : ask_has(x, OPT_EXAMPLE) ? ecosystem_example()
                                                   : NULL;
    const int choice = as < 0 ? -1 : ask_choice(x, OPT_PORT, NULL, usual_port(x, out, e));
    if (choice < 0)
        return false;
    out->as = e;
    out->port = port_at((uint32_t)choice);
    if (!e || is_listed(e->ports, out->port->name))
        return true;
    if (e == ecosystem_example())
        return ask_usage_error(x, "leave --port out", "--example is for --port %s, and this is %s", e->ports,
                               out->port->name);
    return ask_usage_error(x, "leave --port out", "--port %s does not fit --as %s, which takes %s", out->port->name,
                           e->name, ask_or(x, e->ports));
}

/* Options that an ecosystem's build has no way to follow. */
static bool check_ecosystem(const ask *x, const compile_options *o)
{
    static const ask_option others[] = {OPT_NAMES, OPT_OFFLOAD, OPT_LOAD_CODEGEN};
    const char *name = o->as ? o->as->name : "";
    if (ask_has(x, OPT_AS) && ask_has(x, OPT_EXAMPLE))
        return ask_usage_error(x, "leave one of them out", "--as %s has an example of its own", name);
    if (!o->as || ask_has(x, OPT_EXAMPLE))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ask_has(x, others[i]))
            return ask_usage_error(x, "leave one of them out", "--%s and --as %s cannot be combined",
                                   ask_option_name(others[i]), name);
    if (ask_has(x, OPT_MEMORY) && !o->as->takes_files)
        return ask_usage_error(x, "leave --memory out, or --as cmake", "--memory needs files of constants, and the "
                                                                       "build of %s includes none", name);
    if (o->constants_form == CONSTANTS_BIN || (o->constants_form == CONSTANTS_INCBIN && !o->as->takes_files))
        return ask_usage_error(x, "leave --constants out", "--constants %s and --as %s cannot be combined",
                               constants_form_name(o->constants_form), name);
    return true;
}

/* The machine that an example is for: an emulator's with the target. */
static bool read_example(const ask *x, compile_options *out)
{
    const board *b = board_of_example(out->target->name);
    if (!ask_has(x, OPT_EXAMPLE))
        return true;
    if (!b || board_is_hosted(b))
        return ask_usage_error(x, arena_printf(&x->c->mem, "as in --target cortex-m4; 'lathe targets' lists emulators"),
                               "--example: there is no emulator for the target %s", out->target->name);
    ecosystem_board *e = arena_new(&x->c->mem, ecosystem_board);
    *e = (ecosystem_board){b->name, b->tools, b->cflags, b->ldflags, b->script, b->startup, b->emulator};
    out->example_board = e;
    out->target = target_find(b->target);
    return true;
}

/* The width of the schedule. workers: -1: not said; 0: one, and no thread code. */
static bool set_workers(const ask *x, long workers, compile_options *out)
{
    const package_port *p = out->port;
    if (workers > (long)p->most_workers)
        return ask_usage_error(x, "leave --workers out, or choose another port, such as freertos",
                               p->most_workers == 1 ? "--workers %ld: the port %s has no threads"
                                                    : "--workers %ld: the port %s has two cores", workers, p->name);
    out->workers = workers < 0 ? p->workers : workers == 0 ? 1 : (uint32_t)workers;
    return true;
}

static bool no_such_target(const ask *x, const char *name)
{
    const char *names = target_names(x->c), *parts = target_region_names(x->c);
    const char *near = nearest_in(name, arena_printf(&x->c->mem, "%s, %s, %s", names, board_names(x->c), parts),
                                  &x->c->mem);
    return ask_usage_error(x, arena_printf(&x->c->mem, "%s'lathe targets' lists all targets and emulators%s", near,
                                           *near ? "" : "; of a microcontroller, name the core, such as cortex-m4"),
                           "--target: '%.100s' is unknown", name);
}

/* --target, or what is usual for the port and for what is made. */
static bool read_target(const ask *x, bool native, compile_options *out)
{
    const bool small = out->port->system != PORT_HOSTED, module = compile_makes(out, BACKEND_MODULE);
    const char *name = ask_get(x, OPT_TARGET, NULL);
    const target *named = name ? target_lookup(x->c, name) : NULL;
    out->device = named && named->computations ? named : NULL;
    name = out->device ? NULL : name; /* the host's part is for its usual target */
    if (!take_board(x, &name, out) || !check_artifact_options(x, out))
        return false;
    out->target = name ? target_lookup(x->c, name)
                  : module && !native ? target_find("my_device")
                  : small     ? target_find("cortex-m")
                  : native    ? target_find("native")
                              : target_default();
    if (!out->target)
        return no_such_target(x, name);
    if (out->target->regions_only)
        return ask_usage_error(x, arena_printf(&x->c->mem, "--offload %s gives it those parts", out->target->name),
                               "--target: %s takes parts of a model, not whole models", out->target->name);
    if (module && out->target->address_bits == 32)
        return ask_usage_error(x, "--emit c makes a package for it", "--target: %s is a microcontroller, and "
                               "modules are for machines with an operating system", out->target->name);
    return !ask_has(x, OPT_VTA_CONFIG) || vta_text_set(x->c, ask_get(x, OPT_VTA_CONFIG, ""));
}

/* What a module's file is for. */
static bool read_module(const ask *x, compile_options *out)
{
    if (ask_has(x, OPT_HOST) && !compile_makes(out, BACKEND_MODULE))
        return ask_usage_error(x, "add --emit module, or leave it out", "--host is for modules");
    out->host = ask_get(x, OPT_HOST, "x86_64");
    out->with_interpreter = ask_has(x, OPT_WITH_INTERPRETER);
    return ask_choice(x, OPT_EMIT, NULL, "c") >= 0 && ask_choice(x, OPT_HOST, NULL, "x86_64") >= 0 &&
           read_widths(x, out);
}

/* How far the passes and the planner go, and for how many workers. */
static bool read_effort(const ask *x, compile_options *out)
{
    long level, workers, effort;
    if (!ask_number(x, OPT_LEVEL, 0, 3, 3, &level) || !ask_check_level(x, (int)level) ||
        !ask_number(x, OPT_PLAN_EFFORT, 1, 1000, 1, &effort) || !ask_workers(x, &workers) ||
        !set_workers(x, workers, out))
        return false;
    out->opt_level = (int)level;
    out->plan_effort = (uint32_t)effort;
    out->no_winograd = ask_has(x, OPT_NO_WINOGRAD);
    out->no_split_data = ask_has(x, OPT_NO_SPLIT_DATA);
    out->trees = ask_choice(x, OPT_TREES, NULL, "auto");
    return out->trees >= 0;
}

/* How numbers are computed, and how they are handed over. */
static bool read_numbers(const ask *x, compile_options *out)
{
    /* A time is taken of what is compiled anyway. */
    const bool against_litert = x->verb == VERB_VERIFY && strcmp(ask_get(x, OPT_AGAINST, ""), "litert") == 0;
    const int requant = ask_choice(x, OPT_REQUANT, NULL, against_litert ? "litert" : "exact");
    if (ask_has(x, OPT_ALLOW_FLOAT_IO) && !ask_has(x, OPT_QUANTIZED_IO))
        return ask_usage_error(x, "add --quantized-io, or leave it out",
                               "--allow-float-io has no effect without --quantized-io");
    out->requant = requant;
    out->names_requant = ask_has(x, OPT_REQUANT);
    out->input_in_workspace = ask_has(x, OPT_INPUT_IN_WORKSPACE);
    out->quantised_ends = ask_has(x, OPT_QUANTIZED_IO);
    out->float_ends = ask_has(x, OPT_ALLOW_FLOAT_IO);
    out->integers = ask_has(x, OPT_INTEGERS) || ask_has(x, OPT_REQUANT) || out->quantised_ends;
    return requant >= 0;
}

/* What the C looks like, and the build system that it is for. */
static bool read_code(const ask *x, compile_options *out)
{
    const int share = ask_choice(x, OPT_SHARE_KERNELS, NULL, "exact"), names = ask_choice(x, OPT_NAMES, NULL, "long");
    const char *form = ask_get(x, OPT_CONSTANTS, NULL);
    if (share < 0 || names < 0)
        return false;
    out->short_names = names == 1;
    out->shares_kernels = ask_has(x, OPT_SHARE_KERNELS);
    out->shares_shapes = share == 1;
    out->constants_form = form ? constants_form_find(form) : CONSTANTS_DEFAULT;
    if (form && ask_choice(x, OPT_CONSTANTS, NULL, form) < 0)
        return false;
    if (!check_ecosystem(x, out) || !read_example(x, out))
        return false;
    if (out->as && !out->as->takes_files)
        out->constants_form = CONSTANTS_C;
    return true;
}

/* What the model is to be like: the extents of its inputs, its states, and which parts other targets take. */
static bool read_shapes(const ask *x, compile_options *out)
{
    return read_bindings(x, OPT_SHAPE, &out->shapes, &out->n_shapes) &&
           read_bindings(x, OPT_DIM, &out->dims, &out->n_dims) &&
           read_bindings(x, OPT_BOUND, &out->bounds, &out->n_bounds) && read_binds(x, out) &&
           read_states(x, out) && read_offload(x, &out->offload);
}

bool ask_compile_options(const ask *x, bool native, compile_options *out)
{
    const int emit = ask_choice(x, OPT_EMIT, NULL, "c");
    compile_options_init(out);
    if (emit < 0)
        return false;
    compile_set_emit(out, (compile_emit)emit); /* the option's values stand in the order of COMPILE_EMITS */
    out->verb = ask_verb_name(x->verb);
    out->module_name = ask_get(x, OPT_MODULE_NAME, "default");
    out->schedule = ask_get(x, OPT_SCHEDULE, NULL);
    out->schedules = x->values[OPT_SCHEDULES].data;
    out->n_schedules = x->values[OPT_SCHEDULES].len;
    out->verify = true;
    if (!read_signatures(x, out))
        return false;
    long string_bytes;
    if (!ask_number(x, OPT_STRING_BYTES, 1, 65536, 0, &string_bytes))
        return false;
    out->string_bytes = string_bytes;
    return read_port(x, out) && read_target(x, native, out) && read_module(x, out) && read_ram(x, out) &&
           read_effort(x, out) && read_numbers(x, out) && read_code(x, out) && read_memories(x, out) &&
           read_shapes(x, out);
}
