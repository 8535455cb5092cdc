#!/usr/bin/env bash
# compile --memory: the same numbers in every form of constants, sections and their sizes, what is used most in the
# fastest memory, descriptions that are wrong or too small.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cc=${CC:-cc}
cd "$work" || exit 3
cat > board.txt << 'TEXT'
# a board
qspi   rom 8M   .qspi      20
dtcm   ram 8K   .dtcm_bss  1   # the workspace comes here
sram   ram 512K -          3
itcm   rom 4K   .itcm_data 1
flash  rom 32K  -          4
TEXT
strict="-O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"
section() { size -A "$1" | awk -v name="$2" '$1 == name { print $2 }'; }

expect 0 '' compile "$model" -o plain -q --target generic --workers 2
check 'the package without memories' make -s -C plain CC="$cc" CFLAGS="$strict"
./plain/runner > want 2> log
workspace=$(sed -n 's/^ *"workspace_bytes": \([0-9]*\),/\1/p' plain/report.json)
for form in c incbin bin; do
    expect 0 "memories   dtcm $workspace of 8192 \(workspace\), itcm [0-9]+ of 4096, sram 0 of 524288, flash [0-9]+ of 32768, qspi [0-9]+ of" \
        compile "$model" -o $form --target generic --workers 2 --memory board.txt --constants $form
    check "$form: it builds" make -s -C $form CC="$cc" CFLAGS="$strict"
    ./$form/runner > got 2> log
    check "$form: the same numbers" cmp want got
    object=$form/build/default_lib0.o
    check "$form: the workspace is in its section" test "$(section $object .dtcm_bss)" = "$workspace"
    check "$form: the matrix that is read once is in the slow memory" test "$(section $object .qspi)" = 32768
    check "$form: the convolutions' weights are in the fast one" test "$(section $object .itcm_data)" -ge 800 -a "$(section $object .itcm_data)" -le 4096
done
fast=$(grep -c 'TVMRT_STORAGE_INPUT, 1, .*conv' c/src/model_data.c)
check "weights of both convolutions are fast ($fast)" test "$fast" -ge 2
tr -d ' \n' < c/report.json > flat.json
check 'the report has the memories' grep -q "\"memories\":\[{\"name\":\"dtcm\",\"bytes\":8192,\"used\":$workspace}" flat.json
expect 0 "\"memories\": ?\[\{\"name\": ?\"dtcm\", ?\"bytes\": ?8192, ?\"used\": ?$workspace ?\}, ?\{\"name\": ?\"itcm\"" \
    compile "$model" -o json --target generic --workers 2 --memory board.txt --json
expect 0 '^probabilities: .*: ok$' verify "$model" --memory board.txt --against interpreter
if command -v cmake > log; then
    check 'CMake knows its files' sh -c 'cmake -S incbin -B made -DCMAKE_BUILD_TYPE=Debug && cmake --build made'
fi
# all of the constants in sections, none left for the compiler to place
printf 'a rom 64K .all 1\nr ram 64K - 1\n' > all.txt
for form in c incbin; do
    expect 0 '' compile "$model" -o all_$form -q --target generic --workers 2 --memory all.txt --constants $form
    check "all in a section, $form" make -s -C all_$form CC="$cc" CFLAGS="$strict"
    ./all_$form/runner > got 2> log
    check "all in a section, $form: the same numbers" cmp want got
done

# weights that instructions read, through an address, count as well: 144 bytes at each of 256 pixels before 64 read once
numbers() { seq -s ', ' 1 "$1"; }
cat > two.txt << TEXT
func @main(%x: u8[1, 4, 16, 16]) {
  %wide = constant i8[4, 4, 3, 3] dense [$(numbers 127), $(numbers 17)]
  %once = constant i8[4, 16] dense [$(numbers 64)]
  %bias = constant i32[16] dense [$(numbers 16)]
  %s = constant f32[] dense [0.01]
  %z = constant u8[] dense [3]
  %c = qnn.conv2d(%x, %wide) {pads = [1, 1, 1, 1]}
  %y = qnn.requantize(%c, %s, %s, %z) {out_dtype = u8}
  %g = qnn.global_avg_pool2d(%y, %s, %s, %z, %z)
  %shape = constant i64[2] dense [1, 4]
  %h = reshape(%g, %shape)
  %m = qnn.matmul(%h, %once)
  %b = add(%m, %bias)
  %r = qnn.requantize(%b, %s, %s, %z) {out_dtype = u8}
  return %r
}
TEXT
printf 'r ram 64K - 1\nfast rom 192 .fast 1\nslow rom 64K - 4\n' > two.mem
expect 0 'fast 144 of 192' compile two.txt -o two --target cortex-m4 --integers --memory two.mem --constants c

printf 'r ram 1K - 1\nf rom 64K - 1\n' > small.txt
expect_error 1 "workspace of $workspace bytes does not fit into .*, $((workspace - 1024)) are missing: r has 1024 of 1024 left" compile "$model" -o no --target generic --memory small.txt
check 'a float model may be quantized' grep -q 'hint: a smaller model, quantized values, or a larger RAM' stderr
expect_error 1 'hint: --minimize ram, or --ram BYTES, runs kernels row by row; or .*quantized values' compile "$model" -o no \
    --target cortex-m --memory small.txt
printf 'r ram 64 - 1\nf rom 64K - 1\n' > two.mem
expect_error 1 'hint: --minimize ram, .*; or a smaller model, or a larger RAM' compile two.txt -o no --target cortex-m4 --memory two.mem
expect_error 1 'hint: a smaller model, or a larger RAM' compile two.txt -o no --target generic --integers --memory two.mem
printf 'r ram 64K - 1\nf rom 64 - 1\n' > two.mem
expect_error 1 'hint: a smaller model, or describe an external flash' compile two.txt -o no --target cortex-m4 --memory two.mem
printf 'r ram 8K - 1\nf rom 30K - 1\n' > small.txt
expect_error 1 "constant 'fc1.weight' of 32768 bytes does not fit" compile "$model" -o no --target generic --memory small.txt
total=$(sed -n 's/^ *"constant_bytes": \([0-9]*\),*$/\1/p' plain/report.json)
printf 'r ram 8K - 1\nf rom 1K - 1\n' > small.txt
expect_error 1 ' [0-9]+ are missing for all constants together: f has' compile "$model" -o no --target generic --memory small.txt
lacks=$(sed -n 's/.* \([0-9]*\) are missing.*/\1/p' stderr)
check "$lacks bytes are missing of $total" test "$lacks" -ge $((total - 2048)) -a "$lacks" -le $((total - 960))
printf 'r ram 8K - 1\n' > small.txt
expect_error 1 'no ROM is described' compile "$model" -o no --target generic --memory small.txt
wrong() { printf '%b' "$1" > wrong.txt; expect_error 1 "$2" compile "$model" -o no --memory wrong.txt; }
wrong '' 'no memory is described'
wrong 'r*/y ram 8K - 1\n' 'not a name of a memory'
wrong '# a\n\nr ram 8K -\n' 'wrong.txt:3: five words'
wrong 'r ram 8K - 1 2\n' 'five words'
wrong 'r tcm 8K - 1\n' 'ram or rom'
wrong 'r ram 8KB - 1\n' 'not a size'
wrong 'r ram 8k - 1\n' 'no ROM is described'
wrong 'r ram -1 - 1\n' 'not a size'
wrong 'r ram 99999999999999999999 - 1\n' 'not a size'
wrong 'r ram 8K a"b 1\n' 'not a name of a section'
wrong 'r ram 8K - fast\n' 'is not a number'
wrong 'r ram 8K .mine 1\nf rom 64K .mine 4\n' "wrong.txt:2: the section .mine is the one of 'r', which is ram"
for section in .bss .bss.fast .sbss .noinit; do
    wrong "r ram 8K - 1\nf rom 64K $section 1\n" "wrong.txt:2: the section $section holds no numbers"
done
for section in .text .text.fast .rodata .rodata.mine; do
    wrong "r ram 8K $section 1\nf rom 64K - 1\n" "wrong.txt:1: the section $section holds nothing that is written"
done
printf 'r ram 64K .bss.mine 1\nf rom 64K .rodata.mine 1\n' > named.txt
expect 0 '' compile "$model" -o named -q --target generic --memory named.txt
check 'sections of their kind build' make -s -C named CC="$cc" CFLAGS="$strict"
wrong 'r ram 8K - 1\nr rom 8K - 1\n' 'of this name already'
expect_error 2 'is for packages' compile "$model" --emit tir --memory board.txt
[ ! -e no ] && good || bad 'a failed compile left a package'
finish
