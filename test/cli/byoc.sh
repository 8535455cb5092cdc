#!/usr/bin/env bash
# Code generators from outside the tree. First docs/add-a-back-end.md is followed to the letter: its files extracted, its
# commands run, its numbers compared. Then what a generator may do wrong.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.bash"
lathe=$(cd "$(dirname "$lathe")" && pwd)/$(basename "$lathe")
export LATHE=$lathe LATHE_SOURCE=$top HOME=$work XDG_CACHE_HOME=$work/cache
doc=$top/docs/add-a-back-end.md
cd "$work" || exit 1

# block INFO: the contents of the fenced block whose info string is INFO
block() {
    awk -v want="\`\`\`$1" '$0 == want {on = 1; next} $0 == "```" {on = 0} on' "$doc"
}
step() {
    block "sh step=$1" > "$1.sh"
    [ -s "$1.sh" ] || bad "the page has no step $1"
    check "step $1" bash -e "$1.sh"
}
for file in petal.h petal.c petal_codegen.c; do
    block "c file=$file" > "$file"
done
block 'text file=net.txt' > net.txt
check "an example is short" [ "$(wc -l < petal_codegen.c)" -le 100 ]
step build
step package
block 'c step=source' > want.c
sed -n '/^\/\* nn.matmul/,$p' out/src/petal.c > got.c
check "the page shows the source" diff -u -B want.c got.c
step run
floats() { tail -c 16 "$1" | od -An -v -t f4 | tr -s ' \n' ' '; }
check "package and interpreter" [ "$(floats c_result/z.bin)" = "$(floats oracle/z.npy)" ]
check "module and interpreter" [ "$(floats module/z.npy)" = "$(floats oracle/z.npy)" ]
check "numbers" [ "$(floats oracle/z.npy)" = ' 0 0 22 32 ' ]
finish
