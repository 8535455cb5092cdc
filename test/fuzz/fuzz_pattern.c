/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as patterns, and behind a line "---" as graph text; without one a graph that stands here. What
 * is accepted is matched: the passes of a partition run with the targets that the patterns name, and with the verifier
 * after each. */
#include "graph/op.h"
#include "graph/pass/offload.h"
#include "type/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char graph[] =
    "func @main(%x: f32[1, 4, 8, 8], %y: f32[1, 4, 8, 8], %n: i64[2]) {\n"
    "  %w = constant f32[4, 4, 3, 3] splat 0.5\n"
    "  %b = constant f32[4, 1, 1] dense [1.0, 2.0, 3.0, 4.0]\n"
    "  %lo = constant f32[] dense [0.0]\n"
    "  %hi = constant f32[] dense [6.0]\n"
    "  %c = nn.conv2d(%x, %w) {pads = [1, 1, 1, 1]}\n"
    "  %a = add(%b, %c)\n"
    "  %r = nn.relu(%a)\n"
    "  %e = exp(%r)\n"
    "  %s = add(%e, %r)\n"
    "  %k = clip(%s, %lo, %hi)\n"
    "  %d = nn.conv2d(%k, %w) {strides = [2, 2]}\n"
    "  %m = multiply(%y, %y)\n"
    "  %u, %v = split(%m, %n) {axis = 1}\n"
    "  return %d, %s, %u, %v\n"
    "}\n";

/* "acme,brand": of the first patterns that were read; "" without any. */
static const char *names_of(compiler *c, const char *text, size_t len)
{
    graph_patterns list = {0};
    writer w;
    writer_init(&w, &c->mem);
    if (!graph_patterns_parse(c, "fuzz", text, len, NULL, &list))
        return "";
    for (uint32_t i = 0; i < list.list.len && i < 4; i++) {
        const char *name = list.list.data[i]->target;
        bool again = strchr(name, ',') != NULL;
        for (uint32_t k = 0; k < i; k++)
            again |= list.list.data[k]->target == name;
        if (!again)
            w_fmt(&w, "%s%s", w.len ? "," : "", name);
    }
    return w.len ? w.data : "";
}

static void run_passes(compiler *c, graph_module *m, const struct offload *o)
{
    pass_options options = pass_options_default();
    options.offload = o;
    options.verify = true;
    if (graph_run_passes(c, m, "MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph,"
                               "RelayToTIRTargetHook,ExtractPrimFuncConstants", &options))
        return;
    writer w;
    writer_init(&w, &c->mem);
    graph_print(&w, m);
    fprintf(stderr, "a partition broke the graph:\n%s\n%s\n", w.data, diags_print(&c->diags, &c->mem));
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    graph_module *m = NULL;
    const struct offload *o = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    const char *text = arena_strndup(&c.mem, (const char *)data, size);
    const char *cut = strstr(text, "---\n");
    size_t len = cut ? (size_t)(cut - text) : strlen(text);
    const char *g = cut ? cut + 4 : graph;
    const char *names = names_of(&c, text, len);
    const offload_text texts = {"fuzz", text, len};
    const offload_spec spec = {.targets = names, .texts = &texts, .n_texts = 1, .least_work = size % 3 ? -1 : 100,
                               .bind_constants = size % 2};
    if (*names && offload_open(&c, &spec, &o) && graph_parse(&c, "graph", g, strlen(g), &m) && graph_infer(&c, m))
        run_passes(&c, m, o);
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
