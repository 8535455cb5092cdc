/* tvmrt_port_baremetal.c: the runtime's port for a single core without an operating system. There are no threads, so
 * locks have nothing to do, and the thread that waits at a barrier is the one that has already done all the work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

/* Nobody could wake the only thread. */
int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex)
{
    (void)cond;
    (void)mutex;
    return TVMRT_E_UNSUPPORTED;
}

int tvmrt_cond_signal(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

int tvmrt_cond_broadcast(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

/* The engine then works with the calling thread alone. */
int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    (void)thread;
    (void)func;
    (void)arg;
    return TVMRT_E_UNSUPPORTED;
}

int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    (void)thread;
    return TVMRT_E_UNSUPPORTED;
}

void tvmrt_thread_keep_off(tvmrt_thread_t *thread)
{
    (void)thread;
}

int tvmrt_barrier_init(tvmrt_barrier_t *barrier)
{
    barrier->pending = 0;
    barrier->waiting = 0;
    barrier->spin = 0;
    return TVMRT_OK;
}

int tvmrt_barrier_reset(tvmrt_barrier_t *barrier, uint32_t count)
{
    barrier->pending = count;
    return TVMRT_OK;
}

int tvmrt_barrier_arrive(tvmrt_barrier_t *barrier)
{
    barrier->pending--;
    return TVMRT_OK;
}

/* Arrivals that are still missing can never come. */
int tvmrt_barrier_sync(tvmrt_barrier_t *barrier)
{
    return barrier->pending == 0 ? TVMRT_OK : TVMRT_E_UNSUPPORTED;
}

int tvmrt_barrier_destroy(tvmrt_barrier_t *barrier)
{
    (void)barrier;
    return TVMRT_OK;
}

uint32_t tvmrt_port_processors(void)
{
    return 1;
}

#include "tvmrt_port_common.h"
