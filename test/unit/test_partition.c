/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of graphs by chance: regions hang together, no way leaves one and comes back, and what is computed stays.
 * The patterns of built-in targets are read. What an accelerator cannot lower goes back to the CPU. */
#include "target/vta/code/vta_package.h"
#include "driver/pipeline.h"
#include "graph/op.h"
#include "graph/pass/offload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GRAPHS 400u

static const char *const targets[] = {NULL, "acme", "brand", "acme"};

static uint32_t next(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Nodes of one or two operands, each of them some value before it; the last few are results. */
static graph_module *make(compiler *c, uint64_t *state, bool annotated)
{
    static const char *const unary[] = {"exp", "sin", "nn.relu"}, *const binary[] = {"add", "multiply"};
    const int64_t dims[] = {4};
    uint32_t n = 2 + next(state, 40), near = 1 + next(state, 12);
    graph_module *m = graph_module_new(c);
    graph_func *f = graph_func_new(m, "main");
    graph_value *values[64];
    for (uint32_t i = 0; i < 2; i++)
        values[i] = graph_add_param(f, "x", type_static(c, DT_F32, 1, dims));
    for (uint32_t i = 2; i < n + 2; i++) {
        graph_value *in[2];
        uint32_t count = 1 + next(state, 2);
        for (uint32_t k = 0; k < count; k++)
            in[k] = values[i - 1 - next(state, i < near ? i : near)];
        const char *op = count == 1 ? unary[next(state, 3)] : binary[next(state, 2)];
        values[i] = graph_emit(f, NULL, op, count, in, 0, NULL, src_loc_none());
        assert_non_null(values[i]);
        const char *owner = annotated ? targets[next(state, 4)] : NULL;
        values[i]->def->compiler = owner ? intern(c->names, owner) : NULL;
    }
    for (uint32_t i = 0; i < 3 && i < n; i++)
        graph_add_result(f, values[n + 1 - i]);
    return m;
}

/* --- what is computed, as one number for each value --- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29);
}

/* out: of each result. */
static void compute(compiler *c, const graph_func *f, const uint64_t *in, uint64_t *out)
{
    uint64_t *of = arena_array(&c->mem, uint64_t, f->params.len + 4u * f->nodes.len + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->params.len; i++) {
        f->params.data[i]->mark = n;
        of[n++] = in[i];
    }
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *node = f->nodes.data[i];
        uint64_t args[64], results[64];
        assert_true(node->n_inputs <= 64 && node->n_outputs <= 64);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            args[k] = of[node->inputs[k]->mark];
        if (graph_callee(node)) {
            compute(c, graph_callee(node), args, results);
        } else {
            results[0] = (uint64_t)(uintptr_t)node->op;
            for (uint32_t k = 0; k < node->n_inputs; k++)
                results[0] = mix(results[0], args[k]);
        }
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            node->outputs[k]->mark = n;
            of[n++] = results[k];
        }
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        out[i] = of[f->results.data[i]->mark];
}

static uint64_t meaning(compiler *c, const graph_module *m)
{
    const uint64_t in[2] = {1, 2};
    uint64_t out[3], h = 0;
    const graph_func *f = graph_module_find(m, "main");
    compute(c, f, in, out);
    for (uint32_t i = 0; i < f->results.len; i++)
        h = mix(h, out[i]);
    return h;
}

/* --- what regions must be --- */

/* Nodes of one region reach one another by operands inside of it. */
static void check_connected(const graph_func *f)
{
    uint32_t group[64];
    assert_true(f->nodes.len <= 64);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        f->nodes.data[i]->mark = i;
        group[i] = i;
    }
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++) {
            const graph_node *def = f->nodes.data[i]->inputs[k]->def;
            uint32_t from = def ? group[def->mark] : 0, to = group[i];
            for (uint32_t j = 0; def && j < f->nodes.len; j++)
                group[j] = group[j] == from ? to : group[j];
        }
    for (uint32_t i = 0; i < f->nodes.len; i++)
        assert_int_equal(group[i], group[0]);
}

static uint32_t count_regions(const graph_module *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (graph_func_text(m->funcs.data[i], "compiler")) {
            check_connected(m->funcs.data[i]);
            n++;
        }
    return n;
}

static uint32_t partition(uint64_t seed, const char *passes)
{
    compiler c;
    uint64_t state = seed;
    pass_options o = pass_options_default();
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    graph_module *m = make(&c, &state, true);
    uint64_t before = meaning(&c, m);
    o.verify = true;
    if (!graph_run_passes(&c, m, passes, &o))
        fail_msg("graph %llu: %s", (unsigned long long)seed, diags_print(&c.diags, &c.mem));
    assert_true(meaning(&c, m) == before);
    uint32_t n = count_regions(m);
    compiler_free(&c);
    return n;
}

static void test_by_chance(void **state)
{
    uint32_t merged = 0, alone = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        merged += partition(seed, "MergeCompilerRegions,PartitionGraph");
        alone += partition(seed, "PartitionGraph");
    }
    assert_true(merged < alone); /* without numbers every node is one alone */
}

/* Results of several nodes, nodes that may be missing, operands that may be swapped, values that are read twice. */
static const char patterns[] =
    "pattern acme.chain(%x) { %e = exp(%x) %s = sin(%e) return %s }\n"
    "pattern acme.two(%x, %y) { %e = exp(%x) %s = add(%e, %y) return %e, %s }\n"
    "pattern acme.mul(%x, %y) { %m = multiply(%x, %y) %r = optional nn.relu(%m) return %r }\n"
    "pattern brand.diamond(%x) { %r = nn.relu(%x) %s = sin(%r) %m = add(%r, %s) return %m }\n"
    "pattern brand.twice(%x, %y) {\n"
    "  %a = add(%x, %y) %b = optional nn.relu|exp(%a) %c = multiply(%b, %a) return %a, %c\n"
    "}\n"
    "operator brand.sin(%x) { %y = sin(%x) return %y }\n";

static uint32_t take(uint64_t seed)
{
    static const char *const orders[] = {"acme,brand", "brand,acme", "brand"};
    compiler c;
    uint64_t state = seed;
    pass_options o = pass_options_default();
    compiler_init(&c);
    graph_register_builtin_ops(&c);
    graph_module *m = make(&c, &state, false);
    const offload_text text = {"patterns", patterns, sizeof patterns - 1};
    const offload_spec spec = {.targets = orders[next(&state, 3)], .texts = &text, .n_texts = 1,
                               .least_work = next(&state, 3) * 8};
    uint64_t before = meaning(&c, m);
    assert_true(offload_open(&c, &spec, &o.offload));
    o.verify = true;
    if (!graph_run_passes(&c, m, "MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph", &o))
        fail_msg("graph %llu: %s", (unsigned long long)seed, diags_print(&c.diags, &c.mem));
    assert_true(meaning(&c, m) == before);
    uint32_t n = count_regions(m);
    assert_int_equal(o.offload->log->regions.len, n);
    compiler_free(&c);
    return n;
}

static void test_patterns_by_chance(void **state)
{
    uint32_t regions = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++)
        regions += take(seed);
    assert_true(regions > GRAPHS);
}

/* What a target takes is a golden's business; here its patterns are read. */
static void test_builtin_targets(void **state)
{
    compiler c;
    (void)state;
    compiler_setup(&c);
    uint32_t n = 0;
    char names[200];
    assert_true(snprintf(names, sizeof names, "%s", target_region_names(&c)) < (int)sizeof names);
    for (char *rest = names, *name; (name = strtok_r(rest, ", ", &rest)); n++) {
        const struct offload *o;
        const offload_spec spec = {.targets = name, .least_work = -1};
        if (!offload_open(&c, &spec, &o))
            fail_msg("%s: %s", name, diags_print(&c.diags, &c.mem));
        for (uint32_t k = 0; k < o->targets[0].patterns.list.len; k++)
            assert_string_equal(o->targets[0].patterns.list.data[k]->target, name);
    }
    assert_true(n >= 4);
    compiler_free(&c);
}

/* --- regions that their target cannot lower --- */

static bool lower_too_large(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    (void)f;
    *out = NULL;
    (void)diag_note(&c->diags, DIAG_DATA, src_loc_none(), "on the way");
    (void)diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "%s is too large", name);
    diag_hint(&c->diags, "layer 2");
    return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "what follows from that");
}

static bool lower_badly(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    (void)f;
    *out = NULL;
    return diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "%s breaks a rule", name);
}

static void test_region_declined(void **state)
{
    const target large = {.name = "vta", .lower = lower_too_large}, bad = {.name = "vta", .lower = lower_badly};
    const prog_kernel k = {.name = "vta_0", .region = "model_vta_0"};
    const prog_source too_large = {.target = &large}, badly = {.target = &bad};
    prog_region r = {.kernel = &k};
    compiler c;
    (void)state;
    compiler_init(&c);
    (void)diag_warning(&c.diags, DIAG_DATA, src_loc_none(), "from before");
    assert_true(vta_region_lower(&c, &too_large, &r, NULL));
    assert_true(r.declined && !r.device);
    assert_string_equal(r.why, "vta_0 is too large");
    assert_int_equal(c.diags.errors, 0);
    assert_int_equal(c.diags.warnings, 2);
    assert_string_equal(c.diags.first->text, "from before");
    assert_string_equal(c.diags.last->text, "the region model_vta_0 runs on the CPU: vta_0 is too large");
    assert_false(vta_region_lower(&c, &badly, &r, NULL)); /* a fault of ours is no reason to go on */
    assert_string_equal(diags_first_error(&c.diags), "vta_0 breaks a rule");
    compiler_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_chance),
        cmocka_unit_test(test_patterns_by_chance),
        cmocka_unit_test(test_builtin_targets),
        cmocka_unit_test(test_region_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
