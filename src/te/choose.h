/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for schedules, as rows, and the choice among them: of those of a family that take a computation the cheapest
 * one that fits. A rule says what it takes, what that costs by a count of cycles, and which loops it asks for. Those
 * for any processor stand in te/rule, others in their folders (src/target). `lathe schedule MODEL KERNEL` prints what
 * was compared. */
#ifndef LATHE_TE_CHOOSE_H
#define LATHE_TE_CHOOSE_H
#include "te/te_op.h"

/* A computation that waits for its schedule: the arguments of a te_schedule_hook. */
typedef struct te_case {
    te_sched *s;
    const struct target *t;
    const graph_node *n;
    te_node *anchor, *last;
} te_case;

typedef enum te_family {
    TE_ANY, /* of a rule: it takes the computations of all families */
#define X(id, hook, own_lines) id,
    TE_FAMILIES(X)
#undef X
} te_family;

typedef struct te_rule {
    const char *name;
    te_family family;
    const char *help; /* the loops that it asks for */
    /* What it takes: properties of the computation and of the processor. Changes nothing. NULL: the whole family. */
    bool (*takes)(const te_case *x);
    /* Cycles of one worker for one product, or what else there is one of for each number that is read. */
    double (*cost)(const te_case *x);
    /* False: it does not fit after all, and nothing was changed; or after a diagnostic. */
    bool (*schedule)(const te_case *x);
} te_rule;

typedef struct te_rules {
    const te_rule *rows;
    uint32_t n;
} te_rules;

/* False after a diagnostic. */
bool te_choose(const te_case *x, te_family family);
te_family te_family_of(te_schedule_hook hook); /* TE_ANY: no hook of TE_FAMILIES */
bool te_keeps_lines(te_family family);         /* the third column of TE_FAMILIES */
/* As comments: what te_choose compared for s, the chosen rule first; or where the record of s stands. They are
 * indented: a remark at the beginning of a line is the name of a kernel. */
void te_print_tried(writer *w, const te_sched *s);

/* Rules of files of te/rule. */
extern const te_rules te_rules_attention, te_rules_blocked, te_rules_conv, te_rules_fft, te_rules_lines, te_rules_pairs,
    te_rules_plain, te_rules_product, te_rules_wide, te_rules_winograd;
#define TARGET_RULES(name) extern const te_rules te_rules_##name;
#include "target/targets.def"
#endif
