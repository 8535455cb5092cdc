/* tvmrt_port_blocking.h: what ports of systems with threads have in common: the barrier, over their mutex and
 * condition, and the check of sizes. Each of their files includes it last; it lies beside them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMRT_PORT_BLOCKING_H
#define TVMRT_PORT_BLOCKING_H
#include "tvmrt.h"

int tvmrt_barrier_init(tvmrt_barrier_t *barrier)
{
    barrier->pending = 0;
    barrier->waiting = 0;
    barrier->spin = 0;
    if (tvmrt_mutex_init(&barrier->mutex) != TVMRT_OK)
        return TVMRT_E_PORT;
    if (tvmrt_cond_init(&barrier->done) == TVMRT_OK)
        return TVMRT_OK;
    tvmrt_mutex_destroy(&barrier->mutex);
    return TVMRT_E_PORT;
}

int tvmrt_barrier_reset(tvmrt_barrier_t *barrier, uint32_t count)
{
    tvmrt_atomic_store(&barrier->pending, count);
    return TVMRT_OK;
}

/* The mutex is touched only when the waiting thread sleeps. `waiting` is set before the sleeper's last look at
 * `pending` and read after the last arrival, so one of the two sees the other. A late signal is a wake-up without
 * cause. */
int tvmrt_barrier_arrive(tvmrt_barrier_t *barrier)
{
    int status;

    if (tvmrt_atomic_add(&barrier->pending, (uint32_t)-1) != 0 || tvmrt_atomic_load(&barrier->waiting) == 0)
        return TVMRT_OK;
    if (tvmrt_mutex_lock(&barrier->mutex) != TVMRT_OK)
        return TVMRT_E_PORT;
    status = tvmrt_cond_signal(&barrier->done);
    tvmrt_mutex_unlock(&barrier->mutex);
    return status;
}

int tvmrt_barrier_sync(tvmrt_barrier_t *barrier)
{
    int status = TVMRT_OK;
    uint32_t spin;

    for (spin = barrier->spin; spin > 0 && tvmrt_atomic_load(&barrier->pending) != 0; spin--)
        tvmrt_cpu_relax();
    if (tvmrt_atomic_load(&barrier->pending) == 0)
        return TVMRT_OK;
    if (tvmrt_mutex_lock(&barrier->mutex) != TVMRT_OK)
        return TVMRT_E_PORT;
    tvmrt_atomic_store(&barrier->waiting, 1);
    while (status == TVMRT_OK && tvmrt_atomic_load(&barrier->pending) != 0)
        status = tvmrt_cond_wait(&barrier->done, &barrier->mutex);
    tvmrt_atomic_store(&barrier->waiting, 0);
    tvmrt_mutex_unlock(&barrier->mutex);
    return status;
}

int tvmrt_barrier_destroy(tvmrt_barrier_t *barrier)
{
    int cond = tvmrt_cond_destroy(&barrier->done);
    int mutex = tvmrt_mutex_destroy(&barrier->mutex);

    return cond != TVMRT_OK ? cond : mutex;
}

int tvmrt_port_check(size_t mutex_bytes, size_t cond_bytes, size_t thread_bytes)
{
    return mutex_bytes == sizeof(tvmrt_mutex_t) && cond_bytes == sizeof(tvmrt_cond_t) &&
                   thread_bytes == sizeof(tvmrt_thread_t)
               ? TVMRT_OK
               : TVMRT_E_ABI;
}

#endif
