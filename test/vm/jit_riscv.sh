#!/usr/bin/env bash
# The run-time compiler on riscv64 machines with vectors of several widths, under qemu: it reads the width, compiles for
# exactly that width, gives right numbers, and takes nothing from the cache that was made for another width. The
# compilers themselves run natively: qemu's user mode starts programs of the host as they are. Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$LATHE_SOURCE" || exit 3
for tool in qemu-riscv64 riscv64-linux-gnu-gcc clang-19; do
    command -v $tool > /dev/null || { echo "no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED $*"; sed 's/^/    /' "$work/out"; }

# Debian has no libffi for this machine; nothing here calls by it.
riscv64-linux-gnu-gcc -std=c11 -O1 -Wall -Wextra -Werror -D_XOPEN_SOURCE=700 -DLATHE_NO_LIBFFI -Iruntime/vm -Iinclude \
    test/vm/jit/user.c runtime/vm/jit*.c runtime/vm/{elf,reader,error}.c -o "$work/user" -lpthread -ldl || exit 1

export TMPDIR=$work/tmp
mkdir "$TMPDIR"
unset LATHE_VECTOR_BYTES CC
clang='clang-19 --target=riscv64-linux-gnu'

# on CPU: the program on that machine, its output in $work/out.
on() {
    timeout "$(< test/time_limit)" qemu-riscv64 -cpu "$1" -L /usr/riscv64-linux-gnu "$work/user" test/vm/jit/fma3.c \
        "$work/cache" \
        > "$work/out" 2>&1
}
vlen() { echo "rv64,v=true,vlen=$1,elen=64,vext_spec=v1.0"; }

# expect WHAT WORDS...: each of them stands in the output; with a ! in front it does not.
expect() {
    local what=$1 word
    shift
    for word in "$@"; do
        case $word in
        !*) if grep -qF -- "${word#!}" "$work/out"; then bad "$what: there is '${word#!}'"; return; fi ;;
        *) if ! grep -qF -- "$word" "$work/out"; then bad "$what: no '$word'"; return; fi ;;
        esac
    done
    good
}

export TVM_RVV_COMPILER=$clang
for bits in 128 256 512 1024; do
    bytes=$((bits / 8 > 64 ? 64 : bits / 8))
    on "$(vlen $bits)"
    expect "VLEN $bits" "machine: $bytes bytes, 32 registers" "cache miss" \
        "-mrvv-vector-bits=zvl -march=rv64gcv_zvl${bits}b -mabi=lp64d" \
        "-DLATHE_VECTOR_BYTES=$bytes " "wrong: 0"
    on "$(vlen $bits)"
    expect "VLEN $bits again" "cache hit" "wrong: 0"
done
LATHE_VECTOR_BYTES=16 on "$(vlen 256)"
expect "VLEN 256, lowered" "machine: 16 bytes, 32 registers" "-march=rv64gcv_zvl256b" \
    "-DLATHE_VECTOR_BYTES=16 " "wrong: 0"

# Code for 512 bits on a machine with 128 gives wrong numbers and no fault: the test can see them.
printf '#!/bin/bash\nexec %s "${@/zvl128b/zvl512b}"\n' "$clang" > "$work/wider-riscv64"
chmod +x "$work/wider-riscv64"
TVM_RVV_COMPILER=$work/wider-riscv64 on "$(vlen 128)"
expect "code for another width" "zvl128b" "wrong: " "!wrong: 0" "!wrong: -"

# What was made for 512 bits, in the place of what is for 128.
name() { on "$(vlen "$1")"; sed -n 's/^cache hit: .*\///p' "$work/out"; }
narrow=$(name 128) wide=$(name 512)
cp "$work/cache/$wide" "$work/cache/$narrow"
on "$(vlen 128)"
expect "exchanged" "is made again: its hash is another" "cache miss" "wrong: 0"

on rv64,v=false
expect "no V" "machine: 0 bytes" "-march=rv64gc -mabi=lp64d" "-DLATHE_VECTOR_BYTES=0 " "wrong: 0"

# A system that says V is there and does not let the process use it: the instruction that asks for the width is illegal.
cat > "$work/lie.c" << 'END'
long write(int fd, const void *p, unsigned long n);
unsigned long getauxval(unsigned long what)
{
    (void)write(2, "asked\n", 6);
    return what == 16 ? 1UL << ('V' - 'A') : 0; /* AT_HWCAP */
}
void *dlsym(void *after, const char *name);
long syscall(long number, long a, long b, long c)
{
    long (*real)(long, long, long, long) = (long (*)(long, long, long, long))dlsym((void *)-1, "syscall");
    return number == 258 ? -1 : real(number, a, b, c); /* no hwprobe */
}
END
riscv64-linux-gnu-gcc -shared -fPIC -o "$work/lie.so" "$work/lie.c" || exit 1
QEMU_SET_ENV=LD_PRELOAD=$work/lie.so on rv64,v=false
expect "V is said to be there" "asked" "machine: 0 bytes" "-march=rv64gc " "wrong: 0"

TVM_RVV_COMPILER=riscv64-linux-gnu-gcc on "$(vlen 256)"
expect "gcc" "warning: this gcc makes no vector code" "-march=rv64gcv -mabi=lp64d" "-DLATHE_VECTOR_BYTES=32 " "wrong: 0"
TVM_RVV_COMPILER=gcc on "$(vlen 256)"
expect "a compiler for another machine" "error: " "for x86_64 (ELF machine 62), and this machine is riscv64" "!wrong: 0"

left=$(ls "$TMPDIR")
if [ -z "$left" ]; then good; else : > "$work/out"; bad "left behind: $left"; fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
