/* context.h: the parts of a run-time context, for the files that work on them: queue.c (instructions and dependencies),
 * kernel.c (micro-op kernels: memory of them, and where they lie), record.c (recording them), buffer.c, capture.c,
 * tokens.c, dump.c. All memory is the caller's, laid out once by context.c; nothing here allocates.
 *
 * Every public function is enter, work, leave: `enter` takes the lock and refuses when an error is pending; the work
 * reports to &c->error, which is thereby pending; `leave` unlocks and returns the status.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTA_CONTEXT_H
#define VTA_CONTEXT_H

#include <pthread.h>

#include "vta.h"

/* Flags of an instruction, where VTA_HEAD_FIELDS puts them. */
enum {
    VTA_POP_PREV = 1u << 3,
    VTA_POP_NEXT = 1u << 4,
    VTA_PUSH_PREV = 1u << 5,
    VTA_PUSH_NEXT = 1u << 6,
    VTA_DEP_FLAGS = VTA_POP_PREV | VTA_POP_NEXT | VTA_PUSH_PREV | VTA_PUSH_NEXT
};

enum {
    VTA_MOST_ITERATIONS = 16383, /* of a hardware loop: 14 bits */
    VTA_MOST_EXTENT = 65535,     /* of a transfer's sizes and stride: 16 bits */
    VTA_MOST_LEFT_TOKENS = 32,   /* into compute, left open across a synchronisation */
    VTA_TAIL_INSNS = 80,         /* what closing a stream may add: its own, and twice the tokens left open */
    VTA_MOST_UOPS = 8192         /* micro-ops of a kernel on any valid configuration (rule loop-word) */
};

typedef struct vta_queue {
    vta_insn *insns;
    uint32_t count, most;
    uint32_t run_start;                /* where the run being built starts; > 0 only in a capture of several runs */
    uint32_t serial;                   /* of the stream being built: buffers remember it */
    uint32_t pending[VTA_STAGE_COUNT]; /* pops that the stage's next instruction takes */
    vta_tokens open;                   /* given and not yet taken, in the run being built */
    vta_tokens held;                   /* the same of the runs before: on the device */
    vta_tokens left;                   /* at the last vta_synchronize, as it was told */
    enum vta_stage last;               /* stage of the last instruction, where a push may be merged into it */
    vta_field fields[VTA_ALU + 1][VTA_MAX_FIELDS]; /* of each opcode, laid out once */
    uint32_t n_fields[VTA_ALU + 1];
    vta_memory memory; /* the device's copy */
} vta_queue;

typedef struct vta_loop {
    uint32_t extent, dst, src, wgt;
} vta_loop;

/* A kernel but for its micro-ops. No padding: compared and hashed as bytes. */
typedef struct vta_kernel_head {
    uint32_t mode, reset_out, alu_opcode, use_imm;
    int32_t imm;
    uint32_t n_uops, n_loops;
    vta_loop loops[2]; /* outer, inner */
} vta_kernel_head;

typedef struct vta_kernel {
    vta_kernel_head head;
    uint32_t hash;
    uint32_t uops;   /* first word in the pool */
    uint64_t placed; /* where it lies in micro-op memory, see vta_kernels */
    uint64_t logged; /* where it lies in the log */
    bool checked;    /* its instruction's fields fit */
} vta_kernel;

/* The name under which a kernel is found without recording; no `site`: none. */
typedef struct vta_kernel_name {
    const void *site;
    vta_record_fn record;
    vta_mode mode;
    const void *closure;
    size_t bytes;
} vta_kernel_name;

/* A name as it is remembered. */
typedef struct vta_site {
    const void *site;
    vta_record_fn record;
    uint32_t mode, hash, kernel;
    uint32_t words, bytes; /* the closure: first word in the pool, length */
} vta_site;

/* Positions in micro-op memory and in the log are counters that only grow. Memory is a ring: position p is element
 * p mod depth, and a kernel placed at p is intact while sram_next <= p + depth. What was placed before sram_start
 * belongs to an earlier run. The log is only appended to; it starts at log_start and is cleared after a run. */
typedef struct vta_kernels {
    vta_kernel *kernels;
    vta_site *sites;
    uint32_t n_kernels, n_sites, most;
    uint32_t *by_content, *by_site; /* open hash tables of index + 1 */
    uint32_t slots;                 /* of each; a power of two, at least twice `most` */
    uint32_t *pool;                 /* micro-ops and closures of what is remembered */
    uint32_t n_pool, max_pool;
    uint32_t *log; /* micro-ops of this stream, as the device reads them */
    uint32_t max_log;
    vta_memory memory; /* the device's copy of the log */
    uint64_t log_start, log_next, sram_start, sram_next;
} vta_kernels;

typedef struct vta_buffer_slot {
    vta_memory memory;
    size_t bytes;
    uint32_t generation; /* of the handle; grows with each use of the slot */
    uint32_t used;       /* serial of the last stream that reads or writes it */
    uint32_t written;    /* serial of the last stream that writes it */
    uint32_t binding;    /* of the capture being written */
    uint32_t next_free;
    bool live, mapped;
} vta_buffer_slot;

typedef struct vta_buffers {
    vta_buffer_slot *slots;
    uint32_t most;
    uint32_t first_free, last_free; /* first in, first out, so that generations grow evenly */
    uint32_t live;
    uint64_t to_device, from_device, within; /* bytes that were copied, since the counters were cleared */
} vta_buffers;

struct vta_context {
    pthread_mutex_t lock;
    vta_device *device;
    const vta_geometry *geometry;
    vta_context_options options;
    vta_error error;
    bool told;       /* the pending error has been handed to a handler */
    uint32_t serial; /* of the context in this process: part of its handles */
    uint32_t debug;
    bool capturing;
    vta_queue queue;
    vta_kernels kernels;
    vta_buffers buffers;
};

/* Locks. Not VTA_OK (and not locked): the pending error's status, or VTA_BAD_HANDLE without a context. */
vta_status vta_context_enter(vta_context *c);
vta_status vta_context_leave(vta_context *c, vta_status s);
/* Copies the pending error, once: false when there is none or it was told before. */
bool vta_context_tell(vta_context *c, vta_error *out);

/* --- queue.c, all locked --- */

void vta_queue_lay_out(vta_context *c);
vta_status vta_queue_encode(const vta_context *c, const vta_fields *f, vta_insn *out, vta_error *e);
/* Appends an instruction; its stage's pending pops become its flags. There must be room. */
vta_status vta_queue_append(vta_context *c, const vta_fields *f, vta_error *e);
/* Room for `count` instructions beside the tail; synchronises for it. */
vta_status vta_queue_room(vta_context *c, uint32_t count, vta_error *e);
vta_status vta_queue_synchronize(vta_context *c, uint32_t wait_cycles, vta_error *e);
void vta_queue_clear(vta_context *c);

/* --- kernel.c, all locked --- */

vta_kernel *vta_kernel_find(vta_context *c, const vta_kernel_name *name);
/* Remembers a kernel (found again when there is an equal one), and its name. */
vta_status vta_kernel_remember(vta_context *c, const vta_kernel_head *head, const uint32_t *uops,
                               const vta_kernel_name *name, vta_kernel **out, vta_error *e);
/* Queues the kernel's instruction, and before it a load of its micro-ops where they do not lie in their memory. */
vta_status vta_kernel_queue(vta_context *c, vta_kernel *k, vta_error *e);
/* Micro-op memory no longer holds what this run put there. */
void vta_kernel_evict_all(vta_context *c);
void vta_kernel_clear_log(vta_context *c);
uint32_t vta_kernel_logged(const vta_context *c); /* micro-ops in the log */

/* --- record.c --- */

bool vta_record_is_open(void); /* this thread records a kernel */

/* --- buffer.c, all locked --- */

void vta_buffer_lay_out(vta_context *c);
/* NULL, and *e filled: freed, or of another context. */
vta_buffer_slot *vta_buffer_find(vta_context *c, vta_buffer b, vta_error *e);
void vta_buffer_release_all(vta_context *c);

/* --- tokens.c, dump.c --- */

/* Tokens that nobody takes at the end of a program: kept for vta_left_tokens, and told as the options say. */
vta_status vta_tokens_tell_left(vta_context *c, const vta_tokens *left, vta_error *e);

/* Takes and gives the tokens of one instruction. NULL, or the queue that it takes from though it is empty. */
const char *vta_tokens_step(const vta_geometry *g, const vta_insn *insn, vta_tokens *t);

void vta_dump_insns(vta_context *c, const vta_insn *insns, uint32_t count);
void vta_dump_uops(vta_context *c);

#endif
