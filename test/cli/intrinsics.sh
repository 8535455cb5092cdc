#!/usr/bin/env bash
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
# Intrinsics whose code is a call: the same numbers as the computation without a schedule, on this machine and, where
# clang-19 and qemu are, on RISC-V's vectors of several lengths. Build configurations of loop passes.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
cat > product.te <<'END'
placeholder A: int8[5, 24]
placeholder B: int8[24, 41]
compute C: int32[i: 5, j: 41] reduce[k: 24] sum = (cast(int32, (int8*)A[i, k])*cast(int32, (int8*)B[k, j]))
return C
END
printf 'reorder C: i k j\ntensorize C.j rvv_vwmacc\n' > product.sched
expect 0 '^C: ' run product.te --interpret --seed 3 --output-dir plain
expect 0 '^C: ' run product.te --schedule product.sched --seed 3 --output-dir here
check "this machine's loop" cmp plain/C.npy here/C.npy
if command -v clang-19 > /dev/null && command -v qemu-riscv64 > /dev/null && [ -d /usr/riscv64-linux-gnu ]; then
    for bits in 128 256 1024; do
        export CC="clang-19 --target=riscv64-linux-gnu"
        expect 0 '^C: ' run product.te --schedule product.sched --seed 3 --output-dir there --target rv64gcv \
            --emulator "qemu-riscv64 -cpu rv64,v=true,vlen=$bits -L /usr/riscv64-linux-gnu"
        unset CC
        check "vectors of $bits bits" cmp plain/C.npy there/C.npy
    done
fi

# Four neighboring bytes are looked at as one word where they are in memory, wherever they begin.
cat > memory.te <<'END'
placeholder X: float32[64]
placeholder P: float32[16]
compute x: uint8[i: 64] = cast(uint8, max(((float32*)X[i] - 1.0), 0.0))
compute p: int64[i: 16] = cast(int64, min(max(((float32*)P[i]*8.0), 0.0), 40.0))
compute y: bool[i: 16] = (((((uint8*)x[select(((int64*)p[i] < 8), i, 17)] | (uint8*)x[(select(((int64*)p[i] < 8), i, 17) + 1)]) | (uint8*)x[(select(((int64*)p[i] < 8), i, 17) + 2)]) | (uint8*)x[(select(((int64*)p[i] < 8), i, 17) + 3)]) != 0)
return y
END
cat > registers.te <<'END'
placeholder X: float32[4]
compute t: uint8[i: 4] = cast(uint8, max((float32*)X[i], 0.0))
compute y: bool[i: 1] = (((((uint8*)t[0] | (uint8*)t[1]) | (uint8*)t[2]) | (uint8*)t[3]) != 0)
return y
--- schedule
set_scope t local.reg
unroll t.i
END
for text in memory registers; do
    for target in generic x86-64-v3; do
        [ $target = generic ] || [ "$(uname -m)" = x86_64 ] || continue
        expect 0 '' run $text.te --interpret --seed 3 --output-dir plain
        expect 0 '' run $text.te --seed 3 --output-dir there --target $target
        check "bytes in $text for $target" cmp plain/y.npy there/y.npy
    done
done

# Products of bytes, and of 16 bits, whose sums wrap: every instruction that the C text may choose, on machines that have it.
dot() { # intrinsic, type of a, lanes, target, its compilers, emulator or "", processor
    local granule=4 type=int8 most=90.0 right=1
    [ "$2" = int16 ] && granule=2 type=int16 most=30000.0 right=0
    cat > dot.te <<END
placeholder X: float32[5, 24]
placeholder Y: float32[3, 6, $3, $granule]
compute A: $2[i: 5, k: 24] = cast($2, (((float32*)X[i, k]*$most) + 60.0))
compute W: $type[o: 3, q: 6, j: $3, k: $granule] = \
(cast($type, ((float32*)Y[o, q, j, k]*$most)) >> cast($type, $right))
compute C: int32[i: 5, o: 3, j: $3] reduce[q: 6, k: $granule] sum = \
(cast(int32, ($2*)A[i, ((q*$granule) + k)])*cast(int32, ($type*)W[o, q, j, k]))
return C
--- schedule
cache_write C local.reg -> acc
split C.i 3 -> io ii
reorder C: o io ii j
unroll C.ii
vectorize C.j
compute_at acc at C.io
reorder acc: o q i j k
unroll acc.i
tensorize acc.j $1
END
    expect 0 '^C: ' run dot.te --interpret --seed 3 --output-dir plain
    rm -rf text
    expect 0 '' compile dot.te --target "$4" -o text
    check "$1 has its helper in the text" grep -Eq "i32x$3_(dot|pairs)_[ui](8|16)\\(acc_0" text/src/ops.c
    while read -r compiler; do
        command -v "${compiler%% *}" > /dev/null || continue
        [ -z "$6" ] || command -v "${6%% *}" > /dev/null || continue
        [ -z "$7" ] || grep -qw "$7" /proc/cpuinfo || continue
        rm -rf there
        CC="$compiler${6:+ -static}" "$lathe" run dot.te --seed 3 --output-dir there --target "$4" \
            ${6:+--emulator "$6"} > said 2>&1 || cat said
        check "$1 for $4 by $compiler" cmp plain/C.npy there/C.npy
    done <<< "$5"
}
# The same of two runs of data that lie anywhere, whose sums are added in 16 bits.
steps() { # lanes, target, its compilers, processor, type of the data
    local x="(cast(int32, (uint8*)A[i, (cast(int64, (int32*)P[o, s, R]) + k)])*cast(int32, (int8*)W[o, s, R, j, k]))"
    local w="cast(int32, (int8*)W[o, s, R, j, k])" name=dot_u8s8_steps from=130 bound=32
    if [ "$5" = int8 ]; then
        x="((cast(int32, (int8*)A[i, (cast(int64, (int32*)P[o, s, R]) + k)]) - ($w >> 7))*$w)"
        name=dot_s8s8_steps from=2 bound=64
    fi
    cat > dot.te <<END
placeholder X: float32[5, 40]
placeholder Y: float32[3, 6, 2, $1, 4]
placeholder Z: float32[3, 6, 2]
compute A: $5[i: 5, k: 40] = cast($5, (((float32*)X[i, k]*120.0) + $from.0))
compute W: int8[o: 3, s: 6, h: 2, j: $1, k: 4] = cast(int8, min(max(((float32*)Y[o, s, h, j, k]*80.0), -$bound.0), $bound.0))
compute P: int32[o: 3, s: 6, h: 2] = (cast(int32, min(max(((float32*)Z[o, s, h]*12.0), -17.0), 17.0)) + 18)
compute C: int32[i: 5, o: 3, j: $1] reduce[s: 6, k: 4] sum = \
(${x//R/0} + ${x//R/1})
return C
--- schedule
cache_write C local.reg -> acc
split C.i 3 -> io ii
reorder C: o io ii j
unroll C.ii
vectorize C.j
compute_at acc at C.io
reorder acc: o s i j k
unroll acc.i
tensorize acc.j $name
END
    expect 0 '^C: ' run dot.te --interpret --seed 3 --output-dir plain
    rm -rf text
    expect 0 '' compile dot.te --target "$2" -o text
    check "$name has its helper in the text" grep -q "i32x$1_steps_[ui]8(acc_0" text/src/ops.c
    while read -r compiler; do
        command -v "${compiler%% *}" > /dev/null || continue
        grep -qw "$4" /proc/cpuinfo || continue
        rm -rf there
        CC="$compiler" "$lathe" run dot.te --seed 3 --output-dir there --target "$2" > said 2>&1 || cat said
        check "$name for $2 by $compiler" cmp plain/C.npy there/C.npy
    done <<< "$3"
}
here=$'cc\nclang-19'
arm=$'aarch64-linux-gnu-gcc\nclang-19 --target=aarch64-linux-gnu'
if [ "$(uname -m)" = x86_64 ]; then
    dot dot_u8s8 uint8 16 x86-64-v4-vnni "$here" "" avx512_vnni
    dot dot_u8s8 uint8 16 x86-64-v4 "$here" "" avx512bw
    dot dot_u8s8_pairs uint8 16 x86-64-v4 "$here" "" avx512bw
    dot dot_u8s8 uint8 8 x86-64-v3-vnni "$here" "" avx_vnni
    dot dot_u8s8 uint8 8 x86-64-v3 "$here" "" avx2
    dot dot_u8s8_pairs uint8 8 x86-64-v3 "$here" "" avx2
    dot dot_u8s8 uint8 4 x86-64-v2 "$here" "" sse4_2
    dot dot_s8s8 int8 16 x86-64-v4-vnni "$here" "" avx512_vnni
    dot dot_s8s8 int8 16 x86-64-v4 "$here" "" avx512bw
    dot dot_s8s8 int8 8 x86-64-v3-vnni "$here" "" avx_vnni
    dot dot_s8s8 int8 8 x86-64-v3 "$here" "" avx2
    dot dot_s8s8 int8 4 x86-64-v2 "$here" "" sse4_2
    dot dot_u8s8_pairs uint8 8 x86-64-v2 cc "" ""
    dot dot_s16s16 int16 16 x86-64-v4-vnni "$here" "" avx512_vnni
    dot dot_s16s16 int16 16 x86-64-v4 "$here" "" avx512bw
    dot dot_s16s16 int16 8 x86-64-v3-vnni "$here" "" avx_vnni
    dot dot_s16s16 int16 8 x86-64-v3 "$here" "" avx2
    dot dot_s16s16 int16 4 x86-64-v2 "$here" "" sse4_2
    dot dot_s16s16 int16 8 x86-64-v2 cc "" ""
    for data in uint8 int8; do
        steps 16 x86-64-v4 "$here" avx512bw "$data"
        steps 8 x86-64-v3 "$here" avx2 "$data"
        steps 4 x86-64-v2 "$here" ssse3 "$data"
    done
fi
dot dot_u8s8 uint8 4 aarch64 "$arm" "qemu-aarch64 -cpu cortex-a53" ""
dot dot_s8s8 int8 4 aarch64 "$arm" "qemu-aarch64 -cpu cortex-a53" ""
dot dot_s8s8_pairs int8 4 aarch64 "$arm" "qemu-aarch64 -cpu cortex-a53" ""
dot dot_s16s16 int16 4 aarch64 "$arm" qemu-aarch64 ""
dot dot_s8s8 int8 4 aarch64-dotprod "$arm" qemu-aarch64 ""
dot dot_u8s8 uint8 4 aarch64-i8mm "$arm" "qemu-aarch64 -cpu max" ""
riscv="clang-19 --target=riscv64-linux-gnu" vector="qemu-riscv64 -cpu rv64,v=true,elen=64,vext_spec=v1.0,vlen"
dot dot_s16s16 int16 4 rv64gcv "$riscv" "$vector=128" ""
dot dot_s16s16 int16 8 rv64gcv_zvl256b "$riscv" "$vector=256" ""

# Tiles of two rows by two columns, eight products each: rows in pairs and a single one, where their numbers lie side by
# side, in pieces of two rows, or apart.
tile() { # intrinsic, type of a, rows of a, what A is of X, index of the data, what the name says
    cat > tile.te <<END
placeholder X: float32[7, 48]
placeholder Y: float32[3, 3, 8, 8]
compute A: $2[$3] = cast($2, (((float32*)X[$4]*90.0) + 60.0))
compute W: int8[o: 3, q: 3, j: 8, k: 8] = cast(int8, ((float32*)Y[o, q, j, k]*90.0))
compute C: int32[i: 7, o: 3, j: 8] reduce[q: 3, h: 2, k: 4] sum = \
(cast(int32, ($2*)A[$5])*cast(int32, (int8*)W[o, q, j, ((h*4) + k)]))
return C
--- schedule
cache_write C local.reg -> acc
split C.i 4 -> io ii
reorder C: o io ii j
split C.j 4 -> jm jv
unroll C.ii
unroll C.jm
vectorize C.jv
compute_at acc at C.io
split acc.i 2 -> im it
split acc.j 2 -> jm jt
reorder acc: o q im jm it jt h k
unroll acc.im
unroll acc.jm
tensorize acc.it $1
storage_tile acc.i acc.j 2 2
END
    expect 0 '^C: ' run tile.te --interpret --seed 3 --output-dir plain
    rm -rf text
    expect 0 '' compile tile.te --target aarch64-i8mm -o text
    check "$1 has its helper in the text" grep -Eq "i32x4_tile_[ui]8\(acc_0" text/src/ops.c
    check "its sums are registers" grep -q 'i32x4_row1(acc_4, acc_5)' text/src/ops.c
    while read -r compiler target emulator; do
        [ -z "$emulator" ] || compiler="${compiler/--/ --}"
        command -v "${compiler%% *}" > /dev/null || continue
        [ -z "$emulator" ] || command -v "$emulator" > /dev/null || continue
        CC="$compiler${emulator:+ -static}" "$lathe" run tile.te --seed 3 --output-dir there --target "$target" \
            ${emulator:+--emulator "$emulator -cpu max"} > said 2>&1 || cat said
        check "$1, $6, by $compiler" cmp plain/C.npy there/C.npy
    done << END
cc x86-64-v2
aarch64-linux-gnu-gcc aarch64-i8mm qemu-aarch64
clang-19--target=aarch64-linux-gnu aarch64-i8mm qemu-aarch64
END
}
rows='i: 7, k: 48' at='i, k'
tile dot_tile_u8s8 uint8 "$rows" "$at" 'i, (((q*8) + (h*4)) + k)' 'rows apart'
tile dot_tile_s8s8 int8 "$rows" "$at" 'i, (((q*16) + (h*8)) + k)' 'four pieces'
tile dot_tile_u8s8 uint8 'b: 6, i: 7, k: 4' 'i, ((b*4) + k)' '((q*2) + h), i, k' 'pieces of two rows'
tile dot_tile_s8s8 int8 'q: 3, i: 7, k: 8' 'i, ((q*8) + k)' 'q, i, ((h*4) + k)' 'side by side'
riscv="clang-19 --target=riscv64-linux-gnu"
dot dot_u8s8 uint8 4 rv64gcv "$riscv" "qemu-riscv64 -cpu rv64,v=true,vlen=128" ""
dot dot_u8s8 uint8 8 rv64gcv_zvl256b "$riscv" "qemu-riscv64 -cpu rv64,v=true,vlen=256" ""
dot dot_s8s8 int8 8 rv64gcv_zvl256b "$riscv" "qemu-riscv64 -cpu rv64,v=true,vlen=256" ""
dot dot_s8s8 int8 16 rv64gcv_zvl512b "$riscv" "qemu-riscv64 -cpu rv64,v=true,vlen=512" ""

# passes that are left out, and flags for the run-time of VTA
cat > add.te <<'END'
placeholder A: int8[4, 1, 16]
compute a: int32[i: 4, b: 1, l: 16] = cast(int32, (int8*)A[i, b, l])
compute C: int8[i: 4, b: 1, l: 16] = cast(int8, (int32*)a[i, b, l])
return C
--- schedule
set_scope a local.acc_buffer
pragma a.i "dma_copy" 1
pragma C.i "dma_copy" 1
END
expect 0 'tir.vta.set_debug_mode.2.' opt add.te --lower vta --debug-flag 2
expect 0 'after SetDebugMode.34.' opt add.te --lower vta --debug-flag 34 --print-after-all
expect_error 2 "unknown pass 'EarlyRewrit' on loops" opt add.te --lower vta --disable-pass EarlyRewrit
expect_error 2 'is not among those' opt add.te --lower vta --disable-pass hoist
expect_error 2 'is not a number from 0 to 62' opt add.te --lower vta --debug-flag 63
six_operators > graph.txt
expect_error 2 'are for passes on loops' opt graph.txt --disable-pass fuse
# Sums of that form whose factors change as they are cast are none of the instructions'.
# narrows WEIGHTS
narrows() {
    printf 'vectorize C.j\n' > "$1.sched"
    python3 - "$1" > "$1.te" << 'PY'
import sys
sum_of, bytes_ = "(int32*)D[i, j]", sys.argv[1] == "bytes"
for k in range(4 if bytes_ else 8):
    code = f"((int32*)B[j] >> {8 * (k % 4) + 4 * (k // 4)})" if k else "(int32*)B[j]"
    by = f"cast(int32, (int8*)B[j, {k}])" if bytes_ else f"({code} & 15)"
    sum_of = f"({sum_of} + (cast(int32, cast(uint8, (int8*)A[i, {k}]))*{by}))"
print("placeholder A: int8[2, 8]")
print("placeholder B: " + ("int8[8, 4]" if bytes_ else "int32[8]"))
print("placeholder D: int32[2, 8]")
print(f"compute C: int32[i: 2, j: 8] = {sum_of}\nreturn C")
PY
    expect 0 '^C: .*: ok' verify "$1.te" --schedule "$1.sched" --target native --against interpreter
}
narrows bytes
narrows nibbles
finish
