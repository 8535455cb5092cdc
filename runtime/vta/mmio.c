/* mmio.c: a real device behind memory-mapped control registers. Two published register maps: that of the HLS design
 * (fetch, load, compute and store units with a page of registers each) and that of the Chisel design's one control
 * block (de10nano). Registers and contiguous memory come from the board's support code.
 *
 * The device's `done` flag of the HLS design is cleared only by a later compute instruction, so that a poll right after
 * the start could see the run before; it is cleared before the start, and the first poll waits. No allocator.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_replay.h"

/* HLS: offsets in a unit's page; units are a page apart. */
enum { UNIT_BYTES = 0x1000, FETCH = 0, LOAD = UNIT_BYTES, COMPUTE = 2 * UNIT_BYTES, STORE = 3 * UNIT_BYTES };
enum {
    CONTROL = 0x00,
    FETCH_COUNT = 0x10,
    FETCH_ADDRESS = 0x18,
    LOAD_INP = 0x10,
    LOAD_WGT = 0x18,
    COMPUTE_DONE_WRITE = 0x10,
    COMPUTE_DONE_READ = 0x18,
    COMPUTE_UOP = 0x20,
    COMPUTE_ACC = 0x28,
    STORE_OUT = 0x10
};
enum { START = 0x01, START_AGAIN = 0x81 }; /* the latter restarts by itself */

/* Chisel: offsets in the control block. */
enum {
    BLOCK_CONTROL = 0x00,
    BLOCK_COUNT = 0x08,
    BLOCK_ADDRESS = 0x0c,
    BLOCK_FIRST_BASE = 0x10,
    BLOCK_LAST_BASE = 0x20
};
enum { BLOCK_LAUNCH = 0x1, BLOCK_FINISHED = 0x2 };

static void put(const vta_mmio_state *m, uint32_t offset, uint32_t value)
{
    m->io.write(m->io.user, m->base + offset, value);
}

static uint32_t get(const vta_mmio_state *m, uint32_t offset)
{
    return m->io.read(m->io.user, m->base + offset);
}

/* Addresses in instructions are absolute, so every base register holds 0. */
static void start_units(const vta_mmio_state *m, uint32_t phys, uint32_t count)
{
    static const uint32_t bases[] = {LOAD + LOAD_INP, LOAD + LOAD_WGT, COMPUTE + COMPUTE_UOP, COMPUTE + COMPUTE_ACC,
                                     STORE + STORE_OUT};
    put(m, FETCH + FETCH_COUNT, count);
    put(m, FETCH + FETCH_ADDRESS, phys);
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        put(m, bases[i], 0);
    put(m, COMPUTE + COMPUTE_DONE_WRITE, 0);
    put(m, LOAD + CONTROL, START_AGAIN);
    put(m, COMPUTE + CONTROL, START_AGAIN);
    put(m, STORE + CONTROL, START_AGAIN);
    put(m, FETCH + CONTROL, START);
}

static void start_block(const vta_mmio_state *m, uint32_t phys, uint32_t count)
{
    put(m, BLOCK_COUNT, count);
    put(m, BLOCK_ADDRESS, phys);
    for (uint32_t offset = BLOCK_FIRST_BASE; offset <= BLOCK_LAST_BASE; offset += 4)
        put(m, offset, 0);
    put(m, BLOCK_CONTROL, BLOCK_LAUNCH);
}

static bool is_done(const vta_mmio_state *m)
{
    return m->one_block ? (get(m, BLOCK_CONTROL) & BLOCK_FINISHED) != 0 : get(m, COMPUTE + COMPUTE_DONE_READ) == 1;
}

/* One poll a microsecond, `wait_cycles` of them. */
static vta_status mmio_run(void *self, uint64_t phys, uint32_t count, uint32_t wait_cycles, vta_error *e)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    if (phys > UINT32_MAX - (uint64_t)count * VTA_INSN_BYTES)
        return vta_fail(e, VTA_BAD_ARGUMENT, "run: the stream lies at 0x%llx; the address register has 32 bits",
                        (unsigned long long)phys);
    if (m->one_block)
        start_block(m, (uint32_t)phys, count);
    else
        start_units(m, (uint32_t)phys, count);
    for (uint32_t polls = 0; polls < wait_cycles; polls++) {
        m->io.sleep(m->io.user, 1);
        if (is_done(m))
            return VTA_OK;
    }
    return vta_fail(e, VTA_TIMEOUT, "run: the device did not finish %u instructions within %u us",
                    (unsigned)count, (unsigned)wait_cycles);
}

static vta_status mmio_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    if (!m->io.alloc)
        return vta_fail(e, VTA_UNSUPPORTED,
                        "alloc: this board has no memory to give; use memory of the program's own");
    vta_status s = m->io.alloc(m->io.user, bytes, cached, out, e);
    if (s != VTA_OK || (out->phys != 0 && out->phys % VTA_PAGE_BYTES == 0 && out->bytes >= bytes))
        return s;
    vta_memory given = *out;
    m->io.free(m->io.user, out);
    return vta_fail(e, VTA_NO_MEMORY,
                    "alloc: the board gave %zu bytes at 0x%llx; %zu bytes at a multiple of %u are needed", given.bytes,
                    (unsigned long long)given.phys, bytes, VTA_PAGE_BYTES);
}

static vta_status mmio_map(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    uint64_t phys = 0;
    if (!m->io.reach || !m->io.reach(m->io.user, host, bytes, &phys))
        return vta_fail(e, VTA_UNSUPPORTED, "map: the device does not reach these %zu bytes of the CPU's memory",
                        bytes);
    if (phys == 0 || phys % m->most_element != 0)
        return vta_fail(e, VTA_UNSUPPORTED, "map: the memory lies at 0x%llx for the device, at no multiple of %u",
                        (unsigned long long)phys, (unsigned)m->most_element);
    *out = (vta_memory){host, phys, bytes};
    return VTA_OK;
}

static void mmio_unmap(void *self, const vta_memory *memory)
{
    (void)self;
    (void)memory;
}

static void mmio_free(void *self, const vta_memory *memory)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    m->io.free(m->io.user, memory);
}

static void mmio_flush(void *self, const vta_memory *memory, size_t offset, size_t bytes)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    if (m->io.flush)
        m->io.flush(m->io.user, memory, offset, bytes);
}

static void mmio_invalidate(void *self, const vta_memory *memory, size_t offset, size_t bytes)
{
    const vta_mmio_state *m = (const vta_mmio_state *)self;
    if (m->io.invalidate)
        m->io.invalidate(m->io.user, memory, offset, bytes);
}

static void mmio_destroy(void *self)
{
    (void)self;
}

vta_status vta_mmio_init(vta_mmio_state *state, const vta_config *c, const vta_mmio *io, vta_device *out, vta_error *e)
{
    static const vta_driver driver = {.name = "mmio",
                                      .alloc = mmio_alloc,
                                      .free = mmio_free,
                                      .map = mmio_map,
                                      .unmap = mmio_unmap,
                                      .flush = mmio_flush,
                                      .invalidate = mmio_invalidate,
                                      .run = mmio_run,
                                      .destroy = mmio_destroy};
    vta_geometry g;
    vta_target target;
    memset(out, 0, sizeof *out);
    vta_status s = vta_config_check(c, &g, e);
    if (s != VTA_OK)
        return s;
    if (!vta_target_find(c->target, &target))
        return vta_fail(e, VTA_BAD_CONFIG, "mmio: no target '%s' is known, so neither are its registers", c->target);
    if (!io->write || !io->read || !io->sleep || !io->alloc != !io->free)
        return vta_fail(e, VTA_BAD_ARGUMENT, "mmio: write, read and sleep must be given; alloc and free both or none");
    *state = (vta_mmio_state){*io, target.register_base, 1, strcmp(target.name, "de10nano") == 0};
    for (int i = 0; i < VTA_MEM_COUNT; i++)
        if (g.elem_bytes[i] > state->most_element)
            state->most_element = g.elem_bytes[i];
    *out = (vta_device){&driver, state, *c, g};
    return VTA_OK;
}
