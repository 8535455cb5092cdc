/* tvmrt_port_posix.c: the runtime's mutex, condition, thread and barrier functions over POSIX threads (Linux, macOS,
 * BSD, QNX, and RTOSes with a pthread layer).
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* on which processors a thread may run */
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "tvmrt.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

/* A negative array size here means: raise the macro named in it. */
typedef char tvmrt_mutex_bytes_is_enough[TVMRT_MUTEX_BYTES >= sizeof(pthread_mutex_t) ? 1 : -1];
typedef char tvmrt_cond_bytes_is_enough[TVMRT_COND_BYTES >= sizeof(pthread_cond_t) ? 1 : -1];

struct posix_thread {
    pthread_t id;
    tvmrt_thread_func_t func;
    void *arg;
    uint32_t kept_off; /* the processor taken from those that it may run on, plus 1; 0: none */
    uint32_t made_for; /* a check sum of those that it might run on when it was made */
};
typedef char tvmrt_thread_bytes_is_enough[TVMRT_THREAD_BYTES >= sizeof(struct posix_thread) ? 1 : -1];

static int port_status(int error)
{
    return error == 0 ? TVMRT_OK : TVMRT_E_PORT;
}

static pthread_mutex_t *posix_mutex(tvmrt_mutex_t *mutex)
{
    return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *posix_cond(tvmrt_cond_t *cond)
{
    return (pthread_cond_t *)(void *)cond;
}

int tvmrt_mutex_init(tvmrt_mutex_t *mutex)
{
    return port_status(pthread_mutex_init(posix_mutex(mutex), NULL));
}

int tvmrt_mutex_lock(tvmrt_mutex_t *mutex)
{
    return port_status(pthread_mutex_lock(posix_mutex(mutex)));
}

int tvmrt_mutex_unlock(tvmrt_mutex_t *mutex)
{
    return port_status(pthread_mutex_unlock(posix_mutex(mutex)));
}

int tvmrt_mutex_destroy(tvmrt_mutex_t *mutex)
{
    return port_status(pthread_mutex_destroy(posix_mutex(mutex)));
}

int tvmrt_cond_init(tvmrt_cond_t *cond)
{
    return port_status(pthread_cond_init(posix_cond(cond), NULL));
}

int tvmrt_cond_wait(tvmrt_cond_t *cond, tvmrt_mutex_t *mutex)
{
    return port_status(pthread_cond_wait(posix_cond(cond), posix_mutex(mutex)));
}

int tvmrt_cond_signal(tvmrt_cond_t *cond)
{
    return port_status(pthread_cond_signal(posix_cond(cond)));
}

int tvmrt_cond_broadcast(tvmrt_cond_t *cond)
{
    return port_status(pthread_cond_broadcast(posix_cond(cond)));
}

int tvmrt_cond_destroy(tvmrt_cond_t *cond)
{
    return port_status(pthread_cond_destroy(posix_cond(cond)));
}

/* Counted in the child, where no other thread is. */
static uint32_t g_forks;
static int g_watch_status = TVMRT_E_PORT;
static pthread_once_t g_watch = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    tvmrt_atomic_add(&g_forks, 1);
}

static void watch_forks(void)
{
    g_watch_status = port_status(pthread_atfork(NULL, NULL, count_fork));
}

static void *thread_main(void *arg)
{
    const struct posix_thread *thread = (const struct posix_thread *)arg;

    thread->func(thread->arg);
    return NULL;
}

#if defined(__linux__) && defined(CPU_CLR)
/* Those that thread `id` may run on, with the one that it is kept off. 0 for a sum: the system does not tell. */
static uint32_t may_run_on(pthread_t id, uint32_t kept_off, cpu_set_t *out_set)
{
    const unsigned char *bytes = (const unsigned char *)out_set;
    uint32_t sum = 2166136261u; /* FNV-1a */
    size_t i;

    if (pthread_getaffinity_np(id, sizeof *out_set, out_set) != 0)
        return 0;
    if (kept_off != 0)
        CPU_SET(kept_off - 1, out_set);
    for (i = 0; i < sizeof *out_set; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

/* Of the thread that makes another, which has them from it. */
static uint32_t own_processors(void)
{
    cpu_set_t set;

    return may_run_on(pthread_self(), 0, &set);
}

/* A thread that the program has put elsewhere since it was made stays there: no processor is taken or given back. (Put
 * on all but the one that it is kept off, it looks as it did, and may be given that one back.) */
static void keep_off(struct posix_thread *thread, uint32_t processor)
{
    cpu_set_t set;

    if (processor + 1 == thread->kept_off || thread->made_for == 0 ||
        may_run_on(thread->id, thread->kept_off, &set) != thread->made_for)
        return;
    thread->kept_off = 0;
    if (CPU_ISSET(processor, &set) && CPU_COUNT(&set) > 1) {
        CPU_CLR(processor, &set);
        thread->kept_off = processor + 1;
    }
    (void)pthread_setaffinity_np(thread->id, sizeof set, &set);
}
#else
static uint32_t own_processors(void)
{
    return 0;
}
#endif

static int create(struct posix_thread *thread)
{
    pthread_attr_t attributes;
    pthread_t id;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
#ifdef TVMRT_WORKER_STACK_BYTES
    error = pthread_attr_setstacksize(&attributes, TVMRT_WORKER_STACK_BYTES);
#endif
    if (error == 0)
        error = pthread_create(&id, &attributes, thread_main, thread);
    if (error == 0)
        thread->id = id; /* only the joiner reads it; the new thread reads the other members */
    pthread_attr_destroy(&attributes);
    return error;
}

int tvmrt_thread_create(tvmrt_thread_t *thread, tvmrt_thread_func_t func, void *arg)
{
    struct posix_thread *posix = (struct posix_thread *)(void *)thread;

    if (pthread_once(&g_watch, watch_forks) != 0 || g_watch_status != TVMRT_OK)
        return TVMRT_E_PORT;
    posix->func = func;
    posix->arg = arg;
    posix->kept_off = 0;
    posix->made_for = own_processors();
    return port_status(create(posix));
}

int tvmrt_thread_join(tvmrt_thread_t *thread)
{
    return port_status(pthread_join(((struct posix_thread *)(void *)thread)->id, NULL));
}

/* Linux puts a thread that wakes up on the processor of the one that wakes it when it takes both for as good, and moves
 * it away milliseconds later: until then the two take turns. */
void tvmrt_thread_keep_off(tvmrt_thread_t *thread)
{
#if defined(__linux__) && defined(CPU_CLR)
    const int processor = sched_getcpu();

    if (processor >= 0 && processor < CPU_SETSIZE)
        keep_off((struct posix_thread *)(void *)thread, (uint32_t)processor);
#else
    (void)thread;
#endif
}

uint32_t tvmrt_port_processors(void)
{
#ifdef _SC_NPROCESSORS_ONLN
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors > 1 ? (uint32_t)processors : 1u;
#else
    return 1;
#endif
}

#define TVMRT_PORT_FORKS() tvmrt_atomic_load(&g_forks)

#if TVMRT_HOOKS
static uint32_t nanoseconds(void)
{
    struct timespec now = {0, 0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}
#define TVMRT_PORT_CYCLES() nanoseconds()
#endif

#include "tvmrt_port_blocking.h"
