/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the loop IR's text: element types as TVM writes them, words that no variable may have, and a unique name for
 * every variable and buffer of a print. */
#ifndef LATHE_TIR_NAMES_H
#define LATHE_TIR_NAMES_H
#include "tir/map.h"
#include "tir/tir.h"

/* "float32, int8, ...": the types without lanes, for messages. */
const char *tir_list_types(arena *a);
bool tir_dtype_known(dtype t); /* the text has it: what kernels can use, handles and strings */
/* "int32", or "int32x8" with lanes. */
bool tir_type_from_text(const char *s, tir_type *out);
void tir_print_type(writer *w, tir_type t);
/* Types, operators, keywords: not usable as the name of a variable or buffer. */
bool tir_is_reserved(const char *s);

typedef struct tir_names {
    arena *a;
    tir_map given;    /* variable or buffer -> its name */
    tir_map counters; /* interned base name -> uses so far, as an address; NULL key never occurs */
    interner *texts;
} tir_names;

void tir_names_init(tir_names *n, arena *a);
/* The name of the thing at `key` whose wish is `wish`: given at first sight, "_1" and so on when taken. */
const char *tir_names_get(tir_names *n, const void *key, const char *wish);
#endif
