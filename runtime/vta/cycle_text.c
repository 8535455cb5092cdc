/* cycle_text.c: a cycle report as a timeline to look at: Chrome trace events, and an SVG with one lane per stage.
 * SPDX-License-Identifier: Apache-2.0 */

#include "cycle.h"
#include "text.h"

/* What a span does, as it is named and coloured. */
#define KINDS(X)                        \
    X(KIND_FETCH, "fetch", "#b8c0cc")   \
    X(KIND_INP, "inp", "#63a4e6")       \
    X(KIND_WGT, "wgt", "#2f6db5")       \
    X(KIND_UOP, "uop", "#b79ae0")       \
    X(KIND_ACC, "acc", "#8663c4")       \
    X(KIND_RESET, "reset", "#f3c969")   \
    X(KIND_GEMM, "gemm", "#e58a3c")     \
    X(KIND_ALU, "alu", "#59a869")       \
    X(KIND_STORE, "store", "#c75b7f")   \
    X(KIND_TOKENS, "tokens", "#4b5563") \
    X(KIND_FINISH, "finish", "#111827")

typedef enum kind {
#define X(id, text, colour) id,
    KINDS(X)
#undef X
        KIND_COUNT
} kind;

static const char *const kind_names[] = {
#define X(id, text, colour) text,
    KINDS(X)
#undef X
};

static const char *const kind_colours[] = {
#define X(id, text, colour) colour,
    KINDS(X)
#undef X
};

static const char *const lane_names[VTA_STAGE_COUNT] = {"fetch", "load", "compute", "store"};

/* Who waits for a token there. */
static const char *const queue_names[VTA_TOKEN_QUEUES] = {
    [VTA_LOAD_TO_COMPUTE] = "compute waits for load",
    [VTA_COMPUTE_TO_LOAD] = "load waits for compute",
    [VTA_COMPUTE_TO_STORE] = "store waits for compute",
    [VTA_STORE_TO_COMPUTE] = "compute waits for store",
};

static uint64_t read_bytes(const vta_section_cycles *s)
{
    uint64_t sum = 0;
    for (int m = 0; m < VTA_MEM_COUNT; m++)
        sum += m == VTA_MEM_OUT ? 0 : s->bytes[m];
    return sum;
}

/* --- spans -------------------------------------------------------------------------------------------------------- */

static kind kind_of(const vta_geometry *g, const vta_span *s, const vta_insn *insns)
{
    static const kind of_memory[VTA_MEM_COUNT] = {
        [VTA_MEM_UOP] = KIND_UOP, [VTA_MEM_WGT] = KIND_WGT,   [VTA_MEM_INP] = KIND_INP,
        [VTA_MEM_ACC] = KIND_ACC, [VTA_MEM_OUT] = KIND_STORE, [VTA_MEM_ACC_8BIT] = KIND_ACC,
    };
    vta_fields f;
    if (s->stage == VTA_STAGE_NONE)
        return KIND_FETCH;
    vta_decode(g, &insns[s->insn], &f);
    if (f.opcode == VTA_GEMM)
        return f.reset_reg ? KIND_RESET : KIND_GEMM;
    if (f.opcode == VTA_ALU)
        return KIND_ALU;
    if (f.opcode == VTA_FINISH)
        return KIND_FINISH;
    return f.x_size == 0 || f.memory_type >= VTA_MEM_COUNT ? KIND_TOKENS : of_memory[f.memory_type];
}

/* The next span from `at` on that pushes to or pops from the queue; r->n_spans: none. */
static uint32_t next_user(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, int queue,
                          bool pushes, uint32_t at)
{
    for (; at < r->n_spans; at++) {
        const vta_span *s = &r->spans[at];
        vta_fields f;
        if (s->stage == VTA_STAGE_NONE)
            continue;
        vta_decode(g, &insns[s->insn], &f);
        unsigned flags = vta_dep_flags(&f);
        for (int flag = pushes ? VTA_PUSH_PREV : VTA_POP_PREV; flag <= (pushes ? VTA_PUSH_NEXT : VTA_POP_NEXT); flag++)
            if (flags >> flag & 1 && vta_token_queue_of((enum vta_stage)s->stage, (enum vta_dep_flag)flag) == queue)
                return at;
    }
    return at;
}

/* Calls `visit` for each token that one span gave to another. A queue is first in, first out; a pop that began before
 * the push ended took a token of an earlier run. */
typedef void (*visit_token)(void *user, const vta_span *from, const vta_span *to);
static void each_token(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, visit_token visit,
                       void *user)
{
    for (int queue = 0; queue < VTA_TOKEN_QUEUES; queue++) {
        uint32_t push = next_user(g, r, insns, queue, true, 0), pop = next_user(g, r, insns, queue, false, 0);
        while (push < r->n_spans && pop < r->n_spans) {
            const vta_span *from = &r->spans[push], *to = &r->spans[pop];
            pop = next_user(g, r, insns, queue, false, pop + 1);
            if (to->start < from->end)
                continue;
            visit(user, from, to);
            push = next_user(g, r, insns, queue, true, push + 1);
        }
    }
}

/* --- Chrome trace ------------------------------------------------------------------------------------------------- */

typedef struct trace {
    vta_text text;
    uint32_t tokens;
} trace;

static void trace_token(void *user, const vta_span *from, const vta_span *to)
{
    trace *t = user;
    t->tokens++;
    vta_put(&t->text,
            ",\n{\"name\":\"token\",\"cat\":\"token\",\"ph\":\"s\",\"id\":%u,\"pid\":0,\"tid\":%u,\"ts\":%llu}",
            t->tokens, from->stage, (unsigned long long)from->end);
    vta_put(&t->text,
            ",\n{\"name\":\"token\",\"cat\":\"token\",\"ph\":\"f\",\"bp\":\"e\",\"id\":%u,\"pid\":0,\"tid\":%u,\"ts\":%"
            "llu}",
            t->tokens, to->stage, (unsigned long long)to->start);
}

/* Text in quotes: names come from models. */
static void put_name(vta_text *t, const char *name)
{
    for (; *name; name++)
        if (*name == '"' || *name == '\\')
            vta_put(t, "\\%c", *name);
        else if ((unsigned char)*name < 0x20)
            vta_put(t, "\\u%04x", (unsigned char)*name);
        else
            vta_put(t, "%c", *name);
}

static void trace_sections(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, vta_text *t)
{
    vta_section_cycles s;
    if (r->n_sections > 0)
        vta_put(t, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,"
                   "\"args\":{\"name\":\"layers\"}}", VTA_STAGE_COUNT);
    for (uint32_t i = 0; i < r->n_sections; i++) {
        vta_cycle_section(g, r, insns, i, &s);
        vta_put(t, ",\n{\"name\":\"");
        put_name(t, r->sections[i].name);
        vta_put(t, "\",\"cat\":\"layer\",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%llu,\"dur\":%llu,\"args\":{",
                VTA_STAGE_COUNT, (unsigned long long)s.start, (unsigned long long)(s.end - s.start));
        for (int k = VTA_STAGE_LOAD; k < VTA_STAGE_COUNT; k++)
            vta_put(t, "\"%s busy\":%llu,\"%s waits for the port\":%llu,", lane_names[k],
                    (unsigned long long)s.busy[k], lane_names[k], (unsigned long long)s.wait_port[k]);
        for (int k = 0; k < VTA_TOKEN_QUEUES; k++)
            vta_put(t, "\"%s\":%llu,", queue_names[k], (unsigned long long)s.wait_token[k]);
        vta_put(t, "\"instructions\":%llu,\"bytes read\":%llu,\"bytes written\":%llu,\"bound\":\"%s\"}}",
                (unsigned long long)s.insns, (unsigned long long)read_bytes(&s),
                (unsigned long long)s.bytes[VTA_MEM_OUT], lane_names[s.bound]);
    }
}

size_t vta_cycle_chrome_trace(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, char *out,
                              size_t size)
{
    trace t = {.text = {out, size, 0}};
    if (size)
        *out = '\0';
    vta_put(&t.text,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"unit\":\"cycle\",\"cycles\":%llu},\"traceEvents\":[\n",
            (unsigned long long)r->cycles);
    vta_put(&t.text, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"VTA\"}}");
    for (int lane = 0; lane < VTA_STAGE_COUNT; lane++)
        vta_put(&t.text, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                lane, lane_names[lane]);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        vta_put(&t.text,
                ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%llu,\"dur\":%llu,"
                "\"args\":{\"insn\":%u,\"ready\":%llu}}",
                kind_names[kind_of(g, s, insns)], lane_names[s->stage], s->stage, (unsigned long long)s->start,
                (unsigned long long)(s->end - s->start), s->insn, (unsigned long long)s->ready);
    }
    trace_sections(g, r, insns, &t.text);
    each_token(g, r, insns, trace_token, &t);
    vta_put(&t.text, "\n]}\n");
    return t.text.length;
}

/* --- SVG ---------------------------------------------------------------------------------------------------------- */

enum {
    PLOT_LEFT = 86,
    PLOT_WIDTH = 1000,
    PLOT_RIGHT = 94,
    PLOT_TOP = 44,
    MOST_ARROWS = 400 /* beyond, they only blur the picture */
};

/* Lanes from top to bottom in the order in which data flow. */
static const struct lane {
    int top, height;
} lanes[VTA_STAGE_COUNT] = {{PLOT_TOP, 14}, {PLOT_TOP + 30, 46}, {PLOT_TOP + 102, 46}, {PLOT_TOP + 174, 46}};
enum { PLOT_BOTTOM = PLOT_TOP + 174 + 46, SVG_HEIGHT = PLOT_BOTTOM + 68 };

typedef struct drawing {
    vta_text text;
    double scale; /* pixels per cycle */
    uint32_t arrows;
} drawing;

static double x_of(const drawing *d, uint64_t cycle)
{
    return (double)PLOT_LEFT + (double)cycle * d->scale;
}

/* 1, 2 or 5 times a power of ten, so that there are four to ten ticks. */
static uint64_t tick_step(uint64_t cycles)
{
    uint64_t step = 1;
    for (int i = 0; cycles / step > 10; i++)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

/* --- layers: a band above the lanes, and a table below them --- */

enum { ROW_HEIGHT = 17, BAND_TOP = 29, BAND_HEIGHT = 13 };

static int table_height(const vta_cycle_report *r)
{
    return r->n_sections == 0 ? 0 : ROW_HEIGHT * ((int)r->n_sections + 2) + 10;
}

/* At most `most` characters; what XML takes for its own is written so that it does not. */
static void put_label(vta_text *t, const char *name, size_t most)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < n && i < most; i++) {
        const char *own = name[i] == '<' ? "&lt;" : name[i] == '>' ? "&gt;" : name[i] == '&' ? "&amp;" : NULL;
        if (own)
            vta_put(t, "%s", own);
        else if ((unsigned char)name[i] >= 0x20 && (unsigned char)name[i] < 0x7f)
            vta_put(t, "%c", name[i]);
        else
            vta_put(t, "?");
    }
    if (n > most)
        vta_put(t, "..");
}

static void draw_band(drawing *d, const vta_cycle_report *r, uint32_t i, const vta_section_cycles *s)
{
    const double from = x_of(d, s->start), width = x_of(d, s->end) - from;
    vta_put(&d->text, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>", from, BAND_TOP,
            width, BAND_HEIGHT, i % 2 ? "#dfe5ee" : "#c9d3e3");
    put_label(&d->text, r->sections[i].name, 200);
    vta_put(&d->text, ": %llu cycles, %llu to %llu</title></rect>\n", (unsigned long long)(s->end - s->start),
            (unsigned long long)s->start, (unsigned long long)s->end);
    if (width < 40)
        return;
    vta_put(&d->text, "<text x=\"%.2f\" y=\"%d\" font-size=\"10\" pointer-events=\"none\">", from + 3,
            BAND_TOP + 10);
    put_label(&d->text, r->sections[i].name, (size_t)(width / 6.5));
    vta_put(&d->text, "</text>\n");
}

static void draw_cell(drawing *d, int x, int y, uint64_t value)
{
    vta_put(&d->text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%llu</text>\n", x, y, (unsigned long long)value);
}

enum { BAR_LEFT = PLOT_LEFT + 310, BAR_WIDTH = 180, CELLS_LEFT = BAR_LEFT + BAR_WIDTH + 70 };

/* Cycles as a bar of the slowest layer's; the dark part of it is the unit's that has most to do. */
static void draw_row(drawing *d, const vta_cycle_report *r, uint32_t i, int y, const vta_section_cycles *s,
                     uint64_t slowest)
{
    const uint64_t cycles = s->end - s->start;
    const double scale = slowest ? (double)BAR_WIDTH / (double)slowest : 0;
    vta_put(&d->text, "<text x=\"%d\" y=\"%d\">", PLOT_LEFT, y);
    put_label(&d->text, r->sections[i].name, 42);
    vta_put(&d->text,
            "</text>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"#d5dae1\"/>"
            "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>\n",
            BAR_LEFT, y - 10, (double)cycles * scale, BAR_LEFT, y - 10, (double)s->least * scale,
            s->bound == VTA_STAGE_LOAD      ? kind_colours[KIND_INP]
            : s->bound == VTA_STAGE_COMPUTE ? kind_colours[KIND_GEMM]
                                            : kind_colours[KIND_STORE]);
    draw_cell(d, CELLS_LEFT, y, cycles);
    vta_put(&d->text, "<text x=\"%d\" y=\"%d\">%s, %.0f %%</text>\n", CELLS_LEFT + 14, y, lane_names[s->bound],
            cycles ? 100.0 * (double)s->least / (double)cycles : 0);
    draw_cell(d, CELLS_LEFT + 190, y, read_bytes(s));
    draw_cell(d, CELLS_LEFT + 280, y, s->bytes[VTA_MEM_OUT]);
    draw_cell(d, CELLS_LEFT + 375, y, s->insns);
    draw_cell(d, CELLS_LEFT + 485, y, s->wait_token[VTA_LOAD_TO_COMPUTE] + s->wait_token[VTA_STORE_TO_COMPUTE]);
}

static void draw_sections(drawing *d, const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns)
{
    static const struct {
        const char *text;
        int x;
    } heads[] = {{"cycles", CELLS_LEFT},           {"bytes read", CELLS_LEFT + 190}, {"written", CELLS_LEFT + 280},
                 {"instructions", CELLS_LEFT + 375}, {"compute waits", CELLS_LEFT + 485}};
    vta_section_cycles s;
    uint64_t slowest = 0;
    int y = SVG_HEIGHT + 4;
    for (uint32_t i = 0; i < r->n_sections; i++) {
        vta_cycle_section(g, r, insns, i, &s);
        slowest = s.end - s.start > slowest ? s.end - s.start : slowest;
        draw_band(d, r, i, &s);
    }
    vta_put(&d->text, "<g fill=\"#6b7280\"><text x=\"%d\" y=\"%d\">layer</text><text x=\"%d\" y=\"%d\">bound by"
                      "</text>\n", PLOT_LEFT, y, CELLS_LEFT + 14, y);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        vta_put(&d->text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", heads[i].x, y, heads[i].text);
    vta_put(&d->text, "</g>\n");
    for (uint32_t i = 0; i < r->n_sections; i++) {
        vta_cycle_section(g, r, insns, i, &s);
        draw_row(d, r, i, y += ROW_HEIGHT, &s, slowest);
    }
}

static void draw_frame(drawing *d, const vta_cycle_report *r)
{
    vta_put(
        &d->text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" "
        "font-size=\"12\" fill=\"#1f2937\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
        "<text x=\"%d\" y=\"24\" font-size=\"14\" font-weight=\"bold\">%llu cycles</text>\n"
        "<text x=\"%d\" y=\"24\" text-anchor=\"end\" fill=\"#6b7280\">busy</text>\n",
        PLOT_LEFT + PLOT_WIDTH + PLOT_RIGHT, SVG_HEIGHT + table_height(r), PLOT_LEFT, (unsigned long long)r->cycles,
        PLOT_LEFT + PLOT_WIDTH + 52);
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        int middle = lanes[i].top + lanes[i].height / 2 + 4;
        double busy = r->cycles ? 100.0 * (double)r->stage[i].busy / (double)r->cycles : 0;
        vta_put(&d->text,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f1f3f6\"/>\n"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f %%</text>\n",
                PLOT_LEFT, lanes[i].top, PLOT_WIDTH, lanes[i].height, PLOT_LEFT - 10, middle, lane_names[i],
                PLOT_LEFT + PLOT_WIDTH + 52, middle, busy);
    }
    uint64_t step_cycles = tick_step(r->cycles);
    for (uint64_t at = 0; at <= r->cycles; at += step_cycles)
        vta_put(&d->text,
                "<path d=\"M%.2f %d V%d\" stroke=\"#d5dae1\" stroke-width=\"0.7\"/>\n"
                "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" fill=\"#6b7280\">%llu</text>\n",
                x_of(d, at), PLOT_TOP - 4, PLOT_BOTTOM + 6, x_of(d, at), PLOT_BOTTOM + 20, (unsigned long long)at);
}

/* One span, or several that are too narrow to be told apart, in the colour of what takes most of the time. */
typedef struct box {
    uint64_t time[KIND_COUNT];
    kind kind;
    uint32_t spans; /* 0: none yet */
    vta_span whole;
} box;

/* Pointed at, it tells its instruction and cycles. */
static void draw_box(drawing *d, const box *b)
{
    const struct lane *lane = &lanes[b->whole.stage];
    const char *name = kind_names[b->kind];
    double from = x_of(d, b->whole.start), width = x_of(d, b->whole.end) - from;
    width = width > 0.4 ? width : 0.4;
    vta_put(&d->text, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s><title>%s, instruction %u",
            from, lane->top, width, lane->height, kind_colours[b->kind],
            width > 4 ? " stroke=\"#ffffff\" stroke-width=\"0.6\"" : "", name, b->whole.insn);
    if (b->spans > 1)
        vta_put(&d->text, " and %u more", b->spans - 1);
    vta_put(&d->text, ": %llu to %llu</title></rect>\n", (unsigned long long)b->whole.start,
            (unsigned long long)b->whole.end);
    if (width > 8.0 * (double)strlen(name) && lane->height > 20)
        vta_put(&d->text,
                "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" fill=\"#ffffff\" pointer-events=\"none\">%s</text>\n",
                from + width / 2, lane->top + lane->height / 2 + 4, name);
}

static void draw_lane(drawing *d, const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, int lane,
                      bool seen[KIND_COUNT])
{
    const double narrow = 0.25;
    box b = {.spans = 0};
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        if (s->stage != lane)
            continue;
        const kind k = kind_of(g, s, insns);
        if (b.spans && x_of(d, s->end) < x_of(d, b.whole.end) + narrow) {
            b.whole.end = s->end;
            b.spans++;
        } else {
            if (b.spans)
                draw_box(d, &b);
            b = (box){.kind = k, .spans = 1, .whole = *s};
        }
        b.time[k] += s->end - s->start;
        b.kind = b.time[k] > b.time[b.kind] ? k : b.kind;
        seen[b.kind] = true;
    }
    if (b.spans)
        draw_box(d, &b);
}

static void draw_token(void *user, const vta_span *from, const vta_span *to)
{
    drawing *d = user;
    const struct lane *a = &lanes[from->stage], *b = &lanes[to->stage];
    bool down = a->top < b->top;
    vta_put(&d->text, "<path d=\"M%.2f %d L%.2f %d\" marker-end=\"url(#tip)\"/>\n", x_of(d, from->end),
            down ? a->top + a->height : a->top, x_of(d, to->start), down ? b->top - 3 : b->top + b->height + 3);
}

static void count_token(void *user, const vta_span *from, const vta_span *to)
{
    (void)from;
    (void)to;
    ++*(uint32_t *)user;
}

static void draw_legend(drawing *d, const bool seen[KIND_COUNT], bool arrows)
{
    int x = PLOT_LEFT;
    const int y = PLOT_BOTTOM + 44;
    for (int k = 0; k < KIND_COUNT; k++) {
        if (!seen[k])
            continue;
        vta_put(&d->text,
                "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                x, y - 10, kind_colours[k], x + 17, y, kind_names[k]);
        x += 42 + 7 * (int)strlen(kind_names[k]);
    }
    if (arrows)
        vta_put(&d->text,
                "<path d=\"M%d %d h16\" stroke=\"#6b7280\" marker-end=\"url(#tip)\"/><text x=\"%d\" "
                "y=\"%d\">token</text>\n",
                x, y - 4, x + 24, y);
    vta_put(&d->text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#6b7280\">cycles</text>\n",
            PLOT_LEFT + PLOT_WIDTH, y);
}

size_t vta_cycle_svg(const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns, char *out, size_t size)
{
    drawing d = {.text = {out, size, 0}};
    bool seen[KIND_COUNT] = {false};
    if (size)
        *out = '\0';
    d.scale = r->cycles ? (double)PLOT_WIDTH / (double)r->cycles : 0;
    draw_frame(&d, r);
    for (int lane = 0; lane < VTA_STAGE_COUNT; lane++)
        draw_lane(&d, g, r, insns, lane, seen);
    uint32_t tokens = 0;
    each_token(g, r, insns, count_token, &tokens);
    bool arrows = tokens > 0 && tokens <= MOST_ARROWS;
    if (arrows) {
        vta_put(
            &d.text,
            "<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"5\" markerHeight=\"5\" "
            "orient=\"auto\"><path d=\"M0 0 L6 3 L0 6 z\" fill=\"#6b7280\"/></marker></defs>\n"
            "<g stroke=\"#6b7280\" stroke-width=\"0.9\" stroke-opacity=\"0.75\" fill=\"none\">\n");
        each_token(g, r, insns, draw_token, &d);
        vta_put(&d.text, "</g>\n");
    }
    draw_legend(&d, seen, arrows);
    if (r->n_sections > 0)
        draw_sections(&d, g, r, insns);
    vta_put(&d.text, "</svg>\n");
    return d.text.length;
}
