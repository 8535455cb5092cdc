/* vta_runtime.h: the published run-time interface: every VTA* function by its name and C signature, so that objects
 * compiled for it link against libvta and run. Thin over vta.h, where all rules stand; what is here in addition is the
 * one thing that these functions need and their arguments do not carry: which device.
 *
 * There is a default device, made when first asked for: VTA_CONFIG in the environment names a file (vta_config.json) or
 * a preset; else it is the default configuration; on the functional simulator. A thread may choose another context
 * with vta_make_current. Functions with a command handle use that context.
 *
 * Errors: these functions return nothing, so the first error is kept (vta_last_error) and handed to a handler. The
 * default handler prints it and aborts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_RUNTIME_H
#define VTA_RUNTIME_H

#include "vta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context of vta.h. */
typedef void *VTACommandHandle;

/* --- buffers: a handle is a vta_buffer as a pointer that nobody may follow --- */

/* NULL after an error that the handler let pass. */
void *VTABufferAlloc(size_t size);
void VTABufferFree(void *buffer);
/* kind_mask: 1 host to device, 2 device to host, 3 device to device; the other side is a plain pointer. */
void VTABufferCopy(const void *from, size_t from_offset, void *to, size_t to_offset, size_t size, int kind_mask);
/* The CPU's address of a buffer; any other pointer is returned as it is. */
void *VTABufferCPUPtr(VTACommandHandle cmd, void *buffer);
/* What the device wrote becomes visible to the CPU, in elements of elem_bits; and what the CPU wrote to the device. */
void VTAWriteBarrier(VTACommandHandle cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent);
void VTAReadBarrier(VTACommandHandle cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent);

/* --- commands --- */

/* The thread's current context, or the default one. */
VTACommandHandle VTATLSCommandHandle(void);
/* Destroys the default context and its device, buffers included; the next use makes new ones. No other thread may be
 * using them. */
void VTARuntimeShutdown(void);
/* Bits of VTA_DEBUG_FLAGS. */
void VTASetDebugMode(VTACommandHandle cmd, int debug_flag);
void VTALoadBuffer2D(VTACommandHandle cmd, void *src_dram_addr, uint32_t src_elem_offset, uint32_t x_size,
                     uint32_t y_size, uint32_t x_stride, uint32_t x_pad_before, uint32_t y_pad_before,
                     uint32_t x_pad_after, uint32_t y_pad_after, uint32_t dst_sram_index, uint32_t dst_memory_type);
void VTAStoreBuffer2D(VTACommandHandle cmd, uint32_t src_sram_index, uint32_t src_memory_type, void *dst_dram_addr,
                      uint32_t dst_elem_offset, uint32_t x_size, uint32_t y_size, uint32_t x_stride);
/* On the kernel that this thread is recording. */
void VTAUopPush(uint32_t mode, uint32_t reset_out, uint32_t dst_index, uint32_t src_index, uint32_t wgt_index,
                uint32_t opcode, uint32_t use_imm, int32_t imm_val);
void VTAUopLoopBegin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor);
void VTAUopLoopEnd(void);
/* On the thread's current context. *uop_handle, NULL at first, names the call site; `signature` is the closure, of any
 * length. Return 0, or a vta_status. */
int VTAPushGEMMOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes);
int VTAPushALUOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes);
/* Queue ids: 1 load, 2 compute, 3 store. Return 0, or a vta_status. */
int VTADepPush(VTACommandHandle cmd, int from_qid, int to_qid);
int VTADepPop(VTACommandHandle cmd, int from_qid, int to_qid);
void VTASynchronize(VTACommandHandle cmd, uint32_t wait_cycles);

/* --- ours --- */

/* The context that this thread's calls without a command handle use; NULL: the default one. It must outlive that use.
 */
void vta_make_current(vta_context *c);

/* The default context, made when there is none. VTA_BAD_CONFIG and others: VTA_CONFIG does not give a device. */
vta_status vta_default_context(vta_context **out, vta_error *e);
/* What calls without a command handle use: the thread's context, else the default one, made when there is none. */
vta_status vta_current_context(vta_context **out, vta_error *e);
/* Of these two the one that has this buffer; NULL: neither has it. Makes none. */
vta_context *vta_owner_of(const void *buffer);
/* For programs that are compiled for one configuration, by its name: "1x16_i8w8a32_15_15_18_17". A device of that
 * configuration is the current one: VTA_OK. Where there is no default context yet, and VTA_CONFIG names none, it
 * becomes one of that configuration. Else what is wrong goes to stderr, and its status is returned. */
int vta_want_config(const char *name);
/* For programs that keep buffers from call to call: entries of `buffers` that are NULL, or no buffers of the current
 * device, because that is another one by now, are made anew, of bytes[i] each. How many were made: what they held has
 * to be written again; -1: there is no room, and the error handler was told. */
int vta_keep_buffers(void **buffers, const size_t *bytes, int count);
/* Frees those that are still buffers of the default device, and makes all NULL; for programs that are unloaded. Makes
 * no device, and tells nobody. */
void vta_drop_buffers(void **buffers, int count);
/* `c`, whatever it points to, is the default context as it stands. */
bool vta_is_default_context(const vta_context *c);
/* Takes the default context away from the process when `c` is it (else false): nobody finds it any more, and who uses
 * it still may go on until vta_destroy_detached. VTARuntimeShutdown is both in one. */
bool vta_detach_default(const vta_context *c);
void vta_destroy_detached(vta_context *c);

/* Called on the failing thread. NULL: print and abort. Applies to the whole process. */
typedef void (*vta_error_handler)(const vta_error *e, void *user);
void vta_set_error_handler(vta_error_handler handler, void *user);

/* The first error of `cmd` (NULL: of the current context) since this function was called last; clears it, and drops
 * what is queued: the stream lacks the call that failed. */
vta_status vta_last_error(VTACommandHandle cmd, vta_error *out);

/* A buffer as the pointer that the functions above take, and back. */
void *vta_buffer_to_pointer(vta_buffer b);
vta_buffer vta_buffer_from_pointer(const void *p);

/* --- device table, in the style of device_api.ext_dev --- */

/* Memory of one side of a copy. */
typedef enum vta_side { VTA_SIDE_HOST = 0, VTA_SIDE_DEVICE = 1 } vta_side;

/* What a framework needs to keep tensors on the device. Data pointers of device tensors are buffer handles: only the
 * functions here and VTA* follow them. All return VTA_OK or the error that vta_context_last_error(c) tells. */
typedef struct vta_device_api {
    const char *name;    /* "ext_dev" */
    int32_t device_type; /* 12, that of DLPack's kDLExtDev */
    int32_t exist;       /* the one attribute: 1 */
    /* Pages, so that alignment is at least VTA_PAGE_BYTES; a larger one is refused. */
    vta_status (*alloc)(vta_context *c, size_t bytes, size_t alignment, void **out);
    vta_status (*free)(vta_context *c, void *data);
    vta_status (*copy)(vta_context *c, const void *from, size_t from_offset, vta_side from_side, void *to,
                       size_t to_offset, vta_side to_side, size_t bytes);
    /* What is queued has run when it returns. */
    vta_status (*sync)(vta_context *c);
} vta_device_api;
const vta_device_api *vta_ext_dev_api(void);

#ifdef __cplusplus
}
#endif
#endif
