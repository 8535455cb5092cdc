#!/usr/bin/env bash
# Only in `make test-long`.
# SPDX-License-Identifier: Apache-2.0
# Sums of products of bytes that have 16 bits on the way, written by hand for numbers that do not fit there: the C text
# has an instruction for them only where it does the same.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

# computation FORM TYPE LANES: what saturates, and what wraps
computation() {
    python3 - "$@" << 'END'
import sys
form, data, lanes = sys.argv[1:]
low, high = (0, 255) if data == "uint8" else (-128, 127)


def product(a, w, k):
    x, by = f"cast(int32, ({data}*){a}[i, {k}])", f"cast(int32, (int8*){w}[j, {k}])"
    return f"(({x} - ({by} >> 7))*{by})" if form.startswith("signed") else f"({x}*{by})"


def wrapped(x):
    return f"cast(int32, cast(int16, {x}))"


def pair(a, w, k):
    two = f"({product(a, w, k)} + {product(a, w, k + 1)})"
    return f"max(min({two}, 32767), -32768)" if form.startswith("saturated") else two


total = "(int32*)D[i, j]"
for k in (0, 2):
    one, other = pair("A", "V", k), pair("B", "W", k)
    terms = {"fours": [wrapped(f"({one} + {other})")], "runs": [one, other], "twos": [one],
             "wrapped_twos": [wrapped(one)]}
    for term in terms[form.split("_", 1)[1]]:
        total = f"({total} + {term})"
for name in "ABVW":
    least, most, kind = (low, high, data) if name in "AB" else (-128, 127, "int8")
    shape, axes = ("4, 4", "i: 4, k: 4") if name in "AB" else (f"{lanes}, 4", f"i: {lanes}, k: 4")
    print(f"placeholder {name}_: float32[{shape}]")
    print(f"compute {name}: {kind}[{axes}] = "
          f"cast({kind}, min(max(((float32*){name}_[i, k]*900.0), {least}.0), {most}.0))")
print(f"placeholder D: int32[4, {lanes}]")
print(f"compute C: int32[i: 4, j: {lanes}] = {total}\nreturn C\n--- schedule\nvectorize C.j")
END
}

# hand FORM TYPE HELPER: "" is none
hand() {
    while read -r target lanes compiler; do
        local emulator=()
        [ "$target" != aarch64 ] || emulator=(--emulator qemu-aarch64)
        rm -rf plain there text
        computation "$1" "$2" "$lanes" > hand.te
        expect 0 '' compile hand.te --target "$target" -o text
        [ -z "$3" ] || check "$1 of $2 have $3 for $target" grep -q "i32x${lanes}_$3(" text/src/ops.c
        command -v "${compiler%% *}" > /dev/null || continue
        [ "$target" = generic ] || [ "$target" = aarch64 ] || [ "$(uname -m)" = x86_64 ] || continue
        [ "$target" != aarch64 ] || command -v qemu-aarch64 > /dev/null || continue
        expect 0 '^C: ' run hand.te --interpret --seed 5 --output-dir plain
        CC="$compiler" "$lathe" run hand.te --seed 5 --target "$target" --output-dir there "${emulator[@]}" \
            > said 2>&1 || cat said
        check "$1 of $2 for $target by $compiler" cmp plain/C.npy there/C.npy
    done << 'END'
generic 8 cc
x86-64-v2 4 cc
x86-64-v3 8 cc
x86-64-v3 8 clang-19
aarch64 4 aarch64-linux-gnu-gcc -static
END
}
hand saturated_fours uint8 steps_u8
hand saturated_runs uint8 ''
hand saturated_runs int8 ''
hand saturated_twos uint8 pairs_u8
hand saturated_twos int8 ''
hand signed_fours int8 steps_i8
hand signed_runs int8 ''
hand wide_wrapped_twos uint8 ''
hand wide_wrapped_twos int8 pairs_i8
finish
