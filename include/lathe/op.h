/* SPDX-License-Identifier: Apache-2.0 */
/* Public header for operators from outside the tree (docs/tutorials/add-an-op.md): operator rows and type relations,
 * tensor expressions, schedules and tensor intrinsics, and what walks and simplifies loops. An operator library defines
 * lathe_register_ops, and is loaded by the option "load-ops" of a compile. Compile it with -I for both `include` and
 * `src`, or with `pkg-config --cflags lathe_op` of an installed tree, and link it with nothing of Lathe: it finds the
 * functions in the program, or in the library, that loads it. */
#ifndef LATHE_OP_H
#define LATHE_OP_H
#ifndef LATHE_INSIDE /* the compiler itself has the functions by their own names */
#include "lathe/op_names.h"
#endif
#include "graph/op.h"
#include "te/te_op.h"
#include "tir/intrin.h"
#include "tir/simplify.h"
#include "tir/walk.h"

/* Changes whenever a structure that operator libraries fill or read changes. */
#define LATHE_OP_API 7

/* Registers the library's rows into the context; `api` is the compiler's LATHE_OP_API. Returns false after a
 * diagnostic. Called once for every compile. */
bool lathe_register_ops(compiler *c, int api);
#endif
