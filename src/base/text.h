/* SPDX-License-Identifier: Apache-2.0 */
/* Text out: a growing buffer with indentation, used by every printer and by the C writer. Text in: the one lexer that
 * the graph, loop and schedule parsers share. Also interned strings and overflow-checked sizes. */
#ifndef LATHE_BASE_TEXT_H
#define LATHE_BASE_TEXT_H
#include "base/arena.h"
#include "base/diag.h"

typedef struct writer {
    arena *a;
    char *data; /* NUL-terminated */
    size_t len, cap;
    uint32_t indent;   /* current depth */
    uint32_t step;     /* spaces a level, set by writer_init to 2 */
    bool line_started; /* indentation of the current line is written */
} writer;

void writer_init(writer *w, arena *a);
void w_str(writer *w, const char *s); /* newline aware: indents lines */
void w_fmt(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void w_line(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* w_fmt and a newline */
void w_open(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* line ending in " {", indents */
void w_close(writer *w, const char *tail); /* dedents, "}" and tail and newline */
/* "..." with escapes that C and the lexer read alike; plain text stays as it is. */
void w_quoted(writer *w, const char *s, size_t n);
/* A name among others with ", " between them: in quotes where it has a comma or a quote of its own. */
void w_item(writer *w, const char *name);
/* Sigil and name ("%x", "@main"), the name in quotes when the lexer needs them. */
void w_name(writer *w, char sigil, const char *name);
/* Fewest digits that read back as the same value of `bits` 32 or 64, always with a '.' or 'e'; "inf", "-inf", "nan". */
void w_float(writer *w, double v, uint32_t bits);

/* Length of the UTF-8 sequence at s, 0 when the bytes are none (RFC 3629: no surrogates, shortest form); n > 0. */
size_t utf8_length(const char *s, size_t n);
/* The character that such a sequence stands for. */
uint32_t utf8_code(const char *s);
/* As utf8_length, and 0 as well for characters that command a terminal or an editor: controls of ASCII and Unicode,
 * line ends, marks that turn the direction of text. */
size_t text_plain_length(const char *s, size_t n);
/* Makes one line of s to show to a person, in place: line ends and tabs become spaces, other characters that are not
 * plain become '?'. Returns s. */
char *text_line(char *s);
/* A word as a shell reads it: in quotes where it needs them. */
const char *text_in_shell(arena *a, const char *text);

/* --- interned strings: equal text, equal pointer --- */
typedef struct interner interner;
interner *interner_new(arena *a);
const char *intern(interner *in, const char *s);
const char *intern_n(interner *in, const char *s, size_t n);
/* `want`, or want_1, want_2, ...: the first that is free, and is taken from then on. The map keeps the next suffix of
 * each name, so that many equal names cost one look-up each. */
struct ptr_map;
const char *intern_unique(interner *in, struct ptr_map *taken, const char *want);

/* --- lexer --- */
typedef enum token_kind {
    TOK_END,
    TOK_IDENT,  /* [A-Za-z_][A-Za-z0-9_.]*  */
    TOK_VAR,    /* %name, or %"any text"; `text` without the sigil */
    TOK_SYMBOL, /* @name, or @"any text" */
    TOK_INT,    /* decimal or 0x, up to INT64_MAX; signs are punctuation: lexer_int reads both */
    TOK_UINT,   /* the same above INT64_MAX: `i` has the bits of the uint64_t */
    TOK_FLOAT,  /* 1.5, 1e-3, inf, nan; overflow is an error */
    TOK_STRING, /* unescaped in `text`, `len` bytes */
    TOK_PUNCT   /* ( ) [ ] { } < > , : ; = + - * / % ! & | ^ ? ~ @ -> == != <= >= && || << >>; // starts a comment */
} token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* interned, NUL-terminated */
    size_t len;
    int64_t i;
    double f;
    src_loc loc;
} token;

typedef struct lexer {
    arena *a;
    interner *names;
    diags *d;
    const char *file;
    const char *pos, *end, *line_start;
    uint32_t line;
    uint32_t depth; /* nesting, for parsers: lexer_enter and lexer_leave */
    token tok;      /* the current token */
    bool failed;    /* set by the first lexical or syntax error; from then on the token is TOK_END, and quiet */
} lexer;
#define LEXER_MAX_DEPTH 200u

/* Text need not be NUL-terminated; the first token is read. A text was read well when its parser said so and `failed`
 * is not set: what follows its last token may be no token. */
void lexer_init(lexer *l, arena *a, interner *names, diags *d, const char *file, const char *text, size_t len);
void lexer_next(lexer *l);
bool lexer_is(const lexer *l, const char *punct_or_ident);
bool lexer_accept(lexer *l, const char *punct_or_ident); /* consumes when it matches */
bool lexer_expect(lexer *l, const char *punct_or_ident); /* or an error "expected X before Y"; ">" splits ">>" */
/* At the current token; false. Only the first error of a text is reported. */
bool lexer_error(lexer *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Numbers with an optional sign. lexer_int refuses what int64_t cannot hold; lexer_float takes integers too. */
bool lexer_int(lexer *l, int64_t *out);
bool lexer_float(lexer *l, double *out);
bool lexer_name(lexer *l, token_kind kind, const char **out); /* the text of a token of that kind, consumed */
/* One level deeper, or an error above LEXER_MAX_DEPTH: every parser that recurses calls both. */
bool lexer_enter(lexer *l);
void lexer_leave(lexer *l);

/* --- sizes from files --- */
static inline bool size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool i64_mul(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool i64_add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
#endif
