/* board.h: what a program in an emulator finds on each of its machines: files of the host, a count of instructions,
 * memory for the caller's tensors, the lower end of the stack. Files come by ARM's semihosting, which RISC-V took over.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* One call of the host; its answer. */
int board_call(int operation, const void *argument);
void board_exit(int code) __attribute__((noreturn));

/* A file of the host: below 0: it cannot be opened; whether all bytes were read, or written. */
int board_open(const char *name, int writes);
int board_read(int file, void *to, size_t bytes);
int board_write(int file, const void *from, size_t bytes);
int board_close(int file);
size_t board_file_size(int file);

/* Instructions executed so far. */
uint64_t board_instructions(void);

/* Of the linker script. */
extern char __arena_start, __arena_end, __stack_limit;
#endif
