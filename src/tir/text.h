/* SPDX-License-Identifier: Apache-2.0 */
/* The loop IR as text (docs/reference/loop-ir.md; print.c, parse.c). */
#ifndef LATHE_TIR_TEXT_H
#define LATHE_TIR_TEXT_H
#include "tir/tir.h"

void tir_print_expr(writer *w, tir_expr_ref e);
void tir_print_stmt(writer *w, tir_stmt *s);
/* The same among variables and buffers from outside, whose names differ and stay what they are. */
void tir_print_stmt_over(writer *w, tir_stmt *s, uint32_t n_vars, const tir_var *const *vars, uint32_t n_buffers,
                         const tir_buffer *const *buffers);
void tir_print_func(writer *w, const tir_func *f);
void tir_print(writer *w, const tir_module *m);
bool tir_parse(compiler *c, const char *file, const char *text, size_t len, tir_module **out);
/* One function at the current token of l, which stands behind it afterwards. */
bool tir_parse_func(compiler *c, lexer *l, tir_func **out);
#endif
