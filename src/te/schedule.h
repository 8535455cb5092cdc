/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as values: lists of primitives on stages, printable and parsable (schedule_text.c). They only record;
 * checks happen when a schedule is applied (lower.h). */
#ifndef LATHE_TE_SCHEDULE_H
#define LATHE_TE_SCHEDULE_H
#include "te/te.h"

/* Primitives and their fields are rows of te/primitives.def; docs/reference/schedule.md describes each. te_prim_kind
 * has one value a row, te_NAME_args the row's fields. */
typedef struct te_names {
    const char *const *data;
    uint32_t len;
} te_names;
typedef struct te_place {
    const char *stage, *axis;
} te_place;
typedef struct te_factor {
    int64_t n;
    bool is_parts; /* n is the outer extent, else the inner one */
} te_factor;

#define STAGE
#define AXIS(p, m)   const char *m;
#define ORDER(p, m)  te_names m;
#define PLACE(p, m)  te_place m;
#define WORD(p, m)   const char *m;
#define STRING(p, m) const char *m;
#define NUMBER(p, m) int64_t m;
#define FACTOR(p, m) te_factor m;
#define NEW(p, m)    const char *m;
typedef enum te_prim_kind {
#define PRIMITIVE(id, name, fields) id,
#include "te/primitives.def"
#undef PRIMITIVE
} te_prim_kind;
#define PRIMITIVE(id, name, fields)   \
    typedef struct te_##name##_args { \
        const char *stage;            \
        fields                        \
    } te_##name##_args;
#include "te/primitives.def"
#undef PRIMITIVE
#undef STAGE
#undef AXIS
#undef ORDER
#undef PLACE
#undef WORD
#undef STRING
#undef NUMBER
#undef FACTOR
#undef NEW

/* One primitive. All names are interned; every member of the union starts with the stage. */
typedef struct te_prim {
    te_prim_kind kind;
    src_loc loc;
    union {
        const char *stage;
#define PRIMITIVE(id, name, fields) te_##name##_args name;
#include "te/primitives.def"
#undef PRIMITIVE
    } u;
} te_prim;

/* A rule that took the computation, and whether it fitted (te/choose.h). */
typedef struct te_tried {
    const struct te_rule *rule;
    double cost;
    bool refused;
} te_tried;

typedef struct te_sched {
    compiler *c;
    te_graph *g;
    VEC(te_prim) prims;
    VEC(te_tried) tried; /* by te_choose */
    const char *origin; /* FILE:LINE of a schedule beside the model; NULL: not one of these */
} te_sched;

te_sched *te_sched_new(te_graph *g);
/* Convenience appenders: they only record; checks happen when the schedule is applied. Names given by the caller. */
void te_sched_split(te_sched *s, const char *stage, const char *axis, int64_t factor, const char *outer,
                    const char *inner);
void te_sched_fuse(te_sched *s, const char *stage, const char *a, const char *b, const char *fused);
void te_sched_reorder(te_sched *s, const char *stage, uint32_t n, const char *const *axes);
void te_sched_compute_at(te_sched *s, const char *stage, const char *consumer, const char *axis);
void te_sched_compute_inline(te_sched *s, const char *stage);
void te_sched_cache_write(te_sched *s, const char *stage, const char *scope, const char *new_stage);
void te_sched_rfactor(te_sched *s, const char *stage, const char *axis, const char *new_stage);
void te_sched_cache_read(te_sched *s, const char *stage, const char *scope, const char *reader, const char *new_stage);
void te_sched_set_scope(te_sched *s, const char *stage, const char *scope);
void te_sched_annotate(te_sched *s, te_prim_kind kind, const char *stage,
                       const char *axis); /* vectorize unroll parallel vthread */
void te_sched_pragma(te_sched *s, const char *stage, const char *axis, const char *key, int64_t value);
void te_sched_tensorize(te_sched *s, const char *stage, const char *axis, const char *intrin);
void te_sched_rolling_buffer(te_sched *s, const char *stage);
/* In the stage's buffer, elements along the axis are a multiple of `factor` apart, and `offset` more. */
void te_sched_storage_align(te_sched *s, const char *stage, const char *axis, int64_t factor, int64_t offset);
#define TE_MOST_ALIGN 65536 /* the largest factor */
/* In the stage's buffer, tiles of axes y by x lie one behind the other. */
void te_sched_storage_tile(te_sched *s, const char *stage, const char *y, const char *x, int64_t y_factor,
                           int64_t x_factor);
/* While one iteration of `consumer.place` runs, the iterations of loop `axis` inside it fetch what it will read next of
 * a parameter of the function. */
void te_sched_prefetch(te_sched *s, const char *stage, const char *axis, const char *tensor, const char *consumer,
                       const char *place);
void te_sched_print(writer *w, const te_sched *s);
bool te_sched_parse(te_graph *g, const char *file, const char *text, size_t len, te_sched **out);
#endif
