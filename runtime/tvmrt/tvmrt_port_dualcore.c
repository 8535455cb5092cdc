/* tvmrt_port_dualcore.c: the runtime's port for two cores that share their memory and have no operating system, such as
 * RP2350 (Cortex-M33 or Hazard3), RP2040 (with TVMRT_ATOMIC_HOOKS, see tvmrt.h) or STM32H7 where one memory is coherent
 * for both. The core that calls run is worker 0; the other one works for it, and spins when it has nothing to do. Locks
 * and barriers are words in that memory. Compile all files with -DTVMRT_PORT_DUALCORE -DTVMRT_NUM_WORKERS=2. The board
 * supplies tvmrt_port_start_core.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

#ifndef TVMRT_PORT_DUALCORE
#error "compile every file of the program with -DTVMRT_PORT_DUALCORE"
#endif

/* What a core does that waits, and what another does that has something new: on Cortex-M it sleeps until the event of
 * the other core. An event between the look and the sleep ends the sleep at once. A board may have its own. */
#ifndef TVMRT_WAIT
#if defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define TVMRT_WAIT()   __asm__ __volatile__("wfe" ::: "memory")
#define TVMRT_NOTIFY() __asm__ __volatile__("dsb\n\tsev" ::: "memory")
#else
#define TVMRT_WAIT()   tvmrt_cpu_relax()
#define TVMRT_NOTIFY() ((void)0)
#endif
#endif

/* Starts the other core in `entry`, with a stack of its own, and returns; of the board, called once. RP2350:
 * multicore_launch_core1(entry). */
void tvmrt_port_start_core(void (*entry)(void));

/* What the other core is to do. Only the core that calls run writes func and arg, while the state is not WORK. */
enum { CORE_OFF = 0, CORE_WORK, CORE_DONE };

static struct {
    tvmrt_thread_func_t func;
    void *arg;
    uint32_t state; /* atomic */
} g_core;

/* The locked and counted words of this port's objects; zero is free. */
static uint32_t *word_of(void *object)
{
    return (uint32_t *)object;
}

static void set(uint32_t *word, uint32_t value)
{
    tvmrt_atomic_store(word, value);
    TVMRT_NOTIFY();
}

int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    tvmrt_atomic_store(word_of(mutex), 0);
    return TVMRT_OK;
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    while (!tvmrt_atomic_replace(word_of(mutex), 0, 1))
        TVMRT_WAIT();
    return TVMRT_OK;
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    set(word_of(mutex), 0);
    return TVMRT_OK;
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    (void)mutex;
    return TVMRT_OK;
}

/* A condition counts its signals; who waits for it looks for another count than the one before it let the mutex go. */
int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    tvmrt_atomic_store(word_of(cond), 0);
    return TVMRT_OK;
}

int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex)
{
    const uint32_t before = tvmrt_atomic_load(word_of(cond));

    (void)tvmrt_mutex_unlock(mutex);
    while (tvmrt_atomic_load(word_of(cond)) == before)
        TVMRT_WAIT();
    return tvmrt_mutex_lock(mutex);
}

int tvmrt_cond_signal(tvmrt_cond_t *cond)
{
    (void)tvmrt_atomic_add(word_of(cond), 1);
    TVMRT_NOTIFY();
    return TVMRT_OK;
}

int tvmrt_cond_broadcast(tvmrt_cond_t *cond)
{
    return tvmrt_cond_signal(cond);
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    (void)cond;
    return TVMRT_OK;
}

static void core_main(void)
{
    for (;;) {
        while (tvmrt_atomic_load(&g_core.state) != CORE_WORK)
            TVMRT_WAIT();
        g_core.func(g_core.arg);
        set(&g_core.state, CORE_DONE);
    }
}

/* There is one other core. It is started once, and waits for the next thread when one has ended. */
int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    const uint32_t state = tvmrt_atomic_load(&g_core.state);

    (void)thread;
    if (state == CORE_WORK)
        return TVMRT_E_UNSUPPORTED;
    g_core.func = func;
    g_core.arg = arg;
    set(&g_core.state, CORE_WORK);
    if (state == CORE_OFF)
        tvmrt_port_start_core(core_main);
    return TVMRT_OK;
}

int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    (void)thread;
    while (tvmrt_atomic_load(&g_core.state) == CORE_WORK)
        TVMRT_WAIT();
    return TVMRT_OK;
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
    tvmrt_atomic_store(&barrier->pending, count);
    return TVMRT_OK;
}

int tvmrt_barrier_arrive(tvmrt_barrier_t *barrier)
{
    if (tvmrt_atomic_add(&barrier->pending, (uint32_t)-1) == 0)
        TVMRT_NOTIFY();
    return TVMRT_OK;
}

int tvmrt_barrier_sync(tvmrt_barrier_t *barrier)
{
    while (tvmrt_atomic_load(&barrier->pending) != 0)
        TVMRT_WAIT();
    return TVMRT_OK;
}

int tvmrt_barrier_destroy(tvmrt_barrier_t *barrier)
{
    (void)barrier;
    return TVMRT_OK;
}

uint32_t tvmrt_port_processors(void)
{
    return 2;
}

#include "tvmrt_port_common.h"
