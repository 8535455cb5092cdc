#!/usr/bin/env bash
# Computations on the command line: run, verified, compiled; on the accelerator, with its timeline; what is asked for
# wrongly. The page's commands run as they stand.
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1

# docs/explanation/vta.md: the product of its beginning, and the commands of its section
block() { awk -v n="$1" '/^```text$/ { k++; on = k == n; next } /^```$/ { on = 0 } on' "$top/docs/explanation/vta.md"; }
block 1 > gemm.txt
block 2 > gemm.sched
commands=0
while read -r command; do
    commands=$((commands + 1))
    # shellcheck disable=SC2086
    expect 0 '' ${command#lathe }
done < <(awk '/^```sh title="computation"$/ { on = 1; next } /^```$/ { on = 0 } on { sub(/ +# .*/, ""); print }' "$top/docs/explanation/vta.md")
[ $commands = 9 ] || bad "$commands commands in docs/explanation/vta.md"
check "a picture" grep -q '</svg>' gemm.svg
check "a folder" test -s kernel/gemm.c -a -s kernel/gemm.h
check "two forms" bash -c 'grep -q VTAPushGEMMOp gemm.c && ! grep -q VTAPushGEMMOp stream.c && grep -q vta_replay stream.c'

# outputs
awk 'BEGIN { for (i = 0; i < 256; i++) printf "%c", 1 + i % 100 }' > A.bin
head -c 65536 "$lathe" > B.bin
inputs=(--input A=A.bin --input B=B.bin)
cat gemm.txt <(echo '--- schedule') gemm.sched > both.te
expect 0 '^counters: .*"gemm_counter": 256' run both.te --target vta "${inputs[@]}" --output-dir vta
expect 0 '' run both.te --interpret "${inputs[@]}" --output-dir interpreted
check "a schedule that is left out is told" grep -q "^note: --interpret and --emit prog take the plain loops of" stderr
expect_error 2 'schedule: --interpret and --emit prog take the computation as it' run gemm.txt --schedule gemm.sched --interpret
expect 0 '' run both.te -O0 "${inputs[@]}" --output-dir c
check "vta" cmp vta/C.npy interpreted/C.npy
check "c" cmp c/C.npy interpreted/C.npy
expect 0 '^cycles: [0-9]+, load busy [0-9]+, compute busy' run both.te --target vta --cycle
expect 0 'C: ok, equal to what the interpreter gives' run both.te --target vta --against interpreter
expect 0 'equal to what C without the schedule gives' run both.te --target vta --against c
expect 0 'ok' verify both.te --target vta --against interpreter
expect 2 'onnxruntime cannot run a computation' verify both.te --against onnxruntime
expect 0 '"name":"C"' run both.te --target vta --json
check "one object" "${LATHE_PYTHON:-python3}" -c 'import json, sys; json.load(open("stdout"))'

# the same time and picture every time
expect 0 '' run both.te --target vta --timeline one.svg --seed 3
expect 0 '' run both.te --target vta --timeline two.svg --seed 3
check "the same picture" cmp one.svg two.svg
expect 0 '' run both.te --target vta --timeline trace.json
check "events" grep -q '"traceEvents"' trace.json
expect 0 '^cycles' run both.te --target vta --cycle --profile hls

# two synchronisations, one behind the other
awk '/^#/ { next } /^---$/ { exit } { print }' "$top/test/golden/vta/two-waits.case" > two.te
expect 0 '^cycles: 384,' run two.te --target vta --cycle --timeline two.json
check "a token that crosses the wait is taken" bash -c '! grep -q token stderr'
check "to the end" "${LATHE_PYTHON:-python3}" -c 'if 1:
    import json
    events = json.load(open("two.json"))["traceEvents"]
    assert max(e.get("ts", 0) + e.get("dur", 0) for e in events) == 384'

# as any program: package, module
expect 0 '' compile gemm.txt -o package
expect 0 'C: i8' run package
expect 0 '' compile gemm.txt --emit module -o gemm.so
expect 0 'C: i8' run gemm.so
expect 0 'operators  none: this is a computation; calls 1, kernels 1, layers 1$' compile gemm.txt -o gemm.package
expect 0 'operators  none: this is a computation; calls 1, kernels 1$' compile gemm.txt --emit module -o gemm.so
expect 0 'C: max abs 0,' verify gemm.txt --emit module --against interpreter
expect 0 'C: ok, equal to' run gemm.txt --emit module --against c
printf 'split C.i1 4 -> o p\n' > host.sched
expect 0 'C: ok, near|C: ok, equal' run gemm.txt --schedule host.sched --against interpreter

# an array that a schedule puts on the stack of a part, and that is too large for it: each part has its own scratch
{
    echo 'placeholder A: float32[64, 160, 160]'
    echo 'compute S: float32[i0: 64, i1: 160, i2: 160] = ((float32*)A[i0, i1, i2] + (float32*)A[i0, i2, i1])'
    echo 'compute C: float32[j0: 64, j1: 160, j2: 160] = ((float32*)S[j0, j1, (159 - j2)] + (float32*)S[j0, (159 - j1), j2])'
    printf 'return C\n--- schedule\nparallel C.j0\ncompute_at S at C.j0\nset_scope S local\n'
} > rows.te
expect 0 'C: ok, equal to|C: ok, near' run rows.te --against interpreter --workers 4
expect 0 'workspace 409600, .*kernel stack 0,' compile rows.te -o rows

# each kernel of a model, alone, under the schedule that it got
expect 0 '' compile "$top/demo/digits.onnx" --emit schedule -o all.txt
awk '/^\/\/ / { n++ } { print > ("kernel." n) }' all.txt
for kernel in kernel.*; do
    expect 0 ': ok, (near|equal to) what the interpreter gives' run "$kernel" --against interpreter
done
check "kernels" test "$(ls kernel.* | wc -l)" -ge 5

# bad input
expect_error 1 "'B_buf' in local.wgt_buffer, a memory of an accelerator" run both.te
expect 1 'target vta runs it there' run both.te
expect_error 2 'holds a schedule, and --schedule gives another' run both.te --target vta --schedule gemm.sched
expect_error 2 'schedule is for computations' run "$top/demo/digits.onnx" --schedule gemm.sched
expect_error 2 'target vta is for computations' run "$top/demo/digits.onnx" --target vta
expect_error 2 'cycle is for the accelerator' run gemm.txt --cycle
for verb in 'run both.te --target vta' 'run gemm.txt' 'bench gemm.txt' 'verify gemm.txt --against interpreter' \
    'compile gemm.txt -o no' 'compile both.te --target vta -o no.c'; do
    # shellcheck disable=SC2086
    expect_error 2 'schedules is for models, and .* is a computation' $verb --schedules both.te
    grep -q '^ *hint: --schedule FILE' stderr && good || bad "$verb: no hint: $(cat stderr)"
done
expect_error 2 'timeline is for the accelerator' run gemm.txt --timeline o.svg
expect_error 2 'neither .svg nor .json' run both.te --target vta --timeline o.png
expect_error 2 'timeline: there is no folder' run both.te --target vta --timeline no/o.svg
expect_error 2 'target vta and --interpret' run both.te --target vta --interpret
expect_error 2 'profile is for the cycle model' run both.te --target vta --profile hls
expect_error 2 'takes chisel or hls' run both.te --target vta --cycle --profile compatible
expect_error 2 'the time of a simulator does not tell' bench both.te --target vta
expect_error 2 'compared with itself' run gemm.txt --interpret --against interpreter
expect_error 2 'run --against is for computations' run "$top/demo/digits.onnx" --against interpreter
expect_error 2 'capture is for the accelerator' compile gemm.txt --capture -o x.c
expect_error 2 'port has no effect' compile both.te --target vta --port posix -o x.c
expect_error 2 'target vta cannot make --emit module' compile both.te --target vta --emit module -o x.so
expect_error 2 'has no graph of a model' compile gemm.txt --emit graph
expect_error 2 'are only for models' run gemm.txt --dim n=3
cat both.te > two.te && cat gemm.txt >> two.te
expect_error 2 'several computations, but only one can be used' run two.te
sed 's/^pragma C.i0/pragma C.nosuch/' both.te > broken.te
expect_error 1 'broken.te:[0-9]*:.*nosuch' run broken.te --target vta
expect_error 2 "VTA configuration 'nosuch'" run both.te --target vta --vta-config nosuch
printf 'symbol n <= 64\nplaceholder A: float32[n]\ncompute B: float32[i: n] = (A[i] + 1.0)\nreturn B\n' > symbol.te
expect_error 1 'the extent n is known only when' run symbol.te
sed -e '/^--- schedule/,$d' both.te > plain.te
expect_error 1 'the schedule gives nothing to the accelerator' run plain.te --target vta
awk '/^#/ { next } /^---$/ { exit } { print }' "$top/test/golden/vta/host-and-device.case" > host.te
expect 0 'C: ok, equal to' run host.te --target vta --against c
expect_error 1 'the host computes something itself' compile host.te --target vta --capture -o x.c
check "nothing is written" test ! -e x.c

# calls that no pass makes: one error, in every form
foreign() { # foreign PATTERN STATEMENTS
    printf 'placeholder A: int8[16]\nextern B: int8[16] {\n  %s\n}\nreturn B\n' "$2" > foreign.te
    expect_error 1 "$1" run foreign.te --target vta
    expect_error 1 "$1" compile foreign.te --target vta -o x.c
    expect_error 1 "$1" compile foreign.te --target vta --capture -o x.c
}
foreign 'neither for GEMM nor for ALU' 'attr [vta] "coproc_uop_scope" = 5 { @tir.call_extern("VTAUopLoopEnd") }'
foreign 'neither for GEMM nor for ALU' 'attr [vta] "coproc_uop_scope" = "f" { @tir.call_extern("VTAUopLoopEnd") }'
foreign "'VTALoadBuffer2D' with 2 arguments" '@tir.call_extern("VTALoadBuffer2D", 1, 2)'
foreign "'VTAFly' with 0 arguments" '@tir.call_extern("VTAFly")'
foreign 'is what VTABufferCPUPtr gives' 'attr [q] "buffer_data" = 7 { @tir.vta.coproc_sync() }'
printf 'placeholder A: int8[16]\nextern B: int8[16] {\n  %s\n  %s\n}\nreturn B\n' '@tir.vta.coproc_dep_push(1, 2)' \
    '@tir.vta.coproc_sync()' > left.te
expect 0 'main: tokens are left at the end: 1 from load' run left.te --target vta
one='@tir.vta.command_handle(dtype=handle), &B, 0, 1, 1, 1, 0, 0, 0, 0, 0'
printf 'placeholder A: int8[16]\nextern B: int8[16] {\n  @tir.call_extern("VTALoadBuffer2D", %s, 99)\n}\nreturn B\n' "$one" > m.te
expect_error 1 'memory type 99' run m.te --target vta
expect_error 1 'memory type 99' compile m.te --target vta --capture -o x.c
check "nothing is written" test ! -e x.c
finish
