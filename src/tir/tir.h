/* SPDX-License-Identifier: Apache-2.0 */
/* Loop IR: functions over buffers; statements and expressions as immutable trees in the compiler's arena
 * (docs/reference/loop-ir.md). Passes build new trees and share what they leave alone. Index arithmetic is i64 (or i32
 * when the function says so), never overflows by construction, and uses floordiv/floormod; value arithmetic wraps for
 * integers. f16 and bf16 are storage types: arithmetic on them is f32 rounded after every operation that the IR shows
 * (a cast to f16 rounds). bool is u8 holding 0 or 1.
 *
 * This header has the nodes alone. What one does with them: build.h, walk.h, simplify.h, text.h, verify.h, interpret.h,
 * pass.h, facts.h. */
#ifndef LATHE_TIR_TIR_H
#define LATHE_TIR_TIR_H
#include "base/vec.h"
#include "type/dtype.h"
#include "type/target.h"
#include "type/tensor.h"

/* X(id, text) binary operators on equal types; text is the infix or the function name in prints. */
#define TIR_BINARY(X)                                                     \
    X(TIR_ADD, "+")                                                       \
    X(TIR_SUB, "-")                                                       \
    X(TIR_MUL, "*")                                                       \
    X(TIR_DIV, "/") /* float; integers: toward zero, by zero gives 0 */   \
    X(TIR_MOD, "%") /* integers: sign of the dividend, by zero gives 0 */ \
    X(TIR_FLOORDIV, "floordiv")                                           \
    X(TIR_FLOORMOD, "floormod")                                           \
    X(TIR_MIN, "min") /* NaN when either is */                            \
    X(TIR_MAX, "max")                                                     \
    X(TIR_EQ, "==") /* comparisons give bool */                           \
    X(TIR_NE, "!=")                                                       \
    X(TIR_LT, "<")                                                        \
    X(TIR_LE, "<=")                                                       \
    X(TIR_GT, ">")                                                        \
    X(TIR_GE, ">=")                                                       \
    X(TIR_AND, "&&")                                                      \
    X(TIR_OR, "||")                                                       \
    X(TIR_BITAND, "&")                                                    \
    X(TIR_BITOR, "|")                                                     \
    X(TIR_BITXOR, "^")                                                    \
    X(TIR_SHL, "<<")                                                      \
    X(TIR_SHR, ">>") /* arithmetic for signed types */

/* X(id, text, arguments) pure intrinsics; results have the argument's type, but is* give bool. C library semantics. */
#define TIR_INTRINSICS(X)                                                                                        \
    X(TIR_EXP, "exp", 1)                                                                                         \
    X(TIR_DECAY, "decay", 1) /* exp of what is never above 0 */                                                  \
    X(TIR_LOG, "log", 1)                                                                                         \
    X(TIR_SQRT, "sqrt", 1)                                                                                       \
    X(TIR_SIN, "sin", 1) X(TIR_COS, "cos", 1) X(TIR_TAN, "tan", 1) X(TIR_ASIN, "asin", 1) X(TIR_ACOS, "acos", 1) \
        X(TIR_ATAN, "atan", 1) X(TIR_SINH, "sinh", 1) X(TIR_COSH, "cosh", 1) X(TIR_TANH, "tanh", 1)              \
            X(TIR_ASINH, "asinh", 1) X(TIR_ACOSH, "acosh", 1) X(TIR_ATANH, "atanh", 1) X(TIR_ERF, "erf", 1)      \
                X(TIR_POW, "pow", 2) X(TIR_FMOD, "fmod", 2) X(TIR_FLOOR, "floor", 1) X(TIR_CEIL, "ceil", 1)      \
                    X(TIR_RINT, "rint", 1) /* half to even */ X(TIR_TRUNC, "trunc", 1) X(TIR_FABS, "fabs", 1)    \
                        X(TIR_LOG1P, "log1p", 1) X(TIR_EXPM1, "expm1", 1) X(TIR_ISNAN, "isnan", 1)               \
                            X(TIR_ISINF, "isinf", 1) X(TIR_BITNOT, "bitnot", 1)                                  \
                                X(TIR_FMA, "fma", 3) /* a*b+c, rounded once */                                   \
        X(TIR_SCALED, "rounded_product", 3)          /* of i64 by bits of an f64, rounded once: eval_scaled */   \
        X(TIR_HIGH, "high_product", 2)               /* of i32: x * y >> 32 */                                   \
        X(TIR_DOUBLED, "doubled_product", 2)         /* of i32: (x * y + 2^30) >> 31; y is above -2^31 */        \
        X(TIR_SHIFTED, "rounded_shift", 2)           /* of i32: x / 2^n, halves away from 0; n: 0 to 31 */       \
        X(TIR_APART, "apart", 1)                     /* x; no compiler makes one step of its product and a sum */ \
        X(TIR_RARE, "rare", 1)                       /* of bool: x, nearly always false */                       \
        X(TIR_ANY_SIGN, "any_sign", 1)               /* of u32: one bool, whether a lane has its highest bit */  \
        X(TIR_ABOVE, "above", 2)                     /* of floats: x > y ? x : y; where either is NaN, y */       \
        X(TIR_BELOW, "below", 2)                     /* x < y ? x : y */                                          \
        X(TIR_AT_LEAST, "at_least", 2)               /* x <= y ? y : x; where either is NaN, x */                 \
        X(TIR_AT_MOST, "at_most", 2)                 /* x >= y ? y : x */                                         \
        X(TIR_LDEXP, "ldexp", 2)                     /* x * 2^n for a whole n of x's type, rounded once */        \
        X(TIR_TO_BITS, "to_bits", 1)                 /* f32 as u32, f64 as u64: the same bits */                 \
        X(TIR_FROM_BITS, "from_bits", 1)             /* and back */

typedef enum tir_op {
    TIR_OP_NONE,
#define X(id, text) id,
    TIR_BINARY(X)
#undef X
#define X(id, text, args) id,
        TIR_INTRINSICS(X)
#undef X
            TIR_OP_COUNT
} tir_op;
const char *tir_op_text(tir_op op);
bool tir_op_is_binary(tir_op op);
bool tir_op_is_compare(tir_op op); /* EQ..GE */
bool tir_op_is_fixed(tir_op op);   /* an intrinsic of fixed point, a few instructions */
bool tir_op_is_extreme(tir_op op); /* ABOVE..AT_MOST: one of two numbers by how they compare */
uint32_t tir_op_arity(tir_op op);
dtype tir_op_result(tir_op op, dtype dt); /* of an intrinsic on operands of type dt */
uint16_t tir_op_lanes(tir_op op, uint16_t lanes); /* the same of operands of so many lanes */

typedef struct tir_type {
    dtype dt;
    uint16_t lanes; /* 1: scalar */
} tir_type;

typedef const struct tir_expr *tir_expr_ref;
typedef struct tir_expr tir_expr;
#ifdef __cplusplus
struct tir_stmt; /* C++ has no typedef of a struct's own name that adds const */
#else
typedef const struct tir_stmt tir_stmt;
#endif

/* Variables are compared by address; names are for people, made unique by the printer. */
typedef struct tir_var {
    const char *name;
    tir_type type;
    uint32_t id; /* creation number */
} tir_var;

/* Where a buffer lives. X(id, text) */
#define TIR_SCOPES(X)                                                                         \
    X(SCOPE_GLOBAL, "global") /* parameters; allocations in it are given space by the plan */ \
    X(SCOPE_LOCAL, "local")   /* array on the kernel's stack */                               \
    X(SCOPE_REG, "local.reg") /* constant indices only after unrolling: registers */          \
    X(SCOPE_CUSTOM, "custom") /* named by scope_name: "local.acc_buffer" and the like */
typedef enum tir_scope {
#define X(id, text) id,
    TIR_SCOPES(X)
#undef X
} tir_scope;

/* Keys of annotations "pragma_KEY" that passes act on, beside those of devices (tir/family.h); a schedule can write no
 * others (docs/reference/schedule.md). */
#define TIR_PRAGMAS(X) X(whole)

/* The annotation of a call for its status, which is i32: the kernel ends with it unless it is 0. */
#define TIR_STATUS "status"
/* Of a loop whose body is an if: its condition is false at the latest when the loop has run to its end. */
#define TIR_ENDS   "ends"
/* The annotation of a loop, in front of which the addresses stand in an array that an instruction of several first
 * operands reads (pass hoist-starts). They are the arguments of its value. */
#define TIR_STARTS "starts"
/* The annotation of a loop, whose node is what C compilers are told of its rounds (pass say-rounds): to write none of
 * them out, to write eight out, or, for clang alone, none. */
#define TIR_ROUNDS        "rounds"
#define TIR_ROUNDS_ROLLED "one by one"
#define TIR_ROUNDS_EIGHT  "eight at a time"
#define TIR_ROUNDS_CLANG  "one by one with clang"
/* External functions that come with the compiler: name, file of kernel/, bytes of its arrays on the stack, arguments
 * (a: an address, i: an integer), and what the interpreter calls. */
#define TIR_DECODE_IMAGE "lathe_decode_image"
#define TIR_READ_NUMBERS "lathe_read_numbers"
#define TIR_WRITE_NUMBERS "lathe_write_numbers"
#define TIR_LIBRARY(X)                                                                                                 \
    X(TIR_DECODE_IMAGE, "kernel/image/decode.h", 3200, "aiaiia", call_decode_image)                                    \
    X(TIR_READ_NUMBERS, "kernel/text/number.h", 900, "aiiia", call_read_numbers)                                       \
    X(TIR_WRITE_NUMBERS, "kernel/text/number.h", 900, "aiiia", call_write_numbers)
typedef struct tir_library {
    const char *name, *file;
    uint32_t stack;
} tir_library;
const tir_library *tir_library_find(const char *name); /* NULL: it is a function of the program */

/* A view of memory: element type, shape, strides in elements (NULL: row-major), element offset (NULL: 0). Compared by
 * address. */
typedef struct tir_buffer {
    const char *name;
    dtype dt;
    uint32_t rank;
    tir_expr_ref const *shape;
    tir_expr_ref const *strides;
    tir_expr_ref offset;
    tir_scope scope;
    const char *scope_name; /* SCOPE_CUSTOM */
    uint32_t align;         /* bytes known of the base address; 0: the element's size */
    uint32_t id;
} tir_buffer;

typedef enum tir_expr_kind {
    TIR_INT,      /* u.i */
    TIR_FLOAT,    /* u.f */
    TIR_VAR,      /* u.var */
    TIR_BINOP,    /* op, args[0..2) */
    TIR_NOT,      /* logical, args[0] */
    TIR_CAST,     /* to type; args[0]. Float to integer truncates toward zero, saturating; to bool: != 0 */
    TIR_SELECT,   /* args: condition, then, else; only the chosen side is evaluated (loads of the other never happen) */
    TIR_LOAD,     /* u.buffer, args: one index per dimension (one in all once flattened); lanes > 1: see RAMP */
    TIR_CALL,     /* op: an intrinsic, args */
    TIR_ADDRESS,  /* u.buffer, args as in LOAD, or none: where the element, or the buffer, starts; a handle */
    TIR_EXTERN,   /* u.name: call of an external function, args; not pure */
    TIR_INSTR,    /* u.row: an instruction, args: its operands and symbols (tir/instr.h); op: TIR_ADD where it adds to
                   * its result, else it makes it */
    TIR_RAMP,     /* args: base, stride: base, base+stride, ... type.lanes of them */
    TIR_BROADCAST /* args[0] in all lanes */
} tir_expr_kind;

struct tir_expr {
    tir_expr_kind kind;
    tir_op op;
    tir_type type;
    uint32_t n_args;
    union {
        int64_t i;
        double f;
        const tir_var *var;
        const tir_buffer *buffer;
        const char *name;
        const struct tir_intrin *row;
    } u;
    tir_expr_ref args[];
};

/* A load, or the address of an element: u.buffer is named, args are indices. */
static inline bool tir_is_access(tir_expr_ref e)
{
    return e->kind == TIR_LOAD || e->kind == TIR_ADDRESS;
}

static inline bool tir_is_binary(tir_expr_ref e, tir_op op)
{
    return e->kind == TIR_BINOP && e->op == op;
}

typedef enum tir_for_kind { FOR_SERIAL, FOR_PARALLEL, FOR_VECTORIZED, FOR_UNROLLED, FOR_VTHREAD } tir_for_kind;

typedef enum tir_stmt_kind {
    TIR_FOR,      /* var from min, extent iterations, for_kind, body */
    TIR_IF,       /* cond, body, orelse (may be NULL) */
    TIR_LET,      /* var = value in body */
    TIR_STORE,    /* buffer, indices, value */
    TIR_ALLOCATE, /* buffer, body */
    TIR_ATTR,     /* key, node text, value, body: attr [node] "key" = value */
    TIR_EVALUATE, /* value */
    TIR_ASSERT,   /* cond, message: a false condition ends the kernel with status `code` */
    TIR_SEQ       /* stmts in order; may be empty */
} tir_stmt_kind;

struct tir_stmt {
    tir_stmt_kind kind;
    tir_for_kind for_kind;
    const tir_var *var;          /* FOR, LET */
    tir_expr_ref min, extent;    /* FOR */
    tir_expr_ref cond;           /* IF, ASSERT */
    tir_expr_ref value;          /* LET, STORE, ATTR, EVALUATE */
    const tir_buffer *buffer;    /* STORE, ALLOCATE */
    tir_expr_ref const *indices; /* STORE */
    uint32_t n_indices;
    const char *key, *node; /* ATTR; ASSERT: key is the message */
    int32_t code;           /* ASSERT */
    tir_stmt *body, *orelse;
    tir_stmt *const *stmts; /* SEQ */
    uint32_t n_stmts;
};

/* What passes could not do as they were asked to. X(member and attribute, report's key, what it counts) */
#define TIR_LEFT(X)                                                                           \
    X(serial, "loops_left_serial", "loops whose schedule asks for vectors, and that got none")     \
    X(whole, "loops_left_whole", "loops that check bounds in every round")                         \
    X(guards, "guards_left", "bounds checks in small innermost loops")                             \
    X(scalar, "products_scalar", "innermost loops that add products without vectors")              \
    X(plain, "loops_plain", "innermost loops of which C compilers make no vectors")                \
    X(calls, "calls_scalar", "functions called for each number in innermost loops")                \
    X(beyond, "registers_beyond", "vectors in innermost loops for which there is no register")     \
    X(instructions, "instructions_left",                                                          \
      "loops and values for which the processor has instructions, and that got none")
typedef struct tir_left {
#define X(member, key, help) uint32_t member;
    TIR_LEFT(X)
#undef X
} tir_left;

/* A variable that begins a body and is a number of the call, between those bounds. */
typedef struct tir_number {
    const tir_var *var;
    int64_t least, most;
} tir_number;

typedef struct tir_func {
    const char *name;
    const tir_buffer *const *params; /* inputs then outputs */
    uint32_t n_params;
    uint32_t n_inputs;
    const char *const *symbols; /* the first parameters are cells that hold the values of these dimensions */
    uint32_t n_symbols;
    tir_stmt *body;
    dtype index_type; /* DT_I64 or DT_I32 */
    src_loc loc;
    const char *schedule; /* text of the schedule that made it, for the kernel's comment; may be NULL */
    const char *schedule_from;    /* FILE:LINE where that stands; NULL: a rule made it */
    const struct target *target; /* who runs it; NULL: not decided, the default */
    int64_t macs;         /* multiply-accumulates, for reports */
    tir_left left;        /* for reports */
    bool *shared; /* of each parameter: the plan has it where another one lies, too; NULL: of none */
    const tir_number *numbers; /* the first parameter is an array of i32, which these variables are made of */
    uint32_t n_numbers;
} tir_func;

typedef struct tir_module {
    VEC(tir_func *) funcs;
    compiler *c;
} tir_module;
#endif
