/* SPDX-License-Identifier: Apache-2.0 */
/* Data that stays in Helium's registers: where a few pixels' bytes fit into MVE_STILL of them, they stay there while
 * the weights of all channels pass by. It has too many forms for a file of kernel/mve each; which one a call gets is
 * known when it is written. */
#include "target/cortex_m/code/helium.h"
#include "tir/build.h"
#include "tir/instr.h"

/* What differs in the text, bits of c_need.lanes: pixels, vectors of each, whether the last one is not whole, whether
 * weights are too far apart for the instruction's own step, whether the sums are added to, whether pixels are a vector
 * apart, so that they share all but one, whether weights are of 4 bits. */
#define MVE_STILL  6
#define MVE_PAIRED 3 /* pixels by two channels, whose weights of 4 bits share bytes, at once */
enum {
    MVE_PIXELS = 0xf, MVE_VECTORS = 4, MVE_TAIL = 1 << 8, MVE_FAR = 1 << 9, MVE_ADDS = 1 << 10, MVE_SHARED = 1 << 11,
    MVE_NIBBLES = 1 << 12
};

static const char *still_name(arena *a, uint32_t key)
{
    return arena_printf(a, "lathe_still_%ux%u%s%s%s%s%s", key & MVE_PIXELS, key >> MVE_VECTORS & 0xf,
                        key & MVE_TAIL ? "_tail" : "", key & MVE_FAR ? "_far" : "", key & MVE_ADDS ? "_add" : "",
                        key & MVE_SHARED ? "_near" : "", key & MVE_NIBBLES ? "_nibbles" : "");
}

/* Vector v of a channel's weights, or of two channels', into register q; behind the last one the next ones begin. */
static void load_still_weights(writer *w, uint32_t v, uint32_t vectors, uint32_t key, uint32_t q)
{
    const bool last = v + 1 == vectors, tail = last && key & MVE_TAIL;
    w_fmt(w, "        \"%s %s q%u, [%%[w]]%s\\n\"\n", tail ? "vpst\\n" : "", tail ? "vldrbt.u8" : "vldrb.8", q,
          last ? key & MVE_FAR ? "\\n add %[w], %[w], %[on]" : ", %[on]" : ", #16");
}

/* Register q by vector v of all pixels; sums from number `first` on. */
static void multiply_still(writer *w, uint32_t v, uint32_t key, uint32_t q, uint32_t first)
{
    const uint32_t pixels = key & MVE_PIXELS, vectors = key >> MVE_VECTORS & 0xf;
    for (uint32_t i = 0; i < pixels; i++)
        w_fmt(w, "        \"vmladav%s.s8 %%[s%u], q%u, q%u\\n\"\n", v || key & MVE_ADDS ? "a" : "", first + i,
              key & MVE_SHARED ? i + v : i * vectors + v, q);
}

static void write_still_stores(writer *w, uint32_t pixels)
{
    for (uint32_t i = pixels; i-- > 1;)
        w_fmt(w, "        \"str %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
    w_str(w, "        \"str %[s0], [%[out]], #4\\n\"\n");
}

/* One channel: its weights, vector after vector, by those of all pixels. */
static void write_still_channel(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
        w_fmt(w, "        \"ldr %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
    for (uint32_t v = 0; v < vectors; v++) {
        load_still_weights(w, v, vectors, key, v % 2 ? 6 : 7);
        multiply_still(w, v, key, v % 2 ? 6 : 7, 0);
    }
    write_still_stores(w, pixels);
}

/* Two channels, whose weights of 4 bits share bytes, at once. Those of the second one are taken 16 times as large where
 * shifting the sums costs less. */
static void write_still_pair(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    const bool larger = vectors > pixels;
    for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
        w_fmt(w, "        \"ldrd %%[s%u], %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, pixels + i, i);
    for (uint32_t i = 0; key & MVE_ADDS && larger && i < pixels; i++)
        w_fmt(w, "        \"lsl %%[s%u], %%[s%u], #4\\n\"\n", pixels + i, pixels + i);
    for (uint32_t v = 0; v < vectors; v++) {
        load_still_weights(w, v, vectors, key, 7);
        w_str(w, "        \"vshr.s8 q6, q7, #4\\n\"\n");
        multiply_still(w, v, key, 6, 0);
        w_fmt(w, "        \"vshl.i8 q7, q7, #4\\n%s\"\n", larger ? "" : " vshr.s8 q7, q7, #4\\n");
        multiply_still(w, v, key, 7, pixels);
    }
    for (uint32_t i = pixels; i-- > 0;) {
        if (larger)
            w_fmt(w, "        \"asr %%[s%u], %%[s%u], #4\\n\"\n", pixels + i, pixels + i);
        w_fmt(w, i ? "        \"strd %%[s%u], %%[s%u], [%%[out], %%[o%u]]\\n\"\n"
                   : "        \"strd %%[s%u], %%[s%u], [%%[out]], #8\\n\"\n", i, pixels + i, i);
    }
}

/* The same, one channel after the other: there are registers for the sums of one. */
static void write_still_halves(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = 0; key & MVE_ADDS && i < pixels; i++)
            w_fmt(w, "        \"ldr %%[s%u], [%%[out], %%[o%u]]\\n\"\n", i, i);
        for (uint32_t v = 0; v < vectors; v++) {
            if (half == 0 && vectors > 1) /* read again for the second one */
                w_fmt(w, "        \"vldrb.8 q7, [%%[w], #%u]\\n\"\n", v * 16);
            else if (half == 0 || vectors > 1)
                load_still_weights(w, v, vectors, key, 7);
            w_str(w, half == 0 ? "        \"vshr.s8 q6, q7, #4\\n\"\n"
                               : "        \"vshl.i8 q6, q7, #4\\n vshr.s8 q6, q6, #4\\n\"\n");
            multiply_still(w, v, key, 6, 0);
        }
        write_still_stores(w, pixels);
    }
}

static void write_still_data(writer *w, uint32_t pixels, uint32_t vectors, uint32_t key)
{
    for (uint32_t v = 0; key & MVE_SHARED && v < pixels + vectors - 1; v++)
        w_fmt(w, "        \"vldrb.8 q%u, [%%[a], #%u]\\n\"\n", v, v * 16);
    for (uint32_t i = 0; !(key & MVE_SHARED) && i < pixels; i++) {
        for (uint32_t v = 0; v < vectors; v++)
            if (v + 1 == vectors && key & MVE_TAIL)
                w_fmt(w, "        \"vpst\\n vldrbt.u8 q%u, [%%[a], #%u]\\n\"\n", i * vectors + v, v * 16);
            else
                w_fmt(w, "        \"vldrb.8 q%u, [%%[a], #%u]\\n\"\n", i * vectors + v, v * 16);
        if (i + 1 < pixels)
            w_str(w, "        \"add %[a], %[a], %[step]\\n\"\n");
    }
}

static void write_still(arena *a, writer *w, uint32_t key)
{
    const uint32_t pixels = key & MVE_PIXELS, vectors = key >> MVE_VECTORS & 0xf, done = (vectors - 1) * 16;
    const bool nibbles = (key & MVE_NIBBLES) != 0, pair = nibbles && pixels <= MVE_PAIRED;
    const uint32_t sums = pair ? 2 * pixels : pixels;
    w_fmt(w,
          "#if LATHE_MVE == 2\n"
          "/* out[i * out_step + j] %s the products of n bytes from a + i * step and w + j%s * on on, j below r. */\n"
          "static LATHE_HERE void %s(int32_t *out, const int8_t *a, const int8_t *w, int r, int n,\n"
          "                         int step, int on, int out_step)\n{\n    int32_t s0",
          key & MVE_ADDS ? "+=" : "=", nibbles ? " / 2" : "", still_name(a, key));
    for (uint32_t i = 1; i < sums; i++)
        w_fmt(w, ", s%u", i);
    w_str(w, ";\n    __asm__ volatile(\n");
    if (key & MVE_TAIL)
        w_str(w, "        \"vctp.8 %[n]\\n\"\n");
    write_still_data(w, pixels, vectors, key);
    w_str(w, "        \"dls lr, %[r]\\n1:\\n\"\n");
    (pair ? write_still_pair : nibbles ? write_still_halves : write_still_channel)(w, pixels, vectors, key);
    w_str(w, "        \"le lr, 1b\\n\"\n        : [out] \"+r\"(out), [a] \"+r\"(a), [w] \"+r\"(w)");
    for (uint32_t i = 0; i < sums; i++)
        w_fmt(w, ", [s%u] \"=&Te\"(s%u)", i, i);
    w_fmt(w, "\n        : [n] \"r\"(n - %u), [r] \"r\"(r%s), [step] \"rI\"(step), [on] \"i\"(on - %u)", done,
          nibbles ? " / 2" : "", done);
    for (uint32_t i = 0; i < pixels; i++)
        w_fmt(w, ", [o%u] \"i\"(%u * out_step)", i, 4 * i);
    w_str(w, "\n        : \"lr\", \"memory\", \"q0\", \"q1\", \"q2\", \"q3\", \"q4\", \"q5\", \"q6\", \"q7\"");
    w_str(w, key & MVE_TAIL ? ", LATHE_PREDICATE);\n" : ");\n");
    w_str(w, "    (void)n;\n}\n#endif\n\n");
}

/* --- calls --- */

/* The arguments of mve_dot and mve_nibbles; behind them whether it begins the sums. */
enum {
    ARG_OUT, ARG_A, ARG_W, ARG_M, ARG_R, ARG_H, ARG_N, ARG_STEP, ARG_ROW, ARG_ON, ARG_W_ROW, ARG_OUT_STEP, ARG_FIRST,
    ARG_COUNT
};

/* What follows the addresses; false where one is no number. */
static bool read_numbers(tir_expr_ref x, bool nibbles, int64_t *out)
{
    bool ok = x->n_args == ARG_FIRST;
    for (uint32_t i = ARG_M; ok && i < ARG_FIRST; i++)
        ok = tir_is_int(x->args[i], &out[i]);
    out[ARG_R] *= nibbles ? 2 : 1; /* a byte is of two channels */
    out[ARG_FIRST] = x->op != TIR_ADD;
    return ok;
}

/* The variant for data that stays in registers, 0: there is none. */
static uint32_t still_key(const int64_t *v, bool nibbles)
{
    int64_t m = v[ARG_M], n = v[ARG_N], vectors = (n + 15) / 16, on = v[ARG_ON];
    bool near = v[ARG_STEP] == 16 && n % 16 == 0;
    int64_t held = near ? m + vectors - 1 : m * vectors;
    /* how far from an address loads and stores of one word reach, and of two */
    const int64_t reach = nibbles && m <= MVE_PAIRED ? 1000 : 4000;
    if (m < 1 || vectors < 1 || held > MVE_STILL || m * 4 * v[ARG_OUT_STEP] > reach)
        return 0;
    on -= (vectors - 1) * 16;
    if (on < 0 || on > 4095)
        return 0;
    return (uint32_t)m | (uint32_t)vectors << MVE_VECTORS | (n % 16 ? MVE_TAIL : 0u) | (on > 127 ? MVE_FAR : 0u) |
           (near ? MVE_SHARED : 0u) | (nibbles ? MVE_NIBBLES : 0u);
}

/* One call for each row of the window, of which the first one needs no sums. */
static const char *still_calls(c_emit *e, tir_expr_ref x, const int64_t *v, uint32_t key)
{
    const char *text = "", *out = expr_text(e, x->args[ARG_OUT]).s, *a = expr_text(e, x->args[ARG_A]).s,
               *w = expr_text(e, x->args[ARG_W]).s;
    for (int64_t y = 0; y < v[ARG_H]; y++) {
        uint32_t k = key | (y > 0 || !v[ARG_FIRST] ? MVE_ADDS : 0u);
        needs_add(e->needs, (c_need){.kind = NEED_FORM, .form = write_still, .lanes = k});
        text = arena_printf(e->tmp, "%s%s%s(%s, %s + %lld, %s + %lld, %lld, %lld, %lld, %lld, %lld)", text,
                            y ? ", " : "", still_name(e->tmp, k), out, a, (long long)(y * v[ARG_ROW]), w,
                            (long long)(y * v[ARG_W_ROW]), (long long)v[ARG_R], (long long)v[ARG_N],
                            (long long)v[ARG_STEP], (long long)v[ARG_ON], (long long)v[ARG_OUT_STEP]);
    }
    return text;
}

/* Of data that stays in registers. */
bool helium_still_call(c_emit *e, tir_expr_ref x, c_text *out)
{
    int64_t v[ARG_COUNT] = {0};
    const bool nibbles = x->u.row->stays == TIR_STAYS_NIBBLES;
    uint32_t key = x->u.row->stays != TIR_STAYS_NOT && read_numbers(x, nibbles, v) ? still_key(v, nibbles) : 0;
    if (key == 0)
        return false;
    const char *plain = instr_text(e, x, expr_operand, NULL);
    *out = (c_text){arena_printf(e->tmp, "LATHE_STILL((%s), %s)", still_calls(e, x, v, key), plain), PREC_PRIMARY};
    return true;
}
