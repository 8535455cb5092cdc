/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as an ONNX model. Read, import, verify and print; a model that is accepted must also verify;
 * what is read at all must survive being written.
 * Seeds in corpus/onnx come from test/py/make_onnx_fixtures.py. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (onnx_import(&c, (span){data, size}, "fuzz/model.onnx", NULL, &m)) {
        if (!graph_verify(&c, m)) {
            fprintf(stderr, "an accepted model does not verify:\n%s\n", diags_print(&c.diags, &c.mem));
            abort();
        }
        writer w;
        writer_init(&w, &c.mem);
        graph_print(&w, m);
    }
    check_round_trip(&c, (span){data, size});
    const char *name = NULL;
    const tensor_data *t = NULL;
    if (size < 4096)
        (void)onnx_read_tensor(&c, (span){data, size}, "fuzz/tensor.pb", &name, &t);
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
