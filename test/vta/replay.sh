#!/usr/bin/env bash
# A captured stream, printed as C, compiled into a program and replayed; and what replay needs of its surroundings.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$LATHE_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc="${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -D_XOPEN_SOURCE=700 -Iruntime/vta -Iinclude/abi"
sanitize=${LATHE_SANITIZE:+-fsanitize=$LATHE_SANITIZE}
libs="$LATHE_BUILD/runtime/vta/libvta.a -ljansson -lpthread -lm"

# shellcheck disable=SC2086
$cc $sanitize test/vta/replay/make.c $libs -o "$work/make"
"$work/make" > "$work/add_five.c"
# shellcheck disable=SC2086
$cc $sanitize test/vta/replay/run.c "$work/add_five.c" $libs -o "$work/run"
[ "$("$work/run")" = right ]

# No allocator, no thread, nothing of the library but the error message.
$cc -c runtime/vta/replay.c -o "$work/replay.o"
undefined=$(nm -u "$work/replay.o" | awk '{ print $NF }' | LC_ALL=C sort | xargs)
for name in $undefined; do
    case $name in
    memcpy|memset|memcmp|strcmp|vta_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_) ;;
    *) echo "FAILED replay.c needs $name"; exit 1 ;;
    esac
done
# The capture itself is read-only data.
$cc -c "$work/add_five.c" -o "$work/add_five.o"
if nm "$work/add_five.o" | grep -E ' [bBdD] ' | grep -v 'add_five$'; then echo "FAILED writable data"; exit 1; fi
echo "3 passed, 0 failed"
