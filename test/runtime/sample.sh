#!/bin/bash
# The sample package by make and by CMake: 10 -> 23 with every number of workers, files in and out, bad arguments
# refused; two packages and several instances in one program, also under ThreadSanitizer.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")" || exit 1
source_dir=$PWD
rt=$(cd ../../runtime/tvmrt && pwd)
cc=${CC:-gcc}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
expect() { # CODE COMMAND...
    local want=$1 got
    shift
    "$@" > "$work/log" 2>&1
    got=$?
    [ $got -eq "$want" ] || { cat "$work/log"; fail "exit $got instead of $want: $*"; }
}

cp -r sample "$work/p"
cp "$rt"/tvmrt.h "$rt"/tvmrt.c "$rt"/tvmrt_port_{posix.c,blocking.h,common.h} "$work/p/src"
cd "$work/p" || exit 1
printf '\x00\x00\x20\x41' > ten.bin
for n in 0 1 2 4 8; do
    make -s clean
    make -s all CC="$cc" WORKERS=$n CFLAGS="-O2 -Werror" || fail "make with $n workers"
    rm -rf out
    ./runner input=ten.bin -o out -n 50 > log || fail "runner with $n workers"
    grep -q '^output float32 \[1\] range 23..23 first: 23$' log || fail "$(cat log)"
    [ "$(od -An -tx1 out/output.bin | tr -d ' ')" = 0000b841 ] || fail "out/output.bin"
done
expect 0 ./runner
expect 0 make -s run
expect 1 ./runner input=/nonexistent
expect 1 ./runner input=/dev/null
expect 1 ./runner input=Makefile
expect 2 ./runner nosuch=ten.bin
expect 2 ./runner -n
expect 2 ./runner -n 0
expect 2 ./runner -n 3x
expect 2 ./runner -w 999
expect 2 ./runner --help
expect 1 ./runner -o /proc/nowhere/out
make -s clean
[ ! -e build ] && [ ! -e runner ] || fail "make clean leaves something"
if command -v cmake > /dev/null; then
    cmake -S . -B cm -DCMAKE_C_COMPILER="$cc" > log 2>&1 && cmake --build cm > log 2>&1 || { cat log; fail "cmake"; }
    ./cm/runner input=ten.bin | grep -q 'first: 23$' || fail "the program that CMake built"
fi

# Package "other" is "default" with one constant changed.
cp -r . "$work/q" && cd "$work/q" || exit 1
rm -rf cm build out
for f in include/* src/default_*; do mv "$f" "${f//default/other}"; done
sed -i 's/default/other/g; s/DEFAULT/OTHER/g; s/{5.0f}/{6.0f}/' include/* src/other_* src/model_data.c src/ops.c
folders=(-I"$rt" -I"$work/p/include" -I"$work/p/src" -I"$work/q/include" -I"$work/q/src")
for flags in "-DTVMRT_NUM_WORKERS=4" "-DTVMRT_NUM_WORKERS=0" "-DTVMRT_NUM_WORKERS=4 -fsanitize=thread" \
    "-fsanitize=address,undefined"; do
    # shellcheck disable=SC2086
    $cc -std=c99 -g -O1 -Wall -Wextra -Werror $flags "${folders[@]}" \
        "$source_dir/two_packages.c" "$work"/p/src/{default_lib0,default_lib1,model_data,ops}.c \
        "$work"/q/src/{other_lib0,other_lib1,model_data,ops}.c "$rt"/tvmrt{,_port_posix}.c -lpthread -o "$work/two" ||
        fail "two packages do not build with $flags"
    "$work/two" || fail "two packages with $flags"
done
