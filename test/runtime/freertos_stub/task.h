/* task.h: tasks of the FreeRTOS stand-in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STUB_TASK_H
#define STUB_TASK_H

#include "FreeRTOS.h"

typedef StaticTask_t *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);
typedef enum { eRunning = 0, eReady, eBlocked, eSuspended, eDeleted, eInvalid } eTaskState;

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t stack_words, void *arg,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *storage);
void vTaskDelete(TaskHandle_t task);
void vTaskSuspend(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
eTaskState eTaskGetState(TaskHandle_t task);
/* Runs until every task has deleted itself or was deleted; the real one never returns. */
void vTaskStartScheduler(void);

#endif
