/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded reader of FlexBuffers, which options of custom operators are written in. A value is a place in the bytes;
 * what is behind it is checked when somebody asks. A value knows how deep it stands, so that references in a circle
 * end. The format: https://flatbuffers.dev/flexbuffers/ */
#ifndef LATHE_FRONTEND_TFLITE_FLEX_H
#define LATHE_FRONTEND_TFLITE_FLEX_H
#include "base/file.h"

typedef enum flex_kind {
    FLEX_NULL,
    FLEX_INT,
    FLEX_FLOAT,
    FLEX_BOOL,
    FLEX_TEXT, /* keys, strings and blobs */
    FLEX_VECTOR,
    FLEX_MAP /* also a vector of its values, in the order of its keys */
} flex_kind;

typedef struct flex_value {
    span whole;
    uint64_t at; /* of the number, or of the first byte or element */
    uint32_t width; /* bytes of the number, or of an element */
    uint32_t type; /* FlexBuffers' own number */
    uint32_t depth;
} flex_value;

/* Each returns false where the bytes do not hold what is asked for; *out is then a null. */
bool flex_root(span whole, flex_value *out);
flex_kind flex_kind_of(const flex_value *v);
bool flex_count(const flex_value *v, uint64_t *out); /* of elements, or of bytes */
bool flex_element(const flex_value *v, uint64_t i, flex_value *out);
bool flex_find(const flex_value *map, const char *key, flex_value *out);
bool flex_text(const flex_value *v, span *out);
bool flex_int(const flex_value *v, int64_t *out); /* of booleans and of whole floats, too */
bool flex_float(const flex_value *v, double *out); /* of integers, too */
#endif
