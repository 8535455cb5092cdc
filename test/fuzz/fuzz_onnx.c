/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as an ONNX model. Read, import, verify and print; a model that is accepted must also verify.
 * Seeds in corpus/onnx come from test/py/make_onnx_fixtures.py. */
#include "frontend/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    const char *name = NULL;
    const tensor_data *t = NULL;
    if (size < 4096)
        (void)onnx_read_tensor(&c, (span){data, size}, "fuzz/tensor.pb", &name, &t);
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
