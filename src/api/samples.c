/* SPDX-License-Identifier: Apache-2.0 */
/* Files of samples: batches on the first axis, or on one more in front; folders in the order of their names. */
#include "api/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/npz.h"

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

/* Files of tensors, or else folders with data sets, below a folder. */
static bool list(samples *s)
{
    arena *a = &s->c->mem;
    const char **names = NULL;
    uint32_t n = 0;
    VEC(const char *) files = {0}, folders = {0};
    if (!file_list(a, s->path, &names, &n))
        return diag_error(&s->c->diags, file_code_of(errno), src_loc_none(), "cannot look into '%s': %s", s->path,
                          strerror(errno));
    for (uint32_t i = 0; i < n; i++) {
        const char *path = path_join(a, s->path, names[i]);
        if (names[i][0] == '.')
            continue;
        if (ends_with(path, ".npy") || ends_with(path, ".npz"))
            vec_push(a, &files, path);
        else if (file_exists(path_join(a, path, "input_0.pb")))
            vec_push(a, &folders, path);
    }
    if (file_exists(path_join(a, s->path, "input_0.pb")))
        vec_push(a, &folders, s->path);
    s->folders = files.len == 0;
    s->files.data = s->folders ? folders.data : files.data;
    s->files.len = s->folders ? folders.len : files.len;
    if (s->files.len == 0)
        return diag_error(&s->c->diags, DIAG_DATA, src_loc_none(),
                          "'%s' holds neither .npy files nor folders with input_0.pb", s->path);
    return true;
}

bool samples_open(compiler *c, const char *path, samples *out)
{
    *out = (samples){.c = c, .path = path};
    if (file_is_dir(path))
        return list(out);
    if (!file_exists(path))
        return diag_error(&c->diags, DIAG_IO, src_loc_none(), "there is no file '%s'", path);
    vec_push(&c->mem, &out->files, path);
    return true;
}

void samples_rewind(samples *s)
{
    s->next = 0;
    s->batches = s->at = 0;
    s->counted = 0;
}

/* --- open dimensions --- */

static bool fixed_by_user(const compile_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_shapes; i++)
        if (strcmp(o->shapes[i].name, name) == 0)
            return true;
    return false;
}

/* The dimensions of an input, in a file that has axes of its own in front. Where the samples lie along an open first
 * axis, one of them runs at a time. */
static void take_axes(samples_axis axis, uint32_t rank, const shape *own, dim_binding *b)
{
    int64_t batch;
    if (axis != SAMPLES_WHOLE && b->rank == rank + 1)
        memmove(b->dims, b->dims + 1, --b->rank * sizeof *b->dims);
    else if (axis == SAMPLES_ROWS && b->rank > 0 && rank > 0)
        b->dims[0] = dim_is_const(own->dims[0], &batch) ? batch : 1;
}

static bool is_text(const graph_module *m, const char *input)
{
    bool found = false;
    for (uint32_t i = 0; i < m->texts.len; i++)
        found |= m->texts.data[i].is_input && strcmp(m->texts.data[i].name, input) == 0;
    return found;
}

static void take_shape(compiler *c, const char *file, const graph_value *v, bool text, samples_axis axis,
                       compile_options *o)
{
    dim_binding *shapes = arena_array(&c->mem, dim_binding, o->n_shapes + 1u), *b = &shapes[o->n_shapes];
    dtype dt;
    if (fixed_by_user(o, v->name) || type_most_bytes(&v->type) >= 0 ||
        !tensor_file_peek(c, file, v->name, &dt, &b->rank, b->dims))
        return;
    memcpy(shapes, o->shapes, o->n_shapes * sizeof *shapes);
    b->rank -= text && b->rank > 0; /* its bytes are no dimension of the model */
    take_axes(axis, (uint32_t)v->type.shape.rank - text, &v->type.shape, b);
    b->name = intern(c->names, v->name);
    o->shapes = shapes;
    o->n_shapes++;
}

static bool counted_by_user(const compile_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_dims; i++)
        if (strcmp(o->dims[i].name, name) == 0)
            return true;
    return false;
}

/* One more of the extents that --dim NAME=N gives. */
static void add_count(compiler *c, const char *name, int64_t count, compile_options *o)
{
    dim_binding *dims = arena_array(&c->mem, dim_binding, o->n_dims + 1u);
    memcpy(dims, o->dims, o->n_dims * sizeof *dims);
    dims[o->n_dims] = (dim_binding){.name = intern(c->names, name), .rank = 1, .dims = {count}};
    o->dims = dims;
    o->n_dims++;
}

/* The entries of a map are as many as its keys. */
static bool take_entries(compiler *c, const char *map, const tensor_list *l, compile_options *o)
{
    int64_t extents[TYPE_MAX_RANK];
    uint32_t rank = 0;
    if (l->n > 0 && tensor_file_element_shape(l, 0, &rank, extents) && rank > 0)
        add_count(c, map, extents[0], o);
    return true; /* whoever reads the elements says what is wrong */
}

/* The keys and the values of a map may be in files of their own. */
static void take_columns(compiler *c, const list_io *map, samples_file *file_of, const void *from, compile_options *o)
{
    bool found = counted_by_user(o, map->name);
    for (uint32_t i = 0; i < map->n_parts && !found; i++) {
        const char *file = file_of(from, map->parts[i].name, map->place);
        int64_t extents[TYPE_MAX_RANK];
        uint32_t rank = 0;
        dtype dt;
        found = file && tensor_file_peek(c, file, map->parts[i].name, &dt, &rank, extents) && rank > 0;
        if (found)
            add_count(c, map->name, extents[0], o);
    }
}

/* How many elements a sequence has, and their shapes, as --dim NAME=N and --shape NAME[0]=... would say them. */
static bool take_list(compiler *c, const char *file, const graph_value *v, const list_io *kind, compile_options *o)
{
    tensor_list l;
    if (counted_by_user(o, v->name))
        return true;
    if (!tensor_file_list(c, file, kind, &l))
        return false;
    if (kind->is_map)
        return take_entries(c, v->name, &l, o);
    dim_binding *shapes = arena_array(&c->mem, dim_binding, o->n_shapes + l.n + 1u);
    memcpy(shapes, o->shapes, o->n_shapes * sizeof *shapes);
    add_count(c, v->name, l.none ? -1 : (int64_t)l.n, o);
    o->shapes = shapes;
    for (uint32_t k = 0; k < l.n; k++) {
        dim_binding *b = &shapes[o->n_shapes];
        *b = (dim_binding){.name = intern(c->names, arena_printf(&c->mem, "%s[%u]", v->name, k))};
        if (fixed_by_user(o, b->name) || !tensor_file_element_shape(&l, k, &b->rank, b->dims))
            continue;
        b->rank -= tensor_file_element_is_text(&l, k); /* its bytes are no dimension of the model */
        o->n_shapes++;
    }
    return true;
}

bool samples_shapes_from_files(compiler *c, const char *path, samples_file *file_of, const void *from,
                               samples_axis axis, compile_options *o)
{
    compiler probe; /* so that nothing of it stays */
    graph_module *m;
    compiler_setup_under(&probe, &c->mem);
    bool ok = true;
    if (pipeline_load_inputs(&probe, path, o, &m)) {
        const graph_func *f = graph_module_find(m, "main");
        for (uint32_t i = 0; f && i < f->params.len && ok; i++) {
            const graph_value *v = f->params.data[i];
            const char *file = file_of(from, v->name, i);
            const list_io *kind = NULL;
            for (uint32_t k = 0; k < m->lists.len; k++)
                if (strcmp(m->lists.data[k].name, v->name) == 0)
                    kind = &m->lists.data[k];
            if (file && kind)
                ok = take_list(c, file, v, kind, o);
            else if (kind && kind->is_map)
                take_columns(c, kind, file_of, from, o);
            else if (file)
                take_shape(c, file, v, is_text(m, v->name), axis, o);
        }
    }
    compiler_free(&probe); /* what is wrong with the model is reported by the compile that follows */
    return ok && c->diags.errors == 0;
}

static const char *first_file(const void *from, const char *name, uint32_t i)
{
    const samples *s = from;
    (void)name;
    if (s->files.len == 0 || !s->folders)
        return s->files.len ? s->files.data[0] : NULL;
    const char *file = arena_printf(&s->c->mem, "%s/input_%u.pb", s->files.data[0], i);
    return file_exists(file) ? file : NULL;
}

bool samples_fix_shapes(const samples *s, const char *path, compile_options *o)
{
    return samples_shapes_from_files(s->c, path, first_file, s, s->folders ? SAMPLES_WHOLE : SAMPLES_ROWS, o);
}

/* --- samples --- */

/* The names of tensors, or of arrays, with commas between. */
static const char *input_names(compiler *c, const run_model *m)
{
    const char *all = "";
    for (uint32_t i = 0; i < m->n_inputs; i++)
        all = arena_printf(&c->mem, "%s%s%s", all, i ? ", " : "", m->inputs[i].name);
    return all;
}

static const char *array_names(compiler *c, const npz_file *f)
{
    const char *all = "";
    for (uint32_t i = 0; i < f->arrays.len; i++)
        all = arena_printf(&c->mem, "%s%s%s", all, i ? ", " : "", f->arrays.data[i].name);
    return all;
}

/* numpy.savez calls an array so that got no name: of the only input. */
static bool is_unnamed(const run_model *m, const npz_file *f)
{
    return m->n_inputs == 1 && f->arrays.len == 1 && strcmp(f->arrays.data[0].name, "arr_0") == 0;
}

/* A .npz file has an array for each input and no other, so that a slip in a name is seen. */
static bool check_names(samples *s, const char *path, const run_model *m)
{
    compiler *c = s->c;
    const npz_file *f;
    if (!tensor_file_names(c, path, &f) || (f && is_unnamed(m, f)))
        return f != NULL && c->diags.errors == 0;
    if (!f && m->n_inputs == 1)
        return true;
    if (!f)
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "the model has the inputs %s, and '%s' has one array",
                   input_names(c, m), path);
    for (uint32_t i = 0; f && i < m->n_inputs && c->diags.errors == 0; i++)
        if (!npz_find(f, m->inputs[i].name))
            diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has no array for input '%s'; it has %s", path,
                       m->inputs[i].name, array_names(c, f));
    for (uint32_t i = 0; f && i < f->arrays.len && c->diags.errors == 0; i++)
        if (!run_find_input(m, f->arrays.data[i].name))
            diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s': the model has no input '%s'; it has %s", path,
                       f->arrays.data[i].name, input_names(c, m));
    if (c->diags.errors == 0)
        return true;
    diag_hint(&c->diags, "give an array for each input, by its name: a .npz file, or folders test_data_set_*");
    return false;
}

/* Batches of `like`, one behind the other: along the first axis, or along one more axis in front. */
static bool fits(const run_tensor *like, uint32_t rank, const int64_t *dims)
{
    const int64_t batch = like->rank > 0 && like->dims[0] > 0 ? like->dims[0] : 1;
    if (rank == like->rank + 1)
        return memcmp(dims + 1, like->dims, like->rank * sizeof *dims) == 0;
    return rank == like->rank && (rank == 0 || (dims[0] % batch == 0 &&
                                                memcmp(dims + 1, like->dims + 1, (rank - 1) * sizeof *dims) == 0));
}

static bool fail_to_fit(compiler *c, const char *path, const run_tensor *like, uint32_t rank, const int64_t *dims)
{
    const long long batch = like->rank ? like->dims[0] : 1;
    diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has the shape %s; input '%s' is %s", path,
               tensor_file_dims(&c->mem, rank, dims), like->name, tensor_file_dims(&c->mem, like->rank, like->dims));
    diag_hint(&c->diags, "the first axis counts the samples, %s; the other axes are those of the input",
              batch > 1 ? arena_printf(&c->mem, "a multiple of %lld", batch) : "any number of them");
    return false;
}

/* What a file has for the input `like`. */
static bool load(samples *s, const char *path, const run_tensor *like, run_tensor *t)
{
    compiler *c = s->c;
    *t = (run_tensor){.name = like->name, .dt = like->dt, .rank = like->rank, .is_text = like->is_text};
    memcpy(t->dims, like->dims, sizeof t->dims);
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
    const uint32_t errors = c->diags.errors;
    if (tensor_file_peek(c, path, like->name, &dt, &rank, dims)) {
        if (like->is_text && rank > 0) /* how long strings may be is checked where they are read */
            dims[rank - 1] = like->dims[like->rank - 1];
        if (rank > 0 && dims[0] == 0 && like->count > 0) {
            diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has no samples: its shape is %s", path,
                       tensor_file_dims(&c->mem, rank, dims));
            diag_hint(&c->diags, "the first axis counts the samples");
            return false;
        }
        if (!fits(like, rank, dims))
            return fail_to_fit(c, path, like, rank, dims);
        t->rank = rank;
        memcpy(t->dims, dims, sizeof t->dims);
    } else if (c->diags.errors != errors) {
        return false;
    }
    run_set_dims(t, t->dims);
    t->most_bytes = t->bytes;
    t->data = arena_try_alloc(&c->mem, t->bytes + 1, 64);
    if (!t->data)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for '%s'", path);
    return tensor_file_read(c, path, t);
}

static bool load_all(samples *s, const char *path, const run_model *m)
{
    compiler *c = s->c;
    s->at = 0;
    s->loaded = arena_array(&c->mem, run_tensor, m->n_inputs);
    if (!check_names(s, path, m))
        return false;
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const run_tensor *like = &m->inputs[i];
        if (!load(s, path, like, &s->loaded[i]))
            return false;
        const int64_t batches = like->bytes ? (int64_t)(s->loaded[i].bytes / like->bytes) : 0;
        if (i > 0 && batches != s->batches)
            return diag_error(&c->diags, DIAG_DATA, src_loc_none(),
                              "'%s' has %lld samples for input '%s', and %lld for '%s'", path, (long long)s->batches,
                              m->inputs[0].name, (long long)batches, like->name);
        s->batches = batches;
    }
    return true;
}

static bool fill_from_folder(samples *s, const run_model *m, const char *folder)
{
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const run_from from = run_input_from(m, i);
        const char *file = arena_printf(&s->c->mem, "%s/input_%u.pb", folder, from.place);
        tensor_list l;
        if (from.list ? !(tensor_file_list(s->c, file, from.list, &l) && run_list_fits(s->c, file, from.list, &l) &&
                          tensor_file_read_element(s->c, file, &l, from.element, &m->inputs[i]))
                      : !tensor_file_read(s->c, file, &m->inputs[i]))
            return false;
    }
    return true;
}

/* Entries of the first axis of the first input; where an axis in front counts the samples, each is one. */
static int64_t entries(const samples *s, const run_model *m)
{
    const run_tensor *first = &m->inputs[0];
    return first->rank == 0 || (!s->folders && s->loaded[0].rank > first->rank) ? 1 : first->dims[0];
}

/* --- what they are worth --- */

static void look_at(samples *s, const run_model *m)
{
    if (!s->first) {
        s->first = arena_array(&s->c->mem, uint8_t *, m->n_inputs);
        for (uint32_t i = 0; i < m->n_inputs; i++)
            s->first[i] = arena_try_alloc(&s->c->mem, m->inputs[i].bytes + 1, 64);
        for (uint32_t i = 0; i < m->n_inputs; i++)
            if (s->first[i])
                memcpy(s->first[i], m->inputs[i].data, m->inputs[i].bytes);
    }
    for (uint32_t i = 0; i < m->n_inputs && !(s->varies && s->has_values); i++) {
        const run_tensor *t = &m->inputs[i];
        s->varies |= !s->first[i] || memcmp(s->first[i], t->data, t->bytes) != 0;
        for (size_t k = 0; k < t->bytes && !s->has_values; k++)
            s->has_values = t->data[k] != 0;
    }
    s->fills++;
}

bool samples_check_finite(const samples *s, const run_model *m)
{
    const char *file = s->next ? s->files.data[s->next - 1] : s->path;
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const run_tensor *t = &m->inputs[i];
        long long bad = 0;
        for (int64_t k = 0; dtype_is_float(t->dt) && k < t->count; k++)
            bad += !isfinite(dtype_load_f64(t->dt, t->data + (size_t)k * dtype_bytes(t->dt)));
        if (bad == 0)
            continue;
        diag_error(&s->c->diags, DIAG_DATA, src_loc_none(), "'%s'%s: input '%s' has %lld infinite numbers or NaN", file,
                   s->folders ? "" : arena_printf(&s->c->mem, ", sample %lld", (long long)s->at - 1), t->name, bad);
        diag_hint(&s->c->diags, s->folders ? "remove this sample, or mend it"
                                           : "samples count from 0; in NumPy: x[np.isfinite(x).reshape(len(x), -1)"
                                             ".all(1)] keeps the good ones");
        return false;
    }
    return true;
}

void samples_warn_of_equal(const samples *s, const char *why)
{
    if (s->fills == 0 || (s->has_values && (s->varies || s->fills == 1)))
        return;
    (void)diag_warning(&s->c->diags, DIAG_DATA, src_loc_none(), "'%s': all samples are %s, so %s", s->path,
                       s->has_values ? "equal" : "zero", why);
    diag_hint(&s->c->diags, "give samples like those that the model will see");
}

bool samples_next(samples *s, const run_model *m, bool *out_more)
{
    *out_more = false;
    if (m->n_inputs == 0)
        return diag_error(&s->c->diags, DIAG_USAGE, src_loc_none(), "the model has no inputs, so '%s' is of no use",
                          s->path);
    while (!s->folders && s->at == s->batches) {
        if (s->next == s->files.len)
            return true;
        if (!load_all(s, s->files.data[s->next++], m))
            return false;
    }
    if (s->folders) {
        if (s->next == s->files.len)
            return true;
        if (!fill_from_folder(s, m, s->files.data[s->next++]))
            return false;
    }
    for (uint32_t i = 0; !s->folders && i < m->n_inputs; i++)
        memcpy(m->inputs[i].data, s->loaded[i].data + (size_t)s->at * m->inputs[i].bytes, m->inputs[i].bytes);
    s->at += !s->folders;
    s->counted += entries(s, m);
    look_at(s, m);
    *out_more = true;
    return true;
}

bool samples_count(samples *s, const run_model *m, uint32_t *out_count)
{
    *out_count = 0;
    samples_rewind(s);
    for (bool more = true; more; *out_count += more)
        if (!samples_next(s, m, &more))
            return false;
    samples_rewind(s);
    return *out_count > 0 || diag_error(&s->c->diags, DIAG_DATA, src_loc_none(), "'%s' has no samples", s->path);
}
