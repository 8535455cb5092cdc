/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: its targets, processors, and products of small integers. */
#include "target/flags.h"
#include "type/family.h"

/* gcc makes code for vectors from its version 14 on. */
#define CLANG "'clang --target=riscv64-linux-gnu'"
#define RVV   .vector_regs = 32, .fma = true, .plain_addresses = true, .cc = CLANG, HOST

static const target targets[] = {
    /* Fixed vectors of 128 bits, which every V extension for applications has: VLEN is 128 or more. */
    {.name = "rv64gcv", .cflags = "-march=rv64gcv -mabi=lp64d" FLOATS, RVV, .vector_bytes = 16, .vlen = 128,
     .cpu = "rv64gcv", .features = TARGET_RVV},
    {.name = "rv64gcv_zvl256b", .cflags = "-march=rv64gcv_zvl256b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 32,
     .vlen = 256, .cpu = "rv64gcv", .integers = true, .features = TARGET_RVV},
    {.name = "rv64gcv_zvl512b", .cflags = "-march=rv64gcv_zvl512b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 64,
     .vlen = 512, .cpu = "rv64gcv", .features = TARGET_RVV},
    {.name = "spacemit-x60", .cflags = "-march=rv64gcv_zvl256b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 32,
     .vlen = 256, .cpu = "spacemit-x60", .integers = true, .features = TARGET_RVV},
    /* Without floating-point registers; the same for kernels as a Cortex-M0+, but with more registers. */
    {.name = "rv32imc", .cflags = "-march=rv32imc -mabi=ilp32" CONTRACT, .vector_regs = 16, .stack_limit = 1024,
     .bytes_limit = 64, .workers = 1, .address_bits = 32, .integers = true, .small = true,
     .cc = "riscv64-unknown-elf-gcc", .by_hand_file = "src/target/riscv/by_hand.in"},
};

static const cpu_model models[] = {
    {"rv64gcv", 2, 2, 4, 4, 32, KB(32), KB(512), MB(2), 12, 3, 8},
    /* 256 bits */
    {"spacemit-x60", 1, 1, 2, 4, 32, KB(32), KB(128), KB(512), 4, 2, 8},
};

#define LANES 4, 4, 7, 3, 4, 1, 0, false /* vmacc.vx; what one lane has side by side, apart */
#define PAIRS 2, 2, 3, 1, 2, 1, 0, false /* the same of two numbers of 16 bits */

static const target_dot dots[] = {
    {"dot_u8s8", TARGET_RVV, 16, 4, DT_U8, DT_I8, false, LANES},
    {"dot_s8s8", TARGET_RVV, 16, 4, DT_I8, DT_I8, false, LANES},
    {"dot_s16s16", TARGET_RVV, 16, 2, DT_I16, DT_I16, false, PAIRS},
};

const target_family target_family_riscv = {targets, COUNT(targets), models, COUNT(models), dots, COUNT(dots),
                                           .usual = NULL};
