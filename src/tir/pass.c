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

static const char *const default_order =
    "simplify-loops,double-buffer,partition-loops,tensorize,hoist,vectorize,expand-math,unroll,flatten,"
    "simplify-loops,drop-dead-stores,hoist,rewrite-storage";

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

static bool unknown_pass(compiler *c, const char *name, size_t len)
{
    writer w;
    writer_init(&w, &c->mem);
    name = arena_strndup(&c->mem, name, len < 80 ? len : 80);
    (void)diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "unknown loop pass '%s'", name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", rows[i].name);
    diag_hint(&c->diags, "%sloop passes are: %s", nearest_in(name, w.data, &c->mem), w.data);
    return false;
}

static bool run_one(compiler *c, tir_module *m, const pass_row *row)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        tir_func *f = m->funcs.data[i];
        if (!row->run(c, f))
            return false;
        if (!tir_verify(c, f)) {
            diag_hint(&c->diags, "the loop pass %s left it like this", row->name);
            return false;
        }
    }
    return true;
}

bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all, writer *dump)
{
    const char *p = !names ? default_order : strcmp(names, "vta") == 0 ? tir_vta_passes : names;
    while (*p) {
        size_t len = strcspn(p, ",");
        const pass_row *row = find(p, len);
        if (len && !row)
            return unknown_pass(c, p, len);
        if (len && !run_one(c, m, row))
            return false;
        if (len && print_after_all) {
            w_line(dump, "// after %s", row->name);
            tir_print(dump, m);
        }
        p += len + (p[len] == ',');
    }
    for (uint32_t i = 0; !names && i < m->funcs.len; i++)
        m->funcs.data[i]->left.guards = tir_count_guards(m->funcs.data[i]);
    return true;
}

bool tir_pass_simplify(compiler *c, tir_func *f)
{
    f->body = tir_simplify_stmt(c, f->body);
    return true;
}
