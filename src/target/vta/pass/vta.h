/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes for the VTA accelerator share: the device that is compiled for, its scratchpads as scopes of buffers,
 * and the annotations that mark its work. Meaning of attributes, calls and passes: docs/explanation/vta.md. */
#ifndef LATHE_TARGET_VTA_PASS_VTA_H
#define LATHE_TARGET_VTA_PASS_VTA_H
#include "target/vta/pass/passes.h"
#include "tir/linear.h"
#include "tir/node.h"

#include <vta_config.h>

/* Keys of annotations. */
#define VTA_COPROC_SCOPE "coproc_scope"     /* value: the queue that runs the body */
#define VTA_UOP_SCOPE    "coproc_uop_scope" /* value: VTA_PUSH_GEMM or VTA_PUSH_ALU; the body records a kernel */
#define VTA_PUSH_GEMM    "VTAPushGEMMOp"
#define VTA_PUSH_ALU     "VTAPushALUOp"

enum vta_queue { VTA_QUEUE_NONE, VTA_QUEUE_LOAD, VTA_QUEUE_COMPUTE, VTA_QUEUE_STORE };
enum vta_uop_mode { VTA_MODE_GEMM, VTA_MODE_ALU };
enum vta_alu_opcode { VTA_ALU_MIN, VTA_ALU_MAX, VTA_ALU_ADD, VTA_ALU_SHR, VTA_ALU_MUL };

/* Arguments of tir.vta.uop_push. */
enum vta_uop_arg {
    VTA_UOP_MODE,
    VTA_UOP_RESET,
    VTA_UOP_DST,
    VTA_UOP_SRC,
    VTA_UOP_WGT,
    VTA_UOP_OPCODE,
    VTA_UOP_USE_IMM,
    VTA_UOP_IMM,
    VTA_UOP_ARGS
};

/* Positions of arguments in VTALoadBuffer2D and VTAStoreBuffer2D. */
enum vta_transfer_arg {
    VTA_LOAD_CMD,
    VTA_LOAD_DRAM,
    VTA_LOAD_OFFSET,
    VTA_LOAD_X,
    VTA_LOAD_Y,
    VTA_LOAD_STRIDE,
    VTA_LOAD_X_PAD_BEFORE,
    VTA_LOAD_Y_PAD_BEFORE,
    VTA_LOAD_X_PAD_AFTER,
    VTA_LOAD_Y_PAD_AFTER,
    VTA_LOAD_SRAM,
    VTA_LOAD_MEMORY,
    VTA_LOAD_ARGS,
    VTA_STORE_CMD = 0,
    VTA_STORE_SRAM,
    VTA_STORE_MEMORY,
    VTA_STORE_DRAM,
    VTA_STORE_OFFSET,
    VTA_STORE_X,
    VTA_STORE_Y,
    VTA_STORE_STRIDE,
    VTA_STORE_ARGS
};

/* A pass at work on one function. */
typedef struct vta_pass {
    compiler *c;
    const tir_func *f;
    vta_geometry g;
    tir_bounds *bounds;     /* of the loops around the statement at hand */
    bool ok;                /* no error yet */
    const char *last_error; /* unless ok */
} vta_pass;

/* The device of c (vta_text_config); false after a diagnostic: its configuration breaks a rule.
 */
bool vta_pass_begin(compiler *c, const tir_func *f, vta_pass *out);
/* A pass that looks at one statement at a time: fn sees each after its children, under the bounds of the loops around
 * it, and returns it or another. False when the device or fn reports an error. */
bool vta_pass_run(compiler *c, tir_func *f, tir_stmt *(*fn)(vta_pass *p, tir_stmt *s));
/* Reports with the function's name in front; p->ok is false after it. Returns false. */
bool vta_error(vta_pass *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reports that the host touches a scratchpad. Of several nests without a mark the first error says enough. */
void vta_unmarked(vta_pass *p, const char *name, enum vta_mem m, const char *how);
/* Whether b lies in a scratchpad: INP, WGT or ACC. */
bool vta_scratchpad(const tir_buffer *b, enum vta_mem *out);
/* Whether the values of that scratchpad are dt. */
bool vta_holds(const vta_pass *p, enum vta_mem m, dtype dt);
const char *vta_scope_name(enum vta_mem m); /* of INP, WGT, ACC */
/* A constant of the function's index type, which is that of all arguments of calls. */
tir_expr_ref vta_int(vta_pass *p, int64_t v);
tir_expr_ref vta_command_handle(vta_pass *p);
bool vta_is_call(tir_expr_ref e, const char *name); /* of an external function or an operation tir.vta.* */
bool vta_is_attr(tir_stmt *s, const char *key);
/* Of a pragma, or a nest: the buffer that it writes, as it was called before buffers were shared. */
const char *vta_stage_name(tir_stmt *s);
/* attr [vta] "coproc_scope" = queue */
tir_stmt *vta_coproc_scope(vta_pass *p, enum vta_queue q, tir_stmt *body);
/* attr [vta] "coproc_uop_scope" = push */
tir_stmt *vta_uop_scope(vta_pass *p, const char *push, tir_stmt *body);
/* e as a sum over loop variables and other atoms, after simplification under p->bounds; false: too many terms. */
bool vta_linear(vta_pass *p, tir_expr_ref e, linear *out);
/* Takes v out of l: its coefficient (0: v does not occur). False when v occurs otherwise than with a constant factor.
 */
bool vta_take_var(linear *l, const tir_var *v, int64_t *out_coeff);
/* The sum as an argument of a call: of the function's index type. */
tir_expr_ref vta_build(vta_pass *p, linear *l);
/* l / n when every coefficient divides. */
bool vta_divide(linear *l, int64_t n);

/* Iterations of a loop in which a condition holds; NULL: from the first, to the last. */
typedef struct vta_range {
    const tir_var *var;
    tir_expr_ref least, most;
} vta_range;

/* Narrows the loops to where cond holds; false: it is no range of each. What depends on none of them goes to *out_rest,
 * joined to what is there; where that is NULL it is no range either. */
bool vta_add_condition(vta_pass *p, vta_range *ranges, uint32_t n, tir_expr_ref cond, tir_expr_ref *out_rest);
/* An integer expression over n variables; false: there are others in it, or it reads memory. */
bool vta_value(tir_expr_ref e, uint32_t n, const tir_var *const *vars, const int64_t *values, int64_t *out);
/* The least and the largest value over all iterations of the loops around; false: too many, or unknown ones. */
bool vta_exact_range(vta_pass *p, tir_expr_ref e, int64_t *out_min, int64_t *out_max);
#endif
