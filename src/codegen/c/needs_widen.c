/* SPDX-License-Identifier: Apache-2.0 */
/* C of the functions that widen bytes into a buffer of 16-bit numbers, less a zero point. Where SXTB16 is, they take
 * words of four bytes, wherever these begin. Zeros are made of bytes that are the zero point. */
#include "codegen/c/emit.h"

static const char setup[] =
    "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_UNALIGNED) && defined(__thumb2__)\n"
    "#define LATHE_WIDEN 1 /* words of four bytes, wherever they begin */\n"
    "#define LATHE_PAIRS(op, d, x, y) __asm__(op \" %0, %1, %2\" : \"=r\"(d) : \"r\"(x), \"r\"(y))\n"
    "#define LATHE_HALVES(op, d, x, y, more) __asm__(op \" %0, %1, %2, \" more : \"=r\"(d) : \"r\"(x), \"r\"(y))\n"
    "#define LATHE_FOUR_OF(from, low, high) /* bytes 0 and 2, 1 and 3, less the zero point */ \\\n"
    "    do {                                                                              \\\n"
    "        __builtin_memcpy(&low, from, 4);                                              \\\n"
    "        __asm__(LATHE_WIDER \" %0, %1, ror #8\" : \"=r\"(high) : \"r\"(low));               \\\n"
    "        __asm__(LATHE_WIDER \" %0, %1\" : \"=r\"(low) : \"r\"(low));                        \\\n"
    "        LATHE_PAIRS(\"ssub16\", low, low, zeros);                                       \\\n"
    "        LATHE_PAIRS(\"ssub16\", high, high, zeros);                                     \\\n"
    "    } while (0)\n"
    "#else\n#define LATHE_WIDEN 0\n#endif\n";

static const char runs_text[] =
    "/* `runs` times n bytes, less zero; each four of them begin `step` behind the last ones. from NULL: zeros. */\n"
    "static LATHE_SHARED void lathe_widen_runs_@n(int16_t *to, const @c *from, int32_t zero, int32_t runs,\n"
    "    int32_t to_run, int32_t from_run, int32_t n, int32_t step)\n"
    "{\n"
    "    const @c nothing[4] = {(@c)zero, (@c)zero, (@c)zero, (@c)zero};\n"
    "    const int32_t by = from != NULL ? 4 : 0;\n"
    "#if LATHE_WIDEN\n"
    "    const uint32_t zeros = ((uint32_t)zero & 0xffffu) * 0x10001u;\n"
    "#endif\n"
    "    from_run = from != NULL ? from_run : 0;\n"
    "    from = from != NULL ? from : nothing;\n"
    "    for (; runs > 0; runs--, to += to_run, from += from_run) {\n"
    "        const @c *x = from;\n"
    "        int16_t *y = to;\n"
    "        int32_t i = n, k;\n"
    "        LATHE_ROLLED\n"
    "        for (; i >= 4; i -= 4, x += by, y += step) {\n"
    "#if LATHE_WIDEN\n"
    "            uint32_t low, high, a, b;\n"
    "            LATHE_FOUR_OF(x, low, high);\n"
    "            LATHE_HALVES(\"pkhbt\", a, low, high, \"lsl #16\");\n"
    "            LATHE_HALVES(\"pkhtb\", b, high, low, \"asr #16\");\n"
    "            __builtin_memcpy(y, &a, 4);\n"
    "            __builtin_memcpy(y + 2, &b, 4);\n"
    "#else\n"
    "            for (k = 0; k < 4; k++)\n"
    "                y[k] = (int16_t)(x[k] - zero);\n"
    "#endif\n"
    "        }\n"
    "        LATHE_ROLLED\n"
    "        for (k = 0; k < i; k++)\n"
    "            y[k] = (int16_t)(x[k] - zero);\n"
    "    }\n"
    "}\n\n";

static const char planes_text[] =
    "/* Bytes of channels, which stand beside each other, as rows of columns, less zero. from NULL: zeros. */\n"
    "static LATHE_SHARED void lathe_widen_planes_@n(int16_t *to, const @c *from, int32_t zero, int32_t channels,\n"
    "    int32_t to_channel, int32_t columns, int32_t from_column)\n"
    "{\n"
    "    const @c nothing[4] = {(@c)zero, (@c)zero, (@c)zero, (@c)zero};\n"
    "    const int32_t by = from != NULL ? 1 : 0;\n"
    "#if LATHE_WIDEN\n"
    "    const uint32_t zeros = ((uint32_t)zero & 0xffffu) * 0x10001u;\n"
    "#endif\n"
    "    int32_t i;\n"
    "    from_column = from != NULL ? from_column : 0;\n"
    "    from = from != NULL ? from : nothing;\n"
    "#if LATHE_WIDEN\n"
    "    for (; channels >= 4; channels -= 4, from += 4 * by, to += 4 * to_channel) {\n"
    "        const @c *x = from;\n"
    "        int16_t *y = to;\n"
    "        uint32_t low, high, next, above, a;\n"
    "        LATHE_ROLLED\n"
    "        for (i = columns; i >= 2; i -= 2, x += 2 * from_column, y += 2) {\n"
    "            LATHE_FOUR_OF(x, low, high);\n"
    "            LATHE_FOUR_OF(x + from_column, next, above);\n"
    "            LATHE_HALVES(\"pkhbt\", a, low, next, \"lsl #16\");\n"
    "            __builtin_memcpy(y, &a, 4);\n"
    "            LATHE_HALVES(\"pkhbt\", a, high, above, \"lsl #16\");\n"
    "            __builtin_memcpy(y + to_channel, &a, 4);\n"
    "            LATHE_HALVES(\"pkhtb\", a, next, low, \"asr #16\");\n"
    "            __builtin_memcpy(y + 2 * to_channel, &a, 4);\n"
    "            LATHE_HALVES(\"pkhtb\", a, above, high, \"asr #16\");\n"
    "            __builtin_memcpy(y + 3 * to_channel, &a, 4);\n"
    "        }\n"
    "        if (i > 0) {\n"
    "            LATHE_FOUR_OF(x, low, high);\n"
    "            y[0] = (int16_t)low, y[to_channel] = (int16_t)high;\n"
    "            y[2 * to_channel] = (int16_t)(low >> 16), y[3 * to_channel] = (int16_t)(high >> 16);\n"
    "        }\n"
    "    }\n"
    "#endif\n"
    "    for (; channels > 0; channels--, to += to_channel, from += by) {\n"
    "        LATHE_ROLLED\n"
    "        for (i = 0; i < columns; i++)\n"
    "            to[i] = (int16_t)(from[i * from_column] - zero);\n"
    "    }\n"
    "}\n\n";

void needs_write_widen(writer *w, const c_need *need)
{
    w_str(w, setup);
    w_fmt(w, "#undef LATHE_WIDER\n#define LATHE_WIDER \"%s\"\n", need->dt == DT_I8 ? "sxtb16" : "uxtb16");
    for (const char *at = need->kind == NEED_WIDEN_RUNS ? runs_text : planes_text; *at; at++) {
        if (*at == '@')
            w_str(w, *++at == 'n' ? dtype_name(need->dt) : dtype_c_name(need->dt));
        else
            w_fmt(w, "%c", *at);
    }
}
