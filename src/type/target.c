/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets, and which of them this machine is. */
#include "type/target.h"

#include <string.h>

#define CONTRACT " -ffp-contract=fast"
#define X86      "x86_64-linux-gnu-gcc"
#define ARM      "aarch64-linux-gnu-gcc"
/* gcc makes code for vectors from its version 14 on. */
#define CLANG_RISCV "'clang --target=riscv64-linux-gnu'"
#if defined(__x86_64__)
#define HERE X86
#elif defined(__aarch64__)
#define HERE ARM
#else
#define HERE ""
#endif

/* One for each width of vectors, with the registers that machines of that width have. */
static const char *const by_width[] = {"x86-64-v4", "x86-64-v3", "aarch64", NULL};

/* What only targets of parts of models have. */
#define WHOLE NULL, NULL, false, NULL

static const target table[] = {
    /* name, flags, vector bytes, registers, bytes of the second and the last cache, fma, stack bytes, workers,
     * bits of an address, own lowering, variants, VLEN, C compiler from elsewhere, the rest */
    {"x86-64-v2", "-march=x86-64-v2", 16, 16, 256 << 10, 8 << 20, false, 16384, 4, 64, NULL, NULL, 0, X86, WHOLE},
    {"x86-64-v3", "-march=x86-64-v3" CONTRACT, 32, 16, 512 << 10, 16 << 20, true, 16384, 4, 64, NULL, NULL, 0, X86,
     WHOLE},
    {"x86-64-v4", "-march=x86-64-v4 -mprefer-vector-width=512" CONTRACT, 64, 32, 1 << 20, 32 << 20, true, 16384, 4,
     64, NULL, NULL, 0, X86, WHOLE},
    {"aarch64", "-march=armv8-a" CONTRACT, 16, 32, 512 << 10, 2 << 20, true, 16384, 4, 64, NULL, NULL, 0, ARM, WHOLE},
    /* Fixed vectors of 128 bits, which every V extension for applications has: VLEN is 128 or more. */
    {"rv64gcv", "-march=rv64gcv -mabi=lp64d" CONTRACT, 16, 32, 512 << 10, 2 << 20, true, 16384, 4, 64, NULL, NULL, 128,
     CLANG_RISCV, WHOLE},
    {"rv64gcv_zvl256b", "-march=rv64gcv_zvl256b -mabi=lp64d" CONTRACT, 32, 32, 512 << 10, 2 << 20, true, 16384, 4, 64,
     NULL, NULL, 256, CLANG_RISCV, WHOLE},
    {"rv64gcv_zvl512b", "-march=rv64gcv_zvl512b -mabi=lp64d" CONTRACT, 64, 32, 512 << 10, 2 << 20, true, 16384, 4, 64,
     NULL, NULL, 512, CLANG_RISCV, WHOLE},
    {"generic", "", 0, 16, 256 << 10, 2 << 20, false, 16384, 4, 64, NULL, NULL, 0, NULL, WHOLE},
    /* The machine that a module runs on compiles it. */
    {"my_device", "", 64, 32, 1 << 20, 32 << 20, true, 16384, 4, 64, NULL, by_width, 0, NULL, WHOLE},
    /* The CPU's own flags come with the firmware's compiler. */
    {"cortex-m", "-ffp-contract=fast", 0, 8, 0, 0, false, 1024, 1, 32, NULL, NULL, 0, "arm-none-eabi-gcc", WHOLE},
};

static const target *find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static const target *native(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return find("x86-64-v4");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return find("x86-64-v3");
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
        return find("x86-64-v2");
#endif
#if defined(__aarch64__)
    return find("aarch64");
#else
    return find("generic");
#endif
}

const target *target_find(const char *name)
{
    return strcmp(name, "native") == 0 ? native() : find(name);
}

const char *target_cross_cc(const target *t)
{
    return t->cc && strcmp(t->cc, HERE) != 0 ? t->cc : NULL;
}

const target *target_default(void)
{
#if defined(__x86_64__)
    return find("x86-64-v3");
#elif defined(__aarch64__)
    return find("aarch64");
#else
    return find("generic");
#endif
}

typedef struct target_list {
    const target *t;
    struct target_list *next;
} target_list;

const target *target_lookup(const compiler *c, const char *name)
{
    for (const target_list *l = c->targets; l; l = l->next)
        if (strcmp(l->t->name, name) == 0)
            return l->t;
    return target_find(name);
}

const char *target_names(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        w_fmt(&w, "%s, ", table[i].name);
    for (const target_list *l = c->targets; l; l = l->next)
        if (!l->t->regions_only)
            w_fmt(&w, "%s, ", l->t->name);
    w_str(&w, "native");
    return w.data;
}

const char *target_region_names(compiler *c)
{
    writer w;
    writer_init(&w, &c->mem);
    for (const target_list *l = c->targets; l; l = l->next)
        if (l->t->regions_only)
            w_fmt(&w, "%s%s", w.len ? ", " : "", l->t->name);
    return w.data ? w.data : "";
}

bool target_register(compiler *c, const target *t)
{
    if (target_lookup(c, t->name))
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "there is a target '%s' already", t->name);
    target_list *l = arena_new(&c->mem, target_list);
    *l = (target_list){t, c->targets};
    c->targets = l;
    return true;
}
