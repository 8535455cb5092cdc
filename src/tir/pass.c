/* SPDX-License-Identifier: Apache-2.0 */
/* The pass driver: passes are rows of TIR_PASSES; it runs the ones named, verifies after each, and prints when asked.
 */
#include "base/nearest.h"
#include "tir/facts.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/text.h"
#include "tir/tir.h"
#include "tir/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct pass_row {
    const char *name;
    tir_pass_fn run;
    const char *help;
} pass_row;

static const pass_row rows[] = {
#define X(id, name, fn, help) {name, fn, help},
    TIR_PASSES(X)
#undef X
};

static const struct {
    const char *name;
    bool (*run)(compiler *c, tir_func *f, int64_t n);
} numbered[] = {
#define X(name, fn, help) {name, fn},
    TIR_NUMBERED_PASSES(X)
#undef X
};

static const char *const default_order =
    "simplify-loops,double-buffer,partition-loops,tensorize,hoist,vectorize,round-in-lanes,expand-math,unroll,flatten,"
    "simplify-loops,drop-dead-stores,begin-sums,join-runs,hoist,unswitch-loops,drop-dead-stores,rewrite-storage,"
    "narrow-indices,name-quotients";

const char *const tir_plain_passes =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,reuse-in-place";
const char *const tir_vta_passes =
    "simplify-loops,double-buffer,partition-loops,tensorize,flatten,simplify-loops,"
    "InjectConv2DTransposeSkip,unroll,"
    "InjectDMAIntrin,InjectSkipCopy,AnnotateALUCoProcScope,LiftAttrScope(coproc_uop_scope),LiftAllocToScopeBegin,"
    "LiftAttrScope(coproc_scope),InjectCoProcSync,EarlyRewrite,"
    "InjectVirtualThread,StorageRewrite,simplify-loops,"
    "InjectALUIntrin,"
    "LowerDeviceStorageAccessInfo,FoldUopLoop,CPUAccessRewrite,simplify-loops";

static const pass_row *find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

/* A pass with a number, and the number; -1: `name` is none. */
static int find_numbered(const char *name, size_t len, int64_t *out)
{
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        size_t n = strlen(numbered[i].name);
        char *end;
        if (len < n + 3 || strncmp(numbered[i].name, name, n) != 0 || name[n] != '(')
            continue;
        *out = strtoll(name + n + 1, &end, 10);
        if (end == name + len - 1 && *end == ')' && *out >= 0 && *out <= INT32_MAX)
            return (int)i;
    }
    return -1;
}

static bool unknown_pass(compiler *c, const char *name, size_t len)
{
    writer w;
    writer_init(&w, &c->mem);
    name = arena_strndup(&c->mem, name, len < 80 ? len : 80);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "unknown loop pass '%s'", name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", rows[i].name);
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++)
        w_fmt(&w, ", %s(N)", numbered[i].name);
    diag_hint(&c->diags, "%sloop passes are: %s", nearest_in(name, w.data, &c->mem), w.data);
    return false;
}

static bool run_one(compiler *c, tir_module *m, const char *name, size_t len)
{
    int64_t number = 0;
    const pass_row *row = find(name, len);
    int k = row ? -1 : find_numbered(name, len, &number);
    if (!row && k < 0)
        return unknown_pass(c, name, len);
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        tir_func *f = m->funcs.data[i];
        if (!(row ? row->run(c, f) : numbered[k].run(c, f, number)))
            return false;
        if (!tir_verify(c, f)) {
            diag_hint(&c->diags, "this is what the loop pass %.*s made", (int)len, name);
            return false;
        }
    }
    return true;
}

static const char *expanded(const char *names)
{
    return !names ? default_order : strcmp(names, "vta") == 0 ? tir_vta_passes : names;
}

bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump)
{
    const char *p = expanded(names);
    while (*p) {
        size_t len = strcspn(p, ",");
        if (len && !run_one(c, m, p, len))
            return false;
        if (len && print_after_all) {
            w_line(dump, "// after %.*s", (int)len, p);
            tir_print(dump, m);
        }
        p += len + (p[len] == ',');
    }
    for (uint32_t i = 0; !names && i < m->funcs.len; i++)
        tir_count_left(c, m->funcs.data[i]);
    return true;
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
        if (n && !find(disabled, n))
            return unknown_pass(c, disabled, n);
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

bool tir_build_config_passes(compiler *c, const tir_build_config *b, const char **out)
{
    static const char after[] = "EarlyRewrite";
    const char *all = expanded(b->passes);
    bool pending = b->debug_flag != 0;
    writer w;
    *out = NULL;
    if (!check_disabled(c, all, b->disabled))
        return false;
    writer_init(&w, &c->mem);
    for (const char *p = all; *p;) {
        size_t len = strcspn(p, ",");
        if (len && !is_among(b->disabled, p, len))
            w_fmt(&w, "%s%.*s", w.len ? "," : "", (int)len, p);
        if (pending && len == strlen(after) && strncmp(p, after, len) == 0) {
            w_fmt(&w, ",SetDebugMode(%" PRId64 ")", b->debug_flag);
            pending = false;
        }
        p += len + (p[len] == ',');
    }
    if (pending)
        w_fmt(&w, "%sSetDebugMode(%" PRId64 ")", w.len ? "," : "", b->debug_flag);
    *out = w.len ? w.data : "";
    return true;
}

bool tir_pass_simplify(compiler *c, tir_func *f)
{
    f->body = tir_simplify_stmt(c, f->body);
    return true;
}
