/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, optionals and maps as inputs and results of the model. Each element of an input is a parameter: how many
 * there are, and whether an optional has its element, is known before the compile. A map is two parameters, its keys
 * and its values, with the number of entries as their only extent. A result is one for each part of its list. Which
 * parameters and results these are stands in the module (list_io). */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_SINGLE 64 /* elements of a result, of which a run decides only the sizes, as results of their own */

/* --- types --- */

/* A sequence of tensors, or an optional of one or of a tensor; false: of something else. */
static bool read_kind(const pb_type *t, list_io *out)
{
    out->is_optional = t->optional_type != NULL;
    t = out->is_optional ? t->optional_type->elem_type : t;
    out->is_sequence = t && t->sequence_type;
    t = out->is_sequence ? t->sequence_type->elem_type : t;
    return t && t->tensor_type;
}

/* --- what is given: --dim x=3, --shape x[0]=2x3 --- */

/* How many elements are given: by number, or by the shape of the last one. False: nothing is. */
static bool given_count(onnx_importer *im, const char *name, int64_t *out)
{
    bool given = false;
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++) {
        const frontend_dim_fix *f = &im->o->fixes[i];
        const char *list = NULL;
        uint32_t k = 0;
        if (!f->is_input && !f->is_bound && strcmp(f->name, name) == 0) {
            *out = f->dims[0];
            return true;
        }
        if (!f->is_input || !onnx_split_name(im, f->name, &list, &k) || strcmp(list, name) != 0)
            continue;
        *out = given && *out > (int64_t)k + 1 ? *out : (int64_t)k + 1;
        given = true;
    }
    return given;
}

static const frontend_dim_fix *given_shape(onnx_importer *im, const char *name, uint32_t element)
{
    const frontend_dim_fix *all = NULL;
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++) {
        const frontend_dim_fix *f = &im->o->fixes[i];
        const char *list = NULL;
        uint32_t k = 0;
        if (f->is_input && onnx_split_name(im, f->name, &list, &k) && k == element && strcmp(list, name) == 0)
            return f;
        if (f->is_input && strcmp(f->name, name) == 0)
            all = f;
    }
    return all;
}

/* --- inputs --- */

static bool check_count(onnx_importer *im, const list_io *l, int64_t count)
{
    diags *d = &im->c->diags;
    if (count < 0 && l->is_optional)
        return true;
    if (count < 0)
        return diag_error(d, DIAG_USAGE, onnx_loc(im), "input '%s' is a sequence, not an optional: it is never none",
                          l->name);
    if (count > (int64_t)ONNX_MOST_ELEMENTS)
        return diag_error(d, DIAG_UNSUPPORTED, onnx_loc(im), "input '%s': a sequence of %lld elements; at most %u are "
                                                             "supported",
                          l->name, (long long)count, ONNX_MOST_ELEMENTS);
    return l->is_sequence || count <= 1 ||
           diag_error(d, DIAG_USAGE, onnx_loc(im), "input '%s' is an optional of a tensor: it has 0 or 1 elements",
                      l->name);
}

/* The type of element k. Elements need not agree, so that an open extent of each is its own. */
static bool element_type(onnx_importer *im, const pb_tensor_type *pb, const list_io *l, uint32_t k, const char *name,
                         type *out)
{
    const frontend_dim_fix *f = given_shape(im, l->name, k);
    pb_type alone = {.tensor_type = (pb_tensor_type *)(uintptr_t)pb};
    if (!onnx_type_read_element(im, &alone, name, out))
        return false;
    if (!f)
        return out->shape.rank >= 0 || (im->o && im->o->inputs_only) || !dtype_usable(out->dt) ||
               (diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "element %u of input '%s' has no shape", k,
                           l->name),
                diag_hint(&im->c->diags, "give it one: --shape '%s%s=2x3'", l->name,
                          l->is_sequence ? arena_printf(&im->c->mem, "[%u]", k) : ""),
                false);
    bool fits = out->shape.rank < 0 || (uint32_t)out->shape.rank == f->rank;
    for (uint32_t i = 0; fits && out->shape.rank >= 0 && i < f->rank; i++) {
        int64_t v = 0;
        fits = !dim_is_const(out->shape.dims[i], &v) || v == f->dims[i];
    }
    if (!fits)
        return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im),
                          "element %u of input '%s' has another shape in the model than the one given", k, l->name);
    out->shape = shape_const(im->c, f->rank, f->dims);
    return true;
}

/* A name for an element or a part that is no other value's. */
static const char *part_name(onnx_importer *im, const char *text)
{
    const char *name = intern(im->c->names, text);
    while (onnx_map_get(&im->reserved, name))
        name = intern(im->c->names, arena_printf(&im->c->mem, "%s_", name));
    onnx_map_set(&im->c->mem, &im->reserved, name, "");
    return name;
}

static bool add_elements(onnx_env *env, const pb_tensor_type *pb, list_io *l, onnx_part *parts)
{
    onnx_importer *im = env->im;
    list_part *told = arena_array(&im->c->mem, list_part, l->n_parts + 1u);
    dtype element = DT_NONE;
    l->parts = told;
    (void)dtype_from_onnx(pb->elem_type, &element);
    for (uint32_t k = 0; k < l->n_parts; k++) {
        const char *name = l->is_sequence ? part_name(im, arena_printf(&im->c->mem, "%s_%u", l->name, k)) : l->name;
        type t = {0};
        parts[k] = (onnx_part){.kind = PART_ONE};
        told[k] = (list_part){.name = name};
        if (!element_type(im, pb, l, k, name, &t) ||
            (element == DT_STRING && !onnx_text_input(im, name, &t)) || !onnx_check_input_type(im, name, &t) ||
            !onnx_add_input(env, name, t, element, &parts[k].v))
            return false;
    }
    return true;
}

static bool ask_for_count(onnx_importer *im, const list_io *l)
{
    diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
               "input '%s' is %s; how many elements it has must be known", l->name,
               l->is_sequence ? "a sequence" : "an optional");
    if (l->is_sequence)
        diag_hint(&im->c->diags, "--dim %s=3 where it has three%s; run and verify take it from the data", l->name,
                  l->is_optional ? arena_printf(&im->c->mem, ", --dim %s=none where there is none", l->name) : "");
    else
        diag_hint(&im->c->diags, "--dim %s=1 where it has its element, --dim %s=none where it has none; run and verify "
                                 "take it from the data", l->name, l->name);
    return false;
}

bool onnx_list_input(onnx_env *env, const pb_value_info *from, uint32_t place, graph_value **out)
{
    onnx_importer *im = env->im;
    list_io l = {.name = onnx_name(im, from->name), .is_input = true, .place = place};
    const pb_tensor_type *pb = onnx_tensor_inside(from->type);
    int64_t count = 0;
    if (!read_kind(from->type, &l))
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                          "input '%s' is neither a sequence of tensors nor an optional of one or of a tensor", l.name);
    if (im->o && im->o->inputs_only) {
        vec_push(&im->c->mem, &im->module->lists, l);
        *out = graph_add_param(env->f, l.name, (type){.kind = l.is_optional ? TYPE_OPTIONAL : TYPE_SEQUENCE});
        return true;
    }
    if (!given_count(im, l.name, &count))
        return ask_for_count(im, &l);
    if (!check_count(im, &l, count))
        return false;
    l.is_none = l.is_optional && (count < 0 || (!l.is_sequence && count == 0));
    l.n_parts = count > 0 ? (uint32_t)count : 0;
    onnx_part *parts = arena_array(&im->c->mem, onnx_part, l.n_parts + 1u);
    if (!add_elements(env, pb, &l, parts))
        return false;
    vec_push(&im->c->mem, &im->module->lists, l);
    *out = l.is_none || l.is_sequence
               ? onnx_list_value(im, l.name, (onnx_list){.n = l.n_parts, .parts = parts, .none = l.is_none,
                                                         .is_tensor = !l.is_sequence})
               : parts[0].v;
    return true;
}

/* --- maps --- */

/* The keys, or the values, as a list whose extent has the map's name. */
static bool add_column(onnx_env *env, const char *map, const char *name, dtype dt, graph_value **out)
{
    onnx_importer *im = env->im;
    const char *symbol = onnx_symbol(im, map);
    const onnx_fixed *f = onnx_find_fixed(im, symbol);
    const dim entries = f ? dim_const(im->c, f->value) : dim_symbol(im->c, symbol, -1);
    type t = type_tensor(dt, shape_make(im->c, 1, &entries));
    return (dt != DT_STRING || onnx_text_input(im, name, &t)) && onnx_check_input_type(im, name, &t) &&
           onnx_add_input(env, name, t, dt, out);
}

bool onnx_map_input(onnx_env *env, const pb_value_info *from, uint32_t place, graph_value **out)
{
    static const char *const what[2] = {"keys", "values"};
    onnx_importer *im = env->im;
    arena *a = &im->c->mem;
    list_part *told = arena_array(a, list_part, 2);
    list_io l = {.name = onnx_name(im, from->name), .is_input = true, .is_sequence = true, .is_map = true,
                 .place = place, .n_parts = 2, .parts = told};
    onnx_part parts[2] = {{.kind = PART_ONE}, {.kind = PART_ONE}};
    dtype types[2];
    if (!onnx_map_types(from->type, types))
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                          "input '%s' is neither a tensor, a sequence, an optional nor a map to numbers or strings",
                          l.name);
    for (uint32_t i = 0; i < 2; i++)
        told[i].name = part_name(im, arena_printf(a, "%s_%s", l.name, what[i]));
    if (im->o && im->o->inputs_only) {
        vec_push(a, &im->module->lists, l);
        *out = graph_add_param(env->f, l.name, (type){.kind = TYPE_SEQUENCE});
        return true;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!add_column(env, l.name, told[i].name, types[i], &parts[i].v))
            return false;
    }
    vec_push(a, &im->module->lists, l);
    *out = onnx_list_value(im, l.name, (onnx_list){.n = 2, .parts = parts, .is_map = true});
    return true;
}

/* --- results --- */

/* What importers build with, where no node is at hand. */
static onnx_node node_of_result(onnx_env *env, const char **name)
{
    static const pb_node none = {0};
    return (onnx_node){.im = env->im, .c = env->im->c, .env = env, .f = env->f, .pb = &none, .out_names = name,
                       .n_out = 1, .loc = onnx_loc(env->im)};
}

/* Parts with a known number of elements, of which only the sizes are not known, become these. */
static bool spread(onnx_env *env, const char *name, onnx_list *l)
{
    onnx_node n = node_of_result(env, &name);
    VEC(onnx_part) parts = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        const onnx_part *p = &l->parts[i];
        int64_t count = 0;
        const bool known = p->kind == PART_MANY && dim_is_const(onnx_dim(&n, p->v, 0), &count) && count <= MOST_SINGLE;
        if (!known)
            vec_push(&env->im->c->mem, &parts, *p);
        for (int64_t k = 0; known && k < count; k++)
            vec_push(&env->im->c->mem, &parts,
                     ((onnx_part){.v = onnx_list_element(&n, p, onnx_const_int(&n, DT_I64, k))}));
    }
    l->n = parts.len;
    l->parts = parts.data;
    return !n.failed;
}

static bool add_tensor(onnx_env *env, const pb_graph *g, graph_value *v, const char *name)
{
    if (onnx_is_text(env->im, v))
        onnx_note_text(env->im, v, name, false);
    v = onnx_small_output(env, v, name);
    v = v ? onnx_named_result(env, g, v, name) : NULL;
    if (v)
        graph_add_result(env->f, v);
    return v != NULL;
}

static bool add_parts(onnx_env *env, const pb_graph *g, const onnx_list *l, list_io *io)
{
    arena *a = &env->im->c->mem;
    list_part *told = arena_array(a, list_part, l->n + 1u);
    bool ok = true;
    io->n_parts = l->n;
    io->parts = told;
    for (uint32_t i = 0; ok && i < l->n; i++) {
        const onnx_part *p = &l->parts[i];
        const bool many = p->kind == PART_MANY, whole = l->n == 1 && (many || !io->is_sequence);
        const char *name = whole ? io->name : part_name(env->im, arena_printf(a, "%s_%u", io->name, i));
        told[i] = (list_part){.name = name, .many = many};
        ok = add_tensor(env, g, p->v, name);
        if (ok && many && p->sizes) {
            told[i].sizes = part_name(env->im, arena_printf(a, "%s_sizes", name));
            ok = add_tensor(env, g, p->sizes, told[i].sizes);
        }
    }
    if (ok && l->has) {
        io->present = part_name(env->im, arena_printf(a, "%s_present", io->name));
        ok = add_tensor(env, g, l->has, io->present);
    }
    return ok;
}

bool onnx_list_output(onnx_env *env, const pb_graph *g, uint32_t place, graph_value *v)
{
    onnx_importer *im = env->im;
    const pb_value_info *declared = g->output.data[place];
    const onnx_list *made = onnx_list_of(im, v);
    onnx_part one = {.v = v};
    onnx_list l = made ? *made : (onnx_list){.n = 1, .parts = &one, .is_tensor = true};
    list_io io = {.name = onnx_name(im, declared->name), .place = place, .is_none = l.none,
                  .is_sequence = !l.is_tensor, .is_optional = l.none || l.has || (declared->type &&
                                                                                 declared->type->optional_type)};
    if (!spread(env, io.name, &l) || !add_parts(env, g, &l, &io))
        return false;
    vec_push(&im->c->mem, &im->module->lists, io);
    return true;
}
