/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the loop IR, made (build.c, build_stmt.c). Constructors fold constants and apply the cheap identities (x+0,
 * x*1, 0*x for integers). */
#ifndef LATHE_TIR_BUILD_H
#define LATHE_TIR_BUILD_H
#include "tir/tir.h"

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
bool tir_is_widening(tir_expr_ref e); /* a cast between integer types that keeps every value */
tir_expr_ref tir_select(compiler *c, tir_expr_ref cond, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref tir_load(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
/* Where that element of b is (n == 0: where b starts), for an external function. Scalar indices. */
tir_expr_ref tir_address(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
tir_expr_ref tir_call(compiler *c, tir_op op, uint32_t n, tir_expr_ref const *args);
tir_expr_ref tir_call1(compiler *c, tir_op op, tir_expr_ref a);
tir_expr_ref tir_extern(compiler *c, const char *name, tir_type t, uint32_t n, tir_expr_ref const *args);
/* An instruction; op: TIR_ADD or TIR_OP_NONE. The verifier says whether its arguments are right. */
tir_expr_ref tir_instr(compiler *c, const struct tir_intrin *row, tir_op op, uint32_t n, tir_expr_ref const *args);
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
#endif
