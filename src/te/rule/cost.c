/* SPDX-License-Identifier: Apache-2.0 */
/* What loops without tiles cost, for rules: cycles of one product, by the numbers of the target's processor. */
#include "te/rule/rule.h"

#define IN_MEMORY 4    /* cycles from storing a sum to loading it */
#define IN_C      2    /* loops that the C compiler cuts into lanes have guards, and ends of rows */
#define LOOP      0.25 /* of a loop's own instructions */

double te_cost_one_by_one(const te_case *x)
{
    return target_cpu(x->t)->latency + LOOP;
}

double te_cost_in_c(const struct target *t, double accesses)
{
    const double lanes = t->vector_bytes > 4 ? t->vector_bytes / 4 : 1, cycles = accesses / target_cpu(t)->loads;
    return lanes > 1 ? IN_C * cycles / lanes : cycles;
}

double te_cost_of_stages(const te_case *x)
{
    return te_cost_one_by_one(x) + IN_MEMORY;
}

/* A row of `units` sums in an array, through which each step of the reduction passes. */
double te_cost_of_row(const struct target *t, int64_t units)
{
    const double c = te_cost_in_c(t, 3), wait = target_cpu(t)->latency + (units > 1 ? IN_MEMORY : 0);
    return units > 0 && wait / (double)units > c ? wait / (double)units : c;
}
