/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the loop IR's text: element types as TVM writes them, words that no variable may have, and a unique name for
 * every variable and buffer of a print. */
#ifndef LATHE_TIR_NAMES_H
#define LATHE_TIR_NAMES_H
#include "tir/map.h"
#include "tir/tir.h"

/* X(name, arguments, function, queue, wait): operations of the VTA accelerator, written @name(...), and the function of
 * the run-time that each becomes (pass LowerIntrin); queue: the command queue goes in front of its arguments; wait: how
 * long goes behind. A call of any other name is written @tir.call_extern("name", ...). */
#define TIR_VTA_CALLS(X)                                                                             \
    X("tir.vta.command_handle", 0, "VTATLSCommandHandle", false, false)                              \
    /* mode, reset_out, dst, src, wgt, opcode, use_imm, imm */                                       \
    X("tir.vta.uop_push", 8, "VTAUopPush", false, false)                                             \
    /* from queue, to queue: 1 load, 2 compute, 3 store */                                           \
    X("tir.vta.coproc_dep_push", 2, "VTADepPush", true, false)                                       \
    X("tir.vta.coproc_dep_pop", 2, "VTADepPop", true, false)                                         \
    /* debug flags of the run-time */                                                                \
    X("tir.vta.set_debug_mode", 1, "VTASetDebugMode", true, false)                                   \
    /* the host waits for the accelerator */                                                         \
    X("tir.vta.coproc_sync", 0, "VTASynchronize", true, true)                                        \
    /* buffer, bits of an element, start, extent: what the host wrote; what the accelerator wrote */ \
    X("tir.vta.coproc_read_barrier", 4, "VTAReadBarrier", true, false)                               \
    X("tir.vta.coproc_write_barrier", 4, "VTAWriteBarrier", true, false)
/* Arguments of the operation `name`; -1: no such operation. */
int tir_vta_call_arity(const char *name);

/* "float32, int8, ...": the types without lanes, for messages. */
const char *tir_list_types(arena *a);
bool tir_dtype_known(dtype t); /* the text has it: what kernels can use, handles and strings */
/* "int32", or "int32x8" with lanes. */
bool tir_type_from_text(const char *s, tir_type *out);
void tir_print_type(writer *w, tir_type t);
/* Types, operators, keywords: not usable as the name of a variable or buffer. */
bool tir_is_reserved(const char *s);

typedef struct tir_names {
    arena *a;
    tir_map given;    /* variable or buffer -> its name */
    tir_map counters; /* interned base name -> uses so far, as an address; NULL key never occurs */
    interner *texts;
} tir_names;

void tir_names_init(tir_names *n, arena *a);
/* The name of the thing at `key` whose wish is `wish`: given at first sight, "_1" and so on when taken. */
const char *tir_names_get(tir_names *n, const void *key, const char *wish);
#endif
