/* SPDX-License-Identifier: Apache-2.0 */
/* One loop-IR function as a C function: its comment, its parameters, its statements. Parallel loops run over the share
 * of part `part` of `parts`. */
#include "abi/package.h"
#include "codegen/c/family.h"
#include "codegen/embedded.h"
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/instr.h"
#include "tir/lane.h"
#include "tir/node.h"
#include "tir/walk.h"
#include "type/target.h"

#include <string.h>

static void write_stmt(c_emit *e, const tir_stmt *s);

/* --- registers: buffers whose every access has a constant index --- */

static void note_access(c_emit *e, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices)
{
    for (uint32_t i = 0; i < e->registers.len; i++) {
        c_registers *r = &e->registers.data[i];
        if (r->buffer != b)
            continue;
        tir_expr_ref at = n == 1 ? indices[0] : NULL;
        uint32_t lanes = at ? at->type.lanes : 0;
        int64_t first = 0;
        if (at && at->kind == TIR_RAMP)
            at = tir_is_const(at->args[1], 1) ? at->args[0] : NULL;
        bool fits = at && tir_is_int(at, &first) && (b->rank == 1 || tir_buffer_count(b) > 0) && first % lanes == 0;
        if (!fits || (r->lanes != UINT32_MAX && r->lanes != lanes))
            r->lanes = 0;
        else if (r->lanes != 0)
            r->lanes = lanes;
        if (fits && first >= 0 && first < tir_buffer_count(b))
            r->used[first / lanes] = true;
    }
}

static void keep_in_memory(c_emit *e, const tir_buffer *b)
{
    for (uint32_t i = 0; i < e->registers.len; i++)
        if (e->registers.data[i].buffer == b)
            e->registers.data[i].lanes = 0;
}

static void note_expr(void *ctx, tir_expr_ref x)
{
    c_emit *e = ctx;
    int64_t tile;
    uint32_t row;
    if (x->kind == TIR_LOAD && x->u.buffer->scope == SCOPE_REG &&
        tir_constant_row_of_tiles(e->bounds, e->c, x, &tile, &row)) {
        for (uint32_t i = 0; i < 2; i++) {
            tir_expr_ref from = tir_i64(e->c, (tile + i) * TIR_TILE_LANES),
                         all = tir_ramp(e->c, from, tir_i64(e->c, 1), TIR_TILE_LANES);
            note_access(e, x->u.buffer, 1, &all);
        }
    } else if (x->kind == TIR_LOAD) {
        note_access(e, x->u.buffer, x->n_args, x->args);
    }
    for (uint32_t i = 1; x->kind == TIR_INSTR && i < x->n_args; i++)
        if (tir_instr_in_memory(x->u.row, i))
            keep_in_memory(e, x->args[i]->u.buffer); /* the helper gets the address */
    if (x->kind == TIR_ADDRESS)
        keep_in_memory(e, x->u.buffer); /* registers have none */
}

static void note_store(void *ctx, tir_stmt *s)
{
    if (s->kind == TIR_STORE)
        note_access(ctx, s->buffer, s->n_indices, s->indices);
}

static void add_registers(c_emit *e, const tir_buffer *b)
{
    int64_t count = tir_buffer_count(b);
    bool *used = arena_array(e->tmp, bool, (size_t)(count > 0 ? count : 0) + 1);
    vec_push(e->tmp, &e->registers, ((c_registers){b, UINT32_MAX, used}));
}

static void note_allocate(void *ctx, tir_stmt *s)
{
    c_emit *e = ctx;
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_REG)
        add_registers(e, s->buffer);
}

static void find_registers(c_emit *e)
{
    tir_visit_stmt(e->f->body, note_allocate, NULL, e);
    if (e->registers.len > 0)
        tir_visit_stmt(e->f->body, note_store, note_expr, e);
    for (uint32_t i = 0; i < e->registers.len; i++)
        if (e->registers.data[i].lanes == UINT32_MAX)
            e->registers.data[i].lanes = 0;
}

/* Vectors live in registers from one iteration to the next. */
static bool has_tile(const c_emit *e)
{
    for (uint32_t i = 0; i < e->registers.len; i++)
        if (e->registers.data[i].lanes > 1)
            return true;
    return false;
}

/* NULL: stays an array. */
static const c_registers *registers_of(const c_emit *e, const tir_buffer *b)
{
    for (uint32_t i = 0; i < e->registers.len; i++)
        if (e->registers.data[i].buffer == b && e->registers.data[i].lanes > 0)
            return &e->registers.data[i];
    return NULL;
}

/* --- what has no C form --- */

void func_refuse(c_emit *e, const char *what)
{
    if (!e->failed)
        diag_error(&e->c->diags, DIAG_UNSUPPORTED, e->f->loc, "function '%s': the C back end does not write %s",
                   e->f->name, what);
    e->failed = true;
}

static void check_stmt(void *ctx, tir_stmt *s)
{
    c_emit *e = ctx;
    if (s->kind == TIR_FOR && s->for_kind == FOR_VTHREAD)
        func_refuse(e, "virtual threads");
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_CUSTOM && !e->extension)
        func_refuse(e, "buffers in a device's own memory");
}

/* Rows from outside of the tree can name files that are not in it. */
static void check_file(c_emit *e, const char *file)
{
    if (!file || e->failed || embedded_find(file))
        return;
    func_refuse(e, arena_printf(e->tmp, "what calls %s: lathe has no such file", file));
    diag_hint(&e->c->diags, "leave the kernel's file out of the intrinsic, and include your header by the target's "
                            "cflags: -include FILE");
}

static void check_expr(void *ctx, tir_expr_ref x)
{
    if (x->kind != TIR_INSTR)
        return;
    check_file(ctx, x->u.row->kernel);
    check_file(ctx, x->u.row->runs_kernel);
}

/* --- statements --- */

/* A declaration needs a block of its own unless it is all that a loop or branch holds. */
static bool open_block(c_emit *e)
{
    bool needed = !e->alone;
    if (needed) {
        w_str(e->w, "{\n");
        e->w->indent++;
    }
    return needed;
}

static void close_block(c_emit *e, bool opened)
{
    if (opened)
        w_close(e->w, "");
}

/* The body of a loop, a branch, a function or a declaration. */
static void write_inner(c_emit *e, const tir_stmt *s)
{
    e->alone = s && (s->kind == TIR_ALLOCATE || s->kind == TIR_LET || s->kind == TIR_FOR || s->kind == TIR_ATTR);
    write_stmt(e, s);
}

/* The function that finds a share of the loop: in 32 bits where its variable has as many, with one division less where
 * the product with any number of workers fits. */
static const char *cut_name(c_emit *e, const tir_stmt *s)
{
    int64_t n = 0;
    bool is_wide = s->var->type.dt == DT_I64;
    bool is_short = !is_wide && tir_is_int(s->extent, &n) && n <= INT32_MAX / (int64_t)PACKAGE_MAX_WORKERS;
    needs_add_kernel(e->needs, is_wide    ? "kernel/common/cut.h"
                               : is_short ? "kernel/common/cut_i32.h"
                                          : "kernel/common/cut_open_i32.h");
    return is_wide ? "lathe_cut" : is_short ? "lathe_cut_i32" : "lathe_cut_open_i32";
}

/* What a C compiler is told of the loop that comes next (pass say-rounds). */
static void write_rounds(c_emit *e)
{
    static const struct {
        const char *rounds, *file, *line;
    } lines[] = {{TIR_ROUNDS_ROLLED, "kernel/common/rolled.h", "LATHE_ROLLED"},
                 {TIR_ROUNDS_EIGHT, "kernel/common/eight_times.h", "LATHE_EIGHT_TIMES"},
                 {TIR_ROUNDS_CLANG, "kernel/common/rolled_clang.h", "LATHE_ROLLED_CLANG"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines && e->rounds; i++)
        if (strcmp(e->rounds, lines[i].rounds) == 0) {
            needs_add_kernel(e->needs, lines[i].file);
            w_line(e->w, "%s", lines[i].line);
        }
    e->rounds = NULL;
}

static void write_for_head(c_emit *e, const tir_stmt *s, const char *min, const char *end, const char *var)
{
    const char *ctype = dtype_c_name(s->var->type.dt);
    if (!e->cut || s->for_kind != FOR_PARALLEL) {
        write_rounds(e);
        const char *also = tir_ends_early(s) ? arena_printf(e->tmp, " && (%s)", expr_condition(e, s->body->cond)) : "";
        w_open(e->w, "for (%s %s = %s; %s < %s%s; %s++)", ctype, var, min, var, end, also, var);
        return;
    }
    const char *extent = expr_text(e, s->extent).s, *cut = cut_name(e, s);
    const char *plus = tir_is_const(s->min, 0) ? "" : arena_printf(e->tmp, "%s + ", min);
    const char *convert = s->var->type.dt == DT_I64 ? "" : arena_printf(e->tmp, "(%s)", ctype);
    w_line(e->w, "const %s %s_end = %s%s%s(%s, part + 1, parts);", ctype, var, plus, convert, cut, extent);
    w_open(e->w, "for (%s %s = %s%s%s(%s, part, parts); %s < %s_end; %s++)", ctype, var, plus, convert, cut, extent,
           var, var, var);
}

/* A loop whose variable only makes another one, from + variable * by. */
static bool is_stepped(const tir_stmt *s, tir_expr_ref *out_from, int64_t *out_by)
{
    const tir_stmt *let = s->body;
    if (s->for_kind != FOR_SERIAL || !let || let->kind != TIR_LET || !tir_is_const(s->min, 0))
        return false;
    tir_expr_ref x = let->value;
    const bool sum = tir_is_binary(x, TIR_ADD);
    const uint32_t at = sum && tir_is_binary(x->args[0], TIR_MUL) ? 0 : 1;
    tir_expr_ref product = sum ? x->args[at] : x;
    *out_from = sum ? x->args[1 - at] : s->min;
    return !tir_stmt_uses_var(let->body, s->var) && !tir_uses_var(*out_from, s->var) &&
           tir_is_binary(product, TIR_MUL) && product->args[0]->kind == TIR_VAR && product->args[0]->u.var == s->var &&
           tir_is_int(product->args[1], out_by) && *out_by > 0;
}

static void write_stepped(c_emit *e, const tir_stmt *s, tir_expr_ref from, int64_t by)
{
    const tir_var *v = s->body->var;
    const uint32_t depth = e->names.len;
    tir_expr_ref extent = tir_mul(e->c, s->extent, tir_int(e->c, s->var->type.dt, by));
    tir_expr_ref behind = tir_add(e->c, from, extent);
    const char *min = expr_text(e, from).s, *end = scalar_at(e->tmp, expr_text(e, behind), PREC_ADD),
               *name = names_push(e, v, v->name, true);
    write_rounds(e);
    w_open(e->w, "for (%s %s = %s; %s < %s; %s += %lld)", dtype_c_name(v->type.dt), name, min, name, end, name,
           (long long)by);
    tir_bounds_push(e->bounds, v, from, extent);
    write_inner(e, s->body->body);
    tir_bounds_pop(e->bounds);
    w_close(e->w, "");
    e->names.len = depth;
}

static void write_for(c_emit *e, const tir_stmt *s)
{
    tir_expr_ref from;
    int64_t by;
    if (is_stepped(s, &from, &by)) {
        write_stepped(e, s, from, by);
        return;
    }
    tir_expr_ref last = tir_add(e->c, s->min, s->extent);
    const char *min = expr_text(e, s->min).s;
    const char *end = scalar_at(e->tmp, expr_text(e, last), PREC_ADD);
    uint32_t depth = e->names.len;
    bool block = e->cut && s->for_kind == FOR_PARALLEL, opened = false;
    const char *var =
        block ? names_push_cut(e, s->var, s->var->name) : names_push(e, s->var, s->var->name, true);
    if (block) /* the end of the share is a variable of its own */
        opened = open_block(e);
    write_for_head(e, s, min, end, var);
    tir_bounds_push(e->bounds, s->var, s->min, s->extent);
    const bool before = e->in_parallel;
    e->in_parallel |= s->for_kind == FOR_PARALLEL;
    write_inner(e, tir_ends_early(s) ? s->body->body : s->body);
    e->in_parallel = before;
    tir_bounds_pop(e->bounds);
    w_close(e->w, "");
    close_block(e, opened);
    e->names.len = depth;
}

static void write_if(c_emit *e, const tir_stmt *s)
{
    w_open(e->w, "if (%s)", expr_condition(e, s->cond));
    write_inner(e, s->body);
    if (s->orelse) {
        e->w->indent--;
        w_open(e->w, "} else");
        write_inner(e, s->orelse);
    }
    w_close(e->w, "");
}

/* Integers of the call, whose bounds are known; what is made of them cannot overflow. */
static const tir_number *number_of(const c_emit *e, const tir_var *v)
{
    for (uint32_t i = 0; i < e->f->n_numbers && dtype_is_int(v->type.dt); i++)
        if (e->f->numbers[i].var == v)
            return &e->f->numbers[i];
    return NULL;
}

static void write_let(c_emit *e, const tir_stmt *s)
{
    tir_type t = s->var->type;
    c_text value = expr_text(e, s->value);
    const tir_number *number = number_of(e, s->var);
    bool is_index = t.lanes == 1 && (number || expr_is_index(e, s->value));
    uint32_t depth = e->names.len;
    const char *ctype = scalar_type(t.dt);
    if (t.lanes > 1) {
        needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = t.dt, .lanes = t.lanes});
        ctype = needs_vector_name(e->tmp, t.dt, t.lanes);
    }
    const char *name = names_push(e, s->var, s->var->name, is_index);
    bool narrow = t.lanes == 1 && !dtype_is_float(t.dt) && dtype_bits(t.dt) < 32;
    bool opened = open_block(e);
    w_line(e->w, "const %s %s = %s;", ctype, name, narrow ? scalar_store(e->tmp, e->needs, t.dt, value) : value.s);
    if (!tir_stmt_uses_var(s->body, s->var))
        w_line(e->w, "(void)%s;", name);
    if (number)
        tir_bounds_push(e->bounds, s->var, tir_i64(e->c, number->least),
                        tir_i64(e->c, number->most - number->least + 1));
    write_inner(e, s->body);
    if (number)
        tir_bounds_pop(e->bounds);
    close_block(e, opened);
    e->names.len = depth;
}

static void write_vector_store(c_emit *e, const tir_stmt *s, tir_expr_ref at, const char *value)
{
    dtype dt = s->buffer->dt;
    uint32_t lanes = s->value->type.lanes;
    const char *v = needs_vector_name(e->tmp, dt, lanes), *name = expr_name(e, s->buffer);
    needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = dt, .lanes = lanes});
    if (at->kind == TIR_RAMP && tir_is_const(at->args[1], 1)) {
        needs_add_vector(e->needs, (c_need){.kind = NEED_VSTORE, .dt = dt, .lanes = lanes});
        w_line(e->w, "%s_store(%s + %s, %s);", v, name, expr_text(e, at->args[0]).s, value);
        return;
    }
    needs_add_vector(e->needs, (c_need){.kind = NEED_VSCATTER, .dt = dt, .lanes = lanes});
    if (at->kind == TIR_RAMP)
        w_line(e->w, "%s_scatter(%s + %s, %s, %s);", v, name, expr_text(e, at->args[0]).s, expr_text(e, at->args[1]).s,
               value);
    else
        func_refuse(e, "vector stores at indices without a constant step");
}

/* The bits that are stored where a number of 16 bits only moves, and need not become an f32; NULL: it is computed. */
static const char *moved_half(c_emit *e, const tir_stmt *s)
{
    const tir_expr_ref x = s->value;
    const dtype dt = s->buffer->dt;
    if ((dt != DT_F16 && dt != DT_BF16) || x->kind != TIR_LOAD || x->type.lanes > 1 || x->u.buffer->dt != dt)
        return NULL;
    tir_expr_ref at = expr_flat(e, x->u.buffer, x->n_args, x->args);
    if (expr_register(e, x->u.buffer, at))
        return NULL;
    return arena_printf(e->tmp, "%s[%s]", expr_name(e, x->u.buffer), expr_text(e, at).s);
}

static void write_store(c_emit *e, const tir_stmt *s)
{
    tir_expr_ref at = expr_flat(e, s->buffer, s->n_indices, s->indices);
    const char *reg = expr_register(e, s->buffer, at);
    dtype dt = s->buffer->dt;
    bool rounds = !reg && (dt == DT_F16 || dt == DT_BF16) && s->value->type.lanes == 1 && s->value->kind == TIR_CAST &&
                  s->value->args[0]->type.dt == DT_F32; /* the store does, too */
    const char *moved = reg ? NULL : moved_half(e, s);
    if (moved) {
        w_line(e->w, "%s[%s] = %s;", expr_name(e, s->buffer), expr_text(e, at).s, moved);
        return;
    }
    c_text value = expr_text(e, rounds ? s->value->args[0] : s->value);
    if (s->value->type.lanes > 1 && !reg) {
        write_vector_store(e, s, at, value.s);
        return;
    }
    if (reg) {
        w_line(e->w, "%s = %s;", reg, value.s);
        return;
    }
    w_line(e->w, "%s[%s] = %s;", expr_name(e, s->buffer), expr_text(e, at).s,
           scalar_store(e->tmp, e->needs, s->buffer->dt, value));
}

typedef struct buffer_search {
    const tir_buffer *b;
    bool found;
} buffer_search;

/* Remainders of a tile use only some of its registers. */
static void declare_registers(c_emit *e, const c_registers *r, const char *name)
{
    const tir_buffer *b = r->buffer;
    uint32_t lanes = r->lanes;
    const char *ctype = scalar_type(b->dt);
    if (lanes > 1) {
        needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = b->dt, .lanes = lanes});
        ctype = needs_vector_name(e->tmp, b->dt, lanes);
        uint32_t bytes = needs_vector_bytes(b->dt, lanes);
        e->vector_bytes = bytes > e->vector_bytes ? bytes : e->vector_bytes;
    }
    for (int64_t i = 0; i < tir_buffer_count(b) / lanes; i++)
        if (r->used[i])
            w_line(e->w, "%s %s_%lld;", ctype, name, (long long)i);
}

/* This part's share of scratch whose size a run decides. */
static void write_share(c_emit *e, const tir_stmt *s)
{
    const tir_buffer *b = s->buffer;
    const uint32_t depth = e->names.len;
    const char *whole = expr_name(e, b), *size = scalar_at(e->tmp, expr_text(e, b->shape[0]), PREC_MUL);
    const bool opened = open_block(e);
    const char *name = names_push(e, b, b->name, false);
    w_line(e->w, "%s *const %s = %s + (size_t)part * (size_t)%s;", dtype_c_name(b->dt), name, whole, size);
    write_inner(e, s->body);
    close_block(e, opened);
    e->names.len = depth;
}

static void search_words(void *ctx, tir_expr_ref x)
{
    buffer_search *u = ctx;
    for (uint32_t i = 0; x->kind == TIR_INSTR && x->u.row->words && i < x->n_args; i++)
        u->found |= tir_is_access(x->args[i]) && x->args[i]->u.buffer == u->b;
}

/* An array of small elements that is read by words. */
static bool wants_words(const tir_stmt *s)
{
    buffer_search u = {s->buffer, false};
    if (dtype_bits(s->buffer->dt) < 32)
        tir_visit_stmt(s->body, NULL, search_words, &u);
    return u.found;
}

#define WIDE_ARRAY 16 /* bytes: no vector that wants alignment fits into less */

/* The function may be built for x86: its target is one of those, or any machine. */
static bool may_be_x86(const target *t)
{
    return !t || (!t->small && t->vlen == 0 && (t->features & TARGET_NEON) == 0);
}

static void declare_array(c_emit *e, const tir_stmt *s, const char *name)
{
    const tir_buffer *b = s->buffer;
    const int64_t known = tir_buffer_count(b), count = known > 0 ? known : 1;
    const bool wide = count * (int64_t)dtype_bytes(b->dt) >= WIDE_ARRAY && may_be_x86(e->f->target);
    if (wide)
        needs_add_kernel(e->needs, "kernel/common/local.h");
    w_line(e->w, "%s%s%s %s[%lld];", wide ? "LATHE_LOCAL " : "", wants_words(s) ? "LATHE_WORDS " : "",
           dtype_c_name(b->dt), name, (long long)count);
}

static void write_allocate(c_emit *e, const tir_stmt *s)
{
    const tir_buffer *b = s->buffer;
    uint32_t depth = e->names.len;
    if (b->scope == SCOPE_GLOBAL) { /* a parameter: the plan provides it */
        if (tir_buffer_count(b) < 0 && e->in_parallel && !e->needs->one_part)
            write_share(e, s);
        else
            write_inner(e, s->body);
        return;
    }
    const c_registers *registers = registers_of(e, b);
    const char *name = registers ? names_push_registers(e, registers) : names_push(e, b, b->name, false);
    bool opened = open_block(e);
    if (registers)
        declare_registers(e, registers, name);
    else
        declare_array(e, s, name);
    write_inner(e, s->body);
    close_block(e, opened);
    e->names.len = depth;
}

/* The status of a call is the kernel's where it is not 0. */
static void write_status(c_emit *e, const tir_stmt *call)
{
    const bool opened = open_block(e);
    const char *name = names_push(e, call, "status", false);
    const uint32_t depth = e->names.len - 1;
    w_line(e->w, "const int32_t %s = %s;", name, expr_text(e, call->value).s);
    w_open(e->w, "if (%s != 0)", name);
    w_line(e->w, "return %s;", name);
    w_close(e->w, "");
    close_block(e, opened);
    e->names.len = depth;
}

/* Rounds need not be counted where a condition says when the last one has been. */
static bool write_until(c_emit *e, const tir_stmt *s)
{
    if (s->kind != TIR_FOR || !tir_ends_early(s))
        return false;
    if (tir_stmt_uses_var(s->body->body, s->var))
        return false;
    w_open(e->w, "while (%s)", expr_condition(e, s->body->cond));
    write_inner(e, s->body->body);
    w_close(e->w, "");
    return true;
}

/* Annotations say nothing in C but five: memory that is needed later, calls that may fail, how a loop ends, what
 * becomes of its rounds, and addresses that are needed in an array. */
static void write_attr(c_emit *e, const tir_stmt *s)
{
    if (strcmp(s->key, TIR_ENDS) == 0 && write_until(e, s->body))
        return;
    if (strcmp(s->key, TIR_ROUNDS) == 0) {
        e->rounds = s->node;
        write_stmt(e, s->body);
        e->rounds = NULL;
        return;
    }
    if (strcmp(s->key, TIR_STARTS) == 0) {
        runs_write_around(e, s, write_inner);
        return;
    }
    if (strcmp(s->key, TIR_STATUS) == 0 && s->body->kind == TIR_EVALUATE) {
        write_status(e, s->body);
        return;
    }
    if (strcmp(s->key, "prefetch") == 0 && s->value->kind == TIR_LOAD) {
        tir_expr_ref at = expr_flat(e, s->value->u.buffer, s->value->n_args, s->value->args);
        needs_add_kernel(e->needs, "kernel/common/prefetch.h");
        w_line(e->w, "LATHE_PREFETCH(%s + %s);", expr_name(e, s->value->u.buffer), expr_text(e, at).s);
    }
    write_inner(e, s->body);
}

static void write_assert(c_emit *e, const tir_stmt *s)
{
    w_open(e->w, "if (!(%s))", expr_condition(e, s->cond));
    w_line(e->w, "return %d; /* %s */", (int)s->code, s->key ? s->key : "");
    w_close(e->w, "");
}

static void write_stmt(c_emit *e, const tir_stmt *s)
{
    if (!s || runs_write(e, s) || (e->extension && e->extension->stmt(e->extension->ctx, e, s)))
        return;
    switch (s->kind) {
    case TIR_FOR: write_for(e, s); return;
    case TIR_IF: write_if(e, s); return;
    case TIR_LET: write_let(e, s); return;
    case TIR_STORE: write_store(e, s); return;
    case TIR_ALLOCATE: write_allocate(e, s); return;
    case TIR_ATTR: write_attr(e, s); return;
    case TIR_EVALUATE: w_line(e->w, "(void)%s;", scalar_at(e->tmp, expr_text(e, s->value), PREC_PRIMARY)); return;
    case TIR_ASSERT: write_assert(e, s); return;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++) {
            e->alone = false;
            write_stmt(e, s->stmts[i]);
        }
        return;
    }
}

void func_stmt(c_emit *e, const tir_stmt *s)
{
    write_inner(e, s);
}

/* --- the function --- */

/* What the body does with its buffers. */
typedef struct used_set {
    tir_map loaded, stored;
} used_set;

static void mark_load(void *ctx, tir_expr_ref x)
{
    used_set *u = ctx;
    if (tir_is_access(x))
        tir_map_put(&u->loaded, x->u.buffer, x);
}

static void mark_store(void *ctx, tir_stmt *s)
{
    used_set *u = ctx;
    if (s->kind == TIR_STORE)
        tir_map_put(&u->stored, s->buffer, s);
}

static used_set find_used(const tir_func *f, arena *a)
{
    used_set u;
    tir_map_init(&u.loaded, a);
    tir_map_init(&u.stored, a);
    tir_visit_stmt(f->body, mark_store, mark_load, &u);
    return u;
}

/* What stands behind the pointers. */
static const char *last_params(const c_needs *n)
{
    return n->one_part ? ")" : ", uint32_t part, uint32_t parts)";
}

void func_write_declaration(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *c_name)
{
    arena tmp;
    arena_init(&tmp, &c->mem);
    c_emit e = {.c = c, .tmp = &tmp, .w = w, .needs = n, .f = f};
    tir_map_init(&e.places, &tmp);
    used_set u = find_used(f, &tmp);
    const tir_scratch *scratch = NULL;
    const uint32_t n_scratch = tir_find_scratch(c, f, &scratch);
    w_fmt(w, "int32_t %s(", c_name);
    for (uint32_t i = 0; i < f->n_params + n_scratch; i++) { /* without `restrict`, a word that C++ does not know */
        const tir_buffer *b = i < f->n_params ? f->params[i] : scratch[i - f->n_params].buffer;
        const bool constant = i < f->n_inputs && !tir_map_get(&u.stored, b);
        w_fmt(w, "%s%s%s *%s", i ? ", " : "", constant ? "const " : "", dtype_c_name(b->dt),
              names_push(&e, b, b->name, false));
    }
    w_fmt(w, "%s;\n", last_params(n));
    arena_free(&tmp);
}

static void write_params(c_emit *e, const tir_scratch *scratch, uint32_t n_scratch, writer *unused)
{
    writer *w = e->w;
    used_set u = find_used(e->f, e->tmp);
    for (uint32_t i = 0; i < e->f->n_params; i++) {
        const tir_buffer *b = e->f->params[i];
        bool stored = tir_map_get(&u.stored, b) != NULL, used = tir_map_get(&u.loaded, b) != NULL;
        const char *name = names_push(e, b, b->name, false);
        const char *qualifier = e->f->shared && e->f->shared[i] ? "" : "restrict ";
        w_fmt(w, "%s%s%s *%s%s", i ? ", " : "", i < e->f->n_inputs && !stored ? "const " : "", dtype_c_name(b->dt),
              qualifier, name);
        if (!used && !stored)
            w_line(unused, "(void)%s;", name);
    }
    for (uint32_t i = 0; i < n_scratch; i++) {
        const tir_buffer *b = scratch[i].buffer;
        const char *name = names_push(e, b, b->name, false);
        w_fmt(w, "%s%s *restrict %s", i + e->f->n_params > 0 ? ", " : "", dtype_c_name(b->dt), name);
        if (scratch[i].per_part && !e->needs->one_part &&
            tir_buffer_count(b) >= 0) /* else where it is allocated, when its size is known */
            w_line(unused, "%s += (%s)part * %lld;", name, "size_t", (long long)tir_buffer_count(b));
    }
    w_fmt(w, "%s\n", last_params(e->needs));
}

/* Handles of buffers: parameters, then scratch. */
static void write_handles(c_emit *e, const tir_scratch *scratch, uint32_t n_scratch, writer *unused)
{
    used_set u;
    tir_map_init(&u.loaded, e->tmp);
    tir_visit_stmt(e->f->body, NULL, mark_load, &u);
    for (uint32_t i = 0; i < e->f->n_params + n_scratch; i++) {
        const tir_buffer *b = i < e->f->n_params ? e->f->params[i] : scratch[i - e->f->n_params].buffer;
        const char *name = names_push(e, b, b->name, false);
        w_fmt(e->w, "%svoid *%s", i ? ", " : "", name);
        if (!tir_map_get(&u.loaded, b))
            w_line(unused, "(void)%s;", name);
    }
    w_str(e->w, e->f->n_params + n_scratch ? ")\n" : "void)\n");
}

static void write_extended(c_emit *e, const char *c_name)
{
    const tir_scratch *scratch = NULL;
    uint32_t n_scratch = tir_find_scratch(e->c, e->f, &scratch);
    writer opening;
    writer_init(&opening, e->tmp);
    e->w->step = 4;
    w_fmt(e->w, "%sint32_t %s(", e->extension->linkage, c_name);
    write_handles(e, scratch, n_scratch, &opening);
    w_str(e->w, "{\n");
    e->w->indent++;
    w_str(e->w, opening.data ? opening.data : "");
    e->extension->open(e->extension->ctx, e);
    e->alone = false;
    write_stmt(e, e->f->body);
    w_str(e->w, "return 0;\n");
    w_close(e->w, "");
}

static void write_body(c_emit *e, const char *linkage, const char *c_name)
{
    const tir_scratch *scratch = NULL;
    uint32_t n_scratch = tir_find_scratch(e->c, e->f, &scratch);
    writer opening;
    writer_init(&opening, e->tmp);
    e->w->step = 4;
    w_fmt(e->w, "%sint32_t %s(", linkage, c_name);
    write_params(e, scratch, n_scratch, &opening);
    w_str(e->w, "{\n");
    e->w->indent++;
    w_str(e->w, opening.data ? opening.data : "");
    w_str(e->w, e->needs->one_part ? "" : "(void)part;\n(void)parts;\n");
    e->alone = false; /* what follows the body must not see its names */
    write_stmt(e, e->f->body);
    w_str(e->w, "return 0;\n");
    e->w->indent--;
    w_str(e->w, "}\n");
}

static bool write_func(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *linkage, const char *c_name,
                       const c_extension *extension)
{
    arena tmp;
    arena_init(&tmp, &c->mem);
    writer body;
    writer_init(&body, &tmp);
    c_emit e = {.c = c, .tmp = &tmp, .w = &body, .needs = n, .f = f, .bounds = tir_bounds_new(c),
                .extension = extension};
    tir_map_init(&e.places, &tmp);
    uint32_t width = f->target && f->target->vector_bytes ? f->target->vector_bytes : UINT32_MAX;
    n->vector_bytes = width > n->vector_bytes ? width : n->vector_bytes;
    e.cut = !extension && !n->one_part && tir_parallel_extent(c, f) > 1;
    tir_visit_stmt(f->body, check_stmt, check_expr, &e);
    if (!e.failed) {
        find_registers(&e);
        if (extension)
            write_extended(&e, c_name);
        else
            write_body(&e, linkage, c_name);
    }
    if (e.vector_bytes >= 64)
        w_str(w, "LATHE_WIDE ");
    const char *attribute = e.attribute ? e.attribute : has_tile(&e) ? "LATHE_TILE" : "";
    w_str(w, attribute);
    if (e.vector_bytes >= 64 || *attribute)
        w_str(w, "\n");
    if (!e.failed)
        w_str(w, body.data);
    arena_free(&tmp);
    return !e.failed;
}

static void find_failure(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_ASSERT || (s->kind == TIR_ATTR && strcmp(s->key, TIR_STATUS) == 0);
}

bool func_may_fail(const tir_func *f)
{
    bool found = false;
    tir_visit_stmt(f->body, find_failure, NULL, &found);
    return found;
}

bool func_write(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *linkage, const char *c_name)
{
    return write_func(c, w, n, f, linkage, c_name, NULL);
}

bool func_write_extended(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *c_name,
                         const c_extension *extension)
{
    return write_func(c, w, n, f, extension->linkage, c_name, extension);
}

static c_needs needs_of(compiler *c, const target *t)
{
    return (c_needs){.a = &c->mem, .riscv = t && t->vlen > 0,
                     .family = c_family_of(t), .neon = t && (t->features & TARGET_NEON) != 0};
}

bool codegen_c_func_alone(compiler *c, writer *w, const tir_func *f, const char *c_name, const target *t)
{
    c_needs needs = needs_of(c, t);
    return func_write(c, w, &needs, f, "static ", c_name);
}

bool codegen_c_func(compiler *c, writer *w, const tir_func *f, const char *c_name, const target *t)
{
    c_needs needs = needs_of(c, t);
    writer body;
    writer_init(&body, &c->mem);
    if (!func_write(c, &body, &needs, f, "static ", c_name))
        return false;
    needs_write(&c->mem, w, &needs);
    w_str(w, body.data);
    return true;
}
