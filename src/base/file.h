/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read-only maps, and output that appears whole or not at all (temporary name, then rename). */
#ifndef LATHE_BASE_FILE_H
#define LATHE_BASE_FILE_H
#include "base/arena.h"
#include "base/diag.h"

typedef struct span {
    const uint8_t *data;
    size_t len;
} span;

/* Maps a file, or reads it when it cannot be mapped ("-" is standard input). Empty files give len 0. Error: DIAG_IO
 * that says which of missing, directory, permission. */
bool file_map(diags *d, arena *a, const char *path, span *out);
void file_unmap(span s); /* no-op for spans that were read */
/* Writes path through path.tmp* and rename; makes parent folders; devices and pipes are written as they are. Error:
 * DIAG_ENVIRONMENT. */
bool file_write(diags *d, const char *path, const void *data, size_t len);
bool file_make_dirs(diags *d, const char *path);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_remove_tree(diags *d, const char *path);
char *path_join(arena *a, const char *dir, const char *name);
char *path_dir(arena *a, const char *path);
#endif
