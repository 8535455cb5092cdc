/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes, for passes that select instructions for them. */
#ifndef LATHE_TIR_PASS_BYTES_H
#define LATHE_TIR_PASS_BYTES_H
#include "tir/pass/select.h"

typedef struct bytes {
    const tir_selector *x;
    tir_stmt *loop;
    const tir_buffer *into; /* what the loop's statements store bytes to */
    tir_expr_ref at;        /* where the byte is put */
} bytes;

bool bytes_is_byte(tir_expr_ref x);
tir_expr_ref bytes_flat(const bytes *b, tir_expr_ref load); /* its index from the buffer's address */
tir_expr_ref bytes_at(const bytes *b, const tir_stmt *store);
bool bytes_steps_by_one(const bytes *b, tir_expr_ref at); /* neighbors in the loop are neighbors in memory */
bool bytes_is_row(const bytes *b, tir_expr_ref x); /* a load of neighbors, which nobody writes here but in step */
/* Addresses of the first byte that the loop reads of a row, and of the first one that it stores. */
tir_expr_ref bytes_first_of(const bytes *b, tir_expr_ref row);
tir_expr_ref bytes_first_stored(const bytes *b);
tir_stmt *bytes_call(const bytes *b, const char *row, uint32_t n, tir_expr_ref const *args);
/* The loop is read: it stores one byte after the other, at least BYTES_LEAST. Ranges of its variable are not pushed. */
#define BYTES_LEAST 4
bool bytes_read(const tir_selector *x, tir_stmt *loop, bytes *out);
/* The instruction of a row of TIR_TABLES(prefix, ...); NULL: the loop is something else. */
tir_stmt *bytes_table(const bytes *b, const char *prefix);
#endif
