#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Branches and loops at run time against onnxruntime: by hand what each rule is for, and nests of them by chance.

    branches.py [--lathe FILE] [--filter GLOB] [--seed N] [--count N] [-j N]

Each model runs in onnxruntime, in the interpreter, and as a package with one worker and with three, which must give
the same bytes; it is built with sanitizers, by `lathe run` where inputs have open extents. A run with a REFUSED must
end with the status for shapes and a message with these words, in the interpreter and the packages.
"""
import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
from onnx import parser as onnx_parser

import package

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = '<ir_version: 8, opset_import: ["": {}]>\n'
SANITIZED = "-std=c99 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off"

SHAPE = "status -10"
REFUSED = "what must stand in the message"
F = np.float32
I = np.int64


def numbers(*shape):
    return np.random.default_rng(sum(shape) + 7).standard_normal(shape).astype(F)


def grow(first, inputs="float[2] x", results="float[k, 2] y"):
    """A row more in each round; `first` makes n, the number of rounds, or more."""
    return f"""
m ({inputs}) => ({results}) {{
  {first}
  e = Constant <value: tensor = float[1, 2] {{0, 0}}> ()
  z = Constant <value: tensor = int64[1] {{0}}> ()
  y = Loop (n, , e) <body = g (int64 i, bool c, float[a, 2] p) => (bool d, float[b, 2] q) {{
      d = Identity (c) l = ReduceSum <keepdims = 1> (p, z) row = Add (l, x) q = Concat <axis = 0> (p, row) }}>
}}"""


def rounds(n):
    return f"n = Constant <value: tensor = int64 {{{n}}}> ()"


# name -> (operator set, text, inputs of each run, options); tests of one rule each
CASES = {
    "if-both-ways": (17, """
m (bool c, float[3] x, float[3] y) => (float[3] r, float[3] s, float[3] t) {
  a = Add (x, y)
  r, s = If (c) <then_branch = t () => (float[3] r1, float[3] s1) { r1 = Mul (a, x)  s1 = Identity (y) },
                 else_branch = e () => (float[3] r2, float[3] s2) {
                     r2 = Constant <value: tensor = float[3] {1, 2, 3}> ()  s2 = Sub (x, y) }>
  t = Add (r, s)
}""", [dict(c=np.bool_(b), x=numbers(3), y=numbers(3) + 1) for b in (True, False)]),
    "if-result-twice": (17, """
m (bool c, float[3] x) => (float[3] r, float[3] s) {
  r, s = If (c) <then_branch = t () => (float[3] a, float[3] b) { a = Neg (x) b = Identity (a) },
                 else_branch = e () => (float[3] p, float[3] q) { q = Exp (x) p = Abs (q) }>
}""", [dict(c=np.bool_(b), x=numbers(3)) for b in (True, False)]),
    "if-condition-of-weights": (17, """
m (float[3] x, float[4] y) => (float[3] r) {
  k = Constant <value: tensor = float[20] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}> ()
  e = Exp (k)  s = ReduceSum <keepdims = 0> (e)  z = Constant <value: tensor = float {5}> ()  c = Greater (s, z)
  r = If (c) <then_branch = t () => (float[3] a) { a = Neg (x) },
              else_branch = e () => (float[3] b) { b0 = Cast <to = 1> (y)  b = Identity (b0) }>
}""", [dict(x=numbers(3), y=numbers(4))]),
    "if-vector-condition": (17, """
m (bool[1] c, float[2, 3] x) => (float[3, 2] r) {
  r = If (c) <then_branch = t () => (float[3, 2] a) {
                  s = Constant <value: tensor = int64[2] {3, 2}> ()  a = Reshape (x, s) },
              else_branch = e () => (float[3, 2] b) { b = Transpose (x) }>
}""", [dict(c=np.array([b]), x=numbers(2, 3)) for b in (True, False)]),
    "swap": (17, """
m (int64 n, float[3] a, float[3] b) => (float[3] x, float[3] y, int64 z) {
  k = Constant <value: tensor = int64 {1}> ()
  x, y, z = Loop (n, , a, b, k) <body = g (int64 i, bool c, float[3] p, float[3] q, int64 m) =>
      (bool d, float[3] r, float[3] s, int64 o) { d = Identity (c)  
      r = Identity (q)  s = Identity (p)  o = Add (m, i) }>
}""", [dict(n=I(n), a=numbers(3), b=numbers(3) * 2) for n in (0, 1, 2, 7)]),
    "rotate-three": (17, """
m (int64 n, float[3] a, float[3] b, float[3] c) => (float[3] x, float[3] y, float[3] z) {
  x, y, z = Loop (n, , a, b, c) <body = g (int64 i, bool w, float[3] p, float[3] q, float[3] r) =>
      (bool d, float[3] s, float[3] t, float[3] u) {
      d = Identity (w) s = Add (q, r) t = Identity (r) u = Identity (p) }>
}""", [dict(n=I(n), a=numbers(3), b=numbers(3) * 2, c=numbers(3) - 1) for n in (0, 1, 2, 5)]),
    "while": (17, """
m (float[4] x, float limit) => (float[4] y, int64 rounds) {
  t = Constant <value: tensor = bool {1}> ()
  zero = Constant <value: tensor = int64 {0}> ()
  y, rounds = Loop ( , t, x, zero) <body = g (int64 i, bool c, float[4] p, int64 k) => (bool d, float[4] q, int64 l) {
      q = Add (p, p)  s = ReduceSum <keepdims = 0> (q)  a = Abs (s)  d = Less (a, limit)
      one = Constant <value: tensor = int64 {1}> () l = Add (k, one) }>
}""", [dict(x=np.array([1, 2, 3, 4], F), limit=F(v)) for v in (1, 100, 5000)]),
    "while-first-false": (17, """
m (bool go, float[4] x) => (float[4] y) {
  n = Constant <value: tensor = int64 {5}> ()
  y = Loop (n, go, x) <body = g (int64 i, bool c, float[4] p) => (bool d, float[4] q) {
      q = Add (p, p)  s = ReduceMax <keepdims = 0> (q)
      k = Constant <value: tensor = float {30.0}> () d = Less (s, k) }>
}""", [dict(go=np.bool_(b), x=np.array([1, 2, 3, 4], F)) for b in (True, False)]),
    "rows": (17, """
m (float[2] x) => (float[2] y, float[6, 2] before, float[6, 2] after, int64[6] rounds, float[6, 2, 2] same) {
  n = Constant <value: tensor = int64 {6}> ()
  w = Constant <value: tensor = float[2] {0.5, 3}> ()
  y, before, after, rounds, same = Loop (n, , x) <body = g (int64 i, bool c, float[2] p) =>
      (bool d, float[2] q, float[2] r, float[2] s, int64 j, float[2, 2] k) {
      d = Identity (c) r = Identity (p) q = Mul (p, w) s = Identity (q) j = Identity (i)
      k = Constant <value: tensor = float[2, 2] {1, 2, 3, 4}> () }>
}""", [dict(x=np.array([1, 2], F))]),
    "rows-none": (17, """
m (float[2] x) => (float[2] y, float[0, 2] r) {
  n = Constant <value: tensor = int64 {0}> ()
  y, r = Loop (n, , x) <body = g (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[2] s) {
      d = Identity (c) q = Add (p, p) s = Identity (q) }>
}""", [dict(x=np.array([1, 2], F))]),
    "rows-counted-at-run-time": (17, """
m (int64 n, float[2] x) => (float[2] y, float[4, 2] r) {
  y, r = Loop (n, , x) <body = g (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[2] s) {
      d = Identity (c) q = Add (p, x) s = Mul (q, q) }>
}""", [dict(n=I(4), x=np.array([1, 2], F))]),
    "nested": (17, """
m (int64 n, float[3] x, float[2, 3] w) => (float[3] y, float[3] z) {
  two = Constant <value: tensor = int64 {2}> ()
  y, z = Loop (n, , x, x) <body = outer (int64 i, bool c, float[3] p, float[3] q) => (bool d, float[3] r, float[3] s) {
      d = Identity (c)
      zero = Constant <value: tensor = int64 {0}> ()
      m = Mod (i, two)
      even = Equal (m, zero)
      r = If (even) <then_branch = t () => (float[3] a) {
            a = Loop (two, , p) <body = inner (int64 j, bool e, float[3] u) => (bool f, float[3] v) {
                  f = Identity (e) k = Gather <axis = 0> (w, j) l = Mul (k, q) v = Add (u, l) }> },
          else_branch = e () => (float[3] b) { b = Sub (p, q) }>
      h = Constant <value: tensor = float {0.5}> ()
      s = Mul (q, h) }>
}""", [dict(n=I(n), x=numbers(3), w=numbers(2, 3)) for n in (0, 1, 5)]),
    "rows-of-rows": (17, """
m (float[2] x) => (float[3, 4, 2] r, float[2] y) {
  n = Constant <value: tensor = int64 {3}> ()
  k = Constant <value: tensor = int64 {4}> ()
  y, r = Loop (n, , x) <body = outer (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[4, 2] s) {
      d = Identity (c)
      q, s = Loop (k, , p) <body = inner (int64 j, bool e, float[2] u) => (bool f, float[2] v, float[2] w) {
            f = Identity (e) a = Cast <to = 1> (i) b = Add (u, a) v = Tanh (b) w = Add (v, u) }> }>
}""", [dict(x=np.array([1, 2], F))]),
    "views": (17, """
m (int64 n, float[6] x) => (float[6] y, float[2, 3] z) {
  s = Constant <value: tensor = int64[2] {2, 3}> ()
  six = Constant <value: tensor = int64[1] {6}> ()
  x2 = Reshape (x, s)
  y, z = Loop (n, , x, x2) <body = g (int64 i, bool c, float[6] p, float[2, 3] q) =>
      (bool d, float[6] r, float[2, 3] t) {
      d = Identity (c)  t = Reshape (p, s)  q1 = Reshape (q, six)  r = Add (q1, p) }>
}""", [dict(n=I(n), x=numbers(6)) for n in (0, 1, 4)]),
    "kept": (17, """
m (int64 n, float[3] x, float[3] w) => (float[3] y, float[3] v) {
  y, v = Loop (n, , x, w) <body = g (int64 i, bool c, float[3] p, float[3] q) => (bool d, float[3] r, float[3] t) {
      d = Identity (c)  t = Identity (q)  r = Add (p, q) }>
}""", [dict(n=I(n), x=numbers(3), w=numbers(3) + 2) for n in (0, 3)]),
    "joined": (17, """
m (int64 n, float[1, 2] x) => (float[1, 4] z, float[1, 2] y) {
  y0 = Neg (x)
  y = Loop (n, , y0) <body = g (int64 i, bool c, float[1, 2] p) => (bool d, float[1, 2] r) {
      d = Identity (c)  a = Concat <axis = 1> (p, x)  b = Exp (p)  e = Concat <axis = 1> (b, p)  f = Add (a, e)
      r = ReduceMean <axes = [1], keepdims = 1> (f) one = Add (x, x) g0 = Mul (r, one)
      r0 = Tanh (g0)  }>
  z = Concat <axis = 1> (y, x)
}""".replace("float[1, 2] r) {", "float[1, 2] r0) {"), [dict(n=I(n), x=numbers(1, 2)) for n in (0, 3)]),
    "types": (17, """
m (int64 n, bool[3] b, int32[2] k, double x) => (bool[3] b1, int32[2] k1, double x1) {
  b1, k1, x1 = Loop (n, , b, k, x) <body = g (int64 i, bool c, bool[3] p, int32[2] q, double r) =>
      (bool d, bool[3] s, int32[2] t, double u) {
      d = Identity (c) s = Not (p) i32 = Cast <to = 6> (i) t = Add (q, i32) u = Mul (r, r) }>
}""", [dict(n=I(n), b=np.array([True, False, True]), k=np.array([1, 2], np.int32), x=np.float64(1.5)) for n in (0, 3)]),
    "lstm": (17, """
m (float[12, 1, 8] x, float[8, 64] w, float[16, 64] r, float[64] b, float[1, 16] h0, float[1, 16] c0)
    => (float[12, 1, 16] y, float[1, 16] h, float[1, 16] c) {
  n = Constant <value: tensor = int64 {12}> ()
  h, c, y = Loop (n, , h0, c0) <body = cell (int64 t, bool go, float[1, 16] hp, float[1, 16] cp) =>
      (bool on, float[1, 16] hn, float[1, 16] cn, float[1, 16] row) {
      on = Identity (go)
      xt = Gather <axis = 0> (x, t)
      a = MatMul (xt, w)  e = MatMul (hp, r)  s = Add (a, e)  g = Add (s, b)
      i, o, f, u = Split <axis = 1> (g)
      si = Sigmoid (i)  so = Sigmoid (o)  sf = Sigmoid (f)  tu = Tanh (u)
      fc = Mul (sf, cp)  iu = Mul (si, tu)  cn = Add (fc, iu)  tc = Tanh (cn)  hn = Mul (so, tc)
      row = Identity (hn) }>
}""", [dict(x=numbers(12, 1, 8), w=numbers(8, 64) * F(0.3), r=numbers(16, 64) * F(0.3), b=numbers(64),
            h0=numbers(1, 16), c0=numbers(1, 16))]),
    "parts": (17, """
m (int64 n, float[64, 512] x, float[512, 512] w) => (float[64, 512] y, float[64] z) {
  y = Loop (n, , x) <body = g (int64 i, bool c, float[64, 512] p) => (bool d, float[64, 512] r) {
      d = Identity (c)  a = MatMul (p, w)  b = Tanh (a)  e = Add (b, x)
      zero = Constant <value: tensor = int64 {1}> ()
      even = Equal (i, zero)
      r = If (even) <then_branch = t () => (float[64, 512] u) { u = Sigmoid (e) },
                     else_branch = f () => (float[64, 512] v) { v = Softmax <axis = 1> (e) }> }>
  z = ReduceSum <keepdims = 0> (y, one)
}""".replace("  y = Loop", "  one = Constant <value: tensor = int64[1] {1}> ()\n  y = Loop"),
              [dict(n=I(n), x=numbers(64, 512), w=numbers(512, 512) * F(0.05)) for n in (0, 3)]),
    "scan": (17, """
m (float[3] s, float[5, 3] x, float[3, 5] w) => (float[3] t, float[5, 3] y, float[3, 5] z) {
  t, y, z = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                  scan_output_axes = [0, 1], scan_output_directions = [1, 0],
                  body = g (float[3] a, float[3] b, float[3] c) =>
      (float[3] d, float[3] e, float[3] f) {
          u = Mul (b, c)  d = Add (a, u)  e = Identity (d)  f = Sub (a, c) }> (s, x, w)
}""", [dict(s=numbers(3), x=numbers(5, 3), w=numbers(3, 5))]),
    "scan-two-states": (17, """
m (float[3] s, float[3] r, float[2, 5, 3] x) => (float[3] t, float[3] v, float[2, 3, 5] y) {
  t, v, y = Scan <num_scan_inputs = 1, scan_input_axes = [-2], scan_output_axes = [-1],
                  body = g (float[3] a, float[3] b, float[2, 3] c) => (float[3] d, float[3] e, float[2, 3] f) {
      d = Identity (b)  e = Add (a, b)  f = Add (c, a) }> (s, r, x)
}""", [dict(s=numbers(3), r=numbers(3), x=numbers(2, 5, 3))]),
    "scan-batch": (8, """
m (float[2, 3] s, float[2, 4, 3] x, float[2, 4, 3] w) => (float[2, 3] t, float[2, 4, 3] y) {
  t, y = Scan <num_scan_inputs = 2, directions = [0, 1], body = g (float[3] a, float[3] b, float[3] c) =>
      (float[3] d, float[3] e) { u = Mul (b, c)  d = Add (a, u)  e = Mul (d, d) }> ( , s, x, w)
}""", [dict(s=numbers(2, 3), x=numbers(2, 4, 3), w=numbers(2, 4, 3) + 1)]),
    "if-shapes": (17, """
m (bool c, float[2, 3] x) => (float[n, 3] r, float[n, 3] s) {
  r = If (c) <then_branch = t () => (float[k, 3] a) { a = Concat <axis = 0> (x, x, x) },
              else_branch = e () => (float[l, 3] b) { b = Neg (x) }>
  s = Exp (r)
}""", [dict(c=np.bool_(b), x=numbers(2, 3)) for b in (True, False)]),
    "while-rows": (17, """
m (float[2] x, float limit) => (float[2] y, float[n, 2] r, float[n, 2] s) {
  most = Constant <value: tensor = int64 {9}> ()
  y, r = Loop (most, , x) <body = g (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[2] row) {
      q = Add (p, p)  a = ReduceSum <keepdims = 0> (q)  d = Less (a, limit)  row = Identity (p) }>
  s = Neg (r)
}""", [dict(x=np.array([1, 2], F), limit=F(v)) for v in (1, 30, 1e9)]),
    "nested-rows": (17, """
m (float[2] x, float limit) => (float[2] y, float[3, 2] t) {
  most = Constant <value: tensor = int64 {9}> ()
  three = Constant <value: tensor = int64 {3}> ()
  y, t = Loop (three, , x) <body = outer (int64 k, bool u, float[2] v) => (bool w, float[2] z, float[2] o) {
      w = Identity (u)
      f = Cast <to = 1> (k)  m = Sub (limit, f)
      z0, r = Loop (most, , v) <body = g (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[2] row) {
          h = Constant <value: tensor = float {1.5}> ()
          q = Mul (p, h)  a = ReduceSum <keepdims = 0> (q)  d = Less (a, m)  row = Add (p, q) }>
      zero = Constant <value: tensor = int64[1] {0}> ()
      o = ReduceSum <keepdims = 0> (r, zero)
      z = Tanh (z0) }>
}""", [dict(x=np.array([1, 2], F), limit=F(v)) for v in (1, 30, 1e9)]),
    "scan-open": (17, """
m (float[3] s, float[n, 3] x) => (float[3] t, float[n, 3] y, float[3, n] z) {
  t, y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [0, 1],
                  body = g (float[3] a, float[3] c) => (float[3] d, float[3] e, float[3] f) {
      d = Add (a, c)  e = Mul (a, c)  f = Tanh (d) }> (s, x)
}""", [dict(s=numbers(3), x=numbers(n, 3)) for n in (1, 5, 7)], "--dim", "n<=7"),
    "loop-over-open": (17, """
m (float[n, 1, 4] x, float[1, 4] h, float[m, 4] w) => (float[1, 4] y, float[n, 1, 4] r, float[n, m, 4] q) {
  zero = Constant <value: tensor = int64 {0}> ()
  shape = Shape (x)
  trips = Gather <axis = 0> (shape, zero)
  y, r, q = Loop (trips, , h) <body = g (int64 i, bool c, float[1, 4] p) =>
      (bool d, float[1, 4] s, float[1, 4] row, float[m, 4] wide) {
      d = Identity (c)  a = Gather <axis = 0> (x, i)  b = Add (a, p)  s = Tanh (b)  row = Mul (s, a)
      wide = Add (w, s) }>
}""", [dict(x=numbers(n, 1, 4), h=numbers(1, 4), w=numbers(m, 4)) for n, m in ((1, 1), (5, 2), (6, 3))],
                       "--dim", "n<=6", "--dim", "m<=3"),
    "if-stated-twice": (17, """
m (bool c, float[m] x) => (float[m] r, float[m] s) {
  r = If (c) <then_branch = t () => (float[3] a) { a = Constant <value: tensor = float[3] {1, 2, 3}> () },
              else_branch = e () => (float[5] b) { b = Constant <value: tensor = float[5] {1, 2, 3, 4, 5}> () }>
  s = Neg (x)
}""", [dict(c=np.bool_(b), x=numbers(n), **({} if n == (3 if b else 5) else {REFUSED: "if_extent_m"}))
       for b in (True, False) for n in (0, 3, 5, 6)], "--dim", "m<=6"),
    "if-stated-below": (17, """
m (bool c, float[m] x) => (float[m] r, float[m] s) {
  r = If (c) <then_branch = t () => (float[3] a) { a = Constant <value: tensor = float[3] {1, 2, 3}> () },
              else_branch = e () => (float[5] b) { b = Constant <value: tensor = float[5] {1, 2, 3, 4, 5}> () }>
  s = Neg (x)
}""", [dict(c=np.bool_(True), x=numbers(3)), {"c": np.bool_(False), "x": numbers(3), REFUSED: "if_extent_m"}],
                        "--dim", "m<=4"),
    "if-stated-square": (17, """
m (bool c, float[2, 3] x) => (float[n, n] r) {
  y = Transpose (x)
  r = If (c) <then_branch = t () => (float[k, l] a) { a = MatMul (x, y) },
              else_branch = e () => (float[k, l] b) { b = Concat <axis = 1> (y, y) }>
}""", [dict(c=np.bool_(True), x=numbers(2, 3)), {"c": np.bool_(False), "x": numbers(2, 3), REFUSED: "if_extent_n"}]),
    "if-names-twice": (17, """
m (bool c, float[5] x, bool[5] w, float[9] z, bool[9] v) => (float[k] y, float[l] u) {
  y = If (c) <then_branch = t () => (float[n] a) { a = Compress (x, w) },
              else_branch = e () => (float[1] b) { b = Constant <value: tensor = float[1] {1}> () }>
  u = If (c) <then_branch = t () => (float[n] d) { d = Compress (z, v) },
              else_branch = e () => (float[1] f) { f = Constant <value: tensor = float[1] {2}> () }>
}""", [dict(c=np.bool_(b), x=numbers(5), w=numbers(5) > 0, z=numbers(9), v=numbers(9) > -9) for b in (True, False)]),
    "sequence-read": (17, """
m (float[6] x, float limit) => (float[k, 2] y, float[r] rows, int64 n) {
  most = Constant <value: tensor = int64 {9}> ()
  none = SequenceEmpty ()
  s, rows = Loop (most, , none) <body = g (int64 i, bool c, seq(float[]) p) => (bool d, seq(float[]) q, float row) {
      zero = Constant <value: tensor = int64 {0}> ()
      last = Constant <value: tensor = int64 {-1}> ()
      ends = Constant <value: tensor = int64[1] {2}> ()
      z = Constant <value: tensor = int64[1] {0}> ()
      size = SequenceLength (p)
      some = Greater (size, zero)
      e = If (some) <then_branch = t () => (float[w] a) { a = SequenceAt (p, last) },
                     else_branch = f () => (float[w] b) { b = Slice (x, z, ends) }>
      h = Add (e, e)
      q = SequenceInsert (p, h)
      all = ConcatFromSequence <axis = 0> (q)
      row = ReduceSum <keepdims = 0> (all)
      d = Less (row, limit) }>
  y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
  n = SequenceLength (s)
}""", [dict(x=np.arange(1, 7, dtype=F), limit=F(v)) for v in (1, 30, 1e9)]),
    "if-stated-number": (17, """
m (bool c) => (float[3] r) {
  r = If (c) <then_branch = t () => (float[3] a) { a = Constant <value: tensor = float[3] {1, 2, 3}> () },
              else_branch = e () => (float[5] b) { b = Constant <value: tensor = float[5] {1, 2, 3, 4, 5}> () }>
}""", [dict(c=np.bool_(b)) for b in (True, False)]),
    "if-stated-inside": (17, """
m (bool c, bool e, float[6] x, bool[6] w) => (float[k] y) {
  y = If (c) <then_branch = t () => (float[k] a) {
        a = If (e) <then_branch = tt () => (float[k] u) {
                        z = Constant <value: tensor = int64[1] {0}> ()  o = Constant <value: tensor = int64[1] {2}> ()
                        u = Slice (x, z, o) },
                    else_branch = te () => (float[k] v) { v = Neg (x) }> },
      else_branch = ee () => (float[k] b) { b = Compress (x, w) }>
}""", [dict(c=np.bool_(c), e=np.bool_(e), x=numbers(6), w=numbers(6) > 0)
       for c in (True, False) for e in (True, False)]),
    "if-told-by-a-loop": (17, """
m (bool c, int64 n, float[1] x) => (float[k] y) {
  y = If (c) <then_branch = t () => (float[k] a) {
        a = Loop (n, , x) <body = g (int64 i, bool b, float[e] p) => (bool d, float[f] q) {
                d = Identity (b) q = Concat <axis = 0> (p, x) }> },
      else_branch = ee () => (float[k] h) {
        l, h = Loop (n, , x) <body = o (int64 i, bool b, float[1] p) => (bool d, float[1] q, float s) {
                d = Identity (b) q = Add (p, x) z = Constant <value: tensor = int64[1] {0}> () s = Squeeze (q, z) }> }>
}""", [dict(c=np.bool_(c), n=I(n), x=numbers(1)) for c in (True, False) for n in (0, 1, 4)] +
                          [{"c": np.bool_(c), "n": I(6), "x": numbers(1), REFUSED: SHAPE} for c in (True, False)],
                          "--bound", "k=5"),
    "rows-stated-twice": (17, """
m (int64 n, float[2] x, float[m] w) => (float[2] y, float[m, 2] r, float[m] v) {
  y, r = Loop (n, , x) <body = g (int64 i, bool c, float[2] p) => (bool d, float[2] q, float[2] s) {
      d = Identity (c) q = Add (p, x) s = Mul (q, q) }>
  v = Neg (w)
}""", [dict(n=I(n), x=numbers(2), w=numbers(m), **({} if n == m else {REFUSED: "loop_extent_m" if n < 7 else SHAPE}))
       for n, m in ((3, 6), (6, 6), (1, 0), (2, 2), (7, 6))], "--dim", "m<=6"),
    "grow-counted": (17, grow(rounds(5)), [dict(x=numbers(2))]),
    "grow-none": (17, grow(rounds(0)), [dict(x=numbers(2))]),
    "grow-once": (17, grow(rounds(1)), [dict(x=numbers(2))]),
    "grow-bounded": (17, grow("", "int64 n, float[2] x"),
                     [dict(n=I(n), x=numbers(2)) for n in (0, 1, 4, 7)] +
                     [{"n": I(n), "x": numbers(2), REFUSED: "loop_extent_p_0"} for n in (8, 100)], "--bound", "k=8"),
    "grow-declared": (17, grow("", "int64 n, float[2] x", "float[8, 2] y"),
                      [dict(n=I(7), x=numbers(2))] +
                      [{"n": I(n), "x": numbers(2), REFUSED: "loop_extent"} for n in (0, 6, 8)]),
    "grow-as-an-input": (17, grow("v = Neg (w)", "int64 n, float[k] w, float[2] x", "float[k, 2] y, float[k] v"),
                         [dict(n=I(n), x=numbers(2), w=numbers(n + 1)) for n in (0, 1, 5)] +
                         [{"n": I(n), "x": numbers(2), "w": numbers(m), REFUSED: "loop_extent"}
                          for n, m in ((3, 3), (6, 6), (0, 6))], "--dim", "k<=6"),
    "grow-from-open": (17, """
m (float[n, 2] x) => (float[k, 2] y, float[n, 2] z) {
  four = Constant <value: tensor = int64 {4}> ()
  y = Loop (four, , x) <body = g (int64 i, bool c, float[a, 2] p) => (bool d, float[b, 2] q) {
      d = Identity (c) h = Tanh (p) q = Concat <axis = 0> (x, h) }>
  z = Neg (x)
}""", [dict(x=numbers(n, 2)) for n in (1, 2, 5)], "--dim", "n<=5", "--bound", "k=25"),
    "grow-both-ways": (17, """
m (float[1, 2] x) => (float[k, l] y, float[3, 4] r) {
  n = Constant <value: tensor = int64 {3}> ()
  w = Constant <value: tensor = float[1, 4] {1, 2, 3, 4}> ()
  axes = Constant <value: tensor = int64[2] {0, 1}> ()
  y, r = Loop (n, , x) <body = g (int64 i, bool c, float[a, e] p) => (bool d, float[b, f] q, float[4] s) {
      d = Identity (c) pads = Constant <value: tensor = int64[4] {0, 1, 1, 0}> () fi = Cast <to = 1> (i)
      q = Pad (p, pads, fi) m = ReduceSum <keepdims = 0> (p, axes) t = Mul (w, m)
      one = Constant <value: tensor = int64[1] {0}> () s = Squeeze (t, one) }>
}""", [dict(x=numbers(1, 2))]),
    "cache": (17, """
m (int64 n, float[1, 4] x, float[4, 4] wk, float[4, 4] wv) => (float[k, 4] keys, float[k, 4] values, float[1, 4] last) {
  none = Constant <value: tensor = float[0, 4] {}> ()
  keys, values, last = Loop (n, , none, none, x) <body = g
      (int64 i, bool c, float[a, 4] ks, float[b, 4] vs, float[1, 4] h) =>
      (bool d, float[e, 4] kn, float[f, 4] vn, float[1, 4] hn) {
      d = Identity (c)
      nk = MatMul (h, wk)  nv = MatMul (h, wv)
      kn = Concat <axis = 0> (ks, nk)  vn = Concat <axis = 0> (vs, nv)
      kt = Transpose (kn)  s = MatMul (h, kt)  p = Softmax <axis = 1> (s)  o = MatMul (p, vn)
      sum = Add (o, h)  hn = Tanh (sum) }>
}""", [dict(n=I(n), x=numbers(1, 4), wk=numbers(4, 4), wv=numbers(4, 4) * F(0.5)) for n in (0, 1, 2, 9)] +
              [{"n": I(10), "x": numbers(1, 4), "wk": numbers(4, 4), "wv": numbers(4, 4), REFUSED: "loop_extent_ks_0"}],
              "--bound", "k=9"),
    "tokens-until": (17, """
m (int64[2] start, float[8, 8] w, int64 stop) => (int64[k] tokens, int64[r] made) {
  most = Constant <value: tensor = int64 {6}> ()
  tokens, made = Loop (most, , start) <body = g (int64 i, bool c, int64[a] t) => (bool d, int64[b] u, int64 v) {
      end = Constant <value: tensor = int64 {-1}> () one = Constant <value: tensor = int64[1] {1}> ()
      z = Constant <value: tensor = int64[1] {0}> ()
      last = Gather <axis = 0> (t, end) row = Gather <axis = 0> (w, last) s = ReduceSum <keepdims = 0> (t, z)
      v0 = ArgMax <axis = 0, keepdims = 0> (row) k = Add (v0, s) eight = Constant <value: tensor = int64 {8}> ()
      v = Mod (k, eight) v1 = Unsqueeze (v, z) u = Concat <axis = 0> (t, v1)
      same = Equal (v, stop) d = Not (same) }>
}""", [dict(start=np.array([1, 2]), w=numbers(8, 8), stop=I(s)) for s in range(9)]),
    "drop": (17, """
m (float[6] x, float limit) => (float[k] y) {
  five = Constant <value: tensor = int64 {5}> ()
  y = Loop (five, , x) <body = g (int64 i, bool c, float[a] p) => (bool d, float[b] q) {
      d = Identity (c) f = Cast <to = 1> (i) l = Add (f, limit) k0 = Greater (p, l) q = Compress <axis = 0> (p, k0) }>
}""", [dict(x=np.arange(6, dtype=F), limit=F(v)) for v in (-9, -2.5, 0.5, 7)]),
    "drop-first": (17, """
m (int64 n, float[6, 2] x) => (float[k, 2] y, float[2] s) {
  zero = Constant <value: tensor = float[2] {0, 0}> ()
  y, s = Loop (n, , x, zero) <body = g (int64 i, bool c, float[a, 2] p, float[2] t) =>
      (bool d, float[b, 2] q, float[2] u) {
      d = Identity (c) one = Constant <value: tensor = int64[1] {1}> () z = Constant <value: tensor = int64[1] {0}> ()
      many = Constant <value: tensor = int64[1] {1000}> ()
      q = Slice (p, one, many, z) v = ReduceSum <keepdims = 0> (p, z) u = Add (t, v) }>
}""", [dict(n=I(n), x=numbers(6, 2)) for n in (0, 1, 5, 6, 8)]),
    "take-turns": (17, """
m (float[1, 2] x, float[1, 2] y) => (float[k, 2] a, float[l, 2] b) {
  n = Constant <value: tensor = int64 {4}> ()
  a, b = Loop (n, , x, y) <body = g (int64 i, bool c, float[e, 2] p, float[f, 2] q) =>
      (bool d, float[g, 2] r, float[h, 2] s) {
      d = Identity (c) r = Concat <axis = 0> (q, x) s = Identity (p) }>
}""", [dict(x=numbers(1, 2), y=numbers(1, 2) + 2)], "--bound", "k=5", "--bound", "l=5"),
    "append-or-not": (17, """
m (float[5] x, float limit) => (float[k] y) {
  n = Constant <value: tensor = int64 {5}> ()
  none = Constant <value: tensor = float[0] {}> ()
  y = Loop (n, , none) <body = g (int64 i, bool c, float[a] p) => (bool d, float[b] q) {
      d = Identity (c) z = Constant <value: tensor = int64[1] {0}> () v0 = Gather <axis = 0> (x, i)
      v = Unsqueeze (v0, z) good = Greater (v0, limit)
      q = If (good) <then_branch = t () => (float[e] u) { u = Concat <axis = 0> (p, v) },
                     else_branch = f () => (float[g] w) { w = Identity (p) }> }>
}""", [dict(x=numbers(5), limit=F(v)) for v in (-9, 0, 9)], "--bound", "k=5"),
    "grow-in-a-branch": (17, """
m (bool c, float[1, 2] x) => (float[k, 2] y) {
  y = If (c) <then_branch = t () => (float[a, 2] u) {
          n = Constant <value: tensor = int64 {3}> ()
          u = Loop (n, , x) <body = g (int64 i, bool b, float[e, 2] p) => (bool d, float[f, 2] q) {
              d = Identity (b) q = Concat <axis = 0> (p, x) }> },
      else_branch = e () => (float[h, 2] w) { w = Concat <axis = 0> (x, x) }>
}""", [dict(c=np.bool_(b), x=numbers(1, 2)) for b in (True, False)]),
    "grow-in-a-loop": (17, """
m (float[1, 2] x) => (float[k, 2] y, float[4, 2] r) {
  n = Constant <value: tensor = int64 {4}> ()
  y, r = Loop (n, , x) <body = outer (int64 i, bool c, float[a, 2] p) => (bool d, float[b, 2] q, float[2] s)
      <float[v_rows, 2] w> {
      d = Identity (c) z = Constant <value: tensor = int64[1] {0}> ()
      w = Loop (i, , x) <body = inner (int64 j, bool e, float[f, 2] u) => (bool g, float[h, 2] v) {
              g = Identity (e) t = Neg (x) v = Concat <axis = 0> (u, t) }>
      s = ReduceSum <keepdims = 0> (w, z)  q = Concat <axis = 0> (p, w) }>
}""", [dict(x=numbers(1, 2))], "--bound", "v_rows=4", "--bound", "k=11"),
    "one-number": (17, """
m (int64 n, float[3] x) => (float y, float[1] z) {
  e = Constant <value: tensor = float {0.5}> ()
  f = Constant <value: tensor = float[1] {2}> ()
  y, z = Loop (n, , e, f) <body = g (int64 i, bool c, float p, float[1] q) => (bool d, float[1] r, float s) {
      d = Identity (c) t = ReduceSum <keepdims = 1> (x) r = Add (p, t) u = Mul (q, p)
      s = ReduceSum <keepdims = 0> (u) }>
}""", [dict(n=I(n), x=numbers(3)) for n in (1, 2, 5)]),
    "bags": (17, """
m (int64[3] starts, float[6, 2] w) => (float[k, 2] y) {
  none = SequenceEmpty ()  zero = Constant <value: tensor = int64[1] {0}> ()
  one = Constant <value: tensor = int64[1] {1}> ()  two = Constant <value: tensor = int64[1] {2}> ()
  six = Constant <value: tensor = int64[1] {6}> ()  three = Constant <value: tensor = int64[1] {3}> ()
  ends = Concat <axis = 0> (starts, six)  go = Constant <value: tensor = bool {1}> ()
  all, i9 = Loop (, go, none, zero) <body = g (int64 r, bool c, seq(float[b, 2]) s, int64[1] i) =>
      (bool d, seq(float[b, 2]) t, int64[1] j) {
      j = Add (i, one)  k = Add (i, two)  from = Slice (ends, i, j)  to = Slice (ends, j, k)
      bag = Slice (w, from, to)  f = Cast <to = 1> (to)  sum = ReduceSum (bag, zero)  mean = Div (sum, f)
      t = SequenceInsert (s, mean)  more = Less (j, three)  d = Squeeze (more) }>
  y = ConcatFromSequence <axis = 0> (all)
}""", [dict(starts=np.array(v), w=numbers(6, 2)) for v in ([0, 1, 2], [0, 0, 5], [2, 3, 3])], "--bound", "rounds_3=3"),
    "grow-large": (17, """
m (int64 n, float[1, 512] x) => (float[k, 512] y) {
  y = Loop (n, , x) <body = g (int64 i, bool c, float[a, 512] p) => (bool d, float[b, 512] q) {
      d = Identity (c) h = Tanh (p) q = Concat <axis = 0> (h, x) }>
}""", [dict(n=I(n), x=numbers(1, 512)) for n in (0, 63)], "--bound", "k=64"),
}

# --- by chance ---


class Nest:
    """Random bodies over float[6] values; `known` are the names that can be read."""

    def __init__(self, seed):
        self.rng, self.count = np.random.default_rng(seed), 0

    def name(self, stem="v"):
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, known):
        return str(self.rng.choice(known[-8:]))

    def plain(self, known):
        v, kind = self.name(), self.rng.integers(0, 5)
        a, b = self.pick(known), self.pick(known)
        if kind == 4:
            k = self.name()
            return v, [f"{k} = Constant <value: tensor = float[6] {{1, 0.5, -1, 0.25, 2, -0.5}}> ()",
                       f"{v} = Mul ({a}, {k})"]
        return v, [[f"{v} = Tanh ({a})"], [f"{v} = Sub ({a}, {b})"], [f"{v} = Max ({a}, {b})"],
                   [f"{v} = Identity ({a})"]][kind]

    def condition(self, known):
        c, s, z = self.name(), self.name(), self.name()
        return c, [f"{s} = ReduceSum <keepdims = 0> ({self.pick(known)})",
                   f"{z} = Constant <value: tensor = float {{{self.rng.choice([-0.5, 0.0, 0.75])}}}> ()",
                   f"{c} = Less ({s}, {z})"]

    def body(self, known, depth, results):
        """Lines, and names made in them, of which there are as many as results."""
        lines, mine = [], list(known)
        for _ in range(int(self.rng.integers(1, 5))):
            kind = self.rng.integers(0, 5) if depth < 3 else 4
            made, more = (self.branch(mine, depth) if kind == 0 else self.loop(mine, depth) if kind == 1
                          else self.one(mine))
            lines += more
            mine += made
        while len(mine) - len(known) < results:
            v, more = self.plain(mine)
            lines += more
            mine.append(v)
        own = mine[len(known):]
        return lines, [str(v) for v in self.rng.permutation(own)[:results]]

    def one(self, known):
        v, lines = self.plain(known)
        return [v], lines

    def branch(self, known, depth):
        c, lines = self.condition(known)
        n = int(self.rng.integers(1, 4))
        made, sides = [self.name() for _ in range(n)], []
        for side in ("then", "else"):
            inner, results = self.body(known, depth + 1, n)
            sides.append(f"{side}_branch = {self.name('g')} () => ({', '.join('float[6] ' + r for r in results)}) {{\n"
                         + "\n".join(inner) + "\n}")
        return made, lines + [f"{', '.join(made)} = If ({c}) <{', '.join(sides)}>"]

    def loop(self, known, depth):
        n, rows = int(self.rng.integers(1, 4)), int(self.rng.integers(0, 2))
        trips, counted = self.name(), rows or self.rng.integers(0, 2)
        inside = [self.name() for _ in range(n)]
        inner, results = self.body([*known, *inside], depth + 1, n + rows)
        for k in range(n): # some hand on what came in, in another place
            if self.rng.integers(0, 4) == 0:
                results[k] = inside[int(self.rng.integers(0, n))]
        go, on, i = self.name(), self.name(), self.name("i")
        if counted:
            inner.append(f"{on} = Identity ({go})")
        else:
            c, more = self.condition([*known, *inside, *results])
            inner += more
            on = c
        unique = []
        for r in results: # a name may be a result once
            v = r if r not in unique and r not in inside else self.name()
            if v != r:
                inner.append(f"{v} = Identity ({r})")
            unique.append(v)
        made, row = [self.name() for _ in range(n)], [self.name() for _ in range(rows)]
        count = int(self.rng.integers(0, 4)) + rows
        lines = [f"{trips} = Constant <value: tensor = int64 {{{count}}}> ()",
                 f"{', '.join(made + row)} = Loop ({trips}, , {', '.join(self.pick(known) for _ in range(n))}) <body = "
                 f"{self.name('g')} (int64 {i}, bool {go}, {', '.join('float[6] ' + v for v in inside)}) => "
                 f"(bool {on}, {', '.join('float[6] ' + v for v in unique)}) {{\n" + "\n".join(inner) + "\n}>"]
        for r in row:
            v, k = self.name(), self.name()
            lines += [f"{k} = Constant <value: tensor = int64[1] {{0}}> ()",
                      f"{v} = ReduceSum <keepdims = 0> ({r}, {k})"]
            made.append(v)
        return made, lines


def nest(seed):
    n = Nest(seed)
    lines, results = n.body(["x", "y"], 0, 3)
    text = ("\nm (float[6] x, float[6] y) => (" + ", ".join("float[6] " + r for r in results) + ") {\n"
            + "\n".join(lines) + "\n}")
    return 17, text, [dict(x=numbers(6) * F(k), y=numbers(6) - F(k)) for k in (0.5, 2)]


# --- running ---


def sanitizer():
    """What a program that loads a sanitized library must have loaded first."""
    command = ["gcc", "-print-file-name=libasan.so"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def ran(options, model, folder, inputs, *flags):
    """By `lathe run`."""
    os.mkdir(folder)
    out = os.path.join(folder, "out")
    command = [options.lathe, "run", model, "--output-dir", out, *flags]
    for name, value in inputs.items():
        path = os.path.join(folder, name + ".npy")
        np.save(path, value)
        command += ["--input", f"{name}={path}"]
    environment = dict(os.environ, CFLAGS=SANITIZED, LD_PRELOAD=sanitizer(), ASAN_OPTIONS="detect_leaks=0")
    run = subprocess.run(command, capture_output=True, text=True, errors="replace",
                         env=None if "--interpret" in flags else environment)
    if run.returncode != 0:
        raise package.Failure(run.stderr.strip()[:1500])
    return {f[:-4]: np.load(os.path.join(out, f)) for f in os.listdir(out)}


def built(options, model, folder, flags):
    """The package, made with sanitizers for one and for three workers; their folders."""
    fault = package.compile_model(options.lathe, model, folder + "1", "m", ["--workers", "3", *flags])
    if fault:
        raise package.Failure(fault)
    shutil.copytree(folder + "1", folder + "3")
    for workers in (1, 3):
        fault = package.make(f"{folder}{workers}", workers, [f"CFLAGS={SANITIZED}"])
        if fault:
            raise package.Failure(fault)
    return {workers: f"{folder}{workers}" for workers in (1, 3)}


def compare(want, got, exact):
    for name, a in want.items():
        b = got.get(name)
        if b is not None and b.ndim == 1 and b.size == a.size:
            b = b.reshape(a.shape)
        if b is None or a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype}{a.shape} became {'nothing' if b is None else f'{b.dtype}{b.shape}'}"
        if a.tobytes() != b.tobytes() if exact else not np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True):
            return f"{name}: {a.ravel()[:6]} became {b.ravel()[:6]}"
    return ""


def refused(options, path, packages, inputs, folder, words, flags):
    """Runs that must end with the status for shapes, in words that name the extent."""
    runs = [lambda w=w: package.run_program(packages[w], inputs, f"{folder}by{w}") for w in packages]
    runs += [lambda: ran(options, path, folder, inputs, "--interpret", *flags)]
    if not packages:
        runs += [lambda: ran(options, path, f"{folder}built", inputs, *flags)]
    for run in runs:
        try:
            run()
            return f"a run gives numbers and not '{words}'"
        except package.Failure as fault:
            if SHAPE not in str(fault) or words not in str(fault):
                return f"a run ends with {fault}, and not with '{words}'"
    return ""


def check(options, name, case, folder):
    version, text, runs, *flags = case
    model = onnx_parser.parse_model(HEAD.format(version) + text)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    try:
        packages = {} if "--dim" in flags else built(options, path, os.path.join(folder, "p"), flags)
        for k, inputs in enumerate(runs):
            words = inputs.get(REFUSED)
            inputs = {key: np.asarray(value) for key, value in inputs.items() if key != REFUSED}
            if words:
                fault = refused(options, path, packages, inputs, os.path.join(folder, str(k)), words, flags)
                if fault:
                    return f"{name}, run {k}: {fault}"
                continue
            want = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
            here = os.path.join(folder, str(k))
            one, three = ([package.run_program(packages[w], inputs, f"{here}by{w}") for w in packages]
                          or [ran(options, path, f"{here}by{w}", inputs, "--workers", str(w), *flags) for w in (1, 3)])
            fault = (compare(want, ran(options, path, here, inputs, "--interpret", *flags), False)
                     or compare(want, one, False) or compare(one, three, True))
            if fault:
                return f"{name}, run {k}: {fault}"
    except package.Failure as fault:
        return f"{name}: {fault}"
    return ""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    arguments.add_argument("--filter", default="*")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--count", type=int, default=12)
    arguments.add_argument("-j", type=int, default=os.cpu_count())
    options = arguments.parse_args()
    onnxruntime.set_default_logger_severity(4)
    cases = dict(CASES)
    cases.update((f"nest-{n}", nest(n)) for n in range(options.seed, options.seed + options.count))
    names = [n for n in cases if fnmatch.fnmatch(n, options.filter)]
    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(options.j) as pool:
        for n in names:
            os.mkdir(os.path.join(top, n))
        faults = [f for f in pool.map(lambda n: check(options, n, cases[n], os.path.join(top, n)), names) if f]
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"branches: {len(names) - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
