/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the log, text and words of the run-time compiler. */
#include "jit_util.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *print_new(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        (void)vsnprintf(text, (size_t)n + 1, format, args);
    return text;
}

int32_t jit_no_memory(lathe_error *error)
{
    return vm_fail(error, LATHE_E_MEMORY, "no memory to compile the kernels");
}

static void put_line(const lathe_options *options, char *line)
{
    if (line && options->log)
        options->log(options->user, line);
    else if (line)
        (void)fprintf(stderr, "%s\n", line);
    free(line);
}

void jit_say(const lathe_options *options, const char *format, ...)
{
    if (!options->trace)
        return;
    va_list args;
    va_start(args, format);
    put_line(options, print_new(format, args));
    va_end(args);
}

void jit_warn(const lathe_options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(options, print_new(format, args));
    va_end(args);
}

void jit_hold(jit_held *h)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &h->before);
}

void jit_release(const jit_held *h)
{
    (void)pthread_sigmask(SIG_SETMASK, &h->before, NULL); /* leaves errno alone */
}

void jit_tell(const lathe_options *options, const char *path, pid_t pid, bool there)
{
    if (options->outside)
        options->outside(options->user, path, (int32_t)pid, there);
}

char *jit_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = print_new(format, args);
    va_end(args);
    return text;
}

bool jit_contains(const char *text, size_t n, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = text; n >= len && p && p <= text + n - len; p++) {
        p = memchr(p, word[0], (size_t)(text + n - len - p) + 1);
        if (!p || memcmp(p, word, len) == 0)
            return p != NULL;
    }
    return false;
}

void jit_words_add(jit_words *w, char *word)
{
    if (word && w->n + 2 > w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        char **at = realloc(w->at, room * sizeof *at);
        if (at) {
            w->at = at;
            w->room = room;
        } else {
            free(word);
            word = NULL;
        }
    }
    if (!word) {
        w->failed = true;
        return;
    }
    w->at[w->n++] = word;
    w->at[w->n] = NULL;
}

void jit_words_copy(jit_words *w, const char *word)
{
    jit_words_add(w, jit_printf("%s", word));
}

void jit_words_split(jit_words *w, const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        size_t n = strcspn(text, " \t\r\n");
        if (n == 0)
            return;
        jit_words_add(w, jit_printf("%.*s", (int)n, text));
        text += n;
    }
}

void jit_words_all(jit_words *w, const jit_words *from)
{
    w->failed = w->failed || from->failed;
    for (size_t i = 0; i < from->n; i++)
        jit_words_copy(w, from->at[i]);
}

char *jit_words_join(const jit_words *w)
{
    size_t n = 1;
    for (size_t i = 0; i < w->n; i++)
        n += strlen(w->at[i]) + 1;
    char *text = malloc(n), *p = text;
    if (!text)
        return NULL;
    *p = '\0';
    for (size_t i = 0; i < w->n; i++)
        p += sprintf(p, "%s%s", i ? " " : "", w->at[i]);
    return text;
}

void jit_words_free(jit_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->at[i]);
    free(w->at);
    *w = (jit_words){0};
}
