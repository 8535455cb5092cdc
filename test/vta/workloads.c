/* workloads.c: streams for tests; workloads.h says which.
 * SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>

/* --- recorder ----------------------------------------------------------------------------------------------------- */

static void *grown(void *p, uint32_t *capacity, size_t element)
{
    *capacity = *capacity ? 2 * *capacity : 1024;
    p = realloc(p, *capacity * element);
    if (!p)
        abort();
    return p;
}

static _Noreturn void does_not_fit(const vta_field_error *e)
{
    fprintf(stderr, "workloads: %s = %lld does not lie in %lld .. %lld\n", e->field, (long long)e->value,
            (long long)e->least, (long long)e->most);
    abort();
}

void stream_init(stream *s, const vta_geometry *g, uint32_t uop_base)
{
    *s = (stream){.geometry = g, .uop_base = uop_base};
}

void stream_release(stream *s)
{
    free(s->insns);
    free(s->uops);
    *s = (stream){0};
}

static bool does_nothing(const vta_fields *f)
{
    return (f->opcode == VTA_LOAD || f->opcode == VTA_STORE) && f->x_size == 0;
}

void stream_emit(stream *s, const vta_fields *fields)
{
    vta_field_error e;
    vta_fields f = *fields;
    enum vta_stage stage = vta_stage_of(&f);
    f.pop_prev_dep |= s->pop_prev[stage];
    f.pop_next_dep |= s->pop_next[stage];
    s->pop_prev[stage] = s->pop_next[stage] = false;
    if (s->n_insns == s->insn_capacity)
        s->insns = grown(s->insns, &s->insn_capacity, sizeof *s->insns);
    if (!vta_encode(s->geometry, &f, &s->insns[s->n_insns++], &e))
        does_not_fit(&e);
    s->last = f.opcode == VTA_LOAD && does_nothing(&f) ? VTA_STAGE_NONE : stage;
}

static void emit_nothing(stream *s, enum vta_stage stage, bool push_prev, bool push_next)
{
    vta_fields f = {.opcode = stage == VTA_STAGE_STORE ? VTA_STORE : VTA_LOAD,
                    .memory_type = stage == VTA_STAGE_LOAD ? VTA_MEM_INP : VTA_MEM_UOP,
                    .push_prev_dep = push_prev,
                    .push_next_dep = push_next};
    if (stage == VTA_STAGE_STORE)
        f.memory_type = VTA_MEM_OUT;
    stream_emit(s, &f);
}

static void commit_pops(stream *s, enum vta_stage stage)
{
    if (s->pop_prev[stage] || s->pop_next[stage])
        emit_nothing(s, stage, false, false);
}

void stream_push(stream *s, enum vta_stage from, enum vta_stage to)
{
    commit_pops(s, from);
    bool next = from < to;
    if (s->last == from && s->n_insns) {
        vta_insn *last = &s->insns[s->n_insns - 1];
        vta_fields f;
        vta_field_error e;
        vta_decode(s->geometry, last, &f);
        int64_t *flag = next ? &f.push_next_dep : &f.push_prev_dep;
        if (!*flag) {
            *flag = 1;
            if (!vta_encode(s->geometry, &f, last, &e))
                does_not_fit(&e);
            return;
        }
    }
    emit_nothing(s, from, !next, next);
}

void stream_pop(stream *s, enum vta_stage from, enum vta_stage to)
{
    bool *pending = from < to ? &s->pop_prev[to] : &s->pop_next[to];
    if (*pending)
        commit_pops(s, to);
    *pending = true;
}

void stream_finish(stream *s)
{
    stream_push(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
    stream_push(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
    stream_pop(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
    stream_pop(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
    commit_pops(s, VTA_STAGE_COMPUTE);
    stream_emit(s, &(vta_fields){.opcode = VTA_FINISH});
}

uint32_t stream_uops(stream *s, const vta_uop_fields *uops, uint32_t count)
{
    uint32_t first = s->n_uops;
    vta_field_error e;
    for (uint32_t i = 0; i < count; i++) {
        if (s->n_uops == s->uop_capacity)
            s->uops = grown(s->uops, &s->uop_capacity, sizeof *s->uops);
        if (!vta_uop_encode(s->geometry, &uops[i], &s->uops[s->n_uops++], &e))
            does_not_fit(&e);
    }
    stream_emit(s, &(vta_fields){.opcode = VTA_LOAD,
                                 .memory_type = VTA_MEM_UOP,
                                 .sram_base = first,
                                 .dram_base = s->uop_base + first,
                                 .x_size = count,
                                 .y_size = 1,
                                 .x_stride = count});
    return first;
}

/* --- product ------------------------------------------------------------------------------------------------------ */

static vta_fields transfer(int64_t opcode, enum vta_mem m, int64_t at, int64_t columns, int64_t rows, int64_t stride)
{
    return (vta_fields){
        .opcode = opcode, .memory_type = m, .dram_base = at, .y_size = rows, .x_size = columns, .x_stride = stride};
}

static void emit_column(stream *s, uint32_t m, bool reset, uint32_t uop)
{
    stream_emit(s, &(vta_fields){.opcode = VTA_GEMM,
                                 .reset_reg = reset,
                                 .uop_bgn = uop,
                                 .uop_end = uop + 1,
                                 .iter_out = m,
                                 .iter_in = 1,
                                 .dst_factor_out = 1,
                                 .wgt_factor_out = !reset});
    stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
}

void product_emit(stream *s, const product_task *t)
{
    const vta_uop_fields zero = {0, 0, 0};
    uint32_t uop = 0;
    emit_column(s, t->m, true, stream_uops(s, &zero, 1));
    for (uint32_t k = 0; k < t->n; k++) {
        stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
        vta_fields inp = transfer(VTA_LOAD, VTA_MEM_INP, t->data + k, 1, 1, 1);
        vta_fields wgt = transfer(VTA_LOAD, VTA_MEM_WGT, t->weights + k, 1, t->m, t->n);
        stream_emit(s, &inp);
        stream_emit(s, &wgt);
        stream_push(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
        stream_pop(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
        uop = k ? uop : stream_uops(s, &zero, 1);
        emit_column(s, t->m, false, uop);
    }
    stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    vta_fields out = transfer(VTA_STORE, VTA_MEM_OUT, t->out, t->m, 1, t->m);
    stream_emit(s, &out);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* The best published schedules for 1x16_i8w8a32_15_15_18_17 on a Pynq (tophub, vta_v0.10.log). */
const conv_layer resnet18_layers[RESNET18_LAYERS] = {
    {"C2", 56, 64, 64, 3, 1, 1, {7, 8}, {1, 56}, {4, 1}, {2, 2}, 2, 1, 5.6993},
    {"C3", 56, 64, 128, 3, 1, 2, {4, 7}, {1, 28}, {4, 1}, {2, 4}, 2, 1, 2.9655},
    {"C4", 56, 64, 128, 1, 0, 2, {4, 7}, {1, 28}, {4, 1}, {2, 4}, 1, 2, 1.3487},
    {"C5", 28, 128, 128, 3, 1, 1, {2, 14}, {1, 28}, {8, 1}, {4, 2}, 1, 2, 5.1834},
    {"C6", 28, 128, 256, 3, 1, 2, {1, 14}, {1, 14}, {8, 1}, {4, 4}, 2, 1, 2.6691},
    {"C7", 28, 128, 256, 1, 0, 2, {2, 7}, {1, 14}, {8, 1}, {2, 8}, 2, 1, 1.0288},
    {"C8", 14, 256, 256, 3, 1, 1, {1, 14}, {1, 14}, {16, 1}, {4, 4}, 2, 1, 4.9336},
    {"C9", 14, 256, 512, 3, 1, 2, {1, 7}, {1, 7}, {16, 1}, {2, 16}, 2, 1, 3.9937},
    {"C10", 14, 256, 512, 1, 0, 2, {1, 7}, {1, 7}, {16, 1}, {2, 16}, 2, 1, 1.0809},
    {"C11", 7, 512, 512, 3, 1, 1, {1, 7}, {1, 7}, {32, 1}, {2, 16}, 2, 1, 7.3481},
};

const conv_layer lstm_dense1 = {"dense", 1, 256, 128, 1, 0, 1, {1, 1}, {1, 1}, {1, 16}, {8, 1}, 1, 1, 0.1408};

uint32_t conv_extent(const conv_layer *l)
{
    return (l->size + 2 * l->pad - l->kernel) / l->stride + 1;
}

/* --- convolution -------------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 2, MOST_UOPS = 4096 };

/* Kernels are recorded once per virtual thread and stay in the micro-op memory. */
enum site { SITE_RESET, SITE_GEMM, SITE_BIAS, SITE_IMMEDIATE, SITE_RESIDUAL, SITES = SITE_RESIDUAL + 256 };

typedef struct conv {
    stream *stream;
    const conv_task *task;
    const conv_layer *layer;
    uint32_t out_size, threads;
    uint32_t in_blocks, out_blocks;         /* channel blocks of the whole layer */
    uint32_t h, w, ci, co, in_h, in_w;      /* of a tile */
    uint32_t acc, bias, residual, inp, wgt; /* elements of one thread's part of each scratchpad */
    uint32_t kernel[MOST_THREADS][SITES];   /* index + 1 of the first micro-op; 0: not recorded */
} conv;

/* An output tile: first row, column and channel block. */
typedef struct tile {
    uint32_t h, w, co;
} tile;

static uint32_t acc_base(const conv *c, uint32_t thread)
{
    return thread * c->acc;
}

static uint32_t bias_base(const conv *c, uint32_t thread)
{
    return c->threads * c->acc + thread * c->bias;
}

static uint32_t residual_base(const conv *c, uint32_t thread)
{
    return c->threads * (c->acc + c->bias) + thread * c->residual;
}

static uint32_t record(conv *c, uint32_t thread, uint32_t site, const vta_uop_fields *uops, uint32_t count)
{
    uint32_t *at = &c->kernel[thread][site];
    if (!*at)
        *at = stream_uops(c->stream, uops, count) + 1;
    return *at - 1;
}

static void emit_reset(conv *c, uint32_t thread)
{
    vta_uop_fields uop = {.dst = acc_base(c, thread)};
    uint32_t at = record(c, thread, SITE_RESET, &uop, 1);
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_GEMM,
                                         .reset_reg = 1,
                                         .uop_bgn = at,
                                         .uop_end = at + 1,
                                         .iter_out = c->acc,
                                         .iter_in = 1,
                                         .dst_factor_out = 1});
}

/* Input rows with their border: what lies outside of the image is padding that the load unit writes. */
static void emit_load_data(conv *c, uint32_t thread, const tile *t, uint32_t block)
{
    const conv_layer *l = c->layer;
    int64_t y = (int64_t)t->h * l->stride - l->pad, x = (int64_t)t->w * l->stride - l->pad;
    int64_t top = y < 0 ? -y : 0, left = x < 0 ? -x : 0;
    int64_t bottom = y + c->in_h > l->size ? y + c->in_h - l->size : 0;
    int64_t right = x + c->in_w > l->size ? x + c->in_w - l->size : 0;
    for (uint32_t i = 0; i < c->ci; i++) {
        int64_t image = (int64_t)(block + i) * l->size * l->size;
        stream_emit(c->stream, &(vta_fields){.opcode = VTA_LOAD,
                                             .memory_type = VTA_MEM_INP,
                                             .sram_base = thread * c->inp + i * c->in_h * c->in_w,
                                             .dram_base = c->task->data + image + (y + top) * l->size + x + left,
                                             .y_size = c->in_h - top - bottom,
                                             .x_size = c->in_w - left - right,
                                             .x_stride = l->size,
                                             .y_pad_0 = top,
                                             .y_pad_1 = bottom,
                                             .x_pad_0 = left,
                                             .x_pad_1 = right});
    }
}

static void emit_load_weights(conv *c, uint32_t thread, const tile *t, uint32_t block)
{
    uint32_t taps = c->layer->kernel * c->layer->kernel;
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_LOAD,
                                         .memory_type = VTA_MEM_WGT,
                                         .sram_base = thread * c->wgt,
                                         .dram_base = c->task->weights + (t->co * c->in_blocks + block) * taps,
                                         .y_size = c->co,
                                         .x_size = c->ci * taps,
                                         .x_stride = c->in_blocks * taps});
}

/* Loops over columns and kernel columns run in the instruction; the others are micro-ops. */
static void emit_gemm(conv *c, uint32_t thread)
{
    static vta_uop_fields uops[MOST_UOPS];
    const conv_layer *l = c->layer;
    uint32_t n = 0, at = c->kernel[thread][SITE_GEMM];
    for (uint32_t ci = 0; !at && ci < c->ci; ci++)
        for (uint32_t dy = 0; dy < l->kernel; dy++)
            for (uint32_t co = 0; co < c->co; co++)
                for (uint32_t y = 0; y < c->h; y++) {
                    if (n == MOST_UOPS)
                        abort();
                    uops[n++] = (vta_uop_fields){
                        .dst = acc_base(c, thread) + (co * c->h + y) * c->w,
                        .src = thread * c->inp + (ci * c->in_h + y * l->stride + dy) * c->in_w,
                        .wgt = thread * c->wgt + ((co * c->ci + ci) * l->kernel + dy) * l->kernel,
                    };
                }
    at = record(c, thread, SITE_GEMM, uops, n);
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_GEMM,
                                         .uop_bgn = at,
                                         .uop_end = at + c->ci * l->kernel * c->co * c->h,
                                         .iter_out = c->w,
                                         .iter_in = l->kernel,
                                         .dst_factor_out = 1,
                                         .src_factor_out = l->stride,
                                         .src_factor_in = 1,
                                         .wgt_factor_in = 1});
}

static void emit_immediate(conv *c, uint32_t thread, int64_t operation, int64_t immediate)
{
    vta_uop_fields uop = {.dst = acc_base(c, thread), .src = acc_base(c, thread)};
    uint32_t at = record(c, thread, SITE_IMMEDIATE, &uop, 1);
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_ALU,
                                         .uop_bgn = at,
                                         .uop_end = at + 1,
                                         .iter_out = c->acc,
                                         .iter_in = 1,
                                         .dst_factor_out = 1,
                                         .src_factor_out = 1,
                                         .alu_opcode = operation,
                                         .use_imm = 1,
                                         .imm = immediate});
}

static void emit_bias(conv *c, uint32_t thread, const tile *t)
{
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_LOAD,
                                         .memory_type = VTA_MEM_ACC,
                                         .sram_base = bias_base(c, thread),
                                         .dram_base = c->task->bias + t->co,
                                         .y_size = 1,
                                         .x_size = c->co,
                                         .x_stride = c->co});
    vta_uop_fields uop = {.dst = acc_base(c, thread), .src = bias_base(c, thread)};
    uint32_t at = record(c, thread, SITE_BIAS, &uop, 1);
    stream_emit(c->stream, &(vta_fields){.opcode = VTA_ALU,
                                         .uop_bgn = at,
                                         .uop_end = at + 1,
                                         .iter_out = c->co,
                                         .iter_in = c->h * c->w,
                                         .dst_factor_out = c->h * c->w,
                                         .dst_factor_in = 1,
                                         .src_factor_out = 1,
                                         .alu_opcode = VTA_ALU_ADD});
}

/* The other tensor comes in bands of rows of a channel block, since a whole tile of it does not fit beside the sums. */
static void emit_residual(conv *c, uint32_t thread, const tile *t)
{
    uint32_t most = c->residual / c->w, site = SITE_RESIDUAL;
    for (uint32_t co = 0; co < c->co; co++) {
        for (uint32_t y = 0; y < c->h; y += most, site++) {
            uint32_t rows = c->h - y < most ? c->h - y : most;
            uint32_t from = ((t->co + co) * c->out_size + t->h + y) * c->out_size + t->w;
            if (site == SITES)
                abort();
            stream_emit(c->stream, &(vta_fields){.opcode = VTA_LOAD,
                                                 .memory_type = VTA_MEM_ACC,
                                                 .sram_base = residual_base(c, thread),
                                                 .dram_base = c->task->residual + from,
                                                 .y_size = rows,
                                                 .x_size = c->w,
                                                 .x_stride = c->out_size});
            vta_uop_fields uop = {.dst = acc_base(c, thread) + (co * c->h + y) * c->w, .src = residual_base(c, thread)};
            uint32_t at = record(c, thread, site, &uop, 1);
            stream_emit(c->stream, &(vta_fields){.opcode = VTA_ALU,
                                                 .uop_bgn = at,
                                                 .uop_end = at + 1,
                                                 .iter_out = rows * c->w,
                                                 .iter_in = 1,
                                                 .dst_factor_out = 1,
                                                 .src_factor_out = 1,
                                                 .alu_opcode = VTA_ALU_ADD});
        }
    }
}

static void emit_epilogue(conv *c, uint32_t thread, const tile *t)
{
    const conv_task *task = c->task;
    if (task->epilogue & EPILOGUE_BIAS)
        emit_bias(c, thread, t);
    if (task->epilogue & EPILOGUE_ROUND)
        emit_immediate(c, thread, VTA_ALU_ADD, (int64_t)1 << (task->shift - 1));
    if (task->epilogue & EPILOGUE_SHIFT)
        emit_immediate(c, thread, VTA_ALU_SHR, task->shift);
    if (task->epilogue & EPILOGUE_RESIDUAL)
        emit_residual(c, thread, t);
    if (task->epilogue & EPILOGUE_CLIP) {
        emit_immediate(c, thread, VTA_ALU_MIN, task->most);
        emit_immediate(c, thread, VTA_ALU_MAX, task->least);
    }
}

/* One store where rows of the tile are rows of the tensor, else one per channel block. */
static void emit_store(conv *c, uint32_t thread, const tile *t)
{
    bool whole_rows = c->w == c->out_size;
    uint32_t plane = c->out_size * c->out_size;
    for (uint32_t co = 0; co < (whole_rows ? 1 : c->co); co++)
        stream_emit(c->stream,
                    &(vta_fields){.opcode = VTA_STORE,
                                  .memory_type = VTA_MEM_OUT,
                                  .sram_base = acc_base(c, thread) + co * c->h * c->w,
                                  .dram_base = c->task->out + (t->co + co) * plane + t->h * c->out_size + t->w,
                                  .y_size = whole_rows ? c->co : c->h,
                                  .x_size = whole_rows ? c->h * c->w : c->w,
                                  .x_stride = whole_rows ? plane : c->out_size});
}

/* One tile per virtual thread. The threads' steps alternate, so that a load of one goes with a GEMM of the other. */
static void emit_tiles(conv *c, const tile *tiles)
{
    stream *s = c->stream;
    const uint32_t n = c->threads;
    for (uint32_t i = 0; i < n; i++) {
        stream_pop(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
        emit_reset(c, i);
        stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    }
    for (uint32_t block = 0; block < c->in_blocks; block += c->ci) {
        for (uint32_t i = 0; i < n; i++) {
            stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
            emit_load_data(c, i, &tiles[i], block);
            emit_load_weights(c, i, &tiles[i], block);
            stream_push(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
        }
        for (uint32_t i = 0; i < n; i++) {
            stream_pop(s, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
            emit_gemm(c, i);
            stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    for (uint32_t i = 0; i < n; i++) {
        emit_epilogue(c, i, &tiles[i]);
        stream_push(s, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    }
    for (uint32_t i = 0; i < n; i++) {
        stream_pop(s, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
        emit_store(c, i, &tiles[i]);
        stream_push(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
    }
}

static conv conv_plan(stream *s, const conv_task *t)
{
    const conv_layer *l = t->layer;
    const vta_geometry *g = s->geometry;
    conv c = {.stream = s, .task = t, .layer = l, .out_size = conv_extent(l)};
    c.threads = l->oc_threads * l->h_threads;
    c.in_blocks = l->in_channels / g->block_in;
    c.out_blocks = l->out_channels / g->block_out;
    c.h = l->tile_h[1], c.w = l->tile_w[1], c.ci = l->tile_ci[1], c.co = l->tile_co[1];
    c.in_h = (c.h - 1) * l->stride + l->kernel;
    c.in_w = (c.w - 1) * l->stride + l->kernel;
    c.acc = c.co * c.h * c.w;
    c.bias = c.co;
    c.residual = (g->depth[VTA_MEM_ACC] - c.threads * (c.acc + c.bias)) / c.threads;
    c.inp = c.ci * c.in_h * c.in_w;
    c.wgt = c.co * c.ci * l->kernel * l->kernel;
    if (c.threads > MOST_THREADS || (t->epilogue & EPILOGUE_RESIDUAL && c.residual < c.w) ||
        c.threads * (c.acc + c.bias) > g->depth[VTA_MEM_ACC])
        abort();
    return c;
}

void conv_emit(stream *s, const conv_task *t)
{
    conv c = conv_plan(s, t);
    const conv_layer *l = t->layer;
    for (uint32_t i = 0; i < c.threads; i++)
        stream_push(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
    for (uint32_t h = 0; h < l->tile_h[0]; h += l->h_threads) {
        for (uint32_t co = 0; co < l->tile_co[0]; co += l->oc_threads) {
            for (uint32_t w = 0; w < l->tile_w[0]; w++) {
                tile tiles[MOST_THREADS];
                for (uint32_t i = 0; i < c.threads; i++)
                    tiles[i] = (tile){.h = (h + (l->h_threads > 1 ? i : 0)) * c.h,
                                      .w = w * c.w,
                                      .co = (co + (l->oc_threads > 1 ? i : 0)) * c.co};
                emit_tiles(&c, tiles);
            }
        }
    }
    for (uint32_t i = 0; i < c.threads; i++)
        stream_pop(s, VTA_STAGE_STORE, VTA_STAGE_COMPUTE);
}
