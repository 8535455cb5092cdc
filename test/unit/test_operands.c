/* SPDX-License-Identifier: Apache-2.0 */
/* What operator rows ask of their operands: the texts that are refused, and, for every operand of every row, that a
 * wrong element type and a wrong rank are refused with a message that names operator, operand, what was found and what
 * is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/pipeline.h"
#include "graph/op.h"

#define MOST 16u

static int setup(void **state)
{
    compiler *c = calloc(1, sizeof *c);
    compiler_setup(c);
    c->diags.limit = 10000;
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    compiler_free(*state);
    free(*state);
    return 0;
}

static bool infer_first(compiler *c, const graph_node *n, type *out)
{
    return infer_same(c, n, out);
}

static void test_texts(void **state)
{
    static const char *const wrong[] = {"x x",   "x:f33",   "x:~y", "x? y",   "x* y", "x:[_", "x:[3]",
                                        "x:(2)", "x:[..]y", ":f32", "x::f32", "x,y",  "x:~x", "x:index[..,]"};
    compiler *c = *state;
    graph_op row = {.name = "bad", .min_out = 1, .max_out = 1, .infer = infer_first};
    assert_null(graph_register_op(c, &row)); /* says nothing */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t before = c->diags.errors;
        row.operands = wrong[i];
        if (graph_register_op(c, &row) || c->diags.errors != before + 1)
            fail_msg("\"%s\" is taken", wrong[i]);
    }
    row = (graph_op){.name = "good", .operands = "x:float[_,_] n?:index(1) rest*:~x[..,_]", .max_out = 1};
    row.infer = infer_first;
    const graph_op *op = graph_register_op(c, &row);
    assert_non_null(op);
    assert_int_equal(op->min_in, 1);
    assert_int_equal(op->max_in, -1);
    assert_ptr_equal(operand_of(op, 7), &op->operand_defs[2]);
    assert_null(operand_of(graph_find_op(c, "add"), 2));
}

/* --- every row --- */

static dtype fitting_dtype(const graph_op *op, const operand_def *d)
{
    switch (d->cls) {
    case OPERAND_ANY: return DT_F32;
    case OPERAND_INDEX: return DT_I64;
    case OPERAND_INT:
    case OPERAND_BITS: return DT_I32;
    case OPERAND_FLOAT:
    case OPERAND_NUMBER: return DT_F32;
    case OPERAND_DTYPE: return d->dt;
    case OPERAND_LIKE: return fitting_dtype(op, &op->operand_defs[d->like]);
    }
    return DT_NONE;
}

static type fitting(compiler *c, const graph_op *op, const operand_def *d)
{
    static const int64_t ones[TYPE_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return type_static(c, fitting_dtype(op, d), (uint32_t)d->rank, ones);
}

static graph_node *node_of(compiler *c, const graph_op *op)
{
    graph_value *in[MOST];
    graph_func *f = graph_func_new(graph_module_new(c), "main");
    uint32_t n = op->n_operands;
    assert_true(n < MOST);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        in[i] = graph_add_param(f, name, fitting(c, op, &op->operand_defs[i]));
    }
    return graph_new_node(f, op, n, in, 0, NULL, op->min_out > 0 ? (uint32_t)op->min_out : 1, NULL, src_loc_none());
}

static void expect_refusal(compiler *c, graph_node *n, uint32_t i, type wrong)
{
    char start[128], unlike[128]; /* the second one if the type has to be that of another operand */
    const operand_def *d = operand_of(n->op, i);
    type right = n->inputs[i]->type;
    uint32_t before = c->diags.errors;
    writer found;
    writer_init(&found, &c->mem);
    type_print(&found, &wrong);
    snprintf(start, sizeof start, "%s: operand %u, %s '%s', is %s; ", n->op->name, i, d->name,
             n->inputs[i]->name, found.data);
    snprintf(unlike, sizeof unlike, "%s: operand %s ('%s') is %s, but operand ", n->op->name, d->name,
             n->inputs[i]->name, dtype_name(wrong.dt));
    n->inputs[i]->type = wrong;
    bool taken = graph_infer_node(c, n);
    const char *text = c->diags.last ? c->diags.last->text : "";
    bool said = strncmp(text, start, strlen(start)) == 0 && strstr(text, " is needed");
    if (taken || c->diags.errors != before + 1 || !(said || strncmp(text, unlike, strlen(unlike)) == 0))
        fail_msg("%s operand %u as %s: %s", n->op->name, i, found.data, taken ? "taken" : text);
    n->inputs[i]->type = right;
}

static uint32_t check_operand(compiler *c, graph_node *n, uint32_t i)
{
    const operand_def *d = operand_of(n->op, i);
    type wrong = n->inputs[i]->type;
    uint32_t checked = 0;
    if (d->cls != OPERAND_ANY) {
        wrong.dt = d->cls == OPERAND_NUMBER ? DT_BOOL : dtype_is_int(wrong.dt) ? DT_F64 : DT_U8;
        expect_refusal(c, n, i, wrong);
        checked++;
    }
    int64_t dims[TYPE_MAX_RANK] = {2, 2};
    wrong = n->inputs[i]->type;
    switch (d->shape) {
    case OPERAND_ANY_SHAPE: return checked;
    case OPERAND_ONE_ELEMENT:
        expect_refusal(c, n, i, type_static(c, wrong.dt, 1, dims));
        dims[0] = 0;
        expect_refusal(c, n, i, type_static(c, wrong.dt, 1, dims));
        return checked + 2;
    case OPERAND_RANK:
    case OPERAND_RANK_OR_MORE:
        if (d->shape == OPERAND_RANK)
            expect_refusal(c, n, i, type_static(c, wrong.dt, (uint32_t)d->rank + 1, dims));
        expect_refusal(c, n, i, type_static(c, wrong.dt, (uint32_t)d->rank - 1, dims));
        return checked + 1;
    }
    return checked;
}

static void test_every_row(void **state)
{
    compiler *c = *state;
    uint32_t checked = 0;
    for (uint32_t k = 0; k < graph_op_count(c); k++) {
        graph_node *n = node_of(c, graph_op_at(c, k));
        assert_true(operands_check(c, n));
        for (uint32_t i = 0; i < n->n_inputs; i++)
            checked += check_operand(c, n, i);
    }
    assert_true(checked > 100); /* the table says something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_every_row, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
