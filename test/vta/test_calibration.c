/* test_calibration.c: the cycle model against what was published for ResNet-18: cycles of whole networks on the Chisel
 * hardware, milliseconds of layers on a Pynq. The tables in docs/explanation/vta-cycle.md and the pictures beside it
 * are made here and must be what the model gives: scripts/update_vta_cycle.sh writes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "vta.h"
#include "workloads.h"

/* Networks: how often each layer comes, how many of those add a residual tensor, and the published cycles with the
 * pipelined and the 4-cycle GEMM unit. */
typedef struct network {
    const char *name;
    uint32_t count[RESNET18_LAYERS], residual[RESNET18_LAYERS];
    double pipelined, old;
} network;

static const network networks[] = {
    {"resnet18_v1", {4, 1, 1, 3, 1, 1, 3, 1, 1, 3}, {2, 0, 0, 2, 0, 0, 2, 0, 0, 2}, 7729601, 27679515},
    {"resnet34_v1", {6, 1, 1, 7, 1, 1, 11, 1, 1, 5}, {3, 0, 0, 4, 0, 0, 6, 0, 0, 3}, 15736441, 57471735},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static const double cycles_per_millisecond = 100000; /* Pynq: 100 MHz */

/* The layers that the published times had to be met for; the others move more data than they compute. */
static const char *const compute_bound[] = {"C2", "C3", "C5", "C6", "C8"};

/* What the measured programs did after the accumulation: shift, min, max. */
enum { EPILOGUE_MEASURED = EPILOGUE_SHIFT | EPILOGUE_CLIP };

static const vta_cycle_options pipelined = {.profile = VTA_CYCLE_CHISEL};
static const vta_cycle_options old = {.profile = VTA_CYCLE_CHISEL, .gemm_interval = 4};
static const vta_cycle_options hls = {.profile = VTA_CYCLE_HLS};
static const vta_cycle_options hls_half = {.profile = VTA_CYCLE_HLS, .bus_bits = 32};

/* --- timing ------------------------------------------------------------------------------------------------------- */

static vta_cycle_report time_layer(const conv_layer *l, unsigned epilogue, const vta_cycle_options *o, stream *s,
                                   vta_geometry *g)
{
    vta_config c;
    vta_cycle_report r;
    vta_error e = {VTA_OK, ""};
    assert_int_equal(vta_config_preset("pynq", &c, &e), VTA_OK);
    assert_int_equal(vta_config_check(&c, g, &e), VTA_OK);
    const uint32_t apart = 1u << 20; /* elements, so that no burst is cut by chance of an address */
    const conv_task t = {.layer = l,
                         .epilogue = epilogue,
                         .shift = 8,
                         .least = -128,
                         .most = 127,
                         .data = apart,
                         .weights = apart,
                         .bias = apart,
                         .residual = apart,
                         .out = apart};
    stream_init(s, g, apart);
    conv_emit(s, &t);
    stream_finish(s);
    if (vta_cycle_time(&c, o, s->insns, s->n_insns, &r, &e) != VTA_OK)
        fail_msg("%s: %s", l->name, e.text);
    return r;
}

static double cycles_of(const conv_layer *l, unsigned epilogue, const vta_cycle_options *o)
{
    stream s;
    vta_geometry g;
    vta_cycle_report r = time_layer(l, epilogue, o, &s, &g);
    double cycles = (double)r.cycles;
    vta_cycle_release(&r);
    stream_release(&s);
    return cycles;
}

static double percent(double ours, double theirs)
{
    return 100 * (ours / theirs - 1);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

typedef struct text {
    char out[8192];
    size_t length;
} text;

static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->out + t->length, sizeof t->out - t->length, fmt, args);
    va_end(args);
    t->length += (size_t)n;
    assert_true(t->length < sizeof t->out);
}

static void put_total(text *t, const network *n, const char *what, const double plain[], const double residual[],
                      double published)
{
    double ours = 0;
    for (int i = 0; i < RESNET18_LAYERS; i++)
        ours += (n->count[i] - n->residual[i]) * plain[i] + n->residual[i] * residual[i];
    put(t, "| %s | %s | %.0f | %.0f | %+.1f %% |\n", n->name, what, ours, published, percent(ours, published));
    assert_true(fabs(percent(ours, published)) <= 15);
}

/* Chisel: the totals, within 15 %, and what they are made of. */
static void chisel_table(text *t)
{
    double fast[RESNET18_LAYERS], fast_residual[RESNET18_LAYERS], slow[RESNET18_LAYERS], slow_residual[RESNET18_LAYERS];
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        const conv_layer *l = &resnet18_layers[i];
        fast[i] = cycles_of(l, EPILOGUE_QUANTISED, &pipelined);
        slow[i] = cycles_of(l, EPILOGUE_QUANTISED, &old);
        fast_residual[i] = cycles_of(l, EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL, &pipelined);
        slow_residual[i] = cycles_of(l, EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL, &old);
    }
    put(t, "| network | GEMM unit | ours | published | difference |\n|---|---|---|---|---|\n");
    for (int i = 0; i < NETWORKS; i++) {
        const network *n = &networks[i];
        put_total(t, n, "pipelined", fast, fast_residual, n->pipelined);
        put_total(t, n, "4-cycle", slow, slow_residual, n->old);
        put_total(t, n, "pipelined, no residual adds", fast, fast, n->pipelined);
    }
    put(t, "\n| layer | GEMM operations | pipelined | with residual add | 4-cycle unit | with residual add |\n"
           "|---|---|---|---|---|---|\n");
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        const conv_layer *l = &resnet18_layers[i];
        double blocks = l->in_channels / 16.0 * l->out_channels / 16.0;
        double operations = conv_extent(l) * conv_extent(l) * blocks * l->kernel * l->kernel;
        put(t, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f |\n", l->name, operations, fast[i], fast_residual[i], slow[i],
            slow_residual[i]);
    }
}

/* How much the total of resnet18_v1 hangs on each parameter. */
static void sensitivity_table(text *t)
{
    static const struct {
        const char *what;
        vta_cycle_options options;
    } rows[] = {
        {"as above", {.latency = 0}},
        {"`latency` 64", {.latency = 64}},
        {"`command_cycles` 8", {.command_cycles = 8}},
        {"`unit_fill` 20", {.unit_fill = 20}},
        {"`insn_queue` 4", {.insn_queue = 4}},
        {"`bus_bits` 32", {.bus_bits = 32}},
        {"`bus_bits` 128", {.bus_bits = 128}},
    };
    const network *n = &networks[0];
    put(t, "| changed | cycles | difference from published |\n|---|---|---|\n");
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        double sum = 0;
        for (int i = 0; i < RESNET18_LAYERS; i++) {
            const conv_layer *l = &resnet18_layers[i];
            const vta_cycle_options *o = &rows[row].options;
            sum += (n->count[i] - n->residual[i]) * cycles_of(l, EPILOGUE_QUANTISED, o);
            if (n->residual[i])
                sum += n->residual[i] * cycles_of(l, EPILOGUE_QUANTISED | EPILOGUE_RESIDUAL, o);
        }
        put(t, "| %s | %.0f | %+.1f %% |\n", rows[row].what, sum, percent(sum, n->pipelined));
    }
}

static bool is_compute_bound(const char *name)
{
    for (size_t i = 0; i < sizeof compute_bound / sizeof *compute_bound; i++)
        if (strcmp(name, compute_bound[i]) == 0)
            return true;
    return false;
}

/* What a launch costs beside the device: the published time of a layer so small that little else is in it. */
static double launch_of(const vta_cycle_options *o)
{
    return lstm_dense1.milliseconds * cycles_per_millisecond - cycles_of(&lstm_dense1, EPILOGUE_MEASURED, o);
}

static void put_difference(text *t, const conv_layer *l, unsigned epilogue, const vta_cycle_options *o, double allowed)
{
    double ours = cycles_of(l, epilogue, o), theirs = l->milliseconds * cycles_per_millisecond - launch_of(o);
    put(t, " %.0f | %+.1f %% |", ours, percent(ours, theirs));
    assert_true(fabs(percent(ours, theirs)) <= allowed);
}

/* HLS: layers; those that compute more than they move within 20 %. */
static void hls_table(text *t)
{
    put(t, "Launch: %.0f cycles with the 64-bit port, %.0f with 32 bits.\n\n", launch_of(&hls), launch_of(&hls_half));
    put(t, "| layer | published less launch | bias, round, shift, clip | | shift, clip | | the same, 32-bit port | |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        const conv_layer *l = &resnet18_layers[i];
        double allowed = is_compute_bound(l->name) ? 20 : HUGE_VAL;
        put(t, "| %s | %.0f |", l->name, l->milliseconds * cycles_per_millisecond - launch_of(&hls));
        put_difference(t, l, EPILOGUE_QUANTISED, &hls, allowed);
        put_difference(t, l, EPILOGUE_MEASURED, &hls, allowed);
        put_difference(t, l, EPILOGUE_MEASURED, &hls_half, HUGE_VAL);
        put(t, "\n");
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static FILE *open_doc(const char *name, const char *mode)
{
    char path[4096];
    const char *top = getenv("LATHE_SOURCE");
    snprintf(path, sizeof path, "%s/docs/explanation/%s", top ? top : ".", name);
    FILE *f = fopen(path, mode);
    if (!f)
        fail_msg("cannot open %s", path);
    return f;
}

static char *read_doc(const char *name)
{
    FILE *f = open_doc(name, "rb");
    char *all = calloc(1, 1 << 20);
    assert_non_null(all);
    assert_true(fread(all, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return all;
}

static bool updating(void)
{
    return getenv("LATHE_UPDATE_DOCS") != NULL;
}

/* The part of vta-cycle.md between "<!-- made: NAME -->" and "<!-- end -->" must be `made`, or becomes it. */
static void check_part(const char *name, const char *made)
{
    char *all = read_doc("vta-cycle.md"), begin[80];
    snprintf(begin, sizeof begin, "<!-- made: %s -->\n", name);
    char *from = strstr(all, begin), *to = from ? strstr(from, "<!-- end -->") : NULL;
    if (!to)
        fail_msg("docs/explanation/vta-cycle.md has no part '%s'", name);
    from += strlen(begin);
    bool same = (size_t)(to - from) == strlen(made) && memcmp(from, made, strlen(made)) == 0;
    if (!same && updating()) {
        FILE *f = open_doc("vta-cycle.md", "wb");
        fprintf(f, "%.*s%s%s", (int)(from - all), all, made, to);
        fclose(f);
        same = true;
    }
    free(all);
    if (!same)
        fail_msg("docs/explanation/vta-cycle.md, '%s': not what the model gives; run scripts/update_vta_cycle.sh",
                 name);
}

static void chisel_totals_are_met(void **state)
{
    (void)state;
    text t = {.length = 0};
    chisel_table(&t);
    printf("%s", t.out);
    check_part("chisel", t.out);
}

static void parameters_matter_little(void **state)
{
    (void)state;
    text t = {.length = 0};
    sensitivity_table(&t);
    printf("%s", t.out);
    check_part("sensitivity", t.out);
}

static void hls_layers_are_met(void **state)
{
    (void)state;
    text t = {.length = 0};
    hls_table(&t);
    printf("%s", t.out);
    check_part("hls", t.out);
}

/* --- pictures ----------------------------------------------------------------------------------------------------- */

/* 64 rows by 128 by 128 lanes, as a 1x1 convolution: a step loads about as long as it computes. */
static const conv_layer one_thread = {.name = "GEMM",
                                      .size = 8,
                                      .in_channels = 128,
                                      .out_channels = 128,
                                      .kernel = 1,
                                      .stride = 1,
                                      .tile_h = {1, 8},
                                      .tile_w = {1, 8},
                                      .tile_ci = {4, 2},
                                      .tile_co = {2, 4},
                                      .oc_threads = 1,
                                      .h_threads = 1};

static uint64_t check_picture(const char *name, uint32_t threads)
{
    stream s;
    vta_geometry g;
    conv_layer l = one_thread;
    l.oc_threads = threads;
    vta_cycle_report r = time_layer(&l, EPILOGUE_MEASURED, &pipelined, &s, &g);
    uint64_t cycles = r.cycles;
    size_t n = vta_cycle_svg(&g, &r, s.insns, NULL, 0);
    char *svg = malloc(n + 1);
    assert_non_null(svg);
    vta_cycle_svg(&g, &r, s.insns, svg, n + 1);
    if (updating()) {
        FILE *f = open_doc(name, "wb");
        fwrite(svg, 1, n, f);
        fclose(f);
    }
    char *kept = read_doc(name);
    if (strcmp(kept, svg) != 0)
        fail_msg("docs/explanation/%s: not what the model gives; run scripts/update_vta_cycle.sh", name);
    free(kept);
    free(svg);
    vta_cycle_release(&r);
    stream_release(&s);
    return cycles;
}

static void two_virtual_threads_overlap(void **state)
{
    (void)state;
    uint64_t one = check_picture("vta-timeline-1.svg", 1), two = check_picture("vta-timeline-2.svg", 2);
    printf("one virtual thread %llu cycles, two %llu\n", (unsigned long long)one, (unsigned long long)two);
    assert_true((double)two < 0.75 * (double)one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chisel_totals_are_met),
        cmocka_unit_test(parameters_matter_little),
        cmocka_unit_test(hls_layers_are_met),
        cmocka_unit_test(two_virtual_threads_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
