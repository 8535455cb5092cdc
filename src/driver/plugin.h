/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries from outside the tree: shared objects that register operators (include/lathe/op.h) or code generators
 * (include/lathe/codegen.h). */
#ifndef LATHE_DRIVER_PLUGIN_H
#define LATHE_DRIVER_PLUGIN_H
#include "base/compiler.h"

/* Loads the shared object at `path` and lets it register its rows into c. It stays loaded until the process ends, for
 * the rows point into it. Errors: DIAG_ENVIRONMENT when it cannot be loaded, DIAG_USAGE when it is not an operator
 * library of this API version. */
bool plugin_load_ops(compiler *c, const char *path);
bool plugin_load_codegen(compiler *c, const char *path); /* likewise, of code generators */
#endif
