#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels that counts on an alignment which its stack frame does not have.

    frames.py [--lathe FILE] [--cc CC] [-j N] [--all] [--filter GLOB] [--unaligned]

gcc 12 (and others; its bug 109780) may keep a local array of a leaf function below the stack pointer, store vectors
there that want 16 bytes of alignment, and begin the frame at any 8 bytes. Such a kernel dies by SIGSEGV, or works by
luck. So the kernels of official ONNX cases are built by gcc for x86-64-v3 and v4 at -O2 and -O3, and their code is
read. By default these are the cases that showed the fault and every 120th of the others; --all takes every case and
the networks of the wheel, each different text once.

The reader follows what each register holds through a function, over branches and loops: a sum of the stack pointer at
entry (8 more than a multiple of 16), or of a stack pointer that was rounded down by `and`, and numbers of which it
knows the remainder modulo 64; pointers that are kept in stack slots it follows, too. It reports vmovaps, vmovapd,
vmovdqa, vmovdqa32, vmovdqa64, vmovntps, vmovntpd, vmovntdq, vmovntdqa and the same without v, at an address of the
stack that is not proved to be a multiple of 16, 32 or 64 bytes; where the frame is rounded to as much, only if it is
sure that it is none. It does not see: code behind an indirect jump, other instructions of SSE, which want alignment
as well, and what a function does with a pointer to another one's frame.

The first checks are about the reader itself: functions in assembly, right and wrong ones; and about the mend: a kernel
that gcc 12 compiles wrongly, with the alignment that generated C asks for and without it.
"""
import argparse
import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import cases as official
import package

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
KNOWN = ("test_hardmax_axis_2", "test_hardmax_default_axis", "test_hardmax_negative_axis")
STRIDE = 120
TARGETS = ("x86-64-v3", "x86-64-v4")
LEVELS = ("-O2", "-O3")
FLAGS = ["-std=c99", "-w", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]

# ---- Registers, numbers, addresses ---------------------------------------------------------------

MOST = 64  # remainders are known modulo this or a smaller power of two
FAMILIES = {}
for _r in "abcd":
    FAMILIES.update({f"r{_r}x": f"r{_r}x", f"e{_r}x": f"r{_r}x", f"{_r}x": f"r{_r}x", f"{_r}l": f"r{_r}x",
                     f"{_r}h": f"r{_r}x"})
for _r in ("si", "di", "bp", "sp"):
    FAMILIES.update({f"r{_r}": f"r{_r}", f"e{_r}": f"r{_r}", _r: f"r{_r}", f"{_r}l": f"r{_r}"})
for _i in range(8, 16):
    FAMILIES.update({f"r{_i}{_s}": f"r{_i}" for _s in ("", "d", "w", "b")})
FAMILIES.update({f"{_k}mm{_i}": f"xmm{_i}" for _k in "xyz" for _i in range(32)})
CALLER_SAVED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
ALIGNED = re.compile(r"v?mov(aps|apd|dqa|dqa32|dqa64|ntps|ntpd|ntdq|ntdqa)$")
NO_RESULT = re.compile(r"(cmp|test|bt)[bwlq]?$|nop|v?u?comis[sd]$|jmp|j[a-z]+$|ret|endbr|prefetch|vzero")
MEMORY = re.compile(r"^(?:%[fg]s:)?(-?0x[0-9a-f]+)?\((?:%(\w+))?(?:,%(\w+)(?:,(\d))?)?\)$")


class Value:
    """A number: `rest` modulo `unit`; `stack`: it is, or may be, an address of the frame; `place`: (base, offset) where
    it is one that is known exactly."""

    __slots__ = ("stack", "unit", "rest", "place")

    def __init__(self, stack, unit, rest, place=None):
        self.stack, self.unit, self.rest, self.place = stack, unit, rest % unit, place

    def __eq__(self, other):
        return (self.stack, self.unit, self.rest, self.place) == (other.stack, other.unit, other.rest, other.place)

    def __add__(self, other):
        unit = min(self.unit, other.unit)
        return Value(self.stack or other.stack, unit, self.rest + other.rest)

    def plus(self, n):
        return Value(self.stack, self.unit, self.rest + n, self.place and (self.place[0], self.place[1] + n))

    def times(self, n):
        unit = min(self.unit * n, MOST) if n & (n - 1) == 0 else self.unit
        return Value(False, unit, self.rest * n)

    def join(self, other):
        if self == other:
            return self
        unit = min(self.unit, other.unit)
        while (self.rest - other.rest) % unit:
            unit //= 2
        return Value(self.stack or other.stack, unit, self.rest)


UNKNOWN = Value(False, 1, 0)


def number(n):
    return Value(False, MOST, n)


def operands(text):
    return [x.strip() for x in re.split(r",(?![^(]*\))", text)] if text else []


class State:
    def __init__(self, registers, slots):
        self.registers, self.slots = registers, slots

    @staticmethod
    def entry():
        return State({"rsp": Value(True, 16, 8, ("entry", 0))}, {})

    def copy(self):
        return State(dict(self.registers), dict(self.slots))

    def get(self, name):
        return self.registers.get(FAMILIES.get(name), UNKNOWN)

    def set(self, name, value):
        self.registers[FAMILIES[name]] = value

    def address(self, operand):
        found = MEMORY.match(operand)
        if not found or operand.startswith("%") or found[2] == "rip":
            return UNKNOWN
        value = self.get(found[2]) if found[2] else number(0)
        if found[3]:
            value = value + self.get(found[3]).times(int(found[4] or 1)) if not self.get(found[3]).stack \
                else value + self.get(found[3])
        return value.plus(int(found[1] or "0", 16))

    def join(self, other):
        """Whether `self` changed."""
        changed = False
        for mine, theirs in ((self.registers, other.registers), (self.slots, other.slots)):
            for key in list(mine):
                value = mine[key].join(theirs.get(key, UNKNOWN))
                if not value == mine[key]:
                    mine[key], changed = value, True
            for key in theirs.keys() - mine.keys():
                if theirs[key].stack:
                    mine[key], changed = theirs[key].join(UNKNOWN), True
        return changed


def load(state, operand):
    if operand.startswith("$"):
        return number(int(operand[1:], 16))
    if operand.startswith("%"):
        return state.get(operand[1:])
    place = state.address(operand).place
    return state.slots.get(place, UNKNOWN) if place else UNKNOWN


def store(state, operand, value):
    if operand.startswith("%"):
        if operand[1:] in FAMILIES:
            state.set(operand[1:], value)
        return
    place = state.address(operand).place
    if place:
        state.slots[place] = value


def move_stack(state, n):
    state.set("rsp", state.get("rsp").plus(n))


def step(state, op, args):
    """One instruction on the state."""
    last = args[-1] if args else ""
    if op.startswith("push"):
        move_stack(state, -8)
        store(state, "(%rsp)", load(state, last))
    elif op.startswith("pop"):
        value = load(state, "(%rsp)")
        move_stack(state, 8)
        store(state, last, value)
    elif op in ("leave", "leaveq"):
        state.set("rsp", state.get("rbp"))
        step(state, "pop", ["%rbp"])
    elif op in ("mov", "movq", "movabs", "movl", "vmovq") or op in ("vmovdqa", "vmovaps") and "(" not in "".join(args):
        store(state, last, load(state, args[0]))
    elif op == "lea":
        store(state, last, state.address(args[0]))
    elif op in ("add", "addq", "sub", "subq") and len(args) == 2:
        value, by = load(state, last), load(state, args[0])
        if args[0].startswith("$"):
            n = int(args[0][1:], 16)
            n -= 1 << 64 if n >> 63 else 0
            store(state, last, value.plus(n if op[0] == "a" else -n))
        else:
            store(state, last, value + by if op[0] == "a" else value + Value(by.stack, by.unit, -by.rest))
    elif op in ("xor", "pxor") and args[0] == last:
        store(state, last, number(0))
    elif op in ("and", "andq") and args[0].startswith("$"):
        n = int(args[0][1:], 16)
        low = min(n & -n, MOST) or MOST
        value = load(state, last)
        place = (f"aligned {low}", 0) if value.stack else None
        unit, rest = (low, 0) if value.unit <= low else (value.unit, value.rest // low * low)
        store(state, last, Value(value.stack, unit, rest, place))
    elif op in ("shl", "sal", "shlq") and args[0].startswith("$"):
        store(state, last, load(state, last).times(1 << min(int(args[0][1:], 16), 6)))
    elif op == "vpsllq" and args[0].startswith("$"):
        store(state, last, load(state, args[1]).times(1 << min(int(args[0][1:], 16), 6)))
    elif op.startswith("cmov") and last.startswith("%"):
        store(state, last, load(state, last).join(load(state, args[0])))
    elif op.startswith("call"):
        for name in CALLER_SAVED:
            state.set(name, UNKNOWN)
    elif op.startswith(("rep", "movs", "stos")) and not args or op.startswith("rep"):
        for name in ("rcx", "rsi", "rdi"):
            state.set(name, UNKNOWN)
    elif not NO_RESULT.match(op) and args:
        if op.startswith(("mul", "imul", "div", "idiv")) and len(args) == 1 or op in ("cqto", "cltd"):
            state.set("rax", UNKNOWN)
            state.set("rdx", UNKNOWN)
        elif op.startswith("xchg"):
            for x in args:
                store(state, x, UNKNOWN)
        else:
            store(state, last, UNKNOWN)


def width(args):
    return max({"x": 16, "y": 32, "z": 64}.get(a[1:2], 0) if re.match(r"%[xyz]mm", a) else 0 for a in args)


def check(state, op, args, rounded):
    """What is wrong with one instruction, or None. In a frame that is rounded to what it wants (`rounded`, bytes) the
    compiler did not forget it: there it counts only when it is sure to be wrong."""
    if not ALIGNED.match(op):
        return None
    args = [re.sub(r"\{.*", "", a) for a in args]
    for a in args:
        value, size = (UNKNOWN if a.startswith("%") else state.address(a)), width(args)
        if value.stack and (value.unit < size or value.rest % size):
            if value.rest % min(value.unit, size):
                return "misaligned"
            if rounded < size:
                return "not known to be aligned"
    return None


# ---- Functions -----------------------------------------------------------------------------------

LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:(?:notrack|bnd|cs|ds|data16|lock) )*([a-z]\w*)\s*(.*?)\s*(?:#.*)?$")


def functions(listing):
    """(name, [(address, mnemonic, operands)]) of a listing of objdump."""
    name, lines = None, []
    for line in listing.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            if name:
                yield name, lines
            name, lines = head[1], []
        elif found := LINE.match(line):
            lines.append((int(found[1], 16), found[2], found[3]))
    if name:
        yield name, lines


def target_of(op, text):
    found = re.match(r"([0-9a-f]+) <", text)
    return int(found[1], 16) if op.startswith("j") and found else None


def scan(lines):
    """[(address, text, what is wrong)] of one function."""
    if not any(ALIGNED.match(op) and "(" in text for _, op, text in lines):
        return []
    rounded = max([(1 << 64) - int(text[1:].split(",")[0], 16) for _, op, text in lines
                   if op == "and" and re.match(r"\$0xf+[0-9a-f]0,%rsp$", text)] or [0])
    index = {address: i for i, (address, _, _) in enumerate(lines)}
    decoded = [(op, operands(text), target_of(op, text)) for _, op, text in lines]
    starts = {index[t] for _, _, t in decoded if t in index}
    states, todo = {0: State.entry()}, [0]
    found = {}
    while todo:
        i = todo.pop()
        state = states[i].copy()
        while i < len(lines):
            op, args, target = decoded[i]
            wrong = check(state, op, args, rounded)
            if wrong:
                found[i] = wrong
            if target is None:
                step(state, op, args)
            follow = [index[target]] if target in index else []
            ends = op.startswith(("jmp", "ret", "ud2", "hlt"))
            i += 1
            if not ends and i in starts:
                follow.append(i)
            for n in follow:
                if n not in states:
                    states[n] = state.copy()
                    todo.append(n)
                elif states[n].join(state):
                    todo.append(n)
            if ends or i in starts:
                break
    return [(lines[i][0], f"{lines[i][1]} {lines[i][2]}", wrong) for i, wrong in sorted(found.items())]


def scan_object(path):
    """"FUNCTION+OFFSET: INSTRUCTION: what is wrong", one line for each function that has something wrong."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", path], capture_output=True, text=True,
                             check=True).stdout
    out = []
    for name, lines in functions(listing):
        wrong = scan(lines)
        if wrong:
            address, text, what = wrong[0]
            out.append(f"{name}+{address - lines[0][0]:#x}: {text}: {what}")
    return out


# ---- The reader's own checks ---------------------------------------------------------------------

# name: (assembly, whether it is wrong)
WRITTEN = {
    "below the stack pointer": ("lea -0x30(%rsp),%r9\n vmovaps %xmm0,(%r9)\n ret", True),
    "two pushes": ("push %rbp\n push %rbx\n lea -0x30(%rsp),%r9\n vmovaps %xmm0,(%r9)\n pop %rbx\n pop %rbp\n"
                   " ret", True),
    "aligned by luck": ("lea -0x38(%rsp),%r9\n vmovaps %xmm0,(%r9)\n ret", False),
    "in a loop": ("lea -0x40(%rsp),%rax\n lea -0x20(%rsp),%rdx\n 1: vmovaps %xmm0,(%rax)\n add $0x10,%rax\n"
                  " cmp %rdx,%rax\n jne 1b\n ret", True),
    "by an index": ("xor %eax,%eax\n 1: vmovaps %xmm0,-0x40(%rsp,%rax)\n add $0x10,%rax\n cmp $0x40,%rax\n jne 1b\n"
                    " ret", True),
    "by an index, aligned": ("xor %eax,%eax\n 1: vmovaps %xmm0,-0x48(%rsp,%rax)\n add $0x10,%rax\n cmp $0x40,%rax\n"
                             " jne 1b\n ret", False),
    "by a slot": ("sub $0x20,%rsp\n lea -0x20(%rsp),%rax\n mov %rax,0x8(%rsp)\n xor %eax,%eax\n mov 0x8(%rsp),%rcx\n"
                  " vmovdqa %xmm0,(%rcx)\n add $0x20,%rsp\n ret", True),
    "a rounded frame": ("push %rbp\n mov %rsp,%rbp\n and $-32,%rsp\n lea -0x40(%rsp),%rax\n vmovdqa %ymm0,(%rax)\n"
                        " leave\n ret", False),
    "more than the frame has": ("push %rbp\n lea -0x40(%rsp),%rax\n vmovdqa %ymm0,(%rax)\n pop %rbp\n ret", True),
    "kept in a vector": ("lea -0x40(%rsp),%rax\n vmovq %rax,%xmm3\n xor %eax,%eax\n vmovq %xmm3,%rdx\n"
                         " vmovaps %xmm0,(%rdx)\n ret", True),
    "a rounded frame, misaligned": ("push %rbp\n mov %rsp,%rbp\n and $-32,%rsp\n vmovdqa %ymm0,-0x30(%rsp)\n leave\n"
                                    " ret", True),
    "a rounded frame, by any index": ("push %rbp\n mov %rsp,%rbp\n and $-32,%rsp\n vmovaps -0x20(%rsp,%rdi),%xmm0\n"
                                      " leave\n ret", False),
    "another's memory": ("vmovaps %xmm0,0x8(%rdi)\n ret", False),
    "one of two": ("lea -0x40(%rsp),%rax\n test %edi,%edi\n je 1f\n lea -0x38(%rsp),%rax\n 1: vmovaps %xmm0,(%rax)\n"
                   " ret", True),
}


def check_written(cc, folder):
    source, wrong = os.path.join(folder, "written.s"), 0
    names = {f"f{i}": name for i, name in enumerate(WRITTEN)}
    with open(source, "w") as f:
        for label, name in names.items():
            f.write(f".globl {label}\n.type {label},@function\n{label}:\n {WRITTEN[name][0]}\n")
    built = source + ".o"
    subprocess.run([*cc, "-c", "-o", built, source], check=True)
    found = {line.split("+")[0] for line in scan_object(built)}
    for label, name in names.items():
        if (label in found) != WRITTEN[name][1]:
            print(f"FAILED the reader: {name}: {'wrong' if WRITTEN[name][1] else 'right'} code is taken for the other")
            wrong += 1
    return wrong, len(names)


# The kernel of test_hardmax_axis_2 as it was when it died; Hardmax has other loops today, and which loops gcc gets
# wrong is luck.
MEND = "__attribute__((aligned(32)))"
HARDMAX = """#include <stdint.h>
#define ROW(r) { \\
    const float acc_value = argmax_v0[i0 * 4 + r], value = x[i0 * 20 + k + 5 * r]; \\
    const int64_t acc_index = argmax_v1[i0 * 4 + r]; \\
    const float next = ((acc_index < 0) || ((value > acc_value) || ((value == acc_value) && (k < acc_index)))) \\
        ? value : acc_value; \\
    const int64_t next_1 = ((acc_index < 0) || ((value > acc_value) || ((value == acc_value) && (k < acc_index)))) \\
        ? k : acc_index; \\
    argmax_v0[i0 * 4 + r] = next; \\
    argmax_v1[i0 * 4 + r] = next_1; }
static int32_t fused_argmax(const float *restrict x, int64_t *restrict argmax_v1)
{
    LATHE_LOCAL float argmax_v0[12];
    for (int64_t i0 = 0; i0 < 3; i0++) {
        argmax_v0[i0 * 4] = argmax_v0[i0 * 4 + 1] = argmax_v0[i0 * 4 + 2] = argmax_v0[i0 * 4 + 3] = 0.0f;
        argmax_v1[i0 * 4] = argmax_v1[i0 * 4 + 1] = argmax_v1[i0 * 4 + 2] = argmax_v1[i0 * 4 + 3] = -1;
        for (int64_t k = 0; k < 5; k++) {
            ROW(0)
            ROW(1)
            ROW(2)
            ROW(3)
        }
    }
    return 0;
}
int32_t wrapped(void *const *a) { return fused_argmax(a[0], a[1]); }
"""


def check_mend(cc, folder):
    """(wrong, checks): without the mend gcc 12 must get the kernel wrong, or this check holds nothing; with it no gcc
    may."""
    source, wrong, count = os.path.join(folder, "hardmax.c"), 0, 1
    with open(os.path.join(TOP, "kernel", "common", "local.h")) as f:
        if f"define LATHE_LOCAL {MEND}" not in f.read():
            print("FAILED generated C asks for another alignment than this test")
            wrong += 1
    with open(source, "w") as f:
        f.write(HARDMAX)
    version = subprocess.run([*cc, "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip()
    for level in LEVELS:
        for mend in ("", MEND):
            built = f"{source}{level}{len(mend)}.o"
            subprocess.run([*cc, *FLAGS, level, "-march=x86-64-v3", f"-DLATHE_LOCAL={mend}", "-c", "-o", built, source],
                           check=True)
            lines = scan_object(built)
            if mend and lines:
                print(f"FAILED {level}: a local array that asks for its alignment: {lines[0]}")
            elif not mend and not lines and version == "12":
                print(f"FAILED {level}: gcc 12 compiles the kernel that died as it should: take another one")
            wrong += bool(lines) if mend else not lines and version == "12"
            count += 1
    return wrong, count


# ---- Kernels -------------------------------------------------------------------------------------


def generate(case, target, options, work):
    """The text of a model's kernels, or None where it does not compile."""
    out = os.path.join(work, f"{case.name}-{target}")
    message = package.compile_model(options.lathe, case.model, out, "m", ["--target", target])
    return out if message is None else None


def build(folder, target, level, options, aligned=True):
    """Builds a package's kernels, or what they would be without the alignment of their arrays; the object."""
    source = os.path.join(folder, "src", "ops.c")
    if not aligned:
        with open(source) as f:
            text = f.read()
        source = os.path.join(folder, "src", "unaligned.c")
        with open(source, "w") as f:
            f.write(text.replace("LATHE_LOCAL __attribute__((aligned(32)))", "LATHE_LOCAL"))
    built = f"{source}{level}.o"
    subprocess.run([*options.cc, *FLAGS, level, f"-march={target}", "-I", os.path.join(folder, "src"), "-I",
                    os.path.join(folder, "include"), "-c", "-o", built, source], check=True)
    return built


def scan_case(case, options, work, seen):
    """([what is wrong], objects read)"""
    wrong, count = [], 0
    for target in TARGETS:
        folder = generate(case, target, options, work)
        if folder is None:
            continue
        with open(os.path.join(folder, "src", "ops.c"), "rb") as f:
            text = re.sub(rb"^ \* of .*$", b"", f.read(), flags=re.M)
        digest = hashlib.sha256(target.encode() + text).digest()
        if digest in seen:
            continue
        seen.add(digest)
        for level in LEVELS:
            lines = scan_object(build(folder, target, level, options, not options.unaligned))
            wrong += [f"{case.name} {target} {level}: {line}" for line in lines]
            count += 1
        subprocess.run(["rm", "-rf", folder], check=True)
    return wrong, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default=os.path.join(TOP, "build", "lathe"))
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--filter", default="*", help="only cases whose names match this pattern")
    parser.add_argument("--unaligned", action="store_true", help="without the mend, to see what it is needed for")
    options = parser.parse_args()
    options.lathe, options.cc = os.path.abspath(options.lathe), options.cc.split()
    if os.uname().machine != "x86_64":
        print("needs x86-64")
        return 77
    every = official.find()
    chosen = [c for i, c in enumerate(every) if c.name in KNOWN or options.all or i % STRIDE == 0 and c.kind != "light"]
    chosen = [c for c in chosen if fnmatch.fnmatch(c.name, options.filter)]
    with tempfile.TemporaryDirectory(prefix="frames-") as work:
        failed, passed = check_written(options.cc, work)
        wrong, more = check_mend(options.cc, work)
        failed, passed = failed + wrong, passed - failed + more - wrong
        seen = set()
        with ThreadPoolExecutor(options.jobs) as pool:
            for wrong, count in pool.map(lambda c: scan_case(c, options, work, seen), chosen):
                for line in wrong:
                    print("FAILED", line)
                failed += len(wrong)
                passed += count
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
