/* board.c: captured streams that are part of a program without a heap: a device behind registers, all memory static.
 * The registers are a stand-in that prints each stream as the device would fetch it, and writes nothing. Prints the
 * same on every machine. Then what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "vta_replay.h"

extern const vta_capture add_five, add_nine;

/* What the device sees: memory begins at FIRST there. */
enum { FIRST = 0x100000, SCRATCH = 0, IN = 4096, OUT = 8192, NEXT = 12288, BYTES = 16384 };
static union {
    char bytes[BYTES];
    uint64_t align;
} memory;
static uint32_t count, address, flushed;

static void print_stream(void)
{
    const vta_insn *insns = (const vta_insn *)(const void *)(memory.bytes + (address - FIRST));
    printf("run of %u at 0x%x\n", (unsigned)count, (unsigned)address);
    for (uint32_t i = 0; i < count; i++)
        printf("%08x%08x %08x%08x\n", (unsigned)(insns[i].word[0] >> 32), (unsigned)insns[i].word[0],
               (unsigned)(insns[i].word[1] >> 32), (unsigned)insns[i].word[1]);
}

static void write_register(void *user, uint32_t at, uint32_t value)
{
    (void)user;
    if (at == 0x43C00010)
        count = value;
    else if (at == 0x43C00018)
        address = value;
    else if (at == 0x43C00000 && value == 1)
        print_stream();
}

static uint32_t read_register(void *user, uint32_t at)
{
    (void)user;
    return at == 0x43C02018; /* done */
}

static void wait_a_while(void *user, uint32_t microseconds)
{
    (void)user;
    (void)microseconds;
}

static void flush(void *user, const vta_memory *m, size_t offset, size_t bytes)
{
    (void)user;
    (void)m;
    flushed += (uint32_t)(offset + bytes);
}

static bool reach(void *user, const void *host, size_t bytes, uint64_t *phys)
{
    const char *at = (const char *)host;
    (void)user;
    *phys = FIRST + (uint64_t)(at - memory.bytes);
    return at >= memory.bytes && bytes <= BYTES && at - memory.bytes <= (long)(BYTES - bytes);
}

static vta_memory part(const vta_device *d, size_t at, size_t bytes)
{
    vta_memory m = {NULL, 0, 0};
    vta_error e;
    if (d->driver->map(d->self, memory.bytes + at, bytes, &m, &e) != VTA_OK)
        puts(e.text);
    return m;
}

/* The second stream reads what the first one writes. */
static int run_both(vta_device *d, uint32_t patience)
{
    const vta_memory scratch = part(d, SCRATCH, vta_replay_bytes(&add_five)), in = part(d, IN, 256);
    const vta_memory first[2] = {in, part(d, OUT, 64)}, second[2] = {part(d, OUT, 256), part(d, NEXT, 64)};
    vta_error e;
    if (vta_replay(d, &add_five, &scratch, first, patience, &e) == VTA_OK &&
        vta_replay(d, &add_nine, &scratch, second, patience, &e) == VTA_OK)
        return 0;
    printf("%s: %s\n", vta_status_text(e.status), e.text);
    return 1;
}

int main(void)
{
    const vta_mmio io = {.write = write_register,
                         .read = read_register,
                         .sleep = wait_a_while,
                         .flush = flush,
                         .reach = reach};
    vta_mmio_state state;
    vta_device d;
    vta_memory m;
    vta_error e;
    if (vta_mmio_init(&state, &add_five.config, &io, &d, &e) != VTA_OK)
        return puts(e.text), 1;
    if (run_both(&d, 10) != 0 || run_both(&d, 0) != 1)
        return 1;
    printf("flushed %u\n", (unsigned)flushed);
    part(&d, BYTES - 64, 65);
    part(&d, 8, 64);
    if (d.driver->alloc(d.self, 64, true, &m, &e) != VTA_UNSUPPORTED)
        return 1;
    puts(e.text);
    vta_device_destroy(&d);
    return 0;
}
