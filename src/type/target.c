/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets, and which of them this machine is. */
#include "type/target.h"

#include <string.h>

#define CONTRACT " -ffp-contract=fast"

static const target table[] = {
    /* name, flags, vector bytes, registers, fma, stack bytes, workers */
    {"x86-64-v2", "-march=x86-64-v2", 16, 16, false, 16384, 4},
    {"x86-64-v3", "-march=x86-64-v3" CONTRACT, 32, 16, true, 16384, 4},
    {"x86-64-v4", "-march=x86-64-v4 -mprefer-vector-width=512" CONTRACT, 64, 32, true, 16384, 4},
    {"generic", "", 0, 16, false, 16384, 4},
    {"cortex-m", "", 0, 8, false, 1024, 1}, /* the CPU's own flags come with the firmware's compiler */
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
    return find("generic");
}

const target *target_find(const char *name)
{
    return strcmp(name, "native") == 0 ? native() : find(name);
}

const target *target_default(void)
{
#if defined(__x86_64__)
    return find("x86-64-v3");
#else
    return find("generic");
#endif
}

const char *target_names(void)
{
    return "x86-64-v2, x86-64-v3, x86-64-v4, generic, cortex-m, native";
}
