/* test_conv2d.c: 2-D convolutions lowered for VTA by target/vta/rule/vta.h: every offloaded layer of ResNet-18 with its
 * published
 * blocking, run on the cycle model and compared with a plain convolution; blockings that are chosen; other devices.
 * With an argument it prints the table of docs/notes/vta.md. SPDX-License-Identifier: Apache-2.0 */
#include "driver/vta/vta_computation.h"
#include "lowered.h"
#include "runtime_test.h"
#include "target/vta/rule/vta.h"
#include "te/text.h"
#include "target/vta/vta_text.h"
#include "workloads.h"

/* --- the plain convolution, from the definition --- */

/* Index of image n, channel c, at (y, x) in a packed tensor of C channels of H x W; b rows and l lanes of a tile. */
static size_t packed(int64_t n, int64_t c, int64_t y, int64_t x, int64_t channels, int64_t h, int64_t w, int64_t b,
                     int64_t l)
{
    return (size_t)((((((n / b) * (channels / l) + c / l) * h + y) * w + x) * b + n % b) * l + c % l);
}

static int32_t sum_at(const te_vta_layer *l, const int8_t *data, const int8_t *kernel, int64_t lanes, int64_t rows,
                      const int64_t at[4])
{
    int32_t sum = 0;
    for (int64_t c = 0; c < l->in_channels; c++)
        for (int64_t dy = 0; dy < l->kernel; dy++)
            for (int64_t dx = 0; dx < l->kernel; dx++) {
                int64_t y = at[2] * l->stride + dy - l->pad, x = at[3] * l->stride + dx - l->pad, o = at[1];
                if (y < 0 || y >= l->height || x < 0 || x >= l->width)
                    continue;
                int64_t tile = ((o / lanes * (l->in_channels / lanes) + c / lanes) * l->kernel + dy) * l->kernel + dx;
                sum += data[packed(at[0], c, y, x, l->in_channels, l->height, l->width, rows, lanes)] *
                       kernel[(tile * lanes + o % lanes) * lanes + c % lanes];
            }
    return sum;
}

static int8_t finish(const te_vta_layer *l, int32_t sum, int32_t bias)
{
    int64_t v = (int64_t)sum + (l->bias ? bias : 0);
    if (l->shift > 0)
        v = (int32_t)((uint32_t)v + (1u << (l->shift - 1))) >> l->shift;
    v = (int32_t)v < l->low ? l->low : (int32_t)v;
    return (int8_t)(v > l->high ? l->high : v);
}

/* Outputs `step` apart are checked; coprime to every extent, so that all lanes, rows and columns come. */
static void compare(const te_vta_layer *l, const vta_geometry *g, void *const *params, int64_t step)
{
    const int8_t *data = params[0], *kernel = params[1], *got = params[l->bias ? 3 : 2];
    const int32_t *bias = params[2];
    int64_t h = te_vta_layer_rows(l), w = te_vta_layer_columns(l), rows = g->batch, lanes = g->block_in;
    for (int64_t i = 0; i < l->batch * l->out_channels * h * w; i += step) {
        int64_t at[4] = {i / w / h / l->out_channels, i / w / h % l->out_channels, i / w % h, i % w};
        int64_t b = l->bias ? bias[(at[1] / lanes * rows + at[0] % rows) * lanes + at[1] % lanes] : 0;
        int8_t want = finish(l, sum_at(l, data, kernel, lanes, rows, at), (int32_t)b);
        size_t where = packed(at[0], at[1], at[2], at[3], l->out_channels, h, w, rows, lanes);
        if (got[where] != want)
            fail_msg("output [%d, %d, %d, %d] is %d instead of %d", (int)at[0], (int)at[1], (int)at[2], (int)at[3],
                     got[where], want);
    }
}

/* --- one layer --- */

/* Numbers small enough that most outputs are not limited: inputs and weights of 4 bits, biases of 9. */
static void narrow(const te_vta_layer *l, const tir_func *f, void *const *params)
{
    int8_t *data = params[0], *kernel = params[1];
    int32_t *bias = params[2];
    for (size_t i = 0; i < vta_code_bytes(f->params[0]); i++)
        data[i] = (int8_t)(data[i] >> 4);
    for (size_t i = 0; i < vta_code_bytes(f->params[1]); i++)
        kernel[i] = (int8_t)(kernel[i] >> 4);
    for (size_t i = 0; l->bias && i < vta_code_bytes(f->params[2]) / sizeof *bias; i++)
        bias[i] >>= 23;
}

/* Plans, prints, parses, lowers, runs and compares; fills *l with what was chosen. */
static void run_layer(const char *config, te_vta_layer *l, int64_t step, run_vta_report *report)
{
    compiler c;
    tir_func *f = NULL;
    writer text, schedule;
    vta_geometry geometry;
    vta_error e = {VTA_OK, ""};
    compiler_init(&c);
    writer_init(&text, &c.mem);
    writer_init(&schedule, &c.mem);
    bool ok = (!config || vta_text_set(&c, config)) && te_vta_layer_check(&c, l);
    if (ok) {
        te_vta_layer_print(&c, l, &text, &schedule);
        const computation t = {.file = "layer", .schedule_file = "schedule",
                               .text = {(const uint8_t *)text.data, text.len},
                               .schedule = {(const uint8_t *)schedule.data, schedule.len}};
        ok = vta_computation_lower(&c, &t, "main", &f);
    }
    if (!ok)
        fail_msg("%s", diags_print(&c.diags, &c.mem));
    assert_int_equal(vta_config_check(vta_text_config(&c), &geometry, &e), VTA_OK);
    void **params = lowered_params(&c, f);
    narrow(l, f, params);
    lowered_run(&c, f, params, report);
    compare(l, &geometry, params, step);
    compiler_free(&c);
}

static te_vta_layer layer_of(const conv_layer *from)
{
    te_vta_layer l = te_vta_layer_new(TE_VTA_CONV);
    l.height = l.width = from->size;
    l.in_channels = from->in_channels;
    l.out_channels = from->out_channels;
    l.kernel = from->kernel;
    l.stride = from->stride;
    l.pad = from->pad;
    l.shift = 3;
    l.low = 0;
    return l;
}

static void take_published(te_vta_layer *l, const conv_layer *from)
{
    l->tile_h = from->tile_h[1];
    l->tile_w = from->tile_w[1];
    l->tile_ci = from->tile_ci[1];
    l->tile_co = from->tile_co[1];
    l->oc_threads = from->oc_threads;
    l->h_threads = from->h_threads;
}

static uint64_t gemm_operations(const conv_layer *l)
{
    uint64_t out = conv_extent(l);
    return out * out * (l->in_channels / 16) * (l->out_channels / 16) * l->kernel * l->kernel;
}

static uint64_t counter(const run_vta_report *r, const char *key)
{
    const char *at = strstr(r->counters, key);
    assert_non_null(at);
    return strtoull(at + strlen(key) + 2, NULL, 10);
}

/* --- tests --- */

static void resnet18_layers_with_published_blockings(void **state)
{
    (void)state;
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        run_vta_report r;
        te_vta_layer l = layer_of(&resnet18_layers[i]);
        take_published(&l, &resnet18_layers[i]);
        run_layer(NULL, &l, 37, &r);
        assert_int_equal(counter(&r, "\"gemm_counter\""), gemm_operations(&resnet18_layers[i]));
        assert_int_equal(counter(&r, "\"out_store_nbytes\""),
                         te_vta_layer_rows(&l) * te_vta_layer_columns(&l) * l.out_channels);
    }
}

static void resnet18_layers_with_chosen_blockings(void **state)
{
    (void)state;
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        te_vta_layer l = layer_of(&resnet18_layers[i]);
        run_layer(NULL, &l, 101, NULL);
        assert_true(l.tile_h > 0 && l.oc_threads * l.h_threads >= 1);
    }
}

/* Every output of small layers on other devices: batch rows, narrow blocks, no bias, no shift, strides, large kernels.
 */
static void small_layers_on_other_devices(void **state)
{
    static const struct {
        const char *config, *layer;
    } cases[] = {
        {NULL, "height=9,width=7,in_channels=32,out_channels=48,kernel=5,pad=2,shift=4"},
        {NULL, "height=12,width=10,in_channels=16,out_channels=32,stride=2,bias=0,shift=0,low=-100,high=100"},
        {NULL, "height=6,width=6,in_channels=32,out_channels=32,kernel=1,pad=0,oc_threads=1,h_threads=1,shift=2"},
        {"2x16_i8w8a32_15_15_18_17", "height=8,width=8,in_channels=32,out_channels=32,shift=3"},
        {"4x16_i8w8a32_15_15_18_17", "height=6,width=8,in_channels=16,out_channels=64,batch=8,stride=2,shift=2"},
        {"4x8_i8w8a32_15_16_16_18", "height=8,width=8,in_channels=24,out_channels=32,shift=3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compiler c;
        te_vta_layer l;
        compiler_init(&c);
        assert_true(te_vta_layer_parse(&c, TE_VTA_CONV, cases[i].layer, &l));
        compiler_free(&c);
        run_layer(cases[i].config, &l, 1, NULL);
    }
}

static void print_table(void)
{
    printf("| layer | tile_h, w, ci, co | threads | GEMM operations | cycles | ms at 100 MHz | published ms | chosen | "
           "cycles |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        const conv_layer *p = &resnet18_layers[i];
        run_vta_report r, q;
        te_vta_layer l = layer_of(p), own = layer_of(p);
        take_published(&l, p);
        run_layer(NULL, &l, 1009, &r);
        run_layer(NULL, &own, 1009, &q);
        printf("| %s | %d, %d, %d, %d | %s | %llu | %llu | %.2f | %.2f | %d, %d, %d, %d %s | %llu |\n", p->name,
               (int)l.tile_h, (int)l.tile_w, (int)l.tile_ci, (int)l.tile_co, l.oc_threads > 1 ? "oc" : "h",
               (unsigned long long)gemm_operations(p), (unsigned long long)r.cycles.cycles,
               (double)r.cycles.cycles / 1e5,
               p->milliseconds, (int)own.tile_h, (int)own.tile_w, (int)own.tile_ci, (int)own.tile_co,
               own.oc_threads > 1  ? "oc"
               : own.h_threads > 1 ? "h"
                                   : "-",
               (unsigned long long)q.cycles.cycles);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_layers_with_published_blockings),
        cmocka_unit_test(resnet18_layers_with_chosen_blockings),
        cmocka_unit_test(small_layers_on_other_devices),
    };
    (void)argv;
    if (argc > 1) {
        print_table();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
