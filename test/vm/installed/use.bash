#!/usr/bin/env bash
# What is installed is enough: use.bash FOLDER uses what `make install`, the Debian packages or the binary tarball put
# into FOLDER (/usr, say). The program there compiles the demo's network; examples/exec.c, built by pkg-config, runs it
# as a module, asked and answered as a user would; a project of CMake finds all libraries; Python loads the shared ones.
# The source in LATHE_SOURCE has the examples and pages, and need not be built.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
root=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1"
        cat "$work/out"
    fi
}

LATHE=$root/bin/lathe
# Debian compresses manual pages, and has a folder of its own for what packages complete in zsh.
for text in man/man1/lathe.1*:man bash-completion/completions/lathe:completion\ bash \
    zsh/*/_lathe:completion\ zsh fish/vendor_completions.d/lathe.fish:completion\ fish; do
    # shellcheck disable=SC2086
    "$LATHE" ${text#*:} 2>&1 | diff <(gzip -cdf "$root"/share/${text%%:*}) - > "$work/out" 2>&1
    check "$text is installed" $?
done
completes() { # completes SHELL COMMANDS PATTERN: what the shell, where it is here, completes with the installed file
    command -v "$1" > /dev/null || return 0
    "$1" -c "$2" > "$work/out" 2>&1 && grep -q "$3" "$work/out"
    check "$1 completes" $?
}
completes bash ". '$root/share/bash-completion/completions/lathe'; COMP_WORDS=(lathe comp); COMP_CWORD=1; _lathe
    echo \"\${COMPREPLY[@]}\"" 'compile completion'
completes fish "source '$root/share/fish/vendor_completions.d/lathe.fish'; complete -C 'lathe comp'" '^compile'
completes zsh "fpath=($root/share/zsh/*(/) \$fpath); autoload -Uz compinit; compinit -u -d '$work/zsh'
    echo \"completed by \$_comps[lathe]\"" 'completed by _lathe'
PKG_CONFIG_PATH=$root/lib/pkgconfig
export PKG_CONFIG_PATH XDG_CACHE_HOME=${XDG_CACHE_HOME:-$work/cache}
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -D_XOPEN_SOURCE=700 examples/exec.c -o "$work/exec" \
    $(pkg-config --cflags --libs lathe_vm) -Wl,-rpath,"$(pkg-config --variable=libdir lathe_vm)" > "$work/out" 2>&1
check "examples/exec.c is built with what is installed" $?
"$LATHE" compile demo/digits.onnx --emit module -o "$work/digits.so" > "$work/out" 2>&1
check "the demo's network becomes a module" $?

# describe SHAPE: the metadata file.
describe() {
    echo '{"inputs": [{"name": "image", "shape": '"$1"', "dtype": "float32", "device": "my_device"}]}' \
        > "$work/inputs.json"
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

# --- the compiler as a library
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -Werror examples/compile.c -o "$work/compile" $(pkg-config --cflags --libs lathe) \
    -Wl,-rpath,"$(pkg-config --variable=libdir lathe)" > "$work/out" 2>&1
check "examples/compile.c is built with what is installed" $?
CFLAGS=-O0 "$work/compile" demo/digits.onnx > "$work/out" 2>&1 && [ "$(grep -c '^0[.]' "$work/out")" = 10 ]
check "it compiles the demo's network and runs it" $?
# The C blocks of the page: a program, and pieces of another one.
awk '/^```c$/ { n++; next } /^```/ { if (n == 1) exit } n == 1' docs/how-to/c-api.md > "$work/page.c"
{
    printf '#include <lathe/lathe.h>\nint main(void)\n{\n    lathe_context *context = lathe_context_new();\n'
    printf '    lathe_model *model;\n    lathe_executable *net;\n    lathe_read(context, "model.onnx", &model);\n'
    awk '/^```c$/ { n++; next } /^```/ { on = 0; next } { if (n == 2 && !done) print } /lathe_settings_free/ { done = 1 }' docs/how-to/c-api.md
    printf '    return net == 0;\n}\n'
} > "$work/pieces.c"
mkdir "$work/page" && cp demo/digits.onnx "$work/page/model.onnx"
for name in page pieces; do
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$work/$name.c" -o "$work/page/$name" $(pkg-config --cflags --libs lathe) \
        -Wl,-rpath,"$(pkg-config --variable=libdir lathe)" > "$work/out" 2>&1 &&
        (cd "$work/page" && CFLAGS=-O0 "./$name") > "$work/out" 2>&1
    check "docs/how-to/c-api.md: $name" $?
done
[ -e "$work/page/firmware/report.json" ]
check "docs/how-to/c-api.md: the firmware is there" $?
"$work/compile" README.md > "$work/out" 2>&1
[ $? = 1 ] && grep -q '^README.md:' "$work/out"
check "it says what is wrong with a file" $?
# shellcheck disable=SC2046
${CC:-cc} -std=c11 examples/compile.c -o "$work/static" $(pkg-config --cflags lathe) "$root/lib/liblathe.a" \
    $(pkg-config --static --libs-only-l lathe | sed 's/-llathe //') > "$work/out" 2>&1 &&
    CFLAGS=-O0 "$work/static" demo/digits.onnx > "$work/out" 2>&1
check "the static library serves as well" $?
{
    nm -D --defined-only "$root/lib/liblathe.so" # which ones these are: test/cli/plugins.sh
    nm --defined-only "$root/lib/liblathe.a" | grep ' [TDBRGS] '
} 2> "$work/said" | awk '{ print $3 }' | grep -vE '^(lathe_|$)' > "$work/out"
[ ! -s "$work/out" ]
check "both libraries show no other names" $?
readelf -d "$root/lib/liblathe.so" | grep -q 'SONAME.*liblathe[.]so[.]0\]'
check "the library says its version" $?

# --- operators from outside, with the installed headers alone
awk '/^```c title="softcap.c"/ { on = 1; next } /^```/ { on = 0 } on' docs/tutorials/add-an-op.md > "$work/softcap.c"
echo 'func @main(%x: f32[4]) { %s = demo.softcap(%x) {cap = 2.0} return %s }' > "$work/net.txt"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -Werror -shared -fPIC "$work/softcap.c" -o "$work/softcap.so" \
    $(pkg-config --cflags --libs lathe_op) > "$work/out" 2>&1 &&
    "$LATHE" compile "$work/net.txt" --load-ops "$work/softcap.so" -o "$work/net" > "$work/out" 2>&1
check "an operator library is built with what is installed" $?
${CC:-cc} -MM -Iinclude -Isrc include/lathe/op.h | grep -oE 'src/[a-z_/]*[.](h|def)' | sed 's|src/||' | sort > "$work/included"
(cd "$root/include/lathe/compiler" && find . -type f | sed 's|^[.]/||' | sort) | diff "$work/included" - > "$work/out"
check "the compiler's headers that are installed are those that lathe/op.h includes" $?

# --- stopped while a compiler runs: it goes, and what it wrote
cat > "$work/slow" << END
#!/bin/sh
[ "\$1" = -v ] && exit 0
echo \$\$ > "$work/pid"
kill -TERM \$PPID
sleep 1000
END
chmod +x "$work/slow"
mkdir "$work/tmp"
describe '[1, 1, 8, 8]'
(printf '%s\n%s\n' "$work/digits.so" "$work/inputs.json" | XDG_CACHE_HOME=$work/none CC=$work/slow TMPDIR=$work/tmp \
    "$work/exec" > "$work/out" 2>&1; exit $?) 2> "$work/said"
[ $? = $((128 + $(kill -l TERM))) ]
check "SIGTERM ends exec as it ends every program" $?
gone() { ! kill -0 "$(cat "$work/pid")" 2> "$work/said" && [ -z "$(ls "$work/tmp")" ]; }
for _ in $(seq 100); do gone && break; sleep 0.1; done # rm runs on behind it
gone
check "the compiler that ran for it is gone, and its folder" $?

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
nm -D --defined-only "$root"/lib/liblathe_vm.so | awk '{ print $3 }' | grep -vE '^(lathe_|TVM)' > "$work/out"
[ ! -s "$work/out" ]
check "the library shows no other names" $?

# --- the VTA library, with the page's first program
awk '/^```c$/ { n++; next } /^```/ { if (n == 1) exit } n == 1' docs/reference/vta-runtime.md > "$work/vta.c"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 "$work/vta.c" -o "$work/vta" $(pkg-config --cflags --libs lathe_vta) \
    -Wl,-rpath,"$(pkg-config --variable=libdir lathe_vta)" > "$work/out" 2>&1 && "$work/vta" > "$work/out" 2>&1
grep -q '^5 6 [.]* 68$' "$work/out"
check "a program with the VTA library, by pkg-config" $?

# --- the same programs as a project of CMake; C++ takes the headers
mkdir "$work/project"
cp examples/exec.c examples/outside.h examples/compile.c "$work/vta.c" "$work/loops.c" "$work/softcap.c" "$work/project"
cat > "$work/project/both.cc" << 'END'
#include <lathe/codegen.h>
#include <lathe/lathe.h>
#include <lathe_vm.h>
#include <lathe/ext_dev.h>
#include <lathe/loops.h>
int main() { return lathe_device_api_ext_dev() == nullptr || *lathe_version() == '\0'; }
END
cat > "$work/project/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.22)
project(user C CXX)
find_package(lathe 0.1 REQUIRED)
find_package(lathe REQUIRED) # twice, as projects of several parts do
add_executable(run exec.c)
target_link_libraries(run PRIVATE lathe::vm)
add_executable(vta vta.c)
target_link_libraries(vta PRIVATE lathe::vta)
add_executable(loops loops.c)
target_link_libraries(loops PRIVATE lathe::loops)
add_executable(compile compile.c)
target_link_libraries(compile PRIVATE lathe::lathe)
add_library(softcap MODULE softcap.c)
target_link_libraries(softcap PRIVATE lathe::op)
add_executable(both both.cc)
target_link_libraries(both PRIVATE lathe::lathe lathe::vm lathe::loops lathe::vta)
END
env -u PKG_CONFIG_PATH cmake -S "$work/project" -B "$work/made" -DCMAKE_PREFIX_PATH="$root" > "$work/out" 2>&1 &&
    cmake --build "$work/made" > "$work/out" 2>&1
check "a project of CMake finds the libraries" $?
"$work/made/vta" > "$work/out" 2>&1 && "$work/made/both" > "$work/out" 2>&1
check "what CMake made runs" $?
printf '%s\n%s\n' "$work/digits.so" "$work/inputs.json" | "$work/made/run" > "$work/out" 2>&1
check "and runs the module" $?

# --- Python, without a binding
python3 - "$root/lib" > "$work/out" 2>&1 << 'END'
import ctypes, sys
vm, vta = (ctypes.CDLL(f"{sys.argv[1]}/{name}") for name in ("liblathe_vm.so", "libvta.so"))
runtime, error = ctypes.c_void_p(), ctypes.create_string_buffer(65536)
assert vm.lathe_runtime_create(None, ctypes.byref(runtime), error) == 0, error.raw
vm.lathe_runtime_destroy(runtime)
vta.VTABufferAlloc.restype = ctypes.c_void_p
assert vta.VTABufferAlloc(ctypes.c_size_t(64))
END
check "Python loads both libraries" $?

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
