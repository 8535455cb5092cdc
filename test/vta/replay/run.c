/* run.c: runs a captured stream that is part of the program, on a device without a context.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "vta.h"

extern const vta_capture add_five;

int main(void)
{
    const vta_sim_options so = {.seed = 1};
    vta_sim *sim;
    vta_error e = {VTA_OK, ""};
    vta_memory scratch, bindings[2];
    if (vta_sim_create(&add_five.config, &so, &sim, &e) != VTA_OK)
        return 1;
    vta_device d = vta_sim_device(sim);
    d.driver->alloc(d.self, vta_replay_bytes(&add_five), true, &scratch, &e);
    for (uint32_t i = 0; i < add_five.n_bindings; i++)
        d.driver->alloc(d.self, add_five.binding_bytes[i], true, &bindings[i], &e);
    for (int i = 0; i < 64; i++)
        ((int32_t *)bindings[0].host)[i] = 3 * i;
    if (e.status != VTA_OK || vta_replay(&d, &add_five, &scratch, bindings, 1000, &e) != VTA_OK)
        return puts(e.text), 1;
    for (int i = 0; i < 64; i++)
        if (((int8_t *)bindings[1].host)[i] != (int8_t)(3 * i + 5))
            return printf("lane %d is %d\n", i, ((int8_t *)bindings[1].host)[i]), 1;
    vta_device_destroy(&d);
    puts("right");
    return 0;
}
