/* SPDX-License-Identifier: Apache-2.0 */
/* The page about a compile, or about a model that nobody has compiled: one file that holds all that it shows. */
#ifndef LATHE_DRIVER_HTML_H
#define LATHE_DRIVER_HTML_H
#include "driver/pipeline.h"
#include "driver/profile.h"

struct html_model;

/* What a page is made of. */
typedef struct html_page {
    const char *file;               /* of the model, for a person: the base name is shown */
    const struct html_model *model; /* NULL: a computation */
    const compile_result *result;   /* of a package; NULL: not compiled */
    const profile_page *profile;    /* of each operator; NULL: nothing was measured, and times are estimates */
    const char *loss;               /* what `quantize --json` printed; NULL: nothing is known of what quantising cost */
    const char *other;              /* the document of another page, to compare with; NULL: none */
    uint64_t ram;                   /* bytes that it may take; 0: no limit was given */
} html_page;

/* The document: what the page shows, as JSON (docs/report-page.md has its fields). */
void html_write_document(compiler *c, writer *w, const html_page *p);
/* The page: the document, and the style and the script that draw it. Nothing is loaded from elsewhere. */
void html_write(compiler *c, writer *w, const html_page *p);
/* Writes the page, or the document alone where the name of the file ends in .json. False after a diagnostic. */
bool html_write_file(compiler *c, const char *path, const html_page *p);
/* The document of a page or of a .json that html_write_file wrote. False after a diagnostic: it is none. */
bool html_read_document(compiler *c, const char *path, const char **out);
/* What `quantize --json` printed. False after a diagnostic: it is something else. */
bool html_read_loss(compiler *c, const char *path, const char **out);
#endif
