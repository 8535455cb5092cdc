/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose results' extents only the data tells, one node at a time by the interpreter, which refuses every
 * access outside of a buffer: first the kernel that computes the extents, then the one that fills results of them. Then
 * the second alone, with extents and operands by chance: it must fill its results or end with a status. */
#include "abi/package.h"
#include "te/lower.h"
#include "te/te_op.h"
#include "tir/interpret.h"
#include "tir/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_VALUES 16
#define MOST_COUNT  4096

typedef struct tensor {
    int64_t dims[TYPE_MAX_RANK];
    int64_t rank, count;
    uint8_t data[MOST_COUNT * 8];
} tensor;

typedef struct fixture {
    compiler c;
    graph_node *n;
    uint32_t n_symbols;
    dim symbols[MOST_VALUES];
    int64_t values[MOST_VALUES];
    tensor in[MOST_VALUES], out[MOST_VALUES];
} fixture;

static void require(fixture *f, bool ok)
{
    if (!ok)
        fail_msg("%s", diags_print(&f->c.diags, &f->c.mem));
}

/* --- texts of tensors: "[2, 3] 0 1 2 3 4 5" --- */

static void read_tensor(dtype dt, const char *text, tensor *t)
{
    char *p = NULL;
    *t = (tensor){.count = 1};
    assert_int_equal(*text++, '[');
    for (; *text != ']'; text = *p == ',' ? p + 1 : p) {
        int64_t d = strtoll(text, &p, 10);
        t->count *= t->dims[t->rank++] = d;
    }
    p = (char *)(uintptr_t)(text + 1);
    assert_true(t->count <= MOST_COUNT);
    for (int64_t i = 0; i < t->count; i++) {
        uint8_t *to = t->data + (size_t)i * dtype_bytes(dt);
        if (dtype_is_float(dt))
            dtype_store_f64(dt, to, strtod(p, &p));
        else
            dtype_store_i64(dt, to, strtoll(p, &p, 10));
    }
}

static void print_tensor(dtype dt, const tensor *t, writer *w)
{
    w_str(w, w->len ? " | [" : "[");
    for (int64_t i = 0; i < t->rank; i++)
        w_fmt(w, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    w_str(w, "]");
    for (int64_t i = 0; i < t->count; i++)
        w_fmt(w, " %g", dtype_load_f64(dt, t->data + (size_t)i * dtype_bytes(dt)));
}

/* --- symbols --- */

static void set_symbol(fixture *f, dim d, int64_t v)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        if (f->symbols[i] == d) {
            f->values[i] = v;
            return;
        }
    }
    f->symbols[f->n_symbols] = d;
    f->values[f->n_symbols++] = v;
}

static dim known(void *ctx, const char *name)
{
    fixture *f = ctx;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        if (strcmp(dim_symbol_name(f->symbols[i]), name) == 0)
            return dim_const(&f->c, f->values[i]);
    return NULL;
}

static int64_t value_of(fixture *f, dim d)
{
    int64_t v = 0;
    assert_true(dim_is_const(dim_substitute(&f->c, d, known, f), &v));
    return v;
}

/* The shape that the type has now; false: larger than a tensor of these tests. */
static bool shape_now(fixture *f, const type *t, tensor *out)
{
    out->count = 1;
    out->rank = t->shape.rank;
    for (int32_t i = 0; i < t->shape.rank; i++) {
        int64_t d = value_of(f, t->shape.dims[i]);
        out->dims[i] = d;
        if (d < 0 || d > MOST_COUNT || out->count * d > MOST_COUNT)
            return false;
        out->count *= d;
    }
    return true;
}

/* --- kernels --- */

static void setup(fixture *f, const char *text)
{
    f->n_symbols = 0;
    compiler_init(&f->c);
    graph_register_builtin_ops(&f->c);
    te_register_builtin_ops(&f->c);
    graph_module *m = NULL;
    require(f, graph_parse(&f->c, "case", text, strlen(text), &m) && graph_infer(&f->c, m));
    graph_func *gf = graph_module_find(m, "main");
    f->n = vec_last(&gf->nodes);
    assert_true(f->n->n_inputs <= MOST_VALUES && f->n->n_outputs <= MOST_VALUES);
}

/* Lowers what `hook` makes of the node, runs it on the operands and gives its results' bytes. */
static int32_t run(fixture *f, te_compute_hook hook, uint32_t n_out, void *const *results)
{
    te_graph *g = te_graph_new(&f->c);
    te_tensor *in[MOST_VALUES] = {NULL}, *out[MOST_VALUES] = {NULL};
    void *params[3 * MOST_VALUES];
    uint32_t n_params = 0;
    for (uint32_t i = 0; i < f->n->n_inputs; i++) {
        const graph_value *v = f->n->inputs[i];
        if (v)
            in[i] = te_placeholder(g, v->name, v->type.dt, (uint32_t)v->type.shape.rank, te_shape(g, &v->type));
    }
    require(f, te_check_demands(g, f->n, hook == f->n->op->te->compute) && hook(g, f->n, in, out));
    te_set_outputs(g, n_out, out);
    tir_func *loops = NULL;
    int32_t status = 0;
    require(f, te_lower(g, te_sched_new(g), "kernel", &loops));
    require(f, tir_verify(&f->c, loops));
    for (uint32_t i = 0; i < g->symbols.len; i++) /* one cell each */
        for (uint32_t k = 0; k < f->n_symbols; k++)
            if (strcmp(dim_symbol_name(f->symbols[k]), g->symbols.data[i].var->name) == 0)
                params[n_params++] = &f->values[k];
    for (uint32_t i = 0; i < f->n->n_inputs; i++)
        if (in[i])
            params[n_params++] = f->in[i].data;
    for (uint32_t i = 0; i < n_out; i++)
        params[n_params++] = results[i];
    assert_int_equal(n_params, loops->n_params);
    require(f, tir_interpret(&f->c, loops, params, &status));
    return status;
}

static int32_t run_extents(fixture *f)
{
    const char *own[MOST_VALUES];
    int64_t values[MOST_VALUES];
    void *to[MOST_VALUES] = {NULL};
    uint32_t n = graph_own_symbols(f->n, MOST_VALUES, own);
    assert_true(n > 0 && n <= MOST_VALUES);
    assert_non_null(f->n->op->te->extents);
    for (uint32_t i = 0; i < n; i++)
        to[i] = &values[i];
    int32_t status = run(f, f->n->op->te->extents, n, to);
    for (uint32_t i = 0; i < n && status == 0; i++)
        set_symbol(f, dim_symbol(&f->c, own[i], -1), values[i]);
    return status;
}

static int32_t run_data(fixture *f)
{
    void *to[MOST_VALUES] = {NULL};
    for (uint32_t i = 0; i < f->n->n_outputs; i++) {
        if (!shape_now(f, &f->n->outputs[i]->type, &f->out[i]))
            return PACKAGE_STATUS_SHAPE;
        memset(f->out[i].data, 0x5A, sizeof f->out[i].data);
        to[i] = f->out[i].data;
    }
    return run(f, f->n->op->te->compute, f->n->n_outputs, to);
}

/* Operands from texts; lone symbols of their types take the extents that are there. Constants keep theirs. */
static void read_operands(fixture *f, const char *text)
{
    for (uint32_t i = 0; i < f->n->n_inputs; i++) {
        const graph_value *v = f->n->inputs[i];
        const tensor_data *t = graph_constant(v);
        if (!v)
            continue;
        if (t) {
            f->in[i] = (tensor){.count = t->count, .rank = t->rank};
            for (int64_t k = 0; k < t->count; k++)
                memcpy(f->in[i].data + (size_t)k * dtype_bytes(t->dt), tensor_element(t, k), dtype_bytes(t->dt));
            continue;
        }
        assert_non_null(text);
        read_tensor(v->type.dt, text, &f->in[i]);
        assert_int_equal(f->in[i].rank, v->type.shape.rank);
        for (int32_t a = 0; a < v->type.shape.rank; a++)
            if (dim_symbol_name(v->type.shape.dims[a]))
                set_symbol(f, v->type.shape.dims[a], f->in[i].dims[a]);
        text = strchr(text, '|');
        text = text ? text + 2 : NULL;
    }
}

static const struct {
    const char *graph, *operands, *want; /* want: the results, or "status N" */
} cases[] = {
#include "te_extents.def"
};

static void check_case(size_t i)
{
    fixture *f = calloc(1, sizeof *f);
    writer w;
    assert_non_null(f);
    setup(f, cases[i].graph);
    read_operands(f, cases[i].operands);
    const char *own[1];
    int32_t status = graph_own_symbols(f->n, 1, own) ? run_extents(f) : 0;
    status = status ? status : run_data(f);
    writer_init(&w, &f->c.mem);
    if (status)
        w_fmt(&w, "status %d", (int)status);
    for (uint32_t k = 0; k < f->n->n_outputs && status == 0; k++)
        print_tensor(f->n->outputs[k]->type.dt, &f->out[k], &w);
    if (strcmp(w.data, cases[i].want) != 0)
        fail_msg("case %d\n%s\n%s\nhave %s\nwant %s", (int)i, cases[i].graph, cases[i].operands, w.data, cases[i].want);
    compiler_free(&f->c);
    free(f);
}

static void known_results(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(i);
}

/* --- by chance --- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Mostly small numbers, and the ends of the range now and then. */
static int64_t any_number(uint32_t *state)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1000000007, -1, INT64_MAX - 1, INT64_MAX, 1LL << 40};
    uint32_t r = next_random(state) % 10;
    return r == 0 ? ends[next_random(state) % 7] : (int64_t)(next_random(state) % 12) - 4;
}

static void random_operands(fixture *f, uint32_t *state)
{
    for (uint32_t i = 0; i < f->n->n_inputs; i++) {
        const graph_value *v = f->n->inputs[i];
        if (!v || graph_constant(v))
            continue;
        for (int32_t a = 0; a < v->type.shape.rank; a++)
            if (dim_symbol_name(v->type.shape.dims[a]) && !known(f, dim_symbol_name(v->type.shape.dims[a])))
                set_symbol(f, v->type.shape.dims[a], next_random(state) % 5);
        (void)shape_now(f, &v->type, &f->in[i]);
        for (int64_t k = 0; k < f->in[i].count; k++) {
            uint8_t *to = f->in[i].data + (size_t)k * dtype_bytes(v->type.dt);
            if (dtype_is_float(v->type.dt))
                dtype_store_f64(v->type.dt, to, (double)any_number(state));
            else
                dtype_store_i64(v->type.dt, to, v->type.dt == DT_BOOL ? any_number(state) & 1 : any_number(state));
        }
    }
}

/* Results of the kernel are complete or there is a status; extents are those that were computed, or by chance. */
static void check_chance(size_t i, uint32_t *state)
{
    fixture *f = calloc(1, sizeof *f);
    const char *own[MOST_VALUES];
    assert_non_null(f);
    setup(f, cases[i].graph);
    read_operands(f, cases[i].operands);
    f->n_symbols = 0;
    random_operands(f, state);
    uint32_t n = graph_own_symbols(f->n, MOST_VALUES, own);
    bool computed = n > 0 && next_random(state) % 2;
    int32_t status = computed ? run_extents(f) : 0;
    for (uint32_t k = 0; k < n && !computed; k++)
        set_symbol(f, dim_symbol(&f->c, own[k], -1), next_random(state) % 6);
    for (uint32_t k = 0; k < n && status == 0; k++) { /* what every kernel checks of its cells */
        dim d = dim_symbol(&f->c, own[k], -1);
        int64_t v = value_of(f, d), bound = dim_bound(d);
        if (v < 0 || (bound >= 0 && v > bound))
            status = PACKAGE_STATUS_SHAPE;
    }
    status = status ? status : run_data(f);
    if (status && status != PACKAGE_STATUS_SHAPE && status != PACKAGE_STATUS_INDEX)
        fail_msg("case %d: status %d", (int)i, (int)status);
    compiler_free(&f->c);
    free(f);
}

static void stays_inside(void **unused)
{
    uint32_t state = 4711;
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int round = 0; round < 60; round++)
            check_chance(i, &state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_results), cmocka_unit_test(stays_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
