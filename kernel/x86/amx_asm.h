/* SPDX-License-Identifier: Apache-2.0 */
/* AMX: eight registers of up to 16 rows by 64 bytes (Intel's manual, volume 1, chapter 18), whose shapes a block of 64
 * bytes says. LATHE_AMX, 1: the processor has those for bytes, as far as the compiler knows; 0 elsewhere.
 *   LATHE_AMX_MAY        whether Linux lets this process use them; it has to be asked before the first one
 *   LATHE_AMX_SHAPES     the shapes of all registers, which become 0
 *   LATHE_AMX_LOAD       a register from rows `apart` bytes apart; LATHE_AMX_STORE: into such
 *   LATHE_AMX_ZERO       a register becomes 0
 *   LATHE_AMX_U8, _I8    sums of register c += rows of a, u8 or i8, by columns of b, i8, in fours
 *   LATHE_AMX_LEAVE      the registers are free
 * A test may have its own, which it defines first (test/embedded/amx_model.h). */
#ifndef LATHE_KERNEL_X86_AMX_ASM_H
#define LATHE_KERNEL_X86_AMX_ASM_H

#if defined(LATHE_AMX_SHAPES)
#define LATHE_AMX 1
#elif defined(__AMX_INT8__) && defined(__linux__) && defined(__GNUC__)
#define LATHE_AMX 1

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): of the whole process, so that asking again changes nothing. */
static int lathe_amx_may(void)
{
    static int known; /* 1: yes, 2: no */
    int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == 0) {
        long result = 158;
        __asm__ volatile("syscall" : "+a"(result) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
        now = result == 0 ? 1 : 2;
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return now == 1;
}
#define LATHE_AMX_MAY()                 lathe_amx_may()
#define LATHE_AMX_SHAPES(p)             __asm__ volatile("ldtilecfg %0" : : "m"(*(const unsigned char(*)[64])(p)))
#define LATHE_AMX_LOAD(t, p, apart)                                                                         \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((long)(apart)) : "memory")
#define LATHE_AMX_STORE(t, p, apart)                                                                        \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((long)(apart)) : "memory")
#define LATHE_AMX_ZERO(t)     __asm__ volatile("tilezero %%tmm" #t : :)
#define LATHE_AMX_U8(c, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define LATHE_AMX_I8(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define LATHE_AMX_LEAVE()     __asm__ volatile("tilerelease" : :)
#else
#define LATHE_AMX 0
#endif

#endif
