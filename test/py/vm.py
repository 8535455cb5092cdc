#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Portable modules, made by an assembler of their own (vm_asm.py), loaded and run by test/vm/vmrun.c.

    vm.py [--vmrun FILE | --for MACHINE...] [--filter GLOB] [--update] [-v]

Cases are text in, text out: test/vm/cases/*.case has a module, the C source of its kernels with their numbers of
addresses, commands of vmrun, and what it prints; --update rewrites the last part. Beside them: every error of the
verifier, from a table; every file cut off at every length; files of other machines, found by sections and by the
dynamic segment; trees of modules that are wrong; machine code as stock modules have it. --for aarch64 riscv64 builds
the virtual machine for these machines, without jansson, and without libffi where there is none (test/libffi), and runs
all that under qemu's user mode.
"""
import argparse
import fnmatch
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import vm_asm as asm

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = os.path.join(TOP, "test", "vm", "cases")
with open(os.path.join(TOP, "test", "time_limit")) as limit:
    TIME_LIMIT = int(limit.read())


class Failure(Exception):
    pass


@dataclass
class Machine:
    """Where vmrun runs: how it is started, and what makes machine code for it."""
    vmrun: str
    emulator: tuple = ()
    cc: str = "cc"
    libffi: bool = True


class Runner:
    def __init__(self, machine, work):
        self.machine = machine
        self.command = [*machine.emulator, os.path.abspath(machine.vmrun)]
        self.work = work
        # Sources are compiled once for all runs of the tests; memory that nobody has is refused, not a finding.
        cache = os.path.join(os.path.dirname(os.path.abspath(machine.vmrun)), "vm-cache")
        self.environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1", XDG_CACHE_HOME=cache,
                                CC=machine.cc)
        self.environment.pop("TVM_RVV_COMPILER", None)

    def run(self, data, script="", arguments=(), log=False):
        """What vmrun prints; with `log`, what it says on standard error instead, which else must be nothing."""
        path = os.path.join(self.work, "module.so")
        with open(path, "wb") as f:
            f.write(data)
        done = subprocess.run(self.command + list(arguments) + [path], input=script, capture_output=True, text=True,
                              timeout=TIME_LIMIT, env=self.environment, check=False)
        said = re.sub(r"==\d+==WARNING: AddressSanitizer failed to allocate.*\n|warning: this gcc makes no vector.*\n",
                      "", done.stderr)
        if log:
            return said
        if done.returncode != 0 or said:
            raise Failure(f"status {done.returncode}: {said[-2000:]}\n{done.stdout}")
        return done.stdout.replace(path, "MODULE")


def kernels_of(line):
    """fill=1 twice=2+2 thrice=2:12,12: addresses, of two of them behind which stand part and parts, and whose handles
    they are."""
    kernels = {}
    for word in line.split():
        name, n = word.split("=")
        n, _, devices = n.partition(":")
        n, _, numbers = n.partition("+")
        kernels[name] = (int(n), [int(d) for d in devices.split(",") if d], int(numbers or 0))
    return kernels


def split_case(text):
    parts = re.split(r"^--- (source|run|expect)(.*)\n", text, flags=re.MULTILINE)
    case = {"module": parts[0], "source": None, "run": "", "expect": None, "kernels": {}}
    for name, rest, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        case[name] = body
        if name == "source":
            case["kernels"] = kernels_of(rest)
    return case


def run_case(runner, path, update):
    with open(path) as f:
        text = f.read()
    case = split_case(text)
    got = runner.run(asm.elf(asm.module(case["module"], case["source"], case["kernels"])), case["run"])
    if got == case["expect"]:
        return
    if update:
        with open(path, "w") as f:
            f.write(re.split(r"^--- expect\n", text, flags=re.MULTILINE)[0] + "--- expect\n" + got)
        return
    raise Failure(f"expected:\n{case['expect']}\ngot:\n{got}")


# What is wrong with an instruction, or with a function, and a part of the message.
VERIFIER = {
    "operation": ("words 5 0", "instruction 1: operation 5 is not known"),
    "operation zero": ("words 0", "operation 0 is not known"),
    "call too short": ("words 1 0 0", "a call of 4 words stands in 3"),
    "call shorter than its arguments": ("words 1 0 1 2 0", "a call of 6 words stands in 5"),
    "call longer than its arguments": ("words 1 0 1 0 0", "a call of 4 words stands in 5"),
    "call with fewer than no arguments": ("words 1 0 1 -1", "a call with -1 arguments"),
    "call with too many arguments": ("words 1 0 1 4294967296", "a call with 4294967296 arguments"),
    "call of nothing": ("words 1 0 7 0", "a call of function 7 of 3"),
    "call of a negative function": ("words 1 0 -1 0", "a call of function -1 of 3"),
    "call with a wrong number": ("words 1 0 0 0", "a call of main with 0 arguments, which takes 1"),
    "destination": ("words 1 4 1 0", "the destination is register 4 of 4"),
    "destination below 0": ("words 1 -1 1 0", "the destination is register -1 of 4"),
    "destination machine": (f"words 1 {asm.VM} 1 0", "the destination is register"),
    "argument register": ("words 1 0 2 1 4", "argument 0 is register 4 of 4"),
    "argument register below 0": (f"words 1 0 2 1 {(1 << 56) - 1}", "argument 0 is register -1 of 4"),
    "argument constant": (f"words 1 0 2 1 {2 << 56 | 1}", "argument 0 is constant 1 of 1"),
    "argument constant below 0": (f"words 1 0 2 1 {3 * (1 << 56) - 1}", "argument 0 is constant -1 of 1"),
    "argument function": (f"words 1 0 2 1 {3 << 56 | 3}", "argument 0 is function 3 of 3"),
    "argument kind": (f"words 1 0 2 1 {4 << 56}", "argument 0 is of kind 4, which is not known"),
    "argument kind 255": ("words 1 0 2 1 -1", "argument 0 is of kind 255"),
    "return": ("words 2 4", "the result is register 4 of 4"),
    "return machine": (f"words 2 {asm.VM}", "the result is register"),
    "return length": ("words 2 0 0", "a return of 2 words stands in 3"),
    "goto beyond": ("words 3 2", "a jump by 2 leaves the function, which has 3 instructions"),
    "goto before": ("words 3 -2", "a jump by -2 leaves the function"),
    "goto far": ("words 3 9223372036854775807", "leaves the function"),
    "goto far back": ("words 3 -9223372036854775808", "leaves the function"),
    "goto length": ("words 3", "a goto of 2 words stands in 1"),
    "if register": ("words 4 4 1", "the condition is register 4 of 4"),
    "if void": (f"words 4 {asm.VOID} 1", "the condition is register"),
    "if target": ("words 4 0 2", "a jump by 2 leaves the function"),
    "if length": ("words 4 0", "a if of 3 words stands in 2"),
}

FUNCTIONS = {
    "goes on behind its end": ("func main(x)\n f(%0)\n", "the function goes on behind its last instruction"),
    "ends in a branch": ("func main(x)\n l:\n if %0 else l\n", "the function goes on behind its last instruction"),
    "parameters": ("func main(x) registers=0\n ret void\n", "has 0 registers; 1 to"),
    "registers below 0": ("func main() registers=-1\n ret void\n", "has -1 registers"),
    "registers": ("func main() registers=99999999\n ret void\n", "has 99999999 registers"),
}


def wrong_instruction(bad):
    return f"""
func main(x) registers=4
    packed("constant")
    {bad}
    ret %0
func other()
    ret void
"""


def check_message(got, wanted):
    if not re.match(r"LATHE_E_[A-Z]+: MODULE: ", got) or wanted not in got or got.count("\n") != 1:
        raise Failure(f"expected '{wanted}', got: {got}")


def refused(runner, data, wanted, arguments=()):
    check_message(runner.run(data, "", arguments), wanted)


def set_function(index, at, value):
    """An executable whose function `index` has another number: 0 start, 1 end, 2 parameters, 3 registers."""
    x = asm.Assembler().assemble("func main(x)\n ret %0\nfunc other(y)\n ret %0\n")
    x.functions[index][2 + at] = value
    return asm.container([("relax.VMExecutable", x.bytes())], [[]])


def executable_tests(runner):
    """(name, function) of executables that are wrong as a whole."""
    plain = asm.executable("func main(x)\n f([1], 1, i64(2), f64(0.5), :int8, \"text\", int8[2]{1, 2})\n ret %0\n")
    at = plain.index(struct.pack("<Q", asm.TENSOR_MAGIC))
    with_rank = at + 24
    with_bytes = at + 24 + 8 + 8

    def patched(offset, data):
        return plain[:offset] + data + plain[offset + len(data):]

    def wrapped(data):
        return asm.elf(asm.container([("relax.VMExecutable", data)], [[]]))

    table = {
        "magic": (patched(0, b"\0"), "not a Relax VM executable: it begins with 0xd225de2f42141500"),
        "version": (patched(16, b"9"), "an executable of version 9.14; 0.14 is supported"),
        "tensor magic": (patched(at, b"\0"), "constant 5: it does not begin as a tensor does"),
        "tensor rank": (patched(with_rank, struct.pack("<i", 65)), "constant 5: it has 65 dimensions; 0 to 64 are"),
        "tensor rank below 0": (patched(with_rank, struct.pack("<i", -1)), "has -1 dimensions"),
        "tensor bytes": (patched(with_bytes, struct.pack("<q", 3)), "a tensor of int8[2] cannot have 3 bytes"),
        "tensor extent": (patched(with_bytes - 8, struct.pack("<q", 1 << 62)), "cannot have 2 bytes"),
        "tensor extent below 0": (patched(with_bytes - 8, struct.pack("<q", -2)), "cannot have 2 bytes"),
        "tensor of handles": (patched(with_rank + 4, b"\3"), "cannot have 2 bytes"),
        "bytes behind": (plain + b"\0", "bytes follow its instructions"),
        "two functions of one name": (plain.replace(asm.text("f"), asm.text("main")), "there are two functions main"),
        "name with a zero": (plain.replace(b"main", b"ma\0n"), "a name holds a zero"),
        "kind of function": (patched(8 + 12 + 8, b"\7"), "is of kind 7, which is not known"),
        "offset of an instruction": (patched(len(plain) - 8 * 15, struct.pack("<q", 99)), "begins at word 99 of"),
        "order of instructions": (patched(len(plain) - 8 * 16, struct.pack("<q", 12)), "it begins behind the next one"),
    }
    for name, (data, wanted) in table.items():
        yield f"executable/{name}", lambda d=data, w=wanted: refused(runner, wrapped(d), w)
    tag = plain.index(struct.pack("<i", 69) + struct.pack("<QQ", 1, 1))
    yield "executable/tag", lambda: refused(runner, wrapped(patched(tag, struct.pack("<i", 99))), "the tag 99")
    numbers = {(0, 0, -1): "instructions -1 to", (0, 1, 0): "instructions 0 to 0",
               (0, 1, 9): "instructions, the file 2", (0, 2, -1): "has -1 parameters",
               (0, 2, 2): "has 2 parameters and 1 names", (0, 2, 1 << 40): "parameters;",
               (0, 3, 1 << 40): "registers;", (1, 0, 0): "have 3 instructions, the file 2",
               (1, 1, 1 << 40): "instructions 1 to"}
    for (index, which, value), wanted in numbers.items():
        yield (f"executable/function {index} {which} {value}",
               lambda a=(index, which, value), w=wanted: refused(runner, asm.elf(set_function(*a)), w))
    scope = asm.Assembler().assemble("func main(x)\n f([1])\n ret %0\n").bytes()
    at_scopes = scope.index(struct.pack("<QQi", 0, 1, 69))
    scoped = (scope[:at_scopes] + struct.pack("<Qq", 1, 0) + asm.text("global.texture") + scope[at_scopes + 8:])
    yield "executable/scope", lambda: refused(runner, wrapped(scoped), "the memory scope global.texture")
    fine = scope[:at_scopes] + struct.pack("<Qq", 1, 0) + asm.text("global") + scope[at_scopes + 8:]
    yield "executable/global scope", lambda: expect(runner, wrapped(fine), "", "")


def expect(runner, data, script, wanted, arguments=()):
    got = runner.run(data, script, arguments)
    if got != wanted:
        raise Failure(f"expected {wanted!r}, got {got!r}")


def container_tests(runner):
    """(name, function) of trees of modules, and of source modules."""
    main = ("relax.VMExecutable", asm.executable("func main(x)\n ret %0\n"))
    source = ("my_device", asm.source_module("void k(void *p) {}", {"k": 1}))
    good = asm.container([main], [[]])
    info = asm.source_module("", {"k": 1})

    def tree(modules, children):
        return asm.elf(asm.container(modules, children))

    def raw(body):
        return asm.elf(struct.pack("<Q", len(body)) + body)

    def with_source(data):
        return tree([main, ("my_device", data)], [[1], []])

    table = {
        "kind": (tree([main, ("cuda", b"x")], [[1], []]), "it imports a module of kind cuda, which is not known"),
        "empty kind": (tree([main, ("", b"x")], [[1], []]), "it imports a module of kind , which is not known"),
        "parent": (tree([main, source], [[0], []]), "a child does not come behind its parent"),
        "child": (tree([main, source], [[2], []]), "a child does not come behind its parent"),
        "child far": (tree([main, source], [[1 << 62], []]), "a child does not come behind its parent"),
        "no module": (raw(asm.words([0]) + asm.words([])), "it has no module"),
        "rows fall": (raw(asm.words([0, 1, 0]) + asm.words([1])), "the ends of its rows fall"),
        "first row": (raw(asm.words([1, 1]) + asm.words([])), "its first row does not begin at 0"),
        "children": (raw(asm.words([0, 1]) + asm.words([])), "the number of children is not that of its rows"),
        "many modules": (raw(asm.words([0] * 2000) + asm.words([])), "a tree of more than 1024 modules"),
        "huge count": (raw(struct.pack("<Q", 1 << 61)), "it ends in the ends of its rows"),
        "behind": (raw(good[8:] + b"\0"), "bytes follow its last module"),
        "length": (asm.elf(struct.pack("<Q", 1 << 40)), "it is shorter than it says"),
        "library": (asm.elf(asm.container([main, ("_lib", b"")], [[1], []]), machine=8),
                    "holds machine code for ELF machine 8; this is"),
        "format": (with_source(asm.source_module("", {"k": 1}, fmt="cuda")), "a source module in the format cuda"),
        "kernel twice": (with_source(asm.text("c") + asm.vec([info[17:-8]] * 2) + asm.text("")), "the kernel k twice"),
        "kernel name": (with_source(asm.source_module("", {"k; rm": 1})), "k; rm cannot be the name of a kernel in C"),
        "kernel arguments": (with_source(info.replace(asm.dtype("handle"), asm.dtype("int32"))),
                             "argument 0 of kernel k is not a tensor"),
        "kernel of a part": (with_source(asm.source_module("", {"k": (2, [], 1)})), "kernel k takes one uint32"),
        "kernel of numbers": (with_source(asm.source_module("", {"k": (1, [], 3)})),
                              "argument 1 of kernel k is not a tensor"),
        "kernel devices": (with_source(asm.source_module("", {"k": (2, [12])})),
                           "kernel k has 2 arguments, and the devices of 1"),
        "kernel on the host": (with_source(asm.source_module("", {"k": (1, [1])})),
                               "argument 0 of kernel k is on device type 1"),
        "kernel on no device": (with_source(asm.source_module("", {"k": (1, [-1])})),
                                "argument 0 of kernel k is on device type -1"),
        "behind source": (with_source(info + b"\0"), "bytes follow its source"),
    }
    for name, (data, wanted) in table.items():
        yield f"container/{name}", lambda d=data, w=wanted: refused(runner, d, w)
    yield "container/no jit", lambda: refused(runner, tree([main, source], [[1], []]), "no_jit forbids compiling",
                                              ["--no-jit"])
    shared = [main] + [source] * 1
    doubled = [("relax.VMExecutable", main[1])] * 30
    yield "container/two ways", lambda: expect(runner, tree(shared, [[1, 1], []]), "init 1 0 1\ncall main 5\n",
                                               "none\n5\n")
    # 2^29 ways lead to the last module: a walk must look at each but once.
    yield "container/many ways", lambda: expect(
        runner, tree(doubled, [[i + 1, i + 1] for i in range(29)] + [[]]), "kernel nothing\n",
        "LATHE_E_NAME: the executable and its imports have no function nothing\n")


STOCK = """
func main(x) registers=4
    %1 = vm.builtin.alloc_storage(vm, [16], 0, :uint8, "global")
    %2 = vm.builtin.alloc_tensor(%1, 0, [4], :float32)
    twice(%0, %2)
    ret %2
func get(i) registers=4
    %1 = vm.builtin.alloc_storage(vm, [16], 0, :uint8, "global")
    %2 = vm.builtin.alloc_tensor(%1, 0, [4], :float32)
    get_constant(%0, %2)
    ret %2
func next(n)
    %1 = next_int(%0)
    ret %1
"""
STOCK_SCRIPT = """init 1 0 2
call main float32[4]{1,2,3,4}
call next 41
call get 0
call get 1
call get 2
kernel twice float32[4]{1}
kernel silent
kernel parallel float32[4]{0} 1
kernel parallel float32[4]{0} 2
kernel parallel float32[4]{0} 3
kernel parallel float32[4]{0} 4
kernel parallel float32[4]{0} 0
repeat 2 kernel imported float32[4]{5,6,7,8} float32[4]{0}
kernel lost
kernel _library_bin
kernel _library_ctx
"""
STOCK_EXPECT = """none
float32[4] { 2 4 6 8 }
42
float32[4] { 1 2 3 4 }
float32[4] { 5 5 5 5 }
LATHE_E_KERNEL: function get, instruction 2, get_constant: kernel get_constant: ValueError: no such constant
LATHE_E_KERNEL: kernel twice: TypeError: twice takes 2 arguments
LATHE_E_KERNEL: kernel silent: ended with code 7 and said nothing
float32[4] { 1 0 0 0 }
1
float32[4] { 2 3 0 0 }
2
LATHE_E_KERNEL: kernel parallel: ValueError: task 2 of 3
float32[4] { 4 5 6 7 }
4
float32[4] { 2 3 0 0 }
0
float32[4] { 5 6 7 8 }
float32[4] { 15 18 21 24 }
float32[4] { 5 6 7 8 }
float32[4] { 15 18 21 24 }
LATHE_E_KERNEL: kernel lost: RuntimeError: no imported module has a function nobody
LATHE_E_NAME: the executable and its imports have no function _library_bin
LATHE_E_NAME: the executable and its imports have no function _library_ctx
"""
TRIPLE = """#include <stdint.h>
int32_t triple_packed(void *const *d, uint32_t part, uint32_t parts)
{
    for (int i = 0; i < 4; i++)
        ((float *)d[1])[i] = 3 * ((float *)d[0])[i];
    return 0;
}
"""


def constants(tensors, symbols):
    """tensors: name -> stored tensor; symbols: name -> names of its constants."""
    return (asm.vec([asm.text(n) for n in tensors]) + asm.vec(list(tensors.values())) +
            asm.vec([asm.text(s) for s in symbols]) + asm.vec([asm.vec([asm.text(n) for n in names])
                                                               for names in symbols.values()]))


def stock_library(runner):
    """A shared object with machine code and a container, as stock modules are: constants in front of the code."""
    tree = asm.container(
        [("relax.VMExecutable", asm.executable(STOCK)),
         ("const_loader", constants({"a": asm.tensor("float32", [4], [1, 2, 3, 4]),
                                     "b": asm.tensor("float32", [4], [5])}, {"get_constant": ["a", "b"]})),
         ("_lib", b""), ("my_device", asm.source_module(TRIPLE, {"triple": 2}))], [[1], [2], [3], []])
    return compiled(runner, tree, os.path.join(TOP, "test", "vm", "stock.c"))


def compiled(runner, tree, source):
    """A shared object of C source with that tree of modules."""
    blob, library = os.path.join(runner.work, "tree.bin"), os.path.join(runner.work, "stock.so")
    with open(blob, "wb") as f:
        f.write(tree)
    command = runner.machine.cc.split() + ["-shared", "-fPIC", "-O1", "-w", f'-DCONTAINER="{blob}"', "-o", library,
                                           source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr)
    with open(library, "rb") as f:
        return f.read()


def trace(runner, level):
    """The seed's lines: the source, the command that compiled it, or the object that was kept, and the calls."""
    code = TRIPLE + "/* the last line */\n"
    data = asm.elf(asm.module("func main(x)\n triple(%0, %0, 1, \"node\")\n ret %0\n", code, {"triple": 2}))
    said = runner.run(data, "init 1 0 1\nrepeat 2 call main float32[4]{1}\n", ["--trace", str(level)], log=True)
    lines = said.splitlines()
    wanted = ["GetFunction triple: found, 2 arguments", f"Data: module.so: {len(code)} bytes of C with 1 kernels",
              "call: triple"]
    calls = 2 if level > 0 else 0
    if (level == 0 and said) or lines.count(wanted[2]) != calls or (
            calls and [line for line in lines if line in wanted] != [*wanted, wanted[2]]):
        raise Failure(f"said at level {level}: {said}")
    if level > 0 and not any(line.startswith(("RVV compile command:", "cache hit:")) for line in lines):
        raise Failure(f"nothing of the compiler at level {level}: {said}")
    if ("/* the last line */" in lines) != (level > 1):
        raise Failure(f"the source at level {level}: {said}")


def library_tests(runner):
    for level in range(3):
        yield f"trace/{level}", lambda n=level: trace(runner, n)
    yield "library/calls", lambda: expect(runner, stock_library(runner), STOCK_SCRIPT, STOCK_EXPECT)
    good = constants({"a": asm.tensor("float32", [4], [5])}, {"s": ["a"]})
    table = {
        "names": (asm.vec([]) + good[17:], "there are not as many constants as names"),
        "no such": (constants({"a": asm.tensor("int8", [1], [5])}, {"s": ["b"]}), "there is no constant b"),
        "lists": (good[:-42] + asm.vec([asm.text("s")]) + asm.vec([]), "not as many lists of constants as symbols"),
        "behind": (good + b"\0", "the constants are damaged"),
        "cut": (good[:-1], "the constants are damaged"),
        "tensor": (good.replace(struct.pack("<Q", asm.TENSOR_MAGIC), b"\0" * 8), "constant 0: it does not begin as a"),
    }
    main = ("relax.VMExecutable", asm.executable("func main(x)\n s(%0)\n ret %0\n"))
    for name, (data, wanted) in table.items():
        yield (f"constants/{name}", lambda d=data, w=wanted: refused(
            runner, asm.elf(asm.container([main, ("const_loader", d)], [[1], []])), w))
    yield "constants/no init", lambda: expect(
        runner, asm.elf(asm.container([main, ("const_loader", good)], [[1], []])), "init 1 0 1\n",
        "LATHE_E_NAME: s has constants, but its module no function __init_s\n")


def elf_tests(runner):
    data = asm.module("func main(x)\n ret %0\n")
    script, wanted = "init 1 0 1\ncall main 5\n", "none\n5\n"
    ways = {"sections": {"dynamic": False}, "dynamic": {"sections": False},
            "gnu hash": {"sections": False, "gnu_hash": True},
            "aarch64": {"machine": 183}, "riscv64": {"machine": 243}, "no machine": {"machine": 0}}
    for name, how in ways.items():
        yield f"elf/{name}", lambda h=how: expect(runner, asm.elf(data, **h), script, wanted)
    wrong = {
        "text": (b"not an ELF file" * 10, "not an ELF file"),
        "empty": (b"", "an empty file"),
        "no symbol": (asm.elf(data, symbol="other"), "it has no symbol __tvm_ffi__library_bin"),
        "0.20": (asm.elf(data, symbol="__tvm_dev_mblob"), "a module of TVM 0.20 or older; export it with 0.22 or"),
        "0.21": (asm.elf(data, symbol="__tvm_ffi_library_bin"), "a module of TVM 0.21;"),
        "no tables": (asm.elf(data, sections=False, dynamic=False), "without a table of dynamic symbols"),
        "32 bit": (bytes([*asm.elf(data)[:4], 1, *asm.elf(data)[5:]]), "a 32-bit or a big-endian machine"),
        "executable": (bytes([*asm.elf(data)[:16], 2, *asm.elf(data)[17:]]), "not a shared object"),
    }
    for name, (content, message) in wrong.items():
        yield f"elf/{name}", lambda c=content, m=message: refused(runner, c, m)


def cut_tests(runner):
    whole = asm.module("func main(x)\n f([1], 1, i64(2), f64(0.5), :int8, \"text\", int8[2]{1, 2})\n ret %0\n",
                       "void f(void *p) {}", {"f": 7})
    ways = {"sections": {}, "dynamic": {"sections": False}, "gnu hash": {"sections": False, "gnu_hash": True}}
    for name, how in ways.items():
        data = asm.elf(whole, **how)
        # Bytes behind the module's data are not needed where there are no sections.
        spare = len(data) - data.index(whole) - len(whole) if "sections" in how else 0
        yield f"cut/{name}", lambda d=data, s=spare: expect(
            runner, d, "", f"{len(d)} bytes: {s} lengths accepted\n", ["--truncate"])


def damaged(runner, data, given):
    """Each byte of the ELF header and of the tables of segments and sections is changed: never a crash. `given`: may
    the system's loader see such a file?"""
    got = runner.run(data, "", ["--damage"])
    found = re.fullmatch(r"(\d+) changes: (\d+) accepted, (\d+) given to the system's loader\n", got)
    if not found or int(found[2]) >= int(found[1]) or (int(found[3]) > 0) != given:
        raise Failure(got)


# Who runs a constructor of this is ended by it.
CONSTRUCTOR = """#include <stdlib.h>
__attribute__((constructor)) static void end(void) { abort(); }
__asm__(".section .rodata\\n.globl __tvm_ffi__library_bin\\n.type __tvm_ffi__library_bin, %object\\n"
        "__tvm_ffi__library_bin:\\n.incbin \\"" CONTAINER "\\"\\n.previous\\n");
int __tvm_ffi_PLACE(void *self, const void *args, int n, void *result) { return 0; }
"""
NO_FUNCTION = "LATHE_E_NAME: 1 function that the module calls is neither in it nor in the machine: one\n"
FORBIDDEN = "the module holds machine code, and no_jit forbids running it"


def with_constructor(runner, function):
    """A library that ends who loads it, with a tree of modules and a function of that name."""
    tree = asm.container([("relax.VMExecutable", asm.executable("func main(x)\n one(%0)\n ret %0\n")), ("_lib", b"")],
                         [[1], []])
    source = os.path.join(runner.work, "constructor.c")
    with open(source, "w") as f:
        f.write(CONSTRUCTOR.replace("__tvm_ffi_PLACE", function))
    return compiled(runner, tree, source)


def damage_tests(runner):
    module = asm.module("func main(x)\n f(%0)\n ret %0\n", "void f(void *p) {}", {"f": 1})
    for name, how in {"sections": {}, "dynamic": {"sections": False}, "gnu hash": {"gnu_hash": True}}.items():
        yield f"damage/{name}", lambda h=how: damaged(runner, asm.elf(module, **h), False)
    yield "damage/machine code", lambda: damaged(runner, stock_library(runner), True)
    # As a stock module whose calls all go to functions of others: nothing of the file is run.
    for name, words in (("", []), (", no jit", ["--no-jit"])):
        yield f"damage/no function{name}", lambda w=words: expect(
            runner, with_constructor(runner, "one"), "init 1 0 1\n", NO_FUNCTION, w)
    yield "damage/no jit", lambda: expect(
        runner, with_constructor(runner, "__tvm_ffi_one"), "init 1 0 2\nkernel one 1\n",
        f"LATHE_E_REFUSED: {FORBIDDEN}\n" * 2, ["--no-jit"])


def corpus():
    """What the fuzz targets begin with, and what the unit tests load: file -> bytes."""
    def case(name):
        with open(os.path.join(CASES, name + ".case")) as f:
            return split_case(f.read())
    files = {f"vm_executable/{n}": asm.executable(case(n)["module"])
             for n in ("straight", "flow", "shapes", "memory", "tuples", "checks", "describe", "stateful",
                       "device")}
    files["vm_executable/constants"] = asm.executable(
        'func main(x)\n %1 = vm.builtin.make_tuple([1], 1, i64(2), f64(0.5), :int8, "text", int8[2]{1, 2})\n ret %1\n')
    for name in ("straight", "describe", "memory", "tuples", "loops", "device"):
        c = case(name)
        files[f"vm_module/{name}"] = asm.elf(asm.module(c["module"], c["source"], c["kernels"]))
    same = asm.module("func main(x)\n ret %0\n")
    files["vm_module/dynamic"] = asm.elf(same, sections=False)
    files["vm_module/gnu_hash"] = asm.elf(same, sections=False, gnu_hash=True)
    # What is damaged, and what the system's loader may get: a function alone, and a tree that says there is one.
    whole = asm.elf(same)
    files["vm_module/no_sections"] = whole[:40] + b"\xff" + whole[41:]
    files["vm_module/no_dynamic"] = whole[:32] + b"\x3f" + whole[33:40] + b"\xff" + whole[41:]
    files["vm_module/function"] = asm.elf(b"\xc3" * 16, symbol="__tvm_ffi_one", code=True)
    files["vm_module/no_function"] = asm.elf(asm.container(
        [("relax.VMExecutable", asm.executable("func main(x)\n ret %0\n")), ("_lib", b"")], [[1], []]))
    source = asm.source_module("void k(void *p) {}", {"k": 1, "l": 3})
    files["vm_tree/tree"] = b"\0" + asm.container(
        [("relax.VMExecutable", b"x"), ("my_device", source), ("_lib", b"")], [[1, 2], [2], []])
    files["vm_tree/source"] = b"\1" + source
    files["vm_tree/devices"] = b"\1" + asm.source_module("void k(void *p) {}", {"k": (3, [12, 0, 12]), "l": (1, [13])})
    files["vm_tree/constants"] = b"\2" + constants(
        {"a": asm.tensor("float32", [4], [1]), "b": asm.tensor("int8", [1], [5])}, {"s": ["a", "b"], "t": []})
    return files


def check_corpus(name, data, update):
    path = os.path.join(TOP, "test", "fuzz", "corpus", name)
    if update:
        with open(path, "wb") as f:
            f.write(data)
    with open(path, "rb") as f:
        if f.read() != data:
            raise Failure("the file is not what the assembler makes; vm.py --update rewrites it")


def cases(machine):
    """The names of the cases for what vmrun is built with there: without jansson it reads no metadata."""
    for name in sorted(os.listdir(CASES)):
        with open(os.path.join(CASES, name)) as f:
            reads_json = "\nsample {" in f.read()
        if not (name == "bare.case" and not machine.libffi or reads_json and machine.emulator):
            yield name


def all_tests(runner, options):
    for name in cases(runner.machine):
        yield f"cases/{name[:-5]}", lambda n=name: run_case(runner, os.path.join(CASES, n), options.update)
    for name, (bad, wanted) in VERIFIER.items():
        yield (f"verifier/{name}", lambda b=bad, w=wanted:
               refused(runner, asm.elf(asm.module(wrong_instruction(b))), w))
    for name, (bad, wanted) in FUNCTIONS.items():
        yield f"verifier/{name}", lambda b=bad, w=wanted: refused(runner, asm.elf(asm.module(b)), w)
    yield from executable_tests(runner)
    yield from container_tests(runner)
    yield from library_tests(runner)
    yield from elf_tests(runner)
    yield from cut_tests(runner)
    yield from damage_tests(runner)
    for name, data in corpus().items() if not runner.machine.emulator else ():
        yield f"corpus/{name}", lambda n=name, d=data: check_corpus(n, d, options.update)


def build_for(name, work):
    """vmrun for another machine; None where the tools are not here."""
    cc, emulator = f"{name}-linux-gnu-gcc", f"qemu-{name}"
    missing = [t for t in (cc, emulator) if not shutil.which(t)]
    if missing:
        print(f"skipped {name}: not here: {', '.join(missing)} (scripts/setup.sh test installs them)")
        return None
    libffi = subprocess.run([os.path.join(TOP, "test", "libffi"), name], capture_output=True, text=True, check=True)
    libffi = libffi.stdout.split()
    machine = Machine(os.path.join(work, f"vmrun-{name}"), (emulator, "-L", f"/usr/{name}-linux-gnu"), cc,
                      libffi != ["-DLATHE_NO_LIBFFI"])
    command = [cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-D_XOPEN_SOURCE=700",
               "-DLATHE_NO_JANSSON", "-I", os.path.join(TOP, "runtime", "vm"),
               "-I", os.path.join(TOP, "include"), os.path.join(TOP, "test", "vm", "vmrun.c"),
               *sorted(glob.glob(os.path.join(TOP, "runtime", "vm", "*.c"))), *libffi, "-o", machine.vmrun, "-lpthread",
               "-ldl"]
    if name == "riscv64": # the machine has the vectors that the compiler's flags ask for
        machine.emulator = (emulator, "-cpu", "rv64,v=true,vlen=128,elen=64,vext_spec=v1.0", *machine.emulator[1:])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"the virtual machine cannot be built for {name}:\n{done.stderr[-3000:]}")
    return machine


def run_all(machine, work, options, counts):
    for name, test in all_tests(Runner(machine, work), options):
        if not fnmatch.fnmatch(name, options.filter):
            continue
        try:
            test()
            result, why = "ok", ""
        except Failure as failure:
            result, why = "FAILED", f": {failure}"
        counts[result] += 1
        if options.verbose or result == "FAILED":
            print(f"{result} {' '.join(machine.emulator[:1])} {name}{why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vmrun", default=os.path.join(TOP, "build", "test", "vmrun"))
    parser.add_argument("--for", nargs="+", default=[], dest="machines", metavar="MACHINE", help="aarch64, riscv64")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-v", action="store_true", dest="verbose")
    options = parser.parse_args()
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(prefix="vm-") as work:
        if not options.machines:
            run_all(Machine(options.vmrun), work, options, counts)
        for name in options.machines:
            try:
                machine = build_for(name, work)
            except Failure as failure:
                print(f"FAILED {failure}")
                counts["FAILED"] += 1
                continue
            if machine:
                run_all(machine, work, options, counts)
            else:
                counts["skipped"] += 1
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
