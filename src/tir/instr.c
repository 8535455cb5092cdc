/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as nodes: what a row's texts say about them, and what makes one wrong. */
#include "tir/instr.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/parse.h"
#include "tir/walk.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

tir_expr_ref tir_instr_arg(tir_expr_ref e, const char *symbol)
{
    assert(e->kind == TIR_INSTR);
    for (uint32_t i = tir_instr_operands(e->u.row); i < tir_instr_args(e->u.row); i++)
        if (strcmp(tir_instr_symbol(e->u.row, i)->name, symbol) == 0)
            return e->args[i];
    return NULL;
}

/* --- forms --- */

typedef struct self_search {
    const tir_buffer *b;
    bool found;
} self_search;

static void search_self(void *ctx, tir_expr_ref e)
{
    self_search *s = ctx;
    s->found |= e->kind == TIR_LOAD && e->u.buffer == s->b;
}

typedef struct store_scan {
    uint32_t updates;
} store_scan;

static bool is_update(tir_stmt *store)
{
    self_search s = {store->buffer, false};
    tir_visit_expr(store->value, search_self, &s);
    return s.found;
}

static void scan_store(void *ctx, tir_stmt *s)
{
    store_scan *n = ctx;
    n->updates += s->kind == TIR_STORE && is_update(s);
}

static tir_stmt *drop_identity(tir_rewriter *r, tir_stmt *s)
{
    return s->kind == TIR_STORE && !is_update(s) ? tir_seq(r->c, 0, NULL) : s;
}

static tir_func *without_identity(compiler *c, const tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = drop_identity};
    tir_func *out = arena_copy(&c->mem, f, sizeof *f, _Alignof(tir_func));
    out->body = tir_rewrite_stmt(&r, f->body);
    return out;
}

static tir_func *read_nest(compiler *c, const tir_instr_form *f, const char *text)
{
    parser_name names[TIR_INTRIN_SYMBOLS];
    for (uint32_t i = 0; i < f->row->n_symbols; i++)
        names[i] = (parser_name){f->row->symbols[i].name, f->symbols[i], NULL};
    return parse_function_over(c, f->row->name, text, f->row->n_symbols, names);
}

/* Elements of an operand where the first symbol is n; -1: other symbols decide, too. */
static int64_t elements(compiler *c, const tir_instr_form *f, const tir_buffer *b, int64_t n)
{
    int64_t all = 1, extent;
    tir_expr_ref value = tir_i64(c, n);
    for (uint32_t i = 0; i < b->rank; i++) {
        tir_expr_ref e = f->row->n_symbols ? tir_substitute(c, b->shape[i], 1, f->symbols, &value) : b->shape[i];
        if (!tir_is_int(e, &extent) || !i64_mul(all, extent, &all))
            return -1;
    }
    return all;
}

static bool measure(compiler *c, tir_instr_form *f)
{
    for (uint32_t i = 0; i < f->n_operands; i++) {
        if (f->row->passed[i] == 'a')
            continue;
        const tir_buffer *b = f->params[i];
        int64_t one = elements(c, f, b, 1), two = elements(c, f, b, 2);
        if (one < 1 || two < one || b->strides || b->offset)
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                              "intrinsic %s: operand %s cannot be passed by value: its elements are not one behind the "
                              "other, or not counted by the first symbol",
                              f->row->name, b->name);
        f->per_lane[i] = (uint32_t)(two - one);
        f->fixed[i] = (uint32_t)(2 * one - two);
    }
    return true;
}

/* Whether the hardware has an instruction for this part. */
static bool is_instruction(const char *code)
{
    return code && strcmp(code, TIR_INSTRUCTION) == 0;
}

static bool read_form(compiler *c, tir_instr_form *f)
{
    const tir_intrin *row = f->row;
    store_scan n = {0};
    if (!tir_intrin_is_instr(row) || !row->nest)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "intrinsic %s is not an instruction", row->name);
    for (uint32_t i = 0; i < row->n_symbols; i++)
        f->symbols[i] = tir_new_var(c, row->symbols[i].name, TIR_I64);
    tir_func *nest = read_nest(c, f, row->does ? row->does : row->nest);
    if (!nest)
        return false;
    tir_visit_stmt(nest->body, scan_store, NULL, &n);
    f->n_operands = nest->n_params;
    f->params = nest->params;
    f->update = n.updates && is_instruction(row->update) ? without_identity(c, nest) : NULL;
    f->whole = is_instruction(row->body) && tir_instr_gives_value(row) == tir_instr_makes_value(row) ? nest : NULL;
    if (nest->n_params != tir_instr_params(row) || nest->n_params > TIR_INTRIN_OPERANDS ||
        nest->n_inputs + 1 != nest->n_params || (!f->update && !f->whole))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "intrinsic %s: its nest must have one result, the operands that `passed` tells of, and a "
                          "part that is an instruction",
                          row->name);
    if (!measure(c, f))
        return false;
    const uint32_t p = f->n_operands - 1;
    const uint32_t lanes = row->lanes ? row->lanes : 1;
    return !tir_instr_makes_value(row) ||
           (f->params[p]->dt == row->makes && f->fixed[p] == lanes && f->per_lane[p] == 0) ||
           diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                      "intrinsic %s: it makes no value of %u numbers of the type %s", row->name, lanes,
                      dtype_full_name(row->makes));
}

const tir_instr_form *tir_instr_form_of(compiler *c, const tir_intrin *row)
{
    const tir_instr_form *known = tir_known_form(c, row);
    if (known)
        return known;
    tir_instr_form *f = arena_new(&c->mem, tir_instr_form);
    *f = (tir_instr_form){.row = row};
    if (!read_form(c, f))
        return NULL;
    tir_keep_form(c, f);
    return f;
}

int64_t tir_instr_elements(compiler *c, tir_expr_ref e, uint32_t param)
{
    const tir_instr_form *f = tir_instr_form_of(c, e->u.row);
    const tir_buffer *b = f->params[param];
    int64_t all = 1, extent;
    for (uint32_t i = 0; i < b->rank; i++) {
        tir_expr_ref n = b->shape[i];
        for (uint32_t k = tir_instr_operands(f->row); k < tir_instr_args(f->row); k++) {
            const tir_var *const *symbol = &f->symbols[tir_instr_symbol(f->row, k) - f->row->symbols];
            tir_expr_ref value = tir_cast(c, DT_I64, e->args[k]);
            n = tir_substitute(c, n, 1, symbol, &value);
        }
        if (!tir_is_int(n, &extent) || !i64_mul(all, extent, &all))
            return -1;
    }
    return all;
}

int64_t tir_instr_units(const tir_instr_form *f, uint32_t lanes)
{
    const uint32_t p = f->n_operands - 1;
    return f->per_lane[p] ? ((int64_t)lanes - f->fixed[p]) / f->per_lane[p] : 0;
}

/* --- nodes --- */

static const char *type_text(compiler *c, tir_type t)
{
    return t.lanes > 1 ? arena_printf(&c->mem, "%sx%u", dtype_full_name(t.dt), t.lanes) : dtype_full_name(t.dt);
}

static bool is_run(tir_expr_ref e)
{
    tir_expr_ref last = e->kind == TIR_LOAD && e->n_args > 0 ? e->args[e->n_args - 1] : NULL;
    for (uint32_t i = 0; last && i + 1 < e->n_args; i++)
        last = e->args[i]->type.lanes == 1 ? last : NULL;
    return last && last->kind == TIR_RAMP && tir_is_const(last->args[1], 1);
}

/* `have` as operand i of an instruction whose result has so many lanes. */
static const char *fault_of_operand(compiler *c, const tir_instr_form *f, tir_expr_ref have, uint32_t result,
                                    uint32_t i)
{
    const uint32_t p = tir_instr_param(f->row, i);
    const tir_buffer *want = f->params[p];
    if (tir_instr_by_address(f->row, i)) {
        if (have->kind == TIR_ADDRESS && have->u.buffer->dt == want->dt)
            return NULL;
        return arena_printf(&c->mem, "operand %s of %s is the address of an element of %s", want->name, f->row->name,
                            dtype_full_name(want->dt));
    }
    const int64_t lanes = f->fixed[p] + f->per_lane[p] * tir_instr_units(f, result);
    const tir_type needed = {want->dt, (uint16_t)lanes};
    if (lanes <= (int64_t)TIR_MAX_LANES && have->type.dt == needed.dt && have->type.lanes == needed.lanes)
        return !tir_instr_in_memory(f->row, i) || is_run(have)
                   ? NULL
                   : arena_printf(&c->mem, "operand %s of %s is not a run of elements in memory", want->name,
                                  f->row->name);
    return arena_printf(&c->mem, "operand %s of %s is %s here, not %s", want->name, f->row->name,
                        type_text(c, have->type),
                        lanes <= (int64_t)TIR_MAX_LANES ? type_text(c, needed) : "as many as it needs");
}

static const char *fault_of_number(compiler *c, const tir_intrin *row, const tir_intrin_symbol *s, tir_expr_ref e)
{
    int64_t v = 0;
    if ((!dtype_is_int(e->type.dt) && e->type.dt != DT_BOOL) || e->type.lanes > 1)
        return arena_printf(&c->mem, "%s of %s is a whole number", s->name, row->name);
    if (!tir_is_int(e, &v) || (s->max == 0 && (s->multiple == 0 || v % s->multiple == 0)) ||
        (s->max > 0 && v >= s->min && v <= s->max && v % s->multiple == 0))
        return NULL;
    if (s->max == 0)
        return arena_printf(&c->mem, "%s of %s is a multiple of %" PRId64, s->name, row->name, s->multiple);
    return arena_printf(&c->mem, "%s of %s is %" PRId64 " to %" PRId64 " in steps of %" PRId64, s->name, row->name,
                        s->min, s->max, s->multiple);
}

/* Of the result's lanes. */
static const char *fault_of_lanes(compiler *c, const tir_instr_form *f, uint32_t lanes)
{
    const tir_intrin_symbol *s = &f->row->symbols[0];
    const uint32_t p = f->n_operands - 1;
    const int64_t units = tir_instr_units(f, lanes);
    const bool whole = f->fixed[p] + f->per_lane[p] * units == lanes;
    if (whole && (f->row->n_symbols == 0 || (units >= 1 && units <= s->max)) &&
        (f->row->lanes == 0 || f->row->lanes == lanes))
        return NULL;
    return arena_printf(&c->mem, "%s gives no vector of %u lanes", f->row->name, lanes);
}

const char *tir_instr_fault(compiler *c, tir_expr_ref e)
{
    const tir_instr_form *f = tir_instr_form_of(c, e->u.row);
    if (!f)
        return "its row is not an instruction";
    const uint32_t want = tir_instr_args(f->row);
    const bool counted = e->n_args == want || (f->row->runs && e->n_args > want && e->op == TIR_ADD);
    const char *why = !counted ? arena_printf(&c->mem, "%s takes %u arguments", f->row->name, want)
                      : e->op == TIR_ADD && !f->update ? arena_printf(&c->mem, "%s adds to nothing", f->row->name)
                      : e->op != TIR_ADD && !f->whole
                          ? arena_printf(&c->mem, "%s only adds to its result: write %s.update", f->row->name,
                                         f->row->name)
                      : !tir_instr_makes_value(f->row) && tir_instr_gives_value(f->row)
                          ? fault_of_lanes(c, f, e->type.lanes)
                                                      : NULL;
    for (uint32_t i = 0; i < e->n_args && !why; i++)
        why = i < tir_instr_operands(f->row) ? fault_of_operand(c, f, e->args[i], e->type.lanes, i)
              : i < want        ? fault_of_number(c, f->row, tir_instr_symbol(f->row, i), e->args[i])
                                : fault_of_operand(c, f, e->args[i], e->type.lanes, 1);
    const tir_type result = tir_instr_type(f->row, e->n_args, e->args);
    if (!why && (e->type.dt != result.dt || e->type.lanes != result.lanes))
        why = arena_printf(&c->mem, "%s gives %s", f->row->name, type_text(c, result));
    return why;
}
