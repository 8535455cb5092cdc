#!/usr/bin/env bash
# States: memory of an instance that keeps its value between runs. Two instances and the static one run side by side, in
# turns, and give what each gives alone, with any number of workers; a reset is a new beginning. --state and --steps.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cc=${CC:-cc}
cd "$work" || exit 3

# A sum in place, a register that shifts, a cell that reads all of its state, two that change places, bytes that begin
# with a number other than 0, and a state that nobody writes.
cat > model.txt << 'T'
func @main(%x: f32[1, 40], %sum: f32[1, 40], %line: f32[5, 40], %cell: f32[1, 40], %p: f32[40], %q: f32[40], %count: i8[40], %one: i8[40]) {
  %sum1 = add(%sum, %x) : f32[1, 40]
  %all = concatenate(%line, %x) {axis = 0} : f32[6, 40]
  %b = constant i64[1] dense [1]
  %e = constant i64[1] dense [6]
  %z = constant i64[1] dense [0]
  %line1 = strided_slice(%all, %b, %e, %z) : f32[5, 40]
  %w = constant f32[40, 40] splat 0.0625
  %m = nn.matmul(%cell, %w) : f32[1, 40]
  %n = add(%m, %x) : f32[1, 40]
  %cell1 = tanh(%n) : f32[1, 40]
  %count1 = add(%count, %one) : i8[40]
  %f = cast(%count1) {dtype = f32} : f32[40]
  %u = add(%sum1, %cell1) : f32[1, 40]
  %v = add(%u, %p) : f32[1, 40]
  %y = add(%v, %f) : f32[1, 40]
  %o = add(%y, %line1) : f32[5, 40]
  return %o, %sum1 state of %sum, %line1 state of %line from splat 0.5, %cell1 state of %cell, %q state of %p from splat 1.0, %p state of %q, %count1 state of %count from splat -7, %one state of %one from splat 1
}
T
cat > program.c << 'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tvmgen_default_instance.h"

enum { STEPS = 12, INSTANCES = 2, SIZE = TVMGEN_DEFAULT_O_SIZE / 4 };
static struct tvmgen_default_instance instances[INSTANCES];
TVMRT_ALIGNED(64) static uint8_t memory[INSTANCES][TVMGEN_DEFAULT_WORKSPACE_SIZE];
static float alone[INSTANCES + 1][STEPS][SIZE], got[SIZE], x[40];

static int one(int who, int step)
{
    struct tvmgen_default_inputs in = {x};
    struct tvmgen_default_outputs out = {got};
    int i;

    for (i = 0; i < 40; i++)
        x[i] = (float)((i * 7 + step * 3 + who * 5) % 11) * 0.125f - 0.5f;
    return who < INSTANCES ? (int)tvmgen_default_run_instance(&instances[who], &in, &out)
                           : (int)tvmgen_default_run(&in, &out);
}

static int reset(int who)
{
    return who < INSTANCES ? (int)tvmgen_default_instance_reset(&instances[who]) : (int)tvmgen_default_reset();
}

int main(void)
{
    int who, step, round, wrong = 0, status = 0;
    unsigned long sum = 0;
    size_t i;

    printf("before init %d\n", (int)tvmgen_default_instance_reset(&instances[0]));
    for (who = 0; who < INSTANCES; who++)
        status |= (int)tvmgen_default_instance_init(&instances[who], NULL, memory[who], sizeof memory[who]);
    for (who = 0; who <= INSTANCES; who++)
        for (step = 0; step < STEPS; step++) {
            status |= one(who, step);
            memcpy(alone[who][step], got, sizeof got);
        }
    for (round = 0; round < 2; round++) {
        for (who = 0; who <= INSTANCES; who++)
            status |= reset(who);
        for (step = 0; step < STEPS; step++)
            for (who = 0; who <= INSTANCES; who++) {
                status |= one(who, step);
                wrong += memcmp(got, alone[who][step], sizeof got) != 0;
            }
    }
    status |= (int)tvmgen_default_instance_init(&instances[0], NULL, memory[0], sizeof memory[0]);
    status |= one(0, 0);
    wrong += memcmp(got, alone[0][0], sizeof got) != 0;
    wrong += memcmp(alone[0][1], alone[0][0], sizeof got) == 0;
    for (i = 0; i < sizeof alone; i++)
        sum = sum * 31 + ((const unsigned char *)alone)[i];
    printf("status %d, wrong %d, states %u, sum %lu\n", status, wrong, TVMGEN_DEFAULT_STATES_SIZE, sum);
    return status != 0 || wrong != 0;
}
C
for workers in 0 4; do
    expect 0 '' compile model.txt --target generic --workers $workers -o p$workers -q
    check "make lib" make -s -C p$workers lib CC="$cc"
    "$cc" -std=c99 -Wall -Wextra -Werror -pedantic -DTVMRT_NUM_WORKERS=$workers -Ip$workers/include program.c \
        p$workers/libtvmgen_default.a -lm -lpthread -o program && ./program > said$workers
    check "instances of $workers workers do not share states" grep -q '^status 0, wrong 0, states 1672,' said$workers
    check "no reset before an init" grep -q '^before init -9$' said$workers
done
check "the same bytes with any number of workers" cmp said0 said4
check "what is copied is told" grep -q '"update": "copy"' p0/report.json
check "what is written in place is told" grep -q '"update": "in place"' p0/report.json

# --- steps of a sequence: a file with one more axis, one step for all, and what is compared
"${LATHE_PYTHON:-python3}" - << 'P'
import struct
def save(name, shape, numbers):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += ' ' * (63 - (10 + len(head)) % 64) + '\n'
    open(name, 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() +
                           struct.pack('<%df' % len(numbers), *numbers))
save('steps.npy', (3, 1, 40), [i % 7 - 3 for i in range(120)])
save('one.npy', (1, 40), [i % 5 - 2 for i in range(40)])
open('steps.bin', 'wb').write(struct.pack('<120f', *[i % 7 - 3 for i in range(120)]))
P
for how in "" --interpret "--emit module"; do
    expect 0 'o: f32\[3, 5, 40\]' run model.txt --input x=steps.npy --steps 3 $how
    cp stdout "said${how// /}"
done
check "the interpreter's steps" cmp said said--interpret
check "a module's steps" cmp said said--emitmodule
expect 0 'o: f32\[3, 5, 40\]' run model.txt --input x=steps.bin --steps 3
check "raw steps" cmp said stdout
expect_error 1 "steps.npy' holds 3 steps of 'x', and --steps says 4" run model.txt --input x=steps.npy --steps 4
expect_error 1 "steps.bin' holds 3 steps of 'x', and --steps says 2" run model.txt --input x=steps.bin --steps 2
expect 0 'o: f32\[4, 5, 40\]' run p0 --input x=one.npy --steps 4
expect 0 'o: 20 steps.*: ok' verify model.txt --steps 20 --against interpreter
expect 0 'o: 20 steps.*: ok' verify model.txt --steps 20 --against c --emit module
expect 0 'o: 3 samples.*: ok' verify model.txt --seeds 3 --against interpreter
expect_error 2 'give the sequence with --input' verify model.txt --steps 3 --seeds 2 --against interpreter
expect_error 1 "holds 3 steps of 'x', and --steps says 4" run model.txt --input x=steps.npy --steps 4
expect_error 2 'an emulator starts anew' run model.txt --steps 4 --target qemu-m4
expect_error 2 "'x' is no output|for example --state" compile model.txt --state x -o q
finish
