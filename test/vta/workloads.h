/* workloads.h: instruction streams for tests and benchmarks, made without the run-time: a recorder with the run-time's
 * merging of dependency flags, and tiled convolutions as VTA's published schedules run them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_TEST_WORKLOADS_H
#define VTA_TEST_WORKLOADS_H

#include "vta.h"

/* A stream that grows. Memory that runs out, or a field that does not fit, aborts: tests have no better way. */
typedef struct stream {
    const vta_geometry *geometry;
    vta_insn *insns;
    uint32_t n_insns, insn_capacity;
    uint32_t *uops; /* image of the micro-op memory: the one at [i] is loaded to index i */
    uint32_t n_uops, uop_capacity;
    uint32_t uop_base;                                         /* DRAM address of the image in micro-ops */
    bool pop_prev[VTA_STAGE_COUNT], pop_next[VTA_STAGE_COUNT]; /* pending */
    enum vta_stage last; /* stage of the last instruction, if flags may be merged into it */
} stream;

void stream_init(stream *s, const vta_geometry *g, uint32_t uop_base);
void stream_release(stream *s);
/* Appends an instruction; it takes the pending pops of its stage. */
void stream_emit(stream *s, const vta_fields *f);
void stream_push(stream *s, enum vta_stage from, enum vta_stage to);
void stream_pop(stream *s, enum vta_stage from, enum vta_stage to);
/* Waits for the last load and the last store, then FINISH. */
void stream_finish(stream *s);
/* Adds micro-ops to the image and the LOAD that brings them. Returns the index of the first. */
uint32_t stream_uops(stream *s, const vta_uop_fields *uops, uint32_t count);

/* A product whose sums stay on the chip: out[m] = sum over n of data[n] x weights[m][n]; sizes and DRAM addresses in
 * elements. One step of n loads a column of weights, so that it is bound by memory. The caller finishes it. */
typedef struct product_task {
    uint32_t m, n;
    uint32_t data, weights, out;
} product_task;
void product_emit(stream *s, const product_task *t);

/* A convolution layer and its schedule: tiles are {number, size}, of output rows and columns and of channel blocks;
 * milliseconds are of the published schedule on a Pynq, 0: none. */
typedef struct conv_layer {
    const char *name;
    uint32_t size, in_channels, out_channels, kernel, pad, stride;
    uint32_t tile_h[2], tile_w[2], tile_ci[2], tile_co[2];
    uint32_t oc_threads, h_threads;
    double milliseconds;
} conv_layer;

enum { RESNET18_LAYERS = 10 };
extern const conv_layer resnet18_layers[RESNET18_LAYERS]; /* C2 to C11 */
extern const conv_layer lstm_dense1;                      /* 1 x 256 by 256 x 128 */

/* What follows the accumulation, in this order. */
enum epilogue {
    EPILOGUE_BIAS = 1,
    EPILOGUE_ROUND = 2, /* adds 2^(shift - 1) */
    EPILOGUE_SHIFT = 4,
    EPILOGUE_RESIDUAL = 8, /* 32-bit tensor of the output's shape */
    EPILOGUE_CLIP = 16,    /* min, then max */
    EPILOGUE_QUANTISED = EPILOGUE_BIAS | EPILOGUE_ROUND | EPILOGUE_SHIFT | EPILOGUE_CLIP
};

/* Where tensors lie, in elements of their memory: data [CI][H][W], weights [CO][CI][K][K], bias [CO], residual and out
 * [CO][OH][OW], channels in blocks. */
typedef struct conv_task {
    const conv_layer *layer;
    unsigned epilogue;
    int32_t shift, least, most;
    uint32_t data, weights, bias, residual, out;
} conv_task;

/* Output rows and columns. */
uint32_t conv_extent(const conv_layer *l);
/* Appends the layer to a stream; the caller finishes it. Channels are multiples of the block. */
void conv_emit(stream *s, const conv_task *t);

#endif
