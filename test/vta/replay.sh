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
"$work/make" add_five 5 > "$work/add_five.c"
"$work/make" add_nine 9 > "$work/add_nine.c"
# shellcheck disable=SC2086
$cc $sanitize test/vta/replay/run.c "$work"/add_{five,nine}.c $libs -o "$work/run"
[ "$("$work/run")" = right ]

# Programs without a heap take replay alone: one device, streams one after the other, all memory their own.
ninja -C "$LATHE_BUILD" runtime/vta/libvta_replay.a > /dev/null
# shellcheck disable=SC2086
${cc/c11/c99} $sanitize test/vta/replay/board.c "$work/add_five.c" "$work/add_nine.c" \
    "$LATHE_BUILD/runtime/vta/libvta_replay.a" -o "$work/board"
"$work/board" > "$work/board.out"
diff test/vta/replay/board.expected "$work/board.out"

# No allocator, no thread, no stdio: what libvta_replay needs beside itself. Compilers call memcpy, memmove, memset and
# memcmp by themselves, and every C environment has them.
for source in replay status config_check mmio; do
    $cc -Os -c "runtime/vta/$source.c" -o "$work/$source.o"
done
for name in $(nm -u "$work"/{replay,status,config_check,mmio}.o | awk 'NF == 2 { print $2 }' | LC_ALL=C sort -u); do
    case $name in
    memcpy|memmove|memset|memcmp|memchr|strcmp|vta_fail|vta_config_check|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_) ;;
    *) echo "FAILED libvta_replay needs $name"; exit 1 ;;
    esac
done
# The capture itself is read-only data.
$cc -c "$work/add_five.c" -o "$work/add_five.o"
if nm "$work/add_five.o" | grep -E ' [bBdD] ' | grep -v 'add_five$'; then echo "FAILED writable data"; exit 1; fi
echo "4 passed, 0 failed"
