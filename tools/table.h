/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of text in columns as wide as what stands in them, for names of any length and script. */
#ifndef LATHE_TOOLS_TABLE_H
#define LATHE_TOOLS_TABLE_H
#include "base/compiler.h"
#include "base/vec.h"

enum { TABLE_COLUMNS = 9, TABLE_WIDEST = 40 }; /* columns on the screen; what is longer ends in ".." */

typedef struct table {
    arena *a;
    const char *align; /* a letter for each column: 'r', or 'l'; the last one is as long as it is */
    VEC(const char *) cells;
} table;

table table_begin(arena *a, const char *align);
/* The next cell, as text_line shows it. */
void table_add(table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(const table *t, writer *w);
#endif
