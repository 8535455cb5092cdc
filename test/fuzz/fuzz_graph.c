/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as graph text. What is accepted must verify, print, and read back to the same text; then
 * the passes run, each with the verifier after it. Nothing is evaluated: constants fold only where no arithmetic is
 * needed. */
#include "graph/op.h"
#include "graph/pass.h"
#include "type/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *print(compiler *c, const graph_module *m)
{
    writer w;
    writer_init(&w, &c->mem);
    graph_print(&w, m);
    return w.data;
}

static void give_up(compiler *c, const char *what, const char *text)
{
    fprintf(stderr, "%s:\n%s\n%s\n", what, text, diags_print(&c->diags, &c->mem));
    abort();
}

static void round_trip(compiler *c, const char *text)
{
    graph_module *again = NULL;
    if (!graph_parse(c, "again", text, strlen(text), &again))
        give_up(c, "printed text does not read back", text);
    if (strcmp(print(c, again), text) != 0)
        give_up(c, "text changes when read and printed", text);
}

/* An error of inference is the input's fault; one of the verifier after a pass is ours. */
static void run_passes(compiler *c, graph_module *m)
{
    if (!graph_infer(c, m))
        return;
    pass_options o = pass_options_default();
    uint32_t before = c->diags.errors;
    o.target = target_find("x86-64-v3");
    o.verify = true;
    if (!graph_run_passes(c, m, NULL, &o) && c->diags.errors > before &&
        c->diags.last->code == DIAG_VERIFY)
        give_up(c, "a pass broke the graph", print(c, m));
    if (c->diags.errors == before)
        round_trip(c, print(c, m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (graph_parse(&c, "fuzz", (const char *)data, size, &m)) {
        round_trip(&c, print(&c, m));
        run_passes(&c, m);
    }
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
