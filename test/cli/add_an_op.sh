#!/usr/bin/env bash
# Follows docs/tutorials/add-an-op.md to the letter: extracts its files, runs its commands, compares what it says they
# print.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
LATHE=${LATHE:-$root/build/lathe}
LATHE=$(cd "$(dirname "$LATHE")" && pwd)/$(basename "$LATHE")
export LATHE LATHE_SOURCE=$root
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
doc=$root/docs/tutorials/add-an-op.md

# block INFO: the contents of the fenced block whose info string is INFO
block() {
    awk -v want="\`\`\`$1" '$0 == want {on = 1; next} $0 == "```" {on = 0} on' "$doc"
}
cd "$dir"
block 'c title="softcap.c"' > softcap.c
block 'text title="net.txt"' > net.txt
[ -s softcap.c ] && [ -s net.txt ]
eval "$(block 'sh title="build"')"
eval "$(block 'sh title="types"')" > types.txt
diff -u <(block 'text title="types"') types.txt
eval "$(block 'sh title="run"')" > run.txt

floats() { od -An -v -t f4 "$1" | tr -s ' \n' ' '; }
tail -c 16 oracle/y.npy > oracle.bin
awk -v a="$(floats c_result/y.bin)" -v b="$(floats oracle.bin)" 'BEGIN {
    n = split(a, x, " "); m = split(b, z, " "); split("-1.924234 0 1.924234 102", want, " ")
    bad = n != 4 || m != 4
    for (i = 1; i <= 4; i++) {
        if ((x[i] - want[i]) ^ 2 > 1e-9 || (z[i] - want[i]) ^ 2 > 1e-9) { bad = 1; print "element " i ": " x[i] ", oracle " z[i] ", want " want[i] }
    }
    exit bad }'
echo "add-an-op: the recipe works"
