/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, row by row (tir/instr.h): the row's own nest, with numbers for its symbols, is a region. However its
 * sums and products are ordered, tensorize or select makes the same instructions of it. The interpreter computes the
 * same before that pass, behind it, and behind all passes for a processor. Nests that are less exact than what they
 * stand for are compared with their arithmetic in C.
 *
 * With arguments, TARGET FILE, it writes a program instead, which runs the C of each row's kernel that is made for the
 * target, and that of its nest, on the same random operands: test/embedded/test_kernels.sh. Compiled with -DTIMES=N it
 * is a benchmark: what a call takes, on average of N. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/c/family.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/interpret.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/text.h"
#include "tir/walk.h"
#include "type/target.h"

#define SEEDS    6
#define OPERANDS TIR_INTRIN_OPERANDS

static uint32_t state;

static uint32_t below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

/* --- a region --- */

typedef struct numbers {
    int64_t of[TIR_INTRIN_SYMBOLS];
} numbers;

/* Extents at both ends and in between. What is a stride of the result has to keep its elements apart; those of the
 * others are as they come. */
static numbers choose(const tir_intrin *row, uint32_t seed)
{
    numbers n = {{0}};
    int64_t widest = 1;
    for (uint32_t i = 0; i < row->n_symbols; i++) {
        const tir_intrin_symbol *s = &row->symbols[i];
        const int64_t most = s->max > 24 ? 24 : s->max;
        if (s->max == 0)
            continue;
        if (row->selected) { /* of fewer, loops are shorter code */
            n.of[i] = (s->min > 16 ? s->min : 16) + below(9);
            widest *= n.of[i];
            continue;
        }
        n.of[i] = seed == 0 ? s->min : seed == 1 ? most : s->min + below((uint32_t)(most - s->min + 1));
        n.of[i] -= n.of[i] % s->multiple;
        n.of[i] = i == 0 && row->lanes ? most : n.of[i]; /* a smaller tile writes lanes that nobody reads */
        widest *= n.of[i];
    }
    for (uint32_t i = 0; i < row->n_symbols; i++) {
        const tir_intrin_symbol *s = &row->symbols[i];
        if (s->max == 0)
            n.of[i] = (strncmp(s->name, "out", 3) == 0 ? 8 * widest : 1 + below(40)) * (s->multiple ? s->multiple : 1);
    }
    return n;
}

static const char *number_of(compiler *c, const tir_intrin *row, const numbers *n, const char *word)
{
    for (uint32_t i = 0; i < row->n_symbols; i++)
        if (strcmp(row->symbols[i].name, word) == 0)
            return arena_printf(&c->mem, "%lld", (long long)n->of[i]);
    return word;
}

/* A nest of the row with numbers, marked for tensorize; `update`: without the stores of the identity. */
static const char *region_of(compiler *c, const tir_intrin *row, const char *nest, const numbers *n, bool update)
{
    static const char one_apart[] = ", strides=[1]";
    writer w;
    bool marked = row->selected; /* that pass looks at all loops */
    writer_init(&w, &c->mem);
    for (const char *p = nest; *p;) {
        const size_t line = strcspn(p, "\n");
        if (update && line > 5 && strncmp(p + line - 4, " = 0", 4) == 0) {
            p += line + 1;
            continue;
        }
        if (!marked && strncmp(p, "  for (", 7) == 0) {
            w_fmt(&w, "  attr [region] \"tensorize\" = \"%s\";\n", row->name);
            marked = true;
        }
        for (const char *end = p + line + 1; p < end;) {
            const char *start = p;
            if (strncmp(p, one_apart, strlen(one_apart)) == 0) { /* a vector in memory says nothing of strides */
                p += strlen(one_apart);
                continue;
            }
            while (isalnum((unsigned char)*p) || *p == '_')
                p++;
            if (p > start)
                w_str(&w, number_of(c, row, n, arena_strndup(&c->mem, start, (size_t)(p - start))));
            else
                w_fmt(&w, "%c", *p++);
        }
    }
    return w.data;
}

static const char *region(compiler *c, const tir_intrin *row, const numbers *n, bool update)
{
    return region_of(c, row, row->nest, n, update);
}

/* The pass that makes the instruction of a region. */
static const char *passes_of(const tir_intrin *row)
{
    return !row->selected  ? "simplify-loops,tensorize"
           : row->lanes > 0 ? "simplify-loops,vectorize,select"
                            : "simplify-loops,select";
}

static tir_func *read(compiler *c, const char *text)
{
    tir_module *m;
    if (!tir_parse(c, "region", text, strlen(text), &m))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return m->funcs.data[0];
}

/* --- results that nobody else has --- */

static size_t bytes_of(const tir_buffer *b)
{
    int64_t last = 0, count = 1, extent = 0, stride = 0;
    for (uint32_t i = b->rank; i-- > 0;) {
        assert_true(tir_is_int(b->shape[i], &extent));
        stride = count;
        if (b->strides)
            assert_true(tir_is_int(b->strides[i], &stride));
        last += (extent - 1) * stride;
        count *= extent;
    }
    return (size_t)(last + 1) * dtype_bytes(b->dt);
}

/* From the end on: copies in order are instructions, too. */
static tir_stmt *copied(compiler *c, const tir_buffer *to, const tir_buffer *from)
{
    const tir_var *v = tir_new_var(c, "at", TIR_I64);
    tir_expr_ref at = tir_sub(c, tir_sub(c, to->shape[0], tir_i64(c, 1)), tir_varref(c, v));
    return tir_for(c, v, tir_i64(c, 0), to->shape[0], FOR_SERIAL, tir_store(c, to, 1, &at, tir_load(c, from, 1, &at)));
}

typedef struct moving {
    const tir_buffer *from, *to;
} moving;

static tir_stmt *move_store(tir_rewriter *r, tir_stmt *s)
{
    const moving *m = r->ctx;
    if (s->kind != TIR_STORE || s->buffer != m->from)
        return s;
    tir_expr_ref at = tir_flat_index(r->c, DT_I64, s->buffer, s->indices);
    return tir_store(r->c, m->to, 1, &at, s->value);
}

/* The pass select moves numbers into arrays of the function, where no operand can lie. */
static void keep_inside(compiler *c, tir_func *f)
{
    const uint32_t out = f->n_params - 1;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, f->n_params);
    const int64_t count = (int64_t)(bytes_of(f->params[out]) / dtype_bytes(f->params[out]->dt));
    const dtype dt = f->params[out]->dt;
    moving m = {f->params[out], tir_buffer_static(c, "inside", dt, 1, &count, SCOPE_LOCAL)};
    tir_rewriter r = {.c = c, .ctx = &m, .stmt = move_store};
    memcpy(params, f->params, f->n_params * sizeof *params);
    params[out] = tir_buffer_static(c, f->params[out]->name, dt, 1, &count, SCOPE_GLOBAL);
    tir_stmt *all[] = {copied(c, m.to, params[out]), tir_rewrite_stmt(&r, f->body), copied(c, params[out], m.to)};
    f->params = params;
    f->body = tir_allocate(c, m.to, tir_seq(c, 3, all));
}

/* --- the same in another order --- */

static bool commutes(tir_expr_ref e)
{
    return e->kind == TIR_BINOP && (e->op == TIR_ADD || e->op == TIR_MUL || e->op == TIR_BITAND || e->op == TIR_MIN ||
                                    e->op == TIR_MAX);
}

static tir_expr_ref pair(compiler *c, tir_expr_ref like, tir_expr_ref a, tir_expr_ref b)
{
    return tir_node_expr(c, TIR_BINOP, like->op, like->type, 2, (tir_expr_ref[]){a, b});
}

static tir_expr_ref reorder(tir_rewriter *r, tir_expr_ref e)
{
    if (!commutes(e))
        return e;
    tir_expr_ref a = e->args[0], b = e->args[1];
    if ((e->op == TIR_ADD || e->op == TIR_MUL) && b->kind == TIR_BINOP && b->op == e->op && below(2))
        return pair(r->c, e, pair(r->c, e, a, b->args[0]), b->args[1]);
    if ((e->op == TIR_ADD || e->op == TIR_MUL) && a->kind == TIR_BINOP && a->op == e->op && below(2))
        return pair(r->c, e, a->args[0], pair(r->c, e, a->args[1], b));
    return below(2) ? pair(r->c, e, b, a) : e;
}

/* --- what becomes of it --- */

static void count_rows(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_INSTR;
}

static uint32_t instructions(const tir_func *f)
{
    uint32_t n = 0;
    tir_visit_stmt(f->body, NULL, count_rows, &n);
    return n;
}

/* One for each vector, whose lanes are powers of two. */
static uint32_t expected(const tir_intrin *row, const numbers *n)
{
    const bool vectors = tir_instr_gives_value(row) && !row->selected && row->lanes == 0;
    return vectors ? (uint32_t)__builtin_popcountll((uint64_t)n->of[0]) : 1;
}

typedef struct memory {
    uint8_t *at[OPERANDS];
    size_t bytes[OPERANDS];
} memory;

/* `small`: data below 100 and weights below 20, of which no sum of four products leaves 16 bits. */
static memory fill(const tir_func *f, bool small)
{
    memory m = {{NULL}, {0}};
    for (uint32_t i = 0; i < f->n_params; i++) {
        const tir_buffer *b = f->params[i];
        m.bytes[i] = bytes_of(b);
        m.at[i] = malloc(m.bytes[i]);
        for (size_t k = 0; k < m.bytes[i]; k++)
            m.at[i][k] = (uint8_t)below(256);
        for (size_t k = 0; k < m.bytes[i] && small && i + 1 < f->n_params; k++) {
            const bool data = i < f->n_inputs / 2;
            m.at[i][k] = (uint8_t)(data ? below(100) : below(40) - 20);
        }
    }
    return m;
}

static memory copy_of(const memory *m)
{
    memory out = *m;
    for (uint32_t i = 0; i < OPERANDS && m->at[i]; i++) {
        out.at[i] = malloc(m->bytes[i]);
        memcpy(out.at[i], m->at[i], m->bytes[i]);
    }
    return out;
}

static void drop(memory *m)
{
    for (uint32_t i = 0; i < OPERANDS; i++)
        free(m->at[i]);
}

static void interpret(compiler *c, const tir_func *f, const memory *m)
{
    int32_t status = 0;
    if (!tir_interpret_within(c, f, (void *const *)m->at, m->bytes, &status) || status != 0)
        fail_msg("%s", diags_print(&c->diags, &c->mem));
}

static void run_passes(compiler *c, tir_func *f, const char *names, const char *row)
{
    tir_module m = {.c = c};
    vec_push(&c->mem, &m.funcs, f);
    if (!tir_run_passes(c, &m, names, false, NULL))
        fail_msg("%s is lost: %s", row, diags_print(&c->diags, &c->mem));
}

static const char *text_of(compiler *c, const tir_func *f)
{
    writer w;
    writer_init(&w, &c->mem);
    tir_print_func(&w, f);
    return w.data;
}

/* What f computes on a copy of `start` is in `want`. */
static void check_results(compiler *c, const tir_func *f, const memory *start, const memory *want, const char *row)
{
    memory have = copy_of(start);
    interpret(c, f, &have);
    for (uint32_t out = f->n_inputs; out < f->n_params; out++)
        if (memcmp(have.at[out], want->at[out], want->bytes[out]) != 0)
            fail_msg("%s computes something else:\n%s", row, text_of(c, f));
    drop(&have);
}

static void try_region(const tir_intrin *row, const numbers *n, bool update, bool reordered, const char *processor)
{
    compiler c;
    compiler_init(&c);
    const char *text = region(&c, row, n, update);
    tir_func *f = read(&c, text);
    if (row->selected)
        keep_inside(&c, f);
    tir_rewriter r = {.c = &c, .expr = reorder};
    memory start = fill(f, row->does != NULL), want = copy_of(&start);
    interpret(&c, f, &want);
    f->target = target_find(processor);
    assert_non_null(f->target);
    if (reordered)
        f->body = tir_rewrite_stmt(&r, f->body);
    tir_func *whole = arena_copy(&c.mem, f, sizeof *f, _Alignof(tir_func));
    run_passes(&c, f, passes_of(row), row->name);
    if (instructions(f) != expected(row, n))
        fail_msg("%s: %u instructions instead of %u for\n%s", row->name, instructions(f), expected(row, n), text);
    check_results(&c, f, &start, &want, row->name);
    run_passes(&c, whole, NULL, row->name);
    if (row->selected)
        run_passes(&c, whole, passes_of(row), row->name);
    if (instructions(whole) != expected(row, n))
        fail_msg("%s: the passes for %s lose it:\n%s", row->name, processor, text_of(&c, whole));
    check_results(&c, whole, &start, &want, row->name);
    drop(&start);
    drop(&want);
    compiler_free(&c);
}

static void each_row(void (*fn)(const tir_intrin *row, void *ctx), void *ctx)
{
    compiler c;
    compiler_init(&c);
    char *all = arena_strdup(&c.mem, tir_list_intrins(&c)), *rest = NULL;
    uint32_t seen = 0;
    for (char *name = strtok_r(all, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        const tir_intrin *row = tir_find_intrin(&c, name);
        if (tir_intrin_is_instr(row))
            fn(row, ctx), seen++;
    }
    assert_true(seen >= 20);
    compiler_free(&c);
}

static void try_row(const tir_intrin *row, void *ctx)
{
    const bool reordered = *(bool *)ctx;
    const bool alone = !row->guarded && (!row->few || row->lanes); /* else no region is one of these alone */
    for (uint32_t seed = 0; seed < SEEDS && alone; seed++) {
        state = 7919 * seed + 17;
        numbers n = choose(row, seed);
        const char *processor = (row->features & TARGET_MVE) != 0               ? "cortex-m55"
                                : row->selected || !tir_instr_gives_value(row) ? "cortex-m4"
                                                                               : "x86-64-v3";
        if (row->update)
            try_region(row, &n, true, reordered, processor);
        if (row->body)
            try_region(row, &n, false, reordered, processor);
    }
}

static void test_as_they_are(void **unused)
{
    (void)unused;
    each_row(try_row, &(bool){false});
}

static void test_in_any_order(void **unused)
{
    (void)unused;
    each_row(try_row, &(bool){true});
}

/* --- sums that have 16 bits on the way --- */

static int32_t kept(bool is_signed, int32_t sum)
{
    return is_signed ? sum : sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum;
}

/* Two products of a run from element k on. */
static int32_t two(bool is_signed, bool steps, const uint8_t *a, const uint8_t *w)
{
    int32_t sum = 0;
    for (int k = 0; k < 2; k++) {
        const int32_t by = (int8_t)w[k], x = is_signed ? (int8_t)a[k] : a[k];
        sum += (is_signed && steps ? x - (by >> 7) : x) * by;
    }
    return kept(is_signed, sum);
}

#define LANES 4

static void test_saturation(void **unused)
{
    static const struct {
        const char *row;
        bool is_signed, steps;
    } rows[] = {{"dot_u8s8_pairs", false, false},
                {"dot_s8s8_pairs", true, false},
                {"dot_u8s8_steps", false, true},
                {"dot_s8s8_steps", true, true}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        compiler c;
        compiler_init(&c);
        const bool is_signed = rows[i].is_signed, steps = rows[i].steps;
        tir_func *f = read(&c, region(&c, tir_find_intrin(&c, rows[i].row), &(numbers){{LANES}}, true));
        run_passes(&c, f, "simplify-loops,tensorize", rows[i].row);
        uint32_t wrapped = 0;
        for (uint32_t seed = 0; seed < 200; seed++) {
            memory m = fill(f, false);
            for (uint32_t k = 0; k < f->n_inputs && seed % 2; k++)
                for (size_t at = 0; at < m.bytes[k]; at++)
                    m.at[k][at] = below(2) ? 0x80 : 0x7f; /* the largest products */
            memory before = copy_of(&m);
            interpret(&c, f, &m);
            for (uint32_t j = 0; j < LANES; j++) {
                int32_t want, exact = 0, have;
                memcpy(&want, before.at[f->n_params - 1] + 4 * j, sizeof want);
                memcpy(&have, m.at[f->n_params - 1] + 4 * j, sizeof have);
                for (int k = 0; k < 4; k += 2) {
                    const uint8_t *w = m.at[f->n_inputs / 2] + 4 * j + k;
                    int32_t sum = two(is_signed, steps, m.at[0] + k, w);
                    sum += steps ? two(is_signed, steps, m.at[1] + k, m.at[3] + 4 * j + k) : 0;
                    exact = sum;
                    sum = is_signed || steps ? (int16_t)sum : sum;
                    wrapped += sum != exact || sum == INT16_MAX || sum == INT16_MIN;
                    want = (int32_t)((uint32_t)want + (uint32_t)sum);
                }
                if (want != have)
                    fail_msg("%s gives %d in lane %u, not %d", rows[i].row, (int)have, j, (int)want);
            }
            drop(&m);
            drop(&before);
        }
        if (wrapped == 0)
            fail_msg("%s: no sum left 16 bits", rows[i].row);
        compiler_free(&c);
    }
}

/* --- several runs at once --- */

static void test_runs(void **unused)
{
    static const char text[] =
        "primfn(A: handle, W: handle, O: handle) -> ()\n"
        "  attr = {\"global_symbol\": \"f\", \"inputs\": 2}\n"
        "  buffers = {A: Buffer(int16, [120]), W: Buffer(int8, [96]), O: Buffer(int32, [12])} {\n"
        "  for (i: int64, 0, 3) {\n"
        "    @dot_rows.update(&O[0], &A[(((i + 2) % 3)*32)], &W[(i*32)], m=3, r=2, n=4, a_row=4, a_step=4)\n"
        "  }\n"
        "  for (i: int64, 0, 3) {\n"
        "    @nibble_rows.update(&O[0], &A[(i*32)], &W[(i*16)], m=2, r=1, n=4, a_row=8, a_step=4)\n"
        "  }\n"
        "}\n";
    compiler c;
    (void)unused;
    compiler_init(&c);
    tir_func *f = read(&c, text);
    f->target = target_find("cortex-m4");
    memory start = fill(f, false), want = copy_of(&start);
    assert_int_equal(instructions(f), 2);
    interpret(&c, f, &want);
    run_passes(&c, f, "join-runs", "dot_rows");
    assert_int_equal(f->body->stmts[0]->kind, TIR_EVALUATE);
    assert_int_equal(tir_instr_runs(f->body->stmts[0]->value), 3);
    assert_int_equal(tir_instr_runs(f->body->stmts[1]->value), 3);
    check_results(&c, f, &start, &want, "dot_rows");
    drop(&start);
    drop(&want);
    compiler_free(&c);
}

/* --- rows that read their operands under a condition --- */

static void test_guarded(void **unused)
{
    static const char text[] =
        "primfn(A: handle, B: handle, O: handle) -> ()\n"
        "  attr = {\"global_symbol\": \"f\", \"inputs\": 2}\n"
        "  buffers = {A: Buffer(int8, [256]), B: Buffer(uint8, [340]), O: Buffer(int16, [480])} {\n"
        "  allocate(r, int16, [480]) {\n"
        "    for (y: int32, 0, 4) {\n"
        "      for (x: int32, 0, 6) { for (k: int32, 0, 16) {\n"
        "        r[((y*120) + ((x*18) + k))] = select(((y >= 1) && (y < 3)), ((cast(int16, (int8*)A[((((y - 1)\n"
        "          *120) + k) + (x*16))])) - int16(-5)), int16(0)) } }\n"
        "      for (k: int32, 0, 16) { for (x: int32, 0, 5) {\n"
        "        r[(((y*120) + (k*7)) + x)] = select((y < 2),\n"
        "          cast(int16, (uint8*)B[((y*128) + (k + (x*16)))]), int16(0))\n"
        "      } }\n"
        "      for (i: int32, 0, 120) { O[((y*120) + i)] = (int16*)r[((y*120) + i)] }\n"
        "      for (x: int32, 0, 4) { for (b: int32, 0, 2) { for (k: int32, 0, 4) {\n"
        "        r[(((b*12) + (x*24)) + k)] = select((((y*4) + x) < 14), ((cast(int16, (uint8*)B[(((y*100) + (x*25))\n"
        "          + ((b*4) + k))])) - int16(7)), int16(0)) } } }\n"
        "      for (i: int32, 0, 90) { O[((y*120) + i)] = (int16*)r[i] }\n"
        "    }\n"
        "  }\n"
        "}\n";
    compiler c;
    (void)unused;
    compiler_init(&c);
    tir_func *f = read(&c, text);
    f->target = target_find("cortex-m4");
    memory start = fill(f, false), want = copy_of(&start);
    interpret(&c, f, &want);
    run_passes(&c, f, "select", "widen");
    assert_int_equal(instructions(f), 3 + 2); /* and two copies */
    check_results(&c, f, &start, &want, "widen");
    drop(&start);
    drop(&want);
    compiler_free(&c);
}

/* --- loops of instructions on four bytes --- */

/* Extremes of two rows, of a window, and with what is left of ten; sums of a window, which are many. */
static const char four_bytes[] =
    "primfn(A: handle, B: handle, O: handle) -> ()\n"
    "  attr = {\"global_symbol\": \"f\", \"inputs\": 2}\n"
    "  buffers = {A: Buffer(int8, [2000]), B: Buffer(uint8, [2000]), O: Buffer(int8, [4900])} {\n"
    "  for (i: int32, 0, 16) { O[i] = max(min((int8*)A[i], (int8*)A[(i + 101)]), int8(-9)) }\n"
    "  for (i: int32, 3, 10) {\n"
    "    attr [acc: Pointer(int8)] \"storage_scope\" = \"local.reg\";\n"
    "    allocate(acc, int8, [1]) {\n"
    "      acc[0] = int8(-128)\n"
    "      for (y: int32, 0, 3) { for (x: int32, 0, 2) {\n"
    "        acc[0] = max((int8*)acc[0], (int8*)A[(((y*40) + (x*20)) + i)]) } }\n"
    "      O[(i + 96)] = min((int8*)acc[0], int8(5))\n"
    "    }\n"
    "  }\n"
    "  for (i: int32, 0, 13) {\n"
    "    attr [acc: Pointer(uint8)] \"storage_scope\" = \"local.reg\";\n"
    "    allocate(acc, uint8, [1]) {\n"
    "      acc[0] = uint8(255)\n"
    "      for (x: int32, 0, 20) { acc[0] = min((uint8*)acc[0], (uint8*)B[((x*31) + i)]) }\n"
    "      O[(i + 140)] = cast(int8, (uint8*)acc[0])\n"
    "    }\n"
    "  }\n"
    "  for (i: int32, 0, 1201) {\n"
    "    attr [acc: Pointer(int32)] \"storage_scope\" = \"local.reg\";\n"
    "    allocate(acc, int32, [1]) {\n"
    "      acc[0] = 7\n"
    "      for (x: int32, 0, 9) { acc[0] = ((int32*)acc[0] + (cast(int32, (uint8*)B[((x*90) + i)]) - 128)) }\n"
    "      O[(i + 200)] = cast(int8, ((int32*)acc[0] >> 4))\n"
    "    }\n"
    "  }\n"
    "  for (i: int32, 0, 1002) {\n"
    "    attr [acc: Pointer(int32)] \"storage_scope\" = \"local.reg\";\n"
    "    allocate(acc, int32, [1]) {\n"
    "      acc[0] = 0\n"
    "      for (x: int32, 0, 30) { acc[0] = ((int32*)acc[0] + cast(int32, (int8*)A[((x*30) + i)])) }\n"
    "      O[(i + 1500)] = cast(int8, ((int32*)acc[0] >> 5))\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_four_bytes(void **unused)
{
    (void)unused;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        compiler c;
        compiler_init(&c);
        state = 31 * seed + 5;
        tir_func *f = read(&c, four_bytes);
        tir_rewriter r = {.c = &c, .expr = reorder};
        f->target = target_find("cortex-m4");
        memory start = fill(f, false), want = copy_of(&start);
        interpret(&c, f, &want);
        f->body = seed > 0 ? tir_rewrite_stmt(&r, f->body) : f->body;
        run_passes(&c, f, "select", "words");
        assert_int_equal(instructions(f), 5 + 13 + 3 + 27 + 3);
        check_results(&c, f, &start, &want, "words");
        drop(&start);
        drop(&want);
        compiler_free(&c);
    }
}

/* --- expressions that are instructions --- */

/* Numbers that are rounded, products of sums, and steps of f64 that f32 has; upper words of products, and a byte of
 * one, or of a sum of two products. What is no form of these stays: a product that may become one step with a sum,
 * another bound. */
static const char values[] =
    "primfn(A: handle, F: handle, Z: handle, O: handle, P: handle, R: handle) -> ()\n"
    "  attr = {\"global_symbol\": \"f\", \"inputs\": 3}\n"
    "  buffers = {A: Buffer(int8, [200]), F: Buffer(float32, [100]), Z: Buffer(uint8, [1]), O: Buffer(uint8, [500]),\n"
    "             P: Buffer(float32, [500]), R: Buffer(int32, [700])} {\n"
    "  for (i: int32, 0, 40) {\n"
    "    O[i] = cast(uint8, min(max((rint((float32*)F[i]) + 3.0), 0.0), 255.0))\n"
    "    O[(i + 100)] = cast(uint8, min(max((rint((cast(float32, (((cast(int32, (int8*)A[i])\n"
    "      *cast(int32, (int8*)A[(i + 40)])) + (cast(int32, (int8*)A[i])*3)) + ((cast(int32, (int8*)A[(i + 40)])*5)\n"
    "      + 15)))*0.25)) + cast(float32, (uint8*)Z[0])), 0.0), 255.0))\n"
    "    O[(i + 200)] = cast(uint8, min(max((rint(((cast(float32, (int8*)A[i])*1.5) + 0.25)) - 3.0), 0.0), 255.0))\n"
    "    O[(i + 300)] = cast(uint8, min(max((rint((float32*)F[i]) + 3.0), 1.0), 255.0))\n"
    "    P[i] = cast(float32, ((cast(float64, (int8*)A[i])*cast(float64, 0.5)) + cast(float64, 2.5)))\n"
    "    P[(i + 100)] = cast(float32, (cast(float64, (float32*)F[i])*cast(float64, 0.1)))\n"
    "    P[(i + 200)] = cast(float32, (cast(float64, (float32*)F[i]) + cast(float64, 2.5)))\n"
    "    P[(i + 300)] = cast(float32, (cast(float64, ((float32*)F[i]*2.5)) + cast(float64, 2.5)))\n"
    "    R[i] = (high_product(cast(int32, (int8*)A[i]), (i*70000000)) + 77)\n"
    "    R[(i + 100)] = min(max(((high_product(cast(int32, (int8*)A[i]), (i*70000000)) + 700) >> 2), -128), 127)\n"
    "    R[(i + 200)] = min(max(((cast(int32, (int8*)A[i])*-70000) >> 15), -128), 127)\n"
    "    R[(i + 300)] = min(max(((high_product((cast(int32, (int8*)A[i])*cast(int32, (int8*)A[(i + 1)])),\n"
    "      (i*70000000)) + 700) >> 2), -128), 127)\n"
    "    R[(i + 400)] = min(max(((((cast(int32, (int8*)A[i])*70000) + ((cast(int32, (int8*)A[i])\n"
    "      *cast(int32, (int8*)A[(i + 1)]))*-900)) - 5000) >> 15), 0), 255)\n"
    "  }\n"
    "}\n";
/* rounded and scaled and rounded_number; fma_once, product_once; high_sum, word, shifted, word_by, weighted */
#define VALUES 10

/* Two bytes at a time: neighbors, others of one array, those of a loop, and what is left of it. What stays alone: a
 * byte that is made of where the one in front of it is stored, and one with another zero point. */
static const char pairs[] =
    "primfn(S: handle, K: handle, O: handle, P: handle, I: handle) -> ()\n"
    "  attr = {\"global_symbol\": \"f\", \"inputs\": 2}\n"
    "  buffers = {S: Buffer(int32, [200]), K: Buffer(float32, [200]), O: Buffer(int8, [500]),\n"
    "             P: Buffer(uint8, [500]), I: Buffer(uint8, [200])} {\n"
    "  for (i: int32, 0, 8) {\n"
    "    O[(i*2)] = cast(int8, min(max((rint((cast(float32, (int32*)S[i])*0.001)) + 3.0), -128.0), 127.0))\n"
    "    O[((i*2) + 1)] = cast(int8, min(max((rint((cast(float32, (int32*)S[(i + 8)])*0.01)) + 3.0), -128.0), 127.0))\n"
    "    O[(i + 400)] = cast(int8, min(max(rint((cast(float32, (int32*)S[i])*0.5)), -128.0), 127.0))\n"
    "    O[(i + 300)] = cast(int8, min(max(rint((cast(float32, (int32*)S[(i + 1)])*0.5)), -128.0), 127.0))\n"
    "    P[i] = cast(uint8, min(max((rint((cast(float32, (int32*)S[i])*0.5)) + 3.0), 0.0), 255.0))\n"
    "    P[(i + 8)] = cast(uint8, min(max((rint((cast(float32, cast(int32, (uint8*)P[i]))*0.5)) + 3.0), 0.0), 255.0))\n"
    "    P[(i + 200)] = cast(uint8, min(max((rint((cast(float32, (int32*)S[i])*0.5)) + 4.0), 0.0), 255.0))\n"
    "  }\n"
    "  for (k: int32, 3, 101) {\n"
    "    I[k] = cast(uint8, min(max((rint((cast(float32, (int32*)S[k])*0.02)) + 3.0), 0.0), 255.0))\n"
    "  }\n"
    "  for (k: int32, 10, 40) {\n"
    "    O[(k + 100)] = cast(int8, min(max(rint(((cast(float32, cast(int32, (uint8*)P[k]))*1.5) + 0.25)), -128.0),\n"
    "      127.0))\n"
    "  }\n"
    "}\n";
/* two, two, one, one, one; two and one; two of floats */
#define PAIRS 9

static void try_values(const char *text, uint32_t seed, uint32_t count)
{
    compiler c;
    compiler_init(&c);
    state = 31 * seed + 5;
    tir_func *f = read(&c, text);
    tir_rewriter r = {.c = &c, .expr = reorder};
    f->target = target_find("cortex-m4");
    memory start = fill(f, true), want = copy_of(&start);
    interpret(&c, f, &want);
    f->body = seed > 0 ? tir_rewrite_stmt(&r, f->body) : f->body;
    run_passes(&c, f, "select", "values");
    if (instructions(f) != count)
        fail_msg("%u instructions instead of %u:\n%s", instructions(f), count, text_of(&c, f));
    check_results(&c, f, &start, &want, "values");
    drop(&start);
    drop(&want);
    compiler_free(&c);
}

static void test_values(void **unused)
{
    (void)unused;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        try_values(values, seed, VALUES);
        try_values(pairs, seed, PAIRS);
    }
}

/* --- a program that runs kernels --- */

/* Of any processor, and by the address of its operands: elements that change their order. */
static bool is_shuffled(const tir_intrin *row)
{
    return row->passed && row->features == 0 && strcmp(row->passed, "aa") == 0;
}

/* A row says which processors its kernel is for, or it has lanes, whose text is for all that have vectors. */
static bool is_for(const tir_intrin *row, const target *t)
{
    if (tir_instr_gives_value(row) && !row->selected)
        return !t->small;
    if (!t->small)
        return (t->features & row->features & TARGET_AMX) != 0 || is_shuffled(row);
    return row->features == ((t->features & TARGET_MVE) != 0 ? TARGET_MVE : TARGET_DSP);
}

/* Extents at which kernels do something else, of which few fill a board's memory; of large registers their edges.
 * Sometimes pixels are a vector apart, and results lie without a gap. */
static numbers choose_small(const tir_intrin *row, uint32_t seed)
{
    static const uint8_t heights[] = {1, 40, 16, 15, 17, 32, 33, 31, 2};
    const bool large = (row->features & TARGET_AMX) != 0;
    static const uint8_t lengths[] = {1, 33, 2, 3, 16, 15, 4, 32, 6};
    const bool dense = seed % 4 == 2 && row->n_symbols > 1 && row->symbols[1].max <= 4 &&
                       strcmp(row->symbols[1].name, "r") == 0;
    numbers n = {{0}};
    for (uint32_t i = 0; i < row->n_symbols; i++) {
        const tir_intrin_symbol *s = &row->symbols[i];
        const int64_t most = s->max < 6 ? s->max : 6, unit = s->multiple > 0 ? s->multiple : 1;
        if (row->selected && s->max > 0) { /* of fewer, loops are shorter code */
            n.of[i] = (s->min > 16 ? s->min : 16) + below(9);
            continue;
        }
        if (s->max == 0 && strncmp(s->name, "out", 3) == 0)
            n.of[i] = dense ? 4 : (large ? 32 : 160) + 4 * below(4) + (seed % 3 == 0);
        else if (s->max == 0)
            n.of[i] = unit * (seed % 3 == 2 ? 16 : 1 + below(40));
        else if ((large || is_shuffled(row)) && strcmp(s->name, "m") == 0)
            n.of[i] = heights[(seed + 4) % sizeof heights];
        else if (strcmp(s->name, "n") == 0)
            n.of[i] = lengths[seed % sizeof lengths] < s->max ? lengths[seed % sizeof lengths] : s->max;
        else
            n.of[i] = seed == 0 ? s->min : seed == 1 || dense ? most : s->min + below((uint32_t)(most - s->min + 1));
    }
    return n;
}

/* The region with one more operand, a number that is 0 and that no compiler knows. */
static const char *with_zero(compiler *c, const char *text)
{
    const char *params = strstr(text, "primfn(") + 7, *inputs = strstr(text, "\"inputs\": ") + 10,
               *buffers = strstr(text, "buffers = {") + 11;
    return arena_printf(&c->mem, "primfn(zero: handle, %.*s%c%.*szero: Buffer(int32, [1]), %s", (int)(inputs - params),
                        params, *inputs + 1, (int)(buffers - inputs - 1), inputs + 1, buffers);
}

/* An open number is no constant of the C: zero is added to it. */
static tir_expr_ref open_numbers(tir_rewriter *r, tir_expr_ref e)
{
    if (e->kind != TIR_INSTR)
        return e;
    tir_expr_ref args[OPERANDS + TIR_INTRIN_SYMBOLS], zero = tir_int(r->c, DT_I64, 0);
    for (uint32_t i = 0; i < e->n_args; i++) {
        args[i] = e->args[i];
        if (i >= tir_instr_operands(e->u.row) && tir_instr_symbol(e->u.row, i)->open)
            args[i] = tir_add(r->c, args[i], tir_cast(r->c, args[i]->type.dt, tir_load(r->c, r->ctx, 1, &zero)));
    }
    return tir_instr(r->c, e->u.row, e->op, e->n_args, args);
}

typedef struct program {
    const target *t;
    writer functions, table;
    compiler c;
    c_needs needs;
    uint32_t count;
} program;

static void write_function(program *p, const tir_func *f, const char *kind)
{
    if (!func_write(&p->c, &p->functions, &p->needs, f, "static ", arena_printf(&p->c.mem, "%s_%u", kind, p->count)))
        fail_msg("%s", diags_print(&p->c.diags, &p->c.mem));
    w_fmt(&p->functions, "\nstatic void call_%s_%u(void *const *m)\n{\n    %s_%u(", kind, p->count, kind, p->count);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(&p->functions, "m[%u], ", i);
    w_str(&p->functions, "0, 1);\n}\n\n");
}

/* What is run: a row and its numbers (NULL: of no row), several runs at once, and what it should cost. */
typedef struct subject {
    const char *name;
    const tir_intrin *row;
    const numbers *n;
    uint32_t runs;
} subject;

static const char *label_of(program *p, const subject *x)
{
    writer w;
    writer_init(&w, &p->c.mem);
    w_str(&w, x->name);
    if (x->row && x->row->selected)
        w_str(&w, ", and copies of its result,");
    for (uint32_t i = 0; x->row && i < x->row->n_symbols; i++)
        w_fmt(&w, " %s=%lld", x->row->symbols[i].name, (long long)x->n->of[i]);
    if (x->runs > 1)
        w_fmt(&w, " runs=%u", x->runs);
    return w.data;
}

static double cost_of(const subject *x)
{
    if (!x->row || !x->row->cost)
        return 0;
    tir_intrin_use use = {.row = x->row, .runs = x->runs, .words = true, .fast = true};
    memcpy(use.of, x->n->of, sizeof use.of);
    return x->row->cost(&use);
}

static void add_kernel(program *p, subject x, tir_func *plain, tir_func *kernel, bool adds)
{
    write_function(p, plain, "nest");
    write_function(p, kernel, "kernel");
    w_fmt(&p->table, "    {\"%s\", %.1f, call_nest_%u, call_kernel_%u, %d, %u, {", label_of(p, &x), cost_of(&x),
          p->count, p->count, adds, plain->n_params);
    for (uint32_t i = 0; i < plain->n_params; i++)
        w_fmt(&p->table, "%s%zu", i ? ", " : "", bytes_of(plain->params[i]));
    w_fmt(&p->table, "}, %d},\n", strcmp(plain->params[0]->name, "zero") == 0);
    p->count++;
}

static void add_region(program *p, const tir_intrin *row, const numbers *n, bool update, bool open)
{
    const char *text = region(&p->c, row, n, update);
    tir_func *plain = read(&p->c, open ? with_zero(&p->c, text) : text);
    if (row->selected)
        keep_inside(&p->c, plain);
    tir_func *kernel = arena_copy(&p->c.mem, plain, sizeof *plain, _Alignof(tir_func));
    plain->target = kernel->target = p->t;
    run_passes(&p->c, kernel, passes_of(row), row->name);
    if (open) {
        tir_rewriter r = {.c = &p->c, .expr = open_numbers, .ctx = (void *)(uintptr_t)plain->params[0]};
        kernel->body = tir_rewrite_stmt(&r, kernel->body);
    }
    add_kernel(p, (subject){row->name, row, n, 1}, plain, kernel, update);
}

/* Three runs at once, beside the same one after the other. */
static void add_runs(program *p, const tir_intrin *row, const numbers *n)
{
    static const char text[] = "primfn(A: handle, W: handle, O: handle) -> ()\n"
                               "  attr = {\"global_symbol\": \"f\", \"inputs\": 2}\n"
                               "  buffers = {A: Buffer(int16, [6144], align=4), W: Buffer(int8, [4096], align=4),\n"
                               "             O: Buffer(int32, [12])} {\n"
                               "  for (i: int64, 0, 3) {\n"
                               "    @%s.update(&O[0], &A[(((i + 2) %% 3)*1200)], &W[(i*%lld)], m=%lld, r=%lld, n=%lld, "
                               "a_row=%lld, a_step=%lld)\n"
                               "  }\n}\n";
    const int64_t *v = n->of, weights = v[1] * v[2] * 4;
    const char *filled = arena_printf(&p->c.mem, text, row->name, (long long)weights, (long long)v[0],
                                      (long long)v[1], (long long)v[2], (long long)v[3], (long long)v[4]);
    tir_func *plain = read(&p->c, filled), *kernel = arena_copy(&p->c.mem, plain, sizeof *plain, _Alignof(tir_func));
    plain->target = kernel->target = p->t;
    run_passes(&p->c, kernel, "join-runs", row->name);
    assert_int_equal(tir_instr_runs(kernel->body->value), 3);
    add_kernel(p, (subject){row->name, row, n, 3}, plain, kernel, true);
}

/* A row that computes less than its nest is compared with that. */
static void add_value(program *p, const tir_intrin *row, const numbers *n)
{
    tir_func *kernel = read(&p->c, region(&p->c, row, n, true)), *plain;
    if (row->does)
        plain = read(&p->c, region_of(&p->c, row, row->does, n, true));
    else
        plain = arena_copy(&p->c.mem, kernel, sizeof *kernel, _Alignof(tir_func));
    plain->target = kernel->target = p->t;
    run_passes(&p->c, kernel, "simplify-loops,tensorize", row->name);
    add_kernel(p, (subject){row->name, row, n, 1}, plain, kernel, true);
}

/* Lanes as many as each processor has; tiles of two rows, in whose data the pieces lie next to each other or apart. */
static void add_lanes(program *p, const tir_intrin *row)
{
    static const numbers vectors[] = {{{2}}, {{4}}, {{8}}, {{16}}, {{32}}},
                         tiles[] = {{{2, 8, 4}}, {{2, 16, 4}}, {{2, 4, 8}}, {{2, 20, 12}}};
    const numbers *all = row->lanes ? tiles : vectors;
    const size_t count = row->lanes ? sizeof tiles / sizeof *tiles : sizeof vectors / sizeof *vectors;
    for (size_t i = 0; i < count; i++)
        add_value(p, row, &all[i]);
}

static void add_row(const tir_intrin *row, void *ctx)
{
    program *p = ctx;
    bool any_open = false;
    if (is_for(row, p->t) && tir_instr_gives_value(row) && !row->selected) {
        add_lanes(p, row);
        return;
    }
    for (uint32_t i = 0; i < row->n_symbols; i++)
        any_open |= row->symbols[i].open;
    for (uint32_t seed = 0; is_for(row, p->t) && !row->guarded && !row->few && seed < SEEDS + 3; seed++) {
        state = 104729 * seed + 31;
        const numbers n = choose_small(row, seed);
        if (row->update)
            add_region(p, row, &n, true, any_open && seed % 2);
        if (row->body)
            add_region(p, row, &n, false, any_open && seed % 2);
        if (row->runs)
            add_runs(p, row, &n);
    }
}

static void add_four_bytes(program *p)
{
    tir_func *plain = read(&p->c, four_bytes), *kernel = arena_new(&p->c.mem, tir_func);
    *kernel = *plain;
    plain->target = kernel->target = p->t;
    run_passes(&p->c, kernel, "select", "words");
    add_kernel(p, (subject){"words", NULL, NULL, 1}, plain, kernel, false);
}

static const char table_text[] =
    "static const struct {\n    const char *row;\n    double cost;\n"
    "    void (*nest)(void *const *), (*kernel)(void *const *);\n"
    "    int adds;\n    unsigned n;\n    unsigned long bytes[8];\n    int zero;\n} tests[] = {\n";

/* An operand has a margin on both sides, which nobody may write. SUMS_WRAP: microcontrollers get no sums that leave 32
 * bits (graph/op/rows.c). */
static const char program_text[] =
    "};\n\nenum { MARGIN = 64, MOST = 1 << 14 };\n"
    "static union {\n    double align;\n    unsigned char bytes[MOST];\n} memory[3][8];\n"
    "static uint32_t state = 1;\n\n"
    "#if defined(TIMES)\n"
    "#if defined(__arm__)\n"
    "uint64_t board_instructions(void);\n"
    "static double now(void)\n{\n    return (double)board_instructions();\n}\n"
    "#else\n"
    "#include <time.h>\n"
    "static double now(void) /* in nanoseconds */\n{\n    return (double)clock() * (1e9 / CLOCKS_PER_SEC);\n}\n"
    "#endif\n\n"
    "static double takes(void (*fn)(void *const *), void *const *m)\n{\n    double start;\n    long k;\n"
    "    fn(m);\n    start = now();\n    for (k = 0; k < TIMES; k++)\n        fn(m);\n"
    "    return (now() - start) / TIMES;\n}\n\n"
    "int main(void) /* all operands are 0 */\n{\n    unsigned t, i;\n"
    "    void *m[8];\n    for (i = 0; i < 8; i++)\n        m[i] = memory[0][i].bytes + MARGIN;\n"
    "    for (t = 0; t < sizeof tests / sizeof *tests; t++)\n"
    "        printf(\"%10.1f %10.1f %10.1f  %s\\n\", takes(tests[t].kernel, m), takes(tests[t].nest, m),\n"
    "               tests[t].cost, tests[t].row);\n"
    "    return 0;\n}\n"
    "#else\n"
    "int main(void)\n{\n    unsigned t, i, k, round, wrong = 0;\n"
    "    for (t = 0; t < sizeof tests / sizeof *tests; t++)\n"
    "        for (round = 0; round < 4; round++) {\n"
    "            void *m[3][8];\n"
    "            const unsigned out = tests[t].n - 1, bytes = (unsigned)tests[t].bytes[out];\n"
    "            unsigned bad = 0;\n"
    "            for (i = 0; i < tests[t].n; i++)\n"
    "                for (k = 0; k < tests[t].bytes[i] + 2 * MARGIN; k++) {\n"
    "                    unsigned char b;\n"
    "                    state = state * 1664525u + 1013904223u;\n"
    "                    b = (unsigned char)(state >> 24);\n"
    "                    b = round == 1 && i != out ? (b & 1 ? 0x80 : 0x7f) : b;\n"
    "                    if (!SUMS_WRAP && i == out && tests[t].adds && k % 4 == 3) /* sums that are not large */\n"
    "                        b = memory[0][i].bytes[k - 1] & 0x80 ? 0xff : 0;\n"
    "                    if (SUMS_WRAP && i == out && tests[t].adds && round == 1) /* the largest and the least */\n"
    "                        b = (k % 4 == 3 ? 0x7f : 0xff) ^ (k / 4 % 2 ? 0xff : 0);\n"
    "                    memory[0][i].bytes[k] = memory[1][i].bytes[k] = memory[2][i].bytes[k] = b;\n"
    "                    if (i == out && !tests[t].adds && k >= MARGIN && k < MARGIN + bytes)\n"
    "                        memory[1][i].bytes[k] ^= 0xff;\n"
    "                }\n"
    "            for (i = 0; i < tests[t].n; i++)\n"
    "                for (k = 0; k < 3; k++)\n                    m[k][i] = memory[k][i].bytes + MARGIN;\n"
    "            for (k = 0; tests[t].zero && k < 3; k++)\n                memset(m[k][0], 0, 4);\n"
    "            tests[t].nest(m[0]);\n            tests[t].nest(m[1]);\n            tests[t].kernel(m[2]);\n"
    "            /* what both runs of the nest give is a result; the rest nobody reads */\n"
    "            for (k = 0; k < bytes + 2 * MARGIN; k++) {\n"
    "                const unsigned char a = memory[0][out].bytes[k], b = memory[2][out].bytes[k];\n"
    "                bad += (k < MARGIN || k >= MARGIN + bytes || a == memory[1][out].bytes[k]) && a != b;\n"
    "            }\n"
    "            for (i = 0; i < out; i++)\n                for (k = 0; k < tests[t].bytes[i] + 2 * MARGIN; k++)\n"
    "                    bad += memory[0][i].bytes[k] != memory[2][i].bytes[k];\n"
    "            if (bad)\n                printf(\"FAILED %s, number %u, round %u: %u bytes differ\\n\", "
    "tests[t].row, t, round, bad);\n"
    "            wrong += bad != 0;\n"
    "        }\n"
    "    printf(\"%u kernels, %u wrong\\n\", t, wrong);\n    return wrong != 0;\n}\n#endif\n";

static int write_program(const char *target_name, const char *path)
{
    program p = {.t = target_find(target_name)};
    compiler_init(&p.c);
    writer_init(&p.functions, &p.c.mem);
    writer_init(&p.table, &p.c.mem);
    p.needs = (c_needs){.a = &p.c.mem, .vector_bytes = p.t->vector_bytes,
                        .family = c_family_of(p.t), .neon = !p.t->small, .riscv = !p.t->small};
    each_row(add_row, &p);
    if ((p.t->features & (TARGET_DSP | TARGET_MVE)) == TARGET_DSP)
        add_four_bytes(&p);
    writer w;
    writer_init(&w, &p.c.mem);
    w_str(&w, "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n\n");
    w_fmt(&w, "enum { SUMS_WRAP = %d };\n", !p.t->small);
    needs_write(&p.c.mem, &w, &p.needs);
    w_str(&w, p.functions.data);
    w_str(&w, table_text);
    w_str(&w, p.table.data);
    w_str(&w, program_text);
    FILE *f = fopen(path, "w");
    const bool written = f && fwrite(w.data, 1, w.len, f) == w.len;
    if (f)
        fclose(f);
    compiler_free(&p.c);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return write_program(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_they_are),
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_four_bytes), cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
