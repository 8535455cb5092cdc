/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on loops: the default orders, lists with some left out, and what base/pass.h has to know of this level. */
#include "base/ptr_map.h"
#include "tir/facts.h"
#include "tir/family.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/text.h"
#include "tir/tir.h"
#include "tir/verify.h"
#include "tir/walk.h"

#include <inttypes.h>
#include <string.h>

static const tir_pass_row rows[] = {
#define X(id, name, fn, needs, gives, breaks, help) {{name, help, needs, gives, breaks, 0}, fn, NULL},
    TIR_PASSES(X)
#undef X
};

static const char *const facts[] = {
#define X(id, text) text,
    TIR_FACTS(X)
#undef X
};

const char *const tir_default_passes =
    "simplify-loops,double-buffer,partition-loops,tensorize,hoist,vectorize,round-in-lanes,expand-math,unroll,flatten,"
    "simplify-loops,drop-dead-stores,begin-sums,join-runs,hoist,unswitch-loops,drop-dead-stores,join-checks,"
    "rewrite-storage,narrow-indices,name-quotients";

const char *const tir_plain_passes =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,reuse-in-place";
static const tir_loops *const devices[] = {
#define TARGET_LOOPS(name) &tir_loops_##name,
#include "target/targets.def"
    NULL};

/* Those of all processors, then those of each device. */
static const tir_pass_row *row_at(uint32_t i)
{
    if (i < sizeof rows / sizeof *rows)
        return &rows[i];
    i -= (uint32_t)(sizeof rows / sizeof *rows);
    for (const tir_loops *const *d = devices; *d; i -= (*d)->n + ((*d)->flags != NULL), d++)
        if (i < (*d)->n)
            return &(*d)->passes[i];
        else if (i == (*d)->n && (*d)->flags)
            return (*d)->flags;
    return NULL;
}

typedef struct looking {
    ptr_map params; /* of the function */
    bool flat;
} looking;

static void look_at(looking *k, const tir_buffer *b, uint32_t n_indices)
{
    uint32_t place;
    k->flat &= n_indices == 1 || ptr_map_get(&k->params, b, &place);
}

static void look_at_store(void *ctx, tir_stmt *s)
{
    if (s->kind == TIR_STORE)
        look_at(ctx, s->buffer, s->n_indices);
}

static void look_at_access(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_LOAD || (e->kind == TIR_ADDRESS && e->n_args > 0))
        look_at(ctx, e->u.buffer, e->n_args);
}

uint32_t tir_facts(const tir_module *m)
{
    looking k = {.flat = true};
    for (uint32_t i = 0; i < m->funcs.len && k.flat; i++) {
        const tir_func *f = m->funcs.data[i];
        ptr_map_init(&k.params, &m->c->mem);
        for (uint32_t p = 0; p < f->n_params; p++)
            ptr_map_set(&k.params, f->params[p], p);
        tir_visit_stmt(f->body, look_at_store, look_at_access, &k);
    }
    return k.flat ? TIR_FACT_FLAT : 0u;
}

static const pass_row *row(uint32_t i)
{
    const tir_pass_row *r = row_at(i);
    return r ? &r->row : NULL;
}

static bool run_row(compiler *c, void *ir, uint32_t i, int64_t number, const void *options)
{
    const tir_module *m = ir;
    const tir_pass_row *r = row_at(i);
    bool ok = true;
    (void)options;
    for (uint32_t k = 0; ok && k < m->funcs.len; k++)
        ok = r->run ? r->run(c, m->funcs.data[k]) : r->run_numbered(c, m->funcs.data[k], number);
    return ok;
}

static bool verify(compiler *c, const void *ir)
{
    const tir_module *m = ir;
    bool ok = true;
    for (uint32_t i = 0; ok && i < m->funcs.len; i++)
        ok = tir_verify(c, m->funcs.data[i]);
    return ok;
}

static void print(writer *w, const void *ir)
{
    tir_print(w, ir);
}

const pass_level tir_passes = {.on = "loops",
                               .row = row,
                               .facts = facts,
                               .n_facts = sizeof facts / sizeof *facts,
                               .run = run_row,
                               .verify = verify,
                               .print = print};

const char *tir_device_passes(const char *device)
{
    for (const tir_loops *const *d = devices; *d; d++)
        if (strcmp((*d)->name, device) == 0)
            return (*d)->order;
    return NULL;
}

static const char *expanded(const char *names)
{
    const char *order = names ? tir_device_passes(names) : tir_default_passes;
    return order ? order : names;
}

bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump)
{
    const pass_order order = {.names = expanded(names),
                              .opt_level = PASS_NAMED,
                              .holds = tir_facts(m),
                              .verify = true,
                              .print_after_all = print_after_all,
                              .dump = dump};
    if (!pass_run(c, &tir_passes, m, &order))
        return false;
    for (uint32_t i = 0; !names && i < m->funcs.len; i++)
        tir_count_left(c, m->funcs.data[i]);
    return true;
}

/* --- pragmas --- */

/* Of all processors, then of each device; NULL behind the last. */
static const tir_pragma *pragma_at(uint32_t i)
{
#define X(key) {#key, false},
    static const tir_pragma own[] = {TIR_PRAGMAS(X)};
#undef X
    if (i < sizeof own / sizeof *own)
        return &own[i];
    i -= (uint32_t)(sizeof own / sizeof *own);
    for (const tir_loops *const *d = devices; *d; d++)
        for (const tir_pragma *p = (*d)->pragmas; p && p->key; p++)
            if (i-- == 0)
                return p;
    return NULL;
}

static const tir_pragma *find_pragma(const char *key)
{
    const tir_pragma *p;
    for (uint32_t i = 0; (p = pragma_at(i)) && strcmp(p->key, key) != 0;)
        i++;
    return p;
}

bool tir_is_pragma(const char *key)
{
    return find_pragma(key) != NULL;
}

bool tir_pragma_is_whole(const char *annotation)
{
    const size_t n = sizeof "pragma_" - 1;
    const tir_pragma *p = strncmp(annotation, "pragma_", n) == 0 ? find_pragma(annotation + n) : NULL;
    return p && p->is_whole;
}

const char *tir_pragmas(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    const tir_pragma *p;
    for (uint32_t i = 0; (p = pragma_at(i)); i++)
        w_fmt(&w, " %s", p->key);
    return w.data;
}

/* --- build configurations --- */

static bool is_among(const char *list, const char *name, size_t len)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == len && strncmp(list, name, len) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static bool check_disabled(compiler *c, const char *all, const char *disabled)
{
    while (disabled && *disabled) {
        size_t n = strcspn(disabled, ",");
        if (n && pass_find(&tir_passes, disabled, n, NULL) == UINT32_MAX)
            return pass_unknown(c, &tir_passes, disabled, n);
        if (n && !is_among(all, disabled, n)) {
            diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the pass '%.*s' is not among those that would run",
                       (int)n, disabled);
            diag_hint(&c->diags, "these are: %s", all);
            return false;
        }
        disabled += n + (disabled[n] == ',');
    }
    return true;
}

/* The one device whose passes take flags. */
static const tir_loops *device_with_flags(void)
{
    const tir_loops *const *d = devices;
    while (*d && !(*d)->flags)
        d++;
    return *d;
}

/* "NAME(N)" with the number in its place. */
static void put_flags(writer *w, const tir_loops *device, int64_t flags)
{
    const char *name = device->flags->row.name;
    w_fmt(w, "%s%.*s%" PRId64 ")", w->len ? "," : "", (int)(strlen(name) - strlen("N)")), name, flags);
}

bool tir_build_config_passes(compiler *c, const tir_build_config *b, const char **out)
{
    const tir_loops *device = b->flags != 0 ? device_with_flags() : NULL;
    const char *all = expanded(b->passes);
    writer w;
    *out = NULL;
    if (!check_disabled(c, all, b->disabled))
        return false;
    writer_init(&w, &c->mem);
    for (const char *p = all; *p;) {
        size_t len = strcspn(p, ",");
        if (len && !is_among(b->disabled, p, len))
            w_fmt(&w, "%s%.*s", w.len ? "," : "", (int)len, p);
        if (device && len == strlen(device->flags_after) && strncmp(p, device->flags_after, len) == 0) {
            put_flags(&w, device, b->flags);
            device = NULL;
        }
        p += len + (p[len] == ',');
    }
    if (device)
        put_flags(&w, device, b->flags);
    *out = w.len ? w.data : "";
    return true;
}

bool tir_pass_simplify(compiler *c, tir_func *f)
{
    f->body = tir_simplify_stmt(c, f->body);
    return true;
}
