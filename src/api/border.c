/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library. This is the only place that uses setjmp. Small requests to arenas cannot fail for their
 * callers, and a library may not end the program that it is part of. So a lack of memory jumps back to here. The
 * compiler contexts know what a call holds (memory, files that were read, temporary files, children), so all of it can
 * be given back from here. */
#define _GNU_SOURCE /* uselocale */
#include "api/border.h"

#include "driver/pipeline.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(void *context, size_t size)
{
    border *b = context;
    (void)size;
    if (b->back)
        longjmp(*b->back, 1);
}

static void init_edge(border *b)
{
    *b = (border){.root = {.out_of_memory = out_of_memory, .context = b, .all = &b->blocks}};
}

/* --- contexts --- */

lathe_context *lathe_context_new(void)
{
    lathe_context *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    init_edge(&x->edge);
    arena_init(&x->mem, &x->edge.root);
    return x;
}

void lathe_context_free(lathe_context *x)
{
    if (!x)
        return;
    arena_free(&x->mem);
    free(x);
}

void lathe_on_diagnostic(lathe_context *x, lathe_diagnostic_fn fn, void *user)
{
    if (!x)
        return;
    x->tell = fn;
    x->tell_user = user;
}

void lathe_on_progress(lathe_context *x, lathe_progress_fn fn, void *user)
{
    if (!x)
        return;
    x->progress = fn;
    x->progress_user = user;
}

const lathe_diagnostic *lathe_diagnostic_at(const lathe_context *x, uint32_t index)
{
    return x && index < x->n ? &x->list[index] : NULL;
}

/* --- diagnostics --- */

/* One of the caller's, in its memory. */
static void add_diag(lathe_context *x, const diag *d)
{
    const char *where = src_loc_print(d->loc, &x->mem);
    if (x->n == x->cap)
        vec_grow(&x->mem, (void **)&x->list, x->n, &x->cap, sizeof *x->list);
    x->list[x->n++] = (lathe_diagnostic){.size = sizeof(lathe_diagnostic),
                                         .severity = d->level == DIAG_ERROR     ? LATHE_ERROR
                                                     : d->level == DIAG_WARNING ? LATHE_WARNING
                                                                                : LATHE_NOTE,
                                         .code = diag_code_name(d->code),
                                         .where = where && *where ? where : NULL,
                                         .text = arena_strdup(&x->mem, d->text),
                                         .hint = d->hint ? arena_strdup(&x->mem, d->hint) : NULL};
    if (d->level == DIAG_ERROR && x->outcome == LATHE_DONE)
        x->outcome = diag_code_status(d->code);
}

static void take_diags(lathe_context *x, compiler *c)
{
    for (const diag *d = c->diags.first; d; d = d->next)
        add_diag(x, d);
    x->errors |= c->diags.errors > 0;
    diags_free(&c->diags);
    diags_init(&c->diags, &c->mem);
}

static void forget(lathe_context *x)
{
    arena_free(&x->mem);
    x->list = NULL;
    x->n = x->cap = 0;
    x->json = NULL;
    x->errors = false;
    x->outcome = LATHE_DONE;
}

/* Without memory to say it in: the one list that needs none. */
static int32_t refuse(lathe_context *x, const char *hint)
{
    static const lathe_diagnostic none = {.size = sizeof none, .severity = LATHE_ERROR, .code = "environment",
                                          .text = "out of memory"};
    static const lathe_diagnostic used = {.size = sizeof used, .severity = LATHE_ERROR, .code = "usage",
                                          .text = "an earlier call on this object ran out of memory",
                                          .hint = "free the object, and create it again"};
    forget(x);
    x->list = (lathe_diagnostic *)(uintptr_t)(hint ? &used : &none); /* only read, and never grown: cap is n */
    x->n = x->cap = 1;
    return hint ? LATHE_BAD_USAGE : LATHE_BAD_ENVIRONMENT;
}

/* --- calls --- */

void border_init_home(home *h)
{
    *h = (home){.ready = false};
    init_edge(&h->edge);
}

static void free_brief(home *h)
{
    if (!h->has_brief)
        return;
    temps_clear(&h->brief.temps);
    compiler_free(&h->brief);
    h->has_brief = false;
}

void border_free_home(home *h)
{
    free_brief(h);
    if (h->ready)
        compiler_free(&h->c);
    h->ready = false;
    if (h->edge.root.all)
        arena_free_family(&h->edge.root); /* of passes that were left in the middle */
}

static bool step(void *context, const char *what, uint32_t done, uint32_t of)
{
    lathe_context *x = context;
    const double share = !what || of == 0 ? -1 : done > 0 ? (double)(done - 1) / of : 0;
    return !x->progress || x->progress(x->progress_user, what ? what : "", share) == 0; /* it may end itself */
}

static void watch(lathe_context *x, compiler *c)
{
    c->progress = x->progress ? step : NULL;
    c->progress_context = x;
    c->cancelled = false;
}

compiler *border_begin_brief(lathe_context *x, home *h)
{
    h->has_brief = true;
    compiler_setup_under(&h->brief, &h->edge.root);
    watch(x, &h->brief);
    return &h->brief;
}

void border_end_brief(lathe_context *x, home *h)
{
    take_diags(x, &h->brief);
    free_brief(h);
}

/* False: memory was lacking. */
static bool work_within(lathe_context *x, home *h, border_work work, void *args)
{
    jmp_buf back;
    x->edge.back = h->edge.back = &back;
    if (setjmp(back) != 0)
        return false;
    if (!h->ready) {
        h->ready = true;
        compiler_setup_under(&h->c, &h->edge.root);
    }
    watch(x, &h->c);
    const bool ok = work(x, h, args), cancelled = h->c.cancelled || (h->has_brief && h->brief.cancelled);
    if (h->has_brief)
        border_end_brief(x, h);
    if (!ok && cancelled && h->c.diags.errors == 0 && !x->errors)
        (void)diag_error(&h->c.diags, DIAG_CANCELLED, src_loc_none(), "cancelled");
    if (!ok && h->c.diags.errors == 0 && !x->errors)
        (void)diag_error(&h->c.diags, DIAG_INTERNAL, src_loc_none(), "a call failed without an error message");
    take_diags(x, &h->c);
    return true;
}

static int32_t call(lathe_context *x, home *h, border_work work, void *args)
{
    forget(x);
    if (h->broken)
        return refuse(x, "free it");
    const bool whole = work_within(x, h, work, args);
    x->edge.back = h->edge.back = NULL;
    if (whole)
        return x->outcome;
    free_brief(h);
    if (h->ready)
        temps_clear(&h->c.temps);
    h->broken = !h->settled;
    return refuse(x, NULL);
}

/* Numbers in models, options and C are written with a point, whatever the program's locale is. A call that is made by
 * one of the context's own functions has no place for its diagnostics: the call that it was made in still needs it. */
int32_t border_call(lathe_context *x, home *h, border_work work, void *args)
{
    if (!x || x->is_busy)
        return LATHE_BAD_USAGE;
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return refuse(x, NULL);
    const locale_t before = uselocale(plain);
    x->is_busy = true;
    const int32_t outcome = call(x, h, work, args);
    (void)uselocale(before);
    freelocale(plain);
    for (uint32_t i = 0; x->tell && i < x->n; i++)
        x->tell(x->tell_user, &x->list[i]);
    x->is_busy = false;
    return outcome;
}

int32_t border_call_briefly(lathe_context *x, border_work work, void *args)
{
    home h;
    border_init_home(&h);
    const int32_t outcome = border_call(x, &h, work, args);
    border_free_home(&h);
    return outcome;
}

typedef struct wrong_use {
    const char *fmt, *what, *hint;
} wrong_use;

static bool say_wrong(lathe_context *x, home *h, void *args)
{
    const wrong_use *a = args;
    (void)x;
    diag_error(&h->c.diags, DIAG_USAGE, src_loc_none(), a->fmt, a->what);
    diag_hint(&h->c.diags, "%s", a->hint);
    return false;
}

int32_t border_refuse_missing(lathe_context *x, const char *what)
{
    return border_call_briefly(x, say_wrong, &(wrong_use){"no %s is given", what,
                                                          "it is NULL: did the call that made it fail?"});
}

int32_t border_refuse_busy(lathe_context *x, const char *what)
{
    return border_call_briefly(x, say_wrong, &(wrong_use){"the %s is in use by the call that is running now", what,
                                                          "use it after that call has returned"});
}
