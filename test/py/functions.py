#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of float32 that packages compute themselves, against the C library's in doubles.

    functions.py [--lathe FILE] [--targets NAME,NAME] [--functions NAME,NAME] [--step N] [-j N]

A package has one operator for each function. A program in C gives it floats and compares: by default every 16,001st of
the 2^32, with --step 1 all of them, which takes some minutes for a target; -j programs share them. No result may be
further from the exact one than docs/reference/operators.md says, in units of the last place; NaN, infinities, zeros of
either sign and numbers next to them have to be what the C library gives. A target that does not run here is skipped.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import onnx
from onnx import TensorProto, helper

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
N = 1 << 14
# operator of ONNX: (exact value of x, units of the last place, the least magnitude of results that they hold for)
FUNCTIONS = {
    "Exp": ("exp(x)", 1.1, 0),
    "Log": ("log(x)", 1.0, 0),
    "Sin": ("sin(x)", 1.0, 0),
    "Cos": ("cos(x)", 1.0, 0),
    "Tan": ("tan(x)", 2.0, 0),
    "Asin": ("asin(x)", 1.8, 0),
    "Acos": ("acos(x)", 1.3, 0),
    "Atan": ("atan(x)", 1.6, 0),
    "Sinh": ("sinh(x)", 1.9, 0),
    "Cosh": ("cosh(x)", 2.4, 0),
    "Asinh": ("asinh(x)", 2.2, 0),
    "Acosh": ("acosh(x)", 2.6, 0),
    "Atanh": ("atanh(x)", 2.6, 0),
    "Erf": ("erf(x)", 4.7, 0),
    "Tanh": ("tanh(x)", 4.5, 0),
    "Elu": ("x < 0 ? expm1(x) : x", 1.0, 0),
    "Sigmoid": ("1 / (1 + exp(-x))", 2.8, 1.2e-38),
    "Softplus": ("x > 0 ? x + log1p(exp(-x)) : x == x ? log1p(exp(x)) : x", 2.0, 0),
    "Mish": ("x == -INFINITY ? NAN : x * tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))", 5.5, 1e-35),
}
# name: (what /proc/cpuinfo has to say, CC, what runs it)
TARGETS = {
    "x86-64-v2": ("sse4_2", "cc", []),
    "x86-64-v3": ("avx2", "cc", []),
    "x86-64-v4": ("avx512vl", "cc", []),
    "aarch64": (None, "aarch64-linux-gnu-gcc -static", ["qemu-aarch64"]),
}
# With this macro, glibc says which functions it has for vectors; they are exact to 4 units of doubles.
VECTORS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-D__FAST_MATH__"]
DRIVER = """
#include "tvmgen_default.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = %(n)d, FUNCTIONS = %(many)d };
static float in[N], out[FUNCTIONS][N];
static double want[N], error[N];
static const char *const names[] = {%(names)s};
static const double most[] = {%(most)s}, least[] = {%(least)s};
static double worst[FUNCTIONS];
/* Loops that C compilers make vectors of, and whose functions glibc has for vectors. */
static void exact(int f)
{
    switch (f) {
%(cases)s
    }
}
static double double_of(unsigned long long bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static void find_errors(const float *got, double least_value)
{
    for (int i = 0; i < N; i++) {
        float near = (float)want[i];
        unsigned bits, got_bits;
        memcpy(&bits, &near, sizeof bits);
        memcpy(&got_bits, &got[i], sizeof got_bits);
        unsigned exponent = bits >> 23 & 255;
        double unit = double_of((unsigned long long)((exponent ? exponent : 1) - 150 + 1023) << 52);
        double e = fabs((double)got[i] - want[i]) / unit, other = got_bits == bits ? 0 : INFINITY;
        e = exponent == 255 || !(bits << 1) ? other : e; /* infinity and zeros */
        e = fabs(want[i]) < least_value ? (fabs((double)got[i]) <= least_value ? 0 : INFINITY) : e;
        error[i] = want[i] == want[i] ? e : got[i] == got[i] ? INFINITY : 0;
    }
}
int main(int argc, char **argv) /* STEP FIRST END */
{
    unsigned long long step = strtoull(argv[1], NULL, 10), at = strtoull(argv[2], NULL, 10);
    unsigned long long end = strtoull(argv[argc - 1], NULL, 10);
    struct tvmgen_default_inputs ins = {in};
    struct tvmgen_default_outputs outs = {%(outs)s};
    int failed = 0;
    while (at < end && failed < 10) {
        for (int i = 0; i < N; i++) {
            unsigned bits = (unsigned)(at < end ? at : 0);
            memcpy(&in[i], &bits, sizeof bits);
            at += step;
        }
        if (tvmgen_default_run(&ins, &outs) != 0)
            return 2;
        for (int f = 0; f < FUNCTIONS; f++) {
            exact(f);
            find_errors(out[f], least[f]);
            for (int i = 0; i < N; i++) {
                worst[f] = error[i] > worst[f] ? error[i] : worst[f];
                if (!(error[i] <= most[f]) && failed++ < 10)
                    printf("%%s(%%.9g) gives %%.9g, %%.3g units off\\n", names[f], (double)in[i], (double)out[f][i],
                           error[i]);
            }
        }
    }
    for (int f = 0; f < FUNCTIONS; f++)
        printf("worst %%s %%.3f\\n", names[f], worst[f]);
    return failed > 0;
}
"""


def model(functions):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [N])
    results = [helper.make_tensor_value_info("v_" + f.lower(), TensorProto.FLOAT, [N]) for f in functions]
    nodes = [helper.make_node(f, ["x"], ["v_" + f.lower()]) for f in functions]
    return helper.make_model(helper.make_graph(nodes, "functions", [x], results),
                             opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def driver(functions):
    rows = [FUNCTIONS[f] for f in functions]
    loop = "for (int i = 0; i < N; i++) { double x = (double)in[i]; want[i] = %s; }"
    return DRIVER % {"n": N, "many": len(rows), "names": ", ".join(f'"{f}"' for f in functions),
                     "most": ", ".join(str(r[1]) for r in rows), "least": ", ".join(str(r[2]) for r in rows),
                     "cases": "\n".join(f"    case {i}: {loop % r[0]} return;" for i, r in enumerate(rows)),
                     "outs": ", ".join(f"out[{i}]" for i in range(len(rows)))}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def checked(o, name, work):
    """None: skipped; else whether it is right."""
    needs, cc, emulator = TARGETS[name]
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        here = f.read()
    tools = [cc.split()[0], *emulator]
    if (needs and needs not in here) or any(run(["sh", "-c", "command -v " + t])[0] for t in tools):
        print(f"{name}: skipped")
        return None
    package, program = os.path.join(work, name), os.path.join(work, name + ".run")
    for step in ([o.lathe, "compile", os.path.join(work, "functions.onnx"), "--target", name, "-q", "-o", package],
                 ["make", "-s", "-C", package, "lib", "CC=" + cc],
                 [*cc.split(), *VECTORS, *([] if emulator else ["-march=native"]), "-I" + package + "/include", "-o",
                  program, os.path.join(work, "driver.c"), package + "/libtvmgen_default.a", "-lm", "-pthread"]):
        status, text = run(step)
        if status:
            print(f"{name}: {text[:800]}")
            return False
    by = o.step if not emulator else o.step * 16 + 1
    first = list(range(0, 1 << 32, (1 << 32) // (by * o.jobs) * by))[:o.jobs] + [1 << 32]
    with ThreadPoolExecutor(o.jobs) as pool:
        runs = list(pool.map(lambda k: run([*emulator, program, str(by), str(first[k]), str(first[k + 1])]),
                             range(o.jobs)))
    text = "\n".join(text for _, text in runs)
    worst = [max(float(w) for w in re.findall(f"worst {f} (.*)", text)) for f in o.functions]
    failures = [line for line in text.splitlines() if not line.startswith("worst ") and line]
    print(f"{name}: " + "\n".join(failures[:20] + [", ".join(f"{f} {w:.2f}" for f, w in zip(o.functions, worst))]),
          flush=True)
    return not any(status for status, _ in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="NAME,NAME")
    parser.add_argument("--functions", type=lambda s: s.split(","), default=list(FUNCTIONS), metavar="NAME,NAME")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--step", type=int, default=16001, metavar="N", help="every Nth float; 1: all")
    o = parser.parse_args()
    o.lathe = os.path.abspath(o.lathe)
    with tempfile.TemporaryDirectory(prefix="functions-") as work:
        onnx.save(model(o.functions), os.path.join(work, "functions.onnx"))
        with open(os.path.join(work, "driver.c"), "w", encoding="utf-8") as f:
            f.write(driver(o.functions))
        results = [checked(o, name, work) for name in o.targets.split(",")]
    done = [r for r in results if r is not None]
    print(f"{sum(done)} targets right, {len(done) - sum(done)} wrong, {len(results) - len(done)} skipped")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
