/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, row by row (tir/instr.h): the row's own nest, with numbers for its symbols, is a region. However its
 * sums and products are ordered, tensorize makes the same instructions of it; and the interpreter computes the same
 * before that pass, behind it, and behind all passes for a processor. Nests that are less exact than what they stand
 * for are compared with their arithmetic in C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        n.of[i] = seed == 0 ? s->min : seed == 1 ? most : s->min + below((uint32_t)(most - s->min + 1));
        n.of[i] -= n.of[i] % s->multiple;
        n.of[i] = i == 0 && row->lanes ? most : n.of[i]; /* a smaller tile writes lanes that nobody reads */
        widest *= n.of[i];
    }
    for (uint32_t i = 0; i < row->n_symbols; i++)
        if (row->symbols[i].max == 0)
            n.of[i] = strncmp(row->symbols[i].name, "out", 3) == 0 ? 8 * widest : 1 + below(40);
    return n;
}

static const char *number_of(compiler *c, const tir_intrin *row, const numbers *n, const char *word)
{
    for (uint32_t i = 0; i < row->n_symbols; i++)
        if (strcmp(row->symbols[i].name, word) == 0)
            return arena_printf(&c->mem, "%lld", (long long)n->of[i]);
    return word;
}

/* The nest with numbers, marked; `update`: without the stores of the identity. */
static const char *region(compiler *c, const tir_intrin *row, const numbers *n, bool update)
{
    static const char one_apart[] = ", strides=[1]";
    writer w;
    bool marked = false;
    writer_init(&w, &c->mem);
    for (const char *p = row->nest; *p;) {
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

static tir_func *read(compiler *c, const char *text)
{
    tir_module *m;
    if (!tir_parse(c, "region", text, strlen(text), &m))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return m->funcs.data[0];
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
    return tir_instr_gives_value(row) && row->lanes == 0 ? (uint32_t)__builtin_popcountll((uint64_t)n->of[0]) : 1;
}

typedef struct memory {
    uint8_t *at[OPERANDS];
    size_t bytes[OPERANDS];
} memory;

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
    const uint32_t out = f->n_params - 1;
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
    tir_rewriter r = {.c = &c, .expr = reorder};
    memory start = fill(f, row->does != NULL), want = copy_of(&start);
    interpret(&c, f, &want);
    f->target = target_find(processor);
    assert_non_null(f->target);
    if (reordered)
        f->body = tir_rewrite_stmt(&r, f->body);
    tir_func *whole = arena_copy(&c.mem, f, sizeof *f, _Alignof(tir_func));
    run_passes(&c, f, "simplify-loops,tensorize", row->name);
    if (instructions(f) != expected(row, n))
        fail_msg("%s: %u instructions instead of %u for\n%s", row->name, instructions(f), expected(row, n), text);
    check_results(&c, f, &start, &want, row->name);
    run_passes(&c, whole, NULL, row->name);
    if (instructions(whole) != expected(row, n))
        fail_msg("%s: the passes for %s lose it", row->name, processor);
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
    static const char *const targets[] = {"x86-64-v3", "cortex-m4"};
    const bool reordered = *(bool *)ctx;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        state = 7919 * seed + 17;
        numbers n = choose(row, seed);
        const char *processor = targets[!tir_instr_gives_value(row)];
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_they_are),
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
