/* test_program.c: programs as text and as bytes: both come back as they went; errors say where.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_test.h"

#include <stdio.h>

static vta_status assemble(const char *text, vta_program *p, vta_error *e)
{
    e->text[0] = 0;
    return vta_assemble("t", text, strlen(text), NULL, p, e);
}

static char *disassemble(const vta_program *p)
{
    size_t n = vta_disassemble(p, NULL, 0);
    char *text = malloc(n + 1);
    assert_int_equal(vta_disassemble(p, text, n + 1), n);
    assert_int_equal(strlen(text), n);
    return text;
}

static void text_becomes_canonical(void **state)
{
    static const char source[] = "# shift and store\n"
                                 "config pynq\n"
                                 "buffer x 0x40\n"
                                 "buffer out.8 16\n"
                                 "uop 0 0 0   # the only one\n"
                                 "uop 0x00000801\n"
                                 "\n"
                                 "load uop x_size=1 y_size=1 dram_base=uops x_stride=1\n"
                                 "load acc sram_base=0 dram_base=x+0 y_size=1 x_size=1 x_stride=0x1\r\n"
                                 "alu shr push_next_dep=1 uop_end=1 iter_out=1 iter_in=1 use_imm imm=-3\n"
                                 "store out pop_prev_dep push_prev_dep dram_base=out.8+2 x_size=1 y_size=1\n"
                                 "load inp dram_base=77\n"
                                 "word 0x0000000000000007 0x1\n"
                                 "finish pop_next_dep";
    static const char canonical[] = "config pynq_1x16_i8w8a32_15_15_18_17\n"
                                    "buffer x 64\n"
                                    "buffer out.8 16\n"
                                    "uop 0 0 0\n"
                                    "uop 1 1 0\n"
                                    "load uop dram_base=uops y_size=1 x_size=1 x_stride=1\n"
                                    "load acc dram_base=x y_size=1 x_size=1 x_stride=1\n"
                                    "alu shr push_next_dep uop_end=1 iter_out=1 iter_in=1 use_imm imm=-3\n"
                                    "store out pop_prev_dep push_prev_dep dram_base=out.8+2 y_size=1 x_size=1\n"
                                    "load inp dram_base=77\n"
                                    "word 0x0000000000000007 0x0000000000000001\n"
                                    "finish pop_next_dep\n";
    vta_program p;
    vta_error e;
    (void)state;
    if (assemble(source, &p, &e) != VTA_OK)
        fail_msg("%s", e.text);
    char *text = disassemble(&p);
    assert_string_equal(text, canonical);
    free(text);
    vta_program_release(&p);
    assert_int_equal(assemble(canonical, &p, &e), VTA_OK);
    text = disassemble(&p);
    assert_string_equal(text, canonical);
    free(text);
    vta_program_release(&p);
}

static void errors_say_where(void **state)
{
    static const struct {
        const char *text;
        vta_status status;
        const char *message;
    } cases[] = {
        {"finish\n  frob", VTA_BAD_TEXT, "t:2:3: 'frob' is not an instruction, and none of config, buffer, uop, word"},
        {"load", VTA_BAD_TEXT, "t:1:5: the memory is missing: uop, wgt, inp, acc, out or acc8"},
        {"load x_size=1", VTA_BAD_TEXT, "t:1:6: the memory is missing: uop, wgt, inp, acc, out or acc8"},
        {"load imp x_size=1", VTA_BAD_TEXT, "t:1:6: 'imp' is not a known memory: uop, wgt, inp, acc, out or acc8"},
        {"alu sub", VTA_BAD_TEXT, "t:1:5: 'sub' is not a known operation: min, max, add, shr or mul"},
        {"load inp sram_base=65536", VTA_BAD_FIELD, "t:1:20: sram_base is 65536, 0 to 65535 fit"},
        {"alu add imm=-32769", VTA_BAD_FIELD, "t:1:13: imm is -32769, -32768 to 32767 fit"},
        {"gemm iter_out=16384", VTA_BAD_FIELD, "t:1:15: iter_out is 16384, 0 to 16383 fit"},
        {"gemm reset_reg=2", VTA_BAD_FIELD, "t:1:16: reset_reg is 2, 0 to 1 fit"},
        {"load inp x_pad_0=16", VTA_BAD_FIELD, "t:1:18: x_pad_0 is 16, 0 to 15 fit"},
        {"gemm imm=1", VTA_BAD_TEXT, "t:1:6: 'gemm' has no field 'imm'"},
        {"gemm opcode=1", VTA_BAD_TEXT, "t:1:6: 'gemm' has no field 'opcode'"},
        {"gemm uop_end=1 uop_end=1", VTA_BAD_TEXT, "t:1:16: uop_end is given twice"},
        {"gemm uop_end", VTA_BAD_TEXT, "t:1:6: uop_end needs a value: uop_end=N"},
        {"gemm uop_end=", VTA_BAD_TEXT, "t:1:14: a number is missing"},
        {"gemm uop_end=1x", VTA_BAD_TEXT, "t:1:14: '1x' is not a number"},
        {"gemm uop_end=99999999999999999999999999", VTA_BAD_TEXT,
                "t:1:14: '99999999999999999999999999' is not a number"},
        {"load inp dram_base=x", VTA_BAD_TEXT, "t:1:20: there is no buffer 'x'"},
        {"buffer x 4\nload inp dram_base=x+-1", VTA_BAD_FIELD, "t:2:22: an offset is 0 to 4294967295 elements"},
        {"buffer 3x 4", VTA_BAD_TEXT, "t:1:8: a buffer needs a name of letters, digits, '_' and '.', at most 31"},
        {"buffer x 0", VTA_BAD_FIELD, "t:1:10: a buffer has 1 to 4294967295 bytes"},
        {"buffer x 1\nbuffer x 1", VTA_BAD_TEXT, "t:2:8: 'x' is taken"},
        {"buffer uops 1", VTA_BAD_TEXT, "t:1:8: 'uops' is taken"},
        {"buffer x 1 2", VTA_BAD_TEXT, "t:1:12: '2' is one word too many"},
        {"uop 2048 0 0", VTA_BAD_FIELD, "t:1:5: dst is 2048, 0 to 2047 fit"},
        {"uop 0 0 1024", VTA_BAD_FIELD, "t:1:9: wgt is 1024, 0 to 1023 fit"},
        {"uop 0 0", VTA_BAD_TEXT, "t:1:8: a number is missing"},
        {"finish\nconfig pynq", VTA_BAD_TEXT, "t:2:1: the configuration comes first, and once"},
        {"config", VTA_BAD_TEXT, "t:1:7: a configuration is missing, such as 1x16_i8w8a32_15_15_18_17"},
        {"config 1x16_i8w8a32_15_15_18_18", VTA_BAD_CONFIG,
         "t:1:8: uop-bits: a micro-op's three indices fit its 32 bits"},
    };
    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        vta_program p;
        vta_error e;
        assert_int_equal(assemble(cases[i].text, &p, &e), cases[i].status);
        assert_string_equal(e.text, cases[i].message);
        assert_null(p.insns);
    }
    vta_program p;
    vta_error e;
    assert_int_equal(vta_assemble("t", "finish \0 x", 10, NULL, &p, &e), VTA_BAD_TEXT); /* no end of text */
}

/* Random words; about one in four is made a plain instruction, with an address by name now and then. */
static void random_program(const vta_geometry *g, const vta_config *c, vta_program *p, uint64_t *random)
{
    memset(p, 0, sizeof *p);
    p->config = *c;
    p->n_insns = p->n_uops = 40;
    p->n_buffers = 2;
    p->insns = calloc(p->n_insns, sizeof *p->insns);
    p->uops = calloc(p->n_uops, sizeof *p->uops);
    p->buffers = calloc(p->n_buffers, sizeof *p->buffers);
    p->relocations = calloc(p->n_insns, sizeof *p->relocations);
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        snprintf(p->buffers[i].name, VTA_NAME_BYTES, "_b.%u", i);
        p->buffers[i].bytes = 1 + test_random(random);
    }
    for (uint32_t i = 0; i < p->n_uops; i++)
        p->uops[i] = test_random(random) * 2 + test_below(random, 2);
    for (uint32_t i = 0; i < p->n_insns; i++) {
        vta_fields f;
        vta_field_error e;
        for (int w = 0; w < 2; w++)
            p->insns[i].word[w] =
                (uint64_t)test_random(random) << 40 ^ (uint64_t)test_random(random) << 20 ^ test_random(random);
        if (test_below(random, 4) == 0 || !vta_decode(g, &p->insns[i], &f))
            continue;
        bool transfer = f.opcode == VTA_LOAD || f.opcode == VTA_STORE;
        if (transfer && f.memory_type < VTA_MEM_COUNT && test_below(random, 2)) {
            f.dram_base = 0;
            p->relocations[p->n_relocations++] = (vta_relocation){i, test_below(random, 3), test_below(random, 3)};
        }
        assert_true(vta_encode(g, &f, &p->insns[i], &e));
    }
}

static void expect_same(const vta_program *a, const vta_program *b)
{
    assert_true(vta_config_equal(&a->config, &b->config));
    assert_string_equal(a->config.target, b->config.target);
    assert_int_equal(a->n_insns, b->n_insns);
    assert_int_equal(a->n_uops, b->n_uops);
    assert_int_equal(a->n_buffers, b->n_buffers);
    assert_int_equal(a->n_relocations, b->n_relocations);
    assert_memory_equal(a->insns, b->insns, a->n_insns * sizeof *a->insns);
    assert_memory_equal(a->uops, b->uops, a->n_uops * sizeof *a->uops);
    assert_memory_equal(a->buffers, b->buffers, a->n_buffers * sizeof *a->buffers);
    if (a->n_relocations)
        assert_memory_equal(a->relocations, b->relocations, a->n_relocations * sizeof *a->relocations);
}

static void programs_go_round(void **state)
{
    uint64_t random = 11;
    (void)state;
    for (size_t k = 0; k < N(test_configs); k++)
        for (int round = 0; round < 50; round++) {
            const vta_config c = test_config(test_configs[k]);
            vta_geometry g;
            vta_program p, q;
            vta_error e;
            assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
            random_program(&g, &c, &p, &random);
            char *text = disassemble(&p);
            if (assemble(text, &q, &e) != VTA_OK)
                fail_msg("%s", e.text);
            expect_same(&p, &q);
            vta_program_release(&q);
            size_t n = vta_program_write(&p, NULL, 0);
            uint8_t *bytes = malloc(n);
            assert_int_equal(vta_program_write(&p, bytes, n), n);
            if (vta_program_read("b", bytes, n, &q, &e) != VTA_OK)
                fail_msg("%s", e.text);
            expect_same(&p, &q);
            vta_program_release(&q);
            free(bytes);
            free(text);
            vta_program_release(&p);
        }
}

/* Cut and flipped files are refused or are programs, and nothing else happens. */
static void broken_files_are_refused(void **state)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    vta_program p, q;
    vta_error e;
    uint64_t random = 4;
    (void)state;
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    random_program(&g, &c, &p, &random);
    size_t n = vta_program_write(&p, NULL, 0);
    uint8_t *bytes = malloc(n), *broken = malloc(n);
    assert_int_equal(vta_program_write(&p, bytes, n), n);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, bytes, cut);
        assert_int_equal(vta_program_read("b", exact, cut, &q, &e), VTA_BAD_TEXT);
        free(exact);
    }
    for (int round = 0; round < 4000; round++) {
        memcpy(broken, bytes, n);
        broken[test_below(&random, round % 2 ? 160 : (uint32_t)n)] ^= (uint8_t)(1u << test_below(&random, 8));
        if (vta_program_read("b", broken, n, &q, &e) == VTA_OK) {
            free(disassemble(&q));
            vta_program_release(&q);
        }
    }
    free(bytes);
    free(broken);
    vta_program_release(&p);
}

static void addresses_are_filled_in(void **state)
{
    vta_program p;
    vta_error e;
    vta_insn out[3];
    const vta_memory at[] = {{NULL, 0x1000, 4}, {NULL, 0x3000, 64}};
    char line[200];
    (void)state;
    assert_int_equal(
        assemble("buffer x 64\nload uop dram_base=uops\nload acc dram_base=x+2\nload inp dram_base=9", &p, &e), VTA_OK);
    assert_int_equal(vta_program_link(&p, at, out, &e), VTA_OK);
    vta_config c = vta_config_default();
    vta_geometry g;
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    static const char *const expected[] = {"load uop dram_base=1024", "load acc dram_base=194", "load inp dram_base=9"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vta_insn_print(&g, &out[i], line, sizeof line), strlen(expected[i]));
        assert_string_equal(line, expected[i]);
    }
    p.relocations[1].offset = UINT32_MAX;
    assert_int_equal(vta_program_link(&p, at, out, &e), VTA_BAD_FIELD);
    assert_non_null(strstr(e.text, "instruction 1: dram_base is"));
    vta_program_release(&p);
}

/* A row that leaves its buffer is found before anything runs, by the buffer's name. */
static void rows_stay_in_buffers(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"load acc dram_base=x x_size=2 y_size=1", NULL},
        {"load acc dram_base=x+1 x_size=1 y_size=9", NULL}, /* x_stride is 0: the same row */
        {"load inp dram_base=x x_size=3 y_size=2 x_stride=6", "row 1 ends at element 9"},
        {"load acc dram_base=x+9 x_size=0 y_size=1", NULL}, /* moves nothing */
        {"load acc dram_base=x x_size=3 y_size=1 x_stride=3",
         "instruction 0 (load acc): buffer 'x' has 2 elements of 64 bytes, row 0 ends at element 3"},
        {"load acc dram_base=x+1 x_size=1 y_size=3 x_stride=1",
         "instruction 0 (load acc): buffer 'x' has 2 elements of 64 bytes, row 1 ends at element 3"},
        {"store out dram_base=x+4294967295 x_size=65535 y_size=65535 x_stride=65535",
         "instruction 0 (store): buffer 'x' has 8 elements of 16 bytes, row 0 ends at element 4295032830"},
        {"load uop dram_base=uops x_size=2 y_size=1",
         "instruction 0 (load uop): the micro-op image has 1 elements of 4 bytes, row 0 ends at element 2"},
    };
    const vta_memory at[] = {{NULL, 0x1000, 4}, {NULL, 0x3000, 128}};
    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        char text[200];
        vta_program p;
        vta_insn out[1];
        vta_error e = {VTA_OK, ""};
        snprintf(text, sizeof text, "buffer x 128\n%s", cases[i].text);
        assert_int_equal(assemble(text, &p, &e), VTA_OK);
        assert_int_equal(vta_program_link(&p, at, out, &e), cases[i].message ? VTA_FAULT : VTA_OK);
        if (cases[i].message && !strstr(e.text, cases[i].message))
            fail_msg("'%s' does not contain '%s'", e.text, cases[i].message);
        vta_program_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_canonical),  cmocka_unit_test(errors_say_where),
        cmocka_unit_test(programs_go_round),       cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(addresses_are_filled_in), cmocka_unit_test(rows_stay_in_buffers),
    };
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
