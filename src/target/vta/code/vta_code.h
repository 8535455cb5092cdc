/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the loop IR that the VTA passes have lowered (what `lathe opt --lower vta` prints): executed call by
 * call on the accelerator's run-time, captured as constant streams, written as C. They are host programs: what they
 * compute themselves is computed by the interpreter, or by the C that is written.
 *
 * A function works on device buffers: its parameters, then what it allocates in the device's memory (vta_code_buffers).
 * The same numbers count the bindings of a capture and the arguments of the C functions. */
#ifndef LATHE_CODEGEN_VTA_VTA_CODE_H
#define LATHE_CODEGEN_VTA_VTA_CODE_H
#include "tir/tir.h"
#include "vta.h"

/* The device buffers of f: parameters, then allocations in order of appearance. Returns how many. */
uint32_t vta_code_buffers(compiler *c, const tir_func *f, const tir_buffer *const **out);
size_t vta_code_bytes(const tir_buffer *b);
bool vta_code_is_call_itself(tir_expr_ref e); /* e calls the accelerator's run-time */
bool vta_code_is_call(tir_expr_ref e);        /* a call of the accelerator's run-time is in it */
bool vta_code_on_device(const tir_func *f);   /* one is in f */

/* exec.c: whether all calls of f are such as the run-time has, and all kernels are for GEMM or ALU. False after a
 * diagnostic. What follows checks it. */
bool vta_code_check(compiler *c, const tir_func *f);

/* An error of the VTA library as a diagnostic; false. */
bool vta_code_report(compiler *c, const vta_error *e);

/* Who wants to know where a layer of a region begins: `queued` instructions of it have not run yet. */
typedef struct vta_code_watch {
    void *ctx;
    void (*layer)(void *ctx, const char *name, uint32_t queued);
} vta_code_watch;

/* exec.c: makes the calls of f on `x`, buffers[i] being the device's memory for buffer i of vta_code_buffers. Barriers,
 * kernels, synchronisation are the function's own: it ends with a synchronisation. False after a diagnostic that names
 * the statement; what is queued is dropped. `watch` may be NULL. */
bool vta_code_execute(compiler *c, const tir_func *f, vta_context *x, const vta_buffer *buffers,
                      const vta_code_watch *watch);

/* capture.c: f as constant data for vta_replay. binding[i]: which buffer of vta_code_buffers binding i + 1 is. */
typedef struct vta_code_captured {
    vta_capture capture; /* in c's memory */
    const uint32_t *binding;
    const tir_buffer *const *buffers;
    uint32_t n_buffers;
} vta_code_captured;
/* For the device of c. Refused with the statement's kind: a function in which the host computes, too. */
bool vta_code_capture(compiler *c, const tir_func *f, vta_code_captured *out);
/* The capture as C99: `NAME_capture` and its arrays, constant data without a pointer to fill in, and
 *     int32_t NAME(vta_device *device, const vta_memory *scratch, const vta_memory *buffers, vta_error *error)
 * which replays it: buffers[i] is the device's memory for buffer i of vta_code_buffers, `scratch` vta_replay_bytes of
 * it; it returns a vta_status. Needs vta.h and replay.c, no recording, no heap. */
bool vta_code_print_capture(compiler *c, writer *w, const tir_func *f, const char *name);

/* jit.c: f as C99 that makes the calls: `int32_t NAME(void *A, void *B, void *C)` over buffer handles, 0 or the status
 * of what failed. Kernels are recorded by static functions over a closure of loop variables. The text includes no
 * header of the library: its undefined symbols are those of the published run-time that it calls. With `checks` it
 * refuses a device of another configuration, by a weak symbol that libvta has and the published run-time has not;
 * without, its caller has asked. */
bool vta_code_print_jit(compiler *c, writer *w, const tir_func *f, const char *name, bool checks);

/* "int32_t NAME(...)", of the captured form or of the one with recorders. */
void vta_code_print_prototype(writer *w, const tir_func *f, const char *name, bool capture);
#endif
