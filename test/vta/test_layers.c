/* test_layers.c: layers by rule for VTA (te/rule/vta.h), of every kind, on several devices: what a plan accepts is
 * lowered, and gives the numbers of the computation without a schedule. Layers by chance; with arguments COUNT SEED as
 * many of them as wanted. SPDX-License-Identifier: Apache-2.0 */
#include "lowered.h"
#include "runtime_test.h"
#include "te/lower.h"
#include "te/rule/vta.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "type/vta_text.h"

#define MOST_WORK 400000 /* multiplications of a layer that is computed, by the interpreter, too */

static const char *const configs[] = {
    "1x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17", "1x8_i8w8a32_15_13_14_16", "1x32_i8w8a32_15_15_18_17",
    "4x8_i8w8a32_15_16_16_18",  "1x16_i8w8a32_12_12_15_13", "1x16_i16w8a32_15_15_18_17", "1x16_i8w8a16_15_15_18_16",
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

/* Inputs and weights of few bits: sums are not all beyond the limits. */
static void narrow(const tir_func *f, void *const *params)
{
    for (uint32_t i = 0; i < f->n_inputs; i++)
        for (int64_t k = 0; k < tir_buffer_count(f->params[i]); k++) {
            size_t at = (size_t)k * dtype_bytes(f->params[i]->dt);
            dtype dt = f->params[i]->dt;
            int64_t v = dtype_load_i64(dt, (uint8_t *)params[i] + at);
            dtype_store_i64(dt, (uint8_t *)params[i] + at, v >> (dt == DT_I8 ? i + 1 : dtype_bits(dt) - 10));
        }
}

static void compare(compiler *c, te_vta_layer *l, const tir_func *lowered, const char *words)
{
    te_graph *g;
    te_sched *s;
    tir_func *plain;
    tir_module m = {.c = c};
    int32_t status = 0;
    assert_true(te_vta_layer_make(c, l, &g, &s) && te_lower(g, te_sched_new(g), "plain", &plain));
    vec_push(&c->mem, &m.funcs, plain);
    assert_true(tir_run_passes(c, &m, tir_plain_passes, false, NULL));
    void **want = lowered_params(c, plain), **got = lowered_params(c, lowered);
    narrow(plain, want);
    narrow(plain, got);
    assert_true(tir_interpret(c, plain, want, &status));
    lowered_run(c, lowered, got, NULL);
    uint32_t out = plain->n_inputs;
    if (memcmp(want[out], got[out], lowered_bytes(plain->params[out])) != 0)
        fail_msg("%s: the device computes something else", words);
}

static void try_layer(const char *config, te_vta_layer *l, bool compute, tally *t)
{
    compiler c;
    tir_func *f = NULL;
    compiler_init(&c);
    assert_true(vta_text_parse(&c, config, &c.vta));
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
    if (kind == TE_VTA_UPSAMPLING)
        l.stride = pick(r, 1, 3);
    l.bias = pick(r, 0, 1);
    l.mul = pick(r, 0, 3) ? 0 : pick(r, -300, 300);
    l.shift = pick(r, -2, 20);
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
    tally t = random_layers(400, 1);
    assert_true(t.lowered > 200 && t.computed > 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_by_chance),
    };
    if (argc > 2) {
        tally t = random_layers(atoi(argv[1]), (uint32_t)atoi(argv[2]));
        printf("%d lowered, %d of them computed, %d refused\n", t.lowered, t.computed, t.refused);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
