/* SPDX-License-Identifier: Apache-2.0 */
/* Times of operators: tvmrt's hooks, in a source that is compiled with the package and read after each round. */
#include "driver/profile.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_out.h"
#include "driver/build.h"
#include "driver/result.h"
#include "type/target.h"

#define TURN   0.25 /* seconds of a round */

static uint32_t vector_bytes(const run_report *r)
{
    const target *t = target_find(r->target);
    return t && t->vector_bytes > 0 ? t->vector_bytes : (uint32_t)sizeof(float);
}

bool profile_prepare_compiler(compiler *c, const char *scratch, run_model *m)
{
    m->profile_flags = "compiler.c";
    return build_write_embedded(c, scratch, "profile", "compiler.c");
}

bool profile_prepare(compiler *c, const char *scratch, uint32_t workers, run_model *m)
{
    if (!build_write_embedded(c, scratch, "profile", "profile.c") || !profile_prepare_compiler(c, scratch, m))
        return false;
    m->n_profiled = workers > 0 ? workers : 1;
    m->profile_flags = arena_printf(&c->mem,
                                    "-DTVMRT_HOOKS=1 -DPROFILE_OPS=%u -DPROFILE_WORKERS=%u -DPROFILE_VECTOR=%u "
                                    "profile.c %s",
                                    m->report->n_operators > 0 ? m->report->n_operators : 1, m->n_profiled,
                                    vector_bytes(m->report), m->profile_flags);
    return true;
}

static bool find(compiler *c, const run_model *m, const char *name, void **out)
{
    *out = dlsym(m->library, name);
    return *out || diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "the package was built without '%s'", name);
}

const char *profile_compiler(compiler *c, const run_model *m)
{
    void *name;
    return find(c, m, "lathe_built_by", &name) ? arena_strdup(&c->mem, name) : NULL;
}

/* From a first-level cache to memory. */
static const int64_t sizes[PROFILE_SIZES] = {16 << 10, 256 << 10, 4 << 20, 64 << 20};

static bool measure_machine(compiler *c, const run_model *m, profile_machine *out)
{
    void *flops, *rate;
    double (*get_flops)(void), (*get_rate)(int64_t);
    if (!find(c, m, "lathe_profile_flops", &flops) || !find(c, m, "lathe_profile_bandwidth", &rate))
        return false;
    memcpy(&get_flops, &flops, sizeof flops); /* C has no cast from object to function pointers */
    memcpy(&get_rate, &rate, sizeof rate);
    out->flops = get_flops();
    for (uint32_t i = 0; i < PROFILE_SIZES; i++) {
        out->reads[i].bytes = sizes[i];
        out->reads[i].rate = get_rate(sizes[i]);
    }
    return true;
}

static bool call_times(compiler *c, run_model *m, long n, double *out)
{
    double start = clock_now();
    for (long i = 0; i < n; i++)
        if (!run_call(c, m))
            return false;
    *out = (clock_now() - start) / (double)n;
    return true;
}

/* One round of n calls, from the package's table into p. */
static void take_round(profile *p, const uint64_t *ns, long n)
{
    for (uint32_t i = 0; i < p->n_operators; i++) {
        double busiest = 0;
        for (uint32_t w = 0; w < p->n_workers; w++) {
            double seconds = 1e-9 * (double)ns[w * p->n_operators + i] / (double)n;
            p->operators[i].workers[w] += seconds;
            busiest = seconds > busiest ? seconds : busiest;
        }
        p->operators[i].rounds[p->n_rounds] = busiest;
    }
    p->n_rounds++;
}

static void finish(profile *p)
{
    for (uint32_t i = 0; i < p->n_operators; i++) {
        profile_operator *o = &p->operators[i];
        qsort(o->rounds, p->n_rounds, sizeof *o->rounds, clock_rising);
        o->seconds = o->rounds[(p->n_rounds - 1) / 2];
        p->seconds += o->seconds;
        for (uint32_t w = 0; w < p->n_workers; w++)
            o->workers[w] /= p->n_rounds;
    }
}

bool profile_take(compiler *c, run_model *m, uint32_t rounds, profile *out)
{
    void *table;
    double once;
    const uint32_t n = m->report->n_operators;
    *out = (profile){.n_operators = n, .n_workers = m->n_profiled};
    out->operators = arena_array(&c->mem, profile_operator, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        out->operators[i].workers = arena_array(&c->mem, double, out->n_workers);
        out->operators[i].rounds = arena_array(&c->mem, double, rounds + 1u);
    }
    if (!find(c, m, "lathe_profile_ns", &table) || !measure_machine(c, m, &out->machine) ||
        !call_times(c, m, 1, &once) || !call_times(c, m, 1, &once))
        return false;
    const long inner = once < TURN ? (long)(TURN / (once + 1e-9)) + 1 : 1;
    for (uint32_t r = 0; r < rounds; r++) {
        if (!compiler_progress(c, "running round", r + 1, rounds))
            return false;
        memset(table, 0, (size_t)(n > 0 ? n : 1) * out->n_workers * sizeof(uint64_t));
        if (!call_times(c, m, inner, &once))
            return false;
        take_round(out, table, inner);
    }
    finish(out);
    return true;
}

double profile_least(const profile_machine *m, const run_operator *op, bool *out_by_bytes)
{
    const double sums = m->flops > 0 ? 2.0 * (double)op->macs / m->flops : 0;
    uint32_t i = 0;
    while (i + 1 < PROFILE_SIZES && m->reads[i].bytes < op->bytes)
        i++;
    const double bytes = m->reads[i].rate > 0 ? (double)op->bytes / m->reads[i].rate : 0;
    *out_by_bytes = bytes > sums;
    return bytes > sums ? bytes : sums;
}

double profile_share_of_peak(const profile *p, const run_report *r, uint32_t i, bool *out_by_bytes)
{
    const run_operator *op = &r->operators[i];
    const double seconds = p->operators[i].seconds;
    const double workers = op->tasks < p->n_workers ? (double)op->tasks : (double)p->n_workers;
    const double least = profile_least(&p->machine, op, out_by_bytes);
    return seconds > 0 && workers > 0 ? least / workers / seconds : 0;
}

/* --- written, and read back --- */

void profile_write_json(writer *w, const run_report *r, const profile *p)
{
    json_out j = json_out_begin(w, JSON_OUT_LINES);
    json_out_object(&j, NULL);
    json_out_uint(&j, "workers", p->n_workers);
    json_out_uint(&j, "rounds", p->n_rounds);
    json_out_real(&j, "ms", 1e3 * p->seconds);
    json_out_real(&j, "core_gflops", 1e-9 * p->machine.flops);
    json_out_array(&j, "core_reads");
    for (uint32_t i = 0; i < PROFILE_SIZES; i++) {
        json_out_object(&j, NULL);
        json_out_int(&j, "bytes", p->machine.reads[i].bytes);
        json_out_real(&j, "gb_per_s", 1e-9 * p->machine.reads[i].rate);
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_array(&j, "operators");
    for (uint32_t i = 0; i < p->n_operators; i++) {
        const run_operator *op = &r->operators[i];
        const profile_operator *o = &p->operators[i];
        bool by_bytes;
        const double peak = profile_share_of_peak(p, r, i, &by_bytes);
        json_out_object(&j, NULL);
        json_out_text(&j, "source", op->source);
        json_out_text(&j, "kernel", op->kernel);
        json_out_text(&j, "kind", op->kind);
        json_out_real(&j, "ms", 1e3 * o->seconds);
        json_out_array(&j, "worker_ms");
        for (uint32_t k = 0; k < p->n_workers; k++)
            json_out_real(&j, NULL, 1e3 * o->workers[k]);
        json_out_end(&j);
        json_out_int(&j, "macs", op->macs);
        json_out_int(&j, "bytes", op->bytes);
        json_out_real(&j, "share_of_peak", peak);
        json_out_text(&j, "bound", by_bytes ? "bytes" : "sums");
        json_out_text(&j, "schedule", op->on ? op->on : op->schedule ? op->schedule : "rule");
        json_out_end(&j);
    }
    json_out_end(&j);
    json_out_end(&j);
    w_str(w, "\n");
}

static bool read_row(compiler *c, const json_t *o, profile_row *out)
{
    const char *kernel = json_string_value(json_object_get(o, "kernel"));
    const char *bound = json_string_value(json_object_get(o, "bound"));
    const json_t *ms = json_object_get(o, "ms"), *share = json_object_get(o, "share_of_peak");
    const json_t *workers = json_object_get(o, "worker_ms");
    if (!kernel || !bound || !json_is_number(ms) || !json_is_number(share) || !json_is_array(workers))
        return false;
    const uint32_t n = (uint32_t)json_array_size(workers);
    double *each = arena_array(&c->mem, double, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        each[i] = json_number_value(json_array_get(workers, i));
    *out = (profile_row){.kernel = arena_strdup(&c->mem, kernel), .bound = arena_strdup(&c->mem, bound),
                         .ms = json_number_value(ms), .share_of_peak = json_number_value(share), .worker_ms = each,
                         .n_workers = n};
    return true;
}

/* A kernel on a board. */
static bool read_count(compiler *c, const json_t *o, profile_row *out)
{
    const char *kernel = json_string_value(json_object_get(o, "kernel"));
    const json_t *instructions = json_object_get(o, "instructions");
    if (!kernel || !json_is_integer(instructions) || json_integer_value(instructions) < 0)
        return false;
    *out = (profile_row){.kernel = arena_strdup(&c->mem, kernel), .bound = "",
                         .instructions = (double)json_integer_value(instructions)};
    return true;
}

/* The operators with their times, or of a board with their instructions; false: there are none. */
static bool read_rows(compiler *c, const json_t *result, profile_page *out)
{
    const json_t *counted = json_object_get(result, "board");
    const char *name = json_string_value(json_object_get(counted, "name"));
    const json_t *list = json_object_get(counted ? counted : result, "operators");
    bool ok = json_is_array(list) && (!counted || name);
    out->board = counted && name ? arena_strdup(&c->mem, name) : NULL;
    out->rows = arena_array(&c->mem, profile_row, json_array_size(list) + 1u);
    for (size_t i = 0; ok && i < json_array_size(list); i++)
        ok = (counted ? read_count : read_row)(c, json_array_get(list, i), &out->rows[out->n++]);
    return ok;
}

bool profile_read(compiler *c, const char *file, profile_page *out)
{
    span s;
    json_error_t why;
    *out = (profile_page){0};
    if (!compiler_read_file(c, file, &s))
        return false;
    json_t *o = json_loadb(s.data ? (const char *)s.data : "", s.len, 0, &why);
    const bool ok = read_rows(c, result_of(o), out);
    json_decref(o);
    if (ok)
        return true;
    diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "'%s' is not a profile", file);
    diag_hint(&c->diags, "lathe bench MODEL --profile --json > FILE writes one, and for an emulator that counts "
                         "instructions lathe verify MODEL --target qemu-m4 --against interpreter --json > FILE");
    return false;
}
