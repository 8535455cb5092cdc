/* SPDX-License-Identifier: Apache-2.0 */
/* Makes packages of models that were changed by chance, and what they must give:
 *
 *     mutants OUT FIRST COUNT SEEDS TARGET...
 *
 * SEEDS is a file with a path of a model on each line. Number N gives OUT/mN.txt, the changed model as graph text;
 * when the compiler takes it, OUT/mN, its package, and OUT/mN.case, inputs with what the interpreter makes of them.
 * Each is made in a process of its own; one line for each says what became of it: "N package FLAGS", "N refused", "N
 * large" (it would run too long), "N unread" (the seed), or "N FAILED why". test/py/mutants.py builds the packages and
 * runs them. */
#include "../loop_steps.h"
#include "base/file.h"
#include "case_file.h"
#include "driver/run.h"
#include "mutate.h"
#include "type/target.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETS = 3, PROCESSOR_SECONDS = 300 };
#define MOST_STEPS 2e5
#define MOST_BYTES (1u << 20)

typedef struct job {
    const char *out;
    uint64_t number, state;
    const char *const *seeds;
    uint32_t n_seeds;
    const char *const *targets;
    uint32_t n_targets;
} job;

/* What the child says, on one line; the file's names are not in it. */
static int say(const job *j, const char *verdict, const char *text)
{
    char line[400];
    int n = snprintf(line, sizeof line, "%" PRIu64 " %s %s", j->number, verdict, text);
    n = n < (int)sizeof line ? n : (int)sizeof line - 1;
    for (int i = 0; i < n; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    printf("%s\n", line);
    fflush(stdout);
    return 0;
}

static int say_diags(const job *j, compiler *c, const char *verdict)
{
    return say(j, verdict, diags_print(&c->diags, &c->mem));
}

/* --- inputs --- */

/* An extent of some tensor of the model: shapes, axes and indices that have a meaning. */
static int64_t some_extent(const run_model *m, uint64_t *state)
{
    uint32_t at = chance(state, m->n_inputs + m->n_outputs);
    const run_tensor *t = at < m->n_inputs ? &m->inputs[at] : &m->outputs[at - m->n_inputs];
    return t->rank > 0 ? t->dims[chance(state, t->rank)] : 1;
}

static void hostile_element(const run_model *m, const run_tensor *t, uint8_t *at, uint64_t *state)
{
    static const double floats[] = {0.0,  -0.0,  1.0,   -1.0,   0.5,    INFINITY, -INFINITY, NAN,     1e-45,
                                    3e38, -3e38, 65504, 1e-310, 1.7e308, 255.5,   -128.5,    2147483648.0, 9.3e18};
    static const int64_t ints[] = {0, 1, -1, 2, -2, 127, 128, 255, -128, 65535, INT32_MAX, INT32_MIN, INT64_MAX,
                                   INT64_MIN};
    if (t->dt == DT_BOOL)
        *at = (uint8_t)chance(state, 2);
    else if (dtype_is_float(t->dt))
        dtype_store_f64(t->dt, at, floats[chance(state, sizeof floats / sizeof *floats)]);
    else if (chance(state, 2))
        dtype_store_i64(t->dt, at, some_extent(m, state) - (int64_t)chance(state, 2));
    else
        dtype_store_i64(t->dt, at, ints[chance(state, sizeof ints / sizeof *ints)]);
}

static void mild_element(const run_model *m, const run_tensor *t, uint8_t *at, uint64_t *state)
{
    if (t->dt == DT_BOOL)
        *at = (uint8_t)chance(state, 2);
    else if (dtype_is_float(t->dt))
        dtype_store_f64(t->dt, at, ((double)chance(state, 4001) - 2000) / 500);
    else
        dtype_store_i64(t->dt, at, chance(state, 3) ? (int64_t)chance(state, 4) : some_extent(m, state));
}

/* Set 0 is mild; the others mix: a tensor is mild, hostile, or mild but for one element. */
static void fill(run_model *m, uint32_t set, uint64_t *state)
{
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        run_tensor *t = &m->inputs[i];
        size_t size = dtype_bytes(t->dt);
        uint32_t how = set == 0 ? 0 : chance(state, 3);
        for (int64_t k = 0; k < t->count; k++)
            (how == 1 ? hostile_element : mild_element)(m, t, t->data + (size_t)k * size, state);
        if (how == 2 && t->count > 0)
            hostile_element(m, t, t->data + size * chance(state, (uint32_t)t->count), state);
    }
}

/* --- what must come out --- */

static void put_header(FILE *f, const run_model *m, bool exact)
{
    fwrite(&(case_header){SETS, m->n_inputs, m->n_outputs, exact}, sizeof(case_header), 1, f);
    for (uint32_t i = 0; i < m->n_inputs + m->n_outputs; i++) {
        const run_tensor *t = i < m->n_inputs ? &m->inputs[i] : &m->outputs[i - m->n_inputs];
        fwrite(&(case_tensor){t->bytes, dtype_is_float(t->dt), dtype_bits(t->dt)}, sizeof(case_tensor), 1, f);
    }
}

/* A status that ends a run is an answer; anything else that the interpreter reports is a fault of the loops. */
static bool run_set(compiler *c, run_model *m, uint32_t *out_status)
{
    *out_status = !run_call(c, m);
    return *out_status == 0 || strstr(c->diags.last->text, "ended with status");
}

/* The same sums in another order. */
static bool is_near(const run_tensor *t, const uint8_t *want)
{
    size_t size = dtype_bytes(t->dt);
    double top = 0;
    if (!dtype_is_float(t->dt))
        return memcmp(t->data, want, t->bytes) == 0;
    for (int64_t i = 0; i < t->count; i++)
        top = fmax(top, fabs(dtype_load_f64(t->dt, want + (size_t)i * size)));
    for (int64_t i = 0; i < t->count; i++) {
        double a = dtype_load_f64(t->dt, t->data + (size_t)i * size);
        double b = dtype_load_f64(t->dt, want + (size_t)i * size);
        double bound = dtype_bits(t->dt) == 16 ? 2e-2 * top : 1e-3 * fabs(b) + 1e-4 * top;
        if (!(fabs(a - b) <= bound) && !(isnan(a) && isnan(b)) && a != b)
            return false;
    }
    return true;
}

typedef struct answer {
    uint32_t status;
    uint8_t *outputs[64];
} answer;

/* What the definitions give for a set: of mild operands the loops must come near it, of all have its status. */
static bool agree(compiler *c, const run_model *m, uint32_t set, uint32_t status, const answer *by_definition)
{
    if (status != by_definition->status)
        return diag_error(&c->diags, DIAG_MISMATCH, src_loc_none(), "set %u: the loops end %s, the definitions %s", set,
                          status ? "with a status" : "well", status ? "well" : "with a status");
    for (uint32_t i = 0; set == 0 && status == 0 && i < m->n_outputs; i++)
        if (!is_near(&m->outputs[i], by_definition->outputs[i]))
            return diag_error(&c->diags, DIAG_MISMATCH, src_loc_none(),
                              "output %u: the loops differ from the definitions", i);
    return true;
}

static bool ask_definitions(compiler *c, run_model *m, uint64_t state, answer *out)
{
    for (uint32_t s = 0; s < SETS; s++) {
        fill(m, s, &state);
        if (!run_set(c, m, &out[s].status))
            return false;
        for (uint32_t i = 0; i < m->n_outputs; i++) {
            out[s].outputs[i] = arena_array(&c->mem, uint8_t, m->outputs[i].bytes + 1);
            memcpy(out[s].outputs[i], m->outputs[i].data, m->outputs[i].bytes);
        }
    }
    return true;
}

/* The case file: what the loops give, which the package must give too. */
static bool write_sets(compiler *c, run_model *m, uint64_t state, const answer *by_definition, FILE *f)
{
    for (uint32_t s = 0; s < SETS; s++) {
        uint32_t status;
        fill(m, s, &state);
        if (!run_set(c, m, &status) || !agree(c, m, s, status, &by_definition[s]))
            return false;
        fwrite(&status, sizeof status, 1, f);
        for (uint32_t i = 0; i < m->n_inputs; i++)
            fwrite(m->inputs[i].data, 1, m->inputs[i].bytes, f);
        for (uint32_t i = 0; status == 0 && i < m->n_outputs; i++)
            fwrite(m->outputs[i].data, 1, m->outputs[i].bytes, f);
    }
    return true;
}

static bool write_case(const job *j, compiler *c, const compile_result *r, uint64_t state)
{
    run_model m;
    answer by_definition[SETS];
    c->diags.limit = UINT32_MAX;
    if (!run_open_interpreter(c, r->prog, &m) || m.n_outputs > 64 || !ask_definitions(c, &m, state, by_definition))
        return false;
    for (uint32_t i = 0; i < r->prog->kernels.len; i++)
        r->prog->kernels.data[i]->plain = NULL; /* from here on the interpreter runs the loops that were made of them */
    FILE *f = fopen(arena_printf(&c->mem, "%s/m%" PRIu64 ".case", j->out, j->number), "wb");
    if (!f)
        return false;
    put_header(f, &m, strcmp(r->unit.target->name, "generic") == 0);
    bool ok = write_sets(c, &m, state, by_definition, f);
    return fclose(f) == 0 && ok;
}

/* --- one model --- */

/* Results with open extents: the cases of the harness have constant sizes (test/py/chosen.py has those). */
static bool is_open(const compile_result *r)
{
    for (uint32_t i = 0; i < r->unit.func->results.len; i++)
        if (r->unit.func->results.data[i].shape_of != PROG_NONE)
            return true;
    return false;
}

static bool is_large(const compile_result *r)
{
    double steps = 0;
    uint64_t bytes = r->plan.workspace_bytes + r->plan.constant_bytes;
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++)
        steps += loop_steps(r->plan.problem->ops.data[i].func->body, 64);
    for (uint32_t i = 0; i < r->plan.problem->values.len; i++)
        bytes += r->plan.problem->values.data[i].bytes;
    return steps > MOST_STEPS || bytes > MOST_BYTES;
}

static bool write_model(const job *j, uint64_t *state, const char *path)
{
    compiler c;
    compile_options o;
    graph_module *m;
    writer w;
    compiler_setup(&c);
    compile_options_init(&o);
    bool ok = pipeline_load(&c, j->seeds[chance(state, j->n_seeds)], &o, &m);
    if (ok) {
        mutate(m, state);
        writer_init(&w, &c.mem);
        graph_print(&w, m);
        ok = file_write(&c.diags, &c.temps, path, w.data, w.len);
    }
    compiler_free(&c);
    return ok;
}

/* Reads the text alone: after this an error of the verifier is a pass's fault. */
static bool is_read(const char *path)
{
    compiler c;
    compile_options o;
    graph_module *m;
    compiler_setup(&c);
    compile_options_init(&o);
    bool ok = pipeline_load(&c, path, &o, &m);
    compiler_free(&c);
    return ok;
}

static bool is_our_fault(const compiler *c)
{
    for (const diag *d = c->diags.first; d; d = d->next)
        if (d->level == DIAG_ERROR && (d->code == DIAG_VERIFY || d->code == DIAG_INTERNAL))
            return true;
    return c->diags.errors == 0; /* refused without a word */
}

static int compile_model(const job *j, const char *path, uint64_t *state)
{
    static const int levels[] = {3, 3, 3, 2, 1, 0};
    compiler c;
    compile_options o;
    compile_result r;
    compiler_setup(&c);
    compile_options_init(&o);
    o.module_name = arena_printf(&c.mem, "m%" PRIu64, j->number);
    o.target = target_find(j->targets[chance(state, j->n_targets)]);
    o.opt_level = levels[chance(state, sizeof levels / sizeof *levels)];
    o.workers = 1 + chance(state, 3);
    o.verify = true;
    int status;
    if (!pipeline_compile(&c, path, &o, &r))
        status = say_diags(j, &c, is_our_fault(&c) ? "FAILED compile:" : "refused");
    else if (is_large(&r) || is_open(&r))
        status = say(j, "large", "");
    else if (!artifact_write(&c, &r.artifact, arena_printf(&c.mem, "%s/%s", j->out, o.module_name), false) ||
             !write_case(j, &c, &r, *state))
        status = say_diags(j, &c, "FAILED interpret:");
    else
        status = say(j, "package", r.unit.target->cflags);
    compiler_free(&c);
    return status;
}

static int make_one(job *j)
{
    char path[4096];
    struct rlimit limit = {PROCESSOR_SECONDS, PROCESSOR_SECONDS}; /* against hangs, however busy the machine is */
    setrlimit(RLIMIT_CPU, &limit);
    snprintf(path, sizeof path, "%s/m%" PRIu64 ".txt", j->out, j->number);
    uint64_t state = j->number * 0x9e3779b97f4a7c15u;
    if (!write_model(j, &state, path))
        return say(j, "unread", "");
    if (!is_read(path))
        return say(j, "refused", "");
    return compile_model(j, path, &state);
}

static void make_in_child(job *j)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(make_one(j));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        char text[64];
        snprintf(text, sizeof text, "the compiler died, wait status %d", status);
        say(j, "FAILED", text);
    }
}

static const char **read_list(const char *path, uint32_t *out_n)
{
    char line[4096];
    const char **list = NULL;
    FILE *f = fopen(path, "r");
    *out_n = 0;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        list = realloc(list, (*out_n + 1) * sizeof *list);
        list[(*out_n)++] = strdup(line);
    }
    if (f)
        fclose(f);
    return list;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: mutants OUT FIRST COUNT SEEDS TARGET...\n");
        return 2;
    }
    job j = {.out = argv[1], .number = strtoull(argv[2], NULL, 10)};
    uint64_t end = j.number + strtoull(argv[3], NULL, 10);
    j.seeds = read_list(argv[4], &j.n_seeds);
    j.targets = (const char *const *)argv + 5;
    j.n_targets = (uint32_t)argc - 5;
    if (j.n_seeds == 0)
        return 2;
    for (; j.number < end; j.number++)
        make_in_child(&j);
    return 0;
}
