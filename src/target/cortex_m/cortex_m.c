/* SPDX-License-Identifier: Apache-2.0 */
/* Arm's microcontrollers: their targets. */
#include "target/flags.h"
#include "type/family.h"

#define CORTEX(cpu, more) "-mcpu=cortex-" cpu " -mthumb" more CONTRACT
#define SP                " -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
#define MICRO                                                                                                          \
    .vector_regs = 8, .stack_limit = 1024, .bytes_limit = 64, .workers = 1, .address_bits = 32, .integers = true,      \
        .small = true,                                                                                                 \
        .cc = "arm-none-eabi-gcc"

static const target targets[] = {
    /* The CPU's own flags come with the firmware's compiler. */
    {.name = "cortex-m", .cflags = "-ffp-contract=fast", MICRO},
    {.name = "cortex-m0plus", .cflags = CORTEX("m0plus", ""), MICRO},
    {.name = "cortex-m3", .cflags = CORTEX("m3", ""), MICRO},
    {.name = "cortex-m4", .cflags = CORTEX("m4", SP), MICRO, .features = TARGET_DSP | TARGET_FPU},
    {.name = "cortex-m7", .cflags = CORTEX("m7", " -mfpu=fpv5-d16 -mfloat-abi=hard"), MICRO,
     .features = TARGET_DSP | TARGET_FPU},
    {.name = "cortex-m33", .cflags = CORTEX("m33", " -mfpu=fpv5-sp-d16 -mfloat-abi=hard"), MICRO,
     .features = TARGET_DSP | TARGET_FPU},
    {.name = "cortex-m55", .cflags = CORTEX("m55", " -mfloat-abi=hard"), MICRO,
     .features = TARGET_DSP | TARGET_FPU | TARGET_MVE},
};

const target_family target_family_cortex_m = {targets, COUNT(targets), .usual = NULL};
