/* SPDX-License-Identifier: Apache-2.0 */
/* What a back end generates for: one table of targets. Passes and schedules ask capabilities, never names. */
#ifndef LATHE_TYPE_TARGET_H
#define LATHE_TYPE_TARGET_H
#include "base/compiler.h"
#include "type/cpu_model.h"

struct graph_func;
struct graph_value;
struct tir_func;

/* A target may lower a primitive function on its own (what TVM calls RelayToTIRTargetHook): *out is a verified loop-IR
 * function with the parameters of f, inputs then results; NULL: it declines, and the default lowering is taken. False
 * after a diagnostic. */
typedef bool (*target_lower_fn)(compiler *c, const struct graph_func *f, const char *name, struct tir_func **out);

/* A code generator writes the C source of all regions that its target has got (prog/source.h;
 * docs/how-to/add-a-back-end.md). False after a diagnostic. */
struct target;
struct prog_source;
typedef bool (*target_codegen_fn)(compiler *c, const struct target *t, struct prog_source *out);

/* What a target asks of a match where the text of a pattern does not suffice: NULL, or why it does not take it, a
 * sentence without an end. A value that the match left out is NULL. */
typedef const char *(*target_check_fn)(compiler *c, uint32_t n, struct graph_value *const *values);
typedef struct target_check {
    const char *name; /* as patterns have it; NULL at the end of a list */
    target_check_fn fn;
} target_check;

/* A target's own hand on a region, before kernels are made: other nodes with the same parameters and results. Constants
 * that it adds become parameters. False after a diagnostic. */
typedef bool (*target_rewrite_fn)(compiler *c, struct graph_func *region);

/* The numbers of the models that a target takes: what `lathe quantize --for NAME` makes. All false: --for cpu. */
typedef struct target_numbers {
    bool with_sign; /* values are i8 without zero points, instead of u8 with any */
    bool one_scale; /* for the weights of a layer, instead of one for each output channel */
    bool powers;    /* scales are powers of two, and halves are rounded up, so that shifts suffice */
    bool sum_scale; /* for both operands of a sum, instead of one for each */
} target_numbers;

/* What a target that takes parts of a model says of them: docs/reference/partition.md. */
typedef struct target_offload {
    const char *patterns;       /* text; NULL: none */
    const target_check *checks; /* those that its patterns name; NULL: only built-in ones */
    target_rewrite_fn rewrite;  /* NULL: none */
    uint64_t least_work;        /* multiply-adds below which a region is not worth the way there */
    bool binds_constants;       /* constants stay inside of regions, and are no parameters */
    const target_numbers *numbers; /* NULL: it takes none that are quantised, or does not say which */
    const char *advice;         /* what to do about a model of which it takes nothing; NULL: nothing to say */
} target_offload;

/* What a processor's integer units can do beyond its vectors; the flags of the target switch it on. */
typedef enum target_feature {
    TARGET_AVX_VNNI = 1u << 0,    /* vpdpbusd on 256 bits */
    TARGET_AVX512_VNNI = 1u << 1, /* vpdpbusd on 512 bits */
    TARGET_DOTPROD = 1u << 2,     /* AArch64 SDOT and UDOT */
    TARGET_I8MM = 1u << 3,        /* AArch64 SMMLA and USDOT */
    TARGET_DSP = 1u << 4,         /* Cortex-M SMLAD, SXTB16 */
    TARGET_MVE = 1u << 5,         /* Helium, integers: VMLADAVA */
    TARGET_FPU = 1u << 6,         /* Cortex-M: binary32 in hardware */
    TARGET_MADD = 1u << 7,        /* x86 pmaddwd, pmaddubsw */
    TARGET_NEON = 1u << 8,        /* AArch64 SMULL, SADALP: products of bytes, summed in twos */
    TARGET_RVV = 1u << 9,         /* RISC-V's V: a number by a vector, added */
    TARGET_AMX = 1u << 10,        /* x86 TDPBUSD: products of bytes in registers of 16 rows */
} target_feature;

typedef struct target {
    const char *name;      /* "x86-64-v3" */
    const char *cflags;    /* flags for the package's Makefile: "-march=x86-64-v3 -ffp-contract=fast" */
    uint32_t vector_bytes; /* register width; 0: scalar code only */
    uint32_t vector_regs;  /* registers */
    bool fma;
    bool plain_addresses;  /* loads and stores of vectors add nothing to an address: a register that a compiler puts on
                            * the stack costs two instructions each way */
    uint32_t features;     /* of target_feature */
    const char *cpu;       /* row of cpu_model.h; NULL: "generic" */
    uint32_t tile_vectors, tile_rows; /* the register tile that rules take, where it fits: a tuner's; 0: their choice */
    uint32_t tile_steps; /* the same of the steps of a reduction that a block of sums takes */
    uint32_t stack_limit;  /* bytes of locals that one kernel may use */
    uint32_t bytes_limit;  /* a larger array of 8- or 16-bit elements is no local: of operators that follow each other
                            * the workspace holds the largest only; 0: they count as others do */
    uint32_t workers;      /* width of the static schedule */
    uint32_t address_bits; /* of a pointer: 32 or 64 */
    bool small;            /* flash is scarce: kernels that differ in numbers share code, tables are small */
    uint32_t line_axis;    /* schedules make the result line by line along that axis, for chains; 0: they are free */
    bool lines_again;      /* and what a line needs of its operands is copied anew for each line, not kept */
    bool integers;         /* quantised models compute in integers unless told otherwise: that is faster there */
    target_lower_fn lower; /* NULL: the default lowering for everything */
    const char *const *variants; /* names of the targets that stand for it in a module, NULL at the end; NULL: itself */
    uint32_t vlen;         /* RISC-V: bits of a vector register that the code needs; 0: another processor */
    uint32_t reach_bits;   /* code of the usual model reaches data within so many bits of addresses; 0: 31 */
    bool has_medium;       /* compilers for it have -mcmodel=medium, for small code beside large data */
    const char *cc;        /* a C compiler for it where this machine's own is none, for hints; NULL: none is known */
    const char *by_hand;   /* lines of comment for the Makefile of firmware: how to call it for a board; NULL: none */
    const char *by_hand_file; /* the same as a file of this tree (codegen/embedded.h); NULL, too: that of Cortex-M */
    target_codegen_fn codegen; /* of regions that `lower` declines; NULL: none */
    const void *generator;     /* for codegen */
    bool regions_only;         /* takes parts of a model, not whole ones: a library, an accelerator */
    bool computations;         /* and computations of files with a schedule that is for it alone */
    const char *memory; /* of a device, in which its regions find operands and leave results in modules: a row of
                         * MODULE_MEMORIES (abi/module.h); constants they take from the host. NULL: all is the host's */
    const target_offload *offload; /* it takes parts of a model: docs/reference/partition.md; NULL: none of its own */
} target;

/* x86-64-v2, x86-64-v3, x86-64-v4, aarch64 (NEON), rv64gcv (the V extension, VLEN 128 or more; needs clang),
 * rv64gcv_zvl256b, rv64gcv_zvl512b (VLEN 256, 512 or more: their packages refuse to run with less), generic
 * (scalar, any CPU), my_device (whatever machine a module runs on), native (resolved on this machine to one of them);
 * one processor's: haswell, znver2, znver3, znver4, znver5, skylake-avx512, sapphirerapids, cortex-a53, cortex-a72,
 * cortex-a76, neoverse-n1, neoverse-v1, spacemit-x60 (a level with flags that each compiler knows, and a cpu_model);
 * x86-64-v3-vnni, x86-64-v4-vnni, aarch64-dotprod, aarch64-i8mm (the same with products of bytes); cortex-m (scalar,
 * small stack, flags of the caller), cortex-m0plus, -m3, -m4, -m7, -m33, -m55; rv32imc (the same for RISC-V of 32
 * bits). NULL: unknown name. */
const target *target_find(const char *name);
/* A target of the user's own, for this context: t must live as long as c. The name must be new (DIAG_USAGE). */
bool target_register(compiler *c, const target *t);
/* What a target compiles for in this context, such as the sizes of an accelerator. The target alone knows what is
 * behind the pointer; name and settings live as long as c, and the last ones count. NULL: nobody has said anything. */
void target_set(compiler *c, const char *name, const void *settings);
const void *target_settings(const compiler *c, const char *name);
/* The row of a level of instructions that has the most of `features`, and nothing beyond them. */
const target *target_with_features(const target *level, uint32_t features);
const target *target_lookup(const compiler *c, const char *name); /* registered ones, then target_find */
/* The numbers of t's processor; those of "generic" where t names none. */
const cpu_model *target_cpu(const target *t);
/* t->cc; NULL where `cc` makes code for it. */
const char *target_cross_cc(const target *t);
const target *target_default(void); /* x86-64-v3 on x86-64 hosts, aarch64 on its, generic elsewhere */
const target *target_at(uint32_t i);   /* the table's rows in order; NULL behind the last */
const char *target_names(compiler *c); /* "x86-64-v2, ..." for messages, registered ones among them */
const char *target_region_names(compiler *c); /* those that take only regions; "" when there is none */
/* The numbers that a registered target takes; NULL: there is no such target, or it does not say. */
const target_numbers *target_numbers_of(const compiler *c, const char *name);
const char *target_numbers_names(compiler *c); /* those that say it */
#endif
