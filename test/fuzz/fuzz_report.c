/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as the report.json of a package. What is taken must be consistent: bytes as shapes say. */
#include "driver/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64]; /* of this process */

static void leave(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/report.json", folder);
    unlink(path);
    rmdir(folder);
}

static void check(const run_tensor *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t count = 1;
        for (uint32_t k = 0; k < t[i].rank; k++)
            count *= t[i].dims[k];
        if (count != t[i].count || t[i].bytes / dtype_bytes(t[i].dt) != (size_t)count)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    run_report r;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/fuzz_report.XXXXXX");
        if (!mkdtemp(folder) || atexit(leave) != 0)
            abort();
    }
    compiler_init(&c);
    if (!file_write(&c.diags, &c.temps, path_join(&c.mem, folder, "report.json"), data, size))
        abort();
    if (run_read_report(&c, folder, &r)) {
        check(r.inputs, r.n_inputs);
        check(r.outputs, r.n_outputs);
    }
    (void)diags_print(&c.diags, &c.mem);
    compiler_free(&c);
    return 0;
}
