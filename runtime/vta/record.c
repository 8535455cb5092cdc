/* record.c: recording of micro-op kernels. A recording lies on the stack of the thread that pushes the kernel, and that
 * thread's vta_uop_* calls find it through the one thread-local variable of the run-time; so no lock is held while the
 * caller's function runs, and threads do not meet.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

typedef struct recording {
    const vta_geometry *geometry;
    vta_kernel_head head;
    vta_error error;     /* the first; such a recording is dropped */
    uint32_t open_loops; /* begun and not ended */
    bool ended;          /* a loop has ended: nothing may follow inside */
    uint32_t last_dst[2];
    uint32_t uops[VTA_MOST_UOPS];
} recording;

static _Thread_local recording *current;

bool vta_record_is_open(void)
{
    return current != NULL;
}

/* The thread's recording, while it is sound. */
static vta_status find_recording(const char *what, recording **out, vta_error *e)
{
    *out = current;
    if (!current)
        return vta_fail(
            e, VTA_BAD_STATE,
            "%s: this thread records no kernel; call it from a function given to push_gemm_op or push_alu_op", what);
    if (current->error.status != VTA_OK && e)
        *e = current->error;
    return current->error.status;
}

vta_status vta_record_error(vta_error *out)
{
    if (!current)
        return VTA_OK;
    if (out)
        *out = current->error;
    return current->error.status;
}

/* Hands the recording's error, because of which it will be dropped, to the caller as well. */
static vta_status drop(recording *r, vta_error *e)
{
    if (e)
        *e = r->error;
    return r->error.status;
}

vta_status vta_uop_loop_begin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor, uint32_t wgt_factor,
                              vta_error *e)
{
    recording *r;
    vta_status s = find_recording("uop_loop_begin", &r, e);
    if (s != VTA_OK)
        return s;
    if (r->head.n_uops > 0 || r->ended)
        vta_fail(&r->error, VTA_BAD_STATE, "uop_loop_begin: loops are begun before the first micro-op is pushed");
    else if (r->head.n_loops == 2)
        vta_fail(&r->error, VTA_BAD_STATE, "uop_loop_begin: the hardware has two loops, this is the third");
    else if (extent == 0)
        vta_fail(&r->error, VTA_BAD_ARGUMENT, "uop_loop_begin: a loop without iterations");
    if (r->error.status != VTA_OK)
        return drop(r, e);
    r->head.loops[r->head.n_loops++] = (vta_loop){extent, dst_factor, src_factor, wgt_factor};
    r->open_loops++;
    return VTA_OK;
}

vta_status vta_uop_loop_end(vta_error *e)
{
    recording *r;
    vta_status s = find_recording("uop_loop_end", &r, e);
    if (s != VTA_OK)
        return s;
    if (r->open_loops == 0) {
        vta_fail(&r->error, VTA_BAD_STATE, "uop_loop_end: no loop is open");
        return drop(r, e);
    }
    r->open_loops--;
    r->ended = true;
    return VTA_OK;
}

/* What all micro-ops of a kernel share. */
static void check_same(recording *r, const vta_uop *u)
{
    vta_kernel_head *h = &r->head;
    if (u->mode != h->mode)
        vta_fail(&r->error, VTA_BAD_STATE, "uop_push: mode %u in a kernel of mode %u (0 GEMM, 1 ALU)", u->mode,
                 h->mode);
    else if (u->mode == VTA_MODE_ALU && u->alu_opcode > VTA_ALU_MUL)
        vta_fail(&r->error, VTA_BAD_ARGUMENT, "uop_push: there is no ALU operation %u; 0 to 4", u->alu_opcode);
    else if (u->mode == VTA_MODE_ALU && (u->imm < INT16_MIN || u->imm > INT16_MAX))
        vta_fail(&r->error, VTA_BAD_FIELD, "uop_push: imm is %d; the field holds -32768 to 32767", u->imm);
    else if (u->reset_out > 1 || u->use_imm > 1)
        vta_fail(&r->error, VTA_BAD_FIELD, "uop_push: reset_out is %u and use_imm %u; the fields hold 0 and 1",
                 u->reset_out, u->use_imm);
    else if (h->n_uops > 0 && h->reset_out != u->reset_out)
        vta_fail(&r->error, VTA_BAD_STATE, "uop_push: reset_out %u after %u; one kernel has one", u->reset_out,
                 h->reset_out);
    else if (h->n_uops > 0 && u->mode == VTA_MODE_ALU &&
             (h->alu_opcode != u->alu_opcode || h->use_imm != u->use_imm || h->imm != u->imm))
        vta_fail(&r->error, VTA_BAD_STATE, "uop_push: operation, use_imm or imm differ; one kernel has one operation");
}

/* A destination written within the two micro-ops before may not have arrived in the hardware's pipeline. */
static void check_hazard(recording *r, const vta_uop *u)
{
    uint32_t seen = r->head.n_uops < 2 ? r->head.n_uops : 2;
    for (uint32_t i = 0; i < seen; i++)
        if (r->last_dst[i] == u->dst)
            vta_fail(&r->error, VTA_BAD_STATE,
                     "uop_push: dst_index %u is also that of one of the two micro-ops before; the hardware needs two "
                     "others in between",
                     u->dst);
}

vta_status vta_uop_push(const vta_uop *u, vta_error *e)
{
    recording *r;
    vta_status s = find_recording("uop_push", &r, e);
    if (s != VTA_OK)
        return s;
    vta_kernel_head *h = &r->head;
    vta_uop_fields fields = {u->dst, u->src, u->wgt};
    vta_field_error bad;
    uint32_t word = 0, depth = r->geometry->depth[VTA_MEM_UOP];
    check_same(r, u);
    if (r->error.status == VTA_OK)
        check_hazard(r, u);
    if (r->error.status == VTA_OK && r->ended)
        vta_fail(&r->error, VTA_BAD_STATE, "uop_push: a micro-op after the end of a loop; loops hold all of them");
    if (r->error.status == VTA_OK && h->n_uops == depth)
        vta_fail(&r->error, VTA_BAD_ARGUMENT,
                 "uop_push: a kernel of more than %u micro-ops, which is what their memory "
                 "holds",
                 depth);
    if (r->error.status == VTA_OK && !vta_uop_encode(r->geometry, &fields, &word, &bad))
        vta_fail(&r->error, VTA_BAD_FIELD, "uop_push: %s_index is %lld; the field holds %lld to %lld", bad.field,
                 (long long)bad.value, (long long)bad.least, (long long)bad.most);
    if (r->error.status != VTA_OK)
        return drop(r, e);
    h->reset_out = u->reset_out;
    if (h->mode == VTA_MODE_ALU) {
        h->alu_opcode = u->alu_opcode;
        h->use_imm = u->use_imm;
        h->imm = u->imm;
    }
    r->last_dst[h->n_uops % 2] = u->dst;
    r->uops[h->n_uops++] = word;
    return VTA_OK;
}

/* Refuses an index that a loop carries out of its scratchpad. */
static void check_index(recording *r, const char *name, uint32_t most, uint64_t outer, uint64_t inner, uint32_t depth)
{
    const vta_kernel_head *h = &r->head;
    uint64_t reach = most;
    if (h->n_loops > 0)
        reach += (h->loops[0].extent - 1) * outer;
    if (h->n_loops > 1)
        reach += (h->loops[1].extent - 1) * inner;
    if (reach >= depth && r->error.status == VTA_OK)
        vta_fail(&r->error, VTA_BAD_ARGUMENT, "kernel: its loops reach %s_index %llu; the scratchpad holds %u", name,
                 (unsigned long long)reach, depth);
}

/* What can be judged once the whole kernel is known. */
static void check_whole(recording *r)
{
    const vta_kernel_head *h = &r->head;
    const uint32_t *depth = r->geometry->depth;
    uint32_t dst = 0, src = 0, wgt = 0;
    if (h->n_uops == 0)
        vta_fail(&r->error, VTA_BAD_STATE, "kernel: no micro-op was pushed");
    else if (r->open_loops > 0)
        vta_fail(&r->error, VTA_BAD_STATE, "kernel: %u loops were begun and not ended", r->open_loops);
    for (uint32_t i = 0; i < h->n_uops; i++) {
        vta_uop_fields f;
        vta_uop_decode(r->geometry, r->uops[i], &f);
        dst = f.dst > dst ? (uint32_t)f.dst : dst;
        src = f.src > src ? (uint32_t)f.src : src;
        wgt = f.wgt > wgt ? (uint32_t)f.wgt : wgt;
    }
    const vta_loop *l = h->loops;
    bool gemm = h->mode == VTA_MODE_GEMM;
    check_index(r, "dst", dst, l[0].dst, l[1].dst, depth[VTA_MEM_ACC]);
    if (gemm && h->reset_out)
        return; /* reads nothing */
    check_index(r, "src", src, l[0].src, l[1].src, depth[gemm ? VTA_MEM_INP : VTA_MEM_ACC]);
    if (gemm)
        check_index(r, "wgt", wgt, l[0].wgt, l[1].wgt, depth[VTA_MEM_WGT]);
}

/* Runs the caller's function with a recording of its own. Returns the recording's status. */
static vta_status record_kernel(recording *r, const vta_context *c, vta_mode mode, vta_record_fn record, void *closure)
{
    memset(r, 0, offsetof(recording, uops));
    r->geometry = c->geometry;
    r->head.mode = (uint32_t)mode;
    current = r;
    int rc = record(closure);
    current = NULL;
    if (r->error.status == VTA_OK && rc != 0)
        vta_fail(&r->error, VTA_BAD_STATE, "kernel: the recording function returned %d", rc);
    if (r->error.status == VTA_OK)
        check_whole(r);
    return r->error.status;
}

/* Records on this thread's stack, then remembers and queues the kernel. */
static vta_status push_recorded(vta_context *c, const vta_kernel_name *name, void *closure)
{
    recording r;
    vta_kernel *kernel;
    vta_status recorded = record_kernel(&r, c, name->mode, name->record, closure);
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (recorded != VTA_OK) {
        c->error = r.error;
        return vta_context_leave(c, recorded);
    }
    s = vta_kernel_remember(c, &r.head, r.uops, name, &kernel, &c->error);
    return vta_context_leave(c, s == VTA_OK ? vta_kernel_queue(c, kernel, &c->error) : s);
}

vta_status vta_push(vta_context *c, vta_mode mode, const void *site, vta_record_fn record, void *closure, size_t bytes)
{
    if (current) { /* the push that is going on reports it */
        if (current->error.status == VTA_OK)
            vta_fail(&current->error, VTA_BAD_STATE,
                     "push: this thread records another kernel; its recording function may only call uop_push, "
                     "uop_loop_begin and uop_loop_end");
        return VTA_BAD_STATE;
    }
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if ((mode != VTA_MODE_GEMM && mode != VTA_MODE_ALU) || !record || (bytes > 0 && !closure))
        return vta_context_leave(c, vta_fail(&c->error, VTA_BAD_ARGUMENT,
                                             "push: mode %d (0 GEMM, 1 ALU), recorder %s, closure of %zu bytes at %p",
                                             (int)mode, record ? "given" : "missing", bytes, closure));
    const vta_kernel_name name = {site, record, mode, closure, bytes};
    vta_kernel *kernel = site ? vta_kernel_find(c, &name) : NULL;
    if (kernel)
        return vta_context_leave(c, vta_kernel_queue(c, kernel, &c->error));
    vta_context_leave(c, VTA_OK);
    return push_recorded(c, &name, closure);
}
