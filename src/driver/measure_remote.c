/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements on a remote device. */
#include "driver/measure_remote.h"

#include <string.h>

#include "base/file.h"
#include "driver/computation.h"

enum { ROUNDS = 5 };
#define TURN 0.02 /* seconds */

/* A file of the computation with its schedule, and the module of it. */
static bool compile_kernel(compiler *c, const measure_remote *r, uint32_t number, const char *text,
                           const char *schedule, const struct target *t, artifact *out)
{
    compile_options o;
    compile_result made;
    writer w;
    const char *file = arena_printf(&c->mem, "%s/kernel_%u.te", r->dir, number);
    compile_options_init(&o);
    o.verb = "compile";
    compile_set_emit(&o, EMIT_MODULE);
    o.target = t;
    o.workers = 1;
    writer_init(&w, &c->mem);
    w_fmt(&w, "%s--- schedule\n%s", text, schedule);
    if (!compiler_write_file(c, file, w.data, w.len) || !pipeline_compile(c, file, &o, &made))
        return false;
    *out = made.artifact;
    return true;
}

/* Results of the first module, kept behind its session. */
static run_tensor *keep_results(compiler *c, const run_model *m)
{
    run_tensor *out = arena_array(&c->mem, run_tensor, m->n_outputs + 1u);
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        out[i] = m->outputs[i];
        out[i].data = arena_alloc(&c->mem, out[i].bytes + 1, 64);
        memcpy(out[i].data, m->outputs[i].data, out[i].bytes);
    }
    return out;
}

static bool time_calls(compiler *c, run_model *m, double *least)
{
    double once = 0;
    if (!m->time_module(c, m, 1, &once))
        return false;
    const long calls = once < TURN ? (long)(TURN / (once + 1e-9)) + 1 : 1;
    *least = once;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (!m->time_module(c, m, calls, &once))
            return false;
        *least = once < *least ? once : *least;
    }
    return true;
}

/* One session. *want NULL: these results are right, and kept. Seconds < 0: they are others; they are not asked for
 * where `seconds` is NULL. */
static bool measure_one(compiler *c, const measure_remote *r, uint32_t number, const artifact *a, run_tensor **want,
                        double *seconds)
{
    run_model m = {0};
    const char *file = arena_printf(&c->mem, "%s/module_%u.so", r->dir, number);
    bool ok = compiler_write_file(c, file, a->files.data[0].data, a->files.data[0].len) &&
              run_open_remote(c, file, r->where, &m) && run_size_inputs(c, &m), right = true;
    if (ok)
        measure_fill(&m);
    ok = ok && m.call_module(c, &m);
    for (uint32_t i = 0; ok && *want && i < m.n_outputs; i++)
        right = right && measure_agrees(&m.outputs[i], &(*want)[i]);
    if (ok && !*want)
        *want = keep_results(c, &m);
    if (ok && seconds) {
        *seconds = -1;
        ok = !right || time_calls(c, &m, seconds);
    }
    run_close(&m);
    return ok;
}

static const char *name_of(compiler *c, const measure_remote *r)
{
    return arena_printf(&c->mem, "on %s:%u", r->where->host, r->where->port);
}

bool measure_remote_kernel(compiler *c, const measure_remote *r, const char *text, const char *const *schedules,
                           uint32_t n, const struct target *t, uint32_t *in_answer, measure_answer *out)
{
    artifact a = {0};
    run_tensor *want = NULL;
    *out = (measure_answer){.compiler = name_of(c, r), .n = 1};
    out->seconds = arena_array(&c->mem, double, n + 1u);
    if (!compile_kernel(c, r, 0, text, "", t, &a) || !measure_one(c, r, 0, &a, &want, NULL))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const diags_mark mark = diags_get_mark(&c->diags);
        in_answer[i] = 0;
        if (!compile_kernel(c, r, i + 1, text, schedules[i], t, &a)) {
            if (i == 0)
                return false;
            diags_reset(&c->diags, mark); /* a factor that does not fit: one candidate less */
            continue;
        }
        if (!measure_one(c, r, i + 1, &a, &want, &out->seconds[out->n]))
            return false;
        in_answer[i] = out->n++;
    }
    return true;
}

bool measure_remote_networks(compiler *c, const measure_remote *r, const artifact *a, const artifact *b,
                             measure_answer *out)
{
    run_tensor *want = NULL;
    *out = (measure_answer){.compiler = name_of(c, r), .n = 2};
    out->seconds = arena_array(&c->mem, double, 2);
    return measure_one(c, r, 0, a, &want, &out->seconds[0]) && measure_one(c, r, 1, b, &want, &out->seconds[1]);
}
