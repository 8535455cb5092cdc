/* startup_mps2.c: reset code for a Cortex-M on the MPS2 and MPS3 boards as QEMU models them: vectors, data and bss,
 * floating point unit, console over semihosting, exit code, and a count of executed instructions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <sys/types.h>

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end, __heap_start, __heap_end;
extern int main(void);

void board_set_count(uint64_t instructions);
void reset_handler(void);
void fault_handler(void);
void systick_handler(void);
void *_sbrk(ptrdiff_t increment);
int _write(int file, const char *data, int length);
void _exit(int code) __attribute__((noreturn));

enum { SEMIHOST_WRITEC = 0x03 };

int _write(int file, const char *data, int length)
{
    int i;

    (void)file;
    for (i = 0; i < length; i++)
        board_call(SEMIHOST_WRITEC, data + i);
    return length;
}

void _exit(int code)
{
    board_exit(code);
}

/* For the C library's printf alone: the model and its runtime allocate nothing. */
void *_sbrk(ptrdiff_t increment)
{
    static char *top = (char *)&__heap_start;
    char *old = top;

    if (increment > (char *)&__heap_end - top)
        return (void *)-1;
    top += increment;
    return old;
}

#define SYSTICK_CONTROL    (*(volatile uint32_t *)0xE000E010u)
#define SYSTICK_RELOAD     (*(volatile uint32_t *)0xE000E014u)
#define SYSTICK_VALUE      (*(volatile uint32_t *)0xE000E018u)
#define COPROCESSOR_ACCESS (*(volatile uint32_t *)0xE000ED88u)

#ifdef BOARD_AN547
#define TICK_QUARTERS 125u /* of a nanosecond */
#else
#define TICK_QUARTERS 160u
#endif

static volatile uint32_t systick_wraps;

void systick_handler(void)
{
    systick_wraps++;
}

/* The counter runs from 0xFFFFFF down to 0, where it interrupts and starts again: 0 is the first tick of a period.
 * The core clock of this board ticks every 40 ns (AN547: 31.25 ns), and with -icount shift=0 an instruction takes 1 ns
 * of virtual time: instructions = ticks * 40, to the nearest 40. The interrupt every 16.7 million ticks adds about 30
 * instructions. */
uint64_t board_instructions(void)
{
    uint32_t wraps, value;

    do {
        wraps = systick_wraps;
        value = SYSTICK_VALUE;
    } while (wraps != systick_wraps);
    return ((uint64_t)wraps * 0x1000000u + (value == 0 ? 0 : 0x1000000u - value)) * TICK_QUARTERS / 4u;
}

static uint64_t counted; /* of the last run; 0: none */

void board_set_count(uint64_t instructions)
{
    counted = instructions;
}

static void print_count(void)
{
    char text[] = "instructions                     \n";
    uint64_t rest = counted;
    size_t at = sizeof text - 2;

    if (counted == 0)
        return;
    for (; rest > 0; rest /= 10)
        text[--at] = (char)('0' + rest % 10);
    _write(1, text, 13);
    _write(1, text + at, (int)(sizeof text - 1 - at));
}

void fault_handler(void)
{
    static const char text[] = "fault\n";

    _write(1, text, sizeof text - 1);
    _exit(3);
}

void reset_handler(void)
{
    uint32_t *from = &__data_load, *to;
    int status;

    COPROCESSOR_ACCESS |= 0xFu << 20;
    __asm__ volatile("dsb\n\tisb");
    for (to = &__data_start; to < &__data_end; to++)
        *to = *from++;
    for (to = &__bss_start; to < &__bss_end; to++)
        *to = 0;
    SYSTICK_RELOAD = 0xFFFFFFu;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7; /* core clock, interrupt, on */
    while (SYSTICK_VALUE == 0)
        ; /* the first reload comes with the next tick */
    status = main();
    print_count();
    _exit(status);
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)&__stack_top,
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    0,
    0,
    0,
    0,
    fault_handler,
    fault_handler,
    0,
    fault_handler,
    systick_handler,
};
