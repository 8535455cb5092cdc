#!/bin/bash
# Engine, log and stress tests under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer, and 1000 runs
# compared byte for byte at 0, 1, 2, 3, 4 and 8 workers.
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
rt=../../runtime/tvmrt
cc=${CC:-gcc}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0

run() { # NAME, TEST, FLAGS...
    local name=$1 test=$2 libs=()
    shift 2
    [ "$test" = stress ] || libs=(-lcmocka)
    if ! $cc -std=c11 -g -O1 "$@" -I$rt \
        test_"$test".c $rt/tvmrt{,_port_posix}.c "${libs[@]}" -lpthread -o "$work/t"; then
        echo "FAILED: $name does not build"
        failed=1
    elif ! "$work/t" > "$work/log" 2>&1; then
        echo "FAILED: $name"
        tail -40 "$work/log"
        failed=1
    else
        echo "$name: $(tail -n 1 "$work/log")"
    fi
}

for n in 0 1 2 3 4 8; do
    run "stress, $n workers" stress -DTVMRT_NUM_WORKERS=$n
    run "stress, $n workers, no spinning" stress -DTVMRT_NUM_WORKERS=$n -DTVMRT_SPIN=0
done
for test in log engine stress; do
    for n in 2 4 8; do
        run "$test, $n workers, thread sanitizer" $test -DTVMRT_NUM_WORKERS=$n -fsanitize=thread
    done
    run "$test, address and undefined sanitizers" $test -fsanitize=address,undefined -fno-sanitize-recover=all
done
run "engine, thread sanitizer, no spinning" engine -DTVMRT_SPIN=0 -fsanitize=thread
exit $failed
