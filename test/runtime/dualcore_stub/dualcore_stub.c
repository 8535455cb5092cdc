/* dualcore_stub.c: the board of the dual-core port where POSIX threads stand for cores: how the other core is started,
 * and, for cores without atomic instructions, what keeps everybody else out.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tvmrt.h"

#include <pthread.h>

void tvmrt_port_start_core(void (*entry)(void));

static void *core(void *arg)
{
    (*(void (**)(void))arg)();
    return NULL;
}

void tvmrt_port_start_core(void (*entry)(void))
{
    static void (*kept)(void);
    pthread_t other;

    kept = entry;
    if (pthread_create(&other, NULL, core, &kept) == 0)
        pthread_detach(other);
}

#ifdef TVMRT_ATOMIC_HOOKS
static pthread_mutex_t hardware = PTHREAD_MUTEX_INITIALIZER;

uint32_t tvmrt_port_atomic_begin(void)
{
    return (uint32_t)pthread_mutex_lock(&hardware);
}

void tvmrt_port_atomic_end(uint32_t begun)
{
    (void)begun;
    pthread_mutex_unlock(&hardware);
}
#endif
