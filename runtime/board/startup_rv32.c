/* startup_rv32.c: reset code for 32-bit RISC-V as QEMU's machine virt has it: stack, data and bss, faults, and the
 * count of instructions, which mcycle is under -icount shift=0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

extern uint32_t __data_load, __data_start, __data_end, __bss_start, __bss_end;
extern int main(void);
void reset_handler(void);
void start(void);
void fault_handler(void);

uint64_t board_instructions(void)
{
    uint32_t high, low, again;

    do {
        __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, mcycleh\ncsrr %1, mcycle\ncsrr %2, mcycleh\n"
                         ".option pop"
                         : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
}

void fault_handler(void)
{
    board_exit(3);
}

void start(void)
{
    uint32_t *from = &__data_load, *to;

    for (to = &__data_start; to < &__data_end; to++)
        *to = *from++;
    for (to = &__bss_start; to < &__bss_end; to++)
        *to = 0;
    board_exit(main());
}

__attribute__((naked, section(".reset"), used)) void reset_handler(void)
{
    __asm__ volatile(".option push\n.option arch, +zicsr\nla sp, __stack_top\nla t0, trap\ncsrw mtvec, t0\nj start\n"
                     ".balign 4\ntrap: la sp, __stack_top\nj fault_handler\n.option pop");
}
