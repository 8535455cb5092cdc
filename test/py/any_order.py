#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same instructions come out of a computation in whatever order its sums and products are written.

    any_order.py [--lathe FILE] [--seed N] [--times N] [-j N] [CASE...]

Kernels are those of the models in test/golden/kernel, for the targets named there, of quantised layers at random for
further ones, and a few by hand, so that each row of instructions is met, but for those of the pass select, whose rows
test/unit/test_instr.c tries in any order. Each is compiled as it is, and a few times
with its computation written otherwise: operands of what commutes change places, and sums and products of integers are
put together in another order, those of indices as well. What is counted in the loops behind all passes must be the
same: instructions (tir/instr.h) by row, what passes choose otherwise (rounding in fixed point or by a sum, `fma`), and
what has no instruction that the processor has for it (instructions_left).
"""
import argparse
import collections
import glob
import math
import os
import random
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHOSEN = "fma|rounded_product|high_product|doubled_product|rounded_shift|apart|ldexp|to_bits|from_bits"
COMMUTES = {"+", "*", "&", "|", "^", "==", "!=", "&&", "||"}
CHAINS = {"+", "*", "&", "|", "^"}
TOKEN = re.compile(r"\(\w+\*\)|[A-Za-z_][\w.]*|-inf\b|-?\d[\d.]*(?:e[-+]?\d+)?"
                   r"|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^<>,()\[\]{}:=]")


class Reader:
    """Expressions of loops as trees: ("op", sign, a, b), ("call", name, arguments), ("load", type, name, indices) or a
    text."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text), 0
        if re.sub(r"\s", "", text) != "".join(self.tokens):
            raise ValueError(f"not read: {text}")

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def rest(self, end):
        found = []
        while self.peek() != end:
            found.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take()
        return found

    def expression(self):
        token = self.take()
        if token == "(":
            a, sign = self.expression(), self.take()
            if sign == ")":
                return a
            b = self.expression()
            if self.take() != ")":
                raise ValueError("a bracket is missing")
            return "op", sign, a, b
        if re.fullmatch(r"\(\w+\*\)", token):
            name = self.take()
            self.take()
            return "load", token, name, self.rest("]")
        if self.peek() == "(":
            self.take()
            return "call", token, self.rest(")")
        return token


def is_float(e):
    if not isinstance(e, str) and e[0] == "call" and e[1].startswith("float"):
        return True
    if isinstance(e, str):
        return bool(re.fullmatch(r"-?\d*\.\d*(e[-+]?\d+)?|-?inf|nan", e))
    if e[0] == "load":
        return "float" in e[1]
    if e[0] == "op":
        return is_float(e[2]) or is_float(e[3])
    if e[1] == "cast":
        return "float" in e[2][0]
    if e[1] in ("to_bits", "isnan", "isinf"):
        return False
    return e[1] == "from_bits" or any(is_float(x) for x in e[2][1 if e[1] == "select" else 0:])


def is_literal(e):
    return isinstance(e, str) and bool(re.fullmatch(r"-?\d.*|-?inf|nan", e))


def type_of(e):
    """As far as texts say it: of what a literal stands beside."""
    if isinstance(e, str):
        return None if is_literal(e) else "int64"
    if e[0] == "load":
        return e[1][1:-2]
    if e[0] == "op":
        return "bool" if e[1] in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else type_of(e[2]) or type_of(e[3])
    if e[1] in ("cast", "select"):
        return e[2][0] if e[1] == "cast" else type_of(e[2][1]) or type_of(e[2][2])
    if re.fullmatch(r"u?int\d+|float\d+|bool", e[1]):
        return e[1]
    return {"to_bits": None, "from_bits": None, "isnan": "bool", "isinf": "bool"}.get(e[1], type_of(e[2][0]))


def joined(sign, a, b):
    """A literal takes the type of what stands to the left of it, so on the left it has to say its own."""
    known = type_of(b)
    if is_literal(a) and (known or is_literal(b)):
        a = ("call", known or "int64", [a])
    return "op", sign, a, b


def terms(sign, e):
    return terms(sign, e[2]) + terms(sign, e[3]) if e[0] == "op" and e[1] == sign else [e]


def reordered(e, rng):
    if isinstance(e, str):
        return e
    if e[0] == "load":
        return (*e[:3], [reordered(x, rng) for x in e[3]])
    if e[0] == "call":
        args = [reordered(x, rng) for x in e[2]]
        if e[1] in ("min", "max") and rng.random() < 0.5 and not is_float(e):
            args = joined("", args[1], args[0])[2:]
        return e[0], e[1], list(args)
    sign = e[1]
    if sign in CHAINS and not is_float(e):
        parts = [reordered(x, rng) for x in terms(sign, e)]
        rng.shuffle(parts)
        while len(parts) > 1:
            i = rng.randrange(len(parts) - 1)
            parts[i:i + 2] = [joined(sign, parts[i], parts[i + 1])]
        return parts[0]
    a, b = reordered(e[2], rng), reordered(e[3], rng)
    return joined(sign, b, a) if sign in COMMUTES and rng.random() < 0.5 else joined(sign, a, b)


def written(e):
    if isinstance(e, str):
        return e
    if e[0] == "load":
        return f"{e[1]}{e[2]}[{', '.join(map(written, e[3]))}]"
    if e[0] == "call":
        return f"{e[1]}({', '.join(map(written, e[2]))})"
    return f"({written(e[2])} {e[1]} {written(e[3])})"


def in_another_order(kernel, rng):
    """Its lines, each computation rewritten."""
    lines = []
    for line in kernel.split("\n"):
        head = re.match(r"compute [^=]*= ", line)
        if head and " by (" not in line:
            reader = Reader(line[head.end():])
            parts = [reader.expression()]
            while reader.peek() == ",":
                reader.take()
                parts.append(reader.expression())
            where = ""
            if reader.peek() == "where":
                reader.take()
                where = f" where {written(reordered(reader.expression(), rng))}"
            if reader.peek():
                raise ValueError(f"not read to the end: {line}")
            line = head[0] + ", ".join(written(reordered(e, rng)) for e in parts) + where
        lines.append(line)
    return "\n".join(lines)


def loops(lathe, kernel, target):
    """(what is in the loops, None), or (None, the message)"""
    verb = ["opt", "-", "--lower", "vta"] if target == "vta" else ["compile", "-", "--emit", "tir", "--target", target]
    done = subprocess.run([lathe, *verb], input=kernel, capture_output=True, text=True, check=False)
    if not done.returncode and target.startswith("cortex-m"):  # the pass that a package runs behind its plan
        done = subprocess.run([lathe, "opt", "--target", target, "--passes", "select", "-"], input=done.stdout,
                              capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr
    found = collections.Counter(re.findall(r"@(?:tir\.vta\.)?(\w+)(?:\.update)?\(", done.stdout))
    found.update(re.findall(rf"\b({CHOSEN})\(", done.stdout))
    found.update({"instructions_left": sum(map(int, re.findall(r'"instructions_left": (\d+)', done.stdout)))})
    return found, None


def kernels_of(lathe, graph, runs):
    """(the text of a kernel, its target), for each list of options"""
    for options in runs:
        printed = subprocess.run([lathe, "compile", "-", "--emit", "schedule", *options], input=graph,
                                 capture_output=True, text=True, check=False).stdout
        target = options[options.index("--target") + 1] if "--target" in options else "x86-64-v3"
        for kernel in re.split(r"^(?=// )", printed, flags=re.M):
            if "compute " in kernel and "--- schedule" in kernel:
                yield kernel, target


# What the models have no kernel for: targets, and whether their rows are of 4-bit weights, too.
TARGETS = ("aarch64", "aarch64-dotprod", "aarch64-i8mm", "rv64gcv_zvl256b", "x86-64-v2", "sapphirerapids",
           "cortex-m4", "cortex-m55")


def layers(data, least, rng):
    """A graph of quantised layers: convolutions of few and of many channels, depthwise, products of one row and of
    several, and of two operands of the run. least: of their weights, which are -1 - least at most."""
    def weight(*dims):
        count = math.prod(dims)
        return f"constant i8{list(dims)} dense {[rng.randint(least, -1 - least) for _ in range(count)]}"

    lines = []
    for i, (operand, dims, attributes) in enumerate((
            ("%x", (12, 8, 3, 3), " {pads = [1, 1, 1, 1]}"), ("%x", (16, 8, 1, 1), ""), ("%y", (8, 3, 3, 3), ""),
            ("%z", (8, 1, 5, 9), ""), ("%x", (8, 1, 3, 3), " {groups = 8, pads = [1, 1, 1, 1]}"),
            ("%x", (8, 1, 2, 6), " {groups = 8}"))):
        lines += [f"  %w{i} = {weight(*dims)}", f"  %r{i} = qnn.conv2d({operand}, %w{i}){attributes}"]
    for i, (operand, dims) in enumerate((("%m", (32, 12)), ("%n", (64, 16)))):
        lines += [f"  %k{i} = {weight(*dims)}", f"  %p{i} = qnn.matmul({operand}, %k{i})"]
    lines.append("  %p2 = qnn.matmul(%n, %by)")
    shapes = {"x": "1, 8, 6, 10", "y": "1, 3, 9, 9", "z": "1, 1, 8, 16", "m": "1, 32", "n": "9, 64"}
    operands = ", ".join([f"%{name}: {data}[{shape}]" for name, shape in shapes.items()] + ["%by: i8[64, 12]"])
    results = ", ".join([f"%r{i}" for i in range(6)] + [f"%p{i}" for i in range(3)])
    return f"func @main({operands}) {{\n" + "\n".join(lines) + f"\n  return {results}\n}}\n"


# Rows that the pass select puts in the place of loops and expressions: kernels here have some of them.
SELECTED = re.compile(r"(widen|bytes|(vectors|gathered_bytes)_of_table|word|(max|min)_of_words|sum_(even|odd)|put|lanes"
                      r"|rounded|scaled|any_of|copy|shifted|fma_once|product_once|high_sum|weighted)\w*")
# Of rows that no default schedule of a model uses: the row, the target, and what stands for it in the loops.
BY_HAND = (
    ("fma_tile", "x86-64-v3", "fma", """placeholder A: float32[8, 24]
placeholder B: float32[24, 32]
compute C: float32[i: 8, j: 32] reduce[k: 24] sum = ((float32*)A[i, k]*(float32*)B[k, j])
return C
--- schedule
reorder C: k i j
tile C.i C.j 8 16 -> io jo ii ji
reorder C: io jo k ii ji
tensorize C.ii fma_tile
"""),
    ("amx_s8s8", "sapphirerapids", "amx_s8s8", """placeholder A: int8[20, 24]
placeholder B: int8[2, 6, 16, 4]
compute C: int32[i: 20, b: 2, j: 16] reduce[k: 6, g: 4] sum = \
(cast(int32, (int8*)A[i, ((k*4) + g)])*cast(int32, (int8*)B[b, k, j, g]))
return C
--- schedule
tensorize C.i amx_s8s8
"""),
    ("rvv_vwmacc", "rv64gcv", "rvv_vwmacc", """placeholder A: int8[5, 24]
placeholder B: int8[24, 41]
compute C: int32[i: 5, j: 41] reduce[k: 24] sum = (cast(int32, (int8*)A[i, k])*cast(int32, (int8*)B[k, j]))
return C
--- schedule
reorder C: i k j
tensorize C.j rvv_vwmacc
"""),
    ("vta_gemm", "vta", "uop_push", """placeholder A: int8[1, 4, 1, 16]
placeholder B: int8[4, 4, 16, 16]
compute A_buf: int8[i0: 1, i1: 4, i2: 1, i3: 16] = (int8*)A[i0, i1, i2, i3]
compute B_buf: int8[i0: 4, i1: 4, i2: 16, i3: 16] = (int8*)B[i0, i1, i2, i3]
compute C_buf: int32[bo: 1, co: 4, bi: 1, ci: 16] reduce[ko: 4, ki: 16] sum = \
(cast(int32, (int8*)A_buf[bo, ko, bi, ki])*cast(int32, (int8*)B_buf[co, ko, ci, ki]))
compute C: int8[i0: 1, i1: 4, i2: 1, i3: 16] = cast(int8, (int32*)C_buf[i0, i1, i2, i3])
return C
--- schedule
set_scope A_buf local.inp_buffer
set_scope B_buf local.wgt_buffer
set_scope C_buf local.acc_buffer
reorder C_buf: bo co ko bi ci ki
compute_at A_buf at C_buf.ko
compute_at B_buf at C_buf.ko
pragma A_buf.i0 "dma_copy" 1
pragma B_buf.i0 "dma_copy" 1
pragma C.i0 "dma_copy" 1
tensorize C_buf.bi vta_gemm
"""),
)


def check_kernel(lathe, kernel, target, seed, times):
    """(what is in its loops, what is wrong or None)"""
    rng = random.Random(seed)
    want, why = loops(lathe, kernel, target)
    if want is None:  # extents that are known only when it runs
        return collections.Counter(), None if "[unsupported]" in why else why
    for _ in range(times):
        other = in_another_order(kernel, rng)
        have, why = loops(lathe, other, target)
        if have != want:
            lost = why or f"{dict(want - have)} are lost, {dict(have - want)} are new"
            return want, f"{lost}\n{other}"
    return want, None


def models(cases):
    """(a name, the text of a graph, lists of options)"""
    for case in cases:
        with open(case, encoding="utf-8") as f:
            text = f.read().split("\n---\n")[0]
        graph = "\n".join(x for x in text.split("\n") if not x.startswith("#"))
        runs = re.findall(r"^# run: compile %i --emit schedule\b([^|\n]*?)(?: -o [^|\n]*)?(?:$| *\|)", text, re.M)
        yield os.path.basename(case), graph, [shlex.split(r) for r in runs]
    for data in ("u8", "i8"):
        for least in (-128, -8):
            text = layers(data, least, random.Random(least))
            yield f"layers of {data}, weights from {least}", text, [["--target", t, "--integers"] for t in TARGETS]


def rows(lathe):
    """Names of all intrinsics, of the message that lists them."""
    text = "placeholder A: int32[4]\ncompute B: int32[i: 4] = (int32*)A[i]\nreturn B\n--- schedule\ntensorize B.i ?\n"
    said = subprocess.run([lathe, "compile", "-", "--emit", "tir"], input=text.replace("?", "no_such_row"),
                          capture_output=True, text=True, check=False).stderr
    return set(re.search(r"intrinsics are: ([\w, ]+)", said)[1].split(", "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("cases", nargs="*")
    o = parser.parse_args()
    cases = o.cases or sorted(glob.glob(os.path.join(TOP, "test", "golden", "kernel", "*.case")))
    all_rows, passed, failed, met = rows(o.lathe), 0, 0, collections.Counter()
    kernels = [(name, kernel, target) for name, graph, runs in models(cases)
               for kernel, target in kernels_of(o.lathe, graph, runs)]
    kernels += [(row, f"// by hand\n{text}", target) for row, target, _, text in BY_HAND]
    with ThreadPoolExecutor(o.j) as pool:
        jobs = [pool.submit(check_kernel, o.lathe, kernel, target, o.seed + i, o.times)
                for i, (_, kernel, target) in enumerate(kernels)]
        for (name, kernel, target), job in zip(kernels, jobs):
            found, why = job.result()
            met += found + collections.Counter({row: found[sign] for row, _, sign, _ in BY_HAND if row == name})
            passed, failed = passed + (why is None), failed + (why is not None)
            if why:
                print(f"FAILED {name}, {kernel.splitlines()[0][3:]} for {target}: {why}")
    alone = {row for row in all_rows if not SELECTED.fullmatch(row)}
    for row in sorted(alone - set(met)) if not o.cases else ():
        failed += 1
        print(f"FAILED no kernel has instructions of {row}: add a layer, or a computation to BY_HAND")
    print(f"any order: {passed} passed, {failed} failed; {len(all_rows & set(met))} rows, {o.times} orders of each "
          f"kernel, seed {o.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
