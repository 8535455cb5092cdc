/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of f64 that are wider than a register, as lanes of 32 bits beside them ask for: compilers cut their sums and
 * products into registers, but make comparisons lane by lane, without any vector. */
#include "codegen/c/emit.h"

const char *needs_in_pieces(arena *a, const c_need *n, const char *v, const char *each, const char *last)
{
    const uint32_t bytes = needs_vector_bytes(n->dt, n->lanes);
    return arena_printf(a,
                        "#ifndef LATHE_PIECE\n#if defined(__AVX512F__)\n#define LATHE_PIECE 64\n"
                        "#elif defined(__AVX__)\n#define LATHE_PIECE 32\n#else\n#define LATHE_PIECE 16\n"
                        "#endif\n#endif\n"
                        "    enum { size = %u < LATHE_PIECE ? %u : LATHE_PIECE };\n"
                        "    typedef double piece __attribute__((vector_size(size)));\n"
                        "    typedef int64_t mask __attribute__((vector_size(size)));\n"
                        "    union {\n        %s all;\n        piece p[%u / size];\n    } u = {x};\n"
                        "    int i;\n    for (i = 0; i < %u / size; i++) {\n        %s\n    }\n%s",
                        bytes, bytes, v, bytes, bytes, each, last);
}

const char *needs_whole_lanes(arena *a, const c_need *n, const char *v, const char *into)
{
    const char *each = "const piece low = (piece){0} - 2147483648.0, high = (piece){0} + 2147483647.0;\n"
                       "        mask m = (mask)(u.p[i] == u.p[i]);\n        u.p[i] = (piece)((mask)u.p[i] & m);\n"
                       "        m = (mask)(u.p[i] > low);\n"
                       "        u.p[i] = (piece)(((mask)u.p[i] & m) | ((mask)low & ~m));\n"
                       "        m = (mask)(u.p[i] < high);\n"
                       "        u.p[i] = (piece)(((mask)u.p[i] & m) | ((mask)high & ~m));";
    const char *last = arena_printf(a, /* gcc 12 has no instruction for it where it does not optimise, and ends */
                                    "#if defined(__OPTIMIZE__) || defined(__clang__)\n"
                                    "    return __builtin_convertvector(u.all, %s);\n#else\n    {\n        %s r;\n"
                                    "        for (i = 0; i < %u; i++)\n"
                                    "            LATHE_LANE(r, i) = (int32_t)LATHE_LANE(u.all, i);\n"
                                    "        return r;\n    }\n#endif",
                                    into, into, n->lanes);
    return needs_in_pieces(a, n, v, each, last);
}
