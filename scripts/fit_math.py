#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The polynomials of src/tir/pass/math_powers.c and math_angles.c: weighted minimax fits by exchange of extremes
(Remez), in double precision, printed as the nearest floats with the greatest error in units of the last place (rounding
of the arithmetic apart)."""
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


erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
half = math.log(2) / 2 * 1.01

def exp_rest(r):  # (exp(r) - 1 - r) / r^2
    return np.where(np.abs(r) < 1e-4, 0.5 + r / 6 + r * r / 24, (np.expm1(r) - r) / np.where(r == 0, 1, r * r))


def erf_near(z):  # erf(x) / x - 1 of z = x^2
    two = 2 / math.sqrt(math.pi)
    return np.where(z < 1e-8, two - 1 - two * z / 3, erf(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1)


def tanh_near(z):  # (tanh(x) / x - 1) / x^2
    return np.where(z < 1e-6, -1 / 3 + 2 * z / 15,
                    (np.tanh(np.sqrt(z)) / np.sqrt(np.maximum(z, 1e-300)) - 1) / np.maximum(z, 1e-300))


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


show("exp", fit(exp_rest, lambda r: r * r + 1e-9, -half, half, 4))
show("erf, near", fit(erf_near, lambda z: 1 / (1 + erf_near(z)), 1e-12, 0.875**2, 5))
show("log of erfc, far", fit(lambda a: np.log(erfc(a)), lambda a: erfc(a) / erf(a), 0.875, 4.0, 6))
show("tanh", fit(tanh_near, lambda z: z / (1 + z * tanh_near(z)) + 1e-9, 1e-12, (0.8 * half / 1.01 * 1.003) ** 2, 2))
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
