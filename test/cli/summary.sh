#!/usr/bin/env bash
# What compile says of a package, and the progress line of a terminal.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3

field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$2" | head -n 1; }

# --- five lines
expect 0 '' compile "$model" -o package
[ "$(cut -d ' ' -f 1 stdout | tr '\n' ' ')" = 'operators RAM flash slow package ' ] && [ ! -s stderr ] && good ||
    bad "not the five lines: $(cat stdout stderr)"
check "no line is wider than a terminal" sh -c '! grep -E "^.{101}" stdout'
workspace=$(field workspace_bytes package/report.json) constants=$(field constant_bytes package/report.json)
check "RAM" grep -q "workspace $workspace, tables" stdout
check "flash" grep -q "^flash *$constants bytes of constants" stdout
check "where it lies, and what to do next" grep -q 'package: .*next: make -C package && package/runner$' stdout
expect 0 '' compile "$model" -o package --quiet
[ ! -s stdout ] && [ ! -s stderr ] && good || bad "--quiet says: $(cat stdout stderr)"
expect 0 '' compile "$model" -o package -q --json
[ "$(field workspace_bytes stdout)" = "$workspace" ] && [ "$(field constant_bytes stdout)" = "$constants" ] && good ||
    bad "--json says: $(cat stdout)"
tables=$(field table_bytes stdout)
printf '#include "tvmgen_default_instance.h"\nint a[sizeof(struct tvmgen_default_instance) == %s ? 1 : -1];\n' "$tables" > size.c
check "the tables have the size that is said" "${CC:-cc}" -Ipackage/include -Ipackage/src -c size.c -o size.o
expect 0 '' compile "$model" --emit graph
check "text has standard output for itself" sh -c 'head -n 1 stdout | grep -q "^func\|^//" && ! grep -q "^package" stdout'
expect 0 '"text": "func @main' compile "$model" --emit graph --json
expect 0 'next: make -C bare lib CC=arm-none-eabi-gcc' compile "$model" -o bare --port baremetal
expect 0 'next: compile rtos/src/\*.c into the firmware' compile "$model" -o rtos --port freertos
expect 0 'next: make -C riscv CC=.clang --target=riscv64-linux-gnu., and riscv/runner there' compile "$model" -o riscv --target rv64gcv
for target in cortex-m4 rv32imc; do # whose compilers have no POSIX threads
    expect 0 'port baremetal; next: make -C board lib CC=' compile "$model" -o board --target $target
    expect 0 'port posix; next: compile again for a board, with --port baremetal or freertos' compile "$model" -o board \
        --target $target --port posix
done
expect 0 "^RAM .* your tensors [0-9]+, tvmrt$" compile "$model" -o package

# --- what stays in float, and on one worker
cat > quantised.txt << 'TEXT'
func @main(%x: i8[4]) {
  %s = constant f32[] dense [0.5]
  %z = constant i8[] dense [0]
  %f = qnn.dequantize(%x, %s, %z) : f32[4]
  %r = nn.relu(%f) : f32[4]
  %y = qnn.quantize(%r, %s, %z) : i8[4]
  return %y
}
TEXT
expect 0 '^slow .*quantized operators that compute in float: 1 \(nn.relu\)$' compile quantised.txt -o quantised --target x86-64-v2
cat > nibbles.txt << TEXT
func @main(%x: i8[1, 2, 16], %a: f32[1, 2, 1]) {
  %w = constant u8[8, 32] hex "$(printf '05%.0s' $(seq 256))"
  %s = constant f32[8, 2] dense [$(echo 1.5{,}{,}{,}{,} | tr ' ' ,)]
  %z = constant u8[8, 2] hex "$(printf '08%.0s' $(seq 16))"
  %b = qnn.dequantize(%w, %s, %z) {axis = 1, block_size = 16}
  %d = qnn.dequantize(%x, %a) {axis = 2, block_size = 16}
  %to = constant i64[2] dense [1, 32]
  %f = reshape(%d, %to)
  %y = nn.matmul(%f, %b) {transpose_b = 1}
  return %y
}
TEXT
for cpu in m4 m55; do
    expect 0 '^slow +sums of quantized numbers in plain loops: 1 .weights of 4 bits in blocks' compile nibbles.txt -o nibbles --target cortex-$cpu --port baremetal
done
expect 0 '^slow +nothing' compile nibbles.txt -o nibbles --target cortex-m3 --port baremetal
printf 'func @main(%%x: f32[200000]) {\n  %%a = constant i64[] dense [0]\n  %%y = cumsum(%%x, %%a) : f32[200000]\n  return %%y\n}\n' > alone.txt
expect 0 '^slow .*operators that leave some of 4 workers idle: 1 \(cumsum; no loop can be cut' compile alone.txt -o alone
check "a report without remarks says so" sh -c 'tr -d " \n" < alone/report.json | grep -q "\"remarks\":\[\]"'
check "the report counts idle workers" grep -q '"workers_idle": 3,' alone/report.json
check "the report says why" grep -q '"workers_idle_because": "extent"' alone/report.json
expect 0 '^idle workers: 3 of 4 in 1 cumsum \(fused_cumsum\): no loop can be cut' inspect alone.txt
# a softmax of 16 bits: the reason is its width, not another type of its data
cat > wide.txt << 'TEXT'
func @main(%x: i16[1, 8]) {
  %s = constant f32[] dense [0.001]
  %z = constant i16[] dense [0]
  %f = qnn.dequantize(%x, %s, %z)
  %p = nn.softmax(%f)
  %y = qnn.quantize(%p, %s, %z) {out_dtype = i16}
  return %y
}
TEXT
expect 0 '^stayed in float: 1 nn.softmax \(%p\): a softmax of 16 bits has no integer form' inspect wide.txt --integers
# loops that are left are counted, and inspect names their operators
cat > left.txt << 'TEXT'
func @main(%x: f32[n, n]) where n <= 16 {
  %a = exp(%x)
  %b = transpose(%a)
  %y = exp(%b)
  return %y
}
TEXT
expect 0 '^slow .*loops left without vectors or with guards: [1-9]' compile left.txt -O0 -o left --target x86-64-v3
expect 0 '^loops whose schedule asks for vectors, and that got none: [0-9]+ in [0-9]+ [a-z_.+]+ \(' inspect left.txt -O0 --target x86-64-v3
# what a processor has instructions for, and gets none: nothing of the demo, one loop of a product with two columns
for target in cortex-m0plus cortex-m4 cortex-m55 x86-64-v4-vnni aarch64-dotprod; do
    expect 0 '^package' compile "$top/demo/digits_int8.tflite" --target $target -o used
    check "$target: each instruction is used" sh -c '! grep -q "\"instructions_left\": [1-9]" used/report.json'
done
printf 'func @main(%%x: i8[1, 64]) {\n  %%w = constant i8[2, 64] dense [%s]\n  %%y = qnn.matmul(%%x, %%w) {transpose_b = 1}\n  return %%y\n}\n' \
    "$(seq -s, -64 63)" > narrow.txt
expect 0 '^loops and values for which the processor has instructions, and that got none: 1 in 1 qnn.matmul' \
    inspect narrow.txt --target x86-64-v4-vnni
expect 0 '"on_one_worker": 1, "on_fewer_workers": 1' compile alone.txt -o alone --json
expect 0 '^slow *operators with loops that run without vectors: cumsum$' compile alone.txt -o alone --workers 1
bytes_1x1 > bytes.txt # a layer of bytes between planes of channels
expect 0 '^slow +layout transforms above a tenth of their layer: 1, about [0-9]+ % of the work .fused_transpose [0-9]+ %.$' compile bytes.txt -o bytes --target cortex-m55 --port baremetal
expect 0 '^slow +nothing' compile bytes.txt -o bytes --target cortex-m4 --port baremetal

# --- the heap: the package has none, and who may have one is named
check "no word of a heap without such parts" sh -c '! grep -q ^heap stdout'
expect 0 "^heap  *none in the package itself; .* for xnnpack " compile "$top/demo/residual.onnx" --offload xnnpack -o parts
expect 0 "^heap  *none in the package itself; .* for vta " compile "$top/demo/residual_vta.onnx" --offload vta -o parts

# --- progress: on a terminal only, and gone at the end
export LATHE_PROGRESS_AFTER=0 TERM=xterm
expect 0 '' compile "$model" -o package
[ ! -s stderr ] && good || bad "progress without a terminal: $(cat stderr)"
if command -v script > /dev/null; then
    script -qec "$lathe bench '$model' --repeat 2" typescript > /dev/null < /dev/null
    tr '\r' '\n' < typescript > lines
    for what in reading 'pass fuse' 'kernels 1 of' planning 'writing C' 'building the package' 'running round 2 of 2'; do
        check "progress tells of: $what" grep -q "^$what" lines
    done
    check "the line is erased before results are printed" grep -q "^$(printf '\033')\[Klathe  *median" lines
    TERM=dumb script -qec "$lathe compile '$model' -q -o package" typescript > /dev/null < /dev/null
    check "nothing on a terminal that cannot erase" sh -c '! grep -q planning typescript'
    LATHE_PROGRESS_AFTER=1000 script -qec "$lathe compile '$model' -q -o package" typescript > /dev/null < /dev/null
    check "nothing before its time" sh -c '! grep -q planning typescript'
fi
finish
