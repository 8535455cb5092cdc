/* semihost.c: semihosting on Cortex-M and RISC-V: files of the machine on which the emulator or the debug probe
 * runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <string.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_FLEN = 0x0C,
    SYS_EXIT_EXTENDED = 0x20,
    STOPPED_APPLICATION_EXIT = 0x20026,
    MODE_RB = 1,
    MODE_WB = 5
};

int board_call(int operation, const void *argument)
{
#if defined(__riscv)
    register int answer __asm__("a0") = operation;
    register const void *block __asm__("a1") = argument;

    /* not compressed: a debugger knows the call by these three words */
    __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                     "slli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop"
                     : "+r"(answer)
                     : "r"(block)
                     : "memory");
#else
    register int answer __asm__("r0") = operation;
    register const void *block __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xAB" : "+r"(answer) : "r"(block) : "memory");
#endif
    return answer;
}

void board_exit(int code)
{
    const uint32_t block[2] = {STOPPED_APPLICATION_EXIT, (uint32_t)code};

    for (;;)
        board_call(SYS_EXIT_EXTENDED, block);
}

int board_open(const char *name, int writes)
{
    const uintptr_t block[3] = {(uintptr_t)name, writes ? MODE_WB : MODE_RB, strlen(name)};

    return board_call(SYS_OPEN, block);
}

int board_close(int file)
{
    const uintptr_t block[1] = {(uintptr_t)file};

    return board_call(SYS_CLOSE, block) == 0;
}

/* The host answers with the bytes that are left over. */
int board_read(int file, void *to, size_t bytes)
{
    const uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)to, bytes};

    return bytes == 0 || board_call(SYS_READ, block) == 0;
}

int board_write(int file, const void *from, size_t bytes)
{
    const uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)from, bytes};

    return bytes == 0 || board_call(SYS_WRITE, block) == 0;
}

size_t board_file_size(int file)
{
    const uintptr_t block[1] = {(uintptr_t)file};
    const int size = board_call(SYS_FLEN, block);

    return size < 0 ? 0 : (size_t)size;
}
