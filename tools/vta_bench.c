/* SPDX-License-Identifier: Apache-2.0 */
/* lathe vta bench: how fast the functional simulator is, per level of inner loops: matrix times vector (every weight
 * used once), matrix times vector in blocks of 16, a 3x3 convolution (ResNet-18's C8). Two figures each: the whole
 * stream, with its transfers, and the tensor products alone. */
#include "cmd_vta.h"

#include "base/json_out.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct stream {
    vta_device device;
    vta_sim *sim;
    vta_memory a, b, c, uops, code;
    vta_insn *insns;
    uint32_t n, cap;
    uint64_t products;
    bool bad;
} stream;

static void emit(stream *s, vta_fields f)
{
    vta_field_error e;
    if (s->n == s->cap || !vta_encode(&s->device.geometry, &f, &s->insns[s->n++], &e))
        s->bad = true;
    if (f.opcode == VTA_GEMM && !f.reset_reg)
        s->products += (uint64_t)(f.iter_out * f.iter_in * (f.uop_end - f.uop_bgn));
}

static vta_fields transfer(const stream *s, enum vta_mem m, const vta_memory *at, uint32_t sram, uint64_t dram,
                           uint32_t x, uint32_t y, uint32_t stride)
{
    return (vta_fields){.opcode = m == VTA_MEM_OUT ? VTA_STORE : VTA_LOAD,
                        .memory_type = m,
                        .sram_base = sram,
                        .dram_base = (int64_t)(at->phys / s->device.geometry.elem_bytes[m] + dram),
                        .x_size = x,
                        .y_size = y,
                        .x_stride = stride};
}

static vta_fields compute(uint32_t opcode, uint32_t begin, uint32_t end, uint32_t outer, uint32_t inner)
{
    return (vta_fields){.opcode = opcode, .uop_bgn = begin, .uop_end = end, .iter_out = outer, .iter_in = inner};
}

static void reset(stream *s, uint32_t n)
{
    vta_fields f = compute(VTA_GEMM, 0, 1, 1, n);
    f.reset_reg = 1;
    f.dst_factor_in = 1;
    f.push_prev_dep = 1;
    emit(s, f);
}

/* Shift, clip, store of n accumulators; the load stage's token is given back. */
static void epilogue(stream *s, uint32_t n, uint64_t out)
{
    static const struct {
        enum vta_alu_opcode op;
        int imm;
    } steps[] = {{VTA_ALU_SHR, 8}, {VTA_ALU_MAX, 0}, {VTA_ALU_MIN, 127}};
    for (int i = 0; i < 3; i++) {
        vta_fields f = compute(VTA_ALU, 0, 1, 1, n);
        f.dst_factor_in = f.src_factor_in = 1;
        f.alu_opcode = steps[i].op;
        f.use_imm = 1;
        f.imm = steps[i].imm;
        f.push_next_dep = i == 2;
        emit(s, f);
    }
    vta_fields store = transfer(s, VTA_MEM_OUT, &s->c, 0, out, n, 1, n);
    store.pop_prev_dep = store.push_prev_dep = 1;
    emit(s, store);
    vta_fields drain = transfer(s, VTA_MEM_INP, &s->a, 0, 0, 0, 0, 0),
               wait = transfer(s, VTA_MEM_ACC, &s->a, 0, 0, 0, 0, 0);
    drain.pop_next_dep = drain.push_next_dep = 1;
    wait.pop_prev_dep = wait.pop_next_dep = 1;
    emit(s, drain);
    emit(s, wait);
}

static void step(stream *s, vta_fields inp, vta_fields wgt, vta_fields gemm)
{
    inp.pop_next_dep = wgt.push_next_dep = gemm.pop_prev_dep = gemm.push_prev_dep = 1;
    emit(s, inp);
    emit(s, wgt);
    emit(s, gemm);
}

/* 1024 outputs by `n` inputs, in tiles. */
static void build_vector(stream *s)
{
    const uint32_t m = 1024, n = 256;
    emit(s, transfer(s, VTA_MEM_UOP, &s->uops, 0, 0, 1, 1, 1));
    reset(s, m);
    for (uint32_t k = 0; k < n; k++) {
        vta_fields gemm = compute(VTA_GEMM, 0, 1, m, 1);
        gemm.dst_factor_out = gemm.wgt_factor_out = 1;
        step(s, transfer(s, VTA_MEM_INP, &s->a, 0, k, 1, 1, 1), transfer(s, VTA_MEM_WGT, &s->b, 0, k, 1, m, n), gemm);
    }
    epilogue(s, m, 0);
}

/* 64 outputs by 64 inputs, in tiles, by blocks of 16. */
static void build_blocks(stream *s)
{
    const uint32_t m = 64, n = 64;
    emit(s, transfer(s, VTA_MEM_UOP, &s->uops, 0, 0, 1, 1, 1));
    for (uint32_t o = 0; o < m; o += 16) {
        reset(s, 16);
        for (uint32_t k = 0; k < n; k += 16) {
            vta_fields gemm = compute(VTA_GEMM, 0, 1, 16, 16);
            gemm.dst_factor_out = gemm.src_factor_in = gemm.wgt_factor_in = 1;
            gemm.wgt_factor_out = 16;
            step(s, transfer(s, VTA_MEM_INP, &s->a, 0, k, 16, 1, 16),
                 transfer(s, VTA_MEM_WGT, &s->b, 0, o * n + k, 16, 16, n), gemm);
        }
        epilogue(s, 16, o);
    }
}

/* 14 x 14, 256 to 256 channels, 3 x 3: tiles of 4 x 14 x 14, one block of input channels after the other. */
static void build_conv(stream *s)
{
    emit(s, transfer(s, VTA_MEM_UOP, &s->uops, 0, 0, 127, 1, 127));
    for (uint32_t o = 0; o < 16; o += 4) {
        reset(s, 4 * 196);
        for (uint32_t k = 0; k < 16; k++) {
            vta_fields gemm = compute(VTA_GEMM, 1, 127, 4, 14);
            vta_fields inp = transfer(s, VTA_MEM_INP, &s->a, 0, k * 196, 14, 14, 14);
            inp.y_pad_0 = inp.y_pad_1 = inp.x_pad_0 = inp.x_pad_1 = 1;
            gemm.dst_factor_out = 196;
            gemm.wgt_factor_out = 9;
            gemm.dst_factor_in = 14;
            gemm.src_factor_in = 16;
            step(s, inp, transfer(s, VTA_MEM_WGT, &s->b, 0, (o * 16 + k) * 9, 9, 4, 9 * 16), gemm);
        }
        epilogue(s, 4 * 196, o * 196);
    }
}

/* Micro-op 0 is (0, 0, 0); from 1 on those of the convolution: kernel row, kernel column, image column. */
static bool put_uops(stream *s)
{
    uint32_t *words = s->uops.host, n = 1;
    vta_field_error e;
    words[0] = 0;
    for (uint32_t y = 0; y < 3; y++)
        for (uint32_t x = 0; x < 3; x++)
            for (uint32_t i = 0; i < 14; i++) {
                const vta_uop_fields f = {i, y * 16 + i + x, y * 3 + x};
                if (!vta_uop_encode(&s->device.geometry, &f, &words[n++], &e))
                    return false;
            }
    return true;
}

static bool open_stream(stream *s, vta_sim_level level, vta_error *e)
{
    const vta_config c = vta_config_default();
    const vta_sim_options o = {.level = level};
    const struct {
        vta_memory *m;
        size_t bytes;
    } parts[] = {{&s->a, 1 << 20}, {&s->b, 256 * 1024 * 256}, {&s->c, 1 << 20}, {&s->uops, 4096}, {&s->code, 1 << 20}};
    if (vta_sim_create(&c, &o, &s->sim, e) != VTA_OK)
        return false;
    s->device = vta_sim_device(s->sim);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (s->device.driver->alloc(s->device.self, parts[i].bytes, true, parts[i].m, e) != VTA_OK)
            return false;
        for (size_t k = 0; k < parts[i].bytes; k++)
            ((uint8_t *)parts[i].m->host)[k] = (uint8_t)(k * 2654435761u >> 13);
    }
    s->insns = s->code.host;
    s->cap = (1 << 20) / VTA_INSN_BYTES;
    return put_uops(s);
}

/* Time that this thread had the processor: a busy machine does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The stream `runs` times, or its products alone. */
static bool run_stream(stream *s, bool products, uint32_t runs, vta_error *e)
{
    for (uint32_t r = 0; r < runs; r++) {
        if (!products && s->device.driver->run(s->device.self, s->code.phys, s->n, UINT32_MAX, e) != VTA_OK)
            return false;
        for (uint32_t i = 0; products && i < s->n; i++)
            if ((s->insns[i].word[0] & 7u) == VTA_GEMM && vta_sim_execute(s->sim, &s->insns[i], i, e) != VTA_OK)
                return false;
    }
    return true;
}

/* Least seconds for one run; 0: *e. So many runs are timed at once that the clock, which may be coarse, sees them. */
static double time_stream(stream *s, bool products, vta_error *e)
{
    const double seen = 0.1;
    double best = 0;
    uint32_t runs = 1;
    for (int round = 0; round < 3; round++) {
        double t;
        do {
            double start = now();
            if (!run_stream(s, products, runs, e))
                return 0;
            t = now() - start;
            if (t < seen)
                runs *= 2;
        } while (t < seen);
        best = round == 0 || t / runs < best ? t / runs : best;
    }
    return best;
}

static void show_load(ask *x, json_out *j, const char *load, const char *level, double stream_rate, double alone_rate)
{
    if (!ask_has(x, OPT_JSON)) {
        w_fmt(&x->out, "%-22s %-8s %10.1f %10.1f\n", load, level, stream_rate, alone_rate);
        return;
    }
    json_out_object(j, NULL);
    json_out_text(j, "load", load);
    json_out_text(j, "level", level);
    json_out_real(j, "stream_gmacs_per_s", stream_rate);
    json_out_real(j, "products_gmacs_per_s", alone_rate);
    json_out_end(j);
}

static bool bench_level(ask *x, json_out *j, vta_sim_level level, vta_error *e)
{
    static const char *const names[] = {
#define X(id, text) text,
        VTA_SIM_LEVELS(X)
#undef X
    };
    static const struct {
        const char *name;
        void (*build)(stream *s);
    } loads[] = {
        {"vector 16384 x 4096", build_vector}, {"blocks 1024 x 1024", build_blocks}, {"convolution C8", build_conv}};
    stream s;
    memset(&s, 0, sizeof s);
    bool ok = open_stream(&s, level, e);
    for (size_t i = 0; ok && i < sizeof loads / sizeof *loads; i++) {
        s.n = 0;
        s.products = 0;
        loads[i].build(&s);
        emit(&s, (vta_fields){.opcode = VTA_FINISH});
        double whole = time_stream(&s, false, e), alone = time_stream(&s, true, e), macs = 256e-9 * (double)s.products;
        ok = !s.bad && whole > 0 && alone > 0;
        if (ok)
            show_load(x, j, loads[i].name, names[level], macs / whole, macs / alone);
    }
    if (s.sim)
        vta_device_destroy(&s.device);
    return ok;
}

bool vta_bench(ask *x, vta_error *e)
{
    const bool json = ask_has(x, OPT_JSON);
    writer text;
    writer_init(&text, &x->c->mem);
    json_out j = json_out_begin(&text, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_array(&j, "loads");
    if (!json)
        w_fmt(&x->out, "%-22s %-8s %10s %10s\n", "G MAC/s on one thread", "level", "stream", "products");
    for (int level = VTA_SIM_SCALAR; level <= VTA_SIM_VNNI; level++) {
        if (!compiler_progress(x->c, "timing level", (uint32_t)level + 1, VTA_SIM_VNNI + 1))
            return false;
        if (!bench_level(x, &j, (vta_sim_level)level, e) && e->status != VTA_UNSUPPORTED)
            return false;
    }
    json_out_end(&j);
    json_out_end(&j);
    if (json)
        w_line(&x->out, "%s", text.data);
    return true;
}
