/* SPDX-License-Identifier: Apache-2.0 */
/* How large the static data of a package is, the workspace and the tensors of main.c, and whether code reaches it. */
#include "codegen/c/package.h"

#define CODE_BYTES ((uint64_t)1 << 24) /* beside the data, at most */

/* Bytes that code of the usual model reaches. */
static uint64_t reach(const target *t)
{
    return ((uint64_t)1 << (t->reach_bits ? t->reach_bits : 31)) - CODE_BYTES;
}

static uint64_t static_bytes(const package *p)
{
    return p->pl->workspace_bytes + package_caller_bytes(p->pl->problem);
}

const char *package_target_flags(const package *p)
{
    const target *t = p->u->target;
    bool medium = t->has_medium && static_bytes(p) + p->pl->constant_bytes > reach(t);
    return medium ? arena_printf(&p->c->mem, "%s -mcmodel=medium", t->cflags) : t->cflags;
}

bool package_check_static(const package *p)
{
    const target *t = p->u->target;
    uint64_t constants = p->constants_form == CONSTANTS_BIN ? 0 : p->pl->constant_bytes;
    if (constants > reach(t)) {
        diag_error(&p->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                   "%llu bytes of constants are more than the code of a package reaches",
                   (unsigned long long)constants);
        diag_hint(&p->c->diags, "--constants bin leaves them to the program, which hands over their file's bytes");
        return false;
    }
    if (t->has_medium || static_bytes(p) + constants <= reach(t))
        return true;
    diag_error(&p->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "workspace, inputs and outputs have %llu bytes; static data of code for %s has at most %llu",
               (unsigned long long)(static_bytes(p) + constants), t->name, (unsigned long long)reach(t));
    diag_hint(&p->c->diags, "give smaller extents or bounds (--dim); a module allocates its memory: --emit module");
    return false;
}
