/* vta_host.c: the device of a program that was compiled for the accelerator and runs on a host: a functional simulator,
 * one for the process, made for the configuration that is asked for. On a board the board's code defines these two
 * functions instead (vta_replay.h), and this file is left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "vta.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held from acquire to release */
static vta_device device;                                /* device.driver NULL: none yet */

vta_device *vta_host_acquire(const vta_config *c, vta_error *e)
{
    const vta_sim_options o = {.dram_bytes = (uint64_t)1 << 32};
    vta_sim *sim;
    pthread_mutex_lock(&lock);
    if (device.driver && !vta_config_equal(&device.config, c)) {
        vta_device_destroy(&device);
        memset(&device, 0, sizeof device);
    }
    if (!device.driver) {
        if (vta_sim_create(c, &o, &sim, e) != VTA_OK) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        device = vta_sim_device(sim);
    }
    return &device;
}

void vta_host_release(vta_device *d, const vta_error *e)
{
    if (e->status != VTA_OK)
        fprintf(stderr, "vta: %s\n", e->text);
    if (d)
        pthread_mutex_unlock(&lock);
}
