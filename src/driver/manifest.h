/* SPDX-License-Identifier: Apache-2.0 */
/* What in a package's folder is ours: a list in the folder itself, of the files as they were written (size and hash)
 * and of what its Makefile makes of them. Only that is ever replaced. */
#ifndef LATHE_DRIVER_MANIFEST_H
#define LATHE_DRIVER_MANIFEST_H
#include "codegen/backend.h"

#define MANIFEST_NAME "lathe-manifest.txt"

void manifest_write(writer *w, const artifact *a);

/* Looks through an existing folder. What is not of its manifest, or has changed since it was written, or everything
 * when there is no manifest, comes back as names in order; those of files that changed say so. */
typedef struct manifest_look {
    VEC(const char *) in_the_way;
    bool missing; /* there is no manifest, or none that can be read */
} manifest_look;
bool manifest_check(compiler *c, const char *dir, manifest_look *out); /* false after a diagnostic: cannot look */
#endif
