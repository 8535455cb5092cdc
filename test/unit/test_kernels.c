/* SPDX-License-Identifier: Apache-2.0 */
/* The C of instructions (kernel/), row by row (tir/instr.h). With arguments, TARGET FILE, this writes a program that
 * calls the kernel of each row that the target has, with random operands and with numbers for the row's symbols, edges
 * among them. It compares the results with what the interpreter makes of the row's nest with the same operands:
 * test/embedded/kernels.h, which test_kernels.sh runs on each instruction set. Compiled with -DTIMES=N the program is a
 * benchmark: what a call takes on average of N, beside the nest in C. With a third argument, `all`, it has more numbers
 * for symbols. With `rows` alone the rows that no program has are printed, and why.
 *
 * Without arguments: each row is in the program of a target, or there is a reason why not. */
#include "instr_rows.h"

#include <stdio.h>

#include "../embedded/kernels.h"
#include "codegen/c/family.h"
#include "tir/node.h"
#include "tir/walk.h"
#include "type/target.h"

/* --- which rows --- */

/* Of any processor, and by the address of its operands: elements that change their order. */
static bool is_shuffled(const tir_intrin *row)
{
    return row->passed && row->features == 0 && strcmp(row->passed, "aa") == 0;
}

/* A row says which processors its kernel is for, or it has lanes, whose text is for all that have vectors. A target
 * without any of the features of microcontrollers gets those kernels as plain C, but for Helium's. */
static bool is_for(const tir_intrin *row, const target *t)
{
    const uint32_t micro = TARGET_DSP | TARGET_FPU;
    if (!tir_intrin_is_instr(row) || !row->call)
        return false;
    if (row->features == 0)
        return !t->small;
    if (!t->small)
        return (row->features & ~t->features) == 0;
    if ((t->features & micro) == 0)
        return (row->features & ~micro) == 0;
    return (t->features & TARGET_MVE) != 0 ? row->features == TARGET_MVE : (row->features & ~t->features) == 0;
}

/* NULL: there is none. */
static const char *reason_of(const tir_intrin *row)
{
    if (!tir_intrin_is_instr(row))
        return row->configure ? "calls of a device's runtime take its place"
                              : "statements of the loop IR take its place";
    return NULL;
}

/* --- numbers for symbols --- */

/* The integers of few bits that the row is about. */
static dtype narrow_of(compiler *c, const tir_intrin *row)
{
    const tir_instr_form *f = tir_instr_form_of(c, row);
    dtype found = DT_I8;
    for (uint32_t i = 0; i < f->n_operands; i++)
        if (dtype_is_int(f->params[i]->dt) && dtype_bytes(f->params[i]->dt) < 4 &&
            (i == 0 || dtype_bytes(f->params[0]->dt) >= 4))
            found = f->params[i]->dt;
    return row->bytes != DT_NONE ? row->bytes : found;
}

/* One of the type's, its ends among them. */
static int64_t one_of(dtype dt, uint32_t seed)
{
    const uint32_t bits = 8 * (uint32_t)dtype_bytes(dt);
    const int64_t least = dtype_is_signed(dt) ? -((int64_t)1 << (bits - 1)) : 0;
    const int64_t most = least + ((int64_t)1 << bits) - 1;
    return seed % 4 == 0 ? least : seed % 4 == 1 ? most : least + below((uint32_t)1 << bits);
}

/* What is no extent and no plain stride. */
static bool choose_by_name(compiler *c, const tir_intrin *row, uint32_t seed, uint32_t i, numbers *n)
{
    const char *name = row->symbols[i].name;
    if (strcmp(name, "zero") == 0 || strcmp(name, "least") == 0)
        n->of[i] = one_of(narrow_of(c, row), seed);
    else if (strcmp(name, "most") == 0) /* behind the least */
        n->of[i] = n->of[i - 1] + below((uint32_t)(one_of(narrow_of(c, row), 1) - n->of[i - 1] + 1));
    else if (strcmp(name, "some") == 0)
        n->of[i] = below((uint32_t)n->of[0] + 2);
    else if (strcmp(name, "right") == 0)
        n->of[i] = seed % 2 == 0 ? seed / 2 % 16 : 31 - seed / 2 % 16;
    else if (strcmp(name, "step") == 0 && row->selected)
        n->of[i] = 4 + below(6);
    else
        return false;
    return true;
}

static int64_t stride_of(const tir_intrin *row, const tir_intrin_symbol *s, uint32_t seed, bool dense)
{
    const bool large = (row->features & TARGET_AMX) != 0;
    const int64_t unit = s->multiple > 0 ? s->multiple : 1;
    const uint32_t least = row->selected ? 300 : large ? 32 : is_shuffled(row) ? 44 : 160;
    if (strncmp(s->name, "out", 3) == 0)
        return dense ? 4 : least + 4 * below(4) + (unit == 1 && seed % 3 == 0);
    return unit * (seed % 3 == 2 ? 16 : 1 + below(40));
}

/* Of loops over bytes vectors, too. */
static int64_t length_of(const tir_intrin *row, uint32_t seed)
{
    static const uint8_t some[] = {1, 33, 2, 3, 16, 15, 4, 32, 6}, of_bytes[] = {1, 33, 3, 70, 16, 139};
    if (seed >= sizeof some)
        return 1 + below(row->n_symbols < 4 ? 139 : 33);
    return row->n_symbols < 4 && seed < sizeof of_bytes ? of_bytes[seed] : some[seed];
}

/* Extents at which kernels do something else, of which few fill a board's memory; of large registers their edges.
 * Sometimes pixels are a vector apart, and results lie without a gap. */
static numbers choose_small(compiler *c, const tir_intrin *row, uint32_t seed)
{
    static const uint8_t heights[] = {1, 40, 16, 15, 17, 32, 33, 31, 2};
    const bool large = (row->features & TARGET_AMX) != 0 || is_shuffled(row);
    const bool dense = seed % 4 == 2 && row->n_symbols > 1 && row->symbols[1].max <= 4 &&
                       strcmp(row->symbols[1].name, "r") == 0;
    numbers n = {{0}};
    for (uint32_t i = 0; i < row->n_symbols; i++) {
        const tir_intrin_symbol *s = &row->symbols[i];
        const int64_t most = s->max < 6 ? s->max : 6, length = length_of(row, seed);
        if (choose_by_name(c, row, seed, i, &n))
            continue;
        if (s->max == 0)
            n.of[i] = stride_of(row, s, seed, dense);
        else if (large && strcmp(s->name, "m") == 0)
            n.of[i] = heights[(seed + 4) % sizeof heights];
        else if (strcmp(s->name, "n") == 0 || strcmp(s->name, "columns") == 0)
            n.of[i] = length < s->min ? s->min + (seed == 0 ? 0 : length) : length < s->max ? length : s->max;
        else
            n.of[i] = seed == 0 ? s->min : seed == 1 || dense ? most : s->min + below((uint32_t)(most - s->min + 1));
    }
    return n;
}

/* --- numbers for operands --- */

/* Bits of numbers that rows with sums of products take: more would leave 32 bits. The rules that take them have proved
 * that nothing does. */
static uint8_t bits_of(const tir_intrin *row, const char *name)
{
    static const struct {
        const char *row, *operand;
        uint8_t bits;
    } all[] = {{"", "more", 30},     {"word_by", "x", 16},    {"word_by", "by", 15},  {"weighted", "a", 15},
               {"weighted", "b", 15}, {"weighted", "f", 14},   {"weighted", "g", 14},  {"weighted", "ka", 14},
               {"weighted", "kb", 14}, {"twice", "acc", 30},   {"dot_pairs", "a", 12},
               {"dot_pairs", "b", 12}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(row->name, all[i].row) && strcmp(name, all[i].operand) == 0)
            return all[i].bits;
    return 32;
}

static uint8_t floats_of(const tir_intrin *row)
{
    return strstr(row->name, "rounded_number") ? KERNEL_NUMBERS
           : strstr(row->name, "rounded")      ? KERNEL_FLOATS
                                               : KERNEL_FINITE;
}

static uint8_t data_of(const target *t, const tir_intrin *row, const tir_buffer *b, bool sums)
{
    if (b->dt == DT_BOOL)
        return KERNEL_TRUTH;
    if (sums && b->dt == DT_I32)
        return t->small ? KERNEL_SUMS : KERNEL_ENDS;
    if (strncmp(row->name, "any_of", 6) == 0)
        return KERNEL_SPARSE;
    if (b->dt == DT_I16 && bits_of(row, b->name) < 16)
        return KERNEL_INTEGERS;
    if (!row->selected || strcmp(row->passed, "aa") == 0)
        return KERNEL_BITS;
    if (b->dt == DT_F32)
        return floats_of(row);
    if (strcmp(b->name, "shift") == 0)
        return KERNEL_SHIFTS;
    return b->dt != DT_I32 ? KERNEL_BITS : strcmp(b->name, "multiplier") == 0 ? KERNEL_POSITIVE : KERNEL_INTEGERS;
}

/* --- functions that are one instruction --- */

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

static uint16_t elements_of(const tir_buffer *b)
{
    int64_t all = 1;
    for (uint32_t i = 0; i < b->rank; i++)
        all *= extent_of(b->shape[i]);
    return (uint16_t)all;
}

/* Operands as they are behind all passes: elements of memory. */
static void flatten(compiler *c, tir_func *f)
{
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, f->n_params);
    for (uint32_t i = 0; i < f->n_params; i++) {
        const tir_buffer *b = f->params[i];
        const int64_t count = (int64_t)(bytes_of(b) / dtype_bytes(b->dt)), one = 1;
        tir_buffer *flat = arena_copy(&c->mem, tir_buffer_static(c, b->name, b->dt, 1, count > 0 ? &count : &one,
                                                                 SCOPE_GLOBAL),
                                      sizeof *flat, _Alignof(tir_buffer));
        flat->align = b->align;
        params[i] = flat;
    }
    f->params = params;
}

/* The instruction with the operands from `params` on, and these numbers. */
static tir_stmt *instruction(compiler *c, const tir_intrin *row, const tir_buffer *const *params, const numbers *n,
                             bool update)
{
    tir_expr_ref args[OPERANDS + TIR_INTRIN_SYMBOLS], start = tir_int(c, DT_I64, 0);
    const uint32_t count = tir_instr_args(row);
    for (uint32_t i = 0; i < count; i++) {
        if (i >= tir_instr_operands(row)) {
            args[i] = tir_int(c, DT_I32, n->of[tir_instr_symbol(row, i) - row->symbols]);
            continue;
        }
        const tir_buffer *b = params[tir_instr_param(row, i)];
        tir_expr_ref at = tir_instr_by_address(row, i)
                              ? start
                              : tir_ramp(c, start, tir_int(c, DT_I64, 1), elements_of(b));
        args[i] = tir_instr_by_address(row, i) ? tir_address(c, b, 1, &at) : tir_load(c, b, 1, &at);
    }
    tir_expr_ref e = tir_instr(c, row, update ? TIR_ADD : TIR_OP_NONE, count, args);
    if (tir_instr_writes(e))
        return tir_evaluate(c, e);
    tir_expr_ref at = tir_ramp(c, start, tir_int(c, DT_I64, 1), e->type.lanes);
    return tir_store(c, params[tir_instr_params(row) - 1], 1, &at, e);
}

typedef struct program {
    const target *t;
    bool all; /* more numbers for symbols */
    writer functions, nests, table;
    compiler c;
    c_needs needs;
    uint32_t count;
} program;

static void write_function(program *p, writer *w, const tir_func *f, const char *kind)
{
    if (!func_write(&p->c, w, &p->needs, f, "static ", arena_printf(&p->c.mem, "%s_%u", kind, p->count)))
        fail_msg("%s", diags_print(&p->c.diags, &p->c.mem));
    w_fmt(w, "\nstatic void call_%s_%u(void *const *m)\n{\n    %s_%u(", kind, p->count, kind, p->count);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "m[%u], ", i);
    w_str(w, "0, 1);\n}\n\n");
}

/* What is run: a row and its numbers (NULL: of no row), several runs at once, and what it should cost. */
typedef struct subject {
    const char *name;
    const tir_intrin *row;
    const numbers *n;
    uint32_t runs;
    bool sums; /* it adds to its result */
} subject;

static const char *label_of(program *p, const subject *x)
{
    writer w;
    writer_init(&w, &p->c.mem);
    w_str(&w, x->name);
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

/* Up to four rows of bytes side by side, in words: where there are fewer, nobody reads what is behind them. */
static uint32_t gap_of(const subject *x)
{
    return x->row && strcmp(x->row->name, "mve_words") == 0 && x->n->of[1] < 4 ? (uint32_t)x->n->of[1] : 0;
}

/* The sums over what the interpreter computes: behind each of the first rounds, and behind all. */
static void interpreted(program *p, const subject *x, const tir_func *f, const kernel_operand *of, uint32_t want[5])
{
    static uint8_t memory[KERNEL_OPERANDS][KERNEL_MOST];
    const uint32_t out = f->n_params - 1, rounds = kernel_rounds(of, f->n_params), gap = gap_of(x);
    void *at[KERNEL_OPERANDS];
    size_t bytes[KERNEL_OPERANDS];
    uint32_t sum = 1;
    for (uint32_t round = 0; round < rounds; round++) {
        int32_t status = 0;
        for (uint32_t i = 0; i < f->n_params; i++) {
            at[i] = memory[i];
            bytes[i] = of[i].bytes;
            kernel_fill(memory[i], &of[i], p->count, i, round);
        }
        if (!tir_interpret_within(&p->c, f, at, bytes, &status) || status != 0)
            fail_msg("%s: %s", label_of(p, x), diags_print(&p->c.diags, &p->c.mem));
        for (uint32_t k = 0; gap && k < bytes[out]; k++)
            memory[out][k] = k % 4 < gap ? memory[out][k] : 0;
        sum = kernel_sum(sum, memory[out], of[out].bytes);
        want[round < 4 ? round : 4] = sum;
    }
    want[4] = sum;
}

/* `nest`: what it computes; `zero`: whether the kernel's first operand is one more, a 0. */
static void add_kernel(program *p, subject x, const tir_func *nest, const tir_func *kernel, bool zero)
{
    kernel_operand of[KERNEL_OPERANDS] = {{0}};
    uint32_t want[5];
    const tir_buffer *const *params = nest->params + zero;
    tir_func plain = *nest;
    plain.params = params;
    plain.n_params -= zero;
    plain.n_inputs -= zero;
    for (uint32_t i = 0; i < plain.n_params; i++) {
        const tir_buffer *b = params[i];
        const bool sums = x.sums && i + 1 == plain.n_params;
        const uint8_t size = (uint8_t)dtype_bytes(b->dt), align = (uint8_t)(b->align > size ? b->align : size);
        of[i] = (kernel_operand){(uint32_t)bytes_of(b), size, align, KERNEL_BITS, 32};
        if (of[i].bytes + KERNEL_MARGIN + KERNEL_BEHIND > KERNEL_MOST)
            fail_msg("%s: an operand of %u bytes", label_of(p, &x), of[i].bytes);
        if (x.row) {
            of[i].data = data_of(p->t, x.row, b, sums);
            of[i].bits = bits_of(x.row, b->name);
        }
    }
    interpreted(p, &x, &plain, of, want);
    write_function(p, &p->nests, nest, "nest");
    write_function(p, &p->functions, kernel, "kernel");
    w_fmt(&p->table, "    {\"%s\", %.1f, NEST(call_nest_%u) call_kernel_%u, %d, %u, %u, {", label_of(p, &x),
          cost_of(&x), p->count, p->count, zero, gap_of(&x), plain.n_params);
    for (uint32_t i = 0; i < plain.n_params; i++)
        w_fmt(&p->table, "%s{%u, %u, %u, %u, %u}", i ? ", " : "", of[i].bytes, of[i].size, of[i].align, of[i].data,
              of[i].bits);
    w_str(&p->table, "}, {");
    for (uint32_t i = 0; i < 5; i++)
        w_fmt(&p->table, "%s%uu", i ? ", " : "", want[i]);
    w_str(&p->table, "}},\n");
    p->count++;
}

/* A row that computes less than its nest is compared with that. */
static void add_numbers(program *p, const tir_intrin *row, const numbers *n, bool update, bool open)
{
    const char *text = region_of(&p->c, row, row->does ? row->does : row->nest, n, update);
    tir_func *nest = read(&p->c, open ? with_zero(&p->c, text) : text);
    tir_func *kernel = arena_copy(&p->c.mem, nest, sizeof *nest, _Alignof(tir_func));
    nest->target = kernel->target = p->t;
    flatten(&p->c, kernel);
    kernel->body = instruction(&p->c, row, kernel->params + open, n, update);
    if (open) {
        tir_rewriter r = {.c = &p->c, .expr = open_numbers, .ctx = (void *)(uintptr_t)kernel->params[0]};
        kernel->body = tir_rewrite_stmt(&r, kernel->body);
    }
    add_kernel(p, (subject){row->name, row, n, 1, update}, nest, kernel, open);
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
    tir_func *nest = read(&p->c, filled), *kernel = arena_copy(&p->c.mem, nest, sizeof *nest, _Alignof(tir_func));
    nest->target = kernel->target = p->t;
    run_passes(&p->c, kernel, "join-runs", row->name);
    if (p->t->features == 0) /* no processor gains by it */
        return;
    assert_int_equal(tir_instr_runs(kernel->body->value), 3);
    add_kernel(p, (subject){row->name, row, n, 3, true}, nest, kernel, false);
}

/* Lanes as many as each processor has; tiles of two rows, in whose data the pieces lie next to each other or apart. */
static void add_lanes(program *p, const tir_intrin *row)
{
    static const numbers vectors[] = {{{2}}, {{4}}, {{8}}, {{16}}, {{32}}},
                         tiles[] = {{{2, 8, 4}}, {{2, 16, 4}}, {{2, 4, 8}}, {{2, 20, 12}}};
    const numbers *all = row->lanes ? tiles : vectors;
    const size_t count = row->lanes ? sizeof tiles / sizeof *tiles : sizeof vectors / sizeof *vectors;
    for (size_t i = 0; i < count; i++)
        add_numbers(p, row, &all[i], true, false);
}

/* How often other numbers are tried; with `all`, each shift as a constant and as an open number. */
static uint32_t seeds_of(const program *p, const tir_intrin *row)
{
    const bool shifts = row->n_symbols == 1 && strcmp(row->symbols[0].name, "right") == 0;
    if (row->n_symbols == 0)
        return 1;
    return !p->all ? SEEDS + (row->selected ? 0 : 3) : shifts ? 64 : 24;
}

static void add_row(const tir_intrin *row, void *ctx)
{
    program *p = ctx;
    bool any_open = false;
    if (!is_for(row, p->t))
        return;
    if (tir_instr_gives_value(row) && !tir_instr_makes_value(row)) {
        add_lanes(p, row);
        return;
    }
    for (uint32_t i = 0; i < row->n_symbols; i++)
        any_open |= row->symbols[i].open;
    for (uint32_t seed = 0; seed < seeds_of(p, row); seed++) {
        const bool open = any_open && (seed + seed / 32) % 2;
        state = 104729 * seed + 31;
        const numbers n = choose_small(&p->c, row, seed);
        if (row->update)
            add_numbers(p, row, &n, true, open);
        if (row->body)
            add_numbers(p, row, &n, false, open);
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
    add_kernel(p, (subject){"words", NULL, NULL, 1, false}, plain, kernel, false);
}

/* --- programs --- */

static const char table_text[] =
    "#include \"test/embedded/kernels.h\"\n"
    "typedef void function(void *const *);\n"
    "static const struct {\n    const char *row;\n    double cost;\n#if defined(TIMES)\n    function *nest;\n#endif\n"
    "    function *kernel;\n    unsigned zero, gap, n;\n"
    "    kernel_operand of[KERNEL_OPERANDS];\n    uint32_t want[5];\n} tests[] = {\n";

static int write_program(const char *target_name, const char *path, bool all)
{
    program p = {.t = target_find(target_name), .all = all};
    compiler_init(&p.c);
    writer_init(&p.functions, &p.c.mem);
    writer_init(&p.nests, &p.c.mem);
    writer_init(&p.table, &p.c.mem);
    p.needs = (c_needs){.a = &p.c.mem, .vector_bytes = p.t->vector_bytes,
                        .family = c_family_of(p.t), .neon = !p.t->small, .riscv = !p.t->small};
    each_intrin(add_row, &p);
    if ((p.t->features & (TARGET_DSP | TARGET_MVE)) == TARGET_DSP)
        add_four_bytes(&p);
    writer w;
    writer_init(&w, &p.c.mem);
    w_str(&w, "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n\n");
    w_str(&w, "#if defined(TIMES)\n#define NEST(of) of,\n#else\n#define NEST(of)\n#endif\n");
    needs_write(&p.c.mem, &w, &p.needs);
    w_fmt(&w, "%s#if defined(TIMES)\n%s#endif\n%s%s};\n", p.functions.data, p.nests.data, table_text, p.table.data);
    w_str(&w, "#define KERNEL_TESTS\n#include \"test/embedded/kernels.h\"\n");
    FILE *f = fopen(path, "w");
    const bool written = f && fwrite(w.data, 1, w.len, f) == w.len;
    if (f)
        fclose(f);
    compiler_free(&p.c);
    return written ? 0 : 1;
}

/* The targets whose programs test_kernels.sh runs. */
static const char *const targets[] = {"cortex-m4", "cortex-m55", "aarch64", "rv64gcv", "x86-64-v3", "sapphirerapids"};

static bool is_tested(const tir_intrin *row)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (is_for(row, target_find(targets[i])))
            return true;
    return false;
}

static void print_reason(const tir_intrin *row, void *unused)
{
    (void)unused;
    if (!is_tested(row))
        printf("%s: no test of C: %s\n", row->name, reason_of(row) ? reason_of(row) : "NO REASON");
}

static void check_row(const tir_intrin *row, void *ctx)
{
    uint32_t *tested = ctx;
    if (is_tested(row) == (reason_of(row) != NULL))
        fail_msg("%s: it is neither tested nor is there a reason why not, or both", row->name);
    *tested += is_tested(row);
}

static void test_each_row(void **unused)
{
    uint32_t tested = 0;
    (void)unused;
    each_intrin(check_row, &tested);
    assert_true(tested >= 100);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "rows") == 0) {
        each_intrin(print_reason, NULL);
        return 0;
    }
    if (argc >= 3)
        return write_program(argv[1], argv[2], argc > 3);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
