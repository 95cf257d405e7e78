#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derives the polynomial coefficients of simd/exp_log.inl by Remez exchange and prints them with the error they leave.

  exp(r) = 1 + r + r^2 (c0 + c1 r + ... + c4 r^4)             on |r| <= 0.34668 (half of log 2, and the rounding of x / log 2)
  log(1 + f) = f - f^2/2 + f^3 (c0 + c1 f + ... + c7 f^7)     on -1/3 <= f <= 1/3 (m = 1 + f runs over [2/3, 4/3])

Both are fitted for the smallest relative error; the coefficients are then rounded to float, which costs less than half of the
error that the degree leaves. Needs nothing but Python 3.
"""
import math
import struct


def to_float(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def solve(matrix, rhs):
    """Gaussian elimination with partial pivoting; the systems are at most 10 x 10."""
    n = len(rhs)
    rows = [row[:] + [value] for row, value in zip(matrix, rhs)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][k] * x[k] for k in range(i + 1, n))) / rows[i][i]
    return x


def remez(target, weight, powers, low, high, grid=4000):
    """The c that minimises the largest |weight * (target - sum c[k] x^powers[k])| on [low, high], and that error."""
    n = len(powers)
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle - half * math.cos(math.pi * (i + 0.25) / (n + 0.5)) for i in range(n + 1)]
    points = [low + (high - low) * (i + 0.5) / grid for i in range(grid)] + [low, high]
    points.sort()
    for _ in range(30):
        matrix = [[x**p for p in powers] + [(-1) ** i / weight(x)] for i, x in enumerate(nodes)]
        coefficients = solve(matrix, [target(x) for x in nodes])[:n]
        error = [weight(x) * (target(x) - sum(c * x**p for c, p in zip(coefficients, powers))) for x in points]
        extrema = []  # the largest error of each run of one sign
        for x, e in zip(points, error):
            if extrema and (e > 0) == (extrema[-1][1] > 0):
                if abs(e) > abs(extrema[-1][1]):
                    extrema[-1] = (x, e)
            else:
                extrema.append((x, e))
        while len(extrema) > n + 1:  # keep the alternation with the largest errors
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        nodes = [x for x, _ in extrema]
    return coefficients, max(abs(e) for e in error)


def fit(name, target, weight, powers, low, high):
    coefficients, best = remez(target, weight, powers, low, high)
    rounded = [to_float(c) for c in coefficients]
    grid = [low + (high - low) * (i + 0.5) / 200000 for i in range(200000)]
    error = max(abs(weight(x) * (target(x) - sum(c * x**p for c, p in zip(rounded, powers)))) for x in grid)
    print("%s: relative error 2^%.2f (before rounding the coefficients: 2^%.2f)" % (name, math.log2(error), math.log2(best)))
    for c in rounded:
        print("  %-16s %.9g" % (c.hex(), c))


if __name__ == "__main__":
    fit("exp", lambda x: math.expm1(x) - x, lambda x: math.exp(-x), range(2, 7), -0.34668, 0.34668)
    fit("log", lambda x: math.log1p(x) - x + x * x / 2, lambda x: 1 / math.log1p(x), range(3, 11), -1 / 3, 1 / 3)
    ln2 = math.log(2)
    high = int(ln2 * 2**15) / 2**15
    print("log 2 for exp: %s + %s" % (to_float(ln2).hex(), to_float(0.693147180559945309417 - to_float(ln2)).hex()))
    print("log 2 for log: %s + %s" % (high.hex(), to_float(ln2 - high).hex()), " 1 / log 2: %s" % to_float(1 / ln2).hex())
