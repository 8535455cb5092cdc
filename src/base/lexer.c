/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer that all text forms share. Any bytes are safe: every read is checked against the end. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int peek(const lexer *l, size_t ahead) { return (size_t)(l->end - l->pos) > ahead ? (unsigned char)l->pos[ahead] : -1; }

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

static bool is_word(int ch) { return ch == '_' || ch == '.' || (ch >= 0 && isalnum(ch)); }

bool lexer_error(lexer *l, const char *fmt, ...)
{
    if (l->failed)
        return false; /* one syntax error; what follows would be noise */
    va_list ap;
    char text[512];
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->failed = true;
    l->tok.kind = TOK_END;
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

static int hex_digit(int ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = ch < 0 ? ch : tolower(ch);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* pos is at the opening quote */
static void quoted(lexer *l, token_kind kind)
{
    char *buf = arena_try_alloc(l->a, (size_t)(l->end - l->pos) + 1, 1);
    const char *close = l->pos + 1;
    size_t n = 0;
    (void)close;
    l->pos++;
    for (;;) {
        int ch = peek(l, 0);
        if (ch < 0 || ch == '\n' || !buf) {
            (void)lexer_error(l, "string without closing quote");
            return;
        }
        l->pos++;
        if (ch == '"')
            break;
        if (ch == '\\') {
            ch = peek(l, 0);
            l->pos += ch >= 0;
            if (ch == 'n') {
                ch = '\n';
            } else if (ch == 't') {
                ch = '\t';
            } else if (ch == 'x') {
                int hi = hex_digit(peek(l, 0)), lo = hex_digit(peek(l, 1));
                if (hi < 0 || lo < 0) {
                    (void)lexer_error(l, "\\x needs two hexadecimal digits");
                    return;
                }
                ch = hi * 16 + lo;
                l->pos += 2;
            } else if (ch != '"' && ch != '\\') {
                (void)lexer_error(l, "unknown escape in string");
                return;
            }
        }
        buf[n++] = (char)ch;
    }
    l->tok.kind = kind;
    l->tok.len = n;
    l->tok.text = intern_n(l->names, buf, n);
}

static void number(lexer *l)
{
    char buf[64];
    size_t n = 0;
    bool is_float = false;
    while (is_word(peek(l, 0)) || ((peek(l, 0) == '-' || peek(l, 0) == '+') && n > 0 && (buf[n - 1] == 'e' || buf[n - 1] == 'E') && is_float)) {
        int ch = peek(l, 0);
        if (n + 1 >= sizeof buf) {
            (void)lexer_error(l, "number too long");
            return;
        }
        is_float |= ch == '.' || ch == 'e' || ch == 'E';
        buf[n++] = (char)ch;
        l->pos++;
    }
    buf[n] = 0;
    char *end = NULL;
    errno = 0;
    l->tok.kind = is_float ? TOK_FLOAT : TOK_INT;
    l->tok.text = intern_n(l->names, buf, n);
    l->tok.len = n;
    if (is_float) {
        l->tok.f = strtod(buf, &end);
    } else {
        uint64_t u = strtoull(buf, &end, 10); /* up to 2^64 - 1: u64 values are kept by bit pattern */
        memcpy(&l->tok.i, &u, sizeof u);
        l->tok.f = (double)u;
        if (errno == ERANGE) {
            (void)lexer_error(l, "integer does not fit into 64 bits");
            return;
        }
    }
    if (*end)
        (void)lexer_error(l, "malformed number");
}

static void punct(lexer *l)
{
    static const char two[][3] = {"->", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (peek(l, 0) == two[i][0] && peek(l, 1) == two[i][1])
            n = 2;
    if (!strchr("()[]{}<>,:;=+-*/%!&|^?~@", peek(l, 0))) {
        (void)lexer_error(l, "unexpected character '%c'", isprint(peek(l, 0)) ? peek(l, 0) : '?');
        return;
    }
    l->tok.kind = TOK_PUNCT;
    l->tok.text = intern_n(l->names, l->pos, n);
    l->tok.len = n;
    l->pos += n;
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
    if (ch == '%' || ch == '@') {
        int next = peek(l, 1);
        token_kind kind = ch == '%' ? TOK_VAR : TOK_SYMBOL;
        if (next == '"' || is_word(next)) {
            l->pos++;
            if (next == '"')
                quoted(l, kind);
            else
                word(l, kind);
            return;
        }
        punct(l);
    } else if (ch == '"') {
        quoted(l, TOK_STRING);
    } else if (isdigit(ch)) {
        number(l);
    } else if (ch == '_' || isalpha(ch)) {
        word(l, TOK_IDENT);
        if (strcmp(l->tok.text, "inf") == 0 || strcmp(l->tok.text, "nan") == 0) {
            l->tok.kind = TOK_FLOAT;
            l->tok.f = strtod(l->tok.text, NULL);
        }
    } else {
        punct(l);
    }
}

void lexer_init(lexer *l, arena *a, interner *names, diags *d, const char *file, const char *text, size_t len)
{
    *l = (lexer){.a = a, .names = names, .d = d, .file = file, .pos = text, .end = text + len, .line_start = text, .line = 1};
    lexer_next(l);
}

bool lexer_is(const lexer *l, const char *s)
{
    return (l->tok.kind == TOK_PUNCT || l->tok.kind == TOK_IDENT) && strcmp(l->tok.text, s) == 0;
}

bool lexer_accept(lexer *l, const char *s)
{
    if (!lexer_is(l, s))
        return false;
    lexer_next(l);
    return true;
}

bool lexer_expect(lexer *l, const char *s)
{
    if (lexer_accept(l, s))
        return true;
    return lexer_error(l, "expected '%s' before %s%s%s", s, l->tok.kind == TOK_END ? "the end" : "'", l->tok.kind == TOK_END ? "" : l->tok.text,
                       l->tok.kind == TOK_END ? "" : "'");
}
