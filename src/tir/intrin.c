/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in tensor intrinsics, and the registry of those that users add. */
#include "tir/intrin.h"

#include "abi/vta_config.h"
#include "tir/instr.h"
#include "tir/map.h"
#include "tir/names.h"
#include "type/vta_text.h"

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

/* --- VTA's GEMM core --- */

/* Loops have values of less than a byte in a byte each; only memory has them packed. */
static const char *vta_type(const vta_geometry *g, enum vta_mem m)
{
    return g->width[m] <= 8 ? "int8" : g->width[m] == 16 ? "int16" : g->width[m] == 32 ? "int32" : NULL;
}

/* One input tile times one weight tile into one accumulator tile: the shapes are those of the device. */
static bool configure_vta_gemm(compiler *c, tir_intrin *row)
{
    vta_geometry g;
    const char *why = NULL, *rule = vta_config_derive(vta_text_config(c), &g, &why);
    if (rule)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "VTA configuration: %s: %s", rule, why);
    const char *inp = vta_type(&g, VTA_MEM_INP), *wgt = vta_type(&g, VTA_MEM_WGT), *acc = vta_type(&g, VTA_MEM_ACC);
    if (!inp || !wgt || !acc)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "vta_gemm: no element type is as wide as the device's numbers");
    row->nest =
        arena_printf(&c->mem,
                     "primfn(inp: handle, wgt: handle, out: handle) -> ()\n"
                     "  attr = {\"global_symbol\": \"vta_gemm\", \"inputs\": 2}\n"
                     "  buffers = {inp: Buffer(%s, [%u, %u], align=%u), wgt: Buffer(%s, [%u, %u], align=%u),\n"
                     "             out: Buffer(%s, [%u, %u], align=%u)} {\n"
                     "  for (i: int64, 0, %u) {\n"
                     "    for (j: int64, 0, %u) {\n"
                     "      out[i, j] = 0\n"
                     "      for (k: int64, 0, %u) {\n"
                     "        out[i, j] = ((%s*)out[i, j] + (cast(%s, (%s*)inp[i, k])*cast(%s, (%s*)wgt[j, k])))\n"
                     "      }\n"
                     "    }\n"
                     "  }\n"
                     "}\n",
                     inp, g.batch, g.block_in, g.elem_bytes[VTA_MEM_INP], wgt, g.block_out, g.block_in,
                     g.elem_bytes[VTA_MEM_WGT], acc, g.batch, g.block_out, g.elem_bytes[VTA_MEM_ACC], g.batch,
                     g.block_out, g.block_in, acc, acc, inp, acc, wgt);
    return true;
}

#define VTA_SCOPES(op) \
    "attr [vta] \"coproc_scope\" = 2 { attr [vta] \"coproc_uop_scope\" = \"VTAPushGEMMOp\" { " op " } }"
#define VTA_MULTIPLY VTA_SCOPES("@tir.vta.uop_push(0, 0, &out[0, 0], &inp[0, 0], &wgt[0, 0], 0, 0, 0)")
#define VTA_RESET    VTA_SCOPES("@tir.vta.uop_push(0, 1, &out[0, 0], 0, 0, 0, 0, 0)")

/* --- rows --- */

/* Elements 1 and 2 of a step of weights have changed places: widening every second byte makes neighbours of them
 * again. */
#define DOT_ROWS(where)\
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"dot_rows\", \"inputs\": 2}\n"                                                     \
    "  buffers = {a: Buffer(int16, [m, n, 2, 2], strides=[a_row, a_step, 2, 1]" where "),\n"                          \
    "             w: Buffer(int8, [n, r, 2, 2]" where "),\n"                                                          \
    "             out: Buffer(int32, [m, r])} {\n"                                                                    \
    "  for (i: int64, 0, m) {\n"                                                                                      \
    "    for (j: int64, 0, r) {\n"                                                                                    \
    "      out[i, j] = 0\n"                                                                                           \
    "      for (k: int64, 0, n) {\n"                                                                                  \
    "        for (pair: int64, 0, 2) {\n"                                                                             \
    "          for (half: int64, 0, 2) {\n"                                                                           \
    "            out[i, j] = ((int32*)out[i, j] + (cast(int32, (int16*)a[i, k, pair, half])\n"                        \
    "                                              *cast(int32, (int8*)w[k, j, half, pair])))\n"                      \
    "          }\n"                                                                                                   \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define DOT_ROWS_SYMBOLS(STRIDE) \
    {TIR_EXTENT("m", 3), TIR_EXTENT("r", 4), TIR_OPEN_EXTENT("n", 1 << 16), STRIDE("a_row"), STRIDE("a_step")}
#define DOT_ROWS_RESET   "for (i: int64, 0, m) \"unrolled\" { for (j: int64, 0, r) \"unrolled\" { out[i, j] = 0 } }"
#define DOT_ROWS_INSTR(by_words)                                                                                       \
    .reset = DOT_ROWS_RESET, .update = TIR_INSTRUCTION, .passed = "aaa", .words = true,                                \
    .features = TARGET_DSP, .cost = tir_cost_rows, .widen = 3, .channels = 1,                                          \
    .call = "lathe_dot_rows(out, a, w, m, r, n, a_row, a_step, " by_words ")",                                         \
    .runs = "lathe_dot_runs(out, $starts, $count, w, m, r, n, a_row, a_step, " by_words ")",                           \
    .kernel = "kernel/dsp/dot_rows.h", .runs_kernel = "kernel/dsp/dot_runs.h"

/* One run of bytes by a few rows; both stand as they are. */
#define DOT_BYTES(type)                                                                                               \
    "primfn(a: handle, w: handle, out: handle) -> ()\n"                                                               \
    "  attr = {\"global_symbol\": \"dot_bytes\", \"inputs\": 2}\n"                                                    \
    "  buffers = {a: Buffer(" type ", [n, 2, 2]), w: Buffer(int8, [n, r, 2, 2], align=4),\n"                          \
    "             out: Buffer(int32, [r])} {\n"                                                                       \
    "  for (j: int64, 0, r) {\n"                                                                                      \
    "    out[j] = 0\n"                                                                                                \
    "    for (k: int64, 0, n) {\n"                                                                                    \
    "      for (pair: int64, 0, 2) {\n"                                                                               \
    "        for (half: int64, 0, 2) {\n"                                                                             \
    "          out[j] = ((int32*)out[j] + (cast(int32, (" type "*)a[k, pair, half])\n"                                \
    "                                      *cast(int32, (int8*)w[k, j, pair, half])))\n"                              \
    "        }\n"                                                                                                     \
    "      }\n"                                                                                                       \
    "    }\n"                                                                                                         \
    "  }\n"                                                                                                           \
    "}\n"
#define DOT_BYTES_SYMBOLS {TIR_EXTENT("r", 4), TIR_EXTENT("n", 1 << 16)}
#define DOT_BYTES_RESET   "for (j: int64, 0, r) \"unrolled\" { out[j] = 0 }"
#define DOT_BYTES_INSTR(is_signed)                                                                                     \
    .reset = DOT_BYTES_RESET, .update = TIR_INSTRUCTION, .passed = "aaa",                                              \
    .features = TARGET_DSP, .cost = tir_cost_bytes, .widen = 3, .channels = 1,                                         \
    .call = "lathe_dot_bytes(out, a, w, r, n, " is_signed ")", .kernel = "kernel/dsp/dot_bytes.h"

static const tir_intrin built_in[] = {
    {.name = "vta_gemm",
     .help = "VTA's GEMM core: out[i, j] += inp[i, k] * wgt[j, k]",
     .scopes = {"local.inp_buffer", "local.wgt_buffer", "local.acc_buffer"},
     .body = VTA_RESET " " VTA_MULTIPLY,
     .reset = VTA_RESET,
     .update = VTA_MULTIPLY,
     .configure = configure_vta_gemm},
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
    /* A function: the length of RISC-V's vectors is known only where the code runs. */
    {.name = "rvv_vwmacc",
     .help = "RISC-V's vectors: out[j] += a[0] * b[j], int8 widened into int32, as many lanes at a time as there are",
     .nest = "primfn(a: handle, b: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"rvv_vwmacc\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int8, [1]), b: Buffer(int8, [n], strides=[1]),\n"
             "             out: Buffer(int32, [n], strides=[1])} {\n"
             "  for (j: int64, 0, n) {\n"
             "    out[j] = 0\n"
             "    out[j] = ((int32*)out[j] + (cast(int32, (int8*)a[0])*cast(int32, (int8*)b[j])))\n"
             "  }\n"
             "}\n",
     .n_symbols = 1,
     .symbols = {TIR_EXTENT("n", 1 << 20)},
     .reset = "for (j: int64, 0, n) { out[j] = 0 }",
     .update = TIR_INSTRUCTION,
     .passed = "vaa",
     .call = "lathe_rvv_vwmacc(out, a, b, n)",
     .kernel = "kernel/rvv/vwmacc.h",
     .features = TARGET_RVV,
     .cost = tir_cost_lanes},
    /* Cortex-M: products of bytes and 16-bit numbers, four in a step. */
    {.name = "dot_rows",
     .help = "a few runs of int16 by a few rows of int8: out[i, j] += a[i, k] * w[j, k], k in steps of 4",
     .nest = DOT_ROWS(", align=4"),
     .n_symbols = 5,
     .symbols = DOT_ROWS_SYMBOLS(TIR_EVEN_STRIDE),
     DOT_ROWS_INSTR("1")},
    {.name = "dot_rows_anywhere",
     .help = "dot_rows where runs need not begin at words of memory",
     .nest = DOT_ROWS(""),
     .n_symbols = 5,
     .symbols = DOT_ROWS_SYMBOLS(TIR_STRIDE),
     DOT_ROWS_INSTR("0")},
    {.name = "dot_bytes",
     .help = "a run of int8 by a few rows of int8: out[j] += a[k] * w[j, k], k in steps of 4",
     .nest = DOT_BYTES("int8"),
     .n_symbols = 2,
     .symbols = DOT_BYTES_SYMBOLS,
     DOT_BYTES_INSTR("1")},
    {.name = "dot_bytes_u8",
     .help = "dot_bytes with a run of uint8",
     .nest = DOT_BYTES("uint8"),
     .n_symbols = 2,
     .symbols = DOT_BYTES_SYMBOLS,
     DOT_BYTES_INSTR("0")},
    /* Neighbours of one channel under one row of its window. */
    {.name = "taps_row",
     .help = "a few windows over one row, int16 by int8: out[i] += a[i * step + k * tap] * w[k]",
     .nest = "primfn(a: handle, w: handle, out: handle) -> ()\n"
             "  attr = {\"global_symbol\": \"taps_row\", \"inputs\": 2}\n"
             "  buffers = {a: Buffer(int16, [m, n], strides=[a_step, a_tap]), w: Buffer(int8, [n], strides=[1]),\n"
             "             out: Buffer(int32, [m], strides=[1])} {\n"
             "  for (i: int64, 0, m) {\n"
             "    out[i] = 0\n"
             "    for (k: int64, 0, n) {\n"
             "      out[i] = ((int32*)out[i] + (cast(int32, (int16*)a[i, k])*cast(int32, (int8*)w[k])))\n"
             "    }\n"
             "  }\n"
             "}\n",
     .n_symbols = 4,
     .symbols = {TIR_EXTENT("m", 6), TIR_EXTENT("n", 1 << 16), TIR_STRIDE("a_step"), TIR_STRIDE("a_tap")},
     .reset = "for (i: int64, 0, m) \"unrolled\" { out[i] = 0 }",
     .update = TIR_INSTRUCTION,
     .passed = "aaa",
     .call = "lathe_taps_row(out, a, w, m, n, a_step, a_tap)",
     .kernel = "kernel/dsp/taps_row.h",
     .features = TARGET_DSP,
     .cost = tir_cost_taps,
     .widen = 3,
     .channels = 1},
};

static const tir_intrin *of_this_file(uint32_t *out_n)
{
    *out_n = sizeof built_in / sizeof *built_in;
    return built_in;
}

static const tir_intrin_rows families[] = {of_this_file, tir_intrins_nibbles, tir_intrins_dot, tir_intrins_mve,
                                           tir_intrins_amx};

/* NULL: there are no more. */
static const tir_intrin *row_at(const compiler *c, uint32_t i)
{
    for (uint32_t k = 0, n; k < sizeof families / sizeof *families; k++, i -= n) {
        const tir_intrin *rows = families[k](&n);
        if (i < n)
            return &rows[i];
    }
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

bool tir_register_intrin(compiler *c, const tir_intrin *row)
{
    if (tir_find_intrin(c, row->name))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "intrinsic '%s' is registered twice", row->name);
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
