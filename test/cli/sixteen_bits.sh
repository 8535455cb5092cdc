#!/usr/bin/env bash
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
# Instructions whose sums have 16 bits, by numbers that do not fit there: what the C text does is what the row says
# (tir/intrin_dot.c), on every kind of vectors. A sum of that form that is written by hand stays exact.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

# computation ROW TYPE LANES: with the row, or "" for a sum by hand
computation() {
    python3 - "$@" << 'END'
import sys
row, data, lanes = sys.argv[1:]
low, high = (0, 255) if data == "uint8" else (-128, 127)
steps, signed = row.endswith("_steps"), row == "dot_s8s8_steps"


def product(a, w, q, k):
    x, by = f"cast(int32, ({data}*){a}[{q}, i, {k}])", f"cast(int32, (int8*){w}[{q}, j, {k}])"
    return f"(({x} - ({by} >> 7))*{by})" if signed else f"({x}*{by})"


for name in "ABVW":
    least, most, kind = (low, high, data) if name in "AB" else (-128, 127, "int8")
    rows = 4 if name in "AB" else lanes
    shape, axes = f"2, {rows}, 4", f"q: 2, i: {rows}, k: 4"
    print(f"placeholder {name}_: float32[{shape}]")
    print(f"compute {name}: {kind}[{axes}] = "
          f"cast({kind}, min(max(((float32*){name}_[q, i, k]*900.0), {least}.0), {most}.0))")
if row:
    term = product("A", "V", "q", "k")
    term = f"({term} + {product('B', 'W', 'q', 'k')})" if steps else term
    print(f"compute C: int32[i: 4, j: {lanes}] reduce[q: 2, k: 4] sum = {term}")
else:
    pairs = [f"max(min(({product('A', 'V', 0, k)} + {product('A', 'V', 0, k + 1)}), 32767), -32768)" for k in (0, 2)]
    print(f"placeholder D: int32[4, {lanes}]")
    print(f"compute C: int32[i: 4, j: {lanes}] = (((int32*)D[i, j] + {pairs[0]}) + {pairs[1]})")
print("return A, B, V, W, C\n--- schedule")
print(f"reorder C: i q j k\ntensorize C.j {row}" if row else "vectorize C.j")
END
}

# as_row ROW FOLDER: whether C is what the row makes of the operands there
as_row() {
    "${LATHE_PYTHON:-python3}" - "$@" << 'END'
import sys
import numpy as np
row, folder = sys.argv[1:]
a, b, v, w = (np.moveaxis(np.load(f"{folder}/{n}.npy").astype(np.int64), 0, 1) for n in "ABVW")
c = np.load(f"{folder}/C.npy")


def pairs(x, y):
    by = y[None, :, :]
    each = (x[:, None, :] - (by >> 7 if row == "dot_s8s8_steps" else 0)) * by
    return each.reshape(len(x), len(y), 4, 2).sum(-1)


def wrap(x):
    return x.astype(np.int16).astype(np.int64)


def keep(x):
    return np.clip(x, -32768, 32767) if row.startswith("dot_u8s8") else x


want = wrap(keep(pairs(a, v)) + keep(pairs(b, w))) if row.endswith("_steps") else (
    keep(pairs(a, v)) if row.startswith("dot_u8s8") else wrap(pairs(a, v)))
assert (want != pairs(a, v) + (pairs(b, w) if row.endswith("_steps") else 0)).any()
sys.exit(not (want.sum(-1) == c).all())
END
}

# sums ROW TYPE HELPER
sums() {
    while read -r target lanes compiler; do
        local emulator=()
        [ "$target" != aarch64 ] || emulator=(--emulator qemu-aarch64)
        rm -rf there text
        computation "$1" "$2" "$lanes" > sums.te
        expect 0 '' compile sums.te --target "$target" -o text
        check "$1 has its helper for $target" grep -q "i32x${lanes}_$3(" text/src/ops.c
        command -v "${compiler%% *}" > /dev/null || continue
        [ "$target" = generic ] || [ "$target" = aarch64 ] || [ "$(uname -m)" = x86_64 ] || continue
        [ "$target" != aarch64 ] || command -v qemu-aarch64 > /dev/null || continue
        CC="$compiler" "$lathe" run sums.te --seed 5 --target "$target" --output-dir there "${emulator[@]}" \
            > said 2>&1 || cat said
        check "$1 for $target by $compiler" as_row "$1" there
    done << 'END'
generic 8 cc
x86-64-v2 4 cc
x86-64-v3 8 cc
x86-64-v3 8 clang-19
aarch64 4 aarch64-linux-gnu-gcc -static
END
}
sums dot_u8s8_pairs uint8 pairs_u8
sums dot_s8s8_pairs int8 pairs_i8
sums dot_u8s8_steps uint8 steps_u8
sums dot_s8s8_steps int8 steps_i8

computation '' uint8 8 > hand.te
expect 0 '' compile hand.te --target x86-64-v3 -o hand
check "no instruction for a sum that is written by hand" eval '! grep -Eq "_(dot|pairs|steps)_" hand/src/ops.c'
finish
