/* SPDX-License-Identifier: Apache-2.0 */
/* Loop IR: text there and back, errors of the reader and the verifier with their places, facts for the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tir/build.h"
#include "tir/facts.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/tir.h"
#include "tir/verify.h"

static const char *print(compiler *c, const tir_module *m)
{
    writer w;
    writer_init(&w, &c->mem);
    tir_print(&w, m);
    return w.data;
}

static tir_module *parse(compiler *c, const char *text)
{
    tir_module *m;
    if (!tir_parse(c, "case", text, strlen(text), &m))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return m;
}

/* --- text --- */

/* Bodies that print as they stand, over A: float32[16, 16], B: int8[256], N: int64[1], M: bool[4]. */
static const char *const bodies[] = {
    "A[0, 1] = 1.5",
    "A[255] = -0.0",
    "A[0, 0] = inf",
    "A[0, 0] = nan",
    "B[0] = -128",
    "for (i: int64, -3, 4) {\n    B[(i + 3)] = cast(int8, i)\n  }",
    "for (i: int32, 0, 4) \"parallel\" {\n    B[i] = 1\n  }",
    "for (i: int64, 0, 4) \"unrolled\" {\n    for (j: int64, i, 8) \"vthread\" {\n      B[j] = 1\n    }\n  }",
    "B[ramp(0, 1, 16)] = broadcast(3, 16)",
    "let v: int8x4 = (int8x4*)B[ramp(0, 2, 4)];\n  B[ramp(8, 1, 4)] = (v + broadcast(1, 4))",
    "let x: float64 = cast(float64, (float32*)A[1, 2]);\n  A[0, 0] = cast(float32, exp((x*0.1)))",
    "if ((int64*)N[0] > 3) {\n    B[0] = 1\n  } else {\n    B[1] = 2\n  }",
    "if ((cast(int32, (int8*)B[0]) == 7) && !(bool*)M[0]) {\n    M[1] = ((bool*)M[2] || False)\n  }",
    "attr [IterVar(i0: int32, (nullptr), \"DataPar\", \"\")] \"pragma_dma_copy\" = 1;\n  for (i: int64, 0, 4) {\n    "
    "B[i] = 0\n  }",
    "attr [\"text ] with [ a bracket\"] \"key\" = \"value\" {\n  }",
    "attr [x[0]] \"coproc_scope\" = int32(2) {\n    B[0] = 1\n    B[1] = 1\n  }",
    "attr [t: Pointer(float32)] \"storage_scope\" = \"local.acc_buffer\";\n  allocate(t, float32, [(int64*)N[0], 4], "
    "align=64);\n  t[0, 0] = (float32*)A[0, 0]",
    "allocate(t, float32, [4], strides=[2], offset=1) {\n    t[0] = 0.0\n    t[1] = 1.0\n  }",
    "attr [gone: Pointer(float32)] \"storage_scope\" = \"local.inp_buffer\";\n  B[0] = 0",
    "@tir.call_extern(\"VTAUopLoopBegin\", 1024, \"name\", 1.5, (int8*)B[0], dtype=int64)",
    "evaluate((@tir.call_extern(\"f\") + 1))",
    "@tir.call_extern(\"f\", &A[1, 2], &A, &B[3], &A[5])",
    "let p: handle = @tir.vta.command_handle(dtype=handle);\n  @tir.call_extern(\"f\", p, dtype=handle)",
    "@tir.vta.uop_push(0, 1, &B[2], 0, 0, 2, 1, -16)",
    "@tir.vta.coproc_sync()",
    "attr [vta] \"coproc_uop_scope\" = \"VTAPushGEMMOp\";\n  @tir.vta.coproc_dep_pop(1, 2, dtype=int64)",
    "assert(((int64*)N[0] <= 16), -3, \"n is \\\"too\\\" large\")\n  B[0] = 1",
    "B[0] = select(((int8*)B[1] < 0), (0 - (int8*)B[1]), max((int8*)B[1], 3))",
    "A[0, 0] = fma((float32*)A[0, 1], 2.0, pow((float32*)A[0, 2], 0.5))",
    "M[0] = isnan(float16(0.5))",
    "M[0] = (int16(5) != -5)",
    "B[(floordiv((int64*)N[0], 16)*16)] = ((((int8*)B[0] % 3) << 2) ^ bitnot((int8*)B[1]))"};

static void text_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        compiler c;
        compiler_init(&c);
        char *text =
            arena_printf(&c.mem,
                         "primfn(A: handle, B: handle, N: handle, M: handle) -> ()\n"
                         "  attr = {\"global_symbol\": \"f\", \"inputs\": 1, \"macs\": 12, \"schedule\": \"split C.i "
                         "16 -> a b\\nfuse\"}\n"
                         "  buffers = {A: Buffer(float32, [16, 16], align=16),\n             B: Buffer(int8, [256]),\n"
                         "             N: Buffer(int64, [1]),\n             M: Buffer(bool, [4])} {\n  %s\n}\n",
                         bodies[i]);
        tir_module *m = parse(&c, text);
        assert_string_equal(print(&c, m), text);
        if (!tir_verify(&c, m->funcs.data[0]))
            fail_msg("%s: %s", bodies[i], diags_print(&c.diags, &c.mem));
        compiler_free(&c);
    }
}

static void names_are_made_unique(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    const int64_t dims[] = {64};
    const tir_buffer *b = tir_buffer_static(&c, "select", DT_I64, 1, dims, SCOPE_GLOBAL);
    tir_stmt *loops[3];
    for (int i = 0; i < 3; i++) {
        const tir_var *v = tir_new_var(&c, i == 2 ? "i_1" : "i", TIR_I64);
        tir_expr_ref at = tir_varref(&c, v);
        loops[i] = tir_for(&c, v, tir_i64(&c, 0), tir_i64(&c, 4), FOR_SERIAL, tir_store(&c, b, 1, &at, at));
    }
    writer w;
    writer_init(&w, &c.mem);
    tir_print_stmt(&w, tir_seq(&c, 3, loops));
    assert_string_equal(w.data, "for (i: int64, 0, 4) {\n  select_[i] = i\n}\n"
                                "for (i_1: int64, 0, 4) {\n  select_[i_1] = i_1\n}\n"
                                "for (i_1_1: int64, 0, 4) {\n  select_[i_1_1] = i_1_1\n}\n");
    compiler_free(&c);
}

/* --- errors --- */

static const struct {
    const char *body, *error;
} errors[] = {
    {"C[0] = 1", "case:4:1: 'C' is not the name of a buffer"},
    {"A[0, 0, 0] = 1.0", "has 2 dimensions, not 3"},
    {"A[0, 0] = (int8*)B[0]", "another type"},
    {"A[0, 0] = (float16*)A[0, 1]", "gives float32 here, not float16"},
    {"A[i, 0] = 1.0", "case:4:3: 'i' is not defined here"},
    {"B[0] = 300", "case:4:8: this number does not fit its type"},
    {"B[0] = 1.5", "cannot have the type"},
    {"B[1.0] = 1", "cannot have the type"},
    {"for (i: float32, 0, 4) { }", "int32 or int64"},
    {"for (A: int64, 0, 4) { A[0, 0] = 1.0 }", "not the name of a buffer"},
    {"for (i: int64, 0, 4) \"sideways\" { }", "unknown kind of loop 'sideways'"},
    {"for (max: int64, 0, 4) { }", "'max' is a word of the language"},
    {"if 3 { }", "a condition is a bool"},
    {"M[0] = ((int8*)B[0] < (float32*)A[0, 0])", "cannot join int8 and float32"},
    {"A[0, 0] = ((float32*)A[0, 0] % 2.0)", "operator '%' cannot join"},
    {"B[ramp(0, 1, 16)] = 1", "another type"},
    {"B[ramp(0, 1, 300)] = broadcast(1, 300)", "2 to 256 lanes"},
    {"B[ramp(0, 1, 16)] = broadcast(1, 8)", "another type"},
    {"allocate(t, handle, [4]); t[0] = 1", "cannot hold this type"},
    {"allocate(t, int8, [4]; t[0] = 1", "expected ')'"},
    {"allocate(t, int8, [4, 4], strides=[1]); t[0] = 1", "1 strides for a buffer of 2"},
    {"attr [x \"key\" = 1;", "without ']'"},
    {"attr [x] key = 1;", "expected the key"},
    {"let x: int8 = (int64*)N[0];", "another type"},
    {"@tir.something(1)", "only @tir.call_extern"},
    {"@tir.vta.uop_push 1", "expected '('"},
    {"@tir.vta.uop_push(1 2)", "expected ','"},
    {"@tir.call_extern(f)", "the name of the function"},
    {"@tir.call_extern(\"f\", &i)", "not the name of a buffer"},
    {"@tir.call_extern(\"f\", &A[1, 2, 3])", "2 dimensions, not 3"},
    {"@tir.call_extern(\"f\", &B[ramp(0, 1, 4)])", "that of one element"},
    {"B[0] = (&B + &B)", "cannot join handle and handle"},
    {"B[0] = cast(int8, &B)", "cast needs"},
    {"B[0] = sqrt((int8*)B[0])", "'sqrt' is not for int8"},
    {"B[0] = (int8(1) + ", "expected"},
    {"B[0] = 1 }", "expected 'primfn'"},
    {"B[0] = select(1, 2, 3)", "select needs a bool"},
    /* found by the verifier */
    {"B[256] = 1", "an index of 'B' (dimension 0 of extent 256) lies outside: 256 [verify]"},
    {"A[-1, 0] = 1.0", "lies outside: -1 [verify]"},
    {"A[256] = 1.0", "lies outside: 256 [verify]"},
    {"@tir.call_extern(\"f\", &A[16, 0])", "lies outside: 16 [verify]"},
    {"for (i: int64, 0, 2) { @tir.call_extern(\"f\", &B[(i*256)]) }", "lies outside: (i*256) [verify]"},
    {"@tir.vta.coproc_dep_push(1, 2, 3)", "wrong types: @tir.vta.coproc_dep_push(1, 2, 3) [verify]"},
    {"for (i: int64, 0, 17) { A[i, 0] = 1.0 }", "extent 16) lies outside: i [verify]"},
    {"for (i: int64, 0, 16) { for (j: int64, 0, 16) { B[((i*16) + (j + 1))] = 1 } }", "lies outside"},
    {"for (i: int64, 0, 4) { B[(floordiv(i, 2) + 256)] = 1 }", "lies outside"},
};

static void errors_have_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        compiler c;
        tir_module *m = NULL;
        compiler_init(&c);
        char *text = arena_printf(&c.mem,
                                  "primfn(A: handle, B: handle, N: handle, M: handle) -> ()\n  attr = {\"inputs\": 1}\n"
                                  "  buffers = {A: Buffer(float32, [16, 16]), B: Buffer(int8, [256]), N: Buffer(int64, "
                                  "[1]), M: Buffer(bool, [4])} {\n%s\n}\n",
                                  errors[i].body);
        bool ok = tir_parse(&c, "case", text, strlen(text), &m) && tir_verify(&c, m->funcs.data[0]);
        const char *said = diags_print(&c.diags, &c.mem);
        if (ok || !strstr(said, errors[i].error) || !strstr(said, "case:"))
            fail_msg("%s: %s", errors[i].body, ok ? "accepted" : said);
        compiler_free(&c);
    }
}

static void guarded_accesses_are_not_judged(void **state)
{
    static const char *const fine[] = {"if ((int64*)N[0] > 3) { B[300] = 1 }",
                                       "B[0] = select(((int64*)N[0] > 3), (int8*)B[300], 1)",
                                       "for (i: int64, 0, (int64*)N[0]) { B[(i + 256)] = 1 }",
                                       "for (i: int64, 0, 17) { if (i < 16) { A[i, 0] = 1.0 } }",
                                       "for (i: int64, 0, 17) { A[min(i, 15), 0] = 1.0 }",
                                       "for (i: int64, 0, 16) { A[(i - i), (i + (15 - i))] = 1.0 }"};
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        compiler c;
        compiler_init(&c);
        tir_module *m = parse(
            &c,
            arena_printf(
                &c.mem,
                "primfn(A: handle, B: handle, N: handle) -> ()\n  attr = {\"inputs\": 1}\n"
                "  buffers = {A: Buffer(float32, [16, 16]), B: Buffer(int8, [256]), N: Buffer(int64, [1])} {\n%s\n}\n",
                fine[i]));
        if (!tir_verify(&c, m->funcs.data[0]))
            fail_msg("%s: %s", fine[i], diags_print(&c.diags, &c.mem));
        compiler_free(&c);
    }
}

static void double_definitions_are_found(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    const int64_t dims[] = {8};
    const tir_buffer *b = tir_buffer_static(&c, "B", DT_I64, 1, dims, SCOPE_GLOBAL);
    const tir_var *v = tir_new_var(&c, "i", TIR_I64);
    tir_expr_ref at = tir_varref(&c, v);
    tir_stmt *loop = tir_for(&c, v, tir_i64(&c, 0), tir_i64(&c, 8), FOR_SERIAL, tir_store(&c, b, 1, &at, at)),
             *two[] = {loop, loop};
    tir_func f = {.name = "f", .params = &b, .n_params = 1, .index_type = DT_I64, .loc = src_loc_none(), .body = loop};
    assert_true(tir_verify(&c, &f));
    f.body = tir_seq(&c, 2, two);
    assert_false(tir_verify(&c, &f));
    f.body = tir_store(&c, b, 1, &at, at);
    assert_false(tir_verify(&c, &f)); /* outside its scope */
    assert_int_equal(c.diags.errors, 2);
    compiler_free(&c);
}

/* Cuts and garbles valid text everywhere: errors, never anything else. */
static void broken_text(void **state)
{
    static const char text[] = "primfn(A: handle) -> ()\n  attr = {\"inputs\": 0, \"index_type\": int32}\n  buffers = "
                               "{A: Buffer(float32, [16], align=16)} {\n"
                               "  attr [t: Pointer(int8)] \"storage_scope\" = \"local\";\n  allocate(t, int8, [4]);\n  "
                               "for (i: int32, 0, 4) \"unrolled\" {\n"
                               "    if ((i < 3) && True) { t[i] = cast(int8, select((i > 1), (float32*)A[i], -1.5)) } "
                               "else { assert(False, 3, \"x\") }\n  }\n}\n";
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        for (int ch = 0; ch < 6; ch++) {
            compiler c;
            tir_module *m;
            char copy[sizeof text];
            compiler_init(&c);
            memcpy(copy, text, sizeof text);
            copy[i] = "(]9\"\xff,"[ch];
            size_t len = ch == 0 ? i : sizeof text - 1;
            bool ok = tir_parse(&c, "case", copy, len, &m);
            assert_true(ok || c.diags.errors > 0);
            assert_true(!ok || (print(&c, m) &&
                                (tir_verify(&c, m->funcs.len ? m->funcs.data[0]
                                                             : &(tir_func){.name = "", .body = tir_seq(&c, 0, NULL)}) ||
                                 c.diags.errors)));
            compiler_free(&c);
        }
    }
}

/* --- facts for the plan --- */

static const char *const fact_text =
    "primfn(A: handle, B: handle, C: handle) -> ()\n  attr = {\"inputs\": 2}\n"
    "  buffers = {A: Buffer(float32, [8, 8]), B: Buffer(float32, [8, 8]), C: Buffer(float32, [8, 8])} {\n%s\n}\n";

static const struct {
    const char *body;
    bool alias; /* of C with A */
    int64_t parallel;
    int scratch; /* allocations, * 10 + those per part */
} facts[] = {
    {"for (i: int64, 0, 8) { for (j: int64, 0, 8) { C[i, j] = ((float32*)A[i, j] + (float32*)B[j, i]) } }", true, 1, 0},
    {"for (i: int64, 0, 8) { for (j: int64, 0, 8) { C[i, j] = ((float32*)A[j, i] + 1.0) } }", false, 1, 0},
    {"for (f: int64, 0, 64) { C[f] = ((float32*)A[f] + 1.0) }", true, 1, 0},
    {"for (f: int64, 0, 64) \"parallel\" { C[f] = ((float32*)A[f] + (float32*)A[0]) }", false, 64, 0},
    {"for (i: int64, 0, 8) \"parallel\" { C[ramp((i*8), 1, 8)] = (float32x8*)A[ramp((i*8), 1, 8)] }", true, 8, 0},
    {"for (i: int64, 0, 8) { C[ramp((i*4), 1, 8)] = (float32x8*)A[ramp((i*4), 1, 8)] }", false, 1,
     0}, /* lanes overlap */
    {"for (i: int64, 0, 8) { for (k: int64, 0, 2) { C[0, i] = ((float32*)A[0, i] + 1.0) } }", false, 1,
     0}, /* written twice */
    {"for (i: int64, 0, 4) { C[i] = (float32*)A[i] } for (i: int64, 4, 60) { C[i] = ((float32*)A[i]*2.0) }", true, 1,
     0},
    {"for (i: int64, 0, 5) { C[i] = (float32*)A[i] } for (i: int64, 4, 60) { C[i] = ((float32*)A[i]*2.0) }", false, 1,
     0},
    {"for (i: int64, 0, 8) { C[i] = 0.0 for (k: int64, 0, 8) { C[i] = ((float32*)C[i] + (float32*)A[i, k]) } }", false,
     1, 0},
    {"for (i: int64, 0, 8) \"parallel\" { C[i] = (float32*)B[i] } for (i: int64, 0, 8) \"parallel\" { C[(i + 8)] = "
     "(float32*)A[(i + 8)] }",
     true, 1, 0},
    {"allocate(t, float32, [8]); for (i: int64, 0, 8) \"parallel\" { allocate(u, float32, [8]) { u[0] = 1.0 C[i] = "
     "(float32*)u[0] } }",
     true, 8, 21},
    {"allocate(t, float32, [8]) { t[0] = 1.0 for (i: int64, 0, 8) \"parallel\" { C[i] = (float32*)t[0] } }", true, 1,
     10},
    {"attr [t: Pointer(float32)] \"storage_scope\" = \"local\"; allocate(t, float32, [8]) { t[0] = (float32*)A[0, 0] "
     "C[0] = (float32*)t[0] }",
     false, 1, 0},
    {"let x: float32 = (float32*)A[0]; C[0] = x", false, 1, 0},
};

static void facts_for_the_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        compiler c;
        const tir_scratch *scratch;
        compiler_init(&c);
        tir_module *m = parse(&c, arena_printf(&c.mem, fact_text, facts[i].body));
        const tir_func *f = m->funcs.data[0];
        uint32_t n = tir_find_scratch(&c, f, &scratch), per_part = 0;
        for (uint32_t k = 0; k < n; k++)
            per_part += scratch[k].per_part;
        if (tir_can_alias(&c, f, 0, 2) != facts[i].alias)
            fail_msg("may alias: %d: %s", !facts[i].alias, facts[i].body);
        if (tir_parallel_extent(&c, f) != facts[i].parallel || (int)(n * 10 + per_part) != facts[i].scratch)
            fail_msg("parallel %d, scratch %u.%u: %s", (int)tir_parallel_extent(&c, f), n, per_part, facts[i].body);
        compiler_free(&c);
    }
}

static void equal_functions(void **state)
{
    static const char *const texts[] = {"for (i: int64, 0, 8) { C[i] = (float32*)A[i] }",
                                        "for (row: int64, 0, 8) { C[row] = (float32*)A[row] }",
                                        "for (i: int64, 0, 9) { C[i] = (float32*)A[i] }",
                                        "for (i: int64, 0, 8) { C[i] = (float32*)B[i] }",
                                        "for (i: int64, 0, 8) \"parallel\" { C[i] = (float32*)A[i] }",
                                        "for (i: int64, 0, 8) { C[i] = 1.0 }",
                                        "for (i: int64, 0, 8) { C[i] = 2.0 }",
                                        "attr [x] \"pragma_a\" = 1; for (i: int64, 0, 8) { C[i] = 2.0 }",
                                        "attr [y] \"pragma_a\" = 1; for (i: int64, 0, 8) { C[i] = 2.0 }"};
    enum { N = sizeof texts / sizeof *texts };
    compiler c;
    tir_func *f[N];
    (void)state;
    compiler_init(&c);
    for (size_t i = 0; i < N; i++)
        f[i] = parse(&c, arena_printf(&c.mem, fact_text, texts[i]))->funcs.data[0];
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++) {
            bool same = i == k || i + k == 1; /* the first two differ in names only */
            assert_int_equal(tir_func_equal(&c, f[i], f[k]), same);
            assert_int_equal(tir_hash(&c, f[i]) == tir_hash(&c, f[k]), same);
        }
    compiler_free(&c);
}

static void unknown_passes(void **state)
{
    (void)state;
    compiler c;
    compiler_init(&c);
    tir_module *m = parse(&c, arena_printf(&c.mem, fact_text, "C[0] = 1.0"));
    assert_false(tir_run_passes(&c, m, "unroll,unrol", false, NULL));
    assert_int_equal(diags_exit_status(&c.diags), 2);
    assert_non_null(strstr(diags_print(&c.diags, &c.mem), "unknown pass 'unrol' on loops"));
    assert_non_null(strstr(diags_print(&c.diags, &c.mem), "rewrite-storage"));
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_there_and_back),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(errors_have_places),
        cmocka_unit_test(guarded_accesses_are_not_judged),
        cmocka_unit_test(double_definitions_are_found),
        cmocka_unit_test(broken_text),
        cmocka_unit_test(facts_for_the_plan),
        cmocka_unit_test(equal_functions),
        cmocka_unit_test(unknown_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
