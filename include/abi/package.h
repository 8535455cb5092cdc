/* package.h: what the compiler must know of the embedded runtime when it plans and writes a package. The same facts
 * stand in runtime/tvmrt/tvmrt.h, which travels inside packages and therefore includes nothing; test/runtime/test_abi.c
 * compares the two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_PACKAGE_H
#define ABI_PACKAGE_H

#include <stdint.h>

/* Version of the tables in model_data.c and of the kernels' signature (TVMRT_ABI_VERSION). */
#define PACKAGE_ABI_VERSION 3u

/* Largest alignment of a value, of the workspace and of the constants: min(64, largest power of two <= size). */
#define PACKAGE_MAX_ALIGN 64u

/* Operator ids in layers are 16 bits wide; counts of inputs and of outputs of one operator too. */
#define PACKAGE_MAX_OPS        65535u
#define PACKAGE_MAX_OP_TENSORS 65535u

/* Tasks (parts of operators) in one layer, and threads in one run. */
#define PACKAGE_MAX_LAYER_TASKS 0xFFFFFFu
#define PACKAGE_MAX_WORKERS     127u

/* Where a storage id lives: the values of tvmrt_storage_kind_t. */
enum package_storage {
    PACKAGE_STORAGE_INPUT = 0,
    PACKAGE_STORAGE_OUTPUT = 1,
    PACKAGE_STORAGE_CONSTANT = 2,
    PACKAGE_STORAGE_WORKSPACE = 3
};

/* Steps of a schedule: the values of tvmrt_step_kind_t. */
enum package_step { PACKAGE_STEP_RUN = 0, PACKAGE_STEP_JUMP = 1, PACKAGE_STEP_JUMP_IF_ZERO = 2 };

/* Who executes an operator: the values of tvmrt_backend_kind_t. */
#define PACKAGE_BACKENDS(X) X(CPU, 0) X(VTA, 1) X(EXTERNAL, 2)
enum package_backend {
#define X(name, value) PACKAGE_BACKEND_##name = value,
    PACKAGE_BACKENDS(X)
#undef X
};

/* An extent of 0, as a caller states it: 0 itself is one that was forgotten (PACKAGE_STATUS_EXTENT). */
enum { PACKAGE_EMPTY = -1 };

/* How a kernel ends whose operands are not what the model says, or that calls what fails: rows of TVMRT_STATUS_TABLE.
 * X(name, value, text) */
#define PACKAGE_STATUSES(X)                                                                              \
    X(PACKAGE_STATUS_SHAPE, -10, "a run-time shape exceeds its declared bound or contradicts the model") \
    X(PACKAGE_STATUS_INDEX, -12, "an index, a length or the number of an axis in the data is out of range") \
    X(PACKAGE_STATUS_LIBRARY, -14, "a library or a device that an operator calls has failed") \
    X(PACKAGE_STATUS_EXTENT, -16, "an input extent is 0: set it, or use ..._EMPTY for an empty tensor")

enum package_status {
    PACKAGE_STATUS_OK = 0,
#define PACKAGE_STATUS_ROW(name, value, text) name = value,
    PACKAGE_STATUSES(PACKAGE_STATUS_ROW)
#undef PACKAGE_STATUS_ROW
        PACKAGE_STATUS_END
};

/* What the runtime's log keeps: tvmrt_log_record_t. */
struct package_log_record {
    int32_t level, code, op_id;
};

/* The alignment of a value of `size` bytes. */
static inline uint32_t package_value_align(uint64_t size)
{
    uint32_t align = 1;

    while (align < PACKAGE_MAX_ALIGN && (uint64_t)align * 2 <= size)
        align *= 2;
    return align;
}

#endif
