/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence, an optional or a map among the inputs or outputs of a model: which tensors the compiled function takes or
 * gives in its place. */
#ifndef LATHE_TYPE_LIST_H
#define LATHE_TYPE_LIST_H
#include <stdbool.h>
#include <stdint.h>

typedef struct list_part {
    const char *name;  /* a tensor: an element, or all elements of the part side by side along axis 0 */
    bool many;         /* side by side: as many as the extent of that axis */
    const char *sizes; /* many: i64[elements, rank], how much of each is the element; NULL: all of it */
} list_part;

typedef struct list_io {
    const char *name;    /* the model's */
    bool is_input;
    bool is_sequence;    /* else an optional of a tensor */
    bool is_optional;
    bool is_map;         /* two parts: the keys, and the values beside them, as many */
    bool is_none;        /* an optional that never has its element */
    const char *present; /* a tensor, bool[]: whether it has its element; NULL: is_none says it */
    uint32_t place;      /* which of the model's inputs or outputs it is */
    uint32_t n_parts;
    const list_part *parts;
} list_io;
#endif
