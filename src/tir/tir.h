/* SPDX-License-Identifier: Apache-2.0 */
/* Loop IR: functions over buffers; statements and expressions as immutable trees in the compiler's arena
 * (docs/loop-ir.md). Passes build new trees and share what they leave alone. Index arithmetic is i64 (or i32 when the
 * function says so), never overflows by construction, and uses floordiv/floormod; value arithmetic wraps for integers.
 * f16 and bf16 are storage types: arithmetic on them is f32 rounded after every operation that the IR shows (a cast to
 * f16 rounds). bool is u8 holding 0 or 1. */
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
    X(TIR_LOG, "log", 1)                                                                                         \
    X(TIR_SQRT, "sqrt", 1)                                                                                       \
    X(TIR_SIN, "sin", 1) X(TIR_COS, "cos", 1) X(TIR_TAN, "tan", 1) X(TIR_ASIN, "asin", 1) X(TIR_ACOS, "acos", 1) \
        X(TIR_ATAN, "atan", 1) X(TIR_SINH, "sinh", 1) X(TIR_COSH, "cosh", 1) X(TIR_TANH, "tanh", 1)              \
            X(TIR_ASINH, "asinh", 1) X(TIR_ACOSH, "acosh", 1) X(TIR_ATANH, "atanh", 1) X(TIR_ERF, "erf", 1)      \
                X(TIR_POW, "pow", 2) X(TIR_FMOD, "fmod", 2) X(TIR_FLOOR, "floor", 1) X(TIR_CEIL, "ceil", 1)      \
                    X(TIR_RINT, "rint", 1) /* half to even */ X(TIR_TRUNC, "trunc", 1) X(TIR_FABS, "fabs", 1)    \
                        X(TIR_LOG1P, "log1p", 1) X(TIR_EXPM1, "expm1", 1) X(TIR_ISNAN, "isnan", 1)               \
                            X(TIR_ISINF, "isinf", 1) X(TIR_BITNOT, "bitnot", 1)                                  \
                                X(TIR_FMA, "fma", 3) /* a*b+c, contraction allowed */                            \
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
uint32_t tir_op_arity(tir_op op);
dtype tir_op_result(tir_op op, dtype dt); /* of an intrinsic on operands of type dt */

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

/* Keys of annotations "pragma_KEY" that passes act on; a schedule can write no others (docs/vta.md). */
#define TIR_PRAGMAS(X) X(dma_copy) X(skip_dma_copy) X(alu) X(skip_alu) X(coproc_sync) X(conv2d_transpose_gemm)

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
    } u;
    tir_expr_ref args[];
};

/* A load, or the address of an element: u.buffer is named, args are indices. */
static inline bool tir_is_access(tir_expr_ref e)
{
    return e->kind == TIR_LOAD || e->kind == TIR_ADDRESS;
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
    X(serial, "loops_left_serial", "vectorized loops that got no lanes")                      \
    X(whole, "loops_left_whole", "loops that keep a guard because of a limit on cutting")     \
    X(guards, "guards_left", "conditions on indices that innermost loops test")
typedef struct tir_left {
#define X(member, key, help) uint32_t member;
    TIR_LEFT(X)
#undef X
} tir_left;

typedef struct tir_func {
    const char *name;
    const tir_buffer *const *params; /* inputs then outputs */
    uint32_t n_params;
    uint32_t n_inputs;
    tir_stmt *body;
    dtype index_type; /* DT_I64 or DT_I32 */
    src_loc loc;
    const char *schedule; /* text of the schedule that made it, for the kernel's comment; may be NULL */
    const struct target *target; /* who runs it; NULL: not decided, the default */
    int64_t macs;         /* multiply-accumulates, for reports */
    tir_left left;        /* for reports */
} tir_func;

typedef struct tir_module {
    VEC(tir_func *) funcs;
    compiler *c;
} tir_module;

/* --- building (tir/build.c). Constructors fold constants and apply the cheap identities (x+0, x*1, 0*x for ints). */
#define TIR_I64  ((tir_type){DT_I64, 1})
#define TIR_BOOL ((tir_type){DT_BOOL, 1})
tir_type tir_scalar(dtype dt);
const tir_var *tir_new_var(compiler *c, const char *name, tir_type t);
const tir_buffer *tir_new_buffer(compiler *c, const char *name, dtype dt, uint32_t rank, tir_expr_ref const *shape,
                                 tir_scope s);
const tir_buffer *tir_buffer_static(compiler *c, const char *name, dtype dt, uint32_t rank, const int64_t *dims,
                                    tir_scope s);
int64_t tir_buffer_count(const tir_buffer *b); /* elements; -1 when not static */
tir_expr_ref tir_int(compiler *c, dtype dt, int64_t v);
tir_expr_ref tir_i64(compiler *c, int64_t v);
tir_expr_ref tir_float(compiler *c, dtype dt, double v);
tir_expr_ref tir_const(compiler *c, dtype dt, double v); /* int or float by dt */
tir_expr_ref tir_varref(compiler *c, const tir_var *v);
tir_expr_ref tir_binary(compiler *c, tir_op op, tir_expr_ref a,
                        tir_expr_ref b); /* asserts equal types; broadcasts lanes */
tir_expr_ref tir_add(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_sub(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_mul(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_floordiv(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_floormod(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_min(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_max(compiler *c, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_and(compiler *c, tir_expr_ref a, tir_expr_ref b); /* either may be NULL: the other */
tir_expr_ref tir_not(compiler *c, tir_expr_ref a);
tir_expr_ref tir_cast(compiler *c, dtype dt, tir_expr_ref a);
tir_expr_ref tir_select(compiler *c, tir_expr_ref cond, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_load(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
/* Where that element of b is (n == 0: where b starts), for an external function. Scalar indices. */
tir_expr_ref tir_address(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
tir_expr_ref tir_call(compiler *c, tir_op op, uint32_t n, tir_expr_ref const *args);
tir_expr_ref tir_call1(compiler *c, tir_op op, tir_expr_ref a);
tir_expr_ref tir_extern(compiler *c, const char *name, tir_type t, uint32_t n, tir_expr_ref const *args);
tir_expr_ref tir_ramp(compiler *c, tir_expr_ref base, tir_expr_ref stride, uint16_t lanes);
tir_expr_ref tir_broadcast(compiler *c, tir_expr_ref a, uint16_t lanes);
tir_expr_ref tir_string(compiler *c, const char *text); /* argument of a call, value of an attribute */
bool tir_is_int(tir_expr_ref e, int64_t *out);          /* integer constant (broadcast looked through) */
bool tir_is_const(tir_expr_ref e, int64_t v);

tir_stmt *tir_for(compiler *c, const tir_var *v, tir_expr_ref min, tir_expr_ref extent, tir_for_kind k, tir_stmt *body);
tir_stmt *tir_if(compiler *c, tir_expr_ref cond, tir_stmt *then, tir_stmt *orelse);
tir_stmt *tir_let(compiler *c, const tir_var *v, tir_expr_ref value, tir_stmt *body);
tir_stmt *tir_store(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices, tir_expr_ref value);
tir_stmt *tir_allocate(compiler *c, const tir_buffer *b, tir_stmt *body);
tir_stmt *tir_attr(compiler *c, const char *node, const char *key, tir_expr_ref value, tir_stmt *body);
tir_stmt *tir_evaluate(compiler *c, tir_expr_ref value);
tir_stmt *tir_assert(compiler *c, tir_expr_ref cond, int32_t code, const char *message);
tir_stmt *tir_seq(compiler *c, uint32_t n, tir_stmt *const *stmts); /* flattens nested sequences, drops NULLs */

/* --- walking --- */
/* Rewrites bottom-up: `expr` and `stmt` see a node whose children are already rewritten and return it or another.
 * Either may be NULL. `enter` (may be NULL) sees a statement before its children. */
typedef struct tir_rewriter {
    compiler *c;
    void *ctx;
    tir_expr_ref (*expr)(struct tir_rewriter *r, tir_expr_ref e);
    tir_stmt *(*stmt)(struct tir_rewriter *r, tir_stmt *s);
    void (*enter)(struct tir_rewriter *r, tir_stmt *s);
} tir_rewriter;
tir_expr_ref tir_rewrite_expr(tir_rewriter *r, tir_expr_ref e);
tir_stmt *tir_rewrite_stmt(tir_rewriter *r, tir_stmt *s);
void tir_visit_expr(tir_expr_ref e, void (*fn)(void *ctx, tir_expr_ref e), void *ctx); /* pre-order */
void tir_visit_stmt(tir_stmt *s, void (*stmt)(void *ctx, tir_stmt *s), void (*expr)(void *ctx, tir_expr_ref e),
                    void *ctx);
tir_expr_ref tir_substitute(compiler *c, tir_expr_ref e, uint32_t n, const tir_var *const *vars,
                            tir_expr_ref const *values);
tir_stmt *tir_substitute_stmt(compiler *c, tir_stmt *s, uint32_t n, const tir_var *const *vars,
                              tir_expr_ref const *values);
bool tir_expr_equal(tir_expr_ref a, tir_expr_ref b); /* structure; variables and buffers by address */
bool tir_uses_var(tir_expr_ref e, const tir_var *v);

/* --- simplification with integer ranges (tir/simplify.c) --- */
typedef struct tir_range {
    bool known_min, known_max;
    int64_t min, max; /* inclusive */
} tir_range;
typedef struct tir_bounds tir_bounds; /* ranges of variables in scope */
tir_bounds *tir_bounds_new(compiler *c);
void tir_bounds_push(tir_bounds *b, const tir_var *v, tir_expr_ref min, tir_expr_ref extent); /* extent > 0 assumed */
void tir_bounds_pop(tir_bounds *b);
tir_range tir_range_of(tir_bounds *b, tir_expr_ref e);
/* Canonical form: sums of products sorted with constants last, floordiv/floormod of them split and cancelled by ranges,
 * comparisons and selects decided where provable. */
tir_expr_ref tir_simplify(tir_bounds *b, tir_expr_ref e);
bool tir_prove(tir_bounds *b, tir_expr_ref cond); /* true: holds for all values in range */
tir_stmt *
tir_simplify_stmt(compiler *c,
                  tir_stmt *s); /* pushes ranges while it walks; drops dead branches, loops of extent 1, empty loops */

/* --- text, checks, oracle --- */
void tir_print_expr(writer *w, tir_expr_ref e);
void tir_print_stmt(writer *w, tir_stmt *s);
void tir_print_func(writer *w, const tir_func *f);
void tir_print(writer *w, const tir_module *m);
bool tir_parse(compiler *c, const char *file, const char *text, size_t len, tir_module **out);
/* One function at the current token of l, which stands behind it afterwards. */
bool tir_parse_func(compiler *c, lexer *l, tir_func **out);
/* Types, definition before use, buffer ranks, and index bounds: an access that provably lies outside is an error. */
bool tir_verify(compiler *c, const tir_func *f);
/* The same for an expression that is evaluated for all values of n variables, from 0 to below their extents, where
 * `where` holds (NULL: everywhere). Other variables and buffers are the caller's. Messages start with loc and name. */
bool tir_verify_expr(compiler *c, src_loc loc, const char *name, uint32_t n, const tir_var *const *vars,
                     tir_expr_ref const *extents, tir_expr_ref where, tir_expr_ref e);

/* Interpreter (tir/interp.c): the oracle, and what folds constants. Compiles the function to register bytecode, then
 * runs it. params: one address per parameter (any alignment for inputs), row-major. false after a diagnostic; an ASSERT
 * gives its code in out_status. */
bool tir_interpret(compiler *c, const tir_func *f, void *const *params, int32_t *out_status);

/* --- passes, as rows (tir/pass.c): each runs alone through `lathe opt` --- */
typedef bool (*tir_pass_fn)(compiler *c, tir_func *f);
/* For the VTA accelerator, under the names that TVM gave them (src/tir/pass/vta, docs/vta.md). */
#define TIR_VTA_PASSES(X)                                                                                             \
    X(T_TRANSPOSE, "InjectConv2DTransposeSkip", tir_pass_inject_conv2d_transpose_skip, "taps on zeros cost nothing") \
    X(T_DMA, "InjectDMAIntrin", tir_pass_inject_dma_intrin, "a dma_copy nest becomes a transfer of rows")             \
    X(T_SKIP_COPY, "InjectSkipCopy", tir_pass_inject_skip_copy, "a skip_dma_copy nest goes away")                     \
    X(T_ANNOTATE_ALU, "AnnotateALUCoProcScope", tir_pass_annotate_alu_coproc_scope, "an alu nest is a kernel")        \
    X(T_LIFT_UOP, "LiftAttrScope(coproc_uop_scope)", tir_pass_lift_uop_scope, "kernels take in loops around them")    \
    X(T_LIFT_ALLOC, "LiftAllocToScopeBegin", tir_pass_lift_alloc_to_scope_begin, "allocations open their loop")       \
    X(T_LIFT_COPROC, "LiftAttrScope(coproc_scope)", tir_pass_lift_coproc_scope, "neighbours in one queue are a task") \
    X(T_SYNC, "InjectCoProcSync", tir_pass_inject_coproc_sync,                                                        \
      "tokens between queues, waits and barriers of the host")                                                        \
    X(T_EARLY_REWRITE, "EarlyRewrite", tir_pass_early_rewrite, "in place, then one checked allocation a scratchpad")  \
    X(T_VTA_STORAGE, "StorageRewrite", tir_pass_vta_storage_rewrite, "one checked allocation a scratchpad")           \
    X(T_ALU, "InjectALUIntrin", tir_pass_inject_alu_intrin, "an alu nest becomes loops around a micro-op")            \
    X(T_LOWER_DEVICE, "LowerDeviceStorageAccessInfo", tir_pass_lower_device_storage, "addresses become indices")      \
    X(T_FOLD_UOP, "FoldUopLoop", tir_pass_fold_uop_loop, "loops around micro-ops become hardware loops")             \
    X(T_CPU_ACCESS, "CPUAccessRewrite", tir_pass_cpu_access_rewrite, "the host goes through the run-time's pointers") \
    X(T_LOWER_INTRIN, "LowerIntrin", tir_pass_lower_intrin, "operations become calls of the run-time")
#define TIR_PASSES(X)                                                                                                \
    X(T_SIMPLIFY, "simplify-loops", tir_pass_simplify, "ranges, dead branches, loops of one iteration")              \
    X(T_PARTITION, "partition-loops", tir_pass_partition, "split loops where a guard changes, so that it goes away") \
    X(T_DOUBLE_BUFFER, "double-buffer", tir_pass_double_buffer, "marked buffers are filled one iteration ahead")     \
    X(T_TENSORIZE, "tensorize", tir_pass_tensorize, "marked regions become intrinsics")                              \
    X(T_FLATTEN, "flatten", tir_pass_flatten, "multi-dimensional accesses become one index")                         \
    X(T_VECTORIZE, "vectorize", tir_pass_vectorize, "vectorized loops become ramps and broadcasts")                  \
    X(T_MATH, "expand-math", tir_pass_math, "exp, erf, tanh of float32 become arithmetic, the same for any lanes")   \
    X(T_UNROLL, "unroll", tir_pass_unroll, "unrolled loops are written out")                                         \
    X(T_HOIST, "hoist", tir_pass_hoist, "loop-invariant guards move out")                                            \
    X(T_DEAD, "drop-dead-stores", tir_pass_dead_stores, "stores into private arrays that nothing reads go")          \
    X(T_STORAGE, "rewrite-storage", tir_pass_storage,                                                                \
      "small allocations become locals, constant-index ones registers")                                              \
    X(T_REUSE, "reuse-in-place", tir_pass_reuse, "an element-wise result takes the place of what it is made from")   \
    X(T_VTHREAD, "InjectVirtualThread", tir_pass_inject_virtual_thread, "virtual threads side by side")              \
    TIR_VTA_PASSES(X)
#define X(id, name, fn, help) bool fn(compiler *c, tir_func *f);
TIR_PASSES(X)
#undef X
bool tir_run_passes(compiler *c, tir_module *m, const char *names, bool print_after_all,
                    writer *dump); /* NULL: all in order; "vta": tir_vta_passes; verifies after each */

/* Loops as a schedule says them, with guards cut away, accesses flattened and nothing else decided. */
extern const char *const tir_plain_passes;
/* The passes of the VTA back end in order, on loops as a schedule leaves them. */
extern const char *const tir_vta_passes;

/* --- facts for the plan (tir/analysis.c) --- */
/* May parameter `out` share storage with parameter `in`? True when every element is read (by any load of `in`) no later
 * than the iteration that writes it, at the same flat index, in a single nest. Equal byte sizes are the caller's
 * business. */
bool tir_can_alias(compiler *c, const tir_func *f, uint32_t in, uint32_t out);
/* Extent of the one parallel loop that encloses all stores to outputs and global allocations; 1 when there is none. */
int64_t tir_parallel_extent(const tir_func *f);
/* Allocations in SCOPE_GLOBAL, in order of appearance: the scratch the plan must provide. per_part: inside the parallel
 * loop. */
typedef struct tir_scratch {
    const tir_buffer *buffer;
    bool per_part;
} tir_scratch;
uint32_t tir_find_scratch(compiler *c, const tir_func *f, const tir_scratch **out);
uint32_t tir_count_guards(const tir_func *f); /* see TIR_LEFT */
/* Of the structure: names of vars and buffers are left out. */
uint64_t tir_hash(const compiler *c, const tir_func *f);
bool tir_func_equal(const compiler *c, const tir_func *a, const tir_func *b);
#endif
