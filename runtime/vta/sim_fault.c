/* sim_fault.c: what the functional simulator says of an instruction that cannot be executed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>

const char *vta_sim_insn_name(const vta_fields *f)
{
    static const char *const ops[] = {
#define X(id, code, text) [code] = text,
        VTA_OPCODES(X)
#undef X
    };
    static const char *const loads[] = {
#define X(code, text) [code] = "load " text,
        VTA_MEMORIES(X)
#undef X
    };
    if (f->opcode == VTA_LOAD && f->memory_type < VTA_MEM_COUNT)
        return loads[f->memory_type];
    return f->opcode <= VTA_ALU ? ops[f->opcode] : "unknown";
}

vta_status vta_sim_fault(const sim_at *at, vta_status s, const char *fmt, ...)
{
    char text[320];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return vta_fail(at->e, s, "instruction %u (%s): %s", at->index, vta_sim_insn_name(at->f), text);
}
