/* SPDX-License-Identifier: Apache-2.0 */
/* What generated C tells compilers beside the language: macros that are empty where a compiler does not know them. */
#include "codegen/c/emit.h"

static const struct {
    c_need_kind kind;
    const char *text;
} hints[] = {
    {NEED_PREFETCH,
     "/* A line that is needed later comes as far as the second cache. */\n"
     "#if defined(__GNUC__)\n"
     "#define LATHE_PREFETCH(p) __builtin_prefetch((p), 0, 2)\n"
     "#else\n#define LATHE_PREFETCH(p) ((void)(p))\n#endif\n\n"},
    {NEED_ROLLED,
     "/* The loop behind it is not written out. */\n"
     "#if defined(__clang__)\n#define LATHE_ROLLED _Pragma(\"nounroll\")\n"
     "#elif defined(__GNUC__)\n#define LATHE_ROLLED _Pragma(\"GCC unroll 1\")\n"
     "#else\n#define LATHE_ROLLED\n#endif\n\n"},
    {NEED_ROLLED_CLANG,
     "/* Clang is not to write the loop out; other compilers do not without being told. */\n"
     "#if defined(__clang__)\n#define LATHE_ROLLED_CLANG _Pragma(\"nounroll\")\n"
     "#else\n#define LATHE_ROLLED_CLANG\n#endif\n\n"},
    {NEED_RARE,
     "/* What stands behind such a condition is not computed ahead of it. */\n"
     "#if defined(__GNUC__)\n#define LATHE_RARE(x) __builtin_expect(!!(x), 0)\n"
     "#else\n#define LATHE_RARE(x) (x)\n#endif\n\n"},
    /* gcc would make a copy for the numbers of each call. */
    {NEED_SHARED,
     "/* A function that is not copied into those that call it, nor for them. */\n"
     "#if defined(__clang__)\n#define LATHE_SHARED __attribute__((noinline))\n"
     "#elif defined(__GNUC__)\n#define LATHE_SHARED __attribute__((noinline, noclone))\n"
     "#else\n#define LATHE_SHARED\n#endif\n\n"},
    /* gcc gives such arrays 16 bytes of alignment, and its vector stores count on that. But gcc 12 and others begin the
     * frame of a leaf function at any 8 bytes when all stores go by a register (bug 109780 of gcc). Only what asks for
     * more than the 16 bytes that callers guarantee makes them align the frame. */
    {NEED_LOCAL,
     "/* An array of 16 bytes or more: some versions of gcc align a frame on x86 only where 32 are asked for. */\n"
     "#if defined(__GNUC__) && !defined(__clang__) && (defined(__x86_64__) || defined(__i386__))\n"
     "#define LATHE_LOCAL __attribute__((aligned(32)))\n#else\n#define LATHE_LOCAL\n#endif\n\n"},
};

void needs_write_hint(writer *w, c_need_kind kind)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].kind == kind)
            w_str(w, hints[i].text);
}
