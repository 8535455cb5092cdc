/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's protobuf messages as structs, made from onnx_fields.def, and the bounded reader that fills them. Strings and
 * bytes are ranges of the file; nothing is NUL-terminated. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_PROTO_H
#define LATHE_FRONTEND_ONNX_ONNX_PROTO_H
#include "base/compiler.h"
#include "base/file.h"
#include "base/vec.h"

/* Repeated fixed-width numbers: little-endian bytes, inside the file when they came in one packed run. */
typedef struct pb_numbers {
    const uint8_t *data; /* unaligned */
    size_t len;          /* bytes */
} pb_numbers;

#define ONNX_MESSAGE(id, proto) typedef struct pb_##id pb_##id;
#define ONNX_FIELD(msg, kind, sub, number, name)
#define ONNX_END(id)
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END

typedef VEC(int64_t) pb_ints;
typedef VEC(span) pb_spans;
typedef VEC(void *) pb_messages;

#define PB_TYPE_INT(sub)     int64_t
#define PB_TYPE_FLOAT(sub)   float
#define PB_TYPE_STR(sub)     span
#define PB_TYPE_MSG(sub)     pb_##sub *
#define PB_TYPE_INTS(sub)    pb_ints
#define PB_TYPE_FLOATS(sub)  pb_numbers
#define PB_TYPE_DOUBLES(sub) pb_numbers
#define PB_TYPE_STRS(sub)    pb_spans
#define PB_TYPE_MSGS(sub)    VEC(pb_##sub *)

/* Every message starts with where it stands in the file, which of its fields were present (bit = field number), and the
 * fields that are not listed, each as it stands in the file. */
typedef struct pb_head {
    uint64_t at;
    uint64_t has;
    pb_spans unknown;
} pb_head;

#define ONNX_MESSAGE(id, proto) \
    struct pb_##id {            \
        uint64_t at;            \
        uint64_t has;           \
        pb_spans unknown;
#define ONNX_FIELD(msg, kind, sub, number, name) PB_TYPE_##kind(sub) name;
#define ONNX_END(id) \
    }                \
    ;
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END

#define PB_MAX_DEPTH 100u /* nested messages; protobuf's own limit */

static inline bool pb_has(uint64_t has, uint32_t number)
{
    return (has >> number & 1u) != 0;
}
static inline float pb_float(pb_numbers v, size_t i)
{
    float f;
    __builtin_memcpy(&f, v.data + i * sizeof f, sizeof f);
    return f;
}

/* Reads a whole model, or a lone value, from bytes. Errors are DIAG_FORMAT with the offset in the file. */
bool onnx_wire_model(compiler *c, const char *path, span bytes, pb_model **out);
bool onnx_wire_tensor(compiler *c, const char *path, span bytes, pb_tensor **out);
bool onnx_wire_sequence(compiler *c, const char *path, span bytes, pb_sequence **out);
bool onnx_wire_optional(compiler *c, const char *path, span bytes, pb_optional **out);
bool onnx_wire_map(compiler *c, const char *path, span bytes, pb_map **out);
/* The model as bytes: what was read, with what has been changed; fields that are not listed stay. read(write(x)) is x.
 * false after a diagnostic: 2 GiB or more, protobuf's limit. */
bool onnx_wire_write(compiler *c, const pb_model *m, span *out);
/* The table as text, "MESSAGE NUMBER NAME KIND SUBMESSAGE" a line, for the test against onnx.proto. */
void onnx_wire_print_fields(writer *w);
#endif
