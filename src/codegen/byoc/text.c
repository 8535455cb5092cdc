/* SPDX-License-Identifier: Apache-2.0 */
/* What code generators write (include/lathe/codegen.h): headers, text at file scope, lines of a function; names of its
 * values, and the scratch that they lie in, which later values use again. */
#include "codegen/backend.h"
#include "codegen/byoc/byoc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCRATCH_ALIGN 64u

static char *print(lathe_gen *g, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = arena_array(&g->c->mem, char, (size_t)(n > 0 ? n : 0) + 1);
    (void)vsnprintf(text, (size_t)(n > 0 ? n : 0) + 1, format, args);
    return text;
}

const char *lathe_gen_text(lathe_gen *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = print(g, format, args);
    va_end(args);
    return text;
}

void *lathe_gen_user(const lathe_gen *g)
{
    return g->own->user;
}

lathe_compiler *lathe_gen_compiler(const lathe_gen *g)
{
    return g->c;
}

const char *lathe_gen_symbol(const lathe_gen *g)
{
    return g->region ? g->region->symbol : "";
}

/* --- what was wrong --- */

bool lathe_gen_decline(lathe_gen *g, const char *format, ...)
{
    char why[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (!g->region)
        return lathe_gen_error(g, NULL, "the generator %s declines no function: %s", g->own->name, why);
    g->region->declined = true;
    g->region->why = arena_strdup(&g->c->mem, why);
    const src_loc at = g->node ? g->node->loc : src_loc_none();
    diag_note(&g->c->diags, DIAG_UNSUPPORTED, at, "@%s runs on the CPU, not on %s: %s", g->region->kernel->func->name,
              g->own->name, why);
    return false;
}

bool lathe_gen_error(lathe_gen *g, const lathe_node *n, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n ? n->loc : src_loc_none(), "%s", text);
}

/* --- the file --- */

void lathe_gen_library_header(lathe_gen *g, const char *name, const char *from)
{
    const char *text = intern(g->c->names, name);
    for (uint32_t i = 0; i < g->included.len; i++)
        if (g->included.data[i] == text)
            return;
    vec_push(&g->c->mem, &g->included, text);
    if (from) /* a compiler that cannot ask says it in its own words */
        w_fmt(&g->headers, "#ifdef __has_include\n#if !__has_include(<%s>)\n#error \"%s is not there: %s\"\n#endif\n"
              "#endif\n", name, name, from);
    w_fmt(&g->headers, "#include <%s>\n", name);
}

void lathe_gen_header(lathe_gen *g, const char *name)
{
    lathe_gen_library_header(g, name, NULL);
}

void lathe_gen_declare(lathe_gen *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = intern(g->c->names, print(g, format, args));
    va_end(args);
    for (uint32_t i = 0; i < g->declared.len; i++)
        if (g->declared.data[i] == text)
            return;
    vec_push(&g->c->mem, &g->declared, text);
    w_str(&g->file, text);
    w_str(&g->file, "\n");
}

void lathe_gen_line(lathe_gen *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w_line(&g->body, "%s", print(g, format, args));
    va_end(args);
}

void lathe_gen_check(lathe_gen *g, const char *condition, int32_t status)
{
    lathe_gen_line(g, "if (!(%s))\n    return %d;", condition, (int)status);
}

/* An element as C writes it; of the short floating types, which are integers in C, the bits. */
static const char *number(lathe_gen *g, dtype dt, const void *at)
{
    writer w;
    writer_init(&w, &g->c->mem);
    if (dt != DT_F32 && dt != DT_F64) {
        w_fmt(&w, "%lld", (long long)dtype_load_i64(dt == DT_F16 || dt == DT_BF16 ? DT_U16 : dt, at));
        return w.data;
    }
    const double v = dtype_load_f64(dt, at);
    if (v != v || v - v != 0)
        return v != v ? "NAN" : v > 0 ? "INFINITY" : "-INFINITY";
    w_float(&w, v, dt == DT_F32 ? 32 : 64);
    w_str(&w, dt == DT_F32 ? "F" : "");
    return w.data;
}

static void add_name(lathe_gen *g, const graph_value *v, const char *text)
{
    vec_push(&g->c->mem, &g->names, ((gen_name){v, text}));
}

const char *lathe_gen_table(lathe_gen *g, const char *name, const char *dtype_text, const void *data, int64_t count)
{
    dtype dt = DT_U8;
    writer w;
    writer_init(&w, &g->c->mem);
    (void)dtype_parse(dtype_text, &dt);
    const char *c_name = gen_identifier(g, lathe_gen_text(g, "%s_%s", lathe_gen_symbol(g), name));
    add_name(g, NULL, c_name); /* of no value: only taken */
    w_fmt(&w, "static const %s %s[%lld] = {", dtype_c_name(dt), c_name, (long long)(count > 0 ? count : 1));
    for (int64_t i = 0; i < count; i++)
        w_fmt(&w, "%s%s", i == 0 ? "" : i % 12 ? ", " : ",\n    ",
              number(g, dt, (const uint8_t *)data + (size_t)i * dtype_bytes(dt)));
    w_str(&w, count > 0 ? "};" : "0};");
    if (dtype_is_float(dt))
        lathe_gen_header(g, "math.h"); /* NAN, INFINITY */
    lathe_gen_declare(g, "%s", w.data);
    return c_name;
}

/* --- names --- */

static bool is_taken(const lathe_gen *g, const char *name)
{
    bool taken = strcmp(name, "scratch") == 0;
    for (uint32_t i = 0; i < g->names.len; i++)
        taken |= g->names.data[i].text == name;
    return taken;
}

const char *gen_identifier(lathe_gen *g, const char *wanted)
{
    const char *base = intern(g->c->names, codegen_c_identifier(&g->c->mem, wanted)), *name = base;
    for (uint32_t i = 1; is_taken(g, name); i++)
        name = intern(g->c->names, arena_printf(&g->c->mem, "%s_%u", base, i));
    return name;
}

static const char *find_name(const lathe_gen *g, const graph_value *v)
{
    for (uint32_t i = 0; i < g->names.len; i++)
        if (g->names.data[i].value == v)
            return g->names.data[i].text;
    return NULL;
}

void gen_begin_func(lathe_gen *g, prog_region *r)
{
    const graph_func *f = r->kernel->func;
    g->region = r;
    g->node = NULL;
    g->names.len = g->blocks.len = 0;
    g->at = 0;
    r->scratch = 0;
    writer_init(&g->body, &g->c->mem);
    g->body.step = 4;
    g->body.indent = 1;
    for (uint32_t i = 0; i < f->params.len; i++)
        add_name(g, f->params.data[i], gen_identifier(g, f->params.data[i]->name));
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!find_name(g, f->results.data[i])) /* else it is copied in the end */
            add_name(g, f->results.data[i], gen_identifier(g, f->results.data[i]->name));
}

const lathe_graph_value *lathe_gen_outer(const lathe_gen *g, const lathe_graph_value *v)
{
    const graph_func *f = g->node ? lathe_node_composite(g->node) : NULL;
    for (uint32_t i = 0; f && i < f->params.len; i++)
        if (f->params.data[i] == v)
            return g->node->inputs[i];
    for (uint32_t i = 0; f && i < f->results.len; i++)
        if (f->results.data[i] == v)
            return g->node->outputs[i];
    return v;
}

static const tensor_data *constant_of(const lathe_gen *g, const graph_value *v)
{
    v = lathe_gen_outer(g, v);
    const graph_func *f = g->region->kernel->func;
    for (uint32_t i = 0; i < f->params.len && g->region->kernel->constants; i++)
        if (f->params.data[i] == v)
            return g->region->kernel->constants[i];
    return graph_constant(v);
}

const void *lathe_gen_constant(const lathe_gen *g, const lathe_graph_value *v)
{
    const tensor_data *t = v ? constant_of(g, v) : NULL;
    return t ? gen_bytes(g->c, t) : NULL;
}

/* --- constants in another order --- */

/* The elements of t, each at the place that the strides give it. */
static const tensor_data *move_elements(lathe_gen *g, const tensor_data *t, const int64_t *strides)
{
    const size_t size = dtype_bytes(t->dt);
    const uint8_t *from = gen_bytes(g->c, t);
    uint8_t *to = arena_alloc(&g->c->mem, tensor_size(t) + 1, 64);
    int64_t *index = arena_array(&g->c->mem, int64_t, t->rank + 1u), at = 0;
    memset(index, 0, t->rank * sizeof *index);
    for (int64_t n = 0; n < t->count; n++) {
        memcpy(to + (size_t)at * size, from + (size_t)n * size, size);
        for (uint32_t axis = t->rank; axis-- > 0;) {
            at += strides[axis];
            if (++index[axis] < t->dims[axis])
                break;
            at -= index[axis] * strides[axis];
            index[axis] = 0;
        }
    }
    return tensor_dense(g->c, t->dt, t->rank, t->dims, to);
}

bool lathe_gen_move(lathe_gen *g, const lathe_graph_value *v, const int64_t *strides)
{
    prog_region *r = g->region;
    const graph_func *f = r->kernel->func;
    const size_t size = (size_t)v->type.shape.rank * sizeof *strides;
    uint32_t param = 0;
    v = lathe_gen_outer(g, v);
    while (param < f->params.len && f->params.data[param] != v)
        param++;
    if (param == f->params.len || !r->kernel->constants || !r->kernel->constants[param])
        return lathe_gen_decline(g, "'%s' is no constant operand of the region", v->name);
    for (uint32_t i = 0; i < r->moved.len; i++)
        if (r->moved.data[i].param == param)
            return memcmp(r->moved.data[i].strides, strides, size) == 0 ||
                   lathe_gen_decline(g, "'%s' is wanted in two orders", v->name);
    arena *mem = &g->c->mem;
    const int64_t *kept = arena_copy(mem, strides, size, _Alignof(int64_t));
    vec_push(mem, &r->moved, ((prog_moved){param, move_elements(g, r->kernel->constants[param], strides), kept}));
    return true;
}

/* --- scratch --- */

/* Where so many bytes fit between the blocks in use, as low as can be. */
static uint64_t place(const lathe_gen *g, uint64_t bytes)
{
    uint64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < g->blocks.len; i++) {
            const gen_block *b = &g->blocks.data[i];
            if (at < b->offset + b->bytes && b->offset < at + bytes) {
                at = b->offset + b->bytes;
                moved = true;
            }
        }
    }
    return at;
}

static uint64_t take(lathe_gen *g, uint64_t bytes, const graph_value *v)
{
    bytes = (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    bytes += bytes == 0 ? SCRATCH_ALIGN : 0;
    const uint64_t at = place(g, bytes), end = at + bytes;
    vec_push(&g->c->mem, &g->blocks, ((gen_block){at, bytes, v}));
    g->region->scratch = end > g->region->scratch ? end : g->region->scratch;
    return at;
}

uint64_t gen_take(lathe_gen *g, uint64_t bytes)
{
    return take(g, bytes, NULL);
}

void gen_release(lathe_gen *g, uint64_t at)
{
    for (uint32_t i = 0; i < g->blocks.len; i++)
        if (g->blocks.data[i].offset == at) {
            g->blocks.data[i] = g->blocks.data[--g->blocks.len];
            return;
        }
}

const char *lathe_gen_scratch(lathe_gen *g, size_t bytes)
{
    return lathe_gen_text(g, "(void *)(scratch + %llu)", (unsigned long long)take(g, bytes, NULL));
}

static bool is_read_later(const lathe_gen *g, const graph_value *v)
{
    const graph_func *f = g->region->kernel->func;
    bool read = false;
    for (uint32_t i = g->at + 1; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            read |= f->nodes.data[i]->inputs[k] == v;
    return read;
}

void gen_end_node(lathe_gen *g)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->blocks.len; i++)
        if (g->blocks.data[i].value && is_read_later(g, g->blocks.data[i].value))
            g->blocks.data[kept++] = g->blocks.data[i];
    g->blocks.len = kept;
    g->at++;
}

/* Whether v is a result of a node of the function itself. */
static bool is_made_here(const lathe_gen *g, const graph_value *v)
{
    const graph_func *f = g->region->kernel->func;
    for (uint32_t i = 0; v->def && i < f->nodes.len; i++)
        if (f->nodes.data[i] == v->def)
            return true;
    return false;
}

const char *lathe_gen_name(lathe_gen *g, const lathe_graph_value *v)
{
    v = lathe_gen_outer(g, v);
    const char *name = find_name(g, v);
    const tensor_data *t = graph_constant(v);
    if (name)
        return name;
    if (t) {
        name = lathe_gen_table(g, v->name, dtype_name(t->dt), lathe_gen_constant(g, v), t->count);
    } else if (is_made_here(g, v)) {
        const uint64_t at = take(g, (uint64_t)type_bytes(&v->type), v);
        name = gen_identifier(g, v->name);
        lathe_gen_line(g, "%s *const %s = (void *)(scratch + %llu);", dtype_c_name(v->type.dt), name,
                       (unsigned long long)at);
    } else {
        (void)lathe_gen_error(g, g->node, "the generator %s asks for '%s', which is made inside of a composite",
                              g->own->name, v->name);
        return NULL;
    }
    add_name(g, v, name);
    return name;
}
