#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hard placements: a rectangle of bytes and time, cut into blocks that fill it, as a problem for `lathe opt`.

    placements.py BLOCKS SEED [EFFORT [SPARE]]

The least workspace is CAPACITY by construction, and no layer has a byte to spare but for the blocks that are left out,
the part SPARE of them (default 1/30). Cuts go through one rectangle of the largest, or are a pinwheel of five, which no
order of cuts gives; bytes and time come in 1024 steps, so that blocks are long and thin or short and thick.
"""
import random
import sys

CAPACITY = 1048576
STEP = 1024


def cut(rng, r):
    """Pieces of the rectangle (bytes from, to, time from, to), or itself where it is too small."""
    at, to, t0, t1 = r
    high, wide = (to - at) // STEP, t1 - t0
    if high >= 3 and wide >= 3 and rng.random() < 0.1:
        a, b = sorted(rng.sample(range(1, high), 2))
        s, t = sorted(rng.sample(range(1, wide), 2))
        a, b, s, t = at + a * STEP, at + b * STEP, t0 + s, t0 + t
        return [(at, a, t0, t), (at, b, t, t1), (b, to, s, t1), (a, to, t0, s), (a, b, s, t)]
    if wide >= 2 and (high < 2 or rng.random() < 0.5):
        t = t0 + rng.randrange(1, wide)
        return [(at, to, t0, t), (at, to, t, t1)]
    if high >= 2:
        a = at + STEP * rng.randrange(1, high)
        return [(at, a, t0, t1), (a, to, t0, t1)]
    return [r]


def blocks(count, seed, spare):
    """(first layer, last layer, bytes) of each block, in random order; layers are where a block begins or ends."""
    rng = random.Random(seed)
    pieces = [(0, CAPACITY, 0, CAPACITY // STEP)]
    while len(pieces) < count:
        pieces.sort(key=lambda r: (r[1] - r[0]) * (r[3] - r[2]), reverse=True)
        largest = pieces.pop(rng.randrange(max(1, len(pieces) // 8)))
        pieces += cut(rng, largest)
    rng.shuffle(pieces)
    times = sorted({t for r in pieces for t in r[2:]})
    layer = {t: i for i, t in enumerate(times)}
    kept = [(layer[t0], layer[t1] - 1, to - at) for at, to, t0, t1 in pieces if rng.random() >= spare]
    return len(times) - 1, kept


def problem(layers, pieces, effort):
    """One operator a layer, each waiting for the one before; it writes what begins there and reads what ends."""
    lines = ["workers 1", f"effort {effort}", "value t0 1 input"]
    lines += [f"value b{i} {size} workspace" for i, (_, _, size) in enumerate(pieces)]
    for layer in range(layers):
        lines.append(f"value t{layer + 1} 1 output")
        ends = " ".join(f"b{i}" for i, (a, b, _) in enumerate(pieces) if b == layer and a < b)
        begins = " ".join(f"b{i}" for i, (a, _, _) in enumerate(pieces) if a == layer)
        lines.append(f"op o{layer} reads t{layer} {ends} writes t{layer + 1} {begins}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    words = sys.argv[1:] + ["1", "0.0333"][len(sys.argv) - 3:]
    sys.stdout.write(problem(*blocks(int(words[0]), int(words[1]), float(words[3])), words[2]))
