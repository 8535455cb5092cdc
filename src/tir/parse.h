/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files of the loop IR's reader: its state, and the expression half. All of it is internal to the
 * folder. NULL or false: an error was reported at the current token. */
#ifndef LATHE_TIR_PARSE_H
#define LATHE_TIR_PARSE_H
#include "tir/tir.h"

typedef struct parser_name {
    const char *name; /* interned */
    const tir_var *var;
    const tir_buffer *buffer; /* one of the two */
} parser_name;

typedef struct parser {
    compiler *c;
    lexer l;
    dtype index_type;
    VEC(parser_name) scope; /* innermost last */
    uint32_t given;         /* names at its start that every function of the text sees */
} parser;

/* A text over names that are declared outside of it, such as the symbols of an intrinsic: one function, or the
 * statements of a block. */
tir_func *parse_function_over(compiler *c, const char *file, const char *text, uint32_t n, const parser_name *names);
tir_stmt *parse_stmts_over(compiler *c, const char *file, const char *text, uint32_t n, const parser_name *names);

/* As lexer_error, at an earlier place than the current token; false. */
bool parse_error_at(parser *p, src_loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
tir_stmt *parse_block(parser *p); /* "{" statements "}" */
/* An expression; `want` is the type that its place asks for, DT_NONE when any will do. */
tir_expr_ref parse_expr(parser *p, dtype want);
tir_expr_ref parse_expr_or_string(parser *p);
/* Up to `cap` expressions and the closing bracket. */
bool parse_exprs(parser *p, const char *close, dtype want, uint32_t cap, tir_expr_ref *out, uint32_t *out_n);
bool parse_type(parser *p, tir_type *out);
bool parse_signed(parser *p, int64_t *out);
const tir_buffer *parse_buffer_ref(parser *p);
/* "[" indices "]" of an access to b; lanes of the access. `out` holds TIR_MAX_RANK. */
bool parse_indices(parser *p, const tir_buffer *b, tir_expr_ref *out, uint32_t *out_n, uint16_t *out_lanes);
#endif
