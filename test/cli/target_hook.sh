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
#include "relu_hook.h"

bool lathe_register_ops(compiler *c, int api) { return api == LATHE_OP_API && target_register(c, &demo); }
END
cat > net.txt <<'END'
func @main(%x: f32[4], %z: f32[2, 2]) {
  %y = nn.relu(%x)
  %w = exp(%z)
  return %y, %w
}
END
library() { # NAME FLAGS...
    local name=$1
    shift
    cc -std=c11 -shared -fPIC -I"$root/include" -I"$root/src" -I"$root/test/cli" "$@" hook.c -o "$name.so"
}
library hook
"$LATHE" compile net.txt --load-ops hook.so --target demo --emit tir > loops.txt
[ "$(grep -c lowered_by_hook loops.txt)" = 1 ]
grep -q fused_exp loops.txt
"$LATHE" compile net.txt --load-ops hook.so --target demo -o out
make -s -C out CC="${CC:-cc}"
printf '\000\000\200\277\000\000\000\000\000\000\200\077\000\000\310\102' > x.bin
out/runner x=x.bin -o result > /dev/null
# a Makefile for firmware has what the target's row says of a build by hand
"$LATHE" compile net.txt --load-ops hook.so --target demo --port baremetal -o bare -q
grep -q '^# make lib CC=demo-gcc' bare/Makefile
[ "$(od -An -v -t f4 result/y.bin | tr -s ' \n' ' ')" = ' 0 0 1 100 ' ]

# max(x, 0.5): the package and the definition differ, with the right loops they do not
library wrong -DLEAST=0.5
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
library silent -DSILENT
for verb in "compile -o out3" "compile --emit tir" inspect run "verify --against onnxruntime"; do
    status=0
    # shellcheck disable=SC2086
    "$LATHE" $verb net.txt --load-ops ./silent.so --target demo > said.txt 2> err.txt || status=$?
    [ $status = 3 ] && [ ! -s said.txt ] && [ ! -e out3 ]
    grep -q 'failed without an error message.*internal' err.txt && grep -q 'hint: .*please report' err.txt
done

# an instruction whose kernel is named, but is no file of lathe's
awk '/^```c title="toy.c"/ { on = 1; next } /^```/ { on = 0 } on' "$root/docs/how-to/adding-hardware.md" |
    sed 's|\.passed = "aaa",|.passed = "aaa", .kernel = "kernel/toy.h",|' > toy.c
cc -std=c11 -shared -fPIC -I"$root/include" -I"$root/src" toy.c -o toy.so
for file in product.txt toy.schedules; do
    awk -v title="title=\"$file\"" 'index($0, title) { on = 1; next } /^```/ { on = 0 } on' \
        "$root/docs/how-to/adding-hardware.md" > $file
done
status=0
"$LATHE" compile product.txt --load-ops ./toy.so --target toy --schedules toy.schedules -o out4 2> err.txt || status=$?
[ $status = 1 ] && [ ! -e out4 ]
grep -q 'does not write what calls kernel/toy.h: lathe has no such file' err.txt
grep -q "hint: .*include your header by the target's cflags" err.txt

if "$LATHE" compile net.txt --target demo -o out2 2> err.txt; then exit 1; fi
grep -q "'demo' is unknown" err.txt
echo "target hook: works"
