# SPDX-License-Identifier: Apache-2.0
"""A quantised network as text of the graph: layers of all kinds between numbers of one type.

    network.py u8|i8|i16

Convolutions, of all channels and of one each, with weights of 8 and of 4 bits, strides and borders; sums, products,
pools, a table, dense layers and a softmax. Not a script of its own: misra.sh and warnings.sh make packages of it.
"""
import random
import sys

dt, rng = sys.argv[1], random.Random(3)
wide, count = dt in ("i16", "u16"), [0]


def line(text):
    count[0] += 1
    print(f"  %v{count[0]} = {text}")
    return f"%v{count[0]}"


def scalar(kind, value):
    return line(f"constant {kind}[] splat {value}")


def dense(kind, shape, low, high):
    n = 1
    for d in shape:
        n *= d
    some = ", ".join(str(rng.randint(low, high)) for _ in range(n))
    return line(f"constant {kind}[{', '.join(map(str, shape))}] dense [{some}]")


def coded(x, scale, zero=3):
    return line(f"qnn.quantize({x}, {scalar('f32', scale)}, {scalar(dt, 0 if dt == 'i16' else zero)})")


def number(x, scale, zero=3):
    return line(f"qnn.dequantize({x}, {scalar('f32', scale)}, {scalar(dt, 0 if dt == 'i16' else zero)})")


def between(x, scale, zero=3):
    return number(coded(x, scale, zero), scale, zero)


def weights(shape, most, scale):
    return line(f"qnn.dequantize({dense('i8', shape, -most - 1, most)}, {scalar('f32', scale)})")


def conv(x, outs, ins, side, data, more, most=127, groups=1):
    w = weights((outs, ins // groups, side, side), most, 0.004)
    c = line(f"nn.conv2d({x}, {w}) {{groups = {groups}, {more}}}")
    bias = line(f"qnn.dequantize({dense('i32', (outs, 1, 1), -900, 900)}, {scalar('f32', data * 0.004)})")
    return line(f"add({c}, {bias})")


print("func @main(%x: f32[1, 2, 14, 12]) {")
x = between("%x", 0.05)
a = between(line(f"nn.relu({conv(x, 8, 2, 3, 0.05, 'pads = [1, 1, 1, 1]')})"), 0.06)
b = between(conv(a, 8, 8, 3, 0.06, "pads = [1, 1, 1, 1]", groups=8), 0.07)
c = between(conv(b, 8, 8, 1, 0.07, "strides = [1, 1]"), 0.08)
d = between(line(f"add({a}, {c})"), 0.09)
e = between(conv(d, 6, 8, 3, 0.09, "pads = [0, 1, 1, 0], strides = [2, 2]", 7), 0.1)
f = between(conv(e, 6, 6, 3, 0.1, "pads = [1, 1, 1, 1]", 7, 6), 0.11)
m = between(line(f"multiply({e}, {f})"), 0.12)
p = between(line(f"nn.avg_pool2d({m}) {{pool_size = [3, 2], strides = [1, 2]}}"), 0.1)
h = line(f"nn.max_pool2d({p}) {{pool_size = [2, 2]}}")
j = h if wide else between(line(f"sigmoid({h})"), 0.004)
k = between(line(f"mean({j}) {{axes = [2, 3], keepdims = 1}}"), 0.005)
flat = line(f"reshape({k}, {line('constant i64[2] dense [1, 6]')})")
y = between(line(f"nn.matmul({flat}, {weights((6, 16), 127, 0.003)})"), 0.02)
z = between(line(f"nn.matmul({y}, {weights((16, 10), 7, 0.02)})"), 0.03)
s = line(f"nn.softmax({z}) {{axis = 1}}")
print(f"  return {s if wide else coded(s, 0.004)}, {z}\n}}")
