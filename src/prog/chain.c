/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a program can run line by line, and chains of them. A step's kernel is scheduled anew, with lines
 * outermost; along which axis of its result they lie is tried, and decided by its neighbors. */
#include "prog/chain.h"
#include "te/from_graph.h"
#include "tir/build.h"

#define AXES 2u /* lines of an image: axis 1 with channels last, else 2 */

typedef struct option {
    bool ok;
    tir_lines lines;
    const char *why;
} option;

typedef struct chooser {
    compiler *c;
    prog_links *l;
    VEC(option *) options; /* of each link: AXES of them */
    int8_t *chosen;        /* -1: not yet */
} chooser;

static const prog_step *step_of(const prog_links *l, uint32_t link)
{
    return &l->f->steps.data[l->list.data[link].step];
}

/* --- loops with lines outermost --- */

static const target *line_target(compiler *c, const target *t, uint32_t axis, bool again)
{
    target *own = arena_new(&c->mem, target);
    *own = *t;
    own->workers = 1;
    own->line_axis = axis;
    own->lines_again = again;
    own->stack_limit = 0; /* what a line needs lies in the workspace, where kernels share it */
    return own;
}

static bool may_take_part(const prog_func *f, const prog_step *s, const char **why)
{
    const prog_kernel *k = s->kernel;
    *why = "it is not made by a schedule";
    if (k->by_target || k->region || k->joins || k->stacks || (!k->func && !k->node) || !k->plain)
        return false;
    *why = "a kernel of lines has one result";
    if (s->n_args != s->n_in + 1)
        return false;
    uint64_t at;
    *why = "it writes a state";
    if (f->values.data[prog_root(f, s->args[s->n_in], &at)].space == SPACE_STATE)
        return false;
    *why = "extents are known at run time";
    for (uint32_t i = 0; i < s->n_args; i++)
        if (f->values.data[s->args[i]].extent || !shape_is_static(f->values.data[s->args[i]].type.shape))
            return false;
    *why = NULL;
    return true;
}

static void find_lines(compiler *c, const prog_func *f, const prog_step *s, uint32_t axis, bool again, option *out)
{
    const prog_kernel *k = s->kernel;
    const target *t = line_target(c, k->target, axis, again);
    tir_func *loops = NULL;
    bool *flows = arena_array(&c->mem, bool, s->n_args + 1u);
    const diags_mark mark = diags_get_mark(&c->diags);
    if (!(k->func ? te_lower_func(c, k->func, k->name, t, NULL, &loops)
                  : te_lower_node(c, k->node, k->name, t, NULL, &loops))) {
        diags_reset(&c->diags, mark);
        out->why = "its schedule for lines does not apply";
        return;
    }
    for (uint32_t i = 0; i < k->literals.len; i++)
        prog_drop_param(c, loops, k->literals.data[i].param, k->literals.data[i].data);
    for (uint32_t i = 0; i < s->n_args; i++)
        flows[i] = f->values.data[s->args[i]].space != SPACE_CONSTANT;
    out->ok = loops->n_params == s->n_args && tir_find_lines(c, loops, flows, &out->lines, &out->why);
}

/* --- axes --- */

static const option *chosen(const chooser *x, uint32_t link)
{
    return x->chosen[link] < 0 ? NULL : &x->options.data[link][x->chosen[link]];
}

/* 1: what one link makes is read by the other, and lines agree; -1: they do not; 0: they have nothing in common. */
static int agree(const chooser *x, uint32_t maker, const option *w, uint32_t reader, const option *r)
{
    const prog_step *a = step_of(x->l, maker), *b = step_of(x->l, reader);
    uint64_t at;
    int sum = 0;
    for (uint32_t i = 0; i < b->n_in; i++)
        if (w->lines.axis[a->n_in] != LINES_NO_AXIS && sum >= 0 &&
            prog_root(x->l->f, b->args[i], &at) == prog_root(x->l->f, a->args[a->n_in], &at))
            sum = tir_lines_agree(w->lines.f->params[a->n_in], w->lines.axis[a->n_in], r->lines.f->params[i],
                                  r->lines.axis[i])
                      ? 1
                      : -1;
    return sum;
}

static int fits(const chooser *x, uint32_t link, const option *o)
{
    int sum = 0;
    for (uint32_t i = 0; i < x->l->list.len; i++) {
        const option *other = i == link ? NULL : chosen(x, i);
        if (other)
            sum += i < link ? agree(x, i, other, link, o) : agree(x, link, o, i, other);
    }
    return sum;
}

/* Its operator has lines along one axis, whatever is asked for. */
static bool same_axes(const tir_lines *a, const tir_lines *b)
{
    bool same = a->f->n_params == b->f->n_params;
    for (uint32_t i = 0; i < a->f->n_params && same; i++)
        same = a->axis[i] == b->axis[i];
    return same;
}

/* Operands and results that have lines. */
static int count_moving(const option *o)
{
    int n = 0;
    for (uint32_t i = 0; o->ok && i < o->lines.f->n_params; i++)
        n += o->lines.axis[i] != LINES_NO_AXIS;
    return n;
}

/* Links where one axis gives lines to more values first, then those beside them, then the first of the others. */
static void choose_axes(chooser *x)
{
    const uint32_t n = x->l->list.len;
    for (uint32_t i = 0; i < n; i++) {
        const option *o = x->options.data[i];
        const int a = count_moving(&o[0]), b = count_moving(&o[1]);
        x->chosen[i] = a != b ? b > a : -1;
    }
    for (bool any = true; any;) {
        uint32_t first = n;
        any = false;
        for (uint32_t i = 0; i < n; i++) {
            const option *o = x->options.data[i];
            if (x->chosen[i] >= 0 || !o[0].ok)
                continue;
            int a = fits(x, i, &o[0]), b = fits(x, i, &o[1]);
            first = first == n ? i : first;
            if (a <= 0 && b <= 0)
                continue;
            x->chosen[i] = b > a;
            any = true;
        }
        if (!any && first < n) {
            x->chosen[first] = 1;
            any = true;
        }
    }
}

static void note_use(const prog_links *l, uint32_t value, uint32_t first, uint32_t last)
{
    uint64_t at;
    prog_uses *u = &l->uses[prog_root(l->f, value, &at)];
    u->first = first < u->first ? first : u->first;
    u->last = last > u->last ? last : u->last;
}

static void find_uses(compiler *c, prog_links *l)
{
    prog_walk w;
    const prog_func *f = l->f;
    l->uses = arena_array(&c->mem, prog_uses, f->values.len + 1u);
    for (uint32_t i = 0; i < f->values.len; i++)
        l->uses[i].first = UINT32_MAX;
    for (uint32_t i = 0; i < f->results.len; i++)
        note_use(l, f->results.data[i].value, 0, UINT32_MAX);
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w)) {
        const bool top = s >= f->steps.data && s < f->steps.data + f->steps.len;
        const uint32_t step = top ? (uint32_t)(s - f->steps.data) : 0;
        for (uint32_t i = 0; i < s->n_args && s->kind != STEP_VIEW; i++)
            note_use(l, s->args[i], step, top ? step : UINT32_MAX);
    }
}

void prog_find_links(compiler *c, prog_module *m, prog_func *f, prog_links *out)
{
    *out = (prog_links){.m = m, .f = f};
    find_uses(c, out);
    chooser x = {.c = c, .l = out};
    for (uint32_t i = 0; i < f->steps.len; i++) {
        const prog_step *s = &f->steps.data[i];
        prog_link k = {.step = i};
        option *o = arena_array(&c->mem, option, AXES);
        if (s->kind != STEP_KERNEL)
            continue;
        bool may = may_take_part(f, s, &k.why);
        for (uint32_t a = 0; a < AXES && may; a++)
            find_lines(c, f, s, a + 1, false, &o[a]);
        if (o[0].ok && o[1].ok && same_axes(&o[0].lines, &o[1].lines))
            o[1].ok = false;
        vec_push(&c->mem, &out->list, k);
        vec_push(&c->mem, &x.options, o);
    }
    x.chosen = arena_array(&c->mem, int8_t, out->list.len + 1u);
    choose_axes(&x);
    for (uint32_t i = 0; i < out->list.len; i++) {
        prog_link *k = &out->list.data[i];
        option again = {0};
        const option *o = chosen(&x, i);
        k->ok = o && o->ok;
        k->why = o && !o->ok ? o->why : k->why ? k->why : x.options.data[i][0].why;
        if (!k->ok)
            continue;
        find_lines(c, f, step_of(out, i), (uint32_t)x.chosen[i] + 1, true, &again);
        k->lines[0] = o->lines;
        k->lines[1] = again.ok ? again.lines : o->lines;
    }
}

/* --- values of a chain --- */

typedef struct chain_maker {
    compiler *c;
    const prog_links *l;
    prog_chain *x;
    VEC(uint32_t) ids; /* of each value of the chain: the program's; of what is made in it, the root */
    const char *why;
} chain_maker;

static bool no(chain_maker *k, const char *why)
{
    k->why = why;
    return false;
}

/* A step outside of the chain, or the caller, uses the bytes of root. */
static bool is_used_outside(const prog_links *l, const prog_chain *x, uint32_t root)
{
    const prog_uses *u = &l->uses[root];
    return l->f->values.data[root].space != SPACE_WORKSPACE || u->first < l->list.data[x->first].step ||
           (u->first <= u->last && u->last > l->list.data[x->last].step);
}

static uint32_t writer_of(const prog_links *l, const prog_chain *x, uint32_t root)
{
    for (uint32_t i = x->first; i <= x->last; i++) {
        const prog_step *s = step_of(l, i);
        if (s->args[s->n_in] == root)
            return i - x->first;
    }
    return UINT32_MAX;
}

bool prog_chain_hides(const prog_links *l, const prog_chain *x, uint32_t root)
{
    return writer_of(l, x, root) != UINT32_MAX && !is_used_outside(l, x, root);
}

static bool value_of(chain_maker *k, uint32_t arg, bool is_result, const tir_buffer *b, uint32_t *out)
{
    const prog_func *f = k->l->f;
    uint64_t at;
    uint32_t root = prog_root(f, arg, &at), made = writer_of(k->l, k->x, root), id = arg;
    if (is_result && root != arg)
        return no(k, "a result lies inside of another value");
    if (made != UINT32_MAX) {
        if (at != 0 || prog_bytes(&f->values.data[root]) != prog_bytes(&f->values.data[arg]))
            return no(k, "a part of a value is read");
        id = root;
    }
    for (uint32_t i = 0; i < k->ids.len; i++)
        if (k->ids.data[i] == id) {
            *out = i;
            return true;
        }
    const bool inside = made != UINT32_MAX && prog_chain_hides(k->l, k->x, root);
    vec_push(&k->c->mem, &k->ids, id);
    vec_push(&k->c->mem, &k->x->lines.values,
             ((tir_chain_value){.param = inside ? NULL : b, .writer = made}));
    *out = k->ids.len - 1;
    return true;
}

static bool add_link(chain_maker *k, uint32_t link)
{
    const prog_step *s = step_of(k->l, link);
    const tir_lines *lines = &k->l->list.data[link].lines[k->x->again >> (link - k->x->first) & 1];
    uint32_t *value = arena_array(&k->c->mem, uint32_t, s->n_args);
    for (uint32_t i = 0; i < s->n_args; i++)
        if (!value_of(k, s->args[i], i >= s->n_in, lines->f->params[i], &value[i]))
            return false;
    vec_push(&k->c->mem, &k->x->lines.links, ((tir_link){.lines = lines, .value = value}));
    k->x->copied_again += tir_lines_copied_again(lines);
    return true;
}

/* The chain's operands, then its results: values that do not live inside. */
static void collect_args(chain_maker *k)
{
    for (int results = 0; results < 2; results++) {
        for (uint32_t i = 0; i < k->ids.len; i++) {
            const tir_chain_value *v = &k->x->lines.values.data[i];
            if (!v->param || (v->writer != UINT32_MAX) != (results == 1))
                continue;
            vec_push(&k->c->mem, &k->x->args, k->ids.data[i]);
            vec_push(&k->c->mem, &k->x->params, v->param);
        }
        k->x->n_in = results ? k->x->n_in : k->x->args.len;
    }
}

/* Nothing but kernels of the chain and views stands between first and last. */
static bool is_straight(chain_maker *k)
{
    const prog_links *l = k->l;
    for (uint32_t i = l->list.data[k->x->first].step; i <= l->list.data[k->x->last].step; i++)
        if (l->f->steps.data[i].kind != STEP_KERNEL && l->f->steps.data[i].kind != STEP_VIEW)
            return no(k, "a branch, a loop or a concatenation stands between them");
    for (uint32_t i = k->x->first; i <= k->x->last; i++)
        if (!l->list.data[i].ok)
            return no(k, l->list.data[i].why);
    return true;
}

bool prog_plan_chain(compiler *c, const prog_links *l, uint32_t first, uint32_t last, uint64_t again, prog_chain *out,
                     const char **out_why)
{
    *out = (prog_chain){.first = first, .last = last, .again = again};
    chain_maker k = {.c = c, .l = l, .x = out};
    bool ok = is_straight(&k);
    for (uint32_t i = first; i <= last && ok; i++)
        ok = add_link(&k, i);
    ok = ok && tir_chain_plan(c, &out->lines);
    *out_why = k.why ? k.why : out->lines.why;
    if (!ok)
        return false;
    out->bytes = tir_chain_bytes(&out->lines);
    collect_args(&k);
    return true;
}
