/* SPDX-License-Identifier: Apache-2.0 */
/* What the step from graph to program costs: memory for each of many equal operators, which have one another's plain
 * loops, and operators counted before there are any. */
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/text.h"
#include "prog/prog.h"
#include "te/te.h"
#include "type/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_BYTES 4096 /* an operator: its step, value, kernel, names; its loops alone took ten times as much */

/* A chain of n operators. */
static graph_module *chain(compiler *c, uint32_t n)
{
    writer w;
    graph_module *m = NULL;
    writer_init(&w, &c->mem);
    w_str(&w, "func @main(%v0: f32[3, 8]) {\n");
    for (uint32_t i = 0; i < n; i++)
        w_fmt(&w, "  %%v%u = nn.softmax(%%v%u) : f32[3, 8]\n", i + 1, i);
    w_fmt(&w, "  return %%v%u\n}\n", n);
    assert_true(graph_parse(c, "chain", w.data, w.len, &m));
    return m;
}

/* Bytes that the step to the program of n operators takes. */
static size_t bytes_of(uint32_t n)
{
    compiler c;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    graph_module *g = chain(&c, n);
    prog_module *m = NULL;
    size_t before = c.mem.bytes;
    assert_int_equal(prog_least_kernels(&c, g), n);
    assert_true(prog_from_graph(&c, g, target_find("x86-64-v3"), false, &m));
    assert_int_equal(m->kernels.len, n);
    size_t bytes = c.mem.bytes - before;
    compiler_free(&c);
    return bytes;
}

static void equal_operators_have_loops_once(void **state)
{
    (void)state;
    size_t few = bytes_of(2000), many = bytes_of(4000), each = (many - few) / 2000;
    if (each > MOST_BYTES)
        fail_msg("%zu bytes an operator", each);
}

/* What nobody reads, views and constants are no kernels. */
static void least_kernels(void **state)
{
    (void)state;
    static const char text[] = "func @main(%x: f32[3, 8]) {\n"
                               "  %k = constant f32[8] dense [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\n"
                               "  %a = add(%x, %k) : f32[3, 8]\n"
                               "  %dead = exp(%a) : f32[3, 8]\n"
                               "  %s = constant i64[1] dense [24]\n"
                               "  %v = reshape(%a, %s) : f32[24]\n"
                               "  %y = exp(%v) : f32[24]\n"
                               "  return %y\n}\n";
    compiler c;
    graph_module *m = NULL;
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    assert_true(graph_parse(&c, "text", text, sizeof text - 1, &m));
    assert_int_equal(prog_least_kernels(&c, m), 2);
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_operators_have_loops_once),
                                       cmocka_unit_test(least_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
