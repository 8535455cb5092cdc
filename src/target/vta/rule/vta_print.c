/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for VTA as text. Convolutions are blocked as VTA's conv2d_packed is (TVM, vta/top/vta_conv2d.py): inputs and
 * weights arrive by DMA that pads; sums and everything after them stay in accumulators. Other layers load their inputs
 * into accumulators and work there. */
#include "target/vta/rule/vta_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 24 };

/* One operation of the ALU on the result of the one before: prefix, that, suffix. */
typedef struct step {
    const char *name, *prefix, *suffix;
} step;

/* A stage of a pool that takes rows first: rows of the image, or an operation. */
typedef struct pool_stage {
    const char *name, *line;
    bool loads;
} pool_stage;

typedef struct text {
    compiler *c;
    const te_vta_layer *l;
    vta_shape s;
    const char *inp, *wgt, *acc; /* types of scalars */
    const char *source;          /* the stage that the steps begin from */
    bool other;
    step steps[MOST_STEPS];
    uint32_t n;
    VEC(pool_stage) pool; /* instead of one stage for all taps */
} text;

/* Values of less than a byte stand in one each, in memory several. */
static const char *type_of(compiler *c, uint32_t bits)
{
    return arena_printf(&c->mem, "int%u", bits < 8 ? 8 : bits);
}

static int64_t in_a_byte(const vta_geometry *g, enum vta_mem m)
{
    return g->width[m] < 8 ? 8 / (int64_t)g->width[m] : 1;
}

/* --- what follows the sums --- */

static void add_step(text *t, const char *name, const char *prefix, const char *suffix)
{
    uint32_t same = 1;
    for (uint32_t i = 0; i < t->n; i++)
        same += strncmp(t->steps[i].name, name, strlen(name)) == 0;
    if (same > 1)
        name = arena_printf(&t->c->mem, "%s_%u", name, same);
    t->steps[t->n++] = (step){name, prefix, suffix};
}

static void add_number(text *t, const char *name, const char *op, int64_t v)
{
    add_step(t, name, "(", arena_printf(&t->c->mem, " %s %" PRId64 ")", op, v));
}

/* Half of what is dropped is a constant of 16 bits: of larger shifts a part comes first, which changes no result. */
static void add_shift(text *t, int64_t shift, bool half, int64_t low, int64_t high)
{
    for (; shift > 15; shift -= shift > 30 ? 15 : shift - 15)
        add_number(t, "shifted", ">>", shift > 30 ? 15 : shift - 15);
    if (shift > 0) {
        if (half)
            add_number(t, "rounded", "+", (int64_t)1 << (shift - 1));
        add_number(t, "shifted", ">>", shift);
    }
    for (; shift < 0; shift += shift < -15 ? 15 : -shift)
        add_number(t, "raised", "<<", shift < -15 ? 15 : -shift);
    if (t->l->kind == TE_VTA_MAX_POOL && t->n == 0 && low <= -128 && high >= 127)
        return; /* the largest of some inputs is one of them */
    add_step(t, "least", "max(", arena_printf(&t->c->mem, ", %" PRId64 ")", low));
    add_step(t, "most", "min(", arena_printf(&t->c->mem, ", %" PRId64 ")", high));
}

static void add_other(text *t)
{
    for (int64_t a = t->l->shift_a; a > 0; a -= a > 15 ? 15 : a)
        add_number(t, "raised", "<<", a > 15 ? 15 : a);
    add_step(t, "summed", "(",
             arena_printf(&t->c->mem, " + (%s*)%s[i0, i1, i2, i3, i4, i5])", t->acc,
                          t->l->shift_b ? "other_raised" : "other_buf"));
}

static void find_steps(text *t)
{
    const te_vta_layer *l = t->l;
    if (l->bias)
        add_step(t, "biased", "(", arena_printf(&t->c->mem, " + (%s*)bias_buf[i1, i4, i5])", t->acc));
    if (l->kind == TE_VTA_ADD)
        add_other(t);
    if (l->mul)
        add_step(t, "scaled", "(", arena_printf(&t->c->mem, "*%" PRId64 ")", l->mul));
    add_shift(t, l->shift, l->half, l->low, l->high);
    if (l->residual) {
        add_other(t);
        add_shift(t, l->sum_shift, true, l->sum_low, l->sum_high);
    }
}

/* --- computation --- */

static const char *axes(const text *t, int64_t channels, int64_t rows, int64_t columns)
{
    return arena_printf(&t->c->mem,
                        "[i0: %" PRId64 ", i1: %" PRId64 ", i2: %" PRId64 ", i3: %" PRId64 ", i4: %u, i5: %u]",
                        t->s.batches, channels, rows, columns, t->s.g.batch, t->s.g.block_out);
}

/* (i*stride + d), with a shift in transposed convolutions. */
static const char *index_of(const text *t, const char *i, int64_t stride, const char *d, int64_t skip)
{
    const char *from = stride > 1 ? arena_printf(&t->c->mem, "(%s*%" PRId64 ")", i, stride) : i;
    const char *sum = arena_printf(&t->c->mem, "(%s + %s)", from, d);
    return skip ? arena_printf(&t->c->mem, "(%s + %" PRId64 ")", sum, skip) : sum;
}

/* The inputs with zeros around them, in the scratchpad that the layer reads them from. */
static void print_data(const text *t, writer *w)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    int64_t high = r->size + r->before + r->after, wide = c->size + c->before + c->after;
    const char *rows = r->before ? arena_printf(&t->c->mem, "(y - %" PRId64 ")", r->before) : "y";
    const char *columns = c->before ? arena_printf(&t->c->mem, "(x - %" PRId64 ")", c->before) : "x";
    const char *value = arena_printf(&t->c->mem, "(%s*)data[n, c, %s, %s, b, l]", t->inp, rows, columns);
    if (!t->s.sums)
        value = arena_printf(&t->c->mem, "cast(%s, %s)", t->acc, value);
    w_fmt(w, "compute data_buf: %s[n: %" PRId64 ", c: %" PRId64 ", y: %" PRId64 ", x: %" PRId64 ", b: %u, l: %u] = ",
          t->s.sums ? t->inp : t->acc, t->s.batches, t->s.in * t->l->groups, high, wide, t->s.g.batch, t->s.g.block_in);
    if (high > r->size || wide > c->size)
        w_fmt(w,
              "select((((y >= %" PRId64 ") && (y < %" PRId64 ")) && ((x >= %" PRId64 ") && (x < %" PRId64 "))), %s, "
              "0)\n",
              r->before, r->size + r->before, c->before, c->size + c->before, value);
    else
        w_line(w, "%s", value);
}

/* --- pools: rows of each column, then columns --- */

static void add_pool_stage(text *t, bool loads, const char *name, const char *line)
{
    const pool_stage s = {name, line, loads};
    vec_push(&t->c->mem, &t->pool, s);
}

/* Rows phase, phase + stride, ... of the padded image, n of them. */
static void add_rows(text *t, const char *name, int64_t phase, int64_t n)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    arena *a = &t->c->mem;
    const int64_t wide = c->size + c->before + c->after, least = (r->before - phase + r->stride - 1) / r->stride;
    const int64_t most = (r->before + r->size - phase + r->stride - 1) / r->stride; /* the first behind the image */
    const int64_t at = phase - r->before;
    const char *y = r->stride > 1 ? arena_printf(a, "(y*%" PRId64 ")", r->stride) : "y";
    const char *x = c->before ? arena_printf(a, "(x - %" PRId64 ")", c->before) : "x";
    if (at)
        y = arena_printf(a, "(%s %c %" PRId64 ")", y, at < 0 ? '-' : '+', at < 0 ? -at : at);
    const char *value = arena_printf(a, "cast(%s, (%s*)data[n, c, %s, %s, b, l])", t->acc, t->inp, y, x);
    if (phase < r->before || n > most || wide > c->size)
        value = arena_printf(a,
                             "select((((y >= %" PRId64 ") && (y < %" PRId64 ")) && ((x >= %" PRId64 ") && (x < %" PRId64
                             "))), %s, 0)",
                             phase < r->before ? least : 0, most, c->before, c->before + c->size, value);
    add_pool_stage(t, true, name,
                   arena_printf(a, "%s[n: %" PRId64 ", c: %" PRId64 ", y: %" PRId64 ", x: %" PRId64
                                   ", b: %u, l: %u] = %s",
                                t->acc, t->s.batches, t->s.in, n, wide, t->s.g.batch, t->s.g.block_in, value));
}

/* The stage `before` at its own element, and `from` at another one. */
static const char *add_tap(text *t, const char *name, int64_t number, const char *all, const char *before,
                           const char *from, const char *y, const char *x)
{
    arena *a = &t->c->mem;
    const bool max = t->l->kind == TE_VTA_MAX_POOL;
    name = number ? arena_printf(a, "%s_%" PRId64, name, number + 1) : name;
    add_pool_stage(t, false, name,
                   arena_printf(a, "%s%s = %s(%s*)%s[i0, i1, i2, i3, i4, i5]%s (%s*)%s[i0, i1, %s, %s, i4, i5])",
                                t->acc, all, max ? "max(" : "(", t->acc, before, max ? "," : " +", t->acc, from, y, x));
    return name;
}

static const char *add_rows_first(text *t)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    const int64_t home = vta_pool_home(r), least = t->l->kind == TE_VTA_MAX_POOL && !t->l->positive ? -128 : 0;
    const char *last = "home", *all = axes(t, t->s.out, r->outputs, c->size + c->before + c->after);
    int64_t n = 0, first, end;
    arena *a = &t->c->mem;
    add_rows(t, last, home, r->outputs);
    for (int64_t p = 0; p < r->stride && p < r->kernel; p++) {
        if (!vta_pool_phase(r, p, &first, &end))
            continue;
        const char *rows = arena_printf(a, "rows_%" PRId64, p);
        add_rows(t, rows, p, r->outputs + end);
        for (int64_t i = p; i < r->kernel; i += r->stride)
            if (i != home)
                last = add_tap(t, "tall", n++, all, last, rows,
                               i == p ? "i2" : arena_printf(a, "(i2 + %" PRId64 ")", i / r->stride), "i3");
    }
    if (c->kernel == 1 && c->stride == 1)
        return last;
    const char *tall = last;
    all = axes(t, t->s.out, r->outputs, c->outputs);
    add_pool_stage(t, false, last = "start", arena_printf(a, "%s%s = %" PRId64, t->acc, all, least));
    for (int64_t i = 0; i < c->kernel; i++) {
        const char *x = c->stride > 1 ? arena_printf(a, "(i3*%" PRId64 ")", c->stride) : "i3";
        x = i ? arena_printf(a, "(%s + %" PRId64 ")", x, i) : x;
        last = add_tap(t, "wide", i, all, last, tall, "i2", x);
    }
    return last;
}

/* The inputs of a transposed convolution with zeros between them; never stored. */
static void print_spread(const text *t, writer *w)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    w_fmt(w,
          "compute spread: %s[n: %" PRId64 ", c: %" PRId64 ", h: %" PRId64 ", w: %" PRId64 ", b: %u, l: %u] = "
          "select(((floormod(h, %" PRId64 ") == 0) && (floormod(w, %" PRId64 ") == 0)), "
          "(%s*)data_buf[n, c, floordiv(h, %" PRId64 "), floordiv(w, %" PRId64 "), b, l], 0)\n",
          t->inp, t->s.batches, t->s.in * t->l->groups, r->outputs + r->kernel - 1 + r->skip,
          c->outputs + c->kernel - 1 + c->skip, t->s.g.batch, t->s.g.block_in, r->stride, c->stride, t->inp, r->stride,
          c->stride);
}

static const char *channel_of(const text *t)
{
    const char *group = "co";
    if (t->l->groups == 1)
        return "ko";
    if (t->s.group_out > 1)
        group = arena_printf(&t->c->mem, "floordiv(co, %" PRId64 ")", t->s.group_out);
    if (t->s.in > 1)
        group = arena_printf(&t->c->mem, "(%s*%" PRId64 ")", group, t->s.in);
    return arena_printf(&t->c->mem, "(%s + ko)", group);
}

static void print_sums(const text *t, writer *w)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    bool transposed = t->l->kind == TE_VTA_CONV_TRANSPOSE;
    w_fmt(w,
          "compute conv: %s[bo: %" PRId64 ", co: %" PRId64 ", i: %" PRId64 ", j: %" PRId64
          ", bi: %u, ci: %u] reduce[ko: %" PRId64 ", di: %" PRId64 ", dj: %" PRId64
          ", ki: %u] sum = (cast(%s, (%s*)%s[bo, %s, %s, %s, bi, ki])*cast(%s, (%s*)kernel_buf[co, ko, di, dj, ci, "
          "ki]))\n",
          t->acc, t->s.batches, t->s.out, r->outputs, c->outputs, t->s.g.batch, t->s.g.block_out, t->s.in, r->kernel,
          c->kernel, t->s.g.block_in, t->acc, t->inp, transposed ? "spread" : "data_buf", channel_of(t),
          index_of(t, "i", transposed ? 1 : r->stride, "di", r->skip),
          index_of(t, "j", transposed ? 1 : c->stride, "dj", c->skip), t->acc, t->wgt);
}

static void print_pool(const text *t, writer *w)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    bool max = t->l->kind == TE_VTA_MAX_POOL;
    const char *y = index_of(t, "i2", r->stride, "di", 0), *x = index_of(t, "i3", c->stride, "dj", 0);
    w_fmt(w, "compute pool: %s%s reduce[di: %" PRId64 ", dj: %" PRId64 "] %s = (%s*)data_buf[i0, i1, %s, %s, i4, i5]",
          t->acc, axes(t, t->s.out, r->outputs, c->outputs), r->kernel, c->kernel, max ? "max" : "sum", t->acc, y, x);
    if (max && r->before + r->after + c->before + c->after > 0) /* zeros around the image are no values of it */
        w_fmt(w, " where (((%s >= %" PRId64 ") && (%s < %" PRId64 ")) && ((%s >= %" PRId64 ") && (%s < %" PRId64 ")))",
              y, r->before, y, r->before + r->size, x, c->before, x, c->before + c->size);
    w_str(w, "\n");
}

static void print_inputs(const text *t, writer *w)
{
    const vta_geometry *g = &t->s.g;
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    w_fmt(w, "placeholder data: %s[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %u, %u]\n", t->inp, t->s.batches,
          t->s.in * t->l->groups, r->size, c->size, g->batch, g->block_in);
    if (t->s.sums)
        w_fmt(w, "placeholder kernel: %s[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %u, %" PRId64 "]\n",
              t->wgt, t->s.out, t->s.in, r->kernel, c->kernel, g->block_out, g->block_in / in_a_byte(g, VTA_MEM_WGT));
    if (t->l->bias)
        w_fmt(w, "placeholder bias: %s[%" PRId64 ", %u, %u]\n", t->acc, t->s.out, g->batch, g->block_out);
    if (t->other)
        w_fmt(w, "placeholder other: %s[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %u, %u]\n", t->inp,
              t->s.batches, t->s.out, r->outputs, c->outputs, g->batch, g->block_out);
}

/* A weight in memory: of less than a byte, the first in the low bits, its sign made by shifts. */
static const char *weight_of(const text *t)
{
    int64_t width = t->s.g.width[VTA_MEM_WGT], n = in_a_byte(&t->s.g, VTA_MEM_WGT);
    if (n == 1)
        return arena_printf(&t->c->mem, "(%s*)kernel[o, c, y, x, k, l]", t->wgt);
    return arena_printf(&t->c->mem,
                        "(((%s*)kernel[o, c, y, x, k, floordiv(l, %" PRId64 ")] << cast(%s, (%" PRId64
                        " - (floormod(l, %" PRId64 ")*%" PRId64 ")))) >> %" PRId64 ")",
                        t->wgt, n, t->wgt, 8 - width, n, width, 8 - width);
}

static void print_loads(const text *t, writer *w)
{
    const vta_geometry *g = &t->s.g;
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    if (t->pool.len == 0)
        print_data(t, w);
    if (t->l->kind == TE_VTA_CONV_TRANSPOSE)
        print_spread(t, w);
    if (t->s.sums)
        w_fmt(w,
              "compute kernel_buf: %s[o: %" PRId64 ", c: %" PRId64 ", y: %" PRId64 ", x: %" PRId64
              ", k: %u, l: %u] = %s\n",
              t->wgt, t->s.out, t->s.in, r->kernel, c->kernel, g->block_out, g->block_in, weight_of(t));
    if (t->l->bias)
        w_fmt(w, "compute bias_buf: %s[o: %" PRId64 ", b: %u, l: %u] = (%s*)bias[o, b, l]\n", t->acc, t->s.out,
              g->batch, g->block_out, t->acc);
    if (!t->other)
        return;
    const char *all = axes(t, t->s.out, r->outputs, c->outputs);
    w_fmt(w, "compute other_buf: %s%s = cast(%s, (%s*)other[i0, i1, i2, i3, i4, i5])\n", t->acc, all, t->acc, t->inp);
    if (t->l->shift_b)
        w_fmt(w, "compute other_raised: %s%s = ((%s*)other_buf[i0, i1, i2, i3, i4, i5] << %" PRId64 ")\n", t->acc, all,
              t->acc, t->l->shift_b);
}

static void print_steps(const text *t, writer *w)
{
    const vta_dim *r = &t->s.rows, *c = &t->s.columns;
    bool repeated = t->l->kind == TE_VTA_UPSAMPLING;
    const char *before = t->source, *last = "i2, i3";
    const char *all = axes(t, t->s.out, repeated ? r->size : r->outputs, repeated ? c->size : c->outputs);
    for (uint32_t i = 0; i < t->n; i++) {
        w_fmt(w, "compute %s: %s%s = %s(%s*)%s[i0, i1, i2, i3, i4, i5]%s\n", t->steps[i].name, t->acc, all,
              t->steps[i].prefix, t->acc, before, t->steps[i].suffix);
        before = t->steps[i].name;
    }
    if (repeated)
        last = arena_printf(&t->c->mem, "floordiv(i2, %" PRId64 "), floordiv(i3, %" PRId64 ")", r->stride, c->stride);
    w_fmt(w, "compute res: %s%s = cast(%s, (%s*)%s[i0, i1, %s, i4, i5])\nreturn res\n", t->inp,
          axes(t, t->s.out, r->outputs, c->outputs), t->inp, t->acc, before, last);
}

/* --- schedule --- */

/* The loops of the result: a tile of it is stored by one transfer; everything else is made per tile. */
static void print_tiles(const text *t, writer *w)
{
    const te_vta_layer *l = t->l;
    const char *co = "co0", *h = "h0", *thread = "", *inner = "h1 w1";
    w_fmt(w, "split res.i1 %" PRId64 " -> co0 co1\n", l->tile_co);
    w_fmt(w, "split res.i2 %" PRId64 " -> h0 h1\n", l->tile_h);
    w_fmt(w, "split res.i3 %" PRId64 " -> w0 w1\n", l->tile_w);
    if (l->oc_threads > 1) {
        w_fmt(w, "split res.co0 %" PRId64 " -> coo vt\n", l->oc_threads);
        co = "coo", thread = "vt ";
    } else if (l->h_threads > 1) {
        w_fmt(w, "split res.h0 %" PRId64 " -> ho vt\n", l->h_threads);
        h = "ho", thread = "vt ";
    }
    if (l->kind == TE_VTA_UPSAMPLING) { /* a transfer for each place of a pixel among its copies */
        w_fmt(w, "split res.h1 %" PRId64 " -> h1o h1i\nsplit res.w1 %" PRId64 " -> w1o w1i\n", l->stride, l->stride_w);
        w_fmt(w, "reorder res: %si0 %s %s w0 h1i w1i co1 h1o w1o i4 i5\n", thread, h, co);
    } else {
        w_fmt(w, "reorder res: %si0 %s %s w0 co1 %s i4 i5\n", thread, h, co, inner);
    }
    if (*thread)
        w_str(w, "vthread res.vt\n");
}

static void print_sum_loops(const text *t, writer *w)
{
    static const char *const orders[] = {
        [VTA_COLUMNS_OUTSIDE] = "bo ko0 ko1 j dj di co i bi ci ki",
        [VTA_COLUMNS_INSIDE] = "bo ko0 ko1 dj di co i j bi ci ki",
        [VTA_CHANNELS_OUTSIDE] = "bo ko0 ko1 jo co io jj dj di ii bi ci ki",
        [VTA_CHANNELS_INSIDE] = "bo ko0 ko1 jo io jj dj di ii co bi ci ki",
    };
    vta_loops o;
    (void)vta_loops_of(&t->s, t->l, &o); /* the plan found them */
    w_fmt(w, "split conv.ko %" PRId64 " -> ko0 ko1\n", t->l->tile_ci);
    if (t->l->kind == TE_VTA_CONV_TRANSPOSE)
        w_fmt(w, "split conv.i %" PRId64 " -> io ii\nsplit conv.j %" PRId64 " -> jo jj\n", o.rows, o.columns);
    w_fmt(w, "reorder conv: %s\n", orders[o.order]);
    if (t->l->kind == TE_VTA_CONV_TRANSPOSE)
        w_str(w, "unroll conv.jj\nunroll conv.dj\nunroll conv.di\nunroll conv.ii\ncompute_inline spread\n");
    w_str(w, "compute_at data_buf at conv.ko0\n"
             "compute_at kernel_buf at conv.ko0\n"
             "set_scope data_buf local.inp_buffer\n"
             "set_scope kernel_buf local.wgt_buffer\n"
             "set_scope conv local.acc_buffer\n");
}

static void print_source(const text *t, writer *w)
{
    if (t->s.sums) {
        print_sum_loops(t, w);
        return;
    }
    for (uint32_t i = 0; i < t->pool.len; i++) {
        const char *name = t->pool.data[i].name;
        w_fmt(w, "compute_at %s at res.w0\nset_scope %s local.acc_buffer\n", name, name);
    }
    if (t->pool.len > 0)
        return;
    if (t->source[0] == 'p')
        w_str(w, "reorder pool: i0 di dj i1 i2 i3 i4 i5\n"
                 "set_scope pool local.acc_buffer\n");
    w_str(w, "compute_at data_buf at res.w0\n"
             "set_scope data_buf local.acc_buffer\n");
}

static void print_schedule(const text *t, writer *w)
{
    bool raised = t->other && t->l->shift_b;
    print_tiles(t, w);
    if (t->source[0] != 'd' && t->pool.len == 0)
        w_line(w, "compute_at %s at res.w0", t->source);
    for (uint32_t i = 0; i < t->n; i++)
        w_line(w, "compute_at %s at res.w0", t->steps[i].name);
    if (t->l->bias)
        w_str(w, "compute_at bias_buf at res.w0\n");
    if (t->other)
        w_fmt(w, "%scompute_at other_buf at res.w0\n", raised ? "compute_at other_raised at res.w0\n" : "");
    print_source(t, w);
    if (t->l->bias)
        w_str(w, "set_scope bias_buf local.acc_buffer\n");
    if (t->other)
        w_fmt(w, "set_scope other_buf local.acc_buffer\n%s", raised ? "set_scope other_raised local.acc_buffer\n" : "");
    for (uint32_t i = 0; i < t->n; i++)
        w_line(w, "set_scope %s local.acc_buffer", t->steps[i].name);
    for (uint32_t i = 0; i < t->pool.len; i++)
        w_fmt(w, "pragma %s.%s 1\n", t->pool.data[i].name, t->pool.data[i].loads ? "n \"dma_copy\"" : "i0 \"alu\"");
    if (t->pool.len == 0)
        w_str(w, "pragma data_buf.n \"dma_copy\" 1\n");
    if (t->s.sums)
        w_str(w, "pragma kernel_buf.o \"dma_copy\" 1\n");
    if (t->l->bias)
        w_str(w, "pragma bias_buf.o \"dma_copy\" 1\n");
    if (t->other)
        w_fmt(w, "pragma other_buf.i0 \"dma_copy\" 1\n%s", raised ? "pragma other_raised.i0 \"alu\" 1\n" : "");
    if (t->source[0] == 'p' && t->pool.len == 0)
        w_str(w, "pragma pool.i1 \"alu\" 1\n");
    for (uint32_t i = 0; i < t->n; i++)
        w_line(w, "pragma %s.i0 \"alu\" 1", t->steps[i].name);
    w_str(w, "pragma res.co1 \"dma_copy\" 1\n");
    if (t->l->kind == TE_VTA_CONV)
        w_str(w, "tensorize conv.bi vta_gemm\n");
    if (t->l->kind == TE_VTA_CONV_TRANSPOSE)
        w_str(w, "pragma conv.bi \"conv2d_transpose_gemm\" 1\n");
}

void te_vta_layer_print(compiler *c, const te_vta_layer *layer, writer *computation, writer *schedule)
{
    text t = {.c = c, .l = layer, .s = vta_shape_of(c, layer)};
    bool pool = layer->kind == TE_VTA_MAX_POOL || layer->kind == TE_VTA_SUM_POOL;
    t.inp = type_of(c, t.s.g.width[VTA_MEM_INP]);
    t.wgt = type_of(c, t.s.g.width[VTA_MEM_WGT]);
    t.acc = type_of(c, t.s.g.width[VTA_MEM_ACC]);
    t.other = layer->residual || layer->kind == TE_VTA_ADD;
    t.source = t.s.sums ? "conv" : pool ? "pool" : "data_buf";
    if (pool && layer->rows_first == 1)
        t.source = add_rows_first(&t);
    find_steps(&t);
    print_inputs(&t, computation);
    print_loads(&t, computation);
    if (t.s.sums)
        print_sums(&t, computation);
    if (pool && t.pool.len == 0)
        print_pool(&t, computation);
    for (uint32_t i = 0; i < t.pool.len; i++)
        w_line(computation, "compute %s: %s", t.pool.data[i].name, t.pool.data[i].line);
    print_steps(&t, computation);
    print_schedule(&t, schedule);
}
