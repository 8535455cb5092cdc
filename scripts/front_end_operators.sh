#!/usr/bin/env bash
# The tables of operators in docs/reference/tflite.md and docs/reference/onnx-front-end.md, made of the front ends' own
# tables, tflite_ops.def and onnx_ops.def: front_end_operators.sh [--check] rewrites them, or says whether they are right.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -u
cd "$(dirname "$0")/.." || exit 3
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# What stands in the columns of a table MACRO(PARAMETERS), one row a line
expanded() { # FILE MACRO(PARAMETERS) COLUMNS
    printf '#define %s @@ %s\n#include "%s"\n' "$2" "$3" "$1" | ${CC:-cc} -E -P -Isrc -x c - | tr '\n' ' ' |
        sed 's/@@ */\n/g' | grep . | sed 's/"//g; s/ *| */|/g; s/ *$//'
}

tflite() {
    printf '| operator | up to version | types |\n|---|---|---|\n'
    # "shape weights x": the types are those of `shape`, which is not the data.
    sed -n '/tflite_op_compiled/d
        s/^TFLITE_OP([0-9]*, "\([^"]*\)", \([0-9]*\), "\(condition\|ids\|indices\|shape\)\( [^"]*\)\?", "\([^"]*\)".*/| \1 | \2 | \5 (`\3`) |/p; t
        s/^TFLITE_OP([0-9]*, "\([^"]*\)", \([0-9]*\), "[^"]*", "\([^"]*\)".*/| \1 | \2 | \3 |/p' \
        src/frontend/tflite/tflite_ops.def | sort
}

# Versions of one operator that are read differently make one row.
onnx() {
    printf '| operator | versions | operator of the graph |\n|---|---|---|\n'
    expanded frontend/onnx/onnx_ops.def 'ONNX_OP(d, name, since, until, ops, importer, ir, attrs)' 'd|name|since|until|importer|ir' |
        awk -F'|' '{ name = $1 == "" ? $2 : $1 "." $2
                     if (!(name in since) || $3 + 0 < since[name]) since[name] = $3 + 0
                     if (!(name in newest) || $3 + 0 >= newest[name]) {
                         newest[name] = $3 + 0; until[name] = $4 + 0; ir[name] = $5 == "onnx_op_direct" ? "`" $6 "`" : "" } }
                   END { for (name in since)
                             print "| " name " | " since[name] "-" (until[name] ? until[name] : "") " | " ir[name] " |" }' |
        LC_ALL=C sort
}

failed=0
for front_end in tflite onnx; do
    doc=docs/reference/tflite.md
    [ $front_end = tflite ] || doc=docs/reference/onnx-front-end.md
    awk -v rows="$($front_end)" '/^<!-- end of the table -->/ { skip = 0 }
        !skip { print }
        /^<!-- table: made by scripts\/front_end_operators.sh -->/ { print rows; skip = 1 }' "$doc" > "$new"
    if [ "${1:-}" != --check ]; then
        cat "$new" > "$doc"
    elif ! cmp -s "$new" "$doc"; then
        echo "$doc: the table of operators is not that of ${front_end}_ops.def: run scripts/front_end_operators.sh"
        failed=1
    fi
done
exit $failed
