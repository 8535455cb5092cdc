/* SPDX-License-Identifier: Apache-2.0 */
/* lathe quantize: what quantising costs, as tables. */
#include "api/quantize_verb.h"
#include "cli.h"
#include "table.h"

static void show_text(const quantize_run *r, writer *w)
{
    table layers = table_begin(&r->c->mem, "lrr"), values = table_begin(&r->c->mem, "llrrrr");
    static const char *const heads[] = {"value", "made by", "scale", "zero", "saturated %", "error %"};
    table_add(&layers, "weights of");
    table_add(&layers, "channels");
    table_add(&layers, "error %%");
    for (uint32_t i = 0; i < r->q.n_layers; i++) {
        table_add(&layers, "%s", r->q.layers[i].name);
        table_add(&layers, "%lld", (long long)r->q.layers[i].channels);
        table_add(&layers, "%.3f", 100 * r->q.layers[i].weight_error);
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_add(&values, "%s", heads[i]);
    for (uint32_t i = 0; i < r->q.values.len; i++) {
        const quantize_value *v = &r->q.values.data[i];
        table_add(&values, "%s", v->name);
        table_add(&values, "%s", *v->op ? v->op : "(input)");
        table_add(&values, "%.6g", (double)v->scale);
        table_add(&values, "%lld", (long long)v->zero);
        table_add(&values, "%.3f", 100 * quantize_verb_saturated(r, i));
        table_add(&values, "%.2f", 100 * quantize_verb_loss(r, i));
    }
    table_print(&layers, w);
    w_str(w, "\n");
    table_print(&values, w);
    w_line(w, "\nquantized: %u of %u nodes, %u batch norms folded, %lld samples seen", r->q.n_quantized, r->q.n_nodes,
           r->q.n_folded, (long long)r->seen);
    double all = r->samples > 0 ? (double)r->samples : 1;
    if (r->has_labels) {
        w_line(w, "float:     %lld of %lld right, %.2f %%", (long long)r->right, (long long)r->samples,
               100 * (double)r->right / all);
        w_line(w, "quantized: %lld of %lld right, %.2f %%", (long long)r->right_quantized, (long long)r->samples,
               100 * (double)r->right_quantized / all);
    }
    for (uint32_t i = 0; i < r->q.values.len; i++)
        if (r->losses[i].others > 0)
            w_line(w, "other extents: '%s' in %lld of %lld calls, which its error leaves out",
                   r->q.values.data[i].name, (long long)r->losses[i].others, (long long)r->calls);
    if (r->has_answers)
        w_line(w, "the same answer for %lld of %lld", (long long)r->same, (long long)r->samples);
}

bool cmd_quantize(ask *x)
{
    quantize_run *r;
    if (!quantize_verb(x, &r))
        return false;
    if (ask_has(x, OPT_JSON))
        quantize_verb_write_json(r, &x->out);
    else if (!ask_has(x, OPT_QUIET))
        show_text(r, &x->out);
    return true;
}
