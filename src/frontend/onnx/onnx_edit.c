/* SPDX-License-Identifier: Apache-2.0 */
/* Edits an ONNX model in memory, before it is written to a new file. */
#include "frontend/onnx/onnx_edit.h"

#include <math.h>
#include <string.h>

#include "frontend/onnx/onnx_import.h"

enum { FIELD_RAW = 9, FIELD_LOCATION = 14, ATTRIBUTE_INT = 2, FIELD_I = 3, FIELD_TYPE = 20 };

static span text(const char *s)
{
    return (span){(const uint8_t *)s, strlen(s)};
}

const char *onnx_edit_name(const onnx_edit *e, span s)
{
    return intern_n(e->c->names, (const char *)s.data, s.len);
}

static bool is_text(span s, const char *want)
{
    return s.len == strlen(want) && (s.len == 0 || memcmp(s.data, want, s.len) == 0);
}

/* --- reading --- */

static void take(onnx_edit *e, const char *name)
{
    if (*name)
        ptr_map_set(&e->taken, name, 1);
}

static void add_tensor(onnx_edit *e, const char *name, const pb_tensor *t)
{
    ptr_map_set(&e->constants, name, e->tensors.len);
    vec_push(&e->c->mem, &e->tensors, t);
    take(e, name);
}

static const pb_attribute *find_attribute(const pb_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->attribute.len; i++)
        if (is_text(n->attribute.data[i]->name, name))
            return n->attribute.data[i];
    return NULL;
}

static const tensor_data *read_tensor(onnx_edit *e, const pb_tensor *t)
{
    onnx_importer im = {.c = e->c, .path = e->path, .bytes = e->bytes};
    diags_mark mark = diags_get_mark(&e->c->diags);
    const tensor_data *d = onnx_tensor_read(&im, t, onnx_loc(&im));
    return onnx_report_lost(&im, mark) ? d : NULL;
}

/* External data becomes part of the file. t may be NULL. */
static bool embed(onnx_edit *e, pb_tensor *t)
{
    if (!t || t->data_location != 1)
        return true;
    const tensor_data *d = read_tensor(e, t);
    if (!d)
        return false;
    t->raw_data = (span){d->data, tensor_size(d)};
    t->external_data.len = 0;
    t->data_location = 0;
    t->has = (t->has | (uint64_t)1 << FIELD_RAW) & ~((uint64_t)1 << FIELD_LOCATION);
    return true;
}

static bool read_graph(onnx_edit *e, const pb_graph *g);

static bool embed_sparse(onnx_edit *e, const pb_sparse *s)
{
    return !s || (embed(e, s->values) && embed(e, s->indices));
}

/* Tensors and bodies of attributes. */
static bool read_attributes(onnx_edit *e, uint32_t n, pb_attribute *const *list)
{
    for (uint32_t i = 0; i < n; i++) {
        const pb_attribute *a = list[i];
        bool ok = embed(e, a->t) && embed_sparse(e, a->sparse_tensor) && (!a->g || read_graph(e, a->g));
        for (uint32_t k = 0; ok && k < a->tensors.len; k++)
            ok = embed(e, a->tensors.data[k]);
        for (uint32_t k = 0; ok && k < a->graphs.len; k++)
            ok = read_graph(e, a->graphs.data[k]);
        if (!ok)
            return false;
    }
    return true;
}

static bool read_node(onnx_edit *e, const pb_node *n)
{
    take(e, onnx_edit_name(e, n->name));
    for (uint32_t k = 0; k < n->output.len; k++)
        take(e, onnx_edit_name(e, n->output.data[k]));
    return read_attributes(e, n->attribute.len, n->attribute.data);
}

/* Names and external data, of bodies as well: a new name must not be theirs. */
static bool read_graph(onnx_edit *e, const pb_graph *g)
{
    bool ok = true;
    for (uint32_t i = 0; i < g->input.len; i++)
        take(e, onnx_edit_name(e, g->input.data[i]->name));
    for (uint32_t i = 0; ok && i < g->initializer.len; i++) {
        take(e, onnx_edit_name(e, g->initializer.data[i]->name));
        ok = embed(e, g->initializer.data[i]);
    }
    for (uint32_t i = 0; ok && i < g->sparse_initializer.len; i++)
        ok = embed_sparse(e, g->sparse_initializer.data[i]);
    for (uint32_t i = 0; ok && i < g->node.len; i++)
        ok = read_node(e, g->node.data[i]);
    return ok;
}

static bool read_functions(onnx_edit *e)
{
    for (uint32_t i = 0; i < e->model->functions.len; i++) {
        const pb_function *f = e->model->functions.data[i];
        if (!read_attributes(e, f->attribute_proto.len, f->attribute_proto.data))
            return false;
        for (uint32_t k = 0; k < f->node.len; k++)
            if (!read_attributes(e, f->node.data[k]->attribute.len, f->node.data[k]->attribute.data))
                return false;
    }
    return true;
}

static void read_constants(onnx_edit *e)
{
    const pb_graph *g = e->graph;
    for (uint32_t i = 0; i < g->node.len; i++) {
        const pb_node *n = g->node.data[i];
        const pb_attribute *value = is_text(n->op_type, "Constant") ? find_attribute(n, "value") : NULL;
        if (value && value->t && n->output.len == 1)
            add_tensor(e, onnx_edit_name(e, n->output.data[0]), value->t);
    }
    for (uint32_t i = 0; i < g->initializer.len; i++)
        add_tensor(e, onnx_edit_name(e, g->initializer.data[i]->name), g->initializer.data[i]);
}

bool onnx_edit_open(compiler *c, span bytes, const char *path, onnx_edit *out)
{
    *out = (onnx_edit){.c = c, .path = path, .bytes = bytes};
    ptr_map_init(&out->constants, &c->mem);
    ptr_map_init(&out->taken, &c->mem);
    if (!onnx_wire_model(c, path, bytes, &out->model))
        return false;
    out->graph = out->model->graph;
    src_loc loc = src_loc_none();
    loc.file = path;
    if (!out->graph)
        return diag_error(&c->diags, DIAG_FORMAT, loc, "not an ONNX model: it holds no graph");
    if (!read_graph(out, out->graph) || !read_functions(out))
        return false;
    read_constants(out);
    return true;
}

bool onnx_edit_bytes(onnx_edit *e, span *out)
{
    return onnx_wire_write(e->c, e->model, out);
}

int64_t onnx_edit_opset(const onnx_edit *e)
{
    for (uint32_t i = 0; i < e->model->opset_import.len; i++) {
        const pb_opset *o = e->model->opset_import.data[i];
        if (is_text(o->domain, "") || is_text(o->domain, "ai.onnx"))
            return o->version;
    }
    return 0;
}

const char *onnx_edit_op(const onnx_edit *e, const pb_node *n)
{
    return is_text(n->domain, "") || is_text(n->domain, "ai.onnx") ? onnx_edit_name(e, n->op_type) : "";
}

const char *onnx_edit_input(const onnx_edit *e, const pb_node *n, uint32_t i)
{
    return i < n->input.len ? onnx_edit_name(e, n->input.data[i]) : "";
}

const char *onnx_edit_output(const onnx_edit *e, const pb_node *n, uint32_t i)
{
    return i < n->output.len ? onnx_edit_name(e, n->output.data[i]) : "";
}

const tensor_data *onnx_edit_constant(onnx_edit *e, const char *name)
{
    uint32_t at = 0;
    if (!*name || !ptr_map_get(&e->constants, name, &at) || e->tensors.data[at]->data_type == 8) /* strings */
        return NULL;
    return read_tensor(e, e->tensors.data[at]);
}

int64_t onnx_edit_int(const onnx_edit *e, const pb_node *n, const char *attribute, int64_t otherwise)
{
    (void)e;
    const pb_attribute *a = find_attribute(n, attribute);
    return a ? a->i : otherwise;
}

double onnx_edit_float(const onnx_edit *e, const pb_node *n, const char *attribute, double otherwise)
{
    (void)e;
    const pb_attribute *a = find_attribute(n, attribute);
    return a ? (double)a->f : otherwise;
}

const char *onnx_edit_string(const onnx_edit *e, const pb_node *n, const char *attribute, const char *otherwise)
{
    const pb_attribute *a = find_attribute(n, attribute);
    return a ? onnx_edit_name(e, a->s) : otherwise;
}

bool onnx_edit_is_result(const onnx_edit *e, const char *name)
{
    for (uint32_t i = 0; i < e->graph->output.len; i++)
        if (onnx_edit_name(e, e->graph->output.data[i]->name) == name)
            return true;
    return false;
}

static void count_read(const onnx_edit *e, ptr_map *out, span name, uint32_t by)
{
    uint32_t n = 0;
    const char *s = onnx_edit_name(e, name);
    (void)ptr_map_get(out, s, &n);
    ptr_map_set(out, s, n + by);
}

static void count_reads(const onnx_edit *e, const pb_graph *g, ptr_map *out)
{
    for (uint32_t i = 0; i < g->node.len; i++) {
        const pb_node *n = g->node.data[i];
        for (uint32_t k = 0; k < n->input.len; k++)
            count_read(e, out, n->input.data[k], 1);
        for (uint32_t k = 0; k < n->attribute.len; k++) {
            const pb_attribute *a = n->attribute.data[k];
            if (a->g)
                count_reads(e, a->g, out);
            for (uint32_t b = 0; b < a->graphs.len; b++)
                count_reads(e, a->graphs.data[b], out);
        }
    }
    for (uint32_t i = 0; i < g->output.len; i++) /* whoever gets it, no node of the graph is the only one */
        count_read(e, out, g->output.data[i]->name, 2);
}

void onnx_edit_count_reads(const onnx_edit *e, ptr_map *out)
{
    ptr_map_init(out, &e->c->mem);
    count_reads(e, e->graph, out);
}

/* --- changing --- */

const char *onnx_edit_fresh(onnx_edit *e, const char *want)
{
    return intern_unique(e->c->names, &e->taken, want);
}

const char *onnx_edit_add_constant(onnx_edit *e, const char *want, const tensor_data *t)
{
    arena *a = &e->c->mem;
    const char *name = onnx_edit_fresh(e, want);
    pb_tensor *pb = arena_new(a, pb_tensor);
    for (uint32_t i = 0; i < t->rank; i++)
        vec_push(a, &pb->dims, t->dims[i]);
    pb->data_type = dtype_onnx_code(t->dt);
    pb->name = text(name);
    pb->raw_data = (span){tensor_plain_bytes(a, t), tensor_size(t)};
    pb->has = (uint64_t)1 << FIELD_RAW;
    vec_push(a, &e->graph->initializer, pb);
    add_tensor(e, name, pb);
    return name;
}

pb_node *onnx_edit_node(onnx_edit *e, const char *op, uint32_t n_in, const char *const *in, const char *result)
{
    arena *a = &e->c->mem;
    pb_node *n = arena_new(a, pb_node);
    n->op_type = text(op);
    n->name = text(onnx_edit_fresh(e, arena_printf(a, "%s_%s", result, op)));
    for (uint32_t i = 0; i < n_in; i++)
        vec_push(a, &n->input, text(in[i]));
    vec_push(a, &n->output, text(result));
    return n;
}

void onnx_edit_set_int(onnx_edit *e, pb_node *n, const char *attribute, int64_t v)
{
    pb_attribute *a = arena_new(&e->c->mem, pb_attribute);
    a->name = text(attribute);
    a->i = v;
    a->type = ATTRIBUTE_INT;
    a->has = (uint64_t)1 << FIELD_I | (uint64_t)1 << FIELD_TYPE;
    vec_push(&e->c->mem, &n->attribute, a);
}

void onnx_edit_set_input(onnx_edit *e, pb_node *n, uint32_t i, const char *name)
{
    if (i < n->input.len)
        n->input.data[i] = text(name);
    else
        vec_push(&e->c->mem, &n->input, text(name));
}

void onnx_edit_set_output(onnx_edit *e, pb_node *n, const char *from, const char *to)
{
    for (uint32_t i = 0; i < n->output.len; i++)
        if (onnx_edit_output(e, n, i) == from)
            n->output.data[i] = text(to);
}

uint32_t onnx_edit_add_result(onnx_edit *e, const char *name)
{
    for (uint32_t i = 0; i < e->graph->output.len; i++)
        if (onnx_edit_name(e, e->graph->output.data[i]->name) == name)
            return i;
    pb_value_info *v = arena_new(&e->c->mem, pb_value_info);
    v->name = text(name);
    vec_push(&e->c->mem, &e->graph->output, v);
    return e->graph->output.len - 1;
}

void onnx_edit_set_metadata(onnx_edit *e, const char *key, const char *value)
{
    pb_model *m = e->model;
    for (uint32_t i = 0; i < m->metadata_props.len; i++)
        if (is_text(m->metadata_props.data[i]->key, key)) {
            m->metadata_props.data[i]->value = text(value);
            return;
        }
    pb_entry *entry = arena_new(&e->c->mem, pb_entry);
    entry->key = text(key);
    entry->value = text(value);
    vec_push(&e->c->mem, &m->metadata_props, entry);
}

/* --- batch norms --- */

static bool is_vector(const tensor_data *t, int64_t channels)
{
    return t && t->dt == DT_F32 && t->count == channels;
}

/* What the norm multiplies and adds, for each channel. */
static bool read_norm(onnx_edit *e, const pb_node *bn, int64_t channels, double *scale, double *shift)
{
    const tensor_data *t[4];
    for (uint32_t i = 0; i < 4; i++)
        if (!is_vector(t[i] = onnx_edit_constant(e, onnx_edit_input(e, bn, 1 + i)), channels))
            return false;
    double epsilon = onnx_edit_float(e, bn, "epsilon", 1e-5);
    for (int64_t i = 0; i < channels; i++) {
        scale[i] = tensor_get_f64(t[0], i) / sqrt(tensor_get_f64(t[3], i) + epsilon);
        shift[i] = tensor_get_f64(t[1], i) - tensor_get_f64(t[2], i) * scale[i];
    }
    return true;
}

static bool fold_norm(onnx_edit *e, pb_node *conv, const pb_node *bn)
{
    arena *a = &e->c->mem;
    const char *weights = onnx_edit_input(e, conv, 1), *bias = onnx_edit_input(e, conv, 2);
    const tensor_data *w = onnx_edit_constant(e, weights), *b = *bias ? onnx_edit_constant(e, bias) : NULL;
    if (!w || w->dt != DT_F32 || w->rank < 3 || w->dims[0] < 1 || (*bias && !is_vector(b, w->dims[0])))
        return false;
    int64_t channels = w->dims[0], each = w->count / channels;
    double *scale = arena_array(a, double, (size_t)channels), *shift = arena_array(a, double, (size_t)channels);
    if (!read_norm(e, bn, channels, scale, shift))
        return false;
    float *new_w = arena_array(a, float, (size_t)w->count), *new_b = arena_array(a, float, (size_t)channels);
    for (int64_t i = 0; i < w->count; i++)
        new_w[i] = (float)(tensor_get_f64(w, i) * scale[i / each]);
    for (int64_t i = 0; i < channels; i++)
        new_b[i] = (float)((b ? tensor_get_f64(b, i) : 0) * scale[i] + shift[i]);
    onnx_edit_set_input(e, conv, 1, onnx_edit_add_constant(e, arena_printf(a, "%s_folded", weights),
                                                           tensor_dense(e->c, DT_F32, w->rank, w->dims, new_w)));
    const char *want = arena_printf(a, "%s_bias", onnx_edit_output(e, bn, 0));
    onnx_edit_set_input(e, conv, 2, onnx_edit_add_constant(e, want, tensor_dense(e->c, DT_F32, 1, &channels, new_b)));
    conv->output.data[0] = bn->output.data[0];
    return true;
}

uint32_t onnx_edit_fold_batch_norms(onnx_edit *e)
{
    pb_graph *g = e->graph;
    uint32_t folded = 0;
    VEC(pb_node *) kept = {0};
    ptr_map makers, reads;
    ptr_map_init(&makers, &e->c->mem);
    onnx_edit_count_reads(e, &reads);
    for (uint32_t i = 0; i < g->node.len; i++) {
        pb_node *n = g->node.data[i];
        uint32_t at = 0, readers = 0;
        const char *x = onnx_edit_input(e, n, 0);
        bool norm = strcmp(onnx_edit_op(e, n), "BatchNormalization") == 0 && n->output.len == 1 &&
                    onnx_edit_int(e, n, "training_mode", 0) == 0 && ptr_map_get(&makers, x, &at);
        if (norm && ptr_map_get(&reads, x, &readers) && readers == 1 && fold_norm(e, kept.data[at], n)) {
            folded++;
            continue;
        }
        if (strcmp(onnx_edit_op(e, n), "Conv") == 0)
            ptr_map_set(&makers, onnx_edit_output(e, n, 0), kept.len);
        vec_push(&e->c->mem, &kept, n);
    }
    g->node.data = kept.data;
    g->node.len = kept.len;
    g->node.cap = kept.cap;
    return folded;
}
