/* cmsis_stub.c: the CMSIS-RTOS2 stand-in over POSIX threads. A thread that sleeps for ever is the one that may be
 * terminated; any other is an error of the port, and aborts.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "cmsis_os2.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct stub_thread {
    pthread_t thread;
    osThreadFunc_t func;
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int asleep, ended;
} stub_thread;

typedef struct stub_semaphore {
    pthread_mutex_t lock;
    pthread_cond_t given;
    uint32_t count, most;
} stub_semaphore;

static __thread stub_thread *current;

osStatus_t osKernelInitialize(void)
{
    return osOK;
}

/* The real one never returns. */
osStatus_t osKernelStart(void)
{
    for (;;)
        (void)osDelay(1000);
}

void osThreadExit(void)
{
    exit(0); /* the program's only thread of its own has done its work */
}

osStatus_t osDelay(uint32_t ticks)
{
    const struct timespec t = {0, 1000000L};

    if (ticks < 1000000)
        return nanosleep(&t, NULL) == 0 ? osOK : osError;
    pthread_mutex_lock(&current->lock);
    current->asleep = 1;
    while (!current->ended)
        pthread_cond_wait(&current->changed, &current->lock);
    pthread_mutex_unlock(&current->lock);
    pthread_exit(NULL);
}

static void *begin(void *arg)
{
    current = (stub_thread *)arg;
    current->func(current->arg);
    return NULL;
}

osThreadId_t osThreadNew(osThreadFunc_t func, void *arg, const osThreadAttr_t *attributes)
{
    stub_thread *t = (stub_thread *)calloc(1, sizeof *t);

    if (t == NULL || attributes->stack_size == 0)
        abort();
    t->func = func;
    t->arg = arg;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    return pthread_create(&t->thread, NULL, begin, t) == 0 ? t : NULL;
}

osThreadState_t osThreadGetState(osThreadId_t thread)
{
    stub_thread *t = (stub_thread *)thread;
    osThreadState_t state;

    pthread_mutex_lock(&t->lock);
    state = t->asleep ? osThreadBlocked : osThreadRunning;
    pthread_mutex_unlock(&t->lock);
    return state;
}

osStatus_t osThreadTerminate(osThreadId_t thread)
{
    stub_thread *t = (stub_thread *)thread;

    pthread_mutex_lock(&t->lock);
    if (!t->asleep)
        abort();
    t->ended = 1;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    free(t);
    return osOK;
}

osMutexId_t osMutexNew(const osMutexAttr_t *attributes)
{
    pthread_mutex_t *m = (pthread_mutex_t *)malloc(sizeof *m);

    (void)attributes;
    if (m != NULL)
        pthread_mutex_init(m, NULL);
    return m;
}

osStatus_t osMutexAcquire(osMutexId_t mutex, uint32_t ticks)
{
    return ticks == osWaitForever && pthread_mutex_lock((pthread_mutex_t *)mutex) == 0 ? osOK : osError;
}

osStatus_t osMutexRelease(osMutexId_t mutex)
{
    return pthread_mutex_unlock((pthread_mutex_t *)mutex) == 0 ? osOK : osError;
}

osStatus_t osMutexDelete(osMutexId_t mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
    free(mutex);
    return osOK;
}

osSemaphoreId_t osSemaphoreNew(uint32_t most, uint32_t count, const osSemaphoreAttr_t *attributes)
{
    stub_semaphore *s = (stub_semaphore *)calloc(1, sizeof *s);

    (void)attributes;
    if (s == NULL)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->given, NULL);
    s->count = count;
    s->most = most;
    return s;
}

osStatus_t osSemaphoreAcquire(osSemaphoreId_t semaphore, uint32_t ticks)
{
    stub_semaphore *s = (stub_semaphore *)semaphore;

    if (ticks != osWaitForever)
        return osError;
    pthread_mutex_lock(&s->lock);
    while (s->count == 0)
        pthread_cond_wait(&s->given, &s->lock);
    s->count--;
    pthread_mutex_unlock(&s->lock);
    return osOK;
}

osStatus_t osSemaphoreRelease(osSemaphoreId_t semaphore)
{
    stub_semaphore *s = (stub_semaphore *)semaphore;
    osStatus_t status = osError;

    pthread_mutex_lock(&s->lock);
    if (s->count < s->most) {
        s->count++;
        pthread_cond_signal(&s->given);
        status = osOK;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

osStatus_t osSemaphoreDelete(osSemaphoreId_t semaphore)
{
    stub_semaphore *s = (stub_semaphore *)semaphore;

    pthread_cond_destroy(&s->given);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return osOK;
}
