#!/usr/bin/env bash
# --input-in-workspace: an input that is written where the header says gives what one elsewhere gives, which is copied.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 3
cat > m.graph << 'G'
func @main(%x: f32[1, 8, 16, 16], %w: f32[8, 1, 3, 3]) {
  %a = nn.conv2d(%x, %w) {groups = 8, pads = [1, 1, 1, 1]}
  %b = nn.relu(%a)
  %y = nn.conv2d(%b, %w) {groups = 8, pads = [1, 1, 1, 1]}
  return %y
}
G
expect 0 ' ok$' verify m.graph --target cortex-m --input-in-workspace --against interpreter

expect 0 '' compile m.graph --target cortex-m --input-in-workspace -o p
cat > main.c << 'C'
#include "tvmgen_default.h"
#include <stdio.h>
#include <string.h>
static float x[TVMGEN_DEFAULT_X_SIZE / 4], w[TVMGEN_DEFAULT_W_SIZE / 4], y[2][TVMGEN_DEFAULT_Y_SIZE / 4];
int main(void)
{
    unsigned char *ws = tvmgen_default_get_workspace();
    float *inside = (float *)(void *)(ws + TVMGEN_DEFAULT_X_OFFSET);
    float *w_in = (float *)(void *)(ws + TVMGEN_DEFAULT_W_OFFSET);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i % 29) - 14;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (float)(i % 7) - 3;
    struct tvmgen_default_inputs in = {.x = x, .w = w};
    struct tvmgen_default_outputs out = {.y = y[0]};
    if (tvmgen_default_run(&in, &out) != 0)
        return 1;
    for (int again = 0; again < 3; again++) {
        memcpy(inside, x, sizeof x);
        memcpy(w_in, w, sizeof w);
        in.x = inside;
        in.w = w_in;
        out.y = y[1];
        memset(y[1], 0, sizeof y[1]);
        if (tvmgen_default_run(&in, &out) != 0 || memcmp(y[0], y[1], sizeof y[0]) != 0)
            return 2;
    }
    in.x = NULL;
    return tvmgen_default_run(&in, &out) != 0 ? 0 : 3;
}
C
check "the package builds" make -s -C p lib CFLAGS=-O1 CC="${CC:-cc}" AR=ar
check "the program builds" ${CC:-cc} -Ip/include main.c p/libtvmgen_default.a -lm -lpthread -o main
check "both give the same" ./main
expect_error 2 'input-in-workspace' bench m.graph --input-in-workspace
finish
