/* outside.h: a signal that ends the program also ends the compilers that run for it, and removes their folders.
 * Compilers lead process groups of their own, so that nothing else would. SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTSIDE_H
#define OUTSIDE_H
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OUTSIDE_MOST = 64 };
static volatile sig_atomic_t outside_pids[OUTSIDE_MOST]; /* leaders of groups; 0: none */
static char outside_folder[4096];                        /* "": none. A runtime compiles one module at a time */

/* For lathe_options.outside; the signals of the thread that calls wait until it returns. */
static void outside_note(void *user, const char *path, int32_t pid, int32_t there)
{
    (void)user;
    if (path && !there)
        outside_folder[0] = '\0';
    else if (path && strlen(path) < sizeof outside_folder)
        strcpy(outside_folder, path);
    for (int i = 0; !path && i < OUTSIDE_MOST; i++)
        if (outside_pids[i] == (there ? 0 : pid)) {
            outside_pids[i] = there ? pid : 0;
            return;
        }
}

/* Functions that a handler may call, and no others. */
static void outside_end(int signal_number)
{
    for (int i = 0; i < OUTSIDE_MOST; i++)
        if (outside_pids[i])
            (void)kill(-(pid_t)outside_pids[i], SIGKILL);
    (void)signal(signal_number, SIG_DFL); /* it waits until the handler returns, and then ends the program */
    (void)raise(signal_number);
    if (outside_folder[0] && fork() == 0) {
        (void)execlp("rm", "rm", "-rf", outside_folder, (char *)NULL);
        _exit(1);
    }
}

/* Signals that are ignored stay ignored. */
static void outside_catch_signals(void)
{
    static const int list[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction end = {.sa_handler = outside_end}, was;
    (void)sigfillset(&end.sa_mask);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (sigaction(list[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            (void)sigaction(list[i], &end, NULL);
}
#endif
