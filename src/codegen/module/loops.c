/* SPDX-License-Identifier: Apache-2.0 */
/* What a module has as loops beside its kernels' own: the sizes of what nothing bounds, and the growth of rows. And the
 * text of all loops, for machines without a C compiler. */
#include "codegen/module/module.h"
#include "tir/build.h"
#include "tir/interpret.h"
#include "tir/text.h"

#include <string.h>

const tir_buffer *loops_buffer(const plan_op *op, uint32_t k)
{
    return k < op->n_args ? op->func->params[k] : op->scratch[k - op->n_args].buffer;
}

/* --- which, and their names --- */

const char *loops_kernel_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_%s", p->prefix, package_kernel(p, op)->name);
}

bool loops_grows(const package *p, uint32_t op)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    return package_kernel(p, op)->stacks &&
           prog_is_unbounded(&p->u->func->values.data[prog_root(p->u->func, o->args[o->n_inputs], &(uint64_t){0})]);
}

bool loops_is_open(const package *p, uint32_t op, uint32_t k)
{
    const plan_op *o = &p->pl->problem->ops.data[op];
    if (k >= o->n_args)
        return tir_buffer_count(loops_buffer(o, k)) < 0;
    const prog_value *v = &p->u->func->values.data[o->args[k]];
    return k >= o->n_inputs && v->base == PROG_NONE && prog_is_unbounded(v) && !loops_grows(p, op);
}

/* Kernels are shared by operators, and scratch has as many parts as each of them. */
const char *loops_size_name(const package *p, uint32_t op, uint32_t k)
{
    return arena_printf(&p->c->mem, "%s_bytes_%u_%u", p->prefix, op, k);
}

const char *loops_grow_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_grow_%u", p->prefix, op);
}

const char *loops_move_name(const package *p, uint32_t op)
{
    return arena_printf(&p->c->mem, "%s_move_%u", p->prefix, op);
}

/* --- sizes and growth --- */

/* The variables that hold the symbols, around `body`. */
static tir_stmt *with_symbols(compiler *c, const tir_stmt *at, tir_stmt *body)
{
    for (; at && at->kind == TIR_LET; at = at->body)
        if (at->value->kind == TIR_LOAD)
            body = tir_let(c, at->var, at->value, body);
    return body;
}

/* The bytes of a buffer, from axis `first` on, computed in variables. What has no number is the largest one: no
 * allocator gives as much. */
typedef struct bytes_sum {
    uint32_t first, end;
    const tir_var *extents[TYPE_MAX_RANK], *sums[TYPE_MAX_RANK];
    tir_expr_ref values[TYPE_MAX_RANK], products[TYPE_MAX_RANK], sum;
} bytes_sum;

static bytes_sum bytes_from(compiler *c, const tir_buffer *b, uint32_t first, int64_t times)
{
    const tir_expr_ref zero = tir_i64(c, 0), one = tir_i64(c, 1), most = tir_i64(c, INT64_MAX);
    bytes_sum s = {.first = first, .end = b->rank, .sum = tir_i64(c, (int64_t)dtype_bytes(b->dt) * times)};
    for (uint32_t i = first; i < b->rank; i++) {
        s.extents[i] = tir_new_var(c, "extent", TIR_I64);
        s.sums[i] = tir_new_var(c, "size", TIR_I64);
        const tir_expr_ref extent = tir_varref(c, s.extents[i]);
        const tir_expr_ref fits = tir_binary(c, TIR_LE, s.sum, tir_floordiv(c, most, tir_max(c, one, extent)));
        s.values[i] = tir_max(c, zero, tir_cast(c, DT_I64, b->shape[i]));
        s.products[i] = tir_select(c, fits, tir_mul(c, s.sum, extent), most);
        s.sum = tir_varref(c, s.sums[i]);
    }
    return s;
}

/* The variables, around what uses s->sum. */
static tir_stmt *with_bytes(compiler *c, const bytes_sum *s, tir_stmt *body)
{
    for (uint32_t i = s->end; i-- > s->first;) {
        body = tir_let(c, s->sums[i], s->products[i], body);
        body = tir_let(c, s->extents[i], s->values[i], body);
    }
    return body;
}

/* The bytes of n rows that there are, as the extent of a parameter. */
static tir_expr_ref bytes_of_rows(compiler *c, const tir_buffer *b, tir_expr_ref n)
{
    n = tir_mul(c, n, tir_i64(c, (int64_t)dtype_bytes(b->dt)));
    for (uint32_t i = 1; i < b->rank; i++)
        n = tir_mul(c, n, tir_cast(c, DT_I64, b->shape[i]));
    return n;
}

static const tir_buffer *cell(compiler *c, const char *name, dtype dt)
{
    const int64_t one = 1;
    return tir_buffer_static(c, name, dt, 1, &one, SCOPE_GLOBAL);
}

static tir_expr_ref read_cell(compiler *c, const tir_buffer *b)
{
    tir_expr_ref zero = tir_i64(c, 0);
    return tir_load(c, b, 1, &zero);
}

static tir_stmt *write_cell(compiler *c, const tir_buffer *b, tir_expr_ref value)
{
    tir_expr_ref zero = tir_i64(c, 0);
    return tir_store(c, b, 1, &zero, value);
}

/* A function that gets the cells of the operator's symbols, n_read more operands, and results. */
static const tir_func *function(compiler *c, const char *name, const plan_op *o, uint32_t n, uint32_t n_read,
                                const tir_buffer *const *more, tir_stmt *body)
{
    const uint32_t n_cells = o->func->n_symbols;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, n_cells + n);
    tir_func *f = arena_new(&c->mem, tir_func);
    for (uint32_t i = 0; i < n_cells + n; i++)
        params[i] = i < n_cells ? o->func->params[i] : more[i - n_cells];
    *f = (tir_func){.name = name,
                    .params = params,
                    .n_params = n_cells + n,
                    .n_inputs = n_cells + n_read,
                    .body = with_symbols(c, o->func->body, body),
                    .index_type = DT_I64};
    return f;
}

const tir_func *loops_size(const package *p, uint32_t op, uint32_t k)
{
    compiler *c = p->c;
    const plan_op *o = &p->pl->problem->ops.data[op];
    const bool shared = k < o->n_args || !o->scratch[k - o->n_args].per_part;
    const tir_buffer *bytes = cell(c, "bytes", DT_I64);
    const bytes_sum size = bytes_from(c, loops_buffer(o, k), 0, shared ? 1 : p->pl->tasks[op].parts);
    tir_stmt *body = with_bytes(c, &size, write_cell(c, bytes, size.sum));
    return function(c, loops_size_name(p, op, k), o, 1, 0, &bytes, body);
}

/* Twice as many rows whenever there is no room for one more. */
const tir_func *loops_grow(const package *p, uint32_t op)
{
    compiler *c = p->c;
    const plan_op *o = &p->pl->problem->ops.data[op];
    const tir_buffer *round = cell(c, "round", DT_I64), *room = cell(c, "room", DT_I64),
                     *bytes = cell(c, "bytes", DT_I64), *needed = cell(c, "needed", DT_BOOL);
    const tir_buffer *const more[] = {round, room, bytes, needed};
    const tir_var *now = tir_new_var(c, "now", TIR_I64), *rows = tir_new_var(c, "rows", TIR_I64),
                  *next = tir_new_var(c, "next", TIR_I64);
    tir_expr_ref n = tir_varref(c, now), zero = tir_i64(c, 0);
    tir_expr_ref lacks = tir_binary(c, TIR_GE, n, tir_varref(c, rows));
    const bytes_sum row = bytes_from(c, loops_buffer(o, o->n_inputs), 1, 1);
    tir_expr_ref most = tir_i64(c, INT64_MAX), more_rows = tir_varref(c, next);
    tir_expr_ref fits = tir_binary(c, TIR_LE, row.sum, tir_floordiv(c, most, more_rows));
    tir_expr_ref size = tir_select(c, fits, tir_mul(c, more_rows, row.sum), most);
    tir_stmt *const larger[] = {write_cell(c, room, more_rows), write_cell(c, bytes, size)};
    tir_expr_ref twice = tir_select(c, tir_binary(c, TIR_LT, n, tir_i64(c, 2)), tir_i64(c, 4),
                                    tir_mul(c, n, tir_i64(c, 2)));
    tir_stmt *const all[] = {write_cell(c, needed, lacks), write_cell(c, bytes, zero),
                             tir_if(c, lacks, tir_let(c, next, twice, tir_seq(c, 2, larger)), NULL)};
    tir_expr_ref there = tir_select(c, tir_binary(c, TIR_EQ, n, zero), zero, read_cell(c, room));
    tir_stmt *body = tir_let(c, now, read_cell(c, round), tir_let(c, rows, there, tir_seq(c, 3, all)));
    return function(c, loops_grow_name(p, op), o, 4, 1, more, with_bytes(c, &row, body));
}

const tir_func *loops_move(const package *p, uint32_t op)
{
    compiler *c = p->c;
    const plan_op *o = &p->pl->problem->ops.data[op];
    const tir_buffer *round = cell(c, "round", DT_I64);
    tir_expr_ref count = bytes_of_rows(c, loops_buffer(o, o->n_inputs), read_cell(c, round));
    const tir_buffer *from = tir_new_buffer(c, "from", DT_U8, 1, &count, SCOPE_GLOBAL),
                     *to = tir_new_buffer(c, "to", DT_U8, 1, &count, SCOPE_GLOBAL);
    const tir_buffer *const more[] = {round, from, to};
    const tir_var *i = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref at = tir_varref(c, i);
    tir_stmt *copy = tir_store(c, to, 1, &at, tir_load(c, from, 1, &at));
    return function(c, loops_move_name(p, op), o, 3, 2, more, tir_for(c, i, tir_i64(c, 0), count, FOR_SERIAL, copy));
}

/* --- text --- */

static bool write_one(const package *p, writer *w, const tir_func *f, const char *name)
{
    tir_func one = *f;
    one.name = name;
    one.schedule = NULL;
    one.macs = 0;
    one.left = (tir_left){0};
    if (!tir_can_interpret(p->c, &one)) {
        diag_hint(&p->c->diags, "leave --with-interpreter out: such a module needs a C compiler where it runs");
        return false;
    }
    tir_print_func(w, &one);
    return true;
}

static bool write_kernel(const package *p, writer *w, uint32_t op)
{
    const prog_kernel *k = package_kernel(p, op);
    const tir_func *f = memory_tags(p, op) ? NULL : prog_kernel_meaning(k);
    if (f)
        return write_one(p, w, f, loops_kernel_name(p, op));
    diag_error(&p->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               memory_tags(p, op) ? "kernel %s runs on the device that has its operands: it cannot be interpreted"
                                  : "kernel %s has no loops to interpret",
               k->name);
    diag_hint(&p->c->diags, "leave --with-interpreter out: such a module needs a C compiler where it runs");
    return false;
}

bool loops_write(const package *p, writer *w)
{
    for (uint32_t i = 0; i < p->pl->problem->ops.len; i++) {
        const plan_op *o = &p->pl->problem->ops.data[i];
        if (!memory_is_copy(p, i) && package_is_first(p, i) && !write_kernel(p, w, i))
            return false;
        for (uint32_t k = o->n_inputs; k < o->n_args + o->n_scratch; k++)
            if (loops_is_open(p, i, k) && !write_one(p, w, loops_size(p, i, k), loops_size_name(p, i, k)))
                return false;
        if (loops_grows(p, i) && (!write_one(p, w, loops_grow(p, i), loops_grow_name(p, i)) ||
                                   !write_one(p, w, loops_move(p, i), loops_move_name(p, i))))
            return false;
    }
    return true;
}
