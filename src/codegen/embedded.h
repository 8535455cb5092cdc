/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of the embedded runtime, whose text travels inside the program and is copied into every package. The
 * table is generated at build time from runtime/tvmrt (cmake/embed.cmake). */
#ifndef LATHE_CODEGEN_EMBEDDED_H
#define LATHE_CODEGEN_EMBEDDED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One embedded file. `name` is its path below runtime/tvmrt ("tvmrt.c"), or from the top of the source tree for
 * a file from elsewhere. `data` holds `size` bytes, followed by one zero byte that `size` does not count.
 */
struct embedded_file {
    const char *name;
    const unsigned char *data;
    size_t size;
};

/* All embedded files, ended by a row whose name is NULL (not counted). */
extern const struct embedded_file lathe_embedded_files[];
extern const size_t lathe_embedded_file_count;

/* The file of that name; NULL: there is none in this build. */
const struct embedded_file *embedded_find(const char *name);
/* The text of a file that every build has (scripts/check_layers.sh looks for it). */
const char *embedded_text(const char *name);

#ifdef __cplusplus
}
#endif

#endif
