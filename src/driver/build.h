/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that build a package, in a scratch folder: shared by run.c and board.c. */
#ifndef LATHE_DRIVER_BUILD_H
#define LATHE_DRIVER_BUILD_H
#include "driver/run.h"

/* The scratch folder knows the package as `package`. */
bool build_link_package(compiler *c, const char *dir, const char *scratch);
/* A word of $CC that names a file from here, for a program that runs elsewhere. */
const char *build_word_from_anywhere(compiler *c, const char *word);
/* Those of the package's Makefile. */
void build_add_flags(compiler *c, const run_model *m, int64_t workers, process_words *a);
/* What code generators wrote, with its flags; CUDA is built at once. */
bool build_add_sources(compiler *c, const run_model *m, const char *scratch, process_words *a);
/* A file of runtime/FOLDER, in `scratch` under its own name. */
bool build_write_embedded(compiler *c, const char *scratch, const char *folder, const char *name);
#endif
