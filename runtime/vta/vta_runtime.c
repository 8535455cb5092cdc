/* vta_runtime.c: the published VTA* functions over a context, the default device, and the error handler. The only file
 * of the library with global state: the default device, the handler, and the number of call sites.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "context.h"

/* --- the default device ------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    /* NULL: not made yet. It lies at the start of its memory; its device has a block of its own. */
    vta_context *context;
    vta_error_handler handler;
    void *handler_user;
    uintptr_t sites; /* call sites numbered so far */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local vta_context *current;
static _Thread_local vta_error thread_error; /* of a call that reached no context */

/* The whole file as text from malloc, or NULL. */
static char *read_file(const char *path, size_t *out_length)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t length = 0;
    *out_length = 0;
    for (size_t n = 1; f && n > 0; length += n) {
        char *longer = (char *)realloc(text, length + 4096);
        if (!longer)
            break;
        text = longer;
        n = fread(text + length, 1, 4096, f);
    }
    if (f)
        fclose(f);
    *out_length = length;
    return text;
}

/* VTA_CONFIG: a file, else a preset. */
static vta_status read_config(vta_config *c, vta_error *e)
{
    const char *name = getenv("VTA_CONFIG");
    size_t length;
    *c = vta_config_default();
    if (!name || !*name)
        return VTA_OK;
    char *text = read_file(name, &length);
    if (text) {
        vta_status s = vta_config_parse(name, text, length, c, e);
        free(text);
        return s;
    }
    vta_status s = vta_config_preset(name, c, e);
    return s == VTA_OK ? s : vta_fail(e, s, "VTA_CONFIG=%.100s is not a file that can be read, and no preset", name);
}

static vta_status make_default(const vta_config *config, vta_error *e)
{
    vta_sim *sim;
    const vta_sim_options options = {.seed = 1};
    vta_status s = vta_sim_create(config, &options, &sim, e);
    if (s != VTA_OK)
        return s;
    vta_device made = vta_sim_device(sim), *device = (vta_device *)malloc(sizeof *device);
    size_t bytes = vta_context_bytes(&made, NULL);
    void *memory = aligned_alloc(64, bytes);
    if (device)
        *device = made;
    s = device && memory ? vta_context_init(memory, bytes, device, NULL, &process.context, e)
                         : vta_fail(e, VTA_NO_MEMORY, "no %zu bytes for the default context", bytes);
    if (s != VTA_OK) {
        free(memory);
        free(device);
        vta_device_destroy(&made);
    }
    return s;
}

bool vta_detach_default(const vta_context *c)
{
    pthread_mutex_lock(&process.lock);
    bool is = c && c == process.context;
    if (is)
        process.context = NULL;
    pthread_mutex_unlock(&process.lock);
    if (is && current == c)
        current = NULL;
    return is;
}

void vta_destroy_detached(vta_context *c)
{
    vta_device *d = vta_context_device(c);
    vta_context_destroy(c);
    free(c);
    vta_device_destroy(d);
    free(d);
}

void VTARuntimeShutdown(void)
{
    pthread_mutex_lock(&process.lock);
    vta_context *c = process.context;
    pthread_mutex_unlock(&process.lock);
    if (vta_detach_default(c))
        vta_destroy_detached(c);
}

void vta_make_current(vta_context *c)
{
    current = c;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

void vta_set_error_handler(vta_error_handler handler, void *user)
{
    pthread_mutex_lock(&process.lock);
    process.handler = handler;
    process.handler_user = user;
    pthread_mutex_unlock(&process.lock);
}

/* Hands *e to the handler. The lock is not held: a handler may call back. */
static void handle(const vta_error *e)
{
    pthread_mutex_lock(&process.lock);
    vta_error_handler handler = process.handler;
    void *user = process.handler_user;
    pthread_mutex_unlock(&process.lock);
    if (handler) {
        handler(e, user);
        return;
    }
    fprintf(stderr, "VTA: %s (%s)\n", e->text, vta_status_text(e->status));
    abort();
}

/* Reports what a context refused. Its error is pending already; calls refused because of it are not reported again. */
static int report(vta_context *c, vta_status s)
{
    vta_error e = {s, ""};
    if (s == VTA_OK)
        return 0;
    if (!c) {
        vta_fail(&thread_error, s, "the command handle is NULL; take it from VTATLSCommandHandle");
        e = thread_error;
    } else if (!vta_context_tell(c, &e)) {
        return (int)s;
    }
    handle(&e);
    return (int)s;
}

/* Reports an error that no context keeps. */
static void report_text(const vta_error *e)
{
    if (thread_error.status == VTA_OK)
        thread_error = *e;
    handle(e);
}

/* With the lock held. */
static vta_status find_default(vta_error *e)
{
    vta_config config;
    vta_status s = process.context ? VTA_OK : read_config(&config, e);
    return s != VTA_OK || process.context ? s : make_default(&config, e);
}

vta_status vta_default_context(vta_context **out, vta_error *e)
{
    pthread_mutex_lock(&process.lock);
    vta_status s = find_default(e);
    *out = process.context;
    pthread_mutex_unlock(&process.lock);
    return s;
}

bool vta_is_default_context(const vta_context *c)
{
    pthread_mutex_lock(&process.lock);
    bool is = c && c == process.context;
    pthread_mutex_unlock(&process.lock);
    return is;
}

vta_status vta_current_context(vta_context **out, vta_error *e)
{
    *out = current;
    return current ? VTA_OK : vta_default_context(out, e);
}

/* The thread's context; NULL after an error that the handler let pass. */
static vta_context *get_current(void)
{
    vta_error e = {VTA_OK, ""};
    vta_context *c = NULL;
    if (vta_current_context(&c, &e) != VTA_OK)
        report_text(&e);
    return c;
}

/* The current context, or the default one, made for `want` where nothing else is asked for. */
static vta_status wanted(const vta_config *want, vta_context **out, vta_error *e)
{
    pthread_mutex_lock(&process.lock);
    bool open = !current && !process.context && !getenv("VTA_CONFIG");
    vta_status s = open ? make_default(want, e) : current ? VTA_OK : find_default(e);
    *out = current ? current : process.context;
    pthread_mutex_unlock(&process.lock);
    return s;
}

int vta_want_config(const char *name)
{
    vta_config want = vta_config_default();
    vta_error e = {VTA_OK, ""};
    vta_context *c = NULL;
    char have[80];
    vta_status s = vta_config_preset(name, &want, &e);
    if (s == VTA_OK)
        s = wanted(&want, &c, &e);
    if (s == VTA_OK && !vta_config_equal(&vta_context_device(c)->config, &want)) {
        vta_config_bitstream(&vta_context_device(c)->config, have, sizeof have);
        s = vta_fail(&e, VTA_BAD_CONFIG, "the program is for a device %.80s; this one is %.80s", name, have);
    }
    if (s != VTA_OK)
        fprintf(stderr, "VTA: %s\n", e.text);
    return (int)s;
}

vta_status vta_last_error(VTACommandHandle cmd, vta_error *out)
{
    vta_error e = thread_error;
    memset(&thread_error, 0, sizeof thread_error);
    vta_context *c = cmd ? (vta_context *)cmd : current;
    if (!c) {
        pthread_mutex_lock(&process.lock);
        c = process.context;
        pthread_mutex_unlock(&process.lock);
    }
    vta_error of_context = {VTA_OK, ""};
    if (c && vta_context_last_error(c, &of_context) != VTA_OK) {
        vta_discard(c);
        e = of_context;
    }
    if (out)
        *out = e;
    return e.status;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

vta_context *vta_owner_of(const void *buffer)
{
    vta_buffer b = vta_buffer_from_pointer(buffer);
    if (current && vta_buffer_bytes(current, b) > 0)
        return current;
    pthread_mutex_lock(&process.lock);
    vta_context *other = process.context;
    pthread_mutex_unlock(&process.lock);
    return other && vta_buffer_bytes(other, b) > 0 ? other : NULL;
}

/* The thread's when none has it: it says so. */
static vta_context *owner(const void *buffer)
{
    vta_context *c = vta_owner_of(buffer);
    return c ? c : get_current();
}

void *VTABufferAlloc(size_t size)
{
    vta_context *c = get_current();
    vta_buffer b = 0;
    if (c)
        report(c, vta_buffer_alloc(c, size, &b));
    return vta_buffer_to_pointer(b);
}

void VTABufferFree(void *buffer)
{
    vta_context *c = owner(buffer);
    if (c)
        report(c, vta_buffer_free(c, vta_buffer_from_pointer(buffer)));
}

void VTABufferCopy(const void *from, size_t from_offset, void *to, size_t to_offset, size_t size, int kind_mask)
{
    vta_error e;
    vta_context *c = kind_mask & 2 ? owner(from) : owner(to);
    vta_side from_side = kind_mask & 2 ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
    vta_side to_side = kind_mask & 1 ? VTA_SIDE_DEVICE : VTA_SIDE_HOST;
    if (kind_mask < 1 || kind_mask > 3) {
        vta_fail(&e, VTA_BAD_ARGUMENT, "VTABufferCopy: kind_mask is %d; 1 (to device), 2 (to host) or 3 (both)",
                 kind_mask);
        report_text(&e);
        return;
    }
    if (c)
        report(c, vta_ext_dev_api()->copy(c, from, from_offset, from_side, to, to_offset, to_side, size));
}

void *VTABufferCPUPtr(VTACommandHandle cmd, void *buffer)
{
    vta_context *c = (vta_context *)cmd;
    vta_buffer b = vta_buffer_from_pointer(buffer);
    void *host = vta_buffer_cpu_ptr(c, b);
    if (host || b >> 62 != 1)
        return host ? host : buffer;
    vta_status s =
        vta_context_enter(c); /* a handle that is no longer one, or of another device: nobody may follow it */
    if (s == VTA_OK) {
        vta_buffer_find(c, b, &c->error);
        s = vta_context_leave(c, c->error.status);
    }
    report(c, s);
    return NULL;
}

void VTAWriteBarrier(VTACommandHandle cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent)
{
    vta_context *c = (vta_context *)cmd;
    report(c, vta_write_barrier(c, vta_buffer_from_pointer(buffer), elem_bits, start, extent));
}

void VTAReadBarrier(VTACommandHandle cmd, void *buffer, uint32_t elem_bits, uint32_t start, uint32_t extent)
{
    vta_context *c = (vta_context *)cmd;
    report(c, vta_read_barrier(c, vta_buffer_from_pointer(buffer), elem_bits, start, extent));
}

int vta_keep_buffers(void **buffers, const size_t *bytes, int count)
{
    vta_context *c = get_current();
    int made = 0;
    for (int i = 0; c && i < count; i++) {
        if (vta_buffer_bytes(c, vta_buffer_from_pointer(buffers[i])) > 0)
            continue;
        buffers[i] = VTABufferAlloc(bytes[i]);
        if (!buffers[i])
            return -1;
        made++;
    }
    return c ? made : -1;
}

void vta_drop_buffers(void **buffers, int count)
{
    pthread_mutex_lock(&process.lock);
    vta_context *c = process.context;
    pthread_mutex_unlock(&process.lock);
    for (int i = 0; i < count; i++) {
        const vta_buffer b = vta_buffer_from_pointer(buffers[i]);
        if (c && vta_buffer_bytes(c, b) > 0)
            (void)vta_buffer_free(c, b);
        buffers[i] = NULL;
    }
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

VTACommandHandle VTATLSCommandHandle(void)
{
    return get_current();
}

void VTASetDebugMode(VTACommandHandle cmd, int debug_flag)
{
    if (cmd)
        vta_context_debug((vta_context *)cmd, (uint32_t)debug_flag);
    else
        report(NULL, VTA_BAD_HANDLE);
}

void VTALoadBuffer2D(VTACommandHandle cmd, void *src_dram_addr, uint32_t src_elem_offset, uint32_t x_size,
                     uint32_t y_size, uint32_t x_stride, uint32_t x_pad_before, uint32_t y_pad_before,
                     uint32_t x_pad_after, uint32_t y_pad_after, uint32_t dst_sram_index, uint32_t dst_memory_type)
{
    const vta_transfer t = {(enum vta_mem)dst_memory_type,
                            dst_sram_index,
                            src_elem_offset,
                            x_size,
                            y_size,
                            x_stride,
                            x_pad_before,
                            y_pad_before,
                            x_pad_after,
                            y_pad_after};
    vta_context *c = (vta_context *)cmd;
    report(c, vta_load(c, vta_buffer_from_pointer(src_dram_addr), &t));
}

void VTAStoreBuffer2D(VTACommandHandle cmd, uint32_t src_sram_index, uint32_t src_memory_type, void *dst_dram_addr,
                      uint32_t dst_elem_offset, uint32_t x_size, uint32_t y_size, uint32_t x_stride)
{
    const vta_transfer t = {
        (enum vta_mem)src_memory_type, src_sram_index, dst_elem_offset, x_size, y_size, x_stride, 0, 0, 0, 0};
    vta_context *c = (vta_context *)cmd;
    report(c, vta_store(c, vta_buffer_from_pointer(dst_dram_addr), &t));
}

/* Errors within a recording are reported by the push that records; outside of one there is nobody else to do it. */
static void report_uop(const vta_error *e)
{
    if (e->status == VTA_BAD_STATE && !vta_record_is_open())
        report_text(e);
}

void VTAUopPush(uint32_t mode, uint32_t reset_out, uint32_t dst_index, uint32_t src_index, uint32_t wgt_index,
                uint32_t opcode, uint32_t use_imm, int32_t imm_val)
{
    const vta_uop u = {mode, reset_out, dst_index, src_index, wgt_index, opcode, use_imm, imm_val};
    vta_error e = {VTA_OK, ""};
    if (vta_uop_push(&u, &e) != VTA_OK)
        report_uop(&e);
}

void VTAUopLoopBegin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor)
{
    vta_error e = {VTA_OK, ""};
    if (vta_uop_loop_begin(extent, dst_factor, src_factor, wgt_factor, &e) != VTA_OK)
        report_uop(&e);
}

void VTAUopLoopEnd(void)
{
    vta_error e = {VTA_OK, ""};
    if (vta_uop_loop_end(&e) != VTA_OK)
        report_uop(&e);
}

/* A call site is its slot's content, not its address: a module that is unloaded and another one loaded in its place
 * starts with NULL again and gets a new number. */
static const void *site_of(void **slot)
{
    pthread_mutex_lock(&process.lock);
    if (!*slot)
        *slot = (void *)++process.sites;
    const void *site = *slot;
    pthread_mutex_unlock(&process.lock);
    return site;
}

static int push_op(vta_mode mode, void **uop_handle, int (*finit)(void *), void *signature, int nbytes)
{
    vta_context *c = get_current();
    vta_error e;
    if (!c)
        return VTA_NO_MEMORY;
    if (!uop_handle || nbytes < 0) {
        vta_fail(&e, VTA_BAD_ARGUMENT, "VTAPush%sOp: slot %p, closure of %d bytes",
                 mode == VTA_MODE_GEMM ? "GEMM" : "ALU", (void *)uop_handle, nbytes);
        report_text(&e);
        return (int)e.status;
    }
    return report(c, vta_push(c, mode, site_of(uop_handle), finit, signature, (size_t)nbytes));
}

int VTAPushGEMMOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes)
{
    return push_op(VTA_MODE_GEMM, uop_handle, finit, signature, nbytes);
}

int VTAPushALUOp(void **uop_handle, int (*finit)(void *), void *signature, int nbytes)
{
    return push_op(VTA_MODE_ALU, uop_handle, finit, signature, nbytes);
}

int VTADepPush(VTACommandHandle cmd, int from_qid, int to_qid)
{
    vta_context *c = (vta_context *)cmd;
    return report(c, vta_dep_push(c, (enum vta_stage)from_qid, (enum vta_stage)to_qid));
}

int VTADepPop(VTACommandHandle cmd, int from_qid, int to_qid)
{
    vta_context *c = (vta_context *)cmd;
    return report(c, vta_dep_pop(c, (enum vta_stage)from_qid, (enum vta_stage)to_qid));
}

void VTASynchronize(VTACommandHandle cmd, uint32_t wait_cycles)
{
    vta_context *c = (vta_context *)cmd;
    report(c, vta_synchronize(c, wait_cycles));
}
