/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as values: a list of primitives, appended by calls, printed and parsed as text, one primitive a line
 * (docs/reference/schedule.md). Nothing is checked here but the notation; te/apply.c gives it meaning. */
#include "base/nearest.h"
#include "te/stage.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* --- rows --- */

typedef enum field_kind {
    FIELD_END,
    FIELD_STAGE,
    FIELD_AXIS,
    FIELD_ORDER,
    FIELD_PLACE,
    FIELD_WORD,
    FIELD_STRING,
    FIELD_NUMBER,
    FIELD_FACTOR,
    FIELD_NEW
} field_kind;

typedef struct field {
    field_kind kind;
    size_t at; /* of the value, in te_prim */
} field;

#define AT(p, m)                    offsetof(te_prim, u) + offsetof(te_##p##_args, m)
#define STAGE                       {FIELD_STAGE, offsetof(te_prim, u)},
#define AXIS(p, m)                  {FIELD_AXIS, AT(p, m)},
#define ORDER(p, m)                 {FIELD_ORDER, AT(p, m)},
#define PLACE(p, m)                 {FIELD_PLACE, AT(p, m)},
#define WORD(p, m)                  {FIELD_WORD, AT(p, m)},
#define STRING(p, m)                {FIELD_STRING, AT(p, m)},
#define NUMBER(p, m)                {FIELD_NUMBER, AT(p, m)},
#define FACTOR(p, m)                {FIELD_FACTOR, AT(p, m)},
#define NEW(p, m)                   {FIELD_NEW, AT(p, m)},
#define PRIMITIVE(id, name, fields) static const field name##_fields[] = {fields{FIELD_END, 0}};
#include "te/primitives.def"
#undef PRIMITIVE

static const struct row {
    const char *text;
    const field *fields;
} rows[] = {
#define PRIMITIVE(id, name, fields) [id] = {#name, name##_fields},
#include "te/primitives.def"
#undef PRIMITIVE
};

const char *te_prim_text(te_prim_kind kind)
{
    return rows[kind].text;
}

te_sched *te_sched_new(te_graph *g)
{
    te_sched *s = arena_new(&g->c->mem, te_sched);
    s->c = g->c;
    s->g = g;
    return s;
}

/* --- appending --- */

static te_prim *append(te_sched *s, te_prim_kind kind, const char *stage)
{
    te_prim p = {.kind = kind, .loc = src_loc_none()};
    p.u.stage = intern(s->c->names, stage);
    vec_push(&s->c->mem, &s->prims, p);
    return &vec_last(&s->prims);
}

static const char *name(te_sched *s, const char *text)
{
    return intern(s->c->names, text);
}

void te_sched_split(te_sched *s, const char *stage, const char *axis, int64_t factor, const char *outer,
                    const char *inner)
{
    te_prim *p = append(s, TE_SPLIT, stage);
    p->u.split.axis = name(s, axis);
    p->u.split.by = (te_factor){factor, false};
    p->u.split.outer = name(s, outer);
    p->u.split.inner = name(s, inner);
}

void te_sched_fuse(te_sched *s, const char *stage, const char *a, const char *b, const char *fused)
{
    te_prim *p = append(s, TE_FUSE, stage);
    p->u.fuse.outer = name(s, a);
    p->u.fuse.inner = name(s, b);
    p->u.fuse.fused = name(s, fused);
}

void te_sched_reorder(te_sched *s, const char *stage, uint32_t n, const char *const *axes)
{
    const char **own = arena_array(&s->c->mem, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        own[i] = name(s, axes[i]);
    append(s, TE_REORDER, stage)->u.reorder.axes = (te_names){own, n};
}

void te_sched_compute_at(te_sched *s, const char *stage, const char *consumer, const char *axis)
{
    append(s, TE_COMPUTE_AT, stage)->u.compute_at.at = (te_place){name(s, consumer), name(s, axis)};
}

void te_sched_compute_inline(te_sched *s, const char *stage)
{
    append(s, TE_INLINE, stage);
}

void te_sched_cache_write(te_sched *s, const char *stage, const char *scope, const char *new_stage)
{
    te_prim *p = append(s, TE_CACHE_WRITE, stage);
    p->u.cache_write.scope = name(s, scope);
    p->u.cache_write.cache = name(s, new_stage);
}

void te_sched_rfactor(te_sched *s, const char *stage, const char *axis, const char *new_stage)
{
    te_prim *p = append(s, TE_RFACTOR, stage);
    p->u.rfactor = (te_rfactor_args){p->u.stage, name(s, axis), name(s, new_stage)};
}

void te_sched_cache_read(te_sched *s, const char *stage, const char *scope, const char *reader, const char *new_stage)
{
    te_prim *p = append(s, TE_CACHE_READ, stage);
    p->u.cache_read.scope = name(s, scope);
    p->u.cache_read.reader = name(s, reader);
    p->u.cache_read.cache = name(s, new_stage);
}

void te_sched_set_scope(te_sched *s, const char *stage, const char *scope)
{
    append(s, TE_SET_SCOPE, stage)->u.set_scope.scope = name(s, scope);
}

void te_sched_annotate(te_sched *s, te_prim_kind kind, const char *stage, const char *axis)
{
    append(s, kind, stage)->u.vectorize.axis = name(s, axis); /* all of them have this one field */
}

void te_sched_pragma(te_sched *s, const char *stage, const char *axis, const char *key, int64_t value)
{
    te_prim *p = append(s, TE_PRAGMA, stage);
    p->u.pragma = (te_pragma_args){p->u.stage, name(s, axis), name(s, key), value};
}

void te_sched_prefetch(te_sched *s, const char *stage, const char *axis, const char *tensor, const char *consumer,
                       const char *place)
{
    te_prim *p = append(s, TE_PREFETCH, stage);
    p->u.prefetch = (te_prefetch_args){p->u.stage, name(s, axis), name(s, tensor), {name(s, consumer), name(s, place)}};
}

void te_sched_tensorize(te_sched *s, const char *stage, const char *axis, const char *intrin)
{
    te_prim *p = append(s, TE_TENSORIZE, stage);
    p->u.tensorize = (te_tensorize_args){p->u.stage, name(s, axis), name(s, intrin)};
}

void te_sched_rolling_buffer(te_sched *s, const char *stage)
{
    append(s, TE_ROLLING_BUFFER, stage);
}

void te_sched_storage_align(te_sched *s, const char *stage, const char *axis, int64_t factor, int64_t offset)
{
    te_prim *p = append(s, TE_STORAGE_ALIGN, stage);
    p->u.storage_align = (te_storage_align_args){p->u.stage, name(s, axis), factor, offset};
}

void te_sched_storage_tile(te_sched *s, const char *stage, const char *y, const char *x, int64_t y_factor,
                           int64_t x_factor)
{
    te_prim *p = append(s, TE_STORAGE_TILE, stage);
    p->u.storage_tile = (te_storage_tile_args){p->u.stage, name(s, y), name(s, x), y_factor, x_factor};
}

/* --- printing --- */

static void print_field(writer *w, const te_prim *p, field f, bool first_new)
{
    const void *v = (const char *)p + f.at;
    const char *const *text = v;
    const te_names *order = v;
    const te_place *place = v;
    const te_factor *by = v;
    switch (f.kind) {
    case FIELD_END: break;
    case FIELD_AXIS: w_fmt(w, " %s.%s", p->u.stage, *text); break;
    case FIELD_ORDER:
        w_fmt(w, " %s:", p->u.stage);
        for (uint32_t i = 0; i < order->len; i++)
            w_fmt(w, " %s", order->data[i]);
        break;
    case FIELD_PLACE: w_fmt(w, " at %s.%s", place->stage, place->axis); break;
    case FIELD_STAGE:
    case FIELD_WORD: w_fmt(w, " %s", *text); break;
    case FIELD_STRING:
        w_str(w, " ");
        w_quoted(w, *text, strlen(*text));
        break;
    case FIELD_NUMBER: w_fmt(w, " %" PRId64, *(const int64_t *)v); break;
    case FIELD_FACTOR: w_fmt(w, " %s%" PRId64, by->is_parts ? "nparts " : "", by->n); break;
    case FIELD_NEW: w_fmt(w, "%s %s", first_new ? " ->" : "", *text); break;
    }
}

void te_sched_print(writer *w, const te_sched *s)
{
    for (uint32_t i = 0; i < s->prims.len; i++) {
        const te_prim *p = &s->prims.data[i];
        const field *fields = rows[p->kind].fields;
        w_str(w, rows[p->kind].text);
        for (const field *f = fields; f->kind != FIELD_END; f++)
            print_field(w, p, *f, f > fields && f[-1].kind != FIELD_NEW);
        w_str(w, "\n");
    }
}

/* --- parsing --- */

typedef struct reader {
    te_sched *s;
    lexer l;
    uint32_t line; /* of the primitive */
} reader;

/* The form of a primitive: "split STAGE.AXIS [nparts] N -> NAME NAME". */
static const char *form_of(te_sched *s, te_prim_kind kind)
{
    static const char *const texts[] = {[FIELD_END] = "",
                                        [FIELD_STAGE] = "STAGE",
                                        [FIELD_AXIS] = "STAGE.AXIS",
                                        [FIELD_ORDER] = "STAGE: AXIS AXIS ...",
                                        [FIELD_PLACE] = "at STAGE.AXIS",
                                        [FIELD_WORD] = "NAME",
                                        [FIELD_STRING] = "\"TEXT\"",
                                        [FIELD_NUMBER] = "N",
                                        [FIELD_FACTOR] = "[nparts] N",
                                        [FIELD_NEW] = "NEW"};
    writer w;
    writer_init(&w, &s->c->mem);
    w_str(&w, rows[kind].text);
    for (const field *f = rows[kind].fields; f->kind != FIELD_END; f++) {
        bool first_new = f->kind == FIELD_NEW && f[-1].kind != FIELD_NEW;
        w_fmt(&w, "%s %s", first_new ? " ->" : "", texts[f->kind]);
    }
    return w.data;
}

static const char *list_prims(te_sched *s)
{
    writer w;
    writer_init(&w, &s->c->mem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", rows[i].text);
    return w.data;
}

static bool word(reader *r, const char **out)
{
    if (r->l.tok.kind != TOK_IDENT)
        return lexer_error(&r->l, "expected a name");
    *out = r->l.tok.text;
    lexer_next(&r->l);
    return true;
}

/* stage.axis is one token: names of stages have no dot, names of axes may. */
static bool axis_ref(reader *r, const char **out_stage, const char **out_axis)
{
    const char *text = NULL;
    if (r->l.tok.kind == TOK_IDENT && !strchr(r->l.tok.text, '.'))
        return lexer_error(&r->l, "expected stage.axis");
    if (!word(r, &text))
        return false;
    const char *dot = strchr(text, '.');
    *out_stage = intern_n(r->s->c->names, text, (size_t)(dot - text));
    *out_axis = intern(r->s->c->names, dot + 1);
    return true;
}

/* All axes of a primitive belong to one stage. */
static bool own_axis(reader *r, te_prim *p, const char **out)
{
    const char *stage = NULL;
    if (!axis_ref(r, &stage, out))
        return false;
    if (p->u.stage && stage != p->u.stage)
        return lexer_error(&r->l, "axes of two stages, %s and %s", p->u.stage, stage);
    p->u.stage = stage;
    return true;
}

static bool order(reader *r, te_prim *p, te_names *out)
{
    VEC(const char *) axes = {0};
    if (!word(r, &p->u.stage) || !lexer_expect(&r->l, ":"))
        return false;
    while (r->l.tok.kind == TOK_IDENT && r->l.tok.loc.line == r->line) {
        vec_push(&r->s->c->mem, &axes, r->l.tok.text);
        lexer_next(&r->l);
    }
    *out = (te_names){axes.data, axes.len};
    return axes.len > 0 || lexer_error(&r->l, "expected the axes in their new order");
}

static bool string(reader *r, const char **out)
{
    if (r->l.tok.kind != TOK_STRING)
        return lexer_error(&r->l, "expected a text in quotes");
    *out = r->l.tok.text;
    lexer_next(&r->l);
    return true;
}

static bool read_field(reader *r, te_prim *p, field f, bool first_new)
{
    void *v = (char *)p + f.at;
    te_place *place = v;
    te_factor *by = v;
    switch (f.kind) {
    case FIELD_END: return true;
    case FIELD_AXIS: return own_axis(r, p, v);
    case FIELD_ORDER: return order(r, p, v);
    case FIELD_PLACE: return lexer_expect(&r->l, "at") && axis_ref(r, &place->stage, &place->axis);
    case FIELD_STAGE:
    case FIELD_WORD: return word(r, v);
    case FIELD_STRING: return string(r, v);
    case FIELD_NUMBER: return lexer_int(&r->l, v);
    case FIELD_FACTOR: by->is_parts = lexer_accept(&r->l, "nparts"); return lexer_int(&r->l, &by->n);
    case FIELD_NEW: return (!first_new || lexer_expect(&r->l, "->")) && word(r, v);
    }
    return false;
}

static bool find_prim(const char *text, te_prim_kind *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(text, rows[i].text) == 0) {
            *out = (te_prim_kind)i;
            return true;
        }
    }
    return false;
}

static bool at_end_of_line(const reader *r)
{
    return r->l.tok.kind == TOK_END || r->l.tok.loc.line != r->line;
}

/* All fields stand on the line of their primitive, at p->loc. */
static bool read_fields(reader *r, te_prim *p)
{
    const field *fields = rows[p->kind].fields;
    for (const field *f = fields; f->kind != FIELD_END; f++) {
        if (at_end_of_line(r) && !r->l.failed) {
            r->l.tok.loc = p->loc;
            return lexer_error(&r->l, "something is missing at the end of the line");
        }
        if (!read_field(r, p, *f, f > fields && f[-1].kind != FIELD_NEW))
            return false;
    }
    return true;
}

static bool read_prim(reader *r)
{
    te_prim p = {.loc = r->l.tok.loc};
    r->line = r->l.tok.loc.line;
    if (r->l.failed)
        return false;
    if (r->l.tok.kind != TOK_IDENT || !find_prim(r->l.tok.text, &p.kind)) {
        const char *word = r->l.tok.kind == TOK_IDENT ? r->l.tok.text : "", *list = list_prims(r->s);
        (void)lexer_error(&r->l, "expected a schedule primitive");
        diag_hint(&r->s->c->diags, "%sprimitives are: %s", nearest_in(word, list, &r->s->c->mem), list);
        return false;
    }
    lexer_next(&r->l);
    bool ok = read_fields(r, &p) && (at_end_of_line(r) || lexer_error(&r->l, "expected the end of the line"));
    if (!ok) {
        diag_hint(&r->s->c->diags, "the form is: %s", form_of(r->s, p.kind));
        return false;
    }
    vec_push(&r->s->c->mem, &r->s->prims, p);
    return true;
}

bool te_sched_parse(te_graph *g, const char *file, const char *text, size_t len, te_sched **out)
{
    compiler *c = g->c;
    reader r = {.s = te_sched_new(g)};
    *out = r.s;
    lexer_init(&r.l, &c->mem, c->names, &c->diags, file, text, len);
    while (!r.l.failed && r.l.tok.kind != TOK_END)
        if (!read_prim(&r))
            return false;
    return !r.l.failed;
}
