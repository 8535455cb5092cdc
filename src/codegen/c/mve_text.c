/* SPDX-License-Identifier: Apache-2.0 */
/* C for Cortex-M with vectors (Helium) beside the kernels of kernel/mve: data that stays in registers, which has too
 * many forms for a file each, and choices by comparison in lanes of four numbers. */
#include "codegen/c/mve.h"
#include "type/target.h"

#include <string.h>

/* --- data that stays in registers --- */

/* Where a few pixels' bytes fit into STILL registers, they stay there while the weights of all channels pass by. What
 * differs in the text is in the bits of c_need.lanes. */
const char *mve_still_name(arena *a, uint32_t key)
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

void mve_write_still(arena *a, writer *w, uint32_t key)
{
    const uint32_t pixels = key & MVE_PIXELS, vectors = key >> MVE_VECTORS & 0xf, done = (vectors - 1) * 16;
    const bool nibbles = (key & MVE_NIBBLES) != 0, pair = nibbles && pixels <= MVE_PAIRED;
    const uint32_t sums = pair ? 2 * pixels : pixels;
    w_fmt(w,
          "#if LATHE_MVE == 2\n"
          "/* out[i * out_step + j] %s the products of n bytes from a + i * step and w + j%s * on on, j below r. */\n"
          "static LATHE_HERE void %s(int32_t *out, const int8_t *a, const int8_t *w, int r, int n,\n"
          "                         int step, int on, int out_step)\n{\n    int32_t s0",
          key & MVE_ADDS ? "+=" : "=", nibbles ? " / 2" : "", mve_still_name(a, key));
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

/* --- lanes of four --- */

/* p where x compares with y, else q: names of the helper's parameters. The conditions lt and le are the opposites of
 * ge and gt, and true of a NaN: these are asked the other way round. */
static const char *choice_text(arena *a, tir_op test, const char *x, const char *y, const char *p, const char *q)
{
    const bool turned = test == TIR_LT || test == TIR_LE;
    const tir_op asked = test == TIR_LT ? TIR_GT : test == TIR_LE ? TIR_GE : test;
    return arena_printf(a,
                        "    f32x4 r;\n    __asm__(\"vcmp.f32 %s, %%q1, %%q2\\n vpsel %%q0, %%q3, %%q4\"\n"
                        "            : \"=w\"(r) : \"w\"(%s), \"w\"(%s), \"w\"(%s), \"w\"(%s) : LATHE_PREDICATE);\n",
                        needs_op_name(asked), turned ? y : x, turned ? x : y, p, q);
}

const char *mve_choice(arena *a, const c_need *n)
{
    const bool least = n->op == TIR_MIN;
    const char *text, *keep = "";
    if (n->dt != DT_F32 || n->lanes != MVE_LANES)
        return NULL;
    if (n->kind == NEED_VCHOOSE)
        text = choice_text(a, n->op, "a", "b", "x", "y");
    else if (n->kind == NEED_VBOUND)
        text = choice_text(a, least ? TIR_GE : TIR_LE, "x", "y", "y", "x");
    else if (n->kind == NEED_VEXTREME || (n->kind == NEED_VOP && (least || n->op == TIR_MAX)))
        text = choice_text(a, least ? TIR_LT : TIR_GT, "x", "y", "x", "y");
    else
        return NULL;
    if (n->kind == NEED_VOP)
        keep = "    __asm__(\"vcmp.f32 ne, %q1, %q1\\n vpsel %q0, %q1, %q0\"\n"
               "            : \"+w\"(r) : \"w\"(x) : LATHE_PREDICATE);\n";
    return arena_printf(a, "%s%s    return r;", text, keep);
}
