#!/usr/bin/env bash
# A target from outside the tree that lowers a fused function itself, and declines the others.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
LATHE=${LATHE:-$root/build/lathe}
LATHE=$(cd "$(dirname "$LATHE")" && pwd)/$(basename "$LATHE")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > hook.c <<'END'
#include "lathe/op.h"

#include <string.h>

/* Takes fused_nn_relu of one dimension: y[i] = max(x[i], 0), under an attribute that shows whose loops these are. */
static bool lower(compiler *c, const graph_func *f, const char *name, tir_func **out)
{
    int64_t n[TYPE_MAX_RANK];
    if (strcmp(f->name, "fused_nn_relu") != 0 || f->params.data[0]->type.shape.rank != 1 ||
        !shape_get(f->params.data[0]->type.shape, n))
        return true;
    const tir_buffer **p = arena_array(&c->mem, const tir_buffer *, 2);
    p[0] = tir_buffer_static(c, "x", DT_F32, 1, n, SCOPE_GLOBAL);
    p[1] = tir_buffer_static(c, "y", DT_F32, 1, n, SCOPE_GLOBAL);
    const tir_var *i = tir_new_var(c, "i", TIR_I64);
    tir_expr_ref at[1] = {tir_varref(c, i)};
    tir_stmt *store = tir_store(c, p[1], 1, at, tir_max(c, tir_load(c, p[0], 1, at), tir_float(c, DT_F32, 0)));
    tir_stmt *loop = tir_for(c, i, tir_i64(c, 0), tir_i64(c, n[0]), FOR_SERIAL, store);
    *out = arena_new(&c->mem, tir_func);
    **out = (tir_func){.name = name, .params = p, .n_params = 2, .n_inputs = 1, .index_type = DT_I64, .loc = src_loc_none()};
    (*out)->body = tir_attr(c, "demo", "lowered_by_hook", tir_i64(c, 1), loop);
    return true;
}

static const target demo = {.name = "demo", .cflags = "", .vector_regs = 16, .stack_limit = 4096, .workers = 1, .lower = lower};

bool lathe_register_ops(compiler *c, int api) { return api == LATHE_OP_API && target_register(c, &demo); }
END
cat > net.txt <<'END'
func @main(%x: f32[4], %z: f32[2, 2]) {
  %y = nn.relu(%x)
  %w = exp(%z)
  return %y, %w
}
END
cc -std=c11 -shared -fPIC -I"$root/include" -I"$root/src" hook.c -o hook.so
"$LATHE" compile net.txt --load-ops hook.so --target demo --emit tir > loops.txt
[ "$(grep -c lowered_by_hook loops.txt)" = 1 ]
grep -q fused_exp loops.txt
"$LATHE" compile net.txt --load-ops hook.so --target demo -o out
make -s -C out CC="${CC:-cc}"
printf '\000\000\200\277\000\000\000\000\000\000\200\077\000\000\310\102' > x.bin
out/runner x=x.bin -o result > /dev/null
[ "$(od -An -v -t f4 result/y.bin | tr -s ' \n' ' ')" = ' 0 0 1 100 ' ]
if "$LATHE" compile net.txt --target demo -o out2 2> err.txt; then exit 1; fi
grep -q "unknown target 'demo'" err.txt
echo "target hook: works"
