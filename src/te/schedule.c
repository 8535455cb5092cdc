/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as values: a list of primitives, appended by calls, printed and parsed as text, one primitive a line
 * (docs/loop-ir.md "Schedules"). Nothing is checked here but the notation; te/apply.c gives it meaning. */
#include "te/stage.h"

#include <inttypes.h>
#include <string.h>

static const char *const prim_texts[] = {
#define X(id, text) [id] = text,
    TE_PRIMITIVES(X)
#undef X
};

const char *te_prim_text(te_prim_kind kind)
{
    return prim_texts[kind];
}

te_sched *te_sched_new(te_graph *g)
{
    te_sched *s = arena_new(&g->c->mem, te_sched);
    s->c = g->c;
    s->g = g;
    return s;
}

/* --- appending --- */

static const char *const *names(te_sched *s, uint32_t n, const char *const *list)
{
    const char **own = arena_array(&s->c->mem, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        own[i] = intern(s->c->names, list[i]);
    return own;
}

static const char *opt_name(te_sched *s, const char *name)
{
    return name ? intern(s->c->names, name) : NULL;
}

static te_prim *append(te_sched *s, te_prim_kind kind, const char *stage)
{
    te_prim p = {.kind = kind, .stage = intern(s->c->names, stage), .loc = src_loc_none()};
    vec_push(&s->c->mem, &s->prims, p);
    return &vec_last(&s->prims);
}

static te_prim *append_axis(te_sched *s, te_prim_kind kind, const char *stage, const char *axis)
{
    te_prim *p = append(s, kind, stage);
    p->axes = names(s, 1, &axis);
    p->n_axes = 1;
    return p;
}

static void set_results(te_sched *s, te_prim *p, uint32_t n, const char *const *list)
{
    p->results = names(s, n, list);
    p->n_results = n;
}

void te_sched_split(te_sched *s, const char *stage, const char *axis, int64_t factor, const char *outer,
                    const char *inner)
{
    te_prim *p = append_axis(s, TE_SPLIT, stage, axis);
    p->factor = factor;
    set_results(s, p, 2, (const char *[]){outer, inner});
}

void te_sched_fuse(te_sched *s, const char *stage, const char *a, const char *b, const char *fused)
{
    te_prim *p = append(s, TE_FUSE, stage);
    p->axes = names(s, 2, (const char *[]){a, b});
    p->n_axes = 2;
    set_results(s, p, 1, &fused);
}

void te_sched_reorder(te_sched *s, const char *stage, uint32_t n, const char *const *axes)
{
    te_prim *p = append(s, TE_REORDER, stage);
    p->axes = names(s, n, axes);
    p->n_axes = n;
}

void te_sched_compute_at(te_sched *s, const char *stage, const char *consumer, const char *axis)
{
    te_prim *p = append(s, TE_COMPUTE_AT, stage);
    p->other = intern(s->c->names, consumer);
    p->other_axis = intern(s->c->names, axis);
}

void te_sched_compute_inline(te_sched *s, const char *stage)
{
    append(s, TE_INLINE, stage);
}

void te_sched_cache_write(te_sched *s, const char *stage, const char *scope, const char *new_stage)
{
    te_prim *p = append(s, TE_CACHE_WRITE, stage);
    p->word = opt_name(s, scope);
    set_results(s, p, 1, &new_stage);
}

void te_sched_cache_read(te_sched *s, const char *stage, const char *scope, const char *reader, const char *new_stage)
{
    te_prim *p = append(s, TE_CACHE_READ, stage);
    p->word = opt_name(s, scope);
    p->other = opt_name(s, reader);
    set_results(s, p, 1, &new_stage);
}

void te_sched_set_scope(te_sched *s, const char *stage, const char *scope)
{
    append(s, TE_SET_SCOPE, stage)->word = opt_name(s, scope);
}

void te_sched_annotate(te_sched *s, te_prim_kind kind, const char *stage, const char *axis)
{
    append_axis(s, kind, stage, axis);
}

void te_sched_pragma(te_sched *s, const char *stage, const char *axis, const char *key, int64_t value)
{
    te_prim *p = append_axis(s, TE_PRAGMA, stage, axis);
    p->word = opt_name(s, key);
    p->factor = value;
}

/* --- printing --- */

static void print_results(writer *w, const te_prim *p)
{
    w_str(w, " ->");
    for (uint32_t i = 0; i < p->n_results; i++)
        w_fmt(w, " %s", p->results[i]);
}

static void print_prim(writer *w, const te_prim *p)
{
    w_str(w, prim_texts[p->kind]);
    switch (p->kind) {
    case TE_SPLIT:
        w_fmt(w, p->nparts ? " %s.%s nparts %" PRId64 : " %s.%s %" PRId64, p->stage, p->axes[0],
              p->nparts ? p->nparts : p->factor);
        print_results(w, p);
        break;
    case TE_FUSE:
        w_fmt(w, " %s.%s %s.%s", p->stage, p->axes[0], p->stage, p->axes[1]);
        print_results(w, p);
        break;
    case TE_REORDER:
        w_fmt(w, " %s:", p->stage);
        for (uint32_t i = 0; i < p->n_axes; i++)
            w_fmt(w, " %s", p->axes[i]);
        break;
    case TE_COMPUTE_AT: w_fmt(w, " %s at %s.%s", p->stage, p->other, p->other_axis); break;
    case TE_INLINE:
    case TE_ROOT:
    case TE_DOUBLE_BUFFER: w_fmt(w, " %s", p->stage); break;
    case TE_CACHE_READ:
        w_fmt(w, " %s %s %s", p->stage, p->word, p->other);
        print_results(w, p);
        break;
    case TE_CACHE_WRITE:
        w_fmt(w, " %s %s", p->stage, p->word);
        print_results(w, p);
        break;
    case TE_SET_SCOPE: w_fmt(w, " %s %s", p->stage, p->word); break;
    case TE_PRAGMA:
        w_fmt(w, " %s.%s ", p->stage, p->axes[0]);
        w_quoted(w, p->word, strlen(p->word));
        w_fmt(w, " %" PRId64, p->factor);
        break;
    case TE_VECTORIZE:
    case TE_UNROLL:
    case TE_PARALLEL:
    case TE_VTHREAD: w_fmt(w, " %s.%s", p->stage, p->axes[0]); break;
    case TE_TENSORIZE: w_fmt(w, " %s.%s %s", p->stage, p->axes[0], p->word); break;
    case TE_RFACTOR:
        w_fmt(w, " %s.%s", p->stage, p->axes[0]);
        print_results(w, p);
        break;
    case TE_STORAGE_ALIGN: w_fmt(w, " %s.%s %" PRId64 " %" PRId64, p->stage, p->axes[0], p->factor, p->nparts); break;
    }
    w_str(w, "\n");
}

void te_sched_print(writer *w, const te_sched *s)
{
    for (uint32_t i = 0; i < s->prims.len; i++)
        print_prim(w, &s->prims.data[i]);
}

/* --- parsing --- */

static bool word(lexer *l, const char **out)
{
    if (l->tok.kind != TOK_IDENT)
        return lexer_error(l, "expected a name");
    *out = l->tok.text;
    lexer_next(l);
    return true;
}

static bool number(lexer *l, int64_t *out)
{
    return lexer_int(l, out);
}

/* stage.axis is one token: names of stages have no dot, names of axes may. */
static bool axis_ref(te_sched *s, lexer *l, const char **out_stage, const char **out_axis)
{
    const char *text = NULL;
    if (l->tok.kind == TOK_IDENT && !strchr(l->tok.text, '.'))
        return lexer_error(l, "expected stage.axis");
    if (!word(l, &text))
        return false;
    const char *dot = strchr(text, '.');
    *out_stage = intern_n(s->c->names, text, (size_t)(dot - text));
    *out_axis = intern(s->c->names, dot + 1);
    return true;
}

/* stage.axis into p, for axis number `at`; all axes of a primitive belong to one stage. */
static bool own_axis(te_sched *s, lexer *l, te_prim *p, const char **axes, uint32_t at)
{
    const char *stage = NULL;
    if (!axis_ref(s, l, &stage, &axes[at]))
        return false;
    if (at > 0 && stage != p->stage)
        return lexer_error(l, "axes of two stages, %s and %s", p->stage, stage);
    p->stage = stage;
    p->axes = axes;
    p->n_axes = at + 1;
    return true;
}

static bool parse_results(te_sched *s, lexer *l, te_prim *p, uint32_t n)
{
    const char *list[2] = {0};
    if (!lexer_expect(l, "->"))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!word(l, &list[i]))
            return false;
    set_results(s, p, n, list);
    return true;
}

static bool parse_order(te_sched *s, lexer *l, te_prim *p, uint32_t line)
{
    VEC(const char *) axes = {0};
    if (!word(l, &p->stage) || !lexer_expect(l, ":"))
        return false;
    while (l->tok.kind == TOK_IDENT && l->tok.loc.line == line) {
        vec_push(&s->c->mem, &axes, l->tok.text);
        lexer_next(l);
    }
    p->axes = axes.data;
    p->n_axes = axes.len;
    return axes.len > 0 || lexer_error(l, "expected the axes in their new order");
}

static bool parse_split(te_sched *s, lexer *l, te_prim *p, const char **axes)
{
    if (!own_axis(s, l, p, axes, 0))
        return false;
    bool parts = lexer_accept(l, "nparts");
    return number(l, parts ? &p->nparts : &p->factor) && parse_results(s, l, p, 2);
}

static bool parse_pragma(te_sched *s, lexer *l, te_prim *p, const char **axes)
{
    if (!own_axis(s, l, p, axes, 0))
        return false;
    if (l->tok.kind != TOK_STRING)
        return lexer_error(l, "expected the pragma's key in quotes");
    p->word = l->tok.text;
    lexer_next(l);
    return number(l, &p->factor);
}

static bool parse_prim(te_sched *s, lexer *l, te_prim *p, uint32_t line)
{
    const char **axes = arena_array(&s->c->mem, const char *, 2);
    switch (p->kind) {
    case TE_SPLIT: return parse_split(s, l, p, axes);
    case TE_FUSE: return own_axis(s, l, p, axes, 0) && own_axis(s, l, p, axes, 1) && parse_results(s, l, p, 1);
    case TE_REORDER: return parse_order(s, l, p, line);
    case TE_COMPUTE_AT: return word(l, &p->stage) && lexer_expect(l, "at") && axis_ref(s, l, &p->other, &p->other_axis);
    case TE_INLINE:
    case TE_ROOT:
    case TE_DOUBLE_BUFFER: return word(l, &p->stage);
    case TE_CACHE_READ:
        return word(l, &p->stage) && word(l, &p->word) && word(l, &p->other) && parse_results(s, l, p, 1);
    case TE_CACHE_WRITE: return word(l, &p->stage) && word(l, &p->word) && parse_results(s, l, p, 1);
    case TE_SET_SCOPE: return word(l, &p->stage) && word(l, &p->word);
    case TE_PRAGMA: return parse_pragma(s, l, p, axes);
    case TE_VECTORIZE:
    case TE_UNROLL:
    case TE_PARALLEL:
    case TE_VTHREAD: return own_axis(s, l, p, axes, 0);
    case TE_TENSORIZE: return own_axis(s, l, p, axes, 0) && word(l, &p->word);
    case TE_RFACTOR: return own_axis(s, l, p, axes, 0) && parse_results(s, l, p, 1);
    case TE_STORAGE_ALIGN: return own_axis(s, l, p, axes, 0) && number(l, &p->factor) && number(l, &p->nparts);
    }
    return false;
}

static bool find_prim(const char *text, te_prim_kind *out)
{
    for (size_t i = 0; i < sizeof prim_texts / sizeof *prim_texts; i++) {
        if (strcmp(text, prim_texts[i]) == 0) {
            *out = (te_prim_kind)i;
            return true;
        }
    }
    return false;
}

bool te_sched_parse(te_graph *g, const char *file, const char *text, size_t len, te_sched **out)
{
    compiler *c = g->c;
    lexer l;
    lexer_init(&l, &c->mem, c->names, &c->diags, file, text, len);
    te_sched *s = *out = te_sched_new(g);
    while (!l.failed && l.tok.kind != TOK_END) {
        te_prim p = {.loc = l.tok.loc};
        uint32_t line = l.tok.loc.line;
        if (l.tok.kind != TOK_IDENT || !find_prim(l.tok.text, &p.kind))
            return lexer_error(&l, "expected a schedule primitive");
        lexer_next(&l);
        if (!parse_prim(s, &l, &p, line))
            return false;
        if (l.tok.kind != TOK_END && l.tok.loc.line == line)
            return lexer_error(&l, "expected the end of the line");
        vec_push(&c->mem, &s->prims, p);
    }
    return !l.failed;
}
