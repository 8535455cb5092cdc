/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of the loop IR (tir/instr.h) as C: the text of the row with its operands in their places, and the
 * helpers that it calls. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"

#include <ctype.h>
#include <string.h>

/* Helpers by row; those of a result in lanes have as many. A row of somebody else's needs none of ours. */
static const struct {
    const char *row;
    c_need need;
} helpers[] = {
    {"dot_u8s8", {.kind = NEED_DOT, .op = TIR_ADD, .dt = DT_U8, .to = DT_I8}},
    {"dot_s8s8", {.kind = NEED_DOT, .op = TIR_ADD, .dt = DT_I8, .to = DT_I8}},
    {"dot_u8s8_pairs", {.kind = NEED_DOT, .op = TIR_MIN, .dt = DT_U8, .to = DT_I8}},
    {"dot_s8s8_pairs", {.kind = NEED_DOT, .op = TIR_MIN, .dt = DT_I8, .to = DT_I8}},
    {"dot_s16s16", {.kind = NEED_DOT, .op = TIR_ADD, .dt = DT_I16, .to = DT_I16}},
    {"dot_u8s8_steps", {.kind = NEED_DOT_STEPS, .dt = DT_U8, .to = DT_I8}},
    {"dot_s8s8_steps", {.kind = NEED_DOT_STEPS, .dt = DT_I8, .to = DT_I8}},
    {"dot_s8u4", {.kind = NEED_DOT_NIBBLES, .dt = DT_I8, .to = DT_I32}},
    {"dot_tile_u8s8", {.kind = NEED_TILE, .dt = DT_U8, .to = DT_I8}},
    {"dot_tile_s8s8", {.kind = NEED_TILE, .dt = DT_I8, .to = DT_I8}},
};

static void add_helpers(c_emit *e, tir_expr_ref x)
{
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (strcmp(helpers[i].row, x->u.row->name) != 0)
            continue;
        c_need need = helpers[i].need;
        need.lanes = tir_instr_gives_value(x->u.row) ? x->type.lanes : 0;
        needs_add(e->needs, need);
    }
}

const char *c_vector_name(c_emit *e, dtype dt, uint32_t lanes)
{
    needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = dt, .lanes = lanes});
    uint32_t bytes = needs_vector_bytes(dt, lanes);
    e->vector_bytes = bytes > e->vector_bytes ? bytes : e->vector_bytes;
    return needs_vector_name(e->tmp, dt, lanes);
}

/* The argument that is called so; NULL: none is. */
static tir_expr_ref named(const tir_instr_form *f, tir_expr_ref x, const char *name)
{
    for (uint32_t i = 0; i < f->n_operands; i++)
        if (strcmp(f->params[tir_instr_param(f->row, i)]->name, name) == 0)
            return x->args[i];
    return tir_instr_arg(x, name);
}

/* A word of the text, which is the name of an argument or stands for itself; behind a symbol "*2" multiplies it. */
static const char *word(c_emit *e, const tir_instr_form *f, tir_expr_ref x, const char **text, c_operand operand)
{
    const char *start = *text, *end = start;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    *text = end;
    const char *name = arena_strndup(e->tmp, start, (size_t)(end - start));
    tir_expr_ref arg = named(f, x, name);
    if (arg && end[0] == '*' && isdigit((unsigned char)end[1])) {
        arg = tir_mul(e->c, arg, tir_int(e->c, arg->type.dt, end[1] - '0'));
        *text = end + 2;
    }
    return arg ? operand(e, arg, false) : name;
}

const char *instr_text(c_emit *e, tir_expr_ref x, c_operand operand)
{
    const tir_instr_form *f = tir_instr_form_of(e->c, x->u.row);
    const char *p = x->u.row->call;
    writer w;
    writer_init(&w, e->tmp);
    while (f && *p) {
        if (p[0] == '$' && p[1] == 'v') {
            w_str(&w, c_vector_name(e, x->type.dt, x->type.lanes));
            p += 2;
        } else if (*p == '&') {
            const char *start = ++p;
            while (isalnum((unsigned char)*p) || *p == '_')
                p++;
            w_str(&w, operand(e, named(f, x, arena_strndup(e->tmp, start, (size_t)(p - start))), true));
        } else if (isalpha((unsigned char)*p)) {
            w_str(&w, word(e, f, x, &p, operand));
        } else {
            w_fmt(&w, "%c", *p++);
        }
    }
    add_helpers(e, x);
    return w.data;
}
