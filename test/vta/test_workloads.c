/* test_workloads.c: the convolution streams that other tests time and measure compute convolutions: run on the
 * simulator of strict hardware and compared with the plain sum. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "vta_test.h"
#include "workloads.h"

enum { SHIFT = 7, LEAST = -100, MOST = 110 };

typedef struct tensors {
    vta_memory data, weights, bias, residual, out, uops, insns;
    size_t planes; /* output pixels */
} tensors;

static vta_memory allocate(vta_sim *sim, size_t elements, uint32_t element_bytes, uint64_t *seed)
{
    vta_memory m;
    vta_error e = {VTA_OK, ""};
    if (vta_dram_alloc(vta_sim_dram(sim), elements * element_bytes, &m, &e) != VTA_OK)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < elements * element_bytes; i++)
        ((uint8_t *)m.host)[i] = (uint8_t)test_random(seed);
    return m;
}

static void small_numbers(const vta_memory *m, uint64_t *seed)
{
    for (size_t i = 0; i < m->bytes / 4; i++)
        ((int32_t *)m->host)[i] = (int32_t)test_below(seed, 20001) - 10000;
}

static uint32_t base_of(const vta_memory *m, uint32_t element_bytes)
{
    return (uint32_t)(m->phys / element_bytes);
}

/* One output from the definition: batch row b of pixel (y, x), channel o. Tensors are blocked as the device has them.
 */
static int32_t plain(const vta_geometry *g, const conv_layer *l, const tensors *t, unsigned epilogue, uint32_t o,
                     uint32_t y, uint32_t x, uint32_t b)
{
    const int8_t *data = t->data.host, *weights = t->weights.host;
    const uint32_t in = g->block_in, out = g->block_out, blocks = l->in_channels / in, size = conv_extent(l);
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->in_channels; i++) {
        for (uint32_t dy = 0; dy < l->kernel; dy++) {
            for (uint32_t dx = 0; dx < l->kernel; dx++) {
                uint32_t row = y * l->stride + dy - l->pad, column = x * l->stride + dx - l->pad;
                if (row >= l->size || column >= l->size) /* wraps below 0 */
                    continue;
                size_t at = ((i / in * l->size + row) * l->size + column) * g->batch + b;
                size_t tap = ((o / out * blocks + i / in) * l->kernel + dy) * l->kernel + dx;
                sum += data[at * in + i % in] * weights[(tap * out + o % out) * in + i % in];
            }
        }
    }
    const int32_t *bias = t->bias.host, *residual = t->residual.host;
    if (epilogue & EPILOGUE_BIAS)
        sum += bias[(o / out * g->batch + b) * out + o % out];
    if (epilogue & EPILOGUE_ROUND)
        sum += 1 << (SHIFT - 1);
    if (epilogue & EPILOGUE_SHIFT)
        sum = sum >= 0 ? sum >> SHIFT : -((-sum + (1 << SHIFT) - 1) >> SHIFT);
    if (epilogue & EPILOGUE_RESIDUAL)
        sum += residual[(((o / out * size + y) * size + x) * g->batch + b) * out + o % out];
    if (epilogue & EPILOGUE_CLIP)
        sum = sum < LEAST ? LEAST : sum > MOST ? MOST : sum;
    return (int8_t)(uint8_t)(sum & 255);
}

static void compare(const vta_geometry *g, const conv_layer *l, const tensors *t, unsigned epilogue, uint32_t samples,
                    uint64_t *seed)
{
    const uint32_t size = conv_extent(l), lanes = g->batch * g->block_out,
                   values = size * size * l->out_channels * g->batch;
    for (uint32_t i = 0; i < (samples ? samples : values); i++) {
        uint32_t at = samples ? test_below(seed, values) : i, lane = at % lanes, pixel = at / lanes;
        uint32_t o = pixel / (size * size) * g->block_out + lane % g->block_out, y = pixel / size % size;
        int32_t expected = plain(g, l, t, epilogue, o, y, pixel % size, lane / g->block_out);
        int32_t got = ((const int8_t *)t->out.host)[at];
        if (got != expected)
            fail_msg("%s: channel %u, row %u, column %u: %d, not %d", l->name, o, y, pixel % size, got, expected);
    }
}

/* samples: outputs to look at, 0: all. */
static void check_layer(const char *config, vta_profile profile, const conv_layer *l, unsigned epilogue,
                        uint32_t samples)
{
    vta_config c = test_config(config);
    vta_sim_options options = {.profile = profile};
    vta_sim *sim = test_sim(&c, &options);
    const vta_geometry *g = vta_sim_geometry(sim);
    const uint32_t *bytes = g->elem_bytes, size = conv_extent(l);
    const size_t in_blocks = l->in_channels / g->block_in, out_blocks = l->out_channels / g->block_out;
    uint64_t seed = 1;
    tensors t = {.planes = (size_t)size * size};
    t.data = allocate(sim, in_blocks * l->size * l->size, bytes[VTA_MEM_INP], &seed);
    t.weights = allocate(sim, in_blocks * out_blocks * l->kernel * l->kernel, bytes[VTA_MEM_WGT], &seed);
    t.bias = allocate(sim, out_blocks, bytes[VTA_MEM_ACC], &seed);
    t.residual = allocate(sim, out_blocks * t.planes, bytes[VTA_MEM_ACC], &seed);
    t.out = allocate(sim, out_blocks * t.planes, bytes[VTA_MEM_OUT], &seed);
    t.uops = allocate(sim, g->depth[VTA_MEM_UOP], VTA_UOP_BYTES, &seed);
    small_numbers(&t.bias, &seed);
    small_numbers(&t.residual, &seed);
    const conv_task task = {.layer = l,
                            .epilogue = epilogue,
                            .shift = SHIFT,
                            .least = LEAST,
                            .most = MOST,
                            .data = base_of(&t.data, bytes[VTA_MEM_INP]),
                            .weights = base_of(&t.weights, bytes[VTA_MEM_WGT]),
                            .bias = base_of(&t.bias, bytes[VTA_MEM_ACC]),
                            .residual = base_of(&t.residual, bytes[VTA_MEM_ACC]),
                            .out = base_of(&t.out, bytes[VTA_MEM_OUT])};
    stream s;
    vta_error e = {VTA_OK, ""};
    stream_init(&s, g, base_of(&t.uops, VTA_UOP_BYTES));
    conv_emit(&s, &task);
    stream_finish(&s);
    memcpy(t.uops.host, s.uops, s.n_uops * sizeof *s.uops);
    if (vta_sim_run(sim, s.insns, s.n_insns, &e) != VTA_OK)
        fail_msg("%s: %s", l->name, e.text);
    compare(g, l, &t, epilogue, samples, &seed);
    stream_release(&s);
    vta_sim_destroy(sim);
}

/* Every knob away from 1, borders that do not divide, all outputs. */
static void small_layers_are_right(void **state)
{
    (void)state;
    static const conv_layer layers[] = {
        {"square", 6, 64, 64, 3, 1, 1, {2, 3}, {1, 6}, {4, 1}, {2, 2}, 2, 1, 0},
        {"rows", 8, 32, 32, 3, 1, 1, {4, 2}, {2, 4}, {1, 2}, {1, 2}, 1, 2, 0},
        {"stride", 9, 32, 64, 3, 1, 2, {1, 5}, {5, 1}, {2, 1}, {2, 2}, 1, 1, 0},
        {"wide", 10, 32, 32, 5, 2, 1, {5, 2}, {1, 10}, {2, 1}, {2, 1}, 2, 1, 0},
        {"point", 7, 64, 32, 1, 0, 2, {2, 2}, {1, 4}, {2, 2}, {2, 1}, 1, 2, 0},
    };
    for (size_t i = 0; i < N(layers); i++) {
        check_layer("1x16_i8w8a32_15_15_18_17", VTA_CHISEL, &layers[i], EPILOGUE_QUANTISED, 0);
        check_layer("1x16_i8w8a32_15_15_18_17", VTA_CHISEL, &layers[i], EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL, 0);
        check_layer("2x16_i8w8a32_15_15_18_17", VTA_COMPATIBLE, &layers[i], EPILOGUE_SHIFT | EPILOGUE_CLIP, 0);
    }
    conv_layer narrow = layers[0]; /* twice as many blocks */
    narrow.tile_ci[0] = 8, narrow.tile_co[0] = 4;
    check_layer("4x8_i8w8a32_15_16_16_18", VTA_COMPATIBLE, &narrow, EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL, 0);
}

/* The published schedules fit the published device, micro-ops included, and compute what they should. */
static void resnet18_layers_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        const conv_layer *l = &resnet18_layers[i];
        unsigned epilogue = EPILOGUE_QUANTISED | (l->stride == 1 ? EPILOGUE_RESIDUAL : 0);
        check_layer("1x16_i8w8a32_15_15_18_17", VTA_CHISEL, l, epilogue, 2000);
    }
    check_layer("1x16_i8w8a32_15_15_18_17", VTA_CHISEL, &lstm_dense1, EPILOGUE_SHIFT, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_layers_are_right),
        cmocka_unit_test(resnet18_layers_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
