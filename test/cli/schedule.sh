#!/usr/bin/env bash
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
# Every computation and schedule that `compile --emit schedule` prints for the golden cases is read by `opt`, and is the
# same there when it is printed. What passes leave undone is counted where a user looks.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
kernels=0
declare -A seen
targets=(x86-64-v3 cortex-m) # of rules that have the least in common
[ "${LATHE_TIER:-}" != long ] || targets+=(x86-64-v2 aarch64)
for case in "$top"/test/golden/kernel/*.case; do
    sed -e '/^---$/,$d' -e '/^#/d' "$case" > graph.txt
    for target in "${targets[@]}"; do
        expect 0 '^--- schedule' compile graph.txt --emit schedule --target $target
        cp stdout all.txt
        rm -f kernel.*
        awk '/^\/\/ / { n++; of = 1; next } /^--- schedule/ { of = 0 } of && NF { print > ("kernel." n) }' all.txt
        expect 0 '^primfn' opt all.txt
        [ "$(grep -c '^primfn' stdout)" = "$(grep -c '^// ' all.txt)" ] ||
            bad "$(basename "$case"), $target: kernels are missing"
        for k in kernel.*; do
            kernels=$((kernels + 1))
            text=$(< "$k") # many are of several targets or cases
            [ -z "${seen[$text]-}" ] || continue
            seen[$text]=$k
            expect 0 '' opt "$k"
            cmp -s stdout "$k" || bad "$(basename "$case"), $target: prints otherwise: $text"
        done
    done
done
[ $kernels -ge 100 ] || bad "only $kernels kernels"

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

# --- schedules beside a model ---
expect 0 '^// fused_nn_conv2d_add_nn_relu$' schedule "$top/demo/digits.onnx" conv1 --target x86-64-v3
cp stdout one.txt
[ "$(grep -c '^// ' one.txt)" = 1 ] && good || bad "schedule conv1 prints other kernels: $(grep '^// ' one.txt)"
grep -q '^--- schedule for x86-64-v3$' one.txt && good || bad 'it does not say its target'
expect 0 '' schedule "$top/demo/digits.onnx" fused_nn_conv2d_add_nn_relu --target x86-64-v3
check 'a node and its kernel print one text' cmp stdout one.txt
expect_error 2 "is called 'nosuch'" schedule "$top/demo/digits.onnx" nosuch
expect_error 2 'did you mean conv1[?]' schedule "$top/demo/digits.onnx" conv_1
expect_error 2 'takes a model' schedule
expect 0 '' schedule "$top/demo/digits.onnx" -o all.txt --target x86-64-v3
digits() { expect 0 "$1" compile "$top/demo/digits.onnx" --target x86-64-v3 -o "$2" "${@:3}"; }
digits '' rules
digits '^schedules  9 of 9 given ones' same --schedules all.txt
check 'the schedules of the rules give the same package' diff -r rules/src same/src
digits '^schedules  1 of 1 given ones' same --schedules one.txt
check 'and so does one of them' diff -r rules/src same/src
digits '"schedules": 1, "schedules_used": 1' same --schedules one.txt --json
sed 's/^split nn_relu.i3 4 /split nn_relu.i3 2 /' one.txt > two.txt
digits '' other --schedules two.txt
diff rules/src/ops.c other/src/ops.c | grep -q 'split nn_relu.i3 2 -> ' && good || bad 'an edited schedule changes nothing'
digits '' same --schedules two.txt --schedules one.txt
check 'the last of several counts' diff -r rules/src same/src
expect 0 '' verify "$top/demo/digits.onnx" --target x86-64-v3 --schedules two.txt --against interpreter

# Loops of a model and of what is printed of it are the same, whatever parameters are called.
cat > patches.txt << 'TEXT'
func @main(%picture: i8[1, 3, 12, 12]) {
  %w = constant i8[8, 3, 3, 3] splat 100
  %c = qnn.conv2d(%picture, %w) {strides = [2, 2], pads = [0, 0, 1, 1]}
  return %c
}
TEXT
expect 0 '' compile patches.txt --target cortex-m55 --emit schedule
cp stdout printed.txt
expect 0 '^schedules  2 of 2 given ones' compile patches.txt --target cortex-m55 --port baremetal -o patches \
    --schedules printed.txt
# names of the model's values play no part (below); those of the computation are what schedules speak of
sed 's/\<conv\>/conv_x/g' one.txt > changed.txt
expect_error 1 "'conv_x' here is called 'conv'" compile "$top/demo/digits.onnx" --target x86-64-v3 -o same \
    --schedules changed.txt
# a schedule for another target, or another layer, is not taken, and that is told
sed 's/for x86-64-v3/for aarch64/' one.txt > changed.txt
digits '^schedules  0 of 1' same --schedules changed.txt
sed 's/ for x86-64-v3//' one.txt > changed.txt
digits '^schedules  1 of 1' same --schedules changed.txt
sed 's/kh: 3/kh: 1/' one.txt > changed.txt
digits '^schedules  0 of 1' same --schedules changed.txt
# every verb tells of schedules that no kernel wants, and which kernel is near
for verb in 'compile -q -o same' run 'verify --against interpreter' 'bench --repeat 1' inspect schedule; do
    expect 0 '' $verb "$top/demo/digits.onnx" --target x86-64-v3 --schedules changed.txt
    grep -q '^warning: changed.txt:2:1: no kernel of the model computes this, so its schedule is not used' stderr &&
        good || bad "$verb: $(cat stderr)"
done
grep -q "the most similar kernel is fused_nn_conv2d_add_nn_relu; it has '.*kh: 3.*', and the schedule is for '.*kh: 1.*'" stderr && good ||
    bad "it names no kernel: $(cat stderr)"
cat all.txt changed.txt > more.txt
digits '^schedules  9 of 10' same --schedules more.txt
grep -q '^warning: more.txt:.*: 1 of 10 schedules fit no kernel of the model' stderr && good || bad "$(cat stderr)"
digits '' same --schedules all.txt --schedules one.txt
[ -s stderr ] && bad "schedules that fit are told of: $(cat stderr)" || good
expect 0 '' schedule "$top/demo/digits.onnx" --target cortex-m4 -o board.txt
expect 0 '' schedule "$top/demo/digits.onnx" --target x86-64-v3 --schedules board.txt
grep -q 'is for x86-64-v3: they are for cortex-m4' stderr && good || bad "schedules of another target: $(cat stderr)"
# what verbs that run the model take, schedules of `schedule` are for; compile wants the target, as
# docs/reference/cli.md says
expect 0 '' schedule "$top/demo/digits.onnx" -o native.txt
expect 0 '' run "$top/demo/digits.onnx" --schedules native.txt
grep -q '^warning' stderr && bad "run takes another target than schedule: $(cat stderr)" || good
expect 0 '^schedules  9 of 9' compile "$top/demo/digits.onnx" --target native -o same --schedules native.txt
sed 's/x86-64-v3/z80/' one.txt > changed.txt
expect_error 1 "'z80', which is not a target" compile "$top/demo/digits.onnx" -o same \
    --schedules changed.txt
line=$(grep -n '^unroll' one.txt | sed -n '1s/:.*//p')
sed "${line}s/unroll /unroll nosuch/" one.txt > broken.txt
expect_error 1 "broken.txt:$line:.*nosuch" compile "$top/demo/digits.onnx" -o same --schedules broken.txt
: > empty.txt
for file in empty.txt "$top/demo/digits.onnx"; do # what a file holds is at fault, not the command line
    expect_error 1 'holds no schedules of kernels' compile "$top/demo/digits.onnx" -o same --schedules "$file"
done
echo '{"target": "z80", "node": "n", "form": "f", "threads": 1}' > form.txt
expect_error 1 "form.txt:1:1: .*'z80' is not a target" compile "$top/demo/digits.onnx" -o same --schedules form.txt
six_operators > model.txt
# times by operator: which schedule each one got, and where the time of each worker went
digits '' profiled
expect 0 '^conv1, relu1 .*one\.txt:10' bench "$top/demo/digits.onnx" --target x86-64-v3 --schedules one.txt \
    --profile --repeat 1 --workers 1
# The search for leaks falls over the threads of a library that was closed.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
expect 0 '' bench "$top/demo/digits.onnx" --target x86-64-v3 --schedules one.txt --profile --repeat 1 --workers 2 --json
check 'the profile as JSON' python3 - stdout << 'PY'
import json, sys
p = json.load(open(sys.argv[1]))["result"]
assert p["workers"] == 2 and p["rounds"] == 1 and len(p["operators"]) == 9 and len(p["core_reads"]) == 4, p
conv = [o for o in p["operators"] if o["kernel"] == "fused_nn_conv2d_add_nn_relu"]
assert len(conv) == 1 and conv[0]["schedule"] == "one.txt:10" and conv[0]["macs"] > 0, conv
assert all(len(o["worker_ms"]) == 2 and o["bytes"] > 0 for o in p["operators"])
assert sum(o["schedule"] == "rule" for o in p["operators"]) == 8
assert sum(sum(o["worker_ms"]) for o in p["operators"]) > 0 and p["core_gflops"] > 0
PY
cp stdout profile.json
expect 0 '' bench profiled --profile --repeat 1
same_options=("$top/demo/digits.onnx" --target x86-64-v3 --schedules one.txt --workers 2)
expect 0 '' inspect "${same_options[@]}" --html page.json --profile profile.json
check "the page has what was measured" python3 - <<'PY'
import json
page, profile = json.load(open("page.json")), json.load(open("profile.json"))["result"]
assert page["timeline"]["unit"] == "ms" and page["timeline"]["workers"] == 2
assert [k["measured"]["ms"] for k in page["kernels"]] == [o["ms"] for o in profile["operators"]]
assert [k["schedule"]["from"] for k in page["kernels"] if k.get("schedule", {"from": "rule"})["from"] != "rule"] == ["one.txt:10"]
PY
expect_error 2 'on other operators' inspect model.txt --html page.html --profile profile.json
expect_error 1 'is not a profile' inspect "${same_options[@]}" --html page.html --profile one.txt
expect_error 2 'needs --html' inspect "${same_options[@]}" --profile profile.json
expect_error 2 'for packages' bench "$top/demo/digits.onnx" --emit module --profile
expect_error 2 'against' bench "$top/demo/digits.onnx" --against onnxruntime --profile
# one text for all layers of a shape, whatever their weights are called, and for all variants of a module
cat > twice.txt << 'TEXT'
func @main(%x: f32[64, 64], %w: f32[64, 64], %v: f32[64, 64]) {
  %a = nn.matmul(%x, %w) : f32[64, 64]
  %b = nn.softmax(%a) : f32[64, 64]
  %c = nn.matmul(%b, %v) : f32[64, 64]
  return %c
}
TEXT
expect 0 '' schedule twice.txt fused_nn_matmul --target x86-64-v3 -o one.txt
[ "$(grep -c '^// ' one.txt)" = 1 ] && sed -i 's/^split matmul.i0 \(.*\) -> /split matmul.i0 2 -> /' one.txt
expect 0 '1 of 1' compile twice.txt --target x86-64-v3 -o twice --schedules one.txt
[ "$(grep -c 'split matmul.i0 2 -> ' twice/src/ops.c)" -ge 1 ] && good || bad "not taken: $(grep -A9 schedule twice/src/ops.c)"
expect 0 '' schedule twice.txt fused_nn_matmul --target x86-64-v3 --schedules one.txt
sed '/^  \/\/ /d' one.txt > lines.txt
check 'what is printed with it is that' sh -c "sed '/^  \/\/ from one.txt:/d' stdout | cmp - lines.txt"
expect 0 '1 of 1' compile twice.txt --emit module --widths 32,16 -o twice.so --schedules one.txt

# the demo has all its vectors
for target in x86-64-v3 x86-64-v4 aarch64; do
    expect 0 '' inspect "$top/demo/digits.onnx" --json --target $target
    [ "$(grep -c '"loops_left_\(serial\|whole\)": 0,' stdout)" = $((2 * $(grep -c '"kernel":' stdout) + 2)) ] ||
        bad "demo, $target: $(grep '"loops_left' stdout | sort | uniq -c)"
done
finish
