#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inner loops of RISC-V vector code, from the disassembly of a shared object: rvv_loops.py OBJECT VLEN.

The loops that matter multiply scalars by vectors (vfmacc.vf) into a tile of accumulators: of matrix products and of
convolutions over channels. A tile of v vectors and r rows needs, in each step, v * r multiply-adds, v loads of
vectors, as many additions for their addresses, because these loads have no displacement, and r loads of scalars; and
the loop a counter and a branch. Scalars of rows whose distance a run decides, or is beyond a displacement, need an
addition each as well: the distance lies in a register. Whatever else it holds is overhead: other addresses, registers
kept in memory.
"""
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

OBJCOPY, OBJDUMP = "riscv64-linux-gnu-objcopy", "riscv64-linux-gnu-objdump"
FMA = re.compile(r"vfn?m(acc|sac|add|sub)\.v[fv]$")
BRANCH = re.compile(r"(b|beq|bne|blt|bge|bltu|bgeu|beqz|bnez|blez|bgez|bltz|bgtz|ble|bgt|bleu|bgtu|j)$")
CALL = re.compile(r"(jal|jalr|call)$")
ENDS = ("ret", "jr", "ebreak", "unimp")  # nothing follows
SPILL = re.compile(r"v[ls][1248]r\.v$")  # whole registers of no type: the compiler's own, to the stack and back


@dataclass
class Instruction:
    at: int
    name: str
    operands: str
    vtype: str  # what the vset* before it says: "8,e32,m1"; "" where none is seen


@dataclass
class Loop:
    function: str
    body: list
    vlen: int

    def count(self, pattern):
        return sum(bool(re.match(pattern, i.name)) for i in self.body)

    def multiply_adds(self):
        return [i for i in self.body if FMA.match(i.name)]

    def vectors(self):
        return [i for i in self.body if i.name.startswith("v") and not i.name.startswith("vset")]

    def spills(self):
        return [i for i in self.body if SPILL.match(i.name)]

    def is_full(self):
        """Every multiply-add works on one whole register of 32-bit elements."""
        return all(i.vtype in (f"{self.vlen // 32},e32,m1", "all,e32,m1") for i in self.multiply_adds())

    def tile(self):
        """(vectors, rows, steps) where the loop is a product: each vector times each scalar; else None."""
        products = self.multiply_adds()
        vectors, scalars = self.count(r"vl(e32|1re32)\.v"), self.count("flw")
        if not products or not all(i.name.endswith(".vf") for i in products):
            return None
        steps = vectors * scalars // len(products)
        if steps == 0 or vectors % steps or scalars % steps or vectors * scalars != steps * len(products):
            return None
        return vectors // steps, scalars // steps, steps

    def steps_to_rows(self):
        """Additions of a register that bring an address from one row's scalar to the next."""
        count, step = 0, None
        for i in self.body:
            words = re.split(r"[,()]", i.operands)
            if i.name == "add" and words[0] == words[1] and not re.match(r"-?\d", words[2]):
                step = words[0]
            elif i.name == "flw" and words[1:3] == ["0", step]:
                count, step = count + 1, None
        return count

    def ratio(self):
        """Instructions against what the tile needs."""
        v, r, steps = self.tile()
        return len(self.body) / (steps * (v * r + 2 * v + r) + self.steps_to_rows() + 2)


def setting(operands):
    words = operands.replace(" ", "").split(",")
    length = words[1] if not words[1].startswith("zero") else "all"
    return ",".join([length, *words[2:4]])


def functions(path):
    """Name and instructions of each function. The C library's start-up code is in the object too, and its symbols say
    that there are no vectors, which the disassembler would believe."""
    with tempfile.NamedTemporaryFile(suffix=".so") as plain:
        subprocess.run([OBJCOPY, "-w", "--strip-symbol=$x*", path, plain.name], check=True)
        text = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", plain.name], capture_output=True, text=True,
                              check=True).stdout
    found, code, vtype = {}, [], ""
    for line in text.splitlines():
        start = re.match(r"[0-9a-f]+ <([^.].*)>:$", line)  # .L...: a place in a function
        at = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", line)
        if start:
            code, vtype = found.setdefault(start[1], []), ""
        elif at:
            if at[2].startswith("vset"):
                vtype = setting(at[3])
            code.append(Instruction(int(at[1], 16), at[2], at[3], vtype))
    return found


class Flow:
    """Blocks of a function: where each begins, what follows it, and what comes before it always (`above`: of each block
    the nearest such one). A block is named by the number of its first instruction."""

    def __init__(self, code):
        self.code, number = code, {i.at: n for n, i in enumerate(code)}
        jumps = {}
        for n, i in enumerate(code):
            to = re.search(r"([0-9a-f]+) <", i.operands) if BRANCH.match(i.name) else None
            if to or i.name in ENDS:
                jumps[n] = number.get(int(to[1], 16)) if to else None
        targets = {t for t in jumps.values() if t is not None}
        starts = sorted({0, *targets, *(n + 1 for n in jumps if n + 1 < len(code))})
        self.ends = dict(zip(starts, starts[1:] + [len(code)]))
        self.after = {}
        for start, end in self.ends.items():
            target, last = jumps.get(end - 1), code[end - 1].name
            falls = end < len(code) and last != "j" and last not in ENDS
            self.after[start] = [target] * (target is not None) + [end] * falls
        self.order = self.reverse_postorder()
        self.before = {b: [a for a in self.order if b in self.after[a]] for b in self.order}
        self.above = self.dominators()

    def reverse_postorder(self):
        order, seen, stack = [], {0}, [(0, iter(self.after[0]))]
        while stack:
            following = next((b for b in stack[-1][1] if b not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(self.after[following])))
        return order[::-1]

    def dominators(self):
        place, above, changed = {b: n for n, b in enumerate(self.order)}, {0: 0}, True
        while changed:
            changed = False
            for b in self.order[1:]:
                known = [a for a in self.before[b] if a in above]
                nearest = known[0]
                for a in known[1:]:
                    while a != nearest:
                        if place[a] > place[nearest]:
                            a = above[a]
                        else:
                            nearest = above[nearest]
                if above.get(b) != nearest:
                    above[b], changed = nearest, True
        return above

    def comes_before(self, a, b):
        while b not in (a, 0):
            b = self.above[b]
        return a == b

    def loops(self):
        """{first block: all blocks}"""
        found = {}
        for last in self.order:
            for head in self.after[last]:
                if not self.comes_before(head, last):
                    continue
                body, left = found.setdefault(head, {head}), [last]
                while left:
                    b = left.pop()
                    if b not in body:
                        body.add(b)
                        left += self.before[b]
        return found


def inner_loops(function, code, vlen):
    """Loops without another one in them, and without a call: what is called may have some."""
    flow = Flow(code)
    loops = flow.loops()
    for head, blocks in loops.items():
        body = [i for b in sorted(blocks) for i in code[b:flow.ends[b]]]
        if not any(b in loops for b in blocks - {head}) and not any(CALL.match(i.name) for i in body):
            yield Loop(function, body, vlen)


def main_loops(path, vlen):
    """Of each function with such loops the one with the largest tile."""
    result = {}
    for name, code in functions(path).items():
        loops = [x for x in inner_loops(name, code, vlen) if x.tile() and len(x.multiply_adds()) >= 4]
        if loops:
            result[name] = max(loops, key=lambda x: x.tile()[0] * x.tile()[1])
    return result


def describe(loop):
    v, r, steps = loop.tile()
    n = len(loop.body)
    return (f"{loop.function}: tile {v} x {r}, {n} instructions for {len(loop.multiply_adds())} multiply-adds: "
            f"{n / len(loop.multiply_adds()):.2f} each, {loop.ratio():.2f} times what the tile needs")


if __name__ == "__main__":
    for one in main_loops(sys.argv[1], int(sys.argv[2])).values():
        print(describe(one), "" if one.is_full() else f"NOT FULL {one.multiply_adds()[0].vtype}")
