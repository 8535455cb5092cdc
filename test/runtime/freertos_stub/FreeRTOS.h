/* FreeRTOS.h: a stand-in for the parts of FreeRTOS that tvmrt_port_freertos.c and the packages' FreeRTOS main use, over
 * POSIX threads, so that they can be compiled and run where FreeRTOS is not. Names and meanings follow the documented
 * API for static allocation; scheduling priorities are ignored.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STUB_FREERTOS_H
#define STUB_FREERTOS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define configSUPPORT_STATIC_ALLOCATION 1
#define configNUMBER_OF_CORES           2

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef uintptr_t StackType_t;

#define pdFALSE          ((BaseType_t)0)
#define pdTRUE           ((BaseType_t)1)
#define portMAX_DELAY    ((TickType_t)0xFFFFFFFFu)
#define tskIDLE_PRIORITY ((UBaseType_t)0)

/* Room for a kernel object. Larger than on a 32-bit target, because pthread objects are. */
typedef struct StaticSemaphore {
    pthread_mutex_t lock;
    pthread_cond_t given;
    UBaseType_t count;
    UBaseType_t limit;
    int is_mutex;
    pthread_t holder;
} StaticSemaphore_t;

typedef struct StaticTask {
    pthread_t thread;
    void (*code)(void *);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int suspended;
    int deleted;
} StaticTask_t;

#endif
