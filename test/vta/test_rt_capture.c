/* test_rt_capture.c: captured streams: replayed bit for bit like a direct run, on other memory, without a context and
 * without a call of an allocator; printed as C; and refused where they do not belong.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

enum { TILES = 24, BIG = 3000 };

static int record_big(void *closure)
{
    const int32_t *imm = (const int32_t *)closure;
    for (uint32_t i = 0; i < BIG; i++)
        vta_uop_push(&(vta_uop){VTA_MODE_ALU, 0, i % TILES, i % TILES, 0, VTA_ALU_ADD, 1, *imm}, NULL);
    return 0;
}

/* out = f(in, bias) in two runs: products with weights, a bias, kernels that do not fit micro-op memory together. */
static void queue_program(rig *b, vta_buffer in, vta_buffer wgt, vta_buffer bias, vta_buffer out)
{
    static const char site = 0;
    const enum vta_stage L = VTA_STAGE_LOAD, C = VTA_STAGE_COMPUTE, S = VTA_STAGE_STORE;
    const kernel_text gemm = {{{TILES / 2, 1, 1, 0}}, 2, {{.dst = 0, .src = 0}, {.dst = 12, .src = 12, .wgt = 1}}};
    load(b, VTA_MEM_ACC, bias, 0, 1, TILES, 1, TILES);
    load(b, VTA_MEM_INP, in, 0, 2, TILES, 1, TILES);
    load(b, VTA_MEM_WGT, wgt, 0, 0, 2, 1, 2);
    push(b, L, C);
    pop(b, L, C);
    good(b, push_text(b, VTA_MODE_GEMM, &gemm));
    for (int32_t i = 0; i < 8; i++) {
        int32_t imm = i % 4 + 1;
        good(b, vta_push(b->c, VTA_MODE_ALU, &site, record_big, &imm, sizeof imm));
    }
    alu(b, VTA_ALU_SHR, TILES, 0, 0, true, 3);
    push(b, C, S);
    pop(b, C, S);
    store(b, out, 0, 0, TILES, 1, TILES);
    good(b, vta_synchronize(b->c, 1u << 31));
    alu(b, VTA_ALU_MAX, TILES, 0, 0, true, 0);
    push(b, C, S);
    pop(b, C, S);
    store(b, out, 0, TILES, TILES, 1, TILES);
    good(b, vta_synchronize(b->c, 1u << 31));
}

typedef struct program {
    vta_buffer in, wgt, bias, out;
} program;

static const size_t sizes[4] = {(TILES + 2) * 16, 512, (TILES + 1) * 64, 2 * TILES * 16};

static void fill(void *data, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)data)[i] = (uint8_t)next_random(&seed);
}

static program make_program(rig *b)
{
    program p = {buffer(b, sizes[0]), buffer(b, sizes[1]), buffer(b, sizes[2]), buffer(b, sizes[3])};
    fill(host(b, p.in), sizes[0], 1);
    fill(host(b, p.wgt), sizes[1], 2);
    fill(host(b, p.bias), sizes[2], 3);
    return p;
}

static void *capture(rig *b, const program *p, vta_capture *out)
{
    good(b, vta_capture_begin(b->c));
    queue_program(b, p->in, p->wgt, p->bias, p->out);
    size_t bytes = vta_capture_bytes(b->c);
    assert_true(bytes > 0);
    void *memory = malloc(bytes);
    good(b, vta_capture_end(b->c, memory, bytes, out));
    return memory;
}

/* Device memory with the data of a program's buffers, in the capture's order: bias, in, wgt, out. */
static void make_bindings(rig *b, const program *p, vta_memory bindings[4], size_t shrink_last)
{
    const vta_buffer order[4] = {p->bias, p->in, p->wgt, p->out};
    const size_t bytes[4] = {sizes[2], sizes[0], sizes[1], sizes[3]};
    vta_error e = {VTA_OK, ""};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(b->device.driver->alloc(b->device.self, bytes[i], true, &bindings[i], &e), VTA_OK);
        bindings[i].bytes = bytes[i] - (i == 3 ? shrink_last : 0);
        memcpy(bindings[i].host, host(b, order[i]), bytes[i]);
    }
    memset(bindings[3].host, 0, bytes[3]);
}

static void replays_what_it_captured(void **state)
{
    rig b, other;
    vta_capture k;
    vta_memory scratch, bindings[4];
    vta_error e = {VTA_OK, ""};
    (void)state;
    board_open(&b, "sim", NULL);
    program p = make_program(&b);
    void *memory = capture(&b, &p, &k);
    assert_int_equal(((int8_t *)host(&b, p.out))[0], 0); /* nothing ran */
    assert_int_equal(k.n_bindings, 4);
    assert_int_equal(k.n_uops, 2 + 4 * BIG + 2);
    assert_int_equal(k.binding_bytes[0], sizes[2]);
    assert_int_equal(k.binding_bytes[3], sizes[3]);
    assert_int_equal(vta_capture_binding(b.c, p.bias), 1); /* by first use */
    assert_int_equal(vta_capture_binding(b.c, p.out), 4);
    assert_int_equal(vta_capture_binding(b.c, buffer(&b, 64)), 0);
    assert_int_equal(vta_capture_binding(b.c, 0), 0);
    queue_program(&b, p.in, p.wgt, p.bias, p.out);
    /* on a device that has other things at these addresses */
    board_open(&other, "sim", NULL);
    buffer(&other, 12345);
    program copy = make_program(&other);
    make_bindings(&other, &copy, bindings, 0);
    assert_int_equal(other.device.driver->alloc(other.device.self, vta_replay_bytes(&k), true, &scratch, &e), VTA_OK);
    spy *s = board_spy(&other);
    if (vta_replay(&other.device, &k, &scratch, bindings, 1u << 31, &e) != VTA_OK)
        fail_msg("%s", e.text);
    assert_int_equal(s->runs, 2);
    assert_memory_equal(bindings[3].host, host(&b, p.out), sizes[3]);
    const uint8_t *out = (const uint8_t *)host(&b, p.out);
    assert_true(memcmp(out, out + TILES * 16, TILES * 16) != 0); /* the second run did something */
    memset(bindings[3].host, 0, sizes[3]);
    assert_int_equal(vta_replay(&other.device, &k, &scratch, bindings, 1u << 31, &e), VTA_OK); /* and again */
    assert_memory_equal(bindings[3].host, host(&b, p.out), sizes[3]);
    free(memory);
    board_close(&b);
    board_close(&other);
}

static void refuses_what_does_not_belong(void **state)
{
    rig b, wide;
    vta_capture k;
    vta_memory scratch, bindings[4];
    vta_error e = {VTA_OK, ""};
    (void)state;
    board_open(&b, "sim", NULL);
    board_open(&wide, "2x16_i8w8a32_15_15_18_17", NULL);
    program p = make_program(&b);
    void *memory = capture(&b, &p, &k);
    make_bindings(&b, &p, bindings, 1);
    assert_int_equal(b.device.driver->alloc(b.device.self, vta_replay_bytes(&k), true, &scratch, &e), VTA_OK);
    assert_int_equal(vta_replay(&wide.device, &k, &scratch, bindings, 1000, &e), VTA_BAD_CONFIG);
    assert_int_equal(vta_replay(&b.device, &k, &scratch, bindings, 1000, &e), VTA_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "reaches 768 bytes of binding 4, which has 767"));
    bindings[3].bytes++;
    scratch.bytes = vta_replay_bytes(&k) - 1;
    assert_int_equal(vta_replay(&b.device, &k, &scratch, bindings, 1000, &e), VTA_NO_MEMORY);
    scratch.bytes++;
    vta_relocation bad = {k.n_insns, 0, 0};
    vta_capture broken = k;
    broken.relocations = &bad;
    broken.n_relocations = 1;
    assert_int_equal(vta_replay(&b.device, &broken, &scratch, bindings, 1000, &e), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_replay(&b.device, &k, &scratch, bindings, 1u << 31, &e), VTA_OK);
    free(memory);
    board_close(&b);
    board_close(&wide);
}

static void keeps_its_order(void **state)
{
    const vta_context_options small = {.max_insns = 256, .max_uops = 5000};
    rig b;
    vta_capture k;
    uint64_t memory[8];
    (void)state;
    board_open(&b, "sim", &small);
    refused(&b, vta_capture_end(b.c, memory, sizeof memory, &k), VTA_BAD_STATE, "no capture is open");
    vta_buffer data = buffer(&b, 64);
    load(&b, VTA_MEM_INP, data, 0, 0, 1, 1, 1);
    refused(&b, vta_capture_begin(b.c), VTA_BAD_STATE, "synchronize first");
    good(&b, vta_synchronize(b.c, 1000));
    good(&b, vta_capture_begin(b.c));
    refused(&b, vta_capture_begin(b.c), VTA_BAD_STATE, "a capture is open");
    load(&b, VTA_MEM_INP, data, 0, 0, 1, 1, 1);
    refused(&b, vta_capture_end(b.c, memory, sizeof memory, &k), VTA_BAD_STATE, "does not end with a synchronize");
    refused(&b, vta_buffer_free(b.c, data), VTA_BAD_STATE, "used by queued");
    good(&b, vta_synchronize(b.c, 1000));
    refused(&b, vta_capture_end(b.c, memory, sizeof memory, &k), VTA_BAD_ARGUMENT, "bytes aligned to 8 are needed");
    push(&b, VTA_STAGE_COMPUTE, VTA_STAGE_LOAD);
    good(&b, vta_synchronize(b.c, 1000));
    refused(&b, vta_capture_end(b.c, memory, sizeof memory, &k), VTA_DEADLOCK, "left in g2l");
    vta_status s = VTA_OK;
    for (int i = 0; i < 300 && s == VTA_OK; i++)
        s = vta_load(b.c, data, &(vta_transfer){.memory = VTA_MEM_INP, .x_size = 1, .y_size = 1, .x_stride = 1});
    refused(&b, s, VTA_NO_MEMORY, "does not fit a queue of 256 instructions");
    vta_discard(b.c);
    good(&b, vta_capture_begin(b.c));
    for (int32_t i = 0; i < 2; i++)
        s = vta_push(b.c, VTA_MODE_ALU, NULL, record_big, &i, sizeof i);
    refused(&b, s, VTA_NO_MEMORY, "does not fit a log of 5000 micro-ops");
    vta_discard(b.c);
    good(&b, vta_buffer_free(b.c, data));
    board_close(&b);
}

static void prints_as_c(void **state)
{
    rig b;
    vta_capture k;
    (void)state;
    board_open(&b, "pynq", NULL);
    vta_buffer data = buffer(&b, 64);
    good(&b, vta_capture_begin(b.c));
    load(&b, VTA_MEM_INP, data, 5, 3, 1, 1, 1);
    alu(&b, VTA_ALU_ADD, 1, 2, 2, true, 7);
    good(&b, vta_synchronize(b.c, 1000));
    uint64_t memory[64];
    assert_int_equal(vta_capture_bytes(b.c), 7 * 16 + 8 + 24 + 8);
    good(&b, vta_capture_end(b.c, memory, sizeof memory, &k));
    static const char wanted[] =
        "/* net: a captured stream of 7 VTA instructions and 1 micro-ops over 1 buffers, for vta_replay. */\n"
        "#include \"vta_replay.h\"\n"
        "\n"
        "static const vta_insn net_insns[] = {\n"
        "    {{0x0000000000001500u, 0x0000000100010001u}},\n"
        "    {{0x0000000000000000u, 0x0000000100010001u}},\n"
        "    {{0x0002000800200004u, 0x0007a00000000000u}},\n"
        "    {{0x0000000000000021u, 0x0000000000000000u}},\n"
        "    {{0x0000000000000140u, 0x0000000000000000u}},\n"
        "    {{0x0000000000000018u, 0x0000000000000000u}},\n"
        "    {{0x0000000000000003u, 0x0000000000000000u}},\n"
        "};\n"
        "\n"
        "static const uint32_t net_uops[] = {\n"
        "    0x00001002u,\n"
        "};\n"
        "\n"
        "static const vta_relocation net_relocations[] = {\n"
        "    {0u, 1u, 3u},\n"
        "    {1u, 0u, 0u},\n"
        "};\n"
        "\n"
        "static const uint64_t net_binding_bytes[] = {\n"
        "    64u,\n"
        "};\n"
        "\n"
        "const vta_capture net = {\n"
        "    {\"pynq\", 3, 3, 5, 0, 4, 15, 15, 18, 17},\n"
        "    net_insns, 7u,\n"
        "    net_uops, 1u,\n"
        "    net_relocations, 2u,\n"
        "    net_binding_bytes, 1u,\n"
        "};\n";
    char text[4096], cut[100];
    assert_int_equal(vta_capture_print_c(&k, "net", text, sizeof text), sizeof wanted - 1);
    assert_string_equal(text, wanted);
    assert_int_equal(vta_capture_print_c(&k, "net", cut, sizeof cut), sizeof wanted - 1);
    assert_memory_equal(cut, wanted, sizeof cut - 1);
    board_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_what_it_captured),
        cmocka_unit_test(refuses_what_does_not_belong),
        cmocka_unit_test(keeps_its_order),
        cmocka_unit_test(prints_as_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
