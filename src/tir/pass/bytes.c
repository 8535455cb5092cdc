/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over bytes: what is in step with them, and tables, which processors with vectors look up in parts. */
#include "tir/pass/bytes.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/pass/loop_work.h"
#include "tir/tables.h"
#include "tir/walk.h"
#include "type/target.h"

#define PLACES 256 /* of a table, that a byte can say */

/* --- what is in step with the loop --- */

bool bytes_is_byte(tir_expr_ref x)
{
    return dtype_is_byte(x->type.dt) && x->type.lanes == 1;
}

tir_expr_ref bytes_flat(const bytes *b, tir_expr_ref load)
{
    return tir_select_flat(b->x, load->u.buffer, load->n_args, load->args);
}

tir_expr_ref bytes_at(const bytes *b, const tir_stmt *store)
{
    return tir_select_flat(b->x, store->buffer, store->n_indices, store->indices);
}

bool bytes_steps_by_one(const bytes *b, tir_expr_ref at)
{
    return at->type.lanes == 1 && loop_step(b->x, at, b->loop->var) == 1;
}

bool bytes_is_row(const bytes *b, tir_expr_ref x)
{
    if (x->kind != TIR_LOAD || !bytes_is_byte(x) || x->u.buffer->scope == SCOPE_REG)
        return false;
    tir_expr_ref at = bytes_flat(b, x);
    return (x->u.buffer != b->into || (b->at && tir_expr_equal(at, b->at))) && bytes_steps_by_one(b, at);
}

/* The element of that index in the loop's first iteration. */
static tir_expr_ref first(const bytes *b, const tir_buffer *buffer, tir_expr_ref at)
{
    at = tir_substitute(b->x->c, at, 1, &b->loop->var, &b->loop->min);
    return tir_address(b->x->c, buffer, 1, &at);
}

tir_expr_ref bytes_first_of(const bytes *b, tir_expr_ref row)
{
    return first(b, row->u.buffer, bytes_flat(b, row));
}

tir_expr_ref bytes_first_stored(const bytes *b)
{
    return first(b, b->into, b->at);
}

tir_stmt *bytes_call(const bytes *b, const char *name, uint32_t n, tir_expr_ref const *args)
{
    return tir_evaluate(b->x->c, tir_select_instr(b->x->c, name, n, args));
}

bool bytes_read(const tir_selector *x, tir_stmt *loop, bytes *out)
{
    tir_stmt *s = loop->body;
    int64_t n = BYTES_LEAST;
    *out = (bytes){.x = x, .loop = loop, .into = s->buffer};
    if (loop->for_kind != FOR_SERIAL || s->kind != TIR_STORE || (tir_is_int(loop->extent, &n) && n < BYTES_LEAST) ||
        (s->buffer->dt != DT_I8 && s->buffer->dt != DT_U8) || s->buffer->scope == SCOPE_REG)
        return false;
    out->at = bytes_at(out, s);
    return true;
}

/* --- tables --- */

/* The byte at the place that a byte of neighbors says. The whole table is read, whatever these bytes are. */
static tir_expr_ref read_table(const bytes *b, tir_expr_ref x)
{
    if (x->kind != TIR_LOAD || !bytes_is_byte(x) || x->u.buffer == b->into || tir_buffer_count(x->u.buffer) < PLACES)
        return NULL;
    tir_expr_ref place = bytes_flat(b, x);
    while (place->kind == TIR_CAST && place->type.dt != DT_U8 && dtype_is_int(place->args[0]->type.dt))
        place = place->args[0];
    if (place->type.dt != DT_U8)
        return NULL;
    tir_expr_ref row = place->kind == TIR_CAST ? place->args[0] : place;
    return bytes_is_byte(row) && bytes_is_row(b, row) ? row : NULL;
}

tir_stmt *bytes_table(const bytes *b, const char *prefix)
{
    compiler *c = b->x->c;
    tir_expr_ref x = b->loop->body->value, row = read_table(b, x);
    if (!row)
        return NULL;
    tir_expr_ref args[] = {bytes_first_stored(b), bytes_first_of(b, row), tir_address(c, x->u.buffer, 0, NULL),
                           b->loop->extent};
    const char *name = arena_printf(&c->mem, "%s%s%s", prefix, x->type.dt == DT_I8 ? "" : "_u8",
                                    row->type.dt == DT_I8 ? "" : "_by_u8");
    return bytes_call(b, name, 4, args);
}

static tir_stmt *looked_up(const tir_selector *x, tir_stmt *loop)
{
    bytes b;
    if (!bytes_read(x, loop, &b))
        return NULL;
    tir_bounds_push(x->bounds, loop->var, loop->min, loop->extent);
    tir_stmt *out = bytes_steps_by_one(&b, b.at) ? bytes_table(&b, tir_vectors_of_table) : NULL;
    tir_bounds_pop(x->bounds);
    return out;
}

static bool has_vectors(const struct target *t)
{
    return t && !t->small && t->vector_bytes > BYTES_LEAST;
}

const tir_selection tir_selection_tables = {.fits = has_vectors, .loop = looked_up, .meant_loop = loop_is_table};
