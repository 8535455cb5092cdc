/* SPDX-License-Identifier: Apache-2.0 */
/* The side that measures. A package is built, and its kernels run once. Each result is compared with the first one.
 * Kernels that are right are timed in turns, and the slower half drops out from time to time. A time limit ends this
 * program, so the side that asked notices. Everything that runs here was sent by the other side. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_out.h"
#include "driver/measure.h"
#include "driver/profile.h"

enum { MOST_FILE = 1 << 30, ROUNDS = 15, HALVE_EVERY = 3, KEEP = 4 };
#define TURN      0.002 /* seconds of a candidate's turn */

/* --- what comes in --- */

/* A path below the package's folder. */
static bool is_inside(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    return *path && *path != '/' && !strstr(path, "..") && path[strspn(path, letters)] == '\0';
}

static bool refuse(compiler *c, const char *why)
{
    diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "standard input does not hold a package: %s", why);
    diag_hint(&c->diags, "'lathe tune' calls this command");
    return false;
}

/* "file SIZE PATH", and its bytes. */
static bool take_file(compiler *c, const char *line, const char *dir)
{
    char path[400];
    size_t size = 0;
    if (sscanf(line, "file %zu %399s", &size, path) != 2 || size > MOST_FILE || !is_inside(path))
        return refuse(c, "the line in front of a file is broken");
    uint8_t *bytes = arena_alloc(&c->mem, size + 1, 1);
    const char *place = path_join(&c->mem, dir, path);
    bool ok = fread(bytes, 1, size, stdin) == size || refuse(c, "it ends in the middle of a file");
    return ok && file_make_dirs(&c->diags, path_dir(&c->mem, place)) && compiler_write_file(c, place, bytes, size);
}

/* --- numbers --- */

/* Whether operator `op` of n made what the first one did. */
static bool is_right(const run_model *m, uint32_t op, uint32_t n)
{
    const uint32_t each = m->n_outputs / n;
    for (uint32_t i = 0; i < each; i++)
        if (!measure_agrees(&m->outputs[op * each + i], &m->outputs[i]))
            return false;
    return true;
}

/* --- times --- */

typedef double (*time_fn)(uint32_t op, uint32_t calls);

typedef struct contest {
    uint32_t n; /* operators; the first is no candidate */
    double *best; /* seconds; < 0: wrong */
    bool *is_in;
} contest;

static uint32_t still_in(const contest *x)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < x->n; i++)
        n += x->is_in[i];
    return n;
}

/* The slower half goes, but never the rule's own choice, which the others are compared with. */
static void halve(contest *x)
{
    for (uint32_t go = still_in(x) / 2; go > 0 && still_in(x) > KEEP; go--) {
        uint32_t worst = 0;
        for (uint32_t i = 2; i < x->n; i++)
            if (x->is_in[i] && (worst == 0 || x->best[i] > x->best[worst]))
                worst = i;
        if (worst > 0)
            x->is_in[worst] = false;
    }
}

static void run_contest(contest *x, time_fn time)
{
    for (uint32_t i = 1; i < x->n; i++)
        if (x->is_in[i])
            x->best[i] = time(i, 1);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 1; i < x->n; i++) {
            if (!x->is_in[i])
                continue;
            const double calls = TURN / (x->best[i] + 1e-9), seconds = time(i, calls < 1 ? 1 : (uint32_t)calls);
            x->best[i] = seconds < x->best[i] ? seconds : x->best[i];
        }
        if (r % HALVE_EVERY == HALVE_EVERY - 1)
            halve(x);
    }
}

static bool measure(compiler *c, const char *scratch, run_model *m, contest *x, const char **out_compiler)
{
    time_fn time;
    if (!run_open_package(c, path_join(&c->mem, scratch, "package"), NULL, m))
        return false;
    x->n = m->report->n_operators;
    if (x->n < 2 || m->n_outputs % x->n != 0)
        return refuse(c, "it has no candidates");
    measure_fill(m);
    if (!profile_prepare(c, scratch, 1, m) || !run_build(c, scratch, 1, m) || !run_call(c, m))
        return false;
    void *symbol = dlsym(m->library, "lathe_profile_time");
    if (!symbol || !(*out_compiler = profile_compiler(c, m)))
        return diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "the package was built without its clock");
    memcpy(&time, &symbol, sizeof symbol); /* C has no cast from object to function pointers */
    x->best = arena_array(&c->mem, double, x->n);
    x->is_in = arena_array(&c->mem, bool, x->n);
    for (uint32_t i = 1; i < x->n; i++) {
        x->is_in[i] = is_right(m, i, x->n);
        x->best[i] = x->is_in[i] ? 0 : -1;
    }
    run_contest(x, time);
    return true;
}

/* --- the answer --- */

static void answer(compiler *c, const contest *x, const char *built_by)
{
    writer w;
    writer_init(&w, &c->mem);
    json_out j = json_out_begin(&w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    if (c->diags.errors > 0) {
        json_out_text(&j, "failed", diags_first_error(&c->diags));
    } else {
        json_out_text(&j, "compiler", built_by);
        json_out_array(&j, "seconds");
        for (uint32_t i = 0; i < x->n; i++)
            json_out_real(&j, NULL, x->best[i]);
        json_out_end(&j);
    }
    json_out_end(&j);
    printf("%s\n", w.data);
    (void)fflush(stdout);
}

/* Files up to the line "end", into a folder of their own. */
static bool take_package(compiler *c, const char *dir)
{
    char line[512];
    bool whole = false, ok = file_make_dirs(&c->diags, dir);
    while (ok && !whole && fgets(line, sizeof line, stdin)) {
        whole = strcmp(line, "end\n") == 0;
        ok = whole || take_file(c, line, dir);
    }
    return ok && whole; /* else what follows cannot be told apart */
}

/* One package of candidates, or two of a network, in a context of its own. */
static bool serve_one(compiler *parent, unsigned seconds, bool networks)
{
    compiler c;
    run_model m = {0};
    contest x = {0};
    double times[2] = {-1, -1};
    const char *built_by = "";
    compiler_setup_under(&c, &parent->mem);
    const char *scratch = process_temp_dir(&c);
    bool readable = scratch != NULL;
    if (networks)
        for (uint32_t i = 0; i < 2; i++)
            readable = readable && take_package(&c, arena_printf(&c.mem, "%s/%u/package", scratch, i));
    else
        readable = readable && take_package(&c, path_join(&c.mem, scratch, "package"));
    (void)alarm(seconds);
    if (readable && networks && measure_networks(&c, scratch, times, &built_by))
        x = (contest){.n = 2, .best = times};
    else if (readable && !networks)
        (void)measure(&c, scratch, &m, &x, &built_by);
    (void)alarm(0);
    answer(&c, &x, built_by);
    run_close(&m);
    if (scratch)
        compiler_remove_temp_dir(&c, scratch);
    compiler_free(&c);
    return readable;
}

bool measure_serve(compiler *c)
{
    char line[512];
    unsigned seconds;
    while (fgets(line, sizeof line, stdin)) {
        const bool networks = sscanf(line, "networks %u", &seconds) == 1;
        if (!networks && sscanf(line, "package %u", &seconds) != 1)
            return refuse(c, "it does not begin with 'package'");
        if (!serve_one(c, seconds, networks))
            return false;
    }
    return true;
}
