/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics are values in a sink: a code, a place, a sentence that says what is wrong and what to do. Many per run.
 * The code decides the exit status (DIAG_CODES); printing is the caller's business. */
#ifndef LATHE_BASE_DIAG_H
#define LATHE_BASE_DIAG_H
#include "base/arena.h"

/* A place: a position in a text (line > 0), or a node of a model (node_index >= 0), or a file alone. */
typedef struct src_loc {
    const char *file;   /* NULL: unknown */
    uint32_t line, col; /* from 1; 0: not a text position */
    const char *node;   /* node name in the model, may be "" */
    const char *op;     /* operator type in the model, for messages; may be NULL */
    int32_t node_index; /* position in the model's node list; -1: none */
} src_loc;

static inline src_loc src_loc_none(void)
{
    src_loc l = {0};
    l.node_index = -1;
    return l;
}

/* X(id, name in brackets after the message, exit status) */
#define DIAG_CODES(X)                                                                      \
    X(DIAG_SYNTAX, "syntax", 1)           /* IR text */                                    \
    X(DIAG_FORMAT, "format", 1)           /* a broken model */                             \
    X(DIAG_TYPE, "type", 1)               /* dtypes, shapes */                             \
    X(DIAG_UNSUPPORTED, "unsupported", 1) /* not built yet */                              \
    X(DIAG_UNBOUNDED, "unsupported", 1)   /* only a run knows a size, and a package plans all of them */ \
    X(DIAG_VERIFY, "verify", 1)           /* broken IR */                                  \
    X(DIAG_DATA, "data", 1)               /* inputs of a run */                            \
    X(DIAG_MISMATCH, "mismatch", 1)       /* wrong numbers */                              \
    X(DIAG_USAGE, "usage", 2)             /* command line */                               \
    X(DIAG_IO, "io", 1)                   /* input file missing or unreadable */           \
    X(DIAG_ENVIRONMENT, "environment", 3) /* no compiler, no space, output not writable */ \
    X(DIAG_INTERNAL, "internal", 3)       /* a bug of ours */                          \
    X(DIAG_CANCELLED, "cancelled", 4)     /* who watches the progress wants no more */

typedef enum diag_code {
#define X(id, name, status) id,
    DIAG_CODES(X)
#undef X
} diag_code;

typedef enum diag_level { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR } diag_level;

typedef struct diag {
    diag_level level;
    diag_code code;
    src_loc loc;
    const char *text; /* one sentence, no newline */
    const char *hint; /* what to do about it, or NULL */
    struct diag *next;
} diag;

typedef struct diags {
    arena mem;
    diag *first, *last;
    uint32_t errors, warnings, notes;
    uint32_t limit; /* errors kept, and warnings, and notes, default 50 each; the rest are counted only */
    bool dropped;   /* the last one was not kept */
} diags;

void diags_init(diags *d, const arena *parent); /* parent: as for arena_init */
void diags_free(diags *d);
/* The text of a diagnostic is cut at 2000 bytes, and control characters in it, which names from a model may hold, are
 * replaced. Places and text are copied. Both return false, so that `return diag_error(...)` ends a fallible
 * function. */
bool diag_error(diags *d, diag_code code, src_loc loc, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool diag_note(diags *d, diag_code code, src_loc loc, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool diag_warning(diags *d, diag_code code, src_loc loc, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Adds to the last diagnostic: what to do about it. */
void diag_hint(diags *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For work that may fail without harm: all that was reported after the mark is taken back. */
typedef struct diags_mark {
    diag *last;
    uint32_t errors, warnings;
    arena_mark mem;
} diags_mark;
diags_mark diags_get_mark(const diags *d);
void diags_reset(diags *d, diags_mark mark);
/* The first error of another context, with its place and hint; returns false. */
bool diags_pass_on(diags *to, const diags *from);
void diags_pass_warnings(diags *to, const diags *from); /* all of them */
const char *diags_first_error(const diags *d); /* its text; "": there is none, or it was not kept */
const char *diag_code_name(diag_code code);
int diag_code_status(diag_code code); /* the exit status */
int diags_exit_status(const diags *d); /* of the first error; 0 without errors */
/* "error: model.onnx: node 3 'conv1' (Conv): text [type]\n  hint: ...", one diagnostic a line; the string is in `a`. */
char *diags_print(const diags *d, arena *a);
const char *src_loc_print(src_loc loc, arena *a);
#endif
