/* SPDX-License-Identifier: Apache-2.0 */
/* C identifiers made from names of a model: never a keyword, a macro, a type or a function of the headers that a
 * package includes, nor a name that the generated code itself uses; unique among the names in scope. */
#include "codegen/c/emit.h"
#include "tir/build.h"

#include <string.h>

/* clang-format off */
static const char *const words[] = {
    /* keywords of C up to C23, words that its headers define, and asm, which compilers add */
    "alignas", "alignof", "asm", "auto", "bool", "break", "case", "char", "complex", "const", "constexpr", "continue",
    "default", "do", "double", "else", "enum", "extern", "false", "float", "for", "fortran", "goto", "if",
    "imaginary", "inline", "int", "long", "noreturn", "nullptr", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "static_assert", "struct", "switch", "thread_local", "true", "typedef", "typeof",
    "typeof_unqual", "union", "unsigned", "void", "volatile", "while",
    /* keywords of C++ up to C++23 and those proposed, alternative tokens: both languages read the header */
    "and", "and_eq", "atomic_cancel", "atomic_commit", "atomic_noexcept", "bitand", "bitor", "catch", "class",
    "co_await", "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constinit", "decltype",
    "delete", "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "not",
    "not_eq", "operator", "or", "or_eq", "private", "protected", "public", "reflexpr", "reinterpret_cast", "requires",
    "static_cast", "synchronized", "template", "this", "throw", "try", "typeid", "typename", "using", "virtual",
    "xor", "xor_eq",
    /* macros of the standard headers, of POSIX, of Windows and of compilers without -std that are not in capitals */
    "assert", "cdecl", "errno", "far", "huge", "I", "i386", "IN", "interface", "iscanonical", "iseqsig", "isgreater",
    "isgreaterequal", "isless", "islessequal", "islessgreater", "issignaling", "issubnormal", "isunordered", "iszero",
    "kill_dependency", "linux", "major", "makedev", "math_errhandling", "minor", "mips", "near", "OUT", "pascal",
    "pixel", "setjmp", "small", "st_atime", "st_ctime", "st_mtime", "stderr", "stdin", "stdout", "sun", "unix",
    "unreachable", "vax",
    /* what generated code uses itself */
    "args", "main", "part", "parts", "undefined",
};
/* clang-format on */

/* Functions and function-like macros of math.h, also with an f or an l behind, and of string.h and stdio.h. */
static const char *const functions[] = {
    "abs",      "acos",      "acosh",       "asin",   "asinh",     "atan",       "atan2",      "atanh",    "cbrt",
    "ceil",     "copysign",  "cos",         "cosh",   "drem",      "erf",        "erfc",       "exp",      "exp10",
    "exp2",     "expm1",     "fabs",        "fdim",   "finite",    "floor",      "fma",        "fmax",     "fmin",
    "fmod",     "frexp",     "gamma",       "hypot",  "ilogb",     "index",      "isfinite",   "isinf",    "isnan",
    "isnormal", "j0",        "j1",          "jn",     "ldexp",     "lgamma",     "llrint",     "llround",  "log",
    "log10",    "log1p",     "log2",        "logb",   "lrint",     "lround",     "memchr",     "memcmp",   "memcpy",
    "memmove",  "memset",    "modf",        "nan",    "nearbyint", "nextafter",  "nexttoward", "offsetof", "pow",
    "printf",   "remainder", "remquo",      "rindex", "rint",      "round",      "scalb",      "scalbln",  "scalbn",
    "signbit",  "signgam",   "significand", "sin",    "sincos",    "sinh",       "sqrt",       "tan",      "tanh",
    "tgamma",   "trunc",     "y0",          "y1",     "yn",        "fpclassify",
};

static bool is_word(const char *s)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(s, words[i]) == 0)
            return true;
    return false;
}

static bool is_function(const char *s)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        size_t n = strlen(functions[i]);
        if (strncmp(s, functions[i], n) == 0 && (s[n] == '\0' || ((s[n] == 'f' || s[n] == 'l') && s[n + 1] == '\0')))
            return true;
    }
    return strncmp(s, "str", 3) == 0 || strncmp(s, "mem", 3) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Three capitals or more and nothing small: INT32_MAX, NAN. The headers define no shorter ones, and X and Y are the
 * commonest names of inputs. */
static bool is_macro(const char *s)
{
    size_t n = 0;
    for (; is_capital(s[n]) || is_digit(s[n]) || s[n] == '_'; n++) {
    }
    return n > 2 && s[n] == '\0';
}

/* Vector types and their functions: f32x8, f32x8_load. */
static bool is_vector(const char *s)
{
    for (int dt = 0; dt < DT_COUNT; dt++) {
        const char *name = dtype_name((dtype)dt);
        size_t n = strlen(name);
        if (strncmp(s, name, n) == 0 && s[n] == 'x' && is_digit(s[n + 1]))
            return true;
    }
    return false;
}

static bool is_ours(const char *s)
{
    static const char *const prefixes[] = {"lathe", "LATHE", "tvm", "TVM", "wrapped_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(s, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool is_type(const char *s)
{
    size_t n = strlen(s);
    return n > 2 && strcmp(s + n - 2, "_t") == 0;
}

const char *codegen_c_identifier(arena *a, const char *s)
{
    char *out = arena_printf(a, "%s%s", *s == '\0' || is_digit(*s) || *s == '_' ? "v" : "", s);
    for (char *p = out; *p; p++)
        if (!is_digit(*p) && !is_capital(*p) && !(*p >= 'a' && *p <= 'z'))
            *p = '_';
    if (*out == '_' || is_word(out) || is_function(out) || is_macro(out) || is_vector(out) || is_ours(out) ||
        is_type(out))
        return arena_printf(a, "v_%s", out);
    return out;
}

/* A name stands once at most in all open scopes: where it was put last, or nowhere. */
static const c_scope_name *find(const c_emit *e, const void *key)
{
    uintptr_t at = (uintptr_t)tir_map_get(&e->places, key);
    return at > 0 && at <= e->names.len ? &e->names.data[at - 1] : NULL;
}

const c_scope_name *names_find(const c_emit *e, const void *key)
{
    const c_scope_name *n = find(e, key);
    return n && n->key == key ? n : NULL;
}

static bool in_scope(const c_emit *e, const char *name)
{
    const c_scope_name *n = find(e, name);
    return n && n->text == name;
}

static void push(c_emit *e, const void *key, const char *name, bool is_index)
{
    vec_push(e->tmp, &e->names, ((c_scope_name){key, name, is_index}));
    tir_map_put(&e->places, key, (const void *)(uintptr_t)e->names.len);
    tir_map_put(&e->places, name, (const void *)(uintptr_t)e->names.len);
}

/* A name, and behind each of the endings, that nothing in scope has. */
static const char *free_name(c_emit *e, const char *wanted, uint32_t n, const char *const *endings)
{
    interner *texts = e->c->names;
    const char *base = intern(texts, codegen_c_identifier(e->tmp, wanted ? wanted : "v")), *name = base;
    for (uint32_t k = 1;; k++) {
        bool taken = in_scope(e, name);
        for (uint32_t i = 0; i < n && !taken; i++)
            taken = in_scope(e, intern(texts, arena_printf(e->tmp, "%s%s", name, endings[i])));
        if (!taken)
            return name;
        name = intern(texts, arena_printf(e->tmp, "%s_%u", base, k));
    }
}

const char *names_push(c_emit *e, const void *key, const char *wanted, bool is_index)
{
    const char *name = free_name(e, wanted, 0, NULL);
    push(e, key, name, is_index);
    return name;
}

/* Names that stand beside another one have themselves as a key. */
static const char *push_all(c_emit *e, const void *key, const char *wanted, bool is_index, uint32_t n,
                            const char *const *endings)
{
    const char *name = free_name(e, wanted, n, endings);
    push(e, key, name, is_index);
    for (uint32_t i = 0; i < n; i++) {
        const char *beside = intern(e->c->names, arena_printf(e->tmp, "%s%s", name, endings[i]));
        push(e, beside, beside, false);
    }
    return name;
}

const char *names_push_registers(c_emit *e, const c_registers *r)
{
    const int64_t count = tir_buffer_count(r->buffer) / r->lanes;
    const char **endings = arena_array(e->tmp, const char *, (size_t)count + 1u);
    uint32_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (r->used[i])
            endings[n++] = arena_printf(e->tmp, "_%lld", (long long)i);
    return push_all(e, r->buffer, r->buffer->name, false, n, endings);
}

const char *names_push_cut(c_emit *e, const void *key, const char *wanted)
{
    static const char *const end[] = {"_end"};
    return push_all(e, key, wanted, true, 1, end);
}
