/* SPDX-License-Identifier: Apache-2.0 */
/* The element types that kernels do not have, and which values have one. What reads types and tensors needs no more of
 * them; onnx_small.c has the rest. */
#include "frontend/onnx/onnx_import.h"

/* X(type, what a byte of it is here) */
#define SMALL_TYPES(X)                                                                                     \
    X(DT_F8E4M3FN, DT_U8) X(DT_F8E4M3FNUZ, DT_U8) X(DT_F8E5M2, DT_U8) X(DT_F8E5M2FNUZ, DT_U8)               \
    X(DT_F8E8M0, DT_U8) X(DT_F6E2M3, DT_U8) X(DT_F6E3M2, DT_U8) X(DT_F4E2M1, DT_U8) \
    X(DT_U4, DT_U8) X(DT_I4, DT_I8) X(DT_U2, DT_U8) X(DT_I2, DT_I8)

static const struct {
    dtype small, byte;
} types[] = {
#define X(small, byte) {small, byte},
    SMALL_TYPES(X)
#undef X
};

bool onnx_is_small(dtype dt)
{
    return onnx_stored_dtype(dt) != dt;
}

dtype onnx_stored_dtype(dtype dt)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].small == dt)
            return types[i].byte;
    return dt;
}

dtype onnx_small_of(const onnx_importer *im, const graph_value *v)
{
    const dtype *dt = v ? onnx_map_get(&im->small, (const char *)v) : NULL;
    return dt ? *dt : DT_NONE;
}

void onnx_set_small(onnx_importer *im, const graph_value *v, dtype dt)
{
    if (v && onnx_is_small(dt))
        onnx_map_set(&im->c->mem, &im->small, (const char *)v,
                     arena_copy(&im->c->mem, &dt, sizeof dt, _Alignof(dtype)));
}
