/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes that are one instruction: bounds, bytes of a table, and bytes twice (../bytes.c). A register has one
 * byte otherwise, and compilers for these processors put no more into it. */
#include "target/cortex_m/units.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/pass/bytes.h"
#include "tir/pass/loop_work.h"
#include "tir/walk.h"

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

/* --- tables in vectors --- */

static tir_stmt *gathered(const tir_selector *x, tir_stmt *loop)
{
    bytes b;
    if (!bytes_read(x, loop, &b))
        return NULL;
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    tir_stmt *out = bytes_steps_by_one(&b, b.at) ? bytes_table(&b, "gathered_bytes_of_table") : NULL;
    tir_bounds_pop(x->bounds);
    return out;
}

/* --- twice --- */

/* Two stores of one byte, whose places are neighbors. */
static bool read_twice(const bytes *b, const tir_stmt *first, const tir_stmt *second)
{
    compiler *c = b->x->c;
    if (first->kind != TIR_STORE || second->kind != TIR_STORE || first->buffer != second->buffer ||
        first->buffer->scope == SCOPE_REG || !bytes_is_byte(first->value) ||
        !tir_expr_equal(first->value, second->value) || !bytes_is_row(b, first->value))
        return false;
    tir_expr_ref at = bytes_at(b, first), next = tir_add(c, at, tir_int(c, at->type.dt, 1));
    return loop_step(b->x, at, b->loop->var) == 2 &&
           tir_expr_equal(tir_simplify(b->x->bounds, next), tir_simplify(b->x->bounds, bytes_at(b, second)));
}

static tir_stmt *twice(const tir_selector *x, tir_stmt *loop)
{
    const tir_stmt *s = loop->body;
    int64_t n = BYTES_LEAST;
    tir_stmt *out = NULL;
    if (loop->for_kind != FOR_SERIAL || s->kind != TIR_SEQ || s->n_stmts != 2 ||
        (tir_is_int(loop->extent, &n) && n < BYTES_LEAST))
        return NULL;
    bytes b = {.x = x, .loop = loop, .into = s->stmts[0]->buffer};
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    const bool first = read_twice(&b, s->stmts[0], s->stmts[1]);
    if (first || read_twice(&b, s->stmts[1], s->stmts[0])) {
        tir_expr_ref row = s->stmts[0]->value;
        b.at = bytes_at(&b, s->stmts[first ? 0 : 1]);
        tir_expr_ref args[] = {bytes_first_stored(&b), bytes_first_of(&b, row), loop->extent};
        out = bytes_call(&b, row->type.dt == DT_I8 ? "bytes_twice" : "bytes_twice_u8", 3, args);
    }
    tir_bounds_pop(x->bounds);
    return out;
}

/* Bounds are extremes of bytes, which words are meant for, too: of what is meant here, tables are left. */
const tir_selection tir_selection_bytes = {
    .fits = cortex_m_has_only_words, .loop = bytes_at_once, .meant_loop = loop_is_table};
const tir_selection tir_selection_gathers = {
    .fits = cortex_m_has_vectors, .loop = gathered, .meant_loop = loop_is_table};
const tir_selection tir_selection_twice = {.fits = cortex_m_has_words, .loop = twice};
