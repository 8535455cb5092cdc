/* SPDX-License-Identifier: Apache-2.0 */
/* lathe run: the outputs of a model, shown or stored. */
#include "session.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static void show(const run_tensor *t)
{
    size_t size = dtype_bytes(t->dt);
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < t->count; i++) {
        double v = dtype_load_f64(t->dt, t->data + (size_t)i * size);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    printf("%s: %s[", t->name, dtype_name(t->dt));
    for (uint32_t i = 0; i < t->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)t->dims[i]);
    printf("]");
    if (t->count > 0)
        printf(", %.6g to %.6g:", low, high);
    for (int64_t i = 0; i < t->count && i < 8; i++)
        printf(" %.6g", dtype_load_f64(t->dt, t->data + (size_t)i * size));
    printf("%s\n", t->count > 8 ? " ..." : "");
}

static json_t *number(dtype dt, const uint8_t *at)
{
    if (!dtype_is_float(dt))
        return json_integer((json_int_t)dtype_load_i64(dt, at));
    double v = dtype_load_f64(dt, at);
    return isfinite(v) ? json_real(v) : json_string(isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void show_json(const run_model *m)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const run_tensor *t = &m->outputs[i];
        json_t *o = json_object(), *dims = json_array(), *values = json_array();
        for (uint32_t k = 0; k < t->rank; k++)
            json_array_append_new(dims, json_integer(t->dims[k]));
        for (int64_t k = 0; k < t->count; k++)
            json_array_append_new(values, number(t->dt, t->data + (size_t)k * dtype_bytes(t->dt)));
        json_object_set_new(o, "dtype", json_string(dtype_name(t->dt)));
        json_object_set_new(o, "shape", dims);
        json_object_set_new(o, "values", values);
        json_object_set_new(all, t->name, o);
    }
    char *text = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER);
    puts(text ? text : "{}");
    free(text);
    json_decref(all);
}

/* The file name of output i without its suffix: names that would fall together get _1, _2, ... */
static const char *stem(cli *x, const char **used, uint32_t i, const char *wanted)
{
    const char *base = tensor_file_name(&x->c->mem, wanted), *name = base;
    for (uint32_t k = 1, j = 0; j < i; j++)
        if (strcmp(used[j], name) == 0) {
            name = arena_printf(&x->c->mem, "%s_%u", base, k++);
            j = UINT32_MAX; /* from the start again */
        }
    return used[i] = name;
}

static bool store(cli *x, const run_model *m, const char *dir)
{
    if (!file_make_dirs(&x->c->diags, dir))
        return false;
    const char **used = arena_array(&x->c->mem, const char *, m->n_outputs + 1u);
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const run_tensor *t = &m->outputs[i];
        const char *file = arena_printf(&x->c->mem, "%s/%s.npy", dir, stem(x, used, i, t->name));
        if (!tensor_file_write_npy(x->c, file, t))
            return false;
    }
    return true;
}

int cmd_run(cli *x)
{
    session s;
    const char *dir = cli_get(x, OPT_OUTPUT_DIR, NULL);
    bool ok = session_open(x, &s) && session_fill(&s) && run_call(x->c, &s.model);
    if (ok && dir)
        ok = store(x, &s.model, dir);
    if (ok && cli_has(x, OPT_JSON))
        show_json(&s.model);
    else if (ok)
        for (uint32_t i = 0; i < s.model.n_outputs; i++)
            show(&s.model.outputs[i]);
    session_close(&s);
    return session_status(&s, ok);
}
