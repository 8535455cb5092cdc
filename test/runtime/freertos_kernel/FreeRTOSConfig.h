/* FreeRTOSConfig.h: the real FreeRTOS on threads of this machine, for ports.sh: what tvmrt_port_freertos.c asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configUSE_PREEMPTION              1
#define configUSE_IDLE_HOOK               1
#define configUSE_TICK_HOOK               0
#define configTICK_RATE_HZ                1000
#define configTICK_TYPE_WIDTH_IN_BITS     1 /* 32 */
#define configUSE_16_BIT_TICKS            0
#define configMINIMAL_STACK_SIZE          4096
#define configMAX_PRIORITIES              4
#define configMAX_TASK_NAME_LEN           12
#define configSUPPORT_STATIC_ALLOCATION   1
#define configSUPPORT_DYNAMIC_ALLOCATION  0
#define configUSE_MUTEXES                 1
#define configUSE_COUNTING_SEMAPHORES     1
#define configUSE_TIMERS                  0
#define configCHECK_FOR_STACK_OVERFLOW    0
#define INCLUDE_vTaskDelete               1
#define INCLUDE_vTaskSuspend              1
#define INCLUDE_vTaskDelay                1
#define INCLUDE_eTaskGetState             1

#include <assert.h>
#define configASSERT(x) assert(x)

#endif
