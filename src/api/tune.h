/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of tuning share: kernels (tune.c), the network as a whole (tune_network.c), the verb (tune_verb.c). */
#ifndef LATHE_API_TUNE_H
#define LATHE_API_TUNE_H
#include "base/ptr_map.h"
#include "api/ask.h"
#include "driver/measure_remote.h"
#include "driver/tune_log.h"

enum { TUNING_LINE = 1 << 16 };

typedef struct tuning {
    ask *x;
    const char *model, *file; /* file: of the records */
    compile_options options;  /* without that file */
    bool is_there;            /* the file */
    uint32_t records;         /* that it held when this call began */
    long shard, shards, most, limit; /* limit: seconds of a kernel */
    double deadline; /* 0: none */
    const run_remote_options *remote; /* where it is measured; NULL: by `command` */
    process_words command;
    process measuring;
    const char *dir; /* for its temporary files */
    bool runs;       /* measuring */
    const char *built_by; /* the last answer's compiler */
    uint32_t tuned, found, failed;
    ptr_map tried; /* computations, interned: each is measured once, whatever comes of it */
    bool counted;  /* found: those of the network that the file gives */
    double rule_seconds, seconds; /* of those that were tuned */
    bool over;        /* the budget, and that was said */
    uint32_t changed; /* forms that are not those of the rules */
    double network_rule_seconds, network_seconds; /* of a run of it; 0: not measured */
} tuning;

/* Compiles the model with the records of the file (by_rule: without), and with those of `trial` (NULL: none). */
bool tuning_compile(const tuning *t, compiler *c, compile_emit emit, bool by_rule, const char *trial,
                    compile_result *r);
/* Texts, interned in the tuner's own context. */
bool tuning_has(const tuning *t, const ptr_map *texts, const char *text);
void tuning_add(tuning *t, ptr_map *texts, const char *text);
/* Measures what r has schedules of and the file does not; r was compiled in c. */
bool tuning_kernels(tuning *t, compiler *c, const compile_result *r);
/* Packages to the other side, its answer back; b NULL: candidates, else two networks. False after a diagnostic. That it
 * ended, or took too long, is an answer. */
bool tuning_ask(tuning *t, compiler *c, const artifact *a, const artifact *b, measure_answer *out);
/* A folder that is there until the tuner ends; NULL after a diagnostic. */
const char *tuning_dir(tuning *t);
bool tuning_keep(tuning *t, const writer *line);
/* Whether the budget is spent; says so. */
bool tuning_is_over(tuning *t);
/* All of it: kernels; forms of operators, by runs of the whole network; the rules' network against the tuned one. */
bool tune_network(tuning *t);
/* Tunes what is asked for, and writes the records; false after a diagnostic. Lines that say how it goes are in x->out
 * from time to time (ask_flush). */
bool tune_verb(ask *x, tuning *out);
void tune_verb_write_json(const tuning *t, writer *w);
#endif
