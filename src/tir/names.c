/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the loop IR's text. A name that is printed once keeps its wish, so that a printed text prints again as it
 * is. */
#include "tir/names.h"
#include "tir/build.h"
#include "tir/family.h"

#include "tir/node.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool tir_dtype_known(dtype t)
{
    return dtype_usable(t) || t == DT_HANDLE || t == DT_STRING;
}

static const tir_operations *const operations[] = {
#define TARGET_OPERATIONS(name) &tir_operations_##name,
#include "target/targets.def"
    NULL};

int tir_operation_arity(const char *name)
{
    for (const tir_operations *const *d = operations; *d; d++)
        for (uint32_t i = 0; i < (*d)->n; i++)
            if (strcmp(name, (*d)->rows[i].name) == 0)
                return (int)(*d)->rows[i].n_args;
    return -1;
}

tir_expr_ref tir_overwritten(tir_expr_ref call)
{
    tir_expr_ref to = NULL;
    for (const tir_operations *const *d = operations; *d && !to; d++)
        to = (*d)->overwritten ? (*d)->overwritten(call) : NULL;
    return to;
}

const char *tir_list_types(arena *a)
{
    const char *list = "";
    for (int t = 0; t < DT_COUNT; t++)
        if (tir_dtype_known((dtype)t))
            list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", dtype_full_name((dtype)t));
    return list;
}

bool tir_type_from_text(const char *s, tir_type *out)
{
    size_t n = strcspn(s, "x"); /* none that is known has an x */
    dtype dt;
    if (!dtype_parse_full(s, n, &dt) || !tir_dtype_known(dt))
        return false;
    *out = tir_scalar(dt);
    s += n;
    if (*s == 0)
        return true;
    if (!isdigit((unsigned char)s[1]) || strlen(s) > 4)
        return false;
    char *end;
    long lanes = strtol(s + 1, &end, 10);
    out->lanes = (uint16_t)lanes;
    return *end == 0 && lanes > 1 && lanes <= (long)TIR_MAX_LANES;
}

void tir_print_type(writer *w, tir_type t)
{
    w_str(w, dtype_full_name(t.dt));
    if (t.lanes > 1)
        w_fmt(w, "x%u", t.lanes);
}

bool tir_is_reserved(const char *s)
{
    static const char *const words[] = {"primfn", "for",       "if",       "else", "let",   "allocate",
                                        "attr",   "assert",    "evaluate", "True", "False", "select",
                                        "cast",   "broadcast", "ramp",     "inf",  "nan"};
    tir_type t;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], s) == 0)
            return true;
    for (int op = TIR_OP_NONE + 1; op < TIR_OP_COUNT; op++)
        if (strcmp(tir_op_text((tir_op)op), s) == 0)
            return true;
    return tir_type_from_text(s, &t);
}

void tir_names_init(tir_names *n, arena *a)
{
    n->a = a;
    n->texts = interner_new(a);
    tir_map_init(&n->given, a);
    tir_map_init(&n->counters, a);
}

/* The wish as an identifier of the text. */
static const char *clean(tir_names *n, const char *wish)
{
    size_t len = wish ? strlen(wish) : 0;
    bool lead = len == 0 || (!isalpha((unsigned char)wish[0]) && wish[0] != '_');
    char *s = arena_printf(n->a, "%s%s", lead ? "_" : "", len ? wish : "");
    for (char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.')
            *p = '_';
    return tir_is_reserved(s) ? arena_printf(n->a, "%s_", s) : s;
}

const char *tir_names_get(tir_names *n, const void *key, const char *wish)
{
    const char *known = tir_map_get(&n->given, key);
    if (known)
        return known;
    const char *base = intern(n->texts, clean(n, wish)), *name = base;
    uintptr_t used = (uintptr_t)tir_map_get(&n->counters, base);
    for (uintptr_t k = used; k > 0; k++) { /* used > 0: the base itself is taken; k - 1 suffixes were tried */
        name = intern(n->texts, arena_printf(n->a, "%s_%u", base, (unsigned)k));
        used = k;
        if (!tir_map_get(&n->counters, name))
            break;
    }
    if (name != base)
        tir_map_put(&n->counters, name, (const void *)(uintptr_t)1);
    tir_map_put(&n->counters, base, (const void *)(used + 1));
    tir_map_put(&n->given, key, name);
    return name;
}
