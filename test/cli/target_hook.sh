#!/usr/bin/env bash
# A target from outside the tree that lowers a fused function itself, and declines the others. When its loops are wrong,
# the interpreter, which runs the operator's definition, tells.
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

# max(x, 0.5): the package and the definition differ, with the right loops they do not
sed 's/tir_float(c, DT_F32, 0)/tir_float(c, DT_F32, 0.5)/' hook.c > wrong.c
cc -std=c11 -shared -fPIC -I"$root/include" -I"$root/src" wrong.c -o wrong.so
y_of() { # HOOK OPTIONS...: y as text
    local hook=$1
    shift
    "$LATHE" run net.txt --load-ops ./$hook.so --target demo --input x=x.bin --output-dir y "$@" > /dev/null
    tail -c 16 y/y.npy | od -An -v -t f4 | tr -s ' \n' ' '
}
[ "$(y_of hook)" = ' 0 0 1 100 ' ]
[ "$(y_of hook --interpret)" = ' 0 0 1 100 ' ]
[ "$(y_of wrong)" = ' 0.5 0.5 1 100 ' ]
[ "$(y_of wrong --interpret)" = ' 0 0 1 100 ' ]
# a hook that fails and does not say why: lathe says so
sed 's/^    const tir_buffer \*\*p = .*/    return false;\n&/' hook.c > silent.c
cc -std=c11 -shared -fPIC -I"$root/include" -I"$root/src" silent.c -o silent.so
for verb in "compile -o out3" "compile --emit tir" inspect run "verify --against onnxruntime"; do
    status=0
    # shellcheck disable=SC2086
    "$LATHE" $verb net.txt --load-ops ./silent.so --target demo > said.txt 2> err.txt || status=$?
    [ $status = 3 ] && [ ! -s said.txt ] && [ ! -e out3 ]
    grep -q 'no part of it says why.*internal' err.txt && grep -q 'hint: .*please report' err.txt
done

if "$LATHE" compile net.txt --target demo -o out2 2> err.txt; then exit 1; fi
grep -q "'demo' is unknown" err.txt
echo "target hook: works"
