/* tvmrt_port_freertos.c: the runtime's port for FreeRTOS 10.4 or newer, with statically created objects only. Needs in
 * FreeRTOSConfig.h: configSUPPORT_STATIC_ALLOCATION, configUSE_MUTEXES, configUSE_COUNTING_SEMAPHORES,
 * INCLUDE_vTaskDelete, INCLUDE_vTaskSuspend and INCLUDE_eTaskGetState, all 1. Compile all files of the program with
 * -DTVMRT_PORT_FREERTOS; TVMRT_WORKER_STACK_BYTES and TVMRT_WORKER_PRIORITY choose a worker's stack and priority.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tvmrt.h"

#if defined(ESP_PLATFORM) /* ESP-IDF has them in a folder */
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#else
#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"
#endif

#ifndef TVMRT_PORT_FREERTOS
#error "compile every file of the program with -DTVMRT_PORT_FREERTOS"
#endif

#ifndef TVMRT_WORKER_PRIORITY
#define TVMRT_WORKER_PRIORITY (tskIDLE_PRIORITY + 1)
#endif

struct rtos_mutex {
    SemaphoreHandle_t handle;
    StaticSemaphore_t storage;
};

/* tvmrt_port_blocking.h makes conditions of these. */
struct rtos_cond {
    SemaphoreHandle_t tokens;
    uint32_t waiters; /* under the mutex of the waiters */
    StaticSemaphore_t storage;
};

struct rtos_thread {
    TaskHandle_t task;
    SemaphoreHandle_t ended;
    tvmrt_thread_func_t func;
    void *arg;
    StaticSemaphore_t ended_storage;
    StaticTask_t storage;
    StackType_t stack[TVMRT_WORKER_STACK_BYTES / sizeof(StackType_t)];
};

/* A negative array size here means: raise the macro named in it. */
typedef char tvmrt_mutex_bytes_is_enough[TVMRT_MUTEX_BYTES >= sizeof(struct rtos_mutex) ? 1 : -1];
typedef char tvmrt_cond_bytes_is_enough[TVMRT_COND_BYTES >= sizeof(struct rtos_cond) ? 1 : -1];
typedef char tvmrt_thread_bytes_is_enough[TVMRT_THREAD_BYTES >= sizeof(struct rtos_thread) ? 1 : -1];

static struct rtos_mutex *rtos_mutex(tvmrt_mutex_t *mutex)
{
    return (struct rtos_mutex *)(void *)mutex;
}

static struct rtos_cond *rtos_cond(tvmrt_cond_t *cond)
{
    return (struct rtos_cond *)(void *)cond;
}

static struct rtos_thread *rtos_thread(tvmrt_thread_t *thread)
{
    return (struct rtos_thread *)(void *)thread;
}

static int port_status(BaseType_t result)
{
    return result == pdTRUE ? TVMRT_OK : TVMRT_E_PORT;
}

/* A mutex with priority inheritance: a worker that holds it is not kept from running by tasks in between. */
int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    struct rtos_mutex *rtos = rtos_mutex(mutex);

    rtos->handle = xSemaphoreCreateMutexStatic(&rtos->storage);
    return rtos->handle != NULL ? TVMRT_OK : TVMRT_E_PORT;
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    return port_status(xSemaphoreTake(rtos_mutex(mutex)->handle, portMAX_DELAY));
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    return port_status(xSemaphoreGive(rtos_mutex(mutex)->handle));
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    vSemaphoreDelete(rtos_mutex(mutex)->handle);
    return TVMRT_OK;
}

int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    struct rtos_cond *rtos = rtos_cond(cond);

    rtos->waiters = 0;
    rtos->tokens = xSemaphoreCreateCountingStatic(TVMRT_MAX_WORKERS + 1, 0, &rtos->storage);
    return rtos->tokens != NULL ? TVMRT_OK : TVMRT_E_PORT;
}

static int take_token(struct rtos_cond *cond)
{
    return port_status(xSemaphoreTake(cond->tokens, portMAX_DELAY));
}

static int give_token(struct rtos_cond *cond)
{
    return port_status(xSemaphoreGive(cond->tokens));
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    vSemaphoreDelete(rtos_cond(cond)->tokens);
    return TVMRT_OK;
}

/* A task never returns: it says that it has ended and waits, suspended, to be deleted by the joiner. */
static void task_main(void *arg)
{
    struct rtos_thread *thread = (struct rtos_thread *)arg;

    thread->func(thread->arg);
    xSemaphoreGive(thread->ended);
    for (;;)
        vTaskSuspend(NULL);
}

int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    struct rtos_thread *rtos = rtos_thread(thread);

    rtos->func = func;
    rtos->arg = arg;
    rtos->ended = xSemaphoreCreateBinaryStatic(&rtos->ended_storage);
    if (rtos->ended == NULL)
        return TVMRT_E_PORT;
    rtos->task = xTaskCreateStatic(task_main, "tvmrt", TVMRT_WORKER_STACK_BYTES / sizeof(StackType_t), rtos,
                                   TVMRT_WORKER_PRIORITY, rtos->stack, &rtos->storage);
    if (rtos->task != NULL)
        return TVMRT_OK;
    vSemaphoreDelete(rtos->ended);
    return TVMRT_E_PORT;
}

/* A task that is suspended when another one deletes it is gone at once; one that still runs, on another core, would be
 * cleaned up by the idle task later, when its memory may have got a new use. */
int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    struct rtos_thread *rtos = rtos_thread(thread);

    if (xSemaphoreTake(rtos->ended, portMAX_DELAY) != pdTRUE)
        return TVMRT_E_PORT;
    while (eTaskGetState(rtos->task) != eSuspended)
        vTaskDelay(1);
    vTaskDelete(rtos->task);
    vSemaphoreDelete(rtos->ended);
    return TVMRT_OK;
}

/* The scheduler gives a task that wakes up to a core that is free. */
void tvmrt_thread_keep_off(tvmrt_thread_t *thread)
{
    (void)thread;
}

/* On one core, workers would only take turns with the caller: a run without a limit of its own then stays on it. */
uint32_t tvmrt_port_processors(void)
{
#if defined(configNUMBER_OF_CORES)
    return configNUMBER_OF_CORES;
#elif defined(configNUM_CORES)
    return configNUM_CORES;
#else
    return 1;
#endif
}

#define TVMRT_PORT_TOKENS
#include "tvmrt_port_blocking.h"
