/* SPDX-License-Identifier: Apache-2.0 */
/* No processor of its own: scalar code that any machine runs, and the machine that a module runs on. */
#include "target/flags.h"
#include "type/family.h"

/* One for each width of vectors, with the registers that machines of that width have. */
static const char *const by_width[] = {"x86-64-v4", "x86-64-v3", "aarch64", NULL};

static const target targets[] = {
    {.name = "generic", .cflags = "", .vector_regs = 16, HOST},
    /* The machine that a module runs on compiles it. */
    {.name = "my_device", .cflags = "", .vector_bytes = 64, .vector_regs = 32, .fma = true,
     .cpu = "x86-64-v4", .variants = by_width, HOST},
};

/* The model of the first rules. */
static const cpu_model models[] = {{"generic", 1, 1, 4, 4, 16, KB(32), MB(1), MB(2), 12, 3, 8}};

const target_family target_family_generic = {targets, COUNT(targets), models, COUNT(models), .usual = NULL};
