/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: its processors, the width of its vectors. The features are those that the targets of the compiler with
 * the same vectors ask for, because the flags follow from the width. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "jit_machine.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__riscv) && defined(__linux__)
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#endif

#if defined(__x86_64__)
#define NAME "x86_64"
#define ELF  62
#elif defined(__aarch64__)
#define NAME "aarch64"
#define ELF  183
#elif defined(__riscv) && __riscv_xlen == 64
#define NAME "riscv64"
#define ELF  243
#else
#define NAME ""
#define ELF  0
#endif

const char *jit_machine_name(void)
{
    return NAME;
}

uint32_t jit_machine_elf(void)
{
    return ELF;
}

uint32_t jit_machine_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#if defined(__linux__)
    cpu_set_t set; /* a container or taskset may leave fewer; with more processors than the set holds the call fails */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
#endif
    return n < 1 ? 1 : n > 1024 ? 1024 : (uint32_t)n;
}

#if defined(__riscv) && defined(__linux__)

/* Whether the kernel says that there is V. hwprobe is the newer of its two ways; both know only that it is there. */
static bool has_v(void)
{
    struct {
        int64_t key;
        uint64_t value;
    } pair = {4, 0}; /* RISCV_HWPROBE_KEY_IMA_EXT_0; bit 2 is V */
    enum { HWPROBE = 258 };
    if (syscall(HWPROBE, &pair, 1L, 0L, NULL, 0L) == 0 && pair.key == 4)
        return (pair.value & 4) != 0;
    return (getauxval(AT_HWCAP) & (1UL << ('V' - 'A'))) != 0;
}

/* In the child: `vlenb` is CSR 0xC22. The instruction is `csrr a0, 0xC22`, as a word because assemblers take the name
 * only for code with V. */
static void read_vlenb(int fd)
{
    register unsigned long vlenb __asm__("a0");
    const struct rlimit none = {0, 0};
    (void)signal(SIGILL, SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &none);
    __asm__ volatile(".word 0xC2202573" : "=r"(vlenb));
    unsigned long value = vlenb;
    _exit(write(fd, &value, sizeof value) == (ssize_t)sizeof value ? 0 : 1);
}

/* A child reads it: where V is there but not allowed to this process, the instruction ends who tries it. */
uint32_t jit_machine_vlen(void)
{
    int ends[2], status;
    unsigned long vlenb = 0;
    if (!has_v() || pipe(ends) != 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0)
        read_vlenb(ends[1]);
    (void)close(ends[1]);
    ssize_t got = 0;
    do {
        got = pid > 0 ? read(ends[0], &vlenb, sizeof vlenb) : 0;
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof vlenb)
        vlenb = 0;
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    bool sound = vlenb >= 16 && vlenb <= 8192 && (vlenb & (vlenb - 1)) == 0;
    return sound ? (uint32_t)vlenb * 8 : 0;
}

#else

uint32_t jit_machine_vlen(void)
{
    return 0;
}

#endif

static uint32_t widest(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return 32;
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") ? 16 : 0;
#elif defined(__aarch64__)
    return 16;
#else
    return jit_machine_vlen() / 8;
#endif
}

/* The environment may lower the width, not raise it. */
static uint32_t lowered(uint32_t bytes)
{
    const char *text = getenv("LATHE_VECTOR_BYTES");
    char *end = NULL;
    unsigned long limit = text ? strtoul(text, &end, 10) : bytes;
    if (text && (end == text || *end || *text == '-'))
        return bytes;
    return limit < bytes ? (uint32_t)limit : bytes;
}

jit_machine jit_this_machine(void)
{
    uint32_t most = lowered(widest()), bytes = most >= 64 ? 64 : most >= 32 ? 32 : most >= 16 ? 16 : 0;
#if defined(__x86_64__)
    return (jit_machine){bytes, bytes == 64 ? 32 : 16};
#else
    return (jit_machine){bytes, bytes ? 32 : 16};
#endif
}
