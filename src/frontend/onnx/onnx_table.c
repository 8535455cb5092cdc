/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of ONNX's messages, onnx_fields.def, as tables for the reader and the writer of the wire format. */
#include "frontend/onnx/onnx_table.h"

#define ONNX_MESSAGE(id, proto) static const pb_message message_##id;
#define ONNX_FIELD(msg, kind, sub, number, name)
#define ONNX_END(id)
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END

#define SUB_INT(sub)     NULL
#define SUB_FLOAT(sub)   NULL
#define SUB_STR(sub)     NULL
#define SUB_MSG(sub)     &message_##sub
#define SUB_INTS(sub)    NULL
#define SUB_FLOATS(sub)  NULL
#define SUB_DOUBLES(sub) NULL
#define SUB_STRS(sub)    NULL
#define SUB_MSGS(sub)    &message_##sub

#define ONNX_MESSAGE(id, proto)                  static const pb_field fields_##id[] = {
#define ONNX_FIELD(msg, kind, sub, number, name) {number, PB_##kind, SUB_##kind(sub), offsetof(pb_##msg, name), #name},
#define ONNX_END(id) \
    }                \
    ;
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END

#define ONNX_MESSAGE(id, proto) \
    static const pb_message message_##id = {proto, sizeof(pb_##id), fields_##id, sizeof fields_##id / sizeof(pb_field)};
#define ONNX_FIELD(msg, kind, sub, number, name)
#define ONNX_END(id)
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END

const pb_message *onnx_message_model(void)
{
    return &message_model;
}

const pb_message *onnx_message_tensor(void)
{
    return &message_tensor;
}

const pb_message *onnx_message_sequence(void)
{
    return &message_sequence;
}

const pb_message *onnx_message_optional(void)
{
    return &message_optional;
}

const pb_message *onnx_message_map(void)
{
    return &message_map;
}

void onnx_wire_print_fields(writer *w)
{
    static const char *const kinds[] = {"INT", "FLOAT", "STR", "MSG", "INTS", "FLOATS", "DOUBLES", "STRS", "MSGS"};
    static const pb_message *const all[] = {
#define ONNX_MESSAGE(id, proto) &message_##id,
#define ONNX_FIELD(msg, kind, sub, number, name)
#define ONNX_END(id)
#include "frontend/onnx/onnx_fields.def"
#undef ONNX_MESSAGE
#undef ONNX_FIELD
#undef ONNX_END
    };
    for (size_t m = 0; m < sizeof all / sizeof all[0]; m++)
        for (uint32_t i = 0; i < all[m]->n_fields; i++) {
            const pb_field *f = &all[m]->fields[i];
            w_line(w, "%s %u %s %s %s", all[m]->name, f->number, f->name, kinds[f->kind], f->sub ? f->sub->name : "-");
        }
}
