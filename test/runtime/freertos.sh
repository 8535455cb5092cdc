#!/bin/bash
# The FreeRTOS port, compiled against the stand-in of freertos_stub/ and run: engine and stress tests at several
# numbers of workers, also under ThreadSanitizer, and the sample package with its FreeRTOS main.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
rt=../../runtime/tvmrt
cc=${CC:-gcc}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0
flags=(-std=c11 -g -O1 -Wall -Wextra -Werror -DTVMRT_PORT_FREERTOS -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160
    -DTVMRT_THREAD_BYTES=4864 -Ifreertos_stub -I$rt)
port=("$rt/tvmrt.c" "$rt/tvmrt_port_freertos.c" freertos_stub/freertos_stub.c)

run() { # NAME SOURCES-AND-FLAGS...
    local name=$1
    shift
    if $cc "${flags[@]}" "$@" "${port[@]}" -lcmocka -lpthread -o "$work/t" && "$work/t" > "$work/log" 2>&1; then
        echo "$name: $(tail -n 1 "$work/log")"
    else
        echo "FAILED: $name"
        tail -30 "$work/log"
        failed=1
    fi
}
for n in 0 1 2 4 8; do
    run "stress, $n workers" test_stress.c -DTVMRT_NUM_WORKERS=$n
done
run "engine" test_engine.c
run "engine, thread sanitizer" test_engine.c -fsanitize=thread
run "stress, thread sanitizer" test_stress.c -fsanitize=thread
run "stress, spinning, thread sanitizer" test_stress.c -fsanitize=thread -DTVMRT_SPIN=500
run "engine, address sanitizer" test_engine.c -fsanitize=address,undefined -fno-sanitize-recover=all
run "sample" sample/src/{main_freertos,default_lib0,default_lib1,model_data,ops}.c -Isample/src -Isample/include
if ! grep -q '^output float32 \[1\] range 1.171875..1.171875 first: 1.171875$' "$work/log"; then
    echo "FAILED: output of the sample"
    failed=1
fi
exit $failed
