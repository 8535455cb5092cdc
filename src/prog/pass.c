/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on programs: what base/pass.h has to know of this level. The order of the rows is the default order. */
#include "base/pass.h"
#include "prog/prog.h"

#include <string.h>

static const pass_row rows[] = {
#define X(id, name, fn, needs, gives, breaks, level, help) {name, help, needs, gives, breaks, level},
    PROG_PASSES(X)
#undef X
};

static const prog_pass_fn functions[] = {
#define X(id, name, fn, needs, gives, breaks, level, help) fn,
    PROG_PASSES(X)
#undef X
};

static const char *const facts[] = {
#define X(id, text) text,
    PROG_FACTS(X)
#undef X
};

static const char default_order[] =
#define X(id, name, fn, needs, gives, breaks, level, help) name ","
    PROG_PASSES(X)
#undef X
    ;

/* Kernels that were read from text have no computation that a schedule could be for: their loops are what they are. */
static bool is_scheduled(const prog_kernel *k)
{
    return k->loops || (!k->func && !k->node);
}

/* What holds of it, of the facts that some pass gives. */
static uint32_t prog_facts(const prog_module *m)
{
    bool all = true;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        all &= is_scheduled(m->kernels.data[i]);
    return all ? PROG_FACT_LOOPS : 0u;
}

static const pass_row *row(uint32_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

static bool run_row(compiler *c, void *ir, uint32_t i, int64_t number, const void *options)
{
    (void)number, (void)options;
    return functions[i](c, ir);
}

static bool verify(compiler *c, const void *ir)
{
    return prog_verify(c, ir);
}

static void print(writer *w, const void *ir)
{
    prog_print(w, ir);
}

const pass_level prog_passes = {.on = "programs",
                                .row = row,
                                .facts = facts,
                                .n_facts = sizeof facts / sizeof *facts,
                                .run = run_row,
                                .verify = verify,
                                .print = print};

bool prog_run_passes(compiler *c, prog_module *m, const char *names, int opt_level, bool print_after_all, writer *dump)
{
    const pass_order order = {.names = names ? names : default_order,
                              .opt_level = names ? PASS_NAMED : opt_level,
                              .holds = prog_facts(m),
                              .verify = true,
                              .print_after_all = print_after_all,
                              .dump = dump};
    return prog_verify(c, m) && pass_run(c, &prog_passes, m, &order);
}
