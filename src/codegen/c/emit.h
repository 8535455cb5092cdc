/* SPDX-License-Identifier: Apache-2.0 */
/* The C writer's inside: an emitter walks one loop-IR function and writes C99; what the text uses (vector types,
 * saturating casts, half floats, ...) is noted in a set of needs, from which a prelude is written in front of the
 * functions. */
#ifndef LATHE_CODEGEN_C_EMIT_H
#define LATHE_CODEGEN_C_EMIT_H
#include "codegen/backend.h"
#include "tir/map.h"
#include "tir/simplify.h"

typedef enum c_need_kind {
    NEED_KERNEL, /* a file of the folder kernel/; with lanes: its form for vectors of dt and numbers of to */
    NEED_FORM,   /* of a family of processors (family.h): `form` writes that with the number in `lanes` */
    NEED_OP,       /* scalar binary operator that needs a function: op, dt */
    NEED_SATURATE, /* float dt to integer to */
    NEED_VECTOR,   /* vector type: dt, lanes */
    NEED_VSPLAT,
    NEED_VLOAD,
    NEED_VSTORE,
    NEED_VGATHER, /* base and stride */
    NEED_VSCATTER,
    NEED_VINDEX, /* load through a vector of indices (dt of the data) */
    NEED_VRAMP,
    NEED_VOP, /* op on dt, lanes */
    NEED_VNOT,
    NEED_VCAST, /* dt to to */
    NEED_VSELECT,
    NEED_VCHOOSE, /* a comparison op and the choice by it: all of dt */
    NEED_VBOUND,  /* minimum or maximum with a number: one comparison keeps a NaN */
    NEED_VEXTREME /* one of two by how they compare */
} c_need_kind;

typedef struct c_need {
    c_need_kind kind;
    tir_op op;
    dtype dt, to;
    uint32_t lanes;
    bool fallback; /* set by needs_add: only loops over lanes call it, where there are no vectors for them */
    const char *file; /* of NEED_KERNEL, from the top of the tree */
    void (*form)(arena *a, writer *w, uint32_t key); /* of NEED_FORM */
} c_need;

typedef struct c_needs {
    arena *a;
    VEC(c_need) list; /* without repetitions, in order of first use, dependencies first */
    bool fallback;    /* what is added now is for such loops */
    uint32_t vector_bytes; /* of the functions' targets, at most: wider types are taken apart; 0: none is known */
    const struct c_family *family; /* of the processors, NULL: none for which something is otherwise */
    bool neon;        /* AArch64 */
    bool riscv;       /* compilers for RISC-V may get the text, whatever the width of its vectors */
    bool one_part;    /* functions do all of their work at once: they have no parameters `part` and `parts` */
} c_needs;

typedef struct c_scope_name {
    const void *key;  /* tir_var or tir_buffer */
    const char *text; /* interned */
    bool is_index;    /* variable: made of loop variables and constants only, cannot overflow */
} c_scope_name;

/* A register buffer that became named variables: every access has a constant index and the same number of lanes. */
typedef struct c_registers {
    const tir_buffer *buffer;
    uint32_t lanes; /* 0: stays an array */
    bool *used;     /* of each variable, by its number */
} c_registers;

struct c_emit;
/* A back end that builds on this one: functions over handles of buffers, `void *`, in one part, with statements of its
 * own. */
typedef struct c_extension {
    void *ctx;
    void (*open)(void *ctx, struct c_emit *e);                     /* in front of the body */
    bool (*stmt)(void *ctx, struct c_emit *e, const tir_stmt *s); /* true: written */
    const char *linkage;                                           /* "static ", "" */
} c_extension;

typedef struct c_emit {
    compiler *c;
    arena *tmp; /* texts, freed after the function */
    writer *w;
    c_needs *needs;
    const tir_func *f;
    tir_bounds *bounds;
    VEC(c_scope_name) names; /* scopes, innermost last */
    tir_map places; /* key, and interned text -> 1 and its latest place in `names`, which may be another's by now */
    VEC(c_registers) registers;
    bool alone;            /* the statement to come is all that its block holds */
    bool cut;              /* parallel loops run from part / parts */
    bool in_parallel;      /* what is written is inside of one */
    tir_expr_ref starts;   /* the addresses that stand in an array, whose name it has; NULL: there is none */
    const char *rounds;    /* of the loop that comes next: TIR_ROUNDS_...; NULL: nothing is said */
    bool failed;           /* something has no C form; reported */
    uint32_t vector_bytes; /* widest vector used */
    const char *attribute; /* of the function, an instruction's; NULL: none asks for one */
    const c_extension *extension; /* NULL: none */
} c_emit;

/* A piece of expression and how tightly it binds. */
typedef enum c_prec { PREC_LOW, PREC_ADD, PREC_MUL, PREC_PRIMARY } c_prec;
typedef struct c_text {
    const char *s;
    c_prec prec;
} c_text;

/* needs.c: `e` may be NULL where only the set matters. */
void needs_add(c_needs *n, c_need need);
/* The same with the scalar functions that its lanes call, found by writing one. */
void needs_add_vector(c_needs *n, c_need need);
void needs_add_kernel(c_needs *n, const char *file);
/* A template in lanes of dt, which become numbers of `of` or are made of these; DT_NONE: of none. */
void needs_add_lanes_kernel(c_needs *n, const char *file, dtype dt, dtype of, uint32_t lanes);
void needs_write(arena *a, writer *w, const c_needs *n); /* the prelude */
const char *needs_vector_name(arena *a, dtype dt, uint32_t lanes);
const char *needs_op_name(tir_op op);
uint32_t needs_vector_bytes(dtype dt, uint32_t lanes);

/* kernel.c: what a file of generated C has of the folder kernel/. */
typedef struct kernel_paste {
    arena *a;
    VEC(const char *) files; /* and the forms of templates */
} kernel_paste;
/* What a name of a template stands for; an @ in the text for the name in brackets behind it. */
typedef struct kernel_word {
    const char *name, *text;
} kernel_word;
typedef struct kernel_words {
    const kernel_word *words;
    uint32_t n;
} kernel_words;
/* The file, and in front of it those that it includes and that are not there yet. `words`: of a template; NULL: none.
 * `condition`: it is wanted only where that holds for the preprocessor; NULL: always. */
void kernel_write(kernel_paste *k, writer *w, const char *file, const kernel_words *words, const char *condition);

/* scalar.c: operators on texts, shared by scalar expressions and by the lanes of vector helpers. `wrap`: integer
 * arithmetic that may overflow. */
c_text scalar_binary(arena *a, c_needs *n, tir_op op, dtype dt, c_text x, c_text y, bool wrap);
c_text scalar_call(arena *a, c_needs *n, tir_op op, dtype dt, const c_text *args);
c_text scalar_cast(arena *a, c_needs *n, dtype from, dtype to, c_text x);
/* Not INT64_MIN, which cppcheck takes for a hexadecimal number without a sign (rule 7.2 of MISRA C). */
#define SCALAR_INT64_MIN "(-INT64_MAX - 1)"
c_text scalar_int(arena *a, dtype dt, int64_t v);
c_text scalar_float(arena *a, dtype dt, double v);
const char *scalar_load(arena *a, c_needs *n, dtype dt, const char *lvalue); /* storage to arithmetic */
const char *scalar_store(arena *a, c_needs *n, dtype dt, c_text value);      /* arithmetic to storage */
const char *scalar_at(arena *a, c_text t, c_prec least); /* in brackets when it binds less than `least` */
const char *scalar_type(dtype dt);                       /* C type of arithmetic */

c_text expr_text(c_emit *e, tir_expr_ref x);
const char *expr_operand(c_emit *e, tir_expr_ref x, bool pointer); /* of an instruction */
bool expr_is_index(const c_emit *e, tir_expr_ref x);
const char *expr_name(const c_emit *e, const void *key);
tir_expr_ref expr_flat(c_emit *e, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices); /* one index in all */
const char *expr_register(c_emit *e, const tir_buffer *b, tir_expr_ref index); /* NULL: not in registers */
const char *expr_condition(c_emit *e, tir_expr_ref x);

/* instr.c: a node that is an instruction, of operands as `operand` writes them: a value, or where it is read. */
typedef const char *(*c_operand)(c_emit *e, tir_expr_ref x, bool pointer);
const char *instr_text(c_emit *e, tir_expr_ref x, c_operand operand, const char *starts); /* NULL: there is one */
const char *c_vector_name(c_emit *e, dtype dt, uint32_t lanes); /* the type is needed, then */

/* Writes a statement that is all that its block holds. */
typedef void (*c_write_stmt)(c_emit *e, const tir_stmt *s);

/* runs.c: instructions of several first operands, and the array of their addresses (TIR_STARTS). */
void runs_write_around(c_emit *e, const tir_stmt *s, c_write_stmt stmt);
bool runs_write(c_emit *e, const tir_stmt *s); /* the call; false: s is something else */

/* names.c */
const c_scope_name *names_find(const c_emit *e, const void *key); /* NULL: not in scope */
const char *names_push(c_emit *e, const void *key, const char *wanted, bool is_index);
/* The same for a buffer in registers: NAME_0, NAME_1, ... of those that are used belong to it too. */
const char *names_push_registers(c_emit *e, const c_registers *r);
/* The same for a loop that is cut into parts: NAME_end belongs to it. */
const char *names_push_cut(c_emit *e, const void *key, const char *wanted);

/* func.c: linkage: "static ", or what else stands in front of the function; text goes to w, needs to n. */
bool func_write(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *linkage, const char *c_name);
/* "int32_t NAME(const float *x, float *y);", and whether it may return anything but 0. */
void func_write_declaration(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *c_name);
bool func_may_fail(const tir_func *f);
bool func_write_extended(compiler *c, writer *w, c_needs *n, const tir_func *f, const char *c_name,
                         const c_extension *extension);
void func_stmt(c_emit *e, const tir_stmt *s);       /* a statement that is all that its block holds */
void func_refuse(c_emit *e, const char *what);      /* "the C back end does not write ..." */
#endif
