/* SPDX-License-Identifier: Apache-2.0 */
/* VTA's GEMM core as an intrinsic; its extents are those of the device that is compiled for. */
#include "target/vta/vta_text.h"
#include "tir/family.h"

#include "abi/vta_config.h"

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
    row->device = arena_printf(&c->mem, "%s (--vta-config)", vta_text_name(c));
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

static const tir_intrin rows[] = {
    {.name = "vta_gemm",
     .help = "VTA's GEMM core: out[i, j] += inp[i, k] * wgt[j, k]",
     .scopes = {"local.inp_buffer", "local.wgt_buffer", "local.acc_buffer"},
     .body = VTA_RESET " " VTA_MULTIPLY,
     .reset = VTA_RESET,
     .update = VTA_MULTIPLY,
     .configure = configure_vta_gemm},
};

const tir_instructions tir_instructions_vta = {rows, sizeof rows / sizeof *rows};
