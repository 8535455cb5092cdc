/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes that are one instruction: bounds, and bytes of a table (../bytes.c). A register has one byte
 * otherwise, and compilers for these processors put no more into it. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/pass/bytes.h"
#include "tir/pass/loop_work.h"

/* max(x, least), min(x, most), or both, of neighbors, by constants. */
static bool read_bounds(const bytes *b, tir_expr_ref x, int64_t *least, int64_t *most, tir_expr_ref *out_row)
{
    int64_t v = 0;
    *least = dtype_min_int(x->type.dt);
    *most = dtype_max_int(x->type.dt);
    while (x->kind == TIR_BINOP && (x->op == TIR_MAX || x->op == TIR_MIN)) {
        const bool second = tir_is_int(x->args[1], &v);
        if (!second && !tir_is_int(x->args[0], &v))
            return false;
        v = v < *least ? *least : v > *most ? *most : v; /* what is behind it has its way */
        *(x->op == TIR_MAX ? least : most) = v;
        x = x->args[second ? 0 : 1];
    }
    *out_row = x;
    return bytes_is_row(b, x);
}

static tir_stmt *bounds_of(const bytes *b)
{
    compiler *c = b->x->c;
    tir_expr_ref x = b->loop->body->value, row;
    const dtype dt = x->type.dt;
    int64_t least, most;
    if (!bytes_is_byte(x) || !read_bounds(b, x, &least, &most, &row) ||
        (least == dtype_min_int(dt) && most == dtype_max_int(dt)))
        return NULL;
    tir_expr_ref args[] = {bytes_first_stored(b), bytes_first_of(b, row), b->loop->extent, tir_int(c, DT_I32, least),
                           tir_int(c, DT_I32, most)};
    const bool above = most == dtype_max_int(dt);
    const char *end = dt == DT_I8 ? "" : "_u8";
    const char *name = arena_printf(&c->mem, "%s%s", above ? "bytes_above" : "bytes_between", end);
    return bytes_call(b, name, above ? 4 : 5, args);
}

static tir_stmt *bytes_at_once(const tir_selector *x, tir_stmt *loop)
{
    bytes b;
    tir_stmt *out = NULL;
    if (!bytes_read(x, loop, &b))
        return NULL;
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    if (bytes_steps_by_one(&b, b.at)) {
        out = bounds_of(&b);
        out = out ? out : bytes_table(&b, "bytes_of_table");
    }
    tir_bounds_pop(x->bounds);
    return out;
}

/* Bounds are extremes of bytes, which words are meant for, too: of what is meant here, tables are left. */
const tir_selection tir_selection_bytes = {
    .fits = cortex_m_has_only_words, .loop = bytes_at_once, .meant_loop = loop_is_table};
