/* SPDX-License-Identifier: Apache-2.0 */
/* C identifiers for variables and buffers: unique among the names in scope, never a keyword or a library name. */
#include "codegen/c/emit.h"

#include <ctype.h>
#include <string.h>

static const char *const taken[] = {
    "auto",    "break",    "case",     "char",      "const",    "continue", "default", "do",     "double",
    "else",    "enum",     "extern",   "float",     "for",      "goto",     "if",      "inline", "int",
    "long",    "register", "restrict", "return",    "short",    "signed",   "sizeof",  "static", "struct",
    "switch",  "typedef",  "union",    "unsigned",  "void",     "volatile", "while",   "asm",    "typeof",
    "part",    "parts",    "bool",     "true",      "false",    "NULL",     "main",    "y0",     "y1",
    "yn",      "j0",       "j1",       "jn",        "gamma",    "exp",      "log",     "pow",    "floor",
    "ceil",    "erf",      "sqrt",     "sin",       "cos",      "tan",      "tanh",    "rint",   "trunc",
    "index",   "signgam",  "and",      "or",        "not",      "xor",      "new",     "class",  "this",
    "delete",  "private",  "public",   "template",  "operator", "catch",    "try",     "throw",  "namespace",
    "using",   "virtual",  "friend",   "protected", "export",   "linux",    "unix",    "errno",  "assert",
    "alignas", "alignof",  "nullptr",  "constexpr", "typename", "explicit", "mutable",
};

const char *names_identifier(arena *a, const char *s)
{
    size_t n = strlen(s);
    bool prefix = n == 0 || isdigit((unsigned char)s[0]) || s[0] == '_';
    char *out = arena_printf(a, "%s%s", prefix ? "v" : "", s);
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) || (unsigned char)*p > 127)
            *p = '_';
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(out, taken[i]) == 0)
            return arena_printf(a, "%s_", out);
    return out;
}

static bool in_scope(const c_emit *e, const char *name)
{
    for (uint32_t i = 0; i < e->names.len; i++)
        if (strcmp(e->names.data[i].text, name) == 0)
            return true;
    return false;
}

const char *names_push(c_emit *e, const void *key, const char *wanted, bool is_index)
{
    const char *base = names_identifier(e->tmp, wanted ? wanted : "v"), *name = base;
    for (uint32_t k = 1; in_scope(e, name); k++)
        name = arena_printf(e->tmp, "%s_%u", base, k);
    vec_push(e->tmp, &e->names, ((c_scope_name){key, name, is_index}));
    return name;
}
