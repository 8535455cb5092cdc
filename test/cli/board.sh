#!/usr/bin/env bash
# Not in `make check`.
# SPDX-License-Identifier: Apache-2.0
# verify and run on the machines of emulators, --target qemu-m4 and its like: outputs, sizes, stack, instructions of each
# operator; what is not installed; packages; constants in a file; open extents; a run that ends with a status.
. "$(dirname "$0")/lib.bash"
python=${LATHE_PYTHON:-$top/build/venv/bin/python}
model=$top/demo/digits.onnx
cd "$work" || exit 1
six_operators > six.txt

have() { local t; for t; do command -v "$t" > /dev/null || return 1; done; }
export CFLAGS=-O1 # of packages: how deep their stacks are is looked at
boards=()
if have arm-none-eabi-gcc qemu-system-arm; then boards+=(qemu-m4 qemu-m55); fi
if have riscv64-unknown-elf-gcc qemu-system-riscv32; then boards+=(qemu-rv32); fi
if have aarch64-linux-gnu-gcc qemu-aarch64; then boards+=(qemu-aarch64); fi
echo "boards: ${boards[*]:-none}"

# value KEY: a number of the board, of a document in stdout
value() { grep -o '"board": .*' "${2:-stdout}" | grep -o "\"$1\": [0-9]*" | head -n 1 | cut -d' ' -f2; }

for b in ${boards[@]+"${boards[@]}"}; do
    expect 0 '^probabilities: .*: ok$' verify "$model" --target "$b" --against interpreter
    check "$b: RAM is its parts" awk '/^RAM/ { gsub(",", ""); ok = $2 == $5 + $7 + $NF && $NF > 64 && $NF < 4096 } END { exit !ok }' stdout
    check "$b: flash is its parts" awk '/^flash/ { gsub(",", ""); ok = $2 == $5 + $7 + $NF && $5 > 1000 && $7 > 54000 } END { exit !ok }' stdout
    cp stdout text
    expect 0 '^board ' verify "$model" --target "$b" --against interpreter --per-node
    check "$b: no sizes of a build whose outputs are all values" awk '/^(RAM|flash|instructions)/ { bad = 1 } END { exit bad }' stdout
    expect 0 '' verify "$model" --target "$b" --against interpreter --json
    check "$b: constants are in flash" test "$(value rodata)" -ge 54000
    check "$b: the workspace is in RAM" test "$(value bss)" -ge "$(sed -n 's/^RAM.*workspace \([0-9]*\).*/\1/p' text)" -a "$(value bss)" -gt 2048
    cp stdout first
    if [ "$b" = qemu-aarch64 ]; then
        expect 0 'not counted: instructions of several workers' verify "$model" --target "$b" --against interpreter --workers 2
        mkdir -p without
        printf '#!/bin/sh\nexit 1\n' > without/cc
        chmod +x without/cc
        PATH=$PWD/without:$PATH expect 0 'not counted: cc or this qemu-aarch64' verify "$model" --target "$b" --against interpreter
    else
        expect 0 '' inspect "$model" --html page.html --profile first --target "$(case $b in qemu-rv32) echo rv32imc ;; *) echo "cortex-${b#qemu-}" ;; esac)"
        check "$b: the page has what was counted" grep -q "\"how\": \"counted\", *\"counted_by\": \"$b\"" <(tr -d '\n' < page.html)
        check "$b: the stack is within its bound" test "$(value stack first)" -le "$(sed -n 's|.*"stack_bytes": \([0-9]*\).*|\1|p' page.html)"
    fi
    count=$(value instructions first)
    parts=$(grep -o '"operators": .*' first | grep -Eo '"instructions": [0-9]+' | grep -Eo '[0-9]+' | awk '{ s += $1 } END { print s }')
    check "$b: operators are nearly all of the run ($parts of $count)" test $((parts * 10)) -ge $((count * 9)) -a "$parts" -le "$count"
    expect 0 '' verify "$model" --target "$b" --against interpreter --json
    check "$b: the same numbers again" cmp first stdout
done

if have riscv64-unknown-elf-gcc; then
    expect 0 'next: make -C riscv lib CC=riscv64-unknown-elf-gcc' compile "$model" -o riscv --target rv32imc --port baremetal
    line=$(sed -n 's/^# *\(make lib CC=riscv64.*\)/\1/p' riscv/Makefile)
    check "RISC-V: the library by the Makefile's own line" sh -c "cd riscv && ${line:-false}"
fi
# one board is enough for the rest
if have arm-none-eabi-gcc qemu-system-arm; then
    printf '\000\000\040\101' > ten.bin
    expect 0 'f32\[1\], 23 to 23: 23' run six.txt --target qemu-m4 --input x=ten.bin -O0
    check 'the table has six rows' test "$(grep -Ec '^ [0-5]  fused_(add|subtract)' stdout)" = 6
    expect 0 '' compile "$model" -o bare --target cortex-m4 --port baremetal --constants bin -q
    cp -r bare before
    cp -r bare plain
    check 'the Makefile knows the compiler of the target' env -u CC -u AR make -s -C plain lib
    expect 0 '^probabilities: f32\[1, 10\]' run bare --target qemu-m4
    check 'constants that the program hands over are not in flash' awk '/^flash/ { gsub(",", ""); ok = $2 < 20000 } END { exit !ok }' stdout
    check 'a package stays as it is' diff -r before bare
    expect 2 "it cannot run here" run bare
    check 'the hint names the boards' grep -q 'qemu-m4, .*qemu-aarch64' stderr
    expect 2 'cannot run on qemu-aarch64' run bare --target qemu-aarch64
    printf 'slow rom 8M .slow 20\nfast ram 8K .fast_memory 1\nsram ram 512K - 3\nflash rom 40K - 4\n' > memories.txt
    expect 0 '' verify "$model" --target qemu-m4 --against interpreter --memory memories.txt --json
    check 'what lies in sections of its own is in RAM and flash' test "$(value bss)" -ge 4224 -a "$(value rodata)" -ge 54000
    expect_error 2 'nothing simulates the device there' verify "$top/demo/residual_vta.onnx" --offload vta --target qemu-m4 --against interpreter
    mkdir tools
    # the last on the path: one before it may be ccache's, which looks for another
    ln -s "$(type -aP arm-none-eabi-gcc | tail -n 1)" "$(type -aP arm-none-eabi-objdump | tail -n 1)" tools
    printf '#!/bin/bash\nPATH=$PATH_OF_TOOLS exec "%s" "$@"\n' "$lathe" > narrow && chmod +x narrow
    whole=$lathe lathe=$work/narrow
    PATH_OF_TOOLS=$work/tools expect 3 "there is no program 'qemu-system-arm'" run six.txt --target qemu-m4
    check 'its package is named' grep -q 'apt-get install qemu-system-arm$' stderr
    PATH_OF_TOOLS=/nowhere expect 3 "there is no program 'arm-none-eabi-gcc'" run six.txt --target qemu-m4
    check 'its packages are named' grep -q 'apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi$' stderr
    lathe=$whole
    # 64-bit numbers behind 32-bit pointers; a status
    if "$python" -c 'import numpy, onnx' 2> log; then
        "$python" - << 'PY' || exit 1
import numpy, onnx
from onnx import helper as h
F, I = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
info = h.make_tensor_value_info
g = h.make_graph([h.make_node("Relu", ["x"], ["r"]), h.make_node("Add", ["r", "x"], ["y"])], "g",
                 [info("x", F, ["n", 3])], [info("y", F, ["n", 3])])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "open.onnx")
g = h.make_graph([h.make_node("Gather", ["x", "i"], ["y"], name="pick")], "g", [info("x", F, [4, 3]), info("i", I, [2])],
                 [info("y", F, [2, 3])])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "pick.onnx")
numpy.save("x.npy", numpy.arange(-7, 8, dtype=numpy.float32).reshape(5, 3))
PY
        expect 0 '^y: .*: ok$' verify open.onnx --dim 'n<=8' --input x=x.npy --target qemu-m4 --against interpreter
        expect 0 '^y: f32\[5, 3\], -7 to 14:' run open.onnx --dim 'n<=8' --input x=x.npy --target qemu-m4
        printf '\007\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' > seven.bin
        expect 1 'pick' run pick.onnx --target qemu-m4 --input i=seven.bin
    fi
fi

# `slow` names the move between layouts that takes more than a tenth of its layer here, with its share
bytes_1x1 > bytes.txt
for b in ${boards[@]+"${boards[@]}"}; do
    case $b in qemu-m4 | qemu-m55) ;; *) continue ;; esac
    CFLAGS=-O3 expect 0 '' verify bytes.txt --target "$b" --workers 0 --against c
    counted=$(awk '$2 ~ /^fused_transpose/ { move = $3 } $2 ~ /^fused/ { all += $3 } END { print int(1000 * move / all) }' stdout)
    expect 0 '' compile bytes.txt -o bytes --target "cortex-${b#qemu-}" --port baremetal
    said=$(sed -n 's/^slow.*(fused_transpose \([0-9]*\) %)$/\1/p' stdout)
    check "$b: slow says ${said:-no} % of a transpose, counted: $counted thousandths" awk -v said="${said:-0}" \
        -v counted="$counted" 'BEGIN { exit counted < 91 ? said : said * 10 < counted * 0.8 || said * 10 > counted * 1.2 }'
done

expect_error 2 'cortex-m4 --port baremetal makes a package for it' compile "$model" -o out --target qemu-m4
expect_error 2 'already has an emulator' run "$model" --target qemu-m4 --emulator qemu-arm
expect_error 2 'unknown' run "$model" --target qemu-m5
finish
