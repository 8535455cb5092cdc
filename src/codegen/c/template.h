/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a package that are written by templates: texts of the source tree that travel inside the program. */
#ifndef LATHE_CODEGEN_C_TEMPLATE_H
#define LATHE_CODEGEN_C_TEMPLATE_H
#include "codegen/c/package.h"

/* `path` is named in messages; `files` has those of the library. False after a diagnostic. */
bool template_write(const package *p, const char *path, const char *text, const artifact *files, writer *w);
/* A part of a file that a function writes, whole lines, where its word stands. */
typedef struct template_piece {
    const char *word;
    void (*write)(const package *p, writer *w);
} template_piece;

/* A file of src/codegen/c/package, "main.c", which every package has. A fault of its text is reported as an error. */
void template_file(const package *p, const char *file, const template_piece *pieces, uint32_t n, writer *w);
/* Lays the package out as its ecosystem wants it, and adds that one's own files. */
bool arrange_for(const package *p, artifact *out);
#endif
