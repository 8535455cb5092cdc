/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of graph passes: finds them by name, checks that what they need holds, runs, verifies, times, dumps what
 * changed. Passes contain none of that. */
#include "graph/pass.h"

#include "base/file.h"
#include "base/nearest.h"

#include <string.h>
#include <time.h>

typedef struct pass_row {
    const char *name;
    graph_pass_fn run;
    uint32_t needs, gives, breaks;
    int level;
} pass_row;

static const pass_row passes[] = {
#define X(id, name, fn, needs, gives, breaks, level, help) {name, fn, needs, gives, breaks, level},
    GRAPH_PASSES(X)
#undef X
};
#define PASS_COUNT (sizeof passes / sizeof *passes)

/* Quantised weights find their integer operators before folding makes floats of them. Folding comes before the
 * rewrites, so that simplify sees weights that a model computes, and again after what simplify and pack-weights leave
 * for it: arithmetic on constants. */
#define CLEAN \
    "infer-types,sink-dequantize,use-integers,fold-constants,take-branches,simplify,fold-constants,take-branches," \
    "cse,dce,quantized-ends,dce"
/* Other targets see the graph before the CPU's layouts. */
#define OFFLOAD                                                                                      \
    "vta-fold,MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph,"                    \
    "RelayToTIRTargetHook,"                                                                          \
    "ExtractPrimFuncConstants"
#define CPU                                                                                         \
    "vta-pack,choose-trees,reciprocals,fuse-attention,fill-rows,flatten-rows,rnn-products,lines-to-images,"      \
    "signed-bytes,fold-zero-points,phase-convolutions,dce,convert-layout,split-groups,convert-rows," \
    "choose-conv-algorithm,pack-weights,fold-constants,dce,pack-nibbles,close-loops,fuse"
static const char default_pipeline[] = CLEAN "," CPU;
static const char offload_pipeline[] = CLEAN "," OFFLOAD "," CPU;

typedef struct run {
    compiler *c;
    graph_module *m;
    const pass_options *o;
    uint32_t facts;
    uint32_t step;
    const char *before; /* text before the pass; NULL when nobody wants dumps */
} run;

static const pass_row *find(const char *name, size_t len)
{
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (strlen(passes[i].name) == len && memcmp(passes[i].name, name, len) == 0)
            return &passes[i];
    return NULL;
}

static bool all_typed(const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const graph_func *f = m->funcs.data[i];
        for (uint32_t k = 0; k < f->params.len; k++)
            if (f->params.data[k]->type.kind == TYPE_NONE)
                return false;
        for (uint32_t k = 0; k < f->nodes.len; k++)
            for (uint32_t r = 0; r < f->nodes.data[k]->n_outputs; r++)
                if (f->nodes.data[k]->outputs[r]->type.kind == TYPE_NONE)
                    return false;
    }
    return true;
}

static bool has_primitives(const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (graph_is_primitive(m->funcs.data[i]))
            return true;
    return false;
}

static const char *text_of(const run *r)
{
    writer w;
    writer_init(&w, &r->c->mem);
    graph_print(&w, r->m);
    return w.data;
}

static bool dump(run *r, const char *name, const char *text)
{
    compiler *c = r->c;
    if (r->o->print_after_all && r->o->dump) {
        w_line(r->o->dump, "// after %s", name);
        w_str(r->o->dump, text);
        w_str(r->o->dump, "\n");
    }
    if (!r->o->dump_dir)
        return true;
    const char *file = arena_printf(&c->mem, "%02u-%s.txt", r->step, name);
    return compiler_write_file(c, path_join(&c->mem, r->o->dump_dir, file), text, strlen(text));
}

static bool dump_if_changed(run *r, const pass_row *p)
{
    if (!r->before)
        return true;
    const char *now = text_of(r);
    bool changed = strcmp(now, r->before) != 0;
    r->before = now;
    return !changed || dump(r, p->name, now);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static bool run_pass(run *r, const pass_row *p)
{
    compiler *c = r->c;
    struct timespec start;
    if (p->needs & ~r->facts) {
        (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "pass '%s' needs %s", p->name,
                         p->needs & ~r->facts & FACT_TYPES ? "types" : "fused functions");
        diag_hint(&c->diags, "run %s before it", p->needs & ~r->facts & FACT_TYPES ? "infer-types" : "fuse");
        return false;
    }
    if (c->progress && !compiler_progress(c, arena_printf(&c->mem, "pass %s", p->name), 0, 0))
        return false;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    bool ok = p->run(c, r->m, r->o);
    if (r->o->times)
        w_line(r->o->times, "%-16s %9.3f ms", p->name, 1e3 * seconds_since(&start));
    r->step++;
    if (ok && r->o->verify && !graph_verify(c, r->m)) {
        diag_hint(&c->diags, "pass '%s' made this, and it is a bug in the compiler", p->name);
        ok = false;
    }
    r->facts = (r->facts & ~p->breaks) | p->gives;
    return ok && dump_if_changed(r, p);
}

static bool unknown_pass(compiler *c, const char *name, size_t len)
{
    writer w;
    writer_init(&w, &c->mem);
    for (size_t i = 0; i < PASS_COUNT; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", passes[i].name);
    name = arena_strndup(&c->mem, name, len);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--passes: '%s' is unknown", name);
    diag_hint(&c->diags, "%spasses are: %s", nearest_in(name, w.data, &c->mem), w.data);
    return false;
}

pass_options pass_options_default(void)
{
    return (pass_options){.target = target_default(), .opt_level = 3};
}

/* The row's function: types need no options. */
bool graph_pass_infer(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    return graph_infer(c, m);
}

bool graph_run_passes(compiler *c, graph_module *m, const char *names, const pass_options *o)
{
    const pass_options otherwise = pass_options_default();
    run r = {.c = c, .m = m, .o = o ? o : &otherwise};
    r.facts = (all_typed(m) ? FACT_TYPES : 0) | (has_primitives(m) ? FACT_FUSED : 0);
    if (r.o->dump_dir || (r.o->print_after_all && r.o->dump))
        r.before = text_of(&r);
    for (const char *at = names ? names : r.o->offload ? offload_pipeline : default_pipeline; *at;) {
        size_t len = strcspn(at, ",");
        const pass_row *p = find(at, len);
        if (!p && len)
            return unknown_pass(c, at, len);
        if (p && (names || p->level <= r.o->opt_level) && !run_pass(&r, p))
            return false;
        at += len + (at[len] == ',');
    }
    return true;
}
