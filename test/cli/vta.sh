#!/usr/bin/env bash
# lathe vta: a program goes from text to bytes and back, runs with buffers from files, is timed; bad input is explained.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

cat > add.txt << 'END'
# c = a + b, for two tiles of 16 numbers; c as bytes
config pynq
buffer a 128
buffer b 128
buffer c 32
uop 0 2 0
load uop dram_base=uops y_size=1 x_size=1 x_stride=1
load acc dram_base=a y_size=1 x_size=2 x_stride=2
load acc sram_base=2 dram_base=b y_size=1 x_size=2 x_stride=2
alu add push_next_dep uop_end=1 iter_out=1 iter_in=2 dst_factor_in=1 src_factor_in=1
store out pop_prev_dep push_prev_dep dram_base=c y_size=1 x_size=2 x_stride=2
finish pop_next_dep
END
words() { for i in $(seq 0 31); do printf "\\x$(printf %02x $((i * $1)))\0\0\0"; done; }
words 1 > a.bin
words 2 > b.bin
for i in $(seq 0 31); do printf "\\x$(printf %02x $((i * 3)))"; done > expected.bin

# --- text and bytes
check "assembles" "$lathe" vta asm add.txt -o add.bin
check "the file says what it is" grep -q VTAPROG1 add.bin
"$lathe" vta disasm add.bin > again.txt
check "disassembles" grep -qx 'alu add push_next_dep uop_end=1 iter_out=1 iter_in=2 dst_factor_in=1 src_factor_in=1' again.txt
check "says the configuration" grep -qx 'config pynq_1x16_i8w8a32_15_15_18_17' again.txt
"$lathe" vta asm again.txt -o again.bin
check "text and bytes go round" cmp add.bin again.bin
"$lathe" vta disasm again.txt -o canonical.txt
check "canonical text stays" cmp again.txt canonical.txt

# --- run
counters='"acc_load_nbytes": 256, "uop_load_nbytes": 4, "out_store_nbytes": 32, "gemm_counter": 0, "alu_counter": 2'
for program in add.txt add.bin; do
    for profile in compatible hls chisel intelfocl; do
        rm -f c.bin
        expect 0 "$counters" vta run $program --profile $profile --dram-in a=a.bin --dram-in b=b.bin --dram-out c=c.bin
        check "$program on $profile adds" cmp c.bin expected.bin
    done
done
expect 0 "$counters" vta run add.txt --dram-in a=a.bin --dram-in b=b.bin --dump-vectors vectors
check "vectors: before" cmp vectors/a.before.bin a.bin
check "vectors: after" cmp vectors/c.after.bin expected.bin
check "vectors: stream" test "$(wc -c < vectors/instructions.bin)" = 96
check "vectors: micro-ops" test "$(od -An -tx4 vectors/micro_ops.bin | tr -d ' ')" = 00001000
check "vectors: addresses" grep -q '"name": "c", "address": [1-9]' vectors/vectors.json

# --- tokens: one that comes too early shows with some seed, one that stays is named
cat > early.txt << 'END'
config pynq
buffer i 16
buffer w 256
buffer c 16
uop 0 0 0
load uop dram_base=uops y_size=1 x_size=1 x_stride=1
gemm reset_reg uop_end=1 iter_out=1 iter_in=1
load inp push_next_dep dram_base=i y_size=1 x_size=1 x_stride=1
load wgt push_next_dep dram_base=w y_size=1 x_size=1 x_stride=1
gemm pop_prev_dep push_next_dep uop_end=1 iter_out=1 iter_in=1
store out pop_prev_dep push_prev_dep dram_base=c y_size=1 x_size=1 x_stride=1
finish pop_next_dep
END
sed -e 's/load inp push_next_dep/load inp/' early.txt > right.txt
head -c 16 /dev/zero | tr '\0' '\1' > i.bin
head -c 256 /dev/zero | tr '\0' '\1' > w.bin
# results PROGRAM SEEDS...: one line for each result that differs
results() {
    local program=$1
    shift
    for seed in "$@"; do
        "$lathe" vta run "$program" --seed "$seed" --dram-in i=i.bin --dram-in w=w.bin --dram-out c=c.bin > /dev/null 2>&1
        od -An -tx1 c.bin
    done | sort -u
}
check "a token too early: seeds differ" test "$(results early.txt {0..15} | wc -l)" = 2
check "the same seed gives the same" test "$(results early.txt 7 7 7 7 | wc -l)" = 1
check "right tokens: seeds agree" test "$(results right.txt {0..15} | wc -l)" = 1
expect 0 'warning: 1 token left from load to compute: is a pop missing in an instruction of compute' \
    vta run early.txt --dram-in i=i.bin
expect_error 2 '' vta run add.txt --seed x
expect_error 2 'has no option' vta trace add.txt --seed 1

# --- configuration
echo '{"TARGET": "sim", "LOG_BATCH": 1}' > two.json
sed '/^config/d' add.txt > plain.txt
check "text starts from --config" "$lathe" vta asm plain.txt --config two.json -o two.bin
expect 0 'config sim_2x16_i8w8a32_15_15_18_17' vta disasm two.bin
expect 0 'config ultra96_1x16_i8w8a32_15_15_18_17' vta disasm plain.txt --config ultra96
expect_error 1 'is for the configuration 1x16.*, not 2x16' vta run add.bin --config two.json
expect_error 1 'uop-bits' vta run plain.txt --config 1x16_i8w8a32_15_15_18_18
expect_error 1 'no file or folder|missing' vta run plain.txt --config missing.json

# --- trace
expect 0 '"cycles": [1-9]' vta trace add.txt -o timeline.json --json
check "Chrome trace" grep -q '"ph"' timeline.json
expect 0 '"compute": \{"busy": [1-9]' vta trace add.bin --profile hls -o timeline.svg --json
check "picture" grep -q '^<svg' timeline.svg

# --- a convolution
expect 0 '' vta conv2d height=14,width=14,in_channels=32,out_channels=32 -o layer
expect 0 'VTALoadBuffer2D' opt layer.te --schedule layer.sched --lower vta
expect 0 '' vta conv2d height=14,kernel=1 -o small
check "width and pad follow" grep -q 'data_buf: int8.n: 1, c: 4, y: 14, x: 14,' small.te
"$LATHE" vta conv2d height=14 > both.txt
expect 0 'VTALoadBuffer2D' opt both.txt --lower vta
expect_error 2 'holds a schedule' opt both.txt --schedule layer.sched
expect_error 2 'tile_h=5 does not divide the 14 output rows' vta conv2d height=14,tile_h=5
expect 0 'VTALoadBuffer2D' opt layer.te --schedule layer.sched --lower vta --vta-config pynq
expect_error 2 'is neither a target' opt layer.te --lower vta --vta-config pinq
expect 0 '' opt layer.te --schedule layer.sched --lower vta -o lowered.txt
check "opt -o" grep -q VTALoadBuffer2D lowered.txt
# The example of the document.
awk '/^```text/ { n++; on = 1; next } /^```/ { on = 0 } on { print > ("doc" n) }' "$LATHE_SOURCE/docs/explanation/vta.md"
expect 0 'VTAUopLoopBegin' opt doc1 --schedule doc2 --lower vta
expect_error 2 'a layer has no key' vta conv2d hight=14
expect_error 2 'multiples of 1 and 16' vta conv2d in_channels=3
expect 0 'split res' vta conv2d in_channels=24 --vta-config 4x8_i8w8a32_15_16_16_18

# Every kind of layer, awkward windows, other widths: what is accepted runs on the simulator and gives the interpreter's
# numbers.
layers=0
while read -r config kind keys; do
    expect 0 '' vta "$kind" "$keys" -o one --vta-config "$config"
    expect 0 '^res: ' run one.te --interpret --seed 5 --output-dir plain
    expect 0 '^res: ' run one.te --schedule one.sched --target vta --vta-config "$config" --seed 5 --output-dir device
    check "$kind $keys on $config" cmp plain/res.npy device/res.npy
    layers=$((layers + 1))
done << 'END'
pynq conv2d height=17,kernel=1,stride=3,pad=1,in_channels=16,out_channels=16
pynq conv2d height=2,kernel=2,stride=3,in_channels=16,out_channels=16
pynq conv2d height=12,width=27,kernel=11,stride=2,pad=10,in_channels=16,out_channels=16
pynq conv2d height=1,kernel=3,in_channels=16,out_channels=16
pynq conv2d height=6,in_channels=32,out_channels=32,groups=2,residual=1
pynq conv2d height=1,kernel=1,in_channels=64,out_channels=32
pynq conv2d_transpose height=4,kernel=4,stride=2,pad=1,in_channels=16,out_channels=32
pynq max_pool2d height=9,stride=2,in_channels=32
pynq sum_pool2d height=7,kernel=7,pad=0,in_channels=32,mul=669,shift=15
pynq upsampling height=5,in_channels=16
pynq elementwise height=4,in_channels=16,bias=1,mul=3,shift=-2,low=0
pynq add height=4,in_channels=16,shift_b=2,shift=1
1x16_i16w8a32_15_15_18_17 conv2d height=6,in_channels=16,out_channels=16
1x16_i8w8a16_15_15_18_16 conv2d height=6,in_channels=16,out_channels=16
1x16_i8w4a32_15_15_17_17 conv2d height=6,in_channels=16,out_channels=16
1x32_i8w2a32_15_15_16_17 conv2d height=7,width=29,in_channels=192,out_channels=96,groups=3,kernel_w=2,stride=2
2x8_i8w2a32_15_13_13_15 conv2d height=6,in_channels=16,out_channels=16,batch=4
END
[ $layers -eq 17 ] && good || bad "$layers layers"
expect_error 1 'needs 602176 bytes of inp memory' vta conv2d height=192,tile_h=192,tile_w=192,tile_co=1
expect_error 1 'only padding' vta conv2d height=3,kernel=1,pad=9,tile_h=1
expect_error 2 'whole blocks of 16' vta conv2d groups=8
expect_error 2 'only weights can be narrower' vta conv2d --vta-config 1x16_i4w4a32_15_14_17_17

# --- what goes wrong
printf 'finish\n  frob\n' > bad.txt
expect_error 1 'bad.txt:2:3: .frob. is not an instruction' vta asm bad.txt -o x.bin
[ ! -e x.bin ] && good || bad "a failed asm left a file"
expect_error 2 'no file for the program' vta asm add.txt
grep -v finish add.txt > endless.txt
expect_error 1 "no finish" vta run endless.txt
grep -v 'store' add.txt > stuck.txt
expect_error 1 'no stage can go on; load has no more; compute waits at instruction 4 \(finish\) for store' vta run stuck.txt
expect_error 1 'deadlock|waits' vta trace stuck.txt
sed 's/x_size=2/x_size=3/' add.txt > over.txt
expect_error 1 "instruction 1 \(load acc\): buffer 'a' has 2 elements of 64 bytes, row 0 ends at element 3" vta run over.txt
sed 's/load acc/load imp/' add.txt > imp.txt
expect_error 1 "imp.txt:8:6: 'imp' is not a known memory: uop, wgt" vta asm imp.txt -o x.bin
for edit in 's/y_size=1/y_size=0/' 's/ y_size=1 x_size=2 x_stride=2//' 's/iter_in=2/iter_in=0/' 's/uop_end=1//' \
    's/load acc/load out/' 's/store out/store acc/'; do
    sed "$edit" add.txt > slip.txt
    expect 0 'warning: instruction [1-5]( does nothing, [a-z_ ]* (is 0|uop_bgn))?: (.* (loaded|stored): )?(load|alu|store)' \
        vta asm slip.txt -o x.bin
done
expect 0 '' vta asm add.txt -o x.bin
check "no warning where nothing is wrong" test ! -s "$work/stderr"
printf 'load uop push_next_dep\nalu add pop_prev_dep\nfinish\n' > tokens.txt # no sizes: tokens only
expect 0 '' vta asm tokens.txt -o x.bin
check "no warning of instructions for tokens" test ! -s "$work/stderr"
sed 's/alu add/alu mul/' add.txt > mul.txt
expect_error 1 'does not multiply' vta run mul.txt --profile hls
expect_error 1 'a.bin has 128 bytes, buffer .c. has 32' vta run add.txt --dram-in c=a.bin
expect_error 2 'names no buffer' vta run add.txt --dram-in d=a.bin
expect_error 2 'names no buffer' vta run add.txt --dram-out d
expect_error 2 'unknown' vta run add.txt --profile pdp11
expect_error 2 'unknown' vta trace add.txt --profile intelfocl
expect_error 2 'has no option' vta asm add.txt --profile hls -o x.bin
expect_error 2 'needs a program' vta run
expect_error 2 'takes one file' vta run add.txt add.txt
expect_error 2 "has no 'walk'" vta walk add.txt
expect_error 2 'needs to know what to do' vta
head -c 100 add.bin > cut.bin
expect_error 1 'cut.bin: 100 bytes, the header says' vta run cut.bin
finish
