#!/usr/bin/env bash
# --ram and --minimize: rows are streamed as far as the budget asks, with the same bytes; what cannot be met is said.
# Not in `make check`: it builds packages and runs them.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
cat > m.graph << 'G'
func @main(%x: f32[1, 2, 24, 12], %w: f32[4, 2, 3, 3], %v: f32[4, 4, 3, 3]) {
  %a = nn.conv2d(%x, %w) {pads = [1, 1, 1, 1]}
  %b = nn.conv2d(%a, %v) {pads = [1, 1, 1, 1]}
  %c = add(%b, %a)
  %d = nn.conv2d(%c, %v) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %y = nn.max_pool2d(%d) {pool_size = [12, 6]}
  return %y
}
G
ram() { sed -n 's/^RAM *\([0-9]*\) .*/\1/p' stdout; }
expect 0 '' compile m.graph --target cortex-m -o p
alone=$(ram)
check "nothing of it without the options" sh -c '! grep -q streaming stdout'
check "but the bounds" grep -Eq '"streamed_bytes": *[1-9]' p/report.json
expect 0 '^chains +[1-9]' compile m.graph --target cortex-m --minimize ram -o p
least=$(ram)
check "$least bytes, a third of $alone" test $((least * 3)) -lt "$alone"
expect 0 '"streamed_kernels":[ ]*[1-9]' compile m.graph --target cortex-m --minimize ram --json -o p
expect 0 '^chains +[1-9]' inspect m.graph --target cortex-m --minimize ram
check "report.json says it" grep -q '"reached_bytes": *[0-9]' p/report.json
# schedules that were given are for kernels outside of chains
expect 0 '' schedule m.graph --target cortex-m -o m.schedules
expect 0 '' compile m.graph --target cortex-m --minimize ram -o p --schedules m.schedules
check "as many are used as the report has" test \
    "$(sed -n 's/^schedules *\([0-9]*\) of .*; kernels in chains have schedules of their own.*/\1/p' stdout)" = \
    "$(grep -c '"schedule": "m.schedules' p/report.json)"
for model in m.graph "$top/demo/digits.onnx"; do
    expect 0 '' run "$model" --target cortex-m --seed 3 --output-dir alone
    expect 0 '' run "$model" --target cortex-m --seed 3 --output-dir chains --minimize ram
    check "$model: the same bytes" diff -r alone chains
    expect 0 ' ok$' verify "$model" --target cortex-m --minimize ram --against interpreter --rtol 1e-4
done
# A budget: what meets it anyway stays as it is, what does not gets no more chains than it takes.
expect 0 'streaming' compile m.graph --target cortex-m --ram "$alone" -o p
[ "$(ram)" = "$alone" ] && ! grep -q ^chains stdout && good || bad "--ram $alone: $(cat stdout)"
expect 0 '^chains' compile m.graph --target cortex-m --ram $((alone - 1)) -o p
[ "$(ram)" -lt "$alone" ] && good || bad "--ram $((alone - 1)): $(cat stdout)"
expect 0 '^chains' compile m.graph --target cortex-m --ram "$least" -o p
[ "$(ram)" -le "$least" ] && good || bad "--ram $least: $(cat stdout)"
expect_error 1 'smallest plan that was found needs [0-9]+ bytes' compile m.graph --target cortex-m --ram 100 -o q
[ ! -e q ] && good || bad "a package all the same"
check "no effort is advised where no cut can do" grep -Eq \
    'hint: give --ram [0-9]+, or a smaller model' stderr
# the cut counts with the tables, as the budget and what was reached do
reached=$(sed -n 's/.*smallest plan that was found needs \([0-9]*\) bytes.*/\1/p' stderr)
expect_error 1 'smallest plan that was found needs [0-9]+ bytes' \
    compile m.graph --target cortex-m --ram $((reached - 1)) -o q
cut=$(sed -n 's/.*searches longer, for \([0-9]*\) bytes at best.*/\1/p' stderr)
if [ -n "$cut" ]; then
    expect_error 1 "searches longer, for $cut bytes at best" compile m.graph --target cortex-m --ram "$cut" -o q
    expect_error 1 'hint: give --ram [0-9]+, or a smaller model' \
        compile m.graph --target cortex-m --ram $((cut - 1)) -o q
fi
# both: as little as can be, and an error where that is above the budget
expect 0 '^chains +[1-9]' compile m.graph --target cortex-m --minimize ram --ram 1M -o p
[ "$(ram)" = "$least" ] && good || bad "--minimize ram with a budget: $(cat stdout)"
expect_error 1 "smallest plan that was found needs $least bytes" \
    compile m.graph --target cortex-m --minimize ram --ram $((least - 1)) -o q
[ ! -e q ] && good || bad "a package all the same"
# what is written before rows are streamed takes neither
for stage in graph prog schedule; do
    for option in '--ram 64K' '--minimize ram'; do
        expect_error 2 "${option% 64K} needs --emit c or tir, and this is --emit $stage" \
            compile m.graph --target cortex-m $option --emit $stage
    done
done
expect 0 '' compile m.graph --target cortex-m --ram 64K --emit tir
expect 0 'streaming' compile m.graph --target cortex-m --ram 1M --minimize time -o p
workspace=$(sed -n "s/^RAM.*: workspace \([0-9]*\),.*/\1/p" stdout)
check "the summary calls the same kernel by kernel" grep -q "side by side [0-9]*, kernel by kernel $workspace," stdout
# Where results over operands look like less than the planner finds room for, chains are found all the same; a budget of
# what --minimize ram takes is met, and one below that names it.
deep() {
    local p=%x i
    echo 'func @main(%x: f32[1, 4, 64, 16], %w: f32[4, 4, 3, 3]) {'
    for ((i = 0; i < 38; i++)); do
        echo "%v$i = nn.conv2d($p, %w) {pads = [1, 1, 1, 1]}"
        p=%v$i
        ((i % 3 == 2)) && echo "%a$i = add(%v$i, %v$((i - 1)))" && p=%a$i
    done
    printf '  return %s\n}\n' "$p"
}
deep > deep.graph
expect 0 '' compile deep.graph --target cortex-m4 -o p
alone=$(ram)
expect 0 '^chains +[1-9]' compile deep.graph --target cortex-m4 --minimize ram -o p
least=$(ram)
check "$least bytes of $alone" test $((least * 10)) -lt $((alone * 9))
for budget in "$least" $((alone - 1)); do
    expect 0 '^chains' compile deep.graph --target cortex-m4 --ram "$budget" -o p
    [ "$(ram)" -le "$budget" ] && good || bad "--ram $budget: $(cat stdout)"
done
expect_error 1 "smallest plan that was found needs $least bytes" \
    compile deep.graph --target cortex-m4 --ram $((least - 1)) -o q
# Elsewhere, and what is not a number.
expect_error 2 '--ram is for microcontrollers, and not for the target x86-64-v3' compile m.graph --target x86-64-v3 --ram 64K -o q
expect_error 2 '--minimize ram needs a level above -O0' compile m.graph --target cortex-m --minimize ram -O0 -o q
expect 0 'streaming' compile m.graph --target cortex-m --ram 64k -o p
for text in 0 -1 12X 12KB 12kb 0x8000 6.1K k K '' 99999999999; do
    expect_error 2 "is not a size such as 4096, 128K or 8M" compile m.graph --target cortex-m "--ram=$text" -o q
done
expect_error 2 'minimize' compile m.graph --target cortex-m --minimize size -o q
# What has branches, and what has no rows, is left alone.
cat > other.graph << 'G'
func @main(%x: f32[4, 16], %w: f32[16, 16]) {
  %a = nn.softmax(%x)
  %b = nn.matmul(%a, %w)
  return %b
}
G
expect 0 'streaming' compile other.graph --target cortex-m --minimize ram -o p
finish
