/* SPDX-License-Identifier: Apache-2.0 */
/* The border between a program and the compiler. Every function of lathe.h goes through it. A call works in a compiler
 * context of its own, or in that of its object, and the border passes its diagnostics to the caller's context. Arenas
 * do not return when there is no memory. The border turns this into a result. */
#ifndef LATHE_API_BORDER_H
#define LATHE_API_BORDER_H
#include "base/compiler.h"
#include "lathe/lathe.h"

#include <setjmp.h>

/* Where a lack of memory leads. */
typedef struct border {
    jmp_buf *back; /* of the call that is on its way */
    arena root;    /* parent of all arenas of an object: they share its handler and are one family */
    struct arena_block *blocks;
} border;

/* A compiler context of an object, and one more for work whose memory goes when the call ends. */
typedef struct home {
    border edge;
    compiler c, brief;
    bool ready, has_brief;
    bool broken;  /* memory was lacking in the middle of something: it can only be freed */
    bool settled; /* what it does from now on may be left in the middle, and begun again */
} home;

struct lathe_context {
    border edge;
    arena mem; /* of what follows, until the next call */
    lathe_diagnostic *list;
    uint32_t n, cap;
    const char *json; /* NULL: the call has none */
    bool is_busy;    /* a call is on its way, and with it the functions that it calls */
    bool errors;     /* there were some, if only in number: where memory lacks, none is kept */
    int32_t outcome; /* of the first error in the list; LATHE_DONE: it has none */
    lathe_diagnostic_fn tell;
    lathe_progress_fn progress;
    void *tell_user, *progress_user;
};

typedef bool (*border_work)(lathe_context *x, home *h, void *args);

/* Does the work in h->c, which is made when it is not there; an enum lathe_outcome. False without a diagnostic is a
 * fault of ours. LATHE_BAD_USAGE without a diagnostic: there is no context, or one of its own functions calls. */
int32_t border_call(lathe_context *x, home *h, border_work work, void *args);
/* The same of an object that has no compiler context. */
int32_t border_call_briefly(lathe_context *x, border_work work, void *args);
/* An object that a call needs is NULL, as after a call that failed: LATHE_BAD_USAGE, and a diagnostic. */
int32_t border_refuse_missing(lathe_context *x, const char *what);
/* The same of an object that the call works on in whose progress or diagnostic function this thread is. */
int32_t border_refuse_busy(lathe_context *x, const char *what);
/* h->brief, made new; border_end_brief gives its diagnostics to x and frees it; so does the end of the call. */
compiler *border_begin_brief(lathe_context *x, home *h);
void border_end_brief(lathe_context *x, home *h);
void border_init_home(home *h);
void border_free_home(home *h);
#endif
