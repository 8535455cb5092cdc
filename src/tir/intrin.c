/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in tensor intrinsics, those for any processor here and others in their folders (src/target), and the
 * registry of those that users add. */
#include "tir/intrin.h"
#include "tir/family.h"
#include "tir/instr.h"
#include "tir/map.h"
#include "tir/names.h"
#include "tir/tables.h"

#include <inttypes.h>
#include <string.h>

struct tir_intrin_list {
    VEC(const tir_intrin *) rows;
    tir_map forms; /* row -> tir_instr_form */
};

static struct tir_intrin_list *list_of(compiler *c)
{
    if (!c->intrins) {
        c->intrins = arena_new(&c->mem, struct tir_intrin_list);
        tir_map_init(&c->intrins->forms, &c->mem);
    }
    return c->intrins;
}

/* Lines of numbers as columns. Rows of a whole image are moved at once: the kernel cuts them into blocks. */
#define TRANSPOSE(NAME, OF, TYPE, KERNEL)                                                                              \
    {.name = NAME,                                                                                                     \
     .help = "lines of " OF " as columns: out[j, i] = a[i, j]",                                                        \
     .nest = "primfn(a: handle, out: handle) -> ()\n"                                                                  \
             "  attr = {\"global_symbol\": \"" NAME "\", \"inputs\": 1}\n"                                             \
             "  buffers = {a: Buffer(" TYPE ", [m, n], strides=[a_row, 1]),\n"                                         \
             "             out: Buffer(" TYPE ", [n, m], strides=[out_row, 1])} {\n"                                   \
             "  for (i: int64, 0, m) {\n"                                                                              \
             "    for (j: int64, 0, n) {\n"                                                                            \
             "      out[j, i] = (" TYPE "*)a[i, j]\n"                                                                  \
             "    }\n"                                                                                                 \
             "  }\n"                                                                                                   \
             "}\n",                                                                                                    \
     .n_symbols = 4,                                                                                                   \
     .symbols = {TIR_EXTENT("m", 1 << 20), TIR_EXTENT("n", 1 << 20), TIR_STRIDE("a_row"), TIR_STRIDE("out_row")},      \
     .body = TIR_INSTRUCTION,                                                                                          \
     .passed = "aa",                                                                                                   \
     .call = "lathe_" KERNEL "(out, a, m, n, a_row, out_row)",                                                         \
     .kernel = "kernel/lanes/" KERNEL ".h"}

const char tir_vectors_of_table[] = "vectors_of_table";

/* One by one, as it is without vectors. */
static double cost_of_table(const tir_intrin_use *use)
{
    return 100 + 4 * (double)use->of[0];
}

static double cost_of_any(const tir_intrin_use *use)
{
    (void)use;
    return 8; /* two loads of words that may begin anywhere */
}

#define EITHER(i, j) "((uint8*)x[" #i "] | (uint8*)x[" #j "])"
#define FOUR(i, j, k, l) "(" EITHER(i, j) " | " EITHER(k, l) ")"
#define ANY(n, value)                                                                                                  \
    {.name = "any_of_" #n,                                                                                             \
     .help = "whether any of " #n " neighboring bytes is not 0",                                                       \
     .nest = "primfn(x: handle, out: handle) -> ()\n"                                                                  \
             "  attr = {\"global_symbol\": \"any\", \"inputs\": 1}\n"                                                  \
             "  buffers = {x: Buffer(uint8, [" #n "]), out: Buffer(bool, [1])} {\n"                                    \
             "  out[0] = (" value " != uint8(0))\n}\n",                                                                \
     .call = "lathe_any_" #n "(x)",                                                                                    \
     .kernel = "kernel/common/any_bytes.h",                                                                            \
     .body = TIR_INSTRUCTION,                                                                                          \
     .passed = "av",                                                                                                   \
     .makes = DT_BOOL,                                                                                                 \
     .selected = true,                                                                                                 \
     .cost = cost_of_any}

static const tir_intrin built_in[] = {
    {.name = "fma_tile",
     .help = "a register tile: out[i, j] = fma(a[i], b[j], out[i, j])",
     .nest = "primfn(a: handle, b: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"fma_tile\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(float32, [m], strides=[a_row]), b: Buffer(float32, [n], strides=[1]),\n"
             "             out: Buffer(float32, [m, n], strides=[out_row, 1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    for (j: int64, 0, n) {\n"
             "      out[i, j] = 0.0\n"
             "      out[i, j] = ((float32*)out[i, j] + ((float32*)a[i]*(float32*)b[j]))\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 4,
     .symbols = {TIR_EXTENT("m", 16), TIR_EXTENT("n", 64), TIR_STRIDE("a_row"), TIR_STRIDE("out_row")},
     .reset = "for (i: int64, 0, m) \"unrolled\" { for (j: int64, 0, n) \"vectorized\" { out[i, j] = 0.0 } }",
     .update = "for (i: int64, 0, m) \"unrolled\" { for (j: int64, 0, n) \"vectorized\" {\n"
               "  out[i, j] = fma((float32*)a[i], (float32*)b[j], (float32*)out[i, j]) } }"},
    TRANSPOSE("transpose_tile", "floats", "float32", "transpose"),
    TIR_TABLES("vectors_of_table", "kernel/lanes/table.h", cost_of_table, 0),
    TRANSPOSE("transpose_u8", "bytes", "uint8", "transpose_bytes"),
    TRANSPOSE("transpose_i8", "bytes", "int8", "transpose_bytes"),
    TRANSPOSE("transpose_f16", "numbers of 16 bits", "float16", "transpose_halves"),
    TRANSPOSE("transpose_i16", "numbers of 16 bits", "int16", "transpose_halves"),
    ANY(4, FOUR(0, 1, 2, 3)),
    ANY(8, "(" FOUR(0, 1, 2, 3) " | " FOUR(4, 5, 6, 7) ")"),
};
static const tir_instructions of_any = {built_in, sizeof built_in / sizeof *built_in};

static const tir_instructions *const sets[] = {
    &of_any,
    &tir_instructions_dot,
    &tir_instructions_round,
#define TARGET_INSTRUCTIONS(name) &tir_instructions_##name,
#include "target/targets.def"
};

/* NULL: there are no more. */
static const tir_intrin *row_at(const compiler *c, uint32_t i)
{
    for (uint32_t k = 0; k < sizeof sets / sizeof *sets; i -= sets[k]->n, k++)
        if (i < sets[k]->n)
            return &sets[k]->rows[i];
    return c->intrins && i < c->intrins->rows.len ? c->intrins->rows.data[i] : NULL;
}

const tir_intrin *tir_find_intrin(const compiler *c, const char *name)
{
    const tir_intrin *row;
    for (uint32_t i = 0; (row = row_at(c, i)); i++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* What a row from elsewhere lacks, a sentence without its subject; NULL: nothing that can be seen before its nest is
 * read. */
static const char *fault_of(const tir_intrin *row)
{
    if (!row->nest && !row->configure)
        return "has no nest, which says what it computes";
    if (row->n_symbols > TIR_INTRIN_SYMBOLS)
        return "has more symbols than there is room for";
    for (uint32_t i = 0; i < row->n_symbols; i++)
        if (!row->symbols[i].name)
            return "has symbols without a name";
    if (!row->body && !row->update)
        return "has neither a body nor an update";
    if (row->passed && !row->call)
        return "is an instruction without a call, its text in C";
    return NULL;
}

bool tir_register_intrin(compiler *c, const tir_intrin *row)
{
    if (!row->name || !row->name[0])
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "an intrinsic without a name is registered");
    if (tir_find_intrin(c, row->name))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "intrinsic '%s' is registered twice", row->name);
    const char *fault = fault_of(row);
    if (fault)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "intrinsic '%s' %s", row->name, fault);
    vec_push(&c->mem, &list_of(c)->rows, arena_copy(&c->mem, row, sizeof *row, _Alignof(tir_intrin)));
    return true;
}

const tir_instr_form *tir_known_form(const compiler *c, const tir_intrin *row)
{
    return c->intrins ? tir_map_get(&c->intrins->forms, row) : NULL;
}

void tir_keep_form(compiler *c, const tir_instr_form *f)
{
    tir_map_put(&list_of(c)->forms, f->row, f);
}

const char *tir_list_intrins(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    const tir_intrin *row;
    for (uint32_t i = 0; (row = row_at(c, i)); i++)
        w_fmt(&w, "%s%s", i ? ", " : "", row->name);
    return w.data;
}

static const char *const of_every_target[] = {
#define X(id, text) [id] = text,
    TIR_SCOPES(X)
#undef X
};

/* Is it the memory of an operand of the rows before number `end`? */
static bool is_of_rows(const compiler *c, uint32_t end, const char *scope)
{
    const tir_intrin *row;
    for (uint32_t i = 0; i < end && (row = row_at(c, i)); i++)
        for (uint32_t k = 0; k < TIR_INTRIN_OPERANDS; k++)
            if (row->scopes[k] && strcmp(row->scopes[k], scope) == 0)
                return true;
    return false;
}

bool tir_is_memory(const compiler *c, const char *scope)
{
    for (uint32_t i = 0; i < SCOPE_CUSTOM; i++)
        if (strcmp(of_every_target[i], scope) == 0)
            return true;
    return is_of_rows(c, UINT32_MAX, scope);
}

const char *tir_list_memories(compiler *c)
{
    writer w;
    const tir_intrin *row;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; i < SCOPE_CUSTOM; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", of_every_target[i]);
    for (uint32_t i = 0; (row = row_at(c, i)); i++)
        for (uint32_t k = 0; k < TIR_INTRIN_OPERANDS; k++)
            if (row->scopes[k] && !is_of_rows(c, i, row->scopes[k]))
                w_fmt(&w, ", %s", row->scopes[k]);
    return w.data;
}
