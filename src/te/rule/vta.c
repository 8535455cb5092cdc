/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked convolution of VTA's conv2d_packed (TVM, vta/top/vta_conv2d.py): output tiles of rows, columns and
 * channel blocks; input channels in steps; two virtual threads over output channels or rows; inputs and weights arrive
 * by DMA that pads; sums and everything after them stay in accumulators. */
#include "te/rule/vta.h"

#include "base/nearest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "type/vta_text.h"
#include "vta_isa.h"

#define LEAST_DISTANCE 3 /* micro-ops between two of one accumulator, see vta.h */

/* What one virtual thread keeps on the chip and what the layer moves, in elements. */
typedef struct blocking {
    int64_t threads;
    int64_t inp, wgt, acc; /* on the chip, one thread */
    int64_t uops;          /* of the GEMM kernel */
    int64_t bytes;         /* moved from and to memory in all */
} blocking;

static int64_t outputs(const te_vta_conv *l, int64_t size)
{
    return (size + 2 * l->pad - l->kernel) / l->stride + 1;
}

int64_t te_vta_conv_rows(const te_vta_conv *l)
{
    return outputs(l, l->height);
}

int64_t te_vta_conv_columns(const te_vta_conv *l)
{
    return outputs(l, l->width);
}

static vta_geometry geometry_of(compiler *c)
{
    vta_geometry g;
    const char *why;
    (void)vta_config_derive(vta_text_config(c), &g, &why); /* was checked when it was read */
    return g;
}

/* --- text --- */

bool te_vta_conv_parse(compiler *c, const char *text, te_vta_conv *out)
{
    static const struct {
        const char *name;
        size_t at;
    } keys[] = {
#define X(key, value, help) {#key, offsetof(te_vta_conv, key)},
        TE_VTA_CONV_KEYS(X)
#undef X
    };
#define X(key, value, help) .key = value,
    te_vta_conv standard = {TE_VTA_CONV_KEYS(X)};
#undef X
    *out = standard;
    while (*text) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,"), k = 0;
        char *end = NULL;
        while (k < sizeof keys / sizeof *keys &&
               (strlen(keys[k].name) != name || strncmp(keys[k].name, text, name) != 0))
            k++;
        long long v = name < len ? strtoll(text + name + 1, &end, 10) : 0;
        bool good =
            k < sizeof keys / sizeof *keys && end == text + len && len > name + 1 && v >= -(1 << 20) && v <= 1 << 20;
        if (!good) {
            writer w;
            writer_init(&w, &c->mem);
            nearest near = nearest_to(text, name);
            for (k = 0; k < sizeof keys / sizeof *keys; k++) {
                nearest_offer(&near, keys[k].name);
                w_fmt(&w, "%s%s=%" PRId64, k ? "," : "", keys[k].name, *(int64_t *)((char *)&standard + keys[k].at));
            }
            diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%.*s' says nothing about a convolution",
                       (int)(len < 60 ? len : 60), text);
            diag_hint(&c->diags, "%sKEY=NUMBER,...; what is not given: %s",
                      near.distance ? nearest_question(&near, "", &c->mem) : "", w.data);
            return false;
        }
        *(int64_t *)((char *)out + keys[k].at) = v;
        text += len + (text[len] == ',');
    }
    return true;
}

/* --- checks --- */

static bool refuse(compiler *c, const char *what)
{
    return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "convolution: %s", what);
}

static bool check_layer(compiler *c, const vta_geometry *g, te_vta_conv *l)
{
    int64_t lanes = g->block_in;
    if (l->batch == 0)
        l->batch = g->batch;
    if (l->width == 0)
        l->width = l->height;
    if (l->pad == -1)
        l->pad = l->kernel / 2;
    if (l->height < 1 || l->width < 1 || l->in_channels < 1 || l->out_channels < 1 || l->kernel < 1 || l->stride < 1 ||
        l->batch < 1)
        return refuse(c, "sizes must be positive");
    if (l->pad < 0 || l->pad > (int64_t)VTA_MAX_PAD)
        return refuse(c, "pad must lie between 0 and 15");
    if (te_vta_conv_rows(l) < 1 || te_vta_conv_columns(l) < 1 || l->height + 2 * l->pad < l->kernel ||
        l->width + 2 * l->pad < l->kernel)
        return refuse(c, "the kernel is larger than the padded input");
    if (l->in_channels % lanes || l->out_channels % lanes || l->batch % (int64_t)g->batch)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "convolution: %" PRId64 " images, %" PRId64 " to %" PRId64
                          " channels: the device takes multiples of %u and %" PRId64,
                          l->batch, l->in_channels, l->out_channels, g->batch, lanes);
    if (l->shift < 0 || l->shift > 15 || l->low < INT16_MIN || l->high > INT16_MAX || l->low > l->high)
        return refuse(c, "shift must lie between 0 and 15, low and high within 16 bits");
    return true;
}

/* --- blockings --- */

static blocking measure(const vta_geometry *g, const te_vta_conv *l)
{
    int64_t lanes = g->block_in, in = l->in_channels / lanes, out = l->out_channels / lanes;
    int64_t rows = te_vta_conv_rows(l), columns = te_vta_conv_columns(l);
    int64_t tiles = l->batch / (int64_t)g->batch * (rows / l->tile_h) * (columns / l->tile_w) * (out / l->tile_co);
    int64_t high = (l->tile_h - 1) * l->stride + l->kernel, wide = (l->tile_w - 1) * l->stride + l->kernel;
    blocking b = {.threads = l->oc_threads * l->h_threads};
    b.inp = l->tile_ci * high * wide;
    b.wgt = l->tile_co * l->tile_ci * l->kernel * l->kernel;
    b.acc = l->tile_co * l->tile_h * l->tile_w + (l->bias ? l->tile_co : 0);
    b.uops = l->kernel * l->tile_co * l->tile_h * l->tile_ci;
    b.bytes = tiles * (in / l->tile_ci) * (b.inp * g->elem_bytes[VTA_MEM_INP] + b.wgt * g->elem_bytes[VTA_MEM_WGT]);
    b.bytes += tiles * (l->bias ? l->tile_co : 0) * g->elem_bytes[VTA_MEM_ACC];
    return b;
}

/* The scratchpad that is too small for the blocking; VTA_MEM_COUNT: none. */
static enum vta_mem overflow(const vta_geometry *g, const blocking *b, int64_t *need)
{
    const int64_t needs[VTA_MEM_COUNT] = {[VTA_MEM_INP] = b->inp * b->threads,
                                          [VTA_MEM_WGT] = b->wgt * b->threads,
                                          [VTA_MEM_ACC] = b->acc * b->threads,
                                          [VTA_MEM_UOP] = b->uops};
    for (int m = 0; m < VTA_MEM_COUNT; m++) {
        if (needs[m] > g->depth[m]) {
            *need = needs[m] * g->elem_bytes[m];
            return (enum vta_mem)m;
        }
    }
    return VTA_MEM_COUNT;
}

/* The sums of one output lie LEAST_DISTANCE micro-ops apart unless one of them is all there is. */
static bool keeps_distance(const te_vta_conv *l)
{
    return l->kernel == 1 || l->tile_co * l->tile_h >= LEAST_DISTANCE;
}

static bool divides(int64_t tile, int64_t all)
{
    return tile >= 1 && tile <= all && all % tile == 0;
}

/* Tiles divide, and threads divide the number of tiles. */
static bool is_even(const vta_geometry *g, const te_vta_conv *l)
{
    int64_t lanes = g->block_in;
    return divides(l->tile_h, te_vta_conv_rows(l)) && divides(l->tile_w, te_vta_conv_columns(l)) &&
           divides(l->tile_ci, l->in_channels / lanes) && divides(l->tile_co, l->out_channels / lanes) &&
           divides(l->oc_threads, l->out_channels / lanes / l->tile_co) &&
           divides(l->h_threads, te_vta_conv_rows(l) / l->tile_h);
}

/* Steps one knob through the divisors of `all`: a given one has a single value. */
static int64_t next(int64_t given, int64_t now, int64_t all)
{
    if (given)
        return now ? 0 : given;
    for (now++; now <= all; now++)
        if (all % now == 0)
            return now;
    return 0;
}

/* Tries every blocking that agrees with what is given in *l. Fewer bytes, then fewer tiles, win. */
static bool choose(const vta_geometry *g, const te_vta_conv *l, te_vta_conv *best)
{
    int64_t lanes = g->block_in, least = INT64_MAX, need;
    te_vta_conv t = *l;
    for (t.tile_h = 0; (t.tile_h = next(l->tile_h, t.tile_h, te_vta_conv_rows(l)));)
        for (t.tile_w = 0; (t.tile_w = next(l->tile_w, t.tile_w, te_vta_conv_columns(l)));)
            for (t.tile_ci = 0; (t.tile_ci = next(l->tile_ci, t.tile_ci, l->in_channels / lanes));)
                for (t.tile_co = 0; (t.tile_co = next(l->tile_co, t.tile_co, l->out_channels / lanes));)
                    for (int threads = 0; threads < 3; threads++) {
                        t.oc_threads = l->oc_threads ? l->oc_threads : threads == 0 ? 2 : 1;
                        t.h_threads = l->h_threads ? l->h_threads : threads == 1 ? 2 : 1;
                        bool known = l->oc_threads && l->h_threads;
                        blocking b = measure(g, &t);
                        if (!is_even(g, &t) || !keeps_distance(&t) || t.oc_threads * t.h_threads > 2 ||
                            overflow(g, &b, &need) != VTA_MEM_COUNT || (known && threads > 0))
                            continue;
                        /* one thread waits for every transfer: taken only where nothing else fits */
                        int64_t cost = b.threads == 1 ? b.bytes + INT64_MAX / 4 : b.bytes;
                        if (cost < least || (cost == least && t.tile_h * t.tile_w > best->tile_h * best->tile_w)) {
                            least = cost;
                            *best = t;
                        }
                    }
    return least < INT64_MAX;
}

static void describe(writer *w, const te_vta_conv *l)
{
    w_fmt(w,
          "tile_h=%" PRId64 ",tile_w=%" PRId64 ",tile_ci=%" PRId64 ",tile_co=%" PRId64 ",oc_threads=%" PRId64
          ",h_threads=%" PRId64,
          l->tile_h, l->tile_w, l->tile_ci, l->tile_co, l->oc_threads, l->h_threads);
}

/* The first given knob that cannot be: says so, and returns false. */
static bool check_divisors(compiler *c, const vta_geometry *g, const te_vta_conv *l)
{
    int64_t lanes = g->block_in, in = l->in_channels / lanes, out = l->out_channels / lanes, rows = te_vta_conv_rows(l);
    const struct {
        const char *name;
        int64_t value, all;
        const char *of;
    } knobs[] = {{"tile_h", l->tile_h, rows, "output rows"},
                 {"tile_w", l->tile_w, te_vta_conv_columns(l), "output columns"},
                 {"tile_ci", l->tile_ci, in, "input channel blocks"},
                 {"tile_co", l->tile_co, out, "output channel blocks"},
                 {"oc_threads", l->oc_threads, l->tile_co ? out / l->tile_co : out, "tiles of output channels"},
                 {"h_threads", l->h_threads, l->tile_h ? rows / l->tile_h : rows, "tiles of rows"}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (knobs[i].value && !divides(knobs[i].value, knobs[i].all))
            return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                              "convolution: %s=%" PRId64 " does not divide the %" PRId64 " %s", knobs[i].name,
                              knobs[i].value, knobs[i].all, knobs[i].of);
    return true;
}

/* What is given does not work: says why, and what would. */
static bool refuse_blocking(compiler *c, const vta_geometry *g, const te_vta_conv *l)
{
    static const char *const names[VTA_MEM_COUNT] = {
#define X(id, text) [id] = text,
        VTA_MEMORIES(X)
#undef X
    };
    te_vta_conv open = *l, best = {0};
    int64_t need = 0;
    bool given = l->tile_h && l->tile_w && l->tile_ci && l->tile_co && l->oc_threads && l->h_threads;
    bool even = check_divisors(c, g, l);
    blocking b = {0};
    if (given && even)
        b = measure(g, l);
    enum vta_mem m = b.threads ? overflow(g, &b, &need) : VTA_MEM_COUNT;
    if (!even)
        ; /* said */
    else if (m != VTA_MEM_COUNT)
        diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                   "convolution: the blocking needs %" PRId64 " bytes of %s memory; the device has %" PRId64, need,
                   names[m], (int64_t)g->depth[m] * g->elem_bytes[m]);
    else if (given)
        refuse(c, keeps_distance(l) ? "virtual threads run over output channels or over rows, two in all"
                                    : "tile_co * tile_h is below 3: an accumulator would be met again too soon");
    else
        refuse(c, "no blocking with what is given fits the device");
    open.tile_h = open.tile_w = open.tile_ci = open.tile_co = open.oc_threads = open.h_threads = 0;
    if (choose(g, &open, &best)) {
        writer w;
        writer_init(&w, &c->mem);
        describe(&w, &best);
        diag_hint(&c->diags, "this fits: %s", w.data);
    }
    return false;
}

bool te_vta_conv_plan(compiler *c, te_vta_conv *l)
{
    vta_geometry g = geometry_of(c);
    te_vta_conv best = {0};
    if (!check_layer(c, &g, l))
        return false;
    const int64_t knobs[] = {l->tile_h, l->tile_w, l->tile_ci, l->tile_co, l->oc_threads, l->h_threads};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        if (knobs[i] < 0)
            return refuse(c, "tiles and threads must not be negative");
    if (!choose(&g, l, &best))
        return refuse_blocking(c, &g, l);
    *l = best;
    return true;
}

/* --- computation --- */

static void print_sums(const vta_geometry *g, const te_vta_conv *l, writer *w)
{
    int64_t b = l->batch / (int64_t)g->batch, in = l->in_channels / (int64_t)g->block_in,
            out = l->out_channels / (int64_t)g->block_out, k = l->kernel, p = l->pad;
    char stride[24] = "";
    if (l->stride > 1)
        snprintf(stride, sizeof stride, "*%" PRId64, l->stride);
    const char *open = l->stride > 1 ? "(" : "", *close = l->stride > 1 ? ")" : "";
    w_fmt(w, "placeholder data: int8[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %u, %u]\n", b, in, l->height,
          l->width, g->batch, g->block_in);
    w_fmt(w, "placeholder kernel: int8[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %u, %u]\n", out, in, k, k,
          g->block_out, g->block_in);
    if (l->bias)
        w_fmt(w, "placeholder bias: int32[%" PRId64 ", %u, %u]\n", out, g->batch, g->block_out);
    w_fmt(w,
          "compute data_buf: int8[n: %" PRId64 ", c: %" PRId64 ", y: %" PRId64 ", x: %" PRId64 ", b: %u, l: %u] = ", b,
          in, l->height + 2 * p, l->width + 2 * p, g->batch, g->block_in);
    if (p > 0)
        w_fmt(w,
              "select((((y >= %" PRId64 ") && (y < %" PRId64 ")) && ((x >= %" PRId64 ") && (x < %" PRId64
              "))), (int8*)data[n, c, (y - %" PRId64 "), (x - %" PRId64 "), b, l], 0)\n",
              p, l->height + p, p, l->width + p, p, p);
    else
        w_str(w, "(int8*)data[n, c, y, x, b, l]\n");
    w_fmt(w,
          "compute kernel_buf: int8[o: %" PRId64 ", c: %" PRId64 ", y: %" PRId64 ", x: %" PRId64
          ", k: %u, l: %u] = (int8*)kernel[o, c, y, x, k, l]\n",
          out, in, k, k, g->block_out, g->block_in);
    if (l->bias)
        w_fmt(w, "compute bias_buf: int32[o: %" PRId64 ", b: %u, l: %u] = (int32*)bias[o, b, l]\n", out, g->batch,
              g->block_out);
    w_fmt(w,
          "compute conv: int32[bo: %" PRId64 ", co: %" PRId64 ", i: %" PRId64 ", j: %" PRId64
          ", bi: %u, ci: %u] reduce[ko: %" PRId64 ", di: %" PRId64 ", dj: %" PRId64
          ", ki: %u] sum = (cast(int32, (int8*)data_buf[bo, ko, (%si%s%s + di), "
          "(%sj%s%s + dj), bi, ki])*cast(int32, (int8*)kernel_buf[co, ko, di, dj, ci, ki]))\n",
          b, out, te_vta_conv_rows(l), te_vta_conv_columns(l), g->batch, g->block_out, in, k, k, g->block_in, open,
          stride, close, open, stride, close);
}

/* One stage per operation of the ALU, each on the one before: prefix, its value, suffix. */
typedef struct epilogue {
    struct {
        const char *name, *prefix, *suffix;
    } steps[6];
    uint32_t n;
} epilogue;

static void add_step(epilogue *e, const char *name, const char *prefix, const char *suffix)
{
    e->steps[e->n].name = name;
    e->steps[e->n].prefix = prefix;
    e->steps[e->n++].suffix = suffix;
}

static epilogue epilogue_of(compiler *c, const te_vta_conv *l)
{
    epilogue e = {.n = 0};
    if (l->bias)
        add_step(&e, "biased", "(", " + (int32*)bias_buf[i1, i4, i5])");
    if (l->shift > 0) {
        add_step(&e, "rounded", "(", arena_printf(&c->mem, " + %" PRId64 ")", (int64_t)1 << (l->shift - 1)));
        add_step(&e, "shifted", "(", arena_printf(&c->mem, " >> %" PRId64 ")", l->shift));
    }
    add_step(&e, "least", "max(", arena_printf(&c->mem, ", %" PRId64 ")", l->low));
    add_step(&e, "most", "min(", arena_printf(&c->mem, ", %" PRId64 ")", l->high));
    return e;
}

static void print_epilogue(compiler *c, const vta_geometry *g, const te_vta_conv *l, writer *w)
{
    epilogue e = epilogue_of(c, l);
    const char *before = "conv";
    char axes[160];
    snprintf(axes, sizeof axes, "[i0: %" PRId64 ", i1: %" PRId64 ", i2: %" PRId64 ", i3: %" PRId64 ", i4: %u, i5: %u]",
             l->batch / (int64_t)g->batch, l->out_channels / (int64_t)g->block_out, te_vta_conv_rows(l),
             te_vta_conv_columns(l), g->batch, g->block_out);
    for (uint32_t i = 0; i < e.n; i++) {
        w_fmt(w, "compute %s: int32%s = %s(int32*)%s[i0, i1, i2, i3, i4, i5]%s\n", e.steps[i].name, axes,
              e.steps[i].prefix, before, e.steps[i].suffix);
        before = e.steps[i].name;
    }
    w_fmt(w, "compute res: int8%s = cast(int8, (int32*)%s[i0, i1, i2, i3, i4, i5])\nreturn res\n", axes, before);
}

/* --- schedule --- */

static void print_schedule(compiler *c, const te_vta_conv *l, writer *w)
{
    epilogue e = epilogue_of(c, l);
    const char *co = "co0", *h = "h0", *thread = NULL;
    w_fmt(w, "split res.i1 %" PRId64 " -> co0 co1\n", l->tile_co);
    w_fmt(w, "split res.i2 %" PRId64 " -> h0 h1\n", l->tile_h);
    w_fmt(w, "split res.i3 %" PRId64 " -> w0 w1\n", l->tile_w);
    if (l->oc_threads > 1) {
        w_fmt(w, "split res.co0 %" PRId64 " -> coo vt\n", l->oc_threads);
        co = "coo", thread = "vt";
    } else if (l->h_threads > 1) {
        w_fmt(w, "split res.h0 %" PRId64 " -> ho vt\n", l->h_threads);
        h = "ho", thread = "vt";
    }
    w_fmt(w, "reorder res: %s%si0 %s %s w0 co1 h1 w1 i4 i5\n", thread ? thread : "", thread ? " " : "", h, co);
    if (thread)
        w_fmt(w, "vthread res.%s\n", thread);
    w_str(w, "compute_at conv at res.w0\n");
    for (uint32_t i = 0; i < e.n; i++)
        w_fmt(w, "compute_at %s at res.w0\n", e.steps[i].name);
    if (l->bias)
        w_str(w, "compute_at bias_buf at res.w0\n");
    w_fmt(w, "split conv.ko %" PRId64 " -> ko0 ko1\n", l->tile_ci);
    w_str(w, "reorder conv: bo ko0 ko1 j dj di co i bi ci ki\n"
             "compute_at data_buf at conv.ko0\n"
             "compute_at kernel_buf at conv.ko0\n"
             "set_scope data_buf local.inp_buffer\n"
             "set_scope kernel_buf local.wgt_buffer\n"
             "set_scope conv local.acc_buffer\n");
    if (l->bias)
        w_str(w, "set_scope bias_buf local.acc_buffer\n");
    for (uint32_t i = 0; i < e.n; i++)
        w_fmt(w, "set_scope %s local.acc_buffer\n", e.steps[i].name);
    w_str(w, "pragma data_buf.n \"dma_copy\" 1\n"
             "pragma kernel_buf.o \"dma_copy\" 1\n");
    if (l->bias)
        w_str(w, "pragma bias_buf.o \"dma_copy\" 1\n");
    for (uint32_t i = 0; i < e.n; i++)
        w_fmt(w, "pragma %s.i0 \"alu\" 1\n", e.steps[i].name);
    w_str(w, "pragma res.co1 \"dma_copy\" 1\n"
             "tensorize conv.bi vta_gemm\n");
}

void te_vta_conv_print(compiler *c, const te_vta_conv *l, writer *computation, writer *schedule)
{
    vta_geometry g = geometry_of(c);
    print_sums(&g, l, computation);
    print_epilogue(c, &g, l, computation);
    print_schedule(c, l, schedule);
}
