/* fuzz_vta_runtime.c: any sequence of run-time calls with any arguments: nothing crashes, and whatever stream reaches
 * the device is one that it can run: instructions decode, transfers stay in one allocation and in the scratchpad,
 * kernels use micro-ops that were loaded, FINISH is last and waits for all tokens from load and store.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "vta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint32_t byte(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Mostly small numbers, now and then the edges of fields and types. */
static uint32_t number(input *in)
{
    static const uint32_t edges[] = {15, 16, 255, 2047, 2048, 16383, 16384, 65535, 65536, 70000, INT32_MAX, UINT32_MAX};
    uint32_t b = byte(in);
    return b < 192 ? b % 24 : b < 224 ? edges[b % 12] : byte(in) << 8 | byte(in);
}

#define REQUIRE(x)   \
    do {             \
        if (!(x))    \
            abort(); \
    } while (0)

/* --- the device: memory, and a judge of streams --- */

typedef struct judge {
    vta_dram *dram;
    vta_geometry g;
    uint8_t loaded[8192]; /* micro-ops there since the run began */
} judge;

static void judge_transfer(judge *j, const vta_fields *f)
{
    if (f->x_size == 0) {
        REQUIRE(f->y_size == 0);
        return;
    }
    uint64_t elem = j->g.elem_bytes[f->memory_type];
    uint64_t rows = (uint64_t)(f->y_pad_0 + f->y_size + f->y_pad_1),
             width = (uint64_t)(f->x_pad_0 + f->x_size + f->x_pad_1);
    REQUIRE((uint64_t)f->sram_base + rows * width <= j->g.depth[f->memory_type] && f->y_size > 0);
    for (int64_t y = 0; y < f->y_size; y++)
        REQUIRE(vta_dram_at(j->dram, (uint64_t)(f->dram_base + y * f->x_stride) * elem, (size_t)f->x_size * elem));
    if (f->opcode == VTA_LOAD && f->memory_type == VTA_MEM_UOP)
        memset(j->loaded + f->sram_base, 1, (size_t)f->x_size);
}

static vta_status judge_run(void *self, uint64_t phys, uint32_t count, uint32_t wait, vta_error *e)
{
    judge *j = (judge *)self;
    const vta_insn *insns = (const vta_insn *)vta_dram_at(j->dram, phys, (size_t)count * sizeof *insns);
    int64_t open_load = 0, open_store = 0;
    REQUIRE(insns && count > 0);
    memset(j->loaded, 0, sizeof j->loaded);
    for (uint32_t i = 0; i < count; i++) {
        vta_fields f;
        REQUIRE(vta_decode(&j->g, &insns[i], &f));
        REQUIRE((f.opcode == VTA_FINISH) == (i + 1 == count));
        enum vta_stage stage = vta_stage_of(&f);
        REQUIRE(stage != VTA_STAGE_LOAD || (!f.pop_prev_dep && !f.push_prev_dep));
        REQUIRE(stage != VTA_STAGE_STORE || (!f.pop_next_dep && !f.push_next_dep));
        open_load += (stage == VTA_STAGE_LOAD && f.push_next_dep) - (stage == VTA_STAGE_COMPUTE && f.pop_prev_dep);
        open_store += (stage == VTA_STAGE_STORE && f.push_prev_dep) - (stage == VTA_STAGE_COMPUTE && f.pop_next_dep);
        if (f.opcode == VTA_LOAD || f.opcode == VTA_STORE)
            judge_transfer(j, &f);
        else if (f.opcode != VTA_FINISH)
            for (int64_t u = f.uop_bgn; u < f.uop_end; u++)
                REQUIRE(u < j->g.depth[VTA_MEM_UOP] && j->loaded[u] && f.iter_in > 0 && f.iter_out > 0);
    }
    REQUIRE(open_load <= 0 && open_store <= 0);
    return wait == 7 ? vta_fail(e, VTA_TIMEOUT, "as asked") : VTA_OK;
}

static vta_status judge_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    (void)cached;
    return vta_dram_alloc(((judge *)self)->dram, bytes, out, e);
}

static void judge_free(void *self, const vta_memory *m)
{
    REQUIRE(vta_dram_release(((judge *)self)->dram, m, NULL) == VTA_OK);
}

static void judge_destroy(void *self)
{
    vta_dram_destroy(((judge *)self)->dram);
}

static void no_log(void *user, const char *text)
{
    *(size_t *)user += strlen(text);
}

/* --- the calls --- */

enum { HANDLES = 6 };

typedef struct player {
    vta_context *c;
    vta_device *d;
    input in;
    vta_buffer handles[HANDLES];
    uint64_t sites[2];
} player;

static int record(void *closure)
{
    player *p = (player *)closure;
    uint32_t loops = byte(&p->in) % 4, pushes = byte(&p->in) % 40, mode = byte(&p->in) % 9 / 4, dst = number(&p->in);
    uint32_t op = byte(&p->in) % 6, reset = byte(&p->in) % 8 == 0, imm = number(&p->in);
    for (uint32_t i = 0; i < loops; i++)
        vta_uop_loop_begin(number(&p->in), number(&p->in), number(&p->in), number(&p->in), NULL);
    for (uint32_t i = 0; i < pushes; i++)
        vta_uop_push(&(vta_uop){mode, reset, dst + i, number(&p->in), number(&p->in), op, 1, (int32_t)imm}, NULL);
    for (uint32_t i = 0; i < loops; i++)
        vta_uop_loop_end(NULL);
    return byte(&p->in) == 255;
}

static vta_buffer *handle(player *p)
{
    return &p->handles[byte(&p->in) % HANDLES];
}

static void transfer(player *p, bool is_load)
{
    vta_transfer t = {(enum vta_mem)(is_load ? byte(&p->in) % 7 : VTA_MEM_OUT),
                      number(&p->in),
                      number(&p->in),
                      number(&p->in),
                      number(&p->in),
                      number(&p->in),
                      0,
                      0,
                      0,
                      0};
    uint32_t pads = is_load ? byte(&p->in) : 0;
    t.x_pad_before = pads & 1 ? number(&p->in) : 0;
    t.y_pad_before = pads & 2 ? number(&p->in) : 0;
    t.x_pad_after = pads & 4 ? number(&p->in) : 0;
    t.y_pad_after = pads & 8 ? number(&p->in) : 0;
    if (is_load)
        vta_load(p->c, *handle(p), &t);
    else
        vta_store(p->c, *handle(p), &t);
}

/* Ends a capture and replays it where the buffers lie. */
static void replay(player *p)
{
    size_t bytes = vta_capture_bytes(p->c);
    void *memory = malloc(bytes ? bytes : 8);
    vta_capture k;
    vta_memory all[HANDLES + 1];
    uint32_t made = 0;
    if (memory && vta_capture_end(p->c, memory, bytes, &k) == VTA_OK && k.n_bindings <= HANDLES) {
        const vta_driver *driver = p->d->driver;
        for (vta_status s = VTA_OK; made <= k.n_bindings && s == VTA_OK; made += s == VTA_OK)
            s = driver->alloc(p->d->self, made ? k.binding_bytes[made - 1] : vta_replay_bytes(&k), true, &all[made],
                              NULL);
        if (made == k.n_bindings + 1)
            REQUIRE(vta_replay(p->d, &k, &all[0], &all[1], 10, NULL) == VTA_OK);
        while (made > 0)
            driver->free(p->d->self, &all[--made]);
    }
    free(memory);
}

static void one_call(player *p)
{
    vta_buffer *h = handle(p);
    uint8_t bytes[64] = {0};
    uint32_t n = number(&p->in), what = byte(&p->in) % 20;
    const void *site = n % 3 ? &p->sites[n % 2] : NULL;
    switch (what) {
    case 0:
    case 1: vta_buffer_alloc(p->c, n % 100000, h); break;
    case 2: vta_buffer_free(p->c, *h); break;
    case 3:
    case 4: transfer(p, true); break;
    case 5: transfer(p, false); break;
    case 6:
    case 7: vta_push(p->c, VTA_MODE_GEMM, site, record, p, site ? 0 : sizeof *p); break;
    case 8:
    case 9: vta_push(p->c, VTA_MODE_ALU, site, record, p, 0); break;
    case 10: vta_dep_push(p->c, (enum vta_stage)(n % 4), (enum vta_stage)(n / 4 % 4)); break;
    case 11: vta_dep_pop(p->c, (enum vta_stage)(n % 4), (enum vta_stage)(n / 4 % 4)); break;
    case 12: vta_synchronize(p->c, n); break;
    case 13: vta_capture_begin(p->c); break;
    case 14: replay(p); break;
    case 15: vta_context_debug(p->c, n & 63); break;
    case 16: vta_discard(p->c); break;
    case 17: vta_buffer_write(p->c, *h, n, bytes, byte(&p->in) % sizeof bytes); break;
    case 18: vta_buffer_copy(p->c, *h, n, *handle(p), number(&p->in), number(&p->in)); break;
    default: vta_read_barrier(p->c, *h, n, number(&p->in), number(&p->in)); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const presets[] = {"sim", "2x16_i8w8a32_15_15_18_17", "4x8_i8w8a32_15_16_16_18",
                                          "1x16_i8w8a32_9_10_12_12"};
    static const vta_driver driver = {
        .name = "judge", .alloc = judge_alloc, .free = judge_free, .run = judge_run, .destroy = judge_destroy};
    judge j = {.dram = vta_dram_create(UINT64_C(1) << 26)};
    vta_device d = {.driver = &driver, .self = &j};
    player p = {.d = &d, .in = {data, data + size}};
    size_t logged = 0;
    const vta_context_options o = {256, 300, 4, 4, no_log, &logged, 0, (vta_left)(size % 3)};
    REQUIRE(vta_config_preset(presets[byte(&p.in) % 4], &d.config, NULL) == VTA_OK);
    REQUIRE(vta_config_check(&d.config, &d.geometry, NULL) == VTA_OK);
    j.g = d.geometry;
    size_t bytes = vta_context_bytes(&d, &o);
    void *memory = aligned_alloc(64, bytes);
    REQUIRE(vta_context_init(memory, bytes, &d, &o, &p.c, NULL) == VTA_OK);
    for (int calls = 0; p.in.at < p.in.end && calls < 2000; calls++) {
        one_call(&p);
        vta_context_last_error(p.c, NULL);
    }
    vta_context_destroy(p.c);
    free(memory);
    vta_device_destroy(&d);
    return 0;
}
