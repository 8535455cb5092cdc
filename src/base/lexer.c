/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer that all text forms share. Any bytes are safe: every read is checked against the end. */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int peek(const lexer *l, size_t ahead)
{
    return (size_t)(l->end - l->pos) > ahead ? (unsigned char)l->pos[ahead] : -1;
}

/* Not those of ctype.h, which ask the locale. */
static bool is_digit(int ch)
{
    return ch >= '0' && ch <= '9';
}

static bool is_letter(int ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_word(int ch)
{
    return is_letter(ch) || is_digit(ch) || ch == '.';
}

static int hex_digit(int ch)
{
    if (is_digit(ch))
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

static src_loc here(const lexer *l)
{
    src_loc loc = src_loc_none();
    loc.file = l->file;
    loc.line = l->line;
    loc.col = (uint32_t)(l->pos - l->line_start) + 1;
    return loc;
}

static void skip_space(lexer *l)
{
    for (;;) {
        int ch = peek(l, 0);
        if (ch == '\n') {
            l->line++;
            l->line_start = ++l->pos;
        } else if (ch == ' ' || ch == '\t' || ch == '\r') {
            l->pos++;
        } else if (ch == '/' && peek(l, 1) == '/') {
            while (peek(l, 0) >= 0 && peek(l, 0) != '\n')
                l->pos++;
        } else {
            return;
        }
    }
}

bool lexer_error(lexer *l, const char *fmt, ...)
{
    if (l->failed)
        return false; /* one syntax error; what follows would be noise */
    va_list ap;
    char text[2001];
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->failed = true;
    l->tok.kind = TOK_END;
    l->tok.text = "";
    l->tok.len = 0;
    return diag_error(l->d, DIAG_SYNTAX, l->tok.loc, "%s", text);
}

static void word(lexer *l, token_kind kind)
{
    const char *start = l->pos;
    while (is_word(peek(l, 0)))
        l->pos++;
    l->tok.kind = kind;
    l->tok.len = (size_t)(l->pos - start);
    l->tok.text = intern_n(l->names, start, l->tok.len);
}

/* --- strings --- */

/* The closing quote of the string whose opening quote is at pos; NULL: none on this line. */
static const char *find_close(const lexer *l)
{
    for (const char *s = l->pos + 1; s < l->end && *s != '\n'; s++) {
        if (*s == '"')
            return s;
        if (*s == '\\' && l->end - s > 1 && s[1] != '\n')
            s++;
    }
    return NULL;
}

static int octal_escape(lexer *l)
{
    int v = 0;
    for (int i = 0; i < 3 && peek(l, 0) >= '0' && peek(l, 0) <= '7'; i++, l->pos++)
        v = v * 8 + peek(l, 0) - '0';
    return v <= 255 ? v : -1;
}

static int hex_escape(lexer *l)
{
    int high = hex_digit(peek(l, 0)), low = hex_digit(peek(l, 1));
    l->pos += high >= 0 && low >= 0 ? 2 : 0;
    return high >= 0 && low >= 0 ? high * 16 + low : -1;
}

/* pos is after the backslash; -1: no such escape */
static int escape(lexer *l)
{
    int ch = peek(l, 0);
    if (ch >= '0' && ch <= '7')
        return octal_escape(l);
    l->pos++;
    switch (ch) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'x': return hex_escape(l);
    case '"':
    case '\\':
    case '?': return ch;
    default: return -1;
    }
}

/* From the opening quote at pos to behind the closing one. */
static void quoted(lexer *l, token_kind kind)
{
    const char *close = find_close(l);
    if (!close) {
        (void)lexer_error(l, "the string has no closing quote on its line");
        return;
    }
    l->pos++;
    size_t n = 0;
    char *text = arena_alloc(l->a, (size_t)(close - l->pos) + 1, 1); /* no longer than the text that is in memory */
    while (l->pos < close) {
        int ch = (unsigned char)*l->pos++;
        if (ch == '\\' && (ch = escape(l)) < 0) {
            l->pos--;
            l->tok.loc = here(l);
            (void)lexer_error(l, "no such escape in a string: \\n \\t \\r \\\" \\\\ \\? \\xHH \\OOO are known");
            return;
        }
        text[n++] = (char)ch;
    }
    l->pos = close + 1;
    l->tok.kind = kind;
    l->tok.len = n;
    l->tok.text = intern_n(l->names, text, n);
}

/* --- numbers --- */

/* The whole word, with the sign of an exponent. */
static size_t number_length(const lexer *l)
{
    bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');
    size_t n = 1;
    for (;; n++) {
        int ch = peek(l, n), last = peek(l, n - 1);
        bool sign = (ch == '+' || ch == '-') && !hex && (last == 'e' || last == 'E');
        if (!is_word(ch) && !sign)
            return n;
    }
}

static bool all_digits(const char *s, bool hex)
{
    bool ok = *s != 0;
    for (; *s; s++)
        ok = ok && (hex ? hex_digit((unsigned char)*s) >= 0 : is_digit((unsigned char)*s));
    return ok;
}

static void integer(lexer *l, const char *digits, int base)
{
    errno = 0;
    uint64_t u = strtoull(digits, NULL, base);
    if (errno == ERANGE) {
        (void)lexer_error(l, "%s does not fit into 64 bits", l->tok.text);
        return;
    }
    l->tok.kind = u > INT64_MAX ? TOK_UINT : TOK_INT;
    memcpy(&l->tok.i, &u, sizeof u);
    l->tok.f = (double)u;
}

static void floating(lexer *l)
{
    char *end = NULL;
    l->tok.kind = TOK_FLOAT;
    l->tok.f = strtod(l->tok.text, &end);
    if (*end)
        (void)lexer_error(l, "%s is not a number", l->tok.text);
    else if (isinf(l->tok.f))
        (void)lexer_error(l, "%s is larger than the largest double; write inf for infinity", l->tok.text);
}

static void number(lexer *l)
{
    size_t n = number_length(l);
    const char *text = intern_n(l->names, l->pos, n);
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    l->tok.text = text;
    l->tok.len = n;
    l->pos += n;
    if (hex && all_digits(text + 2, true))
        integer(l, text + 2, 16);
    else if (all_digits(text, false))
        integer(l, text, 10);
    else if (hex)
        (void)lexer_error(l, "%s is not a number", text);
    else
        floating(l);
}

/* --- tokens --- */

static void unexpected(lexer *l)
{
    int ch = peek(l, 0);
    if (ch > 32 && ch < 127)
        (void)lexer_error(l, "unexpected character '%c'", ch);
    else
        (void)lexer_error(l, "unexpected byte 0x%02x", (unsigned)ch);
}

static void punct(lexer *l)
{
    static const char one[] = "()[]{}<>,:;=+-*/%!&|^?~@";
    static const char two[][3] = {"->", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
    size_t n = 1;
    if (!memchr(one, peek(l, 0), sizeof one - 1)) {
        unexpected(l);
        return;
    }
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (peek(l, 0) == two[i][0] && peek(l, 1) == two[i][1])
            n = 2;
    l->tok.kind = TOK_PUNCT;
    l->tok.text = intern_n(l->names, l->pos, n);
    l->tok.len = n;
    l->pos += n;
}

static void ident(lexer *l)
{
    word(l, TOK_IDENT);
    if (strcmp(l->tok.text, "inf") == 0 || strcmp(l->tok.text, "nan") == 0) {
        l->tok.kind = TOK_FLOAT;
        l->tok.f = l->tok.text[0] == 'i' ? (double)INFINITY : (double)NAN;
    }
}

/* %name, @name; a sigil alone is punctuation */
static void sigil(lexer *l)
{
    token_kind kind = peek(l, 0) == '%' ? TOK_VAR : TOK_SYMBOL;
    if (peek(l, 1) != '"' && !is_word(peek(l, 1))) {
        punct(l);
        return;
    }
    l->pos++;
    if (peek(l, 0) == '"')
        quoted(l, kind);
    else
        word(l, kind);
}

void lexer_next(lexer *l)
{
    if (l->failed)
        return;
    skip_space(l);
    l->tok = (token){.kind = TOK_END, .text = "", .loc = here(l)};
    int ch = peek(l, 0);
    if (ch < 0)
        return;
    if (ch == '%' || ch == '@')
        sigil(l);
    else if (ch == '"')
        quoted(l, TOK_STRING);
    else if (is_digit(ch))
        number(l);
    else if (is_letter(ch))
        ident(l);
    else
        punct(l);
}

void lexer_init(lexer *l, arena *a, interner *names, diags *d, const char *file, const char *text, size_t len)
{
    *l = (lexer){.a = a, .names = names, .d = d, .file = file, .line = 1};
    l->pos = l->line_start = len ? text : "";
    l->end = l->pos + len;
    lexer_next(l);
}

/* --- what parsers ask --- */

bool lexer_is(const lexer *l, const char *punct_or_ident)
{
    return (l->tok.kind == TOK_PUNCT || l->tok.kind == TOK_IDENT) && strcmp(l->tok.text, punct_or_ident) == 0;
}

bool lexer_accept(lexer *l, const char *punct_or_ident)
{
    if (!lexer_is(l, punct_or_ident))
        return false;
    lexer_next(l);
    return true;
}

/* The current token for a message: as it stands in the text, shortened. */
static const char *describe(const lexer *l)
{
    static const char *const sigils[] = {[TOK_END] = "", [TOK_VAR] = "%", [TOK_SYMBOL] = "@", [TOK_PUNCT] = ""};
    if (l->tok.kind == TOK_END)
        return "the end of the text";
    if (l->tok.kind == TOK_STRING)
        return "a string";
    return arena_printf(l->a, "'%s%.60s'", sigils[l->tok.kind] ? sigils[l->tok.kind] : "", l->tok.text);
}

bool lexer_expect(lexer *l, const char *punct_or_ident)
{
    if (lexer_accept(l, punct_or_ident))
        return true;
    if (strcmp(punct_or_ident, ">") == 0 && lexer_is(l, ">>")) { /* seq<seq<f32[]>> */
        l->tok.text = intern(l->names, ">");
        l->tok.len = 1;
        l->tok.loc.col++;
        return true;
    }
    return lexer_error(l, "expected '%s' before %s", punct_or_ident, describe(l));
}

bool lexer_int(lexer *l, int64_t *out)
{
    bool minus = lexer_accept(l, "-");
    *out = 0;
    if (l->tok.kind == TOK_INT)
        *out = minus ? -l->tok.i : l->tok.i;
    else if (l->tok.kind == TOK_UINT && minus && l->tok.i == INT64_MIN)
        *out = INT64_MIN;
    else if (l->tok.kind == TOK_UINT)
        return lexer_error(l, "%s%s does not fit into a signed 64-bit integer", minus ? "-" : "", l->tok.text);
    else
        return lexer_error(l, "expected an integer before %s", describe(l));
    lexer_next(l);
    return !l->failed;
}

bool lexer_float(lexer *l, double *out)
{
    bool minus = lexer_accept(l, "-");
    *out = 0.0;
    if (l->tok.kind != TOK_INT && l->tok.kind != TOK_UINT && l->tok.kind != TOK_FLOAT)
        return lexer_error(l, "expected a number before %s", describe(l));
    *out = minus ? -l->tok.f : l->tok.f;
    lexer_next(l);
    return !l->failed;
}

bool lexer_name(lexer *l, token_kind kind, const char **out)
{
    static const char *const kinds[] = {[TOK_END] = "the end",     [TOK_IDENT] = "a name",    [TOK_VAR] = "a %name",
                                        [TOK_SYMBOL] = "an @name", [TOK_INT] = "a number",    [TOK_UINT] = "a number",
                                        [TOK_FLOAT] = "a number",  [TOK_STRING] = "a string", [TOK_PUNCT] = "a sign"};
    *out = "";
    if (l->tok.kind != kind)
        return lexer_error(l, "expected %s before %s", kinds[kind], describe(l));
    *out = l->tok.text;
    lexer_next(l);
    return !l->failed;
}

bool lexer_enter(lexer *l)
{
    if (l->depth == LEXER_MAX_DEPTH)
        return lexer_error(l, "nested more than %u levels deep", LEXER_MAX_DEPTH);
    l->depth++;
    return true;
}

void lexer_leave(lexer *l)
{
    l->depth -= l->depth > 0;
}
