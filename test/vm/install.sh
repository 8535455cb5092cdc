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
nm -D --defined-only "$work/root"/lib*/liblathe_vm.so | awk '{ print $3 }' | grep -vE '^(lathe_|TVM)' > "$work/out"
[ ! -s "$work/out" ]
check "the library shows no other names" $?
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
