#!/usr/bin/env bash
# The table of operators in docs/reference/tflite.md, made of src/frontend/tflite/tflite_ops.def: tflite_operators.sh
# [--check] rewrites it, or says whether it is right.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
doc=docs/reference/tflite.md new=$(mktemp)
trap 'rm -f "$new"' EXIT
rows=$(printf '| operator | up to version | types |\n|---|---|---|\n'; sed -n 's/^TFLITE_OP([0-9]*, "\([^"]*\)", \([0-9]*\), "[^"]*", "\([^"]*\)".*/| \1 | \2 | \3 |/p' \
    src/frontend/tflite/tflite_ops.def | sort)
awk -v rows="$rows" '/^<!-- end of the table -->/ { skip = 0 }
    !skip { print }
    /^<!-- table: made by scripts\/tflite_operators.sh -->/ { print rows; skip = 1 }' "$doc" > "$new"
if [ "${1:-}" = --check ]; then
    cmp -s "$new" "$doc" && exit 0
    echo "$doc: the table of operators is not that of tflite_ops.def: run scripts/tflite_operators.sh"
    exit 1
fi
cat "$new" > "$doc"
