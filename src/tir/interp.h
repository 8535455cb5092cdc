/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's program: register instructions in a tree of blocks and loops. A register holds one value, or a
 * strip of up to 256: every instruction is a loop over lanes. A "strip" loop is an innermost loop whose iterations are
 * run 256 at a time, instruction by instruction. Registers hold int64, float or double; narrower integers are wrapped,
 * half floats rounded, by instructions of their own. */
#ifndef LATHE_TIR_INTERP_H
#define LATHE_TIR_INTERP_H
#include "tir/intrin.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/tir.h"

#define STRIP  TIR_MAX_LANES
#define NO_REG UINT32_MAX

typedef enum reg_class { REG_I, REG_F, REG_D } reg_class;

static inline reg_class reg_class_of(dtype dt)
{
    return dt == DT_F64 ? REG_D : dtype_is_float(dt) ? REG_F : REG_I;
}

/* A buffer while the program runs. */
typedef struct slot {
    const tir_buffer *buffer;
    uint8_t *base;
    int64_t dims[TIR_MAX_RANK], strides[TIR_MAX_RANK]; /* elements */
    int64_t offset, span;                              /* span: elements from the address that may be touched */
    size_t capacity;                                   /* bytes owned, allocations */
    uint32_t dim_regs[TIR_MAX_RANK], stride_regs[TIR_MAX_RANK], offset_reg;
    int32_t param; /* >= 0: address from the caller */
} slot;

/* How an access finds its elements: per dimension a scalar and a constant step per lane, or one index per lane. */
typedef struct mem_access {
    slot *at;
    bool is_flat;  /* one index from the buffer's address */
    bool per_lane; /* regs hold lanes */
    uint32_t n;
    uint32_t regs[TIR_MAX_RANK];
    int64_t steps[TIR_MAX_RANK];
    tir_op op;      /* reductions */
    bool acc_right; /* element = x op element */
} mem_access;

/* An argument of a call: an address, or a number in a register. */
typedef struct call_arg {
    const mem_access *access; /* NULL: a number */
    uint32_t reg;
} call_arg;

struct instr_run;
typedef struct code_block code_block;
typedef struct frame frame;
typedef struct instr instr;
typedef bool (*instr_fn)(frame *f, const instr *in, uint32_t n);

struct instr {
    instr_fn fn;
    uint32_t dst, a, b, c; /* byte offsets of registers */
    uint32_t mask;         /* NO_REG: all lanes */
    uint32_t lanes;        /* outside strips */
    dtype dt;
    const mem_access *access;
    const call_arg *args; /* of a call */
    const struct instr_run *run; /* of a node that is an instruction */
};

typedef struct code_list {
    VEC(instr) list;
} code_list;

struct frame {
    compiler *c;
    const tir_func *func;
    arena *mem; /* of this run */
    uint8_t *regs;
    void *const *params;
    const size_t *bytes; /* of each parameter; NULL: as many as it says */
    int32_t status;
    bool stopped; /* by an assertion */
    bool (*run)(frame *f, const code_block *b); /* a block (interp.c) */
};

typedef enum node_kind { NODE_CODE, NODE_LOOP, NODE_STRIP, NODE_IF, NODE_BLOCK, NODE_BIND, NODE_ASSERT } node_kind;

typedef struct node {
    node_kind kind;
    code_list *code;            /* CODE; STRIP: per strip, lanes */
    code_list *entry, *scalars; /* STRIP: once per loop; per strip, one value */
    uint32_t var, min, extent;  /* registers: LOOP, STRIP */
    uint32_t cond;              /* IF, ASSERT */
    code_block *body, *orelse;  /* LOOP, IF, BLOCK */
    slot *bind;                 /* BIND: a buffer's shape is known from here on */
    int32_t status;             /* ASSERT */
} node;

struct code_block {
    code_list prologue; /* what depends on nothing inside */
    VEC(node) nodes;
};

/* --- instructions (interp_ops.c, interp_mem.c) --- */
instr_fn interp_binary(dtype dt, tir_op op); /* operands of dt; results of integers are not wrapped yet */
instr_fn interp_cast(dtype to, dtype from);
instr_fn interp_call(dtype dt, tir_op op);
instr_fn interp_fixup(dtype dt); /* wraps or rounds a result to its type; NULL: nothing to do */
instr_fn interp_select(dtype dt);
instr_fn interp_splat(dtype dt);
bool interp_not(frame *f, const instr *in, uint32_t n);
bool interp_and_not(frame *f, const instr *in, uint32_t n); /* a && !b */
bool interp_iota(frame *f, const instr *in, uint32_t n);    /* a[0], a[0] + 1, ... */
bool interp_ramp(frame *f, const instr *in, uint32_t n);    /* a[0] + i * b[0] */
instr_fn interp_load(dtype dt, bool per_lane);
instr_fn interp_store(dtype dt, bool per_lane);
/* buffer[index] = buffer[index] op x[0] op x[1] ...; NULL: no such reduction. */
instr_fn interp_reduce(dtype dt, tir_op op);

/* First element of an access to one (interp_mem.c); false after a message. */
bool interp_locate(frame *f, const mem_access *x, int64_t *out);
bool interp_lies_inside(frame *f, const mem_access *x); /* whether interp_locate would find it */
/* The function of that name on numbers and addresses of buffers, as e has them (interp_call.c); NULL: unknown. */
instr_fn interp_extern(tir_expr_ref e);

/* A compiled function (interp_stmt.c). */
typedef struct interp_program {
    code_block *block;
    uint8_t *image;   /* the registers, with the constants; 64 bytes beyond them */
    uint32_t *given;  /* registers of the variables that the caller gives values */
} interp_program;
bool interp_compile(compiler *c, arena *mem, const tir_func *f, uint32_t n_given, const tir_var *const *given,
                    interp_program *out);

/* An operand: where the caller has it, or an array for its elements. */
typedef struct instr_operand {
    const mem_access *at; /* NULL: it is by value */
    slot *elements;
} instr_operand;

struct instr_run {
    const tir_func *nest;
    const interp_program *program;
    instr_operand operands[TIR_INTRIN_OPERANDS]; /* in the nest's order */
    uint32_t n_operands, n_symbols;
    const mem_access *const *runs; /* further first operands */
    uint32_t n_runs;
    uint32_t second; /* bytes of an element of the second operand */
    int64_t follows; /* its elements for each run */
    uint32_t symbols[TIR_INTRIN_SYMBOLS]; /* registers with their numbers */
    bool guarded; /* operands may begin outside of their buffers */
};
bool interp_instr(frame *f, const instr *in, uint32_t n);
#endif
