/* tvmrt_port_zephyr.c: the runtime's port for Zephyr 3.2 or newer, with statically created objects only. Workers have
 * the lowest priority of threads that are no idle threads; TVMRT_WORKER_PRIORITY chooses another one, and
 * TVMRT_WORKER_STACK_BYTES their stacks, which are in this file: one for each worker of one engine. A program that
 * starts several engines at once sets TVMRT_ZEPHYR_STACKS. Compile all files of the program with -DTVMRT_PORT_ZEPHYR.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

#include <zephyr/kernel.h>

#ifndef TVMRT_PORT_ZEPHYR
#error "compile every file of the program with -DTVMRT_PORT_ZEPHYR"
#endif

#ifndef TVMRT_WORKER_PRIORITY
#define TVMRT_WORKER_PRIORITY K_LOWEST_APPLICATION_THREAD_PRIO
#endif
#ifndef TVMRT_ZEPHYR_STACKS
#define TVMRT_ZEPHYR_STACKS (TVMRT_NUM_WORKERS > 1 ? TVMRT_NUM_WORKERS - 1 : 1)
#endif

struct zephyr_thread {
    struct k_thread storage;
    tvmrt_thread_func_t func;
    void *arg;
    uint32_t stack; /* which of the stacks */
};

/* A negative array size here means: raise the macro named in it. */
typedef char tvmrt_mutex_bytes_is_enough[TVMRT_MUTEX_BYTES >= sizeof(struct k_mutex) ? 1 : -1];
typedef char tvmrt_cond_bytes_is_enough[TVMRT_COND_BYTES >= sizeof(struct k_condvar) ? 1 : -1];
typedef char tvmrt_thread_bytes_is_enough[TVMRT_THREAD_BYTES >= sizeof(struct zephyr_thread) ? 1 : -1];

/* Zephyr places stacks by macros, for the memory protection unit: they cannot lie in an engine. */
static K_THREAD_STACK_ARRAY_DEFINE(g_stacks, TVMRT_ZEPHYR_STACKS, TVMRT_WORKER_STACK_BYTES);
static uint32_t g_taken[TVMRT_ZEPHYR_STACKS]; /* atomic */

static struct k_mutex *zephyr_mutex(tvmrt_mutex_t *mutex)
{
    return (struct k_mutex *)(void *)mutex;
}

static struct k_condvar *zephyr_cond(tvmrt_cond_t *cond)
{
    return (struct k_condvar *)(void *)cond;
}

static int port_status(int error)
{
    return error < 0 ? TVMRT_E_PORT : TVMRT_OK;
}

int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    return port_status(k_mutex_init(zephyr_mutex(mutex)));
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    return port_status(k_mutex_lock(zephyr_mutex(mutex), K_FOREVER));
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    return port_status(k_mutex_unlock(zephyr_mutex(mutex)));
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    return port_status(k_condvar_init(zephyr_cond(cond)));
}

int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex)
{
    return port_status(k_condvar_wait(zephyr_cond(cond), zephyr_mutex(mutex), K_FOREVER));
}

int tvmrt_cond_signal(tvmrt_cond_t *cond)
{
    return port_status(k_condvar_signal(zephyr_cond(cond)));
}

int tvmrt_cond_broadcast(tvmrt_cond_t *cond)
{
    return port_status(k_condvar_broadcast(zephyr_cond(cond)));
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

static void thread_main(void *arg, void *unused, void *unused_too)
{
    const struct zephyr_thread *thread = (const struct zephyr_thread *)arg;

    (void)unused;
    (void)unused_too;
    thread->func(thread->arg);
}

int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    struct zephyr_thread *zephyr = (struct zephyr_thread *)(void *)thread;
    uint32_t i = 0;

    while (i < TVMRT_ZEPHYR_STACKS && !tvmrt_atomic_replace(&g_taken[i], 0, 1))
        i++;
    if (i == TVMRT_ZEPHYR_STACKS)
        return TVMRT_E_PORT;
    zephyr->func = func;
    zephyr->arg = arg;
    zephyr->stack = i;
    (void)k_thread_create(&zephyr->storage, g_stacks[i], K_THREAD_STACK_SIZEOF(g_stacks[i]), thread_main, zephyr, NULL,
                          NULL, TVMRT_WORKER_PRIORITY, 0, K_NO_WAIT);
    return TVMRT_OK;
}

int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    struct zephyr_thread *zephyr = (struct zephyr_thread *)(void *)thread;
    const int status = port_status(k_thread_join(&zephyr->storage, K_FOREVER));

    tvmrt_atomic_store(&g_taken[zephyr->stack], 0);
    return status;
}

/* The scheduler gives a thread that wakes up to a core that is free. */
void tvmrt_thread_keep_off(tvmrt_thread_t *thread)
{
    (void)thread;
}

/* On one core, workers would only take turns with the caller: a run without a limit of its own then stays on it. */
uint32_t tvmrt_port_processors(void)
{
#if defined(CONFIG_SMP) && defined(CONFIG_MP_MAX_NUM_CPUS)
    return CONFIG_MP_MAX_NUM_CPUS;
#elif defined(CONFIG_SMP) && defined(CONFIG_MP_NUM_CPUS)
    return CONFIG_MP_NUM_CPUS;
#else
    return 1;
#endif
}

#define TVMRT_PORT_CYCLES() k_cycle_get_32()
#include "tvmrt_port_blocking.h"
