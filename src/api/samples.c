/* SPDX-License-Identifier: Apache-2.0 */
/* Files of samples: batches on the first axis, folders in the order of their names. */
#include "api/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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

/* A file whose rows are batches of `like`: the same shape but for the first axis, which is a multiple. */
static bool load(samples *s, const char *path, const run_tensor *like)
{
    compiler *c = s->c;
    run_tensor *t = &s->loaded;
    *t = (run_tensor){.name = like->name, .dt = like->dt, .rank = like->rank};
    memcpy(t->dims, like->dims, sizeof t->dims);
    dtype dt;
    uint32_t rank;
    int64_t dims[TYPE_MAX_RANK];
    const uint32_t errors = c->diags.errors;
    if (tensor_file_peek(c, path, &dt, &rank, dims)) {
        bool fits = rank == like->rank && rank > 0 && dims[0] % (like->dims[0] > 0 ? like->dims[0] : 1) == 0;
        for (uint32_t i = 1; fits && i < rank; i++)
            fits = dims[i] == like->dims[i];
        if (rank > 0 && !fits) {
            diag_error(&c->diags, DIAG_DATA, src_loc_none(), "'%s' has the shape %s; input '%s' is %s", path,
                       tensor_file_dims(&c->mem, rank, dims), like->name,
                       tensor_file_dims(&c->mem, like->rank, like->dims));
            const long long batch = like->rank ? like->dims[0] : 1;
            diag_hint(&c->diags, "the first axis counts the samples, %s; the others must be equal",
                      batch > 1 ? arena_printf(&c->mem, "a multiple of %lld", batch) : "any number of them");
            return false;
        }
        if (rank > 0)
            t->dims[0] = dims[0];
    } else if (c->diags.errors != errors) {
        return false;
    }
    run_set_dims(t, t->dims);
    t->most_bytes = t->bytes;
    t->data = arena_try_alloc(&c->mem, t->bytes + 1, 64);
    if (!t->data)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for '%s'", path);
    s->batches = like->bytes ? (int64_t)(t->bytes / like->bytes) : 0;
    s->at = 0;
    return tensor_file_read(c, path, t);
}

static bool fill_from_folder(samples *s, const run_model *m, const char *folder)
{
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const char *file = arena_printf(&s->c->mem, "%s/input_%u.pb", folder, i);
        if (!tensor_file_read(s->c, file, &m->inputs[i]))
            return false;
    }
    return true;
}

bool samples_next(samples *s, const run_model *m, bool *out_more)
{
    *out_more = false;
    if (m->n_inputs == 0 || (!s->folders && m->n_inputs != 1))
        return diag_error(&s->c->diags, DIAG_USAGE, src_loc_none(),
                          "the model has %u inputs: '%s' has to be a folder of test_data_set_* folders", m->n_inputs,
                          s->path);
    const int64_t each = m->inputs[0].rank ? m->inputs[0].dims[0] : 1;
    while (!s->folders && s->at == s->batches) {
        if (s->next == s->files.len)
            return true;
        if (!load(s, s->files.data[s->next++], &m->inputs[0]))
            return false;
    }
    if (s->folders) {
        if (s->next == s->files.len)
            return true;
        if (!fill_from_folder(s, m, s->files.data[s->next++]))
            return false;
    } else {
        memcpy(m->inputs[0].data, s->loaded.data + (size_t)s->at++ * m->inputs[0].bytes, m->inputs[0].bytes);
    }
    s->counted += each;
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
