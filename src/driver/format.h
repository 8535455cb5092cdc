/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of file a verb was given, by its bytes, and what to do with one that the verb does not take: one table,
 * format.def. */
#ifndef LATHE_DRIVER_FORMAT_H
#define LATHE_DRIVER_FORMAT_H
#include "frontend/frontend.h"

typedef enum file_format {
    FORMAT_NONE, /* nothing known */
#define FORMAT(id, name, suffix, offset, magic, words, inside, verbs, way) id,
#include "driver/format.def"
    FORMAT_COUNT
} file_format;

file_format format_of(const char *path, span bytes);

/* What the driver knows of a front end. */
typedef struct frontend {
    const char *name;          /* of its models: "an ONNX model" */
    bool (*recognise)(span);   /* NULL: by the magic alone */
    frontend_import_fn import; /* NULL: the format is of no front end */
    const char *reference;     /* "onnxruntime": the runtime whose numbers the models stand for */
} frontend;
const frontend *format_frontend(file_format f); /* NULL: files of that kind go another way */
/* The same of a file that is there; NULL, and nothing is said: it is none, or cannot be read. */
const frontend *format_frontend_of(compiler *c, const char *path);

/* The bytes of a file that a verb ("compile", "vta run") takes, and what it is; a package is a folder and has no bytes.
 * Else an error that says what the file is, what to do with it, and what the verb takes. */
bool format_read(compiler *c, const char *verb, const char *path, span *out_bytes, file_format *out);
/* Whether a file begins as shared objects do, which modules are; false after a diagnostic: it cannot be told. */
bool format_is_object(compiler *c, const char *path, bool *out);
/* Whether a folder is a package, and the verb takes packages; else an error as format_read's. */
bool format_folder(compiler *c, const char *verb, const char *path);
#endif
