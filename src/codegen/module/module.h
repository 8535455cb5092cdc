/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of portable modules (abi/module.h, docs/reference/module.md): bytecode of the plan's steps, the C source
 * of all kernels, both in a container, that in an ELF file. A module is written for one target or for several that
 * differ in the width of their vectors; each of them is a variant, with functions and kernels of its own, and shares
 * constants that are equal. The kernels are those of the C back end. */
#ifndef LATHE_CODEGEN_MODULE_H
#define LATHE_CODEGEN_MODULE_H
#include "abi/module.h"
#include "base/ptr_map.h"
#include "codegen/c/package.h"

/* --- bytes.c: numbers and strings as they lie in a file. Without memory it only counts. --- */
typedef struct module_bytes {
    uint8_t *data; /* NULL: count */
    size_t len;
} module_bytes;
void bytes_put(module_bytes *b, const void *data, size_t n);
void bytes_u16(module_bytes *b, uint32_t v);
void bytes_u32(module_bytes *b, uint32_t v);
void bytes_u64(module_bytes *b, uint64_t v);
void bytes_str(module_bytes *b, const char *s); /* u64 length, bytes */
void bytes_zero_to(module_bytes *b, size_t len);

/* --- code.c: the executable while it is made --- */
typedef struct module_func {
    enum module_function_kind kind;
    const char *name;
    uint32_t start, end; /* instructions */
    uint32_t n_args, n_registers;
    const char *const *params; /* names of the arguments */
} module_func;

typedef struct module_const {
    enum module_constant_tag tag;
    const tensor_data *tensor;
    const char *text;
    dtype dt;
    const int64_t *dims;
    uint32_t n_dims;
} module_const;

typedef struct module_code {
    compiler *c;
    VEC(module_func) funcs;
    VEC(uint64_t) offsets; /* of instructions, in words */
    VEC(int64_t) words;
    VEC(module_const) consts;
    ptr_map known;   /* interned text of a constant or name of a function -> its number */
    ptr_map tensors; /* tensor -> its number */
    const int32_t *devices; /* whose memories the kernels of all variants want, by number */
    uint32_t n_devices;
} module_code;

typedef int64_t module_arg;
void code_init(module_code *m, compiler *c);
module_arg code_reg(uint32_t r);
module_arg code_int(int64_t v);
module_arg code_none(void);
module_arg code_machine(void);
module_arg code_text(module_code *m, const char *s);
module_arg code_dtype(module_code *m, dtype dt);
module_arg code_shape(module_code *m, uint32_t n, const int64_t *dims);
module_arg code_tensor(module_code *m, const tensor_data *t);
/* A function of the machine; instructions follow until code_end. */
uint32_t code_begin(module_code *m, const char *name, uint32_t n_args, const char *const *params);
void code_end(module_code *m, uint32_t func, uint32_t n_registers);
/* dst NULL: no result. Names are those of builtins, kernels, or functions of the machine. */
void code_call(module_code *m, const uint32_t *dst, const char *func, uint32_t n, const module_arg *args);
void code_ret(module_code *m, uint32_t r);
uint32_t code_jump(module_code *m);                  /* the instruction, for code_land */
uint32_t code_if(module_code *m, uint32_t r);        /* jumps where r is 0 */
void code_land(module_code *m, uint32_t at, uint32_t to); /* both are numbers of instructions */
uint32_t code_next(const module_code *m);            /* number of the next instruction */
void code_write(const module_code *m, module_bytes *b);
uint64_t code_constant_bytes(const module_code *m);

/* --- body.c: the functions of a variant --- */
typedef struct module_variant {
    package p;          /* its unit, with the prefix that its kernels have */
    const char *report; /* report.json's text */
    const char *loops;  /* the text of all loops; NULL: nobody asked for it */
} module_variant;
/* main: what it takes is checked, then the variant that fits the machine runs. Likewise lathe_report, which gives its
 * report.json, and MODULE_LOOPS, which gives its loops. With several variants each has functions of its own under its
 * prefix. */
bool body_write_entries(module_code *m, const module_variant *variants, uint32_t n);

/* --- memory.c: devices with memory of their own --- */
/* DLPack's number of the device; 0: the host's memory. */
int32_t memory_device(const char *memory);
/* Of a kernel's addresses: one number each; NULL: all are the host's. */
const int32_t *memory_tags(const package *p, uint32_t op);
/* Fills in m->devices. */
void memory_collect(module_code *m, const module_variant *variants, uint32_t n);
/* Which device of the machine it is. */
int64_t memory_index(const module_code *m, const char *memory);
/* A copy between memories: no kernel. */
bool memory_is_copy(const package *p, uint32_t op);
/* What a module calls before it asks for memory of source i's device; NULL: nothing. */
const char *memory_ready_name(const package *p, uint32_t i);

/* --- loops.c --- */
/* "v32_fused_add": a kernel in bytecode and in C. */
const char *loops_kernel_name(const package *p, uint32_t op);
/* What nothing bounds gets memory in front of the operator that writes it: as much as a kernel says that gets the cells
 * of the operator's symbols, and tells one i64. Address k of the operator, counted as in its call: operands, results,
 * scratch. */
bool loops_is_open(const package *p, uint32_t op, uint32_t k);
const char *loops_size_name(const package *p, uint32_t op, uint32_t k);
/* The result of a kernel that stacks, where nothing bounds the rows, grows: one kernel gets the cells, the round, and
 * the rows that there is room for (one i64, ignored in round 0), and tells a new number of rows, the bytes of them, and
 * whether (a bool) they are needed. Another one copies the rows of earlier rounds: cells, round, from, to. */
bool loops_grows(const package *p, uint32_t op);
const char *loops_grow_name(const package *p, uint32_t op);
const char *loops_move_name(const package *p, uint32_t op);
/* Address k of an operator, as its loops know it. */
const tir_buffer *loops_buffer(const plan_op *op, uint32_t k);
/* What loops_size_name, loops_grow_name and loops_move_name are names of. */
const tir_func *loops_size(const package *p, uint32_t op, uint32_t k);
const tir_func *loops_grow(const package *p, uint32_t op);
const tir_func *loops_move(const package *p, uint32_t op);
/* All loops of a variant as text (docs/reference/loop-ir.md), each under its name in bytecode: those that say what a
 * kernel means, not its target's. They take operands and results, and no scratch. false after a diagnostic: some have
 * none, or call what cannot be interpreted. */
bool loops_write(const package *p, writer *w);

/* --- source.c --- */
bool source_write(compiler *c, writer *w, const module_variant *variants, uint32_t n);
/* Every kernel of a module by its name in C, with the number of its addresses. */
typedef void (*source_kernel_fn)(void *ctx, const char *name, uint32_t n_args, const int32_t *tags);
void source_each(const package *p, source_kernel_fn fn, void *ctx);

/* --- elf.c: a shared object for `host` ("x86_64") whose only symbol is MODULE_SYMBOL; b counts or fills --- */
bool elf_known_host(const char *host);
/* `blob`: writes the symbol's bytes. */
typedef void (*elf_blob_fn)(const void *ctx, module_bytes *b);
void elf_write(module_bytes *b, const char *host, elf_blob_fn blob, const void *ctx);
#endif
