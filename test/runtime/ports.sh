#!/bin/bash
# The ports for systems that are not here, compiled and run on this machine: engine and stress tests, also under
# ThreadSanitizer, and the sample package with its FreeRTOS main. FreeRTOS, Zephyr and CMSIS-RTOS2 have stand-ins over
# POSIX threads (*_stub/); of two cores each is a thread, with all three kinds of atomic operations of tvmrt.h.
# FREERTOS_KERNEL_PATH, where it names the sources of FreeRTOS, runs the sample on the real kernel, by its POSIX port.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
rt=../../runtime/tvmrt
cc=${CC:-gcc}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0
flags=() port=()

run() { # NAME SOURCES-AND-FLAGS...
    local name=$1
    shift
    if $cc "${flags[@]}" "$@" "${port[@]}" -lcmocka -lpthread -o "$work/t" && "$work/t" ${runs-} > "$work/log" 2>&1; then
        echo "$name: $(tail -n 1 "$work/log")"
    else
        echo "FAILED: $name"
        tail -30 "$work/log"
        failed=1
    fi
}
common=(-std=c11 -g -O1 -Wall -Wextra -Werror "-I$rt")
flags=("${common[@]}" -DTVMRT_PORT_FREERTOS -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160 -DTVMRT_THREAD_BYTES=4864
    -Ifreertos_stub)
port=("$rt/tvmrt.c" "$rt/tvmrt_port_freertos.c" freertos_stub/freertos_stub.c)
for n in 0 1 2 4 8; do
    run "freertos: stress, $n workers" test_stress.c -DTVMRT_NUM_WORKERS=$n
done
run "freertos: engine" test_engine.c
run "freertos: engine, thread sanitizer" test_engine.c -fsanitize=thread
run "freertos: stress, thread sanitizer" test_stress.c -fsanitize=thread
run "freertos: stress, spinning, thread sanitizer" test_stress.c -fsanitize=thread -DTVMRT_SPIN=500
run "freertos: engine, address sanitizer" test_engine.c -fsanitize=address,undefined -fno-sanitize-recover=all
run "freertos: sample" sample/src/{main_freertos,default_lib0,default_lib1,model_data,ops}.c -Isample/src -Isample/include
sample_is_right() {
    grep -q '^output float32 \[1\] range 1.171875..1.171875 first: 1.171875$' "$work/log" && return
    echo "FAILED: output of the sample"
    failed=1
}
sample_is_right

flags=("${common[@]}" -DTVMRT_PORT_ZEPHYR -DTVMRT_ZEPHYR_STACKS=16 -Izephyr_stub)
port=("$rt/tvmrt.c" "$rt/tvmrt_port_zephyr.c")
run "zephyr: engine, thread sanitizer" test_engine.c -fsanitize=thread
runs=200 run "zephyr: stress" test_stress.c

flags=("${common[@]}" -DTVMRT_PORT_CMSIS_RTOS2 -Icmsis_stub)
port=("$rt/tvmrt.c" "$rt/tvmrt_port_cmsis_rtos2.c" cmsis_stub/cmsis_stub.c)
run "cmsis-rtos2: engine, thread sanitizer" test_engine.c -fsanitize=thread
runs=200 run "cmsis-rtos2: stress" test_stress.c

# Threads that spin without end would take turns on a machine of one core: they give it up. The thread sanitizer knows
# the atomic functions of the compiler alone.
flags=("${common[@]}" -D_POSIX_C_SOURCE=200809L -DTVMRT_PORT_DUALCORE -DTVMRT_NUM_WORKERS=2 -DTVMRT_SPIN=0
    -include sched.h '-DTVMRT_WAIT()=sched_yield()' '-DTVMRT_NOTIFY()=((void)0)')
port=("$rt/tvmrt.c" "$rt/tvmrt_port_dualcore.c" dualcore_stub/dualcore_stub.c)
runs=200 run "dualcore: stress, thread sanitizer" test_stress.c -fsanitize=thread
runs=200 run "dualcore: stress, C11 atomics" test_stress.c -DTVMRT_ATOMICS=2
runs=200 run "dualcore: stress, hooks of the board" test_stress.c -DTVMRT_ATOMIC_HOOKS

# The real FreeRTOS, on the threads of this machine.
kernel=${FREERTOS_KERNEL_PATH:-}
if [ ! -f "$kernel/portable/ThirdParty/GCC/Posix/port.c" ]; then
    echo "freertos: not run on the real kernel: FREERTOS_KERNEL_PATH does not name its sources"
    exit $failed
fi
posix=$kernel/portable/ThirdParty/GCC/Posix
flags=(-std=gnu11 -g -O1 -w -DTVMRT_PORT_FREERTOS -DTVMRT_MUTEX_BYTES=256 -DTVMRT_COND_BYTES=256 "-I$rt" -Ifreertos_kernel
    -DTVMRT_THREAD_BYTES=32768 -DTVMRT_WORKER_STACK_BYTES=16384 "-I$kernel/include" "-I$posix" "-I$posix/utils")
port=("$rt/tvmrt.c" "$rt/tvmrt_port_freertos.c" "$kernel"/{tasks,queue,list}.c "$posix/port.c"
    "$posix/utils/wait_for_event.c" freertos_kernel/stop.c)
for n in 0 2 4; do
    run "freertos, the real kernel: sample, $n workers" -DTVMRT_NUM_WORKERS=$n -Isample/src -Isample/include \
        sample/src/{main_freertos,default_lib0,default_lib1,model_data,ops}.c
    sample_is_right
done
exit $failed
