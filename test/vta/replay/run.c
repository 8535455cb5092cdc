/* run.c: runs captured streams that are part of the program, on a simulator without a context: one device and one
 * scratch for all, over static memory that the device is shown. The second stream reads what the first one wrote.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "vta.h"

extern const vta_capture add_five, add_nine;

enum { IN = 0, OUT = 4096, NEXT = 8192, SCRATCH = 12288, BYTES = 16384 };
static _Alignas(4096) char arena[BYTES];

static vta_memory part(const vta_memory *whole, size_t at, size_t bytes)
{
    return (vta_memory){(char *)whole->host + at, whole->phys + at, bytes};
}

/* out = low bytes of (in + number), of 64 numbers. */
static int check(const char *stream, const char *out, const char *in, int32_t number)
{
    for (int i = 0; i < 64; i++) {
        int32_t v;
        memcpy(&v, in + 4 * i, sizeof v);
        if (out[i] != (char)(v + number))
            return printf("%s: lane %d is %d\n", stream, i, out[i]), 1;
    }
    return 0;
}

int main(void)
{
    const vta_sim_options so = {.seed = 1};
    vta_sim *sim;
    vta_error e = {VTA_OK, ""};
    vta_memory whole;
    if (vta_sim_create(&add_five.config, &so, &sim, &e) != VTA_OK)
        return 1;
    vta_device d = vta_sim_device(sim);
    if (d.driver->map(d.self, arena, sizeof arena, &whole, &e) != VTA_OK)
        return puts(e.text), 1;
    const vta_memory scratch = part(&whole, SCRATCH, vta_replay_bytes(&add_five));
    const vta_memory first[2] = {part(&whole, IN, 256), part(&whole, OUT, 64)};
    const vta_memory second[2] = {part(&whole, OUT, 256), part(&whole, NEXT, 64)};
    for (int round = 0; round < 3; round++) {
        for (int32_t i = 0; i < 64; i++)
            memcpy(arena + IN + 4 * i, &(int32_t){3 * i + round}, 4);
        if (vta_replay(&d, &add_five, &scratch, first, 1000, &e) != VTA_OK ||
            vta_replay(&d, &add_nine, &scratch, second, 1000, &e) != VTA_OK)
            return puts(e.text), 1;
        if (check("add_five", arena + OUT, arena + IN, 5) || check("add_nine", arena + NEXT, arena + OUT, 9))
            return 1;
    }
    if (vta_replay(&d, &add_five, &scratch, first, 10, &e) != VTA_TIMEOUT)
        return puts("patience does not end"), 1;
    vta_device_destroy(&d);
    puts("right");
    return 0;
}
