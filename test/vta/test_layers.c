/* test_layers.c: layers by rule for VTA (target/vta/rule/vta.h), of every kind, on several devices: what a plan
 * accepts is lowered, and gives the numbers of the definition and, where small, of the interpreter. Layers by chance,
 * and those of whole networks. Arguments COUNT SEED: as many by chance as wanted; `table`: that of docs/notes/vta.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lowered.h"
#include "runtime_test.h"
#include "seeds.h"
#include "te/lower.h"
#include "target/vta/graph/vta_layer.h"
#include "target/vta/rule/vta.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "target/vta/vta_text.h"

#define MOST_WORK 400000 /* multiplications of a layer that is computed, by the interpreter, too */

static const char *const configs[] = {
    "1x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17", "1x8_i8w8a32_15_13_14_16",   "1x32_i8w8a32_15_15_18_17",
    "4x8_i8w8a32_15_16_16_18",  "1x16_i8w8a32_12_12_15_13", "1x16_i16w8a32_15_15_18_17", "1x16_i8w8a16_15_15_18_16",
    "1x16_i8w4a32_15_15_17_17", "1x32_i8w2a32_15_15_16_17", "2x8_i16w16a32_15_15_15_16",
};
enum { N_CONFIGS = sizeof configs / sizeof *configs };

typedef struct tally {
    int refused, lowered, computed;
} tally;

static const char *words_of(const te_vta_layer *l, const char *config)
{
    static char text[700];
    size_t n = (size_t)snprintf(text, sizeof text, "%s on %s, ", te_vta_kind_name(l->kind), config);
#define X(key, value, help) n += (size_t)snprintf(text + n, sizeof text - n, #key "=%lld,", (long long)l->key);
    TE_VTA_LAYER_KEYS(X)
#undef X
    return text;
}

static int64_t work_of(const te_vta_layer *l)
{
    int64_t outputs = l->batch * te_vta_layer_rows(l) * te_vta_layer_columns(l) * l->out_channels;
    bool sums = l->kind == TE_VTA_CONV || l->kind == TE_VTA_CONV_TRANSPOSE;
    return outputs * l->kernel * l->kernel_w * (sums ? l->in_channels / l->groups : 1);
}

/* --- the layer from its definition --- */

typedef struct reference {
    const te_vta_layer *l;
    const tir_func *f;
    void *const *params;
    vta_geometry g;
    int64_t rows, columns;
} reference;

static int64_t value_at(const reference *r, uint32_t param, int64_t at)
{
    dtype dt = r->f->params[param]->dt;
    return dtype_load_i64(dt, (const uint8_t *)r->params[param] + (size_t)at * dtype_bytes(dt));
}

/* Index of image n, channel c, at (y, x) in a packed tensor of that many channels, rows and columns. */
static int64_t packed(const reference *r, int64_t n, int64_t c, int64_t y, int64_t x, const int64_t size[3])
{
    int64_t b = r->g.batch, l = r->g.block_in;
    return ((((n / b * (size[0] / l) + c / l) * size[1] + y) * size[2] + x) * b + n % b) * l + c % l;
}

/* false: outside of the image. */
static bool data_at(const reference *r, int64_t n, int64_t c, int64_t y, int64_t x, int64_t *out)
{
    const int64_t size[3] = {r->l->in_channels, r->l->height, r->l->width};
    bool inside = y >= 0 && y < size[1] && x >= 0 && x < size[2];
    *out = inside ? value_at(r, 0, packed(r, n, c, y, x, size)) : 0;
    return inside;
}

static int64_t weight_at(const reference *r, int64_t o, int64_t c, int64_t y, int64_t x)
{
    int64_t lanes = r->g.block_in, in = r->l->in_channels / r->l->groups / lanes, bits = r->g.width[VTA_MEM_WGT];
    int64_t tile = ((o / lanes * in + c / lanes) * r->l->kernel + y) * r->l->kernel_w + x;
    int64_t at = (tile * lanes + o % lanes) * lanes + c % lanes, n = bits < 8 ? 8 / bits : 1;
    if (n == 1)
        return value_at(r, 1, at);
    int64_t v = value_at(r, 1, at / n) >> at % n * bits & ((1 << bits) - 1);
    return v >= 1 << (bits - 1) ? v - (1 << bits) : v;
}

/* What a tap at (dy, dx) of output (y, x) reads; false: nothing. Of a transposed convolution the kernel is reversed. */
static bool tap(const reference *r, const int64_t at[4], int64_t c, int64_t dy, int64_t dx, int64_t *out)
{
    const te_vta_layer *l = r->l;
    int64_t y = at[2] * l->stride + dy - l->pad, x = at[3] * l->stride_w + dx - l->pad_left;
    if (l->kind == TE_VTA_CONV_TRANSPOSE) {
        y = at[2] + l->pad - (l->kernel - 1 - dy);
        x = at[3] + l->pad_left - (l->kernel_w - 1 - dx);
        *out = 0;
        if (y % l->stride || x % l->stride_w)
            return false;
        y /= l->stride;
        x /= l->stride_w;
    }
    return data_at(r, at[0], c, y, x, out);
}

static int64_t source_at(const reference *r, const int64_t at[4])
{
    const te_vta_layer *l = r->l;
    int64_t sum = 0, most = INT32_MIN, v, in = l->in_channels / l->groups;
    int64_t group = at[1] / (l->out_channels / l->groups);
    bool sums = l->kind == TE_VTA_CONV || l->kind == TE_VTA_CONV_TRANSPOSE;
    if (l->kind == TE_VTA_UPSAMPLING || l->kind == TE_VTA_ELEMENTWISE || l->kind == TE_VTA_ADD) {
        (void)data_at(r, at[0], at[1], at[2] / l->stride, at[3] / l->stride_w, &v);
        return v;
    }
    for (int64_t dy = 0; dy < l->kernel; dy++)
        for (int64_t dx = 0; dx < l->kernel_w; dx++)
            for (int64_t c = 0; c < (sums ? in : 1); c++) {
                if (!tap(r, at, sums ? group * in + c : at[1], dy, dx, &v))
                    continue;
                sum += sums ? v * weight_at(r, at[1], c, dy, dx) : v;
                most = v > most ? v : most;
            }
    return l->kind == TE_VTA_MAX_POOL ? most : sum;
}

static int64_t raised(int64_t v, int64_t bits)
{
    return v * ((int64_t)1 << bits);
}

/* To an accumulator and back. */
static int64_t wrap(const reference *r, int64_t v)
{
    return r->g.width[VTA_MEM_ACC] == 16 ? (int16_t)(uint16_t)v : (int32_t)(uint32_t)v;
}

static int64_t requantised(const reference *r, int64_t v, int64_t shift, bool half, int64_t low, int64_t high)
{
    for (; shift > 15; shift--) /* floors nest */
        v = v >> 1;
    if (shift > 0)
        v = wrap(r, v + (half ? 1 << (shift - 1) : 0)) >> shift;
    if (shift < 0)
        v = wrap(r, raised(v, -shift));
    v = v < low ? low : v;
    return v > high ? high : v;
}

static int64_t expected(const reference *r, const int64_t at[4])
{
    const te_vta_layer *l = r->l;
    const int64_t size[3] = {l->out_channels, r->rows, r->columns};
    int64_t v = wrap(r, source_at(r, at)), b = r->g.batch, lanes = r->g.block_out;
    uint32_t next = l->kind == TE_VTA_CONV || l->kind == TE_VTA_CONV_TRANSPOSE ? 2 : 1;
    if (l->bias)
        v = wrap(r, v + value_at(r, next++, (at[1] / lanes * b + at[0] % b) * lanes + at[1] % lanes));
    int64_t other = l->residual || l->kind == TE_VTA_ADD
                        ? raised(value_at(r, next, packed(r, at[0], at[1], at[2], at[3], size)), l->shift_b)
                        : 0;
    if (l->kind == TE_VTA_ADD)
        v = wrap(r, wrap(r, raised(v, l->shift_a)) + other);
    v = l->mul ? wrap(r, v * l->mul) : v;
    v = requantised(r, v, l->shift, l->half, l->low, l->high);
    if (l->residual)
        v = requantised(r, wrap(r, wrap(r, raised(v, l->shift_a)) + other), l->sum_shift, true, l->sum_low,
                        l->sum_high);
    return v;
}

/* Outputs `step` apart. */
static void check_definition(compiler *c, const te_vta_layer *l, const tir_func *f, void *const *params, int64_t step,
                             const char *words)
{
    reference r = {l, f, params, .rows = te_vta_layer_rows(l), .columns = te_vta_layer_columns(l)};
    vta_error e = {VTA_OK, ""};
    assert_int_equal(vta_config_check(vta_text_config(c), &r.g, &e), VTA_OK);
    const int64_t size[3] = {l->out_channels, r.rows, r.columns};
    for (int64_t i = 0; i < l->batch * size[0] * size[1] * size[2]; i += step) {
        const int64_t at[4] = {i / size[2] / size[1] / size[0], i / size[2] / size[1] % size[0], i / size[2] % size[1],
                               i % size[2]};
        int64_t got = value_at(&r, f->n_inputs, packed(&r, at[0], at[1], at[2], at[3], size)), want = expected(&r, at);
        if (got != want)
            fail_msg("%s: output [%d, %d, %d, %d] is %d, by definition %d", words, (int)at[0], (int)at[1], (int)at[2],
                     (int)at[3], (int)got, (int)want);
    }
}

/* Inputs and weights of few bits: sums are not all beyond the limits. */
static void narrow(const te_vta_layer *l, const tir_func *f, void *const *params)
{
    for (uint32_t i = 0; i < f->n_inputs; i++)
        for (int64_t k = 0; k < tir_buffer_count(f->params[i]); k++) {
            size_t at = (size_t)k * dtype_bytes(f->params[i]->dt);
            dtype dt = f->params[i]->dt;
            int64_t v = dtype_load_i64(dt, (uint8_t *)params[i] + at);
            v = l->positive && i == 0 && v < 0 ? -1 - v : v;
            dtype_store_i64(dt, (uint8_t *)params[i] + at, v >> (dt == DT_I8 ? i + 1 : dtype_bits(dt) - 10));
        }
}

static void compare(compiler *c, te_vta_layer *l, const tir_func *lowered, const char *words)
{
    te_graph *g;
    te_sched *s;
    tir_func *plain = NULL;
    tir_module m = {.c = c};
    int32_t status = 0;
    assert_true(te_vta_layer_make(c, l, &g, &s) && te_lower(g, te_sched_new(g), "plain", &plain));
    vec_push(&c->mem, &m.funcs, plain);
    assert_true(tir_run_passes(c, &m, tir_plain_passes, false, NULL));
    void **want = lowered_params(c, plain), **got = lowered_params(c, lowered);
    narrow(l, plain, want);
    narrow(l, plain, got);
    assert_true(tir_interpret(c, plain, want, &status));
    lowered_run(c, lowered, got, NULL);
    uint32_t out = plain->n_inputs;
    if (memcmp(want[out], got[out], vta_code_bytes(plain->params[out])) != 0)
        fail_msg("%s: the device computes something else", words);
    check_definition(c, l, lowered, got, 1, words);
}

static void try_layer(const char *config, te_vta_layer *l, bool compute, tally *t)
{
    compiler c;
    tir_func *f = NULL;
    compiler_init(&c);
    assert_true(vta_text_set(&c, config));
    const char *why = te_vta_layer_plan(&c, l), *words = words_of(l, config);
    if (why) {
        t->refused++;
        assert_true(strlen(why) > 10);
    } else {
        if (!te_vta_layer_lower(&c, l, "layer", &f))
            fail_msg("%s: %s", words, diags_print(&c.diags, &c.mem));
        t->lowered++;
        if (compute && work_of(l) <= MOST_WORK) {
            compare(&c, l, f, words);
            t->computed++;
        }
    }
    compiler_free(&c);
}

/* --- layers by chance --- */

static int64_t pick(uint32_t *state, int64_t least, int64_t most)
{
    *state = *state * 1664525u + 1013904223u;
    return least + (int64_t)(*state >> 8) % (most - least + 1);
}

static void random_window(uint32_t *r, te_vta_layer *l)
{
    l->kernel = pick(r, 0, 3) ? pick(r, 1, 4) : pick(r, 1, 11);
    l->kernel_w = pick(r, 0, 2) ? l->kernel : pick(r, 1, 5);
    l->stride = pick(r, 1, 3);
    l->stride_w = pick(r, 0, 2) ? l->stride : pick(r, 1, 3);
    l->pad = pick(r, -1, l->kernel - 1);
    if (pick(r, 0, 2) == 0) {
        l->pad_left = pick(r, 0, l->kernel_w - 1);
        l->pad_bottom = pick(r, 0, l->kernel);
        l->pad_right = pick(r, 0, l->kernel_w);
    }
    if (l->kind == TE_VTA_CONV_TRANSPOSE) {
        l->output_pad = pick(r, 0, 1);
        l->output_pad_w = pick(r, 0, 1);
    }
}

static te_vta_layer random_layer(uint32_t *r, int64_t lanes, int64_t rows)
{
    te_vta_kind kind = (te_vta_kind)(pick(r, 0, 2) ? pick(r, 0, TE_VTA_KIND_COUNT - 1) : TE_VTA_CONV);
    te_vta_layer l = te_vta_layer_new(kind);
    bool sums = kind == TE_VTA_CONV || kind == TE_VTA_CONV_TRANSPOSE;
    l.batch = rows * pick(r, 1, 2);
    l.height = pick(r, 1, pick(r, 0, 5) ? 12 : 40);
    l.width = pick(r, 0, 2) ? l.height : pick(r, 1, 30);
    l.groups = sums && pick(r, 0, 3) == 0 ? pick(r, 2, 3) : 1;
    l.in_channels = lanes * l.groups * pick(r, 1, 3);
    l.out_channels = sums ? lanes * l.groups * pick(r, 1, 3) : l.in_channels;
    if (sums || kind == TE_VTA_MAX_POOL || kind == TE_VTA_SUM_POOL)
        random_window(r, &l);
    if (kind == TE_VTA_MAX_POOL)
        l.positive = pick(r, 0, 1);
    if (kind == TE_VTA_MAX_POOL || kind == TE_VTA_SUM_POOL)
        l.rows_first = pick(r, 0, 2) ? 0 : 2;
    if (kind == TE_VTA_UPSAMPLING)
        l.stride = pick(r, 1, 3);
    l.bias = pick(r, 0, 1);
    l.mul = pick(r, 0, 3) ? 0 : pick(r, -300, 300);
    l.shift = pick(r, -2, 20);
    l.half = !l.bias || l.mul || l.shift > 15 || pick(r, 0, 2);
    l.low = pick(r, -128, 0);
    l.high = pick(r, 1, 127);
    if (kind != TE_VTA_UPSAMPLING && kind != TE_VTA_ADD)
        l.residual = pick(r, 0, 3) == 0;
    l.shift_a = pick(r, 0, 2);
    l.shift_b = pick(r, 0, 2);
    l.sum_shift = pick(r, 0, 3);
    return l;
}

static tally random_layers(int count, uint32_t seed)
{
    tally t = {0, 0, 0};
    for (int i = 0; i < count; i++) {
        uint32_t at = (uint32_t)pick(&seed, 0, N_CONFIGS - 1);
        int64_t rows = configs[at][0] - '0', lanes = strtoll(configs[at] + 2, NULL, 10);
        te_vta_layer l = random_layer(&seed, lanes, rows);
        try_layer(configs[at], &l, true, &t);
    }
    return t;
}

static void layers_by_chance(void **state)
{
    (void)state;
    const int count = (int)seeds(60, 200, 4000);
    tally t = random_layers(count, 1);
    assert_true(t.lowered > count / 2 && t.computed > count / 4);
}

/* --- whole networks --- */

/* Of one kind of layer: its shape, and which networks have it; dense layers are convolutions of one pixel. */
typedef struct network_layer {
    const char *name;
    te_vta_kind kind;
    const char *keys; /* channels as in the model: they are padded to whole blocks */
} network_layer;

#define CONV TE_VTA_CONV
#define ADD  TE_VTA_ADD
static const network_layer networks[] = {
    {"resnet conv1", CONV, "height=224,in_channels=3,out_channels=64,kernel=7,stride=2,low=0"},
    {"resnet max pool", TE_VTA_MAX_POOL, "height=112,in_channels=64,kernel=3,stride=2,positive=1"},
    {"resnet18 C2", CONV, "height=56,in_channels=64,out_channels=64,low=0"},
    {"resnet18 C3", CONV, "height=56,in_channels=64,out_channels=128,stride=2,low=0"},
    {"resnet18 C4", CONV, "height=56,in_channels=64,out_channels=128,kernel=1,stride=2"},
    {"resnet18 C5", CONV, "height=28,in_channels=128,out_channels=128,low=0"},
    {"resnet18 C6", CONV, "height=28,in_channels=128,out_channels=256,stride=2,low=0"},
    {"resnet18 C7", CONV, "height=28,in_channels=128,out_channels=256,kernel=1,stride=2"},
    {"resnet18 C8", CONV, "height=14,in_channels=256,out_channels=256,low=0"},
    {"resnet18 C9", CONV, "height=14,in_channels=256,out_channels=512,stride=2,low=0"},
    {"resnet18 C10", CONV, "height=14,in_channels=256,out_channels=512,kernel=1,stride=2"},
    {"resnet18 C11", CONV, "height=7,in_channels=512,out_channels=512,low=0"},
    {"resnet18 add 56", ADD, "height=56,in_channels=64,shift_a=1,shift=1,low=0"},
    {"resnet18 add 7", ADD, "height=7,in_channels=512,shift_b=1,shift=1,low=0"},
    {"resnet average", TE_VTA_SUM_POOL, "height=7,in_channels=512,kernel=7,pad=0,mul=669,shift=15"},
    {"resnet18 dense", CONV, "height=1,in_channels=512,out_channels=1000,kernel=1"},
    {"resnet50 64-64", CONV, "height=56,in_channels=64,out_channels=64,kernel=1,low=0"},
    {"resnet50 64-256", CONV, "height=56,in_channels=64,out_channels=256,kernel=1"},
    {"resnet50 256-64", CONV, "height=56,in_channels=256,out_channels=64,kernel=1,low=0"},
    {"resnet50 256-128", CONV, "height=56,in_channels=256,out_channels=128,kernel=1,low=0"},
    {"resnet50 128 /2", CONV, "height=56,in_channels=128,out_channels=128,stride=2,low=0"},
    {"resnet50 128-512", CONV, "height=28,in_channels=128,out_channels=512,kernel=1,residual=1,sum_low=0"},
    {"resnet50 256-512 /2", CONV, "height=56,in_channels=256,out_channels=512,kernel=1,stride=2"},
    {"resnet50 512-128", CONV, "height=28,in_channels=512,out_channels=128,kernel=1,low=0"},
    {"resnet50 512-256", CONV, "height=28,in_channels=512,out_channels=256,kernel=1,low=0"},
    {"resnet50 256 /2", CONV, "height=28,in_channels=256,out_channels=256,stride=2,low=0"},
    {"resnet50 256-1024", CONV, "height=14,in_channels=256,out_channels=1024,kernel=1,residual=1,sum_low=0"},
    {"resnet50 512-1024 /2", CONV, "height=28,in_channels=512,out_channels=1024,kernel=1,stride=2"},
    {"resnet50 1024-256", CONV, "height=14,in_channels=1024,out_channels=256,kernel=1,low=0"},
    {"resnet50 1024-512", CONV, "height=14,in_channels=1024,out_channels=512,kernel=1,low=0"},
    {"resnet50 512 /2", CONV, "height=14,in_channels=512,out_channels=512,stride=2,low=0"},
    {"resnet50 512-2048", CONV, "height=7,in_channels=512,out_channels=2048,kernel=1,residual=1,sum_low=0"},
    {"resnet50 1024-2048 /2", CONV, "height=14,in_channels=1024,out_channels=2048,kernel=1,stride=2"},
    {"resnet50 2048-512", CONV, "height=7,in_channels=2048,out_channels=512,kernel=1,low=0"},
    {"resnet50 dense", CONV, "height=1,in_channels=2048,out_channels=1000,kernel=1"},
    {"mobilenet-G conv1", CONV, "height=224,in_channels=3,out_channels=32,stride=2,low=0"},
    {"mobilenet-G D1", CONV, "height=112,in_channels=32,out_channels=32,groups=2,low=0"},
    {"mobilenet-G D2", CONV, "height=112,in_channels=64,out_channels=64,groups=4,stride=2,low=0"},
    {"mobilenet-G D3", CONV, "height=56,in_channels=128,out_channels=128,groups=8,low=0"},
    {"mobilenet-G D4", CONV, "height=56,in_channels=128,out_channels=128,groups=8,stride=2,low=0"},
    {"mobilenet-G D5", CONV, "height=28,in_channels=256,out_channels=256,groups=16,low=0"},
    {"mobilenet-G D6", CONV, "height=28,in_channels=256,out_channels=256,groups=16,stride=2,low=0"},
    {"mobilenet-G D7", CONV, "height=14,in_channels=512,out_channels=512,groups=32,low=0"},
    {"mobilenet-G D8", CONV, "height=14,in_channels=512,out_channels=512,groups=32,stride=2,low=0"},
    {"mobilenet-G D9", CONV, "height=7,in_channels=1024,out_channels=1024,groups=64,low=0"},
    {"mobilenet-G 32-64", CONV, "height=112,in_channels=32,out_channels=64,kernel=1,low=0"},
    {"mobilenet-G 64-128", CONV, "height=56,in_channels=64,out_channels=128,kernel=1,low=0"},
    {"mobilenet-G 128-256", CONV, "height=28,in_channels=128,out_channels=256,kernel=1,low=0"},
    {"mobilenet-G 256-512", CONV, "height=14,in_channels=256,out_channels=512,kernel=1,low=0"},
    {"mobilenet-G 512-512", CONV, "height=14,in_channels=512,out_channels=512,kernel=1,low=0"},
    {"mobilenet-G 1024-1024", CONV, "height=7,in_channels=1024,out_channels=1024,kernel=1,low=0"},
    {"dcgan dense", CONV, "height=1,in_channels=100,out_channels=16384,kernel=1,low=0"},
    {"dcgan CT1", TE_VTA_CONV_TRANSPOSE, "height=4,in_channels=1024,out_channels=512,kernel=4,stride=2,pad=1,low=0"},
    {"dcgan CT2", TE_VTA_CONV_TRANSPOSE, "height=8,in_channels=512,out_channels=256,kernel=4,stride=2,pad=1,low=0"},
    {"dcgan CT3", TE_VTA_CONV_TRANSPOSE, "height=16,in_channels=256,out_channels=128,kernel=4,stride=2,pad=1,low=0"},
    {"dcgan CT4", TE_VTA_CONV_TRANSPOSE, "height=32,in_channels=128,out_channels=3,kernel=4,stride=2,pad=1"},
    {"digits conv1", CONV, "height=8,in_channels=1,out_channels=16,low=0"},
    {"digits conv2", CONV, "height=8,in_channels=16,out_channels=32,low=0"},
    {"digits max pool", TE_VTA_MAX_POOL, "height=8,in_channels=32,kernel=2,stride=2,pad=0"},
    {"digits dense", CONV, "height=1,in_channels=512,out_channels=10,kernel=1"},
};
enum { N_NETWORK_LAYERS = sizeof networks / sizeof *networks, N_DEVICES = 5 };
static const char *const devices[N_DEVICES] = {
    "1x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17", "1x8_i8w8a32_15_13_14_16",
    "1x32_i8w8a32_15_15_18_17", "1x16_i8w4a32_15_15_17_17",
};

static int64_t whole(int64_t n, int64_t lanes)
{
    return (n + lanes - 1) / lanes * lanes;
}

static te_vta_layer network_layer_of(compiler *c, const network_layer *from)
{
    te_vta_layer l;
    vta_geometry g;
    vta_error e = {VTA_OK, ""};
    assert_int_equal(vta_config_check(vta_text_config(c), &g, &e), VTA_OK);
    assert_true(te_vta_layer_parse(c, from->kind, from->keys, &l));
    bool sums = l.kind == TE_VTA_CONV || l.kind == TE_VTA_CONV_TRANSPOSE;
    l.groups = vta_layer_groups(&g, l.in_channels, sums ? l.out_channels : l.in_channels, l.groups);
    l.in_channels = whole(l.in_channels, g.block_in);
    l.out_channels = sums ? whole(l.out_channels, g.block_out) : l.in_channels;
    return l;
}

/* Cycles of the layer on the device's cycle model; 0: it does not fit, with *why. */
static uint64_t run_network_layer(const char *device, const network_layer *from, bool cycles, char *why)
{
    compiler c;
    tir_func *f;
    run_vta_report r = {.n_insns = 0};
    compiler_init(&c);
    assert_true(vta_text_set(&c, device));
    te_vta_layer l = network_layer_of(&c, from);
    const char *reason = te_vta_layer_plan(&c, &l), *words = words_of(&l, device);
    snprintf(why, 300, "%s", reason ? reason : "");
    if (!reason && !te_vta_layer_lower(&c, &l, "layer", &f))
        fail_msg("%s: %s", words, diags_print(&c.diags, &c.mem));
    if (!reason) {
        void **params = lowered_params(&c, f);
        narrow(&l, f, params);
        lowered_run(&c, f, params, cycles ? &r : NULL);
        int64_t outputs = l.batch * te_vta_layer_rows(&l) * te_vta_layer_columns(&l) * l.out_channels;
        check_definition(&c, &l, f, params, outputs / 300 + 1, words);
    }
    compiler_free(&c);
    return reason ? 0 : cycles ? r.cycles.cycles : 1;
}

static void layers_of_networks_on_all_devices(void **state)
{
    char why[300];
    (void)state;
    const int step = (int)seeds(8, 1, 1); /* another part of the layers on each device */
    for (int d = 0; d < N_DEVICES; d++)
        for (int i = d % step; i < N_NETWORK_LAYERS; i += step)
            if (!run_network_layer(devices[d], &networks[i], false, why))
                fail_msg("%s on %s: %s", networks[i].name, devices[d], why);
}

static void print_table(void)
{
    char why[300];
    printf("| layer |");
    for (int d = 0; d < N_DEVICES; d++)
        printf(" %s |", devices[d]);
    printf("\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < N_NETWORK_LAYERS; i++) {
        printf("| %s |", networks[i].name);
        for (int d = 0; d < N_DEVICES; d++) {
            uint64_t n = run_network_layer(devices[d], &networks[i], true, why);
            printf(" %llu%s |", (unsigned long long)n, why);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_by_chance),
        cmocka_unit_test(layers_of_networks_on_all_devices),
    };
    if (argc > 1 && strcmp(argv[1], "table") == 0) {
        print_table();
        return 0;
    }
    if (argc > 2) {
        tally t = random_layers(atoi(argv[1]), (uint32_t)atoi(argv[2]));
        printf("%d lowered, %d of them computed, %d refused\n", t.lowered, t.computed, t.refused);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
