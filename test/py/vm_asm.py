# SPDX-License-Identifier: Apache-2.0
"""An assembler of portable modules for tests: text becomes an executable, a source module, a container, an ELF file.

Written from include/abi/module.h and independent of the compiler. A text:

    import my_device                 a source module; its C source and kernels are given beside the text
    func main(x, n) registers=5      instructions follow; x is %0, n is %1
        %2 = vm.builtin.shape_of(%0)
        if %3 else other             goes on, or to the label
        goto end
    other:
        K(%0, %2, 1, "node")         no result
        words 1 2 3                  an instruction as it is
    end:
        ret %2                       or `ret void`

Arguments: %0 register, vm, void, 5 immediate, "text", :float32 dtype, [1, 2] shape, i64(5), f64(1.5),
float32[2]{1, 2} tensor, @name function. Functions that no `func` defines are packed functions.
"""
import re
import struct

MAGIC = {1: 0xD225DE2F4214151D, 2: 0xD225DE2F4214151E}
TENSOR_MAGIC = 0xDD5E40F096B4A13F
VOID, VM = 1 << 54, (1 << 54) + 1
KINDS = {"packed": 0, "vm": 1, "vmtir": 2}
DTYPES = {"int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8), "uint16": (1, 16),
          "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32), "float64": (2, 64),
          "handle": (3, 64), "bfloat16": (4, 16), "bool": (6, 8), "void": (3, 0)}
PACK = {(0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q", (1, 8): "B", (1, 16): "H", (1, 32): "I", (1, 64): "Q",
        (2, 16): "e", (2, 32): "f", (2, 64): "d", (4, 16): "H", (6, 8): "B"}


def u64(n):
    return struct.pack("<Q", n)


def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return u64(len(data)) + data


def vec(items):
    return u64(len(items)) + b"".join(items)


def dtype(name):
    code, bits = DTYPES[name]
    return struct.pack("<BBH", code, bits, 0 if bits == 0 else 1)


def words(numbers):
    return u64(len(numbers)) + struct.pack(f"<{len(numbers)}q", *numbers)


def tensor(name, dims, values):
    code, bits = DTYPES[name]
    if len(values) == 1:
        count = 1
        for d in dims:
            count *= d
        values = values * count
    number = float if code == 2 else int
    data = struct.pack(f"<{len(values)}{PACK[code, bits]}", *(number(v) for v in values))
    return (struct.pack("<QQiii", TENSOR_MAGIC, 0, 1, 0, len(dims)) + dtype(name) +
            struct.pack(f"<{len(dims)}q", *dims) + struct.pack("<q", len(data)) + data)


class Assembler:
    """One executable."""

    def __init__(self):
        self.functions = []   # [kind, name, start, end, params, registers, names]
        self.constants = []   # bytes with their tags
        self.instructions = []  # lists of words
        self.version = 2
        self.fixups = []      # (instruction, position, label)
        self.labels = {}

    def function(self, name):
        for i, f in enumerate(self.functions):
            if f[1] == name:
                return i
        self.functions.append([KINDS["packed"], name, 0, 0, -2, 0, []])
        return len(self.functions) - 1

    def constant(self, data):
        if data not in self.constants:
            self.constants.append(data)
        return self.constants.index(data)

    @staticmethod
    def operand(kind, value):
        return struct.unpack("<q", struct.pack("<Q", kind << 56 | value & ((1 << 56) - 1)))[0]

    def tagged(self, tag, data):
        return self.operand(2, self.constant(struct.pack("<i", tag) + data))

    def argument(self, word):
        numbers = r"(\[[-\d, ]*\])"
        if word.startswith("%"):
            return self.operand(0, int(word[1:]))
        if word in ("vm", "void"):
            return self.operand(0, VM if word == "vm" else VOID)
        if re.fullmatch(r"-?\d+", word):
            return self.operand(1, int(word))
        if word.startswith('"'):
            return self.tagged(65, text(word[1:-1]))
        if word.startswith(":"):
            return self.tagged(5, dtype(word[1:]))
        if word.startswith("@"):
            return self.operand(3, self.function(word[1:]))
        if m := re.fullmatch(r"i64\((-?\d+)\)", word):
            return self.tagged(1, struct.pack("<q", int(m[1])))
        if m := re.fullmatch(r"f64\((.*)\)", word):
            return self.tagged(3, struct.pack("<d", float(m[1])))
        if re.fullmatch(numbers, word):
            return self.tagged(69, words([int(d) for d in re.findall(r"-?\d+", word)]))
        if m := re.fullmatch(r"(\w+)" + numbers + r"\{(.*)\}", word):
            dims = [int(d) for d in re.findall(r"-?\d+", m[2])]
            return self.tagged(70, tensor(m[1], dims, [v for v in m[3].split(",") if v.strip()]))
        raise ValueError(f"not an argument: {word}")

    def call(self, line):
        m = re.fullmatch(r"(?:%(\d+) = )?([\w.]+)\((.*)\)", line)
        if not m:
            raise ValueError(f"not an instruction: {line}")
        args = re.findall(r'\s*("[^"]*"|\w+\[[^\]]*\]\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*)\s*(?:,|$)', m[3])
        head = [1, int(m[1]) if m[1] else VOID, self.function(m[2]), len(args)]
        return head + [self.argument(a.strip()) for a in args]

    def instruction(self, line):
        here = len(self.instructions)
        if m := re.fullmatch(r"ret (?:%(\d+)|void)", line):
            return [2, int(m[1]) if m[1] else VOID]
        if m := re.fullmatch(r"goto (\w+)", line):
            self.fixups.append((here, 1, m[1]))
            return [3, 0]
        if m := re.fullmatch(r"if %(\d+) else (\w+)", line):
            self.fixups.append((here, 2, m[2]))
            return [4, int(m[1]), 0]
        if line.startswith("words "):
            return [int(w, 0) for w in line.split()[1:]]
        return self.call(line)

    def begin(self, line):
        m = re.fullmatch(r"(func|vmtir) ([\w.]+)\(([^)]*)\)(?: registers=(-?\d+))?", line)
        names = [n.strip() for n in m[3].split(",") if n.strip()]
        f = self.functions[self.function(m[2])]
        f[:] = [KINDS["vm" if m[1] == "func" else "vmtir"], m[2], len(self.instructions), 0, len(names),
                int(m[4] or 16), names]
        return f

    def assemble(self, source):
        # Names first, so that calls of functions that follow find them.
        for line in source.splitlines():
            if m := re.match(r"(?:func|vmtir) ([\w.]+)\(", line):
                self.function(m[1])
        current = None
        for line in source.splitlines():
            line = re.sub(r"\s*#.*", "", line).strip()
            if line.startswith(("func ", "vmtir ")):
                current = self.begin(line)
                self.labels, self.fixups = {}, []
            elif line.startswith("version "):
                self.version = int(line.split()[1])
            elif line.endswith(":"):
                self.labels[line[:-1]] = len(self.instructions)
            elif line:
                self.instructions.append(self.instruction(line))
                current[3] = len(self.instructions)
            for at, position, label in [f for f in self.fixups if f[2] in self.labels]:
                self.instructions[at][position] = self.labels[label] - at
                self.fixups.remove((at, position, label))
        return self

    def bytes(self):
        functions = [struct.pack("<i", k) + text(n) + struct.pack("<4q", *numbers) + vec([text(p) for p in names])
                     for k, n, *numbers, names in self.functions]
        offsets, flat = [], []
        for i in self.instructions:
            offsets.append(len(flat))
            flat += i
        return (u64(MAGIC[self.version]) + text("0.14") + vec(functions) + (u64(0) if self.version == 2 else b"") +
                vec(self.constants) + words(offsets) + words(flat))


def executable(source):
    return Assembler().assemble(source).bytes()


def source_module(code, kernels, fmt="c"):
    """kernels: name -> number of addresses, or that, a list, whose handle each of them is, and the numbers of uint32
    behind the addresses."""
    infos = []
    for name, n in kernels.items():
        n, devices, numbers = (*n, 0)[:3] if isinstance(n, tuple) else (n, [], 0)
        infos.append(text(name) * 2 + vec([dtype("handle")] * n + [dtype("uint32")] * numbers) + vec([]) +
                     vec([struct.pack("<i", d) for d in devices]))
    return text(fmt) + vec(infos) + text(code)


def container(modules, children):
    """modules: (kind, bytes), children: a list for each."""
    ends, flat = [0], []
    for c in children:
        flat += c
        ends.append(len(flat))
    body = words(ends) + words(flat)
    for kind, content in modules:
        body += text(kind) + (b"" if kind == "_lib" else text(content))
    return u64(len(body)) + body


def module(source, code=None, kernels=None):
    modules, children = [("relax.VMExecutable", executable(source))], [[]]
    if code is not None:
        modules.append(("my_device", source_module(code, kernels)))
        children = [[1], []]
    return container(modules, children)


def elf(data, machine=62, symbol="__tvm_ffi__library_bin", sections=True, dynamic=True, gnu_hash=False, code=False):
    """A shared object with one symbol, found by section headers, by the dynamic segment, or by both; with `code` it is
    a function."""
    def align(n, to):
        return (n + to - 1) // to * to

    names = b"\0" + symbol.encode() + b"\0"
    head, segments = 64, 56 * 2
    strings_at = head + segments
    symbols_at = align(strings_at + len(names), 8)
    hash_at = symbols_at + 48
    if gnu_hash:
        # One bucket, one word of the filter, one chain: symbol 1 is its last.
        table = struct.pack("<IIIIQII", 1, 1, 1, 0, 0xFFFFFFFFFFFFFFFF, 1, 1)
    else:
        table = struct.pack("<IIIII", 1, 2, 1, 0, 0)
    dynamic_at = align(hash_at + len(table), 8)
    tags = [(0x6ffffef5 if gnu_hash else 4, hash_at), (5, strings_at), (6, symbols_at), (10, len(names)), (11, 24),
            (0, 0)]
    data_at = align(dynamic_at + 16 * len(tags), 64)
    symbols = b"\0" * 24 + struct.pack("<IBBHQQ", 1, 0x12 if code else 0x11, 0, 4, data_at, len(data))
    sections_at = align(data_at + len(data), 8)
    size = sections_at + (64 * 3 if sections else 0)
    out = bytearray(size)
    out[0:16] = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    out[16:64] = struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, head, sections_at if sections else 0, 0, 64, 56,
                             2 if dynamic else 1, 64, 3 if sections else 0, 0)
    out[head:head + 56] = struct.pack("<IIQQQQQQ", 1, 5 if code else 4, 0, 0, 0, size, size, 4096)
    out[head + 56:head + 112] = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, 0, 16 * len(tags),
                                            16 * len(tags), 8)
    out[strings_at:strings_at + len(names)] = names
    out[symbols_at:symbols_at + 48] = symbols
    out[hash_at:hash_at + len(table)] = table
    out[dynamic_at:dynamic_at + 16 * len(tags)] = b"".join(struct.pack("<qQ", *t) for t in tags)
    out[data_at:data_at + len(data)] = data
    if sections:
        rows = [(0, 0, 0, 0, 0, 0), (11, symbols_at, 48, 2, 1, 24), (3, strings_at, len(names), 0, 0, 0)]
        for i, (kind, at, n, link, info, each) in enumerate(rows):
            row = struct.pack("<IIQQQQIIQQ", 0, kind, 2, at, at, n, link, info, 8, each)
            out[sections_at + 64 * i:sections_at + 64 * (i + 1)] = row
    return bytes(out)
