/* tvmrt_port_blocking.h: what ports of systems with threads share, beside what tvmrt_port_common.h has for all ports:
 * the barrier, over their mutex and condition, and conditions made of semaphores. Each of their files includes it last;
 * it lies beside them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TVMRT_PORT_BLOCKING_H
#define TVMRT_PORT_BLOCKING_H
#include "tvmrt_port_common.h"

/* Where a system has no condition variables, a semaphore holds one token for each waiter that was woken. Such a port
 * has a struct rtos_cond that counts its `waiters`, under their mutex, and take_token and give_token. */
#ifdef TVMRT_PORT_TOKENS
/* A token that is given between the unlock and the take stays in the semaphore, so that no wake-up is lost. */
int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex)
{
    struct rtos_cond *rtos = rtos_cond(cond);
    int unlocked, taken;

    rtos->waiters++;
    unlocked = tvmrt_mutex_unlock(mutex);
    taken = take_token(rtos);
    if (tvmrt_mutex_lock(mutex) != TVMRT_OK || unlocked != TVMRT_OK)
        return TVMRT_E_PORT;
    return taken;
}

int tvmrt_cond_signal(tvmrt_cond_t *cond)
{
    struct rtos_cond *rtos = rtos_cond(cond);

    if (rtos->waiters == 0)
        return TVMRT_OK;
    rtos->waiters--;
    return give_token(rtos);
}

int tvmrt_cond_broadcast(tvmrt_cond_t *cond)
{
    int status = TVMRT_OK;

    while (rtos_cond(cond)->waiters > 0 && status == TVMRT_OK)
        status = tvmrt_cond_signal(cond);
    return status;
}
#endif

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

#endif
