/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/type but for dims: element types, shapes, types, constant tensors, attributes, targets. */
#include "base/file.h"
#include "type/attr.h"
#include "type/target.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- element types --- */

static void dtypes_have_one_table(void **state)
{
    (void)state;
    dtype t;
    for (int i = 0; i < DT_COUNT; i++) {
        assert_true(dtype_parse(dtype_name((dtype)i), &t) && t == (dtype)i);
        if (dtype_onnx_code((dtype)i) > 0)
            assert_true(dtype_from_onnx(dtype_onnx_code((dtype)i), &t) && t == (dtype)i);
        assert_int_equal(dtype_bytes((dtype)i), dtype_bits((dtype)i) / 8);
    }
    assert_false(dtype_parse("f33", &t));
    assert_int_equal(t, DT_NONE);
    assert_false(dtype_from_onnx(0, &t));  /* undefined */
    assert_false(dtype_from_onnx(-1, &t)); /* the code of types that ONNX lacks */
    assert_false(dtype_from_onnx(99, &t));
    assert_false(dtype_from_onnx(INT64_MAX, &t));
    assert_string_equal(dtype_c_name(DT_F16), "uint16_t");
    assert_string_equal(dtype_c_arith(DT_F16), "float");
    assert_int_equal(dtype_bytes(DT_I4), 0);
    assert_true(dtype_is_signed(DT_I8) && dtype_is_signed(DT_F16) && !dtype_is_signed(DT_U8) &&
                !dtype_is_signed(DT_BOOL));
    assert_true(dtype_is_int(DT_U64) && !dtype_is_int(DT_BOOL) && !dtype_is_int(DT_F32));
}

static void integer_ranges(void **state)
{
    (void)state;
    static const struct {
        dtype t;
        int64_t low, high;
    } cases[] = {{DT_I8, -128, 127},      {DT_U8, 0, 255}, {DT_I16, -32768, 32767},
                 {DT_U32, 0, UINT32_MAX}, {DT_BOOL, 0, 1}, {DT_I64, INT64_MIN, INT64_MAX},
                 {DT_U64, 0, INT64_MAX},  {DT_I4, -8, 7},  {DT_U2, 0, 3},
                 {DT_F32, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(dtype_min_int(cases[i].t) == cases[i].low);
        assert_true(dtype_max_int(cases[i].t) == cases[i].high);
    }
}

static void halves_survive_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        uint16_t u = (uint16_t)h;
        assert_int_equal(dtype_f32_to_f16(dtype_f16_to_f32(u)), u); /* NaN payloads too */
        assert_int_equal(dtype_f32_to_bf16(dtype_bf16_to_f32(u)), u);
        bool nan16 = (u & 0x7fff) > 0x7c00, nan_b = (u & 0x7fff) > 0x7f80;
        assert_int_equal(isnan(dtype_f16_to_f32(u)) != 0, nan16);
        assert_int_equal(isnan(dtype_bf16_to_f32(u)) != 0, nan_b);
    }
}

/* The value of a finite half from its definition. */
static double half_value(uint32_t h)
{
    int exponent = (int)(h >> 10 & 31);
    double fraction = (double)(h & 1023) / 1024.0;
    return exponent ? ldexp(1.0 + fraction, exponent - 15) : ldexp(fraction, -14);
}

static void halves_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) { /* between each half and the next: infinity counts as 65536 */
        double low = half_value(h), high = h == 0x7bff ? 65536.0 : half_value(h + 1), middle = (low + high) / 2;
        assert_true((double)dtype_f16_to_f32((uint16_t)h) == low);
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h), up = (uint16_t)(h + 1), out;
        const double at[] = {low, middle, nextafter(middle, 0.0), nextafter(middle, 1e9)};
        const uint16_t want[] = {(uint16_t)h, even, (uint16_t)h, up};
        for (size_t i = 0; i < COUNT(at);
             i++) { /* the neighbors of the middle are no floats: one rounding or a wrong one */
            dtype_store_f64(DT_F16, &out, at[i]);
            assert_int_equal(out, want[i]);
            dtype_store_f64(DT_F16, &out, -at[i]);
            assert_int_equal(out, want[i] | 0x8000);
        }
        assert_int_equal(dtype_f32_to_f16((float)middle), even);
        assert_int_equal(dtype_f32_to_f16(nextafterf((float)middle, 1e9f)), up);
        assert_int_equal(dtype_f32_to_f16(nextafterf((float)middle, 0.0f)), h);
    }
}

static void bf16_is_rounded_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f80; h++) {
        float low = dtype_bf16_to_f32((uint16_t)h);
        float high = h == 0x7f7f ? INFINITY : dtype_bf16_to_f32((uint16_t)(h + 1));
        double top = isinf(high) ? ldexp(1.0, 128) : (double)high, middle = ((double)low + top) / 2;
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h), out;
        dtype_store_f64(DT_BF16, &out, middle);
        assert_int_equal(out, even);
        dtype_store_f64(DT_BF16, &out, nextafter(middle, 0.0));
        assert_int_equal(out, h);
        dtype_store_f64(DT_BF16, &out, nextafter(middle, 1e300));
        assert_int_equal(out, h + 1);
        assert_int_equal(dtype_f32_to_bf16((float)middle), even);
    }
    uint16_t out; /* 2^60 + 2^52 is a middle; one more cannot be said by a double */
    dtype_store_i64(DT_BF16, &out, ((int64_t)1 << 60) + ((int64_t)1 << 52));
    assert_int_equal(out, 0x5d80);
    dtype_store_i64(DT_BF16, &out, ((int64_t)1 << 60) + ((int64_t)1 << 52) + 1);
    assert_int_equal(out, 0x5d81);
    dtype_store_i64(DT_BF16, &out, -(((int64_t)1 << 60) + ((int64_t)1 << 52) + 1));
    assert_int_equal(out, 0xdd81);
}

static void special_floats(void **state)
{
    (void)state;
    assert_int_equal(dtype_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(dtype_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(dtype_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(dtype_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(dtype_f32_to_f16(3.4e38f), 0x7c00);
    assert_int_equal(dtype_f32_to_f16(1e-45f), 0);
    assert_int_equal(dtype_f32_to_f16(-1e-45f), 0x8000);
    assert_int_equal(dtype_f32_to_bf16(3.4028235e38f), 0x7f80);
    uint32_t low_payload = 0x7f800001; /* a NaN whose payload does not fit stays a NaN */
    float f;
    memcpy(&f, &low_payload, sizeof f);
    assert_true(isnan(dtype_f16_to_f32(dtype_f32_to_f16(f))));
    assert_true(isnan(dtype_bf16_to_f32(dtype_f32_to_bf16(f))));
    uint16_t h;
    static const dtype halves[] = {DT_F16, DT_BF16};
    for (size_t i = 0; i < COUNT(halves); i++) {
        dtype_store_f64(halves[i], &h, 1e300);
        assert_true(isinf(dtype_load_f64(halves[i], &h)));
        dtype_store_f64(halves[i], &h, -1e-300);
        assert_true(dtype_load_f64(halves[i], &h) == 0.0 && signbit(dtype_load_f64(halves[i], &h)));
        dtype_store_f64(halves[i], &h, (double)NAN);
        assert_true(isnan(dtype_load_f64(halves[i], &h)));
    }
}

static void elements_as_integers(void **state)
{
    (void)state;
    static const struct {
        dtype t;
        int64_t in, out; /* stored, then loaded */
    } cases[] = {
        {DT_I8, 127, 127},
        {DT_I8, 128, -128},
        {DT_U8, 256, 0},
        {DT_U8, -1, 255},
        {DT_I16, 40000, -25536},
        {DT_U32, -1, UINT32_MAX},
        {DT_I64, INT64_MIN, INT64_MIN},
        {DT_U64, -1, -1},
        {DT_BOOL, 2, 1},
        {DT_BOOL, 256, 1},
        {DT_BOOL, 0, 0},
        {DT_F32, -3, -3},
        {DT_F16, 1 << 20, INT64_MAX},
        {DT_F64, INT64_MAX, INT64_MAX},
        {DT_F32, INT64_MIN, INT64_MIN},
        {DT_F32, ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1, ((int64_t)1 << 60) + ((int64_t)1 << 37)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t bytes[17];
        memset(bytes, 0xaa, sizeof bytes);
        dtype_store_i64(cases[i].t, bytes + 1, cases[i].in); /* unaligned */
        assert_true(dtype_load_i64(cases[i].t, bytes + 1) == cases[i].out);
        assert_int_equal(bytes[0], 0xaa);
        assert_int_equal(bytes[1 + dtype_bytes(cases[i].t)], 0xaa);
    }
}

static void elements_as_doubles(void **state)
{
    (void)state;
    static const struct {
        dtype t;
        double in;
        int64_t out;
    } cases[] = {
        {DT_I8, 127.9, 127},
        {DT_I8, 1e9, 127},
        {DT_I8, -1e9, -128},
        {DT_I8, -1.9, -1},
        {DT_U8, -5.0, 0},
        {DT_U8, 255.5, 255},
        {DT_I64, 1e30, INT64_MAX},
        {DT_I64, -1e30, INT64_MIN},
        {DT_U64, 1e30, -1},
        {DT_U64, -1.0, 0},
        {DT_U64, 9223372036854775808.0, INT64_MIN},
        {DT_BOOL, 0.5, 1},
        {DT_BOOL, -0.0, 0},
        {DT_I32, (double)NAN, 0},
        {DT_U64, (double)NAN, 0},
        {DT_U32, 4294967295.0, UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t bytes[8];
        dtype_store_f64(cases[i].t, bytes, cases[i].in);
        assert_true(dtype_load_i64(cases[i].t, bytes) == cases[i].out);
    }
    uint64_t most = UINT64_MAX;
    assert_true(dtype_load_f64(DT_U64, &most) == 18446744073709551615.0);
    double nan_value = (double)NAN, big = 1e19, low = -1e19;
    assert_int_equal(dtype_load_i64(DT_F64, &nan_value), 0);
    assert_true(dtype_load_i64(DT_F64, &big) == INT64_MAX);
    assert_true(dtype_load_i64(DT_F64, &low) == INT64_MIN);
}

/* --- shapes and types --- */

static bool read_type(compiler *c, const char *text, type *out)
{
    lexer l;
    lexer_init(&l, &c->mem, c->names, &c->diags, "t", text, strlen(text));
    return type_parse(c, &l, out) && !l.failed && l.tok.kind == TOK_END;
}

static type parse_type(compiler *c, const char *text)
{
    type t;
    if (!read_type(c, text, &t))
        fail_msg("%s: %s", text, diags_print(&c->diags, &c->mem));
    return t;
}

static const char *type_text(compiler *c, const type *t)
{
    writer w;
    writer_init(&w, &c->mem);
    type_print(&w, t);
    return w.data;
}

static void types_are_text(void **state)
{
    (void)state;
    static const char *const cases[] = {"f32[1, 3, n]",
                                        "i64[]",
                                        "f32[*]",
                                        "seq<f32[*]>",
                                        "opt<i64[2]>",
                                        "seq<seq<f32[]>>",
                                        "?",
                                        "bool[2*n + 1]",
                                        "u8[\"a b\", 0]",
                                        "string[3]",
                                        "opt<seq<seq<i4[7]>>>",
                                        "f16[floordiv(n, 2), max(m, n)]",
                                        "i8[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"};
    compiler c;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        type t = parse_type(&c, cases[i]);
        assert_string_equal(type_text(&c, &t), cases[i]);
        for (size_t k = 0; k < COUNT(cases); k++) {
            type u = parse_type(&c, cases[k]);
            assert_int_equal(type_equal(&t, &u), i == k);
        }
    }
    compiler_free(&c);
}

static void type_syntax_errors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"f33[1]", "t:1:1: unknown type 'f33'"},
        {"f32", "t:1:4: expected '['"},
        {"f32[1", "t:1:6: expected ','"},
        {"f32[1 2]", "t:1:7: expected ','"},
        {"f32[-1]", "a dimension cannot be negative"},
        {"f32[,]", "t:1:5: expected a dimension"},
        {"seq<f32[]", "t:1:10: expected '>'"},
        {"i8[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]", "more than 16 dimensions"},
        {"", "t:1:1: expected a type"},
    };
    compiler c;
    type t;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_false(read_type(&c, cases[i][0], &t));
        if (!strstr(diags_print(&c.diags, &c.mem), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], diags_print(&c.diags, &c.mem));
    }
    writer w;
    writer_init(&w, &c.mem);
    for (int i = 0; i < 10000; i++)
        w_str(&w, "seq<");
    assert_false(read_type(&c, w.data, &t));
    compiler_free(&c);
}

static void shapes_count(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t count, bytes;
        bool is_static;
    } cases[] = {
        {"f32[]", 1, 4, true},
        {"f32[2, 3]", 6, 24, true},
        {"f32[2, 0, 9223372036854775807, 9223372036854775807]", 0, 0, true},
        {"f32[4611686018427387904, 2]", -1, -1, true},
        {"u8[4611686018427387904, 2]", -1, -1, true},
        {"u8[1152921504606846976, 1]", 1152921504606846976, -1, true}, /* the bits overflow */
        {"u8[1073741824, 1024]", 1099511627776, 1099511627776, true},
        {"f32[n]", -1, -1, false},
        {"f32[*]", -1, -1, false},
        {"i4[3]", 3, 2, true},
        {"string[3]", 3, -1, true},
    };
    compiler c;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t dims[TYPE_MAX_RANK];
        type t = parse_type(&c, cases[i].text);
        assert_true(shape_count(t.shape) == cases[i].count);
        assert_true(type_bytes(&t) == cases[i].bytes);
        assert_int_equal(shape_is_static(t.shape), cases[i].is_static);
        assert_int_equal(shape_get(t.shape, dims), cases[i].is_static);
    }
    type t = parse_type(&c, "f32[2, n, n + 1]"), scalar = parse_type(&c, "f32[]"), free_rank = parse_type(&c, "f32[*]");
    dim n = dim_symbol(&c, "n", -1), want = dim_mul(&c, dim_const(&c, 2), dim_add(&c, dim_mul(&c, n, n), n));
    assert_ptr_equal(shape_elements(&c, t.shape), want);
    assert_true(dim_is(shape_elements(&c, scalar.shape), 1));
    assert_false(shape_equal(free_rank.shape, free_rank.shape));
    assert_true(type_equal(&free_rank, &free_rank));
    const int64_t dims[] = {4, 5};
    type made = type_static(&c, DT_U8, 2, dims), read = parse_type(&c, "u8[4, 5]");
    assert_true(type_equal(&made, &read));
    compiler_free(&c);
}

static void shapes_broadcast(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"f32[2, 3]", "f32[3]", "f32[2, 3]"}, {"f32[]", "f32[4]", "f32[4]"},
        {"f32[]", "f32[]", "f32[]"},          {"f32[2, 1]", "f32[1, 3]", "f32[2, 3]"},
        {"f32[n]", "f32[1]", "f32[n]"},       {"f32[n]", "f32[n]", "f32[n]"},
        {"f32[n]", "f32[5]", "f32[5]"},       {"f32[n]", "f32[0]", "f32[0]"},
        {"f32[0]", "f32[1]", "f32[0]"},       {"f32[n]", "f32[m]", "f32[max(m, n)]"},
        {"f32[*]", "f32[3]", "f32[*]"},       {"f32[8, 1, 6, 1]", "f32[7, 1, 5]", "f32[8, 7, 6, 5]"},
        {"f32[2]", "f32[3]", NULL},           {"f32[0]", "f32[2]", NULL},
        {"f32[2, 1]", "f32[8, 4, 3]", NULL},  {"f32[n]", "f32[min(1, m)]", "f32[n*min(1, m)]"},
        {"f32[n]", "f32[min(1, n)]", "f32[n]"},
    };
    compiler c;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        type a = parse_type(&c, cases[i][0]), b = parse_type(&c, cases[i][1]);
        shape s, t;
        assert_int_equal(shape_broadcast(&c, a.shape, b.shape, &s), cases[i][2] != NULL);
        assert_int_equal(shape_broadcast(&c, b.shape, a.shape, &t), cases[i][2] != NULL);
        if (!cases[i][2])
            continue;
        type st = type_tensor(DT_F32, s), tt = type_tensor(DT_F32, t);
        assert_string_equal(type_text(&c, &st), cases[i][2]);
        assert_string_equal(type_text(&c, &tt), cases[i][2]);
    }
    compiler_free(&c);
}

/* --- constant tensors --- */

static bool read_tensor(compiler *c, const char *file, const char *type_name, const char *text, const tensor_data **out)
{
    lexer l;
    type t = parse_type(c, type_name);
    lexer_init(&l, &c->mem, c->names, &c->diags, file, text, strlen(text));
    return tensor_parse(c, &l, &t, out) && !l.failed && l.tok.kind == TOK_END;
}

static const char *tensor_text(compiler *c, const tensor_data *t)
{
    writer w;
    writer_init(&w, &c->mem);
    tensor_print(&w, t);
    return w.data;
}

static void tensors_are_text(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"f32[2, 2]", "dense [1.0, 2.5, -0.0, 1e+20]", NULL},
        {"f32[3]", "dense [inf, -inf, nan]", NULL},
        {"i64[2]", "dense [-9223372036854775808, 9223372036854775807]", NULL},
        {"u64[1]", "dense [18446744073709551615]", NULL},
        {"bool[2]", "dense [0, 1]", NULL},
        {"f16[2]", "dense [0.5, 65504.0]", NULL},
        {"bf16[1]", "dense [3.0]", NULL},
        {"f32[0]", "dense []", NULL},
        {"f32[]", "dense [3.0]", NULL},
        {"f32[1000, 1000, 1000, 1000]", "splat 0.5", NULL},
        {"u8[]", "splat 255", NULL},
        {"u64[3]", "splat 18446744073709551615", NULL},
        {"f32[2]", "hex \"0000803f00000040\"", "dense [1.0, 2.0]"},
        {"f32[2]", "dense [1, 2]", "dense [1.0, 2.0]"},
        {"i32[1]", "dense [0x10]", "dense [16]"},
        {"f32[1]", "hex \"0100c07f\"", NULL}, /* a NaN with a payload is kept */
        {"f32[1]", "hex \"0000c0ff\"", NULL}, /* and one with a sign */
        {"f32[9]", "splat hex \"0100c07f\"", NULL},
        {"bool[1]", "hex \"02\"", NULL},
        {"f8e4m3fn[2]", "hex \"7f01\"", NULL}, /* no numbers for it yet */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        const tensor_data *t, *u;
        compiler_init(&c);
        if (!read_tensor(&c, "t", cases[i][0], cases[i][1], &t))
            fail_msg("%s %s: %s", cases[i][0], cases[i][1], diags_print(&c.diags, &c.mem));
        assert_string_equal(tensor_text(&c, t), cases[i][2] ? cases[i][2] : cases[i][1]);
        assert_true(read_tensor(&c, "t", cases[i][0], tensor_text(&c, t), &u));
        assert_true(tensor_equal(t, u));
        assert_true(tensor_hash(t) == tensor_hash(u));
        type want = parse_type(&c, cases[i][0]), is = tensor_type(&c, t);
        assert_true(type_equal(&want, &is));
        compiler_free(&c);
    }
}

static void tensor_syntax_errors(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"u8[1]", "dense [256]", "t:1:8: 256 does not fit into u8"},
        {"u8[1]", "dense [-1]", "-1 does not fit into u8"},
        {"bool[1]", "dense [2]", "2 does not fit into bool"},
        {"i32[1]", "dense [1.5]", "expected an integer"},
        {"i64[1]", "dense [9223372036854775808]", "does not fit into a signed 64-bit"},
        {"f32[2]", "dense [1.0]", "expected ','"},
        {"f32[1]", "dense [1.0, 2.0]", "expected ']'"},
        {"f32[1000000000]", "dense [1.0]", "more elements than the text"},
        {"f32[n]", "dense [1.0]", "static tensor"},
        {"seq<f32[1]>", "dense [1.0]", "static tensor"},
        {"string[1]", "dense [1]", "static tensor"},
        {"f8e5m2[1]", "dense [1.0]", "numbers of type f8e5m2 cannot be written"},
        {"f32[1]", "hex \"000080\"", "expected 8 hexadecimal digits"},
        {"f32[1]", "hex \"000080zf\"", "byte 3 of the constant"},
        {"f32[1]", "sparse", "expected splat, dense, hex or file"},
        {"f32[1]", "file 3", "expected a string"},
        {"f32[1]", "file \"/nonexistent/w\" 0", "No such file"},
        {"f32[1]", "splat x", "expected a number"},
        {"u8[1000000000]", "hex \"00\"", "more elements than the text"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        compiler c;
        const tensor_data *t;
        compiler_init(&c);
        assert_false(read_tensor(&c, "t", cases[i][0], cases[i][1], &t));
        assert_int_equal(c.diags.errors, 1);
        if (!strstr(diags_print(&c.diags, &c.mem), cases[i][2]))
            fail_msg("%s %s: %s", cases[i][0], cases[i][1], diags_print(&c.diags, &c.mem));
        compiler_free(&c);
    }
}

static void large_tensors_print_as_hex_or_file(void **state)
{
    (void)state;
    compiler c;
    char folder[] = "/tmp/lathe-test-XXXXXX";
    uint8_t data[1024];
    const tensor_data *t, *u;
    compiler_init(&c);
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    assert_true(compiler_write_file(&c, path_join(&c.mem, folder, "w.bin"), data, sizeof data));
    const char *text_file = path_join(&c.mem, folder, "graph.txt");

    const int64_t dims[] = {65};
    t = tensor_dense(&c, DT_U8, 1, dims, data);
    assert_memory_equal(tensor_text(&c, t), "hex \"00070e", 10);
    assert_true(read_tensor(&c, "t", "u8[65]", tensor_text(&c, t), &u));
    assert_true(tensor_equal(t, u));

    assert_true(read_tensor(&c, text_file, "f32[100]", "file \"w.bin\" 3", &t)); /* relative to the text, unaligned */
    assert_memory_equal(t->data, data + 3, 400);
    assert_int_equal(t->offset, 3);
    assert_string_equal(tensor_text(&c, t), "file \"w.bin\" 3");
    const uint8_t *aligned = tensor_bytes(&c.mem, t);
    assert_int_equal((uintptr_t)aligned % 64, 0);
    assert_memory_equal(aligned, data + 3, 400);
    assert_true(read_tensor(&c, text_file, "u8[1024]", "file \"w.bin\" 0", &t));
    assert_false(read_tensor(&c, text_file, "u8[1024]", "file \"w.bin\" 1", &t));
    assert_non_null(strstr(c.diags.last->text, "end beyond it"));
    assert_false(read_tensor(&c, text_file, "u8[1]", "file \"w.bin\" -1", &t));
    assert_false(read_tensor(&c, text_file, "u8[1]", "file \"w.bin\" 9223372036854775807", &t));
    assert_true(file_remove_tree(&c.diags, &c.temps, folder));
    compiler_free(&c);
}

static void splats_equal_their_dense_form(void **state)
{
    (void)state;
    compiler c;
    const int64_t dims[] = {7, 100}, other[] = {100, 7}, flat[] = {700};
    float half = 0.5f;
    compiler_init(&c);
    const tensor_data *splat = tensor_splat(&c, DT_F32, 2, dims, &half);
    assert_int_equal(splat->count, 700);
    assert_int_equal(tensor_size(splat), 2800);
    const uint8_t *bytes = tensor_bytes(&c.mem, splat);
    for (int i = 0; i < 700; i++)
        assert_memory_equal(bytes + 4 * i, &half, 4);
    const tensor_data *dense = tensor_dense(&c, DT_F32, 2, dims, bytes);
    assert_ptr_equal(tensor_bytes(&c.mem, dense), bytes); /* aligned already */
    assert_true(tensor_equal(splat, dense) && tensor_equal(dense, splat));
    assert_true(tensor_hash(splat) == tensor_hash(dense));
    assert_false(tensor_equal(splat, tensor_splat(&c, DT_F32, 2, other, &half)));
    assert_true(tensor_get_f64(splat, 699) == 0.5 && tensor_get_f64(dense, 699) == 0.5);

    uint8_t *changed = arena_copy(&c.mem, bytes, 2800, 4);
    changed[2799] ^= 1;
    assert_false(tensor_equal(splat, tensor_dense(&c, DT_F32, 2, dims, changed)));
    assert_false(tensor_equal(dense, tensor_dense(&c, DT_F32, 2, dims, changed)));

    const tensor_data *reshaped = tensor_reshape(&c, dense, 1, flat);
    assert_int_equal(reshaped->rank, 1);
    assert_ptr_equal(reshaped->data, dense->data);
    const int64_t list[] = {-1, 2, INT64_MIN};
    const tensor_data *ints = tensor_from_i64s(&c, 3, list);
    assert_true(tensor_get_i64(ints, 0) == -1 && tensor_get_i64(ints, 2) == INT64_MIN);
    assert_true(tensor_get_i64(tensor_scalar_i64(&c, DT_U8, 200), 0) == 200);
    assert_true(tensor_get_f64(tensor_scalar_f64(&c, DT_F16, 0.1), 0) == (double)dtype_f16_to_f32(0x2e66));
    assert_int_equal(tensor_from_i64s(&c, 0, NULL)->count, 0);
    assert_true(tensor_equal(tensor_from_i64s(&c, 0, NULL), tensor_from_i64s(&c, 0, NULL)));
    compiler_free(&c);
}

static void impossible_tensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t dims[3];
        bool ok;
        int64_t count;
    } cases[] = {
        {{2, 3, 4}, true, 24},
        {{2, -3, 4}, false, 0},
        {{INT64_MAX, 2, 1}, false, 0},
        {{INT64_MAX, 2, 0}, true, 0},
        {{INT64_MAX, 1, 1}, true, INT64_MAX},
    };
    compiler c;
    uint8_t zero = 0;
    compiler_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t n = 0;
        assert_int_equal(tensor_count(3, cases[i].dims, &n), cases[i].ok);
        if (cases[i].ok)
            assert_true(n == cases[i].count);
    }
    const tensor_data *huge = tensor_splat(&c, DT_U8, 3, cases[4].dims, &zero);
    assert_null(tensor_bytes(&c.mem, huge));
    assert_true(tensor_hash(huge) != 0);
    compiler_free(&c);
}

/* --- attributes and targets --- */

static void attributes_compare_by_value(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    int64_t ints[] = {1, 2, 3};
    const double floats[] = {0.0, 1.0}, minus[] = {-0.0, 1.0};
    const char *const strings[] = {"a", "b"}, *const others[] = {"a", "c"};
    const attr all[] = {
        attr_int(&c, "k", 1),
        attr_int(&c, "k", 2),
        attr_int(&c, "j", 1),
        attr_float(&c, "k", 1.0),
        attr_float(&c, "k", (double)NAN),
        attr_float(&c, "k", 0.0),
        attr_float(&c, "k", -0.0),
        attr_string(&c, "k", "1"),
        attr_dtype(&c, "k", DT_F32),
        attr_dtype(&c, "k", DT_F16),
        attr_ints(&c, "k", 3, ints),
        attr_ints(&c, "k", 2, ints),
        attr_ints(&c, "k", 0, NULL),
        attr_floats(&c, "k", 2, floats),
        attr_floats(&c, "k", 2, minus),
        attr_strings(&c, "k", 2, strings),
        attr_strings(&c, "k", 2, others),
        attr_tensor(&c, "k", tensor_scalar_i64(&c, DT_I64, 4)),
        attr_tensor(&c, "k", tensor_scalar_i64(&c, DT_I64, 5)),
        attr_func(&c, "k", NULL),
    };
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t k = 0; k < COUNT(all); k++)
            assert_int_equal(attr_equal(&all[i], &all[k]), i == k);
    attr copied = attr_ints(&c, "k", 3, ints), again = attr_tensor(&c, "k", tensor_scalar_i64(&c, DT_I64, 4));
    ints[0] = 9; /* the attribute has its own copy */
    assert_true(attr_equal(&copied, &all[10]));
    assert_true(attr_equal(&again, &all[17]));
    compiler_free(&c);
}

static void targets_are_found_by_name(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    char *names = arena_strdup(&c.mem, target_names(&c)), *rest = names;
    size_t found = 0;
    for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        const target *t = target_find(name);
        assert_non_null(t);
        assert_ptr_equal(target_find(t->name), t); /* native is one of the others */
        if (t->variants) /* the machine that a module runs on says how */
            continue;
        /* cortex-m contracts where the firmware's own flags name a processor that can */
        assert_int_equal(strstr(t->cflags, "-ffp-contract=fast") != NULL, t->fma || t->address_bits == 32);
        assert_true(t->workers >= 1 && t->stack_limit > 0);
        const cpu_model *m = target_cpu(t);
        assert_non_null(m);
        assert_true(m->fma > 0 && m->loads > 0 && m->issue >= m->fma && m->latency > 0 && m->transform > 0);
        assert_true(m->l1_bytes < m->l2_bytes && m->l2_bytes < m->l3_bytes && m->memory_bytes < m->far_bytes);
        assert_true(t->vector_bytes == 0 || (t->cpu && m->tile_regs <= t->vector_regs));
        found++;
    }
    compiler_free(&c);
    assert_true(found > 20);
    assert_true(!cpu_model_here() || target_find(cpu_model_here())); /* every row that is recognised has a target */
    assert_null(target_find("native")->variants); /* one machine, not whatever a module runs on */
    static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "generic"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        assert_ptr_equal(target_with_features(target_find(levels[i]), 0), target_find(levels[i]));
    assert_ptr_equal(target_with_features(target_find("x86-64-v4"), TARGET_AVX512_VNNI),
                     target_find("x86-64-v4-vnni"));
    assert_ptr_equal(target_with_features(target_find("x86-64-v3"), TARGET_AVX_VNNI), target_find("x86-64-v3-vnni"));
    assert_null(target_find("z80"));
    assert_ptr_equal(target_find(target_default()->name), target_default());
    assert_int_equal(target_find("generic")->vector_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_one_table),
        cmocka_unit_test(integer_ranges),
        cmocka_unit_test(halves_survive_a_round_trip),
        cmocka_unit_test(halves_are_rounded_to_nearest_even),
        cmocka_unit_test(bf16_is_rounded_to_nearest_even),
        cmocka_unit_test(special_floats),
        cmocka_unit_test(elements_as_integers),
        cmocka_unit_test(elements_as_doubles),
        cmocka_unit_test(types_are_text),
        cmocka_unit_test(type_syntax_errors),
        cmocka_unit_test(shapes_count),
        cmocka_unit_test(shapes_broadcast),
        cmocka_unit_test(tensors_are_text),
        cmocka_unit_test(tensor_syntax_errors),
        cmocka_unit_test(large_tensors_print_as_hex_or_file),
        cmocka_unit_test(splats_equal_their_dense_form),
        cmocka_unit_test(impossible_tensors_are_refused),
        cmocka_unit_test(attributes_compare_by_value),
        cmocka_unit_test(targets_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
