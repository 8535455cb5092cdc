/* SPDX-License-Identifier: Apache-2.0 */
/* What the C of dot_rows (needs_rows.c) and that of its runs (needs_runs.c) share: the same functions by weights in
 * bytes, and by weights of 4 bits. */
#ifndef LATHE_CODEGEN_C_NEEDS_TILES_H
#define LATHE_CODEGEN_C_NEEDS_TILES_H

/* Tiles of sums, with what is read and written there: of bytes they begin with what stands there; of numbers of 4 bits
 * the sums are 16 times as large, and are added to it. K_PAIR, K_FOUR: bytes of a step of two, of four channels;
 * K_EACH: four times the bytes of a weight of two channels. */
#define BYTES_TILE     "lathe_dot_"
#define BYTES_RUNS     "lathe_runs_"
#define BYTES_PAIR     "8"
#define BYTES_FOUR     "16"
#define BYTES_EACH     "2"
#define BYTES_GET(i)   "s" #i " = out[" #i "]"
#define BYTES_PUT(i)   "out[" #i "] = s" #i
#define NIBBLES_TILE   "lathe_nib_"
#define NIBBLES_RUNS   "lathe_nibs_"
#define NIBBLES_PAIR   "4"
#define NIBBLES_FOUR   "8"
#define NIBBLES_EACH   "1"
#define NIBBLES_GET(i) "s" #i " = 0"
#define NIBBLES_PUT(i) "out[" #i "] += s" #i " >> 4"
#define SUMS_2(X)      X(0) ", " X(1)
#define SUMS_4(X)      SUMS_2(X) ", " X(2) ", " X(3)
#define SUMS_6(X)      SUMS_4(X) ", " X(4) ", " X(5)

/* The weights of a step: four registers from eight bytes, and from four by LATHE_NIBBLES. */
#define BYTE_WEIGHTS                                                                                      \
    "#define LATHE_WEIGHTS                                                         \\\n"                             \
    "    \"ldrd %[u], %[v], [%[w]], #8\\n sxtb16 %[e], %[u]\\n sxtb16 %[f], %[v]\\n\" \\\n"                          \
    "    \"sxtb16 %[u], %[u], ror #8\\n sxtb16 %[v], %[v], ror #8\\n\"\n"
#define NIBBLE_WEIGHTS "#undef LATHE_WEIGHTS\n#define LATHE_WEIGHTS LATHE_NIBBLES\n"
#endif
