/* caller.c: calls a package once, with tensors and extents from files, and leaves the answer in a file: on Linux behind
 * an emulator such as qemu-aarch64, with BOARD on a board's bare metal. With MEASURED it tells what the call took.
 *     call      text: how many inputs, extents, outputs and numbers behind the outputs; bytes of each input; the
 *               extents; bytes of each output
 *     data      the inputs
 *     answer    status and operator, the numbers, the outputs; in the machine's order of bytes
 *     measured  instructions (-1: no count), bytes of stack, instructions of each operator, and how many of the first
 *               number are those of the hooks
 * On Linux without files it does nothing, which tells whether the emulator runs it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "tvmrt.h"

int32_t CALLED(void *inputs, void *outputs);
#ifdef CONSTANTS
int32_t CONSTANTS(const void *data, size_t size);
#endif

enum { ALIGN = 64, NO_CALL = 3, PAINT = 0xA5, HOSTED_STACK = 1 << 20 };

#ifndef BOARD
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static FILE *files[5];

int board_open(const char *name, int writes)
{
    static int n;

    files[n] = fopen(name, writes ? "wb" : "rb");
    return files[n] != NULL ? n++ : -1;
}

int board_read(int file, void *to, size_t bytes)
{
    return fread(to, 1, bytes, files[file]) == bytes;
}

int board_write(int file, const void *from, size_t bytes)
{
    return fwrite(from, 1, bytes, files[file]) == bytes;
}

int board_close(int file)
{
    return fclose(files[file]) == 0;
}

size_t board_file_size(int file)
{
    long size;

    fseek(files[file], 0, SEEK_END);
    size = ftell(files[file]);
    rewind(files[file]);
    return size < 0 ? 0 : (size_t)size;
}

void board_exit(int code)
{
    exit(code);
}

static char *memory(size_t bytes)
{
    return calloc(bytes, 1);
}
#else
static char *memory(size_t bytes)
{
    static char *top = &__arena_start;
    char *start = top;

    if (bytes > (size_t)(&__arena_end - top))
        return NULL;
    top += bytes;
    return memset(start, 0, bytes);
}
#endif

static void *room(uint64_t bytes)
{
    char *p = memory((size_t)bytes + ALIGN);

    if (p == NULL)
        board_exit(NO_CALL);
    return p + (ALIGN - (uintptr_t)p % ALIGN) % ALIGN;
}

static int file(const char *name, int writes)
{
    int f = board_open(name, writes);

    if (f < 0)
        board_exit(NO_CALL);
    return f;
}

static void *whole_file(const char *name, size_t *out_size)
{
    int f = file(name, 0);
    size_t size = board_file_size(f);
    void *bytes = room(size + 1); /* a zero ends text */

    if (!board_read(f, bytes, size))
        board_exit(NO_CALL);
    board_close(f);
    if (out_size != NULL)
        *out_size = size;
    return bytes;
}

static uint64_t number(const char **text)
{
    const char *s = *text;
    uint64_t v = 0;

    while (*s == ' ' || *s == '\n')
        s++;
    if (*s < '0' || *s > '9')
        board_exit(NO_CALL);
    for (; *s >= '0' && *s <= '9'; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    *text = s;
    return v;
}

/* --- what the call took --- */

#ifdef MEASURED
static int64_t measured[2 + OPERATORS + 1];

#ifndef BOARD
/* Of the emulator's plugin (qemu_counter.c); NULL: it has none. */
static const volatile uint64_t *counter;

static void map_counter(void)
{
    int f = open("instructions.bin", O_RDONLY);
    void *page = f < 0 ? MAP_FAILED : mmap(NULL, sizeof *counter, PROT_READ, MAP_SHARED, f, 0);

    if (f >= 0)
        close(f);
    counter = page == MAP_FAILED ? NULL : page;
}

uint64_t board_instructions(void)
{
    return counter != NULL ? *counter : 0;
}
#endif

uint32_t tvmrt_port_cycles(void)
{
    return (uint32_t)board_instructions();
}

void tvmrt_hook_after(const tvmrt_context_t *context, uint32_t op_id, uint32_t part, int32_t status, uint32_t cycles)
{
    (void)context, (void)part, (void)status;
    if (op_id < OPERATORS)
#ifdef BOARD
        measured[2 + op_id] += cycles;
#else /* a package may have workers here */
        __atomic_add_fetch(&measured[2 + op_id], (int64_t)cycles, __ATOMIC_RELAXED);
#endif
}

/* What it takes to count an operator, several times, because the count may be a coarse one. */
static int64_t counting(void)
{
    enum { TIMES = 64 };
    const int64_t before = measured[2];
    uint64_t start = board_instructions();
    uint32_t cycles;
    int i;

    for (i = 0; i < TIMES; i++)
        if (tvmrt_hook_before(NULL, 0, 0) == 0) {
            cycles = tvmrt_port_cycles();
            tvmrt_hook_after(NULL, 0, 0, 0, tvmrt_port_cycles() - cycles);
        }
    measured[2] = before;
    return (int64_t)(board_instructions() - start) / TIMES;
}

static char *lower_end(char *stack)
{
#ifdef BOARD
    (void)stack;
    return &__stack_limit;
#else
    return stack - HOSTED_STACK;
#endif
}

/* What lies below the stack pointer is painted, and what is painted no more has been used. */
static __attribute__((noinline)) int32_t call(void *in, void *out)
{
    char *stack;
    volatile char *p;
    uint64_t start;
    int32_t status;

#ifdef __riscv
    __asm__ volatile("mv %0, sp" : "=r"(stack));
#else
    __asm__ volatile("mov %0, sp" : "=r"(stack));
#endif
    for (p = lower_end(stack); p < stack; p++)
        *p = (char)PAINT;
#ifndef BOARD
    map_counter();
#endif
    start = board_instructions();
    status = CALLED(in, out);
    measured[0] = (int64_t)(board_instructions() - start);
    for (p = lower_end(stack); p < stack && *p == (char)PAINT; p++)
        ;
    measured[1] = stack - (char *)(uintptr_t)p;
#ifndef BOARD
    if (counter == NULL)
        measured[0] = -1;
#endif
    measured[2 + OPERATORS] = OPERATORS > 0 ? counting() * OPERATORS : 0;
    return status;
}

static bool tell(void)
{
    int f = file("measured.bin", 1);

    return board_write(f, measured, sizeof measured) && board_close(f);
}
#else
static int32_t call(void *in, void *out)
{
    return CALLED(in, out);
}

static bool tell(void)
{
    return true;
}
#endif

/* --- the call --- */

/* Where the 64-bit numbers behind n pointers lie in a struct. */
static size_t behind(uint64_t n)
{
    size_t bytes = (size_t)n * sizeof(void *);

    return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
}

static bool answer_call(const char *text, const char *data, const char *answer)
{
    uint64_t n_in = number(&text), n_extents = number(&text), n_out = number(&text), n_numbers = number(&text), i;
    char *in = room(behind(n_in + 1) + n_extents * sizeof(int64_t));
    char *out = room(behind(n_out + 1) + n_numbers * sizeof(int64_t));
    uint64_t *bytes = room((n_out + 1) * sizeof *bytes);
    int64_t state[2] = {0, -1};
    tvmrt_log_record_t r;
    int from = file(data, 0), to;
    bool ok = true;

    for (i = 0; i < n_in; i++) {
        uint64_t n = number(&text);

        ((void **)(void *)in)[i] = room(n);
        ok &= board_read(from, ((void **)(void *)in)[i], (size_t)n) != 0;
    }
    for (i = 0; i < n_extents; i++)
        ((int64_t *)(void *)(in + behind(n_in)))[i] = (int64_t)number(&text);
    for (i = 0; i < n_out; i++)
        ((void **)(void *)out)[i] = room(bytes[i] = number(&text));
    state[0] = call(in, out);
    while (state[0] != 0 && tvmrt_log_pop(&r))
        if (r.code == state[0] && r.op_id >= 0 && state[1] < 0)
            state[1] = r.op_id;
    to = file(answer, 1);
    ok = ok && board_write(to, state, sizeof state) &&
         board_write(to, out + behind(n_out), (size_t)n_numbers * sizeof(int64_t));
    for (i = 0; i < n_out; i++)
        ok = ok && board_write(to, ((void **)(void *)out)[i], (size_t)bytes[i]);
    return board_close(to) && ok;
}

#ifdef BOARD
int main(void)
{
    static const char *const argv[] = {"caller", "call", "call.bin", "answer.bin", CONSTANTS_FILE};
    const bool given = argv[4] != NULL;
#else
int main(int argc, char **argv)
{
    const bool given = argc > 4;

    if (argc < 4)
        return 0;
#endif

#ifdef CONSTANTS
    size_t size = 0;
    const void *constants = given ? whole_file(argv[4], &size) : NULL;

    if (given && CONSTANTS(constants, size) != 0)
        return NO_CALL;
#else
    (void)given;
#endif
    return answer_call(whole_file(argv[1], NULL), argv[2], argv[3]) && tell() ? 0 : NO_CALL;
}
