/* SPDX-License-Identifier: Apache-2.0 */
/* The changes are walked over in one order and counted; the one whose number is reached is made (here). What a change
 * breaks beside itself, say a type that is declared further on, stays as it was: the importer has to see that. */
#include "onnx_mutate.h"

#include <string.h>

enum { FIELD_F = 2, FIELD_I, FIELD_S, FIELD_T, FIELD_G, FIELD_TYPE = 20 };
enum { AT_NONE, AT_FLOAT, AT_INT, AT_STRING, AT_TENSOR, AT_GRAPH, AT_FLOATS, AT_INTS, AT_STRINGS, AT_COUNT };
#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

typedef struct walk {
    compiler *c;
    pb_model *m;
    uint32_t number, seen;
    const char *done; /* name of the change that was made */
} walk;

static bool here(walk *w, const char *name)
{
    if (w->done || w->seen++ != w->number)
        return false;
    w->done = name;
    return true;
}

static span text(const char *s)
{
    return (span){(const uint8_t *)s, strlen(s)};
}

/* Removes element i of a vector. */
#define vec_remove(v, i)                                                                                       \
    (memmove((v)->data + (i), (v)->data + (i) + 1, ((v)->len - (i) - 1u) * sizeof *(v)->data), (void)(v)->len--)

/* --- operands and results --- */

static void change_names(walk *w, pb_spans *v, bool results)
{
    for (uint32_t i = 0; i < v->len; i++) {
        if (here(w, "blank"))
            v->data[i] = text("");
        if (here(w, "cut"))
            v->len = i;
        if (!w->done && here(w, "removed"))
            vec_remove(v, i);
        if (!w->done && here(w, "unknown"))
            v->data[i] = text("nothing_makes_this");
        if (i > 0 && here(w, "same as the first"))
            v->data[i] = v->data[0];
        if (i > 0 && here(w, "swapped")) {
            span s = v->data[i];
            v->data[i] = v->data[i - 1];
            v->data[i - 1] = s;
        }
    }
    const span last = v->len && !results ? v->data[v->len - 1] : text("one_more");
    if (here(w, "one more"))
        vec_push(&w->c->mem, v, last);
    if (here(w, "all twice"))
        for (uint32_t i = 0, n = v->len; i < n; i++) {
            span s = v->data[i];
            vec_push(&w->c->mem, v, s);
        }
    if (here(w, "blank ones at the end"))
        for (uint32_t i = 0; i < 3; i++)
            vec_push(&w->c->mem, v, text(""));
    if (here(w, "many more"))
        for (uint32_t i = 0; i < 300; i++) {
            const span more = results ? text(arena_printf(&w->c->mem, "more_%u", i)) : last;
            vec_push(&w->c->mem, v, more);
        }
}

/* --- attributes --- */

static void set_kind(pb_attribute *a, int64_t kind)
{
    a->type = kind;
    a->has = (uint64_t)1 << FIELD_TYPE | (kind >= AT_FLOAT && kind <= AT_GRAPH ? (uint64_t)1 << (kind + 1) : 0);
}

static void clear_values(pb_attribute *a)
{
    *a = (pb_attribute){.at = a->at, .name = a->name};
}

static void set_ints(walk *w, pb_attribute *a, uint32_t n, int64_t first, int64_t step)
{
    clear_values(a);
    set_kind(a, AT_INTS);
    for (uint32_t i = 0; i < n; i++)
        vec_push(&w->c->mem, &a->ints, first + (int64_t)i * step);
}

static void set_int(pb_attribute *a, int64_t v)
{
    clear_values(a);
    set_kind(a, AT_INT);
    a->i = v;
}

static void set_string(pb_attribute *a, const char *s)
{
    clear_values(a);
    set_kind(a, AT_STRING);
    a->s = text(s);
}

static void set_tensor(walk *w, pb_attribute *a, int64_t dt, uint32_t rank, uint32_t bytes)
{
    clear_values(a);
    set_kind(a, AT_TENSOR);
    a->t = arena_new(&w->c->mem, pb_tensor);
    a->t->data_type = dt;
    for (uint32_t i = 0; i < rank; i++)
        vec_push(&w->c->mem, &a->t->dims, 1);
    a->t->raw_data = (span){arena_array(&w->c->mem, uint8_t, bytes + 1), bytes};
}

static void change_kind(walk *w, pb_attribute *a)
{
    static const float nan_and_one[2] = {0.0F / 1.0F, 1};
    if (a->type != AT_FLOAT && here(w, "a float")) {
        clear_values(a);
        set_kind(a, AT_FLOAT);
        a->f = 1;
    }
    if (a->type != AT_INT && here(w, "an integer"))
        set_int(a, 1);
    if (a->type != AT_STRING && here(w, "a string"))
        set_string(a, "text");
    if (a->type != AT_INTS && here(w, "integers"))
        set_ints(w, a, 2, 0, 1);
    if (a->type != AT_FLOATS && here(w, "floats")) {
        clear_values(a);
        set_kind(a, AT_FLOATS);
        a->floats = (pb_numbers){(const uint8_t *)nan_and_one, sizeof nan_and_one};
    }
    if (here(w, "a tensor"))
        set_tensor(w, a, 1, 1, 4);
    if (here(w, "a tensor without elements"))
        set_tensor(w, a, 7, 0, 0);
    if (here(w, "a tensor of strings"))
        set_tensor(w, a, 8, 1, 4);
    if (here(w, "an empty graph")) {
        clear_values(a);
        set_kind(a, AT_GRAPH);
        a->g = arena_new(&w->c->mem, pb_graph);
    }
    if (here(w, "a kind without a value")) {
        int64_t kind = a->type;
        clear_values(a);
        a->type = kind;
        a->has = (uint64_t)1 << FIELD_TYPE;
    }
    if (here(w, "no kind"))
        a->type = AT_NONE;
    if (here(w, "an unknown kind"))
        set_kind(a, 77);
    if (here(w, "a reference"))
        a->ref_attr_name = text("of_no_function");
}

static void change_value(walk *w, pb_attribute *a)
{
    static const int64_t some[] = {0, 1, -1, 2, 3, 7, -2, 16, 64, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    static const float floats[] = {0, -1, 1e30F, -1e30F, 0.5F};
    static const char *const strings[] = {"", "linear", "constant", "SAME_UPPER", "mean", "reflect", "Relu", "LEFT"};
    for (uint32_t i = 0; i < COUNT(some) && a->type == AT_INT; i++)
        if (here(w, "another integer"))
            a->i = some[i];
    for (uint32_t i = 0; i < COUNT(floats) && a->type == AT_FLOAT; i++)
        if (here(w, "another float"))
            a->f = floats[i];
    for (uint32_t i = 0; i < COUNT(strings) && a->type == AT_STRING; i++)
        if (here(w, "another string"))
            a->s = text(strings[i]);
    const uint32_t n = a->ints.len;
    for (uint32_t i = 0; i < COUNT(some) && a->type == AT_INTS; i++) {
        if (here(w, "all integers others"))
            set_ints(w, a, n, some[i], 0);
        if (n > 1 && here(w, "the last integer another"))
            a->ints.data[n - 1] = some[i];
    }
    for (uint32_t i = 0; i < 5 && a->type == AT_INTS; i++)
        if (here(w, "another count of integers"))
            set_ints(w, a, i < 2 ? i : i == 2 ? n + 1 : i == 3 ? 2 * n : 40, 1, 0);
    if (a->floats.len > 4 && here(w, "one float less"))
        a->floats.len -= 4;
    if (a->floats.len && here(w, "no floats"))
        a->floats.len = 0;
}

static void add_attributes(walk *w, pb_node *n)
{
    static const char *const names[] = {
        "axes", "axis", "keepdims", "k", "pads", "strides", "dilations", "perm", "shape", "split", "to", "mode",
        "broadcast", "scales", "value", "starts", "ends", "dtype", "group", "alpha", "beta", "epsilon",
        "num_outputs", "auto_pad", "reduction", "layout", "border", "output_shape", "ignore_index", "block_size",
        "transA", "equation", "is_causal", "num_heads", "kernel_shape", "value_ints"};
    for (uint32_t i = 0; i < COUNT(names); i++)
        for (uint32_t k = 0; k < 2; k++) {
            if (!here(w, "an attribute more"))
                continue;
            pb_attribute *a = arena_new(&w->c->mem, pb_attribute);
            a->name = text(names[i]);
            if (k == 0)
                set_int(a, 1);
            else
                set_ints(w, a, 2, 0, 1);
            vec_push(&w->c->mem, &n->attribute, a);
            return;
        }
}

static void change_attributes(walk *w, pb_node *n)
{
    for (uint32_t i = 0; i < n->attribute.len && !w->done; i++) {
        pb_attribute *a = n->attribute.data[i];
        change_kind(w, a);
        change_value(w, a);
        if (here(w, "an attribute twice")) {
            vec_push(&w->c->mem, &n->attribute, a);
            return;
        }
        if (here(w, "an attribute removed")) {
            vec_remove(&n->attribute, i);
            return;
        }
    }
    add_attributes(w, n);
}

/* --- types --- */

static void set_extent(pb_dimension *d, int64_t v)
{
    d->dim_value = v;
    d->dim_param = (span){0};
    d->has = (uint64_t)1 << 1;
}

static void change_shape(walk *w, pb_tensor_shape *s)
{
    static const int64_t extents[] = {0, 1, 2, 3, 5, 17, 1024, -1, (int64_t)1 << 40, INT64_MAX};
    for (uint32_t i = 0; i < s->dim.len && !w->done; i++) {
        for (uint32_t k = 0; k < COUNT(extents); k++)
            if (here(w, "another extent"))
                set_extent(s->dim.data[i], extents[k]);
        if (here(w, "an open extent")) {
            s->dim.data[i]->dim_param = text("open");
            s->dim.data[i]->has = (uint64_t)1 << 2;
        }
        if (here(w, "an extent without value")) {
            s->dim.data[i]->dim_param = (span){0};
            s->dim.data[i]->has = 0;
            s->dim.data[i]->dim_value = 0;
        }
        if (here(w, "an axis less"))
            vec_remove(&s->dim, i);
    }
    if (w->done)
        return;
    static const uint32_t more[] = {1, 2, 4, 14, 40};
    if (s->dim.len > 0 && here(w, "no axes"))
        s->dim.len = 0;
    for (uint32_t k = 0; k < COUNT(more) * 2; k++) {
        if (!here(w, "axes more"))
            continue;
        for (uint32_t i = 0; i < more[k / 2]; i++) {
            pb_dimension *d = arena_new(&w->c->mem, pb_dimension);
            set_extent(d, k % 2 ? 2 : 1);
            vec_push(&w->c->mem, &s->dim, d);
            if (s->dim.len > 1) { /* in front */
                pb_dimension *last = s->dim.data[s->dim.len - 1];
                memmove(s->dim.data + 1, s->dim.data, (s->dim.len - 1u) * sizeof *s->dim.data);
                s->dim.data[0] = last;
            }
        }
    }
}

/* FLOAT .. FLOAT6E3M2, and numbers that name no type. */
static void change_dtype(walk *w, int64_t *dt)
{
    for (int64_t k = 0; k <= 29; k++)
        if (k != *dt && here(w, "another element type"))
            *dt = k;
}

/* A tensor, or the sequence, optional or map that it is in. */
static void change_held(walk *w, pb_type *t)
{
    pb_type **of = t->sequence_type ? &t->sequence_type->elem_type : t->optional_type ? &t->optional_type->elem_type :
                   t->map_type      ? &t->map_type->value_type : NULL;
    if (of && *of) {
        change_held(w, *of);
        if (here(w, "no type of elements"))
            *of = NULL;
        else if (here(w, "an element in place of many"))
            *t = **of;
    }
    if (t->tensor_type && here(w, "no tensor"))
        t->tensor_type = NULL;
    if (w->done || !t->tensor_type)
        return;
    change_dtype(w, &t->tensor_type->elem_type);
    if (t->tensor_type->shape && here(w, "no shape"))
        t->tensor_type->shape = NULL;
    if (!w->done && t->tensor_type->shape)
        change_shape(w, t->tensor_type->shape);
}

static void change_type(walk *w, pb_value_info *v)
{
    if (!v->type)
        return;
    if (here(w, "no type"))
        v->type = NULL;
    else
        change_held(w, v->type);
}

/* --- constants --- */

static size_t element_bytes(int64_t dt)
{
    static const uint8_t bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
    return dt >= 0 && dt < (int64_t)COUNT(bytes) ? bytes[dt] : 0;
}

/* An input becomes a constant whose bytes are all the same, or count up. */
static void make_constant(walk *w, pb_graph *g, uint32_t i)
{
    static const uint8_t fills[] = {0, 1, 0xff, 0x7f, 2};
    const pb_type *t = g->input.data[i]->type;
    const pb_tensor_type *tt = t ? t->tensor_type : NULL;
    const size_t size = tt ? element_bytes(tt->elem_type) : 0;
    size_t count = 1;
    for (uint32_t k = 0; tt && tt->shape && k < tt->shape->dim.len; k++) {
        int64_t d = tt->shape->dim.data[k]->dim_value;
        count = d >= 0 && d < 4096 && count < 65536 ? count * (size_t)d : 1u << 30;
    }
    if (!tt || !tt->shape || size == 0 || count > 65536)
        return;
    for (uint32_t k = 0; k < COUNT(fills) * 2; k++) {
        if (!here(w, "an input a constant"))
            continue;
        pb_tensor *c = arena_new(&w->c->mem, pb_tensor);
        uint8_t *data = arena_array(&w->c->mem, uint8_t, count * size + 1);
        memset(data, k % 2 ? fills[k / 2] : 0, count * size);
        for (size_t e = 0; e < count && k % 2 == 0; e++) /* little-endian numbers */
            data[e * size] = (uint8_t)(fills[k / 2] + (k > 5 ? e : 0));
        c->name = g->input.data[i]->name;
        c->data_type = tt->elem_type;
        for (uint32_t a = 0; a < tt->shape->dim.len; a++)
            vec_push(&w->c->mem, &c->dims, tt->shape->dim.data[a]->dim_value);
        c->raw_data = (span){data, count * size};
        vec_push(&w->c->mem, &g->initializer, c);
        vec_remove(&g->input, i);
        return;
    }
}

static void change_constant(walk *w, pb_graph *g, uint32_t i)
{
    static const int64_t extents[] = {0, 1, 2, -1, INT64_MAX};
    pb_tensor *t = g->initializer.data[i];
    change_dtype(w, &t->data_type);
    for (uint32_t k = 0; k < COUNT(extents) && t->dims.len && !w->done; k++)
        if (here(w, "another extent of a constant"))
            t->dims.data[0] = extents[k];
    if (t->dims.len && here(w, "an axis of a constant less"))
        t->dims.len--;
    if (!w->done && here(w, "an axis of a constant more"))
        vec_push(&w->c->mem, &t->dims, 1);
    if (!w->done && here(w, "a constant without bytes")) {
        t->raw_data = (span){0};
        t->float_data.len = t->double_data.len = 0;
        t->int32_data.len = t->int64_data.len = t->uint64_data.len = 0;
    }
    if (t->raw_data.len > 1 && here(w, "a byte of a constant less"))
        t->raw_data.len--;
    if (!w->done && here(w, "a constant removed"))
        vec_remove(&g->initializer, i);
    if (w->done || !here(w, "a constant an input"))
        return;
    pb_value_info *v = arena_new(&w->c->mem, pb_value_info);
    v->name = t->name;
    v->type = arena_new(&w->c->mem, pb_type);
    v->type->tensor_type = arena_new(&w->c->mem, pb_tensor_type);
    v->type->tensor_type->elem_type = t->data_type;
    v->type->tensor_type->shape = arena_new(&w->c->mem, pb_tensor_shape);
    for (uint32_t k = 0; k < t->dims.len; k++) {
        pb_dimension *d = arena_new(&w->c->mem, pb_dimension);
        set_extent(d, t->dims.data[k]);
        vec_push(&w->c->mem, &v->type->tensor_type->shape->dim, d);
    }
    vec_push(&w->c->mem, &g->input, v);
    vec_remove(&g->initializer, i);
}

/* --- the model --- */

static void change_graph(walk *w, pb_graph *g);

static void change_node(walk *w, pb_node *n)
{
    change_names(w, &n->input, false);
    if (!w->done)
        change_names(w, &n->output, true);
    if (!w->done)
        change_attributes(w, n);
    for (uint32_t i = 0; i < n->attribute.len && !w->done; i++) {
        if (n->attribute.data[i]->g)
            change_graph(w, n->attribute.data[i]->g);
        if (n->attribute.data[i]->g && here(w, "no graph"))
            n->attribute.data[i]->g = NULL;
    }
}

static void change_graph(walk *w, pb_graph *g)
{
    for (uint32_t i = 0; i < g->node.len && !w->done; i++) {
        change_node(w, g->node.data[i]);
        if (here(w, "a node removed"))
            vec_remove(&g->node, i);
        else if (here(w, "a node twice"))
            vec_push(&w->c->mem, &g->node, g->node.data[i]);
    }
    for (uint32_t i = 0; i < g->input.len && !w->done; i++) {
        change_type(w, g->input.data[i]);
        if (!w->done)
            make_constant(w, g, i);
        if (!w->done && here(w, "an input removed"))
            vec_remove(&g->input, i);
    }
    for (uint32_t i = 0; i < g->initializer.len && !w->done; i++)
        change_constant(w, g, i);
    for (uint32_t i = 0; i < g->output.len && !w->done; i++) {
        change_type(w, g->output.data[i]);
        if (!w->done && here(w, "a result removed"))
            vec_remove(&g->output, i);
    }
    if (!w->done && here(w, "no declared types"))
        g->value_info.len = 0;
}

/* All versions that there are: a row's importer sees models that are made for another row. */
static void change_opset(walk *w)
{
    for (uint32_t i = 0; i < w->m->opset_import.len; i++)
        for (int64_t v = 0; v <= 28; v++)
            if (v != w->m->opset_import.data[i]->version && here(w, "another operator set"))
                w->m->opset_import.data[i]->version = v;
}

const char *onnx_mutate(compiler *c, pb_model *m, uint32_t number, uint32_t *out_count)
{
    walk w = {.c = c, .m = m, .number = number};
    if (m->graph)
        change_graph(&w, m->graph);
    for (uint32_t i = 0; i < m->functions.len && !w.done; i++)
        for (uint32_t k = 0; k < m->functions.data[i]->node.len && !w.done; k++)
            change_node(&w, m->functions.data[i]->node.data[k]);
    change_opset(&w);
    *out_count = w.seen;
    return w.done;
}
