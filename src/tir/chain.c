/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of kernels that run line by line: who asks whom for lines, how many of them are kept, what that takes. The run
 * is gone through in its order, so the numbers are exact. */
#include "tir/chain.h"
#include "tir/build.h"
#include "tir/chain_make.h"

#include <string.h>

/* --- values --- */

static int64_t param_extent(const tir_link *k, uint32_t p)
{
    int64_t n = 0;
    const int32_t axis = k->lines->axis[p];
    return axis != LINES_NO_AXIS && tir_is_int(k->lines->f->params[p]->shape[axis], &n) ? n : 0;
}

bool chain_is_contiguous(const tir_buffer *b, int32_t axis)
{
    for (int32_t i = 0; i < axis; i++)
        if (!tir_is_const(b->shape[i], 1))
            return false;
    return true;
}

bool chain_same_shape(const tir_buffer *a, const tir_buffer *b)
{
    int64_t x = 0, y = 0;
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!tir_is_int(a->shape[i], &x) || !tir_is_int(b->shape[i], &y) || x != y)
            return false;
    return true;
}

/* Parameter of the writer that makes value v. */
uint32_t chain_written(const tir_chain *x, uint32_t v)
{
    const tir_link *w = &x->links.data[x->values.data[v].writer];
    uint32_t p = w->lines->f->n_inputs;
    while (w->value[p] != v)
        p++;
    return p;
}

static bool no(tir_chain *x, const char *why)
{
    x->why = why;
    return false;
}

bool tir_lines_agree(const tir_buffer *made, int32_t a, const tir_buffer *read, int32_t b)
{
    int64_t n = 0, m = 0;
    if (a == LINES_NO_AXIS || b == LINES_NO_AXIS || made->dt != read->dt ||
        tir_buffer_count(made) != tir_buffer_count(read) || !tir_is_int(made->shape[a], &n) ||
        !tir_is_int(read->shape[b], &m) || n != m)
        return false;
    return (a == b && chain_same_shape(made, read)) || (chain_is_contiguous(made, a) && chain_is_contiguous(read, b));
}

/* Writer and reader see the same lines of a value. */
static bool check_lines(tir_chain *x, const tir_link *reader, uint32_t p)
{
    const tir_chain_value *v = &x->values.data[reader->value[p]];
    const tir_link *made = &x->links.data[v->writer];
    const uint32_t q = chain_written(x, reader->value[p]);
    if (tir_lines_agree(made->lines->f->params[q], made->lines->axis[q], reader->lines->f->params[p],
                        reader->lines->axis[p]))
        return true;
    return no(x, "they do not agree on the lines of a value between them");
}

static bool check_values(tir_chain *x)
{
    for (uint32_t i = 0; i < x->links.len; i++) {
        const tir_link *k = &x->links.data[i];
        for (uint32_t p = 0; p < k->lines->f->n_params; p++) {
            tir_chain_value *v = &x->values.data[k->value[p]];
            if (p < k->lines->f->n_inputs && v->writer != UINT32_MAX && !check_lines(x, k, p))
                return false;
            if (p < k->lines->f->n_inputs)
                continue;
            v->lines = param_extent(k, p);
            if (v->lines == 0 && (i + 1 < x->links.len || !v->param))
                return no(x, "a kernel before the last one makes no lines");
            if (v->lines > 0)
                v->pitch = tir_buffer_count(k->lines->f->params[p]) / v->lines *
                           (int64_t)dtype_bytes(k->lines->f->params[p]->dt);
        }
    }
    return true;
}

/* --- who asks whom --- */

/* Lines of link `of` that link k wants to be there when it makes its line y: -1: none. */
static int64_t wants(const tir_chain *x, const tir_link *k, uint32_t of, int64_t y)
{
    int64_t most = -1;
    for (uint32_t p = 0; p < k->lines->f->n_inputs; p++) {
        const int64_t *to = &k->lines->to[p * k->lines->n], *from = &k->lines->from[p * k->lines->n];
        if (x->values.data[k->value[p]].writer != of || k->lines->axis[p] == LINES_NO_AXIS)
            continue;
        while (y > 0 && to[y] < from[y])
            y--;
        most = to[y] >= from[y] && to[y] > most ? to[y] : most;
    }
    return most;
}

static bool reads_from(const tir_chain *x, uint32_t reader, uint32_t maker)
{
    const tir_link *k = &x->links.data[reader];
    for (uint32_t p = 0; p < k->lines->f->n_inputs; p++)
        if (x->values.data[k->value[p]].writer == maker)
            return true;
    return false;
}

/* Of its readers the one that is furthest ahead drives a link. done: [link * n + line of the last link]: lines that are
 * made by then. */
static bool choose_drivers(compiler *c, tir_chain *x)
{
    const uint32_t last = x->links.len - 1;
    const int64_t n = x->links.data[last].lines->n;
    int64_t *done = arena_array(&c->mem, int64_t, (last + 1) * (size_t)n);
    for (int64_t y = 0; y < n; y++)
        done[last * n + y] = y;
    x->links.data[last].driver = last;
    for (uint32_t i = last; i-- > 0;) {
        int64_t best = -1;
        x->links.data[i].driver = UINT32_MAX;
        for (uint32_t r = i + 1; r <= last; r++) {
            int64_t sum = 0;
            if (!reads_from(x, r, i))
                continue;
            for (int64_t y = 0; y < n; y++)
                sum += 1 + (done[r * n + y] < 0 ? -1 : wants(x, &x->links.data[r], i, done[r * n + y]));
            if (sum <= best)
                continue;
            best = sum;
            x->links.data[i].driver = r;
            for (int64_t y = 0; y < n; y++)
                done[i * n + y] = done[r * n + y] < 0 ? -1 : wants(x, &x->links.data[r], i, done[r * n + y]);
        }
        if (x->links.data[i].driver == UINT32_MAX)
            return no(x, "no kernel of the chain reads the result of one of them");
    }
    return true;
}

static bool is_below(const tir_chain *x, uint32_t link, uint32_t top)
{
    while (link != top && x->links.data[link].driver != link)
        link = x->links.data[link].driver;
    return link == top;
}

/* Some link that b drives, or b, reads what a or one of its makes. */
static bool needs_before(const tir_chain *x, uint32_t a, uint32_t b)
{
    for (uint32_t r = 0; r < x->links.len; r++)
        for (uint32_t w = 0; w < x->links.len && is_below(x, r, b); w++)
            if (is_below(x, w, a) && reads_from(x, r, w))
                return true;
    return false;
}

static void choose_order(compiler *c, tir_chain *x)
{
    const uint32_t n = x->links.len;
    x->order = arena_array(&c->mem, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) { /* insertion: in front of the first one that needs it */
        uint32_t at = i;
        for (uint32_t k = 0; k < at; k++)
            if (x->links.data[x->order[k]].driver == x->links.data[i].driver && needs_before(x, i, x->order[k]))
                at = k;
        memmove(&x->order[at + 1], &x->order[at], (i - at) * sizeof *x->order);
        x->order[at] = i;
    }
}

/* --- the run --- */

typedef struct run {
    tir_chain *x;
    int64_t *done; /* of each link: lines that are made */
    bool ok;
} run;

static void run_line(run *r, uint32_t link, int64_t y)
{
    tir_chain *x = r->x;
    const tir_link *k = &x->links.data[link];
    for (uint32_t o = 0; o < x->links.len && r->ok; o++) {
        const uint32_t i = x->order[o];
        if (i == link || x->links.data[i].driver != link)
            continue;
        for (int64_t want = wants(x, k, i, y); r->done[i] <= want && r->ok;)
            run_line(r, i, r->done[i]);
    }
    for (uint32_t p = 0; p < k->lines->f->n_inputs && r->ok; p++) {
        tir_chain_value *v = &x->values.data[k->value[p]];
        const int64_t from = k->lines->from[p * k->lines->n + y], to = k->lines->to[p * k->lines->n + y];
        if (v->writer == UINT32_MAX || to < from)
            continue;
        r->ok &= to < r->done[v->writer];
        v->kept = r->done[v->writer] - from > v->kept ? r->done[v->writer] - from : v->kept;
    }
    r->done[link]++;
}

static bool run_all(compiler *c, tir_chain *x)
{
    run r = {x, arena_array(&c->mem, int64_t, x->links.len), true};
    const uint32_t last = x->links.len - 1;
    for (uint32_t v = 0; v < x->values.len; v++)
        x->values.data[v].kept = 1;
    for (int64_t y = 0; y < x->links.data[last].lines->n && r.ok; y++)
        run_line(&r, last, y);
    if (!r.ok)
        return no(x, "a line would be read before it is made");
    for (uint32_t v = 0; v < x->values.len; v++) {
        const tir_chain_value *value = &x->values.data[v];
        if (value->param && value->writer != UINT32_MAX && value->lines > 0 &&
            r.done[value->writer] != value->lines)
            return no(x, "not all lines of a result would be made");
    }
    return true;
}

/* Lines up to min(step * y + first, all) are wanted: as an expression that the loops can hold. */
bool chain_demand(const tir_chain *x, uint32_t link, int64_t *step, int64_t *first)
{
    const tir_link *i = &x->links.data[link], *k = &x->links.data[i->driver];
    int64_t y = 0, all = i->lines->n - 1;
    while (y < k->lines->n && wants(x, k, link, y) < 0)
        y++;
    if (y == k->lines->n)
        return false;
    *step = y + 1 < k->lines->n ? wants(x, k, link, y + 1) - wants(x, k, link, y) : 0;
    *first = wants(x, k, link, y) - *step * y;
    for (y = 0; y < k->lines->n; y++) {
        int64_t want = *step * y + *first;
        want = want > all ? all : want < -1 ? -1 : want;
        if (wants(x, k, link, y) != want)
            return false;
    }
    return true;
}

bool tir_chain_plan(compiler *c, tir_chain *x)
{
    int64_t step, first;
    x->why = NULL;
    if (!check_values(x) || !choose_drivers(c, x))
        return false;
    choose_order(c, x);
    if (!run_all(c, x))
        return false;
    for (uint32_t i = 0; i + 1 < x->links.len; i++)
        if (!chain_demand(x, i, &step, &first))
            return no(x, "lines are not asked for at even steps");
    return true;
}

/* --- what it takes --- */

typedef struct size {
    const tir_stmt *loop;
    int64_t kept, line; /* outside of the loop, and inside */
    bool inside;
} size;

static void add_size(size *z, tir_stmt *s)
{
    const bool enters = s == z->loop;
    int64_t n = s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_GLOBAL
                    ? tir_buffer_count(s->buffer) * (int64_t)dtype_bytes(s->buffer->dt)
                    : 0;
    z->inside |= enters;
    *(z->inside ? &z->line : &z->kept) += n;
    if (s->body)
        add_size(z, s->body);
    if (s->orelse)
        add_size(z, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        add_size(z, s->stmts[i]);
    z->inside &= !enters;
}

int64_t tir_lines_copied_again(const tir_lines *l)
{
    size z = {.loop = l->loop};
    int64_t read = 0, fresh = 0;
    add_size(&z, l->f->body);
    for (uint32_t p = 0; p < l->f->n_inputs; p++)
        for (int64_t y = 0, seen = -1; y < l->n && l->axis[p] != LINES_NO_AXIS; y++) {
            const int64_t from = l->from[p * l->n + y], to = l->to[p * l->n + y];
            read += to - from + 1;
            fresh += to > seen ? to - (from > seen ? from - 1 : seen) : 0;
            seen = to > seen ? to : seen;
        }
    return z.kept > 0 || z.line == 0 || read == 0 ? 0 : z.line * l->n / read * (read - fresh);
}

int64_t tir_chain_bytes(const tir_chain *x)
{
    int64_t sum = 0, line = 0;
    for (uint32_t v = 0; v < x->values.len; v++)
        if (!x->values.data[v].param)
            sum += x->values.data[v].kept * x->values.data[v].pitch;
    for (uint32_t i = 0; i < x->links.len; i++) {
        size z = {.loop = x->links.data[i].lines->loop};
        add_size(&z, x->links.data[i].lines->f->body);
        sum += z.kept;
        line = z.line > line ? z.line : line;
    }
    return sum + line;
}
