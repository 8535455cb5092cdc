#!/usr/bin/env bash
# What `make install` leaves is enough: examples/exec.c is built with the installed header and library, by pkg-config, and
# runs the demo's network as a module, asked and answered as a user would; a wrong description of its inputs is refused.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
[ -z "${LATHE_SANITIZE:-}" ] || { echo "a library with sanitizers is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() { if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $1"; cat "$work/out"; fi; }

cmake --install "$LATHE_BUILD" --prefix "$work/root" > "$work/out" 2>&1 || { cat "$work/out"; exit 1; }
PKG_CONFIG_PATH=$(find "$work/root" -name pkgconfig -type d)
export PKG_CONFIG_PATH XDG_CACHE_HOME=$LATHE_BUILD/test/vm-cache
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -D_XOPEN_SOURCE=700 examples/exec.c -o "$work/exec" \
    $(pkg-config --cflags --libs lathe_vm) -Wl,-rpath,"$(pkg-config --variable=libdir lathe_vm)" > "$work/out" 2>&1
check "examples/exec.c is built with what is installed" $?
"$LATHE" compile demo/digits.onnx --emit module -o "$work/digits.so" > "$work/out" 2>&1
check "the demo's network becomes a module" $?

# describe SHAPE: the metadata file.
describe() {
    echo '{"inputs": [{"name": "image", "shape": '"$1"', "dtype": "float32", "device": "my_device"}]}' > "$work/inputs.json"
}
run() { printf '%s\n%s\n' "$work/digits.so" "$work/inputs.json" | "$work/exec" > "$work/out" 2>&1; }

describe '[1, 1, 8, 8]'
run
check "exec runs the module" $?
grep -Eq '^float32\[1, 10\], [0-9.e-]+ to [0-9.e-]+:( [0-9.e-]+){8} \.\.\.$' "$work/out"
check "exec says the shape of the output, its range and the first values" $?
[ "$(wc -l < examples/exec.c)" -le 40 ]
check "examples/exec.c is short" $?
describe '[1, 1, 8, 9]'
run
[ $? = 1 ] && grep -q 'input image has the shape \[1, 1, 8, 9\], in the module \[1, 1, 8, 8\]' "$work/out"
check "a wrong description is refused" $?

# --- without a compiler: the library of loops beside that of the machine
cat > "$work/loops.c" << 'END'
#include <lathe/loops.h>
#include <stdio.h>

#include "lathe_vm.h"

int main(int argc, char **argv)
{
    lathe_options options = {.size = sizeof options, .cache_dir = "", .compiler = "/nonexistent"};
    lathe_loops *loops;
    lathe_runtime *rt;
    lathe_error e = {0};
    lathe_value library, vm, none, inputs[4], result, devices[6];
    const int64_t numbers[] = {LATHE_MY_DEVICE, 0, 2, LATHE_CPU, 0, 2};
    int32_t n;
    for (int i = 0; i < 6; i++) {
        devices[i] = (lathe_value){.type = LATHE_INT};
        devices[i].u.v_int = numbers[i];
    }
    if (argc != 3 || lathe_loops_create(NULL, NULL, &loops, &e) != LATHE_OK)
        return 2;
    options.interpret = lathe_loops_interpret;
    options.interpret_user = loops;
    if (lathe_runtime_create(&options, &rt, &e) != LATHE_OK ||
        lathe_LoadFromFile(rt, argv[1], &library, &e) != LATHE_OK ||
        lathe_call_named(&library, "vm_load_executable", NULL, 0, &vm, &e) != LATHE_OK ||
        lathe_call_named(&vm, "vm_initialization", devices, 6, &none, &e) != LATHE_OK ||
        lathe_sample_inputs(rt, &vm, argv[2], inputs, 4, &n, &e) != LATHE_OK ||
        lathe_call_named(&vm, "main", inputs, n, &result, &e) != LATHE_OK) {
        printf("%s\n", e.message);
        return 1;
    }
    const lathe_dltensor *t = lathe_tensor_of(&result);
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += ((const float *)(const void *)((const char *)t->data + t->byte_offset))[i];
    printf("sum %.3f\n", sum);
    lathe_release(&result);
    for (int32_t i = 0; i < n; i++)
        lathe_release(&inputs[i]);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
    lathe_loops_destroy(loops);
    return 0;
}
END
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror "$work/loops.c" -o "$work/loops" \
    $(pkg-config --cflags --libs lathe_loops) -Wl,-rpath,"$(pkg-config --variable=libdir lathe_vm)" > "$work/out" 2>&1
check "a program with the library of loops is built with what is installed" $?
describe '[1, 1, 8, 8]'
"$work/loops" "$work/digits.so" "$work/inputs.json" > "$work/out" 2>&1
[ $? = 1 ] && grep -q "there is no compiler" "$work/out"
check "a module without loops needs a compiler" $?
"$LATHE" compile demo/digits.onnx --emit module --with-interpreter -o "$work/loops.so" > "$work/out" 2>&1
check "the demo's network becomes a module with loops" $?
"$work/loops" "$work/loops.so" "$work/inputs.json" > "$work/out" 2>&1
[ $? = 0 ] && grep -q "^sum 1.000" "$work/out"
check "it runs without a compiler" $?
nm -D --defined-only "$work/root"/lib*/liblathe_vm.so | awk '{ print $3 }' | grep -vE '^(lathe_|TVM)' > "$work/out"
[ ! -s "$work/out" ]
check "the library shows no other names" $?
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
