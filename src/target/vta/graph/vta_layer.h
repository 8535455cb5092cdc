/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that the VTA accelerator computes, read from the nodes of a pattern: which operands are what, and the numbers
 * that its arithmetic needs. Integers of 8 bits, sums in 32, rounding half up, scales that are powers of two: what the
 * quantised operators with rounding "half_up" define (docs/notes/quantize.md), so that the accelerator gives
 * their bits. */
#ifndef LATHE_GRAPH_VTA_LAYER_H
#define LATHE_GRAPH_VTA_LAYER_H
#include "graph/graph.h"

#include <vta_config.h>

/* X(id, what messages call it) */
#define VTA_LAYERS(X)                                                                 \
    X(VTA_LAYER_CONV, "convolution")                                                  \
    X(VTA_LAYER_CONV_TRANSPOSE, "transposed convolution")                             \
    X(VTA_LAYER_DENSE, "product")                                                     \
    X(VTA_LAYER_ADD, "sum")                                                           \
    X(VTA_LAYER_MAX_POOL, "max pool")                                                 \
    X(VTA_LAYER_AVG_POOL, "average pool")                                             \
    X(VTA_LAYER_UPSAMPLE, "upsampling")                                               \
    X(VTA_LAYER_CLIP, "limits")                                                       \
    X(VTA_LAYER_VIEW, "view") /* [N, C, 1, 1] as [N, C], or back: the same bytes */   \
    X(VTA_LAYER_CONCAT, "concatenation") /* of whole blocks of channels: its operands are written where it lies */
typedef enum vta_layer_kind {
#define X(id, text) id,
    VTA_LAYERS(X)
#undef X
} vta_layer_kind;
const char *vta_layer_text(vta_layer_kind k);

#define VTA_LAYER_DATA 4u /* operands that are data, at most */

typedef struct vta_layer {
    vta_layer_kind kind;
    const graph_node *anchor; /* the operator that gives it its kind */
    graph_value *data[VTA_LAYER_DATA]; /* ADD has two, CONCAT two or more; the others are NULL */
    graph_value *weights;     /* CONV: OIHW; ..._TRANSPOSE: IOHW; DENSE: K, N, or N, K with `transposed` */
    graph_value *bias;        /* i32, one for each output channel; NULL: none */
    graph_value *result;
    bool transposed;
    /* Of CONV, CONV_TRANSPOSE, DENSE (then all of the image is one pixel), pools, UPSAMPLE. */
    int64_t kernel[2], stride[2], pads[4]; /* rows, columns; pads: top, left, bottom, right; of CONV_TRANSPOSE what is
                                            * cut off there, below 0: what is added */
    int64_t groups;
    int64_t scale[2];    /* UPSAMPLE: each row, each column so many times */
    int64_t left[2];     /* ADD: by how much each operand is shifted to the left first */
    int64_t factor;      /* AVG_POOL: what the sum is multiplied by; else 1 */
    int64_t shift;       /* then (x + 2^(shift-1)) >> shift; below 0: to the left; 0: nothing */
    int64_t low, high;   /* then between these */
    bool wants_positive; /* MAX_POOL: it pads, with zeros, which are the least of what it reads only where that is not
                          * negative */
} vta_layer;

extern const char vta_patterns[]; /* vta_patterns.c: what the accelerator takes */

/* The layer that makes `result`, found from there backwards, up to its anchor. false: it is none that the accelerator
 * computes, and *why, text that lasts as long as c, says what is in the way. */
bool vta_layer_read(compiler *c, graph_value *result, vta_layer *out, const char **why);
/* Limits alone: one ReLU or clip, whatever is in front of it. */
bool vta_layer_limits(compiler *c, graph_value *result, vta_layer *out, const char **why);
/* The same of a function that a pattern of the target made. */
bool vta_layer_of(compiler *c, const graph_func *composite, vta_layer *out, const char **why);
/* What vta-pack adds to each number of the bias, for the layer's shift to round: half of what that drops. 0: the layer
 * adds it itself. */
int64_t vta_layer_half(const vta_layer *l);
/* Whether no element of v is below 0, as far as the nodes say that lead to it; `call`: of the function that has v,
 * NULL: its parameters are anything. */
bool vta_layer_is_positive(const graph_value *v, const graph_node *call);
/* The device of c. */
vta_geometry vta_layer_device(compiler *c);
/* Groups as the device computes a convolution of `groups` groups: the most into which its blocks of channels, the last
 * ones filled up, can be divided so that no group's channels lie in two of them. Those that share one become one, whose
 * kernel has zeros between them. Channels are multiples of groups. */
int64_t vta_layer_groups(const vta_geometry *g, int64_t in_channels, int64_t out_channels, int64_t groups);
/* Images, channels, rows, columns of a value of rank 4 or 2 (then 1 by 1); false: not known. */
bool vta_layer_image(const graph_value *v, int64_t out[4]);
#endif
