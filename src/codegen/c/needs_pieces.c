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

/* One instruction of x86 for a piece, which gcc has no other name for. "": the vector has fewer bytes. */
static const char *by_instruction(arena *a, const c_need *n, uint32_t bytes, const char *features)
{
    const char *op = n->op == TIR_MAX ? "max" : "min";
    if (needs_vector_bytes(n->dt, n->lanes) < bytes)
        return "";
    return arena_printf(a, bytes == 64   ? "#elif defined(%s)\n        u.p[i] = __builtin_ia32_%spd512_mask(u.p[i], b, "
                                           "u.p[i], -1, 4);\n"
                           : bytes == 32 ? "#elif defined(%s)\n        u.p[i] = __builtin_ia32_%spd256(u.p[i], b);\n"
                                         : "#elif defined(%s)\n        u.p[i] = __builtin_ia32_%spd(u.p[i], b);\n",
                        features, op);
}

const char *needs_extreme_pieces(arena *a, const c_need *n, const char *v)
{
    const char *masked = arena_printf(a,
                                      "        {\n            const mask first = (mask)(u.p[i] %s b);\n"
                                      "            u.p[i] = (piece)(((mask)u.p[i] & first) | ((mask)b & ~first));\n"
                                      "        }\n", n->op == TIR_MAX ? ">" : "<");
    const char *each = arena_printf(a,
                                    "const piece b = (piece){0} + LATHE_LANE(y, 0);\n"
                                    "#if defined(__clang__)\n%s%s%s%s#else\n%s#endif",
                                    masked, by_instruction(a, n, 64, "__AVX512F__"),
                                    by_instruction(a, n, 32, "__AVX__"), by_instruction(a, n, 16, "__SSE2__"), masked);
    return needs_in_pieces(a, n, v, each, "    return u.all;");
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
