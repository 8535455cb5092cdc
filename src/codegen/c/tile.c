/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for sums of products of bytes in tiles of two by two (tir/intrin_dot.c): the processor's instruction, or
 * plain C. A tile is a vector; rows of four sums, as everything else wants them, are halves of two tiles. */
#include "codegen/c/emit.h"

#include "tir/lane.h"

/* Said for each helper: the same words are no redefinition. */
static const char shuffle_text[] =
    "#if defined(__clang__)\n#define LATHE_SHUFFLE(a, b, type, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
    "#else\n#define LATHE_SHUFFLE(a, b, type, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})\n#endif\n";

/* Eight bytes of each of two rows, where they lie side by side, row by row, in pieces of two rows, or in four pieces.
 */
static const char data_text[] =
    "    typedef int64_t two __attribute__((vector_size(16)));\n"
    "    typedef int32_t four __attribute__((vector_size(16)));\n"
    "    typedef int64_t eight_bytes __attribute__((aligned(1), may_alias));\n"
    "    typedef int32_t four_bytes __attribute__((aligned(1), may_alias));\n"
    "    typedef int64_t all_bytes __attribute__((vector_size(16), aligned(1), may_alias));\n"
    "    const two w = *(const all_bytes *)(const void *)b;\n"
    "    const void *p[4];\n"
    "    two x;\n"
    "    p[0] = a, p[1] = a + half, p[2] = a + row, p[3] = a + row + half;\n"
    "    if (half == 4 && row == 8) {\n"
    "        x = *(const all_bytes *)p[0];\n"
    "    } else if (half == 4) {\n"
    "        x = (two){*(const eight_bytes *)p[0], *(const eight_bytes *)p[2]};\n"
    "    } else if (row == 4) {\n"
    "        const four u = (four)(two){*(const eight_bytes *)p[0], 0},\n"
    "                   v = (four)(two){*(const eight_bytes *)p[1], 0};\n"
    "        x = (two)LATHE_SHUFFLE(u, v, four, 0, 4, 1, 5);\n"
    "    } else {\n"
    "        x = (two)(four){*(const four_bytes *)p[0], *(const four_bytes *)p[1], *(const four_bytes *)p[2],\n"
    "                        *(const four_bytes *)p[3]};\n"
    "    }\n";

void needs_write_tile(writer *w, const c_need *n)
{
    const char *a = dtype_c_name(n->dt);
    w_str(w, shuffle_text);
    w_fmt(w, "/* acc + two rows of a by two rows of b, eight products each: lane 2 i + j has row i and row j. */\n"
             "LATHE_INLINE i32x4 i32x4_tile_%s(i32x4 acc, const %s *a, int row, int half, const int8_t *b)\n{\n",
          dtype_name(n->dt), a);
    w_fmt(w, "#if LATHE_VECTORS && defined(__aarch64__) && defined(__ARM_FEATURE_MATMUL_INT8)\n%s"
             "    __asm__(\"%s %%0.4s, %%1.16b, %%2.16b\" : \"+w\"(acc) : \"w\"(x), \"w\"(w));\n"
             "    return acc;\n#else\n",
          data_text, n->dt == DT_U8 ? "usmmla" : "smmla");
    w_str(w, "    int i, k;\n"
             "    for (i = 0; i < 4; i++)\n"
             "        for (k = 0; k < 8; k++)\n"
             "            LATHE_LANE(acc, i) = (int32_t)((uint32_t)LATHE_LANE(acc, i) +\n"
             "                (uint32_t)(a[i / 2 * row + k / 4 * half + k % 4] * b[i % 2 * 8 + k]));\n"
             "    return acc;\n#endif\n}\n\n");
}

void needs_write_tile_row(writer *w, arena *a, const c_need *n)
{
    const char *v = needs_vector_name(a, n->dt, TIR_TILE_LANES);
    w_str(w, shuffle_text);
    for (uint32_t i = 0; i < 2; i++)
        w_fmt(w, "LATHE_INLINE %s %s_row%u(%s a, %s b)\n{\n#if LATHE_VECTORS\n"
                 "    typedef int64_t two __attribute__((vector_size(16)));\n"
                 "    return (%s)LATHE_SHUFFLE((two)a, (two)b, two, %u, %u);\n#else\n    %s r;\n"
                 "    LATHE_LANE(r, 0) = LATHE_LANE(a, %u), LATHE_LANE(r, 1) = LATHE_LANE(a, %u);\n"
                 "    LATHE_LANE(r, 2) = LATHE_LANE(b, %u), LATHE_LANE(r, 3) = LATHE_LANE(b, %u);\n"
                 "    return r;\n#endif\n}\n\n",
              v, v, i, v, v, v, i, i + 2, v, 2 * i, 2 * i + 1, 2 * i, 2 * i + 1);
}
