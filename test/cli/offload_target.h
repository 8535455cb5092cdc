/* SPDX-License-Identifier: Apache-2.0 */
/* Two targets for the tests. `acme` takes products with one number and sums of short vectors: its hook makes a table of
 * the number, and its loops are its own, under an attribute that shows whose they are. `brand` takes all that it is
 * asked for and has neither loops nor a code generator, so that the CPU runs what it got. */
#include "lathe/op.h"

#include <string.h>

static const char acme_patterns[] =
    "pattern acme.scale(%x: f32[_], %s: constant f32[]) {\n"
    "  %y = multiply(%x, %s)\n"
    "  return %y\n"
    "} where short(%x)\n"
    "pattern acme.add(%a: f32[n], %b: f32[n]) {\n"
    "  %y = add(%a, %b)\n"
    "  return %y\n"
    "} where short(%a)\n";

static const char *check_short(compiler *c, uint32_t n, struct graph_value *const *v)
{
    int64_t count = shape_count(v[0]->type.shape);
    (void)n;
    return count <= 64 ? NULL : arena_printf(&c->mem, "%lld elements are more than 64", (long long)count);
}
static const target_check acme_checks[] = {{"short", check_short}, {NULL, NULL}};

/* A call of acme.scale becomes a product with a table. */
static bool rewrite(compiler *c, graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *call = f->nodes.data[i];
        const graph_func *callee = graph_callee(call);
        if (!callee || strcmp(graph_func_text(callee, "composite"), "acme.scale") != 0)
            continue;
        double factor = 0;
        for (uint32_t k = 0; k < callee->nodes.len; k++)
            if (callee->nodes.data[k]->op->infer == infer_constant)
                factor = tensor_get_f64(graph_constant(callee->nodes.data[k]->outputs[0]), 0);
        int64_t n[TYPE_MAX_RANK];
        if (!shape_get(call->outputs[0]->type.shape, n))
            return diag_error(&c->diags, DIAG_TYPE, call->loc, "acme: open extents");
        float *table = arena_array(&c->mem, float, (size_t)n[0]);
        for (int64_t k = 0; k < n[0]; k++)
            table[k] = (float)factor;
        graph_value *constant = graph_add_constant(f, tensor_dense(c, DT_F32, 1, n, table), "table", call->loc);
        graph_node *def = f->nodes.data[--f->nodes.len]; /* to its place in front of the product */
        graph_insert_before(f, call, def);
        graph_value *in[2] = {call->inputs[0], constant};
        const char *name = "product";
        graph_node *product = graph_new_node(f, graph_find_op(c, "multiply"), 2, in, 0, NULL, 1, &name, call->loc);
        f->nodes.data[++i] = product;
        graph_replace_uses(f, call->outputs[0], product->outputs[0]);
    }
    return true;
}

static const tir_buffer *buffer_of(compiler *c, const graph_value *v)
{
    int64_t n[TYPE_MAX_RANK];
    (void)shape_get(v->type.shape, n);
    return tir_buffer_static(c, v->name, DT_F32, 1, n, SCOPE_GLOBAL);
}

/* A region of one product; declines others. */
static bool lower(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    if (f->nodes.len != 1 || strcmp(f->nodes.data[0]->op->name, "multiply") != 0)
        return true;
#ifdef BROKEN
    return diag_error(&c->diags, DIAG_UNSUPPORTED, f->nodes.data[0]->loc, "acme: no room for @%s", f->name);
#endif
    int64_t n[TYPE_MAX_RANK];
    (void)shape_get(f->results.data[0]->type.shape, n);
    const tir_buffer **p = arena_array(&c->mem, const tir_buffer *, 3);
    p[0] = buffer_of(c, f->params.data[0]);
    p[1] = buffer_of(c, f->params.data[1]);
    p[2] = buffer_of(c, f->results.data[0]);
    const tir_var *i = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref at[1] = {tir_varref(c, i)};
    tir_stmt *store = tir_store(c, p[2], 1, at, tir_mul(c, tir_load(c, p[0], 1, at), tir_load(c, p[1], 1, at)));
    *out = arena_new(&c->mem, tir_func);
    **out = (tir_func){.name = name, .params = p, .n_params = 3, .n_inputs = 2, .index_type = DT_I64};
    (*out)->loc = src_loc_none();
    tir_stmt *loop = tir_for(c, i, tir_i64(c, 0), tir_i64(c, n[0]), FOR_SERIAL, store);
    (*out)->body = tir_attr(c, "acme", "lowered_by_acme", tir_i64(c, 1), loop);
    return true;
}

static const target_offload acme_takes = {.patterns = acme_patterns, .checks = acme_checks, .rewrite = rewrite};
static const target acme = {.name = "acme", .cflags = "", .vector_regs = 16, .stack_limit = 4096, .workers = 1,
                            .address_bits = 64, .lower = lower, .regions_only = true, .offload = &acme_takes};

static const char brand_patterns[] =
    "pattern brand.exp_relu(%x: f32|f16) {\n"
    "  %e = exp(%x)\n"
    "  %y = nn.relu(%e)\n"
    "  return %y\n"
    "}\n"
    "pattern brand.log(%x) {\n"
    "  %y = log(%x)\n"
    "  return %y\n"
    "}\n";
static const char *check_tiny(compiler *c, uint32_t n, struct graph_value *const *v)
{
    (void)n;
    return shape_count(v[0]->type.shape) <= 8 ? NULL : arena_printf(&c->mem, "it is not tiny");
}
static const target_check brand_checks[] = {{"tiny", check_tiny}, {NULL, NULL}};
static const target_offload brand_takes = {.patterns = brand_patterns, .checks = brand_checks, .least_work = 10};
static const target brand = {.name = "brand", .cflags = "", .vector_regs = 16, .stack_limit = 4096, .workers = 1,
                             .address_bits = 64, .regions_only = true, .offload = &brand_takes};
