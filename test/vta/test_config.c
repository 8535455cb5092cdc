/* test_config.c: configurations as JSON, presets and bit-stream strings; every rule by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "vta.h"

static vta_status parse(const char *json, vta_config *c, vta_error *e)
{
    *c = vta_config_default();
    return vta_config_parse("test.json", json, strlen(json), c, e);
}

static void expect_error(const char *json, vta_status status, const char *part)
{
    vta_config c;
    vta_error e = {VTA_OK, ""};
    assert_int_equal(parse(json, &c, &e), status);
    assert_int_equal(e.status, status);
    if (!strstr(e.text, part))
        fail_msg("'%s' does not contain '%s'", e.text, part);
}

static void derives_the_published_values(void **state)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    (void)state;
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    const uint32_t bytes[] = {4, 256, 16, 64, 16, 16}, depth[] = {8192, 1024, 2048, 2048, 2048, 2048};
    for (int m = 0; m < VTA_MEM_COUNT; m++) {
        assert_int_equal(g.elem_bytes[m], bytes[m]);
        assert_int_equal(g.depth[m], depth[m]);
    }
}

static void reads_json(void **state)
{
    vta_config c;
    vta_error e;
    (void)state;
    assert_int_equal(parse("{\"TARGET\": \"pynq\", \"HW_VER\": \"0.0.2\", \"LOG_BATCH\": 1, \"LOG_BLOCK\": 4,"
                           " \"LOG_WGT_BUFF_SIZE\": 17, \"LOG_BLOCK_IN\": 4, \"LOG_OUT_WIDTH\": 3}",
                           &c, &e),
                     VTA_OK);
    assert_string_equal(c.target, "pynq");
    assert_int_equal(c.log_batch, 1);
    assert_int_equal(c.log_wgt_buff_size, 17);
}

static void prints_what_it_reads(void **state)
{
    vta_config c, again;
    vta_error e;
    char text[600];
    (void)state;
    assert_int_equal(vta_config_preset("ultra96_4x8_i8w8a32_15_16_16_18", &c, &e), VTA_OK);
    size_t n = vta_config_print(&c, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_int_equal(parse(text, &again, &e), VTA_OK);
    assert_true(vta_config_equal(&c, &again));
    assert_string_equal(again.target, "ultra96");
    assert_int_equal(vta_config_bitstream(&c, text, sizeof text), 23);
    assert_string_equal(text, "4x8_i8w8a32_15_16_16_18");
}

static void refuses_bad_json(void **state)
{
    (void)state;
    expect_error("{\"LOG_BLOCK\": 4", VTA_BAD_TEXT, "test.json:1:");
    expect_error("[]", VTA_BAD_TEXT, "an object");
    expect_error("{\"LOG_BLOCK\": 4, \"LOG_BLOCK\": 5}", VTA_BAD_TEXT, "LOG_BLOCK");
    expect_error("{\"LOG_BLOCKS\": 4}", VTA_BAD_CONFIG, "unknown key 'LOG_BLOCKS'");
    expect_error("{\"TARGET\": \"vcu118\"}", VTA_BAD_CONFIG, "no target 'vcu118'");
    expect_error("{\"TARGET\": 3}", VTA_BAD_CONFIG, "TARGET");
    expect_error("{\"LOG_BATCH\": -1}", VTA_BAD_CONFIG, "LOG_BATCH");
    expect_error("{\"LOG_BATCH\": 1.5}", VTA_BAD_CONFIG, "LOG_BATCH");
    expect_error("{\"LOG_BATCH\": 7}", VTA_BAD_CONFIG, "LOG_BATCH: must lie between 0 and 6");
    expect_error("{\"LOG_BLOCK\": 4, \"LOG_BLOCK_OUT\": 5}", VTA_BAD_CONFIG, "LOG_BLOCK_OUT follows from other keys");
}

/* A configuration for each rule that breaks it and, of the rules before it in the table, none. */
static void names_every_rule(void **state)
{
    static const struct {
        const char *rule, *json;
    } cases[] = {
        {"buffer-depth", "{\"LOG_WGT_BUFF_SIZE\": 7}"},
        {"sram-index", "{\"LOG_UOP_BUFF_SIZE\": 19}"},
        {"uop-bits", "{\"LOG_ACC_BUFF_SIZE\": 18}"},
        {"gemm-word", "{\"LOG_ACC_BUFF_SIZE\": 18}"},
        {"alu-word", "{\"LOG_ACC_BUFF_SIZE\": 18, \"LOG_WGT_BUFF_SIZE\": 16}"},
        {"loop-word", "{\"LOG_UOP_BUFF_SIZE\": 16}"},
        {"element-page", "{\"LOG_BLOCK\": 7}"},
        {"element-byte", "{\"LOG_BLOCK\": 0, \"LOG_INP_WIDTH\": 0, \"LOG_INP_BUFF_SIZE\": 6, \"LOG_ACC_BUFF_SIZE\": "
                         "6, \"LOG_WGT_BUFF_SIZE\": 6}"},
        {"accumulator-width", "{\"LOG_ACC_WIDTH\": 3, \"LOG_ACC_BUFF_SIZE\": 15, \"LOG_INP_WIDTH\": 4}"},
    };
    static const char *const rules[] = {
#define X(name, condition, why) name,
        VTA_CONFIG_RULES(X)
#undef X
    };
    (void)state;
    assert_int_equal(sizeof cases / sizeof *cases, sizeof rules / sizeof *rules);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char part[60];
        assert_string_equal(cases[i].rule, rules[i]);
        snprintf(part, sizeof part, "test.json: %s: ", cases[i].rule);
        if (strcmp(rules[i], "gemm-word") != 0) /* follows from uop-bits where A >= I: it cannot break alone */
            expect_error(cases[i].json, VTA_BAD_CONFIG, part);
        else
            expect_error(cases[i].json, VTA_BAD_CONFIG, "uop-bits");
    }
}

static void knows_the_presets(void **state)
{
    static const char *const good[] = {
#define X(name, bus, clock, burst, base) name,
        VTA_TARGETS(X)
#undef X
            "1x16_i8w8a32_15_15_18_17",
        "4x8_i8w8a32_15_16_16_18",
        "de10nano_1x16_i8w8a32_15_15_18_17",
        "2x16_i8w4a32_15_15_17_17",
    };
    static const char *const bad[] = {"",
                                      "pynq_",
                                      "vcu",
                                      "1x16",
                                      "3x16_i8w8a32_15_15_18_17",
                                      "1x16_i8w8a32_15_15_18_17_",
                                      "1x16_i8w8a32_15_15_18",
                                      "1x99999999999999999999_i8w8a32_15_15_18_17",
                                      "pynqpynqpynqpynqpynq"};
    vta_config c;
    vta_error e;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(vta_config_preset(good[i], &c, &e), VTA_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(vta_config_preset(bad[i], &c, &e), VTA_BAD_CONFIG);
    assert_int_equal(vta_config_preset("pynq_1x16_i8w8a32_15_15_18_18", &c, &e), VTA_BAD_CONFIG);
    assert_non_null(strstr(e.text, "uop-bits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derives_the_published_values),
        cmocka_unit_test(reads_json),
        cmocka_unit_test(prints_what_it_reads),
        cmocka_unit_test(refuses_bad_json),
        cmocka_unit_test(names_every_rule),
        cmocka_unit_test(knows_the_presets),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
