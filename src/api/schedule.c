/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the schedules of a model's kernels: all of them, or one that is named by its kernel or by a node. */
#include "api/schedule.h"

#include "api/objects.h"
#include "base/nearest.h"

#include <string.h>

/* "conv1, relu1" has relu1. */
static bool lists(const char *source, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(source, name); at && n > 0; at = strstr(at + 1, name))
        if ((at == source || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* By its own name, or by that of a node of the model which it runs. */
static const prog_kernel *find_kernel(const prog_module *m, const char *name)
{
    prog_walk w;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (strcmp(m->kernels.data[i]->name, name) == 0)
            return m->kernels.data[i];
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (const prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w))
            if (s->kind == STEP_KERNEL && lists(s->source, name))
                return s->kernel;
    return NULL;
}

/* Offers each node of "conv1, relu1"; *part: the first one that has the word within its name, such as one that a
 * converter joined of several by semicolons. */
static void offer_nodes(nearest *n, const char *source, const char **part, arena *a)
{
    while (*source) {
        const char *end = strstr(source, ", ");
        const char *node = end ? arena_strndup(a, source, (size_t)(end - source)) : source;
        nearest_offer(n, node);
        if (!*part && n->len > 1 && strstr(node, n->word))
            *part = node;
        source = end ? end + 2 : source + strlen(source);
    }
}

/* "did you mean relu1? ", of kernels and nodes; or "". */
static const char *nearest_name(ask *x, const prog_module *m, const char *name)
{
    arena *a = &x->c->mem;
    nearest n = nearest_to(name, strlen(name));
    const char *part = NULL;
    prog_walk w;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        nearest_offer(&n, m->kernels.data[i]->name);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (const prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w))
            if (s->kind == STEP_KERNEL)
                offer_nodes(&n, s->source, &part, a);
    return n.best || !part ? nearest_question(&n, "", a) : arena_printf(a, "did you mean '%.300s'? ", part);
}

static bool no_kernel(ask *x, const prog_module *m, const char *name)
{
    writer w;
    writer_init(&w, &x->c->mem);
    for (uint32_t i = 0; i < m->kernels.len; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", m->kernels.data[i]->name);
    const char *near = nearest_name(x, m, name);
    return ask_usage_error(x, arena_printf(&x->c->mem, "%skernels are: %s; 'lathe inspect' lists the nodes of each",
                                           near, w.data),
                           "no kernel, and no node of the model, is called '%.200s'", name);
}

bool schedule_print(ask *x, const char *path, const compile_options *options, const char *name, writer *w)
{
    compile_options o = *options;
    compile_result r;
    compile_set_emit(&o, EMIT_SCHEDULE);
    if (!pipeline_compile(x->c, path, &o, &r))
        return false;
    const prog_kernel *only = name ? find_kernel(r.prog, name) : NULL;
    if (name && !only)
        return no_kernel(x, r.prog, name);
    return prog_print_schedules(x->c, w, r.prog, only);
}

typedef struct schedule_args {
    const lathe_model *model;
    const lathe_settings *settings;
    const char *name;
} schedule_args;

static bool schedule(lathe_context *x, home *h, void *args)
{
    const schedule_args *a = args;
    compile_options o;
    writer w;
    ask q;
    model_give(&h->c, a->model);
    writer_init(&w, &x->mem);
    if (!settings_ask(&h->c, a->settings, VERB_COMPILE, &q) || !ask_load_ops(&q, &h->c) ||
        !ask_compile_options(&q, true, &o) || !schedule_print(&q, a->model->path, &o, a->name, &w))
        return false;
    x->json = w.data ? w.data : "";
    return true;
}

int32_t lathe_schedule(lathe_context *x, const lathe_model *model, const lathe_settings *settings, const char *name,
                       const char **out_text)
{
    schedule_args a = {model, settings, name};
    const int32_t outcome = model ? border_call_briefly(x, schedule, &a) : border_refuse_missing(x, "model");
    *out_text = outcome == LATHE_DONE ? x->json : NULL;
    return outcome;
}
