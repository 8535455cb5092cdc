# SPDX-License-Identifier: Apache-2.0
"""Random quantised networks of 3 to 12 layers on the simulated VTA accelerator, bit for bit against the interpreter.

    vta_networks.py [--lathe build/lathe] [--count 200] [--first 0] [--config NAME]... [--keep DIR] [--batch 20]

Each network is graph text with the quantised operators in rounding half_up: convolutions of all kernels and strides,
transposed ones, groups of any size, pools, sums, limits, upsampling, views and products, in any channel counts, some
layers with several readers. `lathe vta model --offload vta` partitions, packs, lowers and runs it; what VTA does not
take the interpreter runs. At least one region must be there. The count of layers that ran on VTA is printed, and it
must not be small: a partition that gives up would otherwise pass.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

CONFIGS = [
    "1x16_i8w8a32_15_15_18_17",  # the default device
    "2x16_i8w8a32_15_15_18_17",  # two images in a tile
    "4x8_i8w8a32_15_16_16_18",  # blocks of 8
    "1x32_i8w8a32_15_15_18_17",  # blocks of 32
    "1x16_i8w4a32_15_15_17_17",  # weights of 4 bits
]


class Network:
    def __init__(self, seed, weight_bits):
        self.r = random.Random(seed)
        self.bits = weight_bits
        self.lines = []
        self.n = 0
        self.images = []  # (name, shape) of values of rank 4 that a layer may read
        self.scales = {}

    def name(self, base):
        self.n += 1
        return f"%{base}{self.n}"

    def emit(self, text, base):
        v = self.name(base)
        self.lines.append(f"  {v} = {text}")
        return v

    def scale(self, exponent):
        if exponent not in self.scales:
            self.scales[exponent] = self.emit(f"constant f32[] dense [{2.0 ** exponent!r}]", "s")
        return self.scales[exponent]

    def numbers(self, dtype, shape, low, high):
        count = 1
        for d in shape:
            count *= d
        values = ", ".join(str(self.r.randint(low, high)) for _ in range(count))
        dims = ", ".join(map(str, shape))
        return self.emit(f"constant {dtype}[{dims}] dense [{values}]", "k")

    def weights(self, shape):
        most = 2 ** (self.bits - 1)
        return self.numbers("i8", shape, -most, most - 1)

    def limits(self, v):
        """Sometimes a ReLU or a clip behind it."""
        kind = self.r.random()
        if kind < 0.4:
            return self.emit(f"nn.relu({v})", "r")
        if kind < 0.5:
            low = self.emit(f"constant i8[] dense [{self.r.randint(-100, 0)}]", "lo")
            high = self.emit(f"constant i8[] dense [{self.r.randint(1, 100)}]", "hi")
            return self.emit(f"clip({v}, {low}, {high})", "c")
        return v

    def requantize(self, v, terms):
        """To 8 bits: a shift that keeps sums of so many products in range, or one off on either side."""
        shift = max(0, (terms * 40 * 2 ** (self.bits - 2)).bit_length() - 7 + self.r.randint(-2, 2))
        if self.r.random() < 0.05:
            shift = self.r.choice([-2, 0, 17])
        q = self.emit(
            f'qnn.requantize({v}, {self.scale(-shift)}, {self.scale(0)}) {{rounding = "half_up", out_dtype = i8}}', "q")
        return q

    def bias(self, channels, shape):
        if self.r.random() < 0.1:
            dims = ", ".join(map(str, shape))
            return self.emit(f"constant i32[{dims}] splat {self.r.randint(-500, 500)}", "b")
        return self.numbers("i32", shape, -2000, 2000)

    def conv(self, x, shape):
        n, c, h, w = shape
        groups = 1
        out = self.r.choice([1, 3, 8, 10, 16, 20, 24, 32, 40, 48])
        if self.r.random() < 0.25:
            groups, out = self.groups(c)
        kh = self.r.choice([k for k in (1, 1, 2, 3, 3, 3, 4, 5, 7) if k <= h + 2])
        kw = kh if self.r.random() < 0.8 else self.r.choice([k for k in (1, 2, 3, 5) if k <= w + 2])
        pads = [self.r.randint(0, kh // 2), self.r.randint(0, kw // 2), self.r.randint(0, kh // 2),
                self.r.randint(0, kw // 2)]
        if self.r.random() < 0.6:
            pads = [kh // 2, kw // 2, kh // 2, kw // 2]
        stride = [self.r.choice([1, 1, 1, 2, 2, 3]) for _ in range(2)]
        if self.r.random() < 0.8:
            stride[1] = stride[0]
        oh, ow = (h + pads[0] + pads[2] - kh) // stride[0] + 1, (w + pads[1] + pads[3] - kw) // stride[1] + 1
        if h + pads[0] + pads[2] < kh or w + pads[1] + pads[3] < kw or oh < 1 or ow < 1:
            return None
        k = self.weights([out, c // groups, kh, kw])
        v = self.emit(f"qnn.conv2d({x}, {k}) {{strides = {stride}, pads = {pads}, groups = {groups}}}", "v")
        return self.epilogue(v, out, c // groups * kh * kw), (n, out, oh, ow)

    def groups(self, c):
        """Groups of c channels, and how many channels they give: often as many groups as channels."""
        divisors = [g for g in range(1, c + 1) if c % g == 0]
        groups = self.r.choice([c, self.r.choice(divisors)])
        return groups, groups * self.r.choice([1, 1, 1, 2, c // groups])

    def epilogue(self, v, out, terms):
        if self.r.random() < 0.7:
            v = self.emit(f"add({v}, {self.bias(out, [out, 1, 1])})", "a")
        if self.r.random() < 0.2:
            v = self.emit(f"nn.relu({v})", "r")
        return self.limits(self.requantize(v, terms))

    def conv_transpose(self, x, shape):
        n, c, h, w = shape
        groups, out = (1, self.r.choice([1, 3, 8, 16, 20, 32])) if self.r.random() < 0.7 else self.groups(c)
        kernel = [self.r.choice([2, 3, 3, 4, 4, 5]) for _ in range(2)]
        stride = [self.r.choice([1, 2, 2, 3]) for _ in range(2)]
        pads = [self.r.randint(0, kernel[i % 2] - 1) for i in range(4)]
        more = [self.r.randint(0, s - 1) for s in stride]
        oh, ow = ((size - 1) * stride[i] - pads[i] - pads[i + 2] + kernel[i] + more[i]
                  for i, size in enumerate((h, w)))
        if h * w > 100 or oh < 1 or ow < 1:
            return None
        k = self.weights([c, out // groups, *kernel])
        v = self.emit(f"qnn.conv2d_transpose({x}, {k}) {{strides = {stride}, pads = {pads}, groups = {groups}, "
                      f"output_padding = {more}}}", "v")
        return self.epilogue(v, out, max(1, c // groups * kernel[0] * kernel[1] // (stride[0] * stride[1]))), \
            (n, out, oh, ow)

    def concat(self, x, shape):
        """With one to three others of its size, or itself: whole blocks of channels stay on the device."""
        near = [(v, s) for v, s in self.images if s[:1] + s[2:] == shape[:1] + shape[2:]]
        parts = [(x, shape)] + [self.r.choice(near) for _ in range(self.r.randint(1, 3))]
        channels = sum(s[1] for _, s in parts)
        if channels > 96:
            return None
        self.r.shuffle(parts)
        v = self.emit(f"concatenate({', '.join(v for v, _ in parts)}) {{axis = 1}}", "j")
        return v, (shape[0], channels) + tuple(shape[2:])

    def add(self, x, shape):
        others = [v for v, s in self.images if s == shape]
        other = self.r.choice(others)
        a, b, y = (self.scale(self.r.randint(-4, 0)) for _ in range(3))
        v = self.emit(f'qnn.add({x}, {a}, {other}, {b}, {y}) {{rounding = "half_up"}}', "t")
        return self.limits(v), shape

    def windows(self, size, kernel, stride, pad, ceil):
        """How many a pool has; with ceil the last one may reach beyond the padding, and starts in front of it."""
        n = -(-(size + 2 * pad - kernel) // stride) + 1 if ceil else (size + 2 * pad - kernel) // stride + 1
        return n - (ceil and (n - 1) * stride >= size + pad)

    def pool(self, x, shape):
        n, c, h, w = shape
        if self.r.random() < 0.3 and (h * w <= 200 or self.r.random() < 0.3):
            a, y = self.scale(self.r.randint(-3, 0)), self.scale(self.r.randint(-3, 0))
            return self.emit(f'qnn.global_avg_pool2d({x}, {a}, {y}) {{rounding = "half_up"}}', "g"), (n, c, 1, 1)
        k = self.r.choice([k for k in (2, 2, 3) if k <= min(h, w)] or [1])
        stride = self.r.choice([1, 2, k])
        pad = self.r.choice([0, 0, k // 2])
        relu = self.emit(f"nn.relu({x})", "r") if pad else x
        ceil = int(self.r.random() < 0.2)
        oh, ow = (self.windows(size, k, stride, pad, ceil) for size in (h, w))
        window = f"pool_size = [{k}, {k}], strides = [{stride}, {stride}], ceil_mode = {ceil}"
        if self.r.random() < 0.5:
            return self.emit(f"nn.max_pool2d({relu}) {{{window}, pads = {[pad] * 4}}}", "p"), (n, c, oh, ow)
        a, y = self.scale(self.r.randint(-3, 0)), self.scale(self.r.randint(-3, 0))
        include = f", pads = {[pad] * 4}, count_include_pad = {int(self.r.random() < 0.8)}" if pad or ceil else ""
        return self.emit(f'qnn.avg_pool2d({relu}, {a}, {y}) {{{window}{include}, rounding = "half_up"}}', "p"), \
            (n, c, oh, ow)

    def upsample(self, x, shape):
        n, c, h, w = shape
        up = [self.r.choice([1, 2, 2, 3]), self.r.choice([1, 2, 2])]
        sizes = self.emit(f"constant i64[4] dense [{n}, {c}, {h * up[0]}, {w * up[1]}]", "k")
        how = 'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
        v = self.emit(f"resize({x}, _, _, {sizes}) {{{how}}}", "u")
        return v, (n, c, h * up[0], w * up[1])

    def tail(self, x, shape):
        """A product of the channels, behind a pool of all of the image."""
        n, c, h, w = shape
        if h * w > 1:
            a, y = self.scale(self.r.randint(-3, 0)), self.scale(self.r.randint(-3, 0))
            x = self.emit(f'qnn.global_avg_pool2d({x}, {a}, {y}) {{rounding = "half_up"}}', "g")
        to = self.emit(f"constant i64[2] dense [{n}, {c}]", "k")
        x = self.emit(f"reshape({x}, {to})", "f")
        out = self.r.choice([2, 10, 16, 33])
        k = self.weights([c, out]) if self.r.random() < 0.5 else None
        if k is None:
            k = self.weights([out, c])
            v = self.emit(f"qnn.matmul({x}, {k}) {{transpose_b = 1}}", "m")
        else:
            v = self.emit(f"qnn.matmul({x}, {k})", "m")
        if self.r.random() < 0.7:
            v = self.emit(f"add({v}, {self.bias(out, [out])})", "a")
        return self.requantize(v, c)

    def make(self):
        r = self.r
        shape = (r.choice([1, 1, 1, 2, 3]), r.choice([1, 3, 4, 16, 20, 32]), r.randint(4, 20), r.randint(4, 20))
        head = "func @main(%x: i8[{}, {}, {}, {}]) {{".format(*shape)
        layers = r.randint(3, 12)
        v = "%x"
        self.images.append((v, shape))
        while layers > 0:
            kinds = [self.conv] * 5 + [self.pool, self.pool]
            if sum(s == shape for _, s in self.images) > 0:
                kinds += [self.add] * 2 + [self.concat] * 2
            if shape[2] * shape[3] <= 64:
                kinds += [self.upsample, self.conv_transpose]
            made = r.choice(kinds)(v, shape)
            if made is None:
                continue
            v, shape = made
            self.images.append((v, shape))
            layers -= 1
        results = [v]
        if r.random() < 0.4:
            results = [self.tail(v, shape)]
        if r.random() < 0.2:
            other = r.choice(self.images[1:])[0]
            results += [other] if other not in results else []
        return "\n".join([head] + self.lines + [f"  return {', '.join(results)}", "}"]) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", default="build/lathe")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--config", action="append")
    p.add_argument("--batch", type=int, default=20)
    p.add_argument("--keep")
    a = p.parse_args()
    folder = a.keep or tempfile.mkdtemp(prefix="lathe_vta_")
    os.makedirs(folder, exist_ok=True)
    passed = failed = regions = 0
    for config in a.config or CONFIGS:
        bits = int(re.search(r"w(\d+)a", config).group(1))
        files = []
        for seed in range(a.first, a.first + a.count):
            path = os.path.join(folder, f"{config}_{seed}.txt")
            with open(path, "w", encoding="ascii") as f:
                f.write(Network(seed, bits).make())
            files.append(path)
        for i in range(0, len(files), a.batch):
            batch = files[i:i + a.batch]
            run = subprocess.run([a.lathe, "vta", "model", *batch, "--offload", "vta", "--vta-config", config],
                                 capture_output=True, text=True, timeout=1200, check=False)
            good = re.findall(r"^(\S+): (\d+) regions? on VTA, all outputs equal", run.stdout, re.M)
            regions += sum(int(n) for _, n in good)
            passed += sum(int(n) > 0 for _, n in good)
            missing = sorted(set(batch) - {f for f, n in good if int(n) > 0})
            failed += len(missing)
            for f in missing:
                print(f"FAILED {f} on {config}")
            if missing or run.returncode != 0:
                print(run.stderr[-4000:])
                failed += not missing
    print(f"{regions} regions; {passed} passed, {failed} failed")
    if not a.keep and not failed:
        for f in os.listdir(folder):
            os.unlink(os.path.join(folder, f))
        os.rmdir(folder)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
