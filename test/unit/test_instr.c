/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, row by row (tir/instr.h): the row's own nest, with numbers for its symbols, is a region. However its
 * sums and products are ordered, tensorize or select makes the same instructions of it. The interpreter computes the
 * same before that pass, behind it, and behind all passes for a processor. Nests that are less exact than what they
 * stand for are compared with their arithmetic in C. What their kernels compute: test_kernels.c. */
#include "instr_rows.h"

#include "tir/node.h"
#include "tir/walk.h"
#include "type/target.h"

/* --- a region --- */

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

/* The pass that makes the instruction of a region. */
static const char *passes_of(const tir_intrin *row)
{
    return !row->selected  ? "simplify-loops,tensorize"
           : row->lanes > 0 ? "simplify-loops,vectorize,select"
                            : "simplify-loops,select";
}

/* --- results that nobody else has --- */

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

static void try_row(const tir_intrin *row, void *ctx)
{
    const bool reordered = *(bool *)ctx;
    if (!tir_intrin_is_instr(row))
        return;
    /* Else no region is one of these alone. */
    const bool alone = !row->guarded && !row->inside && (!row->few || row->lanes);
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
    each_intrin(try_row, &(bool){false});
}

static void test_in_any_order(void **unused)
{
    (void)unused;
    each_intrin(try_row, &(bool){true});
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

int main(void)
{
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
