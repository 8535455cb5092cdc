/* SPDX-License-Identifier: Apache-2.0 */
/* Blockings of VTA's layers: tiles of output rows, columns and channel blocks, input channels in steps, threads. All
 * that divide are tried; what does not fit the scratchpads, cannot be transferred, or brings micro-ops on one
 * accumulator too near to each other, goes. */
#include "target/vta/rule/vta_rule.h"

#include <inttypes.h>
#include <string.h>

#include "vta_isa.h"

enum {
    LEAST_DISTANCE = 3, /* micro-ops between two of one accumulator, see vta.h of the run-time */
    MOST_UNROLLED = 2048,
    LONG = 64, /* outputs of a kernel, beside which its start is nothing */
    MOST_THREADS = 7 /* tokens of so many fit the queues of every device */
};

/* What one virtual thread keeps on the chip, and what the layer moves. */
typedef struct blocking {
    int64_t threads;
    int64_t inp, wgt, acc; /* elements on the chip, one thread */
    int64_t bytes;         /* moved from and to memory in all */
    int64_t steps;         /* in which it is moved */
    vta_loops loops;
} blocking;

/* --- what a tile reads --- */

int64_t vta_dim_reads(const vta_shape *s, const te_vta_layer *l, const vta_dim *d, int64_t t)
{
    (void)s;
    switch (l->kind) {
    case TE_VTA_CONV:
    case TE_VTA_MAX_POOL:
    case TE_VTA_SUM_POOL: return (t - 1) * d->stride + d->kernel;
    case TE_VTA_CONV_TRANSPOSE: return (t + d->kernel - 2 + d->skip) / d->stride + 1;
    case TE_VTA_UPSAMPLING: return t / d->stride;
    case TE_VTA_ELEMENTWISE:
    case TE_VTA_ADD:
    case TE_VTA_KIND_COUNT: break;
    }
    return t;
}

/* Whether tiles of t outputs start where inputs do, and every transfer brings at least one input and no more zeros than
 * an instruction can say. */
static bool is_transferable(const vta_shape *s, const te_vta_layer *l, const vta_dim *d, int64_t t)
{
    bool spread = l->kind == TE_VTA_CONV_TRANSPOSE || l->kind == TE_VTA_UPSAMPLING;
    int64_t reads = vta_dim_reads(s, l, d, t);
    if (spread && t % d->stride && t != d->outputs)
        return false;
    for (int64_t i = 0; i < d->outputs && d->before + d->after > 0; i += t) {
        int64_t start = spread ? i / d->stride : i * d->stride, end = start + reads;
        int64_t before = d->before > start ? d->before - start : 0, last = d->before + d->size;
        int64_t after = end > last ? end - last : 0;
        if (before > (int64_t)VTA_MAX_PAD || after > (int64_t)VTA_MAX_PAD || reads - before - after < 1)
            return false;
    }
    return true;
}

/* The same of the rows of a pool that takes them first: those of a phase arrive together. */
static bool rows_are_transferable(const vta_dim *r, int64_t t, int64_t phase, int64_t first, int64_t last)
{
    for (int64_t i = 0; i < r->outputs; i += t) {
        const int64_t from = (i + first) * r->stride + phase - r->before, rows = t + last - first;
        const int64_t lacks = from < 0 ? (r->stride - 1 - from) / r->stride : 0;
        const int64_t fits = from < r->size ? (r->size - 1 - from) / r->stride + 1 : 0;
        if (lacks > (int64_t)VTA_MAX_PAD || rows - fits > (int64_t)VTA_MAX_PAD || lacks >= (fits < rows ? fits : rows))
            return false;
    }
    return true;
}

static bool phases_are_transferable(const vta_dim *r, int64_t t)
{
    int64_t first, last;
    bool all = rows_are_transferable(r, t, vta_pool_home(r), 0, 0);
    for (int64_t p = 0; p < r->stride && p < r->kernel; p++)
        all &= !vta_pool_phase(r, p, &first, &last) || rows_are_transferable(r, t, p, first, last);
    return all;
}

/* --- loops of sums --- */

/* Micro-ops of a kernel whose loops have these extents, outermost first: two of several iterations are the hardware's.
 * *out_first is the first one that is not. */
static int64_t count_uops(uint32_t n, const int64_t *extents, uint32_t *out_first)
{
    uint32_t hardware = 0, i = 0;
    int64_t uops = 1;
    for (; i < n && hardware < 2; i++)
        hardware += extents[i] > 1;
    *out_first = i;
    for (; i < n; i++)
        uops *= extents[i];
    return uops;
}

static bool convolution_loops(const vta_shape *s, const te_vta_layer *l, vta_loops *out)
{
    const vta_dim *r = &s->rows, *c = &s->columns;
    int64_t spread = l->tile_co * l->tile_h;
    uint32_t first;
    *out = (vta_loops){.order = VTA_COLUMNS_OUTSIDE};
    const int64_t outside[6] = {l->tile_ci, l->tile_w, c->kernel, r->kernel, l->tile_co, l->tile_h};
    const int64_t inside[6] = {l->tile_ci, c->kernel, r->kernel, l->tile_co, l->tile_h, l->tile_w};
    out->uops = count_uops(6, outside, &first);
    if (r->kernel * c->kernel == 1 || spread >= LEAST_DISTANCE)
        return true;
    out->order = VTA_COLUMNS_INSIDE;
    out->uops = count_uops(6, inside, &first);
    out->close = spread * l->tile_w < LEAST_DISTANCE;
    return !out->close || first >= 3 || (first == 2 && r->kernel == 1);
}

/* Outputs of the unrolled part are visited in the order of its loops; two visits of one lie apart. */
static bool taps_lie_apart(const vta_shape *s, const vta_loops *o, int64_t inner, int64_t *out_taps)
{
    int64_t before[LEAST_DISTANCE - 1], n = 0;
    for (int64_t jj = 0; jj < o->columns; jj++)
        for (int64_t dj = 0; dj < s->columns.kernel; dj++)
            for (int64_t di = 0; di < s->rows.kernel; di++)
                for (int64_t ii = 0; ii < o->rows; ii++) {
                    int64_t at = jj * o->rows + ii;
                    if ((ii + di + s->rows.skip) % s->rows.stride || (jj + dj + s->columns.skip) % s->columns.stride)
                        continue;
                    for (int64_t b = 0; b < LEAST_DISTANCE - 1 && b < n; b++)
                        if (before[(n - 1 - b) % (LEAST_DISTANCE - 1)] == at && (b + 1) * inner < LEAST_DISTANCE)
                            return false;
                    before[n++ % (LEAST_DISTANCE - 1)] = at;
                }
    *out_taps = n;
    return n > 0;
}

static bool transposed_loops(const vta_shape *s, const te_vta_layer *l, vta_loops *out)
{
    const vta_dim *r = &s->rows, *c = &s->columns;
    int64_t taps, all = r->kernel * c->kernel;
    uint32_t first;
    out->close = false;
    out->columns = l->tile_w % c->stride == 0 ? c->stride : l->tile_w;
    for (int inside = 0; inside < 2; inside++)
        for (out->rows = 1; out->rows <= l->tile_h; out->rows++) {
            bool starts = l->tile_h % out->rows == 0 && (out->rows % r->stride == 0 || out->rows == l->tile_h);
            out->order = inside ? VTA_CHANNELS_INSIDE : VTA_CHANNELS_OUTSIDE;
            if (!starts || all * out->rows * out->columns > MOST_UNROLLED ||
                !taps_lie_apart(s, out, inside ? l->tile_co : 1, &taps))
                continue;
            int64_t jo = l->tile_w / out->columns, io = l->tile_h / out->rows;
            out->uops = inside ? count_uops(3, (int64_t[]){l->tile_ci, jo, io}, &first) * l->tile_co
                               : count_uops(4, (int64_t[]){l->tile_ci, jo, l->tile_co, io}, &first);
            out->uops *= taps;
            return true;
        }
    return false;
}

bool vta_loops_of(const vta_shape *s, const te_vta_layer *l, vta_loops *out)
{
    *out = (vta_loops){.uops = 1};
    if (l->kind == TE_VTA_CONV)
        return convolution_loops(s, l, out);
    if (l->kind == TE_VTA_CONV_TRANSPOSE)
        return transposed_loops(s, l, out);
    if (l->kind == TE_VTA_MAX_POOL || l->kind == TE_VTA_SUM_POOL) /* of three loops over outputs one may stay */
        out->uops = l->tile_w;
    return true;
}

/* --- costs --- */

/* Rows of a tile that a pool keeps on the chip. */
static int64_t pool_rows(const vta_shape *s, const te_vta_layer *l)
{
    int64_t first, last, all = l->tile_h;
    if (l->rows_first != 1)
        return vta_dim_reads(s, l, &s->rows, l->tile_h);
    for (int64_t p = 0; p < s->rows.stride && p < s->rows.kernel; p++)
        if (vta_pool_phase(&s->rows, p, &first, &last))
            all += l->tile_h + last - first;
    return all;
}

static blocking measure(const vta_shape *s, const te_vta_layer *l)
{
    const uint32_t *size = s->g.elem_bytes;
    int64_t high = vta_dim_reads(s, l, &s->rows, l->tile_h), wide = vta_dim_reads(s, l, &s->columns, l->tile_w);
    int64_t areas = s->rows.outputs / l->tile_h * (s->columns.outputs / l->tile_w);
    int64_t tiles = s->batches * areas * (s->out / l->tile_co);
    int64_t area = l->tile_co * l->tile_h * l->tile_w;
    int64_t channels = l->tile_ci; /* of several groups all that lie between the first and the last */
    if (s->group_out == 1 && l->groups > 1)
        channels += (l->tile_co - 1) * s->in;
    blocking b = {.threads = l->oc_threads * l->h_threads};
    int64_t bias = l->bias ? l->tile_co : 0, other = l->residual || l->kind == TE_VTA_ADD ? area : 0;
    if (s->sums) {
        b.inp = channels * high * wide;
        b.wgt = l->tile_co * l->tile_ci * s->rows.kernel * s->columns.kernel;
        b.acc = area;
        b.steps = tiles * (s->in / l->tile_ci);
        b.bytes = b.steps * (b.inp * size[VTA_MEM_INP] + b.wgt * size[VTA_MEM_WGT]);
    } else {
        const bool pool = l->kind == TE_VTA_MAX_POOL || l->kind == TE_VTA_SUM_POOL;
        int64_t data = l->tile_co * (pool ? pool_rows(s, l) : high) * wide;
        b.acc = data + (pool ? area : 0);
        b.bytes = tiles * data * size[VTA_MEM_ACC_8BIT];
    }
    b.acc += bias + other;
    b.bytes += tiles * (bias * size[VTA_MEM_ACC] + other * size[VTA_MEM_ACC_8BIT]);
    return b;
}

/* The scratchpad that is too small for the blocking; VTA_MEM_COUNT: none. */
static enum vta_mem overflow(const vta_geometry *g, const blocking *b, int64_t *need)
{
    const int64_t needs[VTA_MEM_COUNT] = {[VTA_MEM_INP] = b->inp * b->threads,
                                          [VTA_MEM_WGT] = b->wgt * b->threads,
                                          [VTA_MEM_ACC] = b->acc * b->threads,
                                          [VTA_MEM_UOP] = b->loops.uops};
    for (int m = 0; m < VTA_MEM_COUNT; m++) {
        if (needs[m] > g->depth[m]) {
            *need = needs[m] * g->elem_bytes[m];
            return (enum vta_mem)m;
        }
    }
    return VTA_MEM_COUNT;
}

/* --- the search --- */

static bool divides(int64_t tile, int64_t all)
{
    return tile >= 1 && tile <= all && all % tile == 0;
}

/* Threads divide the number of tiles, and a tile of channel blocks lies in one group or has one block of each. */
static bool is_even(const vta_shape *s, const te_vta_layer *l)
{
    return divides(l->oc_threads, s->out / l->tile_co) && divides(l->h_threads, s->rows.outputs / l->tile_h) &&
           (l->groups == 1 || s->group_out == 1 || s->group_out % l->tile_co == 0);
}

/* Steps one knob through the divisors of `all`: a given one has a single value. */
static int64_t next(int64_t given, int64_t now, int64_t all)
{
    if (given)
        return now || !divides(given, all) ? 0 : given;
    for (now++; now <= all; now++)
        if (all % now == 0)
            return now;
    return 0;
}

typedef struct search {
    const vta_shape *s;
    const te_vta_layer *given;
    int64_t threads; /* the most that are tried */
    te_vta_layer best;
    blocking what; /* of the best */
    int64_t cost[4]; /* the first that differs decides */
    bool found;
} search;

/* One thread waits for every transfer, and a pipeline for sums that lie too close: taken only where nothing else fits.
 * Then fewer bytes, then larger tiles; pools have a kernel for each tap, which is
 * better a long one. */
static void offer(search *k, const te_vta_layer *t)
{
    blocking b = measure(k->s, t);
    int64_t need;
    if (!is_even(k->s, t) || b.threads > k->threads || !vta_loops_of(k->s, t, &b.loops) ||
        overflow(&k->s->g, &b, &need) != VTA_MEM_COUNT)
        return;
    int64_t inside = b.loops.order == VTA_COLUMNS_INSIDE || b.loops.order == VTA_CHANNELS_INSIDE;
    int64_t outputs = vta_has_window(t->kind) && !k->s->sums ? t->tile_co * t->tile_h * t->tile_w : LONG;
    const int64_t cost[4] = {b.loops.close * 4 + (b.threads == 1) * 2 + inside, b.bytes, -t->tile_h * t->tile_w,
                             outputs < LONG ? -outputs : -LONG};
    int i = 0;
    while (k->found && i < 3 && cost[i] == k->cost[i])
        i++;
    if (k->found && cost[i] >= k->cost[i])
        return;
    memcpy(k->cost, cost, sizeof cost);
    k->best = *t;
    k->what = b;
    k->found = true;
}

/* Threads over blocks of output channels, or over rows; 1: none. */
static void try_threads(search *k, te_vta_layer *t, int64_t n)
{
    const te_vta_layer *l = k->given;
    for (int rows = 0; rows < 2; rows++) {
        t->oc_threads = l->oc_threads ? l->oc_threads : rows ? 1 : n;
        t->h_threads = l->h_threads ? l->h_threads : rows ? n : 1;
        offer(k, t);
    }
}

static void try_channels(search *k, te_vta_layer *t)
{
    const te_vta_layer *l = k->given;
    int64_t in = k->s->sums ? k->s->in : 1;
    for (t->tile_ci = 0; (t->tile_ci = next(l->tile_ci, t->tile_ci, in));)
        for (t->tile_co = 0; (t->tile_co = next(l->tile_co, t->tile_co, k->s->out));)
            for (int64_t n = k->threads; n >= 1; n--)
                try_threads(k, t, n);
}

/* Tries every blocking that agrees with what is given in *l, with so many threads. */
static search search_all(const vta_shape *s, const te_vta_layer *l, int64_t threads)
{
    search k = {.s = s, .given = l, .threads = threads};
    te_vta_layer t = *l;
    for (t.tile_h = 0; (t.tile_h = next(l->tile_h, t.tile_h, s->rows.outputs));) {
        if (l->rows_first == 1 ? !phases_are_transferable(&s->rows, t.tile_h)
                               : !is_transferable(s, l, &s->rows, t.tile_h))
            continue;
        for (t.tile_w = 0; (t.tile_w = next(l->tile_w, t.tile_w, s->columns.outputs));)
            if (is_transferable(s, l, &s->columns, t.tile_w))
                try_channels(&k, &t);
    }
    return k;
}

/* Whether several threads, which transfer beside the sums, are done before the one that waits. They have smaller parts
 * of the scratchpads, so that they transfer shorter rows: a fourth more for each byte. */
static bool pays(const vta_shape *s, const blocking *one, const blocking *several)
{
    enum { BYTES = 8, BEHIND = 6, STEP = 128 }; /* a cycle; cycles: behind the sums of an output, beside a step */
    const int64_t outputs = s->batches * s->out * s->rows.outputs * s->columns.outputs;
    const int64_t work = outputs * (s->in * s->rows.kernel * s->columns.kernel + BEHIND);
    const int64_t loads = several->bytes * 5 / 4 / BYTES, together = loads > work ? loads : work;
    return together + several->steps * STEP < one->bytes / BYTES + work + one->steps * STEP;
}

/* Two threads; more, where an odd number of blocks over an odd number of rows gives two nothing to share. */
static bool choose_threads(const vta_shape *s, const te_vta_layer *l, te_vta_layer *best)
{
    const bool given = l->oc_threads || l->h_threads;
    const search two = search_all(s, l, l->oc_threads > 2 || l->h_threads > 2 ? MOST_THREADS : 2);
    if (two.found && two.what.threads == 1 && s->sums && !given) {
        const search more = search_all(s, l, MOST_THREADS);
        *best = more.cost[0] < two.cost[0] && pays(s, &two.what, &more.what) ? more.best : two.best;
    } else if (two.found) {
        *best = two.best;
    }
    return two.found;
}

/* Pools take rows first where that can be and a blocking fits. */
static bool choose(const vta_shape *s, const te_vta_layer *l, te_vta_layer *best)
{
    te_vta_layer rows = *l, taps = *l;
    rows.rows_first = 1;
    taps.rows_first = l->kind == TE_VTA_MAX_POOL || l->kind == TE_VTA_SUM_POOL ? 2 : 0;
    return (vta_pool_splits(s, l) && l->rows_first != 2 && choose_threads(s, &rows, best)) ||
           (l->rows_first != 1 && choose_threads(s, &taps, best));
}

/* --- reasons --- */

/* The first given knob that cannot be; NULL: all can. */
static const char *uneven(compiler *c, const vta_shape *s, const te_vta_layer *l)
{
    int64_t rows = s->rows.outputs;
    const struct {
        const char *name;
        int64_t value, all;
        const char *of;
    } knobs[] = {{"tile_h", l->tile_h, rows, "output rows"},
                 {"tile_w", l->tile_w, s->columns.outputs, "output columns"},
                 {"tile_ci", l->tile_ci, s->sums ? s->in : 1, "input channel blocks"},
                 {"tile_co", l->tile_co, s->out, "output channel blocks"},
                 {"oc_threads", l->oc_threads, l->tile_co ? s->out / l->tile_co : s->out, "tiles of output channels"},
                 {"h_threads", l->h_threads, l->tile_h ? rows / l->tile_h : rows, "tiles of rows"}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (knobs[i].value && !divides(knobs[i].value, knobs[i].all))
            return arena_printf(&c->mem, "%s=%" PRId64 " does not divide the %" PRId64 " %s", knobs[i].name,
                                knobs[i].value, knobs[i].all, knobs[i].of);
    return NULL;
}

/* A number of outputs whose tiles can be transferred, the least one; 0: none. */
static int64_t least_tile(const vta_shape *s, const te_vta_layer *l, const vta_dim *d, int64_t given)
{
    for (int64_t t = 0; (t = next(given, t, d->outputs));)
        if (is_transferable(s, l, d, t))
            return t;
    return 0;
}

static const char *overflow_reason(compiler *c, const vta_shape *s, const te_vta_layer *l, const char *what)
{
    static const char *const names[VTA_MEM_COUNT] = {
#define X(id, text) [id] = text,
        VTA_MEMORIES(X)
#undef X
    };
    int64_t need;
    blocking b = measure(s, l);
    if (!vta_loops_of(s, l, &b.loops))
        return arena_printf(&c->mem,
                            "%s brings two micro-ops on one accumulator nearer than %d, or unrolls more than %d taps",
                            what, LEAST_DISTANCE, MOST_UNROLLED);
    enum vta_mem m = overflow(&s->g, &b, &need);
    if (m == VTA_MEM_COUNT)
        return NULL;
    return arena_printf(&c->mem, "%s needs %" PRId64 " bytes of %s memory; the device has %u", what, need, names[m],
                        s->g.depth[m] * s->g.elem_bytes[m]);
}

/* Why nothing that agrees with l fits. */
static const char *reason(compiler *c, const vta_shape *s, const te_vta_layer *l)
{
    const char *why = uneven(c, s, l);
    te_vta_layer t = *l;
    if (why)
        return why;
    t.tile_h = least_tile(s, l, &s->rows, l->tile_h);
    t.tile_w = least_tile(s, l, &s->columns, l->tile_w);
    if (!t.tile_h || !t.tile_w)
        return arena_printf(&c->mem, "every tile of %s is only padding somewhere, or padded by more than %u",
                            t.tile_h ? "columns" : "rows", VTA_MAX_PAD);
    bool given = l->tile_h && l->tile_w && l->tile_ci && l->tile_co && l->oc_threads && l->h_threads;
    t.tile_ci = l->tile_ci ? l->tile_ci : 1;
    t.tile_co = l->tile_co ? l->tile_co : 1;
    t.oc_threads = l->oc_threads ? l->oc_threads : 1;
    t.h_threads = l->h_threads ? l->h_threads : 1;
    if (t.oc_threads * t.h_threads > MOST_THREADS)
        return arena_printf(&c->mem, "%d virtual threads are the most that run side by side", MOST_THREADS);
    why = overflow_reason(c, s, &t, given ? "the blocking" : "the smallest blocking");
    return why ? why : "with these keys no blocking fits the device";
}

int64_t vta_blocks_bytes(compiler *c, const te_vta_layer *l)
{
    const vta_shape s = vta_shape_of(c, l);
    return measure(&s, l).bytes;
}

const char *vta_blocks_choose(compiler *c, te_vta_layer *l)
{
    vta_shape s = vta_shape_of(c, l);
    return choose(&s, l, l) ? NULL : reason(c, &s, l);
}

static void describe(writer *w, const te_vta_layer *l)
{
    w_fmt(w,
          "tile_h=%" PRId64 ",tile_w=%" PRId64 ",tile_ci=%" PRId64 ",tile_co=%" PRId64 ",oc_threads=%" PRId64
          ",h_threads=%" PRId64,
          l->tile_h, l->tile_w, l->tile_ci, l->tile_co, l->oc_threads, l->h_threads);
}

bool vta_blocks_check(compiler *c, te_vta_layer *l)
{
    vta_shape s = vta_shape_of(c, l);
    te_vta_layer open = *l, best;
    writer w;
    if (choose(&s, l, l))
        return true;
    bool wrong = uneven(c, &s, l) != NULL;
    diag_error(&c->diags, wrong ? DIAG_USAGE : DIAG_UNSUPPORTED, src_loc_none(), "%s: %s", te_vta_kind_name(l->kind),
               reason(c, &s, l));
    open.tile_h = open.tile_w = open.tile_ci = open.tile_co = open.oc_threads = open.h_threads = 0;
    if (!choose(&s, &open, &best))
        return false;
    writer_init(&w, &c->mem);
    describe(&w, &best);
    diag_hint(&c->diags, "this fits: %s", w.data);
    return false;
}
