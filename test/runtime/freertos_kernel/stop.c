/* stop.c: what the real FreeRTOS asks a program for, and its end: when the idle task is the last one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "FreeRTOS.h"
#include "task.h"

#include <stdio.h>
#include <stdlib.h>

void vApplicationIdleHook(void);
void vApplicationGetIdleTaskMemory(StaticTask_t **task, StackType_t **stack, configSTACK_DEPTH_TYPE *words);

void vApplicationIdleHook(void)
{
    if (uxTaskGetNumberOfTasks() > 1)
        return;
    fflush(stdout);
    _Exit(0);
}

void vApplicationGetIdleTaskMemory(StaticTask_t **task, StackType_t **stack, configSTACK_DEPTH_TYPE *words)
{
    static StaticTask_t idle;
    static StackType_t room[configMINIMAL_STACK_SIZE];

    *task = &idle;
    *stack = room;
    *words = configMINIMAL_STACK_SIZE;
}
