/* SPDX-License-Identifier: Apache-2.0 */
/* Row streaming: cuts the steps into chains and single kernels. The memory of a piece does not depend on the other
 * pieces, and the peak of a cut is that of its largest piece. So dynamic programming finds the cheapest cut under a
 * limit. The planner then computes what the cut really needs. The memory of a single kernel is an estimate that assumes
 * the best overlap. If the planner does not reach it, the kernels at its peak count with what they needed, and the cut
 * is computed again. */
#include "plan/stream.h"
#include "plan/facts.h"
#include "prog/chain.h"

#include <string.h>

#define TRIES      12u      /* cuts that are planned, by effort */
#define LINE_COST  40       /* instructions to begin a line of one kernel */
#define COPY_COST  2        /* for a byte that is copied again */
#define ALIGN_ROOM 32       /* of a limit, for alignment */
#define NEVER      UINT64_MAX

/* Links first to last: one kernel, or a chain. */
typedef struct piece {
    uint32_t first, last;
    uint64_t again; /* prog_chain.again */
    uint64_t bytes; /* of workspace while it runs */
    uint64_t cost;  /* more instructions than kernel by kernel, roughly */
} piece;

/* Chains of a program that was planned. */
typedef struct cut {
    uint32_t n;
    const prog_chain *chains;
    const plan *plan;
} cut;

typedef struct stream {
    compiler *c;
    arena tmp;
    const stream_planner *p;
    prog_links links;
    const plan *alone; /* without chains; NULL: not asked for */
    uint64_t ram_alone;
    plan_problem *problem;
    plan_facts facts;
    uint32_t *first, *last; /* of each value: steps between which its root lives in the workspace; first > last: none */
    uint64_t *begun, *ended; /* bytes of those that begin to live, and that live no more, before each step */
    uint32_t *by_first, *of_step; /* these values in the order in which they begin; where those of each step stand */
    VEC(piece) pieces;      /* by their last link */
    VEC(cut) cuts;          /* that were planned: other limits often lead to the same one */
} stream;

/* --- what pieces take --- */

static void note_life(stream *x, uint32_t v, uint32_t step)
{
    uint64_t at;
    const uint32_t use = step;
    const uint32_t root = prog_root(x->links.f, v, &at);
    if (x->problem->values.data[root].storage != STORE_WORKSPACE)
        return;
    step = x->problem->values.data[root].from_start && x->first[root] == UINT32_MAX ? 0 : step;
    x->first[root] = step < x->first[root] ? step : x->first[root];
    x->last[root] = use > x->last[root] ? use : x->last[root];
}

static void note_block(stream *x, const prog_block *b, uint32_t step)
{
    for (uint32_t i = 0; i < b->len; i++) {
        for (uint32_t a = 0; a < b->data[i].n_args; a++)
            note_life(x, b->data[i].args[a], step);
        for (uint32_t k = 0; k < b->data[i].n_blocks; k++)
            note_block(x, &b->data[i].blocks[k], step);
    }
}

static void find_lives(stream *x)
{
    const prog_func *f = x->links.f;
    x->first = arena_array(&x->tmp, uint32_t, f->values.len + 1u);
    x->last = arena_array(&x->tmp, uint32_t, f->values.len + 1u);
    for (uint32_t v = 0; v < f->values.len; v++)
        x->first[v] = UINT32_MAX;
    for (uint32_t i = 0; i < f->steps.len; i++) {
        const prog_step *s = &f->steps.data[i];
        const prog_block one = {(prog_step *)s, 1, 1};
        if (s->kind != STEP_VIEW) /* a view is no use */
            note_block(x, &one, i);
    }
}

/* By step, so that what lives between two of them is a difference. */
static void sum_lives(stream *x)
{
    const prog_func *f = x->links.f;
    const uint32_t n = f->steps.len;
    x->begun = arena_array(&x->tmp, uint64_t, n + 2u);
    x->ended = arena_array(&x->tmp, uint64_t, n + 2u);
    x->of_step = arena_array(&x->tmp, uint32_t, n + 2u);
    x->by_first = arena_array(&x->tmp, uint32_t, f->values.len + 1u);
    for (uint32_t i = 0; i <= n + 1; i++)
        x->begun[i] = x->ended[i] = x->of_step[i] = 0;
    for (uint32_t v = 0; v < f->values.len; v++) {
        if (x->first[v] == UINT32_MAX)
            continue;
        x->begun[x->first[v] + 1] += prog_bytes(&f->values.data[v]);
        x->ended[x->last[v] + 1] += prog_bytes(&f->values.data[v]);
        x->of_step[x->first[v] + 1]++;
    }
    for (uint32_t i = 1; i <= n + 1; i++) {
        x->begun[i] += x->begun[i - 1];
        x->ended[i] += x->ended[i - 1];
        x->of_step[i] += x->of_step[i - 1];
    }
    uint32_t *at = arena_array(&x->tmp, uint32_t, n + 2u);
    memcpy(at, x->of_step, (n + 2u) * sizeof *at);
    for (uint32_t v = 0; v < f->values.len; v++)
        if (x->first[v] != UINT32_MAX)
            x->by_first[at[x->first[v]]++] = v;
}

/* Bytes that live while steps from..to run, without what the chain hides: its kernels make that, so it begins there. */
static uint64_t living(const stream *x, uint32_t from, uint32_t to, const prog_chain *chain)
{
    uint64_t sum = x->begun[to + 1] - x->ended[from];
    for (uint32_t i = x->of_step[from]; chain && i < x->of_step[to + 1]; i++)
        if (prog_chain_hides(&x->links, chain, x->by_first[i]))
            sum -= prog_bytes(&x->links.f->values.data[x->by_first[i]]);
    return sum;
}

static const plan_op *op_of(const stream *x, uint32_t step, uint32_t *out)
{
    for (uint32_t i = 0; i < x->problem->ops.len; i++)
        if (x->problem->ops.data[i].step == &x->links.f->steps.data[step]) {
            *out = i;
            return &x->problem->ops.data[i];
        }
    return NULL;
}

/* Without what may overlap. */
static uint64_t bytes_side_by_side(const stream *x, uint32_t link)
{
    uint32_t step = x->links.list.data[link].step, number = 0;
    const plan_op *op = op_of(x, step, &number);
    uint64_t sum = living(x, step, step, NULL);
    for (uint32_t k = 0; op && k < op->n_scratch; k++)
        sum += plan_scratch_bytes(op, k, 1);
    return sum;
}

static uint64_t saved_by(const stream *x, uint32_t link)
{
    uint32_t step = x->links.list.data[link].step, number = 0;
    uint64_t best = 0;
    if (!op_of(x, step, &number))
        return 0;
    for (uint32_t i = 0; i < x->facts.overlaps.len; i++) {
        const plan_overlap *o = &x->facts.overlaps.data[i];
        const uint64_t saved = facts_saved(&x->facts, o);
        if (o->op == number && x->last[o->from] == step && saved > best)
            best = saved;
    }
    for (uint32_t i = 0; i < x->facts.inplace.len; i++) {
        const plan_inplace *o = &x->facts.inplace.data[i];
        const uint64_t saved = x->problem->values.data[o->to].bytes;
        if (o->op == number && x->last[o->from] == step && saved > best)
            best = saved;
    }
    return best;
}

static uint64_t lines_of(const stream *x, uint32_t first, uint32_t last)
{
    uint64_t n = 0;
    for (uint32_t i = first; i <= last; i++)
        n += (uint64_t)x->links.list.data[i].lines[0].n;
    return n;
}

static uint64_t chain_bytes(const stream *x, const prog_chain *chain)
{
    return living(x, x->links.list.data[chain->first].step, x->links.list.data[chain->last].step, chain) +
           (uint64_t)chain->bytes;
}

static void add_chains(stream *x, uint32_t last)
{
    prog_chain chain;
    const char *why;
    for (uint32_t first = last; first-- > 0 && last - first < PROG_MOST_LINKS && x->links.list.data[first].ok;)
        for (int all = 0; all < 2; all++) {
            const uint64_t again = all ? UINT64_MAX : 0;
            arena_mark mark = arena_get_mark(&x->c->mem);
            if (prog_plan_chain(x->c, &x->links, first, last, again, &chain, &why)) {
                piece p = {first, last, again, chain_bytes(x, &chain),
                           COPY_COST * (uint64_t)chain.copied_again + LINE_COST * lines_of(x, first, last)};
                vec_push(&x->tmp, &x->pieces, p);
            }
            arena_reset(&x->c->mem, mark);
        }
}

/* Links keep their copies, which costs less, where the chain stays within the limit all the same, and what alignment
 * takes. */
static uint64_t spare_copies(stream *x, const piece *p, uint64_t limit)
{
    uint64_t again = p->again;
    limit -= limit / ALIGN_ROOM;
    prog_chain chain;
    const char *why;
    for (uint32_t i = 0; i <= p->last - p->first && again; i++) {
        const uint64_t fewer = again & ~(UINT64_C(1) << i);
        arena_mark mark = arena_get_mark(&x->c->mem);
        if (prog_plan_chain(x->c, &x->links, p->first, p->last, fewer, &chain, &why) &&
            chain_bytes(x, &chain) <= limit)
            again = fewer;
        arena_reset(&x->c->mem, mark);
    }
    return again;
}

static void find_pieces(stream *x, stream_bounds *b)
{
    for (uint32_t i = 0; i < x->links.list.len; i++) {
        const uint64_t all = bytes_side_by_side(x, i);
        b->one_by_one = all > b->one_by_one ? all : b->one_by_one;
        vec_push(&x->tmp, &x->pieces, ((piece){i, i, false, all - saved_by(x, i), 0}));
        if (x->links.list.data[i].ok)
            add_chains(x, i);
    }
}

/* --- cuts --- */

/* The least peak of all cuts. */
static uint64_t least_peak(stream *x)
{
    const uint32_t n = x->links.list.len;
    uint64_t *peak = arena_array(&x->tmp, uint64_t, n + 1u);
    for (uint32_t i = 1; i <= n; i++)
        peak[i] = NEVER;
    for (uint32_t i = 0; i < x->pieces.len; i++) {
        const piece *p = &x->pieces.data[i];
        uint64_t with = peak[p->first] > p->bytes ? peak[p->first] : p->bytes;
        peak[p->last + 1] = with < peak[p->last + 1] ? with : peak[p->last + 1];
    }
    return peak[n];
}

/* The cheapest cut whose pieces stay within the limit: its chains, backwards; false: there is none. Its peak: *out. */
static bool cheapest_cut(stream *x, uint64_t limit, uint32_t *chosen, uint32_t *n_chosen, uint64_t *out_peak)
{
    const uint32_t n = x->links.list.len;
    uint64_t *cost = arena_array(&x->tmp, uint64_t, n + 1u);
    uint32_t *by = arena_array(&x->tmp, uint32_t, n + 1u);
    for (uint32_t i = 1; i <= n; i++)
        cost[i] = NEVER;
    for (uint32_t i = 0; i < x->pieces.len; i++) {
        const piece *p = &x->pieces.data[i];
        if (p->bytes > limit || cost[p->first] == NEVER || cost[p->first] + p->cost >= cost[p->last + 1])
            continue;
        cost[p->last + 1] = cost[p->first] + p->cost;
        by[p->last + 1] = i;
    }
    *n_chosen = 0;
    *out_peak = 0;
    if (cost[n] == NEVER)
        return false;
    for (uint32_t at = n; at > 0; at = x->pieces.data[by[at]].first) {
        const piece *p = &x->pieces.data[by[at]];
        *out_peak = p->bytes > *out_peak ? p->bytes : *out_peak;
        if (p->last > p->first)
            chosen[(*n_chosen)++] = by[at];
    }
    return true;
}

/* NULL: an error. */
static const prog_chain *plan_chains(stream *x, const uint32_t *chosen, uint32_t n, uint64_t limit, stream_bounds *b)
{
    prog_chain *chains = arena_array(&x->c->mem, prog_chain, n + 1u);
    const char *why;
    b->chains = n;
    b->links = 0;
    b->copied_again = 0;
    for (uint32_t i = 0; i < n; i++) {
        const piece *p = &x->pieces.data[chosen[n - 1 - i]];
        const uint64_t again = spare_copies(x, p, limit);
        if (!prog_plan_chain(x->c, &x->links, p->first, p->last, again, &chains[i], &why)) {
            diag_error(&x->c->diags, DIAG_INTERNAL, src_loc_none(), "a chain of kernels is not valid any more: %s",
                       why);
            return NULL;
        }
        b->links += p->last - p->first + 1;
        b->copied_again += chains[i].copied_again;
    }
    return chains;
}

/* The plan of the same chains; NULL: they are new. */
static const plan *find_plan(const stream *x, uint32_t n, const prog_chain *chains)
{
    for (uint32_t i = 0; i < x->cuts.len; i++) {
        const cut *k = &x->cuts.data[i];
        bool same = k->n == n;
        for (uint32_t j = 0; j < n && same; j++)
            same = k->chains[j].first == chains[j].first && k->chains[j].last == chains[j].last &&
                   k->chains[j].again == chains[j].again;
        if (same)
            return k->plan;
    }
    return NULL;
}

/* --- what was reached --- */

typedef struct extent {
    uint64_t from, to;
} extent;

typedef VEC(extent) extents;

static void add_extent(arena *a, extents *list, uint64_t from, uint64_t bytes)
{
    uint32_t i = list->len;
    vec_push(a, list, ((extent){from, from + bytes}));
    for (; i > 0 && list->data[i - 1].from > from; i--)
        list->data[i] = list->data[i - 1];
    list->data[i] = (extent){from, from + bytes};
}

/* Layers of the plan in which each root is used; first > last: in none. */
static void find_layers(const plan *p, uint32_t *first, uint32_t *last)
{
    uint64_t at;
    for (uint32_t v = 0; v < p->problem->values.len; v++)
        first[v] = UINT32_MAX;
    for (uint32_t i = 0; i < p->problem->ops.len; i++) {
        const plan_op *op = &p->problem->ops.data[i];
        for (uint32_t k = 0; k < op->n_args; k++) {
            const uint32_t v = plan_root(p->problem, op->args[k], &at), layer = p->tasks[i].layer;
            const bool given = p->problem->values.data[v].from_start;
            first[v] = given ? 0 : layer < first[v] ? layer : first[v];
            last[v] = layer > last[v] ? layer : last[v];
        }
    }
}

/* Bytes of the workspace under what lives while the operator runs, and where the last of them ends. */
static uint64_t bytes_taken(stream *x, const plan *p, const uint32_t *first, const uint32_t *last, uint32_t number,
                            uint64_t *out_end)
{
    const plan_op *op = &p->problem->ops.data[number];
    const uint32_t layer = p->tasks[number].layer;
    extents list = {0};
    uint64_t sum = 0, end = 0;
    for (uint32_t v = 0; v < p->problem->values.len; v++)
        if (p->problem->values.data[v].storage == STORE_WORKSPACE && first[v] <= layer && last[v] >= layer)
            add_extent(&x->tmp, &list, p->places[v].offset, p->problem->values.data[v].bytes);
    for (uint32_t k = 0; k < op->n_scratch; k++)
        add_extent(&x->tmp, &list, p->tasks[number].scratch_offset[k],
                   plan_scratch_bytes(op, k, p->tasks[number].parts));
    for (uint32_t i = 0; i < list.len; i++) {
        const extent e = list.data[i];
        sum += e.to <= end ? 0 : e.to - (e.from > end ? e.from : end);
        end = e.to > end ? e.to : end;
    }
    *out_end = end;
    return sum;
}

/* The kernel alone that the operator is; NULL: it is a chain, or in a branch. */
static piece *piece_of(const stream *x, const plan_op *op)
{
    for (uint32_t i = 0; i < x->pieces.len; i++) {
        piece *p = &x->pieces.data[i];
        if (p->first == p->last && x->links.f->steps.data[x->links.list.data[p->first].step].args == op->args)
            return p;
    }
    return NULL;
}

/* Kernels alone that end at the plan's peak count with what they took there; `ends`: with all below it, where holes
 * were left. false: that was known. */
static bool raise_pieces(stream *x, const plan *p, bool ends)
{
    arena_mark mark = arena_get_mark(&x->tmp);
    uint32_t *first = arena_array(&x->tmp, uint32_t, p->problem->values.len + 1u);
    uint32_t *last = arena_array(&x->tmp, uint32_t, p->problem->values.len + 1u);
    bool raised = false;
    find_layers(p, first, last);
    for (uint32_t i = 0; i < p->problem->ops.len; i++) {
        uint64_t end, taken = bytes_taken(x, p, first, last, i, &end);
        piece *of = end == p->workspace_bytes ? piece_of(x, &p->problem->ops.data[i]) : NULL;
        taken = ends ? end : taken;
        if (of && taken > of->bytes) {
            of->bytes = taken;
            raised = true;
        }
    }
    arena_reset(&x->tmp, mark);
    return raised;
}

/* --- the search --- */

static uint64_t next_below(const stream *x, uint64_t peak)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < x->pieces.len; i++)
        if (x->pieces.data[i].bytes < peak && x->pieces.data[i].bytes > best)
            best = x->pieces.data[i].bytes;
    return best;
}

/* What was found so far. */
typedef struct found {
    prog_module *m;
    stream_bounds bounds;
    uint64_t ram;
    bool met; /* no need to look for more */
} found;

/* By the estimate: what the best cut takes. */
static uint64_t best_ram(const stream *x, const stream_bounds *b)
{
    return x->ram_alone - b->overlapped + b->streamed;
}

/* Plans the cheapest cut within the limit; without chains that is known. *out_peak: by the estimate; 0: no cut. */
static bool try_cut(stream *x, uint64_t limit, found *best, const plan **out_plan, uint64_t *out_peak)
{
    uint32_t *chosen = arena_array(&x->tmp, uint32_t, x->links.list.len + 1u), n = 0;
    stream_bounds now = best->bounds;
    prog_module *with;
    uint64_t ram;
    *out_plan = x->alone;
    *out_peak = 0;
    if (!cheapest_cut(x, limit, chosen, &n, out_peak) || n == 0)
        return true;
    const prog_chain *chains = plan_chains(x, chosen, n, limit, &now);
    const plan *known = chains ? find_plan(x, n, chains) : NULL;
    if (known)
        *out_plan = known;
    if (!chains || known)
        return known != NULL;
    plan *made = arena_new(&x->c->mem, plan);
    if (!prog_with_chains(x->c, &x->links, n, chains, &with) || !x->p->plan(x->p->ctx, with, made, &ram))
        return false;
    *out_plan = made;
    vec_push(&x->tmp, &x->cuts, ((cut){n, chains, made}));
    now.reached = made->workspace_bytes;
    if (ram < best->ram)
        *best = (found){with, now, ram, false};
    const bool near = now.reached <= now.streamed + now.streamed / ALIGN_ROOM;
    best->met = x->p->least || best_ram(x, &now) > x->p->ram ? near : best->ram <= x->p->ram;
    return true;
}

/* From the limit that the budget leaves downwards. */
static bool search_below(stream *x, uint64_t limit, uint32_t tries, found *best)
{
    const plan *made;
    uint64_t peak;
    for (uint32_t i = 0; i < tries && !best->met && limit > 0; i++) {
        if (!try_cut(x, limit, best, &made, &peak))
            return false;
        limit = peak > 0 ? next_below(x, peak) : 0;
    }
    return true;
}

/* From the least peak upwards; `raising`: kernels that took more than was thought count with that. */
static bool search_least(stream *x, bool raising, uint32_t tries, found *best)
{
    const plan *made;
    uint64_t peak, limit = least_peak(x);
    for (uint32_t i = 0; i < tries && !best->met; i++) {
        if (!try_cut(x, limit, best, &made, &peak))
            return false;
        if (raising && made->workspace_bytes > limit && (raise_pieces(x, made, false) || raise_pieces(x, made, true)))
            limit = least_peak(x);
        else
            limit = limit + limit / 64 + 64;
    }
    return true;
}

/* The budget is not met by `ram` bytes of workspace and tables. Effort is advised where the cuts leave room for it. */
static bool is_over(stream *x, uint64_t ram, const stream_bounds *b)
{
    const unsigned long long least = best_ram(x, b);
    diag_error(&x->c->diags, DIAG_UNSUPPORTED, src_loc_none(),
               "--ram %llu: the smallest plan that was found needs %llu bytes for workspace and tables",
               (unsigned long long)x->p->ram, (unsigned long long)ram);
    if (least > x->p->ram)
        diag_hint(&x->c->diags, "give --ram %llu, or a smaller model; docs/explanation/plan.md lists options that save "
                                "RAM", (unsigned long long)ram);
    else
        diag_hint(&x->c->diags, "a larger --plan-effort searches longer, for %llu bytes at best; "
                                "docs/explanation/plan.md lists options that save RAM", least);
    return false;
}

static bool search(stream *x, uint64_t start, prog_module **out, stream_bounds *b)
{
    const uint32_t tries = TRIES * (x->p->effort ? x->p->effort : 1);
    found best = {*out, *b, x->ram_alone, false};
    if ((!x->p->least && !search_below(x, start, tries, &best)) || !search_least(x, false, tries, &best) ||
        !search_least(x, true, tries, &best))
        return false;
    *b = best.bounds;
    *out = best.m;
    return x->p->ram == 0 || best.ram <= x->p->ram || is_over(x, best.ram, b);
}

static bool run(stream *x, prog_module *m, prog_module **out, stream_bounds *b)
{
    plan *alone = arena_new(&x->c->mem, plan);
    *b = (stream_bounds){.asked = !x->p->bounds_only};
    *out = m;
    if (b->asked && !x->p->plan(x->p->ctx, m, alone, &x->ram_alone))
        return false;
    x->alone = alone;
    b->reached = b->overlapped = alone->workspace_bytes;
    prog_func *f = prog_find(m, "main");
    prog_find_links(x->c, m, f, &x->links);
    x->problem = plan_problem_of(x->c, f, x->p->inputs_inside);
    facts_collect(&x->facts, &x->tmp, x->problem);
    find_lives(x);
    sum_lives(x);
    find_pieces(x, b);
    b->streamed = least_peak(x);
    if (!b->asked || (!x->p->least && x->ram_alone <= x->p->ram))
        return true;
    const uint64_t other = x->ram_alone - b->overlapped, left = x->p->ram > other ? x->p->ram - other : 0;
    return search(x, left > b->streamed ? left : b->streamed, out, b);
}

bool plan_stream(compiler *c, prog_module *m, const stream_planner *p, prog_module **out, stream_bounds *b)
{
    stream x = {.c = c, .p = p};
    arena_init(&x.tmp, &c->mem);
    bool ok = run(&x, m, out, b);
    arena_free(&x.tmp);
    return ok;
}
