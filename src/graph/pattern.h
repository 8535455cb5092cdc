/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: which nodes a target takes as one operation of its own, as text (docs/reference/partition.md). They
 * come with a target, or from a file of the user's. */
#ifndef LATHE_GRAPH_PATTERN_H
#define LATHE_GRAPH_PATTERN_H
#include "graph/op.h"
#include "type/target.h"

#define PATTERN_NONE      UINT32_MAX
#define PATTERN_MAX_NODES 64u /* of one pattern */
#define PATTERN_MAX_VARS  256u

typedef struct pattern_extent {
    enum { EXTENT_ANY, EXTENT_NUMBER, EXTENT_SYMBOL } kind;
    int64_t number;  /* or the number of the symbol: equal ones stand for equal extents */
} pattern_extent;

/* What is asked of a value. */
typedef struct pattern_type {
    bool constant;
    bool has_number; /* every element of the constant is this number */
    double number;
    const dtype *dtypes; /* one of them; none: any */
    uint32_t n_dtypes;
    int32_t rank; /* -1: any */
    bool more;    /* the rank or more */
    const pattern_extent *extents;
} pattern_type;

/* A name of the pattern: an input, which stands for any value, or a result of one of its nodes. */
typedef struct pattern_var {
    const char *name; /* interned */
    pattern_type type;
    uint32_t node, result; /* node PATTERN_NONE: an input */
    bool leaves;           /* a result of the pattern */
} pattern_var;

typedef struct pattern_operand {
    uint32_t var; /* PATTERN_NONE: the operand must be left out */
    bool optional;
} pattern_operand;

/* X(id, sign, words of a message) */
#define PATTERN_TESTS(X)            \
    X(TEST_EQUAL, "=", "")          \
    X(TEST_OTHER, "!=", "not ")     \
    X(TEST_MOST, "<=", "at most ")  \
    X(TEST_LEAST, ">=", "at least ")

typedef enum pattern_test {
#define X(id, sign, words) id,
    PATTERN_TESTS(X)
#undef X
} pattern_test;

typedef struct pattern_attr {
    const char *name; /* interned */
    pattern_test test;
    const attr *values; /* one of them; of a list also ATTR_INT: a number for every element of it */
    uint32_t n_values;
} pattern_attr;

typedef struct pattern_node {
    const graph_op *const *ops; /* one of them */
    uint32_t n_ops;
    bool optional; /* where it is missing, its result is its first operand */
    const pattern_operand *operands;
    uint32_t n_operands;
    bool more; /* any further operands */
    const pattern_attr *attrs;
    uint32_t n_attrs;
    uint32_t first_var, n_results; /* its results are variables in a row */
} pattern_node;

typedef struct pattern_check {
    const char *name;
    target_check_fn fn;
    const uint32_t *vars;
    uint32_t n_vars;
} pattern_check;

typedef struct graph_pattern {
    const char *target, *name; /* interned: "acme", "acme.conv2d_relu" */
    src_loc loc;               /* of the name */
    bool is_operator;          /* a single node that the target takes as it is, without a function around it */
    const pattern_var *vars;
    uint32_t n_vars;
    const pattern_node *nodes;
    uint32_t n_nodes;
    uint32_t root; /* the last node: all others are found from it, and from: */
    const uint32_t *siblings; /* nodes that it does not need, each of which gives a result and reads, or what it needs
                               * reads, a value of those before */
    uint32_t n_siblings;
    const pattern_check *checks;
    uint32_t n_checks;
    const char *const *symbols; /* names of extents */
    uint32_t n_symbols, n_leaving;
} graph_pattern;

typedef struct graph_patterns {
    VEC(const graph_pattern *) list;
} graph_patterns;

/* Appends the patterns of a text. The checks that a pattern names are looked for among those of its target's row, then
 * among the built-in ones. `owner` not NULL: all of them must be of that target. Errors: DIAG_SYNTAX at line and
 * column. */
bool graph_patterns_parse(compiler *c, const char *file, const char *text, size_t len, const char *owner,
                          graph_patterns *out);
const target_check *graph_pattern_checks(void); /* built-in checks; name NULL at the end */

/* --- matching --- */

typedef enum pattern_bound { BOUND_VAR, BOUND_NODE, BOUND_SKIP, BOUND_SYMBOL } pattern_bound;

typedef struct graph_match {
    const graph_pattern *pattern;
    graph_value *values[PATTERN_MAX_VARS]; /* of each variable; NULL: left out, or not matched yet */
    graph_node *nodes[PATTERN_MAX_NODES];  /* NULL: left out, or not matched yet */
    bool skipped[PATTERN_MAX_NODES];       /* optional, and missing */
    bool bound[PATTERN_MAX_VARS];
    dim symbols[PATTERN_MAX_VARS];
    uint32_t n_matched; /* nodes */
    uint32_t steps;
    /* Why it did not match, as far as operators did: the node that was refused, and a sentence. why NULL: operators
     * differ. */
    const graph_node *refused;
    const char *why;
    uint32_t why_matched; /* nodes that fitted until then */
    uint32_t n_trail;     /* what was bound, in order, to be taken back; no longer than all there is to bind */
    struct pattern_step {
        pattern_bound kind;
        uint32_t i;
    } trail[2 * PATTERN_MAX_VARS + 2 * PATTERN_MAX_NODES];
} graph_match;

/* Where siblings of the last node are looked for: the nodes of a function, whose marks are their positions, as far as
 * PATTERN_SPAN from it. */
#define PATTERN_SPAN 1000u
typedef struct graph_around {
    const graph_func *f;
    const uint32_t *taken; /* by position; UINT32_MAX: a match may have the node */
} graph_around;

/* Whether the pattern's last node can be n. Only operators, attributes, types and named checks are asked; what else
 * must hold is the pass's business. Text of `why` is in `scratch`. around: for patterns with siblings; NULL: none
 * matches. */
bool graph_pattern_match(compiler *c, arena *scratch, const graph_pattern *p, const graph_around *around, graph_node *n,
                         graph_match *out);
#endif
