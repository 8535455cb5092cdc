/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators, tflite_ops.def, and the operands that its rows ask for. */
#include "frontend/tflite/tflite_import.h"

#include <string.h>

static const tflite_op rows[] = {
#define TFLITE_OP(code, name, version, operands, types, options, import, target) \
    {code, version, name, operands, types, options, import, target},
#define TFLITE_NAME(code, name)
#include "frontend/tflite/tflite_ops.def"
#undef TFLITE_OP
#undef TFLITE_NAME
};

const tflite_op *tflite_ops_find(int64_t code, span custom)
{
    const bool is_custom = code == TFLITE_CUSTOM_CODE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && (!is_custom || (strlen(rows[i].name) == custom.len &&
                                                    memcmp(rows[i].name, custom.data, custom.len) == 0)))
            return &rows[i];
    return NULL;
}

const char *tflite_ops_name(int64_t code)
{
    static const struct {
        int64_t code;
        const char *name;
    } names[] = {
#define TFLITE_OP(code, name, version, operands, types, options, import, target) {code, name},
#define TFLITE_NAME(code, name) {code, name},
#include "frontend/tflite/tflite_ops.def"
#undef TFLITE_OP
#undef TFLITE_NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return NULL;
}

/* One entry of the list of operands. */
typedef struct entry {
    const char *name;
    int len;
    bool optional, repeated;
} entry;

static bool next_entry(const char **list, entry *out)
{
    const char *s = *list + strspn(*list, " ");
    *out = (entry){.name = s, .len = (int)strcspn(s, " ?+*")};
    s += out->len;
    out->optional = *s == '?' || *s == '*';
    out->repeated = *s == '+' || *s == '*';
    *list = s + (out->optional || out->repeated);
    return out->len > 0;
}

bool tflite_check_operands(tflite_node *n)
{
    const char *list = n->row->operands;
    entry e;
    uint32_t i = 0;
    bool more = false, all = false; /* all: of those that follow none is left out */
    while (next_entry(&list, &e)) {
        const bool there = tflite_operand(n, i) != NULL;
        if (!there && !e.optional)
            return tflite_fail(n, DIAG_FORMAT, "operand %u ('%.*s') is missing", i, e.len, e.name);
        more |= e.repeated;
        all |= e.repeated && !e.optional;
        i++;
    }
    for (uint32_t k = i; all && k < n->n_in; k++)
        if (!tflite_operand(n, k))
            return tflite_fail(n, DIAG_FORMAT, "operand %u is missing", k);
    if (!more && n->n_in > i)
        return tflite_fail(n, DIAG_FORMAT, "the operator has %u operands; its operands are: %s", n->n_in,
                           n->row->operands);
    return n->n_out > 0 || strcmp(n->row->target, "no result") == 0 ||
           tflite_fail(n, DIAG_FORMAT, "the operator has no result");
}
