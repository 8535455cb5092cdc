/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for times: sends packages of candidates to the measuring program, and reads the line that it answers. */
#include "driver/measure.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "driver/computation.h"
#include "tir/pass.h"
#include "type/target.h"

#define TOLERANCE 1e-3 /* relative, and of the largest number of the result */

static uint32_t left_undone(const tir_func *f)
{
    return f->left.serial + f->left.whole;
}

static prog_kernel *new_kernel(compiler *c, const computation *t, const struct target *runs, uint32_t number)
{
    prog_kernel *k = arena_new(&c->mem, prog_kernel);
    const char *name = arena_printf(&c->mem, "k%u", number);
    *k = (prog_kernel){.name = intern(c->names, name), .kind = "candidate", .target = runs};
    return computation_kernel(c, t, runs, k) ? k : NULL;
}

bool measure_package(compiler *c, const char *text, const char *const *schedules, uint32_t n, const struct target *t,
                     uint32_t *in_package, artifact *out)
{
    VEC(prog_kernel *) kernels = {0};
    computation x = {.file = "computation", .schedule_file = "schedule"};
    x.text = (span){(const uint8_t *)text, strlen(text)};
    prog_kernel *k = new_kernel(c, &x, t, 0);
    if (!k)
        return false;
    vec_push(&c->mem, &kernels, k);
    for (uint32_t i = 0; i < n; i++) {
        diags_mark mark = diags_get_mark(&c->diags);
        x.schedule = (span){(const uint8_t *)schedules[i], strlen(schedules[i])};
        k = new_kernel(c, &x, t, kernels.len);
        in_package[i] = 0;
        if (!k && i == 0)
            return false;
        if (!k) /* a factor that does not fit: one candidate less */
            diags_reset(&c->diags, mark);
        if (!k || (i > 0 && left_undone(k->loops) > left_undone(kernels.data[1]->loops)))
            continue;
        in_package[i] = kernels.len;
        vec_push(&c->mem, &kernels, k);
    }
    compile_options o;
    compile_result r;
    prog_module *m = NULL;
    compile_options_init(&o);
    o.target = t;
    o.workers = 1;
    o.module_name = "tune";
    o.constants_form = CONSTANTS_C;
    if (!computation_together(c, kernels.len, kernels.data, &m) || !pipeline_emit(c, m, &o, &r))
        return false;
    *out = r.artifact;
    return true;
}

static bool send_files(const process *p, const artifact *a)
{
    char line[512];
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->files.len; i++) {
        const artifact_file *f = &a->files.data[i];
        int len = snprintf(line, sizeof line, "file %zu %s", f->len, f->path);
        ok = len > 0 && (size_t)len < sizeof line && process_say(p, line) && process_send(p, f->data, f->len);
    }
    return ok && process_say(p, "end");
}

bool measure_send(const process *p, const artifact *a, uint32_t seconds)
{
    char line[64];
    snprintf(line, sizeof line, "package %u", seconds);
    return process_say(p, line) && send_files(p, a);
}

bool measure_send_networks(const process *p, const artifact *a, const artifact *b, uint32_t seconds)
{
    char line[64];
    snprintf(line, sizeof line, "networks %u", seconds);
    return process_say(p, line) && send_files(p, a) && send_files(p, b);
}

static bool broken(compiler *c, const char *line)
{
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "the measuring program answered '%.100s'", line);
    diag_hint(&c->diags, "it has to be 'lathe measure' of this version");
    return false;
}

bool measure_read(compiler *c, const char *line, measure_answer *out)
{
    json_error_t why;
    json_t *o = json_loads(line, 0, &why);
    const char *failed = json_string_value(json_object_get(o, "failed"));
    const char *cc = json_string_value(json_object_get(o, "compiler"));
    const json_t *times = json_object_get(o, "seconds");
    *out = (measure_answer){.failed = failed ? arena_strdup(&c->mem, failed) : NULL,
                            .compiler = cc ? arena_strdup(&c->mem, cc) : NULL,
                            .n = (uint32_t)json_array_size(times)};
    out->seconds = arena_array(&c->mem, double, out->n + 1u);
    for (uint32_t i = 0; i < out->n; i++)
        out->seconds[i] = json_number_value(json_array_get(times, i));
    json_decref(o);
    return out->failed || (out->compiler && out->n > 0) || broken(c, line);
}

void measure_fill(run_model *m)
{
    uint64_t state = 0;
    for (uint32_t i = 0; i < m->n_inputs; i++) /* whole numbers may be positions: they stay inside */
        tensor_file_random(&m->inputs[i], &state, m->inputs[i].dt == DT_I64 || m->inputs[i].dt == DT_I32 ? 1 : -1);
}

static double largest(const run_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double v = dtype_load_f64(t->dt, t->data + (size_t)i * dtype_bytes(t->dt));
        v = v < 0 ? -v : v;
        most = v > most ? v : most;
    }
    return most;
}

bool measure_agrees(const run_tensor *got, const run_tensor *want)
{
    const bool exact = !dtype_is_float(got->dt);
    compare_result r = compare_tensors(got, want->data, exact ? 0 : TOLERANCE, exact ? 0 : TOLERANCE * largest(want));
    return r.wrong == 0;
}
