#!/usr/bin/env bash
# Makes include/lathe/op_names.h: op_names.sh [--check] [BUILD]. The functions that lathe/op.h declares are those that it
# names, with all that it includes, and that BUILD/liblathe_core.a defines. --check compares, and changes nothing.
# SPDX-License-Identifier: Apache-2.0
[ "${1:-}" != --help ] || { sed -n '2,/^# SPDX/{/SPDX/d;s/^# \{0,1\}//p}' "$0"; exit 0; }
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
check=0
[ "${1:-}" != --check ] || { check=1; shift; }
build=${1:-build} file=include/lathe/op_names.h
[ -e "$build/liblathe_core.a" ] || { echo "$build/liblathe_core.a is missing: build first, or name the build"; exit 2; }
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"${CC:-cc}" -std=c11 -E -P -DLATHE_INSIDE -Iinclude -Isrc include/lathe/op.h | grep -oE '[A-Za-z_][A-Za-z0-9_]*' |
    sort -u > "$made/named"
nm -g --defined-only "$build/liblathe_core.a" 2> "$made/said" | awk 'NF == 3 { print $3 }' | grep -v '^lathe_' |
    sort -u > "$made/defined"
{
    cat << 'END'
/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which operator libraries reach functions of the compiler. A program that has the compiler inside may
 * have an arena_alloc of its own, and so may its other libraries: outside of the compiler every name begins with
 * lathe_. Made by scripts/op_names.sh. */
#ifndef LATHE_OP_NAMES_H
#define LATHE_OP_NAMES_H
END
    comm -12 "$made/named" "$made/defined" | sed 's/.*/#define & lathe_op_&/'
    echo '#endif'
} > "$made/op_names.h"
if [ $check = 1 ]; then
    diff -u "$file" "$made/op_names.h" || { echo "scripts/op_names.sh makes it anew"; exit 1; }
else
    cp "$made/op_names.h" "$file"
fi
