/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a program. What is accepted must print and read back to the same text; what is small runs before and
 * after the passes on programs, with the same results. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../loop_steps.h"
#include "driver/pipeline.h"

enum { MOST_STEPS = 40, MOST_BYTES = 1 << 16, MOST_LOOPS = 1 << 16, MOST_VALUES = 64 };

static const char *text_of(compiler *c, const prog_module *m)
{
    writer w;
    writer_init(&w, &c->mem);
    prog_print(&w, m);
    return w.data;
}

static bool is_small(const prog_module *m)
{
    const prog_func *f = prog_find(m, "main");
    prog_walk w;
    uint32_t n = 0;
    if (!f || f->values.len > MOST_VALUES)
        return false;
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        if (++n > MOST_STEPS || s->kind == STEP_LOOP) /* which may have no end */
            return false;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (prog_bytes(&f->values.data[i]) > MOST_BYTES)
            return false;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (loop_steps(m->kernels.data[i]->plain->body, 1e300) > (double)MOST_LOOPS)
            return false;
    return true;
}

/* All results one behind the other; false: the run ended with a status. */
static bool run(compiler *c, const prog_module *m, uint8_t *bytes)
{
    const prog_func *f = prog_find(m, "main");
    void *in[MOST_VALUES + 1], *out[MOST_VALUES + 1];
    memset(bytes, 0, (size_t)MOST_VALUES * MOST_BYTES);
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        in[i] = arena_alloc(&c->mem, (size_t)prog_bytes(&f->values.data[i]) + 1, 64);
        memset(in[i], 1, (size_t)prog_bytes(&f->values.data[i]));
    }
    for (uint32_t i = 0; i < f->results.len && i < MOST_VALUES; i++)
        out[i] = bytes + (size_t)i * MOST_BYTES;
    return prog_interpret(c, m, in, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t before[(size_t)MOST_VALUES * MOST_BYTES], after[sizeof before];
    compiler c;
    prog_module *m, *again;
    compiler_setup(&c);
    if (prog_parse(&c, "fuzz", (const char *)data, size, &m)) {
        const char *text = text_of(&c, m);
        if (!prog_parse(&c, "again", text, strlen(text), &again) || strcmp(text, text_of(&c, again)) != 0)
            abort();
        bool small = is_small(m), ran = small && run(&c, m, before);
        if (!prog_run_passes(&c, m, NULL, 3, false, NULL))
            abort();
        if (ran && (!run(&c, m, after) || memcmp(before, after, sizeof before) != 0))
            abort();
        if (!prog_run_passes(&c, m, "device-memory", 0, false, NULL))
            abort();
        if (ran && (!run(&c, m, after) || memcmp(before, after, sizeof before) != 0))
            abort();
    }
    compiler_free(&c);
    return 0;
}
