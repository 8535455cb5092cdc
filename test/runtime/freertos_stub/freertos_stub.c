/* freertos_stub.c: the FreeRTOS stand-in over POSIX threads. It aborts on uses that the documented API forbids: giving
 * a mutex that the caller does not hold, deleting a task that has neither suspended itself nor is the caller.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __thread StaticTask_t *current;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_gone = PTHREAD_COND_INITIALIZER;
static int alive;

static void forbid(const char *what)
{
    fprintf(stderr, "freertos stand-in: %s\n", what);
    abort();
}

static SemaphoreHandle_t make(UBaseType_t limit, UBaseType_t count, int is_mutex, StaticSemaphore_t *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->given, NULL);
    s->count = count;
    s->limit = limit;
    s->is_mutex = is_mutex;
    return s;
}

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *storage)
{
    return make(1, 1, 1, storage);
}

SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *storage)
{
    return make(1, 0, 0, storage);
}

SemaphoreHandle_t xSemaphoreCreateCountingStatic(UBaseType_t limit, UBaseType_t count, StaticSemaphore_t *storage)
{
    return make(limit, count, 0, storage);
}

BaseType_t xSemaphoreTake(SemaphoreHandle_t s, TickType_t ticks)
{
    if (ticks != portMAX_DELAY)
        forbid("only portMAX_DELAY is supported");
    pthread_mutex_lock(&s->lock);
    while (s->count == 0)
        pthread_cond_wait(&s->given, &s->lock);
    s->count--;
    s->holder = pthread_self();
    pthread_mutex_unlock(&s->lock);
    return pdTRUE;
}

BaseType_t xSemaphoreGive(SemaphoreHandle_t s)
{
    BaseType_t result = pdFALSE;

    pthread_mutex_lock(&s->lock);
    if (s->is_mutex && (s->count != 0 || !pthread_equal(s->holder, pthread_self())))
        forbid("a mutex is given by a task that does not hold it");
    if (s->count < s->limit) {
        s->count++;
        pthread_cond_signal(&s->given);
        result = pdTRUE;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

void vSemaphoreDelete(SemaphoreHandle_t s)
{
    pthread_cond_destroy(&s->given);
    pthread_mutex_destroy(&s->lock);
}

static void leave(void)
{
    pthread_mutex_lock(&all_lock);
    if (--alive == 0)
        pthread_cond_broadcast(&all_gone);
    pthread_mutex_unlock(&all_lock);
}

static void *trampoline(void *arg)
{
    current = (StaticTask_t *)arg;
    current->code(current->arg);
    forbid("a task function returned");
    return NULL;
}

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t stack_words, void *arg,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *storage)
{
    (void)name;
    (void)priority;
    if (stack_words == 0 || stack == NULL || storage == NULL)
        return NULL;
    memset(stack, 0xA5, stack_words * sizeof *stack); /* finds a stack that overlaps with something */
    memset(storage, 0, sizeof *storage);
    storage->code = code;
    storage->arg = arg;
    pthread_mutex_init(&storage->lock, NULL);
    pthread_cond_init(&storage->changed, NULL);
    pthread_mutex_lock(&all_lock);
    alive++;
    pthread_mutex_unlock(&all_lock);
    return pthread_create(&storage->thread, NULL, trampoline, storage) == 0 ? storage : NULL;
}

void vTaskSuspend(TaskHandle_t task)
{
    if (task != NULL)
        forbid("only the calling task can be suspended");
    pthread_mutex_lock(&current->lock);
    current->suspended = 1;
    while (!current->deleted)
        pthread_cond_wait(&current->changed, &current->lock);
    pthread_mutex_unlock(&current->lock);
    pthread_exit(NULL);
}

/* A task that deletes itself is detached, as the idle task would clean up after it. */
void vTaskDelete(TaskHandle_t task)
{
    if (task == NULL) {
        pthread_detach(pthread_self());
        leave();
        pthread_exit(NULL);
    }
    pthread_mutex_lock(&task->lock);
    if (!task->suspended)
        forbid("a task is deleted while it runs");
    task->deleted = 1;
    pthread_cond_signal(&task->changed);
    pthread_mutex_unlock(&task->lock);
    pthread_join(task->thread, NULL);
    memset(task, 0x5A, sizeof *task);
    leave();
}

void vTaskDelay(TickType_t ticks)
{
    struct timespec t = {0, (long)ticks * 1000000L};

    nanosleep(&t, NULL);
}

eTaskState eTaskGetState(TaskHandle_t task)
{
    eTaskState state;

    pthread_mutex_lock(&task->lock);
    state = task->suspended ? eSuspended : eRunning;
    pthread_mutex_unlock(&task->lock);
    return state;
}

void vTaskStartScheduler(void)
{
    pthread_mutex_lock(&all_lock);
    while (alive > 0)
        pthread_cond_wait(&all_gone, &all_lock);
    pthread_mutex_unlock(&all_lock);
}
