/* kernel.h: a stand-in for the parts of Zephyr's kernel that tvmrt_port_zephyr.c uses, over POSIX threads, so that it
 * can be compiled and run where Zephyr is not. Names and meanings follow the documented API; priorities are ignored.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STUB_ZEPHYR_KERNEL_H
#define STUB_ZEPHYR_KERNEL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_SMP              1
#define CONFIG_MP_MAX_NUM_CPUS  2
#define K_LOWEST_APPLICATION_THREAD_PRIO 14

struct k_mutex { pthread_mutex_t lock; };
struct k_condvar { pthread_cond_t cond; };
typedef struct { int64_t ticks; } k_timeout_t;
#define K_FOREVER ((k_timeout_t){-1})
#define K_NO_WAIT ((k_timeout_t){0})

typedef unsigned char k_thread_stack_t;
typedef void (*k_thread_entry_t)(void *, void *, void *);
#define K_THREAD_STACK_ARRAY_DEFINE(name, n, size) k_thread_stack_t name[n][size]
#define K_THREAD_STACK_SIZEOF(stack)               sizeof(stack)

struct k_thread {
    pthread_t thread;
    k_thread_entry_t entry;
    void *args[3];
};

static inline int k_mutex_init(struct k_mutex *m)
{
    return -pthread_mutex_init(&m->lock, NULL);
}

static inline int k_mutex_lock(struct k_mutex *m, k_timeout_t timeout)
{
    return timeout.ticks == -1 ? -pthread_mutex_lock(&m->lock) : -1;
}

static inline int k_mutex_unlock(struct k_mutex *m)
{
    return -pthread_mutex_unlock(&m->lock);
}

static inline int k_condvar_init(struct k_condvar *c)
{
    return -pthread_cond_init(&c->cond, NULL);
}

static inline int k_condvar_wait(struct k_condvar *c, struct k_mutex *m, k_timeout_t timeout)
{
    return timeout.ticks == -1 ? -pthread_cond_wait(&c->cond, &m->lock) : -1;
}

static inline int k_condvar_signal(struct k_condvar *c)
{
    return -pthread_cond_signal(&c->cond);
}

static inline int k_condvar_broadcast(struct k_condvar *c)
{
    return -pthread_cond_broadcast(&c->cond);
}

static inline void *stub_thread(void *arg)
{
    struct k_thread *t = (struct k_thread *)arg;

    t->entry(t->args[0], t->args[1], t->args[2]);
    return NULL;
}

static inline pthread_t *k_thread_create(struct k_thread *t, k_thread_stack_t *stack, size_t size,
                                         k_thread_entry_t entry, void *a, void *b, void *c, int priority,
                                         uint32_t options, k_timeout_t delay)
{
    (void)priority, (void)options, (void)delay;
    for (size_t i = 0; i < size; i++)
        stack[i] = 0xA5; /* finds a stack that overlaps with something */
    t->entry = entry;
    t->args[0] = a, t->args[1] = b, t->args[2] = c;
    return pthread_create(&t->thread, NULL, stub_thread, t) == 0 ? &t->thread : NULL;
}

static inline int k_thread_join(struct k_thread *t, k_timeout_t timeout)
{
    return timeout.ticks == -1 ? -pthread_join(t->thread, NULL) : -1;
}

static inline uint32_t k_cycle_get_32(void)
{
    return 0;
}

#endif
