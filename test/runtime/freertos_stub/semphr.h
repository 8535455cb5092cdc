/* semphr.h: semaphores of the FreeRTOS stand-in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STUB_SEMPHR_H
#define STUB_SEMPHR_H

#include "FreeRTOS.h"

typedef StaticSemaphore_t *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *storage);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *storage);
SemaphoreHandle_t xSemaphoreCreateCountingStatic(UBaseType_t limit, UBaseType_t count, StaticSemaphore_t *storage);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
void vSemaphoreDelete(SemaphoreHandle_t semaphore);

#endif
