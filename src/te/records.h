/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that stand beside a model: computations with the schedules that they are to get in place of what the rules
 * choose (docs/reference/schedule.md, "Schedules beside a model"). A kernel's computation finds its record by
 * structure; names of values, which differ from layer to layer, play no part. */
#ifndef LATHE_TE_RECORDS_H
#define LATHE_TE_RECORDS_H
#include "graph/choice.h"
#include "te/schedule.h"

struct target;

/* Text of a file, with as many empty lines before it as it has there, so that messages tell the right one. */
typedef struct te_record_text {
    const char *file, *text;
    size_t len;
} te_record_text;

typedef struct te_record {
    te_graph *g;           /* the computation as its file has it */
    const tir_func *plain; /* its loops without a schedule: what it is found by */
    uint64_t hash;         /* of these */
    const char *target;    /* name of the one that the schedule is for; NULL: any */
    te_record_text schedule;
    const char *origin; /* FILE:LINE, where the schedule begins */
    double seconds; /* that it took where it was measured; 0: it was not */
    bool fits;     /* some kernel computes this, whether it got this schedule or a better one */
    uint32_t uses; /* kernels that got it */
} te_record;

/* The schedules of a compile, and the forms of operators that stood for the best ones. */
typedef struct te_records {
    VEC(te_record *) list;
    graph_choices forms;
} te_records;
te_records *te_records_new(compiler *c);

/* Adds a record; the schedule is checked against its computation. False after a diagnostic of either text. */
bool te_records_add(compiler *c, te_records *r, te_record_text computation, te_record_text schedule,
                    const char *for_target, double seconds);
/* The schedule for what g computes on t: of several the fastest, where they were measured, else the last that was
 * added; *out NULL: there is none. A measured record that gives the stages other names, as those of other models may,
 * is passed over; one that a person wrote is an error then. */
bool te_records_find(te_records *r, te_graph *g, const struct target *t, te_sched **out);
/* How many of them some kernel got. */
uint32_t te_records_used(const te_records *r);
#endif
