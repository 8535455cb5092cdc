/* SPDX-License-Identifier: Apache-2.0 */
/* lathe targets: what --target and --offload take, as a table or as JSON. */
#include "base/json_out.h"
#include "cli.h"
#include "driver/board.h"
#include "table.h"
#include "type/target.h"

#include <string.h>

static const char *const features[] = {"AVX-VNNI", "AVX-512-VNNI", "SDOT", "I8MM", "DSP",
                                       "Helium",   "FPU",          "pmaddwd", "NEON", "RVV"}; /* by bit */

static const char *features_text(arena *a, const target *t)
{
    writer w;
    writer_init(&w, a);
    for (uint32_t i = 0; i < sizeof features / sizeof *features; i++)
        if (t->features >> i & 1u)
            w_fmt(&w, "%s%s", w.len ? ", " : "", features[i]);
    return w.len ? w.data : "-";
}

static void show_text(ask *x)
{
    compiler *c = x->c;
    table t = table_begin(&c->mem, "lrlrl");
    static const char *const heads[] = {"target", "vectors", "instructions for integers", "workers", "C compiler"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_add(&t, "%s", heads[i]);
    const target *row;
    for (uint32_t i = 0; (row = target_at(i)); i++) {
        table_add(&t, "%s", row->name);
        if (row->variants)
            table_add(&t, "any");
        else if (row->vector_bytes)
            table_add(&t, "%u bits", 8 * row->vector_bytes);
        else
            table_add(&t, "-");
        table_add(&t, "%s", features_text(&c->mem, row));
        table_add(&t, "%u", row->workers);
        table_add(&t, "%s", row->cc ? row->cc : "any");
    }
    table_print(&t, &x->out);
    w_fmt(&x->out, "\nnative       this machine: %s\n", target_find("native")->name);
    w_str(&x->out, "emulators    run and verify build for them, run there and measure: ");
    w_line(&x->out, "%s", board_names(c));
    w_fmt(&x->out, "--offload    takes parts of a model: %s\n", target_region_names(c));
}

static void show_json(ask *x)
{
    json_out j = json_out_begin(&x->out, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_text(&j, "native", target_find("native")->name);
    json_out_array(&j, "targets");
    const target *row;
    for (uint32_t i = 0; (row = target_at(i)); i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "name", row->name);
        json_out_text(&j, "cflags", row->cflags);
        json_out_uint(&j, "vector_bits", 8 * row->vector_bytes);
        json_out_uint(&j, "address_bits", row->address_bits);
        json_out_uint(&j, "workers", row->workers);
        json_out_array(&j, "features");
        for (uint32_t k = 0; k < sizeof features / sizeof *features; k++)
            if (row->features >> k & 1u)
                json_out_text(&j, NULL, features[k]);
        json_out_end(&j);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_array(&j, "emulators");
    const board *b;
    for (uint32_t i = 0; (b = board_at(i)); i++) {
        json_out_object(&j, NULL);
        json_out_text(&j, "name", b->name);
        json_out_text(&j, "target", b->target);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(&x->out, "\n");
}

bool cmd_targets(ask *x)
{
    if (x->args.len > 0)
        return ask_usage_error(x, "lathe targets", "'targets' takes no argument, and '%.100s' is one", x->args.data[0]);
    if (ask_has(x, OPT_JSON))
        show_json(x);
    else
        show_text(x);
    return true;
}
