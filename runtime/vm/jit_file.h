/* jit_file.h: files and folders of the run-time compiler: written under a temporary name and then renamed, read whole,
 * removed with all they hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_FILE_H
#define LATHE_VM_JIT_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct jit_bytes {
    uint8_t *at;
    size_t n;
} jit_bytes;

/* One part of what a file gets. */
typedef struct jit_part {
    const void *at;
    size_t n;
} jit_part;

/* Writes the parts to `name` in the folder: a new temporary file, which nobody else can have put there, fsync, rename.
 * False: errno says why, and nothing is left. */
bool jit_file_put(int dir, const char *name, mode_t mode, const jit_part *parts, size_t n);
/* The names that such files have before they are renamed. While one is written it is locked. */
#define JIT_FILE_TEMPORARY "tmp."
bool jit_file_write(int fd, const void *data, size_t n);
/* The whole of an open file, at most JIT_FILE_MOST bytes. False: errno says why. */
#define JIT_FILE_MOST (UINT64_C(1) << 31)
bool jit_file_read(int fd, jit_bytes *out);
/* The whole of a file by name, which must be no link. */
bool jit_file_take(const char *path, jit_bytes *out);

/* mkdir with all folders above; one that is there is well. */
bool jit_folder_make(const char *path, mode_t mode);
/* A new folder of our own in $TMPDIR, else /tmp; NULL: errno says why. */
char *jit_folder_temporary(void);
void jit_folder_remove(const char *path);
#endif
