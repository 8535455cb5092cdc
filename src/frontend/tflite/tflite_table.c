/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of TensorFlow Lite's tables, tflite_fields.def, as tables for the reader. */
#include "frontend/tflite/tflite_table.h"

#include <stddef.h>
#include <string.h>

#define TFLITE_TABLE(id, schema) static const flat_table table_##id;
#define TFLITE_FIELD(table, kind, sub, number, name, value) \
    _Static_assert((number) < 64, #table "." #name ": a table has one bit for each field that is there");
#define TFLITE_END(id)
#define TFLITE_MEMBER(union_id, schema, number, table)
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END

#define SUB_BOOL(sub)   NULL
#define SUB_I8(sub)     NULL
#define SUB_U8(sub)     NULL
#define SUB_I32(sub)    NULL
#define SUB_U32(sub)    NULL
#define SUB_I64(sub)    NULL
#define SUB_U64(sub)    NULL
#define SUB_F32(sub)    NULL
#define SUB_STR(sub)    NULL
#define SUB_BYTES(sub)  NULL
#define SUB_U16S(sub)   NULL
#define SUB_I32S(sub)   NULL
#define SUB_I64S(sub)   NULL
#define SUB_F32S(sub)   NULL
#define SUB_TABLE(sub)  &table_##sub
#define SUB_TABLES(sub) &table_##sub
#define SUB_UNION(sub)  NULL

#define TFLITE_TABLE(id, schema) static const flat_field fields_##id[] = {
#define TFLITE_FIELD(table, kind, sub, number, name, value) \
    {number, FLAT_##kind, SUB_##kind(sub), #sub, offsetof(tfl_##table, name), #name, value},
#define TFLITE_END(id) \
    }                  \
    ;
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END

#define TFLITE_TABLE(id, schema)                                                                          \
    static const flat_table table_##id = {schema, sizeof(tfl_##id), fields_##id,                          \
                                          sizeof fields_##id / sizeof(flat_field)};
#define TFLITE_FIELD(table, kind, sub, number, name, value)
#define TFLITE_END(id)
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_MEMBER

#define TFLITE_TABLE(id, schema)
#define TFLITE_MEMBER(union_id, schema, number, table) {#union_id, number, &table_##table},
static const flat_member members[] = {
#include "frontend/tflite/tflite_fields.def"
};
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END
#undef TFLITE_MEMBER

const flat_table *flat_model_table(void)
{
    return &table_model;
}

const flat_table *flat_about_table(void)
{
    return &table_model_about;
}

const flat_table *flat_union_table(const char *of, uint64_t number)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].number == number && strcmp(members[i].of, of) == 0)
            return members[i].table;
    return NULL;
}

static void print_table(writer *w, const flat_table *t)
{
    static const char *const kinds[] = {"BOOL", "I8", "U8", "I32", "U32", "I64", "U64", "F32",
                                        "STR", "BYTES", "U16S", "I32S", "I64S", "F32S", "TABLE", "TABLES", "UNION"};
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const flat_field *f = &t->fields[i];
        w_line(w, "%s %u %s %s %s %lld", t->name, f->number, f->name, kinds[f->kind], f->sub ? f->sub->name : "-",
               (long long)f->value);
    }
}

void flat_print_fields(writer *w)
{
    static const flat_table *const all[] = {
#define TFLITE_TABLE(id, schema) &table_##id,
#define TFLITE_FIELD(table, kind, sub, number, name, value)
#define TFLITE_END(id)
#define TFLITE_MEMBER(union_id, schema, number, table)
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END
#undef TFLITE_MEMBER
    };
    static const struct {
        const char *name;
        uint8_t number;
        const flat_table *table;
    } unions[] = {
#define TFLITE_TABLE(id, schema)
#define TFLITE_FIELD(table, kind, sub, number, name, value)
#define TFLITE_END(id)
#define TFLITE_MEMBER(union_id, schema, number, table) {schema, number, &table_##table},
#include "frontend/tflite/tflite_fields.def"
#undef TFLITE_TABLE
#undef TFLITE_FIELD
#undef TFLITE_END
#undef TFLITE_MEMBER
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        print_table(w, all[i]);
    for (size_t i = 0; i < sizeof unions / sizeof *unions; i++)
        w_line(w, "union %s %u %s", unions[i].name, unions[i].number, unions[i].table->name);
}
