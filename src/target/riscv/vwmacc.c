/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V's vectors as a function over many of them: their length is known only where the code runs. */
#include "tir/family.h"
#include "type/target.h"

/* Instructions of kernel/rvv/vwmacc.h, counted as target/cortex_m/cost.c does. */
static double cost(const tir_intrin_use *use)
{
    return 30 + (double)use->of[0] * (use->fast ? 1 : 9);
}

static const tir_intrin rows[] = {
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
     .cost = cost},
};

const tir_instructions tir_instructions_vwmacc = {rows, sizeof rows / sizeof *rows};
