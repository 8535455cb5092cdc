#!/usr/bin/env bash
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
expect_error 2 "unknown loop pass 'EarlyRewrit'" opt add.te --lower vta --disable-pass EarlyRewrit
expect_error 2 'is not among those' opt add.te --lower vta --disable-pass hoist
expect_error 2 'no number from 0 to 62' opt add.te --lower vta --debug-flag 63
six_operators > graph.txt
expect_error 2 'are for passes on loops' opt graph.txt --disable-pass fuse
finish
