#!/usr/bin/env bash
# Circles of files: circles.sh [--why] BUILD FOLDER...
# For each folder of sources, the groups of files that use each other's symbols in a circle, directly or by way of
# others: "FOLDER: FILE FILE ..." a line; nothing where the files stand on each other in one order. Read from the
# objects in BUILD. --why: also who uses what of whom within a group.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 3
why=
[ "${1:-}" != --why ] || { why=1; shift; }
build=$1
shift

# "FILE SYMBOL KIND" of every object of the folder whose source is still there.
symbols() {
    local source object objects=()
    for source in "$1"/*.c; do
        # The static library's objects, not those of the tests and fuzzers that build a source once more.
        for object in "$build"/CMakeFiles/lathe*.dir/"$source.o" \
            "$build/runtime/vta/CMakeFiles/vta_objects.dir/${source##*/}.o" \
            "$build/runtime/vm/CMakeFiles/vm_objects.dir/${source##*/}.o" \
            "$build/runtime/ext_dev/CMakeFiles/ext_dev_objects.dir/${source##*/}.o" \
            "$build/runtime/rpc/CMakeFiles/rpc_objects.dir/${source##*/}.o" \
            "$build/bindings/cmake/bindings/ffi/CMakeFiles/vta_ffi.dir/${source##*/}.o" \
            "$build/bindings/cmake/bindings/vm/CMakeFiles/lathe_ffi.dir/${source##*/}.o"; do
            case $object in
            */vm_objects.dir/*) [ "$1" = runtime/vm ] || continue ;;
            */ext_dev_objects.dir/*) [ "$1" = runtime/ext_dev ] || continue ;;
            */rpc_objects.dir/*) [ "$1" = runtime/rpc ] || continue ;;
            */vta_objects.dir/*) [ "$1" = runtime/vta ] || continue ;;
            */vta_ffi.dir/*) [ "$1" = bindings/ffi ] || continue ;;
            */lathe_ffi.dir/*) [ "$1" = bindings/vm ] || continue ;;
            esac
            [ ! -f "$object" ] || objects+=("$object")
        done
    done
    [ ${#objects[@]} = 0 ] || nm -A -P "${objects[@]}" | sed -E 's#^.*/([^/]*)\.o: #\1 #'
}

for folder in "$@"; do
    symbols "$folder" | LC_ALL=C sort | awk -v folder="$folder" -v why="$why" '
        { file[$1] = 1 }
        $3 == "U" { uses[$1, $2] = 1; next }
        $3 ~ /^[TDRBVW]$/ { home[$2] = $1 }
        END {
            for (pair in uses) {
                split(pair, at, SUBSEP)
                if (!(at[2] in home) || home[at[2]] == at[1]) continue
                reach[at[1], home[at[2]]] = 1
                what[at[1], home[at[2]]] = what[at[1], home[at[2]]] " " at[2]
            }
            for (k in file) for (i in file) if ((i, k) in reach)
                for (j in file) if ((k, j) in reach) reach[i, j] = 1
            for (i in file) {
                if (!((i, i) in reach) || i in told) continue
                size = 0
                for (j in file) if ((i, j) in reach && (j, i) in reach) { group[++size] = j; told[j] = 1 }
                for (a = 2; a <= size; a++)
                    for (b = a; b > 1 && group[b] < group[b - 1]; b--) {
                        swap = group[b]; group[b] = group[b - 1]; group[b - 1] = swap
                    }
                line = folder ":"
                for (a = 1; a <= size; a++) line = line " " group[a]
                print line
                if (why)
                    for (a = 1; a <= size; a++) for (b = 1; b <= size; b++) if ((group[a], group[b]) in what)
                        print "  " group[a] " uses of " group[b] ":" what[group[a], group[b]]
            }
        }'
done
