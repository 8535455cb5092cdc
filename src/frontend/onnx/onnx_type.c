/* SPDX-License-Identifier: Apache-2.0 */
/* TypeProto to types, and the extents that the caller fixes (--dim, --shape). A dimension is a number, a symbol by its
 * dim_param, what that computes from symbols of inputs, or, unnamed, a symbol made of the value's name and the axis. */
#include "frontend/onnx/onnx_import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The IR's text wants symbols to be identifiers. */
static const char *symbol_name(onnx_importer *im, span s)
{
    writer w;
    writer_init(&w, &im->c->mem);
    for (size_t i = 0; i < s.len && s.data[i]; i++) {
        char ch = (char)s.data[i];
        bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
        bool digit = ch >= '0' && ch <= '9';
        if (digit && i == 0)
            w_str(&w, "_");
        w_fmt(&w, "%c", letter || digit ? ch : '_');
    }
    return intern_n(im->c->names, w.data ? w.data : "", w.len);
}

const char *onnx_symbol(onnx_importer *im, const char *name)
{
    return symbol_name(im, (span){(const uint8_t *)name, strlen(name)});
}

const onnx_fixed *onnx_find_fixed(const onnx_importer *im, const char *symbol)
{
    for (uint32_t i = 0; i < im->fixed.len; i++)
        if (im->fixed.data[i].symbol == symbol)
            return &im->fixed.data[i];
    return NULL;
}

/* The dimension's symbol; NULL when it is a number. */
static const char *dim_name(onnx_importer *im, const pb_dimension *d, const char *owner, uint32_t axis)
{
    if (pb_has(d->has, 1) && d->dim_value >= 0) /* some exporters write -1 for "any" */
        return NULL;
    const char *name = symbol_name(im, d->dim_param);
    const char *made = *name ? "" : arena_printf(&im->c->mem, "%s_%u", owner, axis);
    return *name ? name : symbol_name(im, (span){(const uint8_t *)made, strlen(made)});
}

/* Whose type is read, and whether a run states its extents. */
typedef struct owner {
    const char *name;
    bool input, element; /* element: of a sequence, which need not agree with others */
} owner;

static dim read_dim(onnx_importer *im, const pb_dimension *d, owner o, uint32_t axis)
{
    const char *name = dim_name(im, d, o.name, axis);
    const onnx_fixed *f = name ? onnx_find_fixed(im, name) : NULL;
    if (!name || f)
        return dim_const(im->c, f ? f->value : d->dim_value);
    if (o.element) {
        name = onnx_symbol(im, arena_printf(&im->c->mem, "%s_%u", o.name, axis));
        f = onnx_find_fixed(im, name);
        return f ? dim_const(im->c, f->value) : dim_symbol(im->c, name, -1);
    }
    dim computed = onnx_dim_expression(im, d->dim_param);
    int64_t v;
    if (computed && (!o.input || dim_is_const(computed, &v)))
        return computed;
    if (computed && dim_symbol_name(computed) != name)
        onnx_map_set(&im->c->mem, &im->follows, name, name);
    return dim_symbol(im->c, name, computed ? dim_bound(computed) : -1);
}

static const frontend_dim_fix *input_fix(const onnx_importer *im, const char *input)
{
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++)
        if (im->o->fixes[i].is_input && strcmp(im->o->fixes[i].name, input) == 0)
            return &im->o->fixes[i];
    return NULL;
}

static bool read_shape(onnx_importer *im, const pb_tensor_shape *s, owner o, shape *out)
{
    dim d[TYPE_MAX_RANK];
    *out = (shape){.rank = -1};
    if (!s)
        return true;
    if (s->dim.len > TYPE_MAX_RANK)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "'%s' has %u dimensions; 16 are supported",
                          o.name, s->dim.len);
    for (uint32_t i = 0; i < s->dim.len; i++)
        d[i] = read_dim(im, s->dim.data[i], o, i);
    *out = shape_make(im->c, s->dim.len, d);
    return true;
}

static bool read_tensor_type(onnx_importer *im, const pb_tensor_type *t, owner o, type *out)
{
    dtype dt = DT_NONE;
    shape s;
    if (!dtype_from_onnx(t->elem_type, &dt))
        return diag_error(&im->c->diags, DIAG_FORMAT, onnx_loc(im),
                          "'%s' (byte %" PRIu64 "): no element type has the code %" PRId64, o.name, t->at,
                          t->elem_type);
    if (!read_shape(im, t->shape, o, &s))
        return false;
    const frontend_dim_fix *f = input_fix(im, o.name);
    if (f && im->o && !t->shape)
        s = shape_const(im->c, f->rank, f->dims);
    *out = type_tensor(onnx_stored_dtype(dt), s);
    return true;
}

static bool read_type(onnx_importer *im, const pb_type *t, owner o, uint32_t depth, type *out);

static bool read_elem(onnx_importer *im, const pb_type *t, owner o, uint32_t depth, type_kind kind, type *out)
{
    type *elem = arena_new(&im->c->mem, type);
    if (!t || !read_type(im, t, o, depth + 1, elem))
        return false;
    *out = (type){.kind = kind, .elem = elem};
    return true;
}

static bool read_type(onnx_importer *im, const pb_type *t, owner o, uint32_t depth, type *out)
{
    *out = (type){0};
    if (t->tensor_type)
        return read_tensor_type(im, t->tensor_type, o, out);
    if (t->sequence_type && depth < 8)
        return read_elem(im, t->sequence_type->elem_type, o, depth, TYPE_SEQUENCE, out);
    if (t->optional_type && depth < 8)
        return read_elem(im, t->optional_type->elem_type, o, depth, TYPE_OPTIONAL, out);
    return true; /* maps (onnx_border.c) and sparse tensors have no type here */
}

bool onnx_type_read(onnx_importer *im, const pb_type *t, const char *owner_name, type *out)
{
    *out = (type){0};
    return !t || read_type(im, t, (owner){.name = owner_name}, 0, out);
}

bool onnx_type_read_input(onnx_importer *im, const pb_type *t, const char *owner_name, type *out)
{
    *out = (type){0};
    return !t || read_type(im, t, (owner){.name = owner_name, .input = true}, 0, out);
}

bool onnx_type_read_element(onnx_importer *im, const pb_type *t, const char *owner_name, type *out)
{
    *out = (type){0};
    return read_type(im, t, (owner){.name = owner_name, .element = true}, 0, out);
}

/* --- sequences and optionals --- */

bool onnx_is_list_type(const pb_type *t)
{
    return t && (t->sequence_type || t->optional_type);
}

bool onnx_map_types(const pb_type *t, dtype out[2])
{
    const pb_type *v = t && t->map_type ? t->map_type->value_type : NULL;
    return v && v->tensor_type && dtype_from_onnx(t->map_type->key_type, &out[0]) &&
           dtype_from_onnx(v->tensor_type->elem_type, &out[1]);
}

const pb_tensor_type *onnx_tensor_inside(const pb_type *t)
{
    for (uint32_t depth = 0; t && depth < PB_MAX_DEPTH; depth++) {
        if (!onnx_is_list_type(t))
            return t->tensor_type;
        t = t->sequence_type ? t->sequence_type->elem_type : t->optional_type->elem_type;
    }
    return NULL;
}

/* "x[2]" as x and 2; false: it is no element's name. */
bool onnx_split_name(onnx_importer *im, const char *text, const char **out_list, uint32_t *out_element)
{
    const char *open = strrchr(text, '[');
    char *end = NULL;
    const unsigned long k = open && open[1] >= '0' && open[1] <= '9' ? strtoul(open + 1, &end, 10) : 0;
    if (!end || end[0] != ']' || end[1] || k >= ONNX_MOST_ELEMENTS)
        return false;
    *out_list = intern_n(im->c->names, text, (size_t)(open - text));
    *out_element = (uint32_t)k;
    return true;
}

/* The input that a fix is about, which may be one element of it; NULL: none that is a list. */
static const pb_value_info *list_fixed(onnx_importer *im, const pb_graph *g, const frontend_dim_fix *f)
{
    const char *name = f->name;
    uint32_t element = 0;
    if (f->is_input)
        (void)onnx_split_name(im, f->name, &name, &element);
    for (uint32_t i = 0; i < g->input.len; i++)
        if (strcmp(onnx_name(im, g->input.data[i]->name), name) == 0 && onnx_is_list_type(g->input.data[i]->type))
            return g->input.data[i];
    return NULL;
}

/* --- fixing --- */

static bool fix_symbol(onnx_importer *im, const char *symbol, int64_t value, const char *origin)
{
    const onnx_fixed *old = onnx_find_fixed(im, symbol);
    if (old && old->value != value)
        return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im),
                          "dimension '%s' cannot be both %" PRId64 " (%s) and %" PRId64 " (%s)", symbol, old->value,
                          old->origin, value, origin);
    if (!old)
        vec_push(&im->c->mem, &im->fixed, (onnx_fixed){symbol, value, origin});
    return true;
}

static const pb_value_info *find_input(onnx_importer *im, const pb_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->input.len; i++)
        if (onnx_name(im, g->input.data[i]->name) == intern(im->c->names, name))
            return g->input.data[i];
    return NULL;
}

static bool fix_input(onnx_importer *im, const frontend_dim_fix *f, const pb_value_info *v)
{
    const pb_tensor_shape *s = v->type && v->type->tensor_type ? v->type->tensor_type->shape : NULL;
    if (!s)
        return true;
    if (s->dim.len != f->rank)
        return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im),
                          "input '%s' has rank %u; the shape given has rank %u", f->name, s->dim.len, f->rank);
    bool ok = true;
    for (uint32_t i = 0; i < f->rank; i++) {
        const char *symbol = dim_name(im, s->dim.data[i], f->name, i);
        int64_t have = s->dim.data[i]->dim_value;
        if (symbol)
            ok &= fix_symbol(im, symbol, f->dims[i], arena_printf(&im->c->mem, "shape of %s", f->name));
        else if (have != f->dims[i])
            ok = diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im),
                            "input '%s' has extent %" PRId64 " at axis %u; the shape given says %" PRId64, f->name,
                            have, i, f->dims[i]);
        if (!symbol && have != f->dims[i])
            diag_hint(&im->c->diags, FRONTEND_FIXED_AXIS);
    }
    return ok;
}

/* Names of the inputs, or of the symbols in their shapes, for messages. */
static const char *list_names(onnx_importer *im, const pb_graph *g, bool inputs)
{
    writer w;
    onnx_map seen = {0};
    writer_init(&w, &im->c->mem);
    for (uint32_t i = 0; i < g->input.len; i++) {
        const pb_value_info *v = g->input.data[i];
        const char *name = onnx_name(im, v->name);
        const pb_tensor_shape *s = v->type && v->type->tensor_type ? v->type->tensor_type->shape : NULL;
        if (inputs)
            w_fmt(&w, "%s%s", w.len ? ", " : "", name);
        for (uint32_t k = 0; !inputs && s && k < s->dim.len && k < TYPE_MAX_RANK; k++) {
            const char *symbol = dim_name(im, s->dim.data[k], name, k);
            if (symbol && !onnx_map_get(&seen, symbol)) {
                onnx_map_set(&im->c->mem, &seen, symbol, symbol);
                w_fmt(&w, "%s%s", w.len ? ", " : "", symbol);
            }
        }
    }
    return w.data ? w.data : "";
}

static bool has_symbol(onnx_importer *im, uint32_t n, pb_value_info *const *list, const char *symbol)
{
    for (uint32_t i = 0; i < n; i++) {
        const pb_value_info *v = list[i];
        const pb_tensor_type *t = onnx_tensor_inside(v->type);
        const pb_tensor_shape *s = t ? t->shape : NULL;
        for (uint32_t k = 0; s && k < s->dim.len && k < TYPE_MAX_RANK; k++)
            if (dim_name(im, s->dim.data[k], onnx_name(im, v->name), k) == symbol)
                return true;
    }
    return false;
}

/* An extent of an element of a sequence: of xs, "xs_0_1". */
static bool is_of_element(onnx_importer *im, const pb_graph *g, const char *symbol)
{
    for (uint32_t i = 0; i < g->input.len; i++) {
        const char *list = onnx_symbol(im, onnx_name(im, g->input.data[i]->name)), *rest = symbol + strlen(list);
        uint32_t numbers = 0;
        if (!onnx_is_list_type(g->input.data[i]->type) || strncmp(symbol, list, strlen(list)) != 0)
            continue;
        while (*rest == '_' && rest[1] >= '0' && rest[1] <= '9') {
            rest += 1 + strspn(rest + 1, "0123456789");
            numbers++;
        }
        if (!*rest && numbers > 0)
            return true;
    }
    return false;
}

/* How many entries a map has, by its name. */
static bool is_of_map(onnx_importer *im, const pb_graph *g, const char *symbol)
{
    dtype types[2];
    for (uint32_t i = 0; i < g->input.len; i++)
        if (onnx_map_types(g->input.data[i]->type, types) &&
            onnx_symbol(im, onnx_name(im, g->input.data[i]->name)) == symbol)
            return true;
    return false;
}

/* Of an input, or of a value whose shape the model declares: where operands that are known at run time only make a
 * shape, the declared one is taken. */
static bool symbol_exists(onnx_importer *im, const pb_graph *g, const char *symbol)
{
    return has_symbol(im, g->input.len, g->input.data, symbol) ||
           has_symbol(im, g->output.len, g->output.data, symbol) ||
           has_symbol(im, g->value_info.len, g->value_info.data, symbol) || is_of_element(im, g, symbol) ||
           is_of_map(im, g, symbol);
}

/* The name may look like an element's, and be an input's own. */
static bool find_tensor_input(onnx_importer *im, const pb_graph *g, const frontend_dim_fix *f)
{
    const pb_value_info *v = f->is_input ? find_input(im, g, f->name) : NULL;
    return v && !onnx_is_list_type(v->type);
}

static bool fix_one(onnx_importer *im, const pb_graph *g, const frontend_dim_fix *f)
{
    const bool list = list_fixed(im, g, f) && !find_tensor_input(im, g, f);
    if (list && !f->is_bound) /* onnx_border.c */
        return true;
    if (list)
        return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im), "'%s' is a sequence, whose number of elements is "
                                                                   "given as it is: --dim %s=%" PRId64,
                          f->name, f->name, f->dims[0]);
    for (uint32_t i = 0; i < f->rank; i++)
        if (f->dims[i] < 0)
            return diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im), "'%s': an extent cannot be negative", f->name);
    if (f->is_input) {
        const pb_value_info *v = find_input(im, g, f->name);
        return v ? fix_input(im, f, v)
                 : diag_error(&im->c->diags, DIAG_USAGE, onnx_loc(im),
                              "the model has no input '%s'; its inputs are: %s", f->name, list_names(im, g, true));
    }
    const char *symbol = symbol_name(im, (span){(const uint8_t *)f->name, strlen(f->name)});
    if (!symbol_exists(im, g, symbol))
        return frontend_no_dimension(im->c, onnx_loc(im), f->name, list_names(im, g, false));
    if (f->is_bound) {
        (void)dim_symbol(im->c, symbol, f->dims[0]);
        return true;
    }
    return fix_symbol(im, symbol, f->dims[0], arena_printf(&im->c->mem, "dimension %s", f->name));
}

static void state(onnx_importer *im, const char *symbol, dim d)
{
    onnx_map_set(&im->c->mem, &im->stated, symbol, arena_copy(&im->c->mem, &d, sizeof d, _Alignof(dim)));
}

/* What names of dimensions may be computed from: what is fixed, and what inputs have as an extent by itself. */
static void find_stated(onnx_importer *im, const pb_graph *g)
{
    for (uint32_t i = 0; i < im->fixed.len; i++)
        state(im, im->fixed.data[i].symbol, dim_const(im->c, im->fixed.data[i].value));
    for (uint32_t i = 0; i < g->input.len; i++) {
        const pb_type *t = g->input.data[i]->type;
        const pb_tensor_shape *s = t && t->tensor_type ? t->tensor_type->shape : NULL;
        for (uint32_t k = 0; s && k < s->dim.len && k < TYPE_MAX_RANK; k++) {
            const char *symbol = dim_name(im, s->dim.data[k], onnx_name(im, g->input.data[i]->name), k);
            if (symbol && symbol == onnx_name(im, s->dim.data[k]->dim_param) && !onnx_find_fixed(im, symbol))
                state(im, symbol, dim_symbol(im->c, symbol, -1));
        }
    }
}

bool onnx_type_fix(onnx_importer *im, const pb_graph *g)
{
    bool ok = true;
    for (uint32_t i = 0; im->o && i < im->o->n_fixes; i++)
        ok &= fix_one(im, g, &im->o->fixes[i]);
    find_stated(im, g);
    return ok;
}
