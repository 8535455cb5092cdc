/* tvmrt_port_cmsis_rtos2.c: the runtime's port for systems with CMSIS-RTOS2: ThreadX by its layer of that name, Keil
 * RTX5 and others. Mutexes, semaphores and threads come from the system's own memory, because how large they are is its
 * secret; stacks of workers lie in the engine. Compile all files of the program with -DTVMRT_PORT_CMSIS_RTOS2;
 * TVMRT_WORKER_STACK_BYTES and TVMRT_WORKER_PRIORITY choose a worker's stack and priority, and TVMRT_PROCESSORS says
 * how many cores share the work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

#include "cmsis_os2.h"

#ifndef TVMRT_PORT_CMSIS_RTOS2
#error "compile every file of the program with -DTVMRT_PORT_CMSIS_RTOS2"
#endif

#ifndef TVMRT_WORKER_PRIORITY
#define TVMRT_WORKER_PRIORITY osPriorityLow
#endif
#ifndef TVMRT_PROCESSORS
#define TVMRT_PROCESSORS 1
#endif

/* tvmrt_port_blocking.h makes conditions of these. */
struct rtos_cond {
    osSemaphoreId_t tokens;
    uint32_t waiters; /* under the mutex of the waiters */
};

struct rtos_thread {
    uint64_t stack[TVMRT_WORKER_STACK_BYTES / sizeof(uint64_t)];
    osThreadId_t id;
    osSemaphoreId_t ended;
    tvmrt_thread_func_t func;
    void *arg;
};

/* A negative array size here means: raise the macro named in it. */
typedef char tvmrt_cond_bytes_is_enough[TVMRT_COND_BYTES >= sizeof(struct rtos_cond) ? 1 : -1];
typedef char tvmrt_thread_bytes_is_enough[TVMRT_THREAD_BYTES >= sizeof(struct rtos_thread) ? 1 : -1];

static struct rtos_cond *rtos_cond(tvmrt_cond_t *cond)
{
    return (struct rtos_cond *)(void *)cond;
}

static struct rtos_thread *rtos_thread(tvmrt_thread_t *thread)
{
    return (struct rtos_thread *)(void *)thread;
}

static int port_status(osStatus_t status)
{
    return status == osOK ? TVMRT_OK : TVMRT_E_PORT;
}

/* With priority inheritance: a worker that holds it is not kept from running by threads in between. */
int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    osMutexAttr_t attributes = {0};

    attributes.attr_bits = osMutexPrioInherit;
    mutex->pointer = osMutexNew(&attributes);
    return mutex->pointer != NULL ? TVMRT_OK : TVMRT_E_PORT;
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    return port_status(osMutexAcquire(mutex->pointer, osWaitForever));
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    return port_status(osMutexRelease(mutex->pointer));
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    return port_status(osMutexDelete(mutex->pointer));
}

int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    struct rtos_cond *rtos = rtos_cond(cond);

    rtos->waiters = 0;
    rtos->tokens = osSemaphoreNew(TVMRT_MAX_WORKERS + 1, 0, NULL);
    return rtos->tokens != NULL ? TVMRT_OK : TVMRT_E_PORT;
}

static int take_token(struct rtos_cond *cond)
{
    return port_status(osSemaphoreAcquire(cond->tokens, osWaitForever));
}

static int give_token(struct rtos_cond *cond)
{
    return port_status(osSemaphoreRelease(cond->tokens));
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    return port_status(osSemaphoreDelete(rtos_cond(cond)->tokens));
}

/* Not every layer can join threads, so this one says that it has ended and waits to be terminated. */
static void thread_main(void *arg)
{
    struct rtos_thread *thread = (struct rtos_thread *)arg;

    thread->func(thread->arg);
    (void)osSemaphoreRelease(thread->ended);
    for (;;)
        (void)osDelay(osWaitForever - 1);
}

int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    struct rtos_thread *rtos = rtos_thread(thread);
    osThreadAttr_t attributes = {0};

    rtos->func = func;
    rtos->arg = arg;
    rtos->ended = osSemaphoreNew(1, 0, NULL);
    if (rtos->ended == NULL)
        return TVMRT_E_PORT;
    attributes.name = "tvmrt";
    attributes.stack_mem = rtos->stack;
    attributes.stack_size = sizeof rtos->stack;
    attributes.priority = TVMRT_WORKER_PRIORITY;
    rtos->id = osThreadNew(thread_main, rtos, &attributes);
    if (rtos->id != NULL)
        return TVMRT_OK;
    (void)osSemaphoreDelete(rtos->ended);
    return TVMRT_E_PORT;
}

/* Its stack is free for other use once it is terminated: until it sleeps it may still run, on another core. */
int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    struct rtos_thread *rtos = rtos_thread(thread);

    if (osSemaphoreAcquire(rtos->ended, osWaitForever) != osOK)
        return TVMRT_E_PORT;
    while (osThreadGetState(rtos->id) != osThreadBlocked)
        (void)osDelay(1);
    (void)osSemaphoreDelete(rtos->ended);
    return port_status(osThreadTerminate(rtos->id));
}

/* The scheduler gives a thread that wakes up to a core that is free. */
void tvmrt_thread_keep_off(tvmrt_thread_t *thread)
{
    (void)thread;
}

/* On one core, workers would only take turns with the caller: a run without a limit of its own then stays on it. */
uint32_t tvmrt_port_processors(void)
{
    return TVMRT_PROCESSORS;
}

#define TVMRT_PORT_TOKENS
#include "tvmrt_port_blocking.h"
