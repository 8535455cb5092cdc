/* pool.c: threads that share the parts of a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "jit_machine.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Looks at the counter before a thread sleeps: kernels follow each other within a microsecond or two. */
enum { SPINS = 1000 };

struct vm_pool {
    pthread_mutex_t lock; /* of all below that is not atomic */
    pthread_cond_t work, done;
    pthread_t threads[VM_POOL_MAX];
    atomic_uint wanted; /* threads besides the caller */
    uint32_t started;
    bool tried, quit, busy;
    pid_t process; /* that the threads are in */

    atomic_uint round; /* of the job below; odd while there is one */
    void (*run)(void *, uint32_t);
    void *context;
    uint32_t parts;
    atomic_uint next;
    atomic_uint inside; /* threads that may still look at the job */
};

static uint32_t others(uint32_t workers)
{
    uint32_t n = workers ? workers : jit_machine_cores();
    return (n < VM_POOL_MAX ? n : VM_POOL_MAX) - 1;
}

vm_pool *vm_pool_new(uint32_t workers)
{
    vm_pool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    p->wanted = others(workers);
    p->process = getpid();
    return p;
}

static void take_parts(vm_pool *p)
{
    for (uint32_t i; (i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->parts;)
        p->run(p->context, i);
}

static bool wait_for_round(vm_pool *p, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        unsigned now = atomic_load_explicit(&p->round, memory_order_relaxed);
        if (now != seen && now % 2 != 0)
            break;
    }
    pthread_mutex_lock(&p->lock);
    while (!p->quit && (p->round == seen || p->round % 2 == 0))
        pthread_cond_wait(&p->work, &p->lock);
    bool quit = p->quit;
    if (!quit)
        p->inside++;
    pthread_mutex_unlock(&p->lock);
    return !quit;
}

static void *thread_main(void *pool)
{
    vm_pool *p = pool;
    unsigned seen = 0;
    while (wait_for_round(p, seen)) {
        seen = p->round;
        take_parts(p);
        if (atomic_fetch_sub(&p->inside, 1) != 1)
            continue;
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->done); /* who waits to change the pool waits here too */
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* Signals of the program are for its own threads. Fewer threads than wanted do the same work. */
static void start_threads(vm_pool *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->started < p->wanted && pthread_create(&p->threads[p->started], NULL, thread_main, p) == 0)
        p->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    p->tried = true;
}

static void stop_threads(vm_pool *p)
{
    if (p->process == getpid()) {
        pthread_mutex_lock(&p->lock);
        p->quit = true;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        for (uint32_t i = 0; i < p->started; i++)
            pthread_join(p->threads[i], NULL);
    }
    p->started = 0;
    p->quit = p->tried = false;
}

void vm_pool_free(vm_pool *p)
{
    if (!p)
        return;
    stop_threads(p);
    if (p->process == getpid()) {
        pthread_cond_destroy(&p->done);
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->lock);
    }
    free(p);
}

/* The pool is the caller's until `release`; false: it is another's. */
static bool take(vm_pool *p, bool wait)
{
    pthread_mutex_lock(&p->lock);
    while (wait && p->busy)
        pthread_cond_wait(&p->done, &p->lock);
    bool free_now = !p->busy;
    p->busy = true;
    pthread_mutex_unlock(&p->lock);
    return free_now;
}

static void release(vm_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->busy = false;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

void vm_pool_resize(vm_pool *p, uint32_t workers)
{
    if (p->process != getpid()) {
        p->wanted = 0;
        return;
    }
    (void)take(p, true);
    stop_threads(p);
    p->wanted = others(workers);
    release(p);
}

uint32_t vm_pool_workers(vm_pool *p)
{
    if (p->process != getpid())
        return 1;
    return p->wanted + 1;
}

/* Publishes the job, works on it, and waits until no thread can see it any more. */
static void share(vm_pool *p, uint32_t parts)
{
    pthread_mutex_lock(&p->lock);
    p->next = 0;
    p->parts = parts;
    p->round++;
    pthread_mutex_unlock(&p->lock);
    if (parts - 1 >= p->started)
        pthread_cond_broadcast(&p->work);
    else
        for (uint32_t i = 1; i < parts; i++)
            pthread_cond_signal(&p->work);
    take_parts(p);
    pthread_mutex_lock(&p->lock);
    p->round++; /* nobody enters from here on */
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < SPINS && p->inside != 0; i++)
        continue;
    pthread_mutex_lock(&p->lock);
    while (p->inside != 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void vm_pool_run(vm_pool *p, void (*work)(void *context, uint32_t part), void *context, uint32_t parts)
{
    if (parts > 1 && p->wanted > 0 && p->process == getpid() && take(p, false)) {
        if (!p->tried)
            start_threads(p);
        p->run = work;
        p->context = context;
        if (p->started > 0)
            share(p, parts);
        else
            for (uint32_t i = 0; i < parts; i++)
                work(context, i);
        release(p);
        return;
    }
    for (uint32_t i = 0; i < parts; i++)
        work(context, i);
}
