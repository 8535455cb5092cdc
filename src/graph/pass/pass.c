/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on graphs: the default orders, and what base/pass.h has to know of this level. */
#include "graph/pass.h"

#include "base/pass.h"
#include "graph/family.h"
#include "graph/op.h"

#include <string.h>

static const graph_pass_row rows[] = {
#define X(id, name, fn, needs, gives, breaks, level, help) \
    {{name, help, needs, gives, breaks, level}, fn, GRAPH_PLACE_NONE},
    GRAPH_PASSES(X)
#undef X
};

static const graph_device *const devices[] = {
#define TARGET_GRAPH(name) &graph_device_##name,
#include "target/targets.def"
    NULL};

/* Those of all targets, then those of each device. */
static const graph_pass_row *row_at(uint32_t i)
{
    if (i < sizeof rows / sizeof *rows)
        return &rows[i];
    i -= (uint32_t)(sizeof rows / sizeof *rows);
    for (const graph_device *const *d = devices; *d; i -= (*d)->n, d++)
        if (i < (*d)->n)
            return &(*d)->passes[i];
    return NULL;
}

static const char *const facts[] = {
#define X(id, text) text,
    GRAPH_FACTS(X)
#undef X
};

/* Quantised weights find their integer operators before folding makes floats of them. Folding comes before the
 * rewrites, so that simplify sees weights that a model computes, and again after what simplify and pack-weights leave
 * for it: arithmetic on constants. */
static const char clean[] =
    "infer-types,sink-dequantize,use-integers,widen-halves,fold-constants,take-branches,simplify,fold-constants,"
    "take-branches,cse,dce,quantized-ends,dce";
/* Other targets see the graph before the CPU's layouts. */
static const char partition[] =
    "MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph,RelayToTIRTargetHook,ExtractPrimFuncConstants";
static const char cpu[] =
    "choose-trees,reciprocals,fuse-attention,fill-rows,flatten-rows,rnn-products,lines-to-images,"
    "signed-bytes,fold-zero-points,phase-convolutions,dce,split-groups,convert-layout,convert-rows,"
    "choose-conv-algorithm,pack-weights,fold-constants,dce,pack-nibbles,rescale-words,sum-words,close-loops,fuse,"
    "split-batch";

static uint32_t facts_of_node(const graph_node *n)
{
    uint32_t missing = 0;
    for (uint32_t r = 0; r < n->n_outputs; r++)
        missing |= n->outputs[r]->type.kind == TYPE_NONE ? FACT_TYPES : 0u;
    if (strcmp(n->op->name, "loop") == 0 && graph_attr_int(n, "closed") == 0)
        missing |= FACT_CLOSED;
    return (FACT_TYPES | FACT_CLOSED | (n->compiler ? FACT_TAKEN : 0u)) & ~missing;
}

uint32_t graph_facts(const graph_module *m)
{
    const uint32_t of_all = FACT_TYPES | FACT_CLOSED;
    uint32_t holds = of_all | FACT_FOLDED; /* what is left to compute in a given graph may stay there */
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const graph_func *f = m->funcs.data[i];
        holds |= graph_func_text(f, "compiler") ? FACT_REGIONS : 0u;
        for (uint32_t k = 0; k < f->params.len; k++)
            holds &= f->params.data[k]->type.kind == TYPE_NONE ? ~(uint32_t)FACT_TYPES : ~0u;
        for (uint32_t k = 0; k < f->nodes.len; k++) {
            const uint32_t own = facts_of_node(f->nodes.data[k]);
            holds = (holds & (own | ~of_all)) | (own & FACT_TAKEN);
        }
    }
    return holds;
}

static const pass_row *row(uint32_t i)
{
    const graph_pass_row *r = row_at(i);
    return r ? &r->row : NULL;
}

static bool run_row(compiler *c, void *ir, uint32_t i, int64_t number, const void *options)
{
    (void)number;
    return row_at(i)->run(c, ir, options);
}

static bool verify(compiler *c, const void *ir)
{
    return graph_verify(c, ir);
}

static void print(writer *w, const void *ir)
{
    graph_print(w, ir);
}

const pass_level graph_passes = {.on = "graphs",
                                 .row = row,
                                 .facts = facts,
                                 .n_facts = sizeof facts / sizeof *facts,
                                 .run = run_row,
                                 .verify = verify,
                                 .print = print,
                                 .tells = true};

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

static void put_devices(writer *w, graph_place place)
{
    for (const graph_device *const *d = devices; *d; d++)
        for (uint32_t i = 0; i < (*d)->n; i++)
            if ((*d)->passes[i].place == place)
                w_fmt(w, ",%s", (*d)->passes[i].row.name);
}

const char *graph_default_passes(compiler *c, const pass_options *o)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, clean);
    if (o->offload) {
        put_devices(&w, GRAPH_PLACE_BEFORE);
        w_fmt(&w, ",%s", partition);
    }
    put_devices(&w, GRAPH_PLACE_REGIONS);
    w_fmt(&w, ",%s", cpu);
    return w.data;
}

bool graph_run_passes(compiler *c, graph_module *m, const char *names, const pass_options *o)
{
    const pass_options otherwise = pass_options_default();
    o = o ? o : &otherwise;
    const pass_order order = {.names = names ? names : graph_default_passes(c, o),
                              .opt_level = names ? PASS_NAMED : o->opt_level,
                              .holds = graph_facts(m),
                              .options = o,
                              .verify = o->verify,
                              .print_after_all = o->print_after_all,
                              .dump = o->dump,
                              .times = o->times,
                              .dump_dir = o->dump_dir};
    return pass_run(c, &graph_passes, m, &order);
}
