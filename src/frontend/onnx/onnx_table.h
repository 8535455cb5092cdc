/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the messages' fields: how the reader and the writer of the wire format walk over the structs of
 * onnx_proto.h. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_TABLE_H
#define LATHE_FRONTEND_ONNX_ONNX_TABLE_H
#include "frontend/onnx/onnx_proto.h"

typedef enum pb_kind { PB_INT, PB_FLOAT, PB_STR, PB_MSG, PB_INTS, PB_FLOATS, PB_DOUBLES, PB_STRS, PB_MSGS } pb_kind;

typedef struct pb_field {
    uint32_t number;
    pb_kind kind;
    const struct pb_message *sub;
    size_t offset;
    const char *name;
} pb_field;

typedef struct pb_message {
    const char *name;
    size_t size;
    const pb_field *fields;
    uint32_t n_fields;
} pb_message;

const pb_message *onnx_message_model(void);
const pb_message *onnx_message_tensor(void);
const pb_message *onnx_message_sequence(void);
const pb_message *onnx_message_optional(void);
const pb_message *onnx_message_map(void);
#endif
