/* stop.c: SIGTERM and SIGINT stay blocked, and code asks from time to time whether one has come. There is no handler
 * and no global.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <pthread.h>

static sigset_t ends(void)
{
    sigset_t s;
    (void)sigemptyset(&s);
    (void)sigaddset(&s, SIGTERM);
    (void)sigaddset(&s, SIGINT);
    (void)sigaddset(&s, SIGHUP);
    return s;
}

void rpc_stop_begin(rpc_stop *s)
{
    const sigset_t all = ends();
    (void)pthread_sigmask(SIG_BLOCK, &all, &s->before);
}

bool rpc_stop_asked(rpc_stop *s)
{
    sigset_t waiting;
    (void)s;
    return sigpending(&waiting) == 0 && (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1 ||
                                         sigismember(&waiting, SIGHUP) == 1);
}

void rpc_stop_end(rpc_stop *s)
{
    const sigset_t all = ends();
    int number;
    while (rpc_stop_asked(s))
        if (sigwait(&all, &number) != 0)
            break;
    (void)pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

void rpc_stop_reset(void)
{
    const sigset_t all = ends();
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN); /* of a terminal: the server ends its sessions */
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}
