/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the tuner's records, and as what the measuring side answers: taken or refused with a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "driver/measure.h"
#include "driver/pipeline.h"
#include "driver/tune_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    te_records records = {0};
    measure_answer answer;
    const span text = {data, size};
    compiler_setup(&c);
    if (size > 4096) { /* loops of a large text take long, and say nothing new */
        compiler_free(&c);
        return 0;
    }
    if (!tune_log_read(&c, "fuzz", text, &records) && c.diags.errors == 0)
        abort();
    const uint32_t before = c.diags.errors;
    if (!measure_read(&c, arena_strndup(&c.mem, (const char *)data, size), &answer) && c.diags.errors == before)
        abort();
    compiler_free(&c);
    return 0;
}
