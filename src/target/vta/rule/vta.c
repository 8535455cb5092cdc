/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for VTA: their keys as text, and the way from a layer to calls of the run-time. What follows from the keys is
 * in vta_shape.c, tiles are chosen in vta_blocks.c, computation and schedule written in vta_print.c. */
#include "target/vta/rule/vta.h"

#include "base/nearest.h"
#include "te/lower.h"
#include "target/vta/rule/vta_rule.h"
#include "te/text.h"
#include "tir/pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- kinds and keys --- */

static const struct {
    const char *name;
    size_t at;
} keys[] = {
#define X(key, value, help) {#key, offsetof(te_vta_layer, key)},
    TE_VTA_LAYER_KEYS(X)
#undef X
};

enum { N_KEYS = sizeof keys / sizeof *keys };

te_vta_layer te_vta_layer_new(te_vta_kind kind)
{
#define X(key, value, help) .key = value,
    te_vta_layer l = {.kind = kind, TE_VTA_LAYER_KEYS(X)};
#undef X
    if (!vta_has_window(kind)) {
        l.kernel = 1;
        l.pad = 0;
    }
    if (kind == TE_VTA_UPSAMPLING)
        l.stride = 2;
    if (!vta_is_sum(kind))
        l.bias = l.shift = l.out_channels = 0;
    return l;
}

static int64_t *key_of(te_vta_layer *l, size_t k)
{
    return (int64_t *)(void *)((char *)l + keys[k].at);
}

static bool unknown_key(compiler *c, te_vta_kind kind, const char *text, size_t len, size_t name)
{
    writer w;
    te_vta_layer standard = te_vta_layer_new(kind);
    nearest near = nearest_to(text, name);
    writer_init(&w, &c->mem);
    for (size_t k = 0; k < N_KEYS; k++) {
        nearest_offer(&near, keys[k].name);
        w_fmt(&w, "%s%s=%" PRId64, k ? "," : "", keys[k].name, *key_of(&standard, k));
    }
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "a layer has no key '%.*s'", (int)(len < 60 ? len : 60),
               text);
    diag_hint(&c->diags, "%swrite KEY=NUMBER,...; the defaults are %s",
              near.distance ? nearest_question(&near, "", &c->mem) : "", w.data);
    return false;
}

bool te_vta_layer_parse(compiler *c, te_vta_kind kind, const char *text, te_vta_layer *out)
{
    *out = te_vta_layer_new(kind);
    while (*text) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,"), k = 0;
        char *end = NULL;
        while (k < N_KEYS && (strlen(keys[k].name) != name || strncmp(keys[k].name, text, name) != 0))
            k++;
        long long v = name < len ? strtoll(text + name + 1, &end, 10) : 0;
        if (k == N_KEYS || end != text + len || len <= name + 1 || v < -(1 << 20) || v > 1 << 20)
            return unknown_key(c, kind, text, len, name);
        *key_of(out, k) = v;
        text += len + (text[len] == ',');
    }
    return true;
}

/* --- planned layers --- */

const char *te_vta_layer_plan(compiler *c, te_vta_layer *layer)
{
    const char *why = vta_shape_check(c, layer);
    return why ? why : vta_blocks_choose(c, layer);
}

bool te_vta_layer_check(compiler *c, te_vta_layer *layer)
{
    const char *why = vta_shape_check(c, layer);
    if (why)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s: %s", te_vta_kind_name(layer->kind), why);
    return vta_blocks_check(c, layer);
}

/* --- as values --- */

bool te_vta_layer_make(compiler *c, const te_vta_layer *layer, te_graph **out_graph, te_sched **out_schedule)
{
    writer computation, schedule;
    const char *name = te_vta_kind_name(layer->kind);
    *out_schedule = NULL;
    writer_init(&computation, &c->mem);
    writer_init(&schedule, &c->mem);
    te_vta_layer_print(c, layer, &computation, &schedule);
    return te_parse(c, name, computation.data, computation.len, out_graph) &&
           te_sched_parse(*out_graph, name, schedule.data, schedule.len, out_schedule);
}

bool te_vta_layer_lower(compiler *c, te_vta_layer *layer, const char *name, tir_func **out)
{
    te_graph *g;
    te_sched *s;
    tir_module m = {.c = c};
    *out = NULL;
    if (!te_vta_layer_check(c, layer) || !te_vta_layer_make(c, layer, &g, &s) || !te_lower(g, s, name, out))
        return false;
    vec_push(&c->mem, &m.funcs, *out);
    return tir_run_passes(c, &m, "vta", false, NULL);
}
