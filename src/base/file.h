/* SPDX-License-Identifier: Apache-2.0 */
/* Files: input that is read whole, and output that appears whole or not at all (temporary name, then rename). Input is
 * read and not mapped: a mapped file that another program cuts ends this one by a signal. */
#ifndef LATHE_BASE_FILE_H
#define LATHE_BASE_FILE_H
#include "base/arena.h"
#include "base/diag.h"
#include "base/temp.h"

typedef struct span {
    const uint8_t *data;
    size_t len;
} span;

/* Which file a name stands for, whatever the name. */
typedef struct file_id {
    uint64_t dev, ino; /* 0, 0: none */
} file_id;

/* Reads a regular file, or standard input ("-"), into memory that file_free gives back. Anything else that has a name
 * (folder, pipe, device) is refused without waiting for it. Empty files give len 0. Error: DIAG_IO that says which of
 * missing, directory, permission, changed meanwhile; DIAG_ENVIRONMENT: no memory. */
bool file_read(diags *d, const char *path, span *out, file_id *out_id);
/* The same for `name` below the folder `dir`. One that is not there, and one that leads out of the folder, by "..", as
 * an absolute path or by a symbolic link, is told by out_lack and not reported. Links that stay inside are followed
 * where the kernel has openat2 (Linux 5.6); elsewhere, and when they are absolute, no link is. */
typedef enum file_lack { FILE_THERE, FILE_MISSING, FILE_OUTSIDE } file_lack;
bool file_read_beneath(diags *d, arena *a, const char *dir, const char *name, span *out, file_id *out_id,
                       file_lack *out_lack);
void file_free(span s);
/* Reading fails because of the file (DIAG_IO), or for want of what the system shares out (DIAG_ENVIRONMENT). */
diag_code file_code_of(int error);

/* Adds to the end of path, in one piece as others that add see it; makes it where it is not. Error:
 * DIAG_ENVIRONMENT. */
bool file_append(diags *d, const char *path, const void *data, size_t len);
/* Writes path through a temporary file and rename; makes parent folders; devices and pipes are written as they are.
 * Error: DIAG_ENVIRONMENT. */
bool file_write(diags *d, temps *t, const char *path, const void *data, size_t len);
/* A file that must not be there yet, in a folder that is; `lasting`: it is on the disk on return. */
bool file_create(diags *d, const char *path, const void *data, size_t len, bool lasting);
bool file_put(int fd, const void *data, size_t len); /* all of it, into what is open; false with errno */
bool file_sync_dir(diags *d, const char *path); /* the entries of a folder are on the disk on return */
bool file_make_dirs(diags *d, const char *path);
bool file_remove_tree(diags *d, temps *t, const char *path);

/* The names in a folder, without "." and "..", in their order; false with errno. No arena is asked for memory while the
 * folder is open: where it does not return, nothing stays open. */
bool file_list(arena *a, const char *path, const char ***out, uint32_t *out_n);

bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Adds to the last diagnostic, which says that `path` is not there, the name in its folder that is most like it. */
void file_hint_missing(diags *d, const char *path);
bool file_is_regular(const char *path); /* no folder, pipe or device, where a read may wait or have no end */
file_id file_identify(const char *path); /* links are followed; nothing there: none */
file_id file_identify_fd(int fd);
bool file_same(file_id a, file_id b); /* and not none */
char *path_join(arena *a, const char *dir, const char *name);
char *path_dir(arena *a, const char *path);
#endif
