#!/usr/bin/env bash
# The forms of a package's constants: numbers in C, a file for the assembler, a file that the program hands over. All give the
# same bytes; a file that is another one, cut off or misaligned is refused with a status.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
model=$top/demo/digits.onnx
cd "$work" || exit 3
expect_error 2 'c, incbin or bin' compile "$model" -o x --constants rom
for form in c incbin bin; do
    expect 0 '' compile "$model" -o $form --target generic --constants $form
    check "$form: it builds" make -s -C $form CC="$cc" CFLAGS="-O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"
    check "$form: it runs" ./$form/runner -o out-$form
    check "$form: the same bytes" cmp out-c/probabilities.bin out-$form/probabilities.bin
    check "$form: the report names it" grep -q "\"constants\": \"$form\"" $form/report.json
done
check "c: no file, no assembler" sh -c '! test -e c/src/default_constants.bin && ! grep -rn "asm\|-Wa," c/src/default* c/Makefile c/CMakeLists.txt'
check "bin: no assembler" sh -c '! grep -rn "asm\|-Wa," bin/src/default*.[ch] bin/Makefile bin/CMakeLists.txt'
"$lathe" compile "$model" -o plain --target generic
check "above 32 KB the form is incbin" diff -r plain incbin -x build -x runner
expect 0 'probabilities' run bin
mv bin/src/default_constants.bin kept
expect_error 1 'default_constants.bin' run bin
check "bin: without the file" sh -c './bin/runner 2>&1 | grep -q "cannot read ./bin/src/default_constants.bin"'
head -c 1000 kept > bin/src/default_constants.bin
expect_error 1 'does not hold the constants' run bin

# --- every float as a number: signs of zero, the least and the greatest, infinities
cat > odd.py << 'PY'
import struct, sys
values = [0.0, -0.0, 1e-45, -1e-45, 3.4028234663852886e38, 1.17549435e-38, 0.1, -7.25, 16777215.0, float("inf"), float("-inf")]
values = [values[i % 11] * (1 if i < 22 else 1 + i / 997) if abs(values[i % 11]) < 1e30 else values[i % 11] for i in range(9000)]
text = lambda v: "inf" if v == float("inf") else "-inf" if v == float("-inf") else repr(struct.unpack("f", struct.pack("f", v))[0])
print("func @main(%x: f32[9000]) {\n  %c = constant f32[9000] dense [" + ", ".join(map(text, values)) + "]")
print("  %y = multiply(%x, %c) : f32[9000]\n  return %y\n}")
PY
python3 odd.py > odd.txt
for form in c incbin; do
    expect 0 '' compile odd.txt -o odd-$form --target generic --constants $form
    make -s -C odd-$form CC="$cc" CFLAGS=-O1 > make.log 2>&1
    check "$form: all kinds of floats" ./odd-$form/runner -o out-odd-$form
done
check "all kinds of floats, the same bytes" cmp out-odd-c/y.bin out-odd-incbin/y.bin

# --- handing over, from a program
cat > hand.c << 'C'
#include <stdio.h>

#include "default_names.h"

TVMRT_ALIGNED(64) static uint8_t file[TVMGEN_DEFAULT_CONST_SIZE + 64], copy[TVMGEN_DEFAULT_CONST_SIZE];
TVMRT_ALIGNED(64) static uint8_t ws[TVMGEN_DEFAULT_WORKSPACE_SIZE];
static struct tvmgen_default_instance instance;

int main(int argc, char **argv)
{
    static float image[64], scores[10];
    struct tvmgen_default_inputs in = {image};
    struct tvmgen_default_outputs out = {scores};
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    const size_t size = TVMGEN_DEFAULT_CONST_SIZE;
    size_t i;

    if (f == NULL || fread(file, 1, size, f) != size)
        return 1;
    for (i = 0; i < size; i++)
        copy[i] = file[i];
    copy[size / 2] ^= 1;
    printf("before: %d %d\n", (int)tvmgen_default_run(&in, &out),
           (int)tvmgen_default_instance_init(&instance, NULL, ws, sizeof ws));
    printf("refused: %d %d %d %d\n", (int)tvmgen_default_set_constants(NULL, size),
           (int)tvmgen_default_set_constants(file + 4, size), (int)tvmgen_default_set_constants(file, size - 1),
           (int)tvmgen_default_set_constants(copy, size));
    printf("direct: %d %d %d\n", (int)tvmgen_default___tvm_main__(&in, &out, copy, ws),
           (int)tvmgen_default___tvm_main__(&in, &out, copy, ws), (int)tvmgen_default_run(&in, &out));
    printf("taken: %d", (int)tvmgen_default_set_constants(file, size));
    printf(" %d", (int)tvmgen_default_instance_init(&instance, NULL, ws, sizeof ws));
    printf(" %d", (int)tvmgen_default_run_instance(&instance, &in, &out));
    printf(" %d\n", (int)tvmgen_default_run(&in, &out));
    return 0;
}
C
check "make lib" make -s -C bin lib CC="$cc"
check "the program builds" "$cc" -std=c99 -DTVMRT_NUM_WORKERS=4 -Ibin/include -Ibin/src hand.c bin/libtvmgen_default.a -lm -lpthread -o hand
printf '%s\n' 'before: -1 -1' 'refused: -1 -5 -11 -11' 'direct: -11 -11 -1' 'taken: 0 0 0 0' > wanted
./hand kept > said
check "constants that are not the package's: $(diff said wanted | head -4)" cmp said wanted
# --- weights of another training: taken where the code that reads them is the same
cat > net.py << 'PY'
import random, sys
seed, units, last = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random.seed(seed)
numbers = lambda n: ", ".join(f"{random.uniform(-1, 1):.4f}" for _ in range(n))
print(f"""func @main(%x: f32[1, 64]) {{
  %w = constant f32[64, {units}] dense [{numbers(64 * units)}]
  %b = constant f32[{units}] dense [{numbers(units)}]
  %y = nn.matmul(%x, %w) : f32[1, {units}]
  %z = add(%y, %b) : f32[1, {units}]
  %r = {last}(%z) : f32[1, {units}]
  return %r
}}""")
PY
layout() { sed -n 's/.*"constants_layout": "\([0-9a-f]*\)".*/\1/p' "$1/report.json"; }
net() { # net NAME SEED UNITS LAST
    python3 net.py "$2" "$3" "$4" > model.txt
    "$lathe" compile model.txt -q -o "$1" --target generic --constants bin || bad "$1 does not compile"
    make -s -C "$1" CC="$cc" CFLAGS=-O1 > make.log 2>&1 || bad "$1: $(tail -n 2 make.log)"
    ./"$1"/runner -o "out-$1" > said 2>&1 || bad "$1: $(cat said)"
}
net old 1 10 nn.relu
net new 2 10 nn.relu
net other 1 10 sigmoid
net wider 1 11 nn.relu
check "the same layout" test "$(layout old)" = "$(layout new)"
check "another layout" test "$(layout old)" != "$(layout other)"
cmp -s out-old/r.bin out-new/r.bin && bad "weights do not count" || good
cp new/src/default_constants.bin old/src/
check "new weights under old code" ./old/runner -o out-mixed
check "they give what the new package gives" cmp out-mixed/r.bin out-new/r.bin
expect 0 '' run new
for not in other wider; do
    cp $not/src/default_constants.bin old/src/
    ./old/runner -o out-mixed > said 2>&1 && bad "it takes the weights of $not" || good
    check "$not: the status says so" grep -q 'status -11' said
done

for port in baremetal freertos; do
    "$lathe" compile "$model" -o $port --port $port --constants bin
    check "$port: main.c asks where the constants lie" grep -q '#error "define TVMGEN_DEFAULT_CONST_ADDRESS' $port/src/main.c
done
finish
