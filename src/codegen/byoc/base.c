/* SPDX-License-Identifier: Apache-2.0 */
/* The base of code generators (include/lathe/codegen.h): from the regions that a target has got to its source. */
#include "codegen/byoc/byoc.h"

#include <ctype.h>
#include <string.h>

/* --- functions --- */

uint32_t lathe_gen_funcs(const lathe_gen *g)
{
    return g->source->n_regions;
}

const lathe_func *lathe_gen_func(const lathe_gen *g, uint32_t i)
{
    return i < g->source->n_regions ? g->source->regions[i].kernel->func : NULL;
}

static prog_region *region_of(const lathe_gen *g, const lathe_func *f)
{
    for (uint32_t i = 0; i < g->source->n_regions; i++)
        if (g->source->regions[i].kernel->func == f && !g->source->regions[i].declined)
            return &g->source->regions[i];
    return NULL;
}

static bool is_known(const graph_value *v)
{
    return v->type.kind == TYPE_TENSOR && shape_is_static(v->type.shape);
}

/* NULL: all of them are. */
static const graph_value *find_open(const graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++)
        if (!is_known(f->params.data[i]))
            return f->params.data[i];
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            if (!is_known(f->nodes.data[i]->outputs[k]))
                return f->nodes.data[i]->outputs[k];
    return NULL;
}

static bool write_nodes(lathe_gen *g, const graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        g->node = f->nodes.data[i];
        if (strcmp(lathe_node_op(g->node), "constant") != 0 && !g->own->node(g, g->node))
            return false;
        gen_end_node(g);
    }
    g->node = NULL;
    return true;
}

/* A result that is an operand, or another result, once more. */
static void write_copies(lathe_gen *g, const graph_func *f, const char *const *results)
{
    for (uint32_t i = 0; i < f->results.len; i++) {
        const char *from = lathe_gen_name(g, f->results.data[i]);
        if (from && from != results[i]) {
            lathe_gen_header(g, "string.h");
            lathe_gen_line(g, "memcpy(%s, %s, %lld);", results[i], from,
                           (long long)type_bytes(&f->results.data[i]->type));
        }
    }
}

/* Names of the parameters for results: those of the values, but where a value stands for another one already. */
static const char *const *result_names(lathe_gen *g, const graph_func *f)
{
    const char **names = arena_array(&g->c->mem, const char *, f->results.len + 1u);
    for (uint32_t i = 0; i < f->results.len; i++) {
        const graph_value *v = f->results.data[i];
        bool again = !v->def || graph_constant(v);
        for (uint32_t k = 0; k < i; k++)
            again |= f->results.data[k] == v;
        names[i] = again ? arena_printf(&g->c->mem, "result_%u", i) : lathe_gen_name(g, v);
    }
    return names;
}

static void write_head(lathe_gen *g, const graph_func *f, const char *const *results, writer *w)
{
    w_fmt(w, "/* %s", g->region->kernel->kind);
    const bool is_c = !g->own->suffix || strcmp(g->own->suffix, "c") == 0;
    w_fmt(w, " */\n%sint32_t %s(", is_c ? "" : "extern \"C\" ", g->region->symbol);
    for (uint32_t i = 0; i < f->params.len; i++)
        w_fmt(w, "%sconst %s *%s", i ? ", " : "", dtype_c_name(f->params.data[i]->type.dt),
              lathe_gen_name(g, f->params.data[i]));
    for (uint32_t i = 0; i < f->results.len; i++)
        w_fmt(w, "%s%s *%s", f->params.len + i ? ", " : "", dtype_c_name(f->results.data[i]->type.dt), results[i]);
    w_fmt(w, "%s)\n{\n", g->region->scratch ? ", uint8_t *scratch" : "");
    for (uint32_t i = 0; i < f->params.len; i++)
        w_fmt(w, "    (void)%s;\n", lathe_gen_name(g, f->params.data[i]));
}

bool lathe_gen_finish(lathe_gen *g, const lathe_func *f)
{
    const char *const *results = result_names(g, f);
    write_copies(g, f, results);
    writer w;
    writer_init(&w, &g->c->mem);
    write_head(g, f, results, &w);
    lathe_gen_declare(g, "%s%s    return 0;\n}\n", w.data, g->body.data ? g->body.data : "");
    return true;
}

bool lathe_gen_c_func(lathe_gen *g, const lathe_func *f)
{
    prog_region *r = region_of(g, f);
    if (!r)
        return lathe_gen_error(g, NULL, "the generator %s writes @%s, which is not a function of its own", g->own->name,
                               f->name);
    if (g->region != r) /* a `module` of the generator's own calls this */
        gen_begin_func(g, r);
    if (!g->own->node)
        return lathe_gen_error(g, NULL, "the generator %s has neither `func` nor `node`", g->own->name);
    return write_nodes(g, f) && lathe_gen_finish(g, f);
}

/* One function by the generator's own callback. What a declined one has left at file scope goes. */
static bool write_func(lathe_gen *g, prog_region *r)
{
    const graph_func *f = r->kernel->func;
    const size_t before = g->file.len;
    const uint32_t declared = g->declared.len, errors = g->c->diags.errors;
    gen_begin_func(g, r);
    const graph_value *open = find_open(f);
    const bool done = open ? lathe_gen_decline(g, "the shape of '%s' is known only when the model runs", open->name)
                      : g->own->func ? g->own->func(g, f)
                                     : lathe_gen_c_func(g, f);
    if (done && g->c->diags.errors == errors && !r->declined)
        return true;
    if (r->declined && g->c->diags.errors == errors) {
        g->file.len = before;
        if (g->file.data)
            g->file.data[before] = '\0';
        g->declared.len = declared;
        return true;
    }
    if (g->c->diags.errors == errors)
        (void)lathe_gen_error(g, g->node, "the generator %s fails at @%s and does not say why", g->own->name, f->name);
    return false;
}

bool lathe_create_c_source_module(lathe_gen *g)
{
    const uint32_t errors = g->c->diags.errors;
    if (g->own->begin && !g->own->begin(g))
        return g->c->diags.errors > errors
                   ? false
                   : lathe_gen_error(g, NULL, "the generator %s fails and does not say why", g->own->name);
    for (uint32_t i = 0; i < g->source->n_regions; i++)
        if (!g->source->regions[i].declined && !write_func(g, &g->source->regions[i]))
            return false;
    g->region = NULL;
    return true;
}

/* --- the row of the target table --- */

static bool is_any_written(const prog_source *s)
{
    for (uint32_t i = 0; i < s->n_regions; i++)
        if (!s->regions[i].declined)
            return true;
    return false;
}

/* target_codegen_fn of all of them. */
static bool generate(compiler *c, const target *t, prog_source *out)
{
    lathe_gen g = {.c = c, .own = t->generator, .source = out};
    writer_init(&g.headers, &c->mem);
    writer_init(&g.file, &c->mem);
    lathe_gen_header(&g, "stddef.h");
    lathe_gen_header(&g, "stdint.h");
    if (!(g.own->module ? g.own->module(&g) : lathe_create_c_source_module(&g)))
        return false;
    out->suffix = g.own->suffix ? g.own->suffix : "c";
    out->cflags = g.own->cflags ? g.own->cflags : "";
    out->ldflags = g.own->ldflags ? g.own->ldflags : "";
    if (is_any_written(out))
        out->text = arena_printf(&c->mem, "%s\n%s", g.headers.data, g.file.data ? g.file.data : "");
    return true;
}

static bool is_name(const char *s)
{
    bool good = s && isalpha((unsigned char)*s) && strlen(s) <= 40;
    for (; good && *s; s++)
        good = (isalnum((unsigned char)*s) || *s == '_') && (unsigned char)*s < 128;
    return good;
}

bool lathe_register(lathe_compiler *c, const lathe_codegen *own)
{
    if (own->api != LATHE_CODEGEN_API)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the generator '%s' is for API %d; this is %d",
                          own->name ? own->name : "", own->api, LATHE_CODEGEN_API);
    if (!is_name(own->name))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' cannot be the name of a code generator: use at most 40 letters, digits and _, and "
                          "begin with a letter or _",
                          own->name ? own->name : "");
    uint32_t n = 0;
    while (own->checks && own->checks[n].name)
        n++;
    target_check *checks = arena_array(&c->mem, target_check, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        checks[i] = (target_check){own->checks[i].name, own->checks[i].fn};
    target_offload *offload = arena_new(&c->mem, target_offload);
    *offload = (target_offload){.patterns = own->patterns, .checks = checks, .least_work = own->least_work};
    if (own->numbers) {
        const lathe_numbers *says = own->numbers;
        target_numbers *numbers = arena_new(&c->mem, target_numbers);
        *numbers = (target_numbers){.with_sign = says->with_sign, .one_scale = says->one_scale,
                                     .powers = says->powers, .sum_scale = says->sum_scale};
        offload->numbers = numbers;
    }
    target *t = arena_new(&c->mem, target);
    *t = (target){.name = own->name, .cflags = "", .vector_regs = 16, .stack_limit = 4096, .workers = 1,
                  .address_bits = 64, .codegen = generate, .generator = own, .regions_only = true, .offload = offload};
    return target_register(c, t);
}
