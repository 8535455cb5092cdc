/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the graph IR: registry, building, reading, changing, order. What text can say is in
 * test/golden/graph. */
#include "base/file.h"
#include "driver/pipeline.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "base/ptr_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    static compiler c;
    compiler_setup(&c);
    *state = &c;
    return 0;
}

static int teardown(void **state)
{
    compiler_free(*state);
    return 0;
}

static type f32_2(compiler *c)
{
    int64_t dims[1] = {2};
    return type_static(c, DT_F32, 1, dims);
}

static graph_module *parse(compiler *c, const char *text)
{
    graph_module *m = NULL;
    bool ok = graph_parse(c, "t", text, strlen(text), &m);
    if (!ok)
        print_error("%s\n", diags_print(&c->diags, &c->mem));
    assert_true(ok);
    return m;
}

static const char *print(compiler *c, const graph_module *m)
{
    writer w;
    writer_init(&w, &c->mem);
    graph_print(&w, m);
    return w.data;
}

/* --- registry --- */

static void test_builtin_rows(void **state)
{
    compiler *c = *state;
    assert_true(graph_op_count(c) > 100);
    for (uint32_t i = 0; i < graph_op_count(c); i++) {
        const graph_op *op = graph_op_at(c, i);
        assert_ptr_equal(graph_find_op(c, op->name), op);
        for (uint32_t k = 0; k < op->n_attrs; k++) { /* a default that can be read back, or none */
            assert_int_equal(op->defaults[k].name != NULL, op->attrs[k].default_text != NULL);
            if (op->defaults[k].name)
                assert_int_equal(op->defaults[k].kind, op->attrs[k].kind);
        }
    }
    const graph_op *relu = graph_find_op(c, "nn.leaky_relu");
    assert_int_equal(relu->n_attrs, 1);
    assert_string_equal(relu->attrs[0].name, "alpha");
    assert_string_equal(relu->attrs[0].default_text, "0.01");
    const graph_op *resize = graph_find_op(c, "resize");
    assert_string_equal(resize->attrs[0].default_text, "\"nearest\"");
    assert_null(graph_find_op(c, "no.such"));
}

static bool infer_anything(compiler *c, const graph_node *n, type *out)
{
    return infer_same(c, n, out);
}

static bool infer_scalar(compiler *c, const graph_node *n, type *out)
{
    (void)n;
    out[0] = type_static(c, DT_F32, 0, NULL);
    return true;
}

static void test_register(void **state)
{
    compiler *c = *state;
    graph_op row = {.name = "my.op",
                    .operands = "x",
                    .min_out = 1,
                    .max_out = 1,
                    .cls = CLASS_ELEMENTWISE,
                    .infer = infer_anything};
    row.schema = "k:int=-3 s:string=\"a b\"  l:ints=[1, 2] f:floats=[] t:tensor n:strings=[\"x\"] d:dtype=f32";
    const graph_op *op = graph_register_op(c, &row);
    assert_non_null(op);
    assert_int_equal(op->n_attrs, 7);
    assert_int_equal(op->defaults[0].u.i, -3);
    assert_string_equal(op->attrs[1].default_text, "\"a b\"");
    assert_string_equal(op->attrs[2].default_text, "[1, 2]");
    assert_int_equal(op->defaults[2].u.ints[1], 2);
    assert_null(op->attrs[4].default_text);
    assert_string_equal(op->defaults[5].u.strings[0], "x");
    assert_int_equal(op->defaults[6].u.dt, DT_F32);
    assert_null(graph_register_op(c, &row)); /* taken */
    assert_int_equal(diags_exit_status(&c->diags), 2);
}

static void test_register_refuses(void **state)
{
    static const char *const schemas[] = {"k",         "k:",          "k:number", "k:int=",   "k:int=x",
                                          "k:func=@f", "k:int k:int", "3:int",    "k:ints=[1"};
    compiler *c = *state;
    graph_op row = {.name = "bad", .operands = "x*", .max_out = 1, .infer = infer_anything};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        row.schema = schemas[i];
        assert_null(graph_register_op(c, &row));
        assert_int_equal(c->diags.errors, i + 1);
    }
    row.schema = "";
    row.name = "has space";
    assert_null(graph_register_op(c, &row));
    row.name = "9lives";
    assert_null(graph_register_op(c, &row));
    row = (graph_op){.name = "no_relation", .operands = "x?", .max_out = 1};
    assert_null(graph_register_op(c, &row));
    row = (graph_op){.name = "counts", .operands = "x", .min_out = 2, .max_out = 1, .infer = infer_anything};
    assert_null(graph_register_op(c, &row));
    assert_null(graph_find_op(c, "bad"));
}

/* --- building --- */

static void test_names(void **state)
{
    compiler *c = *state;
    graph_module *m = graph_module_new(c);
    graph_func *f = graph_func_new(m, "main"), *g = graph_func_new(m, "main"), *h = graph_func_new(m, "main");
    assert_string_equal(f->name, "main");
    assert_string_equal(g->name, "main_1");
    assert_string_equal(h->name, "main_2");
    assert_string_equal(graph_add_param(f, "x", f32_2(c))->name, "x");
    assert_string_equal(graph_add_param(f, "x_1", f32_2(c))->name, "x_1");
    assert_string_equal(graph_add_param(f, "x", f32_2(c))->name, "x_2");
    assert_string_equal(graph_add_param(f, "1", f32_2(c))->name, "1");
    assert_string_equal(graph_add_param(f, "", f32_2(c))->name, "0");
    assert_string_equal(graph_add_param(f, "", f32_2(c))->name, "2");
    assert_string_equal(graph_add_param(g, "x", f32_2(c))->name, "x"); /* unique in a function only */
    graph_module_remove(m, g);
    assert_int_equal(m->funcs.len, 2);
    assert_null(graph_module_find(m, "main_1"));
    assert_ptr_equal(graph_module_find(m, "main_2"), h);
}

static void test_attributes(void **state)
{
    compiler *c = *state;
    graph_func *f = graph_func_new(graph_module_new(c), "f");
    graph_value *x = graph_add_param(f, "x", f32_2(c));
    attr given[3] = {attr_int(c, "keepdims", 0), attr_int(c, "unknown", 1), attr_ints(c, "axes", 1, &(int64_t){-1})};
    graph_node *n = graph_add_node(f, graph_find_op(c, "sum"), 1, &x, 3, given, 1, NULL, src_loc_none());
    assert_int_equal(n->n_attrs, 3); /* the row's order; what it does not know goes last, for the verifier */
    assert_string_equal(n->attrs[0].name, "axes");
    assert_string_equal(n->attrs[1].name, "keepdims");
    assert_string_equal(n->attrs[2].name, "unknown");
    graph_set_attr(f, n, attr_int(c, "keepdims", 1)); /* the default */
    assert_int_equal(n->n_attrs, 2);
    assert_int_equal(graph_attr_int(n, "keepdims"), 1);
    assert_null(graph_attr(n, "nothing"));
    assert_false(graph_verify(c, f->module));
    const int64_t *axes = NULL;
    assert_int_equal(graph_attr_ints(n, "axes", &axes), 1);
    assert_int_equal(axes[0], -1);
}

static void test_emit(void **state)
{
    compiler *c = *state;
    graph_func *f = graph_func_new(graph_module_new(c), "f");
    graph_value *x = graph_add_param(f, "x", f32_2(c));
    graph_value *y = graph_emit(f, NULL, "exp", 1, &x, 0, NULL, src_loc_none());
    graph_value *z = graph_emit(f, y->def, "nn.relu", 1, &x, 0, NULL, src_loc_none());
    assert_ptr_equal(f->nodes.data[0], z->def); /* in front of y's node */
    assert_true(type_equal(&z->type, &x->type));
    assert_null(graph_emit(f, NULL, "no.such", 1, &x, 0, NULL, src_loc_none()));
    assert_null(graph_emit(f, NULL, "add", 1, &x, 0, NULL, src_loc_none()));
    graph_value *pair[2] = {x, NULL};
    assert_null(graph_emit(f, NULL, "add", 2, pair, 0, NULL, src_loc_none()));
    assert_int_equal(c->diags.errors, 3);
    assert_int_equal(f->nodes.len, 2);
}

static void test_constants(void **state)
{
    compiler *c = *state;
    graph_func *f = graph_func_new(graph_module_new(c), "f");
    int64_t v[3] = {4, -1, 2}, got[4];
    uint32_t n = 0;
    graph_value *k = graph_add_constant(f, tensor_from_i64s(c, 3, v), "k", src_loc_none());
    assert_int_equal(k->type.dt, DT_I64);
    assert_true(graph_constant_ints(k, 4, got, &n));
    assert_int_equal(n, 3);
    assert_int_equal(got[1], -1);
    assert_false(graph_constant_ints(k, 2, got, &n));
    graph_value *s = graph_add_constant(f, tensor_scalar_f64(c, DT_F32, 1.5), "s", src_loc_none());
    assert_false(graph_constant_ints(s, 4, got, &n)); /* no integers */
    assert_null(graph_constant(NULL));
    assert_null(graph_constant(graph_add_param(f, "x", f32_2(c))));
}

/* --- changing --- */

static void test_uses(void **state)
{
    compiler *c = *state;
    graph_module *m = parse(c, "func @f(%x: f32[2]) { %a = add(%x, %x) %b = exp(%a) %d = log(%a) return %b, %a }");
    graph_func *f = m->funcs.data[0];
    graph_value *x = f->params.data[0], *a = f->nodes.data[0]->outputs[0];
    assert_int_equal(graph_count_uses(f, x), 2);
    assert_int_equal(graph_count_uses(f, a), 3);
    graph_remove_dead(f);
    assert_int_equal(f->nodes.len, 2);
    graph_replace_uses(f, a, x);
    assert_ptr_equal(f->results.data[1], x);
    graph_remove_dead(f);
    assert_int_equal(f->nodes.len, 1);
}

static void test_sort(void **state)
{
    compiler *c = *state;
    graph_module *m = parse(c, "func @f(%x: f32[2]) { %a = exp(%x) %b = log(%x) %d = add(%a, %b) return %d }");
    graph_func *f = m->funcs.data[0];
    graph_node *a = f->nodes.data[0], *b = f->nodes.data[1], *d = f->nodes.data[2];
    assert_true(graph_sort(f));
    assert_true(f->nodes.data[0] == a && f->nodes.data[1] == b && f->nodes.data[2] == d);
    f->nodes.data[0] = d;
    f->nodes.data[2] = a;
    assert_false(graph_verify(c, m));
    assert_true(graph_sort(f)); /* d pulls a, then b, in front of itself */
    assert_true(f->nodes.data[0] == a && f->nodes.data[1] == b && f->nodes.data[2] == d);
    a->inputs[0] = d->outputs[0];
    assert_false(graph_sort(f));
}

/* A chain long enough to end a recursion. */
static void test_long_chain(void **state)
{
    compiler *c = *state;
    graph_func *f = graph_func_new(graph_module_new(c), "main");
    graph_value *v = graph_add_param(f, "x", f32_2(c));
    const graph_op *relu = graph_find_op(c, "exp");
    for (int i = 0; i < 50000; i++)
        v = graph_add_node(f, relu, 1, &v, 0, NULL, 1, NULL, src_loc_none())->outputs[0];
    graph_add_result(f, v);
    for (uint32_t i = 0, k = f->nodes.len - 1; i < k; i++, k--) { /* the wrong way round */
        graph_node *t = f->nodes.data[i];
        f->nodes.data[i] = f->nodes.data[k];
        f->nodes.data[k] = t;
    }
    assert_true(graph_sort(f));
    assert_true(graph_run_passes(c, f->module, NULL, NULL));
    assert_true(graph_verify(c, f->module));
    assert_int_equal(f->nodes.len, 50000 / 40);
}

/* --- verifier: what text cannot express --- */

static void expect_fault(compiler *c, const graph_module *m, const char *words)
{
    uint32_t before = c->diags.errors;
    assert_false(graph_verify(c, m));
    assert_true(c->diags.errors > before);
    assert_int_equal(c->diags.last->code, DIAG_VERIFY);
    if (!strstr(c->diags.last->text, words))
        fail_msg("'%s' lacks '%s'", c->diags.last->text, words);
}

static void test_verify_structure(void **state)
{
    compiler *c = *state;
    graph_module *m =
        parse(c, "func @f(%x: f32[2]) { %a = exp(%x) return %a } func @g(%y: f32[2]) { %b = log(%y) return %b }");
    graph_func *f = m->funcs.data[0], *g = m->funcs.data[1];
    graph_node *n = f->nodes.data[0];
    assert_true(graph_verify(c, m));
    n->inputs[0] = g->params.data[0];
    expect_fault(c, m, "%y is not defined before its use");
    n->inputs[0] = f->params.data[0];
    n->outputs[0]->index = 1;
    expect_fault(c, m, "does not know its node");
    n->outputs[0]->index = 0;
    n->outputs[0]->name = f->params.data[0]->name;
    expect_fault(c, m, "two values are named %x");
    n->outputs[0]->name = intern(c->names, "a");
    f->results.data[0] = g->nodes.data[0]->outputs[0];
    expect_fault(c, m, "result %b is not defined");
    f->results.data[0] = n->outputs[0];
    g->name = f->name;
    expect_fault(c, m, "two functions have this name");
    g->name = intern(c->names, "g");
    f->params.data[0]->index = 3;
    expect_fault(c, m, "does not know its place");
}

static void test_verify_attributes(void **state)
{
    compiler *c = *state;
    graph_module *m = parse(c, "func @f(%x: f32[2]) { %a = sum(%x) {axes = [0], keepdims = 0} return %a }");
    graph_node *n = m->funcs.data[0]->nodes.data[0];
    attr axes = n->attrs[0], keep = n->attrs[1];
    n->attrs[0] = keep;
    n->attrs[1] = axes;
    expect_fault(c, m, "out of order");
    n->attrs[0] = axes;
    n->attrs[1] = attr_int(c, "keepdims", 1);
    expect_fault(c, m, "has its default value");
    n->attrs[1] = attr_float(c, "keepdims", 0);
    expect_fault(c, m, "is float, not int");
    n->attrs[1] = attr_int(c, "speed", 0);
    expect_fault(c, m, "no attribute 'speed'");
}

static void test_verify_callee(void **state)
{
    compiler *c = *state;
    graph_module *m =
        parse(c, "func @f(%x: f32[2]) { %a = call(%x) {callee = @g} return %a } func @g(%y: f32[2]) { return %y }");
    graph_module_remove(m, m->funcs.data[1]);
    expect_fault(c, m, "'callee' is not a function of this module");
}

/* Deeper than passes recurse, written so that no single look sees the depth. */
static void test_verify_depth(void **state)
{
    compiler *c = *state;
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "func @f0(%x: f32[2]) { return %x }\n");
    for (int i = 1; i < 300; i++)
        w_fmt(&w, "func @f%d(%%x: f32[2]) { %%a = call(%%x) {callee = @f%d} return %%a }\n", i, i - 1);
    graph_module *m = NULL;
    assert_false(graph_parse(c, "t", w.data, w.len, &m));
    assert_null(m);
    assert_string_equal(c->diags.last->text, "@f200: calls are nested deeper than 200");
}

/* --- effects --- */

static void test_effects(void **state)
{
    compiler *c = *state;
    graph_op row = {.name = "roll",
                    .operands = "x",
                    .min_out = 1,
                    .max_out = 1,
                    .cls = CLASS_ELEMENTWISE,
                    .effect = EFFECT_RANDOM,
                    .infer = infer_anything};
    assert_non_null(graph_register_op(c, &row));
    graph_module *m = parse(c, "func @main(%x: f32[2]) {\n"
                               "  %k = constant f32[2] splat 1.0\n"
                               "  %a = roll(%k)\n"
                               "  %b = roll(%k)\n"
                               "  %d = roll(%x)\n"
                               "  %e = call(%x) {callee = @r}\n"
                               "  %g = call(%x) {callee = @r}\n"
                               "  %h = add(%a, %b)\n"
                               "  %i = add(%e, %g)\n"
                               "  %j = add(%h, %i)\n"
                               "  return %j\n"
                               "}\n"
                               "func @r(%x: f32[2]) {\n"
                               "  %a = roll(%x)\n"
                               "  return %a\n"
                               "}\n");
    graph_func *f = m->funcs.data[0];
    assert_false(graph_is_pure(f->nodes.data[1]));
    assert_false(graph_is_pure(f->nodes.data[4]));
    assert_true(graph_is_pure(f->nodes.data[6]));
    assert_true(graph_run_passes(c, m, "infer-types,simplify,fold-constants,cse,dce,fuse", NULL));
    uint32_t calls = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        calls += f->nodes.data[i]->op == graph_find_op(c, "call");
    assert_int_equal(calls,
                     2 + 2 + 1); /* rolls are neither folded nor merged, each is a kernel; regions twice; one sum */
}

/* --- views --- */

/* p and q: extents that data decides. */
static dim decided(void *ctx, const char *symbol)
{
    return strcmp(symbol, "p") == 0 || strcmp(symbol, "q") == 0 ? dim_fresh(ctx, "pad", -1) : NULL;
}

/* The data's extents have been found since the view was declared: it follows where only one shape can be meant. */
static void test_views_follow(void **state)
{
    compiler *c = *state;
    static const char *const cases[][3] = {
        {"f32[n, 1, b, 16]", "f32[p - 2, b, 16]", "f32[n, b, 16]"}, {"f32[c, n]", "f32[1, c, p, 1]", "f32[1, c, n, 1]"},
        {"f32[1, n, m]", "f32[p, q, 1]", "f32[n, m, 1]"},           {"f32[2, n, 3]", "f32[2, p]", "f32[2, 3*n]"},
        {"f32[c, n, m]", "f32[p, q]", NULL},                        {"f32[3, n]", "f32[2, p]", NULL},
        {"f32[n, 1]", "f32[k]", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = arena_printf(&c->mem, "func @main(%%x: %s) {\n  %%y = reshape(%%x) : %s\n  return %%y\n}\n",
                                        cases[i][0], cases[i][1]);
        graph_module *m = parse(c, text);
        graph_value *y = m->funcs.data[0]->nodes.data[0]->outputs[0];
        dim d[TYPE_MAX_RANK];
        for (int32_t k = 0; k < y->declared.shape.rank; k++)
            d[k] = dim_substitute(c, y->declared.shape.dims[k], decided, c);
        y->declared.shape = shape_make(c, (uint32_t)y->declared.shape.rank, d);
        assert_int_equal(graph_infer_node(c, y->def), cases[i][2] != NULL);
        writer w;
        writer_init(&w, &c->mem);
        type_print(&w, &y->type);
        if (cases[i][2])
            assert_string_equal(w.data, cases[i][2]);
    }
}

/* --- locations --- */

static void test_locations(void **state)
{
    compiler *c = *state;
    graph_module *m = parse(
        c, "func @f(%x: f32[2]) {\n  %a = exp(%x)\n  %b = log(%x) loc(\"m.onnx\", 7, \"n\", \"Log\")\n  return %a\n}");
    const graph_node *a = m->funcs.data[0]->nodes.data[0], *b = m->funcs.data[0]->nodes.data[1];
    assert_int_equal(a->loc.line, 2);
    assert_int_equal(a->loc.col, 3);
    assert_string_equal(b->loc.file, "m.onnx");
    assert_int_equal(b->loc.node_index, 7);
    assert_string_equal(b->loc.op, "Log");
    assert_non_null(strstr(print(c, m), "%a = exp(%x)\n"));
}

/* --- driver of passes --- */

static void test_levels(void **state)
{
    static const char text[] =
        "func @main(%x: f32[2]) {\n  %a = copy(%x)\n  %b = nn.relu(%a)\n  %d = exp(%b)\n  return %d\n}\n";
    static const uint32_t kernels[] = {3, 1, 1, 1};
    compiler *c = *state;
    for (int level = 0; level < 4; level++) {
        graph_module *m = parse(c, text);
        pass_options o = {.target = target_default(), .opt_level = level, .verify = true};
        assert_true(graph_run_passes(c, m, NULL, &o));
        assert_int_equal(m->funcs.data[0]->nodes.len, kernels[level]);
    }
}

static void test_times(void **state)
{
    compiler *c = *state;
    writer w;
    writer_init(&w, &c->mem);
    graph_module *m = parse(c, "func @main(%x: f32[2]) { return %x }");
    pass_options o = {.target = target_default(), .opt_level = 3, .times = &w};
    assert_true(graph_run_passes(c, m, "infer-types,dce", &o));
    assert_non_null(strstr(w.data, "infer-types"));
    assert_non_null(strstr(w.data, "\ndce "));
}

static void test_stateful(void **state)
{
    compiler *c = *state;
    graph_op row = {.name = "count", .operands = "", .min_out = 1, .max_out = 1, .cls = CLASS_OPAQUE};
    row.effect = EFFECT_STATEFUL;
    row.infer = infer_scalar;
    assert_non_null(graph_register_op(c, &row));
    graph_module *m = parse(c, "func @main(%x: f32[2]) {\n  %a = count()\n  %b = count()\n"
                               "  %d = call() {callee = @r}\n  return %x\n}\n"
                               "func @r() {\n  %a = count()\n  return %a\n}\n");
    pass_options o = {.target = target_default(), .opt_level = 3, .verify = true};
    assert_true(graph_run_passes(c, m, NULL, &o));
    assert_string_equal(m->funcs.data[0]->nodes.data[0]->outputs[0]->name, "a");
    assert_string_equal(m->funcs.data[0]->nodes.data[1]->outputs[0]->name, "b");
    assert_string_equal(m->funcs.data[0]->nodes.data[2]->outputs[0]->name, "d");
}

static void test_dump(void **state)
{
    compiler *c = *state;
    char dir[] = "/tmp/lathe-dump-XXXXXX";
    span s;
    assert_non_null(mkdtemp(dir));
    graph_module *m = parse(c, "func @main(%x: f32[2]) {\n  %y = copy(%x)\n  %z = exp(%y)\n  return %z\n}\n");
    pass_options o = {.target = target_default(), .opt_level = 3, .dump_dir = dir};
    assert_true(graph_run_passes(c, m, "infer-types,dce,simplify", &o));
    assert_false(file_exists(path_join(&c->mem, dir, "02-dce.txt"))); /* changed nothing */
    assert_true(compiler_read_file(c, path_join(&c->mem, dir, "03-simplify.txt"), &s));
    assert_string_equal(arena_strndup(&c->mem, (const char *)s.data, s.len), print(c, m));
    assert_true(file_exists(path_join(&c->mem, dir, "01-infer-types.txt")));
    assert_true(file_remove_tree(&c->diags, &c->temps, dir));
}

/* --- pointer map --- */

static void test_ptr_map(void **state)
{
    compiler *c = *state;
    char *base = arena_alloc(&c->mem, 5000, 1);
    ptr_map m;
    uint32_t v = 0;
    ptr_map_init(&m, &c->mem);
    assert_false(ptr_map_get(&m, base, &v));
    for (uint32_t i = 0; i < 5000; i++)
        ptr_map_set(&m, base + i, i);
    ptr_map_set(&m, base, 77);
    assert_int_equal(m.len, 5000);
    for (uint32_t i = 1; i < 5000; i++) {
        assert_true(ptr_map_get(&m, base + i, &v));
        assert_int_equal(v, i);
    }
    assert_true(ptr_map_get(&m, base, &v));
    assert_int_equal(v, 77);
    assert_false(ptr_map_get(&m, base + 5000, &v));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_builtin_rows),  T(test_register),     T(test_register_refuses), T(test_names),
        T(test_attributes),    T(test_emit),         T(test_constants),        T(test_uses),
        T(test_sort),          T(test_long_chain),   T(test_verify_structure), T(test_verify_attributes),
        T(test_verify_callee), T(test_verify_depth), T(test_effects),          T(test_locations),
        T(test_levels),        T(test_times),        T(test_stateful),         T(test_dump),
        T(test_ptr_map),       T(test_views_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
