/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: named constants of a node. An operator row declares its attributes (attr_def) with type and default; a
 * node stores only those that differ from the default, in the row's order. */
#ifndef LATHE_TYPE_ATTR_H
#define LATHE_TYPE_ATTR_H
#include "type/tensor.h"

struct graph_func;

typedef enum attr_kind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_STRING,
    ATTR_DTYPE,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_STRINGS,
    ATTR_TENSOR,
    ATTR_FUNC /* a region or a callee: a function of the same module */
} attr_kind;

typedef struct attr {
    const char *name; /* interned */
    attr_kind kind;
    uint32_t n; /* ints, floats, strings */
    union {
        int64_t i;
        double f;
        const char *s; /* interned */
        dtype dt;
        const int64_t *ints;
        const double *floats;
        const char *const *strings;
        const tensor_data *tensor;
        struct graph_func *func;
    } u;
} attr;

/* One declared attribute. The default is text in the IR's notation ("1", "0.01", "\"NOTSET\"", "[]", "[0, 1]", "f32");
 * NULL: required. */
typedef struct attr_def {
    const char *name;
    attr_kind kind;
    const char *default_text;
} attr_def;

attr attr_int(compiler *c, const char *name, int64_t v);
attr attr_float(compiler *c, const char *name, double v);
attr attr_string(compiler *c, const char *name, const char *v);
attr attr_dtype(compiler *c, const char *name, dtype v);
attr attr_ints(compiler *c, const char *name, uint32_t n, const int64_t *v);  /* copies */
attr attr_floats(compiler *c, const char *name, uint32_t n, const double *v); /* copies */
attr attr_strings(compiler *c, const char *name, uint32_t n, const char *const *v);
attr attr_tensor(compiler *c, const char *name, const tensor_data *t);
attr attr_func(compiler *c, const char *name, struct graph_func *f);
uint64_t attr_hash(const attr *a); /* of the process: equal attributes have equal ones */
bool attr_equal(const attr *a, const attr *b); /* names included; tensors by value, functions by identity */
#endif
