/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of com.microsoft.nchwc: models that onnxruntime's optimizer saved for one kind of processor. Channels lie
 * in blocks there, and weights are stored in that order. Values become plain again, with as many channels as the
 * blocks hold; the compiler chooses layouts itself.
 *
 * The model does not say how many channels a block has: 8 (AVX2) or 16 (AVX-512, Arm). Channels that fill up the last
 * block tell, for their weights are 0: where they stand depends on the blocks. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define KEY        "lathe.nchwc_block" /* of the model's metadata */
#define MOST_BLOCK 16

/* Weights [out, in, height, width] as they are stored: blocks of `out`, and, unless `in` is less than a block or there
 * is one for each group, blocks of `in` inside of them. */
typedef struct weights {
    const tensor_data *t;
    int64_t out, in, area, block, groups;
} weights;

static bool read_weights(const tensor_data *t, int64_t groups, int64_t block, weights *w)
{
    if (!t || t->dt != DT_F32 || t->rank != 4 || t->count == 0)
        return false;
    *w = (weights){.t = t, .out = t->dims[0], .in = t->dims[1], .area = t->dims[2] * t->dims[3], .block = block,
                   .groups = groups};
    return w->out % block == 0;
}

/* Where the weight of a result o for channel i at place p is stored. */
static int64_t place_of(const weights *w, int64_t o, int64_t i, int64_t p)
{
    const int64_t b = w->block;
    const bool inner = w->in >= b && w->in % b == 0 && !(w->in == 1 && w->groups == w->out);
    int64_t at = o / b * (w->in / (inner ? b : 1)) + i / (inner ? b : 1);
    at = at * w->area + p;
    at = inner ? at * b + i % b : at;
    return at * b + o % b;
}

static bool is_zero(const weights *w, int64_t o)
{
    bool zero = true;
    for (int64_t i = 0; zero && i < w->in; i++)
        for (int64_t p = 0; zero && p < w->area; p++)
            zero = tensor_get_f64(w->t, place_of(w, o, i, p)) == 0;
    return zero;
}

/* Whether channels at the end, and none before them, have no weights if blocks are so large: 1; 0 if they are filled
 * anyway. */
static int filled_up(const tensor_data *t, int64_t groups, int64_t block)
{
    weights w;
    if (!read_weights(t, groups, block, &w) || !is_zero(&w, w.out - 1))
        return 0;
    int64_t used = w.out;
    while (used > 0 && w.out - used < block && is_zero(&w, used - 1))
        used--;
    return w.out - used < block; /* those of a channel that is 0 anyway stand together as well */
}

static const tensor_data *constant_of(onnx_node *n, const pb_node *node, uint32_t i)
{
    const onnx_scope *s = n->env->scope;
    if (i >= node->input.len)
        return NULL;
    const char *name = onnx_name(n->im, node->input.data[i]);
    const pb_tensor *pb = NULL;
    for (; s && !pb; s = s->parent)
        pb = onnx_map_get(&s->initializers, name);
    return pb ? onnx_tensor_read(n->im, pb, n->loc) : NULL;
}

static int64_t groups_of(onnx_node *n, const pb_node *node)
{
    for (uint32_t i = 0; i < node->attribute.len; i++)
        if (strcmp(onnx_name(n->im, node->attribute.data[i]->name), "group") == 0)
            return node->attribute.data[i]->i;
    return 1;
}

/* By the weights of the whole model; 0: they fit both. Without weights it does not matter. */
static int64_t block_by_weights(onnx_node *n)
{
    const pb_graph *g = n->im->model ? n->im->model->graph : NULL;
    bool any = false;
    for (uint32_t i = 0; g && i < g->node.len; i++) {
        const pb_node *node = g->node.data[i];
        const bool conv = strcmp(onnx_domain(n->im, node->domain), n->row->domain) == 0 &&
                          strcmp(onnx_name(n->im, node->op_type), "Conv") == 0;
        const tensor_data *t = conv ? constant_of(n, node, 1) : NULL;
        any |= conv;
        if (!t || t->rank != 4)
            continue;
        if (t->dims[0] % MOST_BLOCK != 0)
            return MOST_BLOCK / 2;
        const int64_t groups = groups_of(n, node);
        const int small = filled_up(t, groups, MOST_BLOCK / 2), large = filled_up(t, groups, MOST_BLOCK);
        if (small != large)
            return large ? MOST_BLOCK : MOST_BLOCK / 2;
    }
    return any ? 0 : MOST_BLOCK;
}

/* Channels of a block, found out once for the model. */
static int64_t block_of(onnx_node *n)
{
    const char *given = onnx_metadata(n->im, KEY);
    if (n->im->nchwc_block)
        return n->im->nchwc_block;
    if (given && strcmp(given, "8") != 0 && strcmp(given, "16") != 0)
        onnx_fail(n, DIAG_FORMAT, "the metadata %s is '%.40s', neither 8 nor 16", KEY, given);
    int64_t block = given ? (*given == '8' ? MOST_BLOCK / 2 : MOST_BLOCK) : block_by_weights(n);
    if (!block) {
        block = MOST_BLOCK;
        diag_warning(&n->c->diags, DIAG_FORMAT, n->loc,
                     "the model does not say how many channels a block of com.microsoft.nchwc has; 16 is taken, as on "
                     "processors with AVX-512");
        diag_hint(&n->c->diags, "if it was saved on a processor with AVX2, put the metadata %s = 8 into the model; or "
                                "save it with GraphOptimizationLevel.ORT_ENABLE_EXTENDED, which any processor reads",
                  KEY);
    }
    return n->im->nchwc_block = block;
}

/* As ONNX has them. */
static const tensor_data *plain_weights(onnx_node *n, const tensor_data *t, int64_t block)
{
    weights w;
    if (!t || t->dt != DT_F32 || t->rank != 4)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the weights must be constants of floats with four dimensions"), NULL;
    if (!read_weights(t, onnx_attr_int(n, "group", 1), block, &w))
        return onnx_fail(n, DIAG_FORMAT, "weights for %lld results do not divide into blocks of %lld",
                         (long long)t->dims[0], (long long)block), NULL;
    uint8_t *data = arena_alloc(&n->c->mem, (size_t)t->count * sizeof(float), 64), *to = data;
    for (int64_t o = 0; o < w.out; o++)
        for (int64_t i = 0; i < w.in; i++)
            for (int64_t p = 0; p < w.area; p++, to += sizeof(float))
                memcpy(to, tensor_element(t, place_of(&w, o, i, p)), sizeof(float));
    return tensor_dense(n->c, DT_F32, 4, t->dims, data);
}

bool onnx_op_nchwc_conv(onnx_node *n)
{
    const tensor_data *w = plain_weights(n, graph_constant(onnx_in(n, 1)), block_of(n));
    return w && onnx_fused_conv(n, onnx_constant(n, w));
}

static const int64_t to_channels_first[4] = {0, 3, 1, 2}, to_channels_last[4] = {0, 2, 3, 1};

static graph_value *four_dimensions(onnx_node *n, graph_value *x)
{
    return onnx_rank(x) == 4 ? x : onnx_refuse(n, DIAG_TYPE, "the input must have four dimensions");
}

bool onnx_op_nchwc_reorder_input(onnx_node *n)
{
    graph_value *x = four_dimensions(n, onnx_in(n, 0));
    if (!n->failed && onnx_attr_int(n, "channels_last", 0) != 0)
        x = onnx_transpose(n, x, 4, to_channels_first);
    const int64_t block = block_of(n), channels = onnx_static_dim(n, x, 1);
    const int64_t pads[8] = {0, 0, 0, 0, 0, (block - channels % block) % block, 0, 0};
    if (!n->failed && pads[5] > 0)
        x = onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 8, pads));
    return onnx_alias(n, 0, x);
}

bool onnx_op_nchwc_reorder_output(onnx_node *n)
{
    graph_value *x = four_dimensions(n, onnx_in(n, 0));
    const int64_t channels = onnx_attr_int(n, "channels", 0), all = onnx_static_dim(n, x, 1);
    if (!n->failed && (channels < 1 || channels > all))
        return onnx_fail(n, DIAG_FORMAT, "channels = %lld, but there are %lld", (long long)channels, (long long)all);
    if (channels < all)
        x = onnx_slice(n, x, 1, 0, channels);
    if (onnx_attr_int(n, "channels_last", 0) != 0)
        x = onnx_transpose(n, x, 4, to_channels_last);
    return onnx_alias(n, 0, x);
}

/* By whole numbers; each number is repeated where nothing is interpolated. */
bool onnx_op_nchwc_upsample(onnx_node *n)
{
    const int64_t *scales = NULL;
    const uint32_t count = onnx_attr_ints(n, "scales", &scales);
    const char *mode = onnx_attr_string(n, "mode", "nearest");
    const bool whole = strcmp(mode, "nearest") == 0;
    const char *where = onnx_attr_string(n, "coordinate_transformation_mode", "asymmetric");
    float *by = arena_array(&n->c->mem, float, count + 1);
    for (uint32_t i = 0; i < count; i++)
        by[i] = (float)scales[i];
    if (n->failed || count != onnx_rank(onnx_in(n, 0)))
        return onnx_fail(n, DIAG_FORMAT, "scales must have a number for each dimension");
    attr a[3] = {attr_string(n->c, "mode", mode),
                 attr_string(n->c, "coordinate_transformation_mode", whole ? "asymmetric" : where),
                 attr_string(n->c, "nearest_mode", "floor")};
    graph_value *in[3] = {onnx_in(n, 0), NULL,
                          onnx_constant(n, tensor_dense(n->c, DT_F32, 1, (int64_t[]){count}, by))};
    onnx_result(n, 0, (onnx_args){"resize", 3, in, 3, a});
    return !n->failed;
}
