#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every computation and schedule that `compile --emit schedule` prints for the golden cases is read by `opt`, and is the
# same there when it is printed. What passes leave undone is counted where a user looks.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
kernels=0
for case in "$top"/test/golden/kernel/*.case; do
    sed -e '/^---$/,$d' -e '/^#/d' "$case" > graph.txt
    for target in x86-64-v2 x86-64-v3 aarch64 cortex-m; do
        expect 0 '^--- schedule' compile graph.txt --emit schedule --target $target
        rm -f kernel.*
        awk '/^\/\/ / { n++ } { print > ("kernel." n) }' stdout
        for k in kernel.*; do
            kernels=$((kernels + 1))
            expect 0 '^primfn' opt "$k"
            sed -e '/^$/d' -e '/^--- schedule/,$d' -e '/^\/\//d' "$k" > computation.txt
            expect 0 '' opt computation.txt
            cmp -s stdout computation.txt || bad "$(basename "$case"), $target: prints otherwise: $(cat "$k")"
        done
    done
done
[ $kernels -ge 200 ] || bad "only $kernels kernels"

# the text of a whole model
expect 0 '' compile "$top/demo/digits.onnx" --emit schedule -o all.txt
expect 0 '' opt all.txt
[ "$(sed -n 's/.*"global_symbol": "\([^"]*\)".*/\1/p' stdout)" = "$(sed -n 's/^\/\/ \([a-z0-9_]*\).*/\1/p' all.txt)" ] && good ||
    bad "other kernels: $(grep global_symbol stdout)"
cp stdout loops.txt && expect 0 '' opt loops.txt --passes ''
check "they read back" cmp stdout loops.txt
line=$(grep -n '^unroll' all.txt | sed -n '20s/:.*//p')
sed "${line}s/unroll /unroll nosuch/" all.txt > broken.txt
expect_error 1 "broken.txt:$line:.*nosuch" opt broken.txt
expect_error 2 'holds a schedule' opt all.txt --schedule all.txt

# more loops with guards than are cut in one function
{
    echo 'primfn(A: handle) -> () attr = {"global_symbol": "f", "inputs": 0} buffers = {A: Buffer(float32, [64])} {'
    for ((i = 0; i < 50; i++)); do echo "for (v: int64, 0, 9) { if (v < 7) { A[v] = 0.0 } else { A[v] = $i.0 } }"; done
    echo '}'
} > loops.txt
expect 0 '"loops_left_whole": 2[,}]' opt loops.txt --passes partition-loops

# the demo has all its vectors
for target in x86-64-v3 x86-64-v4 aarch64; do
    expect 0 '' inspect "$top/demo/digits.onnx" --json --target $target
    [ "$(grep -c '"loops_left_\(serial\|whole\)": 0,' stdout)" = $((2 * $(grep -c '"kernel":' stdout) + 2)) ] ||
        bad "demo, $target: $(grep '"loops_left' stdout | sort | uniq -c)"
done
finish
