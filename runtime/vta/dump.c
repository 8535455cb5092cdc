/* dump.c: what the debug flags show of a stream before it runs, in the published form: each instruction's kind, flags
 * and geometry, and the tokens in the four dependency queues after it; and the micro-ops.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "context.h"

static void say(vta_context *c, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

static void say(vta_context *c, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->options.log(c->options.log_user, text);
}

static void say_kind(vta_context *c, const vta_fields *f)
{
    static const char *const nops[] = {"?", "NOP-MEMORY-STAGE", "NOP-COMPUTE-STAGE", "NOP-STORE-STAGE"};
    static const char *const memories[] = {"UOP", "WGT", "INP", "ACC", "OUT", "ACC 8BIT", "?", "?"};
    static const char *const operations[] = {"min", "max", "add", "shr", "mul", "?", "?", "?"};
    if ((f->opcode == VTA_LOAD || f->opcode == VTA_STORE) && f->x_size == 0)
        say(c, "%s\n", nops[vta_stage_of(f)]);
    else if (f->opcode == VTA_LOAD)
        say(c, "LOAD %s\n", memories[f->memory_type]);
    else if (f->opcode == VTA_STORE)
        say(c, "STORE:\n");
    else if (f->opcode == VTA_GEMM)
        say(c, "GEMM\n");
    else if (f->opcode == VTA_ALU)
        say(c, "ALU - %s%s\n", operations[f->alu_opcode], f->use_imm ? " imm" : "");
    else
        say(c, "FINISH\n");
}

static void say_loops(vta_context *c, const vta_fields *f)
{
    say(c, "\treset_out: %lld\n\trange (%lld, %lld)\n", (long long)f->reset_reg, (long long)f->uop_bgn,
        (long long)f->uop_end);
    if (f->opcode == VTA_GEMM) {
        say(c, "\touter loop - iter: %lld, wgt: %lld, inp: %lld, acc: %lld\n", (long long)f->iter_out,
            (long long)f->wgt_factor_out, (long long)f->src_factor_out, (long long)f->dst_factor_out);
        say(c, "\tinner loop - iter: %lld, wgt: %lld, inp: %lld, acc: %lld\n", (long long)f->iter_in,
            (long long)f->wgt_factor_in, (long long)f->src_factor_in, (long long)f->dst_factor_in);
        return;
    }
    say(c, "\touter loop - iter: %lld, dst: %lld, src: %lld\n", (long long)f->iter_out, (long long)f->dst_factor_out,
        (long long)f->src_factor_out);
    say(c, "\tinner loop - iter: %lld, dst: %lld, src: %lld\n", (long long)f->iter_in, (long long)f->dst_factor_in,
        (long long)f->src_factor_in);
    if (f->use_imm)
        say(c, "\timm: %lld\n", (long long)f->imm);
}

void vta_dump_insns(vta_context *c, const vta_insn *insns, uint32_t count)
{
    vta_tokens t = {0};
    say(c, "There are %u instructions\n", count);
    for (uint32_t i = 0; i < count; i++) {
        vta_fields f;
        vta_decode(c->geometry, &insns[i], &f);
        say(c, "INSTRUCTION %u: ", i);
        say_kind(c, &f);
        say(c, "\tdep - pop prev: %lld, pop next: %lld, push prev: %lld, push next: %lld\n", (long long)f.pop_prev_dep,
            (long long)f.pop_next_dep, (long long)f.push_prev_dep, (long long)f.push_next_dep);
        if ((f.opcode == VTA_LOAD || f.opcode == VTA_STORE) && f.x_size > 0) {
            say(c, "\tDRAM: 0x%08llx, SRAM:0x%04llx\n", (unsigned long long)f.dram_base,
                (unsigned long long)f.sram_base);
            say(c, "\ty: size=%lld, pad=[%lld, %lld]\n", (long long)f.y_size, (long long)f.y_pad_0,
                (long long)f.y_pad_1);
            say(c, "\tx: size=%lld, stride=%lld, pad=[%lld, %lld]\n", (long long)f.x_size, (long long)f.x_stride,
                (long long)f.x_pad_0, (long long)f.x_pad_1);
        } else if (f.opcode == VTA_GEMM || f.opcode == VTA_ALU) {
            say_loops(c, &f);
        }
        vta_tokens_step(c->geometry, &insns[i], &t);
        say(c, "\tl2g_queue = %d, g2l_queue = %d\n\ts2g_queue = %d, g2s_queue = %d\n", t.l2g, t.g2l, t.s2g, t.g2s);
    }
}

void vta_dump_uops(vta_context *c)
{
    uint32_t count = vta_kernel_logged(c);
    say(c, "There are %u uops\n", count);
    for (uint32_t i = 0; i < count; i++) {
        vta_uop_fields f;
        vta_uop_decode(c->geometry, c->kernels.log[i], &f);
        say(c, "[%04u]\t acc=%lld, inp=%lld, wgt=%lld\n", i, (long long)f.dst, (long long)f.src, (long long)f.wgt);
    }
}
