/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of a .npz file, a zip archive of .npy files as numpy.savez writes it. */
#ifndef LATHE_DRIVER_NPZ_H
#define LATHE_DRIVER_NPZ_H
#include "base/compiler.h"
#include "base/vec.h"

typedef struct npz_array {
    const char *name; /* without .npy */
    span bytes;       /* a .npy file */
} npz_array;

typedef struct npz_file {
    VEC(npz_array) arrays;
} npz_file;

/* All arrays of s, at least one, in the order of the file's directory. false after a diagnostic. */
bool npz_read(compiler *c, const char *path, span s, npz_file *out);
/* The array of that name, else NULL. */
const npz_array *npz_find(const npz_file *f, const char *name);
#endif
