#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Quantised layers whose extents are 1 or 2 in every combination (channels, pixels, windows, a single weight, weights that
# are all alike) have loops on every processor: what is folded away, no rule asks an intrinsic for.
# Not in `make check`.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3

python3 - << 'END'
import itertools

LOW, HIGH = {"i8": -8, "u8": 131}, {"i8": 127, "u8": 125}


def weights(name, dt, shape, alike):
    count, dims = 1, ", ".join(map(str, shape))
    for n in shape:
        count *= n
    if alike:
        return f"%{name} = constant {dt}[{dims}] splat {HIGH[dt]}"
    numbers = ", ".join(str(LOW[dt] + i % 7) for i in range(count))
    return f"%{name} = constant {dt}[{dims}] dense [{numbers}]"


for data in ("i8", "u8", "i16", "u16"):
    params, body, results = [], [f"%z = constant {data}[] splat 3", "%v = constant u8[] splat 128"], []

    def layer(shape, kernel, dt, alike, made):
        i = len(params)
        params.append(f"%x{i}: {data}[{', '.join(map(str, shape))}]")
        body.append(weights(f"w{i}", dt, kernel, alike))
        zeros = ", %z" if i % 3 else ""
        zeros = ", %z, %v" if dt == "u8" else zeros
        body.append(f"%y{i} = " + made.replace("()", f"(%x{i}, %w{i}{zeros})"))
        results.append(f"%y{i}")

    for dt, alike in itertools.product(("i8", "u8"), (0, 1)):
        for ins, outs, wide, size in itertools.product((1, 2), repeat=4):
            layer((1, ins, 1, wide), (outs, ins, 1, size), dt, alike, f"qnn.conv2d() {{pads = [0, 0, 0, {size - 1}]}}")
            layer((wide, ins), (ins, outs), dt, alike, "qnn.matmul()")
        for size, wide in itertools.product((1, 2), repeat=2):
            layer((1, 2, wide, wide), (2, 1, size, 1), dt, alike,
                  f"qnn.conv2d() {{groups = 2, pads = [0, 0, {size - 1}, 0]}}")
    with open(f"{data}.txt", "w", encoding="ascii") as f:
        f.write(f"func @main({', '.join(params)}) {{\n  " + "\n  ".join(body) + f"\n  return {', '.join(results)}\n}}\n")
END
for target in generic cortex-m cortex-m0plus cortex-m3 cortex-m4 cortex-m33 cortex-m55 rv32imc x86-64-v2 x86-64-v3 \
    x86-64-v4 x86-64-v4-vnni aarch64 aarch64-dotprod aarch64-i8mm rv64gcv_zvl256b; do
    for data in i8 u8 i16 u16; do
        expect 0 '' compile $data.txt --emit tir --integers --target $target
    done
done
finish
