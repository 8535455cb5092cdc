/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out: values in order into a writer; commas and line ends come by themselves. No tree is built in between. */
#ifndef LATHE_BASE_JSON_OUT_H
#define LATHE_BASE_JSON_OUT_H
#include "base/text.h"

typedef enum json_out_style {
    JSON_OUT_LINES, /* a line for each value, indented */
    JSON_OUT_LINE,  /* {"a": 1, "b": [2]} */
    JSON_OUT_DENSE  /* {"a":1,"b":[2]} */
} json_out_style;

enum { JSON_OUT_DEPTH = 16 };

typedef struct json_out {
    writer *w;
    json_out_style style;
    uint32_t depth;
    bool follows;                 /* a value stands before the next one */
    char closing[JSON_OUT_DEPTH]; /* of what is open */
} json_out;

json_out json_out_begin(writer *w, json_out_style style);
/* A value: in the open object under `key`, in the open array with NULL for it. */
void json_out_object(json_out *j, const char *key);
void json_out_array(json_out *j, const char *key);
void json_out_end(json_out *j); /* of the object or array opened last */
/* Bytes that are no UTF-8, which names from a model may hold, become '?'. NULL is as "". */
void json_out_text(json_out *j, const char *key, const char *s);
void json_out_int(json_out *j, const char *key, int64_t v);
void json_out_uint(json_out *j, const char *key, uint64_t v);
void json_out_real(json_out *j, const char *key, double v); /* "nan", "inf" and "-inf" are text */
void json_out_null(json_out *j, const char *key);
/* A text, or null for NULL. */
void json_out_text_or_null(json_out *j, const char *key, const char *s);
/* A value that was written before, as text. Blanks around it are left out, and its lines are indented. */
void json_out_written(json_out *j, const char *key, const char *text, size_t len);
#endif
