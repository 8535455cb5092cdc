#!/bin/bash
# The runtime and the sample package compile without a warning as C99 in every configuration, and the headers as C++.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
rt=../../runtime/tvmrt
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
strict=(-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror)
failed=0 done=0
try() { # COMMAND...: must succeed in silence
    done=$((done + 1))
    "$@" > "$work/log" 2>&1 && [ ! -s "$work/log" ] && return
    failed=$((failed + 1))
    echo "FAILED: $*"
    head -20 "$work/log"
}

for cc in gcc clang-19; do
    command -v $cc > /dev/null || { echo "$cc is not here: left out"; continue; }
    for workers in 0 1 2 4; do
        for log in 0 1; do
            # clang's front end makes all of its warnings; gcc's need the optimiser
            as=(-c -o "$work/o")
            [[ $cc == gcc || $workers$log == 40 ]] || as=(-fsyntax-only)
            for file in tvmrt tvmrt_port_posix tvmrt_port_baremetal; do
                try $cc -std=c99 -O2 "${strict[@]}" -DTVMRT_NUM_WORKERS=$workers -DTVMRT_LOG_ENABLE=$log \
                    -DTVMRT_HOOKS=$((log ^ (workers == 1))) "${as[@]}" $rt/$file.c
            done
        done
        try $cc -std=c99 -O2 -ffreestanding "${strict[@]}" -DTVMRT_NUM_WORKERS=$workers -c $rt/tvmrt.c -o "$work/o"
    done
    try $cc -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_FREERTOS -DTVMRT_MUTEX_BYTES=160 -DTVMRT_COND_BYTES=160 \
        -DTVMRT_THREAD_BYTES=4864 -Ifreertos_stub -I$rt -c $rt/tvmrt_port_freertos.c -o "$work/o"
    try $cc -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_ZEPHYR -Izephyr_stub -I$rt -c $rt/tvmrt_port_zephyr.c -o "$work/o"
    try $cc -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_CMSIS_RTOS2 -Icmsis_stub -I$rt -c $rt/tvmrt_port_cmsis_rtos2.c -o "$work/o"
    try $cc -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_DUALCORE -DTVMRT_NUM_WORKERS=2 -I$rt -c $rt/tvmrt_port_dualcore.c -o "$work/o"
    if command -v arm-none-eabi-gcc > /dev/null; then
        try arm-none-eabi-gcc -mcpu=cortex-m33 -mthumb -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_DUALCORE -DTVMRT_NUM_WORKERS=2 \
            -I$rt -c $rt/tvmrt_port_dualcore.c -o "$work/o"
        try arm-none-eabi-gcc -mcpu=cortex-m0plus -mthumb -std=c99 -O2 "${strict[@]}" -DTVMRT_PORT_DUALCORE -DTVMRT_ATOMIC_HOOKS \
            -DTVMRT_NUM_WORKERS=2 -I$rt -c $rt/tvmrt_port_dualcore.c -o "$work/o"
    fi
    for file in sample/src/*.c; do
        case $file in *freertos*) extra=(-DTVMRT_PORT_FREERTOS -Ifreertos_stub) ;; *) extra=() ;; esac
        try $cc -std=c99 -O2 "${strict[@]}" "${extra[@]}" -Isample/src -Isample/include -I$rt -c "$file" -o "$work/o"
    done
done
for cxx in g++ clang++-19; do
    command -v $cxx > /dev/null || continue
    for workers in 0 4; do
        for std in c++11 c++17; do
            printf '#include "tvmrt.h"\n#include "tvmgen_default.h"\n#include "tvmgen_default_instance.h"\n%s\n' \
                'static tvmrt_engine_t engine = TVMRT_ENGINE_INIT; static tvmgen_default_instance instance;
                int main() { return tvmgen_default_instance_init(&instance, &engine, nullptr, 0); }' > "$work/x.cc"
            try $cxx -std=$std "${strict[@]}" -DTVMRT_NUM_WORKERS=$workers -I$rt -Isample/include \
                -c "$work/x.cc" -o "$work/o"
        done
    done
done
echo "$done compilations, $failed failed"
[ $failed -eq 0 ]
