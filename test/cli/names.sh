#!/usr/bin/env bash
# Inputs and outputs whose names mean something in C: the package builds without warnings all the same.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3
cat > names.txt << 'TEXT'
func @main(%int64_t: f32[4], %uint32_t: f32[4], %expf: f32[4], %INT32_MAX: f32[4], %lathe_max_f32: f32[4],
           %f32x8: f32[4], %part: f32[4], %while: f32[4]) {
  %a = add(%int64_t, %uint32_t)
  %b = exp(%expf)
  %c = maximum(%b, %INT32_MAX)
  %d = maximum(%c, %lathe_max_f32)
  %e = nn.softmax(%f32x8)
  %f = add(%part, %while)
  %g = add(%a, %d)
  %h = add(%e, %f)
  %printf = add(%g, %h)
  return %printf
}
TEXT
for level in 0 2; do
    expect 0 '' compile names.txt -O$level -o names$level
    check "names at -O$level" make -s -C names$level CC="$cc" CFLAGS="-O1 -Wall -Wextra -Wshadow -Wconversion -Werror"
    check "they run" ./names$level/runner
    check "fields of the public struct" grep -q 'const void \*v_INT32_MAX;' names$level/include/tvmgen_default.h
done
# --- the library without main.c; stack figures; a microcontroller's package starts without threads
check "make lib" make -s -C names2 lib CC="$cc"
check "the library has no main" sh -c '! nm names2/libtvmgen_default.a | grep -q " T main$"'
check "stack figures in the header" grep -q 'TVMGEN_DEFAULT_KERNEL_STACK_BYTES' names2/include/tvmgen_default.h
check "stack figures in the report" grep -q '"stack_bytes"' names2/report.json
expect 0 '' compile names.txt --target cortex-m --port baremetal -o bare
check "no threads on bare metal" grep -q '^WORKERS ?= 0$' bare/Makefile
# --- the runner's help, and outputs whose file names are the same
check "runner --help" sh -c './names2/runner --help | grep -q "int64_t float32 .4., 16 bytes"'
check "an unknown argument names the inputs" sh -c './names2/runner bogus 2>&1 | grep -q "^usage: runner"'
cat > twice.txt << 'TEXT'
func @main(%x: f32[4]) {
  %a.b = exp(%x)
  %A.b = add(%x, %x)
  return %a.b, %A.b
}
TEXT
expect 0 '' compile twice.txt -o twice
check "it builds" make -s -C twice CC="$cc"
check "two outputs, two files" sh -c './twice/runner -o out && test -s out/a.b.bin && test -s out/A.b_1.bin'
finish
