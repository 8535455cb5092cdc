/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a plan problem: what parses is planned, and every plan must pass the verifier. */
#include <stdint.h>
#include <stdlib.h>

#include "plan/plan.h"

enum { MOST_OPS = 60, MOST_VALUES = 120 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compiler c;
    plan_problem *p;
    plan made;
    compiler_init(&c);
    if (plan_parse(&c, "fuzz", (const char *)data, size, &p) && p->ops.len <= MOST_OPS &&
        p->values.len <= MOST_VALUES) {
        writer w;
        writer_init(&w, &c.mem);
        if (!plan_memory(&c, p, &made) || !plan_verify(&c, &made))
            abort();
        plan_print(&w, &made);
    }
    compiler_free(&c);
    return 0;
}
