/* SPDX-License-Identifier: Apache-2.0 */
/* What executing and writing share: the buffers of a lowered function, and errors of the library as diagnostics. */
#include "target/vta/code/vta_code.h"
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/walk.h"

#include <string.h>

bool vta_code_is_call_itself(tir_expr_ref e)
{
    return e->kind == TIR_EXTERN && e->type.dt != DT_STRING &&
           (strncmp(e->u.name, "tir.vta.", 8) == 0 || strncmp(e->u.name, "VTA", 3) == 0);
}

static void find_call(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= vta_code_is_call_itself(e);
}

bool vta_code_is_call(tir_expr_ref e)
{
    bool found = false;
    tir_visit_expr(e, find_call, &found);
    return found;
}

bool vta_code_on_device(const tir_func *f)
{
    bool found = false;
    tir_visit_stmt(f->body, NULL, find_call, &found);
    return found;
}

uint32_t vta_code_buffers(compiler *c, const tir_func *f, const tir_buffer *const **out)
{
    const tir_scratch *scratch = NULL;
    uint32_t n = tir_find_scratch(c, f, &scratch);
    const tir_buffer **all = arena_array(&c->mem, const tir_buffer *, f->n_params + n + 1u);
    for (uint32_t i = 0; i < f->n_params; i++)
        all[i] = f->params[i];
    for (uint32_t i = 0; i < n; i++)
        all[f->n_params + i] = scratch[i].buffer;
    *out = all;
    return f->n_params + n;
}

size_t vta_code_bytes(const tir_buffer *b)
{
    int64_t count = tir_buffer_count(b);
    return count > 0 ? (size_t)count * dtype_bytes(b->dt) : 0;
}

static diag_code code_of(vta_status s)
{
    switch (s) {
    case VTA_BAD_TEXT:
    case VTA_BAD_FIELD:
    case VTA_BAD_CONFIG: return DIAG_SYNTAX;
    case VTA_UNSUPPORTED: return DIAG_UNSUPPORTED;
    case VTA_NO_MEMORY: return DIAG_ENVIRONMENT;
    case VTA_IO: return DIAG_IO;
    case VTA_OK:
    case VTA_BAD_ARGUMENT:
    case VTA_BAD_HANDLE:
    case VTA_BAD_STATE:
    case VTA_FAULT:
    case VTA_DEADLOCK:
    case VTA_TIMEOUT: break;
    }
    return DIAG_DATA;
}

bool vta_code_report(compiler *c, const vta_error *e)
{
    if (!*e->text)
        return false; /* the program's end says that a reason is missing */
    return diag_error(&c->diags, code_of(e->status), src_loc_none(), "%s", e->text);
}

void vta_code_print_prototype(writer *w, const tir_func *f, const char *name, bool capture)
{
    w_fmt(w, "int32_t %s(", name);
    if (capture)
        w_str(w, "vta_device *device, const vta_memory *scratch, const vta_memory *buffers,\n    vta_error *error");
    for (uint32_t i = 0; i < f->n_params && !capture; i++)
        w_fmt(w, "%svoid *b%u", i ? ", " : "", i);
    w_str(w, f->n_params == 0 && !capture ? "void)" : ")");
}
