/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a TensorFlow Lite model. Read, import, verify and print; a model that is accepted must also
 * verify. Seeds in corpus/tflite come from test/py/make_tflite_fixtures.py. */
#include "frontend/tflite/tflite.h"
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    if (tflite_import(&c, (span){data, size}, "fuzz/model.tflite", NULL, &m)) {
        if (!graph_verify(&c, m)) {
            fprintf(stderr, "an accepted model does not verify:\n%s\n", diags_print(&c.diags, &c.mem));
            abort();
        }
        writer w;
        writer_init(&w, &c.mem);
        graph_print(&w, m);
    }
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
