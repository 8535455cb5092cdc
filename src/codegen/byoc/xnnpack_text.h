/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in front of the functions that call XNNPACK. */
#ifndef LATHE_CODEGEN_BYOC_XNNPACK_TEXT_H
#define LATHE_CODEGEN_BYOC_XNNPACK_TEXT_H

static const char xnnpack_helpers[] =
    "/* A region runs in the worker that calls it. More threads are a pool of XNNPACK's own, which all regions share:\n"
    " * between two operators they wait busily, which costs milliseconds where they and the workers are more than the\n"
    " * processors. They sleep after each run. */\n"
    "#ifndef LATHE_XNNPACK_THREADS\n#define LATHE_XNNPACK_THREADS 1\n#endif\n"
    "#ifndef XNN_FLAG_YIELD_WORKERS\n#define XNN_FLAG_YIELD_WORKERS 0\n#endif\n\n"
    "/* One run at a time: a region has one state, and all share the pool. */\n"
    "static pthread_mutex_t lathe_xnn_lock = PTHREAD_MUTEX_INITIALIZER;\n"
    "static pthreadpool_t lathe_xnn_pool;\n\n"
    "/* A region while it is made: the first status that is no success stays. */\n"
    "typedef struct lathe_xnn {\n    xnn_subgraph_t graph;\n    enum xnn_status status;\n    void **owned;\n"
    "} lathe_xnn;\n\n"
    "#define LATHE_XNN(x, call) \\\n    do { \\\n        if ((x)->status == xnn_status_success) \\\n"
    "            (x)->status = (call); \\\n    } while (0)\n\n"
    "/* Of each of n matrices the transposed one. Blocks of 16 x 16 stay in the cache. */\n"
    "static void lathe_xnn_turn(float *to, const float *from, size_t n, size_t rows, size_t columns)\n{\n"
    "    size_t k, i, j, i0, j0;\n"
    "    for (k = 0; k < n; k++, from += rows * columns, to += rows * columns)\n"
    "        for (i0 = 0; i0 < rows; i0 += 16)\n            for (j0 = 0; j0 < columns; j0 += 16)\n"
    "                for (i = i0; i < rows && i < i0 + 16; i++)\n"
    "                    for (j = j0; j < columns && j < j0 + 16; j++)\n"
    "                        to[j * rows + i] = from[i * columns + j];\n}\n\n"
    "static uint32_t lathe_xnn_value(lathe_xnn *x, size_t rank, const size_t *dims, const void *data,\n"
    "                                uint32_t outside, uint32_t flags)\n{\n    uint32_t id = XNN_INVALID_VALUE_ID;\n"
    "    LATHE_XNN(x, xnn_define_tensor_value(x->graph, xnn_datatype_fp32, rank, dims, data, outside, flags, &id));\n"
    "    return id;\n}\n\n"
    "static uint32_t lathe_xnn_zeros(lathe_xnn *x, size_t n)\n{\n"
    "    void *own = calloc(1, n * sizeof(float) + XNN_EXTRA_BYTES);\n"
    "    if (own == NULL) {\n        LATHE_XNN(x, xnn_status_out_of_memory);\n"
    "        return XNN_INVALID_VALUE_ID;\n    }\n    *x->owned++ = own;\n"
    "    return lathe_xnn_value(x, 1, &n, own, XNN_INVALID_VALUE_ID, 0);\n}\n\n"
    "/* Constants stay as long as the region, with the bytes behind them that XNNPACK may read. */\n"
    "static uint32_t lathe_xnn_constant(lathe_xnn *x, size_t rank, const size_t *dims, const float *data, size_t n,\n"
    "                                   size_t rows, size_t columns)\n{\n"
    "    float *own = malloc(n * rows * columns * sizeof(float) + XNN_EXTRA_BYTES);\n"
    "    if (own == NULL) {\n        LATHE_XNN(x, xnn_status_out_of_memory);\n"
    "        return XNN_INVALID_VALUE_ID;\n    }\n"
    "    lathe_xnn_turn(own, data, n, rows, columns);\n    *x->owned++ = own;\n"
    "    return lathe_xnn_value(x, rank, dims, own, XNN_INVALID_VALUE_ID, 0);\n}\n";

/* @s: the symbol; @c: number of constants. */
static const char xnnpack_state[] =
    "static struct {\n    xnn_runtime_t runtime;\n    const float *made_of[@c];\n    void *owned[@o];\n"
    "    const void *places[@v]; /* that the runtime is set up for */\n} @s_state;\n\n"
    "static void @s_drop(void)\n{\n    size_t i;\n    if (@s_state.runtime != NULL)\n"
    "        (void)xnn_delete_runtime(@s_state.runtime);\n"
    "    for (i = 0; i < @o; i++)\n        free(@s_state.owned[i]);\n"
    "    memset(&@s_state, 0, sizeof @s_state);\n}\n\n";

static const char xnnpack_make[] =
    "/* The state for these constants, unless it is there: made once, and again for another instance's constants. */\n"
    "static enum xnn_status @s_make(const float *const *constants)\n{\n"
    "    lathe_xnn x = {NULL, xnn_status_success, @s_state.owned};\n"
    "    if (@s_state.runtime != NULL && memcmp(@s_state.made_of, constants, @c * sizeof *constants) == 0)\n"
    "        return xnn_status_success;\n"
    "    @s_drop();\n"
    "    LATHE_XNN(&x, xnn_initialize(NULL));\n"
    "    if (LATHE_XNNPACK_THREADS > 1 && lathe_xnn_pool == NULL)\n"
    "        lathe_xnn_pool = pthreadpool_create(LATHE_XNNPACK_THREADS);\n"
    "    LATHE_XNN(&x, xnn_create_subgraph(@v, 0, &x.graph));\n"
    "    if (x.status == xnn_status_success)\n        @s_define(&x, constants);\n"
    "    LATHE_XNN(&x, xnn_create_runtime_v2(x.graph, lathe_xnn_pool, XNN_FLAG_YIELD_WORKERS,\n"
    "                                        &@s_state.runtime));\n"
    "    if (x.graph != NULL)\n        (void)xnn_delete_subgraph(x.graph);\n"
    "    if (x.status == xnn_status_success)\n"
    "        memcpy(@s_state.made_of, constants, @c * sizeof *constants);\n"
    "    else\n        @s_drop();\n"
    "    return x.status;\n}\n\n"
    "static enum xnn_status @s_run(const float *const *constants, void *const *places)\n{\n"
    "    struct xnn_external_value values[@v];\n    enum xnn_status status = @s_make(constants);\n    uint32_t i;\n"
    "    for (i = 0; i < @v; i++) {\n        values[i].id = i;\n        values[i].data = places[i];\n    }\n"
    "    if (status == xnn_status_success && memcmp(@s_state.places, places, sizeof @s_state.places) != 0) {\n"
    "        status = xnn_setup_runtime(@s_state.runtime, @v, values);\n"
    "        memcpy(@s_state.places, places, sizeof @s_state.places);\n    }\n"
    "    if (status == xnn_status_success)\n        status = xnn_invoke_runtime(@s_state.runtime);\n"
    "    if (status != xnn_status_success)\n        @s_drop();\n"
    "    return status;\n}\n";

#endif
