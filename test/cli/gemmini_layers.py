# SPDX-License-Identifier: Apache-2.0
"""Graph text of layers at random that Gemmini takes, each from an input of its own: layers.py SEED COUNT"""
import random
import sys

r = random.Random(int(sys.argv[1]))
params, lines, results = [], [], []


def constant(name, kind, shape, values):
    lines.append(f"  %{name} = constant {kind}[{', '.join(map(str, shape))}] dense [{', '.join(map(str, values))}]")
    return f"%{name}"


def ending(i, sums, outs, shape, products, bias):
    if bias:
        b = constant(f"b{i}", "i32", [outs] + [1] * (len(shape) - 2), [r.randint(-2000, 2000) for _ in range(outs)])
        lines.append(f"  %s{i} = add({sums}, {b}) : i32{shape}")
        sums = f"%s{i}"
    x_scale = constant(f"xs{i}", "f32", [], [round(r.uniform(0.5, 2) / products ** 0.5 / 60, 9)])
    y_scale = constant(f"ys{i}", "f32", [], [round(r.uniform(0.5, 2), 6)])
    lines.append(f"  %q{i} = qnn.requantize({sums}, {x_scale}, {y_scale}) {{out_dtype = i8}} : i8{shape}")
    y = f"%q{i}"
    if r.random() < 0.5:
        lines.append(f"  %r{i} = nn.relu(%q{i}) : i8{shape}")
        y = f"%r{i}"
    return y


def conv(i):
    separate = r.random() < 0.25
    n, ic = r.choice([1, 1, 2]), r.choice([1, 2, 3, 5, 8, 16, 17, 40, 64, 70, 130])
    oc = r.choice([1, 7, 16, 30, 64, 65, 100])
    kh, kw, s, d = r.randint(1, 5), r.randint(1, 7), r.choice([1, 1, 2, 3]), r.choice([1, 1, 1, 2])
    if r.random() < 0.2:
        kh = kw = s = d = 1
    if separate:
        ic = oc = r.choice([2, 16, 24, 65, 80])
        kh, kw = r.choice([(3, 3), (1, 3), (5, 5)])
    p = [r.randint(0, 3) for _ in range(4)] if r.random() < 0.7 else [0] * 4
    h = r.randint(1, 20) + max(0, (kh - 1) * d - p[0] - p[2])
    w = r.choice([r.randint(1, 20), r.randint(16, 40)]) + max(0, (kw - 1) * d - p[1] - p[3])
    oh, ow = (h + p[0] + p[2] - (kh - 1) * d - 1) // s + 1, (w + p[1] + p[3] - (kw - 1) * d - 1) // s + 1
    params.append(f"%x{i}: i8[{n}, {ic}, {h}, {w}]")
    wi = 1 if separate else ic
    weights = constant(f"w{i}", "i8", [oc, wi, kh, kw], [r.randint(-127, 127) for _ in range(oc * wi * kh * kw)])
    shape = f"[{n}, {oc}, {oh}, {ow}]"
    lines.append(f"  %c{i} = qnn.conv2d(%x{i}, {weights}) {{strides = [{s}, {s}], pads = {p}, dilations = [{d}, {d}], "
                 f"groups = {ic if separate else 1}}} : i32{shape}")
    return ending(i, f"%c{i}", oc, [n, oc, oh, ow], wi * kh * kw, r.random() < 0.7)


def dense(i):
    m, k, n, t = r.choice([1, 1, 5, 33]), r.randint(1, 300), r.randint(1, 200), r.randint(0, 1)
    params.append(f"%x{i}: i8[{m}, {k}]")
    weights = constant(f"w{i}", "i8", [n, k] if t else [k, n], [r.randint(-127, 127) for _ in range(k * n)])
    lines.append(f"  %c{i} = qnn.matmul(%x{i}, {weights}) {{transpose_b = {t}}} : i32[{m}, {n}]")
    if r.random() < 0.3:
        return f"%c{i}"
    return ending(i, f"%c{i}", n, [m, n], k, r.random() < 0.7)


def pool(i):
    c, k, s = r.choice([1, 16, 20, 70]), r.choice([2, 3]), r.choice([1, 2, 3])
    h, w = r.randint(3, 40), r.randint(3, 60)
    p = [r.randint(0, k - 1) for _ in range(4)] if r.random() < 0.6 else [0] * 4
    params.append(f"%x{i}: i8[1, {c}, {h}, {w}]")
    x = f"%x{i}"
    if any(p):
        lines.append(f"  %v{i} = nn.relu(%x{i}) : i8[1, {c}, {h}, {w}]")
        x = f"%v{i}"
    oh, ow = (h + p[0] + p[2] - k) // s + 1, (w + p[1] + p[3] - k) // s + 1
    lines.append(f"  %p{i} = nn.max_pool2d({x}) {{pool_size = [{k}, {k}], strides = [{s}, {s}], pads = {p}}} : "
                 f"i8[1, {c}, {oh}, {ow}]")
    return f"%p{i}"


def full_bank(i):
    """Weights up to the last row of a bank. Behind it lie pixels of the other half, which are also put a row higher."""
    params.append(f"%x{i}: i8[1, 8, 40, 50]")
    weights = constant(f"w{i}", "i8", [32, 8, 16, 16], [r.randint(-127, 127) for _ in range(65536)])
    lines.append(f"  %c{i} = qnn.conv2d(%x{i}, {weights}) : i32[1, 32, 25, 35]")
    return ending(i, f"%c{i}", 32, [1, 32, 25, 35], 2048, True)


def add(i):
    """Of equal scales, or of scales whose ratio has small integers; in steps or not."""
    shape = [r.choice([1, 2]), r.choice([1, 3, 16, 64]), r.randint(1, 20), r.randint(1, 20)]
    a, b, y = r.choice([(1, 1), (1, 1), (1, 4), (2, 1), (3, 5)]), r.uniform(0.01, 0.1), r.uniform(0.01, 0.3)
    scales = [constant(f"{n}s{i}", "f32", [], [s]) for n, s in (("a", a[0] * b), ("b", a[1] * b), ("y", y))]
    params.extend(f"%{n}{i}: i8{shape}" for n in "ab")
    lines.append(f"  %t{i} = qnn.add(%a{i}, {scales[0]}, %b{i}, {scales[1]}, {scales[2]}) "
                 f"{{in_steps = {r.randint(0, 1)}}} : i8{shape}")
    if r.random() < 0.5:
        return f"%t{i}"
    lines.append(f"  %u{i} = nn.relu(%t{i}) : i8{shape}")
    return f"%u{i}"


for i in range(int(sys.argv[2])):
    results.append((full_bank if i == 0 and sys.argv[1] == "1" else r.choice([conv, conv, conv, dense, pool, add]))(i))
print(f"func @main({', '.join(params)}) {{")
print("\n".join(lines))
print(f"  return {', '.join(results)}\n}}")
