#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Portable modules on the command line: compiled, run, inspected, traced, refused. Kernels are compiled where they run,
# with a cache that belongs to this test. Not in `make check`: compilers take its time.
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
digits=$top/demo/digits.onnx
check() {
    local what=$1
    shift
    if "$@" > "$work/log" 2>&1; then good; else bad "$what: $(head -n 2 "$work/log")"; fi
}

# --- one file, without a compiler; the same numbers as a package for this machine
CC=/nonexistent expect 0 '^module     m.so: [0-9]+ bytes' compile "$digits" --emit module --target my_device -o m.so
expect 0 '^vectors    32 bytes, as for x86-64-v3' compile "$digits" --emit module -o again.so
check "the same bytes again" cmp m.so again.so
expect 0 '^probabilities: f32' run m.so --output-dir from_module
CFLAGS='' expect 0 '^probabilities: f32' run "$digits" --output-dir from_package
check "the package's numbers" cmp from_module/probabilities.npy from_package/probabilities.npy
expect 0 '^probabilities: f32' run "$digits" --emit module --output-dir from_model
check "and those of a model run as a module" cmp from_module/probabilities.npy from_model/probabilities.npy
for bytes in 16 32; do
    LATHE_VECTOR_BYTES=$bytes expect 0 "^call: v${bytes}_fused_multiply" run m.so --trace
done
printf 'func @main(%%x: f32[3, 4]) {\n  %%y = nn.relu(%%x)\n  return %%y\n}\n' > relu.txt
for host in x86_64 aarch64 riscv64; do
    expect 0 '' compile relu.txt --emit module --host $host --widths 16 -o $host.so
    expect 0 '^y' run $host.so
done
check "an ELF file of the host asked for" sh -c 'readelf -h riscv64.so | grep -q "Machine: *RISC-V"'
expect 0 'cache hit' run m.so --trace
CC=/nonexistent expect 0 '^no compiler; the newest object of this source for this machine: ' run m.so --trace --output-dir from_cache
check "what the cache has, without a compiler" cmp from_cache/probabilities.npy from_module/probabilities.npy
cp -rp "$XDG_CACHE_HOME" board
CC=/nonexistent XDG_CACHE_HOME=$work/board expect 0 '^probabilities' run m.so
expect 0 '^ [0-9 ]+ nn.softmax' inspect m.so
expect 0 '^input  image: f32.1, 1, 8, 8.$' inspect m.so
expect 2 'port is for packages' compile "\$digits" --emit module --port baremetal -o no.so
expect 2 'constants is for packages' compile "\$digits" --emit module --constants bin -o no.so
expect 0 '"generator": "lathe"' inspect m.so --json
expect 0 '^lathe        median' bench m.so --repeat 1

if command -v riscv64-linux-gnu-gcc > /dev/null && [ "$(riscv64-linux-gnu-gcc -dumpversion)" -lt 14 ]; then
    TVM_RVV_COMPILER=riscv64-linux-gnu-gcc expect 3 '^warning: this gcc makes no vector code for RISC-V' run x86_64.so
    if command -v qemu-riscv64 > /dev/null && [ -d /usr/riscv64-linux-gnu ]; then # packages, too, before they run
        CC='riscv64-linux-gnu-gcc -static' expect 0 'riscv64-linux-gnu-gcc makes no vector code for RISC-V' \
            run "$digits" --target rv64gcv --emulator 'qemu-riscv64 -cpu rv64,v=true'
    fi
fi

# --- what the module is checked against, and what is left to look at
cat > meta.json << 'END'
{"inputs": [{"name": "image", "shape": [1, 1, 8, 8], "dtype": "float32", "device": "my_device"}]}
END
expect 0 '^probabilities' run m.so --meta meta.json
sed 's/8, 8/8, 9/' meta.json > wrong.json
expect 1 'image' run m.so --meta wrong.json
expect 1 'nothing.json' run m.so --meta nothing.json
expect 0 '^probabilities' run m.so --keep-sources kept
check "the source stays" sh -c 'ls kept/*.c && ls kept/*.so'
expect 2 'forbids compiling' run m.so --no-jit
CC=/nonexistent XDG_CACHE_HOME=$work/empty expect 3 '/nonexistent' run m.so

# --- extents that nothing bounds
cat > open.txt << 'END'
func @main(%x: f32[n, m]) {
  %y = nn.softmax(%x)
  %i = nonzero(%y)
  return %y, %i
}
END
expect 1 "symbol|bound" compile open.txt -o package
expect 0 '' compile open.txt --emit module -o open.so
printf 'func @main(%%x: f32[n, m], %%w: f32[m, 8]) {\n  %%y = nn.matmul(%%x, %%w)\n  return %%y\n}\n' > products.txt
expect 0 'MACs 8388608 where each extent without a bound is 1024$' compile products.txt --emit module -o products.so
expect 0 '^y: f32\[3, 5\]' run open.so --dim n=3 --dim m=5
expect 0 '^i: i64\[2, 700\]' run open.so --dim n=100 --dim m=7
expect 2 "open extents are: n, m" run open.so --dim k=3
expect 2 "is a module and already compiled" run open.so --dim k=3
expect 0 '^output y: f32.n, m.$' inspect open.so
for extents in "2147483648 2147483648" "8589934592 2147483648" "4611686018427387904 8"; do
    read -r n m <<< "$extents"
    expect 1 "input 'x' is larger than memory can be" run open.so --dim "n=$n" --dim "m=$m"
done
expect 0 '^y: f32\[1, 1\]' run open.so

printf 'func @main(%%x: f32[n], %%y: f32[2*n]) {\n  %%z = nn.relu(%%y)\n  return %%z\n}\n' > computed.txt

# --- a module that is not ours, whose function takes a tensor of more dimensions than there can be here
for rank in 17 2000000000; do
    PYTHONPATH=$top/test/py python3 - "$rank" << 'PY' || bad "no module from the assembler"
import sys
import vm_asm as asm
text = f'func main(x)\n vm.builtin.check_tensor_info(%0, {sys.argv[1]}, :float32, "x")\n ret %0\n'
open("ranks.so", "wb").write(asm.elf(asm.module(text, None, {})))
PY
    expect 1 "argument 0 of main .'x'. is neither a tensor of" run ranks.so
done
PYTHONPATH=$top/test/py python3 - << 'PY' || bad "no module from the assembler"
import vm_asm as asm
text = """func main(x)
 vm.builtin.check_tensor_info(%0, 2, :float32, "x")
 vm.builtin.match_shape(%0, void, 2, 0, 2147483648, 0, 2147483648, "x")
 ret %0
"""
open("large.so", "wb").write(asm.elf(asm.module(text, None, {})))
PY
expect 1 "input 'x' is larger than memory can be" run large.so

# --- a module whose report is not that of its function
"$lathe" inspect m.so --json > document.json && result_of document.json > report.json
PYTHONPATH=$top/test/py python3 - << 'PY' || bad "no module from the assembler"
import vm_asm as asm
text = """func main(x)
 %1 = vm.builtin.make_tuple(%0, %0)
 ret %1
func lathe_report()
 %0 = vm.builtin.copy("REPORT")
 ret %0
"""
executable = asm.executable(text).replace(asm.text("REPORT"), asm.text(open("report.json").read()))
open("lies.so", "wb").write(asm.elf(asm.container([("relax.VMExecutable", executable)], [[]])))
PY
expect 1 "main returned 2 results, but the module's report lists 1" run lies.so

# --- a library that ends who loads it: inspect does not, nor run with --no-jit; and a module whose report never ends
cat > end.c << 'END'
#include <stdlib.h>
__attribute__((constructor)) static void end(void) { abort(); }
extern const char __tvm_ffi__library_bin[];
__asm__(".section .rodata\n.globl __tvm_ffi__library_bin\n.type __tvm_ffi__library_bin, %object\n"
        "__tvm_ffi__library_bin:\n.incbin \"tree.bin\"\n.previous\n");
int __tvm_ffi_one(void *self, const void *args, int n, void *result) { return 0; }
END
PYTHONPATH=$top/test/py python3 - << 'PY' || bad "no module from the assembler"
import vm_asm as asm
executable = asm.executable("func main(x)\n one(%0)\n ret %0\n")
open("tree.bin", "wb").write(asm.container([("relax.VMExecutable", executable), ("_lib", b"")], [[1], []]))
endless = asm.module("func main(x)\n ret %0\nfunc lathe_report()\n l:\n goto l\n", None, {})
open("endless.so", "wb").write(asm.elf(endless))
PY
check "the library is built" cc -shared -fPIC -w end.c -o end.so
expect 1 'has no report of its operators' inspect end.so
expect 2 'the module holds machine code, and no_jit forbids running it' run end.so --no-jit
for verb in inspect run; do
    expect 1 'lathe_report is not a function that only gives a text' $verb endless.so
done
# One byte of the ELF header, and one of the name of the symbol, which then is another one of the same prefix.
for at in 16 32 40; do
    cp m.so damaged.so
    printf '\377' | dd of=damaged.so bs=1 seek=$at conv=notrunc 2> /dev/null
    "$lathe" inspect damaged.so > log 2>&1
    check "byte $at changed: an answer" test $? -lt 4
done
sed '0,/__tvm_ffi__library_bin/s//__tvm_ffi__library_bim/' m.so > damaged.so
expect 1 'damaged.so' run damaged.so

# --- kernels by tvm-ffi's calling convention, as TVM calls them: what cannot be computed with is refused
expect 0 '' compile relu.txt --emit module --target generic -o relu.so
expect 0 '^y' run relu.so --keep-sources relu
check "arguments of kernels" python3 - << 'PY'
import ctypes as c
import glob
import re

class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]

class Any(c.Structure):
    _fields_ = [("type", c.c_int32), ("small", c.c_uint32), ("u", c.c_void_p)]

source = open(glob.glob("relu/*.c")[0]).read()
name = re.findall(r"__tvm_ffi_\w*relu\w*(?=\()", source)[-1]
kernel = getattr(c.CDLL(glob.glob("./relu/*.so")[0]), name)
numbers, result = (c.c_float * 12)(*range(-6, 6)), (c.c_float * 12)()

def tensor(data=numbers, shape=(3, 4), strides=None, device=1, bits=32):
    return Tensor(c.cast(data, c.c_void_p), (c.c_int32 * 2)(device, 0), len(shape), 2, bits, 1, (c.c_int64 * 2)(*shape),
                  (c.c_int64 * 2)(*strides) if strides else None, 0)

def call(t):
    args = (Any * 2)(Any(7, 0, c.addressof(t) if t else None), Any(7, 0, c.addressof(out)))
    return kernel(None, args, 2, c.byref(Any()))

out = tensor(result)
for good in (tensor(), tensor(strides=(4, 1)), tensor(device=101), tensor(shape=(1, 12), strides=(77, 1))):
    assert call(good) == 0
assert list(result) == [max(x, 0) for x in numbers]
for bad in (None, tensor(strides=(1, 3)), tensor(strides=(0, 1)), tensor(strides=(0, 0)), tensor(device=2),
            tensor(None), tensor(shape=(3, 3)), tensor(shape=(0, 4)), tensor(bits=16)):
    assert call(bad) == -1, bad
PY

# --- what is refused
expect 2 'no file for the module' compile "$digits" --emit module
expect 2 'widths' compile "$digits" --emit module --widths 64,24 -o no.so
expect 2 'widths' compile "$digits" --emit module --target generic --widths 16 -o no.so
expect 2 'is for modules' compile "$digits" --target my_device -o no
expect 1 'axis 0 of input .y. is computed' compile computed.txt --emit module -o no.so
expect 2 'host' compile "$digits" --emit module --host vax -o no.so
expect 2 '--host is for modules' compile "$digits" --host aarch64 -o no
check 'nothing was written' test ! -e no
expect 0 'nothing in .* is quantized' compile "$digits" --emit module --integers --vta-config pynq -o plain.so
check 'that is said once, whatever widths there are' test "$(grep -c 'is quantized' stderr)" = 1
check 'so is that of the accelerator' test "$(grep -c 'vta-config has no effect' stderr)" = 1
expect 2 'already compiled: --target' run m.so --target generic
expect 2 'trace is for modules' run "$digits" --trace
expect 2 'cannot run a module' verify m.so --against onnxruntime
expect 2 'per-node is for packages' verify "$digits" --emit module --per-node --against interpreter
expect 2 'per-node' verify m.so --per-node --against onnxruntime --model "$digits"
expect 1 'true' run /bin/true
expect 2 'emulator runs packages' verify "$digits" --emit module --target rv64gcv --emulator /no/such \
    --against interpreter
expect 2 'emulator runs packages' run m.so --emulator /no/such --target generic
expect 2 'a module for rv64gcv cannot run on this machine' run "$digits" --emit module --target rv64gcv
expect 2 'cortex-m4 is a microcontroller' run "$digits" --emit module --target cortex-m4
expect 2 'cortex-m4 is a microcontroller' compile "$digits" --emit module --target cortex-m4 -o no.so
expect 2 'qemu-m4 is a machine in an emulator, which runs packages' run "$digits" --emit module --target qemu-m4
head -c 5000 m.so > short.so
expect 1 'short.so' run short.so
check "no file was begun" sh -c '! ls no.so no 2> /dev/null'
finish
