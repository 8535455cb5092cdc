/* test_mmio.c: the driver of a memory-mapped device against a register file that records what it is asked, and that
 * runs streams on the functional simulator. Both register maps; the done flag left over by an earlier run; time-out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

enum { MOST_WRITES = 64 };

/* A device seen through its registers. */
typedef struct chip {
    vta_sim *sim;
    uint32_t base;
    bool one_block, dead;
    uint32_t count, address, polls, polls_until_done, sleeps;
    uint32_t done;
    struct {
        uint32_t offset, value;
    } writes[MOST_WRITES];
    uint32_t n_writes, flushes, invalidates;
    size_t offset, bytes; /* of the last cache maintenance */
    uint64_t phys_shift;
} chip;

static void start(chip *c)
{
    const vta_insn *insns = (const vta_insn *)vta_dram_at(vta_sim_dram(c->sim), c->address, c->count * 16u);
    vta_error e = {VTA_OK, ""};
    assert_non_null(insns);
    c->polls = 0;
    if (!c->dead && vta_sim_run(c->sim, insns, c->count, &e) != VTA_OK)
        fail_msg("%s", e.text);
}

static void chip_write(void *user, uint32_t address, uint32_t value)
{
    chip *c = (chip *)user;
    uint32_t offset = address - c->base;
    assert_true(c->n_writes < MOST_WRITES);
    c->writes[c->n_writes].offset = offset;
    c->writes[c->n_writes++].value = value;
    if (offset == (c->one_block ? 0x08 : 0x10))
        c->count = value;
    else if (offset == (c->one_block ? 0x0c : 0x18))
        c->address = value;
    else if (!c->one_block && offset == 0x2010)
        c->done = value;
    else if (offset == 0 && value == 1)
        start(c);
}

static uint32_t chip_read(void *user, uint32_t address)
{
    chip *c = (chip *)user;
    uint32_t offset = address - c->base;
    assert_int_equal(offset, c->one_block ? 0x00 : 0x2018);
    if (!c->dead && ++c->polls >= c->polls_until_done)
        c->done = 1;
    return c->done ? (c->one_block ? 2 : 1) : 0;
}

static void chip_sleep(void *user, uint32_t microseconds)
{
    ((chip *)user)->sleeps += microseconds;
}

static vta_status chip_alloc(void *user, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    chip *c = (chip *)user;
    (void)cached;
    vta_status s = vta_dram_alloc(vta_sim_dram(c->sim), bytes, out, e);
    out->phys += c->phys_shift;
    return s;
}

static void chip_free(void *user, const vta_memory *m)
{
    chip *c = (chip *)user;
    vta_memory real = *m;
    real.phys -= c->phys_shift;
    assert_int_equal(vta_dram_release(vta_sim_dram(c->sim), &real, NULL), VTA_OK);
}

static void chip_flush(void *user, const vta_memory *m, size_t offset, size_t bytes)
{
    chip *c = (chip *)user;
    assert_true(offset + bytes <= m->bytes);
    c->flushes++;
    c->offset = offset;
    c->bytes = bytes;
}

static void chip_invalidate(void *user, const vta_memory *m, size_t offset, size_t bytes)
{
    chip *c = (chip *)user;
    assert_true(offset + bytes <= m->bytes);
    c->invalidates++;
    c->offset = offset;
    c->bytes = bytes;
}

static void open_chip(chip *c, rig *b, const char *target)
{
    const vta_mmio io = {c, chip_write, chip_read, chip_sleep, chip_alloc, chip_free, chip_flush,
                         chip_invalidate, NULL};
    const vta_sim_options so = {.seed = 1};
    vta_config config;
    vta_target t = {0};
    vta_error e = {VTA_OK, ""};
    memset(c, 0, sizeof *c);
    assert_int_equal(vta_config_preset(target, &config, &e), VTA_OK);
    assert_true(vta_target_find(target, &t));
    c->base = t.register_base;
    c->one_block = strcmp(target, "de10nano") == 0;
    c->polls_until_done = 3;
    assert_int_equal(vta_sim_create(&config, &so, &c->sim, &e), VTA_OK);
    assert_int_equal(vta_mmio_device(&config, &io, &b->device, &e), VTA_OK);
    size_t bytes = vta_context_bytes(&b->device, NULL);
    b->memory = aligned_alloc(64, bytes);
    assert_int_equal(vta_context_init(b->memory, bytes, &b->device, NULL, &b->c, &e), VTA_OK);
}

static void close_chip(chip *c, rig *b)
{
    board_close(b);
    vta_sim_destroy(c->sim);
}

/* Adds 5 to one accumulator, through the whole run-time. */
static void run_one(rig *b, chip *c)
{
    vta_buffer in = buffer(b, 64), out = buffer(b, 16);
    int32_t ones[16];
    int8_t got[16];
    for (int i = 0; i < 16; i++)
        ones[i] = i;
    good(b, vta_buffer_write(b->c, in, 0, ones, 64));
    load(b, VTA_MEM_ACC, in, 0, 0, 1, 1, 1);
    alu(b, VTA_ALU_ADD, 1, 0, 0, true, 5);
    push(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(b, out, 0, 0, 1, 1, 1);
    c->n_writes = c->sleeps = 0;
    good(b, vta_synchronize(b->c, 1000));
    good(b, vta_buffer_read(b->c, out, 0, got, 16));
    for (int i = 0; i < 16; i++)
        assert_int_equal(got[i], i + 5);
    good(b, vta_buffer_free(b->c, in));
    good(b, vta_buffer_free(b->c, out));
}

static void drives_the_hls_registers(void **state)
{
    static const uint32_t after_address[][2] = {{0x1010, 0},    {0x1018, 0},    {0x2020, 0},    {0x2028, 0},
                                                {0x3010, 0},    {0x2010, 0}, /* bases, done */
                                                {0x1000, 0x81}, {0x2000, 0x81}, {0x3000, 0x81}, {0x0000, 0x01}};
    chip c;
    rig b;
    (void)state;
    open_chip(&c, &b, "pynq");
    run_one(&b, &c);
    assert_int_equal(c.n_writes, 12);
    assert_true(c.writes[0].offset == 0x10 && c.writes[0].value == c.count);
    assert_true(c.writes[1].offset == 0x18 && c.writes[1].value == c.address);
    for (size_t i = 0; i < 10; i++)
        assert_true(c.writes[2 + i].offset == after_address[i][0] && c.writes[2 + i].value == after_address[i][1]);
    assert_int_equal(c.sleeps, 3);
    assert_true(c.flushes >= 3 && c.invalidates >= 1);
    assert_int_equal(c.done, 1); /* left over: the next run must not take it for its own */
    run_one(&b, &c);
    assert_int_equal(c.sleeps, 3);
    close_chip(&c, &b);
}

static void drives_the_control_block(void **state)
{
    static const uint32_t bases[] = {0x10, 0x14, 0x18, 0x1c, 0x20};
    chip c;
    rig b;
    (void)state;
    open_chip(&c, &b, "de10nano");
    assert_int_equal(c.base, 0xFF220000u);
    run_one(&b, &c);
    assert_int_equal(c.n_writes, 8);
    for (size_t i = 0; i < 5; i++)
        assert_true(c.writes[2 + i].offset == bases[i] && c.writes[2 + i].value == 0);
    assert_true(c.writes[7].offset == 0 && c.writes[7].value == 1);
    close_chip(&c, &b);
}

static void gives_up_in_time(void **state)
{
    chip c;
    rig b;
    (void)state;
    open_chip(&c, &b, "ultra96");
    run_one(&b, &c);
    c.dead = true;
    c.n_writes = c.sleeps = 0;
    refused(&b, vta_synchronize(b.c, 25), VTA_TIMEOUT, "did not finish 4 instructions within 25 us");
    assert_int_equal(c.sleeps, 25);
    c.dead = false;
    run_one(&b, &c);
    close_chip(&c, &b);
}

/* Barriers are cache maintenance over just their range; debug flags leave them out. */
static void maintains_caches(void **state)
{
    chip c;
    rig b;
    (void)state;
    open_chip(&c, &b, "ultra96");
    vta_buffer h = buffer(&b, 100);
    c.flushes = c.invalidates = 0;
    good(&b, vta_read_barrier(b.c, h, 32, 5, 20));
    assert_true(c.flushes == 1 && c.invalidates == 0 && c.offset == 20 && c.bytes == 80);
    good(&b, vta_write_barrier(b.c, h, 12, 3, 7)); /* 12 bits take 2 bytes */
    assert_true(c.flushes == 1 && c.invalidates == 1 && c.offset == 6 && c.bytes == 14);
    vta_context_debug(b.c, VTA_DEBUG_SKIP_READ_BARRIER);
    good(&b, vta_read_barrier(b.c, h, 32, 5, 20));
    good(&b, vta_write_barrier(b.c, h, 8, 0, 1));
    assert_true(c.flushes == 1 && c.invalidates == 2);
    vta_context_debug(b.c, VTA_DEBUG_SKIP_WRITE_BARRIER);
    good(&b, vta_read_barrier(b.c, h, 32, 5, 20));
    good(&b, vta_write_barrier(b.c, h, 8, 0, 1));
    assert_true(c.flushes == 2 && c.invalidates == 2);
    close_chip(&c, &b);
}

static void refuses_bad_memory(void **state)
{
    chip c;
    rig b;
    vta_buffer h;
    vta_memory m;
    vta_error e;
    vta_device other;
    (void)state;
    open_chip(&c, &b, "pynq");
    c.phys_shift = 16;
    refused(&b, vta_buffer_alloc(b.c, 64, &h), VTA_NO_MEMORY, "at a multiple of 4096");
    c.phys_shift = 0;
    assert_int_equal(vta_buffer_map(b.c, &c, 64, &h), VTA_UNSUPPORTED);
    assert_int_equal(vta_context_last_error(b.c, &e), VTA_OK); /* the caller stages a copy: nothing went wrong */
    assert_int_equal(b.device.driver->run(b.device.self, UINT64_C(1) << 32, 4, 10, &e), VTA_BAD_ARGUMENT);
    assert_int_equal(b.device.driver->alloc(b.device.self, 100, true, &m, &e), VTA_OK);
    b.device.driver->free(b.device.self, &m);
    vta_config config = b.device.config;
    const vta_mmio nothing = {0};
    assert_int_equal(vta_mmio_device(&config, &nothing, &other, &e), VTA_BAD_ARGUMENT);
    const vta_mmio without_memory = {.write = chip_write, .read = chip_read, .sleep = chip_sleep};
    assert_int_equal(vta_mmio_device(&config, &without_memory, &other, &e), VTA_BAD_ARGUMENT);
    assert_null(other.driver);
    strcpy(config.target, "mars");
    assert_int_equal(vta_mmio_device(&config, &nothing, &other, &e), VTA_BAD_CONFIG);
    close_chip(&c, &b);
}

/* Memory that this program has for itself and that the device sees at `shift`. */
static char own[3 * VTA_PAGE_BYTES];

static bool chip_reach(void *user, const void *address, size_t bytes, uint64_t *phys)
{
    const char *at = (const char *)address;
    *phys = ((chip *)user)->phys_shift + (uint64_t)(at - own);
    return at >= own && bytes <= sizeof own && (size_t)(at - own) <= sizeof own - bytes;
}

static void maps_what_the_device_reaches(void **state)
{
    chip c = {.phys_shift = 0x10000};
    const vta_mmio io = {.user = &c, .write = chip_write, .read = chip_read, .sleep = chip_sleep, .reach = chip_reach};
    vta_config config;
    vta_mmio_state own_state;
    vta_device d;
    vta_memory m;
    vta_error e;
    (void)state;
    assert_int_equal(vta_config_preset("pynq", &config, &e), VTA_OK);
    assert_int_equal(vta_mmio_init(&own_state, &config, &io, &d, &e), VTA_OK);
    assert_int_equal(d.driver->map(d.self, own + 512, 100, &m, &e), VTA_OK);
    assert_true(m.host == own + 512 && m.phys == 0x10200 && m.bytes == 100);
    d.driver->unmap(d.self, &m);
    assert_int_equal(d.driver->map(d.self, own + 513, 100, &m, &e), VTA_UNSUPPORTED);
    assert_non_null(strstr(e.text, "at 0x10201 for the device, at no multiple of 256"));
    assert_int_equal(d.driver->map(d.self, own, sizeof own + 1, &m, &e), VTA_UNSUPPORTED);
    assert_int_equal(d.driver->alloc(d.self, 100, true, &m, &e), VTA_UNSUPPORTED);
    vta_device_flush(&d, &m, 0, 1); /* a device with coherent caches */
    vta_device_destroy(&d);
}

/* Messages are formatted without the C library; they are what it would make of them. */
static void formats_as_printf_does(void **state)
{
    vta_error e;
    char wanted[sizeof e.text];
    (void)state;
#define SAME(...)                                                   \
    assert_int_equal(vta_fail(&e, VTA_IO, __VA_ARGS__), VTA_IO);    \
    snprintf(wanted, sizeof wanted, __VA_ARGS__);                   \
    assert_string_equal(e.text, wanted)
    SAME("100%% of %s", "it");
    SAME("%d %d %d %5d|%05d|%05d", 0, -1, INT32_MIN, -42, -42, 42);
    SAME("%u %x %08x %3u", 4000000000u, 0xabcdefu, 0xabcu, 7u);
    SAME("%ld %lu %lld %llu %llx", -5L, 6UL, (long long)INT64_MIN, (unsigned long long)UINT64_MAX, 0x123456789abcULL);
    SAME("%zu %016llx|%c|%8s|%.3s|%.*s", sizeof e, 0x12ULL, 'x', "right", "abcdef", 2, "xyz");
    SAME("%p", (void *)&e);
    memset(wanted, 'a', sizeof wanted);
    vta_fail(&e, VTA_IO, "%.*s and more", (int)sizeof wanted, wanted);
    assert_true(strlen(e.text) == sizeof e.text - 1 && e.text[sizeof e.text - 2] == 'a');
    assert_int_equal(vta_fail(NULL, VTA_FAULT, "%s", "nobody asks"), VTA_FAULT);
#undef SAME
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drives_the_hls_registers), cmocka_unit_test(drives_the_control_block),
        cmocka_unit_test(gives_up_in_time),         cmocka_unit_test(maintains_caches),
        cmocka_unit_test(refuses_bad_memory),       cmocka_unit_test(maps_what_the_device_reaches),
        cmocka_unit_test(formats_as_printf_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
