/* SPDX-License-Identifier: Apache-2.0 */
/* Files become graphs, or programs of one kernel: the front end of the file's format gets what the options say of
 * inputs, and the graph what they say of extents and states. */
#include "driver/read_model.h"

#include "abi/sha256.h"
#include "base/nearest.h"
#include "base/ptr_map.h"
#include "driver/computation.h"
#include "driver/format.h"
#include "driver/problem.h"
#include "driver/state.h"
#include "graph/op.h"
#include "graph/pass.h"

#include <string.h>

typedef enum load_as { LOAD_MODEL, LOAD_INPUTS, LOAD_TO_LOOK } load_as;

static void add_fixes(const dim_binding *from, uint32_t n, bool is_input, frontend_dim_fix *to)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = (frontend_dim_fix){
            .name = from[i].name, .is_input = is_input, .is_bound = from[i].is_bound, .rank = from[i].rank};
        memcpy(to[i].dims, from[i].dims, sizeof to[i].dims);
    }
}

/* In hexadecimal digits. */
static const char *hash_model(compiler *c, span bytes)
{
    sha256 s;
    char *text = arena_alloc(&c->mem, SHA256_TEXT, 1);
    sha256_init(&s);
    sha256_add(&s, bytes.data, bytes.len);
    sha256_end_text(&s, text);
    return text;
}

static frontend_options options_of(compiler *c, const compile_options *o, load_as as)
{
    frontend_dim_fix *fixes = arena_array(&c->mem, frontend_dim_fix, o->n_dims + o->n_shapes + 1u);
    frontend_bind *binds = arena_array(&c->mem, frontend_bind, o->n_binds + 1u);
    add_fixes(o->dims, o->n_dims, false, fixes);
    add_fixes(o->shapes, o->n_shapes, true, fixes + o->n_dims);
    for (uint32_t i = 0; i < o->n_binds; i++)
        binds[i] = (frontend_bind){o->binds[i].name, o->binds[i].numbers};
    return (frontend_options){.fixes = fixes,
                              .n_fixes = o->n_dims + o->n_shapes,
                              .binds = binds,
                              .n_binds = o->n_binds,
                              .signature = o->signature,
                              .string_bytes = o->string_bytes,
                              .keeps_floats = o->opt_level == 0,
                              .inputs_only = as == LOAD_INPUTS,
                              .keeps_unread = as == LOAD_TO_LOOK,
                              .like_litert = o->requant == REQUANT_LITERT,
                              .fixed_shapes = o->stop != STOP_GRAPH && !compile_is_for_module(o)};
}

/* out_hash: NULL: none is asked for. */
static bool load(compiler *c, const char *path, const compile_options *o, load_as as, const char **out_hash,
                 graph_module **out)
{
    span bytes;
    file_format format;
    const frontend *front;
    if (!compiler_progress(c, "reading", 0, 0) || !format_read(c, o->verb, path, &bytes, &format))
        return false;
    if (out_hash)
        *out_hash = hash_model(c, bytes);
    front = format_frontend(format);
    if (!front && o->n_dims + o->n_shapes + o->n_binds + (o->signature != NULL) > 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is graph text: --shape, --dim, --bind and --signature are only for models", path);
    if (!front)
        return graph_parse(c, path, (const char *)bytes.data, bytes.len, out) && graph_infer(c, *out) &&
               graph_verify(c, *out);
    if (o->signature && format != FORMAT_TFLITE) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--signature: %s has no signatures", front->name);
        diag_hint(&c->diags, "leave it out: only models of TensorFlow Lite have them");
        return false;
    }
    const frontend_options options = options_of(c, o, as);
    return front->import(c, bytes, path, &options, out);
}

/* --- bounds of extents that the data decides --- */

static bool no_such_extent(compiler *c, const graph_module *m, const char *name)
{
    writer w;
    ptr_map seen;
    uint32_t again;
    writer_init(&w, &c->mem);
    ptr_map_init(&seen, &c->mem);
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const char *symbols[TYPE_MAX_RANK];
            uint32_t count = graph_own_symbols(m->funcs.data[f]->nodes.data[n], TYPE_MAX_RANK, symbols);
            for (uint32_t i = 0; i < count; i++)
                if (!ptr_map_get(&seen, symbols[i], &again) && w.len < 300) {
                    ptr_map_set(&seen, symbols[i], 1);
                    w_fmt(&w, "%s%s", w.len ? ", " : "", symbols[i]);
                }
        }
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--bound: no result has the extent '%s'", name);
    if (w.len)
        diag_hint(&c->diags, "%sextents that depend on the data are: %s", nearest_in(name, w.data, &c->mem), w.data);
    else
        diag_hint(&c->diags, "no extent of this model depends on the data: leave --bound out; --dim is for dimensions "
                             "of inputs");
    return false;
}

static bool is_mentioned(const graph_module *m, const char *symbol)
{
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const graph_node *node = m->funcs.data[f]->nodes.data[n];
            for (uint32_t v = 0; v < node->n_outputs; v++)
                if (type_mentions(&node->outputs[v]->type, symbol))
                    return true;
        }
    return false;
}

/* Where the model declares that name for an extent of a value that is a symbol by itself, that symbol gets the bound;
 * false: nowhere. */
static bool bound_declared(compiler *c, const graph_module *m, const dim_binding *b)
{
    bool found = false;
    for (uint32_t f = 0; f < m->funcs.len; f++)
        for (uint32_t n = 0; n < m->funcs.data[f]->nodes.len; n++) {
            const graph_node *node = m->funcs.data[f]->nodes.data[n];
            for (uint32_t v = 0; v < node->n_outputs; v++) {
                const type *t = &node->outputs[v]->type, *declared = &node->outputs[v]->declared;
                bool fits = declared->kind == TYPE_TENSOR && t->kind == TYPE_TENSOR &&
                            declared->shape.rank == t->shape.rank;
                for (int32_t k = 0; fits && k < t->shape.rank; k++) {
                    const char *alias = dim_symbol_name(declared->shape.dims[k]);
                    const char *own = dim_symbol_name(t->shape.dims[k]);
                    if (!alias || !own || strcmp(alias, b->name) != 0)
                        continue;
                    (void)dim_symbol(c, own, b->dims[0]);
                    found = true;
                }
            }
        }
    return found;
}

/* An extent that a caller states is bounded where it is opened; a second bound would narrow it without a word. */
static bool check_no_input(compiler *c, const graph_module *m, const char *name)
{
    const graph_func *f = graph_module_find(m, "main");
    for (uint32_t i = 0; f && i < f->params.len; i++) {
        const char *input = f->params.data[i]->name;
        if (!type_mentions(&f->params.data[i]->type, name))
            continue;
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                   "--bound: '%s' is an extent of input '%s', so each run states it", name, input);
        diag_hint(&c->diags, "limit it with --dim '%s<=N', or in graph text with: where %s <= N", name, name);
        return false;
    }
    return true;
}

/* Bounds of extents that no input states. */
static bool set_bounds(compiler *c, const graph_module *m, const compile_options *o)
{
    for (uint32_t i = 0; i < o->n_bounds; i++) {
        const dim_binding *b = &o->bounds[i];
        if (!check_no_input(c, m, b->name))
            return false;
        if (is_mentioned(m, b->name))
            (void)dim_symbol(c, b->name, b->dims[0]);
        else if (!bound_declared(c, m, b))
            return no_such_extent(c, m, b->name);
    }
    return true;
}

/* --- models --- */

bool pipeline_load(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_MODEL, NULL, out) && set_bounds(c, *out, o) && state_mark(c, *out, o, NULL);
}

bool pipeline_load_inputs(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_INPUTS, NULL, out);
}

bool pipeline_load_to_look(compiler *c, const char *path, const compile_options *o, graph_module **out)
{
    return load(c, path, o, LOAD_TO_LOOK, NULL, out);
}

bool read_graph(compiler *c, const char *path, const compile_options *o, compile_result *r)
{
    r->n_states = o->n_states;
    return load(c, path, o, LOAD_MODEL, o->proof ? &r->model_sha256 : NULL, &r->graph) && set_bounds(c, r->graph, o) &&
           state_mark(c, r->graph, o, &r->states);
}

/* --- computations --- */

bool pipeline_is_computation(compiler *c, const char *path, const compile_options *o, bool *out)
{
    span bytes;
    file_format format;
    *out = false;
    if (!format_read(c, o->verb, path, &bytes, &format))
        return false;
    *out = format == FORMAT_COMPUTATION;
    return true;
}

bool read_computation(compiler *c, const char *path, const compile_options *o, const target *t, prog_module **out)
{
    span bytes;
    computation from;
    if (o->n_dims + o->n_shapes + o->n_binds + o->n_bounds + o->n_states > 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "'%s' is a computation: --shape, --dim, --bind, --bound and --state are only for models",
                          path);
    if (o->n_schedules > 0)
        return computation_refuses_schedules(c, path);
    const bool as_it_stands = o->opt_level == 0 || o->stop == STOP_PROG; /* a program holds no schedules */
    if (o->schedule && o->opt_level == 0)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "--schedule: -O 0 compiles the computation as it stands; leave one of them out");
    if (o->schedule && as_it_stands)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "--schedule: --interpret and --emit prog take the computation as it stands; leave one out");
    if (o->stop == STOP_GRAPH || o->stop == STOP_SCHEDULE)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' is a computation and has no %s of a model", path,
                          compile_emit_name(o));
    if (!compiler_read_file(c, path, &bytes) || !computation_read(c, path, bytes, o->schedule, &from))
        return false;
    if (as_it_stands && o->opt_level > 0 && from.schedule.data)
        diag_note(&c->diags, DIAG_USAGE, src_loc_none(),
                  "--interpret and --emit prog take the plain loops of '%s', without its schedule", path);
    if (as_it_stands)
        from.schedule = (span){NULL, 0};
    return computation_program(c, &from, t, out);
}
