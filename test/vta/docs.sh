#!/usr/bin/env bash
# The programs of docs/reference/vta-runtime.md compile with the project's warnings and print what the page says.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$LATHE_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Each block of C goes to N.c, the block of text after it to N.txt.
awk -v work="$work" '
    /^```c$/ { n++; out = work "/" n ".c"; next }
    /^```text$/ { out = work "/" n ".txt"; next }
    /^```$/ { out = "" }
    out != "" { print > out }' docs/reference/vta-runtime.md
passed=0
for source in "$work"/*.c; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -D_XOPEN_SOURCE=700 \
        ${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE} -Iruntime/vta -Iinclude/abi "$source" \
        "$LATHE_BUILD/runtime/vta/libvta.a" -ljansson -lpthread -lm -o "$work/program"
    "$work/program" > "$work/printed"
    diff "${source%.c}.txt" "$work/printed" || { echo "FAILED a program of docs/reference/vta-runtime.md"; exit 1; }
    passed=$((passed + 1))
done
[ $passed -ge 2 ]
# Installed, as the page says it, with the shared library.
cmake --install "$LATHE_BUILD" --prefix "$work/prefix" > "$work/log"
# shellcheck disable=SC2086
${CC:-cc} "$work/1.c" ${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE} -I "$work/prefix/include/lathe/vta" \
    -L "$work/prefix/lib" -Wl,-rpath,"$work/prefix/lib" -lvta -o "$work/program"
"$work/program" | diff "$work/1.txt" - || { echo "FAILED the program with the installed library"; exit 1; }
passed=$((passed + 1))
echo "$passed passed, 0 failed"
