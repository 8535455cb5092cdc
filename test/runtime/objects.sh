#!/bin/bash
# What the runtime's objects refer to and hold: no allocator, no other mutable object than the default engine, the log
# and the POSIX port's count of forks, nothing but the port from outside, and the stack bound that
# docs/reference/tvmrt.md states.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
rt=../../runtime/tvmrt
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
# Sum of all frames of tvmrt.c, in bytes: nothing recurses, so no path through it needs more. The bounds are
# those that docs/reference/tvmrt.md states.
allocators='malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|alloca|_?sbrk|mmap|strdup'
bound_threaded=1024 bound_single=576

check_stack() { # BOUND FILE.su
    local sum
    sum=$(awk -F'\t' '{ sum += $2; if ($3 != "static") bad = bad " " $1 } END {
        print sum + 0; if (bad != "") { print "not static:" bad > "/dev/stderr"; exit 1 } }' "$2") ||
        fail "stack of unknown size"
    echo "    stack: all frames together $sum of $1 bytes"
    [ "$sum" -le "$1" ] || fail "more stack than stated"
}

for cc in "${CC:-gcc}" arm-none-eabi-gcc; do
    command -v "${cc%% *}" > /dev/null || { echo "$cc is not here: left out"; continue; }
    ports="posix baremetal" workers="0 4 8" target=""
    case $cc in arm*) ports="baremetal" workers="0" target="-mcpu=cortex-m4 -mthumb" ;; esac
    for n in $workers; do
        rm -f "$work"/*.su
        for file in tvmrt $(printf 'tvmrt_port_%s ' $ports); do
            # shellcheck disable=SC2086
            $cc $target -std=c99 -O2 -DTVMRT_NUM_WORKERS="$n" -fstack-usage -c $rt/$file.c -o "$work/$file.o" || exit 1
            nm -u "$work/$file.o" | grep -E " ($allocators)\$" && fail "$file.o refers to an allocator"
        done
        outside=$(nm -u "$work/tvmrt.o" | awk '{ print $2 }' | grep -Ev '^(tvmrt_|_GLOBAL_OFFSET_TABLE_|__tsan|__asan)')
        [ -z "$outside" ] || fail "tvmrt.o refers to $outside"
        [ "$n" = 0 ] && nm -u "$work/tvmrt.o" | grep -q tvmrt_ &&
            fail "without workers tvmrt.o still refers to the port"
        nm "$work/tvmrt.o" | awk '$2 ~ /^[bBdDC]$/ && $3 !~ /^\$/ { print $3 }' | sort | tr '\n' ' ' > "$work/globals"
        [ "$(cat "$work/globals")" = "g_engine g_log " ] || fail "mutable objects: $(cat "$work/globals")"
        for port in $ports; do
            mutable=$(nm "$work/tvmrt_port_$port.o" | awk '$2 ~ /^[bBdDC]$/ && $3 !~ /^\$/ { print $3 }' | sort | tr '\n' ' ')
            [ "$mutable" = "$([ $port = posix ] && echo 'g_forks g_watch g_watch_status ')" ] ||
                fail "mutable objects of the port $port: $mutable"
        done
        echo "$cc, $n workers: $(size "$work/tvmrt.o" | awk 'NR == 2 { print "text " $1 ", data " $2 ", bss " $3 }')"
        check_stack $([ "$n" = 0 ] && echo $bound_single || echo $bound_threaded) "$work/tvmrt.su"
    done
done
