#!/usr/bin/env bash
# What is said to one who mistypes: a line that names what is wrong, and a hint with the nearest word that is known.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3
cp "$model" model.onnx
cp "$model" -- -model.onnx

# hint STATUS PATTERN ARGS...: lathe ARGS ends with STATUS and one error, whose hint matches PATTERN; nothing is printed.
hint() {
    local status=$1 pattern=$2
    shift 2
    expect "$status" "^  hint: .*$pattern" "$@"
    [ "$(grep -c '^error: ' "$work/stderr")" = 1 ] && [ ! -s "$work/stdout" ] && good ||
        bad "lathe $*: not one error alone: $(cat "$work/stderr" "$work/stdout")"
}

# --- verbs
hint 2 'did you mean compile\?' compil
hint 2 'did you mean compile\?' help compil
hint 2 'did you mean verify\?' verfiy model.onnx
hint 2 'options follow the verb' --quiet compile model.onnx
hint 2 'did you mean --version\?' --verson
hint 2 'lathe compile model.onnx -o out' model.onnx
hint 2 'see: lathe --help' zzzzzzzz
hint 2 'see: lathe --help'
expect 0 'lathe inspect model.onnx' --help

# --- options
hint 2 'did you mean --workers\?' run model.onnx --threads 4
hint 2 'leave --workers out' compile model.onnx -o out --workers 4 --port baremetal
mkdir -p sets/test_data_set_0
hint 1 'data sets: --data sets/test_data_set_0' run model.onnx --data sets
for option in --emit=graph --emit=tir; do
    hint 2 'name a file, for example sets/FILE' compile model.onnx $option -o sets
done
"$lathe" compile model.onnx --emit graph -o graph.txt
hint 2 'name a file' opt graph.txt -o sets
hint 2 'mkdir -p no/such' inspect model.onnx --html no/such/page.html
[ ! -e no ] && good || bad "folders were made for a page"
hint 2 'did you mean --module-name\?' compile model.onnx -o out --modul-name x
hint 2 'did you mean --module-name\?' compile model.onnx -o out --modul-name=x
hint 2 'did you mean --emit\?' compile model.onnx -emit graph
hint 2 'use --emit c or --emit module' run model.onnx --emit graph
hint 2 '--rtol is an option of lathe verify$' bench model.onnx --rtol=1
hint 2 'see: lathe compile --help' compile model.onnx --zzzzzzzz
hint 2 '--output=-O2' compile model.onnx -o -O2
hint 2 '--output=--emit' compile model.onnx -o --emit graph
hint 2 'see: lathe run --help' run model.onnx --seed
expect 2 '--interpret takes no value' run model.onnx --interpret=yes
expect 0 '' compile model.onnx --emit=graph --output=a.txt
expect 0 '' compile model.onnx --emit graph -o=b.txt
expect 0 '' compile --emit graph -oc.txt -- -model.onnx
expect 0 '' compile --emit graph --output --d.txt ./-model.onnx
check "all ways to give a value" cmp a.txt b.txt
check "names that begin with -" test -s c.txt -a -s ./--d.txt
expect 0 "^warning: --emit is given twice: 'graph' is used, 'tir' is ignored" compile model.onnx --emit tir --emit graph
expect 0 '^func @main' compile model.onnx --emit graph --emit graph
[ ! -s stderr ] && good || bad "the same value again is worth no word"

# --- values
hint 2 'did you mean graph\? it takes c, module, graph, ' compile model.onnx --emit grahp
hint 2 'did you mean baremetal\?' compile model.onnx -o out --port bare-metal
hint 2 'did you mean x86-64-v3\?' compile model.onnx -o out --target x86-64v3
hint 2 'did you mean native\?' run model.onnx --target natve
hint 2 'did you mean image\?' run model.onnx --input imgae=x.npy
hint 2 'it takes onnxruntime' verify model.onnx --against ort
hint 2 'by hand: .* lathe verify --target qemu-m4 ' tune model.onnx -o t.schedules --target cortex-m4
expect 2 'is not a number from 0 to 127' run model.onnx --workers 128
expect 2 'is not a number from 1 to 10000' bench model.onnx --repeat 0
expect 2 'is not a number from 0 to 3' compile model.onnx -o out -O4
expect 2 "'1e-3x' is not a number" verify model.onnx --rtol 1e-3x --against onnxruntime

# --- names inside of texts
"$lathe" compile model.onnx --emit graph -o graph.txt
"$lathe" compile model.onnx --emit tir -o loops.txt
hint 2 'did you mean simplify\?' opt graph.txt --passes simplfy
hint 2 'did you mean vectorize\?' opt loops.txt --passes vectorise
printf 'func @main(%%x: f32[1]) {\n  %%y = exb(%%x)\n  return %%y\n}\n' > slip.txt
hint 1 'did you mean exp\?' compile slip.txt -o out
printf 'symbol n\nplaceholder A: int32[8]\ncompute B: int32[i: 8] = max(A[i], 0)\nreturn B\n' > b.te
printf 'vectorise B.i\n' > b.sched
hint 1 'did you mean vectorize\?' opt b.te --schedule b.sched
hint 2 'did you mean vta\?' opt b.te --lower vat
hint 2 'did you mean pynq\?' opt b.te --lower vta --vta-config pynk
hint 2 'did you mean trace\?' vta trce program.txt
hint 2 'did you mean height\?' vta conv2d heigth=14
hint 2 'lathe vta run program.txt' vta run
printf 'config pynq\nfinish\n' > program.txt
hint 2 'did you mean hls\?' vta trace program.txt --profile hsl -o t.json

# --- what does not fit the model, or is not the file that was meant
hint 1 'did you mean model.onnx\?$' compile mode.onnx -o out
cp model.onnx sets/model.onnx
hint 1 'did you mean sets/model.onnx\?$' compile sets/mdel.onnx -o out
hint 2 "did you mean cortex-m55\? 'lathe targets' lists all" compile model.onnx --target cortex-m5 -o out
hint 2 'leave --shape out, or export the model' compile model.onnx --shape image=2x1x8x8 -o out
hint 2 'all dimensions of this model are fixed: leave --dim out' compile model.onnx --dim batch=2 -o out
hint 2 'for example --target cortex-m4' compile model.onnx --minimize ram --target x86-64-v3 -o out
hint 2 "--dim 'seq<=128'" compile model.onnx --dim seq=-3 -o out
hint 2 'for example --shape input=1x3x224x224' compile model.onnx --shape image=1x1x8x -o out
expect 2 'an extent cannot be negative' compile model.onnx --dim seq=-3 -o out
hint 2 'it takes c, incbin or bin' compile model.onnx --constants flash -o out
hint 3 'a shared object \(.so\)' compile model.onnx --load-ops model.onnx -o out
hint 1 'lathe tune MODEL' compile model.onnx --schedules graph.txt -o out
hint 2 'give --data DIR, or --against onnxruntime \(tflm or litert for .tflite files\), interpreter or c$' verify model.onnx
hint 2 'for that target: --target qemu-m4$' verify model.onnx qemu-m4
hint 2 'for that target: --target cortex-m4$' compile model.onnx cortex-m4
hint 2 'did you mean tflite\?' compile model.onnx --requant tflm -o out
hint 2 'did you mean tflm\?' verify model.onnx --against tflite
hint 1 '--data takes a folder or a file, without a name; --input NAME=FILE gives one' \
    verify model.onnx --against c --data image=x.npy
printf 'PK\003\004zip' > b.pt
hint 1 'if PyTorch wrote it: torch.onnx.export' compile b.pt -o out
head -c 10 model.onnx > short.bin
expect 1 'a file of raw bytes has the elements of one tensor' run model.onnx --input image=short.bin --interpret
python3 - << 'P'
head = lambda kind, shape: b"{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n" % (kind, shape)
for name, kind, shape, size in (("double", b"<f8", b"(1, 1, 8, 8)", 512), ("flat", b"<f4", b"(1, 64)", 256),
                                ("two", b"<f4", b"(2, 1, 1, 8, 8)", 512), ("none", b"<f4", b"(0, 1, 8, 8)", 0),
                                ("first", b"<f4", b"(1, 3, 4, 5)", 240), ("other", b"<f4", b"(1, 6, 10, 1)", 240),
                                ("u1", b"|u1", b"(1, 4, 5, 3)", 60), ("u2", b"<u2", b"(1, 4, 5, 3)", 120),
                                ("i8", b"<i8", b"(1, 4, 5, 3)", 480)):
    text = head(kind, shape)
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(size))
P
expect 1 "in NumPy: x.astype\('float32'\)" run model.onnx --input image=double.npy --interpret
expect 1 'in NumPy: x.reshape\(\[1, 1, 8, 8\]\)' run model.onnx --input image=flat.npy --interpret
for kind in f32 i8 i16 i32; do # what fits without a number that wraps or moves
    printf 'func @main(%%x: %s[1, 4, 5, 3]) {\n  %%y = copy(%%x) : %s[1, 4, 5, 3]\n  return %%y\n}\n' $kind $kind > $kind.txt
done
expect 1 'in NumPy: x.transpose\(0, 2, 3, 1\)$' run f32.txt --input x=first.npy --interpret
hint 1 'give an array of that shape$' run f32.txt --input x=other.npy --interpret
hint 1 "if these are raw bytes, in NumPy: \(x.astype\('int16'\) - 128\).astype\('int8'\); .*\+ zero_point, -128, 127\)" \
    run i8.txt --input x=u1.npy --interpret
hint 1 "if it is quantized, in NumPy: np.clip" run i8.txt --input x=i8.npy --interpret
hint 1 "in NumPy: x.astype\('int16'\)$" run i16.txt --input x=u1.npy --interpret
hint 1 "if it is quantized, in NumPy: np.clip" run i16.txt --input x=u2.npy --interpret
hint 1 "if no number is outside of -2147483648 to 2147483647, in NumPy: x.astype\('int32'\)$" \
    run i32.txt --input x=i8.npy --interpret
hint 1 "if its numbers are whole" run i32.txt --input x=first.npy --interpret
expect 1 'it holds 2 samples, and a run takes one; in NumPy: x\[0\]' run model.onnx --input image=two.npy --interpret
expect 1 "'none.npy' has no samples: its shape is \[0, 1, 8, 8\]" quantize model.onnx --data none.npy -o q.onnx

# --- a status that kernels do not end with
"$lathe" compile model.onnx -q -o busy
sed -i 's/return tvmgen_default___tvm_main__(.*/return TVMRT_E_BUSY;/' busy/src/default_lib0.c
expect 1 'ended with status -6: engine is in use' run busy

# --- the file of every verb
mkdir folder
: > empty
printf '\001\002\003binary' > binary
for verb in compile run verify bench inspect opt 'vta asm' 'vta disasm' 'vta run' 'vta trace'; do
    more=
    [ "$verb" = compile ] && more='-o out'
    [ "$verb" = verify ] && more='--against onnxruntime'
    hint 2 "" $verb $more
    for file in missing folder empty binary; do
        hint 1 "'lathe $verb' takes " $verb $file $more
    done
    hint 2 "" $verb $more --no-such-option
    hint 2 "" $verb a b $more
done
[ ! -e out ] && good || bad "a refused command left 'out' behind"
finish
