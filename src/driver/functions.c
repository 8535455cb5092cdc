/* SPDX-License-Identifier: Apache-2.0 */
/* Several signatures of a model become functions of one package. Each is compiled alone, as if the others were not
 * there; then their constants move into one memory, where what is equal lies once. Functions of one package run in one
 * workspace, so none of them may keep anything there between its runs. */
#include "driver/functions.h"

#include <string.h>

/* Options that a package of several functions has no answer for. */
static bool check_options(compiler *c, const compile_options *o)
{
    const struct {
        bool given;
        const char *what;
    } others[] = {{!compile_makes(o, BACKEND_C), "--emit"},
                  {o->as != NULL, "--as"},
                  {o->memories != NULL, "--memory"},
                  {o->offload != NULL, "--offload"},
                  {o->short_names, "--names short"},
                  {o->n_states > 0, "--state"},
                  {o->constants_form == CONSTANTS_BIN, "--constants bin"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!others[i].given)
            continue;
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "%s takes one signature, and %u are given", others[i].what,
                   o->n_signatures);
        diag_hint(&c->diags, "compile each signature alone, with a --module-name of its own: such packages can be "
                             "linked into one program");
        return false;
    }
    return true;
}

/* "default_encode"; NULL after a diagnostic. */
static const char *name_of(compiler *c, const compile_options *o, uint32_t i)
{
    const char *name = arena_printf(&c->mem, "%s_%s", o->module_name,
                                    codegen_c_identifier(&c->mem, o->signatures[i]));
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(codegen_c_identifier(&c->mem, o->signatures[k]), name + strlen(o->module_name) + 1) == 0) {
            diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--signature: '%s' and '%s' have the same name in C",
                       o->signatures[k], o->signatures[i]);
            return NULL;
        }
    return name;
}

static bool check_states(compiler *c, const compile_result *r, const char *signature)
{
    if (!r->unit.func || r->unit.func->n_states == 0)
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "signature '%s' has states, which the other functions of a package would overwrite", signature);
    diag_hint(&c->diags, "compile it alone, with a --module-name of its own");
    return false;
}

static void share(compiler *c, compile_result *const *results, codegen_unit *units, uint32_t n)
{
    const prog_func **funcs = arena_array(&c->mem, const prog_func *, n);
    plan **plans = arena_array(&c->mem, plan *, n);
    for (uint32_t i = 0; i < n; i++) {
        units[i] = results[i]->unit;
        funcs[i] = units[i].func;
        plans[i] = &results[i]->plan;
    }
    plan_share_constants(c, n, funcs, plans);
}

bool functions_compile(compiler *c, const char *path, const compile_options *o, compile_result *out)
{
    const uint32_t n = o->n_signatures;
    compile_result **results = arena_array(&c->mem, compile_result *, n);
    codegen_unit *units = arena_array(&c->mem, codegen_unit, n);
    if (!check_options(c, o))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        compile_options one = *o;
        results[i] = i == 0 ? out : arena_new(&c->mem, compile_result);
        one.signature = o->signatures[i];
        one.n_signatures = 1;
        one.module_name = name_of(c, o, i);
        if (!one.module_name || !pipeline_plan(c, path, &one, results[i]) ||
            !check_states(c, results[i], one.signature))
            return false;
        results[i]->unit.group = o->module_name;
        results[i]->unit.signature = one.signature;
    }
    share(c, results, units, n);
    out->unit = units[0];
    out->units = units;
    out->n_units = n;
    return codegen_c_functions(c, units, n, &out->artifact);
}
