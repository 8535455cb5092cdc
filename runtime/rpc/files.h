/* files.h: the files of a session, in its own folder: names of clients never lead out of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_FILES_H
#define LATHE_RPC_FILES_H
#include "wire.h"

typedef struct rpc_files {
    const char *folder;
    uint64_t limit; /* bytes of all files */
} rpc_files;

enum { RPC_PATH_MAX = 1024 };

/* FOLDER/NAME; NAME is one file name, without folders. LATHE_E_ARGUMENT. */
int32_t rpc_files_path(const rpc_files *f, const uint8_t *name, size_t size, char out[RPC_PATH_MAX],
                       lathe_error *error);
/* Is there room for so many bytes more, beside all files of the session, in folders too? LATHE_E_REFUSED. */
int32_t rpc_files_room(const rpc_files *f, uint64_t more, lathe_error *error);
/* A file of that name is replaced. */
int32_t rpc_files_write(const rpc_files *f, const char *path, const void *bytes, size_t size, lathe_error *error);
/* All of a file; *out is from malloc. LATHE_E_FILE. */
int32_t rpc_files_read(const char *path, uint64_t most, uint8_t **out, size_t *out_size, lathe_error *error);
int32_t rpc_files_remove(const char *path, lathe_error *error);
/* Names with commas between them, sorted. */
int32_t rpc_files_list(const rpc_files *f, rpc_buffer *out, lathe_error *error);
/* A folder with all that is in it, however deep; links are removed, not followed. What cannot be removed stays:
 * false. */
bool rpc_files_remove_tree(const char *path);
#endif
