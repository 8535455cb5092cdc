/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as an ONNX model. Read, import, verify and print; a model that is accepted must also verify;
 * what is read at all must survive being written.
 * Seeds in corpus/onnx come from test/py/make_onnx_fixtures.py. */
#include "driver/html_model.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read can be written, and what was written is read as the same again. */
static void check_round_trip(compiler *c, span bytes)
{
    pb_model *m = NULL, *again = NULL;
    span first, second;
    if (!onnx_wire_model(c, "fuzz/model.onnx", bytes, &m))
        return;
    if (!onnx_wire_write(c, m, &first) || (first.len && !onnx_wire_model(c, "written", first, &again)) ||
        (again && (!onnx_wire_write(c, again, &second) || second.len != first.len ||
                   memcmp(first.data, second.data, first.len) != 0))) {
        fprintf(stderr, "a model that was written is not read back:\n%s\n", diags_print(&c->diags, &c->mem));
        abort();
    }
}

/* As for a page: nothing of the model is an error but what no graph can be made of. */
static void look_at(span bytes)
{
    const frontend_options o = {.keeps_unread = true};
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (onnx_import(&c, bytes, "fuzz/model.onnx", &o, &m)) {
        writer w;
        writer_init(&w, &c.mem);
        json_out j = json_out_begin(&w, JSON_OUT_LINE);
        json_out_object(&j, NULL);
        html_model_write(&j, "model", html_model_of(&c, m));
        json_out_end(&j);
    }
    compiler_free(&c);
}

/* The model with two elements for each sequence and one for each optional among its inputs; false: it has none. */
static bool import_with_elements(compiler *c, span bytes, graph_module **out)
{
    enum { MOST = 8, ELEMENTS = 2 };
    const frontend_options look = {.inputs_only = true};
    frontend_dim_fix fixes[MOST * (ELEMENTS + 1)];
    frontend_options o = {.fixes = fixes};
    graph_module *inputs = NULL;
    if (!onnx_import(c, bytes, "fuzz/model.onnx", &look, &inputs))
        return false;
    for (uint32_t i = 0; i < inputs->lists.len && i < MOST; i++) {
        const list_io *l = &inputs->lists.data[i];
        const uint32_t n = l->is_sequence ? ELEMENTS : 1;
        fixes[o.n_fixes++] = (frontend_dim_fix){.name = l->name, .rank = 1, .dims = {n}};
        for (uint32_t k = 0; k < n; k++)
            fixes[o.n_fixes++] = (frontend_dim_fix){.name = arena_printf(&c->mem, "%s[%u]", l->name, k),
                                                    .is_input = true, .rank = 1, .dims = {2 + k}};
    }
    return o.n_fixes > 0 && onnx_import(c, bytes, "fuzz/model.onnx", &o, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (onnx_import(&c, (span){data, size}, "fuzz/model.onnx", NULL, &m) ||
        import_with_elements(&c, (span){data, size}, &m)) {
        if (!graph_verify(&c, m)) {
            fprintf(stderr, "an accepted model does not verify:\n%s\n", diags_print(&c.diags, &c.mem));
            abort();
        }
        writer w;
        writer_init(&w, &c.mem);
        graph_print(&w, m);
    }
    look_at((span){data, size});
    check_round_trip(&c, (span){data, size});
    const char *name = NULL;
    bool is_text;
    const tensor_data *t = NULL;
    if (size < 4096)
        (void)onnx_read_tensor(&c, (span){data, size}, "fuzz/tensor.pb", &name, &is_text, &t);
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
