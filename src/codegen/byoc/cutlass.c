/* SPDX-License-Identifier: Apache-2.0 */
/* CUTLASS: products of matrices and convolutions, with bias and activation, on NVIDIA's GPUs. A region becomes a C
 * function in a CUDA file: operands go to the device, results come back, constants stay there. Convolutions are
 * products of the rows that their windows see; images are NHWC on the device, turned at the region's borders. */
#include "codegen/byoc/flat.h"
#include "codegen/embedded.h"

#include <string.h>

#define MOST_CONSTANTS 512u
#define ALIGN          256u

/* A block of the region's memory on the device. */
typedef struct block {
    const graph_value *value;
    uint64_t at;
} block;

typedef struct cuda {
    lathe_gen *g;
    compiler *c;
    const graph_func *f;
    flat_list list;
    VEC(block) blocks;
    VEC(const graph_value *) constants;
    writer first, each; /* lines of the first run alone, and of each one */
    uint64_t bytes;
} cuda;

/* A product and what is done to it: nn.matmul or nn.conv2d, the bias and the activation behind it. */
typedef struct step {
    flat_op *op;
    const graph_value *bias; /* NULL: none */
    const char *act;
    const graph_value *out;
} step;

/* --- memory on the device --- */

static uint64_t take(cuda *k, uint64_t bytes)
{
    const uint64_t at = k->bytes;
    k->bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static uint64_t size_of(const graph_value *v)
{
    return (uint64_t)lathe_value_count(v) * sizeof(float);
}

static const char *at_text(cuda *k, uint64_t at)
{
    return lathe_gen_text(k->g, "(float *)(lathe_m->base + %lluu)", (unsigned long long)at);
}

static const char *find(cuda *k, const graph_value *v)
{
    for (uint32_t i = 0; i < k->blocks.len; i++)
        if (k->blocks.data[i].value == v)
            return at_text(k, k->blocks.data[i].at);
    return NULL;
}

static const char *place(cuda *k, const graph_value *v)
{
    const char *there = find(k, v);
    if (there)
        return there;
    const uint64_t at = take(k, size_of(v));
    vec_push(&k->c->mem, &k->blocks, ((block){v, at}));
    return at_text(k, at);
}

/* What stands in front of it has succeeded. */
static void line(writer *w, const char *text)
{
    w_line(w, "LATHE_CUDA(%s);", text);
}

static const char *turn_text(cuda *k, int64_t n, int64_t rows, int64_t columns, const char *from, const char *to)
{
    return lathe_gen_text(k->g, "lathe_turn(%lld, %lld, %lld, %s, %s)", (long long)n, (long long)rows,
                          (long long)columns, from, to);
}

static const char *copy_text(cuda *k, const char *to, const char *from, uint64_t bytes, const char *way)
{
    return lathe_gen_text(k->g, "cudaMemcpy(%s, %s, %lluu, cudaMemcpy%s)", to, from, (unsigned long long)bytes, way);
}

/* A constant on the device, each of its n matrices transposed; once. */
static const char *constant(cuda *k, const graph_value *v, int64_t n, int64_t rows, int64_t columns)
{
    const char *there = find(k, v);
    if (there)
        return there;
    const char *to = place(k, v), *name = lathe_gen_name(k->g, v);
    const bool turned = rows > 1 && columns > 1;
    const char *raw = turned ? at_text(k, take(k, size_of(v))) : to;
    line(&k->first, copy_text(k, raw, name, size_of(v), "HostToDevice"));
    if (turned)
        line(&k->first, turn_text(k, n, rows, columns, raw, to));
    vec_push(&k->c->mem, &k->constants, v);
    return to;
}

/* Between NCHW outside and NHWC on the device. */
static void border(cuda *k, const graph_value *v, bool in)
{
    const char *name = lathe_gen_name(k->g, v), *there = place(k, v), *raw = there;
    const int64_t n = lathe_value_extent(v, 0), channels = flat_is_image(v) ? lathe_value_extent(v, 1) : 1;
    const int64_t pixels = flat_is_image(v) ? lathe_value_extent(v, 2) * lathe_value_extent(v, 3) : 1;
    const bool turned = channels > 1 && pixels > 1;
    if (turned)
        raw = at_text(k, take(k, size_of(v)));
    if (!in && turned)
        line(&k->each, turn_text(k, n, pixels, channels, there, raw));
    line(&k->each, in ? copy_text(k, raw, name, size_of(v), "HostToDevice")
                      : copy_text(k, name, raw, size_of(v), "DeviceToHost"));
    if (in && turned)
        line(&k->each, turn_text(k, n, channels, pixels, raw, there));
}

/* --- operators --- */

static bool is_constant(const cuda *k, const graph_value *v)
{
    return v && lathe_gen_constant(k->g, v) != NULL;
}

/* The bias and the activation that are all that reads what s has so far. */
static void find_epilogue(cuda *k, step *s, int64_t channels)
{
    flat_op *next = flat_reader(&k->list, k->f, s->out);
    const int32_t axis = flat_is_image(s->out) ? -3 : -1;
    if (next && strcmp(lathe_node_op(next->node), "add") == 0) {
        const graph_value *bias = next->in[0] == s->out ? next->in[1] : next->in[0];
        if (is_constant(k, bias) && lathe_value_count(bias) == channels &&
            lathe_value_extent(bias, axis) == channels && lathe_value_rank(next->out) == lathe_value_rank(s->out)) {
            s->bias = bias;
            s->out = next->out;
            next->done = true;
            next = flat_reader(&k->list, k->f, s->out);
        }
    }
    const char *name = next ? lathe_node_op(next->node) : "";
    const bool relu = strcmp(name, "nn.relu") == 0;
    const bool gelu = strcmp(name, "gelu") == 0 && strcmp(lathe_node_text(next->node, "approximate"), "none") == 0;
    if (!relu && !gelu)
        return;
    s->act = relu ? "LATHE_RELU" : "LATHE_GELU";
    s->out = next->out;
    next->done = true;
}

static void product(cuda *k, const step *s, bool turned, const int64_t mnk[3], const char *a, const char *b)
{
    const char *bias = s->bias ? constant(k, s->bias, 1, 1, lathe_value_count(s->bias)) : "(const float *)NULL";
    line(&k->each, lathe_gen_text(k->g, "(lathe_product<%s, %s>(%lld, %lld, %lld, %s, %s, %s, %s))",
                                  turned ? "true" : "false", s->act, (long long)mnk[0], (long long)mnk[1],
                                  (long long)mnk[2], a, b, bias, place(k, s->out)));
}

/* Extents are ints there, and a grid has 65535 blocks of 64 columns at most. */
static bool is_in_reach(cuda *k, const int64_t mnk[3])
{
    return (mnk[0] <= INT32_MAX - 64 && mnk[1] <= INT64_C(64) * 65535 && mnk[2] <= INT32_MAX) ||
           lathe_gen_decline(k->g, "a product of %lld x %lld x %lld is out of the kernels' reach", (long long)mnk[0],
                             (long long)mnk[1], (long long)mnk[2]);
}

static bool dense(cuda *k, step *s)
{
    const graph_value *a = s->op->in[0], *b = s->op->in[1];
    const bool turned = lathe_node_int(s->op->node, "transpose_b") != 0;
    if (lathe_value_rank(a) != 2 || lathe_value_rank(b) != 2 || is_constant(k, a) || !is_constant(k, b) ||
        lathe_node_int(s->op->node, "transpose_a") ||
        strcmp(lathe_node_text(s->op->node, "weight_layout"), "KN") != 0)
        return lathe_gen_decline(k->g, "CUTLASS takes products of matrices of which only the second one is constant");
    const int64_t mnk[3] = {lathe_value_extent(a, 0), lathe_value_extent(b, turned ? 0 : 1), lathe_value_extent(a, 1)};
    if (!is_in_reach(k, mnk))
        return false;
    find_epilogue(k, s, mnk[1]);
    product(k, s, turned, mnk, place(k, a), constant(k, b, 1, 1, lathe_value_count(b)));
    return true;
}

static const char *window_text(cuda *k, const step *s, const graph_value *x, const graph_value *w,
                               const graph_value *out)
{
    const graph_node *n = s->op->node;
    return lathe_gen_text(k->g, "{%lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld}",
                          (long long)lathe_value_extent(x, 0), (long long)lathe_value_extent(x, 2),
                          (long long)lathe_value_extent(x, 3), (long long)lathe_value_extent(x, 1),
                          (long long)lathe_value_extent(out, 2), (long long)lathe_value_extent(out, 3),
                          (long long)lathe_value_extent(w, 2), (long long)lathe_value_extent(w, 3),
                          (long long)flat_number(n, "strides", 0, 1), (long long)flat_number(n, "strides", 1, 1),
                          (long long)flat_number(n, "dilations", 0, 1), (long long)flat_number(n, "dilations", 1, 1),
                          (long long)flat_number(n, "pads", 0, 0), (long long)flat_number(n, "pads", 1, 0));
}

static bool conv(cuda *k, step *s)
{
    const graph_value *x = s->op->in[0], *w = s->op->in[1], *sums = s->out;
    const graph_node *n = s->op->node;
    if (!flat_is_image(x) || is_constant(k, x) || !is_constant(k, w) || lathe_node_int(n, "groups") != 1 ||
        strcmp(lathe_node_text(n, "data_layout"), "NCHW") != 0 || strcmp(lathe_node_text(n, "out_layout"), "NCHW") != 0)
        return lathe_gen_decline(k->g, "CUTLASS takes convolutions of images with one group, of which only the weights "
                                       "are constant");
    const int64_t o = lathe_value_extent(w, 0), i = lathe_value_extent(w, 1);
    const int64_t taps = lathe_value_extent(w, 2) * lathe_value_extent(w, 3);
    const int64_t mnk[3] = {lathe_value_count(sums) / (o > 0 ? o : 1), o, i * taps};
    bool plain = taps == 1;
    if (!is_in_reach(k, mnk))
        return false;
    for (uint32_t a = 0; a < 4; a++)
        plain &= flat_number(n, "pads", a, 0) == 0 && (a > 1 || flat_number(n, "strides", a, 1) == 1);
    const char *from = place(k, x), *rows = from;
    if (!plain) {
        rows = at_text(k, take(k, (uint64_t)mnk[0] * (uint64_t)mnk[2] * sizeof(float)));
        w_line(&k->each, "const lathe_window lathe_window_%u = %s;", k->blocks.len, window_text(k, s, x, w, sums));
        line(&k->each, lathe_gen_text(k->g, "lathe_rows(lathe_window_%u, %s, %s)", k->blocks.len, from, rows));
    }
    const char *weights = constant(k, w, o, i, taps);
    find_epilogue(k, s, o);
    product(k, s, true, mnk, rows, weights);
    return true;
}

static bool write_op(cuda *k, flat_op *op)
{
    const char *name = lathe_node_op(op->node);
    step s = {.op = op, .act = "LATHE_NONE", .out = op->out};
    if (op->out->type.dt != DT_F32 || lathe_value_count(op->out) == 0)
        return lathe_gen_decline(k->g, "CUTLASS takes f32 tensors that are not empty");
    if (strcmp(name, "nn.matmul") == 0)
        return dense(k, &s);
    if (strcmp(name, "nn.conv2d") == 0)
        return conv(k, &s);
    return lathe_gen_decline(k->g, "there is no kernel for %s", name);
}

/* --- the function --- */

static bool is_read(const cuda *k, const graph_value *v)
{
    for (uint32_t i = 0; i < k->list.ops.len; i++)
        if (k->list.ops.data[i].in[0] == v)
            return true;
    return false;
}

static bool write_ops(cuda *k)
{
    for (uint32_t i = 0; i < k->f->params.len; i++)
        if (is_read(k, k->f->params.data[i]) && !is_constant(k, k->f->params.data[i]))
            border(k, k->f->params.data[i], true);
    for (uint32_t i = 0; i < k->list.ops.len; i++)
        if (!k->list.ops.data[i].done && !write_op(k, &k->list.ops.data[i]))
            return false;
    for (uint32_t i = 0; i < k->f->results.len; i++)
        if (find(k, k->f->results.data[i]) && k->f->results.data[i]->def)
            border(k, k->f->results.data[i], false);
    return true;
}

/* The memory is made, and constants go there, when these constants come for the first time. */
static void write_first(cuda *k)
{
    for (uint32_t i = 0; i < k->constants.len; i++)
        lathe_gen_line(k->g, "lathe_fresh |= lathe_m->made_of[%u] != %s;", i,
                       lathe_gen_name(k->g, k->constants.data[i]));
    lathe_gen_line(k->g, "if (lathe_fresh) {");
    lathe_gen_line(k->g, "    lathe_forget(lathe_m);");
    lathe_gen_line(k->g, "    LATHE_CUDA(cudaMalloc((void **)&lathe_m->base, %lluu));", (unsigned long long)k->bytes);
    for (uint32_t i = 0; i < k->constants.len; i++)
        lathe_gen_line(k->g, "    lathe_m->made_of[%u] = %s;", i, lathe_gen_name(k->g, k->constants.data[i]));
    lathe_gen_line(k->g, "%s}", k->first.data ? k->first.data : "");
}

static bool func(lathe_gen *g, const lathe_func *f)
{
    cuda k = {.g = g, .c = g->c, .f = f};
    const graph_node *bad;
    writer_init(&k.first, &k.c->mem);
    writer_init(&k.each, &k.c->mem);
    k.first.step = 4;
    k.first.indent = 1; /* inside of the `if` */
    if (!flat_make(&k.c->mem, f, &k.list, &bad))
        return lathe_gen_decline(g, "there is no kernel for %s of so many operands", lathe_node_op(bad));
    if (!write_ops(&k))
        return false;
    if (k.bytes > UINT64_C(1) << 40 || k.constants.len > MOST_CONSTANTS)
        return lathe_gen_decline(g, "the region is too large");
    lathe_gen_declare(g, "static lathe_memory %s_memory;\n", lathe_gen_symbol(g));
    lathe_gen_line(g, "lathe_memory *const lathe_m = &%s_memory;", lathe_gen_symbol(g));
    lathe_gen_line(g, "cudaError_t lathe_status = cudaSuccess;");
    lathe_gen_line(g, "(void)pthread_mutex_lock(&lathe_cuda_lock);");
    lathe_gen_line(g, "bool lathe_fresh = lathe_m->base == NULL;");
    write_first(&k);
    w_str(&g->body, k.each.data ? k.each.data : "");
    lathe_gen_line(g, "if (lathe_end(lathe_m, lathe_status) != 0)\n    return (int32_t)lathe_status;");
    return lathe_gen_finish(g, f);
}

static bool begin(lathe_gen *g)
{
    static const char *const headers[] = {"math.h", "pthread.h", "string.h"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        lathe_gen_header(g, headers[i]);
    lathe_gen_library_header(g, "cuda_runtime.h", "install NVIDIA's CUDA toolkit");
    lathe_gen_declare(g, "#define LATHE_MOST_CONSTANTS %u\n", MOST_CONSTANTS);
    lathe_gen_declare(g, "%s\n%s", embedded_text("src/codegen/byoc/text/cutlass_product.cu.in"),
                      embedded_text("src/codegen/byoc/text/cutlass_own.cu.in"));
    lathe_gen_declare(g, "%s", embedded_text("src/codegen/byoc/text/cutlass_helpers.cu.in"));
    return true;
}

/* Products and convolutions with bias and activation; larger ones first. */
#define CUTLASS_CONV \
    "{groups = 1, dilations = 1, data_layout = \"NCHW\", out_layout = \"NCHW\", kernel_layout = \"OIHW\"}"
static const char patterns[] =
    "pattern cutlass.conv2d_bias_act(%x: f32[_, _, _, _], %w: constant f32[_, _, _, _], %b: constant) {"
    "  %c = nn.conv2d(%x, %w) " CUTLASS_CONV
    "  %a = add(%c, %b)"
    "  %y = optional nn.relu(%a)"
    "  return %y"
    "} where static(%x), per_channel(%b, %c)"
    "pattern cutlass.conv2d(%x: f32[_, _, _, _], %w: constant f32[_, _, _, _]) {"
    "  %c = nn.conv2d(%x, %w) " CUTLASS_CONV
    "  %y = optional nn.relu(%c)"
    "  return %y"
    "} where static(%x)"
    "pattern cutlass.dense_bias_gelu(%a: f32[_, _], %w: constant f32[_, _], %b: constant f32[_]) {"
    "  %m = nn.matmul(%a, %w) {transpose_a = 0, weight_layout = \"KN\"}"
    "  %s = add(%m, %b)"
    "  %y = gelu(%s) {approximate = \"none\"}"
    "  return %y"
    "} where static(%a)"
    "pattern cutlass.dense_bias_act(%a: f32[_, _], %w: constant f32[_, _], %b: constant f32[_]) {"
    "  %m = nn.matmul(%a, %w) {transpose_a = 0, weight_layout = \"KN\"}"
    "  %s = add(%m, %b)"
    "  %y = optional nn.relu(%s)"
    "  return %y"
    "} where static(%a)"
    "pattern cutlass.dense(%a: f32[_, _], %w: constant f32[_, _]) {"
    "  %y = nn.matmul(%a, %w) {transpose_a = 0, weight_layout = \"KN\"}"
    "  return %y"
    "} where static(%a)";
#undef CUTLASS_CONV

const lathe_codegen byoc_cutlass = {
    .api = LATHE_CODEGEN_API,
    .name = "cutlass",
    .patterns = patterns,
    .suffix = "cu",
    .ldflags = "-lcudart -lstdc++ -lpthread",
    .begin = begin,
    .func = func,
};
