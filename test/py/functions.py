#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of float32 that packages compute themselves, against the C library's in doubles.

    functions.py [--lathe FILE] [--targets NAME,NAME] [--step N]

A package has one operator for each function. A program in C gives it floats and compares: by default every 16,001st of
the 2^32, with --step 1 all of them, which takes some minutes for a target. No result may be further from the exact one
than docs/reference/operators.md says, in units of the last place; NaN, infinities, zeros and numbers next to them have
to be what the C library gives. A target that does not run here is skipped.
"""
import argparse
import os
import subprocess
import sys
import tempfile

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
    "Erf": ("erf(x)", 1.4, 0),
    "Tanh": ("tanh(x)", 1.9, 0),
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
DRIVER = """
#include "tvmgen_default.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = %d };
static float in[N], out[%d][N];
static const char *const names[] = {%s};
static const double most[] = {%s}, least[] = {%s};
static double worst[%d];
static double exact(int f, double x)
{
    switch (f) {
%s
    default: return 0;
    }
}
static double error_of(float got, double want, double least_value)
{
    float near = (float)want;
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (fabs(want) < least_value)
        return fabs((double)got) <= least_value ? 0 : INFINITY;
    if (!isfinite(near) || near == 0)
        return got == near ? 0 : INFINITY;
    return fabs((double)got - want) / ((double)nextafterf(fabsf(near), INFINITY) - fabs((double)near));
}
int main(int argc, char **argv)
{
    unsigned long long step = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, at = 0;
    struct tvmgen_default_inputs ins = {in};
    struct tvmgen_default_outputs outs = {%s};
    int failed = 0;
    while (at < 1ull << 32 && failed < 10) {
        for (int i = 0; i < N; i++) {
            unsigned bits = (unsigned)(at < 1ull << 32 ? at : 0);
            memcpy(&in[i], &bits, sizeof bits);
            at += step;
        }
        if (tvmgen_default_run(&ins, &outs) != 0)
            return 2;
        for (int f = 0; f < %d; f++)
            for (int i = 0; i < N && failed < 10; i++) {
                double e = error_of(out[f][i], exact(f, (double)in[i]), least[f]);
                worst[f] = e > worst[f] ? e : worst[f];
                if (!(e <= most[f])) {
                    printf("%%s(%%.9g) gives %%.9g, %%.3g units off\\n", names[f], (double)in[i], (double)out[f][i], e);
                    failed++;
                }
            }
    }
    for (int f = 0; f < %d; f++)
        printf("%%s %%.2f%%s", names[f], worst[f], f + 1 < %d ? ", " : "\\n");
    return failed > 0;
}
"""


def model():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [N])
    results = [helper.make_tensor_value_info("v_" + f.lower(), TensorProto.FLOAT, [N]) for f in FUNCTIONS]
    nodes = [helper.make_node(f, ["x"], ["v_" + f.lower()]) for f in FUNCTIONS]
    return helper.make_model(helper.make_graph(nodes, "functions", [x], results),
                             opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def driver():
    rows, many = list(FUNCTIONS.values()), len(FUNCTIONS)
    cases = "\n".join(f"    case {i}: return {r[0]};" for i, r in enumerate(rows))
    return DRIVER % (N, many, ", ".join(f'"{f}"' for f in FUNCTIONS), ", ".join(str(r[1]) for r in rows),
                     ", ".join(str(r[2]) for r in rows), many, cases, ", ".join(f"out[{i}]" for i in range(many)),
                     many, many, many)


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
                 [*cc.split(), "-O2", "-I" + package + "/include", "-o", program, os.path.join(work, "driver.c"),
                  package + "/libtvmgen_default.a", "-lm", "-pthread"]):
        status, text = run(step)
        if status:
            print(f"{name}: {text[:800]}")
            return False
    status, text = run([*emulator, program, str(o.step if not emulator else o.step * 16 + 1)])
    print(f"{name}: {text.strip()}", flush=True)
    return status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="NAME,NAME")
    parser.add_argument("--step", type=int, default=16001, metavar="N", help="every Nth float; 1: all")
    o = parser.parse_args()
    o.lathe = os.path.abspath(o.lathe)
    with tempfile.TemporaryDirectory(prefix="functions-") as work:
        onnx.save(model(), os.path.join(work, "functions.onnx"))
        with open(os.path.join(work, "driver.c"), "w", encoding="utf-8") as f:
            f.write(driver())
        results = [checked(o, name, work) for name in o.targets.split(",")]
    done = [r for r in results if r is not None]
    print(f"{sum(done)} targets right, {len(done) - sum(done)} wrong, {len(results) - len(done)} skipped")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
