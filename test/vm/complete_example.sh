#!/usr/bin/env bash
# The six steps of running a module by hand, as a user types them: the runtime is built, a module made, its metadata
# written, then build/exec.out runs it with the host's compiler, and with one for RISC-V vectors (here an object for
# another machine; under qemu, with an exec.out for it, numbers); at the end the sources that stayed are looked at.
#     complete_example.sh [MODEL INPUT SHAPE]        another model with one input of float32
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
[ -z "${LATHE_SANITIZE:-}" ] || { echo "the loader of a module's kernels wants the sanitizer first"; exit 77; }
model=$(realpath "${1:-demo/digits.onnx}") input=${2:-image} shape=${3:-1, 1, 8, 8}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
limit=$(< test/time_limit)
check() { # check TEXT STATUS
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $1"; tail -n 20 "$work/out"; fi
}
says() { grep -Eq -- "$1" "$work/out"; check "it says '$1'" $?; }
unset CC TVM_RVV_COMPILER LATHE_VECTOR_BYTES
mkdir "$work/home" "$work/runtime"
export HOME=$work/home LATHE_KEEP_SOURCES=$work/home XDG_CACHE_HOME=$work/cache
numbers='^float32\[[0-9, ]*\], [-0-9.e]+ to [-0-9.e]+:( [-0-9.e]+)+'

# 1. the runtime: exec.out, which knows nothing of the compiler
cmake --build "$LATHE_BUILD" --target exec.out > "$work/out" 2>&1
check "the runtime is built" $?

# 2. the module, without a compiler
cd "$work" || exit 3
CC=/nonexistent "$LATHE" compile "$model" --emit module --target my_device -o mobilenet.so > out 2>&1
check "the module is made" $?

# 3. its metadata
cat > mobilenet_meta.json << EOF
{
  "inputs": [{
    "name": "$input",
    "shape": [$shape],
    "dtype": "float32",
    "device": "my_device"
  }]
}
EOF

# 4. here, with the host's compiler
cd runtime || exit 3
execute() { # execute METADATA COMMAND...: the two answers on its standard input
    local metadata=$1
    shift
    printf '%s\n' ../mobilenet.so "$metadata" | timeout $((limit * 4)) "$@" > "$work/out" 2>&1
}
execute ../mobilenet_meta.json "$LATHE_BUILD/exec.out"
check "it runs with the host's compiler" $?
says '^Data: .*mobilenet.so: [0-9]+ bytes of C'
says '^RVV compile command: cc .* -shared'
says '^call: v[0-9]+_.* by libffi$'
says "$numbers"
grep -E "$numbers" "$work/out" > "$work/here"
grep -E '^Data|^RVV compile|^float32' "$work/out" | cut -c 1-200

# 5. for RISC-V vectors
if command -v riscv64-linux-gnu-gcc > /dev/null; then
    export TVM_RVV_COMPILER="riscv64-linux-gnu-gcc"
    if [ "$(uname -m)" != riscv64 ]; then
        execute ../mobilenet_meta.json "$LATHE_BUILD/exec.out"
        [ $? = 1 ]
        check "an object for another machine is not loaded" $?
        says '^RVV compile command: .*riscv64-linux-gnu-gcc.* -march=rv64gcv -mabi=lp64d'
        says "for riscv64 \(ELF machine 243\), and this machine is $(uname -m)"
        readelf -h "$HOME"/mobilenet.so | grep -q 'Machine: *RISC-V'
        check "the object stays to be looked at" $?
        grep -E 'rv64gcv|^.*this machine is' "$work/out" | cut -c 1-300
    fi
else
    echo "no riscv64-linux-gnu-gcc"
fi
if command -v riscv64-linux-gnu-gcc > /dev/null && command -v qemu-riscv64 > /dev/null; then
    # Debian has no jansson for this machine, and the metadata is empty.
    libffi=$("$LATHE_SOURCE"/test/libffi riscv64)
    # shellcheck disable=SC2086
    (cd "$LATHE_SOURCE" && riscv64-linux-gnu-gcc -std=c11 -O1 -Wall -Wextra -Werror -rdynamic -D_XOPEN_SOURCE=700 \
        -DLATHE_NO_JANSSON -Iruntime/vm -Iinclude examples/exec.c runtime/vm/*.c $libffi \
        -o "$work/exec-riscv64" -lpthread -ldl -lm) > "$work/out" 2>&1
    check "exec.out is built for riscv64" $?
    export TVM_RVV_COMPILER="riscv64-linux-gnu-gcc"
    execute "" qemu-riscv64 -cpu rv64,v=true,vlen=128,elen=64,vext_spec=v1.0 -L /usr/riscv64-linux-gnu "$work/exec-riscv64"
    check "it runs on riscv64" $?
    says '^RVV compile command: .*riscv64-linux-gnu-gcc.* -march=rv64gcv -mabi=lp64d'
    [ "$libffi" = -DLATHE_NO_LIBFFI ] || says '^call: v[0-9]+_.* by libffi$'
    says "$numbers"
    grep -E "$numbers" "$work/out" > "$work/there"
    grep -E 'rv64gcv|^float32' "$work/out" | cut -c 1-200
    cmp -s "$work/here" "$work/there"
    check "the same numbers on riscv64: $(cat "$work/here" "$work/there")" $?
fi

# 6. what stayed
unset TVM_RVV_COMPILER
ls -lh "$HOME"/*.c "$HOME"/*.so > "$work/out" 2>&1
check "source and object stay" $?
grep -Eq '^LATHE_EXPORT int32_t v[0-9]+_\w+\(const float \*.*, float \*.*, uint32_t part, uint32_t parts\)$' "$HOME"/mobilenet.c
check "the source has kernels over bare pointers" $?
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
