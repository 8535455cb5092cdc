/* SPDX-License-Identifier: Apache-2.0 */
/* What a run that is stopped would leave behind: temporary files and folders, and children that run. They are
 * noted while they exist, so that a signal handler can clear them away. A temporary thing beside PATH is called
 * PATH.tmp-lathe-PID-N, so that what a killed run left behind can be recognized. */
#ifndef LATHE_BASE_TEMP_H
#define LATHE_BASE_TEMP_H
#include "base/arena.h"

enum { TEMPS_MOST = 8, TEMPS_CHILDREN = 128 };

typedef struct temps {
    const char *volatile paths[TEMPS_MOST]; /* NULL: free */
    volatile int children[TEMPS_CHILDREN];  /* each leads a process group of its own; 0: free */
} temps;

/* Between the two, signals that end a run wait: what is made is noted, what is noted exists. They nest. */
typedef struct temps_held {
    uint64_t mask[16];
} temps_held;
void temps_hold(temps_held *h);
void temps_release(const temps_held *h);       /* keeps errno */
void temps_release_child(const temps_held *h); /* after fork: nothing noted is the child's, signals just end it */

/* A new folder or file beside `path`, with the mode that the umask leaves. The name is in `a` and stays noted until
 * temps_forget or temps_remove. NULL or -1: errno says why. */
char *temps_make_dir(temps *t, arena *a, const char *path);
int temps_make_file(temps *t, arena *a, const char *path, char **out_name);
/* mkdtemp: `name` ends in XXXXXX. */
bool temps_make_private(temps *t, char *name);
/* What somebody else made and removes; held, if a signal must not come in between. */
void temps_note(temps *t, const char *path);
void temps_forget(temps *t, const char *path);
void temps_note_child(temps *t, int pid);
void temps_forget_child(temps *t, int pid);
bool temps_has(const temps *t, const char *path);
bool temps_remove(temps *t, const char *path); /* the tree there, links not followed; false: errno says why */

/* Sets the handler of the signals that end a run; it calls temps_clear and raises the signal again. */
void temps_catch(void (*handler)(int));
/* Kills the children with their groups, and removes all that is noted. Fit for a signal handler. */
void temps_clear(temps *t);
#endif
