/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the rule for VTA's layers share: sizes that follow from a layer and its device, its blocking. */
#ifndef LATHE_TE_RULE_VTA_RULE_H
#define LATHE_TE_RULE_VTA_RULE_H
#include "target/vta/rule/vta.h"

#include "vta_config.h"

/* Rows or columns of a layer: `size` inputs with zeros before and after make `outputs`. Output i reads the inputs from
 * i*stride, `kernel` of them; in a transposed convolution, of inputs `stride` apart with zeros between them, from
 * i + skip. */
typedef struct vta_dim {
    int64_t size, kernel, stride, before, after, outputs, skip;
} vta_dim;

typedef struct vta_shape {
    vta_geometry g;
    vta_dim rows, columns;
    int64_t batches;   /* tiles of images */
    int64_t in, out;   /* blocks of channels: of one group, of all */
    int64_t group_out; /* blocks of results of one group */
    bool sums;         /* a convolution, transposed or not: sums of products */
} vta_shape;

/* Loops of sums on the chip. Two of the outermost with several iterations become the hardware's, the rest micro-ops, of
 * which two on one accumulator must lie apart. */
typedef enum vta_order {
    VTA_COLUMNS_OUTSIDE,  /* ko j dj di co i */
    VTA_COLUMNS_INSIDE,   /* ko dj di co i j: where rows and channels are too few */
    VTA_CHANNELS_OUTSIDE, /* transposed: ko jo co io jj dj di ii, all from jj unrolled */
    VTA_CHANNELS_INSIDE   /* transposed: ko jo io jj dj di ii co */
} vta_order;

typedef struct vta_loops {
    vta_order order;
    int64_t rows, columns; /* transposed: unrolled outputs */
    int64_t uops;
    bool close; /* sums of neighboring iterations lie closer than the hardware's pipeline is deep */
} vta_loops;

bool vta_is_sum(te_vta_kind k);     /* of products: a convolution, transposed or not */
bool vta_has_window(te_vta_kind k); /* kernel, stride and padding mean something */
/* Fills in sizes that follow from others. NULL, or the rule that the layer breaks. */
const char *vta_shape_check(compiler *c, te_vta_layer *l);
/* The shape of a layer whose sizes are filled in and checked. */
vta_shape vta_shape_of(compiler *c, const te_vta_layer *l);
/* A pool that takes the rows of each column first. Rows of the image lie in buffers by what their number leaves when
 * divided by the stride; those of one tap, `home`, are where the results are made: in a buffer of their own. */
bool vta_pool_splits(const vta_shape *s, const te_vta_layer *l); /* whether it can */
int64_t vta_pool_home(const vta_dim *rows);
/* The first and the last row that taps of this phase read for output 0, in rows of its buffer; false: no tap does. */
bool vta_pool_phase(const vta_dim *rows, int64_t phase, int64_t *out_first, int64_t *out_last);
/* Inputs that a tile of t outputs reads. */
int64_t vta_dim_reads(const vta_shape *s, const te_vta_layer *l, const vta_dim *d, int64_t t);
/* The loops for the layer's tiles; false: none keeps micro-ops apart. */
bool vta_loops_of(const vta_shape *s, const te_vta_layer *l, vta_loops *out);
/* Bytes that a planned layer moves from and to memory. */
int64_t vta_blocks_bytes(compiler *c, const te_vta_layer *l);
/* Fills in tiles and threads. NULL, or why not. */
const char *vta_blocks_choose(compiler *c, te_vta_layer *l);
/* The same as a diagnostic that names a blocking which fits. */
bool vta_blocks_check(compiler *c, te_vta_layer *l);
#endif
