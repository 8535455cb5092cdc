/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the numbers of a layer for VTA, and what no device computes. */
#include "target/vta/rule/vta_rule.h"

#include <inttypes.h>
#include <string.h>

#include "target/vta/vta_text.h"
#include "vta_isa.h"

static vta_geometry geometry_of(compiler *c)
{
    vta_geometry g;
    const char *why;
    (void)vta_config_derive(vta_text_config(c), &g, &why); /* was checked when it was read */
    return g;
}

bool vta_is_sum(te_vta_kind k)
{
    return k == TE_VTA_CONV || k == TE_VTA_CONV_TRANSPOSE;
}

bool vta_has_window(te_vta_kind k)
{
    return vta_is_sum(k) || k == TE_VTA_MAX_POOL || k == TE_VTA_SUM_POOL;
}

/* --- kinds --- */

static const char *const kind_names[] = {
#define X(id, name, help) [id] = name,
    TE_VTA_KINDS(X)
#undef X
};

const char *te_vta_kind_name(te_vta_kind kind)
{
    return kind_names[kind];
}

bool te_vta_kind_find(const char *name, te_vta_kind *out)
{
    for (int k = 0; k < TE_VTA_KIND_COUNT; k++) {
        *out = (te_vta_kind)k;
        if (strcmp(kind_names[k], name) == 0)
            return true;
    }
    return false;
}

/* --- what follows from the keys --- */

static void fill_in(const vta_geometry *g, te_vta_layer *l)
{
    l->batch = l->batch ? l->batch : g->batch;
    l->width = l->width ? l->width : l->height;
    l->out_channels = l->out_channels ? l->out_channels : l->in_channels;
    l->kernel_w = l->kernel_w ? l->kernel_w : l->kernel;
    l->stride_w = l->stride_w ? l->stride_w : l->stride;
    l->pad = l->pad == -1 ? l->kernel / 2 : l->pad;
    l->pad_left = l->pad_left != -1 ? l->pad_left : l->kernel_w == l->kernel ? l->pad : l->kernel_w / 2;
    l->pad_bottom = l->pad_bottom == -1 ? l->pad : l->pad_bottom;
    l->pad_right = l->pad_right == -1 ? l->pad_left : l->pad_right;
}

static vta_dim dim_of(te_vta_kind kind, int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after)
{
    vta_dim d = {.size = size, .kernel = kernel, .stride = stride, .before = before, .after = after};
    switch (kind) {
    case TE_VTA_CONV:
    case TE_VTA_MAX_POOL:
    case TE_VTA_SUM_POOL: d.outputs = (size + before + after - kernel) / stride + 1; break;
    case TE_VTA_CONV_TRANSPOSE: {
        /* a convolution of inputs `stride` apart behind border zeros, of which `before` more lie in front */
        int64_t border = kernel - 1 - before;
        d.outputs = (size - 1) * stride - before - after + kernel;
        d.before = (border + stride - 1) / stride;
        d.skip = d.before * stride - border;
        int64_t read = (d.outputs + kernel - 2 + d.skip) / stride + 1;
        d.after = read > size + d.before ? read - size - d.before : 0;
        break;
    }
    case TE_VTA_UPSAMPLING: d.outputs = size * stride; break;
    case TE_VTA_ELEMENTWISE:
    case TE_VTA_ADD:
    case TE_VTA_KIND_COUNT: d.outputs = size; break;
    }
    return d;
}

static vta_dim rows_of(const te_vta_layer *l)
{
    return dim_of(l->kind, l->height, l->kernel, l->stride, l->pad, l->pad_bottom - l->output_pad);
}

static vta_dim columns_of(const te_vta_layer *l)
{
    return dim_of(l->kind, l->width, l->kernel_w, l->stride_w, l->pad_left, l->pad_right - l->output_pad_w);
}

int64_t te_vta_layer_rows(const te_vta_layer *l)
{
    return rows_of(l).outputs;
}

int64_t te_vta_layer_columns(const te_vta_layer *l)
{
    return columns_of(l).outputs;
}

vta_shape vta_shape_of(compiler *c, const te_vta_layer *l)
{
    vta_shape s = {.g = geometry_of(c), .rows = rows_of(l), .columns = columns_of(l), .sums = vta_is_sum(l->kind)};
    int64_t lanes = s.g.block_in;
    s.batches = l->batch / (int64_t)s.g.batch;
    s.in = l->in_channels / lanes / l->groups;
    s.out = l->out_channels / lanes;
    s.group_out = s.out / l->groups;
    return s;
}

/* --- pools that take rows first --- */

bool vta_pool_splits(const vta_shape *s, const te_vta_layer *l)
{
    enum { MOST_TAPS = 64 }; /* each is a stage */
    const bool pads = s->rows.before + s->rows.after + s->columns.before + s->columns.after > 0;
    const bool pool = l->kind == TE_VTA_SUM_POOL || (l->kind == TE_VTA_MAX_POOL && (!pads || l->positive));
    return pool && s->rows.kernel + s->columns.kernel <= MOST_TAPS;
}

/* One that shares its phase with no other tap, so that nothing is loaded twice; else the first. */
int64_t vta_pool_home(const vta_dim *rows)
{
    for (int64_t t = 0; t < rows->kernel; t++)
        if (t < rows->stride && t + rows->stride >= rows->kernel)
            return t;
    return 0;
}

bool vta_pool_phase(const vta_dim *rows, int64_t phase, int64_t *out_first, int64_t *out_last)
{
    const int64_t home = vta_pool_home(rows);
    *out_first = INT64_MAX;
    for (int64_t t = phase; t < rows->kernel; t += rows->stride) {
        if (t == home)
            continue;
        *out_last = t / rows->stride;
        *out_first = *out_first < *out_last ? *out_first : *out_last;
    }
    return *out_first < INT64_MAX;
}

/* --- what no device computes --- */

static const char *check_channels(compiler *c, const vta_geometry *g, const te_vta_layer *l)
{
    int64_t lanes = g->block_in;
    if (l->in_channels % lanes || l->out_channels % lanes || l->batch % (int64_t)g->batch)
        return arena_printf(&c->mem,
                            "%" PRId64 " images, %" PRId64 " to %" PRId64
                            " channels: the device takes multiples of %u and %" PRId64,
                            l->batch, l->in_channels, l->out_channels, g->batch, lanes);
    if (l->in_channels % (lanes * l->groups) || l->out_channels % (lanes * l->groups))
        return arena_printf(&c->mem,
                            "%" PRId64 " groups of %" PRId64 " to %" PRId64
                            " channels: the device takes whole blocks of %" PRId64 " in each",
                            l->groups, l->in_channels / l->groups, l->out_channels / l->groups, lanes);
    if (!vta_is_sum(l->kind) && (l->in_channels != l->out_channels || l->groups != 1))
        return "only convolutions change the number of channels, or have groups";
    return NULL;
}

static bool is_between(int64_t low, int64_t v, int64_t high)
{
    return low <= v && v <= high;
}

/* Shifts of an accumulator of so many bits. */
static bool shifts_fit(const te_vta_layer *l, int64_t bits)
{
    const int64_t both[] = {l->shift, l->sum_shift}, left[] = {l->shift_a, l->shift_b};
    bool fit = true;
    for (int i = 0; i < 2; i++)
        fit &= is_between(1 - bits, both[i], bits - 1) && is_between(0, left[i], bits - 1);
    return fit;
}

static bool immediates_fit(const te_vta_layer *l)
{
    return is_between(INT16_MIN, l->low, l->high) && l->high <= INT16_MAX &&
           is_between(INT16_MIN, l->sum_low, l->sum_high) && l->sum_high <= INT16_MAX &&
           is_between(INT16_MIN, l->mul, INT16_MAX);
}

static const char *check_steps(const vta_geometry *g, const te_vta_layer *l)
{
    int64_t bits = g->width[VTA_MEM_ACC];
    bool other = l->residual || l->kind == TE_VTA_ADD;
    if (g->width[VTA_MEM_INP] < 8 || g->width[VTA_MEM_ACC] < 8)
        return "inputs and sums of less than 8 bits are not built: only weights can be narrower";
    if (g->width[VTA_MEM_INP] > 16 || g->width[VTA_MEM_WGT] > 16)
        return "inputs and weights of more than 16 bits are not built";
    if (!shifts_fit(l, bits))
        return "shifts must be smaller than an accumulator";
    if (!immediates_fit(l))
        return "factor and limits must lie within 16 bits, low below high";
    if ((!vta_is_sum(l->kind) || other) && (g->width[VTA_MEM_INP] != 8 || g->width[VTA_MEM_ACC] != 32))
        return "inputs of 8 bits go into accumulators of 32 bits, and no others";
    if (!l->half && (!l->bias || l->mul || l->shift > 15))
        return "half=0 needs a bias, no factor, and a shift of at most 15 bits";
    if (l->residual && (l->kind == TE_VTA_UPSAMPLING || l->kind == TE_VTA_ADD))
        return "this layer adds no other tensor after its result";
    return NULL;
}

enum { TOP, LEFT, BOTTOM, RIGHT, SIDES };

/* Whether a window that stands as far outside as a side's padding lies in padding alone. */
static bool pads_whole_windows(const te_vta_layer *l, const int64_t pads[SIDES])
{
    return pads[TOP] >= l->kernel || pads[BOTTOM] >= l->kernel || pads[LEFT] >= l->kernel_w ||
           pads[RIGHT] >= l->kernel_w;
}

/* A window of one element at each place, as layers without windows have it. The stride of upsampling is its factor. */
static bool is_single(const te_vta_layer *l, const int64_t pads[SIDES])
{
    bool padded = false;
    for (int i = 0; i < SIDES; i++)
        padded |= pads[i] != 0;
    const bool strides = l->kind != TE_VTA_UPSAMPLING && (l->stride != 1 || l->stride_w != 1);
    return l->kernel == 1 && l->kernel_w == 1 && !padded && !strides;
}

static const char *check_window(const te_vta_layer *l)
{
    const int64_t pads[SIDES] = {l->pad, l->pad_left, l->pad_bottom, l->pad_right};
    bool below = l->output_pad < 0 || l->output_pad_w < 0;
    for (int i = 0; i < SIDES; i++)
        below |= pads[i] < 0;
    if (below)
        return "padding must not be negative";
    if (l->kind != TE_VTA_CONV_TRANSPOSE && (l->output_pad || l->output_pad_w))
        return "only conv2d_transpose pads its output";
    if (!vta_has_window(l->kind) && !is_single(l, pads))
        return "this layer has no window: kernel and stride are 1, padding is 0";
    if (l->kind == TE_VTA_CONV_TRANSPOSE)
        return pads_whole_windows(l, pads) || te_vta_layer_rows(l) < 1 || te_vta_layer_columns(l) < 1
                   ? "a transposed convolution pads by less than its kernel"
                   : NULL;
    if (l->kind == TE_VTA_MAX_POOL && l->positive && pads_whole_windows(l, pads))
        return "the padding of a max pool must be smaller than its kernel, so that no window has only padding";
    if (l->height + l->pad + l->pad_bottom < l->kernel || l->width + l->pad_left + l->pad_right < l->kernel_w)
        return "the kernel is larger than the padded input";
    return NULL;
}

const char *vta_shape_check(compiler *c, te_vta_layer *l)
{
    vta_geometry g = geometry_of(c);
    fill_in(&g, l);
    const int64_t sizes[] = {l->batch,  l->height, l->width,    l->in_channels, l->out_channels,
                             l->groups, l->kernel, l->kernel_w, l->stride,      l->stride_w};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > 1 << 20)
            return "sizes must be positive";
    const char *why = check_window(l);
    why = why ? why : check_channels(c, &g, l);
    return why ? why : check_steps(&g, l);
}
