/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow Lite's tables as structs, made from tflite_fields.def, and the bounded reader of FlatBuffers that fills
 * them. Strings and vectors of numbers are ranges of the file, unaligned; nothing is NUL-terminated. */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_SCHEMA_H
#define LATHE_FRONTEND_TFLITE_TFLITE_SCHEMA_H
#include "base/compiler.h"

/* Little-endian numbers, as many as `len`. */
typedef struct flat_numbers {
    const uint8_t *data;
    uint32_t len;
} flat_numbers;

/* A table of which the number in the union says what it is; NULL: it is not there, or none of those that are read. */
typedef const void *flat_union;

#define TFLITE_TABLE(id, schema) typedef struct tfl_##id tfl_##id;
#define TFLITE_FIELD(table, kind, sub, number, name, value)
#define TFLITE_END(id)
#define TFLITE_MEMBER(union_id, schema, number, table)
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END

#define FLAT_TYPE_BOOL(sub)   int64_t
#define FLAT_TYPE_I8(sub)     int64_t
#define FLAT_TYPE_U8(sub)     int64_t
#define FLAT_TYPE_I32(sub)    int64_t
#define FLAT_TYPE_U32(sub)    int64_t
#define FLAT_TYPE_I64(sub)    int64_t
#define FLAT_TYPE_U64(sub)    uint64_t
#define FLAT_TYPE_F32(sub)    float
#define FLAT_TYPE_STR(sub)    span
#define FLAT_TYPE_BYTES(sub)  span
#define FLAT_TYPE_U16S(sub)   flat_numbers
#define FLAT_TYPE_I32S(sub)   flat_numbers
#define FLAT_TYPE_I64S(sub)   flat_numbers
#define FLAT_TYPE_F32S(sub)   flat_numbers
#define FLAT_TYPE_TABLE(sub)  const tfl_##sub *
#define FLAT_TYPE_TABLES(sub)      \
    struct {                       \
        const tfl_##sub **data;    \
        uint32_t len;              \
    }
#define FLAT_TYPE_UNION(sub) flat_union

/* Every table starts with where it stands in the file, and which of its fields are there (bit = field id). */
#define TFLITE_TABLE(id, schema) \
    struct tfl_##id {            \
        uint64_t at;             \
        uint64_t has;
#define TFLITE_FIELD(table, kind, sub, number, name, value) FLAT_TYPE_##kind(sub) name;
#define TFLITE_END(id) \
    }                  \
    ;
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END
#undef TFLITE_MEMBER

int32_t flat_i32(flat_numbers v, uint32_t i);
int64_t flat_i64(flat_numbers v, uint32_t i);
float flat_f32(flat_numbers v, uint32_t i);

/* Reads a whole model. Errors are DIAG_FORMAT with the offset in the file. */
bool flat_read_model(compiler *c, const char *path, span bytes, const tfl_model **out);
/* Reads what TFLITE_METADATA holds; NULL without a diagnostic when it cannot be read: *why says what is wrong. */
const tfl_model_about *flat_read_about(compiler *c, span bytes, const char **why);
/* The table of options with that number in the union, all fields left out; NULL: it is not read. */
const void *flat_default_options(compiler *c, uint32_t number);
/* The tables as text, "TABLE ID NAME KIND SUB DEFAULT" a line and "union UNION NUMBER TABLE" for each member, for the
 * test against the schema. */
void flat_print_fields(writer *w);
#endif
