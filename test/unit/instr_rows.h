/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, row by row (tir/instr.h), for tests: their nests with numbers for the symbols, read as functions. */
#ifndef LATHE_TEST_INSTR_ROWS_H
#define LATHE_TEST_INSTR_ROWS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tir/build.h"
#include "tir/instr.h"
#include "tir/interpret.h"
#include "tir/pass.h"
#include "tir/text.h"

#define SEEDS    6
#define OPERANDS TIR_INTRIN_OPERANDS

static uint32_t state;

static inline uint32_t below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

typedef struct numbers {
    int64_t of[TIR_INTRIN_SYMBOLS];
} numbers;

static inline const char *number_of(compiler *c, const tir_intrin *row, const numbers *n, const char *word)
{
    for (uint32_t i = 0; i < row->n_symbols; i++)
        if (strcmp(row->symbols[i].name, word) == 0)
            return arena_printf(&c->mem, "%lld", (long long)n->of[i]);
    return word;
}

/* A nest of the row with numbers, marked for tensorize; `update`: without the stores of the identity. */
static inline const char *region_of(compiler *c, const tir_intrin *row, const char *nest, const numbers *n,
                                    bool update)
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

static inline const char *region(compiler *c, const tir_intrin *row, const numbers *n, bool update)
{
    return region_of(c, row, row->nest, n, update);
}

static inline tir_func *read(compiler *c, const char *text)
{
    tir_module *m;
    if (!tir_parse(c, "region", text, strlen(text), &m))
        fail_msg("%s", diags_print(&c->diags, &c->mem));
    return m->funcs.data[0];
}

/* An extent: a number, the product of two, or the smaller one. */
static inline int64_t extent_of(tir_expr_ref e)
{
    int64_t v = 0;
    if (tir_is_int(e, &v))
        return v;
    assert_true(e->kind == TIR_BINOP && (e->op == TIR_MUL || e->op == TIR_MIN));
    const int64_t a = extent_of(e->args[0]), b = extent_of(e->args[1]);
    return e->op == TIR_MUL ? a * b : a < b ? a : b;
}

static inline size_t bytes_of(const tir_buffer *b)
{
    int64_t last = 0, count = 1, stride = 0;
    for (uint32_t i = b->rank; i-- > 0;) {
        const int64_t extent = extent_of(b->shape[i]);
        stride = count;
        if (b->strides)
            assert_true(tir_is_int(b->strides[i], &stride));
        if (extent == 0)
            return 0;
        last += (extent - 1) * stride;
        count *= extent;
    }
    return (size_t)(last + 1) * dtype_bytes(b->dt);
}

static inline void run_passes(compiler *c, tir_func *f, const char *names, const char *row)
{
    tir_module m = {.c = c};
    vec_push(&c->mem, &m.funcs, f);
    if (!tir_run_passes(c, &m, names, false, NULL))
        fail_msg("%s is lost: %s", row, diags_print(&c->diags, &c->mem));
}

/* Loops of instructions on four bytes: extremes of two rows, of a window, and with what is left of ten; sums of a
 * window, which are many. */
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

static inline void each_intrin(void (*fn)(const tir_intrin *row, void *ctx), void *ctx)
{
    compiler c;
    compiler_init(&c);
    char *all = arena_strdup(&c.mem, tir_list_intrins(&c)), *rest = NULL;
    for (char *name = strtok_r(all, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        fn(tir_find_intrin(&c, name), ctx);
    compiler_free(&c);
}
#endif
