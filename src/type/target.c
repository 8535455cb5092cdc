/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets, and which of them this machine is. */
#include "type/target.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define CONTRACT " -ffp-contract=fast"
#define QUIET    " -fno-math-errno" /* a square root is an instruction: nothing reads errno */
#define FLOATS   QUIET CONTRACT
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

#define V4_FLAGS "-march=x86-64-v4 -mprefer-vector-width=512"
#define CORTEX(cpu, more) "-mcpu=cortex-" cpu " -mthumb" more CONTRACT
#define SP                " -mfpu=fpv4-sp-d16 -mfloat-abi=hard"

/* Everything that whole-model targets of 64 bits share. */
#define HOST .stack_limit = 16384, .workers = 4, .address_bits = 64
#define V2   .vector_bytes = 16, .vector_regs = 16, .has_medium = true, .cc = X86, HOST
#define V3   .vector_bytes = 32, .vector_regs = 16, .fma = true, .has_medium = true, .cc = X86, HOST
#define V4   .vector_bytes = 64, .vector_regs = 32, .fma = true, .has_medium = true, .cc = X86, HOST
#define A64  .vector_bytes = 16, .vector_regs = 32, .fma = true, .reach_bits = 32 /* pages of 4 KB */, .cc = ARM, HOST
#define RVV  .vector_regs = 32, .fma = true, .cc = CLANG_RISCV, HOST
#define MICRO                                                                                                          \
    .vector_regs = 8, .stack_limit = 1024, .bytes_limit = 64, .workers = 1, .address_bits = 32, .integers = true,      \
        .small = true,                                                                                                 \
        .cc = "arm-none-eabi-gcc"

static const char picolibc[] =
    "#\n# For a microcontroller, with picolibc (Debian: gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf):\n"
    "#     make lib CC=riscv64-unknown-elf-gcc AR=riscv64-unknown-elf-ar CPU=--specs=picolibc.specs\n"
    "# and link the library with the board's start-up code and linker script. `make all` links main.c as well: give\n"
    "# LDFLAGS='-T board.ld' and the start-up object in LDLIBS.\n#\n";

static const target table[] = {
    {.name = "x86-64-v2", .cflags = "-march=x86-64-v2" QUIET, V2, .cpu = "x86-64-v2", .features = TARGET_MADD},
    {.name = "x86-64-v3", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "x86-64-v3", .features = TARGET_MADD,
     .integers = true},
    {.name = "x86-64-v3-vnni", .cflags = "-march=x86-64-v3 -mavxvnni" FLOATS, V3, .cpu = "x86-64-v3",
     .features = TARGET_MADD | TARGET_AVX_VNNI, .integers = true},
    {.name = "x86-64-v4", .cflags = V4_FLAGS FLOATS, V4, .cpu = "x86-64-v4", .features = TARGET_MADD,
     .integers = true},
    {.name = "x86-64-v4-vnni", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "x86-64-v4",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    {.name = "aarch64", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON},
    {.name = "aarch64-dotprod", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "aarch64-i8mm", .cflags = "-march=armv8.2-a+dotprod+i8mm" FLOATS, A64, .cpu = "aarch64",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD | TARGET_I8MM},
    /* Fixed vectors of 128 bits, which every V extension for applications has: VLEN is 128 or more. */
    {.name = "rv64gcv", .cflags = "-march=rv64gcv -mabi=lp64d" FLOATS, RVV, .vector_bytes = 16, .vlen = 128,
     .cpu = "rv64gcv", .features = TARGET_RVV},
    {.name = "rv64gcv_zvl256b", .cflags = "-march=rv64gcv_zvl256b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 32,
     .vlen = 256, .cpu = "rv64gcv", .integers = true, .features = TARGET_RVV},
    {.name = "rv64gcv_zvl512b", .cflags = "-march=rv64gcv_zvl512b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 64,
     .vlen = 512, .cpu = "rv64gcv", .features = TARGET_RVV},
    /* One processor's numbers; flags are its level and features, which gcc 12 and clang 19 both know. */
    {.name = "haswell", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "haswell", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver2", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "znver2", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver3", .cflags = "-march=x86-64-v3" FLOATS, V3, .cpu = "znver3", .features = TARGET_MADD,
     .integers = true},
    {.name = "znver4", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "znver4",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    {.name = "znver5", .cflags = V4_FLAGS " -mavx512vnni" FLOATS, V4, .cpu = "znver5",
     .features = TARGET_MADD | TARGET_AVX512_VNNI, .integers = true},
    {.name = "skylake-avx512", .cflags = V4_FLAGS FLOATS, V4, .cpu = "skylake-avx512", .features = TARGET_MADD,
     .integers = true},
    {.name = "sapphirerapids", .cflags = V4_FLAGS " -mavx512vnni -mamx-tile -mamx-int8" FLOATS, V4,
     .cpu = "sapphirerapids", .features = TARGET_MADD | TARGET_AVX512_VNNI | TARGET_AMX, .integers = true},
    {.name = "cortex-a53", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "cortex-a53",
     .integers = true, .features = TARGET_NEON},
    {.name = "cortex-a72", .cflags = "-march=armv8-a" FLOATS, A64, .cpu = "cortex-a72",
     .integers = true, .features = TARGET_NEON},
    {.name = "cortex-a76", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "cortex-a76",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "neoverse-n1", .cflags = "-march=armv8.2-a+dotprod" FLOATS, A64, .cpu = "neoverse-n1",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD},
    {.name = "neoverse-v1", .cflags = "-march=armv8.2-a+dotprod+i8mm" FLOATS, A64, .cpu = "neoverse-v1",
     .integers = true, .features = TARGET_NEON | TARGET_DOTPROD | TARGET_I8MM},
    {.name = "spacemit-x60", .cflags = "-march=rv64gcv_zvl256b -mabi=lp64d" FLOATS, RVV, .vector_bytes = 32,
     .vlen = 256, .cpu = "spacemit-x60", .integers = true, .features = TARGET_RVV},
    {.name = "generic", .cflags = "", .vector_regs = 16, HOST},
    /* The machine that a module runs on compiles it. */
    {.name = "my_device", .cflags = "", .vector_bytes = 64, .vector_regs = 32, .fma = true,
     .cpu = "x86-64-v4", .variants = by_width, HOST},
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
    /* Without floating-point registers; the same for kernels as a Cortex-M0+, but with more registers. */
    {.name = "rv32imc", .cflags = "-march=rv32imc -mabi=ilp32" CONTRACT, .vector_regs = 16, .stack_limit = 1024,
     .bytes_limit = 64, .workers = 1, .address_bits = 32, .integers = true, .small = true,
     .cc = "riscv64-unknown-elf-gcc", .by_hand = picolibc},
};

static const target *find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* The level of instructions that this machine has, and which of `features`. Not AMX, which has to be asked for: its
 * kernel was run as a model of the instructions only. */
static const target *level_here(uint32_t *features)
{
    *features = 0;
#if defined(__x86_64__)
    *features |= TARGET_MADD;
    uint32_t word[4] = {0};
    if (__get_cpuid_count(7, 1, &word[0], &word[1], &word[2], &word[3]) && (word[0] >> 4 & 1))
        *features |= TARGET_AVX_VNNI;
    *features |= __builtin_cpu_supports("avx512vnni") ? TARGET_AVX512_VNNI : 0u;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return find("x86-64-v4");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return find("x86-64-v3");
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
        return find("x86-64-v2");
#endif
#if defined(__aarch64__)
    *features |= TARGET_NEON;
#if defined(__linux__)
    *features |= getauxval(AT_HWCAP) >> 20 & 1 ? TARGET_DOTPROD : 0u; /* HWCAP_ASIMDDP */
    *features |= getauxval(AT_HWCAP2) >> 13 & 1 ? TARGET_I8MM : 0u;   /* HWCAP2_I8MM */
#endif
    return find("aarch64");
#else
    return find("generic");
#endif
}

const target *target_with_features(const target *level, uint32_t features)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const target *t = &table[i];
        if (!t->variants && t->cpu && level->cpu && strcmp(t->cpu, level->cpu) == 0 &&
            (t->features & ~(features | level->features)) == 0 &&
            (t->features & level->features) == level->features)
            level = t;
    }
    return level;
}

/* This processor's row, where the machine has all that the row's code needs; else its level's. */
static const target *native(void)
{
    uint32_t features;
    const target *level = level_here(&features);
    const char *name = cpu_model_here();
    const target *own = name ? find(name) : NULL;
    bool fits = own && own->vector_bytes == level->vector_bytes && (own->features & ~features) == 0;
    return fits ? own : target_with_features(level, features);
}

const target *target_find(const char *name)
{
    return strcmp(name, "native") == 0 ? native() : find(name);
}

const cpu_model *target_cpu(const target *t)
{
    return cpu_model_find(t->cpu ? t->cpu : "generic");
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

const target *target_at(uint32_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
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

static bool takes_regions(const target *t)
{
    return t->regions_only;
}

static bool says_numbers(const target *t)
{
    return t->offload && t->offload->numbers;
}

/* Of the registered targets that `wanted` holds of. */
static const char *names_of(compiler *c, bool (*wanted)(const target *))
{
    writer w;
    writer_init(&w, &c->mem);
    for (const target_list *l = c->targets; l; l = l->next)
        if (wanted(l->t))
            w_fmt(&w, "%s%s", w.len ? ", " : "", l->t->name);
    return w.data ? w.data : "";
}

const char *target_region_names(compiler *c)
{
    return names_of(c, takes_regions);
}

const char *target_numbers_names(compiler *c)
{
    return names_of(c, says_numbers);
}

const target_numbers *target_numbers_of(const compiler *c, const char *name)
{
    const target *t = target_lookup(c, name);
    return t && t->offload ? t->offload->numbers : NULL;
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
