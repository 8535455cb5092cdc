/* SPDX-License-Identifier: Apache-2.0 */
/* The line is drawn by the steps themselves and, while one of them takes long, by a thread that wakes up every second:
 * a step that blocks, such as the C compiler, begins before anybody knows how long it takes. */
#include "progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

typedef struct progress {
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t wake;
    double start, after, drawn; /* seconds */
    char text[120];
    bool shown, ended;
} progress;

static void draw(progress *p)
{
    struct winsize w;
    double t = clock_now();
    int room = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;
    char line[160];
    if (!*p->text || t - p->start < p->after)
        return;
    if (t - p->start < 2)
        snprintf(line, sizeof line, "%s", p->text);
    else
        snprintf(line, sizeof line, "%s (%.0f s)", p->text, t - p->start);
    fprintf(stderr, "\r%.*s\033[K", room, line);
    fflush(stderr);
    p->drawn = t;
    p->shown = true;
}

/* Ten times a second is enough for the eye; after 0 seconds, for tests, every step is drawn. */
static bool step(void *context, const char *what, uint32_t done, uint32_t of)
{
    progress *p = context;
    if (!what)
        return true;
    pthread_mutex_lock(&p->lock);
    if (of > 0)
        snprintf(p->text, sizeof p->text, "%s %u of %u", what, done, of);
    else if (done > 0)
        snprintf(p->text, sizeof p->text, "%s %u", what, done);
    else
        snprintf(p->text, sizeof p->text, "%s", what);
    if (p->after <= 0 || clock_now() - p->drawn >= 0.1)
        draw(p);
    pthread_mutex_unlock(&p->lock);
    return true;
}

static void *watch(void *context)
{
    progress *p = context;
    pthread_mutex_lock(&p->lock);
    while (!p->ended) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec++;
        (void)pthread_cond_timedwait(&p->wake, &p->lock, &t);
        if (!p->ended && clock_now() - p->drawn >= 0.5)
            draw(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static bool can_erase(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void progress_begin(compiler *c)
{
    const char *after = getenv("LATHE_PROGRESS_AFTER");
    if (!can_erase())
        return;
    progress *p = arena_new(&c->mem, progress);
    *p = (progress){.start = clock_now(), .after = after && *after ? strtod(after, NULL) : 1};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (pthread_create(&p->thread, NULL, watch, p) != 0)
        return;
    c->progress = step;
    c->progress_context = p;
}

static void erase(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    p->shown = false;
    p->text[0] = '\0';
}

void progress_hide(compiler *c)
{
    progress *p = c->progress_context;
    if (c->progress != step)
        return;
    pthread_mutex_lock(&p->lock);
    erase(p);
    pthread_mutex_unlock(&p->lock);
}

void progress_end(compiler *c)
{
    progress *p = c->progress_context;
    if (c->progress != step)
        return;
    c->progress = NULL;
    pthread_mutex_lock(&p->lock);
    erase(p);
    p->ended = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
}
