/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the fields, tflite_fields.def, by which flat.c fills the structs of tflite_schema.h. */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_TABLE_H
#define LATHE_FRONTEND_TFLITE_TFLITE_TABLE_H
#include "frontend/tflite/tflite_schema.h"

typedef enum flat_kind {
    FLAT_BOOL, FLAT_I8, FLAT_U8, FLAT_I32, FLAT_U32, FLAT_I64, FLAT_U64, FLAT_F32,
    FLAT_STR, FLAT_BYTES, FLAT_U16S, FLAT_I32S, FLAT_I64S, FLAT_F32S, FLAT_TABLE, FLAT_TABLES, FLAT_UNION
} flat_kind;

typedef struct flat_member {
    const char *of; /* id of the union */
    uint8_t number;
    const struct flat_table *table;
} flat_member;

typedef struct flat_field {
    uint32_t number;
    flat_kind kind;
    const struct flat_table *sub; /* of FLAT_TABLE, FLAT_TABLES */
    const char *of;               /* of FLAT_UNION: its id */
    size_t offset;
    const char *name;
    int64_t value; /* when the field is not there */
} flat_field;

typedef struct flat_table {
    const char *name;
    size_t size;
    const flat_field *fields;
    uint32_t n_fields;
} flat_table;

const flat_table *flat_model_table(void);
const flat_table *flat_about_table(void);
const flat_table *flat_union_table(const char *of, uint64_t number); /* NULL: it is not read */
#endif
