/* module.h: the format of a portable module, shared by the compiler, which writes it, and the virtual machine, which
 * reads it. A module is an ELF shared object with one data symbol, MODULE_SYMBOL; its bytes are those that Apache TVM
 * 0.22 and later write for an exported library: a tree of modules with a Relax VM executable as its root, and one
 * import of a kind of our own that holds the C source of all kernels. All numbers are little endian; `str` is a u64
 * length and bytes, `vec<T>` a u64 count and elements. docs/reference/module.md has the whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_MODULE_H
#define ABI_MODULE_H

/* --- the container: u64 bytes that follow, vec<u64> row ends, vec<u64> children, then each module's kind and bytes
 * --- */
#define MODULE_SYMBOL          "__tvm_ffi__library_bin"
#define MODULE_FUNCTION_PREFIX "__tvm_ffi_" /* of the symbols of machine code */
#define MODULE_KIND_LIBRARY    "_lib" /* the shared object itself: its functions are symbols; no bytes follow */
#define MODULE_KIND_EXECUTABLE "relax.VMExecutable"
#define MODULE_KIND_SOURCE     "my_device"
#define MODULE_KIND_CONSTANTS  "const_loader"

/* --- the executable: u64 magic, str version, vec<function>, (V2: vec<(i64, str)> memory scopes), vec<constant>,
 * vec<i64> offsets of instructions, vec<i64> instruction words --- */
#define MODULE_MAGIC_V1 0xD225DE2F4214151DULL
#define MODULE_MAGIC_V2 0xD225DE2F4214151EULL
#define MODULE_VERSION  "0.14"

/* A function: i32 kind, str name, i64 start, end, arguments, registers, vec<str> names of parameters. */
enum module_function_kind { MODULE_FUNC_PACKED = 0, MODULE_FUNC_VM = 1, MODULE_FUNC_VMTIR = 2 };

/* Types of elements: u8 code, u8 bits, u16 lanes. The codes are DLPack's. A handle of 64 bits is an address, one of no
 * bits any type. */
enum module_dtype_code {
    MODULE_DTYPE_INT = 0,
    MODULE_DTYPE_UINT = 1,
    MODULE_DTYPE_FLOAT = 2,
    MODULE_DTYPE_HANDLE = 3,
    MODULE_DTYPE_BFLOAT = 4,
    MODULE_DTYPE_BOOL = 6
};

/* Constants: i32 tag, then the payload. The tags are type indices of tvm-ffi. */
enum module_constant_tag {
    MODULE_CONST_INT = 1,    /* i64 */
    MODULE_CONST_FLOAT = 3,  /* f64 */
    MODULE_CONST_DTYPE = 5,
    MODULE_CONST_STRING = 65, /* str */
    MODULE_CONST_SHAPE = 69, /* vec<i64> */
    MODULE_CONST_TENSOR = 70 /* as TVM stores a tensor, below */
};
/* u64 magic, u64 0, i32 device type, i32 device id, i32 rank, dtype, i64 dimensions, i64 bytes, data */
#define MODULE_TENSOR_MAGIC 0xDD5E40F096B4A13FULL

/* Instructions are words of i64. Call: op, destination, function, count, arguments; Ret: op, register; Goto: op,
 * distance in instructions; If: op, register, distance when it is 0. */
enum module_opcode { MODULE_CALL = 1, MODULE_RET = 2, MODULE_GOTO = 3, MODULE_IF = 4 };

/* Arguments: the upper 8 bits say what the lower 56, which are signed, mean. */
enum module_arg_kind {
    MODULE_ARG_REGISTER = 0,
    MODULE_ARG_IMMEDIATE = 1,
    MODULE_ARG_CONSTANT = 2,
    MODULE_ARG_FUNCTION = 3
};
#define MODULE_ARG_BITS     56
#define MODULE_VOID_REGISTER (INT64_C(1) << 54)       /* no result; None as an argument */
#define MODULE_VM_REGISTER   ((INT64_C(1) << 54) + 1) /* the machine itself */

/* Codes of vm.builtin.match_shape and make_shape. */
enum module_match_code {
    MODULE_MATCH_IMMEDIATE = 0,
    MODULE_MATCH_STORE = 1,
    MODULE_MATCH_NOTHING = 2,
    MODULE_MATCH_LOADED = 3
};
enum module_make_code { MODULE_MAKE_IMMEDIATE = 0, MODULE_MAKE_LOADED = 1 };

/* Memories of devices beside the host's, in which kernels may want operands and results. A machine is initialised with
 * its first device, then one for each memory that the kernels of the module name, by their numbers, then the CPU; so
 * the storage of a value there is that of device 1, 2, ... X(name, DLPack's number of the device) */
#define MODULE_MEMORIES(X) X("ext_dev", 12)

/* A function of the machine, TVM's: (from, to), the bytes of a tensor into one of as many, wherever either lies. */
#define MODULE_COPY "runtime.TVMTensorCopyFromTo"

/* --- source modules: str format ("c"), u64 n, n times (str key, function info), str source --- Function info: str
 * name, vec<dtype> argument types, vec<str> launch parameters, vec<i32> extra tags: none, or one for each address, 0
 * for an address of the host, else the device (MODULE_MEMORIES) whose handle is handed over.
 *
 * A kernel K of ours is a function over bare pointers, one for each operand, result and piece of scratch:
 *     int32_t K(const float *x, float *y, ..., uint32_t part, uint32_t parts);
 * It computes one of `parts` shares and returns a status of abi/package.h; its argument types are a handle for each
 * address, then two of uint32. Who has no libffi to call that by calls, of the same source,
 *     int32_t K_packed(void *const *addresses, uint32_t part, uint32_t parts);
 * A call of K in bytecode has a tensor for each address, then the number of parts (an int), then the nodes of the model
 * behind it (a string). Where the types are handles alone, and there is no K_packed, K is
 *     void K(void *, ...);
 * with one address for each type, and calls have nothing but tensors.
 *
 * Also defined, for hosts that know only tvm-ffi: int __tvm_ffi_K(void *, const TVMFFIAny *, int32_t, TVMFFIAny *). */
#define MODULE_PACKED_SUFFIX "_packed"

/* The source is compiled for a machine with vectors of LATHE_VECTOR_BYTES bytes (0: none) in LATHE_VECTOR_REGS
 * registers; where these are not defined, it finds them out from the compiler's own macros. It holds code for several
 * widths, of which the preprocessor keeps one. It can be compiled in LATHE_SHARDS pieces, each with its number
 * as LATHE_SHARD, that are linked together: every kernel belongs to one of MODULE_SHARDS pieces, of which compilation k
 * of n has those with number % n == k. */
#define MODULE_MACRO_VECTOR_BYTES "LATHE_VECTOR_BYTES"
#define MODULE_MACRO_VECTOR_REGS  "LATHE_VECTOR_REGS"
#define MODULE_MACRO_SHARD        "LATHE_SHARD"
#define MODULE_MACRO_SHARDS       "LATHE_SHARDS"
#define MODULE_SHARDS             64

/* The second line of a source that calls libraries: this, words of the form -lNAME, the end of the comment. The linker
 * gets them. */
#define MODULE_LIBRARIES "/* lathe libraries:"

/* A function of every source module, in bytecode: (vector bytes, registers) -> int, whether the machine that runs it
 * has them. `main` asks it from the widest on; the preprocessor chooses in the same order. */
#define MODULE_HAS_VECTORS "lathe_has_vectors"

/* Functions of the machine for models with states, which are memory that the machine keeps from call to call:
 * (machine, number, shape of its bytes, what it begins with: a tensor or None) -> storage; and (machine), after which
 * all of them begin anew. An executable with states has a function MODULE_RESET without arguments, which calls the
 * latter. TVM's machine has none of these, and refuses such a module. */
#define MODULE_STATE       "lathe_state"
#define MODULE_STATE_RESET "lathe_state_reset"
#define MODULE_RESET       "reset"

/* A function of an executable that can be interpreted: () -> string, the loop IR of its kernels
 * (docs/reference/loop-ir.md), each under its name in bytecode. A kernel takes as many of its addresses as its loops
 * have parameters. */
#define MODULE_LOOPS "lathe_loops"

/* The ELF file: machines that a module is written for; its data does not depend on them. X(name, e_machine, e_flags) */
#define MODULE_HOSTS(X)       \
    X("x86_64", 62, 0)        \
    X("aarch64", 183, 0)      \
    X("riscv64", 243, 0x5)

#endif
