/* SPDX-License-Identifier: Apache-2.0 */
/* What the tuner keeps: text, one JSON object a line, so that files are merged by putting one behind the other. A
 * record holds computation and schedule whole; --schedules reads it as it reads the texts of `lathe schedule`. */
#ifndef LATHE_DRIVER_TUNE_LOG_H
#define LATHE_DRIVER_TUNE_LOG_H
#include "base/file.h"
#include "te/records.h"

typedef struct tune_record {
    const char *kernel;  /* in the model that it was tuned for; for people */
    const char *target;  /* row of the target table */
    const char *built_by; /* the C compiler, as it says */
    uint32_t threads;    /* that one call had */
    uint32_t measured;   /* candidates that were right */
    double seconds, rule_seconds; /* of a call: with this schedule, with the rule's */
    const char *computation, *schedule;
} tune_record;

/* A form of an operator (graph/choice.h), from runs of a whole network. */
typedef struct tune_form {
    const char *model; /* its file; for people */
    const char *target, *built_by;
    uint32_t threads; /* of the network */
    double seconds, rule_seconds; /* of a run: with this form, with the rule's */
    const char *node, *form;
} tune_form;

void tune_log_line(writer *w, const tune_record *r);
void tune_log_form(writer *w, const tune_form *r);
/* The bytes of whole records: a last line that was cut off is none. */
size_t tune_log_whole(span text);
uint32_t tune_log_count(span text); /* of its records, which are whole */
bool tune_log_is(span text); /* rather than computations */
/* Adds all records. Errors, with their line: no JSON, a field is missing, a target that is not there, and those of
 * te_records_add. */
bool tune_log_read(compiler *c, const char *file, span text, te_records *out);
#endif
