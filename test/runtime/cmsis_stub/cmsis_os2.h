/* cmsis_os2.h: a stand-in for the parts of CMSIS-RTOS2 that tvmrt_port_cmsis_rtos2.c and the packages' main use, over
 * POSIX threads, so that they can be compiled and run where no such system is. Names and meanings follow the documented
 * API; priorities and the memory that attributes bring are ignored.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STUB_CMSIS_OS2_H
#define STUB_CMSIS_OS2_H

#include <stdint.h>

typedef enum { osOK = 0, osError = -1 } osStatus_t;
typedef enum { osPriorityLow = 8 } osPriority_t;
typedef enum { osThreadRunning = 2, osThreadBlocked = 3 } osThreadState_t;
typedef void *osThreadId_t;
typedef void *osMutexId_t;
typedef void *osSemaphoreId_t;
typedef void (*osThreadFunc_t)(void *);
typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
    void *stack_mem;
    uint32_t stack_size;
    osPriority_t priority;
    uint32_t tz_module, reserved;
} osThreadAttr_t;
typedef struct {
    const char *name;
    uint32_t attr_bits;
    void *cb_mem;
    uint32_t cb_size;
} osMutexAttr_t, osSemaphoreAttr_t;
#define osWaitForever      0xFFFFFFFFU
#define osMutexPrioInherit 2U

osStatus_t osKernelInitialize(void);
osStatus_t osKernelStart(void);
osStatus_t osDelay(uint32_t ticks);
osThreadId_t osThreadNew(osThreadFunc_t func, void *arg, const osThreadAttr_t *attributes);
osThreadState_t osThreadGetState(osThreadId_t thread);
osStatus_t osThreadTerminate(osThreadId_t thread);
void osThreadExit(void);
osMutexId_t osMutexNew(const osMutexAttr_t *attributes);
osStatus_t osMutexAcquire(osMutexId_t mutex, uint32_t ticks);
osStatus_t osMutexRelease(osMutexId_t mutex);
osStatus_t osMutexDelete(osMutexId_t mutex);
osSemaphoreId_t osSemaphoreNew(uint32_t most, uint32_t count, const osSemaphoreAttr_t *attributes);
osStatus_t osSemaphoreAcquire(osSemaphoreId_t semaphore, uint32_t ticks);
osStatus_t osSemaphoreRelease(osSemaphoreId_t semaphore);
osStatus_t osSemaphoreDelete(osSemaphoreId_t semaphore);

#endif
