/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator under its default schedule gives what its plain loops give, by the interpreter, on random numbers: the
 * functions of test/golden/te/operators.txt, and every element-wise row of the operator table, for several targets. */
#include "abi/package.h"
#include "te/from_graph.h"
#include "te/te_op.h"
#include "te/text.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOLERANCE 2e-5 /* sums are made in another order */

static const target *target_of_test; /* of the last setup */

static void setup(compiler *c, const char *machine)
{
    compiler_init(c);
    graph_register_builtin_ops(c);
    te_register_builtin_ops(c);
    target_of_test = target_find(machine);
    assert_non_null(target_of_test);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Floats in [-1, 1]; integers in 0..2, which are also valid indices of every tensor that the tests index. */
static void fill(dtype dt, uint8_t *p, int64_t count, uint32_t *state)
{
    size_t size = dtype_bytes(dt);
    for (int64_t i = 0; i < count; i++) {
        if (dtype_is_float(dt))
            dtype_store_f64(dt, p + (size_t)i * size, (double)(next_random(state) % 2001) / 1000.0 - 1.0);
        else
            dtype_store_i64(dt, p + (size_t)i * size, next_random(state) % (dt == DT_BOOL ? 2 : 3));
    }
}

static void compare(const char *name, dtype dt, const uint8_t *want, const uint8_t *got, int64_t count)
{
    size_t size = dtype_bytes(dt);
    for (int64_t i = 0; i < count; i++) {
        double a = dtype_load_f64(dt, want + (size_t)i * size), b = dtype_load_f64(dt, got + (size_t)i * size);
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= TOLERANCE * (1 + fabs(a));
        if (!same || (!dtype_is_float(dt) && a != b))
            fail_msg("%s: element %lld is %g scheduled and %g plain", name, (long long)i, b, a);
    }
}

static void require(compiler *c, bool ok, const char *name)
{
    if (!ok)
        fail_msg("%s: %s", name, diags_print(&c->diags, &c->mem));
}

static tir_func *lower_fast(compiler *c, const graph_func *gf)
{
    tir_module m = {.c = c};
    tir_func *f = NULL;
    require(c, te_lower_func(c, gf, gf->name, target_of_test, NULL, &f), gf->name);
    vec_push(&c->mem, &m.funcs, f);
    require(c, tir_run_passes(c, &m, NULL, false, NULL) && tir_verify(c, f), gf->name);
    return f;
}

/* The computation prints, reads back and prints the same, loops of operators that are made of loops included. */
static void check_text(compiler *c, const graph_func *gf)
{
    writer first, again;
    te_graph *g = NULL;
    writer_init(&first, &c->mem);
    writer_init(&again, &c->mem);
    require(c, te_print_scheduled(c, gf, NULL, target_of_test, NULL, &first), gf->name);
    const char *end = strstr(first.data, "--- schedule");
    size_t len = end ? (size_t)(end - first.data) : first.len;
    require(c, te_parse(c, gf->name, first.data, len, &g), gf->name);
    te_print(&again, g);
    if (again.len != len || memcmp(again.data, first.data, len) != 0)
        fail_msg("%s: read back, it prints otherwise:\n%s\n%s", gf->name, first.data, again.data);
}

static void check_function(compiler *c, const graph_func *gf)
{
    check_text(c, gf);
    tir_func *plain = NULL, *fast = lower_fast(c, gf);
    require(c, te_lower_func(c, gf, gf->name, NULL, NULL, &plain) && tir_verify(c, plain), gf->name);
    assert_int_equal(plain->n_params, fast->n_params);
    void **a = calloc(plain->n_params, sizeof *a), **b = calloc(plain->n_params, sizeof *b);
    uint32_t state = 12345;
    int32_t status = 0;
    for (uint32_t i = 0; i < plain->n_params; i++) {
        const tir_buffer *p = plain->params[i];
        int64_t count = tir_buffer_count(p);
        assert_true(count >= 0);
        a[i] = b[i] = calloc((size_t)count + 1, dtype_bytes(p->dt));
        if (i < plain->n_inputs)
            fill(p->dt, a[i], count, &state);
        else
            b[i] = calloc((size_t)count + 1, dtype_bytes(p->dt));
    }
    require(c, tir_interpret(c, plain, a, &status) && status == 0, gf->name);
    require(c, tir_interpret(c, fast, b, &status) && status == 0, gf->name);
    for (uint32_t i = 0; i < plain->n_params; i++) {
        if (i >= plain->n_inputs) {
            compare(gf->name, plain->params[i]->dt, a[i], b[i], tir_buffer_count(plain->params[i]));
            free(b[i]);
        }
        free(a[i]);
    }
    free(a);
    free(b);
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 18);
    assert_non_null(f);
    assert_non_null(text);
    text[fread(text, 1, (1 << 18) - 1, f)] = 0;
    fclose(f);
    return text;
}

static void check_file(const char *machine)
{
    compiler c;
    setup(&c, machine);
    char *text = read_text("test/golden/te/operators.txt");
    graph_module *m = NULL;
    require(&c, graph_parse(&c, "operators.txt", text, strlen(text), &m) && graph_infer(&c, m), "operators.txt");
    assert_true(m->funcs.len > 90);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        check_function(&c, m->funcs.data[i]);
    free(text);
    compiler_free(&c);
}

static void operators_for_vectors(void **state)
{
    (void)state;
    check_file("x86-64-v3");
}

static void operators_without_vectors(void **state)
{
    (void)state;
    check_file("cortex-m");
}

/* Operands that broadcast: long rows, extents that no vector divides, one number, nothing. */
#define N_SHAPES 4
static const char *const shapes[N_SHAPES][3] = {{"[3, 64, 90]", "[64, 1]", "[3, 1, 90]"},
                                                {"[17, 1, 3]", "[1]", "[17, 3, 1]"},
                                                {"[]", "[]", "[]"},
                                                {"[0, 3]", "[3]", "[1, 3]"}};

/* Does the row take `dt` operands? Then its function, of broadcasting shapes where it has several inputs. */
static graph_module *row_of_type(compiler *c, const graph_op *op, const char *dt, const char *const *dims)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "func @row(");
    for (int32_t i = 0; i < op->min_in; i++)
        w_fmt(&w, "%s%%a%d: %s%s", i ? ", " : "", i, dt, dims[i]);
    w_fmt(&w, ") {\n  %%y = %s(", op->name);
    for (int32_t i = 0; i < op->min_in; i++)
        w_fmt(&w, "%s%%a%d", i ? ", " : "", i);
    w_str(&w, ")\n  return %y\n}\n");
    graph_module *m = NULL;
    if (graph_parse(c, "row", w.data, w.len, &m) && graph_infer(c, m))
        return m;
    return NULL;
}

static bool is_elementwise_row(const graph_op *op)
{
    if (op->cls > CLASS_BROADCAST || !op->te || op->min_in < 1 || op->min_in > 3 || op->min_out != 1)
        return false;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!op->defaults[i].name) /* required */
            return false;
    return true;
}

/* The type relations are generous: exp of an integer has a type, but no kernel. What has an extent that only the data
 * decides is for test_te_extents. */
static bool has_plain_form(compiler *c, const graph_func *gf)
{
    tir_func *plain = NULL;
    bool ok = te_lower_func(c, gf, gf->name, NULL, NULL, &plain) && tir_verify(c, plain);
    for (uint32_t i = 0; ok && i < plain->n_params; i++)
        ok = tir_buffer_count(plain->params[i]) >= 0;
    return ok;
}

static void every_elementwise_row(void **state)
{
    static const char *const types[] = {"f32", "f64", "f16", "i8", "u8", "i32", "i64", "u64", "bool"};
    (void)state;
    uint32_t checked = 0, floats = 0;
    compiler c;
    setup(&c, "x86-64-v3");
    for (uint32_t i = 0; i < graph_op_count(&c); i++) {
        const graph_op *op = graph_op_at(&c, i);
        for (size_t k = 0; is_elementwise_row(op) && k < N_SHAPES * sizeof types / sizeof *types; k++) {
            size_t t = k / N_SHAPES;
            graph_module *m = row_of_type(&c, op, types[t], shapes[k % N_SHAPES]);
            if (m && has_plain_form(&c, m->funcs.data[0])) {
                check_function(&c, m->funcs.data[0]);
                checked++;
                floats += t == 0;
            } else {
                diags_free(&c.diags);
                diags_init(&c.diags, NULL);
            }
        }
    }
    assert_true(floats > N_SHAPES * 55 && checked > N_SHAPES * 290);
    compiler_free(&c);
}

/* --- indices from data that name nothing --- */

static const char wild_text[] =
    "func @take(%x: f32[3, 4], %i: i64[5]) {\n  %y = take(%x, %i) {axis = 1}\n  return %y\n}\n"
    "func @elements(%x: f32[3, 4], %i: i64[3, 2]) {\n  %y = gather_elements(%x, %i) {axis = 1}\n  return %y\n}\n"
    "func @nd(%x: f32[3, 4], %i: i64[5, 2]) {\n  %y = gather_nd(%x, %i)\n  return %y\n}\n"
    "func @reverse(%x: f32[3, 4], %i: i64[4]) {\n  %y = reverse_sequence(%x, %i)\n  return %y\n}\n"
    "func @slice(%x: f32[3, 4], %i: i64[2]) {\n  %y = strided_slice(%x, %i, %i) : ? declared f32[3, 4]\n  return "
    "%y\n}\n"
    "func @steps(%x: f32[3, 4], %i: i64[2], %j: i64[2]) {\n"
    "  %y = strided_slice(%x, %i, %i, %i) : ? declared f32[2, 2]\n  return %y\n}\n"
    "func @write_elements(%x: f32[3, 4], %i: i64[3, 4]) {\n  %y = scatter_elements(%x, %i, %x)\n  return %y\n}\n"
    "func @write_nd(%x: f32[3, 4], %i: i64[5, 1], %u: f32[5, 4]) {\n  %y = scatter_nd(%x, %i, %u)\n  return %y\n}\n"
    "func @write_unpool(%x: f32[1, 1, 2, 2], %i: i64[1, 1, 2, 2]) {\n"
    "  %y = nn.max_unpool(%x, %i) {pool_size = [2, 2], strides = [2, 2]}\n  return %y\n}\n";

/* A status tells it; the interpreter refuses every access outside a buffer. */
static void check_wild(compiler *c, const graph_func *gf, int64_t wild)
{
    tir_func *f = lower_fast(c, gf);
    void *args[4] = {NULL};
    int32_t status = 0;
    for (uint32_t i = 0; i < f->n_params; i++) {
        int64_t count = tir_buffer_count(f->params[i]);
        args[i] = calloc((size_t)count + 1, dtype_bytes(f->params[i]->dt));
        assert_non_null(args[i]);
        for (int64_t k = 0; k < count && f->params[i]->dt == DT_I64; k++)
            ((int64_t *)args[i])[k] = wild;
    }
    require(c, tir_interpret(c, f, args, &status), gf->name);
    assert_int_equal(status, strcmp(gf->name, "slice") == 0 ? PACKAGE_STATUS_SHAPE : PACKAGE_STATUS_INDEX);
    for (uint32_t i = 0; i < f->n_params; i++)
        free(args[i]);
}

static void indices_outside(void **state)
{
    (void)state;
    static const int64_t wild[] = {16, -17, 1000000, -1000000, 3000000000, -3000000000};
    compiler c;
    setup(&c, "x86-64-v3");
    graph_module *m = NULL;
    require(&c, graph_parse(&c, "wild", wild_text, strlen(wild_text), &m) && graph_infer(&c, m), "wild");
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (size_t k = 0; k < sizeof wild / sizeof *wild; k++)
            check_wild(&c, m->funcs.data[i], wild[k]);
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_for_vectors),
        cmocka_unit_test(operators_without_vectors),
        cmocka_unit_test(every_elementwise_row),
        cmocka_unit_test(indices_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
