/* SPDX-License-Identifier: Apache-2.0 */
/* report.json read back: what a package folder says of itself. Somebody may have changed the file: everything is asked
 * for by kind and range, and what is missing or odd makes the whole file broken. */
#include "driver/run.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "abi/package.h"
#include "base/file.h"


/* The full name, or ours. */
static bool parse_dtype(const char *name, dtype *out)
{
    return name && (dtype_parse_full(name, strlen(name), out) || dtype_parse(name, out)) && dtype_usable(*out);
}

static bool text_field(compiler *c, const json_t *object, const char *key, const char **out)
{
    const char *s = json_string_value(json_object_get(object, key));
    *out = s ? arena_strdup(&c->mem, s) : "";
    return s != NULL;
}

static bool count_field(const json_t *object, const char *key, int64_t *out)
{
    const json_t *n = json_object_get(object, key);
    *out = json_integer_value(n);
    return json_is_integer(n) && *out >= 0;
}

static bool read_tensor(compiler *c, const json_t *o, run_tensor *t)
{
    const json_t *dims = json_object_get(o, "shape");
    *t = (run_tensor){.count = 1};
    if (!json_is_array(dims) || json_array_size(dims) > TYPE_MAX_RANK || !text_field(c, o, "name", &t->name) ||
        !parse_dtype(json_string_value(json_object_get(o, "dtype")), &t->dt))
        return false;
    t->rank = (uint32_t)json_array_size(dims);
    for (uint32_t i = 0; i < t->rank; i++) {
        const json_t *n = json_array_get(dims, i);
        t->dims[i] = json_integer_value(n);
        const bool unbounded = t->dims[i] == -1 && json_object_get(o, "open_shape");
        if (!json_is_integer(n) || (t->dims[i] < 0 && !unbounded))
            return false;
        t->most[i] = t->dims[i];
        t->dims[i] = unbounded ? 0 : t->dims[i];
    }
    int64_t bytes;
    t->is_text = json_object_get(o, "string_bytes") != NULL;
    if (t->is_text && (t->dt != DT_U8 || t->rank == 0))
        return false;
    t->is_quantized = json_is_number(json_object_get(o, "scale"));
    t->scale = json_number_value(json_object_get(o, "scale"));
    t->zero_point = json_integer_value(json_object_get(o, "zero_point"));
    if (!tensor_count(t->rank, t->dims, &t->count) || !i64_mul(t->count, (int64_t)dtype_bytes(t->dt), &bytes))
        return false;
    t->bytes = t->most_bytes = (size_t)bytes;
    return true;
}

/* "open_shape": numbers, and dimensions as text. */
static bool read_open(compiler *c, const json_t *o, run_tensor *t)
{
    const json_t *list = json_object_get(o, "open_shape");
    if (!list)
        return true;
    dim *open = arena_array(&c->mem, dim, t->rank + 1u);
    t->open = open;
    for (uint32_t i = 0; i < t->rank; i++) {
        const json_t *d = json_array_get(list, i);
        const char *text = json_string_value(d);
        lexer l;
        if (!text) {
            open[i] = dim_const(c, json_integer_value(d));
            if (!json_is_integer(d))
                return false;
            continue;
        }
        lexer_init(&l, &c->mem, c->names, &c->diags, "report.json", text, strlen(text));
        if (!dim_parse(c, &l, &open[i]) || l.tok.kind != TOK_END)
            return false;
    }
    return json_array_size(list) == t->rank;
}

static bool read_extents(compiler *c, const json_t *list, run_report *r)
{
    r->n_extents = (uint32_t)json_array_size(list);
    r->extents = arena_array(&c->mem, run_extent, r->n_extents + 1u);
    for (uint32_t i = 0; i < r->n_extents; i++) {
        run_extent *x = &r->extents[i];
        x->value = -1;
        if (!text_field(c, json_array_get(list, i), "name", &x->name) ||
            (!count_field(json_array_get(list, i), "most", &x->most) && x->most != -1))
            return false;
    }
    return !list || json_is_array(list);
}

static bool read_tensors(compiler *c, const json_t *list, run_tensor **out, uint32_t *n)
{
    *n = (uint32_t)json_array_size(list);
    *out = arena_array(&c->mem, run_tensor, *n + 1u);
    for (uint32_t i = 0; i < *n; i++)
        if (!read_tensor(c, json_array_get(list, i), &(*out)[i]) ||
            !read_open(c, json_array_get(list, i), &(*out)[i]))
            return false;
    return json_is_array(list);
}

static bool read_parts(compiler *c, const json_t *list, list_io *l)
{
    l->n_parts = (uint32_t)json_array_size(list);
    list_part *parts = arena_array(&c->mem, list_part, l->n_parts + 1u);
    l->parts = parts;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const json_t *o = json_array_get(list, i);
        const char *holds;
        parts[i] = (list_part){0};
        if (!text_field(c, o, "name", &parts[i].name) || !text_field(c, o, "holds", &holds) ||
            (json_object_get(o, "sizes") && !text_field(c, o, "sizes", &parts[i].sizes)))
            return false;
        parts[i].many = strcmp(holds, "elements") == 0;
    }
    return json_is_array(list);
}

/* Sequences and optionals; a report of a model without them has no such list. */
static bool read_lists(compiler *c, const json_t *list, run_report *r)
{
    r->n_lists = (uint32_t)json_array_size(list);
    r->lists = arena_array(&c->mem, list_io, r->n_lists + 1u);
    for (uint32_t i = 0; i < r->n_lists; i++) {
        const json_t *o = json_array_get(list, i);
        list_io *l = &r->lists[i];
        const char *kind, *of;
        int64_t place;
        *l = (list_io){0};
        if (!text_field(c, o, "name", &l->name) || !text_field(c, o, "kind", &kind) || !text_field(c, o, "of", &of) ||
            !count_field(o, "place", &place) || place > UINT16_MAX || !read_parts(c, json_object_get(o, "parts"), l) ||
            (json_object_get(o, "present") && !text_field(c, o, "present", &l->present)))
            return false;
        l->place = (uint32_t)place;
        l->is_input = strcmp(of, "inputs") == 0;
        l->is_map = strcmp(kind, "map") == 0;
        l->is_sequence = strcmp(kind, "optional") != 0;
        l->is_optional = !l->is_map && strcmp(kind, "sequence") != 0;
        l->is_none = json_integer_value(json_object_get(o, "none")) != 0;
    }
    return !list || json_is_array(list);
}

/* Of all that an operator reads and writes. */
static bool count_bytes(const json_t *o, const json_t *values, int64_t *out)
{
    static const char *const keys[] = {"inputs", "outputs"};
    *out = 0;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const json_t *list = json_object_get(o, keys[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *at = json_array_get(list, i);
            int64_t bytes;
            if (!json_is_integer(at) || json_integer_value(at) < 0 ||
                !count_field(json_array_get(values, (size_t)json_integer_value(at)), "bytes", &bytes) ||
                !i64_add(*out, bytes, out))
                return false;
        }
    }
    return true;
}

static bool read_operators(compiler *c, const json_t *list, const json_t *values, run_report *r)
{
    r->n_operators = (uint32_t)json_array_size(list);
    r->operators = arena_array(&c->mem, run_operator, r->n_operators + 1u);
    for (uint32_t i = 0; i < r->n_operators; i++) {
        const json_t *o = json_array_get(list, i);
        run_operator *op = &r->operators[i];
        if (!text_field(c, o, "kernel", &op->kernel) || !text_field(c, o, "kind", &op->kind) ||
            !text_field(c, o, "source", &op->source) || !count_field(o, "layer", &op->layer) ||
            !count_field(o, "tasks", &op->tasks) || !count_field(o, "macs", &op->macs) ||
            !count_bytes(o, values, &op->bytes))
            return false;
        if (json_object_get(o, "schedule") && !text_field(c, o, "schedule", &op->schedule))
            return false;
        if (json_object_get(o, "on") && !text_field(c, o, "on", &op->on))
            return false;
        if (json_object_get(o, "extents") && !text_field(c, o, "extents", &op->extents))
            return false;
    }
    return json_is_array(list);
}

/* Names of a folder in the package's; with nothing in them that leads out, or that a compiler takes for an option. */
static bool is_source_file(const char *file)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    const char *slash = strchr(file, '/');
    size_t n = strlen(file);
    return slash && slash > file && !strchr(slash + 1, '/') && *file != '-' && !strstr(file, "..") &&
           file[strspn(file, letters)] == '\0' && n > 6 &&
           (strcmp(file + n - 2, ".c") == 0 || strcmp(file + n - 3, ".cu") == 0);
}

static bool read_sources(compiler *c, const json_t *list, run_report *r)
{
    r->n_sources = (uint32_t)json_array_size(list);
    r->sources = arena_array(&c->mem, run_source, r->n_sources + 1u);
    for (uint32_t i = 0; i < r->n_sources; i++) {
        const json_t *o = json_array_get(list, i);
        run_source *s = &r->sources[i];
        if (!text_field(c, o, "file", &s->file) || !is_source_file(s->file) ||
            !text_field(c, o, "cflags", &s->cflags) || !text_field(c, o, "ldflags", &s->ldflags))
            return false;
    }
    return !list || json_is_array(list);
}

static bool read_fields(compiler *c, const json_t *o, run_report *r)
{
    const struct {
        const char *key, **to;
    } texts[] = {{"module_name", &r->module}, {"target_cflags", &r->cflags}, {"target", &r->target},
                 {"port", &r->port}};
    const struct {
        const char *key;
        int64_t *to;
    } counts[] = {{"workers", &r->workers}, {"workspace_bytes", &r->workspace_bytes},
                  {"workspace_lower_bound_bytes", &r->lower_bound_bytes}, {"constant_bytes", &r->constant_bytes}};
    const char *form = json_string_value(json_object_get(o, "constants"));
    r->hands_over = form && strcmp(form, constants_form_name(CONSTANTS_BIN)) == 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!text_field(c, o, texts[i].key, texts[i].to))
            return false;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!count_field(o, counts[i].key, counts[i].to))
            return false;
    return r->workers <= PACKAGE_MAX_WORKERS &&
           read_tensors(c, json_object_get(o, "inputs"), &r->inputs, &r->n_inputs) &&
           read_tensors(c, json_object_get(o, "outputs"), &r->outputs, &r->n_outputs) &&
           read_lists(c, json_object_get(o, "lists"), r) && read_extents(c, json_object_get(o, "extents"), r) &&
           read_sources(c, json_object_get(o, "sources"), r) &&
           read_operators(c, json_object_get(o, "operators"), json_object_get(o, "values"), r);
}

bool run_parse_report(compiler *c, const char *path, const char *text, size_t len, run_report *out)
{
    json_error_t why;
    *out = (run_report){0};
    errno = 0;
    json_t *report = json_loadb(text, len, 0, &why);
    const bool several = json_is_array(json_object_get(report, "functions"));
    bool ok = report && !several && read_fields(c, report, out);
    if (!report && errno == ENOMEM) { /* the library takes some of its own refusals for errors of the text */
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for reading '%s'", path);
    } else if (several) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s': the package has several functions", path);
        diag_hint(&c->diags, "its Makefile makes a program of each; here, take the model and --signature NAME");
    } else if (!ok) {
        diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' is broken%s%s", path, report ? "" : ": ",
                   report ? "" : why.text);
        diag_hint(&c->diags, "packages and modules are what 'lathe compile' writes; write it again");
    }
    out->text = arena_strndup(&c->mem, text, len);
    json_decref(report);
    return ok;
}

bool run_read_report(compiler *c, const char *dir, run_report *out)
{
    span s;
    const char *path = path_join(&c->mem, dir, "report.json");
    *out = (run_report){0};
    if (compiler_read_file(c, path, &s))
        return run_parse_report(c, path, s.data ? (const char *)s.data : "", s.len, out);
    diag_hint(&c->diags, "a package is what 'lathe compile' writes");
    return false;
}
