#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The polynomials of src/tir/pass/math_powers.c and math_angles.c: weighted minimax fits by exchange of extremes
(Remez), in double precision, printed as the nearest floats with the greatest error in units of the last place (rounding
of the arithmetic apart). For the quotients of tanh and erf, a search for floats follows, in the arithmetic of floats
itself, and the errors include its rounding."""
import math

import numpy as np


def fit(f, weight, low, high, degree, points=20001):
    """Coefficients c of sum c[k] x^k with the least greatest |p(x) - f(x)| weight(x), and that value."""
    n = degree + 1
    k = np.arange(n + 1)
    x = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * k / n))
    grid = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * np.arange(points) / (points - 1)))
    values, weights = f(grid), weight(grid)
    for _ in range(60):
        system = np.column_stack([x**i for i in range(n)] + [(-1.0) ** k / weight(x)])
        c = np.linalg.solve(system, f(x))[:-1]
        error = (sum(c[i] * grid**i for i in range(n)) - values) * weights
        turns = np.append(np.nonzero(np.diff(np.sign(error)))[0] + 1, points)
        peaks, start = [], 0
        for end in turns:
            peaks.append(start + int(np.argmax(np.abs(error[start:end]))))
            start = end
        if len(peaks) < n + 1:
            break
        while len(peaks) > n + 1:
            del peaks[0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1]
        if np.allclose(grid[peaks], x, rtol=0, atol=1e-13):
            break
        x = grid[peaks]
    return c, np.max(np.abs(error))


def show(name, result):
    c, error = result
    print(name, [float(np.float32(v)) for v in c], "error %.3f" % (error * 2**23))


def fit_ratio(f, most, low, high, p, q, points=3001):
    """(a, b) with the least greatest |P(z) / Q(z) / f(x) - 1| / most(x) for z = x^2; P(0) = Q(0) = 1 = f(0)."""
    n = p + q + 1
    grid = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * np.arange(points) / (points - 1)))
    z, values, allowed = grid**2, f(grid), most(grid)
    at = ((points - 1) * (0.5 - 0.5 * np.cos(np.pi * (np.arange(n) + 0.5) / n))).astype(int)
    sign, a, b, error = (-1.0) ** np.arange(n), None, np.array([1.0]), 0.0
    for _ in range(40):
        for _ in range(20):  # the error is multiplied by Q: it is solved with the last one
            target, scale = values[at] * (1 + sign * error * allowed[at]), values[at] * allowed[at]
            last = np.polyval(b[::-1], z[at])
            system = np.column_stack([z[at] ** k for k in range(1, p + 1)] +
                                     [-target * z[at] ** k for k in range(1, q + 1)] + [-sign * scale * last])
            solution = np.linalg.solve(system, target - 1 - sign * scale * last * error)
            a, b, error = np.append(1, solution[:p]), np.append(1, solution[p:-1]), solution[-1]
        off = (np.polyval(a[::-1], z) / np.polyval(b[::-1], z) / values - 1) / allowed
        turns = np.append(np.nonzero(np.diff(np.sign(off)))[0] + 1, points)
        peaks = [s + int(np.argmax(np.abs(off[s:e]))) for s, e in zip(np.append(0, turns), turns)]
        while len(peaks) > n:
            del peaks[0 if abs(off[peaks[0]]) < abs(off[peaks[-1]]) else -1]
        if len(peaks) < n or list(at) == peaks:
            break
        at = np.array(peaks)
    return a, b, np.max(np.abs(off))


def halved(f, one_minus):  # s(x) of f = 2 s / (1 + s^2), which is odd
    return lambda x: (1 - np.sqrt(one_minus(x) * (1 + f(x)))) / f(x)


def search_ratio(name, f, one_minus, slope, high, p, q, tries=6000):
    """f = 2 s / (1 + s^2) with s = x P(x^2) / Q(x^2), as math_powers.c computes it: floats for P and Q. An error of s
    counts (1 - s^2) / (1 + s^2) in f. That common factor of P and Q is looked for with which both are just below a
    power of two where x is small, so that their roundings are small, and then changes by chance that lower the
    greatest error, with and without fused multiply-add. At `high`, which stands for all larger x, the result is 1."""
    half = halved(f, one_minus)
    a, b, _ = fit_ratio(lambda x: half(x) / x / slope, lambda x: (1 + half(x) ** 2) / (1 - half(x) ** 2), 0.01, high,
                        p, q)
    a = a * slope
    random, single = np.random.default_rng(1), np.float32
    first, last = np.array([0.008, high], single).view(np.int32)
    x = np.linspace(first, last, 40000).astype(np.int32).view(single)
    exact = f(x.astype(np.float64))
    unit = np.spacing(exact.astype(single)).astype(np.float64)

    def fused(u, v, w):
        return (u.astype(np.float64) * v + w).astype(single)

    def separate(u, v, w):
        return u * v + w

    def error_of(ca, cb, mul_add):
        z, top, bottom = x * x, np.full_like(x, ca[-1]), np.full_like(x, cb[-1])
        for c in ca[-2::-1]:
            top = mul_add(top, z, c)
        for c in cb[-2::-1]:
            bottom = mul_add(bottom, z, c)
        u = x * top
        rest, num = bottom - u, (u + u) * bottom
        result = num / mul_add(rest, rest, num)
        return np.max(np.abs(result.astype(np.float64) - exact) / unit) if result[-1] == 1 else math.inf

    best, factor, found = math.inf, 1.0, None
    for k in range(tries):
        size = 10.0 ** -random.integers(0, 3) * min(1, k / 200)
        new = random.uniform(1, 2) if k < 200 or k % 4 == 0 else factor + 0.01 * random.uniform(-1, 1)
        na = a * (1 + size * random.uniform(-1, 1, p + 1) * np.array([1e-7, 2e-6, 2e-5, 1e-4, 1e-4])[:p + 1])
        nb = b * (1 + size * random.uniform(-1, 1, q + 1) * np.array([0, 1e-6, 1e-5, 1e-4, 3e-4])[:q + 1])
        ca, cb = (na * new).astype(single), (nb * new).astype(single)
        error = error_of(ca, cb, fused)
        if error < best:
            error = max(error, error_of(ca, cb, separate))
        if error < best:
            best, factor, a, b, found = error, new, na, nb, (ca, cb)
    print(name, *([float(v) * 2.0**24 for v in c] for c in found), "error %.3f" % best)


erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
half = math.log(2) / 2 * 1.01

def exp_by(r):  # (exp(r) - 1) / r
    return np.where(np.abs(r) < 1e-4, 1 + r / 2 + r * r / 6, np.expm1(r) / np.where(r == 0, 1, r))


def exp_rest(r):  # (exp(r) - 1 - r) / r^2
    return np.where(np.abs(r) < 1e-4, 0.5 + r / 6 + r * r / 24, (np.expm1(r) - r) / np.where(r == 0, 1, r * r))


def log_near(f):  # (log(1 + f) - f + f^2 / 2) / f^3
    return np.where(np.abs(f) < 1e-3, 1 / 3 - f / 4 + f * f / 5 - f**3 / 6,
                    (np.log1p(f) - f + f * f / 2) / np.where(f == 0, 1, f**3))


def sin_near(z):  # (sin(x) / x - 1) / x^2
    return np.where(z < 1e-6, -1 / 6 + z / 120,
                    (np.sin(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


def cos_near(z):  # (cos(x) - 1 + x^2 / 2) / x^4
    return np.where(z < 1e-3, 1 / 24 - z / 720 + z * z / 40320,
                    (np.cos(np.sqrt(z)) - 1 + z / 2) / np.maximum(z, 1e-300) ** 2)


def tan_near(z):  # (tan(x) / x - 1) / x^2
    return np.where(z < 1e-3, 1 / 3 + z * 2 / 15 + z * z * 17 / 315 + z**3 * 62 / 2835,
                    (np.tan(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


def atan_near(z):  # (atan(x) / x - 1) / x^2
    return np.where(z < 1e-3, -1 / 3 + z / 5 - z * z / 7 + z**3 / 9,
                    (np.arctan(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


def asin_near(z):  # (asin(x) / x - 1) / x^2
    return np.where(z < 1e-3, 1 / 6 + z * 3 / 40 + z * z * 5 / 112 + z**3 * 35 / 1152,
                    (np.arcsin(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


def sinh_near(z):  # (sinh(x) / x - 1) / x^2
    return np.where(z < 1e-3, 1 / 6 + z / 120 + z * z / 5040,
                    (np.sinh(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


def cosh_near(z):  # (cosh(x) - 1) / x^2
    return np.where(z < 1e-3, 1 / 2 + z / 24 + z * z / 720 + z**3 / 40320,
                    2 * np.sinh(np.sqrt(z) / 2) ** 2 / np.maximum(z, 1e-300))


search_ratio("tanh, halved", np.tanh, lambda x: 2 / (np.exp(2 * x) + 1), 0.5, 9.1, 2, 3)
search_ratio("erf, halved", erf, erfc, 1 / math.sqrt(math.pi), 4.0, 3, 4)
show("exp - 1, by r", fit(exp_by, lambda r: np.abs(r) / np.exp(r) + 1e-9, -half, half, 5))
show("exp", fit(exp_rest, lambda r: r * r + 1e-9, -half, half, 4))
show("log", fit(log_near, lambda f: np.abs(f**3 / np.where(np.abs(f) < 1e-9, 1, np.log1p(f))) + 1e-9, 0.5**0.5 - 1,
                2**0.5 - 1, 7))
quarter = (math.pi / 4 * 1.001) ** 2
show("sin", fit(sin_near, lambda z: z / (1 + z * sin_near(z)) + 1e-9, 1e-12, quarter, 2))
show("cos", fit(cos_near, lambda z: z * z / np.cos(np.sqrt(z)) + 1e-9, 1e-12, quarter, 2))
show("tan", fit(tan_near, lambda z: z / (1 + z * tan_near(z)) + 1e-9, 1e-12, quarter, 5))
show("atan", fit(atan_near, lambda z: z / (1 + z * atan_near(z)) + 1e-9, 1e-12, 1.0, 7))
show("asin", fit(asin_near, lambda z: z / (1 + z * asin_near(z)) + 1e-9, 1e-12, 0.25, 4))
show("sinh", fit(sinh_near, lambda z: z / (1 + z * sinh_near(z)) + 1e-9, 1e-12, 0.25, 2))
show("cosh", fit(cosh_near, lambda z: z / np.cosh(np.sqrt(z)) + 1e-9, 1e-12, 0.25, 2))

# 2/pi 2^24k without whole turns, in pieces of 24 bits: pi by Machin's formula in integers
ONE = 1 << 464


def arctan_of_inverse(n):
    total, term, k = 0, ONE // n, 1
    while term:
        total += term // k if k % 4 == 1 else -(term // k)
        term, k = term // (n * n), k + 2
    return total


two_over_pi = 2 * ONE * ONE // (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239))
for k in range(5):
    rest, pieces = (two_over_pi << 24 * k) % (4 * ONE), []
    for bits in range(22, 142, 24):
        piece = rest >> (464 - bits)
        rest -= piece << (464 - bits)
        pieces.append((float(piece) * 2.0**-bits).hex())
    print("2/pi", k, *pieces)
